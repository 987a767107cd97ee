//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_stress_test_util.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "rocksdb/cache.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/iterator.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/options.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "rocksdb/wide_columns.h"
#include "rocksdb/write_batch.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kNumFamilies = 2;
constexpr size_t kMaxHistory = 64;    // Versions of a key that are remembered.
constexpr size_t kMaxPayload = 3000;  // Bytes; a writer appends no more.
constexpr uint64_t kMinBlobSize = 100;  // Bytes.

using Clock = std::chrono::steady_clock;
using Value = std::shared_ptr<const std::string>;  // nullptr if there is none.

// The use of a key, by its number. A SingleDelete() and a compaction filter are
// only defined for keys that are written in a certain way.
enum class KeyUse { kAny, kSingleDelete, kFiltered };

KeyUse UseOf(size_t index) {
  switch (index % 10) {
    case 8:
      return KeyUse::kSingleDelete;
    case 9:
      return KeyUse::kFiltered;
    default:
      return KeyUse::kAny;
  }
}

std::string KeyName(size_t writer, size_t index) {
  char name[32];
  snprintf(name, sizeof(name), "%02zu-%06zu", writer, index);
  return name;
}

// A value: "<version>:<sum>:<key>|<payload>".
struct Fields {
  uint64_t version = 0;
  int64_t sum = 0;
  std::string payload;
};

std::string Render(const Slice& key, const Fields& fields) {
  return std::to_string(fields.version) + ":" + std::to_string(fields.sum) +
         ":" + key.ToString() + "|" + fields.payload;
}

Fields Parse(const Slice& value) {
  const std::string text = value.ToString();
  Fields fields;
  char* end = nullptr;
  fields.version = std::strtoull(text.c_str(), &end, 10);
  if (*end == ':') {
    fields.sum = std::strtoll(end + 1, nullptr, 10);
  }
  const size_t bar = text.find('|');
  fields.payload = bar == std::string::npos ? "" : text.substr(bar + 1);
  return fields;
}

// Operands:
//   "A<version>|<bytes>"   the payload grows: large results over large values
//   "C<version>:<n>|"      a counter without payload, so results are small
//   "L<value>"             replaces the value, so results have any size
std::string Apply(const Slice& key, const Slice* existing,
                  const Slice& operand) {
  if (operand[0] == 'L') {
    return std::string(operand.data() + 1, operand.size() - 1);
  }
  Fields fields;
  if (existing != nullptr) {
    fields = Parse(*existing);
  }
  const std::string text(operand.data() + 1, operand.size() - 1);
  const size_t bar = text.find('|');
  char* end = nullptr;
  fields.version = std::strtoull(text.c_str(), &end, 10);
  if (operand[0] == 'A') {
    fields.payload.append(text, bar + 1, std::string::npos);
  } else {
    fields.sum += std::strtoll(end + 1, nullptr, 10);
    fields.payload.clear();
  }
  return Render(key, fields);
}

class MixedOperator : public MergeOperator {
 public:
  const char* Name() const override { return "OverlapStressMixed"; }

  bool FullMergeV2(const MergeOperationInput& in,
                   MergeOperationOutput* out) const override {
    std::string value;
    const Slice* existing = in.existing_value;
    Slice so_far;
    for (const Slice& operand : in.operand_list) {
      value = Apply(in.key, existing, operand);
      so_far = value;
      existing = &so_far;
    }
    out->new_value = std::move(value);
    return true;
  }

  bool PartialMerge(const Slice& key, const Slice& left, const Slice& right,
                    std::string* new_value, Logger*) const override {
    if (right[0] == 'L' || (left[0] == 'A' && right[0] == 'C')) {
      *new_value = right.ToString();
      return true;
    }
    if (left[0] == 'L') {
      const Slice value(left.data() + 1, left.size() - 1);
      *new_value = "L" + Apply(key, &value, right);
      return true;
    }
    if (left[0] != right[0]) {
      return false;
    }
    const std::string a = left.ToString();
    const std::string b = right.ToString();
    if (left[0] == 'A') {
      *new_value = b.substr(0, b.find('|') + 1) + a.substr(a.find('|') + 1) +
                   b.substr(b.find('|') + 1);
    } else {
      const int64_t sum =
          std::strtoll(a.c_str() + a.find(':') + 1, nullptr, 10) +
          std::strtoll(b.c_str() + b.find(':') + 1, nullptr, 10);
      *new_value = b.substr(0, b.find(':') + 1) + std::to_string(sum) + "|";
    }
    return true;
  }
};

// Values with a payload that begins with 'F' are meant for the compaction
// filter. Returns false if `value` is none. *filtered: the result of the
// filter, nullptr if it removes the value.
bool FilteredForm(const Slice& key, const Slice& value, Value* filtered) {
  Fields fields = Parse(value);
  if (fields.payload.empty() || fields.payload[0] != 'F') {
    return false;
  }
  switch (fields.version % 3) {
    case 0:
      filtered->reset();
      break;
    case 1:
      fields.payload = "s";
      *filtered = std::make_shared<std::string>(Render(key, fields));
      break;
    default:
      fields.payload[0] = 'f';
      fields.payload.append(200, 'f');
      *filtered = std::make_shared<std::string>(Render(key, fields));
      break;
  }
  return true;
}

class StressFilter : public CompactionFilter {
 public:
  const char* Name() const override { return "OverlapStressFilter"; }

  Decision FilterV2(int /*level*/, const Slice& key, ValueType type,
                    const Slice& existing_value, std::string* new_value,
                    std::string* /*skip_until*/) const override {
    Value filtered;
    if (type != ValueType::kValue ||
        !FilteredForm(key, existing_value, &filtered)) {
      return Decision::kKeep;
    }
    if (filtered == nullptr) {
      return Decision::kRemove;
    }
    *new_value = *filtered;
    return Decision::kChangeValue;
  }
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  // Returns a number from 0 to n - 1.
  uint64_t Below(uint64_t n) { return engine_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  bool Percent(uint64_t p) { return Below(100) < p; }
  uint64_t Next() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// All versions of a key that a reader may still find.
class KeyHistory {
 public:
  struct Version {
    uint64_t step = 0;
    Value value;
    bool may_be_filtered = false;
    Value filtered;
    // A reader has found the filtered form, so later readers must find it, too.
    bool was_filtered = false;
  };

  // The oldest version that a reader may find.
  struct Floor {
    uint64_t step = 0;
    bool was_filtered = false;
  };

  // The steps [from, to) during which the key had the value.
  using Interval = std::pair<uint64_t, uint64_t>;

  KeyHistory() { versions_.emplace_back(); }

  void Begin(const Version& version) {
    std::lock_guard<std::mutex> lock(mutex_);
    versions_.push_back(version);
    if (versions_.size() > kMaxHistory) {
      versions_.pop_front();
    }
  }

  void Acknowledge(uint64_t step) {
    std::lock_guard<std::mutex> lock(mutex_);
    floor_ = std::max(floor_, step);
  }

  Floor GetFloor() const {
    std::lock_guard<std::mutex> lock(mutex_);
    Floor floor;
    floor.step = floor_;
    for (const Version& version : versions_) {
      if (version.step == floor_) {
        floor.was_filtered = version.was_filtered;
      }
    }
    return floor;
  }

  // Returns the version that a view of this moment shows.
  Version Latest() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return versions_.back();
  }

  // Returns true if `found` is a correct result for a reader that began at
  // `floor`. Adds the intervals of each version that it may be.
  bool Check(const Floor& floor, const Value& found,
             std::vector<Interval>* intervals, std::string* expected) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (versions_.front().step > floor.step) {
      // The reader slept so long that the version is not in the history.
      intervals->emplace_back(0, std::numeric_limits<uint64_t>::max());
      return true;
    }
    bool is_right = false;
    bool is_filtered = false;
    size_t num_matches = 0;
    Version* last = nullptr;
    for (size_t i = 0; i < versions_.size(); ++i) {
      Version& version = versions_[i];
      if (version.step < floor.step) {
        continue;
      }
      const bool same = Equal(version.value, found);
      const bool filtered =
          version.may_be_filtered && Equal(version.filtered, found);
      const bool must_be_filtered =
          floor.was_filtered && version.step == floor.step;
      if ((same && !must_be_filtered) || filtered) {
        const uint64_t next = i + 1 < versions_.size()
                                  ? versions_[i + 1].step
                                  : std::numeric_limits<uint64_t>::max();
        intervals->emplace_back(version.step, next);
        if (!is_right) {
          floor_ = std::max(floor_, version.step);
        }
        is_right = true;
        ++num_matches;
        is_filtered = filtered;
        last = &version;
      }
    }
    // The version was certainly filtered only if no other version has the same
    // value.
    if (num_matches == 1 && is_filtered) {
      last->was_filtered = true;
    }
    if (!is_right) {
      expected->clear();
      for (const Version& version : versions_) {
        expected->append(version.step == floor.step ? " [floor] " : " ");
        expected->append(Describe(version.value));
        if (version.may_be_filtered) {
          expected->append("/filtered:").append(Describe(version.filtered));
        }
      }
    }
    return is_right;
  }

