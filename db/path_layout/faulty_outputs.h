//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

struct ImmutableOptions;
struct MutableCFOptions;

// Returns true if the layout has the SST files of the level on a path whose
// device has failed (PathFaults). An automatic compaction to the level would
// fail, too, and a level with a lower score, which has work on other devices,
// would wait for its turn. The SstFileManager's user has such compactions
// picked again when files can be made on the path.
//
// Returns false without a layout, since the path depends on sizes then.
// REQUIRES: output_level >= 0
bool AreOutputsFaulty(const ImmutableOptions& ioptions,
                      const MutableCFOptions& options, int output_level);

}  // namespace ROCKSDB_NAMESPACE
