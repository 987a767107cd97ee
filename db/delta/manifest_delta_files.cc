//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/manifest_delta_files.h"

#include <cstdint>
#include <map>
#include <set>

#include "db/column_family.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_maker.h"
#include "db/delta/delta_version.h"
#include "db/path_layout/manifest_records.h"
#include "db/version_edit.h"
#include "db/version_edit_handler.h"
#include "rocksdb/comparator.h"
#include "rocksdb/convenience.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The delta files of one column family.
class FamilyDeltaFiles {
 public:
  void Apply(const VersionEdit& edit) {
    if (edit.HasComparatorName()) {
      ConfigOptions config;
      config.ignore_unsupported_options = false;
      const Status s = Comparator::CreateFromString(
          config, edit.GetComparatorName(), &comparator_);
      if (!s.ok()) {
        comparator_ = nullptr;
      }
    }
    const DeltaEdit* const deltas = edit.GetDeltaEdit();
    if (deltas == nullptr) {
      return;
    }
    for (const DeltaFileDescription& file : deltas->files()) {
      added_.insert(file.number);
    }
    is_known_ = is_known_ && comparator_ != nullptr &&
                builder_
                    .Apply(*deltas, comparator_,
                           MakeDeltaFiles(/*version_set=*/nullptr,
                                          /*ioptions=*/nullptr,
                                          /*cfd=*/nullptr))
                    .ok();
  }

  // Returns the files that were added and that the last version does not have.
  std::set<uint64_t> Obsolete() const {
    const DeltaVersion* const version = builder_.Current();
    if (!is_known_ || (version != nullptr && version->IsLoading())) {
      return {};
    }
    std::set<uint64_t> obsolete = added_;
    if (version != nullptr) {
      version->ForEachFile([&obsolete](const DeltaVersion::FilePtr& file) {
        obsolete.erase(file->number());
      });
    }
    return obsolete;
  }

 private:
  // nullptr: unknown.
  const Comparator* comparator_ = nullptr;
  std::set<uint64_t> added_;
  DeltaVersionBuilder builder_;
  // False: an edit could not be applied.
  bool is_known_ = true;
};

class DeltaFilesHandler : public VersionEditHandlerBase {
 public:
  using VersionEditHandlerBase::VersionEditHandlerBase;

  void RemoveObsolete(FileChecksumList* list) const {
    for (const auto& [id, files] : families_) {
      for (const uint64_t number : files.Obsolete()) {
        // The file may have been added after the list was made.
        list->RemoveOneFileChecksum(number).PermitUncheckedError();
      }
    }
  }

 protected:
  Status ApplyVersionEdit(VersionEdit& edit,
                          ColumnFamilyData** /*cfd*/) override {
    if (edit.IsColumnFamilyDrop()) {
      families_.erase(edit.GetColumnFamily());
    } else {
      families_[edit.GetColumnFamily()].Apply(edit);
    }
    return Status::OK();
  }

 private:
  // Key: id of the family.
  std::map<uint32_t, FamilyDeltaFiles> families_;
};

}  // namespace

Status RemoveObsoleteDeltaFiles(FileSystem* fs, const std::string& fname,
                                FileChecksumList* list) {
  const ReadOptions read_options(
      Env::IOActivity::kGetFileChecksumsFromCurrentManifest);
  DeltaFilesHandler handler(read_options);
  Status s = ApplyManifestEdits(fs, fname, &handler);
  if (s.ok()) {
    handler.RemoveObsolete(list);
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
