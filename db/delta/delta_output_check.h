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
// files: it must open, since a WAL or other files are about to go for it. With
// `written`, which was told of each entry as it was written (but not of range
// anchors), it must have just these; else Corruption.
//
// If OK, description->opened has the reader: so whoever reads the file first
// need not open it once more. Its filter and index are in the block cache. But
// not if that has no room for them, or if file_name is not yet the one that the
// file will have; OpenDeltaOutput() is for then.
//
// *reader, if it is not null, is set in any case: for who reads the file before
// it is in a Version. That the block cache has no room is no reason to fail;
// such a reader has filter and index for itself.
Status CheckDeltaOutput(const std::string& file_name,
                        const DeltaTableFactory& tables,
                        const ReadOptions& read_options,
                        TableReaderCaller caller,
                        const OutputValidator* written,
                        DeltaFileDescription* description,
                        std::shared_ptr<DeltaFileReader>* reader = nullptr);

// After a file that was checked under another name has got its own one: sets
// the reader for `description` and its copies. If that fails there is none, and
// those who read the file will see why.
// REQUIRES: none of them is in a Version yet.
void OpenDeltaOutput(const DeltaTableFactory& tables,
                     const ReadOptions& read_options,
                     const DeltaFileDescription& description);

// Before a file that was checked, or opened so, is deleted: copies of its
// description have no reader, either.
// REQUIRES: as above.
void CloseDeltaOutput(const DeltaFileDescription& description);

}  // namespace ROCKSDB_NAMESPACE
