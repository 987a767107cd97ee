//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <algorithm>
#include <cassert>

#include "db/merged_value/merged_value_generation.h"
#include "db/version_edit.h"

namespace ROCKSDB_NAMESPACE {

void VersionEdit::NoteMergedValues(MergedValueGeneration* generation) const {
  assert(ChangesMergedValues());
  SequenceNumber largest = 0;
  for (const auto& [level, file] : new_files_) {
    largest = std::max(largest, file.fd.largest_seqno);
  }
  generation->OnChange(largest);
}

}  // namespace ROCKSDB_NAMESPACE
