//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/history_call_test_util.h"
#include "test_util/strata/history_model_test_util.h"
#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

// A write as a step has it, "put KEY VALUE" and so on. The model does not
// distinguish all of them.
struct HistoryWrite {
  HistoryModel::Op op;
  bool is_single_delete = false;
  bool is_entity = false;

  // Parses one write, whose family is c.cf() unless the words name another;
  // returns false if it is none.
  static bool Parse(HistoryCall& c, HistoryWords words, HistoryWrite* write);

  // Returns the columns for a call of the DB. The result refers to *columns.
  static WideColumns ToWideColumns(const HistoryModel::Columns& columns);
};

}  // namespace ROCKSDB_NAMESPACE
