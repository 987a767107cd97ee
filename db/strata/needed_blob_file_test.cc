//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/needed_blob_file.h"

#include <memory>
#include <utility>

#include "db/blob/blob_file_meta.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kNumber = 12;
constexpr uint64_t kTotal = 3;

bool IsNeeded(bool is_mapped, bool is_linked, uint64_t garbage,
              uint64_t oldest_linked) {
  std::shared_ptr<SharedBlobFileMetaData> shared =
      SharedBlobFileMetaData::Create(
          kNumber, kTotal, /*total_blob_bytes=*/300, /*checksum_method=*/"",
          /*checksum_value=*/"", /*path_id=*/uint32_t{1},
          /*index_bytes=*/uint64_t{is_mapped ? 50u : 0u});
  const auto meta =
      BlobFileMetaData::Create(std::move(shared),
                               is_linked ? BlobFileMetaData::LinkedSsts{7}
                                         : BlobFileMetaData::LinkedSsts(),
                               garbage, /*garbage_blob_bytes=*/garbage * 100);
  return IsNeededBlobFile(*meta, oldest_linked);
}

}  // namespace

TEST(NeededBlobFileTest, UnlinkedFileIsNeededWhileItHasLiveValues) {
  for (const uint64_t oldest_linked : {kNumber - 1, kNumber}) {
    EXPECT_TRUE(IsNeeded(/*is_mapped=*/false, /*is_linked=*/false,
                         /*garbage=*/0, oldest_linked));
    EXPECT_TRUE(IsNeeded(false, false, kTotal - 1, oldest_linked));
    EXPECT_FALSE(IsNeeded(false, false, kTotal, oldest_linked));
  }
}

TEST(NeededBlobFileTest, LinkedFileIsNeededWhateverItsGarbage) {
  for (const uint64_t oldest_linked : {kNumber - 1, kNumber}) {
    EXPECT_TRUE(IsNeeded(/*is_mapped=*/false, /*is_linked=*/true,
                         /*garbage=*/0, oldest_linked));
    EXPECT_TRUE(IsNeeded(false, true, kTotal, oldest_linked));
  }
}

// SST files refer to newer files only, or to none.
TEST(NeededBlobFileTest, FileBeforeTheOldestLinkedOneIsNotNeeded) {
  for (const uint64_t oldest_linked : {kNumber + 1, kInvalidBlobFileNumber}) {
    for (const uint64_t garbage : {uint64_t{0}, kTotal}) {
      EXPECT_FALSE(IsNeeded(/*is_mapped=*/false, /*is_linked=*/false, garbage,
                            oldest_linked));
    }
  }
}

// No SST file refers to a file of an address map.
TEST(NeededBlobFileTest, MappedFileIsNeededWhileItHasLiveValues) {
  for (const uint64_t oldest_linked :
       {kNumber - 1, kNumber, kNumber + 1, kInvalidBlobFileNumber}) {
    EXPECT_TRUE(IsNeeded(/*is_mapped=*/true, /*is_linked=*/false,
                         /*garbage=*/0, oldest_linked));
    EXPECT_TRUE(IsNeeded(true, false, kTotal - 1, oldest_linked));
    EXPECT_FALSE(IsNeeded(true, false, kTotal, oldest_linked));
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
