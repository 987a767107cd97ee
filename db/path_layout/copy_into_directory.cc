//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/copy_into_directory.h"

#include <algorithm>
#include <utility>

#include "db/blob/blob_constants.h"
#include "db/column_family.h"
#include "db/delta/delta_version.h"
#include "db/path_layout/manifest_copy.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "options/strata/options_file_copy.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/metadata.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns true if a file that belongs to a column family is in another
// directory than that of the DB.
bool AnyElsewhere(const std::string& db_dir,
                  const std::vector<LiveFileStorageInfo>& files) {
  return std::any_of(
      files.begin(), files.end(), [&](const LiveFileStorageInfo& file) {
        return (file.file_type == kTableFile || file.file_type == kBlobFile ||
                file.file_type == kDeltaFile) &&
               file.directory != db_dir;
      });
}

// Returns true if a file of the current version has another path id than 0, or
// hot values, which have another home.
bool HasPathIds(ColumnFamilyData* cfd) {
  if (cfd->current() == nullptr) {
    return false;
  }
  const VersionStorageInfo& files = *cfd->current()->storage_info();
  for (int level = 0; level < files.num_levels(); ++level) {
    for (const FileMetaData* file : files.LevelFiles(level)) {
      if (file->fd.GetPathId() != 0) {
        return true;
      }
    }
  }
  bool result = false;
  for (const auto& file : files.GetBlobFiles()) {
    result = result || file->GetPathId() != 0 || file->hot().is_hot();
  }
  if (files.delta() != nullptr) {
    files.delta()->ForEachFile([&](const DeltaVersion::FilePtr& file) {
      result = result || file->description().path_id != 0;
    });
  }
  return result;
}

}  // namespace

LiveFileStorageInfo* FindFile(FileType type,
                              std::vector<LiveFileStorageInfo>* files) {
  const auto found = std::find_if(files->begin(), files->end(),
                                  [type](const LiveFileStorageInfo& file) {
                                    return file.file_type == type;
                                  });
  return found == files->end() ? nullptr : &*found;
}

void ReplaceContents(std::string&& contents, LiveFileStorageInfo* file) {
  file->replacement_contents = std::move(contents);
  file->size = file->replacement_contents.size();
  file->trim_to_size = false;
}

thread_local CopyPaths* CopyPaths::current_ = nullptr;

void CopyPaths::Note(VersionSet* versions, bool is_read_only) {
  if (current_ == nullptr) {
    return;
  }
  for (ColumnFamilyData* cfd : *versions->GetColumnFamilySet()) {
    current_->family_ids_.insert(cfd->GetID());
    current_->has_path_ids_ = current_->has_path_ids_ || HasPathIds(cfd);
    const std::vector<DbPath>& paths = cfd->ioptions().cf_paths;
    current_->has_several_ |= paths.size() > 1;
    for (const DbPath& path : paths) {
      current_->directories_.insert(path.path);
    }
  }
  current_->may_be_in_options_ =
      current_->has_several_ || current_->has_path_ids_ || is_read_only;
  // A DB that can write has begun a MANIFEST of its own, or found the old one
  // intact. It does not keep the number below up to date.
  if (is_read_only) {
    current_->end_of_manifest_ = versions->manifest_last_valid_record_end();
  }
}

Status PrepareCopyInOneDirectory(DB* db, const CopyPaths& paths,
                                 bool keeps_wal_dir,
                                 std::vector<LiveFileStorageInfo>* files) {
  bool changes_options = paths.may_be_in_options();
  if (!changes_options && !keeps_wal_dir) {
    const DBOptions options = db->GetDBOptions();
    changes_options = !options.wal_dir.empty() || !options.db_log_dir.empty();
  }
  if (!changes_options) {
    return Status::OK();
  }
  FileSystem* const fs = db->GetFileSystem();
  bool has_paths = paths.has_several() || paths.has_path_ids() ||
                   AnyElsewhere(db->GetName(), *files);
  if (LiveFileStorageInfo* const file = FindFile(kOptionsFile, files)) {
    std::string text;
    const Status s = ReadFileToString(
        fs, file->directory + "/" + file->relative_filename, &text);
    if (!s.ok()) {
      return s;
    }
    has_paths = has_paths || OptionsFileCopy::HasPaths(text);
    std::string copy = OptionsFileCopy::IntoOneDirectory(text, keeps_wal_dir);
    if (copy != text) {
      ReplaceContents(std::move(copy), file);
    }
  }
  LiveFileStorageInfo* const manifest = FindFile(kDescriptorFile, files);
  if (!has_paths || manifest == nullptr) {
    return Status::OK();
  }
  const PathIdMap path_ids;
  std::string contents;
  bool is_changed = false;
  const Status s = CopyManifest(
      fs, manifest->directory + "/" + manifest->relative_filename,
      paths.SizeOfManifest(manifest->size),
      [&](uint32_t /*column_family*/) -> const PathIdMap& { return path_ids; },
      &contents, &is_changed);
  if (s.ok() && is_changed) {
    ROCKS_LOG_INFO(db->GetDBOptions().info_log,
                   "The copy has all files on path 0: %s is rewritten",
                   manifest->relative_filename.c_str());
    ReplaceContents(std::move(contents), manifest);
  }
  return s;
}

Status CheckExportable(const ColumnFamilyMetaData& family) {
  if (!family.delta_files.empty()) {
    return Status::NotSupported(
        "Export of column family \"" + family.name + "\", which has " +
        std::to_string(family.delta_files.size()) +
        " delta files (enable_delta_separation): their merge operands are not "
        "in its SST files");
  }
  for (const LevelMetaData& level : family.levels) {
    for (const SstFileMetaData& file : level.files) {
      if (file.oldest_blob_file_number != kInvalidBlobFileNumber) {
        return Status::NotSupported(
            "Export of column family \"" + family.name +
            "\": the values of its SST file " + file.relative_filename +
            " are in blob files, which are not exported. CompactRange() with "
            "enable_blob_files = false, BlobGarbageCollectionPolicy::kForce "
            "and blob_garbage_collection_age_cutoff = 1 puts them into SST "
            "files");
      }
    }
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
