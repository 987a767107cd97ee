//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Files of databases with enable_blob_address_map: copies, images of the map,
// paths, and files that are lost or damaged.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/address_map_checkpoint.h"
#include "db/address_map/address_map_store.h"
#include "db/address_map/address_map_verifier.h"
#include "db/address_map/blob_file_slot_table.h"
#include "db/blob/blob_log_format.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "env/composite_env_wrapper.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "rocksdb/system_clock.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/embedded_value_test_util.h"
#include "test_util/strata/line_logger_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "util/defer.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Refuses to open a blob file for reading if `limit` of them are open.
class FewBlobFilesFS : public FileSystemWrapper {
 public:
  FewBlobFilesFS(const std::shared_ptr<FileSystem>& base, int limit)
      : FileSystemWrapper(base), limit_(limit) {}

  const char* Name() const override { return "FewBlobFilesFS"; }
  IOStatus NewRandomAccessFile(const std::string& fname,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    if (!Slice(fname).ends_with(".blob")) {
      return FileSystemWrapper::NewRandomAccessFile(fname, options, result,
                                                    dbg);
    }
    auto count = std::make_unique<Count>(&open_);
    if (open_ > limit_) {
      ++refused_;
      return IOStatus::IOError(fname, "Too many open files");
    }
    std::unique_ptr<FSRandomAccessFile> file;
    IOStatus s =
        FileSystemWrapper::NewRandomAccessFile(fname, options, &file, dbg);
    if (s.ok()) {
      *result = std::make_unique<File>(std::move(file), std::move(count));
    }
    return s;
  }
  int refused() const { return refused_; }

 private:
  struct Count {
    explicit Count(std::atomic<int>* n) : open(n) { ++*open; }
    ~Count() { --*open; }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;

    std::atomic<int>* const open;
  };
  class File : public FSRandomAccessFileOwnerWrapper {
   public:
    File(std::unique_ptr<FSRandomAccessFile>&& file,
         std::unique_ptr<Count> count)
        : FSRandomAccessFileOwnerWrapper(std::move(file)),
          count_(std::move(count)) {}

   private:
    const std::unique_ptr<Count> count_;
  };

  const int limit_;
  std::atomic<int> open_{0};
  std::atomic<int> refused_{0};
};

// Records the reads of blob files that VerifyChecksum() makes, and lets time
// pass.
class VerifyReadsFS : public FileSystemWrapper {
 public:
  explicit VerifyReadsFS(const std::shared_ptr<FileSystem>& base)
      : FileSystemWrapper(base) {}

  const char* Name() const override { return "VerifyReadsFS"; }
  IOStatus NewRandomAccessFile(const std::string& fname,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    IOStatus s =
        FileSystemWrapper::NewRandomAccessFile(fname, options, result, dbg);
    if (s.ok() && Slice(fname).ends_with(".blob")) {
      *result = std::make_unique<File>(std::move(*result), this);
    }
    return s;
  }

  // The timeouts of the reads.
  std::vector<std::chrono::microseconds> timeouts;
  // Number of reads with the id of a request.
  size_t num_ids = 0;
  // Called at the end of each read.
  std::function<void()> on_read = [] {};

 private:
  class File : public FSRandomAccessFileOwnerWrapper {
   public:
    File(std::unique_ptr<FSRandomAccessFile>&& file, VerifyReadsFS* fs)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), fs_(fs) {}

    IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                  Slice* result, char* scratch,
                  IODebugContext* dbg) const override {
      const IOStatus s =
          target()->Read(offset, n, options, result, scratch, dbg);
      if (options.io_activity == Env::IOActivity::kVerifyDBChecksum) {
        fs_->timeouts.push_back(options.timeout);
        fs_->num_ids += dbg != nullptr && dbg->request_id != nullptr ? 1 : 0;
        fs_->on_read();
      }
      return s;
    }

   private:
    VerifyReadsFS* const fs_;
  };
};

// A clock that can be put forward.
class ForwardClock : public SystemClockWrapper {
 public:
  using SystemClockWrapper::SystemClockWrapper;

  const char* Name() const override { return "ForwardClock"; }
  uint64_t NowMicros() override {
    return SystemClockWrapper::NowMicros() + forward;
  }

  std::atomic<uint64_t> forward{0};
};

}  // namespace

class DBAddressMapFileTest : public AddressMapDBTestBase {
 public:
  DBAddressMapFileTest() : AddressMapDBTestBase("db_address_map_file_test") {}

 protected:
  // Returns the lines that AddressMapVerifier reports.
  std::vector<std::string> Verify(bool read_values, uint64_t num_values) {
    ColumnFamilyData* const cfd = Family();
    AddressMapVerifier::Options verifier_options;
    verifier_options.num_threads = 3;
    verifier_options.read_values = read_values;
    AddressMapVerifier::Result result;
    std::vector<std::string> lines;
    WaitForJobs();
    SuperVersion* const sv = cfd->GetReferencedSuperVersion(dbfull());
    EXPECT_OK(AddressMapVerifier::Verify(
        cfd, sv->current, verifier_options,
        [&lines](const std::string& line) { lines.push_back(line); }, &result));
    dbfull()->CleanupSuperVersion(sv);
    EXPECT_EQ(result.values, num_values);
    EXPECT_EQ(result.errors, lines.size());
    return lines;
  }

