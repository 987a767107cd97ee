//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_words_test_util.h"
#include "test_util/strata/metamorphic_state_test_util.h"
#include "test_util/strata/overlap_dice_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Makes a random history of all operations of the API, as steps of history
// scripts. The same seed makes the same history. The steps do not depend on the
// options of the DB; those that crash it, for example, are preceded by
// "syncwal", so that all options end with the same contents.
//
// A seed also chooses the shape: few or many keys and families, small or large
// values, kind of DB, and which operations are frequent or do not occur. Two
// bugs that need different loads are then found by different seeds, where one
// load of everything would find neither ("swarm testing", Groce et al., ISSTA
// 2012).
//
// Source: after Pebble's metamorphic test.
//
// Not thread-safe.
class MetamorphicGenerator {
 public:
  explicit MetamorphicGenerator(uint64_t seed);
  MetamorphicGenerator(const MetamorphicGenerator&) = delete;
  MetamorphicGenerator& operator=(const MetamorphicGenerator&) = delete;

  // Makes the whole history; the first step opens the DB.
  // num_steps: the number of steps; 0 if the seed chooses it.
  // REQUIRES: this is called once
  std::vector<HistoryWords> Steps(size_t num_steps);

 private:
  // A kind of step, which is made by `make` and may be invalid at the time.
  struct Choice {
    uint64_t weight;
    HistoryWords (MetamorphicGenerator::*make)();
  };

  // Returns the kinds of steps of this history.
  std::vector<Choice> Choices();

  HistoryWords Open();
  HistoryWords Put();
  HistoryWords Merge();
  HistoryWords Delete();
  HistoryWords SingleWrite();
  HistoryWords DeleteRange();
  HistoryWords Entity();
  HistoryWords Batch();
  HistoryWords Fill();
  HistoryWords Ingest();
  HistoryWords SyncWal() { return {"syncwal"}; }
  HistoryWords Get();
  HistoryWords MultiGet();
  HistoryWords MultiGetAll();
  HistoryWords Scan();
  HistoryWords ScanAll();
  HistoryWords Snapshot();
  HistoryWords Release();
  HistoryWords NewIterator();
  HistoryWords MoveIterator();
  HistoryWords CloseIterator();
  HistoryWords Flush();
  HistoryWords Compact();
  HistoryWords CompactLevel();
  HistoryWords Collect();
  HistoryWords Wait() { return {"wait"}; }
  HistoryWords Reopen() { return {"reopen"}; }
  HistoryWords Crash() { return {"crash"}; }
  HistoryWords Checkpoint();
  HistoryWords Backup();
  HistoryWords Verify() { return {"verify"}; }
  HistoryWords ChangeFamily();
  HistoryWords SetOptions();
  HistoryWords DeleteFiles();
  HistoryWords BeginTransaction();
  HistoryWords UseTransaction();

  // A write of a key other than the single-deleted ones, without its family.
  // with_merges: it may be a merge.
  // with_ranges: it may be a deletion of a range.
  HistoryWords AnyWrite(bool with_merges, bool with_ranges);
  // Returns the word `step`, some keys, and at times a snapshot.
  HistoryWords Keys(const std::string& step);
  std::string Key();
  // A key, or a text between two keys.
  std::string Bound();
  // Appends two bounds, the smaller one first.
  void AppendRange(HistoryWords* words);
  std::string Value();
  std::string Operand();
  // Returns `words` for a random family: with "cf=NAME" in front.
  HistoryWords InFamily(HistoryWords words);
  // Appends options of reads, "+pin" and so on, at times.
  HistoryWords WithReadOptions(HistoryWords words);
  // Appends a layout of the copy at times.
  HistoryWords WithCopyLayout(HistoryWords words);
  // Appends "@SNAPSHOT" at times.
  HistoryWords AtSnapshot(HistoryWords words);
  // Returns one of the names, or an empty text if there is none.
  template <class Map>
  std::string NameIn(const Map& map);
  template <class Map>
  static std::string NameIn(const Map& map, OverlapDice* dice);

  OverlapDice dice_;
  // Chooses the layouts of copies, which change nothing in the DB, so the other
  // steps of a seed do not depend on them.
  OverlapDice copy_dice_;
  MetamorphicState state_;
  uint64_t num_values_ = 0;

  // The shape.
  std::string kind_;
  uint64_t num_keys_;
  uint64_t max_families_;
  // Values of up to this many bytes.
  uint64_t max_value_size_;
  bool has_merges_;
  bool has_entities_;
  bool has_ranges_;
  bool has_ingestion_;
  bool has_singles_;
  bool has_iterators_;
  // Writes can be lost, or files deleted: what follows depends on the options.
  bool has_losses_;
};

}  // namespace ROCKSDB_NAMESPACE
