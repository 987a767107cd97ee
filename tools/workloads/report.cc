// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/report.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "tools/workloads/process_stats.h"
#include "util/string_util.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

double SecondsBetween(SteadyTime from, SteadyTime to) {
  return std::chrono::duration<double>(to - from).count();
}

double Micros(double nanos) { return nanos / 1000; }

double Seconds(uint64_t nanos) { return static_cast<double>(nanos) * 1e-9; }

std::string UtcTime(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(seconds - day);
  char text[64];
  snprintf(text, sizeof(text), "%04d-%02u-%02uT%02d:%02d:%02dZ",
           static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
           static_cast<unsigned>(date.day()),
           static_cast<int>(clock.hours().count()),
           static_cast<int>(clock.minutes().count()),
           static_cast<int>(clock.seconds().count()));
  return text;
}

// Returns the length of the UTF-8 character that begins at `pos`, 0 if it is
// invalid.
size_t Utf8Length(const std::string& text, size_t pos) {
  const auto byte = [&text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const unsigned lead = byte(pos);
  const size_t length = lead < 0x80                    ? 1
                        : lead >= 0xc2 && lead <= 0xdf ? 2
                        : lead >= 0xe0 && lead <= 0xef ? 3
                        : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                       : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(pos + i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  // Rejects overlong encodings, surrogates, and code points beyond the last
  // one.
  const unsigned second = byte(pos + 1);
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ||
      (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90)) {
    return 0;
  }
  return length;
}

std::string JsonString(const std::string& text) {
  std::string json = "\"";
  for (size_t pos = 0; pos < text.size();) {
    const size_t length = Utf8Length(text, pos);
    const char c = text[pos];
    if (length == 0) {
      json += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (c == '\n') {
      json += "\\n";
    } else if (c == '\t') {
      json += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      snprintf(escape, sizeof(escape), "\\u%04x",
               static_cast<unsigned>(static_cast<unsigned char>(c)));
      json += escape;
    } else {
      json.append(text, pos, length);
    }
    pos += std::max<size_t>(length, 1);
  }
  return json + "\"";
}

std::string CsvText(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string CsvInteger(std::optional<uint64_t> value) {
  return value ? std::to_string(*value) : "";
}

std::string CsvNumber(std::optional<double> value, int decimals) {
  if (!value || !std::isfinite(*value)) {
    return "";
  }
  char text[512];
  const auto end = std::to_chars(text, text + sizeof(text), *value,
                                 std::chars_format::fixed, decimals);
  return std::string(text, end.ptr);
}

std::optional<double> Ratio(std::optional<uint64_t> dividend,
                            std::optional<uint64_t> divisor) {
  if (!dividend || !divisor || *divisor == 0) {
    return std::nullopt;
  }
  return static_cast<double>(*dividend) / static_cast<double>(*divisor);
}

std::optional<double> Sum(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) {
    return std::nullopt;
  }
  return *a + *b;
}

// The counters of a DB since it was opened or they were reset.
struct DbCounters {
  SteadyTime asked_at;
  SteadyTime answered_at;
  std::optional<double> uptime_seconds;
  std::optional<uint64_t> user_bytes;
  std::optional<uint64_t> user_keys;
  std::optional<uint64_t> wal_bytes;
  std::optional<uint64_t> stall_micros;
  // Bytes of the default column family, including blobs. Ingested files are
  // counted as flushed.
  std::optional<double> flushed_bytes;
  std::optional<double> compacted_bytes;
  std::optional<double> sst_bytes;

  static DbCounters Read(DB* db);

  DbCounters Since(const DbCounters& before) const;
};

DbCounters DbCounters::Read(DB* db) {
  DbCounters counters;
  counters.asked_at = std::chrono::steady_clock::now();
  std::map<std::string, std::string> stats;
  const auto number = [&stats](const char* key) -> std::optional<double> {
    const auto found = stats.find(key);
    if (found == stats.end()) {
      return std::nullopt;
    }
    // The DB wrote it with std::to_string, in the locale that strtod uses.
    return strtod(found->second.c_str(), nullptr);
  };
  const auto integer = [&stats](const char* key) -> std::optional<uint64_t> {
    const auto found = stats.find(key);
    if (found == stats.end()) {
      return std::nullopt;
    }
    return strtoull(found->second.c_str(), nullptr, 10);
  };
  if (db != nullptr && db->GetMapProperty(DB::Properties::kDBStats, &stats)) {
    counters.uptime_seconds = number("db.uptime");
    counters.user_bytes = integer("db.user_bytes_written");
    counters.user_keys = integer("db.user_keys_written");
    counters.wal_bytes = integer("db.wal_bytes_written");
    counters.stall_micros = integer("db.user_write_stall_micros");
  }
  counters.answered_at = std::chrono::steady_clock::now();
  stats.clear();
  if (db != nullptr && db->GetMapProperty(DB::Properties::kCFStats, &stats)) {
    const auto sst = number("compaction.Sum.WriteGB");
    const auto blob = number("compaction.Sum.WblobGB");
    const auto amplification = number("compaction.Sum.WriteAmp");
    if (sst && blob && amplification) {
      // The map does not have the bytes of flushes, but the amplification is
      // the ratio of all bytes to them. The map's numbers have six decimals:
      // a resolution of about 1 KB for all bytes.
      const double written = (*sst + *blob) * 1024 * 1024 * 1024;
      const double flushed =
          *amplification > 0 ? std::min(written, written / *amplification) : 0;
      counters.flushed_bytes = flushed;
      counters.compacted_bytes = written - flushed;
      counters.sst_bytes = *sst * 1024 * 1024 * 1024;
    }
  }
  return counters;
}

DbCounters DbCounters::Since(const DbCounters& before) const {
  const auto lower = [](std::optional<uint64_t> now,
                        std::optional<uint64_t> then) {
    return now && then && *now < *then;
  };
  // A DB that was opened after `before` may have overtaken its predecessor, so
  // comparing the counters is not enough.
  const bool reopened =
      (uptime_seconds &&
       *uptime_seconds < SecondsBetween(before.answered_at, asked_at)) ||
      lower(user_bytes, before.user_bytes) ||
      lower(user_keys, before.user_keys) ||
      lower(wal_bytes, before.wal_bytes) ||
      lower(stall_micros, before.stall_micros);
  DbCounters difference = *this;
  if (reopened) {
    return difference;
  }
  SubtractCounter(&difference.user_bytes, before.user_bytes);
  SubtractCounter(&difference.user_keys, before.user_keys);
  SubtractCounter(&difference.wal_bytes, before.wal_bytes);
  SubtractCounter(&difference.stall_micros, before.stall_micros);
  SubtractCounter(&difference.flushed_bytes, before.flushed_bytes);
  SubtractCounter(&difference.compacted_bytes, before.compacted_bytes);
  SubtractCounter(&difference.sst_bytes, before.sst_bytes);
  return difference;
}

std::optional<uint64_t> Rounded(std::optional<double> value) {
  if (!value) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(std::llround(*value));
}

// The directories of a database. Outlives the DB object.
struct DbFiles {
  std::shared_ptr<FileSystem> fs;
  std::vector<std::string> directories;

  static DbFiles Of(DB* db) {
    DbFiles files;
    if (db != nullptr) {
      files.fs = db->GetEnv()->GetFileSystem();
      files.directories = DirectorySize::DirectoriesOf(db);
    }
    return files;
  }

  // Returns the sizes of the files; empty if there is no database. *error is
  // set to the first error.
  std::optional<DirectorySize> Measure(Status* error) const {
    if (fs == nullptr) {
      return std::nullopt;
    }
    DirectorySize size;
    const Status s = size.Measure(fs.get(), directories);
    if (!s.ok()) {
      if (error->ok()) {
        *error = s;
      }
      return std::nullopt;
    }
    return size;
  }
};

using Recorders = std::vector<std::unique_ptr<OpRecorder>>;

JsonObject LatencyJson(const LatencyHistogram::Snapshot& latencies) {
  JsonObject json;
  json.AddInteger("count", latencies.count());
  json.AddNumber("mean", Micros(latencies.Mean()));
  json.AddNumber("min", Micros(static_cast<double>(latencies.min())));
  static constexpr std::pair<const char*, double> kPercentiles[] = {
      {"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}, {"p99.99", 99.99},
  };
  for (const auto& [key, percent] : kPercentiles) {
    const uint64_t nanos = latencies.Percentile(percent);
    json.AddNumber(key, Micros(static_cast<double>(nanos)));
  }
  json.AddNumber("max", Micros(static_cast<double>(latencies.max())));
  return json;
}

JsonObject ProcessJson(const ProcessStats& process) {
  JsonObject json;
  json.AddNumber("cpu_user_seconds", process.cpu_user_seconds);
  json.AddNumber("cpu_system_seconds", process.cpu_system_seconds);
  json.AddInteger("rchar", process.rchar);
  json.AddInteger("wchar", process.wchar);
  json.AddInteger("syscr", process.syscr);
  json.AddInteger("syscw", process.syscw);
  json.AddInteger("read_bytes", process.read_bytes);
  json.AddInteger("write_bytes", process.write_bytes);
  json.AddInteger("cancelled_write_bytes", process.cancelled_write_bytes);
  json.AddInteger("peak_rss_bytes", process.peak_rss_bytes);
  json.AddInteger("rss_bytes", process.rss_bytes);
  return json;
}

// Returns what the files of the default column family cost; nullopt without
// --path_prices.
std::optional<JsonObject> PathCostJson(DB* db) {
  // The property does not exist in RocksDB.
  std::map<std::string, std::string> stats;
  if (db == nullptr || !db->GetMapProperty("rocksdb.path-stats", &stats) ||
      stats.count("cost.sum") == 0) {
    return std::nullopt;
  }
  const auto number = [&stats](const char* key) -> std::optional<double> {
    const auto found = stats.find(key);
    if (found == stats.end()) {
      return std::nullopt;
    }
    return std::strtod(found->second.c_str(), nullptr);
  };
  JsonObject json;
  json.AddNumber("bytes", number("cost.bytes"));
  json.AddNumber("cost", number("cost.sum"));
  json.AddNumber("cost_on_dearest", number("cost.on-dearest"));
  json.AddNumber("ratio", number("cost.ratio"));
  return json;
}

// now, before: the reports of the same devices.
JsonObject DevicesJson(const std::vector<DeviceReport>& now,
                       const std::vector<DeviceReport>& before) {
  assert(now.size() == before.size());
  JsonObject json;
  for (size_t i = 0; i < now.size(); ++i) {
    const SimulatedDevice::Stats stats = now[i].stats.Since(before[i].stats);
    const TimedDevice::Delays delays = now[i].delays.Since(before[i].delays);
    JsonObject device;
    device.AddText("profile", now[i].profile.ToString());
    device.AddInteger("reads", stats.reads);
    device.AddInteger("read_bytes", stats.read_bytes);
    device.AddInteger("writes", stats.writes);
    device.AddInteger("write_bytes", stats.write_bytes);
    device.AddInteger("syncs", stats.syncs);
    device.AddNumber("busy_seconds", Seconds(stats.busy_nanos));
    device.AddNumber("queued_seconds", Seconds(stats.queued_nanos));
    device.AddNumber("served_seconds", Seconds(stats.served_nanos));
    device.AddInteger("late_requests", delays.late_requests);
    device.AddNumber("late_seconds", Seconds(delays.late_nanos));
    device.AddNumber("overslept_seconds", Seconds(delays.overslept_nanos));
    json.AddObject(now[i].path, device);
  }
  return json;
}

// size: nullopt: unknown; the members have no values then.
JsonObject DirectoryJson(const std::optional<DirectorySize>& size) {
  const auto known = [&size](uint64_t value) -> std::optional<uint64_t> {
    if (!size) {
      return std::nullopt;
    }
    return value;
  };
  const DirectorySize bytes = size.value_or(DirectorySize());
  JsonObject json;
  json.AddInteger("total_bytes", known(bytes.total_bytes()));
  json.AddInteger("sst_bytes", known(bytes.sst_bytes));
  json.AddInteger("blob_bytes", known(bytes.blob_bytes));
  json.AddInteger("wal_bytes", known(bytes.wal_bytes));
  json.AddInteger("other_bytes", known(bytes.other_bytes));
  return json;
}

// Returns the latencies of all threads together, with a member for each name of
// an operation.
JsonObject LatenciesJson(const Recorders& recorders) {
  std::vector<std::pair<std::string, LatencyHistogram::Snapshot>> by_name;
  for (unsigned kind = 0; kind < OpRecorder::kMaxKinds; ++kind) {
    for (const auto& recorder : recorders) {
      const std::string* name = recorder->name(kind);
      if (name == nullptr) {
        continue;
      }
      // Kinds with the same name are reported as one.
      auto found = std::find_if(
          by_name.begin(), by_name.end(),
          [name](const auto& entry) { return entry.first == *name; });
      if (found == by_name.end()) {
        by_name.emplace_back(*name, LatencyHistogram::Snapshot());
        found = std::prev(by_name.end());
      }
      recorder->histogram(kind)->AddTo(&found->second);
    }
  }
  JsonObject json;
  for (const auto& [name, latencies] : by_name) {
    json.AddObject(name, LatencyJson(latencies));
  }
  return json;
}

}  // namespace

void JsonObject::AddMember(const std::string& key, const std::string& json) {
  if (!members_.empty()) {
    members_ += ",";
  }
  members_ += JsonString(key) + ":" + json;
}

void JsonObject::AddText(const std::string& key, const std::string& value) {
  AddMember(key, JsonString(value));
}

void JsonObject::AddInteger(const std::string& key,
                            std::optional<uint64_t> value) {
  AddMember(key, value ? std::to_string(*value) : "null");
}

void JsonObject::AddNumber(const std::string& key,
                           std::optional<double> value) {
  if (!value || !std::isfinite(*value)) {
    AddMember(key, "null");
    return;
  }
  // The shortest text that reads back as the same value.
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), *value);
  AddMember(key, std::string(text, end.ptr));
}

