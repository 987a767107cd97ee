//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_description.h"
#include "db/delta/delta_merge_pass.h"
#include "db/delta/delta_output_check.h"
#include "db/delta/delta_version.h"
#include "db/output_validator.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class FSDirectory;

// Merges all flushed files up to an epoch into at most two merged files, one of
// operands and one of anchors, which cover all epochs of the inputs.
//
//   Run() -> Publish() -> AddTo(edit) -> the edit
//   After a failure before the edit: Abandon()
//
// docs/architecture.md, section 11, describes these steps for all jobs.
//
// Of the anchors of a key, the newest one is kept, as older operands of the key
// may be in other files, and those that snapshots need.
//
// Invariants, on which DeltaFileLiveness relies:
// * The file of operands is complete before the file of anchors, which names
//   it.
// * There is always a merged file: if no entry is left, the job writes a file
//   with one anchor that hides nothing (its sequence number is 0).
//
// Not thread-safe; runs without the DB mutex.
class DeltaMergeJob {
 public:
  using FilePtr = DeltaVersion::FilePtr;

  struct Context {
    DeltaMergePass::Context pass;
    // How files are written: number, kind, tier, epochs and operands_number are
    // the job's.
    DeltaFileBuilder::Options output;
    // Allocates a file number of the DB. Must not require the DB mutex.
    std::function<uint64_t()> new_file_number;
    DeltaOutputChecks checks;
  };

  // inputs: all flushed files up to an epoch of the current Version, which
  // stays pinned. Not empty. The rules of DeltaVersion for dropping references
  // apply to destroying the job.
  DeltaMergeJob(Context context, std::vector<FilePtr> inputs);
  // Leaves the files in place if Run() was successful and Abandon() was not
  // called.
  ~DeltaMergeJob();
  DeltaMergeJob(const DeltaMergeJob&) = delete;
  DeltaMergeJob& operator=(const DeltaMergeJob&) = delete;

  // Writes the files. On success they are complete, synced (but their directory
  // is not) and can be opened. On failure no files are left.
  // REQUIRES: called once.
  Status Run();

  // Makes the names of the files durable.
  // directory: the directory of all files.
  // REQUIRES: Run() was successful.
  Status Publish(FSDirectory* directory);

  // Adds the files, and the removal of the inputs, to the edit.
  // REQUIRES: Run() was successful.
  void AddTo(DeltaEdit* edit) const;

  // Deletes the files.
  // REQUIRES: no edit that names them has been, or may have been, committed.
  void Abandon();

  const std::vector<DeltaFileDescription>& files() const { return files_; }
  const DeltaMergePass::Stats& stats() const { return pass_.stats(); }
  uint64_t bytes_read() const;     // of files
  uint64_t bytes_written() const;  // of files
  // Returns the error of the file system, for error handlers that inspect it.
  const IOStatus& io_status() const { return io_status_; }

 private:
  using Kind = DeltaFileDescription::Kind;
  class Sink;

  // One of the two files.
  struct Output {
    explicit Output(Kind k) : kind(k) {}

    const Kind kind;
    // Made when first needed.
    std::unique_ptr<DeltaFileBuilder> builder;
    // With checks.entries: checks the point entries.
    std::unique_ptr<OutputValidator> validator;

    bool IsEmpty() const { return builder == nullptr || builder->IsEmpty(); }
  };

  Status RunPass();
  Status GetBuilder(Output* output);
  Status AddAnchor(const Slice& user_key, SequenceNumber seq);
  // Keeps the file system's first error in io_status_, and returns s.
  Status Note(const Status& s, const Output& output);
  Status Finish(Output* output);

  const Context context_;
  const std::vector<FilePtr> inputs_;
  uint64_t first_epoch_ = UINT64_MAX;
  uint64_t last_epoch_ = 0;
  DeltaMergePass pass_;
  Output operands_{Kind::kOperands};
  Output anchors_{Kind::kAnchors};
  std::vector<DeltaFileDescription> files_;
  IOStatus io_status_;
};

}  // namespace ROCKSDB_NAMESPACE
