//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Iterators of a column family with an address map, when reads of values fail
// or are asynchronous.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/blob_v2/blob_read_group.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test_util/strata/map_iterator_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "util/compression.h"

// The file system calls this before it reads asynchronously.
extern "C" bool RocksDbIOUringEnable() { return true; }

namespace ROCKSDB_NAMESPACE {

constexpr char kMarker[] = "here is the value that cannot be read";

// Reads that return the marker fail while the file system is armed.
// Asynchronous reads, if enabled, are executed when the caller waits for them.
class FailingFileSystem : public FileSystemWrapper {
 public:
  explicit FailingFileSystem(const std::shared_ptr<FileSystem>& base)
      : FileSystemWrapper(base) {}

  static const char* kClassName() { return "FailingFileSystem"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override;
  void SupportedOps(int64_t& supported_ops) override;
  IOStatus Poll(std::vector<void*>& io_handles,
                size_t min_completions) override;
  IOStatus AbortIO(std::vector<void*>& io_handles) override;

  bool Fails(const Slice& data) {
    if (!armed || data.ToString().find(kMarker) == std::string::npos) {
      return false;
    }
    ++failures;
    return true;
  }

  enum class Trouble {
    kNone,
    kRefused,  // ReadAsync() refuses every other read
    kFailed,   // the status of the request is an error
    kShort,
    kCorrupt,  // a flipped bit
  };

  std::atomic<bool> armed{false};
  std::atomic<int> failures{0};
  std::atomic<bool> async{false};
  std::atomic<Trouble> trouble{Trouble::kNone};  // affects asynchronous reads
  std::atomic<int> asked{0};
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
};

class FailingFile : public FSRandomAccessFileOwnerWrapper {
 public:
  struct Handle {
    const FailingFile* file;
    std::thread::id thread;
    FSReadRequest request;
    std::function<void(FSReadRequest&, void*)> callback;
    void* argument;
    bool done = false;
  };

  FailingFile(std::unique_ptr<FSRandomAccessFile>&& file, FailingFileSystem* fs)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), fs_(fs) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    IOStatus s = target()->Read(offset, n, options, result, scratch, dbg);
    if (s.ok() && fs_->Fails(*result)) {
      s = IOStatus::IOError("injected");
    }
    return s;
  }

  IOStatus MultiRead(FSReadRequest* requests, size_t num_requests,
                     const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = target()->MultiRead(requests, num_requests, options, dbg);
    for (size_t i = 0; s.ok() && i < num_requests; ++i) {
      if (requests[i].status.ok() && fs_->Fails(requests[i].result)) {
        requests[i].status = IOStatus::IOError("injected");
      }
    }
    return s;
  }

  IOStatus ReadAsync(FSReadRequest& request, const IOOptions& options,
                     std::function<void(FSReadRequest&, void*)> callback,
                     void* argument, void** io_handle, IOHandleDeleter* deleter,
                     IODebugContext* dbg) override {
    if (!fs_->async) {
      return target()->ReadAsync(request, options, callback, argument,
                                 io_handle, deleter, dbg);
    }
    if (fs_->asked++ % 2 == 1 &&
        fs_->trouble == FailingFileSystem::Trouble::kRefused) {
      return IOStatus::Busy("refused");
    }
    ++fs_->begun;
    auto* const handle = new Handle();
    handle->file = this;
    handle->thread = std::this_thread::get_id();
    handle->request.offset = request.offset;
    handle->request.len = request.len;
    handle->request.scratch = request.scratch;
    handle->callback = std::move(callback);
    handle->argument = argument;
    *io_handle = handle;
    *deleter = [](void* h) { delete static_cast<Handle*>(h); };
    return IOStatus::OK();
  }

