//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "contents.h"
#include "numbers.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/transaction_db.h"
#if __has_include("rocksdb/strata_options.h")
#define WITH_STRATA
#endif

namespace ROCKSDB_NAMESPACE::on_disk {

// How upgrade.cc opens databases and writes to them.

constexpr uint32_t kKeys = 3000;
// Each has some keys of its own, so that they do not wait for each other.
constexpr uint32_t kTransactions = 10;
constexpr uint32_t kKeysOfTransaction = 40;
// From this key on, no transaction has any.
constexpr uint32_t kFirstFreeKey = kTransactions * kKeysOfTransaction;

class Flags {
 public:
  Flags(int argc, char** argv) {
    for (int i = 2; i < argc; ++i) {
      const std::string arg = argv[i];
      const size_t equals = arg.find('=');
      Require(arg.substr(0, 2) == "--" && equals != std::string::npos,
              arg + " has the form --name=value");
      values_[arg.substr(2, equals - 2)] = arg.substr(equals + 1);
    }
  }

  std::string Get(const std::string& name) const {
    const auto it = values_.find(name);
    return it == values_.end() ? "" : it->second;
  }

 private:
  std::map<std::string, std::string> values_;
};

// How a database is opened.
struct Setup {
  explicit Setup(const Flags& flags)
      : dir(flags.Get("db")),
        kind(flags.Get("kind")),
        layout(flags.Get("layout")),
        paths(flags.Get("paths") == "2" ? 2 : 1),
        read_only(flags.Get("read_only") == "1") {
    std::istringstream list(flags.Get("features"));
    for (std::string name; std::getline(list, name, ',');) {
      features.insert(name);
    }
    blobs = kind == "blobs" || kind == "garbage" || flags.Get("blobs") == "1";
  }

  bool Has(const char* feature) const { return features.count(feature) > 0; }
  bool transactions() const { return kind == "transactions"; }

  std::string dir;
  std::string kind;
  std::set<std::string> features;
  std::string layout;
  int paths;
  bool read_only;
  bool blobs;
};

inline void SetFeatures(const Setup& setup, Options* options) {
#ifdef WITH_STRATA
  if (setup.Has("map")) {
    options->enable_blob_files = true;
    options->enable_blob_garbage_collection = false;
    options->enable_blob_address_map = true;
    options->enable_lsm_bypass = !setup.Has("no_bypass");
  }
  if (setup.Has("deltas")) {
    options->enable_delta_separation = true;
    // Small enough for buckets to be split and folded.
    options->delta_bucket_size = 4096;
    options->delta_max_buckets = 4;
  }
  options->enable_merged_value_cache = setup.Has("merged_values");
  if (setup.Has("writes")) {
    options->wal_mmap_buffer_size = 65536;
    options->max_write_groups_per_leader = 8;
  }
  if (setup.layout == "split") {
    options->level_sst_path_ids = {0, 1};
    options->level_blob_path_ids = {1};
  } else if (setup.layout == "first") {
    options->level_sst_path_ids = {0};
    options->level_blob_path_ids = {0};
  }
#else
  (void)options;
  Require(setup.features.empty() && setup.layout.empty(), "RocksDB has this");
#endif
}

inline Options MakeOptions(const Setup& setup) {
  Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.allow_2pc = setup.transactions();
  options.statistics = CreateDBStatistics();
  options.write_buffer_size = 64 << 20;
  options.target_file_size_base = 256 << 10;
  options.max_bytes_for_level_base = 1 << 20;
  options.level0_file_num_compaction_trigger = 4;
  options.max_background_jobs = 4;
  options.enable_blob_files = setup.blobs;
  options.min_blob_size = 200;
  options.blob_file_size = 256 << 10;
  options.enable_blob_garbage_collection = setup.kind == "blobs";
  options.blob_garbage_collection_age_cutoff = 1.0;
  // ldb knows it.
  Check(MergeOperator::CreateFromString(ConfigOptions(), "stringappend",
                                        &options.merge_operator),
        "merge operator");
  BlockBasedTableOptions table;
  table.filter_policy.reset(NewBloomFilterPolicy(10));
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  for (int i = 0; i < setup.paths && setup.paths > 1; ++i) {
    options.cf_paths.emplace_back(
        i == 0 ? setup.dir : setup.dir + "." + std::to_string(i), 0);
  }
  SetFeatures(setup, &options);
  return options;
}

// An open database, and the model of it.
//
// Not thread-safe.
class Station {
 public:
  Station(const Setup& setup, const Options& options,
          std::vector<std::string> families = {})
      : setup_(setup), options_(options) {
    if (families.empty()) {
      const Status s = DB::ListColumnFamilies(options, setup.dir, &families);
      if (!s.ok()) {
        // The open fails, too, and it is the open whose error counts.
        families = {kDefaultColumnFamilyName};
      }
    }
    std::vector<ColumnFamilyDescriptor> descriptors;
    for (const std::string& family : families) {
      descriptors.emplace_back(family, options);
    }
    if (setup.read_only) {
      Check(
          DB::OpenForReadOnly(options, setup.dir, descriptors, &handles_, &db_),
          "open read-only");
    } else if (setup.transactions()) {
      TransactionDB* db = nullptr;
      Check(TransactionDB::Open(options, TransactionDBOptions(), setup.dir,
                                descriptors, &handles_, &db),
            "open");
      db_.reset(db);
      transactions_ = db;
    } else {
      Check(DB::Open(options, setup.dir, descriptors, &handles_, &db_), "open");
    }
  }

