//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/version_set_strata.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <string>
#include <unordered_set>
#include <utility>

#include "db/column_family.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_version.h"
#include "db/log_writer.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "logging/logging.h"

namespace ROCKSDB_NAMESPACE {

void VersionSetStrata::GetObsoleteDeltaFiles(
    std::vector<ObsoleteDeltaFile>* files, uint64_t min_pending_output,
    const autovector<uint64_t>& quarantined) {
  // Files of an edit whose outcome is unknown stay in the list. If they were
  // removed from it, the purge would not delete them and they would never
  // be found again.
  const std::unordered_set<uint64_t> kept(quarantined.begin(),
                                          quarantined.end());
  const auto pending = std::partition(
      obsolete_delta_files_.begin(), obsolete_delta_files_.end(),
      [&](const ObsoleteDeltaFile& file) {
        return file.number >= min_pending_output || kept.count(file.number) > 0;
      });
  files->insert(files->end(), std::make_move_iterator(pending),
                std::make_move_iterator(obsolete_delta_files_.end()));
  obsolete_delta_files_.erase(pending, obsolete_delta_files_.end());
}

template <typename Fn>
void VersionSetStrata::ForEachDeltaVersion(Fn fn) const {
  for (auto* cfd : *versions_->GetColumnFamilySet()) {
    if (!cfd->initialized()) {
      continue;
    }
    const Version* const end = cfd->dummy_versions();
    for (const Version* v = end->Next(); v != end; v = v->Next()) {
      if (v->storage_info()->delta() != nullptr) {
        fn(*v->storage_info()->delta());
      }
    }
  }
}

void VersionSetStrata::AddLiveDeltaFiles(std::vector<uint64_t>* files) const {
  ForEachDeltaVersion([files](const DeltaVersion& delta) {
    delta.ForEachFile([files](const DeltaVersion::FilePtr& file) {
      files->push_back(file->number());
    });
  });
}

void VersionSetStrata::RemoveLiveDeltaFiles(
    std::vector<ObsoleteDeltaFile>* files) const {
  if (files->empty()) {
    return;
  }
  ForEachDeltaVersion([files](const DeltaVersion& delta) {
    std::erase_if(*files, [&delta](const ObsoleteDeltaFile& file) {
      return delta.GetFile(file.number) != nullptr;
    });
  });
}

IOStatus VersionSetStrata::WriteDeltaSnapshot(const WriteOptions& write_options,
                                              ColumnFamilyData* cfd,
                                              SequenceNumber last_sequence,
                                              log::Writer* log) {
  const DeltaVersion& delta = *cfd->current()->storage_info()->delta();
  assert(delta.LargestSequence() <= last_sequence);
  for (DeltaEdit& piece : delta.SplitForSnapshot()) {
    VersionEdit edit;
    edit.SetColumnFamily(cfd->GetID());
    edit.SetDeltaEdit(std::move(piece));
    edit.SetLastSequence(last_sequence);
    std::string record;
    if (!edit.EncodeTo(&record)) {
      return IOStatus::Corruption("Unable to encode VersionEdit:" +
                                  edit.DebugString(true));
    }
    IOStatus io_s = log->AddRecord(write_options, record);
    if (!io_s.ok()) {
      return io_s;
    }
  }
  return IOStatus::OK();
}

void VersionSetStrata::NoteMissingEpochs() {
  lacks_epochs_ = false;
  for (ColumnFamilyData* cfd : *versions_->GetColumnFamilySet()) {
    if (cfd->IsDropped()) {
      continue;
    }
    // Without the option, which is immutable, folds only take operands of delta
    // files that already exist. The delta store does not tell: for a drain it
    // is created after the recovery. Other column families keep RocksDB's
    // behavior.
    const VersionStorageInfo& files = *cfd->current()->storage_info();
    const bool may_fold =
        cfd->ioptions().enable_delta_separation || files.delta() != nullptr;
    if (may_fold && files.HasMissingEpochNumber()) {
      lacks_epochs_ = true;
      ROCKS_LOG_INFO(versions_->db_options()->info_log,
                     "[%s] The MANIFEST lacks epoch numbers that folds of "
                     "delta files need: it is not reused",
                     cfd->GetName().c_str());
    }
  }
}

IOStatus VersionSetStrata::WriteWalBufferMark(const WriteOptions& write_options,
                                              log::Writer* log) {
  VersionEdit mark;
  mark.MarkWalBuffer();
  std::string record;
  mark.EncodeTo(&record);
  return log->AddRecord(write_options, record);
}

}  // namespace ROCKSDB_NAMESPACE
