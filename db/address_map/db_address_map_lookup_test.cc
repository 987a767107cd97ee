//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Lookups beside Get() and MultiGet() in databases with
// enable_blob_address_map, and lookups with a row cache.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/address_map_data_test_util.h"
#include "test_util/strata/held_point_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapLookupTest : public AddressMapDataTestBase {
 public:
  DBAddressMapLookupTest()
      : AddressMapDataTestBase("db_address_map_lookup_test") {}
};

// ---- Other lookups of direct values.

TEST_F(DBAddressMapLookupTest, OtherLookupsFindDirectValues) {
  Options options = MapOptions();
  options.blob_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  ASSERT_TRUE(IsDirect("k"));

  // KeyMayExist() makes no reads, so it returns the value only if it is cached.
  std::string value;
  bool found = true;
  EXPECT_TRUE(db_->KeyMayExist(ReadOptions(), "k", &value, &found));
  EXPECT_FALSE(found);
  EXPECT_FALSE(db_->KeyMayExist(ReadOptions(), "absent", &value, &found));
  EXPECT_EQ(Get("k"), Value(1));
  EXPECT_TRUE(db_->KeyMayExist(ReadOptions(), "k", &value, &found));
  EXPECT_TRUE(found);
  EXPECT_EQ(value, Value(1));

  const auto entity = [&](const Snapshot* snapshot) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    PinnableWideColumns columns;
    const Status s = db_->GetEntity(read_options, Handle(), "k", &columns);
    if (!s.ok()) {
      return s.IsNotFound() ? std::string("NOT_FOUND") : s.ToString();
    }
    EXPECT_EQ(columns.columns().size(), 1);
    EXPECT_EQ(columns.columns()[0].name(), kDefaultWideColumnName);
    return columns.columns()[0].value().ToString();
  };
  const auto operands = [&](const Snapshot* snapshot) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    GetMergeOperandsOptions operands_options;
    operands_options.expected_max_number_of_operands = 5;
    std::vector<PinnableSlice> slices(5);
    int n = 0;
    std::vector<std::string> result;
    const Status s = db_->GetMergeOperands(
        read_options, Handle(), "k", slices.data(), &operands_options, &n);
    if (!s.ok()) {
      return std::vector<std::string>{s.IsNotFound() ? "NOT_FOUND"
                                                     : s.ToString()};
    }
    for (int i = 0; i < n; ++i) {
      result.push_back(slices[i].ToString());
    }
    return result;
  };
  using Strings = std::vector<std::string>;
  EXPECT_EQ(entity(nullptr), Value(1));
  EXPECT_EQ(operands(nullptr), Strings{Value(1)});

  // Reads at a snapshot when there is a newer value.
  const Snapshot* const first = db_->GetSnapshot();
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  ReadOptions at_first;
  at_first.snapshot = first;
  EXPECT_TRUE(db_->KeyMayExist(at_first, "k", &value, &found));
  if (found) {
    EXPECT_EQ(value, Value(1));
  }
  EXPECT_EQ(entity(first), Value(1));
  EXPECT_EQ(entity(nullptr), Value(2));
  EXPECT_EQ(operands(first), Strings{Value(1)});
  EXPECT_EQ(operands(nullptr), Strings{Value(2)});

  // The values are below operands.
  const Snapshot* const second = db_->GetSnapshot();
  for (const char* operand : {"a", "b"}) {
    ASSERT_OK(Merge("k", operand));
    ASSERT_OK(Flush());
  }
  EXPECT_EQ(entity(nullptr), Value(2) + ",a,b");
  EXPECT_EQ(operands(nullptr), (Strings{Value(2), "a", "b"}));
  EXPECT_EQ(operands(second), Strings{Value(2)});
  EXPECT_EQ(operands(first), Strings{Value(1)});

  // With too few slots, only the number of operands is returned.
  GetMergeOperandsOptions few;
  few.expected_max_number_of_operands = 2;
  std::vector<PinnableSlice> slices(3);
  int n = 0;
  EXPECT_TRUE(db_->GetMergeOperands(ReadOptions(), Handle(), "k", slices.data(),
                                    &few, &n)
                  .IsIncomplete());
  EXPECT_EQ(n, 3);

  // A callback decides whether the search ends. It is called for operands,
  // newest first, and not for the base.
  for (const bool go_on : {false, true}) {
    Strings seen;
    GetMergeOperandsOptions counting;
    counting.expected_max_number_of_operands = 3;
    counting.continue_cb = [&](Slice operand) {
      seen.push_back(operand.ToString());
      return go_on;
    };
    ASSERT_OK(db_->GetMergeOperands(ReadOptions(), Handle(), "k", slices.data(),
                                    &counting, &n));
    EXPECT_EQ(seen, go_on ? (Strings{"b", "a"}) : Strings{"b"});
    ASSERT_EQ(n, go_on ? 3 : 1);
    EXPECT_EQ(slices[n - 1], "b");
    if (go_on) {
      EXPECT_EQ(slices[0], Value(2));
    }
  }

  slices.clear();  // the slices may hold a Version
  db_->ReleaseSnapshot(first);
  db_->ReleaseSnapshot(second);
  Compact();
  EXPECT_EQ(entity(nullptr), Value(2) + ",a,b");
  EXPECT_EQ(operands(nullptr), Strings{Value(2) + ",a,b"});
  CheckMap(1);
  ASSERT_OK(Delete("k"));
  ASSERT_OK(Flush());
  EXPECT_EQ(entity(nullptr), "NOT_FOUND");
  EXPECT_EQ(operands(nullptr), Strings{"NOT_FOUND"});
  Compact();
  CheckMap(0);
}

