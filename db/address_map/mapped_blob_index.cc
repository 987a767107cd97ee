//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_blob_index.h"

#include <cassert>

#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

Status MappedBlobIndex::DecodeFrom(const Slice& value) {
  if (!IsMapped(value)) {
    return Status::Corruption("Mapped blob index", "unknown type");
  }
  Slice rest(value.data() + 1, value.size() - 1);
  uint64_t number = 0;
  if (!GetVarint64(&rest, &number)) {
    return Status::Corruption("Mapped blob index", "bad birth");
  }
  // GetVarint64() also accepts numbers that are padded with zero bits or have
  // more than 64 bits.
  char canonical[kMaxVarint64Length];
  const char* const end = EncodeVarint64(canonical, number);
  if (Slice(value.data() + 1, value.size() - 1) !=
      Slice(canonical, static_cast<size_t>(end - canonical))) {
    return Status::Corruption("Mapped blob index", "bad length");
  }
  mode = static_cast<Mode>(static_cast<unsigned char>(value[0]));
  birth = number;
  return Status::OK();
}

void MappedBlobIndex::EncodeTo(std::string* dst) const {
  assert(dst != nullptr);
  dst->assign(1, static_cast<char>(mode));
  PutVarint64(dst, birth);
}

std::string MappedBlobIndex::DebugString() const {
  return std::string("[mapped blob] mode:") +
         (mode == Mode::kDirect ? "direct" : "versioned") +
         " birth:" + std::to_string(birth);
}

}  // namespace ROCKSDB_NAMESPACE
