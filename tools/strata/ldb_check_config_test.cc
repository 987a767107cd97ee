//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_check_config.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "db/path_layout/directory_names.h"
#include "file/file_util.h"
#include "options/strata_config/options_config.h"
#include "port/stack_trace.h"
#include "rocksdb/db.h"
#include "test_util/strata/ldb_call_test_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

class LdbCheckConfigTest : public testing::Test {
 protected:
  LdbCheckConfigTest()
      : dir_(CleanDirectoryName(
            /*fs=*/nullptr, test::PerThreadDBPath("ldb_check_config_test"))),
        file_(dir_ + "/c.ini"),
        env_(Env::Default()) {
    EXPECT_EQ(0, unsetenv(OptionsConfig::kVariable));
    EXPECT_OK(DestroyDir(env_, dir_));
    EXPECT_OK(env_->CreateDirIfMissing(dir_));
    options_.create_if_missing = true;
  }
  ~LdbCheckConfigTest() override {
    EXPECT_EQ(0, unsetenv(OptionsConfig::kVariable));
    EXPECT_OK(DestroyDir(env_, dir_));
  }

  std::string NameOf(const std::string& database) const {
    return dir_ + "/" + database;
  }
  // Makes a database with one SST file.
  void Create(const std::string& database) {
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options_, NameOf(database), &db));
    ASSERT_OK(db->Put(WriteOptions(), "k", "v"));
    ASSERT_OK(db->Flush(FlushOptions()));
  }
  void Write(const std::string& text) {
    ASSERT_OK(WriteStringToFile(env_, text, file_));
  }

  // Returns the exit code, and stores what the command prints in output_.
  int Run(const std::string& db, const std::string& command,
          const std::vector<std::string>& args) {
    std::vector<std::string> all = {"--db=" + db, command};
    all.insert(all.end(), args.begin(), args.end());
    return RunLdb(all, Options(), &output_);
  }
  int Check(const std::string& db) {
    return Run(db, "check_config", {"--config=" + file_});
  }
  bool Printed(const std::string& text) const {
    return output_.find(text) != std::string::npos;
  }
  std::vector<std::string> Names(const std::string& database) const {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(NameOf(database), &names));
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string dir_;
  const std::string file_;
  Env* const env_;
  Options options_;
  std::string output_;
};

TEST_F(LdbCheckConfigTest, ShowsWhatWouldChange) {
  options_.min_blob_size = 5;
  Create("a");
  Write("[DBOptions \"" + dir_ + "/*\"]\n" +
        "max_open_files = 100\n"
        "[CFOptions \"*\" \"default\"]\n"
        "min_blob_size = 5\n"
        "enable_blob_files = true\n"
        "[CFOptions \"*\" \"x\"]\n");
  const std::vector<std::string> before = Names("a");
  ASSERT_EQ(0, Check(NameOf("a"))) << output_;
  EXPECT_TRUE(Printed(NameOf("a") +
                      ": 1 column families, with the options of its OPTIONS "
                      "file\n"))
      << output_;
  EXPECT_TRUE(Printed("  max_open_files: -1 -> 100 (" + file_ + ":2)\n"))
      << output_;
  EXPECT_TRUE(
      Printed("  [default] min_blob_size is 5 already (" + file_ + ":4)\n"))
      << output_;
  EXPECT_TRUE(Printed("  [default] enable_blob_files: false -> true (" + file_ +
                      ":5)\n"))
      << output_;
  EXPECT_TRUE(Printed("  an open would not be refused for its options\n"))
      << output_;
  EXPECT_TRUE(Printed(file_ + ":6: the section matches none of these\n"))
      << output_;
  // The database was not opened, which would have made a new MANIFEST.
  EXPECT_EQ(before, Names("a"));
}

