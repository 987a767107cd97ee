//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/stored_cost.h"

#include <memory>
#include <string>
#include <vector>

#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

// The directories have files that are made by hand. The database directory is
// path 0, too.
class StoredCostTest : public testing::Test {
 protected:
  StoredCostTest()
      : db_(NormalizePath(test::PerThreadDBPath("stored_cost_test"))),
        slow_(db_ + "_slow"),
        wals_(db_ + "_wals"),
        env_(Env::Default()),
        fs_(env_->GetFileSystem()) {
    DestroyAll();
    for (const std::string& directory : {db_, slow_, wals_}) {
      EXPECT_OK(env_->CreateDirIfMissing(directory));
    }
  }
  ~StoredCostTest() override { DestroyAll(); }

  void DestroyAll() {
    for (const std::string& directory : {db_, slow_, wals_}) {
      EXPECT_OK(DestroyDir(env_, directory));
    }
  }

  void Make(const std::string& fname, size_t size) {
    ASSERT_OK(WriteStringToFile(env_, std::string(size, 'x'), fname));
  }

  StoredCost::Family Family(const std::string& name, double fast, double slow) {
    return {name, {{db_, 0}, {slow_, 0}}, {fast, slow}};
  }

  // Returns the row, or an empty one.
  static StoredCost::Row RowOf(const StoredCost& cost, const std::string& what,
                               const std::string& directory) {
    for (const StoredCost::Row& row : cost.rows()) {
      if (row.what == what && row.directory == directory) {
        return row;
      }
    }
    return StoredCost::Row();
  }

  const std::string db_;
  const std::string slow_;
  const std::string wals_;
  Env* const env_;
  const std::shared_ptr<FileSystem> fs_;
};

TEST_F(StoredCostTest, EachFileCountsOnce) {
  Make(MakeTableFileName(db_, 10), 100);
  Make(BlobFileName(slow_, 11), 1000);
  Make(DeltaFileName(slow_, 12), 50);
  Make(db_ + "/CURRENT", 16);
  Make(db_ + "/LOG", 30);
  ASSERT_OK(env_->CreateDirIfMissing(db_ + "/archive"));
  Make(db_ + "/archive/000003.log", 4);
  ASSERT_OK(env_->CreateDirIfMissing(db_ + "/other"));
  Make(db_ + "/other/file", 5000);
  Make(wals_ + "/000004.log", 200);
  // These are not in the MANIFEST.
  Make(MakeTableFileName(slow_, 20), 7);
  Make(BlobFileName(slow_, 21) + ".trash", 8);
  Make(slow_ + "/README", 9);

  StoredCost cost(fs_.get(), {Family("default", 1024, 256)});
  cost.AddManifest({{"default",
                     {{kTableFile, 10, 0, 100},
                      {kBlobFile, 11, 1, 1000},
                      // The last path stands for a path that is not listed.
                      {kDeltaFile, 12, 3, 50}}},
                    {"unknown", {{kTableFile, 13, 0, 1}}}});
  ASSERT_OK(cost.AddDirectories(db_ + "/", wals_));
  EXPECT_EQ(cost.NumMissing(), 0u);

  const auto fast = RowOf(cost, "[default]", db_);
  EXPECT_EQ(fast.path_id, 0);
  EXPECT_EQ(fast.sst_bytes, 100u);
  EXPECT_EQ(fast.files, 1u);
  EXPECT_EQ(fast.price, 1024);
  const auto slow = RowOf(cost, "[default]", slow_);
  EXPECT_EQ(slow.blob_bytes, 1000u);
  EXPECT_EQ(slow.delta_bytes, 50u);
  EXPECT_EQ(slow.Bytes(), 1050u);
  const auto database = RowOf(cost, "database dir", db_);
  EXPECT_EQ(database.path_id, -1);
  EXPECT_EQ(database.other_bytes, 16u + 30 + 4);
  EXPECT_EQ(database.price, 1024);
  // The directory of the WALs is no path: it has the price of the dearest one.
  const auto wal = RowOf(cost, "WAL dir", wals_);
  EXPECT_EQ(wal.other_bytes, 200u);
  EXPECT_EQ(wal.price, 1024);
  const auto unknown = RowOf(cost, "not in MANIFEST", slow_);
  EXPECT_EQ(unknown.sst_bytes, 7u);
  EXPECT_EQ(unknown.blob_bytes, 8u);
  EXPECT_EQ(unknown.Bytes(), 15u);
  EXPECT_EQ(unknown.price, 256);
  EXPECT_EQ(RowOf(cost, "not in MANIFEST", db_).files, 0u);

  const PathCost sum = cost.Sum();
  EXPECT_EQ(sum.bytes(), 100u + 1050 + 50 + 200 + 15);
  EXPECT_EQ(PathCost::Text(sum.cost()),
            PathCost::Text(PathCost::Of(100 + 50 + 200, 1024) +
                           PathCost::Of(1050 + 15, 256)));
  const std::string text = cost.ToString();
  EXPECT_NE(text.find("sum: 1415 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("ratio: " + sum.RatioText()), std::string::npos) << text;
}

TEST_F(StoredCostTest, MissingFilesCountAndAreReported) {
  StoredCost cost(fs_.get(), {Family("default", 1, 1)});
  cost.AddManifest({{"default", {{kTableFile, 10, 1, 100}}}});
  ASSERT_OK(cost.AddDirectories(db_, db_));
  EXPECT_EQ(cost.NumMissing(), 1u);
  EXPECT_EQ(cost.Sum().bytes(), 100u);
}

// Two column families with the same directories: no file counts twice.
TEST_F(StoredCostTest, FamiliesShareDirectories) {
  Make(MakeTableFileName(db_, 10), 100);
  Make(MakeTableFileName(db_, 11), 30);
  StoredCost cost(fs_.get(), {Family("one", 2, 1), Family("two", 2, 1)});
  cost.AddManifest({{"one", {{kTableFile, 10, 0, 100}}},
                    {"two", {{kTableFile, 11, 0, 30}}}});
  ASSERT_OK(cost.AddDirectories(db_, db_));
  EXPECT_EQ(RowOf(cost, "[one]", db_).sst_bytes, 100u);
  EXPECT_EQ(RowOf(cost, "[two]", db_).sst_bytes, 30u);
  EXPECT_EQ(RowOf(cost, "not in MANIFEST", db_).files, 0u);
  EXPECT_EQ(cost.Sum().bytes(), 130u);
}

TEST_F(StoredCostTest, PricesAreThoseOfDirectories) {
  std::vector<StoredCost::Family> families = {Family("tiered", 0, 0),
                                              Family("plain", 0, 0)};
  families[1].paths = {{slow_ + "/", 0}};
  ASSERT_OK(StoredCost::SetPrices("--prices", {0.5, 0.25}, &families));
  EXPECT_EQ(families[0].prices, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(families[1].prices, std::vector<double>{0.25});

  families[1].paths = {{wals_, 0}};
  Status s = StoredCost::SetPrices("--prices", {0.5, 0.25}, &families);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_NE(s.ToString().find(wals_), std::string::npos) << s.ToString();

  s = StoredCost::SetPrices("--prices", {0.5}, &families);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_NE(s.ToString().find("--prices must have one price for each path"),
            std::string::npos)
      << s.ToString();
  EXPECT_NE(s.ToString().find("tiered"), std::string::npos) << s.ToString();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
