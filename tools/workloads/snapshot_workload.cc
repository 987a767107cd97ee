// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/snapshot_workload.h"

#include <optional>
#include <string>
#include <utility>

#include "rocksdb/db.h"
#include "rocksdb/snapshot.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

class SnapshotWorkload : public Workload {
 public:
  explicit SnapshotWorkload(std::unique_ptr<Workload>&& workload)
      : workload_(std::move(workload)) {}

  bool fresh_db() const override { return workload_->fresh_db(); }
  bool merges() const override { return workload_->merges(); }

  Status Prepare(DB* db, int threads) override {
    Status s = workload_->Prepare(db, threads);
    if (s.ok()) {
      snapshot_.emplace(db);
    }
    return s;
  }

  void Run(WorkloadHost* host) override { workload_->Run(host); }

  Status Finish() override {
    snapshot_.reset();
    return workload_->Finish();
  }

  std::string Message() const override {
    return workload_->Message() + " (beside a snapshot)";
  }
  uint64_t LogicalBytes() const override { return workload_->LogicalBytes(); }

 private:
  const std::unique_ptr<Workload> workload_;
  std::optional<ManagedSnapshot> snapshot_;
};

}  // namespace

std::unique_ptr<Workload> NewSnapshotWorkload(
    std::unique_ptr<Workload>&& workload) {
  return std::make_unique<SnapshotWorkload>(std::move(workload));
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
