//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "db/scan_sort/level0_debt.h"
#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// Accounts of what scans of a column family with an address map have paid
// because values are not in the order of their keys, for each range of keys
// (blob_scan_sort_budget).
//
// Currency: bytes. A place that a scan visits costs kPlaceCost. Sorting a range
// costs its price: the bytes of its values, read and written once. A range is
// due when its debt, times the budget, has reached the price. This is the
// rent-or-buy rule: sorting costs at most the budget times the debt that it
// ends. The size of a range is an estimate. If a job has copied more than was
// paid for, the difference is added to the next price (an overdraft).
//
// The ranges have about the same number of bytes, and at least kMinRange bytes.
// Until SetRanges() was called, there is one range without a price, which is
// due when the debt would pay for kMinRange bytes: then it is time for
// SetRanges().
//
// Decay: each debt is halved when the column family has flushed as many bytes
// of values as half of its live values have. Overwriting destroys the order of
// values at about that rate.
//
// Thread-safe. Charge() is lock-free, apart from the first call of a Reader and
// its first call after SetRanges(). A charge that is concurrent with a function
// that changes debts may be lost.
class ScanDebts {
 public:
  static constexpr uint64_t kPlaceCost = uint64_t{16} << 10;
  static constexpr uint64_t kMinRange = uint64_t{2} << 20;
  static constexpr size_t kMaxRanges = 1024;
  // Not few, as each call of on_due takes the DB mutex.
  static constexpr int64_t kAskAgain = 64;

  // The ranges and their accounts at one time. The ranges do not change.
  class Table {
   public:
    // The index of the range that a key is in.
    size_t Find(const Comparator& ucmp, const Slice& user_key) const;
    // The index of the range that the keys right before a key are in.
    size_t FindBefore(const Comparator& ucmp, const Slice& user_key) const;

   private:
    friend class ScanDebts;

    struct Account {
      std::atomic<uint64_t> debt{0};
      std::atomic<uint64_t> price{0};
    };

    std::vector<std::string> bounds_;  // between the ranges
    std::vector<Account> accounts_;    // one more than bounds
    uint64_t range_bytes_ = 0;         // 0: not set by SetRanges()
    uint64_t total_bytes_ = 0;
  };

  // Consecutive ranges to sort.
  struct Range {
    // User keys; the end is not part of the range. An empty key may be either.
    std::string begin;
    bool has_begin = false;  // false for the first range
    std::string end;
    bool has_end = false;
    uint64_t bytes = 0;  // estimate of the size of the values
    uint64_t debt = 0;
    // For Settle().
    std::shared_ptr<Table> table;
    size_t first = 0;
    size_t last = 0;
  };

  // Remembers the table between calls of Charge(). Not thread-safe.
  class Reader {
   private:
    friend class ScanDebts;
    std::shared_ptr<Table> table_;
    uint64_t generation_ = 0;
  };

  // ucmp: compares user keys; outlives this object.
  explicit ScanDebts(const Comparator* ucmp);
  ScanDebts(const ScanDebts&) = delete;
  ScanDebts& operator=(const ScanDebts&) = delete;

  // Sets the function to be called when a range has become due.
  // on_due: called by scanning threads, which hold no lock of this object.
  // REQUIRES: no other thread uses this object yet.
  void SetOnDue(std::function<void()> on_due) { on_due_ = std::move(on_due); }

  // budget: blob_scan_sort_budget.
  void SetBudget(double budget) {
    budget_.store(budget, std::memory_order_relaxed);
  }
  double budget() const { return budget_.load(std::memory_order_relaxed); }

  // The account of level 0, with the same budget.
  Level0Debt* level0() { return &level0_; }

  // Charges the range of the key.
  // places: number of places that sorted values would not have needed.
  void Charge(Reader* reader, const Slice& user_key, uint64_t places);

