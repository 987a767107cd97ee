//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/feature_plan.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "db/path_layout/path_layout.h"
#include "file/strata/space_needs.h"
#include "options/cf_options.h"
#include "rocksdb/file_system.h"
#include "rocksdb/merge_operator.h"
#include "util/strata/status_message.h"
#include "utilities/strata/unknown_merge_operator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the most bytes that folds write: each operand makes a value of its
// key at most. How large the values in SST files are is unknown.
uint64_t BytesOfFolds(const ManifestFeatures::Family& family) {
  uint64_t values = family.blobs.bytes;
  if (family.blobs.entries > 0) {
    const uint64_t mean = family.blobs.bytes / family.blobs.entries + 1;
    if (family.deltas.entries < values / mean) {
      values = family.deltas.entries * mean;
    }
  }
  return values + family.tables.bytes + family.deltas.bytes;
}

// Returns the path id with most bytes of SST files, the first one of several.
uint32_t PathOfMostTables(const ManifestFeatures::Family& family,
                          size_t num_paths) {
  std::vector<uint64_t> bytes(num_paths);
  for (const ManifestFamily::File& file : family.files) {
    if (file.type == kTableFile) {
      bytes[PathLayout::IndexOf(file.path_id, num_paths)] += file.size;
    }
  }
  return static_cast<uint32_t>(std::max_element(bytes.begin(), bytes.end()) -
                               bytes.begin());
}

// Returns the level in which CompactRange() leaves the files of all levels.
int LastLevelOf(const ManifestFeatures::Family& family,
                const ColumnFamilyOptions& options) {
  int last = 0;
  for (const ManifestFamily::File& file : family.files) {
    last = std::max(last, file.level);
  }
  if (options.compaction_style == kCompactionStyleUniversal ||
      (last == 0 && options.level_compaction_dynamic_level_bytes)) {
    return std::max(last, options.num_levels - 1);
  }
  return std::max(last, std::min(1, options.num_levels - 1));
}

}  // namespace

bool FeaturePlan::MovesDeltas(const ManifestFeatures::Family& family,
                              size_t num_paths) const {
  return features_.Has(FeatureSet::kLayouts) &&
         !features_.Has(FeatureSet::kDeltas) && num_paths > 1 &&
         family.distant_deltas.files > 0;
}

bool FeaturePlan::HasSstLayout(const ColumnFamilyOptions& options,
                               size_t num_paths) const {
  return num_paths > 1 &&
         (into_first_path_ || !options.level_sst_path_ids.empty());
}

uint32_t FeaturePlan::SstPathId(const ManifestFeatures::Family& family,
                                const ColumnFamilyOptions& options,
                                size_t num_paths) const {
  if (into_first_path_) {
    return 0;
  }
  return HasSstLayout(options, num_paths)
             ? PathLayout::SstPathId(MutableCFOptions(options),
                                     LastLevelOf(family, options))
             : PathOfMostTables(family, num_paths);
}

FeaturePlan::Work FeaturePlan::WorkOn(const ManifestFeatures::Family& family,
                                      size_t num_paths) const {
  const auto goes = [&](FeatureSet::Feature feature) {
    return features_.Has(feature) && family.features.Has(feature);
  };
  // With one path, the last one was given up, but the MANIFEST still has its
  // id. MigratePaths() takes such files for those of the first path.
  if (goes(FeatureSet::kMap) ||
      (goes(FeatureSet::kLayouts) && num_paths == 1)) {
    return Work::kRewrite;
  }
  if (goes(FeatureSet::kDeltas)) {
    return Work::kCompact;
  }
  return goes(FeatureSet::kLayouts) || MovesDeltas(family, num_paths) ||
                 (into_first_path_ && family.distant_tables.files > 0)
             ? Work::kMove
             : Work::kNone;
}

Status FeaturePlan::CheckWork(const ManifestFeatures::Family& family, Work work,
                              const ColumnFamilyOptions& options) {
  const std::string name = "[" + family.name + "]";
  if (work != Work::kNone && options.compaction_style == kCompactionStyleNone) {
    return Status::NotSupported(
        name,
        "compaction_style is kCompactionStyleNone, with which nothing is "
        "rewritten: open and close the database with another style first");
  }
  if (work != Work::kNone && options.compaction_style == kCompactionStyleFIFO) {
    return Status::NotSupported(
        name, "FIFO compaction never moves a file to another path");
  }
  return Status::OK();
}

bool FeaturePlan::Rewrites(Work work, const ManifestFamily::File& file) const {
  return work != Work::kMove || (file.blob_path_mask & ~1) != 0 ||
         (into_first_path_ && file.path_id != 0);
}

