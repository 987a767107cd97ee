//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_file_removal.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/address_map/prepare_blob_index.h"
#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/table_cache.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "test_util/sync_point.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr size_t kNamesPerBatch = 256;
constexpr size_t kRemovalReadahead = 2 << 20;

using Files = std::vector<FileMetaData*>;

// True if the file has mapped values, or if a compaction may be moving its
// values into the map.
bool MayHaveMapped(const FileMetaData& file) {
  return file.blob_refs.mapped.Any() || file.being_compacted;
}

// True if a file of this sorted level that is not in `leaving` may have mapped
// values and overlaps the key range of `file`.
bool Overlaps(const Files& level, const Comparator* ucmp,
              const FileMetaData& file,
              const std::set<FileMetaData*>& leaving) {
  auto it =
      std::lower_bound(level.begin(), level.end(), file.smallest.user_key(),
                       [ucmp](const FileMetaData* f, const Slice& key) {
                         return ucmp->Compare(f->largest.user_key(), key) < 0;
                       });
  for (; it != level.end() && ucmp->Compare((*it)->smallest.user_key(),
                                            file.largest.user_key()) <= 0;
       ++it) {
    if (leaving.count(*it) == 0 && MayHaveMapped(**it)) {
      return true;
    }
  }
  return false;
}

