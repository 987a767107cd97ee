// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/mix_workload.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "tools/workloads/generators.h"
#include "tools/workloads/record_shape.h"
#include "util/random.h"
#include "util/string_util.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

enum Action : size_t {
  kReadRecord,
  kUpdateRecord,
  kInsertRecord,
  kScanRecords,
  kReadModifyWriteRecord,
  kMergeRecord,
  kPutRecord,
  kReadMissing,
  kNumActions,
};

constexpr const char* kActionNames[kNumActions] = {
    "read", "update", "insert", "scan", "rmw", "merge", "put", "readmissing"};

// The zipfian generator computes with doubles.
constexpr uint64_t kMostRecords = uint64_t{1} << 53;

using Mix = std::vector<double>;  // percent, by Action

// Parses the proportions of operations, such as "read:50,update:50".
Status ParseMix(const std::string& text, Mix* mix) {
  mix->assign(kNumActions, 0.0);
  double sum = 0;
  for (const std::string& part : StringSplit(text, ',')) {
    const size_t colon = part.find(':');
    size_t action = 0;
    while (action < kNumActions &&
           part.substr(0, colon) != kActionNames[action]) {
      ++action;
    }
    char* end = nullptr;
    const std::string number =
        colon == std::string::npos ? "" : part.substr(colon + 1);
    const double percent = std::strtod(number.c_str(), &end);
    if (action == kNumActions || number.empty() || *end != '\0' ||
        !std::isfinite(percent) || percent < 0) {
      return Status::InvalidArgument(
          "--ycsb_mix",
          "'" + part +
              "' is not one of read, update, insert, scan, rmw, merge, put, "
              "readmissing with a colon and a percentage");
    }
    (*mix)[action] += percent;
    sum += percent;
  }
  if (std::abs(sum - 100) > 1e-6) {
    return Status::InvalidArgument("--ycsb_mix", "percentages must add to 100");
  }
  return Status::OK();
}

class MixWorkload : public Workload {
 public:
  struct Spec {
    Mix mix = Mix(kNumActions, 0.0);
    Status status;  // an error if its flags are invalid
    Distribution distribution = Distribution::kZipfian;
    uint32_t max_scan = 100;
    bool scan_length_fixed = false;
    bool update_by_merge = false;
    bool has_writer = false;  // the first thread puts while the others run
  };

  MixWorkload(Spec&& spec, std::unique_ptr<RecordShape>&& shape,
              const WorkloadOptions& options)
      : spec_(std::move(spec)), shape_(std::move(shape)), options_(options) {}

  bool merges() const override {
    return spec_.mix[kMergeRecord] > 0 ||
           (spec_.update_by_merge && (spec_.mix[kUpdateRecord] > 0 ||
                                      spec_.mix[kReadModifyWriteRecord] > 0));
  }

  Status Prepare(DB* db, int threads) override {
    Status s = spec_.status;
    if (s.ok()) {
      s = shape_->Validate();
    }
    if (s.ok() && !ZipfianGenerator::Validate(options_.zipfian_const).ok()) {
      s = Status::InvalidArgument("--ycsb_zipfian_const", "must be positive");
    }
    if (s.ok() && (options_.records == 0 || options_.records > kMostRecords ||
                   options_.zipfian_items > kMostRecords)) {
      s = Status::InvalidArgument("--ycsb_records, --ycsb_zipfian_items",
                                  "must lie between 1 and 2^53");
    }
    if (s.ok() && spec_.max_scan == 0) {
      s = Status::InvalidArgument("the scan length", "must be positive");
    }
    if (s.ok() && merges() && db->GetOptions().merge_operator == nullptr) {
      s = Status::InvalidArgument(
          "--merge_operator",
          "the workload needs fieldupdate; the database has none");
    }
    if (s.ok()) {
      s = ParseDistribution(options_.distribution, &spec_.distribution);
    }
    if (s.ok() && spec_.has_writer && threads < 2) {
      s = Status::InvalidArgument("--threads",
                                  "must be 2 or more: one of them writes");
    }
    if (s.ok()) {
      s = FirstMissingRecord(db, &existing_);
    }
    // Without insertions, the records are those of the load.
    inserts_ = std::make_unique<InsertCounter>(
        spec_.mix[kInsertRecord] > 0 ? existing_ : options_.records);
    scan_starts_ = options_.scan_stay > 0 && spec_.scan_length_fixed
                       ? std::make_unique<MovingPart>(options_.scan_parts,
                                                      options_.scan_stay)
                       : nullptr;
    scanners_ = threads - 1;
    writing_ = false;
    missing_ = 0;
    scanned_ = 0;
    return s;
  }

