//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Iterators of column families with an address map. They are compared with a
// model that has the contents of the database at the time when the iterator was
// made.

#include "db/address_map/map_iterators.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/map_value_iterator.h"
#include "db/blob_v2/blob_read_group.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/db_test_util.h"
#include "db/pinned_iterators_manager.h"
#include "memory/arena.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/multi_scan.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/table.h"
#include "rocksdb/wide_columns.h"
#include "rocksdb/write_batch.h"
#include "test_util/strata/address_map_test_util.h"
#include "test_util/sync_point.h"
#include "util/compression.h"
#include "util/random.h"
#include "utilities/merge_operators.h"

// The file system calls this before it reads asynchronously.
std::atomic<bool> g_io_uring{true};
extern "C" bool RocksDbIOUringEnable() { return g_io_uring; }

namespace ROCKSDB_NAMESPACE {

using Model = std::map<std::string, std::string>;

constexpr size_t kAuto = ReadOptions::kAutoBlobPrefetchCount;
// The present limit according to the comment in ReadOptions.
constexpr uint64_t kAutoWindow = 64;

constexpr size_t kPrefixSize = 3;
constexpr size_t kMinBlobSize = 50;
constexpr int kNumPrefixes = 10;
constexpr int kKeysOfPrefix = 30;

std::string KeyOf(int prefix, int i) {
  char buffer[48];
  snprintf(buffer, sizeof(buffer), "k%02d_%03d", prefix, i);
  return buffer;
}

std::string RandomKey(Random* rnd) {
  const int prefix = static_cast<int>(rnd->Uniform(kNumPrefixes));
  return KeyOf(prefix, static_cast<int>(rnd->Uniform(kKeysOfPrefix)));
}

// A model of Iterator over data that does not change.
class ModelIterator {
 public:
  // lower, upper: empty if there is no such bound. in_prefix: like
  // ReadOptions::prefix_same_as_start.
  ModelIterator(std::shared_ptr<const Model> model, const std::string& lower,
                const std::string& upper, bool in_prefix)
      : model_(std::move(model)),
        lower_(lower),
        upper_(upper),
        in_prefix_(in_prefix),
        pos_(model_->end()) {}

  bool Valid() const { return valid_; }
  const std::string& key() const { return pos_->first; }
  const std::string& value() const { return pos_->second; }

  void Seek(const std::string& target) {
    BeginPrefix(target);
    pos_ = model_->lower_bound(std::max(target, lower_));
    Check();
  }

  void SeekForPrev(const std::string& target) {
    BeginPrefix(target);
    pos_ = !upper_.empty() && target >= upper_ ? model_->lower_bound(upper_)
                                               : model_->upper_bound(target);
    StepBack();
  }

  void SeekToFirst() {
    if (!lower_.empty()) {
      Seek(lower_);
      return;
    }
    prefix_.clear();
    pos_ = model_->begin();
    Check();
    if (valid_) {
      BeginPrefix(key());
    }
  }

  void SeekToLast() {
    if (!upper_.empty()) {
      SeekForPrev(upper_);
      return;
    }
    prefix_.clear();
    pos_ = model_->end();
    StepBack();
    if (valid_) {
      BeginPrefix(key());
    }
  }

  void Next() {
    ++pos_;
    Check();
  }

  void Prev() { StepBack(); }

 private:
  void BeginPrefix(const std::string& start) {
    prefix_ = in_prefix_ ? start.substr(0, kPrefixSize) : std::string();
  }

  void StepBack() {
    if (pos_ == model_->begin()) {
      valid_ = false;
      return;
    }
    --pos_;
    Check();
  }

  void Check() {
    valid_ =
        pos_ != model_->end() && pos_->first >= lower_ &&
        (upper_.empty() || pos_->first < upper_) &&
        (prefix_.empty() || pos_->first.compare(0, kPrefixSize, prefix_) == 0);
  }

  const std::shared_ptr<const Model> model_;
  const std::string lower_;
  const std::string upper_;
  const bool in_prefix_;
  Model::const_iterator pos_;
  bool valid_ = false;
  std::string prefix_;
};

// Writes entries of all kinds to a column family and to its model.
class RandomWriter {
 public:
  RandomWriter(DB* db, ColumnFamilyHandle* family, uint32_t seed,
               bool range_deletions, bool merges = true)
      : db_(db),
        family_(family),
        rnd_(seed),
        range_deletions_(range_deletions),
        merges_(merges) {}

  void Write() {
    const std::string key = RandomKey(&rnd_);
    switch (rnd_.Uniform(17)) {
      case 0:
      case 1:
        Put(key, NewValue(20));
        break;
      case 2:
      case 3:
      case 4: {
        const std::string value = NewValue(rnd_.OneIn(4) ? 80 : 5);
        if (merges_) {
          Merge(key, value);
        } else {
          Put(key, value);
        }
        break;
      }
      case 5:
      case 6:
        ASSERT_OK(db_->Delete(WriteOptions(), family_, key));
        model_.erase(key);
        break;
      case 7:
        PutEntity(key, NewValue(rnd_.OneIn(2) ? 80 : 5));
        break;
      case 8:
        WriteSingle();
        break;
      case 9:
      case 10:
        if (range_deletions_) {
          DeleteRange();
          break;
        }
        [[fallthrough]];
      default:
        Put(key, NewValue(rnd_.OneIn(20)
                              ? 4000
                              : 50 + static_cast<int>(rnd_.Uniform(200))));
    }
  }

  void WriteMany(int n) {
    for (int i = 0; i < n; ++i) {
      Write();
    }
  }

  const Model& model() const { return model_; }
  std::shared_ptr<const Model> Copy() const {
    return std::make_shared<const Model>(model_);
  }

 private:
  // Returns a value that differs from all others.
  std::string NewValue(int size) {
    ++counter_;
    return std::to_string(counter_) + ":" +
           std::string(size, static_cast<char>('a' + counter_ % 26));
  }

  void Put(const std::string& key, const std::string& value) {
    ASSERT_OK(db_->Put(WriteOptions(), family_, key, value));
    model_[key] = value;
  }

  void Merge(const std::string& key, const std::string& operand) {
    ASSERT_OK(db_->Merge(WriteOptions(), family_, key, operand));
    std::string& value = model_[key];
    value += (value.empty() ? "" : ",") + operand;
  }

  void PutEntity(const std::string& key, const std::string& value) {
    const WideColumns columns{{kDefaultWideColumnName, value},
                              {"attribute", "a"}};
    ASSERT_OK(db_->PutEntity(WriteOptions(), family_, key, columns));
    model_[key] = value;
  }

  // These keys are put once between two deletions, as SingleDelete() requires,
  // and no range deletion covers them.
  void WriteSingle() {
    char buffer[32];
    snprintf(buffer, sizeof(buffer), "s00_%03d",
             static_cast<int>(rnd_.Uniform(10)));
    const std::string key = buffer;
    if (model_.count(key) == 0) {
      Put(key, NewValue(60));
    } else {
      ASSERT_OK(db_->SingleDelete(WriteOptions(), family_, key));
      model_.erase(key);
    }
  }

  void DeleteRange() {
    const int prefix = static_cast<int>(rnd_.Uniform(kNumPrefixes - 1));
    const int i = static_cast<int>(rnd_.Uniform(kKeysOfPrefix));
    const std::string begin = KeyOf(prefix, i);
    const std::string end =
        rnd_.OneIn(5)
            ? KeyOf(prefix + 1, static_cast<int>(rnd_.Uniform(5)))
            : KeyOf(prefix, i + 1 + static_cast<int>(rnd_.Uniform(8)));
    ASSERT_OK(db_->DeleteRange(WriteOptions(), family_, begin, end));
    model_.erase(model_.lower_bound(begin), model_.lower_bound(end));
  }

  DB* const db_;
  ColumnFamilyHandle* const family_;
  Random rnd_;
  const bool range_deletions_;
  const bool merges_;
  int counter_ = 0;
  Model model_;
};

// An iterator and its expected results.
struct Cursor {
  // The iterator's options refer to these.
  std::string lower;
  std::string upper;
  Slice lower_slice;
  Slice upper_slice;
  ReadOptions read_options;

  // The prefix of all targets, or negative for any prefix.
  int only_prefix = -1;
  std::unique_ptr<ModelIterator> expected;
  // Pinned slices and their contents.
  std::vector<std::pair<Slice, std::string>> pinned;
  std::unique_ptr<Iterator> iter;

  void Expect(std::shared_ptr<const Model> model) {
    expected = std::make_unique<ModelIterator>(
        std::move(model), lower, upper, read_options.prefix_same_as_start);
  }
};

class MapIteratorsTest : public DBTestBase {
 public:
  MapIteratorsTest()
      : DBTestBase("map_iterators_test", /*env_do_fsync=*/false) {}

  Options MapOptions() {
    Options options = CurrentOptions();
    options.enable_blob_files = true;
    options.min_blob_size = kMinBlobSize;
    options.enable_blob_address_map = true;
    options.blob_gc_space_amp_limit = 0;
    options.disable_auto_compactions = true;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.statistics = CreateDBStatistics();
    return options;
  }

  // Makes many files of all kinds and many blocks.
  Options SmallFiles(bool filters = true) {
    Options options = MapOptions();
    options.num_levels = 4;
    options.target_file_size_base = 2 << 10;
    options.blob_file_size = 32 << 10;
    BlockBasedTableOptions table;
    table.block_size = 256;
    // Pinned keys require this.
    table.use_delta_encoding = false;
    if (filters) {
      table.filter_policy.reset(NewBloomFilterPolicy(10));
    }
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    return options;
  }

  AddressMapStore* Blobs() {
    return static_cast<ColumnFamilyHandleImpl*>(db_->DefaultColumnFamily())
        ->cfd()
        ->address_map_store();
  }

  uint64_t Ticker(Tickers ticker) {
    return last_options_.statistics->getTickerCount(ticker);
  }

  void WaitForRemovals() { ASSERT_OK(WaitForMapJobs(db_.get())); }

  void CompactAll(ColumnFamilyHandle* family) {
    CompactRangeOptions options;
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(options, family, nullptr, nullptr));
  }

  // Moves entries to other files without changing the data.
  void RunJob(Random* rnd, ColumnFamilyHandle* family) {
    const uint32_t job = rnd->Uniform(6);
    if (job < 4) {
      ASSERT_OK(db_->Flush(FlushOptions(), family));
    }
    switch (job) {
      case 2:
        MoveFilesToLevel(1, family);
        break;
      case 3:
        MoveFilesToLevel(2, family);
        break;
      case 4:
        ASSERT_OK(dbfull()->TEST_CompactRange(1, nullptr, nullptr, family));
        break;
      case 5:
        CompactAll(family);
        break;
      default:
        break;
    }
  }

  // ---- Cursors.

  void Compare(Cursor* cursor) {
    const Iterator& iter = *cursor->iter;
    const ModelIterator& expected = *cursor->expected;
    ASSERT_EQ(iter.Valid(), expected.Valid())
        << iter.status().ToString() << "; "
        << (iter.Valid() ? "is at " + iter.key().ToString()
                         : "should be at " + expected.key());
    if (!iter.Valid()) {
      ASSERT_OK(iter.status());
      return;
    }
    ASSERT_EQ(iter.key(), expected.key());
    if (cursor->read_options.allow_unprepared_value) {
      if (rnd_.OneIn(3)) {
        return;  // this value is not requested
      }
      ASSERT_TRUE(cursor->iter->PrepareValue()) << iter.status().ToString();
    }
    ASSERT_EQ(iter.value(), expected.value()) << expected.key();
    if (cursor->read_options.pin_data && cursor->pinned.size() < 300) {
      Pin(cursor);
    }
  }

  void Pin(Cursor* cursor) {
    Iterator* const iter = cursor->iter.get();
    std::string is_pinned;
    ASSERT_OK(iter->GetProperty("rocksdb.iterator.is-key-pinned", &is_pinned));
    if (is_pinned == "1") {
      cursor->pinned.emplace_back(iter->key(), iter->key().ToString());
    }
    is_pinned.clear();
    ASSERT_OK(
        iter->GetProperty("rocksdb.iterator.is-value-pinned", &is_pinned));
    if (is_pinned == "1") {
      cursor->pinned.emplace_back(iter->value(), iter->value().ToString());
    }
  }

  // Checks that the pinned data has not changed.
  void CheckPinned(Cursor* cursor) {
    for (const auto& [slice, contents] : cursor->pinned) {
      ASSERT_EQ(slice, contents);
      ++num_pinned_;
    }
    cursor->pinned.clear();
  }

