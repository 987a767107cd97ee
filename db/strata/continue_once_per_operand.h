//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>

#include "rocksdb/db.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// The GetMergeOperandsOptions of a lookup that may start again, with a
// continue_cb that asks the user's only once for each operand. A user's
// callback may count operands or bytes, so a second question about the same
// operand would end the lookup too early.
//
// INVARIANT: all attempts see the same operands, newest first, up to the first
// one that a job has merged into a base value between two attempts. This holds
// for attempts that read at one fixed sequence number. So the answer to the
// n-th question of an earlier attempt is the answer to the n-th of this one.
//
// Not thread-safe.
class ContinueOncePerOperand {
 public:
  // REQUIRES: given.continue_cb is not nullptr; `given` outlives this object.
  explicit ContinueOncePerOperand(const GetMergeOperandsOptions& given);
  ContinueOncePerOperand(const ContinueOncePerOperand&) = delete;
  ContinueOncePerOperand& operator=(const ContinueOncePerOperand&) = delete;

  // Returns the options for the next attempt, valid as long as this object.
  GetMergeOperandsOptions* StartAttempt();

 private:
  // Returns whether the attempt goes on after the operand.
  bool Continue(const Slice& operand);

  const GetMergeOperandsOptions& given_;
  GetMergeOperandsOptions options_;
  // Questions of all attempts that the user's callback has answered. Only the
  // last answer can be false.
  size_t answered_ = 0;
  bool last_answer_ = true;
  // Questions of this attempt.
  size_t asked_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