void JsonObject::AddObject(const std::string& key, const JsonObject& value) {
  AddMember(key, value.ToString());
}

OpRecorder::~OpRecorder() {
  for (const auto& kind : kinds_) {
    delete kind.load(std::memory_order_relaxed);
  }
}

OpRecorder::Kind* OpRecorder::NewKind(unsigned kind, const char* name) {
  auto made = std::make_unique<Kind>();
  made->name = name == nullptr || *name == '\0' ? "op" : name;
  Kind* const slot = made.release();
  // Another thread that sees the pointer sees the name.
  kinds_[kind].store(slot, std::memory_order_release);
  // The time of this function does not belong to the next operation.
  last_ = Clock::now();
  return slot;
}

const std::string* OpRecorder::name(unsigned kind) const {
  assert(kind < kMaxKinds);
  const Kind* const slot = kinds_[kind].load(std::memory_order_acquire);
  return slot == nullptr ? nullptr : &slot->name;
}

const LatencyHistogram* OpRecorder::histogram(unsigned kind) const {
  assert(kind < kMaxKinds);
  const Kind* const slot = kinds_[kind].load(std::memory_order_acquire);
  return slot == nullptr ? nullptr : &slot->histogram;
}

// A text file to which lines are appended. A line has been written to the
// operating system when Append returns.
class BenchmarkReport::AppendFile {
 public:
  explicit AppendFile(const std::string& name)
      : name_(name), file_(fopen(name.c_str(), "ab")) {
    if (file_ == nullptr) {
      error_ = errno;
    } else {
      // Without a buffer, a line that could not be written is not written
      // later, when errors are not checked.
      setvbuf(file_, nullptr, _IONBF, 0);
    }
  }

