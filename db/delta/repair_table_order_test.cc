//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/repair_table_order.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/comparator.h"
#include "test_util/testharness.h"
#include "util/random.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

class RepairTableOrderTest : public testing::Test {
 protected:
  struct Point {
    std::string key;
    SequenceNumber seq;
    ValueType type = kTypeValue;
    // If empty, it is made of key and sequence number.
    std::string value = std::string();
  };
  struct Range {
    std::string begin;
    std::string end;
    SequenceNumber seq;
  };
  struct Table {
    std::vector<Point> points;
    std::vector<Range> ranges;
    Status open_status = Status::OK();
    Status read_status = Status::OK();
  };

  // Counts moves to the next entry, and fails at the end on demand.
  class PointIterator : public VectorIterator {
   public:
    PointIterator(std::vector<std::string> keys,
                  std::vector<std::string> values,
                  const InternalKeyComparator* icmp, const Status& status,
                  size_t* num_steps)
        : VectorIterator(std::move(keys), std::move(values), icmp),
          status_(status),
          num_steps_(num_steps) {}
    void Next() override {
      ++*num_steps_;
      VectorIterator::Next();
    }
    Status status() const override { return Valid() ? Status::OK() : status_; }

   private:
    const Status status_;
    size_t* const num_steps_;
  };

  RepairTableOrderTest() : icmp_(BytewiseComparator()) {}

  static std::string ValueOf(const Point& point) {
    return point.value.empty() ? point.key + std::to_string(point.seq)
                               : point.value;
  }

  RepairTableOrder::Table Input(const Table& table) {
    RepairTableOrder::Table input;
    std::vector<std::string> bounds;
    for (const Point& point : table.points) {
      bounds.push_back(point.key);
    }
    for (const Range& range : table.ranges) {
      bounds.push_back(range.begin);
      bounds.push_back(range.end);
    }
    if (!bounds.empty()) {
      input.smallest = *std::min_element(bounds.begin(), bounds.end());
      input.largest = *std::max_element(bounds.begin(), bounds.end());
    }
    input.open = [this, table](RepairTableOrder::Entries* entries) {
      std::vector<std::string> keys;
      std::vector<std::string> values;
      for (const Point& point : table.points) {
        keys.push_back(
            InternalKey(point.key, point.seq, point.type).Encode().ToString());
        values.push_back(ValueOf(point));
      }
      entries->points = std::make_unique<PointIterator>(
          std::move(keys), std::move(values), &icmp_, table.read_status,
          &num_steps_);
      if (!table.ranges.empty()) {
        entries->range_deletions = OpenRanges(table);
      }
      return table.open_status;
    };
    return input;
  }

  std::unique_ptr<FragmentedRangeTombstoneIterator> OpenRanges(
      const Table& table) {
    std::vector<std::string> keys;
    std::vector<std::string> ends;
    for (const Range& range : table.ranges) {
      keys.push_back(InternalKey(range.begin, range.seq, kTypeRangeDeletion)
                         .Encode()
                         .ToString());
      ends.push_back(range.end);
    }
    lists_.push_back(std::make_shared<FragmentedRangeTombstoneList>(
        std::make_unique<VectorIterator>(std::move(keys), std::move(ends),
                                         &icmp_),
        icmp_));
    return std::make_unique<FragmentedRangeTombstoneIterator>(
        lists_.back(), icmp_, kMaxSequenceNumber);
  }

  Status Compute(const std::vector<Table>& tables) {
    std::vector<RepairTableOrder::Table> inputs;
    for (const Table& table : tables) {
      inputs.push_back(Input(table));
    }
    RepairTableOrder order(BytewiseComparator(), std::move(inputs));
    const Status s = order.Compute();
    order_ = order.order();
    num_contradictions_ = order.num_contradictions();
    return s;
  }
  std::vector<size_t> OrderOf(const std::vector<Table>& tables,
                              size_t num_contradictions = 0) {
    EXPECT_OK(Compute(tables));
    EXPECT_EQ(num_contradictions_, num_contradictions);
    return order_;
  }

