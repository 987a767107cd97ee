//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_disable_features.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "db/path_layout/missing_file.h"
#include "db/path_layout/path_layout.h"
#include "db/path_layout/path_move_mark.h"
#include "db/strata/feature_removal.h"
#include "db/strata/wal_records.h"
#include "file/filename.h"
#include "options/strata_config/configured_options.h"
#include "options/strata_config/options_config.h"
#include "rocksdb/comparator.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/sync_point.h"
#include "tools/strata/ldb_path_flags.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kFeaturesFlag = "features";
const char* const kFeaturesDryRun = "dry_run";
const char* const kDisableThreads = "threads";
const char* const kIntoFirstPath = "into_first_path";
const char* const kCheckSpace = "check_space";
const char* const kPathsFlag = "cf_paths";

// The database is opened to convert it, to begin a new MANIFEST, and once more
// if blob files without values have left the version only then.
constexpr int kMaxOpens = 3;

void PrintLine(const std::string& line) {
  fprintf(stdout, "%s\n", line.c_str());
  fflush(stdout);
}

// Parses a flag that is true, false, or present.
Status ParseBoolFlag(const std::map<std::string, std::string>& options,
                     const std::vector<std::string>& flags, const char* name,
                     bool* value) {
  const auto found = options.find(name);
  if (found != options.end()) {
    if (found->second != "true" && found->second != "false") {
      return Status::InvalidArgument(
          std::string("--") + name,
          "is neither true nor false: " + found->second);
    }
    *value = found->second == "true";
  } else if (std::find(flags.begin(), flags.end(), name) != flags.end()) {
    *value = true;
  }
  return Status::OK();
}

Status StoppedByLdb() { return Status::Aborted("the error is in exec_state_"); }

}  // namespace

DisableFeaturesCommand::DisableFeaturesCommand(
    const std::vector<std::string>& params,
    const std::map<std::string, std::string>& options,
    const std::vector<std::string>& flags)
    // Flags that change options of RocksDB's are not among these: the options
    // are the database's own.
    : LDBCommand(options, flags, /*is_read_only=*/false,
                 {ARG_ENV_URI, ARG_FS_URI, ARG_DB, ARG_TRY_LOAD_OPTIONS,
                  ARG_IGNORE_UNKNOWN_OPTIONS, ARG_USE_TXN, ARG_TXN_WRITE_POLICY,
                  kPathsFlag, kFeaturesFlag, kFeaturesDryRun, kDisableThreads,
                  kIntoFirstPath, kCheckSpace}) {
  const Status s = params.empty()
                       ? Parse(options, flags)
                       : Status::InvalidArgument(
                             Name() + " takes no parameters, only flags");
  if (!s.ok()) {
    exec_state_ = LDBCommandExecuteResult::Failed(s.ToString());
  }
}

DisableFeaturesCommand::~DisableFeaturesCommand() { Unlock(); }

Status DisableFeaturesCommand::Parse(
    const std::map<std::string, std::string>& options,
    const std::vector<std::string>& flags) {
  if (!try_load_options_) {
    return Status::InvalidArgument(
        Name(),
        "needs --try_load_options: with other options than the database's own, "
        "its data would be changed");
  }
  Status s;
  const auto features = options.find(kFeaturesFlag);
  if (features != options.end() || IsFlagPresent(flags, kFeaturesFlag)) {
    s = FeatureSet::Parse(features == options.end() ? "" : features->second,
                          &features_);
    if (!s.ok()) {
      return Status::InvalidArgument(std::string("--") + kFeaturesFlag,
                                     s.ToString());
    }
  }
  s = ParseBoolFlag(options, flags, kFeaturesDryRun, &is_dry_run_);
  if (s.ok()) {
    s = ParseBoolFlag(options, flags, kIntoFirstPath, &into_first_path_);
  }
  if (s.ok()) {
    s = ParseBoolFlag(options, flags, kCheckSpace, &checks_space_);
  }
  if (s.ok() && into_first_path_ && !features_.Has(FeatureSet::kLayouts)) {
    s = Status::InvalidArgument(std::string("--") + kIntoFirstPath,
                                "needs the feature layouts");
  }
  if (s.ok() &&
      ParseIntOption(options, kDisableThreads, num_threads_, exec_state_) &&
      num_threads_ < 1) {
    s = Status::InvalidArgument(std::string("--") + kDisableThreads,
                                "must be at least 1");
  }
  return s;
}

