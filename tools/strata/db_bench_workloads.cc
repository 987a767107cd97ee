// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS
#include "tools/strata/db_bench_workloads.h"

#include <memory>
#include <vector>

#include "env/composite_env_wrapper.h"
#include "rocksdb/convenience.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/utilities/object_registry.h"
#include "tools/strata/given_flag.h"
#include "tools/workloads/device_profile.h"
#include "tools/workloads/simulated_device_fs.h"
#include "tools/workloads/snapshot_workload.h"
#include "util/gflags_compat.h"
#include "util/string_util.h"
#include "utilities/strata/field_update.h"
// The options do not exist if the workloads are built with unpatched RocksDB.
#ifndef STRATA_STOCK_LIBRARY
#include "options/strata/path_prices.h"
#include "tools/strata/option_flags.h"
#include "util/strata/path_list.h"
#endif

DECLARE_string(benchmarks);
DECLARE_int64(num);
DECLARE_int32(num_multi_db);
DECLARE_int32(num_column_families);
DECLARE_int32(user_timestamp_size);
DECLARE_int32(key_size);
DECLARE_double(compression_ratio);
DECLARE_bool(use_blob_db);
DECLARE_string(options_file);

DEFINE_string(report_json, "",
              "Append one JSON object per benchmark to this file, a line each: "
              "operations, latencies by kind of operation, bytes read and "
              "written by the process, CPU seconds, memory, size of the "
              "database, write and space amplification");

DEFINE_string(timeseries_csv, "",
              "Append a line per interval of each benchmark to this file: "
              "throughput, latencies, sizes, bytes read and written");

DEFINE_uint64(timeseries_interval_ms, 1000,
              "Interval of --timeseries_csv in milliseconds");

DEFINE_bool(hold_snapshot, false,
            "Hold a snapshot from the beginning to the end of each workload");

DEFINE_string(stopped_nanos_file, "",
              "A file with the nanoseconds for which this process was stopped "
              "(SIGSTOP) so far, as an integer of 8 bytes in the byte order of "
              "the machine. Times, rates and --duration exclude them; "
              "stall_micros of --report_json is null then");

DEFINE_string(path_devices, "",
              "Files below a directory take the time that they would take on a "
              "simulated device: <path>:<device>,... A device is nvme, sata, "
              "hdd, network, or <latency us>:<MB/s>:<IOPS>[:<queue depth>[:"
              "<sync us>]], each of the first three as <read>/<write> if they "
              "differ; 0 MB/s or IOPS is no limit");

DEFINE_uint64(ycsb_records, 0,
              "Records that ycsbload and up2xload write and that the other "
              "workloads draw from; 0: --num. Operations are --num per thread "
              "or as many as fit in --duration");

DEFINE_uint32(ycsb_field_count, 10, "Fields of a record's value");

DEFINE_uint32(ycsb_field_length, 100,
              "Bytes of a field, at least 8; each takes one or more bytes for "
              "its length, too");

DEFINE_bool(ycsb_write_all_fields, false,
            "An update puts a new value without reading the old one, instead "
            "of replacing one field");

DEFINE_string(ycsb_distribution, "",
              "Distribution of the records of a workload: uniform, zipfian or "
              "latest; empty: that of the workload's definition");

DEFINE_double(ycsb_zipfian_const, 0.99,
              "Exponent of zipfian and latest; any positive number");

DEFINE_uint64(ycsb_zipfian_items, 0,
              "Number of ranks of zipfian; 0: the number of records, as in "
              "YCSB-C. Java's YCSB always has 10000000000, which makes the "
              "hottest record less hot");

DEFINE_uint32(ycsb_scan_length, 100,
              "Longest scan of ycsbe and ycsbmix; lengths are uniform from 1");

DEFINE_string(ycsb_mix, "read:50,update:50",
              "Operations of ycsbmix in percent: read, update, insert, scan, "
              "rmw, merge, put (blind, of a whole value), readmissing (of a "
              "key that was never written)");

DEFINE_bool(ycsb_verify_reads, false,
            "Check each value that the workloads read; the measured times "
            "include the checks");

DEFINE_bool(ycsb_allow_missing, false,
            "Missing records are not an error, for example after "
            "deleterandomrange");

DEFINE_string(rmw_mode, "merge",
              "How rmw does its read-modify-writes: merge, or getput");

DEFINE_int32(rmw_read_ratio, 10, "Percentage of plain reads in rmw");

DEFINE_uint32(scan_length, 100, "Keys that each scan of randomscan reads");

DEFINE_uint64(scan_stay, 0,
              "Scans of randomscan and scanwhilewriting, of all threads "
              "together, that begin in one of --scan_parts before they move to "
              "the next; 0: scans begin anywhere");

DEFINE_uint64(scan_parts, 100,
              "Equal parts of the key space for --scan_stay, at least 1");

DEFINE_bool(scan_reverse, false, "Scans go backward");

DEFINE_bool(scan_keys_only, false,
            "Scans do not read values (ReadOptions::allow_unprepared_value)");