  const InternalKeyComparator icmp_;
  std::vector<std::shared_ptr<FragmentedRangeTombstoneList>> lists_;
  std::vector<size_t> order_;
  size_t num_contradictions_ = 0;
  size_t num_steps_ = 0;
};

using Order = std::vector<size_t>;

TEST_F(RepairTableOrderTest, OrderIsKeptWithoutRequirements) {
  EXPECT_EQ(OrderOf({}), Order());
  EXPECT_EQ(OrderOf({{}, {{{"a", 1}}}, {}}), Order({0, 1, 2}));
  EXPECT_EQ(OrderOf({{{{"a", 9}, {"b", 8}}}, {{{"c", 7}}}, {{{"a", 2}}}}),
            Order({0, 1, 2}));
}

// The first table was on a lower level than the second one.
TEST_F(RepairTableOrderTest, NewestEntryOfEachKeyComesFirst) {
  EXPECT_EQ(OrderOf({{{{"a", 9}, {"b", 2}}}, {{{"b", 6}}}}), Order({1, 0}));
  EXPECT_EQ(
      OrderOf({{{{"a", 9}, {"b", 2}}}, {{{"b", 6}, {"c", 1}}}, {{{"c", 5}}}}),
      Order({2, 1, 0}));
  // The older versions of a key do not matter.
  EXPECT_EQ(OrderOf({{{{"a", 9}, {"b", 6}, {"b", 2}}}, {{{"b", 4}}}}),
            Order({0, 1}));
  EXPECT_EQ(
      OrderOf(
          {{{{"a", 9}, {"b", 2}}}, {{{"b", 6, kTypeDeletion}}}, {{{"b", 1}}}}),
      Order({1, 0, 2}));
}

TEST_F(RepairTableOrderTest, RangeDeletionsComeBeforeWhatTheyDelete) {
  EXPECT_EQ(OrderOf({{{{"a", 1}, {"z", 9}}}, {{}, {{"a", "c", 3}}}}),
            Order({1, 0}));
  EXPECT_EQ(OrderOf({{{{"z", 9}}, {{"a", "c", 3}}}, {{{"b", 6}}}}),
            Order({1, 0}));
  EXPECT_EQ(
      OrderOf({{{{"z", 9}}, {{"a", "c", 3}}}, {{{"b", 6}}}, {{{"b", 2}}}}),
      Order({1, 0, 2}));
  // The end of a range is not deleted.
  EXPECT_EQ(OrderOf({{{{"z", 9}}, {{"a", "b", 3}}}, {{{"b", 6}}}}),
            Order({0, 1}));
  // An entry above a range deletion of its own table.
  EXPECT_EQ(OrderOf({{{{"b", 6}, {"z", 9}}, {{"a", "c", 3}}}, {{{"b", 4}}}}),
            Order({0, 1}));
  // An entry below a range deletion of its own table.
  EXPECT_EQ(OrderOf({{{{"b", 2}, {"z", 9}}, {{"a", "c", 5}}}, {{{"b", 6}}}}),
            Order({1, 0}));
  // A table whose last entry is before its range deletion.
  EXPECT_EQ(OrderOf({{{{"a", 9}}, {{"b", "d", 3}}}, {{{"c", 6}}}}),
            Order({1, 0}));
}

// Tables that a repair makes of WALs repeat what was flushed.
TEST_F(RepairTableOrderTest, OneCopyOfTheNewestEntryIsSufficient) {
  // "k" would take the first table before the second one, "m" after it.
  EXPECT_EQ(
      OrderOf({{{{"k", 5}, {"m", 4}}}, {{{"k", 2}, {"m", 9}}}, {{{"k", 5}}}}),
      Order({2, 1, 0}));
}

