//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_mover.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <utility>

#include "db/path_layout/directory_names.h"
#include "db/path_layout/manifest_file_places.h"
#include "db/path_layout/manifest_files.h"
#include "db/path_layout/manifest_records.h"
#include "file/filename.h"
#include "file/strata/checked_file_copy.h"
#include "file/strata/durable_files.h"
#include "options/strata/options_file_copy.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/file_system.h"
#include "rocksdb/rate_limiter.h"
#include "rocksdb/system_clock.h"
#include "util/strata/path_list.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kMicrosPerSecond = 1000 * 1000;

std::string FilesAndBytes(uint64_t files, uint64_t bytes) {
  return std::to_string(files) + (files == 1 ? " file (" : " files (") +
         std::to_string(bytes) + " bytes)";
}

}  // namespace

PathMover::PathMover(FileSystem* fs, SystemClock* clock,
                     const std::string& dbname, MoveOptions options)
    : fs_(fs), clock_(clock), dbname_(dbname), options_(std::move(options)) {
  for (PathMoveRequest& request : options_.requests) {
    // An OPTIONS file keeps the name, and must not depend on the current
    // directory. An empty name is refused later.
    if (!request.to.empty()) {
      request.to = CleanDirectoryName(fs_, request.to);
    }
  }
  if (options_.bytes_per_second > 0) {
    limiter_.reset(
        NewGenericRateLimiter(static_cast<int64_t>(options_.bytes_per_second)));
  }
}

PathMover::~PathMover() {
  if (lock_ != nullptr) {
    fs_->UnlockFile(lock_, IOOptions(), nullptr).PermitUncheckedError();
  }
}

Status PathMover::Lock() {
  assert(lock_ == nullptr);
  Status s = fs_->FileExists(CurrentFileName(dbname_), IOOptions(), nullptr);
  if (s.IsNotFound() || s.IsPathNotFound()) {
    return Status::NotFound(dbname_, "is no database: it has no CURRENT file");
  }
  if (s.ok()) {
    s = fs_->LockFile(LockFileName(dbname_), IOOptions(), &lock_, nullptr);
    if (!s.ok()) {
      lock_ = nullptr;
      s = AppendMessage(
          s, ". ", "The database must not be open while its files are moved");
    }
  }
  return s;
}

Status PathMover::ReadMark() {
  PathMoveMark mark;
  Status s = mark.Read(fs_, dbname_);
  if (s.IsNotFound()) {
    return Status::OK();
  }
  if (!s.ok()) {
    return s;
  }
  has_mark_ = true;
  for (const PathMoveRequest& request : options_.requests) {
    for (const PathMoveMark::Move& move : mark.moves) {
      if (IsSameDirectory(fs_, move.request.from, request.from) &&
          IsSameDirectory(fs_, move.request.to, request.to)) {
        mark_.moves.push_back(move);
        mark_.moves.back().request = request;
        break;
      }
    }
  }
  if (mark_.moves.size() == mark.moves.size() &&
      mark_.moves.size() == options_.requests.size()) {
    return Status::OK();
  }
  std::string unfinished;
  for (const PathMoveMark::Move& move : mark.moves) {
    unfinished += (unfinished.empty() ? "" : ", ") + move.request.from +
                  " to " + move.request.to;
  }
  return Status::InvalidArgument(
      "Another move is unfinished: " + unfinished +
      ". Finish it first, with the same directories. While the old paths still "
      "have all files, it can also be given up: delete " +
      dbname_ + "/" + PathMoveMark::Name() +
      " and the files that it names in the destinations");
}