  // Returns the path of the only image of a map, or an empty string.
  std::string ImagePath() {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(dbname_, &names));
    std::string path;
    for (const std::string& name : names) {
      if (name.find(".dbtmp") != std::string::npos) {
        EXPECT_TRUE(path.empty()) << name;
        path = dbname_ + "/" + name;
      }
    }
    return path;
  }

  // Returns how lines of the verifier describe the slot of the blob file.
  std::string SlotText(uint64_t blob_file) {
    const BlobFileSlotTable& files = Blobs()->file_table();
    const uint32_t slot = files.Find(blob_file);
    EXPECT_NE(slot, BlobFileSlotTable::kLostSlot);
    return "(slot " + std::to_string(slot) + " of blob file #" +
           std::to_string(blob_file) + ": " +
           std::to_string(files.LiveCount(slot)) + " live values of " +
           std::to_string(files.LiveBytes(slot)) + " bytes)";
  }
};

// A crash of a job can leave a blob file of a map with little more than its
// header. It is deleted even if the database has no map any more. RocksDB keeps
// short files of version 1, as a writer of blobs may be about to fill them.
TEST_F(DBAddressMapFileTest, StubsOfAMapAreDeletedWithTheMapOff) {
  std::string mapped;
  BlobHeaderV2().EncodeTo(&mapped);
  std::string unmapped;
  BlobLogHeader().EncodeTo(&unmapped);
  for (const bool writes_directly : {false, true}) {
    SCOPED_TRACE(writes_directly);
    Options options = CurrentOptions();
    options.enable_blob_files = true;
    options.enable_blob_direct_write = writes_directly;
    options.allow_concurrent_memtable_write = !writes_directly;
    DestroyAndReopen(options);
    ASSERT_OK(Put("k", std::string(100, 'v')));
    ASSERT_OK(Flush());
    Close();
    const std::vector<std::string> stubs = {mapped, mapped.substr(0, 8),
                                            mapped + "record"};
    uint64_t number = 1000;
    for (const std::string& stub : stubs) {
      ASSERT_OK(WriteStringToFile(env_, stub, BlobFileName(dbname_, ++number)));
    }
    const std::string other = BlobFileName(dbname_, ++number);
    ASSERT_OK(WriteStringToFile(env_, unmapped, other));
    Reopen(options);
    for (; number > 1000; --number) {
      const std::string fname = BlobFileName(dbname_, number);
      const Status s = env_->FileExists(fname);
      EXPECT_EQ(fname == other, s.ok()) << fname;
    }
    EXPECT_EQ(Get("k"), std::string(100, 'v'));
  }
}

// A loss of power can keep the size of an unfinished file and lose its first
// block. Such a file is deleted, unless blobs are written directly: then the
// file may be one that RocksDB keeps.
TEST_F(DBAddressMapFileTest, FilesThatLostTheirFirstBlockAreDeleted) {
  std::string unmapped;
  BlobLogHeader().EncodeTo(&unmapped);
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("k", std::string(100, 'v')));
  ASSERT_OK(Flush());
  Close();
  const std::string lost = BlobFileName(dbname_, 1001);
  ASSERT_OK(WriteStringToFile(env_, std::string(4096, '\0'), lost));
  const std::string other = BlobFileName(dbname_, 1002);
  ASSERT_OK(WriteStringToFile(env_, unmapped + std::string(4096, '\0'), other));
  Reopen(MapOptions());
  EXPECT_TRUE(env_->FileExists(lost).IsNotFound());
  EXPECT_OK(env_->FileExists(other));
  EXPECT_EQ(Get("k"), std::string(100, 'v'));

  Options options = CurrentOptions();
  options.enable_blob_files = true;
  options.enable_blob_direct_write = true;
  options.allow_concurrent_memtable_write = false;
  DestroyAndReopen(options);
  Close();
  ASSERT_OK(WriteStringToFile(env_, std::string(4096, '\0'), lost));
  Reopen(options);
  EXPECT_OK(env_->FileExists(lost));
}

