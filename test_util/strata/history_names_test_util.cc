//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_names_test_util.h"

#include <cctype>

namespace ROCKSDB_NAMESPACE {

std::string HistoryNames::FileName(char kind, uint64_t number) {
  size_t& name = file_names_[{kind, number}];
  if (name == 0) {
    name = ++num_file_names_[kind];
  }
  return kind + std::to_string(name);
}

std::string HistoryNames::FindFileName(char kind, uint64_t number) const {
  const auto it = file_names_.find({kind, number});
  return it == file_names_.end() ? "" : kind + std::to_string(it->second);
}

std::string HistoryNames::Mask(const std::string& text) const {
  std::string masked;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, root_.size() + 1, root_ + "/") == 0) {
      i += root_.size() + 1;
      continue;
    }
    size_t digits = i;
    while (digits < text.size() &&
           isdigit(static_cast<unsigned char>(text[digits])) != 0) {
      ++digits;
    }
    if (digits - i >= 6) {
      masked.append("N");
      i = digits;
    } else if (digits > i) {
      masked.append(text, i, digits - i);
      i = digits;
    } else {
      masked.push_back(text[i++]);
    }
  }
  return masked;
}

}  // namespace ROCKSDB_NAMESPACE
