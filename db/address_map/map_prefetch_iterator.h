//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

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
class PinnableSlice;
class ScanLengthHistogram;
class SliceTransform;

// Reads the values that a forward scan is about to need while the scan goes on
// (ReadOptions::blob_prefetch_count).
//
// When the scan has made a few steps, the child runs ahead of it: its entries
// are copied into a queue, and the reads of those values that the scan will ask
// for are handed to BlobReadPool, twice as many each time up to the limit. If
// it is known how far scans of the column family go (ScanLengthHistogram), the
// child runs ahead at once, and not farther. The front of the queue is where
// this iterator stands. A value of the queue whose read was begun is a
// *prefetched* one:
//
//    +------+-------------------+------------------------------------+
//    | 0x13 | address of a Slot | the bound index (MapValueIterator) |
//    +------+-------------------+------------------------------------+
//
// Invariants:
// * If the queue is empty, this iterator stands where the child does.
//   Otherwise the child is at the entry after the queue's last one.
// * Which values are prefetched is a guess. A value that was not, or whose
//   read found nothing, is read when it is asked for, as without this class.
// * The queue answers a seek only if the child, asked now, would see the same
//   files and have the same upper bound as when it filled the queue.
//
// Backward moves, seeks beyond the queue and pinned data
// (ReadOptions::pin_data) do without it.
class MapPrefetchIterator final : public PassThroughIterator {
 public:
  // False if all would be passed through always.
  static bool IsWanted(const ReadOptions& read_options);

  // REQUIRES: as MapIterators::Wrap(). The child gives bound indices.
  MapPrefetchIterator(ColumnFamilyData* cfd, const ReadOptions& read_options,
                      SequenceNumber sequence,
                      const SliceTransform* prefix_extractor,
                      InternalIterator* child);
  ~MapPrefetchIterator() override;

  static bool IsPrefetched(const Slice& value) {
    return value.size() > kPrefix && value[0] == kPrefetched;
  }
  // REQUIRES of both: IsPrefetched(value), and the iterator has not moved.
  // Waits for the read and moves its result, once; false the second time.
  static bool Take(const Slice& value, PinnableSlice* result, Status* status);
  static Slice BoundValue(const Slice& value) {
    return Slice(value.data() + kPrefix, value.size() - kPrefix);
  }

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

  // How many reads may be begun now.
  size_t TEST_Window() const { return window_; }

 private:
  struct Slot {
    std::string key;
    std::string value;
    uint64_t write_unix_time = 0;
    IterBoundCheck bound_check = IterBoundCheck::kUnknown;
    // Of a prefetched value.
    std::shared_ptr<BlobReadGroup> group;
    size_t item = 0;
    uint64_t bytes = 0;
    bool taken = false;
  };

  static constexpr char kPrefetched = 0x13;
  static constexpr size_t kPrefix = 1 + sizeof(Slot*);
  // Before the queue is begun, so that short scans read nothing in vain.
  static constexpr size_t kPlainSteps = 2;
  static constexpr size_t kFirstWindow = 2;
  static constexpr size_t kAutoWindow = 64;
  // Where it is known that most of the reads will be used.
  static constexpr size_t kKnownWindow = 128;
  // Less while many scans are under way (ReadAheadBudget).
  static constexpr uint64_t kMaxBytes = 4 << 20;
  // Of entries that need no read, in a row, and of one step's.
  static constexpr size_t kMaxUnread = 32;
  static constexpr size_t kMaxUnreadBytes = 256 << 10;

  static Slot* SlotOf(const Slice& value);

  // Of a scan that ends.
  void Restart();
  void NoteLength();
  // Of a scan that has begun with a seek.
  void Begin(const Slice* target);
  // How many reads may be under way, at the place where the scan is.
  size_t NextWindow() const;
  void DropQueue();
  // Do files whose filters do not have the prefix of a seek's target stay out?
  bool UsesPrefixFilters() const;
  // See the invariants.
  // REQUIRES: the queue is not empty.
  bool IsFilledFor(const Slice& user_key) const;
  void NoteUpperBound();
  // Is it DBIter that seeks from `key`, to get past many versions of it which
  // are hidden or too new? Then the scan goes on.
  bool IsOnward(const Slice& key, const Slice& target) const;
  // Forward, to the first entry at or after the target. False if the child must
  // be asked; some of the queue may be gone then.
  // REQUIRES: the queue is not empty.
  bool SeekInQueue(const Slice& target);
  void PopFront();
  void FillIfLow();
  // Keeps the prefix that the scan is in, if it ends with it.
  // REQUIRES: the queue is empty and the child stands in the scan.
  void NotePrefix();
  void NotePrefixOf(const Slice& user_key);
  bool StandsOnMapped() const;
  // Lets the child run ahead until the window is used up.
  void Fill();
  // Takes the child's entry. True if its value is to be read: then `item` says
  // what.
  bool Append(BlobReadGroup::Item* item);
  bool IsInRange(const Slice& user_key) const;
  bool IsWantedEntry(const ParsedInternalKey& key);

  ColumnFamilyData* const cfd_;
  const AddressMapStore* const blobs_;
  const ReadOptions& read_options_;
  SequenceNumber sequence_;
  const SliceTransform* const prefix_extractor_;
  const size_t max_window_;
  ScanLengthHistogram* const lengths_;  // nullptr if the user has set the limit

  PinnedIteratorsManager* pinned_iters_mgr_ = nullptr;
  ReadAheadBudget* const budget_ = ReadAheadBudget::OfProcess();
  ReadAheadBudget::Scan in_budget_;
  std::deque<Slot> queue_;
  // Reads begun whose slots are in the queue, and their bytes.
  size_t reads_ = 0;
  uint64_t bytes_ = 0;
  uint64_t max_bytes_ = kMaxBytes;  // when the queue was filled last
  // Since the last seek, from mapped values that were used.
  size_t steps_ = 0;
  bool began_on_mapped_ = false;
  size_t window_ = 0;
  // The key whose newest visible value the queue has.
  std::string settled_key_;
  bool has_settled_key_ = false;
  std::string prefix_;  // that the scan is in, if it ends with it
  bool at_end_ = false;
  // With prefix filters: of the seek that was the child's last move other than
  // Next().
  std::string seek_key_;
  bool has_seek_key_ = false;
  // ReadOptions::iterate_upper_bound when the queue was begun: it may change
  // between seeks.
  std::string upper_bound_;
  bool has_upper_bound_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
