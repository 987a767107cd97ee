//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_entry_stats.h"

#include <algorithm>
#include <cassert>

#include "db/version_edit.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Flags for what follows the counts in the field. None are defined; bits that
// are set belong to a newer version.
constexpr uint64_t kFlags = 0;

}  // namespace

void MappedEntryStats::EncodeTo(std::string* dst) const {
  assert(Any());
  PutVarint64(dst, kFlags);
  for (uint64_t count : {direct, versioned, unmapped, range_dels}) {
    PutVarint64(dst, count);
  }
  if (versioned > 0) {
    PutVarint64(dst, largest_versioned);
  }
  if (unmapped > 0) {
    PutVarint64(dst, largest_unmapped);
  }
  if (range_dels > 0) {
    PutVarint64(dst, largest_range_del);
  }
  PutVarint64(dst, largest_reclaimable);
}

Status MappedEntryStats::DecodeFrom(Slice input, SequenceNumber file_largest) {
  MappedEntryStats read;
  uint64_t flags = 0;
  if (!GetVarint64(&input, &flags)) {
    return Status::Corruption("mapped entries", "truncated");
  }
  if (flags != kFlags) {
    return Status::Corruption("mapped entries",
                              "unknown flags " + std::to_string(flags));
  }
  for (uint64_t* count :
       {&read.direct, &read.versioned, &read.unmapped, &read.range_dels}) {
    // No file has that many entries; the limit prevents overflow of sums.
    if (!GetVarint64(&input, count) || *count >> 56 != 0) {
      return Status::Corruption("mapped entries", "bad count");
    }
  }
  if (!read.Any()) {
    return Status::Corruption("mapped entries", "none");
  }
  const auto get_seq = [&](bool present, SequenceNumber* seq) {
    return !present || (GetVarint64(&input, seq) && *seq <= file_largest);
  };
  if (!get_seq(read.versioned > 0, &read.largest_versioned) ||
      !get_seq(read.unmapped > 0, &read.largest_unmapped) ||
      !get_seq(read.range_dels > 0, &read.largest_range_del) ||
      !get_seq(true, &read.largest_reclaimable)) {
    return Status::Corruption("mapped entries", "bad sequence number");
  }
  if (!input.empty()) {
    return Status::Corruption("mapped entries", "too long");
  }
  *this = read;
  return Status::OK();
}

std::string MappedEntryStats::DebugString() const {
  std::string text;
  if (!Any()) {
    return text;
  }
  const auto append = [&](const char* name, uint64_t count,
                          SequenceNumber largest) {
    if (count > 0) {
      text += std::string(text.empty() ? "" : " ") + name + ":" +
              std::to_string(count) + "@" + std::to_string(largest);
    }
  };
  text = "direct:" + std::to_string(direct);
  append("versioned", versioned, largest_versioned);
  append("unmapped", unmapped, largest_unmapped);
  append("range_dels", range_dels, largest_range_del);
  if (largest_reclaimable > 0) {
    text += " reclaimable@" + std::to_string(largest_reclaimable);
  }
  return text;
}

Status RefuseMapped(const VersionEdit& edit) {
  const auto& tables = edit.GetNewFiles();
  const auto& blobs = edit.GetBlobFileAdditions();
  if (std::any_of(tables.begin(), tables.end(),
                  [](const auto& level_and_file) {
                    return level_and_file.second.blob_refs.mapped.Any();
                  }) ||
      std::any_of(blobs.begin(), blobs.end(),
                  [](const auto& blob) { return blob.GetIndexBytes() > 0; })) {
    return Status::NotSupported(
        "The database has values in an address map (enable_blob_address_map): "
        "secondary and follower instances cannot read them");
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
