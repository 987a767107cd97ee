//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/space_needs.h"

#include <map>
#include <memory>
#include <set>
#include <string>

#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "test_util/strata/small_devices_fs_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Other directories than those of devices cannot be read.
class FailingBaseFS : public FileSystemWrapper {
 public:
  FailingBaseFS() : FileSystemWrapper(FileSystem::Default()) {}

  static const char* kClassName() { return "FailingBaseFS"; }
  const char* Name() const override { return kClassName(); }

  IOStatus GetFreeSpace(const std::string& /*path*/,
                        const IOOptions& /*options*/, uint64_t* /*disk_free*/,
                        IODebugContext* /*dbg*/) override {
    return error;
  }

  IOStatus error = IOStatus::NotSupported("GetFreeSpace");
};

}  // namespace

class SpaceNeedsTest : public testing::Test {
 protected:
  // Returns the message of NoSpace, or an empty string if there is room.
  std::string Shortage() {
    const Status s = needs_.Check(&fs_);
    EXPECT_TRUE(s.ok() || s.IsNoSpace()) << s.ToString();
    return s.ok() ? "" : s.getState();
  }

  // Each directory is a device of its own.
  void SetFree(const std::map<std::string, uint64_t>& free) {
    for (const auto& [directory, bytes] : free) {
      if (known_.insert(directory).second) {
        fs_.AddDevice({directory}, bytes);
      }
      fs_.SetFree(directory, bytes);
    }
  }

  const std::shared_ptr<FailingBaseFS> base_ =
      std::make_shared<FailingBaseFS>();
  SmallDevicesFS fs_{base_};
  SpaceNeeds needs_;

 private:
  std::set<std::string> known_;
};

TEST_F(SpaceNeedsTest, KnowsTheRequiredDirectories) {
  SpaceNeeds needs;
  needs.Write("/a", 1);
  needs.Require("/b/");
  EXPECT_FALSE(needs.IsRequired("/a"));
  EXPECT_TRUE(needs.IsRequired("/b"));
  EXPECT_FALSE(needs.IsRequired("/c"));
}

TEST_F(SpaceNeedsTest, NothingIsNeededAtFirst) {
  EXPECT_EQ(Shortage(), "");
  EXPECT_TRUE(needs_.IsSupported(&fs_));
}

TEST_F(SpaceNeedsTest, WhatIsWrittenAddsUp) {
  SetFree({{"/a", 10}});
  needs_.Write("/a", 6);
  needs_.Require("/a");
  EXPECT_EQ(Shortage(), "");
  needs_.Write("/a", 4);
  EXPECT_EQ(Shortage(), "");
  needs_.Write("/a", 1);
  EXPECT_EQ(Shortage(), "/a has 10 free bytes, needed are 11");
}

TEST_F(SpaceNeedsTest, OnlyTheLargestReserveCounts) {
  SetFree({{"/a", 10}});
  needs_.Require("/a");
  needs_.Write("/a", 4);
  needs_.Reserve("/a", 6);
  needs_.Reserve("/a", 5);
  EXPECT_EQ(Shortage(), "");
  needs_.Reserve("/a", 7);
  EXPECT_EQ(Shortage(), "/a has 10 free bytes, needed are 11");
}

TEST_F(SpaceNeedsTest, EachRequiredDirectoryMustHaveRoom) {
  SetFree({{"/a", 100}, {"/b", 10}, {"/c", 20}});
  for (const char* directory : {"/a", "/b", "/c"}) {
    needs_.Write(directory, 50);
    needs_.Require(directory);
  }
  EXPECT_EQ(Shortage(),
            "/b has 10 free bytes, needed are 50; "
            "/c has 20 free bytes, needed are 50");
  SetFree({{"/b", 50}});
  EXPECT_EQ(Shortage(), "/c has 20 free bytes, needed are 50");
  SetFree({{"/c", 51}});
  EXPECT_EQ(Shortage(), "");
}

TEST_F(SpaceNeedsTest, DirectoryThatIsNotRequiredMayBeFull) {
  SetFree({{"/a", 100}, {"/b", 0}});
  needs_.Write("/a", 50);
  needs_.Require("/a");
  needs_.Write("/b", 50);
  needs_.Reserve("/b", 50);
  EXPECT_EQ(Shortage(), "");
}

TEST_F(SpaceNeedsTest, DirectoriesWithTheSameFreeBytesAreOneDevice) {
  SetFree({{"/a", 99}, {"/b", 99}, {"/c", 98}});
  needs_.Write("/a", 50);
  needs_.Require("/a");
  needs_.Write("/b", 40);
  needs_.Write("/c", 1000);
  // Several reserves on a device are for the same data.
  needs_.Reserve("/a", 9);
  needs_.Reserve("/b", 8);
  EXPECT_EQ(Shortage(), "");
  needs_.Reserve("/b", 10);
  EXPECT_EQ(Shortage(), "/a, /b has 99 free bytes, needed are 100");
}

TEST_F(SpaceNeedsTest, NamesOfADirectoryAreTheSame) {
  SetFree({{"/a", 10}});
  needs_.Write("/a", 6);
  needs_.Write("/a/", 6);
  needs_.Require("//a/.");
  EXPECT_EQ(Shortage(), "/a has 10 free bytes, needed are 12");
}

TEST_F(SpaceNeedsTest, FileSystemMayNotTellFreeBytes) {
  SetFree({{"/a", 10}});
  needs_.Require("/a");
  EXPECT_TRUE(needs_.IsSupported(&fs_));
  needs_.Write("/unknown", 1000);
  needs_.Require("/unknown");
  EXPECT_FALSE(needs_.IsSupported(&fs_));
  EXPECT_EQ(Shortage(), "");
  needs_.Write("/a", 11);
  EXPECT_EQ(Shortage(), "/a has 10 free bytes, needed are 11");
}

TEST_F(SpaceNeedsTest, RequiredDirectoryThatCannotBeReadHasNoRoom) {
  base_->error = IOStatus::IOError("gone");
  needs_.Write("/gone", 1);
  EXPECT_OK(needs_.Check(&fs_));
  needs_.Require("/gone");
  EXPECT_TRUE(needs_.Check(&fs_).IsIOError());
  EXPECT_TRUE(needs_.IsSupported(&fs_));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
