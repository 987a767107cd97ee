//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_meta.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Stands for a reader; these tests only pass it on.
struct FakeReader {
  explicit FakeReader(std::atomic<int>* count) : alive(count) { ++*alive; }
  ~FakeReader() { --*alive; }
  std::atomic<int>* const alive;
};

}  // namespace

class DeltaFileMetaTest : public testing::Test {
 protected:
  std::shared_ptr<DeltaFileReader> MakeReader() {
    auto fake = std::make_shared<FakeReader>(&alive_);
    return std::shared_ptr<DeltaFileReader>(
        fake, reinterpret_cast<DeltaFileReader*>(fake.get()));
  }

  std::shared_ptr<const DeltaFileMeta> MakeMeta(uint64_t number) {
    DeltaFileDescription description;
    description.number = number;
    description.smallest = "a";
    return DeltaFileMeta::Create(
        description, [this](const DeltaFileDescription& file,
                            std::shared_ptr<DeltaFileReader> reader) {
          released_.push_back(file.number);
          readers_.push_back(std::move(reader));
        });
  }

  std::atomic<int> alive_{0};
  std::vector<uint64_t> released_;
  std::vector<std::shared_ptr<DeltaFileReader>> readers_;
};

TEST_F(DeltaFileMetaTest, LastHolderReleasesTheFileOnce) {
  auto meta = MakeMeta(7);
  ASSERT_EQ(7u, meta->number());
  ASSERT_EQ("a", meta->description().smallest);
  std::vector<std::shared_ptr<const DeltaFileMeta>> holders(5, meta);
  meta.reset();
  while (holders.size() > 1) {
    holders.pop_back();
    ASSERT_TRUE(released_.empty());
  }
  holders.clear();
  ASSERT_EQ(std::vector<uint64_t>{7}, released_);
  // The file was not opened.
  ASSERT_EQ(nullptr, readers_[0]);
}

TEST_F(DeltaFileMetaTest, FileWithAReaderIsNotOpenedAgain) {
  DeltaFileDescription description;
  description.number = 7;
  description.opened = std::make_shared<DeltaFileDescription::Opened>();
  description.opened->reader = MakeReader();
  const DeltaFileReader* const expected = description.opened->reader.get();
  const auto on_release = [this](const DeltaFileDescription& file,
                                 std::shared_ptr<DeltaFileReader> reader) {
    released_.push_back(file.number);
    readers_.push_back(std::move(reader));
  };
  auto meta = DeltaFileMeta::Create(description, on_release);
  ASSERT_EQ(nullptr, description.opened->reader);
  ASSERT_EQ(expected, meta->OpenedReader());
  DeltaFileReader* reader = nullptr;
  ASSERT_OK(meta->GetReader(
      [](const DeltaFileDescription&, std::shared_ptr<DeltaFileReader>*) {
        return Status::Aborted();
      },
      &reader));
  ASSERT_EQ(expected, reader);
  // The reader is released like one that was opened later.
  meta.reset();
  ASSERT_EQ(std::vector<uint64_t>{7}, released_);
  ASSERT_EQ(expected, readers_[0].get());
  ASSERT_EQ(1, alive_.load());
}

TEST_F(DeltaFileMetaTest, ReaderIsFreedWithoutOnRelease) {
  auto meta = DeltaFileMeta::Create(DeltaFileDescription(), nullptr);
  DeltaFileReader* reader = nullptr;
  ASSERT_OK(meta->GetReader(
      [this](const DeltaFileDescription&, std::shared_ptr<DeltaFileReader>* r) {
        *r = MakeReader();
        return Status::OK();
      },
      &reader));
  ASSERT_EQ(1, alive_.load());
  meta.reset();
  ASSERT_EQ(0, alive_.load());
}

TEST_F(DeltaFileMetaTest, ReaderIsOpenedOnceAndReleasedWithTheFile) {
  auto meta = MakeMeta(8);
  ASSERT_EQ(nullptr, meta->OpenedReader());
  int calls = 0;
  const DeltaFileMeta::Opener open =
      [&](const DeltaFileDescription& file,
          std::shared_ptr<DeltaFileReader>* reader) {
        EXPECT_EQ(8u, file.number);
        if (++calls == 1) {
          return Status::IOError("not yet");
        }
        *reader = MakeReader();
        return Status::OK();
      };
  DeltaFileReader* reader = nullptr;
  ASSERT_TRUE(meta->GetReader(open, &reader).IsIOError());
  ASSERT_EQ(nullptr, reader);
  ASSERT_EQ(nullptr, meta->OpenedReader());
  // The error is not kept.
  ASSERT_OK(meta->GetReader(open, &reader));
  ASSERT_NE(nullptr, reader);
  ASSERT_EQ(reader, meta->OpenedReader());
  DeltaFileReader* again = nullptr;
  ASSERT_OK(meta->GetReader(open, &again));
  ASSERT_EQ(reader, again);
  ASSERT_EQ(2, calls);

  meta.reset();
  ASSERT_EQ(std::vector<uint64_t>{8}, released_);
  ASSERT_EQ(reader, readers_[0].get());
  ASSERT_EQ(1, alive_.load());
  readers_.clear();
  ASSERT_EQ(0, alive_.load());
}

TEST_F(DeltaFileMetaTest, ConcurrentReadersOpenTheFileOnce) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 50; ++round) {
    auto meta = MakeMeta(round + 1);
    std::atomic<int> opened{0};
    std::atomic<int> failures{0};
    std::atomic<bool> opening{false};
    // In every other round the first two attempts fail.
    const int to_fail = round % 2 == 0 ? 0 : 2;
    const DeltaFileMeta::Opener open =
        [&](const DeltaFileDescription&,
            std::shared_ptr<DeltaFileReader>* reader) {
          EXPECT_FALSE(opening.exchange(true));
          std::this_thread::yield();
          opening = false;
          if (failures < to_fail) {
            ++failures;
            return Status::IOError();
          }
          ++opened;
          *reader = MakeReader();
          return Status::OK();
        };
    std::vector<DeltaFileReader*> readers(kThreads);
    std::atomic<int> errors{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        while (true) {
          Status s = meta->GetReader(open, &readers[i]);
          if (s.ok()) {
            break;
          }
          ++errors;
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
    ASSERT_EQ(1, opened.load());
    ASSERT_EQ(to_fail, errors.load());
    for (DeltaFileReader* reader : readers) {
      ASSERT_EQ(meta->OpenedReader(), reader);
    }
    ASSERT_EQ(1, alive_.load());
    meta.reset();
    ASSERT_EQ(static_cast<size_t>(round) + 1, released_.size());
    readers_.clear();
    ASSERT_EQ(0, alive_.load());
  }
}

TEST_F(DeltaFileMetaTest, AnyThreadMayReleaseTheFile) {
  for (int round = 0; round < 200; ++round) {
    auto meta = MakeMeta(round + 1);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([holder = meta]() mutable {
        auto copy = holder;
        holder.reset();
        copy.reset();
      });
    }
    meta.reset();
    for (auto& thread : threads) {
      thread.join();
    }
    // From here on the thread objects hold no references.
    threads.clear();
    ASSERT_EQ(static_cast<size_t>(round) + 1, released_.size());
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
