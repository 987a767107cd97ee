//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_map_command.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <cstdio>

#include "db/address_map/address_map_checkpoints.h"
#include "db/address_map/address_map_verifier.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/version_set.h"
#include "options/strata/feature_set.h"
#include "options/strata_config/configured_options.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kMapThreads = "threads";
const char* const kSpaceAmpLimit = "space_amp_limit";
const char* const kMaxSortedRuns = "max_sorted_runs";
const char* const kKeysOnly = "keys_only";

void CheckMapThreads(int num_threads, LDBCommandExecuteResult* result) {
  if (num_threads < 1) {
    *result = LDBCommandExecuteResult::Failed(std::string("--") + kMapThreads +
                                              " must be at least 1");
  }
}

// Gives the options of the map their defaults, so that the OPTIONS file has no
// line of them. Hot values are part of a layout, too: with them the OPTIONS
// file keeps cf_paths, where other files than those of the map may lie.
void ResetMapOptions(StrataColumnFamilyOptions* options) {
  const uint64_t hot_bytes = options->blob_hot_bytes;
  const uint32_t hot_path_id = options->blob_hot_path_id;
  FeatureSet(FeatureSet::kMap).ResetOptions(options);
  if (hot_bytes > 0) {
    options->blob_hot_bytes = hot_bytes;
    options->blob_hot_path_id = hot_path_id;
  }
}

}  // namespace

VerifyAddressMapCommand::VerifyAddressMapCommand(
    const std::vector<std::string>& params,
    const std::map<std::string, std::string>& options,
    const std::vector<std::string>& flags)
    : LDBCommand(options, flags, /*is_read_only=*/true,
                 BuildCmdLineOptions({kMapThreads, kKeysOnly})),
      read_values_(!IsFlagPresent(flags, kKeysOnly)) {
  if (!params.empty()) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        Name() + " takes no parameters, only --" + kMapThreads + " and --" +
        kKeysOnly);
    return;
  }
  if (ParseIntOption(options, kMapThreads, num_threads_, exec_state_)) {
    CheckMapThreads(num_threads_, &exec_state_);
  }
}

void VerifyAddressMapCommand::Help(std::string& ret) {
  ret.append("  ");
  ret.append(Name());
  ret.append(" [--");
  ret.append(kMapThreads);
  ret.append("=<int,e.g.:4>] [--");
  ret.append(kKeysOnly);
  ret.append("]\n");
}

VerifyAddressMapCommand::~VerifyAddressMapCommand() {
  // The process of the command may be that of a program which opens databases.
  AddressMapCheckpoints::UseInThisProcess(true);
}

void VerifyAddressMapCommand::OverrideBaseOptions() {
  LDBCommand::OverrideBaseOptions();
  // Otherwise a database that has lost a value does not open.
  options_.paranoid_checks = false;
  // The map is built from the files, not from a checkpoint, so that the files
  // are verified.
  AddressMapCheckpoints::UseInThisProcess(false);
}

void VerifyAddressMapCommand::DoCommand() {
  if (db_ == nullptr) {
    assert(GetExecuteState().IsFailed());
    return;
  }
  DBImpl* const db = static_cast_with_check<DBImpl>(db_->GetRootDB());
  AddressMapVerifier::Options options;
  options.file_options = FileOptions(db->GetDBOptions());
  options.num_threads = num_threads_;
  options.read_values = read_values_;
  // cf_handles_ is empty if there is only one column family.
  std::map<std::string, ColumnFamilyHandle*> handles = cf_handles_;
  handles.emplace(kDefaultColumnFamilyName, db_->DefaultColumnFamily());
  uint64_t errors = 0;
  uint64_t damaged_indexes = 0;
  for (const auto& [name, handle] : handles) {
    ColumnFamilyData* const cfd =
        static_cast_with_check<ColumnFamilyHandleImpl>(handle)->cfd();
    if (cfd->address_map_store() == nullptr) {
      continue;
    }
    AddressMapVerifier::Result result;
    SuperVersion* const sv = cfd->GetReferencedSuperVersion(db);
    const Status s = AddressMapVerifier::Verify(
        cfd, sv->current, options,
        [](const std::string& line) { fprintf(stdout, "%s\n", line.c_str()); },
        &result);
    db->CleanupSuperVersion(sv);
    fprintf(stdout,
            "[%s] %" PRIu64 " values, %" PRIu64 " bytes read, %" PRIu64
            " lost or damaged; %" PRIu64 " damaged record indexes\n",
            name.c_str(), result.values.load(), result.bytes.load(),
            result.errors.load(), result.damaged_indexes.load());
    if (!s.ok()) {
      exec_state_ =
          LDBCommandExecuteResult::Failed("[" + name + "] " + s.ToString());
      return;
    }
    errors += result.errors.load();
    damaged_indexes += result.damaged_indexes.load();
  }
  if (errors > 0 || damaged_indexes > 0) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        std::to_string(errors) + " values are lost or damaged; " +
        std::to_string(damaged_indexes) + " record indexes are damaged");
    return;
  }
  fprintf(stdout, "OK\n");
}