Status PathMover::ReadFamilies(
    const FamilyOf& family_of,
    std::vector<PathMovePlan::Family>* families) const {
  std::map<std::string, Family> opened;
  const auto find = [&](const std::string& name) -> const Family& {
    const auto found = opened.find(name);
    return found != opened.end()
               ? found->second
               : opened.emplace(name, family_of(name)).first->second;
  };
  std::string manifest;
  std::vector<ManifestFamily> needed;
  Status s = FindManifest(fs_, dbname_, &manifest);
  if (s.ok()) {
    s = ReadManifestFiles(
        fs_, manifest,
        [&](const std::string& name) { return find(name).comparator; },
        &needed);
  }
  // Without a comparator the files of a delta store are unknown, but each of
  // them is in a record.
  uint64_t size = 0;
  if (s.ok()) {
    s = FindEndOfManifest(fs_, manifest, &size);
  }
  ManifestColumnFamilies places;
  if (s.ok()) {
    s = ReadManifestFilePlaces(fs_, manifest, size, &places);
  }
  std::map<std::string, const ManifestColumnFamily*> place_of;
  for (const auto& [id, place] : places) {
    place_of[place.name] = &place;
  }
  for (ManifestFamily& in_manifest : needed) {
    PathMovePlan::Family& family = families->emplace_back();
    family.name = in_manifest.name;
    family.paths = find(in_manifest.name).paths;
    family.needed = std::move(in_manifest.files);
    std::set<uint64_t> numbers;
    for (const ManifestFamily::File& file : family.needed) {
      numbers.insert(file.number);
    }
    const auto place = place_of.find(family.name);
    if (place == place_of.end()) {
      continue;
    }
    for (const auto& [number, file] : place->second->files) {
      if (numbers.count(number) == 0) {
        family.others.push_back(
            {file.type, number, file.path_id, /*size=*/0, {}, {}});
      }
    }
  }
  return s;
}

Status PathMover::MakePlan(const FamilyOf& family_of,
                           const std::string& wal_dir) {
  std::vector<PathMovePlan::Family> families;
  Status s = ReadFamilies(family_of, &families);
  if (!s.ok()) {
    return s;
  }
  plan_ = std::make_unique<PathMovePlan>(
      dbname_, wal_dir.empty() ? dbname_ : wal_dir,
      [this](const std::string& a, const std::string& b) {
        return IsSameDirectory(fs_, a, b);
      });
  return plan_->Make(options_.requests, families, /*resumes=*/has_mark_);
}

Status PathMover::ReadOptionsFile() {
  std::vector<std::string> children;
  Status s = fs_->GetChildren(dbname_, IOOptions(), &children, nullptr);
  for (const std::string& child : children) {
    uint64_t number = 0;
    FileType type = kTempFile;
    if (ParseFileName(child, &number, &type) && type == kOptionsFile) {
      options_number_ = std::max(options_number_, number);
    }
  }
  if (!s.ok() || options_number_ == 0) {
    return s;
  }
  s = ReadFileToString(fs_, OptionsFileName(dbname_, options_number_),
                       &old_options_);
  if (s.ok()) {
    new_options_ = OptionsFileCopy::ReplacePaths(
        old_options_,
        [this](const std::string& family) -> const std::vector<DbPath>* {
          const auto found = plan_->new_paths().find(family);
          return found == plan_->new_paths().end() ? nullptr : &found->second;
        },
        &stored_);
  }
  return s;
}

bool PathMover::IsComplete() const {
  return !has_mark_ && plan_->new_paths().empty();
}

bool PathMover::KeepsOldPaths() const {
  if (is_deleting_) {
    return false;
  }
  for (size_t i = 0; i < survey_.moves().size(); ++i) {
    const PathMoveSurvey::Move& move = survey_.moves()[i];
    const std::vector<PathMovePlan::User>& users = move.planned->users;
    // All families get their new paths at once. If one of them has the source,
    // the others have had the destination before the move, with files of their
    // own.
    const bool has_source =
        std::any_of(users.begin(), users.end(),
                    [](const auto& user) { return !user.was_replaced; });
    for (const PathMoveSurvey::File& file : move.files) {
      if (!file.is_in_source &&
          (!has_source || !file.user->was_replaced || IsMarked(i, file.name))) {
        return false;
      }
    }
  }
  return true;
}

