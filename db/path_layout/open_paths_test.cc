//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/open_paths.h"

#include <string>
#include <utility>
#include <vector>

#include "db/path_layout/path_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::vector<DbPath> Paths(const std::vector<std::string>& names) {
  std::vector<DbPath> result;
  for (const std::string& name : names) {
    result.emplace_back(name, 0);
  }
  return result;
}

}  // namespace

TEST(OpenPathsTest, CountsDirectories) {
  EXPECT_FALSE(OpenPaths(Paths({})).AreSeveral());
  EXPECT_FALSE(OpenPaths(Paths({"/a"})).AreSeveral());
  EXPECT_FALSE(OpenPaths(Paths({"/a", "/a/", "//a/./b/.."})).AreSeveral());
  EXPECT_TRUE(OpenPaths(Paths({"/a", "/a/b"})).AreSeveral());

  std::vector<ColumnFamilyDescriptor> families(2);
  EXPECT_FALSE(OpenPaths(Paths({"/a"}), families).AreSeveral());
  families[1].options.cf_paths = Paths({"/a"});
  EXPECT_FALSE(OpenPaths(Paths({"/a"}), families).AreSeveral());
  families[1].options.cf_paths = Paths({"/b"});
  EXPECT_TRUE(OpenPaths(Paths({"/a"}), families).AreSeveral());
}

TEST(OpenPathsTest, KeepsTheFlagsOfAnError) {
  const OpenPaths paths(Paths({"/a", "/b"}));
  for (const bool flag : {false, true}) {
    IOStatus error = IOStatus::IOError("While pread: /b/000012.sst");
    error.SetRetryable(flag);
    error.SetDataLoss(!flag);
    error.SetScope(IOStatus::IOErrorScope::kIOErrorScopeFile);
    Status added = paths.AddPathTo(Status(error, Status::Severity::kHardError));
    EXPECT_EQ(added.severity(), Status::Severity::kHardError);
    EXPECT_EQ(added.ToString(),
              "IO error: While pread: /b/000012.sst (/b is path id 1 of "
              "db_paths)");
    const IOStatus flags = status_to_io_status(std::move(added));
    EXPECT_EQ(flags.GetRetryable(), flag);
    EXPECT_EQ(flags.GetDataLoss(), !flag);
    EXPECT_EQ(flags.GetScope(), IOStatus::IOErrorScope::kIOErrorScopeFile);
  }
}

TEST(OpenPathsTest, NamesThePathOfADirectoryOrFile) {
  OpenPaths paths(Paths({"/db", "/db/x"}));
  paths.AddFamily("default", {});
  paths.AddFamily("cold", Paths({"/db", "/hdd/", "/"}));
  const auto added = [&](const std::string& message) {
    const std::string before = Status::IOError(message).ToString();
    const std::string after =
        paths.AddPathTo(Status::IOError(message)).ToString();
    EXPECT_EQ(after.substr(0, before.size()), before);
    return after.substr(before.size());
  };
  const std::string db =
      " (/db is path id 0 of column family default, path id 0 of column family "
      "cold)";
  EXPECT_EQ(added("While open directory: /db: Permission denied"), db);
  EXPECT_EQ(added("While opendir: /db"), db);
  EXPECT_EQ(added("`/db' exists but is not a directory"), db);
  EXPECT_EQ(added("While stat: /db/000012.blob: No such file"), db);
  EXPECT_EQ(added("Damaged blob files: /db/000012.blob (x); /db/000013.blob"),
            db);
  const std::string inner = " (/db/x is path id 1 of column family default)";
  EXPECT_EQ(added("While stat: /db/x: No such directory"), inner);
  EXPECT_EQ(added("While stat: /db/x/000012.sst: No such file"), inner);
  const std::string hdd = " (/hdd/ is path id 1 of column family cold)";
  EXPECT_EQ(added("Size of /hdd//000012.delta differs"), hdd);
  EXPECT_EQ(added("Size of /hdd/000012.ldb differs"), hdd);
  EXPECT_EQ(added("While opendir: /hdd/: x"), hdd);
  EXPECT_EQ(added("While opendir: /: x"),
            " (/ is path id 2 of column family cold)");

  for (const char* other :
       {"While open a file: /db/MANIFEST-000005: x", "at /db/000012.log",
        "at /db/archive/000012.log", "at /dbx", "at /dbx/000012.sst",
        "at /other/db", "at /other/db/000012.sst", "at /db/.x", ""}) {
    EXPECT_EQ(added(other), "") << other;
  }
  // A message that names paths already.
  EXPECT_EQ(added("While opendir: /db (path id 7)"), "");
  EXPECT_EQ(added("Path id 7 is missing: /db does not exist"), "");
}

