//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "db/db_impl/db_impl.h"
#include "db/delta/db_delta_test_util.h"
#include "rocksdb/compaction_filter.h"
#include "test_util/strata/strata_db_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

// Removes operands that begin with "x".
class XFilter : public CompactionFilter {
 public:
  Decision FilterV2(int, const Slice&, ValueType type, const Slice& value,
                    std::string*, std::string*) const override {
    return type == ValueType::kMergeOperand && value.starts_with("x")
               ? Decision::kRemove
               : Decision::kKeep;
  }
  const char* Name() const override { return "XFilter"; }
};

// The base of the fixtures of databases with enable_delta_separation.
class DeltaDBTestBase : public StrataDBTestBase {
 public:
  using StrataDBTestBase::StrataDBTestBase;

 protected:
  // Returns options with which no job runs unless the test asks for it.
  Options DeltaOptions() const {
    Options options = CurrentOptions();
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.enable_delta_separation = true;
    options.disable_auto_compactions = true;
    options.statistics = CreateDBStatistics();
    return options;
  }

  // For deltas that a test reads or makes by hand.
  delta_test::HandMadeDeltas Deltas() {
    return delta_test::HandMadeDeltas(db_.get());
  }
  // Returns the number of operands of the key that readers find in delta files.
  size_t NumOperands(const std::string& key) {
    return Deltas().Read(key).size();
  }

  // Returns a number of DB::Properties::kDeltaStore; 0 without a delta store.
  uint64_t Stat(const std::string& name) {
    std::map<std::string, std::string> values;
    db_->GetMapProperty(DB::Properties::kDeltaStore, &values);
    const auto found = values.find(name);
    return found == values.end() ? 0 : std::stoull(found->second);
  }

  // Deletes the files that no Version has.
  void DeleteObsoleteFiles() {
    EXPECT_OK(dbfull()->TEST_WaitForBackgroundWork());
    dbfull()->TEST_DeleteObsoleteFiles();
    EXPECT_OK(dbfull()->TEST_WaitForPurge());
  }

  // Closes the DB and makes it need a repair.
  void LoseManifest() {
    Close();
    delta_test::DeleteManifests(env_, dbname_);
  }
};

}  // namespace ROCKSDB_NAMESPACE
