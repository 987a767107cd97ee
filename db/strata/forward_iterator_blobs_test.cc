//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// A tailing iterator reads a value in a blob file through the Version that has
// the value's entry. The Version that the iterator was made with does not have
// newer blob files, and may have been freed.

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "port/stack_trace.h"
#include "rocksdb/utilities/write_batch_with_index.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/strata_db_test_util.h"
#include "utilities/merge_operators.h"
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace ROCKSDB_NAMESPACE {

// The parameters are allow_unprepared_value, and whether another iterator keeps
// the Version that the tailing iterator was made with.
class ForwardIteratorBlobsTest
    : public StrataDBTestBase,
      public testing::WithParamInterface<std::tuple<bool, bool>> {
 public:
  ForwardIteratorBlobsTest() : StrataDBTestBase("forward_iterator_blobs_test") {
    read_options_.tailing = true;
    read_options_.allow_unprepared_value = std::get<0>(GetParam());
  }

  // With these options each compaction moves all values to new blob files.
  Options BlobOptions() const {
    Options options = CurrentOptions();
    options.disable_auto_compactions = true;
    options.enable_blob_files = true;
    options.min_blob_size = kMinBlobSize;
    options.enable_blob_garbage_collection = true;
    options.blob_garbage_collection_age_cutoff = 1.0;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    return options;
  }

  // Returns a value that a flush writes to a blob file.
  static std::string Large(const std::string& text) {
    return text + std::string(kMinBlobSize, '.');
  }

 protected:
  static constexpr size_t kMinBlobSize = 100;

  // Makes a tailing iterator, and, if that is a parameter, one that keeps the
  // Version.
  std::unique_ptr<Iterator> NewTailingIterator() {
    if (keeps_version()) {
      keeper_.reset(db_->NewIterator(ReadOptions()));
    }
    return std::unique_ptr<Iterator>(db_->NewIterator(read_options_));
  }

  bool keeps_version() const { return std::get<1>(GetParam()); }

  // Returns the key and the columns where the iterator is. Each value is
  // without the dots that make it large.
  // REQUIRES: not called before at this position: some iterators prepare a
  // value only once.
  static std::string Show(Iterator* iter) {
    if (!iter->Valid() || !iter->PrepareValue()) {
      return iter->status().ok() ? "." : iter->status().ToString();
    }
    std::string shown = iter->key().ToString();
    for (const WideColumn& column : iter->columns()) {
      shown.append(" ").append(column.name().ToString());
      shown.append("=").append(column.value().ToString());
    }
    std::erase(shown, '.');
    return shown;
  }
  static std::string SeekAndShow(Iterator* iter, const Slice& key) {
    iter->Seek(key);
    return Show(iter);
  }
  static std::string StepAndShow(Iterator* iter) {
    iter->Next();
    return Show(iter);
  }

  // Moves all values to new blob files.
  void MoveBlobs(int cf = 0) {
    const std::set<uint64_t> before = FilesOnDisk(kBlobFile);
    ASSERT_FALSE(before.empty());
    ASSERT_OK(ForceCompaction(cf));
    const std::set<uint64_t> after = FilesOnDisk(kBlobFile);
    ASSERT_GT(*after.rbegin(), *before.rbegin());
  }

  ReadOptions read_options_;
  std::unique_ptr<Iterator> keeper_;
};

// The iterator meets blob files that are newer than itself, while the older
// ones are deleted.
TEST_P(ForwardIteratorBlobsTest, ValuesOfNewerFilesAreRead) {
  DestroyAndReopen(BlobOptions());
  for (const char* key : {"a", "b", "c", "d"}) {
    ASSERT_OK(Put(key, Large(key)));
  }
  ASSERT_OK(Flush());
  const std::set<uint64_t> first_files = FilesOnDisk(kBlobFile);
  const std::unique_ptr<Iterator> iter = NewTailingIterator();
  ASSERT_EQ(SeekAndShow(iter.get(), "a"), "a =a");
  MoveBlobs();
  ASSERT_EQ(StepAndShow(iter.get()), "b =b");
  // The iterator has released the files.
  for (const uint64_t number : FilesOnDisk(kBlobFile)) {
    EXPECT_TRUE(keeps_version() || first_files.count(number) == 0) << number;
  }
  ASSERT_OK(Put("c", Large("new")));
  ASSERT_OK(Flush());
  ASSERT_EQ(StepAndShow(iter.get()), "c =new");
  MoveBlobs();
  ASSERT_EQ(StepAndShow(iter.get()), "d =d");
  MoveBlobs();
  ASSERT_EQ(SeekAndShow(iter.get(), "c"), "c =new");
  MoveBlobs();
  iter->SeekToFirst();
  ASSERT_EQ(Show(iter.get()), "a =a");
}

// The value is prepared, or read again, when the database has a newer Version
// than the iterator. The iterator keeps the blob file.
TEST_P(ForwardIteratorBlobsTest, ValueStaysBesideAJob) {
  DestroyAndReopen(BlobOptions());
  for (const char* key : {"a", "b"}) {
    ASSERT_OK(Put(key, Large(key)));
  }
  ASSERT_OK(Flush());
  const std::unique_ptr<Iterator> iter = NewTailingIterator();
  ASSERT_EQ(SeekAndShow(iter.get(), "a"), "a =a");
  MoveBlobs();
  iter->Next();
  MoveBlobs();
  ASSERT_EQ(Show(iter.get()), "b =b");
  MoveBlobs();
  ASSERT_TRUE(iter->Valid());
  ASSERT_EQ(iter->value(), Large("b"));
  iter->Next();
  ASSERT_FALSE(iter->Valid());
  ASSERT_OK(iter->status());
}

TEST_P(ForwardIteratorBlobsTest, ColumnsOfNewerFilesAreRead) {
  DestroyAndReopen(BlobOptions());
  for (const std::string key : {"a", "b", "c"}) {
    ASSERT_OK(
        db_->PutEntity(WriteOptions(), db_->DefaultColumnFamily(), key,
                       WideColumns{{kDefaultWideColumnName, Large("v" + key)},
                                   {"large", Large("l" + key)},
                                   {"small", "s"}}));
  }
  ASSERT_OK(Flush());
  ASSERT_FALSE(FilesOnDisk(kBlobFile).empty());
  const std::unique_ptr<Iterator> iter = NewTailingIterator();
  ASSERT_EQ(SeekAndShow(iter.get(), "a"), "a =va large=la small=s");
  MoveBlobs();
  ASSERT_EQ(StepAndShow(iter.get()), "b =vb large=lb small=s");
  ASSERT_EQ(iter->value(), Large("vb"));
  MoveBlobs();
  ASSERT_EQ(SeekAndShow(iter.get(), "c"), "c =vc large=lc small=s");
}

// The base of a merge is in a blob file, or is an entity with a column in one.
TEST_P(ForwardIteratorBlobsTest, BasesInNewerFilesAreMerged) {
  DestroyAndReopen(BlobOptions());
  for (const char* key : {"a", "b", "d"}) {
    ASSERT_OK(Put(key, Large(key)));
  }
  ASSERT_OK(db_->PutEntity(WriteOptions(), db_->DefaultColumnFamily(), "c",
                           WideColumns{{kDefaultWideColumnName, Large("c")},
                                       {"large", Large("l")}}));
  ASSERT_OK(Flush());
  const std::unique_ptr<Iterator> iter = NewTailingIterator();
  ASSERT_EQ(SeekAndShow(iter.get(), "a"), "a =a");
  MoveBlobs();
  for (const char* key : {"b", "c", "d"}) {
    ASSERT_OK(Merge(key, "1"));
    ASSERT_OK(Merge(key, "2"));
  }
  ASSERT_EQ(StepAndShow(iter.get()), "b =b,1,2");
  ASSERT_EQ(StepAndShow(iter.get()), "c =c,1,2 large=l");
  // The compaction merges the operands into the values.
  MoveBlobs();
  ASSERT_EQ(StepAndShow(iter.get()), "d =d,1,2");
  ASSERT_EQ(SeekAndShow(iter.get(), "c"), "c =c,1,2 large=l");
}

// An iterator over several column families has a tailing iterator of each.
TEST_P(ForwardIteratorBlobsTest, FamiliesAreReadTogether) {
  Options options = BlobOptions();
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"family"}, options);
  ASSERT_OK(Put(0, "a", Large("a")));
  ASSERT_OK(Put(1, "b", Large("b")));
  ASSERT_OK(Put(0, "c", Large("c")));
  ASSERT_OK(Put(1, "d", Large("d")));
  ASSERT_OK(Flush({0, 1}));
  const std::unique_ptr<Iterator> iter =
      db_->NewCoalescingIterator(read_options_, handles_);
  ASSERT_EQ(SeekAndShow(iter.get(), "a"), "a =a");
  for (const char* entry : {"b =b", "c =c", "d =d", "."}) {
    MoveBlobs(0);
    MoveBlobs(1);
    ASSERT_EQ(StepAndShow(iter.get()), entry);
  }
}

