//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/space_recovery.h"

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "port/stack_trace.h"
#include "rocksdb/system_clock.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Outcome = SpaceRecovery::Outcome;

// Calls fn(number of the attempt, from 1).
class TestClient : public SpaceRecovery::Client {
 public:
  explicit TestClient(std::function<Outcome(int)> fn) : fn_(std::move(fn)) {}

  Outcome Try() override {
    EXPECT_FALSE(is_trying_.exchange(true));
    const Outcome outcome = fn_(num_tries + 1);
    is_trying_ = false;
    ++num_tries;
    return outcome;
  }

  // The number of attempts that have ended.
  std::atomic<int> num_tries{0};

 private:
  const std::function<Outcome(int)> fn_;
  std::atomic<bool> is_trying_{false};
};

}  // namespace

class SpaceRecoveryTest : public testing::Test {
 protected:
  SpaceRecoveryTest() {
    EnableCallBack("SpaceRecovery::TryOne:Tried", [](void* retry_micros) {
      *static_cast<uint64_t*>(retry_micros) = 1000;
    });
  }
  ~SpaceRecoveryTest() override {
    recovery_.Close();
    DisableCallBacks();
  }

  // Waits until the thread has tried another client from beginning to end.
  void WaitForAnother() {
    TestClient other([](int) { return Outcome::kDone; });
    recovery_.Start(&other);
    EXPECT_TRUE(WaitUntil([&] { return other.num_tries > 0; }));
    recovery_.Cancel(&other);
  }

  SpaceRecovery recovery_{SystemClock::Default().get()};
};

TEST_F(SpaceRecoveryTest, ClientIsTriedUntilItIsDone) {
  TestClient client(
      [](int number) { return number < 3 ? Outcome::kAgain : Outcome::kDone; });
  recovery_.Start(&client);
  ASSERT_TRUE(WaitUntil([&] { return client.num_tries == 3; }));
  WaitForAnother();
  EXPECT_FALSE(recovery_.Cancel(&client));
  EXPECT_EQ(client.num_tries, 3);
}

TEST_F(SpaceRecoveryTest, ClientCanWaitAgain) {
  TestClient client([](int) { return Outcome::kDone; });
  for (int i = 1; i <= 3; ++i) {
    recovery_.Start(&client);
    ASSERT_TRUE(WaitUntil([&] { return client.num_tries == i; }));
    recovery_.Cancel(&client);
  }
}

TEST_F(SpaceRecoveryTest, WaitingClientDoesNotHoldUpOthers) {
  std::atomic<int> num_trying{0};
  const auto alone = [&](Outcome outcome) {
    EXPECT_EQ(++num_trying, 1);
    --num_trying;
    return outcome;
  };
  TestClient waiting([&](int) { return alone(Outcome::kAgain); });
  TestClient other([&](int) { return alone(Outcome::kDone); });
  recovery_.Start(&waiting);
  recovery_.Start(&other);
  EXPECT_TRUE(WaitUntil([&] { return other.num_tries == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return waiting.num_tries > 5; }));
  EXPECT_TRUE(recovery_.Cancel(&waiting));
  EXPECT_EQ(other.num_tries, 1);
}

TEST_F(SpaceRecoveryTest, ErrorDuringARecoveryIsNotLost) {
  TestClient* self = nullptr;
  TestClient client([&](int number) {
    if (number == 1) {
      // The DB has recovered, and the next write finds no space.
      recovery_.Start(self);
    }
    return Outcome::kDone;
  });
  self = &client;
  recovery_.Start(&client);
  EXPECT_TRUE(WaitUntil([&] { return client.num_tries == 2; }));
  WaitForAnother();
  EXPECT_EQ(client.num_tries, 2);
}

TEST_F(SpaceRecoveryTest, StartOfAWaitingClientHasItTriedAtOnce) {
  EnableCallBack("SpaceRecovery::TryOne:Tried", [](void* retry_micros) {
    *static_cast<uint64_t*>(retry_micros) = uint64_t{3600} * 1000 * 1000;
  });
  TestClient client(
      [](int number) { return number < 3 ? Outcome::kAgain : Outcome::kDone; });
  for (int i = 1; i <= 3; ++i) {
    recovery_.Start(&client);
    ASSERT_TRUE(WaitUntil([&] { return client.num_tries == i; }));
    // The attempt has ended altogether.
    WaitForAnother();
    EXPECT_EQ(client.num_tries, i);
  }
  EXPECT_FALSE(recovery_.Cancel(&client));
}

TEST_F(SpaceRecoveryTest, CancelWaitsForTheAttempt) {
  std::atomic<bool> is_trying{false};
  std::atomic<bool> cancels{false};
  EnableCallBack("SpaceRecovery::Cancel:Wait", [&](void*) { cancels = true; });
  TestClient client([&](int) {
    is_trying = true;
    EXPECT_TRUE(WaitUntil([&] { return cancels.load(); }));
    return Outcome::kAgain;
  });
  recovery_.Start(&client);
  ASSERT_TRUE(WaitUntil([&] { return is_trying.load(); }));
  EXPECT_TRUE(recovery_.Cancel(&client));
  EXPECT_EQ(client.num_tries, 1);
  WaitForAnother();
  EXPECT_EQ(client.num_tries, 1);
}

TEST_F(SpaceRecoveryTest, UnknownClientIsNotCanceled) {
  TestClient client([](int) { return Outcome::kDone; });
  EXPECT_FALSE(recovery_.Cancel(&client));
}

TEST_F(SpaceRecoveryTest, NothingIsTriedAfterClose) {
  TestClient client([](int) { return Outcome::kAgain; });
  recovery_.Start(&client);
  ASSERT_TRUE(WaitUntil([&] { return client.num_tries > 0; }));
  recovery_.Close();
  const int num_tries = client.num_tries;
  TestClient other([](int) { return Outcome::kDone; });
  recovery_.Start(&other);
  // Both count as waiting until they are canceled.
  EXPECT_TRUE(recovery_.Cancel(&client));
  EXPECT_TRUE(recovery_.Cancel(&other));
  EXPECT_EQ(client.num_tries, num_tries);
  EXPECT_EQ(other.num_tries, 0);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
