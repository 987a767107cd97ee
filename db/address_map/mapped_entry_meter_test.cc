//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_entry_meter.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/compaction/compaction_iterator.h"
#include "db/merge_helper.h"
#include "db/range_del_aggregator.h"
#include "db/range_tombstone_fragmenter.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/merge_operator.h"
#include "test_util/testharness.h"
#include "util/hash.h"
#include "util/random.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kSeed = 4711;
constexpr uint64_t kFirstNewBirth = 1000000;

using Decision = CompactionFilter::Decision;

// One input entry of a compaction. A mapped entry has type kTypeBlobIndex. An
// entry of type kTypeRangeDeletion is the sentinel at the start of a range
// tombstone.
struct Entry {
  std::string user_key;
  SequenceNumber seq = 0;
  ValueType type = kTypeBlobIndex;
  uint64_t birth = 0;
};

struct Tombstone {
  std::string start;
  std::string end;  // exclusive
  SequenceNumber seq = 0;
};

// The input of a compaction, sorted, and its parameters.
struct Job {
  std::vector<Entry> entries;
  std::vector<Tombstone> tombstones;
  std::vector<SequenceNumber> snapshots;
  bool bottommost = false;
  // The snapshots belong to transactions, so a SingleDelete above them must not
  // be dropped with its value.
  bool keep_single_deletes = false;

  void Sort() {
    entries.erase(std::remove_if(entries.begin(), entries.end(),
                                 [](const Entry& e) {
                                   return e.type == kTypeRangeDeletion;
                                 }),
                  entries.end());
    for (const Tombstone& t : tombstones) {
      entries.push_back(Entry{t.start, t.seq, kTypeRangeDeletion, 0});
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) {
                       return a.user_key != b.user_key ? a.user_key < b.user_key
                                                       : a.seq > b.seq;
                     });
  }

  // Returns the number of the snapshot stripe: equal for entries that the same
  // snapshots see.
  size_t Stripe(SequenceNumber seq) const {
    return static_cast<size_t>(
        std::lower_bound(snapshots.begin(), snapshots.end(), seq) -
        snapshots.begin());
  }
  bool CoveredInStripe(const Entry& e) const {
    return std::any_of(tombstones.begin(), tombstones.end(),
                       [&](const Tombstone& t) {
                         return t.start <= e.user_key && e.user_key < t.end &&
                                t.seq > e.seq && Stripe(t.seq) == Stripe(e.seq);
                       });
  }

  // Returns true if a reader at a snapshot or at the newest sequence number
  // that looks up the entry's key reaches the entry. This follows the rules of
  // Get() and is independent of CompactionIterator.
  bool SomebodyReads(const Entry& wanted) const {
    std::vector<SequenceNumber> readers = snapshots;
    readers.push_back(kMaxSequenceNumber);
    for (const SequenceNumber reader : readers) {
      SequenceNumber floor = 0;
      for (const Tombstone& t : tombstones) {
        if (t.start <= wanted.user_key && wanted.user_key < t.end &&
            t.seq <= reader) {
          floor = std::max(floor, t.seq);
        }
      }
      for (const Entry& e : entries) {
        if (e.user_key != wanted.user_key || e.seq > reader ||
            e.type == kTypeRangeDeletion) {
          continue;
        }
        if (e.seq < floor) {
          break;
        }
        if (&e == &wanted) {
          return true;
        }
        if (e.type != kTypeMerge) {
          break;
        }
      }
    }
    return false;
  }
};

using Id = std::pair<std::pair<uint64_t, uint32_t>,
                     std::pair<SequenceNumber, uint64_t>>;

MapName NameOf(const Entry& e) {
  return MapName{MapKeyHash::Of(e.user_key, kSeed), e.seq, e.birth};
}
Id IdOf(const MapName& name) {
  return Id({name.key.hi, name.key.lo}, {name.seq, name.birth});
}

// An address map with one file.
class TestMap {
 public:
  TestMap() : map(AddressMap::Options(), &files) {
    slot_ = files.Add(1, 0, kNoCompression);
    EXPECT_TRUE(files.Publish(slot_, 1 << 30));
    EXPECT_TRUE(files.Commit(slot_));
  }
  void Insert(const MapName& name, bool direct) {
    AddressMap::Record record;
    record.name = name;
    record.offset = 32;
    record.size = 100;
    record.direct = direct;
    EXPECT_OK(map.InsertBatch(slot_, &record, 1));
  }
  // Inserts most names of the job. The oldest name of a key is sometimes
  // direct.
  void InsertSome(const Job& job, Random* rnd) {
    std::set<std::string> has_direct;
    for (auto e = job.entries.rbegin(); e != job.entries.rend(); ++e) {
      if (e->type == kTypeBlobIndex && !rnd->OneIn(6)) {
        const bool direct =
            !rnd->OneIn(3) && has_direct.insert(e->user_key).second;
        Insert(NameOf(*e), direct);
      }
    }
  }
  std::set<Id> All() const {
    std::set<Id> all;
    for (uint32_t part = 0; part < AddressMap::kNumParts; ++part) {
      map.ForEachInPart(part, [&](const AddressMap::Entry& entry) {
        all.insert(IdOf(entry.name));
      });
    }
    return all;
  }

  BlobFileSlotTable files;
  AddressMap map;

 private:
  uint32_t slot_ = 0;
};

// What happened to the mapped entries of a job, by name. The meter is compared
// with this.
struct Fates {
  std::set<Id> inputs;
  std::set<Id> kept;
  std::set<Id> hidden;
};

// Checks that only entries without a reader were removed before the commit.
void CheckRemovals(const Job& job, const Fates& fates, const TestMap& map,
                   const std::set<Id>& before) {
  const std::set<Id> now = map.All();
  for (const Entry& e : job.entries) {
    const Id id = IdOf(NameOf(e));
    if (e.type != kTypeBlobIndex || before.count(id) == 0 ||
        now.count(id) != 0) {
      continue;
    }
    // It was removed before the commit.
    ASSERT_EQ(0u, fates.kept.count(id)) << e.user_key << "@" << e.seq;
    ASSERT_FALSE(job.SomebodyReads(e)) << e.user_key << "@" << e.seq;
  }
}

void CheckSettled(const Fates& fates, const TestMap& map,
                  const std::set<Id>& before) {
  std::set<Id> expected = before;
  for (const Id& id : fates.inputs) {
    if (fates.kept.count(id) == 0) {
      expected.erase(id);
    }
  }
  ASSERT_EQ(expected, map.All());
  ASSERT_OK(map.map.TEST_Check());
}

// ---- A model of a compaction, with the lookahead of CompactionIterator.

class ModelCompaction {
 public:
  struct Choices {
    bool hold_outputs = false;  // until the input reaches another user key
    bool must_merge = false;    // full merges fail, operands stay
    uint32_t filter_one_in = 0;
    uint32_t separate_one_in = 0;  // for inline values and merge results
    uint32_t inline_one_in = 0;    // for mapped values
    uint32_t dead_base_one_in = 0;
  };

  ModelCompaction(const Job& job, const Choices& choices, Random* rnd,
                  MappedEntryMeter* flow)
      : job_(job), choices_(choices), rnd_(rnd), flow_(flow) {}

  void Run() {
    MeterInput();
    while (Valid()) {
      ProcessOne();
    }
    FlushOutputs();
    flow_->Finish();
  }