  ~AppendFile() {
    if (file_ != nullptr) {
      fclose(file_);
    }
  }

  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  Status status() const {
    return file_ != nullptr ? Status::OK()
                            : Status::IOError(name_, errnoStr(error_));
  }

  // REQUIRES: status() is OK.
  bool IsEmpty() { return fseek(file_, 0, SEEK_END) == 0 && ftell(file_) == 0; }

  // REQUIRES: status() is OK.
  Status Append(const std::string& line) {
    const std::string text = line + "\n";
    if (fwrite(text.data(), 1, text.size(), file_) != text.size()) {
      const int error = errno;
      clearerr(file_);
      return Status::IOError(name_, errnoStr(error));
    }
    return Status::OK();
  }

 private:
  const std::string name_;
  FILE* const file_;
  int error_ = 0;
};

// Writes a row for each interval, in a thread of its own. Until that thread is
// joined, the members from last_time_ on are used by it alone.
class BenchmarkReport::TimeSeries {
 public:
  static const char* Header() {
    return "benchmark,seconds,ops,ops_per_sec,p50_us,p99_us,max_us,db_bytes,"
           "sst_bytes,blob_bytes,wal_bytes,read_bytes,write_bytes,cpu_seconds,"
           "rss_bytes";
  }

  // REQUIRES: all objects that are pointed to outlive this.
  TimeSeries(AppendFile* file, const std::string& benchmark,
             std::chrono::milliseconds interval, SteadyTime start,
             const ProcessStats* before, const DbFiles* files,
             const Recorders* recorders)
      : file_(file),
        benchmark_(CsvText(benchmark)),
        interval_(interval),
        start_(start),
        before_(before),
        files_(files),
        recorders_(recorders),
        last_time_(start),
        last_latencies_(std::make_unique<LatencyHistogram::Snapshot>()),
        latencies_(std::make_unique<LatencyHistogram::Snapshot>()),
        thread_([this] { Run(); }) {}

