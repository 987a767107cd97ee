//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_directories.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/path_layout/directory_names.h"
#include "file/file_util.h"
#include "options/strata_config/config_file.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the error of a file; empty: it has none.
std::string ErrorOf(const std::string& text) {
  ConfigFile file;
  const Status s = ConfigFile::Parse("/c.ini", text, &file);
  EXPECT_TRUE(s.ok() || s.IsInvalidArgument());
  return s.ok() ? "" : s.ToString();
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Cannot tell which files exist.
class UncertainFileSystem : public FileSystemWrapper {
 public:
  explicit UncertainFileSystem(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}

  const char* Name() const override { return "UncertainFileSystem"; }
  IOStatus FileExists(const std::string& name, const IOOptions& /*options*/,
                      IODebugContext* /*dbg*/) override {
    return IOStatus::IOError(name, "no answer");
  }
};

}  // namespace

TEST(ConfigDirectoriesTest, PathsAreAbsolute) {
  EXPECT_EQ("", ErrorOf("[DBOptions \"/a\"]\ndb_paths=/f,/s:10g\n"));
  EXPECT_TRUE(Has(ErrorOf("[DBOptions \"/a\"]\ndb_paths=/f,s\n"),
                  "/c.ini:2: db_paths: \"s\" is not an absolute path"));
  EXPECT_TRUE(Has(ErrorOf("[CFOptions \"/a\" \"x\"]\n\ncf_paths={db},/s\n"),
                  "/c.ini:3: cf_paths: \"a\" is not an absolute path"));
  EXPECT_TRUE(Has(ErrorOf("[DBOptions \"/a\"]\ndb_log_dir=log\n"),
                  "/c.ini:2: db_log_dir: \"log\" is not an absolute path"));
  EXPECT_EQ("", ErrorOf("[DBOptions \"/a\"]\ndb_log_dir=\n"));
  EXPECT_EQ("", ErrorOf("[DBOptions \"*\"]\ndb_log_dir=/var/log/rocksdb\n"));
  EXPECT_TRUE(Has(ErrorOf("[DBOptions \"/a\"]\ndb_paths=/f:x\n"),
                  "/c.ini:2: db_paths: '/f:x'"));
}

TEST(ConfigDirectoriesTest, DatabasesOfAPatternDoNotShareAPath) {
  const std::string error = ErrorOf(
      "[DBOptions \"/data/*\"]\n"
      "db_paths = /f/{db}, /s\n");
  EXPECT_TRUE(Has(error,
                  "/c.ini:2: db_paths: \"/s\" would be a path of each "
                  "database that matches \"/data/*\""))
      << error;
  EXPECT_TRUE(Has(error, "{db}")) << error;
  EXPECT_EQ("", ErrorOf("[DBOptions \"/data/*\"]\ndb_paths={dir},/s/x/{db}\n"
                        "[CFOptions \"*\" \"*\"]\ncf_paths={/f/{db},/s/{db}}"));
  // Nothing else stands for the name.
  EXPECT_NE("", ErrorOf("[DBOptions \"*\"]\ndb_paths=/f/%01\n"));
  EXPECT_NE("", ErrorOf("[DBOptions \"*\"]\ndb_paths=/f/a\n"));
}

TEST(ConfigDirectoriesTest, TwoDatabasesDoNotShareAPath) {
  const std::string error = ErrorOf(
      "[DBOptions \"/a\"]\n"
      "db_paths = /f,/s\n"
      "[CFOptions \"/b\" \"*\"]\n"
      "cf_paths = /b,//s/./\n");
  EXPECT_TRUE(Has(error,
                  "/c.ini:4: cf_paths: \"//s/./\", a path of /b, is a path of "
                  "/a, too, by line 2"))
      << error;
  // Families of one database may, and the name of it may be written otherwise.
  EXPECT_EQ("", ErrorOf("[DBOptions \"/a\"]\ndb_paths=/f,/s\n"
                        "[CFOptions \"/a/\" \"*\"]\ncf_paths=/s,/f\n"
                        "[CFOptions \"/x/../a\" \"y\"]\ncf_paths=/s\n"));
}

