//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/recovery_wait.h"

#include "db/strata/db_strata.h"
#include "file/sst_file_manager_impl.h"
#include "file/strata/path_faults.h"
#include "options/db_options.h"

namespace ROCKSDB_NAMESPACE {

bool IsRecoveryToWaitForSpace(const ImmutableDBOptions& options, const void* db,
                              const IOStatus& error) {
  if ((error.subcode() != IOStatus::SubCode::kNoSpace &&
       error.subcode() != IOStatus::SubCode::kSpaceLimit) ||
      options.sst_file_manager == nullptr) {
    return false;
  }
  return static_cast<SstFileManagerImpl*>(options.sst_file_manager.get())
      ->path_faults()
      ->HasHad(db);
}

Status FinishWalCutBeforeRecovery(DBStrata* strata, const Status& bg_error) {
  if (bg_error.severity() <= Status::Severity::kSoftError) {
    return Status::OK();
  }
  IOStatus s = status_to_io_status(strata->FinishWalCut());
  if (!s.ok()) {
    s.SetRetryable(true);
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
