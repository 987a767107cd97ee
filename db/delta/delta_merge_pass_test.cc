//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_merge_pass.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_merge_pass_test_util.h"
#include "db/delta/delta_store_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/iostats_context.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/statistics.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::Event;
using delta_test::Events;
using delta_test::JoinOperator;
using Type = Event::Type;

namespace {

// Keeps the smaller of two operands.
class MinOperator : public AssociativeMergeOperator {
 public:
  bool Merge(const Slice&, const Slice* existing, const Slice& value,
             std::string* result, Logger*) const override {
    *result = existing == nullptr || value.compare(*existing) < 0
                  ? value.ToString()
                  : existing->ToString();
    return true;
  }
  const char* Name() const override { return "MinOperator"; }
};

class TestFilter : public CompactionFilter {
 public:
  using Rule =
      std::function<Decision(const std::string& key, const std::string& value,
                             std::string* new_value, std::string* skip_until)>;
  explicit TestFilter(Rule rule) : rule_(std::move(rule)) {}

  Decision FilterV2(int, const Slice& key, ValueType type, const Slice& value,
                    std::string* new_value,
                    std::string* skip_until) const override {
    EXPECT_EQ(ValueType::kMergeOperand, type);
    asked_.push_back(value.ToString());
    return rule_(key.ToString(), value.ToString(), new_value, skip_until);
  }
  const char* Name() const override { return "TestFilter"; }

  const Rule rule_;
  mutable std::vector<std::string> asked_;
};

}  // namespace

class DeltaMergePassTest : public delta_test::DeltaStoreTestBase {
 protected:
  using FilePtr = DeltaVersion::FilePtr;

  struct Operand {
    std::string key;
    SequenceNumber seq = 0;
    std::string value;

    bool operator==(const Operand&) const = default;
  };

  // Records the entries that a pass passes on.
  class Recorder : public DeltaMergePass::Sink {
   public:
    Status AddOperand(const ParsedInternalKey& key, const Slice& internal_key,
                      const Slice& value) override {
      EXPECT_EQ(InternalKey(key.user_key, key.sequence, kTypeMerge).Encode(),
                internal_key);
      const Operand operand{key.user_key.ToString(), key.sequence,
                            value.ToString()};
      if (!operands.empty()) {
        const Operand& last = operands.back();
        EXPECT_TRUE(last.key < operand.key ||
                    (last.key == operand.key && last.seq > operand.seq));
      }
      if (!anchors.empty()) {
        EXPECT_LT(anchors.back().key, operand.key);
      }
      operands.push_back(operand);
      return status;
    }
    Status AddAnchor(const Slice& user_key, SequenceNumber seq) override {
      const Event anchor{Type::kAnchor, user_key.ToString(), "", seq};
      if (!anchors.empty()) {
        const Event& last = anchors.back();
        EXPECT_TRUE(last.key < anchor.key ||
                    (last.key == anchor.key && last.seq > anchor.seq));
      }
      if (!operands.empty()) {
        EXPECT_LE(operands.back().key, anchor.key);
      }
      anchors.push_back(anchor);
      return status;
    }
    Status AddRangeAnchor(const Slice& start, const Slice& end,
                          SequenceNumber seq) override {
      const Event range{Type::kRangeAnchor, start.ToString(), end.ToString(),
                        seq};
      EXPECT_LT(range.key, range.end);
      if (!ranges.empty()) {
        const Event& last = ranges.back();
        EXPECT_TRUE(last.key < range.key ||
                    (last.key == range.key && last.seq > range.seq));
      }
      ranges.push_back(range);
      return status;
    }

    // Returns the newest anchor of the key up to read_seq.
    SequenceNumber AnchorOf(const std::string& key,
                            SequenceNumber read_seq) const {
      SequenceNumber newest = 0;
      for (const auto* some : {&anchors, &ranges}) {
        for (const Event& anchor : *some) {
          if (anchor.Covers(key) && anchor.seq <= read_seq) {
            newest = std::max(newest, anchor.seq);
          }
        }
      }
      return newest;
    }

    std::vector<Operand> operands;
    Events anchors;
    Events ranges;
    Status status;
  };

  DeltaMergePassTest() { SetOperator(nullptr); }

  void SetOperator(std::shared_ptr<MergeOperator> merge_operator) {
    options_.merge_operator = std::move(merge_operator);
    ioptions_ = std::make_unique<ImmutableOptions>(options_);
  }

  DeltaMergePass::Context Context(std::vector<SequenceNumber> snapshots = {}) {
    DeltaMergePass::Context context;
    context.store = store_.get();
    context.ioptions = ioptions_.get();
    context.moptions = &moptions_;
    context.snapshots = std::move(snapshots);
    context.env = env_.get();
    return context;
  }

