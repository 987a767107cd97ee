//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/tracked_delta_version.h"

#include <algorithm>
#include <utility>

#include "db/delta/delta_edit.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

Status TrackedDeltaVersion::Apply(const DeltaEdit& edit, const Comparator* ucmp,
                                  const DeltaVersion::FileMaker& make_file,
                                  const std::string& family,
                                  const Verify& verify) {
  Status s = builder_.Apply(edit, ucmp, make_file);
  if (s.IsNotSupported() && !family.empty()) {
    // The options of this column family are the reason.
    return AppendMessage(s, " (column family ", family + ")");
  }
  if (!s.ok() || verify == nullptr) {
    return s;
  }
  for (const DeltaFileDescription& file : edit.files()) {
    s = verify(file);
    if (s.IsPathNotFound() || s.IsNotFound() || s.IsCorruption()) {
      AddMissing(file.number);
    } else if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

void TrackedDeltaVersion::AddMissing(uint64_t number) {
  auto missing = std::make_shared<std::unordered_set<uint64_t>>();
  if (missing_ != nullptr) {
    for (uint64_t other : *missing_) {
      if (Current()->GetFile(other) != nullptr) {
        missing->insert(other);
      }
    }
  }
  missing->insert(number);
  missing_ = std::move(missing);
}

bool TrackedDeltaVersion::IsMissing(uint64_t number) const {
  return missing_ != nullptr && missing_->count(number) > 0 &&
         Current() != nullptr && Current()->GetFile(number) != nullptr;
}

void TrackedDeltaVersion::Forget(const std::set<uint64_t>& numbers) {
  if (missing_ == nullptr) {
    return;
  }
  auto missing = std::make_shared<std::unordered_set<uint64_t>>(*missing_);
  for (uint64_t number : numbers) {
    missing->erase(number);
  }
  missing_ = std::move(missing);
}

bool TrackedDeltaVersion::NoneIsMissing() const {
  return missing_ == nullptr ||
         std::none_of(missing_->begin(), missing_->end(),
                      [this](uint64_t number) {
                        return Current()->GetFile(number) != nullptr;
                      });
}

}  // namespace ROCKSDB_NAMESPACE
