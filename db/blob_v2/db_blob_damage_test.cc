//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of blob files of an address map that are missing, damaged, or on a path
// that is no longer listed: only their own values are lost.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/address_map/address_map_checkpoints.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "rocksdb/listener.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/line_logger_test_util.h"
#include "util/defer.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Has a file with a byte that cannot be read.
class BadSectorFS : public FileSystemWrapper {
 public:
  explicit BadSectorFS(const std::shared_ptr<FileSystem>& base)
      : FileSystemWrapper(base) {}
  const char* Name() const override { return "BadSectorFS"; }

  // REQUIRES: the file is not open.
  void SetBadByte(const std::string& path, uint64_t offset) {
    path_ = path;
    offset_ = offset;
  }
  // Makes reads of the byte fail, or succeed, which they do at first.
  void Fail(bool fails) { fails_ = fails; }

  IOStatus NewRandomAccessFile(const std::string& path,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    const IOStatus s =
        target()->NewRandomAccessFile(path, options, result, dbg);
    if (s.ok() && path == path_) {
      *result = std::make_unique<File>(std::move(*result), this);
    }
    return s;
  }

 private:
  class File : public FSRandomAccessFileOwnerWrapper {
   public:
    File(std::unique_ptr<FSRandomAccessFile>&& file, const BadSectorFS* fs)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), fs_(fs) {}

    IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                  Slice* result, char* scratch,
                  IODebugContext* dbg) const override {
      return fs_->fails_ && offset <= fs_->offset_ && fs_->offset_ < offset + n
                 ? IOStatus::IOError("bad sector")
                 : target()->Read(offset, n, options, result, scratch, dbg);
    }

   private:
    const BadSectorFS* const fs_;
  };

  std::string path_;
  uint64_t offset_ = 0;
  std::atomic<bool> fails_{false};
};

}  // namespace

class DBBlobDamageTest : public AddressMapDBTestBase {
 protected:
  static constexpr int kFiles = 3;
  static constexpr int kKeysOfFile = 40;

  DBBlobDamageTest() : AddressMapDBTestBase("db_blob_damage_test") {}
  ~DBBlobDamageTest() override {
    AddressMapCheckpoints::UseInThisProcess(true);
  }

  Options MapOptions() {
    return AddressMapDBTestBase::MapOptions(/*min_blob_size=*/32);
  }

  static std::string KeyOf(int file, int i) {
    return "f" + std::to_string(file) + Key(i);
  }
  static std::string ValueOf(int file, int i, size_t size) {
    std::string value = "value " + std::to_string(file * 100000 + i) + " ";
    value.resize(size, 'v');
    return value;
  }

  // Writes kFiles blob files of `keys` values each and closes the DB.
  void Load(const Options& options, int keys, size_t value_size) {
    keys_ = keys;
    value_size_ = value_size;
    DestroyAndReopen(options);
    for (int file = 0; file < kFiles; ++file) {
      for (int i = 0; i < keys; ++i) {
        ASSERT_OK(Put(KeyOf(file, i), ValueOf(file, i, value_size)));
      }
      ASSERT_OK(Flush());
    }
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    ASSERT_EQ(metadata.blob_files.size(), kFiles);
    files_.clear();
    for (const BlobMetaData& file : metadata.blob_files) {
      files_.push_back(
          BlobFileName(file.blob_file_path, file.blob_file_number));
    }
    std::sort(files_.begin(), files_.end());
    Close();
  }

  // Returns the number of keys whose reads return Corruption, and checks that
  // all others have their values.
  int CountLost() {
    int lost = 0;
    for (int file = 0; file < kFiles; ++file) {
      for (int i = 0; i < keys_; ++i) {
        std::string value;
        const Status s = db_->Get(ReadOptions(), KeyOf(file, i), &value);
        if (s.ok()) {
          EXPECT_EQ(value, ValueOf(file, i, value_size_));
        } else {
          EXPECT_TRUE(s.IsCorruption()) << s.ToString();
          ++lost;
        }
      }
    }
    return lost;
  }

