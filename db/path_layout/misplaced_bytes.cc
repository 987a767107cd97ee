//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/misplaced_bytes.h"

#include <algorithm>
#include <array>

#include "db/address_map/address_map_store.h"
#include "db/blob_heat/blob_heat_picker.h"
#include "db/column_family.h"
#include "db/delta/delta_picker.h"
#include "db/delta/delta_version.h"
#include "db/internal_stats.h"
#include "db/path_layout/path_layout.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The number of the first blob file to which misplaced SST files may refer, for
// each path.
class OldestMisplacedBlobs {
 public:
  OldestMisplacedBlobs() { oldest_.fill(UINT64_MAX); }

  void Add(const FileMetaData& file, uint8_t path_mask) {
    // A mapped value may be in any file.
    const uint64_t oldest =
        file.blob_refs.mapped.Any() ? 0 : file.oldest_blob_file_number;
    for (uint32_t id = 0; id < PathLayout::kMaxPaths; ++id) {
      if ((path_mask & (1u << id)) != 0) {
        oldest_[id] = std::min(oldest_[id], oldest);
      }
    }
  }

  bool Has(const BlobFileMetaData& file) const {
    const uint32_t home = file.hot().HomeOr(file.GetPathId());
    return home < PathLayout::kMaxPaths &&
           file.GetBlobFileNumber() >= oldest_[home];
  }

 private:
  std::array<uint64_t, PathLayout::kMaxPaths> oldest_;
};

uint64_t LiveBytes(const BlobFileMetaData& file,
                   const AddressMapStore* mapped) {
  const uint64_t garbage = file.GetGarbageBlobBytes() +
                           (mapped == nullptr ? 0 : mapped->GarbageBytes(file));
  return file.GetBlobFileSize() - std::min(garbage, file.GetBlobFileSize());
}

}  // namespace

bool MisplacedBytes::MustDrain(const BlobFileMetaData& file,
                               const MutableCFOptions& options,
                               const AddressMapStore* mapped) const {
  // Without the map, compactions move the values. A file without live values is
  // dropped.
  if (!file.hot().is_hot() || mapped == nullptr || !mapped->enabled() ||
      file.GetGarbageBlobBytes() + mapped->GarbageBytes(file) >=
          file.GetTotalBlobBytes()) {
    return false;
  }
  const auto path_of = [this](uint32_t id) {
    return static_cast<uint32_t>(PathLayout::IndexOf(id, paths_.size()));
  };
  BlobHeatPicker::Options heat;
  heat.budget = options.blob_hot_bytes;
  heat.path_id = path_of(options.blob_hot_path_id);
  BlobHeatPicker::File hot;
  hot.path_id = path_of(file.GetPathId());
  hot.hot = file.hot();
  return BlobHeatPicker::MustDrain(heat, hot);
}

MisplacedBytes MisplacedBytes::Of(ColumnFamilyData* cfd) {
  return Of(*cfd->current()->storage_info(), cfd->GetLatestMutableCFOptions(),
            cfd->ioptions().cf_paths.size(), cfd->address_map_store());
}

MisplacedBytes MisplacedBytes::Of(const VersionStorageInfo& files,
                                  const MutableCFOptions& options,
                                  size_t num_paths,
                                  const AddressMapStore* mapped) {
  MisplacedBytes result(num_paths);
  // As for compactions, see VersionStorageInfo::ComputeCompactionScore().
  if (num_paths > 1) {
    result.AddSstAndBlobFiles(files, options, mapped);
  }
  result.AddDeltaFiles(files, options);
  return result;
}

void MisplacedBytes::AddSstAndBlobFiles(const VersionStorageInfo& files,
                                        const MutableCFOptions& options,
                                        const AddressMapStore* mapped) {
  OldestMisplacedBlobs blobs;
  for (const auto& [level, file] :
       VersionStorageStrata::ListMisplacedFiles(files, options)) {
    ++num_sst_;
    if (!PathLayout::IsOnPath(options, *file, level)) {
      CountOf(file->fd.GetPathId()).Add(file->fd.GetFileSize());
    }
    blobs.Add(*file, PathLayout::MisplacedBlobMask(options, *file, level));
  }
  for (const auto& file : files.GetBlobFiles()) {
    const bool must_drain = MustDrain(*file, options, mapped);
    num_hot_ += must_drain ? 1 : 0;
    if (must_drain || blobs.Has(*file)) {
      CountOf(file->GetPathId()).Add(LiveBytes(*file, mapped));
    }
  }
}

void MisplacedBytes::AddDeltaFiles(const VersionStorageInfo& files,
                                   const MutableCFOptions& options) {
  if (files.delta() == nullptr) {
    return;
  }
  const DeltaPicker::Paths paths =
      DeltaPicker::Paths::By(options, files.num_levels());
  files.delta()->ForEachFile([&](const DeltaVersion::FilePtr& file) {
    if (paths.IsMisplaced(file->description())) {
      ++num_delta_;
      CountOf(file->description().path_id).Add(file->description().size);
    }
  });
}

MisplacedBytes::Count& MisplacedBytes::CountOf(uint32_t path_id) {
  return paths_[PathLayout::IndexOf(path_id, paths_.size())];
}

MisplacedBytes::Count MisplacedBytes::Sum() const {
  Count sum;
  for (const Count& path : paths_) {
    sum.files += path.files;
    sum.bytes += path.bytes;
  }
  return sum;
}

// The handler of the property. The DB mutex is held.
bool InternalStats::HandleMisplacedBytes(uint64_t* value, DBImpl* /*db*/,
                                         Version* /*version*/) {
  *value = MisplacedBytes::Of(cfd_).Sum().bytes;
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
