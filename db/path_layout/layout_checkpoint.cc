//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/layout_checkpoint.h"

#include <algorithm>
#include <cassert>
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

bool IsLayoutType(FileType type) {
  return type == kTableFile || type == kBlobFile || type == kDeltaFile;
}

std::string NameOf(const LiveFileStorageInfo& file) {
  return file.directory + "/" + file.relative_filename;
}

}  // namespace

LayoutCheckpoint::LayoutCheckpoint(DB* db, const std::string& directory,
                                   const std::string& staging,
                                   const CopyLayout* layout)
    : db_(db),
      fs_(db->GetFileSystem()),
      logger_(db->GetDBOptions().info_log.get()),
      directory_(directory),
      staging_(staging) {
  if (layout == nullptr) {
    return;
  }
  plan_ = std::make_unique<CopyPlan>(*layout, directory, fs_);
  for (const std::string& other : plan_->other_directories()) {
    others_.emplace_back();
    others_.back().directory = other;
    others_.back().staging = other + ".tmp";
  }
}

Status LayoutCheckpoint::Begin() {
  if (!has_layout()) {
    ReportForgotten();
    return Status::OK();
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
  if (s.ok()) {
    ReportForgotten();
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
  add(CleanDirectoryName(fs_, directory_), CleanDirectoryName(fs_, staging_));
  for (const Other& other : others_) {
    add(other.directory, other.staging);
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

Status LayoutCheckpoint::DeleteLeftovers() {
  // All are checked before the first one is deleted.
  for (const Other& other : others_) {
    Status s = fs_->FileExists(other.directory, IOOptions(), nullptr);
    if (s.ok()) {
      s = CheckLeftover(other.directory);
    }
    if (s.ok() || s.IsNotFound()) {
      s = fs_->FileExists(other.staging, IOOptions(), nullptr);
      if (s.ok()) {
        s = CheckStagingLeftover(other.staging);
      }
    }
    if (!s.ok() && !s.IsNotFound()) {
      return s;
    }
  }
  for (const Other& other : others_) {
    for (const std::string& directory : {other.directory, other.staging}) {
      const Status s = DeleteDirectory(directory);
      if (!s.ok()) {
        return Status::Aborted(
            "Failed to delete what an earlier checkpoint "
            "has left in " +
                directory,
            s.ToString());
      }
    }
  }
  return Status::OK();
}

void LayoutCheckpoint::ReportForgotten() const {
  CheckpointMark mark;
  if (!mark.Read(fs_, staging_).ok()) {
    return;
  }
  for (const std::string& directory : mark.directories) {
    for (const std::string& name : {directory, directory + ".tmp"}) {
      CheckpointMark left;
      if (left.Read(fs_, name).ok() && left.attempt == mark.attempt) {
        ROCKS_LOG_WARN(logger_,
                       "Checkpoint: an attempt that did not end has left %s. "
                       "This one has other directories and leaves it alone: "
                       "delete it",
                       name.c_str());
      }
    }
  }
}

bool LayoutCheckpoint::HasEnded(const CheckpointMark& mark,
                                const std::string& directory) const {
  if (mark.directories.size() != 1) {
    return false;
  }
  // As long as the staging directory has the same mark, the attempt may go on.
  // If the renamed directory has it, the checkpoint is complete, and a crash
  // has left the marks. That one loses its mark last, or in any order if the
  // checkpoint is opened.
  const std::string& staging = *mark.directories.begin();
  std::vector<std::string> names = {staging};
  const std::string suffix = ".tmp";
  if (staging.ends_with(suffix)) {
    names.push_back(staging.substr(0, staging.size() - suffix.size()));
  }
  for (const std::string& name : names) {
    CheckpointMark of_checkpoint;
    const Status s = of_checkpoint.Read(fs_, name);
    if (s.ok() ? of_checkpoint.attempt == mark.attempt
               : !s.IsNotFound() && !s.IsPathNotFound()) {
      return false;
    }
  }
  return !NamesPath(names.back(), directory);
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

Status LayoutCheckpoint::CheckLeftover(const std::string& directory) const {
  std::vector<std::string> names;
  Status s = fs_->GetChildren(directory, IOOptions(), &names, nullptr);
  if (!s.ok()) {
    return s;
  }
  CheckpointMark mark;
  CheckpointMark mark_of_checkpoint;
  const bool has_mark = mark.Read(fs_, directory).ok();
  bool is_leftover = true;
  if (!names.empty()) {
    is_leftover =
        has_mark && ((mark_of_checkpoint.Read(fs_, staging_).ok() &&
                      mark.attempt == mark_of_checkpoint.attempt) ||
                     (names.size() == 1 && HasEnded(mark, directory)));
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

Status LayoutCheckpoint::CheckStagingLeftover(
    const std::string& staging) const {
  std::vector<std::string> names;
  const Status s = fs_->GetChildren(staging, IOOptions(), &names, nullptr);
  if (!s.ok()) {
    return s;
  }
  CheckpointMark mark;
  // A crash can leave a mark that is not complete, but no file besides it.
  mark.Read(fs_, staging).PermitUncheckedError();
  for (const std::string& name : names) {
    if (name != CheckpointMark::Name() && mark.files.count(name) == 0) {
      return Status::InvalidArgument("Directory exists", staging);
    }
  }
  return s;
}

Status LayoutCheckpoint::DeleteDirectory(const std::string& directory) const {
  Status s = fs_->FileExists(directory, IOOptions(), nullptr);
  if (s.IsNotFound()) {
    return Status::OK();
  }
  std::vector<std::string> names;
  if (s.ok()) {
    s = fs_->GetChildren(directory, IOOptions(), &names, nullptr);
  }
  bool has_mark = false;
  for (const std::string& name : names) {
    if (name == CheckpointMark::Name()) {
      has_mark = true;
    } else if (s.ok()) {
      s = fs_->DeleteFile(directory + "/" + name, IOOptions(), nullptr);
    }
  }
  // The mark is the last file to be lost, so that the next attempt finds it if
  // a crash keeps this one from deleting all.
  if (s.ok() && has_mark) {
    s = Sync({directory});
    if (s.ok()) {
      s = fs_->DeleteFile(directory + "/" + CheckpointMark::Name(), IOOptions(),
                          nullptr);
    }
  }
  if (s.ok()) {
    s = fs_->DeleteDir(directory, IOOptions(), nullptr);
  }
  ROCKS_LOG_INFO(logger_, "Checkpoint: directory %s was deleted: %s",
                 directory.c_str(), s.ToString().c_str());
  return s;
}

Status LayoutCheckpoint::Prepare(const CopyPaths& paths,
                                 std::vector<LiveFileStorageInfo>* files) {
  assert(has_layout());
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
  attempt_ = db_->GetEnv()->GenerateUniqueId();
  attempt_.erase(std::remove(attempt_.begin(), attempt_.end(), '\n'),
                 attempt_.end());
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

bool LayoutCheckpoint::IsOfOtherAttempt(const std::string& directory) const {
  CheckpointMark mark;
  return mark.Read(fs_, directory).ok() && mark.attempt != attempt_;
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
  return is_own ? Status::OK()
                : Status::Aborted(
                      "Another checkpoint seems to use the same directory, " +
                          directory,
                      s.ToString());
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
      s = fs_->RenameFile(other.staging, other.directory, IOOptions(), nullptr);
      other.is_renamed = s.ok();
    }
    // Another checkpoint may have replaced the directory since the first check.
    if (s.ok()) {
      s = CheckOwn(other.directory, &other.files);
    }
  }
  if (s.ok()) {
    s = Sync(parents);
  }
  if (s.ok()) {
    s = fs_->RenameFile(staging_, directory_, IOOptions(), nullptr);
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

void LayoutCheckpoint::Abandon() {
  if (is_committed_) {
    return;
  }
  for (const Other& other : others_) {
    const std::string& directory =
        other.is_renamed ? other.directory : other.staging;
    if ((other.is_renamed || other.is_created) &&
        !IsOfOtherAttempt(directory)) {
      // The error is in LOG.
      DeleteDirectory(directory).PermitUncheckedError();
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
