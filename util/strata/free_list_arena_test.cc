//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/free_list_arena.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "port/lang.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kMaxKept = size_t{64} << 10;
// The largest size that is kept.
constexpr size_t kMaxSize = size_t{64} << 10;

}  // namespace

class FreeListArenaTest : public testing::Test {
 protected:
  char* Allocate(size_t size) {
    char* const memory = memory_.Allocate(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignof(std::max_align_t),
              0);
    memset(memory, 'x', size);
    return memory;
  }
  void Free(char* memory, size_t size) {
    memory_.Free(memory, size);
    EXPECT_LE(memory_.kept(), kMaxKept);
  }

  FreeListArena memory_{kMaxKept};
};

TEST_F(FreeListArenaTest, RoundUpWastesLittle) {
  size_t last = 0;
  std::set<size_t> sizes;
  for (size_t size = 1; size <= 3 * kMaxSize; ++size) {
    const size_t rounded = FreeListArena::RoundUp(size);
    ASSERT_GE(rounded, size);
    ASSERT_GE(rounded, last);
    ASSERT_LT(rounded - size, std::max<size_t>(16, (size + 63) / 64));
    ASSERT_EQ(rounded, FreeListArena::RoundUp(rounded));
    if (size > kMaxSize) {
      ASSERT_EQ(rounded, size);
    } else {
      sizes.insert(rounded);
    }
    last = rounded;
  }
  ASSERT_EQ(sizes.size(), 7 * 64);
}

// Each rounded size has pieces of its own.
TEST_F(FreeListArenaTest, EachRoundedSizeHasItsOwnPieces) {
  size_t next = 0;
  for (size_t size = 1; size <= kMaxSize; size = next) {
    const size_t rounded = FreeListArena::RoundUp(size);
    next = rounded + 1;
    FreeListArena memory(2 * kMaxSize);
    char* const first = memory.Allocate(size);
    char* const second = memory.Allocate(rounded);
    ASSERT_NE(static_cast<void*>(first), static_cast<void*>(second));
    memory.Free(first, size);
    ASSERT_EQ(memory.kept(), rounded);
    memory.Free(second, rounded);
    ASSERT_EQ(memory.kept(), 2 * rounded);
    for (const size_t other : {size - 1, next}) {
      if (other > 0) {
        char* const elsewhere = memory.Allocate(other);
        ASSERT_EQ(memory.kept(), 2 * rounded) << size << " " << other;
        delete[] elsewhere;
      }
    }
    ASSERT_EQ(static_cast<void*>(memory.Allocate(size)), second);
    ASSERT_EQ(static_cast<void*>(memory.Allocate(rounded)), first);
    ASSERT_EQ(memory.kept(), 0);
    delete[] first;
    delete[] second;
  }
}

TEST_F(FreeListArenaTest, KeepsNoMoreThanTheLimit) {
  std::vector<char*> all(1000);
  for (char*& memory : all) {
    memory = Allocate(1000);
  }
  for (char* const memory : all) {
    Free(memory, 1000);
  }
  const size_t rounded = FreeListArena::RoundUp(1000);
  ASSERT_EQ(memory_.kept(), kMaxKept / rounded * rounded);
  // Pieces of a size that is in use gradually replace those of a size that is
  // not requested any more.
  constexpr size_t kOthers = 20;
  std::vector<char*> others(7 * 64);
  for (char*& memory : others) {
    memory = Allocate(2000);
  }
  for (char* const memory : others) {
    Free(memory, 2000);
  }
  ASSERT_GT(memory_.kept(), kMaxKept - 2 * rounded);
  size_t kept = memory_.kept();
  std::vector<char*> again(kOthers);
  for (char*& memory : again) {
    memory = Allocate(2000);
    ASSERT_EQ(memory_.kept(), kept -= FreeListArena::RoundUp(2000));
  }
  for (char* const memory : again) {
    Free(memory, 2000);
  }
  // These pieces are too large for any arena, or for the limit of this one.
  kept = memory_.kept();
  Free(Allocate(kMaxSize + 1), kMaxSize + 1);
  ASSERT_EQ(memory_.kept(), kept);
  FreeListArena small(500);
  small.Free(small.Allocate(501), 501);
  ASSERT_EQ(small.kept(), 0);
  small.Free(small.Allocate(480), 480);
  ASSERT_EQ(small.kept(), 480);
  FreeListArena none(0);
  none.Free(none.Allocate(1), 1);
  ASSERT_EQ(none.kept(), 0);
}

TEST_F(FreeListArenaTest, ProcessHasOneArena) {
  FreeListArena* const process = FreeListArena::Process();
  ASSERT_EQ(process, FreeListArena::Process());
  process->Free(process->Allocate(333), 333);
#ifdef __SANITIZE_THREAD__
  ASSERT_EQ(process->kept(), 0);
#else
  ASSERT_EQ(process->kept() > 0, !kMustFreeHeapAllocations);
#endif
}

// No thread gets memory that another thread has.
TEST_F(FreeListArenaTest, ThreadsNeverShareAPiece) {
  constexpr int kNumThreads = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < kNumThreads; ++t) {
    threads.emplace_back([this, t] {
      Random rnd(301 + t);
      std::vector<std::pair<char*, size_t>> mine;
      const auto check = [t](const std::pair<char*, size_t>& piece) {
        for (size_t i = 0; i < piece.second; ++i) {
          if (piece.first[i] != 'a' + t) {
            return false;
          }
        }
        return true;
      };
      for (int i = 0; i < 40000; ++i) {
        if (mine.size() < 10 || (mine.size() < 60 && rnd.OneIn(2))) {
          const size_t size = 8 + rnd.Skewed(12);
          mine.emplace_back(memory_.Allocate(size), size);
          memset(mine.back().first, 'a' + t, size);
        } else {
          std::swap(mine[rnd.Uniform(static_cast<int>(mine.size()))],
                    mine.back());
          ASSERT_TRUE(check(mine.back()));
          Free(mine.back().first, mine.back().second);
          mine.pop_back();
        }
      }
      for (const auto& piece : mine) {
        ASSERT_TRUE(check(piece));
        Free(piece.first, piece.second);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ASSERT_GT(memory_.kept(), 0);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
