//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_gc_job.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_file_liveness.h"
#include "db/delta/delta_file_probe.h"
#include "db/delta/delta_file_properties.h"
#include "db/delta/delta_folder.h"
#include "db/delta/delta_merge_pass_test_util.h"
#include "db/delta/delta_store_iterator.h"
#include "db/delta/delta_store_test_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::Event;
using delta_test::Events;
using delta_test::JoinOperator;
using delta_test::Values;
using Type = Event::Type;

class DeltaGcJobTest : public delta_test::DeltaStoreTestBase {
 protected:
  using Plan = DeltaGcJob::Plan;

  // Consumes the operands of the keys for which `take` returns true.
  class TestFolder : public DeltaFolder {
   public:
    Status Fold(const Slice& user_key, const std::vector<Operand>& operands,
                bool hidden_from_none, bool* taken) override {
      const std::string key = user_key.ToString();
      EXPECT_TRUE(asked.empty() || asked.back() < key);
      EXPECT_FALSE(operands.empty());
      for (size_t i = 1; i < operands.size(); ++i) {
        EXPECT_GT(operands[i - 1].first, operands[i].first);
      }
      asked.push_back(key);
      num_operands += operands.size();
      if (!hidden_from_none) {
        anchored.insert(key);
      } else if (take(key)) {
        *taken = true;
        folded.insert(key);
      }
      return status;
    }

    std::function<bool(const std::string&)> take;
    Status status;
    std::vector<std::string> asked;
    size_t num_operands = 0;
    std::set<std::string> anchored;
    std::set<std::string> folded;
  };

  DeltaGcJobTest() {
    SetOperator(nullptr);
    // About 40 operands of 20 bytes fit into a bucket.
    bucket_size_ = 1000;
  }

  void SetOperator(std::shared_ptr<MergeOperator> merge_operator) {
    options_.merge_operator = std::move(merge_operator);
    ioptions_ = std::make_unique<ImmutableOptions>(options_);
  }

  void Reset() {
    ResetHistory();
    snapshots_.clear();
    num_flushed_ = 0;
    for (uint64_t number : FilesOnDisk()) {
      ASSERT_OK(env_->DeleteFile(DeltaFileName(dir_, number)));
    }
  }

  static std::string Key(size_t i) {
    char key[16];
    snprintf(key, sizeof(key), "key%05d", static_cast<int>(i));
    return key;
  }
  uint64_t MaxBucketSize() const { return bucket_size_ * 8 / 10; }

  // ---- Contents.

  // Returns `num` operands for each of the keys [first, last).
  Events Operands(size_t first, size_t last, size_t num = 1) {
    Events events;
    for (; num > 0; --num) {
      for (size_t i = first; i < last; ++i) {
        events.push_back({Type::kOperand, Key(i), "", ++last_seq_});
      }
    }
    return events;
  }
  Event Anchor(const std::string& key) {
    return {Type::kAnchor, key, "", ++last_seq_};
  }
  Event RangeAnchor(const std::string& start, const std::string& end) {
    return {Type::kRangeAnchor, start, end, ++last_seq_};
  }
  void FlushAndMerge(const Events& events) {
    Flush(events);
    Merge(1);
  }

  // ---- Jobs.

