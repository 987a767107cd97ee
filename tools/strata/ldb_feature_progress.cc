//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_feature_progress.h"

#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

namespace {
constexpr uint64_t kParts = 10;
}  // namespace

void LdbFeatureProgress::Begin(const FeaturePlan::Family& family) {
  MutexLock lock(&mutex_);
  family_ = family.name;
  expected_ = family.bytes;
  written_ = 0;
  next_ = 0;
}

void LdbFeatureProgress::OnTableFileCreated(const TableFileCreationInfo& info) {
  if (info.status.ok()) {
    Count(info.cf_name, info.file_size);
  }
}

void LdbFeatureProgress::OnBlobFileCreated(const BlobFileCreationInfo& info) {
  if (info.status.ok()) {
    Count(info.cf_name, info.total_blob_bytes);
  }
}

void LdbFeatureProgress::Count(const std::string& family, uint64_t bytes) {
  MutexLock lock(&mutex_);
  if (family != family_) {
    return;
  }
  written_ += bytes;
  if (written_ >= next_) {
    next_ = written_ + expected_ / kParts;
    print_("[" + family + "] " + std::to_string(written_) +
           " bytes written, of about " + std::to_string(expected_));
  }
}

}  // namespace ROCKSDB_NAMESPACE