  static void End(Handle* handle) {
    using Trouble = FailingFileSystem::Trouble;
    ASSERT_EQ(handle->thread, std::this_thread::get_id());
    FailingFileSystem* const fs = handle->file->fs_;
    const Trouble trouble = fs->trouble;
    FSReadRequest& request = handle->request;
    request.status =
        handle->file->Read(request.offset, request.len, IOOptions(),
                           &request.result, request.scratch, nullptr);
    if (trouble == Trouble::kFailed) {
      request.status = IOStatus::IOError("injected");
    } else if (request.status.ok() && trouble == Trouble::kShort) {
      request.result.remove_suffix(1 + request.result.size() / 2);
    } else if (request.status.ok() && trouble == Trouble::kCorrupt) {
      request.scratch[request.result.size() / 4] ^= 1;
    }
    handle->done = true;
    ++fs->ended;
    handle->callback(request, handle->argument);
    request.status.PermitUncheckedError();
  }

 private:
  FailingFileSystem* const fs_;
};

void FailingFileSystem::SupportedOps(int64_t& supported_ops) {
  target()->SupportedOps(supported_ops);
  constexpr int64_t kAsync = int64_t{1} << FSSupportedOps::kAsyncIO;
  supported_ops = async ? supported_ops | kAsync : supported_ops & ~kAsync;
}

IOStatus FailingFileSystem::Poll(std::vector<void*>& io_handles,
                                 size_t /*min_completions*/) {
  for (void* const io_handle : io_handles) {
    auto* const handle = static_cast<FailingFile::Handle*>(io_handle);
    if (!handle->done) {
      FailingFile::End(handle);
    }
  }
  return IOStatus::OK();
}

IOStatus FailingFileSystem::AbortIO(std::vector<void*>& io_handles) {
  for (void* const io_handle : io_handles) {
    static_cast<FailingFile::Handle*>(io_handle)->done = true;
  }
  return IOStatus::OK();
}

IOStatus FailingFileSystem::NewRandomAccessFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSRandomAccessFile>* result, IODebugContext* dbg) {
  std::unique_ptr<FSRandomAccessFile> file;
  IOStatus s = target()->NewRandomAccessFile(name, options, &file, dbg);
  if (s.ok()) {
    result->reset(new FailingFile(std::move(file), this));
  }
  return s;
}

// The parameter says whether reads are asynchronous.
class MapIteratorErrorsTest : public MapIteratorDBTestBase,
                              public testing::WithParamInterface<bool> {
 public:
  MapIteratorErrorsTest()
      : MapIteratorDBTestBase("db_map_iterator_errors_test"),
        fs_(std::make_shared<FailingFileSystem>(env_->GetFileSystem())),
        failing_env_(NewCompositeEnv(fs_)) {
    fs_->async = GetParam();
  }
  // Closes the DB before its Env is destroyed.
  ~MapIteratorErrorsTest() override { Close(); }

 protected:
  static constexpr int kKeys = 60;
  static constexpr int kBad = 40;

  std::string ValueOf(int i) const {
    return i == kBad ? kMarker + Value(i) : Value(i);
  }

  // Returns the entries that a scan from key i finds. "E" at the end stands for
  // the injected error.
  static std::string ScanFrom(Iterator* iter, int i) {
    std::string result;
    for (iter->Seek(Key(i)); iter->Valid(); iter->Next()) {
      result += iter->key().ToString() + "=" + iter->value().ToString() + ";";
    }
    return result + (iter->status().IsIOError() ? "E" : "") +
           (iter->status().ok() || iter->status().IsIOError()
                ? ""
                : iter->status().ToString());
  }

  const std::shared_ptr<FailingFileSystem> fs_;
  const std::unique_ptr<Env> failing_env_;
};