// A record is shorter than 4 GiB, key included. A flush that tried to write a
// longer one would fail, and so would the flush of each later open.
TEST_F(DBAddressMapFileTest, ValueOfALargeKeyStaysInTheSstFile) {
  constexpr uint64_t kMaxSize = 5000;
  EnableCallBack("IsSeparable:MaxSize", [](void* max_size) {
    ASSERT_EQ(*static_cast<uint64_t*>(max_size), kMaxSeparableSize);
    *static_cast<uint64_t*>(max_size) = kMaxSize;
  });
  DestroyAndReopen(MapOptions());
  const Contents model = {
      {std::string(1000, 'a'), std::string(kMaxSize - 1000, 'v')},
      {std::string(1000, 'b'), std::string(kMaxSize - 999, 'v')},
      {std::string(kMaxSize - 1000, 'c'), std::string(1000, 'v')},
      {std::string(kMaxSize - 999, 'd'), std::string(1000, 'v')}};
  for (const auto& [key, value] : model) {
    ASSERT_OK(Put(key, value));
  }
  ASSERT_OK(Flush());
  EXPECT_EQ(Blobs()->map()->NumEntries(), 2);
  for (const bool reopen : {false, true}) {
    if (reopen) {
      Reopen(MapOptions());
    }
    for (const auto& [key, value] : model) {
      EXPECT_EQ(Get(key), value);
    }
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    ASSERT_NO_FATAL_FAILURE(CheckIterator(iter.get(), model));
  }
  DisableCallBacks();
}

// A Version does not keep its blob files if they are those of a map.
TEST_F(DBAddressMapFileTest, VerifierLeavesOutFilesThatWereDropped) {
  DestroyAndReopen(MapOptions());
  for (int i = 0; i <= 30; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  ASSERT_OK(Delete(Key(30)));
  ASSERT_OK(Flush());
  WaitForJobs();
  SuperVersion* const sv = Family()->GetReferencedSuperVersion(dbfull());
  const std::vector<BlobMetaData> before = BlobFiles();
  ASSERT_EQ(before.size(), 1);
  EXPECT_OK(db_->CollectBlobGarbage(CollectBlobGarbageOptions()));
  WaitForJobs();
  EXPECT_EQ(FilesOnDisk(kBlobFile).count(before[0].blob_file_number), 0);
  AddressMapVerifier::Result result;
  EXPECT_OK(AddressMapVerifier::Verify(
      Family(), sv->current, AddressMapVerifier::Options(),
      [](const std::string& line) { ADD_FAILURE() << line; }, &result));
  dbfull()->CleanupSuperVersion(sv);
  EXPECT_EQ(result.values, 30);
  EXPECT_EQ(result.damaged_indexes, 0);
}

TEST_F(DBAddressMapFileTest, CheckpointAndBackupOpenWithTheSameValues) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
    if (i % 10 == 9) {
      ASSERT_OK(Flush());
    }
  }
  ASSERT_OK(Put(Key(0), Value(100)));
  const std::string checkpoint_dir = dbname_ + "_checkpoint";
  const std::string backup_dir = dbname_ + "_backup";
  const std::string restored_dir = dbname_ + "_restored";
  for (const std::string& dir : {checkpoint_dir, backup_dir, restored_dir}) {
    ASSERT_OK(DestroyDir(env_, dir));
  }
  Checkpoint* raw = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &raw));
  const std::unique_ptr<Checkpoint> checkpoint(raw);
  ASSERT_OK(checkpoint->CreateCheckpoint(checkpoint_dir));
  {
    BackupEngine* engine = nullptr;
    ASSERT_OK(
        BackupEngine::Open(env_, BackupEngineOptions(backup_dir), &engine));
    const std::unique_ptr<BackupEngine> owner(engine);
    ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
    ASSERT_OK(engine->VerifyBackup(1, /*verify_with_checksum=*/true));
    ASSERT_OK(engine->RestoreDBFromLatestBackup(restored_dir, restored_dir));
  }
  ExportImportFilesMetaData* exported = nullptr;
  EXPECT_TRUE(checkpoint
                  ->ExportColumnFamily(db_->DefaultColumnFamily(),
                                       dbname_ + "_export", &exported)
                  .IsNotSupported());
  for (const std::string& dir : {checkpoint_dir, restored_dir}) {
    for (const bool read_only : {true, false}) {
      std::unique_ptr<DB> db;
      ASSERT_OK(read_only ? DB::OpenForReadOnly(options, dir, &db)
                          : DB::Open(options, dir, &db));
      std::string value;
      for (int i = 0; i < 30; ++i) {
        ASSERT_OK(db->Get(ReadOptions(), Key(i), &value));
        EXPECT_EQ(value, Value(i == 0 ? 100 : i));
      }
      std::unique_ptr<Iterator> iter(db->NewIterator(ReadOptions()));
      size_t n = 0;
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        ++n;
      }
      ASSERT_OK(iter->status());
      EXPECT_EQ(n, 30);
    }
  }
  for (const std::string& dir : {checkpoint_dir, backup_dir, restored_dir}) {
    ASSERT_OK(DestroyDir(env_, dir));
  }
}

