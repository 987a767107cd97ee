//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "db/address_map/address_map_store.h"
#include "db/address_map/deferred_removals.h"
#include "db/address_map/unsettled_map_jobs.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class Version;
class VersionEdit;
class VersionStorageInfo;
struct FileMetaData;

// Deletes whole SST files of a column family with an address map
// (DeleteFilesInRanges), and removes the names of their values from the map.
//
//   Begin() -> Publish() -> the edit -> Close() -> Retire(), or Settle() if the
//   edit failed
//
// docs/architecture.md, section 11, describes these steps for all jobs.
//
// Invariants:
// 1. A file is deleted only if no older version of its keys with a mapped value
//    remains. Such a value may be dead and its address removed, because the
//    file hides it. A file that is being compacted counts as one with mapped
//    values: its compaction may have put values into the map that a flush of
//    the hiding entries has removed. DeleteFilesInRanges gives no guarantee for
//    a single file.
// 2. From Publish() on, no reader finds the values by the key alone. If this
//    were done after the edit, a value that a tombstone in the same files hides
//    would reappear for a moment. Readers of old Versions find the values by
//    name until the last of these Versions is deleted.
class MappedFileRemoval {
 public:
  // Removes files that must not be deleted from the set and from the edit.
  // Returns nullptr if the column family has no map.
  // edit: has only the deletions of the files.
  // REQUIRES: DB mutex held; the files are in the current Version, which
  // outlives the returned object, are not in level 0, and are marked as being
  // compacted.
  static std::unique_ptr<MappedFileRemoval> Begin(
      ColumnFamilyData* cfd, const std::string& dbname,
      std::set<FileMetaData*>* files, VersionEdit* edit);

  // Reads the keys of the files and demotes the names of their values.
  // REQUIRES: DB mutex not held.
  Status Publish();

  // Called when the outcome of the edit is known, or if there is none, because
  // Publish() or another part of the job has failed.
  // committed: true if the edit was committed.
  // REQUIRES: DB mutex held.
  void Close(bool committed) { committed_ = committed; }
  // REQUIRES: Close() was called.
  bool committed() const { return committed_; }

  // Undoes Publish() after the edit failed. After an error, some values cannot
  // be found by their keys until the database is reopened, so all point reads
  // of the column family fail until then (AddressMapStore::RefuseReads()).
  // REQUIRES: Close() was called; !committed(); DB mutex not held.
  Status Settle();

  // Passes the names that are to be removed later to AddressMapStore.
  // REQUIRES: Close() was called; committed(); a SuperVersion that includes the
  // edit was installed; DB mutex held.
  void Retire();

 private:
  // Calls fn for each mapped entry of the files.
  // direct: true if the file marks the entry as direct.
  Status Scan(const std::function<void(const MapName& name, bool direct)>& fn);

  MappedFileRemoval(ColumnFamilyData* cfd, const std::string& dbname,
                    const std::set<FileMetaData*>& files);

  ColumnFamilyData* const cfd_;
  AddressMapStore* const blobs_;
  Version* const version_;
  const std::set<FileMetaData*> files_;
  std::unique_ptr<DeferredRemovals> names_;
  // Set from Publish() until Settle() or Retire().
  std::optional<UnsettledMapJobs::Job> unsettled_;
  bool committed_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
