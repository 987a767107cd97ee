//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_gc_picker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class BlobGcPickerTest : public testing::Test {
 protected:
  using File = BlobGcPicker::File;

  BlobGcPickerTest() {
    options_.space_amp_limit = 1.2;
    options_.max_copied = uint64_t{1} << 40;
    options_.next_file_number = 1000;
  }

  File* Add(uint64_t number, uint64_t size, uint64_t live_size) {
    File file;
    file.number = number;
    file.size = size;
    file.live_size = live_size;
    files_.push_back(file);
    return &files_.back();
  }

  BlobGcPicker::Job Pick() const {
    return BlobGcPicker::Pick(options_, files_);
  }
  uint64_t Excess() const { return BlobGcPicker::Excess(options_, files_); }

  static std::set<uint64_t> Numbers(const BlobGcPicker::Job& job) {
    return std::set<uint64_t>(job.files.begin(), job.files.end());
  }

  BlobGcPicker::Options options_;
  std::vector<File> files_;
};

TEST_F(BlobGcPickerTest, SpaceCountsFilesAndCopies) {
  EXPECT_EQ(1.0, BlobGcPicker::SpaceOf(files_, 0).Amplification());
  Add(1, 100, 0);
  EXPECT_EQ(std::numeric_limits<double>::infinity(),
            BlobGcPicker::SpaceOf(files_, 0).Amplification());
  Add(2, 100, 100);
  Add(3, 200, 100);
  const auto space = BlobGcPicker::SpaceOf(files_, 50);
  EXPECT_EQ(450u, space.on_disk);
  EXPECT_EQ(200u, space.live);
  EXPECT_EQ(2.25, space.Amplification());
}

// A job takes hot files of one home, or files without hot values.
TEST_F(BlobGcPickerTest, JobsTakeFilesOfOneMark) {
  options_.space_amp_limit = 1.01;
  options_.min_copied = 1 << 20;
  for (uint64_t number = 1; number <= 9; ++number) {
    Add(number, 1000, 100)->hot =
        number % 3 == 0 ? HotMark() : HotMark::WithHome(number % 3);
  }
  const BlobGcPicker::Job job = Pick();
  ASSERT_EQ(3u, job.files.size());
  for (const uint64_t number : job.files) {
    EXPECT_TRUE(files_[number - 1].hot == job.hot);
  }
}

TEST_F(BlobGcPickerTest, SmallHotFilesAreMergedByTiersAlone) {
  options_.file_size = uint64_t{1} << 20;
  options_.min_copied = 1 << 20;
  for (uint64_t number = 1; number <= BlobGcPicker::kTierFactor; ++number) {
    Add(number, 1000, 1000)->hot = HotMark::WithHome(1);
  }
  Add(100, 1000, 1000);
  const BlobGcPicker::Job job = BlobGcPicker::PickSmall(options_, files_);
  EXPECT_EQ(BlobGcPicker::kTierFactor, job.files.size());
  EXPECT_TRUE(job.hot == HotMark::WithHome(1));
  options_.merge_all_small = true;
  EXPECT_TRUE(BlobGcPicker::PickSmall(options_, files_).files.empty());
  Add(101, 1000, 1000);
  EXPECT_EQ((std::set<uint64_t>{100, 101}),
            Numbers(BlobGcPicker::PickSmall(options_, files_)));
}

TEST_F(BlobGcPickerTest, PicksNothingWithoutGarbage) {
  EXPECT_EQ(0u, Excess());
  EXPECT_TRUE(Pick().files.empty());
  for (uint64_t number = 1; number <= 10; ++number) {
    Add(number, 1000, 1000);
  }
  options_.space_amp_limit = 1.0;
  EXPECT_EQ(0u, Excess());
  EXPECT_TRUE(Pick().files.empty());
}

