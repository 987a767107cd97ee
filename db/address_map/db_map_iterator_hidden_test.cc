//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Iterators of a column family with an address map that come upon hidden
// entries, whose values may have been freed.

#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "db/address_map/address_map_store.h"
#include "port/stack_trace.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/table.h"
#include "test_util/strata/map_iterator_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"

// The file system calls this before it reads asynchronously.
extern "C" bool RocksDbIOUringEnable() { return true; }

namespace ROCKSDB_NAMESPACE {

class DBMapIteratorHiddenTest : public MapIteratorDBTestBase {
 public:
  DBMapIteratorHiddenTest()
      : MapIteratorDBTestBase("db_map_iterator_hidden_test") {}
};

// A reader that ignores range deletions may or may not see the deleted keys,
// with their old values, because the values may have been freed. It sees all
// other keys as other readers do.
TEST_F(DBMapIteratorHiddenTest, IgnoredRangeDeletionsHideNoOtherValue) {
  constexpr int kKeys = 60;
  DestroyAndReopen(MapOptions());
  PutAndFlush(kKeys);
  ASSERT_OK(db_->DeleteRange(WriteOptions(), Key(20), Key(40)));
  Contents model;
  for (int i = 0; i < kKeys; ++i) {
    if (i < 20 || i >= 40) {
      model[Key(i)] = Value(i);
    }
  }
  for (int step = 0; step < 6; ++step) {
    SCOPED_TRACE(step);
    for (const size_t prefetch : {size_t{0}, size_t{7}, kAuto}) {
      ReadOptions read_options;
      read_options.ignore_range_deletions = true;
      read_options.blob_prefetch_count = prefetch;
      const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      Contents found;
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        found[iter->key().ToString()] = iter->value().ToString();
      }
      ASSERT_OK(iter->status());
      for (int i = 0; i < kKeys; ++i) {
        const auto live = model.find(Key(i));
        const auto seen = found.find(Key(i));
        if (live != model.end()) {
          ASSERT_TRUE(seen != found.end()) << i;
          EXPECT_EQ(seen->second, live->second);
        } else if (seen != found.end()) {
          EXPECT_EQ(seen->second, Value(i));
        }
      }
      if (step == 0) {
        // No value has been removed yet.
        EXPECT_EQ(found.size(), kKeys);
      } else if (step == 5) {
        EXPECT_EQ(found.size(), model.size());
      }
      Contents backwards;
      for (iter->SeekToLast(); iter->Valid(); iter->Prev()) {
        backwards[iter->key().ToString()] = iter->value().ToString();
      }
      ASSERT_OK(iter->status());
      EXPECT_EQ(backwards, found);
      const std::unique_ptr<Iterator> other(db_->NewIterator(ReadOptions()));
      std::string expected;
      for (const auto& [key, value] : model) {
        expected += key + "=" + value + ";";
      }
      EXPECT_EQ(Scan(other.get()), expected);
    }
    switch (step) {
      case 0:
        ASSERT_OK(Flush());
        break;
      case 1:
        for (int i = 30; i < 35; ++i) {
          model[Key(i)] = Value(1000 + i);
          ASSERT_OK(Put(Key(i), model[Key(i)]));
        }
        break;
      case 2:
        ASSERT_OK(Flush());
        break;
      case 3:
        MoveFilesToLevel(1);
        break;
      default:
        ASSERT_OK(ForceCompaction());
    }
    WaitForJobs();
    ASSERT_FALSE(HasFatalFailure());
  }
}

