//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Iterators of a column family with an address map, with all kinds of options,
// while data is written and jobs run. They are compared with a model that has
// the contents of the database at the time when the iterator was made.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/snapshot.h"
#include "test_util/strata/map_iterator_walk_test_util.h"
#include "test_util/strata/map_iterator_writer_test_util.h"
#include "test_util/strata/prefixed_keys_test_util.h"

// The file system calls this before it reads asynchronously.
std::atomic<bool> g_io_uring{true};
extern "C" bool RocksDbIOUringEnable() { return g_io_uring; }

namespace ROCKSDB_NAMESPACE {

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
    return read_options.blob_prefetch_count > 0 &&
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
      Variant& v = add("PinDataSevenAhead");
      v.read_options.pin_data = true;
      v.read_options.blob_prefetch_count = 7;
    }
    {
      Variant& v = add("PinDataNoReadAhead");
      v.read_options.pin_data = true;
      v.read_options.blob_prefetch_count = 0;
    }
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

class MapIteratorsModelTest : public MapIteratorWalkTestBase,
                              public testing::WithParamInterface<size_t> {
 public:
  MapIteratorsModelTest()
      : MapIteratorWalkTestBase("db_map_iterator_model_test") {}

  void ChooseBounds(const Variant& variant, Cursor* cursor) {
    if (!variant.has_bounds) {
      return;
    }
    if (variant.read_options.prefix_same_as_start) {
      // The bounds and all targets have one prefix.
      cursor->only_prefix =
          static_cast<int>(rnd_.Uniform(PrefixedKeys::kPrefixes));
      const int i = static_cast<int>(rnd_.Uniform(10));
      cursor->lower = PrefixedKeys::Of(cursor->only_prefix, i);
      cursor->upper = PrefixedKeys::Of(
          cursor->only_prefix,
          i + 5 +
              static_cast<int>(rnd_.Uniform(PrefixedKeys::kKeysOfPrefix - 15)));
    } else {
      cursor->lower = PrefixedKeys::Random(&rnd_);
      cursor->upper = PrefixedKeys::Random(&rnd_);
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
      options.prefix_extractor.reset(
          NewFixedPrefixTransform(PrefixedKeys::kPrefixSize));
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
      std::shared_ptr<const Contents> model;
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
    WaitForJobs();
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

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