void DisableFeaturesCommand::Help(std::string& ret) {
  ret.append("  ");
  ret.append(Name());
  ret.append(std::string(" [--") + kFeaturesFlag +
             "=<list of map,deltas,layouts,wal_buffer,merged_values,"
             "write_groups>] [--" +
             kFeaturesDryRun + "] [--" + kDisableThreads +
             "=<int,e.g.:4>] [--" + kIntoFirstPath + "] [--" + kCheckSpace +
             "=false] [--cf_paths=<path>,...] : Takes what RocksDB does not "
             "have out of the database (with --try_load_options)\n");
}

FileSystem* DisableFeaturesCommand::fs() const {
  return options_.env->GetFileSystem().get();
}

const ColumnFamilyDescriptor* DisableFeaturesCommand::FindFamily(
    const std::string& name) const {
  const auto found =
      std::find_if(column_families_.begin(), column_families_.end(),
                   [&](const ColumnFamilyDescriptor& family) {
                     return family.name == name;
                   });
  return found == column_families_.end() ? nullptr : &*found;
}

const std::vector<DbPath>& DisableFeaturesCommand::PathsOf(
    const ColumnFamilyOptions& options) const {
  return options.cf_paths.empty() ? options_.db_paths : options.cf_paths;
}

std::string DisableFeaturesCommand::WalDir() const {
  return options_.wal_dir.empty() ? db_path_ : options_.wal_dir;
}

std::vector<std::string> DisableFeaturesCommand::Directories() const {
  std::vector<std::string> directories = {db_path_, WalDir()};
  for (const ColumnFamilyDescriptor& family : column_families_) {
    for (const DbPath& path : PathsOf(family.options)) {
      directories.push_back(path.path);
    }
  }
  return directories;
}

uint64_t DisableFeaturesCommand::WalBytes() const {
  std::vector<FileAttributes> files;
  // Without the sizes the check of the space only demands less.
  fs()->GetChildrenFileAttributes(WalDir(), IOOptions(), &files, nullptr)
      .PermitUncheckedError();
  uint64_t bytes = 0;
  for (const FileAttributes& file : files) {
    uint64_t number = 0;
    FileType type = kInfoLogFile;
    if (ParseFileName(file.name, &number, &type) && type == kWalFile) {
      bytes += file.size_bytes;
    }
  }
  return bytes;
}

Status DisableFeaturesCommand::Lock() {
  Status s = fs()->FileExists(CurrentFileName(db_path_), IOOptions(), nullptr);
  if (s.IsNotFound() || s.IsPathNotFound()) {
    return Status::NotFound(db_path_, "is no database: it has no CURRENT file");
  }
  if (s.ok()) {
    s = fs()->LockFile(LockFileName(db_path_), IOOptions(), &lock_, nullptr);
  }
  if (!s.ok()) {
    lock_ = nullptr;
    s = AppendMessage(
        s, ". ",
        db_path_ + " must be writable, and the database must not be open");
  }
  return s;
}

void DisableFeaturesCommand::Unlock() {
  if (lock_ != nullptr) {
    fs()->UnlockFile(lock_, IOOptions(), nullptr).PermitUncheckedError();
    lock_ = nullptr;
  }
}

void DisableFeaturesCommand::PrepareOptions() {
  LDBCommand::PrepareOptions();
  if (exec_state_.IsFailed()) {
    return;
  }
  // OPTIONS files do not have them, and the base class takes the directory of
  // the database.
  if (!db_paths_.empty()) {
    options_.db_paths = db_paths_;
  }
  if (plan_ == nullptr) {
    // Only once: column_families_ stays, and the options of a session may have
    // no layout although those of the database have one.
    given_paths_.Give(LdbPathFlags(option_map_), &column_families_,
                      &exec_state_);
    return;
  }
  features_.ResetOptions(static_cast<StrataDBOptions*>(&options_));
  // The old MANIFEST has records of what is to go.
  options_.reuse_manifest_on_open = false;
  // It would drop what depends on missing files, and nothing would remain. WALs
  // have no records then (CheckWals()), so nothing else changes.
  options_.best_efforts_recovery = false;
  options_.listeners.push_back(progress_);
  options_.listeners.push_back(options_file_.mark());
  for (ColumnFamilyDescriptor& family : column_families_) {
    plan_->SetSessionOptions(PathsOf(family.options), &family.options);
    if (is_db_txn_) {
      // TransactionDB::Open() turns automatic compactions off and on again,
      // which writes a second OPTIONS file: that of the program is deleted.
      family.options.disable_auto_compactions = true;
    }
  }
}