  const Fates& fates() const { return fates_; }

 private:
  bool OneIn(uint32_t n) { return n != 0 && rnd_->OneIn(static_cast<int>(n)); }
  bool Valid() const { return pos_ < job_.entries.size(); }
  const Entry& Here() const { return job_.entries[pos_]; }
  bool HereIs(const std::string& user_key) const {
    return Valid() && Here().user_key == user_key;
  }

  void MeterInput() {
    if (!Valid()) {
      return;
    }
    if (Here().type == kTypeBlobIndex) {
      fates_.inputs.insert(IdOf(NameOf(Here())));
      flow_->In(Here().user_key, Here().seq, Here().birth);
    } else {
      flow_->InOther();
    }
  }
  void Advance() {
    ++pos_;
    MeterInput();
    if (!held_.empty() && Valid() && Here().user_key != held_.back().user_key) {
      FlushOutputs();
    }
  }
  void AdvanceHidden() {
    Hide();
    Advance();
  }
  void Hide() {
    if (Here().type == kTypeBlobIndex) {
      fates_.hidden.insert(IdOf(NameOf(Here())));
    }
    flow_->HideCurrent();
  }

  void Output(const Entry& e) {
    held_.push_back(e);
    if (!choices_.hold_outputs) {
      FlushOutputs();
    }
  }
  void FlushOutputs() {
    for (const Entry& e : held_) {
      if (e.type == kTypeBlobIndex) {
        fates_.kept.insert(IdOf(NameOf(e)));
        ASSERT_OK(flow_->Out(e.user_key, e.seq, e.birth));
      }
    }
    held_.clear();
  }
  // Outputs an inline value, which may be written to a new blob file.
  void OutputValue(Entry e) {
    e.type = kTypeValue;
    if (OneIn(choices_.separate_one_in)) {
      e.type = kTypeBlobIndex;
      e.birth = kFirstNewBirth + rnd_->Uniform(3);
    }
    Output(e);
  }

  bool SeenByEarliest(SequenceNumber seq) const {
    return job_.snapshots.empty() || seq <= job_.snapshots.front();
  }

  void ProcessOne() {
    if (Here().type == kTypeRangeDeletion) {
      Output(Here());
      Advance();
      return;
    }
    Entry e = Here();
    const size_t stripe = job_.Stripe(e.seq);
    const bool new_key = !has_key_ || e.user_key != key_;
    const bool same_stripe = !new_key && stripe == stripe_;
    if (new_key) {
      key_ = e.user_key;
      has_key_ = true;
      zeroed_ = false;
      if ((e.type == kTypeValue || e.type == kTypeBlobIndex) && Filter(&e)) {
        stripe_ = stripe;
        return;
      }
    }
    stripe_ = stripe;
    if (clear_next_) {
      clear_next_ = false;
      Hide();
      e.type = kTypeValue;
      Output(e);
      Advance();
    } else if (e.type == kTypeSingleDeletion) {
      SingleDelete(e, stripe);
    } else if (same_stripe) {
      AdvanceHidden();
    } else {
      Rest(e, stripe);
    }
  }

  // Returns true if the entry is done.
  bool Filter(Entry* e) {
    if (!OneIn(choices_.filter_one_in)) {
      return false;
    }
    if (rnd_->OneIn(2)) {  // the filter changes the value
      OutputValue(*e);
      Advance();
    } else {
      e->type = kTypeDeletion;
      Rest(*e, job_.Stripe(e->seq));
    }
    return true;
  }

  void SingleDelete(const Entry& e, size_t stripe) {
    Advance();
    while (HereIs(e.user_key) && Here().type == kTypeRangeDeletion) {
      Advance();
    }
    if (!HereIs(e.user_key)) {
      has_key_ = false;
      if (!(job_.bottommost && SeenByEarliest(e.seq)) && !zeroed_) {
        Output(e);
      }
    } else if (zeroed_) {
      AdvanceHidden();
    } else if (job_.Stripe(Here().seq) != stripe) {
      Output(e);
    } else if (Here().type == kTypeSingleDeletion ||
               Here().type == kTypeDeletion) {
      // The next entry decides.
    } else if (!job_.keep_single_deletes || SeenByEarliest(e.seq) ||
               Here().type == kTypeMerge) {
      AdvanceHidden();
    } else {
      Output(e);
      clear_next_ = true;
    }
  }

  void Rest(const Entry& e, size_t stripe) {
    if (e.type == kTypeDeletion && job_.bottommost) {
      Advance();
      if (SeenByEarliest(e.seq)) {
        return;
      }
      while (HereIs(e.user_key) && (Here().type == kTypeRangeDeletion ||
                                    job_.Stripe(Here().seq) == stripe)) {
        AdvanceHidden();
      }
      if (HereIs(e.user_key)) {
        Output(e);
      }
    } else if (e.type == kTypeMerge) {
      Merge(e, stripe);
    } else if (job_.CoveredInStripe(e)) {
      AdvanceHidden();
    } else {
      if (e.type == kTypeBlobIndex && OneIn(choices_.inline_one_in)) {
        Entry inlined = e;
        inlined.type = kTypeValue;
        Output(inlined);
      } else if (e.type == kTypeValue) {
        zeroed_ = job_.bottommost && SeenByEarliest(e.seq);
        OutputValue(e);
      } else {
        Output(e);
      }
      Advance();
    }
  }

  void Merge(const Entry& first, size_t stripe) {
    std::vector<Entry> operands;
    for (; Valid(); Advance()) {
      if (Here().type == kTypeRangeDeletion) {
        continue;
      }
      if (Here().user_key != first.user_key ||
          job_.Stripe(Here().seq) != stripe) {
        break;
      }
      if (Here().type == kTypeMerge) {
        if (!job_.CoveredInStripe(Here()) && !OneIn(choices_.filter_one_in)) {
          operands.push_back(Here());
        }
        continue;
      }
      if (operands.empty()) {
        has_key_ = false;  // process the base as the first entry of its key
        return;
      }
      if (choices_.must_merge ||
          (Here().type == kTypeBlobIndex && OneIn(choices_.dead_base_one_in))) {
        for (const Entry& operand : operands) {
          Output(operand);
        }
        has_key_ = false;
        return;
      }
      Advance();
      OutputValue(operands.front());
      return;
    }
    for (const Entry& operand : operands) {
      Output(operand);
    }
    if (operands.empty()) {
      has_key_ = false;
    }
  }

  const Job& job_;
  const Choices choices_;
  Random* const rnd_;
  MappedEntryMeter* const flow_;

  size_t pos_ = 0;
  std::vector<Entry> held_;  // outputs of one user key
  bool has_key_ = false;
  std::string key_;
  size_t stripe_ = 0;
  bool zeroed_ = false;
  bool clear_next_ = false;
  Fates fates_;
};

// Deletes and SingleDeletes of one key would break the contract of
// SingleDelete.
bool HasSingleDeletes(const std::string& user_key) {
  return user_key[0] % 2 == 0;
}

