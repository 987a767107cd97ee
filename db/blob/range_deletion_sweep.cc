//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob/range_deletion_sweep.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "db/blob/mapped_blob_index.h"
#include "db/blob/mapped_blobs.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "memory/arena.h"
#include "table/merging_iterator.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// How often the check is asked.
constexpr uint64_t kStride = 1024;

}  // namespace

RangeDeletionSweep::RangeDeletionSweep(ColumnFamilyData* cfd, Version* version,
                                       const FileOptions& file_options,
                                       std::function<Status()> check)
    : cfd_(cfd),
      version_(version),
      file_options_(file_options),
      check_(std::move(check)) {}

Status RangeDeletionSweep::Run(uint64_t max_removed,
                               std::vector<CommittedRangeDeletion>* deletions) {
  if (deletions->empty()) {
    return Status::OK();
  }
  const Comparator* const ucmp = cfd_->user_comparator();
  MappedBlobs* const blobs = cfd_->mapped_blobs();
  SequenceNumber smallest = kMaxSequenceNumber;
  for (const CommittedRangeDeletion& deletion : *deletions) {
    smallest = std::min(smallest, deletion.seq);
  }
  assert(smallest > 0);
  ReadOptions read_options(Env::IOActivity::kCompaction);
  read_options.total_order_seek = true;
  read_options.fill_cache = false;
  read_options.rate_limiter_priority = Env::IO_LOW;
  const std::string last_end = deletions->back().end;
  const Slice upper(last_end);
  read_options.iterate_upper_bound = &upper;
  Arena arena;
  MergeIteratorBuilder builder(&cfd_->internal_comparator(), &arena);
  version_->AddIterators(read_options, file_options_, &builder,
                         /*allow_unprepared_value=*/false,
                         /*read_seq=*/smallest - 1);
  ScopedArenaPtr<InternalIterator> iter(builder.Finish());

  const uint64_t removed_before = values_removed_;
  Status s;
  size_t done = 0;
  for (; s.ok() && iter != nullptr && done < deletions->size(); ++done) {
    CommittedRangeDeletion& deletion = (*deletions)[done];
    // Where the last range left it may be far enough, or the end.
    if (done == 0 ||
        (iter->Valid() &&
         ucmp->Compare(ExtractUserKey(iter->key()), deletion.start) < 0)) {
      iter->Seek(InternalKey(deletion.start, kMaxSequenceNumber,
                             kValueTypeForSeek)
                     .Encode());
    }
    for (; s.ok() && iter->Valid(); iter->Next()) {
      ParsedInternalKey key;
      s = ParseInternalKey(iter->key(), &key, /*log_err_key=*/false);
      if (!s.ok() || ucmp->Compare(key.user_key, deletion.end) >= 0) {
        break;
      }
      if (values_removed_ - removed_before >= max_removed) {
        deletion.start = key.user_key.ToString();
        break;
      }
      if (++entries_read_ % kStride == 0) {
        TEST_SYNC_POINT("RangeDeletionSweep::Run:Check");
        s = check_();
        if (!s.ok()) {
          deletion.start = key.user_key.ToString();
          break;
        }
      }
      const Slice value = iter->value();
      if (key.sequence >= deletion.seq || key.type != kTypeBlobIndex ||
          !MappedBlobIndex::IsMapped(value)) {
        continue;
      }
      MappedBlobIndex index;
      s = index.DecodeFrom(value);
      if (s.ok() &&
          blobs->map()->Remove(MapName{blobs->HashOf(key.user_key),
                                       key.sequence, index.birth})) {
        ++values_removed_;
      }
    }
    if (s.ok()) {
      s = iter->status();
    }
    if (!s.ok() || values_removed_ - removed_before >= max_removed) {
      break;
    }
  }
  if (iter == nullptr) {
    done = deletions->size();  // no files
  }
  deletions->erase(deletions->begin(),
                   deletions->begin() + static_cast<ptrdiff_t>(done));
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
