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
// files, drops operands that anchors hide from all readers, asks the compaction
// filter about operands, combines operands where possible, and passes the
// remaining entries to a Sink, in order.
//
// Snapshots divide sequence numbers into stripes: all sequence numbers that lie
// above one snapshot and not above the next are seen, or not seen, by the same
// readers. So
// * an operand is dropped if its stripe has an anchor at or above it: all
//   readers that see the operand see the anchor;
// * of the anchors of a key in one stripe only the newest one counts;
// * operands that are left in one stripe have no anchor and no snapshot between
//   them, and only such operands are combined. The result has the sequence
//   number of the newest of them, and replaces all of them.
//
// The merge operator combines a limited number of bytes at once, and the result
// is treated as an operand as long as it is small. So memory is bounded by
// Context::max_batch_bytes, apart from a single larger operand, and by the
// range anchors of the input, however many operands a key has. If the merge
// operator fails, or cannot combine operands, they are kept as they are.
//
// Not thread-safe; runs without the DB mutex.
class DeltaMergePass {
 public:
  static constexpr size_t kMinReadahead = size_t{64} << 10;

  // The context of a job. Files of an Input must be pinned by a Version.
  // REQUIRES: everything that it points to outlives the passes.
  struct Context {
    const DeltaStore* store = nullptr;
    const ImmutableOptions* ioptions = nullptr;
    const MutableCFOptions* moptions = nullptr;
    // As set by InitSnapshotContext(): ascending, including the newest
    // published sequence number. Readers see what one of these snapshots sees,
    // or everything.
    std::vector<SequenceNumber> snapshots;
    SequenceNumber earliest_snapshot = kMaxSequenceNumber;
    SequenceNumber earliest_write_conflict_snapshot = kMaxSequenceNumber;
    SequenceNumber job_snapshot = kMaxSequenceNumber;
    // The latest snapshot that the DB's users hold: the filter is asked about
    // newer operands.
    SequenceNumber latest_listed_snapshot = kMaxSequenceNumber;
    // Must be nullptr: visibility must follow sequence numbers.
    const SnapshotChecker* snapshot_checker = nullptr;
    // May be nullptr. As in a compaction, it is asked about operands that no
    // snapshot sees. REQUIRES: it ignores snapshots.
    const CompactionFilter* filter = nullptr;
    // Returns an error to end the pass with this status. Called often, so it
    // should be cheap. May be empty.
    std::function<Status()> check;
    const std::atomic<bool>* shutting_down = nullptr;  // may be nullptr
    // Without bounds. readahead_size: bytes that are read ahead, and kept in
    // memory, of all files of a kind together. If there are several files, each
    // has an equal share, but at least kMinReadahead.
    ReadOptions read_options;
    Env* env = nullptr;
    Logger* info_log = nullptr;
    // Maximum bytes of operands that are combined at once.
    size_t max_batch_bytes = size_t{4} << 20;
  };

  // A range of keys and the files with entries in the range, in any order. The
  // files may have entries outside the range.
  struct Input {
    // User keys, [begin, end).
    std::string begin;
    bool has_begin = false;
    std::string end;
    bool has_end = false;
    std::vector<DeltaVersion::FilePtr> operands;
    std::vector<DeltaVersion::FilePtr> anchors;
    // True if no other file has operands of these keys that are as old as those
    // of the input, or older (a bucket's extent and the files that it takes
    // in). Then anchors are needed only for operands that are kept, and no
    // range anchors are left. Otherwise (a merge of recent files) all anchors
    // that matter to some reader are kept.
    bool has_all_older = false;
  };

  // Receives the remaining entries. The first failure ends the pass.
  class Sink {
   public:
    virtual ~Sink() = default;
    // Called in the order of internal keys, of type kTypeMerge.
    virtual Status AddOperand(const ParsedInternalKey& key,
                              const Slice& internal_key,
                              const Slice& value) = 0;
    // Called in the order of keys, newest first for each key. The anchors of a
    // key come after its operands and before the operands of the next key.
    virtual Status AddAnchor(const Slice& user_key, SequenceNumber seq) = 0;
    // Called in the order of starts, newest first for each start, before all
    // other entries of the Input; ranges are clipped to its range. Not called
    // with has_all_older.
    virtual Status AddRangeAnchor(const Slice& start, const Slice& end,
                                  SequenceNumber seq) = 0;
  };