TEST_F(BlobGcPickerTest, RoomForSortsIsBelowTheLimit) {
  // There are 32,000 live bytes. The limit allows 8,000 bytes of garbage, of
  // which 1,000 are reserved for the file that is copied and 100 for a flush.
  options_.space_amp_limit = 1.25;
  options_.flush_size = 100;
  for (uint64_t number = 1; number <= 31; ++number) {
    Add(number, 1000, 1000);
  }
  File* const file = Add(32, 1000, 1000);
  EXPECT_EQ(6900u, BlobGcPicker::SortRoom(options_, files_));
  EXPECT_EQ(2000u, BlobGcPicker::WantedSortRoom(options_, files_));
  file->size += 4900;
  EXPECT_EQ(2000u, BlobGcPicker::SortRoom(options_, files_));
  // Files are collected as long as the room is smaller than what is wanted.
  options_.wanted_room = 2000;
  EXPECT_EQ(0u, Excess());
  file->size += 1;
  EXPECT_EQ(1999u, BlobGcPicker::SortRoom(options_, files_));
  EXPECT_EQ(1u, Excess());
  file->size += 10000;
  EXPECT_EQ(0u, BlobGcPicker::SortRoom(options_, files_));
  // A job never copies more than this.
  options_.max_copied = 700;
  file->size = 1000;
  EXPECT_EQ(700u, BlobGcPicker::SortRoom(options_, files_));
  EXPECT_EQ(700u, BlobGcPicker::WantedSortRoom(options_, files_));
}