TEST_F(RepairTableOrderTest, ZeroedEntryWithTheSameValueIsACopy) {
  const Table wal{{{"k", 5, kTypeValue, "v"}, {"z", 9}}, {{"a", "c", 3}}};
  const Table zeroed{{{"k", 0, kTypeValue, "v"}, {"b", 6}}};
  EXPECT_EQ(OrderOf({wal, zeroed}), Order({1, 0}));
  const Table other{{{"k", 0, kTypeValue, "other"}, {"b", 6}}};
  EXPECT_EQ(OrderOf({wal, other}, /*num_contradictions=*/1), Order({0, 1}));
  const Table entity{{{"k", 0, kTypeWideColumnEntity, "v"}, {"b", 6}}};
  EXPECT_EQ(OrderOf({wal, entity}, /*num_contradictions=*/1), Order({0, 1}));
  // The same value of a key with another sequence number is an older one.
  const Table older{{{"k", 1, kTypeValue, "v"}, {"b", 6}}};
  EXPECT_EQ(OrderOf({wal, older}, /*num_contradictions=*/1), Order({0, 1}));
}

TEST_F(RepairTableOrderTest, OperandsAreOrderedDownToTheirBase) {
  EXPECT_EQ(OrderOf({{{{"k", 7, kTypeMerge}}},
                     {{{"k", 3}, {"z", 6}}},
                     {{{"k", 5, kTypeMerge}}}}),
            Order({0, 2, 1}));
  // Entries below the base do not matter.
  EXPECT_EQ(OrderOf({{{{"k", 7, kTypeMerge}}},
                     {{{"k", 1}, {"z", 6}}},
                     {{{"k", 5}}},
                     {{{"k", 3}}}}),
            Order({0, 2, 1, 3}));
}

TEST_F(RepairTableOrderTest, ContradictionsAreCounted) {
  EXPECT_EQ(OrderOf({{{{"a", 9}, {"b", 2}}}, {{{"a", 3}, {"b", 6}}}},
                    /*num_contradictions=*/1),
            Order({0, 1}));
  // Other requirements are met.
  EXPECT_EQ(OrderOf({{{{"a", 9}, {"b", 2}}},
                     {{{"a", 3}, {"b", 6}, {"c", 1}}},
                     {{{"c", 5}}}},
                    /*num_contradictions=*/1),
            Order({2, 0, 1}));
}

TEST_F(RepairTableOrderTest, DamagedKeysAreSkipped) {
  const auto key = [](const char* user_key, SequenceNumber seq) {
    return InternalKey(user_key, seq, kTypeValue).Encode().ToString();
  };
  std::string bad_type = key("a", 5);
  bad_type[bad_type.size() - kNumInternalBytes] = '\x7f';
  std::vector<RepairTableOrder::Table> inputs;
  inputs.push_back({"a", "b", [&](RepairTableOrder::Entries* entries) {
                      entries->points = std::make_unique<PointIterator>(
                          std::vector<std::string>{"bad", key("a", 9), bad_type,
                                                   key("b", 2), "bad"},
                          std::vector<std::string>(5), /*icmp=*/nullptr,
                          Status::OK(), &num_steps_);
                      return Status::OK();
                    }});
  inputs.push_back(Input({{{"a", 1}, {"b", 6}, {"c", 6}}}));
  RepairTableOrder order(BytewiseComparator(), std::move(inputs));
  ASSERT_OK(order.Compute());
  EXPECT_EQ(order.num_contradictions(), 1);
}

TEST_F(RepairTableOrderTest, ErrorsAreReturned) {
  const Table good{{{"a", 9}, {"b", 2}}};
  for (const bool is_first : {false, true}) {
    Table cannot_open{{{"a", 8}, {"c", 2}}};
    cannot_open.open_status = Status::IOError("open");
    EXPECT_TRUE(Compute(is_first ? std::vector<Table>{cannot_open, good}
                                 : std::vector<Table>{good, cannot_open})
                    .IsIOError());
    Table cannot_read{{{"a", 8}}};
    cannot_read.read_status = Status::Corruption("read");
    EXPECT_TRUE(Compute(is_first ? std::vector<Table>{cannot_read, good}
                                 : std::vector<Table>{good, cannot_read})
                    .IsCorruption());
    // Nothing of the table can be read.
    cannot_read.points.clear();
    EXPECT_TRUE(Compute({cannot_read, good}).IsCorruption());
  }
  // The last key that is read alone.
  Table alone{{{"a", 8}}};
  alone.read_status = Status::Corruption("read");
  EXPECT_TRUE(Compute({alone, {{{"b", 1}}}}).IsCorruption());
}

