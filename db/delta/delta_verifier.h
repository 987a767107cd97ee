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

// Returns a factory for delta files like that of `family` and `options`, but
// without a block cache, so that everything is read from the files.
std::unique_ptr<DeltaTableFactory> NewUncachedDeltaTables(
    const DeltaTableFamily& family, const MutableCFOptions& options);

// Checks the delta files of a Version against the MANIFEST, against their own
// metadata, and against each other. Used by `ldb verify_delta_store`.
//
// For each file:
// * It opens and is the file that is described (see DeltaFileReader::Open()),
//   and its checksum as a whole is right, if there is one.
// * The checksums of all blocks are right.
// * Its entries are in order and of its kind, its filter has all their keys,
//   and their number, keys, sequence numbers and bytes are as described.
// * For a sorted file: its keys are in the range of the buckets that it was
//   written for; the Version's buckets that name it are in that range, and see
//   none of the recent files whose entries the file includes.
//
// For all operand files together: among the operands of a key that readers see,
// those of older files have smaller sequence numbers than those of newer files.
// So no operand is there twice, on its own or as part of another operand.
//
// The LSM-tree is not checked.
class DeltaVerifier {
 public:
  struct Options {
    int num_threads = 1;
    // Computes the checksums of whole files; nullptr: they are not checked.
    FileChecksumGenFactory* checksum_factory = nullptr;
  };

  struct Result {
    std::atomic<uint64_t> files{0};
    std::atomic<uint64_t> entries{0};  // point entries and ranges
    std::atomic<uint64_t> bytes{0};    // of files
    std::atomic<uint64_t> errors{0};   // that were reported
    // Keys of which readers see operands, and the number of these operands.
    uint64_t keys = 0;
    uint64_t operands = 0;
  };

  // Called with a line for each error, which names the file. Called by one
  // thread at a time.
  using Report = std::function<void(const std::string& line)>;

  // Checks the files of `delta` and reports all errors.
  // REQUIRES: the files of `delta` are not deleted during the call; `tables` is
  // uncached, see above.
  static void Verify(const DeltaTableFactory& tables, const DeltaVersion& delta,
                     const Options& options, const Report& report,
                     Result* result);
};

}  // namespace ROCKSDB_NAMESPACE
