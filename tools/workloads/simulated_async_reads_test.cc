// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/simulated_async_reads.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/mock_time_env.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "tools/workloads/simulated_device_fs.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

// A file system whose asynchronous reads end when they are polled.
class PolledFs : public FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;

  const char* Name() const override { return "PolledFs"; }

  struct Handle {
    FSRandomAccessFile* file = nullptr;
    FSReadRequest request;
    std::function<void(FSReadRequest&, void*)> callback;
    void* arg = nullptr;
    bool has_ended = false;

    ~Handle() { request.status.PermitUncheckedError(); }
  };

  class File : public FSRandomAccessFileOwnerWrapper {
   public:
    File(std::unique_ptr<FSRandomAccessFile>&& file, PolledFs* fs)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), fs_(fs) {}

    IOStatus ReadAsync(FSReadRequest& request, const IOOptions& options,
                       std::function<void(FSReadRequest&, void*)> callback,
                       void* arg, void** handle, IOHandleDeleter* deleter,
                       IODebugContext* dbg) override {
      if (fs_->refuses) {
        return IOStatus::Busy("refused");
      }
      if (fs_->ends_at_once) {
        request.status = target()->Read(request.offset, request.len, options,
                                        &request.result, request.scratch, dbg);
        callback(request, arg);
        return IOStatus::OK();
      }
      auto* const made = new Handle;
      ++fs_->handles;
      made->file = target();
      made->request.offset = request.offset;
      made->request.len = request.len;
      made->request.scratch = request.scratch;
      made->callback = std::move(callback);
      made->arg = arg;
      *handle = made;
      *deleter = [fs = fs_](void* deleted) {
        --fs->handles;
        delete static_cast<Handle*>(deleted);
      };
      return IOStatus::OK();
    }

   private:
    PolledFs* const fs_;
  };

  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    std::unique_ptr<FSRandomAccessFile> file;
    IOStatus s = target()->NewRandomAccessFile(name, options, &file, dbg);
    if (s.ok()) {
      *result = std::make_unique<File>(std::move(file), this);
    }
    return s;
  }

  IOStatus Poll(std::vector<void*>& polled, size_t min_completions) override {
    last_min_completions = min_completions;
    if (poll_fails) {
      return IOStatus::IOError("poll");
    }
    if (clock != nullptr) {
      clock->SleepForMicroseconds(poll_micros);
    }
    for (void* const handle : polled) {
      auto* const ended = static_cast<Handle*>(handle);
      if (ended->has_ended) {
        continue;
      }
      ended->has_ended = true;
      if (read_fails) {
        ended->request.status = IOStatus::IOError("read");
      } else {
        ended->request.status = ended->file->Read(
            ended->request.offset, ended->request.len, IOOptions(),
            &ended->request.result, ended->request.scratch, /*dbg=*/nullptr);
      }
      ended->callback(ended->request, ended->arg);
    }
    return IOStatus::OK();
  }

  // Like the default file system, which passes an empty request.
  IOStatus AbortIO(std::vector<void*>& aborted) override {
    for (void* const handle : aborted) {
      auto* const ended = static_cast<Handle*>(handle);
      if (!ended->has_ended) {
        ended->has_ended = true;
        FSReadRequest request;
        request.offset = 0;
        request.len = 0;
        request.scratch = nullptr;
        request.status = IOStatus::Aborted();
        ended->callback(request, ended->arg);
        request.status.PermitUncheckedError();
      }
    }
    return IOStatus::OK();
  }

  bool refuses = false;
  bool ends_at_once = false;
  bool poll_fails = false;
  bool read_fails = false;
  // If clock is not nullptr, how long Poll() takes.
  SystemClock* clock = nullptr;
  int poll_micros = 0;
  int handles = 0;  // handles that have not been deleted
  size_t last_min_completions = 0;
};

