//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_read.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "db/delta/delta_store_test_util.h"
#include "env/composite_env_wrapper.h"
#include "port/stack_trace.h"
#include "test_util/strata/deferred_read_test_util.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::Event;
using delta_test::Events;
using delta_test::Values;

class DeltaReadTest : public delta_test::DeltaStoreTestBase {
 protected:
  // Reads with descending bounds, like those of the entries in SST files.
  // ahead: the bound of a ReadAhead() before the first read.
  void CheckBounds(const std::string& key, SequenceNumber read_seq,
                   const std::vector<SequenceNumber>& bounds,
                   std::optional<SequenceNumber> ahead = std::nullopt) {
    const Values expected = Expected(key, read_seq);
    const LookupKey lookup_key(key, read_seq);
    const ReadOptions read_options;
    DeltaRead read(*version_, *store_, read_options, lookup_key);
    if (ahead.has_value()) {
      read.ReadAhead(*ahead);
    }
    size_t next = 0;
    for (const SequenceNumber bound : bounds) {
      DeltaRead::Operand operand;
      Status s;
      while (read.Next(bound, &operand, &s)) {
        ASSERT_LT(next, expected.size());
        ASSERT_GT(operand.seq, bound);
        ASSERT_EQ(expected[next].first, operand.seq);
        ASSERT_EQ(expected[next].second, operand.value);
        ++next;
      }
      ASSERT_OK(s);
      ASSERT_TRUE(next == expected.size() || expected[next].first <= bound);
    }
  }
};

// Checks up to four events of one key, each of them an operand, an anchor or a
// range anchor, in every distribution among a sorted file, a merged file and
// two flushed files, with several divisions into buckets. The key is read at
// every sequence number that makes a difference.
class DeltaReadExhaustiveTest : public DeltaReadTest {
 protected:
  enum Place { kSorted, kMerged, kFlushed, kFlushedLater, kNumPlaces };
  enum Layout {
    kNoBuckets,  // only if nothing is sorted
    kOneBucket,
    kOwnBucket,    // all floors are below the merged file
    kTakenIn,      // the key's bucket has taken the merged file in
    kTakenAround,  // all other buckets have
    kNumLayouts,
  };

  static constexpr uint64_t kMergedFirst = 5;
  static constexpr uint64_t kMergedLast = 8;

  // Returns operands of the keys beside "k". With them no file exists for "k"
  // alone, so that neither the key range of a file nor the filter of a block
  // decides the result.
  static Events Others(SequenceNumber seq) {
    Events events;
    for (const std::string key : {"j", "l"}) {
      Event event;
      event.key = key;
      event.seq = seq + (key == "j" ? 0 : 1);
      events.push_back(event);
    }
    return events;
  }

  // Adds a file with these events to the edit and returns its number, 0 if
  // there are none. Files with the same contents are written once.
  uint64_t FileOf(Kind kind, Tier tier, uint64_t first_epoch,
                  uint64_t last_epoch, const Events& events, DeltaEdit* edit) {
    std::string contents;
    for (const Event& event : events) {
      if ((event.type == Event::Type::kOperand) == (kind == Kind::kOperands)) {
        contents += event.Value() + event.end + " ";
      }
    }
    if (contents.empty()) {
      return 0;
    }
    const auto key = std::make_tuple(kind, tier, last_epoch, contents);
    auto found = files_.find(key);
    if (found == files_.end()) {
      const auto file = WriteFile(kind, tier, first_epoch, last_epoch, events);
      EXPECT_TRUE(file.has_value());
      found = files_.emplace(key, *file).first;
    }
    const uint64_t number = found->second.number;
    // The merged file may have nothing of this kind. Then the sorted file of
    // the bucket that has taken it in is that of the other buckets.
    if (std::none_of(edit->files().begin(), edit->files().end(),
                     [number](const DeltaFileDescription& file) {
                       return file.number == number;
                     })) {
      edit->AddFile(found->second);
    }
    return number;
  }

