//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_live_files.h"

#include <string>
#include <tuple>

#include "db/delta/delta_version.h"
#include "db/path_layout/path_layout.h"
#include "file/filename.h"
#include "rocksdb/file_checksum.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string NameInDirectory(const DeltaFileDescription& file) {
  // Without the leading slash.
  return DeltaFileName("", file.number).substr(1);
}

DeltaMetaData::Kind KindOf(const DeltaFileDescription& file) {
  return file.kind == DeltaFileDescription::Kind::kOperands
             ? DeltaMetaData::Kind::kOperands
             : DeltaMetaData::Kind::kAnchors;
}

DeltaMetaData::Tier TierOf(const DeltaFileDescription& file) {
  switch (file.tier) {
    case DeltaFileDescription::Tier::kFlushed:
      return DeltaMetaData::Tier::kFlushed;
    case DeltaFileDescription::Tier::kMerged:
      return DeltaMetaData::Tier::kMerged;
    case DeltaFileDescription::Tier::kSorted:
      break;
  }
  return DeltaMetaData::Tier::kSorted;
}

}  // namespace

std::pair<std::string, std::string> ChecksumOf(
    const DeltaFileDescription& file) {
  if (file.file_checksum_func_name.empty()) {
    return {kUnknownFileChecksum, kUnknownFileChecksumFuncName};
  }
  return {file.file_checksum, file.file_checksum_func_name};
}

void AppendDeltaMetaData(const DeltaVersion* delta,
                         const std::vector<DbPath>& cf_paths,
                         std::vector<DeltaMetaData>* files) {
  if (delta == nullptr) {
    return;
  }
  delta->ForEachFile([&](const DeltaVersion::FilePtr& ptr) {
    const DeltaFileDescription& file = ptr->description();
    DeltaMetaData& info = files->emplace_back();
    info.file_number = file.number;
    info.relative_filename = NameInDirectory(file);
    info.directory = PathLayout::Directory(cf_paths, file.path_id);
    info.size = file.size;
    info.kind = KindOf(file);
    info.tier = TierOf(file);
    info.first_epoch = file.first_epoch;
    info.last_epoch = file.last_epoch;
    info.smallestkey = file.smallest;
    info.largestkey = file.largest;
    info.smallest_seqno = file.smallest_seq;
    info.largest_seqno = file.largest_seq;
    info.num_entries = file.num_entries;
    info.num_ranges = file.num_range_anchors;
    info.file_checksum = file.file_checksum;
    info.file_checksum_func_name = file.file_checksum_func_name;
  });
}

void AppendDeltaFileInfo(const DeltaVersion* delta,
                         const std::vector<DbPath>& cf_paths,
                         bool with_checksums,
                         std::vector<LiveFileStorageInfo>* files) {
  if (delta == nullptr) {
    return;
  }
  delta->ForEachFile([&](const DeltaVersion::FilePtr& ptr) {
    const DeltaFileDescription& file = ptr->description();
    LiveFileStorageInfo& info = files->emplace_back();
    info.relative_filename = NameInDirectory(file);
    info.directory = PathLayout::Directory(cf_paths, file.path_id);
    info.file_number = file.number;
    info.file_type = kDeltaFile;
    info.size = file.size;
    if (with_checksums) {
      std::tie(info.file_checksum, info.file_checksum_func_name) =
          ChecksumOf(file);
    }
  });
}

}  // namespace ROCKSDB_NAMESPACE
