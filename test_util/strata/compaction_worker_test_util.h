//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// A CompactionService whose workers run in the process of the test.

#pragma once

#include <string>
#include <utility>

#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

// Runs each compaction in this process as another process would, with these
// options of the DB. Not thread-safe: for one compaction at a time.
class CompactionWorkerHere : public CompactionService {
 public:
  CompactionWorkerHere(std::string dbname, const Options& options)
      : dbname_(std::move(dbname)), options_(options) {}
  const char* Name() const override { return "CompactionWorkerHere"; }
  CompactionServiceScheduleResponse Schedule(
      const CompactionServiceJobInfo& /*info*/,
      const std::string& compaction_service_input) override {
    input_ = compaction_service_input;
    return CompactionServiceScheduleResponse(
        "job", CompactionServiceJobStatus::kSuccess);
  }
  CompactionServiceJobStatus Wait(const std::string& /*scheduled_job_id*/,
                                  std::string* result) override {
    CompactionServiceOptionsOverride overrides;
    overrides.env = options_.env;
    overrides.merge_operator = options_.merge_operator;
    overrides.compaction_filter = options_.compaction_filter;
    overrides.table_factory = options_.table_factory;
    status = DB::OpenAndCompact(OpenAndCompactOptions(), dbname_,
                                dbname_ + "/worker", input_, result, overrides);
    ++compactions;
    return status.ok() ? CompactionServiceJobStatus::kSuccess
                       : CompactionServiceJobStatus::kFailure;
  }

  // The result of the last compaction.
  Status status;
  int compactions = 0;

 private:
  const std::string dbname_;
  const Options options_;
  std::string input_;
};

}  // namespace ROCKSDB_NAMESPACE