  static bool Equal(const Value& a, const Value& b) {
    return a == nullptr || b == nullptr ? a == b : *a == *b;
  }

  static std::string Describe(const Value& value) {
    if (value == nullptr) {
      return "none";
    }
    return value->substr(0, 40) + "(" + std::to_string(value->size()) + ")";
  }

 private:
  mutable std::mutex mutex_;
  std::deque<Version> versions_;
  uint64_t floor_ = 0;
};

// The sync points where threads sleep. Pauses are long where a job has
// committed and has not yet updated the map, and where a reader has read the
// map and not yet taken its SuperVersion.
struct Pause {
  const char* point;
  uint32_t per_mille;
  uint32_t max_millis;
};

constexpr Pause kPauses[] = {
    // Jobs
    {"CompactionMapping::Publish", 150, 60},
    {"CompactionMapping::Settle", 300, 500},
    {"DeferredRemovals::Demote", 100, 100},
    {"MapTransaction::Publish:Inserted", 250, 60},
    {"MapTransaction::Settle", 150, 60},
    {"FlushMapping::Publish", 100, 30},
    {"FlushMapping::Settle", 200, 100},
    {"MappedFileRemoval::Prepared", 200, 60},
    {"DBStrata::BGWorkMapRemovals:Start", 200, 100},
    {"DBStrata::BGWorkRangeSweep:Start", 400, 800},
    {"DBStrata::RunRangeSweep:Begin", 200, 200},
    {"RangeDeletionSweep::Run:Check", 100, 20},
    {"DBStrata::DropEmptyBlobFiles:BeforeEdit", 200, 20},
    {"DBStrata::BeginDeltaFold:Entered", 200, 50},
    {"DBStrata::BeginDeltaFold:BeforeEdit", 200, 50},
    {"DBStrata::EndDeltaFold:BeforeSettle", 300, 200},
    {"DeltaFlush::Verify", 100, 30},
    {"DeltaMergeJob::Verify", 100, 30},
    {"DeltaGcJob::Run:Start", 100, 50},
    {"DeltaGcJob::Run:End", 100, 50},
    {"DBStrata::RunDeltaCollection:AfterEdit", 200, 50},
    {"DBStrata::RunDeltaMerge:AfterEdit", 200, 50},
    {"BlobGcStorage::Publish:BeforeSwap", 200, 50},
    {"BlobGcStorage::Publish:Swapped", 200, 50},
    {"BlobGcStorage::Settle", 200, 50},
    {"DBStrata::RunBlobGc:BeforeEdit", 200, 30},
    {"DBStrata::RunBlobGc:AfterEdit", 200, 50},
    {"FlushOrderGate::Park:Parked", 100, 10},
    // Readers
    {"MapPointRead::Start", 5, 30},
    {"MapPointRead::Start:LookedUp", 30, 150},
    {"MapPointRead::TakeDirect", 10, 60},
    {"MapPointRead::TakeNamed", 10, 60},
    {"MapPointRead::ConfirmAbsence", 10, 60},
    {"MapPointRead::EndAsIs", 5, 30},
    {"MapPointRead::Pinned", 5, 60},
    {"DBImpl::MultiCFSnapshot::BeforeCheckingSnapshot", 20, 100},
    {"DBImpl::MultiCFSnapshot::AfterRefSV", 20, 60},
    {"DBImpl::MultiCFSnapshot:AfterGetSeqNum1", 20, 60},
    {"DBStrata::RegisterReadBound:Registered", 20, 60},
    {"DBImpl::NewIterator:1", 20, 60},
    {"DBImpl::NewIterator:3", 20, 60},
    {"MapTailingIterator::Next:Return", 10, 30},
    {"MapValueIterator::Kept", 5, 30},
};

class Stress {
 public:
  explicit Stress(const OverlapStressOptions& options)
      : options_(options),
        start_(Clock::now()),
        end_(start_ + std::chrono::microseconds(
                          static_cast<int64_t>(options.seconds * 1e6))) {
    for (auto& family : histories_) {
      family = std::vector<std::vector<std::unique_ptr<KeyHistory>>>(
          options_.writers);
      for (auto& keys : family) {
        for (uint32_t i = 0; i < options_.keys; ++i) {
          keys.emplace_back(new KeyHistory);
        }
      }
    }
    steps_.resize(options_.writers, 0);
  }

  OverlapStressResult Run() {
    MakeOptions();
    DestroyDB(options_.path, db_options_).PermitUncheckedError();
    StartPauses();
    uint64_t round = 0;
    while (!IsOver()) {
      if (!Open()) {
        break;
      }
      CheckAll("after open");
      RunRound(round++);
      CheckAll("at rest");
      Close();
    }
    StopPauses();
    if (result_.findings.empty()) {
      DestroyDB(options_.path, db_options_, Descriptors())
          .PermitUncheckedError();
    }
    result_.writes = writes_;
    result_.reads = reads_;
    result_.views = views_;
    result_.jobs = jobs_;
    result_.pauses = pauses_;
    const auto count = [this](Tickers ticker) {
      return db_options_.statistics->getTickerCount(ticker);
    };
    result_.restarts = count(BLOB_MAP_READ_RESTART);
    result_.renamed = count(BLOB_MAP_RENAMED);
    result_.swept = count(BLOB_MAP_RANGE_DELETED);
    result_.folded = count(DELTA_OPERANDS_FOLDED);
    return result_;
  }

