//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/manifest_files.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "db/blob/blob_constants.h"
#include "db/blob/blob_log_format.h"
#include "db/column_family.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_maker.h"
#include "db/delta/delta_version.h"
#include "db/manifest_ops.h"
#include "db/path_layout/manifest_records.h"
#include "db/path_layout/path_layout.h"
#include "db/version_edit.h"
#include "db/version_edit_handler.h"
#include "file/filename.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Collects the files of one column family from the records of a MANIFEST.
class FamilyFiles {
 public:
  explicit FamilyFiles(const std::string& name) : name_(name) {}

  void Apply(const VersionEdit& edit, const Comparator* comparator) {
    // A file that is moved to another level is deleted and added.
    for (const auto& [level, number] : edit.GetDeletedFiles()) {
      tables_.erase(number);
    }
    for (const auto& [level, file] : edit.GetNewFiles()) {
      Table& table = tables_[file.fd.GetNumber()];
      table.level = level;
      table.path_id = file.fd.GetPathId();
      table.oldest_blob_file = file.oldest_blob_file_number;
      table.size = file.fd.GetFileSize();
      table.checksum = {file.file_checksum, file.file_checksum_func_name};
      table.blob_path_mask = PathLayout::BlobPathMask(file);
      table.is_mapped = file.blob_refs.mapped.Any();
    }
    for (const BlobFileAddition& blob : edit.GetBlobFileAdditions()) {
      BlobFile& file = blobs_[blob.GetBlobFileNumber()];
      file.path_id = blob.GetPathId();
      file.live_blobs = blob.GetTotalBlobCount();
      file.is_mapped = blob.GetIndexBytes() > 0;
      file.is_hot = blob.hot().is_hot();
      file.size = BlobLogHeader::kSize + blob.GetTotalBlobBytes() +
                  blob.GetIndexBytes() + BlobLogFooter::kSize;
      file.checksum = {blob.GetChecksumValue(), blob.GetChecksumMethod()};
    }
    for (const BlobFileGarbage& garbage : edit.GetBlobFileGarbages()) {
      const auto found = blobs_.find(garbage.GetBlobFileNumber());
      if (found != blobs_.end()) {
        uint64_t& live = found->second.live_blobs;
        live -= std::min(live, garbage.GetGarbageBlobCount());
      }
    }
    if (edit.GetDeltaEdit() != nullptr && knows_deltas_) {
      knows_deltas_ =
          comparator != nullptr &&
          deltas_
              .Apply(*edit.GetDeltaEdit(), comparator,
                     MakeDeltaFiles(/*version_set=*/nullptr,
                                    /*ioptions=*/nullptr, /*cfd=*/nullptr))
              .ok();
    }
  }

  ManifestFamily Result() const {
    ManifestFamily result;
    result.name = name_;
    std::set<uint64_t> linked;
    for (const auto& [number, table] : tables_) {
      ManifestFamily::File* const file =
          Add(kTableFile, number, table.path_id, table.size, table.checksum,
              &result);
      file->blob_path_mask = table.blob_path_mask;
      file->is_mapped = table.is_mapped;
      file->level = table.level;
      if (table.oldest_blob_file != kInvalidBlobFileNumber) {
        linked.insert(table.oldest_blob_file);
      }
    }
    for (const auto& [number, blob] : blobs_) {
      // As IsNeededBlobFile().
      const bool may_have_values =
          blob.is_mapped || (!linked.empty() && number >= *linked.begin());
      if (may_have_values &&
          (blob.live_blobs > 0 || linked.count(number) > 0)) {
        ManifestFamily::File* const file = Add(
            kBlobFile, number, blob.path_id, blob.size, blob.checksum, &result);
        file->is_mapped = blob.is_mapped;
        file->is_hot = blob.is_hot;
        file->entries = blob.live_blobs;
      }
    }
    result.has_deltas = HasDeltas();
    if (knows_deltas_ && deltas_.Current() != nullptr &&
        !deltas_.Current()->IsLoading()) {
      deltas_.Current()->ForEachFile([&](const DeltaVersion::FilePtr& file) {
        const DeltaFileDescription& description = file->description();
        Add(kDeltaFile, file->number(), description.path_id, description.size,
            {description.file_checksum, description.file_checksum_func_name},
            &result)
            ->entries = description.num_entries;
      });
    }
    return result;
  }

