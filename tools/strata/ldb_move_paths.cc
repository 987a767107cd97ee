//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_move_paths.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "rocksdb/file_system.h"
#include "rocksdb/system_clock.h"
#include "tools/strata/ldb_path_flags.h"
#include "util/strata/path_list.h"
#include "util/string_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr const char* kFrom = "from";
constexpr const char* kTo = "to";
constexpr const char* kRateLimit = "rate_limit_mb";
constexpr const char* kVerify = "verify";
constexpr const char* kDryRun = "dry_run";
constexpr const char* kCfPathsFlag = "cf_paths";
constexpr uint64_t kBytesPerMb = 1 << 20;

Status WrongFlag(const char* name, const std::string& problem) {
  return Status::InvalidArgument(std::string("--") + name, problem);
}

// Parses a list of directories. The path keeps the limit of bytes that it has,
// so that none can be given.
Status ParseDirectories(const char* name, const std::string& text,
                        std::vector<std::string>* directories) {
  std::vector<DbPath> paths;
  const Status s = ParsePathList(text, &paths);
  if (!s.ok()) {
    return WrongFlag(name, s.ToString());
  }
  for (const DbPath& path : paths) {
    if (path.target_size != std::numeric_limits<uint64_t>::max()) {
      return WrongFlag(name, "has a number of bytes for " + path.path +
                                 ": a path keeps its own");
    }
    directories->push_back(path.path);
  }
  return Status::OK();
}

// Returns the flags for the base class. It would give --cf_paths to all column
// families with a layout, also if it is for one family.
std::map<std::string, std::string> WithoutPathsOfFamily(
    std::map<std::string, std::string> options) {
  if (options.count(LDBCommand::ARG_CF_NAME) > 0) {
    options.erase(kCfPathsFlag);
  }
  return options;
}

}  // namespace

MovePathsCommand::MovePathsCommand(
    const std::vector<std::string>& params,
    const std::map<std::string, std::string>& options,
    const std::vector<std::string>& flags)
    // The command writes no entries, so that it needs no merge operator.
    : LDBCommand(
          WithoutPathsOfFamily(options), flags, /*is_read_only=*/true,
          BuildCmdLineOptions({kFrom, kTo, kRateLimit, kVerify, kDryRun})),
      all_families_(options.find(ARG_CF_NAME) == options.end()) {
  Status s = params.empty() ? Parse(options, flags)
                            : Status::InvalidArgument(
                                  Name() + " takes no parameters, only flags");
  if (!s.ok()) {
    exec_state_ = LDBCommandExecuteResult::Failed(s.ToString());
  }
}

Status MovePathsCommand::Parse(
    const std::map<std::string, std::string>& options,
    const std::vector<std::string>& flags) {
  const auto get = [&](const char* name) {
    const auto found = options.find(name);
    return found == options.end() ? std::string() : found->second;
  };
  std::vector<std::string> from;
  std::vector<std::string> to;
  Status s = ParseDirectories(kFrom, get(kFrom), &from);
  if (s.ok()) {
    s = ParseDirectories(kTo, get(kTo), &to);
  }
  if (s.ok() && (from.empty() || from.size() != to.size())) {
    s = Status::InvalidArgument(
        std::string("--") + kFrom + " and --" + kTo +
        " need one directory each, or lists of the same length");
  }
  if (!s.ok()) {
    return s;
  }
  for (size_t i = 0; i < from.size(); ++i) {
    move_options_.requests.push_back({from[i], to[i]});
  }
  if (!all_families_) {
    s = ParsePathList(get(kCfPathsFlag), &paths_of_family_);
    if (!s.ok()) {
      return WrongFlag(kCfPathsFlag, s.ToString());
    }
  }
  // Sets *value if there is an option or a flag.
  const auto parse_bool = [&](const char* name, bool* value) {
    const std::string text = get(name);
    if (text == "true" || text == "false") {
      *value = text == "true";
    } else if (!text.empty()) {
      return WrongFlag(name, "is neither true nor false: " + text);
    } else if (IsFlagPresent(flags, name)) {
      *value = true;
    }
    return Status::OK();
  };
  s = parse_bool(kVerify, &move_options_.verifies);
  if (s.ok()) {
    s = parse_bool(kDryRun, &move_options_.is_dry_run);
  }
  if (s.ok() && options.find(kRateLimit) != options.end()) {
    const std::string text = get(kRateLimit);
    Slice digits = text;
    uint64_t megabytes = 0;
    if (!ConsumeDecimalNumber(&digits, &megabytes) || !digits.empty() ||
        megabytes == 0 ||
        megabytes > std::numeric_limits<int64_t>::max() / kBytesPerMb) {
      return WrongFlag(kRateLimit, "is no number of MiB per second: " + text);
    }
    move_options_.bytes_per_second = megabytes * kBytesPerMb;
  }
  return s;
}