// A tailing iterator uses the prefix extractor of the newest SuperVersion, also
// if there was none when it was made. The filter of the newest file excludes
// the prefix of the seek, so the iterator meets an entry that this file hides.
TEST_F(DBMapIteratorHiddenTest, TailingIteratorMeetsALaterExtractor) {
  for (const bool total_order : {false, true}) {
    SCOPED_TRACE(total_order);
    Options options = MapOptions();
    BlockBasedTableOptions table;
    table.filter_policy.reset(NewBloomFilterPolicy(20));
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    DestroyAndReopen(options);
    ASSERT_OK(Put("pp1", Value(1)));
    ASSERT_OK(Put("qq1", Value(1)));
    ASSERT_OK(Flush());
    WaitForJobs();
    ReadOptions read_options;
    read_options.tailing = true;
    read_options.total_order_seek = total_order;
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    ASSERT_OK(db_->SetOptions({{"prefix_extractor", "fixed:1"}}));
    ASSERT_OK(Put("qq1", Value(2)));
    ASSERT_OK(Flush());
    iter->Seek("pp");
    ASSERT_TRUE(iter->Valid()) << iter->status().ToString();
    EXPECT_EQ(iter->key(), "pp1");
    EXPECT_EQ(iter->value(), Value(1));
    // The old value of the other key is freed. No SuperVersion follows to which
    // the iterator would move on.
    const uint64_t super_version = Family()->GetSuperVersionNumber();
    WaitForJobs();
    ASSERT_EQ(Blobs()->NumBlockedRemovals(), 0u);
    CheckMap(2);
    ASSERT_EQ(Family()->GetSuperVersionNumber(), super_version);
    iter->Next();
    EXPECT_OK(iter->status());
    ASSERT_EQ(iter->Valid(), total_order);
    if (total_order) {
      EXPECT_EQ(iter->key(), "qq1");
      EXPECT_EQ(iter->value(), Value(2));
    }
  }
}

// Outside the prefix of the seek, the iterator excludes files whose filters do
// not have that prefix. So it may find entries that are hidden by an excluded
// file, and whose values were freed.
class MapIteratorPrefixTest : public DBMapIteratorHiddenTest {
 public:
  static constexpr int kKeys = 4;
  static constexpr size_t kPrefixSize = 3;

  static std::string KeyOf(char prefix, int i) {
    return std::string(kPrefixSize, prefix) + std::to_string(i);
  }
  static std::string OldValue(char prefix, int i) {
    return KeyOf(prefix, i) + std::string(100, 'o');
  }

  Options PrefixOptions() const {
    Options options = MapOptions();
    options.prefix_extractor.reset(NewFixedPrefixTransform(kPrefixSize));
    BlockBasedTableOptions table;
    table.filter_policy.reset(NewBloomFilterPolicy(20));
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    return options;
  }

  // Writes three files. From newest to oldest they have: prefix c; prefix a;
  // prefixes a to d.
  void Write(const std::function<void(int)>& hide) {
    DestroyAndReopen(PrefixOptions());
    for (char prefix = 'a'; prefix <= 'd'; ++prefix) {
      for (int i = 0; i < kKeys; ++i) {
        ASSERT_OK(Put(KeyOf(prefix, i), OldValue(prefix, i)));
        model_[KeyOf(prefix, i)] = OldValue(prefix, i);
      }
    }
    ASSERT_OK(Flush());
    ASSERT_OK(Put(KeyOf('a', 0), OldValue('a', 0)));
    ASSERT_OK(Flush());
    for (int i = 0; i < kKeys; ++i) {
      hide(i);
    }
    ASSERT_OK(Flush());
    WaitForJobs();
  }

  // Checks that the value is one that the key has had.
  void Look(Iterator* iter) {
    ASSERT_TRUE(iter->Valid()) << iter->status().ToString();
    ASSERT_TRUE(iter->PrepareValue()) << iter->status().ToString();
    const std::string key = iter->key().ToString();
    if (iter->value() != Slice(OldValue(key[0], key[3] - '0'))) {
      EXPECT_EQ(iter->value(), model_[key]) << key;
    }
  }

  std::map<std::string, std::string> model_;
};