// KeyMayExist() returns false only if there is no such key, also if the value
// cannot be read. The same holds for other reads without I/O, which say that
// the value is not in memory.
TEST_F(DBAddressMapLookupTest, KeysWithLostValuesMayExist) {
  for (const bool bypass : {true, false}) {
    SCOPED_TRACE(bypass);
    Options options = MapOptions();
    options.enable_lsm_bypass = bypass;
    DestroyAndReopen(options);
    ASSERT_OK(Put("lost", Value(1)));
    ASSERT_OK(Flush());
    const std::vector<BlobMetaData> files = BlobFiles();
    ASSERT_EQ(files.size(), 1u);
    ASSERT_OK(Put("there", Value(2)));
    ASSERT_OK(Flush());
    Close();
    DeleteImages();
    ASSERT_OK(
        env_->DeleteFile(BlobFileName(dbname_, files[0].blob_file_number)));
    options.paranoid_checks = false;
    Reopen(options);

    // Reads with I/O say what is wrong. They also bring the blocks into the
    // block cache.
    std::string value;
    Status s = db_->Get(ReadOptions(), "lost", &value);
    EXPECT_TRUE(s.IsCorruption() && Mentions(s.ToString(), "is lost"))
        << s.ToString();
    EXPECT_EQ(Get("there"), Value(2));
    const auto check = [&](const std::string& key, bool exists,
                           const std::string& cause) {
      SCOPED_TRACE(key);
      bool found = true;
      EXPECT_EQ(db_->KeyMayExist(ReadOptions(), key, &value, &found), exists);
      EXPECT_EQ(db_->KeyMayExist(ReadOptions(), key, &value), exists);
      if (!exists) {
        return;
      }
      EXPECT_FALSE(found);
      ReadOptions no_io;
      no_io.read_tier = kBlockCacheTier;
      s = db_->Get(no_io, key, &value);
      EXPECT_TRUE(s.IsIncomplete() && Mentions(s.ToString(), cause))
          << s.ToString();
      const Slice keys[] = {key};
      PinnableSlice values[1];
      Status statuses[1];
      db_->MultiGet(no_io, Handle(), 1, keys, values, statuses);
      EXPECT_TRUE(statuses[0].IsIncomplete() &&
                  Mentions(statuses[0].ToString(), cause))
          << statuses[0].ToString();
    };
    check("lost", /*exists=*/true, "is lost");
    check("absent", /*exists=*/false, "");
    check("there", /*exists=*/true, "");

    // All reads of files are refused, and memtables are read.
    Blobs()->RefuseReads(Status::Corruption("for a test"));
    for (const char* key : {"lost", "there", "absent"}) {
      s = db_->Get(ReadOptions(), key, &value);
      EXPECT_TRUE(s.IsCorruption() && Mentions(s.ToString(), "for a test"))
          << s.ToString();
      check(key, /*exists=*/true, "for a test");
    }
    ASSERT_OK(Put("new", Value(3)));
    bool found = false;
    EXPECT_TRUE(db_->KeyMayExist(ReadOptions(), "new", &value, &found));
    EXPECT_TRUE(found);
    EXPECT_EQ(value, Value(3));
    ASSERT_OK(Delete("lost"));
    EXPECT_FALSE(db_->KeyMayExist(ReadOptions(), "lost", &value, &found));
  }
  Close();
}

