//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/path_list.h"

#include <cctype>
#include <cstring>
#include <limits>
#include <utility>

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

std::string Trim(const std::string& text) {
  const char* const blanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string::npos) {
    return "";
  }
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// Returns the items of a list; none for a blank text.
std::vector<std::string> Split(const std::string& text,
                               const char* separators) {
  std::vector<std::string> items;
  if (Trim(text).empty()) {
    return items;
  }
  size_t begin = 0;
  while (true) {
    const size_t end = text.find_first_of(separators, begin);
    if (end == std::string::npos) {
      items.push_back(Trim(text.substr(begin)));
      return items;
    }
    items.push_back(Trim(text.substr(begin, end - begin)));
    begin = end + 1;
  }
}

// Accepts decimal digits only: neither a sign nor blanks, which strtoull would
// accept.
bool ParseNumber(const std::string& digits, uint64_t max, uint64_t* number) {
  if (digits.empty()) {
    return false;
  }
  uint64_t result = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') {
      return false;
    }
    const uint64_t digit = static_cast<uint64_t>(c - '0');
    if (result > (max - digit) / 10) {
      return false;
    }
    result = result * 10 + digit;
  }
  *number = result;
  return true;
}

bool ParseBytes(const std::string& text, uint64_t* bytes) {
  std::string digits = text;
  int shift = 0;
  if (!digits.empty()) {
    const char* const units = "kmgt";
    const char unit = static_cast<char>(
        std::tolower(static_cast<unsigned char>(digits.back())));
    const char* const found = std::strchr(units, unit);
    if (unit != '\0' && found != nullptr) {
      shift = 10 * static_cast<int>(found - units + 1);
      digits.pop_back();
    }
  }
  uint64_t number;
  if (!ParseNumber(digits, kNoLimit >> shift, &number)) {
    return false;
  }
  *bytes = number << shift;
  return true;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool DecodePath(const std::string& text, std::string* path) {
  path->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      path->push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) {
      return false;
    }
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    // A path cannot contain a zero byte.
    if (high < 0 || low < 0 || (high == 0 && low == 0)) {
      return false;
    }
    path->push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return !path->empty();
}

std::string EncodePath(const std::string& path) {
  const char* const hex = "0123456789ABCDEF";
  std::string text;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') ||
                       (c != '\0' && std::strchr("/._-+@~", c) != nullptr);
    if (plain) {
      text.push_back(c);
    } else {
      text.push_back('%');
      text.push_back(hex[byte >> 4]);
      text.push_back(hex[byte & 15]);
    }
  }
  return text;
}

Status NameFlag(const char* flag, const Status& s) {
  return s.ok()
             ? s
             : Status::InvalidArgument(std::string("--") + flag, s.getState());
}

}  // namespace

Status ParsePathList(const std::string& text, std::vector<DbPath>* paths) {
  // Refused before anything else, as a message with the text would end there.
  if (text.find('\0') != std::string::npos) {
    return Status::InvalidArgument(
        "a list of paths has a zero byte, which no path can contain");
  }
  std::vector<DbPath> result;
  for (const std::string& item : Split(text, ",")) {
    DbPath path;
    path.target_size = kNoLimit;
    const size_t colon = item.rfind(':');
    if (colon != std::string::npos &&
        !ParseBytes(Trim(item.substr(colon + 1)), &path.target_size)) {
      return Status::InvalidArgument(
          "'" + item +
          "': after the colon there must be a number of bytes, such as 10g (a "
          "colon that belongs to the path is written %3A)");
    }
    if (!DecodePath(Trim(item.substr(0, colon)), &path.path)) {
      return Status::InvalidArgument(
          "'" + item +
          "': the path is empty, or a % in it is not followed by two hex "
          "digits (a % that belongs to the path is written %25)");
    }
    result.push_back(std::move(path));
  }
  *paths = std::move(result);
  return Status::OK();
}

std::string PathListToString(const std::vector<DbPath>& paths) {
  std::string text;
  for (const DbPath& path : paths) {
    if (!text.empty()) {
      text.push_back(',');
    }
    text += EncodePath(path.path);
    if (path.target_size != kNoLimit) {
      text += ":" + std::to_string(path.target_size);
    }
  }
  return text;
}

Status ParsePathIds(const std::string& text, std::vector<uint32_t>* ids) {
  std::vector<uint32_t> result;
  for (const std::string& item : Split(text, ",:")) {
    uint64_t id;
    if (!ParseNumber(item, std::numeric_limits<uint32_t>::max(), &id)) {
      return Status::InvalidArgument("'" + item + "' in '" + text +
                                     "' is not a path id");
    }
    result.push_back(static_cast<uint32_t>(id));
  }
  *ids = std::move(result);
  return Status::OK();
}

std::string PathIdsToString(const std::vector<uint32_t>& ids) {
  std::string text;
  for (const uint32_t id : ids) {
    if (!text.empty()) {
      text.push_back(':');
    }
    text += std::to_string(id);
  }
  return text;
}

Status ApplyPathFlags(const std::string& cf_paths,
                      const std::string& level_sst_path_ids,
                      const std::string& level_blob_path_ids,
                      ColumnFamilyOptions* options) {
  std::vector<DbPath> paths;
  std::vector<uint32_t> sst_ids;
  std::vector<uint32_t> blob_ids;
  Status s = NameFlag("cf_paths", ParsePathList(cf_paths, &paths));
  if (s.ok()) {
    s = NameFlag("level_sst_path_ids",
                 ParsePathIds(level_sst_path_ids, &sst_ids));
  }
  if (s.ok()) {
    s = NameFlag("level_blob_path_ids",
                 ParsePathIds(level_blob_path_ids, &blob_ids));
  }
  if (!s.ok()) {
    return s;
  }
  if (!paths.empty()) {
    options->cf_paths = std::move(paths);
  }
  if (!sst_ids.empty()) {
    options->level_sst_path_ids = std::move(sst_ids);
  }
  if (!blob_ids.empty()) {
    options->level_blob_path_ids = std::move(blob_ids);
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
