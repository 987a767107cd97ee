//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;
class VersionEditHandlerBase;

// Calls fn(record) for each record of a MANIFEST, in their order, until fn
// returns an error.
//
// The MANIFEST may be the one that an open DB is appending records to: bytes
// behind the first `size` are not read.
//
// fname: the MANIFEST.
// size: bytes, the end of a record in the MANIFEST.
//
// Returns the error of fn. A Corruption, also one of fn, names file and offset.
// Returns Corruption if a record cannot be read or `size` is not the end of
// one.
Status ForEachManifestRecord(
    FileSystem* fs, const std::string& fname, uint64_t size,
    const std::function<Status(const Slice& record)>& fn);

// Has the handler apply the edits that a recovery would apply. Returns the
// status of the handler.
//
// fname: the MANIFEST.
//
// REQUIRES: no DB is appending records to the MANIFEST
Status ApplyManifestEdits(FileSystem* fs, const std::string& fname,
                          VersionEditHandlerBase* handler);

// Sets *end to the end, in bytes, of what a recovery reads: a last record, or a
// last atomic group, that is incomplete is not part of it. Returns Corruption,
// which names the file, if a recovery would.
//
// REQUIRES: no DB is appending records to the MANIFEST
Status FindEndOfManifest(FileSystem* fs, const std::string& fname,
                         uint64_t* end);

}  // namespace ROCKSDB_NAMESPACE