  void Run(WorkloadHost* host) override {
    Runner runner(this, host);
    if (!spec_.has_writer) {
      runner.Run();
    } else if (host->thread() == 0) {
      runner.WriteWhile(scanners_, &writing_);
    } else {
      // The first scan already runs beside the writer: on a busy machine its
      // thread may start when a short run of scans is over.
      writing_.wait(false);
      runner.Run();
      scanners_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  std::string Message() const override {
    std::string message;
    if (missing_.load() > 0) {
      message = "(" + std::to_string(missing_.load()) + " missing)";
    }
    if (scanned_.load() > 0) {
      message += "(" + std::to_string(scanned_.load()) + " keys scanned)";
    }
    return message;
  }

  uint64_t LogicalBytes() const override {
    if (options_.allow_missing) {
      return 0;  // the records deleted by deleterandomrange are not counted
    }
    const double records =
        static_cast<double>(std::max(existing_, inserts_->Visible()));
    return static_cast<uint64_t>(
        records * (shape_->MeanKeySize() + shape_->MeanValueSize()));
  }

 private:
  // Returns the first record to insert: an earlier run may have inserted
  // records beyond those of the load. Records are inserted in order, so
  // bisection finds the end. If that run was killed, some of its last records
  // may be missing, at most as many as it had threads.
  Status FirstMissingRecord(DB* db, uint64_t* first) const {
    uint64_t there = options_.records;
    uint64_t step = 1;
    Status s;
    bool found = true;
    while (s.ok() && found) {
      s = Exists(db, there + step - 1, &found);
      if (found) {
        there += step;
        step *= 2;
      }
    }
    uint64_t missing = there + step - 1;
    while (s.ok() && there < missing) {
      const uint64_t middle = there + (missing - there) / 2;
      s = Exists(db, middle, &found);
      if (found) {
        there = middle + 1;
      } else {
        missing = middle;
      }
    }
    *first = there;
    return s;
  }

  // Sets *found to whether this record, or one of the next few, exists.
  Status Exists(DB* db, uint64_t record, bool* found) const {
    constexpr uint64_t kMostThreads = 64;
    ReadOptions read_options;
    read_options.fill_cache = false;
    std::string key;
    PinnableSlice value;
    Status s = Status::NotFound();
    for (uint64_t i = 0; i < kMostThreads && s.IsNotFound(); ++i) {
      value.Reset();
      shape_->Key(record + i, &key);
      s = db->Get(read_options, db->DefaultColumnFamily(), key, &value);
    }
    *found = s.ok();
    return s.IsNotFound() ? Status::OK() : s;
  }

  // The loop of one thread.
  class Runner {
   public:
    Runner(MixWorkload* workload, WorkloadHost* host)
        : workload_(workload),
          spec_(workload->spec_),
          options_(workload->options_),
          shape_(*workload->shape_),
          inserts_(workload->inserts_.get()),
          host_(host),
          db_(host->db()),
          cf_(host->column_family()),
          rnd_(host->seed()),
          actions_(Shares(spec_.mix)),
          chooser_(NewKeyChooser(options_, spec_.distribution)) {}

    void Run() {
      while (!host_->Done()) {
        const size_t action = actions_.Next(&rnd_);
        Status s;
        switch (action) {
          case kReadRecord:
            s = Read();
            break;
          case kUpdateRecord:
            s = spec_.update_by_merge       ? Merge(Op::kMerge)
                : options_.write_all_fields ? Put(Op::kUpdate)
                                            : GetPut(Op::kUpdate);
            break;
          case kReadModifyWriteRecord:
            s = spec_.update_by_merge ? Merge(Op::kReadModifyWrite)
                                      : GetPut(Op::kReadModifyWrite);
            break;
          case kMergeRecord:
            s = Merge(Op::kMerge);
            break;
          case kPutRecord:
            s = Put(Op::kUpdate);
            break;
          case kInsertRecord:
            s = Insert();
            break;
          case kReadMissing:
            s = ReadMissing();
            break;
          default:
            s = Scan();
            break;
        }
        if (!s.ok()) {
          host_->Fail(s, kActionNames[action]);
          break;
        }
      }
      workload_->missing_.fetch_add(missing_, std::memory_order_relaxed);
      workload_->scanned_.fetch_add(scanned_, std::memory_order_relaxed);
    }

    // Puts once, sets *writing, and puts as long as another thread scans.
    void WriteWhile(const std::atomic<int>& scanners,
                    std::atomic<bool>* writing) {
      Status s = Put(Op::kUpdate);
      writing->store(true);
      writing->notify_all();
      while (s.ok() && scanners.load(std::memory_order_relaxed) > 0 &&
             !host_->Failed()) {
        s = Put(Op::kUpdate);
      }
      if (!s.ok()) {
        host_->Fail(s, "put");
      }
    }

   private:
    static std::vector<std::pair<size_t, uint32_t>> Shares(const Mix& mix) {
      std::vector<std::pair<size_t, uint32_t>> shares;
      uint32_t left = kPartsPerMillion;
      size_t largest = 0;
      for (size_t action = 0; action < kNumActions; ++action) {
        const uint32_t share = static_cast<uint32_t>(
            std::lround(mix[action] / 100 * kPartsPerMillion));
        shares.emplace_back(action, share);
        left -= share;
        largest = mix[action] > mix[largest] ? action : largest;
      }
      // Corrects the sum for rounding errors.
      shares[largest].second += left;
      return shares;
    }

    uint64_t NextRecord() {
      const uint64_t record = chooser_->Next(&rnd_, inserts_->Visible());
      shape_.Key(record, &key_);
      return record;
    }

    // Returns the status of a read that did not find its record. If a record
    // that was loaded is not found, --ycsb_records is wrong or a write was
    // lost; in both cases the results would be meaningless.
    Status Missing(uint64_t record) {
      // A run that was killed may have left gaps beyond the load.
      const bool is_of_earlier_run =
          record >= options_.records && record < workload_->existing_;
      if (options_.allow_missing || is_of_earlier_run) {
        ++missing_;
        return Status::OK();
      }
      return Status::NotFound(
          "record " + std::to_string(record) + " is missing",
          "was the database loaded with these --ycsb_records, or "
          "deleterandomrange run on it (--ycsb_allow_missing)?");
    }

    Status Get(uint64_t record) {
      value_.Reset();
      Status s = db_->Get(host_->read_options(), cf_, key_, &value_);
      if (s.ok() && options_.verify_reads) {
        s = shape_.Check(record, value_, options_.allow_missing);
      }
      return s;
    }

    Status Read() {
      const uint64_t record = NextRecord();
      host_->Throttle(/*write=*/false, 1);
      host_->Begin();
      Status s = Get(record);
      if (!s.ok() && !s.IsNotFound()) {
        return s;
      }
      host_->End(Op::kRead, key_.size() + value_.size());
      return s.ok() ? s : Missing(record);
    }

    // Reads a key between the others that was never written.
    Status ReadMissing() {
      const uint64_t record = kMostRecords + rnd_.Uniform(kMostRecords);
      shape_.Key(record, &key_);
      host_->Throttle(/*write=*/false, 1);
      host_->Begin();
      Status s = Get(record);
      if (s.ok()) {
        return Status::Corruption("a key that was never written was found");
      }
      if (s.IsNotFound()) {
        host_->End(Op::kRead, key_.size());
        s = Status::OK();
      }
      return s;
    }

    Status GetPut(Op op) {
      const uint64_t record = NextRecord();
      host_->Throttle(/*write=*/false, 1);
      host_->Throttle(
          /*write=*/true,
          static_cast<uint64_t>(shape_.MeanKeySize() + shape_.MeanValueSize()));
      host_->Begin();
      Status s = Get(record);
      if (s.ok()) {
        buffer_.assign(value_.data(), value_.size());
        s = shape_.Update(record, &rnd_, &buffer_);
        if (s.ok()) {
          s = db_->Put(host_->write_options(), cf_, key_, buffer_);
        }
      } else if (s.IsNotFound()) {
        buffer_.clear();
        s = Missing(record);
      }
      if (s.ok()) {
        host_->End(op, 2 * (key_.size() + buffer_.size()));
      }
      return s;
    }

    Status Merge(Op op) {
      const uint64_t record = NextRecord();
      shape_.Delta(record, &rnd_, &buffer_);
      return Write(op, /*merge=*/true);
    }

    // Writes buffer_ to key_.
    Status Write(Op op, bool merge) {
      const uint64_t bytes = key_.size() + buffer_.size();
      host_->Throttle(/*write=*/true, bytes);
      host_->Begin();
      Status s = merge ? db_->Merge(host_->write_options(), cf_, key_, buffer_)
                       : db_->Put(host_->write_options(), cf_, key_, buffer_);
      if (s.ok()) {
        host_->End(op, bytes);
      }
      return s;
    }

    Status Put(Op op) {
      shape_.Value(NextRecord(), &rnd_, &buffer_);
      return Write(op, /*merge=*/false);
    }

    Status Insert() {
      const uint64_t record = inserts_->Start();
      shape_.Key(record, &key_);
      shape_.Value(record, &rnd_, &buffer_);
      Status s = Write(Op::kInsert, /*merge=*/false);
      if (s.ok()) {
        inserts_->Done(record);
      }
      return s;
    }

    // Sets key_ to the key at which the next scan begins. Returns its position
    // in the key space.
    uint64_t NextScanStart() {
      if (workload_->scan_starts_ == nullptr) {
        return shape_.PositionOf(NextRecord());
      }
      const uint64_t position = workload_->scan_starts_->Next(&rnd_);
      shape_.KeyAt(position, &key_);
      return position;
    }

    Status Scan() {
      const uint64_t position = NextScanStart();
      const uint64_t length = spec_.scan_length_fixed
                                  ? spec_.max_scan
                                  : 1 + rnd_.Uniform(spec_.max_scan);
      ReadOptions read_options = host_->read_options();
      read_options.fill_cache = options_.scan_fill_cache;
      read_options.pin_data = options_.scan_pin_data;
      // Values are loaded when they are requested, so never in this case.
      read_options.allow_unprepared_value = options_.scan_keys_only;
      Slice bound;
      if (options_.scan_bounded) {
        SetBound(position, length, &bound, &read_options);
      }
      host_->Throttle(/*write=*/false, length);
      host_->Begin();
      std::unique_ptr<Iterator> iter(db_->NewIterator(read_options, cf_));
      uint64_t keys = 0;
      uint64_t bytes = 0;
      if (options_.scan_reverse) {
        iter->SeekForPrev(key_);
      } else {
        iter->Seek(key_);
      }
      while (iter->Valid()) {
        bytes += iter->key().size();
        if (!options_.scan_keys_only) {
          bytes += iter->value().size();
          if (options_.verify_reads) {
            Status s = CheckEntry(iter->key(), iter->value());
            if (!s.ok()) {
              return s;
            }
          }
        }
        if (++keys == length) {
          break;
        }
        if (options_.scan_reverse) {
          iter->Prev();
        } else {
          iter->Next();
        }
      }
      Status s = iter->status();
      if (s.ok()) {
        iter.reset();  // its cost belongs to the scan
        host_->End(Op::kScan, bytes);
        scanned_ += keys;
      }
      return s;
    }

    // Sets an upper bound for the scan, so that the iterator need not read
    // beyond it. The bound is where `length` keys are expected to end, by the
    // density of the key space.
    // position: of the key at which the scan begins.
    void SetBound(uint64_t position, uint64_t length, Slice* bound,
                  ReadOptions* read_options) {
      const double width = std::ldexp(static_cast<double>(length), 64) /
                           static_cast<double>(inserts_->Visible());
      const double room =
          options_.scan_reverse
              ? static_cast<double>(position)
              : std::ldexp(1.0, 64) - static_cast<double>(position);
      if (width >= room) {
        return;
      }
      const uint64_t distance = static_cast<uint64_t>(width);
      shape_.KeyAt(
          options_.scan_reverse ? position - distance : position + distance,
          &bound_key_);
      *bound = bound_key_;
      if (options_.scan_reverse) {
        read_options->iterate_lower_bound = bound;
      } else {
        read_options->iterate_upper_bound = bound;
      }
    }

    Status CheckEntry(const Slice& key, const Slice& value) const {
      uint64_t record = 0;
      if (!shape_.RecordOf(key, &record)) {
        return Status::Corruption("a key that no record has",
                                  key.ToString(/*hex=*/true));
      }
      return shape_.Check(record, value, options_.allow_missing);
    }

    MixWorkload* const workload_;
    const Spec& spec_;
    const WorkloadOptions& options_;
    const RecordShape& shape_;
    InsertCounter* const inserts_;
    WorkloadHost* const host_;
    DB* const db_;
    ColumnFamilyHandle* const cf_;
    Random64 rnd_;
    DiscreteChooser<size_t> actions_;
    const std::unique_ptr<KeyChooser> chooser_;
    std::string key_;
    std::string buffer_;
    std::string bound_key_;
    PinnableSlice value_;
    uint64_t missing_ = 0;
    uint64_t scanned_ = 0;
  };

  static Status ParseDistribution(const std::string& text,
                                  Distribution* distribution) {
    if (text.empty()) {
      return Status::OK();
    }
    if (text == "uniform") {
      *distribution = Distribution::kUniform;
    } else if (text == "zipfian") {
      *distribution = Distribution::kZipfian;
    } else if (text == "latest") {
      *distribution = Distribution::kLatest;
    } else {
      return Status::InvalidArgument(
          "--ycsb_distribution",
          "'" + text + "' is not one of uniform, zipfian, latest");
    }
    return Status::OK();
  }

  Spec spec_;
  const std::unique_ptr<RecordShape> shape_;
  const WorkloadOptions options_;
  uint64_t existing_ = 0;  // records when the run began
  std::unique_ptr<InsertCounter> inserts_;
  std::unique_ptr<MovingPart> scan_starts_;  // set if scans stay in parts
  std::atomic<int> scanners_{0};  // running scan threads of scanwhilewriting
  std::atomic<bool> writing_{false};  // its writer has put once
  std::atomic<uint64_t> missing_{0};
  std::atomic<uint64_t> scanned_{0};
};

// Sets *spec to that of a workload by name; returns false if there is none.
bool SpecOf(const std::string& name, const WorkloadOptions& options,
            MixWorkload::Spec* spec) {
  Mix& mix = spec->mix;
  spec->max_scan = options.ycsb_scan_length;
  if (name == "ycsba" || name == "ycsbam") {
    mix[kReadRecord] = 50;
    mix[kUpdateRecord] = 50;
  } else if (name == "ycsbb" || name == "ycsbbm") {
    mix[kReadRecord] = 95;
    mix[kUpdateRecord] = 5;
  } else if (name == "ycsbc") {
    mix[kReadRecord] = 100;
  } else if (name == "ycsbd") {
    mix[kReadRecord] = 95;
    mix[kInsertRecord] = 5;
    spec->distribution = Distribution::kLatest;
  } else if (name == "ycsbe") {
    mix[kScanRecords] = 95;
    mix[kInsertRecord] = 5;
  } else if (name == "ycsbf" || name == "ycsbfm") {
    mix[kReadRecord] = 50;
    mix[kReadModifyWriteRecord] = 50;
  } else if (name == "ycsbmix") {
    spec->status = ParseMix(options.mix, &mix);
    spec->update_by_merge = false;
  } else if (name == "rmw") {
    if (options.rmw_read_ratio < 0 || options.rmw_read_ratio > 100) {
      spec->status = Status::InvalidArgument("--rmw_read_ratio",
                                             "must lie between 0 and 100");
    }
    mix[kReadRecord] = options.rmw_read_ratio;
    mix[kReadModifyWriteRecord] = 100 - options.rmw_read_ratio;
    spec->update_by_merge = options.rmw_mode == RmwMode::kMerge;
  } else if (name == "up2x") {
    mix[kReadRecord] = 7.46;
    mix[kMergeRecord] = 92.53;
    mix[kPutRecord] = 0.01;
  } else if (name == "randomscan" || name == "scanwhilewriting") {
    spec->has_writer = name == "scanwhilewriting";
    mix[kScanRecords] = 100;
    spec->distribution = Distribution::kUniform;
    spec->max_scan = options.scan_length;
    spec->scan_length_fixed = true;
  } else {
    return false;
  }
  if (name.size() == 6 && name.back() == 'm') {
    spec->update_by_merge = true;
  }
  return true;
}

}  // namespace

std::unique_ptr<Workload> NewMixWorkload(const std::string& name,
                                         const WorkloadOptions& options) {
  MixWorkload::Spec spec;
  if (!SpecOf(name, options, &spec)) {
    return nullptr;
  }
  return std::make_unique<MixWorkload>(
      std::move(spec),
      name == "up2x" ? NewUp2xShape(options) : NewYcsbShape(options), options);
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
