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

// Returns true if the file name belongs to a temporary OPTIONS file. RocksDB
// never deletes a temporary OPTIONS file that a crash has left behind, because
// another thread may be writing it, so such a file is not a leak of a job.
bool IsTemporaryOptionsFile(const std::string& name, FileType type) {
  return type == kTempFile && name.find(kOptionsFileNamePrefix) == 0;
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
  // The files come first: GetLiveFilesStorageInfo() ends with a search of the
  // DB for files to delete, which would remove most of the leaks.
  std::vector<std::string> paths;
  for (const std::string& directory : Directories(db)) {
    std::vector<std::string> children;
    const Status s = Env::Default()->GetChildren(directory, &children);
    if (!s.ok()) {
      return s;
    }
    for (const std::string& child : children) {
      paths.push_back(std::string(directory).append("/").append(child));
    }
  }
  LiveFilesStorageInfoOptions options;
  options.wal_size_for_flush = UINT64_MAX;
  std::vector<LiveFileStorageInfo> live;
  const Status s = db.db()->GetLiveFilesStorageInfo(options, &live);
  if (!s.ok()) {
    return s;
  }
  std::set<std::string> known;
  for (const LiveFileStorageInfo& info : live) {
    known.insert(PathOf(info));
  }
  const uint64_t min_wal = static_cast_with_check<DBImpl>(db.db()->GetRootDB())
                               ->MinLogNumberToKeep();
  for (const std::string& path : paths) {
    uint64_t number = 0;
    FileType type = kInfoLogFile;
    const std::string name = path.substr(path.rfind('/') + 1);
    if (!ParseFileName(name, &number, &type) ||
        IsTemporaryOptionsFile(name, type)) {
      continue;
    }
    // The DB counts all WALs that it finds as live.
    const bool is_leak =
        type == kWalFile ? number < min_wal
                         : known.count(path) == 0 &&
                               (type == kTableFile || type == kBlobFile ||
                                type == kDeltaFile || type == kDescriptorFile ||
                                type == kTempFile);
    if (is_leak) {
      names->push_back(path.substr(db.root().size() + 1));
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
