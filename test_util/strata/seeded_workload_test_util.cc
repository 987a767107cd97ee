//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/seeded_workload_test_util.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "rocksdb/env.h"
#include "rocksdb/slice.h"
#include "test_util/strata/history_options_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// So small files that a short history has many jobs. Features vary with the
// seed.
HistoryOptionList WorkloadOptions(uint64_t seed) {
  HistoryOptionList options = {{"blob_file_size", "1024"},
                               {"disable_auto_compactions", "false"},
                               {"level0_file_num_compaction_trigger", "2"},
                               {"target_file_size_base", "1024"},
                               {"max_bytes_for_level_base", "4096"},
                               {"max_background_jobs", "4"}};
  std::mt19937_64 engine(seed);
  const auto maybe = [&](uint64_t one_in, const char* name, const char* value) {
    const bool is_chosen = engine() % one_in == 0;
    if (is_chosen) {
      HistoryOptions::Set(name, value, &options);
    }
    return is_chosen;
  };
  HistoryOptions::Add("blobs", "50", &options);
  if (!maybe(6, "enable_blob_garbage_collection", "true")) {
    HistoryOptions::Set("enable_blob_address_map", "true", &options);
    HistoryOptions::Set("blob_gc_space_amp_limit", "1.01", &options);
    maybe(4, "enable_lsm_bypass", "false");
  }
  if (!maybe(6, "enable_delta_separation", "false")) {
    HistoryOptions::Set("enable_delta_separation", "true", &options);
    HistoryOptions::Set("delta_bucket_size", "4096", &options);
    HistoryOptions::Set("delta_max_buckets", "4", &options);
    HistoryOptions::Set("delta_bucket_split_ratio", "0.1", &options);
  }
  if (maybe(2, "enable_merged_value_cache", "true")) {
    HistoryOptions::Set("merged_value_cache_size", "2000000", &options);
  }
  maybe(2, "max_subcompactions", "2");
  maybe(4, "compaction_style", "kCompactionStyleUniversal");
  // These two exclude each other.
  if (!maybe(4, "enable_pipelined_write", "true")) {
    maybe(2, "max_write_groups_per_leader", "4");
  }
  maybe(4, "wal_mmap_buffer_size", "65536");
  maybe(2, "blob_scan_sort_budget", "1000");
  return options;
}

constexpr uint64_t kKeys = 8;  // of each thread

}  // namespace

// One of the threads.
class SeededWorkload::Writer {
 public:
  Writer(SeededWorkload* workload, size_t number)
      : workload_(*workload),
        db_(workload->db_.get()),
        name_(std::string("t").append(std::to_string(number))),
        engine_(workload->options_.seed * 1000 + number) {}

  void Run() {
    for (size_t i = 0; i < workload_.options_.steps; ++i) {
      RunStep();
    }
    ReleaseSnapshot();
  }

  const Contents& contents() const { return contents_; }

 private:
  struct View {
    const Snapshot* snapshot = nullptr;
    Contents contents;
  };

  uint64_t Below(uint64_t n) { return engine_() % n; }
  std::string Key(uint64_t n) const {
    return std::string(name_).append("k").append(std::to_string(n));
  }
  std::string RandomKey() { return Key(Below(kKeys)); }
  // Sometimes inline, sometimes in a blob file; no two are equal.
  std::string NewValue() {
    std::string value = name_ + "v" + std::to_string(num_values_++);
    value.append(Below(2) == 0 ? 0 : 20 + Below(200), 'x');
    return value;
  }

  void RunStep() {
    const uint64_t dice = Below(100);
    if (dice < 30) {
      Put();
    } else if (dice < 48) {
      Merge();
    } else if (dice < 54) {
      Delete();
    } else if (dice < 57) {
      DeleteRange();
    } else if (dice < 75) {
      Get();
    } else if (dice < 83) {
      Scan();
    } else if (dice < 90) {
      if (!ReleaseSnapshot()) {
        view_.emplace(View{db_->GetSnapshot(), contents_});
      }
    } else if (dice < 98) {
      Flush();
    } else {
      workload_.ExpectOk(
          db_->CompactRange(CompactRangeOptions(), nullptr, nullptr),
          "compaction");
    }
  }

  void Put() {
    const std::string key = RandomKey();
    const std::string value = NewValue();
    workload_.ExpectOk(db_->Put(WriteOptions(), key, value), "put");
    contents_[key] = value;
  }

  void Merge() {
    const std::string key = RandomKey();
    const std::string operand = NewValue();
    workload_.ExpectOk(db_->Merge(WriteOptions(), key, operand), "merge");
    std::string& value = contents_[key];
    value.append(value.empty() ? "" : ",").append(operand);
  }

  void Delete() {
    const std::string key = RandomKey();
    workload_.ExpectOk(db_->Delete(WriteOptions(), key), "delete");
    contents_.erase(key);
  }

