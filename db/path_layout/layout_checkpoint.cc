//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/layout_checkpoint.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "db/path_layout/checkpoint_mark.h"
#include "db/path_layout/copy_into_directory.h"
#include "db/path_layout/directory_names.h"
#include "db/path_layout/manifest_copy.h"
#include "file/filename.h"
#include "logging/logging.h"
#include "options/strata/options_file_copy.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/metadata.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr std::string_view kTmp = ".tmp";

bool IsLayoutType(FileType type) {
  return type == kTableFile || type == kBlobFile || type == kDeltaFile;
}

std::string NameOf(const LiveFileStorageInfo& file) {
  return file.directory + "/" + file.relative_filename;
}

bool IsMissing(const Status& s) { return s.IsNotFound() || s.IsPathNotFound(); }

Status UsedByAnother(const std::string& directory, const Status& s) {
  return Status::Aborted(
      "Another checkpoint seems to use the same directory, " + directory,
      s.ok() ? std::string() : s.ToString());
}

}  // namespace

LayoutCheckpoint::LayoutCheckpoint(DB* db, const std::string& directory,
                                   const std::string& staging,
                                   const CopyLayout* layout)
    : db_(db),
      fs_(db->GetFileSystem()),
      logger_(db->GetDBOptions().info_log.get()),
      directory_(directory),
      plain_staging_(staging),
      base_(staging.substr(0, staging.size() - kTmp.size())),
      staging_(staging) {
  assert(staging.ends_with(kTmp));
  if (layout == nullptr) {
    return;
  }
  attempt_ = CheckpointStaging::NewAttempt();
  staging_ = CheckpointStaging::Name(base_, attempt_);
  plan_ = std::make_unique<CopyPlan>(*layout, directory, fs_);
  for (const std::string& other : plan_->other_directories()) {
    others_.emplace_back();
    others_.back().directory = other;
    others_.back().staging = CheckpointStaging::Name(other, attempt_);
  }
}

Status LayoutCheckpoint::Begin() {
  if (!has_layout()) {
    return DeleteLeftovers();
  }
  Status s = plan_->Validate();
  CopyPaths paths;
  std::vector<std::string> live;
  if (s.ok()) {
    uint64_t manifest_size = 0;
    s = db_->GetLiveFiles(live, &manifest_size, /*flush_memtable=*/false);
  }
  if (!s.ok()) {
    return s;
  }
  std::set<std::string> of_db = DirectoriesOfDB(paths);
  for (const std::string& name : live) {
    uint64_t number = 0;
    FileType type = kTempFile;
    std::string text;
    // Only an instance that cannot write can have an OPTIONS file that names
    // other directories. Prepare() reads the file once more.
    if (ParseFileName(name, &number, &type) && type == kOptionsFile &&
        ReadFileToString(fs_, db_->GetName() + "/" + name, &text).ok()) {
      std::set<std::string> in_options;
      s = OptionsFileCopy::AddPaths(text, &in_options);
      if (!s.ok()) {
        return s;
      }
      for (const std::string& directory : in_options) {
        of_db.insert(CleanDirectoryName(fs_, directory));
      }
    }
  }
  s = CheckDirectories(of_db);
  if (s.ok()) {
    s = DeleteLeftovers();
  }
  TEST_SYNC_POINT("LayoutCheckpoint::Begin:Done");
  return s;
}

std::set<std::string> LayoutCheckpoint::DirectoriesOfDB(
    const CopyPaths& paths) const {
  std::set<std::string> result;
  const auto add = [&](const std::string& directory) {
    if (!directory.empty()) {
      result.insert(CleanDirectoryName(fs_, directory));
    }
  };
  const DBOptions options = db_->GetDBOptions();
  add(db_->GetName());
  add(options.wal_dir);
  add(options.db_log_dir);
  for (const DbPath& path : options.db_paths) {
    add(path.path);
  }
  for (const std::string& directory : paths.directories()) {
    add(directory);
  }
  return result;
}