Status DisableFeaturesCommand::FindNeededRecord(bool* found) const {
  if (manifest_.records().Has(FeatureSet::kWalBuffer)) {
    // The end of a WAL may be in the buffer alone.
    *found = true;
    return Status::OK();
  }
  return FindWalRecord(fs(), WalDir(),
                       manifest_.MinWalNumber(is_db_txn_ || options_.allow_2pc),
                       found);
}

Status DisableFeaturesCommand::CheckWals() const {
  // The options are as they were loaded.
  const bool is_best_efforts = options_.best_efforts_recovery;
  if (!is_best_efforts && !given_paths_.NeedsEmptyWals()) {
    return Status::OK();
  }
  bool has_records = false;
  const Status s = FindNeededRecord(&has_records);
  if (s.ok() && is_best_efforts && has_records) {
    return Status::InvalidArgument(
        db_path_,
        "has best_efforts_recovery, so its program reads no WALs when it opens "
        "it, but WALs in " +
            WalDir() +
            " have records that the command would bring back. Put or delete a "
            "key with the program, flush all column families (DB::Flush()), "
            "and close the database: the MANIFEST needs none of these WALs "
            "then");
  }
  return s.ok() ? given_paths_.CheckWals(has_records) : s;
}

std::string DisableFeaturesCommand::MissingFile(std::string* family) const {
  for (const ManifestFeatures::Family& in_manifest : manifest_.families()) {
    const ColumnFamilyDescriptor* const known = FindFamily(in_manifest.name);
    // An open database may have created it after Survey().
    const std::string missing = known == nullptr
                                    ? ""
                                    : FirstMissingFile(fs(), in_manifest.files,
                                                       PathsOf(known->options));
    if (!missing.empty()) {
      *family = in_manifest.name;
      return missing;
    }
  }
  return "";
}

Status DisableFeaturesCommand::CheckFiles() {
  std::string family;
  std::string missing = MissingFile(&family);
  // Without the LOCK a job of an open database may have deleted the file.
  bool is_certain = !is_dry_run_;
  while (!missing.empty() && !is_certain) {
    const Status s = ReadManifest();
    if (!s.ok()) {
      return s;
    }
    const std::string now = MissingFile(&family);
    is_certain = now == missing;
    missing = now;
  }
  if (missing.empty()) {
    return Status::OK();
  }
  return Status::NotFound(
      missing,
      "is a file of column family \"" + family +
          "\" in the MANIFEST, but is not there. If the column family has "
          "cf_paths or db_paths that the OPTIONS file of the database does "
          "not have, pass them as --" +
          kPathsFlag + "; see \"What it needs\" in docs/compatibility.md");
}

void DisableFeaturesCommand::TakeForeignPaths() {
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    for (ColumnFamilyDescriptor& descriptor : column_families_) {
      if (descriptor.name == family.name &&
          given_paths_.Take(fs(), family.files, options_.db_paths,
                            &descriptor)) {
        PrintLine("[" + family.name +
                  "] The column family is not on the paths in --" + kPathsFlag +
                  ": its files are in " + PathsOf(descriptor.options)[0].path);
      }
    }
  }
}

Status DisableFeaturesCommand::LoadOptions() {
  const Status s = options_file_.Load(options_.env, db_path_);
  if (!s.ok()) {
    return Status::InvalidArgument(
        db_path_ +
            " has no readable OPTIONS file, so the comparators, merge "
            "operators and directories of its column families are unknown. "
            "Open and close the database with its program first",
        s.ToString());
  }
  PrepareOptions();
  return exec_state_.IsFailed() ? StoppedByLdb() : CheckWalDir();
}

