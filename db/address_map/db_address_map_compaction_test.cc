//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Compactions of databases with enable_blob_address_map: their results, and
// when one is due.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/db_impl/db_impl.h"
#include "db/dbformat.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapCompactionTest : public AddressMapDBTestBase {
 public:
  DBAddressMapCompactionTest()
      : AddressMapDBTestBase("db_address_map_compaction_test") {}
};

// A value that SingleDelete() has deleted is dead in the map. The compaction
// that moves values out of the map leaves it out, as a tombstone in its place
// would break the contract of SingleDelete().
TEST_F(DBAddressMapCompactionTest, DeadValueGoesOutOfTheMapWithoutATombstone) {
  // The dead values are between others, next to each other, and at the end.
  constexpr int kNumKeys = 40;
  const auto is_dead = [](int i) { return i % 7 == 0 || (i > 10 && i < 20); };
  for (const bool merges : {false, true}) {
    SCOPED_TRACE(merges);
    Options options = MapOptions();
    options.num_levels = 4;
    options.max_bgerror_resume_count = 0;
    DestroyAndReopen(options);
    for (int i = 0; i < kNumKeys; ++i) {
      ASSERT_OK(Put(Key(i), Value(i)));
      if (merges && !is_dead(i)) {
        ASSERT_OK(Merge(Key(i), "m"));
      }
    }
    ASSERT_OK(Put(Key(kNumKeys), Value(kNumKeys)));
    ASSERT_OK(Flush());
    ASSERT_OK(CompactInto(0, 3));
    for (int i = 0; i <= kNumKeys; ++i) {
      if (is_dead(i) || i == kNumKeys) {
        ASSERT_OK(SingleDelete(Key(i)));
      }
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    options.enable_blob_address_map = false;
    Reopen(options);
    const auto check = [&] {
      for (int i = 0; i <= kNumKeys; ++i) {
        EXPECT_EQ(Get(Key(i)), is_dead(i) || i == kNumKeys ? "NOT_FOUND"
                               : merges                    ? Value(i) + ",m"
                                                           : Value(i));
      }
    };
    // Not with the file of the deletions.
    ASSERT_OK(CompactInto(3, 3));
    check();
    ASSERT_OK(ForceCompaction());
    check();
    ASSERT_OK(Put(Key(0), "new"));
    ASSERT_OK(Flush());
    EXPECT_EQ(Get(Key(0)), "new");
    Close();
  }
}

// With an address map a compaction writes tombstones for the keys that a filter
// skips, as older versions of them are dead in the map. SingleDelete() may meet
// such a tombstone.
TEST_F(DBAddressMapCompactionTest, SingleDeleteMayMeetASkippedValue) {
  class Skipper : public CompactionFilter {
   public:
    Decision FilterV2(int, const Slice& key, ValueType, const Slice&,
                      std::string*, std::string* skip_until) const override {
      if (key != "k") {
        return Decision::kKeep;
      }
      *skip_until = "l";
      return Decision::kRemoveAndSkipUntil;
    }
    const char* Name() const override { return "Skipper"; }
  };
  const Skipper skipper;
  Options options = MapOptions();
  options.num_levels = 4;
  options.max_bgerror_resume_count = 0;
  options.compaction_filter = &skipper;
  DestroyAndReopen(options);
  // So that the tombstone is kept.
  ASSERT_OK(Put("j", Value(1)));
  ASSERT_OK(Put("m", Value(2)));
  ASSERT_OK(Flush());
  ASSERT_OK(CompactInto(0, 3));
  ASSERT_OK(Put("k", Value(3)));
  ASSERT_OK(Flush());
  ASSERT_OK(CompactInto(0, 1));
  ASSERT_OK(SingleDelete("k"));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), "NOT_FOUND");
  ASSERT_OK(ForceCompaction());
  EXPECT_EQ(Get("k"), "NOT_FOUND");
  EXPECT_EQ(Get("j"), Value(1));
  ASSERT_OK(Put("b", Value(4)));
  Close();
}