  std::string RandomTarget(const Cursor& cursor) {
    const std::string key =
        cursor.only_prefix < 0
            ? RandomKey(&rnd_)
            : KeyOf(cursor.only_prefix,
                    static_cast<int>(rnd_.Uniform(kKeysOfPrefix)));
    switch (rnd_.Uniform(8)) {
      case 0:
        return key.substr(0, kPrefixSize);
      case 1:
        return key + "x";
      case 2:
        if (cursor.only_prefix < 0) {
          return rnd_.OneIn(2) ? "aaa" : "zzz";
        }
        return key;
      default:
        return key;
    }
  }

  void Position(Cursor* cursor, bool forward_only) {
    const uint32_t where = rnd_.Uniform(forward_only ? 5 : 8);
    const std::string target = RandomTarget(*cursor);
    if (where < 4) {
      cursor->iter->Seek(target);
      cursor->expected->Seek(target);
    } else if (where == 4) {
      cursor->iter->SeekToFirst();
      cursor->expected->SeekToFirst();
    } else if (where < 7) {
      cursor->iter->SeekForPrev(target);
      cursor->expected->SeekForPrev(target);
    } else {
      cursor->iter->SeekToLast();
      cursor->expected->SeekToLast();
    }
    Compare(cursor);
  }

  // disturb: changes the database between the moves.
  void Walk(Cursor* cursor, int moves, bool forward_only,
            const std::function<void()>& disturb) {
    for (int move = 0; move < moves; ++move) {
      if (rnd_.OneIn(10)) {
        disturb();
      }
      const uint32_t kind = rnd_.Uniform(10);
      if (!cursor->expected->Valid() || kind < 3) {
        Position(cursor, forward_only);
      } else if (kind < 8 || forward_only) {
        // There are enough steps for values to be read ahead.
        for (uint32_t n = rnd_.Uniform(12); cursor->expected->Valid(); --n) {
          cursor->iter->Next();
          cursor->expected->Next();
          Compare(cursor);
          if (n == 0 || HasFatalFailure()) {
            break;
          }
        }
      } else {
        for (uint32_t n = rnd_.Uniform(5); cursor->expected->Valid(); --n) {
          cursor->iter->Prev();
          cursor->expected->Prev();
          Compare(cursor);
          if (n == 0 || HasFatalFailure()) {
            break;
          }
        }
      }
      ASSERT_FALSE(HasFatalFailure()) << "move " << move;
    }
  }

  // ---- Simple data.

  static std::string Value(int i) {
    return "value " + std::to_string(i) + std::string(100, 'x');
  }

  // Returns an iterator as DBIter has it, for a reader of everything.
  // REQUIRES: read_options and the arena outlive it.
  InternalIterator* NewMapIterator(const ReadOptions& read_options,
                                   Arena* arena) {
    ColumnFamilyData* const cfd =
        static_cast<ColumnFamilyHandleImpl*>(db_->DefaultColumnFamily())->cfd();
    return MapIterators::Wrap(
        cfd, read_options, kMaxSequenceNumber, /*prefix_extractor=*/nullptr,
        dbfull()->NewInternalIterator(read_options, arena, kMaxSequenceNumber),
        arena);
  }

  void PutAndFlush(int n) {
    for (int i = 0; i < n; ++i) {
      ASSERT_OK(Put(Key(i), Value(i)));
    }
    ASSERT_OK(Flush());
  }

  static std::string Scan(Iterator* iter, bool reverse = false) {
    std::string result;
    for (reverse ? iter->SeekToLast() : iter->SeekToFirst(); iter->Valid();
         reverse ? iter->Prev() : iter->Next()) {
      result += iter->key().ToString() + "=" + iter->value().ToString() + ";";
    }
    if (!iter->status().ok()) {
      result += iter->status().ToString();
    }
    return result;
  }

  // Returns the entries of the ranges, with a bar after each range.
  std::string ScanRanges(const ReadOptions& read_options,
                         const MultiScanArgs& args) {
    std::string result;
    const std::unique_ptr<MultiScan> scans =
        db_->NewMultiScan(read_options, db_->DefaultColumnFamily(), args);
    try {
      for (auto& scan : *scans) {
        for (auto& entry : scan) {
          result +=
              entry.first.ToString() + "=" + entry.second.ToString() + ";";
        }
        result += "|";
      }
    } catch (MultiScanException& e) {
      result += e.status().ToString();
    } catch (std::logic_error& e) {
      result += e.what();
    }
    return result;
  }

  static std::string ModelRange(const Model& model, const std::string& begin,
                                const std::string& end) {
    std::string result;
    for (auto it = model.lower_bound(begin);
         it != model.end() && it->first < end; ++it) {
      result += it->first + "=" + it->second + ";";
    }
    return result + "|";
  }

  Random rnd_{17};
  size_t num_pinned_ = 0;
};

// ---- All kinds of iterators.

struct Variant {
  enum class At {
    kNow,
    kSnapshot,
    // A snapshot that is released as soon as the iterator exists.
    kReleasedSnapshot,
  };

  std::string name;
  ReadOptions read_options;
  At at = At::kNow;
  bool has_prefixes = false;  // the column family has an extractor
  bool has_filters = true;
  bool has_bounds = false;
  bool has_range_deletions = true;
  bool has_merges = true;
  bool has_blob_cache = false;

  // Returns true if the values that a scan needs soon are read ahead.
  bool ReadsAhead() const {
    return read_options.blob_prefetch_count > 0 && !read_options.pin_data &&
           !read_options.allow_unprepared_value && !read_options.tailing;
  }
};

const std::vector<Variant>& Variants() {
  static const std::vector<Variant> variants = [] {
    std::vector<Variant> result;
    const auto add = [&result](const std::string& name) -> Variant& {
      result.emplace_back();
      result.back().name = name;
      return result.back();
    };
    add("Default");
    add("NoReadAhead").read_options.blob_prefetch_count = 0;
    add("OneAhead").read_options.blob_prefetch_count = 1;
    add("SevenAhead").read_options.blob_prefetch_count = 7;
    add("Bounds").has_bounds = true;
    {
      Variant& v = add("BoundsSevenAhead");
      v.has_bounds = true;
      v.read_options.blob_prefetch_count = 7;
    }
    {
      Variant& v = add("Prefix");
      v.has_prefixes = true;
      v.read_options.prefix_same_as_start = true;
    }
    {
      Variant& v = add("PrefixNoReadAhead");
      v.has_prefixes = true;
      v.read_options.prefix_same_as_start = true;
      v.read_options.blob_prefetch_count = 0;
    }
    {
      Variant& v = add("PrefixBounds");
      v.has_prefixes = true;
      v.has_bounds = true;
      v.read_options.prefix_same_as_start = true;
    }
    {
      Variant& v = add("TotalOrder");
      v.has_prefixes = true;
      v.read_options.total_order_seek = true;
    }
    {
      Variant& v = add("AutoPrefixBounds");
      v.has_prefixes = true;
      v.has_bounds = true;
      v.read_options.auto_prefix_mode = true;
    }
    add("PinData").read_options.pin_data = true;
    {
      Variant& v = add("PinDataPrefix");
      v.has_prefixes = true;
      v.read_options.prefix_same_as_start = true;
      v.read_options.pin_data = true;
    }
    add("Unprepared").read_options.allow_unprepared_value = true;
    {
      Variant& v = add("UnpreparedBounds");
      v.has_bounds = true;
      v.read_options.allow_unprepared_value = true;
    }
    add("NoFillCache").read_options.fill_cache = false;
    add("BlobCache").has_blob_cache = true;
    add("Snapshot").at = Variant::At::kSnapshot;
    {
      Variant& v = add("SnapshotBounds");
      v.at = Variant::At::kSnapshot;
      v.has_bounds = true;
    }
    {
      Variant& v = add("SnapshotPrefix");
      v.at = Variant::At::kSnapshot;
      v.has_prefixes = true;
      v.read_options.prefix_same_as_start = true;
    }
    add("ReleasedSnapshot").at = Variant::At::kReleasedSnapshot;
    {
      Variant& v = add("AutoRefresh");
      v.at = Variant::At::kSnapshot;
      v.read_options.auto_refresh_iterator_with_snapshot = true;
    }
    add("AsyncIO").read_options.async_io = true;
    // Without range deletions, ignoring them changes nothing.
    {
      Variant& v = add("IgnoreRangeDeletions");
      v.read_options.ignore_range_deletions = true;
      v.has_range_deletions = false;
    }
    {
      Variant& v = add("IgnoreRangeDeletionsUnprepared");
      v.read_options.ignore_range_deletions = true;
      v.read_options.allow_unprepared_value = true;
      v.has_range_deletions = false;
    }
    // ForwardIterator does not support range deletions. After a job it
    // continues in the new files; if that happens between two operands of a
    // merge, DBIter misses an operand or uses one twice. So with merges there
    // are no such jobs.
    {
      Variant& v = add("Tailing");
      v.read_options.tailing = true;
      v.has_range_deletions = false;
      v.has_merges = false;
    }
    {
      Variant& v = add("TailingMerges");
      v.read_options.tailing = true;
      v.has_range_deletions = false;
    }
    {
      Variant& v = add("TailingBounds");
      v.read_options.tailing = true;
      v.has_bounds = true;
      v.has_range_deletions = false;
      v.has_merges = false;
    }
    // ForwardIterator does not return to a file whose filter has excluded one
    // prefix.
    {
      Variant& v = add("TailingPrefix");
      v.read_options.tailing = true;
      v.read_options.prefix_same_as_start = true;
      v.has_prefixes = true;
      v.has_filters = false;
      v.has_range_deletions = false;
      v.has_merges = false;
    }
    {
      Variant& v = add("TailingUnprepared");
      v.read_options.tailing = true;
      v.read_options.allow_unprepared_value = true;
      v.has_range_deletions = false;
      v.has_merges = false;
    }
    return result;
  }();
  return variants;
}

std::string VariantName(const testing::TestParamInfo<size_t>& info) {
  return Variants()[info.param].name;
}

class MapIteratorsModelTest : public MapIteratorsTest,
                              public testing::WithParamInterface<size_t> {
 public:
  void ChooseBounds(const Variant& variant, Cursor* cursor) {
    if (!variant.has_bounds) {
      return;
    }
    if (variant.read_options.prefix_same_as_start) {
      // The bounds and all targets have one prefix.
      cursor->only_prefix = static_cast<int>(rnd_.Uniform(kNumPrefixes));
      const int i = static_cast<int>(rnd_.Uniform(10));
      cursor->lower = KeyOf(cursor->only_prefix, i);
      cursor->upper =
          KeyOf(cursor->only_prefix,
                i + 5 + static_cast<int>(rnd_.Uniform(kKeysOfPrefix - 15)));
    } else {
      cursor->lower = RandomKey(&rnd_);
      cursor->upper = RandomKey(&rnd_);
      if (cursor->upper < cursor->lower) {
        std::swap(cursor->lower, cursor->upper);
      }
      cursor->upper += "x";
      switch (rnd_.Uniform(4)) {
        case 0:
          cursor->lower.clear();
          break;
        case 1:
          cursor->upper.clear();
          break;
        default:
          break;
      }
    }
    if (!cursor->lower.empty()) {
      cursor->lower_slice = cursor->lower;
      cursor->read_options.iterate_lower_bound = &cursor->lower_slice;
    }
    if (!cursor->upper.empty()) {
      cursor->upper_slice = cursor->upper;
      cursor->read_options.iterate_upper_bound = &cursor->upper_slice;
    }
  }
};

INSTANTIATE_TEST_CASE_P(Options, MapIteratorsModelTest,
                        testing::Range(size_t{0}, Variants().size()),
                        VariantName);

