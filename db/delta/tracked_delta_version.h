//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "db/delta/delta_version.h"
#include "port/likely.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Builds the DeltaVersion of a best-efforts recovery, which looks for the
// newest state whose files all exist: remembers which files were missing when
// they were added. Missing files need no undo, as only those of the current
// state count.
//
// Copies are independent, and as cheap as those of the builder.
//
// Not thread-safe, like DeltaVersionBuilder.
class TrackedDeltaVersion {
 public:
  // Returns OK if the file exists and is the one that the MANIFEST describes,
  // otherwise NotFound or Corruption.
  using Verify = std::function<Status(const DeltaFileDescription&)>;

  TrackedDeltaVersion() = default;
  // base may be nullptr.
  explicit TrackedDeltaVersion(std::shared_ptr<const DeltaVersion> base)
      : builder_(std::move(base)) {}

  // Applies the edit, see DeltaVersionBuilder.
  // family: name of the column family, for the message of NotSupported; empty
  //     if it is not known.
  // verify: nullptr if missing files need not be tracked.
  Status Apply(const DeltaEdit& edit, const Comparator* ucmp,
               const DeltaVersion::FileMaker& make_file,
               const std::string& family, const Verify& verify);
  const DeltaVersion* Current() const { return builder_.Current(); }
  Status Finish(std::shared_ptr<const DeltaVersion>* result) const {
    return builder_.Finish(result);
  }

  // Returns true if the current state is complete and all its files exist.
  bool AllFilesAreThere() const {
    return LIKELY(Current() == nullptr) ||
           (!Current()->IsLoading() && NoneIsMissing());
  }
  // Returns true if the current state has the file, which was missing.
  bool IsMissing(uint64_t number) const;
  // Takes these files for files that exist.
  void Forget(const std::set<uint64_t>& numbers);

 private:
  bool NoneIsMissing() const;
  void AddMissing(uint64_t number);

  DeltaVersionBuilder builder_;
  // Numbers of missing files, which may include files that recently left the
  // state. Shared with copies. nullptr: none.
  std::shared_ptr<const std::unordered_set<uint64_t>> missing_;
};

}  // namespace ROCKSDB_NAMESPACE