// A range that a filter skips includes values of TimedPut(), about which
// filters are not asked.
TEST_F(DBAddressMapCompactionTest, SkippedRangeIncludesTimedPuts) {
  class Skipper : public CompactionFilter {
   public:
    Decision FilterV2(int, const Slice& key, ValueType, const Slice&,
                      std::string*, std::string* skip_until) const override {
      if (key != "a") {
        return Decision::kKeep;
      }
      *skip_until = "z";
      return Decision::kRemoveAndSkipUntil;
    }
    const char* Name() const override { return "Skipper"; }
  };
  const Skipper skipper;
  Options options = MapOptions();
  // Flushes keep the times as sequence numbers.
  options.preserve_internal_time_seconds = 10000;
  options.compaction_filter = &skipper;
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", Value(1)));
  ASSERT_OK(TimedPut("b", Value(2), /*write_unix_time=*/1));
  ASSERT_OK(Put("c", Value(3)));
  ASSERT_OK(TimedPut("z", Value(4), /*write_unix_time=*/1));
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("b"), Value(2));
  std::atomic<int> num_timed{0};
  EnableCallBack("CompactionIterator:ProcessKV", [&](void* entry) {
    if (static_cast<ParsedInternalKey*>(entry)->type ==
        kTypeValuePreferredSeqno) {
      ++num_timed;
    }
  });
  Compact();
  DisableCallBacks();
  EXPECT_LE(2, num_timed);
  for (const char* key : {"a", "b", "c"}) {
    EXPECT_EQ(Get(key), "NOT_FOUND") << key;
  }
  EXPECT_EQ(Get("z"), Value(4));
}

TEST_F(DBAddressMapCompactionTest, CompactionFilterActsOnMappedValues) {
  Options options = MapOptions();
  options.min_blob_size = 20;
  ActingFilter filter;
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  const std::vector<std::string> keys = {"change1", "keep1",  "operand1",
                                         "remove1", "short1", "skip1",
                                         "skip3",   "skip5"};
  for (const std::string& key : keys) {
    ASSERT_OK(Put(key, Value(1)));
  }
  ASSERT_OK(Flush());
  ASSERT_OK(db_->Merge(WriteOptions(), "operand1", "m"));
  ASSERT_OK(Flush());
  std::unique_ptr<Iterator> old(db_->NewIterator(ReadOptions()));
  std::string before;
  for (const std::string& key : keys) {
    before += key + "=" + Value(1) + (key == "operand1" ? ",m" : "") + ";";
  }
  EXPECT_EQ(Scan(old.get()), before);
  ASSERT_OK(ForceCompaction());
  // The iterator's Version still has the values that the filter has removed.
  EXPECT_EQ(Scan(old.get()), before);
  const std::string after = "change1=changed " + Value(1) +
                            ";keep1=" + Value(1) + ";operand1=" + Value(1) +
                            ";short1=s;skip5=" + Value(1) + ";";
  for (int step = 0; step < 2; ++step) {
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    if (step == 0) {
      // The old iterator does not keep the value for others: jobs respect its
      // implicit snapshot like a snapshot, and filters ignore snapshots.
      EXPECT_EQ(Scan(iter.get()).find("remove"), std::string::npos);
    }
    EXPECT_EQ(Get("remove1"), "NOT_FOUND");
    EXPECT_EQ(Get("skip3"), "NOT_FOUND");
    EXPECT_EQ(Get("short1"), "s");
    EXPECT_EQ(Get("change1"), "changed " + Value(1));
    iter.reset();
    old.reset();
    Compact();
  }
  EXPECT_GT(filter.operands, 0);
  Reopen(options);
  EXPECT_EQ(Get("remove1"), "NOT_FOUND");
  EXPECT_EQ(Get("short1"), "s");
}

// The base of a merge result, which is inline or mapped, is still found by the
// key. Reads between the installation of the compaction and its settlement must
// not return the base.
TEST_F(DBAddressMapCompactionTest, MergeResultIsNotReplacedByItsBase) {
  for (const bool is_inline : {false, true}) {
    for (const bool range_deleted : {false, true}) {
      SCOPED_TRACE(std::to_string(is_inline) + std::to_string(range_deleted));
      Options options = MapOptions(/*min_blob_size=*/50);
      // The result of a merge is the last operand.
      options.merge_operator = MergeOperators::CreatePutOperator();
      // Bypass filters leave direct entries out.
      BlockBasedTableOptions table_options;
      table_options.filter_policy.reset(NewBloomFilterPolicy(10));
      options.table_factory.reset(NewBlockBasedTableFactory(table_options));
      DestroyAndReopen(options);
      ASSERT_OK(Put("k", Value(1)));
      ASSERT_OK(Flush());
      ASSERT_TRUE(IsDirect("k"));
      if (range_deleted) {
        ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                                   "a", "z"));
      }
      const std::string result = is_inline ? "short" : Value(2);
      ASSERT_OK(db_->Merge(WriteOptions(), "k", result));
      ASSERT_OK(Flush());
      std::string got;
      EnableCallBack("CompactionMapping::Settle",
                     [&](void*) { got = Get("k"); });
      Compact();
      DisableCallBacks();
      EXPECT_EQ(got, result);
      EXPECT_EQ(Get("k"), result);
      CheckMap(is_inline ? 0 : 1);
    }
  }
}

