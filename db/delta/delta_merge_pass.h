//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/dbformat.h"
#include "db/delta/delta_version.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class Comparator;
class DeltaStore;
class Env;
class Logger;
class MergeOperator;
class SnapshotChecker;
struct DeltaTableSettings;
struct FragmentedRangeTombstoneList;
struct ImmutableOptions;
struct MutableCFOptions;

// One pass of a job over the operands of a range of keys: it merges the given
// files, drops what anchors hide from everybody, asks the compaction filter
// about operands, combines those that may be combined, and gives out what is
// left, in order.
//
// Snapshots divide sequence numbers into stripes: all that lie above one
// snapshot and not above the next are seen, or not, by the same readers. So
// * an operand is dropped if its stripe has an anchor at or above it: all
//   readers that see the operand see the anchor;
// * of the anchors of a key in one stripe only the newest one counts;
// * operands that are left in one stripe have no anchor between them, and no
//   snapshot, and only they are combined. The result has the sequence number of
//   the newest of them, and takes the place of all.
//
// The merge operator combines a limited number of bytes at once, and what it
// makes of them goes on as an operand as long as it is small. So memory is
// bounded by Context::max_batch_bytes, apart from an operand that is larger,
// and by the range anchors of the input, however many operands a key has. If it
// fails, or cannot combine operands, they stay as they are.
//
// Not thread-safe; runs without the DB mutex.
class DeltaMergePass {
 public:
  static constexpr size_t kMinReadahead = size_t{64} << 10;

  // Of a job. Files that Input names must be pinned by a Version.
  // REQUIRES: all that it points to outlives the passes.
  struct Context {
    const DeltaStore* store = nullptr;
    const ImmutableOptions* ioptions = nullptr;
    const MutableCFOptions* moptions = nullptr;
    // As InitSnapshotContext() gives them: ascending, with the newest sequence
    // number that was published among them. Readers see what one of these
    // sees, or everything.
    std::vector<SequenceNumber> snapshots;
    SequenceNumber earliest_snapshot = kMaxSequenceNumber;
    SequenceNumber earliest_write_conflict_snapshot = kMaxSequenceNumber;
    SequenceNumber job_snapshot = kMaxSequenceNumber;
    // Of those that somebody holds: the filter is asked about what is above.
    SequenceNumber latest_listed_snapshot = kMaxSequenceNumber;
    // Must be nullptr: sequence numbers tell what is visible.
    const SnapshotChecker* snapshot_checker = nullptr;
    // May be nullptr. As in a compaction, it is asked about operands that no
    // snapshot sees. REQUIRES: it ignores snapshots.
    const CompactionFilter* filter = nullptr;
    // Not OK: give up with this status. Asked often; cheap. May be empty.
    std::function<Status()> check;
    const std::atomic<bool>* shutting_down = nullptr;  // may be nullptr
    // Without bounds. readahead_size is how much is read ahead, and kept in
    // memory, of all files of a kind. If they are more than that, each has a
    // share, but no less than kMinReadahead.
    ReadOptions read_options;
    Env* env = nullptr;
    Logger* info_log = nullptr;
    // How many bytes of operands are combined at once.
    size_t max_batch_bytes = size_t{4} << 20;
  };

  // A range of keys, and the files that have something for it: in any order,
  // and they may have more.
  struct Input {
    // User keys, [begin, end).
    std::string begin;
    bool has_begin = false;
    std::string end;
    bool has_end = false;
    std::vector<DeltaVersion::FilePtr> operands;
    std::vector<DeltaVersion::FilePtr> anchors;
    // There are no other operands of these keys that are as old as those of the
    // files, or older (a bucket's extent and what it takes in). Then anchors
    // are needed only for operands that are kept, and there are no range
    // anchors left. Else (a merge of recent files) all that tell something to
    // some reader are kept.
    bool has_all_older = false;
  };

  // What is left. The first failure ends the pass.
  class Sink {
   public:
    virtual ~Sink() = default;
    // In the order of internal keys, type kTypeMerge.
    virtual Status AddOperand(const ParsedInternalKey& key,
                              const Slice& internal_key,
                              const Slice& value) = 0;
    // In the order of keys, of one key the newest first. Those of a key come
    // after its operands and before the operands of the next key.
    virtual Status AddAnchor(const Slice& user_key, SequenceNumber seq) = 0;
    // In the order of starts, of one start the newest first; before everything
    // else of the Input, and clipped to its range. Not with has_all_older.
    virtual Status AddRangeAnchor(const Slice& start, const Slice& end,
                                  SequenceNumber seq) = 0;
  };