  void Build(const Events* places, Layout layout) {
    DeltaEdit edit;
    const auto add = [&](Tier tier, uint64_t first_epoch, uint64_t last_epoch,
                         const Events& events) {
      const uint64_t operands =
          FileOf(Kind::kOperands, tier, first_epoch, last_epoch, events, &edit);
      const uint64_t anchors =
          FileOf(Kind::kAnchors, tier, first_epoch, last_epoch, events, &edit);
      return DeltaBucketState{0, operands, operands == 0 ? 0u : 1u, anchors};
    };
    add(Tier::kMerged, kMergedFirst, kMergedLast, places[kMerged]);
    add(Tier::kFlushed, 10, 10, places[kFlushed]);
    add(Tier::kFlushed, 20, 20, places[kFlushedLater]);

    DeltaEdit::SnapshotPiece piece;
    piece.is_last = true;
    if (layout != kNoBuckets) {
      DeltaBucketState around = add(Tier::kSorted, 0, 0, places[kSorted]);
      DeltaBucketState own = around;
      if (layout == kTakenIn) {
        Events events = places[kSorted];
        events.insert(events.end(), places[kMerged].begin(),
                      places[kMerged].end());
        own = add(Tier::kSorted, 0, 0, events);
        own.floor = kMergedLast;
      } else if (layout == kTakenAround) {
        // The entries that the other buckets have taken in do not matter here.
        around.floor = kMergedLast;
      }
      if (layout == kOneBucket) {
        piece.buckets = {{"", own}};
      } else {
        piece.buckets = {{"", around}, {"k", own}, {"ka", around}};
      }
    }
    edit.SetSnapshotPiece(std::move(piece));
    version_.reset();
    Apply(edit);
    ASSERT_NE(nullptr, version_);
    ASSERT_OK(version_->CheckConsistency());
  }

  void Check(size_t num_events) {
    const SequenceNumber last = 10 * num_events;
    for (SequenceNumber read_seq = 5; read_seq <= last + 5; read_seq += 5) {
      ASSERT_EQ(Expected("k", read_seq), MustRead("k", read_seq));
    }
    for (SequenceNumber step : {5, 10, 15, 20}) {
      std::vector<SequenceNumber> bounds;
      for (SequenceNumber bound = last; bound > step; bound -= step) {
        bounds.push_back(bound);
      }
      bounds.push_back(0);
      CheckBounds("k", last + 5, bounds);
      CheckBounds("k", last - 5, bounds);
    }
  }

  std::map<std::tuple<Kind, Tier, uint64_t, std::string>, DeltaFileDescription>
      files_;
};

TEST_F(DeltaReadExhaustiveTest, AllStoresAreReadExactly) {
  for (size_t num_events = 1; num_events <= 4; ++num_events) {
    size_t num_kinds = 1;
    size_t num_distributions = 1;
    for (size_t i = 0; i < num_events; ++i) {
      num_kinds *= 3;
      num_distributions *= kNumPlaces;
    }
    for (size_t kinds = 0; kinds < num_kinds; ++kinds) {
      events_.clear();
      size_t left = kinds;
      for (size_t i = 0; i < num_events; ++i, left /= 3) {
        Event event;
        event.type = static_cast<Event::Type>(left % 3);
        event.seq = 10 * (i + 1);
        event.key = "k";
        if (event.type == Event::Type::kRangeAnchor) {
          event.key = i % 2 == 0 ? "a" : "k";
          event.end = "ka";
        }
        events_.push_back(event);
      }
      for (size_t d = 0; d < num_distributions; ++d) {
        // Newer events are in newer files.
        std::vector<size_t> place_of;
        left = d;
        for (size_t i = 0; i < num_events; ++i, left /= kNumPlaces) {
          place_of.push_back(left % kNumPlaces);
        }
        if (!std::is_sorted(place_of.begin(), place_of.end())) {
          continue;
        }
        Events places[kNumPlaces];
        SequenceNumber seq = 0;
        for (size_t place = 0; place < kNumPlaces; ++place) {
          for (size_t i = 0; i < num_events; ++i) {
            if (place_of[i] == place) {
              places[place].push_back(events_[i]);
              seq = events_[i].seq;
            }
          }
          const Events others = Others(seq + 1 + 2 * place);
          places[place].insert(places[place].end(), others.begin(),
                               others.end());
        }
        for (int l = 0; l < kNumLayouts; ++l) {
          const Layout layout = static_cast<Layout>(l);
          if (layout == kNoBuckets && place_of.front() == kSorted) {
            continue;
          }
          SCOPED_TRACE(std::to_string(num_events) + " events, kinds " +
                       std::to_string(kinds) + ", distribution " +
                       std::to_string(d) + ", layout " + std::to_string(l));
          Build(places, layout);
          Check(num_events);
          if (HasFailure()) {
            return;
          }
        }
      }
    }
  }
}

