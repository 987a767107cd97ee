//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/wal_records.h"

#include "db/db_test_util.h"
#include "port/stack_trace.h"

namespace ROCKSDB_NAMESPACE {

class WalRecordsTest : public DBTestBase {
 public:
  WalRecordsTest() : DBTestBase("wal_records_test", /*env_do_fsync=*/false) {}

  bool Find() {
    bool found = false;
    EXPECT_OK(FindWalRecord(env_->GetFileSystem().get(), dbname_, &found));
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

TEST_F(WalRecordsTest, NoDirectory) {
  bool found = true;
  EXPECT_NOK(
      FindWalRecord(env_->GetFileSystem().get(), dbname_ + "/none", &found));
  EXPECT_TRUE(found);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
