//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifndef GFLAGS
#include <cstdio>

int main() {
  fprintf(stderr, "Without gflags there are no flags\n");
  return 0;
}
#else

#include <string>

#include "options/strata/option_text.h"
#include "options/strata/option_values_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/options.h"
#include "test_util/testharness.h"
#include "tools/strata/option_flags.h"

// This program has the flags as db_bench and db_stress have them.
#define STRATA_FLAG_HELP(help, bench_help) help bench_help
STRATA_DEFINE_OPTION_FLAGS
#undef STRATA_FLAG_HELP

namespace ROCKSDB_NAMESPACE {

namespace {

void ApplyFlags(Options* options) { STRATA_APPLY_OPTION_FLAGS }

// Calls CHECK(name) for each option that has a flag.
#define STRATA_IF_FLAG_bool(CHECK, name) CHECK(name)
#define STRATA_IF_FLAG_int32(CHECK, name) CHECK(name)
#define STRATA_IF_FLAG_uint32(CHECK, name) CHECK(name)
#define STRATA_IF_FLAG_uint64(CHECK, name) CHECK(name)
#define STRATA_IF_FLAG_size(CHECK, name) CHECK(name)
#define STRATA_IF_FLAG_double(CHECK, name) CHECK(name)
#define STRATA_IF_FLAG_path_ids(CHECK, name)
#define STRATA_IF_FLAG_prices(CHECK, name)

}  // namespace

class OptionFlagsTest : public testing::Test {
 protected:
  // Returns options with another value than the default for each option of
  // Strata's, as an OPTIONS file may have them.
  static Options OptionsOfFile() {
    Options options;
#define STRATA_SET(kind, name, ...) \
  options.name = OtherOptionValue(Options().name);
    STRATA_IMMUTABLE_CF_OPTIONS(STRATA_SET)
    STRATA_MUTABLE_CF_OPTIONS(STRATA_SET)
    STRATA_IMMUTABLE_DB_OPTIONS(STRATA_SET)
#undef STRATA_SET
    return options;
  }
  static void Give(const char* name, const std::string& value) {
    ASSERT_NE("", GFLAGS_NAMESPACE::SetCommandLineOption(name, value.c_str()))
        << name << "=" << value;
  }

 private:
  // Takes what a test has set back.
  const GFLAGS_NAMESPACE::FlagSaver saver_;
};

TEST_F(OptionFlagsTest, OptionsOfAFileStayWithoutFlags) {
  const Options of_file = OptionsOfFile();
  Options options = of_file;
  // The second time is another open of the same program.
  for (int i = 0; i < 2; ++i) {
    ApplyFlags(&options);
#define STRATA_CHECK(kind, name, ...) \
  EXPECT_EQ(options.name, of_file.name) << #name;
    STRATA_IMMUTABLE_CF_OPTIONS(STRATA_CHECK)
    STRATA_MUTABLE_CF_OPTIONS(STRATA_CHECK)
    STRATA_IMMUTABLE_DB_OPTIONS(STRATA_CHECK)
#undef STRATA_CHECK
    // The program sees in its flags what the DB has.
#define STRATA_CHECK_FLAG(name) EXPECT_EQ(FLAGS_##name, of_file.name) << #name;
#define STRATA_CHECK(kind, name, ...) \
  STRATA_IF_FLAG_##kind(STRATA_CHECK_FLAG, name)
    STRATA_IMMUTABLE_CF_OPTIONS(STRATA_CHECK)
    STRATA_MUTABLE_CF_OPTIONS(STRATA_CHECK)
    STRATA_IMMUTABLE_DB_OPTIONS(STRATA_CHECK)
#undef STRATA_CHECK
#undef STRATA_CHECK_FLAG
  }
}

TEST_F(OptionFlagsTest, EachFlagThatIsGivenWins) {
  const Options defaults;
  // Also if its value is the default.
#define STRATA_GIVE(name) Give(#name, OptionText(defaults.name));
#define STRATA_GIVE_FLAG(kind, name, ...) \
  STRATA_IF_FLAG_##kind(STRATA_GIVE, name)
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_GIVE_FLAG)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_GIVE_FLAG)
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_GIVE_FLAG)
#undef STRATA_GIVE_FLAG
#undef STRATA_GIVE
  Options options = OptionsOfFile();
  ApplyFlags(&options);
#define STRATA_CHECK_OPTION(name) \
  EXPECT_EQ(options.name, defaults.name) << #name;
#define STRATA_CHECK(kind, name, ...) \
  STRATA_IF_FLAG_##kind(STRATA_CHECK_OPTION, name)
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_CHECK)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_CHECK)
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_CHECK)
#undef STRATA_CHECK
#undef STRATA_CHECK_OPTION
}

TEST_F(OptionFlagsTest, OneFlagChangesOneOption) {
  Give("blob_gc_space_amp_limit", "1.75");
  Give("max_write_groups_per_leader", "5");
  Options options = OptionsOfFile();
  ApplyFlags(&options);
  Options expected = OptionsOfFile();
  expected.blob_gc_space_amp_limit = 1.75;
  expected.max_write_groups_per_leader = 5;
#define STRATA_CHECK(kind, name, ...) \
  EXPECT_EQ(options.name, expected.name) << #name;
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_CHECK)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_CHECK)
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_CHECK)
#undef STRATA_CHECK
}

TEST_F(OptionFlagsTest, WithoutFlagsAndFileOptionsHaveTheirDefaults) {
  const Options defaults;
  Options options;
  ApplyFlags(&options);
#define STRATA_CHECK(kind, name, ...) \
  EXPECT_EQ(options.name, defaults.name) << #name;
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_CHECK)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_CHECK)
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_CHECK)
#undef STRATA_CHECK
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

#endif  // GFLAGS
