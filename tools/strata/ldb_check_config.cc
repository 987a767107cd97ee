//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_check_config.h"

#ifndef OS_WIN
#include <glob.h>
#endif

#include <cstdint>
#include <cstdio>

#include "db/path_layout/directory_names.h"
#include "db/path_layout/manifest_files.h"
#include "db/path_layout/missing_path_check.h"
#include "db/path_layout/path_check.h"
#include "db/strata/db_strata.h"
#include "file/filename.h"
#include "options/strata/stored_merge_operators.h"
#include "options/strata_config/config_directories.h"
#include "options/strata_config/options_config.h"
#include "rocksdb/file_system.h"
#include "rocksdb/utilities/options_util.h"
#include "util/strata/secure_getenv.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kConfig = "config";

}  // namespace

CheckConfigCommand::CheckConfigCommand(
    const std::vector<std::string>& params,
    const std::map<std::string, std::string>& options,
    const std::vector<std::string>& flags)
    : LDBCommand(options, flags, /*is_read_only=*/true,
                 BuildCmdLineOptions({kConfig})) {
  const auto given = options.find(kConfig);
  file_name_ = given != options.end() ? given->second
                                      : SecureGetenv(OptionsConfig::kVariable);
  if (!params.empty()) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        Name() + " takes no parameters, only --" + kConfig);
  } else if (file_name_.empty()) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        Name() + " needs --" + kConfig + "=<file>, or " +
        OptionsConfig::kVariable + " in the environment");
  }
}

void CheckConfigCommand::Help(std::string& ret) {
  ret.append("  ");
  ret.append(Name());
  ret.append(" [--");
  ret.append(kConfig);
  ret.append("=<file of ");
  ret.append(OptionsConfig::kVariable);
  ret.append(">] : Shows what the file would change in the options of the ");
  ret.append("database, and whether an open would be refused, also for paths ");
  ret.append("of other databases. --");
  ret.append(ARG_DB);
  ret.append(" can be a pattern ('/data/*') for several databases. It is ");
  ret.append("expanded as by a shell: '*' matches no slash.\n");
}

bool CheckConfigCommand::IsDatabase(const std::string& name) const {
  return options_.env->FileExists(CurrentFileName(name)).ok();
}

std::vector<std::string> CheckConfigCommand::Databases() const {
  const ConfigGlob pattern(db_path_);
  if (pattern.is_literal()) {
    return {db_path_};
  }
  std::vector<std::string> result;
#ifndef OS_WIN
  glob_t found = {};
  if (glob(db_path_.c_str(), /*flags=*/0, /*errfunc=*/nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      if (IsDatabase(found.gl_pathv[i])) {
        result.emplace_back(found.gl_pathv[i]);
      }
    }
  }
  globfree(&found);
#endif
  return result;
}

Status CheckConfigCommand::Load(const std::string& name,
                                Database* database) const {
  database->name = name;
  database->exists = IsDatabase(name);
  ConfigOptions config = config_options_;
  config.env = options_.env;
  Status s = LoadLatestOptions(config, name, &database->db_options,
                               &database->families);
  database->has_options_file = s.ok();
  if (!s.ok() && !s.IsNotFound() && !s.IsPathNotFound()) {
    return s;
  }
  database->db_options.env = options_.env;
  std::vector<std::string> names;
  if (!DB::ListColumnFamilies(database->db_options, name, &names).ok()) {
    names = {kDefaultColumnFamilyName};
  }
  // An OPTIONS file may have a family that was dropped since, or lack one.
  std::vector<ColumnFamilyDescriptor> families;
  for (const std::string& family : names) {
    families.emplace_back(family, ColumnFamilyOptions());
    for (const ColumnFamilyDescriptor& loaded : database->families) {
      if (loaded.name == family) {
        families.back().options = loaded.options;
      }
    }
  }
  database->families = families;
  AddMergeOperators(database);
  return Status::OK();
}

void CheckConfigCommand::AddMergeOperators(Database* database) const {
  ConfigOptions config = config_options_;
  config.env = options_.env;
  StoredMergeOperators stored;
  // Without a readable OPTIONS file, none are known.
  stored.Load(config, database->name).PermitUncheckedError();
  for (ColumnFamilyDescriptor& family : database->families) {
    if (family.options.merge_operator == nullptr) {
      family.options.merge_operator =
          stored.Make(config, family.name, {options_.merge_operator});
    }
  }
}

