//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/feature_traces.h"

#include <algorithm>
#include <string>
#include <vector>

#include "db/path_layout/path_copy_test_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"

namespace ROCKSDB_NAMESPACE {

class FeatureTracesTest : public PathCopyTestBase {
 public:
  FeatureTracesTest() : PathCopyTestBase("feature_traces_test") {}

  // Returns the number of traces whose text contains this one.
  static size_t Count(const FeatureTraces& traces, const std::string& text) {
    return static_cast<size_t>(
        std::count_if(traces.traces().begin(), traces.traces().end(),
                      [&](const FeatureTraces::Trace& trace) {
                        return trace.text.find(text) != std::string::npos;
                      }));
  }

  // Returns the names of the files of this type, with the directory.
  std::vector<std::string> Find(FileType wanted) {
    std::vector<std::string> result;
    for (const std::string& name : Names(dbname_)) {
      uint64_t number = 0;
      FileType type = kInfoLogFile;
      if (ParseFileName(name, &number, &type) && type == wanted) {
        result.push_back(dbname_ + "/" + name);
      }
    }
    return result;
  }
};

TEST_F(FeatureTracesTest, FilesOfRocksDBLeaveNone) {
  const Options options = PlainOptions();
  OpenNew({options});
  PutRange(0, 0, kKeys, 0, /*wal=*/true);
  ASSERT_OK(db_->Flush(FlushOptions()));
  PutRange(0, 0, kKeys, 1, /*wal=*/true);
  Close();
  ASSERT_OK(WriteStringToFile(env_, "text", dbname_ + "/000077.dbtmp"));
  ASSERT_OK(WriteStringToFile(env_, "text", dbname_ + "/lost+found"));
  FeatureTraces traces;
  ASSERT_OK(traces.AddFiles(fs_.get(), {dbname_, dbname_ + "_none"}));
  ASSERT_OK(traces.AddTables(options, Find(kTableFile)));
  traces.AddOptions("[CFOptions \"default\"]\n  num_levels=7\n");
  EXPECT_TRUE(traces.traces().empty()) << traces.traces()[0].text;
  EXPECT_TRUE(traces.Features().IsEmpty());
  EXPECT_EQ(traces.num_tables(), 1u);
  EXPECT_EQ(traces.num_missing_tables(), 0u);
}

TEST_F(FeatureTracesTest, FilesOfAMap) {
  const Options options = FeatureOptions(kMap, "a", 0, {}, {});
  OpenNew({options});
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  Close();
  FeatureTraces traces;
  // A directory that is named twice is read once.
  ASSERT_OK(traces.AddFiles(fs_.get(), {dbname_, dbname_ + "/"}));
  EXPECT_EQ(traces.Features(), FeatureSet(FeatureSet::kMap));
  EXPECT_EQ(Count(traces, "a blob file of format version 2"), 1u);
  EXPECT_EQ(Count(traces, "an image of an address map"), 1u);
  EXPECT_EQ(traces.traces().size(), 2u);
  ASSERT_OK(traces.AddTables(options, Find(kTableFile)));
  EXPECT_EQ(Count(traces, "the property strata.mapped.entries"), 1u);
  EXPECT_EQ(traces.num_tables(), 1u);
  ASSERT_OK(traces.AddTables(options, {dbname_ + "/999999.sst"}));
  EXPECT_EQ(traces.num_missing_tables(), 1u);
  EXPECT_EQ(traces.num_tables(), 1u);
}

TEST_F(FeatureTracesTest, DeltaFilesAndWalBuffer) {
  const Options options = FeatureOptions(kDeltas, "a", 0, {}, {});
  OpenNew({options});
  FillDeltas();
  Close();
  ASSERT_OK(WriteStringToFile(env_, "", WalBufferFileName(dbname_)));
  FeatureTraces traces;
  ASSERT_OK(traces.AddFiles(fs_.get(), {dbname_}));
  EXPECT_EQ(traces.Features().ToString(), "deltas, wal_buffer");
  EXPECT_GE(Count(traces, ".delta: a delta file"), 2u);
  EXPECT_EQ(Count(traces, "WALBUFFER: a WAL buffer"), 1u);
  ASSERT_OK(traces.AddTables(options, Find(kTableFile)));
  EXPECT_EQ(Count(traces, ".sst"), 0u);
}

TEST_F(FeatureTracesTest, OptionsOfStrata) {
  FeatureTraces traces;
  traces.AddOptions(
      "[DBOptions]\n"
      "  # strata: max_write_groups_per_leader=8\n"
      "[CFOptions \"two\"]\n"
      "  # strata: blob_hot_bytes=100\n"
      "  enable_merged_value_cache=true\n");
  ASSERT_EQ(traces.traces().size(), 3u);
  EXPECT_EQ(traces.traces()[0].text,
            "the OPTIONS file: max_write_groups_per_leader=8");
  EXPECT_EQ(traces.traces()[0].features, FeatureSet(FeatureSet::kWriteGroups));
  EXPECT_EQ(traces.traces()[1].text,
            "[two] the OPTIONS file: blob_hot_bytes=100");
  EXPECT_EQ(traces.traces()[1].features.ToString(), "map, layouts");
  EXPECT_EQ(traces.traces()[2].features, FeatureSet(FeatureSet::kMergedValues));
}

TEST_F(FeatureTracesTest, ErrorsNameTheFile) {
  const Options options = PlainOptions();
  ASSERT_OK(env_->CreateDirIfMissing(dbname_));
  const std::string table = dbname_ + "/000009.sst";
  ASSERT_OK(WriteStringToFile(env_, std::string(1000, 'x'), table));
  FeatureTraces traces;
  const Status s = traces.AddTables(options, {table});
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find(table), std::string::npos) << s.ToString();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
