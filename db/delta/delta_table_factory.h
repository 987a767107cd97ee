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
  // A copy, including the comparator: a reader may be destroyed after its
  // column family, together with the list of obsolete files.
  const ImmutableOptions ioptions;
  // True if point reads may begin to read delta files before they look for the
  // value, as the file system can do that.
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

// The settings with which delta files are written and read, until the options
// of the column family change.
//
// Immutable. Table builders and readers keep references into it, so the owner
// of a builder or reader must keep the settings until it is gone.
struct DeltaTableSettings {
  std::shared_ptr<const DeltaTableFamily> family;
  // The options of the column family, except for the table factory, which is
  // DeltaTableFactory's own, and for options that delta files do not support:
  // there is no prefix extractor.
  MutableCFOptions options;
  // Compression of the blocks of new files.
  CompressionType compression = kNoCompression;

  const ImmutableOptions& ioptions() const { return family->ioptions; }
  const InternalKeyComparator& icmp() const {
    return family->ioptions.internal_comparator;
  }
  const Comparator* ucmp() const { return icmp().user_comparator(); }
};

// Decides how the delta files of one column family are written and read.
//
// They are block-based tables, whatever the table factory of the column family
// is. If that is a BlockBasedTableFactory, delta files share its block cache
// and all settings that do not concern the shape of tables: checksum, filter
// policy, compression. Otherwise they have RocksDB's defaults and their own
// block cache of kOwnCacheSize bytes.
//
// A read asks the filters of all recent delta files, so filters and indexes are
// not partitioned and stay in the block cache while the file is open, with high
// priority and charged like any block. Without a block cache (no_block_cache)
// the readers hold them.
//
// Thread-safe.
class DeltaTableFactory {
 public:
  static constexpr size_t kBlockSize = size_t{4} << 10;
  static constexpr size_t kOwnCacheSize = size_t{8} << 20;
  // From this version on the footer has a checksum, and the checksum of a block
  // depends on its position.
  static constexpr uint32_t kMinFormatVersion = 6;

  DeltaTableFactory(DeltaTableFamily family, const MutableCFOptions& options);
  DeltaTableFactory(const DeltaTableFactory&) = delete;
  DeltaTableFactory& operator=(const DeltaTableFactory&) = delete;

  // Applies options that SetOptions() has changed to files that are created or
  // opened from now on.
  void Update(const MutableCFOptions& options);

  std::shared_ptr<const DeltaTableSettings> settings() const;

 private:
  std::shared_ptr<const DeltaTableSettings> MakeSettings(
      const MutableCFOptions& options);
  BlockBasedTableOptions MakeTableOptions(const MutableCFOptions& options);

  const std::shared_ptr<const DeltaTableFamily> family_;
  mutable port::Mutex mutex_;
  // Made when first needed, and kept: its blocks are valid with any options.
  std::shared_ptr<Cache> own_cache_;
  std::shared_ptr<const DeltaTableSettings> settings_;
};

}  // namespace ROCKSDB_NAMESPACE
