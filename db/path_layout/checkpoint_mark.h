//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <set>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// A file in each directory of a checkpoint that is not committed. It says to
// which attempt the directory belongs, which other directories the attempt has,
// and which files it has put there.
//
// The name is that of a temporary file, so that a DB that is opened with the
// directory deletes the file, whether the DB is the checkpoint (a crash after
// the commit left the mark) or another one.
struct CheckpointMark {
  // The name of the file.
  static const char* Name();

  // CheckpointStaging::NewAttempt(). In general a text without line breaks that
  // is not empty, another one in each attempt.
  std::string attempt;
  // In the mark of the checkpoint's staging directory: the names of the other
  // directories, as they are to be. In the marks of the others: the name of the
  // checkpoint's staging directory. A name with a line break is left out.
  std::set<std::string> directories;
  // The names of the files in the directory, without the mark.
  std::set<std::string> files;

  // Returns the contents of the file.
  std::string Encode() const;
  // Returns Corruption if `text` is no mark or is not complete.
  Status DecodeFrom(const std::string& text);

  // Writes the mark of a directory that has none, and syncs the file.
  Status Write(FileSystem* fs, const std::string& directory) const;
  // Returns Corruption if the file is no mark or is not complete.
  Status Read(FileSystem* fs, const std::string& directory);
};

}  // namespace ROCKSDB_NAMESPACE