Status CheckConfigCommand::CheckFiles(const Database& database) const {
  FileSystem* const fs = options_.env->GetFileSystem().get();
  std::string manifest;
  std::vector<ManifestFamily> files;
  Status s = FindManifest(fs, database.name, &manifest);
  if (s.ok()) {
    s = ReadManifestFiles(
        fs, manifest,
        [&](const std::string& name) -> const Comparator* {
          for (const ColumnFamilyDescriptor& family : database.families) {
            if (family.name == name) {
              return family.options.comparator;
            }
          }
          return nullptr;
        },
        &files);
  }
  MissingPathCheck missing(fs);
  for (const ColumnFamilyDescriptor& family : database.families) {
    std::vector<DbPath> paths = family.options.cf_paths.empty()
                                    ? database.db_options.db_paths
                                    : family.options.cf_paths;
    if (paths.empty()) {
      paths.emplace_back(database.name, UINT64_MAX);
    }
    missing.BeginFamily(family.name, paths);
    for (const ManifestFamily& of_manifest : files) {
      if (of_manifest.name != family.name) {
        continue;
      }
      for (const ManifestFamily::File& file : of_manifest.files) {
        if (s.ok()) {
          s = CheckPathOfFile(fs, paths, family.name, file.type, file.number,
                              file.path_id);
        }
        missing.AddFile(file.type, file.number, file.path_id, file.size);
      }
    }
  }
  return s.ok() ? missing.Run() : s;
}

Status CheckConfigCommand::CheckPaths(const std::string& database,
                                      const char* option,
                                      const std::vector<DbPath>& paths) const {
  FileSystem* const fs = options_.env->GetFileSystem().get();
  const Status s = ConfigDirectories::CheckNoDatabase(fs, database, paths);
  return s.ok() ? ConfigDirectories::CheckNotOfOthers(fs, file_, database,
                                                      option, paths)
                : s;
}

Status CheckConfigCommand::CheckOpen(const Database& database) const {
  Status s = DBStrata::ValidateOpen(database.db_options, database.families);
  return s.ok() && database.exists ? CheckFiles(database) : s;
}

Status CheckConfigCommand::CheckDatabase(const std::string& name,
                                         bool* is_refused) {
  FileSystem* const fs = options_.env->GetFileSystem().get();
  const std::string clean_name = CleanDirectoryName(fs, name);
  Database database;
  Status s = Load(name, &database);
  if (!s.ok()) {
    return AppendMessage(s, " in the OPTIONS file of ", name);
  }
  fprintf(stdout, "%s: %zu column families, %s\n", clean_name.c_str(),
          database.families.size(),
          database.has_options_file ? "with the options of its OPTIONS file"
          : database.exists         ? "which has no OPTIONS file"
                                    : "which does not exist yet");

  ConfigApplier applier(&file_, options_.env, clean_name);
  std::vector<ConfigChange> changes;
  s = applier.Apply(&database.db_options, &changes);
  if (s.ok()) {
    s = CheckPaths(clean_name, "db_paths", database.db_options.db_paths);
  }
  for (ColumnFamilyDescriptor& family : database.families) {
    if (s.ok()) {
      s = applier.Apply(family.name, &family.options, &changes);
    }
    if (s.ok()) {
      s = CheckPaths(clean_name, "cf_paths", family.options.cf_paths);
    }
  }
  if (s.ok() && !database.exists) {
    s = ConfigDirectories::CheckNew(fs, file_, clean_name);
  }
  for (const ConfigChange& change : changes) {
    fprintf(stdout, "  %s\n", change.ToString(file_).c_str());
  }
  if (applier.used_sections().empty()) {
    fprintf(stdout, "  no section matches\n");
  }
  used_sections_.insert(applier.used_sections().begin(),
                        applier.used_sections().end());
  if (s.ok()) {
    s = CheckOpen(database);
  }
  *is_refused = !s.ok();
  if (s.ok()) {
    fprintf(stdout, "  an open would not be refused for its options\n");
  } else {
    fprintf(stdout, "  an open would be refused: %s\n", s.ToString().c_str());
  }
  return Status::OK();
}

void CheckConfigCommand::PrintUnusedSections() const {
  for (const ConfigFile::Section& section : file_.sections()) {
    if (used_sections_.count(section.number) == 0) {
      fprintf(stdout, "%s: the section matches none of these\n",
              file_.At(section.number).c_str());
    }
  }
}

Status CheckConfigCommand::Check() {
  Status s = ConfigFile::Load(file_name_, &file_);
  if (s.ok()) {
    s = ConfigApplier(&file_, options_.env, "/").CheckAll();
  }
  if (!s.ok() || db_path_.empty()) {
    return s;
  }
  const std::vector<std::string> databases = Databases();
  if (databases.empty()) {
    return Status::InvalidArgument(db_path_, "no database matches");
  }
  size_t num_refused = 0;
  for (const std::string& name : databases) {
    bool is_refused = false;
    s = CheckDatabase(name, &is_refused);
    if (!s.ok()) {
      return s;
    }
    num_refused += is_refused ? 1 : 0;
  }
  PrintUnusedSections();
  return num_refused == 0
             ? s
             : Status::InvalidArgument(std::to_string(num_refused) + " of " +
                                       std::to_string(databases.size()) +
                                       " databases would be refused");
}

void CheckConfigCommand::DoCommand() {
  const Status s = Check();
  exec_state_ = s.ok() ? LDBCommandExecuteResult::Succeed("")
                       : LDBCommandExecuteResult::Failed(s.ToString());
}

}  // namespace ROCKSDB_NAMESPACE
