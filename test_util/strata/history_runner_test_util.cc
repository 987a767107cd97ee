//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_runner_test_util.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>

#include "db/address_map/address_map_store.h"
#include "db/address_map/address_map_verifier.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_verifier_test_util.h"
#include "file/filename.h"
#include "rocksdb/convenience.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/options_type.h"
#include "rocksdb/wide_columns.h"
#include "rocksdb/write_batch.h"
#include "test_util/testutil.h"
#include "util/cast_util.h"
#include "util/string_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Contents = HistoryModel::Contents;
using Columns = HistoryModel::Columns;
using Op = HistoryModel::Op;
using OpKind = HistoryModel::OpKind;
using OptionList = std::vector<std::pair<std::string, std::string>>;

constexpr char kDefault[] = "default";
// The name of the default column, whose name is empty, in scripts.
constexpr char kDefaultColumn[] = "_";

// Returns the value for "@100" or "@100:tag": it has 100 bytes and begins with
// that word.
std::string Generated(size_t size, const std::string& tag) {
  std::string value = "@" + std::to_string(size) + ":" + tag + "|";
  uint32_t x = static_cast<uint32_t>(size);
  for (const char ch : tag) {
    x = x * 31 + static_cast<unsigned char>(ch);
  }
  while (value.size() < size) {
    x = x * 1664525 + 1013904223;
    value.push_back(static_cast<char>('a' + (x >> 16) % 26));
  }
  return value;
}

bool ParseNumber(const std::string& text, uint64_t* number) {
  if (text.empty() || text.size() > 18 ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    return false;
  }
  *number = std::strtoull(text.c_str(), nullptr, 10);
  return true;
}

// Returns the value that a word of a script stands for.
std::string ValueOf(const std::string& word) {
  if (word.empty() || word[0] != '@') {
    return word;
  }
  const size_t colon = word.find(':');
  uint64_t size = 0;
  if (!ParseNumber(word.substr(1, colon - 1), &size)) {
    return word;
  }
  return Generated(static_cast<size_t>(size),
                   colon == std::string::npos ? "" : word.substr(colon + 1));
}

// Reverses ValueOf(), even if generated values are parts of `value`.
std::string ShowValue(const std::string& value) {
  std::string shown;
  for (size_t i = 0; i < value.size();) {
    if (value[i] == '@') {
      const size_t colon = value.find(':', i);
      const size_t bar = value.find('|', i);
      uint64_t size = 0;
      if (colon != std::string::npos && bar != std::string::npos &&
          colon < bar &&
          ParseNumber(value.substr(i + 1, colon - i - 1), &size)) {
        const std::string tag = value.substr(colon + 1, bar - colon - 1);
        const std::string whole = Generated(static_cast<size_t>(size), tag);
        if (value.compare(i, whole.size(), whole) == 0) {
          shown.append("@").append(std::to_string(size));
          if (!tag.empty()) {
            shown.append(":").append(tag);
          }
          i += whole.size();
          continue;
        }
      }
    }
    shown.push_back(value[i++]);
  }
  return shown.empty() ? "\"\"" : shown;
}

std::string ShowColumns(const Columns& columns) {
  if (columns.size() == 1 && columns.begin()->first.empty()) {
    return ShowValue(columns.begin()->second);
  }
  std::string shown = "{";
  for (const auto& column : columns) {
    if (shown.size() > 1) {
      shown.append(" ");
    }
    shown.append(column.first.empty() ? kDefaultColumn : column.first)
        .append("=")
        .append(ShowValue(column.second));
  }
  return shown.append("}");
}

std::string ShowContents(const Contents& contents, bool reverse = false) {
  std::vector<std::string> lines;
  for (const auto& entry : contents) {
    lines.push_back(entry.first + "=" + ShowColumns(entry.second) + "\n");
  }
  if (reverse) {
    std::reverse(lines.begin(), lines.end());
  }
  std::string shown;
  for (const std::string& line : lines) {
    shown.append(line);
  }
  return shown;
}

Columns FromWideColumns(const WideColumns& wide) {
  Columns columns;
  for (const WideColumn& column : wide) {
    columns[column.name().ToString()] = column.value().ToString();
  }
  return columns;
}

// Returns the value that Get() and Iterator::value() must return.
std::string DefaultColumn(const Columns& columns) {
  const auto it = columns.find("");
  return it == columns.end() ? "" : it->second;
}

std::string Prefixed(const char* prefix, const std::string& text) {
  return std::string(prefix) + text;
}

// Splits `words` at words ";".
std::vector<std::vector<std::string>> SplitAtSemicolons(
    const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> parts(1);
  for (const std::string& word : words) {
    if (word == ";") {
      parts.emplace_back();
    } else {
      parts.back().push_back(word);
    }
  }
  return parts;
}

// Removes "name=value" from `words` and sets *value.
bool TakeNamed(std::vector<std::string>* words, const std::string& name,
               std::string* value) {
  for (auto it = words->begin(); it != words->end(); ++it) {
    if (it->compare(0, name.size() + 1, name + "=") == 0) {
      *value = it->substr(name.size() + 1);
      words->erase(it);
      return true;
    }
  }
  return false;
}

bool TakeWord(std::vector<std::string>* words, const std::string& word) {
  const auto it = std::find(words->begin(), words->end(), word);
  if (it == words->end()) {
    return false;
  }
  words->erase(it);
  return true;
}

void SetOption(OptionList* options, const std::string& name,
               const std::string& value) {
  for (auto& option : *options) {
    if (option.first == name) {
      option.second = value;
      return;
    }
  }
  options->emplace_back(name, value);
}

const std::string* FindOption(const OptionList& options,
                              const std::string& name) {
  for (const auto& option : options) {
    if (option.first == name) {
      return &option.second;
    }
  }
  return nullptr;
}

// Expands a short name for options that belong together. Returns false if
// `name` is none.
bool ExpandOption(const std::string& name, const std::string& value,
                  OptionList* options, bool* is_valid) {
  *is_valid = true;
  if (name == "layout") {
    static const std::map<std::string, std::pair<const char*, const char*>>
        kLayouts = {{"none", {"", ""}},
                    {"vertical", {"0", "1"}},
                    {"horizontal", {"0:1", "0:1"}},
                    {"selective", {"0:1", "0:1"}}};
    const auto it = kLayouts.find(value);
    *is_valid = it != kLayouts.end();
    if (*is_valid) {
      SetOption(options, "level_sst_path_ids", it->second.first);
      SetOption(options, "level_blob_path_ids", it->second.second);
      if (value == "selective") {
        SetOption(options, "blob_file_starting_level", "1");
      }
    }
    return true;
  }
  if (name == "blobs") {
    if (value == "off") {
      SetOption(options, "enable_blob_files", "false");
      SetOption(options, "enable_blob_direct_write", "false");
    } else {
      SetOption(options, "enable_blob_files", "true");
      SetOption(options, "min_blob_size", value);
    }
    return true;
  }
  return false;
}

std::vector<std::string> PathList(const std::string& root,
                                  const std::string& value) {
  std::vector<std::string> paths;
  uint64_t count = 0;
  if (ParseNumber(value, &count)) {
    for (uint64_t i = 0; i < count; ++i) {
      paths.push_back(root +
                      (i == 0 ? "/db" : Prefixed("/p", std::to_string(i))));
    }
    return paths;
  }
  for (const std::string& name : StringSplit(value, ',')) {
    paths.push_back(root + "/" + name);
  }
  return paths;
}

}  // namespace

struct HistoryRunner::NamedIterator {
  std::unique_ptr<Iterator> iterator;
  std::string cf;
  std::string from;
  std::string to;
  Slice lower;
  Slice upper;
  // The contents that it must show, which are those at its creation.
  Contents contents;
  size_t position = 0;
  // Its correct position in `contents`; undefined after an error.
  Contents::const_iterator expected;
  bool is_known = false;
};