  // Returns the last epoch of the newest merged file, 0 if there is none.
  uint64_t LastMergedEpoch() const {
    uint64_t epoch = 0;
    for (uint64_t merged : MergedEpochs()) {
      epoch = std::max(epoch, merged);
    }
    return epoch;
  }
  std::vector<uint64_t> MergedEpochs() const {
    std::vector<uint64_t> epochs;
    if (version_ != nullptr) {
      for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
        for (const auto& file : version_->RecentFiles(kind)) {
          if (file->description().tier == Tier::kMerged) {
            epochs.push_back(file->description().last_epoch);
          }
        }
      }
    }
    return epochs;
  }
  Plan WholePlan(uint32_t max_new_buckets = 1000) const {
    Plan plan;
    plan.floor = LastMergedEpoch();
    plan.max_new_buckets = max_new_buckets;
    return plan;
  }
  // Returns a plan that folds keys with 150 bytes or more, and smaller keys
  // only if there is no room for them.
  Plan FoldLittlePlan(uint32_t max_new_buckets) const {
    Plan plan = WholePlan(max_new_buckets);
    plan.fold = true;
    plan.min_fold_bytes = 150;
    return plan;
  }
  // Returns a plan for the buckets [first, last).
  Plan PlanOf(size_t first, size_t last, uint32_t max_new_buckets = 0) const {
    Plan plan = WholePlan(max_new_buckets);
    const std::vector<DeltaBucket> buckets = Buckets();
    plan.begin = buckets[first].lower_bound;
    if (last < buckets.size()) {
      plan.end = buckets[last].lower_bound;
    }
    return plan;
  }

  DeltaGcJob::Context Context() {
    DeltaGcJob::Context context;
    context.pass.store = store_.get();
    context.pass.ioptions = ioptions_.get();
    context.pass.moptions = &moptions_;
    context.pass.snapshots = snapshots_;
    if (!snapshots_.empty()) {
      context.pass.earliest_snapshot = snapshots_.front();
    }
    context.pass.check = check_;
    context.pass.env = env_.get();
    context.output.db_id = "the DB";
    context.output.reason = TableFileCreationReason::kCompaction;
    context.new_file_number = [this] { return ++last_number_; };
    context.version = version_;
    context.bucket_size = bucket_size_;
    context.max_file_size = max_file_size_;
    context.max_bound_bytes = max_bound_bytes_;
    context.folder = folder_;
    context.max_queued = max_queued_;
    context.checks.entries = true;
    return context;
  }

  Status Run(const Plan& plan, DeltaEdit* edit) {
    DeltaGcJob job(Context());
    const std::set<uint64_t> before = FilesOnDisk();
    Status s = job.Run(plan);
    if (plan.fold && folder_ != nullptr) {
      // No search must find the files before the values are durable.
      EXPECT_EQ(before, FilesOnDisk());
    }
    if (s.ok()) {
      EXPECT_OK(job.Publish(/*directory=*/nullptr));
      EXPECT_EQ(before.size() + job.files().size(), FilesOnDisk().size());
      job.AddTo(edit);
    } else {
      EXPECT_TRUE(job.files().empty());
    }
    stats_ = job.stats();
    io_status_ = job.io_status();
    return s;
  }
  void MustRun(const Plan& plan) {
    edit_ = DeltaEdit();
    ASSERT_OK(Run(plan, &edit_));
    ASSERT_OK(edit_.Validate());
    Apply(edit_);
    if (version_ != nullptr) {
      ASSERT_OK(version_->CheckConsistency());
    }
  }

  // ---- Results.

  std::vector<DeltaBucket> Buckets() const {
    std::vector<DeltaBucket> buckets;
    if (version_ != nullptr) {
      const DeltaBucketTable& table = version_->Buckets();
      for (auto p = table.Begin(); p != table.End(); p = table.Next(p)) {
        buckets.push_back({table.LowerBound(p).ToString(), table.State(p)});
      }
    }
    return buckets;
  }
  std::vector<uint64_t> BucketSizes() const {
    std::vector<uint64_t> sizes;
    for (const DeltaBucket& bucket : Buckets()) {
      sizes.push_back(bucket.state.extent_bytes);
    }
    return sizes;
  }
  size_t BucketOf(const std::string& key) const {
    const std::vector<DeltaBucket> buckets = Buckets();
    size_t i = buckets.size() - 1;
    while (buckets[i].lower_bound > key) {
      --i;
    }
    return i;
  }

  static std::string Join(const Values& values) {
    std::string joined;
    for (auto it = values.rbegin(); it != values.rend(); ++it) {
      joined += (joined.empty() ? "" : ",") + it->second;
    }
    return joined;
  }
  std::set<std::string> Keys() const {
    std::set<std::string> keys;
    for (const Event& event : events_) {
      if (event.type == Type::kOperand) {
        keys.insert(event.key);
      }
    }
    return keys;
  }

  // Checks that all readers see the right operands.
  // folded: keys that must not have operands.
  void CheckReads(const std::set<std::string>& folded = {}) {
    std::vector<SequenceNumber> readers = snapshots_;
    readers.push_back(last_seq_ + 1);
    const InternalKeyComparator icmp(ucmp());
    for (SequenceNumber read_seq : readers) {
      std::map<std::string, std::string> expected;
      for (const std::string& key : Keys()) {
        const std::string joined = Join(Expected(key, read_seq));
        if (!joined.empty() && folded.count(key) == 0) {
          expected[key] = joined;
        }
      }
      std::map<std::string, std::string> found;
      std::map<std::string, Values> scanned;
      if (version_ != nullptr) {
        for (const std::string& key : Keys()) {
          const std::string joined = Join(MustRead(key, read_seq));
          if (!joined.empty()) {
            found[key] = joined;
          }
        }
        const ReadOptions read_options;
        DeltaStoreIterator iter(*version_, *store_, icmp, read_options,
                                read_seq);
        for (iter.SeekToFirst(); iter.Valid(); iter.Next()) {
          scanned[ExtractUserKey(iter.key()).ToString()].emplace_back(
              GetInternalKeySeqno(iter.key()), iter.value().ToString());
        }
        ASSERT_OK(iter.status());
      }
      ASSERT_EQ(expected, found) << "at " << read_seq;
      std::map<std::string, std::string> joined;
      for (const auto& [key, values] : scanned) {
        joined[key] = Join(values);
      }
      ASSERT_EQ(expected, joined) << "at " << read_seq;
    }
  }

  // Checks that the sizes of extents in the buckets are right.
  void CheckSizes() {
    const std::vector<DeltaBucket> buckets = Buckets();
    for (size_t i = 0; i < buckets.size(); ++i) {
      const DeltaBucketState& state = buckets[i].state;
      uint64_t bytes = 0;
      if (state.extent_number != 0) {
        DeltaFileReader* reader = nullptr;
        ASSERT_OK(store_->GetReader(
            ReadOptions(), *version_->GetFile(state.extent_number), &reader));
        const ReadOptions read_options;
        const std::unique_ptr<InternalIterator> iter(reader->NewIterator(
            read_options, TableReaderCaller::kUncategorized));
        for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
          const std::string key = iter->user_key().ToString();
          if (key >= buckets[i].lower_bound &&
              (i + 1 == buckets.size() || key < buckets[i + 1].lower_bound)) {
            bytes += key.size() + iter->value().size();
          }
        }
        ASSERT_OK(iter->status());
      }
      ASSERT_EQ(bytes, state.extent_bytes) << buckets[i].lower_bound;
    }
  }

  std::set<uint64_t> FilesOnDisk() {
    std::vector<std::string> children;
    EXPECT_OK(env_->GetChildren(dir_, &children));
    std::set<uint64_t> numbers;
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(child, &number, &type) && type == kDeltaFile) {
        numbers.insert(number);
      }
    }
    return numbers;
  }

  // Checks that the newest reader sees the same without the MANIFEST: with all
  // files that were ever written, with the live files only, and with the live
  // files and some obsolete sorted files. A second resolution of the resulting
  // files must give the same result.
  void CheckRepair() {
    const std::set<uint64_t> all = FilesOnDisk();
    CheckRepair(all);
    if (version_ == nullptr) {
      return;
    }
    std::set<uint64_t> live;
    version_->ForEachFile([&live](const DeltaVersion::FilePtr& file) {
      live.insert(file->number());
    });
    CheckRepair(live);
    size_t count = 0;
    std::set<uint64_t> more = live;
    for (uint64_t number : all) {
      DeltaFileProbe file;
      ASSERT_OK(
          DeltaFileProbe::Read(*ioptions_, FileOptions(), dir_, number, &file));
      if (file.description.tier == Tier::kSorted && ++count % 2 == 0) {
        more.insert(number);
      }
    }
    CheckRepair(more);
  }
  void CheckRepair(const std::set<uint64_t>& numbers) {
    struct Entry {
      std::string key;
      SequenceNumber seq = 0;
      std::string value;
      std::string end;
      bool is_range = false;
    };
    std::deque<DeltaFileProbe> files;
    std::map<uint64_t, std::vector<Entry>> entries;
    std::vector<const DeltaFileProbe*> pointers;
    for (uint64_t number : numbers) {
      DeltaFileProbe& file = files.emplace_back();
      ASSERT_OK(
          DeltaFileProbe::Read(*ioptions_, FileOptions(), dir_, number, &file));
      const auto tables =
          file.NewTables(*ioptions_, MutableCFOptions(options_), FileOptions());
      ASSERT_OK(file.Scan(
          *tables, [&entries, number](const Slice& key, SequenceNumber seq,
                                      const Slice& value, const Slice* end) {
            entries[number].push_back({key.ToString(), seq, value.ToString(),
                                       end != nullptr ? end->ToString() : "",
                                       end != nullptr});
          }));
      pointers.push_back(&file);
    }
    DeltaFileLiveness lineage;
    ASSERT_OK(DeltaFileLiveness::Resolve(pointers, ucmp(), &lineage));
    // The files that the first resolution keeps determine the same state.
    pointers = lineage.operands;
    pointers.insert(pointers.end(), lineage.anchors.begin(),
                    lineage.anchors.end());
    DeltaFileLiveness again;
    ASSERT_OK(DeltaFileLiveness::Resolve(pointers, ucmp(), &again));
    ASSERT_EQ(lineage.operands, again.operands);
    ASSERT_EQ(lineage.buckets, again.buckets);

    for (const std::string& key : Keys()) {
      DeltaBucketState bucket;
      for (const DeltaBucket& candidate : lineage.buckets) {
        if (candidate.lower_bound <= key) {
          bucket = candidate.state;
        }
      }
      SequenceNumber anchor = 0;
      for (const auto* some : {&lineage.anchors, &lineage.anchors_to_copy}) {
        for (const DeltaFileProbe* file : *some) {
          for (const Entry& entry : entries[file->description.number]) {
            if (entry.is_range ? entry.key <= key && key < entry.end
                               : entry.key == key) {
              anchor = std::max(anchor, entry.seq);
            }
          }
        }
      }
      Values values;
      for (const DeltaFileProbe* file : lineage.operands) {
        const DeltaFileDescription& description = file->description;
        if (description.tier == Tier::kSorted
                ? description.number != bucket.extent_number
                : description.last_epoch <= bucket.floor) {
          continue;
        }
        for (const Entry& entry : entries[description.number]) {
          if (entry.key == key && entry.seq > anchor) {
            values.emplace_back(entry.seq, entry.value);
          }
        }
      }
      std::sort(values.rbegin(), values.rend());
      ASSERT_EQ(Join(Expected(key, last_seq_ + 1)), Join(values)) << key;
    }
  }

  void CheckAll() {
    CheckReads();
    CheckSizes();
    CheckRepair();
  }

  // Makes buckets of about 400 bytes of 250 keys with four operands each.
  void MakeBuckets() {
    FlushAndMerge(Operands(0, 250, 4));
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
    ASSERT_GT(Buckets().size(), 30u);
  }

  MutableCFOptions moptions_;
  std::unique_ptr<ImmutableOptions> ioptions_;
  std::vector<SequenceNumber> snapshots_;
  std::function<Status()> check_;
  uint64_t bucket_size_ = 0;
  uint64_t max_file_size_ = uint64_t{1} << 20;
  uint64_t max_bound_bytes_ = UINT64_MAX;
  DeltaFolder* folder_ = nullptr;
  uint64_t max_queued_ = uint64_t{1} << 20;
  size_t num_flushed_ = 0;

  // These are of the last job.
  DeltaGcJob::Stats stats_;
  IOStatus io_status_;
  DeltaEdit edit_;
};

