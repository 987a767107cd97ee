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
#include "monitoring/instrumented_mutex.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class EventLogger;
class ReadOnlyMemTable;
class Version;
class VersionEdit;
class VersionSet;
struct CompactionIterationStats;
struct FileDescriptor;

// Writes the merge operands of one flush of a column family that separates
// deltas: they go to a delta file and not into the SST file. A base (value or
// tombstone) goes into the SST file and, if the store may have older operands
// of its key, an anchor goes to another delta file. The same applies to range
// deletions. A file that receives no entry is not created.
//
//   Begin() -> Start() -> Add()... -> AddRange()... -> Publish() ->
//   AddTo(edit) -> the edit -> Close()
//   After a failure before the edit is written: Abandon() -> Close()
//
// docs/architecture.md, section 11, describes these steps for all jobs.
//
// Invariants:
// * Exact anchors. Each base of the output that is newer than an operand of its
//   key in the store has an anchor with its sequence number in the same edit,
//   and so has each range deletion. Hence readers need not look at the LSM-tree
//   to know which operands are hidden, and compactions may zero the sequence
//   numbers of entries that hide operands, or drop the entries.
// * Only one flush of a column family is between Begin() and its end (see
//   FlushOrderGate), and it has the oldest memtable. So the store's older
//   operands are those of the Version given to Begin(), those that earlier
//   flushes of a recovery have written, and those of this flush.
// * An operand in a delta file is newer than all operands of its key in SST
//   files. So while the store has operands of a key, newer operands of the key
//   go there, too. When the column family no longer separates deltas, all other
//   operands go into the SST file again (old_keys_only): the store gets no new
//   keys and becomes empty eventually, however many merges there are.
// * The flush does not depend on whether the edit is committed: files that it
//   does not name in the end are found by the next full scan, as SST files are.
//
// The flush counts as running in the DeltaStore from Begin() to Close() or the
// destructor. Used by the flush's thread only.
class DeltaFlush {
 public:
  // Describes the flush.
  struct Job {
    DeltaStore* store = nullptr;
    // See DeltaKeyFilter.
    const DeltaVersion* base = nullptr;
    std::vector<std::shared_ptr<DeltaFileReader>> earlier;
    // Keep readers of the files, as they are read before they are in a Version:
    // see readers().
    bool keeps_readers = false;
    // Leave operands of keys that have no operands in the store in the SST
    // file.
    bool old_keys_only = false;
    // The number of the SST file that the flush writes, or would write.
    uint64_t epoch = 0;
    // The first sequence number in the memtables; 0: unknown, or not all that
    // is in them is written. For DeltaFileProperties::first_seq.
    SequenceNumber first_seq = 0;
    uint32_t path_id = 0;
    // Allocates a file number of the DB. Must not require the DB mutex.
    std::function<uint64_t()> new_file_number;
  };
  // How files are written: like the SST file.
  struct Output {
    FileOptions file_options;
    WriteOptions write_options;
    ReadOptions read_options;
    Env::WriteLifeTimeHint write_hint = Env::WLTH_NOT_SET;
    TableFileCreationReason reason = TableFileCreationReason::kFlush;
    std::string db_id;
    int job_id = 0;
    EventLogger* event_logger = nullptr;  // may be nullptr
    // Reads the files back and compares the entries, see paranoid_file_checks.
    bool verify_contents = false;
  };

  using MemTables = autovector<ReadOnlyMemTable*>;

  // Begins a flush. Returns nullptr if operands stay in the LSM-tree: the
  // column family does not separate deltas and has no delta files, or
  // visibility does not follow sequence numbers (any_order, as in
  // FlushMapping).
  // base: the current Version.
  // sst_file: the SST file of the flush.
  // memtables: all that the flush writes.
  // REQUIRES: DB mutex held; base outlives Publish() and Abandon().
  static std::unique_ptr<DeltaFlush> Begin(ColumnFamilyData* cfd,
                                           const Version& base,
                                           const FileDescriptor& sst_file,
                                           const MemTables& memtables,
                                           bool any_order,
                                           VersionSet* versions);
  // Begins a flush of a recovery, see Begin().
  // first_seq: see Job.
  // earlier: the earlier flushes of the recovery, of any column family.
  static std::unique_ptr<DeltaFlush> BeginRecovery(
      ColumnFamilyData* cfd, const Version& base,
      const FileDescriptor& sst_file, SequenceNumber first_seq, bool any_order,
      VersionSet* versions,
      const std::vector<std::unique_ptr<DeltaFlush>>& earlier);

  // REQUIRES: DB mutex held
  explicit DeltaFlush(Job job);
  // REQUIRES: DB mutex held
  ~DeltaFlush();
  DeltaFlush(const DeltaFlush&) = delete;
  DeltaFlush& operator=(const DeltaFlush&) = delete;

