//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_disable_features.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <utility>

#include "db/path_layout/directory_names.h"
#include "db/path_layout/missing_file.h"
#include "db/path_layout/path_layout.h"
#include "db/path_layout/path_move_mark.h"
#include "db/strata/feature_removal.h"
#include "db/strata/wal_records.h"
#include "file/filename.h"
#include "options/strata/options_file_copy.h"
#include "options/strata_config/configured_options.h"
#include "options/strata_config/options_config.h"
#include "port/port.h"
#include "rocksdb/comparator.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/listener.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/utilities/options_util.h"
#include "rocksdb/version.h"
#include "test_util/sync_point.h"
#include "tools/strata/ldb_path_flags.h"
#include "util/mutexlock.h"
#include "util/strata/path_list.h"
#include "utilities/strata/field_update.h"

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

std::string NameOfRocksDB() {
  return "RocksDB " + std::to_string(ROCKSDB_MAJOR) + "." +
         std::to_string(ROCKSDB_MINOR) + "." + std::to_string(ROCKSDB_PATCH);
}

void PrintLine(const std::string& line) {
  fprintf(stdout, "%s\n", line.c_str());
  fflush(stdout);
}

std::string CountedFiles(const ManifestFeatures::Count& count,
                         const std::string& kind) {
  return std::to_string(count.files) + " " + kind +
         (count.files == 1 ? " file (" : " files (") +
         std::to_string(count.bytes) + " bytes)";
}

// Calls fn(feature, text) for each of the features that the files of the family
// need.
void DescribeFamily(
    const ManifestFeatures::Family& family,
    const std::function<void(FeatureSet::Feature, const std::string&)>& fn) {
  if (family.features.Has(FeatureSet::kMap)) {
    std::string text =
        CountedFiles(family.mapped_tables, "SST") + " with names of values, " +
        CountedFiles(family.mapped_blobs, "blob") + " of format version 2";
    if (family.hot_blobs.files > 0) {
      text += ", of which " + CountedFiles(family.hot_blobs, "blob") +
              " with hot values";
    }
    fn(FeatureSet::kMap, text);
  }
  if (family.features.Has(FeatureSet::kDeltas)) {
    fn(FeatureSet::kDeltas,
       CountedFiles(family.deltas, "delta") + " with merge operands");
  }
  if (family.features.Has(FeatureSet::kLayouts)) {
    fn(FeatureSet::kLayouts, CountedFiles(family.distant_blobs, "blob") +
                                 " on other paths than the first one");
  }
}

const char* TextOfWork(FeaturePlan::Work work) {
  switch (work) {
    case FeaturePlan::Work::kNone:
      break;
    case FeaturePlan::Work::kMove:
      return "files are moved to the paths on which RocksDB reads them";
    case FeaturePlan::Work::kCompact:
      return "operands in delta files become values, SST files are compacted";
    case FeaturePlan::Work::kRewrite:
      return "all SST files are rewritten, with the values that they name";
  }
  return "nothing";
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

// Returns the column families with an option in the text that names paths, as
// PathLayout::NamesPaths().
std::set<std::string> FamiliesThatNamePaths(const std::string& text) {
  std::set<std::string> families;
  for (const OptionsFileCopy::OwnOption& option :
       OptionsFileCopy::OwnOptions(text)) {
    const std::string& name = option.name;
    const std::string& value = option.value;
    if (((name == "level_sst_path_ids" || name == "level_blob_path_ids" ||
          name == "path_prices") &&
         !value.empty() && value != "{}") ||
        (name == "delta_sorted_path_id" && value != "-1") ||
        (name == "blob_hot_bytes" && value != "0")) {
      families.insert(option.family);
    }
  }
  return families;
}

Status StoppedByLdb() { return Status::Aborted("the error is in exec_state_"); }

}  // namespace

// Prints how much was written, each time that it is another tenth of what is
// expected. Thread-safe.
class DisableFeaturesCommand::Progress : public EventListener {
 public:
  void Begin(const FeaturePlan::Family& family) {
    MutexLock lock(&mutex_);
    family_ = family.name;
    expected_ = family.bytes;
    written_ = 0;
    next_ = 0;
  }