  ~TimeSeries() {
    Join();
    // The errors of an abandoned benchmark are ignored.
    write_error_.PermitUncheckedError();
    measure_error_.PermitUncheckedError();
  }

  // Ends the thread and writes a row for the rest of the interval.
  // Returns the first error since the beginning.
  Status Finish() {
    Join();
    if (write_error_.ok()) {
      write_error_ = WriteRow();
    }
    return write_error_.ok() ? measure_error_ : write_error_;
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    SteadyTime deadline = start_ + interval_;
    while (!stop_) {
      // Waits again if the process was stopped meanwhile.
      const auto left = deadline - ActiveClock::now();
      if (left > left.zero()) {
        stop_cv_.wait_for(lock, left, [this] { return stop_; });
        continue;
      }
      // Writing may take long, so the lock is released for Finish.
      lock.unlock();
      write_error_ = WriteRow();
      if (!write_error_.ok()) {
        return;
      }
      lock.lock();
      // The next deadline is the first one in the future.
      const auto passed = ActiveClock::now() - start_;
      deadline = start_ + (passed / interval_ + 1) * interval_;
    }
  }

  void Join() {
    if (thread_.joinable()) {
      {
        std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
      }
      stop_cv_.notify_all();
      thread_.join();
    }
  }

  Status WriteRow() {
    const SteadyTime now = ActiveClock::now();
    uint64_t ops = 0;
    *latencies_ = LatencyHistogram::Snapshot();
    for (const auto& recorder : *recorders_) {
      ops += recorder->ops();
      for (unsigned kind = 0; kind < OpRecorder::kMaxKinds; ++kind) {
        const LatencyHistogram* histogram = recorder->histogram(kind);
        if (histogram != nullptr) {
          histogram->AddTo(latencies_.get());
        }
      }
    }
    // The snapshot of the row before the last one is not needed.
    std::swap(latencies_, last_latencies_);
    LatencyHistogram::Snapshot interval = *last_latencies_;
    interval.Subtract(*latencies_);
    const auto micros = [&interval](uint64_t nanos) -> std::optional<double> {
      if (interval.count() == 0) {
        return std::nullopt;
      }
      return Micros(static_cast<double>(nanos));
    };

    const std::optional<DirectorySize> size = files_->Measure(&measure_error_);
    const auto bytes = [&size](uint64_t value) -> std::optional<uint64_t> {
      if (!size) {
        return std::nullopt;
      }
      return value;
    };
    const DirectorySize known = size.value_or(DirectorySize());
    const ProcessStats used = ProcessStats::Now().Since(*before_);

    const std::string cells[] = {
        benchmark_,
        CsvNumber(SecondsBetween(start_, now), 3),
        CsvInteger(ops),
        CsvNumber(static_cast<double>(ops - last_ops_) /
                      SecondsBetween(last_time_, now),
                  1),
        CsvNumber(micros(interval.Percentile(50)), 3),
        CsvNumber(micros(interval.Percentile(99)), 3),
        CsvNumber(micros(interval.max()), 3),
        CsvInteger(bytes(known.total_bytes())),
        CsvInteger(bytes(known.sst_bytes)),
        CsvInteger(bytes(known.blob_bytes)),
        CsvInteger(bytes(known.wal_bytes)),
        CsvInteger(used.read_bytes),
        CsvInteger(used.write_bytes),
        CsvNumber(Sum(used.cpu_user_seconds, used.cpu_system_seconds), 6),
        CsvInteger(used.rss_bytes),
    };
    last_time_ = now;
    last_ops_ = ops;
    std::string row;
    for (const std::string& cell : cells) {
      row += (&cell == cells ? "" : ",") + cell;
    }
    return file_->Append(row);
  }

