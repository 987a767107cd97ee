//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_key_bounds.h"

#include <vector>

#include "db/address_map/address_map.h"
#include "db/blob_v2/blob_record_index.h"
#include "db/blob_v2/blob_record_walker.h"
#include "file/random_access_file_reader.h"

namespace ROCKSDB_NAMESPACE {

int BlobKeyBounds::Compare(const Comparator* comparator, const Position& a,
                           const Position& b) {
  const int order = comparator->Compare(a.user_key, b.user_key);
  if (order != 0 || a.seq == b.seq) {
    return order;
  }
  return a.seq > b.seq ? -1 : 1;
}

namespace {

// Reads the position of a record.
// record: the record according to the index.
Status ReadPosition(const RandomAccessFileReader* file,
                    const IOOptions& options, const BlobFileLayoutV2& layout,
                    const AddressMap::Record& record,
                    BlobKeyBounds::Position* position) {
  BlobRecordWalker walker(file, options, layout.header.hash_seed, record.offset,
                          layout.index_offset);
  AddressMap::Record found;
  const Status s = walker.Next(&found);
  if (!s.ok()) {
    return s;
  }
  // The checksum of the key covers the value, too, which was not read. So the
  // key can only be compared with its hash in the index.
  if (!(found.name.key == record.name.key) ||
      found.name.seq != record.name.seq) {
    return CorruptBlobFile(file->file_name(), record.offset,
                           "record does not match the record index");
  }
  position->user_key = walker.key().ToString();
  position->seq = found.name.seq;
  return s;
}

}  // namespace

Status BlobKeyBounds::Read(const RandomAccessFileReader* file,
                           const IOOptions& options,
                           const BlobFileLayoutV2& layout,
                           BlobKeyBounds* bounds, bool* found) {
  *found = false;
  RecordIndexReader index(file, options, layout);
  std::vector<AddressMap::Record> records;
  AddressMap::Record first;
  AddressMap::Record last;
  do {
    const Status s = index.Next(&records);
    if (!s.ok()) {
      return s;
    }
    if (!records.empty()) {
      if (!*found) {
        first = records.front();
      }
      *found = true;
      last = records.back();
    }
  } while (!records.empty());
  if (!*found) {
    return Status::OK();
  }
  Status s = ReadPosition(file, options, layout, first, &bounds->smallest);
  if (s.ok()) {
    s = ReadPosition(file, options, layout, last, &bounds->largest);
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
