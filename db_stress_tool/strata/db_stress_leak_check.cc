//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/strata/db_stress_leak_check.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "db/blob/blob_log_format.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db_stress_tool/db_stress_common.h"
#include "db_stress_tool/db_stress_test_base.h"
#include "db_stress_tool/strata/db_stress_path_faults.h"
#include "file/filename.h"
#include "file/line_file_reader.h"
#include "logging/logging.h"
#include "rocksdb/convenience.h"
#include "util/gflags_compat.h"

DECLARE_bool(enable_blob_address_map);

DEFINE_int32(verify_no_leaked_files, 1,
             "When the DB has been opened and at the end of the run: look for "
             "table, blob and delta files on disk that no column family has. "
             "0: no; "
             "1: they are a failure unless faults were injected; 2: a failure "
             "in any case; 3: so are those that only a scan of the directories "
             "removes. Not done with --read_only, "
             "--preserve_unverified_changes, --best_efforts_recovery and "
             "--remote_compaction_worker_threads");

namespace ROCKSDB_NAMESPACE {

namespace {

// The time that the DB has to delete files before the directories are scanned,
// between two scans, and in total.
constexpr uint64_t kSettleMicros = 3 * 1000 * 1000;
constexpr uint64_t kScanMicros = 1000 * 1000;
constexpr uint64_t kGiveUpMicros = 30 * 1000 * 1000;
constexpr uint64_t kPollMicros = 50 * 1000;

constexpr size_t kMaxDescribed = 10;
constexpr size_t kMaxLogLines = 20;

// Returns a path in the form in which paths are compared.
std::string PlainPath(const std::string& path) {
  std::string result = NormalizePath(path);
  while (result.size() > 1 && result.back() == '/') {
    result.pop_back();
  }
  return result;
}

// Returns true if a line of LOG has this file number, with or without leading
// zeros.
bool Mentions(const std::string& line, const std::string& number) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t at = line.find(number); at != std::string::npos;
       at = line.find(number, at + 1)) {
    const size_t after = at + number.size();
    size_t before = at;
    while (before > 0 && line[before - 1] == '0') {
      --before;
    }
    if ((after == line.size() || !is_digit(line[after])) &&
        (before == 0 || !is_digit(line[before - 1]))) {
      return true;
    }
  }
  return false;
}

bool FaultsAreInjected() {
  // --sync_fault_injection is not included, since it makes no operation fail.
  return StressPathFaults::AreOn() || FLAGS_read_fault_one_in > 0 ||
         FLAGS_write_fault_one_in > 0 || FLAGS_metadata_read_fault_one_in > 0 ||
         FLAGS_metadata_write_fault_one_in > 0 ||
         FLAGS_open_read_fault_one_in > 0 ||
         FLAGS_open_write_fault_one_in > 0 ||
         FLAGS_open_metadata_read_fault_one_in > 0 ||
         FLAGS_open_metadata_write_fault_one_in > 0;
}

// Suspends fault injection for files that have a type, in all threads, during
// its lifetime.
class FaultsSuspended {
 public:
  explicit FaultsSuspended(FaultInjectionTestFS* fs) : fs_(fs) {
    if (fs_ != nullptr) {
      fs_->DisableAllThreadLocalErrorInjection();
      fs_->SetFileTypesExcludedFromFaultInjection(
          {kWalFile, kDBLockFile, kTableFile, kDescriptorFile, kCurrentFile,
           kTempFile, kInfoLogFile, kMetaDatabase, kIdentityFile, kOptionsFile,
           kBlobFile, kCompactionProgressFile, kDeltaFile});
    }
  }
  ~FaultsSuspended() {
    if (fs_ != nullptr) {
      // Restores the value that the constructor of StressTest sets.
      fs_->SetFileTypesExcludedFromFaultInjection({kInfoLogFile});
    }
  }
  FaultsSuspended(const FaultsSuspended&) = delete;
  FaultsSuspended& operator=(const FaultsSuspended&) = delete;

 private:
  FaultInjectionTestFS* const fs_;
};