Job RandomJob(Random* rnd, bool births) {
  Job job;
  const uint32_t num_keys = 1 + rnd->Uniform(8);
  const uint32_t max_seq = 4 + rnd->Uniform(40);
  for (uint32_t seq = 1; seq <= max_seq; ++seq) {
    Entry e;
    e.user_key =
        std::string(1, static_cast<char>('a' + rnd->Uniform(num_keys)));
    e.seq = seq;
    const uint32_t dice = rnd->Uniform(20);
    if (dice == 0 && e.user_key < "z") {
      Tombstone t;
      t.start = e.user_key;
      t.end = std::string(
          1, static_cast<char>(e.user_key[0] + 1 + rnd->Uniform(4)));
      t.seq = seq;
      job.tombstones.push_back(t);
      continue;
    }
    e.type = dice < 12                      ? kTypeBlobIndex
             : dice < 14                    ? kTypeValue
             : dice < 16                    ? kTypeMerge
             : HasSingleDeletes(e.user_key) ? kTypeSingleDeletion
                                            : kTypeDeletion;
    if (e.type == kTypeBlobIndex) {
      e.birth = births ? 1 + seq : (rnd->OneIn(3) ? 1 + rnd->Uniform(3) : 0);
    }
    job.entries.push_back(e);
  }
  for (SequenceNumber seq = 1; seq <= max_seq; ++seq) {
    if (rnd->OneIn(8)) {
      job.snapshots.push_back(seq);
    }
  }
  job.bottommost = rnd->OneIn(2);
  job.keep_single_deletes = rnd->OneIn(2);
  job.Sort();
  return job;
}

}  // namespace

class MappedEntryMeterTest : public testing::Test {};

TEST_F(MappedEntryMeterTest, ModelCompactionRemovesTheRightNames) {
  Random rnd(301);
  uint64_t hidden = 0;
  uint64_t deferred = 0;
  uint64_t kept = 0;
  for (int round = 0; round < 6000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Job job = RandomJob(&rnd, /*births=*/false);
    const bool twice = rnd.OneIn(10);
    if (twice) {
      // The job has the same file twice, as a repair may find it.
      const std::vector<Entry> copy = job.entries;
      job.entries.insert(job.entries.end(), copy.begin(), copy.end());
      job.Sort();
    }
    ModelCompaction::Choices choices;
    choices.hold_outputs = rnd.OneIn(2);
    choices.must_merge = rnd.OneIn(5);
    choices.filter_one_in = rnd.OneIn(2) ? 3 : 0;
    choices.separate_one_in = rnd.Uniform(3);
    choices.inline_one_in = rnd.OneIn(4) ? 2 : 0;
    choices.dead_base_one_in = rnd.Uniform(3);

    TestMap map;
    map.InsertSome(job, &rnd);
    const std::set<Id> before = map.All();
    DeferredRemovals removals;
    MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                          &removals);
    ModelCompaction compaction(job, choices, &rnd, &flow);
    compaction.Run();
    if (HasFatalFailure()) {
      return;
    }
    Fates fates = compaction.fates();
    CheckRemovals(job, fates, map, before);

    // Checks the meter's own counts.
    const std::set<Id> now = map.All();
    uint64_t all_deferred = 0;
    uint64_t all_kept = 0;
    for (const Id& id : fates.inputs) {
      if (fates.kept.count(id) != 0) {
        ++all_kept;
      } else if (now.count(id) != 0) {
        ++all_deferred;
      }
    }
    if (!twice) {
      ASSERT_EQ(fates.hidden.size(), flow.counts().hidden);
      for (const Id& id : fates.hidden) {
        ASSERT_EQ(0u, now.count(id));
      }
    }
    ASSERT_EQ(all_kept, flow.counts().kept);
    ASSERT_EQ(all_deferred, flow.counts().deferred);
    ASSERT_EQ(all_deferred, removals.Count());
    hidden += flow.counts().hidden;
    deferred += all_deferred;
    kept += all_kept;

    ASSERT_EQ(all_deferred, removals.Remove(&map.map));
    CheckSettled(fates, map, before);
    if (HasFatalFailure()) {
      return;
    }
  }
  ASSERT_GT(hidden, 1000u);
  ASSERT_GT(deferred, 1000u);
  ASSERT_GT(kept, 10000u);
}

namespace {

// ---- The real CompactionIterator.

// The input iterator of a real job. Each mapped entry has its own birth, which
// identifies an output even if its sequence number was set to zero.
class InputIterator : public VectorIterator {
 public:
  InputIterator(const Job& job, MappedEntryMeter* flow)
      : VectorIterator(Keys(job), Values(job)), flow_(flow) {}

  void SeekToFirst() override {
    VectorIterator::SeekToFirst();
    Meter();
  }
  void Next() override {
    VectorIterator::Next();
    Meter();
  }
  // The meter must see every entry. The job counts its input entries, so it
  // does not seek.
  void Seek(const Slice&) override { FAIL(); }
  bool IsDeleteRangeSentinelKey() const override {
    return ExtractValueType(key()) == kTypeRangeDeletion;
  }
  // All user keys that the iterator was at, also those of unmapped entries.
  const std::vector<std::string>& seen_user_keys() const { return seen_; }

 private:
  static std::vector<std::string> Keys(const Job& job) {
    std::vector<std::string> keys;
    for (const Entry& e : job.entries) {
      keys.emplace_back();
      AppendInternalKey(&keys.back(),
                        ParsedInternalKey(e.user_key, e.seq, e.type));
    }
    return keys;
  }
  static std::vector<std::string> Values(const Job& job) {
    std::vector<std::string> values;
    for (const Entry& e : job.entries) {
      values.emplace_back(e.type == kTypeDeletion ? "" : "v");
      if (e.type == kTypeBlobIndex) {
        MappedBlobIndex index;
        index.mode = MappedBlobIndex::Mode::kVersioned;
        index.birth = e.birth;
        index.EncodeTo(&values.back());
      }
    }
    return values;
  }

  void Meter() {
    if (!Valid()) {
      return;
    }
    ParsedInternalKey ikey;
    ASSERT_OK(ParseInternalKey(key(), &ikey, /*log_err_key=*/false));
    bool is_mapped = false;
    ASSERT_OK(flow_->Meter(ikey, value(), /*is_input=*/true, &is_mapped));
    ASSERT_EQ(ikey.type == kTypeBlobIndex, is_mapped);
    if (seen_.empty() || seen_.back() != ikey.user_key) {
      seen_.push_back(ikey.user_key.ToString());
    }
  }

  MappedEntryMeter* const flow_;
  std::vector<std::string> seen_;
};

class TestCompaction : public CompactionIterator::CompactionProxy {
 public:
  explicit TestCompaction(bool bottommost) : bottommost_(bottommost) {}
  int level() const override { return 0; }
  bool KeyNotExistsBeyondOutputLevel(const Slice&,
                                     std::vector<size_t>*) const override {
    return bottommost_;
  }
  bool bottommost_level() const override { return bottommost_; }
  int number_levels() const override { return 1; }
  Slice GetLargestUserKey() const override { return "\xff"; }
  bool allow_ingest_behind() const override { return false; }
  bool allow_mmap_reads() const override { return false; }
  bool enable_blob_garbage_collection() const override { return false; }
  double blob_garbage_collection_age_cutoff() const override { return 0; }
  uint64_t blob_compaction_readahead_size() const override { return 0; }
  const Version* input_version() const override { return nullptr; }
  bool DoesInputReferenceBlobFiles() const override { return true; }
  const Compaction* real_compaction() const override { return nullptr; }
  bool SupportsPerKeyPlacement() const override { return false; }

