//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_call_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Returns the steps that change the contents of the DB and of its model.
// Thread-safe; the steps are not.
const std::vector<HistoryStep>& HistoryWriteSteps();

}  // namespace ROCKSDB_NAMESPACE