  int MapProperty(const std::string& name) {
    std::map<std::string, std::string> values;
    EXPECT_TRUE(db_->GetMapProperty("rocksdb.blob-address-map", &values));
    return std::stoi(values[name]);
  }

  void Change(const std::string& path,
              const std::function<void(std::string*)>& change) {
    std::string contents;
    ASSERT_OK(ReadFileToString(env_, path, &contents));
    change(&contents);
    ASSERT_OK(WriteStringToFile(env_, contents, path, /*should_sync=*/true));
  }

  int keys_ = 0;
  size_t value_size_ = 0;
  std::vector<std::string> files_;
};

TEST_F(DBBlobDamageTest, OpensWithAnUnreadableBlobFileUnlessParanoid) {
  const std::map<std::string, std::function<void(const std::string&)>> kinds = {
      {"missing",
       [&](const std::string& path) { ASSERT_OK(env_->DeleteFile(path)); }},
      {"cut off",
       [&](const std::string& path) {
         Change(path, [](std::string* s) { s->resize(s->size() / 2); });
       }},
      {"empty",
       [&](const std::string& path) {
         Change(path, [](std::string* s) { s->clear(); });
       }},
      {"header",
       [&](const std::string& path) {
         Change(path, [](std::string* s) { (*s)[5] ^= 1; });
       }},
      {"footer", [&](const std::string& path) {
         Change(path, [](std::string* s) { (*s)[s->size() - 3] ^= 1; });
       }}};
  for (const bool after_crash : {true, false}) {
    for (const auto& [name, damage] : kinds) {
      if (!after_crash && (name == "header" || name == "footer")) {
        continue;  // loading a checkpoint does not read these
      }
      SCOPED_TRACE(name + (after_crash ? " after a crash" : ""));
      Options options = MapOptions();
      options.allow_data_in_errors = true;
      Load(options, kKeysOfFile, 1000);
      AddressMapCheckpoints::UseInThisProcess(!after_crash);
      std::string copy;
      ASSERT_OK(ReadFileToString(env_, files_[1], &copy));
      damage(files_[1]);

      const Status s = TryReopen(options);
      ASSERT_TRUE(s.IsCorruption()) << s.ToString();
      for (const std::string& part :
           {files_[1], std::string("of 40 keys"), std::string("RepairDB"),
            std::string("paranoid_checks = false"),
            Slice(KeyOf(1, 0)).ToString(/*hex=*/true)}) {
        EXPECT_NE(s.ToString().find(part), std::string::npos) << s.ToString();
      }

      options.paranoid_checks = false;
      for (int round = 0; round < 2; ++round) {
        Reopen(options);
        ASSERT_EQ(CountLost(), kKeysOfFile);
        EXPECT_EQ(MapProperty("lost-values"), kKeysOfFile);
        EXPECT_EQ(MapProperty("damaged-files"), 1);
        // The DB accepts writes and jobs, and keeps the file.
        ASSERT_OK(Put("new" + std::to_string(round), std::string(1000, 'n')));
        ASSERT_OK(Flush());
        WaitForJobs();
        ASSERT_OK(db_->CollectBlobGarbage(CollectBlobGarbageOptions(),
                                          db_->DefaultColumnFamily()));
        ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
        ASSERT_EQ(CountLost(), kKeysOfFile);
        EXPECT_EQ(name == "missing", env_->FileExists(files_[1]).IsNotFound());
      }

      // The file is restored.
      Close();
      ASSERT_OK(WriteStringToFile(env_, copy, files_[1], /*should_sync=*/true));
      options.paranoid_checks = true;
      Reopen(options);
      ASSERT_EQ(CountLost(), 0);
      EXPECT_EQ(MapProperty("damaged-files"), 0);
      Close();
      damage(files_[1]);

      // Once all values of the file were deleted or overwritten, the damage
      // does not matter, and the file is dropped.
      options.paranoid_checks = false;
      Reopen(options);
      for (int i = 0; i < kKeysOfFile; ++i) {
        if (i % 2 == 0) {
          ASSERT_OK(Delete(KeyOf(1, i)));
        } else {
          ASSERT_OK(Put(KeyOf(1, i), ValueOf(1, i, 1000)));
        }
      }
      ASSERT_OK(Flush());
      options.paranoid_checks = true;
      Reopen(options);
      for (int file = 0; file < kFiles; ++file) {
        for (int i = 0; i < kKeysOfFile; ++i) {
          ASSERT_EQ(Get(KeyOf(file, i)), file == 1 && i % 2 == 0
                                             ? "NOT_FOUND"
                                             : ValueOf(file, i, 1000));
        }
      }
      ASSERT_OK(Flush());
      ASSERT_OK(Put("last", std::string(1000, 'n')));
      ASSERT_OK(Flush());
      ColumnFamilyMetaData meta;
      db_->GetColumnFamilyMetaData(&meta);
      for (const BlobMetaData& file : meta.blob_files) {
        EXPECT_EQ(files_[1].find(file.blob_file_name), std::string::npos);
      }
    }
  }
}