  void OnTableFileCreated(const TableFileCreationInfo& info) override {
    if (info.status.ok()) {
      Count(info.cf_name, info.file_size);
    }
  }
  void OnBlobFileCreated(const BlobFileCreationInfo& info) override {
    if (info.status.ok()) {
      Count(info.cf_name, info.total_blob_bytes);
    }
  }

 private:
  static constexpr uint64_t kParts = 10;

  void Count(const std::string& family, uint64_t bytes) {
    MutexLock lock(&mutex_);
    if (family != family_) {
      return;
    }
    written_ += bytes;
    if (written_ >= next_) {
      next_ = written_ + expected_ / kParts;
      PrintLine("[" + family + "] " + std::to_string(written_) +
                " bytes written, of about " + std::to_string(expected_));
    }
  }

  port::Mutex mutex_;
  // The members below are guarded by mutex_.
  std::string family_;
  uint64_t expected_ = 0;
  uint64_t written_ = 0;
  uint64_t next_ = 0;
};

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
    s = Status::CopyAppendMessage(
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
  // It would drop what depends on missing files, and nothing would remain.
  options_.best_efforts_recovery = false;
  options_.listeners.push_back(progress_);
  for (ColumnFamilyDescriptor& family : column_families_) {
    plan_->SetSessionOptions(PathsOf(family.options), &family.options);
  }
}

Status DisableFeaturesCommand::CheckWals() const {
  // The end of a WAL may be in the buffer alone.
  bool has_records = manifest_.records().Has(FeatureSet::kWalBuffer);
  const Status s =
      has_records ? Status::OK() : FindWalRecord(fs(), WalDir(), &has_records);
  return s.ok() ? given_paths_.CheckWals(has_records) : s;
}

Status DisableFeaturesCommand::CheckFiles() const {
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    const std::string missing = FirstMissingFile(
        fs(), family.files, PathsOf(FindFamily(family.name)->options));
    if (!missing.empty()) {
      return Status::NotFound(
          missing,
          "is a file of column family \"" + family.name +
              "\" in the MANIFEST, but is not there. If the column family has "
              "cf_paths or db_paths that the OPTIONS file of the database does "
              "not have, pass them as --" +
              kPathsFlag + "; see \"What it needs\" in docs/compatibility.md");
    }
  }
  return Status::OK();
}