void MovePathsCommand::Help(std::string& ret) {
  ret.append("  ");
  ret.append(Name());
  ret.append(std::string(" --") + kFrom + "=<path>,... --" + kTo +
             "=<path>,... [--" + kRateLimit + "=<MiB per second>] [--" +
             kVerify + "=false] [--" + kDryRun + "]\n");
}

void MovePathsCommand::ApplyPaths() {
  if (!paths_of_family_.empty()) {
    for (ColumnFamilyDescriptor& family : column_families_) {
      if (family.name == column_family_name_) {
        family.options.cf_paths = paths_of_family_;
      }
    }
    if (column_families_.empty() &&
        column_family_name_ == kDefaultColumnFamilyName) {
      options_.cf_paths = paths_of_family_;
    }
    return;
  }
  if (all_families_) {
    LdbPathFlags(option_map_).GiveToAll(&column_families_, &exec_state_);
  }
}

PathMover::Family MovePathsCommand::FamilyOf(const std::string& name) const {
  const auto found =
      std::find_if(column_families_.begin(), column_families_.end(),
                   [&](const ColumnFamilyDescriptor& family) {
                     return family.name == name;
                   });
  const ColumnFamilyOptions& options =
      found == column_families_.end()
          ? static_cast<const ColumnFamilyOptions&>(options_)
          : found->options;
  PathMover::Family family;
  family.paths = options.cf_paths.empty() ? db_paths_ : options.cf_paths;
  family.comparator = options.comparator;
  return family;
}

void MovePathsCommand::DoCommand() {
  if (db_path_.empty()) {
    exec_state_ =
        LDBCommandExecuteResult::Failed(Name() + " needs --" + ARG_DB);
    return;
  }
  const std::shared_ptr<FileSystem> fs = options_.env->GetFileSystem();
  move_options_.report = [](const std::string& line) {
    fprintf(stdout, "%s\n", line.c_str());
    fflush(stdout);
  };
  const std::shared_ptr<FileChecksumGenFactory> given =
      options_.file_checksum_gen_factory;
  PathMover mover(fs.get(), options_.env->GetSystemClock().get(), db_path_,
                  move_options_);
  // Before the options are read, because another process could change them.
  Status s = mover.Lock();
  if (s.ok()) {
    // PrepareOptions() takes the directory of the database for a path that was
    // given.
    db_paths_ = options_.db_paths;
    PrepareOptions();
    ApplyPaths();
    if (exec_state_.IsFailed()) {
      return;
    }
    s = mover.Run([this](const std::string& name) { return FamilyOf(name); },
                  options_.wal_dir,
                  options_.file_checksum_gen_factory == nullptr
                      ? given
                      : options_.file_checksum_gen_factory);
  }
  exec_state_ = s.ok() ? LDBCommandExecuteResult::Succeed("")
                       : LDBCommandExecuteResult::Failed(s.ToString());
}

}  // namespace ROCKSDB_NAMESPACE
