//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/merged_value/merged_value_flush.h"

#include <algorithm>
#include <string>

#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/merge_helper.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

MergedValueFlush::MergedValueFlush(const ColumnFamilyData& cfd,
                                   bool mems_are_oldest)
    : ioptions_(cfd.ioptions()), flush_(cfd.merged_values(), mems_are_oldest) {}

void MergedValueFlush::OnBegin() {
  // known_ is kept. It stays valid if the current key is the first one;
  // otherwise BeginKey() sets it again.
  operands_.clear();
  has_all_operands_ = false;
  is_at_end_ = false;
  has_all_ = true;
}

void MergedValueFlush::OnEnd() {
  EndKey();
  is_at_end_ = true;
}

void MergedValueFlush::OnEntry(const InternalIterator& iter) {
  const Slice internal_key = iter.key();
  const Slice user_key = ExtractUserKey(internal_key);
  SequenceNumber seq = 0;
  ValueType type = kTypeValue;
  UnPackSequenceAndType(ExtractInternalKeyFooter(internal_key), &seq, &type);
  if (newest_ == 0 || user_key != key_) {
    EndKey();
    BeginKey(user_key, seq);
  }
  if (!known_.found() || has_all_operands_) {
    return;
  }
  if (seq <= known_.seq()) {
    has_all_operands_ = true;
  } else if (type == kTypeMerge) {
    operands_.push_back(iter.value());
  } else {
    known_.Reset();
  }
}

void MergedValueFlush::BeginKey(const Slice& user_key, SequenceNumber newest) {
  key_.assign(user_key.data(), user_key.size());
  newest_ = newest;
  operands_.clear();
  has_all_operands_ = false;
  flush_.OnKey(user_key, newest, &known_);
}

void MergedValueFlush::EndKey() {
  if (!known_.found() || !has_all_ || operands_.empty() ||
      !MergedValueCache::Flush::IsWorthCarrying(known_)) {
    known_.Reset();
    return;
  }
  std::reverse(operands_.begin(), operands_.end());
  std::string result;
  ValueType type = kTypeValue;
  const Status s = MergeHelper::TimedFullMerge(
      ioptions_.merge_operator.get(), key_, MergeHelper::kPlainBaseValue,
      known_.value(), operands_, ioptions_.logger, ioptions_.stats,
      ioptions_.clock, /*update_num_ops_stats=*/false,
      /*op_failure_scope=*/nullptr, &result,
      /*result_operand=*/static_cast<Slice*>(nullptr), &type);
  if (s.ok() && type == kTypeValue) {
    flush_.Carry(known_, newest_, result);
  }
  known_.Reset();
}

void MergedValueFlush::Finish() {
  TEST_SYNC_POINT("MergedValueFlush::Finish");
  flush_.Finish(has_all_ && is_at_end_);
}

}  // namespace ROCKSDB_NAMESPACE
