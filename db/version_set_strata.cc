//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The parts of Version and VersionSet for reads with an address map, for reads
// of delta files, and for obsolete delta files.

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <iterator>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_read.h"
#include "db/delta/delta_store_iterator.h"
#include "db/delta/delta_version.h"
#include "db/log_writer.h"
#include "db/strata/point_read.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "memory/arena.h"
#include "rocksdb/wide_columns.h"
#include "table/get_context.h"

namespace ROCKSDB_NAMESPACE {

bool Version::FinishPointRead(const ReadOptions& read_options,
                              PointRead* point_read, GetContext* get_context,
                              bool resolve_blob, const bool& is_blob_index,
                              PinnableSlice* value,
                              PinnableWideColumns* columns, Status* status,
                              bool* key_exists) {
  if (!point_read->AfterFilesOfMap(get_context, status)) {
    return point_read->AfterFilesOfDeltas(get_context, status);
  }
  const MapPointRead& map = *point_read->map();
  if (status->IsNotFound() && key_exists != nullptr && map.stopped()) {
    *key_exists = false;
  }
  if (status->ok() && resolve_blob && is_blob_index &&
      (value != nullptr || columns != nullptr)) {
    PinnableSlice result;
    *status = GetBlob(
        read_options, map.record_name(), /*blob_index_slice=*/map.value(),
        /*prefetch_buffer=*/nullptr, &result, /*bytes_read=*/nullptr);
    if (status->IsIncomplete()) {
      get_context->MarkKeyMayExist();
    } else if (status->ok()) {
      map.FillRowCache(result);
      if (value != nullptr) {
        *value = std::move(result);
      } else {
        columns->SetPlainValue(std::move(result));
      }
    }
  }
  return true;
}

void Version::SkipDirectKeys(const FdWithKeyRange& file,
                             MultiGetRange* range) const {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    PointRead* const point_read = iter->merge_context.point_read;
    if (point_read != nullptr && point_read->Skips(file)) {
      range->SkipKey(iter);
    }
  }
}

Status Version::FinishMapReads(
    const ReadOptions& read_options, bool before_files, MultiGetRange* range,
    std::unordered_map<uint64_t, BlobReadContexts>* blob_ctxs) const {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    PointRead* const point_read = iter->merge_context.point_read;
    assert(point_read != nullptr && point_read->map() != nullptr);
    const MapPointRead& map = *point_read->map();
    if (before_files &&
        (map.floor() == 0 ||
         map.floor() < storage_info_.mapped_stats().lsm_ceiling)) {
      continue;
    }
    Status* const status = iter->s;
    if (!point_read->AfterFilesOfMap(iter->get_context, status)) {
      continue;
    }
    range->MarkKeyDone(iter);
    if (!status->ok()) {
      continue;
    }
    if (iter->is_blob_index) {
      BlobIndex blob_index;
      *status = blob_index.DecodeFrom(map.value());
      if (status->ok()) {
        (*blob_ctxs)[blob_index.file_number()].emplace_back(blob_index, &*iter);
      }
      continue;
    }
    range->AddValueSize(iter->value != nullptr ? iter->value->size()
                                               : iter->columns->payload_size());
    // Values found before the files are searched count, but do not end the
    // batch.
    if (!before_files &&
        range->GetValueSize() > read_options.value_size_soft_limit) {
      return Status::Aborted();
    }
  }
  return Status::OK();
}

Status Version::FinishDeltaReads(const ReadOptions& read_options,
                                 MultiGetRange* range) {
  for (auto iter = range->begin(); iter != range->end(); ++iter) {
    if (!iter->merge_context.point_read->AfterFilesOfDeltas(iter->get_context,
                                                            iter->s)) {
      continue;
    }
    // MultiGet() reports the counters of the remaining keys.
    iter->get_context->ReportCounters();
    range->MarkKeyDone(iter);
    if (!iter->s->ok()) {
      continue;
    }
    range->AddValueSize(iter->value != nullptr ? iter->value->size()
                                               : iter->columns->payload_size());
    if (range->GetValueSize() > read_options.value_size_soft_limit) {
      return Status::Aborted();
    }
  }
  return Status::OK();
}

Status Version::NewestDelta(const ReadOptions& read_options,
                            const LookupKey& key, SequenceNumber* seq) const {
  *seq = 0;
  Status s;
  if (storage_info_.delta() != nullptr) {
    DeltaRead read(*storage_info_.delta(), *cfd_->delta_store(), read_options,
                   key, merged_values_.number());
    DeltaRead::Operand newest;
    if (read.Next(/*above=*/0, &newest, &s)) {
      *seq = newest.seq;
    }
  }
  return s;
}

InternalIterator* Version::NewDeltaIterator(const ReadOptions& read_options,
                                            SequenceNumber read_seq,
                                            Arena* arena) const {
  if (storage_info_.delta() == nullptr) {
    return nullptr;
  }
  assert(cfd_->delta_store() != nullptr);
  void* const memory = arena->AllocateAligned(sizeof(DeltaStoreIterator));
  return new (memory)
      DeltaStoreIterator(*storage_info_.delta(), *cfd_->delta_store(),
                         cfd_->internal_comparator(), read_options, read_seq);
}

void VersionSet::GetObsoleteDeltaFiles(
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
void VersionSet::ForEachDeltaVersion(Fn fn) const {
  for (auto* cfd : *column_family_set_) {
    if (!cfd->initialized()) {
      continue;
    }
    const Version* const end = cfd->dummy_versions();
    for (const Version* v = end->next_; v != end; v = v->next_) {
      if (v->storage_info()->delta() != nullptr) {
        fn(*v->storage_info()->delta());
      }
    }
  }
}

void VersionSet::AddLiveDeltaFiles(std::vector<uint64_t>* files) const {
  ForEachDeltaVersion([files](const DeltaVersion& delta) {
    delta.ForEachFile([files](const DeltaVersion::FilePtr& file) {
      files->push_back(file->number());
    });
  });
}

void VersionSet::RemoveLiveDeltaFiles(
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

IOStatus VersionSet::WriteDeltaSnapshot(const WriteOptions& write_options,
                                        ColumnFamilyData* cfd,
                                        log::Writer* log) const {
  const DeltaVersion& delta = *cfd->current()->storage_info()->delta();
  assert(delta.LargestSequence() <= descriptor_last_sequence_);
  for (DeltaEdit& piece : delta.SplitForSnapshot()) {
    VersionEdit edit;
    edit.SetColumnFamily(cfd->GetID());
    edit.SetDeltaEdit(std::move(piece));
    // The same last sequence as in the other edits of the snapshot: it must
    // never decrease.
    edit.SetLastSequence(descriptor_last_sequence_);
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

}  // namespace ROCKSDB_NAMESPACE
