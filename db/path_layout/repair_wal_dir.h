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
// Returns InvalidArgument if the OPTIONS file names another directory than the
// repair is given, and that one has WALs, or a WAL buffer, with data. The
// function only reads. A directory that cannot be read is no error, as a
// database that was moved has an OPTIONS file with the old name; LOG tells of
// it.
// stored: the options of the OPTIONS file.
// given: the directory in which the repair looks for WALs.
// info_log: may be nullptr.
Status CheckRepairWalDir(FileSystem* fs, const std::string& dbname,
                         const DBOptions& stored, const std::string& given,
                         Logger* info_log);

}  // namespace ROCKSDB_NAMESPACE