// A compaction that moves values out of the map cannot read a lost one. If it
// dropped the value's entry, reads would return NotFound.
// A scan shows the values before the lost ones, also if it reads ahead, and
// does not read the lost ones.
TEST_F(DBBlobDamageTest, ScanShowsTheValuesBeforeALostOne) {
  Options options = MapOptions();
  options.allow_data_in_errors = true;
  Load(options, kKeysOfFile, 1000);
  AddressMapCheckpoints::UseInThisProcess(false);
  ASSERT_OK(env_->DeleteFile(files_[1]));
  options.paranoid_checks = false;
  Reopen(options);
  for (const size_t count : {size_t{0}, size_t{8}}) {
    SCOPED_TRACE(count);
    ReadOptions read_options;
    read_options.blob_prefetch_count = count;
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    int i = 0;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++i) {
      ASSERT_EQ(iter->key(), KeyOf(0, i));
      ASSERT_EQ(iter->value(), ValueOf(0, i, value_size_));
    }
    EXPECT_EQ(i, kKeysOfFile);
    EXPECT_TRUE(iter->status().IsCorruption()) << iter->status().ToString();
    EXPECT_NE(iter->status().ToString().find(
                  Slice(KeyOf(1, 0)).ToString(/*hex=*/true)),
              std::string::npos)
        << iter->status().ToString();
    // The first two values are not read ahead.
    EXPECT_EQ(Ticker(BLOB_MAP_PREFETCH_READ), count == 0 ? 0 : kKeysOfFile - 2);
  }
}

// User keys are data of users.
TEST_F(DBBlobDamageTest, MessagesHaveKeysOnlyIfTheyMay) {
  const std::string lost = KeyOf(1, 0);
  const std::string text = Slice(lost).ToString(/*hex=*/true);
  for (const bool allowed : {false, true}) {
    SCOPED_TRACE(allowed);
    const auto logger = std::make_shared<LineLogger>();
    Options options = MapOptions();
    options.info_log = logger;
    ASSERT_FALSE(options.allow_data_in_errors);
    options.allow_data_in_errors = allowed;
    const auto check = [&](const std::string& what, const Status& s) {
      SCOPED_TRACE(what);
      EXPECT_TRUE(s.IsCorruption()) << s.ToString();
      const std::string message = s.ToString();
      EXPECT_EQ(message.find(text) != std::string::npos, allowed) << message;
      EXPECT_EQ(message.find("<redacted; see allow_data_in_errors>") !=
                    std::string::npos,
                !allowed)
          << message;
    };
    Load(options, kKeysOfFile, 1000);
    AddressMapCheckpoints::UseInThisProcess(false);
    ASSERT_OK(env_->DeleteFile(files_[1]));
    check("Open", TryReopen(options));
    options.paranoid_checks = false;
    Reopen(options);
    std::string value;
    check("Get", db_->Get(ReadOptions(), lost, &value));
    const Slice keys[] = {lost};
    PinnableSlice values[1];
    Status statuses[1];
    db_->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), 1, keys, values,
                  statuses);
    check("MultiGet", statuses[0]);
    {
      const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
      iter->Seek(lost);
      EXPECT_FALSE(iter->Valid());
      check("Iterator", iter->status());
    }
    options.enable_blob_address_map = false;
    Reopen(options);
    check("Compaction", ForceCompaction());
    EXPECT_EQ(logger->Has(text), allowed);
    Close();
  }
}