void DisableFeaturesCommand::TakeForeignPaths() {
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    for (ColumnFamilyDescriptor& descriptor : column_families_) {
      if (descriptor.name == family.name &&
          given_paths_.Take(fs(), family.files, options_.db_paths,
                            &descriptor)) {
        PrintLine("[" + family.name +
                  "] The column family is not on the paths "
                  "in --" +
                  kPathsFlag + ": its files are in " +
                  PathsOf(descriptor.options)[0].path);
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

Status DisableFeaturesCommand::Survey() {
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

bool DisableFeaturesCommand::NeedsOpen() const {
  FeatureSet found = manifest_.records();
  found.Add(traces_.Features());
  return plan_->HasWork() || features_.Intersects(found);
}

void DisableFeaturesCommand::ReportFindings() const {
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    DescribeFamily(
        family, [&](FeatureSet::Feature feature, const std::string& text) {
          PrintLine("[" + family.name + "] " + FeatureSet(feature).ToString() +
                    ": " + text +
                    (features_.Has(feature) ? "" : "; it is to stay"));
        });
  }
  for (const OptionsFileCopy::OwnOption& option :
       OptionsFileCopy::OwnOptions(options_file_.text())) {
    const FeatureSet features = FeatureSet::OfOption(option.name);
    PrintLine((option.family.empty() ? "" : "[" + option.family + "] ") +
              features.ToString() + ": option " + option.name + "=" +
              option.value +
              (features_.Intersects(features) ? "" : "; it is to stay"));
  }
  if (!traces_.traces().empty()) {
    PrintLine("Files that RocksDB does not know or cannot read: " +
              std::to_string(traces_.traces().size()) + ", for example " +
              traces_.traces().front().text);
  }
  if (!manifest_.records().IsEmpty()) {
    PrintLine("The MANIFEST has records that RocksDB refuses, of " +
              manifest_.records().ToString());
  }
}

void DisableFeaturesCommand::ReportPlan() const {
  for (const FeaturePlan::Family& family : plan_->families()) {
    if (family.work == FeaturePlan::Work::kNone) {
      continue;
    }
    PrintLine("[" + family.name + "] to do: " + TextOfWork(family.work) +
              ", about " + std::to_string(family.bytes) + " bytes");
    for (const auto& [directory, bytes] : family.needs) {
      uint64_t free = 0;
      const bool is_known =
          fs()->GetFreeSpace(directory, IOOptions(), &free, nullptr).ok();
      PrintLine("[" + family.name + "] needs up to " + std::to_string(bytes) +
                " bytes in " + directory + " meanwhile, free there are " +
                (is_known ? std::to_string(free) : "an unknown number"));
    }
  }
  if (NeedsOpen()) {
    PrintLine(
        "To do: open and close the database, which begins a new MANIFEST");
  }
  FeatureSet of_options;
  for (const OptionsFileCopy::OwnOption& option :
       OptionsFileCopy::OwnOptions(options_file_.text())) {
    of_options.Add(FeatureSet::OfOption(option.name));
  }
  if (features_.Intersects(of_options)) {
    PrintLine("To do: take the options of " +
              features_.Intersection(of_options).ToString() +
              " out of the OPTIONS file");
  } else if (!NeedsOpen()) {
    PrintLine("Nothing to do");
  }
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
    PrintLine("[" + family.name + "] " + TextOfWork(family.work));
    progress_->Begin(family);
    const Status s =
        removal.Run(handle->second, family.work, family.target_path_id);
    if (!s.ok()) {
      return Status::CopyAppendMessage(s, ", in column family ", family.name);
    }
    PrintLine("[" + family.name + "] done");
  }
  return Status::OK();
}

Status DisableFeaturesCommand::Convert() {
  progress_ = std::make_shared<Progress>();
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

std::set<std::string> DisableFeaturesCommand::FamiliesThatWouldLosePaths()
    const {
  const auto drops = [this](const std::string& name) {
    return features_.Intersects(FeatureSet::OfOption(name));
  };
  const std::string text =
      OptionsFileCopy::WithoutOwnOptions(options_file_.text(), drops);
  const std::set<std::string> before =
      FamiliesThatNamePaths(options_file_.text());
  const std::set<std::string> after = FamiliesThatNamePaths(text);
  std::set<std::string> families;
  for (const OptionsFileCopy::OwnOption& option :
       OptionsFileCopy::OwnOptions(text)) {
    if (option.name == "cf_paths" && !option.value.empty() &&
        before.count(option.family) > 0 && after.count(option.family) == 0) {
      families.insert(option.family);
    }
  }
  return families;
}

bool DisableFeaturesCommand::CanNamePaths(const std::string& family) const {
  const ColumnFamilyDescriptor* const found = FindFamily(family);
  return found != nullptr &&
         found->options.compaction_style != kCompactionStyleFIFO;
}

std::string DisableFeaturesCommand::NewOptionsText() const {
  std::set<std::string> families;
  for (const std::string& family : FamiliesThatWouldLosePaths()) {
    if (CanNamePaths(family)) {
      families.insert(family);
    }
  }
  // The place of blob files without a layout, as in step 2.
  return OptionsFileCopy::WithOwnOption(
      OptionsFileCopy::WithoutOwnOptions(options_file_.text(),
                                         [this](const std::string& name) {
                                           return features_.Intersects(
                                               FeatureSet::OfOption(name));
                                         }),
      families, "level_blob_path_ids", "0");
}

Status DisableFeaturesCommand::VerifyOptionsFile() {
  std::string file;
  std::string text;
  Status s = LdbOptionsFile::ReadNewest(options_.env, db_path_, &file, &text);
  if (s.ok()) {
    traces_.AddOptions(text);
    s = ReportRemains();
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
      return Status::CopyAppendMessage(s, ", in column family ", family.name);
    }
  }
  return Status::OK();
}

std::vector<std::string> DisableFeaturesCommand::Remains() const {
  std::vector<std::string> lines;
  const FeatureSet records = features_.Intersection(manifest_.records());
  if (!records.IsEmpty()) {
    lines.push_back("the MANIFEST: records of " + records.ToString());
  }
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    DescribeFamily(
        family, [&](FeatureSet::Feature feature, const std::string& text) {
          if (features_.Has(feature)) {
            lines.push_back("[" + family.name + "] " +
                            FeatureSet(feature).ToString() + ": " + text +
                            (feature == FeatureSet::kDeltas
                                 ? ", which cannot be merged; LOG says why"
                                 : ""));
          }
        });
  }
  for (const FeatureTraces::Trace& trace : traces_.traces()) {
    if (features_.Intersects(trace.features)) {
      lines.push_back(trace.text);
    }
  }
  return lines;
}

Status DisableFeaturesCommand::ReportRemains() const {
  const std::vector<std::string> remains = Remains();
  for (const std::string& line : remains) {
    PrintLine("remains: " + line);
  }
  return remains.empty()
             ? Status::OK()
             : Status::Incomplete(
                   std::to_string(remains.size()) +
                   (remains.size() == 1 ? " thing remains" : " things remain") +
                   ". Run the command again; LOG of the database says what "
                   "its jobs have done");
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
  return s.ok() ? ReportRemains() : s;
}

void DisableFeaturesCommand::ReportAdvice() const {
  const std::set<std::string> losing = FamiliesThatWouldLosePaths();
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    const std::string name = "[" + family.name + "] ";
    const ColumnFamilyOptions& options = FindFamily(family.name)->options;
    std::vector<DbPath> paths = PathsOf(options);
    const bool loses_paths =
        features_.Has(FeatureSet::kLayouts) || losing.count(family.name) > 0;
    if (features_.Has(FeatureSet::kLayouts) &&
        family.distant_tables.files + family.distant_deltas.files == 0) {
      paths.resize(1);
    }
    if (loses_paths &&
        (paths.size() > 1 || !IsSameDirectory(fs(), paths[0].path, db_path_))) {
      PrintLine(
          name +
          (features_.Has(FeatureSet::kLayouts) || !CanNamePaths(family.name)
               ? "The OPTIONS file does not keep the paths of the column "
                 "family. "
               : "RocksDB does not read the paths of the column family from "
                 "the OPTIONS file. ") +
          "Pass them to DB::Open() from now on, in RocksDB and in Strata, as "
          "its cf_paths, or as db_paths if all column families have them: "
          "cf_paths=" +
          PathListToString(paths));
      if (paths.size() > 1) {
        PrintLine(name +
                  "To have all files on the first path, run the command "
                  "with --" +
                  kIntoFirstPath + " and --" + kPathsFlag +
                  "; `ldb move_paths` moves a path to another directory");
      }
    }
    if (features_.Has(FeatureSet::kMap) && family.blobs.files > 0 &&
        !options.enable_blob_garbage_collection) {
      PrintLine(name +
                "enable_blob_garbage_collection is off: RocksDB collects no "
                "garbage of blob files before it is on");
    }
    if (options.merge_operator != nullptr &&
        options.merge_operator->IsInstanceOf(
            FieldUpdateOperator::kClassName())) {
      PrintLine(name + "RocksDB does not have the merge operator " +
                FieldUpdateOperator::kClassName() +
                ": the program has to bring it");
    }
  }
}

void DisableFeaturesCommand::ReportEnd() const {
  FeatureSet left = manifest_.records();
  left.Add(traces_.Features());
  PrintLine(left.IsEmpty() ? "OK: " + NameOfRocksDB() + " opens the database"
                           : "OK: nothing is left of " + features_.ToString() +
                                 ". The database still has " + left.ToString());
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
    ReportFindings();
    s = MakePlan();
  }
  if (!s.ok()) {
    return s;
  }
  ReportPlan();
  s = CheckConfig();
  if (s.ok() && NeedsOpen()) {
    s = CheckFiles();
    if (s.ok()) {
      s = CheckWals();
    }
  }
  if (!s.ok()) {
    return s;
  }
  if (checks_space_) {
    s = plan_->CheckSpace(fs(), WalBytes());
    if (!s.ok()) {
      return Status::CopyAppendMessage(
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
    // Before the paths are gone from the OPTIONS file.
    ReportAdvice();
    TEST_SYNC_POINT("DisableFeaturesCommand::Run:BeforeReplace");
    s = options_file_.Replace(NewOptionsText());
  }
  if (s.ok()) {
    s = VerifyOptionsFile();
  }
  if (s.ok()) {
    ReportEnd();
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
