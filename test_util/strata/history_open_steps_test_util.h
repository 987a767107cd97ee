//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_call_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Returns the steps that open, close and destroy the DB, make it crash, and
// change its column families and options. Thread-safe; the steps are not.
const std::vector<HistoryStep>& HistoryOpenSteps();

}  // namespace ROCKSDB_NAMESPACE
