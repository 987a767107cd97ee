//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/path_options.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "db/path_layout/path_layout.h"
#include "logging/logging.h"
#include "options/cf_options.h"
#include "options/strata/path_prices.h"
#include "rocksdb/utilities/cf_paths.h"
#include "util/strata/path_list.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using PathIds = std::vector<uint32_t>;

bool HasLayout(const ColumnFamilyOptions& options) {
  return !options.level_sst_path_ids.empty() ||
         !options.level_blob_path_ids.empty();
}

// Returns true if the meaning of an option depends on the paths
// (PathLayout::NamesPaths()).
bool NamesPaths(const ColumnFamilyOptions& options) {
  return HasLayout(options) || options.delta_sorted_path_id >= 0 ||
         options.blob_hot_bytes > 0 || !options.path_prices.empty();
}

// num_paths: the number of paths of the column family.
Status ValidateIds(const ColumnFamilyOptions& options, size_t num_paths) {
  return PathLayout::Validate(options.level_sst_path_ids,
                              options.level_blob_path_ids,
                              options.delta_sorted_path_id, num_paths);
}

// Returns true if hot values have a path that is not the only one.
bool HasHotPath(const ColumnFamilyOptions& options, size_t num_paths) {
  return num_paths > 1 && options.blob_hot_path_id < num_paths;
}

Status ValidateHotPath(const ColumnFamilyOptions& options, size_t num_paths) {
  if (options.blob_hot_bytes == 0 || HasHotPath(options, num_paths)) {
    return Status::OK();
  }
  return Status::InvalidArgument(
      num_paths == 1
          ? "blob_hot_bytes needs a path for hot values beside that of the "
            "others, but cf_paths (or db_paths) has 1 path"
          : "blob_hot_path_id: path id " +
                std::to_string(options.blob_hot_path_id) +
                " names no path: cf_paths (or db_paths) has " +
                std::to_string(num_paths));
}

// Calls `dump` with the name and value of each layout option that is set.
template <typename Options>
void ForEachLayout(
    const Options& options,
    const std::function<void(const char*, const PathIds&)>& dump) {
  if (!options.level_sst_path_ids.empty()) {
    dump("level_sst_path_ids", options.level_sst_path_ids);
  }
  if (!options.level_blob_path_ids.empty()) {
    dump("level_blob_path_ids", options.level_blob_path_ids);
  }
}

// The functions of PathIdsTypeInfo(). They have names because GCC 12 warns of
// uninitialized memory when an optimised build copies a std::function of a
// lambda without captures.

Status ParsePathIdsOption(const ConfigOptions&, const std::string& name,
                          const std::string& value, void* addr) {
  const Status s = ParsePathIds(OptionTypeInfo::StripOuterBraces(value),
                                static_cast<PathIds*>(addr));
  return s.ok() ? s : Status::InvalidArgument(name, s.getState());
}

Status SerializePathIdsOption(const ConfigOptions&, const std::string&,
                              const void* addr, std::string* value) {
  *value = PathIdsToString(*static_cast<const PathIds*>(addr));
  return Status::OK();
}

bool EqualPathIdsOptions(const ConfigOptions&, const std::string& name,
                         const void* addr1, const void* addr2,
                         std::string* mismatch) {
  const bool equal = *static_cast<const PathIds*>(addr1) ==
                     *static_cast<const PathIds*>(addr2);
  if (!equal) {
    *mismatch = name;
  }
  return equal;
}

}  // namespace

OptionTypeInfo PathIdsTypeInfo(size_t offset) {
  OptionTypeInfo info(static_cast<int>(offset), OptionType::kVector,
                      OptionVerificationType::kNormal,
                      OptionTypeFlags::kMutable);
  info.SetParseFunc(ParsePathIdsOption);
  info.SetSerializeFunc(SerializePathIdsOption);
  info.SetEqualsFunc(EqualPathIdsOptions);
  return info;
}

const std::unordered_map<std::string, OptionTypeInfo>*
CfPathsOption::TypeInfo() {
  static const auto* const info =
      new std::unordered_map<std::string, OptionTypeInfo>{
          {"cf_paths",
           OptionTypeInfo(
               0, OptionType::kUnknown, OptionVerificationType::kNormal,
               OptionTypeFlags::kCompareNever,
               [](const ConfigOptions&, const std::string& name,
                  const std::string& value, void* addr) {
                 const auto* option = static_cast<const CfPathsOption*>(addr);
                 const Status s =
                     ParsePathList(OptionTypeInfo::StripOuterBraces(value),
                                   &option->immutable_cf_options->cf_paths);
                 return s.ok() ? s
                               : Status::InvalidArgument(name, s.getState());
               },
               [](const ConfigOptions&, const std::string&, const void* addr,
                  std::string* value) {
                 const auto* option = static_cast<const CfPathsOption*>(addr);
                 const auto& paths = option->immutable_cf_options->cf_paths;
                 value->clear();
                 // A single path is usually the DB's own directory, which the
                 // application that loads the file knows better.
                 if (PathLayout::NamesPaths(*option->mutable_cf_options) &&
                     paths.size() > 1) {
                   *value = PathListToString(paths);
                 }
                 return Status::OK();
               })}};
  return info;
}

