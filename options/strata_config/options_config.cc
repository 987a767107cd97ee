//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/options_config.h"

#include <algorithm>
#include <cstddef>

#include "db/path_layout/directory_names.h"
#include "db/path_layout/manifest_files.h"
#include "file/filename.h"
#include "logging/logging.h"
#include "options/strata_config/config_directories.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "util/strata/secure_getenv.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Maximum number of lines that Explain() names.
constexpr size_t kMaxExplained = 8;

Env* EnvOr(Env* env) { return env == nullptr ? Env::Default() : env; }

}  // namespace

OptionsConfig::OptionsConfig(Env* env, const std::string& dbname)
    : env_(EnvOr(env)),
      database_(CleanDirectoryName(env_->GetFileSystem().get(), dbname)),
      applier_(&file_, env_, database_) {}

Status OptionsConfig::Named(const Status& s) {
  if (s.ok()) {
    return s;
  }
  return s.IsNotSupported() ? Status::NotSupported(kVariable, s.getState())
                            : Status::InvalidArgument(kVariable, s.getState());
}

Status OptionsConfig::Load(Env* env, const std::string& dbname,
                           std::shared_ptr<OptionsConfig>* config) {
  config->reset();
  const std::string name = SecureGetenv(kVariable);
  if (name.empty()) {
    return Status::OK();
  }
  auto result = std::make_shared<OptionsConfig>(env, dbname);
  Status s = ConfigFile::Load(name, &result->file_);
  if (s.ok()) {
    s = result->applier_.CheckAll();
  }
  if (s.ok()) {
    *config = std::move(result);
  }
  return Named(s);
}

Status OptionsConfig::CheckPaths(const Changes& changes, size_t begin,
                                 const char* option,
                                 const std::vector<DbPath>& paths) const {
  FileSystem* const fs = env_->GetFileSystem().get();
  for (size_t i = changes.size(); i > begin; --i) {
    const ConfigChange& change = changes[i - 1];
    if (change.option != option) {
      continue;
    }
    const Status s = ConfigDirectories::CheckNoDatabase(fs, database_, paths);
    if (!s.ok()) {
      return file_.Error(change.line, option, s);
    }
    break;
  }
  return ConfigDirectories::CheckNotOfOthers(fs, file_, database_, option,
                                             paths);
}

Status OptionsConfig::CheckNotOfOthers(const std::string& option,
                                       const std::vector<DbPath>& paths) const {
  return Named(ConfigDirectories::CheckNotOfOthers(
      env_->GetFileSystem().get(), file_, database_, option, paths));
}

Status OptionsConfig::Apply(DBOptions* options, Changes* changes) {
  DBOptions result = *options;
  const size_t begin = changes->size();
  Status s = applier_.Apply(&result, changes);
  if (s.ok()) {
    s = CheckPaths(*changes, begin, "db_paths", result.db_paths);
  }
  if (s.ok()) {
    *options = std::move(result);
  }
  return Named(s);
}

Status OptionsConfig::Apply(const std::string& family,
                            ColumnFamilyOptions* options, Changes* changes) {
  ColumnFamilyOptions result = *options;
  const size_t begin = changes->size();
  Status s = applier_.Apply(family, &result, changes);
  if (s.ok()) {
    s = CheckPaths(*changes, begin, "cf_paths", result.cf_paths);
  }
  if (s.ok()) {
    *options = std::move(result);
  }
  return Named(s);
}

Status OptionsConfig::ApplyToUnknownFamily(ColumnFamilyOptions* options,
                                           Changes* changes) {
  ColumnFamilyOptions result = *options;
  const size_t begin = changes->size();
  Status s = applier_.ApplyToUnknownFamily(&result, changes);
  if (s.ok()) {
    s = CheckPaths(*changes, begin, "cf_paths", result.cf_paths);
  }
  if (s.ok()) {
    *options = std::move(result);
  }
  return Named(s);
}