TEST_F(DeltaReadTest, RandomHistoriesAreReadExactly) {
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) {
    keys.push_back("key" + std::to_string(100 + i));
  }
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random rnd(seed);
    ResetHistory();
    for (int step = 0; step < 40; ++step) {
      RandomStep(keys, &rnd);
      ASSERT_OK(version_->CheckConsistency());
      for (const std::string& key : keys) {
        const SequenceNumber read_seq =
            rnd.Uniform(static_cast<int>(last_seq_) + 2);
        ASSERT_EQ(Expected(key, read_seq), MustRead(key, read_seq)) << key;
        std::vector<SequenceNumber> bounds;
        for (int i = 0; i < 4; ++i) {
          bounds.push_back(rnd.Uniform(static_cast<int>(last_seq_) + 2));
        }
        std::sort(bounds.rbegin(), bounds.rend());
        bounds.push_back(0);
        CheckBounds(key, read_seq, bounds);
      }
      // The store does not have these keys.
      ASSERT_EQ(Values(), MustRead("key", last_seq_));
      ASSERT_EQ(Values(), MustRead("key100x", last_seq_));
    }
    for (const std::string& key : keys) {
      for (SequenceNumber read_seq = 0; read_seq <= last_seq_ + 1; ++read_seq) {
        ASSERT_EQ(Expected(key, read_seq), MustRead(key, read_seq)) << key;
      }
    }
  }
}

// Uses a file system that reads asynchronously.
class DeltaReadAheadTest : public DeltaReadTest {
 protected:
  DeltaReadAheadTest()
      : fs_(std::make_shared<DeferredReadFileSystem>(env_->GetFileSystem())),
        deferred_env_(std::make_unique<CompositeEnvWrapper>(env_.get(), fs_)) {
    reads_async_ = true;
    options_.env = deferred_env_.get();
    Reopen();
    ResetStore();
  }
  ~DeltaReadAheadTest() override {
    EXPECT_EQ(0, fs_->under_way);
    EXPECT_EQ(0, fs_->handles);
  }

  void TearDown() override {
    DeltaReadTest::TearDown();
    // Files are closed before their file system.
    store_.reset();
    tables_.reset();
  }

  // Opens all files with an empty block cache, so that only the blocks of open
  // files are in memory.
  void EmptyCache() {
    const std::vector<DeltaEdit> edits = version_->SplitForSnapshot();
    ResetTableOptions();
    Reopen();
    ResetStore();
    for (const DeltaEdit& edit : edits) {
      Apply(edit);
    }
    for (const auto kind : {Kind::kOperands, Kind::kAnchors}) {
      for (const auto& file : version_->RecentFiles(kind)) {
        DeltaFileReader* reader = nullptr;
        EXPECT_OK(store_->GetReader(ReadOptions(), *file, &reader));
      }
    }
    fs_->events.clear();
  }

  size_t NumBegun() const {
    return static_cast<size_t>(std::count_if(
        fs_->events.begin(), fs_->events.end(), [](const std::string& event) {
          return Slice(event).starts_with("begin ");
        }));
  }

  const std::shared_ptr<DeferredReadFileSystem> fs_;
  const std::unique_ptr<Env> deferred_env_;
};

TEST_F(DeltaReadAheadTest, ReadAheadDoesNotChangeTheResult) {
  // Without a block cache each read has to read from a file.
  table_options_.no_block_cache = true;
  ResetTableOptions();
  Reopen();
  std::vector<std::string> keys;
  for (int i = 0; i < 10; ++i) {
    keys.push_back("key" + std::to_string(100 + i));
  }
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random rnd(seed);
    ResetHistory();
    for (int step = 0; step < 40; ++step) {
      RandomStep(keys, &rnd);
      for (const std::string& key : keys) {
        const SequenceNumber read_seq =
            rnd.Uniform(static_cast<int>(last_seq_) + 2);
        std::vector<SequenceNumber> bounds;
        for (int i = rnd.Uniform(4); i > 0; --i) {
          bounds.push_back(rnd.Uniform(static_cast<int>(last_seq_) + 2));
        }
        std::sort(bounds.rbegin(), bounds.rend());
        bounds.push_back(0);
        const SequenceNumber ahead =
            rnd.OneIn(3) ? rnd.Uniform(static_cast<int>(last_seq_) + 2) : 0;
        CheckBounds(key, read_seq, bounds, ahead);
        ASSERT_FALSE(HasFailure()) << key << " " << step;
      }
    }
  }
  ASSERT_GT(NumBegun(), 100);
}