Status LayoutCheckpoint::CheckDirectories(
    const std::set<std::string>& of_db) const {
  // directory -> the directory of the checkpoint whose staging directory it is,
  // or itself
  std::vector<std::pair<std::string, std::string>> own;
  const auto add = [&](const std::string& directory,
                       const std::string& staging) {
    own.emplace_back(directory, directory);
    own.emplace_back(staging, directory);
  };
  // The names of RocksDB's staging directories: a checkpoint without a layout
  // empties such a directory, and so does this one with the main one's.
  add(CleanDirectoryName(fs_, directory_),
      CleanDirectoryName(fs_, plain_staging_));
  for (const Other& other : others_) {
    add(other.directory, other.directory + std::string(kTmp));
  }
  const auto refuse = [](const std::string& a, const std::string& b) {
    return Status::InvalidArgument(
        "Directories of a checkpoint, also with \".tmp\" behind, must not be "
        "inside one another or those of the database",
        a + " and " + b);
  };
  for (const auto& [directory, of] : own) {
    for (const auto& [other, of_other] : own) {
      if (of != of_other && DirectoriesOverlap(directory, other)) {
        return refuse(directory, other);
      }
    }
    for (const std::string& of_the_db : of_db) {
      if (DirectoriesOverlap(directory, of_the_db)) {
        return refuse(directory, of_the_db);
      }
    }
  }
  return Status::OK();
}

Status LayoutCheckpoint::FindMainLeftovers(
    std::vector<CheckpointStaging>* found,
    std::set<std::string>* attempts) const {
  const Status s = CheckpointStaging::Find(fs_, base_, found);
  std::erase_if(*found, [&](const CheckpointStaging& staging) {
    CheckpointMark mark;
    if (mark.Read(fs_, staging.name).ok() && mark.attempt == staging.attempt) {
      attempts->insert(staging.attempt);
      return false;
    }
    // The mark is there before any other file.
    return !staging.is_gone() &&
           !HasOnlyFilesOf(CheckpointMark(), staging.name);
  });
  // A checkpoint without a layout does not need to read the directory around
  // it. If that does not exist, CreateDir() has the better message.
  return IsMissing(s) || !has_layout() ? Status::OK() : s;
}

Status LayoutCheckpoint::FindLeftovers(
    const Other& other, std::vector<CheckpointStaging>* found) const {
  const Status s = CheckpointStaging::Find(fs_, other.directory, found);
  std::erase_if(*found, [&](const CheckpointStaging& staging) {
    CheckpointMark mark;
    // A crash can leave a mark that is not complete, but no file besides it.
    if (!mark.Read(fs_, staging.name).ok() || mark.attempt != staging.attempt) {
      mark.files.clear();
    }
    return !HasOnlyFilesOf(mark, staging.name);
  });
  return IsMissing(s) ? Status::OK() : s;
}

bool LayoutCheckpoint::HasOnlyFilesOf(const CheckpointMark& mark,
                                      const std::string& directory) const {
  std::vector<std::string> names;
  return fs_->GetChildren(directory, IOOptions(), &names, nullptr).ok() &&
         std::all_of(names.begin(), names.end(), [&](const std::string& name) {
           return name == CheckpointMark::Name() || mark.files.count(name) > 0;
         });
}

