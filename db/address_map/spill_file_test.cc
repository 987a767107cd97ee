//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/spill_file.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/random.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Holds what is appended until Flush().
class HoldingFile : public FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::Append;
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;

  IOStatus Append(const Slice& data, const IOOptions& /*options*/,
                  IODebugContext* /*dbg*/) override {
    held_.append(data.data(), data.size());
    return IOStatus::OK();
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus s = target()->Append(held_, options, dbg);
    held_.clear();
    return s.ok() ? target()->Flush(options, dbg) : s;
  }

 private:
  std::string held_;
};

class HoldingFS : public FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;

  const char* Name() const override { return "HoldingFS"; }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file,
                           IODebugContext* dbg) override {
    const IOStatus s = target()->NewWritableFile(path, options, file, dbg);
    if (s.ok()) {
      *file = std::make_unique<HoldingFile>(std::move(*file));
    }
    return s;
  }
};

}  // namespace

class SpillFileTest : public testing::Test {
 protected:
  SpillFileTest()
      : path_(test::PerThreadDBPath("spill_file_test") + ".dbtmp"),
        fs_(std::make_shared<FaultInjectionTestFS>(FileSystem::Default())) {}

  void Create() {
    ASSERT_OK(SpillFile::Create(
        fs_.get(), FileOptions(), path_, [this] { ++deleted_; }, &file_));
  }
  Status Read(std::vector<std::string>* blocks) {
    blocks->clear();
    return file_->ForEach([&](const Slice& block) {
      blocks->push_back(block.ToString());
      return Status::OK();
    });
  }

  const std::string path_;
  std::shared_ptr<FaultInjectionTestFS> fs_;
  std::unique_ptr<SpillFile> file_;
  int deleted_ = 0;
};

TEST_F(SpillFileTest, BlocksAreReadAsTheyWereAppended) {
  Create();
  std::vector<std::string> read;
  ASSERT_OK(Read(&read));
  ASSERT_TRUE(read.empty());

  Random rnd(301);
  std::vector<std::string> written;
  for (int i = 0; i < 300; ++i) {
    written.push_back(rnd.RandomString(i == 7 ? 0 : rnd.Uniform(40000)));
    ASSERT_OK(file_->Append(written.back()));
    if (i % 100 == 50) {
      ASSERT_OK(Read(&read));
      ASSERT_EQ(written, read);
    }
  }
  ASSERT_OK(Read(&read));
  ASSERT_EQ(written, read);
  // The callback can end the reading.
  int seen = 0;
  ASSERT_TRUE(file_
                  ->ForEach([&](const Slice&) {
                    return ++seen == 3 ? Status::Aborted() : Status::OK();
                  })
                  .IsAborted());
  ASSERT_EQ(3, seen);

  ASSERT_OK(fs_->FileExists(path_, IOOptions(), nullptr));
  file_.reset();
  ASSERT_TRUE(fs_->FileExists(path_, IOOptions(), nullptr).IsNotFound());
  ASSERT_EQ(1, deleted_);
}

// Some file systems write what was appended only when the file is flushed.
TEST_F(SpillFileTest, BlocksAreFlushedBeforeTheyAreRead) {
  HoldingFS fs(FileSystem::Default());
  ASSERT_OK(SpillFile::Create(
      &fs, FileOptions(), path_, [this] { ++deleted_; }, &file_));
  std::vector<std::string> written;
  for (const char* block : {"one", "two"}) {
    written.emplace_back(block);
    ASSERT_OK(file_->Append(block));
    std::vector<std::string> read;
    ASSERT_OK(Read(&read));
    ASSERT_EQ(written, read);
  }
  written.emplace_back("three");
  ASSERT_OK(file_->Append("three"));
  file_->Finish();
  std::vector<std::string> read;
  ASSERT_OK(Read(&read));
  ASSERT_EQ(written, read);
  file_.reset();
}

