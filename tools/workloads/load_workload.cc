// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/load_workload.h"

#include <atomic>

#include "tools/workloads/record_shape.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

class LoadWorkload : public Workload {
 public:
  LoadWorkload(std::unique_ptr<RecordShape>&& shape, uint64_t records)
      : shape_(std::move(shape)), records_(records) {}

  bool fresh_db() const override { return true; }

  Status Prepare(DB* /*db*/, int /*threads*/) override {
    bytes_ = 0;
    return shape_->Validate();
  }

  void Run(WorkloadHost* host) override {
    const uint64_t threads = static_cast<uint64_t>(host->threads());
    const uint64_t thread = static_cast<uint64_t>(host->thread());
    Random64 rnd(host->seed());
    std::string key;
    std::string value;
    uint64_t written = 0;
    for (uint64_t n = thread; n < records_ && !host->Failed(); n += threads) {
      shape_->Key(n, &key);
      shape_->Value(n, &rnd, &value);
      const uint64_t bytes = key.size() + value.size();
      host->Throttle(/*write=*/true, bytes);
      host->Begin();
      Status s = host->db()->Put(host->write_options(), host->column_family(),
                                 key, value);
      if (!s.ok()) {
        host->Fail(s, "put error");
        break;
      }
      host->End(Op::kInsert, bytes);
      written += bytes;
    }
    bytes_.fetch_add(written, std::memory_order_relaxed);
  }

  uint64_t LogicalBytes() const override {
    return bytes_.load(std::memory_order_relaxed);
  }

 private:
  const std::unique_ptr<RecordShape> shape_;
  const uint64_t records_;
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace

std::unique_ptr<Workload> NewLoadWorkload(const std::string& name,
                                          const WorkloadOptions& options) {
  if (name == "ycsbload") {
    return std::make_unique<LoadWorkload>(NewYcsbShape(options),
                                          options.records);
  }
  if (name == "up2xload") {
    return std::make_unique<LoadWorkload>(NewUp2xShape(options),
                                          options.records);
  }
  return nullptr;
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
