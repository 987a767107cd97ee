//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_file.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "options/options_parser.h"
#include "options/strata/own_option_lines.h"
#include "options/strata_config/config_directories.h"
#include "options/strata_config/config_rules.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kSections =
    "a section is [DBOptions \"DATABASE\"] or [CFOptions \"DATABASE\" "
    "\"FAMILY\"]";

std::string Trim(const std::string& text) {
  return RocksDBOptionsParser::TrimAndRemoveComment(text, /*trim_only=*/true);
}

#ifndef OS_WIN
Status ReadText(const std::string& name, std::string* text) {
  std::unique_ptr<FSSequentialFile> file;
  IOStatus s = FileSystem::Default()->NewSequentialFile(name, FileOptions(),
                                                        &file, /*dbg=*/nullptr);
  std::vector<char> buffer(size_t{64} << 10);
  while (s.ok()) {
    Slice piece;
    s = file->Read(buffer.size(), IOOptions(), &piece, buffer.data(),
                   /*dbg=*/nullptr);
    if (s.ok() && piece.empty()) {
      return Status::OK();
    }
    text->append(piece.data(), piece.size());
    if (text->size() > ConfigFile::kMaxBytes) {
      return Status::InvalidArgument(name + ": the file has more than " +
                                     std::to_string(ConfigFile::kMaxBytes) +
                                     " bytes");
    }
  }
  return Status::InvalidArgument(name + ": the file cannot be read",
                                 s.ToString());
}
#endif

}  // namespace

std::string ConfigFile::At(size_t line) const {
  return name_ + ":" + std::to_string(line);
}

Status ConfigFile::Error(size_t line, const std::string& message) const {
  return Status::InvalidArgument(At(line), message);
}

Status ConfigFile::Error(size_t line, const std::string& option,
                         const Status& s) const {
  const char* const message = s.getState();
  return Error(line,
               option + ": " + (message == nullptr ? s.ToString() : message));
}

Status ConfigFile::Load(const std::string& name, ConfigFile* file) {
#ifdef OS_WIN
  (void)file;
  return Status::NotSupported(
      name + ": Windows has no fnmatch(), which such a file needs");
#else
  std::string text;
  const Status s = ReadText(name, &text);
  return s.ok() ? Parse(name, text, file) : s;
#endif
}

Status ConfigFile::Parse(const std::string& name, const std::string& text,
                         ConfigFile* file) {
  ConfigFile result;
  result.name_ = name;
  size_t number = 0;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const Status s =
        result.ParseLine(text.substr(begin, end - begin), ++number);
    if (!s.ok()) {
      return s;
    }
    begin = end + 1;
  }
  result.lines_of_options_.clear();
  const Status s = ConfigDirectories::Check(result);
  if (s.ok()) {
    *file = std::move(result);
  }
  return s;
}

Status ConfigFile::ParseLine(const std::string& line, size_t number) {
  if (line.find('\0') != std::string::npos) {
    return Error(number, "the line has a zero byte");
  }
  // A comment of this form is an option in an OPTIONS file. It would have no
  // effect here, which nothing would tell.
  const std::string revealed = OwnOptionLines::Reveal(line);
  if (revealed != line && revealed.find('=') != std::string::npos) {
    const std::string name = Trim(revealed.substr(0, revealed.find('=')));
    if (OwnOptionLines::IsOwn(name)) {
      return Error(number, "the line is a comment. Write " + name +
                               " without \"# strata:\", or with two \"#\"");
    }
  }
  const std::string trimmed = RocksDBOptionsParser::TrimAndRemoveComment(line);
  if (trimmed.empty()) {
    return Status::OK();
  }
  return trimmed[0] == '[' ? ParseHeader(trimmed, number)
                           : ParseOption(trimmed, number);
}

Status ConfigFile::ParsePatterns(const std::string& text, size_t number,
                                 std::vector<std::string>* patterns) const {
  size_t at = 0;
  while (true) {
    at = text.find_first_not_of(" \t", at);
    if (at == std::string::npos) {
      return Status::OK();
    }
    if (text[at] != '"') {
      return Error(
          number,
          std::string("a pattern stands in quotation marks: ") + kSections);
    }
    size_t end = at + 1;
    while (end < text.size() && text[end] != '"') {
      // The backslash and the next character stay: fnmatch() reads them.
      end += text[end] == '\\' ? 2 : 1;
    }
    if (end >= text.size()) {
      return Error(number,
                   "a quotation mark is missing. (In a pattern, \"#\" is "
                   "written \"\\#\", and a quotation mark \"\\\"\")");
    }
    patterns->push_back(text.substr(at + 1, end - at - 1));
    if (patterns->back().empty()) {
      return Error(number, "a pattern is empty");
    }
    if (patterns->back().size() > kMaxPatternBytes) {
      return Error(number, "a pattern has more than " +
                               std::to_string(kMaxPatternBytes) + " bytes");
    }
    at = end + 1;
  }
}

Status ConfigFile::ParseHeader(const std::string& header, size_t number) {
  if (header.back() != ']') {
    return Error(
        number,
        std::string("the header of a section ends with \"]\": ") + kSections);
  }
  const std::string text = header.substr(1, header.size() - 2);
  const size_t name_end = std::min(text.find_first_of(" \t\""), text.size());
  const std::string kind = text.substr(0, name_end);
  Section section;
  section.number = number;
  std::vector<std::string> patterns;
  if (kind == "CFOptions") {
    section.kind = Section::kColumnFamily;
  } else if (kind != "DBOptions") {
    return Error(number, "\"" + kind + "\" is no section: " + kSections);
  }
  const Status s = ParsePatterns(text.substr(name_end), number, &patterns);
  if (!s.ok()) {
    return s;
  }
  if (patterns.size() != (section.kind == Section::kDB ? 1U : 2U)) {
    return Error(number, "the section has " + std::to_string(patterns.size()) +
                             " patterns: " + kSections);
  }
  section.db = ConfigGlob::OfDatabase(patterns[0]);
  if (std::string("/*?[\\").find(patterns[0][0]) == std::string::npos) {
    return Error(number, "the pattern \"" + patterns[0] +
                             "\" matches no database: it is compared with an "
                             "absolute path, which begins with a slash");
  }
  if (section.kind == Section::kColumnFamily) {
    section.family = ConfigGlob(patterns[1]);
  }
  sections_.push_back(std::move(section));
  lines_of_options_.clear();
  return Status::OK();
}

Status ConfigFile::ParseOption(const std::string& line, size_t number) {
  Line option;
  option.number = number;
  if (!RocksDBOptionsParser::ParseStatement(&option.name, &option.value, line,
                                            static_cast<int>(number))
           .ok()) {
    return Error(
        number, "\"" + line + "\" is neither \"option = value\" nor a section");
  }
  if (sections_.empty()) {
    return Error(
        number, option.name + " stands before the first section: " + kSections);
  }
  const auto [found, is_new] = lines_of_options_.emplace(option.name, number);
  if (!is_new) {
    return Error(number, option.name + " stands in the section twice, first " +
                             "in line " + std::to_string(found->second));
  }
  const Status s = CheckConfigOption(option.name, option.value);
  if (!s.ok()) {
    return Error(number, s.getState());
  }
  sections_.back().lines.push_back(std::move(option));
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
