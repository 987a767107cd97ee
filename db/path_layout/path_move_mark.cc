//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_move_mark.h"

#include "db/path_layout/mark_text.h"
#include "file/filename.h"
#include "file/strata/durable_files.h"
#include "rocksdb/file_system.h"
#include "util/strata/status_message.h"
#include "util/string_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kMoveTitle[] = "Strata moves paths";
constexpr char kWhat[] = "the mark of a move of paths";
// These stand before the names of directories, and a space stands before the
// size of a file.
constexpr char kFromPrefix[] = "from ";
constexpr char kToPrefix[] = "to ";
// No file of a database that has files to be moved has this number: the first
// numbers are those of its first MANIFEST and WAL.
constexpr uint64_t kTemporaryNumber = 2;

// Parses "<name> <bytes>".
bool ParseFile(const std::string& line, std::string* name, uint64_t* size) {
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string::npos) {
    return false;
  }
  *name = line.substr(0, space);
  Slice digits(line.data() + space + 1, line.size() - space - 1);
  return ConsumeDecimalNumber(&digits, size) && digits.empty();
}

}  // namespace

const char* PathMoveMark::Name() { return "PATHMOVE"; }

std::string PathMoveMark::Encode() const {
  std::vector<std::string> lines;
  for (const Move& move : moves) {
    lines.push_back(kFromPrefix + move.request.from);
    lines.push_back(kToPrefix + move.request.to);
    for (const auto& [name, size] : move.files) {
      lines.push_back(name + " " + std::to_string(size));
    }
  }
  return EncodeMark(kMoveTitle, lines);
}

Status PathMoveMark::DecodeFrom(const std::string& text) {
  moves.clear();
  std::vector<std::string> lines;
  Status s = DecodeMark(text, kMoveTitle, kWhat, &lines);
  for (size_t i = 0; s.ok() && i < lines.size(); ++i) {
    std::string name;
    uint64_t size = 0;
    if (StartsWith(lines[i], kFromPrefix)) {
      if (i + 1 == lines.size() || !StartsWith(lines[i + 1], kToPrefix)) {
        s = Status::Corruption(kWhat, "has no destination for a source");
        continue;
      }
      PathMoveRequest& request = moves.emplace_back().request;
      request.from = lines[i].substr(sizeof(kFromPrefix) - 1);
      request.to = lines[i + 1].substr(sizeof(kToPrefix) - 1);
      ++i;
    } else if (!moves.empty() && ParseFile(lines[i], &name, &size)) {
      moves.back().files[name] = size;
    } else {
      s = Status::Corruption(kWhat, "has a line with another meaning");
    }
  }
  if (s.ok() && moves.empty()) {
    s = Status::Corruption(kWhat, "names no directory");
  }
  return s;
}

Status PathMoveMark::Write(FileSystem* fs, const std::string& dbname) const {
  return ReplaceFile(fs, dbname, TempFileName("", kTemporaryNumber).substr(1),
                     Name(), Encode());
}

Status PathMoveMark::Read(FileSystem* fs, const std::string& dbname) {
  const std::string fname = dbname + "/" + Name();
  Status s = fs->FileExists(fname, IOOptions(), nullptr);
  if (s.IsNotFound() || s.IsPathNotFound()) {
    return Status::NotFound(fname);
  }
  std::string text;
  if (s.ok()) {
    s = ReadFileToString(fs, fname, &text);
  }
  if (s.ok()) {
    s = DecodeFrom(text);
  }
  return s.IsCorruption() ? AppendMessage(s, ": ", fname) : s;
}

Status PathMoveMark::Delete(FileSystem* fs, const std::string& dbname) {
  const Status s = fs->DeleteFile(dbname + "/" + Name(), IOOptions(), nullptr);
  return s.ok() ? SyncDirectory(fs, dbname) : s;
}

}  // namespace ROCKSDB_NAMESPACE
