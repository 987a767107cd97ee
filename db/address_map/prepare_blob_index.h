// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cassert>

#include "db/dbformat.h"
#include "rocksdb/status.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

// Loads the value of the entry at which an iterator that was made with
// allow_unprepared_value stands. A scan for blob indexes needs no other values:
// those that an SST file embeds are read from the device one by one.
// *key: in: the entry's key. out: the same, where it is now. The bytes may have
//     moved.
// REQUIRES: iter->Valid(). key->type is kTypeBlobIndex
inline Status PrepareBlobIndex(InternalIterator* iter, ParsedInternalKey* key) {
  assert(key->type == kTypeBlobIndex);
  if (!iter->PrepareValue()) {
    assert(!iter->status().ok());
    return iter->status();
  }
  return ParseInternalKey(iter->key(), key, /*log_err_key=*/false);
}

}  // namespace ROCKSDB_NAMESPACE
