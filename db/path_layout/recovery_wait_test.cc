//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/recovery_wait.h"

#include <memory>

#include "file/sst_file_manager_impl.h"
#include "file/strata/path_faults.h"
#include "options/db_options.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/sst_file_manager.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

TEST(RecoveryWaitTest, WaitsForSpaceAfterAFault) {
  DBOptions db_options;
  const ImmutableDBOptions none(db_options);
  db_options.sst_file_manager.reset(NewSstFileManager(Env::Default()));
  const ImmutableDBOptions options(db_options);
  PathFaults* const faults =
      static_cast<SstFileManagerImpl*>(db_options.sst_file_manager.get())
          ->path_faults();
  const int db = 1;
  const int other = 2;
  const IOStatus full = IOStatus::NoSpace("full");
  EXPECT_FALSE(IsRecoveryToWaitForSpace(options, &db, full));
  faults->Add(&db, "/a");
  EXPECT_TRUE(IsRecoveryToWaitForSpace(options, &db, full));
  EXPECT_FALSE(IsRecoveryToWaitForSpace(options, &other, full));
  EXPECT_FALSE(IsRecoveryToWaitForSpace(none, &db, full));
  EXPECT_FALSE(
      IsRecoveryToWaitForSpace(options, &db, IOStatus::IOError("lost")));
  EXPECT_FALSE(IsRecoveryToWaitForSpace(options, &db, IOStatus::OK()));
  // The device that has come back may be full.
  faults->Remove(&db, "/a");
  EXPECT_TRUE(IsRecoveryToWaitForSpace(options, &db, full));
  faults->RemoveAll(&db);
  EXPECT_FALSE(IsRecoveryToWaitForSpace(options, &db, full));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