bool PathMover::IsMarked(size_t index, const std::string& name) const {
  return has_mark_ && mark_.moves[index].files.count(name) > 0;
}

Status PathMover::TryLink(const PathMoveSurvey::Move& move, size_t index) {
  const auto pending =
      std::find_if(move.files.begin(), move.files.end(),
                   [](const auto& file) { return file.IsPending(); });
  if (pending == move.files.end()) {
    return Status::OK();
  }
  const PathMoveRequest& request = move.planned->request;
  const std::string name =
      TempFileName(request.to, pending->planned->file.number);
  const IOStatus s = fs_->LinkFile(request.from + "/" + pending->name, name,
                                   IOOptions(), nullptr);
  can_link_[index] = s.ok();
  // A file system in a network may have made the link although it returns an
  // error.
  const Status deleted = DeleteIfExists(name);
  // Without the mark the link would be taken for a file of another database.
  keeps_mark_ = keeps_mark_ || !deleted.ok();
  return deleted;
}

Status PathMover::PrepareDestination(const PathMoveSurvey::Move& move,
                                     size_t index) {
  const std::string& to = move.planned->request.to;
  // Another move can have the same destination.
  const bool is_new =
      !move.has_destination &&
      std::find(created_directories_.begin(), created_directories_.end(), to) ==
          created_directories_.end();
  if (is_new) {
    const IOStatus s = fs_->CreateDir(to, IOOptions(), nullptr);
    if (!s.ok()) {
      return s;
    }
    created_directories_.push_back(to);
  }
  if (!plan_->IsOwn(to)) {
    // An earlier attempt may have created the directory. If not, the one that
    // contains it need not be readable.
    const Status s = SyncDirectory(fs_, ParentDirectory(to));
    if (!s.ok() && (is_new || has_mark_)) {
      return s;
    }
    s.PermitUncheckedError();
  }
  for (const std::string& temporary : move.temporaries) {
    const Status s = DeleteIfExists(temporary);
    if (!s.ok()) {
      return s;
    }
  }
  return TryLink(move, index);
}

Status PathMover::CheckSpace() const {
  std::map<std::string, uint64_t> needed;
  for (size_t i = 0; i < can_link_.size(); ++i) {
    const PathMoveSurvey::Move& move = survey_.moves()[i];
    if (!can_link_[i]) {
      needed[move.planned->request.to] += move.PendingBytes();
    }
  }
  // Directories with the same number of free bytes are taken for one device.
  struct Device {
    std::string directories;
    uint64_t needed = 0;
  };
  std::map<uint64_t, Device> devices;
  for (const auto& [directory, bytes] : needed) {
    uint64_t free = 0;
    // Not all file systems know it.
    if (bytes > 0 &&
        fs_->GetFreeSpace(directory, IOOptions(), &free, nullptr).ok()) {
      Device& device = devices[free];
      device.directories +=
          (device.directories.empty() ? "" : " and ") + directory;
      device.needed += bytes;
    }
  }
  for (const auto& [free, device] : devices) {
    if (free < device.needed) {
      return Status::NoSpace("The files to be copied to " + device.directories +
                             " need " + std::to_string(device.needed) +
                             " bytes, and only " + std::to_string(free) +
                             " bytes are free there");
    }
  }
  return Status::OK();
}

Status PathMover::Prepare() {
  can_link_.assign(survey_.moves().size(), false);
  for (size_t i = 0; i < survey_.moves().size(); ++i) {
    const PathMoveSurvey::Move& move = survey_.moves()[i];
    // There is nothing to prepare for a move that is complete.
    if (!move.planned->users.empty()) {
      const Status s = PrepareDestination(move, i);
      if (!s.ok()) {
        return s;
      }
    }
    pending_files_ += move.NumPending();
    pending_bytes_ += move.PendingBytes();
  }
  return CheckSpace();
}

