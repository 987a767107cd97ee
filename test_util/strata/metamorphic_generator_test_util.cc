//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/metamorphic_generator_test_util.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <type_traits>
#include <utility>

#include "rocksdb/db.h"

namespace ROCKSDB_NAMESPACE {

MetamorphicGenerator::MetamorphicGenerator(uint64_t seed)
    : dice_(seed), copy_dice_(~seed) {
  // With RocksDB's write-unprepared policy, reads of a DB see what is not
  // committed (GetEntity() and GetMergeOperands()), so there is no model of it.
  const uint64_t kind = dice_.Below(20);
  kind_ = kind < 12   ? "plain"
          : kind < 16 ? "locking"
          : kind < 18 ? "optimistic"
                      : "write-prepared";
  num_keys_ = dice_.OneIn(3) ? 3 + dice_.Below(5) : 8 + dice_.Below(40);
  max_families_ = 1 + dice_.Below(3);
  max_value_size_ = dice_.OneIn(3) ? 80 : dice_.OneIn(2) ? 600 : 5000;
  has_merges_ = dice_.Percent(80);
  has_entities_ = dice_.Percent(60);
  has_ranges_ = dice_.Percent(70);
  // Transactions do not always see a conflict with a file that was ingested:
  // that depends on what the memtables keep.
  has_ingestion_ = dice_.Percent(60) && kind_ == "plain";
  has_singles_ = dice_.Percent(50);
  has_iterators_ = dice_.Percent(75);
  has_losses_ = dice_.Percent(15);
}

std::vector<MetamorphicGenerator::Choice> MetamorphicGenerator::Choices() {
  using G = MetamorphicGenerator;
  const bool is_plain = kind_ == "plain";
  // A weight that this history multiplies by something from 1/4 to 4.
  const auto vary = [this](uint64_t weight) {
    return weight * (1 + dice_.Below(16)) / 4;
  };
  const auto if_set = [&vary](bool is_set, uint64_t weight) {
    return is_set ? vary(weight) : 0;
  };
  return {
      {vary(140), &G::Put},
      {if_set(has_merges_, 110), &G::Merge},
      {vary(40), &G::Delete},
      {if_set(has_singles_, 30), &G::SingleWrite},
      {if_set(has_ranges_ && is_plain, 20), &G::DeleteRange},
      {if_set(has_entities_, 30), &G::Entity},
      {vary(50), &G::Batch},
      {vary(6), &G::Fill},
      {if_set(has_ingestion_, 15), &G::Ingest},
      {vary(10), &G::SyncWal},
      {vary(80), &G::Get},
      {vary(30), &G::MultiGet},
      {vary(15), &G::MultiGetAll},
      {vary(40), &G::Scan},
      {vary(8), &G::ScanAll},
      {vary(25), &G::Snapshot},
      {vary(20), &G::Release},
      {if_set(has_iterators_, 25), &G::NewIterator},
      {if_set(has_iterators_, 110), &G::MoveIterator},
      {if_set(has_iterators_, 15), &G::CloseIterator},
      {vary(60), &G::Flush},
      {vary(30), &G::Compact},
      {vary(20), &G::CompactLevel},
      {vary(15), &G::Collect},
      {vary(5), &G::Wait},
      {vary(6), &G::Reopen},
      {vary(6), &G::Crash},
      {vary(3), &G::Checkpoint},
      {vary(2), &G::Backup},
      {vary(4), &G::Verify},
      {if_set(max_families_ > 1, 6), &G::ChangeFamily},
      {vary(6), &G::SetOptions},
      {if_set(has_losses_, 4), &G::DeleteFiles},
      {if_set(!is_plain, 40), &G::BeginTransaction},
      {if_set(!is_plain, 250), &G::UseTransaction},
  };
}

std::vector<HistoryWords> MetamorphicGenerator::Steps(size_t num_steps) {
  if (num_steps == 0) {
    num_steps = 30 + dice_.Below(dice_.OneIn(4) ? 600 : 200);
  }
  const std::vector<Choice> choices = Choices();
  uint64_t total = 0;
  for (const Choice& choice : choices) {
    total += choice.weight;
  }
  std::vector<HistoryWords> steps;
  const auto add = [&](HistoryWords words) {
    if (!words.empty() && state_.Allows(words)) {
      state_.Apply(words);
      steps.push_back(std::move(words));
    }
  };
  add(Open());
  while (steps.size() < num_steps) {
    uint64_t at = dice_.Below(total);
    auto choice = choices.begin();
    while (at >= choice->weight) {
      at -= choice->weight;
      ++choice;
    }
    HistoryWords words = (this->*choice->make)();
    const bool is_crash = !words.empty() && words[0] == "crash";
    if (is_crash && !(has_losses_ && dice_.OneIn(2))) {
      add({"syncwal"});
    }
    add(std::move(words));
  }
  return steps;
}

HistoryWords MetamorphicGenerator::Open() {
  static const char* const kOperators[] = {"stringappend", "stringappend",
                                           "max", "put"};
  return {"open", "db=" + kind_,
          std::string("merge_operator=") + kOperators[dice_.Below(4)]};
}

std::string MetamorphicGenerator::Key() {
  // Some keys are prefixes of others.
  const uint64_t i = dice_.Below(num_keys_);
  const std::string number = std::to_string(100 + i / 2).substr(1);
  return "k" + number + (i % 2 == 0 ? "" : "x");
}

std::string MetamorphicGenerator::Bound() {
  if (dice_.OneIn(8)) {
    return dice_.OneIn(2) ? "a" : "z";
  }
  return Key() + (dice_.OneIn(3) ? "m" : "");
}

std::string MetamorphicGenerator::Value() {
  // The letter decides which of two values the operator "max" keeps.
  std::string tag(1, static_cast<char>('A' + dice_.Below(26)));
  tag.append(std::to_string(++num_values_));
  if (dice_.OneIn(4)) {
    return tag;
  }
  const uint64_t size = 20 + dice_.Below(max_value_size_);
  return "@" + std::to_string(size) + ":" + tag;
}

std::string MetamorphicGenerator::Operand() {
  if (dice_.OneIn(6)) {
    return Value();
  }
  std::string tag(1, static_cast<char>('A' + dice_.Below(26)));
  return tag.append(std::to_string(++num_values_));
}

template <class Map>
std::string MetamorphicGenerator::NameIn(const Map& map) {
  return NameIn(map, &dice_);
}

template <class Map>
std::string MetamorphicGenerator::NameIn(const Map& map, OverlapDice* dice) {
  if (map.empty()) {
    return "";
  }
  auto it = map.begin();
  std::advance(it, dice->Below(map.size()));
  if constexpr (std::is_same_v<typename Map::key_type,
                               typename Map::value_type>) {
    return *it;
  } else {
    return it->first;
  }
}

HistoryWords MetamorphicGenerator::InFamily(HistoryWords words) {
  if (!words.empty()) {
    const std::string cf = NameIn(state_.families());
    if (cf != kDefaultColumnFamilyName) {
      words.insert(words.begin(), "cf=" + cf);
    }
  }
  return words;
}

HistoryWords MetamorphicGenerator::AtSnapshot(HistoryWords words) {
  const std::string snapshot = NameIn(state_.snapshots());
  if (!snapshot.empty() && dice_.OneIn(3)) {
    words.push_back("@" + snapshot);
  }
  return words;
}

void MetamorphicGenerator::AppendRange(HistoryWords* words) {
  std::string from = Bound();
  std::string to = Bound();
  if (to < from) {
    std::swap(from, to);
  }
  words->push_back(std::move(from));
  words->push_back(std::move(to));
}

HistoryWords MetamorphicGenerator::Put() {
  HistoryWords words = {"put", Key(), Value()};
  if (dice_.OneIn(12)) {
    words.emplace_back("sync");
  }
  return InFamily(std::move(words));
}

HistoryWords MetamorphicGenerator::Merge() {
  return InFamily({"merge", Key(), Operand()});
}

HistoryWords MetamorphicGenerator::Delete() { return InFamily({"del", Key()}); }

HistoryWords MetamorphicGenerator::SingleWrite() {
  std::string key = Key();
  key[0] = 's';
  // The state allows one of them.
  if (dice_.OneIn(2)) {
    return InFamily({"singledel", key});
  }
  return InFamily({"put", key, Value()});
}

HistoryWords MetamorphicGenerator::DeleteRange() {
  HistoryWords words = {"delrange"};
  AppendRange(&words);
  return InFamily(std::move(words));
}

HistoryWords MetamorphicGenerator::Entity() {
  HistoryWords words = {"entity", Key()};
  if (dice_.Percent(80)) {
    words.push_back("_=" + Value());
  }
  const uint64_t num_columns = dice_.Below(3);
  for (uint64_t i = 0; i < num_columns || words.size() == 2; ++i) {
    words.push_back("c" + std::to_string(i) + "=" + Value());
  }
  return InFamily(std::move(words));
}

HistoryWords MetamorphicGenerator::AnyWrite(bool with_merges,
                                            bool with_ranges) {
  switch (dice_.Below(8)) {
    case 0:
      return {"del", Key()};
    case 1:
    case 2:
      if (with_merges && has_merges_) {
        return {"merge", Key(), Operand()};
      }
      break;
    case 3:
      if (with_ranges && has_ranges_ && kind_ == "plain") {
        HistoryWords words = {"delrange"};
        AppendRange(&words);
        if (words[1] < words[2]) {
          return words;
        }
      }
      break;
    case 4:
      if (has_entities_) {
        return {"entity", Key(), "_=" + Value(), "c=" + Value()};
      }
      break;
    default:
      break;
  }
  return {"put", Key(), Value()};
}

HistoryWords MetamorphicGenerator::Batch() {
  HistoryWords words = {"batch"};
  const uint64_t num_writes = 2 + dice_.Below(5);
  for (uint64_t i = 0; i < num_writes; ++i) {
    if (i > 0) {
      words.emplace_back(";");
    }
    const HistoryWords write =
        InFamily(AnyWrite(/*with_merges=*/true, /*with_ranges=*/true));
    words.insert(words.end(), write.begin(), write.end());
  }
  if (dice_.OneIn(6)) {
    words.emplace_back("sync");
  }
  return words;
}

HistoryWords MetamorphicGenerator::Fill() {
  const uint64_t last = 1 + dice_.Below(num_keys_ / 2 + 1);
  return InFamily({"fill", "k", "00", std::to_string(100 + last).substr(1),
                   "@" + std::to_string(20 + dice_.Below(max_value_size_))});
}

HistoryWords MetamorphicGenerator::Ingest() {
  // A file has a key once. Operands are left out, because over other operands
  // some options refuse them. No range begins at a key of the file: all entries
  // have the same sequence number, and an assertion of RocksDB's merging
  // iterator does not expect a blob index or an entity there.
  HistoryWords words = {"ingest"};
  if (dice_.OneIn(3)) {
    words.emplace_back("move");
  }
  std::set<std::string> keys;
  const uint64_t num_writes = 1 + dice_.Below(6);
  bool is_first = true;
  for (uint64_t i = 0; i < num_writes; ++i) {
    const HistoryWords write =
        AnyWrite(/*with_merges=*/false, /*with_ranges=*/dice_.OneIn(3));
    if (!keys.insert(write[1]).second) {
      continue;
    }
    if (!is_first) {
      words.emplace_back(";");
    }
    is_first = false;
    words.insert(words.end(), write.begin(), write.end());
  }
  return InFamily(std::move(words));
}

HistoryWords MetamorphicGenerator::Get() {
  return InFamily(AtSnapshot(
      {has_entities_ && dice_.OneIn(3) ? "getentity" : "get",
       has_singles_ && dice_.OneIn(6) ? "s" + Key().substr(1) : Key()}));
}

HistoryWords MetamorphicGenerator::Keys(const std::string& step) {
  HistoryWords words = {step};
  const uint64_t num_keys = 1 + dice_.Below(8);
  for (uint64_t i = 0; i < num_keys; ++i) {
    words.push_back(Key());
  }
  return AtSnapshot(std::move(words));
}

HistoryWords MetamorphicGenerator::MultiGet() {
  return InFamily(Keys("multiget"));
}

HistoryWords MetamorphicGenerator::MultiGetAll() { return Keys("multigetall"); }

HistoryWords MetamorphicGenerator::WithReadOptions(HistoryWords words) {
  static const char* const kOptions[] = {"+pin",        "+async",
                                         "+nofill",     "+prefetch=0",
                                         "+prefetch=7", "+readahead=4096"};
  while (dice_.OneIn(4)) {
    words.emplace_back(kOptions[dice_.Below(std::size(kOptions))]);
  }
  return words;
}

HistoryWords MetamorphicGenerator::Scan() {
  HistoryWords words = AtSnapshot({"scan"});
  if (dice_.OneIn(2)) {
    words.push_back(Bound());
    words.push_back(Bound());
  }
  if (dice_.OneIn(3)) {
    words.emplace_back("reverse");
  }
  return InFamily(WithReadOptions(std::move(words)));
}

HistoryWords MetamorphicGenerator::ScanAll() { return AtSnapshot({"scanall"}); }

HistoryWords MetamorphicGenerator::Snapshot() {
  return {"snapshot", "S" + std::to_string(dice_.Below(6))};
}

HistoryWords MetamorphicGenerator::Release() {
  const std::string snapshot = NameIn(state_.snapshots());
  return snapshot.empty() ? HistoryWords() : HistoryWords{"release", snapshot};
}

HistoryWords MetamorphicGenerator::NewIterator() {
  HistoryWords words = {"iter", "I" + std::to_string(dice_.Below(4))};
  // RocksDB's tailing iterators fail when they meet a range deletion.
  const bool is_tailing = (!has_ranges_ || kind_ != "plain") && dice_.OneIn(6);
  if (is_tailing) {
    words.emplace_back("+tailing");
  } else {
    words = WithReadOptions(AtSnapshot(std::move(words)));
  }
  if (dice_.OneIn(3)) {
    AppendRange(&words);
  }
  return InFamily(std::move(words));
}

HistoryWords MetamorphicGenerator::MoveIterator() {
  const std::string name = NameIn(state_.iterators());
  if (name.empty()) {
    return {};
  }
  const std::string count = std::to_string(1 + dice_.Below(4));
  switch (dice_.Below(10)) {
    case 0:
      return {"first", name};
    case 1:
      return {"last", name};
    case 2:
    case 3:
      return {"seek", name, Bound()};
    case 4:
      return {"seekforprev", name, Bound()};
    case 5:
      return AtSnapshot({"refresh", name});
    case 6:
    case 7:
      return {"prev", name, count};
    default:
      return {"next", name, count};
  }
}

HistoryWords MetamorphicGenerator::CloseIterator() {
  const std::string name = NameIn(state_.iterators());
  return name.empty() ? HistoryWords() : HistoryWords{"close-iter", name};
}

HistoryWords MetamorphicGenerator::Flush() {
  return dice_.OneIn(4) ? HistoryWords{"flush", "all"} : InFamily({"flush"});
}

HistoryWords MetamorphicGenerator::Compact() {
  HistoryWords words = {"compact"};
  if (dice_.OneIn(2)) {
    AppendRange(&words);
  }
  static const char* const kBottommost[] = {
      "bottommost=force", "bottommost=optimized", "bottommost=skip"};
  if (dice_.OneIn(2)) {
    words.emplace_back(kBottommost[dice_.Below(3)]);
  }
  return InFamily(std::move(words));
}

HistoryWords MetamorphicGenerator::CompactLevel() {
  const uint64_t from = dice_.Below(3);
  HistoryWords words = {"compactlevel", std::to_string(from)};
  if (dice_.OneIn(2)) {
    words.push_back(std::to_string(from + 1 + dice_.Below(2)));
  }
  if (dice_.OneIn(3)) {
    words.emplace_back("nomove");
  }
  return InFamily(std::move(words));
}

HistoryWords MetamorphicGenerator::Collect() {
  HistoryWords words = {"collect"};
  if (dice_.OneIn(3)) {
    words.push_back("runs=" + std::to_string(1 + dice_.Below(3)));
  }
  return InFamily(std::move(words));
}

HistoryWords MetamorphicGenerator::Checkpoint() {
  HistoryWords words = WithCopyLayout({"checkpoint"});
  if (words.size() > 1 && copy_dice_.OneIn(3)) {
    words.emplace_back(copy_dice_.OneIn(2) ? "path_map=1:0" : "path_map=0:1");
  }
  return words;
}

HistoryWords MetamorphicGenerator::Backup() {
  return WithCopyLayout(dice_.OneIn(2) ? HistoryWords{"backup", "flush"}
                                       : HistoryWords{"backup"});
}

HistoryWords MetamorphicGenerator::WithCopyLayout(HistoryWords words) {
  static const char* const kIds[] = {"0", "1", "0:1", "1:0", "0:0:1", "1:1:0"};
  static const char* const kPaths[] = {"2", "3", "4", "p1,db", "p1,p2,p3"};
  if (copy_dice_.OneIn(3)) {
    return words;
  }
  words.push_back(std::string("paths=") +
                  kPaths[copy_dice_.Below(std::size(kPaths))]);
  const uint64_t options = 1 + copy_dice_.Below(7);
  if ((options & 1) != 0) {
    words.push_back(std::string("level_sst_path_ids=") +
                    kIds[copy_dice_.Below(std::size(kIds))]);
  }
  if ((options & 2) != 0) {
    words.push_back(std::string("level_blob_path_ids=") +
                    kIds[copy_dice_.Below(std::size(kIds))]);
  }
  if ((options & 4) != 0) {
    words.push_back("delta_sorted_path_id=" +
                    std::to_string(copy_dice_.Below(2)));
  }
  const std::string cf = NameIn(state_.families(), &copy_dice_);
  if (cf != kDefaultColumnFamilyName && copy_dice_.OneIn(2)) {
    words.insert(words.begin(), "cf=" + cf);
  }
  return words;
}

HistoryWords MetamorphicGenerator::ChangeFamily() {
  const std::string name = "f" + std::to_string(1 + dice_.Below(max_families_));
  if (state_.families().count(name) != 0) {
    // Most families stay, or little would be in them.
    return dice_.OneIn(3) ? HistoryWords{"family", "drop", name}
                          : HistoryWords();
  }
  static const char* const kOperators[] = {"stringappend", "max", "put"};
  return {"family", "create", name,
          std::string("merge_operator=") + kOperators[dice_.Below(3)]};
}

HistoryWords MetamorphicGenerator::SetOptions() {
  static const char* const kOptions[] = {"blob_gc_space_amp_limit=0",
                                         "blob_gc_space_amp_limit=1.05",
                                         "blob_scan_sort_budget=0",
                                         "blob_scan_sort_budget=1000",
                                         "blob_hot_bytes=0",
                                         "min_blob_size=0",
                                         "min_blob_size=100",
                                         "blob_file_size=1000",
                                         "blob_file_size=1000000",
                                         "blob_file_starting_level=1",
                                         "disable_auto_compactions=false",
                                         "disable_auto_compactions=true",
                                         "target_file_size_base=2000",
                                         "max_successive_merges=3",
                                         "save_blob_address_map=false",
                                         "delta_bucket_split_ratio=0.2",
                                         "delta_max_buckets=8",
                                         "merged_value_cache_size=100000"};
  return InFamily({"setoptions", kOptions[dice_.Below(std::size(kOptions))]});
}

HistoryWords MetamorphicGenerator::DeleteFiles() {
  HistoryWords words = {"deletefilesinrange"};
  AppendRange(&words);
  return InFamily(std::move(words));
}

HistoryWords MetamorphicGenerator::BeginTransaction() {
  HistoryWords words = {"txn", "T" + std::to_string(dice_.Below(3)), "begin"};
  if (dice_.OneIn(2)) {
    words.emplace_back("snapshot");
  }
  return words;
}

HistoryWords MetamorphicGenerator::UseTransaction() {
  const std::string name = NameIn(state_.transactions());
  if (name.empty()) {
    return BeginTransaction();
  }
  HistoryWords words = {"txn", name};
  switch (dice_.Below(16)) {
    case 0:
      words.emplace_back("commit");
      return words;
    case 1:
      words.emplace_back(dice_.OneIn(2) ? "commit" : "rollback");
      return words;
    case 2:
      words.emplace_back("prepare");
      return words;
    case 3:
      words.emplace_back("savepoint");
      return words;
    case 4:
      words.emplace_back("rollbacktosavepoint");
      return words;
    case 5:
      words.emplace_back("scan");
      return InFamily(std::move(words));
    case 6:
    case 7:
    case 8: {
      static const char* const kReads[] = {"get", "getforupdate", "getentity"};
      words.emplace_back(kReads[dice_.Below(3)]);
      words.push_back(Key());
      return InFamily(std::move(words));
    }
    default: {
      const HistoryWords write =
          AnyWrite(/*with_merges=*/true, /*with_ranges=*/false);
      words.insert(words.end(), write.begin(), write.end());
      return InFamily(std::move(words));
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
