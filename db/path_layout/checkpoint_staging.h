//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// A directory to which an attempt to make a checkpoint in several directories
// writes. It stands beside the directory that it is to become, and has the
// attempt in its name. So each attempt writes to, and deletes from, directories
// with its own name alone.
//
// A directory that is to be deleted gets another name first, since a rename is
// one step: afterwards its attempt can neither make files there nor commit it.
struct CheckpointStaging {
  // Returns a new text for CheckpointMark::attempt: 16 hexadecimal digits.
  static std::string NewAttempt();
  // Returns "<directory>.<attempt>.tmp".
  static std::string Name(const std::string& directory,
                          const std::string& attempt);
  // Returns "<directory>.<attempt>.gone.tmp", the name of one that is being
  // deleted.
  static std::string GoneName(const std::string& directory,
                              const std::string& attempt);
  // Finds those of all attempts that stand beside `directory`, which need not
  // exist, by their names alone.
  static Status Find(FileSystem* fs, const std::string& directory,
                     std::vector<CheckpointStaging>* found);

  // The name, and the one that it gets before it is deleted; both are the same
  // if the latter has happened.
  std::string name;
  std::string gone_name;
  std::string attempt;

  bool is_gone() const { return name == gone_name; }
};

}  // namespace ROCKSDB_NAMESPACE
