// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// The results of db_bench in machine-readable form: a line of JSON for each
// benchmark, and a CSV file with a line for each interval of its run.
//
// A value that is not known is null in the JSON and empty in the CSV.
//
// Times exclude those during which the process was stopped (ActiveClock).

#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "port/port.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"
#include "tools/workloads/active_clock.h"
#include "tools/workloads/latency_histogram.h"
#include "tools/workloads/simulated_device_fs.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// One JSON object as text without line breaks. Numbers keep their exact value
// and do not depend on the locale.
//
// REQUIRES: each key is added once.
// Not thread-safe.
class JsonObject {
 public:
  void AddText(const std::string& key, const std::string& value);
  void AddInteger(const std::string& key, std::optional<uint64_t> value);
  // Infinity and NaN, which JSON does not have, become null.
  void AddNumber(const std::string& key, std::optional<double> value);
  void AddObject(const std::string& key, const JsonObject& value);

  std::string ToString() const { return "{" + members_ + "}"; }

 private:
  void AddMember(const std::string& key, const std::string& json);

  std::string members_;
};

// Counts and times the operations of one thread.
//
// Thread safety: Start and Finish are called by one thread. The other functions
// may be called by any thread at the same time.
class alignas(CACHE_LINE_SIZE) OpRecorder {
 public:
  static constexpr unsigned kMaxKinds = 32;

  OpRecorder() : last_(Clock::now()) {}
  ~OpRecorder();
  OpRecorder(const OpRecorder&) = delete;
  OpRecorder& operator=(const OpRecorder&) = delete;

  // Records the begin of an operation. Not needed for an operation that begins
  // when the previous one ends.
  void Start() { last_ = Clock::now(); }

  // Records the end of an operation of this kind. num_ops: how many operations
  // it counts as; it has one latency. The name of a kind is that of the first
  // call.
  // REQUIRES: kind < kMaxKinds
  void Finish(unsigned kind, const char* name, int64_t num_ops = 1) {
    assert(kind < kMaxKinds);
    const Clock::time_point now = Clock::now();
    const auto nanos =
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_);
    last_ = now;
    // Only this thread changes the pointers.
    Kind* slot = kinds_[kind].load(std::memory_order_relaxed);
    if (slot == nullptr) {
      slot = NewKind(kind, name);
    }
    slot->histogram.Add(static_cast<uint64_t>(nanos.count()));
    ops_.store(
        ops_.load(std::memory_order_relaxed) + static_cast<uint64_t>(num_ops),
        std::memory_order_relaxed);
  }

  uint64_t ops() const { return ops_.load(std::memory_order_relaxed); }

  // These return nullptr if there was no operation of this kind.
  const std::string* name(unsigned kind) const;
  const LatencyHistogram* histogram(unsigned kind) const;

 private:
  using Clock = ActiveClock;

  struct Kind {
    std::string name;
    LatencyHistogram histogram;
  };

  Kind* NewKind(unsigned kind, const char* name);

  Clock::time_point last_;
  std::atomic<uint64_t> ops_{0};
  std::array<std::atomic<Kind*>, kMaxKinds> kinds_{};
};

// Writes the two files. If neither is requested, all calls return at once.
//
// A benchmark goes from Begin to End or Abandon. In between a thread writes the
// CSV's rows; it reads the recorders, /proc and directories, never the DB, so
// db_bench may close and reopen that.
//
// Thread safety: all calls come from one thread, but recorder() may be called
// by any thread between Begin and End.
class BenchmarkReport {
 public:
  // json_file, csv_file: names of the files, to which the report appends; empty
  // for a file that is not requested.
  BenchmarkReport(const std::string& json_file, const std::string& csv_file,
                  uint64_t csv_interval_ms = 1000);
  ~BenchmarkReport();
  BenchmarkReport(const BenchmarkReport&) = delete;
  BenchmarkReport& operator=(const BenchmarkReport&) = delete;

  // Opens the files. The report is inactive until this has succeeded.
  Status Open();

  // Sets how long the database took to open, for the benchmarks that end after
  // the call.
  void SetOpenSeconds(double seconds) { open_seconds_ = seconds; }

  // Sets the file system with the simulated devices, for the benchmarks that
  // begin after the call. nullptr, the default: there are none, and the JSON
  // has no member for them. REQUIRES: it outlives this.
  void SetDevices(const SimulatedDeviceFileSystem* devices) {
    devices_ = devices;
  }

  bool active() const { return json_ != nullptr || csv_ != nullptr; }

  // Begins a benchmark: records the counters of the process and of `db`, which
  // may be nullptr, and resets the peak of memory. A benchmark that was not
  // ended is abandoned.
  // REQUIRES: threads >= 0
  void Begin(const std::string& benchmark, DB* db, int threads);

  // Returns the recorder of the thread with this number, from 0. It is valid
  // until End or Abandon. Returns nullptr if the report is inactive, no
  // benchmark runs, or there is no such thread.
  OpRecorder* recorder(int thread);

  // Ends the benchmark: writes the last row and the line of JSON. Does nothing
  // without a Begin.
  // db: may be nullptr, or another one than at Begin; in the latter case its
  //     counters begin with its opening.
  // logical_bytes: bytes of all keys and values that a reader could see in the
  //     database, 0 if not known.
  // Returns the first error since Begin of writing, or of finding the size of
  // the database.
  // REQUIRES: no thread uses its recorder after the call.
  Status End(DB* db, uint64_t ops, double seconds, uint64_t bytes,
             uint64_t logical_bytes, const std::string& message);

  // Like End(), for a benchmark without operations that was not timed, such as
  // waiting for compactions: its time is that since Begin, and logical_bytes is
  // that of the last End.
  Status EndUntimed(DB* db);

  // Drops a benchmark that did not run. Rows that were written stay.
  // REQUIRES: no thread uses its recorder after the call.
  void Abandon();

 private:
  class AppendFile;
  class TimeSeries;
  struct Running;

  const std::string json_name_;
  const std::string csv_name_;
  const std::chrono::milliseconds interval_;
  std::unique_ptr<AppendFile> json_;
  std::unique_ptr<AppendFile> csv_;
  std::unique_ptr<Running> running_;
  std::optional<double> open_seconds_;
  const SimulatedDeviceFileSystem* devices_ = nullptr;
  uint64_t logical_bytes_ = 0;  // of the last benchmark, 0 if not known
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