// A read, with the result that its callback got.
struct TestRead {
  ~TestRead() {
    if (handle != nullptr) {
      deleter(handle);
    }
    status.PermitUncheckedError();
    request.status.PermitUncheckedError();
  }

  FSReadRequest request;
  std::string scratch;
  void* handle = nullptr;
  IOHandleDeleter deleter;

  SystemClock* clock = nullptr;
  // Whether the request that the callback gets has to be that which was begun.
  bool has_request = true;
  int calls = 0;
  IOStatus status;
  std::string data;
  uint64_t called_at = 0;  // in microseconds

  void OnEnd(FSReadRequest& done) {
    ++calls;
    status = done.status;
    data = done.result.ToString();
    called_at = clock->NowMicros();
    if (has_request) {
      EXPECT_EQ(done.offset, request.offset);
      EXPECT_EQ(done.len, request.len);
      EXPECT_EQ(done.scratch, request.scratch);
    }
  }
};

class SimulatedAsyncReadsTest : public testing::Test {
 public:
  SimulatedAsyncReadsTest()
      : clock_(SystemClock::Default()),
        dir_(test::PerThreadDBPath("simulated_async_reads_test")),
        base_(std::make_shared<PolledFs>(FileSystem::Default())) {
    EXPECT_OK(DestroyDir(Env::Default(), dir_));
    EXPECT_OK(Env::Default()->CreateDirIfMissing(dir_));
    EXPECT_OK(Env::Default()->CreateDirIfMissing(dir_ + "/slow"));
    for (int i = 0; i < 10'000; ++i) {
      contents_.push_back(static_cast<char>('a' + i % 23));
    }
    for (const char* name : {"/slow/file", "/other"}) {
      EXPECT_OK(WriteStringToFile(Env::Default(), contents_, dir_ + name));
    }
  }

  ~SimulatedAsyncReadsTest() override {
    file_.reset();
    EXPECT_EQ(base_->handles, 0);
    fs_.reset();
    EXPECT_OK(DestroyDir(Env::Default(), dir_));
  }

 protected:
  // device: in the text form.
  void Open(const std::string& device) {
    std::vector<PathDevice> devices;
    ASSERT_OK(ParsePathDevices(dir_ + "/slow:" + device, &devices));
    fs_ = std::make_unique<SimulatedDeviceFileSystem>(base_, devices, &clock_);
    ASSERT_OK(fs_->NewRandomAccessFile(dir_ + "/slow/file", FileOptions(),
                                       &file_, /*dbg=*/nullptr));
  }

  IOStatus Begin(TestRead* read, uint64_t offset, size_t size,
                 FSRandomAccessFile* file = nullptr) {
    read->clock = &clock_;
    read->scratch.resize(size);
    read->request.offset = offset;
    read->request.len = size;
    read->request.scratch = read->scratch.data();
    // A file system may not use the request after the call.
    FSReadRequest request;
    request.offset = offset;
    request.len = size;
    request.scratch = read->scratch.data();
    IOStatus s = (file == nullptr ? file_.get() : file)
                     ->ReadAsync(
                         request, IOOptions(),
                         [](FSReadRequest& done, void* arg) {
                           static_cast<TestRead*>(arg)->OnEnd(done);
                         },
                         read, &read->handle, &read->deleter, /*dbg=*/nullptr);
    request.status.PermitUncheckedError();
    return s;
  }

  IOStatus Poll(std::vector<TestRead*> reads, size_t min_completions = 1) {
    std::vector<void*> handles = Handles(reads);
    return fs_->Poll(handles, min_completions);
  }

  IOStatus Abort(std::vector<TestRead*> reads) {
    std::vector<void*> handles = Handles(reads);
    return fs_->AbortIO(handles);
  }

  static std::vector<void*> Handles(const std::vector<TestRead*>& reads) {
    std::vector<void*> handles;
    for (const TestRead* read : reads) {
      handles.push_back(read->handle);
    }
    return handles;
  }

  DeviceReport Report() const { return fs_->GetReports()[0]; }

