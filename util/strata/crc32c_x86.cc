//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/crc32c_x86.h"

#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#endif

namespace ROCKSDB_NAMESPACE {

#if defined(__x86_64__) && defined(__GNUC__)

namespace {

__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc,
                                                               const char* data,
                                                               size_t size) {
  uint64_t state = crc ^ 0xffffffffu;
  for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, data, sizeof(word));
    state = _mm_crc32_u64(state, word);
    data += sizeof(word);
  }
  uint32_t rest = static_cast<uint32_t>(state);
  for (; size > 0; --size) {
    rest = _mm_crc32_u8(rest, static_cast<unsigned char>(*data));
    ++data;
  }
  return rest ^ 0xffffffffu;
}

}  // namespace

Crc32cX86::Extend Crc32cX86::Find() {
  __builtin_cpu_init();  // static objects may be initialized before
  return __builtin_cpu_supports("sse4.2") ? &ExtendByInstruction : nullptr;
}

#else

Crc32cX86::Extend Crc32cX86::Find() { return nullptr; }

#endif

}  // namespace ROCKSDB_NAMESPACE