// A compaction leaves a value versioned while the key has an inline value in a
// lower level, which the key alone would have to hide.
TEST_F(DBAddressMapCompactionTest, ValueStaysVersionedAboveALowerLevel) {
  for (const int lower : {2, 3}) {
    SCOPED_TRACE(lower);
    DestroyAndReopen(MapOptions(/*min_blob_size=*/50));
    ASSERT_OK(Put("k", "inline"));
    ASSERT_OK(Flush());
    MoveFilesToLevel(lower);
    for (const char* other : {"a", "z"}) {
      ASSERT_OK(Put("k", Value(1)));
      ASSERT_OK(Put(other, Value(2)));
      ASSERT_OK(Flush());
    }
    EXPECT_FALSE(IsDirect("k"));
    ASSERT_OK(dbfull()->TEST_CompactRange(/*level=*/0, nullptr, nullptr));
    WaitForJobs();
    EXPECT_EQ(FilesPerLevel(), lower == 2 ? "0,1,1" : "0,1,0,1");
    EXPECT_FALSE(IsDirect("k"));
    EXPECT_EQ(MappedStats().num_direct, 2u);
    EXPECT_EQ(Get("k"), Value(1));
    // The last compaction removes the inline value.
    Compact();
    EXPECT_TRUE(IsDirect("k"));
    EXPECT_EQ(Get("k"), Value(1));
  }
}

// The same holds for an older file of level 0 that is not an input.
TEST_F(DBAddressMapCompactionTest, ValueStaysVersionedAboveAFileOfLevel0) {
  Options options = MapOptions(/*min_blob_size=*/50);
  options.compaction_style = kCompactionStyleUniversal;
  options.num_levels = 1;
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", "inline"));
  ASSERT_OK(Flush());
  const uint64_t oldest = Family()->current()->version_set()->LastSequence();
  for (const char* other : {"a", "z"}) {
    ASSERT_OK(Put("k", Value(1)));
    ASSERT_OK(Put(other, Value(2)));
    ASSERT_OK(Flush());
  }
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  std::vector<std::string> inputs;
  for (const SstFileMetaData& file : metadata.levels[0].files) {
    if (file.smallest_seqno > oldest) {
      inputs.push_back(file.name);
    }
  }
  ASSERT_EQ(inputs.size(), 2u);
  ASSERT_OK(db_->CompactFiles(CompactionOptions(), inputs, /*output_level=*/0));
  WaitForJobs();
  EXPECT_EQ(FilesPerLevel(), "2");
  EXPECT_FALSE(IsDirect("k"));
  EXPECT_EQ(MappedStats().num_direct, 2u);
  EXPECT_EQ(Get("k"), Value(1));
}

// With the bypass off, compactions make the entries of SST files versioned, so
// that the files can be read without the map's help for keys.
TEST_F(DBAddressMapCompactionTest, NoEntryStaysDirectWithoutTheBypass) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  WaitForJobs();
  EXPECT_EQ(MappedStats().num_direct, 1u);
  options.enable_lsm_bypass = false;
  Reopen(options);
  EXPECT_EQ(MappedStats().num_direct, 1u);
  Compact();
  EXPECT_EQ(MappedStats().num_direct, 0u);
  EXPECT_EQ(MappedStats().num_mapped, 1u);
  EXPECT_EQ(Get("k"), Value(1));
}

