//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/mark_text.h"

#include <cstdio>

#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the last line of a mark.
std::string ChecksumLine(const std::string& text) {
  char line[32];
  snprintf(line, sizeof(line), "crc32c %08x\n",
           static_cast<unsigned>(crc32c::Value(text.data(), text.size())));
  return line;
}

}  // namespace

std::string EncodeMark(const std::string& title,
                       const std::vector<std::string>& lines) {
  std::string text = title + "\n";
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text + ChecksumLine(text);
}

Status DecodeMark(const std::string& text, const std::string& title,
                  const std::string& what, std::vector<std::string>* lines) {
  lines->clear();
  const std::string first = title + "\n";
  const size_t checksum_size = ChecksumLine("").size();
  if (text.size() < first.size() + checksum_size ||
      text.compare(0, first.size(), first) != 0) {
    return Status::Corruption("not " + what);
  }
  const std::string sealed = text.substr(0, text.size() - checksum_size);
  if (text.substr(sealed.size()) != ChecksumLine(sealed) ||
      sealed.back() != '\n') {
    return Status::Corruption(what + " is damaged");
  }
  size_t begin = first.size();
  while (begin < sealed.size()) {
    const size_t end = sealed.find('\n', begin);
    lines->push_back(sealed.substr(begin, end - begin));
    begin = end + 1;
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
