//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "db/blob_gc/blob_gc_picker.h"
#include "db/strata/background_blob_gc.h"
#include "db/strata/db_strata.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class BlobRunMerger;
struct BlobKeyBounds;

// One call of DB::CollectBlobGarbage(): the jobs that it runs, one after
// another, in the application's thread.
//
//   1. compactions that collect blob files from before the map
//   2. merges of sorted runs, if the caller has asked for sorted values
//   3. jobs that collect garbage, until the limit holds
//   4. jobs that merge small files
//
// Invariants:
// 1. Each file is an input of steps 3 and 4 at most once, and files that others
//    make during the call are no inputs of them: the call ends.
// 2. A file that cannot be read keeps no other file from being collected. The
//    caller gets the first such error.
// 3. Hot files that another job has pinned may stay as they are: there may be
//    no room for their copies beside them.
// 4. The DB is not closed, and the column family not deleted, while the object
//    lives: it lives within a manual call (BeginManualCall()).
//
// Not thread-safe.
class DBStrata::ManualBlobGc {
 public:
  // REQUIRES: DB mutex not held; BeginManualCall(cfd) was called; the column
  // family has an enabled address map; all arguments outlive the object.
  ManualBlobGc(DBStrata* strata, ColumnFamilyData* cfd,
               const CollectBlobGarbageOptions& options);
  ManualBlobGc(const ManualBlobGc&) = delete;
  ManualBlobGc& operator=(const ManualBlobGc&) = delete;

  // REQUIRES: DB mutex not held; called once.
  Status Run();

 private:
  using Plan = BackgroundBlobGc::Plan;
  class RunMerge;

  // Runs the job. Returns OK and sets *is_damaged to true if the job has failed
  // because of a file that cannot be read; it is in unreadable_ then.
  Status RunJob(BackgroundBlobGc* job, bool* is_damaged);
  // Runs jobs as long as `pick` finds files.
  // pick: picks a job among the files, with the DB mutex held. Files that it
  //     must not take are busy.
  // done: files that were inputs; gets those of the jobs.
  // takes_outputs: outputs of these jobs may be inputs.
  Status RunJobs(const std::function<BlobGcPicker::Job(
                     const std::vector<BlobGcPicker::File>& files)>& pick,
                 bool takes_outputs, std::set<uint64_t>* done);
  Status CollectGarbage();
  Status MergeSmallFiles();

  // Merges sorted runs until there are no more than the caller has asked for.
  Status MergeRuns();
  // Waits until no job has files, for a while.
  Status WaitForJobs(const BackgroundJob& job);
  // Reads the key ranges of all files.
  // job: stands for the jobs of this call.
  Status ReadRuns(const BackgroundJob& job,
                  std::unique_ptr<BlobRunMerger>* runs);
  // Reads that of one file. Returns false if the file cannot be sorted. After
  // an I/O error the file is in unreadable_, too.
  bool ReadBounds(const BlobGcPicker::File& candidate, BlobKeyBounds* bounds);
  // Picks the next merge. Returns false if there is none.
  bool PickMerge(BlobRunMerger* runs, RunMerge* merge);
  // Runs the merge, in pieces.
  Status RunPieces(RunMerge* merge);

  DBStrata* const strata_;
  DBImpl* const db_;
  ColumnFamilyData* const cfd_;
  AddressMapStore* const blobs_;
  const CollectBlobGarbageOptions& options_;
  uint64_t first_new_number_ = 0;
  // Inputs and outputs of merges, and inputs of the jobs that collect garbage:
  // what could not be copied would be picked again.
  std::set<uint64_t> collected_;
  std::set<uint64_t> unreadable_;
  Status first_damage_;
};

}  // namespace ROCKSDB_NAMESPACE
