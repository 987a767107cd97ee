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
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class Version;

// Visits the keys of a Version whose values are in the address map. For each
// key, it visits the newest entry that is neither a merge operand nor covered
// by a range tombstone, if that entry is mapped. These are exactly the values
// that readers without a snapshot need. With all_versions, it visits all mapped
// entries of each key down to the first direct one, which hides the older ones
// from all readers.
//
// The key space is divided into ranges of about equal size, which are processed
// by several threads.
class MappedKeyScan {
 public:
  // Used by one thread at a time.
  class Visitor {
   public:
    virtual ~Visitor() = default;
    virtual Status Visit(const ParsedInternalKey& key,
                         const MappedBlobIndex& index) = 0;
    // Called after the last key of a range.
    virtual Status FinishRange() = 0;
  };
  using NewVisitor = std::function<std::unique_ptr<Visitor>()>;

  static constexpr size_t kReadaheadSize = size_t{2} << 20;

  // readahead_size: bytes, see ReadOptions; 0 for short ranges.
  // REQUIRES: version belongs to cfd; cfd, version and file_options outlive
  // this object.
  MappedKeyScan(ColumnFamilyData* cfd, Version* version,
                const FileOptions& file_options, Env::IOActivity activity,
                int num_threads, bool all_versions = false,
                size_t readahead_size = kReadaheadSize);

  // Runs the scan. Creates a visitor for each range. The first error ends the
  // scan.
  Status Run(const NewVisitor& new_visitor);

  // Visits the keys of one range with one visitor, on the calling thread. A
  // status of the visitor that is not OK ends the scan.
  // begin, end: user keys; nullptr if the range has no such bound. The end is
  // not part of the range.
  Status RunRange(const std::string* begin, const std::string* end,
                  Visitor* visitor);

  // Number of SST entries read so far. Thread-safe.
  uint64_t NumEntries() const {
    return entries_.load(std::memory_order_relaxed);
  }

  // Calls fn(0) ... fn(n - 1) on num_threads threads, including the calling
  // one. Returns the first error, after which no further calls are started.
  static Status ForEach(size_t n, int num_threads,
                        const std::function<Status(size_t)>& fn);

 private:
  std::vector<std::string> Boundaries(size_t n) const;
  // Visits the entries from the iterator's position to `end`, which may be
  // nullptr.
  Status VisitEntries(InternalIterator* iter, const std::string* end,
                      Visitor* visitor);

  ColumnFamilyData* const cfd_;
  Version* const version_;
  const FileOptions& file_options_;
  const Env::IOActivity activity_;
  const int num_threads_;
  const bool all_versions_;
  const size_t readahead_size_;
  std::atomic<uint64_t> entries_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace ROCKSDB_NAMESPACE
