//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_entry_stats.h"
#include "db/column_family.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_description.h"
#include "db/log_reader.h"
#include "db/manifest_ops.h"
#include "db/path_layout/missing_path_check.h"
#include "db/path_layout/open_paths.h"
#include "db/path_layout/unlisted_path_check.h"
#include "db/version_builder.h"
#include "db/version_edit_handler.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "logging/logging.h"
#include "rocksdb/file_system.h"
#include "test_util/sync_point.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

bool VersionEditHandler::NeedsFiles() const {
  return !no_error_if_files_missing_ &&
         (!skip_load_table_files_ ||
          version_set_->db_options()->open_files_async);
}

bool VersionEditHandler::MayHaveNewerState(const log::Reader& reader) const {
  FileSystem* const fs = version_set_->db_options()->fs.get();
  std::string manifest;
  uint64_t number = 0;
  uint64_t size = 0;
  return !GetCurrentManifestPath(version_set_->dbname_, fs, /*is_retry=*/false,
                                 &manifest, &number)
              .ok() ||
         number != version_set_->manifest_file_number() ||
         !fs->GetFileSize(manifest, IOOptions(), &size, /*dbg=*/nullptr).ok() ||
         size > reader.GetReadOffset();
}

Status VersionEditHandler::CheckMissingPaths(const log::Reader& reader) {
  const ImmutableDBOptions& options = *version_set_->db_options();
  if (!NeedsFiles() ||
      !OpenPaths(options.db_paths, column_families_).AreSeveral()) {
    return Status::OK();
  }
  TEST_SYNC_POINT("VersionEditHandler::CheckMissingPaths:Begin");
  MissingPathCheck check(options.fs.get());
  for (const ColumnFamilyData* cfd : *version_set_->GetColumnFamilySet()) {
    // A family that a worker does not compact.
    if (!cfd->IsDropped() &&
        !UnlistedPathCheck::IsExempt(cfd->ioptions().cf_paths)) {
      builders_.at(cfd->GetID())->version_builder()->AddNeededFiles(&check);
    }
  }
  const Status s = check.Run();
  if (s.ok()) {
    return s;
  }
  const bool accepts_empty =
      allow_incomplete_valid_version_ || !options.paranoid_checks;
  // A primary that has moved all files away from a path may have deleted them.
  if (check.AreAllEmpty() && !accepts_empty && MayHaveNewerState(reader)) {
    return Status::OK();
  }
  ROCKS_LOG_ERROR(options.info_log, "%s", s.ToString().c_str());
  if (check.AreAllEmpty() && accepts_empty) {
    ROCKS_LOG_WARN(
        options.info_log, "The database is opened without these files, as %s",
        allow_incomplete_valid_version_ ? "best_efforts_recovery is set"
                                        : "paranoid_checks is not set");
    return Status::OK();
  }
  // The state of an older MANIFEST is not the answer either.
  version_set_->strata()->NoteLackOfPath();
  return s;
}

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
             ? AppendMessage(
                   s, "",
                   ". If a path is lost, name an empty directory in its place: "
                   "best-efforts recovery then goes back to a state without "
                   "the files of that path")
             : s;
}

void VersionEditHandlerPointInTime::AbandonAtomicGroup() {
  in_atomic_group_ = false;
  for (const auto& [id, version] : atomic_update_versions_) {
    delete version;
  }
  atomic_update_versions_.clear();
  atomic_update_versions_missing_ = 0;
}

Status ManifestTailer::RefuseUnreadable(const VersionEdit& edit) {
  // Edits of families that the instance does not open do not matter to it.
  if (version_set_->GetColumnFamilySet()->GetColumnFamily(
          edit.GetColumnFamily()) == nullptr) {
    return Status::OK();
  }
  Status s = RefuseMapped(edit);
  if (s.ok()) {
    s = RefuseDelta(edit);
  }
  is_refused_ = !s.ok();
  return s;
}

void ManifestTailer::ForgetRefusal() {
  if (!is_refused_) {
    return;
  }
  is_refused_ = false;
  status_ = Status::OK();
  AbandonAtomicGroup();
  unlisted_families_.clear();
  for (const auto& [id, builder] : builders_) {
    // A MANIFEST does not add the default family, which cannot be dropped.
    if (id != version_set_->GetColumnFamilySet()->GetDefault()->GetID()) {
      unlisted_families_.insert(id);
    }
  }
}

void ManifestTailer::DropUnlistedFamilies() {
  for (const uint32_t id : unlisted_families_) {
    if (builders_.count(id) == 0) {
      continue;  // dropped by an edit of this MANIFEST
    }
    ColumnFamilyData* const cfd =
        version_set_->GetColumnFamilySet()->GetColumnFamily(id);
    ROCKS_LOG_INFO(version_set_->db_options()->info_log,
                   "[%s] is not in the new MANIFEST and is dropped",
                   cfd->GetName().c_str());
    VersionEdit drop;
    drop.SetColumnFamily(id);
    drop.DropColumnFamily();
    DestroyCfAndCleanup(drop);
  }
  unlisted_families_.clear();
}

ColumnFamilyData* ManifestTailer::DestroyCfAndCleanup(const VersionEdit& edit) {
  // A later attempt may hand out cfds_changed_ after the last handle of the
  // column family was destroyed.
  cfds_changed_.erase(version_set_->GetColumnFamilySet()->GetColumnFamily(
      edit.GetColumnFamily()));
  return VersionEditHandlerPointInTime::DestroyCfAndCleanup(edit);
}

Status ManifestTailer::OnAtomicGroupReplayBegin() {
  DropUnlistedFamilies();
  return VersionEditHandlerPointInTime::OnAtomicGroupReplayBegin();
}

}  // namespace ROCKSDB_NAMESPACE