 private:
  // The contents at one moment, and a reader of these.
  struct View {
    // [family][writer][index]; if the view is of one writer only, those of the
    // others are empty.
    std::array<std::vector<std::vector<KeyHistory::Version>>, kNumFamilies>
        expected;
    size_t first_writer = 0;
    size_t last_writer = 0;
    const Snapshot* snapshot = nullptr;
    std::array<std::unique_ptr<Iterator>, kNumFamilies> iterators;
    Clock::time_point until;
    bool is_over = false;
    std::string what;
  };

  // --- the DB

  void MakeOptions() {
    Dice dice(options_.seed * 7919 + 1);
    Options& o = db_options_;
    o.create_if_missing = true;
    o.create_missing_column_families = true;
    o.max_background_jobs = 8;
    o.max_subcompactions = static_cast<uint32_t>(1 + dice.Below(3));
    o.level0_slowdown_writes_trigger = 40;
    o.level0_stop_writes_trigger = 60;
    o.level0_file_num_compaction_trigger = static_cast<int>(2 + dice.Below(3));
    o.write_buffer_size = size_t{16384} << dice.Below(4);
    o.arena_block_size = 4096;
    o.max_write_buffer_number = static_cast<int>(3 + dice.Below(4));
    o.target_file_size_base = uint64_t{8192} << dice.Below(3);
    o.target_file_size_multiplier = 1;
    o.max_bytes_for_level_base = uint64_t{32768} << dice.Below(3);
    o.max_bytes_for_level_multiplier = 4;
    o.level_compaction_dynamic_level_bytes = dice.OneIn(2);
    o.num_levels = static_cast<int>(4 + dice.Below(4));
    if (dice.OneIn(4)) {
      o.compaction_style = kCompactionStyleUniversal;
    }
    o.bottommost_file_compaction_delay = 0;
    o.compression = kNoCompression;
    o.merge_operator = std::make_shared<MixedOperator>();
    o.atomic_flush = dice.OneIn(4);
    o.enable_pipelined_write = !o.atomic_flush && dice.OneIn(3);
    o.info_log_level = INFO_LEVEL;
    o.statistics = CreateDBStatistics();
    o.max_open_files = dice.OneIn(3) ? 30 : -1;
    o.max_successive_merges = dice.OneIn(6) ? 3 : 0;
    if (options_.compaction_filter) {
      filter_.reset(new StressFilter);
      o.compaction_filter = filter_.get();
    }
    BlockBasedTableOptions table;
    table.block_size = 1024;
    table.block_cache = NewLRUCache(size_t{64 << 10} << (3 * dice.Below(3)));
    if (!dice.OneIn(4)) {
      table.filter_policy.reset(NewBloomFilterPolicy(10));
    }
    table.cache_index_and_filter_blocks = dice.OneIn(2);
    o.table_factory.reset(NewBlockBasedTableFactory(table));
    o.enable_blob_files = options_.address_map || dice.OneIn(2);
    o.min_blob_size = kMinBlobSize;
    o.blob_file_size = uint64_t{16384} << dice.Below(4);
    if (dice.OneIn(3)) {
      o.blob_cache = NewLRUCache(1 << 20);
    }
    o.enable_blob_address_map = options_.address_map;
    o.enable_lsm_bypass = options_.lsm_bypass;
    if (!options_.address_map) {
      o.enable_blob_garbage_collection = o.enable_blob_files && dice.OneIn(2);
      o.blob_garbage_collection_age_cutoff = 0.5;
    } else {
      o.blob_gc_space_amp_limit = dice.OneIn(2) ? 1.1 : 1.4;
    }
    o.enable_delta_separation = options_.delta_separation;
    // Folds only happen in full buckets, when there are no more buckets.
    o.delta_bucket_size = uint64_t{4096} << dice.Below(2);
    o.delta_max_buckets = dice.OneIn(4) ? 64 : 4;
    o.enable_merged_value_cache = options_.merged_values;
    o.merged_value_cache_size = dice.OneIn(2) ? (1 << 20) : (4 << 20);
  }

  std::vector<ColumnFamilyDescriptor> Descriptors() const {
    return {ColumnFamilyDescriptor(kDefaultColumnFamilyName, db_options_),
            ColumnFamilyDescriptor("second", db_options_)};
  }

  bool Open() {
    std::vector<ColumnFamilyHandle*> handles;
    const Status s =
        DB::Open(db_options_, options_.path, Descriptors(), &handles, &db_);
    if (!s.ok()) {
      Report("ERROR DB::Open(): " + s.ToString());
      return false;
    }
    for (size_t i = 0; i < kNumFamilies; ++i) {
      families_[i] = handles[i];
    }
    return true;
  }

  void Close() {
    for (ColumnFamilyHandle* handle : families_) {
      Must(db_->DestroyColumnFamilyHandle(handle), "close a family");
    }
    Must(db_->Close(), "close");
    db_.reset();
  }

  // --- findings

  double Seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  bool IsOver() const { return is_failed_ || Clock::now() >= end_; }
  bool IsRoundOver() const { return round_over_ || IsOver(); }

  void Report(const std::string& text) {
    std::lock_guard<std::mutex> lock(findings_mutex_);
    const double seconds = Seconds();
    ++num_findings_;
    if (result_.findings.empty()) {
      result_.first_finding_seconds = seconds;
    }
    if (result_.findings.size() < options_.max_findings) {
      char time[32];
      snprintf(time, sizeof(time), "%.3f s: ", seconds);
      result_.findings.push_back(time + text);
      fprintf(stderr, "%s\n", result_.findings.back().c_str());
    }
    if (result_.findings.size() >= options_.max_findings) {
      is_failed_ = true;
    }
  }

  void Must(const Status& s, const char* what) {
    if (!s.ok()) {
      Report(std::string("ERROR ") + what + ": " + s.ToString());
    }
  }

  // --- pauses

  void StartPauses() {
    if (!options_.pauses) {
      return;
    }
#ifndef NDEBUG
    for (const Pause& pause : kPauses) {
      SyncPoint::GetInstance()->SetCallBack(pause.point, [this, &pause](void*) {
        thread_local Dice dice(options_.seed + std::hash<std::thread::id>()(
                                                   std::this_thread::get_id()));
        if (!no_pauses_ && dice.Below(1000) < pause.per_mille) {
          ++pauses_;
          std::this_thread::sleep_for(std::chrono::microseconds(
              dice.Below(uint64_t{pause.max_millis} * 1000)));
        }
      });
    }
    SyncPoint::GetInstance()->EnableProcessing();
#endif
  }

  void StopPauses() {
#ifndef NDEBUG
    if (options_.pauses) {
      SyncPoint::GetInstance()->DisableProcessing();
      SyncPoint::GetInstance()->ClearAllCallBacks();
    }
#endif
  }

  // --- rounds