// A clean close saves the map in an image, which the next open loads and
// deletes. After an error no image is saved.
TEST_F(DBAddressMapFileTest, CleanCloseSavesTheMap) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  std::atomic<int> loaded{0};
  EnableCallBack("AddressMapCheckpoints::Load:Loaded",
                 [&](void*) { ++loaded; });
  Reopen(options);
  EXPECT_EQ(loaded, 1);
  EXPECT_EQ(Blobs()->map()->NumEntries(), 30);
  std::vector<std::string> names;
  ASSERT_OK(env_->GetChildren(dbname_, &names));
  for (const std::string& name : names) {
    EXPECT_EQ(name.find(".dbtmp"), std::string::npos) << name;
  }
  EXPECT_EQ(Get(Key(7)), Value(7));
  // A read-only open loads the image, too, and does not delete it.
  Close();
  ASSERT_OK(ReadOnlyReopen(options));
  EXPECT_EQ(loaded, 2);
  EXPECT_EQ(Get(Key(7)), Value(7));
  Close();
  Reopen(options);
  EXPECT_EQ(loaded, 3);
  // After an error the contents of the MANIFEST are unknown, so no image is
  // saved.
  ASSERT_OK(Put("k", Value(1)));
  SyncPoint::GetInstance()->SetCallBack(
      "FlushJob::WriteLevel0Table:s", [](void* status) {
        *static_cast<Status*>(status) = Status::IOError("injected");
      });
  EXPECT_NOK(Flush());
  SyncPoint::GetInstance()->ClearCallBack("FlushJob::WriteLevel0Table:s");
  Reopen(options);
  EXPECT_EQ(loaded, 3);
  EXPECT_EQ(Get("k"), Value(1));
  DisableCallBacks();
}

// A process that has the database open for writing may change the MANIFEST
// between the time when another process recovers it and the time when that
// process looks for images.
TEST_F(DBAddressMapFileTest, ImageOfALaterStateIsNotUsed) {
  const Options options = MapOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  for (const char* field : {"None", "Number", "Size"}) {
    SCOPED_TRACE(field);
    std::atomic<int> loaded{0};
    EnableCallBack("AddressMapCheckpoints::Load:Loaded",
                   [&](void*) { ++loaded; });
    EnableCallBack(std::string("AddressMapCheckpoints::Find:") + field,
                   [](void* value) { --*static_cast<uint64_t*>(value); });
    Reopen(options);
    DisableCallBacks();
    EXPECT_EQ(loaded, std::string(field) == "None" ? 1 : 0);
    EXPECT_EQ(Blobs()->map()->NumEntries(), 30);
    EXPECT_EQ(Get(Key(7)), Value(7));
  }
}

// The image of an earlier state of the database is not loaded.
TEST_F(DBAddressMapFileTest, ImageOfAnEarlierStateIsNotUsed) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  Close();
  const std::string image_path = ImagePath();
  ASSERT_FALSE(image_path.empty());
  std::string image;
  ASSERT_OK(ReadFileToString(env_, image_path, &image));
  std::atomic<int> loaded{0};
  EnableCallBack("AddressMapCheckpoints::Load:Loaded",
                 [&](void*) { ++loaded; });
  // The image matches. The next close saves no other one.
  options.save_blob_address_map = false;
  Reopen(options);
  EXPECT_EQ(loaded, 1);
  EXPECT_TRUE(env_->FileExists(image_path).IsNotFound());
  ASSERT_OK(Put(Key(7), Value(100)));
  ASSERT_OK(Flush());
  Close();
  ASSERT_OK(WriteStringToFile(env_, image, image_path));
  options.save_blob_address_map = true;
  for (int expected_loads : {1, 2}) {
    Reopen(options);
    EXPECT_EQ(loaded, expected_loads);
    for (int i = 0; i < 30; ++i) {
      EXPECT_EQ(Get(Key(i)), Value(i == 7 ? 100 : i));
    }
  }
  DisableCallBacks();
}

// The map that the image could not fill is replaced. With
// optimize_manifest_for_recovery, the open appends no other Version afterwards.
TEST_F(DBAddressMapFileTest, DamagedImageIsNotUsed) {
  for (const bool optimize_manifest : {false, true}) {
    SCOPED_TRACE(optimize_manifest);
    Options options = MapOptions();
    options.optimize_manifest_for_recovery = optimize_manifest;
    DestroyAndReopen(options);
    for (int i = 0; i < 30; ++i) {
      ASSERT_OK(Put(Key(i), Value(i)));
    }
    ASSERT_OK(Flush());
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    Close();
    const std::string path = ImagePath();
    ASSERT_FALSE(path.empty());
    std::string image;
    ASSERT_OK(ReadFileToString(env_, path, &image));
    image[image.size() - 1] ^= 1;
    ASSERT_OK(WriteStringToFile(env_, image, path));
    std::atomic<int> loaded{0};
    EnableCallBack("AddressMapCheckpoints::Load:Loaded",
                   [&](void*) { ++loaded; });
    Reopen(options);
    DisableCallBacks();
    EXPECT_EQ(loaded, 0);
    EXPECT_EQ(Blobs()->map()->NumEntries(), 30);
    EXPECT_EQ(Family()->current()->storage_info()->strata()->undecided_files(),
              Blobs()->undecided_files());
    const Snapshot* const snapshot = db_->GetSnapshot();
    ASSERT_OK(Put(Key(7), Value(100)));
    db_->ReleaseSnapshot(snapshot);
    EXPECT_EQ(Get(Key(8)), Value(8));
  }
}

