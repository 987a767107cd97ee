//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/delta/delta_file_description.h"
#include "db/delta/delta_file_properties.h"
#include "db/delta/delta_table_factory.h"
#include "db/table_properties_collector.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class FragmentedRangeTombstoneIterator;
class TableBuilder;
class WritableFileWriter;

// Writes one delta file: see docs/formats.md.
//
// Call order: Create(), then Add...() in order, then Finish() or Abandon(). The
// first Add...() creates the file, so that a job need not know in advance
// whether it has any entries: a builder without entries leaves no file.
//
// The first failure is kept: all later calls return it, and Finish() deletes
// the file. The destructor of an unfinished builder deletes the file, too. A
// file that was finished but whose edit failed is deleted by Abandon().
//
// With publish_later the file has a temporary name until Publish(), so that a
// search for delta files without a MANIFEST does not find it before.
//
// The builder does not fsync the directory (DirFsyncOptions depends on whether
// a file is new or was renamed), and it leaves it to the job to act on
// SstFileManager::IsMaxAllowedSpaceReached().
//
// Not thread-safe.
class DeltaFileBuilder {
 public:
  struct Options {
    // REQUIRES: unique among the files of the DB, as cache keys are derived
    // from it.
    uint64_t number = 0;
    uint32_t path_id = 0;
    DeltaFileDescription::Kind kind = DeltaFileDescription::Kind::kOperands;
    DeltaFileDescription::Tier tier = DeltaFileDescription::Tier::kFlushed;
    // 0 if the tier is kSorted, or with a global sequence number.
    uint64_t first_epoch = 0;
    uint64_t last_epoch = 0;
    // For merged and sorted anchors: DeltaFileProperties::operands_number.
    uint64_t operands_number = 0;
    // Only for flushed anchors, whose sequence numbers are then all 0:
    // AssignGlobalSeq() assigns one number to all of them. For anchors that
    // are true only if the MANIFEST has them: a repair does not take them.
    bool has_global_seq = false;

    // Id of the DB, for the unique id of the file.
    std::string db_id;
    int job_id = 0;
    TableFileCreationReason reason = TableFileCreationReason::kMisc;
    FileOptions file_options;
    WriteOptions write_options;
    Env::WriteLifeTimeHint write_hint = Env::WLTH_NOT_SET;
    // Bytes of the file, to preallocate space; 0: unknown.
    uint64_t expected_size = 0;
    bool publish_later = false;
  };

  // Returns InvalidArgument if the options contradict each other, NotSupported
  // for a comparator with timestamps.
  static Status Create(const DeltaTableFactory& tables, const Options& options,
                       std::unique_ptr<DeltaFileBuilder>* builder);
  ~DeltaFileBuilder();
  DeltaFileBuilder(const DeltaFileBuilder&) = delete;
  DeltaFileBuilder& operator=(const DeltaFileBuilder&) = delete;

  // Entries must come in the strict order of internal keys; otherwise the
  // result is Corruption. An entry that does not fit the kind of the file
  // results in InvalidArgument.

  // Adds an operand.
  // REQUIRES: the kind is kOperands; internal_key has type kTypeMerge.
  Status AddOperand(const Slice& internal_key, const Slice& value);

  // Adds a point anchor. The order of point anchors relative to range anchors
  // does not matter.
  // REQUIRES: the kind is kAnchors.
  Status AddAnchor(const Slice& user_key, SequenceNumber seq);
  // Adds a range anchor, which hides the keys in [start, end). Ranges must come
  // in the order of starts, those with the same start newest first and with
  // different sequence numbers; they may overlap.
  // REQUIRES: the kind is kAnchors.
  Status AddRangeAnchor(const Slice& start, const Slice& end,
                        SequenceNumber seq);

  // Sets the buckets that the file is for, in the order of their lower bounds,
  // including buckets without entries; and the upper bound of the last one, if
  // there is one. DeltaFileLiveness depends on them.
  // REQUIRES: the tier is kSorted.
  Status SetBuckets(const std::vector<DeltaFileProperties::Bucket>& buckets,
                    const std::optional<std::string>& end = std::nullopt);

  // Replaces Options::operands_number, for a job that knows only at the end
  // whether it leaves a file of operands.
  // REQUIRES: merged or sorted anchors; Finish() was not called.
  Status SetOperandsNumber(uint64_t number);