  void RunRound(uint64_t round) {
    round_over_ = false;
    no_pauses_ = false;
    std::vector<std::thread> threads;
    uint64_t seed = (options_.seed * 1000003 + round) * 64;
    for (uint32_t i = 0; i < options_.writers; ++i) {
      threads.emplace_back([this, i, s = ++seed] { WriterThread(i, s); });
    }
    for (uint32_t i = 0; i < options_.readers; ++i) {
      threads.emplace_back([this, s = ++seed] { ReaderThread(s); });
    }
    threads.emplace_back([this, s = ++seed] { ViewThread(s); });
    threads.emplace_back([this, s = ++seed] { CompactionThread(s); });
    threads.emplace_back([this, s = ++seed] { OvertakingThread(s); });
    threads.emplace_back([this, s = ++seed] { FlushThread(s); });
    if (options_.address_map) {
      threads.emplace_back([this, s = ++seed] { GarbageThread(s); });
    }
    Dice dice(++seed);
    const auto end =
        Clock::now() + std::chrono::milliseconds(8000 + dice.Below(12000));
    while (Clock::now() < end && !IsOver()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      if (dice.OneIn(8)) {
        // Without old readers most values become direct; with them few do. Both
        // cases have to alternate.
        max_views_ = dice.OneIn(2) ? dice.Below(2) : dice.Below(6);
        hot_ = dice.Below(options_.keys);
      }
    }
    round_over_ = true;
    for (std::thread& thread : threads) {
      thread.join();
    }
    no_pauses_ = true;
  }

  void Rest(Dice* dice, uint64_t max_millis) {
    std::this_thread::sleep_for(
        std::chrono::microseconds(dice->Below(max_millis * 1000 + 1)));
  }

  // --- writing

  struct WriterState {
    size_t writer = 0;
    Dice dice;
    std::deque<std::unique_ptr<View>> views;
    std::array<std::unique_ptr<Iterator>, kNumFamilies> tailing;
    explicit WriterState(uint64_t seed) : dice(seed) {}
  };

  size_t PickIndex(Dice* dice) const {
    // Half of the operations are on a few keys.
    return dice->OneIn(2) ? dice->Below(options_.keys)
                          : (hot_ + dice->Below(16)) % options_.keys;
  }

  std::string Payload(Dice* dice, bool is_large) const {
    const size_t size = is_large
                            ? 100 + dice->Below(dice->OneIn(8) ? 1500 : 300)
                            : dice->Below(40);
    return std::string(size, static_cast<char>('g' + dice->Below(20)));
  }

  // A change of one key.
  struct Change {
    size_t family;
    size_t index;
    KeyHistory::Version version;
  };

  Value Current(size_t family, size_t writer, size_t index) const {
    return histories_[family][writer][index]->Latest().value;
  }

  void AddWrite(WriterState* state, size_t family, size_t index, uint64_t step,
                WriteBatch* batch, std::vector<Change>* changes) {
    Dice& dice = state->dice;
    const std::string key = KeyName(state->writer, index);
    ColumnFamilyHandle* const handle = families_[family];
    const Value old = Current(family, state->writer, index);
    Change change{family, index, {}};
    KeyHistory::Version& version = change.version;
    version.step = step;
    Fields fields;
    fields.version = step;
    Status s;
    const KeyUse use = UseOf(index);
    if (use == KeyUse::kSingleDelete) {
      if (old == nullptr) {
        fields.payload = Payload(&dice, !dice.OneIn(4));
        version.value = std::make_shared<std::string>(Render(key, fields));
        s = batch->Put(handle, key, *version.value);
      } else {
        s = batch->SingleDelete(handle, key);
      }
    } else if (use == KeyUse::kFiltered || !options_.merges || old == nullptr ||
               !dice.Percent(options_.delta_separation ? 80 : 55)) {
      if (dice.Percent(25)) {
        s = batch->Delete(handle, key);
      } else {
        fields.payload = Payload(&dice, !dice.OneIn(4));
        if (use == KeyUse::kFiltered && options_.compaction_filter &&
            dice.OneIn(2)) {
          fields.payload = "F" + fields.payload;
        }
        version.value = std::make_shared<std::string>(Render(key, fields));
        if (options_.compaction_filter) {
          version.may_be_filtered =
              FilteredForm(key, *version.value, &version.filtered);
        }
        if (use == KeyUse::kAny && dice.OneIn(20)) {
          s = batch->PutEntity(
              handle, key,
              WideColumns{{kDefaultWideColumnName, *version.value},
                          {"x", "1"}});
        } else {
          s = batch->Put(handle, key, *version.value);
        }
      }
    } else {
      std::string operand;
      const uint64_t kind = dice.Below(10);
      if (kind < 5 && Parse(*old).payload.size() < kMaxPayload) {
        operand =
            "A" + std::to_string(step) + "|" + Payload(&dice, dice.OneIn(3));
      } else if (kind < 8) {
        operand = "C" + std::to_string(step) + ":" +
                  std::to_string(1 + dice.Below(9)) + "|";
      } else {
        fields.payload = Payload(&dice, dice.OneIn(2));
        operand = "L" + Render(key, fields);
      }
      const Slice existing(*old);
      version.value =
          std::make_shared<std::string>(Apply(key, &existing, operand));
      s = batch->Merge(handle, key, operand);
    }
    Must(s, "add to a batch");
    changes->push_back(std::move(change));
  }

  void Write(WriterState* state) {
    Dice& dice = state->dice;
    WriteBatch batch;
    std::vector<Change> changes;
    const size_t family = dice.Below(kNumFamilies);
    if (options_.range_deletions && dice.OneIn(150)) {
      const size_t from = PickIndex(&dice);
      DeleteKeys(state, family, from,
                 std::min<size_t>(
                     from + 1 + dice.Below(dice.OneIn(4) ? options_.keys : 12),
                     options_.keys));
      return;
    }
    const uint64_t step = ++steps_[state->writer];
    if (dice.OneIn(10)) {
      // Writes several keys, the same ones in both families.
      std::set<size_t> indexes;
      for (uint64_t n = 1 + dice.Below(4); n > 0; --n) {
        indexes.insert(PickIndex(&dice));
      }
      for (const size_t index : indexes) {
        for (size_t f = 0; f < kNumFamilies; ++f) {
          AddWrite(state, f, index, step, &batch, &changes);
        }
      }
    } else {
      AddWrite(state, family, PickIndex(&dice), step, &batch, &changes);
    }
    Commit(state->writer, &batch, changes);
  }

  void Commit(size_t writer, WriteBatch* batch,
              const std::vector<Change>& changes) {
    std::shared_lock<std::shared_mutex> no_view(views_mutex_);
    for (const Change& change : changes) {
      histories_[change.family][writer][change.index]->Begin(change.version);
    }
    Must(db_->Write(WriteOptions(), batch), "write");
    for (const Change& change : changes) {
      histories_[change.family][writer][change.index]->Acknowledge(
          change.version.step);
    }
    ++writes_;
  }

