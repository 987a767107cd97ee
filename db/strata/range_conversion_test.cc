//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// min_tombstones_for_range_conversion hides nothing but what was deleted. In
// each test, an iterator passes the tombstones of a and c, and a live key lies
// between them that the iterator does not see. The iterator must not write a
// range tombstone from a on, as that would hide the live key from all readers.

#include "db/strata/range_conversion.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/comparator.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "test_util/testutil.h"
#include "util/coding.h"
#include "util/user_comparator_wrapper.h"

namespace ROCKSDB_NAMESPACE {

class RangeConversionTest : public StrataDBTestBase {
 public:
  RangeConversionTest() : StrataDBTestBase("range_conversion_test") {}

 protected:
  Options ConvertingOptions() {
    Options options = CurrentOptions();
    options.min_tombstones_for_range_conversion = 2;
    options.disable_auto_compactions = true;
    options.statistics = CreateDBStatistics();
    return options;
  }

  uint64_t NumConverted() const {
    return Ticker(READ_PATH_RANGE_TOMBSTONES_INSERTED);
  }

  // Passes all keys.
  static void Scan(Iterator* iter, bool is_forward) {
    if (is_forward) {
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      }
    } else {
      for (iter->SeekToLast(); iter->Valid(); iter->Prev()) {
      }
    }
    ASSERT_OK(iter->status());
  }
  void Scan(const ReadOptions& read_options = ReadOptions(),
            bool is_forward = true) {
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    Scan(iter.get(), is_forward);
  }

  void Ingest(const Options& options, const std::string& key,
              const std::string& value,
              const IngestExternalFileOptions& ingest_options =
                  IngestExternalFileOptions()) {
    const std::string path = dbname_ + "_ingested_" + key + ".sst";
    SstFileWriter writer(EnvOptions(), options);
    ASSERT_OK(writer.Open(path));
    ASSERT_OK(writer.Put(key, value));
    ASSERT_OK(writer.Finish());
    ASSERT_OK(db_->IngestExternalFile({path}, ingest_options));
    ASSERT_OK(env_->DeleteFile(path));
  }

 private:
  std::shared_ptr<Statistics> last_statistics_;
};

// An iterator over memtables alone does not see b, which is in a file.
TEST_F(RangeConversionTest, IteratorOfMemtablesDoesNotHideKeysOfFiles) {
  for (const bool is_forward : {true, false}) {
    SCOPED_TRACE(is_forward);
    DestroyAndReopen(ConvertingOptions());
    ASSERT_OK(Put("b", "vb"));  // 1
    ASSERT_OK(Flush());
    ASSERT_OK(Delete("a"));     // 2
    ASSERT_OK(Delete("c"));     // 3
    ASSERT_OK(Put("d", "vd"));  // 4

    ReadOptions read_options;
    read_options.read_tier = kMemtableTier;
    Scan(read_options, is_forward);  // at 4
    ASSERT_EQ(Get("b"), "vb");
    ASSERT_EQ(NumConverted(), 0);
    ASSERT_OK(Flush());
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    ASSERT_EQ(Get("b"), "vb");
  }
}

// The file overlaps nothing, so that its sequence number is 0, which is less
// than that of any iterator.
TEST_F(RangeConversionTest,
       IteratorFromBeforeIngestionDoesNotHideFileWithSequenceNumberZero) {
  for (const bool is_forward : {true, false}) {
    SCOPED_TRACE(is_forward);
    const Options options = ConvertingOptions();
    DestroyAndReopen(options);
    ASSERT_OK(Delete("a"));     // 1
    ASSERT_OK(Delete("c"));     // 2
    ASSERT_OK(Put("d", "vd"));  // 3
    ASSERT_OK(Flush());

    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));  // at 3
    Ingest(options, "b", "vb");                                       // 0
    ASSERT_EQ(db_->GetLatestSequenceNumber(), 3);
    Scan(iter.get(), is_forward);
    ASSERT_EQ(Get("b"), "vb");
    ASSERT_EQ(NumConverted(), 0);

    // Iterators that see the file may convert.
    ASSERT_OK(Delete("b"));
    Scan(ReadOptions(), is_forward);
    ASSERT_EQ(NumConverted(), 1);
    ASSERT_EQ(Get("b"), "NOT_FOUND");
    ASSERT_EQ(Get("d"), "vd");
  }
}