Status DisableFeaturesCommand::CheckWalDir() const {
  DBOptions stored;
  std::vector<ColumnFamilyDescriptor> families;
  const Status s = LoadOptionsFromFile(config_options_,
                                       db_path_ + "/" + options_file_.name(),
                                       &stored, &families);
  if (!s.ok() || stored.wal_dir.empty() || stored.wal_dir == WalDir()) {
    return s;
  }
  return Status::InvalidArgument(
      stored.wal_dir,
      "is the wal_dir in " + options_file_.name() + " of " + db_path_ +
          ", but it does not exist here: writes that only its WALs have would "
          "be lost. Run the command where the directory exists, or create it "
          "here and put its WALs (*.log) into it. If the program has another "
          "wal_dir now, open and close the database with the program first, "
          "which writes it to the OPTIONS file");
}

Status DisableFeaturesCommand::UseComparators() {
  for (ColumnFamilyDescriptor& family : column_families_) {
    const auto found = manifest_.comparators().find(family.name);
    if (found == manifest_.comparators().end() ||
        (family.options.comparator != nullptr &&
         found->second == family.options.comparator->Name())) {
      continue;
    }
    const Comparator* known = options_.comparator;
    if (found->second != known->Name() &&
        (!Comparator::CreateFromString(config_options_, found->second, &known)
              .ok() ||
         known == nullptr || found->second != known->Name())) {
      return Status::InvalidArgument(
          "[" + family.name + "]",
          "has the comparator \"" + found->second +
              "\", which this program does not have. Run the command in a "
              "program that registers it with the ObjectRegistry, or passes it "
              "to LDBTool::Run() as comparator of the options");
    }
    family.options.comparator = known;
  }
  return Status::OK();
}

Status DisableFeaturesCommand::ReadManifest() {
  Status s = manifest_.ReadRecords(fs(), db_path_);
  if (s.ok()) {
    s = UseComparators();
  }
  if (s.ok()) {
    s = manifest_.ReadFamilies(fs(), [this](const std::string& name) {
      const ColumnFamilyDescriptor* const family = FindFamily(name);
      return family == nullptr ? nullptr : family->options.comparator;
    });
  }
  return s;
}

Status DisableFeaturesCommand::Survey() {
  Status s = ReadManifest();
  if (s.ok()) {
    TakeForeignPaths();
  }
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    if (s.ok() && FindFamily(family.name) == nullptr) {
      s = Status::InvalidArgument("[" + family.name + "]",
                                  "is not in the OPTIONS file of the database");
    }
  }
  traces_ = FeatureTraces();
  return s.ok() ? traces_.AddFiles(fs(), Directories()) : s;
}

Status DisableFeaturesCommand::MakePlan() {
  PathMoveMark mark;
  Status s = mark.Read(fs(), db_path_);
  if (!s.ok() && !s.IsNotFound() && !s.IsCorruption()) {
    return s;
  }
  if (!s.IsNotFound()) {
    return Status::InvalidArgument(
        db_path_ + "/" + PathMoveMark::Name(),
        "says that a move of paths is unfinished. Finish it first, by the same "
        "`ldb move_paths`");
  }
  auto plan = std::make_unique<FeaturePlan>(features_, into_first_path_);
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    const ColumnFamilyOptions& options = FindFamily(family.name)->options;
    s = plan->Add(family, options, PathsOf(options));
    if (!s.ok()) {
      return s;
    }
  }
  plan_ = std::move(plan);
  return Status::OK();
}

Status DisableFeaturesCommand::CheckConfigChanges(
    Options options, std::vector<ColumnFamilyDescriptor> families) const {
  const Options given = options;
  const std::vector<ColumnFamilyDescriptor> given_families = families;
  const Status s = ConfigureTool(db_path_, &options, &families);
  std::string changed =
      features_.DifferentOption(static_cast<const StrataDBOptions&>(given),
                                static_cast<const StrataDBOptions&>(options));
  for (size_t i = 0; i < given_families.size() && i < families.size(); ++i) {
    if (changed.empty()) {
      changed = features_.DifferentOption(
          static_cast<const StrataColumnFamilyOptions&>(
              given_families[i].options),
          static_cast<const StrataColumnFamilyOptions&>(families[i].options));
    }
  }
  return !s.ok() || changed.empty()
             ? s
             : Status::InvalidArgument(
                   std::string("The file of ") + OptionsConfig::kVariable,
                   "sets " + changed + ", an option of " +
                       FeatureSet::OfOption(changed).ToString() +
                       ". Take the line out of the file first: the next open "
                       "would use the option again");
}

