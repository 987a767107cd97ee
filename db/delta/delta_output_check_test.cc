//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_output_check.h"

#include <memory>
#include <string>
#include <vector>

#include "db/delta/delta_file_meta.h"
#include "db/delta/delta_file_test_util.h"
#include "db/output_validator.h"
#include "options/cf_options.h"
#include "port/stack_trace.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/options.h"
#include "rocksdb/statistics.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {
namespace delta_test {

class DeltaOutputCheckTest : public DeltaFileTestBase {
 protected:
  DeltaOutputCheckTest() {
    options_.statistics = CreateDBStatistics();
    Reopen();
    description_ = WriteOperands({{"a", 9, "x"}, {"b", 4, "y"}});
    // Jobs read without filling the cache.
    read_options_.fill_cache = false;
  }

  Status Check(const std::string& file_name,
               const OutputValidator* written = nullptr,
               std::shared_ptr<DeltaFileReader>* reader = nullptr) {
    DeltaOutputChecks checks = checks_;
    checks.entries = written != nullptr;
    return CheckDeltaOutput(file_name, *tables_, read_options_,
                            TableReaderCaller::kCompaction, checks, written,
                            &description_, reader);
  }
  // Changes a byte of the first block, which opening the file does not read.
  void DamageFirstBlock(const std::string& file_name) {
    std::string contents;
    ASSERT_OK(ReadFileToString(env_.get(), file_name, &contents));
    contents[2] ^= 1;
    ASSERT_OK(WriteStringToFile(env_.get(), contents, file_name));
  }
  void IsCorruptionOf(const std::string& file_name, const Status& s) {
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_NE(std::string::npos, s.ToString().find(file_name)) << s.ToString();
    EXPECT_EQ(nullptr, description_.opened);
  }
  // Sets a block cache that does not exceed its capacity.
  void SetCache(size_t capacity) {
    BlockBasedTableOptions table_options = table_options_;
    LRUCacheOptions cache_options;
    cache_options.capacity = capacity;
    cache_options.num_shard_bits = 0;
    cache_options.strict_capacity_limit = true;
    table_options.block_cache = cache_options.MakeSharedCache();
    options_.table_factory.reset(NewBlockBasedTableFactory(table_options));
    Reopen();
  }
  // Returns the validator of a file to which these operands were written.
  std::unique_ptr<OutputValidator> Written(
      const std::vector<Operand>& operands) const {
    auto validator = std::make_unique<OutputValidator>(
        tables_->settings()->icmp(), /*enable_hash=*/true);
    for (const Operand& operand : operands) {
      EXPECT_OK(validator->Add(
          InternalKey(operand.key, operand.seq, kTypeMerge).Encode(),
          operand.value));
    }
    return validator;
  }
  uint64_t NumOpens() const {
    return options_.statistics->getTickerCount(NO_FILE_OPENS);
  }
  // Returns the reader of the file as a read of a DB does.
  DeltaFileReader* Get(const DeltaFileMeta& meta) {
    DeltaFileReader* reader = nullptr;
    EXPECT_OK(meta.GetReader(
        [this](const DeltaFileDescription& description,
               std::shared_ptr<DeltaFileReader>* opened) {
          std::unique_ptr<DeltaFileReader> result;
          Status s = Open(description, &result);
          *opened = std::move(result);
          return s;
        },
        &reader));
    return reader;
  }

