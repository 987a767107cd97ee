// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/workload.h"

#include "tools/workloads/delete_range_workload.h"
#include "tools/workloads/load_workload.h"
#include "tools/workloads/mix_workload.h"
#include "tools/workloads/verify_workload.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

const char* OpName(Op op) {
  switch (op) {
    case Op::kRead:
      return "read";
    case Op::kInsert:
      return "insert";
    case Op::kUpdate:
      return "update";
    case Op::kMerge:
      return "merge";
    case Op::kReadModifyWrite:
      return "rmw";
    case Op::kScan:
      return "scan";
    case Op::kDelete:
      return "delete";
    case Op::kDeleteRange:
      return "deleterange";
    case Op::kOther:
      break;
  }
  return "op";
}

std::unique_ptr<Workload> NewWorkload(const std::string& name,
                                      const WorkloadOptions& options) {
  for (auto* factory : {NewLoadWorkload, NewMixWorkload, NewDeleteRangeWorkload,
                        NewVerifyWorkload}) {
    std::unique_ptr<Workload> workload = factory(name, options);
    if (workload != nullptr) {
      return workload;
    }
  }
  return nullptr;
}

bool NeedsMergeOperator(const std::string& name,
                        const WorkloadOptions& options) {
  std::unique_ptr<Workload> workload = NewWorkload(name, options);
  return workload != nullptr && workload->merges();
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
