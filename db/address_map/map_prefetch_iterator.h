//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "db/address_map/map_prefetch_queue.h"
#include "db/address_map/mapped_value_reader.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "util/strata/pass_through_iterator.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class MapValueIterator;
class PinnableSlice;
class ScanLengthHistogram;
class SliceTransform;

// Reads ahead the values that a scan is about to need, while the scan proceeds
// (ReadOptions::blob_prefetch_count).
//
// When the scan has made a few steps in one direction, the child iterator is
// moved ahead of it. The child's entries are copied into a queue, and
// BlobReadPool reads the values that the scan is expected to ask for. The
// number of these reads doubles each time up to the limit. If the typical
// length of the column family's scans is known (ScanLengthHistogram), the child
// is moved ahead from the start, but not beyond that length. This iterator is
// positioned at the front of the queue. DBIter asks for a value that was read
// ahead by the bound index that this iterator returned as the entry's value, as
// it asks for any other value.
//
// Which value of a key that is depends on the direction. Forward, the first
// entry of a key that is visible decides it. Backward, the versions come from
// old to new. The newest one that the queue has is the *candidate*, and is read
// when the child has reached the next key. DBIter seeks a key of which it has
// passed max_sequential_skip_in_iterations versions. The queue ends there, as
// it does not survive a seek.
//
// While the values come from the page cache, the reads are not submitted
// (ReadAheadGauge), unless the user set the limit. The scanning thread then
// does them, with the values that are neighbors in a file in one read, when it
// needs the first of them.
//
// Invariants:
// 1. If the queue is empty, this iterator is at the child's position. Otherwise
//    the child is at the entry after the last one in the queue, in the
//    direction of the scan.
// 2. Which values are read ahead is a guess. A value that was not read ahead,
//    or whose read found nothing, is read when it is asked for, as without this
//    class.
// 3. The queue serves a seek only if it was filled by a forward scan, and the
//    child would use the same files and have the same upper bound as then.
// 4. The queue does not survive Prepare(), which takes the child's position.
// 5. While pinning is enabled, a key or value that was returned stays in memory
//    when the iterator moves (MapPrefetchQueue::SetPinnedItersMgr()). DBIter
//    moves backward with pinning enabled.
//
// A change of direction and a seek beyond the queue do not use the queue. With
// ReadOptions::pin_data, pinning is always enabled, so a seek of DBIter within
// a backward move looks like one of the user, and the scan begins again.
class MapPrefetchIterator final : public PassThroughIterator,
                                  public MappedValueReader {
 public:
  // Returns false if the iterator would only pass calls through to the child.
  static bool IsWanted(const ReadOptions& read_options);

  // max_skipped_versions: max_sequential_skip_in_iterations.
  // REQUIRES: those of MapIterators::Wrap().
  MapPrefetchIterator(ColumnFamilyData* cfd, const ReadOptions& read_options,
                      SequenceNumber sequence,
                      const SliceTransform* prefix_extractor,
                      uint64_t max_skipped_versions, MapValueIterator* child);
  ~MapPrefetchIterator() override;

  MappedValueReader* mapped_value_reader() override { return this; }
  // Waits for the read if the value is read ahead.
  Status FetchMappedValue(const Slice& user_key, const Slice& value,
                          PinnableSlice* result) override;

  bool Valid() const override { return !queue_.empty() || child()->Valid(); }
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(const Slice& target) override;
  void SeekForPrev(const Slice& target) override;
  void Next() override;
  bool NextAndGetResult(IterateResult* result) override;
  void Prev() override;
  Slice key() const override;
  Slice user_key() const override { return ExtractUserKey(key()); }
  Slice value() const override;
  uint64_t write_unix_time() const override;
  Status status() const override;
  bool PrepareValue() override;
  bool MayBeOutOfLowerBound() override;
  IterBoundCheck UpperBoundCheckResult() override;
  void SetPinnedItersMgr(PinnedIteratorsManager* pinned_iters_mgr) override;
  bool IsKeyPinned() const override;
  bool IsValuePinned() const override;
  void SetRangeDelReadSeqno(SequenceNumber read_seqno) override;
  // The next call that moves the iterator must be a seek, as it must be with
  // the iterators of RocksDB.
  void Prepare(const MultiScanArgs* scan_opts) override;

  // Returns the maximum number of reads in progress.
  size_t TEST_Window() const { return window_; }

 private:
  // Number of steps before the queue is started, so that short scans do not
  // read values that they do not need.
  static constexpr size_t kPlainSteps = 2;
  static constexpr size_t kFirstWindow = 2;
  static constexpr size_t kAutoWindow = 64;
  // Maximum window if it is known that most of the reads will be used.
  static constexpr size_t kKnownWindow = 128;
  // Maximum size of the values being read. Less while many scans are in
  // progress (ReadAheadBudget).
  static constexpr uint64_t kMaxBytes = 4 << 20;
  // Maximum number of consecutive entries without a read that Fill() adds.
  static constexpr size_t kMaxUnread = 32;
  // Number of entries by which the queue is filled ahead of the guesses of a
  // forward scan, so that the lookups of their values find their memory in the
  // CPU's caches.
  static constexpr size_t kLookups = 8;
  // Maximum size of the inline values that one Fill() adds.
  static constexpr size_t kMaxInlineBytes = 256 << 10;

  // Ends the current scan and resets the state of the iterator.
  void Restart();
  void DropQueue();
  // Adds the length of the scan that ends to the histogram.
  void NoteLength();
  // Starts a scan after a seek of the child.
  // target: user key; nullptr for SeekToFirst() and SeekToLast().
  void Begin(bool forward, const Slice* target);
  // Returns the number of reads that may be in progress at the current position
  // of the scan.
  size_t NextWindow() const;
  // Returns true if a seek ignores files whose filters do not have the prefix
  // of its target.
  bool UsesPrefixFilters() const;
  // Returns true if the queue may serve a seek to user_key (invariant 3).
  // REQUIRES: the queue is not empty.
  bool IsFilledFor(const Slice& user_key) const;
  void NoteUpperBound();
  // Returns true if a seek from `key` to `target` continues the scan: DBIter
  // seeks to skip many versions of the key that are hidden or too new.
  bool IsOnward(const Slice& key, const Slice& target) const;
  // Moves forward to the first entry at or after the target. Returns false if
  // the child must seek; part of the queue may have been dropped then.
  // REQUIRES: the queue is not empty.
  bool SeekInQueue(const Slice& target);
  // Returns true if DBIter, while it moves backward, has many versions of a key
  // to pass, and seeks the key for that. DBIter has pinning enabled then. The
  // result is always false with ReadOptions::pin_data.
  bool IsWithinBackwardMove() const;
  // Moves by one entry in the other direction than so far.
  void Turn();
  // Moves by one entry in the direction of the scan.
  // REQUIRES: the queue is empty.
  void PlainStep();
  void MoveChild();
  void PopFront();
  void FillIfLow();
  // Stores the prefix of the scan if the scan ends with that prefix.
  // REQUIRES: the queue is empty; the child is positioned in the scan.
  void NotePrefix();
  void NotePrefixOf(const Slice& user_key);
  bool StandsOnMapped() const;
  // Moves the child ahead until the window is used up.
  void Fill();
  // Appends the child's entry to the queue, and moves the child by one entry.
  // Returns false if the entry does not belong to the scan or has an error.
  bool AppendNext();
  // Adds the value to the reads if DBIter will ask for it.
  // REQUIRES: Guess() was called for the slots before this one.
  void Guess(MapPrefetchQueue::Slot* slot);
  // The same for a backward scan: adds the candidate to the reads if the slot
  // has another key, and makes the slot the candidate if it can be one.
  // slot: the last entry of the queue.
  void GuessBackward(MapPrefetchQueue::Slot* slot);
  void ReadCandidate();
  // Returns true if the child has no other version of the candidate's key.
  bool IsLastVersion() const;
  bool IsInRange(const Slice& user_key) const;

  MapValueIterator* const values_;  // the child
  ColumnFamilyData* const cfd_;
  const ReadOptions& read_options_;
  SequenceNumber sequence_;
  const SliceTransform* const prefix_extractor_;
  const uint64_t max_skipped_versions_;
  const size_t max_window_;
  // nullptr if the user set the limit.
  ScanLengthHistogram* const lengths_;

  bool is_forward_ = true;  // direction of the scan
  MapPrefetchQueue queue_;
  // Number of slots at the end of the queue for which Guess() was not called.
  size_t num_unguessed_ = 0;
  // A slot of the queue of a backward scan, or nullptr.
  MapPrefetchQueue::Slot* candidate_ = nullptr;
  uint64_t max_bytes_ = kMaxBytes;  // when the queue was filled last
  // Number of mapped values that the scan has left, without that of the left
  // entry of the queue.
  size_t steps_ = 0;
  bool began_on_mapped_ = false;
  size_t window_ = 0;
  // Forward: the last key whose newest visible value is in the queue. Backward:
  // the last key in the queue.
  std::string settled_key_;
  bool has_settled_key_ = false;  // forward
  uint64_t num_versions_ = 0;     // backward: of the last key in the queue
  std::string prefix_;  // prefix of the scan, if the scan ends with it
  bool at_end_ = false;
  // With prefix filters: the target of the seek, if that was the child's last
  // move other than Next().
  std::string seek_key_;
  bool has_seek_key_ = false;
  // ReadOptions::iterate_upper_bound when the queue was started; the user may
  // change it between seeks.
  std::string upper_bound_;
  bool has_upper_bound_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
