//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Replays of a MANIFEST that go back to an older state of a column family if
// files are missing (best-efforts recovery, secondary and follower instances,
// remote compaction) use this class to tell files that are gone from files that
// are on a path which the options do not have. The latter are no reason to go
// back: with the right options they are there.
//
// Invariant: status() is an error exactly if a state that is newer than the
// newest complete one has got a file that was missing when its edit was
// applied, and whose path id is beyond cf_paths.
//
// Not thread-safe. An object is used by one VersionBuilder.
class UnlistedPathCheck {
 public:
  // Makes an open check no paths of this column family, which may go back to an
  // older state then, as in RocksDB: gives the family so many paths that no
  // path id is beyond the list. Each file is where it was, as such an id means
  // the last path. A worker of remote compaction does so with a family that it
  // opens, but does not compact.
  // dbname: the directory of the database.
  static void Exempt(const std::string& dbname, const DBOptions& db_options,
                     ColumnFamilyOptions* options);

  // To be called if the edit that is being applied adds a file that cannot be
  // found. As in CheckPathOfFile(), a file on the last path is not missing.
  // family: the name of the column family, for the message.
  void OnMissingFile(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                     const std::string& family, FileType type, uint64_t number,
                     uint32_t path_id);

  // To be called if the replay may end with the current state, and all files
  // that this state needs exist.
  void OnCompleteState() { status_ = Status::OK(); }

  // Returns OK, or InvalidArgument that names the first such file.
  const Status& status() const { return status_; }

 private:
  Status status_;
};

}  // namespace ROCKSDB_NAMESPACE
