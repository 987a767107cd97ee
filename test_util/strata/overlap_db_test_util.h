//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/compaction_filter.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/overlap_stress_options_test_util.h"

namespace ROCKSDB_NAMESPACE {

// The DB of a run of OverlapStress. The seed of the run determines its options.
//
// Thread-safe, except the functions that open, close or destroy it.
class OverlapDb {
 public:
  static constexpr size_t kNumFamilies = 2;

  explicit OverlapDb(const OverlapStressOptions& options);
  OverlapDb(const OverlapDb&) = delete;
  OverlapDb& operator=(const OverlapDb&) = delete;

  // REQUIRES: the DB is closed
  Status Open();
  // REQUIRES: the DB is open, and no thread uses it
  Status Close();
  // REQUIRES: the DB is closed
  void Destroy();

  const Options& options() const { return options_; }
  // REQUIRES for the next two functions: the DB is open
  DB* operator->() const { return db_.get(); }
  ColumnFamilyHandle* family(size_t index) const { return families_[index]; }

 private:
  std::vector<ColumnFamilyDescriptor> Descriptors() const;

  const std::string path_;
  Options options_;
  std::unique_ptr<CompactionFilter> filter_;
  std::unique_ptr<DB> db_;
  std::array<ColumnFamilyHandle*, kNumFamilies> families_{};
};

}  // namespace ROCKSDB_NAMESPACE