// LOG names an image whose header is damaged.
TEST_F(DBAddressMapFileTest, DamagedHeaderOfAnImageIsLogged) {
  Options options = MapOptions();
  const auto logger = std::make_shared<LineLogger>();
  options.info_log = logger;
  DestroyAndReopen(options);
  ASSERT_OK(Put(Key(1), Value(1)));
  ASSERT_OK(Flush());
  Close();
  const std::string path = ImagePath();
  std::string image;
  ASSERT_OK(ReadFileToString(env_, path, &image));
  image[20] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, image, path));
  const char* const line = "Images of address maps: a temporary file cannot be";
  EXPECT_FALSE(logger->Has(line));
  Reopen(options);
  EXPECT_TRUE(logger->Has(line, path));
  EXPECT_EQ(Get(Key(1)), Value(1));
}

// An image without damage that has other blob files than the MANIFEST is not
// used. Only an error of the program that wrote it can make one.
TEST_F(DBAddressMapFileTest, ImageWithOtherBlobFilesThanTheManifestIsNotUsed) {
  Options options = MapOptions();
  for (const char* difference :
       {"none", "one more", "one less", "another", "size", "path"}) {
    SCOPED_TRACE(difference);
    const std::string what = difference;
    const auto logger = std::make_shared<LineLogger>();
    options.info_log = logger;
    DestroyAndReopen(options);
    ASSERT_OK(Put(Key(1), Value(1)));
    ASSERT_OK(Flush());
    ASSERT_OK(Put(Key(2), Value(2)));
    ASSERT_OK(Flush());
    Close();
    const std::string path = ImagePath();
    ASSERT_FALSE(path.empty());

    AddressMapCheckpoint::Io io;
    io.fs = env_->GetFileSystem().get();
    AddressMapCheckpoint::Header header;
    ASSERT_OK(AddressMapCheckpoint::ReadHeader(io, path, &header));
    BlobFileSlotTable files;
    AddressMap map(AddressMap::Options(), &files);
    ASSERT_OK(AddressMapCheckpoint::Load(io, path, header.identity,
                                         /*num_threads=*/1, &map));
    BlobFileSlotTable other_files;
    AddressMap other_map(AddressMap::Options(), &other_files);
    const std::vector<BlobFileSlotTable::Info> all = files.GetAll();
    ASSERT_EQ(all.size(), 2);
    for (const BlobFileSlotTable::Info& file : all) {
      if ((what == "one less" || what == "another") &&
          file.number == all[0].number) {
        continue;
      }
      other_files.Add(file.number, file.path_id + (what == "path" ? 1 : 0),
                      file.compression, file.state,
                      file.size + (what == "size" ? 1 : 0));
    }
    if (what == "one more" || what == "another") {
      other_files.Add(1000, /*path_id=*/0, kNoCompression,
                      BlobFileSlotTable::State::kLive, /*size=*/5000);
    }
    ASSERT_OK(AddressMapCheckpoint::Write(
        io, path + ".new", path, /*directory=*/nullptr, header.identity,
        what == "none" ? map : other_map));

    Reopen(options);
    EXPECT_EQ(what == "none", logger->Has("Address map loaded"));
    EXPECT_EQ(what != "none", logger->Has("Image of the address map not used"));
    EXPECT_EQ(Blobs()->map()->NumEntries(), 2);
    EXPECT_EQ(Get(Key(1)), Value(1));
    EXPECT_EQ(Get(Key(2)), Value(2));
  }
}

