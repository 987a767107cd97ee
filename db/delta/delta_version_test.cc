//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_version.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_edit_test_util.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using VersionPtr = std::shared_ptr<const DeltaVersion>;
using File = DeltaFileDescription;

// The order of lower bounds: an empty one is below all keys.
struct BoundLess {
  const Comparator* ucmp;
  bool operator()(const std::string& a, const std::string& b) const {
    return !b.empty() && (a.empty() || ucmp->Compare(a, b) < 0);
  }
};

// A simple model of the state, as described in docs/formats.md.
struct Model {
  using Buckets = std::map<std::string, DeltaBucketState, BoundLess>;

  explicit Model(const Comparator* _ucmp)
      : ucmp(_ucmp), buckets(BoundLess{_ucmp}) {}

  bool IsMerged(uint64_t epoch) const {
    return std::any_of(files.begin(), files.end(), [epoch](const auto& entry) {
      return entry.second.tier == DeltaTier::kMerged &&
             entry.second.last_epoch == epoch;
    });
  }

  void AddFiles(const DeltaEdit& edit, DeltaTier tier) {
    for (const File& file : edit.files()) {
      if (file.tier == tier) {
        files.emplace(file.number, file);
      }
    }
  }

  // Returns the buckets of a range of lower bounds.
  std::pair<Buckets::iterator, Buckets::iterator> Range(
      const DeltaEdit::KeyRange& range) {
    return {buckets.lower_bound(range.begin),
            range.end.has_value() ? buckets.lower_bound(*range.end)
                                  : buckets.end()};
  }

  // REQUIRES: the edit is legal.
  void Apply(const DeltaEdit& edit) {
    AddFiles(edit, DeltaTier::kFlushed);
    AddFiles(edit, DeltaTier::kSorted);
    if (edit.merge_recent().has_value()) {
      std::erase_if(files, [&](const auto& entry) {
        return entry.second.tier == DeltaTier::kFlushed &&
               entry.second.last_epoch <= edit.merge_recent()->last_epoch;
      });
    }
    AddFiles(edit, DeltaTier::kMerged);
    for (const auto& replace : edit.replace_buckets()) {
      const auto [begin, end] = Range(replace.range);
      buckets.erase(begin, end);
      for (const DeltaBucket& bucket : replace.buckets) {
        buckets[bucket.lower_bound] = bucket.state;
      }
    }
    for (const auto& raise : edit.raise_floors()) {
      const auto [begin, end] = Range(raise.range);
      for (auto it = begin; it != end; ++it) {
        it->second.floor = raise.epoch;
      }
    }

    std::set<uint64_t> named;
    uint64_t min_floor = UINT64_MAX;
    for (const auto& [bound, state] : buckets) {
      named.insert(state.extent_number);
      named.insert(state.anchors_number);
      min_floor = std::min(min_floor, state.floor);
    }
    std::erase_if(files, [&](const auto& entry) {
      const File& file = entry.second;
      return file.tier == DeltaTier::kSorted
                 ? named.count(file.number) == 0
                 : !buckets.empty() && file.last_epoch <= min_floor;
    });
    const bool has_recent =
        std::any_of(files.begin(), files.end(), [](const auto& entry) {
          return entry.second.tier != DeltaTier::kSorted;
        });
    const bool has_extent = std::any_of(
        buckets.begin(), buckets.end(),
        [](const auto& entry) { return entry.second.extent_bytes != 0; });
    if (edit.drop_unused_buckets() && !has_recent && !has_extent) {
      files.clear();
      buckets.clear();
    }
  }

  std::vector<uint64_t> Recent(DeltaKind kind, uint64_t floor) const {
    std::vector<const File*> recent;
    for (const auto& [number, file] : files) {
      if (file.tier != DeltaTier::kSorted && file.kind == kind &&
          file.last_epoch > floor) {
        recent.push_back(&file);
      }
    }
    std::sort(recent.begin(), recent.end(), [](const File* a, const File* b) {
      return std::make_pair(a->last_epoch, a->number) >
             std::make_pair(b->last_epoch, b->number);
    });
    std::vector<uint64_t> numbers;
    for (const File* file : recent) {
      numbers.push_back(file->number);
    }
    return numbers;
  }

  uint64_t FloorOf(const std::string& key) const {
    if (buckets.empty()) {
      return 0;
    }
    return std::prev(buckets.upper_bound(key))->second.floor;
  }

  bool Overlaps(const std::string* begin, const std::string* end) const {
    // Returns true if the bucket at `it` has keys in [*low, *high].
    const auto meets = [this](Buckets::const_iterator it,
                              const std::string* low, const std::string* high) {
      const auto next = std::next(it);
      return (high == nullptr || it->first.empty() ||
              ucmp->Compare(it->first, *high) <= 0) &&
             (low == nullptr || next == buckets.end() ||
              ucmp->Compare(next->first, *low) > 0);
    };
    for (auto it = buckets.begin(); it != buckets.end(); ++it) {
      if (it->second.extent_bytes != 0 && meets(it, begin, end)) {
        return true;
      }
    }
    for (const auto& [number, file] : files) {
      if (file.tier == DeltaTier::kSorted ||
          file.kind != DeltaKind::kOperands ||
          (begin != nullptr && ucmp->Compare(file.largest, *begin) < 0) ||
          (end != nullptr && ucmp->Compare(file.smallest, *end) > 0)) {
        continue;
      }
      bool seen = buckets.empty();
      for (auto it = buckets.begin(); it != buckets.end(); ++it) {
        seen |= it->second.floor < file.last_epoch && meets(it, begin, end) &&
                meets(it, &file.smallest, &file.largest);
      }
      if (seen) {
        return true;
      }
    }
    return false;
  }

  const Comparator* ucmp;
  std::map<uint64_t, File> files;
  Buckets buckets;
};

// Makes a sequence of legal edits.
class History {
 public:
  History(uint32_t seed, const Comparator* ucmp) : rnd_(seed), model_(ucmp) {}