const std::vector<HistoryVariant>& HistoryVariants() {
  static const std::vector<HistoryVariant> kVariants = {
      {"no-layout", {{"layout", "none"}}},
      {"no-blobs", {{"blobs", "off"}}},
      {"blobs", {{"blobs", "0"}, {"paths", "2"}, {"layout", "vertical"}}},
      {"blob-gc",
       {{"blobs", "0"},
        {"paths", "2"},
        {"layout", "horizontal"},
        {"enable_blob_garbage_collection", "true"},
        {"blob_garbage_collection_age_cutoff", "1"},
        {"blob_file_size", "256"}}},
      {"four-paths",
       {{"blobs", "0"},
        {"paths", "4"},
        {"level_sst_path_ids", "0:1:2:3"},
        {"level_blob_path_ids", "3:2:1:0"}}},
      {"universal", {{"compaction_style", "kCompactionStyleUniversal"}}},
      {"dynamic-levels", {{"level_compaction_dynamic_level_bytes", "true"}}},
      {"subcompactions",
       {{"max_subcompactions", "4"}, {"target_file_size_base", "1024"}}},
      {"auto-compaction",
       {{"disable_auto_compactions", "false"},
        {"level0_file_num_compaction_trigger", "2"},
        {"target_file_size_base", "1024"},
        {"max_bytes_for_level_base", "4096"}}},
      {"partitioned",
       {{"block_based_table_factory",
         "{index_type=kTwoLevelIndexSearch;partition_filters=true;"
         "filter_policy=bloomfilter:10:false;metadata_block_size=128;"
         "block_size=256;cache_index_and_filter_blocks=true;}"}}},
      {"compressed",
       {{"compression", "kLZ4Compression"},
        {"blob_compression_type", "kLZ4Compression"},
        {"block_based_table_factory", "{no_block_cache=true;}"}}},
      {"few-open-files", {{"max_open_files", "10"}}},
      {"no-map", {{"enable_blob_address_map", "false"}}},
      {"map",
       {{"blobs", "0"},
        {"enable_blob_address_map", "true"},
        {"enable_blob_garbage_collection", "false"}}},
      {"map-no-bypass",
       {{"blobs", "0"},
        {"enable_blob_address_map", "true"},
        {"enable_lsm_bypass", "false"},
        {"enable_blob_garbage_collection", "false"},
        {"blob_file_starting_level", "1"}}},
      {"map-collected",
       {{"blobs", "0"},
        {"enable_blob_address_map", "true"},
        {"enable_blob_garbage_collection", "false"},
        {"blob_gc_space_amp_limit", "1.01"},
        {"blob_file_size", "512"}}},
      {"map-tiers",
       {{"blobs", "0"},
        {"paths", "2"},
        {"layout", "horizontal"},
        {"enable_blob_address_map", "true"},
        {"enable_blob_garbage_collection", "false"},
        {"blob_gc_space_amp_limit", "1.01"},
        {"blob_file_size", "256"}}},
      {"map-small-files",
       {{"blobs", "50"},
        {"enable_blob_address_map", "true"},
        {"enable_blob_garbage_collection", "false"},
        {"blob_file_size", "256"},
        {"blob_gc_space_amp_limit", "1.01"},
        {"disable_auto_compactions", "false"},
        {"level0_file_num_compaction_trigger", "2"},
        {"target_file_size_base", "1024"},
        {"max_bytes_for_level_base", "4096"},
        {"max_subcompactions", "4"},
        {"block_based_table_factory",
         "{index_type=kTwoLevelIndexSearch;partition_filters=true;"
         "filter_policy=bloomfilter:10:false;metadata_block_size=128;"
         "block_size=256;cache_index_and_filter_blocks=true;}"}}},
      {"map-universal",
       {{"blobs", "0"},
        {"enable_blob_address_map", "true"},
        {"enable_blob_garbage_collection", "false"},
        {"compaction_style", "kCompactionStyleUniversal"},
        {"block_based_table_factory",
         "{filter_policy=ribbonfilter:10;optimize_filters_for_memory=true;}"}}},
      {"merged-values",
       {{"enable_merged_value_cache", "true"},
        {"merged_value_cache_size", "2000000"}}},
      {"map-merged-values",
       {{"blobs", "0"},
        {"enable_blob_address_map", "true"},
        {"enable_blob_garbage_collection", "false"},
        {"blob_gc_space_amp_limit", "1.01"},
        {"blob_file_size", "512"},
        {"enable_merged_value_cache", "true"},
        {"merged_value_cache_size", "2000000"}}},
      {"deltas", {{"enable_delta_separation", "true"}}},
      {"deltas-small-buckets",
       {{"enable_delta_separation", "true"},
        {"delta_bucket_size", "4096"},
        {"delta_max_buckets", "64"},
        {"delta_bucket_split_ratio", "0.1"},
        {"enable_merged_value_cache", "true"},
        {"merged_value_cache_size", "2000000"}}},
      {"map-deltas",
       {{"blobs", "0"},
        {"enable_blob_address_map", "true"},
        {"enable_blob_garbage_collection", "false"},
        {"blob_gc_space_amp_limit", "1.01"},
        {"blob_file_size", "512"},
        {"enable_delta_separation", "true"},
        {"delta_bucket_size", "4096"},
        {"delta_max_buckets", "4"},
        {"delta_bucket_split_ratio", "0.1"}}},
      {"direct-io",
       {{"use_direct_reads", "true"},
        {"use_direct_io_for_flush_and_compaction", "true"}}},
  };
  return kVariants;
}

Status SetHistoryOptions(const OptionList& list, Env* env, Options* options) {
  ConfigOptions config_options;
  config_options.env = env;
  config_options.ignore_unknown_options = false;
  config_options.input_strings_escaped = false;

  // Each option belongs to the DB or to the column family, and is passed to the
  // parser for that. An unknown option is an error of the second parser.
  std::unordered_map<std::string, std::string> map;
  for (const auto& option : list) {
    if (!option.second.empty()) {
      map[option.first] = option.second;
    }
  }
  DBOptions db_options(*options);
  for (auto it = map.begin(); it != map.end();) {
    DBOptions changed;
    if (GetDBOptionsFromMap(config_options, db_options, {*it}, &changed).ok()) {
      db_options = changed;
      it = map.erase(it);
    } else {
      ++it;
    }
  }
  ColumnFamilyOptions cf_options;
  const Status s = GetColumnFamilyOptionsFromMap(
      config_options, ColumnFamilyOptions(*options), map, &cf_options);
  if (s.ok()) {
    *options = Options(db_options, cf_options);
  }
  return s;
}

HistoryRunner::HistoryRunner(const HistoryScript& script,
                             const HistoryVariant* variant,
                             const std::string& root)
    : script_(script),
      variant_(variant),
      root_(root),
      crash_fs_(std::make_shared<FaultInjectionTestFS>(FileSystem::Default())),
      fault_fs_(std::make_shared<HistoryFaultFS>(crash_fs_, root)),
      env_(NewCompositeEnv(fault_fs_)) {}

HistoryRunner::~HistoryRunner() {
  fault_fs_->ClearRules();
  CloseDb();
  DestroyDir(Env::Default(), root_).PermitUncheckedError();
  mistake_.PermitUncheckedError();
}

const std::map<std::string, HistoryRunner::Step>& HistoryRunner::Steps() {
  using R = HistoryRunner;
  static const std::map<std::string, Step> kSteps = {
      {"open", {&R::DoOpen, false, false, "open [option=value...]"}},
      {"reopen", {&R::DoReopen, false, false, "reopen [option=value...]"}},
      {"crash", {&R::DoCrash, false, false, "crash [option=value...]"}},
      {"close", {&R::DoClose, false, true, "close"}},
      {"destroy", {&R::DoDestroy, false, false, "destroy"}},
      {"family",
       {&R::DoFamily, false, true,
        "family create NAME [option=value...] | family drop NAME"}},
      {"put", {&R::DoWrite, false, true, "put KEY VALUE [sync]"}},
      {"merge", {&R::DoWrite, false, true, "merge KEY OPERAND [sync]"}},
      {"del", {&R::DoWrite, false, true, "del KEY [sync]"}},
      {"singledel", {&R::DoWrite, false, true, "singledel KEY [sync]"}},
      {"delrange", {&R::DoWrite, false, true, "delrange FROM TO [sync]"}},
      {"entity",
       {&R::DoWrite, false, true, "entity KEY COLUMN=VALUE... [sync]"}},
      {"batch", {&R::DoBatch, false, true, "batch WRITE ; WRITE... [sync]"}},
      {"fill", {&R::DoFill, false, true, "fill PREFIX FIRST LAST VALUE"}},
      {"syncwal", {&R::DoSyncWal, false, true, "syncwal"}},
      {"snapshot", {&R::DoSnapshot, false, true, "snapshot NAME"}},
      {"release", {&R::DoRelease, false, true, "release NAME"}},
      {"get", {&R::DoGet, false, true, "get KEY [@SNAPSHOT]"}},
      {"getentity",
       {&R::DoGetEntity, false, true, "getentity KEY [@SNAPSHOT]"}},
      {"multiget",
       {&R::DoMultiGet, false, true, "multiget KEY... [@SNAPSHOT]"}},
      {"scan",
       {&R::DoScan, false, true, "scan [@SNAPSHOT] [FROM TO] [reverse]"}},
      {"iter",
       {&R::DoIterator, false, true, "iter NAME [@SNAPSHOT] [FROM TO]"}},
      {"seek", {&R::DoSeek, false, true, "seek NAME KEY"}},
      {"seekforprev", {&R::DoSeekForPrev, false, true, "seekforprev NAME KEY"}},
      {"first", {&R::DoFirst, false, true, "first NAME"}},
      {"last", {&R::DoLast, false, true, "last NAME"}},
      {"next", {&R::DoNext, false, true, "next NAME [COUNT]"}},
      {"prev", {&R::DoPrev, false, true, "prev NAME [COUNT]"}},
      {"close-iter", {&R::DoCloseIterator, false, true, "close-iter NAME"}},
      {"flush", {&R::DoFlush, false, true, "flush [all]"}},
      {"compact",
       {&R::DoCompact, false, true,
        "compact [FROM TO] [bottommost=force|optimized|skip] [to=LEVEL] "
        "[path=ID] [gc=force|off]"}},
      {"compactfiles",
       {&R::DoCompactFiles, true, true,
        "compactfiles FILE... to=LEVEL [path=ID] [move]"}},
      {"compactlevel",
       {&R::DoCompactLevel, true, true, "compactlevel FROM [TO] [nomove]"}},
      {"setoptions",
       {&R::DoSetOptions, false, true, "setoptions option=value..."}},
      {"ingest", {&R::DoIngest, false, true, "ingest [move] WRITE ; WRITE..."}},
      {"deletefilesinrange",
       {&R::DoDeleteFilesInRange, false, true, "deletefilesinrange FROM TO"}},
      {"fail",
       {&R::DoFail, false, false,
        "fail READ|WRITE|SYNC|DIRSYNC|CREATE|DELETE|RENAME PATTERN [skip=N] "
        "[count=N] [retryable]"}},
      {"unfail", {&R::DoUnfail, false, false, "unfail"}},
      {"resume", {&R::DoResume, false, true, "resume"}},
      {"files", {&R::DoFiles, true, true, "files"}},
      {"blobs", {&R::DoBlobs, true, true, "blobs"}},
      {"deltas", {&R::DoDeltas, true, true, "deltas"}},
      {"ls", {&R::DoLs, true, false, "ls"}},
      {"pathstats", {&R::DoPathStats, true, true, "pathstats"}},
      {"wait", {&R::DoWait, false, true, "wait"}},
      {"property", {&R::DoProperty, true, true, "property NAME"}},
      {"verify", {&R::DoVerify, false, true, "verify"}},
  };
  return kSteps;
}

// --- running -----------------------------------------------------------------

