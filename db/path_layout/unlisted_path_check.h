//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
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
// The object keeps the missing files whose path id is beyond cf_paths. Call
// them unlisted files. A state is *valid* if a replay may end with it, as far
// as its files go: none that it needs is missing, or a recovery does without
// the ones that are.
//
// Invariant: status() is OK if, and only if, the newest state that would be
// valid if all unlisted files existed is valid without them, and needs none of
// them. So a replay that ends with OK never shows an older state than it would
// show with the right paths. Nor is it refused for a file that is missing on a
// listed path, or for an unlisted file that later states do without.
//
// States are those to which the owner calls OnState(). A state in the middle of
// an atomic group must not be among them, as no replay ends with it.
//
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
  // Returns true for the paths of a family for which Exempt() was called,
  // unless it had that many paths before.
  static bool IsExempt(const std::vector<DbPath>& cf_paths);

  // Returns true if the state needs the file, and the file was missing when its
  // edit was applied.
  using IsNeeded = std::function<bool(uint64_t number)>;
  // Returns true if the state would be valid if these files existed.
  using IsValidWith = std::function<bool(const std::set<uint64_t>& numbers)>;

  // To be called if the edit that is being applied adds a file that cannot be
  // found. As in CheckPathOfFile(), a file on the last path is not missing.
  // cf_paths: must live as long as this object.
  // family: the name of the column family, for the message.
  void OnMissingFile(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                     const std::string& family, FileType type, uint64_t number,
                     uint32_t path_id);

  // Returns true if no file was missing on an unlisted path. There is nothing
  // to be asked then.
  bool IsUnused() const { return files_.empty() && status_.ok(); }
  // Returns true if this file was missing on an unlisted path. False for a
  // table file that a state before the last one has dropped.
  bool Has(uint64_t number) const { return files_.count(number) > 0; }

  // To be called for each state with which a replay may end, before the next
  // edit is applied; a second time has no effect. Returns status().
  const Status& OnState(const IsNeeded& is_needed,
                        const IsValidWith& is_valid_with);

  // Returns OK, or InvalidArgument that names an unlisted file.
  const Status& status() const { return status_; }

 private:
  struct File {
    FileType type;
    uint32_t path_id;
  };

  // From the last OnMissingFile().
  FileSystem* fs_ = nullptr;
  const std::vector<DbPath>* cf_paths_ = nullptr;
  std::string family_;

  // number -> unlisted file
  std::map<uint64_t, File> files_;
  Status status_;
  // The file that status_ names, if it is an error.
  uint64_t named_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