  // Removes a value under a reader, and writes it again: the older value
  // becomes direct below its tombstone, or stays next to a range deletion.
  void RemoveUnderReader(WriterState* state) {
    Dice& dice = state->dice;
    const size_t family = dice.Below(kNumFamilies);
    const size_t from = PickIndex(&dice);
    const size_t to =
        std::min<size_t>(from + 1 + dice.Below(12), options_.keys);
    const bool is_reader_first = dice.OneIn(2);
    std::unique_ptr<View> view;
    if (is_reader_first) {
      view = NewView(&dice, state->writer, state->writer + 1);
    }
    for (size_t i = from; i < to; ++i) {
      WriteKey(state, family, i);
    }
    if (dice.OneIn(2)) {
      FlushFamily(family, /*wait=*/true);
    }
    if (view == nullptr) {
      view = NewView(&dice, state->writer, state->writer + 1);
    } else if (dice.OneIn(2)) {
      EndView(view.get());
    }
    if (options_.range_deletions && dice.OneIn(2)) {
      DeleteKeys(state, family, from, to);
    } else {
      for (size_t i = from; i < to; ++i) {
        if (UseOf(i) != KeyUse::kSingleDelete) {
          DeleteKey(state, family, i);
        }
      }
    }
    if (!dice.OneIn(4)) {
      FlushFamily(family, /*wait=*/true);
    }
    CheckView(view.get(), &dice);
    if (dice.OneIn(2)) {
      EndView(view.get());
    } else {
      state->views.push_back(std::move(view));
    }
    if (dice.OneIn(2)) {
      CompactSomeFile(family, &dice, {});
    }
    Rest(&dice, dice.OneIn(2) ? 5 : 300);
    for (size_t i = from; i < to; ++i) {
      if (!dice.OneIn(4)) {
        WriteKey(state, family, i);
      }
    }
  }

  void WriteKey(WriterState* state, size_t family, size_t index) {
    WriteBatch batch;
    std::vector<Change> changes;
    AddWrite(state, family, index, ++steps_[state->writer], &batch, &changes);
    Commit(state->writer, &batch, changes);
  }

  void DeleteKey(WriterState* state, size_t family, size_t index) {
    WriteBatch batch;
    Must(batch.Delete(families_[family], KeyName(state->writer, index)),
         "add to a batch");
    Change change{family, index, {}};
    change.version.step = ++steps_[state->writer];
    Commit(state->writer, &batch, {change});
  }

  void DeleteKeys(WriterState* state, size_t family, size_t from, size_t to) {
    WriteBatch batch;
    Must(batch.DeleteRange(families_[family], KeyName(state->writer, from),
                           KeyName(state->writer, to)),
         "add to a batch");
    const uint64_t step = ++steps_[state->writer];
    std::vector<Change> changes;
    for (size_t i = from; i < to; ++i) {
      changes.push_back({family, i, {}});
      changes.back().version.step = step;
    }
    Commit(state->writer, &batch, changes);
  }

  void WriterThread(size_t writer, uint64_t seed) {
    WriterState state(seed);
    state.writer = writer;
    while (!IsRoundOver()) {
      for (uint64_t n = state.dice.Below(20); n > 0; --n) {
        Write(&state);
      }
      switch (state.dice.Below(8)) {
        case 0:
        case 1:
        case 2:
          PointReads(writer, &state.dice);
          break;
        case 3:
          ReadTailing(&state);
          break;
        case 4:
          if (state.views.size() < max_views_ && state.dice.OneIn(4)) {
            state.views.push_back(NewView(&state.dice, writer, writer + 1));
          }
          break;
        case 5:
          TendViews(&state.views, &state.dice);
          break;
        case 6:
          Rest(&state.dice, 3);
          break;
        default:
          if (state.dice.OneIn(8)) {
            RemoveUnderReader(&state);
          }
          break;
      }
    }
    EndViews(&state.views, &state.dice);
  }

  // --- point reads

  ReadOptions RandomReadOptions(Dice* dice) const {
    ReadOptions read_options;
    read_options.fill_cache = !dice->OneIn(4);
    return read_options;
  }

  struct PointRead {
    size_t family;
    size_t writer;
    size_t index;
    KeyHistory::Floor floor;
    Status status;
    Value found;
  };

  // Reads some keys of one writer and checks the answers.
  void PointReads(size_t writer, Dice* dice) {
    const uint64_t kind = dice->Below(6);
    const size_t n = kind < 3 ? 1 : 2 + dice->Below(12);
    const size_t family = dice->Below(kNumFamilies);
    std::vector<PointRead> reads(n);
    std::vector<std::string> keys(n);
    std::vector<Slice> slices(n);
    std::vector<ColumnFamilyHandle*> handles(n);
    for (size_t i = 0; i < n; ++i) {
      PointRead& read = reads[i];
      read.family = kind == 5 ? dice->Below(kNumFamilies) : family;
      read.writer = writer;
      read.index = PickIndex(dice);
      keys[i] = KeyName(writer, read.index);
      slices[i] = keys[i];
      handles[i] = families_[read.family];
      read.floor = histories_[read.family][writer][read.index]->GetFloor();
    }
    const ReadOptions read_options = RandomReadOptions(dice);
    const char* what = "Get()";
    if (n == 1) {
      if (dice->OneIn(8)) {
        what = "GetEntity()";
        PinnableWideColumns columns;
        reads[0].status =
            db_->GetEntity(read_options, handles[0], slices[0], &columns);
        if (reads[0].status.ok()) {
          reads[0].found = std::make_shared<std::string>(
              columns.columns()[0].value().ToString());
        }
      } else {
        PinnableSlice value;
        reads[0].status = db_->Get(read_options, handles[0], slices[0], &value);
        if (reads[0].status.ok()) {
          reads[0].found = std::make_shared<std::string>(value.ToString());
        }
      }
    } else {
      std::vector<PinnableSlice> values(n);
      std::vector<Status> statuses(n);
      if (kind == 5) {
        what = "MultiGet() of two families";
        db_->MultiGet(read_options, n, handles.data(), slices.data(),
                      values.data(), statuses.data());
      } else {
        what = "MultiGet()";
        db_->MultiGet(read_options, families_[family], n, slices.data(),
                      values.data(), statuses.data());
      }
      for (size_t i = 0; i < n; ++i) {
        reads[i].status = statuses[i];
        if (statuses[i].ok()) {
          reads[i].found = std::make_shared<std::string>(values[i].ToString());
        }
      }
    }
    CheckPointReads(what, &reads);
  }

  void CheckPointReads(const char* what, std::vector<PointRead>* reads) {
    reads_ += reads->size();
    std::vector<std::vector<KeyHistory::Interval>> all;
    bool is_right = true;
    for (PointRead& read : *reads) {
      const std::string name = Name(read.family, read.writer, read.index);
      if (!read.status.ok() && !read.status.IsNotFound()) {
        Report(std::string("ERROR ") + what + " of " + name + ": " +
               read.status.ToString());
        is_right = false;
        continue;
      }
      std::vector<KeyHistory::Interval> intervals;
      std::string expected;
      if (!histories_[read.family][read.writer][read.index]->Check(
              read.floor, read.found, &intervals, &expected)) {
        Report(std::string("WRONG ") + what + " of " + name + " from step " +
               std::to_string(read.floor.step) +
               (read.floor.was_filtered ? " (filtered)" : "") + ": found " +
               KeyHistory::Describe(read.found) + "; history:" + expected);
        is_right = false;
      }
      all.push_back(std::move(intervals));
    }
    if (is_right && reads->size() > 1 && !HaveCommonStep(all)) {
      std::string text =
          std::string("WRONG ") + what + ": the answers are not of one moment:";
      for (size_t i = 0; i < reads->size(); ++i) {
        const PointRead& read = (*reads)[i];
        text += " " + Name(read.family, read.writer, read.index) + "=" +
                KeyHistory::Describe(read.found);
      }
      Report(text);
    }
  }

