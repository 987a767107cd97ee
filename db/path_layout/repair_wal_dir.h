//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;
class Logger;

// Checks that a repair is given the directory that has the WALs of the
// database.
//
// A repair turns the WALs that it finds into tables, and moves them away. It
// begins a MANIFEST that takes no WAL for obsolete. So if the WALs are
// elsewhere, the next open with the right wal_dir replays all of them over the
// tables, also those whose data the tables have: merge operands would count
// twice.
//
// A copy has the OPTIONS file of the original, which may name the WALs of the
// original. They are none of the copy's, and a repair of the copy must not move
// them away. A database is taken for such a copy if
// 1. the directory that the OPTIONS file names has a CURRENT of its own, so it
//    is the directory of another database, or
// 2. the directory that the repair is given has WALs with data.
//
// Returns InvalidArgument if
// 1. the directory that the repair is given is the directory of another
//    database, and has WALs with data, or
// 2. the OPTIONS file names another directory than the repair is given, and
//    that one has WALs, or a WAL buffer, with data, and the database is not
//    taken for a copy.
//
// The function only reads. A directory that cannot be read is no error, as a
// database that was moved has an OPTIONS file with the old name; LOG tells of
// it, and of a database that is taken for a copy.
// stored: the options of the OPTIONS file.
// given: the directory in which the repair looks for WALs.
// info_log: may be nullptr.
Status CheckRepairWalDir(FileSystem* fs, const std::string& dbname,
                         const DBOptions& stored, const std::string& given,
                         Logger* info_log);

}  // namespace ROCKSDB_NAMESPACE
