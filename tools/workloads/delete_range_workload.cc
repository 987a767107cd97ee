// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/delete_range_workload.h"

#include <cmath>

#include "tools/workloads/record_shape.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

class DeleteRangeWorkload : public Workload {
 public:
  explicit DeleteRangeWorkload(const WorkloadOptions& options)
      : options_(options), shape_(NewYcsbShape(options)) {}

  Status Prepare(DB* /*db*/, int /*threads*/) override {
    if (options_.records == 0 || options_.delete_range_width == 0 ||
        options_.delete_range_width > options_.records) {
      return Status::InvalidArgument("--delete_range_width",
                                     "must lie between 1 and --ycsb_records");
    }
    return shape_->Validate();
  }

  void Run(WorkloadHost* host) override {
    // Keys are distributed evenly over the 2^64 positions.
    const double width =
        std::ldexp(static_cast<double>(options_.delete_range_width), 64) /
        static_cast<double>(options_.records);
    const uint64_t last = ~uint64_t{0};
    const uint64_t distance =
        width < std::ldexp(1.0, 64) ? static_cast<uint64_t>(width) : last;
    Random64 rnd(host->seed());
    std::string begin;
    std::string end;
    while (!host->Done()) {
      const uint64_t position = rnd.Next();
      shape_->KeyAt(position, &begin);
      shape_->KeyAt(position > last - distance ? last : position + distance,
                    &end);
      host->Throttle(/*write=*/true, begin.size() + end.size());
      host->Begin();
      Status s = host->db()->DeleteRange(host->write_options(),
                                         host->column_family(), begin, end);
      if (!s.ok()) {
        host->Fail(s, "delete range error");
        break;
      }
      host->End(Op::kDeleteRange, begin.size() + end.size());
    }
  }

 private:
  const WorkloadOptions options_;
  const std::unique_ptr<RecordShape> shape_;
};

}  // namespace

std::unique_ptr<Workload> NewDeleteRangeWorkload(
    const std::string& name, const WorkloadOptions& options) {
  if (name == "deleterandomrange") {
    return std::make_unique<DeleteRangeWorkload>(options);
  }
  return nullptr;
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