  MockSystemClock clock_;
  const std::string dir_;
  std::string contents_;
  std::shared_ptr<PolledFs> base_;
  std::unique_ptr<SimulatedDeviceFileSystem> fs_;
  std::unique_ptr<FSRandomAccessFile> file_;
};

}  // namespace

TEST_F(SimulatedAsyncReadsTest, AReadEndsWhenTheDeviceHasServedIt) {
  Open("100:1000:0");
  TestRead read;
  ASSERT_OK(Begin(&read, 3, 2000));
  ASSERT_NE(read.handle, nullptr);
  clock_.SleepForMicroseconds(30);
  EXPECT_EQ(read.calls, 0);
  ASSERT_OK(Poll({&read}));
  EXPECT_EQ(read.calls, 1);
  ASSERT_OK(read.status);
  EXPECT_EQ(read.data, contents_.substr(3, 2000));
  // From the submission: a latency and 2000 bytes.
  EXPECT_EQ(read.called_at, 102u);
  EXPECT_EQ(Report().stats.reads, 1u);
  EXPECT_EQ(Report().stats.read_bytes, 2000u);
}

TEST_F(SimulatedAsyncReadsTest, ReadsOverlapUpToTheQueueDepth) {
  Open("100:0:0:2");
  TestRead reads[3];
  for (TestRead& read : reads) {
    ASSERT_OK(Begin(&read, 0, 10));
  }
  // In whatever order they are polled, they end in that of the device.
  ASSERT_OK(Poll({&reads[2], &reads[0], &reads[1]}, 3));
  EXPECT_EQ(reads[0].called_at, 100u);
  EXPECT_EQ(reads[1].called_at, 100u);
  EXPECT_EQ(reads[2].called_at, 200u);
  for (const TestRead& read : reads) {
    EXPECT_EQ(read.calls, 1);
    EXPECT_OK(read.status);
    EXPECT_EQ(read.data, contents_.substr(0, 10));
  }
}

TEST_F(SimulatedAsyncReadsTest, AReadThatIsPolledLateHasNoFurtherDelay) {
  Open("100:0:0");
  TestRead read;
  ASSERT_OK(Begin(&read, 0, 10));
  clock_.SleepForMicroseconds(500);
  ASSERT_OK(Poll({&read}));
  EXPECT_EQ(read.called_at, 500u);
  EXPECT_EQ(Report().delays.late_requests, 0u);
}

