//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/obsolete_bytes.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/path_layout/path_test_util.h"
#include "file/filename.h"
#include "monitoring/instrumented_mutex.h"
#include "port/stack_trace.h"
#include "rocksdb/metadata.h"
#include "test_util/strata/held_point_test_util.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

// Two column families, each with SST files on the first and blob files on the
// second of its two paths.
class ObsoleteBytesTest : public PathTestBase {
 public:
  using Bytes = std::vector<uint64_t>;

  ObsoleteBytesTest() : PathTestBase("obsolete_bytes_test") {
    options_ = {PathOptions("a", 2, {0}, {1}), PathOptions("b", 2, {0}, {1})};
  }

  void Fill(size_t family, const std::string& key) {
    ASSERT_OK(db_->Put(WriteOptions(), handles_[family], key,
                       std::string(2000, 'v')));
    ASSERT_OK(db_->Flush(FlushOptions(), handles_[family]));
  }

  void CompactAll(size_t family) {
    CompactRangeOptions options;
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    options.blob_garbage_collection_policy =
        BlobGarbageCollectionPolicy::kForce;
    options.blob_garbage_collection_age_cutoff = 1;
    ASSERT_OK(db_->CompactRange(options, handles_[family], nullptr, nullptr));
  }

  Bytes Obsolete(size_t family) {
    auto* const cfd =
        static_cast_with_check<ColumnFamilyHandleImpl>(handles_[family])->cfd();
    InstrumentedMutexLock lock(dbfull()->mutex());
    return ObsoleteBytes(cfd, 2);
  }

  // Returns the bytes of SST files on path 0 and of blob files on path 1 that
  // the current Version has.
  Bytes Live(size_t family) {
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(handles_[family], &metadata);
    return {metadata.size, metadata.blob_file_size};
  }

 protected:
  std::vector<Options> options_;
};

TEST_F(ObsoleteBytesTest, NothingIsObsoleteAtFirst) {
  OpenNew(options_);
  Fill(0, "k");
  EXPECT_EQ(Obsolete(0), (Bytes{0, 0}));
}

TEST_F(ObsoleteBytesTest, FilesOfAnOpenIteratorAreObsolete) {
  OpenNew(options_);
  Fill(0, "k1");
  Fill(0, "k2");
  const Bytes before = Live(0);
  std::unique_ptr<Iterator> iterator(
      db_->NewIterator(ReadOptions(), handles_[0]));
  CompactAll(0);
  EXPECT_EQ(Obsolete(0), before);
  // The other column family has none of them.
  EXPECT_EQ(Obsolete(1), (Bytes{0, 0}));
  iterator.reset();
  ASSERT_OK(dbfull()->TEST_WaitForPurge());
  EXPECT_EQ(Obsolete(0), (Bytes{0, 0}));
}

TEST_F(ObsoleteBytesTest, FilesThatMustNotBeDeletedAreObsolete) {
  OpenNew(options_);
  Fill(0, "k1");
  Fill(1, "k1");
  ASSERT_OK(db_->DisableFileDeletions());
  const Bytes before = Live(0);
  CompactAll(0);
  EXPECT_EQ(Obsolete(0), before);
  EXPECT_EQ(Obsolete(1), (Bytes{0, 0}));
  // A second generation of files adds to the first one.
  const Bytes second = Live(0);
  CompactAll(0);
  EXPECT_EQ(Obsolete(0), (Bytes{before[0] + second[0], before[1] + second[1]}));
  ASSERT_OK(db_->EnableFileDeletions());
  EXPECT_EQ(Obsolete(0), (Bytes{0, 0}));
}

// A blob file of an address map that has lost its last value stays on disk as
// long as an older job may still write files.
TEST_F(ObsoleteBytesTest, EmptyFilesOfAMapAreObsoleteWhileAJobRuns) {
  options_[0].enable_blob_address_map = true;
  options_[0].max_background_jobs = 8;
  options_[1].max_background_jobs = 8;
  OpenNew(options_);
  ASSERT_OK(db_->Put(WriteOptions(), handles_[1], "k", std::string(2000, 'v')));
  HeldPoint flush("FlushJob::WriteLevel0Table");
  std::thread thread(
      [this] { EXPECT_OK(db_->Flush(FlushOptions(), handles_[1])); });
  ASSERT_TRUE(flush.WaitUntilReached());
  Fill(0, "k");
  const uint64_t first = Live(0)[1];
  ASSERT_GT(first, 2000u);
  Fill(0, "k");
  EXPECT_EQ(first, Obsolete(0)[1]);
  EXPECT_EQ(0u, Obsolete(1)[1]);
  flush.Release();
  thread.join();
  Fill(1, "k");
  ASSERT_OK(dbfull()->TEST_WaitForPurge());
  EXPECT_EQ(0u, Obsolete(0)[1]);
}

// A file that moves to another level without being rewritten is live.
TEST_F(ObsoleteBytesTest, TrivialMovesMakeNothingObsolete) {
  options_[0].compression = kNoCompression;
  OpenNew(options_);
  Fill(0, "k1");
  ASSERT_OK(db_->DisableFileDeletions());
  std::unique_ptr<Iterator> iterator(
      db_->NewIterator(ReadOptions(), handles_[0]));
  ASSERT_OK(
      db_->CompactRange(CompactRangeOptions(), handles_[0], nullptr, nullptr));
  EXPECT_EQ(Obsolete(0), (Bytes{0, 0}));
  iterator.reset();
  EXPECT_EQ(Obsolete(0), (Bytes{0, 0}));
  ASSERT_OK(db_->EnableFileDeletions());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