// An error of a read ahead is returned when the scan reaches the value. Values
// before and after it are returned, even if they were read together with it.
TEST_P(MapIteratorErrorsTest, ErrorIsReturnedAtItsKey) {
  for (const bool one_file : {true, false}) {
    for (const bool merged : {false, true}) {
      for (const size_t prefetch : {size_t{0}, size_t{1}, size_t{7}, kAuto}) {
        SCOPED_TRACE(std::string(one_file ? "one file" : "a file for each") +
                     (merged ? ", merged" : "") + ", prefetch " +
                     std::to_string(prefetch));
        Options options = MapOptions();
        options.env = failing_env_.get();
        if (!one_file) {
          options.blob_file_size = 1;
        }
        fs_->armed = false;
        DestroyAndReopen(options);
        for (int i = 0; i < kKeys; ++i) {
          ASSERT_OK(Put(Key(i), ValueOf(i)));
        }
        ASSERT_OK(Flush());
        EXPECT_EQ(GetBlobFileNumbers().size(), one_file ? 1 : kKeys);
        if (merged) {
          // The value is read as the base of a merge.
          ASSERT_OK(Merge(Key(kBad), "operand"));
        }
        std::vector<std::string> entries;
        for (int i = 0; i < kKeys; ++i) {
          entries.push_back(Key(i) + "=" + ValueOf(i) +
                            (merged && i == kBad ? ",operand" : std::string()) +
                            ";");
        }
        const auto range = [&](int begin, int end) {
          std::string result;
          for (int i = begin; i < end; ++i) {
            result += entries[i];
          }
          return result;
        };
        ReadOptions read_options;
        read_options.blob_prefetch_count = prefetch;

        fs_->failures = 0;
        fs_->armed = true;
        const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
        EXPECT_EQ(ScanFrom(iter.get(), 0), range(0, kBad) + "E");
        EXPECT_GT(fs_->failures.load(), 0);
        // The iterator can still be used.
        EXPECT_EQ(ScanFrom(iter.get(), kBad + 1), range(kBad + 1, kKeys));
        EXPECT_EQ(ScanFrom(iter.get(), kBad), "E");
        EXPECT_EQ(ScanFrom(iter.get(), kBad - 1), range(kBad - 1, kBad) + "E");
        // Scans backwards.
        int i = kKeys - 1;
        for (iter->SeekToLast(); iter->Valid(); iter->Prev(), --i) {
          ASSERT_EQ(
              iter->key().ToString() + "=" + iter->value().ToString() + ";",
              entries[i]);
        }
        EXPECT_TRUE(iter->status().IsIOError()) << iter->status().ToString();
        EXPECT_EQ(i, kBad);
        i = kBad - 1;
        for (iter->SeekForPrev(Key(kBad - 1)); iter->Valid();
             iter->Prev(), --i) {
          ASSERT_EQ(iter->value(), ValueOf(i));
        }
        EXPECT_OK(iter->status());
        EXPECT_EQ(i, -1);

        // A scan that turns back before the value does not return the error,
        // although the read was made.
        iter->Seek(Key(0));
        for (i = 0; i < kBad - 1; ++i, iter->Next()) {
          ASSERT_TRUE(iter->Valid());
          ASSERT_EQ(iter->value(), ValueOf(i));
        }
        iter->Prev();
        ASSERT_TRUE(iter->Valid());
        EXPECT_EQ(iter->value(), ValueOf(kBad - 2));
        EXPECT_OK(iter->status());

        // After the error is gone, the scan succeeds.
        fs_->armed = false;
        EXPECT_EQ(ScanFrom(iter.get(), 0), range(0, kKeys));
      }
    }
  }
}

// The read of a value that is not requested cannot fail.
TEST_P(MapIteratorErrorsTest, UnpreparedValueDoesNotFail) {
  Options options = MapOptions();
  options.env = failing_env_.get();
  DestroyAndReopen(options);
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(Put(Key(i), ValueOf(i)));
  }
  ASSERT_OK(Flush());
  fs_->armed = true;
  ReadOptions read_options;
  read_options.allow_unprepared_value = true;
  const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  int n = 0;
  for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++n) {
    ASSERT_EQ(iter->key(), Key(n));
    if (n != kBad) {
      ASSERT_TRUE(iter->PrepareValue());
      ASSERT_EQ(iter->value(), Value(n));
    }
  }
  ASSERT_OK(iter->status());
  EXPECT_EQ(n, kKeys);
  EXPECT_EQ(fs_->failures.load(), 0);
  iter->Seek(Key(kBad));
  ASSERT_TRUE(iter->Valid());
  EXPECT_FALSE(iter->PrepareValue());
  EXPECT_FALSE(iter->Valid());
  EXPECT_TRUE(iter->status().IsIOError()) << iter->status().ToString();
  fs_->armed = false;
  iter->Seek(Key(kBad));
  ASSERT_TRUE(iter->Valid());
  EXPECT_TRUE(iter->PrepareValue());
  EXPECT_EQ(iter->value(), ValueOf(kBad));
}