  AppendFile* const file_;
  const std::string benchmark_;
  const std::chrono::milliseconds interval_;
  const SteadyTime start_;
  const ProcessStats* const before_;
  const DbFiles* const files_;
  const Recorders* const recorders_;

  std::mutex mutex_;
  std::condition_variable stop_cv_;
  bool stop_ = false;  // guarded by mutex_

  SteadyTime last_time_;
  uint64_t last_ops_ = 0;
  std::unique_ptr<LatencyHistogram::Snapshot> last_latencies_;
  std::unique_ptr<LatencyHistogram::Snapshot> latencies_;
  Status write_error_;
  Status measure_error_;

  // The last member, as it uses the others from its start.
  port::Thread thread_;
};

// A benchmark between Begin and End.
struct BenchmarkReport::Running {
  std::string benchmark;
  std::string time;
  SteadyTime start;
  uint64_t stopped_nanos = 0;
  int threads = 0;
  Recorders recorders;
  DbFiles files;
  DbCounters counters;
  ProcessStats process;
  // nullptr if there are no simulated devices.
  const SimulatedDeviceFileSystem* devices = nullptr;
  std::vector<DeviceReport> device_reports;
  std::unique_ptr<TimeSeries> series;  // destroyed first, as it uses the others
};

BenchmarkReport::BenchmarkReport(const std::string& json_file,
                                 const std::string& csv_file,
                                 uint64_t csv_interval_ms)
    : json_name_(json_file),
      csv_name_(csv_file),
      interval_(std::max<uint64_t>(1, csv_interval_ms)) {}