Status LayoutCheckpoint::DeleteLeftovers() const {
  // All are checked before the first one is deleted.
  std::vector<CheckpointStaging> mains;
  std::set<std::string> attempts;
  Status s = FindMainLeftovers(&mains, &attempts);
  std::vector<std::vector<CheckpointStaging>> stagings;
  for (const Other& other : others_) {
    stagings.emplace_back();
    if (s.ok()) {
      std::string attempt;
      s = CheckLeftover(other.directory, attempts, &attempt);
    }
    if (s.ok() || s.IsNotFound()) {
      s = FindLeftovers(other, &stagings.back());
    }
  }
  if (!s.ok()) {
    return s;
  }
  TEST_SYNC_POINT("LayoutCheckpoint::DeleteLeftovers:Checked");
  // As RocksDB does. Its staging directory has no mark.
  if (has_layout() &&
      fs_->FileExists(plain_staging_, IOOptions(), nullptr).ok()) {
    mains.emplace_back();
    mains.back().name = plain_staging_;
    mains.back().gone_name = CheckpointStaging::GoneName(base_, attempt_);
  }
  const auto failed = [](const std::string& directory, const Status& error) {
    return Status::Aborted(
        "Failed to delete what an earlier checkpoint has left in " + directory,
        error.ToString());
  };
  // An attempt whose main staging directory is taken away cannot be committed
  // any more. If the attempt has been committed since the check, its other
  // directories must stay.
  std::set<std::string> ended;
  for (const CheckpointStaging& main : mains) {
    bool is_taken = false;
    s = TakeAway(main, &is_taken);
    if (!s.ok()) {
      return failed(main.name, s);
    }
    if (is_taken && attempts.count(main.attempt) > 0) {
      ended.insert(main.attempt);
    }
  }
  for (size_t i = 0; i < others_.size(); ++i) {
    for (const CheckpointStaging& staging : stagings[i]) {
      bool is_taken = false;
      s = TakeAway(staging, &is_taken);
      if (s.ok() && is_taken) {
        s = DeleteDirectory(staging.gone_name);
      }
      if (!s.ok()) {
        return failed(staging.name, s);
      }
    }
    const std::string& directory = others_[i].directory;
    std::string attempt;
    s = CheckLeftover(directory, ended, &attempt);
    if (s.IsNotFound()) {
      continue;
    }
    if (!s.ok()) {
      return s;
    }
    s = attempt.empty() ? fs_->DeleteDir(directory, IOOptions(), nullptr)
                        : DeleteRenamed(directory, attempt);
    if (!s.ok()) {
      return failed(directory, s);
    }
  }
  // These are the last ones, since their marks say whose the others are.
  for (const CheckpointStaging& main : mains) {
    ReportForgotten(main.gone_name);
    s = DeleteDirectory(main.gone_name);
    if (!s.ok()) {
      return failed(main.name, s);
    }
  }
  return Status::OK();
}

Status LayoutCheckpoint::TakeAway(const CheckpointStaging& staging,
                                  bool* is_taken) const {
  *is_taken = true;
  if (staging.is_gone()) {
    return Status::OK();
  }
  const Status s =
      fs_->RenameFile(staging.name, staging.gone_name, IOOptions(), nullptr);
  if (IsMissing(s)) {
    *is_taken = false;
    return Status::OK();
  }
  return s;
}

Status LayoutCheckpoint::DeleteRenamed(const std::string& directory,
                                       const std::string& attempt) const {
  CheckpointMark mark;
  Status s = mark.Read(fs_, directory);
  if (!s.ok() || mark.attempt != attempt) {
    return UsedByAnother(directory, s);
  }
  TEST_SYNC_POINT("LayoutCheckpoint::DeleteRenamed:Checked");
  const std::string gone = CheckpointStaging::GoneName(directory, attempt);
  s = fs_->RenameFile(directory, gone, IOOptions(), nullptr);
  if (IsMissing(s)) {
    return Status::OK();
  }
  if (!s.ok()) {
    return s;
  }
  // All attempts rename to the same name, so this may be the directory of
  // another one that was renamed after the check.
  s = mark.Read(fs_, gone);
  if (!s.ok() || mark.attempt != attempt) {
    fs_->RenameFile(gone, directory, IOOptions(), nullptr)
        .PermitUncheckedError();
    return UsedByAnother(directory, s);
  }
  return DeleteDirectory(gone);
}

void LayoutCheckpoint::ReportForgotten(const std::string& name) const {
  CheckpointMark mark;
  if (!mark.Read(fs_, name).ok()) {
    return;
  }
  for (const std::string& directory : mark.directories) {
    for (const std::string& of_other :
         {directory, CheckpointStaging::Name(directory, mark.attempt),
          CheckpointStaging::GoneName(directory, mark.attempt)}) {
      CheckpointMark left;
      if (left.Read(fs_, of_other).ok() && left.attempt == mark.attempt) {
        ROCKS_LOG_WARN(logger_,
                       "Checkpoint: an attempt that did not end has left %s. "
                       "This one has other directories and leaves it alone: "
                       "delete it",
                       of_other.c_str());
      }
    }
  }
}

