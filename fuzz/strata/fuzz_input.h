//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "util/coding.h"
#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {
namespace fuzz {

// Ends the process unless the condition holds. Builds without assertions check
// it, too.
inline void Require(bool condition) {
  if (!condition) {
    abort();
  }
}

// Takes the input of a fuzz target apart: into numbers, bytes and keys, from
// its beginning to its end.
//
// Invariant: All of an input is meaningful. Once it is used up, numbers are 0
// and strings are empty, so a fuzzer can shorten and extend every input.
//
// At most one argument of a call, and one operand of an operator, should take
// something: compilers evaluate them in different orders, and an input must
// mean the same in each build.
//
// Not thread-safe.
class FuzzInput {
 public:
  // REQUIRES: the data outlive this object.
  FuzzInput(const uint8_t* data, size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  uint8_t Byte() {
    if (rest_.empty()) {
      return 0;
    }
    const uint8_t byte = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return byte;
  }
  bool Bool() { return Byte() % 2 != 0; }

  // Returns a number of up to 64 bits. A byte says how many bytes it has.
  uint64_t Number() {
    uint64_t number = 0;
    for (int n = Byte() % 9; n > 0; --n) {
      number = number << 8 | Byte();
    }
    return number;
  }
  // Returns a number below the limit.
  // REQUIRES: 0 < limit <= 65536.
  uint32_t Below(uint32_t limit) {
    const uint32_t high = Byte();
    return (high << 8 | Byte()) % limit;
  }

  // Returns n bytes, or fewer at the end of the input.
  std::string Bytes(size_t n) {
    n = std::min(n, rest_.size());
    std::string bytes(rest_.data(), n);
    rest_.remove_prefix(n);
    return bytes;
  }
  // Returns at most `max` bytes. The first byte says how many.
  // REQUIRES: max < 256.
  std::string String(size_t max) { return Bytes(Byte() % (max + 1)); }
  // Returns a key of at most `max` bytes. Keys are often equal.
  std::string Key(size_t max = 1) {
    std::string key;
    for (; max > 0; --max) {
      const uint8_t byte = Byte();
      if (byte != 0) {
        key.push_back(static_cast<char>('a' + byte % 16));
      }
    }
    return key;
  }

  bool empty() const { return rest_.empty(); }
  std::string Rest() const { return rest_.ToString(); }

 private:
  Slice rest_;
};

// Changes *bytes in ways in which files are damaged: other bits, bytes that are
// missing, bytes that are too many, a piece of the file in another place.
// Keeps the size if !may_resize. Ends at a byte of the input that says so, at
// the end of the input, and after kMaxChanges changes.
inline void Damage(FuzzInput* input, bool may_resize, std::string* bytes) {
  constexpr int kMaxChanges = 8;
  constexpr size_t kMaxPiece = 64;
  for (int i = 0; i < kMaxChanges && !input->empty() && !bytes->empty(); ++i) {
    const uint8_t how = input->Byte();
    const size_t at = input->Below(65536) % bytes->size();
    const size_t n =
        std::min(input->Byte() % kMaxPiece + 1, bytes->size() - at);
    switch (how % 6) {
      case 0:
        return;
      case 1:
        (*bytes)[at] = static_cast<char>((*bytes)[at] ^ input->Byte());
        break;
      case 2:
        bytes->replace(at, n, n, static_cast<char>(input->Byte()));
        break;
      case 3: {
        const size_t from = input->Below(65536) % (bytes->size() - n + 1);
        bytes->replace(at, n, std::string(*bytes, from, n));
        break;
      }
      case 4:
        if (may_resize) {
          bytes->erase(at, how % 4 == 0 ? std::string::npos : n);
        }
        break;
      default:
        if (may_resize) {
          bytes->insert(at, input->Bytes(n));
        }
        break;
    }
  }
}

// Writes the checksum of bytes [begin, end) of *bytes to the position `at`, as
// our formats have it. Does nothing if a position is beyond the end.
// REQUIRES: begin <= end.
inline void RepairChecksum(size_t begin, size_t end, size_t at,
                           std::string* bytes) {
  if (end <= bytes->size() && at + sizeof(uint32_t) <= bytes->size()) {
    EncodeFixed32(bytes->data() + at, crc32c::Mask(crc32c::Value(
                                          bytes->data() + begin, end - begin)));
  }
}

}  // namespace fuzz
}  // namespace ROCKSDB_NAMESPACE
