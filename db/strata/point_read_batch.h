//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "db/strata/implicit_snapshot.h"
#include "db/strata/point_read.h"
#include "port/likely.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/multiget_context.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

class DeltaVersion;
class ReadCallback;
class Version;
struct SuperVersion;

// The PointReads of a batch of keys, of one or several column families.
//
//   do {
//     Begin()
//     ... take the SuperVersions and the sequence number, by
//         snapshot_options() ...
//     Attach() for each column family
//     ... look the keys up ...
//   } while (Again());
//
// If one key must be looked up again, all keys are, so that all results are as
// of one moment.
//
// Used by one thread at a time.
class PointReadBatch {
 public:
  using Keys = autovector<KeyContext*, MultiGetContext::MAX_BATCH_SIZE>;

  // If no column family needs PointReads, the object is inactive and cheap.
  // registry: for the snapshot of the fourth attempt.
  // REQUIRES: the arguments outlive this object.
  PointReadBatch(const ReadOptions& read_options,
                 ImplicitSnapshotRegistry* registry, const Keys& keys);
  ~PointReadBatch();
  PointReadBatch(const PointReadBatch&) = delete;
  PointReadBatch& operator=(const PointReadBatch&) = delete;

  bool active() const { return !reads_.empty(); }

  // Starts an attempt.
  // last_sequence: returns the newest visible sequence number.
  template <typename LastSequence>
  void Begin(const LastSequence& last_sequence) {
    if (!has_maps_) {
      return;
    }
    if (++attempts_ > MapPointRead::kMaxPlainAttempts) {
      snapshot_.Take(last_sequence);
    }
    StartAll();
  }

  // The caller's ReadOptions, with a snapshot added from the fourth attempt on.
  // The sequence number is taken, and the keys are looked up, with these: the
  // range deletions of SST files are read by the options' snapshot.
  const ReadOptions& snapshot_options() const { return snapshot_.options(); }

  // Calls PointRead::Attach() for the n keys of one column family that start at
  // index `first`.
  void Attach(size_t first, size_t n, const SuperVersion* super_version,
              SequenceNumber sequence, ReadCallback* callback);

  // Returns true if the lookup of all keys must be repeated. Their results are
  // reset then.
  // status: that of the lookup as a whole. If it is not OK, the lookup is not
  //     repeated, and keys that would have to be looked up again get this
  //     status.
  bool Again(const Status& status);

  // Calls PointRead::AfterMemTables() for each key that is left in the range,
  // and marks the keys that have their result as done. If their sizes exceed
  // read_options.value_size_soft_limit, calls Abort() for the others.
  static void AfterMemTables(const ReadOptions& read_options,
                             MultiGetContext::Range* range);
  // Marks all keys that are left in the range as done, with Status::Aborted():
  // the values that were found exceed ReadOptions::value_size_soft_limit.
  static void Abort(MultiGetContext::Range* range);

  // The search in the files of a Version, see PointRead::FileSearch. The delta
  // files of all keys are begun to be read before the first value is looked
  // for.
  //
  // Each key gets a DeltaRead, whether it has operands or not: TableCache asks
  // the first key of a batch whether it may use the row cache for all of them.
  class FileSearch {
   public:
    // delta: what the Version has of delta files; may be nullptr.
    // REQUIRES: all arguments outlive this object.
    FileSearch(const Version& version, const DeltaVersion* delta,
               const ReadOptions& read_options,
               const MultiGetContext::Range& range) {
      if (UNLIKELY(delta != nullptr)) {
        Begin(version, *delta, read_options, range);
      }
    }
    ~FileSearch() {
      if (UNLIKELY(reads_ != nullptr)) {
        End();
      }
    }
    FileSearch(const FileSearch&) = delete;
    FileSearch& operator=(const FileSearch&) = delete;

   private:
    struct KeyRead {
      PointRead* point_read = nullptr;
      std::optional<DeltaRead> deltas;
    };

    void Begin(const Version& version, const DeltaVersion& delta,
               const ReadOptions& read_options,
               const MultiGetContext::Range& range);
    void End();

    std::unique_ptr<KeyRead[]> reads_;
    size_t num_reads_ = 0;
  };

 private:
  void StartAll();

  const Keys& keys_;
  // One element per key, or none. An element is empty if its key's column
  // family needs no PointRead.
  std::vector<std::optional<PointRead>> reads_;
  bool has_maps_ = false;

  int attempts_ = 0;
  ImplicitSnapshot snapshot_;
};

}  // namespace ROCKSDB_NAMESPACE
