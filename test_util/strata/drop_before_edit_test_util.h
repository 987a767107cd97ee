//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "rocksdb/db.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/testharness.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

// Drops a column family while the edit of a job of the family is in the queue
// for the MANIFEST, so that the edit is not written.
class DropBeforeEdit {
 public:
  // point: a sync point that the job reaches before its edit, without the DB
  // mutex.
  // in_group: the edit follows one of the default column family, which takes it
  // into its commit group and gives it its own status.
  DropBeforeEdit(DB* db, ColumnFamilyHandle* handle, const std::string& point,
                 bool in_group)
      : db_(static_cast_with_check<DBImpl>(db->GetRootDB())),
        handle_(handle),
        in_group_(in_group) {
    EnableCallBackOnce(point, [this](void*) { Drop(); });
  }
  ~DropBeforeEdit() { End(); }
  DropBeforeEdit(const DropBeforeEdit&) = delete;
  DropBeforeEdit& operator=(const DropBeforeEdit&) = delete;

  // Waits for the drop, and removes all callbacks. Returns false if the job has
  // not reached the point.
  // REQUIRES: the job has ended.
  bool End() {
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
    DisableCallBacks();
    return is_dropping_;
  }

 private:
  void Drop() {
    EnableCallBack("VersionSet::LogAndApply:BeforeWriterWaiting",
                   [this](void*) { ++num_queued_; });
    EnableCallBackOnce("VersionSet::LogAndApply:WriteManifest", [this](void*) {
      is_dropping_ = true;
      EXPECT_TRUE(
          WaitUntil([this] { return num_queued_ >= (in_group_ ? 3 : 2); }));
    });
    threads_.emplace_back(
        [this] { EXPECT_OK(db_->DropColumnFamily(handle_)); });
    EXPECT_TRUE(WaitUntil([this] { return is_dropping_.load(); }));
    if (in_group_) {
      threads_.emplace_back([this] { LogAnEdit(); });
      EXPECT_TRUE(WaitUntil([this] { return num_queued_ >= 2; }));
    }
  }

  // Commits an edit of the default column family that changes nothing.
  void LogAnEdit() {
    ColumnFamilyData* const cfd =
        static_cast_with_check<ColumnFamilyHandleImpl>(
            db_->DefaultColumnFamily())
            ->cfd();
    VersionEdit edit;
    const InstrumentedMutexLock lock(db_->mutex());
    EXPECT_OK(db_->GetVersionSet()->LogAndApply(
        cfd, ReadOptions(), WriteOptions(), &edit, db_->mutex(),
        /*dir_contains_current_file=*/nullptr));
  }

  DBImpl* const db_;
  ColumnFamilyHandle* const handle_;
  const bool in_group_;
  std::vector<std::thread> threads_;
  std::atomic<bool> is_dropping_{false};
  // Edits that have come to the queue since the job reached the point.
  std::atomic<int> num_queued_{0};
};

}  // namespace ROCKSDB_NAMESPACE
