//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/configured_options.h"

#include <cstdint>
#include <set>
#include <utility>

#include "db/manifest_ops.h"
#include "db/path_layout/manifest_files.h"
#include "monitoring/persistent_stats_history.h"
#include "options/strata/path_options.h"
#include "options/strata/strata_cf_options.h"
#include "rocksdb/env.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Adds the column families of the MANIFEST. Returns true if they are all of the
// database. Otherwise they are as many as could be read, perhaps none.
bool AddFamiliesOfManifest(FileSystem* fs, const std::string& dbname,
                           std::set<std::string>* names) {
  std::string current;
  uint64_t number = 0;
  // During a repair CURRENT names none, and the newest one lacks families
  // (RepairGuard).
  const Status named =
      GetCurrentManifestPath(dbname, fs, /*is_retry=*/false, &current, &number);
  std::string manifest;
  Status s = FindManifest(fs, dbname, &manifest);
  std::vector<ManifestFamily> families;
  if (s.ok()) {
    // After an error, the families are those of the records before it.
    s = ReadManifestFiles(
        fs, manifest,
        [](const std::string&) -> const Comparator* { return nullptr; },
        &families);
  }
  for (const ManifestFamily& family : families) {
    names->insert(family.name);
  }
  const bool is_readable = s.ok();
  return named.ok() && is_readable && manifest == current;
}

// Sets *names to those of the column families that the database has or may
// have: the default one, those of its MANIFEST, and, if this is not complete,
// those of sections with full names. Returns InvalidArgument if there may be
// others that have paths by the file.
Status FamiliesOf(const OptionsConfig& config, Env* env,
                  const std::string& dbname, std::set<std::string>* names) {
  *names = {kDefaultColumnFamilyName};
  FileSystem* const fs =
      (env == nullptr ? Env::Default() : env)->GetFileSystem().get();
  if (AddFamiliesOfManifest(fs, dbname, names)) {
    return Status::OK();
  }
  const Status s = config.AddFamilies(names);
  return s.ok() ? config.CheckNoUnknownFamily() : s;
}

// Returns the options that an open gives the family of persistent statistics.
ColumnFamilyOptions StatisticsOptions() {
  ColumnFamilyOptions options;
  OptimizeForPersistentStats(&options);
  return options;
}

std::set<std::string> NamesOf(
    const std::vector<ColumnFamilyDescriptor>& families) {
  std::set<std::string> names;
  for (const ColumnFamilyDescriptor& family : families) {
    names.insert(family.name);
  }
  return names;
}

