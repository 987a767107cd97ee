//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of blob files on several paths: everything that names, finds, opens,
// tracks or deletes a blob file must use the path on which the file lies.
// path_compaction_test.cc tests where compaction writes blobs, and
// path_placement_test.cc tests what SstFileManager tracks.

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "db/blob/blob_file_cache.h"
#include "db/column_family.h"
#include "db/db_test_util.h"
#include "db/path_layout/blob_file_path_registry.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/listener.h"
#include "test_util/sync_point.h"
#include "util/cast_util.h"
#include "util/defer.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Checks in every callback that the blob files it names exist. Deleted files
// are only recorded.
class FileListener : public EventListener {
 public:
  explicit FileListener(Env* env) : env_(env) {}

  void OnBlobFileCreated(const BlobFileCreationInfo& info) override {
    if (info.status.ok()) {
      Expect(info.file_path, &created_);
    }
  }
  void OnBlobFileDeleted(const BlobFileDeletionInfo& info) override {
    EXPECT_OK(info.status) << info.file_path;
    std::lock_guard<std::mutex> lock(mutex_);
    deleted_.insert(info.file_path);
  }
  void OnFlushCompleted(DB* /*db*/, const FlushJobInfo& info) override {
    for (const auto& blob : info.blob_file_addition_infos) {
      Expect(blob.blob_file_path, &flushed_);
    }
  }
  void OnCompactionCompleted(DB* /*db*/,
                             const CompactionJobInfo& info) override {
    for (const auto& blob : info.blob_file_addition_infos) {
      Expect(blob.blob_file_path, &compacted_);
    }
    for (const auto& blob : info.blob_file_garbage_infos) {
      Expect(blob.blob_file_path, &garbage_);
    }
  }

  // Paths of files, by the callback that named them.
  std::set<std::string> created_, deleted_, flushed_, compacted_, garbage_;
  std::mutex mutex_;

 private:
  void Expect(const std::string& path, std::set<std::string>* paths) {
    EXPECT_OK(env_->FileExists(path)) << path;
    std::lock_guard<std::mutex> lock(mutex_);
    paths->insert(path);
  }

  Env* const env_;
};

}  // namespace

class DBBlobPathTest : public DBTestBase {
 protected:
  static constexpr uint32_t kNumPaths = 4;

  DBBlobPathTest() : DBTestBase("db_blob_path_test", /*env_do_fsync=*/false) {
    RemovePaths();
  }
  ~DBBlobPathTest() override {
    Close();
    RemovePaths();
  }

  std::string PathDir(uint32_t path_id) const {
    return path_id == 0 ? dbname_ : dbname_ + "_path" + std::to_string(path_id);
  }

  // Blobs of level i are on path ids[i]; SST files follow RocksDB's own rule.
  Options BlobOptions(std::vector<uint32_t> ids) {
    Options options = GetDefaultOptions();
    options.create_if_missing = true;
    options.disable_auto_compactions = true;
    options.enable_blob_files = true;
    options.min_blob_size = 32;
    for (uint32_t path_id = 0; path_id < kNumPaths; ++path_id) {
      options.cf_paths.emplace_back(PathDir(path_id), 1ull << 40);
    }
    options.level_blob_path_ids = std::move(ids);
    return options;
  }

  Options DirectWriteOptions(std::vector<uint32_t> ids) {
    Options options = BlobOptions(std::move(ids));
    options.allow_concurrent_memtable_write = false;
    options.enable_blob_direct_write = true;
    return options;
  }