// A finished file is closed. It is opened again when it is read.
TEST_F(SpillFileTest, FinishedFileIsReadAgain) {
  Create();
  const std::vector<std::string> written = {"one", "", "three"};
  for (const std::string& block : written) {
    ASSERT_OK(file_->Append(block));
  }
  file_->Finish();
  file_->Finish();
  for (int i = 0; i < 2; ++i) {
    std::vector<std::string> read;
    ASSERT_OK(Read(&read));
    ASSERT_EQ(written, read);
  }
  ASSERT_OK(fs_->FileExists(path_, IOOptions(), nullptr));
  file_.reset();
  ASSERT_TRUE(fs_->FileExists(path_, IOOptions(), nullptr).IsNotFound());
  ASSERT_EQ(1, deleted_);

  // A file that is gone when it is read is an error.
  Create();
  ASSERT_OK(file_->Append("one"));
  file_->Finish();
  ASSERT_OK(fs_->DeleteFile(path_, IOOptions(), nullptr));
  std::vector<std::string> read;
  ASSERT_NOK(Read(&read));
  ASSERT_TRUE(read.empty());
  file_.reset();
  ASSERT_EQ(2, deleted_);
}

TEST_F(SpillFileTest, DamagedBlockIsCorruption) {
  const std::vector<std::string> written = {std::string(100, 'a'),
                                            std::string(200, 'b')};
  // These are the bytes of the second block, including its prefix.
  for (uint64_t at = 108; at < 316; ++at) {
    Create();
    for (const std::string& block : written) {
      ASSERT_OK(file_->Append(block));
    }
    std::vector<std::string> read;
    ASSERT_OK(Read(&read));
    ASSERT_OK(
        test::CorruptFile(Env::Default(), path_, static_cast<int>(at), 1));
    const Status s = Read(&read);
    ASSERT_TRUE(s.IsCorruption()) << at << ": " << s.ToString();
    ASSERT_NE(std::string::npos, s.ToString().find(path_));
    ASSERT_EQ(1u, read.size());
    file_.reset();
  }
}

// Not all file systems say which file their error is about.
TEST_F(SpillFileTest, ErrorNamesTheFileOnce) {
  for (const bool is_named : {false, true}) {
    IOStatus error =
        IOStatus::NoSpace(is_named ? "While writing: " + path_ : "full");
    error.SetRetryable(true);
    fs_->SetFilesystemActive(false, error);
    const Status created = SpillFile::Create(
        fs_.get(), FileOptions(), path_, [this] { ++deleted_; }, &file_);
    fs_->SetFilesystemActive(true);
    Create();
    fs_->SetFilesystemActive(false, error);
    const Status appended = file_->Append("block");
    fs_->SetFilesystemActive(true);
    for (const Status& s : {created, appended}) {
      EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
      EXPECT_TRUE(status_to_io_status(Status(s)).GetRetryable());
      EXPECT_EQ(s.ToString(),
                "IO error: No space left on device: " +
                    (is_named ? "While writing: " + path_ : path_ + ": full"));
    }
    file_.reset();
  }
}

TEST_F(SpillFileTest, FileIsDeletedAfterFailures) {
  fs_->SetFilesystemActive(false, IOStatus::NoSpace("full"));
  ASSERT_TRUE(
      SpillFile::Create(
          fs_.get(), FileOptions(), path_, [this] { ++deleted_; }, &file_)
          .IsNoSpace());
  ASSERT_EQ(nullptr, file_);
  ASSERT_EQ(1, deleted_);

  fs_->SetFilesystemActive(true);
  Create();
  ASSERT_OK(file_->Append("one"));
  fs_->SetFilesystemActive(false, IOStatus::NoSpace("full"));
  ASSERT_NOK(file_->Append("two"));
  fs_->SetFilesystemActive(true);
  file_.reset();
  ASSERT_EQ(2, deleted_);
  ASSERT_TRUE(fs_->FileExists(path_, IOOptions(), nullptr).IsNotFound());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
