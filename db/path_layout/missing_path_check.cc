//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/missing_path_check.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <set>

#include "db/path_layout/directory_names.h"
#include "file/filename.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Maximum number of paths that the error describes.
constexpr size_t kMaxDescribedPaths = 8;

IOOptions MissingPathIoOptions() {
  IOOptions options;
  options.io_activity = Env::IOActivity::kDBOpen;
  options.do_not_recurse = true;
  return options;
}

std::string FileNameIn(const std::string& directory,
                       const std::pair<FileType, uint64_t>& file) {
  switch (file.first) {
    case kBlobFile:
      return BlobFileName(directory, file.second);
    case kDeltaFile:
      return DeltaFileName(directory, file.second);
    default:
      return MakeTableFileName(directory, file.second);
  }
}

// Sets *children to the names in the directory. Returns what is wrong with the
// directory if that fails, otherwise an empty string.
std::string ListDirectory(FileSystem* fs, const std::string& directory,
                          std::vector<std::string>* children) {
  IOStatus s = fs->GetChildren(directory, MissingPathIoOptions(), children,
                               /*dbg=*/nullptr);
  if (s.ok()) {
    return "";
  }
  if (s.IsNotFound() || s.IsPathNotFound()) {
    // This can also mean that the directory may not be read.
    bool is_directory = false;
    s = fs->IsDirectory(directory, MissingPathIoOptions(), &is_directory,
                        /*dbg=*/nullptr);
    if (s.ok()) {
      return is_directory ? "exists, but cannot be listed"
                          : "is not a directory";
    }
    if (s.IsNotFound() || s.IsPathNotFound() || s.IsNotSupported()) {
      return "does not exist";
    }
  }
  return "cannot be accessed (" + s.ToString() + ")";
}

}  // namespace

void MissingPathCheck::BeginFamily(const std::string& name,
                                   const std::vector<DbPath>& cf_paths) {
  cf_paths_ = cf_paths;
  current_.clear();
  for (uint32_t i = 0; i < cf_paths.size(); ++i) {
    Directory& directory =
        directories_[CleanDirectoryName(/*fs=*/nullptr, cf_paths[i].path)];
    if (directory.name.empty()) {
      directory.name = cf_paths[i].path;
    }
    current_.emplace_back(&directory, directory.paths.size());
    Path& path = directory.paths.emplace_back();
    path.family = name;
    path.id = i;
  }
}

void MissingPathCheck::AddFile(FileType type, uint64_t number, uint32_t path_id,
                               uint64_t bytes) {
  if (path_id >= current_.size()) {
    return;
  }
  Directory& directory = *current_[path_id].first;
  Path& path = directory.paths[current_[path_id].second];
  assert(type == kTableFile || type == kBlobFile || type == kDeltaFile);
  Count& count = type == kBlobFile    ? path.blob
                 : type == kDeltaFile ? path.delta
                                      : path.sst;
  ++count.files;
  count.bytes += bytes;
  if (directory.files.empty()) {
    directory.cf_paths = cf_paths_;
  }
  directory.files.emplace_back(type, number);
}

std::string MissingPathCheck::FindElsewhere(const Directory& directory) const {
  const std::string clean_name =
      CleanDirectoryName(/*fs=*/nullptr, directory.name);
  for (const DbPath& other : directory.cf_paths) {
    if (CleanDirectoryName(/*fs=*/nullptr, other.path) != clean_name &&
        fs_->FileExists(FileNameIn(other.path, directory.files[0]),
                        MissingPathIoOptions(), /*dbg=*/nullptr)
            .ok()) {
      return other.path;
    }
  }
  return "";
}

std::string MissingPathCheck::Examine(const Directory& directory,
                                      bool* is_empty) const {
  *is_empty = false;
  const IOStatus s =
      fs_->FileExists(FileNameIn(directory.name, directory.files[0]),
                      MissingPathIoOptions(), /*dbg=*/nullptr);
  if (s.ok()) {
    return "";
  }
  if (!s.IsNotFound() && !s.IsPathNotFound()) {
    return "cannot be accessed (" + s.ToString() + ")";
  }
  std::vector<std::string> children;
  const std::string problem = ListDirectory(fs_, directory.name, &children);
  if (!problem.empty()) {
    return problem;
  }
  std::set<std::pair<FileType, uint64_t>> found;
  for (const std::string& child : children) {
    std::pair<FileType, uint64_t> file;
    if (ParseFileName(child, &file.second, &file.first)) {
      found.insert(file);
    }
  }
  if (std::any_of(directory.files.begin(), directory.files.end(),
                  [&](const auto& file) { return found.count(file) > 0; })) {
    return "";
  }
  const std::string elsewhere = FindElsewhere(directory);
  *is_empty = elsewhere.empty();
  return "has none of its files" +
         (elsewhere.empty()
              ? ""
              : ", while " + elsewhere + ", which is another path, has " +
                    FileNameIn(elsewhere, directory.files[0])
                        .substr(elsewhere.size() + 1));
}

std::string MissingPathCheck::Describe(const Directory& directory,
                                       const Path& path,
                                       const std::string& problem) {
  const auto text = [](const Count& count, const char* type) {
    return std::to_string(count.files) + " " + type +
           (count.files == 1 ? " file (" : " files (") +
           std::to_string(count.bytes) + " bytes)";
  };
  return "Path id " + std::to_string(path.id) + " of column family " +
         path.family + " is missing: the directory " + directory.name + " " +
         problem + ". The MANIFEST has " + text(path.sst, "SST") + ", " +
         text(path.blob, "blob") + " and " + text(path.delta, "delta") +
         " there. ";
}

Status MissingPathCheck::Run() {
  num_missing_ = num_empty_ = 0;
  std::string message;
  size_t num_paths = 0;
  Count others;
  for (const auto& [clean_name, directory] : directories_) {
    if (directory.files.empty()) {
      continue;
    }
    bool is_empty = false;
    const std::string problem = Examine(directory, &is_empty);
    if (problem.empty()) {
      continue;
    }
    ++num_missing_;
    num_empty_ += is_empty ? 1 : 0;
    for (const Path& path : directory.paths) {
      const Count all = {path.sst.files + path.blob.files + path.delta.files,
                         path.sst.bytes + path.blob.bytes + path.delta.bytes};
      if (all.files == 0) {
        continue;
      }
      if (++num_paths <= kMaxDescribedPaths) {
        message += Describe(directory, path, problem);
      } else {
        others.files += all.files;
        others.bytes += all.bytes;
      }
    }
  }
  if (num_missing_ == 0) {
    return Status::OK();
  }
  if (num_paths > kMaxDescribedPaths) {
    message += std::to_string(num_paths - kMaxDescribedPaths) +
               " more paths are missing, with " + std::to_string(others.files) +
               " files (" + std::to_string(others.bytes) + " bytes). ";
  }
  return Status::IOError(
      message +
      "Bring the device back, or open the database with the directories that "
      "its paths have now, also if a file of STRATA_CONFIG gives them. Do not "
      "delete or move files. If the files are lost, "
      "restore a backup, or name an empty directory in place of the path for "
      "best_efforts_recovery or RepairDB(): see \"Several devices\" in "
      "docs/operations.md");
}

}  // namespace ROCKSDB_NAMESPACE
