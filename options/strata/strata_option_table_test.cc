//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/strata_option_table.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "options/cf_options.h"
#include "options/db_options.h"
#include "options/options_helper.h"
#include "options/strata/option_values_test_util.h"
#include "options/strata/own_option_lines.h"
#include "options/strata/strata_cf_options.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Keeps the lines of LOG.
class LinesLogger : public Logger {
 public:
  using Logger::Logv;
  void Logv(const char* format, va_list ap) override {
    char line[512];
    vsnprintf(line, sizeof(line), format, ap);
    lines_.emplace_back(line);
  }
  // Returns the lines since the last call.
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

// Fails if the option has no name in OPTIONS files, or a value in a string does
// not become a value of the struct.
#define STRATA_CHECK_STRING(kind, name, ...)                          \
  {                                                                   \
    EXPECT_TRUE(OwnOptionLines::IsOwn(#name)) << #name;               \
    EXPECT_EQ(parsed.name, OtherOptionValue(defaults.name)) << #name; \
    EXPECT_NE(text.find(#name "=" + OptionText(parsed.name) + ";"),   \
              std::string::npos)                                      \
        << #name << " in " << text;                                   \
    EXPECT_EQ(empty.find(#name), std::string::npos) << #name;         \
  }

#define STRATA_CHECK_BACK(kind, name, ...) \
  EXPECT_EQ(back.name, parsed.name) << #name;

}  // namespace

TEST(StrataOptionTableTest, StringsHaveEachColumnFamilyOption) {
  const ColumnFamilyOptions defaults;
  ColumnFamilyOptions parsed;
  ASSERT_OK(GetColumnFamilyOptionsFromString(ConfigOptions(), defaults,
                                             OtherStrataCFOptions(), &parsed));
  std::string text;
  ASSERT_OK(GetStringFromColumnFamilyOptions(ConfigOptions(), parsed, &text));
  std::string empty;
  ASSERT_OK(
      GetStringFromColumnFamilyOptions(ConfigOptions(), defaults, &empty));
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_CHECK_STRING)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_CHECK_STRING)

  ColumnFamilyOptions back;
  UpdateColumnFamilyOptions(ImmutableCFOptions(parsed), &back);
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_CHECK_BACK)
  UpdateColumnFamilyOptions(MutableCFOptions(parsed), &back);
  STRATA_MUTABLE_CF_OPTIONS(STRATA_CHECK_BACK)
}

TEST(StrataOptionTableTest, StringsHaveEachDBOption) {
  const DBOptions defaults;
  DBOptions parsed;
  ASSERT_OK(GetDBOptionsFromString(ConfigOptions(), defaults,
                                   OtherStrataDBOptions(), &parsed));
  std::string text;
  ASSERT_OK(GetStringFromDBOptions(ConfigOptions(), parsed, &text));
  std::string empty;
  ASSERT_OK(GetStringFromDBOptions(ConfigOptions(), defaults, &empty));
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_CHECK_STRING)

  const DBOptions back =
      BuildDBOptions(ImmutableDBOptions(parsed), MutableDBOptions(parsed));
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_CHECK_BACK)
}

#undef STRATA_CHECK_STRING
#undef STRATA_CHECK_BACK

