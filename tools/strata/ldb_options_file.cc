//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_options_file.h"

#include <cstdint>
#include <functional>
#include <map>

#include "file/filename.h"
#include "file/strata/durable_files.h"
#include "options/strata/options_file_copy.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/options_util.h"

namespace ROCKSDB_NAMESPACE {

Status LdbOptionsFile::ReadNewest(Env* env, const std::string& dbname,
                                  std::string* name, std::string* text) {
  const Status s = GetLatestOptionsFileName(dbname, env, name);
  return s.ok() ? ReadFileToString(env, dbname + "/" + *name, text) : s;
}

Status LdbOptionsFile::Load(Env* env, const std::string& dbname) {
  env_ = env;
  dbname_ = dbname;
  return ReadNewest(env, dbname, &name_, &text_);
}

Status LdbOptionsFile::List(std::vector<std::string>* names) const {
  std::vector<std::string> children;
  const Status s = env_->GetChildren(dbname_, &children);
  std::map<uint64_t, std::string, std::greater<>> by_number;
  for (const std::string& child : children) {
    uint64_t number = 0;
    FileType type = kInfoLogFile;
    if (ParseFileName(child, &number, &type) && type == kOptionsFile) {
      by_number[number] = child;
    }
  }
  names->clear();
  for (const auto& [number, child] : by_number) {
    names->push_back(child);
  }
  return s;
}

Status LdbOptionsFile::Opened() const {
  return Status::Busy(
      dbname_,
      "was opened by another process meanwhile. Run the command again");
}

Status LdbOptionsFile::ReadFiles(Files* files) const {
  std::vector<std::string> names;
  Status s = List(&names);
  for (size_t i = 0; s.ok() && i < names.size(); ++i) {
    std::string text;
    s = ReadFileToString(env_, PathOf(names[i]), &text);
    if (i > 0 && (s.IsNotFound() || s.IsPathNotFound())) {
      // The open may delete old ones in the background.
      names.resize(i);
      s = Status::OK();
    } else if (s.ok() && !mark_->IsIn(text)) {
      files->other = text;
      break;
    } else if (s.ok() && ++files->num_own == 1) {
      files->own = text;
    }
  }
  files->names = names;
  return s;
}

bool LdbOptionsFile::Files::Follows(const std::string& name) const {
  for (size_t i = 0; i < names.size() && i <= num_own; ++i) {
    if (names[i] == name) {
      return true;
    }
  }
  return false;
}

Status LdbOptionsFile::KeepAfterOpen() {
  Files files;
  Status s = ReadFiles(&files);
  if (s.ok() && files.num_own == 0) {
    // The number of what the open has written is too small: the newest file is
    // the one from before.
    s = CheckNewest();
  }
  if (!s.ok() || files.num_own == 0) {
    return s;
  }
  const bool is_first = files.Follows(name_);
  name_ = files.names[0];
  s = Replace(!is_first && files.HasOther()
                  ? files.other
                  : OptionsFileCopy::WithOwnOptionsOf(text_, files.own));
  return s.ok() && !is_first ? Opened() : s;
}

Status LdbOptionsFile::CheckNewest() const {
  std::string newest;
  const Status s = GetLatestOptionsFileName(dbname_, env_, &newest);
  return s.ok() && newest != name_ ? Opened() : s;
}

Status LdbOptionsFile::Replace(const std::string& text) const {
  uint64_t number = 0;
  FileType type = kInfoLogFile;
  if (!ParseFileName(name_, &number, &type)) {
    return Status::InvalidArgument(PathOf(name_),
                                   "is no name of an OPTIONS file");
  }
  std::string current;
  const Status s = ReadFileToString(env_, PathOf(name_), &current);
  return s.ok() && text != current
             ? ReplaceFile(env_->GetFileSystem().get(), dbname_,
                           TempOptionsFileName("", number).substr(1), name_,
                           text)
             : s;
}

}  // namespace ROCKSDB_NAMESPACE
