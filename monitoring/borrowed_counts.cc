//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "monitoring/borrowed_counts.h"

#include <utility>

namespace ROCKSDB_NAMESPACE {

// Compiled without a context, all threads have the same one. It counts nothing,
// and must not be written to.

BorrowedCounts::BorrowedCounts()
    : perf_level_(GetPerfLevel()),
      has_levels_(get_perf_context()->per_level_perf_context_enabled),
      disable_iostats_(get_iostats_context()->disable_iostats) {}

void BorrowedCounts::Begin() {
  SetPerfLevel(perf_level_);
#ifndef NPERF_CONTEXT
  PerfContext* const perf = get_perf_context();
  perf->Reset();
  if (has_levels_) {
    perf->EnablePerLevelPerfContext();
  } else {
    perf->ClearPerLevelPerfContext();
  }
#endif
#ifndef NIOSTATS_CONTEXT
  get_iostats_context()->Reset();
  get_iostats_context()->disable_iostats = disable_iostats_;
#endif
}

void BorrowedCounts::End() {
#ifndef NPERF_CONTEXT
  perf_ = std::move(*get_perf_context());
#endif
#ifndef NIOSTATS_CONTEXT
  iostats_ = *get_iostats_context();
#endif
}

void BorrowedCounts::AddToThread() {
#ifndef NPERF_CONTEXT
  get_perf_context()->Merge(perf_);
#endif
#ifndef NIOSTATS_CONTEXT
  get_iostats_context()->Merge(iostats_);
#endif
}

SavedPerfCounts::SavedPerfCounts() : perf_(*get_perf_context()) {
  const PerfContext& perf = *get_perf_context();
  if (perf.per_level_perf_context_enabled &&
      perf.level_to_perf_context != nullptr) {
    levels_ = *perf.level_to_perf_context;
  }
}

void SavedPerfCounts::Restore() {
#ifndef NPERF_CONTEXT
  PerfContext* const perf = get_perf_context();
  static_cast<PerfContextBase&>(*perf) = perf_;
  if (levels_.has_value()) {
    *perf->level_to_perf_context = *levels_;
  }
#endif
}

}  // namespace ROCKSDB_NAMESPACE
