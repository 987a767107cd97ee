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
  const DBStrata::WalUse use = db->strata()->FindWalUse(failed_wal_);
  if (use == DBStrata::WalUse::kSomeFamilies) {
    return Status::Aborted(
        "Transaction " + txn_name + ": an earlier Commit() failed in WAL #" +
        std::to_string(failed_wal_) +
        ", which some column families have flushed and others have not. "
        "Commit() can be tried again when all have flushed it");
  }
  *writes_whole = use == DBStrata::WalUse::kNoFamily;
  ROCKS_LOG_INFO(db->immutable_db_options().info_log,
                 "Transaction %s: Commit() failed in WAL #%" PRIu64
                 " before, now it writes %s",
                 txn_name.c_str(), failed_wal_,
                 *writes_whole ? "the whole transaction" : "the marker again");
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
