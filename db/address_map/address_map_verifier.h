//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class Version;

// Checks that every value that the SST files of a Version say is in the address
// map can be read: that a blob file has it, under the right key, sequence
// number and birth, with a right checksum. Memtables are not looked at.
// `ldb verify_address_map` is made of it.
class AddressMapVerifier {
 public:
  struct Options {
    FileOptions file_options;
    int num_threads = 1;
    // False: a value need only have an address.
    bool read_values = true;
  };

  struct Result {
    std::atomic<uint64_t> values{0};
    std::atomic<uint64_t> bytes{0};   // of values read
    std::atomic<uint64_t> errors{0};  // of values: lost or damaged
  };

  // Called with a line on each value that is lost or damaged, which names key,
  // sequence number and, unless no file has it, file and offset. By one
  // thread at a time.
  using Report = std::function<void(const std::string& line)>;

  // Not OK if the scan itself fails: an SST file cannot be read, for example.
  // REQUIRES: version is cfd's and referenced; cfd's map is ready; nobody
  // writes: what is overwritten meanwhile would be reported as lost.
  static Status Verify(ColumnFamilyData* cfd, Version* version,
                       const Options& options, const Report& report,
                       Result* result);
};

}  // namespace ROCKSDB_NAMESPACE
