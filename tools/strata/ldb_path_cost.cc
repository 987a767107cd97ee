//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_path_cost.h"

#include <cinttypes>
#include <cstdio>
#include <utility>

#include "db/path_layout/manifest_files.h"
#include "db/path_layout/stored_cost.h"
#include "options/strata/path_prices.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kPrices = "prices";

}  // namespace

PathCostCommand::PathCostCommand(
    const std::vector<std::string>& params,
    const std::map<std::string, std::string>& options,
    const std::vector<std::string>& flags)
    : LDBCommand(options, flags, /*is_read_only=*/true,
                 BuildCmdLineOptions({kPrices})),
      all_families_(options.find(ARG_CF_NAME) == options.end()) {
  if (!params.empty()) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        Name() + " takes no parameters, only --" + kPrices);
    return;
  }
  const auto given = options.find(kPrices);
  // Without a value it is a flag.
  if (given == options.end() && !IsFlagPresent(flags, kPrices)) {
    return;
  }
  const Status s =
      ParsePathPrices(given == options.end() ? "" : given->second, &prices_);
  if (!s.ok() || prices_.empty()) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        std::string("--") + kPrices + ": " +
        (s.ok() ? "a price for each path is needed" : s.ToString()));
  }
}

void PathCostCommand::Help(std::string& ret) {
  ret.append("  ");
  ret.append(Name());
  ret.append(" [--");
  ret.append(kPrices);
  ret.append("=<price of a GiB on each path,e.g.:0.25,0.02>]\n");
}

const ColumnFamilyOptions& PathCostCommand::OptionsOf(
    const std::string& family) const {
  for (const ColumnFamilyDescriptor& descriptor : column_families_) {
    if (descriptor.name == family) {
      return descriptor.options;
    }
  }
  return options_;
}

Status PathCostCommand::Print() {
  FileSystem* const fs = options_.env->GetFileSystem().get();
  std::string manifest;
  Status s = FindManifest(fs, db_path_, &manifest);
  std::vector<ManifestFamily> files;
  if (s.ok()) {
    s = ReadManifestFiles(
        fs, manifest,
        [this](const std::string& family) {
          return OptionsOf(family).comparator;
        },
        &files);
  }
  if (!s.ok()) {
    return s;
  }
  std::vector<StoredCost::Family> families;
  for (const ManifestFamily& family : files) {
    if (!all_families_ && family.name != column_family_name_) {
      continue;
    }
    const ColumnFamilyOptions& options = OptionsOf(family.name);
    StoredCost::Family priced;
    priced.name = family.name;
    priced.paths =
        options.cf_paths.empty() ? options_.db_paths : options.cf_paths;
    if (priced.paths.empty()) {
      priced.paths.emplace_back(db_path_, 0);
    }
    priced.prices = options.path_prices;
    if (prices_.empty()) {
      s = CheckPathPrices("path_prices", priced.prices, priced.paths.size());
      if (s.ok() && priced.prices.empty()) {
        s = Status::InvalidArgument(
            std::string("--") + kPrices +
            " is not given, and path_prices is not set in column family " +
            family.name);
      }
      if (!s.ok()) {
        return s;
      }
    }
    families.push_back(std::move(priced));
  }
  if (families.empty()) {
    return Status::InvalidArgument("Non-existing column family " +
                                   column_family_name_);
  }
  if (!prices_.empty()) {
    s = StoredCost::SetPrices(std::string("--") + kPrices, prices_, &families);
    if (!s.ok()) {
      return s;
    }
  }
  StoredCost cost(fs, std::move(families));
  cost.AddManifest(files);
  if (all_families_) {
    s = cost.AddDirectories(
        db_path_, options_.wal_dir.empty() ? db_path_ : options_.wal_dir);
  } else {
    s = cost.FindMissing();
  }
  if (s.ok()) {
    fprintf(stdout, "%s", cost.ToString().c_str());
  }
  if (s.ok() && cost.NumMissing() > 0) {
    fprintf(stdout,
            "warning: %" PRIu64
            " files of the MANIFEST are not on disk; are these the paths of "
            "the database (--cf_paths)?\n",
            cost.NumMissing());
  }
  return s;
}

void PathCostCommand::DoCommand() {
  if (db_path_.empty()) {
    exec_state_ =
        LDBCommandExecuteResult::Failed(Name() + " needs --" + ARG_DB);
    return;
  }
  PrepareOptions();
  if (exec_state_.IsFailed()) {
    return;
  }
  const Status s = Print();
  exec_state_ = s.ok() ? LDBCommandExecuteResult::Succeed("")
                       : LDBCommandExecuteResult::Failed(s.ToString());
}

}  // namespace ROCKSDB_NAMESPACE
