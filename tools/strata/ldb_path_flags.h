//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/utilities/ldb_cmd_execute_result.h"

namespace ROCKSDB_NAMESPACE {

// The flags --cf_paths, --level_sst_path_ids, --level_blob_path_ids and
// --delta_sorted_path_id of ldb; the text form of the first three is that of
// util/strata/path_list.h.
class LdbPathFlags {
 public:
  explicit LdbPathFlags(const std::map<std::string, std::string>& flags)
      : flags_(flags) {}

  // Appends the names of the flags, which every command accepts.
  static void AppendNames(std::vector<std::string>* names);
  static void AppendHelp(std::string* help);

  // Sets *options to the values of the flags. *result is set to an error if a
  // flag is invalid.
  void Apply(ColumnFamilyOptions* options,
             LDBCommandExecuteResult* result) const;

  // Sets *options to the value of --delta_sorted_path_id; an empty one changes
  // nothing. On failure *options is unchanged, and the error names the flag.
  static Status ApplyDeltaFlag(const std::string& text,
                               ColumnFamilyOptions* options);

  // For options from the OPTIONS file: replaces the cf_paths of every column
  // family with a layout by --cf_paths, whatever paths the file has.
  void OverrideLoaded(std::vector<ColumnFamilyDescriptor>* cf_descs,
                      LDBCommandExecuteResult* result) const;

  // For commands about all column families, after OverrideLoaded(): if no
  // family has a layout, gives all of them the paths of --cf_paths. The OPTIONS
  // file has no paths of such a family, so it cannot tell whose they are.
  void GiveToAll(std::vector<ColumnFamilyDescriptor>* cf_descs,
                 LDBCommandExecuteResult* result) const;

  // For options from the OPTIONS file, after Apply() to those of the family in
  // --column_family: gives the family its former paths back if
  // --cf_paths is not for it. That is the case if it has no layout, but another
  // family has one: its files are where they were.
  // before: cf_paths of the family after OverrideLoaded().
  static void KeepLoaded(const std::vector<ColumnFamilyDescriptor>& cf_descs,
                         const std::vector<DbPath>& before,
                         ColumnFamilyOptions* options);

  // For commands that read a MANIFEST without opening the DB: sets cf_paths of
  // *options to those of the column family in the loaded options. Does nothing
  // if it is not among them.
  static void SetLoaded(const std::vector<ColumnFamilyDescriptor>& cf_descs,
                        const std::string& family,
                        ColumnFamilyOptions* options);

 private:
  std::string Get(const char* name) const;

  const std::map<std::string, std::string>& flags_;
};

}  // namespace ROCKSDB_NAMESPACE
