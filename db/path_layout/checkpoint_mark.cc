//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/checkpoint_mark.h"

#include <vector>

#include "db/path_layout/mark_text.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kCheckpointTitle[] = "Strata checkpoint in progress";
// Stands before the name of a directory. No file on a path has such a name.
constexpr char kDirectory[] = "directory ";

}  // namespace

// The number 0 would be taken for that of a pending MANIFEST, whose temporary
// file is kept.
const char* CheckpointMark::Name() { return "000001.dbtmp"; }

std::string CheckpointMark::Encode() const {
  std::vector<std::string> lines = {attempt};
  for (const std::string& directory : directories) {
    if (directory.find('\n') == std::string::npos) {
      lines.push_back(kDirectory + directory);
    }
  }
  lines.insert(lines.end(), files.begin(), files.end());
  return EncodeMark(kCheckpointTitle, lines);
}

Status CheckpointMark::DecodeFrom(const std::string& text) {
  attempt.clear();
  directories.clear();
  files.clear();
  std::vector<std::string> lines;
  const Status s =
      DecodeMark(text, kCheckpointTitle, "the mark of a checkpoint", &lines);
  if (!s.ok()) {
    return s;
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (i == 0) {
      attempt = line;
    } else if (line.rfind(kDirectory, 0) == 0) {
      directories.insert(line.substr(sizeof(kDirectory) - 1));
    } else {
      files.insert(line);
    }
  }
  return attempt.empty()
             ? Status::Corruption("the mark of a checkpoint has no attempt")
             : Status::OK();
}

Status CheckpointMark::Write(FileSystem* fs,
                             const std::string& directory) const {
  return WriteStringToFile(fs, Encode(), directory + "/" + Name(),
                           /*should_sync=*/true);
}

Status CheckpointMark::Read(FileSystem* fs, const std::string& directory) {
  std::string text;
  const Status s = ReadFileToString(fs, directory + "/" + Name(), &text);
  return s.ok() ? DecodeFrom(text) : s;
}

}  // namespace ROCKSDB_NAMESPACE
