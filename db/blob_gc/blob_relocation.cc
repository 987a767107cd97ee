//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_relocation.h"

#include <algorithm>
#include <cassert>

#include "db/blob/blob_file_meta.h"

namespace ROCKSDB_NAMESPACE {

BlobRelocation::BlobRelocation(const BlobFiles& blob_files, uint32_t path_id)
    : path_id_(path_id) {
  for (const auto& meta : blob_files) {
    assert(meta);
    // A hot value moves only if it belongs to another path.
    if (meta->hot().HomeOr(meta->GetPathId()) != path_id) {
      numbers_.push_back(meta->GetBlobFileNumber());
    }
  }
  assert(std::is_sorted(numbers_.begin(), numbers_.end()));
}

void BlobRelocation::LookUp(uint64_t blob_file_number) {
  last_number_ = blob_file_number;
  last_answer_ =
      std::binary_search(numbers_.begin(), numbers_.end(), blob_file_number);
}

}  // namespace ROCKSDB_NAMESPACE