  std::set<uint64_t> FilesOn(const std::string& dir, FileType wanted) {
    std::set<uint64_t> numbers;
    std::vector<std::string> names;
    env_->GetChildren(dir, &names).PermitUncheckedError();
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(name, &number, &type) && type == wanted) {
        numbers.insert(number);
      }
    }
    return numbers;
  }
  std::set<uint64_t> BlobsOn(uint32_t path_id) {
    return FilesOn(PathDir(path_id), kBlobFile);
  }
  // Returns the number of blob files on each path.
  std::vector<size_t> BlobCounts() {
    std::vector<size_t> counts;
    for (uint32_t path_id = 0; path_id < kNumPaths; ++path_id) {
      counts.push_back(BlobsOn(path_id).size());
    }
    return counts;
  }
  std::string BlobPath(uint32_t path_id, uint64_t number) const {
    return BlobFileName(PathDir(path_id), number);
  }
  using Counts = std::vector<size_t>;

  static std::string Key(int i) { return "key" + std::to_string(1000 + i); }
  static std::string Value(int i, const std::string& tag) {
    return tag + std::to_string(i) + std::string(100, 'v');
  }

  void PutRange(int first, int last, const std::string& tag, int cf = 0) {
    for (int i = first; i < last; ++i) {
      const std::string value = Value(i, tag);
      ASSERT_OK(handles_.empty() ? Put(Key(i), value) : Put(cf, Key(i), value));
      if (cf == 0) {
        expected_[Key(i)] = value;
      }
    }
  }

  // Checks that Get(), MultiGet() and iterators return what PutRange() wrote.
  void VerifyReads(DB* db) { VerifyReads(db, expected_); }
  void VerifyReads(DB* db, const std::map<std::string, std::string>& expected) {
    std::vector<Slice> keys;
    for (const auto& [key, value] : expected) {
      std::string got;
      ASSERT_OK(db->Get(ReadOptions(), key, &got)) << key;
      ASSERT_EQ(got, value);
      keys.emplace_back(key);
    }
    std::vector<PinnableSlice> values(keys.size());
    std::vector<Status> statuses(keys.size());
    db->MultiGet(ReadOptions(), db->DefaultColumnFamily(), keys.size(),
                 keys.data(), values.data(), statuses.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_OK(statuses[i]);
      ASSERT_EQ(values[i].ToString(), expected.at(keys[i].ToString()));
    }
    std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
    auto want = expected.begin();
    for (it->SeekToFirst(); it->Valid(); it->Next(), ++want) {
      ASSERT_NE(want, expected.end());
      ASSERT_EQ(it->key(), want->first);
      ASSERT_EQ(it->value(), want->second);
    }
    ASSERT_OK(it->status());
    ASSERT_EQ(want, expected.end());
    auto back = expected.rbegin();
    for (it->SeekToLast(); it->Valid(); it->Prev(), ++back) {
      ASSERT_EQ(it->value(), back->second);
    }
    ASSERT_OK(it->status());
    ASSERT_EQ(back, expected.rend());
  }
  void VerifyReads() { VerifyReads(db_.get()); }

  // Flushes ten keys to each path.
  void FillAllPaths(Options options) {
    for (uint32_t path_id = 0; path_id < kNumPaths; ++path_id) {
      options.level_blob_path_ids = {path_id};
      Reopen(options);
      PutRange(10 * path_id, 10 * path_id + 10, "p" + std::to_string(path_id));
      ASSERT_OK(Flush());
    }
    ASSERT_EQ(BlobCounts(), (Counts{1, 1, 1, 1}));
  }

  BlobFilePathRegistry& Registry(ColumnFamilyHandle* handle = nullptr) {
    return static_cast_with_check<ColumnFamilyHandleImpl>(
               handle != nullptr ? handle : db_->DefaultColumnFamily())
        ->cfd()
        ->blob_file_cache()
        ->paths();
  }

  // A background job deletes files after it has reported success.
  void WaitForDeletions() {
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
  }

  void RemovePaths() {
    for (uint32_t path_id = 1; path_id < kNumPaths; ++path_id) {
      EXPECT_OK(DestroyDir(env_, PathDir(path_id)));
    }
  }

  std::map<std::string, std::string> expected_;
};

TEST_F(DBBlobPathTest, ReadsWithBlobCacheAndFewOpenFiles) {
  Options options = BlobOptions({});
  options.blob_cache = NewLRUCache(1 << 20);
  options.prepopulate_blob_cache = PrepopulateBlobCache::kFlushOnly;
  options.max_open_files = 10;
  options.statistics = CreateDBStatistics();
  FillAllPaths(options);
  VerifyReads();
  ASSERT_GT(options.statistics->getTickerCount(BLOB_DB_CACHE_HIT), 0);

  options.blob_cache = nullptr;
  options.compression = kNoCompression;
  Reopen(options);
  VerifyReads();
}

TEST_F(DBBlobPathTest, ReadsCompressedBlobsOfAnotherPath) {
  if (!ZSTD_Supported()) {
    ROCKSDB_GTEST_SKIP("needs ZSTD");
    return;
  }
  Options options = BlobOptions({3});
  options.blob_compression_type = kZSTD;
  Reopen(options);
  PutRange(0, 50, "z");
  ASSERT_OK(Flush());
  ASSERT_EQ(BlobCounts(), (Counts{0, 0, 0, 1}));
  VerifyReads();
}