bool LayoutCheckpoint::HasEnded(const CheckpointMark& mark,
                                const std::string& directory) const {
  if (mark.directories.size() != 1) {
    return false;
  }
  const std::string& staging = *mark.directories.begin();
  const std::string suffix = CheckpointStaging::Name("", mark.attempt);
  if (!staging.ends_with(suffix)) {
    return false;
  }
  // As long as the staging directory has the same mark, the attempt may go on.
  // If the renamed directory has it, the checkpoint is complete, and a crash
  // has left the marks. That one loses its mark last, or in any order if the
  // checkpoint is opened.
  const std::string checkpoint =
      staging.substr(0, staging.size() - suffix.size());
  for (const std::string& name : {staging, checkpoint}) {
    CheckpointMark of_checkpoint;
    const Status s = of_checkpoint.Read(fs_, name);
    if (s.ok() ? of_checkpoint.attempt == mark.attempt
               : !s.IsNotFound() && !s.IsPathNotFound()) {
      return false;
    }
  }
  return !NamesPath(checkpoint, directory);
}

bool LayoutCheckpoint::NamesPath(const std::string& name,
                                 const std::string& directory) const {
  std::vector<std::string> children;
  fs_->GetChildren(name, IOOptions(), &children, nullptr)
      .PermitUncheckedError();
  std::set<std::string> paths;
  for (const std::string& child : children) {
    uint64_t number = 0;
    FileType type = kTempFile;
    if (!ParseFileName(child, &number, &type) || type != kOptionsFile) {
      continue;
    }
    std::string text;
    Status s = ReadFileToString(fs_, name + "/" + child, &text);
    if (s.ok()) {
      s = OptionsFileCopy::AddPaths(text, &paths);
    }
    if (!s.ok()) {
      return true;
    }
  }
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
    return CleanDirectoryName(fs_, path) == CleanDirectoryName(fs_, directory);
  });
}

Status LayoutCheckpoint::CheckLeftover(const std::string& directory,
                                       const std::set<std::string>& attempts,
                                       std::string* attempt) const {
  attempt->clear();
  Status s = fs_->FileExists(directory, IOOptions(), nullptr);
  if (!s.ok()) {
    return s;
  }
  std::vector<std::string> names;
  s = fs_->GetChildren(directory, IOOptions(), &names, nullptr);
  if (!s.ok()) {
    return Status::InvalidArgument("Directory exists and cannot be read",
                                   directory + ": " + s.ToString());
  }
  CheckpointMark mark;
  const bool has_mark = mark.Read(fs_, directory).ok();
  bool is_leftover = true;
  if (!names.empty()) {
    is_leftover =
        has_mark && (attempts.count(mark.attempt) > 0 ||
                     (names.size() == 1 && HasEnded(mark, directory)));
    *attempt = mark.attempt;
  }
  for (const std::string& name : names) {
    is_leftover = is_leftover && (name == CheckpointMark::Name() ||
                                  mark.files.count(name) > 0);
  }
  if (is_leftover) {
    return Status::OK();
  }
  std::string message = directory;
  if (has_mark) {
    message += ", which has the mark of another checkpoint";
    for (const std::string& staging : mark.directories) {
      message += ", " + staging;
    }
    message +=
        ". If that one is not running, and no complete checkpoint has its "
        "files there, delete the directory";
  }
  return Status::InvalidArgument("Directory exists", message);
}

Status LayoutCheckpoint::DeleteDirectory(const std::string& directory) const {
  Status s = fs_->FileExists(directory, IOOptions(), nullptr);
  if (s.IsNotFound()) {
    return Status::OK();
  }
  // Another attempt may be deleting the same directory.
  const auto remove = [&](const std::string& name) {
    const Status deleted =
        fs_->DeleteFile(directory + "/" + name, IOOptions(), nullptr);
    return IsMissing(deleted) ? Status::OK() : deleted;
  };
  std::vector<std::string> names;
  if (s.ok()) {
    s = fs_->GetChildren(directory, IOOptions(), &names, nullptr);
  }
  bool has_mark = false;
  for (const std::string& name : names) {
    if (name == CheckpointMark::Name()) {
      has_mark = true;
    } else if (s.ok()) {
      s = remove(name);
    }
  }
  // The mark is the last file to be lost, so that the next attempt finds it if
  // a crash keeps this one from deleting all.
  if (s.ok() && has_mark) {
    s = Sync({directory});
    if (s.ok()) {
      s = remove(CheckpointMark::Name());
    }
  }
  if (s.ok()) {
    s = fs_->DeleteDir(directory, IOOptions(), nullptr);
  }
  if (IsMissing(s)) {
    s = Status::OK();
  }
  ROCKS_LOG_INFO(logger_, "Checkpoint: directory %s was deleted: %s",
                 directory.c_str(), s.ToString().c_str());
  return s;
}