  // Ends the flush: its files are in the Version, or will never be. The
  // destructor calls it, too.
  // REQUIRES: DB mutex held
  void Close();

  const DeltaStore* store() const { return job_.store; }

  // Prepares for Add(). If a call from here on fails, only Abandon() may
  // follow.
  // REQUIRES: DB mutex not held
  void Start(Output output);

  // Adds the next point entry of the flush's output, in order. Sets *taken to
  // true if the entry must not go into the SST file.
  // REQUIRES: internal_key is that of `key`; DB mutex not held
  Status Add(const ParsedInternalKey& key, const Slice& internal_key,
             const Slice& value, bool* taken);
  // Adds a range deletion of the SST file, after all point entries, in the
  // order of start keys.
  // REQUIRES: DB mutex not held
  Status AddRange(const RangeTombstone& range);

  // Completes the files. On success they are synced (but their directory is
  // not) and can be read.
  // REQUIRES: DB mutex not held
  Status Publish();
  // Deletes the files.
  // REQUIRES: no edit that names the files has been, or may have been,
  // committed; DB mutex not held
  void Abandon();
  // The same for complete files of a flush that is going to be repeated. They
  // would stay until the next full scan, and a repair would have to tell them
  // from those of the repetition.
  // REQUIRES: like Abandon(), but `mutex`, that of the DB, is held. It is
  // released and acquired again.
  void AbandonForRepetition(InstrumentedMutex* mutex);

  // Adds the files to the edit.
  // REQUIRES: called once; Publish() was successful, or no entry was added.
  void AddTo(VersionEdit* edit) const;

  bool HasFiles() const { return !files_.empty(); }
  const std::vector<DeltaFileDescription>& files() const { return files_; }
  // Returns the size of the files.
  uint64_t bytes_written() const;
  // Returns the bytes of keys and values that the operands would have had in an
  // SST file.
  uint64_t operand_bytes() const { return operand_bytes_; }
  // Sets the memtable statistics of a flush that wrote operands only.
  // stats: describes the entries that the flush has read.
  // payload, garbage: may be nullptr.
  void CountPayload(const CompactionIterationStats& stats, uint64_t* payload,
                    uint64_t* garbage) const;
  // Returns readers of the files if Job::keeps_readers is true.
  const std::vector<std::shared_ptr<DeltaFileReader>>& readers() const {
    return readers_;
  }

 private:
  using Kind = DeltaFileDescription::Kind;

  static std::unique_ptr<DeltaFlush> New(ColumnFamilyData* cfd,
                                         const Version& base,
                                         const FileDescriptor& sst_file,
                                         VersionSet* versions, Job job);

  // One of the two files. Its builder is made when first needed.
  struct File {
    explicit File(Kind k) : kind(k) {}

    const Kind kind;
    std::unique_ptr<DeltaFileBuilder> builder;
    // With verify_contents: checks the point entries.
    std::unique_ptr<OutputValidator> validator;
  };

  const DeltaTableFactory& tables() const { return *job_.store->tables(); }
  Status GetBuilder(File* file, DeltaFileBuilder** builder);
  // Returns true if the store may have older operands of key_.
  bool MayHaveOlder();
  Status AddOperand(const ParsedInternalKey& key, const Slice& internal_key,
                    const Slice& value);
  // Writes the anchors of key_, of which all entries were added.
  Status FinishKey();
  bool MayHideOperands(const RangeTombstone& range) const;
  void NoteSeq(SequenceNumber seq);
  Status FinishFile(File* file);
  void LogFile(const DeltaFileDescription& description) const;

  const Job job_;
  Output output_;
  // Exists from Start() to Publish() or Abandon().
  std::unique_ptr<DeltaKeyFilter> membership_;
  File operands_{Kind::kOperands};
  File anchors_{Kind::kAnchors};

  // The key whose entries are being added, newest first.
  std::string key_;
  bool has_key_ = false;
  std::vector<SequenceNumber> bases_;
  // Result of MayHaveOlder() for key_, once it was called.
  std::optional<bool> may_have_older_;
  // Oldest operand of key_ in this flush; kMaxSequenceNumber if there is none.
  SequenceNumber oldest_of_key_ = kMaxSequenceNumber;

  // Range of keys and oldest sequence number of all operands.
  std::string first_operand_key_;
  std::string last_operand_key_;
  bool has_operands_ = false;
  SequenceNumber oldest_operand_ = kMaxSequenceNumber;
  uint64_t operand_bytes_ = 0;
  // Sequence numbers of all entries.
  SequenceNumber smallest_seq_ = kMaxSequenceNumber;
  SequenceNumber largest_seq_ = 0;

  std::vector<DeltaFileDescription> files_;
  std::vector<std::shared_ptr<DeltaFileReader>> readers_;
};

}  // namespace ROCKSDB_NAMESPACE