TEST_F(DeltaGcJobTest, FirstPartitionMakesBucketsOfEqualSize) {
  for (const uint32_t max_buckets : {1u, 2u, 7u, 1000u}) {
    ASSERT_NO_FATAL_FAILURE(Reset());
    FlushAndMerge(Operands(0, 250, 2));
    Flush(Operands(100, 350, 2));
    Merge(1);
    Flush(Operands(0, 400));  // not taken in
    const uint64_t epoch = LastMergedEpoch();
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan(max_buckets)));
    CheckAll();
    const std::vector<uint64_t> sizes = BucketSizes();
    ASSERT_LE(sizes.size(), max_buckets);
    if (max_buckets < 1000) {
      ASSERT_EQ(max_buckets, sizes.size());
    } else {
      // 1000 operands
      ASSERT_GE(sizes.size(), 40u);
      ASSERT_LE(sizes.size(), 60u);
      for (uint64_t size : sizes) {
        ASSERT_GE(size, MaxBucketSize() / 4);
        ASSERT_LE(size, MaxBucketSize());
      }
    }
    for (const DeltaBucket& bucket : Buckets()) {
      ASSERT_EQ(epoch, bucket.state.floor);
      ASSERT_EQ(0u, bucket.state.anchors_number);
    }
    ASSERT_EQ(1u, version_->RecentFiles(Kind::kOperands).size());
    ASSERT_EQ(1u, version_->SortedFiles().size());
    ASSERT_EQ(sizes.size(), stats_.buckets_written);
    ASSERT_EQ(1000u, stats_.pass.operands_read);
  }
}

TEST_F(DeltaGcJobTest, InvalidPlansAreRefused) {
  FlushAndMerge(Operands(0, 250));
  Plan plan = WholePlan();
  DeltaEdit edit;
  plan.begin = Key(1);
  ASSERT_TRUE(Run(plan, &edit).IsInvalidArgument());
  plan = WholePlan();
  plan.floor = 0;
  ASSERT_TRUE(Run(plan, &edit).IsInvalidArgument());
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  plan = WholePlan();
  plan.begin = "no bound";
  ASSERT_TRUE(Run(plan, &edit).IsInvalidArgument());
  plan.begin = Buckets()[2].lower_bound;
  plan.end = Buckets()[2].lower_bound;
  ASSERT_TRUE(Run(plan, &edit).IsInvalidArgument());
}

TEST_F(DeltaGcJobTest, RewritesOnlyBucketsWithSomethingToTakeIn) {
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  const std::vector<DeltaBucket> before = Buckets();
  FlushAndMerge(Operands(120, 130));
  const size_t first = BucketOf(Key(120));
  const size_t last = BucketOf(Key(129)) + 1;
  // The plan is for all buckets, but most have nothing to take in.
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan(/*max_new_buckets=*/0)));
  CheckAll();
  ASSERT_EQ(last - first, stats_.buckets_read);
  ASSERT_EQ(last - first, stats_.buckets_written);
  ASSERT_EQ(before.size() - (last - first), stats_.buckets_raised);
  ASSERT_EQ(1u, edit_.replace_buckets().size());
  ASSERT_EQ(2u, edit_.raise_floors().size());
  const std::vector<DeltaBucket> after = Buckets();
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < after.size(); ++i) {
    ASSERT_EQ(before[i].lower_bound, after[i].lower_bound);
    const bool is_written = first <= i && i < last;
    ASSERT_EQ(!is_written,
              before[i].state.extent_number == after[i].state.extent_number);
  }
  ASSERT_TRUE(version_->RecentFiles(Kind::kOperands).empty());
  ASSERT_EQ(2u, version_->SortedFiles().size());
}

// Between two buckets with something to take in, a few other buckets are
// rewritten, so that one file is enough. A larger gap ends the file.
TEST_F(DeltaGcJobTest, RewritesSmallGapsBetweenBuckets) {
  for (const size_t distance : {2, 5, 25}) {
    ASSERT_NO_FATAL_FAILURE(Reset());
    ASSERT_NO_FATAL_FAILURE(MakeBuckets());
    const std::vector<DeltaBucket> before = Buckets();
    const auto first_key_of = [&before](size_t i) {
      return static_cast<size_t>(std::stoi(before[i].lower_bound.substr(3)));
    };
    const size_t a = first_key_of(3);
    const size_t b = first_key_of(3 + distance);
    Events events = Operands(a, a + 1);
    for (const Event& event : Operands(b, b + 1)) {
      events.push_back(event);
    }
    FlushAndMerge(events);
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan(/*max_new_buckets=*/0)));
    CheckAll();
    const bool is_small = distance < 10;
    ASSERT_EQ(is_small ? 1u : 2u, edit_.replace_buckets().size());
    ASSERT_EQ(is_small ? 1u : 2u, stats_.files_written);
    ASSERT_EQ(is_small ? distance + 1 : 2, stats_.buckets_read);
    ASSERT_EQ(before.size() - stats_.buckets_read, stats_.buckets_raised);
  }
}

TEST_F(DeltaGcJobTest, RaisesTheFloorOfBucketsWithNothingToTakeIn) {
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  // The new key is above all others, so it is in the last bucket.
  FlushAndMerge({{Type::kOperand, "z", "", ++last_seq_}});
  ASSERT_NO_FATAL_FAILURE(MustRun(PlanOf(0, Buckets().size() - 1)));
  ASSERT_EQ(0u, stats_.buckets_read);
  ASSERT_EQ(1u, edit_.raise_floors().size());
  ASSERT_TRUE(edit_.files().empty());
  CheckAll();
  ASSERT_NO_FATAL_FAILURE(
      MustRun(PlanOf(Buckets().size() - 1, Buckets().size())));
  ASSERT_EQ(1u, stats_.buckets_read);
  CheckAll();
  ASSERT_TRUE(version_->RecentFiles(Kind::kOperands).empty());
}

// Anchors are taken in by the buckets that have operands in their range.
TEST_F(DeltaGcJobTest, AnchorsAreTakenInWhereOperandsAre) {
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  FlushAndMerge({Anchor(Key(7)), RangeAnchor(Key(100), Key(110))});
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  ASSERT_GT(stats_.buckets_read, 2u);
  ASSERT_LT(stats_.buckets_read, 20u);
  ASSERT_EQ(11u * 4, stats_.pass.operands_hidden);
  CheckAll();
  // The anchors are not needed any more. If a job leaves no operands in
  // adjacent buckets, these name a file with an anchor at sequence number 0.
  for (const DeltaBucket& bucket : Buckets()) {
    ASSERT_EQ(!bucket.state.HasOperands() && bucket.state.extent_number == 0,
              bucket.state.anchors_number != 0);
    ASSERT_TRUE(bucket.state.anchors_number == 0 ||
                version_->GetFile(bucket.state.anchors_number)
                        ->description()
                        .largest_seq == 0);
  }
  // A range anchor hides all operands of some buckets; the second one finds no
  // operands.
  for (int round = 0; round < 2; ++round) {
    FlushAndMerge({RangeAnchor(Key(50), Key(150))});
    const size_t first = BucketOf(Key(50)) + 1;
    const size_t last = BucketOf(Key(150));
    ASSERT_NO_FATAL_FAILURE(MustRun(PlanOf(first, last)));
    CheckAll();
    ASSERT_EQ(round == 0 ? last - first : 0u, stats_.buckets_read);
    for (size_t i = first; i < last; ++i) {
      ASSERT_FALSE(Buckets()[i].state.HasOperands());
    }
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
    CheckAll();
  }
}

