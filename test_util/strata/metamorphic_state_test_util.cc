//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/metamorphic_state_test_util.h"

#include <algorithm>
#include <cassert>

#include "rocksdb/db.h"
#include "test_util/strata/history_interpreter_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

bool IsWrite(const std::string& name) {
  return name == "put" || name == "merge" || name == "del" ||
         name == "singledel" || name == "delrange" || name == "entity";
}

// Returns the words behind the first `count` ones.
HistoryWords Rest(const HistoryWords& words, size_t count) {
  return HistoryWords(words.begin() + static_cast<std::ptrdiff_t>(count),
                      words.end());
}

}  // namespace

MetamorphicState::Step MetamorphicState::Split(const HistoryWords& words) {
  Step step;
  step.cf = kDefaultColumnFamilyName;
  step.words = words;
  HistoryArguments::TakeFamily(&step.words, &step.cf);
  return step;
}

bool MetamorphicState::Allows(const HistoryWords& words) const {
  const Step step = Split(words);
  if (step.words.empty()) {
    return false;
  }
  const std::string& name = step.words[0];
  if (name == "open") {
    return families_.empty();
  }
  if (name == "reopen" || name == "crash" || name == "destroy") {
    // Where the sequence number is no order of commits, assertions of RocksDB
    // forbid to close a DB that has prepared transactions, and to lose the WAL
    // while there are transactions.
    const bool is_prepared =
        std::any_of(transactions_.begin(), transactions_.end(),
                    [](const auto& entry) { return entry.second.is_prepared; });
    const bool is_forbidden =
        is_prepared || (name == "crash" && !transactions_.empty());
    return !families_.empty() && !(is_forbidden && IsWritePrepared());
  }
  if (!is_open_ || families_.count(step.cf) == 0) {
    return false;
  }
  if (name == "family") {
    return AllowsFamily(step);
  }
  if (name == "txn") {
    return AllowsTransaction(step);
  }
  if (IsWrite(name)) {
    return AllowsWrite(step, /*own_call=*/true);
  }
  if (name == "batch" || name == "ingest") {
    return AllowsWrites(step);
  }
  if (name == "fill") {
    return step.words.size() > 1 && !IsSingle(step.words[1]);
  }
  if (name == "snapshot") {
    return step.words.size() == 2 && snapshots_.count(step.words[1]) == 0;
  }
  if (name == "release") {
    return step.words.size() == 2 && snapshots_.count(step.words[1]) != 0;
  }
  return AllowsView(step) && AllowsIterator(step);
}

bool MetamorphicState::AllowsFamily(const Step& step) const {
  if (step.words.size() < 3) {
    return false;
  }
  const std::string& action = step.words[1];
  const std::string& name = step.words[2];
  if (action == "create") {
    return families_.count(name) == 0;
  }
  const bool is_read = std::any_of(
      iterators_.begin(), iterators_.end(),
      [&name](const auto& iterator) { return iterator.second.cf == name; });
  return families_.count(name) != 0 && name != kDefaultColumnFamilyName &&
         !is_read && transactions_.empty();
}

// A snapshot that the step names must exist.
bool MetamorphicState::AllowsView(const Step& step) const {
  return std::all_of(
      step.words.begin(), step.words.end(), [this](const std::string& word) {
        return word[0] != '@' || snapshots_.count(word.substr(1)) != 0;
      });
}

bool MetamorphicState::AllowsIterator(const Step& step) const {
  static const std::set<std::string> kMoves = {
      "seek", "seekforprev", "first",   "last",
      "next", "prev",        "refresh", "close-iter"};
  const std::string& name = step.words[0];
  if (name != "iter" && kMoves.count(name) == 0) {
    return true;
  }
  if (step.words.size() < 2) {
    return false;
  }
  const auto it = iterators_.find(step.words[1]);
  if (name == "iter") {
    // Where the sequence number is no order of commits, a tailing iterator
    // stays at the moment at which it was made.
    HistoryWords words = step.words;
    const bool is_tailing = HistoryArguments::TakeWord(&words, "+tailing");
    return it == iterators_.end() && !(is_tailing && IsWritePrepared());
  }
  if (it == iterators_.end()) {
    return false;
  }
  // A tailing iterator goes forward only.
  return !it->second.is_tailing || (name != "seekforprev" && name != "last" &&
                                    name != "prev" && name != "refresh");
}

bool MetamorphicState::AllowsTransaction(const Step& step) const {
  if (step.words.size() < 3 || kind_ == "plain") {
    return false;
  }
  const std::string& action = step.words[2];
  const auto it = transactions_.find(step.words[1]);
  if (action == "begin") {
    return it == transactions_.end();
  }
  if (it == transactions_.end() || it->second.is_doubtful) {
    return false;
  }
  if (action == "commit" || action == "rollback") {
    return true;
  }
  // A prepared transaction cannot go on, and what it reads of its own writes
  // depends on the write policy.
  if (it->second.is_prepared) {
    return false;
  }
  // RocksDB's write-unprepared transactions apply their own operands twice when
  // they read after they have written a batch, know no wide columns, and have
  // assertions that fail after a save point.
  static const std::set<std::string> kNotUnprepared = {
      "merge", "entity", "savepoint", "rollbacktosavepoint"};
  if (kind_ == "write-unprepared" && kNotUnprepared.count(action) != 0) {
    return false;
  }
  // GetEntity() of a write-prepared DB sees what is prepared.
  if (action == "prepare") {
    return kind_ == "locking";
  }
  if (action == "rollbacktosavepoint") {
    return it->second.num_save_points > 0;
  }
  return !IsWrite(action) ||
         AllowsWrite({step.cf, Rest(step.words, 2)}, /*own_call=*/false);
}

