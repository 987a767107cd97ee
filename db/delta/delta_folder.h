//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_version.h"
#include "db/merge_helper.h"
#include "memory/arena.h"
#include "rocksdb/comparator.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class BlobFetcher;
class ColumnFamilyData;
class DeltaStore;
class OwningVersionBlobFetcher;
class Version;
struct ImmutableOptions;
struct MutableCFOptions;

// Consumes operands of a job that collects buckets (DeltaGcJob). The job omits
// consumed operands from its output.
class DeltaFolder {
 public:
  using Operand = std::pair<SequenceNumber, Slice>;

  virtual ~DeltaFolder() = default;

  // Offers the operands of a key.
  // operands: all operands that the job would keep of the key, newest first;
  // valid during the call only.
  // hidden_from_none: true if the job knows no anchor at the oldest of them or
  // above.
  // *taken: set to true if the operands are consumed; the job then drops them.
  // On failure the job fails.
  // REQUIRES: called once per key, in ascending order.
  virtual Status Fold(const Slice& user_key,
                      const std::vector<Operand>& operands,
                      bool hidden_from_none, bool* taken) = 0;
};

// The result of a fold: entries of an SST file, in order. Each has the sequence
// number of the newest operand that went into it.
struct FoldedValues {
  std::vector<std::string> keys;  // internal keys
  std::vector<std::string> values;
  uint64_t bytes = 0;  // approximate memory usage

  bool empty() const { return keys.empty(); }
  size_t size() const { return keys.size(); }
  void Add(std::string&& internal_key, std::string&& value) {
    bytes += internal_key.size() + value.size() + 2 * sizeof(std::string);
    keys.push_back(std::move(internal_key));
    values.push_back(std::move(value));
  }
};

// Looks up anchors in a given set of files.
//
// Not thread-safe.
class DeltaAnchorLookup {
 public:
  // REQUIRES: store outlives it, and the files are pinned.
  DeltaAnchorLookup(const DeltaStore* store, const Comparator* ucmp,
                    const ReadOptions& read_options,
                    std::vector<DeltaVersion::FilePtr> files)
      : store_(store),
        ucmp_(ucmp),
        read_options_(read_options),
        files_(std::move(files)) {}

  // Sets *seq to the newest anchor of the key (point or range) up to read_seq;
  // 0 if there is none. Anchors that are not above `below` may be missed.
  Status Newest(const Slice& user_key, SequenceNumber read_seq,
                SequenceNumber below, SequenceNumber* seq) const;

  bool empty() const { return files_.empty(); }

  // Returns the recent anchor files of `version` above `floor`, which a
  // collection up to this floor did not read, except those of `without`, which
  // may be nullptr.
  static std::vector<DeltaVersion::FilePtr> FilesAbove(
      const DeltaVersion& version, uint64_t floor,
      const DeltaVersion* without = nullptr);

 private:
  const DeltaStore* const store_;
  const Comparator* const ucmp_;
  const ReadOptions read_options_;
  std::vector<DeltaVersion::FilePtr> files_;
};

// Merges operands with the older entries of their keys in the SST files. The
// resulting value can replace both: see DeltaFoldCommit.
//
// Invariants:
// * Only operands in the newest stripe are consumed: every later reader, and
//   every snapshot, sees all of them. A reader that sees fewer of them holds a
//   Version that still contains them.
// * Entries newer than the newest operand do not change the value. If such an
//   entry is a base it has an anchor: if the anchor is already known the key is
//   left alone, and DeltaFoldCommit finds anchors that are added later.
// * An error with one key (its merge fails, or its base cannot be read) leaves
//   the operands of the key where they are, so that readers get the same result
//   as without the fold. It does not fail the job.
//
// Keys come in ascending order, so one iterator over the tree, which only moves
// forward, reads no block twice. Point lookups could ask filters first, which
// would occasionally save a block of an upper level where keys are far apart;
// but filters do not contain keys whose values are in the address map.
//
// Not thread-safe.
class DeltaValueFolder final : public DeltaFolder {
 public:
  struct Context {
    const DeltaStore* store = nullptr;
    const ImmutableOptions* ioptions = nullptr;
    // Properties of the collection.
    uint64_t floor = 0;  // last epoch of the files that are taken in
    SequenceNumber earliest_snapshot = 0;
    FileOptions file_options;
    const std::atomic<bool>* shutting_down = nullptr;  // may be nullptr
    Env::IOPriority io_priority = Env::IO_LOW;
    // Limit of the memory for values, in bytes. Beyond it no operands are
    // consumed, see Stats::full.
    uint64_t max_bytes = kMaxBytes;
  };
  struct Stats {
    uint64_t keys_folded = 0;
    uint64_t operands_folded = 0;
    uint64_t bytes_folded = 0;             // of the resulting values
    uint64_t keys_left = 0;                // because of snapshots or anchors
    uint64_t keys_left_for_snapshots = 0;  // of these
    uint64_t merges_failed = 0;            // keys; includes unreadable bases
    // True if some of these failed because the tree could not be read, which
    // may be temporary.
    bool read_failed = false;
    // True if some of these failed because of Corruption of the tree.
    bool damaged = false;
    // True if max_bytes is reached.
    bool full = false;
  };

