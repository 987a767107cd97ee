//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_path.h"

#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::vector<ConfigPath> Parse(const std::string& databases,
                              const std::string& value) {
  std::vector<ConfigPath> paths;
  EXPECT_OK(
      ConfigPath::ParseList(ConfigGlob::OfDatabase(databases), value, &paths));
  return paths;
}

// Returns the error of a value.
std::string ErrorOf(const std::string& databases, const std::string& value) {
  std::vector<ConfigPath> paths;
  const Status s =
      ConfigPath::ParseList(ConfigGlob::OfDatabase(databases), value, &paths);
  EXPECT_TRUE(s.IsInvalidArgument()) << value << " " << s.ToString();
  EXPECT_TRUE(paths.empty());
  return s.ToString();
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Returns "<database> <other database>" if the path of a section and that of
// another one can be the same; empty: they cannot.
std::string Collision(const std::string& databases, const std::string& value,
                      const std::string& other_databases,
                      const std::string& other_value) {
  const std::vector<ConfigPath> a = Parse(databases, value);
  const std::vector<ConfigPath> b = Parse(other_databases, other_value);
  EXPECT_EQ(1U, a.size());
  EXPECT_EQ(1U, b.size());
  std::string database;
  std::string other;
  const bool collide = a[0].CollidesWith(b[0], &database, &other);
  std::string reverse_database;
  std::string reverse_other;
  EXPECT_EQ(collide,
            b[0].CollidesWith(a[0], &reverse_database, &reverse_other));
  if (!collide) {
    return "";
  }
  EXPECT_EQ(database, reverse_other);
  EXPECT_EQ(other, reverse_database);
  return database + " " + other;
}

}  // namespace

TEST(ConfigPathTest, EachDatabaseHasAName) {
  for (const char* database :
       {"/", "/a", "/data/db", "/a%/b", "/a/%b", "/a%2Fb", "/%25", "/.a"}) {
    std::string found;
    EXPECT_TRUE(ConfigPath::DatabaseOf(ConfigPath::NameOf(database), &found));
    EXPECT_EQ(database, found);
  }
  EXPECT_EQ("data%2Fdb", ConfigPath::NameOf("/data/db"));
  // These are names of no database.
  for (const char* name : {"", "%", "%2f", "a%20", "%2Fa", "a%2F", "a%2F%2Fb",
                           ".", "a%2F..%2Fb"}) {
    std::string found;
    EXPECT_FALSE(ConfigPath::DatabaseOf(name, &found)) << name << found;
  }
}

TEST(ConfigPathTest, PlaceholdersAreReplaced) {
  EXPECT_EQ("/f/data%252Fdb:10g,/data/db",
            ConfigPath::Expand("/f/{db}:10g,{dir}", "/data/db"));
  std::vector<DbPath> paths;
  ASSERT_OK(ConfigPath::ParseFor("/d,ata/db", "{{dir}:5,/s/{db}}", &paths));
  ASSERT_EQ(2U, paths.size());
  EXPECT_EQ("/d,ata/db", paths[0].path);
  EXPECT_EQ(5U, paths[0].target_size);
  EXPECT_EQ("/s/d,ata%2Fdb", paths[1].path);
}

TEST(ConfigPathTest, PathsOfAPatternHaveAPlaceholder) {
  const std::vector<ConfigPath> paths =
      Parse("/data/*", "{dir}:10g, /s/{db}, /{db}/x,/./{dir}/");
  ASSERT_EQ(4U, paths.size());
  EXPECT_TRUE(paths[0].is_directory());
  EXPECT_EQ("{dir}", paths[0].text());
  EXPECT_FALSE(paths[1].is_directory());
  EXPECT_EQ("/s/{db}", paths[1].text());
  EXPECT_EQ("/{db}/x", paths[2].text());
  EXPECT_TRUE(paths[3].is_directory());
  for (const ConfigPath& path : paths) {
    EXPECT_FALSE(path.is_of_one_database());
    EXPECT_TRUE(path.IsFor("/data/a"));
    EXPECT_FALSE(path.IsFor("/other"));
  }
  EXPECT_TRUE(
      Has(ErrorOf("/data/*", "/s"), "\"/s\" would be a path of each database"));
  EXPECT_TRUE(
      Has(ErrorOf("/data/*", "{db}/s"), "\"{db}/s\" is not an absolute path"));
  EXPECT_TRUE(Has(ErrorOf("/data/*", "/{db}/../x"), "\"..\""));
  EXPECT_TRUE(Has(ErrorOf("/data/*", "/f/{db}:x"), ":x"));
}

