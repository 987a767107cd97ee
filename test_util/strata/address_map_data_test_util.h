//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "file/file_util.h"
#include "file/filename.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "test_util/strata/address_map_db_test_util.h"

namespace ROCKSDB_NAMESPACE {

// The base of the fixtures that compare all data and files of a database with
// what they must be, also those of copies of the database. The options have a
// Bloom filter, so that bypass filters are built and used.
class AddressMapDataTestBase : public AddressMapDBTestBase {
 public:
  using AddressMapDBTestBase::AddressMapDBTestBase;

  ~AddressMapDataTestBase() override {
    Close();
    for (const std::string& dir : other_dirs_) {
      EXPECT_OK(DestroyDir(env_, dir));
    }
  }

 protected:
  Options MapOptions() const {
    Options options = AddressMapDBTestBase::MapOptions();
    BlockBasedTableOptions table_options;
    table_options.filter_policy.reset(NewBloomFilterPolicy(10));
    options.table_factory.reset(NewBlockBasedTableFactory(table_options));
    return options;
  }

  static bool Mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  // ---- Contents.

  static std::string GetFrom(DB* db, ColumnFamilyHandle* family,
                             const std::string& key,
                             const Snapshot* snapshot = nullptr) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    std::string value;
    const Status s = db->Get(read_options, family, key, &value);
    if (s.ok()) {
      return value;
    }
    return s.IsNotFound() ? "NOT_FOUND" : s.ToString();
  }

  static std::string Text(const Contents& model, bool reverse = false) {
    std::string result;
    for (const auto& [key, value] : model) {
      const std::string entry = key + "=" + value + ";";
      result = reverse ? entry + result : result + entry;
    }
    return result;
  }

  // Checks with all kinds of reads that the column family has exactly the data
  // of the model.
  static void CheckData(DB* db, ColumnFamilyHandle* family,
                        const Contents& model) {
    for (const auto& [key, value] : model) {
      EXPECT_EQ(GetFrom(db, family, key), value) << key;
    }
    EXPECT_EQ(GetFrom(db, family, "zzz"), "NOT_FOUND");
    const std::unique_ptr<Iterator> iter(
        db->NewIterator(ReadOptions(), family));
    EXPECT_EQ(Scan(iter.get()), Text(model));
    EXPECT_EQ(Scan(iter.get(), /*reverse=*/true), Text(model, true));
  }
  void CheckData(const Contents& model) {
    CheckData(db_.get(), Handle(), model);
  }

  // ---- Files.

  // Checks that the directory has the given number of blob files, and that the
  // MANIFEST names all of them.
  void CheckBlobFiles(size_t count) {
    EXPECT_EQ(BlobFiles().size(), count);
    EXPECT_EQ(FilesIn(dbname_, kBlobFile).size(), count);
  }

  // Returns a directory that does not exist, and that is deleted after the
  // test.
  std::string OtherDir(const std::string& name) {
    const std::string dir = dbname_ + "_" + name;
    other_dirs_.insert(dir);
    EXPECT_OK(DestroyDir(env_, dir));
    return dir;
  }

  void CopyTo(const std::string& from, const std::string& to) {
    std::string contents;
    ASSERT_OK(ReadFileToString(env_, from, &contents));
    ASSERT_OK(WriteStringToFile(env_, contents, to, /*should_sync=*/true));
  }

  // Copies the files that a crash would leave at this moment if no data were
  // lost. The database is open.
  void CopyDB(const std::string& to) {
    WaitForJobs();
    ASSERT_OK(env_->CreateDirIfMissing(to));
    std::vector<std::string> names;
    ASSERT_OK(env_->GetChildren(dbname_, &names));
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type = kInfoLogFile;
      if (ParseFileName(name, &number, &type) && type != kInfoLogFile &&
          type != kDBLockFile) {
        CopyTo(dbname_ + "/" + name, to + "/" + name);
      }
    }
  }

  void DeleteFilesIn(const std::string& dir, FileType type) {
    for (const std::string& name : FilesIn(dir, type)) {
      ASSERT_OK(env_->DeleteFile(dir + "/" + name));
    }
  }
  // Deletes the images, so that the next open builds the map from the files.
  void DeleteImages() { DeleteFilesIn(dbname_, kTempFile); }

  // Writes a table of ordinary values with SstFileWriter.
  std::string WriteTable(const std::string& name, const Contents& rows) {
    const std::string dir = dbname_ + "_external";
    other_dirs_.insert(dir);
    EXPECT_OK(env_->CreateDirIfMissing(dir));
    const std::string path = dir + "/" + name;
    const Options options = CurrentOptions();
    SstFileWriter writer(EnvOptions(), options);
    EXPECT_OK(writer.Open(path));
    for (const auto& [key, value] : rows) {
      EXPECT_OK(writer.Put(key, value));
    }
    EXPECT_OK(writer.Finish());
    return path;
  }

 private:
  std::set<std::string> other_dirs_;
};

}  // namespace ROCKSDB_NAMESPACE