// A transaction's iterator shows its batch over a tailing iterator.
TEST_P(ForwardIteratorBlobsTest, BatchIsShownOverNewerFiles) {
  DestroyAndReopen(BlobOptions());
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_OK(Put(key, Large(key)));
  }
  ASSERT_OK(Flush());
  WriteBatchWithIndex batch(BytewiseComparator(), /*reserved_bytes=*/0,
                            /*overwrite_key=*/true);
  ASSERT_OK(batch.Put("ab", "own"));
  ASSERT_OK(batch.Merge("c", "1"));
  const std::unique_ptr<Iterator> iter(batch.NewIteratorWithBase(
      db_->DefaultColumnFamily(), NewTailingIterator().release(),
      &read_options_));
  ASSERT_EQ(SeekAndShow(iter.get(), "a"), "a =a");
  for (const char* entry : {"ab =own", "b =b", "c =c,1", "."}) {
    MoveBlobs();
    ASSERT_EQ(StepAndShow(iter.get()), entry);
  }
}

// Values from before an address map are in the blob files of Versions until a
// compaction takes them into the map.
TEST_P(ForwardIteratorBlobsTest, ValuesFromBeforeAMapAreRead) {
  Options options = BlobOptions();
  options.enable_blob_garbage_collection = false;
  DestroyAndReopen(options);
  for (const char* key : {"a", "b", "c", "d"}) {
    ASSERT_OK(Put(key, Large(key)));
  }
  ASSERT_OK(Flush());
  options.enable_blob_address_map = true;
  options.blob_gc_space_amp_limit = 0;
  Reopen(options);
  ASSERT_OK(Put("z", Large("z")));
  const std::unique_ptr<Iterator> iter = NewTailingIterator();
  ASSERT_EQ(SeekAndShow(iter.get(), "a"), "a =a");
  ASSERT_OK(Flush());
  // The iterator sees these when it takes the new SuperVersion.
  ASSERT_OK(Merge("c", "1"));
  ASSERT_OK(Merge("z", "1"));
  ASSERT_EQ(StepAndShow(iter.get()), "b =b");
  ASSERT_EQ(StepAndShow(iter.get()), "c =c,1");
  ASSERT_OK(ForceCompaction());
  ASSERT_EQ(StepAndShow(iter.get()), "d =d");
  ASSERT_EQ(StepAndShow(iter.get()), "z =z,1");
  ASSERT_EQ(StepAndShow(iter.get()), ".");
}

