//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <optional>
#include <vector>

#include "db/address_map/map_point_read.h"
#include "db/blob/blob_read_request.h"
#include "db/strata/implicit_snapshot.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/multiget_context.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

class BlobSource;
class ReadCallback;
struct ImmutableOptions;
struct SuperVersion;

// The MapPointReads of a batch of keys, of one or several column families.
//
//   do {
//     Begin()
//     ... take the SuperVersions and the sequence number, by
//         snapshot_options() ...
//     Attach() for each column family
//     ... look the keys up ...
//   } while (Again());
//
// If one key has to start again, all do: the results are of one moment.
//
// Used by one thread at a time.
class MapMultiGet {
 public:
  using Keys = autovector<KeyContext*, MultiGetContext::MAX_BATCH_SIZE>;

  // Does nothing, and costs little, if no column family has a map.
  // REQUIRES: all outlive this.
  MapMultiGet(const ReadOptions& read_options, ImplicitSnapshotRegistry* bounds,
              const Keys& keys);
  ~MapMultiGet();
  MapMultiGet(const MapMultiGet&) = delete;
  MapMultiGet& operator=(const MapMultiGet&) = delete;

  bool active() const { return !reads_.empty(); }

  // `last_sequence` reads the newest sequence number that is visible.
  template <typename LastSequence>
  void Begin(const LastSequence& last_sequence) {
    if (!active()) {
      return;
    }
    if (++attempts_ > MapPointRead::kMaxPlainAttempts) {
      bound_.Take(last_sequence);
    }
    StartAll();
  }

  // Those of the caller, but with a snapshot from the fourth attempt on.
  const ReadOptions& snapshot_options() const { return bound_.options(); }

  // For n keys of one column family, from `first` on.
  void Attach(size_t first, size_t n, const SuperVersion* super_version,
              SequenceNumber sequence, ReadCallback* callback);

  // True if the lookup of all keys must be repeated: their results are reset.
  // status: of the lookup as a whole. If it is not OK the lookup is over, and
  // keys that would have to start again get it.
  bool Again(const Status& status);

  // Does the requests, those of different files at the same time: the values
  // of direct keys lie in as many files as there are keys.
  static void ReadBlobs(const ImmutableOptions& ioptions, BlobSource* source,
                        const ReadOptions& read_options,
                        autovector<BlobFileReadRequests>* requests);

 private:
  // The same, by asynchronous reads of this thread.
  static void ReadBlobsAsync(const ImmutableOptions& ioptions,
                             BlobSource* source,
                             const ReadOptions& read_options,
                             autovector<BlobFileReadRequests>* requests);

  void StartAll();

  const Keys& keys_;
  // As many as keys, or none. Empty if the column family has no map.
  std::vector<std::optional<MapPointRead>> reads_;

  int attempts_ = 0;
  ImplicitSnapshot bound_;
};

}  // namespace ROCKSDB_NAMESPACE
