//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_ascending_lookup.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_file_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/perf_level.h"
#include "rocksdb/table_properties.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::Operand;

class DeltaAscendingLookupTest : public delta_test::DeltaFileTestBase {
 protected:
  static std::string Key(uint32_t i) {
    return "key" + std::to_string(100000 + i);
  }

  void AddFile(const std::vector<Operand>& operands) {
    readers_.push_back(MustOpen(WriteOperands(operands)));
    for (const Operand& operand : operands) {
      entries_.emplace_back(operand.key, operand.seq);
    }
  }

  SequenceNumber Expected(const std::string& key, SequenceNumber seq) const {
    SequenceNumber newest = 0;
    for (const auto& [entry_key, entry_seq] : entries_) {
      if (entry_key == key && entry_seq <= seq) {
        newest = std::max(newest, entry_seq);
      }
    }
    return newest;
  }
  // Returns "" if there is no such key.
  std::string NextAfter(const std::string& key) const {
    std::string next;
    for (const auto& [entry_key, entry_seq] : entries_) {
      if (entry_key > key && (next.empty() || entry_key < next)) {
        next = entry_key;
      }
    }
    return next;
  }

  std::unique_ptr<DeltaAscendingLookup> NewLookup() const {
    std::vector<const DeltaFileReader*> readers;
    for (const auto& reader : readers_) {
      readers.push_back(reader.get());
    }
    return std::make_unique<DeltaAscendingLookup>(
        &tables_->settings()->family->ioptions.internal_comparator,
        std::move(readers));
  }

  // keys: sorted.
  void Check(const std::vector<std::pair<std::string, SequenceNumber>>& keys) {
    const auto lookup = NewLookup();
    for (const auto& [key, seq] : keys) {
      SequenceNumber newest = 1;
      ASSERT_OK(lookup->FindNewest(key, seq, &newest));
      ASSERT_EQ(Expected(key, seq), newest) << key << " " << seq;
      const std::string next = NextAfter(key);
      Slice promised;
      if (lookup->GetNextKey(&promised) && !next.empty()) {
        ASSERT_LE(promised.ToString(), next) << key;
      }
      if (lookup->IsAtEnd()) {
        ASSERT_EQ("", next) << key;
      }
    }
  }

  std::vector<std::unique_ptr<DeltaFileReader>> readers_;
  std::vector<std::pair<std::string, SequenceNumber>> entries_;
};

TEST_F(DeltaAscendingLookupTest, WithoutFilesNothingIsFound) {
  const auto lookup = NewLookup();
  EXPECT_TRUE(lookup->IsAtEnd());
  Slice next;
  EXPECT_FALSE(lookup->GetNextKey(&next));
  SequenceNumber newest = 1;
  ASSERT_OK(lookup->FindNewest("a", 5, &newest));
  EXPECT_EQ(0, newest);
}

TEST_F(DeltaAscendingLookupTest, FindsTheNewestUpToASequenceNumber) {
  AddFile({{"b", 9, "1"}, {"b", 5, "1"}, {"d", 7, "1"}});
  AddFile({{"b", 6, "1"}, {"c", 3, "1"}});
  for (const SequenceNumber seq : {0, 4, 5, 6, 8, 9, 10}) {
    Check({{"a", seq}, {"b", seq}, {"c", seq}, {"d", seq}, {"e", seq}});
  }
  const auto lookup = NewLookup();
  Slice next;
  ASSERT_TRUE(lookup->GetNextKey(&next));
  EXPECT_EQ("b", next.ToString());
  SequenceNumber newest = 0;
  ASSERT_OK(lookup->FindNewest("bb", 10, &newest));
  EXPECT_EQ(0, newest);
  ASSERT_TRUE(lookup->GetNextKey(&next));
  EXPECT_EQ("c", next.ToString());
  EXPECT_FALSE(lookup->IsAtEnd());
  ASSERT_OK(lookup->FindNewest("x", 10, &newest));
  EXPECT_TRUE(lookup->IsAtEnd());
  EXPECT_FALSE(lookup->GetNextKey(&next));
}

// The lookup finds point anchors and ignores range anchors.
TEST_F(DeltaAscendingLookupTest, FindsPointAnchorsOnly) {
  readers_.push_back(
      MustOpen(WriteAnchors({{"b", 9}, {"b", 5}}, {{"a", "z", 7}})));
  readers_.push_back(MustOpen(WriteAnchors({}, {{"a", "z", 8}})));
  entries_ = {{"b", 9}, {"b", 5}};
  Check({{"a", 10}, {"b", 10}, {"c", 10}});
  Check({{"b", 8}, {"z", 8}});
}