Status HistoryRunner::Run(std::vector<Outputs>* outputs) {
  outputs->clear();
  Status s = Env::Default()->CreateDirIfMissing(root_);
  for (const HistoryBlock& block : script_.blocks()) {
    outputs->emplace_back();
    for (const HistoryCommand& command : block.commands) {
      if (!s.ok()) {
        return s;
      }
      outputs->back().emplace_back();
      RunCommand(command, &outputs->back().back());
      s = mistake_;
    }
  }
  if (s.ok() && db_ != nullptr) {
    fault_fs_->ClearRules();
    Context c;
    c.command = &script_.blocks().back().commands.back();
    Verify(c);
    CloseDb();
    const Status reopened = Open();
    if (reopened.ok()) {
      CheckRecovered(c, /*is_crash=*/false);
      Verify(c);
    } else {
      Disagree(c, "reopen at the end: " + reopened.ToString());
    }
  }
  return s;
}

std::string HistoryRunner::Text(const Outputs& outputs) {
  std::string text;
  for (const Output& output : outputs) {
    text.append(output.text);
  }
  return text.empty() ? "ok\n" : text;
}

void HistoryRunner::RunCommand(const HistoryCommand& command, Output* output) {
  Context c;
  c.command = &command;
  c.cf = kDefault;
  c.args = command.words;
  if (c.args[0].compare(0, 3, "cf=") == 0) {
    c.cf = c.args[0].substr(3);
    c.args.erase(c.args.begin());
  }
  output->command = &command;
  if (c.args.empty()) {
    Mistake(c, "a command must follow \"cf=\"");
    return;
  }
  const auto it = Steps().find(c.args[0]);
  if (it == Steps().end()) {
    Mistake(c, "unknown command \"" + c.args[0] + "\"");
    return;
  }
  const Step& step = it->second;
  c.args.erase(c.args.begin());
  c.is_structural = step.is_structural;
  if (step.needs_db && db_ == nullptr) {
    c.out = "error: the DB is closed\n";
  } else if (step.needs_db && families_.count(c.cf) == 0) {
    Mistake(c, "no column family \"" + c.cf + "\"");
  } else {
    (this->*step.run)(c);
  }
  output->is_structural = c.is_structural;
  output->text = std::move(c.out);
}

void HistoryRunner::Mistake(const Context& c, const std::string& what) {
  if (mistake_.ok()) {
    mistake_ = Status::InvalidArgument(script_.Where(c.command->line) + what);
  }
}

void HistoryRunner::Usage(Context& c) {
  const Words& words = c.command->words;
  const std::string& name =
      words[0].compare(0, 3, "cf=") == 0 ? words[1] : words[0];
  Mistake(c, std::string("usage: ") + Steps().at(name).usage);
}

void HistoryRunner::Disagree(const Context& c, const std::string& what) {
  disagreements_.push_back(script_.Where(c.command->line) + what);
}

bool HistoryRunner::Report(Context& c, const Status& s) {
  if (!s.ok()) {
    c.out.append("error: ").append(Mask(s.ToString())).append("\n");
  }
  return s.ok();
}

// Replaces the parts that differ from run to run: the directory, file numbers.
std::string HistoryRunner::Mask(const std::string& text) const {
  std::string masked;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, root_.size() + 1, root_ + "/") == 0) {
      i += root_.size() + 1;
      continue;
    }
    size_t digits = i;
    while (digits < text.size() && isdigit(text[digits]) != 0) {
      ++digits;
    }
    if (digits - i >= 6) {
      masked.append("N");
      i = digits;
    } else if (digits > i) {
      masked.append(text, i, digits - i);
      i = digits;
    } else {
      masked.push_back(text[i++]);
    }
  }
  return masked;
}

// --- opening and closing -----------------------------------------------------

bool HistoryRunner::TakeOptions(Context& c, const Words& words,
                                OptionList* options) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      Mistake(c, "not an option: \"" + word + "\"");
      return false;
    }
    const std::string name = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    bool is_valid = true;
    if (!ExpandOption(name, value, options, &is_valid)) {
      SetOption(options, name, value);
    }
    if (!is_valid) {
      Mistake(c, "no such value: \"" + word + "\"");
      return false;
    }
  }
  return true;
}

Status HistoryRunner::MakeOptions(const OptionList& own, Options* options,
                                  std::vector<std::string>* paths) const {
  OptionList list = own;
  if (variant_ != nullptr) {
    for (const auto& option : variant_->options) {
      bool is_valid = true;
      if (!ExpandOption(option.first, option.second, &list, &is_valid)) {
        SetOption(&list, option.first, option.second);
      }
      assert(is_valid);
    }
  }
  // The DB does nothing that the script does not request.
  options->create_if_missing = true;
  options->env = env_.get();
  options->disable_auto_compactions = true;
  options->level_compaction_dynamic_level_bytes = false;
  options->compression = kNoCompression;
  options->merge_operator = MergeOperators::CreateStringAppendOperator();
  options->max_bgerror_resume_count = 0;
  options->stats_dump_period_sec = 0;
  options->stats_persist_period_sec = 0;
  options->write_buffer_size = 64 << 20;
  options->target_file_size_base = 64 << 20;

  *paths = {root_ + "/db"};
  const std::string* const path_list = FindOption(list, "paths");
  if (path_list != nullptr) {
    *paths = PathList(root_, *path_list);
  }
  // Scripts show where each value lies, which garbage collection would change.
  // With variants only the results of reads are compared.
  options->blob_gc_space_amp_limit = 0;
  options->cf_paths.clear();
  if (path_list != nullptr) {
    for (const std::string& path : *paths) {
      options->cf_paths.emplace_back(path, UINT64_MAX);
    }
  }
  std::erase_if(list,
                [](const auto& option) { return option.first == "paths"; });
  return SetHistoryOptions(list, env_.get(), options);
}

Status HistoryRunner::Open() {
  assert(db_ == nullptr);
  Options options;
  std::vector<ColumnFamilyDescriptor> descriptors;
  for (auto& [name, family] : families_) {
    Options family_options;
    const Status s =
        MakeOptions(family.options, &family_options, &family.paths);
    if (!s.ok()) {
      return s;
    }
    if (name == kDefault) {
      options = family_options;
    }
    descriptors.emplace_back(name, family_options);
  }
  std::vector<ColumnFamilyHandle*> handles;
  Status s = DB::Open(options, root_ + "/db", descriptors, &handles, &db_);
  if (s.ok()) {
    for (ColumnFamilyHandle* handle : handles) {
      families_[handle->GetName()].handle = handle;
    }
  }
  return s;
}

void HistoryRunner::CloseDb() {
  if (db_ == nullptr) {
    return;
  }
  iterators_.clear();
  for (const auto& snapshot : snapshots_) {
    db_->ReleaseSnapshot(snapshot.second.snapshot);
  }
  snapshots_.clear();
  for (auto& family : families_) {
    if (family.second.handle != nullptr) {
      db_->DestroyColumnFamilyHandle(family.second.handle)
          .PermitUncheckedError();
      family.second.handle = nullptr;
    }
  }
  db_->Close().PermitUncheckedError();
  db_.reset();
}

void HistoryRunner::CheckRecovered(Context& c, bool is_crash) {
  HistoryModel::AllContents found;
  const Status s = ReadAllFamilies(&found);
  if (!s.ok()) {
    Disagree(c, "reading after recovery: " + s.ToString());
    return;
  }
  blurred_.clear();
  if (!model_.Recover(found, is_crash)) {
    std::string what =
        "the contents after recovery are no prefix of what was "
        "written:\n";
    for (const auto& family : found) {
      what.append("[").append(family.first).append("]\n");
      what.append(ShowContents(family.second));
    }
    what.append("written:\n");
    for (const auto& family : families_) {
      what.append("[").append(family.first).append("]\n");
      what.append(ShowContents(model_.Now(family.first)));
    }
    Disagree(c, what);
  }
}

void HistoryRunner::DoOpen(Context& c) {
  if (db_ != nullptr) {
    Mistake(c, "the DB is open");
    return;
  }
  Family& family = families_[c.cf];
  family.options.clear();
  model_.CreateFamily(c.cf);
  if (TakeOptions(c, c.args, &family.options) && Report(c, Open())) {
    CheckRecovered(c, /*is_crash=*/false);
  }
}

void HistoryRunner::DoReopen(Context& c) {
  if (families_.count(c.cf) == 0) {
    Mistake(c, "\"open\" comes first");
    return;
  }
  CloseDb();
  if (TakeOptions(c, c.args, &families_[c.cf].options) && Report(c, Open())) {
    CheckRecovered(c, /*is_crash=*/false);
  }
}

void HistoryRunner::DoCrash(Context& c) {
  if (families_.count(c.cf) == 0) {
    Mistake(c, "\"open\" comes first");
    return;
  }
  crash_fs_->SetFilesystemActive(false);
  CloseDb();
  fault_fs_->ClearRules();
  crash_fs_->SetFilesystemActive(true);
  IOStatus s = fault_fs_->DropUnsynced();
  if (s.ok()) {
    s = crash_fs_->DeleteFilesCreatedAfterLastDirSync(IOOptions(), nullptr);
  }
  crash_fs_->ResetState();
  if (!s.ok()) {
    Disagree(c, "simulating the crash: " + s.ToString());
  } else if (TakeOptions(c, c.args, &families_[c.cf].options) &&
             Report(c, Open())) {
    CheckRecovered(c, /*is_crash=*/true);
  }
}

void HistoryRunner::DoClose(Context& c) {
  if (!c.args.empty()) {
    Usage(c);
    return;
  }
  CloseDb();
}

