//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/manifest_features.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "db/path_layout/manifest_records.h"
#include "db/version_edit.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the features without which the record cannot be read. docs/formats.md
// describes the tags and fields.
FeatureSet FeaturesOf(const VersionEdit& edit) {
  FeatureSet features;
  if (edit.GetDeltaEdit() != nullptr) {
    features.Add(FeatureSet::kDeltas);
  }
  if (edit.HasWalBuffer()) {
    features.Add(FeatureSet::kWalBuffer);
  }
  for (const BlobFileAddition& file : edit.GetBlobFileAdditions()) {
    if (file.GetPathId() != 0) {
      features.Add(FeatureSet::kLayouts);
    }
    if (file.GetIndexBytes() != 0) {
      features.Add(FeatureSet::kMap);
    }
  }
  for (const auto& [level, file] : edit.GetNewFiles()) {
    if (file.blob_refs.mapped.Any()) {
      features.Add(FeatureSet::kMap);
    }
  }
  return features;
}

// The path id 0 alone, as a mask of path ids.
constexpr uint8_t kFirstPath = 1;

}  // namespace

Status ManifestFeatures::ReadRecords(FileSystem* fs,
                                     const std::string& dbname) {
  records_ = FeatureSet();
  comparators_.clear();
  log_numbers_.clear();
  min_log_number_to_keep_ = 0;
  Status s = FindManifest(fs, dbname, &manifest_);
  uint64_t size = 0;
  if (s.ok()) {
    s = FindEndOfManifest(fs, manifest_, &size);
  }
  if (!s.ok()) {
    return s;
  }
  // id -> name. A MANIFEST has no record that adds the first one.
  std::map<uint32_t, std::string> names = {{0, kDefaultColumnFamilyName}};
  return ForEachManifestRecord(fs, manifest_, size, [&](const Slice& record) {
    VersionEdit edit;
    const Status decoded = edit.DecodeFrom(record);
    if (!decoded.ok()) {
      return decoded;
    }
    records_.Add(FeaturesOf(edit));
    if (edit.HasMinLogNumberToKeep()) {
      min_log_number_to_keep_ =
          std::max(min_log_number_to_keep_, edit.GetMinLogNumberToKeep());
    }
    const uint32_t id = edit.GetColumnFamily();
    if (edit.IsColumnFamilyAdd()) {
      names[id] = edit.GetColumnFamilyName();
    }
    const auto found = names.find(id);
    if (found == names.end()) {
      return decoded;
    }
    if (edit.HasComparatorName()) {
      comparators_[found->second] = edit.GetComparatorName();
    }
    uint64_t& log_number = log_numbers_[id];
    if (edit.HasLogNumber()) {
      log_number = std::max(log_number, edit.GetLogNumber());
    }
    if (edit.IsColumnFamilyDrop()) {
      log_numbers_.erase(id);
      comparators_.erase(found->second);
      names.erase(found);
    }
    return decoded;
  });
}

uint64_t ManifestFeatures::MinWalNumber(bool allow_2pc) const {
  if (allow_2pc || log_numbers_.empty()) {
    return min_log_number_to_keep_;
  }
  uint64_t of_families = std::numeric_limits<uint64_t>::max();
  for (const auto& [id, number] : log_numbers_) {
    of_families = std::min(of_families, number);
  }
  return std::max(min_log_number_to_keep_, of_families);
}

ManifestFeatures::Family ManifestFeatures::Describe(
    ManifestFamily in_manifest) {
  Family family;
  family.name = std::move(in_manifest.name);
  family.files = std::move(in_manifest.files);
  for (const ManifestFamily::File& file : family.files) {
    const bool is_distant = file.path_id != 0;
    if (file.type == kDeltaFile) {
      family.deltas.Add(file);
      if (is_distant) {
        family.distant_deltas.Add(file);
      }
    } else if (file.type == kTableFile) {
      family.tables.Add(file);
      if (file.is_mapped) {
        family.mapped_tables.Add(file);
      }
      if (is_distant) {
        family.distant_tables.Add(file);
      }
      if ((file.blob_path_mask & ~kFirstPath) != 0) {
        family.tables_of_distant_blobs.Add(file);
      }
    } else if (file.type == kBlobFile) {
      family.blobs.Add(file);
      if (file.is_mapped) {
        family.mapped_blobs.Add(file);
      }
      if (file.is_hot) {
        family.hot_blobs.Add(file);
      }
      if (is_distant) {
        family.distant_blobs.Add(file);
      }
    }
  }
  if (family.mapped_tables.files + family.mapped_blobs.files > 0) {
    family.features.Add(FeatureSet::kMap);
  }
  if (in_manifest.has_deltas) {
    family.features.Add(FeatureSet::kDeltas);
  }
  if (family.distant_blobs.files > 0) {
    family.features.Add(FeatureSet::kLayouts);
  }
  return family;
}

Status ManifestFeatures::ReadFamilies(
    FileSystem* fs,
    const std::function<const Comparator*(const std::string& family)>&
        comparator_of) {
  families_.clear();
  std::vector<ManifestFamily> families;
  const Status s = ReadManifestFiles(fs, manifest_, comparator_of, &families);
  for (ManifestFamily& family : families) {
    families_.push_back(Describe(std::move(family)));
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