 private:
  // The value is empty if there is none, whatever the name of the function is.
  struct Checksum {
    std::string value;
    std::string func_name;
  };
  struct Table {
    int level = 0;
    uint32_t path_id = 0;
    uint64_t oldest_blob_file = kInvalidBlobFileNumber;
    uint64_t size = 0;
    Checksum checksum;
    uint8_t blob_path_mask = 0;
    bool is_mapped = false;
  };
  struct BlobFile {
    uint32_t path_id = 0;
    uint64_t live_blobs = 0;
    bool is_mapped = false;
    bool is_hot = false;
    uint64_t size = 0;
    Checksum checksum;
  };

  bool HasDeltas() const {
    std::shared_ptr<const DeltaVersion> current;
    return !knows_deltas_ || !deltas_.Finish(&current).ok() ||
           current != nullptr;
  }

  // Returns the file that was added, until the next one is added.
  static ManifestFamily::File* Add(FileType type, uint64_t number,
                                   uint32_t path_id, uint64_t size,
                                   const Checksum& checksum,
                                   ManifestFamily* result) {
    result->files.push_back(
        {type, number, path_id, size, checksum.value,
         checksum.value.empty() ? std::string() : checksum.func_name});
    return &result->files.back();
  }

  std::string name_;
  // The keys are file numbers.
  std::map<uint64_t, Table> tables_;
  std::map<uint64_t, BlobFile> blobs_;
  DeltaVersionBuilder deltas_;
  bool knows_deltas_ = true;
};

class FilesHandler : public VersionEditHandlerBase {
 public:
  FilesHandler(
      const ReadOptions& read_options,
      const std::function<const Comparator*(const std::string&)>& comparator_of)
      : VersionEditHandlerBase(read_options), comparator_of_(comparator_of) {
    // The MANIFEST has no record that adds the default column family.
    Add(/*id=*/0, kDefaultColumnFamilyName);
  }

  std::vector<ManifestFamily> Result() const {
    std::vector<ManifestFamily> result;
    for (const auto& [id, family] : families_) {
      result.push_back(family.files.Result());
    }
    return result;
  }

 protected:
  Status ApplyVersionEdit(VersionEdit& edit,
                          ColumnFamilyData** /*cfd*/) override {
    const uint32_t id = edit.GetColumnFamily();
    if (edit.IsColumnFamilyAdd()) {
      Add(id, edit.GetColumnFamilyName());
    } else if (edit.IsColumnFamilyDrop()) {
      families_.erase(id);
    }
    const auto family = families_.find(id);
    if (family != families_.end()) {
      family->second.files.Apply(edit, family->second.comparator);
    }
    return Status::OK();
  }

 private:
  struct Family {
    FamilyFiles files;
    const Comparator* comparator;
  };

  void Add(uint32_t id, const std::string& name) {
    families_.insert_or_assign(id,
                               Family{FamilyFiles(name), comparator_of_(name)});
  }

  const std::function<const Comparator*(const std::string&)>& comparator_of_;
  // Key: id of the family.
  std::map<uint32_t, Family> families_;
};

}  // namespace

Status FindManifest(FileSystem* fs, const std::string& dbname,
                    std::string* fname) {
  uint64_t number = 0;
  if (GetCurrentManifestPath(dbname, fs, /*is_retry=*/false, fname, &number)
          .ok() &&
      fs->FileExists(*fname, IOOptions(), nullptr).ok()) {
    return Status::OK();
  }
  std::vector<std::string> children;
  const Status s = fs->GetChildren(dbname, IOOptions(), &children, nullptr);
  uint64_t largest = 0;
  for (const std::string& child : children) {
    FileType type = kTempFile;
    if (ParseFileName(child, &number, &type) && type == kDescriptorFile) {
      largest = std::max(largest, number);
    }
  }
  if (!s.ok()) {
    // The status of a directory that is missing names nothing.
    return AppendMessage(s, dbname, " cannot be listed");
  }
  if (largest == 0) {
    return Status::NotFound(dbname, "has no MANIFEST");
  }
  *fname = DescriptorFileName(dbname, largest);
  return s;
}

Status ReadManifestFiles(
    FileSystem* fs, const std::string& fname,
    const std::function<const Comparator*(const std::string& family)>&
        comparator_of,
    std::vector<ManifestFamily>* families) {
  const ReadOptions read_options;
  FilesHandler handler(read_options, comparator_of);
  const Status s = ApplyManifestEdits(fs, fname, &handler);
  *families = handler.Result();
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
