//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The text form of paths and of path layouts, which is the same in OPTIONS
// files, option strings and the flags of all tools:
//
//   paths: <path>[:<bytes>[k|m|g|t]],...     /fast/db:100g,/slow/db
//   ids:   <id>,... or <id>:...              0,1
//
// A path without bytes has no limit, which is what RocksDB gives the directory
// of a DB without paths. In a path "%XX" stands for the byte XX, so any path
// can be written, even one with a comma or colon.

// Parses a list of paths. Returns InvalidArgument if the text is not a list, or
// if it has a zero byte. On failure *paths is unchanged.
Status ParsePathList(const std::string& text, std::vector<DbPath>* paths);

// Returns the text form of paths. It has only bytes that have no special
// meaning in an OPTIONS file or option string.
std::string PathListToString(const std::vector<DbPath>& paths);

// Parses a list of path ids. On failure *ids is unchanged.
Status ParsePathIds(const std::string& text, std::vector<uint32_t>* ids);

std::string PathIdsToString(const std::vector<uint32_t>& ids);

// Sets *options to the values of the flags --cf_paths, --level_sst_path_ids and
// --level_blob_path_ids; an empty flag changes nothing. On failure *options is
// unchanged, and the error names the flag.
Status ApplyPathFlags(const std::string& cf_paths,
                      const std::string& level_sst_path_ids,
                      const std::string& level_blob_path_ids,
                      ColumnFamilyOptions* options);

}  // namespace ROCKSDB_NAMESPACE
