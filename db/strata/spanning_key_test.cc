//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Reads find all entries of a user key whose entries are in two files of one
// level.

#include "db/strata/spanning_key.h"

#include <memory>
#include <string>
#include <vector>

#include "db/db_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/metadata.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class SpanningKeyTest : public DBTestBase {
 public:
  SpanningKeyTest() : DBTestBase("spanning_key_test", /*env_do_fsync=*/false) {}

  // A compaction ends a file of this target size behind the entry that follows
  // a large one, because only data blocks before the last one count as written.
  static constexpr size_t kTargetFileSize = 4096;

  Options SmallFiles() const {
    Options options = CurrentOptions();
    options.disable_auto_compactions = true;
    options.compression = kNoCompression;
    options.target_file_size_base = kTargetFileSize;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    return options;
  }

  // Compacts all keys into the last level. The first file there ends with
  // `key`, and the second one begins with it.
  void CompactIntoFilesSplitAt(const std::string& key) {
    CompactRangeOptions compact;
    compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    compact.change_level = true;
    ASSERT_OK(Flush());
    ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
    ColumnFamilyMetaData meta;
    db_->GetColumnFamilyMetaData(&meta);
    std::vector<SstFileMetaData> files;
    for (const LevelMetaData& level : meta.levels) {
      if (!level.files.empty()) {
        ASSERT_GT(level.level, 0);
        files = level.files;
      }
    }
    ASSERT_GE(files.size(), 2);
    ASSERT_EQ(files[0].largestkey, key);
    ASSERT_EQ(files[1].smallestkey, key);
  }

  std::string MultiGetOne(const std::string& key) {
    const Slice key_slice(key);
    PinnableSlice value;
    Status s;
    db_->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), 1, &key_slice,
                  &value, &s);
    return s.ok() ? value.ToString() : s.ToString();
  }
};

// The range deletion is older than the base and the operands of "k". The file
// of the newest operand contains it, too.
TEST_F(SpanningKeyTest, OlderRangeDeletionHidesNoEntryOfTheKey) {
  const std::string operand(kTargetFileSize, 'o');
  DestroyAndReopen(SmallFiles());
  ASSERT_OK(Put("a", "1"));
  ASSERT_OK(Put("k", "old"));
  const Snapshot* const keeps_deletion = db_->GetSnapshot();
  ASSERT_OK(
      db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "b", "m"));
  ASSERT_OK(Put("k", "base"));
  const Snapshot* const keeps_base = db_->GetSnapshot();
  ASSERT_OK(Merge("k", "small"));
  const Snapshot* const keeps_operand = db_->GetSnapshot();
  ASSERT_OK(Merge("k", operand));
  ASSERT_NO_FATAL_FAILURE(CompactIntoFilesSplitAt("k"));

  const std::string expected = "base,small," + operand;
  EXPECT_EQ(Get("k"), expected);
  EXPECT_EQ(MultiGetOne("k"), expected);
  EXPECT_EQ(Get("k", keeps_operand), "base,small");
  EXPECT_EQ(Get("k", keeps_base), "base");
  EXPECT_EQ(Get("k", keeps_deletion), "old");
  // A newer operand is in the memtable, then in a file of a level above.
  ASSERT_OK(Merge("k", "x"));
  EXPECT_EQ(Get("k"), expected + ",x");
  EXPECT_EQ(MultiGetOne("k"), expected + ",x");
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("k"), expected + ",x");
  EXPECT_EQ(MultiGetOne("k"), expected + ",x");
  std::unique_ptr<Iterator> iterator(db_->NewIterator(ReadOptions()));
  iterator->Seek("k");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->value(), expected + ",x");
  iterator.reset();
  for (const Snapshot* snapshot : {keeps_deletion, keeps_base, keeps_operand}) {
    db_->ReleaseSnapshot(snapshot);
  }
}

// The range deletion lies between the old value and the operands.
TEST_F(SpanningKeyTest, RangeDeletionHidesOnlyOlderEntries) {
  const std::string operand(kTargetFileSize, 'o');
  DestroyAndReopen(SmallFiles());
  ASSERT_OK(Put("a", "1"));
  ASSERT_OK(Put("k", "old"));
  const Snapshot* const keeps_old = db_->GetSnapshot();
  ASSERT_OK(
      db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "b", "m"));
  ASSERT_OK(Merge("k", "small"));
  const Snapshot* const keeps_operand = db_->GetSnapshot();
  ASSERT_OK(Merge("k", operand));
  ASSERT_NO_FATAL_FAILURE(CompactIntoFilesSplitAt("k"));
  EXPECT_EQ(Get("k"), "small," + operand);
  EXPECT_EQ(MultiGetOne("k"), "small," + operand);
  EXPECT_EQ(Get("k", keeps_old), "old");
  db_->ReleaseSnapshot(keeps_old);
  db_->ReleaseSnapshot(keeps_operand);
}

// A DB that is opened read-only with all keys in one level may look up a key in
// a single file, but not if a key is in two files.
TEST_F(SpanningKeyTest, ReadOnlyDbFindsTheNewestEntryOfAKeyInTwoFiles) {
  Options options = SmallFiles();
  options.merge_operator = nullptr;
  options.max_open_files = -1;
  const std::string large(kTargetFileSize, 'v');
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", large));
  ASSERT_OK(Put("b", "old"));
  ASSERT_OK(Put("k", "old"));
  ASSERT_OK(Put("l", "old"));
  const Snapshot* const keeps_deletion = db_->GetSnapshot();
  ASSERT_OK(
      db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), "a0", "m"));
  ASSERT_OK(Put("k", "new"));
  ASSERT_NO_FATAL_FAILURE(CompactIntoFilesSplitAt("k"));
  EXPECT_EQ(Get("k"), "new");
  db_->ReleaseSnapshot(keeps_deletion);
  Close();

  ASSERT_OK(ReadOnlyReopen(options));
  EXPECT_EQ(Get("a"), large);
  EXPECT_EQ(Get("k"), "new");
  EXPECT_EQ(MultiGetOne("k"), "new");
  EXPECT_EQ(Get("l"), "NOT_FOUND");
}

TEST_F(SpanningKeyTest, ChecksCompareTheKeysAtFileBoundaries) {
  const auto key = [](const char* user_key, SequenceNumber seq) {
    return InternalKey(user_key, seq, kTypeValue).Encode().ToString();
  };
  const std::string keys[] = {key("a", 9), key("c", 8), key("c", 7),
                              key("e", 6), key("f", 5), key("f", 4)};
  FdWithKeyRange ranges[3];
  for (int i = 0; i < 3; ++i) {
    ranges[i].smallest_key = keys[2 * i];
    ranges[i].largest_key = keys[2 * i + 1];
  }
  const Comparator* const ucmp = BytewiseComparator();
  EXPECT_TRUE(MaySpanToNextFile(ranges[0], "c", ucmp));
  EXPECT_FALSE(MaySpanToNextFile(ranges[0], "a", ucmp));
  EXPECT_TRUE(MaySpanFromPreviousFile(ranges[1], "c", ucmp));
  EXPECT_FALSE(MaySpanFromPreviousFile(ranges[1], "e", ucmp));
  LevelFilesBrief files;
  files.files = ranges;
  files.num_files = 3;
  EXPECT_TRUE(HasSpanningKey(files, ucmp));
  files.files = ranges + 1;
  files.num_files = 2;
  EXPECT_FALSE(HasSpanningKey(files, ucmp));
  files.num_files = 0;
  EXPECT_FALSE(HasSpanningKey(files, ucmp));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
