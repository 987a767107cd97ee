//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_glob.h"

#ifndef OS_WIN
#include <fnmatch.h>
#endif

#include <cstring>

#include "db/path_layout/directory_names.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Sets *name to the only name that the pattern matches. Returns false if it can
// match others.
bool Unescape(const std::string& pattern, std::string* name) {
  name->clear();
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      c = pattern[++i];
    } else if (c == '\\' || (c != '\0' && std::strchr("*?[", c) != nullptr)) {
      return false;
    }
    name->push_back(c);
  }
  return true;
}

}  // namespace

ConfigGlob::ConfigGlob(const std::string& text) : text_(text) {
  is_literal_ = Unescape(text, &pattern_);
  if (!is_literal_) {
    pattern_ = text;
  }
}

ConfigGlob ConfigGlob::OfDatabase(const std::string& text) {
  ConfigGlob result(text);
  if (result.is_literal_) {
    result.pattern_ = CleanDirectoryName(/*fs=*/nullptr, result.pattern_);
  }
  while (!result.is_literal_ && result.pattern_.size() > 1 &&
         result.pattern_.back() == '/') {
    result.pattern_.pop_back();
  }
  return result;
}

Status ConfigGlob::Match(const std::string& name, bool* matches) const {
  if (is_literal_ || MatchesAll()) {
    *matches = MatchesAll() || (!text_.empty() && name == pattern_);
    return Status::OK();
  }
  *matches = false;
  if (name.find('\0') != std::string::npos) {
    return Status::OK();  // A pattern for text cannot mean it.
  }
#ifdef OS_WIN
  return Status::NotSupported("Windows has no fnmatch() for the pattern \"" +
                              text_ + "\"");
#else
  const int result = fnmatch(pattern_.c_str(), name.c_str(), /*flags=*/0);
  *matches = result == 0;
  return result == 0 || result == FNM_NOMATCH
             ? Status::OK()
             : Status::InvalidArgument("the pattern \"" + text_ +
                                       "\" cannot be compared with \"" + name +
                                       "\"");
#endif
}

}  // namespace ROCKSDB_NAMESPACE