// A compaction into a level whose values lie on another path moves the values.
// Readers of the old files find them, even if the compaction fails.
TEST_F(DBAddressMapFileTest, CompactionMovesValuesToAnotherTier) {
  for (const bool versioned : {false, true}) {
    Options options = MapOptions();
    options.num_levels = 3;
    options.cf_paths = {{dbname_ + "/fast", 0}, {dbname_ + "/slow", 0}};
    options.level_blob_path_ids = {0, 1};
    options.enable_lsm_bypass = !versioned;
    DestroyAndReopen(options);
    const auto paths = [&] {
      std::set<std::string> result;
      ColumnFamilyMetaData metadata;
      db_->GetColumnFamilyMetaData(&metadata);
      for (const BlobMetaData& file : metadata.blob_files) {
        result.insert(
            file.blob_file_path.substr(file.blob_file_path.rfind('/') + 1));
      }
      return result;
    };
    const auto check = [&](ReadOptions read_options, int add) {
      std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      int i = 0;
      for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++i) {
        EXPECT_EQ(iter->key(), Key(i));
        EXPECT_EQ(iter->value(), Value(i + add));
        std::string value;
        ASSERT_OK(db_->Get(read_options, Key(i), &value));
        EXPECT_EQ(value, Value(i + add));
      }
      ASSERT_OK(iter->status());
      EXPECT_EQ(i, 20);
    };
    for (int i = 0; i < 20; ++i) {
      ASSERT_OK(Put(Key(i), Value(i)));
    }
    ASSERT_OK(Flush());
    EXPECT_EQ(paths(), std::set<std::string>{"fast"});
    EXPECT_EQ(IsDirect(Key(3)), !versioned);

    // The compaction fails, and nothing has changed.
    env_->manifest_write_error_.store(true, std::memory_order_release);
    EXPECT_NOK(ForceCompaction());
    env_->manifest_write_error_.store(false, std::memory_order_release);
    check(ReadOptions(), 0);
    EXPECT_EQ(Blobs()->map()->NumEntries(), 20);
    Reopen(options);
    check(ReadOptions(), 0);

    // An old iterator reads the values under their old names.
    std::unique_ptr<Iterator> old_iter(db_->NewIterator(ReadOptions()));
    old_iter->SeekToFirst();
    ASSERT_TRUE(old_iter->Valid());
    ASSERT_OK(ForceCompaction());
    check(ReadOptions(), 0);
    int n = 0;
    for (; old_iter->Valid(); old_iter->Next(), ++n) {
      EXPECT_EQ(old_iter->value(), Value(n));
    }
    ASSERT_OK(old_iter->status());
    EXPECT_EQ(n, 20);
    for (old_iter->SeekToLast(); old_iter->Valid(); old_iter->Prev()) {
      --n;
      EXPECT_EQ(old_iter->value(), Value(n));
    }
    EXPECT_EQ(n, 0);
    old_iter.reset();
    WaitForJobs();
    EXPECT_EQ(paths(), std::set<std::string>{"slow"});
    EXPECT_EQ(Blobs()->map()->NumEntries(), 20);
    EXPECT_OK(Blobs()->map()->TEST_Check());
    EXPECT_EQ(IsDirect(Key(3)), !versioned);

    // New values are written to the fast path, and values that are not
    // rewritten stay.
    const Snapshot* const snapshot = db_->GetSnapshot();
    for (int i = 0; i < 20; i += 2) {
      ASSERT_OK(Put(Key(i), Value(i + 100)));
    }
    ASSERT_OK(Flush());
    EXPECT_EQ(paths(), (std::set<std::string>{"fast", "slow"}));
    ASSERT_OK(ForceCompaction());
    WaitForJobs();
    EXPECT_EQ(paths(), std::set<std::string>{"slow"});
    ReadOptions at_snapshot;
    at_snapshot.snapshot = snapshot;
    check(at_snapshot, 0);
    db_->ReleaseSnapshot(snapshot);
    Compact();
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(Get(Key(i)), Value(i % 2 == 0 ? i + 100 : i));
      }
      EXPECT_EQ(Blobs()->map()->NumEntries(), 20);
      EXPECT_TRUE(Verify(/*read_values=*/true, 20).empty());
      Reopen(options);
    }
  }
}

// The file numbers of images were allocated, so that the next open does not
// skip numbers, and they belong to no live file, so that obsolete images are
// deleted.
TEST_F(DBAddressMapFileTest, ImagesHaveUnusedFileNumbers) {
  constexpr int kFamilies = 30;
  Options options = MapOptions();
  options.blob_file_size = 1000;
  DestroyAndReopen(options);
  std::vector<std::string> names;
  for (int i = 1; i < kFamilies; ++i) {
    names.push_back("family" + std::to_string(i));
  }
  CreateAndReopenWithCF(names, options);
  names.insert(names.begin(), kDefaultColumnFamilyName);
  const auto check = [&] {
    for (int cf = 0; cf < kFamilies; ++cf) {
      for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(Get(cf, Key(i)), Value(100 * cf + i)) << cf;
      }
    }
  };
  const auto images = [&] {
    std::vector<std::string> files;
    EXPECT_OK(env_->GetChildren(dbname_, &files));
    size_t n = 0;
    for (const std::string& file : files) {
      uint64_t number = 0;
      FileType type;
      if (ParseFileName(file, &number, &type) && type == kTempFile) {
        EXPECT_LT(number, 10000) << file;
        ++n;
      }
    }
    return n;
  };
  for (int cf = 0; cf < kFamilies; ++cf) {
    for (int i = 0; i < 5; ++i) {
      ASSERT_OK(Put(cf, Key(i), Value(100 * cf + i)));
    }
    ASSERT_OK(Flush(cf));
  }
  for (int round = 0; round < 3; ++round) {
    Close();
    EXPECT_EQ(images(), kFamilies);
    ReopenWithColumnFamilies(names, options);
    EXPECT_EQ(images(), 0);
    check();
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_OK(Put(round, "more", Value(round)));
    ASSERT_OK(Flush(round));
  }
}