TEST_P(MapIteratorsModelTest, AgreesWithTheModel) {
  const Variant& variant = Variants()[GetParam()];
  const bool tailing = variant.read_options.tailing;
  for (const uint32_t seed : {301u, 302u}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    rnd_.Reset(seed * 7);
    g_io_uring = seed % 2 == 0;
    num_pinned_ = 0;
    Options options = SmallFiles(variant.has_filters);
    // Versions of a key are skipped by seeks, too.
    options.max_sequential_skip_in_iterations = 3;
    if (variant.has_prefixes) {
      options.prefix_extractor.reset(NewFixedPrefixTransform(kPrefixSize));
    }
    if (variant.has_blob_cache) {
      options.blob_cache = NewLRUCache(100 << 10);
    }
    DestroyAndReopen(options);
    ColumnFamilyHandle* const family = db_->DefaultColumnFamily();
    RandomWriter writer(db_.get(), family, seed, variant.has_range_deletions,
                        variant.has_merges);
    struct Held {
      std::unique_ptr<ManagedSnapshot> snapshot;
      std::shared_ptr<const Model> model;
    };
    // Cursors are destroyed first, because they may use the snapshots.
    std::vector<Held> snapshots;
    std::deque<std::unique_ptr<Cursor>> cursors;

    for (int round = 0; round < 16; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      writer.WriteMany(40);
      if (round == 0) {
        // These values are flushed before there is a reader, so they are
        // direct.
        ASSERT_OK(Flush());
      } else if (rnd_.OneIn(2)) {
        RunJob(&rnd_, family);
      }
      if (round % 5 == 0) {
        snapshots.push_back(
            Held{std::make_unique<ManagedSnapshot>(db_.get()), writer.Copy()});
        writer.WriteMany(10);
      }
      ASSERT_FALSE(HasFatalFailure());

      // Makes a new cursor.
      cursors.push_back(std::make_unique<Cursor>());
      Cursor* const newest = cursors.back().get();
      newest->read_options = variant.read_options;
      ChooseBounds(variant, newest);
      switch (variant.at) {
        case Variant::At::kNow:
          newest->Expect(writer.Copy());
          newest->iter.reset(db_->NewIterator(newest->read_options));
          break;
        case Variant::At::kSnapshot: {
          const Held& held =
              snapshots[rnd_.Uniform(static_cast<int>(snapshots.size()))];
          newest->read_options.snapshot = held.snapshot->snapshot();
          newest->Expect(held.model);
          newest->iter.reset(db_->NewIterator(newest->read_options));
          break;
        }
        case Variant::At::kReleasedSnapshot: {
          newest->Expect(writer.Copy());
          ManagedSnapshot snapshot(db_.get());
          newest->read_options.snapshot = snapshot.snapshot();
          writer.WriteMany(10);
          newest->iter.reset(db_->NewIterator(newest->read_options));
          newest->read_options.snapshot = nullptr;
          break;
        }
      }
      if (cursors.size() > 3) {
        CheckPinned(cursors.front().get());
        cursors.pop_front();
      }

      for (const std::unique_ptr<Cursor>& cursor : cursors) {
        if (tailing) {
          // A tailing iterator shows the current data from the next seek on.
          cursor->Expect(writer.Copy());
        } else if (rnd_.OneIn(4)) {
          CheckPinned(cursor.get());
          const bool auto_refresh =
              variant.read_options.auto_refresh_iterator_with_snapshot;
          if (auto_refresh || rnd_.OneIn(2)) {
            const Held& held =
                snapshots[rnd_.Uniform(static_cast<int>(snapshots.size()))];
            ASSERT_OK(cursor->iter->Refresh(held.snapshot->snapshot()));
            cursor->Expect(held.model);
          } else {
            ASSERT_OK(cursor->iter->Refresh());
            cursor->Expect(writer.Copy());
          }
        }
        Walk(cursor.get(), /*moves=*/15, /*forward_only=*/tailing, [&] {
          if (!tailing) {
            writer.WriteMany(5);
          }
          if (rnd_.OneIn(2) && !(tailing && variant.has_merges)) {
            RunJob(&rnd_, family);
          }
        });
        ASSERT_FALSE(HasFatalFailure());
      }
    }
    for (const std::unique_ptr<Cursor>& cursor : cursors) {
      CheckPinned(cursor.get());
    }
    cursors.clear();
    snapshots.clear();
    WaitForRemovals();
    ASSERT_FALSE(HasFatalFailure());

    // The data had all kinds of values, and they were read in the expected
    // ways.
    EXPECT_GT(Ticker(BLOB_MAP_DIRECT_WRITTEN), 0);
    EXPECT_GT(Ticker(BLOB_MAP_VERSIONED_WRITTEN), 0);
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ) > 0, variant.ReadsAhead());
    EXPECT_LE(Ticker(BLOB_MAP_PREFETCH_WASTED), Ticker(BLOB_MAP_PREFETCH_READ));
    EXPECT_EQ(num_pinned_ > 0, variant.read_options.pin_data);
    EXPECT_OK(Blobs()->map()->TEST_Check());
    std::string expected;
    for (const auto& [key, value] : writer.model()) {
      expected += key + "=" + value + ";";
      EXPECT_EQ(Get(key), value);
    }
    ReadOptions all;
    all.total_order_seek = true;
    const std::unique_ptr<Iterator> iter(db_->NewIterator(all));
    EXPECT_EQ(Scan(iter.get()), expected);
  }
}

// ---- Several column families.

// Iterators of one call over a family with a map and one without are of one
// moment, and so is a coalescing iterator over both.
TEST_F(MapIteratorsTest, FamiliesWithAndWithoutMapMatchTheModel) {
  for (const size_t prefetch : {size_t{0}, size_t{7}, kAuto}) {
    for (const bool unprepared : {false, true}) {
      SCOPED_TRACE("prefetch " + std::to_string(prefetch) +
                   (unprepared ? " unprepared" : ""));
      const Options mapped = SmallFiles();
      Options plain = mapped;
      plain.enable_blob_address_map = false;
      DestroyAndReopen(plain);
      CreateColumnFamilies({"plain"}, plain);
      ReopenWithColumnFamilies({kDefaultColumnFamilyName, "plain"},
                               std::vector<Options>{mapped, plain});
      ASSERT_FALSE(HasFatalFailure());
      RandomWriter first(db_.get(), handles_[0], 21, /*range_deletions=*/true);
      RandomWriter second(db_.get(), handles_[1], 22, /*range_deletions=*/true);
      ReadOptions read_options;
      read_options.blob_prefetch_count = prefetch;
      read_options.allow_unprepared_value = unprepared;
      for (int round = 0; round < 8; ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        first.WriteMany(40);
        second.WriteMany(40);
        RunJob(&rnd_, handles_[rnd_.Uniform(2)]);
        ASSERT_FALSE(HasFatalFailure());

        std::vector<Cursor> cursors(4);
        for (Cursor& cursor : cursors) {
          cursor.read_options = read_options;
        }
        std::vector<Iterator*> iterators;
        ASSERT_OK(db_->NewIterators(read_options, {handles_[0], handles_[1]},
                                    &iterators));
        ASSERT_EQ(iterators.size(), 2);
        cursors[0].iter.reset(iterators[0]);
        cursors[0].Expect(first.Copy());
        cursors[1].iter.reset(iterators[1]);
        cursors[1].Expect(second.Copy());
        // The later family hides the earlier one.
        Model second_hides = second.model();
        second_hides.insert(first.model().begin(), first.model().end());
        cursors[2].iter = db_->NewCoalescingIterator(
            read_options, {handles_[0], handles_[1]});
        cursors[2].Expect(std::make_shared<const Model>(second_hides));
        Model first_hides = first.model();
        first_hides.insert(second.model().begin(), second.model().end());
        cursors[3].iter = db_->NewCoalescingIterator(
            read_options, {handles_[1], handles_[0]});
        cursors[3].Expect(std::make_shared<const Model>(first_hides));

        for (size_t i = 0; i < cursors.size(); ++i) {
          SCOPED_TRACE("iterator " + std::to_string(i));
          Walk(&cursors[i], /*moves=*/12, /*forward_only=*/false, [&] {
            first.WriteMany(5);
            second.WriteMany(5);
            RunJob(&rnd_, handles_[rnd_.Uniform(2)]);
          });
          ASSERT_FALSE(HasFatalFailure());
        }
      }
      EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ) > 0,
                prefetch > 0 && !unprepared);
    }
  }
}

// Both families are overwritten and flushed after the SuperVersion of one was
// taken and before that of the other. Jobs of the family without a map must
// also keep the data that the iterators see.
TEST_F(MapIteratorsTest, IteratorsOfTwoFamiliesAreOfOneMoment) {
  for (const bool mapped_first : {false, true}) {
    SCOPED_TRACE(mapped_first);
    const Options mapped = MapOptions();
    Options plain = mapped;
    plain.enable_blob_address_map = false;
    DestroyAndReopen(plain);
    CreateColumnFamilies({"plain"}, plain);
    ReopenWithColumnFamilies({kDefaultColumnFamilyName, "plain"},
                             std::vector<Options>{mapped, plain});
    ASSERT_FALSE(HasFatalFailure());
    const auto write = [&](int version) {
      WriteBatch batch;
      for (const char* key : {"a", "b", "c", "d"}) {
        ASSERT_OK(batch.Put(handles_[0], key, Value(version)));
        ASSERT_OK(batch.Put(handles_[1], key, Value(version)));
      }
      ASSERT_OK(db_->Write(WriteOptions(), &batch));
      for (ColumnFamilyHandle* family : handles_) {
        ASSERT_OK(db_->Flush(FlushOptions(), family));
      }
    };
    write(1);
    std::atomic<bool> done{false};
    SyncPoint::GetInstance()->SetCallBack("DBImpl::MultiCFSnapshot::AfterRefSV",
                                          [&](void*) {
                                            if (!done.exchange(true)) {
                                              write(2);
                                              CompactAll(handles_[0]);
                                              CompactAll(handles_[1]);
                                              WaitForRemovals();
                                            }
                                          });
    SyncPoint::GetInstance()->EnableProcessing();
    std::vector<ColumnFamilyHandle*> families = handles_;
    if (!mapped_first) {
      std::swap(families[0], families[1]);
    }
    std::vector<Iterator*> raw;
    ASSERT_OK(db_->NewIterators(ReadOptions(), families, &raw));
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    EXPECT_TRUE(done.load());
    std::vector<std::unique_ptr<Iterator>> iterators;
    for (Iterator* iter : raw) {
      iterators.emplace_back(iter);
    }
    ASSERT_EQ(iterators.size(), 2);
    std::string of_version[3];
    for (const int version : {1, 2}) {
      for (const char* key : {"a", "b", "c", "d"}) {
        of_version[version] += std::string(key) + "=" + Value(version) + ";";
      }
    }
    const std::string found = Scan(iterators[0].get());
    EXPECT_TRUE(found == of_version[1] || found == of_version[2]) << found;
    EXPECT_EQ(Scan(iterators[1].get()), found);
    EXPECT_EQ(Scan(iterators[0].get(), true), Scan(iterators[1].get(), true));
  }
}

// ---- Scans of several ranges.

TEST_F(MapIteratorsTest, MultiScanMatchesTheModel) {
  for (const size_t prefetch : {size_t{0}, size_t{1}, size_t{7}, kAuto}) {
    SCOPED_TRACE(prefetch);
    Options options = SmallFiles();
    // MultiScanFindsKeysWithManyVersions tests these seeks.
    options.max_sequential_skip_in_iterations = 1000;
    DestroyAndReopen(options);
    RandomWriter writer(db_.get(), db_->DefaultColumnFamily(), 31,
                        /*range_deletions=*/false);
    ReadOptions read_options;
    read_options.blob_prefetch_count = prefetch;
    for (int round = 0; round < 10; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      writer.WriteMany(80);
      RunJob(&rnd_, db_->DefaultColumnFamily());
      ASSERT_FALSE(HasFatalFailure());
      for (int trial = 0; trial < 5; ++trial) {
        std::vector<std::string> limits;
        const size_t num_limits = 2 * (1 + rnd_.Uniform(4));
        while (limits.size() < num_limits) {
          limits.push_back(RandomKey(&rnd_));
          std::sort(limits.begin(), limits.end());
          limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
        }
        MultiScanArgs args(BytewiseComparator());
        std::string expected;
        for (size_t i = 0; i < limits.size(); i += 2) {
          args.insert(limits[i], limits[i + 1]);
          expected += ModelRange(writer.model(), limits[i], limits[i + 1]);
        }
        ASSERT_EQ(ScanRanges(read_options, args), expected);
      }
      // The second range has no end, so there is an iterator for each range.
      const std::vector<std::string> limits = {KeyOf(2, 3), KeyOf(4, 5),
                                               RandomKey(&rnd_)};
      MultiScanArgs args(BytewiseComparator());
      args.insert(limits[0], limits[1]);
      args.insert(limits[2]);
      ASSERT_EQ(ScanRanges(read_options, args),
                ModelRange(writer.model(), limits[0], limits[1]) +
                    ModelRange(writer.model(), limits[2], "zzz"));
    }
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ) > 0, prefetch > 0);
  }
}

