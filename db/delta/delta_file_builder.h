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
// Create(), then Add...() in order, then Finish() or Abandon(). The file is
// made by the first Add...(), so that a job need not know whether it will have
// anything for it: a builder to which nothing was added leaves no file.
//
// The first failure is kept: everything that follows returns it, and Finish()
// deletes the file. So does the destructor of a builder that was not finished.
// A file that was finished but whose edit failed is deleted by Abandon().
//
// With publish_later the file has a temporary name at first, and its own by
// Publish(): whoever looks for delta files without a MANIFEST does not find it
// before.
//
// It does not fsync the directory (DirFsyncOptions wants to know whether a file
// is new or was renamed), and it leaves to the job what follows from
// SstFileManager::IsMaxAllowedSpaceReached().
//
// Not thread-safe.
class DeltaFileBuilder {
 public:
  struct Options {
    // REQUIRES: of no other file of the DB, as cache keys come from it.
    uint64_t number = 0;
    uint32_t path_id = 0;
    DeltaFileDescription::Kind kind = DeltaFileDescription::Kind::kOperands;
    DeltaFileDescription::Tier tier = DeltaFileDescription::Tier::kFlushed;
    // 0 if the tier is kSorted, or with a global sequence number.
    uint64_t first_epoch = 0;
    uint64_t last_epoch = 0;
    // Of merged and sorted anchors: DeltaFileProperties::operands_number.
    uint64_t operands_number = 0;
    // Only for flushed anchors, whose sequence numbers are then all 0: the file
    // gets one for all of them by AssignGlobalSeq().
    bool has_global_seq = false;

    // Of the DB, for the unique id.
    std::string db_id;
    int job_id = 0;
    TableFileCreationReason reason = TableFileCreationReason::kMisc;
    FileOptions file_options;
    WriteOptions write_options;
    Env::WriteLifeTimeHint write_hint = Env::WLTH_NOT_SET;
    // Of the file, to preallocate space for it; 0: unknown.
    uint64_t expected_size = 0;
    bool publish_later = false;
  };

  // InvalidArgument if the options contradict each other, NotSupported for a
  // comparator with timestamps.
  static Status Create(const DeltaTableFactory& tables, const Options& options,
                       std::unique_ptr<DeltaFileBuilder>* builder);
  ~DeltaFileBuilder();
  DeltaFileBuilder(const DeltaFileBuilder&) = delete;
  DeltaFileBuilder& operator=(const DeltaFileBuilder&) = delete;

  // Entries have to come in the order of internal keys, and no two with the
  // same one: else Corruption. What does not belong into a file of this kind is
  // InvalidArgument.

  // REQUIRES: the kind is kOperands. internal_key: of type kTypeMerge.
  Status AddOperand(const Slice& internal_key, const Slice& value);

  // REQUIRES of both: the kind is kAnchors. Either of them does not care how
  // much the other has got.
  Status AddAnchor(const Slice& user_key, SequenceNumber seq);
  // Hides the keys in [start, end). Ranges have to come in the order of starts,
  // of one start the newest first; they may overlap.
  Status AddRangeAnchor(const Slice& start, const Slice& end,
                        SequenceNumber seq);

  // For which buckets the file is, in the order of their lower bounds, also
  // those of which it has nothing; and where the last one ends, if it does. See
  // DeltaFileLiveness for what depends on it.
  // REQUIRES: the tier is kSorted.
  Status SetBuckets(const std::vector<DeltaFileProperties::Bucket>& buckets,
                    const std::optional<std::string>& end = std::nullopt);

  // Instead of Options::operands_number, for a job that knows only in the end
  // whether it leaves a file of operands.
  // REQUIRES: merged or sorted anchors; Finish() was not called.
  Status SetOperandsNumber(uint64_t number);

  // Nothing was added.
  bool IsEmpty() const { return num_entries_ + num_range_anchors_ == 0; }
  // What is written, without the last block; once finished, of the file.
  uint64_t FileSize() const;
  uint64_t raw_bytes() const { return raw_bytes_; }

  // The file is complete and synced, and all of *description is set. If nothing
  // was added there is no file and the number in *description is 0.
  Status Finish(DeltaFileDescription* description);

  // Gives the file its name, if it has not got it yet.
  // REQUIRES: Finish() was successful.
  Status Publish();
  // By Publish(). Also if that has failed: a file system that reports an error
  // may have done it.
  bool MayBeRenamed() const { return may_be_renamed_; }

  // Deletes the file, if there is one, whatever its name is. False: it may be
  // left. Then it is an obsolete file like any other, found by the next full
  // scan; but this may be called again.
  // REQUIRES: no edit that names it has been, or may have been, committed.
  bool Abandon();

  // What came from the file system, for an error handler that looks at it.
  const IOStatus& io_status() const { return io_status_; }
  // Changes with Publish().
  const std::string& file_name() const { return file_name_; }

  // The anchors of a file that is to be ingested: for each user key that has
  // another entry than operands, and for its range deletions (nullptr: none).
  // The sequence numbers of both are ignored; points is moved.
  // REQUIRES of the options: has_global_seq.
  static Status BuildAnchorsOf(const DeltaTableFactory& tables,
                               const Options& options, InternalIterator* points,
                               FragmentedRangeTombstoneIterator* ranges,
                               DeltaFileDescription* description);
  // REQUIRES: has_global_seq; no reader was opened with the description.
  static void AssignGlobalSeq(SequenceNumber seq, uint64_t epoch,
                              DeltaFileDescription* description);

 private:
  DeltaFileBuilder(std::shared_ptr<const DeltaTableSettings> settings,
                   const Options& options);

  Status CheckOptions() const;
  Status CheckKind(DeltaFileDescription::Kind kind) const;
  // The file and the table builder, if they are not there yet.
  Status Open();
  // REQUIRES: the internal key has a type that the kind allows.
  Status AddPoint(const Slice& internal_key, const Slice& user_key,
                  SequenceNumber seq, const Slice& value);
  void NoteSeq(SequenceNumber seq);
  Status FinishFile();
  void Describe(DeltaFileDescription* description) const;
  std::string OwnName() const;
  // True if there is no such file any more.
  bool Delete(const std::string& file_name) const;
  // Keeps the first failure.
  Status Fail(const Status& s);
  Status FailIO(const IOStatus& s);
  Status Corrupt(const char* what) const;

  // The table builder has references to these.
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
  std::string last_key_;        // internal
  std::string smallest_start_;  // of ranges
  std::string last_start_;      // internal
  std::string largest_end_;
};

}  // namespace ROCKSDB_NAMESPACE