// A recovery needs no more open files than it has threads.
TEST_F(DBAddressMapFileTest, RecoveryOpensFewBlobFilesAtATime) {
  constexpr int kFiles = 40;
  Options options = MapOptions();
  options.disable_auto_compactions = true;
  options.save_blob_address_map = false;
  DestroyAndReopen(options);
  for (int i = 0; i < kFiles; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
    ASSERT_OK(Flush());
  }
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  ASSERT_EQ(metadata.blob_files.size(), size_t{kFiles});

  options.max_file_opening_threads = 4;
  const auto fs = std::make_shared<FewBlobFilesFS>(
      env_->GetFileSystem(), options.max_file_opening_threads);
  const std::unique_ptr<Env> env = NewCompositeEnv(fs);
  options.env = env.get();
  Reopen(options);
  EXPECT_EQ(fs->refused(), 0);
  Close();
  options.env = env_;
  Reopen(options);
  for (int i = 0; i < kFiles; ++i) {
    EXPECT_EQ(Get(Key(i)), Value(i));
  }
}

TEST_F(DBAddressMapFileTest, LostValueFailsTheOpenOrItsReads) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", Value(1)));
  ASSERT_OK(Flush());
  ASSERT_OK(Put("b", Value(2)));
  ASSERT_OK(Flush());
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  ASSERT_EQ(metadata.blob_files.size(), 2);
  // Another file's contents replace the file with the record of b.
  const std::string first =
      dbname_ + "/" + metadata.blob_files[0].blob_file_name;
  const std::string second =
      dbname_ + "/" + metadata.blob_files[1].blob_file_name;
  Close();
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, first, &contents));
  ASSERT_OK(WriteStringToFile(env_, contents, second, /*should_sync=*/true));
  // Deletes the images, so that the open reads the files.
  std::vector<std::string> names;
  ASSERT_OK(env_->GetChildren(dbname_, &names));
  for (const std::string& name : names) {
    if (name.find(".dbtmp") != std::string::npos) {
      ASSERT_OK(env_->DeleteFile(dbname_ + "/" + name));
    }
  }
  options.allow_data_in_errors = true;
  Status s = TryReopen(options);
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find(Slice("b").ToString(/*hex=*/true)),
            std::string::npos)
      << s.ToString();
  options.paranoid_checks = false;
  Reopen(options);
  EXPECT_EQ(Get("a"), Value(1));
  std::string value;
  EXPECT_TRUE(db_->Get(ReadOptions(), "b", &value).IsCorruption());
  const std::vector<std::string> lines = Verify(/*read_values=*/false, 2);
  ASSERT_EQ(lines.size(), 1);
  EXPECT_NE(lines[0].find(Slice("b").ToString(/*hex=*/true)), std::string::npos)
      << lines[0];
}

// Scans for mapped values read no values that SST files embed.
TEST_F(DBAddressMapFileTest, DamagedEmbeddedValueStopsNoScan) {
  Options options = MapOptions();
  options.save_blob_address_map = false;
  options.disable_auto_compactions = true;
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", Value(1)));
  ASSERT_OK(Put("b", Value(2)));
  ASSERT_OK(Put("c", Value(3)));
  ASSERT_OK(Flush());
  const std::string file = dbname_ + "/external.sst";
  ASSERT_NO_FATAL_FAILURE(
      WriteDamagedEmbeddedValue(options, file, "aa", "b", "bb"));
  ASSERT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
  // The sweep reads the levels that have mapped values.
  EXPECT_EQ(NumTableFilesAtLevel(0), 2);

  Reopen(options);
  EXPECT_EQ(Get("a"), Value(1));
  std::string value;
  EXPECT_TRUE(db_->Get(ReadOptions(), "b", &value).IsCorruption());
  EXPECT_EQ(Get("bb"), "small");
  EXPECT_EQ(Blobs()->map()->NumEntries(), 2);
  ASSERT_OK(db_->DeleteRange(WriteOptions(), "a", "d"));
  ASSERT_OK(Flush());
  WaitForJobs();
  EXPECT_EQ(Blobs()->map()->NumEntries(), 0);
}

