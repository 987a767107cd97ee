//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/delta/delta_file_description.h"
#include "db/delta/delta_file_properties.h"
#include "db/delta/delta_table_factory.h"
#include "options/cf_options.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class DeltaFileReader;

// A delta file on disk of which no MANIFEST tells: what it says of itself. A
// repair and tools are made of it.
//
// Read() finds out what its table properties say; the user's comparator is not
// needed for it. Scan() reads the rest.
struct DeltaFileProbe {
  std::string directory;
  // As the MANIFEST would have it, but for the path id, which is 0, and the
  // checksum of the file, which is not known. Keys and sequence numbers are set
  // by Scan(). With a global sequence number these and the epochs are 0: the
  // MANIFEST alone knows them.
  DeltaFileDescription description;
  DeltaFileProperties properties;
  uint32_t column_family_id = 0;
  std::string column_family_name;
  std::string comparator_name;
  // Set by Scan(): of keys and operands in each of properties.buckets.
  std::vector<uint64_t> bucket_bytes;

  // Corruption names the file if it is damaged, unfinished or no delta file.
  static Status Read(const ImmutableOptions& options,
                     const FileOptions& file_options,
                     const std::string& directory, uint64_t number,
                     DeltaFileProbe* file);

  // Of one entry, a key's or a range's: end is nullptr of a key.
  using Visitor = std::function<void(const Slice& key, SequenceNumber seq,
                                     const Slice& value, const Slice* end)>;

  // Reads all entries, first those of keys, in order. visit may be empty.
  // tables: see NewTables().
  Status Scan(const DeltaTableFactory& tables, const Visitor& visit = nullptr);

  // Reads the file where it lies: without a block cache, with the comparator of
  // `options`.
  std::unique_ptr<DeltaTableFactory> NewTables(
      const ImmutableOptions& options, const MutableCFOptions& cf_options,
      const FileOptions& file_options) const;
  Status Open(const DeltaTableFactory& tables,
              std::unique_ptr<DeltaFileReader>* reader) const;

  std::string Name() const;
};

}  // namespace ROCKSDB_NAMESPACE
