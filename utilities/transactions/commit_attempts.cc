//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "utilities/transactions/commit_attempts.h"

#include <cinttypes>
#include <string>
#include <utility>

#include "db/db_impl/db_impl.h"
#include "db/strata/db_strata.h"
#include "db/write_batch_internal.h"
#include "logging/logging.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

void CommitAttempts::Begin(const WriteBatch& commit_time_batch) {
  end_ = WriteBatchInternal::End(commit_time_batch);
  wal_used_ = 0;
}

void CommitAttempts::Fail(WriteBatch* commit_time_batch) {
  WriteBatchInternal::TruncateTo(commit_time_batch, end_);
  if (wal_used_ != 0) {
    failed_wal_ = wal_used_;
  }
}

Status CommitAttempts::PlanRepetition(DBImpl* db, const std::string& txn_name,
                                      bool* writes_whole) {
  if (db->strata()->IsWalOfAFamily(failed_wal_)) {
    return Status::Aborted(
        "Transaction " + txn_name + ": an earlier Commit() failed in WAL #" +
        std::to_string(failed_wal_) +
        ", which column families still need. Commit() can be tried again after "
        "the recovery from the error, or after a flush of all column families");
  }
  *writes_whole = true;
  ROCKS_LOG_INFO(db->immutable_db_options().info_log,
                 "Transaction %s: Commit() failed in WAL #%" PRIu64
                 " before, now it writes the whole transaction",
                 txn_name.c_str(), failed_wal_);
  return Status::OK();
}

Status CommitAttempts::MakeWhole(WriteBatch* commit_time_batch,
                                 const WriteBatch& prepared,
                                 const std::string& txn_name,
                                 const TxnTimestamp* commit_ts) {
  WriteBatchInternal::TruncateTo(commit_time_batch, end_);
  Status s = WriteBatchInternal::MarkRollback(commit_time_batch, txn_name);
  if (s.ok()) {
    s = WriteBatchInternal::Append(commit_time_batch, &prepared);
  }
  if (!s.ok()) {
    return s;
  }
  if (commit_ts == nullptr) {
    return WriteBatchInternal::MarkCommit(commit_time_batch, txn_name);
  }
  std::string encoded_ts;
  PutFixed64(&encoded_ts, *commit_ts);
  return WriteBatchInternal::MarkCommitWithTimestamp(commit_time_batch,
                                                     txn_name, encoded_ts);
}

void CommitAttempts::TakeBack(std::shared_ptr<WriteBatchWithIndex> ingested,
                              WriteBatchWithIndex* batch) {
  if (ingested.use_count() == 1) {
    *batch = std::move(*ingested);
  }
}

}  // namespace ROCKSDB_NAMESPACE