TEST_F(DBAddressMapFileTest, VerifierFindsADamagedValue) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  EXPECT_EQ(Verify(/*read_values=*/true, 10), std::vector<std::string>());
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(&metadata);
  const std::string name = metadata.blob_files[0].blob_file_name;
  Close();
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, dbname_ + "/" + name, &contents));
  const size_t at = contents.find(Value(6));
  ASSERT_NE(at, std::string::npos);
  contents[at + 5] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, contents, dbname_ + "/" + name,
                              /*should_sync=*/true));
  Reopen(options);
  EXPECT_EQ(Verify(/*read_values=*/false, 10), std::vector<std::string>());
  const std::vector<std::string> lines = Verify(/*read_values=*/true, 10);
  ASSERT_EQ(lines.size(), 1);
  EXPECT_NE(lines[0].find(Slice(Key(6)).ToString(/*hex=*/true)),
            std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find(name.substr(name.find_first_of("123456789"))),
            std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find(SlotText(metadata.blob_files[0].blob_file_number)),
            std::string::npos)
      << lines[0];
  EXPECT_EQ(Get(Key(5)), Value(5));

  // The values that are overwritten do not count.
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(Put(Key(i), Value(100 + i)));
  }
  ASSERT_OK(Flush());
  const std::vector<std::string> later = Verify(/*read_values=*/true, 10);
  ASSERT_EQ(later.size(), 1);
  EXPECT_NE(later[0].find(": 6 live values of "), std::string::npos)
      << later[0];
  EXPECT_NE(later[0].find(SlotText(metadata.blob_files[0].blob_file_number)),
            std::string::npos)
      << later[0];
}

// The line of a damaged record index has the live count, too.
TEST_F(DBAddressMapFileTest, VerifierNamesTheSlotOfADamagedIndex) {
  DestroyAndReopen(MapOptions());
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(Put(Key(i), Value(i)));
  }
  ASSERT_OK(Flush());
  WaitForJobs();
  const std::vector<BlobMetaData> files = BlobFiles();
  ASSERT_EQ(files.size(), 1);
  const std::string fname = BlobFileName(dbname_, files[0].blob_file_number);
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, fname, &contents));
  // This byte belongs to the footer.
  contents.back() ^= 1;
  ASSERT_OK(WriteStringToFile(env_, contents, fname, /*should_sync=*/true));
  AddressMapVerifier::Options verifier_options;
  verifier_options.read_values = false;
  AddressMapVerifier::Result result;
  std::vector<std::string> lines;
  SuperVersion* const sv = Family()->GetReferencedSuperVersion(dbfull());
  EXPECT_OK(AddressMapVerifier::Verify(
      Family(), sv->current, verifier_options,
      [&lines](const std::string& line) { lines.push_back(line); }, &result));
  dbfull()->CleanupSuperVersion(sv);
  EXPECT_EQ(result.damaged_indexes, 1);
  ASSERT_EQ(lines.size(), 1);
  EXPECT_NE(lines[0].find("record index"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(": 10 live values of "), std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find(SlotText(files[0].blob_file_number)),
            std::string::npos)
      << lines[0];
}

// VerifyChecksum() reads blob files with the time that is left, and ends when
// the deadline has passed, behind whichever read that is.
TEST_F(DBAddressMapFileTest, VerifyChecksumObeysTimeouts) {
  const auto fs = std::make_shared<VerifyReadsFS>(env_->GetFileSystem());
  const auto clock = std::make_shared<ForwardClock>(env_->GetSystemClock());
  CompositeEnvWrapper env(env_, fs, clock);
  const Defer close([&] {
    Close();
    last_options_.env = env_;
  });
  Options options = MapOptions();
  options.env = &env;
  DestroyAndReopen(options);
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(Put(Key(i), std::string(200 << 10, 'v')));
  }
  ASSERT_OK(Flush());

  using std::chrono::microseconds;
  const std::string request_id = "request 1";
  ReadOptions read_options;
  read_options.request_id = &request_id;
  read_options.io_timeout = std::chrono::seconds(5);
  ASSERT_OK(db_->VerifyChecksum(read_options));
  const size_t num_reads = fs->timeouts.size();
  // They read the header, the footer, the index (twice) and the values.
  ASSERT_EQ(num_reads, 8u);
  EXPECT_EQ(std::count(fs->timeouts.begin(), fs->timeouts.end(),
                       microseconds(read_options.io_timeout)),
            8);
  EXPECT_EQ(fs->num_ids, 6u);

  read_options.io_timeout = microseconds(0);
  for (size_t last = 1; last < num_reads; ++last) {
    SCOPED_TRACE(last);
    constexpr std::chrono::minutes kTimeLeft(30);
    read_options.deadline = microseconds(clock->NowMicros()) + kTimeLeft;
    fs->timeouts.clear();
    fs->on_read = [&] {
      if (fs->timeouts.size() == last) {
        clock->forward += microseconds(2 * kTimeLeft).count();
      }
    };
    const Status s = db_->VerifyChecksum(read_options);
    EXPECT_TRUE(s.IsTimedOut()) << s.ToString();
    // The header and the footer have one deadline.
    EXPECT_EQ(fs->timeouts.size(), std::max<size_t>(last, 2));
    for (const microseconds timeout : fs->timeouts) {
      EXPECT_GT(timeout.count(), 0);
      EXPECT_LE(timeout, kTimeLeft);
    }
  }
  fs->on_read = [] {};
  read_options.deadline = microseconds(0);
  EXPECT_OK(db_->VerifyChecksum(read_options));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