Status DisableFeaturesCommand::CheckConfig() const {
  Options options = options_;
  features_.ResetOptions(static_cast<StrataDBOptions*>(&options));
  std::vector<ColumnFamilyDescriptor> session = column_families_;
  std::vector<ColumnFamilyDescriptor> reset = column_families_;
  for (size_t i = 0; i < session.size(); ++i) {
    plan_->SetSessionOptions(PathsOf(session[i].options), &session[i].options);
    features_.ResetOptions(
        static_cast<StrataColumnFamilyOptions*>(&reset[i].options));
  }
  // The open in step 2 has some options for layouts, which the file may not
  // change. The opens after the command must have none.
  const Status s = CheckConfigChanges(options, session);
  return s.ok() ? CheckConfigChanges(options, reset) : s;
}

OptionsWithoutFeatures DisableFeaturesCommand::NewOptions() const {
  return OptionsWithoutFeatures(options_file_.text(), features_);
}

LdbFeatureReport DisableFeaturesCommand::Report() const {
  return LdbFeatureReport(features_, manifest_, traces_, PrintLine);
}

bool DisableFeaturesCommand::NeedsOpen() const {
  FeatureSet found = manifest_.records();
  found.Add(traces_.Features());
  return plan_->HasWork() || features_.Intersects(found);
}

Status DisableFeaturesCommand::ConvertFamilies() {
  FeatureRemoval removal(db_.get(), features_,
                         static_cast<uint32_t>(num_threads_), PrintLine);
  for (const FeaturePlan::Family& family : plan_->families()) {
    if (family.work == FeaturePlan::Work::kNone) {
      continue;
    }
    // cf_handles_ has all families: they are from the OPTIONS file.
    const auto handle = cf_handles_.find(family.name);
    if (handle == cf_handles_.end()) {
      return Status::NotFound("column family", family.name);
    }
    PrintLine("[" + family.name + "] " +
              LdbFeatureReport::TextOfWork(family.work));
    progress_->Begin(family);
    const Status s =
        removal.Run(handle->second, family.work, family.target_path_id);
    if (!s.ok()) {
      return AppendMessage(s, ", in column family ", family.name);
    }
    PrintLine("[" + family.name + "] done");
  }
  return Status::OK();
}

Status DisableFeaturesCommand::Convert() {
  progress_ = std::make_shared<LdbFeatureProgress>(PrintLine);
  Status s;
  for (int i = 0; s.ok() && i < kMaxOpens; ++i) {
    OpenDB();
    if (exec_state_.IsFailed() || db_ == nullptr) {
      return StoppedByLdb();
    }
    s = options_file_.KeepAfterOpen();
    TEST_SYNC_POINT("DisableFeaturesCommand::Convert:Opened");
    if (s.ok() && i == 0) {
      s = ConvertFamilies();
    }
    TEST_SYNC_POINT("DisableFeaturesCommand::Convert:BeforeClose");
    CloseDB();
    cf_handles_.clear();
    if (s.ok()) {
      s = manifest_.ReadRecords(fs(), db_path_);
    }
    if (s.ok() && !features_.Intersects(manifest_.records())) {
      break;
    }
    TEST_SYNC_POINT("DisableFeaturesCommand::Convert:BeforeOpen");
  }
  return s;
}

Status DisableFeaturesCommand::ReplaceOptionsFile() {
  const OptionsWithoutFeatures options = NewOptions();
  // Before the paths are gone from the OPTIONS file.
  Report().Advice(fs(), db_path_, options, [this](const std::string& name) {
    const ColumnFamilyOptions& of_family = FindFamily(name)->options;
    return LdbFeatureReport::FamilyPlace{of_family, PathsOf(of_family)};
  });
  TEST_SYNC_POINT("DisableFeaturesCommand::ReplaceOptionsFile:BeforeReplace");
  return options_file_.Replace(options.Text([this](const std::string& name) {
    const ColumnFamilyDescriptor* const family = FindFamily(name);
    return family != nullptr &&
           OptionsWithoutFeatures::CanNamePaths(family->options);
  }));
}