TEST_F(MapIteratorsTest, BackwardMultiScanReadsNothingAhead) {
  DestroyAndReopen(SmallFiles());
  PutAndFlush(300);
  CompactAll(db_->DefaultColumnFamily());
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<std::string> limits = {Key(10),  Key(30),  Key(100),
                                           Key(150), Key(220), Key(300)};
  MultiScanArgs args(BytewiseComparator());
  args.reverse = true;
  std::string expected;
  for (size_t i = 0; i < limits.size(); i += 2) {
    args.insert(limits[i], limits[i + 1]);
    for (int k = IdFromKey(limits[i + 1]) - 1; k >= IdFromKey(limits[i]); --k) {
      expected += Key(k) + "=" + Value(k) + ";";
    }
    expected += "|";
  }
  EXPECT_EQ(ScanRanges(ReadOptions(), args), expected);
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 0);
}

// DBIter seeks when it has to skip many versions of a key. By then the position
// of the scan may be far ahead, and a file that was prepared for a range does
// not go back. The scan must find all keys nevertheless.
TEST_F(MapIteratorsTest, MultiScanFindsKeysWithManyVersions) {
  constexpr int kKeys = 60;
  for (const size_t prefetch : {size_t{0}, size_t{7}, kAuto}) {
    SCOPED_TRACE(prefetch);
    Options options = MapOptions();
    options.max_sequential_skip_in_iterations = 3;
    BlockBasedTableOptions table;
    table.block_size = 64;
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    DestroyAndReopen(options);
    std::vector<std::unique_ptr<ManagedSnapshot>> snapshots;
    Model model;
    for (int i = 0; i < kKeys; ++i) {
      const int versions = i % 20 == 10 ? 10 : 1;
      for (int version = 1; version <= versions; ++version) {
        model[Key(i)] = Value(100 * i + version);
        ASSERT_OK(Put(Key(i), model[Key(i)]));
        if (versions > 1) {
          snapshots.push_back(std::make_unique<ManagedSnapshot>(db_.get()));
        }
      }
    }
    ASSERT_OK(Flush());
    ReadOptions read_options;
    read_options.blob_prefetch_count = prefetch;
    MultiScanArgs args(BytewiseComparator());
    const std::vector<std::string> limits = {Key(2), Key(25), Key(26),
                                             Key(kKeys)};
    args.insert(limits[0], limits[1]);
    args.insert(limits[2], limits[3]);
    EXPECT_EQ(ScanRanges(read_options, args),
              ModelRange(model, limits[0], limits[1]) +
                  ModelRange(model, limits[2], limits[3]));
    snapshots.clear();
  }
}

// ---- Errors.

constexpr char kMarker[] = "here is the value that cannot be read";

// Reads that return the marker fail while the file system is armed.
// Asynchronous reads, if enabled, are executed when the caller waits for them.
class FailingFileSystem : public FileSystemWrapper {
 public:
  explicit FailingFileSystem(const std::shared_ptr<FileSystem>& base)
      : FileSystemWrapper(base) {}

  static const char* kClassName() { return "FailingFileSystem"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override;
  void SupportedOps(int64_t& supported_ops) override;
  IOStatus Poll(std::vector<void*>& io_handles,
                size_t min_completions) override;
  IOStatus AbortIO(std::vector<void*>& io_handles) override;

  bool Fails(const Slice& data) {
    if (!armed || data.ToString().find(kMarker) == std::string::npos) {
      return false;
    }
    ++failures;
    return true;
  }

  enum class Trouble {
    kNone,
    kRefused,  // ReadAsync() refuses every other read
    kFailed,   // the status of the request is an error
    kShort,
    kCorrupt,  // a flipped bit
  };

  std::atomic<bool> armed{false};
  std::atomic<int> failures{0};
  std::atomic<bool> async{false};
  std::atomic<Trouble> trouble{Trouble::kNone};  // affects asynchronous reads
  std::atomic<int> asked{0};
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
};

class FailingFile : public FSRandomAccessFileOwnerWrapper {
 public:
  struct Handle {
    const FailingFile* file;
    std::thread::id thread;
    FSReadRequest request;
    std::function<void(FSReadRequest&, void*)> callback;
    void* argument;
    bool done = false;
  };

  FailingFile(std::unique_ptr<FSRandomAccessFile>&& file, FailingFileSystem* fs)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), fs_(fs) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    IOStatus s = target()->Read(offset, n, options, result, scratch, dbg);
    if (s.ok() && fs_->Fails(*result)) {
      s = IOStatus::IOError("injected");
    }
    return s;
  }

  IOStatus MultiRead(FSReadRequest* requests, size_t num_requests,
                     const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = target()->MultiRead(requests, num_requests, options, dbg);
    for (size_t i = 0; s.ok() && i < num_requests; ++i) {
      if (requests[i].status.ok() && fs_->Fails(requests[i].result)) {
        requests[i].status = IOStatus::IOError("injected");
      }
    }
    return s;
  }

  IOStatus ReadAsync(FSReadRequest& request, const IOOptions& options,
                     std::function<void(FSReadRequest&, void*)> callback,
                     void* argument, void** io_handle, IOHandleDeleter* deleter,
                     IODebugContext* dbg) override {
    if (!fs_->async) {
      return target()->ReadAsync(request, options, callback, argument,
                                 io_handle, deleter, dbg);
    }
    if (fs_->asked++ % 2 == 1 &&
        fs_->trouble == FailingFileSystem::Trouble::kRefused) {
      return IOStatus::Busy("refused");
    }
    ++fs_->begun;
    auto* const handle = new Handle();
    handle->file = this;
    handle->thread = std::this_thread::get_id();
    handle->request.offset = request.offset;
    handle->request.len = request.len;
    handle->request.scratch = request.scratch;
    handle->callback = std::move(callback);
    handle->argument = argument;
    *io_handle = handle;
    *deleter = [](void* h) { delete static_cast<Handle*>(h); };
    return IOStatus::OK();
  }

  static void End(Handle* handle) {
    using Trouble = FailingFileSystem::Trouble;
    ASSERT_EQ(handle->thread, std::this_thread::get_id());
    FailingFileSystem* const fs = handle->file->fs_;
    const Trouble trouble = fs->trouble;
    FSReadRequest& request = handle->request;
    request.status =
        handle->file->Read(request.offset, request.len, IOOptions(),
                           &request.result, request.scratch, nullptr);
    if (trouble == Trouble::kFailed) {
      request.status = IOStatus::IOError("injected");
    } else if (request.status.ok() && trouble == Trouble::kShort) {
      request.result.remove_suffix(1 + request.result.size() / 2);
    } else if (request.status.ok() && trouble == Trouble::kCorrupt) {
      request.scratch[request.result.size() / 4] ^= 1;
    }
    handle->done = true;
    ++fs->ended;
    handle->callback(request, handle->argument);
    request.status.PermitUncheckedError();
  }

 private:
  FailingFileSystem* const fs_;
};

void FailingFileSystem::SupportedOps(int64_t& supported_ops) {
  target()->SupportedOps(supported_ops);
  constexpr int64_t kAsync = int64_t{1} << FSSupportedOps::kAsyncIO;
  supported_ops = async ? supported_ops | kAsync : supported_ops & ~kAsync;
}

IOStatus FailingFileSystem::Poll(std::vector<void*>& io_handles,
                                 size_t /*min_completions*/) {
  for (void* const io_handle : io_handles) {
    auto* const handle = static_cast<FailingFile::Handle*>(io_handle);
    if (!handle->done) {
      FailingFile::End(handle);
    }
  }
  return IOStatus::OK();
}

IOStatus FailingFileSystem::AbortIO(std::vector<void*>& io_handles) {
  for (void* const io_handle : io_handles) {
    static_cast<FailingFile::Handle*>(io_handle)->done = true;
  }
  return IOStatus::OK();
}

IOStatus FailingFileSystem::NewRandomAccessFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSRandomAccessFile>* result, IODebugContext* dbg) {
  std::unique_ptr<FSRandomAccessFile> file;
  IOStatus s = target()->NewRandomAccessFile(name, options, &file, dbg);
  if (s.ok()) {
    result->reset(new FailingFile(std::move(file), this));
  }
  return s;
}

// The parameter says whether reads are asynchronous.
class MapIteratorErrorsTest : public MapIteratorsTest,
                              public testing::WithParamInterface<bool> {
 public:
  MapIteratorErrorsTest()
      : fs_(std::make_shared<FailingFileSystem>(env_->GetFileSystem())),
        failing_env_(NewCompositeEnv(fs_)) {
    fs_->async = GetParam();
  }
  // Closes the DB before its Env is destroyed.
  ~MapIteratorErrorsTest() override { Close(); }

 protected:
  static constexpr int kKeys = 60;
  static constexpr int kBad = 40;

  std::string ValueOf(int i) const {
    return i == kBad ? kMarker + Value(i) : Value(i);
  }

  // Returns the entries that a scan from key i finds. "E" at the end stands for
  // the injected error.
  static std::string ScanFrom(Iterator* iter, int i) {
    std::string result;
    for (iter->Seek(Key(i)); iter->Valid(); iter->Next()) {
      result += iter->key().ToString() + "=" + iter->value().ToString() + ";";
    }
    return result + (iter->status().IsIOError() ? "E" : "") +
           (iter->status().ok() || iter->status().IsIOError()
                ? ""
                : iter->status().ToString());
  }

  const std::shared_ptr<FailingFileSystem> fs_;
  const std::unique_ptr<Env> failing_env_;
};

// An error of a read ahead is returned when the scan reaches the value. Values
// before and after it are returned, even if they were read together with it.
TEST_P(MapIteratorErrorsTest, ErrorIsReturnedAtItsKey) {
  for (const bool one_file : {true, false}) {
    for (const bool merged : {false, true}) {
      for (const size_t prefetch : {size_t{0}, size_t{1}, size_t{7}, kAuto}) {
        SCOPED_TRACE(std::string(one_file ? "one file" : "a file for each") +
                     (merged ? ", merged" : "") + ", prefetch " +
                     std::to_string(prefetch));
        Options options = MapOptions();
        options.env = failing_env_.get();
        if (!one_file) {
          options.blob_file_size = 1;
        }
        fs_->armed = false;
        DestroyAndReopen(options);
        for (int i = 0; i < kKeys; ++i) {
          ASSERT_OK(Put(Key(i), ValueOf(i)));
        }
        ASSERT_OK(Flush());
        EXPECT_EQ(GetBlobFileNumbers().size(), one_file ? 1 : kKeys);
        if (merged) {
          // The value is read as the base of a merge.
          ASSERT_OK(Merge(Key(kBad), "operand"));
        }
        std::vector<std::string> entries;
        for (int i = 0; i < kKeys; ++i) {
          entries.push_back(Key(i) + "=" + ValueOf(i) +
                            (merged && i == kBad ? ",operand" : std::string()) +
                            ";");
        }
        const auto range = [&](int begin, int end) {
          std::string result;
          for (int i = begin; i < end; ++i) {
            result += entries[i];
          }
          return result;
        };
        ReadOptions read_options;
        read_options.blob_prefetch_count = prefetch;

        fs_->failures = 0;
        fs_->armed = true;
        const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
        EXPECT_EQ(ScanFrom(iter.get(), 0), range(0, kBad) + "E");
        EXPECT_GT(fs_->failures.load(), 0);
        // The iterator can still be used.
        EXPECT_EQ(ScanFrom(iter.get(), kBad + 1), range(kBad + 1, kKeys));
        EXPECT_EQ(ScanFrom(iter.get(), kBad), "E");
        EXPECT_EQ(ScanFrom(iter.get(), kBad - 1), range(kBad - 1, kBad) + "E");
        // Scans backwards.
        int i = kKeys - 1;
        for (iter->SeekToLast(); iter->Valid(); iter->Prev(), --i) {
          ASSERT_EQ(
              iter->key().ToString() + "=" + iter->value().ToString() + ";",
              entries[i]);
        }
        EXPECT_TRUE(iter->status().IsIOError()) << iter->status().ToString();
        EXPECT_EQ(i, kBad);
        i = kBad - 1;
        for (iter->SeekForPrev(Key(kBad - 1)); iter->Valid();
             iter->Prev(), --i) {
          ASSERT_EQ(iter->value(), ValueOf(i));
        }
        EXPECT_OK(iter->status());
        EXPECT_EQ(i, -1);

        // A scan that turns back before the value does not return the error,
        // although the read was made.
        iter->Seek(Key(0));
        for (i = 0; i < kBad - 1; ++i, iter->Next()) {
          ASSERT_TRUE(iter->Valid());
          ASSERT_EQ(iter->value(), ValueOf(i));
        }
        iter->Prev();
        ASSERT_TRUE(iter->Valid());
        EXPECT_EQ(iter->value(), ValueOf(kBad - 2));
        EXPECT_OK(iter->status());

        // After the error is gone, the scan succeeds.
        fs_->armed = false;
        EXPECT_EQ(ScanFrom(iter.get(), 0), range(0, kKeys));
      }
    }
  }
}

