//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/missing_path_check.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/path_layout/path_test_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

class MissingPathCheckTest : public testing::Test {
 protected:
  MissingPathCheckTest() : fs_(env_->GetFileSystem()), check_(&fs_) {
    const std::string name = test::PerThreadDBPath("missing_path_check_test");
    for (int i = 0; i < 3; ++i) {
      paths_.emplace_back(name + "_" + std::to_string(i), 0);
      DestroyDir(env_, paths_[i].path).PermitUncheckedError();
      EXPECT_OK(env_->CreateDirIfMissing(paths_[i].path));
    }
  }
  ~MissingPathCheckTest() override {
    for (const DbPath& path : paths_) {
      DestroyDir(env_, path.path).PermitUncheckedError();
    }
  }

  std::string NameOf(FileType type, uint64_t number, uint32_t path_id) const {
    return type == kBlobFile    ? BlobFileName(paths_[path_id].path, number)
           : type == kDeltaFile ? DeltaFileName(paths_, number, path_id)
                                : TableFileName(paths_, number, path_id);
  }
  // Makes a file that is on the disk, but not in the MANIFEST.
  void Make(FileType type, uint64_t number, uint32_t path_id) {
    ASSERT_OK(WriteStringToFile(env_, "x", NameOf(type, number, path_id)));
  }
  // A file that is in both.
  void Add(FileType type, uint64_t number, uint32_t path_id) {
    Make(type, number, path_id);
    check_.AddFile(type, number, path_id, 100);
  }
  void ExpectError(const std::vector<std::string>& parts) {
    const Status s = check_.Run();
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_FALSE(s.IsPathNotFound()) << s.ToString();
    for (const std::string& part : parts) {
      EXPECT_NE(s.ToString().find(part), std::string::npos)
          << s.ToString() << " lacks " << part;
    }
  }

  Env* const env_ = Env::Default();
  BrokenPathFS fs_;
  std::vector<DbPath> paths_;
  MissingPathCheck check_;
};

TEST_F(MissingPathCheckTest, AsksOnceForEachDirectory) {
  EXPECT_OK(check_.Run());
  for (const char* family : {"default", "other"}) {
    check_.BeginFamily(family, paths_);
    for (uint32_t id = 0; id < 2; ++id) {
      const uint64_t base = 10 * id + (family[0] == 'd' ? 100 : 200);
      Add(kTableFile, base, id);
      Add(kBlobFile, base + 1, id);
      Add(kDeltaFile, base + 2, id);
    }
  }
  EXPECT_OK(check_.Run());
  EXPECT_FALSE(check_.AreAllEmpty());
  EXPECT_EQ(fs_.TakeNumQuestions(), 2);
}

TEST_F(MissingPathCheckTest, SaysWhatIsOnAPath) {
  check_.BeginFamily("default", paths_);
  Add(kTableFile, 10, 0);
  check_.AddFile(kTableFile, 11, 1, 5);
  check_.AddFile(kBlobFile, 12, 1, 20);
  check_.AddFile(kBlobFile, 13, 1, 30);
  ASSERT_OK(DestroyDir(env_, paths_[1].path));
  ExpectError(
      {"IO error: Path id 1 of column family default is missing: the "
       "directory " +
           paths_[1].path +
           " does not exist. The MANIFEST has 1 SST file (5 bytes), 2 blob "
           "files (50 bytes) and 0 delta files (0 bytes) there. Bring the "
           "device back",
       "Do not delete or move files", "best_efforts_recovery", "RepairDB()",
       "docs/operations.md"});
  EXPECT_FALSE(check_.AreAllEmpty());
  EXPECT_TRUE(env_->FileExists(paths_[1].path).IsNotFound());
}

TEST_F(MissingPathCheckTest, AnEmptyDirectoryHasNoneOfTheFiles) {
  check_.BeginFamily("default", paths_);
  check_.AddFile(kDeltaFile, 11, 1, 5);
  check_.AddFile(kDeltaFile, 12, 1, 6);
  const std::string expected =
      paths_[1].path +
      " has none of its files. The MANIFEST has 0 SST files (0 bytes), 0 blob "
      "files (0 bytes) and 2 delta files (11 bytes) there";
  ExpectError({expected});
  EXPECT_TRUE(check_.AreAllEmpty());
  // Files that the MANIFEST does not have, or not of this type.
  Make(kDeltaFile, 13, 1);
  Make(kTableFile, 11, 1);
  ExpectError({expected});
  EXPECT_TRUE(check_.AreAllEmpty());
  // An error about the other file follows.
  Make(kDeltaFile, 12, 1);
  EXPECT_OK(check_.Run());
  EXPECT_FALSE(check_.AreAllEmpty());
}

