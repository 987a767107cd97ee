//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/scan_sort/scan_debts.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ROCKSDB_NAMESPACE {

namespace {

// Values are read and written once.
constexpr uint64_t kPricePerByte = 2;
// The ranges are out of date when the column family has grown or shrunk by this
// factor.
constexpr uint64_t kGrowth = 2;

// Returns the price of a range with this many bytes of values.
uint64_t PriceOf(uint64_t bytes) {
  return kPricePerByte * std::max(bytes, ScanDebts::kMinRange);
}

}  // namespace

size_t ScanDebts::Table::Find(const Comparator& ucmp,
                              const Slice& user_key) const {
  const auto after =
      std::upper_bound(bounds_.begin(), bounds_.end(), user_key,
                       [&ucmp](const Slice& key, const std::string& bound) {
                         return ucmp.CompareWithoutTimestamp(key, bound) < 0;
                       });
  return static_cast<size_t>(after - bounds_.begin());
}

size_t ScanDebts::Table::FindBefore(const Comparator& ucmp,
                                    const Slice& user_key) const {
  const auto bound =
      std::lower_bound(bounds_.begin(), bounds_.end(), user_key,
                       [&ucmp](const std::string& b, const Slice& key) {
                         return ucmp.CompareWithoutTimestamp(b, key) < 0;
                       });
  return static_cast<size_t>(bound - bounds_.begin());
}

ScanDebts::ScanDebts(const Comparator* ucmp) : ucmp_(ucmp) {
  table_ = std::make_shared<Table>();
  table_->accounts_ = std::vector<Table::Account>(1);
  table_->accounts_[0].price = PriceOf(0);
}

bool ScanDebts::IsDue(const Table::Account& account, uint64_t debt) const {
  return static_cast<double>(debt) * budget() >=
         static_cast<double>(account.price.load(std::memory_order_relaxed));
}

std::shared_ptr<ScanDebts::Table> ScanDebts::GetTable() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return table_;
}

void ScanDebts::SetDue() {
  const bool was_due = is_due_.exchange(true, std::memory_order_acq_rel);
  const bool asks =
      !was_due || (ask_again_.load(std::memory_order_relaxed) > 0 &&
                   ask_again_.fetch_sub(1, std::memory_order_relaxed) == 1);
  if (asks && on_due_) {
    on_due_();
  }
}

void ScanDebts::ForgetDue() {
  ask_again_.store(0, std::memory_order_relaxed);
  is_due_.store(false, std::memory_order_release);
}

void ScanDebts::Charge(Reader* reader, const Slice& user_key, uint64_t places) {
  const uint64_t generation = generation_.load(std::memory_order_acquire);
  if (reader->generation_ != generation) {
    reader->table_ = GetTable();
    reader->generation_ = generation;
  }
  Table& table = *reader->table_;
  Table::Account& account = table.accounts_[table.Find(*ucmp_, user_key)];
  const uint64_t cost = places * kPlaceCost;
  const uint64_t before =
      account.debt.fetch_add(cost, std::memory_order_relaxed);
  if (IsDue(account, before + cost)) {
    SetDue();
  }
}

bool ScanDebts::NeedsRanges(uint64_t live_bytes) const {
  const std::shared_ptr<Table> table = GetTable();
  return table->range_bytes_ == 0 ||
         live_bytes / kGrowth > table->total_bytes_ ||
         live_bytes < table->total_bytes_ / kGrowth;
}