// Two patterns, or a name that is continued by other text.
TEST(ConfigDirectoriesTest, DatabasesOfTwoPatternsDoNotShareAPath) {
  const std::string glued = ErrorOf(
      "[CFOptions \"/data/*\" \"default\"]\ncf_paths=/hdd/{db}\n"
      "[CFOptions \"/data/*\" \"log\"]\ncf_paths=/hdd/{db}2\n");
  EXPECT_TRUE(Has(glued,
                  "/c.ini:4: cf_paths: \"/hdd/{db}2\" has other text beside "
                  "{db}"))
      << glued;
  const std::string crossed = ErrorOf(
      "[DBOptions \"*\"]\ndb_paths=/p/x/{db}\n"
      "[CFOptions \"*\" \"log\"]\ncf_paths=/q/{db},/p/{db}/y\n");
  EXPECT_TRUE(Has(crossed,
                  "/c.ini:4: cf_paths: \"/p/{db}/y\", for a database /x, is "
                  "the same directory as \"/p/x/{db}\" in line 2 for a "
                  "database /y"))
      << crossed;
  EXPECT_EQ("", ErrorOf("[DBOptions \"*\"]\ndb_paths=/p/x/{db}\n"
                        "[CFOptions \"*\" \"log\"]\ncf_paths=/p/{db}/x\n"));
}

TEST(ConfigDirectoriesTest, DirectoryOfTheDatabaseIsAPath) {
  EXPECT_EQ("", ErrorOf("[DBOptions \"*\"]\ndb_paths={dir}:1g,/s/{db}\n"
                        "[CFOptions \"/a\" \"*\"]\ncf_paths={dir},/x\n"
                        "[CFOptions \"/b\" \"*\"]\ncf_paths={dir},/y\n"));
  // It can lie beside the directories with names.
  EXPECT_EQ("", ErrorOf("[CFOptions \"*\" \"*\"]\ncf_paths={dir},/data/{db}\n"
                        "[CFOptions \"/data/a\" \"x\"]\ncf_paths={dir}\n"));
  EXPECT_TRUE(Has(ErrorOf("[DBOptions \"*\"]\ndb_paths={dir}/sst\n"),
                  "/c.ini:2: db_paths: there is other text beside {dir}"));
  EXPECT_TRUE(Has(ErrorOf("[DBOptions \"/a\"]\ndb_log_dir=/log{dir}\n"),
                  "/c.ini:2: db_log_dir: {dir} is for paths alone"));
  EXPECT_TRUE(Has(ErrorOf("[DBOptions \"/a\"]\n[DBOptions \"/b\"]\n"
                          "db_paths={dir},/a\n"),
                  "/c.ini:3: db_paths: \"/a\", a path of /b, is the directory "
                  "of /a"));
}

// Paths are compared with the names in them.
TEST(ConfigDirectoriesTest, NamesInPathsAreCompared) {
  EXPECT_TRUE(Has(ErrorOf("[CFOptions \"/a\" \"*\"]\ncf_paths=/p/{db}\n"
                          "[CFOptions \"/b\" \"*\"]\ncf_paths=/p/a\n"),
                  "/c.ini:4: cf_paths: \"/p/a\", a path of /b, is a path of "
                  "/a, too, by line 2"));
  // A pattern that matches a database with a section.
  EXPECT_TRUE(Has(ErrorOf("[DBOptions \"/x/*\"]\ndb_paths=/p/{db}\n"
                          "[DBOptions \"/x/a\"]\n"
                          "[CFOptions \"/b\" \"*\"]\ncf_paths=/p/x%252Fa\n"),
                  "/c.ini:2: db_paths: \"/p/x%2Fa\", a path of /x/a, is a "
                  "path of /b, too, by line 5"));
  // The pattern may match such a database.
  EXPECT_TRUE(Has(ErrorOf("[DBOptions \"/x/*\"]\ndb_paths=/p/{db}\n"
                          "[DBOptions \"/b\"]\ndb_paths=/p/x%252Fa\n"),
                  "/c.ini:4: db_paths: \"/p/x%2Fa\", for a database /b, is the "
                  "same directory as \"/p/{db}\" in line 2 for a database "
                  "/x/a"));
  EXPECT_EQ("", ErrorOf("[DBOptions \"/x/*\"]\ndb_paths=/p/{db}\n"
                        "[DBOptions \"/b\"]\ndb_paths=/p/y%252Fa\n"));
  EXPECT_EQ("", ErrorOf("[CFOptions \"/a\" \"*\"]\ncf_paths=/p/{db}\n"
                        "[CFOptions \"*\" \"*\"]\ncf_paths=/p/{db}\n"
                        "[CFOptions \"/b\" \"*\"]\ncf_paths=/p/b\n"));
}