  const Model& model() const { return model_; }

  std::string RandomKey() {
    char key[8];
    snprintf(key, sizeof(key), "%03d", static_cast<int>(rnd_.Uniform(400)));
    return key;
  }

  DeltaEdit Next() {
    DeltaEdit edit;
    while (edit.Empty()) {
      if (rnd_.OneIn(4)) {
        // A flush begins. Until it ends no merge goes beyond its epoch.
        running_.push_back(next_number_++);
      }
      if (rnd_.OneIn(25)) {
        Drain(&edit);
        continue;
      }
      // Later operations of an edit see the earlier ones.
      Model before = model_;
      if (rnd_.OneIn(2)) {
        Flush(&edit);
      }
      if (rnd_.OneIn(4)) {
        Merge(&edit);
      }
      for (int n = rnd_.Uniform(3); n > 0 && rnd_.OneIn(2); --n) {
        Replace(&edit);
      }
      if (rnd_.OneIn(4)) {
        Raise(&edit);
      }
      if (rnd_.OneIn(10)) {
        edit.SetDropUnusedBuckets();
      }
      model_ = std::move(before);
    }
    model_.Apply(edit);
    new_sorted_.clear();
    return edit;
  }

 private:
  File NewFile(DeltaKind kind, DeltaTier tier, uint64_t first, uint64_t last) {
    std::string smallest = RandomKey();
    std::string largest = RandomKey();
    if (model_.ucmp->Compare(smallest, largest) > 0) {
      std::swap(smallest, largest);
    }
    return MakeDeltaFile(next_number_++, kind, tier, first, last, smallest,
                         largest);
  }

  void Flush(DeltaEdit* edit) {
    uint64_t epoch = 0;
    if (!running_.empty() && rnd_.OneIn(2)) {
      const size_t which = rnd_.Uniform(static_cast<int>(running_.size()));
      epoch = running_[which];
      running_.erase(running_.begin() + which);
    } else {
      epoch = next_number_++;
    }
    const int kinds = 1 + rnd_.Uniform(3);
    for (DeltaKind kind : {DeltaKind::kOperands, DeltaKind::kAnchors}) {
      if ((kinds & static_cast<int>(kind)) != 0) {
        edit->AddFile(NewFile(kind, DeltaTier::kFlushed, epoch, epoch));
      }
    }
    model_.AddFiles(*edit, DeltaTier::kFlushed);
  }

  // Merges up to a random epoch below all running flushes, or up to the last
  // such epoch.
  void Merge(DeltaEdit* edit, bool drop_all = false) {
    const uint64_t limit =
        running_.empty() ? next_number_
                         : *std::min_element(running_.begin(), running_.end());
    std::vector<uint64_t> epochs;
    for (const auto& [number, file] : model_.files) {
      if (file.tier == DeltaTier::kFlushed && file.last_epoch < limit) {
        epochs.push_back(file.last_epoch);
      }
    }
    if (epochs.empty()) {
      return;
    }
    const uint64_t last =
        drop_all || rnd_.OneIn(3)
            ? limit - 1
            : epochs[rnd_.Uniform(static_cast<int>(epochs.size()))];
    std::erase_if(epochs, [last](uint64_t epoch) { return epoch > last; });
    const auto [first, newest] =
        std::minmax_element(epochs.begin(), epochs.end());
    const uint64_t last_epoch = rnd_.OneIn(2) ? *newest : last;
    const int kinds = drop_all ? 0 : rnd_.Uniform(4);
    for (DeltaKind kind : {DeltaKind::kOperands, DeltaKind::kAnchors}) {
      if ((kinds & static_cast<int>(kind)) != 0) {
        edit->AddFile(NewFile(kind, DeltaTier::kMerged, *first, last_epoch));
      }
    }
    edit->SetMergeRecent({last, static_cast<uint32_t>(epochs.size())});
    std::erase_if(model_.files, [last](const auto& entry) {
      return entry.second.tier == DeltaTier::kFlushed &&
             entry.second.last_epoch <= last;
    });
    model_.AddFiles(*edit, DeltaTier::kMerged);
  }

  // Returns a random range of adjacent buckets.
  // REQUIRES: there are buckets.
  DeltaEdit::KeyRange RandomRange() {
    auto begin = model_.buckets.begin();
    std::advance(begin, rnd_.Uniform(static_cast<int>(model_.buckets.size())));
    auto end = begin;
    for (int n = 1 + rnd_.Uniform(rnd_.OneIn(4) ? 100 : 3);
         n > 0 && end != model_.buckets.end(); --n) {
      ++end;
    }
    DeltaEdit::KeyRange range;
    range.begin = begin->first;
    if (end != model_.buckets.end()) {
      range.end = end->first;
    }
    return range;
  }

  // Returns `old` and all legal floors above it.
  std::vector<uint64_t> Floors(uint64_t old) const {
    std::vector<uint64_t> floors = {old};
    for (const auto& [number, file] : model_.files) {
      if (file.tier == DeltaTier::kMerged && file.last_epoch > old) {
        floors.push_back(file.last_epoch);
      }
    }
    return floors;
  }

