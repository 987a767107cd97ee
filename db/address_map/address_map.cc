// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/address_map.h"

#include <algorithm>
#include <cassert>

#include "db/address_map/map_bucket.h"
#include "db/address_map/map_invariant_check.h"
#include "db/address_map/map_shard.h"
#include "db/address_map/map_table.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

AddressMap::AddressMap(const Options& options, BlobFileSlotTable* files)
    : files_(files),
      memory_(options.charge),
      tables_(&memory_, options.expected_entries),
      entries_(files) {
  static_assert(kNumParts == 1 << MapBucket::kPartBits);
}

// ---- Lookups

void AddressMap::Prefetch(const MapKeyHash& key) const {
  const MapTable* const table = tables_.Current();
  if (table != nullptr) {
    // It does not matter if the shard has moved or is changing.
    const MapShardView view = table->ViewOf(table->Of(key));
    view.Prefetch(view.LocOf(key));
  }
}

template <typename Find>
AddressMap::Lookup AddressMap::ReadPinned(const MapKeyHash& key, bool pin,
                                          const Find& find) const {
  Lookup result;
  PlacedEntry entry;
  const auto again = [&] {
    result.pin.Reset();
    result.found = false;
    result.has_direct = false;
  };
  tables_.Read(
      key,
      [&](const MapShardView& view) {
        result.found = find(view, &entry, &result);
        // Pins inside the validated section: if the entry is unchanged, the
        // slot was not given to another file before the pin.
        if (result.found && pin && files_->Pin(entry.address.slot)) {
          result.pin = MapFilePin(files_, entry.address.slot);
        }
      },
      again);
  if (result.found) {
    result.entry.name = MapName{key, entry.seq, entry.birth};
    result.entry.address = entry.address;
    result.entry.mode = entry.mode;
  }
  return result;
}

bool AddressMap::DirectSeq(const MapKeyHash& key, SequenceNumber* seq) const {
  bool found = false;
  PlacedEntry top;
  tables_.Read(
      key,
      [&](const MapShardView& view) {
        found = entries_.FindTop(view, key, &top);
      },
      [&] { found = false; });
  if (found) {
    *seq = top.seq;
  }
  return found;
}

AddressMap::Lookup AddressMap::FindDirect(const MapKeyHash& key,
                                          bool pin) const {
  return ReadPinned(
      key, pin,
      [&](const MapShardView& view, PlacedEntry* entry, Lookup* result) {
        result->has_direct = entries_.FindTop(view, key, entry);
        result->direct_seq = entry->seq;
        return result->has_direct;
      });
}

AddressMap::Lookup AddressMap::FindDurableDirect(const MapKeyHash& key,
                                                 bool pin) const {
  return ReadPinned(
      key, pin,
      [&](const MapShardView& view, PlacedEntry* entry, Lookup* result) {
        result->has_direct = entries_.FindTop(view, key, entry);
        result->direct_seq = entry->seq;
        bool found = result->has_direct;
        SequenceNumber above = ~SequenceNumber{0};
        while (found && files_->IsPending(entry->address.slot)) {
          // Under a torn read the links could form a cycle.
          if (!entry->has_link || entry->link_seq > above) {
            return false;
          }
          above = entry->link_seq;
          const uint64_t birth = entry->link_birth;
          const PlacedEntry upper = *entry;
          found = entries_.FindMixed(view, key, above, birth, entry);
          if (found && upper.seq == entry->seq && upper.birth <= entry->birth) {
            return false;
          }
        }
        return found;
      });
}

AddressMap::Lookup AddressMap::FindByName(const MapName& name, bool pin) const {
  return ReadPinned(
      name.key, pin,
      [&](const MapShardView& view, PlacedEntry* entry, Lookup* result) {
        result->has_direct = entries_.FindTop(view, name.key, entry);
        result->direct_seq = entry->seq;
        if (result->has_direct && entry->Is(name)) {
          return true;
        }
        return entries_.FindNear(view, name.key, name.seq, name.birth, entry) ||
               entries_.FindMixed(view, name.key, name.seq, name.birth, entry);
      });
}

