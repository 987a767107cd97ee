//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/transaction_log.h"

namespace ROCKSDB_NAMESPACE {

// A TransactionLogIterator of a DB that takes back writes which have failed. It
// may have read such a write ahead, and would return it in the place of the
// write that has its sequence number now. So it ends when a write was taken
// back since its creation.
//
// Invariants:
// 1. After a batch was taken back, Valid() returns false and status() TryAgain
//    from the next call of Next() on, whatever the iterator below has read.
// 2. The number of cuts is read behind each batch. A batch that was read in the
//    place of another one has the sequence number of a published write, and the
//    number has grown before that was published.
class CutCheckedLogIterator final : public TransactionLogIterator {
 public:
  // num_cuts: how many writes were taken back so far.
  // num_cuts_before: the number before iter was created.
  // REQUIRES: *num_cuts outlives this object, iter is not nullptr
  CutCheckedLogIterator(std::unique_ptr<TransactionLogIterator>&& iter,
                        const std::atomic<uint64_t>* num_cuts,
                        uint64_t num_cuts_before);

  bool Valid() override;
  void Next() override;
  Status status() override;
  BatchResult GetBatch() override;

 private:
  void CheckCuts();

  const std::unique_ptr<TransactionLogIterator> iter_;
  const std::atomic<uint64_t>* const num_cuts_;
  const uint64_t num_cuts_before_;
  bool is_outdated_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
