//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_description.h"

#include <tuple>

#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

namespace {

auto AsTuple(const DeltaFileDescription& file) {
  return std::tie(file.number, file.path_id, file.size, file.kind, file.tier,
                  file.first_epoch, file.last_epoch, file.smallest,
                  file.largest, file.smallest_seq, file.largest_seq,
                  file.num_entries, file.num_range_anchors, file.raw_bytes,
                  file.has_global_seq, file.unique_id, file.file_checksum,
                  file.file_checksum_func_name);
}

const char* TierName(DeltaFileDescription::Tier tier) {
  switch (tier) {
    case DeltaFileDescription::Tier::kFlushed:
      return "flushed";
    case DeltaFileDescription::Tier::kMerged:
      return "merged";
    case DeltaFileDescription::Tier::kSorted:
      return "sorted";
  }
  return "unknown";
}

}  // namespace

bool DeltaFileDescription::operator==(const DeltaFileDescription& other) const {
  return AsTuple(*this) == AsTuple(other);
}

std::string DeltaFileDescription::ToString() const {
  std::string text = "#" + std::to_string(number);
  if (path_id != 0) {
    text += " path " + std::to_string(path_id);
  }
  text += std::string(" ") + TierName(tier) +
          (kind == Kind::kOperands ? " operands" : " anchors");
  if (tier != Tier::kSorted) {
    text += " epochs [" + std::to_string(first_epoch) + ", " +
            std::to_string(last_epoch) + "]";
  }
  text += " bytes " + std::to_string(size) + " raw " +
          std::to_string(raw_bytes) + " entries " + std::to_string(num_entries);
  if (num_range_anchors > 0) {
    text += " ranges " + std::to_string(num_range_anchors);
  }
  text += has_global_seq ? " global seq " : " seqs ";
  text += "[" + std::to_string(smallest_seq) + ", " +
          std::to_string(largest_seq) + "] keys [" +
          Slice(smallest).ToString(/*hex=*/true) + ", " +
          Slice(largest).ToString(/*hex=*/true) + "]";
  return text;
}

}  // namespace ROCKSDB_NAMESPACE
