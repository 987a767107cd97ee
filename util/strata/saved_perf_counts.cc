//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/saved_perf_counts.h"

namespace ROCKSDB_NAMESPACE {

SavedPerfCounts::SavedPerfCounts() : perf_(*get_perf_context()) {
  const PerfContext& perf = *get_perf_context();
  if (perf.per_level_perf_context_enabled &&
      perf.level_to_perf_context != nullptr) {
    levels_ = *perf.level_to_perf_context;
  }
}

void SavedPerfCounts::Restore() {
  // With NPERF_CONTEXT all threads share one context, which must not be
  // written.
#ifndef NPERF_CONTEXT
  PerfContext* const perf = get_perf_context();
  static_cast<PerfContextBase&>(*perf) = perf_;
  if (levels_.has_value()) {
    *perf->level_to_perf_context = *levels_;
  }
#endif
}

}  // namespace ROCKSDB_NAMESPACE
