//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/wal_records.h"

#include <memory>
#include <string>
#include <vector>

#include "db/db_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Each directory has had a WAL that was deleted right after it was listed.
class DeletedWalFS : public FileSystemWrapper {
 public:
  explicit DeletedWalFS(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "DeletedWalFS"; }
  IOStatus GetChildren(const std::string& directory, const IOOptions& options,
                       std::vector<std::string>* result,
                       IODebugContext* dbg) override {
    const IOStatus s = target()->GetChildren(directory, options, result, dbg);
    result->insert(result->begin(), "000001.log");
    return s;
  }
};

}  // namespace

class WalRecordsTest : public DBTestBase {
 public:
  WalRecordsTest() : DBTestBase("wal_records_test", /*env_do_fsync=*/false) {}

  bool Find(uint64_t min_number = 0) {
    bool found = false;
    EXPECT_OK(FindWalRecord(env_->GetFileSystem().get(), dbname_, min_number,
                            &found));
    return found;
  }
};

TEST_F(WalRecordsTest, WritesAreFound) {
  for (const CompressionType compression : {kNoCompression, kZSTD}) {
    if (compression == kZSTD && !ZSTD_Supported()) {
      continue;
    }
    Options options = CurrentOptions();
    options.wal_compression = compression;
    options.avoid_flush_during_shutdown = true;
    DestroyAndReopen(options);
    Close();
    EXPECT_FALSE(Find());
    Reopen(options);
    ASSERT_OK(Put("key", std::string(100, 'v')));
    Close();
    EXPECT_TRUE(Find());
    // The open writes them to an SST file.
    Reopen(options);
    Close();
    EXPECT_FALSE(Find());
    // A record over several blocks.
    Reopen(options);
    ASSERT_OK(Put("key", std::string(100000, 'v')));
    Close();
    EXPECT_TRUE(Find());
  }
}

TEST_F(WalRecordsTest, DamageIsFound) {
  Close();
  EXPECT_FALSE(Find());
  ASSERT_OK(
      WriteStringToFile(env_, std::string(100, 'x'), dbname_ + "/099999.log"));
  EXPECT_TRUE(Find());
}

TEST_F(WalRecordsTest, OldWalsDoNotCount) {
  Options options = CurrentOptions();
  options.avoid_flush_during_shutdown = true;
  DestroyAndReopen(options);
  ASSERT_OK(Put("key", "value"));
  std::unique_ptr<WalFile> wal;
  ASSERT_OK(db_->GetCurrentWalFile(&wal));
  Close();
  EXPECT_TRUE(Find());
  EXPECT_TRUE(Find(wal->LogNumber()));
  EXPECT_FALSE(Find(wal->LogNumber() + 1));
}

TEST_F(WalRecordsTest, DeletedWalsDoNotCount) {
  Options options = CurrentOptions();
  options.avoid_flush_during_shutdown = true;
  DestroyAndReopen(options);
  Close();
  DeletedWalFS fs(env_->GetFileSystem());
  bool found = true;
  ASSERT_OK(FindWalRecord(&fs, dbname_, 0, &found));
  EXPECT_FALSE(found);
  // The others do.
  Reopen(options);
  ASSERT_OK(Put("key", "value"));
  Close();
  ASSERT_OK(FindWalRecord(&fs, dbname_, 0, &found));
  EXPECT_TRUE(found);
}

TEST_F(WalRecordsTest, NoDirectory) {
  bool found = true;
  EXPECT_NOK(
      FindWalRecord(env_->GetFileSystem().get(), dbname_ + "/none", 0, &found));
  EXPECT_TRUE(found);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