TEST_F(DBBlobPathTest, ReadOnlyAndSecondaryInstancesReadEveryPath) {
  const Options options = BlobOptions({1});
  FillAllPaths(options);

  std::unique_ptr<DB> secondary;
  Options secondary_options = options;
  secondary_options.max_open_files = -1;
  const std::string secondary_dir = dbname_ + "_secondary";
  ASSERT_OK(DB::OpenAsSecondary(secondary_options, dbname_, secondary_dir,
                                &secondary));
  VerifyReads(secondary.get());
  // The secondary learns of new files by tailing the MANIFEST.
  Reopen(options);
  PutRange(40, 50, "new");
  ASSERT_OK(Flush());
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  VerifyReads(secondary.get());
  secondary.reset();
  ASSERT_OK(DestroyDir(env_, secondary_dir));

  ASSERT_OK(ReadOnlyReopen(options));
  VerifyReads();
}

// All files are on one level. Without blob files, the database would be opened
// by CompactedDBImpl, which reads no values of blob files.
TEST_F(DBBlobPathTest, ReadOnlyInstanceReadsAFullyCompactedDatabase) {
  Options options = BlobOptions({1});
  options.max_open_files = -1;
  FillAllPaths(options);
  CompactRangeOptions compact;
  compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
  ASSERT_OK(ReadOnlyReopen(options));
  VerifyReads();
}

TEST_F(DBBlobPathTest, ManifestRewriteKeepsThePaths) {
  Options options = BlobOptions({});
  options.max_manifest_file_size = 1;
  FillAllPaths(options);
  for (int round = 0; round < 4; ++round) {
    const std::set<uint64_t> before = FilesOn(dbname_, kDescriptorFile);
    Reopen(options);
    PutRange(100 + round, 101 + round, "r");
    ASSERT_OK(Flush());
    ASSERT_NE(FilesOn(dbname_, kDescriptorFile), before);
    VerifyReads();
    for (uint32_t path_id = 1; path_id < kNumPaths; ++path_id) {
      ASSERT_EQ(Registry().PathId(*BlobsOn(path_id).begin()), path_id);
    }
  }
}

TEST_F(DBBlobPathTest, MetadataNamesExistingFiles) {
  FillAllPaths(BlobOptions({}));

  ColumnFamilyMetaData meta;
  db_->GetColumnFamilyMetaData(&meta);
  std::set<std::string> dirs;
  ASSERT_EQ(meta.blob_files.size(), 4);
  for (const BlobMetaData& blob : meta.blob_files) {
    uint64_t size = 0;
    ASSERT_OK(
        env_->GetFileSize(blob.blob_file_path + blob.blob_file_name, &size));
    ASSERT_EQ(size, blob.blob_file_size);
    dirs.insert(blob.blob_file_path);
  }
  ASSERT_EQ(dirs.size(), kNumPaths);

  std::vector<LiveFileStorageInfo> infos;
  ASSERT_OK(
      db_->GetLiveFilesStorageInfo(LiveFilesStorageInfoOptions(), &infos));
  dirs.clear();
  for (const LiveFileStorageInfo& info : infos) {
    const std::string path = info.directory + "/" + info.relative_filename;
    uint64_t size = 0;
    ASSERT_OK(env_->GetFileSize(path, &size));
    if (info.file_type == kBlobFile) {
      ASSERT_EQ(size, info.size);
      dirs.insert(info.directory);
    }
  }
  ASSERT_EQ(dirs.size(), kNumPaths);
}