Status ValidatePathOptions(const DBOptions& db_options,
                           const ColumnFamilyOptions& cf_options) {
  if (!NamesPaths(cf_options)) {
    // RocksDB checks the number of db_paths.
    return cf_options.cf_paths.size() <= PathLayout::kMaxPaths
               ? Status::OK()
               : Status::NotSupported(
                     "cf_paths has " +
                     std::to_string(cf_options.cf_paths.size()) +
                     " paths, but at most " +
                     std::to_string(PathLayout::kMaxPaths) +
                     " are supported: a file keeps the number of its path in "
                     "two bits, and is not found on any further path");
  }
  const std::string option =
      !cf_options.level_sst_path_ids.empty()    ? "level_sst_path_ids"
      : !cf_options.level_blob_path_ids.empty() ? "level_blob_path_ids"
      : cf_options.delta_sorted_path_id >= 0    ? "delta_sorted_path_id"
      : cf_options.blob_hot_bytes > 0           ? "blob_hot_bytes"
                                                : "path_prices";
  // Sorted delta files alone exclude neither: their jobs run locally, and FIFO
  // compaction excludes delta files itself.
  const bool has_layout = HasLayout(cf_options);
  if (has_layout && cf_options.compaction_style == kCompactionStyleFIFO) {
    return Status::NotSupported(
        option +
        " cannot be combined with FIFO compaction, which has one level and "
        "never moves a file");
  }
  if (has_layout && db_options.compaction_service != nullptr) {
    return Status::NotSupported(
        option +
        " cannot be combined with a compaction_service: a remote worker knows "
        "one output directory");
  }
  const std::vector<DbPath>& paths =
      cf_options.cf_paths.empty() ? db_options.db_paths : cf_options.cf_paths;
  // Without paths all files are in the DB's directory.
  const size_t num_paths = std::max<size_t>(paths.size(), 1);
  if (num_paths > PathLayout::kMaxPaths) {
    return Status::InvalidArgument(
        option + " supports at most " + std::to_string(PathLayout::kMaxPaths) +
        " paths; " + (cf_options.cf_paths.empty() ? "db_paths" : "cf_paths") +
        " has " + std::to_string(num_paths));
  }
  Status s = ValidateIds(cf_options, num_paths);
  if (s.ok()) {
    s = ValidateHotPath(cf_options, num_paths);
  }
  return s.ok()
             ? CheckPathPrices("path_prices", cf_options.path_prices, num_paths)
             : s;
}

Status ValidatePathOptions(
    const DBOptions& db_options,
    const std::vector<ColumnFamilyDescriptor>& column_families) {
  for (const ColumnFamilyDescriptor& cf : column_families) {
    const Status s = ValidatePathOptions(db_options, cf.options);
    if (!s.ok()) {
      return AppendMessage(s, " in column family ", cf.name);
    }
  }
  return Status::OK();
}

Status ValidatePathOptionsOfFollower(
    const std::vector<ColumnFamilyDescriptor>& column_families) {
  for (const ColumnFamilyDescriptor& cf : column_families) {
    if (HasLayout(cf.options)) {
      return Status::NotSupported(
          "A follower links the leader's files into one directory: "
          "level_sst_path_ids and level_blob_path_ids must be empty in column "
          "family " +
          cf.name);
    }
  }
  return Status::OK();
}

void DumpPathsOfLayout(Logger* log, const ColumnFamilyOptions& options) {
  if (NamesPaths(options)) {
    ROCKS_LOG_HEADER(log, "%31sOptions.cf_paths: %s", "",
                     PathListToString(options.cf_paths).c_str());
  }
}

void ReportSkippedLevels(Logger* log, const std::string& cf_name,
                         const MutableCFOptions& options, int base_level) {
  ForEachLayout(options, [&](const char* name, const PathIds& ids) {
    const auto id_of = [&ids](int level) {
      return ids[std::min(static_cast<size_t>(level), ids.size() - 1)];
    };
    std::string skipped;
    for (int level = 1; level < base_level; ++level) {
      if (id_of(level) != id_of(base_level)) {
        skipped += (skipped.empty() ? "" : ", ") + std::to_string(level) +
                   " (path " + std::to_string(id_of(level)) + ")";
      }
    }
    if (!skipped.empty()) {
      ROCKS_LOG_WARN(
          log,
          "[%s] %s: level_compaction_dynamic_level_bytes compacts level 0 into "
          "level %d (path %u) and leaves the levels between them empty for now."
          " No file follows the entries of levels: %s",
          cf_name.c_str(), name, base_level, id_of(base_level),
          skipped.c_str());
    }
  });
}

Status OverrideCfPaths(const std::vector<DbPath>& cf_paths,
                       std::vector<ColumnFamilyDescriptor>* cf_descs) {
  for (const ColumnFamilyDescriptor& cf : *cf_descs) {
    if (!NamesPaths(cf.options)) {
      continue;
    }
    const Status s =
        ValidateIds(cf.options, std::max<size_t>(cf_paths.size(), 1));
    if (!s.ok()) {
      return AppendMessage(s, " in column family ", cf.name);
    }
  }
  for (ColumnFamilyDescriptor& cf : *cf_descs) {
    if (NamesPaths(cf.options)) {
      cf.options.cf_paths = cf_paths;
      if (cf.options.path_prices.size() !=
          std::max<size_t>(cf_paths.size(), 1)) {
        // It is not known which price is that of which path.
        cf.options.path_prices.clear();
      }
      if (!HasHotPath(cf.options, std::max<size_t>(cf_paths.size(), 1))) {
        cf.options.blob_hot_bytes = 0;
      }
    }
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