INSTANTIATE_TEST_CASE_P(Async, MapIteratorErrorsTest, testing::Bool());

// Scans wait until a thread of the pool has begun the reads, and do not make
// them themselves.
class MapIteratorAsyncTest : public MapIteratorErrorsTest {
 public:
  MapIteratorAsyncTest() {
    EnableCallBack("BlobReadGroup::RunAndWait", [](void* arg) {
      while (!static_cast<BlobReadGroup*>(arg)->TEST_HasBegun()) {
        std::this_thread::yield();
      }
    });
  }
};

INSTANTIATE_TEST_CASE_P(Async, MapIteratorAsyncTest, testing::Values(true));

// Values that are read asynchronously are right even if the reads are refused,
// fail, are short or return damaged data.
TEST_P(MapIteratorAsyncTest, FailedAsyncReadsAreRepeated) {
  using Trouble = FailingFileSystem::Trouble;
  for (const Trouble trouble :
       {Trouble::kNone, Trouble::kRefused, Trouble::kFailed, Trouble::kShort,
        Trouble::kCorrupt}) {
    for (const bool one_file : {true, false}) {
      for (const CompressionType compression :
           {kNoCompression, kLZ4Compression}) {
        SCOPED_TRACE("trouble " + std::to_string(static_cast<int>(trouble)) +
                     (one_file ? ", one file" : ", a file for each") +
                     (compression == kNoCompression ? "" : ", compressed"));
        if (!LZ4_Supported() && compression == kLZ4Compression) {
          continue;
        }
        Options options = MapOptions();
        options.env = failing_env_.get();
        options.blob_compression_type = compression;
        if (!one_file) {
          options.blob_file_size = 1;
        }
        fs_->trouble = trouble;
        DestroyAndReopen(options);
        PutAndFlush(kKeys);
        fs_->begun = 0;
        fs_->ended = 0;
        const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
        std::string expected;
        for (int i = 0; i < kKeys; ++i) {
          expected += Key(i) + "=" + Value(i) + ";";
        }
        EXPECT_EQ(Scan(iter.get()), expected);
        if (!one_file) {  // otherwise most values are neighbours
          // After a refused read the others are made synchronously.
          EXPECT_GE(fs_->begun.load(),
                    trouble == Trouble::kRefused ? 1 : (kKeys - 2) / 3);
        }
        // This scan stops in the middle.
        iter->SeekToFirst();
        for (int i = 0; i < kKeys / 2; ++i) {
          ASSERT_TRUE(iter->Valid());
          ASSERT_EQ(iter->value(), Value(i));
          iter->Next();
        }
        iter->SeekToFirst();
        ASSERT_TRUE(iter->Valid());
        EXPECT_EQ(iter->value(), Value(0));
        EXPECT_EQ(fs_->begun, fs_->ended);
      }
    }
  }
}