// After the release of the last snapshot the files are compacted to benefit
// from it, but not endlessly.
TEST_F(DBAddressMapCompactionTest, NoEndlessCompactions) {
  Options options = MapOptions();
  options.disable_auto_compactions = false;
  options.num_levels = 3;
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", "a"));
  const Snapshot* const first = db_->GetSnapshot();
  ASSERT_OK(db_->Merge(WriteOptions(), "k", "b"));
  ASSERT_OK(Put("l", "x"));
  ASSERT_OK(Flush());
  Compact();
  const Snapshot* const second = db_->GetSnapshot();
  ASSERT_OK(Put("k", "c"));
  ASSERT_OK(Flush());
  db_->ReleaseSnapshot(first);
  db_->ReleaseSnapshot(second);
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  WaitForJobs();
  iter.reset();
  ASSERT_OK(dbfull()->WaitForCompact(WaitForCompactOptions()));
  WaitForJobs();
  // Marking the files again finds no file that another compaction would change.
  const uint64_t before = Ticker(COMPACT_READ_BYTES);
  for (int i = 0; i < 5; ++i) {
    db_->ReleaseSnapshot(db_->GetSnapshot());
    iter.reset(db_->NewIterator(ReadOptions()));
    iter.reset();
    ASSERT_OK(dbfull()->WaitForCompact(WaitForCompactOptions()));
    WaitForJobs();
  }
  EXPECT_EQ(Ticker(COMPACT_READ_BYTES), before);
  EXPECT_EQ(Get("k"), "c");
}

// The base of operands in the last level is no longer in the map, since an
// entry above hides it. The operands cannot be merged before that entry comes
// down, and are in a file of their own, without mapped entries.
TEST_F(DBAddressMapCompactionTest, NoEndlessCompactionsOfHiddenOperands) {
  class Counter : public EventListener {
   public:
    void OnCompactionCompleted(DB* /*db*/,
                               const CompactionJobInfo& /*info*/) override {
      ++count;
    }
    std::atomic<int> count{0};
  };
  const auto counter = std::make_shared<Counter>();
  Options options = MapOptions(/*min_blob_size=*/50);
  options.merge_operator = MergeOperators::CreatePutOperator();
  options.num_levels = 4;
  options.target_file_size_base = 1024;
  BlockBasedTableOptions table_options;
  table_options.block_size = 128;
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  options.compression = kNoCompression;
  options.listeners = {counter};
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  const Snapshot* const first = db_->GetSnapshot();
  ASSERT_OK(Merge("k", std::string(3000, 'a')));
  const Snapshot* const second = db_->GetSnapshot();
  ASSERT_OK(Merge("k", std::string(3000, 'b')));
  ASSERT_OK(Flush());
  CompactRangeOptions to_last;
  to_last.change_level = true;
  to_last.target_level = 3;
  to_last.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(to_last, nullptr, nullptr));
  ASSERT_EQ(NumTableFilesAtLevel(3), 2);
  ASSERT_OK(Put("k", "hides"));
  ASSERT_OK(Flush());
  ASSERT_OK(CompactInto(0, 2));
  db_->ReleaseSnapshot(first);
  db_->ReleaseSnapshot(second);
  WaitForJobs();
  counter->count = 0;
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "false"}}));
  // An endless loop has hundreds of compactions in this time.
  env_->SleepForMicroseconds(300 * 1000);
  ASSERT_OK(db_->SetOptions({{"disable_auto_compactions", "true"}}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_LE(counter->count, 5);
  EXPECT_EQ(Get("k"), "hides");
  // The operands go when the entry comes down.
  ASSERT_OK(CompactInto(2, 3));
  EXPECT_EQ(NumTableFilesAtLevel(3), 1);
  EXPECT_EQ(Get("k"), "hides");
}

// Files of level 0 that wait for more files of their size do not count as
// compaction debt. Otherwise writes would stop forever, because no compaction
// is due.
TEST_F(DBAddressMapCompactionTest, WaitingLevel0FilesAreNoCompactionDebt) {
  Options options = MapOptions();
  options.disable_auto_compactions = false;
  options.level0_file_num_compaction_trigger = 4;
  options.soft_pending_compaction_bytes_limit = 1;
  options.hard_pending_compaction_bytes_limit = 1;
  DestroyAndReopen(options);
  const auto fill = [&](int num_keys) {
    for (int i = 0; i < num_keys; ++i) {
      ASSERT_OK(Put(Key(i), "value"));
    }
    ASSERT_OK(Flush());
  };
  fill(10000);
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  for (const int num_keys : {2000, 400, 80, 8}) {
    fill(num_keys);
  }
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  ASSERT_EQ(NumTableFilesAtLevel(0), 4);
  uint64_t value = 0;
  ASSERT_TRUE(db_->GetIntProperty(
      DB::Properties::kEstimatePendingCompactionBytes, &value));
  EXPECT_EQ(value, 0);
  ASSERT_TRUE(db_->GetIntProperty(DB::Properties::kIsWriteStopped, &value));
  EXPECT_EQ(value, 0);
  // A merge that is due is done.
  for (int i = 0; i < 3; ++i) {
    fill(8);
  }
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_EQ(NumTableFilesAtLevel(0), 4);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