  // Sets the first and the last sequence number of what the flush has read, see
  // DeltaFileProperties.
  // REQUIRES: flushed operands; Finish() was not called; 0 < first <= last.
  Status SetFlushSeqs(SequenceNumber first, SequenceNumber last);

  // Returns true if nothing was added.
  bool IsEmpty() const { return num_entries_ + num_range_anchors_ == 0; }
  // Returns the bytes written so far, without the last block; once finished,
  // the size of the file.
  uint64_t FileSize() const;
  uint64_t raw_bytes() const { return raw_bytes_; }

  // Completes and syncs the file, and sets *description. If nothing was added
  // there is no file, and the number in *description is 0.
  Status Finish(DeltaFileDescription* description);

  // Gives the file its final name, unless it has it already.
  // REQUIRES: Finish() was successful.
  Status Publish();
  // Returns true if Publish() may have renamed the file, even if it has failed:
  // a file system that reports an error may have renamed the file.
  bool MayBeRenamed() const { return may_be_renamed_; }

  // Deletes the file, if there is one, under its temporary or its final name.
  // Returns false if it may be left. Then it is found by the next full scan
  // like any obsolete file; but Abandon() may also be called again.
  // REQUIRES: no edit that names the file has been, or may have been,
  // committed.
  bool Abandon();

  // Returns the error of the file system, for error handlers that inspect it.
  const IOStatus& io_status() const { return io_status_; }
  // Returns the current name of the file, which Publish() changes.
  const std::string& file_name() const { return file_name_; }

  // Writes the anchors of a file that is to be ingested: one for each user key,
  // and one for each of its range deletions (nullptr: none). Both may have any
  // sequence numbers. Returns NotSupported if there is an operand, which an
  // anchor would hide. Moves `points`.
  // REQUIRES: options.has_global_seq.
  static Status BuildAnchorsOf(const DeltaTableFactory& tables,
                               const Options& options, InternalIterator* points,
                               FragmentedRangeTombstoneIterator* ranges,
                               DeltaFileDescription* description);
  // Sets the sequence number and epoch of all anchors in the description.
  // REQUIRES: has_global_seq; no reader was opened with the description.
  static void AssignGlobalSeq(SequenceNumber seq, uint64_t epoch,
                              DeltaFileDescription* description);

 private:
  DeltaFileBuilder(std::shared_ptr<const DeltaTableSettings> settings,
                   const Options& options);

  Status CheckOptions() const;
  Status CheckKind(DeltaFileDescription::Kind kind) const;
  // Creates the file and the table builder, unless they exist.
  Status Open();
  // REQUIRES: the internal key has a type that the kind allows.
  Status AddPoint(const Slice& internal_key, const Slice& user_key,
                  SequenceNumber seq, const Slice& value);
  void NoteSeq(SequenceNumber seq);
  Status FinishFile();
  void Describe(DeltaFileDescription* description) const;
  std::string OwnName() const;
  // Deletes the file. Returns true if it does not exist afterwards.
  bool Delete(const std::string& file_name) const;
  // Keeps the first failure, and returns it.
  Status Fail(const Status& s);
  Status FailIO(const IOStatus& s);
  Status Corrupt(const char* what) const;

  // The table builder refers to these members.
  const std::shared_ptr<const DeltaTableSettings> settings_;
  const Options options_;
  const ReadOptions read_options_;
  std::string file_name_;
  DeltaFileProperties properties_;
  InternalTblPropCollFactories collector_factories_;

  std::unique_ptr<WritableFileWriter> file_;
  std::unique_ptr<TableBuilder> table_;
  Status status_;
  IOStatus io_status_;
  bool file_exists_ = false;
  bool may_be_renamed_ = false;
  bool is_finished_ = false;
  bool is_reported_ = false;  // to the SstFileManager

  uint64_t file_size_ = 0;  // once finished
  std::string file_checksum_;
  std::string file_checksum_func_name_;

  uint64_t num_entries_ = 0;
  uint64_t num_range_anchors_ = 0;
  uint64_t raw_bytes_ = 0;
  SequenceNumber smallest_seq_ = kMaxSequenceNumber;
  SequenceNumber largest_seq_ = 0;
  std::string smallest_key_;
  std::string last_key_;        // internal key
  std::string smallest_start_;  // of range anchors
  std::string last_start_;      // internal key
  std::string largest_end_;
};

}  // namespace ROCKSDB_NAMESPACE