TEST(ConfigDirectoriesTest, NoPartIsTheParent) {
  const std::string error =
      ErrorOf("[DBOptions \"*\"]\ndb_paths=/nvme/{db}/../all\n");
  EXPECT_TRUE(Has(error, "/c.ini:2: db_paths: a path has a part \"..\""))
      << error;
  EXPECT_NE("", ErrorOf("[DBOptions \"/a\"]\ndb_paths=/nvme/..\n"));
  EXPECT_EQ("", ErrorOf("[DBOptions \"/a\"]\ndb_paths=/nvme/..a,/x../b\n"));
}

TEST(ConfigDirectoriesTest, DirectoryWithASectionIsNoPathOfAnother) {
  for (const char* section :
       {"[DBOptions \"/b\"]\n", "[CFOptions \"/x/../b/\" \"x\"]\n"}) {
    const std::string error = ErrorOf(
        "[CFOptions \"/a\" \"*\"]\ncf_paths=/a,/b\n" + std::string(section));
    EXPECT_TRUE(Has(error,
                    "/c.ini:2: cf_paths: \"/b\", a path of /a, is the "
                    "directory of /b, which has a section in line 3"))
        << error;
  }
}

TEST(ConfigDirectoriesTest, NamesReplaceThePlaceholder) {
  // A percent sign in a list of paths is written %25.
  EXPECT_EQ(
      "/f/data%252Fdb:10g,/s/data%252Fdb",
      ConfigDirectories::Expand("db_paths", "/f/{db}:10g,/s/{db}", "/data/db"));
  EXPECT_EQ("/data/db,/s/data%252Fdb",
            ConfigDirectories::Expand("cf_paths", "{dir},/s/{db}", "/data/db"));
  EXPECT_EQ(
      "/log/data%2Fdb/data%2Fdb",
      ConfigDirectories::Expand("db_log_dir", "/log/{db}/{db}", "/data/db"));
  EXPECT_EQ("{db}", ConfigDirectories::Expand("other", "{db}", "/data/db"));
}

TEST(ConfigDirectoriesTest, DirectoryOfADatabaseIsNoPathOfAnother) {
  const std::string dir = test::PerThreadDBPath("config_directories_test");
  Env* const env = Env::Default();
  ASSERT_OK(DestroyDir(env, dir));
  ASSERT_OK(env->CreateDirIfMissing(dir));
  ASSERT_OK(env->CreateDirIfMissing(dir + "/a"));
  FileSystem* const fs = env->GetFileSystem().get();
  const std::vector<DbPath> paths = {{dir + "/a/", UINT64_MAX},
                                     {dir + "/b", UINT64_MAX}};
  EXPECT_OK(ConfigDirectories::CheckNoDatabase(fs, dir + "/c", paths));
  ASSERT_OK(WriteStringToFile(env, "MANIFEST-000001\n", dir + "/a/CURRENT"));
  const Status s = ConfigDirectories::CheckNoDatabase(fs, dir + "/c", paths);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Has(s.ToString(), dir + "/a/")) << s.ToString();
  // The directory of the database itself is one of its paths as a rule.
  EXPECT_OK(ConfigDirectories::CheckNoDatabase(fs, dir + "/a", paths));
  UncertainFileSystem uncertain(env->GetFileSystem());
  EXPECT_TRUE(ConfigDirectories::CheckNoDatabase(&uncertain, dir + "/c", paths)
                  .IsIOError());
  EXPECT_OK(DestroyDir(env, dir));
}