 private:
  const bool bottommost_;
};

class JoinOperands : public MergeOperator {
 public:
  explicit JoinOperands(bool must_merge) : must_merge_(must_merge) {}
  bool FullMergeV2(const MergeOperationInput& in,
                   MergeOperationOutput* out) const override {
    if (must_merge_) {
      out->op_failure_scope = OpFailureScope::kMustMerge;
      return false;
    }
    for (const Slice& operand : in.operand_list) {
      out->new_value.append(operand.data(), operand.size());
    }
    return true;
  }
  bool PartialMerge(const Slice&, const Slice&, const Slice&, std::string*,
                    Logger*) const override {
    return false;
  }
  const char* Name() const override { return "JoinOperands"; }

 private:
  const bool must_merge_;
};

// Decides by the key.
class KeyFilter : public CompactionFilter {
 public:
  using Decide =
      std::function<Decision(const std::string& user_key, std::string* until)>;
  explicit KeyFilter(Decide decide) : decide_(std::move(decide)) {}

  Decision FilterBlobByKey(int, const Slice& key, std::string* new_value,
                           std::string* skip_until) const override {
    new_value->assign("changed");
    return Ask(key, skip_until);
  }
  Decision FilterV2(int, const Slice& key, ValueType type, const Slice&,
                    std::string* new_value,
                    std::string* skip_until) const override {
    new_value->assign("changed");
    const Decision decision = Ask(key, skip_until);
    return type == ValueType::kMergeOperand && decision == Decision::kPurge
               ? Decision::kKeep
               : decision;
  }
  const char* Name() const override { return "KeyFilter"; }
  const std::vector<std::string>& asked() const { return asked_; }

 private:
  Decision Ask(const Slice& key, std::string* skip_until) const {
    asked_.push_back(key.ToString());
    return decide_(key.ToString(), skip_until);
  }

  const Decide decide_;
  mutable std::vector<std::string> asked_;
};

// Leaves all mapped entries unchanged.
class KeepingPlacement : public CompactionValueMapper {
 public:
  explicit KeepingPlacement(MappedEntryMeter* flow)
      : CompactionValueMapper(flow) {}

  bool keeps_mapped() const override { return true; }
  bool IsLost(const Slice& /*user_key*/,
              const BlobIndex& /*index*/) const override {
    return false;
  }
  bool FindPath(const Slice& /*user_key*/, const BlobIndex& /*index*/,
                uint32_t* /*path_id*/) override {
    return false;
  }
  bool HasDirect(const Slice& /*user_key*/) const override { return false; }
  void OnSequenceZeroed(const Slice& /*user_key*/,
                        SequenceNumber /*seq*/) override {}
  Status Place(const Slice& /*user_key*/, SequenceNumber /*seq*/,
               const Slice& value, std::string* index) override {
    index->assign(value.data(), value.size());
    return Status::OK();
  }
};

struct RealOptions {
  bool must_merge = false;
  KeyFilter::Decide decide;  // no filter if empty
  // Operands up to this sequence number are hidden from the filter.
  SequenceNumber latest_snapshot = 0;
  const SnapshotChecker* snapshot_checker = nullptr;
};

struct RealResult {
  std::vector<std::string> outputs;  // user_key@seq:type
  std::vector<std::string> asked;
  // The maximum number of other user keys that the input had reached when a
  // mapped entry was output.
  size_t max_lag = 0;
  Fates fates;
};

const char* TypeName(ValueType type) {
  switch (type) {
    case kTypeBlobIndex:
      return "map";
    case kTypeValue:
      return "put";
    case kTypeMerge:
      return "merge";
    case kTypeDeletion:
      return "del";
    case kTypeSingleDeletion:
      return "sdel";
    case kTypeRangeDeletion:
      return "range";
    default:
      return "?";
  }
}

// Runs the job as CompactionJob does: each output is metered before the next
// one is requested.
void RunReal(const Job& job, const RealOptions& options, MappedEntryMeter* flow,
             RealResult* result) {
  const Comparator* const ucmp = BytewiseComparator();
  const InternalKeyComparator icmp(ucmp);
  std::vector<SequenceNumber> snapshots = job.snapshots;
  const SequenceNumber earliest =
      snapshots.empty() ? kMaxSequenceNumber : snapshots.front();
  const std::atomic<bool> no{false};

  CompactionRangeDelAggregator range_dels(&icmp, snapshots);
  {
    std::vector<std::string> keys;
    std::vector<std::string> values;
    for (const Tombstone& t : job.tombstones) {
      keys.emplace_back();
      AppendInternalKey(&keys.back(),
                        ParsedInternalKey(t.start, t.seq, kTypeRangeDeletion));
      values.push_back(t.end);
    }
    auto list = std::make_shared<FragmentedRangeTombstoneList>(
        std::make_unique<VectorIterator>(keys, values, &icmp), icmp);
    range_dels.AddTombstones(std::make_unique<FragmentedRangeTombstoneIterator>(
        list, icmp, kMaxSequenceNumber));
  }
  const JoinOperands merge_operator(options.must_merge);
  KeyFilter filter(options.decide);
  const CompactionFilter* const compaction_filter =
      options.decide ? &filter : nullptr;
  MergeHelper merge(Env::Default(), ucmp, &merge_operator, compaction_filter,
                    /*logger=*/nullptr, /*assert_valid_internal_key=*/false,
                    options.latest_snapshot, options.snapshot_checker,
                    /*level=*/0, /*stats=*/nullptr, &no);
  InputIterator input(job, flow);
  input.SeekToFirst();
  CompactionIterator iter(
      &input, ucmp, &merge, kMaxSequenceNumber, &snapshots, earliest,
      /*earliest_write_conflict_snapshot=*/
      job.keep_single_deletes ? earliest : kMaxSequenceNumber,
      /*job_snapshot=*/kMaxSequenceNumber, options.snapshot_checker,
      Env::Default(), /*report_detailed_time=*/false, &range_dels,
      /*blob_file_builder=*/nullptr, /*allow_data_in_errors=*/true,
      /*enforce_single_del_contracts=*/false,
      /*manual_compaction_canceled=*/no,
      std::make_unique<TestCompaction>(job.bottommost),
      /*must_count_input_entries=*/true, compaction_filter, &no);
  KeepingPlacement placement(flow);
  iter.SetMapping(&placement);
  merge.SetMappedFlow(flow);

  std::map<uint64_t, const Entry*> by_birth;
  for (const Entry& e : job.entries) {
    if (e.type == kTypeBlobIndex) {
      by_birth[e.birth] = &e;
      result->fates.inputs.insert(IdOf(NameOf(e)));
    }
  }
  for (iter.SeekToFirst(); iter.Valid(); iter.Next()) {
    ParsedInternalKey ikey = iter.ikey();
    result->outputs.push_back(ikey.user_key.ToString() + "@" +
                              std::to_string(ikey.sequence) + ":" +
                              TypeName(ikey.type));
    if (ikey.type == kTypeBlobIndex && !iter.IsDeleteRangeSentinelKey()) {
      MappedBlobIndex index;
      ASSERT_OK(index.DecodeFrom(iter.value()));
      const Entry& e = *by_birth.at(index.birth);
      ASSERT_EQ(e.user_key, ikey.user_key);
      ikey.sequence = e.seq;
      result->fates.kept.insert(IdOf(NameOf(e)));
      const auto& seen = input.seen_user_keys();
      const auto at = std::find(seen.rbegin(), seen.rend(), e.user_key);
      ASSERT_NE(seen.rend(), at);
      result->max_lag =
          std::max(result->max_lag, static_cast<size_t>(at - seen.rbegin()));
    }
    bool is_mapped = false;
    ASSERT_OK(flow->Meter(ikey, iter.value(), /*is_input=*/false, &is_mapped));
    ASSERT_EQ(ikey.type == kTypeBlobIndex, is_mapped);
  }
  ASSERT_OK(iter.status());
  ASSERT_FALSE(input.Valid());
  ASSERT_TRUE(iter.HasNumInputEntryScanned());
  flow->Finish();
  result->asked = filter.asked();
}

// Changes operands over mapped bases into puts, unless a range tombstone covers
// the base. The base of such a merge would be read from a blob file, and there
// is none. Operands of keys with SingleDeletes become puts, too, as they would
// break the contract of SingleDelete.
void AvoidImpossibleMerges(Job* job) {
  for (size_t i = 0; i < job->entries.size(); ++i) {
    if (job->entries[i].type == kTypeMerge &&
        HasSingleDeletes(job->entries[i].user_key)) {
      job->entries[i].type = kTypeValue;
    }
    for (size_t j = i + 1;
         job->entries[i].type == kTypeMerge && j < job->entries.size() &&
         job->entries[j].user_key == job->entries[i].user_key;
         ++j) {
      const Entry& base = job->entries[j];
      if (base.type == kTypeBlobIndex && !job->CoveredInStripe(base)) {
        job->entries[i].type = kTypeValue;
      }
      if (base.type != kTypeMerge && base.type != kTypeRangeDeletion) {
        break;
      }
    }
  }
}

}  // namespace

