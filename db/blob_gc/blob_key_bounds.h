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

// Where a blob file of version 2 begins and ends in the order of its records:
// that of user keys and, for one key, the newest version first.
struct BlobKeyBounds {
  struct Position {
    std::string user_key;
    SequenceNumber seq = 0;
  };

  Position smallest;
  Position largest;

  // As the comparator of internal keys would.
  static int Compare(const Comparator* comparator, const Position& a,
                     const Position& b);

  // Of all records of the file, dead ones among them: the first and the last
  // one. Reads those two and the record index. found: whether there are any.
  // REQUIRES: layout is what BlobFileLayoutV2::Read() said of the file.
  static Status Read(const RandomAccessFileReader* file,
                     const IOOptions& options, const BlobFileLayoutV2& layout,
                     BlobKeyBounds* bounds, bool* found);
};

}  // namespace ROCKSDB_NAMESPACE
