//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Helpers of tests of databases with enable_blob_address_map.

#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/test_threads_test_util.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

// Waits until no job runs or is scheduled: no flush (Flush() returns before the
// flush is settled), no compaction, and none that removes entries or files, one
// of which may make another one possible. Returns the background error, if any.
// db: also a database with transactions.
inline Status WaitForMapJobs(DB* db) {
  DBImpl* const impl = static_cast_with_check<DBImpl>(db->GetRootDB());
  // Waits even if there is an error.
  const Status s = impl->TEST_WaitForBackgroundWork();
  if (!s.ok()) {
    return s;
  }
  // Looks at all kinds of jobs at one moment.
  WaitForCompactOptions options;
  options.wait_for_purge = true;
  options.timeout = kTestPatience;
  return impl->WaitForCompact(options);
}

// The key determines what happens to its value.
class ActingFilter : public CompactionFilter {
 public:
  const char* Name() const override { return "ActingFilter"; }
  Decision FilterV3(int /*level*/, const Slice& key, ValueType type,
                    const Slice* value, const WideColumns* /*columns*/,
                    std::string* new_value,
                    std::vector<std::pair<std::string, std::string>>*
                    /*new_columns*/,
                    std::string* skip_until) const override {
    if (type == ValueType::kMergeOperand) {
      ++operands;
      return key.starts_with("operand") ? Decision::kRemove : Decision::kKeep;
    }
    if (key.starts_with("remove")) {
      return Decision::kRemove;
    }
    if (key.starts_with("change")) {
      if (value->starts_with("changed")) {
        return Decision::kKeep;  // a later compaction filters the value again
      }
      *new_value = "changed " + value->ToString();
      return Decision::kChangeValue;
    }
    if (key.starts_with("short")) {
      *new_value = "s";
      return Decision::kChangeValue;
    }
    if (key.starts_with("skip1")) {
      *skip_until = "skip5";
      return Decision::kRemoveAndSkipUntil;
    }
    return Decision::kKeep;
  }

  mutable std::atomic<int> operands{0};
};

}  // namespace ROCKSDB_NAMESPACE
