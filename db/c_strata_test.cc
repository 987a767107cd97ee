//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <cstdint>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/c.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class CStrataTest : public testing::Test {
 protected:
  CStrataTest() : options_(rocksdb_options_create()) {
    paths_[0] = rocksdb_dbpath_create("/fast", 5);
    paths_[1] = rocksdb_dbpath_create("/slow", 7);
  }
  ~CStrataTest() override {
    rocksdb_dbpath_destroy(paths_[0]);
    rocksdb_dbpath_destroy(paths_[1]);
    rocksdb_options_destroy(options_);
  }

  const rocksdb_dbpath_t** Paths() {
    return const_cast<const rocksdb_dbpath_t**>(paths_);
  }

  std::string Path(size_t i, uint64_t* target_size) {
    char* path = rocksdb_options_get_cf_path(options_, i, target_size);
    const std::string result = path == nullptr ? "(null)" : path;
    rocksdb_free(path);
    return result;
  }

  rocksdb_options_t* options_;
  rocksdb_dbpath_t* paths_[2];
};

TEST_F(CStrataTest, Layout) {
  EXPECT_EQ(rocksdb_options_get_level_sst_path_ids(options_, nullptr, 0), 0);
  const uint32_t sst[] = {0, 1, 2};
  const uint32_t blob[] = {3};
  rocksdb_options_set_level_sst_path_ids(options_, sst, 3);
  rocksdb_options_set_level_blob_path_ids(options_, blob, 1);

  uint32_t ids[4] = {9, 9, 9, 9};
  EXPECT_EQ(rocksdb_options_get_level_sst_path_ids(options_, ids, 2), 3);
  EXPECT_EQ(ids[0], 0);
  EXPECT_EQ(ids[1], 1);
  EXPECT_EQ(ids[2], 9);  // beyond max_ids
  EXPECT_EQ(rocksdb_options_get_level_sst_path_ids(options_, ids, 4), 3);
  EXPECT_EQ(ids[2], 2);
  EXPECT_EQ(ids[3], 9);
  EXPECT_EQ(rocksdb_options_get_level_blob_path_ids(options_, ids, 4), 1);
  EXPECT_EQ(ids[0], 3);

  rocksdb_options_set_level_sst_path_ids(options_, nullptr, 0);
  EXPECT_EQ(rocksdb_options_get_level_sst_path_ids(options_, ids, 4), 0);
  EXPECT_EQ(rocksdb_options_get_level_blob_path_ids(options_, ids, 4), 1);
}

TEST_F(CStrataTest, AddressMap) {
  EXPECT_EQ(rocksdb_options_get_enable_blob_address_map(options_), 0);
  EXPECT_EQ(rocksdb_options_get_enable_lsm_bypass(options_), 1);
  rocksdb_options_set_enable_blob_address_map(options_, 1);
  rocksdb_options_set_enable_lsm_bypass(options_, 0);
  EXPECT_EQ(rocksdb_options_get_enable_blob_address_map(options_), 1);
  EXPECT_EQ(rocksdb_options_get_enable_lsm_bypass(options_), 0);
  rocksdb_options_set_enable_blob_address_map(options_, 0);
  rocksdb_options_set_enable_lsm_bypass(options_, 1);
  EXPECT_EQ(rocksdb_options_get_enable_blob_address_map(options_), 0);
  EXPECT_EQ(rocksdb_options_get_enable_lsm_bypass(options_), 1);

  EXPECT_EQ(rocksdb_options_get_blob_gc_space_amp_limit(options_), 1.2);
  rocksdb_options_set_blob_gc_space_amp_limit(options_, 1.5);
  EXPECT_EQ(rocksdb_options_get_blob_gc_space_amp_limit(options_), 1.5);
  EXPECT_FALSE(rocksdb_options_get_enable_merged_value_cache(options_));
  rocksdb_options_set_enable_merged_value_cache(options_, 1);
  EXPECT_TRUE(rocksdb_options_get_enable_merged_value_cache(options_));
  rocksdb_options_set_enable_merged_value_cache(options_, 0);
  EXPECT_EQ(rocksdb_options_get_merged_value_cache_size(options_), 0);
  rocksdb_options_set_merged_value_cache_size(options_, 1 << 20);
  EXPECT_EQ(rocksdb_options_get_merged_value_cache_size(options_), 1 << 20);

  rocksdb_readoptions_t* const read_options = rocksdb_readoptions_create();
  EXPECT_EQ(rocksdb_readoptions_get_blob_prefetch_count(read_options),
            SIZE_MAX);
  rocksdb_readoptions_set_blob_prefetch_count(read_options, 7);
  EXPECT_EQ(rocksdb_readoptions_get_blob_prefetch_count(read_options), 7);
  rocksdb_readoptions_destroy(read_options);
}