TEST_F(SimulatedAsyncReadsTest, ARealReadThatIsSlowerIsCounted) {
  Open("100:0:0");
  base_->clock = &clock_;
  base_->poll_micros = 150;
  TestRead read;
  ASSERT_OK(Begin(&read, 0, 10));
  ASSERT_OK(Poll({&read}));
  EXPECT_EQ(read.called_at, 150u);
  EXPECT_EQ(Report().delays.late_requests, 1u);
  EXPECT_EQ(Report().delays.late_nanos, 50'000u);
}

// A file system may complete a read when it is submitted.
TEST_F(SimulatedAsyncReadsTest, AReadThatEndsAtOnceEndsForTheCallerLater) {
  Open("100:0:0");
  base_->ends_at_once = true;
  TestRead read;
  ASSERT_OK(Begin(&read, 5, 10));
  EXPECT_EQ(read.calls, 0);
  ASSERT_NE(read.handle, nullptr);
  ASSERT_OK(Poll({&read}));
  EXPECT_EQ(read.calls, 1);
  EXPECT_EQ(read.called_at, 100u);
  EXPECT_EQ(read.data, contents_.substr(5, 10));
}

TEST_F(SimulatedAsyncReadsTest, ARefusedReadCostsNothing) {
  Open("100:0:0");
  base_->refuses = true;
  TestRead read;
  EXPECT_TRUE(Begin(&read, 0, 10).IsBusy());
  EXPECT_EQ(read.handle, nullptr);
  EXPECT_EQ(read.calls, 0);
  EXPECT_EQ(Report().stats.requests(), 0u);
}

TEST_F(SimulatedAsyncReadsTest, ErrorsOfReadsAreReported) {
  Open("100:0:0");
  base_->read_fails = true;
  TestRead read;
  ASSERT_OK(Begin(&read, 0, 10));
  ASSERT_OK(Poll({&read}));
  EXPECT_EQ(read.calls, 1);
  EXPECT_TRUE(read.status.IsIOError());
  EXPECT_EQ(read.data, "");
  // A read that fails takes as long as another.
  EXPECT_EQ(read.called_at, 100u);
}

TEST_F(SimulatedAsyncReadsTest, ReadsEndAtTheEndOfTheFile) {
  Open("100:1000:0");
  TestRead read;
  ASSERT_OK(Begin(&read, contents_.size() - 1000, 5000));
  TestRead behind;
  ASSERT_OK(Begin(&behind, contents_.size() + 10, 100));
  ASSERT_OK(Poll({&behind}));
  EXPECT_EQ(behind.calls, 1);
  EXPECT_EQ(behind.data, "");
  EXPECT_EQ(behind.called_at, 0u);
  ASSERT_OK(Poll({&read}));
  EXPECT_EQ(read.data, contents_.substr(contents_.size() - 1000));
  EXPECT_EQ(read.called_at, 101u);
  EXPECT_EQ(Report().stats.reads, 1u);
  EXPECT_EQ(Report().stats.read_bytes, 1000u);
}

TEST_F(SimulatedAsyncReadsTest, AnAbortedReadEndsAtOnceWithoutAResult) {
  for (const bool ends_at_once : {false, true}) {
    SCOPED_TRACE(ends_at_once);
    Open("100:0:0:1");
    const uint64_t begin = clock_.NowMicros();
    base_->ends_at_once = ends_at_once;
    TestRead read;
    ASSERT_OK(Begin(&read, 0, 10));
    clock_.SleepForMicroseconds(40);
    ASSERT_OK(Abort({&read}));
    EXPECT_EQ(read.calls, 1);
    EXPECT_TRUE(read.status.IsAborted());
    EXPECT_EQ(read.data, "");
    EXPECT_EQ(read.called_at, begin + 40);

    // The device is busy with it nevertheless.
    TestRead next;
    ASSERT_OK(Begin(&next, 0, 10));
    ASSERT_OK(Poll({&next}));
    ASSERT_OK(next.status);
    EXPECT_EQ(next.called_at, begin + 200);
  }
}

TEST_F(SimulatedAsyncReadsTest, AnAbortAfterTheEndGivesTheResult) {
  Open("100:0:0");
  base_->ends_at_once = true;
  TestRead read;
  ASSERT_OK(Begin(&read, 7, 10));
  clock_.SleepForMicroseconds(100);
  ASSERT_OK(Abort({&read}));
  ASSERT_OK(read.status);
  EXPECT_EQ(read.data, contents_.substr(7, 10));
}

TEST_F(SimulatedAsyncReadsTest, AReadCallsBackOnce) {
  Open("100:0:0");
  TestRead read;
  ASSERT_OK(Begin(&read, 0, 10));
  ASSERT_OK(Poll({&read, &read}));
  ASSERT_OK(Poll({&read}));
  ASSERT_OK(Abort({&read}));
  EXPECT_EQ(read.calls, 1);
  TestRead aborted;
  ASSERT_OK(Begin(&aborted, 0, 10));
  ASSERT_OK(Abort({&aborted}));
  ASSERT_OK(Poll({&aborted}));
  EXPECT_EQ(aborted.calls, 1);
}

TEST_F(SimulatedAsyncReadsTest, AFailedPollCanBeFollowedByAnAbort) {
  Open("100:0:0");
  TestRead read;
  ASSERT_OK(Begin(&read, 0, 10));
  base_->poll_fails = true;
  EXPECT_TRUE(Poll({&read}).IsIOError());
  EXPECT_EQ(read.calls, 0);
  ASSERT_OK(Abort({&read}));
  EXPECT_EQ(read.calls, 1);
  EXPECT_TRUE(read.status.IsAborted());
}

TEST_F(SimulatedAsyncReadsTest, HandlesOfOtherFilesArePassedOn) {
  Open("100:0:0");
  std::unique_ptr<FSRandomAccessFile> other_file;
  ASSERT_OK(fs_->NewRandomAccessFile(dir_ + "/other", FileOptions(),
                                     &other_file, /*dbg=*/nullptr));
  TestRead read;
  ASSERT_OK(Begin(&read, 0, 10));
  TestRead other;
  ASSERT_OK(Begin(&other, 20, 10, other_file.get()));
  ASSERT_OK(Poll({&read, &other}, 2));
  EXPECT_EQ(other.calls, 1);
  EXPECT_EQ(other.called_at, 0u);
  EXPECT_EQ(other.data, contents_.substr(20, 10));
  EXPECT_EQ(read.called_at, 100u);

  // A poll of other files alone is not changed.
  TestRead polled;
  TestRead aborted;
  aborted.has_request = false;
  ASSERT_OK(Begin(&polled, 20, 10, other_file.get()));
  ASSERT_OK(Begin(&aborted, 20, 10, other_file.get()));
  ASSERT_OK(Poll({&polled}, 17));
  EXPECT_EQ(base_->last_min_completions, 17u);
  ASSERT_OK(Abort({&aborted}));
  EXPECT_EQ(polled.calls, 1);
  EXPECT_EQ(aborted.calls, 1);
  EXPECT_EQ(clock_.NowMicros(), 100u);
  EXPECT_EQ(Report().stats.reads, 1u);
}

TEST_F(SimulatedAsyncReadsTest, ReadsOfCoroutinesWait) {
  Open("100:0:0");
  FSReadRequest request;
  std::string scratch(10, '\0');
  request.offset = 4;
  request.len = scratch.size();
  request.scratch = scratch.data();
  int calls = 0;
  EXPECT_FALSE(file_->SubmitReadAsync(
      request, IOOptions(), [&calls](FSReadRequest& /*done*/) { ++calls; },
      /*dbg=*/nullptr));
  EXPECT_EQ(calls, 1);
  ASSERT_OK(request.status);
  EXPECT_EQ(request.result.ToString(), contents_.substr(4, 10));
  EXPECT_EQ(clock_.NowMicros(), 100u);
}

// The default file system, with io_uring if there is one.
TEST_F(SimulatedAsyncReadsTest, RealAsynchronousReads) {
  std::vector<PathDevice> devices;
  ASSERT_OK(ParsePathDevices(dir_ + "/slow:100:0:0", &devices));
  SimulatedDeviceFileSystem fs(FileSystem::Default(), devices, &clock_);
  std::unique_ptr<FSRandomAccessFile> file;
  ASSERT_OK(fs.NewRandomAccessFile(dir_ + "/slow/file", FileOptions(), &file,
                                   /*dbg=*/nullptr));
  TestRead polled;
  IOStatus s = Begin(&polled, 100, 3000, file.get());
  if (!s.ok()) {
    EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
    ROCKSDB_GTEST_BYPASS("the default file system has no asynchronous reads");
    return;
  }
  TestRead aborted;
  ASSERT_OK(Begin(&aborted, 0, 10, file.get()));
  std::vector<void*> handles{polled.handle};
  ASSERT_OK(fs.Poll(handles, 1));
  EXPECT_EQ(polled.calls, 1);
  ASSERT_OK(polled.status);
  EXPECT_EQ(polled.data, contents_.substr(100, 3000));
  EXPECT_EQ(polled.called_at, 100u);
  handles = {aborted.handle};
  ASSERT_OK(fs.AbortIO(handles));
  EXPECT_EQ(aborted.calls, 1);
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