// The read of a value that is not requested cannot fail.
TEST_P(MapIteratorErrorsTest, UnpreparedValueDoesNotFail) {
  Options options = MapOptions();
  options.env = failing_env_.get();
  DestroyAndReopen(options);
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(Put(Key(i), ValueOf(i)));
  }
  ASSERT_OK(Flush());
  fs_->armed = true;
  ReadOptions read_options;
  read_options.allow_unprepared_value = true;
  const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  int n = 0;
  for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++n) {
    ASSERT_EQ(iter->key(), Key(n));
    if (n != kBad) {
      ASSERT_TRUE(iter->PrepareValue());
      ASSERT_EQ(iter->value(), Value(n));
    }
  }
  ASSERT_OK(iter->status());
  EXPECT_EQ(n, kKeys);
  EXPECT_EQ(fs_->failures.load(), 0);
  iter->Seek(Key(kBad));
  ASSERT_TRUE(iter->Valid());
  EXPECT_FALSE(iter->PrepareValue());
  EXPECT_FALSE(iter->Valid());
  EXPECT_TRUE(iter->status().IsIOError()) << iter->status().ToString();
  fs_->armed = false;
  iter->Seek(Key(kBad));
  ASSERT_TRUE(iter->Valid());
  EXPECT_TRUE(iter->PrepareValue());
  EXPECT_EQ(iter->value(), ValueOf(kBad));
}

INSTANTIATE_TEST_CASE_P(Async, MapIteratorErrorsTest, testing::Bool());

// Scans wait until a thread of the pool has begun the reads, and do not make
// them themselves.
class MapIteratorAsyncTest : public MapIteratorErrorsTest {
 public:
  MapIteratorAsyncTest() {
    SyncPoint::GetInstance()->SetCallBack(
        "BlobReadGroup::RunAndWait", [](void* arg) {
          while (!static_cast<BlobReadGroup*>(arg)->TEST_HasBegun()) {
            std::this_thread::yield();
          }
        });
    SyncPoint::GetInstance()->EnableProcessing();
  }
  ~MapIteratorAsyncTest() override {
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
  }
};

INSTANTIATE_TEST_CASE_P(Async, MapIteratorAsyncTest, testing::Values(true));

// Values that are read asynchronously are right even if the reads are refused,
// fail, are short or return damaged data.
TEST_P(MapIteratorAsyncTest, FailedAsyncReadsAreRepeated) {
  using Trouble = FailingFileSystem::Trouble;
  for (const Trouble trouble :
       {Trouble::kNone, Trouble::kRefused, Trouble::kFailed, Trouble::kShort,
        Trouble::kCorrupt}) {
    for (const bool one_file : {true, false}) {
      for (const CompressionType compression :
           {kNoCompression, kLZ4Compression}) {
        SCOPED_TRACE("trouble " + std::to_string(static_cast<int>(trouble)) +
                     (one_file ? ", one file" : ", a file for each") +
                     (compression == kNoCompression ? "" : ", compressed"));
        if (!LZ4_Supported() && compression == kLZ4Compression) {
          continue;
        }
        Options options = MapOptions();
        options.env = failing_env_.get();
        options.blob_compression_type = compression;
        if (!one_file) {
          options.blob_file_size = 1;
        }
        fs_->trouble = trouble;
        DestroyAndReopen(options);
        PutAndFlush(kKeys);
        fs_->begun = 0;
        fs_->ended = 0;
        const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
        std::string expected;
        for (int i = 0; i < kKeys; ++i) {
          expected += Key(i) + "=" + Value(i) + ";";
        }
        EXPECT_EQ(Scan(iter.get()), expected);
        if (!one_file) {  // otherwise most values are neighbours
          // After a refused read the others are made synchronously.
          EXPECT_GE(fs_->begun.load(),
                    trouble == Trouble::kRefused ? 1 : (kKeys - 2) / 3);
        }
        // This scan stops in the middle.
        iter->SeekToFirst();
        for (int i = 0; i < kKeys / 2; ++i) {
          ASSERT_TRUE(iter->Valid());
          ASSERT_EQ(iter->value(), Value(i));
          iter->Next();
        }
        iter->SeekToFirst();
        ASSERT_TRUE(iter->Valid());
        EXPECT_EQ(iter->value(), Value(0));
        EXPECT_EQ(fs_->begun, fs_->ended);
      }
    }
  }
}

// Values of a MultiGet() that are read asynchronously are right, too.
TEST_P(MapIteratorAsyncTest, MultiGetRepeatsFailedAsyncReads) {
  // Here the reader makes the reads itself.
  SyncPoint::GetInstance()->DisableProcessing();
  using Trouble = FailingFileSystem::Trouble;
  for (const Trouble trouble :
       {Trouble::kNone, Trouble::kRefused, Trouble::kFailed, Trouble::kShort,
        Trouble::kCorrupt}) {
    for (const bool one_file : {true, false}) {
      SCOPED_TRACE("trouble " + std::to_string(static_cast<int>(trouble)) +
                   (one_file ? ", one file" : ", a file for each"));
      Options options = MapOptions();
      options.env = failing_env_.get();
      if (!one_file) {
        options.blob_file_size = 1;
      }
      fs_->trouble = trouble;
      fs_->armed = false;
      DestroyAndReopen(options);
      for (int i = 0; i < kKeys; ++i) {
        ASSERT_OK(Put(Key(i), ValueOf(i)));
      }
      ASSERT_OK(Flush());
      std::vector<std::string> names;
      std::vector<Slice> keys;
      for (int i = 0; i < kKeys; ++i) {
        names.push_back(Key(kKeys - 1 - i));
      }
      names.push_back("absent");
      keys.assign(names.begin(), names.end());
      fs_->begun = 0;
      fs_->ended = 0;
      for (const bool armed : {false, true}) {
        fs_->armed = armed;
        std::vector<PinnableSlice> values(keys.size());
        std::vector<Status> statuses(keys.size());
        db_->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), keys.size(),
                      keys.data(), values.data(), statuses.data());
        for (int i = 0; i < kKeys; ++i) {
          const int k = kKeys - 1 - i;
          if (armed && k == kBad) {
            EXPECT_TRUE(statuses[i].IsIOError()) << statuses[i].ToString();
          } else {
            ASSERT_OK(statuses[i]);
            EXPECT_EQ(values[i], ValueOf(k));
          }
        }
        EXPECT_TRUE(statuses[kKeys].IsNotFound());
      }
      if (!one_file) {  // otherwise RocksDB reads all of them together
        EXPECT_GE(fs_->begun.load(), trouble == Trouble::kRefused ? 1 : kKeys);
      }
      EXPECT_EQ(fs_->begun, fs_->ended);
      fs_->armed = false;
      ReadOptions no_io;
      no_io.read_tier = kBlockCacheTier;
      fs_->begun = 0;
      std::vector<PinnableSlice> values(keys.size());
      std::vector<Status> statuses(keys.size());
      db_->MultiGet(no_io, db_->DefaultColumnFamily(), keys.size(), keys.data(),
                    values.data(), statuses.data());
      for (int i = 0; i < kKeys; ++i) {
        EXPECT_TRUE(statuses[i].IsIncomplete()) << statuses[i].ToString();
      }
      EXPECT_EQ(fs_->begun, 0);
    }
  }
}

// Values in the blob cache are not read, and each counts as one hit.
TEST_P(MapIteratorAsyncTest, CachedValuesAreNotRead) {
  Options options = MapOptions();
  options.env = failing_env_.get();
  options.blob_cache = NewLRUCache(8 << 20);
  options.blob_file_size = 1;
  DestroyAndReopen(options);
  PutAndFlush(kKeys);
  std::string expected;
  for (int i = 0; i < kKeys; ++i) {
    expected += Key(i) + "=" + Value(i) + ";";
  }
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  EXPECT_EQ(Scan(iter.get()), expected);
  EXPECT_GT(fs_->begun, 0);
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_MISS), kKeys);
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_ADD), kKeys);
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_HIT), 0);
  fs_->begun = 0;
  iter.reset(db_->NewIterator(ReadOptions()));
  EXPECT_EQ(Scan(iter.get()), expected);
  EXPECT_EQ(fs_->begun, 0);
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_MISS), kKeys);
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_HIT), kKeys);
}

// An iterator may be used by one thread after another, and end on another
// thread than it was made on, while reads are running.
TEST_P(MapIteratorAsyncTest, IteratorMayMoveBetweenThreads) {
  Options options = MapOptions();
  options.env = failing_env_.get();
  options.blob_file_size = 1;
  DestroyAndReopen(options);
  PutAndFlush(kKeys);
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  iter->SeekToFirst();
  for (int i = 0; i < kKeys - 10; ++i) {
    std::thread([&] {
      ASSERT_TRUE(iter->Valid());
      EXPECT_EQ(iter->value(), Value(i));
      iter->Next();
    }).join();
  }
  std::thread([&] { iter.reset(); }).join();
  EXPECT_GT(fs_->begun, 0);
  EXPECT_EQ(fs_->begun, fs_->ended);
}

// ---- Reading ahead.

// As the option's comment says, reading ahead begins at the third value of a
// scan, with two reads at a time, and doubles their number up to the limit.
TEST_F(MapIteratorsTest, WindowDoublesUpToItsLimit) {
  constexpr int kKeys = 300;
  struct Case {
    size_t prefetch;
    uint64_t limit;
    // The number of reads that were running or unused after each start of new
    // reads.
    std::vector<uint64_t> windows;
  };
  const std::vector<Case> cases = {
      {1, 1, {1, 1, 1, 1}},
      {3, 3, {2, 3, 3, 3}},
      {7, 7, {2, 4, 7, 7, 7}},
      {kAuto, kAutoWindow, {2, 4, 8, 16, 32, 64, 64}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.prefetch);
    DestroyAndReopen(MapOptions());
    PutAndFlush(kKeys);
    ReadOptions read_options;
    read_options.blob_prefetch_count = one.prefetch;
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    std::vector<uint64_t> windows;
    uint64_t before = 0;
    int n = 0;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++n) {
      ASSERT_EQ(iter->key(), Key(n));
      ASSERT_EQ(iter->value(), Value(n));
      const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
      if (n < 2) {
        ASSERT_EQ(begun, 0);
        continue;
      }
      const uint64_t left_behind = static_cast<uint64_t>(n - 2);
      ASSERT_GT(begun, left_behind);
      ASSERT_LE(begun - left_behind, one.limit);
      if (begun != before) {
        windows.push_back(begun - left_behind);
      }
      before = begun;
    }
    ASSERT_OK(iter->status());
    EXPECT_EQ(n, kKeys);
    ASSERT_GE(windows.size(), one.windows.size());
    windows.resize(one.windows.size());
    EXPECT_EQ(windows, one.windows);
    iter.reset();
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), kKeys - 2);
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
  }
}

// If most scans end after the same number of values, a scan begins with that
// number of reads and stops there.
TEST_F(MapIteratorsTest, WindowBeginsWithTheUsualScanLength) {
  constexpr int kKeys = 300;
  DestroyAndReopen(MapOptions());
  PutAndFlush(kKeys);
  const auto scan = [&](Iterator* iter, int from, int n) {
    iter->Seek(Key(from));
    for (int i = from; i < from + n; ++i) {
      ASSERT_TRUE(iter->Valid());
      ASSERT_EQ(iter->key(), Key(i));
      ASSERT_EQ(iter->value(), Value(i));
      if (i + 1 < from + n) {
        iter->Next();
      }
    }
  };
  const auto read_and_wasted = [&](int from, int n, bool same_iterator) {
    const uint64_t read = Ticker(BLOB_MAP_PREFETCH_READ);
    const uint64_t wasted = Ticker(BLOB_MAP_PREFETCH_WASTED);
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    for (int i = 0; i < (same_iterator ? 20 : 1); ++i) {
      scan(iter.get(), from, n);
    }
    iter.reset();
    return std::make_pair(Ticker(BLOB_MAP_PREFETCH_READ) - read,
                          Ticker(BLOB_MAP_PREFETCH_WASTED) - wasted);
  };
  using Reads = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(read_and_wasted(0, 50, false), Reads(95, 47));
  for (int i = 0; i < 20; ++i) {
    read_and_wasted(i, 50, false);
  }
  // Lengths 48 to 51 are in one bucket of ScanLengthHistogram.
  EXPECT_EQ(read_and_wasted(20, 50, false), Reads(51, 1));
  EXPECT_EQ(read_and_wasted(20, 50, true), Reads(20 * 51, 20));
  // Longer scans are not harmed.
  EXPECT_EQ(read_and_wasted(0, kKeys, false), Reads(kKeys, 0));
  // With an explicit limit the usual scan length is not used.
  ReadOptions limited;
  limited.blob_prefetch_count = 64;
  std::unique_ptr<Iterator> iter(db_->NewIterator(limited));
  const uint64_t read = Ticker(BLOB_MAP_PREFETCH_READ);
  scan(iter.get(), 0, 2);
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), read);
  iter.reset();
  // After enough seeks for one value each, nothing is read ahead.
  for (int i = 0; i < 200; ++i) {
    read_and_wasted(i, 1, false);
  }
  EXPECT_EQ(read_and_wasted(0, 1, true), Reads(0, 0));
}

