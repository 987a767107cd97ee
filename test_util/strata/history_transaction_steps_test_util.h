//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_call_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Returns the step "txn", which works on a transaction of a DB that was opened
// with "db=locking" and the like. Thread-safe; the step is not.
const std::vector<HistoryStep>& HistoryTransactionSteps();

}  // namespace ROCKSDB_NAMESPACE
