//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class Compaction;
struct MutableCFOptions;
class SpaceNeeds;

// The space that flushes of several column families need, by directory.
//
// Invariant: the directories are those to which PathLayout sends the files of a
// flush: SST files and recent delta files of level 0, and blob files of level 0
// if a flush writes some.
//
// Not thread-safe.
class FlushSpace {
 public:
  // Adds a column family.
  // cf_paths: its paths; not empty.
  // unflushed: bytes of its memtables.
  // writes_blobs_directly: writes, and not flushes alone, put values into blob
  //     files.
  void Add(const std::vector<DbPath>& cf_paths, const MutableCFOptions& options,
           uint64_t unflushed, bool writes_blobs_directly);

  // Puts the needs of the flushes into *needs: in each directory a reserve of
  // the largest write buffer, as in RocksDB, or, if this is more, of all
  // memtables that would be flushed to it.
  // are_required: the devices must have the room.
  void AddTo(bool are_required, SpaceNeeds* needs) const;

  // Returns the largest write buffer.
  uint64_t write_buffer() const { return write_buffer_; }
  // Returns the bytes of all memtables.
  uint64_t unflushed() const { return unflushed_; }

 private:
  struct Directory {
    uint64_t write_buffer = 0;
    uint64_t unflushed = 0;
  };

  std::map<std::string, Directory> directories_;
  uint64_t write_buffer_ = 0;
  uint64_t unflushed_ = 0;
};

// The bytes that a compaction may write as SST files and as blob files.
// Estimates: of each input only the size is known, and what the compaction
// drops is not. A value that is moved to another path, or whose blob file is
// old enough for garbage collection, is written, too.
//
// Not thread-safe.
class CompactionSpace {
 public:
  // options: those of the compaction.
  // blob_path_id: that of the blob files of the output.
  // gc_cutoff: the part of the blob files, from 0 to 1, whose values are
  //     rewritten because they are old.
  // values_per_byte: returns the bytes of values in blob files for each byte of
  //     an SST file that refers to such values. Called only if values are
  //     rewritten.
  CompactionSpace(const MutableCFOptions& options, int output_level,
                  uint32_t blob_path_id, double gc_cutoff,
                  std::function<double()> values_per_byte);

  // Adds an input file of `level`.
  // blob_path_mask: PathLayout::BlobPathMask() of the file.
  void AddInput(int level, uint64_t size, uint8_t blob_path_mask);

  uint64_t sst_bytes() const { return sst_bytes_; }
  uint64_t blob_bytes() const { return blob_bytes_; }

 private:
  const int output_level_;
  const uint32_t blob_path_id_;
  const double gc_cutoff_;
  // The first level with separated values; beyond all levels if values are not
  // separated.
  const int starting_level_;
  const std::function<double()> values_per_byte_;
  uint64_t sst_bytes_ = 0;
  uint64_t blob_bytes_ = 0;
};

// Returns the directories to which flushes and compactions with these options
// write SST and blob files: those of all levels, whether they have files or
// not. Without a layout of SST files these are all paths.
std::set<std::string> LayoutDirectories(const std::vector<DbPath>& cf_paths,
                                        const MutableCFOptions& options,
                                        int num_levels);

// Returns the bytes that the compaction may write in each directory; none if it
// only deletes files. A compaction that moves files writes nothing, but counts
// like others, as in RocksDB.
// REQUIRES: DB mutex held
std::map<std::string, uint64_t> CompactionOutputBytes(
    const Compaction& compaction);

}  // namespace ROCKSDB_NAMESPACE