// Values of a MultiGet() that are read asynchronously are right, too.
TEST_P(MapIteratorAsyncTest, MultiGetRepeatsFailedAsyncReads) {
  // Here the reader makes the reads itself.
  DisableCallBacks();
  using Trouble = FailingFileSystem::Trouble;
  for (const Trouble trouble :
       {Trouble::kNone, Trouble::kRefused, Trouble::kFailed, Trouble::kShort,
        Trouble::kCorrupt}) {
    for (const bool one_file : {true, false}) {
      SCOPED_TRACE("trouble " + std::to_string(static_cast<int>(trouble)) +
                   (one_file ? ", one file" : ", a file for each"));
      Options options = MapOptions();
      options.env = failing_env_.get();
      if (!one_file) {
        options.blob_file_size = 1;
      }
      fs_->trouble = trouble;
      fs_->armed = false;
      DestroyAndReopen(options);
      for (int i = 0; i < kKeys; ++i) {
        ASSERT_OK(Put(Key(i), ValueOf(i)));
      }
      ASSERT_OK(Flush());
      std::vector<std::string> names;
      std::vector<Slice> keys;
      for (int i = 0; i < kKeys; ++i) {
        names.push_back(Key(kKeys - 1 - i));
      }
      names.push_back("absent");
      keys.assign(names.begin(), names.end());
      fs_->begun = 0;
      fs_->ended = 0;
      for (const bool armed : {false, true}) {
        fs_->armed = armed;
        std::vector<PinnableSlice> values(keys.size());
        std::vector<Status> statuses(keys.size());
        db_->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), keys.size(),
                      keys.data(), values.data(), statuses.data());
        for (int i = 0; i < kKeys; ++i) {
          const int k = kKeys - 1 - i;
          if (armed && k == kBad) {
            EXPECT_TRUE(statuses[i].IsIOError()) << statuses[i].ToString();
          } else {
            ASSERT_OK(statuses[i]);
            EXPECT_EQ(values[i], ValueOf(k));
          }
        }
        EXPECT_TRUE(statuses[kKeys].IsNotFound());
      }
      if (!one_file) {  // otherwise RocksDB reads all of them together
        EXPECT_GE(fs_->begun.load(), trouble == Trouble::kRefused ? 1 : kKeys);
      }
      EXPECT_EQ(fs_->begun, fs_->ended);
      fs_->armed = false;
      ReadOptions no_io;
      no_io.read_tier = kBlockCacheTier;
      fs_->begun = 0;
      std::vector<PinnableSlice> values(keys.size());
      std::vector<Status> statuses(keys.size());
      db_->MultiGet(no_io, db_->DefaultColumnFamily(), keys.size(), keys.data(),
                    values.data(), statuses.data());
      for (int i = 0; i < kKeys; ++i) {
        EXPECT_TRUE(statuses[i].IsIncomplete()) << statuses[i].ToString();
      }
      EXPECT_EQ(fs_->begun, 0);
    }
  }
}

// Values in the blob cache are not read, and each counts as one hit.
TEST_P(MapIteratorAsyncTest, CachedValuesAreNotRead) {
  Options options = MapOptions();
  options.env = failing_env_.get();
  options.blob_cache = NewLRUCache(8 << 20);
  options.blob_file_size = 1;
  DestroyAndReopen(options);
  PutAndFlush(kKeys);
  std::string expected;
  for (int i = 0; i < kKeys; ++i) {
    expected += Key(i) + "=" + Value(i) + ";";
  }
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  EXPECT_EQ(Scan(iter.get()), expected);
  EXPECT_GT(fs_->begun, 0);
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_MISS), kKeys);
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_ADD), kKeys);
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_HIT), 0);
  fs_->begun = 0;
  iter.reset(db_->NewIterator(ReadOptions()));
  EXPECT_EQ(Scan(iter.get()), expected);
  EXPECT_EQ(fs_->begun, 0);
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_MISS), kKeys);
  EXPECT_EQ(Ticker(BLOB_DB_CACHE_HIT), kKeys);
}

// An iterator may be used by one thread after another, and end on another
// thread than it was made on, while reads are running.
TEST_P(MapIteratorAsyncTest, IteratorMayMoveBetweenThreads) {
  Options options = MapOptions();
  options.env = failing_env_.get();
  options.blob_file_size = 1;
  DestroyAndReopen(options);
  PutAndFlush(kKeys);
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  iter->SeekToFirst();
  for (int i = 0; i < kKeys - 10; ++i) {
    std::thread([&] {
      ASSERT_TRUE(iter->Valid());
      EXPECT_EQ(iter->value(), Value(i));
      iter->Next();
    }).join();
  }
  std::thread([&] { iter.reset(); }).join();
  EXPECT_GT(fs_->begun, 0);
  EXPECT_EQ(fs_->begun, fs_->ended);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