TEST_F(RepairTableOrderTest, KeysOfOneTableAreSkipped) {
  Table wide;
  for (int i = 0; i < 1000; ++i) {
    wide.points.push_back({"k" + std::to_string(1000 + i), 1000u + i});
  }
  EXPECT_EQ(OrderOf({wide, {{{"k1500", 1}}}, {{{"k1501", 5000}}}}),
            Order({2, 0, 1}));
  EXPECT_LT(num_steps_, 10);
}

// Tables as compactions leave them: each version of a key is in a table before
// those of its older versions. Their order is then lost.
TEST_F(RepairTableOrderTest, FindsAnOrderOfRandomTables) {
  Random rnd(static_cast<uint32_t>(test::RandomSeed()));
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const size_t num_tables = 1 + rnd.Uniform(8);
    const int num_keys = 1 + static_cast<int>(rnd.Uniform(6));
    std::vector<Table> tables(num_tables);
    // Writes in the order of their sequence numbers. Each one goes to a table
    // that is not older than that of the last write to a key of it.
    std::vector<size_t> oldest_allowed(num_keys, num_tables - 1);
    std::vector<std::optional<SequenceNumber>> newest(num_keys);
    const SequenceNumber num_writes = 1 + rnd.Uniform(30);
    for (SequenceNumber seq = 1; seq <= num_writes; ++seq) {
      const int begin = static_cast<int>(rnd.Uniform(num_keys));
      const bool is_range = rnd.OneIn(3);
      const int end =
          is_range ? begin + 1 + static_cast<int>(rnd.Uniform(num_keys - begin))
                   : begin + 1;
      size_t oldest = num_tables - 1;
      for (int key = begin; key < end; ++key) {
        oldest = std::min(oldest, oldest_allowed[key]);
      }
      const size_t table =
          oldest - std::min<size_t>(oldest, rnd.OneIn(2) ? 0 : rnd.Uniform(3));
      for (int key = begin; key < end; ++key) {
        oldest_allowed[key] = table;
        newest[key] = is_range ? std::nullopt : std::make_optional(seq);
      }
      const std::string first(1, static_cast<char>('a' + begin));
      if (is_range) {
        tables[table].ranges.push_back(
            {first, std::string(1, static_cast<char>('a' + end)), seq});
      } else {
        tables[table].points.push_back({first, seq});
      }
    }
    for (size_t i = num_tables; i > 1; --i) {
      std::swap(tables[i - 1], tables[rnd.Uniform(static_cast<int>(i))]);
    }
    OrderOf(tables);
    ASSERT_EQ(order_.size(), num_tables);
    // Reads as RocksDB does.
    for (int key = 0; key < num_keys; ++key) {
      const std::string user_key(1, static_cast<char>('a' + key));
      std::optional<SequenceNumber> found;
      bool is_found = false;
      for (size_t i = 0; i < num_tables && !is_found; ++i) {
        const Table& table = tables[order_[i]];
        SequenceNumber covered = 0;
        for (const Range& range : table.ranges) {
          if (range.begin <= user_key && user_key < range.end) {
            covered = std::max(covered, range.seq);
          }
        }
        SequenceNumber seq = 0;
        for (const Point& point : table.points) {
          if (point.key == user_key) {
            seq = std::max(seq, point.seq);
          }
        }
        is_found = covered > 0 || seq > 0;
        if (seq > covered) {
          found = seq;
        }
      }
      ASSERT_EQ(found, newest[key]) << "key " << user_key;
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
