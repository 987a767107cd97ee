//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <string>

#include "db/db_iter.h"
#include "db/merged_value/merged_value_cache.h"
#include "db/merged_value/merged_value_iteration.h"

namespace ROCKSDB_NAMESPACE {

bool DBIter::SetKnownValue(const MergedValueCache::Ref& known, bool steps) {
  merged_values_.OnUse();
  if (merge_context_.GetNumOperands() == 0) {
    std::string& value = value_columns_state_.mut()->saved_value();
    value.assign(known.value().data(), known.value().size());
    SetValueAndColumnsFromPlain(value);
    valid_ = true;
  } else if (!MergeWithPlainBaseValue(known.value(), saved_key_.GetUserKey())) {
    return false;
  }
  if (steps) {
    iter_.Next();
    if (!iter_.status().ok()) {
      valid_ = false;
      return false;
    }
  }
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