TEST_F(DeltaGcJobTest, SplitsALargeBucketAsFarAsAllowed) {
  for (const uint32_t max_new_buckets : {0u, 1u, 3u, 100u}) {
    ASSERT_NO_FATAL_FAILURE(Reset());
    ASSERT_NO_FATAL_FAILURE(MakeBuckets());
    const size_t num_before = Buckets().size();
    const size_t victim = BucketOf(Key(100));
    const size_t first = std::stoi(Buckets()[victim].lower_bound.substr(3));
    const size_t last = std::stoi(Buckets()[victim + 1].lower_bound.substr(3));
    ASSERT_GT(last, first + 3);
    FlushAndMerge(Operands(first, last, 200 / (last - first)));
    ASSERT_NO_FATAL_FAILURE(
        MustRun(PlanOf(victim, victim + 1, max_new_buckets)));
    CheckAll();
    const size_t parts = Buckets().size() - num_before + 1;
    if (max_new_buckets < 3) {
      ASSERT_EQ(max_new_buckets + 1, parts);
    } else {
      // The 40 operands of a key fill a bucket, so there is at most one bucket
      // for each key.
      ASSERT_LE(parts, std::min<size_t>(max_new_buckets + 1, last - first));
      ASSERT_GE(parts, 3u);
    }
  }
}

TEST_F(DeltaGcJobTest, SplitsIntoEqualParts) {
  FlushAndMerge(Operands(0, 30));
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan(1)));
  ASSERT_EQ(1u, Buckets().size());
  for (const size_t num : {100u, 500u, 2000u}) {
    FlushAndMerge(Operands(10000, 10000 + num));
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
    CheckAll();
    for (uint64_t size : BucketSizes()) {
      ASSERT_LE(size, MaxBucketSize());
      ASSERT_GE(size, MaxBucketSize() / 4);
    }
  }
}

TEST_F(DeltaGcJobTest, MergeNeighboursJoinsBuckets) {
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  // The buckets have something to take in, or nothing.
  for (const bool has_slice : {false, true}) {
    bucket_size_ = 2000;
    const size_t key = has_slice ? 150 : 40;
    if (has_slice) {
      FlushAndMerge(Operands(key, key + 2));
    }
    const size_t victim = BucketOf(Key(key));
    const std::vector<DeltaBucket> before = Buckets();
    Plan plan = PlanOf(victim, victim + 3);
    plan.merge_neighbours = true;
    ASSERT_NO_FATAL_FAILURE(MustRun(plan));
    CheckAll();
    const std::vector<DeltaBucket> after = Buckets();
    ASSERT_EQ(before.size() - 2, after.size());
    ASSERT_EQ(before[victim].lower_bound, after[victim].lower_bound);
    ASSERT_EQ(before[victim + 3].lower_bound, after[victim + 1].lower_bound);
    // The buckets do not fit into one, so they are cut again, but not into more
    // buckets than before.
    bucket_size_ = 500;
    plan = PlanOf(10, 13);
    plan.merge_neighbours = true;
    ASSERT_NO_FATAL_FAILURE(MustRun(plan));
    CheckAll();
    ASSERT_LE(Buckets().size(), after.size());
    ASSERT_GE(Buckets().size(), after.size() - 1);
  }
}

TEST_F(DeltaGcJobTest, FloorsAreNeverLowered) {
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  const uint64_t first_floor = Buckets()[0].state.floor;
  FlushAndMerge(Operands(0, 250));
  const uint64_t epoch = LastMergedEpoch();
  ASSERT_NO_FATAL_FAILURE(MustRun(PlanOf(3, 5)));
  CheckAll();
  FlushAndMerge(Operands(0, 250));
  ASSERT_EQ(epoch, Buckets()[3].state.floor);
  ASSERT_EQ(first_floor, Buckets()[2].state.floor);
  // The floor of the plan is below that of one of the buckets.
  for (const uint64_t floor : {uint64_t{0}, first_floor}) {
    const size_t first = floor == 0 ? 2 : 1;
    const size_t last = floor == 0 ? 6 : 7;
    Plan plan = PlanOf(first, last);
    plan.floor = floor;
    ASSERT_NO_FATAL_FAILURE(MustRun(plan));
    CheckAll();
    for (size_t i = first; i < last; ++i) {
      ASSERT_EQ(epoch, Buckets()[i].state.floor);
    }
    ASSERT_EQ(first_floor, Buckets()[0].state.floor);
  }
  // There is nothing to take in, so nothing changes.
  Plan plan = PlanOf(2, 6);
  plan.floor = 0;
  ASSERT_NO_FATAL_FAILURE(MustRun(plan));
  ASSERT_EQ(0u, stats_.buckets_read + stats_.buckets_raised);
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  CheckAll();
  ASSERT_TRUE(version_->RecentFiles(Kind::kOperands).empty());
}

TEST_F(DeltaGcJobTest, BucketsMayHaveHugeKeys) {
  Events events = Operands(0, 60);
  for (const size_t i : {0, 20, 21, 40, 60}) {
    events.push_back(
        {Type::kOperand, Key(i) + std::string(3000, 'x'), "", ++last_seq_});
  }
  FlushAndMerge(events);
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  CheckAll();
  FlushAndMerge(
      {{Type::kOperand, Key(30) + std::string(5000, 'x'), "", ++last_seq_}});
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  CheckAll();
  ASSERT_GT(Buckets().size(), 6u);
}

// The lower bounds of the buckets of a job are in one record of the MANIFEST.
TEST_F(DeltaGcJobTest, BoundsHaveALimit) {
  const auto bound_bytes = [this] {
    uint64_t bytes = 0;
    for (const DeltaBucket& bucket : Buckets()) {
      bytes += bucket.lower_bound.size();
    }
    return bytes;
  };
  max_bound_bytes_ = 100;
  FlushAndMerge(Operands(0, 1000));
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  CheckAll();
  EXPECT_LE(bound_bytes(), max_bound_bytes_);
  const size_t num_first = Buckets().size();
  EXPECT_GT(num_first, 1u);
  // Large buckets are cut, and so are large files, as far as this is allowed.
  // The old bounds count.
  max_bound_bytes_ = bound_bytes() + 50;
  for (const uint64_t max_file_size : {uint64_t{1} << 20, uint64_t{1}}) {
    max_file_size_ = max_file_size;
    FlushAndMerge(Operands(0, 1000));
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
    CheckAll();
    EXPECT_LE(bound_bytes(), max_bound_bytes_);
    EXPECT_GT(Buckets().size(), num_first);
  }
  max_bound_bytes_ = UINT64_MAX;
  max_file_size_ = uint64_t{1} << 20;
  FlushAndMerge(Operands(0, 1000));
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  CheckAll();
  EXPECT_GT(Buckets().size(), num_first + 5);
}

TEST_F(DeltaGcJobTest, AllOperandsOfAKeyAreInOneBucket) {
  for (const bool combine : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(Reset());
    SetOperator(std::make_shared<JoinOperator>(
        combine ? JoinOperator::Mode::kJoin : JoinOperator::Mode::kNever));
    FlushAndMerge(Operands(0, 100));
    Flush(Operands(50, 51, 500));
    Merge(1);
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
    CheckAll();
    FlushAndMerge(Operands(50, 51, 500));
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
    CheckAll();
    ASSERT_GE(BucketSizes()[BucketOf(Key(50))], combine ? 10000u : 20000u);
    ASSERT_EQ(combine ? 1u : 1001u,
              MustRead(Key(50), kMaxSequenceNumber).size());
  }
}

