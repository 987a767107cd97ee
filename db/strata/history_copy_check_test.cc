//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <cstdint>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/strata/history_copy_check_test_util.h"
#include "test_util/strata/history_db_test_util.h"
#include "test_util/strata/history_interpreter_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// The checks are made on a DB with two paths as if it were a copy.
class HistoryCopyCheckTest : public testing::Test {
 protected:
  HistoryCopyCheckTest()
      : interpreter_(test::PerThreadDBPath("history_copy_check_test"),
                     /*overrides=*/{}) {
    EXPECT_OK(interpreter_.Start());
    EXPECT_EQ(Run({"open", "paths=2", "layout=vertical", "blobs=50",
                   "enable_delta_separation=true"}),
              "");
    EXPECT_EQ(Run({"put", "a", "@100"}), "");
    EXPECT_EQ(Run({"merge", "b", "1"}), "");
    EXPECT_EQ(Run({"flush"}), "");
    layout_.all.cf_paths = {{Db().root() + "/db", 0}, {Db().root() + "/p1", 0}};
    layout_.all.level_sst_path_ids = {0};
    layout_.all.level_blob_path_ids = {1};
  }

  std::string Run(const HistoryWords& words) {
    HistoryInterpreter::Output output;
    interpreter_.Run(words, "step: ", &output);
    return output.text;
  }
  Status Places(const CopyLayout& layout, DB* source = nullptr) {
    return HistoryCopyCheck::Places(Db().env(), Directory(), layout, source);
  }
  HistoryDb& Db() { return interpreter_.db(); }
  std::string Directory() { return Db().root() + "/db"; }
  ColumnFamilyHandle* Handle() {
    return Db().families().at(kDefaultColumnFamilyName).handle;
  }

  HistoryInterpreter interpreter_;
  // That of the DB.
  CopyLayout layout_;
};

TEST_F(HistoryCopyCheckTest, StoredLayoutIsCompared) {
  EXPECT_OK(HistoryCopyCheck::StoredLayout(Db().env(), Directory(), layout_));
  for (int i = 0; i < 5; ++i) {
    SCOPED_TRACE(i);
    CopyLayout other = layout_;
    if (i == 0) {
      other.all.cf_paths[1].path += "x";
    } else if (i == 1) {
      other.all.level_sst_path_ids = {0, 0};
    } else if (i == 2) {
      other.all.level_blob_path_ids.clear();
    } else if (i == 3) {
      other.all.delta_sorted_path_id = 0;
    } else {
      // This family alone has none.
      other.column_families["default"] = CopyLayout::ColumnFamily();
    }
    const Status s =
        HistoryCopyCheck::StoredLayout(Db().env(), Directory(), other);
    EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  }
}

TEST_F(HistoryCopyCheckTest, FilesElsewhereAreFound) {
  EXPECT_OK(Places(layout_));
  CopyLayout other = layout_;
  // A copy in one directory does not have the blob file on another path.
  other.all = CopyLayout::ColumnFamily();
  EXPECT_TRUE(Places(other).IsCorruption());
  other = layout_;
  other.all.cf_paths[0].path += "x";
  EXPECT_TRUE(Places(other).IsCorruption());
  // The layout of another family does not matter.
  other.column_families["default"] = layout_.all;
  EXPECT_OK(Places(other));
}

// The directory is one of the paths, but the layout has another one for the
// file.
TEST_F(HistoryCopyCheckTest, FilesOnWrongPathsAreFound) {
  using Ids = std::vector<uint32_t>;
  const auto with_ssts = [&](const Ids& ids) {
    CopyLayout other = layout_;
    other.all.level_sst_path_ids = ids;
    other.all.delta_sorted_path_id = 0;
    return Places(other);
  };
  const auto with_blobs = [&](const Ids& ids) {
    CopyLayout other = layout_;
    other.all.level_blob_path_ids = ids;
    return Places(other);
  };
  const auto with_sorted = [&](int32_t id, const Ids& sst_ids) {
    CopyLayout other = layout_;
    other.all.delta_sorted_path_id = id;
    other.all.level_sst_path_ids = sst_ids;
    return Places(other);
  };
  // All files are of level 0.
  EXPECT_OK(with_ssts({0, 1}));
  EXPECT_OK(with_ssts({}));
  EXPECT_TRUE(with_ssts({1}).IsCorruption());
  EXPECT_TRUE(with_ssts({1, 0}).IsCorruption());
  EXPECT_OK(with_blobs({1, 0}));
  EXPECT_TRUE(with_blobs({0, 1}).IsCorruption());
  EXPECT_TRUE(with_blobs({}).IsCorruption());
  EXPECT_OK(with_sorted(1, {0}));
  EXPECT_OK(with_sorted(-1, {0, 1}));

  // The SST file is in level 1, and the delta file is sorted.
  EXPECT_EQ(Run({"compact"}), "");
  EXPECT_OK(Places(layout_));
  EXPECT_OK(with_ssts({0}));
  EXPECT_TRUE(with_ssts({0, 1}).IsCorruption());
  EXPECT_OK(with_blobs({0, 1}));
  EXPECT_TRUE(with_blobs({1, 0}).IsCorruption());
  EXPECT_OK(with_sorted(0, {0}));
  EXPECT_TRUE(with_sorted(1, {0}).IsCorruption());
  EXPECT_OK(with_sorted(-1, {0, 0, 0}));
  EXPECT_TRUE(with_sorted(-1, {0, 0, 1}).IsCorruption());
}