TEST_F(CStrataTest, DeltaSeparation) {
  EXPECT_EQ(rocksdb_options_get_enable_delta_separation(options_), 0);
  rocksdb_options_set_enable_delta_separation(options_, 1);
  EXPECT_EQ(rocksdb_options_get_enable_delta_separation(options_), 1);
  rocksdb_options_set_enable_delta_separation(options_, 0);
  EXPECT_EQ(rocksdb_options_get_enable_delta_separation(options_), 0);
  EXPECT_EQ(rocksdb_options_get_delta_bucket_size(options_), 256 << 10);
  rocksdb_options_set_delta_bucket_size(options_, 12345);
  EXPECT_EQ(rocksdb_options_get_delta_bucket_size(options_), 12345);
  EXPECT_EQ(rocksdb_options_get_delta_max_buckets(options_), 32768);
  rocksdb_options_set_delta_max_buckets(options_, 678);
  EXPECT_EQ(rocksdb_options_get_delta_max_buckets(options_), 678);
  EXPECT_EQ(rocksdb_options_get_delta_bucket_split_ratio(options_), 0.8);
  rocksdb_options_set_delta_bucket_split_ratio(options_, 0.5);
  EXPECT_EQ(rocksdb_options_get_delta_bucket_split_ratio(options_), 0.5);
  EXPECT_EQ(rocksdb_options_get_delta_cache_size(options_), UINT64_MAX);
  rocksdb_options_set_delta_cache_size(options_, 0);
  EXPECT_EQ(rocksdb_options_get_delta_cache_size(options_), 0);
  EXPECT_EQ(rocksdb_options_get_delta_parallel_reads(options_), 0);
  rocksdb_options_set_delta_parallel_reads(options_, 4);
  EXPECT_EQ(rocksdb_options_get_delta_parallel_reads(options_), 4);

  EXPECT_EQ(rocksdb_options_get_max_write_groups_per_leader(options_), 1);
  rocksdb_options_set_max_write_groups_per_leader(options_, 64);
  EXPECT_EQ(rocksdb_options_get_max_write_groups_per_leader(options_), 64);
  EXPECT_EQ(rocksdb_options_get_wal_mmap_buffer_size(options_), 0);
  rocksdb_options_set_wal_mmap_buffer_size(options_, 65536);
  EXPECT_EQ(rocksdb_options_get_wal_mmap_buffer_size(options_), 65536);
}

TEST_F(CStrataTest, CollectBlobGarbage) {
  const std::string path = test::PerThreadDBPath("c_strata_test");
  char* error = nullptr;
  rocksdb_destroy_db(options_, path.c_str(), &error);
  ASSERT_EQ(error, nullptr);
  rocksdb_options_set_create_if_missing(options_, 1);
  rocksdb_options_set_enable_blob_files(options_, 1);
  rocksdb_options_set_enable_blob_address_map(options_, 1);
  rocksdb_t* const db = rocksdb_open(options_, path.c_str(), &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_collect_blob_garbage_cf(db, nullptr, 1.0, 1, &error);
  EXPECT_EQ(error, nullptr) << error;
  rocksdb_column_family_handle_t* const family =
      rocksdb_get_default_column_family_handle(db);
  rocksdb_collect_blob_garbage_cf(db, family, 0.5, 0, &error);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("space_amp_limit"), std::string::npos);
  rocksdb_free(error);
  rocksdb_column_family_handle_destroy(family);
  rocksdb_close(db);
}

TEST_F(CStrataTest, CfPaths) {
  EXPECT_EQ(rocksdb_options_get_num_cf_paths(options_), 0);
  EXPECT_EQ(rocksdb_options_get_cf_path(options_, 0, nullptr), nullptr);
  rocksdb_options_set_cf_paths(options_, Paths(), 2);
  ASSERT_EQ(rocksdb_options_get_num_cf_paths(options_), 2);
  uint64_t target_size = 0;
  EXPECT_EQ(Path(0, nullptr), "/fast");
  EXPECT_EQ(Path(1, &target_size), "/slow");
  EXPECT_EQ(target_size, 7);
  EXPECT_EQ(rocksdb_options_get_cf_path(options_, 2, nullptr), nullptr);
}

TEST_F(CStrataTest, OverrideCfPaths) {
  rocksdb_options_t* plain = rocksdb_options_create();
  rocksdb_options_t* families[] = {plain, options_};
  const uint32_t ids[] = {0, 1};
  rocksdb_options_set_level_sst_path_ids(options_, ids, 2);

  char* error = nullptr;
  rocksdb_options_override_cf_paths(2, families, Paths(), 1, &error);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("level_sst_path_ids"), std::string::npos);
  rocksdb_free(error);
  EXPECT_EQ(rocksdb_options_get_num_cf_paths(options_), 0);

  error = nullptr;
  rocksdb_options_override_cf_paths(2, families, Paths(), 2, &error);
  ASSERT_EQ(error, nullptr);
  EXPECT_EQ(rocksdb_options_get_num_cf_paths(options_), 2);
  EXPECT_EQ(rocksdb_options_get_num_cf_paths(plain), 0);
  rocksdb_options_destroy(plain);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