void HistoryRunner::DoDestroy(Context& c) {
  if (!c.args.empty() || families_.empty()) {
    Usage(c);
    return;
  }
  CloseDb();
  Options options;
  std::vector<ColumnFamilyDescriptor> descriptors;
  for (auto& [name, family] : families_) {
    Options family_options;
    if (!Report(c,
                MakeOptions(family.options, &family_options, &family.paths))) {
      return;
    }
    if (name == kDefault) {
      options = family_options;
    }
    descriptors.emplace_back(name, family_options);
  }
  if (Report(c, DestroyDB(root_ + "/db", options, descriptors))) {
    families_.clear();
    model_ = HistoryModel();
    blurred_.clear();
  }
}

void HistoryRunner::DoFamily(Context& c) {
  if (c.args.size() < 2) {
    Usage(c);
    return;
  }
  const std::string action = c.args[0];
  const std::string name = c.args[1];
  if (action == "create" && families_.count(name) == 0) {
    Family family;
    Options options;
    if (!TakeOptions(c, Words(c.args.begin() + 2, c.args.end()),
                     &family.options) ||
        !Report(c, MakeOptions(family.options, &options, &family.paths)) ||
        !Report(c, db_->CreateColumnFamily(options, name, &family.handle))) {
      return;
    }
    families_[name] = family;
    model_.CreateFamily(name);
  } else if (action == "drop" && name != kDefault &&
             families_.count(name) != 0) {
    Family& family = families_[name];
    if (Report(c, db_->DropColumnFamily(family.handle))) {
      db_->DestroyColumnFamilyHandle(family.handle).PermitUncheckedError();
      families_.erase(name);
      model_.DropFamily(name);
    }
  } else {
    Usage(c);
  }
}

// --- writes ------------------------------------------------------------------

ColumnFamilyHandle* HistoryRunner::Handle(const Context& c) {
  return families_.at(c.cf).handle;
}

bool HistoryRunner::ParseWrite(const Words& all_words, const std::string& cf,
                               std::vector<Op>* ops, bool* is_single) {
  Words words = all_words;
  Op op;
  op.cf = cf;
  *is_single = false;
  if (!words.empty() && words[0].compare(0, 3, "cf=") == 0) {
    op.cf = words[0].substr(3);
    words.erase(words.begin());
    if (families_.count(op.cf) == 0) {
      return false;
    }
  }
  if (words.size() < 2) {
    return false;
  }
  const std::string& what = words[0];
  op.key = words[1];
  if ((what == "put" || what == "merge") && words.size() == 3) {
    op.kind = what == "put" ? OpKind::kPut : OpKind::kMerge;
    op.columns[""] = ValueOf(words[2]);
  } else if ((what == "del" || what == "singledel") && words.size() == 2) {
    op.kind = OpKind::kDelete;
    *is_single = what == "singledel";
  } else if (what == "delrange" && words.size() == 3) {
    op.kind = OpKind::kDeleteRange;
    op.end = words[2];
  } else if (what == "entity" && words.size() > 2) {
    op.kind = OpKind::kPut;
    for (size_t i = 2; i < words.size(); ++i) {
      const size_t equals = words[i].find('=');
      if (equals == std::string::npos) {
        return false;
      }
      const std::string column = words[i].substr(0, equals);
      op.columns[column == kDefaultColumn ? "" : column] =
          ValueOf(words[i].substr(equals + 1));
    }
  } else {
    return false;
  }
  ops->push_back(std::move(op));
  return true;
}

void HistoryRunner::Commit(Context& c, const Status& s,
                           HistoryModel::Write write, bool is_durable) {
  write.has_failed = !Report(c, s);
  const bool has_failed = write.has_failed;
  model_.Append(std::move(write));
  if (is_durable && !has_failed) {
    model_.MarkDurable();
  }
}

// all_words: one write, or several with ";" between them.
void HistoryRunner::RunWrite(Context& c, const Words& all_words) {
  Words words = all_words;
  WriteOptions write_options;
  write_options.sync = TakeWord(&words, "sync");
  const auto parts = SplitAtSemicolons(words);
  WriteBatch batch;
  HistoryModel::Write write;
  Status s;
  for (const Words& part : parts) {
    bool is_single = false;
    if (!ParseWrite(part, c.cf, &write.ops, &is_single)) {
      Usage(c);
      return;
    }
    const Op& op = write.ops.back();
    ColumnFamilyHandle* const handle = families_.at(op.cf).handle;
    // A single write uses its own function of the DB.
    const bool is_lone = parts.size() == 1;
    const bool is_entity =
        part[0] == "entity" || (part.size() > 1 && part[1] == "entity" &&
                                part[0].compare(0, 3, "cf=") == 0);
    if (op.kind == OpKind::kPut && is_entity) {
      WideColumns columns;
      for (const auto& column : op.columns) {
        columns.emplace_back(column.first, column.second);
      }
      s = is_lone ? db_->PutEntity(write_options, handle, op.key, columns)
                  : batch.PutEntity(handle, op.key, columns);
    } else if (op.kind == OpKind::kPut) {
      const std::string& value = op.columns.at("");
      s = is_lone ? db_->Put(write_options, handle, op.key, value)
                  : batch.Put(handle, op.key, value);
    } else if (op.kind == OpKind::kMerge) {
      const std::string& value = op.columns.at("");
      s = is_lone ? db_->Merge(write_options, handle, op.key, value)
                  : batch.Merge(handle, op.key, value);
    } else if (op.kind == OpKind::kDeleteRange) {
      s = is_lone ? db_->DeleteRange(write_options, handle, op.key, op.end)
                  : batch.DeleteRange(handle, op.key, op.end);
    } else if (is_single) {
      s = is_lone ? db_->SingleDelete(write_options, handle, op.key)
                  : batch.SingleDelete(handle, op.key);
    } else {
      s = is_lone ? db_->Delete(write_options, handle, op.key)
                  : batch.Delete(handle, op.key);
    }
    if (!s.ok()) {
      break;
    }
  }
  if (s.ok() && parts.size() > 1) {
    s = db_->Write(write_options, &batch);
  }
  Commit(c, s, std::move(write), write_options.sync);
}

void HistoryRunner::DoWrite(Context& c) {
  // The words include the command's name, which is before its arguments.
  const Words& words = c.command->words;
  RunWrite(c, Words(words.begin() + (words.size() - c.args.size() - 1),
                    words.end()));
}

void HistoryRunner::DoBatch(Context& c) { RunWrite(c, c.args); }

void HistoryRunner::DoFill(Context& c) {
  uint64_t first = 0;
  uint64_t last = 0;
  if (c.args.size() != 4 || !ParseNumber(c.args[1], &first) ||
      !ParseNumber(c.args[2], &last) || first > last) {
    Usage(c);
    return;
  }
  const size_t width = c.args[2].size();
  for (uint64_t i = first; i <= last; ++i) {
    std::string number = std::to_string(i);
    number.insert(0, width - number.size(), '0');
    const std::string key = c.args[0] + number;
    // If a generated value has no tag, the key becomes the tag.
    std::string value = c.args[3];
    if (value[0] == '@' && value.find(':') == std::string::npos) {
      value.append(":").append(key);
    }
    RunWrite(c, {"put", key, value});
  }
}

void HistoryRunner::DoSyncWal(Context& c) {
  if (Report(c, db_->SyncWAL())) {
    model_.MarkDurable();
  }
}

void HistoryRunner::DoIngest(Context& c) {
  Words words = c.args;
  IngestExternalFileOptions ingest_options;
  ingest_options.move_files = TakeWord(&words, "move");
  HistoryModel::Write write;
  write.is_durable = true;
  for (const Words& part : SplitAtSemicolons(words)) {
    bool is_single = false;
    if (!ParseWrite(part, c.cf, &write.ops, &is_single) || is_single ||
        write.ops.back().cf != c.cf) {
      Usage(c);
      return;
    }
  }
  // All entries of a file have one sequence number, and a range tombstone does
  // not cover entries with its own sequence number.
  std::stable_sort(write.ops.begin(), write.ops.end(),
                   [](const Op& a, const Op& b) {
                     const bool a_first = a.kind == OpKind::kDeleteRange;
                     const bool b_first = b.kind == OpKind::kDeleteRange;
                     return a_first != b_first ? a_first : a.key < b.key;
                   });
  const std::string path =
      root_ + "/ingest" + std::to_string(num_ingested_++) + ".sst";
  SstFileWriter writer(EnvOptions(), db_->GetOptions(Handle(c)), Handle(c));
  Status s = writer.Open(path);
  for (const Op& op : write.ops) {
    if (!s.ok()) {
      break;
    }
    switch (op.kind) {
      case OpKind::kPut:
        if (op.columns.size() == 1 && op.columns.begin()->first.empty()) {
          s = writer.Put(op.key, op.columns.at(""));
        } else {
          WideColumns columns;
          for (const auto& column : op.columns) {
            columns.emplace_back(column.first, column.second);
          }
          s = writer.PutEntity(op.key, columns);
        }
        break;
      case OpKind::kMerge:
        s = writer.Merge(op.key, op.columns.at(""));
        break;
      case OpKind::kDelete:
        s = writer.Delete(op.key);
        break;
      case OpKind::kDeleteRange:
        s = writer.DeleteRange(op.key, op.end);
        break;
    }
  }
  if (s.ok()) {
    s = writer.Finish();
  }
  if (s.ok()) {
    s = db_->IngestExternalFile(Handle(c), {path}, ingest_options);
  }
  Commit(c, s, std::move(write), /*is_durable=*/false);
}

