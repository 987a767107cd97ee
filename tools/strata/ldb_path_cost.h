//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include "rocksdb/utilities/ldb_cmd.h"

namespace ROCKSDB_NAMESPACE {

// ldb path_cost: prints what the files of a closed database cost on its paths,
// beside the cost of the same bytes on the dearest path (StoredCost). It reads
// the OPTIONS file and the MANIFEST, and does not open the database.
class PathCostCommand : public LDBCommand {
 public:
  static std::string Name() { return "path_cost"; }

  PathCostCommand(const std::vector<std::string>& params,
                  const std::map<std::string, std::string>& options,
                  const std::vector<std::string>& flags);

  void DoCommand() override;
  bool NoDBOpen() override { return true; }

  static void Help(std::string& ret);

 private:
  // Returns the options of a column family: those of the OPTIONS file, or,
  // without such a file, those of the command line.
  const ColumnFamilyOptions& OptionsOf(const std::string& family) const;
  Status Print();

  // The value of --prices; empty: the option path_prices of each family.
  std::vector<double> prices_;
  // False: --column_family was given.
  bool all_families_ = true;
};

}  // namespace ROCKSDB_NAMESPACE