TEST_F(MapIteratorsTest, NothingIsReadAheadIfNotUseful) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(100);
  const auto scan = [&](const ReadOptions& read_options) {
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    int n = 0;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++n) {
      ASSERT_TRUE(iter->PrepareValue());
      ASSERT_EQ(iter->value(), Value(n));
    }
    ASSERT_OK(iter->status());
    ASSERT_EQ(n, 100);
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 0);
  };
  ReadOptions off;
  off.blob_prefetch_count = 0;
  scan(off);
  ReadOptions pinned;
  pinned.pin_data = true;
  scan(pinned);
  ReadOptions unprepared;
  unprepared.allow_unprepared_value = true;
  scan(unprepared);
  ReadOptions tailing;
  tailing.tailing = true;
  scan(tailing);
  // Backward scans and scans of two values read nothing ahead.
  const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  int n = 100;
  for (iter->SeekToLast(); iter->Valid(); iter->Prev()) {
    ASSERT_EQ(iter->value(), Value(--n));
  }
  EXPECT_EQ(n, 0);
  for (int i = 0; i < 50; ++i) {
    iter->Seek(Key(i));
    ASSERT_TRUE(iter->Valid());
    iter->Next();
    ASSERT_TRUE(iter->Valid());
    ASSERT_EQ(iter->value(), Value(i + 1));
  }
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 0);
}

// At most 4 MiB of values are read ahead.
TEST_F(MapIteratorsTest, WindowHasAtMost4MiB) {
  constexpr int kKeys = 20;
  constexpr size_t kSize = 1 << 20;
  Options options = MapOptions();
  options.write_buffer_size = 100 << 20;
  DestroyAndReopen(options);
  WriteOptions no_wal;
  no_wal.disableWAL = true;
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(
        Put(Key(i), std::string(kSize, static_cast<char>('a' + i)), no_wal));
  }
  ASSERT_OK(Flush());
  const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  uint64_t most = 0;
  int n = 0;
  for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++n) {
    ASSERT_EQ(iter->value(), std::string(kSize, static_cast<char>('a' + n)));
    const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
    if (n >= 2) {
      most = std::max(most, begun - static_cast<uint64_t>(n - 2));
    }
  }
  ASSERT_OK(iter->status());
  EXPECT_EQ(n, kKeys);
  EXPECT_EQ(most, (4 << 20) / kSize);
}

// Each value that was read ahead and is not used is counted once.
TEST_F(MapIteratorsTest, WastedReadsAreCountedOnce) {
  constexpr int kSteps = 20;
  for (const char* how :
       {"seek", "seek back", "seek for prev", "first", "last", "prev",
        "refresh", "refresh with a new SuperVersion", "delete"}) {
    SCOPED_TRACE(how);
    const std::string what = how;
    DestroyAndReopen(MapOptions());
    PutAndFlush(300);
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    iter->SeekToFirst();
    for (int i = 0; i < kSteps; ++i) {
      ASSERT_TRUE(iter->Valid());
      iter->Next();
    }
    ASSERT_TRUE(iter->Valid());
    EXPECT_EQ(iter->value(), Value(kSteps));
    // All values that the scan has reached, except for the first two.
    constexpr uint64_t kUsed = kSteps - 1;
    const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
    ASSERT_GT(begun, kUsed);
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
    if (what == "seek") {
      iter->Seek(Key(200));
      EXPECT_EQ(iter->value(), Value(200));
    } else if (what == "seek back") {
      iter->Seek(Key(kSteps - 5));
      EXPECT_EQ(iter->value(), Value(kSteps - 5));
    } else if (what == "seek for prev") {
      iter->SeekForPrev(Key(kSteps + 1));
      EXPECT_EQ(iter->value(), Value(kSteps + 1));
    } else if (what == "first") {
      iter->SeekToFirst();
      EXPECT_EQ(iter->value(), Value(0));
    } else if (what == "last") {
      iter->SeekToLast();
      EXPECT_EQ(iter->value(), Value(299));
    } else if (what == "prev") {
      iter->Prev();
      EXPECT_EQ(iter->value(), Value(kSteps - 1));
    } else if (what == "refresh") {
      ASSERT_OK(iter->Refresh());
    } else if (what == "refresh with a new SuperVersion") {
      ASSERT_OK(Put("new", "value"));
      ASSERT_OK(Flush());
      ASSERT_OK(iter->Refresh());
    } else {
      iter.reset();
    }
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), begun - kUsed);
    iter.reset();
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED),
              Ticker(BLOB_MAP_PREFETCH_READ) - kUsed);
  }
}

// No value behind the end of the scan is read if the options say where the end
// is.
TEST_F(MapIteratorsTest, ReadAheadEndsWithTheRange) {
  Options options = MapOptions();
  options.prefix_extractor.reset(NewFixedPrefixTransform(kPrefixSize));
  for (const bool by_prefix : {false, true}) {
    SCOPED_TRACE(by_prefix);
    options.statistics = CreateDBStatistics();
    DestroyAndReopen(options);
    for (int prefix = 0; prefix < 20; ++prefix) {
      for (int i = 0; i < 10; ++i) {
        ASSERT_OK(Put(KeyOf(prefix, i), Value(100 * prefix + i)));
      }
    }
    ASSERT_OK(Flush());
    const std::string end = KeyOf(6, 0);
    const Slice upper = end;
    ReadOptions read_options;
    if (by_prefix) {
      read_options.prefix_same_as_start = true;
    } else {
      read_options.total_order_seek = true;
      read_options.iterate_upper_bound = &upper;
    }
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    uint64_t begun = 0;
    for (int first = 0; first < 10; ++first) {
      SCOPED_TRACE(first);
      if (by_prefix && first == 8) {
        continue;  // see ShortPrefixNeedsNoReadAhead
      }
      int i = first;
      for (iter->Seek(KeyOf(5, first)); iter->Valid(); iter->Next(), ++i) {
        ASSERT_EQ(iter->key(), KeyOf(5, i));
        ASSERT_EQ(iter->value(), Value(500 + i));
      }
      ASSERT_OK(iter->status());
      EXPECT_EQ(i, 10);
      // The first two values are not read ahead.
      begun += static_cast<uint64_t>(std::max(0, 10 - first - 2));
      EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), begun);
      EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
    }
    iter.reset();
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
  }
}

// A scan of a prefix with two values is over when reading ahead would begin.
TEST_F(MapIteratorsTest, ShortPrefixNeedsNoReadAhead) {
  Options options = MapOptions();
  options.prefix_extractor.reset(NewFixedPrefixTransform(kPrefixSize));
  DestroyAndReopen(options);
  for (int prefix = 0; prefix < 20; ++prefix) {
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(Put(KeyOf(prefix, i), Value(100 * prefix + i)));
    }
  }
  ASSERT_OK(Flush());
  ReadOptions read_options;
  read_options.prefix_same_as_start = true;
  const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  for (int prefix = 0; prefix < 19; ++prefix) {
    int i = 0;
    for (iter->Seek(KeyOf(prefix, 0)); iter->Valid(); iter->Next(), ++i) {
      ASSERT_EQ(iter->value(), Value(100 * prefix + i));
    }
    ASSERT_OK(iter->status());
    ASSERT_EQ(i, 2);
  }
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 0);
}

// A seek does not use values that were read ahead up to another upper bound, or
// from files that were chosen for another prefix.
TEST_F(MapIteratorsTest, SeekIntoAnotherRangeUsesNoEarlierReads) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(100);
  ASSERT_FALSE(HasFatalFailure());
  std::string end = Key(10);
  Slice upper = end;
  ReadOptions bounded;
  bounded.iterate_upper_bound = &upper;
  std::unique_ptr<Iterator> iter(db_->NewIterator(bounded));
  iter->Seek(Key(0));
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(iter->Valid());
    iter->Next();
  }
  // All values up to the bound have been read.
  ASSERT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), 8);
  end = Key(50);
  upper = end;
  int n = 7;
  for (iter->Seek(Key(n)); iter->Valid(); iter->Next(), ++n) {
    ASSERT_EQ(iter->key(), Key(n));
    ASSERT_EQ(iter->value(), Value(n));
  }
  ASSERT_OK(iter->status());
  EXPECT_EQ(n, 50);
  iter.reset();

  Options options = MapOptions();
  options.prefix_extractor.reset(NewFixedPrefixTransform(kPrefixSize));
  BlockBasedTableOptions table;
  table.filter_policy.reset(NewBloomFilterPolicy(10));
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  DestroyAndReopen(options);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(Put(KeyOf(5, i), Value(i)));
  }
  for (int i = 1; i < 10; i += 2) {
    ASSERT_OK(Put(KeyOf(6, i), Value(i)));
  }
  ASSERT_OK(Flush());
  for (int i = 0; i < 10; i += 2) {
    ASSERT_OK(Put(KeyOf(6, i), Value(i)));
  }
  ASSERT_OK(Flush());
  iter.reset(db_->NewIterator(ReadOptions()));
  iter->Seek(KeyOf(5, 0));
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(iter->Valid());
    iter->Next();
  }
  ASSERT_GT(Ticker(BLOB_MAP_PREFETCH_READ), 0);
  n = 0;
  for (iter->Seek(KeyOf(6, 0)); iter->Valid(); iter->Next(), ++n) {
    ASSERT_EQ(iter->key(), KeyOf(6, n));
    ASSERT_EQ(iter->value(), Value(n));
  }
  ASSERT_OK(iter->status());
  EXPECT_EQ(n, 10);
}

// Values that the scan does not see are not read ahead.
TEST_F(MapIteratorsTest, HiddenValuesAreNotReadAhead) {
  constexpr int kKeys = 200;
  DestroyAndReopen(MapOptions());
  PutAndFlush(kKeys);
  std::string before;
  for (int i = 0; i < kKeys; ++i) {
    before += Key(i) + "=" + Value(i) + ";";
  }
  ManagedSnapshot snapshot(db_.get());
  // The memtable overwrites some values, deletes others, and covers a range.
  std::string after;
  ASSERT_OK(db_->DeleteRange(WriteOptions(), Key(100), Key(120)));
  uint64_t visible_in_files = 0;
  for (int i = 0; i < kKeys; ++i) {
    if (i % 4 == 1) {
      ASSERT_OK(Put(Key(i), Value(1000 + i)));
      after += Key(i) + "=" + Value(1000 + i) + ";";
    } else if (i % 4 == 3) {
      ASSERT_OK(Delete(Key(i)));
    } else if (i < 100 || i >= 120) {
      after += Key(i) + "=" + Value(i) + ";";
      ++visible_in_files;
    }
  }
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  EXPECT_EQ(Scan(iter.get()), after);
  iter.reset();
  EXPECT_LE(Ticker(BLOB_MAP_PREFETCH_READ), visible_in_files);
  EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ), visible_in_files - 3);
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);

  // At the snapshot only the first versions are read; the others are too new.
  ASSERT_OK(Flush());
  const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
  ReadOptions read_options;
  read_options.snapshot = snapshot.snapshot();
  iter.reset(db_->NewIterator(read_options));
  EXPECT_EQ(Scan(iter.get()), before);
  iter.reset();
  EXPECT_LE(Ticker(BLOB_MAP_PREFETCH_READ) - begun, uint64_t{kKeys});
  EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ) - begun, uint64_t{kKeys} - 3);
  EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
}

