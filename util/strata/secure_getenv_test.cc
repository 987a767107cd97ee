//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/secure_getenv.h"

#include <cstdlib>

#include "port/stack_trace.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {
constexpr const char* kName = "STRATA_SECURE_GETENV_TEST";
}  // namespace

TEST(SecureGetenvTest, ReturnsTheValue) {
  ASSERT_EQ(0, unsetenv(kName));
  EXPECT_EQ("", SecureGetenv(kName));
  ASSERT_EQ(0, setenv(kName, "", /*overwrite=*/1));
  EXPECT_EQ("", SecureGetenv(kName));
  ASSERT_EQ(0, setenv(kName, "a value", /*overwrite=*/1));
  EXPECT_EQ("a value", SecureGetenv(kName));
}

#ifndef NDEBUG
TEST(SecureGetenvTest, ProcessWithMoreRightsThanItsCallerSeesNothing) {
  ASSERT_EQ(0, setenv(kName, "a value", /*overwrite=*/1));
  SyncPoint::GetInstance()->SetCallBack(
      "SecureGetenv:HasMoreRightsThanItsCaller",
      [](void* arg) { *static_cast<bool*>(arg) = true; });
  SyncPoint::GetInstance()->EnableProcessing();
  EXPECT_EQ("", SecureGetenv(kName));
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  EXPECT_EQ("a value", SecureGetenv(kName));
}
#endif

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
