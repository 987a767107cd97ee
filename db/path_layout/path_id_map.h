//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <unordered_map>

#include "db/path_layout/path_layout.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The path ids that the files of a column family have in a copy of it. A file
// has its own id, if it was given one, or that of its path. The home of a hot
// blob file (HotMark) is a path by which the masks of SST files know the file,
// so it is mapped in the same way.
class PathIdMap {
 public:
  // Maps each path id to 0: for a copy in one directory.
  PathIdMap() { ids_.fill(0); }

  // Makes files of path `from` files of path `to`, unless they have their own
  // id.
  // REQUIRES: from, to < PathLayout::kMaxPaths
  void Set(uint32_t from, uint32_t to) {
    assert(from < ids_.size() && to < ids_.size());
    ids_[from] = to;
  }

  // Gives an SST or delta file an id of its own.
  // REQUIRES: to < PathLayout::kMaxPaths
  void SetFile(uint64_t number, uint32_t to) {
    assert(to < ids_.size());
    files_[number] = to;
  }

  // Gives a blob file of path `from` an id of its own.
  // REQUIRES: from, to < PathLayout::kMaxPaths
  void SetBlobFile(uint64_t number, uint32_t from, uint32_t to) {
    assert(from < ids_.size());
    SetFile(number, to);
    last_blob_file_[from][to] = std::max(last_blob_file_[from][to], number);
  }
  // Gives a hot blob file an id of its own, and a home: `from` in the original
  // and `home` in the copy. The file is not hot in the copy if both are equal.
  // REQUIRES: from, home, to < PathLayout::kMaxPaths
  void SetHotFile(uint64_t number, uint32_t from, uint32_t home, uint32_t to) {
    SetBlobFile(number, from, home);
    SetFile(number, to);
    homes_[number] = home;
  }

  // Returns the new id of a path.
  // REQUIRES: id < PathLayout::kMaxPaths
  uint32_t Of(uint32_t id) const {
    assert(id < ids_.size());
    return ids_[id];
  }

  // Returns the new id of a file of path `id`.
  // REQUIRES: id < PathLayout::kMaxPaths
  uint32_t OfFile(uint64_t number, uint32_t id) const {
    const auto found = files_.find(number);
    return found == files_.end() ? Of(id) : found->second;
  }

  // Returns the new home of a hot blob file with the home `id`.
  // REQUIRES: id < PathLayout::kMaxPaths
  uint32_t HomeOf(uint64_t number, uint32_t id) const {
    const auto found = homes_.find(number);
    return found == homes_.end() ? Of(id) : found->second;
  }

  // Returns the new bits of PathLayout::BlobPathMask() of an SST file: those of
  // all paths to which blob files that it may refer to go.
  // oldest_blob_file: the lowest number of these blob files; 0: unknown.
  uint8_t OfMask(uint8_t mask, uint64_t oldest_blob_file = 0) const {
    uint32_t result = 0;
    for (uint32_t id = 0; id < ids_.size(); ++id) {
      if ((mask >> id & 1) != 0) {
        result |= BlobPathsOf(id, oldest_blob_file);
      }
    }
    return static_cast<uint8_t>(result);
  }

 private:
  // Returns the paths to which the blob files of path `id` go.
  uint32_t BlobPathsOf(uint32_t id, uint64_t oldest_blob_file) const {
    uint32_t paths = 0;
    for (uint32_t to = 0; to < ids_.size(); ++to) {
      const uint64_t last = last_blob_file_[id][to];
      if (last != 0 && last >= oldest_blob_file) {
        paths |= 1u << to;
      }
    }
    return paths != 0 ? paths : 1u << ids_[id];
  }

  std::array<uint32_t, PathLayout::kMaxPaths> ids_;
  std::unordered_map<uint64_t, uint32_t> files_;
  std::unordered_map<uint64_t, uint32_t> homes_;
  // [from][to] -> the highest number of the blob files; 0: there is none.
  std::array<std::array<uint64_t, PathLayout::kMaxPaths>, PathLayout::kMaxPaths>
      last_blob_file_{};
};

}  // namespace ROCKSDB_NAMESPACE
