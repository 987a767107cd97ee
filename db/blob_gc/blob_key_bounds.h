//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "db/blob_v2/blob_format_v2.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class RandomAccessFileReader;

// The smallest and the largest position of a blob file of format version 2 in
// the order of its records, which is that of the user keys and, for one key,
// newest version first.
struct BlobKeyBounds {
  struct Position {
    std::string user_key;
    SequenceNumber seq = 0;
  };

  Position smallest;
  Position largest;

  // Compares positions like the comparator of internal keys.
  static int Compare(const Comparator* comparator, const Position& a,
                     const Position& b);

  // Sets *bounds to the positions of the first and the last record of the file,
  // including dead records. Reads these two records and the record index.
  // found: set to false if the file has no records.
  // REQUIRES: layout was read from the file by BlobFileLayoutV2::Read().
  static Status Read(const RandomAccessFileReader* file,
                     const IOOptions& options, const BlobFileLayoutV2& layout,
                     BlobKeyBounds* bounds, bool* found);
};

}  // namespace ROCKSDB_NAMESPACE