void ScanDebts::SetRanges(std::vector<std::string> bounds,
                          uint64_t live_bytes) {
  assert(bounds.size() < kMaxRanges);
  auto table = std::make_shared<Table>();
  const size_t n = bounds.size() + 1;
  table->bounds_ = std::move(bounds);
  table->accounts_ = std::vector<Table::Account>(n);
  table->total_bytes_ = live_bytes;
  table->range_bytes_ = std::max(live_bytes / n, uint64_t{1});
  for (Table::Account& account : table->accounts_) {
    account.price = PriceOf(table->range_bytes_);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (table_->range_bytes_ != 0) {
    // A debt is divided among the new ranges that overlap the old one.
    const std::vector<std::string>& old_bounds = table_->bounds_;
    for (size_t i = 0; i < table_->accounts_.size(); ++i) {
      const size_t first = i == 0 ? 0 : table->Find(*ucmp_, old_bounds[i - 1]);
      const size_t last =
          i == old_bounds.size()
              ? n - 1
              : std::max(first, table->FindBefore(*ucmp_, old_bounds[i]));
      const uint64_t debt = table_->accounts_[i].debt.load();
      for (size_t j = first; j <= last; ++j) {
        table->accounts_[j].debt += debt / (last - first + 1);
      }
    }
  }
  table_ = std::move(table);
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

bool ScanDebts::Pick(uint64_t max_bytes, Range* range) {
  const std::shared_ptr<Table> table = GetTable();
  // A charge that comes too late for the loads below sets it again.
  ask_again_.store(0, std::memory_order_relaxed);
  is_due_.exchange(false, std::memory_order_acq_rel);
  std::vector<Table::Account>& accounts = table->accounts_;
  std::vector<uint64_t> debts(accounts.size());
  std::vector<bool> due(accounts.size());
  size_t best = accounts.size();
  double best_ratio = 0;
  for (size_t i = 0; i < accounts.size(); ++i) {
    debts[i] = accounts[i].debt.load(std::memory_order_relaxed);
    due[i] = debts[i] > 0 && IsDue(accounts[i], debts[i]);
    const double ratio = static_cast<double>(debts[i]) /
                         static_cast<double>(accounts[i].price.load());
    if (due[i] && ratio > best_ratio) {
      best = i;
      best_ratio = ratio;
    }
  }
  if (best == accounts.size() || table->range_bytes_ == 0) {
    return false;
  }
  size_t first = best;
  size_t last = best;
  const auto has_room = [&] {
    return (last - first + 2) * table->range_bytes_ <= max_bytes;
  };
  while (has_room() && last + 1 < accounts.size() && due[last + 1]) {
    ++last;
  }
  while (has_room() && first > 0 && due[first - 1]) {
    --first;
  }
  *range = Range();
  range->table = table;
  range->first = first;
  range->last = last;
  range->bytes = (last - first + 1) * table->range_bytes_;
  for (size_t i = first; i <= last; ++i) {
    range->debt += debts[i];
  }
  range->has_begin = first > 0;
  if (range->has_begin) {
    range->begin = table->bounds_[first - 1];
  }
  range->has_end = last < table->bounds_.size();
  if (range->has_end) {
    range->end = table->bounds_[last];
  }
  return true;
}

uint64_t ScanDebts::MaxCopied(const Range& range) const {
  return static_cast<uint64_t>(
      2 * std::max(static_cast<double>(range.debt) * budget() / kPricePerByte,
                   static_cast<double>(range.bytes)));
}

void ScanDebts::Settle(const Range& range, Outcome outcome, uint64_t bytes) {
  Table& table = *range.table;
  // Bytes that are added to the next price of each range.
  uint64_t overdraft = 0;
  if (outcome == Outcome::kPartlySorted) {
    overdraft = PayFrom(&table, range.first, range.last, bytes) /
                (range.last - range.first + 1);
  } else if (outcome == Outcome::kSorted) {
    const double paid = static_cast<double>(range.debt) * budget();
    const double cost = static_cast<double>(kPricePerByte * bytes);
    overdraft = static_cast<uint64_t>(std::max(cost - paid, 0.0)) /
                (range.last - range.first + 1);
  }
  bool is_any_due = false;
  for (size_t i = 0; i < table.accounts_.size(); ++i) {
    Table::Account& account = table.accounts_[i];
    if (i >= range.first && i <= range.last &&
        outcome != Outcome::kPartlySorted) {
      account.debt.store(0, std::memory_order_relaxed);
      const uint64_t price = account.price.load(std::memory_order_relaxed);
      account.price.store(
          outcome == Outcome::kSorted
              ? PriceOf(table.range_bytes_) + overdraft
              : std::max(price, 2 * price),  // if there is no overflow
          std::memory_order_relaxed);
    } else if (i >= range.first && i <= range.last && overdraft > 0) {
      account.price.store(PriceOf(table.range_bytes_) + overdraft,
                          std::memory_order_relaxed);
    }
    is_any_due |= IsDue(account, account.debt.load(std::memory_order_relaxed));
  }
  if (is_any_due) {
    is_due_.store(true, std::memory_order_release);
  }
}

void ScanDebts::Pay(uint64_t bytes) {
  const std::shared_ptr<Table> table = GetTable();
  PayFrom(table.get(), 0, table->accounts_.size() - 1, bytes);
}

uint64_t ScanDebts::PayFrom(Table* table, size_t first, size_t last,
                            uint64_t bytes) {
  const double factor = budget();
  if (factor == 0) {
    return kPricePerByte * bytes;
  }
  double total = 0;
  for (size_t i = first; i <= last; ++i) {
    total += static_cast<double>(
        table->accounts_[i].debt.load(std::memory_order_relaxed));
  }
  const double cost = static_cast<double>(kPricePerByte * bytes) / factor;
  const double left = total <= cost ? 0 : (total - cost) / total;
  for (size_t i = first; i <= last; ++i) {
    std::atomic<uint64_t>& debt = table->accounts_[i].debt;
    // A concurrent charge may be lost.
    debt.store(
        static_cast<uint64_t>(
            static_cast<double>(debt.load(std::memory_order_relaxed)) * left),
        std::memory_order_relaxed);
  }
  return static_cast<uint64_t>(std::max(cost - total, 0.0) * factor);
}

uint64_t ScanDebts::DueBytes() const {
  const std::shared_ptr<Table> table = GetTable();
  uint64_t bytes = 0;
  for (const Table::Account& account : table->accounts_) {
    const uint64_t debt = account.debt.load(std::memory_order_relaxed);
    bytes += debt > 0 && IsDue(account, debt) ? table->range_bytes_ : 0;
  }
  return bytes;
}

std::vector<std::string> ScanDebts::Bounds(size_t n) const {
  const std::shared_ptr<Table> table = GetTable();
  const size_t num_ranges = table->accounts_.size();
  std::vector<std::string> bounds;
  for (size_t i = 1; i < n; ++i) {
    const size_t range = i * num_ranges / n;
    if (range > 0 &&
        (bounds.empty() || bounds.back() != table->bounds_[range - 1])) {
      bounds.push_back(table->bounds_[range - 1]);
    }
  }
  return bounds;
}

void ScanDebts::OnWritten(uint64_t bytes, uint64_t live_bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  written_ += bytes;
  const uint64_t half = std::max(live_bytes / 2, uint64_t{1});
  const uint64_t times = written_ / half;
  if (times == 0) {
    return;
  }
  written_ -= times * half;
  const uint64_t divisor = uint64_t{1} << std::min<uint64_t>(times, 63);
  level0_.Decay(divisor);
  for (Table::Account& account : table_->accounts_) {
    // A concurrent charge may be lost.
    account.debt.store(account.debt.load(std::memory_order_relaxed) / divisor,
                       std::memory_order_relaxed);
  }
}

void ScanDebts::GetTotals(uint64_t* debt, size_t* num_ranges) const {
  const std::shared_ptr<Table> table = GetTable();
  *debt = 0;
  *num_ranges = table->accounts_.size();
  for (const Table::Account& account : table->accounts_) {
    *debt += account.debt.load(std::memory_order_relaxed);
  }
}

}  // namespace ROCKSDB_NAMESPACE
