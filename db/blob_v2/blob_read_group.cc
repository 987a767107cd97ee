//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_read_group.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <numeric>
#include <optional>
#include <utility>

#include "db/blob/blob_file_reader.h"
#include "db/blob/blob_read_request.h"
#include "db/blob/blob_source.h"
#include "db/blob_v2/blob_record_reader.h"
#include "db/blob_v2/read_ahead_gauge.h"
#include "db/path_layout/path_job_stats.h"
#include "file/file_util.h"
#include "file/random_access_file_reader.h"
#include "monitoring/perf_context_imp.h"
#include "monitoring/statistics_impl.h"
#include "options/cf_options.h"
#include "rocksdb/system_clock.h"
#include "rocksdb/threadpool.h"
#include "table/multiget_context.h"
#include "test_util/sync_point.h"
#include "util/autovector.h"
#include "util/mutexlock.h"
#include "util/stop_watch.h"
#include "util/strata/io_uring_batch.h"

namespace ROCKSDB_NAMESPACE {

std::vector<std::shared_ptr<BlobReadGroup>> BlobReadGroup::Divide(
    std::vector<Item>&& items, const ReadOptions& read_options,
    const ImmutableOptions& ioptions, BlobSource* source,
    std::vector<size_t>* group_of, std::vector<size_t>* index_of) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return items[a].file_number != items[b].file_number
               ? items[a].file_number < items[b].file_number
               : items[a].offset < items[b].offset;
  });
  group_of->resize(items.size());
  index_of->resize(items.size());
  std::vector<std::shared_ptr<BlobReadGroup>> groups;
  uint64_t file_number = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  for (size_t i : order) {
    Item& item = items[i];
    if (groups.empty() || item.file_number != file_number ||
        item.offset > end + kMaxGap ||
        item.offset + item.size > begin + kMaxSpan ||
        groups.back()->items_.size() == MultiGetContext::MAX_BATCH_SIZE) {
      groups.push_back(
          std::make_shared<BlobReadGroup>(read_options, ioptions, source));
      file_number = item.file_number;
      begin = item.offset;
    }
    end = item.offset + item.size;
    (*group_of)[i] = groups.size() - 1;
    ++groups.back()->needed_;
    (*index_of)[i] = groups.back()->items_.size();
    groups.back()->items_.push_back(std::move(item));
  }
  // Order the groups by their first items.
  std::vector<std::shared_ptr<BlobReadGroup>> ordered;
  std::vector<size_t> place(groups.size());
  for (size_t& group : *group_of) {
    if (groups[group] != nullptr) {
      place[group] = ordered.size();
      ordered.push_back(std::move(groups[group]));
    }
    group = place[group];
  }
  for (const auto& group : ordered) {
    group->CopyNames();
  }
  return ordered;
}

BlobReadGroup::BlobReadGroup(const ReadOptions& read_options,
                             const ImmutableOptions& ioptions,
                             BlobSource* source)
    : read_options_(read_options),
      ioptions_(ioptions),
      source_(source),
      cv_(&mutex_) {}

BlobReadGroup::~BlobReadGroup() { FreeBytes(); }

void BlobReadGroup::CopyNames() {
  size_t size = 0;
  for (const Item& item : items_) {
    size += item.record_name.size();
  }
  names_.reset(new char[size]);
  char* to = names_.get();
  for (Item& item : items_) {
    const Slice from = item.record_name;
    item.record_name = Slice(to, from.size());
    to = std::copy(from.data(), from.data() + from.size(), to);
  }
}

bool BlobReadGroup::Claim() {
  MutexLock lock(&mutex_);
  if (state_ != State::kQueued) {
    return false;
  }
  state_ = State::kRunning;
  return true;
}

bool BlobReadGroup::TEST_HasBegun() {
  MutexLock lock(&mutex_);
  return state_ != State::kQueued;
}

void BlobReadGroup::SetState(State state) {
  MutexLock lock(&mutex_);
  state_ = state;
  cv_.SignalAll();
}

bool BlobReadGroup::Run() {
  if (!Claim()) {
    return false;
  }
  Read();
  SetState(State::kDone);
  return true;
}