  void Replace(DeltaEdit* edit) {
    DeltaEdit::ReplaceBuckets replace;
    if (!model_.buckets.empty()) {
      replace.range = RandomRange();
    } else if (!rnd_.OneIn(4)) {
      return;
    }
    const BoundLess less{model_.ucmp};
    const auto [begin, end] = model_.Range(replace.range);
    for (auto it = begin; it != end; ++it) {
      if (new_sorted_.count(it->second.extent_number) > 0 ||
          new_sorted_.count(it->second.anchors_number) > 0) {
        return;
      }
    }
    std::set<std::string, BoundLess> bounds(less);
    bounds.insert(replace.range.begin);
    for (int n = rnd_.Uniform(rnd_.OneIn(5) ? 150 : 4); n > 0; --n) {
      const std::string key = RandomKey();
      if (less(replace.range.begin, key) &&
          (!replace.range.end.has_value() || less(key, *replace.range.end))) {
        bounds.insert(key);
      }
    }

    std::vector<uint64_t> operands = {0};
    std::vector<uint64_t> anchors = {0};
    for (const auto& [number, file] : model_.files) {
      if (file.tier == DeltaTier::kSorted && rnd_.OneIn(2)) {
        (file.kind == DeltaKind::kOperands ? operands : anchors)
            .push_back(number);
      }
    }
    uint64_t new_operands = 0;
    if (rnd_.OneIn(2)) {
      const File file = NewFile(DeltaKind::kOperands, DeltaTier::kSorted, 0, 0);
      edit->AddFile(file);
      new_operands = file.number;
      operands.push_back(new_operands);
    }
    const auto pick = [this](const std::vector<uint64_t>& from) {
      return from[rnd_.Uniform(static_cast<int>(from.size()))];
    };
    for (auto bound = bounds.begin(); bound != bounds.end(); ++bound) {
      // The new floor must not be below that of an old bucket with common keys.
      const auto next = std::next(bound);
      uint64_t old = 0;
      for (auto it = begin; it != end; ++it) {
        const auto after = std::next(it);
        const bool above = next != bounds.end() && !less(it->first, *next);
        const bool below = after != end && !less(*bound, after->first);
        if (!above && !below) {
          old = std::max(old, it->second.floor);
        }
      }
      DeltaBucket bucket;
      bucket.lower_bound = *bound;
      bucket.state.floor = rnd_.OneIn(2) ? old : pick(Floors(old));
      bucket.state.extent_number = pick(operands);
      if (bucket.lower_bound == replace.range.begin && new_operands != 0) {
        bucket.state.extent_number = new_operands;
      }
      bucket.state.extent_bytes =
          bucket.state.extent_number == 0 || rnd_.OneIn(4)
              ? 0
              : 1 + rnd_.Uniform(1000);
      bucket.state.anchors_number = pick(anchors);
      replace.buckets.push_back(bucket);
    }
    if (new_operands != 0) {
      new_sorted_.insert(new_operands);
    }
    model_.AddFiles(*edit, DeltaTier::kSorted);
    model_.buckets.erase(begin, end);
    for (const DeltaBucket& bucket : replace.buckets) {
      model_.buckets[bucket.lower_bound] = bucket.state;
    }
    edit->AddReplaceBuckets(std::move(replace));
  }

  void Raise(DeltaEdit* edit) {
    if (model_.buckets.empty()) {
      return;
    }
    DeltaEdit::RaiseFloors raise;
    raise.range = RandomRange();
    const auto [begin, end] = model_.Range(raise.range);
    uint64_t min = UINT64_MAX;
    uint64_t max = 0;
    for (auto it = begin; it != end; ++it) {
      min = std::min(min, it->second.floor);
      max = std::max(max, it->second.floor);
    }
    const std::vector<uint64_t> floors = Floors(max);
    raise.epoch = floors[rnd_.Uniform(static_cast<int>(floors.size()))];
    if (raise.epoch == 0) {
      return;
    }
    for (auto it = begin; it != end; ++it) {
      it->second.floor = raise.epoch;
    }
    edit->AddRaiseFloors(std::move(raise));
  }

  // Removes everything that no running flush keeps.
  void Drain(DeltaEdit* edit) {
    Model before = model_;
    Merge(edit, /*drop_all=*/true);
    uint64_t floor = 0;
    for (const auto& [bound, state] : model_.buckets) {
      floor = std::max(floor, state.floor);
    }
    for (const auto& [number, file] : model_.files) {
      if (file.tier == DeltaTier::kMerged) {
        floor = std::max(floor, file.last_epoch);
      }
    }
    if (!model_.buckets.empty() || floor > 0) {
      edit->AddReplaceBuckets({{"", {}}, {{"", {floor, 0, 0, 0}}}});
    }
    edit->SetDropUnusedBuckets();
    model_ = std::move(before);
  }

  Random rnd_;
  Model model_;
  uint64_t next_number_ = 1;
  std::vector<uint64_t> running_;
  // The sorted files of the edit that is being made.
  std::set<uint64_t> new_sorted_;
};

}  // namespace

class DeltaVersionTest : public testing::Test {
 protected:
  ~DeltaVersionTest() override { EXPECT_TRUE(live_.empty()); }

  // A file may be made several times, for several states.
  DeltaVersion::FileMaker Maker() {
    return [this](const File& file) {
      ++num_made_;
      live_.insert(file.number);
      return DeltaFileMeta::Create(
          file, [this](const File& f, std::shared_ptr<DeltaFileReader>) {
            live_.erase(live_.find(f.number));
          });
    };
  }

  Status Apply(const DeltaEdit& edit, VersionPtr* state) {
    const VersionPtr before = *state;
    Status s = DeltaVersion::Apply(before, edit, ucmp_, Maker(), state);
    if (!s.ok()) {
      EXPECT_EQ(before, *state);
    }
    return s;
  }

  static std::string Text(const VersionPtr& state) {
    return state == nullptr ? "none" : state->DebugString(true);
  }

  static std::vector<uint64_t> Numbers(const DeltaVersion::Files& files) {
    std::vector<uint64_t> numbers;
    for (const auto& file : files) {
      numbers.push_back(file->number());
    }
    return numbers;
  }

