//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/column_family.h"
#include "db/delta/delta_file_description.h"
#include "db/version_edit_handler.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

Status VersionEditHandlerPointInTime::VerifyDeltaFile(
    ColumnFamilyData* cfd, const DeltaFileDescription& file) {
  const std::string name =
      DeltaFileName(cfd->ioptions().cf_paths, file.number, file.path_id);
  uint64_t size = 0;
  Status s =
      version_set_->db_options()->fs->GetFileSize(name, IOOptions(), &size,
                                                  /*dbg=*/nullptr);
  if (s.ok() && size != file.size) {
    s = Status::Corruption("Size of " + name + " differs from the MANIFEST");
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