Status OptionsConfig::CheckNew(const DBOptions& options) const {
  if (!options.create_if_missing) {
    return Status::OK();
  }
  FileSystem* const fs = env_->GetFileSystem().get();
  std::string manifest;
  // As DBImpl::Recover() finds it out.
  const Status s = options.best_efforts_recovery
                       ? FindManifest(fs, database_, &manifest)
                       : fs->FileExists(CurrentFileName(database_), IOOptions(),
                                        /*dbg=*/nullptr);
  return s.IsNotFound()
             ? Named(ConfigDirectories::CheckNew(fs, file_, database_))
             : Status::OK();
}

Status OptionsConfig::CheckOwnDirectory() const {
  return Named(ConfigDirectories::CheckOwnDirectory(env_->GetFileSystem().get(),
                                                    file_, database_));
}

Status OptionsConfig::AddFamilies(std::set<std::string>* names) const {
  for (const ConfigFile::Section& section : file_.sections()) {
    if (section.kind == ConfigFile::Section::kDB ||
        !section.family.is_literal()) {
      continue;
    }
    bool matches = false;
    const Status s = section.db.Match(database_, &matches);
    if (!s.ok()) {
      return Named(file_.Error(section.number, s.getState()));
    }
    if (matches) {
      names->insert(section.family.literal());
    }
  }
  return Status::OK();
}

Status OptionsConfig::CheckNoUnknownFamily() const {
  return Named(ConfigDirectories::CheckNoUnknownFamily(
      env_->GetFileSystem().get(), file_, database_));
}

Status OptionsConfig::AddAllPaths(std::vector<DbPath>* paths) const {
  return Named(ConfigDirectories::AddAllPaths(env_->GetFileSystem().get(),
                                              file_, database_, paths));
}

void OptionsConfig::Log(Logger* log, const Changes& changes) const {
  std::string unused;
  for (const ConfigFile::Section& section : file_.sections()) {
    if (applier_.used_sections().count(section.number) == 0) {
      unused += (unused.empty() ? "" : ", ") + std::to_string(section.number);
    }
  }
  ROCKS_LOG_HEADER(
      log, "%s: %s: %zu of %zu sections match the database %s%s%s", kVariable,
      file_.name().c_str(), applier_.used_sections().size(),
      file_.sections().size(), database_.c_str(),
      unused.empty() ? ""
                     : ". Those of these lines match neither it nor a "
                       "column family of this open: ",
      unused.c_str());
  LogChanges(log, changes);
}

void OptionsConfig::LogChanges(Logger* log, const Changes& changes) const {
  for (const ConfigChange& change : changes) {
    ROCKS_LOG_INFO(log, "%s: %s", kVariable, change.ToString(file_).c_str());
  }
}

Status OptionsConfig::Explain(const Status& s, const Changes& changes) const {
  if (!s.IsInvalidArgument() && !s.IsNotSupported()) {
    return s;
  }
  const std::string message = s.getState() == nullptr ? "" : s.getState();
  std::vector<const ConfigChange*> lines;
  const auto add = [&](bool only_named) {
    for (const ConfigChange& change : changes) {
      if (change.has_effect() &&
          (!only_named || message.find(change.option) != std::string::npos)) {
        lines.push_back(&change);
      }
    }
  };
  add(/*only_named=*/true);
  if (lines.empty()) {
    add(/*only_named=*/false);
  }
  if (lines.empty()) {
    return s;
  }
  std::string text;
  for (size_t i = 0; i < std::min(lines.size(), kMaxExplained); ++i) {
    text += (i == 0 ? "" : ", ") + lines[i]->ToString(file_);
  }
  if (lines.size() > kMaxExplained) {
    text += " and " + std::to_string(lines.size() - kMaxExplained) + " more";
  }
  text = (message.empty() ? "" : message + ": ") + kVariable + " has changed " +
         text;
  return s.IsNotSupported() ? Status::NotSupported(text)
                            : Status::InvalidArgument(text);
}

}  // namespace ROCKSDB_NAMESPACE
