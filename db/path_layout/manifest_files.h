//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class Comparator;
class FileSystem;

// The files of a column family, as a MANIFEST names them.
struct ManifestFamily {
  struct File {
    FileType type;  // kTableFile, kBlobFile or kDeltaFile
    uint64_t number;
    uint32_t path_id;
    uint64_t size;  // bytes
    // The checksum of the file, and the name of its function; both are empty if
    // the MANIFEST has none.
    std::string checksum = {};
    std::string checksum_func_name = {};
    // PathLayout::BlobPathMask() of an SST file.
    uint8_t blob_path_mask = 0;
    // An SST file with mapped entries, or a blob file of format version 2.
    bool is_mapped = false;
    // A blob file with hot values.
    bool is_hot = false;
    // The values of a blob file that are not garbage, the operands or the
    // anchors of keys of a delta file, 0 for an SST file.
    uint64_t entries = 0;
    // The level of an SST file; 0 for another file.
    int level = 0;
  };

  std::string name;
  // In no particular order.
  std::vector<File> files;
  // There are delta files or buckets, or they cannot be made out.
  bool has_deltas = false;
};

// Sets *fname to the MANIFEST that CURRENT names. If CURRENT names none, takes
// the MANIFEST with the largest number. Returns NotFound if there is none.
Status FindManifest(FileSystem* fs, const std::string& dbname,
                    std::string* fname);

// Reads which files must exist by a MANIFEST that may be damaged, without
// opening them: for repairs. ReadManifestFilePlaces(), which is for copies,
// reads an intact MANIFEST, needs no comparators, and returns levels, but also
// files that no version has any more: a copy has their records.
//
// Invariant: a family has exactly the files that its last version has. The
// result leaves out a file that the last version does not have, such as a blob
// file without live values. If the delta files of a family cannot be made out,
// they are missing.
//
// If a record cannot be read, returns the error, and *families has what the
// records before it say.
//
// comparator_of: returns the user comparator of a family; nullptr: unknown.
// families: receives the families that are not dropped.
Status ReadManifestFiles(
    FileSystem* fs, const std::string& fname,
    const std::function<const Comparator*(const std::string& family)>&
        comparator_of,
    std::vector<ManifestFamily>* families);

}  // namespace ROCKSDB_NAMESPACE
