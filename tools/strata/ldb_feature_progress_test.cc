//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_feature_progress.h"

#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(LdbFeatureProgressTest, EachTenthIsPrinted) {
  std::vector<std::string> lines;
  LdbFeatureProgress progress(
      [&](const std::string& line) { lines.push_back(line); });
  FeaturePlan::Family family;
  family.name = "a";
  family.bytes = 1000;
  progress.Begin(family);
  TableFileCreationInfo info;
  info.cf_name = "a";
  for (int i = 0; i < 3; ++i) {
    info.file_size = 60;
    progress.OnTableFileCreated(info);
  }
  EXPECT_EQ(lines,
            (std::vector<std::string>{"[a] 60 bytes written, of about 1000",
                                      "[a] 180 bytes written, of about 1000"}));
  lines.clear();
  // Files of other families, and those that were not made, do not count.
  info.cf_name = "b";
  info.file_size = 5000;
  progress.OnTableFileCreated(info);
  info.cf_name = "a";
  info.status = Status::IOError();
  progress.OnTableFileCreated(info);
  EXPECT_TRUE(lines.empty());
  family.name = "b";
  family.bytes = 10;
  progress.Begin(family);
  progress.OnBlobFileCreated(BlobFileCreationInfo(
      "db", "b", "file", 1, BlobFileCreationReason::kCompaction, 3, 70,
      Status::OK(), "", ""));
  EXPECT_EQ(lines,
            std::vector<std::string>{"[b] 70 bytes written, of about 10"});
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