TEST_F(DBBlobDamageTest, LostValueIsNotMovedOutOfTheMap) {
  Options options = MapOptions();
  Load(options, kKeysOfFile, 1000);
  AddressMapCheckpoints::UseInThisProcess(false);
  ASSERT_OK(env_->DeleteFile(files_[1]));
  options.paranoid_checks = false;
  options.enable_blob_address_map = false;
  Reopen(options);
  ASSERT_EQ(CountLost(), kKeysOfFile);
  const Status s = ForceCompaction();
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find("is lost and cannot be moved out of the map"),
            std::string::npos)
      << s.ToString();
  Reopen(options);
  ASSERT_EQ(CountLost(), kKeysOfFile);
}

namespace {

// Opens no blob file for reads while `fails` is set.
class FailingBlobOpenFS : public FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;

  const char* Name() const override { return "FailingBlobOpenFS"; }

  IOStatus NewRandomAccessFile(const std::string& path,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* file,
                               IODebugContext* dbg) override {
    if (fails && Slice(path).ends_with(".blob")) {
      return IOStatus::IOError("injected");
    }
    return target()->NewRandomAccessFile(path, options, file, dbg);
  }

  std::atomic<bool> fails{false};
};

}  // namespace

// An I/O error may pass, so it must not make the values of a file count as
// lost, also if an open may lose values.
TEST_F(DBBlobDamageTest, OpenFailsAfterAnIOErrorEvenIfNotParanoid) {
  const auto fs = std::make_shared<FailingBlobOpenFS>(FileSystem::Default());
  const std::unique_ptr<Env> env = NewCompositeEnv(fs);
  Options options = MapOptions();
  options.env = env.get();
  options.paranoid_checks = false;
  Load(options, kKeysOfFile, 1000);
  AddressMapCheckpoints::UseInThisProcess(false);
  fs->fails = true;
  const Status s = TryReopen(options);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  fs->fails = false;
  Reopen(options);
  EXPECT_EQ(CountLost(), 0);
  EXPECT_EQ(MapProperty("damaged-files"), 0);
  Destroy(options);
}

// If a block of the record index and a record that it lists are damaged, only
// values of damaged blocks are lost.
TEST_F(DBBlobDamageTest, DamagedIndexBlockLosesOnlyItsValues) {
  Options options = MapOptions();
  constexpr int kKeys = 1500;
  Load(options, kKeys, 50);
  AddressMapCheckpoints::UseInThisProcess(false);
  constexpr size_t kBlock = 4096;
  Change(files_[1], [&](std::string* s) {
    // The header of a record has 32 bytes. Damage the header of the record in
    // the middle, and the blocks of the index that can list it.
    const std::string key = KeyOf(1, kKeys / 2);
    const size_t record = s->find(key);
    ASSERT_NE(record, std::string::npos);
    (*s)[record - 10] ^= 1;
    const size_t index = s->size() - 32 - 1500 * 16;
    for (size_t at = index + 2 * kBlock; at < index + 4 * kBlock; at += 100) {
      (*s)[at] ^= 1;
    }
  });
  const Status s = TryReopen(options);
  ASSERT_TRUE(s.IsCorruption());
  EXPECT_NE(s.ToString().find(files_[1]), std::string::npos) << s.ToString();
  options.paranoid_checks = false;
  Reopen(options);
  const int lost = CountLost();
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, kKeys / 2);
  EXPECT_EQ(MapProperty("damaged-files"), 1);
  EXPECT_EQ(MapProperty("lost-values"), lost);
  // The values of the first and the last block are not lost.
  EXPECT_EQ(Get(KeyOf(1, 0)), ValueOf(1, 0, 50));
  EXPECT_EQ(Get(KeyOf(1, kKeys - 1)), ValueOf(1, kKeys - 1, 50));
}

