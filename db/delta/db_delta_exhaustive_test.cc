//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests all short histories of a key: each sequence of writes, with a snapshot,
// a flush, a compaction, a collection of delta files or a reopening at each
// point between them. Also tests long random histories of several keys, with
// and without concurrent readers. Every answer is compared with that of a
// model.
//
// A history that fails is printed as a script for testdata/history (see
// docs/history-scripts.md). The message also says whether the script fails.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/delta/delta_verifier_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/wide_columns.h"
#include "rocksdb/write_batch.h"
#include "test_util/strata/history_model_test_util.h"
#include "test_util/strata/history_options_test_util.h"
#include "test_util/strata/history_runner_test_util.h"
#include "test_util/strata/history_script_test_util.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/sync_point.h"
#include "util/random.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Columns = HistoryModel::Columns;
using ModelContents = HistoryModel::Contents;
using OptionList = std::vector<std::pair<std::string, std::string>>;

constexpr char kColumn[] = "column";
constexpr char kSeparation[] = "enable_delta_separation";
// The second column family.
constexpr char kOther[] = "f";
const std::vector<std::string> kFamilies = {"default", kOther};

// ---- Options.

struct OptionSet {
  const char* name;
  OptionList options;  // in the syntax of scripts
  // Number of column families; histories are assigned to them in turn.
  size_t num_families = 1;
  // True if each reopening turns separation off or on.
  bool switches = false;

  bool Has(const std::string& option, const std::string& value) const {
    for (const auto& [name_of_option, own] : options) {
      if (name_of_option == option) {
        return own == value;
      }
    }
    return false;
  }
};