  void DeleteRange() {
    const uint64_t first = Below(kKeys);
    const std::string begin = Key(first);
    const std::string end = Key(std::min(first + 3, kKeys));
    workload_.ExpectOk(db_->DeleteRange(WriteOptions(), begin, end),
                       "range deletion");
    contents_.erase(contents_.lower_bound(begin), contents_.lower_bound(end));
  }

  void Get() {
    const std::string key = RandomKey();
    const bool is_at_snapshot = view_.has_value() && Below(2) == 0;
    ReadOptions read_options;
    read_options.snapshot = is_at_snapshot ? view_->snapshot : nullptr;
    const Contents& expected = is_at_snapshot ? view_->contents : contents_;
    std::string value;
    const Status s = db_->Get(read_options, key, &value);
    const auto it = expected.find(key);
    workload_.Expect(
        it == expected.end() ? s.IsNotFound() : s.ok() && value == it->second,
        key + ": " + s.ToString() + " \"" + value + "\", expected " +
            (it == expected.end() ? "nothing" : "\"" + it->second + "\"") +
            (is_at_snapshot ? " at the snapshot" : ""));
  }

  void Scan() {
    const bool is_at_snapshot = view_.has_value() && Below(2) == 0;
    const std::string end = name_ + "l";
    const Slice bound(end);
    ReadOptions read_options;
    read_options.snapshot = is_at_snapshot ? view_->snapshot : nullptr;
    read_options.iterate_upper_bound = &bound;
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    Contents found;
    for (iter->Seek(name_); iter->Valid(); iter->Next()) {
      found[iter->key().ToString()] = iter->value().ToString();
    }
    workload_.ExpectOk(iter->status(), "scan");
    workload_.Expect(found == (is_at_snapshot ? view_->contents : contents_),
                     name_ + ": a scan found other contents");
  }

  void Flush() {
    FlushOptions flush_options;
    flush_options.wait = Below(4) == 0;
    flush_options.allow_write_stall = true;
    const Status s = db_->Flush(flush_options);
    // A flush is not begun while writes are stopped.
    workload_.Expect(s.ok() || s.IsTryAgain(), "flush: " + s.ToString());
  }

  // Returns false if there is none.
  bool ReleaseSnapshot() {
    if (!view_.has_value()) {
      return false;
    }
    db_->ReleaseSnapshot(view_->snapshot);
    view_.reset();
    return true;
  }

  SeededWorkload& workload_;
  DB* const db_;
  const std::string name_;
  std::mt19937_64 engine_;
  uint64_t num_values_ = 0;
  Contents contents_;
  std::optional<View> view_;
};

SeededWorkload::SeededWorkload(const Options& options, std::string root)
    : options_(options), root_(std::move(root)) {}

SeededWorkload::~SeededWorkload() = default;

Status SeededWorkload::Open() {
  ROCKSDB_NAMESPACE::Options options;
  std::vector<std::string> paths;
  Status s = HistoryOptions::Make(WorkloadOptions(options_.seed),
                                  /*overrides=*/nullptr, root_, Env::Default(),
                                  &options, &paths);
  if (s.ok()) {
    s = DB::Open(options, root_ + "/db", &db_);
  }
  return s;
}

void SeededWorkload::Expect(bool condition, const std::string& what) {
  if (!condition) {
    complaints_.append(what).append("\n");
  }
}

void SeededWorkload::ExpectOk(const Status& s, const std::string& what) {
  Expect(s.ok(), what + ": " + s.ToString());
}

void SeededWorkload::CheckAll(const Contents& expected,
                              const std::string& when) {
  Contents found;
  {
    const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      found[iter->key().ToString()] = iter->value().ToString();
    }
    ExpectOk(iter->status(), when);
  }
  Expect(found == expected, when + ": other contents");
  for (const auto& [key, value] : expected) {
    std::string read;
    ExpectOk(db_->Get(ReadOptions(), key, &read), when + ": " + key);
    Expect(read == value, when + ": " + key + "=" + read);
  }
  ExpectOk(db_->VerifyChecksum(), when);
}

std::string SeededWorkload::Run() {
  ExpectOk(Env::Default()->CreateDirIfMissing(root_), root_);
  ExpectOk(Open(), "open");
  if (db_ == nullptr) {
    return complaints_;
  }
  Contents expected;
  {
    std::vector<std::unique_ptr<Writer>> writers;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < options_.threads; ++i) {
      writers.push_back(std::make_unique<Writer>(this, i));
      threads.emplace_back(&Writer::Run, writers.back().get());
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (const auto& writer : writers) {
      expected.insert(writer->contents().begin(), writer->contents().end());
    }
  }
  CheckAll(expected, "at the end");
  ExpectOk(db_->Close(), "close");
  db_.reset();
  ExpectOk(Open(), "reopen");
  if (db_ != nullptr) {
    CheckAll(expected, "after a reopen");
    ExpectOk(db_->Close(), "close");
    db_.reset();
  }
  return complaints_;
}

}  // namespace ROCKSDB_NAMESPACE
