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
struct ReadOptions;

// Returns the sorted file with that number, or nullptr if there is none. Takes
// no reference to it.
const DeltaFileMeta* FindSortedDeltaFile(const DeltaVersion& version,
                                         uint64_t number);

// The part of a DeltaVersion that belongs to one key: the recent files above
// the floor of its bucket, and the sorted files that the bucket names.
//
// All searches for operands or anchors of a key must go through a view: if a
// recent file is read although the bucket has taken it in, its operands are
// applied twice.
//
// REQUIRES: the version outlives the view.
class DeltaKeyView {
 public:
  using Kind = DeltaFileDescription::Kind;

  DeltaKeyView(const DeltaVersion& version, const Slice& user_key);

  // Returns the recent files that the bucket sees, newest first. The key may be
  // outside the range of some of them.
  DeltaVersion::Files RecentFiles(Kind kind) const {
    return version_->RecentFilesAbove(kind, bucket_.floor);
  }
  // Returns the sorted file of the bucket, which may be nullptr. Its entries of
  // the key are older than those in recent files.
  const DeltaFileMeta* SortedFile(Kind kind) const;

  // Sets *seq to the sequence number of the newest anchor of the key (point or
  // range) that is not above that of `key`; 0 if there is none. The anchor
  // hides operands with sequence numbers up to its own.
  // covered: epoch; anchors in files of epochs up to it need not be found.
  // REQUIRES: the user key is that of the view.
  Status NewestAnchor(const DeltaStore& store, const ReadOptions& read_options,
                      const LookupKey& key, SequenceNumber* seq,
                      uint64_t covered = 0) const;

  // Estimates NewestAnchor() without reading entries: among the files that
  // NewestAnchor() may have to read and whose filters pass the key, returns the
  // largest of their smallest sequence numbers. If that filter is right,
  // operands up to this number are hidden. Returns 0 if there is no such file.
  // Opens files.
  SequenceNumber LikelyAnchor(const DeltaStore& store,
                              const ReadOptions& read_options,
                              const LookupKey& key, uint64_t covered) const;
  // Begins to read the blocks that NewestAnchor() will read first.
  void BeginNewestAnchor(const ReadOptions& read_options, const LookupKey& key,
                         uint64_t covered, OverlappedReads* reads) const;

  // ---- For DeltaCache, see there.

  uint64_t floor() const { return bucket_.floor; }
  uint64_t bucket() const {
    return std::max(bucket_.extent_number, bucket_.anchors_number);
  }
  uint64_t Horizon() const;
  // Returns the lowest first epoch of the recent files whose last epoch is
  // above `covered`; UINT64_MAX if there are none.
  uint64_t Cut(uint64_t covered) const;
  // Returns an upper bound of the sequence numbers of the key's entries.
  SequenceNumber LargestSequence() const;

 private:
  // Calls fn(file) for each file that may have anchors of the key, as long as
  // fn returns true.
  template <typename Fn>
  void ForAnchorFiles(const LookupKey& key, uint64_t covered, Fn fn) const;

  const DeltaVersion* version_;
  // The default state stands for no buckets: all recent files and no sorted
  // ones.
  DeltaBucketState bucket_;
};

// Reads the operands of one key at one sequence number r, newest first: those
// in (a, r], where a is the newest anchor up to r.
//
// Files are read lazily, the newest first, until an operand is not above the
// entry that the caller has found elsewhere. Until a filter says that a file
// may have the key, no memory is allocated, no anchor is looked up, and nothing
// but filters is read.
//
// All of the key's operands in one file are newer than those in the next file,
// so they are returned in order without sorting. Operands out of order are
// reported as Corruption.
//
// A delta cache entry of the key replaces the files that it covers. When all
// operands of the key have been read, they are inserted into the cache.
//
// After ReadAhead(), all files that may be needed are read in the background
// while the caller looks for the base; Next() waits for these reads. No read is
// begun if all blocks are in the block cache. Read-ahead reads no more than
// Next() would if the base is older than all operands, which is the usual case:
// a base that was flushed after an operand has left an anchor above it.
//
// A point lookup has a DeltaRead in its PointRead, where GetContext finds it.
//
// Not thread-safe.
class DeltaRead {
 public:
  using Operand = DeltaOperands::Operand;