namespace {

class GcListener : public EventListener {
 public:
  void OnBlobGarbageCollectionCompleted(
      DB* /*db*/, const BlobGarbageCollectionInfo& info) override {
    if (info.status.IsCorruption()) {
      ++corruptions;
    }
  }
  void OnBackgroundError(BackgroundErrorReason /*reason*/,
                         Status* /*error*/) override {
    ++background_errors;
  }

  std::atomic<int> corruptions{0};
  std::atomic<int> background_errors{0};
};

}  // namespace

TEST_F(DBBlobDamageTest, DamagedRecordKeepsOnlyItsOwnFile) {
  Options options = MapOptions();
  Load(options, kKeysOfFile, 1000);
  Change(files_[1],
         [&](std::string* s) { (*s)[s->find(ValueOf(1, 7, 20)) + 100] ^= 1; });
  const auto listener = std::make_shared<GcListener>();
  options.listeners.push_back(listener);
  Reopen(options);
  // Half of each file becomes garbage.
  for (int file = 0; file < kFiles; ++file) {
    for (int i = 0; i < kKeysOfFile; i += 2) {
      ASSERT_OK(Put(KeyOf(file, i), ValueOf(file, i, 1000)));
    }
  }
  ASSERT_OK(Flush());

  // VerifyChecksum() finds the damage before any collection does.
  Status s = db_->VerifyChecksum();
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find(files_[1]), std::string::npos) << s.ToString();

  // Jobs delete files before they end, or pass them to the purge. Removals from
  // the map count as a purge, too, and begin collections. A collection that
  // begins after a wait may call its listeners before it records the damage.
  WaitForCompactOptions wait;
  wait.wait_for_purge = true;
  ASSERT_OK(db_->SetOptions({{"blob_gc_space_amp_limit", "1.01"}}));
  for (int i = 0; i < 100 && listener->corruptions == 0; ++i) {
    ASSERT_OK(Put("filler" + std::to_string(i), std::string(1000, 'f')));
    ASSERT_OK(Flush());
    ASSERT_OK(db_->WaitForCompact(wait));
  }
  EXPECT_EQ(listener->corruptions, 1);
  EXPECT_EQ(listener->background_errors, 0);
  EXPECT_EQ(MapProperty("damaged-files"), 1);
  // The other files are collected, writes are not slowed down, and the damaged
  // file is not tried again at once.
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(Put("more" + std::to_string(i), std::string(1000, 'm')));
    ASSERT_OK(Flush());
    ASSERT_OK(db_->WaitForCompact(wait));
  }
  EXPECT_TRUE(env_->FileExists(files_[0]).IsNotFound());
  EXPECT_TRUE(env_->FileExists(files_[2]).IsNotFound());
  EXPECT_OK(env_->FileExists(files_[1]));
  EXPECT_EQ(listener->corruptions, 1);
  std::string property;
  ASSERT_TRUE(db_->GetProperty("rocksdb.is-write-stopped", &property));
  EXPECT_EQ(property, "0");
  ASSERT_TRUE(db_->GetProperty("rocksdb.actual-delayed-write-rate", &property));
  EXPECT_EQ(property, "0");
  EXPECT_EQ(CountLost(), 1);

  // A manual collection returns the error, and the other files are collected.
  for (int i = 0; i < kKeysOfFile; i += 4) {
    ASSERT_OK(Put(KeyOf(0, i), ValueOf(0, i, 1000)));
  }
  ASSERT_OK(Flush());
  for (const uint32_t runs : {0, 1}) {
    CollectBlobGarbageOptions collect;
    collect.space_amp_limit = 1.0;
    collect.max_sorted_runs = runs;
    s = db_->CollectBlobGarbage(collect, db_->DefaultColumnFamily());
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_NE(s.ToString().find(files_[1]), std::string::npos) << s.ToString();
    ASSERT_OK(Put("after", std::string(1000, 'a')));
    ASSERT_OK(Flush());
    EXPECT_OK(env_->FileExists(files_[1]));
  }
  EXPECT_EQ(listener->background_errors, 0);

  // Without the damaged value, the file can be collected.
  ASSERT_OK(Put(KeyOf(1, 7), ValueOf(1, 7, 1000)));
  ASSERT_OK(Flush());
  ASSERT_OK(db_->WaitForCompact(wait));
  ASSERT_OK(db_->CollectBlobGarbage(CollectBlobGarbageOptions(),
                                    db_->DefaultColumnFamily()));
  EXPECT_EQ(CountLost(), 0);
  ASSERT_OK(db_->VerifyChecksum());
}

