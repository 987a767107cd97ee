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
class IOTracer;
class OutputValidator;
struct DeltaFileDescription;
struct FileOptions;
struct ImmutableOptions;
struct MutableCFOptions;
struct ReadOptions;

// What a job checks of each file that it has written, beyond that the file
// opens. A failed check is Corruption, and the job fails.
struct DeltaOutputChecks {
  // The checksums of all blocks.
  bool block_checksums = false;
  // That the entries which are read back are those that were written.
  bool entries = false;
  // That the whole file has the checksum that was computed as it was written.
  // Without file_checksum_gen_factory there is none, and nothing is checked.
  bool file_checksum = false;

  // Returns the checks of merges, collections and folds, which are those of a
  // local compaction: paranoid_file_checks and verify_output_flags. (A flush
  // has `entries` with paranoid_file_checks and no other check, as in RocksDB.)
  static DeltaOutputChecks OfJobs(const MutableCFOptions& options);
};

// Returns Corruption if the file does not have the given checksum. Returns OK
// if there is no checksum.
// checksum, function: of the file, as they were computed when it was written.
Status CheckOutputFileChecksum(const std::string& file_name,
                               const std::string& checksum,
                               const std::string& function,
                               const ImmutableOptions& ioptions,
                               const FileOptions& file_options,
                               std::shared_ptr<IOTracer> io_tracer,
                               const ReadOptions& read_options);

// Checks a delta file that a job has written and finished, as is done with SST
// files. The file must open, since a WAL or other files are about to be deleted
// in its favor, and it must pass the given checks; otherwise the result is
// Corruption.
//
// written: a validator to which each entry except range anchors was added as it
//     was written; may be nullptr without checks.entries.
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
                        const DeltaOutputChecks& checks,
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
