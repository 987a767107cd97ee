//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/opened_directory.h"

#include <memory>
#include <string>

#include "db/path_layout/directory_names.h"
#include "file/file_util.h"
#include "file/strata/directory_id.h"
#include "file/strata/path_faults.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/strata/failing_devices_fs_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using Earlier = FailingDevicesFS::Earlier;

class OpenedDirectoryTest : public testing::Test {
 protected:
  OpenedDirectoryTest()
      : directory_(test::PerThreadDBPath("opened_directory_test")),
        moved_(directory_ + "_moved"),
        fs_(FileSystem::Default()) {
    DestroyDirectories();
    EXPECT_OK(Env::Default()->CreateDir(directory_));
  }
  ~OpenedDirectoryTest() override { DestroyDirectories(); }

  void DestroyDirectories() {
    EXPECT_OK(DestroyDir(Env::Default(), directory_));
    EXPECT_OK(DestroyDir(Env::Default(), moved_));
  }

  static std::unique_ptr<FSDirectory> Open(FileSystem* fs,
                                           const std::string& name) {
    std::unique_ptr<FSDirectory> handle;
    EXPECT_OK(fs->NewDirectory(name, IOOptions(), &handle, nullptr));
    return handle;
  }
  static std::string IdOf(const std::string& name) {
    return DirectoryIdOf(*Open(FileSystem::Default().get(), name));
  }

  void OpenHandle() {
    handle_ = std::make_unique<OpenedDirectory>(Open(&fs_, directory_),
                                                directory_, &fs_, &faults_);
  }
  void NoteFault() {
    faults_.Add(this, CleanDirectoryName(/*fs=*/nullptr, directory_));
  }
  void ExpectSyncs() {
    EXPECT_OK(handle_->Fsync(IOOptions(), nullptr));
    EXPECT_OK(
        handle_->FsyncWithDirOptions(IOOptions(), nullptr, DirFsyncOptions()));
  }
  void ExpectNoSync(const std::string& text) {
    for (const IOStatus& s : {handle_->Fsync(IOOptions(), nullptr),
                              handle_->FsyncWithDirOptions(
                                  IOOptions(), nullptr, DirFsyncOptions())}) {
      EXPECT_TRUE(s.IsIOError()) << s.ToString();
      EXPECT_NE(s.ToString().find(text), std::string::npos) << s.ToString();
    }
  }

  const std::string directory_;
  const std::string moved_;
  FailingDevicesFS fs_;
  PathFaults faults_;
  std::unique_ptr<FSDirectory> handle_;
};

TEST_F(OpenedDirectoryTest, ChecksOnlyWhileThereIsAFault) {
  OpenHandle();
  NoteFault();
  ExpectSyncs();
  faults_.RemoveAll(this);
  fs_.MountAnother(directory_, Earlier::kReadOnly);
  ExpectSyncs();
  faults_.Add(this, CleanDirectoryName(/*fs=*/nullptr, moved_));
  ExpectSyncs();
  NoteFault();
  ExpectNoSync(directory_ + ": The directory is not the one");
  OpenHandle();
  ExpectSyncs();
}

TEST_F(OpenedDirectoryTest, ReturnsTheErrorOfTheSync) {
  OpenHandle();
  NoteFault();
  fs_.MountAnother(directory_, Earlier::kLost);
  ExpectNoSync("Input/output error");
}

TEST_F(OpenedDirectoryTest, UnknownIdsAreNotCompared) {
  fs_.SetKnowsIds(false);
  OpenHandle();
  NoteFault();
  fs_.MountAnother(directory_, Earlier::kReadOnly);
  ExpectSyncs();
  fs_.SetKnowsIds(true);
  ExpectSyncs();
}

// The same with directories of the operating system.
TEST_F(OpenedDirectoryTest, DirectoryInPlaceOfAnotherHasAnotherId) {
  const std::string id = IdOf(directory_);
#ifndef OS_WIN
  EXPECT_NE(id, "");
#endif
  EXPECT_EQ(IdOf(directory_), id);
  EXPECT_EQ(IdOf(directory_ + "/"), id);
  OpenHandle();
  NoteFault();
  ASSERT_OK(Env::Default()->RenameFile(directory_, moved_));
  EXPECT_EQ(IdOf(moved_), id);
  ASSERT_OK(Env::Default()->CreateDir(directory_));
#ifndef OS_WIN
  EXPECT_NE(IdOf(directory_), id);
  ExpectNoSync(directory_ + ": The directory is not the one");
#endif

  ASSERT_OK(Env::Default()->DeleteDir(directory_));
  ASSERT_OK(Env::Default()->RenameFile(moved_, directory_));
  ExpectSyncs();
}

TEST_F(OpenedDirectoryTest, IdsThatDoNotFitAreUnknown) {
  char id[4] = {};
  EXPECT_EQ(CopyDirectoryId("four", id, sizeof(id)), 4);
  EXPECT_EQ(std::string(id, sizeof(id)), "four");
  EXPECT_EQ(CopyDirectoryId("longer", id, sizeof(id)), 0);
  EXPECT_EQ(CopyDirectoryId("", id, sizeof(id)), 0);
  EXPECT_OK(CheckDirectoryId("/hdd", "", "a"));
  EXPECT_OK(CheckDirectoryId("/hdd", "a", ""));
  EXPECT_OK(CheckDirectoryId("/hdd", "a", "a"));
  EXPECT_TRUE(CheckDirectoryId("/hdd", "a", "b").IsIOError());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
