//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/delta/delta_file_liveness.h"
#include "db/delta/delta_file_probe.h"
#include "db/delta/delta_flush.h"
#include "options/cf_options.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class DeltaFileReader;
class RepairPaths;
class VersionEdit;
struct FileDescriptor;
struct FileMetaData;

// The delta files of a database under repair. Without them in the new MANIFEST
// the next open would delete them.
//
// Prepare() decides what counts, see DeltaFileLiveness, before the repair has
// changed anything; what cannot be decided ends it. A file that cannot be read
// does so, too: nobody could tell what is missing, and it may be readable next
// time.
//
// Operands of WALs go to delta files as in a flush, with anchors: in an SST
// file they would be above operands that are older. A WAL that is still there
// may have been flushed, so operands that delta files have are left out; others
// may be in values of SST files, see below. Only of a column family that does
// not separate deltas any more, and has no delta files, they go to SST files.
//
// A fold may have written its SST file, but not the delta files without the
// operands; or it has come to its end, but the operands are still in a WAL, as
// those that a flush has merged with a value may be. So what of an SST file
// hides operands, but has no anchor, gets one: later compactions could not
// tell.
//
// Files that do not count are for the caller to archive at the end: unused().
//
// Not thread-safe.
class DeltaRepair {
 public:
  // nullptr: the repair gives the column family up.
  using OptionsOf =
      std::function<const ColumnFamilyOptions*(const std::string& name)>;
  using NewFileNumber = std::function<uint64_t()>;

  // `options` and `file_options` must outlive this object.
  DeltaRepair(const ImmutableOptions& options,
              const FileOptions& file_options);
  ~DeltaRepair();
  DeltaRepair(const DeltaRepair&) = delete;
  DeltaRepair& operator=(const DeltaRepair&) = delete;

  void FoundFile(uint64_t number, const std::string& directory);

  // Reads all files that were found.
  Status Prepare(const OptionsOf& options_of);

  // By id: the names of column families that keep delta files, as far as that
  // is known yet.
  const std::map<uint32_t, std::string>& families() const {
    return family_names_;
  }
  // Larger than all epochs of files: a file number to go on from.
  uint64_t NextNumber() const { return next_number_; }
  // Of all files that count, new ones included.
  SequenceNumber LargestSequence() const { return largest_seq_; }

  // ---- What a WAL has of a column family.

  struct WalFlush {
    // Of what the table is to be built: the memtable, or what it has but for
    // operands that are in delta files, or hidden by anchors in them.
    InternalIterator* input = nullptr;
    // For TableBuilderOptions. nullptr: operands stay in the SST file.
    std::unique_ptr<DeltaFlush> flush;

    std::unique_ptr<InternalIterator> filter;  // behind `input`
  };
  // REQUIRES: WALs come in order; the memtable's iterator outlives the result.
  Status BeginFlush(ColumnFamilyData* cfd, const FileDescriptor& sst_file,
                    InternalIterator* memtable,
                    const NewFileNumber& new_number, WalFlush* wal_flush);
  // The table was built. What it left beside is durable, and will be in the
  // edit.
  Status FinishFlush(const ColumnFamilyData& cfd, const WalFlush& wal_flush);

  // An SST file of the column family. A failure is returned by AddFiles().
  // REQUIRES: the file counts, and all of `table` is set; all WALs were
  // flushed.
  void FoundTable(const ColumnFamilyData& cfd, const FileMetaData& table,
                  RepairPaths* paths);

  // ---- At the end.

  // Adds the delta files of the column family to `edit`, and what tells of its
  // buckets. May write a new file.
  Status AddFiles(ColumnFamilyData* cfd, const NewFileNumber& new_number,
                  VersionEdit* edit);

  // The paths of files that are in no edit.
  const std::vector<std::string>& unused() const { return unused_; }

 private:
  struct Family;
  class KnownOperandFilter;

  Status ReadFiles(const OptionsOf& options_of);
  Status PrepareFamily(Family* family);
  // nullptr if it keeps no delta files.
  Family* FamilyOf(const ColumnFamilyData& cfd);
  static Status FindMissingAnchors(const ColumnFamilyData& cfd,
                                   const FileMetaData& table,
                                   RepairPaths* paths, Family* family);
  // anchors_to_copy, and those that were missing.
  Status WriteAnchors(Family* family, ColumnFamilyData* cfd,
                      const NewFileNumber& new_number,
                      DeltaFileDescription* description);

  const ImmutableOptions& options_;
  const FileOptions& file_options_;
  // The directories of each number: more than one is an error.
  std::map<uint64_t, std::set<std::string>> found_;
  std::map<uint32_t, std::unique_ptr<Family>> families_;
  std::map<uint32_t, std::string> family_names_;
  uint64_t next_number_ = 1;
  SequenceNumber largest_seq_ = 0;
  std::vector<std::string> unused_;
};

}  // namespace ROCKSDB_NAMESPACE