  void CheckAgainst(const Model& model, const VersionPtr& state,
                    History* history) {
    if (model.files.empty() && model.buckets.empty()) {
      ASSERT_EQ(nullptr, state);
      return;
    }
    ASSERT_NE(nullptr, state);
    ASSERT_OK(state->CheckConsistency());
    std::map<uint64_t, File> files;
    DeltaVersion::Totals totals;
    SequenceNumber largest = 0;
    state->ForEachFile([&](const DeltaVersion::FilePtr& file) {
      ASSERT_TRUE(files.emplace(file->number(), file->description()).second);
      ASSERT_EQ(file, state->GetFile(file->number()));
    });
    ASSERT_TRUE(model.files == files);
    for (const auto& [number, file] : files) {
      ++totals.num_files;
      totals.bytes += file.size;
      totals.num_entries += file.num_entries + file.num_range_anchors;
      totals.num_operands +=
          file.kind == DeltaKind::kOperands ? file.num_entries : 0;
      totals.raw_bytes += file.raw_bytes;
      largest = std::max(largest, file.largest_seq);
    }
    ASSERT_EQ(totals, state->GetTotals());
    ASSERT_EQ(largest, state->LargestSequence());
    ASSERT_EQ(nullptr, state->GetFile(uint64_t{1} << 40));

    const DeltaBucketTable& table = state->Buckets();
    ASSERT_EQ(model.buckets.size(), table.size());
    auto p = table.Begin();
    for (const auto& [bound, bucket] : model.buckets) {
      ASSERT_EQ(bound, table.LowerBound(p).ToString());
      ASSERT_EQ(bucket, table.State(p));
      p = table.Next(p);
    }

    for (int i = 0; i < 10; ++i) {
      const std::string key = history->RandomKey();
      const std::string other = history->RandomKey();
      const uint64_t floor = model.FloorOf(key);
      ASSERT_EQ(floor, state->FloorOf(key));
      for (DeltaKind kind : {DeltaKind::kOperands, DeltaKind::kAnchors}) {
        ASSERT_EQ(model.Recent(kind, floor),
                  Numbers(state->VisibleFiles(kind, key)));
      }
      const Slice key_slice = key;
      const Slice other_slice = other;
      if (model.ucmp->Compare(key, other) <= 0) {
        ASSERT_EQ(model.Overlaps(&key, &other),
                  state->OverlapsRange(&key_slice, &other_slice));
      } else {
        ASSERT_FALSE(state->OverlapsRange(&key_slice, &other_slice));
      }
      ASSERT_EQ(model.Overlaps(&key, nullptr),
                state->OverlapsRange(&key_slice, nullptr));
      ASSERT_EQ(model.Overlaps(nullptr, &key),
                state->OverlapsRange(nullptr, &key_slice));
    }
    ASSERT_EQ(model.Overlaps(nullptr, nullptr),
              state->OverlapsRange(nullptr, nullptr));
  }

  // Encodes and decodes the edit, as a MANIFEST does.
  static DeltaEdit Copy(const DeltaEdit& edit) {
    std::string encoded;
    edit.EncodeTo(&encoded);
    DeltaEdit copy;
    EXPECT_OK(copy.DecodeFrom(encoded));
    EXPECT_EQ(edit, copy);
    return copy;
  }

  VersionPtr Load(const VersionPtr& state, size_t max_size) {
    VersionPtr loaded;
    if (state != nullptr) {
      const std::vector<DeltaEdit> pieces = state->SplitForSnapshot(max_size);
      DeltaVersionBuilder builder;
      for (size_t i = 0; i < pieces.size(); ++i) {
        EXPECT_TRUE(i == 0 || builder.Finish(&loaded).IsCorruption());
        std::string encoded;
        pieces[i].EncodeTo(&encoded);
        EXPECT_LE(encoded.size(), std::max<size_t>(max_size, 300) + 20);
        EXPECT_OK(builder.Apply(Copy(pieces[i]), ucmp_, Maker()));
      }
      EXPECT_OK(builder.Finish(&loaded));
    }
    return loaded;
  }

  // Returns a state with merged files #30 and #31 of the epochs [10, 20], a
  // flushed file #41 of epoch 40, sorted files #50 and #51, and buckets that
  // begin at "", "g" and "p".
  VersionPtr SomeState() {
    VersionPtr state;
    DeltaEdit edit;
    edit.AddFile(
        MakeDeltaFile(11, DeltaKind::kOperands, DeltaTier::kFlushed, 10));
    edit.AddFile(
        MakeDeltaFile(12, DeltaKind::kAnchors, DeltaTier::kFlushed, 10));
    EXPECT_OK(Apply(edit, &state));
    edit = DeltaEdit();
    edit.AddFile(
        MakeDeltaFile(21, DeltaKind::kOperands, DeltaTier::kFlushed, 20));
    EXPECT_OK(Apply(edit, &state));
    edit = DeltaEdit();
    edit.AddFile(
        MakeDeltaFile(30, DeltaKind::kOperands, DeltaTier::kMerged, 10, 20));
    edit.AddFile(
        MakeDeltaFile(31, DeltaKind::kAnchors, DeltaTier::kMerged, 10, 20));
    edit.SetMergeRecent({20, 3});
    EXPECT_OK(Apply(edit, &state));
    edit = DeltaEdit();
    edit.AddFile(
        MakeDeltaFile(41, DeltaKind::kOperands, DeltaTier::kFlushed, 40));
    edit.AddFile(MakeDeltaFile(50, DeltaKind::kOperands, DeltaTier::kSorted));
    edit.AddFile(MakeDeltaFile(51, DeltaKind::kAnchors, DeltaTier::kSorted));
    edit.AddReplaceBuckets(
        {{"", {}},
         {{"", {0, 0, 0, 0}}, {"g", {20, 50, 100, 51}}, {"p", {0, 0, 0, 0}}}});
    EXPECT_OK(Apply(edit, &state));
    EXPECT_EQ(5u, state->GetTotals().num_files);
    return state;
  }

  void Refuse(const VersionPtr& state, const DeltaEdit& edit,
              const std::string& what) {
    SCOPED_TRACE(what);
    const std::string before = Text(state);
    VersionPtr result = state;
    Status s = Apply(edit, &result);
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    ASSERT_NE(std::string::npos, s.ToString().find(what)) << s.ToString();
    ASSERT_EQ(before, Text(state));
  }

