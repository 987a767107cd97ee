//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/utilities/transaction.h"

namespace ROCKSDB_NAMESPACE {

// The class of the DB of a history.
//
// Thread-safe: the class has no state.
class HistoryDbKind {
 public:
  enum Kind {
    kPlain,       // DB
    kOptimistic,  // OptimisticTransactionDB
    kLocking,     // TransactionDB, the others too
    kWritePrepared,
    kWriteUnprepared,
  };

  // Parses "plain", "optimistic", "locking", "write-prepared" and
  // "write-unprepared"; returns false if it is none of them.
  static bool Parse(const std::string& name, Kind* kind);

  // Opens a DB. A write of a TransactionDB does not wait for a lock, but fails.
  static Status Open(Kind kind, const Options& options, const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& descriptors,
                     std::vector<ColumnFamilyHandle*>* handles,
                     std::unique_ptr<DB>* db);

  // Begins a transaction; nullptr if the DB has none.
  // set_snapshot: its reads, and its checks for conflicts, are of this moment.
  // REQUIRES: Open() made *db with this kind
  static std::unique_ptr<Transaction> Begin(Kind kind, DB* db,
                                            bool set_snapshot);

  // Returns true if the DB may be closed while there are prepared transactions.
  // An assertion of RocksDB forbids it for some kinds.
  static bool AllowsPreparedAtClose(Kind kind) { return kind == kLocking; }

  // Returns the transactions that were prepared before the DB was opened, and
  // neither committed nor rolled back.
  // REQUIRES: Open() made *db with this kind
  static std::vector<std::unique_ptr<Transaction>> Prepared(Kind kind, DB* db);
};

}  // namespace ROCKSDB_NAMESPACE
