//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <cassert>
#include <cstdint>

#include "db/path_layout/path_layout.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The path ids that the files of a column family have in a copy of it.
class PathIdMap {
 public:
  // Maps each path id to 0: for a copy in one directory.
  PathIdMap() { ids_.fill(0); }

  // Makes files of path `from` files of path `to`.
  // REQUIRES: from, to < PathLayout::kMaxPaths
  void Set(uint32_t from, uint32_t to) {
    assert(from < ids_.size() && to < ids_.size());
    ids_[from] = to;
  }

  // Returns the new id of a path.
  // REQUIRES: id < PathLayout::kMaxPaths
  uint32_t Of(uint32_t id) const {
    assert(id < ids_.size());
    return ids_[id];
  }

  // Returns the new bits of PathLayout::BlobPathMask().
  uint8_t OfMask(uint8_t mask) const {
    uint32_t result = 0;
    for (uint32_t id = 0; id < ids_.size(); ++id) {
      if ((mask >> id & 1) != 0) {
        result |= 1u << ids_[id];
      }
    }
    return static_cast<uint8_t>(result);
  }

 private:
  std::array<uint32_t, PathLayout::kMaxPaths> ids_;
};

}  // namespace ROCKSDB_NAMESPACE
