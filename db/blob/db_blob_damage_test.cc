//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Blob files of an address map that are missing or damaged, or on a path that
// is gone: they cost what is in them.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/blob/map_images.h"
#include "db/column_family.h"
#include "db/db_test_util.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/listener.h"

namespace ROCKSDB_NAMESPACE {

class DBBlobDamageTest : public DBTestBase {
 protected:
  static constexpr int kFiles = 3;
  static constexpr int kKeysOfFile = 40;

  DBBlobDamageTest()
      : DBTestBase("db_blob_damage_test", /*env_do_fsync=*/false) {}
  ~DBBlobDamageTest() override { MapImages::UseInThisProcess(true); }

  Options MapOptions() {
    Options options = CurrentOptions();
    options.enable_blob_files = true;
    options.min_blob_size = 32;
    options.enable_blob_address_map = true;
    options.blob_gc_space_amp_limit = 0;
    options.disable_auto_compactions = true;
    options.statistics = CreateDBStatistics();
    return options;
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

  // The number of keys whose reads are Corruption. All others have their
  // values.
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

// The database's files were moved to fewer paths, so that path ids are beyond
// the list.
TEST_F(DBBlobDamageTest, FewerPaths) {
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
    std::map<std::string, std::string> stats;
    ASSERT_TRUE(db_->GetMapProperty("rocksdb.path-stats", &stats));
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
    EXPECT_TRUE(db_->CompactFiles(CompactionOptions(), tables,
                                  /*output_level=*/1,
                                  /*output_path_id=*/7)
                    .IsInvalidArgument());
    ASSERT_OK(db_->CompactFiles(CompactionOptions(), tables, 1, 0));
    ASSERT_EQ(CountLost(), 0);
    // What was copied has the id of a path that there is.
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
