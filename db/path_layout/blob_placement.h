//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <functional>
#include <memory>

#include "db/blob_gc/blob_relocation.h"
#include "db/dbformat.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileBuilder;
class Compaction;

// Decides where a subcompaction puts the values of the entries it writes, and
// which values that are already in blob files it has to move there. There is
// one target per output level: with per-key placement the proximal level may
// have its values on another path than the output level.
//
// Owned by the subcompaction's CompactionIterator, which calls it for each
// entry. Not thread-safe.
class BlobPlacement {
 public:
  struct Target {
    BlobFileBuilder* builder = nullptr;  // nullptr: values stay in SST files
    BlobRelocation relocation;
  };
  using NewBuilder = std::function<std::unique_ptr<BlobFileBuilder>(int level)>;

  // Returns nullptr if all values go to `builder` and none has to move, as in
  // RocksDB.
  // proximal_after_seqno: entries newer than this go to the proximal level.
  // builder: that of the output level; not owned.
  // new_builder: makes another one (or nullptr) for the proximal level, if that
  //     needs its own.
  static std::unique_ptr<BlobPlacement> Create(
      const Compaction& compaction, SequenceNumber proximal_after_seqno,
      BlobFileBuilder* builder, const NewBuilder& new_builder);

  ~BlobPlacement();

  // Returns the target of an entry with this sequence number.
  Target& For(SequenceNumber seqno) {
    return is_split_ && seqno > proximal_after_seqno_ ? proximal_ : output_;
  }

  // Finishes the builder of the proximal level, if there is one, or abandons it
  // if `s` is an error. Returns the first error.
  Status Finish(Status s);

 private:
  BlobPlacement() = default;

  Target output_;
  Target proximal_;
  bool is_split_ = false;
  SequenceNumber proximal_after_seqno_ = kMaxSequenceNumber;
  std::unique_ptr<BlobFileBuilder> proximal_builder_;
};

}  // namespace ROCKSDB_NAMESPACE
