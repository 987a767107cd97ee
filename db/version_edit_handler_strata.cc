//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/column_family.h"
#include "db/delta/delta_file_description.h"
#include "db/version_builder.h"
#include "db/version_edit_handler.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "logging/logging.h"
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

void VersionEditHandlerPointInTime::NoteUnlistedPath(
    const ColumnFamilyData& cfd) {
  const uint32_t cf_id = cfd.GetID();
  const Status& s = builders_.at(cf_id)->version_builder()->UnlistedPath();
  if (!s.ok()) {
    unlisted_paths_[cf_id] = s;
  } else if (unlisted_paths_.count(cf_id) > 0 && MayLeaveAtomicGroup(cf_id)) {
    unlisted_paths_.erase(cf_id);
  }
}

bool VersionEditHandlerPointInTime::MayLeaveAtomicGroup(uint32_t cf_id) {
  if (atomic_update_versions_.count(cf_id) == 0) {
    return true;
  }
  for (const auto& [id, version] : atomic_update_versions_) {
    // A version that is valid now is saved before an edit makes it invalid.
    if (version == nullptr &&
        !builders_.at(id)->version_builder()->ValidVersionAvailable()) {
      return false;
    }
  }
  return true;
}

Status VersionEditHandlerPointInTime::RefuseUnlistedPath(
    const ColumnFamilyData& cfd) {
  NoteUnlistedPath(cfd);
  const auto it = unlisted_paths_.find(cfd.GetID());
  if (it == unlisted_paths_.end()) {
    return Status::OK();
  }
  const Status& s = it->second;
  // Any other error stays when the path is needed no more.
  lacks_path_ = status_.ok() || lacks_path_;
  version_set_->strata()->NoteLackOfPath();
  ROCKS_LOG_ERROR(version_set_->db_options()->info_log, "%s",
                  s.ToString().c_str());
  // Only a recovery may end with a state that lacks lost files, so only a
  // recovery can give the path up.
  return allow_incomplete_valid_version_
             ? Status::CopyAppendMessage(
                   s, "",
                   ". If a path is lost, name an empty directory in its place: "
                   "best-efforts recovery then goes back to a state without "
                   "the files of that path")
             : s;
}

}  // namespace ROCKSDB_NAMESPACE
