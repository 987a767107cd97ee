//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_call_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Returns the steps that run jobs of the DB or wait for them. Thread-safe; the
// steps are not.
const std::vector<HistoryStep>& HistoryJobSteps();

}  // namespace ROCKSDB_NAMESPACE