// The iterator takes its SuperVersion, then the file is ingested, then the
// iterator takes its sequence number, which is that of the file.
TEST_F(RangeConversionTest,
       IteratorWithTheSequenceNumberOfAnIngestedFileDoesNotHideIt) {
  const Options options = ConvertingOptions();
  DestroyAndReopen(options);
  for (const char* key : {"a", "b", "c", "d"}) {  // 1 to 4
    ASSERT_OK(Put(key, "old"));
  }
  ASSERT_OK(Flush());
  for (const char* key : {"a", "b", "c"}) {  // 5 to 7
    ASSERT_OK(Delete(key));
  }
  ASSERT_OK(Flush());

  const auto is_ingested =
      EnableCallBackOnce("DBImpl::NewIterator:1", [&](void*) {
        Ingest(options, "b", "vb");  // 8
      });
  Scan();  // at 8
  SyncPoint::GetInstance()->DisableProcessing();
  ASSERT_TRUE(*is_ingested);
  ASSERT_EQ(db_->GetLatestSequenceNumber(), 8);
  ASSERT_EQ(Get("b"), "vb");
  ASSERT_EQ(NumConverted(), 0);
}

// All of the column family is replaced. The new file has sequence number 0.
TEST_F(RangeConversionTest, IteratorFromBeforeReplacementDoesNotHideNewFiles) {
  const Options options = ConvertingOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Delete("a"));     // 1
  ASSERT_OK(Delete("c"));     // 2
  ASSERT_OK(Put("d", "vd"));  // 3
  ASSERT_OK(Flush());

  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));  // at 3
  const std::string path = dbname_ + "_replacement.sst";
  SstFileWriter writer(EnvOptions(), options);
  ASSERT_OK(writer.Open(path));
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_OK(writer.Put(key, "new"));
  }
  ASSERT_OK(writer.Finish());
  IngestExternalFileArg arg;
  arg.column_family = db_->DefaultColumnFamily();
  arg.external_files = {path};
  arg.options.snapshot_consistency = false;
  arg.atomic_replace_range = RangeOpt();
  ASSERT_OK(db_->IngestExternalFiles({arg}));
  ASSERT_OK(env_->DeleteFile(path));

  Scan(iter.get(), /*is_forward=*/true);
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_EQ(Get(key), "new");
  }
  ASSERT_EQ(Get("d"), "NOT_FOUND");
}

// The file is ingested below the tombstones when these are converted already.
TEST_F(RangeConversionTest, FilesIngestedBehindAreNotHidden) {
  for (const bool is_forward : {true, false}) {
    SCOPED_TRACE(is_forward);
    Options options = ConvertingOptions();
    options.cf_allow_ingest_behind = true;
    DestroyAndReopen(options);
    ASSERT_OK(Delete("a"));
    ASSERT_OK(Delete("c"));
    ASSERT_OK(Put("d", "vd"));
    Scan(ReadOptions(), is_forward);

    IngestExternalFileOptions ingest_options;
    ingest_options.ingest_behind = true;
    Ingest(options, "b", "vb", ingest_options);
    ASSERT_EQ(Get("b"), "vb");
    ASSERT_EQ(NumConverted(), 0);
  }
}

