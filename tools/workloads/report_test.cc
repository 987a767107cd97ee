// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/report.h"

#ifndef OS_WIN
#include <signal.h>
#include <sys/resource.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "file/file_util.h"
#include "port/port.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "tools/workloads/process_stats.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

// A value of a JSON text, parsed strictly by RFC 8259: no byte is allowed
// before or after it, and no duplicate keys.
class Json {
 public:
  enum class Type { kNull, kBool, kNumber, kString, kArray, kObject };

  static bool Parse(const std::string& text, Json* json) {
    size_t pos = 0;
    return json->ParseValue(text, &pos) && pos == text.size();
  }

  Type type() const { return type_; }
  bool IsNull() const { return type_ == Type::kNull; }
  double number() const {
    EXPECT_EQ(Type::kNumber, type_);
    return number_;
  }
  // Returns an integer, which a double may not hold.
  uint64_t integer() const {
    EXPECT_EQ(Type::kNumber, type_);
    EXPECT_EQ(std::string::npos, string_.find_first_not_of("0123456789"));
    return strtoull(string_.c_str(), nullptr, 10);
  }
  const std::string& string() const {
    EXPECT_EQ(Type::kString, type_);
    return string_;
  }
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const auto& member : members_) {
      keys.push_back(member.first);
    }
    return keys;
  }
  const Json& operator[](const std::string& key) const {
    for (const auto& member : members_) {
      if (member.first == key) {
        return member.second;
      }
    }
    ADD_FAILURE() << "no member " << key;
    static const Json kNone;
    return kNone;
  }

 private:
  static bool Take(const std::string& text, size_t* pos, const char* word) {
    const std::string wanted(word);
    if (text.compare(*pos, wanted.size(), wanted) != 0) {
      return false;
    }
    *pos += wanted.size();
    return true;
  }

  static bool IsDigit(const std::string& text, size_t pos) {
    return pos < text.size() && text[pos] >= '0' && text[pos] <= '9';
  }

  static bool SkipDigits(const std::string& text, size_t* pos) {
    const size_t start = *pos;
    while (IsDigit(text, *pos)) {
      ++*pos;
    }
    return *pos > start;
  }

  bool ParseValue(const std::string& text, size_t* pos) {
    if (*pos >= text.size()) {
      return false;
    }
    switch (text[*pos]) {
      case '{':
        type_ = Type::kObject;
        return ParseObject(text, pos);
      case '[':
        type_ = Type::kArray;
        return ParseArray(text, pos);
      case '"':
        type_ = Type::kString;
        return ParseString(text, pos, &string_);
      case 't':
        type_ = Type::kBool;
        return Take(text, pos, "true");
      case 'f':
        type_ = Type::kBool;
        return Take(text, pos, "false");
      case 'n':
        type_ = Type::kNull;
        return Take(text, pos, "null");
      default:
        type_ = Type::kNumber;
        return ParseNumber(text, pos);
    }
  }

  bool ParseNumber(const std::string& text, size_t* pos) {
    const size_t start = *pos;
    Take(text, pos, "-");
    if (!Take(text, pos, "0") && !SkipDigits(text, pos)) {
      return false;
    }
    if (Take(text, pos, ".") && !SkipDigits(text, pos)) {
      return false;
    }
    if (Take(text, pos, "e") || Take(text, pos, "E")) {
      if (!Take(text, pos, "+")) {
        Take(text, pos, "-");
      }
      if (!SkipDigits(text, pos)) {
        return false;
      }
    }
    string_ = text.substr(start, *pos - start);
    number_ = strtod(string_.c_str(), nullptr);
    return true;
  }

  static bool ParseString(const std::string& text, size_t* pos,
                          std::string* result) {
    result->clear();
    if (!Take(text, pos, "\"")) {
      return false;
    }
    while (*pos < text.size()) {
      const char c = text[(*pos)++];
      if (c == '"') {
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) {
        return false;
      }
      if (c != '\\') {
        *result += c;
        continue;
      }
      if (*pos >= text.size()) {
        return false;
      }
      const char escaped = text[(*pos)++];
      const std::string names = "\"\\/bfnrt";
      const std::string values = "\"\\/\b\f\n\r\t";
      const size_t known = names.find(escaped);
      if (known != std::string::npos) {
        *result += values[known];
      } else if (escaped == 'u') {
        const std::string digits = text.substr(*pos, 4);
        if (digits.size() != 4 ||
            digits.find_first_not_of("0123456789abcdefABCDEF") !=
                std::string::npos) {
          return false;
        }
        const auto code = strtoul(digits.c_str(), nullptr, 16);
        if (code < 0x80) {
          *result += static_cast<char>(code);
        } else if (code == 0xfffd) {
          *result += "\xef\xbf\xbd";
        } else {
          return false;  // the writer needs no others
        }
        *pos += 4;
      } else {
        return false;
      }
    }
    return false;
  }

  bool ParseArray(const std::string& text, size_t* pos) {
    Take(text, pos, "[");
    if (Take(text, pos, "]")) {
      return true;
    }
    do {
      Json element;
      if (!element.ParseValue(text, pos)) {
        return false;
      }
      members_.emplace_back("", std::move(element));
    } while (Take(text, pos, ","));
    return Take(text, pos, "]");
  }

  bool ParseObject(const std::string& text, size_t* pos) {
    Take(text, pos, "{");
    if (Take(text, pos, "}")) {
      return true;
    }
    do {
      std::string key;
      Json value;
      if (!ParseString(text, pos, &key) || !Take(text, pos, ":") ||
          !value.ParseValue(text, pos)) {
        return false;
      }
      for (const auto& member : members_) {
        if (member.first == key) {
          return false;
        }
      }
      members_.emplace_back(key, std::move(value));
    } while (Take(text, pos, ","));
    return Take(text, pos, "}");
  }

  Type type_ = Type::kNull;
  double number_ = 0;
  std::string string_;
  std::vector<std::pair<std::string, Json>> members_;
};

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text) {
    if (c == separator) {
      parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  parts.push_back(part);
  return parts;
}

constexpr const char* kHeader =
    "benchmark,seconds,ops,ops_per_sec,p50_us,p99_us,max_us,db_bytes,sst_bytes,"
    "blob_bytes,wal_bytes,read_bytes,write_bytes,cpu_seconds,rss_bytes";

enum Column {
  kBenchmark,
  kSeconds,
  kOps,
  kOpsPerSec,
  kP50,
  kP99,
  kMax,
  kDbBytes,
  kSstBytes,
  kBlobBytes,
  kWalBytes,
  kReadBytes,
  kWriteBytes,
  kCpuSeconds,
  kRssBytes,
  kNumColumns,
};

using Rows = std::vector<std::vector<std::string>>;

double Number(const std::string& text) {
  char* end = nullptr;
  const double value = strtod(text.c_str(), &end);
  EXPECT_FALSE(text.empty());
  EXPECT_EQ('\0', *end) << text;
  return value;
}

}  // namespace

