//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_saved_db_test_util.h"

#include <cassert>
#include <vector>

#include "rocksdb/env.h"
#include "test_util/strata/history_leaks_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the paths of all files in the directories of the DB.
Status ListFiles(HistoryDb& db, std::vector<std::string>* paths) {
  for (const std::string& directory : HistoryLeaks::Directories(db)) {
    std::vector<std::string> children;
    const Status s = Env::Default()->GetChildren(directory, &children);
    if (!s.ok() && !s.IsNotFound()) {
      return s;
    }
    for (const std::string& child : children) {
      paths->push_back(directory + "/" + child);
    }
  }
  return Status::OK();
}

}  // namespace

Status HistorySavedDb::Save() {
  assert(!db_.is_open());
  files_.clear();
  families_ = db_.families();
  model_ = db_.model();
  std::vector<std::string> paths;
  Status s = ListFiles(db_, &paths);
  for (size_t i = 0; i < paths.size() && s.ok(); ++i) {
    s = ReadFileToString(Env::Default(), paths[i], &files_[paths[i]]);
  }
  return s;
}

Status HistorySavedDb::Restore() {
  db_.Close();
  db_.families() = families_;
  db_.model() = model_;
  std::vector<std::string> paths;
  Status s = ListFiles(db_, &paths);
  for (size_t i = 0; i < paths.size() && s.ok(); ++i) {
    if (files_.count(paths[i]) == 0) {
      s = Env::Default()->DeleteFile(paths[i]);
    }
  }
  for (auto it = files_.begin(); it != files_.end() && s.ok(); ++it) {
    s = WriteStringToFile(Env::Default(), it->second, it->first);
  }
  db_.ForgetFileStates();
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
