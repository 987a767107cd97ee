//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// What a file of STRATA_CONFIG may not change, although the parser of option
// strings could.
//
// Invariants:
// 1. A change is one that can be taken back by an open without the file, or
//    that open is refused: no option is allowed by which it would lose data,
//    or hide it, unless the program has chosen it, too. The one exception is
//    RocksDB's default wal_recovery_mode in place of the strictest one.
// 2. What the program has brought as code and relies on, stays: its comparator,
//    merge operator, compaction filter, listeners and so on. So keys and values
//    keep their meaning. Values that transactions need stay, too.
//    A value that the program may have read from the OPTIONS file can be that
//    of an earlier line: where it cannot be told from one that the program
//    needs, the latter counts.
// 3. No object is changed that the program may share with other databases.

// Returns InvalidArgument, without the place of the line, if no line may set
// this option, or not to this value.
Status CheckConfigOption(const std::string& name, const std::string& value);

// Returns InvalidArgument if options after a line lack an object that a
// database needs.
Status CheckIsComplete(const DBOptions& options);
Status CheckIsComplete(const ColumnFamilyOptions& options);

// The following compare the options that the program has given with those after
// all lines. What lies between does not matter, as a later line wins. If the
// result is an error, *option is the option that it is about, and the message
// lacks the place of the line.

// Returns InvalidArgument if an object of the program was replaced by another
// one. Otherwise gives *after the program's objects back where lines have made
// equal ones.
Status KeepProgramObjects(const DBOptions& given, DBOptions* after,
                          std::string* option);
Status KeepProgramObjects(const ColumnFamilyOptions& given,
                          ColumnFamilyOptions* after, std::string* option);

// Gives *after values of the program back that lines have changed and that its
// code relies on: TransactionDB::PrepareWrap(), for example, sets them before
// the file is applied. Adds the names of these options to *kept.
// has_2pc: allow_2pc of the database, as the program has given it.
void KeepProgramValues(const DBOptions& given, DBOptions* after,
                       std::vector<std::string>* kept);
void KeepProgramValues(const ColumnFamilyOptions& given, bool has_2pc,
                       ColumnFamilyOptions* after,
                       std::vector<std::string>* kept);

// Returns InvalidArgument if the database, by the new options, would delete,
// lose or hide data that it keeps and shows by the given ones: with FIFO
// compaction, for example, or with a WAL that only the program flushes. The
// program may know what that means for it, a file does not.
Status CheckKeepsData(const DBOptions& given, const DBOptions& after,
                      std::string* option);
Status CheckKeepsData(const ColumnFamilyOptions& given,
                      const ColumnFamilyOptions& after, std::string* option);

}  // namespace ROCKSDB_NAMESPACE