// The device cannot read the end of one file, with its record index and its
// footer. That keeps no other file from being sorted or collected.
TEST_F(DBBlobDamageTest, BadSectorKeepsOnlyItsOwnFile) {
  const auto fs = std::make_shared<BadSectorFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> env = NewCompositeEnv(fs);
  const Defer close([&] {
    Close();
    last_options_.env = env_;
  });
  Options options = MapOptions();
  options.env = env.get();
  Load(options, kKeysOfFile, 1000);
  uint64_t size = 0;
  ASSERT_OK(env_->GetFileSize(files_[1], &size));
  fs->SetBadByte(files_[1], size - 1);
  Reopen(options);
  for (int file = 0; file < kFiles; ++file) {
    for (int i = 0; i < kKeysOfFile; i += 2) {
      ASSERT_OK(Put(KeyOf(file, i), ValueOf(file, i, 1000)));
    }
  }
  ASSERT_OK(Flush());

  const auto is_error_of_the_file = [&](const Status& s) {
    ASSERT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_NE(s.ToString().find("bad sector"), std::string::npos)
        << s.ToString();
  };
  WaitForCompactOptions wait;
  wait.wait_for_purge = true;
  fs->Fail(true);
  for (const uint32_t runs : {1, 0}) {
    SCOPED_TRACE(runs);
    CollectBlobGarbageOptions collect;
    collect.space_amp_limit = 1.0;
    collect.max_sorted_runs = runs;
    is_error_of_the_file(
        db_->CollectBlobGarbage(collect, db_->DefaultColumnFamily()));
    ASSERT_OK(db_->WaitForCompact(wait));
    EXPECT_TRUE(env_->FileExists(files_[0]).IsNotFound());
    EXPECT_OK(env_->FileExists(files_[1]));
    EXPECT_TRUE(env_->FileExists(files_[2]).IsNotFound());
  }
  CompactRangeOptions compact;
  compact.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::kForce;
  is_error_of_the_file(db_->CompactRange(compact, nullptr, nullptr));
  EXPECT_OK(env_->FileExists(files_[1]));

  // The file is collected as soon as it can be read.
  fs->Fail(false);
  CollectBlobGarbageOptions collect;
  collect.space_amp_limit = 1.0;
  collect.max_sorted_runs = 1;
  ASSERT_OK(db_->CollectBlobGarbage(collect, db_->DefaultColumnFamily()));
  ASSERT_OK(db_->WaitForCompact(wait));
  EXPECT_TRUE(env_->FileExists(files_[1]).IsNotFound());
  EXPECT_EQ(CountLost(), 0);
  ASSERT_OK(db_->VerifyChecksum());
}