TEST_F(BlobGcPickerTest, OldestFilesOfFlushesAreMergedForScans) {
  uint64_t room = 10000;
  const auto pick = [&] { return BlobGcPicker::PickWide(files_, room); };
  for (uint64_t number = BlobGcPicker::kMinWide + 3; number >= 2; --number) {
    Add(number, 1100, 1000);
  }
  Add(1, 500, 500)->is_survivor = true;
  const BlobGcPicker::Job job = pick();
  EXPECT_EQ(std::set<uint64_t>({2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), Numbers(job));
  EXPECT_EQ(11000u, job.size);
  EXPECT_EQ(10000u, job.live_size);
  // Too few have room, or are not busy.
  room = 1000 * BlobGcPicker::kMinWide - 1;
  EXPECT_TRUE(pick().files.empty());
  room = 1000 * BlobGcPicker::kMinWide;
  EXPECT_EQ(BlobGcPicker::kMinWide, pick().files.size());
  for (int i = 0; i < 3; ++i) {
    files_[i].is_busy = true;
  }
  EXPECT_TRUE(pick().files.empty());
  // Files of one path belong together.
  for (uint64_t number = 101; number < 101 + BlobGcPicker::kMinWide; ++number) {
    Add(number, 1000, 1000)->path_id = 1;
  }
  EXPECT_EQ(1u, pick().path_id);
  EXPECT_EQ(101u, *Numbers(pick()).begin());
}

TEST_F(BlobGcPickerTest, BeginsBelowTheLimit) {
  // There are 32,000 live bytes. The limit allows 8,000 bytes of garbage, of
  // which 1,000 are reserved for the file that is copied and 100 for a flush.
  options_.space_amp_limit = 1.25;
  options_.flush_size = 100;
  for (uint64_t number = 1; number <= 31; ++number) {
    Add(number, 1000, 1000);
  }
  File* const file = Add(32, 1000 + 6900, 1000);
  EXPECT_EQ(500u, BlobGcPicker::MaxCopied(options_,
                                          BlobGcPicker::SpaceOf(files_, 0)));
  EXPECT_EQ(0u, Excess());
  EXPECT_TRUE(Pick().files.empty());
  file->size += 1;
  EXPECT_EQ(1u, Excess());
  EXPECT_EQ(std::set<uint64_t>({32}), Numbers(Pick()));
  // A flush that is large compared with the database does not use up all of the
  // allowed garbage.
  options_.flush_size = 1 << 20;
  file->size = 1000 + 5000;
  EXPECT_EQ(0u, Excess());
  file->size += 1;
  EXPECT_EQ(1u, Excess());
  // A file that is being collected does not count as garbage.
  file->is_busy = true;
  EXPECT_EQ(0u, Excess());
}

// All jobs that may run at a time have room for their copies, and no job copies
// more than its share.
TEST_F(BlobGcPickerTest, LeavesRoomForTheCopiesOfAllJobs) {
  options_.space_amp_limit = 1.25;
  for (uint64_t number = 1; number <= 99; ++number) {
    Add(number, 1000, 1000);
  }
  File* const file = Add(100, 1000, 1000);
  struct Case {
    int jobs;
    uint64_t copied;
    uint64_t allowed;
  };
  // The limit allows 25,000 bytes of garbage. With many jobs the share of a job
  // is less than a file, but one file is always copied; at most a quarter of
  // the allowed garbage is reserved for copies.
  for (const Case& c :
       {Case{1, 1562, 23438}, Case{2, 1562, 21876}, Case{4, 781, 21000},
        Case{8, 390, 18750}, Case{100, 31, 18750}}) {
    SCOPED_TRACE(c.jobs);
    options_.max_jobs = c.jobs;
    file->size = 1000 + c.allowed;
    EXPECT_EQ(c.copied, BlobGcPicker::MaxCopied(
                            options_, BlobGcPicker::SpaceOf(files_, 0)));
    EXPECT_EQ(0u, Excess());
    ++file->size;
    EXPECT_EQ(1u, Excess());
  }
}

TEST_F(BlobGcPickerTest, PrefersGarbageAndAge) {
  options_.space_amp_limit = 1.0;
  Add(998, 1000, 500);
  Add(999, 1000, 400);
  EXPECT_EQ(std::vector<uint64_t>({999}), Pick().files);
  Add(100, 1000, 500);
  EXPECT_EQ(std::vector<uint64_t>({100}), Pick().files);
  Add(101, 1000, 950);
  EXPECT_EQ(std::vector<uint64_t>({100}), Pick().files);
  Add(102, 1000, 0);
  EXPECT_EQ(std::vector<uint64_t>({102}), Pick().files);
  files_.back().is_busy = true;
  EXPECT_EQ(std::vector<uint64_t>({100}), Pick().files);
}

TEST_F(BlobGcPickerTest, PicksFilesOfOnePathAndKind) {
  for (uint64_t number = 1; number <= 8; ++number) {
    File* const file = Add(number, 1000, 500);
    file->path_id = number % 2;
    file->is_survivor = number > 4;
  }
  Add(100, 100000, 100000);
  options_.space_amp_limit = 1.01;
  options_.max_copied = 1000;
  EXPECT_EQ(
      65u, BlobGcPicker::MaxCopied(options_, BlobGcPicker::SpaceOf(files_, 0)));
  // At least one file is picked.
  BlobGcPicker::Job job = Pick();
  EXPECT_EQ(std::vector<uint64_t>({1}), job.files);
  EXPECT_EQ(1u, job.path_id);
  EXPECT_EQ(1000u, job.size);
  EXPECT_EQ(500u, job.live_size);

  files_.back() = File();
  files_.back().number = 100;
  files_.back().size = files_.back().live_size = 10000000;
  options_.space_amp_limit = 1.0001;
  job = Pick();
  EXPECT_EQ(std::vector<uint64_t>({1}), job.files);
  // 6,255 bytes may be copied, more than the files of one kind have.
  options_.space_amp_limit = 1.0002;
  files_.back().size = files_.back().live_size = 500000000;
  EXPECT_TRUE(Pick().files.empty());
  files_[0].size = 110000;
  files_[1].size = 110000;  // on another path
  files_[2].size = 110000;
  files_[6].size = 110000;  // a survivor
  job = Pick();
  EXPECT_EQ(std::vector<uint64_t>({1, 3}), job.files);
  EXPECT_EQ(220000u, job.size);
  EXPECT_EQ(1000u, job.live_size);
  options_.max_copied = 999;
  EXPECT_EQ(std::vector<uint64_t>({1}), Pick().files);
}

TEST_F(BlobGcPickerTest, PicksAtMostMaxFiles) {
  options_.space_amp_limit = 1.0;
  for (uint64_t number = 1; number <= 100; ++number) {
    Add(number, 100, 0);
  }
  EXPECT_EQ(BlobGcPicker::kMaxFiles, Pick().files.size());
}

namespace {

// Simulates a store of values of size 1. Memtables of kMemtable writes are
// flushed to one file each, and jobs run one at a time.
class Store {
 public:
  static constexpr size_t kKeys = 40000;
  static constexpr size_t kMemtable = 400;

  // file_size: if not 0, jobs write in pieces (NumPieces()), and the picker
  // knows the keys of survivors.
  explicit Store(double limit, uint64_t file_size = 0) : file_size_(file_size) {
    options_.space_amp_limit = limit;
    options_.comparator = BytewiseComparator();
    options_.flush_size = kMemtable;
    options_.max_copied = 4 * kMemtable;
    file_of_.resize(kKeys);
    std::vector<uint32_t> keys;
    for (uint32_t key = 0; key < kKeys; ++key) {
      keys.push_back(key);
      if (keys.size() == kMemtable) {
        Write(keys, /*is_survivor=*/false);
        keys.clear();
      }
    }
  }

  void Flush(const std::set<uint32_t>& keys) {
    Write(std::vector<uint32_t>(keys.begin(), keys.end()), false);
    flushed_ += keys.size();
    Observe(0);
    for (;;) {
      options_.next_file_number = next_;
      const auto job = BlobGcPicker::Pick(options_, Files());
      if (job.files.empty()) {
        break;
      }
      std::vector<uint32_t> live;
      for (const uint64_t number : job.files) {
        for (const uint32_t key : at_.at(number).keys) {
          if (file_of_[key] == number) {
            live.push_back(key);
          }
        }
      }
      ASSERT_EQ(job.live_size, live.size());
      ASSERT_LT(live.size(), job.size);
      Observe(live.size());
      copied_ += live.size();
      WriteSurvivors(std::move(live));
      for (const uint64_t number : job.files) {
        ASSERT_EQ(0u, at_.count(number));
      }
    }
  }

  double write_amp() const {
    return 1.0 + static_cast<double>(copied_) / static_cast<double>(flushed_);
  }
  double worst() const { return worst_; }
  size_t num_files() const { return at_.size(); }
  // Returns the mean number of files that have the values of 100 neighbors.
  double Places() const {
    size_t places = 0;
    for (size_t key = 0; key < kKeys; key += 100) {
      places += std::set<uint64_t>(file_of_.begin() + key,
                                   file_of_.begin() + key + 100)
                    .size();
    }
    return static_cast<double>(places) / (kKeys / 100);
  }
  void ResetCounters() { flushed_ = copied_ = 0; }

 private:
  struct Content {
    std::vector<uint32_t> keys;
    uint64_t live = 0;
    bool is_survivor = false;
    BlobGcPicker::KeyRange range;
  };

  void WriteSurvivors(std::vector<uint32_t>&& keys) {
    if (file_size_ == 0) {
      Write(keys, true);
      return;
    }
    std::sort(keys.begin(), keys.end());
    const size_t num_pieces = BlobGcPicker::NumPieces(keys.size(), file_size_);
    const size_t piece = (keys.size() + num_pieces - 1) / num_pieces;
    for (size_t i = 0; i < keys.size(); i += piece) {
      Write(std::vector<uint32_t>(
                keys.begin() + i,
                keys.begin() + std::min(i + piece, keys.size())),
            true);
    }
  }

  static std::string KeyOf(uint32_t key) {
    return std::to_string(100000 + key);
  }

  std::vector<BlobGcPicker::File> Files() const {
    std::vector<BlobGcPicker::File> files;
    for (const auto& file : at_) {
      BlobGcPicker::File f;
      f.number = file.first;
      f.size = file.second.keys.size();
      f.live_size = file.second.live;
      f.is_survivor = file.second.is_survivor;
      f.keys = file_size_ > 0 && f.is_survivor ? &file.second.range : nullptr;
      files.push_back(f);
    }
    return files;
  }

  void Observe(uint64_t copies) {
    worst_ = std::max(worst_,
                      BlobGcPicker::SpaceOf(Files(), copies).Amplification());
  }

  void Write(const std::vector<uint32_t>& keys, bool is_survivor) {
    if (keys.empty()) {
      return;
    }
    const uint64_t number = next_++;
    Content& content = at_[number];
    content.keys = keys;
    content.live = keys.size();
    content.is_survivor = is_survivor;
    content.range = {KeyOf(keys.front()), KeyOf(keys.back())};
    for (const uint32_t key : keys) {
      const auto old = at_.find(file_of_[key]);
      if (old != at_.end() && --old->second.live == 0) {
        at_.erase(old);
      }
      file_of_[key] = number;
    }
  }

  const uint64_t file_size_;
  BlobGcPicker::Options options_;
  std::vector<uint64_t> file_of_;
  std::map<uint64_t, Content> at_;
  uint64_t next_ = 1;
  uint64_t flushed_ = 0;
  uint64_t copied_ = 0;
  double worst_ = 0;
};

}  // namespace

// The simulated store keeps the space limit at a write amplification that is
// close to that of the first-in, first-out policy. Under steady uniform
// overwrites this policy leaves a live fraction u in the file that it collects,
// with (u - 1) / ln(u) = 1 / limit, and its write amplification is 1 / (1 - u).
TEST_F(BlobGcPickerTest, UniformOverwritesKeepLimitAndWriteAmp) {
  for (const double limit : {1.1, 1.2, 1.5}) {
    SCOPED_TRACE(limit);
    Store store(limit);
    Random64 random(301);
    for (size_t n = 0; n < 5 * Store::kKeys; n += Store::kMemtable) {
      std::set<uint32_t> keys;
      for (size_t i = 0; i < Store::kMemtable; ++i) {
        keys.insert(static_cast<uint32_t>(random.Uniform(Store::kKeys)));
      }
      store.Flush(keys);
      if (n == 2 * Store::kKeys) {
        store.ResetCounters();
      }
    }
    EXPECT_LE(store.worst(), limit * 1.005);
    double u = 0.5;
    for (int i = 0; i < 200; ++i) {
      u = std::exp((u - 1) * limit);
    }
    // Collection begins below the limit, see BeginsBelowTheLimit.
    EXPECT_LE(store.write_amp(), 1 / (1 - u) * 1.35);
  }
}

// What is copied again and again comes to files of ever fewer keys, for about
// the same write amplification.
TEST_F(BlobGcPickerTest, SurvivorsOfOneKeyRangeComeTogether) {
  for (const bool is_skewed : {false, true}) {
    SCOPED_TRACE(is_skewed);
    // One with a full file for each job, and one with pieces.
    Store stores[] = {Store(1.2), Store(1.2, 5 * Store::kMemtable / 4)};
    for (Store& store : stores) {
      Random64 random(303);
      for (size_t n = 0; n < 5 * Store::kKeys; n += Store::kMemtable) {
        std::set<uint32_t> keys;
        while (keys.size() < Store::kMemtable) {
          const uint64_t r = random.Uniform(Store::kKeys);
          keys.insert(static_cast<uint32_t>(
              !is_skewed || random.OneIn(10) ? r : r / 10 * 10));
        }
        store.Flush(keys);
      }
      EXPECT_LE(store.worst(), 1.2 * 1.005);
    }
    EXPECT_LE(stores[1].Places(), stores[0].Places() * 0.85);
    EXPECT_LE(stores[1].write_amp(), stores[0].write_amp() * 1.03);
    EXPECT_LE(stores[1].num_files(), stores[0].num_files() * 4);
  }
}

TEST_F(BlobGcPickerTest, PrefersFilesThatOverlapTheBest) {
  options_.space_amp_limit = 1.0;
  options_.min_copied = 1500;
  options_.comparator = BytewiseComparator();
  const BlobGcPicker::KeyRange range_a{"a", "c"};
  const BlobGcPicker::KeyRange range_b{"c", "d"};
  const BlobGcPicker::KeyRange range_x{"cc", "f"};
  Add(1, 1000, 500)->keys = &range_a;
  Add(2, 1000, 501)->keys = &range_x;
  Add(3, 1000, 502)->keys = &range_b;
  Add(4, 1000, 503);
  const BlobGcPicker::KeyRange range_left{"A", "Z"};
  Add(5, 1000, 501)->keys = &range_left;
  EXPECT_EQ(std::set<uint64_t>({1, 3}), Numbers(Pick()));
  // A file of unknown keys counts as overlapping.
  files_[2].is_busy = true;
  EXPECT_EQ(std::set<uint64_t>({1, 4}), Numbers(Pick()));
  // Others are picked if there is room.
  files_[3].is_busy = true;
  EXPECT_EQ(std::set<uint64_t>({1, 2}), Numbers(Pick()));
  // The score comes first.
  files_[2].is_busy = false;
  files_[2].live_size = 999;
  EXPECT_EQ(std::set<uint64_t>({1, 2}), Numbers(Pick()));
}

TEST_F(BlobGcPickerTest, PiecesAreNotSmall) {
  constexpr uint64_t kFile = 800;
  const auto pieces = [](uint64_t live_size) {
    return BlobGcPicker::NumPieces(live_size, kFile);
  };
  EXPECT_EQ(pieces(0), 1u);
  EXPECT_EQ(pieces(100), 1u);
  EXPECT_EQ(pieces(201), 1u);
  EXPECT_EQ(pieces(202), 2u);
  EXPECT_EQ(pieces(404), 4u);
  EXPECT_EQ(pieces(799), 4u);
  EXPECT_EQ(pieces(1004), 4u);
  EXPECT_EQ(pieces(1005), 5u);
  EXPECT_EQ(pieces(8040), 40u);
  for (const uint64_t file_size : {0, 1, 3, 1000}) {
    for (uint64_t live_size = 0; live_size < 3000; ++live_size) {
      const uint64_t piece =
          live_size / BlobGcPicker::NumPieces(live_size, file_size);
      ASSERT_GE(piece,
                std::min(live_size, file_size / BlobGcPicker::kSmallPart));
      ASSERT_LE(piece, file_size / BlobGcPicker::kPieces * 2 + 2);
    }
  }
}

// The same holds if some keys are written much more often than others.
TEST_F(BlobGcPickerTest, SkewedOverwritesKeepLimitAndWriteAmp) {
  Store store(1.2);
  Random64 random(302);
  for (size_t n = 0; n < 10 * Store::kKeys; n += Store::kMemtable) {
    std::set<uint32_t> keys;
    while (keys.size() < Store::kMemtable) {
      // Nine of ten writes go to a tenth of the keys, which are scattered.
      const uint64_t r = random.Uniform(Store::kKeys);
      keys.insert(static_cast<uint32_t>(random.OneIn(10) ? r : r / 10 * 10));
    }
    store.Flush(keys);
    if (n == 4 * Store::kKeys) {
      store.ResetCounters();
    }
  }
  EXPECT_LE(store.worst(), 1.2 * 1.005);
  // It would be above 3.2 if files were picked by garbage alone and survivors
  // were not kept apart.
  EXPECT_LE(store.write_amp(), 2.6);
}

// With many small flushes, each value is copied at most once per tier, and the
// number of files stays small.
TEST_F(BlobGcPickerTest, SmallFilesAreMergedInTiers) {
  constexpr uint64_t kFlush = 300;
  options_.file_size = 1 << 20;
  options_.flush_size = 1 << 20;
  uint64_t copied = 0;
  uint64_t next = 1;
  constexpr uint64_t kFlushes = 20000;
  size_t most = 0;
  for (uint64_t i = 0; i < kFlushes; ++i) {
    Add(next++, kFlush, kFlush);
    for (;;) {
      const BlobGcPicker::Job job = BlobGcPicker::PickSmall(options_, files_);
      if (job.files.empty()) {
        break;
      }
      ASSERT_GE(job.files.size(), BlobGcPicker::kMinMerged);
      ASSERT_EQ(job.size, job.live_size);
      copied += job.size;
      const std::set<uint64_t> merged = Numbers(job);
      std::erase_if(files_, [&](const File& file) {
        return merged.count(file.number) > 0;
      });
      File* const output = Add(next++, job.live_size, job.live_size);
      output->is_survivor = true;
    }
    most = std::max(most, files_.size());
  }
  // The tiers have files of 300, 4,800 and 76,800 bytes; from 131,072 bytes on,
  // a file is not small.
  EXPECT_LE(copied, 3 * kFlushes * kFlush);
  EXPECT_GE(copied, 2 * kFlushes * kFlush);
  EXPECT_LE(most, kFlushes * kFlush / (options_.file_size / 8) +
                      4 * BlobGcPicker::kTierFactor);
}

TEST_F(BlobGcPickerTest, SmallFilesAreMergedOnlyIfAlikeIdleAndAffordable) {
  const auto pick = [&] {
    return Numbers(BlobGcPicker::PickSmall(options_, files_));
  };
  options_.file_size = 800000;
  options_.flush_size = 1 << 20;
  for (uint64_t number = 1; number <= 16; ++number) {
    Add(number, 1000, 1000);
  }
  ASSERT_EQ(16u, pick().size());
  // Each of these changes excludes one file, so too few are left.
  files_[0].is_busy = true;
  ASSERT_TRUE(pick().empty());
  files_[0].is_busy = false;
  files_[0].size = files_[0].live_size = 100000;  // not small
  ASSERT_TRUE(pick().empty());
  files_[0].size = files_[0].live_size = 5000;  // another tier
  ASSERT_TRUE(pick().empty());
  files_[0].size = files_[0].live_size = 1000;
  files_[0].path_id = 1;
  ASSERT_TRUE(pick().empty());
  files_[0].path_id = 0;
  files_[0].is_survivor = true;
  ASSERT_TRUE(pick().empty());
  files_[0].is_survivor = false;
  ASSERT_EQ(16u, pick().size());
  // Small files are not merged while there is garbage to collect.
  File* const garbage = Add(20, 100000, 1);
  ASSERT_TRUE(pick().empty());
  garbage->is_busy = true;
  ASSERT_EQ(16u, pick().size());
  // A job may copy as many bytes as a flush writes, or as the limit leaves room
  // for.
  options_.flush_size = 5500;
  ASSERT_EQ(std::set<uint64_t>({1, 2, 3, 4, 5}), pick());
  options_.flush_size = 3500;
  ASSERT_TRUE(pick().empty());
  Add(21, 1 << 20, 1 << 20);
  ASSERT_EQ(13u, pick().size());
  // A file_size of 0 turns the merging of small files off.
  options_.file_size = 0;
  ASSERT_TRUE(pick().empty());
}

// After jobs without disk space a job may copy only little, until one succeeds.
// A merge of a few files is still possible: otherwise no job would succeed.
TEST_F(BlobGcPickerTest, LackOfDiskSpaceDoesNotEndTheMergesOfSmallFiles) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  options_.file_size = 256 * kMiB;
  options_.flush_size = 64 * kMiB;
  for (uint64_t number = 1; number <= 32; ++number) {
    Add(number, kMiB, kMiB);
  }
  const auto pick = [&] {
    return Numbers(BlobGcPicker::PickSmall(options_, files_));
  };
  ASSERT_EQ(32u, pick().size());
  options_.max_copied = 8 * kMiB;
  EXPECT_EQ(8u, pick().size());
  for (const uint64_t max_copied : {2 * kMiB, kMiB, uint64_t{1}}) {
    options_.max_copied = max_copied;
    EXPECT_EQ(std::set<uint64_t>({1, 2, 3, 4}), pick());
  }
  // The output of two of these files would be small no more.
  files_.clear();
  for (uint64_t number = 1; number <= 16; ++number) {
    Add(number, 20 * kMiB, 20 * kMiB);
  }
  EXPECT_EQ(std::set<uint64_t>({1, 2}), pick());
}