bool AddressMap::MayHaveBelow(const MapKeyHash& key, SequenceNumber seq) const {
  bool found = false;
  tables_.Read(
      key,
      [&](const MapShardView& view) {
        // A writer that changes an entry takes a far name away for a moment.
        PlacedEntry entry;
        found = entries_.FarOf(key).Count() > 0;
        if (found) {
          return;
        }
        found = entries_.ScanKey(
            view, key, view.LocOf(key), [&](uint32_t n, uint32_t i, uint32_t) {
              return entries_.Decode(view, key, n, i, &entry) &&
                     (entry.seq < seq || entry.has_link);
            });
      },
      [&] { found = false; });
  return found;
}

// ---- Changes of one shard

void AddressMap::CutChain(MapShard* shard, const MapShardView& view,
                          const MapKeyHash& key, const Chain& chain,
                          size_t first, uint64_t born_before) {
  Chain now;
  Chain removed;
  for (size_t i = 0; i < chain.size(); ++i) {
    const bool stays = i < first || chain[i].birth >= born_before;
    (stays ? now : removed).push_back(chain[i]);
  }
  if (removed.empty()) {
    return;
  }
  shard->BeginWrite();
  entries_.StoreChain(shard, view, key, chain, &now);
  for (const PlacedEntry& e : removed) {
    files_->SubLive(e.address.slot, e.address.size);
  }
  tables_.EndWrite(shard);
}

void AddressMap::InsertLocked(MapShard* shard, const MapShardView& view,
                              const Record& record, uint32_t slot) {
  const MapName& name = record.name;
  PlacedEntry added;
  added.seq = name.seq;
  added.birth = name.birth;
  added.address = MapAddress{slot, record.offset, record.size};
  added.mode = record.direct ? MapMode::kDirect : MapMode::kVersioned;

  Chain old;
  entries_.LoadChain(view, name.key, &old);
  Chain now;
  bool placed = !record.direct;
  PlacedEntry replaced;
  bool replaces = false;
  for (const PlacedEntry& e : old) {
    if (!placed && (e.Is(name) || e.OlderThan(name))) {
      now.push_back(added);
      placed = true;
    }
    if (e.Is(name)) {
      replaced = e;
      replaces = true;
    } else {
      now.push_back(e);
    }
  }
  if (!placed) {
    now.push_back(added);
  }
  PlacedEntry versioned;
  bool was_versioned = false;
  if (!replaces) {
    // The chain holds every direct and superseded entry, so an entry with this
    // name can only be versioned.
    was_versioned = entries_.FindVersioned(view, name.key, name.seq, name.birth,
                                           &versioned);
    if (was_versioned) {
      replaced = versioned;
      replaces = true;
    }
  }

  shard->BeginWrite();
  files_->AddLive(slot, record.size);
  if (was_versioned) {
    entries_.Erase(shard, view, name.key, versioned);
  }
  if (record.direct || (replaces && !was_versioned)) {
    entries_.StoreChain(shard, view, name.key, old, &now);
  }
  if (!record.direct) {
    entries_.PlaceVersioned(shard, view, name.key, &added);
  }
  if (replaces) {
    files_->SubLive(replaced.address.slot, replaced.address.size);
  }
  tables_.EndWrite(shard);
}

bool AddressMap::RemoveIfInLocked(MapShard* shard, const MapShardView& view,
                                  const MapName& name, uint32_t slot) {
  Chain old;
  entries_.LoadChain(view, name.key, &old);
  Chain now;
  PlacedEntry removed;
  bool in_chain = false;
  for (const PlacedEntry& e : old) {
    if (e.Is(name)) {
      removed = e;
      in_chain = true;
    } else {
      now.push_back(e);
    }
  }
  if (!in_chain &&
      !entries_.FindVersioned(view, name.key, name.seq, name.birth, &removed)) {
    return false;
  }
  if (removed.address.slot != slot) {
    return false;
  }
  shard->BeginWrite();
  if (in_chain) {
    entries_.StoreChain(shard, view, name.key, old, &now);
  } else {
    entries_.Erase(shard, view, name.key, removed);
  }
  files_->SubLive(slot, removed.address.size);
  tables_.EndWrite(shard);
  return true;
}

