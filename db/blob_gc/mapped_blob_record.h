//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "db/address_map/map_name.h"
#include "db/blob_v2/blob_format_v2.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// A record of a blob file of format version 2, in memory.
struct MappedBlobRecord {
  BlobRecordV2 header;
  // Parts of the bytes that were parsed.
  Slice key;
  Slice value;  // as it is stored in the file

  // Parses and verifies the record that has the name. The caller compares the
  // key with that of the name.
  // bytes: the record, and nothing else.
  Status Parse(const Slice& bytes, const MapName& name);
};

}  // namespace ROCKSDB_NAMESPACE