BenchmarkReport::~BenchmarkReport() { Abandon(); }

Status BenchmarkReport::Open() {
  std::unique_ptr<AppendFile> json;
  std::unique_ptr<AppendFile> csv;
  Status s;
  if (!json_name_.empty()) {
    json = std::make_unique<AppendFile>(json_name_);
    s = json->status();
  }
  if (s.ok() && !csv_name_.empty()) {
    csv = std::make_unique<AppendFile>(csv_name_);
    s = csv->status();
    if (s.ok() && csv->IsEmpty()) {
      s = csv->Append(TimeSeries::Header());
    }
  }
  if (s.ok()) {
    json_ = std::move(json);
    csv_ = std::move(csv);
  }
  return s;
}

void BenchmarkReport::Begin(const std::string& benchmark, DB* db, int threads) {
  assert(threads >= 0);
  if (!active()) {
    return;
  }
  Abandon();
  auto running = std::make_unique<Running>();
  running->benchmark = benchmark;
  running->time = UtcTime(std::chrono::system_clock::now());
  running->threads = threads;
  for (int i = 0; i < threads; ++i) {
    running->recorders.push_back(std::make_unique<OpRecorder>());
  }
  running->files = DbFiles::Of(db);
  running->counters = DbCounters::Read(db);
  running->devices = devices_;
  if (devices_ != nullptr) {
    running->device_reports = devices_->GetReports();
  }
  ProcessStats::ResetPeakRss();
  running->process = ProcessStats::Now();
  running->start = ActiveClock::now();
  running->stopped_nanos = ActiveClock::StoppedNanos();
  if (csv_ != nullptr) {
    running->series = std::make_unique<TimeSeries>(
        csv_.get(), benchmark, interval_, running->start, &running->process,
        &running->files, &running->recorders);
  }
  running_ = std::move(running);
}

