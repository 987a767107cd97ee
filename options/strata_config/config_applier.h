//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "options/strata_config/config_file.h"
#include "options/strata_config/option_texts.h"
#include "rocksdb/convenience.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class Cache;
class Env;

// What a line of a file of STRATA_CONFIG has done to the options of a database
// or of one column family.
struct ConfigChange {
  size_t line = 0;     // in the file
  bool is_db = false;  // the options are those of the database
  std::string family;  // if !is_db
  // As in OptionTexts. A line can change several options; if it has changed
  // none, this is the option that it names, and `from` and `to` are equal.
  std::string option;
  std::string from;
  std::string to;
  // The program needs the value, so it has stayed (KeepProgramValues()).
  bool is_kept = false;

  bool has_effect() const { return from != to; }
  // "[default] min_blob_size: 0 -> 256 (/etc/strata.ini:12)"
  std::string ToString(const ConfigFile& file) const;
};

// Applies a file of STRATA_CONFIG to the options of one database.
//
// Invariants:
// 1. The lines of all sections that match are applied one after the other, in
//    their order in the file, by RocksDB's parser of option strings. So each
//    has the effect that it would have in a program, and a later line wins.
//    The rules (config_rules.h) compare the options of the program with the
//    result of all lines; the last line of an option is to blame for it.
// 2. Applied a second time, to their results, the lines change nothing.
// 3. On failure the options are unchanged. The error is InvalidArgument that
//    names the file and the line.
// 4. A cache that a line makes is one for all column families of the database.
//
// Not thread-safe.
class ConfigApplier {
 public:
  // database: result of CleanDirectoryName().
  // REQUIRES: *file outlives this object; env is not nullptr
  ConfigApplier(const ConfigFile* file, Env* env, const std::string& database);

  // For calls that use no more than the directories: leaves out all lines that
  // do not name any. So objects that this program cannot make, or that the
  // caller has not passed, do not matter.
  void ApplyOnlyDirectories() { applies_only_directories_ = true; }

  // Checks all lines of the file, whatever database they are for: whether
  // RocksDB knows the options, and can read their values. Objects that this
  // program cannot make are no errors: another one may.
  Status CheckAll() const;

  // Apply the lines for the database, or for the column family. The former
  // come first: some rules for a family depend on the options of the database.
  // changes: receives what each line has done, in the order of the lines;
  // unchanged on failure. The hidden family of persistent statistics
  // (kPersistentStatsColumnFamilyName) has no lines.
  Status Apply(DBOptions* options, std::vector<ConfigChange>* changes);
  Status Apply(const std::string& family, ColumnFamilyOptions* options,
               std::vector<ConfigChange>* changes);
  // The same for a family whose name is not known: those of sections for all
  // families ("*").
  Status ApplyToUnknownFamily(ColumnFamilyOptions* options,
                              std::vector<ConfigChange>* changes);

  // The numbers, in the file, of the headers of sections that have matched.
  const std::set<size_t>& used_sections() const { return used_sections_; }

 private:
  // Sets *matches. family: nullptr: its name is not known.
  Status Matches(const ConfigFile::Section& section,
                 ConfigFile::Section::Kind kind, const std::string* family,
                 bool* matches);
  // T: DBOptions or ColumnFamilyOptions.
  template <typename T>
  Status CheckSection(const ConfigFile::Section& section) const;
  template <typename T>
  Status ApplySections(ConfigFile::Section::Kind kind,
                       const std::string* family, T* options,
                       std::vector<ConfigChange>* changes);
  template <typename T>
  Status ApplyLine(const ConfigFile::Line& line, T* options);
  // Option -> the last line that was applied to it.
  using LastLines = std::map<std::string, const ConfigFile::Line*>;
  // Applies the rules to *after, the result of the lines. given: of the
  // program. changes: of the lines, receives which values were kept.
  // REQUIRES: !lines.empty()
  template <typename T>
  Status ApplyRules(const T& given, const LastLines& lines, T* after,
                    std::vector<ConfigChange>* changes) const;
  // KeepProgramValues().
  void KeepValues(const DBOptions& given, DBOptions* after,
                  std::vector<std::string>* kept) const;
  void KeepValues(const ColumnFamilyOptions& given, ColumnFamilyOptions* after,
                  std::vector<std::string>* kept) const;
  Status ErrorOf(const ConfigFile::Line& line, const Status& s) const;
  template <typename T>
  Status SetOption(const ConfigOptions& config, const ConfigFile::Line& line,
                   const T& before, T* after) const;

  // Completes what the line has changed: prepares a table factory that it has
  // made, and gives *after the caches that it has made for another family.
  void ShareCaches(size_t line, const ColumnFamilyOptions& before,
                   ColumnFamilyOptions* after);
  void ShareCaches(size_t /*line*/, const DBOptions& /*before*/,
                   DBOptions* /*after*/) {}

  const ConfigFile* const file_;
  const std::string database_;
  ConfigOptions config_;
  bool applies_only_directories_ = false;
  bool has_2pc_ = false;  // allow_2pc, as the program has given it
  std::set<size_t> used_sections_;
  // Line -> the cache that it makes.
  std::map<size_t, std::shared_ptr<Cache>> block_caches_;
  std::map<size_t, std::shared_ptr<Cache>> blob_caches_;
};

}  // namespace ROCKSDB_NAMESPACE