// An ingested file has a range tombstone from "a" on and a point tombstone of
// "a", with the sequence number of iterators that come before the next write.
// A converted range tombstone would have the same key and sequence number.
TEST_F(RangeConversionTest,
       IteratorsDoNotConvertAtTheSequenceNumberOfAnIngestedFile) {
  enum Between { kNothing, kNewMemtable, kReopen, kReopenWithoutStats };
  for (const Between between :
       {kNothing, kNewMemtable, kReopen, kReopenWithoutStats}) {
    SCOPED_TRACE(between);
    Options options = ConvertingOptions();
    DestroyAndReopen(options);
    ASSERT_OK(Put("a", "va"));
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    ASSERT_OK(Delete("b"));
    const std::string path = dbname_ + "_ingested.sst";
    SstFileWriter writer(EnvOptions(), options);
    ASSERT_OK(writer.Open(path));
    ASSERT_OK(writer.DeleteRange("a", "d"));
    ASSERT_OK(writer.Delete("a"));
    ASSERT_OK(writer.Delete("b"));
    ASSERT_OK(writer.Put("c", "vc"));
    ASSERT_OK(writer.Delete("d"));
    ASSERT_OK(writer.Finish());
    ASSERT_OK(db_->IngestExternalFile({path}, IngestExternalFileOptions()));
    ASSERT_OK(env_->DeleteFile(path));
    if (between == kNewMemtable) {
      ASSERT_OK(dbfull()->TEST_SwitchMemtable());
    } else if (between != kNothing) {
      // Without the statistics of files, the open does not read how many
      // tombstones they have.
      options.skip_stats_update_on_db_open = between == kReopenWithoutStats;
      Reopen(options);
    }
    for (const bool is_forward : {true, false, true}) {
      Scan(ReadOptions(), is_forward);
    }
    ASSERT_EQ(NumConverted(), 0);

    ASSERT_OK(Put("e", "ve"));
    Scan(ReadOptions(), /*is_forward=*/true);
    ASSERT_EQ(NumConverted(), 1);
    Scan(ReadOptions(), /*is_forward=*/false);
    ASSERT_EQ(Get("a"), "NOT_FOUND");
    ASSERT_EQ(Get("c"), "vc");
  }
}

// A snapshot is older than a column family in which b has a newer sequence
// number, and a and c have older ones: they come from another database.
TEST_F(RangeConversionTest, SnapshotDoesNotHideNewerKeysOfImportedFiles) {
  const Options options = ConvertingOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Delete("a"));     // 1
  ASSERT_OK(Delete("c"));     // 2
  ASSERT_OK(Put("d", "vd"));  // 3
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put("e", "ve"));
  }
  ASSERT_OK(Put("b", "vb"));  // 14
  const std::string export_dir =
      test::PerThreadDBPath(env_, "range_conversion_export");
  ASSERT_OK(DestroyDir(env_, export_dir));
  std::unique_ptr<ExportImportFilesMetaData> metadata;
  {
    Checkpoint* checkpoint = nullptr;
    ASSERT_OK(Checkpoint::Create(db_.get(), &checkpoint));
    const std::unique_ptr<Checkpoint> guard(checkpoint);
    ExportImportFilesMetaData* exported = nullptr;
    ASSERT_OK(checkpoint->ExportColumnFamily(db_->DefaultColumnFamily(),
                                             export_dir, &exported));
    metadata.reset(exported);
  }

  DestroyAndReopen(options);
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(Put("x", "vx"));
  }
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_EQ(snapshot->GetSequenceNumber(), 5);
  ColumnFamilyHandle* family = nullptr;
  ASSERT_OK(db_->CreateColumnFamilyWithImport(
      options, "imported", ImportColumnFamilyOptions(), *metadata, &family));
  ASSERT_GE(db_->GetLatestSequenceNumber(), 14);

  ReadOptions read_options;
  read_options.snapshot = snapshot;
  {
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options, family));
    Scan(iter.get(), /*is_forward=*/true);
  }
  std::string value;
  EXPECT_OK(db_->Get(ReadOptions(), family, "b", &value));
  EXPECT_EQ(value, "vb");
  EXPECT_EQ(NumConverted(), 0);

  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(db_->DropColumnFamily(family));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(family));
  ASSERT_OK(DestroyDir(env_, export_dir));
}

