//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/mapped_value_reader.h"
#include "db/blob_v2/blob_read_group.h"
#include "db/blob_v2/read_ahead_budget.h"
#include "db/dbformat.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "util/strata/pass_through_iterator.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class AddressMapStore;
class MapValueIterator;
class PinnableSlice;
class ReadAheadGauge;
class ScanLengthHistogram;
class SliceTransform;

// Reads ahead the values that a forward scan is about to need, while the scan
// proceeds (ReadOptions::blob_prefetch_count).
//
// When the scan has made a few steps, the child iterator is moved ahead of it.
// The child's entries are copied into a queue, and the reads of the values that
// the scan will ask for are submitted to BlobReadPool. The number of these
// reads doubles each time up to the limit. If the typical length of the column
// family's scans is known (ScanLengthHistogram), the child is moved ahead from
// the start, but not beyond that length. This iterator is positioned at the
// front of the queue. A value in the queue whose read was started is
// *prefetched*. DBIter asks for it by the bound index that this iterator
// returned as the entry's value, as it asks for any other value.
//
// While the values come from the page cache, the reads are not submitted
// (ReadAheadGauge), unless the user set the limit. The scanning thread then
// does them, with the values that are neighbors in a file in one read, when it
// needs the first of them.
//
// Invariants:
// 1. If the queue is empty, this iterator is at the child's position. Otherwise
//    the child is at the entry after the last one in the queue.
// 2. Which values are prefetched is a guess. A value that was not prefetched,
//    or whose read found nothing, is read when it is asked for, as without this
//    class.
// 3. The queue serves a seek only if the child would use the same files and
//    have the same upper bound as when it filled the queue.
// 4. While pinning is enabled, a value that was returned stays in memory when
//    the iterator moves, as it does with block iterators: a merge operator may
//    return the base value, and DBIter moves on before the user reads it.
//
// Backward moves, seeks beyond the queue and pinned data
// (ReadOptions::pin_data) do not use the queue.
class MapPrefetchIterator final : public PassThroughIterator,
                                  public MappedValueReader {
 public:
  // Returns false if the iterator would only pass calls through to the child.
  static bool IsWanted(const ReadOptions& read_options);

  // REQUIRES: those of MapIterators::Wrap().
  MapPrefetchIterator(ColumnFamilyData* cfd, const ReadOptions& read_options,
                      SequenceNumber sequence,
                      const SliceTransform* prefix_extractor,
                      MapValueIterator* child);
  ~MapPrefetchIterator() override;

  MappedValueReader* mapped_value_reader() override { return this; }
  // Waits for the read if the value is prefetched. A prefetched value is
  // handed out once, and is read if it is asked for again.
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
  IterBoundCheck UpperBoundCheckResult() override;
  void SetPinnedItersMgr(PinnedIteratorsManager* pinned_iters_mgr) override;
  bool IsKeyPinned() const override;
  bool IsValuePinned() const override;
  void SetRangeDelReadSeqno(SequenceNumber read_seqno) override;

  // Returns the maximum number of reads in progress.
  size_t TEST_Window() const { return window_; }

 private:
  struct Slot {
    std::string key;
    // Not a string: its bytes stay where they are if they outlive the slot.
    std::unique_ptr<char[]> value_bytes;
    size_t value_size = 0;
    uint64_t write_unix_time = 0;
    IterBoundCheck bound_check = IterBoundCheck::kUnknown;
    // Found if the child kept the entry and no read was started: DBIter may ask
    // for a value that the guess left out.
    AddressMap::Lookup kept;
    // Set for a prefetched value only.
    std::shared_ptr<BlobReadGroup> group;
    size_t item = 0;
    uint64_t bytes = 0;
    bool taken = false;
    bool was_cached = false;     // in the blob cache
    bool was_submitted = false;  // the read, to other threads

    Slice value() const { return Slice(value_bytes.get(), value_size); }
  };

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
  // Maximum size of the values of all entries without a read that one Fill()
  // adds.
  static constexpr size_t kMaxUnreadBytes = 256 << 10;

  // Returns true if `value` is the value of the entry at the front of the
  // queue.
  bool IsFront(const Slice& user_key, const Slice& value) const;

  // Ends the current scan and resets the state of the iterator.
  void Restart();

  // Returns true if the slot's value was read ahead and is not needed.
  static bool IsWasted(const Slot& slot) {
    return slot.was_submitted && !slot.taken;
  }
  // Submits those of the reads that are worth it.
  // slots: those of the values that are read.
  void Submit(const std::vector<std::shared_ptr<BlobReadGroup>>& groups,
              const std::vector<Slot*>& slots);
  // Waits for the read of the front's value, or does it.
  void ReadFront();
  // Adds the length of the scan that ends to the histogram.
  void NoteLength();
  // Starts a scan after a seek of the child.
  // target: user key; nullptr for SeekToFirst().
  void Begin(const Slice* target);
  // Returns the number of reads that may be in progress at the current position
  // of the scan.
  size_t NextWindow() const;
  void DropQueue();
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
  void PopFront();
  // Leaves the value of the front to the PinnedIteratorsManager (invariant 4).
  // REQUIRES: the queue is not empty; the slot is about to be removed.
  void PinFrontValue();
  void FillIfLow();
  // Stores the prefix of the scan if the scan ends with that prefix.
  // REQUIRES: the queue is empty; the child is positioned in the scan.
  void NotePrefix();
  void NotePrefixOf(const Slice& user_key);
  bool StandsOnMapped() const;
  // Moves the child ahead until the window is used up.
  void Fill();
  // Appends the child's entry to the queue. Returns true if its value is to be
  // read; *item is the read to do then.
  bool Append(BlobReadGroup::Item* item);
  bool IsInRange(const Slice& user_key) const;
  bool IsWantedEntry(const ParsedInternalKey& key);

  MapValueIterator* const values_;  // the child
  ColumnFamilyData* const cfd_;
  const AddressMapStore* const blobs_;
  const ReadOptions& read_options_;
  SequenceNumber sequence_;
  const SliceTransform* const prefix_extractor_;
  const size_t max_window_;
  // nullptr if the user set the limit.
  ScanLengthHistogram* const lengths_;
  ReadAheadGauge* const gauge_;

  PinnedIteratorsManager* pinned_iters_mgr_ = nullptr;
  ReadAheadBudget* const budget_ = ReadAheadBudget::OfProcess();
  ReadAheadBudget::Scan in_budget_;
  std::deque<Slot> queue_;
  // Number and bytes of the started reads whose slots are in the queue.
  size_t reads_ = 0;
  uint64_t bytes_ = 0;
  uint64_t max_bytes_ = kMaxBytes;  // when the queue was filled last
  // Number of steps since the last seek that left a mapped value which was
  // used.
  size_t steps_ = 0;
  bool began_on_mapped_ = false;
  size_t window_ = 0;
  // The last key whose newest visible value is in the queue.
  std::string settled_key_;
  bool has_settled_key_ = false;
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
