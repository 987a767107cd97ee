//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_glob.h"

#include <string>

#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

namespace {

bool Matches(const ConfigGlob& glob, const std::string& name) {
  bool matches = false;
  EXPECT_OK(glob.Match(name, &matches));
  return matches;
}

bool Matches(const std::string& glob, const std::string& name) {
  return Matches(ConfigGlob(glob), name);
}

bool DatabaseMatches(const std::string& glob, const std::string& name) {
  return Matches(ConfigGlob::OfDatabase(glob), name);
}

}  // namespace

TEST(ConfigGlobTest, NothingMatchesWithoutAPattern) {
  EXPECT_FALSE(Matches(ConfigGlob(), "default"));
  EXPECT_FALSE(Matches(ConfigGlob(), ""));
  EXPECT_FALSE(Matches("", ""));
}

TEST(ConfigGlobTest, LiteralsMatchOneName) {
  EXPECT_TRUE(ConfigGlob("default").is_literal());
  EXPECT_TRUE(Matches("default", "default"));
  EXPECT_FALSE(Matches("default", "default2"));
  // A backslash takes the meaning away.
  const ConfigGlob star("a\\*b\\\\");
  EXPECT_TRUE(star.is_literal());
  EXPECT_EQ("a*b\\", star.literal());
  EXPECT_EQ("a\\*b\\\\", star.text());
  EXPECT_TRUE(Matches(star, "a*b\\"));
  EXPECT_FALSE(Matches(star, "axb\\"));
  EXPECT_FALSE(Matches("\\*", "x"));
  EXPECT_FALSE(ConfigGlob("\\*").MatchesAll());
}

TEST(ConfigGlobTest, PatternsMatchAsInFnmatch) {
  EXPECT_FALSE(ConfigGlob("a*").is_literal());
  EXPECT_TRUE(Matches("a*", "a"));
  EXPECT_TRUE(Matches("a*", "abc"));
  EXPECT_FALSE(Matches("a*", "ba"));
  EXPECT_TRUE(Matches("?", "x"));
  EXPECT_FALSE(Matches("?", ""));
  EXPECT_TRUE(Matches("[ab]", "a"));
  EXPECT_FALSE(Matches("[!ab]", "a"));
  // Slashes and leading dots are characters as others are.
  EXPECT_TRUE(Matches("/data/*", "/data/a/b"));
  EXPECT_TRUE(Matches("*", ".hidden"));
  // A bracket without its end is itself, and a last backslash matches nothing.
  EXPECT_TRUE(Matches("[a", "[a"));
  EXPECT_FALSE(Matches("a\\", "a"));
}

TEST(ConfigGlobTest, StarMatchesAll) {
  EXPECT_TRUE(ConfigGlob("*").MatchesAll());
  EXPECT_FALSE(ConfigGlob("**").MatchesAll());
  EXPECT_TRUE(Matches("*", ""));
  const std::string binary("a\0b", 3);
  EXPECT_TRUE(Matches("*", binary));
  EXPECT_FALSE(Matches("a*", binary));
  EXPECT_TRUE(Matches(binary, binary));
}

TEST(ConfigGlobTest, NamesOfDatabasesAreClean) {
  EXPECT_TRUE(DatabaseMatches("/data/db/", "/data/db"));
  EXPECT_TRUE(DatabaseMatches("/data//x/../db", "/data/db"));
  EXPECT_TRUE(DatabaseMatches("/data/*/", "/data/db"));
  EXPECT_FALSE(DatabaseMatches("/data/db", "/data/db2"));
  EXPECT_TRUE(DatabaseMatches("/", "/"));
  EXPECT_EQ("/data/db/", ConfigGlob::OfDatabase("/data/db/").text());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
