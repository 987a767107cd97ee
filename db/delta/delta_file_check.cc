//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_check.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "db/delta/delta_version.h"
#include "db/path_layout/path_check.h"
#include "file/filename.h"
#include "port/port.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Minimum number of files per thread.
constexpr size_t kMinFilesOfThread = 16;

Status CheckFile(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                 const std::string& family, const DeltaFileDescription& file) {
  Status s = CheckPathOfFile(fs, cf_paths, family, kDeltaFile, file.number,
                             file.path_id);
  if (!s.ok()) {
    return s;
  }
  const std::string name = DeltaFileName(cf_paths, file.number, file.path_id);
  IOOptions io_options;
  io_options.io_activity = Env::IOActivity::kDBOpen;
  uint64_t size = 0;
  s = fs->GetFileSize(name, io_options, &size, /*dbg=*/nullptr);
  if (s.IsPathNotFound() || s.IsNotFound()) {
    return Status::Corruption("Delta file that the MANIFEST names is missing",
                              name);
  }
  if (s.ok() && size != file.size) {
    return Status::Corruption(
        "Delta file has " + std::to_string(size) + " bytes instead of " +
            std::to_string(file.size) + " as in the MANIFEST",
        name);
  }
  return s;
}

}  // namespace

Status CheckDeltaFiles(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                       const std::string& family, const DeltaVersion& delta,
                       int max_threads) {
  std::vector<const DeltaFileDescription*> files;
  delta.ForEachFile([&files](const DeltaVersion::FilePtr& file) {
    files.push_back(&file->description());
  });
  std::sort(files.begin(), files.end(),
            [](const DeltaFileDescription* a, const DeltaFileDescription* b) {
              return a->number < b->number;
            });

  std::vector<Status> statuses(files.size());
  std::atomic<size_t> next{0};
  const auto check = [&] {
    for (;;) {
      const size_t i = next.fetch_add(1);
      if (i >= files.size()) {
        return;
      }
      statuses[i] = CheckFile(fs, cf_paths, family, *files[i]);
    }
  };
  const size_t num_threads =
      std::min(static_cast<size_t>(std::max(max_threads, 1)),
               files.size() / kMinFilesOfThread);
  std::vector<port::Thread> threads;
  for (size_t i = 1; i < num_threads; ++i) {
    threads.emplace_back(check);
  }
  check();
  for (port::Thread& thread : threads) {
    thread.join();
  }

  Status result;
  for (const Status& s : statuses) {
    result.UpdateIfOk(s);
  }
  return result;
}

}  // namespace ROCKSDB_NAMESPACE
