//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// What a file of STRATA_CONFIG may not change, although the parser of option
// strings could.
//
// Invariants:
// 1. A change is one that can be taken back by an open without the file, or
//    that open is refused: no option is allowed by which it would lose data.
// 2. What the program has brought as code and relies on, stays: its comparator,
//    merge operator, compaction filter, listeners and so on. So keys and values
//    keep their meaning.
// 3. No object is changed that the program may share with other databases.

// Returns InvalidArgument, without the place of the line, if no line may set
// this option, or not to this value.
Status CheckConfigOption(const std::string& name, const std::string& value);

// Compares the options before and after a line. Returns InvalidArgument if an
// object of the program was replaced by another one, or if one that a database
// needs is missing. Otherwise gives *after the program's objects back where the
// line has made equal ones.
Status KeepProgramObjects(const DBOptions& before, DBOptions* after);
Status KeepProgramObjects(const ColumnFamilyOptions& before,
                          ColumnFamilyOptions* after);

// Compares the options before and after a line. Returns InvalidArgument if the
// database would delete data by the new ones that it keeps by the old ones:
// with FIFO compaction in place of another style.
Status CheckKeepsData(const DBOptions& before, const DBOptions& after);
Status CheckKeepsData(const ColumnFamilyOptions& before,
                      const ColumnFamilyOptions& after);

}  // namespace ROCKSDB_NAMESPACE
