// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/verify_workload.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "tools/workloads/record_shape.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

class VerifyWorkload : public Workload {
 public:
  explicit VerifyWorkload(const WorkloadOptions& options) : options_(options) {}

  Status Prepare(DB* db, int /*threads*/) override {
    // The shape of the records is that of the first key.
    std::unique_ptr<Iterator> iter(db->NewIterator(ReadOptions()));
    iter->SeekToFirst();
    shape_ = NewShapeOfKeys(options_, iter.get());
    if (shape_ == nullptr) {
      return Status::Corruption(
          "the first keys are not those of one workload's records");
    }
    found_ = missing_ = scanned_loaded_ = bytes_ = 0;
    Status s = iter->status();
    return s.ok() ? shape_->Validate() : s;
  }

  void Run(WorkloadHost* host) override {
    Status s = CheckByGet(host);
    if (s.ok()) {
      s = CheckByIterator(host);
    }
    if (!s.ok()) {
      host->Fail(s, "verification failed");
    }
  }

  std::string Message() const override {
    return "(" + std::to_string(found_.load()) + " records checked by get, " +
           std::to_string(missing_.load()) + " missing)";
  }

  Status Finish() override {
    // Each thread's iterator has scanned its part of the same database, so the
    // sum is the number of records that Get and MultiGet have found, and of
    // those that were inserted after the load.
    if (scanned_loaded_.load() != found_.load()) {
      return Status::Corruption("iterators and gets disagree",
                                std::to_string(scanned_loaded_.load()) +
                                    " and " + std::to_string(found_.load()) +
                                    " of the loaded records");
    }
    return Status::OK();
  }

  uint64_t LogicalBytes() const override { return bytes_.load(); }

 private:
  static constexpr size_t kBatch = 16;

  Status Check(uint64_t record, const Status& found, const Slice& value) {
    if (found.IsNotFound() && options_.allow_missing) {
      missing_.fetch_add(1, std::memory_order_relaxed);
      return Status::OK();
    }
    if (found.IsNotFound()) {
      return Status::Corruption(
          "record " + std::to_string(record) + " is missing",
          "after deleterandomrange set --ycsb_allow_missing");
    }
    if (!found.ok()) {
      return found;
    }
    found_.fetch_add(1, std::memory_order_relaxed);
    return shape_->Check(record, value, options_.allow_missing);
  }

  // Checks every other batch by MultiGet, the rest by Get.
  Status CheckByGet(WorkloadHost* host) {
    const uint64_t threads = static_cast<uint64_t>(host->threads());
    const uint64_t stride = threads * kBatch;
    bool multi = false;
    for (uint64_t first = static_cast<uint64_t>(host->thread()) * kBatch;
         first < options_.records; first += stride) {
      if (host->Failed()) {
        return Status::OK();
      }
      const size_t count = static_cast<size_t>(
          std::min<uint64_t>(kBatch, options_.records - first));
      std::vector<std::string> keys(count);
      std::vector<Slice> slices(count);
      std::vector<PinnableSlice> values(count);
      std::vector<Status> statuses(count);
      for (size_t i = 0; i < count; ++i) {
        shape_->Key(first + i, &keys[i]);
        slices[i] = keys[i];
      }
      host->Begin();
      if (multi) {
        host->db()->MultiGet(host->read_options(), host->column_family(), count,
                             slices.data(), values.data(), statuses.data());
      } else {
        for (size_t i = 0; i < count; ++i) {
          statuses[i] =
              host->db()->Get(host->read_options(), host->column_family(),
                              slices[i], &values[i]);
        }
      }
      Status s;
      uint64_t bytes = 0;
      for (size_t i = 0; i < count && s.ok(); ++i) {
        s = Check(first + i, statuses[i], values[i]);
        bytes += statuses[i].ok() ? keys[i].size() + values[i].size() : 0;
      }
      if (!s.ok()) {
        return s;
      }
      host->End(Op::kRead, bytes);
      multi = !multi;
    }
    return Status::OK();
  }

  // Checks all records in the bounds of read_options, in one direction.
  // count: receives their number.
  Status CheckDirection(WorkloadHost* host, const ReadOptions& read_options,
                        bool backward, uint64_t* count) {
    std::unique_ptr<Iterator> iter(
        host->db()->NewIterator(read_options, host->column_family()));
    std::string previous;
    uint64_t loaded = 0;
    if (backward) {
      iter->SeekToLast();
    } else {
      iter->SeekToFirst();
    }
    while (iter->Valid()) {
      host->Begin();
      uint64_t record = 0;
      if (!shape_->RecordOf(iter->key(), &record)) {
        return Status::Corruption("a key that no record has",
                                  iter->key().ToString(/*hex=*/true));
      }
      Status s = shape_->Check(record, iter->value(), options_.allow_missing);
      if (!s.ok()) {
        return s;
      }
      if (*count > 0 && (iter->key().compare(previous) > 0) == backward) {
        return Status::Corruption("keys out of order at record",
                                  std::to_string(record));
      }
      previous.assign(iter->key().data(), iter->key().size());
      ++*count;
      loaded += record < options_.records ? 1 : 0;
      const uint64_t bytes = iter->key().size() + iter->value().size();
      if (!backward) {
        bytes_.fetch_add(bytes, std::memory_order_relaxed);
      }
      host->End(Op::kScan, bytes);
      if (host->Failed()) {
        return Status::OK();
      }
      if (backward) {
        iter->Prev();
      } else {
        iter->Next();
      }
    }
    if (iter->status().ok() && !backward) {
      scanned_loaded_.fetch_add(loaded, std::memory_order_relaxed);
    }
    return iter->status();
  }

  // Each thread scans its part of the key space, forward and backward.
  Status CheckByIterator(WorkloadHost* host) {
    const uint64_t threads = static_cast<uint64_t>(host->threads());
    const uint64_t thread = static_cast<uint64_t>(host->thread());
    const uint64_t part = ~uint64_t{0} / threads;
    std::string lower_key;
    std::string upper_key;
    Slice lower;
    Slice upper;
    ReadOptions read_options = host->read_options();
    read_options.total_order_seek = true;
    read_options.fill_cache = false;
    if (thread > 0) {
      shape_->KeyAt(thread * part, &lower_key);
      lower = lower_key;
      read_options.iterate_lower_bound = &lower;
    }
    if (thread + 1 < threads) {
      shape_->KeyAt((thread + 1) * part, &upper_key);
      upper = upper_key;
      read_options.iterate_upper_bound = &upper;
    }
    uint64_t counts[2] = {0, 0};
    for (const bool backward : {false, true}) {
      Status s =
          CheckDirection(host, read_options, backward, &counts[backward]);
      if (!s.ok() || host->Failed()) {
        return s;
      }
    }
    if (counts[0] != counts[1]) {
      return Status::Corruption("forward and backward scans disagree",
                                std::to_string(counts[0]) + " and " +
                                    std::to_string(counts[1]) + " keys");
    }
    return Status::OK();
  }

  const WorkloadOptions options_;
  std::unique_ptr<RecordShape> shape_;
  std::atomic<uint64_t> found_{0};
  std::atomic<uint64_t> missing_{0};
  std::atomic<uint64_t> scanned_loaded_{0};
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace

std::unique_ptr<Workload> NewVerifyWorkload(const std::string& name,
                                            const WorkloadOptions& options) {
  if (name == "verify") {
    return std::make_unique<VerifyWorkload>(options);
  }
  return nullptr;
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
