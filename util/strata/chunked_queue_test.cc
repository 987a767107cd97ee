//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/chunked_queue.h"

#include <deque>
#include <memory>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class ChunkedQueueTest : public testing::Test {
 protected:
  using Queue = ChunkedQueue<std::shared_ptr<int>, 4>;
};

TEST_F(ChunkedQueueTest, EqualsAQueue) {
  Random rnd(301);
  Queue queue;
  std::deque<int> model;
  for (int i = 0; i < 10000; ++i) {
    if (rnd.OneIn(500)) {
      queue.Clear();
      model.clear();
    } else if (model.empty() || rnd.Uniform(100) < 52) {
      std::shared_ptr<int>* const added = queue.AddBack();
      ASSERT_EQ(*added, nullptr);
      *added = std::make_shared<int>(i);
      model.push_back(i);
    } else {
      queue.PopFront();
      model.pop_front();
    }
    ASSERT_EQ(queue.size(), model.size());
    ASSERT_EQ(queue.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(*queue.front(), model.front());
      const size_t at = rnd.Uniform(static_cast<int>(model.size()));
      ASSERT_EQ(*queue[at], model[at]);
    }
  }
}

TEST_F(ChunkedQueueTest, ElementsStayAtTheirAddresses) {
  Queue queue;
  std::deque<std::shared_ptr<int>*> added;
  for (int i = 0; i < 1000; ++i) {
    added.push_back(queue.AddBack());
    if (i % 3 == 2) {
      queue.PopFront();
      added.pop_front();
    }
    ASSERT_EQ(added.size(), queue.size());
    for (size_t k = 0; k < added.size(); k += 7) {
      ASSERT_EQ(added[k], &queue[k]);
    }
  }
}

TEST_F(ChunkedQueueTest, RemovedElementsAreFreed) {
  Queue queue;
  std::vector<std::weak_ptr<int>> values;
  for (int i = 0; i < 10; ++i) {
    std::shared_ptr<int>* const added = queue.AddBack();
    *added = std::make_shared<int>(i);
    values.push_back(*added);
  }
  for (size_t i = 0; i < 7; ++i) {
    ASSERT_FALSE(values[i].expired());
    queue.PopFront();
    ASSERT_TRUE(values[i].expired());
  }
  queue.Clear();
  for (const std::weak_ptr<int>& value : values) {
    ASSERT_TRUE(value.expired());
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