Status DisableFeaturesCommand::VerifyOptionsFile() {
  std::string file;
  std::string text;
  Status s = LdbOptionsFile::ReadNewest(options_.env, db_path_, &file, &text);
  if (s.ok()) {
    traces_.AddOptions(text);
    s = Report().Remains();
  }
  if (s.ok()) {
    PrintLine("Checked: the MANIFEST, " + std::to_string(traces_.num_tables()) +
              " SST files, " + file + ", and the files in the directories");
  }
  return s;
}

Status DisableFeaturesCommand::AddTables() {
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    const ColumnFamilyOptions& options = FindFamily(family.name)->options;
    std::vector<std::string> fnames;
    for (const ManifestFamily::File& file : family.files) {
      if (file.type == kTableFile) {
        fnames.push_back(MakeTableFileName(
            PathLayout::Directory(PathsOf(options), file.path_id),
            file.number));
      }
    }
    const Status s = traces_.AddTables(Options(options_, options), fnames);
    if (!s.ok()) {
      return AppendMessage(s, ", in column family ", family.name);
    }
  }
  return Status::OK();
}

Status DisableFeaturesCommand::VerifyData() {
  Status s = Survey();
  if (s.ok()) {
    s = AddTables();
  }
  if (s.ok() && traces_.num_missing_tables() > 0) {
    PrintLine("Not checked: " + std::to_string(traces_.num_missing_tables()) +
              " SST files are not in the directories that are known. With "
              "--cf_paths they are checked");
  }
  return s.ok() ? Report().Remains() : s;
}

Status DisableFeaturesCommand::Run() {
  // A dry run needs no directory that is writable. If the database is open, it
  // describes a moment.
  Status s = is_dry_run_ ? Status::OK() : Lock();
  if (s.ok()) {
    s = LoadOptions();
  }
  if (s.ok()) {
    s = Survey();
  }
  if (s.ok()) {
    Report().Findings(options_file_.text());
    s = MakePlan();
  }
  if (!s.ok()) {
    return s;
  }
  Report().Plan(fs(), *plan_, NewOptions().features(), NeedsOpen());
  s = CheckConfig();
  TEST_SYNC_POINT("DisableFeaturesCommand::Run:BeforeCheckFiles");
  if (s.ok() && NeedsOpen()) {
    s = CheckFiles();
  }
  if (s.ok() && NeedsOpen()) {
    s = CheckWals();
  }
  if (!s.ok()) {
    return s;
  }
  if (checks_space_) {
    s = plan_->CheckSpace(fs(), WalBytes());
    if (!s.ok()) {
      return AppendMessage(
          s, ". ",
          std::string("--") + kCheckSpace +
              "=false begins all the same. If the space is used up, nothing "
              "is lost, and the command can be run again");
    }
  }
  if (is_dry_run_) {
    PrintLine("Dry run: nothing was changed");
    return s;
  }
  if (NeedsOpen()) {
    Unlock();
    TEST_SYNC_POINT("DisableFeaturesCommand::Run:Unlocked");
    s = Convert();
    TEST_SYNC_POINT("DisableFeaturesCommand::Run:BeforeLock");
    if (s.ok()) {
      s = Lock();
    }
    if (s.ok()) {
      s = options_file_.CheckNewest();
    }
  }
  if (s.ok()) {
    s = VerifyData();
  }
  if (s.ok()) {
    s = ReplaceOptionsFile();
  }
  if (s.ok()) {
    s = VerifyOptionsFile();
  }
  if (s.ok()) {
    Report().End();
  }
  return s;
}

void DisableFeaturesCommand::DoCommand() {
  if (db_path_.empty()) {
    exec_state_ =
        LDBCommandExecuteResult::Failed(Name() + " needs --" + ARG_DB);
    return;
  }
  db_paths_ = options_.db_paths;
  const Status s = Run();
  Unlock();
  if (!exec_state_.IsFailed()) {
    exec_state_ = s.ok() ? LDBCommandExecuteResult::Succeed("")
                         : LDBCommandExecuteResult::Failed(s.ToString());
  }
}

}  // namespace ROCKSDB_NAMESPACE
