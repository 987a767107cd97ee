//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_feature_report.h"

#include "db/path_layout/path_copy_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "utilities/strata/field_update.h"

namespace ROCKSDB_NAMESPACE {

class LdbFeatureReportTest : public PathCopyTestBase {
 public:
  LdbFeatureReportTest() : PathCopyTestBase("ldb_feature_report_test") {}

  LdbFeatureReport Report(const FeatureSet& features) {
    return LdbFeatureReport(
        features, manifest_, traces_,
        [this](const std::string& line) { text_ += line + "\n"; });
  }

  // Returns what was printed since the last call.
  std::string Take() {
    std::string text;
    std::swap(text, text_);
    return text;
  }

  // Makes a database with values in an address map, and reads its MANIFEST.
  void Make(const Options& options) {
    OpenNew({options});
    PutRange(0, 0, kKeys);
    ASSERT_OK(db_->Flush(FlushOptions()));
    Close();
    ASSERT_OK(manifest_.ReadRecords(fs_.get(), dbname_));
    ASSERT_OK(manifest_.ReadFamilies(
        fs_.get(), [](const std::string&) { return BytewiseComparator(); }));
    options_ = options;
    paths_ = options.cf_paths.empty() ? std::vector<DbPath>{{dbname_, 1 << 30}}
                                      : options.cf_paths;
  }

  std::string Advice(const FeatureSet& features, const std::string& text) {
    Report(features).Advice(
        fs_.get(), dbname_, OptionsWithoutFeatures(text, features),
        [this](const std::string&) {
          return LdbFeatureReport::FamilyPlace{options_, paths_};
        });
    return Take();
  }

  ManifestFeatures manifest_;
  FeatureTraces traces_;
  Options options_;
  std::vector<DbPath> paths_;
  std::string text_;
};

TEST_F(LdbFeatureReportTest, NothingIsThere) {
  const LdbFeatureReport report = Report(FeatureSet::All());
  report.Findings("");
  EXPECT_EQ(Take(), "");
  report.Plan(fs_.get(), FeaturePlan(FeatureSet::All(), false), FeatureSet(),
              /*needs_open=*/false);
  EXPECT_EQ(Take(), "Nothing to do\n");
  ASSERT_OK(report.Remains());
  EXPECT_EQ(Take(), "");
  report.End();
  EXPECT_EQ(Take(), "OK: RocksDB 11.8.1 opens the database\n");
}

TEST_F(LdbFeatureReportTest, OptionsAreNamed) {
  const std::string text =
      "[DBOptions]\n  # strata: max_write_groups_per_leader=8\n"
      "[CFOptions \"a\"]\n  # strata: enable_delta_separation=true\n";
  const LdbFeatureReport report = Report(FeatureSet::kDeltas);
  report.Findings(text);
  EXPECT_EQ(Take(),
            "write_groups: option max_write_groups_per_leader=8; it is to "
            "stay\n"
            "[a] deltas: option enable_delta_separation=true\n");
  report.Plan(fs_.get(), FeaturePlan(FeatureSet::kDeltas, false),
              FeatureSet::kDeltas, /*needs_open=*/true);
  EXPECT_EQ(Take(),
            "To do: open and close the database, which begins a new MANIFEST\n"
            "To do: take the options of deltas out of the OPTIONS file\n");
  traces_.AddOptions(text);
  const Status s = report.Remains();
  EXPECT_TRUE(s.IsIncomplete());
  EXPECT_NE(s.ToString().find("1 thing remains."), std::string::npos)
      << s.ToString();
  EXPECT_EQ(Take(),
            "remains: [a] the OPTIONS file: enable_delta_separation=true\n");
  report.End();
  EXPECT_EQ(Take(),
            "OK: nothing is left of deltas. The database still has deltas, "
            "write_groups\n");
}

TEST_F(LdbFeatureReportTest, FilesAreCounted) {
  Make(FeatureOptions(kMap, "a", 0, {}, {}));
  Report(FeatureSet::kMap).Findings("");
  const std::string text = Take();
  EXPECT_EQ(text.rfind("[default] map: 1 SST file (", 0), 0u) << text;
  EXPECT_NE(text.find(" with names of values, 1 blob file ("),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("The MANIFEST has records that RocksDB refuses, of map"),
            std::string::npos)
      << text;
  EXPECT_TRUE(Report(FeatureSet::kMap).Remains().IsIncomplete());
  EXPECT_EQ(Take().rfind("remains: the MANIFEST: records of map\nremains: "
                         "[default] map: 1 SST file (",
                         0),
            0u);
  ASSERT_OK(Report(FeatureSet::kDeltas).Remains());
  EXPECT_EQ(Advice(FeatureSet::kDeltas, ""), "");
  EXPECT_EQ(Advice(FeatureSet::kMap, "")
                .rfind("[default] enable_blob_garbage_collection is off", 0),
            0u);
  options_.merge_operator = std::make_shared<FieldUpdateOperator>();
  const std::string advice = Advice(FeatureSet::kDeltas, "");
  EXPECT_EQ(
      advice.rfind("[default] RocksDB does not have the merge operator", 0), 0u)
      << advice;
}

TEST_F(LdbFeatureReportTest, PathsArePrinted) {
  Make(FeatureOptions(kBlobs, "a", 2, {1}, {0}));
  EXPECT_EQ(Advice(FeatureSet::kDeltas, ""), "");
  const std::string paths = "cf_paths=" + PathOf("a", 0) + ":1073741824," +
                            PathOf("a", 1) + ":1073741824\n";
  std::string text = Advice(FeatureSet::kLayouts, "");
  EXPECT_EQ(text.rfind("[default] The OPTIONS file does not keep the paths", 0),
            0u)
      << text;
  EXPECT_NE(text.find(paths + "[default] To have all files on the first path"),
            std::string::npos)
      << text;
  const std::string losing =
      "[CFOptions \"default\"]\n"
      "  # strata: delta_sorted_path_id=1\n"
      "  # strata: cf_paths=/fast,/slow\n";
  text = Advice(FeatureSet::kDeltas, losing);
  EXPECT_EQ(text.rfind("[default] RocksDB does not read the paths", 0), 0u)
      << text;
  EXPECT_NE(text.find(paths), std::string::npos) << text;
  options_.compaction_style = kCompactionStyleFIFO;
  text = Advice(FeatureSet::kDeltas, losing);
  EXPECT_EQ(text.rfind("[default] The OPTIONS file does not keep the paths", 0),
            0u)
      << text;
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