bool BlobReadGroup::RunAndWait() {
  TEST_SYNC_POINT_CALLBACK("BlobReadGroup::RunAndWait", this);
  bool hold = false;
  {
    MutexLock lock(&mutex_);
    std::swap(hold, is_to_hold_);
  }
  if (hold && budget_ != nullptr) {
    budget_->HoldOne(shared_from_this(), scan_);
  }
  bool has_read = false;
  for (;;) {
    has_read |= Run();
    MutexLock lock(&mutex_);
    while (state_ == State::kRunning) {
      cv_.Wait();
    }
    if (state_ == State::kDone) {
      return has_read;
    }
  }
}

bool BlobReadGroup::IsCached() const {
  return std::all_of(items_.begin(), items_.end(), [this](const Item& item) {
    return source_->IsCached(item.file_number, item.offset);
  });
}

bool BlobReadGroup::AllowsAsync(const ReadOptions& read_options,
                                const ImmutableOptions& ioptions) {
  return read_options.read_tier == kReadAllTier &&
         read_options.rate_limiter_priority == Env::IO_TOTAL &&
         !ioptions.allow_mmap_reads &&
         CheckFSFeatureSupport(ioptions.fs.get(), FSSupportedOps::kAsyncIO);
}

bool BlobReadGroup::FindRange() {
  const Item& first = items_.front();
  const Item& last = items_.back();
  const uint64_t header =
      reader_.GetValue()->HeaderSize(read_options_, first.record_name);
  const uint64_t file_size = reader_.GetValue()->GetFileSize();
  if (first.offset < header || last.size > file_size ||
      last.offset > file_size - last.size) {
    return false;
  }
  begin_ = first.offset - header;
  length_ = last.offset + last.size - begin_;
  return true;
}

IOStatus BlobReadGroup::ReadAsync() {
  RandomAccessFileReader* const file = reader_.GetValue()->file_reader();
  IOOptions io_options;
  IODebugContext dbg;
  IOStatus s = file->PrepareIOOptions(read_options_, io_options, &dbg);
  if (!s.ok()) {
    return s;
  }
  FSReadRequest request;
  request.offset = begin_;
  request.len = length_;
  assert(buffer_ == nullptr);
  buffer_ = new Buffer;
  AlignedBufferAllocationContext direct_io{&buffer_->direct_io};
  if (!file->use_direct_io()) {
    buffer_->bytes.reset(new char[length_]);
    request.scratch = buffer_->bytes.get();
  }
  s = file->ReadAsync(
      request, io_options,
      [this](FSReadRequest& done, void* /*arg*/) { OnRead(done); },
      /*cb_arg=*/nullptr, &io_handle_, &delete_io_handle_,
      /*aligned_buf=*/nullptr, &dbg,
      file->use_direct_io() ? &direct_io : nullptr);
  request.status.PermitUncheckedError();
  return s;
}

void BlobReadGroup::OnRead(const FSReadRequest& request) {
  has_ended_ = true;
  // A file system may return its own memory, whose lifetime is unknown. Such a
  // result is not used.
  if (request.status.ok() && request.result.size() == length_ &&
      request.result.data() == request.scratch) {
    bytes_ = request.result;
  }
  IGNORE_STATUS_IF_ERROR(request.status);  // it is read again
  request.status.PermitUncheckedError();
}

BlobReadGroup::Begun BlobReadGroup::BeginAsync() {
  if (!Claim()) {
    return Begun::kNo;
  }
  TEST_SYNC_POINT("BlobReadGroup::BeginAsync");
  if (IsCached()) {
    is_whole_ = true;
    SetState(State::kDone);
    return Begun::kNo;
  }
  Status s = source_->GetBlobFileReader(read_options_,
                                        items_.front().file_number, &reader_);
  if (s.ok() && FindRange()) {
    s = ReadAsync();
    if (s.ok()) {
      if (!has_ended_) {
        return Begun::kYes;
      }
      FinishAsync();
      return Begun::kRead;
    }
  }
  IGNORE_STATUS_IF_ERROR(s);  // it is read again synchronously
  s.PermitUncheckedError();
  FreeBytes();
  SetState(State::kQueued);
  return Begun::kFailed;
}

