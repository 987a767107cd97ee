//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/deferred_removals.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/io_status.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/random.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kSeed = 4711;

MapName NameOf(const Slice& user_key, SequenceNumber seq, uint64_t birth) {
  return MapName{MapKeyHash::Of(user_key, kSeed), seq, birth};
}

class MapWithOneFile {
 public:
  MapWithOneFile() : map(AddressMap::Options(), &files) {
    slot_ = files.Add(1, 0, kNoCompression);
    EXPECT_TRUE(files.Publish(slot_, 1 << 30));
    EXPECT_TRUE(files.Commit(slot_));
  }
  void Insert(const MapName& name) {
    AddressMap::Record record;
    record.name = name;
    record.offset = 32;
    record.size = 100;
    EXPECT_OK(map.InsertBatch(slot_, &record, 1));
  }
  bool Has(const MapName& name) {
    return map.FindByName(name, /*pin=*/false).found;
  }

  BlobFileSlotTable files;
  AddressMap map;

 private:
  uint32_t slot_ = 0;
};

struct TestSpill {
  TestSpill()
      : path(test::PerThreadDBPath("deferred_removals_test") + ".dbtmp"),
        fs(std::make_shared<FaultInjectionTestFS>(FileSystem::Default())) {}

  DeferredRemovals::NewSpillFile factory() {
    return [this](std::unique_ptr<SpillFile>* file) {
      if (fail_create) {
        return Status::IOError("no file");
      }
      ++created;
      return SpillFile::Create(
          fs.get(), FileOptions(), path, [this] { ++deleted; }, file);
    };
  }

  const std::string path;
  const std::shared_ptr<FaultInjectionTestFS> fs;
  bool fail_create = false;
  int created = 0;
  int deleted = 0;
};

}  // namespace

class DeferredRemovalsTest : public testing::Test {};

TEST_F(DeferredRemovalsTest, RemovesExactlyTheListedNames) {
  MapWithOneFile m;
  DeferredRemovals removals;
  Random64 rnd(301);
  std::vector<std::pair<MapName, bool>> all;  // true: to be removed
  for (int i = 0; i < 5000; ++i) {
    // Every bit of each field is set in some name. A birth is below 2^64 - 1
    // and a sequence number below 2^56.
    const MapName name = NameOf("key" + std::to_string(i / 2),
                                rnd.Next() >> (8 + rnd.Uniform(56)),
                                (rnd.Next() >> rnd.Uniform(64)) / 2);
    m.Insert(name);
    all.emplace_back(name, rnd.OneIn(3));
  }
  std::vector<MapName> listed;
  for (const auto& [name, remove] : all) {
    if (remove) {
      listed.push_back(name);
    }
  }
  // The batches do not match the block size.
  for (size_t i = 0; i < listed.size();) {
    const size_t n = std::min<size_t>(listed.size() - i, 1 + rnd.Uniform(300));
    removals.Add(&listed[i], n);
    i += n;
  }
  removals.Add(nullptr, 0);
  ASSERT_EQ(listed.size(), removals.Count());
  // Some names leave the map before Remove().
  uint64_t gone = 0;
  for (size_t i = 0; i < listed.size(); i += 7) {
    gone += m.map.Remove(listed[i]) ? 1 : 0;
  }
  ASSERT_GT(gone, 0u);
  ASSERT_EQ(listed.size() - gone, removals.Remove(&m.map));
  ASSERT_EQ(0u, removals.Count());
  ASSERT_EQ(0u, removals.Remove(&m.map));
  for (const auto& [name, remove] : all) {
    ASSERT_EQ(!remove, m.Has(name));
  }
  ASSERT_OK(m.map.TEST_Check());
}

