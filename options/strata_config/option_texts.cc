//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/option_texts.h"

#include <algorithm>

#include "options/strata/option_text.h"
#include "options/strata/strata_option_table.h"
#include "rocksdb/advanced_cache.h"
#include "rocksdb/convenience.h"
#include "rocksdb/rate_limiter.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "util/strata/path_list.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kNone = "none";

ConfigOptions LinesOfTexts() {
  ConfigOptions config;
  config.delimiter = "\n";
  return config;
}

// Adds options of a text that has "name=value" on each line.
void AddLines(const std::string& prefix, const std::string& text,
              OptionTexts* texts) {
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t equals = text.find('=', begin);
    if (equals < end) {
      (*texts)[prefix + text.substr(begin, equals - begin)] =
          text.substr(equals + 1, end - equals - 1);
    }
    begin = end + 1;
  }
}

std::string CacheText(const Cache* cache) {
  return cache == nullptr ? kNone
                          : std::string(cache->Name()) + " of " +
                                std::to_string(cache->GetCapacity()) + " bytes";
}

void AddTableOptions(const TableFactory& factory, OptionTexts* texts) {
  std::string text;
  if (factory.GetOptionString(LinesOfTexts(), &text).ok()) {
    AddLines("table_factory.", text, texts);
  }
  const auto* const options = factory.GetOptions<BlockBasedTableOptions>();
  if (options != nullptr) {
    (*texts)["table_factory.block_cache"] =
        CacheText(options->block_cache.get());
  }
}

}  // namespace

#define STRATA_TEXT(kind, name, ...) texts[#name] = OptionText(options.name);

OptionTexts TextsOf(const DBOptions& options) {
  OptionTexts texts;
  std::string text;
  if (GetStringFromDBOptions(LinesOfTexts(), options, &text).ok()) {
    AddLines("", text, &texts);
  }
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_TEXT)
  texts["db_paths"] = PathListToString(options.db_paths);
  texts["rate_limiter_bytes_per_sec"] =
      options.rate_limiter == nullptr
          ? kNone
          : std::to_string(options.rate_limiter->GetBytesPerSecond());
  texts["statistics"] =
      options.statistics == nullptr ? kNone : options.statistics->Name();
  return texts;
}

OptionTexts TextsOf(const ColumnFamilyOptions& options) {
  OptionTexts texts;
  std::string text;
  if (GetStringFromColumnFamilyOptions(LinesOfTexts(), options, &text).ok()) {
    AddLines("", text, &texts);
  }
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_TEXT)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_TEXT)
  texts["cf_paths"] = PathListToString(options.cf_paths);
  texts["blob_cache"] = CacheText(options.blob_cache.get());
  if (options.table_factory != nullptr) {
    AddTableOptions(*options.table_factory, &texts);
  }
  return texts;
}

#undef STRATA_TEXT

}  // namespace ROCKSDB_NAMESPACE
