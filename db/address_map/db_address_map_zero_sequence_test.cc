//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Databases with enable_blob_address_map: values with the sequence number zero,
// which a compaction gives to inline values and to values of ordinary blob
// files, also beside removals of older values that come late, and ingested
// values that have the sequence number of a range deletion.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/db_impl/db_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/sst_file_writer.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/held_point_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapZeroSequenceTest : public AddressMapDBTestBase {
 protected:
  static constexpr int kBottom = 3;

  DBAddressMapZeroSequenceTest()
      : AddressMapDBTestBase("db_address_map_zero_sequence_test") {}

  Options MapOptions() const {
    Options options = AddressMapDBTestBase::MapOptions(/*min_blob_size=*/32);
    options.num_levels = kBottom + 1;
    return options;
  }

  static std::string Long(const std::string& text) {
    return text + std::string(40, '.');
  }

  // Opens a DB with the values that were written before the DB had a map.
  // blobs: they are in ordinary blob files.
  // zero: they have the sequence number zero.
  void OpenWithUnmapped(int num_keys, bool blobs, bool zero) {
    Options options = MapOptions();
    options.enable_blob_address_map = false;
    options.enable_blob_files = blobs;
    DestroyAndReopen(options);
    for (int i = 0; i < num_keys; ++i) {
      ASSERT_OK(Put(Key(i), Value(i)));
    }
    ASSERT_OK(Flush());
    if (zero) {
      ASSERT_OK(CompactInto(0, kBottom));
    } else {
      MoveFilesToLevel(kBottom);
    }
    Reopen(MapOptions());
  }

  // Calls `during` on another thread when the next point read has found that
  // the map has no direct entry.
  std::shared_ptr<std::atomic<bool>> AfterTheLookup(
      const std::function<void()>& during) {
    return EnableCallBackOnce("MapPointRead::Start:LookedUp",
                              [during](void*) { OnAnotherThread(during); });
  }
};

// The read finds no direct entry, and then does not look at the file with the
// converted value, whose ceiling is 0.
TEST_F(DBAddressMapZeroSequenceTest, ReadBesideAConversion) {
  for (const bool blobs : {false, true}) {
    for (const bool zero : {false, true}) {
      for (const bool batch : {false, true}) {
        SCOPED_TRACE(std::to_string(blobs) + std::to_string(zero) +
                     std::to_string(batch));
        ASSERT_NO_FATAL_FAILURE(OpenWithUnmapped(2, blobs, zero));
        const auto reached =
            AfterTheLookup([&] { EXPECT_OK(CompactInto(kBottom, kBottom)); });
        if (batch) {
          const std::vector<std::string> found =
              MultiGet(std::vector<std::string>{Key(0), Key(1)});
          EXPECT_EQ(found[0], Value(0));
          EXPECT_EQ(found[1], Value(1));
        } else {
          EXPECT_EQ(Get(Key(1)), Value(1));
        }
        EXPECT_TRUE(*reached);
        DisableCallBacks();
        EXPECT_TRUE(IsDirect(Key(1)));
        EXPECT_EQ(Get(Key(1)), Value(1));
      }
    }
  }
}

// A value of an ingested file is above a range deletion of the file, although
// both have one sequence number.
TEST_F(DBAddressMapZeroSequenceTest, ReadOfAnIngestedValueBesideACompaction) {
  for (const bool with_range : {false, true}) {
    SCOPED_TRACE(with_range);
    const Options options = MapOptions();
    DestroyAndReopen(options);
    for (const char* key : {"a", "l", "z"}) {
      ASSERT_OK(Put(key, Long(key)));
    }
    ASSERT_OK(Flush());
    ASSERT_OK(CompactInto(0, kBottom));
    const std::string file = dbname_ + "/ingested.sst";
    {
      SstFileWriter writer(EnvOptions(), options);
      ASSERT_OK(writer.Open(file));
      ASSERT_OK(writer.Put("k", Long("k")));
      ASSERT_OK(writer.Put("m", Long("m")));
      if (with_range) {
        ASSERT_OK(writer.DeleteRange("b", "y"));
      }
      ASSERT_OK(writer.Finish());
    }
    ASSERT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
    ASSERT_EQ(NumTableFilesAtLevel(kBottom - 1), 1);
    const auto reached = AfterTheLookup(
        [&] { EXPECT_OK(CompactInto(kBottom - 1, kBottom - 1)); });
    EXPECT_EQ(Get("k"), Long("k"));
    EXPECT_TRUE(*reached);
    DisableCallBacks();
    SequenceNumber seq = 0;
    EXPECT_TRUE(Blobs()->map()->DirectSeq(Blobs()->HashOf("k"), &seq));
    EXPECT_GT(seq, 0);
    EXPECT_EQ(Get("k"), Long("k"));
    EXPECT_EQ(Get("l"), with_range ? "NOT_FOUND" : Long("l"));
  }
}