DisableAddressMapCommand::DisableAddressMapCommand(
    const std::vector<std::string>& params,
    const std::map<std::string, std::string>& options,
    const std::vector<std::string>& flags)
    : LDBCommand(options, flags, /*is_read_only=*/false,
                 BuildCmdLineOptions({kMapThreads})) {
  if (!params.empty()) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        Name() + " takes no parameters, only --" + kMapThreads);
    return;
  }
  if (!try_load_options_) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        Name() +
        " needs --try_load_options: with other options than the database's "
        "own, its values would be changed");
    return;
  }
  if (ParseIntOption(options, kMapThreads, num_threads_, exec_state_)) {
    CheckMapThreads(num_threads_, &exec_state_);
  }
}

void DisableAddressMapCommand::Help(std::string& ret) {
  ret.append("  ");
  ret.append(Name());
  ret.append(" [--");
  ret.append(kMapThreads);
  ret.append("=<int,e.g.:4>]  (with --try_load_options)\n");
}

void DisableAddressMapCommand::PrepareOptions() {
  LDBCommand::PrepareOptions();
  ResetMapOptions(&options_);
  // The old MANIFEST mentions files with mapped values.
  options_.reuse_manifest_on_open = false;
  for (ColumnFamilyDescriptor& cf : column_families_) {
    ResetMapOptions(&cf.options);
  }
  options_.max_subcompactions = static_cast<uint32_t>(num_threads_);
  options_.max_background_jobs = std::max(options_.max_background_jobs, 2);
  if (!exec_state_.IsFailed() && ConfigTurnsMapOn()) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        std::string("The file of ") + OptionsConfig::kVariable +
        " turns enable_blob_address_map on. Take the line out of the file "
        "first: the next open would use the map again");
  }
}

bool DisableAddressMapCommand::ConfigTurnsMapOn() const {
  Options options = options_;
  std::vector<ColumnFamilyDescriptor> families = column_families_;
  // An error is one of the open, which follows.
  ConfigureTool(db_path_, &options, &families).PermitUncheckedError();
  return options.enable_blob_address_map ||
         std::any_of(families.begin(), families.end(),
                     [](const ColumnFamilyDescriptor& family) {
                       return family.options.enable_blob_address_map;
                     });
}

void DisableAddressMapCommand::OverrideBaseCFOptions(
    ColumnFamilyOptions* cf_opts) {
  // Without --enable_blob_files ldb disables blob files for the column family
  // of the command.
  const bool loaded = cf_opts->enable_blob_files;
  LDBCommand::OverrideBaseCFOptions(cf_opts);
  cf_opts->enable_blob_files = cf_opts->enable_blob_files || loaded;
}

std::map<std::string, ColumnFamilyHandle*> DisableAddressMapCommand::Handles() {
  // cf_handles_ is empty if there is only one column family.
  std::map<std::string, ColumnFamilyHandle*> handles = cf_handles_;
  handles.emplace(kDefaultColumnFamilyName, db_->DefaultColumnFamily());
  return handles;
}

uint64_t DisableAddressMapCommand::NumMapped() {
  DBImpl* const db = static_cast_with_check<DBImpl>(db_->GetRootDB());
  uint64_t result = 0;
  for (const auto& [name, handle] : Handles()) {
    ColumnFamilyData* const cfd =
        static_cast_with_check<ColumnFamilyHandleImpl>(handle)->cfd();
    SuperVersion* const sv = cfd->GetReferencedSuperVersion(db);
    const VersionStorageInfo& files = *sv->current->storage_info();
    result += files.strata().mapped_stats().num_mapped;
    for (const auto& meta : files.GetBlobFiles()) {
      result += meta->IsMapped() ? 1 : 0;
    }
    db->CleanupSuperVersion(sv);
  }
  return result;
}

