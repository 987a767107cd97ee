//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Removals from address maps, and the drops of blob files by them, beside
// PauseBackgroundWork() and lists of WALs.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "db/address_map/address_map_store.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "rocksdb/snapshot.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/held_point_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"

namespace ROCKSDB_NAMESPACE {

class DBAddressMapPauseTest : public AddressMapDBTestBase {
 public:
  DBAddressMapPauseTest() : AddressMapDBTestBase("db_address_map_pause_test") {}

 protected:
  uint64_t VersionNumber() {
    InstrumentedMutexLock lock(dbfull()->mutex());
    return Family()->current()->GetVersionNumber();
  }
  uint64_t ManifestBytes() {
    uint64_t sum = 0;
    for (const std::string& name : FilesIn(dbname_, kDescriptorFile)) {
      uint64_t size = 0;
      EXPECT_OK(env_->GetFileSize(dbname_ + "/" + name, &size));
      sum += size;
    }
    return sum;
  }
};

// A pause waits for the job that removes values and drops the file that they
// were in. What is due when the job ends is done after the last of two pauses.
TEST_F(DBAddressMapPauseTest, PauseWaitsForRemovals) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  const Snapshot* const first = db_->GetSnapshot();
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  const Snapshot* const second = db_->GetSnapshot();
  ASSERT_OK(Put("k", Value(3)));
  ASSERT_OK(Flush());
  WaitForJobs();
  CheckMap(3);
  ASSERT_EQ(BlobFiles().size(), 3u);

  std::atomic<bool> waits{false};
  std::atomic<bool> is_paused{false};
  std::thread pausing;
  {
    HeldPoint removal("DBStrata::BackgroundMapRemovals::RunFor:BeforeRemoval");
    EnableCallBack("DBStrata::HasUnpausedWork:Waits",
                   [&](void*) { waits = true; });
    db_->ReleaseSnapshot(first);
    EXPECT_TRUE(removal.WaitUntilReached());
    pausing = std::thread([&] {
      EXPECT_OK(db_->PauseBackgroundWork());
      is_paused = true;
    });
    EXPECT_TRUE(WaitUntil([&] { return waits || is_paused; }));
    EXPECT_FALSE(is_paused);
    // The job has asked for the oldest reader, and leaves this to the next one.
    db_->ReleaseSnapshot(second);
  }
  pausing.join();
  const uint64_t version = VersionNumber();
  const uint64_t manifest_bytes = ManifestBytes();
  ASSERT_OK(db_->PauseBackgroundWork());
  ASSERT_OK(db_->ContinueBackgroundWork());
  // Would wait for a job of removals.
  ASSERT_OK(dbfull()->TEST_WaitForPurge());
  CheckMap(2);
  EXPECT_EQ(Blobs()->NumBlockedRemovals(), 1u);
  EXPECT_EQ(BlobFiles().size(), 2u);
  EXPECT_EQ(VersionNumber(), version);
  EXPECT_EQ(ManifestBytes(), manifest_bytes);

  ASSERT_OK(db_->ContinueBackgroundWork());
  WaitForJobs();
  CheckMap(1);
  EXPECT_EQ(BlobFiles().size(), 1u);
  EXPECT_EQ(Get("k"), Value(3));
}

// The list does not wait for the job, whose thread may be the one that asks for
// the list, in a listener.
TEST_F(DBAddressMapPauseTest, ListOfWalsDoesNotWaitForRemovals) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", Value(1)));
  ASSERT_OK(Flush());
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Put("k", Value(2)));
  ASSERT_OK(Flush());
  WaitForJobs();
  CheckMap(2);

  std::atomic<bool> waits{false};
  std::atomic<bool> is_listed{false};
  std::thread listing;
  {
    HeldPoint removal("DBStrata::BackgroundMapRemovals::RunFor:BeforeRemoval");
    EnableCallBack("DBImpl::GetSortedWalFilesImpl:WaitPurge",
                   [&](void*) { waits = true; });
    db_->ReleaseSnapshot(snapshot);
    EXPECT_TRUE(removal.WaitUntilReached());
    listing = std::thread([&] {
      VectorWalPtr files;
      EXPECT_OK(db_->GetSortedWalFiles(files));
      is_listed = true;
    });
    EXPECT_TRUE(WaitUntil([&] { return waits || is_listed; }));
    EXPECT_FALSE(waits);
  }
  listing.join();
  WaitForJobs();
  CheckMap(1);
  EXPECT_EQ(BlobFiles().size(), 1u);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
