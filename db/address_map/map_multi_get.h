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
// If one key must be looked up again, all keys are, so that all results are as
// of one moment.
//
// Used by one thread at a time.
class MapMultiGet {
 public:
  using Keys = autovector<KeyContext*, MultiGetContext::MAX_BATCH_SIZE>;

  // If no column family has a map, the object is inactive and cheap.
  // REQUIRES: the arguments outlive this object.
  MapMultiGet(const ReadOptions& read_options, ImplicitSnapshotRegistry* bounds,
              const Keys& keys);
  ~MapMultiGet();
  MapMultiGet(const MapMultiGet&) = delete;
  MapMultiGet& operator=(const MapMultiGet&) = delete;

  bool active() const { return !reads_.empty(); }

  // Starts an attempt.
  // last_sequence: returns the newest visible sequence number.
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

  // The caller's ReadOptions, with a snapshot added from the fourth attempt on.
  const ReadOptions& snapshot_options() const { return bound_.options(); }

  // Calls MapPointRead::Attach() for the n keys of one column family that start
  // at index `first`.
  void Attach(size_t first, size_t n, const SuperVersion* super_version,
              SequenceNumber sequence, ReadCallback* callback);

  // Returns true if the lookup of all keys must be repeated. Their results are
  // reset then.
  // status: that of the lookup as a whole. If it is not OK, the lookup is not
  // repeated, and keys that would have to be looked up again get this status.
  bool Again(const Status& status);

  // Executes the read requests, those of different files in parallel, because
  // the values of direct keys may be in as many files as there are keys.
  static void ReadBlobs(const ImmutableOptions& ioptions, BlobSource* source,
                        const ReadOptions& read_options,
                        autovector<BlobFileReadRequests>* requests);

 private:
  // Like ReadBlobs(), with asynchronous reads of the calling thread.
  static void ReadBlobsAsync(const ImmutableOptions& ioptions,
                             BlobSource* source,
                             const ReadOptions& read_options,
                             autovector<BlobFileReadRequests>* requests);

  void StartAll();

  const Keys& keys_;
  // One element per key, or none. An element is empty if its key's column
  // family has no map.
  std::vector<std::optional<MapPointRead>> reads_;

  int attempts_ = 0;
  ImplicitSnapshot bound_;
};

}  // namespace ROCKSDB_NAMESPACE