  // Writes each half of the events to a file of operands and a file of anchors;
  // a file without entries is not written.
  void WriteFiles(const Events& events, DeltaMergePass::Input* input) {
    input->operands.clear();
    input->anchors.clear();
    const size_t half = events.size() / 2;
    for (const Events& some : {Events(events.begin(), events.begin() + half),
                               Events(events.begin() + half, events.end())}) {
      for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
        const auto file = WriteFile(kind, Tier::kFlushed, 7, 7, some);
        if (file.has_value()) {
          (kind == Kind::kOperands ? input->operands : input->anchors)
              .push_back(DeltaFileMeta::Create(*file, nullptr));
        }
      }
    }
  }

  // Joins the operands of a key that a reader sees, the oldest first.
  // has_older: another operand, with sequence number 1, is in a file that the
  // pass does not read.
  template <typename Operands, typename KeyOf, typename ValueOf>
  static std::string Join(const Operands& operands, const std::string& key,
                          SequenceNumber anchor, SequenceNumber read_seq,
                          bool has_older, KeyOf key_of, ValueOf value_of) {
    std::map<SequenceNumber, std::string> visible;
    if (has_older && anchor < 1) {
      visible[1] = "older";
    }
    for (const auto& operand : operands) {
      if (key_of(operand) == key && operand.seq <= read_seq &&
          operand.seq > anchor) {
        visible[operand.seq] = value_of(operand);
      }
    }
    std::string joined;
    for (const auto& [seq, value] : visible) {
      joined += (joined.empty() ? "" : ",") + value;
    }
    return joined;
  }
  static std::string Before(const Events& events, const std::string& key,
                            SequenceNumber read_seq, bool has_older) {
    SequenceNumber anchor = 0;
    Events operands;
    for (const Event& event : events) {
      if (event.type == Type::kOperand) {
        operands.push_back(event);
      } else if (event.Covers(key) && event.seq <= read_seq) {
        anchor = std::max(anchor, event.seq);
      }
    }
    return Join(
        operands, key, anchor, read_seq, has_older,
        [](const Event& event) { return event.key; },
        [](const Event& event) { return event.Value(); });
  }
  static std::string After(const Recorder& result, const std::string& key,
                           SequenceNumber read_seq, bool has_older) {
    return Join(
        result.operands, key, result.AnchorOf(key, read_seq), read_seq,
        has_older, [](const Operand& operand) { return operand.key; },
        [](const Operand& operand) { return operand.value; });
  }

  static size_t StripeOf(SequenceNumber seq,
                         const std::vector<SequenceNumber>& snapshots) {
    return std::lower_bound(snapshots.begin(), snapshots.end(), seq) -
           snapshots.begin();
  }

  // Checks that each reader sees the same in the result, and that the result
  // has no superfluous entry.
  static void CheckResult(const Events& events,
                          const std::vector<SequenceNumber>& snapshots,
                          bool has_all_older, bool combines,
                          const std::vector<std::string>& keys,
                          const Recorder& result) {
    std::vector<SequenceNumber> readers = snapshots;
    readers.push_back(kMaxSequenceNumber);
    for (const std::string& key : keys) {
      for (SequenceNumber read_seq : readers) {
        ASSERT_EQ(Before(events, key, read_seq, !has_all_older),
                  After(result, key, read_seq, !has_all_older))
            << key << " at " << read_seq;
      }
    }
    std::map<std::pair<std::string, size_t>, int> num_operands;
    for (const Operand& operand : result.operands) {
      const bool is_seen = std::any_of(
          readers.begin(), readers.end(), [&](SequenceNumber read_seq) {
            return operand.seq <= read_seq &&
                   result.AnchorOf(operand.key, read_seq) < operand.seq;
          });
      ASSERT_TRUE(is_seen) << operand.value;
      const int n =
          ++num_operands[{operand.key, StripeOf(operand.seq, snapshots)}];
      if (combines) {
        ASSERT_EQ(1, n) << operand.value;
      }
      // The sequence number is that of the newest operand, whose value comes
      // last.
      const std::string last = operand.key + "@" + std::to_string(operand.seq);
      ASSERT_GE(operand.value.size(), last.size());
      ASSERT_EQ(last, operand.value.substr(operand.value.size() - last.size()));
    }
    if (has_all_older) {
      ASSERT_TRUE(result.ranges.empty());
      for (const Event& anchor : result.anchors) {
        const bool hides = std::any_of(
            result.operands.begin(), result.operands.end(),
            [&](const Operand& operand) {
              return operand.key == anchor.key && operand.seq <= anchor.seq;
            });
        ASSERT_TRUE(hides) << anchor.Value();
      }
    }
    // In a stripe a key has at most one point anchor, and at most one range
    // anchor, which is older.
    for (const std::string& key : keys) {
      std::map<size_t, SequenceNumber> of_ranges;
      for (const Event& range : result.ranges) {
        if (range.Covers(key)) {
          ASSERT_TRUE(
              of_ranges.emplace(StripeOf(range.seq, snapshots), range.seq)
                  .second);
        }
      }
      std::map<size_t, SequenceNumber> of_key;
      for (const Event& anchor : result.anchors) {
        if (anchor.Covers(key)) {
          const size_t stripe = StripeOf(anchor.seq, snapshots);
          ASSERT_TRUE(of_key.emplace(stripe, anchor.seq).second);
          ASSERT_TRUE(of_ranges.count(stripe) == 0 ||
                      of_ranges[stripe] < anchor.seq);
        }
      }
    }
  }

  // Checks all histories of `length` events of these types, with all sets of
  // snapshots.
  void CheckAllHistories(const std::vector<Event>& types, size_t length,
                         const std::vector<std::string>& keys) {
    std::vector<size_t> history(length);
    for (bool is_last = false; !is_last;) {
      Events events;
      for (size_t i = 0; i < length; ++i) {
        events.push_back(types[history[i]]);
        events.back().seq = 10 * (i + 1);
      }
      DeltaMergePass::Input input;
      WriteFiles(events, &input);
      for (uint32_t set = 0; set < (1u << length); ++set) {
        std::vector<SequenceNumber> snapshots;
        for (size_t i = 0; i < length; ++i) {
          if ((set >> i) & 1) {
            // The snapshot is at an event or between two events.
            snapshots.push_back(10 * (i + 1) + (set % 3 == 0 ? 5 : 0));
          }
        }
        for (const bool has_all_older : {false, true}) {
          for (const auto mode :
               {JoinOperator::Mode::kJoin, JoinOperator::Mode::kNever}) {
            SetOperator(std::make_shared<JoinOperator>(mode));
            DeltaMergePass pass(Context(snapshots));
            Recorder result;
            input.has_all_older = has_all_older;
            ASSERT_OK(pass.Run(input, &result));
            CheckResult(events, snapshots, has_all_older,
                        mode == JoinOperator::Mode::kJoin, keys, result);
            if (HasFatalFailure()) {
              for (const Event& event : events) {
                fprintf(stderr, "%d %s\n", static_cast<int>(event.type),
                        event.Value().c_str());
              }
              return;
            }
            const DeltaMergePass::Stats& stats = pass.stats();
            ASSERT_EQ(stats.operands_read, stats.operands_hidden +
                                               stats.operands_combined +
                                               stats.operands_kept);
            ASSERT_EQ(result.operands.size(), stats.operands_kept);
            ASSERT_EQ(result.anchors.size() + result.ranges.size(),
                      stats.anchors_kept);
          }
        }
      }
      is_last = true;
      for (size_t& type : history) {
        if (++type < types.size()) {
          is_last = false;
          break;
        }
        type = 0;
      }
    }
  }

  Events SomeOperands(const std::string& key, size_t num) {
    Events events;
    for (size_t i = 0; i < num; ++i) {
      events.push_back({Type::kOperand, key, "", ++last_seq_});
    }
    return events;
  }

  MutableCFOptions moptions_;
  std::unique_ptr<ImmutableOptions> ioptions_;
};