// A flush replaces the base while the operands are collected one by one. The
// callback is called only once for each operand.
TEST_F(DBAddressMapLookupTest, OperandsAreCollectedOnceBesideAFlush) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  ASSERT_OK(Merge("k", "a"));
  ASSERT_OK(Flush());
  const auto done = EnableCallBackOnce("MapPointRead::TakeDirect", [&](void*) {
    OnAnotherThread([&] {
      EXPECT_OK(Put("k", Value(2)));
      EXPECT_OK(Flush());
      WaitForJobs();
    });
  });
  int calls = 0;
  GetMergeOperandsOptions counting;
  counting.expected_max_number_of_operands = 3;
  counting.continue_cb = [&](Slice) {
    ++calls;
    return true;
  };
  std::vector<PinnableSlice> slices(3);
  int n = 0;
  ASSERT_OK(db_->GetMergeOperands(ReadOptions(), Handle(), "k", slices.data(),
                                  &counting, &n));
  DisableCallBacks();
  EXPECT_TRUE(*done);
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(n, 2);
  EXPECT_EQ(slices[0], Value(1));
  EXPECT_EQ(slices[1], "a");
  slices.clear();
  EXPECT_EQ(Get("k"), Value(2));
  Compact();
  CheckMap(1);
}

// A flush of the base commits between the lookup in the map and the
// SuperVersion, so the search starts again after it has found an operand. A
// callback that ends the lookup at its second call still gets the base.
TEST_F(DBAddressMapLookupTest, ContinueCallbackIsNotAskedAgain) {
  for (const bool has_snapshot : {false, true}) {
    DestroyAndReopen(MapOptions());
    ASSERT_OK(Put("k", Value(1)));
    HeldPoint held("FlushMapping::Publish");
    FlushOptions in_background;
    in_background.wait = false;
    ASSERT_OK(db_->Flush(in_background));
    ASSERT_TRUE(held.WaitUntilReached());
    ASSERT_OK(Merge("k", "a"));
    ReadOptions read_options;
    read_options.snapshot = has_snapshot ? db_->GetSnapshot() : nullptr;
    const uint64_t restarts = Ticker(BLOB_MAP_READ_RESTART);
    const auto done =
        EnableCallBackOnce("MapPointRead::Start:LookedUp", [&](void*) {
          held.Release();
          EXPECT_OK(dbfull()->TEST_WaitForFlushMemTable());
          EXPECT_OK(Merge("k", "b"));
        });
    int calls = 0;
    GetMergeOperandsOptions counting;
    counting.expected_max_number_of_operands = 3;
    counting.continue_cb = [&](Slice) { return ++calls < 2; };
    std::vector<PinnableSlice> slices(3);
    int n = 0;
    ASSERT_OK(db_->GetMergeOperands(read_options, Handle(), "k", slices.data(),
                                    &counting, &n));
    ASSERT_TRUE(*done);
    EXPECT_GT(Ticker(BLOB_MAP_READ_RESTART), restarts);
    EXPECT_EQ(calls, 1);
    ASSERT_EQ(n, 2);
    EXPECT_EQ(slices[0], Value(1));
    EXPECT_EQ(slices[1], "a");
    slices.clear();
    if (has_snapshot) {
      db_->ReleaseSnapshot(read_options.snapshot);
    }
  }
}

// ---- The row cache.