// Names beyond the memory cap go to a spill file, and Demote() and Remove()
// read them from there.
TEST_F(DeferredRemovalsTest, NamesBeyondTheCapGoToASpillFile) {
  for (const uint64_t cap : {1, 1000, 1024, 3000}) {
    TestSpill spill;
    MapWithOneFile m;
    DeferredRemovals removals(cap, spill.factory());
    constexpr int kNames = 10000;
    for (int i = 0; i < kNames; i += 10) {
      std::vector<MapName> names;
      for (int n = 0; n < 10; ++n) {
        names.push_back(NameOf(std::to_string(i + n), 7, 0));
        m.Insert(names.back());
      }
      removals.Add(names.data(), names.size());
      ASSERT_LE(removals.MemoryUsage(), (cap + 1024) * 28 + 1000);
    }
    ASSERT_EQ(1, spill.created);
    ASSERT_EQ(uint64_t{kNames}, removals.Count());
    ASSERT_OK(removals.Demote(&m.map));
    for (int i = 0; i < kNames; ++i) {
      const MapName name = NameOf(std::to_string(i), 7, 0);
      SequenceNumber seq = 0;
      ASSERT_FALSE(m.map.DirectSeq(name.key, &seq));
      ASSERT_TRUE(m.Has(name));
    }
    ASSERT_EQ(uint64_t{kNames}, removals.Remove(&m.map));
    ASSERT_EQ(0u, m.map.NumEntries());
    ASSERT_EQ(0u, removals.Count());
    ASSERT_EQ(1, spill.deleted);
    ASSERT_TRUE(removals.complete());
  }
}

// MoveToFile() moves all names to the spill file and frees their memory. If
// this fails, the names in memory stay, and only names that were in the file
// are lost.
TEST_F(DeferredRemovalsTest, MoveToFileFreesTheMemory) {
  constexpr int kNames = 5000;
  for (const bool fail : {false, true}) {
    for (const bool had_file : {false, true}) {
      MapWithOneFile m;
      TestSpill spill;
      DeferredRemovals removals(had_file ? 1500 : kNames, spill.factory());
      for (int i = 0; i < kNames; ++i) {
        const MapName name = NameOf("k" + std::to_string(i), 10, 1);
        m.Insert(name);
        removals.Add(&name, 1);
      }
      ASSERT_EQ(spill.created, had_file ? 1 : 0);
      if (fail) {
        spill.fail_create = true;
        spill.fs->SetFilesystemActive(false);
      }
      removals.MoveToFile();
      if (!fail) {
        EXPECT_EQ(removals.MemoryUsage(), 0);
        EXPECT_TRUE(removals.complete());
        EXPECT_EQ(removals.Count(), kNames);
        removals.MoveToFile();  // there is nothing to move
        EXPECT_EQ(removals.Count(), kNames);
      } else {
        // Only names that were in the file are lost.
        EXPECT_GT(removals.MemoryUsage(), 0);
        EXPECT_EQ(removals.complete(), !had_file);
      }
      spill.fs->SetFilesystemActive(true);
      const uint64_t count = removals.Count();
      EXPECT_EQ(removals.Remove(&m.map), count);
      EXPECT_EQ(m.map.NumEntries(), kNames - count);
    }
  }
  DeferredRemovals without_files;
  const MapName name = NameOf("k", 10, 1);
  without_files.Add(&name, 1);
  without_files.MoveToFile();
  EXPECT_EQ(without_files.Count(), 1);
}

TEST_F(DeferredRemovalsTest, ClearForgetsAllNames) {
  TestSpill spill;
  MapWithOneFile m;
  DeferredRemovals removals(5, spill.factory());
  std::vector<MapName> names;
  for (int i = 0; i < 12; ++i) {
    names.push_back(NameOf(std::to_string(i), 7, 0));
    m.Insert(names.back());
  }
  removals.Add(names.data(), names.size());
  removals.Clear();
  ASSERT_EQ(0u, removals.Count());
  ASSERT_EQ(spill.created, spill.deleted);
  ASSERT_EQ(0u, removals.Remove(&m.map));
  ASSERT_EQ(12u, m.map.NumEntries());
  removals.Add(names.data(), 7);
  ASSERT_EQ(7u, removals.Remove(&m.map));
}

