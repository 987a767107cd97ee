// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_invariant_check.h"

#include <mutex>

namespace ROCKSDB_NAMESPACE {

Status MapInvariantCheck::Run() {
  for (const MapTable* table = tables_.Current(); table != nullptr;
       table = table->next.load()) {
    for (size_t n = 0; n < table->NumShards(); ++n) {
      MapShard* const shard = &table->shards[n];
      const std::lock_guard<std::mutex> lock(shard->mutex);
      if (shard->moved.load()) {
        continue;
      }
      Status s = CheckShard(table, shard);
      if (!s.ok()) {
        return s;
      }
    }
  }
  if (total_ != tables_.NumEntries()) {
    return Status::Corruption("Wrong total");
  }
  if (cells_ != entries_.NumSideCells()) {
    return Status::Corruption("Side cells leaked");
  }
  if (far_ != entries_.NumFarNames()) {
    return Status::Corruption("Names of far entries leaked");
  }
  return Status::OK();
}

Status MapInvariantCheck::CheckShard(const MapTable* table, MapShard* shard) {
  const MapShardView view = table->ViewOf(shard);
  std::vector<uint32_t> over(view.num_buckets);
  uint64_t count = 0;
  for (uint32_t m = 0; m < view.num_buckets; ++m) {
    Status s;
    view.base[m].ForEach([&](uint32_t i) {
      ++count;
      if (s.ok()) {
        s = CheckEntry(table, shard, m, i, &over);
      }
    });
    if (!s.ok()) {
      return s;
    }
  }
  for (uint32_t m = 0; m < view.num_buckets; ++m) {
    if (over[m] != view.base[m].Over()) {
      return Status::Corruption("Wrong overflow count");
    }
  }
  if (count != shard->Count()) {
    return Status::Corruption("Wrong entry count");
  }
  total_ += count;
  return Status::OK();
}

Status MapInvariantCheck::CheckEntry(const MapTable* table,
                                     const MapShard* shard, uint32_t bucket,
                                     uint32_t index,
                                     std::vector<uint32_t>* over) {
  const MapShardView view = table->ViewOf(shard);
  const MapKeyHash key = table->KeyAt(shard, bucket, index);
  PlacedEntry e;
  if (table->Of(key) != shard ||
      !entries_.Decode(view, key, bucket, index, &e)) {
    return Status::Corruption("Entry in a wrong shard or torn");
  }
  cells_ += (e.side != OverflowCells::kNone ? 1 : 0) +
            (e.link_side != OverflowCells::kNone ? 1 : 0);
  far_ += e.is_far ? 1 : 0;
  if (e.is_far != entries_.FarOf(key).Has(MapName{key, e.seq, e.birth})) {
    return Status::Corruption(
        "Far entry missing from the set, or near entry in it");
  }
  for (uint32_t n =
           view.HomeOf(key, e.seq, MapBucket::RawMode(e.mode, e.is_far));
       n != bucket; n = view.After(n)) {
    ++(*over)[n];
    if (!view.base[n].MayBePassedBy(key)) {
      return Status::Corruption("Entry not reachable from its home");
    }
  }
  return CheckChain(view, key, e);
}

Status MapInvariantCheck::CheckChain(const MapShardView& view,
                                     const MapKeyHash& key,
                                     const PlacedEntry& entry) const {
  MapEntries::Chain chain;
  entries_.LoadChain(view, key, &chain);
  size_t in_chain = 0;
  for (size_t c = 0; c < chain.size(); ++c) {
    const PlacedEntry& e = chain[c];
    in_chain += e.bucket == entry.bucket && e.index == entry.index;
    if (c > 0 &&
        !e.OlderThan(MapName{key, chain[c - 1].seq, chain[c - 1].birth})) {
      return Status::Corruption("Chain out of order");
    }
  }
  if (in_chain != (entry.mode == MapMode::kVersioned ? 0 : 1)) {
    return Status::Corruption("Entry not reachable by its chain");
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