TEST_F(DeltaGcJobTest, BucketsAreDroppedWhenNoOperandIsLeft) {
  // Either the first partition or a later job finds that all operands are
  // hidden.
  for (const bool is_first : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(Reset());
    if (is_first) {
      FlushAndMerge(Operands(5, 250));
    } else {
      ASSERT_NO_FATAL_FAILURE(MakeBuckets());
    }
    FlushAndMerge({RangeAnchor("a", "z")});
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
    CheckAll();
    // The edit adds a file with one anchor, which records that there are no
    // operands. The file is removed at once together with all buckets.
    ASSERT_TRUE(version_ == nullptr);
    ASSERT_EQ(1u, edit_.files().size());
    ASSERT_EQ(1u, edit_.files()[0].num_entries);
    ASSERT_EQ(0u, edit_.files()[0].largest_seq);
    // A new partition is possible.
    FlushAndMerge(Operands(0, 100));
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
    CheckReads();
  }
}

// Buckets without operands stay while there are recent files.
TEST_F(DeltaGcJobTest, EmptyBucketsStayWhileThereAreRecentFiles) {
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  FlushAndMerge({RangeAnchor("a", "z")});
  Flush(Operands(0, 10));
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  // The file that records that the buckets have no operands stays as well, also
  // if the buckets are rewritten.
  Plan plan;
  plan.rewrite_all = true;
  for (int round = 0; round < 2; ++round) {
    CheckReads();
    ASSERT_FALSE(Buckets().empty());
    ASSERT_EQ(1u, version_->SortedFiles().size());
    for (const DeltaBucket& bucket : Buckets()) {
      ASSERT_FALSE(bucket.state.HasOperands());
      ASSERT_EQ(version_->SortedFiles()[0].file->number(),
                bucket.state.anchors_number);
    }
    ASSERT_NO_FATAL_FAILURE(MustRun(plan));
  }
}

// A merged file stays for buckets that have not taken it in. A repair must not
// assign it to buckets that have taken it in and have no operands left: it
// would bring back operands that were folded into values or removed by a
// filter.
TEST_F(DeltaGcJobTest, RepairKeepsTheFloorsOfEmptiedBuckets) {
  class TakeFrom : public DeltaFolder {
   public:
    Status Fold(const Slice& user_key, const std::vector<Operand>&, bool,
                bool* taken) override {
      *taken = user_key.compare(begin) >= 0;
      return Status::OK();
    }

    std::string begin;
  };
  TakeFrom folder;
  folder_ = &folder;
  for (const bool is_alone : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(Reset());
    ASSERT_NO_FATAL_FAILURE(MakeBuckets());
    FlushAndMerge(Operands(0, 250));
    const uint64_t merged =
        version_->RecentFiles(Kind::kOperands).front()->number();
    // All operands of buckets 4 to 6 are folded, by a job that keeps those of
    // bucket 3, or by one without it.
    folder.begin = Buckets()[4].lower_bound;
    Plan plan = PlanOf(is_alone ? 4 : 3, 7);
    plan.fold = true;
    ASSERT_NO_FATAL_FAILURE(MustRun(plan));
    // Each bucket keeps a file of the job, which records that there are no
    // operands: one of operands if the job has one.
    for (size_t i = 4; i < 7; ++i) {
      const DeltaBucketState state = Buckets()[i].state;
      ASSERT_FALSE(state.HasOperands());
      ASSERT_EQ(is_alone, state.extent_number == 0);
      ASSERT_EQ(is_alone, state.anchors_number != 0);
    }
    // Jobs rewrite the buckets beside them, and some of the buckets themselves.
    for (const size_t i : {3, 7}) {
      plan = PlanOf(i, i + 1);
      plan.rewrite_all = true;
      ASSERT_NO_FATAL_FAILURE(MustRun(plan));
    }
    plan = PlanOf(4, 6);
    plan.rewrite_all = true;
    ASSERT_NO_FATAL_FAILURE(MustRun(plan));
    ASSERT_NE(nullptr, version_->GetFile(merged));
    ASSERT_OK(version_->CheckConsistency());

    std::deque<DeltaFileProbe> files;
    std::vector<const DeltaFileProbe*> pointers;
    version_->ForEachFile([&](const DeltaVersion::FilePtr& live) {
      DeltaFileProbe& file = files.emplace_back();
      ASSERT_OK(DeltaFileProbe::Read(*ioptions_, FileOptions(), dir_,
                                     live->number(), &file));
      const auto tables =
          file.NewTables(*ioptions_, MutableCFOptions(options_), FileOptions());
      ASSERT_OK(file.Scan(*tables, nullptr));
      pointers.push_back(&file);
    });
    DeltaFileLiveness lineage;
    ASSERT_OK(DeltaFileLiveness::Resolve(pointers, ucmp(), &lineage));
    const std::vector<DeltaBucket> expected = Buckets();
    ASSERT_EQ(expected.size(), lineage.buckets.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const DeltaBucketState& state = lineage.buckets[i].state;
      ASSERT_EQ(expected[i].lower_bound, lineage.buckets[i].lower_bound);
      ASSERT_EQ(expected[i].state.extent_bytes, state.extent_bytes);
      const uint64_t epoch =
          version_->GetFile(merged)->description().last_epoch;
      ASSERT_EQ(expected[i].state.floor < epoch, state.floor < epoch) << i;
    }
  }
  folder_ = nullptr;
}

TEST_F(DeltaGcJobTest, AnchorsAreKeptWhileSnapshotsNeedThem) {
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  snapshots_.push_back(last_seq_);
  Events events = Operands(0, 20);
  events.push_back(Anchor(Key(5)));
  events.push_back(RangeAnchor(Key(100), Key(120)));
  FlushAndMerge(events);
  snapshots_.push_back(last_seq_);
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  CheckAll();
  size_t with_anchors = 0;
  for (const DeltaBucket& bucket : Buckets()) {
    with_anchors += bucket.state.anchors_number != 0;
  }
  ASSERT_GT(with_anchors, 2u);
  ASSERT_LT(with_anchors, 20u);
  // Range anchors have become anchors of keys.
  uint64_t num_anchors = 0;
  for (const auto& sorted : version_->SortedFiles()) {
    const DeltaFileDescription& file = sorted.file->description();
    if (file.kind == Kind::kAnchors) {
      ASSERT_EQ(0u, file.num_range_anchors);
      num_anchors += file.num_entries;
    }
  }
  ASSERT_EQ(21u, num_anchors);
  // The anchors are copied by the next job.
  FlushAndMerge(Operands(0, 250));
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  CheckAll();

  // No snapshot needs the anchors any more.
  snapshots_ = {last_seq_};
  Plan plan;
  plan.rewrite_all = true;
  ASSERT_NO_FATAL_FAILURE(MustRun(plan));
  CheckAll();
  for (const DeltaBucket& bucket : Buckets()) {
    ASSERT_EQ(0u, bucket.state.anchors_number);
  }
  ASSERT_LT(0u, stats_.pass.operands_hidden);
}

