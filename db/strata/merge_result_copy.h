//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <functional>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// A merge operator that has chosen one of its inputs returns a reference to it
// (MergeOperationOutput::existing_operand). An iterator keeps the reference as
// its value, which is right as long as the input stays in memory. A base value
// that was read from a blob file does not: the iterator releases it after the
// merge.
//
// If the operator has chosen the base value, copies it to *copy and makes
// *chosen a null reference, which stands for the result in *copy.
//
// Thread-safe: it has no state.
inline void CopyChosenBaseValue(const Slice& base, Slice* chosen,
                                std::string* copy) {
  const std::less_equal<const char*> is_at_or_before;
  if (chosen->data() != nullptr &&
      is_at_or_before(base.data(), chosen->data()) &&
      is_at_or_before(chosen->data() + chosen->size(),
                      base.data() + base.size())) {
    copy->assign(chosen->data(), chosen->size());
    *chosen = Slice(nullptr, 0);
  }
}

}  // namespace ROCKSDB_NAMESPACE
