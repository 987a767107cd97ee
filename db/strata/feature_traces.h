//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options/strata/feature_set.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// What features of Strata have left of themselves in the files of a closed
// database, apart from its MANIFEST (ManifestFeatures).
//
// Invariants:
// 1. It changes nothing on disk.
// 2. A database whose MANIFEST has no record that RocksDB refuses, and in which
//    none of the functions has found a trace, is one that RocksDB could have
//    written.
//
// Not thread-safe.
class FeatureTraces {
 public:
  struct Trace {
    FeatureSet features;
    // What was found and where, for the user.
    std::string text;
  };

  // Adds the files in the directories that RocksDB does not know or cannot
  // read: WALBUFFER, delta files, images of address maps, and blob files of
  // format version 2, whether the MANIFEST names them or not. A directory that
  // does not exist has none; one that is named twice is read once.
  Status AddFiles(FileSystem* fs, const std::vector<std::string>& directories);

  // Adds the tables that RocksDB cannot read or would answer wrongly from.
  // fnames: the SST files of a column family.
  // options: to open them.
  Status AddTables(const Options& options,
                   const std::vector<std::string>& fnames);

  // Adds the options in the text of an OPTIONS file that RocksDB does not have.
  void AddOptions(const std::string& text);

  const std::vector<Trace>& traces() const { return traces_; }
  // Returns the features of all traces.
  FeatureSet Features() const;

  // The files that AddTables() was to read and did not find. Their directories
  // are not among the known paths.
  uint64_t num_missing_tables() const { return num_missing_tables_; }
  uint64_t num_tables() const { return num_tables_; }

 private:
  void Add(const FeatureSet& features, const std::string& text) {
    traces_.push_back({features, text});
  }
  void AddFile(FileSystem* fs, const std::string& directory,
               const std::string& name);

  std::vector<Trace> traces_;
  uint64_t num_tables_ = 0;
  uint64_t num_missing_tables_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