bool MetamorphicState::AllowsWrite(const Step& step, bool own_call) const {
  const auto family = families_.find(step.cf);
  if (family == families_.end() || step.words.size() < 2) {
    return false;
  }
  const std::string& name = step.words[0];
  const std::string& key = step.words[1];
  if (name == "delrange") {
    return kind_ == "plain" && step.words.size() >= 3 && key < step.words[2];
  }
  if (!IsSingle(key)) {
    return name != "singledel";
  }
  const bool exists = family->second.singles.count(key) != 0;
  return own_call && !family->second.is_blurred &&
         (name == "put" ? !exists : name == "singledel" && exists);
}

std::vector<MetamorphicState::Step> MetamorphicState::Writes(const Step& step) {
  HistoryWords words = Rest(step.words, 1);
  HistoryArguments::TakeWord(&words, "sync");
  HistoryArguments::TakeWord(&words, "move");
  std::vector<Step> writes;
  for (const HistoryWords& part : HistoryArguments::SplitAtSemicolons(words)) {
    writes.push_back({step.cf, part});
    HistoryArguments::TakeFamily(&writes.back().words, &writes.back().cf);
  }
  return writes;
}

bool MetamorphicState::AllowsWrites(const Step& step) const {
  const std::vector<Step> writes = Writes(step);
  return std::all_of(writes.begin(), writes.end(), [this](const Step& write) {
    return AllowsWrite(write, /*own_call=*/false);
  });
}

void MetamorphicState::Apply(const HistoryWords& words) {
  assert(Allows(words));
  const Step step = Split(words);
  const std::string& name = step.words[0];
  if (name == "open") {
    std::string value;
    HistoryWords options = step.words;
    if (HistoryArguments::TakeNamed(&options, "db", &value)) {
      kind_ = value;
    }
    HistoryArguments::TakeNamed(&options, "merge_operator",
                                &families_[step.cf].merge_operator);
    is_open_ = true;
  } else if (name == "reopen" || name == "crash") {
    Close(/*loses_writes=*/name == "crash" && !is_synced_);
  } else if (name == "destroy") {
    *this = MetamorphicState();
  } else if (name == "family") {
    ApplyFamily(step);
  } else if (name == "txn") {
    ApplyTransaction(step);
  } else if (IsWrite(name)) {
    ApplyWrite(step);
  } else if (name == "batch" || name == "ingest") {
    for (const Step& write : Writes(step)) {
      ApplyWrite(write);
    }
  } else if (name == "snapshot") {
    snapshots_.insert(step.words[1]);
  } else if (name == "release") {
    snapshots_.erase(step.words[1]);
  } else if (name == "deletefilesinrange") {
    families_[step.cf].is_blurred = true;
  } else {
    ApplyIterator(step);
  }
  is_synced_ = name == "syncwal";
}

void MetamorphicState::Close(bool loses_writes) {
  is_open_ = true;
  for (auto& family : families_) {
    family.second.is_blurred |= loses_writes;
  }
  snapshots_.clear();
  iterators_.clear();
  std::erase_if(transactions_, [](const auto& transaction) {
    return !transaction.second.is_prepared;
  });
  for (auto& transaction : transactions_) {
    transaction.second.is_doubtful |= loses_writes;
  }
}

void MetamorphicState::ApplyFamily(const Step& step) {
  if (step.words[1] == "drop") {
    families_.erase(step.words[2]);
    return;
  }
  HistoryWords options = step.words;
  HistoryArguments::TakeNamed(&options, "merge_operator",
                              &families_[step.words[2]].merge_operator);
}

void MetamorphicState::ApplyIterator(const Step& step) {
  if (step.words[0] == "iter") {
    HistoryWords words = step.words;
    iterators_[step.words[1]] = {
        step.cf, HistoryArguments::TakeWord(&words, "+tailing")};
  } else if (step.words[0] == "close-iter") {
    iterators_.erase(step.words[1]);
  }
}

void MetamorphicState::ApplyTransaction(const Step& step) {
  const std::string& action = step.words[2];
  if (action == "commit" || action == "rollback") {
    transactions_.erase(step.words[1]);
    return;
  }
  Transaction& transaction = transactions_[step.words[1]];
  if (action == "savepoint") {
    ++transaction.num_save_points;
  } else if (action == "rollbacktosavepoint") {
    --transaction.num_save_points;
  } else if (action == "prepare") {
    transaction.is_prepared = true;
  }
}

void MetamorphicState::ApplyWrite(const Step& step) {
  std::set<std::string>& singles = families_[step.cf].singles;
  const std::string& key = step.words[1];
  if (step.words[0] == "delrange") {
    singles.erase(singles.lower_bound(key), singles.lower_bound(step.words[2]));
  } else if (step.words[0] == "singledel") {
    singles.erase(key);
  } else if (IsSingle(key)) {
    singles.insert(key);
  }
}

std::vector<HistoryWords> MetamorphicState::Valid(
    const std::vector<HistoryWords>& steps) {
  MetamorphicState state;
  std::vector<HistoryWords> valid;
  for (const HistoryWords& step : steps) {
    if (state.Allows(step)) {
      state.Apply(step);
      valid.push_back(step);
    }
  }
  return valid;
}

size_t MetamorphicState::NumComparable(const std::vector<HistoryWords>& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step step = Split(steps[i]);
    const bool loses_writes =
        step.words[0] == "crash" && (i == 0 || steps[i - 1][0] != "syncwal");
    if (loses_writes || step.words[0] == "deletefilesinrange") {
      return i;
    }
  }
  return steps.size();
}

}  // namespace ROCKSDB_NAMESPACE
