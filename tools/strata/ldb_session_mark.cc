//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_session_mark.h"

#include <cstdint>

#include "env/unique_id_gen.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string NewName() {
  uint64_t first = 0;
  uint64_t second = 0;
  GenerateRawUniqueId(&first, &second);
  // No character has a meaning in the value of an option.
  return "ldb_session_" + std::to_string(first) + "_" + std::to_string(second);
}

}  // namespace

LdbSessionMark::LdbSessionMark() : name_(NewName()) {}

}  // namespace ROCKSDB_NAMESPACE