// A tier of which a job could merge too few files does not keep the files of
// another tier from being merged.
TEST_F(BlobGcPickerTest, TierThatHasToWaitDoesNotDelayOtherTiers) {
  options_.file_size = 800000;
  options_.flush_size = 60000;
  for (uint64_t number = 1; number <= 20; ++number) {
    Add(number, 40000, 40000);
  }
  const auto pick = [&] {
    return Numbers(BlobGcPicker::PickSmall(options_, files_));
  };
  ASSERT_TRUE(pick().empty());
  for (uint64_t number = 21; number <= 36; ++number) {
    Add(number, 3000, 3000);
  }
  const std::set<uint64_t> picked = pick();
  ASSERT_EQ(16u, picked.size());
  EXPECT_EQ(21u, *picked.begin());
}

TEST_F(BlobGcPickerTest, MergeAllSmallIgnoresTiersAndTheLimit) {
  options_.file_size = 800000;
  options_.max_copied = options_.min_copied = 800000;
  options_.merge_all_small = true;
  const auto pick = [&] {
    return Numbers(BlobGcPicker::PickSmall(options_, files_));
  };
  Add(1, 1000, 1000);
  Add(2, 100000, 100000);
  ASSERT_TRUE(pick().empty());
  Add(3, 60000, 50)->is_survivor = true;
  ASSERT_EQ(std::set<uint64_t>({1, 3}), pick());
  Add(4, 99999, 99999)->path_id = 1;
  ASSERT_EQ(std::set<uint64_t>({1, 3}), pick());
}