// Which older versions reappear, and which keys stay, depends on the files. So
// the model takes the contents from the DB, and checks that each value is one
// that the key had before.
void HistoryRunner::DoDeleteFilesInRange(Context& c) {
  if (c.args.size() != 2) {
    Usage(c);
    return;
  }
  const std::string from = c.args[0];
  const std::string to = c.args[1];
  const Slice begin(from);
  const Slice end(to);
  if (!Report(c, DeleteFilesInRange(db_.get(), Handle(c), &begin, &end))) {
    return;
  }
  Contents found;
  if (!Report(c, ReadAll(c.cf, ReadOptions(), &found))) {
    return;
  }
  HistoryModel::Write write;
  write.is_durable = true;
  const auto is_within = [&](const std::string& key) {
    return from <= key && key <= to;
  };
  for (const auto& entry : model_.Now(c.cf)) {
    if (is_within(entry.first) && found.count(entry.first) == 0) {
      Op op;
      op.kind = OpKind::kDelete;
      op.cf = c.cf;
      op.key = entry.first;
      write.ops.push_back(std::move(op));
    }
  }
  for (const auto& entry : found) {
    if (!is_within(entry.first)) {
      continue;
    }
    bool was_there = false;
    for (size_t i = 0; i <= model_.Position() && !was_there; ++i) {
      const Contents then = model_.At(c.cf, i);
      const auto it = then.find(entry.first);
      was_there = it != then.end() && it->second == entry.second;
    }
    if (!was_there) {
      Disagree(
          c, entry.first + " never had the value " + ShowColumns(entry.second));
    }
    Op op;
    op.cf = c.cf;
    op.key = entry.first;
    op.columns = entry.second;
    write.ops.push_back(std::move(op));
  }
  model_.Append(std::move(write));
  blurred_.push_back({c.cf, from, to, model_.Position()});
}

bool HistoryRunner::IsBlurred(const std::string& cf, const std::string& key,
                              size_t position) const {
  for (const Blurred& range : blurred_) {
    if (range.cf == cf && position < range.position && range.from <= key &&
        key <= range.to) {
      return true;
    }
  }
  return false;
}

void HistoryRunner::Unblur(const std::string& cf, size_t position,
                           Contents* contents) const {
  for (auto it = contents->begin(); it != contents->end();) {
    it = IsBlurred(cf, it->first, position) ? contents->erase(it)
                                            : std::next(it);
  }
}

// --- reads -------------------------------------------------------------------

void HistoryRunner::DoSnapshot(Context& c) {
  if (c.args.size() != 1 || snapshots_.count(c.args[0]) != 0) {
    Usage(c);
    return;
  }
  snapshots_[c.args[0]] = {db_->GetSnapshot(), model_.Position()};
}

void HistoryRunner::DoRelease(Context& c) {
  const auto it =
      c.args.size() == 1 ? snapshots_.find(c.args[0]) : snapshots_.end();
  if (it == snapshots_.end()) {
    Usage(c);
    return;
  }
  db_->ReleaseSnapshot(it->second.snapshot);
  snapshots_.erase(it);
}

// Removes "@NAME" from the arguments.
bool HistoryRunner::TakeView(Context& c, View* view) {
  view->position = model_.Position();
  for (auto it = c.args.begin(); it != c.args.end(); ++it) {
    if ((*it)[0] != '@') {
      continue;
    }
    const auto named = snapshots_.find(it->substr(1));
    if (named == snapshots_.end()) {
      Mistake(c, "no snapshot \"" + it->substr(1) + "\"");
      return false;
    }
    view->snapshot = named->second.snapshot;
    view->position = named->second.position;
    c.args.erase(it);
    break;
  }
  return true;
}

void HistoryRunner::DoGet(Context& c) {
  View view;
  if (!TakeView(c, &view)) {
    return;
  }
  if (c.args.size() != 1) {
    Usage(c);
    return;
  }
  const std::string& key = c.args[0];
  ReadOptions read_options;
  read_options.snapshot = view.snapshot;
  std::string value;
  const Status s = db_->Get(read_options, Handle(c), key, &value);
  if (s.IsNotFound()) {
    c.out.append("(not found)\n");
  } else if (Report(c, s)) {
    c.out.append(ShowValue(value)).append("\n");
  } else {
    return;
  }
  const Contents contents = model_.At(c.cf, view.position);
  const auto it = contents.find(key);
  const bool is_right = it == contents.end()
                            ? s.IsNotFound()
                            : s.ok() && DefaultColumn(it->second) == value;
  if (!is_right && !IsBlurred(c.cf, key, view.position)) {
    Disagree(c, "get " + key + ": " + c.out + "must be: " +
                    (it == contents.end() ? "(not found)"
                                          : ShowColumns(it->second)));
  }
}

void HistoryRunner::DoGetEntity(Context& c) {
  View view;
  if (!TakeView(c, &view)) {
    return;
  }
  if (c.args.size() != 1) {
    Usage(c);
    return;
  }
  const std::string& key = c.args[0];
  ReadOptions read_options;
  read_options.snapshot = view.snapshot;
  PinnableWideColumns wide;
  const Status s = db_->GetEntity(read_options, Handle(c), key, &wide);
  const Columns columns = FromWideColumns(wide.columns());
  if (s.IsNotFound()) {
    c.out.append("(not found)\n");
  } else if (Report(c, s)) {
    c.out.append(ShowColumns(columns)).append("\n");
  } else {
    return;
  }
  const Contents contents = model_.At(c.cf, view.position);
  const auto it = contents.find(key);
  const bool is_right =
      it == contents.end() ? s.IsNotFound() : s.ok() && it->second == columns;
  if (!is_right && !IsBlurred(c.cf, key, view.position)) {
    Disagree(c, "getentity " + key + ": " + c.out + "must be: " +
                    (it == contents.end() ? "(not found)"
                                          : ShowColumns(it->second)));
  }
}

void HistoryRunner::DoMultiGet(Context& c) {
  View view;
  if (!TakeView(c, &view)) {
    return;
  }
  if (c.args.empty()) {
    Usage(c);
    return;
  }
  ReadOptions read_options;
  read_options.snapshot = view.snapshot;
  const std::vector<Slice> keys(c.args.begin(), c.args.end());
  std::vector<PinnableSlice> values(keys.size());
  std::vector<Status> statuses(keys.size());
  db_->MultiGet(read_options, Handle(c), keys.size(), keys.data(),
                values.data(), statuses.data());
  const Contents contents = model_.At(c.cf, view.position);
  for (size_t i = 0; i < keys.size(); ++i) {
    c.out.append(c.args[i]).append("=");
    if (statuses[i].IsNotFound()) {
      c.out.append("(not found)\n");
    } else if (Report(c, statuses[i])) {
      c.out.append(ShowValue(values[i].ToString())).append("\n");
    } else {
      continue;
    }
    const auto it = contents.find(c.args[i]);
    const bool is_right =
        it == contents.end()
            ? statuses[i].IsNotFound()
            : statuses[i].ok() && DefaultColumn(it->second) == values[i];
    if (!is_right && !IsBlurred(c.cf, c.args[i], view.position)) {
      Disagree(c, "multiget, key " + c.args[i] + " must be: " +
                      (it == contents.end() ? "(not found)"
                                            : ShowColumns(it->second)));
    }
  }
}

void HistoryRunner::DoScan(Context& c) {
  View view;
  if (!TakeView(c, &view)) {
    return;
  }
  const bool reverse = TakeWord(&c.args, "reverse");
  if (!c.args.empty() && c.args.size() != 2) {
    Usage(c);
    return;
  }
  ReadOptions read_options;
  read_options.snapshot = view.snapshot;
  Slice lower;
  Slice upper;
  if (!c.args.empty()) {
    lower = c.args[0];
    upper = c.args[1];
    read_options.iterate_lower_bound = &lower;
    read_options.iterate_upper_bound = &upper;
  }
  std::unique_ptr<Iterator> it(db_->NewIterator(read_options, Handle(c)));
  Contents found;
  std::string shown;
  std::string previous;
  bool is_first = true;
  reverse ? it->SeekToLast() : it->SeekToFirst();
  for (; it->Valid(); reverse ? it->Prev() : it->Next()) {
    const std::string key = it->key().ToString();
    const Columns columns = FromWideColumns(it->columns());
    if (!is_first && (reverse ? key >= previous : key <= previous)) {
      Disagree(c, "scan: " + key + " after " + previous);
    }
    if (it->value() != DefaultColumn(columns)) {
      Disagree(c, "scan: value and default column of " + key + " differ");
    }
    shown.append(key).append("=").append(ShowColumns(columns)).append("\n");
    found[key] = columns;
    previous = key;
    is_first = false;
  }
  c.out.append(shown.empty() && it->status().ok() ? "(empty)\n" : shown);
  if (!Report(c, it->status())) {
    return;
  }
  Contents expected = model_.At(c.cf, view.position);
  if (!c.args.empty()) {
    expected.erase(expected.begin(), expected.lower_bound(c.args[0]));
    expected.erase(expected.lower_bound(c.args[1]), expected.end());
  }
  Unblur(c.cf, view.position, &expected);
  Unblur(c.cf, view.position, &found);
  if (found != expected) {
    Disagree(c, "scan must be:\n" + ShowContents(expected, reverse));
  }
}

void HistoryRunner::DoIterator(Context& c) {
  View view;
  if (!TakeView(c, &view)) {
    return;
  }
  if ((c.args.size() != 1 && c.args.size() != 3) ||
      iterators_.count(c.args[0]) != 0) {
    Usage(c);
    return;
  }
  auto named = std::make_unique<NamedIterator>();
  named->cf = c.cf;
  named->position = view.position;
  named->contents = model_.At(c.cf, view.position);
  ReadOptions read_options;
  read_options.snapshot = view.snapshot;
  if (c.args.size() == 3) {
    named->from = c.args[1];
    named->to = c.args[2];
    named->lower = named->from;
    named->upper = named->to;
    read_options.iterate_lower_bound = &named->lower;
    read_options.iterate_upper_bound = &named->upper;
    Contents& contents = named->contents;
    contents.erase(contents.begin(), contents.lower_bound(named->from));
    contents.erase(contents.lower_bound(named->to), contents.end());
  }
  named->iterator.reset(db_->NewIterator(read_options, Handle(c)));
  iterators_[c.args[0]] = std::move(named);
}

