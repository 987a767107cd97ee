//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_db_test_util.h"
#include "test_util/strata/history_file_op_test_util.h"
#include "test_util/strata/history_injector_test_util.h"

namespace ROCKSDB_NAMESPACE {

// A kind of fault that a sweep puts at the n-th operation, and what the DB must
// do about it. docs/fault-sweeps.md lists the kinds.
struct HistorySweepKind {
  enum class Ending {
    // The history goes on, as only one operation has failed.
    kGoesOn,
    // The power is lost: at the operation if the effect is a crash, otherwise
    // after the step that it belongs to.
    kCrash,
    // There is no operation. The n-th byte of the closed DB is changed.
    kFlip,
  };

  const char* name;
  // The operations that count.
  std::vector<HistoryFileOp> ops;
  HistoryInjector::Effect effect = HistoryInjector::Effect::kError;
  Ending ending = Ending::kGoesOn;
  // What survives a crash.
  HistoryCrash crash;
  // The device has lost what it said was durable. So the contents may be any
  // that miss some of the writes.
  bool loses_durable = false;
  // The DB may refuse to open if it names a file.
  bool may_refuse = false;
};

// Returns all kinds. Thread-safe.
const std::vector<HistorySweepKind>& HistorySweepKinds();

// One fault: a kind and the number of an operation, or of a byte. The first one
// is 1.
struct HistorySweepPoint {
  const HistorySweepKind* kind = nullptr;
  uint64_t n = 0;

  // Returns "KIND:N".
  std::string ToString() const;
  // Reverses ToString(). Returns false if the text is no point.
  static bool Parse(const std::string& text, HistorySweepPoint* point);
};

}  // namespace ROCKSDB_NAMESPACE
