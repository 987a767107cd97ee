//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/checkpoint_staging.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "db/path_layout/directory_names.h"
#include "env/unique_id_gen.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kDigits = 16;
constexpr char kSuffix[] = ".tmp";
constexpr char kGoneSuffix[] = ".gone.tmp";

bool IsDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

}  // namespace

std::string CheckpointStaging::NewAttempt() {
  uint64_t a = 0;
  uint64_t b = 0;
  GenerateRawUniqueId(&a, &b);
  char text[kDigits + 1];
  snprintf(text, sizeof(text), "%016" PRIx64, a ^ b);
  return text;
}

std::string CheckpointStaging::Name(const std::string& directory,
                                    const std::string& attempt) {
  return directory + "." + attempt + kSuffix;
}

std::string CheckpointStaging::GoneName(const std::string& directory,
                                        const std::string& attempt) {
  return directory + "." + attempt + kGoneSuffix;
}

Status CheckpointStaging::Find(FileSystem* fs, const std::string& directory,
                               std::vector<CheckpointStaging>* found) {
  found->clear();
  std::vector<std::string> children;
  const Status s = fs->GetChildren(ParentDirectory(directory), IOOptions(),
                                   &children, nullptr);
  if (!s.ok()) {
    return s;
  }
  std::sort(children.begin(), children.end());
  const std::string prefix =
      directory.substr(directory.find_last_of('/') + 1) + ".";
  for (const std::string& child : children) {
    if (!child.starts_with(prefix) || child.size() < prefix.size() + kDigits) {
      continue;
    }
    CheckpointStaging staging;
    staging.attempt = child.substr(prefix.size(), kDigits);
    const std::string suffix = child.substr(prefix.size() + kDigits);
    const bool is_gone = suffix == kGoneSuffix;
    if ((is_gone || suffix == kSuffix) &&
        std::all_of(staging.attempt.begin(), staging.attempt.end(), IsDigit)) {
      staging.gone_name = GoneName(directory, staging.attempt);
      staging.name =
          is_gone ? staging.gone_name : Name(directory, staging.attempt);
      found->push_back(staging);
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