void DisableAddressMapCommand::DoCommand() {
  if (db_ == nullptr) {
    assert(GetExecuteState().IsFailed());
    return;
  }
  for (const auto& [name, handle] : Handles()) {
    CompactRangeOptions options;
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    const Status s = db_->CompactRange(options, handle, nullptr, nullptr);
    if (!s.ok()) {
      exec_state_ =
          LDBCommandExecuteResult::Failed("[" + name + "] " + s.ToString());
      return;
    }
    fprintf(stdout, "[%s] compacted\n", name.c_str());
  }
  // The files of the values are removed from the MANIFEST in the background.
  WaitForCompactOptions wait_options;
  wait_options.wait_for_purge = true;
  const Status s = db_->WaitForCompact(wait_options);
  if (!s.ok()) {
    exec_state_ = LDBCommandExecuteResult::Failed(s.ToString());
    return;
  }
  // The MANIFEST still mentions the deleted files. The next open writes a new
  // one.
  CloseDB();
  OpenDB();
  if (db_ == nullptr || exec_state_.IsFailed()) {
    return;
  }
  const uint64_t left = NumMapped();
  if (left > 0) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        std::to_string(left) +
        " values or blob files are still in an address map; try again");
    return;
  }
  fprintf(stdout,
          "OK: no value is in an address map. Open the database with "
          "enable_blob_address_map=false from now on; RocksDB opens it, too\n");
}

CollectBlobGarbageCommand::CollectBlobGarbageCommand(
    const std::vector<std::string>& params,
    const std::map<std::string, std::string>& options,
    const std::vector<std::string>& flags)
    : LDBCommand(options, flags, /*is_read_only=*/false,
                 BuildCmdLineOptions({kSpaceAmpLimit, kMaxSortedRuns})) {
  if (!params.empty()) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        Name() + " takes no parameters, only --" + kSpaceAmpLimit + " and --" +
        kMaxSortedRuns);
    return;
  }
  if (!try_load_options_) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        Name() + " needs --try_load_options: it works with the database's own");
    return;
  }
  const auto limit = options.find(kSpaceAmpLimit);
  if (limit != options.end()) {
    char* end = nullptr;
    space_amp_limit_ = std::strtod(limit->second.c_str(), &end);
    if (*end != '\0' || !(space_amp_limit_ >= 1.0)) {
      exec_state_ =
          LDBCommandExecuteResult::Failed(std::string("--") + kSpaceAmpLimit +
                                          " must be a number of at least 1");
    }
  }
  int max_sorted_runs = 0;
  if (ParseIntOption(options, kMaxSortedRuns, max_sorted_runs, exec_state_)) {
    if (max_sorted_runs < 0) {
      exec_state_ = LDBCommandExecuteResult::Failed(
          std::string("--") + kMaxSortedRuns + " must not be negative");
    } else {
      max_sorted_runs_ = static_cast<uint32_t>(max_sorted_runs);
    }
  }
}

void CollectBlobGarbageCommand::Help(std::string& ret) {
  ret.append("  ");
  ret.append(Name());
  ret.append(" [--");
  ret.append(kSpaceAmpLimit);
  ret.append("=<number,e.g.:1.1>] [--");
  ret.append(kMaxSortedRuns);
  ret.append("=<number,e.g.:1>]  (with --try_load_options)\n");
}

void CollectBlobGarbageCommand::DoCommand() {
  if (db_ == nullptr) {
    assert(GetExecuteState().IsFailed());
    return;
  }
  CollectBlobGarbageOptions options;
  options.space_amp_limit = space_amp_limit_;
  options.max_sorted_runs = max_sorted_runs_;
  const Status s = db_->CollectBlobGarbage(options, GetCfHandle());
  if (!s.ok()) {
    exec_state_ = LDBCommandExecuteResult::Failed(s.ToString());
    return;
  }
  fprintf(stdout, "OK\n");
}

}  // namespace ROCKSDB_NAMESPACE