TEST(ConfigDirectoriesTest, PathsOfACallAreNotThoseOfOthers) {
  const std::string dir = CleanDirectoryName(
      /*fs=*/nullptr, test::PerThreadDBPath("config_directories_test"));
  Env* const env = Env::Default();
  ASSERT_OK(DestroyDir(env, dir));
  ASSERT_OK(env->CreateDirIfMissing(dir));
  ASSERT_OK(env->CreateDirIfMissing(dir + "/a"));
  FileSystem* const fs = env->GetFileSystem().get();
  ConfigFile file;
  ASSERT_OK(ConfigFile::Parse("/c.ini",
                              "[DBOptions \"/data/*\"]\n"
                              "db_paths = {dir},/hdd/{db}\n"
                              "[CFOptions \"/one\" \"x\"]\n"
                              "cf_paths = {dir},/s/{db}\n"
                              "[DBOptions \"" +
                                  dir + "/*\"]\ndb_paths = {dir}\n",
                              &file));
  const auto check = [&](const std::string& database, const std::string& path) {
    const Status s = ConfigDirectories::CheckNotOfOthers(
        fs, file, database, "cf_paths", {{database, 1}, {path, 1}});
    EXPECT_TRUE(s.ok() || s.IsInvalidArgument()) << s.ToString();
    EXPECT_TRUE(s.ok() || Has(s.ToString(), database + " has in cf_paths now"))
        << s.ToString();
    return s.ok() ? "" : s.ToString();
  };
  EXPECT_TRUE(Has(check("/b", "//hdd/./data%2Fa"), "/c.ini:2: db_paths: "));
  EXPECT_TRUE(Has(check("/b", "/hdd/data%2Fa"), "a path of /data/a."));
  EXPECT_EQ("", check("/data/a", "/hdd/data%2Fa"));
  EXPECT_EQ("", check("/b", "/hdd/b"));
  EXPECT_TRUE(Has(check("/data/a", "/s/one"), "/c.ini:4: cf_paths: "));
  EXPECT_EQ("", check("/one", "/s/one"));
  EXPECT_TRUE(Has(check("/b", "/one/"), "/c.ini:3: \"/one\""));
  EXPECT_EQ("", check("/hdd/data%2Fa", "/hdd/data%2Fa"));
  // A directory is that of a database if it has one.
  EXPECT_EQ("", check("/b", dir + "/a"));
  ASSERT_OK(WriteStringToFile(env, "MANIFEST-000001\n", dir + "/a/CURRENT"));
  EXPECT_TRUE(Has(check("/b", dir + "/a"), "/c.ini:6: db_paths: "));
  UncertainFileSystem uncertain(env->GetFileSystem());
  const Status s = ConfigDirectories::CheckNotOfOthers(
      &uncertain, file, "/b", "cf_paths", {{dir + "/a", 1}});
  EXPECT_TRUE(Has(s.ToString(), "/c.ini:6: db_paths: ")) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(), "no answer")) << s.ToString();
  EXPECT_EQ("", check(dir + "/a", dir + "/a"));
  EXPECT_OK(DestroyDir(env, dir));
}

TEST(ConfigDirectoriesTest, PathOfAnotherDatabaseIsNoDirectoryOfOne) {
  const std::string dir = CleanDirectoryName(
      /*fs=*/nullptr, test::PerThreadDBPath("config_directories_test"));
  Env* const env = Env::Default();
  ASSERT_OK(DestroyDir(env, dir));
  ASSERT_OK(env->CreateDirIfMissing(dir));
  for (const char* name : {"/a", "/b", "/c"}) {
    ASSERT_OK(env->CreateDirIfMissing(dir + name));
  }
  FileSystem* const fs = env->GetFileSystem().get();
  ConfigFile file;
  ASSERT_OK(ConfigFile::Parse("/c.ini",
                              "[CFOptions \"/x\" \"*\"]\n"
                              "cf_paths = {dir}," +
                                  dir +
                                  "/a\n"
                                  "[DBOptions \"/*\"]\n"
                                  "db_paths = {dir}\n"
                                  "[CFOptions \"/[bx]\" \"default\"]\n"
                                  "cf_paths = " +
                                  dir + "/{db}\n",
                              &file));
  const auto check = [&](const std::string& name) {
    const Status s = ConfigDirectories::CheckOwnDirectory(fs, file, dir + name);
    EXPECT_TRUE(s.ok() || s.IsInvalidArgument()) << s.ToString();
    return s.ok() ? "" : s.ToString();
  };
  // Directories without files, and those that do not exist.
  for (const char* name : {"/a", "/b", "/c", "/d"}) {
    EXPECT_EQ("", check(name)) << name;
  }
  for (const std::string name : {"1.log", "LOG", "000001.dbtmp"}) {
    ASSERT_OK(WriteStringToFile(env, "", dir + "/a/" + name));
  }
  EXPECT_EQ("", check("/a"));
  for (const char* name : {"/a", "/b", "/c"}) {
    ASSERT_OK(WriteStringToFile(env, "", dir + name + "/000009.sst"));
  }
  const std::string error = check("/a");
  EXPECT_TRUE(
      Has(error, "/c.ini:2: cf_paths: \"" + dir + "/a\" is no database"))
      << error;
  EXPECT_TRUE(Has(error, "000009.sst")) << error;
  EXPECT_TRUE(Has(error, "a path of /x.")) << error;
  EXPECT_TRUE(Has(check("/b"), "/c.ini:6: cf_paths: "));
  EXPECT_TRUE(Has(check("/b"), "a path of /b."));
  EXPECT_EQ("", check("/c"));
  EXPECT_TRUE(
      ConfigDirectories::CheckNew(fs, file, dir + "/a").IsInvalidArgument());
  // A database that has lost its CURRENT can be repaired.
  for (const std::string name :
       {"CURRENT", "MANIFEST-000005", "IDENTITY", "OPTIONS-000007"}) {
    ASSERT_OK(WriteStringToFile(env, "", dir + "/a/" + name));
    EXPECT_EQ("", check("/a")) << name;
    ASSERT_OK(env->DeleteFile(dir + "/a/" + name));
  }
  EXPECT_NE("", check("/a"));
  EXPECT_OK(DestroyDir(env, dir));
}