// With unordered writes, the last sequence number includes a batch that is not
// yet in the memtable.
TEST_F(RangeConversionTest, UnorderedWritesAreNotHidden) {
  Options options = ConvertingOptions();
  options.unordered_write = true;
  options.allow_concurrent_memtable_write = true;
  DestroyAndReopen(options);
  ASSERT_OK(Delete("a"));     // 1
  ASSERT_OK(Delete("c"));     // 2
  ASSERT_OK(Put("d", "vd"));  // 3

  std::atomic<bool> is_scanned{false};
  EnableCallBack("DBImpl::WriteImpl:BeforeUnorderedWriteMemtable",
                 [&](void* /*arg*/) {
                   Scan();  // at 5
                   is_scanned = true;
                 });
  WriteBatch batch;
  ASSERT_OK(batch.Put("b", "vb"));  // 4
  ASSERT_OK(batch.Put("y", "vy"));  // 5
  ASSERT_OK(db_->Write(WriteOptions(), &batch));
  SyncPoint::GetInstance()->DisableProcessing();
  ASSERT_TRUE(is_scanned);
  ASSERT_EQ(Get("b"), "vb");
  ASSERT_EQ(NumConverted(), 0);
}

// A prepared iterator has seen all keys of the scan range that was begun last,
// and of no other.
TEST_F(RangeConversionTest, IsInScanRangeComparesBothEndsWithTheLastRange) {
  const UserComparatorWrapper ucmp(BytewiseComparator());
  MultiScanArgs scans(BytewiseComparator());
  scans.insert("b", "d");
  scans.insert("m", "p");
  const auto is_in = [&](size_t num_started, const Slice& first,
                         const Slice& end) {
    return RangeConversion::IsInScanRange(scans, num_started, ucmp, first, end);
  };
  EXPECT_FALSE(is_in(0, "b", "d"));
  EXPECT_TRUE(is_in(1, "b", "d"));
  EXPECT_FALSE(is_in(1, "a", "d"));
  EXPECT_FALSE(is_in(1, "b", "da"));
  EXPECT_FALSE(is_in(1, "m", "p"));
  EXPECT_FALSE(is_in(1, "b", "p"));
  EXPECT_TRUE(is_in(2, "n", "o"));
  EXPECT_FALSE(is_in(2, "b", "d"));
  EXPECT_FALSE(is_in(2, "b", "p"));

  MultiScanArgs unbounded(BytewiseComparator());
  unbounded.insert("b");
  EXPECT_TRUE(RangeConversion::IsInScanRange(unbounded, 1, ucmp, "a", "z"));
}

// Prepare() leaves out the file of b, which is outside of the scan range.
TEST_F(RangeConversionTest, PreparedIteratorDoesNotHideFilesThatItLeavesOut) {
  DestroyAndReopen(ConvertingOptions());
  ASSERT_OK(Put("b", "vb"));
  ASSERT_OK(Flush());
  ASSERT_OK(Delete("a"));
  ASSERT_OK(Delete("c"));
  ASSERT_OK(Put("x", "vx"));

  const Slice upper_bound("z");
  ReadOptions read_options;
  read_options.iterate_upper_bound = &upper_bound;
  MultiScanArgs scans(BytewiseComparator());
  scans.insert("x", "z");
  std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  iter->Prepare(scans);
  iter->Seek("x");
  ASSERT_TRUE(iter->Valid());
  iter->Prev();
  ASSERT_EQ(Get("b"), "vb");
  ASSERT_EQ(NumConverted(), 0);
}

TEST_F(RangeConversionTest, PreparedIteratorConvertsWithinScanRange) {
  DestroyAndReopen(ConvertingOptions());
  ASSERT_OK(Put("b", "vb"));
  ASSERT_OK(Flush());
  for (const char* key : {"w", "x", "xa", "xb", "z"}) {
    ASSERT_OK(Delete(key));
  }
  ASSERT_OK(Put("y", "vy"));

  const Slice upper_bound("z");
  ReadOptions read_options;
  read_options.iterate_upper_bound = &upper_bound;
  MultiScanArgs scans(BytewiseComparator());
  scans.insert("x", "z");
  std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  iter->Prepare(scans);
  iter->Seek("x");
  ASSERT_TRUE(iter->Valid());
  ASSERT_EQ(iter->key(), "y");
  ASSERT_EQ(NumConverted(), 1);
  ASSERT_EQ(Get("b"), "vb");
}

