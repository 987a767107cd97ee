//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Knows which steps make sense after others: what they name exists, and they
// keep to the rules of the API whose breach has an undefined result. A history
// from which steps are taken away is made valid again with it.
//
// Rules: a key that begins with 's' is written by "put" alone, only if it does
// not exist, and removed by "singledel", only if it exists, or by "delrange".
// Other keys are never single-deleted. What transactions and batches write may
// fail, so they do not have such keys.
//
// Not thread-safe.
class MetamorphicState {
 public:
  struct Iterator {
    std::string cf;
    bool is_tailing = false;
  };
  struct Transaction {
    size_t num_save_points = 0;
    bool is_prepared = false;
    // It is unknown whether the prepared transaction has survived.
    bool is_doubtful = false;
  };
  struct Family {
    std::string merge_operator;
    // The keys that can be single-deleted.
    std::set<std::string> singles;
    // It is unknown which keys exist, so there are no single deletions any
    // more.
    bool is_blurred = false;
  };

  MetamorphicState() = default;

  bool Allows(const HistoryWords& words) const;
  // REQUIRES: Allows(words)
  void Apply(const HistoryWords& words);

  // Returns the steps without those that are not allowed at their place.
  static std::vector<HistoryWords> Valid(
      const std::vector<HistoryWords>& steps);

  // Returns the number of steps, the first ones, whose output is the same with
  // all options. Which unsynced writes survive a crash, and which keys a
  // deletion of files removes, depends on the files.
  static size_t NumComparable(const std::vector<HistoryWords>& steps);

  // "plain", "locking" and so on.
  const std::string& kind() const { return kind_; }
  bool is_open() const { return is_open_; }
  const std::map<std::string, Family>& families() const { return families_; }
  const std::set<std::string>& snapshots() const { return snapshots_; }
  const std::map<std::string, Iterator>& iterators() const {
    return iterators_;
  }
  const std::map<std::string, Transaction>& transactions() const {
    return transactions_;
  }

 private:
  // A step without "cf=NAME" in front.
  struct Step {
    std::string cf;
    HistoryWords words;
  };
  static Step Split(const HistoryWords& words);
  static bool IsSingle(const std::string& key) { return key[0] == 's'; }

  bool IsWritePrepared() const { return kind_.compare(0, 6, "write-") == 0; }
  bool AllowsFamily(const Step& step) const;
  bool AllowsIterator(const Step& step) const;
  bool AllowsTransaction(const Step& step) const;
  // own_call: the write has a call of the DB of its own.
  bool AllowsWrite(const Step& step, bool own_call) const;
  // Returns the writes of the step "batch" or "ingest".
  static std::vector<Step> Writes(const Step& step);
  bool AllowsWrites(const Step& step) const;
  bool AllowsView(const Step& step) const;
  void ApplyFamily(const Step& step);
  void ApplyIterator(const Step& step);
  void ApplyTransaction(const Step& step);
  void ApplyWrite(const Step& step);
  // Forgets what does not survive the end of the process, and opens the DB.
  // loses_writes: what was not synced may be lost.
  void Close(bool loses_writes);

  bool is_open_ = false;
  // The last step was "syncwal".
  bool is_synced_ = false;
  std::string kind_ = "plain";
  std::map<std::string, Family> families_;
  std::set<std::string> snapshots_;
  std::map<std::string, Iterator> iterators_;
  std::map<std::string, Transaction> transactions_;
};

}  // namespace ROCKSDB_NAMESPACE
