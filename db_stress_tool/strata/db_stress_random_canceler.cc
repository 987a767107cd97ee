//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/strata/db_stress_random_canceler.h"

#include <algorithm>

#include "rocksdb/system_clock.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns a time between a microsecond and a second; most of them are short.
int RandomMicros(Random* rand) {
  return 1 << std::min(rand->Uniform(21), rand->Uniform(21));
}

}  // namespace

StressRandomCanceler::StressRandomCanceler(Random* rand) {
  if (rand->OneIn(8)) {
    canceled_ = true;
    has_flag_ = true;
  } else if (rand->OneIn(3)) {
    has_flag_ = true;
    thread_ = port::Thread([this, micros = RandomMicros(rand)] {
      SystemClock::Default()->SleepForMicroseconds(micros);
      canceled_ = true;
    });
  }
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