void BlobReadGroup::EndAsync() {
  if (!has_ended_) {
    StopWatch sw(ioptions_.clock, ioptions_.stats, POLL_WAIT_MICROS);
    std::vector<void*> handles{io_handle_};
    IOStatus s = ioptions_.fs->Poll(handles, /*min_completions=*/1);
    if (!has_ended_) {
      // The file system must not write to the buffer after it was freed.
      s = ioptions_.fs->AbortIO(handles);
    }
    IGNORE_STATUS_IF_ERROR(s);  // missing bytes are read again
    s.PermitUncheckedError();
  }
  FinishAsync();
}

void BlobReadGroup::FinishAsync() {
  if (io_handle_ != nullptr && delete_io_handle_ != nullptr) {
    delete_io_handle_(io_handle_);
    io_handle_ = nullptr;
  }
  CountRead();
  is_whole_ = true;
  SetState(State::kDone);
}

void BlobReadGroup::CountRead() const {
  RecordTick(ioptions_.stats, BLOB_DB_BLOB_FILE_BYTES_READ, bytes_.size());
  if (!bytes_.empty()) {
    PERF_COUNTER_ADD(blob_read_count, items_.size());
    PERF_COUNTER_ADD(blob_read_byte, bytes_.size());
  }
}

Slice BlobReadGroup::RecordOf(const Item& item) const {
  if (bytes_.empty() ||
      item.compression != reader_.GetValue()->GetCompressionType()) {
    return Slice();
  }
  const uint64_t header =
      reader_.GetValue()->HeaderSize(read_options_, item.record_name);
  if (item.offset < begin_ + header ||
      item.offset + item.size > begin_ + length_) {
    return Slice();
  }
  return Slice(bytes_.data() + (item.offset - header - begin_),
               header + item.size);
}

uint64_t BlobReadGroup::Span() const {
  return items_.empty() ? 0
                        : items_.back().offset + items_.back().size -
                              items_.front().offset;
}

bool BlobReadGroup::GiveBack() {
  MutexLock lock(&mutex_);
  if (state_ != State::kDone || items_.empty()) {
    return false;
  }
  FreeResults();
  FreeBytes();
  is_whole_ = false;
  has_ended_ = false;
  state_ = State::kQueued;
  is_to_hold_ = true;
  return true;
}

void BlobReadGroup::FreeResults() {
  for (Result& result : results_) {
    // The scan may end before it asks for the value that was read ahead.
    IGNORE_STATUS_IF_ERROR(result.status);
    result.status.PermitUncheckedError();
  }
  results_.clear();
}

void BlobReadGroup::FreeBytes() {
  bytes_.clear();
  if (buffer_ != nullptr) {
    Buffer::Unref(buffer_, nullptr);
    buffer_ = nullptr;
  }
  reader_.Reset();
}

Status BlobReadGroup::Take(size_t index, PinnableSlice* value) {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (state_ == State::kDone) {
        state_ = State::kInUse;
        break;
      }
    }
    RunAndWait();  // not read yet, or the results were freed
  }
  Status s = TakeRead(index, value);
  SetState(State::kDone);
  return s;
}

bool BlobReadGroup::ShareRead(const Item& item, const Slice& record,
                              PinnableSlice* value) {
  if (ioptions_.blob_cache != nullptr || item.compression != kNoCompression ||
      !BlobRecordReader::Verify(record, item.record_name, item.size,
                                read_options_.verify_checksums)
           .ok()) {
    return false;
  }
  buffer_->refs.fetch_add(1, std::memory_order_relaxed);
  value->Reset();
  value->PinSlice(Slice(record.data() + record.size() - item.size, item.size),
                  &Buffer::Unref, buffer_, nullptr);
  return true;
}