// The directory of a database with a section, which it has not got yet, or
// whose CURRENT is lost.
TEST(ConfigDirectoriesTest, AllPathsAreThoseOfTheDatabase) {
  ConfigFile file;
  ASSERT_OK(ConfigFile::Parse("/c.ini",
                              "[DBOptions \"*\"]\n"
                              "db_paths = {dir},/no/data/{db}\n"
                              "[CFOptions \"/no/data/b%2Fx\" \"*\"]\n"
                              "min_blob_size = 1\n",
                              &file));
  FileSystem* const fs = Env::Default()->GetFileSystem().get();
  std::vector<DbPath> paths;
  ASSERT_OK(ConfigDirectories::AddAllPaths(fs, file, "/b/y", &paths));
  ASSERT_EQ(2U, paths.size());
  EXPECT_EQ("/b/y", paths[0].path);
  EXPECT_EQ("/no/data/b%2Fy", paths[1].path);
  const Status s = ConfigDirectories::AddAllPaths(fs, file, "/b/x", &paths);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_TRUE(Has(s.ToString(),
                  "/c.ini:3: \"/no/data/b%2Fx\", which /b/x has in db_paths "
                  "now, is the directory of /no/data/b%2Fx"))
      << s.ToString();
}

TEST(ConfigDirectoriesTest, FilesOfOthersAreFound) {
  const std::string dir = CleanDirectoryName(
      /*fs=*/nullptr, test::PerThreadDBPath("config_directories_test"));
  Env* const env = Env::Default();
  ASSERT_OK(DestroyDir(env, dir));
  ASSERT_OK(env->CreateDirIfMissing(dir));
  ASSERT_OK(env->CreateDirIfMissing(dir + "/a"));
  ASSERT_OK(env->CreateDirIfMissing(dir + "/db"));
  FileSystem* const fs = env->GetFileSystem().get();
  const std::string db = dir + "/db";
  ConfigFile file;
  ASSERT_OK(ConfigFile::Parse("/c.ini",
                              "[CFOptions \"" + db + "\" \"x*\"]\n" +
                                  "cf_paths = " + db + "," + dir + "/none," +
                                  dir + "/a\n",
                              &file));
  // The directory of the database itself does not count.
  ASSERT_OK(WriteStringToFile(env, "", db + "/000001.sst"));
  ASSERT_OK(WriteStringToFile(env, "", dir + "/a/other"));
  EXPECT_OK(ConfigDirectories::CheckNew(fs, file, db));
  EXPECT_OK(ConfigDirectories::CheckNoUnknownFamily(fs, file, db));
  for (const std::string name : {"000001.sst", "000002.blob", "000003.delta"}) {
    ASSERT_OK(WriteStringToFile(env, "", dir + "/a/" + name));
    for (const Status& s :
         {ConfigDirectories::CheckNew(fs, file, db),
          ConfigDirectories::CheckNoUnknownFamily(fs, file, db)}) {
      EXPECT_TRUE(s.IsInvalidArgument());
      EXPECT_TRUE(Has(s.ToString(), "/c.ini:2: cf_paths: \"" + dir +
                                        "/a\" has files, such as " + name))
          << s.ToString();
    }
    EXPECT_OK(ConfigDirectories::CheckNew(fs, file, dir + "/other"));
    ASSERT_OK(env->DeleteFile(dir + "/a/" + name));
  }
  EXPECT_OK(DestroyDir(env, dir));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
