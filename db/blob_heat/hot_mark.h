//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cassert>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Says whether a blob file has hot values (blob_hot_bytes), and where these
// belong otherwise: the path from which they were taken, their *home*. For the
// layout of levels, a hot value counts as being on its home path.
class HotMark {
 public:
  // Not hot.
  HotMark() = default;
  static HotMark WithHome(uint32_t path_id) {
    return HotMark(static_cast<uint8_t>(path_id + 1));
  }
  // code: the result of code().
  static HotMark FromCode(uint8_t code) { return HotMark(code); }

  bool is_hot() const { return code_ != 0; }
  // Returns the id of the home path.
  // REQUIRES: is_hot().
  uint32_t home() const {
    assert(is_hot());
    return code_ - uint32_t{1};
  }
  // Returns where the values of a file on path `path_id` belong.
  uint32_t HomeOr(uint32_t path_id) const {
    return is_hot() ? home() : path_id;
  }
  // Returns 0 if not hot.
  uint8_t code() const { return code_; }

  bool operator==(const HotMark&) const = default;
  bool operator<(const HotMark& other) const { return code_ < other.code_; }

 private:
  explicit HotMark(uint8_t code) : code_(code) {}

  uint8_t code_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
