//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "db/path_layout/path_read_stats.h"
#include "options/cf_options.h"
#include "port/port.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"

namespace ROCKSDB_NAMESPACE {

class BlockCacheTracer;
class IOTracer;

// The column family that delta files belong to.
struct DeltaTableFamily {
  explicit DeltaTableFamily(const ImmutableOptions& _ioptions);

  uint32_t id = 0;
  std::string name;
  // A copy, comparator included: a reader may be destroyed after its column
  // family, with the list of obsolete files that it is on.
  const ImmutableOptions ioptions;
  // A point read may begin to read delta files before it looks for the value:
  // the file system can do that.
  const bool overlaps_reads;
  // For reading.
  FileOptions file_options;
  std::string db_session_id;
  // May be nullptr.
  std::shared_ptr<IOTracer> io_tracer;
  // May be nullptr. REQUIRES: outlives all readers.
  BlockCacheTracer* block_cache_tracer = nullptr;
  // May be nullptr. Reads of delta files count as those of SST files.
  std::shared_ptr<PathReadStats> path_read_stats;
};

// With what delta files are written and read, until the column family's options
// change.
//
// Immutable. Table builders and readers keep references into it, so whoever
// makes one holds it until the builder or reader is gone.
struct DeltaTableSettings {
  std::shared_ptr<const DeltaTableFamily> family;
  // The column family's, but for the table factory, which is DeltaTableFactory'
  // own, and for what must not be in a delta file: there is no prefix
  // extractor.
  MutableCFOptions options;
  // Of the blocks of new files.
  CompressionType compression = kNoCompression;

  const ImmutableOptions& ioptions() const { return family->ioptions; }
  const InternalKeyComparator& icmp() const {
    return family->ioptions.internal_comparator;
  }
  const Comparator* ucmp() const { return icmp().user_comparator(); }
};

// Decides how the delta files of one column family are written and read.
//
// They are block-based tables, whatever the table factory of the column family.
// If that is a BlockBasedTableFactory, they share its block cache and are like
// its tables in what has nothing to do with their shape: checksum, filter
// policy, compression. Otherwise they have RocksDB's defaults and a block cache
// of their own of kOwnCacheSize.
//
// A read asks the filters of all recent delta files, so filters and indexes are
// whole, and stay in the block cache as long as the file is open: with its high
// priority, charged as any block. Without a block cache (no_block_cache) the
// readers hold them.
//
// Thread-safe.
class DeltaTableFactory {
 public:
  static constexpr size_t kBlockSize = size_t{4} << 10;
  static constexpr size_t kOwnCacheSize = size_t{8} << 20;
  // From here on the footer has a checksum, and the checksum of a block says
  // where it belongs.
  static constexpr uint32_t kMinFormatVersion = 6;

  DeltaTableFactory(DeltaTableFamily family, const MutableCFOptions& options);
  DeltaTableFactory(const DeltaTableFactory&) = delete;
  DeltaTableFactory& operator=(const DeltaTableFactory&) = delete;

  // For files that are made or opened from now on, after SetOptions().
  void Update(const MutableCFOptions& options);

  std::shared_ptr<const DeltaTableSettings> settings() const;

 private:
  std::shared_ptr<const DeltaTableSettings> MakeSettings(
      const MutableCFOptions& options);
  BlockBasedTableOptions MakeTableOptions(const MutableCFOptions& options);

  const std::shared_ptr<const DeltaTableFamily> family_;
  mutable port::Mutex mutex_;
  // Made when it is needed first, and kept: its blocks are good whatever the
  // options.
  std::shared_ptr<Cache> own_cache_;
  std::shared_ptr<const DeltaTableSettings> settings_;
};

}  // namespace ROCKSDB_NAMESPACE