  const Comparator* ucmp_ = BytewiseComparator();
  std::multiset<uint64_t> live_;
  size_t num_made_ = 0;
};

TEST_F(DeltaVersionTest, RandomHistoriesMatchTheModel) {
  constexpr size_t kEdits = 60;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ucmp_ = seed % 3 == 0 ? ReverseBytewiseComparator() : BytewiseComparator();
    History history(seed, ucmp_);
    Random rnd(seed);

    // The edits are applied one by one and compared with the model.
    std::vector<DeltaEdit> edits;
    std::vector<VersionPtr> states(1);
    std::vector<std::string> texts(1, Text(nullptr));
    std::set<uint64_t> dead;
    for (size_t i = 0; i < kEdits; ++i) {
      edits.push_back(history.Next());
      VersionPtr state = states.back();
      Status s = Apply(Copy(edits.back()), &state);
      ASSERT_OK(s) << edits.back().DebugString();
      ASSERT_NO_FATAL_FAILURE(CheckAgainst(history.model(), state, &history));
      // A file that is gone never comes back.
      std::set<uint64_t> alive;
      if (state != nullptr) {
        state->ForEachFile([&](const DeltaVersion::FilePtr& file) {
          alive.insert(file->number());
          ASSERT_EQ(0u, dead.count(file->number()));
        });
      }
      if (states.back() != nullptr) {
        states.back()->ForEachFile([&](const DeltaVersion::FilePtr& file) {
          if (alive.count(file->number()) == 0) {
            dead.insert(file->number());
          }
        });
      }
      states.push_back(state);
      texts.push_back(Text(state));
    }

    // The edits are applied in groups.
    VersionPtr state;
    for (size_t i = 0; i < kEdits;) {
      DeltaVersionBuilder builder(state);
      for (size_t n = 1 + rnd.Uniform(8); n > 0 && i < kEdits; --n) {
        ASSERT_OK(builder.Apply(edits[i++], ucmp_, Maker()));
      }
      ASSERT_OK(builder.Finish(&state));
      ASSERT_EQ(texts[i], Text(state));
    }

    // A state is loaded from a snapshot, and the following edits are applied.
    for (int round = 0; round < 5; ++round) {
      size_t i = rnd.Uniform(kEdits + 1);
      const size_t max_size = rnd.OneIn(2) ? 64 << 10 : 200 + rnd.Uniform(2000);
      state = Load(states[i], max_size);
      ASSERT_EQ(texts[i], Text(state));
      DeltaVersionBuilder builder(state);
      for (; i < kEdits; ++i) {
        ASSERT_OK(builder.Apply(edits[i], ucmp_, Maker()));
        if (rnd.OneIn(10)) {
          ASSERT_OK(builder.Finish(&state));
          ASSERT_EQ(texts[i + 1], Text(state));
        }
      }
      ASSERT_OK(builder.Finish(&state));
      ASSERT_EQ(texts[kEdits], Text(state));
    }

    // Edits are undone and applied again, as VersionBuilder does with copies.
    DeltaVersionBuilder builder;
    for (size_t i = 0; i < kEdits; ++i) {
      DeltaVersionBuilder undo = builder;
      ASSERT_OK(builder.Apply(edits[i], ucmp_, Maker()));
      if (rnd.OneIn(3)) {
        std::swap(builder, undo);
        if (rnd.OneIn(2)) {
          ASSERT_OK(builder.Finish(&state));
          ASSERT_EQ(texts[i], Text(state));
        }
        if (rnd.OneIn(2)) {
          std::swap(builder, undo);
        } else {
          ASSERT_OK(builder.Apply(edits[i], ucmp_, Maker()));
        }
      }
      if (rnd.OneIn(5)) {
        ASSERT_OK(builder.Finish(&state));
        ASSERT_EQ(texts[i + 1], Text(state));
      }
    }
    ASSERT_OK(builder.Finish(&state));
    ASSERT_EQ(texts[kEdits], Text(state));

    // The states that were returned before are unchanged.
    for (size_t i = 0; i <= kEdits; ++i) {
      ASSERT_EQ(texts[i], Text(states[i]));
    }
  }
}

// With the maximum number of buckets, an edit of one bucket copies only one
// chunk of the bucket table. Many such edits can be applied in a row.
TEST_F(DeltaVersionTest, EditOfOneBucketCopiesOneChunk) {
  constexpr size_t kCount = 32768;
  const auto key = [](size_t i) {
    char buffer[16];
    snprintf(buffer, sizeof(buffer), "%08d", static_cast<int>(i));
    return std::string(buffer);
  };
  VersionPtr state;
  DeltaEdit edit;
  edit.AddFile(MakeDeltaFile(1, DeltaKind::kOperands, DeltaTier::kSorted));
  DeltaEdit::ReplaceBuckets all;
  for (size_t i = 0; i < kCount; ++i) {
    all.buckets.push_back({i == 0 ? "" : key(4 * i), {0, 1, 100, 0}});
  }
  edit.AddReplaceBuckets(all);
  ASSERT_OK(Apply(edit, &state));
  ASSERT_EQ(kCount, state->Buckets().size());
  ASSERT_EQ(kCount, state->SortedFiles()[0].num_buckets);

  // The pieces have about 64 KiB each.
  const auto pieces = state->SplitForSnapshot();
  ASSERT_GT(pieces.size(), 10u);
  VersionPtr loaded = Load(state, 64 << 10);
  ASSERT_EQ(Text(state), Text(loaded));

  Random rnd(301);
  DeltaVersionBuilder builder(state);
  std::set<size_t> changed;
  for (int n = 0; n < 20000; ++n) {
    const size_t i = rnd.Uniform(kCount - 1);
    DeltaEdit change;
    change.AddReplaceBuckets({{i == 0 ? "" : key(4 * i), key(4 * (i + 1))},
                              {{i == 0 ? "" : key(4 * i), {0, 0, 0, 0}}}});
    ASSERT_OK(builder.Apply(change, ucmp_, Maker()));
    changed.insert(i);
  }
  VersionPtr result;
  ASSERT_OK(builder.Finish(&result));
  ASSERT_EQ(kCount - changed.size(), result->SortedFiles()[0].num_buckets);
  ASSERT_EQ(kCount, state->SortedFiles()[0].num_buckets);

  VersionPtr one = state;
  DeltaEdit change;
  change.AddReplaceBuckets({{"", key(4)}, {{"", {0, 0, 0, 0}}}});
  ASSERT_OK(Apply(change, &one));
  ASSERT_EQ(state->Buckets().TEST_NumChunks() - 1,
            one->Buckets().TEST_SharedChunks(state->Buckets()));
}

