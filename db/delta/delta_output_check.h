//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/table_reader_caller.h"

namespace ROCKSDB_NAMESPACE {

class DeltaFileReader;
class DeltaTableFactory;
class OutputValidator;
struct DeltaFileDescription;
struct ReadOptions;

// Checks a delta file that a job has written and finished, as is done with SST
// files. The file must open, since a WAL or other files are about to be deleted
// in its favor. With `written`, a validator to which each entry except range
// anchors was added as it was written, the file must have exactly these
// entries; otherwise the result is Corruption.
//
// On success the open reader is stored in description->opened, with filter and
// index in the block cache, so the first reader need not reopen the file. It is
// not stored if the block cache has no room for filter and index, or if the
// file still has a temporary name; call OpenDeltaOutput() in the latter case.
//
// If `reader` is not nullptr, *reader is set on success in all cases, for
// callers that read the file before it is in a Version. A block cache without
// room is not an error; filter and index then belong to this reader alone.
Status CheckDeltaOutput(const std::string& file_name,
                        const DeltaTableFactory& tables,
                        const ReadOptions& read_options,
                        TableReaderCaller caller,
                        const OutputValidator* written,
                        DeltaFileDescription* description,
                        std::shared_ptr<DeltaFileReader>* reader = nullptr);

// To be called after a file that was checked under a temporary name was
// renamed: sets the reader of `description` and its copies. On failure there is
// no reader, and the first read of the file reports the error.
// REQUIRES: neither `description` nor a copy is in a Version yet.
void OpenDeltaOutput(const DeltaTableFactory& tables,
                     const ReadOptions& read_options,
                     const DeltaFileDescription& description);

// To be called before a file is deleted that was passed to CheckDeltaOutput()
// or OpenDeltaOutput(): removes the reader of `description` and its copies.
// REQUIRES: neither `description` nor a copy is in a Version yet.
void CloseDeltaOutput(const DeltaFileDescription& description);

}  // namespace ROCKSDB_NAMESPACE
