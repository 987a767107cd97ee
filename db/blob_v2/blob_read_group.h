//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache/cache_helpers.h"
#include "db/address_map/blob_file_slot_table.h"
#include "db/blob_v2/read_ahead_budget.h"
#include "port/port.h"
#include "rocksdb/compression_type.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "util/aligned_buffer.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileReader;
class BlobSource;
class SystemClock;
class ThreadPool;
struct ImmutableOptions;

// A group of neighboring records of one blob file of an address map that are
// read together, in the background or, if the read was not started yet, by the
// thread that needs a value.
//
// There are two ways to read a group. Run() reads, verifies and decompresses
// the values; or it reads all of an uncompressed group at once, and leaves the
// rest to Take(), like the other way. With BeginAsync() and EndAsync(), one
// thread can have reads of many groups in progress: they only fetch the bytes,
// and Take() does the rest. If they fail, Take() reads the value again and
// returns the status of that read.
//
// If the results are not needed at once, their memory may be freed for a while
// (ReadAheadBudget). The group is then in the same state as before the read.
//
// Thread-safe, except that only the owner may call Take() and LetGo(), and only
// the thread that called BeginAsync() may call EndAsync().
class BlobReadGroup : public std::enable_shared_from_this<BlobReadGroup> {
 public:
  struct Item {
    Slice record_name;  // encoded MappedRecordName
    uint64_t file_number = 0;
    uint64_t offset = 0;  // bytes, position of the value in the file
    uint64_t size = 0;    // bytes, stored size of the value
    CompressionType compression = kNoCompression;
    MapFilePin pin;  // keeps the file from being deleted
  };

  // Maximum distance in bytes between neighboring values of a group.
  static constexpr uint64_t kMaxGap = 16 << 10;
  // Maximum size in bytes of a group of several values.
  static constexpr uint64_t kMaxSpan = 256 << 10;

  // Divides the items into groups, which are returned in the order of their
  // first items. The groups copy the names of the records.
  // group_of, index_of: receive, for each item, the index of its group and its
  // index in that group.
  // REQUIRES: read_options, ioptions and source exist until each group is
  // cancelled, which happens when LetGo() was called for all its items.
  static std::vector<std::shared_ptr<BlobReadGroup>> Divide(
      std::vector<Item>&& items, const ReadOptions& read_options,
      const ImmutableOptions& ioptions, BlobSource* source,
      std::vector<size_t>* group_of, std::vector<size_t>* index_of);

  BlobReadGroup(const ReadOptions& read_options,
                const ImmutableOptions& ioptions, BlobSource* source);
  ~BlobReadGroup();
  BlobReadGroup(const BlobReadGroup&) = delete;
  BlobReadGroup& operator=(const BlobReadGroup&) = delete;

  // Reads the group unless the read was started before. Returns true if it was
  // not.
  bool Run();
  // Returns true if the group was read and the results were not freed. They may
  // be freed by another thread at any time.
  bool HasResults() const {
    return state_.load(std::memory_order_relaxed) == State::kDone;
  }
  // Reads the group, or waits until the thread that reads it has finished.
  // Returns true if the calling thread has read it.
  bool RunAndWait();

  // Returns true if asynchronous reads are possible. They are not with mmap, if
  // reads are subject to the rate limiter, or if the read tier is not
  // kReadAllTier.
  static bool AllowsAsync(const ReadOptions& read_options,
                          const ImmutableOptions& ioptions);

  enum class Begun : uint8_t {
    kYes,     // started; the thread must call EndAsync()
    kNo,      // nothing to do: started before, or the values are cached
    kRead,    // done: the file system has read synchronously
    kFailed,  // not started
  };
  // Starts an asynchronous read of the group.
  Begun BeginAsync();
  // Waits for the asynchronous read.
  // REQUIRES: BeginAsync() returned Begun::kYes on this thread.
  void EndAsync();
  // Returns the number of bytes that the asynchronous read has fetched.
  uint64_t TEST_Bytes() const { return bytes_.size(); }

  // Prevents the read from being started, or waits for a running one, and frees
  // the items. (The pool may hold the group for longer than the database
  // exists.)
  void Cancel();

  const std::vector<Item>& items() const { return items_; }

  // Makes the budget hold the group for the scan when the owner reads it.
  // REQUIRES: no other thread has the group.
  void HoldWhenRead(ReadAheadBudget* budget, ReadAheadBudget::Scan* scan) {
    budget_ = budget;
    scan_ = scan;
    is_to_hold_ = true;
  }

  // Frees the results of the read. Returns false and changes nothing if there
  // are none, or while a thread reads the group or takes a value.
  bool GiveBack();
  // Returns the number of bytes from the first to the last item, which is an
  // upper bound of the memory of the results.
  uint64_t Span() const;

  // Moves the value of an item to *value. May be called once for each item.
  // Reads the group if it was not read or the results were freed. The value may
  // keep the memory of the group's read.
  // REQUIRES: LetGo() was not called for the item.
  Status Take(size_t index, PinnableSlice* value);

  bool TEST_HasBegun();

  // Called by the owner for each item that it no longer needs. The call for the
  // last item cancels the group.
  void LetGo() {
    if (--needed_ == 0) {
      Cancel();
    }
  }