TEST_F(DeltaVersionTest, StateWithoutFilesIsDroppedOnRequest) {
  VersionPtr state;
  DeltaEdit drop;
  drop.SetDropUnusedBuckets();
  ASSERT_OK(Apply(drop, &state));
  ASSERT_EQ(nullptr, state);
  VersionPtr result;
  ASSERT_OK(DeltaVersionBuilder().Finish(&result));
  ASSERT_EQ(nullptr, result);
  // An empty edit is not valid in any state.
  ASSERT_TRUE(Apply(DeltaEdit(), &state).IsCorruption());

  state = SomeState();
  ASSERT_OK(Apply(drop, &state));
  ASSERT_NE(nullptr, state);
  // The last files are removed. The buckets are dropped only by an edit that
  // says so.
  DeltaEdit edit;
  edit.SetMergeRecent({40, 1});
  ASSERT_OK(Apply(edit, &state));
  edit = DeltaEdit();
  edit.AddReplaceBuckets({{"", {}}, {{"", {20, 0, 0, 0}}}});
  ASSERT_OK(Apply(edit, &state));
  ASSERT_NE(nullptr, state);
  ASSERT_EQ(0u, state->GetTotals().num_files);
  ASSERT_EQ(1u, state->Buckets().size());
  ASSERT_OK(Apply(drop, &state));
  ASSERT_EQ(nullptr, state);
}

// A file is removed when no bucket needs it, and not before.
TEST_F(DeltaVersionTest, FileLivesUntilNoBucketNeedsIt) {
  VersionPtr state = SomeState();
  ASSERT_EQ(2u, state->SortedFiles().size());
  ASSERT_EQ(3u, state->Buckets().size());
  DeltaEdit edit;
  edit.AddRaiseFloors({{"", "g"}, 20});
  ASSERT_OK(Apply(edit, &state));
  ASSERT_NE(nullptr, state->GetFile(30));
  edit = DeltaEdit();
  edit.AddRaiseFloors({{"p", {}}, 20});
  ASSERT_OK(Apply(edit, &state));
  ASSERT_EQ(nullptr, state->GetFile(30));
  ASSERT_EQ(nullptr, state->GetFile(31));
  ASSERT_NE(nullptr, state->GetFile(41));
  // Floors may be raised to their current epoch, even if its merged file is
  // gone.
  edit = DeltaEdit();
  edit.AddRaiseFloors({{"", {}}, 20});
  ASSERT_OK(Apply(edit, &state));

  // Two jobs that do not know of each other replace the last buckets of a file.
  edit = DeltaEdit();
  edit.AddReplaceBuckets(
      {{"g", "p"}, {{"g", {20, 50, 50, 51}}, {"k", {20, 50, 50, 0}}}});
  ASSERT_OK(Apply(edit, &state));
  ASSERT_EQ(2u, state->SortedFiles()[0].num_buckets);
  edit = DeltaEdit();
  edit.AddReplaceBuckets({{"g", "k"}, {{"g", {20, 0, 0, 51}}}});
  ASSERT_OK(Apply(edit, &state));
  ASSERT_NE(nullptr, state->GetFile(50));
  edit = DeltaEdit();
  edit.AddReplaceBuckets({{"k", "p"}, {{"k", {20, 0, 0, 0}}}});
  ASSERT_OK(Apply(edit, &state));
  ASSERT_EQ(nullptr, state->GetFile(50));
  ASSERT_NE(nullptr, state->GetFile(51));

  // An edit removes a file from one range and adds it to another one.
  edit = DeltaEdit();
  edit.AddReplaceBuckets({{"g", "k"}, {{"g", {20, 0, 0, 0}}}});
  edit.AddReplaceBuckets({{"p", {}}, {{"p", {20, 0, 0, 51}}}});
  ASSERT_OK(Apply(edit, &state));
  ASSERT_NE(nullptr, state->GetFile(51));
  // No other state holds the files.
  state.reset();
  ASSERT_TRUE(live_.empty());
}

