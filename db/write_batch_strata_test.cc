//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <memory>
#include <string>

#include "db/write_batch_internal.h"
#include "port/stack_trace.h"
#include "rocksdb/write_batch.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// The parameter is WriteBatch's protection_bytes_per_key.
class WriteBatchTruncationTest : public testing::TestWithParam<size_t> {
 protected:
  std::unique_ptr<WriteBatch> NewBatch() const {
    return std::make_unique<WriteBatch>(/*reserved_bytes=*/0, /*max_bytes=*/0,
                                        GetParam(), /*default_cf_ts_sz=*/0);
  }
  // Does what a transaction does with its commit-time batch.
  static void Mark(WriteBatch* batch, const WriteBatch& appended) {
    ASSERT_OK(WriteBatchInternal::MarkCommit(batch, "name"));
    batch->MarkWalTerminationPoint();
    WriteBatchInternal::SetAsLatestPersistentState(batch);
    ASSERT_OK(WriteBatchInternal::Append(batch, &appended));
  }
};

TEST_P(WriteBatchTruncationTest, Truncate) {
  const std::unique_ptr<WriteBatch> appended = NewBatch();
  ASSERT_OK(appended->Merge("a", "1"));
  ASSERT_OK(appended->Delete("b"));
  for (const int size : {0, 1, 3}) {
    SCOPED_TRACE(size);
    const std::unique_ptr<WriteBatch> batch = NewBatch();
    for (int i = 0; i < size; ++i) {
      ASSERT_OK(batch->Put("c", std::to_string(i)));
    }
    const std::string contents = batch->Data();
    for (int attempt = 0; attempt < 2; ++attempt) {
      const SavePoint end = WriteBatchInternal::End(*batch);
      Mark(batch.get(), *appended);
      EXPECT_TRUE(batch->HasMerge());
      WriteBatchInternal::TruncateTo(batch.get(), end);
      EXPECT_EQ(contents, batch->Data());
      EXPECT_EQ(size, batch->Count());
      EXPECT_EQ(size > 0, batch->HasPut());
      EXPECT_FALSE(batch->HasMerge());
      EXPECT_FALSE(batch->HasDelete());
      EXPECT_FALSE(batch->HasCommit());
      EXPECT_TRUE(batch->GetWalTerminationPoint().is_cleared());
      EXPECT_FALSE(WriteBatchInternal::IsLatestPersistentState(batch.get()));
      EXPECT_OK(batch->VerifyChecksum());
    }
    // Append() finds out if checksums do not belong to the entries.
    ASSERT_OK(WriteBatchInternal::Append(batch.get(), appended.get()));
    EXPECT_EQ(size + 2, batch->Count());
    EXPECT_OK(batch->VerifyChecksum());
  }
}

TEST_P(WriteBatchTruncationTest, ClearRemovesMarks) {
  const std::unique_ptr<WriteBatch> batch = NewBatch();
  Mark(batch.get(), *NewBatch());
  batch->Clear();
  EXPECT_FALSE(batch->HasCommit());
  EXPECT_TRUE(batch->GetWalTerminationPoint().is_cleared());
  EXPECT_FALSE(WriteBatchInternal::IsLatestPersistentState(batch.get()));
}

INSTANTIATE_TEST_CASE_P(ProtectionBytes, WriteBatchTruncationTest,
                        testing::Values(0, 8));

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