TEST_F(DeltaReadAheadTest, BlocksInMemoryAreNotReadAgain) {
  Flush({{Event::Type::kOperand, "k", "", 10}});
  Flush({{Event::Type::kOperand, "k", "", 20}});
  // Returns how many reads ReadAhead() has begun.
  const auto read = [this](const std::string& key,
                           const ReadOptions& read_options = ReadOptions()) {
    const size_t before = NumBegun();
    const LookupKey lookup_key(key, 100);
    DeltaRead delta_read(*version_, *store_, read_options, lookup_key);
    delta_read.ReadAhead(/*above=*/0);
    const size_t begun = NumBegun() - before;
    EXPECT_EQ(begun > 0, delta_read.IsReadAhead());
    DeltaRead::Operand operand;
    Status s;
    size_t operands = 0;
    while (delta_read.Next(/*above=*/0, &operand, &s)) {
      ++operands;
    }
    EXPECT_OK(s);
    EXPECT_EQ(key == "k" ? 2 : 0, operands);
    return begun;
  };
  EmptyCache();
  ASSERT_EQ(2, read("k"));
  ASSERT_EQ(0, read("k"));
  ASSERT_EQ(0, read("x"));
  ASSERT_EQ(0, read("0"));

  EmptyCache();
  ReadOptions read_options;
  read_options.fill_cache = false;
  ASSERT_EQ(2, read("k", read_options));
  ASSERT_EQ(2, read("k"));
  ASSERT_EQ(0, read("k", read_options));
}

// The base is newer than all operands, so the reads that were begun are not
// needed. The destructor ends them.
TEST_F(DeltaReadAheadTest, ReadsThatAreNotNeededEndWithTheObject) {
  Flush({{Event::Type::kOperand, "k", "", 10}});
  EmptyCache();
  const LookupKey key("k", 100);
  const ReadOptions read_options;
  {
    DeltaRead read(*version_, *store_, read_options, key);
    read.ReadAhead(0);
    ASSERT_EQ(1, fs_->under_way);
    DeltaRead::Operand operand;
    Status s;
    ASSERT_FALSE(read.Next(10, &operand, &s));
    ASSERT_OK(s);
    ASSERT_TRUE(read.IsReadAhead());
  }
  ASSERT_EQ(0, fs_->under_way);
}

TEST_F(DeltaReadAheadTest, ErrorIsReportedOnlyIfTheFileIsNeeded) {
  Flush({{Event::Type::kOperand, "k", "", 10}});
  Flush({{Event::Type::kOperand, "k", "", 20}});
  ASSERT_OK(env_->DeleteFile(
      FileName(version_->RecentFiles(Kind::kOperands)[1]->description())));
  const LookupKey key("k", 100);
  const ReadOptions read_options;
  DeltaRead::Operand operand;
  Status s;
  {
    DeltaRead read(*version_, *store_, read_options, key);
    read.ReadAhead(0);
    ASSERT_TRUE(read.Next(0, &operand, &s));
    ASSERT_EQ(20, operand.seq);
    ASSERT_FALSE(read.Next(0, &operand, &s));
    ASSERT_TRUE(s.IsPathNotFound() || s.IsIOError() || s.IsNotFound())
        << s.ToString();
  }
  // A read that does not need the file does not report it.
  DeltaRead read(*version_, *store_, read_options, key);
  read.ReadAhead(0);
  ASSERT_TRUE(read.Next(15, &operand, &s));
  ASSERT_FALSE(read.Next(15, &operand, &s));
  ASSERT_OK(s);
}

TEST_F(DeltaReadAheadTest, OperandsOutOfOrderAreCorruption) {
  Flush({{Event::Type::kOperand, "k", "", 20},
         {Event::Type::kOperand, "z", "", 50}});
  Flush({{Event::Type::kOperand, "k", "", 10},
         {Event::Type::kOperand, "z", "", 60}});
  EmptyCache();
  for (const bool is_cached : {false, true}) {
    const LookupKey key("k", 100);
    const ReadOptions read_options;
    DeltaRead read(*version_, *store_, read_options, key);
    read.ReadAhead(0);
    ASSERT_EQ(!is_cached, read.IsReadAhead());
    DeltaRead::Operand operand;
    Status s;
    ASSERT_TRUE(read.Next(0, &operand, &s));
    ASSERT_EQ(10, operand.seq);
    ASSERT_FALSE(read.Next(0, &operand, &s));
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  }
}

