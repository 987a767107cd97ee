//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rocksdb/utilities/ldb_cmd.h"

namespace ROCKSDB_NAMESPACE {

// ldb verify_address_map: opens the database read-only, even if values are
// lost, and reports each value of its address maps that cannot be read.
class VerifyAddressMapCommand : public LDBCommand {
 public:
  static std::string Name() { return "verify_address_map"; }

  VerifyAddressMapCommand(const std::vector<std::string>& params,
                          const std::map<std::string, std::string>& options,
                          const std::vector<std::string>& flags);
  ~VerifyAddressMapCommand() override;

  void OverrideBaseOptions() override;
  void DoCommand() override;

  static void Help(std::string& ret);

 private:
  int num_threads_ = 1;
  bool read_values_;
};

// ldb disable_address_map: moves all values out of the address maps into
// ordinary blob files (or SST files, as the options say), so that RocksDB can
// open the database. It can be repeated if it was interrupted.
class DisableAddressMapCommand : public LDBCommand {
 public:
  static std::string Name() { return "disable_address_map"; }

  DisableAddressMapCommand(const std::vector<std::string>& params,
                           const std::map<std::string, std::string>& options,
                           const std::vector<std::string>& flags);

  void PrepareOptions() override;
  void OverrideBaseCFOptions(ColumnFamilyOptions* cf_opts) override;
  void DoCommand() override;
  bool KeepsMergeOperands() const override { return true; }

  static void Help(std::string& ret);

 private:
  // Returns all open column families.
  std::map<std::string, ColumnFamilyHandle*> Handles();
  // Returns the total number of mapped values, and of files with such values,
  // in the column families.
  uint64_t NumMapped();
  // Returns true if the open would turn the map on (OptionsConfig).
  bool ConfigTurnsMapOn() const;

  int num_threads_ = 1;
};

// ldb collect_blob_garbage: copies live values of a column family with an
// address map out of blob files with garbage until the space amplification of
// these is within its limit; with --max_sorted_runs it sorts them, too.
class CollectBlobGarbageCommand : public LDBCommand {
 public:
  static std::string Name() { return "collect_blob_garbage"; }

  CollectBlobGarbageCommand(const std::vector<std::string>& params,
                            const std::map<std::string, std::string>& options,
                            const std::vector<std::string>& flags);

  void DoCommand() override;

  static void Help(std::string& ret);

 private:
  double space_amp_limit_ = 1.0;
  uint32_t max_sorted_runs_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
