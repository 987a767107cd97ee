//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_path_cost.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/path_layout/path_cost.h"
#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/db.h"
#include "test_util/strata/ldb_call_test_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

// A database with a vertical layout: SST files are in its own directory, blob
// files in another one.
class LdbPathCostTest : public testing::Test {
 protected:
  LdbPathCostTest()
      : dbname_(test::PerThreadDBPath("ldb_path_cost_test")),
        slow_(dbname_ + "_slow"),
        env_(Env::Default()) {
    DestroyAll();
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.disable_auto_compactions = true;
    options_.enable_blob_files = true;
    options_.min_blob_size = 100;
    options_.cf_paths = {{dbname_, 1 << 30}, {slow_, 1 << 30}};
    options_.level_sst_path_ids = {0};
    options_.level_blob_path_ids = {1};
  }
  ~LdbPathCostTest() override { DestroyAll(); }

  void DestroyAll() {
    EXPECT_OK(DestroyDir(env_, dbname_));
    EXPECT_OK(DestroyDir(env_, slow_));
  }

  // Writes two column families with one SST file and one blob file each, and
  // returns the path statistics of the first one.
  std::map<std::string, std::string> Fill() {
    const std::vector<ColumnFamilyDescriptor> families = {
        {kDefaultColumnFamilyName, options_}, {"two", options_}};
    std::vector<ColumnFamilyHandle*> handles;
    std::unique_ptr<DB> db;
    EXPECT_OK(DB::Open(options_, dbname_, families, &handles, &db));
    std::map<std::string, std::string> stats;
    for (ColumnFamilyHandle* handle : handles) {
      EXPECT_OK(db->Put(WriteOptions(), handle, "key", std::string(5000, 'v')));
      EXPECT_OK(db->Flush(FlushOptions(), handle));
    }
    EXPECT_TRUE(
        db->GetMapProperty(handles[0], DB::Properties::kPathStats, &stats));
    for (ColumnFamilyHandle* handle : handles) {
      EXPECT_OK(db->DestroyColumnFamilyHandle(handle));
    }
    return stats;
  }

  // Returns the exit code, and stores what the command prints in output_.
  int Run(const std::vector<std::string>& args) {
    std::vector<std::string> all = {"--db=" + dbname_, "path_cost"};
    all.insert(all.end(), args.begin(), args.end());
    return RunLdb(all, Options(), &output_);
  }

  bool Printed(const std::string& text) {
    return output_.find(text) != std::string::npos;
  }

  std::vector<std::string> Names(const std::string& directory) {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(directory, &names));
    return names;
  }

  const std::string dbname_;
  const std::string slow_;
  Env* const env_;
  Options options_;
  std::string output_;
};

TEST_F(LdbPathCostTest, OneFamilyAgreesWithTheProperty) {
  const auto stats = Fill();
  const std::vector<std::string> before = Names(dbname_);
  ASSERT_EQ(0, Run({"--prices=1024,256", "--column_family=default"}))
      << output_;
  const uint64_t sst = std::stoull(stats.at("path0.sst-bytes"));
  const uint64_t blob = std::stoull(stats.at("path1.blob-bytes"));
  PathCost cost;
  cost.Add(sst, 1024);
  cost.Add(blob, 256);
  EXPECT_TRUE(Printed("sum: " + std::to_string(sst + blob) + " bytes, cost " +
                      PathCost::Text(cost.cost()) + "\n"))
      << output_;
  EXPECT_TRUE(Printed("all on the dearest path (1024 per GiB): " +
                      PathCost::Text(cost.CostOnDearest()) + "\n"))
      << output_;
  EXPECT_TRUE(Printed("ratio: " + cost.RatioText() + "\n")) << output_;
  EXPECT_FALSE(Printed("[two]")) << output_;
  EXPECT_FALSE(Printed("database dir")) << output_;
  // The database was not opened, which would have made a new MANIFEST.
  EXPECT_EQ(before, Names(dbname_));
}

TEST_F(LdbPathCostTest, AllFamiliesWithTheDatabaseDirectory) {
  Fill();
  ASSERT_EQ(0, Run({"--prices=0.25,0.02"})) << output_;
  EXPECT_TRUE(Printed("[default]")) << output_;
  EXPECT_TRUE(Printed("[two]")) << output_;
  EXPECT_TRUE(Printed("database dir")) << output_;
  EXPECT_FALSE(Printed("not in MANIFEST")) << output_;
  EXPECT_FALSE(Printed("warning")) << output_;
  // The sum is what is on disk.
  uint64_t on_disk = 0;
  for (const std::string& directory : {dbname_, slow_}) {
    for (const std::string& name : Names(directory)) {
      uint64_t size = 0;
      if (env_->GetFileSize(directory + "/" + name, &size).ok()) {
        on_disk += size;
      }
    }
  }
  EXPECT_TRUE(Printed("sum: " + std::to_string(on_disk) + " bytes"))
      << on_disk << "\n"
      << output_;
}

