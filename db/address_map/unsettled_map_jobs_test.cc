//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/unsettled_map_jobs.h"

#include <optional>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(UnsettledMapJobsTest, FirstJobsAreUnsettledUntilAllOfThemEnd) {
  UnsettledMapJobs jobs;
  EXPECT_EQ(jobs.NumBegun(), 0u);
  EXPECT_FALSE(jobs.HasAnyOfFirst(0));

  std::optional<UnsettledMapJobs::Job> first(&jobs);
  std::optional<UnsettledMapJobs::Job> second(&jobs);
  first->BeginCommit();
  second->BeginCommit();
  const uint64_t two = jobs.NumBegun();
  EXPECT_EQ(two, 2u);
  // A job that begins later is not among the first two.
  std::optional<UnsettledMapJobs::Job> third(&jobs);
  third->BeginCommit();
  first.reset();
  EXPECT_TRUE(jobs.HasAnyOfFirst(two));
  second.reset();
  EXPECT_FALSE(jobs.HasAnyOfFirst(two));
  EXPECT_TRUE(jobs.HasAnyOfFirst(jobs.NumBegun()));
  third.reset();
  EXPECT_FALSE(jobs.HasAnyOfFirst(jobs.NumBegun()));
  EXPECT_EQ(jobs.NumBegun(), 3u);
}

// Other jobs do not wait for a job that has not begun its commit, but readers
// know of it.
TEST(UnsettledMapJobsTest, JobIsAwaitedFromTheBeginningOfItsCommit) {
  UnsettledMapJobs jobs;
  std::optional<UnsettledMapJobs::Job> job(&jobs);
  std::optional<UnsettledMapJobs::Job> failed(&jobs);
  uint64_t as_of = 0;
  EXPECT_FALSE(jobs.IsSettled(&as_of));
  EXPECT_FALSE(jobs.HasAnyOfFirst(jobs.NumBegun()));
  job->BeginCommit();
  EXPECT_TRUE(jobs.HasAnyOfFirst(jobs.NumBegun()));
  job.reset();
  EXPECT_FALSE(jobs.HasAnyOfFirst(jobs.NumBegun()));
  EXPECT_FALSE(jobs.IsSettled(&as_of));
  failed.reset();
  EXPECT_TRUE(jobs.IsSettled(&as_of));
}

TEST(UnsettledMapJobsTest, ReadersNoticeAJobThatIsOver) {
  UnsettledMapJobs jobs;
  uint64_t before = 0;
  EXPECT_TRUE(jobs.IsSettled(&before));
  EXPECT_TRUE(jobs.WasSettledSince(before));
  std::optional<UnsettledMapJobs::Job> job(&jobs);
  EXPECT_FALSE(jobs.WasSettledSince(before));
  uint64_t meanwhile = 0;
  EXPECT_FALSE(jobs.IsSettled(&meanwhile));
  job.reset();
  // The job ran between the two calls, although it is over now.
  EXPECT_FALSE(jobs.WasSettledSince(before));
  uint64_t after = 0;
  EXPECT_TRUE(jobs.IsSettled(&after));
  EXPECT_TRUE(jobs.WasSettledSince(after));
}

TEST(UnsettledMapJobsTest, TheFirstFailureStays) {
  UnsettledMapJobs jobs;
  EXPECT_OK(jobs.failure());
  jobs.Fail(Status::IOError("first"));
  jobs.Fail(Status::IOError("second"));
  EXPECT_EQ(jobs.failure(), Status::IOError("first"));
  EXPECT_NE(jobs.failure().ToString().find("first"), std::string::npos);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
