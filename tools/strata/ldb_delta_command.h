//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include "rocksdb/utilities/ldb_cmd.h"

namespace ROCKSDB_NAMESPACE {

// ldb dump_delta: prints the properties and the entries of a delta file. A
// database is only needed for a custom comparator.
class DumpDeltaCommand : public LDBCommand {
 public:
  static std::string Name() { return "dump_delta"; }

  DumpDeltaCommand(const std::vector<std::string>& params,
                   const std::map<std::string, std::string>& options,
                   const std::vector<std::string>& flags);

  bool NoDBOpen() override { return true; }
  void DoCommand() override;

  static void Help(std::string& ret);

 private:
  // Sets the comparator of options_ by its name.
  Status UseComparator(const std::string& name);

  std::string path_;
  int max_keys_ = -1;
};

// ldb verify_delta_store: opens the database read-only, even if delta files are
// missing, and reports the errors of its delta files.
class VerifyDeltaStoreCommand : public LDBCommand {
 public:
  static std::string Name() { return "verify_delta_store"; }

  VerifyDeltaStoreCommand(const std::vector<std::string>& params,
                          const std::map<std::string, std::string>& options,
                          const std::vector<std::string>& flags);

  void OverrideBaseOptions() override;
  void DoCommand() override;

  static void Help(std::string& ret);

 private:
  int num_threads_ = 1;
};

}  // namespace ROCKSDB_NAMESPACE
