//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/implicit_snapshot_registry.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

void ImplicitSnapshotRegistry::ReadBound::Release() {
  if (!registered()) {
    return;
  }
  {
    MutexLock lock(&shard_->mutex);
    node_.prev->next = node_.next;
    node_.next->prev = node_.prev;
  }
  shard_ = nullptr;
  registry_->AfterRemoval(node_.sequence);
}

void ImplicitSnapshotRegistry::ReadBound::TakeOver(ReadBound* other) noexcept {
  assert(!registered());
  if (!other->registered()) {
    return;
  }
  registry_ = other->registry_;
  shard_ = std::exchange(other->shard_, nullptr);
  MutexLock lock(&shard_->mutex);
  node_ = other->node_;
  node_.prev->next = &node_;
  node_.next->prev = &node_;
}

ImplicitSnapshotRegistry::ImplicitSnapshotRegistry(
    std::function<void()> on_clear)
    : on_clear_(std::move(on_clear)) {}

ImplicitSnapshotRegistry::~ImplicitSnapshotRegistry() { assert(!HasAny()); }

ImplicitSnapshotRegistry::Shard* ImplicitSnapshotRegistry::PickShard() {
  size_t core = shards_.AccessElementAndIndex().second;
  TEST_SYNC_POINT_CALLBACK("ImplicitSnapshotRegistry::PickShard:Core", &core);
  return shards_.AccessAtCore(core);
}

template <typename Fn>
void ImplicitSnapshotRegistry::ForEach(const Fn& fn) const {
  for (size_t i = 0; i < shards_.Size(); ++i) {
    shards_.AccessAtCore(i)->mutex.Lock();
  }
  for (size_t i = 0; i < shards_.Size(); ++i) {
    const Shard* const shard = shards_.AccessAtCore(i);
    for (const Node* node = shard->head.next; node != &shard->head;
         node = node->next) {
      fn(node->sequence);
    }
    TEST_SYNC_POINT("ImplicitSnapshotRegistry::ForEach:SearchedShard");
  }
  for (size_t i = 0; i < shards_.Size(); ++i) {
    shards_.AccessAtCore(i)->mutex.Unlock();
  }
}

void ImplicitSnapshotRegistry::MergeInto(
    std::vector<SequenceNumber>* snapshots) const {
  assert(std::adjacent_find(snapshots->begin(), snapshots->end(),
                            std::greater_equal<SequenceNumber>()) ==
         snapshots->end());
  std::vector<SequenceNumber> bounds;
  ForEach([&](SequenceNumber sequence) {
    // Readers that register between two writes have the same sequence number.
    if (bounds.empty() || bounds.back() != sequence) {
      bounds.push_back(sequence);
    }
  });
  if (bounds.empty()) {
    return;
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  std::vector<SequenceNumber> merged;
  merged.reserve(snapshots->size() + bounds.size());
  std::set_union(snapshots->begin(), snapshots->end(), bounds.begin(),
                 bounds.end(), std::back_inserter(merged));
  *snapshots = std::move(merged);
}

SequenceNumber ImplicitSnapshotRegistry::Min() const {
  SequenceNumber min = kMaxSequenceNumber;
  ForEach([&](SequenceNumber sequence) { min = std::min(min, sequence); });
  return min;
}

bool ImplicitSnapshotRegistry::AnyBelow(SequenceNumber limit) const {
  bool any = false;
  ForEach([&](SequenceNumber sequence) { any |= sequence < limit; });
  return any;
}

bool ImplicitSnapshotRegistry::NotifyWhenNoneBelow(SequenceNumber limit) {
  assert(on_clear_ != nullptr);
  assert(limit > 0);
  MutexLock lock(&notify_mutex_);
  const SequenceNumber before = notify_limit_.load(std::memory_order_relaxed);
  // The limit is raised before the shards are searched, so that a thread that
  // releases an implicit snapshot right after the search found it sees the
  // limit. That thread then waits for notify_mutex_.
  notify_limit_.store(std::max(before, limit), std::memory_order_relaxed);
  TEST_SYNC_POINT("ImplicitSnapshotRegistry::NotifyWhenNoneBelow:BeforeSearch");
  const bool blocked = AnyBelow(limit);
  TEST_SYNC_POINT("ImplicitSnapshotRegistry::NotifyWhenNoneBelow:AfterSearch");
  // As long as there are implicit snapshots below the lower of two limits,
  // there are some below the higher one, so the lower one stands for both.
  const SequenceNumber after =
      !blocked ? before : (before == 0 ? limit : std::min(before, limit));
  notify_limit_.store(after, std::memory_order_relaxed);
  return blocked;
}

void ImplicitSnapshotRegistry::NotifyIfClear() {
  TEST_SYNC_POINT("ImplicitSnapshotRegistry::NotifyIfClear:BeforeLock");
  {
    MutexLock lock(&notify_mutex_);
    const SequenceNumber limit = notify_limit_.load(std::memory_order_relaxed);
    if (limit == 0 || AnyBelow(limit)) {
      return;
    }
    notify_limit_.store(0, std::memory_order_relaxed);
  }
  on_clear_();
}

}  // namespace ROCKSDB_NAMESPACE