TEST_F(HistoryCopyCheckTest, FilesOnWrongPathsOfAPathMapAreFound) {
  const auto with_map = [&](const std::vector<uint32_t>& path_map) {
    CopyLayout other = layout_;
    // No file is where these want it.
    other.all.level_sst_path_ids = {1};
    other.all.level_blob_path_ids = {0};
    other.all.path_map = path_map;
    return Places(other, Db().db());
  };
  EXPECT_OK(with_map({0, 1}));
  EXPECT_TRUE(with_map({1, 0}).IsCorruption());
  EXPECT_TRUE(with_map({1, 1}).IsCorruption());
  EXPECT_TRUE(with_map({0, 0}).IsCorruption());
  // The blob file's path has no entry.
  EXPECT_TRUE(with_map({0}).IsCorruption());
  EXPECT_TRUE(with_map({}).IsCorruption());
}

TEST_F(HistoryCopyCheckTest, PointReadsAreCompared) {
  HistoryModel::Contents contents;
  ASSERT_OK(Db().ReadAll(kDefaultColumnFamilyName, ReadOptions(), &contents));
  ASSERT_EQ(contents.size(), 2U);
  EXPECT_OK(HistoryCopyCheck::PointReads(Db().db(), Handle(), contents));
  HistoryModel::Contents other = contents;
  other["b"][""] = "2";
  EXPECT_TRUE(
      HistoryCopyCheck::PointReads(Db().db(), Handle(), other).IsCorruption());
  other = contents;
  other["c"][""] = "3";
  EXPECT_TRUE(
      HistoryCopyCheck::PointReads(Db().db(), Handle(), other).IsCorruption());
}

TEST_F(HistoryCopyCheckTest, FilesAreShownByDirectory) {
  std::string out;
  ASSERT_OK(HistoryCopyCheck::ShowFiles(
      Env::Default(), Db().root(), {Db().root() + "/db", Db().root() + "/p1"},
      &out));
  EXPECT_EQ(out, "db sst=1 blob=0 delta=1\np1 sst=0 blob=1 delta=0\n");
  EXPECT_NOK(HistoryCopyCheck::ShowFiles(Env::Default(), Db().root(),
                                         {Db().root() + "/none"}, &out));
}

// Copies are made, opened and removed, and what is left of one that failed is
// no obstacle.
TEST_F(HistoryCopyCheckTest, CopiesWithLayouts) {
  const std::string left = Db().root() + "/checkpoint/p1";
  ASSERT_OK(Env::Default()->CreateDir(Db().root() + "/checkpoint"));
  ASSERT_OK(Env::Default()->CreateDir(left));
  ASSERT_OK(WriteStringToFile(Env::Default(), "x", left + "/000012.sst"));
  EXPECT_EQ(Run({"checkpoint", "files", "paths=2", "layout=vertical"}),
            "checkpoint/db sst=1 blob=0 delta=1\n"
            "checkpoint/p1 sst=0 blob=1 delta=0\n");
  EXPECT_TRUE(Env::Default()->FileExists(left).IsNotFound());
  EXPECT_EQ(Run({"backup", "files", "paths=p1,p2", "level_sst_path_ids=1"}),
            "restored/db sst=0 blob=0 delta=0\n"
            "restored/p1 sst=0 blob=1 delta=0\n"
            "restored/p2 sst=1 blob=0 delta=1\n");
  EXPECT_EQ(Run({"checkpoint", "files"}), "checkpoint sst=1 blob=1 delta=1\n");
  EXPECT_TRUE(interpreter_.findings().disagreements().empty());

  // A layout that cannot be is an error, and a contradiction.
  EXPECT_NE(Run({"checkpoint", "paths=2"}).find("error: Invalid argument"),
            std::string::npos);
  EXPECT_NE(Run({"backup", "paths=2", "layout=vertical", "path_map=0"})
                .find("path_map is for checkpoints"),
            std::string::npos);
  EXPECT_EQ(interpreter_.findings().disagreements().size(), 2U);
  EXPECT_OK(interpreter_.findings().mistake());
  Run({"checkpoint", "paths=2", "layout=selective"});
  EXPECT_NE(
      interpreter_.findings().mistake().ToString().find("usage: checkpoint"),
      std::string::npos);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