TEST(StrataOptionTableTest, ValuesOutOfRangeAreRefused) {
  ASSERT_OK(ValidateStrataRanges(ColumnFamilyOptions()));
  ASSERT_OK(ValidateStrataRanges(DBOptions()));
  struct Case {
    const char* message;
    std::function<Status(double)> validate;
    std::vector<double> valid;
    std::vector<double> invalid;
  };
  // Returns the validation of an option of a column family without features.
  const auto of_family = [](auto member) {
    return [member](double value) {
      ColumnFamilyOptions options;
      using T = std::remove_reference_t<decltype(options.*member)>;
      options.*member = static_cast<T>(value);
      return ValidateStrataRanges(options);
    };
  };
  const auto of_db = [](auto member) {
    return [member](double value) {
      DBOptions options;
      using T = std::remove_reference_t<decltype(options.*member)>;
      options.*member = static_cast<T>(value);
      return ValidateStrataRanges(options);
    };
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Case> cases = {
      {"delta_bucket_size must be from 4096 to 1073741824",
       of_family(&StrataColumnFamilyOptions::delta_bucket_size),
       {4096, 1 << 30},
       {0, 4095, (1 << 30) + 1.0}},
      {"delta_max_buckets must be from 4 to 1048576",
       of_family(&StrataColumnFamilyOptions::delta_max_buckets),
       {4, 1 << 20},
       {0, 3, (1 << 20) + 1}},
      {"delta_sorted_path_id must be from -1 to 3",
       of_family(&StrataColumnFamilyOptions::delta_sorted_path_id),
       {-1, 0, 3},
       {-2, 4}},
      {"delta_bucket_split_ratio must be from 0.1 to 1",
       of_family(&StrataColumnFamilyOptions::delta_bucket_split_ratio),
       {0.1, 1},
       {0, 0.09, 1.01, nan}},
      {"blob_gc_space_amp_limit must be 0 or from 1.01 to 1000",
       of_family(&StrataColumnFamilyOptions::blob_gc_space_amp_limit),
       {0, 1.01, 1000},
       {-1, 1, 1001, nan}},
      {"blob_scan_sort_budget must be from 0 to 1000",
       of_family(&StrataColumnFamilyOptions::blob_scan_sort_budget),
       {0, 0.1, 1000},
       {-1, 1001, nan}},
      {"blob_hot_path_id must be from 0 to 3",
       of_family(&StrataColumnFamilyOptions::blob_hot_path_id),
       {0, 3},
       {4, 1000}},
      {"max_write_groups_per_leader must be from 1 to 1024",
       of_db(&StrataDBOptions::max_write_groups_per_leader),
       {1, 1024},
       {0, 1025}},
      {"wal_mmap_buffer_size must be 0 or from 4096 to 67108864",
       of_db(&StrataDBOptions::wal_mmap_buffer_size),
       {0, 4096, 64 << 20},
       {1, 4095, (64 << 20) + 1}},
  };
  for (const Case& c : cases) {
    for (const double value : c.valid) {
      EXPECT_OK(c.validate(value)) << c.message << ": " << value;
    }
    for (const double value : c.invalid) {
      const Status s = c.validate(value);
      EXPECT_TRUE(s.IsInvalidArgument()) << c.message << ": " << value;
      EXPECT_NE(s.ToString().find(c.message), std::string::npos)
          << s.ToString();
    }
  }
}

TEST(StrataOptionTableTest, LogHasTheOptionsOfFeaturesThatAreOn) {
  LinesLogger log;
  DumpStrataOptions(&log, ColumnFamilyOptions());
  DumpStrataOptions(&log, MutableCFOptions(ColumnFamilyOptions()));
  EXPECT_EQ(log.Take(), std::vector<std::string>());

  ColumnFamilyOptions options;
  options.enable_blob_address_map = true;
  options.blob_gc_space_amp_limit = 1.5;
  DumpStrataOptions(&log, options);
  EXPECT_EQ(log.Take(),
            (std::vector<std::string>{
                "                Options.enable_blob_address_map: true",
                "                      Options.enable_lsm_bypass: true",
                "                  Options.save_blob_address_map: true",
                "                Options.blob_gc_space_amp_limit: 1.5",
                "                  Options.blob_scan_sort_budget: 1",
                "                         Options.blob_hot_bytes: 0",
                "                       Options.blob_hot_path_id: 0"}));
  DumpStrataOptions(&log, MutableCFOptions(options));
  const std::vector<std::string> changed = log.Take();
  ASSERT_EQ(changed.size(), 1U);
  // The position in the source text comes before it.
  EXPECT_TRUE(Slice(changed[0])
                  .ends_with("] " + std::string(18, ' ') +
                             "blob_gc_space_amp_limit: 1.5"))
      << changed[0];

  StrataImmutableDBOptions(StrataDBOptions()).DumpStrata(&log);
  EXPECT_EQ(log.Take(),
            (std::vector<std::string>{
                "            Options.max_write_groups_per_leader: 1",
                "                   Options.wal_mmap_buffer_size: 0"}));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
