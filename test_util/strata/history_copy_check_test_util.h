//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/copy_layout.h"
#include "test_util/strata/history_model_test_util.h"

namespace ROCKSDB_NAMESPACE {

// What histories check in a copy of a DB besides its contents.
//
// Thread-safe: the class has no state.
class HistoryCopyCheck {
 public:
  // Gives a column family of the copy the paths and ids that it has in the
  // layout.
  // layout: nullptr for a copy in one directory.
  static void SetPaths(const CopyLayout* layout, const std::string& family,
                       ColumnFamilyOptions* options);

  // Returns Corruption if the OPTIONS file of the copy has other paths or ids
  // than the layout.
  // directory: of the copy.
  static Status StoredLayout(Env* env, const std::string& directory,
                             const CopyLayout& layout);

  // Returns Corruption if the MANIFEST of the copy has an SST, blob or delta
  // file on another path than CopyLayout says, or an SST file is not there. Of
  // a blob file that is not the oldest one of an SST file only some paths can
  // be excluded.
  // directory: of the copy.
  // source: the DB, for path_map; its files are on the paths on which they were
  //     when the copy was made, or deleted. nullptr: not known.
  // REQUIRES: nothing has changed the copy since it was made, as an open for
  //     writing does
  static Status Places(Env* env, const std::string& directory,
                       const CopyLayout& layout, DB* source);

  // Returns Corruption if Get() of a key returns something else than the
  // iterator that has read `contents`.
  static Status PointReads(DB* db, ColumnFamilyHandle* family,
                           const HistoryModel::Contents& contents);

  // Appends, for each directory, a line with the number of SST, blob and delta
  // files in it.
  // root: the directories are shown by their names below it.
  static Status ShowFiles(Env* env, const std::string& root,
                          const std::vector<std::string>& directories,
                          std::string* out);
};

}  // namespace ROCKSDB_NAMESPACE
