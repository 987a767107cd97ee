//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/faulty_outputs.h"

#include <memory>

#include "file/sst_file_manager_impl.h"
#include "file/strata/path_faults.h"
#include "options/cf_options.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_manager.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(FaultyOutputsTest, TheLayoutSaysWhichLevelsWait) {
  Options options;
  options.cf_paths = {{"/fast", 0}, {"/slow/", 0}};
  options.level_sst_path_ids = {0, 0, 1};
  options.sst_file_manager.reset(NewSstFileManager(Env::Default()));
  PathFaults* const faults =
      static_cast<SstFileManagerImpl*>(options.sst_file_manager.get())
          ->path_faults();
  const ImmutableOptions immutable(options);
  const MutableCFOptions with_layout(options);
  options.level_sst_path_ids.clear();
  const MutableCFOptions without_layout(options);
  const auto is_faulty = [&](int level) {
    return AreOutputsFaulty(immutable, with_layout, level);
  };

  EXPECT_FALSE(is_faulty(2));
  faults->Add(&options, "/slow");
  EXPECT_FALSE(is_faulty(0));
  EXPECT_FALSE(is_faulty(1));
  EXPECT_TRUE(is_faulty(2));
  EXPECT_TRUE(is_faulty(6));
  EXPECT_FALSE(AreOutputsFaulty(immutable, without_layout, 2));
  faults->Add(&options, "/fast");
  EXPECT_TRUE(is_faulty(0));
  faults->RemoveAll(&options);
  EXPECT_FALSE(is_faulty(2));

  options.sst_file_manager.reset();
  EXPECT_FALSE(AreOutputsFaulty(ImmutableOptions(options), with_layout, 2));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
