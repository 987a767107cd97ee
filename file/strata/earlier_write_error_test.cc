//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/earlier_write_error.h"

#include <memory>
#include <string>
#include <utility>

#include "file/writable_file_writer.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/strata/failing_devices_fs_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using Fault = FailingDevicesFS::Fault;

TEST(EarlierWriteErrorTest, ComesAfterTheErrorItself) {
  const std::string directory = test::PerThreadDBPath("earlier_write_error");
  ASSERT_OK(Env::Default()->CreateDirIfMissing(directory));
  FailingDevicesFS fs(FileSystem::Default());
  const std::string name = directory + "/000012.log";
  std::unique_ptr<FSWritableFile> file;
  ASSERT_OK(fs.NewWritableFile(name, FileOptions(), &file, nullptr));
  {
    WritableFileWriter writer(std::move(file), name, FileOptions());
    ASSERT_OK(writer.Append(IOOptions(), "1"));
    fs.SetFault(directory, Fault::kReadOnly);
    IOStatus s = writer.Flush(IOOptions());
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_FALSE(IsEarlierWriteError(s)) << s.ToString();
    fs.SetFault(directory, Fault::kNone);
    s = writer.Flush(IOOptions());
    EXPECT_TRUE(IsEarlierWriteError(s)) << s.ToString();
    s = writer.SyncWithoutFlush(IOOptions(), /*use_fsync=*/false);
    EXPECT_TRUE(IsEarlierWriteError(s)) << s.ToString();
  }
  EXPECT_OK(Env::Default()->DeleteFile(name));
}

TEST(EarlierWriteErrorTest, OtherStatuses) {
  EXPECT_FALSE(IsEarlierWriteError(IOStatus::OK()));
  EXPECT_FALSE(IsEarlierWriteError(IOStatus::IOError()));
  EXPECT_FALSE(IsEarlierWriteError(IOStatus::IOError("While fsync")));
  EXPECT_FALSE(IsEarlierWriteError(IOStatus::NoSpace("Writer has previous")));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
