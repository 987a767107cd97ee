//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "db/strata/feature_plan.h"
#include "options/strata/feature_set.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyHandle;
class DB;

// Takes the data of features out of the column families of an open database, by
// the calls that an application would make: CompactRange(), MigratePaths().
//
// Invariant: each step is one of a running database, so a crash at any moment
// leaves a database that has all its data and can be worked on again.
//
// Not thread-safe.
class FeatureRemoval {
 public:
  // Receives lines, without line breaks, for the user.
  using Report = std::function<void(const std::string& line)>;

  // num_threads: for each compaction.
  // REQUIRES: the database was opened with the options of a session
  // (FeaturePlan::SetSessionOptions()) for these features, and outlives this
  // object; no snapshot is held, and no other thread writes to it.
  FeatureRemoval(DB* db, const FeatureSet& features, uint32_t num_threads,
                 Report report)
      : db_(db),
        features_(features),
        num_threads_(num_threads),
        report_(std::move(report)) {}

  // Does the work on a column family. OK does not mean that nothing is left: a
  // merge that fails leaves operands.
  // target_path_id: FeaturePlan::Family::target_path_id.
  Status Run(ColumnFamilyHandle* family, FeaturePlan::Work work,
             uint32_t target_path_id = 0);

 private:
  Status Move(ColumnFamilyHandle* family);
  Status Compact(ColumnFamilyHandle* family, FeaturePlan::Work work,
                 uint32_t target_path_id);
  // Returns true if delta files, which a compaction does not move, may be on
  // paths of a layout that goes.
  bool NeedsMoveOfDeltas(ColumnFamilyHandle* family) const;
  // Rewrites all files, and all values in blob files: those that no SST file
  // names, but that count as live, leave the version with it.
  Status RewriteAll(ColumnFamilyHandle* family, uint32_t target_path_id);
  // Waits until files that nothing needs any more have left the MANIFEST and
  // the directories.
  Status WaitForObsoleteFiles();
  // Returns true if it helps to rewrite everything: SST files have names of
  // values, or blob files are on other paths. Blob files of an address map that
  // have no values leave the version by themselves, and operands whose merge
  // fails stay operands.
  bool NeedsRewrite(ColumnFamilyHandle* family) const;

  DB* const db_;
  const FeatureSet features_;
  const uint32_t num_threads_;
  const Report report_;
};

}  // namespace ROCKSDB_NAMESPACE
