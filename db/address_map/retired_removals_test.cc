//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/retired_removals.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/blob_file_slot_table.h"
#include "db/address_map/spill_file_numbers.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Counts open files.
class CountingFS : public FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;

  const char* Name() const override { return "CountingFS"; }
  size_t NumOpen() const { return num_open_; }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file,
                           IODebugContext* dbg) override {
    const IOStatus s = target()->NewWritableFile(path, options, file, dbg);
    if (s.ok()) {
      *file = std::make_unique<Counted<FSWritableFileOwnerWrapper>>(
          std::move(*file), &num_open_);
    }
    return s;
  }
  IOStatus NewRandomAccessFile(const std::string& path,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* file,
                               IODebugContext* dbg) override {
    const IOStatus s = target()->NewRandomAccessFile(path, options, file, dbg);
    if (s.ok()) {
      *file = std::make_unique<Counted<FSRandomAccessFileOwnerWrapper>>(
          std::move(*file), &num_open_);
    }
    return s;
  }

 private:
  template <class TWrapper>
  class Counted : public TWrapper {
   public:
    template <class TFile>
    Counted(std::unique_ptr<TFile>&& file, size_t* count)
        : TWrapper(std::move(file)), count_(count) {
      ++*count_;
    }
    ~Counted() override { --*count_; }

   private:
    size_t* const count_;
  };

  size_t num_open_ = 0;
};

}  // namespace

class RetiredRemovalsTest : public testing::Test {
 protected:
  static std::unique_ptr<DeferredRemovals> ListOf(size_t num_names) {
    auto list = std::make_unique<DeferredRemovals>();
    const std::vector<MapName> names(num_names);
    list->Add(names.data(), names.size());
    return list;
  }
  // Returns the numbers of names of the lists.
  std::vector<uint64_t> Take(uint64_t oldest_version, size_t max_names) {
    std::vector<uint64_t> result;
    for (const auto& list : retired_.Take(oldest_version, max_names)) {
      result.push_back(list->Count());
    }
    return result;
  }

  RetiredRemovals retired_;
};

TEST_F(RetiredRemovalsTest, ListsWaitForTheirVersions) {
  retired_.Add(ListOf(1), /*version_number=*/10);
  retired_.Add(ListOf(2), /*version_number=*/20);
  retired_.Add(ListOf(3), /*version_number=*/10);
  ASSERT_EQ(6u, retired_.NumNames());
  ASSERT_FALSE(retired_.Has(9));
  ASSERT_TRUE(Take(9, 100).empty());
  ASSERT_TRUE(retired_.Has(10));
  ASSERT_EQ((std::vector<uint64_t>{1, 3}), Take(10, 100));
  ASSERT_FALSE(retired_.Has(19));
  ASSERT_EQ((std::vector<uint64_t>{2}), Take(20, 100));
  ASSERT_TRUE(retired_.empty());
}

TEST_F(RetiredRemovalsTest, TakesOnlyAsManyListsAsReachTheLimit) {
  for (size_t n : {5, 6, 7}) {
    retired_.Add(ListOf(n), /*version_number=*/10);
  }
  ASSERT_EQ((std::vector<uint64_t>{5, 6}), Take(10, 10));
  ASSERT_EQ((std::vector<uint64_t>{7}), Take(10, 10));
}

// A list may wait for as long as an iterator is open, while each compaction
// adds one.
TEST_F(RetiredRemovalsTest, WaitingListsKeepNoFileOpen) {
  constexpr uint64_t kLists = 1000;
  constexpr uint64_t kNamesPerList = 5;
  const std::string dir = test::PerThreadDBPath("retired_removals_test");
  ASSERT_OK(Env::Default()->CreateDirIfMissing(dir));
  CountingFS fs(FileSystem::Default());
  SpillFileNumbers numbers;
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  const uint32_t slot = files.Add(10, 0, kNoCompression);
  RetiredRemovals retired(/*max_memory=*/0);
  for (uint64_t i = 0; i < kLists; ++i) {
    // Some lists have used their files before.
    auto list = std::make_unique<DeferredRemovals>(
        /*cap=*/i % 2 == 0 ? 2 : 100, [&, i](std::unique_ptr<SpillFile>* file) {
          return numbers.Create(&fs, dir, i + 1, file);
        });
    for (uint64_t j = 0; j < kNamesPerList; ++j) {
      AddressMap::Record record;
      record.name = MapName{MapKeyHash{i << 40, 1}, j, 0};
      record.size = 100;
      ASSERT_OK(map.InsertBatch(slot, &record, 1));
      list->Add(&record.name, 1);
    }
    retired.Limit(list.get());
    ASSERT_EQ(kNamesPerList, list->Count());
    ASSERT_EQ(0u, list->MemoryUsage());
    retired.Add(std::move(list), /*version_number=*/10);
    ASSERT_EQ(0u, fs.NumOpen());
  }
  auto lists = retired.Take(/*oldest_version=*/10, /*max_names=*/SIZE_MAX);
  ASSERT_EQ(kLists, lists.size());
  for (const auto& list : lists) {
    ASSERT_EQ(kNamesPerList, list->Remove(&map));
    ASSERT_TRUE(list->complete());
    ASSERT_EQ(0u, fs.NumOpen());
  }
  ASSERT_EQ(0u, map.NumEntries());
  UnorderedSet<uint64_t> left;
  numbers.AddTo(&left);
  ASSERT_TRUE(left.empty());
  std::vector<std::string> children;
  ASSERT_OK(Env::Default()->GetChildren(dir, &children));
  ASSERT_TRUE(children.empty());
  ASSERT_OK(Env::Default()->DeleteDir(dir));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