// ---- Changes

Status AddressMap::InsertBatch(uint32_t slot, const Record* records, size_t n) {
  constexpr size_t kAhead = 8;
  for (size_t i = 0; i < n; ++i) {
    if (i + kAhead < n) {
      Prefetch(records[i + kAhead].name.key);
    }
    if (i % 64 == 0) {
      tables_.HelpMove();
    }
    MapTable* table = nullptr;
    MapShard* shard = nullptr;
    Lock lock;
    Status s = tables_.LockWithRoom(records[i].name.key, &table, &shard, &lock);
    if (!s.ok()) {
      return s;
    }
    InsertLocked(shard, table->ViewOf(shard), records[i], slot);
  }
  return Status::OK();
}

void AddressMap::UndoBatch(uint32_t slot, const Record* records, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    RemoveIfIn(records[i].name, slot);
  }
}

bool AddressMap::RemoveIfIn(const MapName& name, uint32_t slot) {
  MapTable* table = nullptr;
  Lock lock;
  MapShard* const shard = tables_.LockShard(name.key, &table, &lock);
  if (shard == nullptr ||
      !RemoveIfInLocked(shard, table->ViewOf(shard), name, slot)) {
    return false;
  }
  tables_.ShrinkIfSparse(table, shard);
  return true;
}

void AddressMap::CommitBatch(const Record* records, size_t n,
                             uint64_t born_before) {
  for (size_t i = 0; i < n; ++i) {
    if (!records[i].direct) {
      continue;
    }
    const MapName& name = records[i].name;
    MapTable* table = nullptr;
    Lock lock;
    MapShard* const shard = tables_.LockShard(name.key, &table, &lock);
    if (shard == nullptr) {
      return;
    }
    const MapShardView view = table->ViewOf(shard);
    Chain chain;
    entries_.LoadChain(view, name.key, &chain);
    // Cut the entries after the newest committed one. The newest committed
    // entry is this record's or one that was committed earlier. In the latter
    // case this record's entry is already hidden and must be cut here, because
    // no other operation would do it.
    size_t first = 0;
    while (first < chain.size() && !chain[first].OlderThan(name)) {
      ++first;
      if (!files_->IsPending(chain[first - 1].address.slot)) {
        break;
      }
    }
    CutChain(shard, view, name.key, chain, first, born_before);
    tables_.ShrinkIfSparse(table, shard);
  }
}

AddressMap::RenameResult AddressMap::Rename(const MapName& name) {
  MapTable* table = nullptr;
  Lock lock;
  MapShard* const shard = tables_.LockShard(name.key, &table, &lock);
  if (shard == nullptr) {
    return RenameResult::kGone;
  }
  const MapShardView view = table->ViewOf(shard);
  Chain old;
  entries_.LoadChain(view, name.key, &old);
  for (const PlacedEntry& e : old) {
    if (e.Is(name)) {
      return RenameResult::kAlreadyDirect;
    }
  }
  PlacedEntry entry;
  if (!entries_.FindVersioned(view, name.key, name.seq, name.birth, &entry)) {
    return RenameResult::kGone;
  }
  if (!old.empty() && !old[0].OlderThan(name)) {
    return RenameResult::kNewerDirect;
  }
  Chain now;
  now.push_back(entry);
  shard->BeginWrite();
  entries_.Erase(shard, view, name.key, entry);
  entries_.StoreChain(shard, view, name.key, old, &now);
  for (const PlacedEntry& e : old) {
    files_->SubLive(e.address.slot, e.address.size);
  }
  tables_.EndWrite(shard);
  return RenameResult::kRenamed;
}