 private:
  friend class ReadAheadBudget;

  // kInUse: the owner is taking a value.
  enum class State : uint8_t { kQueued, kRunning, kDone, kInUse };

  // A result of Read().
  struct Result {
    PinnableSlice value;
    Status status;
  };

  // The memory of an asynchronous read. It is freed when the group and all
  // values in it are gone.
  struct Buffer {
    std::unique_ptr<char[]> bytes;
    AlignedBuffer direct_io;
    std::atomic<uint32_t> refs{1};

    static void Unref(void* buffer, void* /*unused*/) {
      Buffer* const self = static_cast<Buffer*>(buffer);
      if (self->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete self;
      }
    }
  };

  // Copies the names of the items' records to names_.
  void CopyNames();
  bool Claim();
  void SetState(State state);
  void Read();
  // Reads the values of several items at once. Returns false if that is not
  // possible, or has failed.
  bool ReadWhole();
  bool IsCached() const;
  // Sets begin_ and length_. Returns false if the range is not within the file;
  // the regular read will then report the error.
  bool FindRange();
  IOStatus ReadAsync();
  void OnRead(const FSReadRequest& request);
  void CountRead() const;
  // Completes the asynchronous read, successful or not. The file system does
  // not access the buffers from here on.
  void FinishAsync();
  Status TakeRead(size_t index, PinnableSlice* value);
  // Returns the value in the memory of the asynchronous read. Returns false if
  // it has to be copied or to be read again.
  bool ShareRead(const Item& item, const Slice& record, PinnableSlice* value);
  // Frees the bytes that were read, but not the items.
  // REQUIRES: no thread is reading the group or taking a value.
  void FreeBytes();
  // Frees what Read() has returned. REQUIRES: as FreeBytes().
  void FreeResults();
  // Returns the record of an item in the form in which GetBlob() reads it.
  // Empty if it was not read.
  Slice RecordOf(const Item& item) const;

  const ReadOptions& read_options_;
  const ImmutableOptions& ioptions_;
  BlobSource* const source_;
  std::vector<Item> items_;  // all in one file, ordered by offset
  // items_ refer to this memory, which has the names of their records.
  std::unique_ptr<char[]> names_;
  std::vector<Result> results_;  // Read() sets one for each item
  size_t needed_ = 0;            // number of items without LetGo()

  // State of the asynchronous read, or of ReadWhole(). If is_whole_, the values
  // are not in results_ but in bytes_, or, if that is empty, still have to be
  // read.
  bool is_whole_ = false;
  CacheHandleGuard<BlobFileReader> reader_;
  Buffer* buffer_ = nullptr;
  uint64_t begin_ = 0;
  size_t length_ = 0;
  Slice bytes_;
  // Used only by the thread that called BeginAsync().
  void* io_handle_ = nullptr;
  IOHandleDeleter delete_io_handle_;
  bool has_ended_ = false;

  port::Mutex mutex_;
  port::CondVar cv_;
  std::atomic<State> state_{State::kQueued};  // written with mutex_ held
  // The budget is to hold the group when it is read.
  bool is_to_hold_ = false;

  // Protected by the budget's mutex. The pointers are set once, before other
  // threads can access the group.
  ReadAheadBudget* budget_ = nullptr;
  ReadAheadBudget::Scan* scan_ = nullptr;
  bool is_held_ = false;
  ReadAheadBudget::Entries::iterator held_as_;
};

// The threads for background reads. They are shared by all databases of the
// process. There are at most kMaxThreads of them, each of which is created when
// work has to wait for the others.
class BlobReadPool {
 public:
  static constexpr int kMaxThreads = 32;

  // Number of groups per thread with asynchronous reads. Starting all of these
  // reads takes less time than one read.
  static constexpr size_t kAsyncGroups = 16;

  // Reads the groups in the background: asynchronously, with up to kAsyncGroups
  // groups per thread, if that is possible, else with one job per group.
  static void Submit(const std::vector<std::shared_ptr<BlobReadGroup>>& groups,
                     const ReadOptions& read_options,
                     const ImmutableOptions& ioptions);

  // Reads the groups asynchronously, all at the same time, and returns when
  // they were read. If that turns out not to be possible, the remaining groups
  // are read in the background.
  // REQUIRES: BlobReadGroup::AllowsAsync().
  static void RunAsync(
      const std::vector<std::shared_ptr<BlobReadGroup>>& groups);

  // Calls fn(0) ... fn(n - 1), each once, and returns when all calls have
  // returned. The calls are made by the calling thread, in order, until one has
  // taken longer than ReadAheadGauge::kCachedMicros, and then also by up to
  // max_threads of the pool's threads.
  static void RunAll(SystemClock* clock, size_t n,
                     const std::function<void(size_t)>& fn,
                     size_t max_threads = kMaxThreads);

 private:
  // The pool is never destroyed, as an iterator may be used while the process
  // exits.
  static ThreadPool* Threads();
  // The thread that runs `job` has the PathJob of the calling thread meanwhile.
  static void SubmitJob(std::function<void()>&& job);
  static void Submit(const std::shared_ptr<BlobReadGroup>& group);
};

}  // namespace ROCKSDB_NAMESPACE
