//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "options/strata_config/config_glob.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The text of a file of STRATA_CONFIG (docs/options-without-code.md): sections
// with lines in the syntax of OPTIONS files.
//
//   # A comment ends at the end of its line; "\#" is no comment.
//   [DBOptions "/data/*"]
//     max_background_jobs = 8
//   [CFOptions "/data/*" "default"]
//     enable_merged_value_cache = true
//
// Invariants of a file that was parsed:
// 1. The sections, and the lines of each, are in the order of the text.
// 2. No section has two lines of one option.
// 3. No line is one that CheckConfigOption() refuses, and the directories that
//    lines name are as ConfigDirectories::Check() wants them.
//
// Whether RocksDB knows an option, and can read its value, is the matter of
// ConfigApplier.
//
// Thread-safe once it was parsed.
class ConfigFile {
 public:
  struct Line {
    size_t number = 0;  // the line's place in the file, from 1 on
    std::string name;
    std::string value;  // as it stands in the file, without blanks around it
  };
  struct Section {
    enum Kind { kDB, kColumnFamily };

    Kind kind = kDB;
    size_t number = 0;  // the number of the header's line
    ConfigGlob db;
    ConfigGlob family;  // if kind is kColumnFamily
    std::vector<Line> lines;
  };

  // A longer file is refused: it cannot be one that a person has written.
  static constexpr size_t kMaxBytes = size_t{1} << 20;
  // Maximum size of a pattern in a header. fnmatch() uses the stack.
  static constexpr size_t kMaxPatternBytes = 4096;

  // Reads and parses the file. It is read from the default file system, as it
  // belongs to the process, whatever file system the database has. Returns
  // InvalidArgument that names the file, and the line if it is about one;
  // NotSupported on Windows. On failure *file is unchanged.
  static Status Load(const std::string& name, ConfigFile* file);
  // Parses the text. name: of the file, for messages.
  static Status Parse(const std::string& name, const std::string& text,
                      ConfigFile* file);

  const std::string& name() const { return name_; }
  const std::vector<Section>& sections() const { return sections_; }

  // Returns "<file>:<line>".
  std::string At(size_t line) const;
  // Returns InvalidArgument about the line.
  Status Error(size_t line, const std::string& message) const;
  // The same with the message of s, which is an error about an option.
  Status Error(size_t line, const std::string& option, const Status& s) const;

 private:
  Status ParseLine(const std::string& line, size_t number);
  // header: begins with '['.
  Status ParseHeader(const std::string& header, size_t number);
  // Parses the patterns of a header, which stand in quotation marks.
  Status ParsePatterns(const std::string& text, size_t number,
                       std::vector<std::string>* patterns) const;
  Status ParseOption(const std::string& line, size_t number);

  std::string name_;
  std::vector<Section> sections_;
  // The options of the last section, and their lines. Used by the parser only.
  std::map<std::string, size_t> lines_of_options_;
};

}  // namespace ROCKSDB_NAMESPACE
