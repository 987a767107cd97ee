//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The part of ImportColumnFamilyJob that handles files that a failed import
// leaves.

#include <unordered_set>
#include <vector>

#include "db/import_column_family_job.h"

namespace ROCKSDB_NAMESPACE {

void ImportColumnFamilyJob::LeaveFiles(
    const std::unordered_set<uint64_t>& numbers) {
  for (std::vector<IngestedFileInfo>& files : files_to_import_) {
    std::erase_if(files, [&numbers](const IngestedFileInfo& file) {
      return numbers.count(file.fd.GetNumber()) > 0;
    });
  }
}

}  // namespace ROCKSDB_NAMESPACE
