//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/migration_pacer.h"

#include <algorithm>

namespace ROCKSDB_NAMESPACE {

void MigrationPacer::Charge(uint64_t bytes, uint64_t start) {
  if (bytes_per_second_ == 0) {
    return;
  }
  const double micros = static_cast<double>(bytes) /
                        static_cast<double>(bytes_per_second_) *
                        static_cast<double>(kMicrosPerSecond);
  // More would not fit into the clock's numbers.
  constexpr double kMaxMicros = static_cast<double>(uint64_t{1} << 62);
  next_start_ = std::max(next_start_, start) +
                static_cast<uint64_t>(std::min(micros, kMaxMicros));
}

}  // namespace ROCKSDB_NAMESPACE
