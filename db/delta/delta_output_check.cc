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
#include "db/delta/delta_tables.h"
#include "db/output_validator.h"
#include "file/filename.h"
#include "rocksdb/options.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// For readers that others use, whatever a job thinks of the blocks that it
// reads for itself; or for its own.
ReadOptions OpenOptions(const ReadOptions& read_options, bool fill_cache) {
  ReadOptions options = read_options;
  options.fill_cache = fill_cache;
  return options;
}

std::string OwnName(const DeltaTables& tables,
                    const DeltaFileDescription& description) {
  return DeltaFileName(tables.settings()->ioptions().cf_paths,
                       description.number, description.path_id);
}

}  // namespace

Status CheckDeltaOutput(const std::string& file_name, const DeltaTables& tables,
                        const ReadOptions& read_options,
                        TableReaderCaller caller,
                        const OutputValidator* written,
                        DeltaFileDescription* description) {
  assert(description->number != 0);
  assert(description->opened == nullptr);
  std::unique_ptr<DeltaFileReader> reader;
  Status s = DeltaFileReader::OpenAs(
      file_name, tables, OpenOptions(read_options, /*fill_cache=*/true),
      *description, &reader);
  // The block cache takes no more (strict_capacity_limit): no reason to fail.
  const bool has_room = !s.IsMemoryLimit();
  if (!has_room) {
    s = DeltaFileReader::OpenAs(file_name, tables,
                                OpenOptions(read_options, /*fill_cache=*/false),
                                *description, &reader);
  }
  if (s.ok() && written != nullptr) {
    const auto settings = tables.settings();
    OutputValidator found(settings->icmp(), /*enable_hash=*/true);
    const ReadOptions iter_options =
        has_room ? read_options
                 : OpenOptions(read_options, /*fill_cache=*/false);
    const std::unique_ptr<InternalIterator> iter(reader->NewIterator(
        iter_options, caller, /*arena=*/nullptr,
        static_cast<size_t>(std::min<uint64_t>(read_options.readahead_size,
                                               description->size))));
    for (iter->SeekToFirst(); s.ok() && iter->Valid(); iter->Next()) {
      s = found.Add(iter->key(), iter->value());
    }
    if (s.ok()) {
      s = iter->status();
    }
    if (s.ok() && !found.CompareValidator(*written)) {
      s = Status::Corruption(reader->file_name(),
                             "has other entries than were written to it");
    }
  }
  if (s.ok()) {
    description->opened = std::make_shared<DeltaFileDescription::Opened>();
    if (has_room && file_name == OwnName(tables, *description)) {
      description->opened->reader = std::move(reader);
    }
  }
  return s;
}

void OpenDeltaOutput(const DeltaTables& tables, const ReadOptions& read_options,
                     const DeltaFileDescription& description) {
  assert(description.opened != nullptr);
  std::unique_ptr<DeltaFileReader> reader;
  if (description.opened->reader == nullptr &&
      DeltaFileReader::Open(tables,
                            OpenOptions(read_options, /*fill_cache=*/true),
                            description, &reader)
          .ok()) {
    description.opened->reader = std::move(reader);
  }
}

}  // namespace ROCKSDB_NAMESPACE
