//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/dbformat.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_description.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_key_filter.h"
#include "db/delta/delta_store.h"
#include "db/output_validator.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class EventLogger;
class Version;
class VersionEdit;
class VersionSet;
struct CompactionIterationStats;
struct FileDescriptor;

// What one flush does with the merge operands of a column family that separates
// deltas: they go to a delta file and not into the SST file. A base (value or
// tombstone) goes into the SST file, and if the store may have older operands
// of its key, an anchor goes to another delta file. The same of range
// deletions. Files to which nothing was added do not come into being.
//
//   Begin() -> Start() -> Add()... -> AddRange()... -> Finish() -> AddTo(edit)
//                                                   -> Abandon()
//
// Invariants:
// * Exact anchors. Each base of the output that is newer than an operand of its
//   key in the store has an anchor of its sequence number in the same edit, and
//   so has each range deletion. Hence readers need not look at the LSM-tree to
//   know which operands are hidden, and compactions may zero or drop what hides
//   them there.
// * Only one flush of a column family is between Begin() and its end (see
//   FlushOrderGate), and it has the oldest memtable. So the store's older
//   operands are those of the Version given to Begin(), those that earlier
//   flushes of a recovery have written, and those of this flush.
// * An operand in a delta file is newer than all operands of its key in SST
//   files. So while the store has operands of a key, newer ones go there, too.
//   When the column family does not separate deltas any more, all others go
//   into the SST file again (old_keys_only): the store gets no new keys, and
//   comes to an end, however many merges there are.
// * What becomes of the edit does not matter here: files that it does not name
//   in the end are found by the next full scan, as SST files are.
//
// Between Begin() and the destructor the flush counts as running in the
// DeltaStore. Used by the flush's thread.
class DeltaFlush {
 public:
  // Which flush it is.
  struct Job {
    DeltaStore* store = nullptr;
    // As in DeltaKeyFilter.
    const DeltaVersion* base = nullptr;
    std::vector<std::shared_ptr<DeltaFileReader>> earlier;
    // Somebody reads the files before they are in a Version: see readers().
    bool keeps_readers = false;
    // Operands of keys of which the store has none stay in the SST file.
    bool old_keys_only = false;
    // The number of the SST file that the flush writes, or would write.
    uint64_t epoch = 0;
    uint32_t path_id = 0;
    // New ones of the DB. Needs no mutex.
    std::function<uint64_t()> new_file_number;
  };
  // How it writes files: as the SST file.
  struct Output {
    FileOptions file_options;
    WriteOptions write_options;
    ReadOptions read_options;
    Env::WriteLifeTimeHint write_hint = Env::WLTH_NOT_SET;
    TableFileCreationReason reason = TableFileCreationReason::kFlush;
    std::string db_id;
    int job_id = 0;
    EventLogger* event_logger = nullptr;  // may be nullptr
    // Reads the files again and compares, see paranoid_file_checks.
    bool verify_contents = false;
  };

  // nullptr if operands stay in the LSM-tree: the column family does not
  // separate deltas and has no delta files, or sequence numbers do not tell
  // what is visible (any_order, as in FlushMapping).
  // base: the current Version. sst_file: of the flush.
  // REQUIRES: DB mutex held; base outlives Finish() and Abandon().
  static std::unique_ptr<DeltaFlush> Begin(ColumnFamilyData* cfd,
                                           const Version& base,
                                           const FileDescriptor& sst_file,
                                           bool any_order,
                                           VersionSet* versions);
  // The same while the DB is opened: `earlier` flushes of it may be of any
  // column family.
  static std::unique_ptr<DeltaFlush> BeginRecovery(
      ColumnFamilyData* cfd, const Version& base,
      const FileDescriptor& sst_file, bool any_order, VersionSet* versions,
      const std::vector<std::unique_ptr<DeltaFlush>>& earlier);