  // Of all ranges so far.
  struct Stats {
    uint64_t operands_read = 0;
    uint64_t bytes_read = 0;  // keys and values of operands
    uint64_t operands_hidden = 0;
    uint64_t operands_combined = 0;  // into others
    uint64_t operands_filtered = 0;
    uint64_t operands_kept = 0;
    uint64_t bytes_kept = 0;
    uint64_t anchors_read = 0;  // of ranges: fragments
    uint64_t anchors_kept = 0;
    // The filter removed or changed something.
    bool filter_changed = false;
  };

  explicit DeltaMergePass(const Context& context);
  ~DeltaMergePass();
  DeltaMergePass(const DeltaMergePass&) = delete;
  DeltaMergePass& operator=(const DeltaMergePass&) = delete;

  // Corruption names the file. May be called several times, for ranges in
  // ascending order; after a failure not any more.
  Status Run(const Input& input, Sink* sink);

  const Stats& stats() const { return stats_; }

 private:
  class Merger;

  // An operand that waits to be combined with older ones of its stripe. Its
  // value is a part of batch_values_.
  struct Pending {
    SequenceNumber seq = 0;
    size_t begin = 0;
    size_t size = 0;
  };
  struct KeyAnchor {
    SequenceNumber seq = 0;
    size_t stripe = 0;
    bool is_point = false;
  };

  // Gives up if it must. Check() looks only now and then.
  Status Check() {
    return ++num_checks_ % kCheckInterval == 0 ? CheckNow() : Status::OK();
  }
  Status CheckNow();

  // By number of the first snapshot that sees it.
  size_t StripeOf(SequenceNumber seq) const;

  // Sets ranges_.
  Status LoadRangeAnchors(const Input& input);
  Status AddRangeAnchors(Sink* sink);
  // Sets key_anchors_ to what counts for key_. Goes past the point anchors of
  // keys up to it.
  // REQUIRES: key_ ascends from call to call.
  Status FindAnchors(Merger* anchors);
  // Those of key_, at which `operands` is.
  Status ProcessOperands(Merger* operands, Sink* sink);
  Status AddAnchorsOfKey(bool has_all_older, Sink* sink);

  // May change *value. Does not look at snapshots.
  CompactionFilter::Decision Filter(Slice* value);

  // The pending operands are of one stripe, newer than `seq`.
  Status AddPending(SequenceNumber seq, const Slice& value, Sink* sink);
  // Makes one of them, if that is possible.
  Status CombinePending();
  // Gives them out as they are.
  Status EmitPending(Sink* sink);
  void ClearPending();

  static constexpr uint64_t kCheckInterval = 256;
  // What a pending operand takes apart from its value.
  static constexpr size_t kPendingOverhead = 64;

  const Context context_;
  const std::shared_ptr<const DeltaTableSettings> settings_;
  const Comparator* const ucmp_;
  const MergeOperator* const merge_operator_;  // may be nullptr
  // The filter is asked about operands above it.
  const SequenceNumber latest_snapshot_;
  Stats stats_;
  uint64_t num_checks_ = 0;
  uint64_t filter_nanos_ = 0;

  // Range anchors of the Input: of each stripe the newest one. nullptr: none.
  std::unique_ptr<FragmentedRangeTombstoneList> ranges_;
  size_t next_range_ = 0;
  // The filter removes the operands of keys below it.
  std::string skip_until_;
  bool has_skip_until_ = false;

  std::string key_;
  // The newest of each stripe that has one, the newest first.
  std::vector<KeyAnchor> key_anchors_;
  // Of those of key_ that were given out; kMaxSequenceNumber: none.
  SequenceNumber oldest_kept_ = kMaxSequenceNumber;

  std::vector<Pending> batch_;  // the newest first
  std::string batch_values_;
  size_t batch_stripe_ = 0;
  // The merge operator has made it.
  bool batch_is_combined_ = false;
  std::string combined_value_;
  std::string filter_value_;
  std::string filter_skip_until_;
  std::string internal_key_;
};

}  // namespace ROCKSDB_NAMESPACE
