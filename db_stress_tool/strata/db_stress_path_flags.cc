//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/strata/db_stress_path_flags.h"

#include <cstdio>
#include <cstdlib>

#include "db_stress_tool/db_stress_common.h"
#include "options/strata/path_prices.h"
#include "util/gflags_compat.h"
#include "util/strata/path_list.h"

DEFINE_string(cf_paths, "",
              "Directories of every column family: <path>[:<bytes>],...");

DEFINE_string(level_sst_path_ids, "",
              "Which of --cf_paths the SST files of each level go to, e.g. "
              "0,1.");

DEFINE_string(level_blob_path_ids, "",
              "Which of --cf_paths the blob files written for each level go "
              "to, e.g. 0,1.");

DEFINE_string(path_prices, "",
              "What a GiB costs on each of --cf_paths, e.g. 0.25,0.02.");

namespace ROCKSDB_NAMESPACE {

void ApplyStressPathFlags(Options* options) {
  Status s = ApplyPathFlags(FLAGS_cf_paths, FLAGS_level_sst_path_ids,
                            FLAGS_level_blob_path_ids, options);
  if (s.ok()) {
    s = ApplyPathPricesFlag(FLAGS_path_prices, options);
  }
  if (!s.ok()) {
    fprintf(stderr, "%s\n", s.ToString().c_str());
    exit(1);  // NOLINT(concurrency-mt-unsafe)
  }
  // Two DBs in one directory would delete each other's files.
  if (!FLAGS_cf_paths.empty() && FLAGS_num_dbs > 1) {
    fprintf(stderr, "Error: --cf_paths is incompatible with --num_dbs > 1\n");
    exit(1);  // NOLINT(concurrency-mt-unsafe)
  }
}

void AddPathLayoutsToTry(
    std::unordered_map<std::string, std::vector<std::string>>* options_table) {
  std::vector<DbPath> paths;
  ParsePathList(FLAGS_cf_paths, &paths).PermitUncheckedError();
  if (paths.size() < 2) {
    return;
  }
  const std::string last = std::to_string(paths.size() - 1);
  const std::vector<std::string> layouts{
      "", "0", last, "0:" + last, last + ":0", "0:0:" + last, "0:1:" + last};
  options_table->emplace("level_sst_path_ids", layouts);
  options_table->emplace("level_blob_path_ids", layouts);
  options_table->emplace("delta_sorted_path_id",
                         std::vector<std::string>{"-1", "-1", "0", "1", last});
  const auto prices = [&](double first, double factor) {
    std::vector<double> result;
    for (size_t i = 0; i < paths.size(); ++i, first *= factor) {
      result.push_back(first);
    }
    return PathPricesToString(result);
  };
  options_table->emplace(
      "path_prices",
      std::vector<std::string>{"", prices(0.25, 0.5), prices(0, 1)});
}

void ForgetPaths(ColumnFamilyOptions* options) {
  options->cf_paths.clear();
  options->level_sst_path_ids.clear();
  options->level_blob_path_ids.clear();
  options->delta_sorted_path_id = -1;
  options->path_prices.clear();
  options->blob_hot_bytes = 0;
}

std::vector<ColumnFamilyDescriptor> StressPathsToDestroy() {
  ColumnFamilyOptions options;
  ParsePathList(FLAGS_cf_paths, &options.cf_paths).PermitUncheckedError();
  return {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)};
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
