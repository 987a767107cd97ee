//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What LOG says of the directories of a column family that is dropped.

#include <string>
#include <vector>

#include "db/column_family.h"
#include "db/path_layout/directory_names.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "logging/logging.h"

namespace ROCKSDB_NAMESPACE {

void DBStrata::LogDirectoriesToDrop(const ColumnFamilyData& cfd) {
  const ImmutableDBOptions& options = db_->immutable_db_options_;
  // An open knows all files in these directories.
  std::vector<std::string> others = {db_->dbname_, options.GetWalDir()};
  if (!options.db_log_dir.empty()) {
    others.push_back(options.db_log_dir);
  }
  const auto add = [](const std::vector<DbPath>& paths,
                      std::vector<std::string>* names) {
    for (const DbPath& path : paths) {
      names->push_back(path.path);
    }
  };
  add(options.db_paths, &others);
  {
    InstrumentedMutexLock lock(&db_->mutex_);
    if (cfd.IsDropped()) {
      return;
    }
    for (const ColumnFamilyData* other :
         *db_->versions_->GetColumnFamilySet()) {
      if (other != &cfd && !other->IsDropped()) {
        add(other->ioptions().cf_paths, &others);
      }
    }
  }
  std::vector<std::string> own;
  add(cfd.ioptions().cf_paths, &own);
  std::string names;
  for (const std::string& directory :
       DirectoriesNotAmong(options.fs.get(), own, others)) {
    names += (names.empty() ? "" : ", ") + directory;
  }
  if (names.empty()) {
    return;
  }
  ROCKS_LOG_INFO(options.info_log,
                 "[%s] The column family with id %u is to be dropped. No other "
                 "one has these directories: %s. If the process ends before "
                 "the table, blob, delta and .trash files in them are deleted, "
                 "no later open does that: delete these files by hand, but "
                 "nothing else and no directory in them",
                 cfd.GetName().c_str(), cfd.GetID(), names.c_str());
  // Without that a crash could lose the line, and nothing else has the names.
  LogFlush(options.info_log);
}

}  // namespace ROCKSDB_NAMESPACE