TEST_F(LdbCheckConfigTest, APatternNamesSeveralDatabases) {
  Create("a");
  Create("b");
  ASSERT_OK(env_->CreateDirIfMissing(NameOf("c")));
  Write("[CFOptions \"*/a\" \"*\"]\nmin_blob_size = 7\n");
  ASSERT_EQ(0, Check(dir_ + "/*")) << output_;
  EXPECT_TRUE(Printed(NameOf("a") + ": ")) << output_;
  EXPECT_TRUE(Printed(NameOf("b") + ": ")) << output_;
  EXPECT_FALSE(Printed(NameOf("c") + ": ")) << output_;
  EXPECT_TRUE(Printed("  no section matches\n")) << output_;
  EXPECT_TRUE(Printed("min_blob_size: 0 -> 7")) << output_;
  EXPECT_FALSE(Printed("none of these")) << output_;
  ASSERT_EQ(1, Check(dir_ + "/d*")) << output_;
  EXPECT_TRUE(Printed("no database matches")) << output_;
}

TEST_F(LdbCheckConfigTest, ANewDatabaseHasDefaults) {
  Write("[DBOptions \"*\"]\nmax_open_files = 100\n");
  ASSERT_EQ(0, Check(NameOf("new"))) << output_;
  EXPECT_TRUE(Printed("which does not exist yet")) << output_;
  EXPECT_TRUE(Printed("max_open_files: -1 -> 100")) << output_;
  EXPECT_TRUE(env_->FileExists(NameOf("new")).IsNotFound());
  // One that was renamed has left files.
  ASSERT_OK(env_->CreateDirIfMissing(NameOf("path")));
  ASSERT_OK(WriteStringToFile(env_, "", NameOf("path") + "/000001.sst"));
  Write("[CFOptions \"" + NameOf("new") + "\" \"later\"]\n" +
        "cf_paths = " + NameOf("path") + "\n");
  ASSERT_EQ(1, Check(NameOf("new"))) << output_;
  EXPECT_TRUE(Printed("left by another database")) << output_;
}

// The hidden family has no lines.
TEST_F(LdbCheckConfigTest, StatisticsHaveNoLines) {
  options_.persist_stats_to_disk = true;
  Create("a");
  Write("[CFOptions \"*\" \"*\"]\nmin_blob_size = 7\n");
  ASSERT_EQ(0, Check(NameOf("a"))) << output_;
  EXPECT_TRUE(Printed("[default] min_blob_size: 0 -> 7")) << output_;
  EXPECT_FALSE(Printed("[" + kPersistentStatsColumnFamilyName + "]"))
      << output_;
}

TEST_F(LdbCheckConfigTest, WrongFilesAreFound) {
  Create("a");
  ASSERT_EQ(1, Check(NameOf("a"))) << output_;  // no file
  EXPECT_TRUE(Printed("cannot be read")) << output_;
  Write("[DBOptions \"/other\"]\n\nno_such = 1\n");
  ASSERT_EQ(1, Check(NameOf("a"))) << output_;
  EXPECT_TRUE(Printed(file_ + ":3: no_such=1")) << output_;
  ASSERT_EQ(1, Run(NameOf("a"), "check_config", {})) << output_;
  EXPECT_TRUE(Printed("needs --config")) << output_;
  ASSERT_EQ(1, Run(NameOf("a"), "check_config", {"--config=x", "more"}))
      << output_;
}

TEST_F(LdbCheckConfigTest, RefusedOpensAreFound) {
  Create("a");
  Create("b");
  Write("[CFOptions \"*/a\" \"*\"]\nenable_delta_separation = true\n");
  ASSERT_EQ(1, Check(dir_ + "/[ab]")) << output_;
  EXPECT_TRUE(Printed("an open would be refused: ")) << output_;
  EXPECT_TRUE(Printed("merge_operator")) << output_;
  EXPECT_TRUE(Printed("1 of 2 databases would be refused")) << output_;
  // The file that the database has would not be on its path.
  Write("[CFOptions \"" + NameOf("a") + "\" \"*\"]\n" +
        "cf_paths = " + NameOf("x") + "," + NameOf("y") + "\n");
  ASSERT_EQ(1, Check(NameOf("a"))) << output_;
  EXPECT_TRUE(Printed("Path id 0 of column family default is missing"))
      << output_;
  // A path is the directory of another database.
  Write("[DBOptions \"" + NameOf("a") + "\"]\ndb_paths = " + NameOf("a") + "," +
        NameOf("b") + "\n");
  ASSERT_EQ(1, Check(NameOf("a"))) << output_;
  EXPECT_TRUE(Printed("is a database itself")) << output_;
  // Its OPTIONS file has paths that the file gives another one.
  options_.cf_paths = {{NameOf("c"), UINT64_MAX},
                       {NameOf("paths"), UINT64_MAX}};
  options_.level_sst_path_ids = {0};
  Create("c");
  Write("[CFOptions \"" + NameOf("d") + "\" \"*\"]\n" + "cf_paths = {dir}," +
        NameOf("paths") + "\n");
  ASSERT_EQ(1, Check(NameOf("c"))) << output_;
  EXPECT_TRUE(Printed(file_ + ":2: cf_paths: \"" + NameOf("paths") + "\""))
      << output_;
  EXPECT_TRUE(Printed("a path of " + NameOf("d"))) << output_;
  // The directory has files, and is a path of another database.
  ASSERT_OK(WriteStringToFile(env_, "", NameOf("paths") + "/000099.sst"));
  ASSERT_EQ(1, Check(NameOf("paths"))) << output_;
  EXPECT_TRUE(Printed("is by this line a path of " + NameOf("d") + "."))
      << output_;
}

