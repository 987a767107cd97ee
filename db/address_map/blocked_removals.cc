//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/blocked_removals.h"

#include <algorithm>
#include <iterator>

namespace ROCKSDB_NAMESPACE {

BlockedRemovals::~BlockedRemovals() {
  if (charged_ > 0) {
    charge_->SetCharged(0).PermitUncheckedError();
  }
}

size_t BlockedRemovals::Hide(const MapKeyHash& key, SequenceNumber seq,
                             uint64_t born_before,
                             const std::vector<SequenceNumber>& readers) {
  // No reader is, or will be, between seq and the newest reader below seq. An
  // entry between them is too new for that reader, and hidden from all others.
  SequenceNumber from = 0;
  if (!readers.empty() && readers.back() < seq) {
    from = seq;  // new readers may not see the entry at seq yet
  } else {
    const auto next = std::lower_bound(readers.begin(), readers.end(), seq);
    from = next == readers.begin() ? 0 : *std::prev(next) + 1;
  }
  AddressMap::LeftEntries left;
  const size_t removed = map_->RemoveHidden(key, from, seq, born_before, &left);
  if (left.below > 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    items_.push_back(Item{key, seq, left});
    std::push_heap(items_.begin(), items_.end());
    if (items_.size() >= prune_at_) {
      Prune();
    }
    OnChange();
  }
  return removed;
}

size_t BlockedRemovals::Apply(SequenceNumber earliest_reader, size_t max_keys) {
  std::vector<Item> due;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    while (!items_.empty() && items_.front().seq <= earliest_reader &&
           due.size() < max_keys) {
      std::pop_heap(items_.begin(), items_.end());
      due.push_back(items_.back());
      items_.pop_back();
    }
    OnChange();
  }
  size_t removed = 0;
  for (const Item& item : due) {
    AddressMap::LeftEntries none;
    removed += map_->RemoveHidden(item.key, /*from=*/0, item.seq,
                                  item.left.born_before, &none);
  }
  return removed;
}

void BlockedRemovals::Prune() {
  std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
    return a.key == b.key ? a.seq < b.seq : a.key < b.key;
  });
  // An item stands for the entries of its key within the bounds of `left`. It
  // is redundant if the previous item of the key has no smaller bounds: that
  // item removes the same entries no later.
  size_t kept = 0;
  for (const Item& item : items_) {
    if (kept == 0 || !(items_[kept - 1].key == item.key) ||
        items_[kept - 1].seq < item.left.below ||
        items_[kept - 1].left.born_before < item.left.born_before) {
      items_[kept++] = item;
    }
  }
  items_.resize(kept);
  std::make_heap(items_.begin(), items_.end());
  prune_at_ = std::max(kMinPruned, 2 * kept);
}

void BlockedRemovals::OnChange() {
  blocked_until_.store(items_.empty() ? kMaxSequenceNumber : items_.front().seq,
                       std::memory_order_relaxed);
  if (items_.size() < items_.capacity() / 4 && items_.capacity() > 1024) {
    items_.shrink_to_fit();
    prune_at_ = std::max(kMinPruned, 2 * items_.size());
  }
  const size_t memory = items_.capacity() * sizeof(Item);
  memory_.store(memory, std::memory_order_relaxed);
  const size_t charge = (memory + kChargeStep - 1) / kChargeStep * kChargeStep;
  if (charge_ != nullptr && charge != charged_) {
    charge_->SetCharged(charge).PermitUncheckedError();
    charged_ = charge;
  }
}

uint64_t BlockedRemovals::Count() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return items_.size();
}

}  // namespace ROCKSDB_NAMESPACE