Status ApplyToAll(OptionsConfig* config,
                  std::vector<ColumnFamilyDescriptor>* families,
                  OptionsConfig::Changes* changes) {
  for (ColumnFamilyDescriptor& family : *families) {
    const Status s = config->Apply(family.name, &family.options, changes);
    if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

}  // namespace

//======== ConfiguredOptions

ConfiguredOptions::ConfiguredOptions(
    const DBOptions& db_options, const std::string& dbname,
    const std::vector<ColumnFamilyDescriptor>& column_families)
    : given_db_options_(db_options), given_column_families_(column_families) {
  status_ = OptionsConfig::Load(db_options.env, dbname, &config_);
  if (config_ == nullptr) {
    return;
  }
  DBOptions changed = db_options;
  column_families_ = column_families;
  status_ = config_->Apply(&changed, &changes_);
  if (status_.ok()) {
    status_ = ApplyToAll(config_.get(), &column_families_, &changes_);
  }
  if (status_.ok()) {
    status_ = config_->CheckNew(changed);
  }
  db_options_ = std::move(changed);
}

Status ConfiguredOptions::Explain(const Status& s) const {
  return config_ == nullptr ? s : config_->Explain(s, changes_);
}

Status ConfiguredOptions::Finish(const Status& s,
                                 const std::unique_ptr<DB>& db) const {
  if (s.ok() && config_ != nullptr) {
    Log(db->GetDBOptions().info_log.get());
  }
  return Explain(s);
}

void ConfiguredOptions::Log(Logger* log) const {
  if (config_ != nullptr) {
    config_->Log(log, changes_);
  }
}

//======== ConfiguredFamily

ConfiguredFamily::ConfiguredFamily(const std::shared_ptr<OptionsConfig>& config,
                                   const std::string& name,
                                   const ColumnFamilyOptions& options)
    : given_options_(options), config_(config) {
  if (config_ == nullptr) {
    return;
  }
  options_ = options;
  status_ = config_->Apply(name, &*options_, &changes_);
}

Status ConfiguredFamily::Explain(const Status& s) const {
  return config_ == nullptr ? s : config_->Explain(s, changes_);
}

void ConfiguredFamily::Log(Logger* log) const {
  if (config_ != nullptr) {
    config_->LogChanges(log, changes_);
  }
}

//======== ConfiguredRepair

ConfiguredRepair::ConfiguredRepair(
    const std::string& dbname, const DBOptions& db_options,
    const std::vector<ColumnFamilyDescriptor>& column_families,
    const ColumnFamilyOptions* unknown_options)
    : db_options_(db_options), column_families_(column_families) {
  if (unknown_options != nullptr) {
    unknown_options_ = *unknown_options;
  }
  status_ = OptionsConfig::Load(db_options.env, dbname, &config_);
  if (config_ != nullptr) {
    status_ = Apply(dbname, /*has_unknown=*/unknown_options != nullptr);
  }
}

Status ConfiguredRepair::AddFamilies(const std::string& dbname) {
  std::set<std::string> names;
  const Status s = FamiliesOf(*config_, db_options_.env, dbname, &names);
  if (!s.ok()) {
    return s;
  }
  const std::string& statistics = kPersistentStatsColumnFamilyName;
  names.insert(statistics);
  const std::set<std::string> known = NamesOf(column_families_);
  for (const std::string& name : names) {
    if (known.count(name) == 0) {
      column_families_.emplace_back(
          name, name == statistics ? StatisticsOptions() : unknown_options_);
    }
  }
  return s;
}

Status ConfiguredRepair::Apply(const std::string& dbname, bool has_unknown) {
  Status s = config_->CheckOwnDirectory();
  if (s.ok() && has_unknown) {
    s = AddFamilies(dbname);
  }
  if (s.ok()) {
    s = config_->Apply(&db_options_, &changes_);
  }
  if (s.ok()) {
    s = ApplyToAll(config_.get(), &column_families_, &changes_);
  }
  if (s.ok() && has_unknown) {
    OptionsConfig::Changes changes;
    s = config_->ApplyToUnknownFamily(&unknown_options_, &changes);
  }
  return s.ok() ? config_->Explain(Validate(), changes_) : s;
}

// A repair does not validate its options, as an open does.
Status ConfiguredRepair::Validate() const {
  Status s = ValidateStrataRanges(db_options_);
  for (const ColumnFamilyDescriptor& family : column_families_) {
    if (s.ok()) {
      s = ValidateStrataRanges(family.options);
    }
  }
  return s.ok() ? ValidatePathOptions(db_options_, column_families_) : s;
}

const ColumnFamilyOptions& ConfiguredRepair::default_options() const {
  for (const ColumnFamilyDescriptor& family : column_families_) {
    if (family.name == kDefaultColumnFamilyName) {
      return family.options;
    }
  }
  return unknown_options_;
}

void ConfiguredRepair::Log(Logger* log) const {
  if (config_ != nullptr) {
    config_->Log(log, changes_);
  }
}

//======== Other calls

Status ConfigureDestroy(const std::string& dbname, Options* options,
                        std::vector<ColumnFamilyDescriptor>* families) {
  std::shared_ptr<OptionsConfig> config;
  Status s = OptionsConfig::Load(options->env, dbname, &config);
  if (config == nullptr) {
    return s;
  }
  config->ApplyOnlyDirectories();
  OptionsConfig::Changes changes;
  DBOptions db_options(*options);
  s = config->CheckOwnDirectory();
  if (s.ok()) {
    s = config->Apply(&db_options, &changes);
  }
  if (s.ok()) {
    s = ApplyToAll(config.get(), families, &changes);
  }
  ColumnFamilyOptions all;
  if (s.ok()) {
    s = config->AddAllPaths(&all.cf_paths);
  }
  if (s.ok()) {
    s = config->CheckNotOfOthers("cf_paths", options->cf_paths);
  }
  if (s.ok()) {
    families->emplace_back("", all);
    *options = Options(db_options, ColumnFamilyOptions(*options));
  }
  return s;
}

Status ConfigureTool(const std::string& dbname, Options* options,
                     std::vector<ColumnFamilyDescriptor>* families) {
  if (dbname.empty()) {
    return Status::OK();
  }
  const DBOptions db_options(*options);
  const std::vector<ColumnFamilyDescriptor> given =
      families->empty()
          ? std::vector<ColumnFamilyDescriptor>{{kDefaultColumnFamilyName,
                                                 ColumnFamilyOptions(*options)}}
          : *families;
  const ConfiguredOptions configured(db_options, dbname, given);
  if (!configured.status().ok() || configured.config() == nullptr) {
    return configured.status();
  }
  const std::vector<ColumnFamilyDescriptor>& changed =
      configured.column_families();
  *options = Options(
      configured.db_options(),
      families->empty() ? changed[0].options : ColumnFamilyOptions(*options));
  if (!families->empty()) {
    *families = changed;
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
