//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

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

// The reads of some neighbouring records of one blob file of an address map,
// done together: in the background, or by the one who wants a value, if nobody
// has begun.
//
// There are two ways to do them. Run() reads, checks and decompresses the
// values. BeginAsync() and EndAsync() let one thread have many groups under
// way: they fetch the bytes only, and Take() does the rest. What has failed in
// them is read once more by Take(), whose status counts.
//
// What was read may be given back for a while, if it is not needed at once
// (ReadAheadBudget): the group is then in the state before the first read.
//
// Thread-safe, but Take() and LetGo(), which are the owner's, and EndAsync().
class BlobReadGroup : public std::enable_shared_from_this<BlobReadGroup> {
 public:
  struct Item {
    std::string record_name;  // encoded MappedRecordName
    uint64_t file_number = 0;
    uint64_t offset = 0;  // of the value
    uint64_t size = 0;
    CompressionType compression = kNoCompression;
    MapFilePin pin;  // keeps the file

    // The result.
    PinnableSlice value;
    Status status;
  };

  // Neighbours are read together if they are not farther apart than this, and
  // not more bytes than that.
  static constexpr uint64_t kMaxGap = 16 << 10;
  static constexpr uint64_t kMaxSpan = 256 << 10;

  // Divides the items into groups. group_of[i] and index_of[i] say where the
  // i-th went.
  // The groups are in the order of their first items.
  // REQUIRES: read_options, ioptions and source live until each group is
  // cancelled, which LetGo() for all items does.
  static std::vector<std::shared_ptr<BlobReadGroup>> Divide(
      std::vector<Item>&& items, const ReadOptions& read_options,
      const ImmutableOptions& ioptions, BlobSource* source,
      std::vector<size_t>* group_of, std::vector<size_t>* index_of);

  BlobReadGroup(const ReadOptions& read_options,
                const ImmutableOptions& ioptions, BlobSource* source);
  ~BlobReadGroup();
  BlobReadGroup(const BlobReadGroup&) = delete;
  BlobReadGroup& operator=(const BlobReadGroup&) = delete;

  // Reads, unless somebody has begun.
  void Run();
  // Reads, or waits for the one who does.
  void RunAndWait();

  // Can values be read that way? Not with mmap, nor if somebody waits for the
  // rate limiter.
  static bool AllowsAsync(const ReadOptions& read_options,
                          const ImmutableOptions& ioptions);

  enum class Begun : uint8_t {
    kYes,     // EndAsync() must follow, on this thread
    kNo,      // nothing to do: somebody has begun, or the values are cached
    kRead,    // the file system has read at once: it is not asynchronous here
    kFailed,  // nobody has begun still
  };
  Begun BeginAsync();
  void EndAsync();
  // How many EndAsync() has read.
  uint64_t bytes() const { return bytes_.size(); }

  // Nobody will begin; waits for one who has. The items are gone then: the pool
  // may hold the group for longer than the database lives.
  void Cancel();

  const std::vector<Item>& items() const { return items_; }

  // Frees what was read. Returns false and changes nothing if nothing was read,
  // or while a thread reads or takes a value.
  bool GiveBack();
  // The bytes from the first item to the last: what they take in memory, or
  // more.
  uint64_t Span() const;

  // Moves a value, once. Reads it if that was not done, or was given back.
  // REQUIRES: the item was not let go.
  Status Take(size_t index, PinnableSlice* value);

  bool TEST_HasBegun();

  // For the one who owns the group: how many of its items he still needs. The
  // last one to be let go ends it.
  void LetGo() {
    if (--needed_ == 0) {
      Cancel();
    }
  }

 private:
  friend class ReadAheadBudget;

  // kInUse: the owner takes a value.
  enum class State : uint8_t { kQueued, kRunning, kDone, kInUse };

  bool Claim();
  void SetState(State state);
  void Read();
  bool IsCached() const;
  // False if it is not within the file, which whoever reads has to report.
  bool FindRange();
  IOStatus ReadAsync();
  void OnRead(const FSReadRequest& request);
  // Whatever the file system has done, it has done by now.
  void FinishAsync();
  Status TakeRead(Item* item, PinnableSlice* value);
  // Frees what was read, but not the items.
  // REQUIRES: no thread reads or takes a value.
  void FreeBytes();
  // The record of an item, as GetBlob() reads it; empty if it was not read.
  Slice RecordOf(const Item& item) const;

  const ReadOptions& read_options_;
  const ImmutableOptions& ioptions_;
  BlobSource* const source_;
  std::vector<Item> items_;  // of one file, in the order of their offsets
  size_t needed_ = 0;

  // Of the asynchronous way: the values are not in the items, but in this part
  // of the file, or, if it is empty, to be read.
  bool is_async_ = false;
  CacheHandleGuard<BlobFileReader> reader_;
  std::unique_ptr<char[]> buffer_;
  AlignedBuffer direct_io_buffer_;
  uint64_t begin_ = 0;
  size_t length_ = 0;
  Slice bytes_;
  // Of the thread that began.
  void* io_handle_ = nullptr;
  IOHandleDeleter delete_io_handle_;
  bool has_ended_ = false;

  port::Mutex mutex_;
  port::CondVar cv_;
  State state_ = State::kQueued;
  bool was_given_back_ = false;  // and is not held since

  // By the budget's mutex. Pointers are set once, before another thread has the
  // group.
  ReadAheadBudget* budget_ = nullptr;
  ReadAheadBudget::Scan* scan_ = nullptr;
  bool is_held_ = false;
  ReadAheadBudget::Entries::iterator held_as_;
};

// The threads for the background. They are shared by all databases of the
// process, and never more than kMaxThreads. Each is made when work has to wait
// for the others.
class BlobReadPool {
 public:
  static constexpr int kMaxThreads = 32;

  // So many groups are one thread's, if it can read asynchronously. To begin
  // them, all at once, takes less than a read.
  static constexpr size_t kAsyncGroups = 16;

  // Each for a thread, or asynchronously, for fewer threads.
  static void Submit(const std::vector<std::shared_ptr<BlobReadGroup>>& groups,
                     const ReadOptions& read_options,
                     const ImmutableOptions& ioptions);

  // Below this a read came from a cache, and calling another thread for the
  // next one would take longer than to do it.
  static constexpr uint64_t kCachedMicros = 20;

  // Calls fn(0) ... fn(n - 1), each once, and returns when all have returned.
  // They run on this thread, in order, until one has taken longer than
  // kCachedMicros; then on the pool's threads, too.
  static void RunAll(SystemClock* clock, size_t n,
                     const std::function<void(size_t)>& fn);

 private:
  // Never destroyed: an iterator may be used while the process ends.
  static ThreadPool* Threads();
  static void SubmitJob(std::function<void()>&& job);
  static void Submit(const std::shared_ptr<BlobReadGroup>& group);
  static void RunAsync(
      const std::vector<std::shared_ptr<BlobReadGroup>>& groups);
};

}  // namespace ROCKSDB_NAMESPACE
