//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/checked_file_copy.h"

#include <memory>
#include <string>
#include <utility>

#include "file/file_util.h"
#include "file/strata/durable_files.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/file_system.h"
#include "rocksdb/rate_limiter.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

enum class Fault { kDamage, kAppendFails, kSyncFails, kCloseFails };

// A file on a device that damages a byte of each part that is written, or on
// which a step fails.
class FaultyFile : public FSWritableFileOwnerWrapper {
 public:
  FaultyFile(std::unique_ptr<FSWritableFile>&& target, Fault fault)
      : FSWritableFileOwnerWrapper(std::move(target)), fault_(fault) {}
  using FSWritableFileOwnerWrapper::Append;
  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    if (fault_ == Fault::kAppendFails) {
      return IOStatus::IOError("injected error");
    }
    std::string written = data.ToString();
    written.back() ^= fault_ == Fault::kDamage ? 1 : 0;
    return FSWritableFileOwnerWrapper::Append(written, options, dbg);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    return fault_ == Fault::kSyncFails
               ? IOStatus::IOError("injected error")
               : FSWritableFileOwnerWrapper::Sync(options, dbg);
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus s = FSWritableFileOwnerWrapper::Close(options, dbg);
    return fault_ == Fault::kCloseFails ? IOStatus::IOError("injected error")
                                        : s;
  }

 private:
  const Fault fault_;
};

class FaultyFS : public FileSystemWrapper {
 public:
  FaultyFS(const std::shared_ptr<FileSystem>& target, Fault fault)
      : FileSystemWrapper(target), fault_(fault) {}
  const char* Name() const override { return "FaultyFS"; }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    std::unique_ptr<FSWritableFile> file;
    const IOStatus s =
        FileSystemWrapper::NewWritableFile(name, options, &file, dbg);
    if (s.ok()) {
      *result = std::make_unique<FaultyFile>(std::move(file), fault_);
    }
    return s;
  }

 private:
  const Fault fault_;
};

}  // namespace

class CheckedFileCopyTest : public testing::Test {
 protected:
  CheckedFileCopyTest()
      : fs_(FileSystem::Default()),
        directory_(test::PerThreadDBPath("checked_file_copy_test")),
        from_(directory_ + "/from"),
        to_(directory_ + "/to") {
    EXPECT_OK(DestroyDir(Env::Default(), directory_));
    EXPECT_OK(Env::Default()->CreateDir(directory_));
    // Longer than what is read at once.
    contents_ = Random(301).RandomString((2 << 20) + 12345);
    EXPECT_OK(WriteStringToFile(fs_.get(), contents_, from_));
    expected_.size = contents_.size();
  }
  ~CheckedFileCopyTest() override {
    EXPECT_OK(DestroyDir(Env::Default(), directory_));
  }

  void SetChecksum(const std::string& contents) {
    const auto generator =
        GetFileChecksumGenCrc32cFactory()->CreateFileChecksumGenerator(
            FileChecksumGenContext());
    generator->Update(contents.data(), contents.size());
    generator->Finalize();
    expected_.checksum = generator->GetChecksum();
    expected_.checksum_func_name = generator->Name();
  }

  Status Copy(bool verifies = true, FileSystem* fs = nullptr,
              RateLimiter* limiter = nullptr) {
    copied_ = 0;
    return CheckedFileCopy(fs == nullptr ? fs_.get() : fs,
                           GetFileChecksumGenCrc32cFactory(), limiter, verifies)
        .Copy(from_, to_, expected_, [this](uint64_t n) { copied_ += n; });
  }

  void ExpectCopied() {
    std::string copy;
    ASSERT_OK(ReadFileToString(fs_.get(), to_, &copy));
    EXPECT_TRUE(copy == contents_);
    EXPECT_EQ(copied_, contents_.size());
  }

  // No copy stays.
  void ExpectCorruption(const Status& s, const std::string& text) {
    EXPECT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_NE(s.ToString().find(text), std::string::npos) << s.ToString();
    EXPECT_TRUE(fs_->FileExists(to_, IOOptions(), nullptr).IsNotFound());
  }

  const std::shared_ptr<FileSystem> fs_;
  const std::string directory_;
  const std::string from_;
  const std::string to_;
  std::string contents_;
  CheckedFileCopy::Expected expected_;
  uint64_t copied_ = 0;
};

TEST_F(CheckedFileCopyTest, CopiesAllBytes) {
  ASSERT_OK(Copy());
  ExpectCopied();
  // A file of this name is overwritten.
  ASSERT_OK(WriteStringToFile(fs_.get(), "other", to_));
  SetChecksum(contents_);
  ASSERT_OK(Copy());
  ExpectCopied();
  contents_.clear();
  ASSERT_OK(WriteStringToFile(fs_.get(), "", from_));
  expected_ = CheckedFileCopy::Expected();
  ASSERT_OK(Copy());
  ExpectCopied();
}