Status LayoutCheckpoint::Prepare(const CopyPaths& paths,
                                 std::vector<LiveFileStorageInfo>* files) {
  assert(has_layout());
  is_prepared_ = true;
  // Column families may have been added since Begin().
  std::set<std::string> of_db = DirectoriesOfDB(paths);
  for (const LiveFileStorageInfo& file : *files) {
    of_db.insert(CleanDirectoryName(fs_, file.directory));
  }
  Status s = CheckDirectories(of_db);
  if (s.ok()) {
    s = MakePlan(paths, files);
  }
  if (!s.ok()) {
    return s;
  }
  for (Other& other : others_) {
    for (const LiveFileStorageInfo& file : *files) {
      if (IsLayoutType(file.file_type) &&
          plan_->DirectoryOf(file.file_number) == other.directory) {
        other.files.insert(file.relative_filename);
      }
    }
    s = fs_->CreateDir(other.staging, IOOptions(), nullptr);
    if (!s.ok()) {
      return s;
    }
    other.is_created = true;
    ROCKS_LOG_INFO(logger_, "Checkpoint: %" ROCKSDB_PRIszt " files go to %s",
                   other.files.size(), other.directory.c_str());
  }
  // The marks are durable before the first file, so that the next attempt knows
  // the directories if a crash leaves files there.
  std::set<std::string> stagings{staging_};
  for (const Other& other : others_) {
    stagings.insert(other.staging);
  }
  s = WriteMarks();
  return s.ok() ? Sync(stagings) : s;
}

Status LayoutCheckpoint::MakePlan(const CopyPaths& paths,
                                  std::vector<LiveFileStorageInfo>* files) {
  LiveFileStorageInfo* const manifest = FindFile(kDescriptorFile, files);
  LiveFileStorageInfo* const options = FindFile(kOptionsFile, files);
  if (manifest == nullptr || options == nullptr) {
    return Status::NotSupported(
        "A checkpoint with several paths needs a MANIFEST and an OPTIONS file, "
        "and the database has none");
  }
  const uint64_t size = paths.SizeOfManifest(manifest->size);
  ManifestColumnFamilies families;
  Status s = ReadManifestFilePlaces(fs_, NameOf(*manifest), size, &families);
  if (s.ok()) {
    s = plan_->Make(families);
  }
  if (s.ok()) {
    s = CheckFiles(paths, families, *files);
  }
  if (s.ok()) {
    s = ChangeOptions(families, options);
  }
  if (!s.ok()) {
    return s;
  }
  std::string contents;
  bool is_changed = false;
  s = CopyManifest(
      fs_, NameOf(*manifest), size,
      [&](uint32_t id) -> const PathIdMap& { return plan_->PathIdsOf(id); },
      &contents, &is_changed);
  if (s.ok() && is_changed) {
    ReplaceContents(std::move(contents), manifest);
  }
  return s;
}

Status LayoutCheckpoint::CheckFiles(
    const CopyPaths& paths, const ManifestColumnFamilies& families,
    const std::vector<LiveFileStorageInfo>& files) const {
  std::unordered_set<uint64_t> numbers;
  for (const LiveFileStorageInfo& file : files) {
    if (IsLayoutType(file.file_type)) {
      numbers.insert(file.file_number);
      if (!plan_->Has(file.file_number)) {
        return Status::Corruption("The MANIFEST does not name a live file",
                                  NameOf(file));
      }
    }
  }
  for (const auto& [id, family] : families) {
    // Blob and delta files that the list lacks may be obsolete.
    bool is_missing = paths.family_ids().count(id) == 0;
    for (const auto& [number, file] : family.files) {
      is_missing =
          is_missing || (file.type == kTableFile && numbers.count(number) == 0);
    }
    if (is_missing) {
      return Status::NotSupported(
          "A checkpoint with several paths needs all column families, and "
          "the database was opened without",
          family.name);
    }
  }
  return Status::OK();
}

