//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_job_state.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns true if range a ends before range b begins.
bool EndsBefore(const DeltaEdit::KeyRange& a, const DeltaEdit::KeyRange& b,
                const Comparator* ucmp) {
  return a.end.has_value() && !b.begin.empty() &&
         ucmp->Compare(*a.end, b.begin) <= 0;
}

}  // namespace

bool DeltaJobState::Overlap(const KeyRange& a, const KeyRange& b,
                            const Comparator* ucmp) {
  return !EndsBefore(a, b, ucmp) && !EndsBefore(b, a, ucmp);
}

void DeltaJobState::AddWishes(const DeltaFoldWishes& wishes, uint64_t below,
                              const Comparator* ucmp) {
  auto all = wishes_ == nullptr ? std::make_shared<DeltaFoldWishes>()
                                : std::make_shared<DeltaFoldWishes>(*wishes_);
  all->AddAllOf(wishes, ucmp);
  wishes_ = std::move(all);
  wishes_below_ = std::max(wishes_below_, below);
  SetCollectionDue();
}

void DeltaJobState::FulfilWishes(const KeyRange& range,
                                 const Comparator* ucmp) {
  if (wishes_ == nullptr || !wishes_->Overlaps(range, ucmp)) {
    return;
  }
  auto rest = std::make_shared<DeltaFoldWishes>(*wishes_);
  rest->Remove(range, ucmp);
  wishes_ = rest->empty() ? nullptr : std::move(rest);
}

void DeltaJobState::AddDamage(const KeyRange& range, size_t num_buckets,
                              const Comparator* ucmp) {
  // The new range says more than a suspected one that has it.
  std::erase_if(damage_, [&](const Damage& old) {
    return old.is_suspect && Overlap(old.range, range, ucmp);
  });
  damage_.push_back({range, /*is_suspect=*/num_buckets > 1});
}

bool DeltaJobState::IsDamaged() const {
  return is_recent_damaged_ ||
         std::any_of(damage_.begin(), damage_.end(),
                     [](const Damage& damage) { return !damage.is_suspect; });
}

void DeltaJobState::OnFailure(uint64_t now_micros) {
  const uint64_t wait =
      num_failures_ < 6 ? kFirstRetryMicros << num_failures_ : kLastRetryMicros;
  ++num_failures_;
  retry_at_micros_ = now_micros + wait;
}

}  // namespace ROCKSDB_NAMESPACE
