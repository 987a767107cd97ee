//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Directories of column families that are dropped.

#include <cstdarg>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "db/path_layout/path_test_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Keeps the lines of LOG that tell of directories of a column family.
class DropLogger : public Logger {
 public:
  DropLogger() : Logger(InfoLogLevel::INFO_LEVEL) {}

  using Logger::Logv;
  void Logv(const char* format, va_list ap) override {
    char line[4096];
    vsnprintf(line, sizeof(line), format, ap);
    const std::string text = line;
    if (text.find("delete these files by hand") != std::string::npos) {
      const std::lock_guard<std::mutex> lock(mutex_);
      lines_.push_back(text);
    }
  }
  // Returns the lines since the last call.
  std::vector<std::string> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace

class DroppedFamilyTest : public PathTestBase {
 public:
  DroppedFamilyTest() : PathTestBase("dropped_family_test") {}

  // Returns the number of SST and blob files in the directory.
  int NumFiles(const std::string& directory) {
    std::vector<std::string> children;
    EXPECT_OK(device_env_->GetChildren(directory, &children));
    int result = 0;
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(child, &number, &type) &&
          (type == kTableFile || type == kBlobFile)) {
        ++result;
      }
    }
    return result;
  }

  void PutAndFlush(int family) {
    PutRange(family, 0, 20);
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
  }

  // Drops the last family, without its handle.
  void DropLast() { ASSERT_OK(db_->DropColumnFamily(handles_.back())); }
  void DestroyLastHandle() {
    ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_.back()));
    handles_.pop_back();
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
  }
};

// After a crash, files are left in directories that only the dropped family
// had. LOG has named them. They are deleted when a family has the directory
// again.
TEST_F(DroppedFamilyTest, CrashLeavesFilesOfDirectoriesThatLogNames) {
  const auto logger = std::make_shared<DropLogger>();
  Options a = PathOptions("a", 1, {0}, {0});
  a.info_log = logger;
  // SST files have the path of the other family.
  Options b = PathOptions("b", 2, {0}, {1});
  b.cf_paths[0].path = PathOf("a", 0);
  OpenNew({a, b});
  PutAndFlush(0);
  ASSERT_EQ(NumFiles(PathOf("a", 0)), 2);
  PutAndFlush(1);
  ASSERT_EQ(NumFiles(PathOf("a", 0)), 3);
  ASSERT_EQ(NumFiles(PathOf("b", 1)), 1);
  EXPECT_EQ(logger->Take(), std::vector<std::string>());
  DropLast();
  const std::vector<std::string> lines = logger->Take();
  ASSERT_EQ(lines.size(), 1);
  EXPECT_NE(lines[0].find("[cf1]"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(": " + PathOf("b", 1) + "."), std::string::npos)
      << lines[0];
  EXPECT_EQ(lines[0].find(PathOf("a", 0)), std::string::npos) << lines[0];
  Crash();

  ASSERT_OK(Open({a}, /*create_families=*/false));
  EXPECT_EQ(NumFiles(PathOf("a", 0)), 2);
  EXPECT_EQ(NumFiles(PathOf("b", 1)), 1);
  ASSERT_OK(Open({a, b}, /*create_families=*/true));
  EXPECT_EQ(NumFiles(PathOf("b", 1)), 0);
  std::string value;
  ASSERT_OK(db_->Get(ReadOptions(), Handle(0), KeyOf(7), &value));
  EXPECT_EQ(value, ValueOf(7, 0));
  EXPECT_TRUE(
      db_->Get(ReadOptions(), Handle(1), KeyOf(7), &value).IsNotFound());
}

// Without a crash nothing is left.
TEST_F(DroppedFamilyTest, LastHandleDeletesTheFiles) {
  OpenNew({PathOptions("a", 1, {0}, {0}), PathOptions("b", 2, {0}, {1})});
  PutAndFlush(1);
  DropLast();
  EXPECT_EQ(NumFiles(PathOf("b", 0)), 1);
  EXPECT_EQ(NumFiles(PathOf("b", 1)), 1);
  DestroyLastHandle();
  EXPECT_EQ(NumFiles(PathOf("b", 0)), 0);
  EXPECT_EQ(NumFiles(PathOf("b", 1)), 0);
}

// LOG names a directory at the drop of the last family that has it. Families
// that are dropped already do not count, and those without paths have that of
// the database.
TEST_F(DroppedFamilyTest, LogNamesADirectoryAtTheDropOfItsLastFamily) {
  const auto logger = std::make_shared<DropLogger>();
  Options a = PathOptions("a", 0, {}, {});
  a.info_log = logger;
  const Options b = PathOptions("b", 2, {0, 1}, {});
  OpenNew({a, b, b, a});
  DropLast();
  DestroyLastHandle();
  EXPECT_EQ(logger->Take(), std::vector<std::string>());
  DropLast();
  EXPECT_EQ(logger->Take(), std::vector<std::string>());
  // The handle of "cf2" is still there.
  ASSERT_OK(db_->DropColumnFamily(Handle(1)));
  const std::vector<std::string> lines = logger->Take();
  ASSERT_EQ(lines.size(), 1);
  EXPECT_NE(lines[0].find("[cf1]"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(": " + PathOf("b", 0) + ", " + PathOf("b", 1) + "."),
            std::string::npos)
      << lines[0];
  EXPECT_TRUE(db_->DropColumnFamily(Handle(1)).IsInvalidArgument());
  EXPECT_TRUE(db_->DropColumnFamily(Handle(0)).IsInvalidArgument());
  EXPECT_EQ(logger->Take(), std::vector<std::string>());
}

// The directories of WALs and of LOG are those of the database, and each open
// looks for files in them. A directory around the others has to be left, too:
// LOG says that only files are to be deleted.
TEST_F(DroppedFamilyTest, LogDoesNotNameDirectoriesOfTheDatabase) {
  const auto logger = std::make_shared<DropLogger>();
  Options a = PathOptions("a", 0, {}, {});
  a.info_log = logger;
  a.wal_dir = PathOf("wal", 0);
  const std::string outer = PathOf("outer", 0);
  a.db_log_dir = outer + "/log";
  for (const std::string& directory : {outer, a.db_log_dir}) {
    ASSERT_OK(env_->CreateDirIfMissing(directory));
  }
  Options b = PathOptions("b", 3, {0, 1, 2}, {});
  b.cf_paths[0].path = a.wal_dir;
  b.cf_paths[1].path = a.db_log_dir;
  b.cf_paths[2].path = outer;
  OpenNew({a, b});
  DropLast();
  const std::vector<std::string> lines = logger->Take();
  ASSERT_EQ(lines.size(), 1);
  EXPECT_NE(lines[0].find("directories: " + outer + ". If"), std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find("nothing else and no directory in them"),
            std::string::npos)
      << lines[0];
  DestroyLastHandle();
  Close();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
