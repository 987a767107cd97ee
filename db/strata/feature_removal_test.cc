//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/feature_removal.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/path_layout/path_copy_test_util.h"
#include "db/strata/refused_records.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

class FeatureRemovalTest : public PathCopyTestBase {
 public:
  using Work = FeaturePlan::Work;

  FeatureRemovalTest() : PathCopyTestBase("feature_removal_test") {}

  // Makes a database with entries in level 0 and in a deeper level.
  void Make(const Options& options) {
    DestroyAll();
    options_ = options;
    OpenNew({options_});
    FillTwoLevels();
    ASSERT_OK(VerifyData());
  }

  // Opens it with the options of a session for all features.
  void OpenSession() {
    FeaturePlan(FeatureSet::All(), /*into_first_path=*/false)
        .SetSessionOptions(options_.cf_paths.empty()
                               ? std::vector<DbPath>{{dbname_, 1 << 30}}
                               : options_.cf_paths,
                           &options_);
    ASSERT_OK(Open({options_}, /*create_families=*/false));
  }

  Status Run(Work work, uint32_t target_path_id = 0) {
    lines_.clear();
    FeatureRemoval removal(
        db_.get(), FeatureSet::All(), /*num_threads=*/2,
        [this](const std::string& line) { lines_ += line + "\n"; });
    return removal.Run(Handle(0), work, target_path_id);
  }

  FeatureSet Left() {
    ColumnFamilyData* const cfd =
        static_cast_with_check<ColumnFamilyHandleImpl>(Handle(0))->cfd();
    InstrumentedMutexLock lock(dbfull()->mutex());
    return FeaturesRefusedByRocksDB(*cfd->current()->storage_info());
  }

  Options options_;
  std::string lines_;
};

TEST_F(FeatureRemovalTest, ValuesLeaveTheMap) {
  for (const uint32_t num_paths : {0u, 2u}) {
    Make(FeatureOptions(kMap, "a", num_paths,
                        num_paths == 0 ? Ids{} : Ids{0, 1},
                        num_paths == 0 ? Ids{} : Ids{1}));
    EXPECT_TRUE(Left().Has(FeatureSet::kMap));
    OpenSession();
    ASSERT_OK(Run(Work::kRewrite));
    EXPECT_EQ(Left().ToString(), "");
    EXPECT_EQ(lines_, "");
    ASSERT_OK(VerifyData());
    ASSERT_OK(db_->VerifyChecksum());
  }
}

// Without an SST layout, the path of SST files is that of the call.
TEST_F(FeatureRemovalTest, SstFilesStayOnTheirPath) {
  Make(FeatureOptions(kMap, "a", 2, {}, {}));
  CompactRangeOptions compact;
  compact.target_path_id = 1;
  compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(compact, Handle(0), nullptr, nullptr));
  OpenSession();
  ASSERT_OK(Run(Work::kRewrite, /*target_path_id=*/1));
  EXPECT_EQ(Left().ToString(), "");
  std::set<uint32_t> ids;
  for (int level = 0; level < options_.num_levels; ++level) {
    for (const uint32_t id : SstPathIds(0, options_, level)) {
      ids.insert(id);
    }
  }
  EXPECT_EQ(ids, std::set<uint32_t>{1});
  EXPECT_EQ(BlobPathIds(0, options_), std::set<uint32_t>{0});
  ASSERT_OK(VerifyData());
}

// The compaction leaves the files of the last level alone.
TEST_F(FeatureRemovalTest, WhatIsLeftIsRewritten) {
  Make(FeatureOptions(kMap, "a", 0, {}, {}));
  ASSERT_OK(
      db_->CompactRange(CompactRangeOptions(), Handle(0), nullptr, nullptr));
  OpenSession();
  ASSERT_OK(Run(Work::kCompact));
  EXPECT_NE(lines_.find("something is left"), std::string::npos) << lines_;
  EXPECT_EQ(Left().ToString(), "");
  ASSERT_OK(VerifyData());
}

TEST_F(FeatureRemovalTest, OperandsBecomeValues) {
  Make(FeatureOptions(kDeltas, "a", 0, {}, {}));
  FillDeltas();
  EXPECT_EQ(Left(), FeatureSet(FeatureSet::kDeltas));
  OpenSession();
  ASSERT_OK(Run(Work::kCompact));
  EXPECT_EQ(Left().ToString(), "");
  ASSERT_OK(VerifyData());
}

TEST_F(FeatureRemovalTest, BlobFilesMoveToTheFirstPath) {
  Make(FeatureOptions(kBlobs, "a", 2, {0, 1}, {0, 1}));
  EXPECT_EQ(Left(), FeatureSet(FeatureSet::kLayouts));
  const auto deep = SstPathIds(0, options_, 1);
  OpenSession();
  ASSERT_OK(Run(Work::kMove));
  EXPECT_NE(lines_.find("bytes moved, 0 files left"), std::string::npos)
      << lines_;
  EXPECT_EQ(Left().ToString(), "");
  EXPECT_EQ(BlobPathIds(0, options_), std::set<uint32_t>{0});
  // The SST files are where they were.
  EXPECT_EQ(SstPathIds(0, options_, 1), deep);
  ASSERT_OK(VerifyData());
}

TEST_F(FeatureRemovalTest, NoWork) {
  Make(PlainOptions());
  OpenSession();
  ASSERT_OK(Run(Work::kNone));
  EXPECT_EQ(lines_, "");
  ASSERT_OK(VerifyData());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