// The name of a database could be continued by the text behind it.
TEST(ConfigPathTest, NamesAreWholePartsInSectionsOfPatterns) {
  for (const char* path : {"/s/x{db}", "/s/{db}2", "/s/{db}{db}",
                           "/s/{db}/x{db}", "/s/{db},/s/{db}2"}) {
    EXPECT_TRUE(Has(ErrorOf("*", path), "other text beside {db}")) << path;
  }
  // A path of one database is what it is.
  const std::vector<ConfigPath> paths = Parse("/a", "//s/x{db}/.,{dir},/s");
  ASSERT_EQ(3U, paths.size());
  EXPECT_EQ("//s/xa/.", paths[0].text());
  EXPECT_EQ("/a", paths[1].text());
  for (const ConfigPath& path : paths) {
    EXPECT_TRUE(path.is_of_one_database());
    EXPECT_EQ(path.text() == "/a", path.is_directory());
    EXPECT_TRUE(path.IsFor("/a"));
    EXPECT_FALSE(path.IsFor("/b"));
  }
}

TEST(ConfigPathTest, DirectoriesAreWholePaths) {
  for (const char* databases : {"/a", "/data/*"}) {
    for (const char* path :
         {"/s/{dir}", "{dir}/x", "/s{dir}", "/{db}/{dir}", "{dir}{dir}"}) {
      EXPECT_TRUE(Has(ErrorOf(databases, path), "other text beside {dir}"))
          << path;
    }
  }
}

TEST(ConfigPathTest, PathsOfTwoDatabasesCollide) {
  EXPECT_EQ("/a /b", Collision("/a", "/s/x", "/b", "//s/./x"));
  EXPECT_EQ("", Collision("/a", "/s/x", "/a", "/s/x"));
  EXPECT_EQ("", Collision("/a", "/s/x", "/b", "/s/y"));
  EXPECT_EQ("", Collision("/a", "/s/x", "/b", "/s/x/y"));
  EXPECT_EQ("", Collision("/a", "/s/{db}", "/b", "/s/{db}"));
  // The name of a database that the pattern matches.
  EXPECT_EQ("/x/a /b", Collision("/x/*", "/p/{db}", "/b", "/p/x%252Fa"));
  EXPECT_EQ("", Collision("/y/*", "/p/{db}", "/b", "/p/x%252Fa"));
  EXPECT_EQ("", Collision("/x/*", "/p/{db}", "/b", "/p/a"));
  EXPECT_EQ("/a /b", Collision("*", "/p/{db}", "/b", "/p/a"));
  // Its own name is not that of another one.
  EXPECT_EQ("", Collision("*", "/p/{db}", "/b", "/p/b"));
}

TEST(ConfigPathTest, PathsOfTwoPatternsCollide) {
  // A name in the same place is that of one database.
  EXPECT_EQ("", Collision("*", "/p/{db}", "/x/*", "/p/{db}"));
  EXPECT_EQ("", Collision("*", "/p/{db}/x", "*", "/p/{db}/{db}"));
  // The database /y has the first path, and /x the second one.
  EXPECT_EQ("/y /x", Collision("*", "/p/x/{db}", "*", "/p/{db}/y"));
  EXPECT_EQ("", Collision("*", "/p/x/{db}", "*", "/p/{db}/x"));
  EXPECT_EQ("", Collision("/d/*", "/p/x/{db}", "*", "/p/{db}/y"));
  EXPECT_EQ("/d/y /x", Collision("/d/*", "/p/x/{db}", "*", "/p/{db}/d%252Fy"));
  EXPECT_EQ("", Collision("*", "/p/{db}/{db}", "/z", "/p/x/y"));
  EXPECT_EQ("/x /z", Collision("*", "/p/{db}/{db}", "/z", "/p/x/x"));
  // Which directories databases have is not known.
  EXPECT_EQ("", Collision("*", "{dir}", "/z", "/p/x"));
  EXPECT_EQ("", Collision("*", "/p/{db}", "/p/z", "{dir}"));
}

TEST(ConfigPathTest, PathOfAnOpenIsCompared) {
  const std::vector<ConfigPath> paths = Parse("/data/*", "/hdd/{db}");
  std::string database;
  std::string other;
  EXPECT_TRUE(paths[0].CollidesWith(ConfigPath::Of("/b", "/hdd/data%2Fa"),
                                    &database, &other));
  EXPECT_EQ("/data/a", database);
  EXPECT_EQ("/b", other);
  EXPECT_FALSE(paths[0].CollidesWith(ConfigPath::Of("/data/a", "/hdd/data%2Fa"),
                                     &database, &other));
  EXPECT_FALSE(
      paths[0].CollidesWith(ConfigPath::Of("/b", "/hdd/b"), &database, &other));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