OpRecorder* BenchmarkReport::recorder(int thread) {
  if (running_ == nullptr || thread < 0 || thread >= running_->threads) {
    return nullptr;
  }
  return running_->recorders[static_cast<size_t>(thread)].get();
}

Status BenchmarkReport::EndUntimed(DB* db) {
  if (running_ == nullptr) {
    return Status::OK();
  }
  const std::chrono::duration<double> elapsed =
      ActiveClock::now() - running_->start;
  return End(db, /*ops=*/0, elapsed.count(), /*bytes=*/0, logical_bytes_,
             /*message=*/"");
}

Status BenchmarkReport::End(DB* db, uint64_t ops, double seconds,
                            uint64_t bytes, uint64_t logical_bytes,
                            const std::string& message) {
  if (running_ == nullptr) {
    return Status::OK();
  }
  const std::unique_ptr<Running> run = std::move(running_);
  logical_bytes_ = logical_bytes;
  const ProcessStats process = ProcessStats::Now().Since(run->process);
  Status s;
  if (run->series != nullptr) {
    s = run->series->Finish();
    run->series.reset();
  }
  if (json_ == nullptr) {
    return s;
  }
  if (db != nullptr) {
    run->files = DbFiles::Of(db);
  }
  const std::optional<DirectorySize> size = run->files.Measure(&s);
  const DbCounters counters = DbCounters::Read(db).Since(run->counters);

  JsonObject json;
  json.AddText("benchmark", run->benchmark);
  json.AddText("time", run->time);
  json.AddInteger("threads", static_cast<uint64_t>(run->threads));
  json.AddInteger("ops", ops);
  json.AddNumber("seconds", seconds);
  json.AddNumber("ops_per_sec", static_cast<double>(ops) / seconds);
  json.AddInteger("bytes", bytes);
  json.AddNumber("open_seconds", open_seconds_);
  json.AddObject("latency_us", LatenciesJson(run->recorders));

  json.AddObject("process", ProcessJson(process));
  const std::optional<uint64_t> total =
      size ? std::optional<uint64_t>(size->total_bytes()) : std::nullopt;
  json.AddObject("db", DirectoryJson(size));
  if (run->devices != nullptr) {
    json.AddObject("devices", DevicesJson(run->devices->GetReports(),
                                          run->device_reports));
  }

  if (const std::optional<JsonObject> cost = PathCostJson(db)) {
    json.AddObject("path_cost", *cost);
  }

  json.AddInteger("user_bytes_written", counters.user_bytes);
  json.AddInteger("user_keys_written", counters.user_keys);
  json.AddInteger("wal_bytes_written", counters.wal_bytes);
  // The DB's clock includes the stopped time.
  json.AddInteger("stall_micros",
                  ActiveClock::StoppedNanos() == run->stopped_nanos
                      ? counters.stall_micros
                      : std::nullopt);
  json.AddInteger("lsm_bytes_flushed", Rounded(counters.flushed_bytes));
  json.AddInteger("lsm_bytes_compacted", Rounded(counters.compacted_bytes));
  json.AddInteger("sst_bytes_written", Rounded(counters.sst_bytes));
  json.AddInteger("logical_bytes", logical_bytes > 0
                                       ? std::optional<uint64_t>(logical_bytes)
                                       : std::nullopt);
  json.AddNumber("write_amplification",
                 Ratio(process.device_write_bytes(), counters.user_bytes));
  json.AddNumber("space_amplification", Ratio(total, logical_bytes));
  json.AddText("message", message);

  const Status written = json_->Append(json.ToString());
  return s.ok() ? written : s;
}

void BenchmarkReport::Abandon() { running_.reset(); }

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
