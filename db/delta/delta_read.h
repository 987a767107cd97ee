//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "db/delta/delta_bucket_table.h"
#include "db/delta/delta_cache.h"
#include "db/delta/delta_file_description.h"
#include "db/delta/delta_file_meta.h"
#include "db/delta/delta_operands.h"
#include "db/delta/delta_version.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "util/strata/overlapped_reads.h"

namespace ROCKSDB_NAMESPACE {

class DeltaStore;
class LookupKey;
class MergeContext;
struct ReadOptions;

// The sorted file with that number, nullptr if there is none. No reference to
// it is counted.
const DeltaFileMeta* FindSortedDeltaFile(const DeltaVersion& version,
                                         uint64_t number);

// What one key sees of a DeltaVersion: the recent files above the floor of its
// bucket, and the sorted files that the bucket names.
//
// Whoever looks for a key's operands or anchors looks here: a file that is read
// although the bucket has taken it in would have its operands applied twice.
//
// REQUIRES: the version outlives it.
class DeltaKeyView {
 public:
  using Kind = DeltaFileDescription::Kind;

  DeltaKeyView(const DeltaVersion& version, const Slice& user_key);

  // The newest first. Some may not have the key in their range.
  DeltaVersion::Files RecentFiles(Kind kind) const {
    return version_->RecentFilesAbove(kind, bucket_.floor);
  }
  // May be nullptr. All in it is older than what recent files have of the key.
  const DeltaFileMeta* SortedFile(Kind kind) const;

  // The newest anchor, also of a range, with a sequence number of that of `key`
  // or below; 0: there is none. It hides operands up to its own number.
  // covered: what files up to that epoch have need not be found.
  // REQUIRES: the user key is that of the view.
  Status NewestAnchor(const DeltaStore& store, const ReadOptions& read_options,
                      const LookupKey& key, SequenceNumber* seq,
                      uint64_t covered = 0) const;

  // Of the files that NewestAnchor() may have to read, the largest number that
  // all anchors in one of them reach: what is not above it is hidden, if the
  // file's filter is right. 0: there is no such file. Opens files.
  SequenceNumber LikelyAnchor(const DeltaStore& store,
                              const ReadOptions& read_options,
                              const LookupKey& key, uint64_t covered) const;
  // Begins to read what NewestAnchor() reads first.
  void BeginNewestAnchor(const ReadOptions& read_options, const LookupKey& key,
                         uint64_t covered, OverlappedReads* reads) const;

  // ---- For DeltaCache, which see.

  uint64_t floor() const { return bucket_.floor; }
  uint64_t bucket() const {
    return std::max(bucket_.extent_number, bucket_.anchors_number);
  }
  uint64_t Horizon() const;
  // The lowest first epoch of recent files that are not covered; UINT64_MAX if
  // all are.
  uint64_t Cut(uint64_t covered) const;
  // Nothing of the key has a sequence number above it.
  SequenceNumber LargestSequence() const;

 private:
  // Calls fn(file) for those that may have anchors of the key, as long as it
  // returns true.
  template <typename Fn>
  void ForAnchorFiles(const LookupKey& key, uint64_t covered, Fn fn) const;

  const DeltaVersion* version_;
  // As without buckets: what recent files have.
  DeltaBucketState bucket_;
};

// The operands of one key at one sequence number r, newest first: those in
// (a, r], where a is the newest anchor up to r.
//
// Files are read when it comes to them: the newest, until an operand is not
// above what the caller has found elsewhere. As long as no filter says that a
// file may have the key, no memory is taken, no anchor looked for, and nothing
// read but filters.
//
// Of one key, all operands of a file are newer than those of the next one. So
// they come in order without being sorted; if they do not, that is Corruption.
//
// What the delta cache has of the key takes the place of older files, and what
// was read to the end goes there.
//
// After ReadAhead() the device reads all files that may be needed while the
// caller looks for the base; Next() waits for it. Nothing is begun if all blocks
// are in the cache. That reads no more than Next() would if the base is older
// than all operands, which it mostly is: a base that was flushed after an
// operand has left an anchor above it.
//
// A point lookup has one in its MergeContext, where GetContext finds it.
//
// Used by one thread at a time.
class DeltaRead {
 public:
  using Operand = DeltaOperands::Operand;

