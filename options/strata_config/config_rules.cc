//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata_config/config_rules.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "rocksdb/advanced_compression.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/comparator.h"
#include "rocksdb/convenience.h"
#include "rocksdb/customizable.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/listener.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_partitioner.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/utilities/options_type.h"
#include "rocksdb/wal_filter.h"

namespace ROCKSDB_NAMESPACE {

namespace {

struct RefusedOption {
  const char* name;
  const char* reason;
};

const RefusedOption kRefusedOptions[] = {
    {"wal_dir",
     "an open without this file would not find the WALs there, and lose the "
     "writes in them"},
    {"persist_stats_to_disk",
     "it adds a column family, and the program would not open the database "
     "with it the next time"},
    {"best_efforts_recovery",
     "an open would give up the data of missing files instead of failing"},
    {"env", "the files of the database are in the Env of the program"},
};

// RocksDB asserts that the rate is positive.
Status CheckRateLimit(const std::string& name, const std::string& value) {
  uint64_t rate = 0;
  ConfigOptions config;
  config.input_strings_escaped = false;
  const Status s =
      OptionTypeInfo(0, OptionType::kUInt64T).Parse(config, name, value, &rate);
  if (!s.ok()) {
    return s;
  }
  return rate > 0 && rate <= static_cast<uint64_t>(
                                 std::numeric_limits<int64_t>::max())
             ? Status::OK()
             : Status::InvalidArgument(name + " is not from 1 to 2^63 - 1");
}

std::string TextOf(const Customizable* object) {
  return object == nullptr ? "" : object->ToString(ConfigOptions());
}

// REQUIRES: the program has the object that is replaced
Status Replaced(const std::string& name, const std::string& text) {
  return Status::InvalidArgument(
      name + " would replace what the program has brought" +
      (text.empty() ? std::string() : " (" + text + ")") +
      ", and on which it may rely");
}

// T: a pointer to a Customizable.
template <typename T>
Status Keep(const char* name, const T& given, T* after, std::string* option) {
  *option = name;
  if (given == nullptr || *after == given) {
    return Status::OK();
  }
  const std::string text = TextOf(&*given);
  if (*after == nullptr || TextOf(&**after) != text) {
    return Replaced(name, text);
  }
  *after = given;
  return Status::OK();
}

// T: a shared pointer to a Customizable.
template <typename T>
Status KeepAll(const char* name, const std::vector<T>& given,
               std::vector<T>* after, std::string* option) {
  *option = name;
  if (given.empty() || *after == given) {
    return Status::OK();
  }
  bool are_equal = after->size() == given.size();
  for (size_t i = 0; are_equal && i < given.size(); ++i) {
    const std::string text = TextOf(given[i].get());
    // An object without a name is not equal to any other.
    are_equal = !text.empty() && TextOf((*after)[i].get()) == text;
  }
  if (!are_equal) {
    return Replaced(name, "");
  }
  *after = given;
  return Status::OK();
}

// Sets *after to the value that the program needs.
template <typename T>
void KeepValue(const char* name, const T& needed, T* after,
               std::vector<std::string>* kept) {
  if (*after != needed) {
    *after = needed;
    kept->emplace_back(name);
  }
}

// What only the program may choose: lines have done it, and it is not what the
// program has given.
struct Choice {
  const char* option;
  bool is_made;
  const char* reason;
  // The program's value can be one that an earlier line has set, and that the
  // program has read from the OPTIONS file.
  bool may_replace_line = false;
};

const char* const kEarlierLine =
    ". If the program reads its options from the OPTIONS file, the value there "
    "may be that of an earlier line. Then change it in the newest OPTIONS file "
    "while the database is closed";

Status CheckChoices(const std::vector<Choice>& choices, std::string* option) {
  for (const Choice& choice : choices) {
    if (choice.is_made) {
      *option = choice.option;
      return Status::InvalidArgument(
          std::string(choice.reason) +
          ". So only the program can choose this value" +
          (choice.may_replace_line ? kEarlierLine : ""));
    }
  }
  return Status::OK();
}

// Returns the seconds after which FIFO compaction deletes data, as an open
// would find them out.
uint64_t LifetimeOf(const ColumnFamilyOptions& options) {
  constexpr uint64_t kForever = std::numeric_limits<uint64_t>::max();
  constexpr uint64_t kLetRocksDBChoose = kForever - 1;
  if (options.ttl != kLetRocksDBChoose) {
    return options.ttl == 0 ? kForever : options.ttl;
  }
  constexpr uint64_t kDays = 24 * 60 * 60;
  return options.table_factory != nullptr &&
                 options.table_factory->IsInstanceOf(
                     TableFactory::kBlockBasedTableName())
             ? 30 * kDays
             : kForever;
}

// Returns true if a recovery could drop writes that it would not drop by the
// given mode. The default may replace the strictest mode, which an earlier line
// can have set: otherwise no line could take that back.
bool DropsMore(WALRecoveryMode given, WALRecoveryMode after) {
  constexpr WALRecoveryMode kStrictest = WALRecoveryMode::kAbsoluteConsistency;
  constexpr WALRecoveryMode kDefault = WALRecoveryMode::kPointInTimeRecovery;
  return after != given && after != kStrictest &&
         !(given == kStrictest && after == kDefault);
}

// Returns true if FIFO compaction can delete data by the size limits of `after`
// that it keeps by those of `given`.
bool DeletesMore(const CompactionOptionsFIFO& given,
                 const CompactionOptionsFIFO& after) {
  // A limit for SST files alone is not comparable with one for all files.
  const bool counts_blobs = given.max_data_files_size != 0;
  if (counts_blobs != (after.max_data_files_size != 0)) {
    return true;
  }
  return counts_blobs ? after.max_data_files_size < given.max_data_files_size
                      : after.max_table_files_size < given.max_table_files_size;
}

}  // namespace

Status CheckConfigOption(const std::string& name, const std::string& value) {
  if (name.find('.') != std::string::npos) {
    // Such a line can change an object in place (TableFactoryParseFn()).
    return Status::InvalidArgument(
        name +
        " has a dot: write the option before the dot, with the other "
        "one in braces, such as "
        "block_based_table_factory={block_size=16k}");
  }
  for (const RefusedOption& refused : kRefusedOptions) {
    if (name == refused.name) {
      return Status::InvalidArgument(name +
                                     " cannot be set here: " + refused.reason);
    }
  }
  return name == "rate_limiter_bytes_per_sec" ? CheckRateLimit(name, value)
                                              : Status::OK();
}

Status CheckIsComplete(const DBOptions& /*options*/) { return Status::OK(); }

Status CheckIsComplete(const ColumnFamilyOptions& options) {
  return options.comparator != nullptr && options.table_factory != nullptr &&
                 options.memtable_factory != nullptr
             ? Status::OK()
             : Status::InvalidArgument(
                   "a column family needs a comparator, a table_factory and a "
                   "memtable_factory");
}

Status KeepProgramObjects(const DBOptions& given, DBOptions* after,
                          std::string* option) {
  Status s = Keep("statistics", given.statistics, &after->statistics, option);
  if (s.ok()) {
    s = Keep("wal_filter", given.wal_filter, &after->wal_filter, option);
  }
  if (s.ok()) {
    s = KeepAll("listeners", given.listeners, &after->listeners, option);
  }
  if (s.ok()) {
    s = Keep("file_checksum_gen_factory", given.file_checksum_gen_factory,
             &after->file_checksum_gen_factory, option);
  }
  return s;
}

Status KeepProgramObjects(const ColumnFamilyOptions& given,
                          ColumnFamilyOptions* after, std::string* option) {
  Status s = Keep("comparator", given.comparator, &after->comparator, option);
  if (s.ok()) {
    s = Keep("merge_operator", given.merge_operator, &after->merge_operator,
             option);
  }
  if (s.ok()) {
    s = Keep("compaction_filter", given.compaction_filter,
             &after->compaction_filter, option);
  }
  if (s.ok()) {
    s = Keep("compaction_filter_factory", given.compaction_filter_factory,
             &after->compaction_filter_factory, option);
  }
  if (s.ok()) {
    s = Keep("prefix_extractor", given.prefix_extractor,
             &after->prefix_extractor, option);
  }
  if (s.ok()) {
    s = Keep("sst_partitioner_factory", given.sst_partitioner_factory,
             &after->sst_partitioner_factory, option);
  }
  if (s.ok()) {
    s = Keep("compression_manager", given.compression_manager,
             &after->compression_manager, option);
  }
  if (s.ok()) {
    s = KeepAll("table_properties_collectors",
                given.table_properties_collector_factories,
                &after->table_properties_collector_factories, option);
  }
  return s;
}

void KeepProgramValues(const DBOptions& given, DBOptions* after,
                       std::vector<std::string>* kept) {
  if (given.allow_2pc) {
    KeepValue("allow_2pc", true, &after->allow_2pc, kept);
  }
}

void KeepProgramValues(const ColumnFamilyOptions& given, bool has_2pc,
                       ColumnFamilyOptions* after,
                       std::vector<std::string>* kept) {
  // No OPTIONS file has a negative number, as an open replaces it.
  const bool has_history = given.max_write_buffer_size_to_maintain < 0;
  // A pause: the program allows compactions after the open.
  if (given.disable_auto_compactions && (has_history || has_2pc)) {
    KeepValue("disable_auto_compactions", true,
              &after->disable_auto_compactions, kept);
  }
  // The history by which transactions find conflicts. With a shorter one they
  // return TryAgain, so a number can be changed.
  if (has_history) {
    KeepValue("max_write_buffer_size_to_maintain",
              given.max_write_buffer_size_to_maintain,
              &after->max_write_buffer_size_to_maintain, kept);
  }
}

Status CheckKeepsData(const DBOptions& given, const DBOptions& after,
                      std::string* option) {
  return CheckChoices(
      {{"avoid_flush_during_shutdown",
        after.avoid_flush_during_shutdown && !given.avoid_flush_during_shutdown,
        "a close would lose writes that are in no WAL (disableWAL)"},
       {"manual_wal_flush", after.manual_wal_flush && !given.manual_wal_flush,
        "a crash of the process would lose writes that the program has not "
        "flushed by FlushWAL()"},
       {"wal_recovery_mode",
        DropsMore(given.wal_recovery_mode, after.wal_recovery_mode),
        "a recovery could drop writes of a damaged WAL that it would not drop "
        "otherwise"},
       {"wal_filter",
        after.wal_filter != nullptr && given.wal_filter == nullptr,
        "a WAL filter can drop writes"},
       {"paranoid_checks", !after.paranoid_checks && given.paranoid_checks,
        "the database would go on after errors by which it loses data",
        /*may_replace_line=*/true},
       {"atomic_flush", !after.atomic_flush && given.atomic_flush,
        "a crash could leave writes without a WAL in one column family, and "
        "lose those in another",
        /*may_replace_line=*/true},
       {"unordered_write",
        after.unordered_write && !given.unordered_write && given.allow_2pc,
        "transactions with allow_2pc rely on the order of writes",
        /*may_replace_line=*/true}},
      option);
}

Status CheckKeepsData(const ColumnFamilyOptions& given,
                      const ColumnFamilyOptions& after, std::string* option) {
  const bool has_fifo = given.compaction_style == kCompactionStyleFIFO;
  const bool gets_fifo = after.compaction_style == kCompactionStyleFIFO;
  return CheckChoices(
      {{"compaction_style", gets_fifo && !has_fifo,
        "FIFO compaction deletes the oldest data"},
       {"compaction_options_fifo",
        gets_fifo && DeletesMore(given.compaction_options_fifo,
                                 after.compaction_options_fifo),
        "FIFO compaction would delete data earlier, by another or a smaller "
        "limit",
        /*may_replace_line=*/true},
       {"ttl", gets_fifo && LifetimeOf(after) < LifetimeOf(given),
        "FIFO compaction would delete data earlier",
        /*may_replace_line=*/true},
       {"prefix_extractor",
        after.prefix_extractor != nullptr && given.prefix_extractor == nullptr,
        "iterators without total_order_seek would hide keys with other "
        "prefixes"},
       {"compaction_filter",
        after.compaction_filter != nullptr &&
            given.compaction_filter == nullptr,
        "a compaction filter can delete data"},
       {"compaction_filter_factory",
        after.compaction_filter_factory != nullptr &&
            given.compaction_filter_factory == nullptr,
        "a compaction filter can delete data"},
       {"inplace_update_support",
        after.inplace_update_support && !given.inplace_update_support,
        "there would be no snapshots"},
       {"enable_blob_direct_write",
        after.enable_blob_direct_write && !given.enable_blob_direct_write,
        "a crash would lose writes that are in the WAL"},
       {"persist_user_defined_timestamps",
        !after.persist_user_defined_timestamps &&
            given.persist_user_defined_timestamps,
        "flushes would drop timestamps, and with them older versions",
        /*may_replace_line=*/true}},
      option);
}

}  // namespace ROCKSDB_NAMESPACE
