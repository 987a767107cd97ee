//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/strata/db_stress_blob_gc.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>
#include <unordered_set>

#include "db_stress_tool/db_stress_common.h"
#include "db_stress_tool/db_stress_test_base.h"
#include "db_stress_tool/strata/db_stress_job_faults.h"
#include "db_stress_tool/strata/db_stress_random_canceler.h"
#include "util/gflags_compat.h"
#include "utilities/fault_injection_fs.h"

DECLARE_bool(enable_blob_address_map);

DEFINE_int32(collect_blob_garbage_one_in, 0,
             "Every how many operations to call CollectBlobGarbage(), on "
             "average; some of the calls are cancelled. 0: never");

namespace ROCKSDB_NAMESPACE {

namespace {

class StressBlobGcListener : public EventListener {
 public:
  explicit StressBlobGcListener(const std::shared_ptr<FaultInjectionTestFS>& fs)
      : fs_(fs) {}

  const char* Name() const override { return "StressBlobGcListener"; }

  void OnBlobGarbageCollectionBegin(
      DB* /*db*/, const BlobGarbageCollectionInfo& info) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (uint64_t number : info.input_files) {
        if (!input_files_.insert(number).second) {
          fprintf(stderr,
                  "Two garbage collections of one blob file: cf=%s "
                  "file_number=%" PRIu64 "\n",
                  info.cf_name.c_str(), number);
          fflush(stderr);
          std::abort();
        }
      }
    }
    Sleep();
    // A thread of the test has faults of its own.
    if (fs_ != nullptr && !info.is_manual) {
      StressJobFaults::Begin(fs_.get(), info.job_id);
    }
  }

  void OnBlobGarbageCollectionCompleted(
      DB* /*db*/, const BlobGarbageCollectionInfo& info) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (uint64_t number : info.input_files) {
        input_files_.erase(number);
      }
    }
    Sleep();
    if (fs_ != nullptr && !info.is_manual) {
      StressJobFaults::End(fs_.get());
    }
  }

 private:
  static void Sleep() {
    SystemClock::Default()->SleepForMicroseconds(
        static_cast<int>(Random::GetTLSInstance()->Uniform(5000)));
  }

  const std::shared_ptr<FaultInjectionTestFS> fs_;
  std::mutex mutex_;
  std::unordered_set<uint64_t> input_files_;
};

CollectBlobGarbageOptions RandomOptions(Random* rand) {
  CollectBlobGarbageOptions options;
  if (!rand->OneIn(3)) {
    options.space_amp_limit += rand->Uniform(101) / 100.0;
  }
  if (rand->OneIn(3)) {
    options.max_sorted_runs = 1 + rand->Uniform(4);
  }
  return options;
}

// Collects the garbage of the column family, as part of a forced compaction of
// it if `compact`.
Status CollectGarbage(DB* db, ColumnFamilyHandle* column_family, bool compact,
                      const CollectBlobGarbageOptions& options) {
  if (!compact) {
    return db->CollectBlobGarbage(options, column_family);
  }
  CompactRangeOptions compact_options;
  compact_options.blob_garbage_collection_policy =
      BlobGarbageCollectionPolicy::kForce;
  compact_options.canceled = options.canceled;
  return db->CompactRange(compact_options, column_family, nullptr, nullptr);
}

// Returns true if CollectGarbage() may have this result.
bool IsExpected(const Status& s, DB* db, ColumnFamilyHandle* column_family,
                bool compact, bool canceled) {
  return s.ok() ||
         (s.IsNotSupported() &&
          !db->GetOptions(column_family).enable_blob_address_map) ||
         // CompactRange() with change_level ends manual jobs, too.
         (s.IsManualCompactionPaused() &&
          (canceled || FLAGS_disable_manual_compaction_one_in > 0 ||
           FLAGS_compact_range_one_in > 0)) ||
         (s.IsCompactionAborted() &&
          FLAGS_abort_and_resume_compactions_one_in > 0) ||
         (compact && StressTest::IsTolerableCompactionFailure(s)) ||
         (s.IsColumnFamilyDropped() && FLAGS_clear_column_family_one_in > 0) ||
         StressTest::IsErrorInjectedAndRetryable(s);
}

}  // namespace

void AddStressBlobGcListener(
    const std::shared_ptr<FaultInjectionTestFS>& fs,
    std::vector<std::shared_ptr<EventListener>>* listeners) {
  if (FLAGS_enable_blob_address_map) {
    listeners->push_back(std::make_shared<StressBlobGcListener>(fs));
  }
}

void StressTest::MaybeCollectBlobGarbage(ThreadState* thread, int64_t rand_key,
                                         ColumnFamilyHandle* column_family) {
  if (!thread->rand.OneInOpt(FLAGS_collect_blob_garbage_one_in)) {
    return;
  }
  CollectBlobGarbageOptions options = RandomOptions(&thread->rand);
  StressRandomCanceler canceler(&thread->rand);
  options.canceled = canceler.flag();

  // The contents at a snapshot must not change. They are not compared with the
  // flags that are incompatible with snapshots.
  const bool compare = !FLAGS_enable_compaction_filter &&
                       !FLAGS_inplace_update_support && thread->rand.OneIn(2);
  const std::string start_key = Key(rand_key);
  const std::string end_key = Key(
      rand_key > std::numeric_limits<int64_t>::max() - FLAGS_compact_range_width
          ? std::numeric_limits<int64_t>::max()
          : rand_key + FLAGS_compact_range_width);
  const Snapshot* snapshot = nullptr;
  const auto hash = [&] {
    if (db_fault_injection_fs_) {
      db_fault_injection_fs_->DisableAllThreadLocalErrorInjection();
    }
    const uint32_t result =
        GetRangeHash(thread, snapshot, column_family, start_key, end_key);
    if (db_fault_injection_fs_) {
      db_fault_injection_fs_->EnableAllThreadLocalErrorInjection();
    }
    return result;
  };
  uint32_t hash_before = 0;
  if (compare) {
    snapshot = db_->GetSnapshot();
    hash_before = hash();
  }

  const bool compact = thread->rand.OneIn(4);
  const Status s = CollectGarbage(db_, column_family, compact, options);
  canceler.Join();
  MaybeVerifyCpuCorruption(thread, "collectblobgarbage", s);
  if (!IsExpected(s, db_, column_family, compact, canceler.canceled())) {
    fprintf(stderr, "%s with space_amp_limit %g, max_sorted_runs %u%s: %s\n",
            compact ? "CompactRange()" : "CollectBlobGarbage()",
            options.space_amp_limit, options.max_sorted_runs,
            canceler.canceled() ? ", cancelled" : "", s.ToString().c_str());
    thread->shared->SetVerificationFailure();
  }

  if (compare) {
    if (hash() != hash_before) {
      fprintf(stderr,
              "CollectBlobGarbage() with space_amp_limit %g has changed the "
              "contents of a snapshot between %s and %s\n",
              options.space_amp_limit,
              Slice(start_key).ToString(/*hex=*/true).c_str(),
              Slice(end_key).ToString(/*hex=*/true).c_str());
      thread->stats.AddErrors(1);
      thread->shared->SetVerificationFailure();
    }
    db_->ReleaseSnapshot(snapshot);
  }
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
