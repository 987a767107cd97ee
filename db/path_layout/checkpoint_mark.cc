//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/checkpoint_mark.h"

#include <cstdio>

#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kTitle[] = "Strata checkpoint in progress\n";
// Stands before the name of a directory. No file on a path has such a name.
constexpr char kDirectory[] = "directory ";

// Returns the last line of a mark.
std::string ChecksumLine(const std::string& lines) {
  char line[32];
  snprintf(line, sizeof(line), "crc32c %08x\n",
           static_cast<unsigned>(crc32c::Value(lines.data(), lines.size())));
  return line;
}

}  // namespace

// The number 0 would be taken for that of a pending MANIFEST, whose temporary
// file is kept.
const char* CheckpointMark::Name() { return "000001.dbtmp"; }

std::string CheckpointMark::Encode() const {
  std::string text = kTitle + attempt + "\n";
  for (const std::string& directory : directories) {
    if (directory.find('\n') == std::string::npos) {
      text += kDirectory + directory + "\n";
    }
  }
  for (const std::string& file : files) {
    text += file + "\n";
  }
  return text + ChecksumLine(text);
}

Status CheckpointMark::DecodeFrom(const std::string& text) {
  attempt.clear();
  directories.clear();
  files.clear();
  const std::string title = kTitle;
  const size_t checksum_size = ChecksumLine("").size();
  if (text.size() < title.size() + checksum_size ||
      text.compare(0, title.size(), title) != 0) {
    return Status::Corruption("not the mark of a checkpoint");
  }
  const std::string lines = text.substr(0, text.size() - checksum_size);
  if (text.substr(lines.size()) != ChecksumLine(lines) ||
      lines.back() != '\n') {
    return Status::Corruption("the mark of a checkpoint is damaged");
  }
  size_t begin = title.size();
  while (begin < lines.size()) {
    const size_t end = lines.find('\n', begin);
    const std::string line = lines.substr(begin, end - begin);
    if (begin == title.size()) {
      attempt = line;
    } else if (line.rfind(kDirectory, 0) == 0) {
      directories.insert(line.substr(sizeof(kDirectory) - 1));
    } else {
      files.insert(line);
    }
    begin = end + 1;
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
