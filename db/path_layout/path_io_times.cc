//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_io_times.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <utility>

#include "db/path_layout/open_paths.h"
#include "db/path_layout/path_job_stats.h"
#include "logging/logging.h"
#include "rocksdb/system_clock.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* NameOf(PathIo io) {
  switch (io) {
    case PathIo::kRead:
      return "read";
    case PathIo::kWrite:
      return "write";
    default:
      return "sync";
  }
}

}  // namespace

// A file that a job writes.
class PathIoTimes::MeasuredFile : public FSWritableFileOwnerWrapper {
 public:
  MeasuredFile(std::unique_ptr<FSWritableFile>&& file, std::string name,
               uint32_t path_id, PathIoTimes* times)
      : FSWritableFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        path_id_(path_id),
        times_(times) {}

  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    const Timer timer(this, PathIo::kWrite);
    return target()->Append(data, options, dbg);
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const DataVerificationInfo& verification_info,
                  IODebugContext* dbg) override {
    const Timer timer(this, PathIo::kWrite);
    return target()->Append(data, options, verification_info, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    const Timer timer(this, PathIo::kWrite);
    return target()->PositionedAppend(data, offset, options, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            const DataVerificationInfo& verification_info,
                            IODebugContext* dbg) override {
    const Timer timer(this, PathIo::kWrite);
    return target()->PositionedAppend(data, offset, options, verification_info,
                                      dbg);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    const Timer timer(this, PathIo::kSync);
    return target()->Sync(options, dbg);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    const Timer timer(this, PathIo::kSync);
    return target()->Fsync(options, dbg);
  }
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options,
                     IODebugContext* dbg) override {
    const Timer timer(this, PathIo::kSync);
    return target()->RangeSync(offset, bytes, options, dbg);
  }

 private:
  // Measures the operation during which it lives.
  class Timer {
   public:
    Timer(MeasuredFile* file, PathIo io)
        : file_(file), io_(io), begin_(file->times_->clock()->NowMicros()) {}
    ~Timer() {
      const uint64_t end = file_->times_->clock()->NowMicros();
      file_->times_->Add(io_, file_->path_id_, end > begin_ ? end - begin_ : 0,
                         file_->name_);
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    MeasuredFile* const file_;
    const PathIo io_;
    const uint64_t begin_;
  };

  const std::string name_;
  const uint32_t path_id_;
  PathIoTimes* const times_;
};

PathIoTimes::PathIoTimes(const std::vector<DbPath>& paths, SystemClock* clock,
                         Logger* logger)
    : clock_(clock), logger_(logger) {
  for (const DbPath& path : paths) {
    std::string directory = path.path;
    while (directory.size() > 1 && directory.back() == '/') {
      directory.pop_back();
    }
    directories_.push_back(std::move(directory));
  }
}

void PathIoTimes::Add(PathIo io, uint32_t path_id, uint64_t micros,
                      const std::string& file_name) {
  assert(path_id < kMaxPaths);
  TEST_SYNC_POINT_CALLBACK("PathIoTimes::Add:Micros", &micros);
  Counter& counter = counters_[static_cast<size_t>(io)][path_id];
  counter.operations.fetch_add(1, std::memory_order_relaxed);
  counter.micros.fetch_add(micros, std::memory_order_relaxed);
  uint64_t max = counter.max_micros.load(std::memory_order_relaxed);
  while (micros > max && !counter.max_micros.compare_exchange_weak(
                             max, micros, std::memory_order_relaxed)) {
  }
  if (micros >= kSlowMicros) {
    NoteSlow(io, path_id, micros, file_name);
  }
}

void PathIoTimes::NoteSlow(PathIo io, uint32_t path_id, uint64_t micros,
                           const std::string& file_name) {
  Slowness& slowness = slowness_[path_id];
  const uint64_t count =
      slowness.count.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t now = clock_->NowMicros();
  uint64_t logged = slowness.logged_micros.load(std::memory_order_relaxed);
  if ((logged != 0 && now < logged + kLogIntervalMicros) ||
      !slowness.logged_micros.compare_exchange_strong(
          logged, now, std::memory_order_relaxed)) {
    return;
  }
  const uint64_t before =
      slowness.logged_count.exchange(count, std::memory_order_relaxed);
  ROCKS_LOG_WARN(logger_,
                 "The device of path id %u is slow: a %s of %s by a background "
                 "job took %" PRIu64
                 " ms. Operations of a second or longer "
                 "since the last such line: %" PRIu64,
                 path_id, NameOf(io), file_name.c_str(), micros / 1000,
                 count > before ? count - before : 1);
}

PathIoTimes::Counts PathIoTimes::Get(PathIo io, uint32_t path_id) const {
  const Counter& counter =
      counters_[static_cast<size_t>(io)][path_id % kMaxPaths];
  Counts counts;
  counts.operations = counter.operations.load(std::memory_order_relaxed);
  counts.micros = counter.micros.load(std::memory_order_relaxed);
  counts.max_micros = counter.max_micros.load(std::memory_order_relaxed);
  return counts;
}

uint64_t PathIoTimes::NumSlow(uint32_t path_id) const {
  return slowness_[path_id % kMaxPaths].count.load(std::memory_order_relaxed);
}

void PathIoTimes::Measure(const std::string& file_name,
                          std::unique_ptr<FSWritableFile>* file) {
  size_t end = file_name.rfind('/');
  if (end == std::string::npos || !IsFileOfPath(file_name.substr(end + 1))) {
    return;
  }
  while (end > 1 && file_name[end - 1] == '/') {
    --end;
  }
  for (uint32_t i = 0; i < directories_.size() && i < kMaxPaths; ++i) {
    if (file_name.compare(0, end, directories_[i]) == 0) {
      *file =
          std::make_unique<MeasuredFile>(std::move(*file), file_name, i, this);
      return;
    }
  }
}

void MeasurePathFile(const std::string& file_name,
                     std::unique_ptr<FSWritableFile>* file) {
  PathIoTimes* const times = PathJobScope::CurrentTimes();
  if (times != nullptr) {
    times->Measure(file_name, file);
  }
}

}  // namespace ROCKSDB_NAMESPACE