  // True if a range may be due. False positives occur.
  bool IsDue() const { return is_due_.load(std::memory_order_acquire); }
  // Has the next charge of a range that is due call on_due again. To be called
  // after a job has failed, as a later job is scheduled by that call only.
  void ForgetDue();
  // Has on_due called again after kAskAgain charges of ranges that are due, if
  // IsDue() is still true then. To be called when there is no job for now.
  void AskAgain() { ask_again_.store(kAskAgain, std::memory_order_relaxed); }
  // Returns true if the ranges are missing, or not up to date.
  // live_bytes: size of all values of the column family.
  bool NeedsRanges(uint64_t live_bytes) const;
  // Sets the ranges. Debts of ranges that were set before are divided among the
  // new ranges.
  // bounds: user keys, in order, that divide the values into parts of about the
  // same size; fewer than kMaxRanges.
  // live_bytes: size of all values of the column family.
  void SetRanges(std::vector<std::string> bounds, uint64_t live_bytes);
  // Finds the ranges with the largest debt in relation to the price, and those
  // beside it that are due. Returns false if none is due.
  // max_bytes: limit of the sum of their sizes; one range is always found.
  bool Pick(uint64_t max_bytes, Range* range);
  enum class Outcome : uint8_t {
    kSorted,
    // The job has ended before it had sorted all. What it has copied is paid
    // from the debts, which may not suffice.
    kPartlySorted,
    // No value was moved, because of a failure or because their order is good
    // enough. The price is doubled.
    kUnchanged,
  };
  // Returns how many bytes of values a job for the range may copy: twice as
  // much as was paid for.
  uint64_t MaxCopied(const Range& range) const;
  // Empties the accounts of ranges that Pick() has found, after they were
  // sorted.
  // bytes: size of the copied values.
  void Settle(const Range& range, Outcome outcome, uint64_t bytes);

  // Takes the cost of copying values of all ranges from the debts, from each
  // debt the same part.
  // bytes: size of the values.
  void Pay(uint64_t bytes);

  // Returns the sum of the sizes in bytes of all ranges that are due.
  uint64_t DueBytes() const;
  // Returns at most n - 1 user keys, in order, that divide the keys into n
  // parts of about the same size. The same n gives the same keys until
  // SetRanges() is called. Empty before that.
  std::vector<std::string> Bounds(size_t n) const;

  // Account for the space in bytes that jobs need which scans have paid for,
  // until they end.
  // REQUIRES: DB mutex held.
  void BeginJob(uint64_t bytes) { job_bytes_ += bytes; }
  void EndJob(uint64_t bytes) { job_bytes_ -= bytes; }
  uint64_t job_bytes() const { return job_bytes_; }

  // Halves the debts if enough was written since they were halved last.
  // bytes: size of the values that were written since the last call.
  // live_bytes: size of all values of the column family.
  void OnWritten(uint64_t bytes, uint64_t live_bytes);

  // debt: receives the sum of the debts in bytes.
  void GetTotals(uint64_t* debt, size_t* num_ranges) const;

 private:
  bool IsDue(const Table::Account& account, uint64_t debt) const;
  std::shared_ptr<Table> GetTable() const;
  void SetDue();
  // Takes the cost of copying values from the accounts of [first, last], from
  // each debt the same part. Returns how much of the price they do not cover.
  // bytes: size of the values.
  uint64_t PayFrom(Table* table, size_t first, size_t last, uint64_t bytes);

  const Comparator* const ucmp_;
  std::function<void()> on_due_;
  std::atomic<double> budget_{0};
  Level0Debt level0_{&budget_};
  std::atomic<bool> is_due_{false};
  // Charges of due ranges until on_due is called again. None if it is not
  // positive.
  std::atomic<int64_t> ask_again_{0};
  // Changes with table_.
  std::atomic<uint64_t> generation_{1};
  mutable std::mutex mutex_;
  std::shared_ptr<Table> table_;  // guarded by mutex_
  uint64_t written_ = 0;          // guarded by mutex_
  uint64_t job_bytes_ = 0;        // guarded by the DB mutex
};

}  // namespace ROCKSDB_NAMESPACE