bool AddressMap::Demote(const MapName& name) {
  MapTable* table = nullptr;
  Lock lock;
  MapShard* const shard = tables_.LockShard(name.key, &table, &lock);
  if (shard == nullptr) {
    return false;
  }
  const MapShardView view = table->ViewOf(shard);
  Chain chain;
  entries_.LoadChain(view, name.key, &chain);
  size_t at = 0;
  while (at < chain.size() && !chain[at].Is(name)) {
    ++at;
  }
  if (at == chain.size()) {
    PlacedEntry entry;
    return entries_.FindVersioned(view, name.key, name.seq, name.birth, &entry);
  }
  Chain newer;
  for (size_t i = 0; i < at; ++i) {
    newer.push_back(chain[i]);
  }
  PlacedEntry demoted = chain[at];
  shard->BeginWrite();
  entries_.StoreChain(shard, view, name.key, chain, &newer);
  entries_.PlaceVersioned(shard, view, name.key, &demoted);
  for (size_t i = at + 1; i < chain.size(); ++i) {
    files_->SubLive(chain[i].address.slot, chain[i].address.size);
  }
  tables_.EndWrite(shard);
  return true;
}

void AddressMap::DemoteAll() {
  std::vector<MapName> direct;
  for (uint32_t part = 0; part < kNumParts; ++part) {
    ForEachInPart(part, [&direct](const Entry& entry) {
      if (entry.mode == MapMode::kDirect) {
        direct.push_back(entry.name);
      }
    });
    for (const MapName& name : direct) {
      Demote(name);
    }
    direct.clear();
  }
}

bool AddressMap::Remove(const MapName& name) {
  MapTable* table = nullptr;
  Lock lock;
  MapShard* const shard = tables_.LockShard(name.key, &table, &lock);
  if (shard == nullptr) {
    return false;
  }
  const MapShardView view = table->ViewOf(shard);
  Chain chain;
  entries_.LoadChain(view, name.key, &chain);
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i].Is(name)) {
      CutChain(shard, view, name.key, chain, i, kMaxBirth);
      tables_.ShrinkIfSparse(table, shard);
      return true;
    }
  }
  PlacedEntry entry;
  if (!entries_.FindVersioned(view, name.key, name.seq, name.birth, &entry)) {
    return false;
  }
  shard->BeginWrite();
  entries_.Erase(shard, view, name.key, entry);
  files_->SubLive(entry.address.slot, entry.address.size);
  tables_.EndWrite(shard);
  tables_.ShrinkIfSparse(table, shard);
  return true;
}

size_t AddressMap::RemoveHidden(const MapKeyHash& key, SequenceNumber from,
                                SequenceNumber below, uint64_t born_before,
                                LeftEntries* left) {
  assert(from <= below);
  *left = LeftEntries();
  MapTable* table = nullptr;
  Lock lock;
  MapShard* const shard = tables_.LockShard(key, &table, &lock);
  if (shard == nullptr) {
    return 0;
  }
  const MapShardView view = table->ViewOf(shard);
  Chain chain;
  entries_.LoadChain(view, key, &chain);
  Chain kept;
  autovector<PlacedEntry, 8> removed;
  size_t num_direct = 0;
  // Returns true if the entry is to be removed.
  const auto judge = [&](const PlacedEntry& e) {
    if (e.seq >= below || e.birth >= born_before) {
      return false;
    }
    if (e.seq < from) {
      left->below = std::max(left->below, e.seq + 1);
      left->born_before = std::max(left->born_before, e.birth + 1);
      return false;
    }
    removed.push_back(e);
    return true;
  };
  for (const PlacedEntry& e : chain) {
    if (judge(e)) {
      ++num_direct;
    } else {
      kept.push_back(e);
    }
  }
  entries_.ForEachVersionedBelow(view, key, below, judge);
  if (removed.empty()) {
    return 0;
  }
  shard->BeginWrite();
  if (num_direct > 0) {
    entries_.StoreChain(shard, view, key, chain, &kept);
  }
  for (size_t i = num_direct; i < removed.size(); ++i) {
    entries_.Erase(shard, view, key, removed[i]);
  }
  for (const PlacedEntry& e : removed) {
    files_->SubLive(e.address.slot, e.address.size);
  }
  tables_.EndWrite(shard);
  tables_.ShrinkIfSparse(table, shard);
  return removed.size();
}