bool PathMover::UndoPreparation() {
  if (has_mark_ || keeps_mark_) {
    return false;
  }
  for (const std::string& directory : created_directories_) {
    fs_->DeleteDir(directory, IOOptions(), nullptr).PermitUncheckedError();
  }
  return PathMoveMark::Delete(fs_, dbname_).ok();
}

Status PathMover::WriteMark() {
  PathMoveMark mark;
  for (size_t i = 0; i < survey_.moves().size(); ++i) {
    const PathMoveSurvey::Move& move = survey_.moves()[i];
    PathMoveMark::Move& marked = mark.moves.emplace_back();
    if (has_mark_) {
      marked.files = mark_.moves[i].files;
    }
    marked.request = move.planned->request;
    for (const PathMoveSurvey::File& file : move.files) {
      // A file that is only in the destination was not put there by this move,
      // unless the old mark says so: its path may have been the destination
      // before.
      if (file.is_in_source) {
        marked.files[file.name] = file.size;
      }
    }
  }
  if (has_mark_ && mark.Encode() == mark_.Encode()) {
    // A crash may have come before this sync.
    return SyncDirectory(fs_, dbname_);
  }
  return mark.Write(fs_, dbname_);
}

Status PathMover::CompareTwins(const PathMoveSurvey::Move& move,
                               const PathMoveSurvey::File& file) const {
  const std::string from = move.planned->request.from + "/" + file.name;
  const std::string to = move.planned->request.to + "/" + file.name;
  bool is_same = false;
  const IOStatus s =
      fs_->AreFilesSame(from, to, IOOptions(), &is_same, nullptr);
  return !options_.verifies || (s.ok() && is_same) ? Status::OK()
                                                   : copy_->Compare(from, to);
}

Status PathMover::TransferFile(const PathMoveSurvey::Move& move,
                               PathMoveSurvey::File* file, bool can_link) {
  const PathMoveRequest& request = move.planned->request;
  const std::string from = request.from + "/" + file->name;
  const std::string to = request.to + "/" + file->name;
  const uint64_t bytes_before = done_bytes_;
  bool is_linked = false;
  if (can_link) {
    // The device may refuse a link for another reason, such as their number.
    is_linked = fs_->LinkFile(from, to, IOOptions(), nullptr).ok();
  }
  if (!is_linked) {
    const ManifestFamily::File& planned = file->planned->file;
    const CheckedFileCopy::Expected expected = {file->size, planned.checksum,
                                                planned.checksum_func_name};
    const std::string temporary = TempFileName(request.to, planned.number);
    // A copy overwrites a file with this name. Another name of the source,
    // which it could be, must not lead to it.
    Status s = DeleteIfExists(temporary);
    if (s.ok()) {
      s = copy_->Copy(from, temporary, expected, [this](uint64_t bytes) {
        done_bytes_ += bytes;
        ReportProgress();
      });
    }
    if (s.ok()) {
      s = fs_->RenameFile(temporary, to, IOOptions(), nullptr);
      if (!s.ok()) {
        fs_->DeleteFile(temporary, IOOptions(), nullptr).PermitUncheckedError();
      }
    }
    if (!s.ok()) {
      return s;
    }
  }
  file->is_in_destination = true;
  done_bytes_ = bytes_before + file->size;
  ++done_files_;
  ++(is_linked ? summary_.linked_files : summary_.copied_files);
  summary_.bytes += file->size;
  ReportProgress();
  return Status::OK();
}

Status PathMover::Transfer(PathMoveSurvey::Move* move, bool can_link) {
  if (move->planned->users.empty() && move->files.empty()) {
    return Status::OK();
  }
  if (move->NumPending() > 0) {
    Report(std::string(can_link ? "Link " : "Copy ") + TextOf(*move));
  }
  for (PathMoveSurvey::File& file : move->files) {
    Status s;
    if (file.IsPending()) {
      s = TransferFile(*move, &file, can_link);
    } else if (file.is_in_source) {
      s = CompareTwins(*move, file);
    }
    if (!s.ok()) {
      return s;
    }
  }
  return SyncDirectory(fs_, move->planned->request.to);
}

