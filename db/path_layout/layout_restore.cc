//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/layout_restore.h"

#include <set>
#include <utility>

#include "db/path_layout/directory_names.h"
#include "db/path_layout/manifest_copy.h"
#include "db/path_layout/manifest_records.h"
#include "file/filename.h"
#include "options/strata/options_file_copy.h"
#include "rocksdb/file_system.h"
#include "util/crc32c.h"
#include "util/file_checksum_helper.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns true, and the number, if a file of this name can be on a path.
bool IsOnPath(const std::string& name, uint64_t* number) {
  FileType type = kTempFile;
  return ParseFileName(name, number, &type) &&
         (type == kTableFile || type == kBlobFile || type == kDeltaFile);
}

}  // namespace

LayoutRestore::LayoutRestore(const CopyLayout* layout, FileSystem* fs,
                             const std::string& db_dir)
    : fs_(fs), db_dir_(db_dir) {
  if (layout == nullptr) {
    return;
  }
  plan_ = std::make_unique<CopyPlan>(*layout, db_dir, fs_);
  has_path_map_ = !layout->all.path_map.empty();
  for (const auto& [name, family] : layout->column_families) {
    has_path_map_ |= !family.path_map.empty();
  }
}

void LayoutRestore::AddFile(FileSystem* fs, const std::string& fname,
                            const std::string& name, uint64_t size,
                            const std::string& checksum_hex) {
  uint64_t number = 0;
  FileType type = kTempFile;
  if (has_layout() && ParseFileName(name, &number, &type) &&
      (type == kDescriptorFile || type == kOptionsFile)) {
    Source& source = type == kDescriptorFile ? manifest_ : options_;
    source = Source{fs, fname, name, size, checksum_hex};
  }
}

IOStatus LayoutRestore::Begin(const std::string& wal_dir) {
  if (!has_layout()) {
    return IOStatus::OK();
  }
  Status s = plan_->Validate();
  if (s.ok() && has_path_map_) {
    s = Status::InvalidArgument(
        "path_map is for checkpoints: a backup does not know on which path a "
        "file was");
  }
  if (s.ok()) {
    s = CheckDirectory(wal_dir);
  }
  for (const std::string& directory : backup_directories_) {
    if (s.ok()) {
      s = CheckDirectory(directory);
    }
  }
  if (s.ok()) {
    s = MakePlan();
  }
  if (!s.ok()) {
    return status_to_io_status(std::move(s));
  }
  for (const std::string& directory : plan_->other_directories()) {
    const IOStatus created =
        fs_->CreateDirIfMissing(directory, IOOptions(), nullptr);
    if (!created.ok()) {
      return created;
    }
  }
  return IOStatus::OK();
}

Status LayoutRestore::CheckDirectory(const std::string& reserved) const {
  const std::string clean = CleanDirectoryName(fs_, reserved);
  if (clean == CleanDirectoryName(fs_, db_dir_)) {
    return Status::OK();
  }
  for (const std::string& directory : plan_->other_directories()) {
    if (DirectoriesOverlap(directory, clean)) {
      return Status::InvalidArgument(
          "A path of a restored database must not be inside or around the "
          "directory of its WALs or that of the backups",
          directory + " and " + clean);
    }
  }
  return Status::OK();
}

Status LayoutRestore::MakePlan() {
  if (manifest_.fs == nullptr || options_.fs == nullptr) {
    return Status::NotSupported(
        "A restore into several paths needs a MANIFEST and an OPTIONS file, "
        "and the backup has none");
  }
  // The checksum of the whole file is that of the backup; the records have
  // their own.
  std::string text;
  Status s = Read(manifest_, &text);
  // The backup may be that of an instance that cannot write, with the end of
  // a MANIFEST that such an instance ignores.
  uint64_t size = 0;
  if (s.ok()) {
    s = FindEndOfManifest(manifest_.fs, manifest_.fname, &size);
  }
  ManifestColumnFamilies families;
  if (s.ok()) {
    s = ReadManifestFilePlaces(manifest_.fs, manifest_.fname, size, &families);
  }
  if (s.ok()) {
    s = plan_->Make(families);
  }
  if (s.ok()) {
    s = ChangeOptions(families);
  }
  if (!s.ok()) {
    return s;
  }
  bool is_changed = false;
  std::string contents;
  s = CopyManifest(
      manifest_.fs, manifest_.fname, size,
      [&](uint32_t id) -> const PathIdMap& { return plan_->PathIdsOf(id); },
      &contents, &is_changed);
  if (s.ok() && is_changed) {
    contents_[manifest_.name] = std::move(contents);
  }
  return s;
}