  DeltaFileDescription description_;
  ReadOptions read_options_;
  // But for `entries`.
  DeltaOutputChecks checks_;
};

// CompactionJob::VerifyOutputFiles() makes the same checks of the outputs of a
// compaction that runs in the process.
TEST(DeltaOutputChecksTest, AreThoseOfLocalCompactions) {
  using Flags = VerifyOutputFlags;
  const auto checks = [](Flags flags, bool paranoid) {
    Options options;
    options.verify_output_flags = flags;
    options.paranoid_file_checks = paranoid;
    const DeltaOutputChecks result =
        DeltaOutputChecks::OfJobs(MutableCFOptions(options));
    return std::string(result.block_checksums ? "blocks " : "") +
           (result.entries ? "entries " : "") +
           (result.file_checksum ? "file " : "");
  };
  const Flags local = Flags::kEnableForLocalCompaction;
  EXPECT_EQ("", checks(Flags::kVerifyNone, false));
  EXPECT_EQ("", checks(local, false));
  EXPECT_EQ("blocks ", checks(Flags::kVerifyBlockChecksum | local, false));
  EXPECT_EQ("entries ", checks(Flags::kVerifyIteration | local, false));
  EXPECT_EQ("file ", checks(Flags::kVerifyFileChecksum | local, false));
  EXPECT_EQ("blocks entries file ", checks(Flags::kVerifyAll, false));
  const Flags kinds = Flags::kVerifyBlockChecksum | Flags::kVerifyIteration |
                      Flags::kVerifyFileChecksum;
  EXPECT_EQ("", checks(kinds, false));
  EXPECT_EQ("", checks(kinds | Flags::kEnableForRemoteCompaction, false));
  // paranoid_file_checks turns the verification of local compactions on.
  EXPECT_EQ("entries ", checks(Flags::kVerifyNone, true));
  EXPECT_EQ("blocks entries ", checks(Flags::kVerifyBlockChecksum, true));
}

TEST_F(DeltaOutputCheckTest, FirstMetaGetsTheOpenReader) {
  ASSERT_OK(Check(FileName(description_)));
  ASSERT_EQ(1u, NumOpens());
  const DeltaFileDescription copy = description_;
  ASSERT_EQ(description_, copy);
  const auto meta = DeltaFileMeta::Create(copy, nullptr);
  ASSERT_NE(nullptr, meta->OpenedReader());
  DeltaFileReader* const reader = Get(*meta);
  ASSERT_EQ(meta->OpenedReader(), reader);
  ASSERT_EQ(1u, NumOpens());
  ASSERT_EQ((Values{{9, "x"}}), MustCollect(*reader, "a"));
  // Neither the reader nor the meta keeps the shared state of the description.
  ASSERT_EQ(nullptr, reader->description().opened);
  ASSERT_EQ(nullptr, meta->description().opened);
  // Only one meta gets the reader.
  const auto other = DeltaFileMeta::Create(description_, nullptr);
  ASSERT_EQ(nullptr, other->OpenedReader());
  ASSERT_NE(reader, Get(*other));
  ASSERT_EQ(2u, NumOpens());
}

TEST_F(DeltaOutputCheckTest, FilterAndIndexAreInTheBlockCache) {
  ASSERT_OK(Check(FileName(description_)));
  Statistics* const stats = options_.statistics.get();
  ASSERT_EQ(1u, stats->getTickerCount(BLOCK_CACHE_FILTER_ADD));
  ASSERT_EQ(1u, stats->getTickerCount(BLOCK_CACHE_INDEX_ADD));
}

TEST_F(DeltaOutputCheckTest, ReaderIsClosedWithTheLastCopy) {
  ASSERT_OK(Check(FileName(description_)));
  const std::weak_ptr<DeltaFileReader> reader = description_.opened->reader;
  auto copy = std::make_unique<DeltaFileDescription>(description_);
  description_ = DeltaFileDescription();
  ASSERT_FALSE(reader.expired());
  copy.reset();
  ASSERT_TRUE(reader.expired());
}

TEST_F(DeltaOutputCheckTest, FileWithATemporaryNameIsOpenedLater) {
  const std::string name = FileName(description_);
  const std::string temporary = name + ".tmp";
  ASSERT_OK(env_->RenameFile(name, temporary));
  ASSERT_OK(Check(temporary));
  const DeltaFileDescription copy = description_;
  ASSERT_EQ(nullptr, copy.opened->reader);
  // The file does not have its final name yet.
  OpenDeltaOutput(*tables_, read_options_, description_);
  ASSERT_EQ(nullptr, copy.opened->reader);
  ASSERT_OK(env_->RenameFile(temporary, name));
  OpenDeltaOutput(*tables_, read_options_, description_);
  ASSERT_NE(nullptr, copy.opened->reader);
  ASSERT_EQ(name, copy.opened->reader->file_name());
  // The file is already open.
  const uint64_t num_opens = NumOpens();
  OpenDeltaOutput(*tables_, read_options_, description_);
  ASSERT_EQ(num_opens, NumOpens());
  const auto meta = DeltaFileMeta::Create(copy, nullptr);
  ASSERT_EQ((Values{{4, "y"}}), MustCollect(*Get(*meta), "b"));
  ASSERT_EQ(num_opens, NumOpens());
}

TEST_F(DeltaOutputCheckTest, ContentsMustMatchTheWrittenEntries) {
  const std::string name = FileName(description_);
  ASSERT_OK(Check(name, Written({{"a", 9, "x"}, {"b", 4, "y"}}).get()));
  description_.opened.reset();
  for (const std::vector<Operand>& operands :
       {std::vector<Operand>{{"a", 9, "x"}},
        {{"a", 9, "x"}, {"b", 4, "z"}},
        {{"a", 9, "x"}, {"b", 5, "y"}},
        {{"a", 9, "x"}, {"b", 4, "y"}, {"c", 3, ""}}}) {
    const Status s = Check(name, Written(operands).get());
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    ASSERT_NE(std::string::npos, s.ToString().find(name)) << s.ToString();
    ASSERT_EQ(nullptr, description_.opened);
  }
}

TEST_F(DeltaOutputCheckTest, BlockChecksumsAreVerified) {
  const auto written = Written({{"a", 9, "x"}, {"b", 4, "y"}});
  const std::string name = FileName(description_);
  checks_.block_checksums = true;
  ASSERT_OK(Check(name));
  description_.opened.reset();
  ASSERT_OK(Check(name, written.get()));
  description_.opened.reset();
  DamageFirstBlock(name);
  IsCorruptionOf(name, Check(name));
  IsCorruptionOf(name, Check(name, written.get()));
  // The file can still be opened.
  checks_.block_checksums = false;
  ASSERT_OK(Check(name));
}

TEST_F(DeltaOutputCheckTest, FileChecksumIsVerified) {
  checks_.file_checksum = true;
  options_.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  Reopen();
  description_ = WriteOperands({{"a", 9, "x"}, {"b", 4, "y"}});
  ASSERT_NE(kUnknownFileChecksum, description_.file_checksum);
  const std::string name = FileName(description_);
  ASSERT_OK(Check(name));
  description_.opened.reset();
  DamageFirstBlock(name);
  IsCorruptionOf(name, Check(name));
  // There is nothing to compare the file with.
  description_.file_checksum = kUnknownFileChecksum;
  ASSERT_OK(Check(name));
  description_ = WriteOperands({{"a", 9, "x"}});
  options_.file_checksum_gen_factory = nullptr;
  Reopen();
  DamageFirstBlock(FileName(description_));
  ASSERT_OK(Check(FileName(description_)));
}

// A job does not fail because the block cache has no room.
TEST_F(DeltaOutputCheckTest, BlockCacheWithoutRoomIsNoError) {
  SetCache(1);
  std::unique_ptr<DeltaFileReader> opened;
  ASSERT_TRUE(Open(description_, &opened).IsMemoryLimit());
  for (const bool fill_cache : {false, true}) {
    read_options_.fill_cache = fill_cache;
    description_.opened.reset();
    std::shared_ptr<DeltaFileReader> reader;
    ASSERT_OK(Check(FileName(description_),
                    Written({{"a", 9, "x"}, {"b", 4, "y"}}).get(), &reader));
    // The description gets no reader, so the first read of the file reports the
    // error.
    ASSERT_EQ(nullptr, description_.opened->reader);
    OpenDeltaOutput(*tables_, read_options_, description_);
    ASSERT_EQ(nullptr, description_.opened->reader);
    // A caller that reads the file at once gets a reader with a filter of its
    // own.
    ASSERT_NE(nullptr, reader);
    ASSERT_FALSE(reader->LacksFilter());
    ASSERT_TRUE(reader->MayHaveKey(ReadOptions(), "a"));
    ASSERT_FALSE(reader->MayHaveKey(ReadOptions(), "absent"));
  }
}

// The description gets no reader if the block cache has room for the index but
// not for the filter, which is larger.
TEST_F(DeltaOutputCheckTest, ReaderWithoutItsFilterIsNotPassedOn) {
  std::vector<Operand> operands;
  for (int i = 0; i < 5000; ++i) {
    operands.push_back({"key" + std::to_string(10000 + i), 7, ""});
  }
  description_ = WriteOperands(operands);
  const std::string name = FileName(description_);
  // The capacity is less than the index needs, then enough for the index, then
  // enough for both.
  size_t num_partial = 0;
  for (size_t capacity = 100;; capacity *= 2) {
    SetCache(capacity);
    std::unique_ptr<DeltaFileReader> opened;
    const Status s = Open(description_, &opened);
    const bool is_partial = s.ok() && opened->LacksFilter();
    const bool is_whole = s.ok() && !is_partial;
    ASSERT_EQ(!is_whole, !s.ok() || opened->MayHaveKey(ReadOptions(), "absent"))
        << capacity;
    opened.reset();
    num_partial += is_partial;
    for (const bool is_renamed : {false, true}) {
      description_.opened.reset();
      std::shared_ptr<DeltaFileReader> reader;
      if (is_renamed) {
        ASSERT_OK(env_->RenameFile(name, name + ".tmp"));
        ASSERT_OK(Check(name + ".tmp", nullptr, &reader));
        reader.reset();
        ASSERT_OK(env_->RenameFile(name + ".tmp", name));
        OpenDeltaOutput(*tables_, read_options_, description_);
      } else {
        ASSERT_OK(Check(name, Written(operands).get(), &reader));
        ASSERT_FALSE(reader->MayHaveKey(ReadOptions(), "absent"));
      }
      ASSERT_EQ(is_whole, description_.opened->reader != nullptr) << capacity;
    }
    if (is_whole) {
      break;
    }
  }
  ASSERT_GT(num_partial, 0u);
}

TEST_F(DeltaOutputCheckTest, CloseDeltaOutputClosesTheReaderOfAllCopies) {
  ASSERT_OK(Check(FileName(description_)));
  const std::weak_ptr<DeltaFileReader> reader = description_.opened->reader;
  const DeltaFileDescription copy = description_;
  ASSERT_FALSE(reader.expired());
  CloseDeltaOutput(description_);
  ASSERT_TRUE(reader.expired());
  ASSERT_EQ(nullptr, DeltaFileMeta::Create(copy, nullptr)->OpenedReader());
}

TEST_F(DeltaOutputCheckTest, FileThatCannotBeOpenedIsAnError) {
  const std::string name = FileName(description_);
  ASSERT_OK(WriteStringToFile(env_.get(), "short", name));
  ASSERT_TRUE(Check(name).IsCorruption());
  ASSERT_EQ(nullptr, description_.opened);
  ASSERT_OK(env_->DeleteFile(name));
  ASSERT_TRUE(Check(name).IsIOError());
  ASSERT_EQ(nullptr, description_.opened);
}

}  // namespace delta_test
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