// Values live as long as the object to which their pins were delegated.
TEST_F(DeltaReadTest, DelegatedPinsKeepTheValues) {
  for (const bool has_cache : {true, false}) {
    table_options_.no_block_cache = !has_cache;
    ResetTableOptions();
    Reopen();
    ResetHistory();
    Flush({{Event::Type::kOperand, "k", "", ++last_seq_}});
    Flush({{Event::Type::kOperand, "k", "", ++last_seq_}});
    std::vector<Slice> values;
    Cleanable pins;
    {
      const LookupKey key("k", last_seq_);
      const ReadOptions read_options;
      DeltaRead read(*version_, *store_, read_options, key);
      DeltaRead::Operand operand;
      Status s;
      while (read.Next(/*above=*/0, &operand, &s)) {
        values.push_back(operand.value);
        read.pins()->DelegateCleanupsTo(&pins);
      }
      ASSERT_OK(s);
    }
    ASSERT_EQ(2, values.size());
    ASSERT_EQ("k@" + std::to_string(last_seq_), values[0]);
    ASSERT_EQ("k@" + std::to_string(last_seq_ - 1), values[1]);
  }
}

// A file is not opened before it is needed. Anchors are not looked up if no
// filter reports operands of the key.
TEST_F(DeltaReadTest, FilesAreOpenedOnlyWhenNeeded) {
  Flush({{Event::Type::kOperand, "a", "", 10},
         {Event::Type::kOperand, "b", "", 11},
         {Event::Type::kOperand, "z", "", 12}});
  Flush({{Event::Type::kOperand, "a", "", 20},
         {Event::Type::kOperand, "z", "", 21}});
  Flush({{Event::Type::kAnchor, "b", "", 30},
         {Event::Type::kRangeAnchor, "a", "zz", 5}});
  const auto is_open = [this](Kind kind, size_t i) {
    return version_->RecentFiles(kind)[i]->OpenedReader() != nullptr;
  };
  // The key is outside the ranges of all files.
  ASSERT_EQ(Values(), MustRead("0", 100));
  ASSERT_FALSE(is_open(Kind::kOperands, 0));
  {
    // The first bound is not below the newest operand of any file, the second
    // one is below that of the newer file.
    const LookupKey key("a", 100);
    const ReadOptions read_options;
    DeltaRead read(*version_, *store_, read_options, key);
    DeltaRead::Operand operand;
    Status s;
    ASSERT_FALSE(read.Next(21, &operand, &s));
    ASSERT_OK(s);
    ASSERT_FALSE(is_open(Kind::kOperands, 0));
    ASSERT_TRUE(read.Next(15, &operand, &s));
    ASSERT_EQ(20, operand.seq);
    ASSERT_FALSE(read.Next(15, &operand, &s));
    ASSERT_OK(s);
    ASSERT_TRUE(is_open(Kind::kOperands, 0));
    ASSERT_FALSE(is_open(Kind::kOperands, 1));
  }

  // The key has no operands.
  ResetReaders();
  ASSERT_EQ(Values(), MustRead("c", 100));
  ASSERT_TRUE(is_open(Kind::kOperands, 0));
  ASSERT_TRUE(is_open(Kind::kOperands, 1));
  ASSERT_FALSE(is_open(Kind::kAnchors, 0));
  // The reader is older than all operands of the key.
  ResetReaders();
  ASSERT_EQ(Values(), MustRead("a", 9));
  ASSERT_FALSE(is_open(Kind::kOperands, 0));
  ASSERT_FALSE(is_open(Kind::kOperands, 1));
  ASSERT_EQ(Values(), MustRead("b", 100));
  ASSERT_TRUE(is_open(Kind::kAnchors, 0));
}

