//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <cassert>
#include <utility>

#include "db/merge_helper.h"
#include "db/strata/point_read.h"
#include "db/wide/wide_column_serialization.h"
#include "rocksdb/wide_columns.h"

namespace ROCKSDB_NAMESPACE {

Status MergeHelper::TimedFullMergeImpl(
    const MergeOperator* merge_operator, const Slice& key,
    MergeOperator::MergeOperationInputV3::ExistingValue&& existing_value,
    const std::vector<Slice>& operands, Logger* logger, Statistics* statistics,
    SystemClock* clock, bool update_num_ops_stats,
    MergeOperator::OpFailureScope* op_failure_scope, std::string* result_value,
    PinnableWideColumns* result_entity, PointRead* point_read) {
  if (point_read == nullptr || !point_read->WantsMerged()) {
    return TimedFullMergeImpl(merge_operator, key, std::move(existing_value),
                              operands, logger, statistics, clock,
                              update_num_ops_stats, op_failure_scope,
                              result_value, result_entity);
  }
  std::string result;
  ValueType type = kTypeValue;
  Status s = TimedFullMergeImpl(merge_operator, key, std::move(existing_value),
                                operands, logger, statistics, clock,
                                update_num_ops_stats, op_failure_scope, &result,
                                /*result_operand=*/nullptr, &type);
  if (!s.ok()) {
    return s;
  }
  if (type == kTypeValue) {
    point_read->OnMerged(result);
    if (result_value != nullptr) {
      *result_value = std::move(result);
    } else {
      result_entity->SetPlainValue(std::move(result));
    }
    return s;
  }
  if (result_entity != nullptr) {
    return result_entity->SetWideColumnValue(std::move(result));
  }
  Slice entity(result);
  Slice default_column;
  bool is_blob_reference = false;
  s = WideColumnSerialization::GetValueOfDefaultColumn(entity, default_column,
                                                       is_blob_reference);
  assert(!is_blob_reference);
  if (s.ok()) {
    result_value->assign(default_column.data(), default_column.size());
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