TEST_F(MapIteratorPrefixTest, HiddenKeysOutsideThePrefixCauseNoError) {
  for (const bool overwrite : {true, false}) {
    SCOPED_TRACE(overwrite);
    Write([&](int i) {
      if (overwrite) {
        model_[KeyOf('c', i)] = "new" + OldValue('c', i);
        ASSERT_OK(Put(KeyOf('c', i), model_[KeyOf('c', i)]));
      } else {
        model_.erase(KeyOf('c', i));
        ASSERT_OK(Delete(KeyOf('c', i)));
      }
    });
    ASSERT_FALSE(HasFatalFailure());
    for (int kind = 0; kind < 6; ++kind) {
      SCOPED_TRACE(kind);
      ReadOptions read_options;
      read_options.blob_prefetch_count = kind == 1 ? 7 : kind == 2 ? kAuto : 0;
      read_options.pin_data = kind == 3;
      read_options.tailing = kind == 4;
      read_options.allow_unprepared_value = kind == 5;
      std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      const auto see_all = [&](const std::string& from) {
        iter->Seek(from);
        for (; iter->Valid(); iter->Next()) {
          Look(iter.get());
          ASSERT_FALSE(HasFatalFailure());
        }
        ASSERT_OK(iter->status());
      };
      for (const char* from :
           {"aaa", "aaa3", "aaa5", "bbb", "bbb5", "ccc", "a"}) {
        SCOPED_TRACE(from);
        if (read_options.tailing && strlen(from) < kPrefixSize) {
          continue;  // ForwardIterator requires a prefix
        }
        see_all(from);
        ASSERT_FALSE(HasFatalFailure());
      }
      // Inside the prefix the results are exact.
      for (const char prefix : {'a', 'b', 'c', 'd'}) {
        std::string seen;
        std::string expected;
        if (read_options.tailing) {
          // ForwardIterator does not return to a file whose filter has excluded
          // one prefix.
          iter.reset(db_->NewIterator(read_options));
        }
        for (iter->Seek(KeyOf(prefix, 0));
             iter->Valid() && iter->key()[0] == prefix; iter->Next()) {
          Look(iter.get());
          ASSERT_FALSE(HasFatalFailure());
          seen += iter->key().ToString() + ";";
        }
        ASSERT_OK(iter->status());
        for (const auto& [key, value] : model_) {
          expected += key[0] == prefix ? key + ";" : "";
        }
        EXPECT_EQ(seen, expected);
      }
      if (read_options.tailing) {
        continue;
      }
      for (const char* from : {"ddd", "ddd3", "ccc9", "bbb3", "bbb"}) {
        SCOPED_TRACE(from);
        iter->SeekForPrev(from);
        for (; iter->Valid(); iter->Prev()) {
          Look(iter.get());
          ASSERT_FALSE(HasFatalFailure());
        }
        ASSERT_OK(iter->status());
        // Moves forward and backward.
        iter->Seek(from);
        for (int step = 0; step < 40 && iter->Valid(); ++step) {
          Look(iter.get());
          ASSERT_FALSE(HasFatalFailure());
          if (step % 5 < 3) {
            iter->Prev();
          } else {
            iter->Next();
          }
        }
        ASSERT_OK(iter->status());
      }
      iter->SeekToFirst();
      std::string all;
      for (; iter->Valid(); iter->Next()) {
        Look(iter.get());
        ASSERT_FALSE(HasFatalFailure());
        all += iter->key().ToString() + "=" + iter->value().ToString() + ";";
      }
      ASSERT_OK(iter->status());
      std::string expected;
      for (const auto& [key, value] : model_) {
        expected += key + "=" + value + ";";
      }
      EXPECT_EQ(all, expected);
    }
  }
}