  DB* db() { return db_.get(); }
  TransactionDB* transactions() { return transactions_; }
  const std::vector<ColumnFamilyHandle*>& handles() const { return handles_; }

  Contents Read() { return ReadAll(db(), handles_); }

  // Writes n times to each column family. Of 20 writes, so many are merges;
  // among the others there are deletions.
  void Write(uint32_t n, uint32_t merges) {
    for (ColumnFamilyHandle* const handle : handles_) {
      const std::string& family = handle->GetName();
      for (uint32_t i = 0; i < n; ++i) {
        const std::string key = Key(NextKey());
        const uint32_t dice = numbers.Below(20);
        if (dice < merges) {
          Merge(handle, family, key, numbers.Bytes(20 + numbers.Below(20)));
        } else if (dice < 17 || (dice == 19 && setup_.transactions())) {
          // A TransactionDB has no DeleteRange().
          Put(handle, family, key, numbers.Bytes(20 + numbers.Below(500)));
        } else if (dice < 19) {
          Check(db_->Delete(WriteOptions(), handle, key), "Delete");
          model.Delete(family, key);
        } else {
          const uint32_t begin = NextKey();
          const std::string end = Key(begin + 1 + numbers.Below(5));
          Check(db_->DeleteRange(WriteOptions(), handle, Key(begin), end),
                "DeleteRange");
          model.DeleteRange(family, Key(begin), end);
        }
      }
    }
  }

  void Put(ColumnFamilyHandle* handle, const std::string& family,
           const std::string& key, const std::string& value) {
    Check(db_->Put(WriteOptions(), handle, key, value), "Put");
    model.Put(family, key, value);
  }
  void Merge(ColumnFamilyHandle* handle, const std::string& family,
             const std::string& key, const std::string& operand) {
    Check(db_->Merge(WriteOptions(), handle, key, operand), "Merge");
    model.Merge(family, key, operand);
  }

  void Flush() { Check(db_->Flush(FlushOptions(), handles_), "Flush"); }

  // Both are nullptr: all keys.
  void Compact(const Slice* begin, const Slice* end) {
    CompactRangeOptions compact;
    compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    for (ColumnFamilyHandle* const handle : handles_) {
      Check(db_->CompactRange(compact, handle, begin, end), "CompactRange");
    }
  }

  void Wait() {
    WaitForCompactOptions wait;
    wait.wait_for_purge = true;
    Check(db_->WaitForCompact(wait), "WaitForCompact");
  }

  // The sum of a number of a property over the column families.
  uint64_t Number(const std::string& property, const std::string& name) {
    uint64_t sum = 0;
    for (ColumnFamilyHandle* const handle : handles_) {
      std::map<std::string, std::string> values;
      if (db_->GetMapProperty(handle, property, &values) &&
          values.count(name) > 0) {
        sum += std::stoull(values[name]);
      }
    }
    return sum;
  }
  uint64_t Number(const std::string& property) {
    uint64_t sum = 0;
    for (ColumnFamilyHandle* const handle : handles_) {
      uint64_t value = 0;
      Require(db_->GetIntProperty(handle, property, &value), property);
      sum += value;
    }
    return sum;
  }
  uint64_t Ticker(uint32_t ticker) {
    return options_.statistics->getTickerCount(ticker);
  }

  void Close() {
    for (ColumnFamilyHandle* const handle : handles_) {
      Check(db_->DestroyColumnFamilyHandle(handle), "handle");
    }
    handles_.clear();
    Check(db_->Close(), "close");
    db_.reset();
  }

  Contents model;
  Numbers numbers;

 private:
  uint32_t NextKey() {
    const uint32_t first = setup_.transactions() ? kFirstFreeKey : 0;
    return first + numbers.Below(kKeys - first);
  }

  const Setup setup_;
  const Options options_;
  std::unique_ptr<DB> db_;
  TransactionDB* transactions_ = nullptr;
  std::vector<ColumnFamilyHandle*> handles_;
};

}  // namespace ROCKSDB_NAMESPACE::on_disk