Status BlobReadGroup::TakeRead(size_t index, PinnableSlice* value) {
  if (!is_whole_) {
    Result& result = results_[index];
    if (result.status.ok()) {
      *value = std::move(result.value);
    }
    return std::move(result.status);
  }
  const Item& item = items_[index];
  const Slice record = RecordOf(item);
  if (!record.empty() &&
      (ShareRead(item, record, value) ||
       source_
           ->FinishGetBlob(read_options_, *reader_.GetValue(), item.record_name,
                           item.file_number, item.offset, item.size, record,
                           value)
           .ok())) {
    return Status::OK();
  }
  return source_->GetBlob(read_options_, item.record_name, item.file_number,
                          item.offset, /*file_size=*/0, item.size,
                          item.compression, /*prefetch_buffer=*/nullptr, value,
                          /*bytes_read=*/nullptr);
}

void BlobReadGroup::Cancel() {
  if (budget_ != nullptr) {
    budget_->Release(this);
  }
  {
    MutexLock lock(&mutex_);
    while (state_ == State::kRunning) {
      cv_.Wait();
    }
    state_ = State::kDone;
  }
  FreeResults();
  items_.clear();
  names_.reset();
  FreeBytes();
}

bool BlobReadGroup::ReadWhole() {
  // The thread that reads decompresses, too, see Read(). Cached values are not
  // read again.
  const bool is_compressed = std::any_of(
      items_.begin(), items_.end(),
      [](const Item& item) { return item.compression != kNoCompression; });
  if (items_.size() < 2 || is_compressed || ioptions_.blob_cache != nullptr ||
      ioptions_.allow_mmap_reads || read_options_.read_tier != kReadAllTier) {
    return false;
  }
  Status s = source_->GetBlobFileReader(read_options_,
                                        items_.front().file_number, &reader_);
  if (s.ok() && FindRange()) {
    RandomAccessFileReader* const file = reader_.GetValue()->file_reader();
    IOOptions io_options;
    IODebugContext dbg;
    s = file->PrepareIOOptions(read_options_, io_options, &dbg);
    if (s.ok()) {
      assert(buffer_ == nullptr);
      buffer_ = new Buffer;
      AlignedBufferAllocationContext direct_io{&buffer_->direct_io};
      if (!file->use_direct_io()) {
        buffer_->bytes.reset(new char[length_]);
      }
      Slice bytes;
      s = file->Read(io_options, begin_, length_, &bytes, buffer_->bytes.get(),
                     file->use_direct_io() ? &direct_io : nullptr, &dbg);
      // As in OnRead().
      const bool is_own =
          file->use_direct_io() || bytes.data() == buffer_->bytes.get();
      if (s.ok() && bytes.size() == length_ && is_own) {
        bytes_ = bytes;
        CountRead();
        is_whole_ = true;
        return true;
      }
    }
  }
  IGNORE_STATUS_IF_ERROR(s);  // the values are read again, one by one
  s.PermitUncheckedError();
  FreeBytes();
  return false;
}

void BlobReadGroup::Read() {
  TEST_SYNC_POINT("BlobReadGroup::Read");
  if (ReadWhole()) {
    return;
  }
  // The requests refer to the slices in this vector.
  std::vector<Slice> names(items_.size());
  autovector<BlobReadRequest> requests;
  results_.clear();
  results_.resize(items_.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    names[i] = item.record_name;
    requests.emplace_back(names[i], item.offset, item.size, item.compression,
                          &results_[i].value, &results_[i].status);
  }
  source_->MultiGetBlobFromOneFile(read_options_, items_.front().file_number,
                                   /*file_size=*/0, requests,
                                   /*bytes_read=*/nullptr);
  for ([[maybe_unused]] const Result& result : results_) {
    // The scan may end before it asks for the value that was read ahead.
    IGNORE_STATUS_IF_ERROR(result.status);
  }
}

ThreadPool* BlobReadPool::Threads() {
  static ThreadPool* const pool = NewThreadPool(1);
  return pool;
}