// The real CompactionIterator outputs mapped entries as early as the header of
// the meter claims, and the names that leave the map are the right ones.
TEST_F(MappedEntryMeterTest, RealCompactionRemovesTheRightNames) {
  Random rnd(302);
  uint64_t kept = 0;
  uint64_t removed = 0;
  uint64_t early = 0;
  for (int round = 0; round < 6000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Job job = RandomJob(&rnd, /*births=*/true);
    AvoidImpossibleMerges(&job);
    RealOptions options;
    options.must_merge = rnd.OneIn(4);
    std::set<std::string> filtered;
    if (rnd.OneIn(2)) {
      options.latest_snapshot =
          job.snapshots.empty() ? 0 : job.snapshots.back();
      options.decide = [&](const std::string& user_key, std::string* until) {
        switch (Hash64(user_key.data(), user_key.size(), round) % 6) {
          case 0:
            filtered.insert(user_key);
            return Decision::kRemove;
          case 1:
            filtered.insert(user_key);
            return Decision::kChangeValue;
          case 2:
            filtered.insert(user_key);
            return HasSingleDeletes(user_key) ? Decision::kPurge
                                              : Decision::kRemove;
          case 3:
            filtered.insert(user_key);
            *until = std::string(1, static_cast<char>(user_key[0] + 2));
            return Decision::kRemoveAndSkipUntil;
          default:
            return Decision::kKeep;
        }
      };
    }
    TestMap map;
    map.InsertSome(job, &rnd);
    const std::set<Id> before = map.All();
    DeferredRemovals removals;
    MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                          &removals);
    RealResult result;
    RunReal(job, options, &flow, &result);
    if (HasFatalFailure()) {
      return;
    }
    ASSERT_LE(result.max_lag, 1u);
    CheckRemovals(job, result.fates, map, before);
    early += before.size() - map.All().size();
    if (filtered.empty()) {
      // Only the bases that merges have consumed are deferred. Each merge has
      // its own output.
      size_t merges = 0;
      for (const Entry& e : job.entries) {
        merges += e.type == kTypeMerge ? 1 : 0;
      }
      ASSERT_LE(removals.Count(), merges);
    }
    removals.Remove(&map.map);
    CheckSettled(result.fates, map, before);
    if (HasFatalFailure()) {
      return;
    }
    kept += result.fates.kept.size();
    removed += before.size() - map.All().size();
  }
  ASSERT_GT(kept, 10000u);
  ASSERT_GT(removed, 10000u);
  ASSERT_GT(early, 0);
}

namespace {

// One exit of CompactionIterator, with versions of the user key "k" and a
// neighbour before and after it.
struct Exit {
  std::string name;
  std::vector<std::pair<SequenceNumber, ValueType>> versions;
  std::set<SequenceNumber> kept = {};
  std::set<SequenceNumber> hidden = {};
  std::set<SequenceNumber> deferred = {};
  std::vector<SequenceNumber> snapshots = {};
  std::vector<Tombstone> tombstones = {};
  bool bottommost = false;
  bool keep_single_deletes = false;
  bool must_merge = false;
  Decision decision = Decision::kKeep;
};

const ValueType M = kTypeBlobIndex;

std::vector<Exit> Exits() {
  std::vector<Exit> exits;
  Exit e;
  e = {"output", {{9, M}}, {9}};
  exits.push_back(e);
  e = {"hidden by a newer version", {{9, M}, {8, M}, {7, M}}, {9}, {8, 7}};
  exits.push_back(e);
  e = {"hidden in its stripe", {{9, M}, {8, M}, {7, M}}, {9, 7}, {8}};
  e.snapshots = {7};
  exits.push_back(e);
  e = {"hidden by a value", {{9, kTypeValue}, {8, M}}, {}, {8}};
  exits.push_back(e);
  e = {"hidden by a tombstone", {{9, kTypeDeletion}, {8, M}}, {}, {8}};
  exits.push_back(e);
  e = {"single delete under a zeroed value",
       {{9, kTypeValue}, {8, kTypeSingleDeletion}, {7, M}, {6, M}},
       {},
       {7, 6}};
  e.bottommost = true;
  exits.push_back(e);
  e = {"single delete and value",
       {{8, kTypeSingleDeletion}, {7, M}, {6, M}},
       {},
       {7, 6}};
  exits.push_back(e);
  e = {"single delete, value in an older stripe",
       {{8, kTypeSingleDeletion}, {6, M}},
       {6}};
  e.snapshots = {6};
  exits.push_back(e);
  e = {"single delete kept, value cleared",
       {{8, kTypeSingleDeletion}, {7, M}, {6, M}},
       {},
       {7, 6}};
  e.keep_single_deletes = true;
  e.snapshots = {3};
  exits.push_back(e);
  e = {"tombstone at the bottom",
       {{8, kTypeDeletion}, {7, M}, {6, M}},
       {},
       {7, 6}};
  e.bottommost = true;
  exits.push_back(e);
  e = {"tombstone at the bottom above a snapshot",
       {{8, kTypeDeletion}, {7, M}, {6, M}, {2, M}, {1, M}},
       {2},
       {7, 6, 1}};
  e.bottommost = true;
  e.snapshots = {3};
  exits.push_back(e);
  e = {"tombstone at the bottom above a snapshot, nothing kept",
       {{8, kTypeDeletion}, {7, M}, {6, M}},
       {},
       {7, 6}};
  e.bottommost = true;
  e.snapshots = {3};
  exits.push_back(e);
  e = {"range tombstone", {{8, M}, {7, M}, {2, M}}, {8, 2}, {7}};
  e.snapshots = {3, 7};
  e.tombstones = {{"a", "z", 7}};
  e.versions = {{8, M}, {6, M}, {2, M}};
  e.hidden = {6};
  exits.push_back(e);
  e = {"range tombstone that starts at the key", {{8, M}, {6, M}}, {8}, {6}};
  e.snapshots = {7};
  e.tombstones = {{"k", "l", 7}};
  exits.push_back(e);
  for (const Decision d :
       {Decision::kRemove, Decision::kPurge, Decision::kChangeValue}) {
    for (const bool bottommost : {false, true}) {
      e = {"filter", {{8, M}, {7, M}, {3, M}}, {3}, {7}, {8}};
      e.snapshots = {3};
      e.decision = d;
      e.bottommost = bottommost;
      exits.push_back(e);
    }
  }
  // The range tombstone saves reading the base. The base is consumed
  // nevertheless.
  e = {"base consumed by operands",
       {{9, kTypeMerge}, {8, kTypeMerge}, {6, M}, {5, M}},
       {},
       {5},
       {6}};
  e.tombstones = {{"a", "z", 7}};
  exits.push_back(e);
  e.name = "base left by operands that must merge";
  e.must_merge = true;
  e.hidden = {6, 5};
  e.deferred = {};
  exits.push_back(e);
  e = {"base under operands that a filter removed",
       {{9, kTypeMerge}, {8, M}},
       {},
       {},
       {8}};
  e.decision = Decision::kRemove;
  exits.push_back(e);
  e = {"base in an older stripe",
       {{9, kTypeMerge}, {8, kTypeMerge}, {6, M}},
       {6}};
  e.snapshots = {7};
  exits.push_back(e);
  return exits;
}

}  // namespace