// Recovers the DB from an error, after which it is unknown which files the
// MANIFEST has.
Status Recover(DB* db) {
  SystemClock* const clock = SystemClock::Default().get();
  const uint64_t start = clock->NowMicros();
  for (;;) {
    Status s = db->Resume();
    if (s.ok() || clock->NowMicros() - start > kGiveUpMicros) {
      return s;
    }
    clock->SleepForMicroseconds(static_cast<int>(kPollMicros));
  }
}

}  // namespace

LeakCheck::LeakCheck(DB* db, const std::vector<ColumnFamilyHandle*>& handles,
                     const std::shared_ptr<FileSystem>& fs,
                     bool with_blob_files)
    // A StackableDB does not forward GetAllColumnFamilyMetaData().
    : db_(db->GetRootDB()),
      handles_(handles),
      fs_(fs),
      with_blob_files_(with_blob_files) {
  directories_.insert(PlainPath(db_->GetName()));
  for (const DbPath& path : db_->GetDBOptions().db_paths) {
    directories_.insert(PlainPath(path.path));
  }
  for (ColumnFamilyHandle* handle : handles_) {
    for (const DbPath& path : db_->GetOptions(handle).cf_paths) {
      directories_.insert(PlainPath(path.path));
    }
  }
}

LeakCheck::Known LeakCheck::FilesOfVersions() const {
  std::vector<ColumnFamilyMetaData> families;
  db_->GetAllColumnFamilyMetaData(&families);
  Known result;
  for (const ColumnFamilyMetaData& family : families) {
    for (const LevelMetaData& level : family.levels) {
      for (const SstFileMetaData& file : level.files) {
        result.emplace(kTableFile, file.file_number, PlainPath(file.directory));
      }
    }
    for (const BlobMetaData& file : family.blob_files) {
      result.emplace(kBlobFile, file.blob_file_number,
                     PlainPath(file.blob_file_path));
    }
    for (const DeltaMetaData& file : family.delta_files) {
      result.emplace(kDeltaFile, file.file_number, PlainPath(file.directory));
    }
  }
  return result;
}

Status LeakCheck::FindUnknown(std::vector<File>* unknown) {
  std::vector<File> found;
  for (const std::string& directory : directories_) {
    IOOptions io_options;
    io_options.do_not_recurse = true;
    std::vector<std::string> names;
    const Status s =
        fs_->GetChildren(directory, io_options, &names, /*dbg=*/nullptr);
    if (s.IsPathNotFound() || s.IsNotFound()) {
      continue;
    }
    if (!s.ok()) {
      return s;
    }
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type = kTempFile;
      // Files in the trash, and files to be ingested, do not have such names.
      if (ParseFileName(name, &number, &type) &&
          (type == kTableFile || type == kDeltaFile ||
           (type == kBlobFile && with_blob_files_))) {
        File& file = found.emplace_back();
        file.directory = directory;
        file.name = name;
        file.number = number;
        file.type = type;
      }
    }
  }

  // The Versions are read last, so that files that are added meanwhile are
  // known.
  const Known known = FilesOfVersions();
  unknown->clear();
  unfinished_.clear();
  for (File& file : found) {
    if (known.count({file.type, file.number, file.directory}) > 0) {
      continue;
    }
    const Status s = fs_->GetFileSize(file.Path(), IOOptions(), &file.size,
                                      /*dbg=*/nullptr);
    if (s.IsPathNotFound() || s.IsNotFound()) {
      continue;
    }
    if (!s.ok()) {
      return s;
    }
    if (IsKeptUnfinished(file)) {
      unfinished_.push_back(std::move(file));
    } else {
      unknown->push_back(std::move(file));
    }
  }
  return Status::OK();
}

Status LeakCheck::Run() {
  leaked_.clear();
  left_to_scan_.clear();
  Status s = db_->PauseBackgroundWork();
  if (s.ok()) {
    s = Wait();
    const Status t = db_->ContinueBackgroundWork();
    if (s.ok()) {
      s = t;
    }
  }
  return s;
}

