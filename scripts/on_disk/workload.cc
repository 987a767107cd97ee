//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// A fixed, single-threaded history of writes, flushes and compactions. Built
// once against RocksDB and once against Strata, it must leave the same files
// behind when no Strata option is set; compare.py checks that it does.
//
//   workload DIR VARIANT     (VARIANT: one of kVariants)

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "numbers.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/system_clock.h"
#include "rocksdb/table.h"

namespace {

using namespace ROCKSDB_NAMESPACE;
using namespace ROCKSDB_NAMESPACE::on_disk;

// Creation times go into tables and the MANIFEST: stand still.
class StoppedClock : public SystemClockWrapper {
 public:
  StoppedClock() : SystemClockWrapper(SystemClock::Default()) {}
  const char* Name() const override { return "StoppedClock"; }
  uint64_t NowMicros() override { return kSeconds * 1000000; }
  uint64_t NowNanos() override { return kSeconds * 1000000000; }
  Status GetCurrentTime(int64_t* unix_time) override {
    *unix_time = kSeconds;
    return Status::OK();
  }

 private:
  static constexpr uint64_t kSeconds = 1700000000;
};

class StoppedEnv : public EnvWrapper {
 public:
  StoppedEnv() : EnvWrapper(Env::Default()) {
    system_clock_ = std::make_shared<StoppedClock>();
  }
  const char* Name() const override { return "StoppedEnv"; }
  Status GetCurrentTime(int64_t* unix_time) override {
    return system_clock_->GetCurrentTime(unix_time);
  }
  uint64_t NowMicros() override { return system_clock_->NowMicros(); }
};

class Concatenate : public AssociativeMergeOperator {
 public:
  const char* Name() const override { return "Concatenate"; }
  bool Merge(const Slice& /*key*/, const Slice* existing, const Slice& value,
             std::string* result, Logger* /*logger*/) const override {
    *result = (existing ? existing->ToString() : "") + value.ToString();
    return true;
  }
};

struct Variant {
  const char* name;
  CompactionStyle style;
  bool blobs;
  bool blob_gc;
  CompressionType compression;
  bool partitioned;
};

constexpr Variant kVariants[] = {
    {"plain", kCompactionStyleLevel, false, false, kNoCompression, false},
    {"compressed", kCompactionStyleLevel, false, false, kZSTD, true},
    {"blobs", kCompactionStyleLevel, true, false, kNoCompression, false},
    {"blob_gc", kCompactionStyleLevel, true, true, kLZ4Compression, false},
    {"universal", kCompactionStyleUniversal, true, true, kNoCompression, false},
};

Options MakeOptions(const Variant& variant, Env* env) {
  Options options;
  options.env = env;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.db_host_id = "host";
  options.write_dbid_to_manifest = true;
  options.max_background_jobs = 1;
  options.max_subcompactions = 1;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.write_buffer_size = 64 << 20;
  options.target_file_size_base = 256 << 10;
  options.max_bytes_for_level_base = 1 << 20;
  options.level0_file_num_compaction_trigger = 3;
  options.compaction_style = variant.style;
  options.compression = variant.compression;
  options.enable_blob_files = variant.blobs;
  options.min_blob_size = 200;
  options.blob_file_size = 256 << 10;
  options.blob_compression_type = variant.compression;
  options.enable_blob_garbage_collection = variant.blob_gc;
  options.merge_operator = std::make_shared<Concatenate>();
  BlockBasedTableOptions table;
  // Checksums of later versions depend on the file's unique id.
  table.format_version = 5;
  table.filter_policy.reset(NewBloomFilterPolicy(10));
  if (variant.partitioned) {
    table.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
    table.partition_filters = true;
  }
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  return options;
}

void Run(const std::string& dir, const Variant& variant) {
  StoppedEnv env;
  const Options options = MakeOptions(variant, &env);
  const std::vector<ColumnFamilyDescriptor> families = {
      {kDefaultColumnFamilyName, options}, {"other", options}};
  Numbers numbers;
  constexpr uint32_t kKeys = 3000;
  for (int session = 0; session < 2; ++session) {
    std::vector<ColumnFamilyHandle*> handles;
    std::unique_ptr<DB> db;
    Check(DB::Open(options, dir, families, &handles, &db), "open");
    for (int round = 0; round < 8; ++round) {
      ColumnFamilyHandle* family = handles[round % 4 == 3 ? 1 : 0];
      for (int i = 0; i < 1500; ++i) {
        const std::string key = Key(numbers.Below(kKeys));
        const uint32_t dice = numbers.Below(20);
        Status s;
        if (dice < 14) {
          const std::string value = numbers.Bytes(20 + numbers.Below(500));
          s = db->Put(WriteOptions(), family, key, value);
        } else if (dice < 17) {
          s = db->Merge(WriteOptions(), family, key, numbers.Bytes(30));
        } else if (dice < 19) {
          s = db->Delete(WriteOptions(), family, key);
        } else {
          const uint32_t begin = numbers.Below(kKeys);
          s = db->DeleteRange(WriteOptions(), family, Key(begin),
                              Key(begin + 1 + numbers.Below(5)));
        }
        Check(s, "write");
      }
      Check(db->Flush(FlushOptions(), family), "flush");
      Check(db->WaitForCompact(WaitForCompactOptions()), "wait");
    }
    Check(db->CompactRange(CompactRangeOptions(), handles[0], nullptr, nullptr),
          "compact");
    for (ColumnFamilyHandle* handle : handles) {
      Check(db->DestroyColumnFamilyHandle(handle), "handle");
    }
    Check(db->Close(), "close");
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const Variant& variant : kVariants) {
    if (argc == 3 && argv[2] == std::string(variant.name)) {
      Run(argv[1], variant);
      return 0;
    }
  }
  fprintf(stderr, "usage: %s DIR VARIANT\n", argv[0]);
  for (const Variant& variant : kVariants) {
    fprintf(stderr, "  %s\n", variant.name);
  }
  return 2;
}
