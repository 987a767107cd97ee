//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_merge_pass.h"
#include "db/delta/delta_version.h"
#include "db/strata/db_strata.h"
#include "options/cf_options.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DeltaStore;
class FSDirectory;
class Version;
struct JobContext;

// What the passes of a merge or a collection need of the DB while they run:
// the Version and its delta files, options, snapshots, a compaction filter.
//
// Invariants:
// 1. The Version, in which the files of the job are, stays while the object
//    lives.
// 2. The list of snapshots is taken when the files of the job are known. So a
//    reader that finds what the job leaves, and that has no snapshot of the
//    list, reads at a later sequence number than all that the job has seen.
//
// Used by the thread of the job.
class DBStrata::DeltaJobRun {
 public:
  // Pins the current Version.
  // REQUIRES: DB mutex held; job and job_context outlive this object.
  DeltaJobRun(DBStrata* strata, const BackgroundDeltaJob* job,
              JobContext* job_context);
  // REQUIRES: DB mutex held.
  ~DeltaJobRun();
  DeltaJobRun(const DeltaJobRun&) = delete;
  DeltaJobRun& operator=(const DeltaJobRun&) = delete;

  Version* version() const { return version_; }
  // Returns nullptr if there are no delta files.
  const std::shared_ptr<const DeltaVersion>& deltas() const { return deltas_; }
  const MutableCFOptions& moptions() const { return moptions_; }
  const ReadOptions& read_options() const { return read_options_; }
  const ImmutableOptions& ioptions() const;
  DeltaStore* store() const;
  const char* cf_name() const;
  int job_id() const;
  // Returns the time since the constructor.
  uint64_t micros() const;

  // Sets all of the context but the filter.
  // REQUIRES: DB mutex held; the context is not used after this object.
  void MakePassContext(DeltaMergePass::Context* context);
  // Returns how files are written to that path, and sets directory().
  // REQUIRES: DB mutex held.
  DeltaFileBuilder::Options OutputOptions(uint32_t path_id);
  // Allocates file numbers of the DB.
  // REQUIRES: the result is not used after this object.
  std::function<uint64_t()> NewFileNumber() const;
  // Returns the directory of the files.
  // REQUIRES: OutputOptions() was called.
  FSDirectory* directory() const { return directory_; }

  // Gives the pass the filter that compactions have, until DropFilter().
  // Returns NotSupported if the filter wants to be asked about what snapshots
  // see.
  // REQUIRES: DB mutex not held, as the factory is the application's code.
  Status MakeFilter(DeltaMergePass::Context* pass);
  // REQUIRES: DB mutex not held.
  void DropFilter() { own_filter_.reset(); }

 private:
  static ReadOptions MakeReadOptions(DBImpl* db);

  DBStrata* const strata_;
  DBImpl* const db_;
  const BackgroundDeltaJob* const job_;
  JobContext* const job_context_;
  ColumnFamilyData* const cfd_;
  const MutableCFOptions moptions_;
  const ReadOptions read_options_;
  Version* const version_;
  std::shared_ptr<const DeltaVersion> deltas_;
  const uint64_t started_;  // in microseconds
  std::unique_ptr<CompactionFilter> own_filter_;
  FSDirectory* directory_ = nullptr;
};

}  // namespace ROCKSDB_NAMESPACE