OptionList Together(const std::vector<OptionList>& lists) {
  OptionList all;
  for (const OptionList& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

const std::vector<OptionSet>& OptionSets() {
  static const OptionList kDeltas = {{kSeparation, "true"}};
  // Buckets are so small that some hundred operands fill several, which are
  // split.
  static const OptionList kManyBuckets = {{kSeparation, "true"},
                                          {"delta_bucket_size", "4096"},
                                          {"delta_max_buckets", "64"},
                                          {"delta_bucket_split_ratio", "0.1"}};
  // Buckets may not be split, so they are folded (see FillBuckets()).
  static const OptionList kFewBuckets = {{kSeparation, "true"},
                                         {"delta_bucket_size", "4096"},
                                         {"delta_max_buckets", "4"},
                                         {"delta_bucket_split_ratio", "0.1"}};
  static const OptionList kMergedValues = {
      {"enable_merged_value_cache", "true"},
      {"merged_value_cache_size", "2000000"},
      {"delta_cache_size", "1000000"}};
  static const OptionList kBlobs = {
      {"enable_blob_files", "true"},
      {"min_blob_size", "0"},
      {"blob_file_size", "4096"},
      {"enable_blob_garbage_collection", "true"},
      {"blob_garbage_collection_age_cutoff", "1"}};
  static const OptionList kMap = {{"enable_blob_files", "true"},
                                  {"min_blob_size", "0"},
                                  {"blob_file_size", "4096"},
                                  {"enable_blob_address_map", "true"},
                                  {"blob_gc_space_amp_limit", "1.01"}};
  static const OptionList kUniversal = {
      {"compaction_style", "kCompactionStyleUniversal"}};
  static const OptionList kAtomicFlush = {{"atomic_flush", "true"}};
  static const OptionList kJobs = {{"disable_auto_compactions", "false"},
                                   {"level0_file_num_compaction_trigger", "2"},
                                   {"target_file_size_base", "2048"},
                                   {"max_bytes_for_level_base", "8192"},
                                   {"max_subcompactions", "4"},
                                   {"max_background_jobs", "4"}};
  static const OptionList kPartitioned = {
      {"block_based_table_factory",
       "{index_type=kTwoLevelIndexSearch;partition_filters=true;"
       "filter_policy=bloomfilter:10:false;metadata_block_size=128;"
       "block_size=256;cache_index_and_filter_blocks=true;}"}};
  static const std::vector<OptionSet> kSets = {
      {"NoSeparation", {}},
      {"Separation", kDeltas},
      {"ManyBuckets", kManyBuckets},
      {"NoDeltaCache", Together({kManyBuckets, {{"delta_cache_size", "0"}}})},
      {"FewBuckets", kFewBuckets},
      {"SwitchedOffAndOn", kManyBuckets, 1, /*switches=*/true},
      {"MergedValues", Together({kManyBuckets, kMergedValues})},
      {"BlobFiles", Together({kManyBuckets, kBlobs})},
      {"Map", Together({kFewBuckets, kMap})},
      {"MapWithoutBypass",
       Together({kManyBuckets, kMap, {{"enable_lsm_bypass", "false"}}})},
      {"Universal", Together({kManyBuckets, kUniversal})},
      {"AtomicFlush", Together({kManyBuckets, kAtomicFlush}), 2},
      {"Jobs", Together({kManyBuckets, kJobs})},
      {"All", Together({kFewBuckets, kMap, kMergedValues, kJobs, kPartitioned}),
       2}};
  return kSets;
}

std::string Words(const OptionList& options) {
  std::string words;
  for (const auto& [name, value] : options) {
    words += " " + name + "=" + value;
  }
  return words;
}

// ---- Reads.

enum class PointRead { kGet, kMultiGet, kGetEntity, kGetMergeOperands };
constexpr PointRead kPointReads[] = {PointRead::kGet, PointRead::kMultiGet,
                                     PointRead::kGetEntity,
                                     PointRead::kGetMergeOperands};

// An answer that differs from the model's. The key is empty if no key is known.
struct Wrong {
  std::string key;
  std::string what;
};
using Finding = std::optional<Wrong>;

std::string Show(const Columns& columns) {
  std::string text;
  for (const auto& [name, value] : columns) {
    text += (text.empty() ? "" : " ") + name + "=" + value;
  }
  return columns.empty() ? "(not found)" : text;
}

Columns FromWideColumns(const WideColumns& wide) {
  Columns columns;
  for (const WideColumn& column : wide) {
    columns[column.name().ToString()] = column.value().ToString();
  }
  return columns;
}

bool IsSame(const WideColumns& wide, const Columns& columns) {
  return wide.size() == columns.size() &&
         std::equal(columns.begin(), columns.end(), wide.begin(),
                    [](const auto& column, const WideColumn& other) {
                      return other.name() == column.first &&
                             other.value() == column.second;
                    });
}

// Compares all entries of the iterator with the contents.
Finding CheckIterator(Iterator* iter, const ModelContents& contents,
                      bool backward) {
  const std::string how = backward ? "backward: " : "forward: ";
  size_t left = contents.size();
  auto next = backward ? contents.end() : contents.begin();
  for (backward ? iter->SeekToLast() : iter->SeekToFirst(); iter->Valid();
       backward ? iter->Prev() : iter->Next(), --left) {
    const std::string key = iter->key().ToString();
    if (contents.count(key) == 0) {
      return Wrong{key, how + "is there, " + iter->value().ToString()};
    }
    if (left > 0 && backward) {
      --next;
    }
    if (left == 0 || next->first != key) {
      return Wrong{left == 0 ? key : next->first,
                   how + "is not there, but " + key};
    }
    const auto expected = next->second.find("");
    if (!IsSame(iter->columns(), next->second) ||
        iter->value() != (expected == next->second.end() ? std::string()
                                                         : expected->second)) {
      return Wrong{key, how + Show(FromWideColumns(iter->columns())) +
                            " instead of " + Show(next->second)};
    }
    if (!backward) {
      ++next;
    }
  }
  if (!iter->status().ok()) {
    return Wrong{"", how + iter->status().ToString()};
  }
  if (left > 0) {
    return Wrong{(backward ? std::prev(next) : next)->first,
                 how + "is not there"};
  }
  return std::nullopt;
}

// Compares a scan from `lower` to `upper` with the contents of this range.
Finding CheckScan(DB* db, ColumnFamilyHandle* family,
                  const ReadOptions& base_options, const Slice& lower,
                  const Slice& upper, const ModelContents& contents,
                  bool backward) {
  ReadOptions read_options = base_options;
  read_options.iterate_lower_bound = &lower;
  read_options.iterate_upper_bound = &upper;
  const std::unique_ptr<Iterator> iter(db->NewIterator(read_options, family));
  return CheckIterator(iter.get(), contents, backward);
}

Finding CheckPoints(DB* db, ColumnFamilyHandle* family,
                    const ReadOptions& read_options,
                    const std::vector<std::string>& keys,
                    const ModelContents& contents, PointRead read) {
  constexpr size_t kBatch = 50;
  constexpr int kMaxOperands = 500;
  static const char* const kNames[] = {"Get", "MultiGet", "GetEntity",
                                       "GetMergeOperands"};
  const std::string how = kNames[static_cast<int>(read)] + std::string(": ");
  // Either the value or the entity is given; the other one is nullptr.
  const auto compare = [&](const std::string& key, const Status& s,
                           const std::string* value,
                           const WideColumns* entity) -> Finding {
    static const Columns kNone;
    const auto found = contents.find(key);
    const Columns& expected = found == contents.end() ? kNone : found->second;
    const bool is_right = expected.empty()    ? s.IsNotFound()
                          : !s.ok()           ? false
                          : entity != nullptr ? IsSame(*entity, expected)
                                              : *value == expected.at("");
    if (is_right) {
      return std::nullopt;
    }
    return Wrong{key, how +
                          (!s.ok()             ? s.ToString()
                           : entity != nullptr ? Show(FromWideColumns(*entity))
                                               : *value) +
                          " instead of " + Show(expected)};
  };
  if (read == PointRead::kMultiGet) {
    for (size_t first = 0; first < keys.size(); first += kBatch) {
      const size_t num = std::min(kBatch, keys.size() - first);
      const std::vector<Slice> slices(keys.begin() + first,
                                      keys.begin() + first + num);
      std::vector<PinnableSlice> values(num);
      std::vector<Status> statuses(num);
      db->MultiGet(read_options, family, num, slices.data(), values.data(),
                   statuses.data(), /*sorted_input=*/true);
      for (size_t i = 0; i < num; ++i) {
        const std::string value = values[i].ToString();
        const Finding finding =
            compare(keys[first + i], statuses[i], &value, nullptr);
        if (finding.has_value()) {
          return finding;
        }
      }
    }
    return std::nullopt;
  }
  GetMergeOperandsOptions operand_options;
  operand_options.expected_max_number_of_operands = kMaxOperands;
  std::vector<PinnableSlice> operands(
      read == PointRead::kGetMergeOperands ? kMaxOperands : 0);
  for (const std::string& key : keys) {
    Finding finding;
    if (read == PointRead::kGetEntity) {
      PinnableWideColumns entity;
      const Status s = db->GetEntity(read_options, family, key, &entity);
      finding = compare(key, s, nullptr, &entity.columns());
    } else if (read == PointRead::kGet) {
      std::string value;
      const Status s = db->Get(read_options, family, key, &value);
      finding = compare(key, s, &value, nullptr);
    } else {
      int num_operands = 0;
      const Status s =
          db->GetMergeOperands(read_options, family, key, operands.data(),
                               &operand_options, &num_operands);
      std::string joined;
      for (int i = 0; s.ok() && i < num_operands; ++i) {
        joined += (i == 0 ? "" : ",") + operands[i].ToString();
        operands[i].Reset();
      }
      finding = compare(key, s, &joined, nullptr);
    }
    if (finding.has_value()) {
      return finding;
    }
  }
  return std::nullopt;
}

// ---- Short histories.

enum class KeyWrite { kPut, kDelete, kSingleDelete, kDeleteRange, kMerge };
constexpr KeyWrite kKeyWrites[] = {KeyWrite::kPut, KeyWrite::kDelete,
                                   KeyWrite::kSingleDelete,
                                   KeyWrite::kDeleteRange, KeyWrite::kMerge};
constexpr size_t kNumWrites = 4;

// Decides whether a key may be deleted by SingleDelete(): it has been put
// exactly once since its last single deletion, and was never merged or deleted
// in another way. (A compaction may drop a tombstone below a newer value. A
// single deletion is then dropped together with that value, and older values
// become visible again.)
struct SingleDeleteRule {
  bool is_clean = true;
  bool is_put = false;

  bool MayDelete() const { return is_clean && is_put; }
  void OnWrite(KeyWrite type) {
    is_clean = is_clean && type != KeyWrite::kMerge &&
               type != KeyWrite::kDelete && type != KeyWrite::kDeleteRange &&
               !(type == KeyWrite::kPut && is_put);
    is_put = type == KeyWrite::kPut;
  }
};

// The history of one key.
struct History {
  std::vector<KeyWrite> writes;
  // The expected columns after the first n writes; empty: the key does not
  // exist.
  std::vector<Columns> states;
};

// Returns a value that no other history or step has.
std::string ValueOf(size_t history, size_t step) {
  return static_cast<char>('a' + step) + std::to_string(history);
}
// True if a put of this step writes an entity.
bool IsEntity(size_t history, size_t step) {
  return (history + 2 * step) % 5 == 0;
}

std::vector<History> ShortHistories() {
  std::vector<History> all;
  const std::function<void(const std::vector<KeyWrite>&, SingleDeleteRule)>
      extend = [&](const std::vector<KeyWrite>& writes, SingleDeleteRule rule) {
        if (writes.size() == kNumWrites) {
          all.emplace_back();
          all.back().writes = writes;
          return;
        }
        for (const KeyWrite type : kKeyWrites) {
          if (type == KeyWrite::kSingleDelete && !rule.MayDelete()) {
            continue;
          }
          std::vector<KeyWrite> longer = writes;
          longer.push_back(type);
          SingleDeleteRule next = rule;
          next.OnWrite(type);
          extend(longer, next);
        }
      };
  extend({}, SingleDeleteRule());
  for (size_t i = 0; i < all.size(); ++i) {
    Columns state;
    all[i].states.push_back(state);
    for (size_t step = 0; step < kNumWrites; ++step) {
      const std::string value = ValueOf(i, step);
      switch (all[i].writes[step]) {
        case KeyWrite::kPut:
          state = {{"", value}};
          if (IsEntity(i, step)) {
            state[kColumn] = "c" + value;
          }
          break;
        case KeyWrite::kMerge:
          if (state.empty()) {
            state[""] = value;
          } else {
            state[""] += "," + value;
          }
          break;
        case KeyWrite::kDelete:
        case KeyWrite::kSingleDelete:
        case KeyWrite::kDeleteRange:
          state.clear();
          break;
      }
      all[i].states.push_back(state);
    }
  }
  return all;
}

// The events between two writes.
enum class Action { kNone, kFlush, kCompactTree, kMerge, kCollect, kReopen };
struct Gap {
  bool snapshot;  // taken before the action
  Action action;
};
const std::vector<Gap> kGaps = {
    {false, Action::kNone},        {true, Action::kNone},
    {false, Action::kFlush},       {true, Action::kFlush},
    {false, Action::kCompactTree}, {true, Action::kCompactTree},
    {false, Action::kCollect},     {true, Action::kCollect},
    {false, Action::kMerge},       {false, Action::kReopen}};
constexpr size_t kNumGaps = kNumWrites - 1;
// Under each set of options, one schedule in kStride is run; each set runs
// other ones. The stride is prime to the number of gaps, so each gap occurs at
// each point.
constexpr size_t kStride = 101;

std::string Fixed(size_t number) {
  char text[16];
  snprintf(text, sizeof(text), "%04u", static_cast<unsigned>(number));
  return text;
}

// ---- Scripts.

// Runs a script and returns its failures, one per line. *is_script: set to
// false if the text is no valid script.
std::string RunScript(const std::string& text, const std::string& root,
                      bool* is_script) {
  HistoryScript script;
  Status s = HistoryScript::Parse("history", text, &script);
  std::string wrong;
  if (s.ok()) {
    HistoryRunner runner(script, HistoryVariant(), root);
    std::vector<HistoryRunner::Outputs> outputs;
    s = runner.Run(&outputs);
    for (const std::string& disagreement : runner.disagreements()) {
      wrong += disagreement + "\n";
    }
    for (const HistoryRunner::Outputs& block : outputs) {
      for (const HistoryRunner::Output& output : block) {
        if (output.text.find("error: ") != std::string::npos) {
          wrong += script.Where(output.command->line) + output.text;
        }
      }
    }
  }
  *is_script = s.ok();
  return s.ok() ? wrong : s.ToString() + "\n";
}

std::string ScriptText(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text + "----\nok\n";
}

// Removes lines from a script that fails as long as it still fails. The first
// `first` lines stay.
std::vector<std::string> Shrink(std::vector<std::string> lines, size_t first,
                                const std::string& root) {
  int runs_left = 200;
  for (size_t chunk = lines.size() / 2; chunk > 0; chunk /= 2) {
    for (size_t at = first; at + chunk <= lines.size() && runs_left > 0;
         --runs_left) {
      std::vector<std::string> fewer = lines;
      fewer.erase(fewer.begin() + at, fewer.begin() + at + chunk);
      bool is_script = false;
      const std::string wrong = RunScript(ScriptText(fewer), root, &is_script);
      if (is_script && !wrong.empty()) {
        lines = std::move(fewer);
      } else {
        at += chunk;
      }
    }
  }
  return lines;
}

// Makes a long history of several keys in two column families, as a script.
class RandomScript {
 public:
  RandomScript(const OptionSet& set, uint32_t seed, bool crashes)
      : set_(set), rnd_(seed), crashes_(crashes) {}

  // The first kHead lines open the DB and create the second family.
  static constexpr size_t kHead = 2;
  std::vector<std::string> Make(int num_steps) {
    lines_ = {"open" + Words(set_.options),
              std::string("family create ") + kOther + Words(set_.options)};
    for (int i = 0; i < num_steps; ++i) {
      AddStep();
      if (i % 15 == 14) {
        lines_.push_back("verify");
      }
    }
    return lines_;
  }

 private:
  uint32_t Uniform(size_t n) { return rnd_.Uniform(static_cast<int>(n)); }
  std::string Key() {
    return std::string(1, static_cast<char>('a' + Uniform(4))) +
           std::to_string(Uniform(3));
  }
  std::string Family() { return rnd_.OneIn(3) ? "cf=f " : ""; }
  std::string Value() { return "v" + std::to_string(num_values_++); }

  // Returns a write, such as "put a1 v1", and tells the rules of single
  // deletions.
  std::string Write(const std::string& family) {
    const std::string key = Key();
    SingleDeleteRule& rule = rules_[family + key];
    const uint32_t dice = Uniform(20);
    if (dice < 10) {
      rule.OnWrite(KeyWrite::kMerge);
      return "merge " + key + " " + Value();
    }
    if (dice < 14) {
      rule.OnWrite(KeyWrite::kPut);
      return "put " + key + " " + Value();
    }
    if (dice < 15) {
      rule.OnWrite(KeyWrite::kPut);
      const std::string value = Value();
      return "entity " + key + " _=" + value + " " + kColumn + "=c" + value;
    }
    if (dice < 18) {
      // A crash may undo the put that a single deletion requires.
      if (!crashes_ && rule.MayDelete()) {
        rule.OnWrite(KeyWrite::kSingleDelete);
        return "singledel " + key;
      }
      rule.OnWrite(KeyWrite::kDelete);
      return "del " + key;
    }
    std::string end = Key();
    if (end <= key) {
      end = key + "x";
    }
    for (char c = 'a'; c < 'e'; ++c) {
      for (char n = '0'; n < '3'; ++n) {
        const std::string covered = {c, n};
        if (key <= covered && covered < end) {
          rules_[family + covered].OnWrite(KeyWrite::kDeleteRange);
        }
      }
    }
    return "delrange " + key + " " + end;
  }

  void AddStep() {
    const uint32_t dice = Uniform(100);
    if (dice < 55) {
      const std::string family = Family();
      lines_.push_back(family + Write(family));
    } else if (dice < 60) {
      std::string batch = "batch";
      for (uint32_t i = 1 + Uniform(4); i > 0; --i) {
        const std::string family = Family();
        batch += (batch == "batch" ? " " : " ; ") + family + Write(family);
      }
      lines_.push_back(batch);
    } else if (dice < 65) {
      if (snapshots_.size() < 3) {
        snapshots_.push_back("s" + std::to_string(num_names_++));
        lines_.push_back("snapshot " + snapshots_.back());
      } else {
        const uint32_t i = Uniform(snapshots_.size());
        lines_.push_back("release " + snapshots_[i]);
        snapshots_.erase(snapshots_.begin() + i);
      }
    } else if (dice < 77) {
      AddIteratorStep();
    } else if (dice < 85) {
      lines_.push_back(rnd_.OneIn(2) ? "flush all" : Family() + "flush");
    } else if (dice < 90) {
      // The last three name files, which automatic jobs may be compacting.
      static const char* const kCompactions[] = {
          "compact a0 b2",    "compact ! ~",      "compactlevel 0",
          "compactlevel 0 1", "compactlevel 0 2", "compactlevel 1 3"};
      lines_.push_back(
          Family() +
          kCompactions[Uniform(
              set_.Has("disable_auto_compactions", "false") ? 3 : 6)]);
    } else if (dice < 94) {
      // A compaction of the whole range collects delta files.
      lines_.push_back(
          Family() + (rnd_.OneIn(2) ? "compact bottommost=force" : "compact"));
    } else if (dice < 95) {
      lines_.push_back(
          Family() +
          "setoptions delta_max_buckets=" + (rnd_.OneIn(2) ? "4" : "64") +
          " delta_bucket_split_ratio=" + (rnd_.OneIn(2) ? "0.1" : "0.8"));
    } else if (dice < 97) {
      // An ingested file has one entry.
      const std::string family = Family();
      const std::string key = Key();
      rules_[family + key].is_clean = false;
      lines_.push_back(
          family + "ingest " +
          (rnd_.OneIn(4) ? "del " + key : "put " + key + " " + Value()));
    } else {
      std::string line = crashes_ && rnd_.OneIn(2) ? "crash" : "reopen";
      if (set_.switches) {
        line += std::string(" ") + kSeparation +
                (rnd_.OneIn(2) ? "=true" : "=false");
      }
      lines_.push_back(Family() + line);
      snapshots_.clear();
      iterators_.clear();
    }
  }

  void AddIteratorStep() {
    if (iterators_.empty() || rnd_.OneIn(4)) {
      iterators_.push_back("i" + std::to_string(num_names_++));
      std::string line = Family() + "iter " + iterators_.back();
      if (!snapshots_.empty() && rnd_.OneIn(3)) {
        line += " @" + snapshots_[Uniform(snapshots_.size())];
      }
      if (rnd_.OneIn(4)) {
        line += " a1 c1";
      }
      lines_.push_back(line);
      return;
    }
    const uint32_t i = Uniform(iterators_.size());
    const std::string& name = iterators_[i];
    switch (Uniform(8)) {
      case 0:
        lines_.push_back("first " + name);
        break;
      case 1:
        lines_.push_back("last " + name);
        break;
      case 2:
        lines_.push_back("seek " + name + " " + Key());
        break;
      case 3:
        lines_.push_back("seekforprev " + name + " " + Key());
        break;
      case 4:
      case 5:
        lines_.push_back("next " + name + " 3");
        break;
      case 6:
        lines_.push_back("prev " + name + " 2");
        break;
      default:
        lines_.push_back("close-iter " + name);
        iterators_.erase(iterators_.begin() + i);
        break;
    }
  }

  const OptionSet& set_;
  Random rnd_;
  const bool crashes_;
  std::vector<std::string> lines_;
  std::map<std::string, SingleDeleteRule> rules_;
  std::vector<std::string> snapshots_;
  std::vector<std::string> iterators_;
  int num_values_ = 0;
  int num_names_ = 0;
};

}  // namespace

// The parameter is an index into OptionSets().
class DBDeltaExhaustiveTest : public StrataDBTestBase,
                              public testing::WithParamInterface<size_t> {
 protected:
  DBDeltaExhaustiveTest() : StrataDBTestBase("db_delta_exhaustive_test") {}

  void TearDown() override {
    StrataDBTestBase::TearDown();
    ReleaseAll();
  }

  const OptionSet& Set() const { return OptionSets()[GetParam()]; }

  // ---- The DB.

  OptionList CurrentList() const {
    OptionList list = Set().options;
    for (auto& [name, value] : list) {
      if (name == kSeparation) {
        value = separates_ ? "true" : "false";
      }
    }
    return list;
  }
  Options TestOptions() {
    Options options = CurrentOptions();
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.disable_auto_compactions = true;
    options.level_compaction_dynamic_level_bytes = false;
    options.compression = kNoCompression;
    options.blob_gc_space_amp_limit = 0;
    options.statistics = statistics_;
    // The default is a share of the block cache, which is tiny in a build with
    // AddressSanitizer.
    options.delta_cache_size = size_t{1} << 20;
    EXPECT_OK(SetHistoryOptions(CurrentList(), env_, &options));
    return options;
  }
  void Create(size_t num_families) {
    num_families_ = num_families;
    DestroyAndReopen(TestOptions());
    if (num_families > 1) {
      CreateAndReopenWithCF({kOther}, TestOptions());
    }
  }
  void ReopenAll() {
    if (Set().switches) {
      separates_ = !separates_;
    }
    if (num_families_ > 1) {
      ReopenWithColumnFamilies(kFamilies, TestOptions());
    } else {
      Reopen(TestOptions());
    }
  }
  std::vector<ColumnFamilyHandle*> Handles() {
    std::vector<ColumnFamilyHandle*> handles;
    for (size_t family = 0; family < num_families_; ++family) {
      handles.push_back(Handle(static_cast<int>(family)));
    }
    return handles;
  }

  void FlushAll() { ASSERT_OK(db_->Flush(FlushOptions(), Handles())); }
  // Compacts the whole range: delta files are merged and taken into buckets
  // until there is nothing left to do.
  void CollectAll() {
    for (ColumnFamilyHandle* handle : Handles()) {
      ASSERT_OK(ForceCompaction(db_.get(), handle));
    }
  }
  // Merges delta files. No bucket takes them in, as each collection is given up
  // before its edit.
  void MergeAll() {
    SyncPoint* const sync_point = SyncPoint::GetInstance();
    sync_point->SetCallBack(
        "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
        [](void* arg) {
          Status* const s = static_cast<Status*>(arg);
          if (s->ok()) {
            *s = Status::Incomplete("given up by the test");
          }
        });
    sync_point->EnableProcessing();
    for (ColumnFamilyHandle* handle : Handles()) {
      const Status s =
          db_->CompactRange(CompactRangeOptions(), handle, nullptr, nullptr);
      EXPECT_TRUE(s.ok() || s.IsIncomplete()) << s.ToString();
    }
    sync_point->DisableProcessing();
    sync_point->ClearAllCallBacks();
  }
  // True if CompactTree() can name the files of levels, as no other job
  // compacts them.
  bool HasLevelsOfItsOwn() const {
    return !Set().Has("compaction_style", "kCompactionStyleUniversal") &&
           !Set().Has("disable_auto_compactions", "false");
  }
  // Compacts the files of the levels above `level` into it. Lower levels and
  // delta files stay as they are.
  void CompactTree(int level) {
    for (ColumnFamilyHandle* handle : Handles()) {
      if (!HasLevelsOfItsOwn()) {
        const Slice begin("!");
        const Slice end("~");
        ASSERT_OK(
            db_->CompactRange(CompactRangeOptions(), handle, &begin, &end));
        continue;
      }
      ColumnFamilyMetaData meta;
      db_->GetColumnFamilyMetaData(handle, &meta);
      std::vector<std::string> names;
      for (int i = 0; i <= level; ++i) {
        for (const SstFileMetaData& file : meta.levels[i].files) {
          names.push_back(file.name);
        }
      }
      if (!names.empty()) {
        ASSERT_OK(db_->CompactFiles(CompactionOptions(), handle, names, level));
      }
    }
  }

  // ---- Short histories.

  struct View {
    const Snapshot* snapshot;
    size_t position;  // number of writes that it sees
    std::string name;
  };
  struct HeldIterator {
    std::unique_ptr<Iterator> iter;
    size_t family;
    size_t position;
    std::string name;
  };

  std::string KeyOf(size_t history) const { return prefix_ + Fixed(history); }
  size_t FamilyOf(size_t history) const { return history % num_families_; }

  void Log(const std::string& line, bool of_family = false) {
    log_.push_back({line, of_family});
  }
  void LogForAll(const std::string& line) {
    Log(line);
    if (num_families_ > 1) {
      Log(std::string("cf=") + kOther + " " + line);
    }
  }

  std::string WriteLine(size_t history, size_t step) const {
    const std::string value = ValueOf(history, step);
    switch (histories_[history].writes[step]) {
      case KeyWrite::kPut:
        return IsEntity(history, step)
                   ? "entity k _=" + value + " " + kColumn + "=c" + value
                   : "put k " + value;
      case KeyWrite::kDelete:
        return "del k";
      case KeyWrite::kSingleDelete:
        return "singledel k";
      case KeyWrite::kDeleteRange:
        return "delrange k k~";
      case KeyWrite::kMerge:
        return "merge k " + value;
    }
    return "";
  }
  std::vector<std::string> ScriptOf(size_t history) const {
    const std::string family =
        FamilyOf(history) == 0 ? "" : std::string("cf=") + kOther + " ";
    std::vector<std::string> lines = {"open" + Words(first_options_)};
    if (num_families_ > 1) {
      lines.push_back(std::string("family create ") + kOther +
                      Words(first_options_));
    }
    size_t step = 0;
    for (const auto& [line, of_family] : log_) {
      lines.push_back(line.empty() ? family + WriteLine(history, step++)
                                   : (of_family ? family : "") + line);
    }
    return lines;
  }

  void WriteAll(size_t step) {
    Log("");  // stands for the write of each history
    WriteBatch batch;
    for (size_t family = 0; family < num_families_; ++family) {
      ColumnFamilyHandle* const handle = Handle(family);
      for (size_t i = family; i < histories_.size(); i += num_families_) {
        const std::string key = KeyOf(i);
        const std::string value = ValueOf(i, step);
        switch (histories_[i].writes[step]) {
          case KeyWrite::kPut:
            if (IsEntity(i, step)) {
              ASSERT_OK(batch.PutEntity(
                  handle, key,
                  {{kDefaultWideColumnName, value}, {kColumn, "c" + value}}));
            } else {
              ASSERT_OK(batch.Put(handle, key, value));
            }
            break;
          case KeyWrite::kDelete:
            ASSERT_OK(batch.Delete(handle, key));
            break;
          case KeyWrite::kSingleDelete:
            ASSERT_OK(batch.SingleDelete(handle, key));
            break;
          case KeyWrite::kDeleteRange: {
            // Neighbours are deleted one by one, or together.
            std::string last = key;
            if (schedule_ % 2 == 0) {
              while (i + num_families_ < histories_.size() &&
                     histories_[i + num_families_].writes[step] ==
                         KeyWrite::kDeleteRange) {
                i += num_families_;
                last = KeyOf(i);
              }
            }
            ASSERT_OK(batch.DeleteRange(handle, key, last + "~"));
            break;
          }
          case KeyWrite::kMerge:
            ASSERT_OK(batch.Merge(handle, key, value));
            break;
        }
      }
    }
    ASSERT_OK(db_->Write(WriteOptions(), &batch));
  }

  void TakeSnapshot(size_t position) {
    const std::string number = std::to_string(position);
    views_.push_back({db_->GetSnapshot(), position, "s" + number});
    Log("snapshot " + views_.back().name);
    if (schedule_ % 3 == 0) {
      for (size_t family = 0; family < num_families_; ++family) {
        ReadOptions read_options;
        read_options.iterate_lower_bound = &lower_;
        read_options.iterate_upper_bound = &upper_;
        iterators_.push_back({std::unique_ptr<Iterator>(db_->NewIterator(
                                  read_options, Handle(family))),
                              family, position, "i" + number});
      }
      Log("iter i" + number, /*of_family=*/true);
    }
  }
  void ReleaseAll() {
    for (const View& view : views_) {
      Log("release " + view.name);
      db_->ReleaseSnapshot(view.snapshot);
    }
    views_.clear();
    std::string last;
    for (const HeldIterator& held : iterators_) {
      if (held.name != last) {
        Log("close-iter " + held.name);
        last = held.name;
      }
    }
    iterators_.clear();
  }

  // level: target of kCompactTree.
  void Do(Action action, int level) {
    switch (action) {
      case Action::kNone:
        break;
      case Action::kFlush:
        Log(num_families_ > 1 ? "flush all" : "flush");
        FlushAll();
        break;
      case Action::kCompactTree:
        Log(num_families_ > 1 ? "flush all" : "flush");
        FlushAll();
        LogForAll(HasLevelsOfItsOwn()
                      ? "compactlevel 0 " + std::to_string(level)
                      : "compact ! ~");
        CompactTree(level);
        break;
      case Action::kMerge:
        // Approximate: scripts cannot merge without a collection.
        LogForAll("compact");
        MergeAll();
        break;
      case Action::kCollect:
        LogForAll("compact bottommost=force");
        CollectAll();
        break;
      case Action::kReopen: {
        ReleaseAll();
        ReopenAll();
        std::string line = "reopen";
        if (Set().switches) {
          line += std::string(" ") + kSeparation +
                  (separates_ ? "=true" : "=false");
        }
        Log(line);
        break;
      }
    }
  }

  // Reads in all ways, or in some that change from call to call.
  void Check(size_t position, bool all_ways) {
    Log("verify");
    std::vector<View> views = views_;
    views.push_back({nullptr, position, "the tip"});
    for (const View& view : views) {
      ReadOptions read_options;
      read_options.snapshot = view.snapshot;
      const size_t turn = turn_++;
      for (size_t family = 0; family < num_families_; ++family) {
        const ModelContents& contents = contents_[family][view.position];
        for (size_t i = 0; i < std::size(kPointReads); ++i) {
          if (all_ways || turn % std::size(kPointReads) == i) {
            Complain(CheckPoints(db_.get(), Handle(family), read_options,
                                 keys_[family], contents, kPointReads[i]),
                     family, view.name);
          }
        }
        for (const bool backward : {false, true}) {
          if (all_ways || (turn / 4 + turn) % 2 == size_t{backward}) {
            Complain(CheckScan(db_.get(), Handle(family), read_options, lower_,
                               upper_, contents, backward),
                     family, view.name);
          }
        }
        if (failed_) {
          return;
        }
      }
    }
    if (!all_ways) {
      return;
    }
    for (const HeldIterator& held : iterators_) {
      for (const bool backward : {false, true}) {
        Complain(ROCKSDB_NAMESPACE::CheckIterator(
                     held.iter.get(), contents_[held.family][held.position],
                     backward),
                 held.family, "iterator " + held.name);
      }
      Log("first " + held.name);
      Log("last " + held.name);
    }
  }

  // Reports the first finding only.
  void Complain(const Finding& finding, size_t family,
                const std::string& where) {
    if (!finding.has_value() || failed_) {
      return;
    }
    failed_ = true;
    size_t history = family;
    if (finding->key.size() == prefix_.size() + 4) {
      history = static_cast<size_t>(
          std::strtoul(finding->key.c_str() + prefix_.size(), nullptr, 10));
    }
    std::string alone;
    std::string script;
    if (history < histories_.size()) {
      script = ScriptText(ScriptOf(history));
      bool is_script = false;
      alone = RunScript(script, dbname_ + "_alone", &is_script);
    }
    ADD_FAILURE() << "schedule " << schedule_ << ", key " << finding->key
                  << ", " << where << ": " << finding->what
                  << "\nthe history of the key alone, a script:\n"
                  << script << "\nwhich "
                  << (alone.empty() ? "does not fail; other keys have a part "
                                      "in it\n"
                                    : "fails as well:\n" + alone);
  }

  // Returns false if a check has failed.
  bool Goes() const { return !failed_ && !HasFailure(); }

  // Returns prefixes of keys before and after those of the schedule. Many
  // operands of such keys leave no bucket to split, so buckets with the
  // schedule's keys are folded.
  std::pair<std::string, std::string> Ballast() const {
    return {schedule_ == 0 ? "!" : Fixed(schedule_ - 1) + "~~",
            Fixed(schedule_) + "~~"};
  }
  void FillBuckets() {
    const auto [before, after] = Ballast();
    const std::string operand(50, 'b');
    for (int round = 0; round < 2; ++round) {
      for (ColumnFamilyHandle* handle : Handles()) {
        for (size_t i = 0; i < 50; ++i) {
          for (const std::string& where : {before, after}) {
            ASSERT_OK(
                db_->Merge(WriteOptions(), handle, where + Fixed(i), operand));
          }
        }
      }
      CollectAll();
    }
  }

  void RunSchedule(size_t schedule) {
    schedule_ = schedule;
    SCOPED_TRACE("schedule " + std::to_string(schedule));
    log_.clear();
    first_options_ = CurrentList();
    prefix_ = Fixed(schedule);
    end_ = prefix_ + "~";
    lower_ = prefix_;
    upper_ = end_;
    contents_.assign(num_families_, std::vector<ModelContents>(kNumWrites + 1));
    keys_.assign(num_families_, {});
    for (size_t i = 0; i < histories_.size(); ++i) {
      const std::string key = KeyOf(i);
      keys_[FamilyOf(i)].push_back(key);
      for (size_t n = 0; n <= kNumWrites; ++n) {
        if (!histories_[i].states[n].empty()) {
          ModelContents& contents = contents_[FamilyOf(i)][n];
          contents.emplace_hint(contents.end(), key, histories_[i].states[n]);
        }
      }
    }

    const bool folds = Set().Has("delta_max_buckets", "4");
    if (folds) {
      FillBuckets();
    }
    for (size_t step = 0; step < kNumWrites && Goes(); ++step) {
      WriteAll(step);
      Check(step + 1, /*all_ways=*/false);
      if (step < kNumGaps && Goes()) {
        const Gap& gap = kGaps[schedule % kGaps.size()];
        schedule /= kGaps.size();
        if (gap.snapshot) {
          TakeSnapshot(step + 1);
        }
        if (gap.action != Action::kNone) {
          // The outputs of later compactions stay above those of earlier ones.
          Do(gap.action, static_cast<int>(kNumGaps - step));
          if (Goes()) {
            Check(step + 1, /*all_ways=*/false);
          }
        }
      }
    }
    const Action end[] = {Action::kNone, Action::kFlush, Action::kCollect};
    for (const Action action : end) {
      if (Goes()) {
        Do(action, 0);
        Check(kNumWrites, /*all_ways=*/true);
      }
    }
    if (Goes()) {
      for (ColumnFamilyHandle* handle : Handles()) {
        EXPECT_EQ(std::vector<std::string>(), DeltaErrors(db_.get(), handle));
      }
    }
    // The older versions are not needed any more.
    ReleaseAll();
    if (Goes()) {
      Do(Action::kCollect, 0);
      Check(kNumWrites, /*all_ways=*/true);
    }
    if (Goes() && schedule_ % 4 == 0) {
      Do(Action::kReopen, 0);
      Check(kNumWrites, /*all_ways=*/true);
    }
    // The next schedule starts with an empty key range.
    for (ColumnFamilyHandle* handle : Handles()) {
      ASSERT_OK(db_->DeleteRange(WriteOptions(), handle, prefix_, end_));
      if (folds) {
        const auto [before, after] = Ballast();
        ASSERT_OK(
            db_->DeleteRange(WriteOptions(), handle, before, after + "~"));
      }
    }
  }

  const std::shared_ptr<Statistics> statistics_ = CreateDBStatistics();
  bool separates_ = true;
  size_t num_families_ = 1;
  std::vector<History> histories_;

  // State of the running schedule.
  size_t schedule_ = 0;
  std::string prefix_;
  std::string end_;
  Slice lower_;
  Slice upper_;
  OptionList first_options_;
  // By family: the keys, and the contents after the first n writes.
  std::vector<std::vector<std::string>> keys_;
  std::vector<std::vector<ModelContents>> contents_;
  std::vector<View> views_;
  std::vector<HeldIterator> iterators_;
  // Lines of the script, and whether they name the family of the key. An empty
  // line stands for the next write.
  std::vector<std::pair<std::string, bool>> log_;

  size_t turn_ = 0;
  bool failed_ = false;
};

INSTANTIATE_TEST_CASE_P(OptionSets, DBDeltaExhaustiveTest,
                        testing::Range(size_t{0}, OptionSets().size()),
                        [](const testing::TestParamInfo<size_t>& param_info) {
                          return std::string(
                              OptionSets()[param_info.param].name);
                        });

// If STRATA_ALL_HISTORIES is in the environment, all schedules are run under
// all options.
TEST_P(DBDeltaExhaustiveTest, ShortHistoriesReadAsTheModel) {
  histories_ = ShortHistories();
  ASSERT_GT(histories_.size(), 256u);
  size_t num_schedules = 1;
  for (size_t i = 0; i < kNumGaps; ++i) {
    num_schedules *= kGaps.size();
  }
  const bool all = std::getenv("STRATA_ALL_HISTORIES") != nullptr;
  Create(Set().num_families);
  for (size_t schedule = all ? 0 : GetParam() % kStride;
       schedule < num_schedules && Goes(); schedule += all ? 1 : kStride) {
    RunSchedule(schedule);
  }
  if (!Set().options.empty() && Goes()) {
    // The options had the intended effects.
    EXPECT_GT(statistics_->getTickerCount(DELTA_MERGES), 0u);
    EXPECT_GT(statistics_->getTickerCount(DELTA_BUCKETS_COLLECTED), 0u);
    if (Set().Has("delta_max_buckets", "4")) {
      EXPECT_GT(statistics_->getTickerCount(DELTA_OPERANDS_FOLDED), 0u);
    }
    EXPECT_EQ(!Set().Has("delta_cache_size", "0"),
              statistics_->getTickerCount(DELTA_CACHE_HIT) > 0);
  }
}

// A script that fails is shortened before it is printed.
TEST_P(DBDeltaExhaustiveTest, RandomHistoriesReadAsTheModel) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    // Scripts with crashes have no single deletions.
    const std::vector<std::string> lines =
        RandomScript(Set(), seed, /*crashes=*/seed % 2 == 0).Make(250);
    const std::string root = dbname_ + "_script";
    bool is_script = false;
    const std::string wrong = RunScript(ScriptText(lines), root, &is_script);
    ASSERT_TRUE(is_script) << wrong << ScriptText(lines);
    if (!wrong.empty()) {
      const std::vector<std::string> fewer =
          Shrink(lines, RandomScript::kHead, root);
      FAIL() << "seed " << seed << ":\n"
             << wrong << "\nstill wrong, as a script:\n"
             << ScriptText(fewer) << "\n"
             << RunScript(ScriptText(fewer), root, &is_script);
    }
  }
}

