//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/status_message.h"

#include <utility>

#include "port/stack_trace.h"
#include "rocksdb/io_status.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(StatusMessageTest, OnlyTheMessageChanges) {
  for (const bool flag : {false, true}) {
    IOStatus error = IOStatus::NoSpace("before");
    error.SetRetryable(flag);
    error.SetDataLoss(!flag);
    error.SetScope(IOStatus::IOErrorScope::kIOErrorScopeFile);
    Status after =
        WithMessage(Status(error, Status::Severity::kSoftError), "after");
    EXPECT_TRUE(after.IsNoSpace());
    EXPECT_EQ(after.severity(), Status::Severity::kSoftError);
    EXPECT_EQ(MessageOf(after), "after");
    const IOStatus flags = status_to_io_status(std::move(after));
    EXPECT_EQ(flags.GetRetryable(), flag);
    EXPECT_EQ(flags.GetDataLoss(), !flag);
    EXPECT_EQ(flags.GetScope(), IOStatus::IOErrorScope::kIOErrorScopeFile);
  }
}

TEST(StatusMessageTest, StatusNeedNotHaveAMessage) {
  EXPECT_EQ(MessageOf(Status::OK()), "");
  EXPECT_EQ(MessageOf(Status::NoSpace()), "");
  const Status s = WithMessage(Status::NoSpace(), "text");
  EXPECT_TRUE(s.IsNoSpace());
  EXPECT_EQ(MessageOf(s), "text");
  const Status appended = AppendMessage(Status::NoSpace(), "in ", "file");
  EXPECT_TRUE(appended.IsNoSpace());
  EXPECT_EQ(MessageOf(appended), "in file");
  EXPECT_EQ(MessageOf(AppendMessage(s, ", ", "more")), "text, more");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