  static bool HaveCommonStep(
      const std::vector<std::vector<KeyHistory::Interval>>& all) {
    std::set<uint64_t> steps;
    for (const auto& intervals : all) {
      for (const auto& interval : intervals) {
        steps.insert(interval.first);
      }
    }
    for (const uint64_t step : steps) {
      bool fits = true;
      for (const auto& intervals : all) {
        fits = fits && std::any_of(intervals.begin(), intervals.end(),
                                   [step](const KeyHistory::Interval& i) {
                                     return i.first <= step && step < i.second;
                                   });
      }
      if (fits) {
        return true;
      }
    }
    return false;
  }

  static std::string Name(size_t family, size_t writer, size_t index) {
    return std::to_string(family) + "/" + KeyName(writer, index);
  }

  void ReaderThread(uint64_t seed) {
    Dice dice(seed);
    while (!IsRoundOver()) {
      PointReads(dice.Below(options_.writers), &dice);
      if (dice.OneIn(50)) {
        Rest(&dice, 2);
      }
    }
  }

  // --- views

  // Returns a view of the keys of the writers from first to last - 1.
  // REQUIRES: these are the calling writer, or all writers while none writes.
  std::unique_ptr<View> NewView(Dice* dice, size_t first, size_t last) {
    auto view = std::make_unique<View>();
    view->first_writer = first;
    view->last_writer = last;
    view->until =
        Clock::now() + std::chrono::milliseconds(500 + dice->Below(1500));
    if (dice->OneIn(3)) {
      view->what = "snapshot";
      view->snapshot = db_->GetSnapshot();
    } else {
      view->what = "iterator";
      for (size_t f = 0; f < kNumFamilies; ++f) {
        view->iterators[f].reset(
            db_->NewIterator(IteratorOptions(dice), families_[f]));
      }
    }
    Record(view.get());
    return view;
  }

  ReadOptions IteratorOptions(Dice* dice) const {
    ReadOptions read_options = RandomReadOptions(dice);
    read_options.pin_data = dice->OneIn(6);
    if (dice->OneIn(3)) {
      read_options.blob_prefetch_count = dice->OneIn(2) ? 0 : 16;
    }
    if (dice->OneIn(4)) {
      read_options.readahead_size = 4096;
    }
    return read_options;
  }

  void Record(View* view) const {
    for (size_t f = 0; f < kNumFamilies; ++f) {
      view->expected[f].clear();
      view->expected[f].resize(options_.writers);
      for (size_t w = view->first_writer; w < view->last_writer; ++w) {
        for (uint32_t i = 0; i < options_.keys; ++i) {
          view->expected[f][w].push_back(histories_[f][w][i]->Latest());
        }
      }
    }
  }

  void TendViews(std::deque<std::unique_ptr<View>>* views, Dice* dice) {
    if (views->empty()) {
      return;
    }
    const auto now = Clock::now();
    for (auto it = views->begin(); it != views->end();) {
      if ((*it)->until <= now) {
        CheckView(it->get(), dice);
        EndView(it->get());
        it = views->erase(it);
      } else {
        ++it;
      }
    }
    if (!views->empty()) {
      View* const view = (*views)[dice->Below(views->size())].get();
      if (view->iterators[0] != nullptr && dice->OneIn(6) &&
          view->last_writer == view->first_writer + 1) {
        for (auto& iterator : view->iterators) {
          Must(iterator->Refresh(), "refresh");
        }
        Record(view);
      }
      CheckView(view, dice);
    }
  }

  void EndViews(std::deque<std::unique_ptr<View>>* views, Dice* dice) {
    for (auto& view : *views) {
      CheckView(view.get(), dice);
      EndView(view.get());
    }
    views->clear();
  }

  void EndView(View* view) {
    for (auto& iterator : view->iterators) {
      iterator.reset();
    }
    if (view->snapshot != nullptr) {
      db_->ReleaseSnapshot(view->snapshot);
      view->snapshot = nullptr;
    }
    view->is_over = true;
  }

  void CheckView(View* view, Dice* dice) {
    if (view->is_over) {
      return;
    }
    ++views_;
    const uint64_t before = num_findings_;
    ReadView(view, dice);
    if (num_findings_ != before) {
      view->until = Clock::now();  // Prevents repetitions of the finding.
    }
  }

  void ReadView(View* view, Dice* dice) {
    const size_t family = dice->Below(kNumFamilies);
    const size_t writer = view->first_writer +
                          dice->Below(view->last_writer - view->first_writer);
    const auto& expected = view->expected[family][writer];
    if (view->snapshot != nullptr && dice->OneIn(2)) {
      ReadAtSnapshot(*view, family, writer, dice);
      return;
    }
    std::unique_ptr<Iterator> own;
    Iterator* iterator = view->iterators[family].get();
    if (iterator == nullptr) {
      ReadOptions read_options = IteratorOptions(dice);
      read_options.snapshot = view->snapshot;
      own.reset(db_->NewIterator(read_options, families_[family]));
      iterator = own.get();
    }
    const size_t size = expected.size();
    switch (dice->Below(4)) {
      case 0:
        Walk(view->what + ", forward", iterator, family, writer, expected, 0,
             size, true);
        break;
      case 1:
        Walk(view->what + ", backward", iterator, family, writer, expected, 0,
             size, false);
        break;
      default: {
        const size_t from = PickIndex(dice);
        const size_t n = 1 + dice->Below(10);
        if (dice->OneIn(2)) {
          Walk(view->what + ", Seek()", iterator, family, writer, expected,
               from, std::min(size, from + n), true);
        } else {
          Walk(view->what + ", SeekForPrev()", iterator, family, writer,
               expected, from < n ? 0 : from - n, from + 1, false);
        }
        break;
      }
    }
  }

  static bool Fits(const KeyHistory::Version& version, const Value& found) {
    return KeyHistory::Equal(version.value, found) ||
           (version.may_be_filtered &&
            KeyHistory::Equal(version.filtered, found));
  }

  static std::string Expected(const KeyHistory::Version& version) {
    return KeyHistory::Describe(version.value) +
           (version.may_be_filtered
                ? " or " + KeyHistory::Describe(version.filtered)
                : "");
  }

  // Checks what the iterator shows of keys from `from` to `to` - 1. Returns the
  // index of the key that is wrong, or `to`.
  size_t Walk(const std::string& what, Iterator* iterator, size_t family,
              size_t writer, const std::vector<KeyHistory::Version>& expected,
              size_t from, size_t to, bool is_forward) {
    std::map<std::string, Value> found;
    const std::string first = KeyName(writer, from);
    const std::string last = KeyName(writer, to - 1);
    if (is_forward) {
      for (iterator->Seek(first);
           iterator->Valid() && iterator->key().compare(last) <= 0;
           iterator->Next()) {
        Take(what, iterator, &found);
      }
    } else {
      for (iterator->SeekForPrev(last);
           iterator->Valid() && iterator->key().compare(first) >= 0;
           iterator->Prev()) {
        Take(what, iterator, &found);
      }
    }
    if (!iterator->status().ok()) {
      Report("ERROR " + what + " of " + Name(family, writer, from) + " to " +
             Name(family, writer, to - 1) + ": " +
             iterator->status().ToString());
      return to;
    }
    for (size_t i = from; i < to; ++i) {
      const auto it = found.find(KeyName(writer, i));
      const Value value = it == found.end() ? nullptr : it->second;
      if (!Fits(expected[i], value)) {
        Report("WRONG " + what + " at " + Name(family, writer, i) + ": found " +
               KeyHistory::Describe(value) + " instead of " +
               Expected(expected[i]));
        return i;
      }
    }
    return to;
  }