// The base of a merge is read ahead, too, and the read is used.
TEST_F(MapIteratorsTest, BasesOfMergesAreReadAhead) {
  constexpr int kKeys = 200;
  DestroyAndReopen(MapOptions());
  PutAndFlush(kKeys);
  std::string expected;
  for (int i = 0; i < kKeys; ++i) {
    expected += Key(i) + "=" + Value(i);
    if (i % 2 == 1) {
      ASSERT_OK(Merge(Key(i), "one"));
      ASSERT_OK(Merge(Key(i), "two"));
      expected += ",one,two";
    }
    expected += ";";
  }
  for (int step = 0; step < 2; ++step) {
    SCOPED_TRACE(step);
    const uint64_t begun = Ticker(BLOB_MAP_PREFETCH_READ);
    const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    EXPECT_EQ(Scan(iter.get()), expected);
    EXPECT_LE(Ticker(BLOB_MAP_PREFETCH_READ) - begun, uint64_t{kKeys});
    EXPECT_GE(Ticker(BLOB_MAP_PREFETCH_READ) - begun, uint64_t{kKeys} / 2);
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_WASTED), 0);
    ASSERT_OK(Flush());
  }
}

// The internal representation of a mapped value begins with a special byte.
// Inline values and operands may begin with the same byte.
TEST_F(MapIteratorsTest, ValuesMayBeginWithAnyByte) {
  constexpr int kBytes = 256;
  DestroyAndReopen(MapOptions());
  std::vector<std::string> values;
  for (int i = 0; i < kBytes; ++i) {
    const std::string small = static_cast<char>(i) + std::string(23, 'v');
    values.push_back(i % 2 == 0 ? Value(i) : small);
    ASSERT_OK(Put(Key(i), values[i]));
  }
  ASSERT_OK(Flush());
  for (const bool in_files : {false, true}) {
    SCOPED_TRACE(in_files);
    for (int i = 0; i < kBytes; ++i) {
      if (i % 4 < 3) {
        const std::string operand = static_cast<char>(i) + std::string(23, 'o');
        ASSERT_OK(Merge(Key(i), operand));
        values[i] += "," + operand;
      }
    }
    if (in_files) {
      ASSERT_OK(Flush());
    }
    std::string forward;
    std::string backward;
    for (int i = 0; i < kBytes; ++i) {
      const std::string entry = Key(i) + "=" + values[i] + ";";
      forward += entry;
      backward.insert(0, entry);
    }
    for (const int count : {-1, 0, 8}) {
      SCOPED_TRACE(count);
      ReadOptions read_options;
      read_options.blob_prefetch_count = count;
      const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      EXPECT_EQ(Scan(iter.get()), forward);
      EXPECT_EQ(Scan(iter.get(), /*reverse=*/true), backward);
    }
  }
}

// ---- Caches.

TEST_F(MapIteratorsTest, BlobCacheIsFilledAndReadByScans) {
  constexpr int kKeys = 50;
  for (const size_t prefetch : {size_t{0}, kAuto}) {
    SCOPED_TRACE(prefetch);
    Options options = MapOptions();
    options.blob_cache = NewLRUCache(8 << 20);
    // This block cache keeps its contents, even if the default one of the tests
    // is tiny.
    BlockBasedTableOptions table;
    table.block_cache = NewLRUCache(8 << 20);
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    DestroyAndReopen(options);
    PutAndFlush(kKeys);
    std::string expected;
    for (int i = 0; i < kKeys; ++i) {
      expected += Key(i) + "=" + Value(i) + ";";
    }
    ReadOptions no_io;
    no_io.read_tier = kBlockCacheTier;
    no_io.blob_prefetch_count = prefetch;
    std::unique_ptr<Iterator> iter(db_->NewIterator(no_io));
    iter->SeekToFirst();
    EXPECT_FALSE(iter->Valid());
    EXPECT_TRUE(iter->status().IsIncomplete()) << iter->status().ToString();

    ReadOptions no_fill;
    no_fill.fill_cache = false;
    no_fill.blob_prefetch_count = prefetch;
    iter.reset(db_->NewIterator(no_fill));
    EXPECT_EQ(Scan(iter.get()), expected);
    EXPECT_EQ(Ticker(BLOB_DB_CACHE_ADD), 0);

    ReadOptions fill;
    fill.blob_prefetch_count = prefetch;
    iter.reset(db_->NewIterator(fill));
    EXPECT_EQ(Scan(iter.get()), expected);
    EXPECT_EQ(Ticker(BLOB_DB_CACHE_ADD), kKeys);

    iter.reset(db_->NewIterator(no_io));
    EXPECT_EQ(Scan(iter.get()), expected);
    EXPECT_EQ(Ticker(BLOB_DB_CACHE_ADD), kKeys);
  }
}

// ---- Range deletions that are ignored.

// A reader that ignores range deletions may or may not see the deleted keys,
// with their old values, because the values may have been freed. It sees all
// other keys as other readers do.
TEST_F(MapIteratorsTest, IgnoredRangeDeletionsHideNoOtherValue) {
  constexpr int kKeys = 60;
  DestroyAndReopen(MapOptions());
  PutAndFlush(kKeys);
  ASSERT_OK(db_->DeleteRange(WriteOptions(), Key(20), Key(40)));
  Model model;
  for (int i = 0; i < kKeys; ++i) {
    if (i < 20 || i >= 40) {
      model[Key(i)] = Value(i);
    }
  }
  for (int step = 0; step < 6; ++step) {
    SCOPED_TRACE(step);
    for (const size_t prefetch : {size_t{0}, size_t{7}, kAuto}) {
      ReadOptions read_options;
      read_options.ignore_range_deletions = true;
      read_options.blob_prefetch_count = prefetch;
      const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      Model found;
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        found[iter->key().ToString()] = iter->value().ToString();
      }
      ASSERT_OK(iter->status());
      for (int i = 0; i < kKeys; ++i) {
        const auto live = model.find(Key(i));
        const auto seen = found.find(Key(i));
        if (live != model.end()) {
          ASSERT_TRUE(seen != found.end()) << i;
          EXPECT_EQ(seen->second, live->second);
        } else if (seen != found.end()) {
          EXPECT_EQ(seen->second, Value(i));
        }
      }
      if (step == 0) {
        // No value has been removed yet.
        EXPECT_EQ(found.size(), kKeys);
      } else if (step == 5) {
        EXPECT_EQ(found.size(), model.size());
      }
      Model backwards;
      for (iter->SeekToLast(); iter->Valid(); iter->Prev()) {
        backwards[iter->key().ToString()] = iter->value().ToString();
      }
      ASSERT_OK(iter->status());
      EXPECT_EQ(backwards, found);
      const std::unique_ptr<Iterator> other(db_->NewIterator(ReadOptions()));
      std::string expected;
      for (const auto& [key, value] : model) {
        expected += key + "=" + value + ";";
      }
      EXPECT_EQ(Scan(other.get()), expected);
    }
    switch (step) {
      case 0:
        ASSERT_OK(Flush());
        break;
      case 1:
        for (int i = 30; i < 35; ++i) {
          model[Key(i)] = Value(1000 + i);
          ASSERT_OK(Put(Key(i), model[Key(i)]));
        }
        break;
      case 2:
        ASSERT_OK(Flush());
        break;
      case 3:
        MoveFilesToLevel(1);
        break;
      default:
        CompactAll(db_->DefaultColumnFamily());
    }
    WaitForRemovals();
    ASSERT_FALSE(HasFatalFailure());
  }
}

// The prefetch queue copies values while DBIter has pinned others for a merge.
// A copy must not refer to data that is released later.
TEST_F(MapIteratorsTest, CopyOutlivesPinnedData) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(2);
  for (const bool is_kept : {false, true}) {
    SCOPED_TRACE(is_kept);
    ReadOptions read_options;
    read_options.blob_prefetch_count = 0;
    read_options.ignore_range_deletions = is_kept;
    Arena arena;
    ScopedArenaPtr<InternalIterator> iter(NewMapIterator(read_options, &arena));
    PinnedIteratorsManager pinned_iters_mgr;
    iter->SetPinnedItersMgr(&pinned_iters_mgr);
    iter->SeekToFirst();
    ASSERT_TRUE(iter->Valid());
    pinned_iters_mgr.StartPinning();
    const std::string key = iter->user_key().ToString();
    const std::string copy = iter->value().ToString();
    ASSERT_TRUE(BoundBlobIndex::IsBound(copy));
    EXPECT_EQ(static_cast<MapValueIterator*>(iter.get())->TakeKept().found,
              is_kept);
    iter->Next();
    ASSERT_TRUE(iter->Valid());
    ASSERT_NE(iter->user_key(), key);
    pinned_iters_mgr.ReleasePinnedData();
    PinnableSlice value;
    ASSERT_OK(MapIterators::Fetch(iter.get(), key, copy, &value));
    EXPECT_EQ(value, Get(key));
    iter->SetPinnedItersMgr(nullptr);
  }
}

// A caller may have the pinned data released while the iterator stays where it
// is, and ask for the value once more.
TEST_F(MapIteratorsTest, ValueIsValidAfterItsPinnedCopyIsReleased) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(2);
  for (const bool is_kept : {false, true}) {
    for (const bool pin_again : {false, true}) {
      SCOPED_TRACE(2 * is_kept + pin_again);
      ReadOptions read_options;
      read_options.blob_prefetch_count = 0;
      read_options.ignore_range_deletions = is_kept;
      Arena arena;
      PinnedIteratorsManager pinned_iters_mgr;
      ScopedArenaPtr<InternalIterator> iter(
          NewMapIterator(read_options, &arena));
      iter->SetPinnedItersMgr(&pinned_iters_mgr);
      iter->SeekToFirst();
      ASSERT_TRUE(iter->Valid());
      pinned_iters_mgr.StartPinning();
      const std::string copy = iter->value().ToString();
      ASSERT_TRUE(iter->IsValuePinned());
      pinned_iters_mgr.ReleasePinnedData();
      if (pin_again) {
        pinned_iters_mgr.StartPinning();
      }
      EXPECT_EQ(iter->value(), copy);
      EXPECT_EQ(iter->IsValuePinned(), pin_again);
      PinnableSlice value;
      ASSERT_OK(MapIterators::Fetch(iter.get(), iter->user_key(), iter->value(),
                                    &value));
      EXPECT_EQ(value, Get(iter->user_key().ToString()));
      iter->Next();  // leaves a kept entry to its pinned value, if it has one
      iter->SetPinnedItersMgr(nullptr);
    }
  }
}

// An entry that is kept for a pinned value is found by its name when the
// iterator has left it, and when it stands on another kept entry.
TEST_F(MapIteratorsTest, KeptEntriesAreFoundByNameWhileTheyArePinned) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(3);
  ReadOptions read_options;
  read_options.blob_prefetch_count = 0;
  read_options.ignore_range_deletions = true;
  Arena arena;
  PinnedIteratorsManager pinned_iters_mgr;
  std::map<std::string, std::string> model;
  std::vector<std::pair<std::string, Slice>> pinned;
  {
    ScopedArenaPtr<InternalIterator> iter(NewMapIterator(read_options, &arena));
    iter->SetPinnedItersMgr(&pinned_iters_mgr);
    pinned_iters_mgr.StartPinning();
    for (int pass = 0; pass < 2; ++pass) {  // one entry is pinned twice
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        const std::string key = iter->user_key().ToString();
        model[key] = Get(key);
        pinned.emplace_back(key, iter->value());
        ASSERT_TRUE(iter->IsValuePinned());
      }
    }
    ASSERT_EQ(model.size(), 3u);
    // Now the map has no entry of these keys, but the files are kept.
    for (const auto& [key, value] : model) {
      ASSERT_OK(Delete(key));
    }
    ASSERT_OK(Flush());
    WaitForRemovals();
    for (const auto& [key, value] : model) {
      ASSERT_FALSE(
          Blobs()->map()->FindDirect(Blobs()->HashOf(key), false).found);
    }
    iter->SeekToFirst();
    for (const auto& [key, bound] : pinned) {
      PinnableSlice value;
      ASSERT_OK(MapIterators::Fetch(iter.get(), key, bound, &value));
      EXPECT_EQ(value, model[key]);
    }
    // Once released, an entry is not found any more.
    const std::string copy = pinned.front().second.ToString();
    iter->SeekToLast();
    pinned_iters_mgr.ReleasePinnedData();
    PinnableSlice value;
    EXPECT_TRUE(
        MapIterators::Fetch(iter.get(), pinned.front().first, copy, &value)
            .IsCorruption());
    pinned_iters_mgr.StartPinning();
    iter->SeekToFirst();
    iter->SetPinnedItersMgr(nullptr);
  }
  // Pinned data may be released after the iterator.
  pinned_iters_mgr.ReleasePinnedData();
}