// Readers at snapshots, whose contents are known, and readers of a counter
// whose operands count up get right answers while the data is flushed,
// compacted and collected.
TEST_P(DBDeltaExhaustiveTest, ConcurrentReadersSeeTheirSnapshots) {
  struct Published {
    std::unique_ptr<ManagedSnapshot> snapshot;
    std::vector<ModelContents> contents;  // by family
  };
  constexpr char kCounter[] = "~";
  const Slice lower("a");
  const Slice upper("z");
  std::vector<std::string> keys;
  for (char c = 'a'; c < 'g'; ++c) {
    for (char n = '0'; n < '5'; ++n) {
      keys.push_back({c, n});
    }
  }

  std::mutex mutex;  // guards `published` and `error`
  std::deque<std::shared_ptr<const Published>> published;
  std::string error;
  std::atomic<bool> is_over{false};
  // The last number of the counter, and the last one that was put. While a
  // write is running, `started` is above `done`.
  std::atomic<uint64_t> started{0};
  std::atomic<uint64_t> done{0};
  std::atomic<uint64_t> put_started{0};
  std::atomic<uint64_t> put_done{0};

  const auto check_counter = [&]() -> Finding {
    const uint64_t least_first = put_done;
    const uint64_t least_last = done;
    std::string value;
    const Status s = db_->Get(ReadOptions(), Handle(0), kCounter, &value);
    const uint64_t most_last = started;
    const uint64_t most_first = put_started;
    if (!s.ok()) {
      return Wrong{kCounter, s.ToString()};
    }
    uint64_t first = 0;
    uint64_t last = 0;
    bool is_right = true;
    for (const char* at = value.c_str(); *at != '\0';) {
      char* end = nullptr;
      const uint64_t number = std::strtoull(at, &end, 10);
      is_right = is_right && end != at && (first == 0 || number == last + 1);
      first = first == 0 ? number : first;
      last = number;
      if (end == at) {
        break;
      }
      at = *end == ',' ? end + 1 : end;
    }
    if (is_right && least_first <= first && first <= most_first &&
        least_last <= last && last <= most_last) {
      return std::nullopt;
    }
    return Wrong{kCounter, value + " instead of " +
                               std::to_string(least_first) + ".." +
                               std::to_string(most_first) + " to " +
                               std::to_string(least_last) + ".." +
                               std::to_string(most_last)};
  };
  const auto read = [&](uint32_t seed) {
    Random rnd(seed);
    while (!is_over) {
      std::shared_ptr<const Published> view;
      {
        std::lock_guard<std::mutex> lock(mutex);
        view = published[rnd.Uniform(static_cast<int>(published.size()))];
      }
      ReadOptions read_options;
      read_options.snapshot = view->snapshot->snapshot();
      read_options.fill_cache = !rnd.OneIn(4);
      const size_t family = rnd.Uniform(2);
      const ModelContents& contents = view->contents[family];
      Finding finding = check_counter();
      if (!finding.has_value()) {
        finding =
            rnd.OneIn(2)
                ? CheckScan(db_.get(), Handle(family), read_options, lower,
                            upper, contents, rnd.OneIn(2))
                : CheckPoints(db_.get(), Handle(family), read_options, keys,
                              contents, kPointReads[rnd.Uniform(4)]);
      }
      if (finding.has_value()) {
        std::lock_guard<std::mutex> lock(mutex);
        if (error.empty()) {
          error = kFamilies[family] + ", " + finding->key + " at " +
                  std::to_string(read_options.snapshot->GetSequenceNumber()) +
                  ": " + finding->what;
        }
        is_over = true;
      }
    }
  };

  Create(2);
  Random rnd(static_cast<uint32_t>(GetParam()) + 1);
  HistoryModel model;
  for (const std::string& family : kFamilies) {
    model.CreateFamily(family);
  }
  const auto random_key = [&] {
    return keys[rnd.Uniform(static_cast<int>(keys.size()))];
  };
  // Writes a batch.
  const auto write_some = [&](int round) {
    WriteBatch batch;
    HistoryModel::Write write;
    for (uint32_t i = 1 + rnd.Uniform(30); i > 0; --i) {
      const size_t family = rnd.Uniform(2);
      ColumnFamilyHandle* const handle = Handle(family);
      HistoryModel::Op op;
      op.cf = kFamilies[family];
      op.key = random_key();
      const std::string value = std::to_string(round) + "." + std::to_string(i);
      const uint32_t dice = rnd.Uniform(20);
      if (dice < 12) {
        op.kind = HistoryModel::OpKind::kMerge;
        op.columns[""] = value;
        ASSERT_OK(batch.Merge(handle, op.key, value));
      } else if (dice < 16) {
        op.columns[""] = value;
        ASSERT_OK(batch.Put(handle, op.key, value));
      } else if (dice < 17) {
        op.columns[""] = value;
        op.columns[kColumn] = "c" + value;
        ASSERT_OK(batch.PutEntity(
            handle, op.key,
            {{kDefaultWideColumnName, value}, {kColumn, op.columns[kColumn]}}));
      } else if (dice < 19) {
        op.kind = HistoryModel::OpKind::kDelete;
        ASSERT_OK(batch.Delete(handle, op.key));
      } else {
        op.kind = HistoryModel::OpKind::kDeleteRange;
        op.end = std::max(random_key(), op.key + "x");
        ASSERT_OK(batch.DeleteRange(handle, op.key, op.end));
      }
      write.ops.push_back(std::move(op));
    }
    ASSERT_OK(db_->Write(WriteOptions(), &batch));
    model.Append(std::move(write));
  };
  const auto count = [&] {
    const uint64_t number = started + 1;
    started = number;
    if (number % 40 == 1) {
      put_started = number;
      ASSERT_OK(db_->Put(WriteOptions(), Handle(0), kCounter,
                         std::to_string(number)));
      put_done = number;
    } else {
      ASSERT_OK(db_->Merge(WriteOptions(), Handle(0), kCounter,
                           std::to_string(number)));
    }
    done = number;
  };
  const auto publish = [&] {
    auto view = std::make_shared<Published>();
    view->snapshot = std::make_unique<ManagedSnapshot>(db_.get());
    for (const std::string& family : kFamilies) {
      view->contents.push_back(model.Now(family));
    }
    std::shared_ptr<const Published> oldest;  // destroyed without the lock
    std::lock_guard<std::mutex> lock(mutex);
    published.push_back(std::move(view));
    if (published.size() > 4) {
      oldest = std::move(published.front());
      published.pop_front();
    }
  };

  int round = 0;
  for (int life = 0; life < 3 && !HasFailure() && !is_over; ++life) {
    count();
    publish();
    std::vector<std::thread> readers;
    for (uint32_t i = 0; i < 3; ++i) {
      readers.emplace_back(read, 1000 * static_cast<uint32_t>(life) + i + 1);
    }
    for (int i = 0; i < 25 && !is_over && !HasFailure(); ++i, ++round) {
      write_some(round);
      publish();
      for (uint32_t n = rnd.Uniform(10); n > 0; --n) {
        count();
      }
      switch (rnd.Uniform(9)) {
        case 0:
        case 1:
        case 2:
          FlushAll();
          break;
        case 3:
          FlushAll();
          CompactTree(1 + static_cast<int>(rnd.Uniform(3)));
          break;
        case 4:
          CollectAll();
          break;
        case 5:
          MergeAll();
          break;
        default:
          break;
      }
    }
    is_over = true;
    for (std::thread& reader : readers) {
      reader.join();
    }
    published.clear();
    ASSERT_EQ("", error);
    is_over = false;
    ReopenAll();
    for (size_t family = 0; family < kFamilies.size(); ++family) {
      const ModelContents contents = model.Now(kFamilies[family]);
      const Finding finding =
          CheckScan(db_.get(), Handle(family), ReadOptions(), lower, upper,
                    contents, /*backward=*/false);
      ASSERT_FALSE(finding.has_value()) << finding->key << finding->what;
      EXPECT_EQ(std::vector<std::string>(),
                DeltaErrors(db_.get(), Handle(family)));
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  RegisterCustomObjects(argc, argv);
  return RUN_ALL_TESTS();
}