Status LeakCheck::Wait() {
  SystemClock* const clock = SystemClock::Default().get();
  const uint64_t start = clock->NowMicros();
  uint64_t next_scan = start + kSettleMicros;
  bool has_scanned = false;
  std::vector<File> unknown;
  for (;;) {
    Status s = FindUnknown(&unknown);
    if (!s.ok() || unknown.empty()) {
      return s;
    }
    const uint64_t now = clock->NowMicros();
    if (now >= next_scan) {
      if (has_scanned && now - start >= kGiveUpMicros) {
        leaked_ = std::move(unknown);
        return Status::OK();
      }
      if (!has_scanned) {
        left_to_scan_ = unknown;
        has_scanned = true;
      }
      s = ScanDirectories();
      if (!s.ok()) {
        return s;
      }
      next_scan = now + kScanMicros;
    }
    clock->SleepForMicroseconds(static_cast<int>(kPollMicros));
  }
}

Status LeakCheck::ScanDirectories() {
  // EnableFileDeletions() scans for unknown files.
  Status s = db_->DisableFileDeletions();
  if (s.ok()) {
    s = db_->EnableFileDeletions();
  }
  return s;
}

std::string LeakCheck::Read(const File& file, uint64_t offset, size_t n) const {
  std::unique_ptr<FSRandomAccessFile> reader;
  std::string buffer(n, '\0');
  Slice result;
  if (!fs_->NewRandomAccessFile(file.Path(), FileOptions(), &reader,
                                /*dbg=*/nullptr)
           .ok() ||
      !reader
           ->Read(offset, n, IOOptions(), &result, buffer.data(),
                  /*dbg=*/nullptr)
           .ok()) {
    return "";
  }
  return result.ToString();
}

bool LeakCheck::IsKeptUnfinished(const File& file) const {
  // The same condition as in the scan of DBImpl.
  if (file.type != kBlobFile) {
    return false;
  }
  if (file.size < BlobLogHeader::kSize + BlobLogFooter::kSize) {
    return !FLAGS_enable_blob_address_map;
  }
  BlobLogFooter footer;
  if (footer
          .DecodeFrom(Read(file, file.size - BlobLogFooter::kSize,
                           BlobLogFooter::kSize))
          .ok()) {
    return false;
  }
  return !IsBlobFileV2(Read(file, 0, BlobLogHeader::kSize));
}

void LeakCheck::AppendLogLines(uint64_t number, std::string* result) const {
  const std::string log_dir = db_->GetDBOptions().db_log_dir;
  const std::string& directory = log_dir.empty() ? db_->GetName() : log_dir;
  const InfoLogPrefix prefix(!log_dir.empty(), db_->GetName());
  std::vector<std::string> names;
  fs_->GetChildren(directory, IOOptions(), &names, /*dbg=*/nullptr)
      .PermitUncheckedError();
  // Ordered by time; the file without a time is the newest.
  std::map<uint64_t, std::string> logs;
  for (const std::string& name : names) {
    uint64_t time = 0;
    FileType type = kTempFile;
    if (ParseFileName(name, &time, prefix.prefix, &type) &&
        type == kInfoLogFile) {
      logs[time == 0 ? UINT64_MAX : time] = name;
    }
  }
  const std::string number_string = std::to_string(number);
  std::deque<std::string> lines;
  for (const auto& [time, name] : logs) {
    std::unique_ptr<LineFileReader> reader;
    if (!LineFileReader::Create(fs_, directory + "/" + name, FileOptions(),
                                &reader, /*dbg=*/nullptr,
                                /*rate_limiter=*/nullptr)
             .ok()) {
      continue;
    }
    std::string line;
    while (reader->ReadLine(&line, Env::IO_TOTAL)) {
      if (Mentions(line, number_string)) {
        lines.push_back(line);
        if (lines.size() > kMaxLogLines) {
          lines.pop_front();
        }
      }
    }
    reader->GetStatus().PermitUncheckedError();
  }
  for (const std::string& line : lines) {
    result->append("    " + line + "\n");
  }
}

std::string LeakCheck::Describe(const File& file) const {
  std::string result =
      "  " + file.Path() + ", " + std::to_string(file.size) + " bytes";
  if (file.type == kBlobFile) {
    const std::string start = Read(file, 0, BlobLogHeader::kSize);
    result.append(IsBlobFileV2(start) ? ", of an address map" : "");
    result.append(", starts with " + Slice(start).ToString(/*hex=*/true));
  }
  result.append("; LOG:\n");
  AppendLogLines(file.number, &result);
  return result;
}