// Which values are read ahead is a guess. An entry that the guess leaves out is
// kept, too, as DBIter may come to it: with write-prepared transactions, if the
// newer entry is not committed.
TEST_F(MapIteratorsTest, EntriesThatAreNotReadAheadAreKept) {
  DestroyAndReopen(MapOptions());
  const Snapshot* const snapshot = db_->GetSnapshot();
  std::map<std::pair<std::string, SequenceNumber>, std::string> model;
  std::vector<const Snapshot*> snapshots;
  for (int version = 0; version < 2; ++version) {
    for (int i = 0; i < 10; ++i) {
      ASSERT_OK(Put(Key(i), Value(100 * version + i)));
      model[{Key(i), db_->GetLatestSequenceNumber()}] =
          Value(100 * version + i);
    }
    snapshots.push_back(db_->GetSnapshot());
    ASSERT_OK(Flush());
  }
  ReadOptions read_options;
  read_options.blob_prefetch_count = 64;
  read_options.ignore_range_deletions = true;
  Arena arena;
  ScopedArenaPtr<InternalIterator> iter(NewMapIterator(read_options, &arena));
  iter->SeekToFirst();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(iter->Valid());
    iter->Next();  // the queue is filled
  }
  // Frees the values while they are in the queue.
  for (const Snapshot* const s : snapshots) {
    db_->ReleaseSnapshot(s);
  }
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(db_->DeleteRange(WriteOptions(), Key(0), Key(10)));
  ASSERT_OK(Flush());
  CompactAll(db_->DefaultColumnFamily());
  WaitForRemovals();
  int old_versions = 0;
  for (; iter->Valid(); iter->Next()) {
    ParsedInternalKey key;
    ASSERT_OK(ParseInternalKey(iter->key(), &key, /*log_err_key=*/false));
    if (key.type != kTypeBlobIndex) {
      continue;
    }
    PinnableSlice value;
    ASSERT_OK(
        MapIterators::Fetch(iter.get(), key.user_key, iter->value(), &value));
    const std::string name = key.user_key.ToString();
    EXPECT_EQ(value, (model[{name, key.sequence}]));
    old_versions += value == Value(IdFromKey(name)) ? 1 : 0;
  }
  ASSERT_OK(iter->status());
  EXPECT_GE(old_versions, 1);
}

// Without an iterator that replaces it, a bound index is corrupt.
TEST_F(MapIteratorsTest, BoundIndexOfAnotherIteratorIsCorruption) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(1);
  Arena arena;
  ReadOptions read_options;
  ScopedArenaPtr<InternalIterator> iter(
      dbfull()->NewInternalIterator(read_options, &arena, kMaxSequenceNumber));
  PinnableSlice value;
  EXPECT_TRUE(MapIterators::Fetch(iter.get(), "k",
                                  std::string("\x12\1\0\0\0\0\0\0\0\x10\1", 11),
                                  &value)
                  .IsCorruption());
}

// A prefetched value is handed out once. Asked for again, it is read.
TEST_F(MapIteratorsTest, PrefetchedValueIsReadAgainIfAskedTwice) {
  DestroyAndReopen(MapOptions());
  PutAndFlush(20);
  ReadOptions read_options;
  read_options.blob_prefetch_count = 8;
  Arena arena;
  ScopedArenaPtr<InternalIterator> iter(NewMapIterator(read_options, &arena));
  int count = 0;
  std::string previous_key;
  std::string previous;
  for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++count) {
    const std::string key = iter->user_key().ToString();
    const std::string expected = Get(key);
    for (int i = 0; i < 2; ++i) {
      PinnableSlice value;
      ASSERT_OK(MapIterators::Fetch(iter.get(), key, iter->value(), &value));
      EXPECT_EQ(value, expected);
    }
    // A value of another key is never taken for it. (No record has that name.)
    PinnableSlice no_value;
    EXPECT_TRUE(
        MapIterators::Fetch(iter.get(), key + "x", iter->value(), &no_value)
            .IsCorruption());
    if (count > 0) {
      PinnableSlice value;
      ASSERT_OK(
          MapIterators::Fetch(iter.get(), previous_key, previous, &value));
      EXPECT_EQ(value, Get(previous_key));
    }
    previous_key = key;
    previous = iter->value().ToString();
  }
  ASSERT_OK(iter->status());
  EXPECT_EQ(count, 20);
  EXPECT_GT(Ticker(BLOB_MAP_PREFETCH_READ), 0u);
}

// Outside the prefix of the seek, the iterator excludes files whose filters do
// not have that prefix. So it may find entries that are hidden by an excluded
// file, and whose values were freed.
class MapIteratorPrefixTest : public MapIteratorsTest {
 public:
  static constexpr int kKeys = 4;

  static std::string KeyOf(char prefix, int i) {
    return std::string(3, prefix) + std::to_string(i);
  }
  static std::string OldValue(char prefix, int i) {
    return KeyOf(prefix, i) + std::string(100, 'o');
  }

  // Writes three files. From newest to oldest they have: prefix c; prefix a;
  // prefixes a to d.
  void Write(const std::function<void(int)>& hide) {
    Options options = MapOptions();
    options.prefix_extractor.reset(NewFixedPrefixTransform(3));
    BlockBasedTableOptions table;
    table.filter_policy.reset(NewBloomFilterPolicy(20));
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    DestroyAndReopen(options);
    for (char prefix = 'a'; prefix <= 'd'; ++prefix) {
      for (int i = 0; i < kKeys; ++i) {
        ASSERT_OK(Put(KeyOf(prefix, i), OldValue(prefix, i)));
        model_[KeyOf(prefix, i)] = OldValue(prefix, i);
      }
    }
    ASSERT_OK(Flush());
    ASSERT_OK(Put(KeyOf('a', 0), OldValue('a', 0)));
    ASSERT_OK(Flush());
    for (int i = 0; i < kKeys; ++i) {
      hide(i);
    }
    ASSERT_OK(Flush());
    WaitForRemovals();
  }

  // Checks that the value is one that the key has had.
  void Look(Iterator* iter) {
    ASSERT_TRUE(iter->Valid()) << iter->status().ToString();
    ASSERT_TRUE(iter->PrepareValue()) << iter->status().ToString();
    const std::string key = iter->key().ToString();
    if (iter->value() != Slice(OldValue(key[0], key[3] - '0'))) {
      EXPECT_EQ(iter->value(), model_[key]) << key;
    }
  }

  std::map<std::string, std::string> model_;
};

TEST_F(MapIteratorPrefixTest, HiddenKeysOutsideThePrefixCauseNoError) {
  for (const bool overwrite : {true, false}) {
    SCOPED_TRACE(overwrite);
    Write([&](int i) {
      if (overwrite) {
        model_[KeyOf('c', i)] = "new" + OldValue('c', i);
        ASSERT_OK(Put(KeyOf('c', i), model_[KeyOf('c', i)]));
      } else {
        model_.erase(KeyOf('c', i));
        ASSERT_OK(Delete(KeyOf('c', i)));
      }
    });
    ASSERT_FALSE(HasFatalFailure());
    for (int kind = 0; kind < 6; ++kind) {
      SCOPED_TRACE(kind);
      ReadOptions read_options;
      read_options.blob_prefetch_count = kind == 1 ? 7 : kind == 2 ? kAuto : 0;
      read_options.pin_data = kind == 3;
      read_options.tailing = kind == 4;
      read_options.allow_unprepared_value = kind == 5;
      std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      const auto see_all = [&](const std::string& from) {
        iter->Seek(from);
        for (; iter->Valid(); iter->Next()) {
          Look(iter.get());
          ASSERT_FALSE(HasFatalFailure());
        }
        ASSERT_OK(iter->status());
      };
      for (const char* from :
           {"aaa", "aaa3", "aaa5", "bbb", "bbb5", "ccc", "a"}) {
        SCOPED_TRACE(from);
        if (read_options.tailing && strlen(from) < kPrefixSize) {
          continue;  // ForwardIterator requires a prefix
        }
        see_all(from);
        ASSERT_FALSE(HasFatalFailure());
      }
      // Inside the prefix the results are exact.
      for (const char prefix : {'a', 'b', 'c', 'd'}) {
        std::string seen;
        std::string expected;
        if (read_options.tailing) {
          // ForwardIterator does not return to a file whose filter has excluded
          // one prefix.
          iter.reset(db_->NewIterator(read_options));
        }
        for (iter->Seek(KeyOf(prefix, 0));
             iter->Valid() && iter->key()[0] == prefix; iter->Next()) {
          Look(iter.get());
          ASSERT_FALSE(HasFatalFailure());
          seen += iter->key().ToString() + ";";
        }
        ASSERT_OK(iter->status());
        for (const auto& [key, value] : model_) {
          expected += key[0] == prefix ? key + ";" : "";
        }
        EXPECT_EQ(seen, expected);
      }
      if (read_options.tailing) {
        continue;
      }
      for (const char* from : {"ddd", "ddd3", "ccc9", "bbb3", "bbb"}) {
        SCOPED_TRACE(from);
        iter->SeekForPrev(from);
        for (; iter->Valid(); iter->Prev()) {
          Look(iter.get());
          ASSERT_FALSE(HasFatalFailure());
        }
        ASSERT_OK(iter->status());
        // Moves forward and backward.
        iter->Seek(from);
        for (int step = 0; step < 40 && iter->Valid(); ++step) {
          Look(iter.get());
          ASSERT_FALSE(HasFatalFailure());
          if (step % 5 < 3) {
            iter->Prev();
          } else {
            iter->Next();
          }
        }
        ASSERT_OK(iter->status());
      }
      iter->SeekToFirst();
      std::string all;
      for (; iter->Valid(); iter->Next()) {
        Look(iter.get());
        ASSERT_FALSE(HasFatalFailure());
        all += iter->key().ToString() + "=" + iter->value().ToString() + ";";
      }
      ASSERT_OK(iter->status());
      std::string expected;
      for (const auto& [key, value] : model_) {
        expected += key + "=" + value + ";";
      }
      EXPECT_EQ(all, expected);
    }
  }
}

// The value is freed between the lookup that finds it and the read.
TEST_F(MapIteratorPrefixTest, FoundValueIsReadAfterItIsFreed) {
  for (const bool backward : {false, true}) {
    for (int kind = 0; kind < 4; ++kind) {
      SCOPED_TRACE(kind);
      const Snapshot* snapshot = nullptr;
      Write([&](int i) {
        if (snapshot == nullptr) {
          snapshot = db_->GetSnapshot();
        }
        ASSERT_OK(Delete(KeyOf('c', i)));
      });
      ASSERT_FALSE(HasFatalFailure());
      ReadOptions read_options;
      read_options.allow_unprepared_value = kind == 0;
      read_options.pin_data = kind == 1;
      read_options.blob_prefetch_count = kind == 2 ? 7 : 0;
      read_options.tailing = kind == 3;
      if (read_options.tailing && backward) {
        db_->ReleaseSnapshot(snapshot);
        continue;
      }
      const std::string key = KeyOf('c', backward ? kKeys - 1 : 0);
      // A tailing iterator also keeps the entries before it.
      int to_pass = read_options.tailing ? kKeys : 0;
      bool released = false;
      const auto release = [&](void* /*arg*/) {
        if (to_pass > 0) {
          --to_pass;
        } else if (!released) {
          released = true;
          db_->ReleaseSnapshot(snapshot);
          WaitForRemovals();
          EXPECT_FALSE(Blobs()
                           ->map()
                           ->FindDirect(Blobs()->HashOf(key), /*pin=*/false)
                           .found);
        }
      };
      const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      if (!read_options.allow_unprepared_value) {
        // Other iterators read at once, so the value is freed between their two
        // lookups.
        SyncPoint::GetInstance()->SetCallBack("MapValueIterator::OnDead:Kept",
                                              release);
        SyncPoint::GetInstance()->EnableProcessing();
      }
      if (backward) {
        iter->SeekForPrev(KeyOf('d', 0));
        ASSERT_TRUE(iter->Valid());
        iter->Prev();
      } else {
        iter->Seek(KeyOf('b', 0));
        for (int i = 0; i < kKeys; ++i) {
          ASSERT_TRUE(iter->Valid());
          iter->Next();
        }
      }
      SyncPoint::GetInstance()->DisableProcessing();
      SyncPoint::GetInstance()->ClearAllCallBacks();
      if (read_options.allow_unprepared_value) {
        release(nullptr);
      }
      EXPECT_TRUE(released);
      Look(iter.get());
      ASSERT_FALSE(HasFatalFailure());
      EXPECT_EQ(iter->key(), key);
      while (iter->Valid()) {
        Look(iter.get());
        ASSERT_FALSE(HasFatalFailure());
        backward ? iter->Prev() : iter->Next();
      }
      ASSERT_OK(iter->status());
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