// The user seeks with a key that has no prefix. The change of direction seeks
// with cccc, and the prefix filter hides the file of bbcc.
TEST_F(RangeConversionTest, ChangeOfDirectionDoesNotHideFilteredFiles) {
  Options options = ConvertingOptions();
  options.prefix_extractor.reset(NewFixedPrefixTransform(4));
  BlockBasedTableOptions table_options;
  table_options.filter_policy.reset(NewBloomFilterPolicy(10));
  table_options.whole_key_filtering = false;
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  DestroyAndReopen(options);
  ASSERT_OK(Put("bbcc", "live"));
  ASSERT_OK(Flush());
  ASSERT_OK(Delete("bbbb"));
  ASSERT_OK(Delete("bbcd"));
  ASSERT_OK(Put("cccc", "live"));

  ReadOptions read_options;
  read_options.prefix_same_as_start = true;
  std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  iter->Seek("c");
  ASSERT_TRUE(iter->Valid());
  while (iter->Valid()) {
    iter->Prev();
  }
  ASSERT_OK(iter->status());
  ASSERT_EQ(Get("bbcc"), "live");
  ASSERT_EQ(NumConverted(), 0);
}

// Without total order, SeekToFirst() finds nothing in a memtable of hashed
// prefixes.
// A memtable has the filter that it was made with. The seek key has no prefix,
// and the iterator seeks again to pass the versions of aa1: the filter of the
// older memtable, which has bb5, does not have that prefix.
TEST_F(RangeConversionTest, FiltersOfOlderMemtablesHideNoKeys) {
  enum How { kOptionChanges, kTotalOrder, kOptIn };
  for (const How how : {kOptionChanges, kTotalOrder, kOptIn}) {
    SCOPED_TRACE(how);
    Options options = ConvertingOptions();
    options.prefix_extractor.reset(NewFixedPrefixTransform(2));
    options.memtable_prefix_bloom_size_ratio = 0.1;
    options.max_sequential_skip_in_iterations = 1;
    options.max_write_buffer_number = 4;
    options.min_write_buffer_number_to_merge = 3;
    options.prefix_seek_opt_in_only = how == kOptIn;
    DestroyAndReopen(options);
    ASSERT_OK(Put("bb5", "v"));
    ASSERT_OK(dbfull()->TEST_SwitchMemtable());
    for (int i = 0; i < 4; ++i) {
      ASSERT_OK(Put("aa1", "v" + std::to_string(i)));
    }
    for (const char* const key : {"bb1", "bb3", "bb7"}) {
      ASSERT_OK(Delete(key));
    }
    ASSERT_OK(Put("cc1", "v"));
    if (how == kOptionChanges) {
      ASSERT_OK(db_->SetOptions({{"memtable_prefix_bloom_size_ratio", "0"}}));
    }
    ReadOptions read_options;
    read_options.prefix_same_as_start = true;
    read_options.total_order_seek = how == kTotalOrder;
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    for (iter->Seek("a"); iter->Valid(); iter->Next()) {
    }
    ASSERT_OK(iter->status());
    EXPECT_EQ(Get("bb5"), "v");
    EXPECT_EQ(NumConverted(), 0);
  }
}

TEST_F(RangeConversionTest, KeysOfHashedMemtablesAreNotHidden) {
  Options options = ConvertingOptions();
  options.prefix_extractor.reset(NewFixedPrefixTransform(1));
  options.memtable_factory.reset(NewHashSkipListRepFactory(16));
  options.allow_concurrent_memtable_write = false;
  DestroyAndReopen(options);
  ASSERT_OK(Delete("pa"));     // 1
  ASSERT_OK(Delete("pc"));     // 2
  ASSERT_OK(Put("pd", "vd"));  // 3
  ASSERT_OK(Flush());
  ASSERT_OK(Put("pb", "vb"));  // 4
  ASSERT_OK(Put("q", "vq"));   // 5

  ReadOptions read_options;
  read_options.prefix_same_as_start = true;
  Scan(read_options);  // at 5
  ASSERT_EQ(Get("pb"), "vb");
  ASSERT_EQ(NumConverted(), 0);
}

