// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// The results of db_bench for programs: a line of JSON for each benchmark, and
// a CSV file with a line for each interval of its run.
//
// In the JSON a value that is not known is null, in the CSV it is empty.
//
// Times leave out those in which the process was stopped (ActiveClock).

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

namespace ROCKSDB_NAMESPACE {
namespace bench {

// One JSON object as text without line breaks. Numbers keep their exact value
// and do not depend on the locale.
//
// REQUIRES: each key is added once.
// Thread safety: none.
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
// Thread safety: Start and Finish are for one thread. The others may be called
// by any thread meanwhile.
class alignas(CACHE_LINE_SIZE) OpRecorder {
 public:
  static constexpr unsigned kMaxKinds = 32;

  OpRecorder() : last_(Clock::now()) {}
  ~OpRecorder();
  OpRecorder(const OpRecorder&) = delete;
  OpRecorder& operator=(const OpRecorder&) = delete;

  // An operation begins now. Not needed for one that begins with the end of
  // the one before.
  void Start() { last_ = Clock::now(); }

  // An operation of this kind ends now. `num_ops` is how many it counts as; it
  // has one latency. The first name that a kind gets stays.
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

  // nullptr if there was no such operation.
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

// Writes the two files. With neither asked for, all calls return at once.
//
// A benchmark goes from Begin to End or Abandon. In between a thread writes the
// CSV's rows; it reads the recorders, /proc and directories, never the DB, so
// db_bench may close and reopen that.
//
// Thread safety: all calls come from one thread, but recorder() may be called
// by any thread between Begin and End.
class BenchmarkReport {
 public:
  // An empty name means that this file is not wanted. Both are appended to.
  BenchmarkReport(const std::string& json_file, const std::string& csv_file,
                  uint64_t csv_interval_ms = 1000);
  ~BenchmarkReport();
  BenchmarkReport(const BenchmarkReport&) = delete;
  BenchmarkReport& operator=(const BenchmarkReport&) = delete;

  // Opens the files. Before it, or after it failed, the report is inactive.
  Status Open();

  // How long the database took to open, for the benchmarks from now on.
  void SetOpenSeconds(double seconds) { open_seconds_ = seconds; }

  bool active() const { return json_ != nullptr || csv_ != nullptr; }

  // Takes down what the process and `db`, which may be nullptr, have done
  // until now, and resets the peak of memory. A benchmark that was not ended
  // is abandoned.
  // REQUIRES: threads >= 0
  void Begin(const std::string& benchmark, DB* db, int threads);

  // For the thread of this number, from 0, until End or Abandon. nullptr if
  // the report is inactive, no benchmark runs, or there is no such thread.
  OpRecorder* recorder(int thread);

  // Writes the last row and the line about the benchmark, and forgets it.
  // `db` may be nullptr, or another one than at Begin: then the counters of
  // its use begin with its opening. `logical_bytes` is what a reader could see
  // in the database, 0 if not known. Nothing happens without a Begin.
  // Returns the first error of writing since Begin, or of finding the size of
  // the database.
  // REQUIRES: no thread uses its recorder any more.
  Status End(DB* db, uint64_t ops, double seconds, uint64_t bytes,
             uint64_t logical_bytes, const std::string& message);

  // The same for something that has no operations and was not timed, such as
  // waiting for compactions: it took as long as since Begin, and logical_bytes
  // are as they were at the last End.
  Status EndUntimed(DB* db);

  // Forgets a benchmark that did not run. Rows that were written stay.
  // REQUIRES: no thread uses its recorder any more.
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
  uint64_t logical_bytes_ = 0;  // of the last benchmark, 0 if not known
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