  void Take(const std::string& what, Iterator* iterator,
            std::map<std::string, Value>* found) {
    const std::string key = iterator->key().ToString();
    if (!found
             ->emplace(key, std::make_shared<std::string>(
                                iterator->value().ToString()))
             .second) {
      Report("WRONG " + what + " shows " + key + " twice");
    }
  }

  void ReadAtSnapshot(const View& view, size_t family, size_t writer,
                      Dice* dice) {
    ReadOptions read_options = RandomReadOptions(dice);
    read_options.snapshot = view.snapshot;
    const size_t n = dice->OneIn(2) ? 1 : 2 + dice->Below(16);
    const bool is_cross = dice->OneIn(2);
    std::vector<std::string> keys(n);
    std::vector<Slice> slices(n);
    std::vector<size_t> indexes(n);
    std::vector<size_t> of(n, family);
    std::vector<ColumnFamilyHandle*> handles(n);
    std::vector<PinnableSlice> values(n);
    std::vector<Status> statuses(n);
    for (size_t i = 0; i < n; ++i) {
      indexes[i] = PickIndex(dice);
      keys[i] = KeyName(writer, indexes[i]);
      slices[i] = keys[i];
      if (is_cross) {
        of[i] = dice->Below(kNumFamilies);
      }
      handles[i] = families_[of[i]];
    }
    std::string what = "Get()";
    if (n == 1) {
      statuses[0] = db_->Get(read_options, handles[0], slices[0], &values[0]);
    } else if (is_cross) {
      what = "MultiGet() of two families";
      db_->MultiGet(read_options, n, handles.data(), slices.data(),
                    values.data(), statuses.data());
    } else {
      what = "MultiGet()";
      db_->MultiGet(read_options, families_[family], n, slices.data(),
                    values.data(), statuses.data());
    }
    for (size_t i = 0; i < n; ++i) {
      const std::string name = Name(of[i], writer, indexes[i]);
      Value value;
      if (statuses[i].ok()) {
        value = std::make_shared<std::string>(values[i].ToString());
      } else if (!statuses[i].IsNotFound()) {
        Report("ERROR " + what + " at a snapshot of " + name + ": " +
               statuses[i].ToString());
        continue;
      }
      const KeyHistory::Version& version =
          view.expected[of[i]][writer][indexes[i]];
      if (!Fits(version, value)) {
        Report("WRONG " + what + " at a snapshot of " + name + ": found " +
               KeyHistory::Describe(value) + " instead of " +
               Expected(version));
      }
    }
  }

  // RocksDB's tailing iterators support neither range deletions nor blob files
  // without a map.
  void ReadTailing(WriterState* state) {
    if (options_.range_deletions ||
        (db_options_.enable_blob_files && !options_.address_map)) {
      return;
    }
    Dice& dice = state->dice;
    const size_t family = dice.Below(kNumFamilies);
    auto& iterator = state->tailing[family];
    if (iterator == nullptr || dice.OneIn(50)) {
      ReadOptions read_options;
      read_options.tailing = true;
      iterator.reset(db_->NewIterator(read_options, families_[family]));
    }
    std::vector<KeyHistory::Version> expected;
    for (uint32_t i = 0; i < options_.keys; ++i) {
      expected.push_back(histories_[family][state->writer][i]->Latest());
    }
    const size_t from = PickIndex(&dice);
    const size_t to =
        std::min<size_t>(options_.keys, from + 1 + dice.Below(10));
    const size_t wrong = Walk("tailing iterator", iterator.get(), family,
                              state->writer, expected, from, to, true);
    if (wrong < to) {
      ReportTailing(iterator.get(), family, state->writer, from, wrong);
    }
  }

  // Adds what other reads show of the key that a tailing iterator shows wrong,
  // when the iterator has begun at the key `from`.
  void ReportTailing(Iterator* iterator, size_t family, size_t writer,
                     size_t from, size_t wrong) {
    const std::string key = KeyName(writer, wrong);
    const auto shown = [&key](Iterator* iter) {
      std::string number;
      iter->GetProperty("rocksdb.iterator.super-version-number", &number)
          .PermitUncheckedError();
      iter->Seek(key);
      return (iter->Valid() && iter->key() == key
                  ? KeyHistory::Describe(
                        std::make_shared<std::string>(iter->value().ToString()))
                  : "nothing") +
             ", SuperVersion " + number;
    };
    std::string value;
    const Status s = db_->Get(ReadOptions(), families_[family], key, &value);
    std::string text = "The iterator began at " + Name(family, writer, from) +
                       ". Get(): " + s.ToString() + " " + value.substr(0, 40);
    text += "; the same iterator after a Seek(): " + shown(iterator);
    for (const bool tailing : {true, false}) {
      ReadOptions read_options;
      read_options.tailing = tailing;
      const std::unique_ptr<Iterator> other(
          db_->NewIterator(read_options, families_[family]));
      text += std::string(tailing ? "; a new tailing iterator: "
                                  : "; a new iterator: ") +
              shown(other.get());
    }
    Report(text);
  }

  // Creates and checks views of all keys.
  void ViewThread(uint64_t seed) {
    Dice dice(seed);
    std::deque<std::unique_ptr<View>> views;
    while (!IsRoundOver()) {
      if (views.size() < max_views_ && dice.OneIn(20)) {
        std::unique_lock<std::shared_mutex> no_write(views_mutex_);
        views.push_back(NewView(&dice, 0, options_.writers));
      }
      TendViews(&views, &dice);
      Rest(&dice, 20);
    }
    EndViews(&views, &dice);
  }

  // Checks all keys, by all kinds of reads.
  // REQUIRES: no thread writes.
  void CheckAll(const std::string& when) {
    for (size_t f = 0; f < kNumFamilies; ++f) {
      std::unique_ptr<Iterator> iterator(
          db_->NewIterator(ReadOptions(), families_[f]));
      for (size_t w = 0; w < options_.writers; ++w) {
        std::vector<KeyHistory::Version> expected;
        std::vector<PointRead> reads;
        for (uint32_t i = 0; i < options_.keys; ++i) {
          expected.push_back(histories_[f][w][i]->Latest());
          PointRead read{f, w, i, histories_[f][w][i]->GetFloor(), {}, {}};
          std::string value;
          read.status =
              db_->Get(ReadOptions(), families_[f], KeyName(w, i), &value);
          if (read.status.ok()) {
            read.found = std::make_shared<std::string>(value);
          }
          reads.push_back(std::move(read));
        }
        CheckPointReads(("Get() " + when).c_str(), &reads);
        Walk("iterator " + when, iterator.get(), f, w, expected, 0,
             options_.keys, true);
      }
    }
  }

  // --- jobs

