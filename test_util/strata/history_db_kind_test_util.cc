//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_db_kind_test_util.h"

#include <map>

#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction_db.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

TransactionDBOptions LockingOptions(HistoryDbKind::Kind kind) {
  TransactionDBOptions options;
  // 0: no wait.
  options.transaction_lock_timeout = 0;
  options.default_lock_timeout = 0;
  if (kind == HistoryDbKind::kWritePrepared) {
    options.write_policy = WRITE_PREPARED;
  } else if (kind == HistoryDbKind::kWriteUnprepared) {
    options.write_policy = WRITE_UNPREPARED;
    // A batch is written when it has this many bytes, before the commit.
    options.default_write_batch_flush_threshold = 200;
  }
  return options;
}

}  // namespace

bool HistoryDbKind::Parse(const std::string& name, Kind* kind) {
  static const std::map<std::string, Kind> kKinds = {
      {"plain", kPlain},
      {"optimistic", kOptimistic},
      {"locking", kLocking},
      {"write-prepared", kWritePrepared},
      {"write-unprepared", kWriteUnprepared}};
  const auto it = kKinds.find(name);
  if (it == kKinds.end()) {
    return false;
  }
  *kind = it->second;
  return true;
}

Status HistoryDbKind::Open(
    Kind kind, const Options& options, const std::string& path,
    const std::vector<ColumnFamilyDescriptor>& descriptors,
    std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db) {
  if (kind == kPlain) {
    return DB::Open(options, path, descriptors, handles, db);
  }
  if (kind == kOptimistic) {
    OptimisticTransactionDB* opened = nullptr;
    const Status s = OptimisticTransactionDB::Open(options, path, descriptors,
                                                   handles, &opened);
    db->reset(opened);
    return s;
  }
  TransactionDB* opened = nullptr;
  const Status s = TransactionDB::Open(options, LockingOptions(kind), path,
                                       descriptors, handles, &opened);
  db->reset(opened);
  return s;
}

std::unique_ptr<Transaction> HistoryDbKind::Begin(Kind kind, DB* db,
                                                  bool set_snapshot) {
  Transaction* transaction = nullptr;
  if (kind == kOptimistic) {
    OptimisticTransactionOptions options;
    options.set_snapshot = set_snapshot;
    transaction =
        static_cast_with_check<OptimisticTransactionDB>(db)->BeginTransaction(
            WriteOptions(), options);
  } else if (kind != kPlain) {
    TransactionOptions options;
    options.set_snapshot = set_snapshot;
    transaction = static_cast_with_check<TransactionDB>(db)->BeginTransaction(
        WriteOptions(), options);
  }
  return std::unique_ptr<Transaction>(transaction);
}

std::vector<std::unique_ptr<Transaction>> HistoryDbKind::Prepared(Kind kind,
                                                                  DB* db) {
  std::vector<std::unique_ptr<Transaction>> result;
  if (kind != kPlain && kind != kOptimistic) {
    std::vector<Transaction*> prepared;
    static_cast_with_check<TransactionDB>(db)->GetAllPreparedTransactions(
        &prepared);
    for (Transaction* const transaction : prepared) {
      result.emplace_back(transaction);
    }
  }
  return result;
}

}  // namespace ROCKSDB_NAMESPACE