// A reader has delayed the removal of a value. Before the job comes to it, one
// compaction gives the value that hides it the sequence number zero, and
// another one moves that value to a blob file.
TEST_F(DBAddressMapZeroSequenceTest, DelayedRemovalKeepsANewerValue) {
  for (const bool bypass : {false, true}) {
    SCOPED_TRACE(bypass);
    Options options = MapOptions();
    options.enable_lsm_bypass = bypass;
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", Long("old")));
    ASSERT_OK(Flush());
    WaitForJobs();
    CheckMap(1);
    ASSERT_OK(dbfull()->SetOptions({{"min_blob_size", "1000"}}));
    const Snapshot* const snapshot = db_->GetSnapshot();
    ASSERT_OK(Put("k", Long("new")));
    ASSERT_OK(Flush());
    WaitForJobs();
    EXPECT_EQ(Blobs()->NumBlockedRemovals(), 1u);
    {
      HeldPoint removal(
          "DBStrata::BackgroundMapRemovals::RunFor:BeforeRemoval");
      db_->ReleaseSnapshot(snapshot);
      ASSERT_TRUE(removal.WaitUntilReached());
      ASSERT_OK(ForceCompaction());
      CheckMap(0);
      ASSERT_OK(dbfull()->SetOptions({{"min_blob_size", "32"}}));
      ASSERT_OK(ForceCompaction());
      CheckMap(1);
      EXPECT_EQ(IsDirect("k"), bypass);
      EXPECT_EQ(Blobs()->NumBlockedRemovals(), 1u);
    }
    WaitForJobs();
    EXPECT_EQ(Blobs()->NumBlockedRemovals(), 0u);
    CheckMap(1);
    EXPECT_EQ(Get("k"), Long("new"));
    Reopen(options);
    EXPECT_EQ(Get("k"), Long("new"));
  }
}

// A flush has committed an entry, and comes to an end only after that entry has
// left the tree and a newer value was ingested, which has the sequence number
// zero.
TEST_F(DBAddressMapZeroSequenceTest, LateEndOfAFlushKeepsANewerValue) {
  for (const bool deletes : {false, true}) {
    SCOPED_TRACE(deletes);
    const Options options = MapOptions();
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", Long("old")));
    if (deletes) {
      ASSERT_OK(Flush());
      WaitForJobs();
      ASSERT_OK(Delete("k"));
    }
    {
      HeldPoint flush("FlushMapping::Settle");
      FlushOptions flush_options;
      flush_options.wait = false;
      ASSERT_OK(db_->Flush(flush_options));
      ASSERT_TRUE(flush.WaitUntilReached());
      ASSERT_OK(ForceCompaction());
      ASSERT_OK(DeleteFilesInRange(db_.get(), Handle(), nullptr, nullptr));
      EXPECT_EQ(Get("k"), "NOT_FOUND");
      const std::string file = dbname_ + "/ingested.sst";
      SstFileWriter writer(EnvOptions(), options);
      ASSERT_OK(writer.Open(file));
      ASSERT_OK(writer.Put("k", Long("new")));
      ASSERT_OK(writer.Finish());
      ASSERT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
      ASSERT_OK(ForceCompaction());
      SequenceNumber seq = 1;
      ASSERT_TRUE(Blobs()->map()->DirectSeq(Blobs()->HashOf("k"), &seq));
      EXPECT_EQ(seq, 0u);
      EXPECT_EQ(Get("k"), Long("new"));
    }
    WaitForJobs();
    EXPECT_EQ(Get("k"), Long("new"));
    CheckMap(1);
    Reopen(options);
    EXPECT_EQ(Get("k"), Long("new"));
  }
}

TEST_F(DBAddressMapZeroSequenceTest, FlushFreesWhatItHides) {
  constexpr int kNumKeys = 100;
  for (const bool zero : {false, true}) {
    SCOPED_TRACE(zero);
    ASSERT_NO_FATAL_FAILURE(OpenWithUnmapped(kNumKeys, /*blobs=*/true, zero));
    ASSERT_OK(CompactInto(kBottom, kBottom));
    WaitForJobs();
    CheckMap(kNumKeys);
    // An iterator needs the first half of the values for a while.
    for (int i = kNumKeys / 2; i < kNumKeys; ++i) {
      ASSERT_OK(Delete(Key(i)));
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    CheckMap(kNumKeys / 2);
    std::unique_ptr<Iterator> iterator(db_->NewIterator(ReadOptions()));
    for (int i = 0; i < kNumKeys / 2; ++i) {
      ASSERT_OK(Put(Key(i), "short"));
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    CheckMap(kNumKeys / 2);
    iterator->SeekToFirst();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->value(), Value(0));
    iterator.reset();
    WaitForJobs();
    CheckMap(0);
    EXPECT_TRUE(BlobFiles().empty());
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
