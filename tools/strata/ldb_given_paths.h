//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "db/path_layout/manifest_files.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/ldb_cmd_execute_result.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;
class LdbPathFlags;

// Decides whose paths those of --cf_paths are in a command about all column
// families, if no family has a layout: the OPTIONS file does not tell
// (LdbPathFlags::GiveToAll()), but the files do.
//
// Invariants:
// 1. A column family has the given paths only if it has files. It keeps its
//    former paths if all files are on those, and not all on the given ones.
// 2. A column family without files may be on either. If WALs can have data of
//    it, the database must not be opened: that data would go to SST files on
//    the former paths, and its program may look for them on the others.
//
// Not thread-safe.
class LdbGivenPaths {
 public:
  // Gives the paths to all column families, if the flags have some and no
  // family has a layout. *result is set to an error if a flag is invalid.
  void Give(const LdbPathFlags& flags,
            std::vector<ColumnFamilyDescriptor>* families,
            LDBCommandExecuteResult* result);

  // Takes the paths away from a column family that does not have them
  // (invariant 1). Does nothing if it was called for the family before.
  // Returns true if its files are on its former paths alone.
  // files: those of the column family.
  // db_paths: of a family without cf_paths.
  bool Take(FileSystem* fs, const std::vector<ManifestFamily::File>& files,
            const std::vector<DbPath>& db_paths,
            ColumnFamilyDescriptor* family);

  // Returns true if CheckWals() can fail.
  bool NeedsEmptyWals() const { return !families_without_files_.empty(); }
  // Returns an error that names the column families without files if there are
  // some that were given paths, and WALs may have data (invariant 2).
  // has_records: whether a WAL that an open replays has a record of any family.
  Status CheckWals(bool has_records) const;

 private:
  // Column family -> its cf_paths without --cf_paths.
  std::map<std::string, std::vector<DbPath>> former_;
  std::set<std::string> families_without_files_;
};

}  // namespace ROCKSDB_NAMESPACE