TEST_F(DeltaGcJobTest, FilesEndAtTheirMaximumSize) {
  SetOperator(nullptr);
  max_file_size_ = 8000;
  FlushAndMerge(Operands(0, 1000, 4));
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  CheckAll();
  ASSERT_GE(edit_.files().size(), 4u);
  snapshots_.push_back(last_seq_);
  FlushAndMerge({RangeAnchor("a", "z")});
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  CheckAll();
  ASSERT_GE(edit_.files().size(), 8u);

  // Each file lists its buckets, without a gap to the next file.
  std::string begin;
  for (const DeltaFileDescription& description : edit_.files()) {
    DeltaFileReader* reader = nullptr;
    ASSERT_OK(store_->GetReader(
        ReadOptions(), *version_->GetFile(description.number), &reader));
    DeltaFileProperties properties;
    ASSERT_OK(
        DeltaFileProperties::Read(*reader->GetTableProperties(), &properties));
    if (description.kind == Kind::kAnchors) {
      ASSERT_NE(0u, properties.operands_number);
      continue;
    }
    ASSERT_EQ(begin, properties.buckets.front().lower_bound);
    begin = properties.end.value_or("the end");
    ASSERT_TRUE(begin == "the end" || description.largest < begin);
  }
  ASSERT_EQ("the end", begin);

  // A bucket stays in one file however large it is.
  ASSERT_NO_FATAL_FAILURE(Reset());
  FlushAndMerge(Operands(0, 1000, 4));
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan(1)));
  CheckAll();
  ASSERT_EQ(1u, Buckets().size());
  ASSERT_EQ(1u, version_->SortedFiles().size());
}

// The picker puts buckets together until their number is small enough.
TEST_F(DeltaGcJobTest, JoinedBucketsMayExceedTheFileSize) {
  SetOperator(nullptr);
  FlushAndMerge(Operands(0, 1000, 4));
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  const size_t num_before = Buckets().size();
  ASSERT_GT(num_before, 4u);
  max_file_size_ = 1;
  bucket_size_ = uint64_t{1} << 20;
  Plan plan = PlanOf(1, num_before - 1);
  plan.merge_neighbours = true;
  plan.max_new_buckets = 2;
  ASSERT_NO_FATAL_FAILURE(MustRun(plan));
  CheckAll();
  EXPECT_EQ(3u, Buckets().size());
}

TEST_F(DeltaGcJobTest, FilterMayRemoveAllOperands) {
  class RemoveAll : public CompactionFilter {
   public:
    bool FilterMergeOperand(int, const Slice&, const Slice&) const override {
      return true;
    }
    const char* Name() const override { return "RemoveAll"; }
  };
  RemoveAll filter;
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  DeltaGcJob::Context context = Context();
  context.pass.filter = &filter;
  Plan plan;
  plan.rewrite_all = true;
  DeltaGcJob job(context);
  ASSERT_OK(job.Run(plan));
  ASSERT_TRUE(job.stats().pass.filter_changed);
  DeltaEdit edit;
  job.AddTo(&edit);
  Apply(edit);
  ASSERT_EQ(250u * 4, job.stats().pass.operands_filtered);
  ASSERT_TRUE(version_ == nullptr);
}

TEST_F(DeltaGcJobTest, FoldedOperandsAreLeftOut) {
  TestFolder folder;
  folder_ = &folder;
  folder.take = [](const std::string& key) { return key.back() % 2 == 0; };
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  ASSERT_TRUE(folder.asked.empty());  // the plan does not fold
  snapshots_.push_back(last_seq_);
  FlushAndMerge({Anchor(Key(12)), Anchor(Key(13))});
  Plan plan = WholePlan();
  plan.fold = true;
  ASSERT_NO_FATAL_FAILURE(MustRun(plan));
  ASSERT_EQ(250u, folder.asked.size());
  ASSERT_EQ((std::set<std::string>{Key(12), Key(13)}), folder.anchored);
  ASSERT_EQ(124u, folder.folded.size());
  ASSERT_EQ(124u * 4, stats_.operands_folded);
  ASSERT_EQ(1000u, folder.num_operands);
  CheckReads(folder.folded);
  CheckSizes();

  // All remaining operands are folded.
  snapshots_.clear();
  folder.asked.clear();
  folder.take = [](const std::string&) { return true; };
  plan = Plan();
  plan.fold = true;
  ASSERT_NO_FATAL_FAILURE(MustRun(plan));
  ASSERT_EQ(124u, folder.asked.size());
  ASSERT_TRUE(version_ == nullptr);
  CheckReads(Keys());

  // A failure of the folder fails the job.
  FlushAndMerge(Operands(0, 10));
  folder.asked.clear();
  folder.status = Status::IOError("fold");
  plan = WholePlan();
  plan.fold = true;
  DeltaEdit edit;
  ASSERT_TRUE(Run(plan, &edit).IsIOError());
}

// A key whose operands exceed max_queued is offered to the folder like any
// other key.
TEST_F(DeltaGcJobTest, FoldsAKeyThatExceedsTheQueue) {
  TestFolder folder;
  folder_ = &folder;
  folder.take = [](const std::string&) { return true; };
  max_queued_ = 1000;
  Events events = Operands(0, 10, 2);
  for (const Event& event : Operands(5, 7, 200)) {
    events.push_back(event);
  }
  FlushAndMerge(events);
  snapshots_.push_back(last_seq_);
  FlushAndMerge({Anchor(Key(5))});
  Plan plan = WholePlan();
  plan.fold = true;
  ASSERT_NO_FATAL_FAILURE(MustRun(plan));
  ASSERT_EQ(10u, folder.asked.size());
  ASSERT_EQ(10u * 2 + 2 * 200, folder.num_operands);
  // All keys are folded, except for the key of which a snapshot sees operands
  // that an anchor hides.
  ASSERT_EQ(std::set<std::string>{Key(5)}, folder.anchored);
  ASSERT_EQ(9u, folder.folded.size());
  CheckReads(folder.folded);
  CheckSizes();
  ASSERT_EQ(202u, MustRead(Key(5), snapshots_[0]).size());
}

// If a bucket is too large and cannot be cut, keys with few bytes of operands
// are folded, the largest first, until there is room. Keys with min_fold_bytes,
// or with many operands, are always folded.
TEST_F(DeltaGcJobTest, FoldsSmallKeysOnlyForRoom) {
  TestFolder folder;
  folder_ = &folder;
  folder.take = [](const std::string&) { return true; };
  using Asked = std::vector<std::string>;
  const auto run = [&](uint32_t max_new_buckets = 0) {
    folder.asked.clear();
    ASSERT_NO_FATAL_FAILURE(MustRun(FoldLittlePlan(max_new_buckets)));
    CheckSizes();
    CheckReads(folder.folded);
  };
  // The operands have 21 bytes each. The bucket has at most 800 bytes.
  last_seq_ = 1000;
  FlushAndMerge(Operands(0, 10));
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan(1)));
  ASSERT_EQ((std::vector<uint64_t>{210}), BucketSizes());
  FlushAndMerge(Operands(0, 10, 2));
  run();
  ASSERT_EQ((std::vector<uint64_t>{630}), BucketSizes());
  ASSERT_EQ(Asked(), folder.asked);
  FlushAndMerge(Operands(3, 6, 3));
  run();
  // Three keys have six operands each. Folding two of these keys makes enough
  // room.
  ASSERT_EQ((Asked{Key(3), Key(4)}), folder.asked);
  ASSERT_EQ((std::vector<uint64_t>{567}), BucketSizes());

  // A key that a snapshot needs is not offered, however large it is.
  snapshots_.push_back(last_seq_);
  Events events = Operands(6, 9, 5);
  events.push_back(Anchor(Key(5)));
  FlushAndMerge(events);
  run();
  ASSERT_EQ((Asked{Key(0), Key(1), Key(2), Key(9)}), folder.asked);
  ASSERT_EQ((std::vector<uint64_t>{630}), BucketSizes());
  // Without the snapshot three keys are offered because of their bytes and
  // operands.
  snapshots_.clear();
  run();
  ASSERT_EQ((Asked{Key(6), Key(7), Key(8)}), folder.asked);
  ASSERT_EQ(nullptr, version_);
}