void FeaturePlan::AddNeeds(const ManifestFeatures::Family& family,
                           const std::vector<DbPath>& paths,
                           uint32_t sst_path_id, Family* planned) const {
  const auto write = [&](uint32_t path_id, uint64_t bytes) {
    if (bytes > 0) {
      planned->needs[PathLayout::Directory(paths, path_id)] += bytes;
      planned->bytes += bytes;
    }
  };
  for (const ManifestFamily::File& file : family.files) {
    if (file.type == kTableFile && Rewrites(planned->work, file)) {
      // A move leaves an SST file on its path unless all go to the first one.
      write(planned->work == Work::kMove && !into_first_path_ ? file.path_id
                                                              : sst_path_id,
            file.size);
    }
  }
  // Blob files, and values that folds make of operands.
  if (planned->work == Work::kRewrite) {
    write(0, family.blobs.bytes);
  } else if (features_.Has(FeatureSet::kLayouts)) {
    write(0, family.distant_blobs.bytes);
  }
  if (MovesDeltas(family, paths.size())) {
    write(0, family.distant_deltas.bytes);
  }
  if (planned->work != Work::kMove &&
      family.features.Has(FeatureSet::kDeltas)) {
    write(0, BytesOfFolds(family));
  }
}

Status FeaturePlan::Add(const ManifestFeatures::Family& family,
                        const ColumnFamilyOptions& options,
                        const std::vector<DbPath>& paths) {
  assert(!paths.empty());
  Family planned;
  planned.name = family.name;
  planned.work = WorkOn(family, paths.size());
  Status s = CheckWork(family, planned.work, options);
  if (s.ok() && features_.Has(FeatureSet::kDeltas) &&
      family.features.Has(FeatureSet::kDeltas) &&
      (options.merge_operator == nullptr ||
       UnknownMergeOperator::Is(options.merge_operator.get()))) {
    s = Status::InvalidArgument(
        "[" + family.name + "]",
        "has merge operands in delta files, and this program does not have the "
        "merge operator " +
            (options.merge_operator == nullptr
                 ? std::string("of the column family")
                 : "\"" + std::string(options.merge_operator->Name()) + "\"") +
            ", which must make values of them. Run the command in a program "
            "that registers the operator with the ObjectRegistry, or passes it "
            "to LDBTool::Run() as merge_operator of the options");
  }
  if (s.ok()) {
    if (planned.work != Work::kNone) {
      const uint32_t sst_path_id = SstPathId(family, options, paths.size());
      if (!HasSstLayout(options, paths.size())) {
        planned.target_path_id = sst_path_id;
      }
      AddNeeds(family, paths, sst_path_id, &planned);
    }
    families_.push_back(std::move(planned));
  }
  return s;
}

bool FeaturePlan::HasWork() const {
  return std::any_of(
      families_.begin(), families_.end(),
      [](const Family& family) { return family.work != Work::kNone; });
}

void FeaturePlan::SetSessionOptions(const std::vector<DbPath>& paths,
                                    ColumnFamilyOptions* options) const {
  const bool named_paths = PathLayout::NamesPaths(MutableCFOptions(*options));
  const std::vector<uint32_t> sst_path_ids = options->level_sst_path_ids;
  const std::vector<double> path_prices = options->path_prices;
  features_.ResetOptions(options);
  if (paths.size() < 2) {
    return;
  }
  options->path_prices = path_prices;
  if (options->compaction_style == kCompactionStyleFIFO) {
    // It has no layout, no blob files on other paths, and no files to move.
    return;
  }
  // SST files stay on the paths of their levels.
  options->level_sst_path_ids = sst_path_ids;
  if (features_.Has(FeatureSet::kLayouts)) {
    options->level_blob_path_ids = {0};
    if (!features_.Has(FeatureSet::kDeltas)) {
      // Sorted delta files, which stay, follow the blob files.
      options->delta_sorted_path_id = 0;
    }
    if (into_first_path_) {
      options->level_sst_path_ids = {0};
    }
  } else if (named_paths &&
             !PathLayout::NamesPaths(MutableCFOptions(*options))) {
    // The place of blob files without a layout.
    options->level_blob_path_ids = {0};
  }
}

Status FeaturePlan::CheckSpace(FileSystem* fs, uint64_t wal_bytes) const {
  for (const Family& family : families_) {
    SpaceNeeds needs;
    for (const auto& [directory, bytes] : family.needs) {
      needs.Write(directory, bytes + wal_bytes);
      needs.Require(directory);
    }
    const Status s = needs.Check(fs);
    if (!s.ok()) {
      return AppendMessage(s, ", for column family ", family.name);
    }
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
