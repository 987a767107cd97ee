//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/copy_layout.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyHandle;
class DB;

// The flags by which ldb's checkpoint and restore put a copy into several
// directories: --<prefix>cf_paths, --<prefix>level_sst_path_ids,
// --<prefix>level_blob_path_ids and --<prefix>delta_sorted_path_id; their text
// form is that of LdbPathFlags.
class LdbCopyLayout {
 public:
  // prefix: "checkpoint_" for a checkpoint, because the flags without prefix
  //     are about the database that is copied; empty for a restore.
  LdbCopyLayout(const std::map<std::string, std::string>& flags,
                const std::string& prefix)
      : flags_(flags), prefix_(prefix) {}

  // Returns the names of the flags, and `others`.
  static std::vector<std::string> Names(const std::string& prefix,
                                        std::vector<std::string> others);
  static void AppendHelp(const std::string& prefix, std::string* help);

  // Sets *layout to that of all column families; nullptr without flags. Returns
  // InvalidArgument, naming the flag, if one is invalid.
  Status Make(std::shared_ptr<const CopyLayout>* layout) const;

  // As Make(), but without ids each column family of `db` that has ids keeps
  // them, and its files keep their path ids; the others are in the directory of
  // the copy.
  // families: those that are open, by name; the default one may be missing.
  Status MakeFor(DB* db,
                 const std::map<std::string, ColumnFamilyHandle*>& families,
                 std::shared_ptr<const CopyLayout>* layout) const;

 private:
  std::string Get(const std::string& name) const;

  const std::map<std::string, std::string>& flags_;
  const std::string prefix_;
};

}  // namespace ROCKSDB_NAMESPACE
