//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_range_size.h"

#include <algorithm>
#include <vector>

#include "db/delta/delta_file_description.h"
#include "db/delta/delta_file_meta.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "rocksdb/comparator.h"
#include "rocksdb/status.h"
#include "rocksdb/table_reader_caller.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

uint64_t DeltaRangeSize::Bytes(const Slice& start, const Slice& limit,
                               double error_margin) const {
  const Comparator* const ucmp = version_.user_comparator();
  if (ucmp->Compare(start, limit) >= 0) {
    return 0;
  }
  uint64_t bytes = 0;
  uint64_t cut_bytes = 0;
  std::vector<const DeltaFileMeta*> cut;
  version_.ForEachFile([&](const DeltaVersion::FilePtr& file) {
    const DeltaFileDescription& description = file->description();
    if (ucmp->Compare(limit, description.smallest) <= 0 ||
        ucmp->Compare(start, description.largest) > 0) {
      return;
    }
    if (ucmp->Compare(start, description.smallest) <= 0 &&
        ucmp->Compare(limit, description.largest) > 0) {
      bytes += description.size;
      return;
    }
    cut.push_back(file.get());
    cut_bytes += description.size;
  });
  if (error_margin > 0 && static_cast<double>(cut_bytes) <
                              static_cast<double>(bytes) * error_margin) {
    return bytes + cut_bytes / 2;
  }
  for (const DeltaFileMeta* const file : cut) {
    const uint64_t begin = OffsetOf(*file, start);
    const uint64_t end = OffsetOf(*file, limit);
    // The table's result is arbitrary if it cannot read a block.
    bytes += end > begin ? end - begin : 0;
  }
  return bytes;
}

uint64_t DeltaRangeSize::OffsetOf(const DeltaFileMeta& file,
                                  const Slice& user_key) const {
  const Comparator* const ucmp = version_.user_comparator();
  const DeltaFileDescription& description = file.description();
  if (ucmp->Compare(user_key, description.smallest) <= 0) {
    return 0;
  }
  if (ucmp->Compare(user_key, description.largest) > 0) {
    return description.size;
  }
  DeltaFileReader* reader = nullptr;
  if (description.num_entries != 0) {
    const Status s = store_.GetReader(read_options_, file, &reader);
    if (!s.ok()) {
      IGNORE_STATUS_IF_ERROR(s);
      reader = nullptr;
    }
  }
  return reader == nullptr
             ? description.size / 2
             : std::min(reader->ApproximateOffsetOf(
                            read_options_, user_key,
                            TableReaderCaller::kUserApproximateSize),
                        description.size);
}

}  // namespace ROCKSDB_NAMESPACE