DEFINE_bool(scan_bounded, false,
            "Scans set iterate_upper_bound (backward: lower) where they are "
            "expected to end");

DEFINE_bool(scan_pin_data, false, "ReadOptions::pin_data of scans");

DEFINE_bool(scan_fill_cache, true, "ReadOptions::fill_cache of scans");

DEFINE_uint64(delete_range_width, 100,
              "Records that a range of deleterandomrange covers on average");

DEFINE_bool(compact_force_blob_gc, false,
            "The benchmark compact also rewrites the values in blob files, in "
            "the order of their keys");

#ifndef STRATA_STOCK_LIBRARY
DEFINE_string(cf_paths, "",
              "Directories of every column family: <path>[:<bytes>],... with "
              "bytes such as 100g");

DEFINE_string(level_sst_path_ids, "",
              "Which of --cf_paths the SST files of each level go to, e.g. "
              "0,1; the last entry is for all deeper levels");

DEFINE_string(level_blob_path_ids, "",
              "Which of --cf_paths the blob files written for each level go "
              "to, e.g. 0,1; the last entry is for all deeper levels");

DEFINE_string(path_prices, "",
              "What a GiB costs on each of --cf_paths, e.g. 0.39,0.19: the "
              "property rocksdb.path-stats then has the cost of the files");

#define STRATA_FLAG_HELP(help, bench_help) help bench_help
STRATA_DEFINE_OPTION_FLAGS
#undef STRATA_FLAG_HELP

DEFINE_int64(blob_prefetch_count, -1,
             "With --enable_blob_address_map: number of values that a scan "
             "reads ahead; -1: the default of the library");
#endif

namespace {

bool ValidateRmwMode(const char* flag, const std::string& value) {
  if (value == "merge" || value == "getput") {
    return true;
  }
  fprintf(stderr, "--%s must be merge or getput, not '%s'\n", flag,
          value.c_str());
  return false;
}
DEFINE_validator(rmw_mode, &ValidateRmwMode);

bool ValidatePositive(const char* flag, uint64_t value) {
  if (value > 0) {
    return true;
  }
  fprintf(stderr, "--%s must be positive\n", flag);
  return false;
}
DEFINE_validator(timeseries_interval_ms, &ValidatePositive);
DEFINE_validator(scan_parts, &ValidatePositive);

}  // namespace

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

WorkloadOptions OptionsFromFlags() {
  WorkloadOptions options;
  options.records = FLAGS_ycsb_records > 0 ? FLAGS_ycsb_records
                                           : static_cast<uint64_t>(FLAGS_num);
  // db_bench's own defaults for these two differ from those of YCSB.
  if (IsFlagGiven("key_size")) {
    options.key_size = FLAGS_key_size;
  }
  if (IsFlagGiven("compression_ratio")) {
    options.compression_ratio = FLAGS_compression_ratio;
  }
  options.field_count = FLAGS_ycsb_field_count;
  options.field_length = FLAGS_ycsb_field_length;
  options.write_all_fields = FLAGS_ycsb_write_all_fields;
  options.distribution = FLAGS_ycsb_distribution;
  options.zipfian_const = FLAGS_ycsb_zipfian_const;
  options.zipfian_items = FLAGS_ycsb_zipfian_items;
  options.mix = FLAGS_ycsb_mix;
  options.ycsb_scan_length = FLAGS_ycsb_scan_length;
  options.rmw_mode =
      FLAGS_rmw_mode == "merge" ? RmwMode::kMerge : RmwMode::kGetPut;
  options.rmw_read_ratio = FLAGS_rmw_read_ratio;
  options.scan_length = FLAGS_scan_length;
  options.scan_parts = FLAGS_scan_parts;
  options.scan_stay = FLAGS_scan_stay;
  options.scan_reverse = FLAGS_scan_reverse;
  options.scan_keys_only = FLAGS_scan_keys_only;
  options.scan_bounded = FLAGS_scan_bounded;
  options.scan_pin_data = FLAGS_scan_pin_data;
  options.scan_fill_cache = FLAGS_scan_fill_cache;
  options.delete_range_width = FLAGS_delete_range_width;
  options.verify_reads = FLAGS_ycsb_verify_reads;
  options.allow_missing = FLAGS_ycsb_allow_missing;
  return options;
}

// Makes --merge_operator and OPTIONS files find the operator with unpatched
// RocksDB. In Strata it is registered already; this then does nothing.
void RegisterMergeOperator() {
  static const bool registered = [] {
    RegisterFieldUpdateOperator(*ObjectLibrary::Default());
    return true;
  }();
  (void)registered;
}

// The file system of --path_devices, which is never deleted; nullptr without
// the flag.
SimulatedDeviceFileSystem* simulated_devices = nullptr;

Env* ApplyClockFlag(Env* env) {
  if (FLAGS_stopped_nanos_file.empty()) {
    return env;
  }
  Status s = ActiveClock::Follow(FLAGS_stopped_nanos_file);
  if (!s.ok()) {
    fprintf(stderr, "--stopped_nanos_file: %s\n", s.ToString().c_str());
    exit(1);
  }
  return ActiveClock::Wrap(env);
}