TEST(JsonObjectTest, ParserIsStrict) {
  Json json;
  EXPECT_TRUE(
      Json::Parse("{\"a\":[1,-0.5e+3,true,null,{}],\"b\":\"\\n\"}", &json));
  for (const char* bad :
       {"", "{", "{}x", " {}", "{\"a\":1,}", "{\"a\":01}", "{\"a\":1.}",
        "{\"a\":.5}", "{\"a\":nan}", "{\"a\":inf}", "{\"a\":+1}", "{a:1}",
        "{\"a\":1,\"a\":2}", "{\"a\":\"\n\"}", "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}", "{\"a\":\"b}", "{\"a\" \"b\"}", "{\"a\":1e}"}) {
    Json other;
    EXPECT_FALSE(Json::Parse(bad, &other)) << bad;
  }
}

TEST(JsonObjectTest, EscapesText) {
  std::string all;
  for (int c = 0; c < 0x80; ++c) {
    all += static_cast<char>(c);
  }
  const std::string valid = all +
                            "\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf "
                            "\xef\xbf\xbf \xf0\x9f\x92\xbe \xf4\x8f\xbf\xbf";
  JsonObject object;
  object.AddText("plain", "PERF\n\"x\" \\ \t,");
  object.AddText(valid, valid);
  // Each broken byte becomes U+FFFD, and whole characters around it stay.
  object.AddText("broken", "a\xffz\xc3(\xe2\x82!\xc0\xaf");
  object.AddText("surrogate", "\xed\xa0\x80");
  object.AddText("too long", "\xf0\x80\x80\x80\xf4\x90\x80\x80");
  object.AddText("cut", "\xe2\x82");
  const std::string text = object.ToString();
  EXPECT_EQ(std::string::npos, text.find('\n'));
  EXPECT_EQ(0u, text.find("{\"plain\":\"PERF\\n\\\"x\\\" \\\\ \\t,\","));
  EXPECT_NE(std::string::npos, text.find("\\u0000\\u0001"));
  Json json;
  ASSERT_TRUE(Json::Parse(text, &json)) << text;
  EXPECT_EQ("PERF\n\"x\" \\ \t,", json["plain"].string());
  EXPECT_EQ(valid, json[valid].string());
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ("a" + r + "z" + r + "(" + r + r + "!" + r + r,
            json["broken"].string());
  EXPECT_EQ(r + r + r, json["surrogate"].string());
  EXPECT_EQ(r + r + r + r + r + r + r + r, json["too long"].string());
  EXPECT_EQ(r + r, json["cut"].string());
}

TEST(JsonObjectTest, NumbersRoundTrip) {
  std::mt19937_64 random(301);
  std::vector<double> numbers = {0.0,
                                 0.1,
                                 1.0 / 3,
                                 1e15,
                                 1e22,
                                 123456789.123,
                                 -2.5,
                                 std::numeric_limits<double>::max(),
                                 std::numeric_limits<double>::min(),
                                 std::numeric_limits<double>::denorm_min()};
  while (numbers.size() < 10000) {
    const uint64_t bits = random();
    double number;
    memcpy(&number, &bits, sizeof(number));
    if (std::isfinite(number)) {
      numbers.push_back(number);
    }
  }
  for (const double number : numbers) {
    JsonObject object;
    object.AddNumber("n", number);
    Json json;
    ASSERT_TRUE(Json::Parse(object.ToString(), &json)) << object.ToString();
    EXPECT_EQ(number, json["n"].number()) << object.ToString();
  }
}

TEST(JsonObjectTest, WritesIntegersNullsAndNestedObjects) {
  JsonObject inner;
  EXPECT_EQ("{}", inner.ToString());
  inner.AddInteger("max", UINT64_MAX);
  inner.AddInteger("zero", 0);
  JsonObject object;
  object.AddNumber("nan", std::nan(""));
  object.AddNumber("inf", std::numeric_limits<double>::infinity());
  object.AddNumber("none", std::nullopt);
  object.AddInteger("empty", std::nullopt);
  object.AddObject("inner", inner);
  EXPECT_EQ(
      "{\"nan\":null,\"inf\":null,\"none\":null,\"empty\":null,"
      "\"inner\":{\"max\":18446744073709551615,\"zero\":0}}",
      object.ToString());
}

