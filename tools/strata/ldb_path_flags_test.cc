//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_path_flags.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using Flags = std::map<std::string, std::string>;

TEST(LdbPathFlagsTest, EachFlagSetsItsOption) {
  const Flags flags = {{"cf_paths", "/a:1g,/b,/c"},
                       {"level_sst_path_ids", "0,1"},
                       {"level_blob_path_ids", "1"},
                       {"delta_sorted_path_id", "2"}};
  ColumnFamilyOptions options;
  LDBCommandExecuteResult result;
  LdbPathFlags(flags).Apply(&options, &result);
  EXPECT_FALSE(result.IsFailed()) << result.ToString();
  EXPECT_EQ(options.cf_paths.size(), 3);
  EXPECT_EQ(options.level_sst_path_ids, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(options.level_blob_path_ids, std::vector<uint32_t>{1});
  EXPECT_EQ(options.delta_sorted_path_id, 2);

  // A flag that is not given changes nothing.
  const Flags none;
  LdbPathFlags(none).Apply(&options, &result);
  EXPECT_FALSE(result.IsFailed()) << result.ToString();
  EXPECT_EQ(options.delta_sorted_path_id, 2);
  const Flags off = {{"delta_sorted_path_id", "-1"}};
  LdbPathFlags(off).Apply(&options, &result);
  EXPECT_FALSE(result.IsFailed()) << result.ToString();
  EXPECT_EQ(options.delta_sorted_path_id, -1);

  std::vector<std::string> names;
  LdbPathFlags::AppendNames(&names);
  std::string help;
  LdbPathFlags::AppendHelp(&help);
  for (const auto& flag : flags) {
    EXPECT_NE(std::find(names.begin(), names.end(), flag.first), names.end())
        << flag.first;
    EXPECT_NE(help.find("--" + flag.first), std::string::npos) << flag.first;
  }
}

TEST(LdbPathFlagsTest, ErrorsNameTheFlag) {
  for (const char* value : {"x", "-2", "4", "0,1", "1 2"}) {
    const Flags flags = {{"delta_sorted_path_id", value}};
    ColumnFamilyOptions options;
    LDBCommandExecuteResult result;
    LdbPathFlags(flags).Apply(&options, &result);
    EXPECT_TRUE(result.IsFailed()) << value;
    EXPECT_NE(result.ToString().find("--delta_sorted_path_id"),
              std::string::npos)
        << result.ToString();
    EXPECT_EQ(options.delta_sorted_path_id, -1);
  }
}

// The flag --cf_paths replaces the paths of each family with an option that
// names them.
TEST(LdbPathFlagsTest, LoadedPathsAreOverridden) {
  ColumnFamilyOptions plain;
  plain.cf_paths = {{"/old0", 1}, {"/old1", 1}};
  ColumnFamilyOptions with_deltas = plain;
  with_deltas.delta_sorted_path_id = 1;
  std::vector<ColumnFamilyDescriptor> families{{"default", plain},
                                               {"deltas", with_deltas}};
  LDBCommandExecuteResult result;
  const Flags flags = {{"cf_paths", "/new0,/new1"}};
  LdbPathFlags(flags).OverrideLoaded(&families, &result);
  EXPECT_FALSE(result.IsFailed()) << result.ToString();
  EXPECT_EQ(families[0].options.cf_paths[1].path, "/old1");
  EXPECT_EQ(families[1].options.cf_paths[1].path, "/new1");
  const Flags fewer = {{"cf_paths", "/new0"}};
  LdbPathFlags(fewer).OverrideLoaded(&families, &result);
  EXPECT_TRUE(result.IsFailed());
}

// The flag --cf_paths is for the families with a layout if there are any, and
// otherwise for the family of the command.
TEST(LdbPathFlagsTest, PathsOfAFamilyWithoutLayoutAreKept) {
  ColumnFamilyOptions plain;
  plain.cf_paths = {{"/old", 1}};
  ColumnFamilyOptions with_layout = plain;
  with_layout.level_sst_path_ids = {0};
  const std::vector<DbPath> before = {{"/before", 1}};
  const auto kept = [&](const ColumnFamilyOptions& other,
                        const ColumnFamilyOptions& mine) {
    ColumnFamilyOptions options = mine;
    options.cf_paths = {{"/flag", 1}};
    LdbPathFlags::KeepLoaded({{"default", mine}, {"other", other}}, before,
                             &options);
    return options.cf_paths[0].path;
  };
  EXPECT_EQ(kept(/*other=*/with_layout, /*mine=*/plain), "/before");
  EXPECT_EQ(kept(/*other=*/plain, /*mine=*/plain), "/flag");
  EXPECT_EQ(kept(/*other=*/with_layout, /*mine=*/with_layout), "/flag");
}

TEST(LdbPathFlagsTest, PathsAreGivenToAllFamiliesWithoutALayout) {
  ColumnFamilyOptions plain;
  ColumnFamilyOptions with_layout;
  with_layout.level_sst_path_ids = {0};
  const std::map<std::string, std::string> flags = {{"cf_paths", "/a,/b"}};
  const auto given = [&](const ColumnFamilyOptions& first,
                         const std::map<std::string, std::string>& options) {
    std::vector<ColumnFamilyDescriptor> families = {{"default", first},
                                                    {"other", plain}};
    LDBCommandExecuteResult result;
    LdbPathFlags(options).GiveToAll(&families, &result);
    EXPECT_FALSE(result.IsFailed());
    return std::make_pair(families[0].options.cf_paths.size(),
                          families[1].options.cf_paths.size());
  };
  EXPECT_EQ(given(plain, flags), std::make_pair(size_t{2}, size_t{2}));
  EXPECT_EQ(given(plain, {}), std::make_pair(size_t{0}, size_t{0}));
  EXPECT_EQ(given(with_layout, flags), std::make_pair(size_t{0}, size_t{0}));
}

TEST(LdbPathFlagsTest, LoadedPathsOfAFamilyAreSet) {
  ColumnFamilyOptions loaded;
  loaded.cf_paths = {{"/loaded", 1}};
  ColumnFamilyOptions options;
  options.cf_paths = {{"/mine", 1}};
  LdbPathFlags::SetLoaded({{"default", loaded}}, "missing", &options);
  EXPECT_EQ(options.cf_paths[0].path, "/mine");
  LdbPathFlags::SetLoaded({{"default", loaded}}, "default", &options);
  EXPECT_EQ(options.cf_paths[0].path, "/loaded");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
