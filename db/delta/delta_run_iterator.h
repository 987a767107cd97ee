//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>

#include "db/delta/delta_bucket_table.h"
#include "db/delta/delta_file_description.h"
#include "db/delta/delta_file_meta.h"
#include "db/delta/delta_version.h"
#include "db/pinned_iterators_manager.h"
#include "rocksdb/comparator.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class DeltaFileReader;
class DeltaStore;

// The operands of one run of a DeltaVersion, hidden ones too: of a recent file,
// in the buckets that see it; or of the extents of all buckets.
//
// A file has more than buckets see of it. Of a recent file, what a bucket has
// taken in since is in its extent as well; of a sorted file, buckets that were
// rewritten name another one. So each key's bucket is known at every step, and
// what lies between two buckets that see the file is sought past.
//
// Files are opened when the iterator comes to them. A file without entries that
// are wanted costs a look into its index.
//
// Not thread-safe.
class DeltaRunIterator final : public InternalIterator {
 public:
  // recent: nullptr for the extents.
  // REQUIRES: all outlive it; a Version that has `version` is pinned; there are
  // buckets, or a recent file is given; no async_io.
  DeltaRunIterator(const DeltaVersion& version, const DeltaStore& store,
                   const ReadOptions& read_options,
                   const DeltaFileMeta* recent);
  bool Valid() const override { return valid_; }
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(const Slice& target) override;
  void SeekForPrev(const Slice& target) override;
  void Next() override;
  void Prev() override;
  Slice key() const override { return iter_->key(); }
  Slice value() const override { return iter_->value(); }
  Status status() const override { return status_; }
  void SetPinnedItersMgr(PinnedIteratorsManager* pinned_iters_mgr) override;
  bool IsKeyPinned() const override {
    return IsPinning() && iter_->IsKeyPinned();
  }
  bool IsValuePinned() const override {
    return IsPinning() && iter_->IsValuePinned();
  }

 private:
  using Kind = DeltaFileDescription::Kind;
  using Position = DeltaBucketTable::Position;

  const DeltaBucketTable& buckets() const { return version_.Buckets(); }
  // A file that moves away when the iterator does is not pinned by itself.
  bool IsPinning() const {
    return pinned_iters_mgr_ != nullptr && pinned_iters_mgr_->PinningEnabled();
  }

  // The first bucket from `from` on, the last one up to it, that sees a file;
  // End() if there is none.
  Position NextSeeing(Position from) const;
  Position PrevSeeing(Position from) const;
  // Of a bucket that sees one.
  const DeltaFileMeta* FileOf(Position bucket) const;

  // Before a movement that does not depend on where the iterator is.
  void Reset();
  // Goes to a bucket that sees a file, or to all keys without buckets. False on
  // failure.
  bool Enter(Position bucket);
  bool EnterAll();
  bool Open(const DeltaFileMeta* file);
  void ReleaseIterator();
  // The first, the last entry of the bucket that was entered; or what follows,
  // precedes it, if there is none.
  void SeekToBegin();
  void SeekToEnd();

  // From the entry that the file's iterator is at: to the next one, the one
  // before, that its bucket sees.
  void FindForward();
  void FindBackward();
  // The bucket is through. key: where the file's iterator is; nullptr: at its
  // end. False if there is no other bucket, or on failure.
  bool LeaveForward(const Slice* key);
  bool LeaveBackward(const Slice* key);
  // The entry that the file's iterator is at is what this is at.
  void Take();

  const DeltaVersion& version_;
  const DeltaStore& store_;
  const ReadOptions& read_options_;
  const Comparator* const ucmp_;
  const DeltaFileMeta* const recent_;

  PinnedIteratorsManager* pinned_iters_mgr_ = nullptr;
  const DeltaFileMeta* file_ = nullptr;  // that iter_ is of
  const DeltaFileReader* reader_ = nullptr;
  std::unique_ptr<InternalIterator> iter_;
  bool valid_ = false;
  Status status_;

  // That was entered, and its bounds. Without buckets there are none.
  Position bucket_;
  Slice lower_;  // empty: none
  Slice upper_;
  bool has_upper_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