TEST_F(DBAddressMapLookupTest, RowCacheKeepsFamiliesApart) {
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"other"}, options);
  for (int cf : {0, 1}) {
    ASSERT_OK(Put(cf, "k", Value(cf)));
    ASSERT_OK(Flush(cf));
  }
  for (int round = 0; round < 2; ++round) {
    for (int cf : {0, 1}) {
      EXPECT_EQ(Get(cf, "k"), Value(cf));
    }
  }
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 2);
  // A new value or a tombstone in one family does not affect the other one.
  ASSERT_OK(Put(0, "k", Value(10)));
  ASSERT_OK(Flush(0));
  EXPECT_EQ(Get(0, "k"), Value(10));
  EXPECT_EQ(Get(1, "k"), Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 4);
  ASSERT_OK(Delete(0, "k"));
  ASSERT_OK(Flush(0));
  EXPECT_EQ(Get(0, "k"), "NOT_FOUND");
  EXPECT_EQ(Get(1, "k"), Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 5);
  Compact(db_.get(), handles_[0]);
  CheckMap(handles_[0], 0);
  CheckMap(handles_[1], 1);
}

// A compaction filter changes a value without changing its key and sequence
// number. The cache does not serve the old value.
TEST_F(DBAddressMapLookupTest, RowCacheDoesNotServeFilteredValues) {
  ActingFilter filter;
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  options.compaction_filter = &filter;
  DestroyAndReopen(options);
  for (const char* key : {"change", "keep", "remove"}) {
    ASSERT_OK(Put(key, Value(1)));
  }
  ASSERT_OK(Flush());
  for (int round = 0; round < 2; ++round) {
    for (const char* key : {"change", "keep", "remove"}) {
      EXPECT_EQ(Get(key), Value(1));
    }
  }
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 3);
  Compact();
  EXPECT_EQ(Get("remove"), "NOT_FOUND");
  EXPECT_EQ(Get("keep"), Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 4);
  EXPECT_EQ(Get("change"), "changed " + Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 4);
  EXPECT_EQ(Get("change"), "changed " + Value(1));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 5);
  Compact();
  EXPECT_EQ(Get("change"), "changed " + Value(1));
  CheckMap(2);
  Close();
}

// DeleteRange() is refused if there is a row cache. But a row cache can be
// added to a database with range tombstones.
TEST_F(DBAddressMapLookupTest, RowCacheDoesNotServeRangeDeletedValues) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_OK(Put(key, Value(1)));
  }
  ASSERT_OK(Flush());
  // The range tombstone is in an ingested file and not in a flush, so the
  // values stay in the map until a compaction.
  const std::string file = dbname_ + "/deletes.sst";
  SstFileWriter writer(EnvOptions(), options);
  ASSERT_OK(writer.Open(file));
  ASSERT_OK(writer.DeleteRange("a", "c"));
  ASSERT_OK(writer.Finish());
  ASSERT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
  options.row_cache = NewLRUCache(1 << 20);
  Reopen(options);
  const Status s = db_->DeleteRange(WriteOptions(), Handle(), "c", "d");
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  // The cache may have a value that a tombstone hides, because the map still
  // has it, too.
  ReadOptions undeleted;
  undeleted.ignore_range_deletions = true;
  std::string value;
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(db_->Get(undeleted, "a", &value));
    EXPECT_EQ(value, Value(1));
  }
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 1);
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(Get("a"), "NOT_FOUND");
      EXPECT_EQ(Get("b"), "NOT_FOUND");
      EXPECT_EQ(Get("c"), Value(1));
      EXPECT_EQ(MultiGet({"a", "b", "c"}),
                (std::vector<std::string>{"NOT_FOUND", "NOT_FOUND", Value(1)}));
    }
    if (step == 0) {
      Compact();
    } else if (step == 1) {
      Reopen(options);
    }
  }
  CheckMap(1);
  ASSERT_OK(Put("a", Value(2)));
  ASSERT_OK(Flush());
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Get("a"), Value(2));
  }
  CheckMap(2);
}

TEST_F(DBAddressMapLookupTest, RowCacheDoesNotHideIngestedValues) {
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  for (const char* key : {"k", "l"}) {
    ASSERT_OK(Put(key, Value(1)));
  }
  ASSERT_OK(Flush());
  for (const char* key : {"k", "l"}) {
    EXPECT_EQ(Get(key), Value(1));
  }
  const std::string file = WriteTable("over_cached", {{"k", Value(2)}});
  ASSERT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
  const Contents model = {{"k", Value(2)}, {"l", Value(1)}};
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(Get("k"), Value(2));
      EXPECT_EQ(Get("l"), Value(1));
      EXPECT_EQ(MultiGet({"k", "l"}),
                (std::vector<std::string>{Value(2), Value(1)}));
    }
    CheckData(model);
    if (step == 0) {
      Compact();
      CheckMap(2);
    } else if (step == 1) {
      Reopen(options);
    }
  }
  CheckMap(2);
}