TEST_F(CheckedFileCopyTest, SourceThatIsNotAsExpected) {
  expected_.size += 1;
  for (const bool verifies : {false, true}) {
    ExpectCorruption(Copy(verifies), from_);
  }
  expected_.size -= 1;
  std::string other = contents_;
  other[12345] ^= 1;
  SetChecksum(other);
  ExpectCorruption(Copy(), from_);
  ASSERT_OK(Copy(/*verifies=*/false));
  ExpectCopied();
  // The function of another checksum is not known, so that the bytes of both
  // files are compared.
  expected_.checksum_func_name = "other";
  ASSERT_OK(Copy());
  ExpectCopied();
  CheckedFileCopy copy(fs_.get(), nullptr, nullptr, /*verifies=*/true);
  ASSERT_OK(copy.Copy(from_, to_, expected_, [](uint64_t) {}));
  EXPECT_EQ(copy.num_unchecked(), 1u);
  EXPECT_EQ(copy.unknown_function(), "other");
  SetChecksum(contents_);
  ASSERT_OK(copy.Copy(from_, to_, expected_, [](uint64_t) {}));
  EXPECT_EQ(copy.num_unchecked(), 1u);
}

TEST_F(CheckedFileCopyTest, CopyThatIsDamaged) {
  FaultyFS fs(fs_, Fault::kDamage);
  ExpectCorruption(Copy(/*verifies=*/true, &fs), to_);
  SetChecksum(contents_);
  ExpectCorruption(Copy(/*verifies=*/true, &fs), to_);
  ASSERT_OK(Copy(/*verifies=*/false, &fs));
}

TEST_F(CheckedFileCopyTest, StepThatFailsLeavesNoCopy) {
  for (const Fault fault :
       {Fault::kAppendFails, Fault::kSyncFails, Fault::kCloseFails}) {
    for (const bool verifies : {false, true}) {
      FaultyFS fs(fs_, fault);
      const Status s = Copy(verifies, &fs);
      EXPECT_TRUE(s.IsIOError()) << s.ToString();
      EXPECT_TRUE(fs_->FileExists(to_, IOOptions(), nullptr).IsNotFound());
      EXPECT_EQ(copied_, fault == Fault::kAppendFails ? 0 : contents_.size());
    }
  }
}

TEST_F(CheckedFileCopyTest, MissingSource) {
  ASSERT_OK(fs_->DeleteFile(from_, IOOptions(), nullptr));
  EXPECT_NOK(Copy());
  EXPECT_TRUE(fs_->FileExists(to_, IOOptions(), nullptr).IsNotFound());
}

TEST_F(CheckedFileCopyTest, LimiterCountsTheBytesOnce) {
  std::unique_ptr<RateLimiter> limiter(NewGenericRateLimiter(1 << 30));
  ASSERT_OK(Copy(/*verifies=*/true, /*fs=*/nullptr, limiter.get()));
  ExpectCopied();
  EXPECT_EQ(limiter->GetTotalBytesThrough(),
            static_cast<int64_t>(contents_.size()));
}

TEST_F(CheckedFileCopyTest, Compare) {
  CheckedFileCopy copy(fs_.get(), nullptr, nullptr, /*verifies=*/true);
  ASSERT_OK(WriteStringToFile(fs_.get(), contents_, to_));
  ASSERT_OK(copy.Compare(from_, to_));
  contents_[12345] ^= 1;
  ASSERT_OK(WriteStringToFile(fs_.get(), contents_, to_));
  const Status s = copy.Compare(from_, to_);
  EXPECT_TRUE(s.IsCorruption());
  EXPECT_NE(s.ToString().find(to_), std::string::npos) << s.ToString();
  EXPECT_NOK(copy.Compare(from_, directory_ + "/none"));
}

TEST_F(CheckedFileCopyTest, ReplaceFileLeavesNoOther) {
  for (const std::string contents : {"one", "another"}) {
    ASSERT_OK(ReplaceFile(fs_.get(), directory_, "temporary", "to", contents));
    std::string read;
    ASSERT_OK(ReadFileToString(fs_.get(), to_, &read));
    EXPECT_EQ(read, contents);
  }
  // A directory cannot be replaced by a file.
  const std::string taken = directory_ + "/taken";
  ASSERT_OK(fs_->CreateDir(taken, IOOptions(), nullptr));
  EXPECT_NOK(ReplaceFile(fs_.get(), directory_, "temporary", "taken", "x"));
  EXPECT_TRUE(fs_->FileExists(directory_ + "/temporary", IOOptions(), nullptr)
                  .IsNotFound());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