Status LayoutRestore::ChangeOptions(const ManifestColumnFamilies& families) {
  std::string text;
  Status s = Read(options_, &text);
  std::set<std::string> in_options;
  std::string copy;
  std::set<std::string> in_manifest;
  for (const auto& [id, family] : families) {
    in_manifest.insert(family.name);
  }
  if (s.ok()) {
    s = OptionsFileCopy::IntoLayout(
        OptionsFileCopy::OnlyFamilies(text, in_manifest),
        /*keeps_wal_dir=*/true,
        [&](const std::string& family) { return plan_->LayoutOf(family); },
        &in_options, &copy);
  }
  if (!s.ok()) {
    return s;
  }
  for (const auto& [id, family] : families) {
    if (plan_->LayoutOf(family.name) != nullptr &&
        in_options.count(family.name) == 0) {
      return Status::NotSupported(
          "The OPTIONS file has no section of column family " + family.name,
          options_.fname);
    }
  }
  if (copy != text) {
    contents_[options_.name] = std::move(copy);
  }
  return s;
}

Status LayoutRestore::Read(const Source& source, std::string* contents) {
  const Status s = ReadFileToString(source.fs, source.fname, contents);
  if (!s.ok()) {
    return s;
  }
  if (contents->size() != source.size) {
    return Status::Corruption(
        source.fname, "has " + std::to_string(contents->size()) +
                          " bytes instead of " + std::to_string(source.size));
  }
  if (!source.checksum_hex.empty() &&
      source.checksum_hex != ChecksumInt32ToHex(crc32c::Value(
                                 contents->data(), contents->size()))) {
    return Status::Corruption(source.fname, "has another checksum");
  }
  return s;
}

std::string LayoutRestore::PathOf(const std::string& name) const {
  uint64_t number = 0;
  if (has_layout() && IsOnPath(name, &number) &&
      !plan_->DirectoryOf(number).empty()) {
    return plan_->DirectoryOf(number) + "/" + name;
  }
  return db_dir_ + "/" + name;
}

const std::string* LayoutRestore::ContentsOf(const std::string& name) const {
  const auto found = contents_.find(name);
  return found == contents_.end() ? nullptr : &found->second;
}

void LayoutRestore::SelectInPlace(std::vector<std::string>* names) const {
  if (!has_layout()) {
    return;
  }
  std::vector<std::string> selected;
  const auto select = [&](const std::string& directory,
                          const std::vector<std::string>& candidates) {
    for (const std::string& name : candidates) {
      uint64_t number = 0;
      if (IsOnPath(name, &number) && plan_->DirectoryOf(number) == directory) {
        selected.push_back(name);
      }
    }
  };
  select("", *names);
  for (const std::string& directory : plan_->other_directories()) {
    std::vector<std::string> children;
    // A file that is not found is restored.
    fs_->GetChildren(directory, IOOptions(), &children, nullptr)
        .PermitUncheckedError();
    select(directory, children);
  }
  *names = std::move(selected);
}

std::unordered_set<uint64_t> LayoutRestore::InDBDirectory(
    const std::unordered_set<uint64_t>& numbers) const {
  if (!has_layout()) {
    return numbers;
  }
  std::unordered_set<uint64_t> result;
  for (const uint64_t number : numbers) {
    if (plan_->DirectoryOf(number).empty()) {
      result.insert(number);
    }
  }
  return result;
}

IOStatus LayoutRestore::DeleteOthers(
    const std::unordered_set<uint64_t>& files_to_keep) {
  if (!has_layout()) {
    return IOStatus::OK();
  }
  const IOStatus synced = SyncDirectory(db_dir_);
  if (!synced.ok()) {
    return synced;
  }
  for (const std::string& directory : plan_->other_directories()) {
    std::vector<std::string> names;
    IOStatus s = fs_->GetChildren(directory, IOOptions(), &names, nullptr);
    for (const std::string& name : names) {
      uint64_t number = 0;
      if (!s.ok() || !IsOnPath(name, &number) ||
          (files_to_keep.count(number) > 0 &&
           plan_->DirectoryOf(number) == directory)) {
        continue;
      }
      // A file that stayed would be overwritten, also through hard links to it.
      s = fs_->DeleteFile(directory + "/" + name, IOOptions(), nullptr);
    }
    if (!s.ok()) {
      return s;
    }
  }
  return IOStatus::OK();
}

IOStatus LayoutRestore::SyncDirectory(const std::string& name) const {
  std::unique_ptr<FSDirectory> directory;
  const IOStatus s = fs_->NewDirectory(name, IOOptions(), &directory, nullptr);
  return s.ok() ? directory->FsyncWithDirOptions(IOOptions(), nullptr,
                                                 DirFsyncOptions())
                : s;
}

IOStatus LayoutRestore::Sync() const {
  if (!has_layout()) {
    return IOStatus::OK();
  }
  std::set<std::string> directories;
  for (const std::string& directory : plan_->other_directories()) {
    directories.insert(directory);
    directories.insert(ParentDirectory(directory));
  }
  for (const std::string& name : directories) {
    const IOStatus s = SyncDirectory(name);
    if (!s.ok()) {
      return s;
    }
  }
  return IOStatus::OK();
}

}  // namespace ROCKSDB_NAMESPACE
