//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/mapped_blob_index.h"
#include "db/dbformat.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class Version;

// Visits the keys of a Version whose values are in the address map: of each key
// the newest entry that is no merge operand and not below a range tombstone, if
// that is a mapped one. A reader without a snapshot needs these values and no
// others. With all_versions, of each key all mapped entries down to the first
// direct one, which hides the older ones from all readers.
//
// The key space is cut into ranges of about equal size, which threads take in
// turn.
class MappedKeyScan {
 public:
  // Used by one thread at a time.
  class Visitor {
   public:
    virtual ~Visitor() = default;
    virtual Status Visit(const ParsedInternalKey& key,
                         const MappedBlobIndex& index) = 0;
    // After the last key of a range.
    virtual Status FinishRange() = 0;
  };
  using NewVisitor = std::function<std::unique_ptr<Visitor>()>;

  // REQUIRES: version is one of cfd's; both outlive this.
  MappedKeyScan(ColumnFamilyData* cfd, Version* version,
                const FileOptions& file_options, Env::IOActivity activity,
                int num_threads, bool all_versions = false);

  // The first error ends the scan. Each range has a visitor of its own.
  Status Run(const NewVisitor& new_visitor);

  // SST entries read so far. Thread-safe.
  uint64_t NumEntries() const {
    return entries_.load(std::memory_order_relaxed);
  }

  // Runs fn(0) ... fn(n - 1) on so many threads, this one among them; returns
  // the first error, after which no further calls begin.
  static Status ForEach(size_t n, int num_threads,
                        const std::function<Status(size_t)>& fn);

 private:
  std::vector<std::string> Boundaries(size_t n) const;
  Status ScanRange(const std::string* begin, const std::string* end,
                   Visitor* visitor);

  ColumnFamilyData* const cfd_;
  Version* const version_;
  const FileOptions& file_options_;
  const Env::IOActivity activity_;
  const int num_threads_;
  const bool all_versions_;
  std::atomic<uint64_t> entries_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace ROCKSDB_NAMESPACE