TEST_F(DBBlobPathTest, CallbacksNameExistingFiles) {
  Options options = BlobOptions({1});
  const auto listener = std::make_shared<FileListener>(env_);
  options.listeners.push_back(listener);
  Reopen(options);
  PutRange(0, 10, "old");
  ASSERT_OK(Flush());
  const std::set<std::string> first{BlobPath(1, *BlobsOn(1).begin())};
  // Listeners may hear of a flush after Flush() has returned.
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  ASSERT_EQ(listener->created_, first);
  ASSERT_EQ(listener->flushed_, first);

  options.level_blob_path_ids = {2};
  options.enable_blob_garbage_collection = true;
  options.blob_garbage_collection_age_cutoff = 1.0;
  Reopen(options);
  PutRange(0, 5, "new");
  ASSERT_OK(Flush());
  const std::set<std::string> second{BlobPath(2, *BlobsOn(2).begin())};
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  WaitForDeletions();
  VerifyReads();

  std::set<std::string> both = first;
  both.insert(second.begin(), second.end());
  ASSERT_EQ(listener->garbage_, both);
  ASSERT_EQ(listener->deleted_, both);
  ASSERT_EQ(listener->compacted_.size(), 1);
}

TEST_F(DBBlobPathTest, CompactFilesNamesExistingFiles) {
  Options options = BlobOptions({3});
  options.enable_blob_garbage_collection = true;
  options.blob_garbage_collection_age_cutoff = 1.0;
  Reopen(options);
  PutRange(0, 10, "a");
  ASSERT_OK(Flush());
  ColumnFamilyMetaData meta;
  db_->GetColumnFamilyMetaData(&meta);
  ASSERT_EQ(meta.levels[0].files.size(), 1);
  std::vector<std::string> outputs;
  ASSERT_OK(
      db_->CompactFiles(CompactionOptions(), {meta.levels[0].files[0].name},
                        /*output_level=*/1, /*output_path_id=*/0, &outputs));
  ASSERT_EQ(outputs.size(), 2);
  for (const std::string& output : outputs) {
    ASSERT_OK(env_->FileExists(output)) << output;
  }
  VerifyReads();
}

TEST_F(DBBlobPathTest, ObsoleteFilesAreDeletedOnEveryPath) {
  FillAllPaths(BlobOptions({}));
  std::vector<std::set<uint64_t>> old_blobs;
  for (uint32_t path_id = 0; path_id < kNumPaths; ++path_id) {
    old_blobs.push_back(BlobsOn(path_id));
  }
  Options options = BlobOptions({1});
  Reopen(options);
  ASSERT_EQ(Registry().size(), 3);
  PutRange(0, 40, "new");
  ASSERT_OK(Flush());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  WaitForDeletions();
  for (uint32_t path_id = 0; path_id < kNumPaths; ++path_id) {
    for (const uint64_t number : old_blobs[path_id]) {
      ASSERT_EQ(BlobsOn(path_id).count(number), 0) << "path " << path_id;
      ASSERT_EQ(Registry().PathId(number), 0);
    }
  }
  VerifyReads();
  ASSERT_EQ(Registry().size(), 1);

  ASSERT_OK(db_->DeleteRange(WriteOptions(), Key(0), Key(999)));
  expected_.clear();
  ASSERT_OK(Flush());
  CompactRangeOptions force;
  force.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(force, nullptr, nullptr));
  WaitForDeletions();
  ASSERT_EQ(BlobCounts(), (Counts{0, 0, 0, 0}));
  ASSERT_EQ(Registry().size(), 0);
}

TEST_F(DBBlobPathTest, OpenDeletesOrphansOnEveryPath) {
  const Options options = BlobOptions({1});
  FillAllPaths(options);
  Close();
  constexpr uint64_t kOrphan = 3;
  for (uint32_t path_id = 0; path_id < kNumPaths; ++path_id) {
    ASSERT_EQ(BlobsOn(path_id).count(kOrphan), 0);
    CopyFile(BlobPath(path_id, *BlobsOn(path_id).begin()),
             BlobPath(path_id, kOrphan));
  }
  ASSERT_EQ(BlobCounts(), (Counts{2, 2, 2, 2}));
  Reopen(options);
  WaitForDeletions();
  ASSERT_EQ(BlobCounts(), (Counts{1, 1, 1, 1}));
  VerifyReads();
}

TEST_F(DBBlobPathTest, FileInUseByAnIteratorOutlivesItsVersion) {
  Options options = BlobOptions({1});
  options.max_open_files = 10;
  Reopen(options);
  PutRange(0, 10, "old");
  ASSERT_OK(Flush());
  const std::map<std::string, std::string> old = expected_;
  std::unique_ptr<Iterator> it(db_->NewIterator(ReadOptions()));
  PutRange(0, 10, "new");
  ASSERT_OK(Flush());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  size_t seen = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next(), ++seen) {
    ASSERT_EQ(it->value(), old.at(it->key().ToString()));
  }
  ASSERT_OK(it->status());
  ASSERT_EQ(seen, old.size());
  ASSERT_EQ(Registry().size(), 2);
  it.reset();
  WaitForDeletions();
  ASSERT_EQ(Registry().size(), 1);
  ASSERT_EQ(BlobCounts()[1], 1);
}

