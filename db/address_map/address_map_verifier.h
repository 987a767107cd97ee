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

// Checks that every value that the SST files of a Version refer to through the
// address map can be read, i.e. that a blob file has a record with the right
// key, sequence number and birth and a correct checksum. Also reads the record
// index of each blob file: a damaged one can often be restored from the
// records, but not any more once a record is damaged as well. Memtables are not
// checked. Implements `ldb verify_address_map`.
class AddressMapVerifier {
 public:
  struct Options {
    FileOptions file_options;
    int num_threads = 1;
    // If false, only checks that each value has an address.
    bool read_values = true;
  };

  struct Result {
    std::atomic<uint64_t> values{0};
    std::atomic<uint64_t> bytes{0};   // total size of the values read
    std::atomic<uint64_t> errors{0};  // number of lost or damaged values
    // Number of blob files whose record index is missing or damaged.
    std::atomic<uint64_t> damaged_indexes{0};
  };

  // Called for each lost or damaged value and each damaged record index, by one
  // thread at a time.
  // line: names the key, the sequence number and, if some file has the value,
  // the file and the offset; or the file of the record index. The line also
  // says how many live values the map has in the slot of the file.
  using Report = std::function<void(const std::string& line)>;

  // Returns an error only if the scan itself fails, for example because an SST
  // file cannot be read.
  // Jobs may move values and drop blob files meanwhile; the indexes of dropped
  // files are not read.
  // REQUIRES: version belongs to cfd and is referenced; the map of cfd is
  // ready; there are no writes (values that are overwritten during the call
  // would be reported as lost).
  static Status Verify(ColumnFamilyData* cfd, Version* version,
                       const Options& options, const Report& report,
                       Result* result);
};

}  // namespace ROCKSDB_NAMESPACE
