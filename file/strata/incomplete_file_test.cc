//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/incomplete_file.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/db_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A file whose device is full after `appends_left` calls of Append().
class FileOnFullDevice : public FSWritableFileOwnerWrapper {
 public:
  FileOnFullDevice(std::unique_ptr<FSWritableFile>&& file,
                   std::atomic<int>* appends_left)
      : FSWritableFileOwnerWrapper(std::move(file)),
        appends_left_(appends_left) {}

  using FSWritableFileOwnerWrapper::Append;
  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    if (appends_left_->fetch_sub(1) <= 0) {
      return IOStatus::NoSpace("injected");
    }
    return FSWritableFileOwnerWrapper::Append(data, options, dbg);
  }

 private:
  std::atomic<int>* const appends_left_;
};

// SST files of one directory are on a device that becomes full.
class FullDeviceFS : public FileSystemWrapper {
 public:
  explicit FullDeviceFS(const std::shared_ptr<FileSystem>& base)
      : FileSystemWrapper(base) {}
  const char* Name() const override { return "FullDeviceFS"; }

  // The device has room for the next `appends` calls of Append().
  void Limit(const std::string& directory, int appends) {
    directory_ = directory;
    appends_left_ = appends;
  }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    IOStatus s = FileSystemWrapper::NewWritableFile(path, options, result, dbg);
    if (s.ok() && !directory_.empty() && path.starts_with(directory_ + "/") &&
        path.ends_with(".sst")) {
      *result = std::make_unique<FileOnFullDevice>(std::move(*result),
                                                   &appends_left_);
    }
    return s;
  }

 private:
  std::string directory_;
  std::atomic<int> appends_left_{0};
};

}  // namespace

class IncompleteFileTest : public DBTestBase {
 public:
  IncompleteFileTest()
      : DBTestBase("incomplete_file_test", /*env_do_fsync=*/false),
        fs_(std::make_shared<FullDeviceFS>(env_->GetFileSystem())),
        full_env_(new CompositeEnvWrapper(env_, fs_)) {}
  ~IncompleteFileTest() override { Close(); }

 protected:
  Options FullOptions() {
    Options options = CurrentOptions();
    options.env = full_env_.get();
    options.disable_auto_compactions = true;
    return options;
  }

  std::vector<std::string> TablesIn(const std::string& directory) {
    std::vector<std::string> children;
    EXPECT_OK(env_->GetChildren(directory, &children));
    std::erase_if(children, [](const std::string& child) {
      return !child.ends_with(".sst");
    });
    return children;
  }

  const std::shared_ptr<FullDeviceFS> fs_;
  const std::unique_ptr<Env> full_env_;
};

TEST_F(IncompleteFileTest, OnlyAFileThatExistsIsDeleted) {
  const std::string path = dbname_ + "/incomplete";
  DeleteIncompleteFile(fs_.get(), path, /*log=*/nullptr);
  ASSERT_OK(WriteStringToFile(env_, "x", path));
  DeleteIncompleteFile(fs_.get(), path, /*log=*/nullptr);
  EXPECT_TRUE(env_->FileExists(path).IsNotFound());
}

// The directory is one that no other column family has, so no later scan for
// obsolete files would come to it.
TEST_F(IncompleteFileTest, FailedImportLeavesNoFile) {
  const std::string directory = dbname_ + "_only_here";
  const std::string export_dir = dbname_ + "_export";
  ASSERT_OK(DestroyDir(env_, export_dir));
  ASSERT_OK(DestroyDir(env_, directory));
  const Options options = FullOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(Put("k" + std::to_string(i), std::string(1000, 'v')));
    ASSERT_OK(Flush());
  }
  std::unique_ptr<ExportImportFilesMetaData> files;
  {
    Checkpoint* checkpoint = nullptr;
    ASSERT_OK(Checkpoint::Create(db_.get(), &checkpoint));
    ExportImportFilesMetaData* exported = nullptr;
    ASSERT_OK(checkpoint->ExportColumnFamily(db_->DefaultColumnFamily(),
                                             export_dir, &exported));
    files.reset(exported);
    delete checkpoint;
  }
  Options target = options;
  target.cf_paths.emplace_back(directory, 0);
  ColumnFamilyHandle* handle = nullptr;
  int room = 0;
  for (;; ++room) {
    fs_->Limit(directory, room);
    const Status s = db_->CreateColumnFamilyWithImport(
        target, "imported", ImportColumnFamilyOptions(), *files, &handle);
    if (s.ok()) {
      break;
    }
    EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
    EXPECT_EQ(handle, nullptr);
    EXPECT_EQ(TablesIn(directory), std::vector<std::string>());
  }
  EXPECT_GE(room, 3);  // each of the files was the one that failed
  EXPECT_EQ(TablesIn(directory).size(), 3);
  fs_->Limit("", 0);
  std::string value;
  EXPECT_OK(db_->Get(ReadOptions(), handle, "k2", &value));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  Close();
  ASSERT_OK(DestroyDir(env_, export_dir));
}

TEST_F(IncompleteFileTest, FailedIngestionLeavesNoFile) {
  const Options options = FullOptions();
  DestroyAndReopen(options);
  std::vector<std::string> names;
  for (int i = 0; i < 2; ++i) {
    names.push_back(dbname_ + "/" + std::to_string(i) + ".external");
    SstFileWriter writer(EnvOptions(), options);
    ASSERT_OK(writer.Open(names.back()));
    ASSERT_OK(writer.Put("k" + std::to_string(i), std::string(1000, 'v')));
    ASSERT_OK(writer.Finish());
  }
  int room = 0;
  for (;; ++room) {
    fs_->Limit(dbname_, room);
    const Status s =
        db_->IngestExternalFile(names, IngestExternalFileOptions());
    if (s.ok()) {
      break;
    }
    EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
    EXPECT_EQ(TablesIn(dbname_), std::vector<std::string>());
  }
  EXPECT_GE(room, 2);
  EXPECT_EQ(TablesIn(dbname_).size(), 2);
}

TEST_F(IncompleteFileTest, LinkThatCannotBeSyncedIsDeleted) {
  const Options options = FullOptions();
  DestroyAndReopen(options);
  const std::string name = dbname_ + "/0.external";
  {
    SstFileWriter writer(EnvOptions(), options);
    ASSERT_OK(writer.Open(name));
    ASSERT_OK(writer.Put("k", "v"));
    ASSERT_OK(writer.Finish());
  }
  SyncPoint::GetInstance()->SetCallBack(
      "ExternalSstFileIngestionJob::CheckSyncReturnCode",
      [](void* s) { *static_cast<Status*>(s) = Status::IOError("injected"); });
  SyncPoint::GetInstance()->EnableProcessing();
  IngestExternalFileOptions link;
  link.link_files = true;
  EXPECT_TRUE(db_->IngestExternalFile({name}, link).IsIOError());
  EXPECT_EQ(TablesIn(dbname_), std::vector<std::string>());
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  ASSERT_OK(db_->IngestExternalFile({name}, link));
  EXPECT_EQ(Get("k"), "v");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
