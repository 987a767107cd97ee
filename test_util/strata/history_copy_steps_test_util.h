//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_call_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Returns the steps that copy the DB, open the copy, compare its contents with
// the model, and remove it. Thread-safe; the steps are not.
const std::vector<HistoryStep>& HistoryCopySteps();

}  // namespace ROCKSDB_NAMESPACE
