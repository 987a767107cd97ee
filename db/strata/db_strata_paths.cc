//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The directories of an open.

#include "db/column_family.h"
#include "db/path_layout/directory_names.h"
#include "db/path_layout/open_paths.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "file/strata/opened_directory.h"

namespace ROCKSDB_NAMESPACE {

void Directories::WrapOpened(const ImmutableDBOptions& options,
                             const std::string& dbname) {
  OpenedDirectory::Wrap(options, dbname, &db_dir_);
  if (wal_dir_ != nullptr) {
    OpenedDirectory::Wrap(options, options.wal_dir, &wal_dir_);
  }
}

Status DBStrata::CreatePaths(const OpenPaths& paths) {
  db_->mutex_.AssertHeld();
  if (!paths.AreSeveral()) {
    return Status::OK();
  }
  const ImmutableDBOptions& options = db_->immutable_db_options_;
  Status s = db_->env_->CreateDirIfMissing(options.GetWalDir());
  if (s.ok()) {
    s = paths.Create(options.fs.get());
  }
  if (s.ok()) {
    s = db_->CreateArchivalDirectory();
  }
  if (s.ok()) {
    s = db_->directories_.SetDataDirectories(options.fs.get(), db_->dbname_,
                                             options.wal_dir, options.db_paths);
  }
  if (s.ok()) {
    db_->directories_.WrapOpened(options, db_->dbname_);
    // DBImpl::Open() and the families have looked for directories that may not
    // have existed.
    db_->wal_in_db_path_ |=
        CleanDirectoryName(/*fs=*/nullptr, options.GetWalDir()) ==
        CleanDirectoryName(/*fs=*/nullptr, options.db_paths[0].path);
    for (ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
      cfd->RegisterCreatedPaths();
    }
    EnableSpaceRecovery(paths.Names());
  }
  return s;
}

Status DBStrata::AddPathToListingError(const std::string& directory,
                                       const Status& s) const {
  db_->mutex_.AssertHeld();
  OpenPaths paths(db_->immutable_db_options_.db_paths);
  for (const ColumnFamilyData* cfd : *db_->versions_->GetColumnFamilySet()) {
    paths.AddFamily(cfd->GetName(), cfd->ioptions().cf_paths);
  }
  return paths.AddPathTo(s, directory, "cannot be listed");
}

}  // namespace ROCKSDB_NAMESPACE