  // key: user key with the sequence number r.
  // generation: generation of the merged values of the Version. Without it the
  // delta cache is not used.
  // REQUIRES: all arguments outlive this object, and a Version that has
  // `version` is pinned.
  DeltaRead(const DeltaVersion& version, const DeltaStore& store,
            const ReadOptions& read_options, const LookupKey& key,
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

  // Sets *operand to the newest operand that was not yet returned, if its
  // sequence number is above `above`. Returns false if there is none, or on
  // failure: then *status is the error, and Next() must not be called again.
  // REQUIRES: `above` does not increase from one call to the next.
  bool Next(SequenceNumber above, Operand* operand, Status* status);

  // Returns the Cleanable that keeps the values of operands in memory,
  // including those of later calls, until its cleanups have run. The cleanups
  // may be delegated after each Next().
  Cleanable* pins() { return operands_.pins(); }

 private:
  using FilePtr = DeltaVersion::FilePtr;

  void Begin();
  // Sets file_ to the next file that may have the key according to its
  // description; nullptr if there is none.
  void FindFile();
  // Skips all files that are left.
  void SkipRest();
  // Sets cached_ if the cache is used, and then anchor_.
  Status FindAnchor(const ReadOptions& options);
  // True if cached_ covers the file.
  bool IsCached(const DeltaFileMeta& file) const {
    return cached_.found() && file.description().last_epoch <= cached_.epoch();
  }
  // Takes the operands of cached_ instead of reading the files that are left.
  void TakeCached();
  // Inserts the operands into the cache, or confirms the entry there.
  // REQUIRES: operands_ has all operands of the key down to the anchor.
  void KeepInCache();
  // Returns true if file_ must be read when entries up to `above` do not count.
  bool NeedsFile(SequenceNumber above) const;
  // Reads the operands of the key in the file. If `options` has another read
  // tier than read_options_ and the result is Incomplete, it can be called
  // again and continues where it stopped.
  Status ReadFile(const DeltaFileMeta& file, const ReadOptions& options);
  // Calls fn(). If `options` has another read tier than read_options_ and the
  // result is Incomplete, the call is not counted in the perf context.
  template <typename Fn>
  Status Uncounted(const ReadOptions& options, Fn fn);
  // Reads file_ and finds the next file.
  Status ReadNextFile(const ReadOptions& options);
  // Calls ReadNextFile() as long as NeedsFile(above).
  Status ReadFiles(SequenceNumber above, const ReadOptions& options);
  // Begins overlapped reads of file_ and the files after it, except those that
  // are probably hidden by an anchor that is not known yet (LikelyAnchor()).
  void BeginReads(SequenceNumber above);

  const DeltaVersion& version_;
  const DeltaStore& store_;
  const ReadOptions& read_options_;
  const LookupKey& key_;
  DeltaCache* cache_;  // nullptr if not used

  // Set by ReadAhead() or the first Next().
  std::optional<DeltaKeyView> view_;
  // The files that were not read yet, in order: file_ (nullptr at the end),
  // [next_recent_, end_recent_), and extent_ (may be nullptr).
  const DeltaFileMeta* file_ = nullptr;
  const FilePtr* next_recent_ = nullptr;
  const FilePtr* end_recent_ = nullptr;
  const DeltaFileMeta* extent_ = nullptr;
  // True if the filter of file_ has passed the key.
  bool passed_filter_ = false;

  // Sequence number of the newest anchor. 0 until a filter says that a file may
  // have the key.
  SequenceNumber anchor_ = 0;
  bool anchor_is_known_ = false;
  // Operands of the next file must have lower sequence numbers.
  SequenceNumber ceiling_ = UINT64_MAX;
  DeltaOperands operands_;
  size_t next_operand_ = 0;

  // Set by the first FindAnchor() if cache_ is used.
  bool has_asked_cache_ = false;
  DeltaCache::View cache_view_;
  DeltaCache::Ref cached_;
  bool took_cached_ = false;  // all operands of cached_
  // Status of the reads from memory in ReadAhead(). If it is an error, file_ is
  // the file that could not be read.
  Status ahead_status_;
  std::optional<OverlappedReads> overlapped_;
};

}  // namespace ROCKSDB_NAMESPACE