TEST_F(DeltaMergePassTest, ReadersSeeTheSameInAllHistoriesOfOneKey) {
  CheckAllHistories({{Type::kOperand, "a", "", 0}, {Type::kAnchor, "a", "", 0}},
                    /*length=*/6, {"a"});
  CheckAllHistories({{Type::kOperand, "a", "", 0},
                     {Type::kAnchor, "a", "", 0},
                     {Type::kRangeAnchor, "a", "b", 0}},
                    /*length=*/4, {"a", "aa", "b"});
}

TEST_F(DeltaMergePassTest, ReadersSeeTheSameInAllHistoriesOfTwoKeys) {
  CheckAllHistories({{Type::kOperand, "a", "", 0},
                     {Type::kOperand, "b", "", 0},
                     {Type::kAnchor, "b", "", 0},
                     {Type::kRangeAnchor, "a", "b", 0},
                     {Type::kRangeAnchor, "a", "c", 0}},
                    /*length=*/4, {"a", "aa", "b", "bb", "c"});
}

TEST_F(DeltaMergePassTest, ReadersSeeTheSameInRandomHistories) {
  std::vector<std::string> keys;
  for (char c = 'a'; c < 'k'; ++c) {
    keys.emplace_back(1, c);
    keys.emplace_back(2, c);  // never has an operand
  }
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random rnd(seed);
    Events events;
    for (SequenceNumber seq = 10; seq < 10 + 10 * 60; seq += 10) {
      const std::string key(1, static_cast<char>('a' + rnd.Uniform(10)));
      Event event{Type::kOperand, key, "", seq};
      if (rnd.OneIn(4)) {
        event.type = Type::kAnchor;
      } else if (rnd.OneIn(8)) {
        event.type = Type::kRangeAnchor;
        event.end = std::string(1 + rnd.Uniform(2),
                                static_cast<char>(key[0] + 1 + rnd.Uniform(3)));
      }
      events.push_back(event);
    }
    std::vector<SequenceNumber> snapshots;
    for (uint32_t n = rnd.Uniform(6); n > 0; --n) {
      snapshots.push_back(5 + rnd.Uniform(600));
    }
    std::sort(snapshots.begin(), snapshots.end());
    const auto mode = rnd.OneIn(3)   ? JoinOperator::Mode::kNever
                      : rnd.OneIn(2) ? JoinOperator::Mode::kNotWithB
                                     : JoinOperator::Mode::kJoin;
    SetOperator(std::make_shared<JoinOperator>(mode));
    DeltaMergePass::Input input;
    WriteFiles(events, &input);
    for (const bool has_all_older : {false, true}) {
      input.has_all_older = has_all_older;
      Recorder at_once;
      ASSERT_OK(DeltaMergePass(Context(snapshots)).Run(input, &at_once));
      CheckResult(events, snapshots, has_all_older,
                  mode == JoinOperator::Mode::kJoin, keys, at_once);
      // Several passes over parts of the range give the same result.
      DeltaMergePass pass(Context(snapshots));
      std::vector<std::string> bounds{"c", "d", "dd", "h"};
      Recorder in_pieces;
      DeltaMergePass::Input piece = input;
      for (size_t i = 0; i <= bounds.size(); ++i) {
        piece.has_begin = i > 0;
        piece.begin = i > 0 ? bounds[i - 1] : "";
        piece.has_end = i < bounds.size();
        piece.end = i < bounds.size() ? bounds[i] : "";
        Recorder part;
        ASSERT_OK(pass.Run(piece, &part));
        for (const auto* some : {&part.anchors, &part.ranges}) {
          for (const Event& anchor : *some) {
            ASSERT_TRUE(!piece.has_begin || anchor.key >= piece.begin);
            ASSERT_TRUE(!piece.has_end || anchor.key < piece.end);
            ASSERT_TRUE(!piece.has_end || anchor.end <= piece.end);
          }
        }
        in_pieces.operands.insert(in_pieces.operands.end(),
                                  part.operands.begin(), part.operands.end());
        in_pieces.anchors.insert(in_pieces.anchors.end(), part.anchors.begin(),
                                 part.anchors.end());
        in_pieces.ranges.insert(in_pieces.ranges.end(), part.ranges.begin(),
                                part.ranges.end());
      }
      CheckResult(events, snapshots, has_all_older,
                  mode == JoinOperator::Mode::kJoin, keys, in_pieces);
      ASSERT_TRUE(at_once.operands == in_pieces.operands);
      ASSERT_EQ(at_once.anchors.size(), in_pieces.anchors.size());
      if (HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST_F(DeltaMergePassTest, KeepsOperandsWithoutAMergeOperator) {
  DeltaMergePass::Input input;
  WriteFiles(SomeOperands("a", 10), &input);
  Recorder result;
  ASSERT_OK(DeltaMergePass(Context()).Run(input, &result));
  ASSERT_EQ(10u, result.operands.size());
}

TEST_F(DeltaMergePassTest, CombinesASingleOperandOnlyIfAllowed) {
  DeltaMergePass::Input input;
  WriteFiles(SomeOperands("a", 1), &input);
  for (const bool allow : {false, true}) {
    const auto merge_operator =
        std::make_shared<JoinOperator>(JoinOperator::Mode::kJoin);
    merge_operator->allow_single_ = allow;
    SetOperator(merge_operator);
    Recorder result;
    ASSERT_OK(DeltaMergePass(Context()).Run(input, &result));
    ASSERT_EQ(1u, result.operands.size());
    ASSERT_EQ(allow ? 1u : 0u, merge_operator->calls_);
  }
}

// Many operands of one key are combined in batches of limited size.
TEST_F(DeltaMergePassTest, CombinesManyOperandsInBatches) {
  constexpr size_t kNum = 20000;
  constexpr size_t kBatch = 4096;
  const Events events = SomeOperands("k", kNum);
  DeltaMergePass::Input input;
  WriteFiles(events, &input);
  for (const auto mode :
       {JoinOperator::Mode::kJoin, JoinOperator::Mode::kNever}) {
    const auto merge_operator = std::make_shared<JoinOperator>(mode);
    SetOperator(merge_operator);
    DeltaMergePass::Context context = Context();
    context.max_batch_bytes = kBatch;
    DeltaMergePass pass(context);
    Recorder result;
    ASSERT_OK(pass.Run(input, &result));
    ASSERT_EQ(Before(events, "k", kMaxSequenceNumber, false),
              After(result, "k", kMaxSequenceNumber, false));
    ASSERT_LE(merge_operator->max_size_, kBatch);
    ASSERT_EQ(kNum, pass.stats().operands_read);
    ASSERT_EQ(kNum,
              pass.stats().operands_combined + pass.stats().operands_kept);
    if (mode == JoinOperator::Mode::kJoin) {
      // A result that exceeds half of a batch is not combined any further, so
      // several results are left.
      ASSERT_LT(result.operands.size(), kNum / 10);
      ASSERT_GT(result.operands.size(), 10u);
    } else {
      ASSERT_EQ(kNum, result.operands.size());
    }
  }

  // The results stay small, so a single operand is left.
  SetOperator(std::make_shared<MinOperator>());
  DeltaMergePass::Context context = Context();
  context.max_batch_bytes = kBatch;
  Recorder result;
  ASSERT_OK(DeltaMergePass(context).Run(input, &result));
  ASSERT_EQ(1u, result.operands.size());
  ASSERT_EQ((Operand{"k", kNum, "k@1"}), result.operands.front());
}

// Only the range of the pass is read from a large file.
TEST_F(DeltaMergePassTest, ReadsOnlyItsRange) {
  Events events;
  SequenceNumber seq = 0;
  for (int i = 100000; i < 150000; ++i) {
    events.push_back({Type::kOperand, "k" + std::to_string(i), "", ++seq});
  }
  DeltaMergePass::Input input;
  WriteFiles(events, &input);
  DeltaMergePass::Context context = Context();
  context.read_options.readahead_size = size_t{2} << 20;
  const auto read = [&](const std::string& begin, const std::string& end,
                        size_t num_expected) {
    input.begin = begin;
    input.has_begin = !begin.empty();
    input.end = end;
    input.has_end = !end.empty();
    Recorder result;
    const uint64_t before = get_iostats_context()->bytes_read;
    EXPECT_OK(DeltaMergePass(context).Run(input, &result));
    EXPECT_EQ(num_expected, result.operands.size());
    return get_iostats_context()->bytes_read - before;
  };
  // The first pass opens the files and shows how many bytes there are.
  const uint64_t all = read("", "", 50000);
  ASSERT_GT(all, 1000000);
  constexpr uint64_t kSome = 50000;
  EXPECT_LT(read("k120000", "k120100", 100), kSome);
  EXPECT_LT(read("k149900", "", 100), kSome);
  EXPECT_LT(read("", "k100100", 100), kSome);
  EXPECT_LT(read("k120000", "k120001", 1), kSome);
}

// The files of a pass share the memory of readahead_size.
TEST_F(DeltaMergePassTest, FilesShareTheReadahead) {
  constexpr size_t kReadahead = size_t{512} << 10;
  options_.statistics = CreateDBStatistics();
  // Without direct reads the operating system would read ahead.
  options_.use_direct_reads = true;
  ResetStore();
  DeltaMergePass::Input input;
  uint64_t size = 0;
  SequenceNumber seq = 0;
  constexpr int kNumFiles = 4;
  for (int n = 0; n < kNumFiles; ++n) {
    Events events;
    for (int i = 100000; i < 125000; ++i) {
      events.push_back({Type::kOperand, "k" + std::to_string(i), "", ++seq});
    }
    const auto file = WriteFile(Kind::kOperands, Tier::kFlushed, 7, 7, events);
    ASSERT_TRUE(file.has_value());
    ASSERT_GT(file->size, kReadahead);
    size += file->size;
    input.operands.push_back(DeltaFileMeta::Create(*file, nullptr));
  }
  const auto reads = [&](size_t readahead) {
    DeltaMergePass::Context context = Context();
    context.read_options.readahead_size = readahead;
    Recorder result;
    HistogramData data;
    options_.statistics->histogramData(SST_READ_MICROS, &data);
    const uint64_t before = data.count;
    EXPECT_OK(DeltaMergePass(context).Run(input, &result));
    options_.statistics->histogramData(SST_READ_MICROS, &data);
    return data.count - before;
  };
  reads(kReadahead);  // opens the files
  const uint64_t expected = size / (kReadahead / kNumFiles);
  ASSERT_GE(reads(kReadahead), expected);
  ASSERT_LE(reads(kReadahead), 2 * expected);
  // The share of a file is at least kMinReadahead.
  ASSERT_LE(reads(DeltaMergePass::kMinReadahead),
            2 * size / DeltaMergePass::kMinReadahead);
  // With enough memory a file is read at once.
  ASSERT_LE(reads(2 * size), 2 * kNumFiles);
}

TEST_F(DeltaMergePassTest, CombinesOperandsBesideLargeOnes) {
  // Some operands are larger than a batch and lie between small ones.
  std::vector<Operand> operands;
  const auto builder = NewBuilder(Kind::kOperands);
  for (SequenceNumber seq = 30; seq > 0; --seq) {
    const std::string value(seq % 5 == 0 ? 10000 : 10,
                            static_cast<char>('a' + seq % 26));
    operands.push_back({"k", seq, value});
    ASSERT_OK(
        builder->AddOperand(InternalKey("k", seq, kTypeMerge).Encode(), value));
  }
  DeltaFileDescription description;
  ASSERT_OK(builder->Finish(&description));
  DeltaMergePass::Input input;
  input.operands.push_back(DeltaFileMeta::Create(description, nullptr));
  for (const size_t batch : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
    SetOperator(std::make_shared<JoinOperator>(JoinOperator::Mode::kJoin));
    DeltaMergePass::Context context = Context({12, 20});
    context.max_batch_bytes = batch;
    Recorder result;
    ASSERT_OK(DeltaMergePass(context).Run(input, &result));
    for (SequenceNumber read_seq : {12, 20, 100}) {
      const auto key_of = [](const Operand& operand) { return operand.key; };
      const auto value_of = [](const Operand& operand) {
        return operand.value;
      };
      ASSERT_EQ(
          Join(operands, "k", 0, read_seq, false, key_of, value_of),
          Join(result.operands, "k", 0, read_seq, false, key_of, value_of));
    }
    ASSERT_EQ(batch == 1      ? 30u
              : batch == 1000 ? 9u
                              : 3u,
              result.operands.size());
  }
}

TEST_F(DeltaMergePassTest, FilterIsNotAskedAboutHiddenOrHeldOperands) {
  const Events events = {
      {Type::kOperand, "a", "", 10}, {Type::kOperand, "a", "", 20},
      {Type::kOperand, "b", "", 30}, {Type::kAnchor, "b", "", 40},
      {Type::kOperand, "b", "", 50}, {Type::kOperand, "c", "", 60},
  };
  DeltaMergePass::Input input;
  WriteFiles(events, &input);
  using Decision = CompactionFilter::Decision;
  const TestFilter filter([](const std::string&, const std::string& value,
                             std::string* new_value, std::string*) {
    if (value == "a@10" || value == "b@50") {
      return Decision::kRemove;
    }
    if (value == "c@60") {
      *new_value = "changed";
      return Decision::kChangeValue;
    }
    return Decision::kKeep;
  });
  DeltaMergePass::Context context = Context();
  context.filter = &filter;
  {
    DeltaMergePass pass(context);
    Recorder result;
    ASSERT_OK(pass.Run(input, &result));
    ASSERT_EQ((std::vector<Operand>{{"a", 20, "a@20"}, {"c", 60, "changed"}}),
              result.operands);
    // The filter is not asked about hidden operands.
    ASSERT_EQ((std::vector<std::string>{"a@20", "a@10", "b@50", "c@60"}),
              filter.asked_);
    ASSERT_EQ(2u, pass.stats().operands_filtered);
    ASSERT_TRUE(pass.stats().filter_changed);
  }
  // The filter is not asked about operands that a user's snapshot sees. Other
  // snapshots, which are listed for future readers, do not matter.
  filter.asked_.clear();
  context.snapshots = {20, 55};
  context.latest_listed_snapshot = 20;
  {
    DeltaMergePass pass(context);
    Recorder result;
    ASSERT_OK(pass.Run(input, &result));
    ASSERT_EQ((std::vector<Operand>{
                  {"a", 20, "a@20"}, {"a", 10, "a@10"}, {"c", 60, "changed"}}),
              result.operands);
    ASSERT_EQ((std::vector<std::string>{"b@50", "c@60"}), filter.asked_);
  }
  // An operand that the filter keeps is no change.
  const TestFilter keep([](const std::string&, const std::string&, std::string*,
                           std::string*) { return Decision::kKeep; });
  context.filter = &keep;
  {
    DeltaMergePass pass(context);
    Recorder result;
    ASSERT_OK(pass.Run(input, &result));
    ASSERT_FALSE(pass.stats().filter_changed);
    ASSERT_EQ(0u, pass.stats().operands_filtered);
  }
}

TEST_F(DeltaMergePassTest, FilterMaySkipKeys) {
  Events events;
  SequenceNumber seq = 0;
  for (char c = 'a'; c < 'i'; ++c) {
    events.push_back({Type::kOperand, std::string(1, c), "", ++seq});
    events.push_back({Type::kOperand, std::string(1, c), "", ++seq});
  }
  events.push_back({Type::kAnchor, "d", "", ++seq});
  DeltaMergePass::Input input;
  WriteFiles(events, &input);
  using Decision = CompactionFilter::Decision;
  const TestFilter filter([](const std::string& key, const std::string& value,
                             std::string*, std::string* skip_until) {
    if (key == "b" && value != "b@4") {
      *skip_until = "f";
      return Decision::kRemoveAndSkipUntil;
    }
    if (key == "g") {
      *skip_until = key;  // skips nothing
      return Decision::kRemoveAndSkipUntil;
    }
    return Decision::kKeep;
  });
  const auto keys_of = [](const Recorder& result) {
    std::string keys;
    for (const Operand& operand : result.operands) {
      keys += operand.key;
    }
    return keys;
  };
  DeltaMergePass::Context context = Context();
  context.filter = &filter;
  {
    DeltaMergePass pass(context);
    Recorder result;
    ASSERT_OK(pass.Run(input, &result));
    ASSERT_EQ("aaffgghh", keys_of(result));
    // The anchor is kept, as there may be older operands in other files.
    ASSERT_EQ(1u, result.anchors.size());
    ASSERT_TRUE(pass.stats().filter_changed);
  }
  // The skipped keys extend beyond the range of one Run().
  input.has_all_older = true;
  {
    DeltaMergePass pass(context);
    Recorder result;
    input.has_end = true;
    input.end = "c";
    ASSERT_OK(pass.Run(input, &result));
    input.has_begin = true;
    input.begin = "c";
    input.end = "e";
    const uint64_t operands_read = pass.stats().operands_read;
    ASSERT_OK(pass.Run(input, &result));
    // The second range has operands, all of which are dropped.
    ASSERT_LT(operands_read, pass.stats().operands_read);
    input.begin = "e";
    input.has_end = false;
    ASSERT_OK(pass.Run(input, &result));
    ASSERT_EQ("aaffgghh", keys_of(result));
    ASSERT_TRUE(result.anchors.empty());
  }
  // As in a compaction, operands are skipped even if snapshots see them. Only
  // the operand about which the filter is asked must be above the snapshots.
  input = DeltaMergePass::Input();
  WriteFiles(events, &input);
  context.snapshots = {2};
  {
    Recorder result;
    ASSERT_OK(DeltaMergePass(context).Run(input, &result));
    ASSERT_EQ("aaffgghh", keys_of(result));
  }
  context.snapshots = {100};
  {
    Recorder result;
    ASSERT_OK(DeltaMergePass(context).Run(input, &result));
    ASSERT_EQ("aabbcceeffgghh", keys_of(result));  // d is hidden
  }
}

// A second copy of an anchor is dropped, and so is an anchor with sequence
// number 0, which hides nothing.
TEST_F(DeltaMergePassTest, DropsRedundantAnchors) {
  DeltaMergePass::Input input;
  WriteFiles({{Type::kOperand, "a", "", 10}, {Type::kOperand, "b", "", 11}},
             &input);
  for (int i = 0; i < 2; ++i) {
    input.anchors.push_back(DeltaFileMeta::Create(
        WriteAnchors({{"a", 20}, {"a", 0}, {"c", 0}}, {{"a", "z", 0}}),
        nullptr));
  }
  for (const bool has_all_older : {false, true}) {
    input.has_all_older = has_all_older;
    Recorder result;
    ASSERT_OK(DeltaMergePass(Context({5})).Run(input, &result));
    ASSERT_EQ((std::vector<Operand>{{"b", 11, "b@11"}}), result.operands);
    ASSERT_EQ(has_all_older ? 0u : 1u, result.anchors.size());
    ASSERT_TRUE(result.ranges.empty());
  }
}

// A pass seeks over the anchors of keys that have no operands.
TEST_F(DeltaMergePassTest, SkipsAnchorsOfKeysWithoutOperands) {
  std::vector<delta_test::Anchor> anchors;
  for (int i = 0; i < 5000; ++i) {
    anchors.push_back({"k" + std::to_string(10000 + i), 100});
  }
  DeltaMergePass::Input input;
  WriteFiles({{Type::kOperand, "k10002", "", 10},
              {Type::kOperand, "k12000", "", 11},
              {Type::kOperand, "k12001x", "", 12},
              {Type::kOperand, "z", "", 13}},
             &input);
  input.anchors.push_back(
      DeltaFileMeta::Create(WriteAnchors(anchors, {}), nullptr));
  input.has_all_older = true;
  DeltaMergePass pass(Context({15}));
  Recorder result;
  ASSERT_OK(pass.Run(input, &result));
  ASSERT_EQ(4u, result.operands.size());
  ASSERT_EQ(2u, result.anchors.size());
  ASSERT_LT(pass.stats().anchors_read, 100u);
  // Without operands no anchor is read.
  input.operands.clear();
  const uint64_t anchors_read = pass.stats().anchors_read;
  ASSERT_OK(pass.Run(input, &result));
  ASSERT_EQ(anchors_read, pass.stats().anchors_read);
}

TEST_F(DeltaMergePassTest, DuplicateOperandIsCorruption) {
  const Events events = {{Type::kOperand, "a", "", 10}};
  DeltaMergePass::Input input;
  for (int i = 0; i < 2; ++i) {
    const auto file = WriteFile(Kind::kOperands, Tier::kFlushed, 7, 7, events);
    input.operands.push_back(DeltaFileMeta::Create(*file, nullptr));
  }
  Recorder result;
  const Status s = DeltaMergePass(Context()).Run(input, &result);
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  ASSERT_NE(std::string::npos, s.ToString().find(".delta")) << s.ToString();
}

TEST_F(DeltaMergePassTest, DamagedOrMissingFileFailsThePass) {
  Events events = SomeOperands("a", 500);
  for (SequenceNumber seq = 1; seq < 500; ++seq) {
    events.push_back(
        {Type::kAnchor, "b" + std::to_string(1000 + seq), "", last_seq_ + seq});
  }
  for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
    const auto file = WriteFile(kind, Tier::kFlushed, 7, 7, events);
    ASSERT_TRUE(file.has_value());
    const std::string name = FileName(*file);
    std::string contents;
    ASSERT_OK(ReadFileToString(env_.get(), name, &contents));
    for (const size_t offset : {size_t{100}, size_t{5000}}) {
      std::string damaged = contents;
      damaged[offset] = static_cast<char>(damaged[offset] ^ 1);
      ASSERT_OK(WriteStringToFile(env_.get(), damaged, name));
      ResetStore();  // no block of it is cached
      DeltaMergePass::Input input;
      (kind == Kind::kOperands ? input.operands : input.anchors)
          .push_back(DeltaFileMeta::Create(*file, nullptr));
      Recorder result;
      const Status s = DeltaMergePass(Context()).Run(input, &result);
      ASSERT_TRUE(s.IsCorruption()) << s.ToString();
      ASSERT_NE(std::string::npos, s.ToString().find(name)) << s.ToString();
    }
    ASSERT_OK(env_->DeleteFile(name));
    DeltaMergePass::Input input;
    (kind == Kind::kOperands ? input.operands : input.anchors)
        .push_back(DeltaFileMeta::Create(*file, nullptr));
    Recorder result;
    ASSERT_NOK(DeltaMergePass(Context()).Run(input, &result));
  }
}

TEST_F(DeltaMergePassTest, FailureOfTheSinkEndsThePass) {
  DeltaMergePass::Input input;
  WriteFiles({{Type::kOperand, "a", "", 10},
              {Type::kAnchor, "c", "", 20},
              {Type::kRangeAnchor, "b", "c", 30}},
             &input);
  for (int kind = 0; kind < 3; ++kind) {
    DeltaMergePass::Input some;
    some.operands = kind == 0 ? input.operands : some.operands;
    some.anchors = kind == 1 ? input.anchors : some.anchors;
    Recorder result;
    result.status = Status::IOError("no space");
    const Status s =
        DeltaMergePass(Context()).Run(kind == 2 ? input : some, &result);
    ASSERT_TRUE(s.IsIOError()) << s.ToString();
    ASSERT_EQ(1u, result.operands.size() + result.anchors.size() +
                      result.ranges.size());
  }
}

TEST_F(DeltaMergePassTest, CheckAndShutdownEndThePass) {
  const Events events = SomeOperands("a", 3000);
  DeltaMergePass::Input input;
  WriteFiles(events, &input);
  for (const int at : {1, 2, 5}) {
    DeltaMergePass::Context context = Context();
    int num = 0;
    context.check = [&num, at] {
      return ++num == at ? Status::Aborted("by the test") : Status::OK();
    };
    Recorder result;
    const Status s = DeltaMergePass(context).Run(input, &result);
    ASSERT_TRUE(s.IsAborted()) << s.ToString();
    ASSERT_EQ(at, num);
    ASSERT_LT(result.operands.size(), events.size());
  }
  DeltaMergePass::Context context = Context();
  const std::atomic<bool> shutting_down{true};
  context.shutting_down = &shutting_down;
  Recorder result;
  const Status s = DeltaMergePass(context).Run(input, &result);
  ASSERT_TRUE(s.IsShutdownInProgress()) << s.ToString();
  ASSERT_TRUE(result.operands.empty());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
