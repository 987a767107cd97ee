//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_relocation.h"

#include "db/blob/blob_file_meta.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class BlobRelocationTest : public testing::Test {
 protected:
  void AddFile(uint64_t number, uint32_t path_id, HotMark hot = HotMark()) {
    auto shared = SharedBlobFileMetaData::Create(
        number, /* total_blob_count */ 1, /* total_blob_bytes */ 100, "", "",
        path_id, /*index_bytes=*/0, /*is_collected=*/false, hot);
    files_.push_back(BlobFileMetaData::Create(std::move(shared), {}, 0, 0));
  }

  BlobRelocation::BlobFiles files_;
};

TEST_F(BlobRelocationTest, RelocatesNothingFromTheSamePath) {
  BlobRelocation none;
  ASSERT_TRUE(none.IsEmpty());
  ASSERT_FALSE(none.ShouldRelocate(1));

  AddFile(3, 2);
  AddFile(5, 2);
  BlobRelocation in_place(files_, 2);
  ASSERT_TRUE(in_place.IsEmpty());
  ASSERT_FALSE(in_place.ShouldRelocate(3));
  ASSERT_FALSE(in_place.ShouldRelocate(5));
}

TEST_F(BlobRelocationTest, RelocatesFilesFromOtherPaths) {
  AddFile(3, 0);
  AddFile(5, 1);
  AddFile(6, 2);
  AddFile(9, 1);
  AddFile(12, 0);
  for (uint32_t path_id = 0; path_id < 4; ++path_id) {
    BlobRelocation relocation(files_, path_id);
    ASSERT_FALSE(relocation.IsEmpty());
    // Ask in every order and twice in a row, because the last answer is cached.
    for (const auto& first : files_) {
      for (const auto& second : files_) {
        for (const auto& meta : {first, second, second}) {
          ASSERT_EQ(relocation.ShouldRelocate(meta->GetBlobFileNumber()),
                    meta->GetPathId() != path_id);
        }
      }
    }
    // Files that are not in the Version, such as those written in the meantime,
    // are not relocated.
    for (uint64_t number : {1, 4, 4, 13}) {
      ASSERT_FALSE(relocation.ShouldRelocate(number));
    }
  }
}

// Hot values are moved only if they belong to another path.
TEST_F(BlobRelocationTest, HotFilesCountAsBeingAtHome) {
  AddFile(3, 1);
  AddFile(5, 0, HotMark::WithHome(1));
  BlobRelocation at_home(files_, 1);
  EXPECT_TRUE(at_home.IsEmpty());
  BlobRelocation elsewhere(files_, 0);
  EXPECT_TRUE(elsewhere.ShouldRelocate(3));
  EXPECT_TRUE(elsewhere.ShouldRelocate(5));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
