//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_heat/blob_heat_picker.h"

#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class BlobHeatPickerTest : public testing::Test {
 protected:
  using File = BlobHeatPicker::File;
  using Job = BlobHeatPicker::Job;
  using Kind = BlobHeatPicker::Kind;

  static constexpr uint64_t kBudget = 6400;
  static constexpr uint32_t kHotPath = 0;
  static constexpr uint32_t kHome = 1;

  BlobHeatPickerTest() {
    options_.budget = kBudget;
    options_.path_id = kHotPath;
  }

  File* AddFile(uint64_t number, uint64_t size, uint32_t path_id) {
    File& file = files_.emplace_back();
    file.number = number;
    file.size = file.live_size = size;
    file.path_id = path_id;
    return &file;
  }
  File* AddHot(uint64_t number, uint64_t size, uint32_t path_id = kHotPath) {
    File* const file = AddFile(number, size, path_id);
    file->hot = HotMark::WithHome(kHome);
    file->is_survivor = true;
    return file;
  }
  Job Pick() const { return BlobHeatPicker::Pick(options_, files_); }

  BlobHeatPicker::Options options_;
  std::vector<File> files_;
};

TEST_F(BlobHeatPickerTest, HasNothingToDoIfNothingWaits) {
  AddFile(1, 100000, kHome);
  AddHot(2, kBudget);
  EXPECT_EQ(Pick().kind, Kind::kNone);
}

TEST_F(BlobHeatPickerTest, PromotesWhatFits) {
  AddFile(1, 100000, kHome);
  AddFile(2, 100000, kHotPath);  // not hot: it does not count
  options_.wanted = 1000;
  Job job = Pick();
  EXPECT_EQ(job.kind, Kind::kPromote);
  EXPECT_EQ(job.room, kBudget);
  AddHot(3, 5000);
  AddHot(4, 400)->is_busy = true;  // a job is about to add it
  job = Pick();
  EXPECT_EQ(job.kind, Kind::kPromote);
  EXPECT_EQ(job.room, kBudget - 5400);
  // A part of what waits is worth a job.
  files_.back().size = kBudget - 5000 - kBudget / BlobHeatPicker::kMinRoomPart;
  job = Pick();
  EXPECT_EQ(job.kind, Kind::kPromote);
  EXPECT_EQ(job.room, kBudget / BlobHeatPicker::kMinRoomPart);
}

TEST_F(BlobHeatPickerTest, DemotesFromTheOldestFileIfThereIsNoRoom) {
  AddHot(8, 3000);
  AddHot(5, 2000);
  AddHot(3, 1400)->is_busy = true;
  AddFile(1, 100000, kHome);
  options_.wanted = 1;
  const Job job = Pick();
  EXPECT_EQ(job.kind, Kind::kDemote);
  EXPECT_EQ(job.file.number, 5);
  EXPECT_EQ(job.file.hot.home(), kHome);
  // A file whose values are all read often has had its turn.
  options_.hand = 5;
  EXPECT_EQ(Pick().file.number, 8);
  options_.hand = 8;
  EXPECT_EQ(Pick().kind, Kind::kGiveUp);
  options_.hand = 0;
  files_[0].is_busy = files_[1].is_busy = true;
  EXPECT_EQ(Pick().kind, Kind::kGiveUp);
}

// A job that promotes knows better how much room it needs.
TEST_F(BlobHeatPickerTest, DemotesAfterAPromotionThatLackedRoom) {
  AddHot(3, kBudget / 2);
  options_.wanted = 1000;
  EXPECT_EQ(Pick().kind, Kind::kPromote);
  options_.lacks_room = true;
  EXPECT_EQ(Pick().kind, Kind::kDemote);
  files_.clear();
  EXPECT_EQ(Pick().kind, Kind::kGiveUp);
}

TEST_F(BlobHeatPickerTest, DrainsWithoutABudget) {
  AddFile(1, 100000, kHome);
  AddHot(4, 1000);
  AddHot(3, 1000);
  options_.budget = 0;
  Job job = Pick();
  EXPECT_EQ(job.kind, Kind::kDrain);
  EXPECT_EQ(job.file.number, 3);
  files_[2].is_busy = true;
  job = Pick();
  EXPECT_EQ(job.kind, Kind::kDrain);
  EXPECT_EQ(job.file.number, 4);
  files_[1].is_busy = true;
  EXPECT_EQ(Pick().kind, Kind::kNone);
}

TEST_F(BlobHeatPickerTest, DrainsAnotherPathFirst) {
  AddHot(3, 1000);
  AddHot(4, 1000, /*path_id=*/2);
  options_.wanted = 1000;
  const Job job = Pick();
  EXPECT_EQ(job.kind, Kind::kDrain);
  EXPECT_EQ(job.file.number, 4);
  EXPECT_FALSE(BlobHeatPicker::MustDrain(options_, files_[0]));
  EXPECT_TRUE(BlobHeatPicker::MustDrain(options_, files_[1]));
  EXPECT_FALSE(
      BlobHeatPicker::MustDrain(options_, *AddFile(5, 1000, /*path_id=*/2)));
}

TEST_F(BlobHeatPickerTest, DrainsTheOldestFileAboveTheBudget) {
  AddHot(3, kBudget / 2 + 1);
  AddHot(2, kBudget / 2);
  options_.wanted = 1000;
  const Job job = Pick();
  EXPECT_EQ(job.kind, Kind::kDrain);
  EXPECT_EQ(job.file.number, 2);
  // One file is enough, and nothing is promoted until it is gone.
  files_[1].is_busy = true;
  EXPECT_EQ(Pick().kind, Kind::kNone);
  files_[0].size = kBudget + 1;
  EXPECT_EQ(Pick().kind, Kind::kDrain);
}

TEST_F(BlobHeatPickerTest, KeepsTheMostReadThreeQuarters) {
  BlobHeatPicker::Histogram bytes{};
  EXPECT_EQ(BlobHeatPicker::LeastKept(bytes), 1);
  bytes[0] = 1;
  bytes[9] = 1;
  EXPECT_EQ(BlobHeatPicker::LeastKept(bytes), 1);
  bytes = {};
  bytes[2] = 20;
  bytes[3] = 10;
  bytes[5] = 10;
  bytes[7] = 60;
  // Those with 2 reads are less than a quarter.
  EXPECT_EQ(BlobHeatPicker::LeastKept(bytes), 4);
  bytes = {};
  bytes[15] = 100;
  EXPECT_EQ(BlobHeatPicker::LeastKept(bytes), 15);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