// After the files were moved to one path and the other was removed from the
// options, their path ids are beyond the list. Such ids stand for the last
// path.
TEST_F(DBBlobDamageTest, PathIdsBeyondTheListMeanTheLastPath) {
  for (const bool of_family : {true, false}) {
    SCOPED_TRACE(of_family);
    const std::string second = dbname_ + "_second";
    Options one = MapOptions();
    Options two = one;
    (of_family ? two.cf_paths : two.db_paths) = {{dbname_, 0}, {second, 0}};
    two.level_sst_path_ids = {1};
    two.level_blob_path_ids = {1};
    Close();
    Load(two, kKeysOfFile, 1000);
    std::vector<std::string> names;
    ASSERT_OK(env_->GetChildren(second, &names));
    int moved = 0;
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type;
      if (ParseFileName(name, &number, &type) &&
          (type == kBlobFile || type == kTableFile)) {
        ASSERT_OK(env_->RenameFile(second + "/" + name, dbname_ + "/" + name));
        ++moved;
      }
    }
    ASSERT_EQ(moved, 2 * kFiles);
    Reopen(one);
    ASSERT_EQ(CountLost(), 0);
    for (int i = 0; i < kKeysOfFile; i += 2) {
      ASSERT_OK(Put(KeyOf(0, i), ValueOf(0, i, 1000)));
    }
    ASSERT_OK(Flush());
    CollectBlobGarbageOptions collect;
    collect.space_amp_limit = 1.0;
    ASSERT_OK(db_->CollectBlobGarbage(collect, db_->DefaultColumnFamily()));
    ASSERT_OK(db_->VerifyChecksum());
    ASSERT_OK(db_->WaitForCompact(WaitForCompactOptions()));
    std::vector<LiveFileStorageInfo> live;
    ASSERT_OK(
        db_->GetLiveFilesStorageInfo(LiveFilesStorageInfoOptions(), &live));
    for (const LiveFileStorageInfo& file : live) {
      EXPECT_EQ(file.directory, dbname_);
    }
    std::vector<std::string> tables;
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    for (const SstFileMetaData& file : metadata.levels[0].files) {
      tables.push_back(file.name);
    }
    // The statistics count all files on the only path.
    std::map<std::string, std::string> stats;
    ASSERT_TRUE(db_->GetMapProperty(DB::Properties::kPathStats, &stats));
    EXPECT_EQ(stats["path0.directory"], dbname_);
    EXPECT_EQ(stats["path0.sst-files"], std::to_string(tables.size()));
    EXPECT_EQ(stats["path0.blob-files"],
              std::to_string(metadata.blob_files.size()));
    EXPECT_EQ(stats.count("path1.directory"), 0);
    EXPECT_TRUE(db_->CompactFiles(CompactionOptions(), tables,
                                  /*output_level=*/1,
                                  /*output_path_id=*/7)
                    .IsInvalidArgument());
    ASSERT_OK(db_->CompactFiles(CompactionOptions(), tables, 1, 0));
    ASSERT_EQ(CountLost(), 0);
    // The copies have the id of a path that exists.
    int copies = 0;
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      const VersionStorageInfo& version =
          *static_cast<ColumnFamilyHandleImpl*>(db_->DefaultColumnFamily())
               ->cfd()
               ->current()
               ->storage_info();
      for (const auto& file : version.GetBlobFiles()) {
        if (file->IsCollected()) {
          ++copies;
          EXPECT_EQ(file->GetPathId(), 0);
        }
      }
    }
    EXPECT_GT(copies, 0);
    Destroy(one);
    ASSERT_OK(DestroyDir(env_, second));
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