// The answers are right for sparse and dense files and keys, whether or not
// their ranges overlap.
TEST_F(DeltaAscendingLookupTest, FindsTheNewestInRandomFiles) {
  Random rnd(301);
  for (int round = 0; round < 60; ++round) {
    readers_.clear();
    entries_.clear();
    const uint32_t num_files = rnd.Uniform(6);
    for (uint32_t i = 0; i < num_files; ++i) {
      const uint32_t begin = rnd.Uniform(400);
      const uint32_t end = begin + 1 + rnd.Uniform(400);
      const int one_in = 1 + static_cast<int>(rnd.Uniform(40));
      std::vector<Operand> operands;
      for (uint32_t k = begin; k < end; ++k) {
        if (k != begin && !rnd.OneIn(one_in)) {
          continue;
        }
        const uint32_t num = rnd.OneIn(8) ? 1 + rnd.Uniform(30) : 1;
        for (uint32_t n = 0; n < num; ++n) {
          operands.push_back({Key(k), 100 - n - rnd.Uniform(2) * 40,
                              std::string(rnd.Uniform(300), 'x')});
          if (n > 0 &&
              operands.back().seq >= operands[operands.size() - 2].seq) {
            operands.pop_back();
          }
        }
      }
      AddFile(operands);
    }
    const int one_in = 1 + static_cast<int>(rnd.Uniform(40));
    std::vector<std::pair<std::string, SequenceNumber>> keys;
    for (uint32_t k = 0; k < 850; ++k) {
      if (rnd.OneIn(one_in)) {
        keys.emplace_back(Key(k), rnd.Uniform(120));
      }
    }
    Check(keys);
  }
}

// A block is read once, however many keys are looked up.
TEST_F(DeltaAscendingLookupTest, ReadsEachBlockOnce) {
  std::vector<Operand> even;
  std::vector<Operand> odd;
  for (uint32_t i = 0; i < 4000; ++i) {
    (i % 2 == 0 ? even : odd).push_back({Key(i), 5, std::string(100, 'x')});
  }
  AddFile(even);
  AddFile(odd);
  uint64_t num_blocks = 0;
  for (const auto& reader : readers_) {
    num_blocks += reader->GetTableProperties()->num_data_blocks;
  }
  EXPECT_LT(50u, num_blocks);
  const auto lookup = NewLookup();
  SetPerfLevel(PerfLevel::kEnableCount);
  get_perf_context()->Reset();
  for (uint32_t i = 0; i < 4000; ++i) {
    SequenceNumber newest = 0;
    ASSERT_OK(lookup->FindNewest(Key(i), kMaxSequenceNumber, &newest));
    ASSERT_EQ(5, newest);
  }
  EXPECT_GE(num_blocks, get_perf_context()->block_read_count);
  // Blocks without a key that is looked up are not read.
  const auto sparse = NewLookup();
  get_perf_context()->Reset();
  for (uint32_t i = 0; i < 4000; i += 1000) {
    SequenceNumber newest = 0;
    ASSERT_OK(sparse->FindNewest(Key(i), kMaxSequenceNumber, &newest));
    ASSERT_EQ(5, newest);
  }
  EXPECT_GE(16u, get_perf_context()->block_read_count);
  SetPerfLevel(PerfLevel::kDisable);
}

TEST_F(DeltaAscendingLookupTest, DamagedBlockIsReported) {
  std::vector<Operand> operands;
  for (uint32_t i = 0; i < 1000; ++i) {
    operands.push_back({Key(i), 5, std::string(100, 'x')});
  }
  const DeltaFileDescription description = WriteOperands(operands);
  std::string contents;
  ASSERT_OK(ReadFileToString(env_.get(), FileName(description), &contents));
  contents[contents.size() / 2] ^= 1;
  ASSERT_OK(WriteStringToFile(env_.get(), contents, FileName(description)));
  readers_.push_back(MustOpen(description));
  const auto lookup = NewLookup();
  Status s;
  for (uint32_t i = 0; s.ok() && i < 1000; ++i) {
    SequenceNumber newest = 0;
    s = lookup->FindNewest(Key(i), 5, &newest);
    ASSERT_EQ(s.ok() ? 5 : 0, newest);
  }
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