// True if a file that is not in `leaving` may have older versions of the file's
// keys with values in the map. Such versions are in lower levels; in the file's
// own level, only versions of its last key may continue in the next file.
// REQUIRES: for all files in lower levels, and for those to the right in this
// level, it has been decided whether they stay.
bool HidesMapped(const VersionStorageInfo& version, const Comparator* ucmp,
                 int level, size_t position,
                 const std::set<FileMetaData*>& leaving) {
  const Files& files = version.LevelFiles(level);
  const FileMetaData& file = *files[position];
  if (position + 1 < files.size()) {
    FileMetaData* const next = files[position + 1];
    if (leaving.count(next) == 0 && MayHaveMapped(*next) &&
        ucmp->Compare(next->smallest.user_key(), file.largest.user_key()) ==
            0) {
      return true;
    }
  }
  for (int below = level + 1; below < version.num_non_empty_levels(); ++below) {
    if (Overlaps(version.LevelFiles(below), ucmp, file, leaving)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::unique_ptr<MappedFileRemoval> MappedFileRemoval::Begin(
    ColumnFamilyData* cfd, const std::string& dbname,
    std::set<FileMetaData*>* files, VersionEdit* edit) {
  if (cfd->address_map_store() == nullptr || files->empty()) {
    return nullptr;
  }
  const VersionStorageInfo& version = *cfd->current()->storage_info();
  VersionEdit remaining;
  remaining.MarkForegroundOperation();
  remaining.SetColumnFamily(cfd->GetID());
  // Proceeds from the bottom level upwards, and from right to left, as a file
  // that stays may force others to stay.
  for (int level = version.num_non_empty_levels() - 1; level > 0; --level) {
    const Files& level_files = version.LevelFiles(level);
    for (size_t i = level_files.size(); i-- > 0;) {
      FileMetaData* const file = level_files[i];
      if (files->count(file) == 0) {
        continue;
      }
      if (HidesMapped(version, cfd->user_comparator(), level, i, *files)) {
        file->being_compacted = false;
        files->erase(file);
      } else {
        remaining.DeleteFile(level, file->fd.GetNumber());
      }
    }
  }
  if (edit->ChangesMergedValues()) {
    remaining.ChangeMergedValues();
  }
  *edit = std::move(remaining);
  if (files->empty()) {
    return nullptr;
  }
  return std::unique_ptr<MappedFileRemoval>(
      new MappedFileRemoval(cfd, dbname, *files));
}

MappedFileRemoval::MappedFileRemoval(ColumnFamilyData* cfd,
                                     const std::string& dbname,
                                     const std::set<FileMetaData*>& files)
    : cfd_(cfd),
      blobs_(cfd->address_map_store()),
      version_(cfd->current()),
      files_(files),
      names_(std::make_unique<DeferredRemovals>(
          DeferredRemovals::kDefaultCap,
          blobs_->SpillFiles(version_, dbname))) {}

Status MappedFileRemoval::Scan(
    const std::function<void(const MapName&, bool)>& fn) {
  ReadOptions read_options;
  read_options.total_order_seek = true;
  read_options.fill_cache = false;
  read_options.readahead_size = kRemovalReadahead;
  Status s;
  for (const FileMetaData* file : files_) {
    if (!file->blob_refs.mapped.Any()) {
      continue;
    }
    std::unique_ptr<InternalIterator> iter(cfd_->table_cache()->NewIterator(
        read_options, *cfd_->soptions(), cfd_->internal_comparator(), *file,
        /*range_del_agg=*/nullptr, version_->GetMutableCFOptions(),
        /*table_reader_ptr=*/nullptr, /*file_read_hist=*/nullptr,
        TableReaderCaller::kUncategorized, /*arena=*/nullptr,
        /*skip_filters=*/true, /*level=*/-1,
        /*max_file_size_for_l0_meta_pin=*/0,
        /*smallest_compaction_key=*/nullptr,
        /*largest_compaction_key=*/nullptr,
        /*allow_unprepared_value=*/true));
    for (iter->SeekToFirst(); s.ok() && iter->Valid(); iter->Next()) {
      ParsedInternalKey key;
      s = ParseInternalKey(iter->key(), &key, /*log_err_key=*/false);
      if (!s.ok() || key.type != kTypeBlobIndex) {
        continue;
      }
      s = PrepareBlobIndex(iter.get(), &key);
      if (!s.ok() || !MappedBlobIndex::IsMapped(iter->value())) {
        continue;
      }
      MappedBlobIndex index;
      s = index.DecodeFrom(iter->value());
      if (s.ok()) {
        fn(MapName{blobs_->HashOf(key.user_key), key.sequence, index.birth},
           index.mode == MappedBlobIndex::Mode::kDirect);
      }
    }
    if (s.ok()) {
      s = iter->status();
    }
    if (!s.ok()) {
      break;
    }
  }
  return s;
}

Status MappedFileRemoval::Publish() {
  std::vector<MapName> batch;
  const auto hand_over = [&] {
    names_->Add(batch.data(), batch.size());
    batch.clear();
  };
  Status s = Scan([&](const MapName& name, bool) {
    // Entries that are not in the map are dead.
    if (blobs_->map()->FindByName(name, /*pin=*/false).found) {
      batch.push_back(name);
      if (batch.size() == kNamesPerBatch) {
        hand_over();
      }
    }
  });
  hand_over();
  if (s.ok()) {
    s = names_->status("the deletion of files");
  }
  if (s.ok()) {
    unsettled_.emplace(blobs_->unsettled_jobs());
    // The names are demoted before the edit.
    unsettled_->BeginCommit();
    s = names_->Demote(blobs_->map());
    blobs_->retired_removals()->Limit(names_.get());
  }
  TEST_SYNC_POINT("MappedFileRemoval::Publish:Demoted");
  TEST_SYNC_POINT_CALLBACK("MappedFileRemoval::Publish:Status", &s);
  return s;
}

void MappedFileRemoval::Retire() {
  assert(committed_);
  blobs_->Retire(std::move(names_), cfd_->current()->GetVersionNumber());
  unsettled_.reset();
}

Status MappedFileRemoval::Settle() {
  assert(!committed_);
  if (!unsettled_.has_value()) {
    return Status::OK();  // no name was demoted
  }
  Status s = Scan([&](const MapName& name, bool direct) {
    // An entry that is versioned in the file, and was direct in the map because
    // of a rename, is in the file's filter and may stay versioned.
    if (direct) {
      blobs_->map()->Rename(name);
    }
  });
  TEST_SYNC_POINT_CALLBACK("MappedFileRemoval::Settle:Status", &s);
  if (!s.ok()) {
    s = AppendMessage(
        s, ": ",
        "column family " + cfd_->GetName() +
            ": the keys of files that could not be deleted cannot be read, so "
            "the address map lacks their values. Open the DB again to read "
            "them");
    blobs_->RefuseReads(s);
  }
  unsettled_.reset();
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