// A reader at a timestamp between the two deletions sees c. The range tombstone
// has the newer timestamp of the two, whichever comes first.
TEST_F(RangeConversionTest, OlderTimestampsSeeWhatIsDeletedLater) {
  const auto timestamp = [](uint64_t t) {
    std::string result;
    PutFixed64(&result, t);
    return result;
  };
  const std::string max_timestamp(sizeof(uint64_t), '\xff');
  for (const bool is_forward : {true, false}) {
    for (const bool is_first_newer : {true, false}) {
      SCOPED_TRACE(is_forward);
      SCOPED_TRACE(is_first_newer);
      const std::string older = is_first_newer ? "c" : "b";
      const std::string newer = is_first_newer ? "b" : "c";
      Options options = ConvertingOptions();
      options.comparator = test::BytewiseComparatorWithU64TsWrapper();
      // The iterator seeks the newest version of a key when it goes backward.
      options.max_sequential_skip_in_iterations = 1;
      DestroyAndReopen(options);
      const WriteOptions write_options;
      ASSERT_OK(db_->Put(write_options, older, timestamp(10), "older"));
      ASSERT_OK(db_->Put(write_options, newer, timestamp(20), "older"));
      ASSERT_OK(db_->Put(write_options, newer, timestamp(25), "newer"));
      ASSERT_OK(db_->Put(write_options, "d", timestamp(10), "vd"));
      ASSERT_OK(db_->Delete(write_options, older, timestamp(30)));
      ASSERT_OK(db_->Delete(write_options, newer, timestamp(40)));

      ReadOptions read_options;
      const Slice scanned_at(max_timestamp);
      read_options.timestamp = &scanned_at;
      Scan(read_options, is_forward);
      ASSERT_EQ(NumConverted(), 1);

      std::string value;
      const std::string between = timestamp(35);
      const Slice read_at(between);
      read_options.timestamp = &read_at;
      ASSERT_OK(db_->Get(read_options, newer, &value));
      ASSERT_EQ(value, "newer");
      ASSERT_TRUE(db_->Get(read_options, older, &value).IsNotFound());
      read_options.timestamp = &scanned_at;
      ASSERT_TRUE(db_->Get(read_options, newer, &value).IsNotFound());
      ASSERT_TRUE(db_->Get(read_options, older, &value).IsNotFound());
      ASSERT_OK(db_->Get(read_options, "d", &value));
    }
  }
}

// The row cache keeps the value of a file without the range tombstone of the
// same file. DeleteRange() is therefore refused.
TEST_F(RangeConversionTest, RowCacheDoesNotBringBackDeletedKeys) {
  Options options = ConvertingOptions();
  options.row_cache = NewLRUCache(1 << 20);
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", "va"));  // 1
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Delete("a"));     // 2
  ASSERT_OK(Delete("c"));     // 3
  ASSERT_OK(Put("d", "vd"));  // 4
  Scan();
  // A range tombstone would take the place of the deletions, and a stays for
  // the snapshot.
  ASSERT_OK(Flush());
  EXPECT_EQ(Get("a"), "NOT_FOUND");
  EXPECT_EQ(Get("a"), "NOT_FOUND");
  EXPECT_EQ(Get("a", snapshot), "va");
  db_->ReleaseSnapshot(snapshot);
}

// A plain table cannot have range tombstones. DeleteRange() is refused.
TEST_F(RangeConversionTest, TablesWithoutRangeTombstonesCanBeFlushed) {
  Options options = ConvertingOptions();
  options.table_factory.reset(NewPlainTableFactory());
  options.prefix_extractor.reset(NewNoopTransform());
  options.allow_mmap_reads = true;
  DestroyAndReopen(options);
  ASSERT_OK(Delete("a"));
  ASSERT_OK(Delete("c"));
  ASSERT_OK(Put("d", "vd"));
  ReadOptions read_options;
  read_options.total_order_seek = true;
  Scan(read_options);
  ASSERT_OK(Flush());
  ASSERT_EQ(Get("d"), "vd");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