// A file that was closed at the largest offset of a record, or at the largest
// index, stays below file_size for ever: its copies would be picked again.
TEST_F(BlobGcPickerTest, FilesThatAreFullByTheFormatAreNotSmall) {
  constexpr uint64_t kMaxIndex = RecordIndexBuilder::kMaxEncodedSize;
  constexpr uint64_t kFull = kMaxBlobRecordOffset;
  const auto pick = [&] {
    return Numbers(BlobGcPicker::PickSmall(options_, files_));
  };
  options_.max_copied = options_.flush_size = uint64_t{1} << 30;
  for (const bool all : {true, false}) {
    SCOPED_TRACE(all);
    options_.merge_all_small = all;
    const uint64_t num_files = all ? 2 : BlobGcPicker::kTierFactor;
    const auto set_files = [&](uint64_t size, uint64_t index_size) {
      files_.clear();
      for (uint64_t number = 1; number <= num_files; ++number) {
        Add(number, size, size)->index_size = index_size;
      }
    };
    options_.file_size = std::numeric_limits<uint64_t>::max();
    set_files(kFull, 1 << 20);
    EXPECT_TRUE(pick().empty());
    options_.file_size = uint64_t{8} << 30;
    set_files(634 << 20, kMaxIndex);
    EXPECT_TRUE(pick().empty());
    // Smaller ones than these fit into one file.
    options_.file_size = std::numeric_limits<uint64_t>::max();
    set_files(kFull / BlobGcPicker::kSmallPart, 1 << 20);
    EXPECT_TRUE(pick().empty());
    set_files(10 << 20, kMaxIndex / BlobGcPicker::kSmallPart);
    EXPECT_TRUE(pick().empty());
    set_files(10 << 20, kMaxIndex / BlobGcPicker::kSmallPart - 1);
    EXPECT_EQ(num_files, pick().size());
    set_files(kFull / BlobGcPicker::kSmallPart - 1, 1 << 20);
    EXPECT_EQ(2u, pick().size());
    // Full files keep no others from being merged.
    set_files(10 << 20, 1 << 20);
    for (uint64_t number = 101; number <= 140; ++number) {
      Add(number, kFull, kFull)->index_size = 1 << 20;
    }
    EXPECT_EQ(num_files, pick().size());
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
