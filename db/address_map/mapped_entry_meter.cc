//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_entry_meter.h"

#include <algorithm>
#include <cassert>

namespace ROCKSDB_NAMESPACE {

MappedEntryMeter::MappedEntryMeter(AddressMap* map, uint64_t hash_seed,
                                   const Comparator* ucmp,
                                   uint64_t first_new_birth,
                                   DeferredRemovals* removals, bool defer_all)
    : map_(map),
      hash_seed_(hash_seed),
      ucmp_(ucmp),
      first_new_birth_(first_new_birth),
      removals_(removals),
      defer_all_(defer_all) {
  assert(map_ != nullptr);
  assert(removals_ != nullptr);
}

Status MappedEntryMeter::Meter(const ParsedInternalKey& ikey,
                               const Slice& value, bool is_input,
                               bool* is_mapped) {
  *is_mapped = ikey.type == kTypeBlobIndex && MappedBlobIndex::IsMapped(value);
  if (!*is_mapped) {
    if (is_input) {
      InOther();
    }
    return Status::OK();
  }
  MappedBlobIndex index;
  const Status s = index.DecodeFrom(value);
  if (!s.ok()) {
    return s;
  }
  if (!is_input) {
    return Out(ikey.user_key, ikey.sequence, index.birth);
  }
  In(ikey.user_key, ikey.sequence, index.birth);
  return lost_names_ ? removals_->status("the compaction") : Status::OK();
}

// Searches from the end: an output is one of the last inputs.
MappedEntryMeter::Pending* MappedEntryMeter::Find(Group* group,
                                                  const MapName& name) {
  if (group->empty() || !(group->front().name.key == name.key)) {
    return nullptr;
  }
  for (auto it = group->rbegin();
       it != group->rend() && it->name.seq <= name.seq; ++it) {
    if (it->name.seq == name.seq && it->name.birth == name.birth) {
      return &*it;
    }
  }
  return nullptr;
}

void MappedEntryMeter::In(const Slice& user_key, SequenceNumber seq,
                          uint64_t birth) {
  const MapName name{MapKeyHash::Of(user_key, hash_seed_), seq, birth};
  ++counts_.inputs;
  on_mapped_ = true;
  if (!group_.empty() && !(group_.front().name.key == name.key)) {
    Retire(&prev_group_);
    prev_group_.swap(group_);
  }
  assert(group_.empty() || group_.back().name.seq >= seq);
  if (Pending* const same = Find(&group_, name); same != nullptr) {
    ++same->copies;
    current_ = static_cast<size_t>(same - group_.data());
    return;
  }
  current_ = group_.size();
  group_.emplace_back().name = name;
}

void MappedEntryMeter::HideCurrent() {
  if (on_mapped_) {
    Pending& current = group_[current_];
    ++current.hidden;
    assert(current.hidden <= current.copies);
  }
}

Status MappedEntryMeter::Out(const Slice& user_key, SequenceNumber seq,
                             uint64_t birth) {
  const MapName name{MapKeyHash::Of(user_key, hash_seed_), seq, birth};
  Pending* found = Find(&group_, name);
  if (found == nullptr) {
    found = Find(&prev_group_, name);
  }
  if (found == nullptr) {
    if (birth >= first_new_birth_) {
      return Status::OK();
    }
    return Status::Corruption(
        "Compaction outputs a blob that is not among its inputs",
        ParsedInternalKey(user_key, seq, kTypeBlobIndex)
            .DebugString(/*log_err_key=*/false, /*hex=*/true));
  }
  assert(found->hidden < found->copies);
  found->kept = true;
  return Status::OK();
}

void MappedEntryMeter::Retire(Group* group) {
  for (const Pending& p : *group) {
    if (p.kept) {
      ++counts_.kept;
      continue;
    }
    const bool is_hidden = p.hidden == p.copies;
    if (is_hidden) {
      hidden_.push_back(p.name);
      if (hidden_.size() == kBatchSize) {
        RemoveHidden();
      }
    }
    if (is_hidden && !defer_all_) {
      ++counts_.hidden;
    } else if (map_->FindByName(p.name, /*pin=*/false).found) {
      // Entries that a flush has hidden meanwhile are gone from the map already
      // and are not added to the list.
      ++counts_.deferred;
      deferred_.push_back(p.name);
      if (deferred_.size() == kBatchSize) {
        HandOverDeferred();
      }
    }
  }
  group->clear();
}

void MappedEntryMeter::RemoveHidden() {
  for (const MapName& name : hidden_) {
    if (!defer_all_) {
      map_->Remove(name);
    } else if (const AddressMap::Lookup found =
                   map_->FindByName(name, /*pin=*/false);
               found.found && found.entry.mode != MapMode::kVersioned) {
      map_->Demote(name);
    }
  }
#ifndef NDEBUG
  const size_t n = std::min(
      hidden_.size(), kMaxChecked - std::min(kMaxChecked, checked_.size()));
  checked_.insert(checked_.end(), hidden_.begin(), hidden_.begin() + n);
#endif  // !NDEBUG
  hidden_.clear();
}

void MappedEntryMeter::CheckAtCommit() const {
#ifndef NDEBUG
  assert(hidden_.empty());
  for (const MapName& name : checked_) {
    const AddressMap::Lookup found = map_->FindByName(name, /*pin=*/false);
    assert(!found.found || found.entry.mode == MapMode::kVersioned);
  }
#endif  // !NDEBUG
}

void MappedEntryMeter::HandOverDeferred() {
  removals_->Add(deferred_.data(), deferred_.size());
  deferred_.clear();
  lost_names_ = !removals_->complete();
}

void MappedEntryMeter::Finish() {
  Retire(&prev_group_);
  Retire(&group_);
  on_mapped_ = false;
  RemoveHidden();
  HandOverDeferred();
}

CompactionFilter::Decision MappedEntryMeter::RemoveRange(
    CompactionFilter::Decision decision, const Slice& skip_until) {
  if (decision != CompactionFilter::Decision::kRemoveAndSkipUntil) {
    return decision;
  }
  has_removed_range_ = true;
  removed_range_end_.assign(skip_until.data(), skip_until.size());
  return CompactionFilter::Decision::kRemove;
}

bool MappedEntryMeter::InRemovedRange(const Slice& user_key) {
  has_removed_range_ =
      has_removed_range_ && ucmp_->Compare(user_key, removed_range_end_) < 0;
  return has_removed_range_;
}

}  // namespace ROCKSDB_NAMESPACE