HistoryRunner::NamedIterator* HistoryRunner::FindIterator(Context& c) {
  const auto it =
      c.args.empty() ? iterators_.end() : iterators_.find(c.args[0]);
  if (it == iterators_.end()) {
    Mistake(c, "no such iterator");
    return nullptr;
  }
  return it->second.get();
}

void HistoryRunner::ShowIterator(Context& c, NamedIterator* named) {
  Iterator* const it = named->iterator.get();
  if (!it->Valid()) {
    if (!Report(c, it->status())) {
      named->is_known = false;
      return;
    }
    c.out.append(".\n");
    if (named->is_known && named->expected != named->contents.end()) {
      Disagree(c, "the iterator must be at " + named->expected->first);
    }
    return;
  }
  const std::string key = it->key().ToString();
  const Columns columns = FromWideColumns(it->columns());
  c.out.append(key).append("=").append(ShowColumns(columns)).append("\n");
  if (named->is_known &&
      (named->expected == named->contents.end() ||
       named->expected->first != key || named->expected->second != columns)) {
    Disagree(c, "the iterator must be at " +
                    (named->expected == named->contents.end()
                         ? std::string("the end")
                         : named->expected->first + "=" +
                               ShowColumns(named->expected->second)));
  }
}

void HistoryRunner::DoSeek(Context& c) {
  NamedIterator* const named = FindIterator(c);
  if (named == nullptr || c.args.size() != 2) {
    Usage(c);
    return;
  }
  named->iterator->Seek(c.args[1]);
  named->expected = named->contents.lower_bound(c.args[1]);
  named->is_known = true;
  ShowIterator(c, named);
}

void HistoryRunner::DoSeekForPrev(Context& c) {
  NamedIterator* const named = FindIterator(c);
  if (named == nullptr || c.args.size() != 2) {
    Usage(c);
    return;
  }
  named->iterator->SeekForPrev(c.args[1]);
  named->expected = named->contents.upper_bound(c.args[1]);
  named->expected = named->expected == named->contents.begin()
                        ? named->contents.end()
                        : std::prev(named->expected);
  named->is_known = true;
  ShowIterator(c, named);
}

void HistoryRunner::DoFirst(Context& c) {
  NamedIterator* const named = FindIterator(c);
  if (named == nullptr || c.args.size() != 1) {
    Usage(c);
    return;
  }
  named->iterator->SeekToFirst();
  named->expected = named->contents.begin();
  named->is_known = true;
  ShowIterator(c, named);
}

void HistoryRunner::DoLast(Context& c) {
  NamedIterator* const named = FindIterator(c);
  if (named == nullptr || c.args.size() != 1) {
    Usage(c);
    return;
  }
  named->iterator->SeekToLast();
  named->expected = named->contents.empty() ? named->contents.end()
                                            : std::prev(named->contents.end());
  named->is_known = true;
  ShowIterator(c, named);
}

void HistoryRunner::MoveIterator(Context& c,
                                 void (*move)(NamedIterator* named)) {
  NamedIterator* const named = FindIterator(c);
  uint64_t count = 1;
  if (named == nullptr || c.args.size() > 2 ||
      (c.args.size() == 2 && !ParseNumber(c.args[1], &count))) {
    Usage(c);
    return;
  }
  for (; count > 0 && named->iterator->Valid(); --count) {
    move(named);
    ShowIterator(c, named);
  }
}

void HistoryRunner::DoNext(Context& c) {
  MoveIterator(c, [](NamedIterator* named) {
    named->iterator->Next();
    if (named->is_known && named->expected != named->contents.end()) {
      ++named->expected;
    }
  });
}

void HistoryRunner::DoPrev(Context& c) {
  MoveIterator(c, [](NamedIterator* named) {
    named->iterator->Prev();
    if (named->is_known && named->expected != named->contents.end()) {
      named->expected = named->expected == named->contents.begin()
                            ? named->contents.end()
                            : std::prev(named->expected);
    }
  });
}

void HistoryRunner::DoCloseIterator(Context& c) {
  if (c.args.size() != 1 || iterators_.erase(c.args[0]) == 0) {
    Usage(c);
  }
}

// --- flush and compaction ----------------------------------------------------

void HistoryRunner::DoFlush(Context& c) {
  const bool all = TakeWord(&c.args, "all");
  if (!c.args.empty()) {
    Usage(c);
    return;
  }
  std::vector<ColumnFamilyHandle*> handles;
  for (const auto& family : families_) {
    if (all || family.first == c.cf) {
      handles.push_back(family.second.handle);
    }
  }
  if (!Report(c, db_->Flush(FlushOptions(), handles))) {
    return;
  }
  // The flush of one family of several syncs the WALs before it. A flush of all
  // families leaves nothing in memory. There is no sync if a family has nothing
  // to flush.
  if (all || families_.size() == 1) {
    model_.MarkDurable();
  }
}

bool HistoryRunner::IsUniversal(const Context& c) {
  return db_->GetOptions(Handle(c)).compaction_style ==
         kCompactionStyleUniversal;
}

void HistoryRunner::DoCompact(Context& c) {
  CompactRangeOptions options;
  std::string value;
  uint64_t number = 0;
  bool is_valid = true;
  if (TakeNamed(&c.args, "bottommost", &value)) {
    options.bottommost_level_compaction =
        value == "force"       ? BottommostLevelCompaction::kForce
        : value == "optimized" ? BottommostLevelCompaction::kForceOptimized
                               : BottommostLevelCompaction::kSkip;
    is_valid = value == "force" || value == "optimized" || value == "skip";
  }
  if (TakeNamed(&c.args, "gc", &value)) {
    options.blob_garbage_collection_policy =
        value == "force" ? BlobGarbageCollectionPolicy::kForce
                         : BlobGarbageCollectionPolicy::kDisable;
    options.blob_garbage_collection_age_cutoff = 1.0;
    is_valid = is_valid && (value == "force" || value == "off");
  }
  if (TakeNamed(&c.args, "to", &value)) {
    is_valid = is_valid && ParseNumber(value, &number);
    options.change_level = !IsUniversal(c);
    options.target_level = static_cast<int>(number);
  }
  if (TakeNamed(&c.args, "path", &value)) {
    is_valid = is_valid && ParseNumber(value, &number);
    const size_t num_paths = families_.at(c.cf).paths.size();
    options.target_path_id = static_cast<uint32_t>(
        variant_ == nullptr ? number : std::min<size_t>(number, num_paths - 1));
  }
  if (!is_valid || (!c.args.empty() && c.args.size() != 2)) {
    Usage(c);
    return;
  }
  Slice from;
  Slice to;
  if (!c.args.empty()) {
    from = c.args[0];
    to = c.args[1];
  }
  Report(c,
         db_->CompactRange(options, Handle(c), c.args.empty() ? nullptr : &from,
                           c.args.empty() ? nullptr : &to));
}

void HistoryRunner::DoCompactFiles(Context& c) {
  std::string value;
  uint64_t level = 0;
  uint64_t path = 0;
  int path_id = -1;
  if (!TakeNamed(&c.args, "to", &value) || !ParseNumber(value, &level)) {
    Usage(c);
    return;
  }
  if (TakeNamed(&c.args, "path", &value)) {
    if (!ParseNumber(value, &path)) {
      Usage(c);
      return;
    }
    path_id = static_cast<int>(path);
  }
  CompactionOptions options;
  options.allow_trivial_move = TakeWord(&c.args, "move");
  if (c.args.empty()) {
    Usage(c);
    return;
  }
  if (variant_ != nullptr) {
    // With a variant the files are different, so all of them are compacted.
    Report(c, db_->CompactRange(CompactRangeOptions(), Handle(c), nullptr,
                                nullptr));
    return;
  }
  ColumnFamilyMetaData meta;
  db_->GetColumnFamilyMetaData(Handle(c), &meta);
  std::vector<std::string> names;
  for (const LevelMetaData& level_meta : meta.levels) {
    for (const SstFileMetaData& file : level_meta.files) {
      const auto it = file_names_.find({'F', file.file_number});
      if (it != file_names_.end() &&
          TakeWord(&c.args, Prefixed("F", std::to_string(it->second)))) {
        names.push_back(file.name);
      }
    }
  }
  if (!c.args.empty()) {
    Mistake(c, "no such file: " + c.args[0]);
    return;
  }
  Report(c, db_->CompactFiles(options, Handle(c), names,
                              static_cast<int>(level), path_id));
}

void HistoryRunner::DoCompactLevel(Context& c) {
  const bool no_move = TakeWord(&c.args, "nomove");
  uint64_t from = 0;
  uint64_t to = 0;
  if (c.args.empty() || c.args.size() > 2 || !ParseNumber(c.args[0], &from) ||
      (c.args.size() == 2 && !ParseNumber(c.args[1], &to))) {
    Usage(c);
    return;
  }
  const bool is_dynamic =
      db_->GetOptions(Handle(c)).level_compaction_dynamic_level_bytes;
  if (IsUniversal(c) || (variant_ != nullptr && is_dynamic)) {
    Report(c, db_->CompactRange(CompactRangeOptions(), Handle(c), nullptr,
                                nullptr));
    return;
  }
  if (c.args.size() == 1) {
    Report(c,
           static_cast<DBImpl*>(db_.get())->TEST_CompactRange(
               static_cast<int>(from), nullptr, nullptr, Handle(c), no_move));
    return;
  }
  ColumnFamilyMetaData meta;
  db_->GetColumnFamilyMetaData(Handle(c), &meta);
  std::vector<std::string> names;
  for (const LevelMetaData& level : meta.levels) {
    if (static_cast<uint64_t>(level.level) >= from &&
        static_cast<uint64_t>(level.level) <= to) {
      for (const SstFileMetaData& file : level.files) {
        names.push_back(file.name);
      }
    }
  }
  if (!names.empty()) {
    CompactionOptions options;
    options.allow_trivial_move = !no_move;
    Report(c,
           db_->CompactFiles(options, Handle(c), names, static_cast<int>(to)));
  }
}