Env* ApplyDeviceFlag(Env* env) {
  std::vector<PathDevice> devices;
  Status s = ParsePathDevices(FLAGS_path_devices, &devices);
  if (!s.ok()) {
    fprintf(stderr, "--path_devices: %s\n", s.ToString().c_str());
    exit(1);
  }
  if (devices.empty()) {
    return env;
  }
  // A device does not work while the process is stopped. The env with the clock
  // lives as long as the process.
  auto fs = std::make_shared<SimulatedDeviceFileSystem>(
      env->GetFileSystem(), devices, env->GetSystemClock().get());
  simulated_devices = fs.get();
  return new CompositeEnvWrapper(env, fs);
}

}  // namespace

Env* ApplyEnvFlags(Env* env) { return ApplyDeviceFlag(ApplyClockFlag(env)); }

void PrintDevices() {
  if (simulated_devices == nullptr) {
    return;
  }
  for (const DeviceReport& report : simulated_devices->GetReports()) {
    fprintf(stdout, "Simulated device %s\n", report.ToString().c_str());
  }
}

std::unique_ptr<BenchmarkReport> NewReportFromFlags() {
  RegisterMergeOperator();
  auto report = std::make_unique<BenchmarkReport>(
      FLAGS_report_json, FLAGS_timeseries_csv, FLAGS_timeseries_interval_ms);
  report->SetDevices(simulated_devices);
  Status s = report->Open();
  if (!s.ok()) {
    fprintf(stderr, "report: %s\n", s.ToString().c_str());
    exit(1);
  }
  return report;
}

std::unique_ptr<Workload> NewWorkloadFromFlags(const std::string& name) {
  // db_bench has a "verify" that compares with another database.
  if (name == "verify" && IsFlagGiven("truth_db")) {
    return nullptr;
  }
  std::unique_ptr<Workload> workload = NewWorkload(name, OptionsFromFlags());
  if (workload != nullptr && FLAGS_hold_snapshot) {
    workload = NewSnapshotWorkload(std::move(workload));
  }
  return workload;
}

Status PrepareWorkload(Workload* workload, DB* db, int threads) {
  if (FLAGS_num_multi_db > 1) {
    return Status::NotSupported("--num_multi_db", "the workload takes one DB");
  }
  if (FLAGS_num_column_families > 1) {
    return Status::NotSupported("--num_column_families",
                                "the workload takes one column family");
  }
  if (FLAGS_user_timestamp_size > 0) {
    return Status::NotSupported("--user_timestamp_size",
                                "the workload's keys have no timestamps");
  }
  if (FLAGS_use_blob_db) {
    return Status::NotSupported("--use_blob_db",
                                "the workload does not know stacked BlobDB; "
                                "--enable_blob_files is the integrated one");
  }
  return workload->Prepare(db, threads);
}

Status ApplyBenchFlags(Options* options) {
  if (options->merge_operator == nullptr) {
    for (const std::string& name : StringSplit(FLAGS_benchmarks, ',')) {
      // "name[X3]" repeats it.
      if (NeedsMergeOperator(name.substr(0, name.find('[')),
                             OptionsFromFlags())) {
        RegisterMergeOperator();
        Status s = MergeOperator::CreateFromString(
            ConfigOptions(), FieldUpdateOperator::kNickName(),
            &options->merge_operator);
        if (!s.ok()) {
          return s;
        }
        break;
      }
    }
  }
#ifndef STRATA_STOCK_LIBRARY
  if (!FLAGS_cf_paths.empty() && FLAGS_num_multi_db > 1) {
    // The DBs would delete each other's files.
    return Status::InvalidArgument("--cf_paths cannot serve several DBs");
  }
  STRATA_APPLY_OPTION_FLAGS
  if (FLAGS_max_write_groups_per_leader > 1 && FLAGS_options_file.empty() &&
      !IsFlagGiven("enable_pipelined_write")) {
    // It is on by db_bench's own default, but the two options exclude each
    // other.
    options->enable_pipelined_write = false;
  }
  const Status s = ApplyPathFlags(FLAGS_cf_paths, FLAGS_level_sst_path_ids,
                                  FLAGS_level_blob_path_ids, options);
  return s.ok() ? ApplyPathPricesFlag(FLAGS_path_prices, options) : s;
#else
  return Status::OK();
#endif
}

void ApplyReadFlags(ReadOptions* options) {
#ifndef STRATA_STOCK_LIBRARY
  if (FLAGS_blob_prefetch_count >= 0) {
    options->blob_prefetch_count =
        static_cast<size_t>(FLAGS_blob_prefetch_count);
  }
#else
  (void)options;
#endif
}

void ApplyCompactFlags(CompactRangeOptions* options) {
  if (FLAGS_compact_force_blob_gc) {
    options->blob_garbage_collection_policy =
        BlobGarbageCollectionPolicy::kForce;
    options->blob_garbage_collection_age_cutoff = 1.0;
  }
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
#endif  // GFLAGS
