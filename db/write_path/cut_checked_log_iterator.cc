//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/write_path/cut_checked_log_iterator.h"

#include <cassert>
#include <utility>

namespace ROCKSDB_NAMESPACE {

CutCheckedLogIterator::CutCheckedLogIterator(
    std::unique_ptr<TransactionLogIterator>&& iter,
    const std::atomic<uint64_t>* num_cuts, uint64_t num_cuts_before)
    : iter_(std::move(iter)),
      num_cuts_(num_cuts),
      num_cuts_before_(num_cuts_before) {
  assert(iter_ != nullptr);
  CheckCuts();
}

void CutCheckedLogIterator::CheckCuts() {
  is_outdated_ |= *num_cuts_ != num_cuts_before_;
}

bool CutCheckedLogIterator::Valid() { return !is_outdated_ && iter_->Valid(); }

void CutCheckedLogIterator::Next() {
  CheckCuts();
  if (!is_outdated_) {
    iter_->Next();
    CheckCuts();
  }
}

Status CutCheckedLogIterator::status() {
  return is_outdated_ ? Status::TryAgain(
                            "A write that failed was taken back from the WAL. "
                            "Create a new iterator")
                      : iter_->status();
}

BatchResult CutCheckedLogIterator::GetBatch() {
  assert(Valid());
  return iter_->GetBatch();
}

}  // namespace ROCKSDB_NAMESPACE
