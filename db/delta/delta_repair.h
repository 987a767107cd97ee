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
class ColumnFamilySet;
class DeltaFileReader;
class MemTable;
class RepairPaths;
class VersionEdit;
struct FileDescriptor;
struct FileMetaData;

// Repairs the delta files of a database. Files that the new MANIFEST does not
// have would be deleted by the next open.
//
// Prepare() decides which files count (see DeltaFileLiveness) before the repair
// has changed anything; if that cannot be decided, the repair fails. It also
// fails if a file cannot be read: it would be unknown what is missing, and the
// file may be readable next time.
//
// Operands of WALs go to delta files as in a flush, with anchors: in an SST
// file they would count as older than the operands of delta files. A WAL may
// have been flushed already, so operands that delta files have are left out;
// others may be part of values in SST files, see below. Operands go to SST
// files only if the column family no longer separates deltas and has no delta
// files.
//
// A fold may have written its SST file, but not the delta files without the
// operands; or it has finished, but the operands are still in a WAL. The latter
// also holds for operands that a flush has merged with a value. So each entry
// of an SST file that hides operands but has no anchor gets one; later
// compactions could not detect this.
//
// The caller archives files that do not count at the end: unused().
//
// Not thread-safe.
class DeltaRepair {
 public:
  // Returns the options of a column family; nullptr: the repair drops it.
  using OptionsOf =
      std::function<const ColumnFamilyOptions*(const std::string& name)>;
  using NewFileNumber = std::function<uint64_t()>;

  // REQUIRES: `options` and `file_options` outlive this object.
  DeltaRepair(const ImmutableOptions& options, const FileOptions& file_options);
  ~DeltaRepair();
  DeltaRepair(const DeltaRepair&) = delete;
  DeltaRepair& operator=(const DeltaRepair&) = delete;

  // Adds a delta file that was found on disk.
  void FoundFile(uint64_t number, const std::string& directory);

  // Reads all files that were passed to FoundFile().
  Status Prepare(const OptionsOf& options_of);

  // Names of the column families that keep delta files, by id, as far as known.
  const std::map<uint32_t, std::string>& families() const {
    return family_names_;
  }
  // Returns a file number to continue from, larger than all epochs of files.
  uint64_t NextNumber() const { return next_number_; }
  // Returns the largest sequence number of all files that count, including new
  // ones.
  SequenceNumber LargestSequence() const { return largest_seq_; }

  // ---- The data of a column family in a WAL.

  struct WalFlush {
    // The input of the table: what KnownOperandFilter makes of the memtable's
    // entries.
    InternalIterator* input = nullptr;
    // For TableBuilderOptions. nullptr: operands stay in the SST file.
    std::unique_ptr<DeltaFlush> flush;

    std::unique_ptr<InternalIterator> filter;  // owns `input`, if filtered
  };
  // Prepares the flush of a memtable that a WAL was read into.
  // input: iterator over the memtable.
  // REQUIRES: WALs come in order; memtable and input outlive the result.
  Status BeginFlush(ColumnFamilyData* cfd, const FileDescriptor& sst_file,
                    MemTable* memtable, InternalIterator* input,
                    const NewFileNumber& new_number, WalFlush* wal_flush);
  // To be called after the table was built: makes the delta files of the flush
  // durable, for AddFiles() to add them to the edit.
  // built: the result of building the table; returned if it is not OK.
  Status FinishFlush(const ColumnFamilyData& cfd, const FileMetaData& table,
                     const WalFlush& wal_flush, const Status& built);
  // Returns the column families in the order in which a WAL must be flushed:
  // first those that separate deltas. If one of these fails, the WAL is kept,
  // and the next repair flushes it again. It knows what they have written, but
  // would count the operands of another family twice.
  std::vector<ColumnFamilyData*> FlushOrder(ColumnFamilySet* families) const;
  // To be called if a flush has failed, or its directory cannot be synced.
  void NoteFailedFlush(const ColumnFamilyData& cfd, const Status& s);
  // To be called if a WAL cannot be opened.
  void NoteUnreadWal(ColumnFamilySet* families, const Status& s);
  // Returns the error of a flush of a column family with delta files. The
  // repair fails then, and keeps the WAL: the flush may succeed next time.
  const Status& status() const { return status_; }

  // Finds entries of an SST file that need anchors. A failure is returned by
  // AddFiles().
  // REQUIRES: the file counts, and all fields of `table` are set; all WALs were
  // flushed.
  void FoundTable(const ColumnFamilyData& cfd, const FileMetaData& table,
                  RepairPaths* paths);

  // ---- At the end.

  // Gives the epoch numbers of the tables of a column family that separates
  // deltas to the same tables in the order of RepairTableOrder.
  // tables: all tables of the column family, on level 0; the first one is the
  //     newest by its epoch number.
  Status OrderTables(const ColumnFamilyData& cfd,
                     const std::vector<FileMetaData*>& tables,
                     RepairPaths* paths);

  // Adds the delta files and the buckets of the column family to `edit`. May
  // write a new file.
  Status AddFiles(ColumnFamilyData* cfd, const NewFileNumber& new_number,
                  VersionEdit* edit);

  // Returns the paths of files that are in no edit.
  const std::vector<std::string>& unused() const { return unused_; }

 private:
  struct Family;
  struct AnchorInput;
  class WalSource;

  Status ReadFiles(const OptionsOf& options_of);
  Status PrepareFamily(Family* family);
  // Keeps an error of the flush of a WAL.
  const Status& SetStatus(const ColumnFamilyData& cfd, const Status& s);
  Status KeepFiles(const ColumnFamilyData& cfd, const FileMetaData& table,
                   const DeltaFlush& flush);
  // Returns nullptr if the column family keeps no delta files.
  Family* FamilyOf(const ColumnFamilyData& cfd) const;
  // Returns true if the column family keeps or makes delta files.
  bool SeparatesDeltas(const ColumnFamilyData& cfd) const;
  static Status FindMissingAnchors(const ColumnFamilyData& cfd,
                                   const FileMetaData& table,
                                   RepairPaths* paths, Family* family);
  // Opens the anchors of anchors_to_copy and the missing anchors.
  Status OpenAnchors(const Family& family, AnchorInput* input) const;
  static Status CopyAnchors(const AnchorInput& input,
                            DeltaFileBuilder* builder);
  // Writes the anchors of anchors_to_copy and the missing anchors to a new
  // file.
  Status WriteAnchors(Family* family, ColumnFamilyData* cfd,
                      const NewFileNumber& new_number,
                      DeltaFileDescription* description);

  const ImmutableOptions& options_;
  const FileOptions& file_options_;
  // The directories of each file number; more than one is an error.
  std::map<uint64_t, std::set<std::string>> found_;
  std::map<uint32_t, std::unique_ptr<Family>> families_;
  std::map<uint32_t, std::string> family_names_;
  uint64_t next_number_ = 1;
  SequenceNumber largest_seq_ = 0;
  std::vector<std::string> unused_;
  Status status_;
};

}  // namespace ROCKSDB_NAMESPACE
