//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/repair_table_order.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "util/heap.h"

namespace ROCKSDB_NAMESPACE {

// A table that is being scanned.
struct RepairTableOrder::Source {
  size_t table = 0;
  Entries entries;
  // The entry at which `points` is.
  ParsedInternalKey parsed;

  // Returns true if there is an entry at or after the current position. Entries
  // whose keys are damaged are skipped, as the repair does.
  bool Settle() {
    while (entries.points->Valid()) {
      if (ParseInternalKey(entries.points->key(), &parsed,
                           /*log_err_key=*/false)
              .ok()) {
        return true;
      }
      entries.points->Next();
    }
    return false;
  }
};

// Goes through the tables side by side. A table is opened when the scan reaches
// its smallest key, and closed at its end.
class RepairTableOrder::Scan {
 public:
  explicit Scan(RepairTableOrder* order)
      : order_(order),
        ucmp_(order->ucmp_),
        tables_(order->tables_),
        by_smallest_(tables_.size()),
        heap_(AfterOther{ucmp_}) {
    std::iota(by_smallest_.begin(), by_smallest_.end(), size_t{0});
    std::sort(
        by_smallest_.begin(), by_smallest_.end(), [this](size_t a, size_t b) {
          return ucmp_->Compare(tables_[a].smallest, tables_[b].smallest) < 0;
        });
  }

  Status Run() {
    Status s;
    while (s.ok() && (!heap_.empty() || num_opened_ < tables_.size())) {
      if (num_opened_ < tables_.size() &&
          (heap_.empty() ||
           ucmp_->Compare(NextTable().smallest, heap_.top()->parsed.user_key) <=
               0)) {
        s = OpenNext();
      } else {
        s = VisitKey();
      }
    }
    return s;
  }

 private:
  // The heap has its largest element on top.
  struct AfterOther {
    const Comparator* ucmp;
    bool operator()(const Source* a, const Source* b) const {
      return ucmp->Compare(a->parsed.user_key, b->parsed.user_key) > 0;
    }
  };

  const Table& NextTable() const { return tables_[by_smallest_[num_opened_]]; }

  Status OpenNext() {
    auto source = std::make_unique<Source>();
    source->table = by_smallest_[num_opened_];
    Status s = NextTable().open(&source->entries);
    ++num_opened_;
    if (!s.ok()) {
      return s;
    }
    source->entries.points->SeekToFirst();
    sources_.push_back(std::move(source));
    return PushOrClose(sources_.back().get());
  }

  // Puts the source back into the heap. At the end of its points, it is kept
  // only for its range deletions.
  Status PushOrClose(Source* source) {
    if (source->Settle()) {
      heap_.push(source);
      return Status::OK();
    }
    Status s = source->entries.points->status();
    if (source->entries.range_deletions == nullptr) {
      std::erase_if(sources_, [source](const std::unique_ptr<Source>& other) {
        return other.get() == source;
      });
    }
    return s;
  }

  Status VisitKey() {
    at_key_.clear();
    newest_.clear();
    do {
      Source* const source = heap_.top();
      heap_.pop();
      at_key_.push_back(source);
      newest_.push_back({source->table, source->parsed.sequence,
                         source->parsed.type, source->entries.points->value()});
    } while (!heap_.empty() && ucmp_->Equal(heap_.top()->parsed.user_key,
                                            at_key_.front()->parsed.user_key));
    key_.assign(at_key_.front()->parsed.user_key.data(),
                at_key_.front()->parsed.user_key.size());
    CloseRangesBefore(key_);
    if (at_key_.size() == 1 && heap_.empty() && !HasOtherRanges()) {
      return LeaveAlone(at_key_.front());
    }
    AddRangeDeletions();
    order_->Require(&newest_);
    Status s;
    for (Source* const source : at_key_) {
      do {
        source->entries.points->Next();
      } while (source->Settle() && ucmp_->Equal(source->parsed.user_key, key_));
      s.UpdateIfOk(PushOrClose(source));
    }
    return s;
  }

  // Takes the only table that has keys here to where the next one begins.
  Status LeaveAlone(Source* source) {
    if (num_opened_ == tables_.size()) {
      return source->entries.points->status();
    }
    source->entries.points->Seek(
        InternalKey(NextTable().smallest, kMaxSequenceNumber, kValueTypeForSeek)
            .Encode());
    return PushOrClose(source);
  }