void HistoryRunner::DoSetOptions(Context& c) {
  OptionList list;
  if (c.args.empty() || !TakeOptions(c, c.args, &list)) {
    Usage(c);
    return;
  }
  OptionList& own = families_.at(c.cf).options;
  OptionList fixed;
  if (variant_ != nullptr) {
    for (const auto& option : variant_->options) {
      bool is_valid = true;
      if (!ExpandOption(option.first, option.second, &fixed, &is_valid)) {
        SetOption(&fixed, option.first, option.second);
      }
    }
  }
  std::unordered_map<std::string, std::string> map;
  for (const auto& option : list) {
    if (FindOption(fixed, option.first) == nullptr) {
      map[option.first] = option.second;
    }
  }
  if (map.empty() || Report(c, db_->SetOptions(Handle(c), map))) {
    for (const auto& option : list) {
      SetOption(&own, option.first, option.second);
    }
  }
}

void HistoryRunner::DoWait(Context& c) {
  Report(c, db_->WaitForCompact(WaitForCompactOptions()));
}

// --- faults ------------------------------------------------------------------

void HistoryRunner::DoFail(Context& c) {
  HistoryFaultFS::Rule rule;
  std::string value;
  rule.retryable = TakeWord(&c.args, "retryable");
  bool is_valid = true;
  if (TakeNamed(&c.args, "skip", &value)) {
    is_valid = ParseNumber(value, &rule.skip);
  }
  if (TakeNamed(&c.args, "count", &value)) {
    is_valid = is_valid && ParseNumber(value, &rule.count);
  }
  if (!is_valid || c.args.size() != 2 ||
      !HistoryFaultFS::ParseOp(c.args[0], &rule.op)) {
    Usage(c);
    return;
  }
  rule.pattern = c.args[1];
  fault_fs_->AddRule(rule);
}

void HistoryRunner::DoUnfail(Context& /*c*/) { fault_fs_->ClearRules(); }

void HistoryRunner::DoResume(Context& c) { Report(c, db_->Resume()); }

// --- files and statistics ----------------------------------------------------

std::string HistoryRunner::FileName(char kind, uint64_t number) {
  size_t& name = file_names_[{kind, number}];
  if (name == 0) {
    name = ++num_file_names_[kind];
  }
  return kind + std::to_string(name);
}

std::string HistoryRunner::PathName(const Context& c,
                                    const std::string& directory) const {
  const std::vector<std::string>& paths = families_.at(c.cf).paths;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i] == directory) {
      return "path" + std::to_string(i);
    }
  }
  return Mask(directory);
}

// Waits until jobs have deleted their files, which they do shortly after
// threads that wait for them have been notified.
void HistoryRunner::WaitForCleanup() {
  if (db_ != nullptr) {
    DBImpl* const impl = static_cast_with_check<DBImpl>(db_->GetRootDB());
    impl->TEST_WaitForBackgroundWork().PermitUncheckedError();
    impl->TEST_WaitForPurge().PermitUncheckedError();
  }
}

void HistoryRunner::DoFiles(Context& c) {
  WaitForCleanup();
  ColumnFamilyMetaData meta;
  db_->GetColumnFamilyMetaData(Handle(c), &meta);
  // Names are assigned by the files' age, not by their level.
  std::vector<uint64_t> numbers;
  std::vector<uint64_t> blob_numbers;
  for (const LevelMetaData& level : meta.levels) {
    for (const SstFileMetaData& file : level.files) {
      numbers.push_back(file.file_number);
      if (file.oldest_blob_file_number != kInvalidBlobFileNumber) {
        blob_numbers.push_back(file.oldest_blob_file_number);
      }
    }
  }
  std::sort(numbers.begin(), numbers.end());
  for (const uint64_t number : numbers) {
    FileName('F', number);
  }
  std::sort(blob_numbers.begin(), blob_numbers.end());
  for (const uint64_t number : blob_numbers) {
    FileName('B', number);
  }
  for (const LevelMetaData& level : meta.levels) {
    for (const SstFileMetaData& file : level.files) {
      c.out.append("L" + std::to_string(level.level) + ": ")
          .append(FileName('F', file.file_number))
          .append(" ")
          .append(PathName(c, file.directory))
          .append(" ")
          .append(file.smallestkey)
          .append("..")
          .append(file.largestkey);
      if (file.oldest_blob_file_number != kInvalidBlobFileNumber) {
        c.out.append(" blobs>=")
            .append(FileName('B', file.oldest_blob_file_number));
      }
      c.out.append("\n");
    }
  }
  if (c.out.empty()) {
    c.out = "(no files)\n";
  }
}

void HistoryRunner::DoBlobs(Context& c) {
  WaitForCleanup();
  ColumnFamilyMetaData meta;
  db_->GetColumnFamilyMetaData(Handle(c), &meta);
  std::sort(meta.blob_files.begin(), meta.blob_files.end(),
            [](const BlobMetaData& a, const BlobMetaData& b) {
              return a.blob_file_number < b.blob_file_number;
            });
  for (const BlobMetaData& file : meta.blob_files) {
    c.out.append(FileName('B', file.blob_file_number))
        .append(" ")
        .append(PathName(c, file.blob_file_path))
        .append(" values=")
        .append(std::to_string(file.total_blob_count))
        .append(" garbage=")
        .append(std::to_string(file.garbage_blob_count))
        .append("\n");
  }
  if (c.out.empty()) {
    c.out = "(no blob files)\n";
  }
}

// Shows the contents of the delta files, tier by tier.
void HistoryRunner::DoDeltas(Context& c) {
  WaitForCleanup();
  ColumnFamilyMetaData meta;
  db_->GetColumnFamilyMetaData(Handle(c), &meta);
  using Tier = DeltaMetaData::Tier;
  const std::pair<Tier, const char*> tiers[] = {{Tier::kFlushed, "flushed"},
                                                {Tier::kMerged, "merged"},
                                                {Tier::kSorted, "sorted"}};
  for (const auto& [tier, name] : tiers) {
    uint64_t operands = 0;
    uint64_t anchors = 0;
    uint64_t ranges = 0;
    bool has_files = false;
    for (const DeltaMetaData& file : meta.delta_files) {
      if (file.tier == tier) {
        has_files = true;
        (file.kind == DeltaMetaData::Kind::kOperands ? operands : anchors) +=
            file.num_entries;
        ranges += file.num_ranges;
      }
    }
    if (has_files) {
      c.out.append(name)
          .append(" operands=" + std::to_string(operands))
          .append(" anchors=" + std::to_string(anchors))
          .append(" ranges=" + std::to_string(ranges))
          .append("\n");
    }
  }
  if (c.out.empty()) {
    c.out = "(no delta files)\n";
  }
}

// Shows the files in the directories, including those that the DB does not
// know.
void HistoryRunner::DoLs(Context& c) {
  WaitForCleanup();
  std::set<std::string> directories;
  for (const auto& family : families_) {
    directories.insert(family.second.paths.begin(), family.second.paths.end());
  }
  for (const std::string& directory : directories) {
    std::vector<std::string> children;
    Status s = Env::Default()->GetChildren(directory, &children);
    size_t num_ssts = 0;
    size_t num_blobs = 0;
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(child, &number, &type)) {
        num_ssts += type == kTableFile ? 1 : 0;
        num_blobs += type == kBlobFile ? 1 : 0;
      }
    }
    c.out.append(Mask(directory))
        .append(s.ok() ? "" : " (missing)")
        .append(" sst=" + std::to_string(num_ssts))
        .append(" blob=" + std::to_string(num_blobs))
        .append("\n");
  }
}

void HistoryRunner::DoPathStats(Context& c) {
  std::map<std::string, std::string> values;
  if (!db_->GetMapProperty(Handle(c), DB::Properties::kPathStats, &values)) {
    c.out = "(no such property)\n";
    return;
  }
  const auto get = [&values](size_t path, const char* name) {
    const auto it = values.find("path" + std::to_string(path) + "." + name);
    return it == values.end() ? std::string("-") : it->second;
  };
  for (size_t i = 0; i < families_.at(c.cf).paths.size(); ++i) {
    const auto is_read = [&](const char* name) {
      const std::string count = get(i, name);
      return std::string(count == "0" ? "no" : count == "-" ? "-" : "yes");
    };
    c.out.append("path" + std::to_string(i))
        .append(" sst=" + get(i, "sst-files"))
        .append(" blob=" + get(i, "blob-files"))
        .append(" blob-bytes=" + get(i, "blob-bytes"))
        .append(" garbage=" + get(i, "blob-garbage-bytes"))
        .append(" sst-read=" + is_read("sst-reads"))
        .append(" blob-read=" + is_read("blob-reads"))
        .append("\n");
  }
}

void HistoryRunner::DoProperty(Context& c) {
  std::string value;
  if (c.args.size() != 1) {
    Usage(c);
  } else if (db_->GetProperty(Handle(c), c.args[0], &value)) {
    c.out = Mask(value);
    if (c.out.empty() || c.out.back() != '\n') {
      c.out.push_back('\n');
    }
  } else {
    c.out = "(no such property)\n";
  }
}

// --- verification ------------------------------------------------------------

Status HistoryRunner::ReadAll(const std::string& cf,
                              const ReadOptions& read_options,
                              Contents* contents) {
  std::unique_ptr<Iterator> it(
      db_->NewIterator(read_options, families_.at(cf).handle));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    (*contents)[it->key().ToString()] = FromWideColumns(it->columns());
  }
  return it->status();
}