  void CompactionThread(uint64_t seed) {
    Dice dice(seed);
    while (!IsRoundOver()) {
      Rest(&dice, 600);
      CompactRangeOptions compact;
      compact.exclusive_manual_compaction = false;
      compact.bottommost_level_compaction =
          dice.OneIn(2) ? BottommostLevelCompaction::kForce
                        : BottommostLevelCompaction::kForceOptimized;
      compact.max_subcompactions = static_cast<uint32_t>(dice.Below(3));
      const size_t writer = dice.Below(options_.writers);
      const size_t from = dice.Below(options_.keys);
      const std::string begin = KeyName(writer, from);
      const std::string end = KeyName(writer, from + dice.Below(options_.keys));
      const Slice begin_slice(begin);
      const Slice end_slice(end);
      const bool is_whole = dice.OneIn(6);
      ++jobs_;
      Must(db_->CompactRange(compact, families_[dice.Below(kNumFamilies)],
                             is_whole ? nullptr : &begin_slice,
                             is_whole ? nullptr : &end_slice),
           "CompactRange()");
    }
  }

  // Compacts files that jobs have just written, and single old files.
  void OvertakingThread(uint64_t seed) {
    Dice dice(seed);
    std::array<uint64_t, kNumFamilies> newest{};
    while (!IsRoundOver()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      for (size_t f = 0; f < kNumFamilies; ++f) {
        const std::vector<File> all = Files(f);
        std::vector<File> fresh;
        uint64_t highest = newest[f];
        for (const File& file : all) {
          if (file.number > newest[f]) {
            fresh.push_back(file);
            highest = std::max(highest, file.number);
          }
        }
        newest[f] = highest;
        if (!fresh.empty() && dice.OneIn(3)) {
          CompactSomeFile(f, &dice, fresh);
        } else if (dice.OneIn(100)) {
          CompactSomeFile(f, &dice, {});
        }
      }
    }
  }

  struct File {
    uint64_t number;
    std::string name;
    int level;
  };

  std::vector<File> Files(size_t family) const {
    ColumnFamilyMetaData meta;
    db_->GetColumnFamilyMetaData(families_[family], &meta);
    std::vector<File> files;
    for (const LevelMetaData& level : meta.levels) {
      for (const SstFileMetaData& file : level.files) {
        files.push_back(
            {file.file_number, file.db_path + "/" + file.name, level.level});
      }
    }
    return files;
  }

  // Compacts one file of `fresh`, and maybe others of its level. If there are
  // none, compacts any file, or the oldest one, so that entries below
  // tombstones and operands move without these.
  void CompactSomeFile(size_t family, Dice* dice,
                       const std::vector<File>& fresh) {
    const std::vector<File> files = fresh.empty() ? Files(family) : fresh;
    if (files.empty()) {
      return;
    }
    const File* file = &files[dice->Below(files.size())];
    if (fresh.empty() && dice->OneIn(2)) {
      for (const File& other : files) {
        if (other.number < file->number) {
          file = &other;
        }
      }
    }
    std::vector<std::string> inputs{file->name};
    for (const File& other : fresh) {
      if (other.number != file->number && other.level == file->level &&
          dice->OneIn(2)) {
        inputs.push_back(other.name);
      }
    }
    const int last = db_options_.num_levels - 1;
    const int to =
        file->level == 0 || dice->OneIn(3)
            ? (dice->OneIn(2) ? last : std::min(last, file->level + 1))
            : file->level;
    CompactionOptions compact;
    compact.compression = kNoCompression;
    compact.output_file_size_limit = db_options_.target_file_size_base;
    ++jobs_;
    const Status s =
        db_->CompactFiles(compact, families_[family], inputs, std::max(to, 1));
    // These errors mean that other jobs have taken or removed the files, or
    // that a deeper file overlaps.
    if (!s.ok() && !s.IsAborted() && !s.IsInvalidArgument() &&
        !s.IsIncomplete() && !s.IsNotSupported()) {
      Must(s, "CompactFiles()");
    }
  }

  void FlushThread(uint64_t seed) {
    Dice dice(seed);
    while (!IsRoundOver()) {
      Rest(&dice, 200);
      if (dice.OneIn(4)) {
        FlushFamily(kNumFamilies, !dice.OneIn(3));
      } else {
        FlushFamily(dice.Below(kNumFamilies), !dice.OneIn(3));
      }
    }
  }

  // Flushes a family; all of them if family is kNumFamilies.
  void FlushFamily(size_t family, bool wait) {
    FlushOptions flush;
    flush.wait = wait;
    flush.allow_write_stall = true;
    ++jobs_;
    const Status s = family == kNumFamilies
                         ? db_->Flush(flush, {families_[0], families_[1]})
                         : db_->Flush(flush, families_[family]);
    if (!s.IsTryAgain()) {  // writes are stopped
      Must(s, "Flush()");
    }
  }

  void GarbageThread(uint64_t seed) {
    Dice dice(seed);
    while (!IsRoundOver()) {
      Rest(&dice, 1500);
      CollectBlobGarbageOptions collect;
      collect.space_amp_limit = dice.OneIn(2) ? 1.0 : 1.2;
      collect.max_sorted_runs = static_cast<uint32_t>(dice.Below(3));
      ++jobs_;
      const Status s =
          db_->CollectBlobGarbage(collect, families_[dice.Below(kNumFamilies)]);
      if (!s.IsIncomplete()) {
        Must(s, "CollectBlobGarbage()");
      }
    }
  }

  const OverlapStressOptions options_;
  const Clock::time_point start_;
  const Clock::time_point end_;

  Options db_options_;
  std::unique_ptr<StressFilter> filter_;
  std::unique_ptr<DB> db_;
  std::array<ColumnFamilyHandle*, kNumFamilies> families_{};

  // [family][writer][index]
  std::array<std::vector<std::vector<std::unique_ptr<KeyHistory>>>,
             kNumFamilies>
      histories_;
  std::vector<uint64_t> steps_;  // Last step of each writer, set by it alone.
  // Held shared by writers during a write, exclusively while a view of all keys
  // is created.
  std::shared_mutex views_mutex_;

  std::atomic<bool> round_over_{false};
  std::atomic<bool> is_failed_{false};
  std::atomic<bool> no_pauses_{true};
  std::atomic<size_t> max_views_{2};
  std::atomic<size_t> hot_{0};

  std::atomic<uint64_t> writes_{0};
  std::atomic<uint64_t> reads_{0};
  std::atomic<uint64_t> views_{0};
  std::atomic<uint64_t> jobs_{0};
  std::atomic<uint64_t> pauses_{0};

  std::mutex findings_mutex_;
  std::atomic<uint64_t> num_findings_{0};
  OverlapStressResult result_;
};

}  // namespace

std::string OverlapStressOptions::Describe() const {
  return "map=" + std::to_string(address_map) +
         " bypass=" + std::to_string(lsm_bypass) +
         " delta=" + std::to_string(delta_separation) +
         " merged_values=" + std::to_string(merged_values) +
         " filter=" + std::to_string(compaction_filter);
}

std::string OverlapStressOptions::Arguments() const {
  return "--seed=" + std::to_string(seed) +
         " --map=" + std::to_string(address_map) +
         " --bypass=" + std::to_string(lsm_bypass) +
         " --delta=" + std::to_string(delta_separation) +
         " --merged_values=" + std::to_string(merged_values) +
         " --filter=" + std::to_string(compaction_filter) +
         " --merges=" + std::to_string(merges) +
         " --range_deletions=" + std::to_string(range_deletions) +
         " --pauses=" + std::to_string(pauses);
}

OverlapStressResult RunOverlapStress(const OverlapStressOptions& options) {
  return Stress(options).Run();
}

}  // namespace ROCKSDB_NAMESPACE
