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
// (DeleteFilesInRanges): what they name leaves the map.
//
//   Begin() -> Prepare() -> the edit -> Finish() -> if that failed, Undo()
//
// Invariants:
// * A file goes only if no older version of its keys with a mapped value stays:
//   such a value may be dead, and its address gone, because the file hides it.
//   DeleteFilesInRanges promises nothing about single files.
// * From Prepare() on nobody finds the values by the key alone. Were it done
//   after the edit, a value that a tombstone in the same files hides would be
//   there again for a moment. Readers of old Versions find them by name until
//   the last of these is gone.
class MappedFileRemoval {
 public:
  // Takes files that must stay out of the set, and out of the edit, which has
  // nothing but their deletions. nullptr if the column family has no map.
  // REQUIRES: DB mutex held; the files are of the current Version, which
  // outlives this, not of level 0, and marked as being compacted.
  static std::unique_ptr<MappedFileRemoval> Begin(
      ColumnFamilyData* cfd, const std::string& dbname,
      std::set<FileMetaData*>* files, VersionEdit* edit);

  // Reads the keys of the files.
  // REQUIRES: DB mutex not held.
  Status Prepare();

  // REQUIRES: DB mutex held; if committed, a SuperVersion with the edit was
  // installed.
  void Finish(bool committed);

  // The edit has failed: what Prepare() did is taken back. An error leaves
  // values that cannot be found by their keys before the database is opened
  // again, so point reads of the column family fail from then on
  // (AddressMapStore::RefuseReads()).
  // REQUIRES: DB mutex not held.
  Status Undo();

 private:
  // Calls fn for each mapped entry of the files. direct: so the file says.
  Status Scan(const std::function<void(const MapName& name, bool direct)>& fn);

  MappedFileRemoval(ColumnFamilyData* cfd, const std::string& dbname,
                    const std::set<FileMetaData*>& files);

  ColumnFamilyData* const cfd_;
  AddressMapStore* const blobs_;
  Version* const version_;
  const std::set<FileMetaData*> files_;
  std::unique_ptr<DeferredRemovals> names_;
  // From Prepare() until the end.
  std::optional<UnsettledMapJobs::Job> unsettled_;
};

}  // namespace ROCKSDB_NAMESPACE
