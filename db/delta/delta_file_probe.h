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

// Reads a delta file without a MANIFEST, by the information in the file itself.
// For repair and tools.
//
// Read() reads the table properties, for which the user's comparator is not
// needed. Scan() reads the entries.
struct DeltaFileProbe {
  std::string directory;
  // As in the MANIFEST, except for the path id, which is 0, and the checksum of
  // the file, which is not known. Keys and sequence numbers are set by Scan().
  // For a file with a global sequence number, these and the epochs are 0: only
  // the MANIFEST has them.
  DeltaFileDescription description;
  DeltaFileProperties properties;
  uint32_t column_family_id = 0;
  std::string column_family_name;
  std::string comparator_name;
  // Set by Scan(): bytes of keys and operands in each of properties.buckets.
  std::vector<uint64_t> bucket_bytes;

  // Reads the properties of a file. Returns Corruption with the name of the
  // file if it is damaged, unfinished or no delta file.
  static Status Read(const ImmutableOptions& options,
                     const FileOptions& file_options,
                     const std::string& directory, uint64_t number,
                     DeltaFileProbe* file);

  // Called for each entry. end: nullptr for a point entry, else the end of a
  // range.
  using Visitor = std::function<void(const Slice& key, SequenceNumber seq,
                                     const Slice& value, const Slice* end)>;

  // Reads all entries in order, point entries before ranges.
  // tables: see NewTables().
  // visit: may be empty.
  Status Scan(const DeltaTableFactory& tables, const Visitor& visit = nullptr);

  // Returns a factory to read the file in its directory, without a block cache
  // and with the comparator of `options`.
  std::unique_ptr<DeltaTableFactory> NewTables(
      const ImmutableOptions& options, const MutableCFOptions& cf_options,
      const FileOptions& file_options) const;
  Status Open(const DeltaTableFactory& tables,
              std::unique_ptr<DeltaFileReader>* reader) const;

  std::string Name() const;

 private:
  struct SeqRange;

  // Parts of Scan().
  Status ScanPoints(const DeltaTableSettings& settings,
                    const DeltaFileReader& reader, const Visitor& visit,
                    SeqRange* seqs);
  // REQUIRES: ScanPoints() has succeeded.
  void ScanRanges(const Comparator& ucmp, const DeltaFileReader& reader,
                  const Visitor& visit, SeqRange* seqs);
};

}  // namespace ROCKSDB_NAMESPACE