TEST_F(DBBlobPathTest, FailedFlushLeavesNothing) {
  Options options = BlobOptions({2});
  for (const char* point : {"BlobFileBuilder::WriteBlobToFile:AddRecord",
                            "BlobFileBuilder::WriteBlobToFile:AppendFooter"}) {
    DestroyAndReopen(options);
    expected_.clear();
    PutRange(0, 10, "a");
    SyncPoint::GetInstance()->SetCallBack(point, [](void* arg) {
      *static_cast<Status*>(arg) = Status::IOError("injected");
    });
    SyncPoint::GetInstance()->EnableProcessing();
    ASSERT_NOK(Flush());
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    ASSERT_EQ(BlobCounts(), (Counts{0, 0, 0, 0})) << point;
    ASSERT_EQ(Registry().size(), 0);
    Reopen(options);
    ASSERT_EQ(BlobCounts(), (Counts{0, 0, 1, 0}));
    VerifyReads();
  }
}

TEST_F(DBBlobPathTest, FailedManifestWriteForgetsNothingThatIsLive) {
  Options options = BlobOptions({2});
  Reopen(options);
  PutRange(0, 10, "a");
  ASSERT_OK(Flush());
  ASSERT_EQ(Registry().size(), 1);
  PutRange(10, 20, "b");
  SyncPoint::GetInstance()->SetCallBack(
      "VersionSet::ProcessManifestWrites:AfterSyncManifest", [](void* arg) {
        *static_cast<IOStatus*>(arg) = IOStatus::IOError("injected");
      });
  SyncPoint::GetInstance()->EnableProcessing();
  ASSERT_NOK(Flush());
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  ASSERT_EQ(Registry().size(), 1);
  VerifyReads();
  // Whether the MANIFEST names the second file or not, recovery must cope.
  Reopen(options);
  VerifyReads();
  ASSERT_EQ(Registry().size(), BlobsOn(2).size());
}

TEST_F(DBBlobPathTest, BestEffortsRecoveryLooksOnTheRealPath) {
  Options options = BlobOptions({1});
  Reopen(options);
  WriteOptions no_wal;
  no_wal.disableWAL = true;
  ASSERT_OK(db_->Put(no_wal, Key(0), Value(0, "first")));
  ASSERT_OK(Flush());
  ASSERT_OK(db_->Put(no_wal, Key(1), Value(1, "second")));
  ASSERT_OK(Flush());
  // The MANIFEST has both states, and only the older one will be complete.
  options.best_efforts_recovery = true;
  Close();
  const std::set<uint64_t> blobs = BlobsOn(1);
  ASSERT_EQ(blobs.size(), 2);
  ASSERT_OK(env_->DeleteFile(BlobPath(1, *blobs.rbegin())));
  Reopen(options);
  ASSERT_EQ(Get(Key(0)), Value(0, "first"));
  ASSERT_EQ(Get(Key(1)), "NOT_FOUND");
  ASSERT_EQ(Registry().PathId(*blobs.begin()), 1);
  ASSERT_EQ(Registry().size(), 1);

  // All files exist again.
  ASSERT_OK(db_->Put(no_wal, Key(2), Value(2, "third")));
  ASSERT_OK(Flush());
  Reopen(options);
  ASSERT_EQ(Get(Key(0)), Value(0, "first"));
  ASSERT_EQ(Get(Key(2)), Value(2, "third"));
  ASSERT_EQ(Registry().size(), 2);
}

TEST_F(DBBlobPathTest, DestroyDBLeavesNoFile) {
  const Options options = BlobOptions({1});
  FillAllPaths(options);
  Close();
  ASSERT_OK(DestroyDB(dbname_, options));
  for (uint32_t path_id = 0; path_id < kNumPaths; ++path_id) {
    std::vector<std::string> children;
    env_->GetChildren(PathDir(path_id), &children).PermitUncheckedError();
    ASSERT_TRUE(children.empty()) << children.front();
  }
}

