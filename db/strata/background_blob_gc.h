//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "db/blob/blob_file_addition.h"
#include "db/blob_gc/blob_copy_job.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/blob_gc/blob_gc_storage.h"
#include "db/blob_heat/blob_heat_picker.h"
#include "db/scan_sort/scan_debts.h"
#include "db/strata/background_job.h"
#include "db/strata/db_strata.h"
#include "rocksdb/listener.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class BlobDemotionJob;
class BlobPromotionJob;

// Collects the garbage of some blob files of a column family with an address
// map, sorts the values of a range of keys, or moves values to the hot path or
// from there: a BlobCopyJob copies values, BlobGcStorage swaps the addresses,
// and this class leads the copies to the MANIFEST.
//
// Invariants:
// 1. The files are pinned by storage_ from when they were picked until the end
//    of Run(), or until GiveBack() if there is none.
// 2. A damaged file costs what is in it only: it is reported and left as it is,
//    and is no background error.
// 3. An edit adds hot files only if they are within blob_hot_bytes, or if it
//    drops as many bytes of others (BlobHeat::Reserve()).
//
// The class is a part of DBStrata, and reaches DBImpl as DBStrata does: the job
// writes to the MANIFEST, installs a SuperVersion, protects its outputs from
// deletion and calls listeners.
class DBStrata::BackgroundBlobGc : public BackgroundJob {
 public:
  // What is collected, and how.
  struct Plan {
    BlobGcPicker::Job job;
    // Space amplification is above the limit.
    bool is_urgent = false;
    // See BlobGcJob::Context.
    std::vector<std::vector<uint64_t>> runs;
    std::vector<bool> goes_on;
    uint64_t max_copied = 0;
    // See BlobGcJob::Context.
    std::vector<std::string> bounds;
    uint64_t min_piece = 0;
    uint64_t num_pieces = 1;
    // The job merges files that need no collection, because scans have paid for
    // it: the ranges that are due have more bytes than may be copied at once.
    bool is_scan_merge = false;
    // Sorts the range for which scans have paid most (ScanDebts), about
    // max_copied bytes, instead of collecting files.
    bool is_scan_sort = false;
    // Moves values to the hot path or from there, instead of collecting files.
    // A job that promotes has no files; it takes the values that wait.
    BlobHeatPicker::Kind heat = BlobHeatPicker::Kind::kNone;
    // Bytes that a job that promotes may write.
    uint64_t hot_room = 0;
  };

  // Returns how many jobs there may be in the background, beside compactions
  // and flushes, which have their own threads.
  static int MaxJobs(int max_background_jobs, bool above_limit);

  // Begins or ends the slowdown of writes that depends on the garbage of the
  // column family, after a change of what jobs may collect. Otherwise writes
  // would be slow until the next flush, although no job can catch up with them.
  // Returns the change that listeners are to be told of, if there is one.
  // REQUIRES: DB mutex held; the family has an address map.
  static std::optional<WriteStallInfo> UpdateSlowdown(ColumnFamilyData* cfd);

  // Decides what is done for the ranges that are due, if anything.
  // options: wanted_room is set.
  static void PickForScans(const BlobGcPicker::Options& options,
                           const std::vector<BlobGcPicker::File>& files,
                           const ScanDebts& debts, Plan* plan);

  // Makes a job of the background.
  // REQUIRES: DB mutex held; the files of the plan are not busy.
  BackgroundBlobGc(DBStrata* strata, ColumnFamilyData* cfd, Plan plan);
  // Makes a job of CollectBlobGarbage().
  // canceled: see BackgroundJob.
  // unreadable: the job adds the file that it has found to be unreadable; may
  // be nullptr.
  // pick: called once with the DB mutex held; leaves the plan without files if
  // there is nothing to do.
  BackgroundBlobGc(DBStrata* strata, ColumnFamilyData* cfd,
                   const std::atomic<bool>* canceled,
                   std::set<uint64_t>* unreadable,
                   std::function<void(Plan* plan)> pick);

  Status Run(JobContext* job_context) override;
  void GiveBack(bool has_run) override;
  void AfterRun() override;
  void OnEnd(const Status& s) override;
  Readiness Prepare() override;
  bool OnManualEnd(const Status& s) override;