TEST_F(LdbPathCostTest, PricesOfTheOptionsAreTheDefault) {
  Fill();
  ASSERT_EQ(1, Run({})) << output_;
  EXPECT_TRUE(Printed("--prices is not given, and path_prices is not set"))
      << output_;
  options_.path_prices = {0.5, 0.125};
  Fill();
  ASSERT_EQ(0, Run({})) << output_;
  EXPECT_TRUE(Printed("all on the dearest path (0.5 per GiB)")) << output_;
}

TEST_F(LdbPathCostTest, WrongPricesAreRefused) {
  Fill();
  for (const char* wrong : {"-1,1", "nan,1", "1,inf", "x", "", "1,"}) {
    ASSERT_EQ(1, Run({std::string("--prices=") + wrong})) << output_;
    EXPECT_TRUE(Printed("--prices")) << output_;
  }
  ASSERT_EQ(1, Run({"--prices=1"})) << output_;
  EXPECT_TRUE(Printed("must have one price for each path")) << output_;
  EXPECT_TRUE(Printed("it has 1, but")) << output_;
  ASSERT_EQ(1, Run({"--prices=1,2,3"})) << output_;
  ASSERT_EQ(1, Run({"--prices=1,2", "--column_family=none"})) << output_;
  ASSERT_EQ(1, Run({"--prices=1,2", "more"})) << output_;
}

// Directories that were moved are named by --cf_paths.
TEST_F(LdbPathCostTest, MovedPathsAndMissingFiles) {
  Fill();
  const std::string moved = dbname_ + "_moved";
  EXPECT_OK(DestroyDir(env_, moved));
  ASSERT_OK(env_->RenameFile(slow_, moved));
  ASSERT_EQ(0, Run({"--prices=1,1"})) << output_;
  EXPECT_TRUE(Printed("warning: 2 files of the MANIFEST are not on disk"))
      << output_;
  // Files of other column families do not count.
  ASSERT_EQ(0, Run({"--prices=1,1", "--column_family=two"})) << output_;
  EXPECT_TRUE(Printed("warning: 1 files of the MANIFEST are not on disk"))
      << output_;
  ASSERT_EQ(0, Run({"--prices=1,1", "--cf_paths=" + dbname_ + "," + moved}))
      << output_;
  EXPECT_FALSE(Printed("warning")) << output_;
  EXPECT_TRUE(Printed(moved)) << output_;
  ASSERT_EQ(0, Run({"--prices=1,1", "--cf_paths=" + dbname_ + "," + moved,
                    "--column_family=two"}))
      << output_;
  EXPECT_FALSE(Printed("warning")) << output_;
  EXPECT_OK(DestroyDir(env_, moved));
}

TEST_F(LdbPathCostTest, NeedsADatabase) {
  ASSERT_EQ(1, RunLdb({"path_cost", "--prices=1"}, Options(), &output_))
      << output_;
  EXPECT_TRUE(Printed("path_cost needs --db")) << output_;
  // Without a MANIFEST there is nothing to price.
  ASSERT_EQ(1, Run({"--prices=1", "--try_load_options=false"})) << output_;
  EXPECT_TRUE(Printed(dbname_)) << output_;
}

// Without paths in the options, the only path is the directory of the database.
TEST_F(LdbPathCostTest, TheDatabaseDirectoryIsTheOnlyPath) {
  options_.cf_paths.clear();
  options_.level_sst_path_ids.clear();
  options_.level_blob_path_ids.clear();
  Fill();
  ASSERT_EQ(0, Run({"--prices=1", "--try_load_options=false"})) << output_;
  EXPECT_TRUE(Printed(dbname_)) << output_;
  EXPECT_FALSE(Printed("warning")) << output_;
  ASSERT_EQ(1, Run({"--prices=1,2", "--try_load_options=false"})) << output_;
  EXPECT_TRUE(Printed("it has 2, but")) << output_;
  ASSERT_EQ(1, Run({"--prices=1", "--try_load_options=false",
                    "--column_family=none"}))
      << output_;
  EXPECT_TRUE(Printed("Non-existing column family none")) << output_;
}

TEST_F(LdbPathCostTest, HelpNamesTheCommand) {
  ASSERT_EQ(0, RunLdb({"--help"}, Options(), &output_));
  EXPECT_TRUE(Printed("  path_cost [--prices=<price of a GiB on each path"))
      << output_;
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