// The sequence number of the entries is 0, and DBIter expects that the entry
// after one with this number is of another key. The compaction gives the entry
// that the iterator leaves another type, so its internal key is before or
// behind the one that it had.
TEST_P(ForwardIteratorBlobsTest, ValueThatMovesBetweenFilesIsShownOnce) {
  for (const bool to_blob_file : {false, true}) {
    SCOPED_TRACE(to_blob_file);
    keeper_.reset();
    Options options = BlobOptions();
    options.min_blob_size = to_blob_file ? 10 * kMinBlobSize : kMinBlobSize;
    DestroyAndReopen(options);
    for (const char* key : {"a", "b", "c"}) {
      ASSERT_OK(Put(key, Large(key)));
    }
    ASSERT_OK(Flush());
    ASSERT_OK(ForceCompaction());
    ASSERT_EQ(FilesOnDisk(kBlobFile).empty(), to_blob_file);
    const std::unique_ptr<Iterator> iter = NewTailingIterator();
    ASSERT_EQ(SeekAndShow(iter.get(), "a"), "a =a");
    ASSERT_OK(db_->SetOptions(
        {{"min_blob_size",
          std::to_string(to_blob_file ? kMinBlobSize : 10 * kMinBlobSize)}}));
    ASSERT_OK(ForceCompaction());
    ASSERT_EQ(StepAndShow(iter.get()), "b =b");
    ASSERT_EQ(StepAndShow(iter.get()), "c =c");
    ASSERT_EQ(StepAndShow(iter.get()), ".");
    EXPECT_TRUE(keeps_version() ||
                FilesOnDisk(kBlobFile).empty() != to_blob_file);
  }
}

INSTANTIATE_TEST_CASE_P(ReadOptions, ForwardIteratorBlobsTest,
                        testing::Combine(testing::Bool(), testing::Bool()));

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
#ifdef __GLIBC__
  // Overwrites what is freed, so that a read of a Version that was freed fails.
  mallopt(M_PERTURB, 0x5a);
#endif
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