TEST_F(DBBlobPathTest, DropColumnFamilyDeletesItsFiles) {
  Options options = BlobOptions({1});
  CreateAndReopenWithCF({"other"}, options);
  // The second family has paths of its own, in another order.
  Options other = options;
  other.cf_paths.clear();
  for (const uint32_t path_id : {3, 2, 0}) {
    other.cf_paths.emplace_back(PathDir(path_id), 1ull << 40);
  }
  other.level_blob_path_ids = {1};
  ReopenWithColumnFamilies({"default", "other"},
                           std::vector<Options>{options, other});
  PutRange(0, 10, "d", 0);
  PutRange(0, 10, "o", 1);
  ASSERT_OK(Flush(0));
  ASSERT_OK(Flush(1));
  ASSERT_EQ(BlobCounts(), (Counts{0, 1, 1, 0}));
  ReopenWithColumnFamilies({"default", "other"},
                           std::vector<Options>{options, other});
  ASSERT_EQ(Get(0, Key(3)), Value(3, "d"));
  ASSERT_EQ(Get(1, Key(3)), Value(3, "o"));
  ASSERT_EQ(Registry(handles_[0]).size(), 1);
  ASSERT_EQ(Registry(handles_[1]).size(), 1);

  ASSERT_OK(db_->DropColumnFamily(handles_[1]));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handles_[1]));
  handles_.pop_back();
  WaitForDeletions();
  ASSERT_EQ(BlobCounts(), (Counts{0, 1, 0, 0}));
  ASSERT_EQ(Get(0, Key(3)), Value(3, "d"));
}

TEST_F(DBBlobPathTest, VerifyFileChecksumsReadsTheRealFile) {
  Options options = BlobOptions({1});
  options.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  Reopen(options);
  PutRange(0, 10, "a");
  ASSERT_OK(Flush());
  ASSERT_OK(db_->VerifyFileChecksums(ReadOptions()));
  Close();
  ASSERT_OK(test::CorruptFile(env_, BlobPath(1, *BlobsOn(1).begin()),
                              /*offset=*/60, /*bytes_to_corrupt=*/1));
  Reopen(options);
  ASSERT_TRUE(db_->VerifyFileChecksums(ReadOptions()).IsCorruption());
}

// Readers open files while flushes and compactions add and delete files.
TEST_F(DBBlobPathTest, ReadsFindTheirFilesDuringFlushesAndCompactions) {
  Options options = BlobOptions({1});
  options.max_open_files = 10;
  options.enable_blob_garbage_collection = true;
  options.blob_garbage_collection_age_cutoff = 1.0;
  Reopen(options);
  constexpr int kKeys = 20;
  PutRange(0, kKeys, "v0_");
  ASSERT_OK(Flush());

  std::atomic<bool> stop{false};
  std::atomic<int> reads{0};
  std::vector<std::thread> readers;
  const Defer end_readers([&] {
    stop = true;
    for (std::thread& reader : readers) {
      reader.join();
    }
  });
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      // A reader returns early if it has found an error.
      const Defer end_test([&] { stop = true; });
      for (int i = t; !stop; i = (i + 1) % kKeys, ++reads) {
        std::string value;
        ASSERT_OK(db_->Get(ReadOptions(), Key(i), &value));
        if (i == 0) {
          std::unique_ptr<Iterator> it(db_->NewIterator(ReadOptions()));
          int seen = 0;
          for (it->SeekToFirst(); it->Valid(); it->Next()) {
            ASSERT_GT(it->value().size(), 100);
            ++seen;
          }
          ASSERT_OK(it->status());
          ASSERT_EQ(seen, kKeys);
        }
      }
    });
  }
  // The readers may begin late. If they do, there are more rounds, so that
  // reads overlap with flushes and compactions.
  const uint64_t deadline = env_->NowMicros() + 60 * 1000 * 1000;
  for (int round = 1; !stop && (round <= 20 || reads < 3 * kKeys) &&
                      env_->NowMicros() < deadline;
       ++round) {
    PutRange(0, kKeys, "v" + std::to_string(round) + "_");
    ASSERT_OK(Flush());
    if (round % 4 == 0) {
      ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    }
  }
  stop = true;
  for (std::thread& reader : readers) {
    reader.join();
  }
  readers.clear();
  ASSERT_GE(reads, 3 * kKeys);
  VerifyReads();
}