TEST_F(DeltaReadTest, ReadWithoutIONeedsOpenFilesAndCachedBlocks) {
  Flush({{Event::Type::kOperand, "k", "", 10}});
  Flush({{Event::Type::kAnchor, "k", "", 15}});
  Flush({{Event::Type::kOperand, "k", "", 20}});
  ReadOptions memory_only;
  memory_only.read_tier = kBlockCacheTier;
  Values values;
  // The files are closed.
  ASSERT_TRUE(Read("k", 100, &values, memory_only).IsIncomplete());
  ASSERT_OK(Read("a", 100, &values, memory_only));
  // The files are open, but their blocks are not in memory.
  for (const auto kind : {Kind::kOperands, Kind::kAnchors}) {
    for (const auto& file : version_->RecentFiles(kind)) {
      DeltaFileReader* reader = nullptr;
      ASSERT_OK(store_->GetReader(ReadOptions(), *file, &reader));
    }
  }
  ASSERT_TRUE(Read("k", 100, &values, memory_only).IsIncomplete());
  ASSERT_EQ((Values{{20, "k@20"}}), MustRead("k", 100));
  ASSERT_OK(Read("k", 100, &values, memory_only));
  ASSERT_EQ((Values{{20, "k@20"}}), values);
}

TEST_F(DeltaReadTest, MissingFileFailsOnlyReadsThatNeedIt) {
  Flush({{Event::Type::kOperand, "k", "", 10}});
  Flush({{Event::Type::kAnchor, "k", "", 15}});
  Flush({{Event::Type::kOperand, "k", "", 20}});
  Values values;
  const auto remove = [this](Kind kind, size_t i) {
    ASSERT_OK(env_->DeleteFile(
        FileName(version_->RecentFiles(kind)[i]->description())));
  };
  remove(Kind::kOperands, 1);
  // The anchor hides the operand of the missing file.
  ASSERT_OK(Read("k", 100, &values));
  ASSERT_EQ((Values{{20, "k@20"}}), values);
  ASSERT_NOK(Read("k", 12, &values));
  ResetReaders();
  remove(Kind::kAnchors, 0);
  ASSERT_NOK(Read("k", 100, &values));
}

// DeleteFilesInRanges() writes anchors with old sequence numbers to a new file.
// So neither the first file that has an anchor of the key nor the first one
// that cannot have a newer one ends the search.
TEST_F(DeltaReadTest, NewestAnchorIsFoundBehindFilesWithOlderOnes) {
  Flush({{Event::Type::kOperand, "k", "", 40},
         {Event::Type::kOperand, "k", "", 70}});
  Flush({{Event::Type::kAnchor, "k", "", 60}});
  Flush(
      {{Event::Type::kAnchor, "j", "", 3}, {Event::Type::kAnchor, "l", "", 4}});
  Flush({{Event::Type::kAnchor, "k", "", 5}});
  ASSERT_EQ((Values{{70, "k@70"}}), MustRead("k", 100));
  ASSERT_EQ((Values{{40, "k@40"}}), MustRead("k", 50));
  ASSERT_EQ(Values(), MustRead("k", 65));
}

// The newer file has the older operand, which flushes never cause.
TEST_F(DeltaReadTest, OlderOperandInANewerFileIsCorruption) {
  Flush({{Event::Type::kOperand, "k", "", 20},
         {Event::Type::kOperand, "z", "", 50}});
  Flush({{Event::Type::kOperand, "k", "", 10},
         {Event::Type::kOperand, "z", "", 60}});
  Values values;
  const Status s = Read("k", 100, &values);
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  ASSERT_NE(std::string::npos, s.ToString().find(".delta")) << s.ToString();
  ASSERT_EQ((Values{{10, "k@10"}}), values);
}

TEST_F(DeltaReadTest, FindSortedDeltaFileFindsByNumber) {
  Flush({{Event::Type::kOperand, "k", "", 10}});
  Merge(1);
  ASSERT_EQ(nullptr, FindSortedDeltaFile(*version_, 1));
  Collect(0, 1, 1, {"", "l"});
  const uint64_t number =
      version_->SortedFiles().front().file->description().number;
  ASSERT_EQ(version_->SortedFiles().front().file.get(),
            FindSortedDeltaFile(*version_, number));
  ASSERT_EQ(nullptr, FindSortedDeltaFile(*version_, number - 1));
  ASSERT_EQ(nullptr, FindSortedDeltaFile(*version_, number + 1));
  ASSERT_EQ((Values{{10, "k@10"}}), MustRead("k", 10));
  ASSERT_EQ(Values(), MustRead("l", 10));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
