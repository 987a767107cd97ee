//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/continue_once_per_operand.h"

#include <cassert>

namespace ROCKSDB_NAMESPACE {

ContinueOncePerOperand::ContinueOncePerOperand(
    const GetMergeOperandsOptions& given)
    : given_(given), options_(given) {
  assert(given.continue_cb != nullptr);
  options_.continue_cb = [this](const Slice& operand) {
    return Continue(operand);
  };
}

GetMergeOperandsOptions* ContinueOncePerOperand::StartAttempt() {
  asked_ = 0;
  return &options_;
}

bool ContinueOncePerOperand::Continue(const Slice& operand) {
  ++asked_;
  if (asked_ > answered_) {
    assert(last_answer_);  // a lookup ends at the first `false`
    last_answer_ = given_.continue_cb(operand);
    answered_ = asked_;
  }
  return asked_ < answered_ || last_answer_;
}

}  // namespace ROCKSDB_NAMESPACE
