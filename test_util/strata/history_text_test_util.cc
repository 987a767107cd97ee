//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_text_test_util.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the value for "@100" or "@100:tag": it has 100 bytes and begins with
// that word.
std::string Generated(size_t size, const std::string& tag) {
  std::string value = "@" + std::to_string(size) + ":" + tag + "|";
  uint32_t x = static_cast<uint32_t>(size);
  for (const char ch : tag) {
    x = x * 31 + static_cast<unsigned char>(ch);
  }
  while (value.size() < size) {
    x = x * 1664525 + 1013904223;
    value.push_back(static_cast<char>('a' + (x >> 16) % 26));
  }
  return value;
}

}  // namespace

std::string HistoryText::ValueOf(const std::string& word) {
  if (word.empty() || word[0] != '@') {
    return word;
  }
  const size_t colon = word.find(':');
  uint64_t size = 0;
  if (!HistoryArguments::ParseNumber(word.substr(1, colon - 1), &size)) {
    return word;
  }
  return Generated(static_cast<size_t>(size),
                   colon == std::string::npos ? "" : word.substr(colon + 1));
}

std::string HistoryText::ShowValue(const std::string& value) {
  std::string shown;
  for (size_t i = 0; i < value.size();) {
    if (value[i] == '@') {
      const size_t colon = value.find(':', i);
      const size_t bar = value.find('|', i);
      uint64_t size = 0;
      if (colon != std::string::npos && bar != std::string::npos &&
          colon < bar &&
          HistoryArguments::ParseNumber(value.substr(i + 1, colon - i - 1),
                                        &size)) {
        const std::string tag = value.substr(colon + 1, bar - colon - 1);
        const std::string whole = Generated(static_cast<size_t>(size), tag);
        if (value.compare(i, whole.size(), whole) == 0) {
          shown.append("@").append(std::to_string(size));
          if (!tag.empty()) {
            shown.append(":").append(tag);
          }
          i += whole.size();
          continue;
        }
      }
    }
    shown.push_back(value[i++]);
  }
  return shown.empty() ? "\"\"" : shown;
}

std::string HistoryText::ShowColumns(const HistoryModel::Columns& columns) {
  if (columns.size() == 1 && columns.begin()->first.empty()) {
    return ShowValue(columns.begin()->second);
  }
  std::string shown = "{";
  for (const auto& column : columns) {
    if (shown.size() > 1) {
      shown.append(" ");
    }
    shown.append(column.first.empty() ? kDefaultColumn : column.first)
        .append("=")
        .append(ShowValue(column.second));
  }
  return shown.append("}");
}

std::string HistoryText::ShowContents(const HistoryModel::Contents& contents,
                                      bool reverse) {
  std::vector<std::string> lines;
  for (const auto& entry : contents) {
    lines.push_back(entry.first + "=" + ShowColumns(entry.second) + "\n");
  }
  if (reverse) {
    std::reverse(lines.begin(), lines.end());
  }
  std::string shown;
  for (const std::string& line : lines) {
    shown.append(line);
  }
  return shown;
}
}  // namespace ROCKSDB_NAMESPACE
