//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The base of the fixtures that have a whole database.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "db/column_family.h"
#include "db/db_test_util.h"
#include "file/filename.h"
#include "rocksdb/statistics.h"
#include "test_util/strata/sync_point_test_util.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

class StrataDBTestBase : public DBTestBase {
 public:
  // Keys and their values.
  using Contents = std::map<std::string, std::string>;

  explicit StrataDBTestBase(const std::string& name)
      : DBTestBase(name, /*env_do_fsync=*/false) {}

  // Callbacks use members of the fixture, so they are removed before these are
  // destroyed.
  void TearDown() override { DisableCallBacks(); }

 protected:
  // Returns handles_[cf], or the handle of the default column family if there
  // is none.
  ColumnFamilyHandle* Handle(int cf = 0) {
    return handles_.empty() || handles_[cf] == nullptr
               ? db_->DefaultColumnFamily()
               : handles_[cf];
  }
  static ColumnFamilyData* FamilyOf(ColumnFamilyHandle* handle) {
    return static_cast_with_check<ColumnFamilyHandleImpl>(handle)->cfd();
  }
  ColumnFamilyData* Family(int cf = 0) { return FamilyOf(Handle(cf)); }

  // Returns a count of the options of the last open.
  uint64_t Ticker(Tickers ticker) const {
    return last_options_.statistics->getTickerCount(ticker);
  }

  // Compacts all files of a column family, and those of the last level, too.
  // handle: nullptr for the default column family.
  static Status ForceCompaction(DB* db, ColumnFamilyHandle* handle = nullptr) {
    CompactRangeOptions options;
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    return db->CompactRange(
        options, handle == nullptr ? db->DefaultColumnFamily() : handle,
        nullptr, nullptr);
  }
  Status ForceCompaction(int cf = 0) {
    return ForceCompaction(db_.get(), Handle(cf));
  }

  // Returns the sorted names of the files of this type in a directory.
  std::vector<std::string> FilesIn(const std::string& dir, FileType wanted) {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(dir, &names));
    std::erase_if(names, [wanted](const std::string& name) {
      uint64_t number = 0;
      FileType type = kInfoLogFile;
      return !ParseFileName(name, &number, &type) || type != wanted;
    });
    std::sort(names.begin(), names.end());
    return names;
  }
  // Returns the numbers of the files of this type in the directory of the DB.
  std::set<uint64_t> FilesOnDisk(FileType type) {
    std::set<uint64_t> numbers;
    for (const std::string& name : FilesIn(dbname_, type)) {
      uint64_t number = 0;
      EXPECT_TRUE(ParseFileName(name, &number, &type));
      numbers.insert(number);
    }
    return numbers;
  }

  // Returns the keys and values that an iterator finds, and its error if it has
  // one.
  static std::string Scan(Iterator* iter, bool reverse = false) {
    std::string result;
    for (reverse ? iter->SeekToLast() : iter->SeekToFirst(); iter->Valid();
         reverse ? iter->Prev() : iter->Next()) {
      result += iter->key().ToString() + "=" + iter->value().ToString() + ";";
    }
    if (!iter->status().ok()) {
      result += iter->status().ToString();
    }
    return result;
  }

  // Checks what an iterator finds on its way forward.
  static void CheckForward(Iterator* iter, const Contents& expected) {
    iter->SeekToFirst();
    for (const auto& [key, value] : expected) {
      ASSERT_TRUE(iter->Valid()) << key;
      ASSERT_EQ(key, iter->key().ToString());
      ASSERT_EQ(value, iter->value().ToString()) << key;
      iter->Next();
    }
    ASSERT_FALSE(iter->Valid());
    ASSERT_OK(iter->status());
  }
  // Checks what an iterator finds in both directions.
  static void CheckIterator(Iterator* iter, const Contents& expected) {
    ASSERT_NO_FATAL_FAILURE(CheckForward(iter, expected));
    iter->SeekToLast();
    for (auto entry = expected.rbegin(); entry != expected.rend(); ++entry) {
      ASSERT_TRUE(iter->Valid()) << entry->first;
      ASSERT_EQ(entry->first, iter->key().ToString());
      ASSERT_EQ(entry->second, iter->value().ToString()) << entry->first;
      iter->Prev();
    }
    ASSERT_FALSE(iter->Valid());
    ASSERT_OK(iter->status());
  }
};

}  // namespace ROCKSDB_NAMESPACE