TEST_F(MappedEntryMeterTest, EachExitOfCompactionIteratorIsClassified) {
  for (const Exit& exit : Exits()) {
    SCOPED_TRACE(exit.name);
    Job job;
    job.snapshots = exit.snapshots;
    job.tombstones = exit.tombstones;
    job.bottommost = exit.bottommost;
    job.keep_single_deletes = exit.keep_single_deletes;
    uint64_t birth = 1;
    std::map<SequenceNumber, Id> ids;
    for (const auto& [seq, type] : exit.versions) {
      job.entries.push_back(Entry{"k", seq, type, type == M ? birth++ : 0});
      if (type == M) {
        ids[seq] = IdOf(NameOf(job.entries.back()));
      }
    }
    job.entries.push_back(Entry{"j", 20, M, birth++});
    job.entries.push_back(Entry{"l", 20, M, birth++});
    job.Sort();
    RealOptions options;
    options.must_merge = exit.must_merge;
    options.decide = [&](const std::string& user_key, std::string*) {
      return user_key == "k" ? exit.decision : Decision::kKeep;
    };

    TestMap map;
    for (const Entry& e : job.entries) {
      if (e.type == M) {
        map.Insert(NameOf(e), /*direct=*/false);
      }
    }
    DeferredRemovals removals;
    MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                          &removals);
    RealResult result;
    RunReal(job, options, &flow, &result);
    if (HasFatalFailure()) {
      return;
    }
    const auto is_in_map = [&](SequenceNumber seq) {
      return map.All().count(ids.at(seq)) != 0;
    };
    ASSERT_EQ(exit.kept.size() + exit.hidden.size() + exit.deferred.size(),
              ids.size());
    for (const SequenceNumber seq : exit.hidden) {
      ASSERT_FALSE(is_in_map(seq)) << seq;
    }
    for (const SequenceNumber seq : exit.deferred) {
      ASSERT_TRUE(is_in_map(seq)) << seq;
    }
    ASSERT_EQ(exit.deferred.size(), removals.Count());
    removals.Remove(&map.map);
    for (const auto& [seq, id] : ids) {
      ASSERT_EQ(exit.kept.count(seq) != 0, is_in_map(seq)) << seq;
    }
    ASSERT_EQ(exit.kept.size() + 2, map.All().size());
  }
}

// Entries that are not committed according to the snapshot checker are output
// unchanged.
TEST_F(MappedEntryMeterTest, UncommittedEntriesAreKept) {
  class NothingIsCommitted : public SnapshotChecker {
   public:
    SnapshotCheckerResult CheckInSnapshot(SequenceNumber seq,
                                          SequenceNumber) const override {
      return seq <= 7 ? SnapshotCheckerResult::kInSnapshot
                      : SnapshotCheckerResult::kNotInSnapshot;
    }
  };
  Job job;
  for (SequenceNumber seq = 9; seq > 5; --seq) {
    job.entries.push_back(Entry{"k", seq, kTypeBlobIndex, seq});
  }
  const NothingIsCommitted checker;
  RealOptions options;
  options.snapshot_checker = &checker;
  TestMap map;
  for (const Entry& e : job.entries) {
    map.Insert(NameOf(e), /*direct=*/false);
  }
  DeferredRemovals removals;
  MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                        &removals);
  RealResult result;
  RunReal(job, options, &flow, &result);
  ASSERT_EQ(std::vector<std::string>({"k@9:map", "k@8:map", "k@7:map"}),
            result.outputs);
  removals.Remove(&map.map);
  ASSERT_EQ(result.fates.kept, map.All());
}

namespace {

// The job of a filter that skips all keys from b to e (exclusive).
Job SkipJob(bool bottommost) {
  Job job;
  job.bottommost = bottommost;
  job.snapshots = {4};
  job.entries = {
      {"a", 9, kTypeBlobIndex, 1},
      {"b", 9, kTypeBlobIndex, 2},
      {"b", 8, kTypeBlobIndex, 3},
      {"b", 4, kTypeBlobIndex, 4},  // kept for the snapshot
      {"c", 9, kTypeDeletion, 0},
      {"c", 3, kTypeBlobIndex, 5},
      {"d", 9, kTypeMerge, 0},
      {"d", 8, kTypeMerge, 0},
      {"d", 7, kTypeBlobIndex, 6},
      {"dd", 9, kTypeValue, 0},
      {"e", 9, kTypeBlobIndex, 7},
      {"f", 9, kTypeBlobIndex, 8},
  };
  return job;
}

}  // namespace

