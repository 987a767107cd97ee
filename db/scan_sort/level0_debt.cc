//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/scan_sort/level0_debt.h"

#include "db/scan_sort/scan_debts.h"

namespace ROCKSDB_NAMESPACE {

bool Level0Debt::IsDue(uint64_t debt, uint64_t price) const {
  const double budget = budget_->load(std::memory_order_relaxed);
  return budget > 0 &&
         static_cast<double>(debt) * budget >= static_cast<double>(price);
}

void Level0Debt::Charge(uint64_t reads) {
  const uint64_t cost = reads * ScanDebts::kPlaceCost;
  const uint64_t debt = debt_.fetch_add(cost, std::memory_order_relaxed) + cost;
  if (IsDue(debt, price_.load(std::memory_order_relaxed)) && on_due_ &&
      !is_told_.exchange(true, std::memory_order_acq_rel)) {
    on_due_();
  }
}

bool Level0Debt::Pay(uint64_t price) {
  if (IsDue(debt(), price)) {
    Clear();
    return true;
  }
  price_.store(price, std::memory_order_relaxed);
  is_told_.store(false, std::memory_order_release);
  return false;
}

void Level0Debt::Postpone() {
  const double weighted =
      static_cast<double>(debt()) * budget_->load(std::memory_order_relaxed);
  price_.store(kMinPrice + 2 * static_cast<uint64_t>(weighted),
               std::memory_order_relaxed);
  is_told_.store(false, std::memory_order_release);
}

void Level0Debt::Clear() {
  // A concurrent charge may be lost.
  debt_.store(0, std::memory_order_relaxed);
  price_.store(kMinPrice, std::memory_order_relaxed);
  is_told_.store(false, std::memory_order_release);
}

void Level0Debt::Decay(uint64_t divisor) {
  // A concurrent charge may be lost.
  debt_.store(debt() / divisor, std::memory_order_relaxed);
}

}  // namespace ROCKSDB_NAMESPACE
