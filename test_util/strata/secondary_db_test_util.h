//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// A secondary instance of several column families, in a directory beside the
// primary's. The destructor closes it and deletes the directory.
class SecondaryDB {
 public:
  // primary: directory of the primary
  explicit SecondaryDB(const std::string& primary)
      : primary_(primary), dir_(primary + "_secondary") {}
  ~SecondaryDB() {
    for (ColumnFamilyHandle* const handle : handles_) {
      delete handle;
    }
    if (db_ != nullptr) {
      Env* const env = db_->GetEnv();
      EXPECT_OK(db_->Close());
      db_.reset();
      EXPECT_OK(DestroyDir(env, dir_));
    }
  }
  SecondaryDB(const SecondaryDB&) = delete;
  SecondaryDB& operator=(const SecondaryDB&) = delete;

  // options: for the database and for each family; max_open_files is ignored
  // families: names, the default family among them
  Status Open(Options options, const std::vector<std::string>& families) {
    options.max_open_files = -1;  // the files of a secondary stay open
    std::vector<ColumnFamilyDescriptor> descriptors;
    descriptors.reserve(families.size());
    for (const std::string& name : families) {
      descriptors.emplace_back(name, options);
    }
    return DB::OpenAsSecondary(options, primary_, dir_, descriptors, &handles_,
                               &db_);
  }

  Status CatchUp() { return db_->TryCatchUpWithPrimary(); }

  // Lets go of a column family; its index must not be used any more.
  void DestroyHandle(size_t family) {
    EXPECT_OK(db_->DestroyColumnFamilyHandle(handles_[family]));
    handles_[family] = nullptr;
  }

  // family: index in the names that Open() was given
  ColumnFamilyHandle* Handle(size_t family) const { return handles_[family]; }

  // Returns the value of a key, or "NOT_FOUND", or an error.
  std::string Get(size_t family, const std::string& key) {
    std::string value;
    const Status s = db_->Get(ReadOptions(), Handle(family), key, &value);
    if (s.IsNotFound()) {
      return "NOT_FOUND";
    }
    return s.ok() ? value : s.ToString();
  }

 private:
  const std::string primary_;
  const std::string dir_;
  std::unique_ptr<DB> db_;
  std::vector<ColumnFamilyHandle*> handles_;
};

}  // namespace ROCKSDB_NAMESPACE
