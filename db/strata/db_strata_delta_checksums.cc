//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <memory>

#include "db/column_family.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_verifier.h"
#include "db/delta/delta_version.h"
#include "db/strata/db_strata.h"
#include "db/version_set.h"
#include "file/filename.h"

namespace ROCKSDB_NAMESPACE {

Status DBStrata::VerifyDeltaChecksums(const ReadOptions& read_options,
                                      const SuperVersion& sv,
                                      bool use_file_checksum) {
  ColumnFamilyData* const cfd = sv.cfd;
  // With readers of its own, as for SST files: what others have in memory says
  // nothing of the file.
  DeltaTableFamily family(cfd->ioptions());
  family.id = cfd->GetID();
  family.name = cfd->GetName();
  family.file_options = db_->file_options_;
  family.db_session_id = db_->db_session_id_;
  family.io_tracer = db_->io_tracer_;
  const std::unique_ptr<DeltaTableFactory> tables =
      NewUncachedDeltaTables(family, sv.mutable_cf_options);
  Status s;
  sv.current->storage_info()->delta()->ForEachFile(
      [&](const DeltaVersion::FilePtr& ptr) {
        if (!s.ok()) {
          return;
        }
        const DeltaFileDescription& file = ptr->description();
        if (use_file_checksum) {
          s = db_->VerifyFullFileChecksum(
              file.file_checksum, file.file_checksum_func_name,
              DeltaFileName(cfd->ioptions().cf_paths, file.number,
                            file.path_id),
              read_options);
          return;
        }
        std::unique_ptr<DeltaFileReader> reader;
        s = DeltaFileReader::Open(*tables, read_options, file, &reader);
        if (s.ok()) {
          s = reader->VerifyChecksum(read_options);
        }
      });
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
