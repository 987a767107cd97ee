//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/path_layout/path_layout.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileAddition;
class ColumnFamilyData;
class CompactionState;
class VersionEdit;
class VersionStorageInfo;
struct FileMetaData;

// The paths of one column family in which a job has created files.
//
// A new file survives a crash only after an fsync of its directory, and the
// MANIFEST must not name a file that may be lost. With a layout one job can
// write to several directories; it collects them here and syncs them before
// LogAndApply(). Without a layout RocksDB's own single sync is enough, and no
// path is added.
//
// Not thread-safe: one object per job.
class OutputDirectories {
 public:
  OutputDirectories() = default;

  void Add(uint32_t path_id) {
    path_ids_ |= static_cast<uint8_t>(1u << path_id);
  }
  void Remove(uint32_t path_id) {
    path_ids_ &= static_cast<uint8_t>(~(1u << path_id));
  }
  void Add(const std::vector<BlobFileAddition>& blob_files);
  // Adds the paths of the new SST and blob files of `edit`.
  // REQUIRES: all new files of the edit were just written; so it is not that of
  // a trivial move, which "adds" a file, too.
  void AddOutputs(const VersionEdit& edit);
  // Adds the paths of the files of all subcompactions, for both output levels
  // if there are two.
  void AddOutputs(CompactionState& compaction);

  bool Contains(uint32_t path_id) const {
    return (path_ids_ & (1u << path_id)) != 0;
  }
  bool empty() const { return path_ids_ == 0; }

  // Fsyncs the directory of each path of `cfd` that was added. `synced` lists
  // directories that the caller has synced since the files were created; they
  // are skipped, and the directories synced here are appended, so that one
  // directory that serves several path ids or column families is synced once.
  // Stops at the first error.
  IOStatus Sync(const ColumnFamilyData& cfd, const IOOptions& options,
                autovector<std::string>* synced) const;
  IOStatus Sync(const ColumnFamilyData& cfd,
                const IOOptions& options = IOOptions()) const {
    autovector<std::string> synced;
    return Sync(cfd, options, &synced);
  }

 private:
  static_assert(PathLayout::kMaxPaths <= 8, "path_ids_ has 8 bits");
  // Bit i: path id i.
  uint8_t path_ids_ = 0;
};

// Returns BlobReferenceInfo::path_mask of the SST `file` that a flush has
// written; 0 if all blob files are on path 0.
// own, external: the blob files that the edit of the flush adds.
// before: entries of blob direct write can also refer to blob files that an
//     earlier edit added to this.
uint8_t FlushedBlobPathMask(const FileMetaData& file,
                            const std::vector<BlobFileAddition>& own,
                            const std::vector<BlobFileAddition>& external,
                            const VersionStorageInfo& before);

}  // namespace ROCKSDB_NAMESPACE