Status HistoryRunner::ReadAllFamilies(HistoryModel::AllContents* all) {
  for (const auto& family : families_) {
    const Status s =
        ReadAll(family.first, ReadOptions(), &(*all)[family.first]);
    if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

void HistoryRunner::VerifyView(Context& c, const std::string& cf,
                               const View& view, const std::string& what) {
  ColumnFamilyHandle* const handle = families_.at(cf).handle;
  ReadOptions read_options;
  read_options.snapshot = view.snapshot;
  Contents expected = model_.At(cf, view.position);
  // All keys that ever existed are read, so that absence is checked, too.
  const std::set<std::string> keys = model_.Keys(cf);
  Contents found;
  Status s = ReadAll(cf, read_options, &found);
  Unblur(cf, view.position, &found);
  Unblur(cf, view.position, &expected);
  if (!s.ok() || found != expected) {
    Disagree(c, "verify " + what + ": " + s.ToString() + ", scan found:\n" +
                    ShowContents(found) + "must be:\n" +
                    ShowContents(expected));
  }
  Contents backward;
  std::unique_ptr<Iterator> it(db_->NewIterator(read_options, handle));
  for (it->SeekToLast(); it->Valid(); it->Prev()) {
    backward[it->key().ToString()] = FromWideColumns(it->columns());
  }
  Unblur(cf, view.position, &backward);
  if (!it->status().ok() || backward != expected) {
    Disagree(c, "verify " + what + ": " + it->status().ToString() +
                    ", reverse scan found:\n" + ShowContents(backward) +
                    "must be:\n" + ShowContents(expected));
  }
  const std::vector<Slice> slices(keys.begin(), keys.end());
  std::vector<PinnableSlice> values(slices.size());
  std::vector<Status> statuses(slices.size());
  if (!slices.empty()) {
    db_->MultiGet(read_options, handle, slices.size(), slices.data(),
                  values.data(), statuses.data());
  }
  constexpr int kMaxOperands = 1000;
  GetMergeOperandsOptions operand_options;
  operand_options.expected_max_number_of_operands = kMaxOperands;
  std::vector<PinnableSlice> operands(kMaxOperands);
  size_t i = 0;
  for (const std::string& key : keys) {
    const Status& many = statuses[i];
    const std::string many_value = values[i++].ToString();
    if (IsBlurred(cf, key, view.position)) {
      continue;
    }
    std::string value;
    const Status one = db_->Get(read_options, handle, key, &value);
    const auto entry = expected.find(key);
    const auto is_right = [&](const Status& status, const std::string& got) {
      return entry == expected.end()
                 ? status.IsNotFound()
                 : status.ok() && got == DefaultColumn(entry->second);
    };
    if (!is_right(one, value)) {
      Disagree(c, "verify " + what + ": get " + key + ": " + one.ToString() +
                      " " + ShowValue(value));
    }
    if (!is_right(many, many_value)) {
      Disagree(c, "verify " + what + ": multiget " + key + ": " +
                      many.ToString() + " " + ShowValue(many_value));
    }
    PinnableWideColumns entity;
    const Status entity_status =
        db_->GetEntity(read_options, handle, key, &entity);
    const Columns columns = FromWideColumns(entity.columns());
    if (entry == expected.end()
            ? !entity_status.IsNotFound()
            : !entity_status.ok() || columns != entry->second) {
      Disagree(c, "verify " + what + ": getentity " + key + ": " +
                      entity_status.ToString() + " " + ShowColumns(columns));
    }
    // The operands together are the value, regardless of which of them were
    // merged already.
    int num_operands = 0;
    const Status operand_status =
        db_->GetMergeOperands(read_options, handle, key, operands.data(),
                              &operand_options, &num_operands);
    std::string joined;
    for (int j = 0; operand_status.ok() && j < num_operands; ++j) {
      joined.append(j == 0 ? "" : ",").append(operands[j].ToString());
      operands[j].Reset();
    }
    if (!is_right(operand_status, joined)) {
      Disagree(c, "verify " + what + ": merge operands of " + key + ": " +
                      operand_status.ToString() + " " + ShowValue(joined));
    }
  }
}

void HistoryRunner::Verify(Context& c) {
  for (const auto& family : families_) {
    View view;
    view.position = model_.Position();
    VerifyView(c, family.first, view, "[" + family.first + "]");
    for (const auto& snapshot : snapshots_) {
      view.snapshot = snapshot.second.snapshot;
      view.position = snapshot.second.position;
      VerifyView(c, family.first, view,
                 "[" + family.first + "] @" + snapshot.first);
    }
  }
  const Status s = db_->VerifyChecksum();
  if (!s.ok()) {
    Disagree(c, "VerifyChecksum: " + s.ToString());
  }
  WaitForCleanup();
  VerifyMaps(c);
  VerifyDeltas(c);
}

void HistoryRunner::VerifyDeltas(const Context& c) {
  for (const auto& [name, family] : families_) {
    for (const std::string& error : DeltaErrors(db_.get(), family.handle)) {
      Disagree(c, "[" + name + "] delta files: " + error);
    }
  }
}

void HistoryRunner::VerifyMaps(const Context& c) {
  DBImpl* const impl = static_cast_with_check<DBImpl>(db_->GetRootDB());
  for (const auto& [name, family] : families_) {
    ColumnFamilyData* const cfd =
        static_cast_with_check<ColumnFamilyHandleImpl>(family.handle)->cfd();
    if (cfd->address_map_store() == nullptr) {
      continue;
    }
    Status s = cfd->address_map_store()->map()->TEST_Check();
    if (!s.ok()) {
      Disagree(c, "[" + name + "] address map: " + s.ToString());
    }
    SuperVersion* const sv = cfd->GetReferencedSuperVersion(impl);
    AddressMapVerifier::Result result;
    s = AddressMapVerifier::Verify(
        cfd, sv->current, AddressMapVerifier::Options(),
        [&](const std::string& line) { Disagree(c, line); }, &result);
    impl->CleanupSuperVersion(sv);
    if (!s.ok()) {
      Disagree(c, "[" + name + "] address map: " + s.ToString());
    }
  }
}

void HistoryRunner::DoVerify(Context& c) {
  if (!c.args.empty()) {
    Usage(c);
    return;
  }
  Verify(c);
}

// --- a script as a test ------------------------------------------------------

std::vector<std::string> CheckHistoryScript(const HistoryScript& script,
                                            const std::string& root,
                                            std::string* rewritten) {
  std::vector<std::string> complaints;
  rewritten->clear();
  const bool has_direct_io = Env::Default()->CreateDirIfMissing(root).ok() &&
                             test::IsDirectIOSupported(Env::Default(), root);
  std::vector<const HistoryVariant*> variants;
  std::set<std::string> wanted(
      script.all_variants() ? std::set<std::string>()
                            : std::set<std::string>(script.variants().begin(),
                                                    script.variants().end()));
  for (const HistoryVariant& variant : HistoryVariants()) {
    if (!script.all_variants() && wanted.erase(variant.name) == 0) {
      continue;
    }
    // Not every file system supports direct I/O; tmpfs does not.
    if (variant.name != "direct-io" || has_direct_io) {
      variants.push_back(&variant);
    }
  }
  for (const std::string& name : wanted) {
    complaints.push_back(script.Where(script.variants_line()) +
                         "no variant \"" + name + "\"");
  }

  std::vector<HistoryRunner::Outputs> own;
  {
    HistoryRunner runner(script, nullptr, root);
    const Status s = runner.Run(&own);
    complaints.insert(complaints.end(), runner.disagreements().begin(),
                      runner.disagreements().end());
    if (!s.ok()) {
      complaints.push_back(s.getState());
      return complaints;
    }
  }
  std::vector<std::string> texts;
  bool is_expected = true;
  for (size_t i = 0; i < own.size(); ++i) {
    const HistoryBlock& block = script.blocks()[i];
    texts.push_back(HistoryRunner::Text(own[i]));
    if (texts.back() != block.expected) {
      is_expected = false;
      complaints.push_back(script.Where(block.expected_line) + "expected:\n" +
                           block.expected + "but it is:\n" + texts.back());
    }
  }
  if (!is_expected) {
    *rewritten = script.Rewrite(texts);
  }

  for (const HistoryVariant* variant : variants) {
    HistoryRunner runner(script, variant, root);
    std::vector<HistoryRunner::Outputs> others;
    const Status s = runner.Run(&others);
    const std::string under = " (under \"" + variant->name + "\")";
    for (const std::string& disagreement : runner.disagreements()) {
      complaints.push_back(disagreement + under);
    }
    if (!s.ok()) {
      complaints.push_back(s.getState() + under);
      continue;
    }
    for (size_t i = 0; i < own.size(); ++i) {
      for (size_t j = 0; j < own[i].size(); ++j) {
        if (!own[i][j].is_structural && own[i][j].text != others[i][j].text) {
          complaints.push_back(script.Where(own[i][j].command->line) +
                               "without variant:\n" + own[i][j].text +
                               "but it is" + under + ":\n" + others[i][j].text);
        }
      }
    }
  }
  return complaints;
}

std::string FindHistoryScripts() {
  constexpr char kBelow[] = "/testdata/history";
  const auto is_directory = [](const std::string& path) {
    bool is_dir = false;
    return FileSystem::Default()
               ->IsDirectory(path, IOOptions(), &is_dir, nullptr)
               .ok() &&
           is_dir;
  };
  if (const char* testdata = std::getenv("STRATA_TESTDATA")) {
    const std::string path = std::string(testdata) + "/history";
    return is_directory(path) ? path : "";
  }
  char buffer[4096];
  std::vector<std::string> starts;
  const ssize_t length = readlink("/proc/self/exe", buffer, sizeof(buffer) - 1);
  if (length > 0) {
    starts.emplace_back(buffer, static_cast<size_t>(length));
  }
  if (getcwd(buffer, sizeof(buffer)) != nullptr) {
    starts.push_back(std::string(buffer) + "/.");
  }
  for (std::string path : starts) {
    for (size_t slash = path.rfind('/'); slash != std::string::npos;
         slash = path.rfind('/')) {
      path.erase(slash);
      if (is_directory(path + kBelow)) {
        return path + kBelow;
      }
    }
  }
  return "";
}

}  // namespace ROCKSDB_NAMESPACE