  // key: with r. merge_context: has it as long as it lives; may be nullptr.
  // generation: of the Version's merged values; none: without the delta cache.
  // REQUIRES: all outlive it, and a Version that has `version` is pinned.
  DeltaRead(const DeltaVersion& version, const DeltaStore& store,
            const ReadOptions& read_options, const LookupKey& key,
            MergeContext* merge_context,
            std::optional<uint64_t> generation = std::nullopt);
  ~DeltaRead();
  DeltaRead(const DeltaRead&) = delete;
  DeltaRead& operator=(const DeltaRead&) = delete;

  // Begins to read the files that Next() will need if no entry above `above` is
  // found elsewhere, if the file system reads asynchronously (OverlappedReads).
  // Errors are reported by the Next() that needs the file.
  // REQUIRES: Next() was not called; the arguments of the constructor are not
  // modified while this object lives.
  void ReadAhead(SequenceNumber above);

  // Returns true while reads that ReadAhead() has begun are not finished.
  bool IsReadAhead() const {
    return overlapped_.has_value() && !overlapped_->empty();
  }

  // The newest operand that was not given out before, if its sequence number is
  // above `above`. False: there is none, or *status says why it cannot be told,
  // and nothing must be asked any more.
  // REQUIRES: `above` does not rise from one call to the next.
  bool Next(SequenceNumber above, Operand* operand, Status* status);

  // What keeps the values of operands in memory, those to come as well, until
  // its cleanups have run. They may be delegated after each Next().
  Cleanable* pins() { return operands_.pins(); }

 private:
  using FilePtr = DeltaVersion::FilePtr;

  void Begin();
  // Sets file_ to the next one that may have the key by its description.
  void FindFile();
  // There is nothing of the key in what was not looked at yet.
  void SkipRest();
  // Sets anchor_, and before it cached_.
  Status FindAnchor(const ReadOptions& options);
  // cached_ has what the file has.
  bool IsCached(const DeltaFileMeta& file) const {
    return cached_.found() && file.description().last_epoch <= cached_.epoch();
  }
  // In the place of what was not looked at yet.
  void TakeCached();
  // operands_ has all of the key, down to the anchor.
  void KeepInCache();
  // Is file_ to be read, if what is up to `above` does not count?
  bool NeedsFile(SequenceNumber above) const;
  // With another read tier than that of read_options_, it tries: if that is
  // Incomplete it can be called again, and goes on where it stopped.
  Status ReadFile(const DeltaFileMeta& file, const ReadOptions& options);
  // Calls fn(), which is not counted if it was a try, and Incomplete.
  template <typename Fn>
  Status Uncounted(const ReadOptions& options, Fn fn);
  // file_, and finds the next one.
  Status ReadNextFile(const ReadOptions& options);
  Status ReadFiles(SequenceNumber above, const ReadOptions& options);
  // Begins overlapped reads of file_, and of what follows, but for what is
  // probably hidden by an anchor that is not known yet.
  void BeginReads(SequenceNumber above);

  const DeltaVersion& version_;
  const DeltaStore& store_;
  const ReadOptions& read_options_;
  const LookupKey& key_;
  MergeContext* const merge_context_;
  DeltaCache* cache_;  // nullptr: it is not used

  // Set by ReadAhead() or the first Next().
  std::optional<DeltaKeyView> view_;
  // What was not looked at yet: file_, nullptr at the end; then these.
  const DeltaFileMeta* file_ = nullptr;
  const FilePtr* next_recent_ = nullptr;
  const FilePtr* end_recent_ = nullptr;
  const DeltaFileMeta* extent_ = nullptr;
  // The filter of file_ says that it may have the key.
  bool passed_filter_ = false;

  // 0 until a filter says that a file may have the key.
  SequenceNumber anchor_ = 0;
  bool anchor_is_known_ = false;
  // What the next file has must be below it.
  SequenceNumber ceiling_ = UINT64_MAX;
  DeltaOperands operands_;
  size_t next_operand_ = 0;

  // With cache_, from when the anchor was first looked for.
  bool has_asked_cache_ = false;
  DeltaCache::View cache_view_;
  DeltaCache::Ref cached_;
  bool took_cached_ = false;  // all that it has
  // How the reads from memory in ReadAhead() ended. If that is an error, file_
  // is the file that could not be read.
  Status ahead_status_;
  std::optional<OverlappedReads> overlapped_;
};

}  // namespace ROCKSDB_NAMESPACE
