//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/known_operand_filter.h"

#include <cassert>

namespace ROCKSDB_NAMESPACE {

void KnownOperandFilter::Restart() {
  status_ = Status::OK();
  has_key_ = false;
  at_merged_ = false;
}

void KnownOperandFilter::Refuse() {
  assert(false);
  status_ = Status::NotSupported("Forward only");
}

void KnownOperandFilter::SeekToFirst() {
  Restart();
  input_->SeekToFirst();
  Settle();
}

void KnownOperandFilter::Seek(const Slice& target) {
  Restart();
  input_->Seek(target);
  Settle();
}

void KnownOperandFilter::Next() {
  assert(Valid());
  at_merged_ = false;
  input_->Next();
  Settle();
}

void KnownOperandFilter::Settle() {
  for (; input_->Valid(); input_->Next()) {
    ParsedInternalKey parsed;
    // Invalid internal keys are left to the flush.
    if (!ParseInternalKey(input_->key(), &parsed, /*log_err_key=*/false).ok()) {
      return;
    }
    const SequenceNumber seq = parsed.sequence;
    const bool is_operand = parsed.type == kTypeMerge;
    if (!has_key_ || !ucmp_->Equal(parsed.user_key, key_)) {
      key_ = parsed.user_key.ToString();
      has_key_ = true;
      starts_with_operand_ = is_operand;
      is_decided_ = false;
    }
    if (!is_operand) {
      return;
    }
    if (!is_decided_) {
      is_decided_ = true;
      status_ = Decide(starts_with_operand_);
      if (!status_.ok()) {
        return;
      }
    }
    at_merged_ = replaced_ != 0 && seq == replaced_;
    if (at_merged_ || (replaced_ == 0 && seq > newest_known_)) {
      return;
    }
  }
}

Status KnownOperandFilter::Decide(bool is_top) {
  replaced_ = 0;
  Status s = source_->NewestKnown(key_, &newest_known_);
  if (!s.ok() || !is_top) {
    return s;
  }
  const std::string first = input_->key().ToString();
  std::vector<std::pair<SequenceNumber, std::string>> operands;
  Base base;
  for (; input_->Valid(); input_->Next()) {
    ParsedInternalKey parsed;
    if (!ParseInternalKey(input_->key(), &parsed, /*log_err_key=*/false).ok() ||
        !ucmp_->Equal(parsed.user_key, key_)) {
      break;
    }
    if (parsed.type != kTypeMerge) {
      base.seq = parsed.sequence;
      base.type = parsed.type;
      base.value = input_->value().ToString();
      break;
    }
    operands.emplace_back(parsed.sequence, input_->value().ToString());
  }
  s = input_->status();
  input_->Seek(first);
  return s.ok() ? MergeWithBase(operands, base) : s;
}

Status KnownOperandFilter::MergeWithBase(
    const std::vector<std::pair<SequenceNumber, std::string>>& operands,
    const Base& base) {
  Base other;
  bool found = false;
  Status s = source_->FindBase(key_, &other, &found);
  // A range deletion of this WAL may be the newer one. It may be between the
  // operands.
  const Base& newest = found && other.seq > base.seq ? other : base;
  if (!s.ok() || newest.seq == 0 || operands.front().first <= newest.seq) {
    return s;
  }
  std::vector<Slice> above;
  for (auto it = operands.rbegin(); it != operands.rend(); ++it) {
    if (it->first > newest.seq) {
      above.emplace_back(it->second);
    }
  }
  ValueType type = kTypeValue;
  bool merged = false;
  s = source_->Merge(key_, newest, above, &merged_, &type, &merged);
  if (s.ok() && merged) {
    replaced_ = operands.front().first;
    merged_key_.clear();
    AppendInternalKey(&merged_key_, ParsedInternalKey(key_, replaced_, type));
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