// Other commands obey the variable, as any program.
TEST_F(LdbCheckConfigTest, CommandsObeyTheVariable) {
  Create("a");
  Write("[CFOptions \"*\" \"*\"]\nmin_blob_size = x\n");
  ASSERT_EQ(0, setenv(OptionsConfig::kVariable, file_.c_str(), 1));
  ASSERT_EQ(1, Run(NameOf("a"), "scan", {})) << output_;
  EXPECT_TRUE(Printed("STRATA_CONFIG: " + file_ + ":2")) << output_;
  // It is the default of --config.
  ASSERT_EQ(1, Run(NameOf("a"), "check_config", {})) << output_;
  EXPECT_TRUE(Printed(file_ + ":2")) << output_;
  Write("[CFOptions \"*\" \"*\"]\nmin_blob_size = 7\n");
  ASSERT_EQ(0, Run(NameOf("a"), "scan", {})) << output_;
  // A command that gives the map up would get it again.
  Write(
      "[CFOptions \"*\" \"*\"]\nenable_blob_files = true\n"
      "enable_blob_address_map = true\n");
  ASSERT_EQ(1, Run(NameOf("a"), "disable_address_map", {"--try_load_options"}))
      << output_;
  EXPECT_TRUE(Printed("turns enable_blob_address_map on")) << output_;
}

TEST_F(LdbCheckConfigTest, UnreadableOptionsFileIsTold) {
  Create("a");
  Write("[CFOptions \"*\" \"*\"]\nmin_blob_size = 7\n");
  for (const std::string& name : Names("a")) {
    if (name.rfind("OPTIONS-", 0) == 0) {
      ASSERT_OK(WriteStringToFile(env_, "[Version]\nno_such\n",
                                  NameOf("a") + "/" + name));
    }
  }
  ASSERT_EQ(1, Check(NameOf("a"))) << output_;
  EXPECT_TRUE(Printed("in the OPTIONS file of")) << output_;
  EXPECT_TRUE(Printed(NameOf("a"))) << output_;
}

// Without a database, the file alone is checked.
TEST_F(LdbCheckConfigTest, AFileIsCheckedWithoutADatabase) {
  const auto check = [this] {
    return RunLdb({"check_config", "--config=" + file_}, Options(), &output_);
  };
  Write("[CFOptions \"*\" \"*\"]\nmin_blob_size = 7\n");
  EXPECT_EQ(0, check()) << output_;
  EXPECT_FALSE(Printed("min_blob_size")) << output_;
  Write("[CFOptions \"*\" \"*\"]\nmin_blob_size = x\n");
  EXPECT_EQ(1, check()) << output_;
  EXPECT_TRUE(Printed(file_ + ":2")) << output_;
}

TEST_F(LdbCheckConfigTest, HelpNamesTheCommand) {
  ASSERT_EQ(0, RunLdb({"--help"}, Options(), &output_));
  EXPECT_TRUE(Printed("  check_config [--config=<file of STRATA_CONFIG>] : "))
      << output_;
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
