//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/merged_value_options.h"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "options/cf_options.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/convenience.h"
#include "rocksdb/table.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string Serialize(const ColumnFamilyOptions& options) {
  std::string text;
  EXPECT_OK(GetStringFromColumnFamilyOptions(ConfigOptions(), options, &text));
  return text;
}

ColumnFamilyOptions WithCache() {
  ColumnFamilyOptions options;
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  options.enable_merged_value_cache = true;
  return options;
}

}  // namespace

TEST(MergedValueOptionsTest, DefaultsAreNotWritten) {
  EXPECT_EQ(Serialize(ColumnFamilyOptions()).find("merged_value"),
            std::string::npos);
}

TEST(MergedValueOptionsTest, StringRoundTripKeepsTheOptions) {
  ColumnFamilyOptions options = WithCache();
  options.merged_value_cache_size = uint64_t{5} << 30;
  const std::string text = Serialize(options);
  EXPECT_NE(text.find("enable_merged_value_cache=true;"), std::string::npos)
      << text;
  EXPECT_NE(text.find("merged_value_cache_size=5368709120;"), std::string::npos)
      << text;
  ConfigOptions config;
  config.ignore_unknown_options = false;
  ColumnFamilyOptions read;
  ASSERT_OK(GetColumnFamilyOptionsFromString(config, ColumnFamilyOptions(),
                                             text, &read));
  EXPECT_TRUE(read.enable_merged_value_cache);
  EXPECT_EQ(read.merged_value_cache_size, options.merged_value_cache_size);
  EXPECT_TRUE(GetColumnFamilyOptionsFromString(config, ColumnFamilyOptions(),
                                               "merged_value_cache_size=plenty",
                                               &read)
                  .IsInvalidArgument());
}

TEST(MergedValueOptionsTest, DefaultCacheSizeDependsOnTheBlockCache) {
  ColumnFamilyOptions options = WithCache();
  const auto size = [&] {
    return MergedValueCacheSize(MutableCFOptions(options));
  };
  for (const uint64_t automatic : {uint64_t{0}, UINT64_MAX}) {
    options.merged_value_cache_size = automatic;
    BlockBasedTableOptions table;
    table.block_cache = NewLRUCache(size_t{64} << 20);
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    EXPECT_EQ(size(), size_t{4} << 20);
    table.block_cache = NewLRUCache(size_t{1} << 20);
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    EXPECT_EQ(size(), size_t{1} << 20);
    table.block_cache = nullptr;
    table.no_block_cache = true;
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    EXPECT_EQ(size(), size_t{8} << 20);
    options.table_factory.reset(NewPlainTableFactory());
    EXPECT_EQ(size(), size_t{8} << 20);
  }
  options.merged_value_cache_size = 12345;
  EXPECT_EQ(size(), 12345);
}

TEST(MergedValueOptionsTest, ConflictingOptionsAreRefused) {
  // Without the cache every option is accepted.
  ColumnFamilyOptions off;
  off.inplace_update_support = true;
  EXPECT_OK(ValidateMergedValueOptions(DBOptions(), off));

  EXPECT_OK(ValidateMergedValueOptions(DBOptions(), WithCache()));
  ColumnFamilyOptions refused = WithCache();
  refused.merge_operator = nullptr;
  EXPECT_TRUE(
      ValidateMergedValueOptions(DBOptions(), refused).IsInvalidArgument());
  refused = WithCache();
  refused.inplace_update_support = true;
  EXPECT_TRUE(
      ValidateMergedValueOptions(DBOptions(), refused).IsNotSupported());
  refused = WithCache();
  refused.experimental_mempurge_threshold = 0.5;
  EXPECT_TRUE(
      ValidateMergedValueOptions(DBOptions(), refused).IsNotSupported());
  refused = WithCache();
  refused.comparator = test::BytewiseComparatorWithU64TsWrapper();
  EXPECT_TRUE(
      ValidateMergedValueOptions(DBOptions(), refused).IsNotSupported());
  refused.comparator = test::Uint64Comparator();
  EXPECT_TRUE(
      ValidateMergedValueOptions(DBOptions(), refused).IsNotSupported());
  DBOptions db_options;
  db_options.unordered_write = true;
  EXPECT_TRUE(
      ValidateMergedValueOptions(db_options, WithCache()).IsNotSupported());
}

#ifndef NDEBUG
TEST(MergedValueOptionsTest, EnvironmentForcesTheCache) {
  const char* const kVariable = "STRATA_FORCE_MERGED_VALUES";
  const char* const value = std::getenv(kVariable);
  const std::optional<std::string> before =
      value == nullptr ? std::nullopt : std::optional<std::string>(value);
  ASSERT_EQ(unsetenv(kVariable), 0);

  ColumnFamilyOptions options = WithCache();
  options.enable_merged_value_cache = false;
  ForceMergedValueCacheForTests(DBOptions(), &options);
  EXPECT_FALSE(options.enable_merged_value_cache);
  ASSERT_EQ(setenv(kVariable, "5000000", /*overwrite=*/1), 0);
  // Options that cannot be combined with the cache are left alone.
  ColumnFamilyOptions no_operator;
  ForceMergedValueCacheForTests(DBOptions(), &no_operator);
  EXPECT_FALSE(no_operator.enable_merged_value_cache);
  ForceMergedValueCacheForTests(DBOptions(), &options);
  EXPECT_TRUE(options.enable_merged_value_cache);
  EXPECT_EQ(options.merged_value_cache_size, 5000000);

  if (before.has_value()) {
    ASSERT_EQ(setenv(kVariable, before->c_str(), /*overwrite=*/1), 0);
  } else {
    ASSERT_EQ(unsetenv(kVariable), 0);
  }
}
#endif  // !NDEBUG

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
