//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "utilities/strata/unknown_merge_operator.h"

#include "rocksdb/convenience.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Status has no public constructor for a status with a subcode and a message.
class MergeFailedStatus : public Status {
 public:
  explicit MergeFailedStatus(const Slice& message)
      : Status(kCorruption, kMergeOperatorFailed, message, Slice()) {}
};

}  // namespace

UnknownMergeOperator::UnknownMergeOperator(const std::string& name,
                                           const std::string& text)
    : name_(name), text_(text) {}

bool UnknownMergeOperator::FullMergeV2(const MergeOperationInput& /*in*/,
                                       MergeOperationOutput* out) const {
  out->op_failure_scope = OpFailureScope::kMustMerge;
  return false;
}

bool UnknownMergeOperator::FullMergeV3(const MergeOperationInputV3& /*in*/,
                                       MergeOperationOutputV3* out) const {
  out->op_failure_scope = OpFailureScope::kMustMerge;
  return false;
}

bool UnknownMergeOperator::PartialMergeMulti(
    const Slice& /*key*/, const std::deque<Slice>& /*operands*/,
    std::string* /*new_value*/, Logger* /*logger*/) const {
  return false;
}

bool UnknownMergeOperator::Is(const MergeOperator* merge_operator) {
  return merge_operator != nullptr &&
         merge_operator->IsInstanceOf(kClassName());
}

Status UnknownMergeOperator::MergeFailed(const MergeOperator* merge_operator) {
  if (!Is(merge_operator)) {
    return Status::Corruption(Status::SubCode::kMergeOperatorFailed);
  }
  return MergeFailedStatus(
      "this program does not have the merge operator \"" +
      std::string(merge_operator->Name()) +
      "\" of the database, which this key needs. Open the database with the "
      "operator to read the key");
}

std::string UnknownMergeOperator::SerializeOptions(
    const ConfigOptions& options, const std::string& prefix) const {
  if (options.IsShallow()) {
    return MergeOperator::SerializeOptions(options, prefix);
  }
  return text_;
}

}  // namespace ROCKSDB_NAMESPACE
