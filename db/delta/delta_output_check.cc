//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_output_check.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>

#include "db/delta/delta_file_description.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_table_factory.h"
#include "db/output_validator.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "options/cf_options.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/options.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

ReadOptions With(const ReadOptions& read_options, bool fill_cache) {
  ReadOptions options = read_options;
  options.fill_cache = fill_cache;
  return options;
}

// Opens a reader for shared use, so that it fills the block cache even if the
// job does not do so for its own reads.
// *is_whole: set to true if the block cache had room for all blocks that the
// reader keeps.
Status OpenForOthers(const std::string& file_name,
                     const DeltaTableFactory& tables,
                     const ReadOptions& read_options,
                     const DeltaFileDescription& description, bool* is_whole,
                     std::unique_ptr<DeltaFileReader>* reader) {
  const Status s = DeltaFileReader::OpenAs(
      file_name, tables, With(read_options, /*fill_cache=*/true), description,
      reader);
  *is_whole = s.ok() && !(*reader)->LacksFilter();
  return s;
}

std::string OwnName(const DeltaTableFactory& tables,
                    const DeltaFileDescription& description) {
  return DeltaFileName(tables.settings()->ioptions().cf_paths,
                       description.number, description.path_id);
}

}  // namespace

DeltaOutputChecks DeltaOutputChecks::OfJobs(const MutableCFOptions& options) {
  VerifyOutputFlags flags = options.verify_output_flags;
  if (options.paranoid_file_checks) {
    flags |= VerifyOutputFlags::kVerifyIteration |
             VerifyOutputFlags::kEnableForLocalCompaction;
  }
  const auto has = [flags](VerifyOutputFlags flag) { return !!(flags & flag); };
  DeltaOutputChecks checks;
  // The jobs always run in this process, so the flag for remote compactions
  // does not matter.
  if (has(VerifyOutputFlags::kEnableForLocalCompaction)) {
    checks.block_checksums = has(VerifyOutputFlags::kVerifyBlockChecksum);
    checks.entries = has(VerifyOutputFlags::kVerifyIteration);
    checks.file_checksum = has(VerifyOutputFlags::kVerifyFileChecksum);
  }
  return checks;
}

Status CheckOutputFileChecksum(const std::string& file_name,
                               const std::string& checksum,
                               const std::string& function,
                               const ImmutableOptions& ioptions,
                               const FileOptions& file_options,
                               std::shared_ptr<IOTracer> io_tracer,
                               const ReadOptions& read_options) {
  FileChecksumGenFactory* const factory =
      ioptions.file_checksum_gen_factory.get();
  if (factory == nullptr || checksum == kUnknownFileChecksum) {
    return Status::OK();
  }
  std::string found;
  std::string found_function;
  Status s = GenerateOneFileChecksum(
      ioptions.fs.get(), file_name, factory, function, &found, &found_function,
      read_options.readahead_size, ioptions.allow_mmap_reads, io_tracer,
      ioptions.rate_limiter.get(), read_options, ioptions.stats, ioptions.clock,
      file_options);
  if (s.ok() && found != checksum) {
    s = Status::Corruption(
        file_name, "does not have the file checksum of what was written to it");
  }
  return s;
}

Status CheckDeltaOutput(const std::string& file_name,
                        const DeltaTableFactory& tables,
                        const ReadOptions& read_options,
                        TableReaderCaller caller,
                        const DeltaOutputChecks& checks,
                        const OutputValidator* written,
                        DeltaFileDescription* description,
                        std::shared_ptr<DeltaFileReader>* reader) {
  assert(description->number != 0);
  assert(description->opened == nullptr);
  assert(!checks.entries || written != nullptr);
  // For blocks that only the check reads, or for which the cache has no room.
  const ReadOptions uncached = With(read_options, /*fill_cache=*/false);
  std::unique_ptr<DeltaFileReader> checked;
  bool is_whole = false;
  Status s = OpenForOthers(file_name, tables, read_options, *description,
                           &is_whole, &checked);
  if (!is_whole && (s.ok() || s.IsMemoryLimit())) {
    s = DeltaFileReader::OpenAs(file_name, tables, uncached, *description,
                                &checked);
  }
  const auto settings = tables.settings();
  if (s.ok() && checks.block_checksums) {
    // The other check reads the blocks with entries.
    s = checked->VerifyChecksum(uncached, /*meta_blocks_only=*/checks.entries);
  }
  if (s.ok() && checks.entries) {
    OutputValidator found(settings->icmp(), /*enable_hash=*/true);
    const std::unique_ptr<InternalIterator> iter(checked->NewIterator(
        uncached, caller, /*arena=*/nullptr,
        static_cast<size_t>(std::min<uint64_t>(read_options.readahead_size,
                                               description->size))));
    for (iter->SeekToFirst(); s.ok() && iter->Valid(); iter->Next()) {
      s = found.Add(iter->key(), iter->value());
    }
    if (s.ok()) {
      s = iter->status();
    }
    if (s.ok() && !found.CompareValidator(*written)) {
      s = Status::Corruption(
          checked->file_name(),
          "does not have the entries that were written to it");
    }
  }
  if (s.ok() && checks.file_checksum) {
    s = CheckOutputFileChecksum(
        file_name, description->file_checksum,
        description->file_checksum_func_name, settings->ioptions(),
        settings->family->file_options, settings->family->io_tracer, uncached);
  }
  if (s.ok()) {
    const std::shared_ptr<DeltaFileReader> shared = std::move(checked);
    description->opened = std::make_shared<DeltaFileDescription::Opened>();
    if (is_whole && file_name == OwnName(tables, *description)) {
      description->opened->reader = shared;
    }
    if (reader != nullptr) {
      *reader = shared;
    }
  }
  return s;
}

void OpenDeltaOutput(const DeltaTableFactory& tables,
                     const ReadOptions& read_options,
                     const DeltaFileDescription& description) {
  assert(description.opened != nullptr);
  std::unique_ptr<DeltaFileReader> reader;
  bool is_whole = false;
  if (description.opened->reader == nullptr &&
      OpenForOthers(OwnName(tables, description), tables, read_options,
                    description, &is_whole, &reader)
          .ok() &&
      is_whole) {
    description.opened->reader = std::move(reader);
  }
}

void CloseDeltaOutput(const DeltaFileDescription& description) {
  assert(description.opened != nullptr);
  description.opened->reader.reset();
}

}  // namespace ROCKSDB_NAMESPACE
