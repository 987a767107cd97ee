//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "db/delta/delta_table_factory.h"
#include "db/delta/delta_version.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileChecksumGenFactory;

// For readers that do not believe what is in memory: as `family` and `options`
// say, but without a block cache, so that everything is read from the file.
std::unique_ptr<DeltaTableFactory> NewUncachedDeltaTables(
    const DeltaTableFamily& family, const MutableCFOptions& options);

// Checks the delta files of a Version against the MANIFEST, against themselves
// and against each other. `ldb verify_delta_store` is made of it.
//
// Of each file:
// * It opens and is the one that is described (see DeltaFileReader::Open()),
//   and so is its checksum as a whole, if it has one.
// * The checksums of all blocks are right.
// * Entries are in order and of its kind, its filter has all their keys, and
//   their number, keys, sequence numbers and bytes are as described.
// * If it is a sorted one: its keys are in the range of the buckets that it was
//   written for; of the Version's buckets, those that name it are in that
//   range, and see none of the recent files of which it has all.
//
// Of all files of operands together: of what readers see of a key, operands of
// older files have smaller sequence numbers than those of newer ones. So none
// is there twice, on its own or as part of another one.
//
// What is in the LSM-tree is not looked at.
class DeltaVerifier {
 public:
  struct Options {
    int num_threads = 1;
    // For the checksums of whole files; nullptr: they are not checked.
    FileChecksumGenFactory* checksum_factory = nullptr;
  };

  struct Result {
    std::atomic<uint64_t> files{0};
    std::atomic<uint64_t> entries{0};  // of keys and of ranges
    std::atomic<uint64_t> bytes{0};    // of files
    std::atomic<uint64_t> errors{0};   // that were reported
    // Keys of which readers see operands, and these.
    uint64_t keys = 0;
    uint64_t operands = 0;
  };

  // Called with a line on each thing that is wrong, which names the file. By
  // one thread at a time.
  using Report = std::function<void(const std::string& line)>;

  // REQUIRES: the files of `delta` are not deleted meanwhile; `tables` is
  // uncached, see above.
  static void Verify(const DeltaTableFactory& tables, const DeltaVersion& delta,
                     const Options& options, const Report& report,
                     Result* result);
};

}  // namespace ROCKSDB_NAMESPACE