TEST_F(DBBlobPathTest, DirectWriteIsReadableBeforeAndAfterFlush) {
  const Options options = DirectWriteOptions({1});
  Reopen(options);
  PutRange(0, 10, "a");
  ASSERT_EQ(BlobCounts(), (Counts{0, 1, 0, 0}));
  VerifyReads();
  ASSERT_EQ(Registry().size(), 1);
  ASSERT_OK(Flush());
  ASSERT_EQ(BlobCounts(), (Counts{0, 1, 0, 0}));
  VerifyReads();
  Reopen(options);
  VerifyReads();
  ASSERT_EQ(Registry().size(), 1);

  // Close() flushes the memtable.
  WriteOptions sync;
  sync.sync = true;
  expected_[Key(20)] = Value(20, "sync");
  ASSERT_OK(db_->Put(sync, Key(20), expected_[Key(20)]));
  Reopen(options);
  VerifyReads();
  ASSERT_EQ(BlobCounts(), (Counts{0, 2, 0, 0}));
}

TEST_F(DBBlobPathTest, DirectWriteFollowsSetOptions) {
  Options options = DirectWriteOptions({1});
  options.blob_direct_write_partitions = 2;
  const auto listener = std::make_shared<FileListener>(env_);
  options.listeners.push_back(listener);
  options.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  Reopen(options);
  PutRange(0, 10, "one");
  ASSERT_EQ(BlobCounts(), (Counts{0, 2, 0, 0}));
  ASSERT_OK(db_->SetOptions({{"level_blob_path_ids", "3"}}));
  VerifyReads();
  PutRange(5, 15, "three");
  ASSERT_OK(db_->SetOptions({{"level_blob_path_ids", "0:1"}}));
  PutRange(12, 20, "zero");
  ASSERT_EQ(BlobCounts(), (Counts{2, 2, 0, 2}));
  VerifyReads();
  ASSERT_OK(Flush());
  VerifyReads();
  ASSERT_OK(db_->VerifyFileChecksums(ReadOptions()));
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  ASSERT_EQ(listener->flushed_.size(), 6);
  ASSERT_EQ(listener->created_, listener->flushed_);
  Reopen(options);
  VerifyReads();
  ASSERT_EQ(Registry().size(), 4);
}

// An iterator with an old SuperVersion can read a file of its memtable that was
// flushed, replaced and dropped from the Version meanwhile. Only the write path
// still knows the path of that file.
TEST_F(DBBlobPathTest, DirectWriteFileOutlivesItsVersion) {
  Options options = DirectWriteOptions({2});
  Reopen(options);
  PutRange(0, 4, "old");
  const std::map<std::string, std::string> old = expected_;
  ReadOptions lazy;
  lazy.allow_unprepared_value = true;
  std::unique_ptr<Iterator> it(db_->NewIterator(lazy));
  it->SeekToFirst();
  ASSERT_TRUE(it->Valid());

  ASSERT_OK(Flush());
  PutRange(0, 4, "new");
  ASSERT_OK(Flush());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  WaitForDeletions();
  size_t seen = 0;
  for (; it->Valid(); it->Next(), ++seen) {
    ASSERT_TRUE(it->PrepareValue()) << it->status().ToString();
    ASSERT_EQ(it->value(), old.at(it->key().ToString()));
  }
  ASSERT_OK(it->status());
  ASSERT_EQ(seen, old.size());
  it.reset();
  VerifyReads();
}

TEST_F(DBBlobPathTest, DirectWriteSurvivesAFailedFlush) {
  Options options = DirectWriteOptions({2});
  Reopen(options);
  PutRange(0, 10, "a");
  SyncPoint::GetInstance()->SetCallBack(
      "VersionSet::ProcessManifestWrites:AfterSyncManifest", [](void* arg) {
        *static_cast<IOStatus*>(arg) = IOStatus::IOError("injected");
      });
  SyncPoint::GetInstance()->EnableProcessing();
  ASSERT_NOK(Flush());
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  // The Version of the failed edit does not exist, but the file still does.
  ASSERT_EQ(BlobCounts(), (Counts{0, 0, 1, 0}));
  ASSERT_EQ(Registry().size(), 1);
  VerifyReads();
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  RegisterCustomObjects(argc, argv);
  return RUN_ALL_TESTS();
}