TEST_F(DeltaVersionTest, ContradictoryEditsAreRefused) {
  const VersionPtr state = SomeState();
  const auto with_file = [](const File& file) {
    DeltaEdit edit;
    edit.AddFile(file);
    return edit;
  };
  const auto flushed = [](uint64_t number, uint64_t epoch) {
    return MakeDeltaFile(number, DeltaKind::kOperands, DeltaTier::kFlushed,
                         epoch);
  };
  const auto merged = [](uint64_t number, uint64_t first, uint64_t last) {
    return MakeDeltaFile(number, DeltaKind::kOperands, DeltaTier::kMerged,
                         first, last);
  };

  // The following edits add invalid files.
  for (uint64_t number : {30u, 31u, 41u, 50u, 51u}) {
    Refuse(state, with_file(flushed(number, 100)), "is there already");
  }
  DeltaEdit edit = with_file(flushed(60, 100));
  edit.AddFile(flushed(60, 101));
  Refuse(state, edit, "is there already");
  Refuse(state,
         with_file(MakeDeltaFile(60, DeltaKind::kOperands, DeltaTier::kFlushed,
                                 100, 100, "b", "a")),
         "out of order");
  Refuse(state,
         with_file(MakeDeltaFile(60, DeltaKind::kOperands, DeltaTier::kSorted)),
         "no bucket names");
  Refuse(state, with_file(merged(60, 40, 40)), "merged of nothing");

  // Merges: there is one flushed file, of epoch 40.
  edit = DeltaEdit();
  edit.SetMergeRecent({39, 1});
  Refuse(state, edit, "there are 0");
  edit.SetMergeRecent({40, 2});
  Refuse(state, edit, "there are 1");
  edit = with_file(merged(60, 10, 40));
  edit.SetMergeRecent({40, 1});
  Refuse(state, edit, "has not the epochs");
  edit = with_file(merged(60, 40, 45));
  edit.SetMergeRecent({44, 1});
  Refuse(state, edit, "has not the epochs");
  edit = with_file(merged(60, 40, 44));
  edit.AddFile(merged(61, 40, 43));
  edit.SetMergeRecent({45, 1});
  Refuse(state, edit, "epochs of the merged files differ");

  // The following edits replace invalid ranges of buckets.
  const auto replace = [](std::string begin, std::optional<std::string> end,
                          std::vector<DeltaBucket> buckets) {
    DeltaEdit e;
    e.AddReplaceBuckets(
        {{std::move(begin), std::move(end)}, std::move(buckets)});
    return e;
  };
  const DeltaBucketState at0;
  const DeltaBucketState at20 = {20, 0, 0, 0};
  Refuse(state, replace("a", "p", {{"a", at20}}), "no bucket begins");
  Refuse(state, replace("g", "o", {{"g", at20}}), "no bucket begins");
  Refuse(state, replace("q", {}, {{"q", at20}}), "no bucket begins");
  Refuse(state, replace("p", "g", {{"p", at20}}), "empty range");
  Refuse(state, replace("g", "p", {{"g", at20}, {"p", at20}}), "not within");
  Refuse(state, replace("g", "p", {{"g", at20}, {"f", at20}}), "out of order");
  Refuse(state, replace("", "p", {{"", at20}, {"c", at20}, {"b", at20}}),
         "out of order");
  Refuse(state, replace("g", "p", {{"g", at20}, {"h", at20}, {"h", at20}}),
         "out of order");

  // The following edits name invalid files of buckets.
  Refuse(state, replace("g", "p", {{"g", {20, 52, 0, 0}}}), "is not there");
  Refuse(state, replace("g", "p", {{"g", {20, 41, 0, 0}}}), "is not there");
  Refuse(state, replace("g", "p", {{"g", {20, 51, 0, 0}}}), "another kind");
  Refuse(state, replace("g", "p", {{"g", {20, 0, 0, 50}}}), "another kind");

  // The following edits have invalid floors.
  Refuse(state, replace("g", "p", {{"g", at0}}), "falls");
  Refuse(state, replace("g", "p", {{"g", at20}, {"h", at0}}), "falls");
  Refuse(state, replace("", {}, {{"", at0}}), "falls");
  Refuse(state, replace("", "p", {{"", at0}}), "falls");
  Refuse(state, replace("", "p", {{"", at0}, {"h", at20}}), "falls");
  for (uint64_t epoch : {1u, 10u, 15u, 19u}) {
    Refuse(state, replace("p", {}, {{"p", {epoch, 0, 0, 0}}}),
           "no merged file ends");
    edit = DeltaEdit();
    edit.AddRaiseFloors({{"p", {}}, epoch});
    Refuse(state, edit, "no merged file ends");
    edit = DeltaEdit();
    edit.AddRaiseFloors({{"g", "p"}, epoch});
    Refuse(state, edit, "falls");
  }
  // A floor must not be the epoch of a flushed file.
  Refuse(state, replace("g", "p", {{"g", {40, 0, 0, 0}}}),
         "no merged file ends");
  for (const auto& range : std::vector<DeltaEdit::KeyRange>{
           {"a", {}}, {"g", "h"}, {"q", {}}, {"", "a"}}) {
    edit = DeltaEdit();
    edit.AddRaiseFloors({range, 20});
    Refuse(state, edit, "no bucket begins");
  }
  edit = DeltaEdit();
  edit.AddRaiseFloors({{"p", "g"}, 20});
  Refuse(state, edit, "empty range");

  // There are no buckets yet.
  Refuse(nullptr, edit, "no buckets");
  Refuse(nullptr, replace("a", {}, {{"a", at0}}), "do not cover all keys");
  Refuse(nullptr, replace("", "z", {{"", at0}}), "do not cover all keys");
  Refuse(nullptr, replace("", {}, {{"", at20}}), "no merged file ends");

  // The following edits have invalid snapshot pieces.
  edit = DeltaEdit();
  edit.SetSnapshotPiece({0, true, {}});
  Refuse(state, edit, "out of order");
  edit.SetSnapshotPiece({1, true, {}});
  Refuse(nullptr, edit, "out of order");
  edit.SetSnapshotPiece({0, false, {}});
  VersionPtr loading;
  ASSERT_OK(Apply(edit, &loading));
  ASSERT_NE(nullptr, loading);
  ASSERT_TRUE(loading->IsLoading());
  Refuse(loading, edit, "out of order");
  Refuse(loading, with_file(flushed(60, 100)), "amid");
  edit.SetSnapshotPiece({2, true, {}});
  Refuse(loading, edit, "out of order");
  edit.SetSnapshotPiece({1, true, {}});
  ASSERT_OK(Apply(edit, &loading));
  ASSERT_EQ(nullptr, loading);

  ASSERT_EQ(live_.size(), state->GetTotals().num_files);
}

