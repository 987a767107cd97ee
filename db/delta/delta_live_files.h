//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/metadata.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class DeltaVersion;
struct DeltaFileDescription;

// Returns the checksum of the file and the name of its function, as lists of
// checksums have them: without a checksum, the constants for unknown ones.
std::pair<std::string, std::string> ChecksumOf(
    const DeltaFileDescription& file);

// Functions that append the delta files of a Version to lists of a DB's files,
// in the order of DeltaVersion::ForEachFile(). `delta` may be nullptr: there
// are none.

void AppendDeltaMetaData(const DeltaVersion* delta,
                         const std::vector<DbPath>& cf_paths,
                         std::vector<DeltaMetaData>* files);

// Appends the files with the information for GetLiveFilesStorageInfo().
// with_checksums: LiveFilesStorageInfoOptions::include_checksum_info.
void AppendDeltaFileInfo(const DeltaVersion* delta,
                         const std::vector<DbPath>& cf_paths,
                         bool with_checksums,
                         std::vector<LiveFileStorageInfo>* files);

}  // namespace ROCKSDB_NAMESPACE