Status LayoutCheckpoint::ChangeOptions(const ManifestColumnFamilies& families,
                                       LiveFileStorageInfo* options) const {
  std::string text;
  Status s = ReadFileToString(fs_, NameOf(*options), &text);
  std::set<std::string> in_options;
  std::string copy;
  if (s.ok()) {
    std::set<std::string> directories;
    s = OptionsFileCopy::AddPaths(text, &directories);
    std::set<std::string> of_db;
    for (const std::string& directory : directories) {
      of_db.insert(CleanDirectoryName(fs_, directory));
    }
    if (s.ok()) {
      s = CheckDirectories(of_db);
    }
  }
  std::set<std::string> in_manifest;
  for (const auto& [id, family] : families) {
    in_manifest.insert(family.name);
  }
  if (s.ok()) {
    s = OptionsFileCopy::IntoLayout(
        OptionsFileCopy::OnlyFamilies(text, in_manifest),
        /*keeps_wal_dir=*/false,
        [&](const std::string& family) { return plan_->LayoutOf(family); },
        &in_options, &copy);
  }
  if (!s.ok()) {
    return s;
  }
  for (const auto& [id, family] : families) {
    if (plan_->LayoutOf(family.name) != nullptr &&
        in_options.count(family.name) == 0) {
      // A family is in the MANIFEST before it is in the OPTIONS file.
      return Status::TryAgain(
          "The OPTIONS file has no section of column family " + family.name +
              ", which may be new",
          NameOf(*options));
    }
  }
  if (copy != text) {
    ReplaceContents(std::move(copy), options);
  }
  return s;
}

const std::string& LayoutCheckpoint::StagingDirectoryOf(
    const std::string& name) const {
  TEST_SYNC_POINT_CALLBACK("LayoutCheckpoint::StagingDirectoryOf",
                           const_cast<std::string*>(&name));
  uint64_t number = 0;
  FileType type = kTempFile;
  if (has_layout() && ParseFileName(name, &number, &type) &&
      IsLayoutType(type)) {
    const std::string& directory = plan_->DirectoryOf(number);
    for (const Other& other : others_) {
      if (other.directory == directory) {
        return other.staging;
      }
    }
  }
  return staging_;
}

Status LayoutCheckpoint::WriteMarks() {
  CheckpointMark mark;
  mark.attempt = attempt_;
  for (const Other& other : others_) {
    mark.directories.insert(other.directory);
  }
  Status s = mark.Write(fs_, staging_);
  mark.directories = {CleanDirectoryName(fs_, staging_)};
  for (const Other& other : others_) {
    if (s.ok()) {
      mark.files = other.files;
      s = mark.Write(fs_, other.staging);
    }
  }
  return s;
}

Status LayoutCheckpoint::CheckOwn(const std::string& directory,
                                  const std::set<std::string>* files) const {
  CheckpointMark mark;
  Status s = mark.Read(fs_, directory);
  bool is_own = s.ok() && mark.attempt == attempt_;
  if (is_own && files != nullptr) {
    std::vector<std::string> names;
    s = fs_->GetChildren(directory, IOOptions(), &names, nullptr);
    std::set<std::string> found(names.begin(), names.end());
    found.erase(CheckpointMark::Name());
    is_own = s.ok() && found == *files;
  }
  return is_own ? Status::OK() : UsedByAnother(directory, s);
}

Status LayoutCheckpoint::Rename(const std::string& staging,
                                const std::string& directory) const {
  // A rename replaces an empty directory.
  Status s = fs_->FileExists(directory, IOOptions(), nullptr);
  if (s.ok()) {
    return UsedByAnother(directory, Status::OK());
  }
  if (!s.IsNotFound()) {
    return s;
  }
  s = fs_->RenameFile(staging, directory, IOOptions(), nullptr);
  if (IsMissing(s) ||
      (!s.ok() && fs_->FileExists(directory, IOOptions(), nullptr).ok())) {
    return UsedByAnother(directory, s);
  }
  return s;
}