  // Totals of all ranges so far.
  struct Stats {
    uint64_t operands_read = 0;
    uint64_t bytes_read = 0;  // keys and values of operands
    uint64_t operands_hidden = 0;
    uint64_t operands_combined = 0;  // combined into others
    uint64_t operands_filtered = 0;
    uint64_t operands_kept = 0;
    uint64_t bytes_kept = 0;
    uint64_t anchors_read = 0;  // including fragments of ranges
    uint64_t anchors_kept = 0;
    // True if the filter has removed or changed an operand.
    bool filter_changed = false;
  };

  explicit DeltaMergePass(const Context& context);
  ~DeltaMergePass();
  DeltaMergePass(const DeltaMergePass&) = delete;
  DeltaMergePass& operator=(const DeltaMergePass&) = delete;

  // Runs the pass over one range. Corruption names the file. May be called
  // several times, for ranges in ascending order, but not after a failure.
  Status Run(const Input& input, Sink* sink);

  const Stats& stats() const { return stats_; }

 private:
  class Merger;

  // An operand that waits to be combined with older operands of its stripe. Its
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

  // Returns an error if the pass must end. Check() only calls CheckNow() every
  // kCheckInterval times.
  Status Check() {
    return ++num_checks_ % kCheckInterval == 0 ? CheckNow() : Status::OK();
  }
  Status CheckNow();

  // Returns the index of the first snapshot that sees the sequence number.
  size_t StripeOf(SequenceNumber seq) const;

  // Sets ranges_.
  Status LoadRangeAnchors(const Input& input);
  Status AddRangeAnchors(Sink* sink);
  // Sets key_anchors_ to the anchors that count for key_. Moves `anchors` past
  // the point anchors of keys up to key_.
  // REQUIRES: key_ ascends from call to call.
  Status FindAnchors(Merger* anchors);
  // Processes the operands of key_, at which `operands` is positioned.
  Status ProcessOperands(Merger* operands, Sink* sink);
  Status AddAnchorsOfKey(bool has_all_older, Sink* sink);

  // Asks the filter. May change *value. Ignores snapshots.
  CompactionFilter::Decision Filter(Slice* value);

  // Adds a pending operand.
  // REQUIRES: the pending operands are of the same stripe, and newer than
  // `seq`.
  Status AddPending(SequenceNumber seq, const Slice& value, Sink* sink);
  // Combines the pending operands into one, if possible.
  Status CombinePending();
  // Passes the pending operands to the sink, uncombined.
  Status EmitPending(Sink* sink);
  void ClearPending();

  static constexpr uint64_t kCheckInterval = 256;
  // Bytes of a pending operand apart from its value.
  static constexpr size_t kPendingOverhead = 64;

  const Context context_;
  const std::shared_ptr<const DeltaTableSettings> settings_;
  const Comparator* const ucmp_;
  const MergeOperator* const merge_operator_;  // may be nullptr
  // The filter is asked about operands above this sequence number.
  const SequenceNumber latest_snapshot_;
  Stats stats_;
  uint64_t num_checks_ = 0;
  uint64_t filter_nanos_ = 0;

  // Range anchors of the Input, the newest of each stripe. nullptr: none.
  std::unique_ptr<FragmentedRangeTombstoneList> ranges_;
  size_t next_range_ = 0;
  // The filter removes the operands of keys below this one.
  std::string skip_until_;
  bool has_skip_until_ = false;

  std::string key_;
  // The newest anchor of key_ in each stripe that has one, newest first.
  std::vector<KeyAnchor> key_anchors_;
  // Oldest operand of key_ that was passed to the sink; kMaxSequenceNumber:
  // none.
  SequenceNumber oldest_kept_ = kMaxSequenceNumber;

  std::vector<Pending> batch_;  // newest first
  std::string batch_values_;
  size_t batch_stripe_ = 0;
  // True if the pending operand is a result of the merge operator.
  bool batch_is_combined_ = false;
  std::string combined_value_;
  std::string filter_value_;
  std::string filter_skip_until_;
  std::string internal_key_;
};

}  // namespace ROCKSDB_NAMESPACE
