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

// Iterates over the operands of one run of a DeltaVersion, including hidden
// ones: of a recent file, in the buckets that see it; or of the extents of all
// buckets.
//
// A file has more operands than buckets see. For a recent file, buckets that
// have taken it in have its operands in their extents; for a sorted file,
// buckets that were rewritten name another file. So the iterator knows the
// bucket of each key, and seeks past the keys between two buckets that see the
// file.
//
// Files are opened when the iterator reaches them. A file without visible
// entries costs a search in its index.
//
// Not thread-safe.
class DeltaRunIterator final : public InternalIterator {
 public:
  // recent: the recent file; nullptr for the extents.
  // REQUIRES: all arguments outlive this object; a Version that has `version`
  // is pinned; there are buckets, or a recent file is given; no async_io.
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
  // Returns true if the iterators of files are pinned. Otherwise a file's
  // iterator may be destroyed when this iterator moves, and its entries do not
  // count as pinned.
  bool IsPinning() const {
    return pinned_iters_mgr_ != nullptr && pinned_iters_mgr_->PinningEnabled();
  }

  // Return the first bucket at or after `from`, and the last one at or before
  // it, that sees a file; End() if there is none.
  Position NextSeeing(Position from) const;
  Position PrevSeeing(Position from) const;
  // Returns the file that the bucket sees.
  // REQUIRES: the bucket sees a file
  const DeltaFileMeta* FileOf(Position bucket) const;

  // Prepares for a movement that does not depend on the current position.
  void Reset();
  // Enters a bucket that sees a file, or the range of all keys if there are no
  // buckets. Return false on failure.
  bool Enter(Position bucket);
  bool EnterAll();
  bool Open(const DeltaFileMeta* file);
  void ReleaseIterator();
  // Move to the first or last entry of the bucket that was entered, or to the
  // following or preceding entry of the run if there is none.
  void SeekToBegin();
  void SeekToEnd();

  // Move from the file's current entry to the next or previous entry that its
  // bucket sees, which may be the current one.
  void FindForward();
  void FindBackward();
  // Leave the bucket and enter the next or previous one. Return false if there
  // is no other bucket, or on failure.
  // key: key of the file's current entry; nullptr: at the end of the file.
  bool LeaveForward(const Slice* key);
  bool LeaveBackward(const Slice* key);
  // Makes the file's current entry the current entry of this iterator.
  void Take();

  const DeltaVersion& version_;
  const DeltaStore& store_;
  const ReadOptions& read_options_;
  const Comparator* const ucmp_;
  const DeltaFileMeta* const recent_;

  PinnedIteratorsManager* pinned_iters_mgr_ = nullptr;
  const DeltaFileMeta* file_ = nullptr;  // the file of iter_
  const DeltaFileReader* reader_ = nullptr;
  std::unique_ptr<InternalIterator> iter_;
  bool valid_ = false;
  Status status_;

  // The bucket that was entered, and its bounds. Without buckets there are
  // none.
  Position bucket_;
  Slice lower_;  // empty: none
  Slice upper_;
  bool has_upper_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
