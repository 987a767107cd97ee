//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/delta_options.h"

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "options/cf_options.h"
#include "options/options_helper.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
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

ColumnFamilyOptions WithDeltas() {
  ColumnFamilyOptions options;
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  options.enable_delta_separation = true;
  return options;
}

// Keys have timestamps, and keys with different bytes are never equal.
class DistinctTimestampsComparator : public Comparator {
 public:
  DistinctTimestampsComparator() : Comparator(sizeof(uint64_t)) {}

  const char* Name() const override { return "DistinctTimestampsComparator"; }
  int Compare(const Slice& a, const Slice& b) const override {
    return test::BytewiseComparatorWithU64TsWrapper()->Compare(a, b);
  }
  void FindShortestSeparator(std::string* /*start*/,
                             const Slice& /*limit*/) const override {}
  void FindShortSuccessor(std::string* /*key*/) const override {}
  bool CanKeysWithDifferentByteContentsBeEqual() const override {
    return false;
  }
};

}  // namespace

TEST(DeltaOptionsTest, DefaultsAreNotWritten) {
  EXPECT_EQ(Serialize(ColumnFamilyOptions()).find("delta_"), std::string::npos);
}

TEST(DeltaOptionsTest, StringRoundTripKeepsTheOptions) {
  ColumnFamilyOptions options = WithDeltas();
  options.delta_bucket_size = 12345;
  options.delta_max_buckets = 678;
  options.delta_bucket_split_ratio = 0.3;
  options.delta_sorted_path_id = 2;
  options.delta_cache_size = 0;
  const std::string text = Serialize(options);
  for (const char* expected :
       {"enable_delta_separation=true;", "delta_bucket_size=12345;",
        "delta_max_buckets=678;", "delta_bucket_split_ratio=0.3;",
        "delta_sorted_path_id=2;", "delta_cache_size=0;"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << text;
  }
  ConfigOptions config;
  config.ignore_unknown_options = false;
  ColumnFamilyOptions read;
  ASSERT_OK(GetColumnFamilyOptionsFromString(config, ColumnFamilyOptions(),
                                             text, &read));
  EXPECT_TRUE(read.enable_delta_separation);
  EXPECT_EQ(read.delta_bucket_size, 12345);
  EXPECT_EQ(read.delta_max_buckets, 678);
  EXPECT_EQ(read.delta_bucket_split_ratio, 0.3);
  EXPECT_EQ(read.delta_sorted_path_id, 2);
  EXPECT_EQ(read.delta_cache_size, 0);
  for (const char* wrong :
       {"delta_bucket_size=large", "delta_max_buckets=many",
        "delta_bucket_split_ratio=half", "enable_delta_separation=perhaps",
        "delta_sorted_path_id=last", "delta_cache_size=plenty"}) {
    EXPECT_TRUE(GetColumnFamilyOptionsFromString(config, ColumnFamilyOptions(),
                                                 wrong, &read)
                    .IsInvalidArgument())
        << wrong;
  }
}

TEST(DeltaOptionsTest, RemovedOptionIsReadAndNotWritten) {
  ConfigOptions config;
  config.ignore_unknown_options = false;
  ColumnFamilyOptions read;
  ASSERT_OK(GetColumnFamilyOptionsFromString(config, WithDeltas(),
                                             "delta_parallel_reads=4", &read));
  EXPECT_EQ(Serialize(read), Serialize(WithDeltas()));
}

TEST(DeltaOptionsTest, ConversionsKeepTheOptions) {
  ColumnFamilyOptions options = WithDeltas();
  options.delta_bucket_size = 12345;
  options.delta_max_buckets = 678;
  options.delta_bucket_split_ratio = 0.3;
  options.delta_sorted_path_id = 1;
  options.delta_cache_size = 4321;
  const ColumnFamilyOptions copy =
      ColumnFamilyOptions(Options(DBOptions(), options));
  EXPECT_EQ(Serialize(copy), Serialize(options));

  const ColumnFamilyOptions built = BuildColumnFamilyOptions(
      options, MutableCFOptions(ColumnFamilyOptions()));
  EXPECT_TRUE(built.enable_delta_separation);
  EXPECT_EQ(built.delta_bucket_size, 12345);
  EXPECT_EQ(built.delta_max_buckets, ColumnFamilyOptions().delta_max_buckets);
  EXPECT_EQ(built.delta_bucket_split_ratio,
            ColumnFamilyOptions().delta_bucket_split_ratio);
  EXPECT_EQ(built.delta_sorted_path_id, -1);
  EXPECT_EQ(built.delta_cache_size, UINT64_MAX);
}

TEST(DeltaOptionsTest, DefaultCacheSizeDependsOnTheBlockCache) {
  ColumnFamilyOptions options = WithDeltas();
  const auto size = [&] {
    return DeltaCacheSize(ImmutableCFOptions(options),
                          MutableCFOptions(options));
  };
  BlockBasedTableOptions table;
  table.block_cache = NewLRUCache(size_t{64} << 20);
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  EXPECT_EQ(size(), size_t{2} << 20);
  using Sizes = std::vector<std::pair<size_t, size_t>>;
  for (const auto& [capacity, expected] : Sizes{
           {size_t{8} << 20, size_t{256} << 10}, {(size_t{8} << 20) - 1, 0}}) {
    table.block_cache = NewLRUCache(capacity);
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    EXPECT_EQ(size(), expected);
  }
  table.block_cache = nullptr;
  table.no_block_cache = true;
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  EXPECT_EQ(size(), size_t{4} << 20);
  options.enable_merged_value_cache = true;
  EXPECT_EQ(size(), 0);
  for (const uint64_t set : {0, 1, 12345}) {
    options.delta_cache_size = set;
    for (const bool is_beside_values : {false, true}) {
      options.enable_merged_value_cache = is_beside_values;
      EXPECT_EQ(size(), set);
    }
  }
}

TEST(DeltaOptionsTest, ConflictingOptionsAreRefused) {
  EXPECT_OK(ValidateDeltaOptions(DBOptions(), WithDeltas()));
  ColumnFamilyOptions no_operator = WithDeltas();
  no_operator.merge_operator = nullptr;
  EXPECT_TRUE(
      ValidateDeltaOptions(DBOptions(), no_operator).IsInvalidArgument());

  struct Case {
    const char* what;
    std::function<void(DBOptions*, ColumnFamilyOptions*)> set;
    // True if the option is also refused while there are delta files and delta
    // separation is off.
    bool of_files;
  };
  const std::vector<Case> cases = {
      {"mempurge",
       [](auto*, auto* cf) { cf->experimental_mempurge_threshold = 0.5; },
       true},
      {"FIFO",
       [](auto*, auto* cf) { cf->compaction_style = kCompactionStyleFIFO; },
       true},
      {"ingest behind", [](auto* db, auto*) { db->allow_ingest_behind = true; },
       true},
      {"ingest behind",
       [](auto*, auto* cf) { cf->cf_allow_ingest_behind = true; }, true},
      {"table format",
       [](auto*, auto* cf) { cf->table_factory.reset(NewPlainTableFactory()); },
       true},
      {"inplace_update_support",
       [](auto*, auto* cf) { cf->inplace_update_support = true; }, false},
      {"timestamps",
       [](auto*, auto* cf) {
         cf->comparator = test::BytewiseComparatorWithU64TsWrapper();
       },
       false},
      {"timestamps",
       [](auto*, auto* cf) {
         static const DistinctTimestampsComparator comparator;
         cf->comparator = &comparator;
       },
       false},
      {"different bytes",
       [](auto*, auto* cf) { cf->comparator = test::Uint64Comparator(); },
       false},
  };
  for (const Case& c : cases) {
    DBOptions db_options;
    ColumnFamilyOptions options = WithDeltas();
    c.set(&db_options, &options);
    const Status s = ValidateDeltaOptions(db_options, options);
    EXPECT_TRUE(s.IsNotSupported()) << c.what;
    EXPECT_NE(s.ToString().find("enable_delta_separation"), std::string::npos);
    // The message names the option at fault, not another one that is refused
    // for the same reason.
    EXPECT_NE(s.ToString().find(c.what), std::string::npos) << s.ToString();
    // Without delta separation every option is accepted.
    options.enable_delta_separation = false;
    EXPECT_OK(ValidateDeltaOptions(db_options, options));
    EXPECT_EQ(c.of_files,
              ValidateOptionsOfDeltas(db_options, options).IsNotSupported())
        << c.what;
  }
  EXPECT_OK(ValidateOptionsOfDeltas(DBOptions(), ColumnFamilyOptions()));
}

TEST(DeltaOptionsTest, SecondariesAndTransactionsAreRefused) {
  const std::vector<ColumnFamilyDescriptor> without = {
      {"default", ColumnFamilyOptions()}};
  const std::vector<ColumnFamilyDescriptor> with = {
      {"default", ColumnFamilyOptions()}, {"deltas", WithDeltas()}};
  for (const auto refuse : {RefuseDeltaSeparationOfSecondary,
                            RefuseDeltaSeparationOfTransactions}) {
    EXPECT_OK(refuse(without));
    const Status s = refuse(with);
    EXPECT_TRUE(s.IsNotSupported());
    EXPECT_NE(s.ToString().find("column family deltas"), std::string::npos);
  }
  EXPECT_TRUE(DeltasOfTransactions("deltas").IsNotSupported());
}

#ifndef NDEBUG
TEST(DeltaOptionsTest, EnvironmentForcesDeltaSeparation) {
  const char* const kVariable = "STRATA_FORCE_DELTA_SEPARATION";
  const char* const value = std::getenv(kVariable);
  const std::optional<std::string> before =
      value == nullptr ? std::nullopt : std::optional<std::string>(value);
  ASSERT_EQ(unsetenv(kVariable), 0);

  ColumnFamilyOptions options = WithDeltas();
  options.enable_delta_separation = false;
  ForceDeltaSeparationForTests(DBOptions(), &options);
  EXPECT_FALSE(options.enable_delta_separation);
  ASSERT_EQ(setenv(kVariable, "0", /*overwrite=*/1), 0);
  // Options that cannot be combined with delta separation are left alone.
  ColumnFamilyOptions no_operator;
  ForceDeltaSeparationForTests(DBOptions(), &no_operator);
  EXPECT_FALSE(no_operator.enable_delta_separation);
  ColumnFamilyOptions with_default = options;
  ForceDeltaSeparationForTests(DBOptions(), &with_default);
  EXPECT_TRUE(with_default.enable_delta_separation);
  EXPECT_EQ(with_default.delta_bucket_size, 256 << 10);
  ASSERT_EQ(setenv(kVariable, "8192", /*overwrite=*/1), 0);
  ForceDeltaSeparationForTests(DBOptions(), &options);
  EXPECT_TRUE(options.enable_delta_separation);
  EXPECT_EQ(options.delta_bucket_size, 8192);

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