  // Returns the limit of the memory for values: the size of a memtable, since
  // the values take memory like one more memtable and flushes wait until they
  // are written; but not so small that a job folds only a few keys.
  static uint64_t MaxBytes(const MutableCFOptions& options);

  static constexpr uint64_t kMinBytes = uint64_t{8} << 20;
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

  // Folds with the SST files of *version, which is pinned until the destructor.
  // REQUIRES: DB mutex held; the Version has delta files.
  DeltaValueFolder(const Context& context, Version* version);
  // For tests: folds with an iterator over SST entries, without range
  // tombstones.
  // REQUIRES: all arguments outlive this object.
  DeltaValueFolder(const Context& context,
                   std::shared_ptr<const DeltaVersion> deltas,
                   InternalIterator* lsm, const BlobFetcher* fetcher);
  // REQUIRES: DB mutex held, if constructed with a Version.
  ~DeltaValueFolder() override;
  DeltaValueFolder(const DeltaValueFolder&) = delete;
  DeltaValueFolder& operator=(const DeltaValueFolder&) = delete;

  Status Fold(const Slice& user_key, const std::vector<Operand>& operands,
              bool hidden_from_none, bool* taken) override;

  // Ends folding and releases the iterator. Best called without the DB mutex.
  void Finish();

  const Stats& stats() const { return stats_; }
  // Returns the error of the last key that could not be read or merged. An
  // error that sets Stats::read_failed takes precedence over one that sets
  // Stats::damaged, and that one over all others.
  const Status& last_failure() const { return last_failure_; }
  uint64_t floor() const { return context_.floor; }
  uint64_t max_bytes() const { return context_.max_bytes; }

  // ---- For DeltaFoldCommit.

  FoldedValues* values() { return &values_; }
  // Returns the delta files of the Version. Never nullptr.
  const std::shared_ptr<const DeltaVersion>& deltas() const { return deltas_; }
  // Returns the generation of the Version's merged values. In a later
  // generation a filter may have changed entries that were read here.
  uint64_t generation() const { return generation_; }
  // Returns the numbers of the SST files that folded keys may have come from.
  // REQUIRES: Finish() was called.
  const std::vector<uint64_t>& sources() const { return sources_; }

 private:
  class KeyIterator;

  // Maximum number of tree entries that are stepped over before a seek.
  static constexpr int kMaxSteps = 8;

  void OpenLsm();
  // Moves the iterator over the tree to the key's first entry, or past it.
  Status SeekLsm(const Slice& user_key);
  bool LsmIsAt(const Slice& user_key) const;
  // Merges the operands with the tree's entries. On failure *internal_key stays
  // empty; on success it is empty if the key must be left alone because the
  // tree has a newer entry.
  Status MergeKey(const Slice& user_key, const std::vector<Operand>& operands,
                  std::string* internal_key, std::string* value);
  Status Fail(const Status& s);
  void FindSources();

  const Context context_;
  const Comparator* const ucmp_;
  Version* const version_;  // nullptr in tests
  std::shared_ptr<const DeltaVersion> deltas_;
  const uint64_t generation_;
  const ReadOptions read_options_;
  DeltaAnchorLookup anchors_;
  MergeHelper merge_;

  // Iterator and blob fetcher of the Version, made for the first key.
  Arena arena_;
  ScopedArenaPtr<InternalIterator> own_lsm_;
  std::unique_ptr<OwningVersionBlobFetcher> own_fetcher_;
  InternalIterator* lsm_ = nullptr;
  const BlobFetcher* fetcher_ = nullptr;
  // True if lsm_ was positioned by a seek.
  bool lsm_is_placed_ = false;
  // True if the tree could not be read, and not because of Corruption: no more
  // operands are consumed.
  bool lsm_is_broken_ = false;

  FoldedValues values_;
  std::vector<uint64_t> sources_;
  bool is_finished_ = false;
  Stats stats_;
  Status last_failure_;
};

}  // namespace ROCKSDB_NAMESPACE