TEST_F(MappedEntryMeterTest, RemovedRangeKeepsEntriesOfSnapshots) {
  for (const bool bottommost : {false, true}) {
    const Job job = SkipJob(bottommost);
    TestMap map;
    for (const Entry& e : job.entries) {
      if (e.type == kTypeBlobIndex) {
        map.Insert(NameOf(e), /*direct=*/false);
      }
    }
    const std::set<Id> before = map.All();
    RealOptions options;
    options.latest_snapshot = 4;
    options.decide = [](const std::string& user_key, std::string* until) {
      *until = "e";
      return user_key == "b" ? Decision::kRemoveAndSkipUntil : Decision::kKeep;
    };
    DeferredRemovals removals;
    MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                          &removals);
    RealResult result;
    RunReal(job, options, &flow, &result);
    if (HasFatalFailure()) {
      return;
    }
    // Tombstones replace the removed entries where older entries may lie below,
    // the entries that the snapshot sees stay, and no older entry becomes
    // visible.
    std::vector<std::string> expected{"a@9:map",  "b@9:del", "b@4:map",
                                      "c@9:del",  "c@3:map", "d@7:del",
                                      "dd@9:del", "e@9:map", "f@9:map"};
    if (bottommost) {
      expected = {"a@9:map", "b@9:del", "b@0:map", "c@9:del",
                  "c@0:map", "e@9:map", "f@9:map"};
      for (std::string& output : result.outputs) {
        // The test does not depend on whether sequence numbers of mapped
        // entries are set to zero.
        const bool zeroed = output == "b@4:map" || output == "c@3:map";
        output = zeroed ? output.replace(2, 1, "0") : output;
      }
    }
    ASSERT_EQ(expected, result.outputs);
    ASSERT_EQ(std::vector<std::string>({"a", "b", "e", "f"}), result.asked);
    CheckRemovals(job, result.fates, map, before);
    removals.Remove(&map.map);
    CheckSettled(result.fates, map, before);
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_F(MappedEntryMeterTest, RemovedRangeIsHalfOpenAndEnds) {
  TestMap map;
  DeferredRemovals removals;
  MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                        &removals);
  ASSERT_FALSE(flow.InRemovedRange("a"));
  for (const Decision d : {Decision::kKeep, Decision::kRemove, Decision::kPurge,
                           Decision::kChangeValue}) {
    ASSERT_EQ(d, flow.RemoveRange(d, "z"));
    ASSERT_FALSE(flow.InRemovedRange("a"));
  }
  ASSERT_EQ(Decision::kRemove,
            flow.RemoveRange(Decision::kRemoveAndSkipUntil, "c"));
  ASSERT_TRUE(flow.InRemovedRange("a"));
  ASSERT_TRUE(flow.InRemovedRange("bz"));
  ASSERT_FALSE(flow.InRemovedRange("c"));
  ASSERT_EQ(Decision::kRemove,
            flow.RemoveRange(Decision::kRemoveAndSkipUntil, "e"));
  ASSERT_TRUE(flow.InRemovedRange("d"));
  ASSERT_FALSE(flow.InRemovedRange("e"));
}

TEST_F(MappedEntryMeterTest, NamesAreRemovedInBatchesDuringTheJob) {
  TestMap map;
  DeferredRemovals removals;
  MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                        &removals);
  constexpr int kKeys = 1000;
  const auto key_of = [](int i) {
    char key[32];
    snprintf(key, sizeof(key), "%08d", i);
    return std::string(key);
  };
  for (int i = 0; i < kKeys; ++i) {
    for (SequenceNumber seq = 5; seq <= 7; ++seq) {
      map.Insert(MapName{MapKeyHash::Of(key_of(i), kSeed), seq, 0}, false);
    }
  }
  for (int i = 0; i < kKeys; ++i) {
    flow.In(key_of(i), 7, 0);
    ASSERT_OK(flow.Out(key_of(i), 7, 0));
    flow.In(key_of(i), 6, 0);
    flow.HideCurrent();
    flow.In(key_of(i), 5, 0);  // neither output nor hidden
    // Hidden names are removed during the job, at most a batch and two keys
    // late.
    ASSERT_GE(map.map.NumEntries() + i + 1, uint64_t{3} * kKeys);
    ASSERT_LE(map.map.NumEntries() + i, uint64_t{3} * kKeys + 258);
    ASSERT_LE(removals.Count(), static_cast<uint64_t>(i));
    ASSERT_GE(removals.Count() + 258, static_cast<uint64_t>(i));
  }
  flow.Finish();
  ASSERT_EQ(uint64_t{2} * kKeys, map.map.NumEntries());
  ASSERT_EQ(uint64_t{kKeys}, removals.Count());
  ASSERT_EQ(uint64_t{kKeys}, flow.counts().kept);
  ASSERT_EQ(uint64_t{kKeys}, flow.counts().hidden);
  ASSERT_EQ(uint64_t{kKeys}, flow.counts().deferred);
  ASSERT_EQ(uint64_t{3} * kKeys, flow.counts().inputs);
}

// A name that several entries have is kept if one of them is output, and is
// hidden only if all of them are hidden.
TEST_F(MappedEntryMeterTest, RepeatedNameIsHiddenOnlyIfAllItsEntriesAre) {
  for (int kept = 0; kept <= 2; ++kept) {
    for (int hidden = 0; hidden + kept <= 2; ++hidden) {
      TestMap map;
      DeferredRemovals removals;
      MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(),
                            kFirstNewBirth, &removals);
      map.Insert(MapName{MapKeyHash::Of("a", kSeed), 7, 5}, false);
      for (int copy = 0; copy < 2; ++copy) {
        flow.In("a", 7, 5);
        if (copy < kept) {
          ASSERT_OK(flow.Out("a", 7, 5));
        } else if (copy < kept + hidden) {
          flow.HideCurrent();
        }
        flow.In("a", 7, 6);  // another name between the two
        ASSERT_OK(flow.Out("a", 7, 6));
      }
      flow.Finish();
      const bool all_hidden = hidden == 2;
      ASSERT_EQ(all_hidden ? 0u : 1u, map.map.NumEntries());
      ASSERT_EQ(kept > 0 || all_hidden ? 0u : 1u, removals.Count());
    }
  }
}

// With defer_all hidden names stay in the map, but none is found by the key
// alone once the meter is finished.
TEST_F(MappedEntryMeterTest, HiddenDirectNamesAreDemoted) {
  TestMap map;
  DeferredRemovals removals;
  MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                        &removals, /*defer_all=*/true);
  const auto name_of = [](const std::string& key, SequenceNumber seq) {
    return MapName{MapKeyHash::Of(key, kSeed), seq, 0};
  };
  constexpr int kKeys = 300;  // more than a batch
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "hidden" + std::to_string(1000 + i);
    map.Insert(name_of(key, 5), /*direct=*/true);
    flow.In(key, 5, 0);
    flow.HideCurrent();
  }
  map.Insert(name_of("kept", 5), /*direct=*/true);
  flow.In("kept", 5, 0);
  ASSERT_OK(flow.Out("kept", 5, 0));
  // A filter has dropped this entry.
  map.Insert(name_of("other", 5), /*direct=*/true);
  flow.In("other", 5, 0);
  flow.Finish();
  flow.CheckAtCommit();

  SequenceNumber seq = 0;
  for (int i = 0; i < kKeys; ++i) {
    const MapName name = name_of("hidden" + std::to_string(1000 + i), 5);
    EXPECT_FALSE(map.map.DirectSeq(name.key, &seq));
    EXPECT_TRUE(map.map.FindByName(name, /*pin=*/false).found);
  }
  EXPECT_TRUE(map.map.DirectSeq(name_of("kept", 5).key, &seq));
  EXPECT_TRUE(map.map.DirectSeq(name_of("other", 5).key, &seq));
  EXPECT_EQ(removals.Count(), uint64_t{kKeys} + 1);
  EXPECT_EQ(flow.counts().hidden, 0u);
  EXPECT_EQ(removals.Remove(&map.map), uint64_t{kKeys} + 1);
  EXPECT_EQ(map.map.NumEntries(), 1u);
  ASSERT_OK(map.map.TEST_Check());
}