TEST(OpRecorderTest, CountsAndTimesByKind) {
  OpRecorder recorder;
  EXPECT_EQ(0u, recorder.ops());
  EXPECT_EQ(nullptr, recorder.name(0));
  EXPECT_EQ(nullptr, recorder.histogram(31));

  // The machine may be busy, so the latencies are compared with times around
  // the calls.
  using Clock = std::chrono::steady_clock;
  const auto nanos = [](Clock::duration d) {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto before_read = Clock::now();
  recorder.Start();
  recorder.Finish(0, "read");  // excludes the sleep
  const auto after_read = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  recorder.Finish(31, "multi", 10);  // without Start(): includes the sleep
  const auto between = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto before_last = Clock::now();
  recorder.Start();
  recorder.Finish(31, "other name");
  const auto after_last = Clock::now();

  EXPECT_EQ(12u, recorder.ops());
  EXPECT_EQ("read", *recorder.name(0));
  EXPECT_EQ("multi", *recorder.name(31));
  const auto read = recorder.histogram(0)->TakeSnapshot();
  const auto multi = recorder.histogram(31)->TakeSnapshot();
  EXPECT_EQ(1u, read->count());
  EXPECT_LE(read->max(), nanos(after_read - before_read));
  EXPECT_EQ(2u, multi->count());
  EXPECT_GE(multi->max(), 5000000u);
  EXPECT_LE(multi->sum(),
            nanos(between - before_read) + nanos(after_last - before_last));

  recorder.Finish(5, nullptr);
  recorder.Finish(6, "");
  EXPECT_EQ("op", *recorder.name(5));
  EXPECT_EQ("op", *recorder.name(6));
}

class BenchmarkReportTest : public testing::Test {
 public:
  BenchmarkReportTest()
      : env_(Env::Default()), dir_(test::PerThreadDBPath("report_test")) {
    EXPECT_OK(DestroyDir(env_, dir_));
    EXPECT_OK(env_->CreateDirIfMissing(dir_));
    json_file_ = dir_ + "/report.jsonl";
    csv_file_ = dir_ + "/series.csv";
    options_.create_if_missing = true;
    options_.compression = kNoCompression;
    options_.disable_auto_compactions = true;
  }

  ~BenchmarkReportTest() override {
    CloseDB();
    EXPECT_OK(DestroyDir(env_, dir_));
  }

 protected:
  void OpenDB() { ASSERT_OK(DB::Open(options_, dir_ + "/db", &db_)); }

  void CloseDB() {
    if (db_ != nullptr) {
      EXPECT_OK(db_->Close());
      db_.reset();
    }
  }

  void Put(int from, int to, size_t size, OpRecorder* recorder = nullptr) {
    for (int i = from; i < to; ++i) {
      if (recorder != nullptr) {
        recorder->Start();
      }
      ASSERT_OK(db_->Put(WriteOptions(), "key" + std::to_string(100000 + i),
                         std::string(size, static_cast<char>('a' + i % 26))));
      if (recorder != nullptr) {
        recorder->Finish(1, "insert");
      }
    }
  }

  std::string Read(const std::string& file) {
    std::string text;
    EXPECT_OK(ReadFileToString(env_, file, &text));
    return text;
  }

  std::vector<Json> ReadJson() {
    std::vector<Json> objects;
    const std::string text = Read(json_file_);
    if (text.empty()) {
      return objects;
    }
    EXPECT_EQ('\n', text.back());
    for (const std::string& line :
         Split(text.substr(0, text.size() - 1), '\n')) {
      objects.emplace_back();
      EXPECT_TRUE(Json::Parse(line, &objects.back())) << line;
      EXPECT_EQ(Json::Type::kObject, objects.back().type());
    }
    return objects;
  }

  // Returns the rows without the header, which must be the first line and no
  // other.
  Rows ReadCsv() {
    Rows rows;
    const std::string text = Read(csv_file_);
    EXPECT_FALSE(text.empty());
    EXPECT_EQ('\n', text.back());
    bool first = true;
    for (const std::string& line :
         Split(text.substr(0, text.size() - 1), '\n')) {
      EXPECT_EQ(first, line == kHeader) << line;
      if (!first) {
        rows.push_back(Split(line, ','));
        EXPECT_EQ(static_cast<size_t>(kNumColumns), rows.back().size()) << line;
      }
      first = false;
    }
    return rows;
  }

  static size_t NumThreads() {
    std::vector<std::string> tasks;
    EXPECT_OK(Env::Default()->GetChildren("/proc/self/task", &tasks));
    return tasks.size();
  }

  Env* env_;
  std::string dir_;
  std::string json_file_;
  std::string csv_file_;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(BenchmarkReportTest, InactiveReportDoesNothing) {
  OpenDB();
#ifdef OS_LINUX
  const size_t threads = NumThreads();
#endif
  BenchmarkReport nothing("", "", 1);
  ASSERT_OK(nothing.Open());
  // A report that was not opened does nothing, either.
  BenchmarkReport closed(json_file_, csv_file_, 1);
  for (BenchmarkReport* report : {&nothing, &closed}) {
    EXPECT_FALSE(report->active());
    report->Begin("fill", db_.get(), 4);
    EXPECT_EQ(nullptr, report->recorder(0));
#ifdef OS_LINUX
    EXPECT_EQ(threads, NumThreads());
#endif
    EXPECT_OK(report->End(db_.get(), 1, 1, 1, 1, ""));
    report->Abandon();
  }
  EXPECT_TRUE(env_->FileExists(json_file_).IsNotFound());
  EXPECT_TRUE(env_->FileExists(csv_file_).IsNotFound());
}

TEST_F(BenchmarkReportTest, ReportHasAllFields) {
  constexpr int kKeys = 3000;
  constexpr size_t kValueSize = 1000;
  constexpr uint64_t kPayload = kKeys * (kValueSize + 9);
  options_.wal_dir = dir_ + "/wal";
  options_.enable_blob_files = true;
  options_.min_blob_size = 5000;
  OpenDB();
  Put(0, 1000, kValueSize);  // before the benchmark, so not counted
  ASSERT_OK(db_->Flush(FlushOptions()));

  BenchmarkReport report(json_file_, csv_file_);
  ASSERT_OK(report.Open());
  EXPECT_TRUE(report.active());
  EXPECT_EQ(nullptr, report.recorder(0));
  const ProcessStats before = ProcessStats::Now();
  report.Begin("fillrandom[X2]", db_.get(), 2);
  EXPECT_EQ(nullptr, report.recorder(-1));
  EXPECT_EQ(nullptr, report.recorder(2));
  ASSERT_NE(nullptr, report.recorder(0));
  ASSERT_NE(nullptr, report.recorder(1));
  EXPECT_NE(report.recorder(0), report.recorder(1));

  Put(0, 1000, kValueSize, report.recorder(0));
  ASSERT_OK(db_->Flush(FlushOptions()));
  Put(1000, kKeys - 1, kValueSize, report.recorder(1));
  Put(kKeys - 1, kKeys, 10 * kValueSize, report.recorder(1));  // a blob
  ASSERT_OK(db_->Flush(FlushOptions()));
  uint64_t flushed = 0;
  uint64_t blob_bytes = 0;
  std::vector<LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  for (const auto& file : files) {
    flushed += file.size;
  }
  ASSERT_TRUE(
      db_->GetIntProperty(DB::Properties::kTotalBlobFileSize, &blob_bytes));
  ASSERT_GT(blob_bytes, 10 * kValueSize);
  flushed += blob_bytes;
  // The first file was written before the benchmark.
  ASSERT_EQ(3u, files.size());
  flushed -= std::min_element(files.begin(), files.end(),
                              [](const auto& a, const auto& b) {
                                return a.file_number < b.file_number;
                              })
                 ->size;
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  files.clear();
  db_->GetLiveFilesMetaData(&files);
  uint64_t compacted = 0;
  for (const auto& file : files) {
    compacted += file.size;
  }
  std::string value;
  for (int i = 0; i < 50; ++i) {
    report.recorder(i % 2)->Start();
    ASSERT_OK(db_->Get(ReadOptions(), "key100007", &value));
    // The report has a kind of this name, and so has db_bench.
    report.recorder(i % 2)->Finish(i % 2 == 0 ? 0 : 16, "read");
  }
  Put(0, 10, 100);  // so that the WAL has data
  // The report measures the directory as well: no obsolete file may be deleted
  // between the two.
  WaitForCompactOptions wait_options;
  wait_options.wait_for_purge = true;
  ASSERT_OK(db_->WaitForCompact(wait_options));
  DirectorySize size;
  ASSERT_OK(
      size.Measure(env_->GetFileSystem().get(), {dir_ + "/db", dir_ + "/wal"}));
  ASSERT_OK(report.End(db_.get(), kKeys + 50, 2.5, 12345, 1000000,
                       "(\"half\"\nfound)"));
  const ProcessStats after = ProcessStats::Now().Since(before);

  const auto lines = ReadJson();
  ASSERT_EQ(1u, lines.size());
  const Json& json = lines[0];
  EXPECT_EQ((std::vector<std::string>{"benchmark",
                                      "time",
                                      "threads",
                                      "ops",
                                      "seconds",
                                      "ops_per_sec",
                                      "bytes",
                                      "open_seconds",
                                      "latency_us",
                                      "process",
                                      "db",
                                      "user_bytes_written",
                                      "user_keys_written",
                                      "wal_bytes_written",
                                      "stall_micros",
                                      "lsm_bytes_flushed",
                                      "lsm_bytes_compacted",
                                      "sst_bytes_written",
                                      "logical_bytes",
                                      "write_amplification",
                                      "space_amplification",
                                      "message"}),
            json.Keys());
  EXPECT_EQ("fillrandom[X2]", json["benchmark"].string());
  EXPECT_MATCHES_REGEX(
      json["time"].string(),
      "20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z");
  EXPECT_EQ(2u, json["threads"].integer());
  EXPECT_EQ(kKeys + 50u, json["ops"].integer());
  EXPECT_EQ(2.5, json["seconds"].number());
  EXPECT_EQ((kKeys + 50) / 2.5, json["ops_per_sec"].number());
  EXPECT_EQ(12345u, json["bytes"].integer());
  EXPECT_TRUE(json["open_seconds"].IsNull());
  EXPECT_EQ("(\"half\"\nfound)", json["message"].string());

  const Json& latency = json["latency_us"];
  EXPECT_EQ((std::vector<std::string>{"read", "insert"}), latency.Keys());
  const std::vector<std::string> percentiles = {"min",   "p50",    "p90", "p99",
                                                "p99.9", "p99.99", "max"};
  for (const std::string& op : latency.Keys()) {
    EXPECT_EQ((std::vector<std::string>{"count", "mean", "min", "p50", "p90",
                                        "p99", "p99.9", "p99.99", "max"}),
              latency[op].Keys());
    EXPECT_EQ(op == "read" ? 50u : kKeys, latency[op]["count"].integer());
    double last = 0;
    for (const std::string& p : percentiles) {
      EXPECT_GE(latency[op][p].number(), last) << op << " " << p;
      last = latency[op][p].number();
    }
    EXPECT_GT(latency[op]["min"].number(), 0);
    EXPECT_GE(latency[op]["mean"].number(), latency[op]["min"].number());
    EXPECT_LE(latency[op]["mean"].number(), latency[op]["max"].number());
    EXPECT_LT(latency[op]["max"].number(), 60e6);
  }

  const Json& process = json["process"];
  EXPECT_EQ((std::vector<std::string>{
                "cpu_user_seconds", "cpu_system_seconds", "rchar", "wchar",
                "syscr", "syscw", "read_bytes", "write_bytes",
                "cancelled_write_bytes", "peak_rss_bytes", "rss_bytes"}),
            process.Keys());
  EXPECT_LE(process["cpu_user_seconds"].number(), *after.cpu_user_seconds);
#ifdef OS_LINUX
  EXPECT_GE(process["wchar"].integer(), kPayload);
  EXPECT_LE(process["wchar"].integer(), *after.wchar);
  EXPECT_GT(process["rchar"].integer(), 0u);
  EXPECT_LE(process["write_bytes"].integer(), *after.write_bytes);
  EXPECT_LE(process["read_bytes"].integer(), *after.read_bytes);
  EXPECT_GT(process["rss_bytes"].integer(), 1000000u);
  EXPECT_GT(process["peak_rss_bytes"].integer(), 1000000u);
  const uint64_t written = process["write_bytes"].integer();
  const uint64_t cancelled = process["cancelled_write_bytes"].integer();
  EXPECT_EQ(static_cast<double>(written - std::min(written, cancelled)) /
                static_cast<double>(json["user_bytes_written"].integer()),
            json["write_amplification"].number());
#endif

  const Json& db = json["db"];
  EXPECT_EQ((std::vector<std::string>{"total_bytes", "sst_bytes", "blob_bytes",
                                      "wal_bytes", "other_bytes"}),
            db.Keys());
  EXPECT_EQ(size.total_bytes(), db["total_bytes"].integer());
  EXPECT_EQ(size.sst_bytes, db["sst_bytes"].integer());
  EXPECT_EQ(size.blob_bytes, db["blob_bytes"].integer());
  EXPECT_EQ(blob_bytes, db["blob_bytes"].integer());
  EXPECT_EQ(size.wal_bytes, db["wal_bytes"].integer());
  EXPECT_EQ(size.other_bytes, db["other_bytes"].integer());
  EXPECT_GT(db["wal_bytes"].integer(), 1000u);
  EXPECT_GT(db["other_bytes"].integer(), 0u);
  EXPECT_EQ(1000000u, json["logical_bytes"].integer());
  EXPECT_EQ(static_cast<double>(size.total_bytes()) / 1000000,
            json["space_amplification"].number());

  EXPECT_EQ(kKeys + 10u, json["user_keys_written"].integer());
  const uint64_t user_bytes = json["user_bytes_written"].integer();
  EXPECT_GE(user_bytes, kPayload + 9 * kValueSize);
  EXPECT_LE(user_bytes, kPayload + 9 * kValueSize + kKeys * 40);
  EXPECT_GE(json["wal_bytes_written"].integer(), user_bytes);
  EXPECT_LE(json["wal_bytes_written"].integer(), user_bytes * 3 / 2);
  EXPECT_EQ(0u, json["stall_micros"].integer());
  // The DB reports these numbers to about a KB.
  EXPECT_NEAR(static_cast<double>(flushed),
              static_cast<double>(json["lsm_bytes_flushed"].integer()), 8192);
  EXPECT_NEAR(static_cast<double>(compacted),
              static_cast<double>(json["lsm_bytes_compacted"].integer()), 8192);
  EXPECT_NEAR(static_cast<double>(flushed + compacted - blob_bytes),
              static_cast<double>(json["sst_bytes_written"].integer()), 8192);

  // The benchmark was shorter than the interval.
  const Rows rows = ReadCsv();
  ASSERT_EQ(1u, rows.size());
  const auto& row = rows[0];
  EXPECT_EQ("fillrandom[X2]", row[kBenchmark]);
  EXPECT_EQ(kKeys + 50, Number(row[kOps]));
  EXPECT_NEAR(Number(row[kOpsPerSec]),
              Number(row[kOps]) / Number(row[kSeconds]),
              Number(row[kOpsPerSec]) * 0.1);
  EXPECT_GT(Number(row[kP50]), 0);
  EXPECT_GE(Number(row[kP99]), Number(row[kP50]));
  EXPECT_GE(Number(row[kMax]), Number(row[kP99]));
  EXPECT_EQ(static_cast<double>(size.total_bytes()), Number(row[kDbBytes]));
  EXPECT_EQ(static_cast<double>(size.sst_bytes), Number(row[kSstBytes]));
  EXPECT_EQ(static_cast<double>(size.blob_bytes), Number(row[kBlobBytes]));
  EXPECT_EQ(static_cast<double>(size.wal_bytes), Number(row[kWalBytes]));
  EXPECT_GT(Number(row[kCpuSeconds]), 0);
#ifdef OS_LINUX
  EXPECT_GE(Number(row[kWriteBytes]),
            static_cast<double>(process["write_bytes"].integer()));
  EXPECT_GE(Number(row[kReadBytes]),
            static_cast<double>(process["read_bytes"].integer()));
  EXPECT_GT(Number(row[kRssBytes]), 1e6);
#endif
}

TEST_F(BenchmarkReportTest, UntimedBenchmarkIsReported) {
  OpenDB();
  BenchmarkReport report(json_file_, "");
  ASSERT_OK(report.Open());
  ASSERT_OK(report.EndUntimed(db_.get()));  // does nothing without Begin()
  report.SetOpenSeconds(1.25);
  report.Begin("waitforcompaction", db_.get(), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ASSERT_OK(report.EndUntimed(db_.get()));
  const auto lines = ReadJson();
  ASSERT_EQ(1u, lines.size());
  EXPECT_EQ(0u, lines[0]["ops"].integer());
  EXPECT_GE(lines[0]["seconds"].number(), 0.002);
  EXPECT_EQ(1.25, lines[0]["open_seconds"].number());
  EXPECT_TRUE(lines[0]["logical_bytes"].IsNull());
}

TEST_F(BenchmarkReportTest, SimulatedDevicesAreReported) {
  std::vector<PathDevice> devices;
  ASSERT_OK(ParsePathDevices(dir_ + ":0:0:0:4:0,/none:sata", &devices));
  const auto fs = std::make_shared<SimulatedDeviceFileSystem>(
      FileSystem::Default(), devices, SystemClock::Default().get());
  const std::unique_ptr<Env> env = NewCompositeEnv(fs);
  options_.env = env.get();
  OpenDB();
  BenchmarkReport report(json_file_, "");
  report.SetDevices(fs.get());
  ASSERT_OK(report.Open());
  const uint64_t before = fs->GetReports()[0].stats.write_bytes;
  report.Begin("fillseq", db_.get(), 1);
  Put(0, 1000, 1000, report.recorder(0));
  ASSERT_OK(db_->Flush(FlushOptions()));
  CloseDB();  // so that no background job writes any more
  ASSERT_OK(report.End(nullptr, 1000, 1, 0, 0, ""));
  const uint64_t after = fs->GetReports()[0].stats.write_bytes;
  report.Begin("waitforcompaction", nullptr, 0);
  ASSERT_OK(report.EndUntimed(nullptr));

  const auto lines = ReadJson();
  ASSERT_EQ(2u, lines.size());
  const Json& devices_json = lines[0]["devices"];
  EXPECT_EQ((std::vector<std::string>{dir_, "/none"}), devices_json.Keys());
  const Json& device = devices_json[dir_];
  EXPECT_EQ("0:0:0:4:0", device["profile"].string());
  EXPECT_EQ(after - before, device["write_bytes"].integer());
  EXPECT_GT(device["write_bytes"].integer(), 1000u * 1000);
  EXPECT_GT(device["writes"].integer(), 0u);
  EXPECT_EQ(0u, device["syncs"].integer());
  // It takes no time.
  EXPECT_EQ(0, device["busy_seconds"].number());
  EXPECT_EQ(0, device["served_seconds"].number());
  EXPECT_EQ((std::vector<std::string>{
                "profile", "reads", "read_bytes", "writes", "write_bytes",
                "syncs", "busy_seconds", "queued_seconds", "served_seconds",
                "late_requests", "late_seconds", "overslept_seconds"}),
            device.Keys());
  EXPECT_EQ(0u, devices_json["/none"]["writes"].integer());
  EXPECT_EQ(0u, lines[1]["devices"][dir_]["write_bytes"].integer());
}

// The known size of the data stays valid until the next benchmark that may
// change it.
TEST_F(BenchmarkReportTest, UntimedKeepsLogicalBytes) {
  OpenDB();
  BenchmarkReport report(json_file_, "");
  ASSERT_OK(report.Open());
  report.Begin("ycsbload", db_.get(), 1);
  ASSERT_OK(report.End(db_.get(), 1, 1, 1, 5000, ""));
  report.Begin("flush", db_.get(), 0);
  ASSERT_OK(report.EndUntimed(db_.get()));
  report.Begin("waitforcompaction", db_.get(), 0);
  ASSERT_OK(report.EndUntimed(db_.get()));
  report.Begin("overwrite", db_.get(), 1);
  ASSERT_OK(report.End(db_.get(), 1, 1, 1, 0, ""));
  report.Begin("flush", db_.get(), 0);
  ASSERT_OK(report.EndUntimed(db_.get()));
  const auto lines = ReadJson();
  ASSERT_EQ(5u, lines.size());
  EXPECT_EQ(5000u, lines[1]["logical_bytes"].integer());
  EXPECT_EQ(5000u, lines[2]["logical_bytes"].integer());
  EXPECT_GT(lines[2]["space_amplification"].number(), 0);
  EXPECT_TRUE(lines[4]["logical_bytes"].IsNull());
}

TEST_F(BenchmarkReportTest, UnknownNumbersAreNull) {
  BenchmarkReport report(json_file_, csv_file_);
  ASSERT_OK(report.Open());
  // There is no DB at all.
  report.Begin("crc32c", nullptr, 0);
  ASSERT_OK(report.End(nullptr, 0, 0, 0, 0, ""));
  // The DB has written nothing.
  OpenDB();
  report.Begin("readrandom", db_.get(), 1);
  ASSERT_OK(report.End(db_.get(), 0, 1, 0, 0, ""));
  // The DB is closed at the end of the benchmark, but its directories are
  // known.
  report.Begin("close", db_.get(), 1);
  CloseDB();
  ASSERT_OK(report.End(nullptr, 0, 1, 0, 10, ""));

  const auto lines = ReadJson();
  ASSERT_EQ(3u, lines.size());
  for (const char* key :
       {"ops_per_sec", "user_bytes_written", "user_keys_written",
        "wal_bytes_written", "stall_micros", "lsm_bytes_flushed",
        "lsm_bytes_compacted", "sst_bytes_written", "logical_bytes",
        "write_amplification", "space_amplification"}) {
    EXPECT_TRUE(lines[0][key].IsNull()) << key;
  }
  EXPECT_EQ(22u, lines[0].Keys().size());
  EXPECT_EQ(0u, lines[0]["seconds"].number());
  EXPECT_TRUE(lines[0]["latency_us"].Keys().empty());
  EXPECT_EQ(5u, lines[0]["db"].Keys().size());
  for (const std::string& key : lines[0]["db"].Keys()) {
    EXPECT_TRUE(lines[0]["db"][key].IsNull()) << key;
  }

  EXPECT_EQ(0.0, lines[1]["ops_per_sec"].number());
  EXPECT_EQ(0u, lines[1]["user_bytes_written"].integer());
  EXPECT_EQ(0u, lines[1]["lsm_bytes_flushed"].integer());
  EXPECT_EQ(0u, lines[1]["lsm_bytes_compacted"].integer());
  EXPECT_TRUE(lines[1]["write_amplification"].IsNull());
  EXPECT_TRUE(lines[1]["space_amplification"].IsNull());
  EXPECT_GT(lines[1]["db"]["total_bytes"].integer(), 0u);

  EXPECT_TRUE(lines[2]["user_bytes_written"].IsNull());
  EXPECT_TRUE(lines[2]["write_amplification"].IsNull());
  EXPECT_GT(lines[2]["db"]["total_bytes"].integer(), 0u);
  EXPECT_GT(lines[2]["space_amplification"].number(), 1);

  const Rows rows = ReadCsv();
  ASSERT_EQ(3u, rows.size());
  for (const Column column : {kP50, kP99, kMax, kDbBytes, kSstBytes}) {
    EXPECT_EQ("", rows[0][column]);
  }
  EXPECT_EQ("0", rows[0][kOps]);
  EXPECT_EQ("", rows[1][kP50]);
  EXPECT_EQ("0", rows[1][kSstBytes]);
}

// The counters of a DB start at 0 when it is opened, and the report has the
// writes of the benchmark alone.
TEST_F(BenchmarkReportTest, ReopenedDBCountsFromZero) {
  BenchmarkReport report(json_file_, "");
  ASSERT_OK(report.Open());
  OpenDB();
  Put(0, 100, 1000);
  ASSERT_OK(db_->Flush(FlushOptions()));
  // The benchmark writes less than was written before it, then more.
  for (const int keys : {30, 1000}) {
    report.Begin("fill", db_.get(), 1);
    CloseDB();
    OpenDB();
    Put(0, keys, 1000);
    ASSERT_OK(db_->Flush(FlushOptions()));
    ASSERT_OK(report.End(db_.get(), keys, 1, 0, 0, ""));
  }
  // The benchmark begins without a DB.
  CloseDB();
  report.Begin("fill", nullptr, 1);
  OpenDB();
  Put(0, 40, 1000);
  ASSERT_OK(report.End(db_.get(), 40, 1, 0, 0, ""));
  // The counters are set to 0 during the benchmark.
  report.Begin("fill", db_.get(), 1);
  ASSERT_OK(db_->ResetStats());
  Put(0, 50, 1000);
  ASSERT_OK(report.End(db_.get(), 50, 1, 0, 0, ""));
  // The DB is open, but Begin() does not get it. The part of its counts that
  // belongs to the benchmark is not known.
  report.Begin("fill", nullptr, 1);
  ASSERT_OK(report.End(db_.get(), 50, 1, 0, 0, ""));

  const auto lines = ReadJson();
  ASSERT_EQ(5u, lines.size());
  for (const size_t i : {0, 1, 2, 3}) {
    const uint64_t keys = lines[i]["ops"].integer();
    EXPECT_EQ(keys, lines[i]["user_keys_written"].integer());
    EXPECT_GE(lines[i]["user_bytes_written"].integer(), keys * 1000);
    EXPECT_LT(lines[i]["user_bytes_written"].integer(), keys * 1050);
    if (i < 2) {
      const double flushed =
          static_cast<double>(lines[i]["lsm_bytes_flushed"].integer());
      EXPECT_NEAR(static_cast<double>(keys) * 1000, flushed, 60000);
      EXPECT_EQ(0u, lines[i]["lsm_bytes_compacted"].integer());
    }
  }
  EXPECT_TRUE(lines[4]["user_keys_written"].IsNull());
  EXPECT_TRUE(lines[4]["write_amplification"].IsNull());
}

TEST_F(BenchmarkReportTest, EachEndedBenchmarkIsReportedOnce) {
  OpenDB();
  for (int run = 0; run < 2; ++run) {
    BenchmarkReport report(json_file_, csv_file_);
    ASSERT_OK(report.Open());
    report.Begin("first", db_.get(), 1);
    Put(0, 100, 100, report.recorder(0));
    ASSERT_OK(report.End(db_.get(), 100, 1, 0, 0, ""));
    // There is no benchmark to end.
    EXPECT_EQ(nullptr, report.recorder(0));
    ASSERT_OK(report.End(db_.get(), 100, 1, 0, 0, ""));

    report.Begin("skipped", db_.get(), 1);
    Put(0, 10, 100, report.recorder(0));
    report.Abandon();
    EXPECT_EQ(nullptr, report.recorder(0));
    ASSERT_OK(report.End(db_.get(), 10, 1, 0, 0, ""));

    // Begin() abandons a benchmark, too, and so does the end of the report.
    report.Begin("forgotten", db_.get(), 1);
    report.Begin("a,\"b\"", db_.get(), 1);
    Put(0, 50, 100, report.recorder(0));
    ASSERT_OK(report.End(db_.get(), 50, 1, 0, 0, ""));
    report.Begin("cut", db_.get(), 1);
  }
  const auto lines = ReadJson();
  ASSERT_EQ(4u, lines.size());
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(i % 2 == 0 ? "first" : "a,\"b\"", lines[i]["benchmark"].string());
    const uint64_t keys = i % 2 == 0 ? 100 : 50;
    EXPECT_EQ(keys, lines[i]["user_keys_written"].integer());
    EXPECT_EQ(keys, lines[i]["latency_us"]["insert"]["count"].integer());
  }
  const auto csv = Split(Read(csv_file_), '\n');
  ASSERT_EQ(6u, csv.size());
  EXPECT_EQ(kHeader, csv[0]);
  for (const size_t i : {1, 3}) {
    EXPECT_EQ(0u, csv[i].find("first,0.")) << csv[i];
    EXPECT_EQ(0u, csv[i + 1].find("\"a,\"\"b\"\"\",0.")) << csv[i + 1];
  }
  EXPECT_EQ("", csv[5]);
}

// Rows are written while threads record operations.
TEST_F(BenchmarkReportTest, RowsShowTheProgressOfThreads) {
  constexpr int kThreads = 3;
  constexpr int kInterval = 20;
  // Few enough for one memtable, and for its WAL.
  constexpr uint64_t kMaxOps = 50000;
  OpenDB();
  BenchmarkReport report(json_file_, csv_file_, kInterval);
  ASSERT_OK(report.Open());
  const auto start = std::chrono::steady_clock::now();
  report.Begin("mixed", db_.get(), kThreads);
  std::array<uint64_t, kThreads> done{};
  StoppableThreads threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.Start([&, t] {
      OpRecorder* const recorder = report.recorder(t);
      recorder->Start();
      const std::string value(100, 'v');
      // There is at least one operation of each kind.
      while (done[t] < 3 || (done[t] < kMaxOps && !threads.stopped())) {
        const std::string key = std::to_string(done[t] % 1000);
        EXPECT_OK(db_->Put(WriteOptions(), key, value));
        recorder->Finish(static_cast<unsigned>(done[t] % 3),
                         done[t] % 3 == 0   ? "insert"
                         : done[t] % 3 == 1 ? "update"
                                            : "merge");
        ++done[t];
      }
    });
  }
  EXPECT_TRUE(WaitUntil([this] { return ReadCsv().size() >= 5; }));
  threads.Stop();
  // An interval without any operation follows.
  EXPECT_TRUE(WaitUntil([this] {
    const Rows so_far = ReadCsv();
    return !so_far.empty() && so_far.back()[kP50].empty();
  }));
  uint64_t ops = 0;
  for (const uint64_t n : done) {
    ops += n;
  }
  ASSERT_OK(report.End(db_.get(), ops, 0.35, 0, 0, ""));
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();

  const auto lines = ReadJson();
  ASSERT_EQ(1u, lines.size());
  const Json& latency = lines[0]["latency_us"];
  EXPECT_EQ((std::vector<std::string>{"insert", "update", "merge"}),
            latency.Keys());
  uint64_t counted = 0;
  double max_us = 0;
  for (const std::string& op : latency.Keys()) {
    counted += latency[op]["count"].integer();
    max_us = std::max(max_us, latency[op]["max"].number());
  }
  EXPECT_EQ(ops, counted);

  const Rows rows = ReadCsv();
  ASSERT_GE(rows.size(), 2u);
  EXPECT_LE(static_cast<double>(rows.size()), elapsed * 1000 / kInterval + 2);
  double last_seconds = 0;
  double last_ops = 0;
  double last_cpu = 0;
  bool idle = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    EXPECT_EQ("mixed", row[kBenchmark]);
    const double seconds = Number(row[kSeconds]);
    EXPECT_GE(seconds, last_seconds);
    EXPECT_LE(seconds, elapsed + 0.01);
    if (i + 1 < rows.size()) {
      // Each row has a deadline of its own, the first one after the row before,
      // and is written at or after it. The seconds are rounded.
      constexpr double kRounding = 0.0005;
      const double intervals_before = std::floor(
          std::max(0.0, last_seconds - kRounding) * 1000 / kInterval);
      EXPECT_GE(seconds + kRounding, (intervals_before + 1) * kInterval / 1000);
    }
    const double row_ops = Number(row[kOps]);
    EXPECT_GE(row_ops, last_ops);
    if (i + 1 < rows.size() && seconds - last_seconds > kInterval / 2000.0) {
      const double rate = (row_ops - last_ops) / (seconds - last_seconds);
      EXPECT_NEAR(rate, Number(row[kOpsPerSec]), rate * 0.15 + 1);
    }
    if (row[kP50].empty()) {
      idle = true;
      EXPECT_EQ("", row[kP99]);
      EXPECT_EQ("", row[kMax]);
    } else {
      EXPECT_LE(Number(row[kP50]), Number(row[kP99]));
      EXPECT_LE(Number(row[kP99]), Number(row[kMax]));
      EXPECT_LE(Number(row[kMax]), max_us);
    }
    EXPECT_GE(Number(row[kDbBytes]), Number(row[kWalBytes]));
    EXPECT_GE(Number(row[kCpuSeconds]), last_cpu);
    last_cpu = Number(row[kCpuSeconds]);
    last_seconds = seconds;
    last_ops = row_ops;
  }
  EXPECT_EQ(static_cast<double>(ops), last_ops);
  EXPECT_TRUE(idle);
  EXPECT_GT(Number(rows.back()[kWalBytes]), static_cast<double>(ops) * 100);
  EXPECT_GT(Number(rows.back()[kCpuSeconds]), 0);
}

