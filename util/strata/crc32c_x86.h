//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// CRC-32C by the instruction of SSE 4.2, in a library that was built for any
// x86-64: RocksDB uses the instruction only if the compiler was told that the
// CPU has it.
class Crc32cX86 {
 public:
  // crc: of the data that comes before. data: size bytes.
  using Extend = uint32_t (*)(uint32_t crc, const char* data, size_t size);

  Crc32cX86() = delete;

  // Returns the function, or nullptr if the CPU does not have the instruction
  // or is not an x86-64. May be called before main().
  static Extend Find();
};

}  // namespace ROCKSDB_NAMESPACE
