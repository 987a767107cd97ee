//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "db/blob_heat/hot_mark.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// A file that a MANIFEST names.
struct FileInManifest {
  FileType type = kTableFile;  // kTableFile, kBlobFile or kDeltaFile
  uint32_t path_id = 0;
  // True for a delta file of DeltaFileDescription::Tier::kSorted.
  bool is_sorted = false;
  // The mark of a blob file.
  HotMark hot;
  // The members below are those of an SST file.
  int level = 0;
  // PathLayout::BlobPathMask().
  uint8_t blob_path_mask = 0;
  // The lowest number of the blob files to which the file may refer; 0:
  // unknown.
  uint64_t oldest_blob_file = 0;
};

// A column family at the end of a MANIFEST.
//
// Invariant: all SST files are live. Blob and delta files may be obsolete,
// because a MANIFEST does not say so of each of them.
struct ManifestColumnFamily {
  std::string name;
  // number -> file
  std::map<uint64_t, FileInManifest> files;
};

// id -> column family
using ManifestColumnFamilies = std::map<uint32_t, ManifestColumnFamily>;

// Reads the path and the level of each file that a record of the MANIFEST
// names. Copies use it, because a copy has all records. It reads an intact
// MANIFEST by ForEachManifestRecord(). Repairs use ReadManifestFiles() instead:
// that function returns only files that must exist, needs the comparators for
// it, and accepts a damaged MANIFEST.
Status ReadManifestFilePlaces(FileSystem* fs, const std::string& fname,
                              uint64_t size, ManifestColumnFamilies* families);

}  // namespace ROCKSDB_NAMESPACE
