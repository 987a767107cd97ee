//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_leaks_test_util.h"

#include <cstdint>

#include "db/db_impl/db_impl.h"
#include "file/filename.h"
#include "rocksdb/env.h"
#include "rocksdb/metadata.h"
#include "rocksdb/options.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string PathOf(const LiveFileStorageInfo& info) {
  std::string path = info.directory;
  while (!path.empty() && path.back() == '/') {
    path.pop_back();
  }
  return path + "/" + info.relative_filename;
}

}  // namespace

std::set<std::string> HistoryLeaks::Directories(HistoryDb& db) {
  std::set<std::string> directories = {db.root() + "/db"};
  for (const auto& family : db.families()) {
    directories.insert(family.second.paths.begin(), family.second.paths.end());
  }
  return directories;
}

Status HistoryLeaks::Find(HistoryDb& db, std::vector<std::string>* names) {
  names->clear();
  db.WaitForCleanup();
  LiveFilesStorageInfoOptions options;
  options.wal_size_for_flush = UINT64_MAX;
  std::vector<LiveFileStorageInfo> live;
  Status s = db.db()->GetLiveFilesStorageInfo(options, &live);
  if (!s.ok()) {
    return s;
  }
  std::set<std::string> known;
  for (const LiveFileStorageInfo& info : live) {
    known.insert(PathOf(info));
  }
  const uint64_t min_wal = static_cast_with_check<DBImpl>(db.db()->GetRootDB())
                               ->MinLogNumberToKeep();
  for (const std::string& directory : Directories(db)) {
    std::vector<std::string> children;
    s = Env::Default()->GetChildren(directory, &children);
    if (!s.ok()) {
      return s;
    }
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kInfoLogFile;
      const std::string path = directory + "/" + child;
      if (!ParseFileName(child, &number, &type) || known.count(path) != 0) {
        continue;
      }
      if (type == kTableFile || type == kBlobFile || type == kDeltaFile ||
          type == kDescriptorFile || type == kTempFile ||
          (type == kWalFile && number < min_wal)) {
        names->push_back(path.substr(db.root().size() + 1));
      }
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