// If a compaction fails before it finishes the meter, all names that are not
// hidden stay in the map.
TEST_F(MappedEntryMeterTest, UnfinishedMeterRemovesNothing) {
  TestMap map;
  DeferredRemovals removals;
  {
    MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                          &removals);
    for (char c = 'a'; c < 'f'; ++c) {
      const std::string key(1, c);
      map.Insert(MapName{MapKeyHash::Of(key, kSeed), 7, 0}, false);
      flow.In(key, 7, 0);
    }
  }
  ASSERT_EQ(5u, map.map.NumEntries());
  removals.Clear();
  ASSERT_EQ(0u, removals.Remove(&map.map));
  ASSERT_EQ(5u, map.map.NumEntries());
}

TEST_F(MappedEntryMeterTest, UnknownOutputFailsTheCompaction) {
  TestMap map;
  DeferredRemovals removals;
  MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                        &removals);
  ASSERT_OK(flow.Out("a", 7, kFirstNewBirth));  // a new value
  ASSERT_TRUE(flow.Out("a", 7, kFirstNewBirth - 1).IsCorruption());
  flow.In("a", 7, 5);
  ASSERT_TRUE(flow.Out("a", 7, 4).IsCorruption());
  ASSERT_TRUE(flow.Out("a", 6, 5).IsCorruption());
  ASSERT_TRUE(flow.Out("b", 7, 5).IsCorruption());
  flow.In("b", 7, 5);
  ASSERT_OK(flow.Out("a", 7, 5));
  flow.In("c", 7, 5);
  ASSERT_TRUE(flow.Out("a", 7, 5).IsCorruption());
  ASSERT_OK(flow.Out("b", 7, 5));
}

TEST_F(MappedEntryMeterTest, MalformedBlobIndexIsCorruption) {
  TestMap map;
  DeferredRemovals removals;
  MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                        &removals);
  const ParsedInternalKey ikey("a", 7, kTypeBlobIndex);
  bool is_mapped = false;
  ASSERT_TRUE(
      flow.Meter(ikey, Slice("\x10\x80", 2), true, &is_mapped).IsCorruption());
  ASSERT_TRUE(
      flow.Meter(ikey, Slice("\x10\x80", 2), false, &is_mapped).IsCorruption());
  // Values that are not mapped are ignored, even if they look similar.
  ASSERT_OK(flow.Meter(ikey, Slice("\x01\x80", 2), true, &is_mapped));
  ASSERT_FALSE(is_mapped);
  ASSERT_OK(flow.Meter(ParsedInternalKey("a", 7, kTypeValue),
                       Slice("\x10\x00", 2), true, &is_mapped));
  ASSERT_FALSE(is_mapped);
  ASSERT_OK(flow.Meter(ikey, Slice("\x10\x00", 2), true, &is_mapped));
  ASSERT_TRUE(is_mapped);
  ASSERT_EQ(1u, flow.counts().inputs);
}

// A compaction that cannot store names cannot be committed, so it ends before
// it has read all of its input.
TEST_F(MappedEntryMeterTest, InputFailsOnceNamesCannotBeStored) {
  constexpr int kKeys = 2000;
  TestMap map;
  DeferredRemovals removals(
      /*cap=*/1, [](std::unique_ptr<SpillFile>* /*file*/) {
        return Status::NoSpace("full");
      });
  MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                        &removals);
  MappedBlobIndex index;
  index.mode = MappedBlobIndex::Mode::kVersioned;
  index.birth = 1;
  std::string value;
  index.EncodeTo(&value);
  Status s;
  int read = 0;
  for (; s.ok() && read < kKeys; ++read) {
    char key[32];
    snprintf(key, sizeof(key), "%08d", read);
    map.Insert(MapName{MapKeyHash::Of(key, kSeed), 7, index.birth}, true);
    bool is_mapped = false;
    s = flow.Meter(ParsedInternalKey(key, 7, kTypeBlobIndex), value,
                   /*is_input=*/true, &is_mapped);
  }
  EXPECT_LT(read, kKeys / 2);
  EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
  EXPECT_EQ(s.ToString(), removals.status("the compaction").ToString());
}

// Deferred names beyond the memory cap are applied from the spill file.
TEST_F(MappedEntryMeterTest, RemovalsFromASpillFileAreApplied) {
  Random rnd(303);
  int spills = 0;
  const std::string path =
      test::PerThreadDBPath("mapped_entry_meter_test") + ".dbtmp";
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Job job = RandomJob(&rnd, /*births=*/true);
    AvoidImpossibleMerges(&job);
    RealOptions options;
    options.decide = [](const std::string& user_key, std::string*) {
      return user_key < "d" ? Decision::kChangeValue : Decision::kKeep;
    };
    TestMap map;
    map.InsertSome(job, &rnd);
    const std::set<Id> before = map.All();
    DeferredRemovals removals(
        /*cap=*/1, [&](std::unique_ptr<SpillFile>* file) {
          ++spills;
          return SpillFile::Create(
              FileSystem::Default().get(), FileOptions(), path, [] {}, file);
        });
    MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(), kFirstNewBirth,
                          &removals);
    RealResult result;
    RunReal(job, options, &flow, &result);
    if (HasFatalFailure()) {
      return;
    }
    removals.Remove(&map.map);
    CheckSettled(result.fates, map, before);
    if (HasFatalFailure()) {
      return;
    }
  }
  ASSERT_GT(spills, 100);
}

// Subcompactions share the map and the removals. A concurrent reader finds all
// names that are kept or deferred.
TEST_F(MappedEntryMeterTest, SubcompactionsShareTheMapAndTheRemovals) {
  constexpr int kThreads = 3;
  constexpr int kKeys = 4000;
  TestMap map;
  const auto key_of = [](int thread, int i) {
    char key[32];
    snprintf(key, sizeof(key), "%d-%08d", thread, i);
    return std::string(key);
  };
  const auto name_of = [&](int thread, int i, SequenceNumber seq) {
    return MapName{MapKeyHash::Of(key_of(thread, i), kSeed), seq, 0};
  };
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kKeys; ++i) {
      for (SequenceNumber seq = 5; seq <= 7; ++seq) {
        map.Insert(name_of(t, i, seq), seq == 5);
      }
    }
  }
  DeferredRemovals removals;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    Random rnd(304);
    while (!done.load()) {
      const int t = static_cast<int>(rnd.Uniform(kThreads));
      const int i = static_cast<int>(rnd.Uniform(kKeys));
      // Kept and deferred names stay in the map.
      ASSERT_TRUE(map.map.FindByName(name_of(t, i, 7), true).found);
      ASSERT_TRUE(map.map.FindByName(name_of(t, i, 5), true).found);
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      MappedEntryMeter flow(&map.map, kSeed, BytewiseComparator(),
                            kFirstNewBirth, &removals);
      for (int i = 0; i < kKeys; ++i) {
        const std::string key = key_of(t, i);
        flow.In(key, 7, 0);
        ASSERT_OK(flow.Out(key, 7, 0));
        flow.In(key, 6, 0);
        flow.HideCurrent();
        flow.In(key, 5, 0);
      }
      flow.Finish();
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  done = true;
  reader.join();
  ASSERT_EQ(uint64_t{2} * kThreads * kKeys, map.map.NumEntries());
  ASSERT_EQ(uint64_t{kThreads} * kKeys, removals.Remove(&map.map));
  ASSERT_EQ(uint64_t{kThreads} * kKeys, map.map.NumEntries());
  ASSERT_OK(map.map.TEST_Check());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