// The cache lives longer than the map. Its values are not used for the next
// map, whose keys have the same sequence numbers.
TEST_F(DBAddressMapLookupTest, RowCacheDoesNotServeValuesOfAnotherMap) {
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  uint64_t hits = 0;
  for (int db_number = 0; db_number < 2; ++db_number) {
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", Value(db_number)));
    ASSERT_OK(Flush());
    for (int open = 0; open < 2; ++open) {
      SCOPED_TRACE(std::to_string(db_number) + ", " + std::to_string(open));
      EXPECT_EQ(Get("k"), Value(db_number));
      EXPECT_EQ(Ticker(ROW_CACHE_HIT), hits);
      EXPECT_EQ(Get("k"), Value(db_number));
      EXPECT_EQ(Ticker(ROW_CACHE_HIT), ++hits);
      Reopen(options);
    }
  }
  // Two databases use the cache at the same time.
  const std::string other = OtherDir("other");
  {
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options, other, &db));
    ASSERT_OK(db->Put(WriteOptions(), "k", Value(7)));
    ASSERT_OK(db->Flush(FlushOptions()));
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(GetFrom(db.get(), db->DefaultColumnFamily(), "k"), Value(7));
      EXPECT_EQ(Get("k"), Value(1));
    }
    EXPECT_EQ(Ticker(ROW_CACHE_HIT), hits + 4);
    CheckMap(db->DefaultColumnFamily(), 1);
  }
  CheckMap(1);
}

// MultiGet() ends a batch with the value that exceeds value_size_soft_limit,
// also if the row cache has all values, so that no file is searched.
TEST_F(DBAddressMapLookupTest, RowCacheObeysTheSoftLimit) {
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  const std::vector<Slice> keys = {"a", "b", "c", "d", "e", "f"};
  for (const Slice& key : keys) {
    ASSERT_OK(Put(key.ToString(), Value(1)));
  }
  ASSERT_OK(Flush());
  for (const Slice& key : keys) {
    ASSERT_TRUE(IsDirect(key.ToString()));
    EXPECT_EQ(Get(key.ToString()), Value(1));
  }
  ReadOptions read_options;
  read_options.value_size_soft_limit = 2 * Value(1).size();
  std::vector<PinnableSlice> values(keys.size());
  std::vector<Status> statuses(keys.size());
  db_->MultiGet(read_options, Handle(), keys.size(), keys.data(), values.data(),
                statuses.data());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i < 3) {
      ASSERT_OK(statuses[i]);
      EXPECT_EQ(values[i], Value(1));
    } else {
      EXPECT_TRUE(statuses[i].IsAborted()) << statuses[i].ToString();
    }
  }
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 3);
  // Without a limit all of them come from the cache.
  for (const Slice& key : keys) {
    EXPECT_EQ(Get(key.ToString()), Value(1));
  }
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 9);
  CheckMap(6);
}

TEST_F(DBAddressMapLookupTest, RowCacheRespectsFillCacheAndPins) {
  Options options = MapOptions();
  options.row_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  // Reads without fill_cache do not fill the cache.
  ReadOptions no_fill;
  no_fill.fill_cache = false;
  std::string value;
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(db_->Get(no_fill, "k", &value));
    EXPECT_EQ(value, Value(1));
  }
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 0);
  EXPECT_EQ(Get("k"), Value(1));
  // A pinned value stays when its key is deleted.
  PinnableSlice pinned;
  ASSERT_OK(db_->Get(ReadOptions(), Handle(), "k", &pinned));
  EXPECT_EQ(Ticker(ROW_CACHE_HIT), 1);
  ASSERT_OK(Delete("k"));
  ASSERT_OK(Flush());
  WaitForJobs();
  EXPECT_EQ(Get("k"), "NOT_FOUND");
  EXPECT_EQ(pinned, Value(1));
  pinned.Reset();
  CheckMap(0);
  CheckBlobFiles(0);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