Status PathMover::WriteOptionsFile() {
  if (new_options_ == old_options_) {
    // A crash may have come before this sync.
    return SyncDirectory(fs_, dbname_);
  }
  return ReplaceFile(fs_, dbname_,
                     TempOptionsFileName("", options_number_).substr(1),
                     OptionsFileName(options_number_), new_options_);
}

Status PathMover::DeleteIfExists(const std::string& fname) const {
  const Status s = fs_->DeleteFile(fname, IOOptions(), nullptr);
  return s.IsNotFound() || s.IsPathNotFound() ? Status::OK() : s;
}

Status PathMover::DeleteOld(const PathMoveSurvey::Move& move) {
  const PathMoveRequest& request = move.planned->request;
  std::vector<std::string> names = move.stale;
  for (const PathMoveSurvey::File& file : move.files) {
    assert(file.is_in_destination);
    if (file.is_in_source) {
      names.push_back(request.from + "/" + file.name);
    }
  }
  for (const std::string& name : names) {
    const Status s = DeleteIfExists(name);
    if (!s.ok()) {
      return s;
    }
    ++summary_.deleted_files;
  }
  return move.has_source ? SyncDirectory(fs_, request.from) : Status::OK();
}

Status PathMover::Execute() {
  Status s;
  for (size_t i = 0; s.ok() && i < survey_.moves().size(); ++i) {
    s = Transfer(&survey_.moves()[i], can_link_[i]);
  }
  if (s.ok()) {
    s = WriteOptionsFile();
  }
  if (!s.ok()) {
    return s;
  }
  is_deleting_ = true;
  for (const PathMoveSurvey::Move& move : survey_.moves()) {
    s = DeleteOld(move);
    if (!s.ok()) {
      return s;
    }
  }
  return PathMoveMark::Delete(fs_, dbname_);
}

std::string PathMover::TextOf(const PathMoveSurvey::Move& move) {
  // A database can have thousands of column families with the same paths.
  constexpr size_t kMaxUsers = 8;
  const std::vector<PathMovePlan::User>& users = move.planned->users;
  std::string text = FilesAndBytes(move.NumPending(), move.PendingBytes());
  for (size_t i = 0; i < users.size() && i < kMaxUsers; ++i) {
    text += (i == 0 ? " of " : ", ") + PathMovePlan::TextOf(users[i]);
  }
  if (users.size() > kMaxUsers) {
    text += " and " + std::to_string(users.size() - kMaxUsers) + " more";
  }
  return text + " from " + move.planned->request.from + " to " +
         move.planned->request.to;
}

void PathMover::ReportPlan() const {
  for (const PathMoveSurvey::Move& move : survey_.moves()) {
    if (move.planned->users.empty()) {
      continue;
    }
    Report("To be moved: " + TextOf(move));
    // Bytes by path, and by type.
    std::map<std::pair<const PathMovePlan::User*, FileType>,
             std::pair<uint64_t, uint64_t>>
        counts;
    for (const PathMoveSurvey::File& file : move.files) {
      if (file.IsPending()) {
        auto& [files, bytes] = counts[{file.user, file.planned->file.type}];
        ++files;
        bytes += file.size;
      }
    }
    for (const auto& [key, count] : counts) {
      const char* const type = key.second == kBlobFile    ? "blob"
                               : key.second == kDeltaFile ? "delta"
                                                          : "SST";
      Report("  " + PathMovePlan::TextOf(*key.first) + ", " + type + ": " +
             FilesAndBytes(count.first, count.second));
    }
    uint64_t free = 0;
    if (move.has_destination &&
        fs_->GetFreeSpace(move.planned->request.to, IOOptions(), &free, nullptr)
            .ok()) {
      Report("  Free in " + move.planned->request.to + ": " +
             std::to_string(free) + " bytes. On another device " +
             std::to_string(move.PendingBytes()) + " bytes are needed");
    }
  }
}

