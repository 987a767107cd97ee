//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_set>
#include <utility>

#include "db/delta/delta_version.h"
#include "port/likely.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// A DeltaVersion that a recovery builds, which looks for the newest state whose
// files are all there (best-efforts recovery): remembers which files were missing
// when they were added. They need no undo, as only those of the current state
// count.
//
// Copies are independent, and as cheap as those of the builder.
//
// Used by one thread, as DeltaVersionBuilder.
class TrackedDeltaVersion {
 public:
  // Is the file there, and what the MANIFEST says? Not found or Corruption: no.
  using Verify = std::function<Status(const DeltaFileDescription&)>;

  TrackedDeltaVersion() = default;
  // base may be nullptr.
  explicit TrackedDeltaVersion(std::shared_ptr<const DeltaVersion> base)
      : builder_(std::move(base)) {}

  // See DeltaVersionBuilder. verify: nullptr if nothing is to be tracked.
  Status Apply(const DeltaEdit& edit, const Comparator* ucmp,
               const DeltaVersion::FileMaker& make_file, const Verify& verify);
  const DeltaVersion* Current() const { return builder_.Current(); }
  Status Finish(std::shared_ptr<const DeltaVersion>* result) const {
    return builder_.Finish(result);
  }

  // Of the current state, which is a whole one.
  bool AllFilesAreThere() const {
    return LIKELY(Current() == nullptr) ||
           (!Current()->IsLoading() && NoneIsMissing());
  }

 private:
  bool NoneIsMissing() const;
  void AddMissing(uint64_t number);

  DeltaVersionBuilder builder_;
  // Of files that were part of the state not long ago; copies share it. Null:
  // none.
  std::shared_ptr<const std::unordered_set<uint64_t>> missing_;
};

}  // namespace ROCKSDB_NAMESPACE