// After an error of the spill file names are forgotten, none is invented, and
// complete() returns false.
TEST_F(DeferredRemovalsTest, FailedSpillForgetsNamesAndSaysSo) {
  for (int failing = 0; failing < 3; ++failing) {
    TestSpill spill;
    MapWithOneFile m;
    DeferredRemovals removals(100, spill.factory());
    std::vector<MapName> names;
    for (int i = 0; i < 350; ++i) {
      names.push_back(NameOf(std::to_string(i), 7, 0));
      m.Insert(names.back());
    }
    spill.fail_create = failing == 0;
    removals.Add(names.data(), 150);
    if (failing == 1) {
      spill.fs->SetFilesystemActive(false, IOStatus::NoSpace("full"));
    }
    removals.Add(names.data() + 150, 200);
    spill.fs->SetFilesystemActive(true);
    if (failing == 2) {
      ASSERT_TRUE(removals.complete());
      ASSERT_OK(test::CorruptFile(Env::Default(), spill.path, 20, 1));
    } else {
      ASSERT_FALSE(removals.complete());
    }
    const uint64_t removed = removals.Remove(&m.map);
    ASSERT_LT(removed, 350u);
    ASSERT_EQ(350u - removed, m.map.NumEntries());
    ASSERT_FALSE(removals.complete());
    ASSERT_OK(m.map.TEST_Check());
  }
}

// The error handler decides by code, subcode and flags of the error whether a
// DB goes on, and finds the device by the name of the file.
TEST_F(DeferredRemovalsTest, StatusIsTheFirstErrorOfTheSpillFile) {
  for (const bool has_file : {false, true}) {
    for (const bool flag : {false, true}) {
      TestSpill spill;
      DeferredRemovals removals(100, spill.factory());
      std::vector<MapName> names;
      for (int i = 0; i < 500; ++i) {
        names.push_back(NameOf(std::to_string(i), 7, 0));
      }
      removals.Add(names.data(), has_file ? 150 : 50);
      ASSERT_EQ(spill.created, has_file ? 1 : 0);
      ASSERT_OK(removals.status("the job"));

      IOStatus error = IOStatus::NoSpace("full");
      error.SetRetryable(flag);
      error.SetDataLoss(!flag);
      error.SetScope(IOStatus::IOErrorScope::kIOErrorScopeFile);
      spill.fs->SetFilesystemActive(false, error);
      removals.Add(names.data() + 150, 150);
      ASSERT_FALSE(removals.complete());
      spill.fs->SetFilesystemActive(false, IOStatus::IOError("later"));
      removals.Add(names.data() + 300, 200);
      spill.fs->SetFilesystemActive(true);

      Status s = removals.status("the job");
      EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
      EXPECT_EQ(s.severity(), Status::Severity::kNoError);
      EXPECT_EQ(s.ToString(),
                "IO error: No space left on device: The names of values that "
                "the job removes could not be stored: " +
                    spill.path + ": full");
      const IOStatus flags = status_to_io_status(std::move(s));
      EXPECT_EQ(flags.GetRetryable(), flag);
      EXPECT_EQ(flags.GetDataLoss(), !flag);
      EXPECT_EQ(flags.GetScope(), IOStatus::IOErrorScope::kIOErrorScopeFile);

      removals.Clear();
      EXPECT_OK(removals.status("the job"));
    }
  }
}

// A list that stays in memory because it cannot be moved to a file is complete.
TEST_F(DeferredRemovalsTest, StatusIsOkIfNoNameIsLost) {
  TestSpill spill;
  DeferredRemovals removals(100, spill.factory());
  const MapName name = NameOf("k", 7, 0);
  removals.Add(&name, 1);
  spill.fs->SetFilesystemActive(false, IOStatus::NoSpace("full"));
  removals.MoveToFile();
  spill.fs->SetFilesystemActive(true);
  EXPECT_OK(removals.status("the job"));
  EXPECT_EQ(removals.Count(), 1u);
}

TEST_F(DeferredRemovalsTest, ConcurrentAddsLoseNoName) {
  constexpr int kThreads = 4;
  constexpr int kPerThread = 3000;
  TestSpill spill;
  MapWithOneFile m;
  for (int i = 0; i < kThreads * kPerThread; ++i) {
    m.Insert(NameOf(std::to_string(i), 7, 0));
  }
  DeferredRemovals removals(500, spill.factory());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&removals, t] {
      for (int i = 0; i < kPerThread;) {
        std::vector<MapName> names;
        for (int n = 0; n < 100; ++n, ++i) {
          names.push_back(NameOf(std::to_string(t * kPerThread + i), 7, 0));
        }
        removals.Add(names.data(), names.size());
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  ASSERT_EQ(uint64_t{kThreads} * kPerThread, removals.Remove(&m.map));
  ASSERT_EQ(0u, m.map.NumEntries());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