// A snapshot is checked after its last piece.
TEST_F(DeltaVersionTest, InvalidSnapshotsAreRefused) {
  const auto piece = [](std::vector<File> files,
                        std::vector<DeltaBucket> buckets) {
    DeltaEdit edit;
    for (File& file : files) {
      edit.AddFile(std::move(file));
    }
    edit.SetSnapshotPiece({0, true, std::move(buckets)});
    return edit;
  };
  const File flushed =
      MakeDeltaFile(41, DeltaKind::kOperands, DeltaTier::kFlushed, 40);
  const File merged =
      MakeDeltaFile(30, DeltaKind::kOperands, DeltaTier::kMerged, 10, 20);
  const File sorted =
      MakeDeltaFile(50, DeltaKind::kOperands, DeltaTier::kSorted);
  const DeltaBucketState extent = {0, 50, 10, 0};
  VersionPtr state;
  ASSERT_OK(Apply(piece({flushed, merged, sorted}, {{"", extent}}), &state));
  state.reset();
  ASSERT_OK(Apply(piece({flushed, merged}, {}), &state));

  Refuse(nullptr, piece({sorted}, {{"", {}}}), "no bucket names");
  Refuse(nullptr, piece({}, {{"", extent}}), "is not there");
  Refuse(nullptr, piece({sorted}, {{"a", extent}}), "no lower bound");
  Refuse(nullptr, piece({sorted}, {{"", extent}, {"b", {}}, {"a", {}}}),
         "out of order");
  Refuse(nullptr, piece({merged, merged}, {}), "is there already");
  File other = flushed;
  other.first_epoch = other.last_epoch = 20;
  Refuse(nullptr, piece({other, merged}, {}), "is not above");
  other = merged;
  other.number = 35;
  other.first_epoch = 15;
  other.last_epoch = 25;
  Refuse(nullptr, piece({other, merged}, {}), "overlap");
  Refuse(nullptr, piece({flushed}, {{"", {40, 0, 0, 0}}}), "below all floors");
  Refuse(nullptr, piece({merged}, {{"", {20, 0, 0, 0}}}), "below all floors");
  Refuse(nullptr, piece({merged}, {{"", {15, 0, 0, 0}}}), "inside the epochs");
  Refuse(nullptr, piece({merged}, {{"", {}}, {"a", {15, 0, 0, 0}}}),
         "no merged file ends");
  Refuse(nullptr, piece({flushed}, {{"", {5, 0, 0, 0}}, {"a", {50, 0, 0, 0}}}),
         "not above");
}

// A flushed file is refused if its epoch is not above all merged epochs and
// floors, because buckets would not see it.
TEST_F(DeltaVersionTest, FlushedFileThatComesTooLateIsRefused) {
  const VersionPtr state = SomeState();
  const auto flush = [](uint64_t epoch) {
    DeltaEdit edit;
    edit.AddFile(MakeDeltaFile(1000 + epoch, DeltaKind::kAnchors,
                               DeltaTier::kFlushed, epoch));
    return edit;
  };
  for (uint64_t epoch : {1u, 10u, 19u, 20u}) {
    Refuse(state, flush(epoch), "is over");
  }
  // Files may be added below other flushed files.
  VersionPtr next = state;
  ASSERT_OK(Apply(flush(30), &next));
  ASSERT_OK(Apply(flush(21), &next));
  ASSERT_OK(Apply(flush(50), &next));
  ASSERT_EQ((std::vector<uint64_t>{1050, 1030, 1021, 31}),
            Numbers(next->RecentFilesAbove(DeltaKind::kAnchors, 0)));
  ASSERT_EQ((std::vector<uint64_t>{1050, 1030, 1021}),
            Numbers(next->VisibleFiles(DeltaKind::kAnchors, "h")));
  // After the merged files are gone, floors have the same effect.
  DeltaEdit edit;
  edit.AddRaiseFloors({{"", "g"}, 20});
  edit.AddRaiseFloors({{"p", {}}, 20});
  next = state;
  ASSERT_OK(Apply(edit, &next));
  ASSERT_EQ(nullptr, next->GetFile(30));
  Refuse(next, flush(20), "is over");
  ASSERT_OK(Apply(flush(21), &next));
}

// After an error a builder returns no state and refuses all edits. Its copies
// are not affected.
TEST_F(DeltaVersionTest, BuilderRefusesAllEditsAfterAnError) {
  const VersionPtr state = SomeState();
  const std::string text = Text(state);
  DeltaVersionBuilder builder(state);
  DeltaEdit bad;
  bad.AddFile(MakeDeltaFile(60, DeltaKind::kOperands, DeltaTier::kFlushed, 50));
  bad.AddRaiseFloors({{"", {}}, 19});
  DeltaVersionBuilder copy = builder;
  ASSERT_TRUE(builder.Apply(bad, ucmp_, Maker()).IsCorruption());
  VersionPtr result = state;
  ASSERT_TRUE(builder.Finish(&result).IsCorruption());
  ASSERT_EQ(state, result);
  DeltaEdit good;
  good.AddFile(
      MakeDeltaFile(60, DeltaKind::kOperands, DeltaTier::kFlushed, 50));
  ASSERT_TRUE(builder.Apply(good, ucmp_, Maker()).IsCorruption());
  ASSERT_OK(copy.Apply(good, ucmp_, Maker()));
  ASSERT_OK(copy.Finish(&result));
  ASSERT_NE(nullptr, result->GetFile(60));
  ASSERT_EQ(text, Text(state));
}

TEST_F(DeltaVersionTest, ComparatorWithTimestampsIsRefused) {
  ucmp_ = test::BytewiseComparatorWithU64TsWrapper();
  VersionPtr state;
  DeltaEdit edit;
  edit.AddFile(
      MakeDeltaFile(60, DeltaKind::kOperands, DeltaTier::kFlushed, 50));
  const Status s = Apply(edit, &state);
  ASSERT_TRUE(s.IsNotSupported());
  for (const char* part : {"enable_delta_separation", "user-defined timestamps",
                           "a key has operands for each timestamp"}) {
    ASSERT_NE(s.ToString().find(part), std::string::npos) << s.ToString();
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