  // Closes tables of which only range deletions were left, all before `key`.
  void CloseRangesBefore(const Slice& key) {
    std::erase_if(sources_, [&](const std::unique_ptr<Source>& source) {
      return !source->entries.points->Valid() &&
             ucmp_->Compare(tables_[source->table].largest, key) < 0;
    });
  }

  bool HasOtherRanges() const {
    return std::any_of(sources_.begin(), sources_.end(),
                       [this](const std::unique_ptr<Source>& source) {
                         return source.get() != at_key_.front() &&
                                source->entries.range_deletions != nullptr;
                       });
  }

  void AddRangeDeletions() {
    for (const auto& source : sources_) {
      if (source->entries.range_deletions == nullptr) {
        continue;
      }
      const SequenceNumber seq =
          source->entries.range_deletions->MaxCoveringTombstoneSeqnum(key_);
      if (seq == 0) {
        continue;
      }
      const auto own = std::find_if(newest_.begin(), newest_.end(),
                                    [&source](const Newest& newest) {
                                      return newest.table == source->table;
                                    });
      if (own == newest_.end()) {
        newest_.push_back({source->table, seq, kTypeRangeDeletion, Slice()});
      } else if (own->seq < seq) {
        *own = {source->table, seq, kTypeRangeDeletion, Slice()};
      }
    }
  }

  RepairTableOrder* const order_;
  const Comparator* const ucmp_;
  const std::vector<Table>& tables_;
  std::vector<size_t> by_smallest_;
  size_t num_opened_ = 0;
  std::vector<std::unique_ptr<Source>> sources_;  // the open ones
  // Sources by the user key of their current entries.
  BinaryHeap<Source*, AfterOther> heap_;

  // The next members describe the current key and the tables that have it.
  std::string key_;
  std::vector<Source*> at_key_;
  std::vector<Newest> newest_;
};

Status RepairTableOrder::Compute() {
  const Status s = Scan(this).Run();
  if (s.ok()) {
    Arrange();
  }
  return s;
}

void RepairTableOrder::Require(std::vector<Newest>* newest) {
  std::sort(newest->begin(), newest->end(),
            [](const Newest& a, const Newest& b) { return a.seq > b.seq; });
  const auto is_copy = [](const Newest& entry, const Newest& other) {
    return entry.seq == 0 && entry.type == other.type &&
           entry.type != kTypeMerge && entry.value == other.value;
  };
  auto top = newest->begin();
  while (top != newest->end()) {
    std::vector<size_t> first;
    auto rest = top;
    for (; rest != newest->end() && rest->seq == top->seq; ++rest) {
      first.push_back(rest->table);
    }
    for (auto other = rest; other != newest->end(); ++other) {
      if (is_copy(*other, *top)) {
        first.push_back(other->table);
      }
    }
    std::sort(first.begin(), first.end());
    for (auto other = rest; other != newest->end(); ++other) {
      if (!is_copy(*other, *top)) {
        requirements_[other->table].insert(first);
      }
    }
    if (top->type != kTypeMerge) {
      return;
    }
    top = rest;
  }
}

void RepairTableOrder::Arrange() {
  struct Requirement {
    size_t table;
    bool is_met = false;
  };
  std::vector<Requirement> all;
  std::vector<std::vector<size_t>> met_by(tables_.size());  // indexes of `all`
  std::vector<size_t> num_left(tables_.size());
  std::set<size_t> ready;
  std::set<size_t> waiting;
  for (size_t table = 0; table < tables_.size(); ++table) {
    num_left[table] = requirements_[table].size();
    (num_left[table] == 0 ? ready : waiting).insert(table);
    for (const std::vector<size_t>& first : requirements_[table]) {
      for (const size_t other : first) {
        met_by[other].push_back(all.size());
      }
      all.push_back({table});
    }
  }
  while (!ready.empty() || !waiting.empty()) {
    if (ready.empty()) {
      ++num_contradictions_;
    }
    std::set<size_t>& from = ready.empty() ? waiting : ready;
    const size_t next = *from.begin();
    from.erase(from.begin());
    order_.push_back(next);
    for (const size_t i : met_by[next]) {
      if (all[i].is_met) {
        continue;
      }
      all[i].is_met = true;
      assert(num_left[all[i].table] > 0);
      if (--num_left[all[i].table] == 0 && waiting.erase(all[i].table) > 0) {
        ready.insert(all[i].table);
      }
    }
  }
  assert(order_.size() == tables_.size());
}

}  // namespace ROCKSDB_NAMESPACE
