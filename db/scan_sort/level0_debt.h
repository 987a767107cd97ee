//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The account of what scans of a column family with an address map have paid
// because level 0 has files (blob_scan_sort_budget): a seek reads a block of
// each file of level 0, and one of each other level. Level0Merge lets files
// wait in level 0 for the sake of writes.
//
// The currency is that of ScanDebts. When the debt, times the budget, has
// reached the price of a compaction of level 0 into the base level, which is
// the bytes of both levels, read and written once, the compaction is due: the
// rent-or-buy rule.
//
// Thread-safe. Charge() is lock-free until a compaction may be due.
class Level0Debt {
 public:
  // The price is not known before the first call of Pay(), nor after a payment.
  static constexpr uint64_t kMinPrice = uint64_t{4} << 20;

  // budget: blob_scan_sort_budget; outlives this object.
  explicit Level0Debt(const std::atomic<double>* budget) : budget_(budget) {}
  Level0Debt(const Level0Debt&) = delete;
  Level0Debt& operator=(const Level0Debt&) = delete;

  // on_due: called by scanning threads, which hold no lock of this object, when
  // a compaction may be due. It calls Pay(), Postpone() or Clear().
  // REQUIRES: no other thread uses this object yet.
  void SetOnDue(std::function<void()> on_due) { on_due_ = std::move(on_due); }

  // reads: number of blocks of level 0 that a seek has read from files.
  void Charge(uint64_t reads);

  // Returns true if the compaction is due; then the debt is paid. If not,
  // on_due is not called again before it is.
  // price: bytes.
  bool Pay(uint64_t price);

  // To be called instead of Pay() if the compaction has to wait for another
  // one: on_due is called again when the debt has grown.
  void Postpone();
  // To be called instead of Pay() if there is nothing to pay for: the debt
  // ends.
  void Clear();

  // Divides the debt by a power of two, as that of ranges (ScanDebts).
  void Decay(uint64_t divisor);

  // In bytes.
  uint64_t debt() const { return debt_.load(std::memory_order_relaxed); }

 private:
  bool IsDue(uint64_t debt, uint64_t price) const;

  const std::atomic<double>* const budget_;
  std::function<void()> on_due_;
  std::atomic<uint64_t> debt_{0};
  std::atomic<uint64_t> price_{kMinPrice};
  // True from when on_due is called until it has called one of the three.
  std::atomic<bool> is_told_{false};
};

}  // namespace ROCKSDB_NAMESPACE