TEST_F(DeltaGcJobTest, FoldsSmallKeysOnlyInTheBucketWithoutRoom) {
  TestFolder folder;
  folder_ = &folder;
  folder.take = [](const std::string&) { return true; };
  for (const uint32_t room : {0u, 1u}) {
    ASSERT_NO_FATAL_FAILURE(Reset());
    folder.folded.clear();
    last_seq_ = 1000;
    FlushAndMerge(Operands(0, 60));
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan(3)));
    ASSERT_EQ(3u, Buckets().size());
    // One bucket becomes too large. It can be cut only if another bucket is
    // allowed.
    const std::vector<DeltaBucket> buckets = Buckets();
    const size_t middle = BucketOf(Key(30));
    size_t first = 30;
    while (BucketOf(Key(first - 1)) == middle) {
      --first;
    }
    FlushAndMerge(Operands(first, first + 5, 6));
    folder.asked.clear();
    ASSERT_NO_FATAL_FAILURE(MustRun(FoldLittlePlan(room)));
    CheckSizes();
    CheckReads(folder.folded);
    if (room == 0) {
      ASSERT_EQ(buckets.size(), Buckets().size());
      ASSERT_FALSE(folder.asked.empty());
      for (const std::string& key : folder.asked) {
        ASSERT_GE(key, Key(first));
        ASSERT_LT(key, Key(first + 5));
      }
      ASSERT_LE(BucketSizes()[middle], MaxBucketSize() * 3 / 4);
    } else {
      ASSERT_EQ(buckets.size() + 1, Buckets().size());
      ASSERT_TRUE(folder.asked.empty());
    }
  }
}

// Operands that the folder refuses stay. If the folder fails or the job is
// canceled within a bucket, all operands stay.
TEST_F(DeltaGcJobTest, RefusedOperandsStay) {
  TestFolder folder;
  folder_ = &folder;
  last_seq_ = 1000;
  // There are 200 keys and an empty one. Nearly all of them have to be folded
  // to make room.
  Events events = Operands(0, 200);
  events.push_back({Type::kOperand, "", "", ++last_seq_});
  FlushAndMerge(events);
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan(1)));
  ASSERT_EQ(1u, Buckets().size());
  Plan plan = FoldLittlePlan(0);

  bool is_canceled = false;
  check_ = [&] { return is_canceled ? Status::Aborted() : Status::OK(); };
  folder.take = [&](const std::string&) { return is_canceled = true; };
  DeltaEdit edit;
  ASSERT_TRUE(Run(plan, &edit).IsAborted());
  ASSERT_LT(folder.asked.size(), 100u);
  check_ = nullptr;
  CheckAll();

  folder.asked.clear();
  folder.take = [&](const std::string&) {
    if (folder.asked.size() == 10) {
      folder.status = Status::IOError("fold");
    }
    return true;
  };
  ASSERT_TRUE(Run(plan, &edit).IsIOError());
  ASSERT_EQ(10u, folder.asked.size());
  folder.status = Status::OK();
  CheckAll();

  folder.asked.clear();
  folder.folded.clear();
  folder.take = [](const std::string& key) {
    return !key.empty() && key.back() % 2 == 0;
  };
  ASSERT_NO_FATAL_FAILURE(MustRun(plan));
  ASSERT_LT(150u, folder.asked.size());
  ASSERT_LT(70u, folder.folded.size());
  ASSERT_LT(MaxBucketSize(), BucketSizes()[0]);
  CheckReads(folder.folded);
  CheckSizes();

  // The folder consumes all keys that it is offered.
  folder.asked.clear();
  folder.take = [](const std::string&) { return true; };
  ASSERT_NO_FATAL_FAILURE(MustRun(plan));
  ASSERT_GE(MaxBucketSize(), BucketSizes()[0]);
  CheckReads(folder.folded);
  CheckSizes();
}

// The files of the job end within the old bucket, which is cut.
TEST_F(DeltaGcJobTest, FoldsWhileABucketIsCutIntoSmallFiles) {
  TestFolder folder;
  folder_ = &folder;
  folder.take = [](const std::string&) { return true; };
  max_file_size_ = 8000;
  bucket_size_ = 40000;
  last_seq_ = 1000;
  FlushAndMerge(Operands(0, 1000));
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan(1)));
  ASSERT_EQ(1u, Buckets().size());
  FlushAndMerge(Operands(20, 30, 8));
  ASSERT_NO_FATAL_FAILURE(MustRun(FoldLittlePlan(/*max_new_buckets=*/3)));
  ASSERT_EQ(10u, folder.folded.size());
  ASSERT_LT(1u, Buckets().size());
  ASSERT_LT(1u, stats_.files_written);
  CheckReads(folder.folded);
  CheckSizes();
}

// If the keys of a bucket exceed max_queued, keys are chosen from one part of
// the bucket after the other.
TEST_F(DeltaGcJobTest, FoldsABucketThatExceedsTheQueue) {
  TestFolder folder;
  folder_ = &folder;
  folder.take = [](const std::string&) { return true; };
  max_queued_ = 500;
  last_seq_ = 1000;
  Events events = Operands(0, 300);
  for (const Event& event : Operands(7, 8, 100)) {
    events.push_back(event);
  }
  snapshots_.push_back(last_seq_);
  events.push_back(Anchor(Key(7)));
  FlushAndMerge(events);
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan(1)));
  ASSERT_EQ(1u, Buckets().size());
  ASSERT_NO_FATAL_FAILURE(MustRun(FoldLittlePlan(0)));
  // A snapshot needs key 7. Nearly all other keys have to be folded.
  ASSERT_EQ(0u, folder.folded.count(Key(7)));
  ASSERT_LT(250u, folder.folded.size());
  ASSERT_GT(300u, folder.folded.size());
  ASSERT_EQ(folder.asked.size(), folder.folded.size());
  ASSERT_LE(BucketSizes()[0], MaxBucketSize() + 101 * 21);
  CheckReads(folder.folded);
  CheckSizes();
  ASSERT_EQ(101u, MustRead(Key(7), snapshots_[0]).size());
}

TEST_F(DeltaGcJobTest, FailedWriteLeavesNoFiles) {
  max_file_size_ = 8000;
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  FlushAndMerge(Operands(0, 1000, 2));
  snapshots_.push_back(last_seq_);
  FlushAndMerge({RangeAnchor("a", "z")});
  SyncPoint* const sync_point = SyncPoint::GetInstance();
  for (const char* const point : {"DeltaFileBuilder::Open:NewWritableFile",
                                  "DeltaFileBuilder::FinishFile:BeforeSync",
                                  "DeltaFileBuilder::FinishFile:AfterClose"}) {
    for (const int at : {1, 2, 3, 4}) {
      const std::set<uint64_t> before = FilesOnDisk();
      int num = 0;
      sync_point->SetCallBack(point, [&num, at](void* arg) {
        if (++num == at) {
          *static_cast<IOStatus*>(arg) = IOStatus::NoSpace("by the test");
        }
      });
      sync_point->EnableProcessing();
      DeltaEdit edit;
      const Status s = Run(WholePlan(), &edit);
      sync_point->DisableProcessing();
      sync_point->ClearAllCallBacks();
      ASSERT_TRUE(s.IsNoSpace()) << point << " " << at << " " << s.ToString();
      ASSERT_TRUE(io_status_.IsNoSpace()) << point << " " << at;
      ASSERT_TRUE(edit.Empty());
      // At NewWritableFile the file was created before the test made the call
      // fail.
      ASSERT_EQ(before, FilesOnDisk()) << point << " " << at;
    }
  }
  CheckReads();
  ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan()));
  CheckReads();
}

