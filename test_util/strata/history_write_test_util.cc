//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_write_test_util.h"

#include <cstddef>
#include <string>
#include <utility>

#include "test_util/strata/history_text_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using OpKind = HistoryModel::OpKind;

// Parses the words behind "entity KEY".
bool ParseColumns(const HistoryWords& words, HistoryModel::Columns* columns) {
  for (size_t i = 2; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) {
      return false;
    }
    const std::string column = words[i].substr(0, equals);
    (*columns)[column == HistoryText::kDefaultColumn ? "" : column] =
        HistoryText::ValueOf(words[i].substr(equals + 1));
  }
  return true;
}

}  // namespace

bool HistoryWrite::Parse(HistoryCall& c, HistoryWords words,
                         HistoryWrite* write) {
  HistoryModel::Op& op = write->op;
  op.cf = c.cf();
  HistoryArguments::TakeFamily(&words, &op.cf);
  if (c.state().families().count(op.cf) == 0 || words.size() < 2) {
    return false;
  }
  const std::string& what = words[0];
  op.key = words[1];
  if ((what == "put" || what == "merge") && words.size() == 3) {
    op.kind = what == "put" ? OpKind::kPut : OpKind::kMerge;
    op.columns[""] = HistoryText::ValueOf(words[2]);
  } else if ((what == "del" || what == "singledel") && words.size() == 2) {
    op.kind = OpKind::kDelete;
    write->is_single_delete = what == "singledel";
  } else if (what == "delrange" && words.size() == 3) {
    op.kind = OpKind::kDeleteRange;
    op.end = words[2];
  } else if (what == "entity" && words.size() > 2) {
    op.kind = OpKind::kPut;
    write->is_entity = true;
    return ParseColumns(words, &op.columns);
  } else {
    return false;
  }
  return true;
}

WideColumns HistoryWrite::ToWideColumns(const HistoryModel::Columns& columns) {
  WideColumns wide;
  for (const auto& column : columns) {
    wide.emplace_back(column.first, column.second);
  }
  return wide;
}

}  // namespace ROCKSDB_NAMESPACE