bool AddressMap::SwapAddress(const MapName& name, const MapAddress& from,
                             const MapAddress& to) {
  MapTable* table = nullptr;
  Lock lock;
  MapShard* const shard = tables_.LockShard(name.key, &table, &lock);
  if (shard == nullptr) {
    return false;
  }
  const MapShardView view = table->ViewOf(shard);
  PlacedEntry entry;
  if (!(entries_.FindTop(view, name.key, &entry) && entry.Is(name)) &&
      !entries_.FindNear(view, name.key, name.seq, name.birth, &entry) &&
      !entries_.FindMixed(view, name.key, name.seq, name.birth, &entry)) {
    return false;
  }
  if (!(entry.address == from)) {
    return false;
  }
  shard->BeginWrite();
  files_->AddLive(to.slot, to.size);
  entries_.Erase(shard, view, name.key, entry);
  TEST_SYNC_POINT("AddressMap::SwapAddress:Erased");
  entry.address = to;
  entries_.Place(shard, view, name.key, entry);
  files_->SubLive(from.slot, from.size);
  tables_.EndWrite(shard);
  return true;
}

// ---- All entries

uint32_t AddressMap::CopyPart(const MapKeyHash& at, uint32_t part,
                              std::vector<Entry>* entries) const {
  MapTable* table = nullptr;
  Lock lock;
  const MapShard* const shard = tables_.LockShard(at, &table, &lock);
  const MapShardView view = table->ViewOf(shard);
  const auto add = [&](uint32_t n, uint32_t i) {
    const MapKeyHash key = table->KeyAt(shard, n, i);
    PlacedEntry e;
    if (entries_.Decode(view, key, n, i, &e)) {
      entries->push_back(
          Entry{MapName{key, e.seq, e.birth}, e.address, e.mode});
    }
  };
  if (!table->IsSmall()) {
    entries->reserve(shard->Count());
  }
  for (uint32_t n = 0; n < view.num_buckets; ++n) {
    // The shard of a small table holds entries of other parts as well.
    const uint16_t* const high = shard->HighOf(n);
    view.base[n].ForEach([&](uint32_t i) {
      if (high == nullptr || high[i] == part) {
        add(n, i);
      }
    });
  }
  return table->shard_bits;
}

void AddressMap::ForEachInPart(
    uint32_t part, const std::function<void(const Entry&)>& fn) const {
  assert(part < kNumParts);
  if (tables_.Current() == nullptr) {
    return;
  }
  // Walks the part shard by shard. Each step locks the shard of the first key
  // that was not walked yet, in the table that holds it at that moment.
  const uint64_t begin = uint64_t{part} << (64 - MapBucket::kPartBits);
  const uint64_t end = begin + (uint64_t{1} << (64 - MapBucket::kPartBits));
  MapKeyHash at{begin, 0};
  std::vector<Entry> entries;
  do {
    entries.clear();
    const uint32_t bits = CopyPart(at, part, &entries);
    for (const Entry& e : entries) {
      fn(e);
    }
    if (bits < MapBucket::kPartBits) {
      return;  // the shard contained the whole part
    }
    at.hi += uint64_t{1} << (64 - bits);
  } while (at.hi != end);
}

size_t AddressMap::Forget(const std::vector<uint32_t>& slots) {
  const std::vector<uint32_t> sorted = [&] {
    std::vector<uint32_t> copy = slots;
    std::sort(copy.begin(), copy.end());
    return copy;
  }();
  size_t removed = 0;
  for (uint32_t part = 0; part < kNumParts; ++part) {
    // An entry that a concurrent change moves within the part is in the copy
    // already; RemoveIfIn() finds it by its name.
    ForEachInPart(part, [&](const Entry& e) {
      if (std::binary_search(sorted.begin(), sorted.end(), e.address.slot) &&
          RemoveIfIn(e.name, e.address.slot)) {
        ++removed;
      }
    });
  }
  return removed;
}

Status AddressMap::TEST_Check() const {
  return MapInvariantCheck(tables_, entries_).Run();
}

}  // namespace ROCKSDB_NAMESPACE