void BlobReadPool::SubmitJob(std::function<void()>&& job) {
  static port::Mutex* const mutex = new port::Mutex;
  // The number of threads never falls. Many scans would wait for each other if
  // all of them locked the mutex.
  static std::atomic<bool> is_full{false};
  ThreadPool* const pool = Threads();
  // What a thread of the pool reads counts for the job that has asked for it.
  pool->SubmitJob([job = std::move(job), path_job = PathJobScope::Current()] {
    const PathJobScope scope(path_job);
    job();
  });
  if (!is_full.load(std::memory_order_relaxed) && pool->GetQueueLen() > 0) {
    MutexLock lock(mutex);
    const int num_threads = pool->GetBackgroundThreads();
    if (num_threads < kMaxThreads) {
      pool->SetBackgroundThreads(num_threads + 1);
    } else {
      is_full.store(true, std::memory_order_relaxed);
    }
  }
}

void BlobReadPool::Submit(const std::shared_ptr<BlobReadGroup>& group) {
  SubmitJob([group] { group->Run(); });
}

void BlobReadPool::Submit(
    const std::vector<std::shared_ptr<BlobReadGroup>>& groups,
    const ReadOptions& read_options, const ImmutableOptions& ioptions) {
  if (groups.size() > 1 && BlobReadGroup::AllowsAsync(read_options, ioptions)) {
    for (size_t i = 0; i < groups.size(); i += kAsyncGroups) {
      const auto begin = groups.begin() + static_cast<ptrdiff_t>(i);
      const auto end = begin + static_cast<ptrdiff_t>(
                                   std::min(kAsyncGroups, groups.size() - i));
      SubmitJob([part = std::vector<std::shared_ptr<BlobReadGroup>>(
                     begin, end)] { RunAsync(part); });
    }
    return;
  }
  for (const auto& group : groups) {
    Submit(group);
  }
}

void BlobReadPool::RunAsync(
    const std::vector<std::shared_ptr<BlobReadGroup>>& groups) {
  std::vector<BlobReadGroup*> begun;
  begun.reserve(groups.size());
  bool is_async = true;
  std::optional<IOUringBatch> batch(std::in_place);
  for (const auto& group : groups) {
    if (!is_async) {
      Submit(group);
      continue;
    }
    switch (group->BeginAsync()) {
      case BlobReadGroup::Begun::kYes:
        begun.push_back(group.get());
        break;
      case BlobReadGroup::Begun::kNo:
        break;
      case BlobReadGroup::Begun::kFailed:
        is_async = false;
        Submit(group);
        break;
      case BlobReadGroup::Begun::kRead:
        is_async = false;
        break;
    }
  }
  batch.reset();
  // The file system reports the completions only to this thread.
  for (BlobReadGroup* const group : begun) {
    group->EndAsync();
  }
}

void BlobReadPool::RunAll(SystemClock* clock, size_t n,
                          const std::function<void(size_t)>& fn,
                          size_t max_threads) {
  size_t first = 0;
  while (first < n) {
    const uint64_t began = clock->NowMicros();
    fn(first++);
    uint64_t micros = clock->NowMicros() - began;
    TEST_SYNC_POINT_CALLBACK("BlobReadPool::RunAll:Micros", &micros);
    if (micros > ReadAheadGauge::kCachedMicros) {
      break;
    }
  }
  const size_t rest = n - first;
  if (rest < 2) {
    if (rest == 1) {
      fn(first);
    }
    return;
  }
  // A job of the pool may start after this function has returned. It then finds
  // nothing to do and does not access fn.
  struct State {
    explicit State(size_t next_index) : next(next_index), cv(&mutex) {}
    std::atomic<size_t> next;
    port::Mutex mutex;
    port::CondVar cv;
    size_t done = 0;
  };
  const auto state = std::make_shared<State>(first);
  const auto work = [state, n, &fn] {
    size_t done = 0;
    for (size_t i = state->next++; i < n; i = state->next++) {
      fn(i);
      ++done;
    }
    if (done > 0) {
      MutexLock lock(&state->mutex);
      state->done += done;
      state->cv.SignalAll();
    }
  };
  const size_t helpers = std::min(rest - 1, max_threads);
  for (size_t i = 0; i < helpers; ++i) {
    SubmitJob(std::function<void()>(work));
  }
  work();
  MutexLock lock(&state->mutex);
  while (state->done < rest) {
    state->cv.Wait();
  }
}

}  // namespace ROCKSDB_NAMESPACE