void LayoutCheckpoint::DeleteMarks() const {
  const auto remove = [&](const std::string& directory) {
    // A DB that is opened deletes a mark, too.
    fs_->DeleteFile(directory + "/" + CheckpointMark::Name(), IOOptions(),
                    nullptr)
        .PermitUncheckedError();
  };
  std::set<std::string> directories;
  for (const Other& other : others_) {
    remove(other.directory);
    directories.insert(other.directory);
  }
  // The mark of the checkpoint says whose the others are.
  if (Sync(directories).ok()) {
    remove(directory_);
  }
}

Status LayoutCheckpoint::Sync(const std::set<std::string>& directories) const {
  for (const std::string& name : directories) {
    std::unique_ptr<FSDirectory> directory;
    IOStatus s = fs_->NewDirectory(name, IOOptions(), &directory, nullptr);
    if (s.ok()) {
      s = directory->FsyncWithDirOptions(
          IOOptions(), nullptr,
          DirFsyncOptions(DirFsyncOptions::FsyncReason::kDirRenamed));
    }
    if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

Status LayoutCheckpoint::Commit() {
  if (!has_layout()) {
    return db_->GetEnv()->RenameFile(staging_, directory_);
  }
  const std::string parent =
      ParentDirectory(CleanDirectoryName(fs_, directory_));
  std::set<std::string> stagings{staging_};
  std::set<std::string> parents;
  for (const Other& other : others_) {
    stagings.insert(other.staging);
    parents.insert(ParentDirectory(other.directory));
  }
  TEST_SYNC_POINT("LayoutCheckpoint::Commit:Begin");
  Status s = CheckOwn(staging_, /*files=*/nullptr);
  for (const Other& other : others_) {
    if (s.ok()) {
      s = CheckOwn(other.staging, &other.files);
    }
  }
  TEST_SYNC_POINT("LayoutCheckpoint::Commit:Checked");
  if (s.ok()) {
    s = Sync(stagings);
  }
  // Without its mark the checkpoint's staging directory would not show what the
  // renamed directories are.
  if (s.ok()) {
    s = Sync({parent});
  }
  for (Other& other : others_) {
    if (s.ok()) {
      s = Rename(other.staging, other.directory);
      other.is_renamed = s.ok();
    }
    // Other attempts have the same name for this directory from now on.
    if (s.ok()) {
      s = CheckOwn(other.directory, &other.files);
    }
  }
  if (s.ok()) {
    s = Sync(parents);
  }
  if (s.ok()) {
    TEST_SYNC_POINT("LayoutCheckpoint::Commit:OthersRenamed");
    s = Rename(staging_, directory_);
    is_committed_ = s.ok();
  }
  if (s.ok()) {
    s = Sync({parent});
  }
  if (s.ok()) {
    DeleteMarks();
  }
  return s;
}

Status LayoutCheckpoint::Abandon(const Status& error) {
  if (!has_layout() || is_committed_) {
    return error;
  }
  const auto is_missing = [&](const std::string& directory) {
    return fs_->FileExists(directory, IOOptions(), nullptr).IsNotFound();
  };
  std::string taken;
  // The errors are in LOG.
  for (const Other& other : others_) {
    if (other.is_renamed) {
      DeleteRenamed(other.directory, attempt_).PermitUncheckedError();
    } else if (other.is_created) {
      if (is_missing(other.staging)) {
        taken = other.staging;
      }
      DeleteDirectory(other.staging).PermitUncheckedError();
    }
  }
  // The mark of the checkpoint says whose the others are.
  if (is_prepared_ && is_missing(staging_)) {
    taken = staging_;
  }
  DeleteDirectory(staging_).PermitUncheckedError();
  return taken.empty() || error.IsAborted() ? error
                                            : UsedByAnother(taken, error);
}

}  // namespace ROCKSDB_NAMESPACE