// RocksDB takes a key that is shorter than the prefix for one that has it, and
// may return an older value of it.
TEST_F(MapIteratorPrefixTest, HiddenShortKeyCausesNoError) {
  for (const bool changes_extractor : {false, true}) {
    for (const bool overwrites : {false, true}) {
      SCOPED_TRACE(testing::Message() << changes_extractor << overwrites);
      DestroyAndReopen(PrefixOptions());
      ASSERT_OK(Put("ab\xffz", Value(1)));
      ASSERT_OK(Put("ac", Value(2)));
      ASSERT_OK(Flush());
      ASSERT_OK(Put("zzz", Value(3)));
      ASSERT_OK(overwrites ? Put("ac", Value(4)) : Delete("ac"));
      ASSERT_OK(Flush());
      WaitForJobs();
      if (changes_extractor) {
        ASSERT_OK(dbfull()->SetOptions({{"prefix_extractor", "fixed:1"}}));
      }

      const std::string upper("ac\0", 3);
      const Slice bound(upper);
      ReadOptions read_options;
      read_options.auto_prefix_mode = !changes_extractor;
      read_options.iterate_upper_bound = &bound;
      const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      iter->Seek("ab\xff");
      ASSERT_TRUE(iter->Valid()) << iter->status().ToString();
      EXPECT_EQ(iter->value(), Value(1));
      // The file that hides the old value was left out.
      iter->Next();
      EXPECT_FALSE(iter->Valid());
      EXPECT_OK(iter->status());

      // Without filters, and in other ranges, the newest value is there.
      read_options.auto_prefix_mode = false;
      read_options.total_order_seek = true;
      const std::unique_ptr<Iterator> all(db_->NewIterator(read_options));
      all->Seek("ac");
      EXPECT_EQ(all->Valid(), overwrites);
      EXPECT_OK(all->status());
    }
  }
}

// The value is freed between the lookup that finds it and the read.
TEST_F(MapIteratorPrefixTest, FoundValueIsReadAfterItIsFreed) {
  for (const bool backward : {false, true}) {
    for (int kind = 0; kind < 4; ++kind) {
      SCOPED_TRACE(kind);
      const Snapshot* snapshot = nullptr;
      Write([&](int i) {
        if (snapshot == nullptr) {
          snapshot = db_->GetSnapshot();
        }
        ASSERT_OK(Delete(KeyOf('c', i)));
      });
      ASSERT_FALSE(HasFatalFailure());
      ReadOptions read_options;
      read_options.allow_unprepared_value = kind == 0;
      read_options.pin_data = kind == 1;
      read_options.blob_prefetch_count = kind == 2 ? 7 : 0;
      read_options.tailing = kind == 3;
      if (read_options.tailing && backward) {
        db_->ReleaseSnapshot(snapshot);
        continue;
      }
      const std::string key = KeyOf('c', backward ? kKeys - 1 : 0);
      // A tailing iterator also keeps the entries before it.
      int to_pass = read_options.tailing ? kKeys : 0;
      bool released = false;
      const auto release = [&](void* /*arg*/) {
        if (to_pass > 0) {
          --to_pass;
        } else if (!released) {
          released = true;
          db_->ReleaseSnapshot(snapshot);
          WaitForJobs();
          EXPECT_FALSE(Blobs()
                           ->map()
                           ->FindDirect(Blobs()->HashOf(key), /*pin=*/false)
                           .found);
        }
      };
      const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      if (!read_options.allow_unprepared_value) {
        // Other iterators read at once, so the value is freed between their two
        // lookups.
        EnableCallBack("MapValueIterator::OnDead:Kept", release);
      }
      if (backward) {
        iter->SeekForPrev(KeyOf('d', 0));
        ASSERT_TRUE(iter->Valid());
        iter->Prev();
      } else {
        iter->Seek(KeyOf('b', 0));
        for (int i = 0; i < kKeys; ++i) {
          ASSERT_TRUE(iter->Valid());
          iter->Next();
        }
      }
      DisableCallBacks();
      if (read_options.allow_unprepared_value) {
        release(nullptr);
      }
      EXPECT_TRUE(released);
      Look(iter.get());
      ASSERT_FALSE(HasFatalFailure());
      EXPECT_EQ(iter->key(), key);
      while (iter->Valid()) {
        Look(iter.get());
        ASSERT_FALSE(HasFatalFailure());
        backward ? iter->Prev() : iter->Next();
      }
      ASSERT_OK(iter->status());
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
