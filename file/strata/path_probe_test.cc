//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/path_probe.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/strata/failing_devices_fs_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using Earlier = FailingDevicesFS::Earlier;
using Fault = FailingDevicesFS::Fault;

class PathProbeTest : public testing::Test {
 protected:
  PathProbeTest()
      : directory_(test::PerThreadDBPath("path_probe_test")),
        fs_(FileSystem::Default()) {
    EXPECT_OK(DestroyDir(Env::Default(), directory_));
    EXPECT_OK(Env::Default()->CreateDir(directory_));
  }
  ~PathProbeTest() override {
    EXPECT_OK(DestroyDir(Env::Default(), directory_));
  }

  size_t NumFiles() {
    std::vector<std::string> names;
    EXPECT_OK(Env::Default()->GetChildren(directory_, &names));
    return names.size();
  }

  IOStatus Run(FileSystem* fs) {
    return PathProbe::Run(fs, directory_, 12, opened_, &problem_);
  }
  void OpenHandle() {
    std::unique_ptr<FSDirectory> handle;
    ASSERT_OK(fs_.NewDirectory(directory_, IOOptions(), &handle, nullptr));
    opened_.push_back(std::move(handle));
  }

  const std::string directory_;
  FailingDevicesFS fs_;
  std::vector<std::shared_ptr<FSDirectory>> opened_;
  PathProbe::Problem problem_ = PathProbe::Problem::kNone;
};

TEST_F(PathProbeTest, LeavesNothing) {
  ASSERT_OK(Run(&fs_));
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(PathProbeTest, FindsEachFault) {
  for (const Fault fault : {Fault::kReadOnly, Fault::kLost, Fault::kMissing}) {
    fs_.SetFault(directory_, fault);
    const IOStatus s = Run(&fs_);
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_NE(s.ToString().find(directory_ + "/000012.dbtmp"),
              std::string::npos)
        << s.ToString();
    EXPECT_EQ(problem_, PathProbe::Problem::kFiles);
    EXPECT_EQ(NumFiles(), 0);
  }
  fs_.SetFault(directory_, Fault::kNone);
  ASSERT_OK(Run(&fs_));
  EXPECT_EQ(problem_, PathProbe::Problem::kNone);
}

TEST_F(PathProbeTest, FindsAnotherDirectory) {
  OpenHandle();
  ASSERT_OK(Run(&fs_));
  for (const Earlier earlier : {Earlier::kLost, Earlier::kReadOnly}) {
    fs_.MountAnother(directory_, earlier);
    const IOStatus s = Run(&fs_);
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_NE(s.ToString().find(directory_ + ": The directory is not the one"),
              std::string::npos)
        << s.ToString();
    EXPECT_EQ(problem_, PathProbe::Problem::kReplaced);
    EXPECT_EQ(NumFiles(), 0);
  }
  // One handle of several is enough.
  OpenHandle();
  EXPECT_NOK(Run(&fs_));
  opened_.erase(opened_.begin());
  ASSERT_OK(Run(&fs_));
}

TEST_F(PathProbeTest, FindsAHandleThatDoesNotWork) {
  fs_.SetKnowsIds(false);
  OpenHandle();
  ASSERT_OK(Run(&fs_));
  fs_.MountAnother(directory_, Earlier::kLost);
  const IOStatus s = Run(&fs_);
  EXPECT_NE(s.ToString().find("Input/output error"), std::string::npos)
      << s.ToString();
  EXPECT_EQ(problem_, PathProbe::Problem::kHandle);
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(PathProbeTest, FindsThatTheDirectoryIsNotThere) {
  ASSERT_OK(DestroyDir(Env::Default(), directory_));
  EXPECT_TRUE(Run(&fs_).IsPathNotFound());
}

// A search for obsolete files may delete the file.
TEST_F(PathProbeTest, AllowsAnotherThreadToDeleteTheFile) {
  class DeletingFS : public FileSystemWrapper {
   public:
    DeletingFS() : FileSystemWrapper(FileSystem::Default()) {}
    const char* Name() const override { return "DeletingFS"; }
    IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                          std::unique_ptr<FSDirectory>* result,
                          IODebugContext* dbg) override {
      EXPECT_OK(target()->DeleteFile(name + "/000012.dbtmp", options, dbg));
      return target()->NewDirectory(name, options, result, dbg);
    }
  };
  DeletingFS fs;
  ASSERT_OK(Run(&fs));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
