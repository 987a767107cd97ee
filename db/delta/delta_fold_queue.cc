//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_fold_queue.h"

#include <algorithm>
#include <cassert>

namespace ROCKSDB_NAMESPACE {

void DeltaFoldQueue::AddOperand(const Slice& user_key, SequenceNumber seq,
                                const Slice& value) {
  if (keys_.empty() || LastKey() != user_key) {
    Key& key = keys_.emplace_back();
    key.begin_ = data_.size();
    key.size_ = user_key.size();
    key.first_operand_ = operands_.size();
    key.first_anchor_ = anchors_.size();
    data_.append(user_key.data(), user_key.size());
  }
  Key& key = keys_.back();
  assert(!key.has_anchors());
  assert(key.num_operands_ == 0 || operands_.back().seq > seq);
  ++key.num_operands_;
  key.bytes_ += user_key.size() + value.size();
  bytes_left_ += user_key.size() + value.size();
  operands_.push_back({seq, data_.size(), value.size()});
  data_.append(value.data(), value.size());
}

void DeltaFoldQueue::AddAnchor(SequenceNumber seq) {
  assert(!keys_.empty());
  ++keys_.back().num_anchors_;
  anchors_.push_back(seq);
}

void DeltaFoldQueue::Choose(Key* key) {
  assert(!key->is_chosen_);
  key->is_chosen_ = true;
  bytes_left_ -= key->bytes_;
}

void DeltaFoldQueue::ChooseAll() {
  for (Key& key : keys_) {
    if (!key.is_chosen_) {
      Choose(&key);
    }
  }
}

void DeltaFoldQueue::ChooseFrom(size_t num_operands, uint64_t bytes,
                                SequenceNumber earliest_snapshot) {
  for (Key& key : keys_) {
    if ((key.num_operands_ >= num_operands || key.bytes_ >= bytes) &&
        MayChoose(key, earliest_snapshot)) {
      Choose(&key);
    }
  }
}

void DeltaFoldQueue::ChooseLargest(uint64_t max_left,
                                   SequenceNumber earliest_snapshot) {
  if (bytes_left_ <= max_left) {
    return;
  }
  std::vector<Key*> candidates;
  candidates.reserve(keys_.size());
  for (Key& key : keys_) {
    if (MayChoose(key, earliest_snapshot)) {
      candidates.push_back(&key);
    }
  }
  // Keys of the same size are chosen in order, as adjacent keys are read
  // together.
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Key* a, const Key* b) { return a->bytes_ > b->bytes_; });
  for (Key* key : candidates) {
    if (bytes_left_ <= max_left) {
      break;
    }
    Choose(key);
  }
}

void DeltaFoldQueue::GetOperands(
    const Key& key, std::vector<DeltaFolder::Operand>* operands) const {
  operands->clear();
  operands->reserve(key.num_operands_);
  for (size_t i = 0; i < key.num_operands_; ++i) {
    const Operand& operand = operands_[key.first_operand_ + i];
    operands->emplace_back(operand.seq,
                           Slice(data_.data() + operand.begin, operand.size));
  }
}

void DeltaFoldQueue::Clear() {
  data_.clear();
  keys_.clear();
  operands_.clear();
  anchors_.clear();
  bytes_left_ = 0;
}

}  // namespace ROCKSDB_NAMESPACE