// Many rows are written while recorders get new kinds. There is no DB, so
// ThreadSanitizer can run this without an instrumented library.
TEST_F(BenchmarkReportTest, ConcurrentRecordersLoseNoOperation) {
  constexpr int kThreads = 4;
  constexpr int kOpsOfThread = 100000;
  BenchmarkReport report(json_file_, csv_file_, 1);
  ASSERT_OK(report.Open());
  for (int run = 0; run < 2; ++run) {
    report.Begin("record", nullptr, kThreads);
    std::vector<port::Thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&report, t] {
        OpRecorder* const recorder = report.recorder(t);
        recorder->Start();
        for (int i = 0; i < kOpsOfThread; ++i) {
          const auto kind = static_cast<unsigned>(i / 10000 + t);
          recorder->Finish(kind, std::to_string(kind).c_str(), 2);
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
    ASSERT_OK(report.End(nullptr, 1, 1, 0, 0, ""));
  }
  const auto lines = ReadJson();
  ASSERT_EQ(2u, lines.size());
  for (const Json& json : lines) {
    const Json& latency = json["latency_us"];
    EXPECT_EQ(13u, latency.Keys().size());
    EXPECT_EQ(10000u, latency["0"]["count"].integer());
    EXPECT_EQ(40000u, latency["3"]["count"].integer());
    EXPECT_EQ(10000u, latency["12"]["count"].integer());
    uint64_t count = 0;
    for (const std::string& name : latency.Keys()) {
      count += latency[name]["count"].integer();
    }
    EXPECT_EQ(uint64_t{kThreads} * kOpsOfThread, count);
  }
  const Rows rows = ReadCsv();
  double last = 0;
  int finished = 0;
  for (const auto& row : rows) {
    const double ops = Number(row[kOps]);
    if (last == 2.0 * kThreads * kOpsOfThread && ops < last) {
      ++finished;  // the second benchmark begins
    } else {
      EXPECT_GE(ops, last);
    }
    last = ops;
  }
  EXPECT_EQ(2.0 * kThreads * kOpsOfThread, last);
  EXPECT_LE(finished, 1);
}

namespace {

// A file system that lists a directory slowly.
class SlowFileSystem : public FileSystemWrapper {
 public:
  SlowFileSystem(const std::shared_ptr<FileSystem>& target,
                 std::chrono::milliseconds delay)
      : FileSystemWrapper(target), delay_(delay) {}
  const char* Name() const override { return "SlowFileSystem"; }

  IOStatus GetChildren(const std::string& dir, const IOOptions& options,
                       std::vector<std::string>* names,
                       IODebugContext* dbg) override {
    std::this_thread::sleep_for(delay_);
    return target()->GetChildren(dir, options, names, dbg);
  }

 private:
  const std::chrono::milliseconds delay_;
};

}  // namespace

// The time that a row takes does not delay the next one.
TEST_F(BenchmarkReportTest, DeadlinesAreFixed) {
  constexpr int kInterval = 60;
  constexpr size_t kRows = 9;
  // There are two directories, so each row takes half an interval.
  const auto slow_fs = std::make_shared<SlowFileSystem>(
      env_->GetFileSystem(), std::chrono::milliseconds(kInterval / 4));
  const std::unique_ptr<Env> slow_env = NewCompositeEnv(slow_fs);
  options_.env = slow_env.get();
  OpenDB();
  BenchmarkReport report("", csv_file_, kInterval);
  ASSERT_OK(report.Open());
  // A busy machine delays rows, but not in each attempt.
  bool is_fixed = false;
  for (int attempt = 0; attempt < 20 && !is_fixed; ++attempt) {
    const std::string name = "slow" + std::to_string(attempt);
    // Returns the milliseconds of the rows of this attempt.
    const auto times = [this, &name] {
      std::vector<double> result;
      for (const auto& row : ReadCsv()) {
        if (row[kBenchmark] == name) {
          result.push_back(Number(row[kSeconds]) * 1000);
        }
      }
      return result;
    };
    report.Begin(name, db_.get(), 0);
    ASSERT_TRUE(WaitUntil([&times] { return times().size() >= kRows; }));
    ASSERT_OK(report.End(nullptr, 0, 1, 0, 0, ""));
    const std::vector<double> written = times();
    for (size_t i = 0; i < kRows; ++i) {
      EXPECT_GE(written[i] + 1, static_cast<double>((i + 1) * kInterval));
    }
    // If each row delayed the next one, the last one would come four intervals
    // later than in this test.
    is_fixed =
        written[kRows - 1] < static_cast<double>((kRows + 2) * kInterval);
  }
  EXPECT_TRUE(is_fixed);
  CloseDB();
}

// A DB may be closed, destroyed and opened while rows are written.
TEST_F(BenchmarkReportTest, RowsAreWrittenWhileTheDBIsReopened) {
  OpenDB();
  BenchmarkReport report("", csv_file_, 1);
  ASSERT_OK(report.Open());
  report.Begin("reopen", db_.get(), 1);
  for (int i = 0; i < 10; ++i) {
    Put(0, 20, 1000, report.recorder(0));
    ASSERT_OK(db_->Flush(FlushOptions()));
    CloseDB();
    ASSERT_OK(DestroyDB(dir_ + "/db", options_));
    OpenDB();
  }
  CloseDB();
  ASSERT_OK(report.End(nullptr, 200, 1, 0, 0, ""));
  const Rows rows = ReadCsv();
  ASSERT_GE(rows.size(), 2u);
  EXPECT_EQ("200", rows.back()[kOps]);
  EXPECT_GT(Number(rows.back()[kDbBytes]), 0);
}

TEST_F(BenchmarkReportTest, OpenErrorsNameTheFile) {
  const std::string absent = dir_ + "/absent/file";
  for (const bool is_json : {true, false}) {
    BenchmarkReport report(is_json ? absent : json_file_,
                           is_json ? csv_file_ : absent);
    const Status s = report.Open();
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_NE(std::string::npos, s.ToString().find(absent)) << s.ToString();
    EXPECT_FALSE(report.active());
    report.Begin("fill", nullptr, 1);
    EXPECT_OK(report.End(nullptr, 1, 1, 0, 0, ""));
  }
}

#ifdef OS_LINUX
TEST_F(BenchmarkReportTest, WriteErrorsAreReturned) {
  // The header does not fit.
  BenchmarkReport csv("", "/dev/full");
  Status s = csv.Open();
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_FALSE(csv.active());

  BenchmarkReport json("/dev/full", "");
  ASSERT_OK(json.Open());
  for (int i = 0; i < 2; ++i) {
    json.Begin("fill", nullptr, 1);
    s = json.End(nullptr, 1, 1, 0, 0, "");
    EXPECT_TRUE(s.IsIOError()) << s.ToString();
    EXPECT_NE(std::string::npos, s.ToString().find("/dev/full"));
  }
}

// Errors of rows are returned at the end, and do not affect the next benchmark.
TEST_F(BenchmarkReportTest, WriteErrorsOfRowsAreReturnedAtTheEnd) {
  BenchmarkReport report("", csv_file_, 1);
  ASSERT_OK(report.Open());
  struct rlimit old_limit;
  ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &old_limit));
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit = old_limit;
  limit.rlim_cur = Read(csv_file_).size();
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
  report.Begin("full", nullptr, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Status s = report.End(nullptr, 1, 1, 0, 0, "");
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &old_limit));
  signal(SIGXFSZ, old_handler);
  EXPECT_TRUE(s.IsIOError()) << s.ToString();
  EXPECT_NE(std::string::npos, s.ToString().find(csv_file_)) << s.ToString();

  report.Begin("next", nullptr, 1);
  ASSERT_OK(report.End(nullptr, 1, 1, 0, 0, ""));
  const Rows rows = ReadCsv();
  ASSERT_GE(rows.size(), 1u);
  for (const auto& row : rows) {
    EXPECT_EQ("next", row[kBenchmark]);
  }
}
#endif  // OS_LINUX

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
