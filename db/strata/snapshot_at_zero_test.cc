//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests snapshots at sequence number 0, which see ingested files of a DB that
// was never written to. RocksDB's compactions take such a snapshot for none.

#include <string>

#include "port/stack_trace.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/sst_file_writer.h"
#include "test_util/strata/strata_db_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class SnapshotAtZeroTest : public StrataDBTestBase {
 protected:
  SnapshotAtZeroTest() : StrataDBTestBase("snapshot_at_zero_test") {}

  void Ingest(const Options& options) {
    const std::string name = dbname_ + "/external";
    SstFileWriter writer(EnvOptions(), options);
    ASSERT_OK(writer.Open(name));
    for (const char* key : {"deleted", "merged", "overwritten", "range",
                            "single_deleted", "untouched"}) {
      ASSERT_OK(writer.Put(key, "old"));
    }
    ASSERT_OK(writer.Finish());
    IngestExternalFileOptions ingest_options;
    ingest_options.move_files = true;
    ASSERT_OK(db_->IngestExternalFile({name}, ingest_options));
  }

  void Check(const Snapshot* snapshot) {
    for (const char* key : {"deleted", "merged", "overwritten", "range",
                            "single_deleted", "untouched"}) {
      EXPECT_EQ(Get(key, snapshot), "old") << key;
    }
    EXPECT_EQ(Get("merged"), "old,new");
    EXPECT_EQ(Get("overwritten"), "new");
    EXPECT_EQ(Get("untouched"), "old");
    for (const char* key : {"deleted", "range", "single_deleted"}) {
      EXPECT_EQ(Get(key), "NOT_FOUND") << key;
    }
  }
};

TEST_F(SnapshotAtZeroTest, CompactionsKeepWhatItSees) {
  for (const bool has_map : {false, true}) {
    for (const bool has_deltas : {false, true}) {
      SCOPED_TRACE(std::to_string(has_map) + std::to_string(has_deltas));
      Options options = CurrentOptions();
      options.merge_operator = MergeOperators::CreateStringAppendOperator();
      options.disable_auto_compactions = true;
      options.enable_blob_files = has_map;
      options.enable_blob_address_map = has_map;
      options.enable_delta_separation = has_deltas;
      DestroyAndReopen(options);
      ASSERT_NO_FATAL_FAILURE(Ingest(options));
      const Snapshot* const snapshot = db_->GetSnapshot();
      ASSERT_EQ(snapshot->GetSequenceNumber(), 0U);
      ASSERT_OK(Delete("deleted"));
      ASSERT_OK(SingleDelete("single_deleted"));
      ASSERT_OK(Merge("merged", "new"));
      ASSERT_OK(Put("overwritten", "new"));
      ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                                 "range", "rangez"));
      Check(snapshot);
      ASSERT_OK(Flush());
      Check(snapshot);
      for (int i = 0; i < 2; ++i) {
        CompactRangeOptions compact_options;
        compact_options.bottommost_level_compaction =
            BottommostLevelCompaction::kForce;
        ASSERT_OK(db_->CompactRange(compact_options, nullptr, nullptr));
        Check(snapshot);
      }
      db_->ReleaseSnapshot(snapshot);
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
