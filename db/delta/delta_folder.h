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

// Takes operands out of the hands of a job that collects buckets (DeltaGcJob):
// what it takes, the job leaves out of its output.
class DeltaFolder {
 public:
  using Operand = std::pair<SequenceNumber, Slice>;

  virtual ~DeltaFolder() = default;

  // All operands that the job would keep of a key, the newest first; they are
  // of no use after the call. hidden_from_none: the job knows no anchor that is
  // at the oldest of them or above.
  // *taken: the job drops them. If not OK the job fails.
  // REQUIRES: called once per key, in ascending order.
  virtual Status Fold(const Slice& user_key,
                      const std::vector<Operand>& operands,
                      bool hidden_from_none, bool* taken) = 0;
};

// What a fold has made of operands: entries of an SST file, in order. Each has
// the sequence number of the newest operand that went into it.
struct FoldedValues {
  std::vector<std::string> keys;  // internal ones
  std::vector<std::string> values;
  uint64_t bytes = 0;  // that this takes up, about

  bool empty() const { return keys.empty(); }
  size_t size() const { return keys.size(); }
  void Add(std::string&& internal_key, std::string&& value) {
    bytes += internal_key.size() + value.size() + 2 * sizeof(std::string);
    keys.push_back(std::move(internal_key));
    values.push_back(std::move(value));
  }
};

// Looks whether keys have an anchor in a given set of files.
//
// Used by one thread.
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

  // The newest anchor of the key, also of a range, up to read_seq; 0 if there
  // is none. What is not above `below` may be missed.
  Status Newest(const Slice& user_key, SequenceNumber read_seq,
                SequenceNumber below, SequenceNumber* seq) const;

  bool empty() const { return files_.empty(); }

  // The anchor files of a Version that a collection up to `floor` did not read.
  // Not those of `without`, which may be nullptr.
  static std::vector<DeltaVersion::FilePtr> FilesAbove(
      const DeltaVersion& version, uint64_t floor,
      const DeltaVersion* without = nullptr);

 private:
  const DeltaStore* const store_;
  const Comparator* const ucmp_;
  const ReadOptions read_options_;
  std::vector<DeltaVersion::FilePtr> files_;
};

// Merges operands with what the LSM-tree's files have of their keys. The result
// is a value that can take the place of both: see DeltaFoldCommit.
//
// Invariants:
// * Only operands in the newest stripe are taken: every reader to come, and
//   every snapshot, sees all of them. Of those who see fewer, all hold a
//   Version in which the operands still are.
// * What is newer than the newest operand leaves the value as it is. If that is
//   a base there is an anchor: such a key is not taken if the anchor is known
//   by now, and DeltaFoldCommit finds it if it comes later.
// * Whatever goes wrong with one key (its merge fails, its base cannot be read)
//   leaves its operands where they are, for readers to see what they would
//   have seen. It does not fail the job.
//
// Keys come in ascending order, so that one iterator over the tree, which only
// goes forward, reads no block twice. Point lookups could ask filters first,
// which would spare a block of an upper level now and then where keys are far
// apart; but filters know nothing of keys whose values the address map has.
//
// Used by one thread.
class DeltaValueFolder final : public DeltaFolder {
 public:
  struct Context {
    const DeltaStore* store = nullptr;
    const ImmutableOptions* ioptions = nullptr;
    // Of the job.
    uint64_t floor = 0;  // last epoch of files that it takes in
    SequenceNumber earliest_snapshot = 0;
    FileOptions file_options;
    const std::atomic<bool>* shutting_down = nullptr;  // may be nullptr
    Env::IOPriority io_priority = Env::IO_LOW;
    // Beyond it nothing more is taken, see stats().full.
    uint64_t max_bytes = kMaxBytes;
  };
  struct Stats {
    uint64_t keys_folded = 0;
    uint64_t operands_folded = 0;
    uint64_t bytes_folded = 0;   // of what they have become
    uint64_t keys_left = 0;      // that a snapshot or an anchor keeps
    uint64_t keys_left_for_snapshots = 0;  // of these
    uint64_t merges_failed = 0;  // or the base could not be read
    // Some of these because of an error that may go away.
    bool read_failed = false;
    bool full = false;
  };

  // As large as a memtable, since it is one more in memory, and flushes wait
  // for it to be written; but not so small that a job has a few keys only.
  static uint64_t MaxBytes(const MutableCFOptions& options);

  static constexpr uint64_t kMinBytes = uint64_t{8} << 20;
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

  // Of the LSM part of a Version, which is pinned until the destructor.
  // REQUIRES of this and the destructor: DB mutex held. The Version has delta
  // files.
  DeltaValueFolder(const Context& context, Version* version);
  // For tests: of an iterator over the SST part, without range tombstones.
  // REQUIRES: all outlive this.
  DeltaValueFolder(const Context& context,
                   std::shared_ptr<const DeltaVersion> deltas,
                   InternalIterator* lsm, const BlobFetcher* fetcher);
  ~DeltaValueFolder() override;
  DeltaValueFolder(const DeltaValueFolder&) = delete;
  DeltaValueFolder& operator=(const DeltaValueFolder&) = delete;

  Status Fold(const Slice& user_key, const std::vector<Operand>& operands,
              bool hidden_from_none, bool* taken) override;

  // Nothing more is folded. Best called without the DB mutex.
  void Finish();

  const Stats& stats() const { return stats_; }
  // Of the last key that could not be read or merged.
  const Status& last_failure() const { return last_failure_; }
  uint64_t floor() const { return context_.floor; }
  uint64_t max_bytes() const { return context_.max_bytes; }

  // ---- For DeltaFoldCommit.

  FoldedValues* values() { return &values_; }
  // What was seen of delta files. Not null.
  const std::shared_ptr<const DeltaVersion>& deltas() const { return deltas_; }
  // Of merged values: in a later one a filter may have changed what was read
  // here.
  uint64_t generation() const { return generation_; }
  // The SST files that keys that were folded may have come from.
  // REQUIRES: Finish() was called.
  const std::vector<uint64_t>& sources() const { return sources_; }

 private:
  class KeyIterator;

  // How many entries of the tree are stepped over before it is sought.
  static constexpr int kMaxSteps = 8;

  void OpenLsm();
  // The iterator over the tree goes to the key's first entry, or past it.
  Status SeekLsm(const Slice& user_key);
  bool LsmIsAt(const Slice& user_key) const;
  // *result is empty unless the merge was successful.
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

  // Of the Version, made by the first key.
  Arena arena_;
  ScopedArenaPtr<InternalIterator> own_lsm_;
  std::unique_ptr<OwningVersionBlobFetcher> own_fetcher_;
  InternalIterator* lsm_ = nullptr;
  const BlobFetcher* fetcher_ = nullptr;
  // It was sought before.
  bool lsm_is_placed_ = false;
  // The tree could not be read: nothing more is taken.
  bool lsm_is_broken_ = false;

  FoldedValues values_;
  std::vector<uint64_t> sources_;
  bool is_finished_ = false;
  Stats stats_;
  Status last_failure_;
};

}  // namespace ROCKSDB_NAMESPACE