TEST_F(DeltaGcJobTest, AbandonDeletesTheFiles) {
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  FlushAndMerge(Operands(0, 250));
  const std::set<uint64_t> before = FilesOnDisk();
  {
    DeltaGcJob job(Context());
    ASSERT_OK(job.Run(WholePlan()));
    ASSERT_LT(before.size(), FilesOnDisk().size());
    // An edit that names the files must not keep them open.
    DeltaEdit edit;
    job.AddTo(&edit);
    ASSERT_NE(nullptr, edit.files()[0].opened->reader);
    job.Abandon();
    for (const DeltaFileDescription& file : edit.files()) {
      ASSERT_EQ(nullptr, file.opened->reader);
    }
  }
  ASSERT_EQ(before, FilesOnDisk());
  CheckAll();
}

TEST_F(DeltaGcJobTest, CanceledJobLeavesNoFiles) {
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  FlushAndMerge(Operands(0, 250, 10));
  const std::set<uint64_t> before = FilesOnDisk();
  int num = 0;
  int limit = 0;
  check_ = [&num, &limit] {
    return ++num > limit ? Status::Aborted("by the test") : Status::OK();
  };
  bool was_successful = false;
  for (; !was_successful; ++limit) {
    num = 0;
    DeltaEdit edit;
    const Status s = Run(WholePlan(), &edit);
    was_successful = s.ok();
    if (!was_successful) {
      ASSERT_TRUE(s.IsAborted()) << s.ToString();
      ASSERT_EQ(limit + 1, num);
      ASSERT_EQ(before, FilesOnDisk());
      ASSERT_TRUE(edit.Empty());
    }
  }
  ASSERT_GT(limit, 10);
}

TEST_F(DeltaGcJobTest, MissingInputFailsTheJob) {
  ASSERT_NO_FATAL_FAILURE(MakeBuckets());
  FlushAndMerge(Operands(0, 250));
  ASSERT_OK(env_->DeleteFile(
      FileName(version_->RecentFiles(Kind::kOperands).front()->description())));
  ResetReaders();
  const std::set<uint64_t> before = FilesOnDisk();
  DeltaEdit edit;
  ASSERT_NOK(Run(WholePlan(), &edit));
  ASSERT_EQ(before, FilesOnDisk());
}

// A merged file may be lost or damaged after a bucket has taken it in, while
// other buckets, in which it has nothing, keep it in the Version. Only a run
// with a bucket that has still to take it in fails.
TEST_F(DeltaGcJobTest, OnlyBucketsThatNeedAFileFailWithoutIt) {
  for (const bool is_next_needed : {false, true}) {
    SCOPED_TRACE(is_next_needed);
    ASSERT_NO_FATAL_FAILURE(Reset());
    ASSERT_NO_FATAL_FAILURE(MakeBuckets());
    const size_t bucket = BucketOf(Key(120));
    Events events = Operands(120, 121);
    events.push_back(Anchor(Key(120)));
    if (is_next_needed) {
      events.push_back(
          {Type::kOperand, Buckets()[bucket + 1].lower_bound, "", ++last_seq_});
    }
    FlushAndMerge(events);
    ASSERT_NO_FATAL_FAILURE(MustRun(PlanOf(bucket, bucket + 1)));
    std::vector<std::string> lost;
    for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      ASSERT_EQ(1u, version_->RecentFiles(kind).size());
      lost.push_back(
          FileName(version_->RecentFiles(kind).front()->description()));
    }
    FlushAndMerge(Operands(0, 250));
    for (const std::string& file_name : lost) {
      ASSERT_OK(env_->DeleteFile(file_name));
    }
    ResetReaders();
    DeltaEdit edit;
    if (is_next_needed) {
      ASSERT_NOK(Run(WholePlan(/*max_new_buckets=*/0), &edit));
      ASSERT_NOK(Run(PlanOf(bucket, bucket + 2), &edit));
      ASSERT_NOK(Run(PlanOf(bucket + 1, bucket + 2), &edit));
      ASSERT_NO_FATAL_FAILURE(MustRun(PlanOf(0, bucket + 1)));
      ASSERT_NO_FATAL_FAILURE(MustRun(PlanOf(bucket + 2, Buckets().size())));
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(MustRun(WholePlan(/*max_new_buckets=*/0)));
    ASSERT_EQ(Buckets().size(), stats_.buckets_read);
    for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      ASSERT_TRUE(version_->RecentFiles(kind).empty());
    }
    CheckReads();
    CheckSizes();
  }
}

TEST_F(DeltaGcJobTest, ReadersSeeTheSameInRandomHistories) {
  constexpr int kNumKeys = 60;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random rnd(seed);
    ASSERT_NO_FATAL_FAILURE(Reset());
    SetOperator(rnd.OneIn(2)
                    ? std::make_shared<JoinOperator>(JoinOperator::Mode::kJoin)
                    : nullptr);
    max_file_size_ = rnd.OneIn(2) ? 5000 : 100000;
    for (int step = 0; step < 40; ++step) {
      if (rnd.OneIn(3)) {
        if (!snapshots_.empty() && rnd.OneIn(2)) {
          snapshots_.erase(snapshots_.begin() +
                           rnd.Uniform(static_cast<int>(snapshots_.size())));
        } else if (last_seq_ > 0 &&
                   (snapshots_.empty() || snapshots_.back() < last_seq_)) {
          snapshots_.push_back(last_seq_);
        }
      }
      if (num_flushed_ < 3 && rnd.OneIn(2)) {
        Events events;
        const size_t first = rnd.Uniform(kNumKeys);
        const size_t width = rnd.OneIn(2) ? 10 : kNumKeys;
        for (int i = 1 + rnd.Uniform(80); i > 0; --i) {
          Event event{
              Type::kOperand,
              Key((first + rnd.Uniform(static_cast<int>(width))) % kNumKeys),
              "", ++last_seq_};
          if (rnd.OneIn(10)) {
            event.type = Type::kAnchor;
          } else if (rnd.OneIn(30)) {
            event.type = Type::kRangeAnchor;
            event.end = rnd.OneIn(4) ? "z" : event.key + "x";
          }
          events.push_back(event);
        }
        Flush(events);
        ++num_flushed_;
        continue;
      }
      if (num_flushed_ > 0 && rnd.OneIn(2)) {
        const size_t num = 1 + rnd.Uniform(static_cast<int>(num_flushed_));
        Merge(num);
        num_flushed_ -= num;
        continue;
      }
      const std::vector<uint64_t> epochs = MergedEpochs();
      const size_t num_buckets = Buckets().size();
      if (version_ == nullptr || (epochs.empty() && num_buckets == 0)) {
        continue;
      }
      bucket_size_ = 200 << rnd.Uniform(4);
      Plan plan;
      if (num_buckets > 0) {
        const size_t first = rnd.Uniform(static_cast<int>(num_buckets));
        const size_t last =
            rnd.OneIn(3)
                ? num_buckets
                : first + 1 +
                      rnd.Uniform(static_cast<int>(num_buckets - first));
        plan = PlanOf(first, last);
        plan.merge_neighbours = rnd.OneIn(4);
        plan.rewrite_all = rnd.OneIn(4);
      }
      plan.floor = epochs.empty()
                       ? 0
                       : epochs[rnd.Uniform(static_cast<int>(epochs.size()))];
      plan.max_new_buckets = rnd.OneIn(3) ? rnd.Uniform(3) : 1000;
      MustRun(plan);
      CheckReads();
      CheckSizes();
      if (rnd.OneIn(4)) {
        CheckRepair();
      }
      if (HasFatalFailure()) {
        fprintf(stderr, "%s",
                version_ == nullptr ? "" : version_->DebugString().c_str());
        return;
      }
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
