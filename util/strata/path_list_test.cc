//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/path_list.h"

#include <limits>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

void ExpectPaths(const std::string& text, const std::vector<DbPath>& expected) {
  std::vector<DbPath> paths;
  ASSERT_OK(ParsePathList(text, &paths)) << text;
  ASSERT_EQ(paths.size(), expected.size()) << text;
  for (size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(paths[i].path, expected[i].path) << text;
    EXPECT_EQ(paths[i].target_size, expected[i].target_size) << text;
  }
}

void ExpectBadPaths(const std::string& text, const std::string& message) {
  std::vector<DbPath> paths{{"/kept", 1}};
  const Status s = ParsePathList(text, &paths);
  ASSERT_TRUE(s.IsInvalidArgument()) << text << ": " << s.ToString();
  EXPECT_NE(s.ToString().find(message), std::string::npos) << s.ToString();
  ASSERT_EQ(paths.size(), 1) << text;
  EXPECT_EQ(paths[0].path, "/kept");
}

}  // namespace

TEST(PathListTest, PathsAreParsed) {
  ExpectPaths("", {});
  ExpectPaths(" \t", {});
  ExpectPaths("/a", {{"/a", kNoLimit}});
  ExpectPaths("/a,/b/c", {{"/a", kNoLimit}, {"/b/c", kNoLimit}});
  ExpectPaths(" /a : 5 , rel/b ", {{"/a", 5}, {"rel/b", kNoLimit}});
  // A blank inside a path is part of it.
  ExpectPaths("/a b/c", {{"/a b/c", kNoLimit}});
  ExpectPaths("/a:0", {{"/a", 0}});
}

TEST(PathListTest, SizesMayHaveUnits) {
  ExpectPaths("/a:1k,/b:2M,/c:3g,/d:4T", {{"/a", 1ull << 10},
                                          {"/b", 2ull << 20},
                                          {"/c", 3ull << 30},
                                          {"/d", 4ull << 40}});
  ExpectPaths("/a:18446744073709551615", {{"/a", kNoLimit}});
  ExpectPaths("/a:16777215t", {{"/a", 16777215ull << 40}});
  for (const char* text : {"/a:", "/a:k", "/a:-1", "/a:+1", "/a:1x", "/a:1kk",
                           "/a:1.5g", "/a:0x10", "/a:18446744073709551616",
                           "/a:16777216t", "/a:b", "c:/db"}) {
    ExpectBadPaths(text, "number of bytes");
  }
}

TEST(PathListTest, EncodedPathsAreDecoded) {
  ExpectPaths("/a%2cb%3A1:7", {{"/a,b:1", 7}});
  ExpectPaths("%25", {{"%", kNoLimit}});
  for (const char* text :
       {"/a%", "/a%2", "/a%zz", "/a%00", "/a,,/b", "/a,", ",/a", ":5"}) {
    ExpectBadPaths(text, "path is empty, or a %");
  }
}

// The operating system would end the path at such a byte.
TEST(PathListTest, ZeroBytesAreRefused) {
  const std::string zero(1, '\0');
  for (const std::string& text :
       {zero, "/a" + zero + "b", "/a" + zero, zero + "/a", "/a:5" + zero,
        "/a," + zero, "/a" + zero + "b:1g,/c"}) {
    ExpectBadPaths(text, "zero byte");
  }
}

TEST(PathListTest, AnyPathRoundTrips) {
  std::string bytes = "/";
  for (int c = 1; c < 256; ++c) {
    bytes.push_back(static_cast<char>(c));
  }
  const std::vector<DbPath> paths{
      {bytes, 0}, {"/plain-1_2.x", kNoLimit}, {" lead and trail ", 12345}};
  const std::string text = PathListToString(paths);
  ExpectPaths(text, paths);
  // The text has no character with a meaning in an OPTIONS file or an option
  // string.
  EXPECT_EQ(text.find_first_of("=;{}#\\\"' \t\r\n"), std::string::npos) << text;
  EXPECT_NE(text.find(",/plain-1_2.x,"), std::string::npos) << text;
  EXPECT_EQ(PathListToString({}), "");
}

TEST(PathListTest, PathIdsRoundTrip) {
  std::vector<uint32_t> ids{9};
  ASSERT_OK(ParsePathIds("0,1", &ids));
  EXPECT_EQ(ids, (std::vector<uint32_t>{0, 1}));
  ASSERT_OK(ParsePathIds(" 3 : 0:4294967295", &ids));
  EXPECT_EQ(ids, (std::vector<uint32_t>{3, 0, 4294967295u}));
  EXPECT_EQ(PathIdsToString(ids), "3:0:4294967295");
  ASSERT_OK(ParsePathIds("", &ids));
  EXPECT_TRUE(ids.empty());
  EXPECT_EQ(PathIdsToString(ids), "");

  ids = {7};
  for (const char* text : {"x", "-1", "1,", ",", "1,,2", "1 2", "4294967296"}) {
    const Status s = ParsePathIds(text, &ids);
    EXPECT_TRUE(s.IsInvalidArgument()) << text;
    EXPECT_NE(s.ToString().find("is not a path id"), std::string::npos);
    EXPECT_EQ(ids, std::vector<uint32_t>{7}) << text;
  }
}

TEST(PathListTest, FlagsSetOptionsOrChangeNothing) {
  ColumnFamilyOptions options;
  options.level_blob_path_ids = {3};
  ASSERT_OK(ApplyPathFlags("/a:1g,/b", "0,1", "", &options));
  ASSERT_EQ(options.cf_paths.size(), 2);
  EXPECT_EQ(options.cf_paths[0].target_size, 1ull << 30);
  EXPECT_EQ(options.level_sst_path_ids, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(options.level_blob_path_ids, std::vector<uint32_t>{3});

  const auto fails = [&options](const char* paths, const char* sst,
                                const char* blob, const std::string& flag) {
    const Status s = ApplyPathFlags(paths, sst, blob, &options);
    EXPECT_TRUE(s.IsInvalidArgument());
    EXPECT_NE(s.ToString().find("--" + flag), std::string::npos)
        << s.ToString();
    EXPECT_EQ(options.cf_paths.size(), 2);
    EXPECT_EQ(options.level_sst_path_ids, (std::vector<uint32_t>{0, 1}));
  };
  fails("/x:y", "2", "", "cf_paths");
  fails("/x", "y", "", "level_sst_path_ids");
  fails("/x", "2", "y", "level_blob_path_ids");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