// A job's errors may also be about MANIFEST and WALs.
TEST(OpenPathsTest, NamesThePathOfAnyFile) {
  constexpr OpenPaths::Files kAll = OpenPaths::Files::kAll;
  OpenPaths paths(Paths({"/db", "/db/x"}));
  paths.AddFamily("default", {});
  paths.AddOther("/db/", "the directory of the database");
  paths.AddOther("/wal/", "the directory of WALs");
  const auto added = [&](const std::string& message) {
    const std::string before = Status::IOError(message).ToString();
    const std::string after =
        paths.AddPathTo(Status::IOError(message), kAll).ToString();
    EXPECT_EQ(after.substr(0, before.size()), before);
    const std::string addition = after.substr(before.size());
    // It is added once.
    const Status complete = Status::IOError(message + addition);
    EXPECT_EQ(paths.AddPathTo(complete, kAll).ToString(), complete.ToString());
    return addition;
  };
  const auto directory = [&](const std::string& message) {
    return paths.DirectoryIn(Status::IOError(message), kAll);
  };
  EXPECT_EQ(added("While fsync: /db/MANIFEST-000005: x"),
            " (/db is path id 0 of column family default)");
  EXPECT_EQ(directory("While fsync: /db/MANIFEST-000005: x"), "/db");
  EXPECT_EQ(added("While appending to file: /wal/000012.log: x"),
            " (/wal/ is the directory of WALs)");
  EXPECT_EQ(directory("While appending to file: /wal/000012.log: x"), "/wal");
  EXPECT_EQ(directory("While open a file: /db/x/000012.sst: x"), "/db/x");
  EXPECT_EQ(directory("While fsync: /db/x: Input/output error"), "/db/x");
  OpenPaths elsewhere(Paths({"/db"}));
  elsewhere.AddFamily("default", Paths({"/fast", "/slow"}));
  elsewhere.AddOther("/db", "the directory of the database");
  EXPECT_EQ(
      elsewhere.AddPathTo(Status::IOError("/db/CURRENT"), kAll).ToString(),
      "IO error: /db/CURRENT (/db is the directory of the database)");
  for (const char* other :
       {"at /db/archive/000012.log", "at /dbx/000012.log", "at /other/wal",
        "at /other/wal/000012.log", "injected", ""}) {
    EXPECT_EQ(added(other), "") << other;
    EXPECT_EQ(directory(other), "") << other;
  }
  EXPECT_EQ(paths.DirectoryIn(Status::IOError(), kAll), "");
  EXPECT_EQ(paths.DirectoryIn(Status::IOError("at /db/000012.log"),
                              OpenPaths::Files::kOfPaths),
            "");
}

TEST(OpenPathsTest, KeepsTheKindOfError) {
  const OpenPaths paths(Paths({"/a", "/b"}));
  const auto add = [&](const Status& s) { return paths.AddPathTo(s); };
  EXPECT_TRUE(add(Status::PathNotFound("/a/000012.sst")).IsPathNotFound());
  EXPECT_TRUE(add(Status::NoSpace("/a/000012.sst")).IsNoSpace());
  Status s = add(Status::Corruption("/a/000012.sst"));
  EXPECT_TRUE(s.IsCorruption());
  EXPECT_EQ(s.ToString(),
            "Corruption: /a/000012.sst (/a is path id 0 of db_paths)");
  EXPECT_TRUE(add(Status::IOError()).IsIOError());
  // An error of the options.
  s = Status::InvalidArgument("/a");
  EXPECT_EQ(add(s).ToString(), s.ToString());
  // One path.
  s = Status::IOError("/a/000012.sst");
  EXPECT_EQ(OpenPaths(Paths({"/a"})).AddPathTo(s).ToString(), s.ToString());
}

TEST(OpenPathsTest, NamesAFewFamilies) {
  OpenPaths paths(Paths({"/a", "/b"}));
  for (int i = 0; i < 5; ++i) {
    paths.AddFamily("cf" + std::to_string(i), {});
  }
  EXPECT_EQ(paths.AddPathTo(Status::IOError("/b/000012.sst")).ToString(),
            "IO error: /b/000012.sst (/b is path id 1 of column family cf0, "
            "path id 1 of column family cf1, path id 1 of column family cf2 "
            "and of 2 more)");
}

TEST(OpenPathsTest, NamesADirectoryThatTheMessageLacks) {
  OpenPaths paths(Paths({"/a", "/b"}));
  paths.AddFamily("default", {});
  const auto add = [&](const Status& s, const std::string& directory) {
    return paths.AddPathTo(s, directory, "cannot be listed").ToString();
  };
  EXPECT_EQ(add(Status::NotFound(), "/b/"),
            "IO error: (path id 1 of column family default: the directory /b "
            "cannot be listed)");
  EXPECT_EQ(add(Status::IOError("x"), "/b"),
            "IO error: x (path id 1 of column family default: the directory /b "
            "cannot be listed)");
  EXPECT_EQ(add(Status::IOError("x"), "/c"), "IO error: x");
  EXPECT_EQ(
      OpenPaths(Paths({"/a"})).AddPathTo(Status::NotFound(), "/a", "x").code(),
      Status::kNotFound);
}

TEST(OpenPathsTest, CreatesDirectories) {
  using Fault = BrokenPathFS::Fault;
  Env* const env = Env::Default();
  const std::string root = test::PerThreadDBPath("open_paths_test");
  DestroyDir(env, root).PermitUncheckedError();
  BrokenPathFS fs(env->GetFileSystem());
  OpenPaths paths(Paths({root, root + "/1"}));
  paths.AddFamily("default", {});
  paths.AddFamily("cold", Paths({root + "/1", root + "/1/2"}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(paths.Create(&fs));
    EXPECT_OK(env->FileExists(root + "/1/2"));
  }
  fs.Break(root + "/1/2", Fault::kNotCreated);
  const Status s = paths.Create(&fs);
  EXPECT_TRUE(s.IsIOError());
  EXPECT_EQ(s.ToString(),
            "IO error: While mkdir if missing: " + root +
                "/1/2: Read-only file system (path id 1 of column family cold: "
                "the directory " +
                root + "/1/2 cannot be created)");
  // Nothing is added twice.
  EXPECT_EQ(paths.AddPathTo(s).ToString(), s.ToString());
  EXPECT_OK(DestroyDir(env, root));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
