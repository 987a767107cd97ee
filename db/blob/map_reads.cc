//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob/map_reads.h"

#include <algorithm>

#include "db/blob/blob_read_group.h"
#include "db/blob/blob_source.h"
#include "db/column_family.h"

namespace ROCKSDB_NAMESPACE {

namespace {

ColumnFamilyData* FamilyOf(const KeyContext& key) {
  return static_cast<ColumnFamilyHandleImpl*>(key.column_family)->cfd();
}

}  // namespace

MapReads::MapReads(const ReadOptions& read_options, ReadBoundRegistry* bounds,
                   const Keys& keys)
    : keys_(keys), bound_(read_options, bounds) {
  for (size_t i = 0; i < keys.size(); ++i) {
    ColumnFamilyData* const cfd = FamilyOf(*keys[i]);
    if (cfd->mapped_blobs() == nullptr) {
      continue;
    }
    if (reads_.empty()) {
      reads_ = std::vector<std::optional<MapPointRead>>(keys.size());
    }
    reads_[i].emplace(cfd, *keys[i]->key, read_options, /*bounds=*/nullptr);
  }
}

MapReads::~MapReads() {
  if (active()) {
    for (KeyContext* key : keys_) {
      key->merge_context.map_read = nullptr;
    }
  }
}

void MapReads::StartAll() {
  for (auto& read : reads_) {
    if (read.has_value()) {
      read->Begin(bound_.taken());
    }
  }
}

void MapReads::Attach(size_t first, size_t n, const SuperVersion* super_version,
                      SequenceNumber sequence, ReadCallback* callback) {
  for (size_t i = first; i < std::min(first + n, reads_.size()); ++i) {
    if (reads_[i].has_value()) {
      KeyContext* const key = keys_[i];
      reads_[i]->Attach(super_version, sequence, callback, &key->merge_context,
                        &key->max_covering_tombstone_seq);
    }
  }
}

bool MapReads::Again(const Status& status) {
  bool again = false;
  for (size_t i = 0; i < reads_.size(); ++i) {
    if (reads_[i].has_value() && reads_[i]->NeedsRestart()) {
      again = true;
      if (!status.ok()) {
        *keys_[i]->s = status;
      }
    }
  }
  if (!again || !status.ok()) {
    return false;
  }
  for (KeyContext* key : keys_) {
    if (key->value != nullptr) {
      key->value->Reset();
    }
    if (key->columns != nullptr) {
      key->columns->Reset();
    }
    if (key->timestamp != nullptr) {
      key->timestamp->clear();
    }
    key->merge_context.Clear();
    key->max_covering_tombstone_seq = 0;
    key->key_exists = false;
    key->is_blob_index = false;
    key->get_context = nullptr;
    *key->s = Status::OK();
  }
  return true;
}

void MapReads::ReadBlobs(SystemClock* clock, BlobSource* source,
                         const ReadOptions& read_options,
                         autovector<BlobFileReadRequests>* requests) {
  BlobReadPool::RunAll(clock, requests->size(), [&](size_t i) {
    auto& [file_number, file_size, in_file] = (*requests)[i];
    std::sort(in_file.begin(), in_file.end(),
              [](const BlobReadRequest& a, const BlobReadRequest& b) {
                return a.offset < b.offset;
              });
    source->MultiGetBlobFromOneFile(read_options, file_number, file_size,
                                    in_file, /*bytes_read=*/nullptr);
  });
}

}  // namespace ROCKSDB_NAMESPACE