  // REQUIRES of both, and of End(): DB mutex held
  explicit DeltaFlush(Job job);
  ~DeltaFlush();
  DeltaFlush(const DeltaFlush&) = delete;
  DeltaFlush& operator=(const DeltaFlush&) = delete;

  // Its files are in the Version, or will never be. The destructor does the
  // same.
  void End();

  const DeltaStore* store() const { return job_.store; }

  // REQUIRES from here to Abandon(): DB mutex not held. After a failure only
  // Abandon() may follow.
  void Start(Output output);

  // A point entry of the flush's output, in order. *taken: it must not go into
  // the SST file.
  // REQUIRES: internal_key is that of `key`
  Status Add(const ParsedInternalKey& key, const Slice& internal_key,
             const Slice& value, bool* taken);
  // A range deletion that goes into the SST file, after all point entries, in
  // the order of starts.
  Status AddRange(const RangeTombstone& range);

  // The files are complete, synced (their directory is not) and can be read.
  Status Finish();
  // Deletes them.
  // REQUIRES: not in an edit
  void Abandon();

  // REQUIRES: Finish() was successful, or nothing was added; once.
  void AddTo(VersionEdit* edit) const;

  bool HasFiles() const { return !files_.empty(); }
  const std::vector<DeltaFileDescription>& files() const { return files_; }
  // Of the files.
  uint64_t bytes_written() const;
  // What operands would have taken up in an SST file: keys and values.
  uint64_t operand_bytes() const { return operand_bytes_; }
  // For the statistics of memtables, in a flush of operands alone: stats are of
  // what it has read. payload and garbage may be nullptr.
  void CountPayload(const CompactionIterationStats& stats, uint64_t* payload,
                    uint64_t* garbage) const;
  // Of the files, if the job keeps them.
  const std::vector<std::shared_ptr<DeltaFileReader>>& readers() const {
    return readers_;
  }

 private:
  using Kind = DeltaFileDescription::Kind;

  static std::unique_ptr<DeltaFlush> New(ColumnFamilyData* cfd,
                                         const Version& base,
                                         const FileDescriptor& sst_file,
                                         VersionSet* versions, Job job);

  // One of the two files. Its builder is made when it is needed first.
  struct File {
    explicit File(Kind k) : kind(k) {}

    const Kind kind;
    std::unique_ptr<DeltaFileBuilder> builder;
    // With verify_contents: of the point entries.
    std::unique_ptr<OutputValidator> validator;
  };

  const DeltaTableFactory& tables() const { return *job_.store->tables(); }
  Status GetBuilder(File* file, DeltaFileBuilder** builder);
  // Is there an older operand of the key in the store, perhaps?
  bool MayHaveOlder();
  Status AddOperand(const ParsedInternalKey& key, const Slice& internal_key,
                    const Slice& value);
  // All entries of the key are known.
  Status FinishKey();
  bool MayHideOperands(const RangeTombstone& range) const;
  Status FinishFile(File* file);
  void LogFile(const DeltaFileDescription& description) const;

  const Job job_;
  Output output_;
  // From Start() to Finish().
  std::unique_ptr<DeltaKeyFilter> membership_;
  File operands_{Kind::kOperands};
  File anchors_{Kind::kAnchors};

  // The key whose entries come now, the newest first.
  std::string key_;
  bool has_key_ = false;
  std::vector<SequenceNumber> bases_;
  // MayHaveOlder(), once it was asked.
  std::optional<bool> may_have_older_;
  // Of the key; kMaxSequenceNumber if it has no operand.
  SequenceNumber oldest_of_key_ = kMaxSequenceNumber;

  // Of all operands.
  std::string first_operand_key_;
  std::string last_operand_key_;
  bool has_operands_ = false;
  SequenceNumber oldest_operand_ = kMaxSequenceNumber;
  uint64_t operand_bytes_ = 0;

  std::vector<DeltaFileDescription> files_;
  std::vector<std::shared_ptr<DeltaFileReader>> readers_;
};

}  // namespace ROCKSDB_NAMESPACE