void PathMover::ReportProgress() {
  const uint64_t now = clock_->NowMicros();
  if (now < last_report_micros_ +
                options_.seconds_between_reports * kMicrosPerSecond) {
    return;
  }
  last_report_micros_ = now;
  Report(std::to_string(done_files_) + " of " + std::to_string(pending_files_) +
         " files, " + std::to_string(done_bytes_) + " of " +
         std::to_string(pending_bytes_) + " bytes");
}

void PathMover::ReportEnd(uint64_t start_micros) const {
  for (const auto& [family, paths] : plan_->new_paths()) {
    if (stored_.count(family) == 0) {
      Report("The OPTIONS file does not keep the paths of column family " +
             family + ". Pass them to DB::Open from now on: cf_paths=" +
             PathListToString(paths));
    }
  }
  for (const PathMoveSurvey::Move& move : survey_.moves()) {
    if (move.num_unknown > 0) {
      Report(std::to_string(move.num_unknown) +
             " SST, blob or delta files that the MANIFEST does not name stay "
             "in " +
             move.planned->request.from);
    }
  }
  if (copy_->num_unchecked() > 0) {
    Report("The MANIFEST has checksums of " +
           std::to_string(copy_->num_unchecked()) +
           " copied files that were not compared, because their function is "
           "unknown: " +
           copy_->unknown_function());
  }
  char seconds[32];
  snprintf(seconds, sizeof(seconds), "%.1f",
           static_cast<double>(clock_->NowMicros() - start_micros) /
               kMicrosPerSecond);
  const uint64_t files = summary_.linked_files + summary_.copied_files;
  Report("Moved " + FilesAndBytes(files, summary_.bytes) + " in " + seconds +
         " seconds: linked " + std::to_string(summary_.linked_files) +
         ", copied " + std::to_string(summary_.copied_files) + ". Deleted " +
         std::to_string(summary_.deleted_files) + " old files");
}

Status PathMover::Run(const FamilyOf& family_of, const std::string& wal_dir,
                      std::shared_ptr<FileChecksumGenFactory> checksums) {
  assert(lock_ != nullptr);
  copy_ = std::make_unique<CheckedFileCopy>(fs_, std::move(checksums),
                                            limiter_.get(), options_.verifies);
  const uint64_t start_micros = clock_->NowMicros();
  last_report_micros_ = start_micros;
  Status s = ReadMark();
  if (s.ok()) {
    s = MakePlan(family_of, wal_dir);
  }
  if (s.ok()) {
    s = survey_.Make(fs_, *plan_, mark_);
  }
  if (s.ok()) {
    s = ReadOptionsFile();
  }
  if (!s.ok()) {
    return s;
  }
  for (const PathMoveSurvey::Move& move : survey_.moves()) {
    if (move.planned->users.empty() && move.files.empty()) {
      const PathMoveRequest& request = move.planned->request;
      Report("Nothing to move from " + request.from + " to " + request.to +
             ": the source is no path, and the destination is one");
    }
  }
  for (const std::string& family : plan_->staying()) {
    Report("The files of column family " + family +
           " stay in the directory of the database: no paths are given for it");
  }
  if (IsComplete()) {
    return s;
  }
  if (has_mark_) {
    Report("An unfinished move goes on");
  }
  if (options_.is_dry_run) {
    ReportPlan();
    return s;
  }
  s = WriteMark();
  if (s.ok()) {
    s = Prepare();
    if (!s.ok() && UndoPreparation()) {
      return s;
    }
  }
  if (s.ok()) {
    s = Execute();
  }
  if (!s.ok()) {
    return AppendMessage(
        s, ". ",
        std::string("The move is unfinished: run the same command again") +
            (KeepsOldPaths() ? ". All files are still in the old paths" : ""));
  }
  ReportEnd(start_micros);
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