std::string LeakCheck::DescribeDb() const {
  std::string result;
  for (const char* property :
       {"rocksdb.num-live-versions", "rocksdb.num-snapshots",
        "rocksdb.is-file-deletions-enabled", "rocksdb.background-errors",
        "rocksdb.num-running-flushes", "rocksdb.num-running-compactions"}) {
    std::string value;
    if (db_->GetProperty(property, &value)) {
      result.append(std::string("  ") + property + ": " + value + "\n");
    }
  }
  for (ColumnFamilyHandle* handle : handles_) {
    std::string value;
    if (db_->GetProperty(handle, DB::Properties::kBlobAddressMap, &value)) {
      result.append("  address map of " + handle->GetName() + ":\n" + value +
                    "\n");
    }
    if (db_->GetProperty(handle, DB::Properties::kDeltaStore, &value)) {
      result.append("  delta store of " + handle->GetName() + ":\n" + value +
                    "\n");
    }
  }
  return result;
}

bool StressTest::VerifyNoLeakedFiles(SharedState* shared) {
  if (FLAGS_verify_no_leaked_files <= 0 || db_ == nullptr ||
      shared->HasVerificationFailedYet() ||
      // With the first flag there are no jobs; with the second no files are
      // deleted; with the third it is unspecified which files are left; with
      // the fourth other threads run jobs.
      FLAGS_read_only || FLAGS_preserve_unverified_changes ||
      FLAGS_best_efforts_recovery ||
      FLAGS_remote_compaction_worker_threads > 0) {
    return true;
  }
  const std::string label = FLAGS_num_dbs > 1 ? "[" + GetDbLabel() + "] " : "";
  const FaultsSuspended faults_suspended(db_fault_injection_fs_.get());
  const bool had_faults = FaultsAreInjected();
  Status s;
  if (had_faults) {
    s = Recover(db_);
  }
  std::vector<ColumnFamilyHandle*> handles = column_families_;
  if (handles.empty()) {
    handles.push_back(db_->DefaultColumnFamily());
  }
  LeakCheck check(db_, handles, GetDbEnv()->GetFileSystem(),
                  /*with_blob_files=*/!FLAGS_enable_blob_direct_write);
  if (s.ok()) {
    s = check.Run();
  }
  if (!s.ok()) {
    fprintf(stdout, "%sLeak check: not possible: %s\n", label.c_str(),
            s.ToString().c_str());
    return true;
  }

  for (const LeakCheck::File& file : check.unfinished()) {
    fprintf(stdout, "%sLeak check: unfinished, kept: %s, %" PRIu64 " bytes\n",
            label.c_str(), file.Path().c_str(), file.size);
  }
  for (const LeakCheck::File& file : check.left_to_scan()) {
    fprintf(stdout,
            "%sLeak check: left to a scan of the directories: %s, %" PRIu64
            " bytes\n",
            label.c_str(), file.Path().c_str(), file.size);
  }
  const std::vector<LeakCheck::File>& files =
      FLAGS_verify_no_leaked_files > 2 ? check.left_to_scan() : check.leaked();
  if (files.empty()) {
    fprintf(stdout, "%sLeak check passed\n", label.c_str());
    return true;
  }
  const bool is_failure = !had_faults || FLAGS_verify_no_leaked_files > 1;
  // db_crashtest.py treats any output to stderr as a failure.
  FILE* const out = is_failure ? stderr : stdout;
  fprintf(out, "%sLeak check: %zu files that no column family has%s:\n",
          label.c_str(), files.size(),
          is_failure ? "" : "; not counted, as faults were injected");
  for (size_t i = 0; i < std::min(files.size(), kMaxDescribed); ++i) {
    fprintf(out, "%s", check.Describe(files[i]).c_str());
    ROCKS_LOG_ERROR(db_->GetDBOptions().info_log, "Leaked: %s",
                    files[i].Path().c_str());
  }
  fprintf(out, "%s", check.DescribeDb().c_str());
  if (is_failure) {
    VerificationAbort(shared, "files are left that no column family has");
  }
  return !is_failure;
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