TEST_F(MissingPathCheckTest, SstFilesMayHaveTheirOldName) {
  check_.BeginFamily("default", paths_);
  check_.AddFile(kTableFile, 11, 1, 5);
  ASSERT_OK(WriteStringToFile(
      env_, "x", Rocks2LevelTableFileName(NameOf(kTableFile, 11, 1))));
  EXPECT_OK(check_.Run());
}

// The options have the paths in another order, so an empty directory is not
// what the user means.
TEST_F(MissingPathCheckTest, FilesOnAnotherPath) {
  check_.BeginFamily("default", paths_);
  check_.AddFile(kTableFile, 11, 1, 5);
  Make(kTableFile, 11, 2);
  ExpectError({paths_[1].path + " has none of its files, while " +
               paths_[2].path + ", which is another path, has 000011.sst. "});
  EXPECT_FALSE(check_.AreAllEmpty());
}

TEST_F(MissingPathCheckTest, OneOfTwoIsNotEmpty) {
  check_.BeginFamily("default", paths_);
  check_.AddFile(kTableFile, 11, 1, 5);
  check_.AddFile(kTableFile, 12, 2, 5);
  ASSERT_OK(DestroyDir(env_, paths_[1].path));
  ExpectError({paths_[1].path + " does not exist",
               paths_[2].path + " has none of its files"});
  EXPECT_FALSE(check_.AreAllEmpty());
}

TEST_F(MissingPathCheckTest, PathIdsBeyondTheListAreNotItsMatter) {
  check_.BeginFamily("default", {paths_[0], paths_[1]});
  check_.AddFile(kTableFile, 11, 2, 5);
  EXPECT_OK(check_.Run());
  EXPECT_EQ(fs_.TakeNumQuestions(), 0);
}

// A directory is there if a file of any family is.
TEST_F(MissingPathCheckTest, FamiliesThatShareADirectory) {
  std::vector<DbPath> other = {paths_[2], {paths_[1].path + "/", 0}};
  check_.BeginFamily("default", paths_);
  check_.AddFile(kTableFile, 11, 1, 5);
  check_.BeginFamily("other", other);
  check_.AddFile(kTableFile, 12, 1, 6);
  check_.BeginFamily("without files", other);
  Make(kTableFile, 12, 1);
  EXPECT_OK(check_.Run());
  ASSERT_OK(env_->DeleteFile(NameOf(kTableFile, 12, 1)));
  ExpectError(
      {"Path id 1 of column family default is missing", "1 SST file (5 bytes)",
       "Path id 1 of column family other is missing", "1 SST file (6 bytes)"});
  EXPECT_EQ(check_.Run().ToString().find("without files"), std::string::npos);
}

TEST_F(MissingPathCheckTest, ManyPathsAreSummedUp) {
  for (int i = 0; i < 11; ++i) {
    check_.BeginFamily("cf" + std::to_string(i), paths_);
    check_.AddFile(kTableFile, 100 + i, 1, 5);
  }
  ExpectError({"column family cf0 ", "column family cf7 ",
               "3 more paths are missing, with 3 files (15 bytes). Bring"});
  EXPECT_EQ(check_.Run().ToString().find("column family cf8 "),
            std::string::npos);
}

TEST_F(MissingPathCheckTest, AnErrorIsNotAnEmptyDirectory) {
  using Fault = BrokenPathFS::Fault;
  check_.BeginFamily("default", paths_);
  check_.AddFile(kTableFile, 11, 1, 5);
  for (const auto& [fault, problem] :
       {std::make_pair(Fault::kNoAccess, "exists, but cannot be listed"),
        std::make_pair(Fault::kNotListed, "exists, but cannot be listed"),
        std::make_pair(Fault::kIoError,
                       "cannot be accessed (IO error: Unexpected error(5)")}) {
    fs_.Break(paths_[1].path, fault);
    ExpectError({paths_[1].path + " " + problem});
    EXPECT_FALSE(check_.AreAllEmpty());
  }
  fs_.Break("", Fault::kNone);
  ASSERT_OK(DestroyDir(env_, paths_[1].path));
  ASSERT_OK(WriteStringToFile(env_, "x", paths_[1].path));
  ExpectError({paths_[1].path + " is not a directory"});
  EXPECT_FALSE(check_.AreAllEmpty());
  ASSERT_OK(env_->DeleteFile(paths_[1].path));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
