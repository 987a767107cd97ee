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
    if (!has_key_ || !ucmp_->Equal(parsed.user_key, key_)) {
      status_ = BeginKey(parsed.user_key);
      if (!status_.ok()) {
        return;
      }
    }
    if (GetInternalKeySeqno(input_->key()) > newest_known_ ||
        ExtractValueType(input_->key()) != kTypeMerge) {
      return;
    }
    if (GetInternalKeySeqno(input_->key()) == replaced_) {
      at_merged_ = true;
      return;
    }
  }
}

Status KnownOperandFilter::BeginKey(const Slice& user_key) {
  key_ = user_key.ToString();
  has_key_ = true;
  replaced_ = 0;
  Status s = source_->NewestKnown(key_, &newest_known_);
  if (!s.ok() || newest_known_ == 0) {
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
    if (parsed.sequence <= newest_known_) {
      operands.emplace_back(parsed.sequence, input_->value().ToString());
    }
  }
  s = input_->status();
  input_->Seek(first);
  return s.ok() && !operands.empty() ? MergeKnown(operands, base) : s;
}

Status KnownOperandFilter::MergeKnown(
    const std::vector<std::pair<SequenceNumber, std::string>>& operands,
    const Base& base) {
  Base other;
  bool found = false;
  Status s = source_->FindBase(key_, &other, &found);
  // The other one may be newer: a range deletion of this WAL.
  const Base& newest = found && other.seq > base.seq ? other : base;
  std::vector<Slice> above;
  for (auto it = operands.rbegin(); it != operands.rend(); ++it) {
    if (it->first > newest.seq) {
      above.emplace_back(it->second);
    }
  }
  if (!s.ok() || newest.seq == 0 || above.empty()) {
    return s;
  }
  ValueType type = kTypeValue;
  s = source_->Merge(key_, newest, above, &merged_, &type);
  if (s.ok()) {
    replaced_ = operands.front().first;
    merged_key_.clear();
    AppendInternalKey(&merged_key_, ParsedInternalKey(key_, replaced_, type));
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