  const Plan& plan() const { return plan_; }
  // Returns the new files, if the job succeeded.
  const std::vector<BlobFileAddition>& additions() const { return additions_; }
  // Returns true if the job succeeded and has ended at Plan::max_copied.
  bool reached_limit() const { return reached_limit_; }
  // Returns true if the job failed with Incomplete, as its hot files would have
  // taken more space than blob_hot_bytes allows: another job has a file that
  // they were to replace. All is as it was.
  bool lacked_hot_room() const { return lacked_hot_room_; }

 private:
  void FillContext(int job_id, BlobCopyContext* context);
  // Returns the priority of the job's reads and writes at the rate limiter.
  // REQUIRES: DB mutex held.
  Env::IOPriority IoPriority() const;
  // Creates the job. Returns false if there is nothing to do.
  // REQUIRES: DB mutex held; it is released meanwhile.
  bool MakeJob(int job_id);
  bool MakeSortJob(int job_id);
  bool MakePromotionJob(int job_id);
  bool MakeDemotionJob(int job_id);
  // Empties the accounts of the range that was sorted.
  // s: result of the job. REQUIRES: DB mutex held.
  void EndSort(const Status& s);
  // Notes what a job that promotes or demotes has learned. The same arguments.
  void EndHeat(const Status& s);
  // Accounts for the hot files of the edit, of *added bytes, until
  // BlobHeat::EndReserve(). Returns Incomplete if there is no room for them.
  // drops: numbers of the files that the edit drops. REQUIRES: DB mutex held.
  Status ReserveHotBytes(const std::vector<uint64_t>& drops, uint64_t* added);
  // Returns true for a job that uses the room on the hot path, of which there
  // is one at a time.
  bool UsesHotRoom() const {
    return plan_.heat == BlobHeatPicker::Kind::kPromote ||
           plan_.heat == BlobHeatPicker::Kind::kDemote;
  }
  void LogHeatBegin(int job_id);
  void CountHeat();
  // Sets the ranges of ScanDebts if they are missing or not up to date.
  // live_bytes: size of all values. REQUIRES: DB mutex not held.
  void UpdateRanges(uint64_t live_bytes);
  // Returns user keys, in order, that divide the keys of the Version into parts
  // of about the same size. REQUIRES: DB mutex not held.
  std::vector<std::string> Bounds(size_t num_ranges);
  // Calls listeners. REQUIRES: DB mutex not held.
  void ReportBegin(int job_id);
  // Copies the values and publishes the copies. REQUIRES: DB mutex not held.
  Status Copy();
  // Writes the edit if s is OK, and closes the storage in any case. Sets
  // *wrote_manifest to true before it writes. REQUIRES: DB mutex held; it is
  // released meanwhile.
  Status Commit(Status s, SuperVersionContext* sv_context,
                bool* wrote_manifest);
  Status WriteEdit();
  // Tells the state of the collection which keys the outputs have.
  // REQUIRES: DB mutex held; the outputs were not dropped yet.
  void KeepKeyRanges();
  // Counts, logs and calls listeners. REQUIRES: DB mutex not held.
  void ReportEnd(const Status& s, int job_id);
  void Count(const Status& s, bool committed);
  void Log(const Status& s, int job_id);
  // Tells the store and the error handler what has become of the job.
  // REQUIRES: DB mutex held.
  void NoteResult(const Status& s, bool wrote_manifest, int job_id);
  void NoteFailure(const Status& s, int job_id);

  DBStrata* const strata_;
  DBImpl* const db_;
  AddressMapStore* const blobs_;
  const std::function<void(Plan* plan)> pick_;
  std::set<uint64_t>* const unreadable_ = nullptr;
  Plan plan_;
  std::unique_ptr<BlobGcStorage> storage_;

  // Set by Run().
  std::unique_ptr<BlobCopyJob> job_;
  uint64_t scan_job_bytes_ = 0;  // see ScanDebts::BeginJob()
  // Set for a job that sorts.
  ScanDebts::Range range_;
  Version* version_ = nullptr;  // referenced
  // job_, if it promotes or demotes.
  const BlobPromotionJob* promotion_ = nullptr;
  const BlobDemotionJob* demotion_ = nullptr;
  BlobGarbageCollectionInfo info_;
  uint64_t started_ = 0;
  size_t num_dropped_ = 0;

  std::vector<BlobFileAddition> additions_;
  bool reached_limit_ = false;
  bool lacked_hot_room_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
