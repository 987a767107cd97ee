//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_call_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Returns the steps that read and compare the results with the model, and those
// that take and release snapshots. Thread-safe; the steps are not.
const std::vector<HistoryStep>& HistoryReadSteps();

}  // namespace ROCKSDB_NAMESPACE
