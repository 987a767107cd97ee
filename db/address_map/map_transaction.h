//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/map_commit_observer.h"
#include "db/address_map/mapped_blob_writer.h"
#include "rocksdb/env.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class AddressMapStore;
class RecordIndexReader;

// Adds the blob files of one job to the address map, and commits or rolls back
// these additions along with the job's MANIFEST edit.
//
//   Publish() -> (the edit is written, perhaps by another thread) -> Close() ->
//   Settle()
//
// docs/architecture.md, section 11, describes these steps for all jobs.
//
// Invariants:
// 1. The map names the records before any Version contains the SST files that
//    refer to them.
// 2. Whether the edit was committed is determined from the appended Versions,
//    never from a status: the status may be an error although the edit was
//    committed, and OK although it was not.
// 3. After Settle() either all records are committed and the entries that they
//    superseded are removed (or kept, if the caller says so), or no record is
//    in the map and the superseded entries are current again. This does not
//    depend on whether the files can be read.
// 4. The record indexes of all files of the job take at most kMaxIndexBytes of
//    memory from LimitIndex() to the end of Settle(). Those of other files are
//    read from the files, which are pinned as long as the map may name them.
//
// Used by one thread, except that OnVersionAppended() may be called by another
// thread that holds the DB mutex, and LimitIndex() by several threads.
class MapTransaction : public MapCommitObserver {
 public:
  // An index takes about 18 bytes for each value.
  static constexpr size_t kMaxIndexBytes = size_t{64} << 20;

  // The edit counts as committed once a Version is appended that contains the
  // SST file `sst_number` or, if !when_present, no longer contains it.
  // activity: the I/O activity of the threads that use this object.
  // REQUIRES: DB mutex held; blobs outlives this object.
  MapTransaction(AddressMapStore* blobs, uint64_t sst_number, bool when_present,
                 Env::IOActivity activity);
  // REQUIRES: DB mutex held; Settle() was called if Publish() was called.
  ~MapTransaction() override;
  MapTransaction(const MapTransaction&) = delete;
  MapTransaction& operator=(const MapTransaction&) = delete;

  // Drops the index of a file that the job has completed if the indexes of its
  // files take too much memory. Thread-safe.
  void LimitIndex(MappedBlobFile* file);

  // Inserts the records of the files into the map. After an error the job must
  // not commit its edit.
  // REQUIRES: the files and their directories are synced; called once.
  Status Publish(std::vector<MappedBlobFile>&& files);

  // REQUIRES: DB mutex held.
  void OnVersionAppended(const VersionStorageInfo& version) override;

  // Fixes the value of committed(). Must be called as soon as the outcome of
  // the edit is known, because after a failure another job may delete
  // `sst_number`.
  // REQUIRES: DB mutex held.
  void Close();

  // REQUIRES: DB mutex held, or Close() was called.
  bool committed() const { return committed_; }

  // Returns the number that the next new file had when the edit was committed.
  // Every value that the edit hid was born before it, and every newer value
  // whose sequence number is smaller than that of its hiding entry was born
  // later:
  // 1. The values of later flushes have larger sequence numbers, and keep them
  //    as long as they are in the map.
  // 2. Any other value that is newer than the hiding entry is in an SST file
  //    that was added after the edit. So the job that writes the value to a
  //    blob file begins after the commit, and numbers its files from then on.
  //    A job that began before, and ends later, has no newer values.
  // 3. Garbage collection moves values, but their births stay.
  // REQUIRES: committed().
  uint64_t born_before() const { return born_before_; }

  // Commits the records in the map, or removes them if the edit was not
  // committed.
  // keep_superseded: leave the entries that committed records supersede in the
  //   map, because readers may still need them. They take space until the next
  //   open rebuilds the map.
  // REQUIRES: Close() was called; if the edit is committed, a SuperVersion that
  // includes it was installed; DB mutex not held.
  void Settle(bool keep_superseded);

 private:
  struct File {
    uint32_t slot = 0;
    MappedBlobFile file;
    bool is_pinned = false;
  };
  using Records = std::vector<AddressMap::Record>;

  Status ForEachBatch(const File& file,
                      const std::function<Status(const Records&)>& fn) const;
  static Status ForEachBatchOf(RecordIndexReader* reader,
                               const std::function<Status(const Records&)>& fn);
  // Does what Settle() does for a file whose index cannot be read. Looks at all
  // entries of the map.
  void SettleByMap(const File& file);

  AddressMapStore* const blobs_;
  const uint64_t sst_number_;
  const bool when_present_;
  const Env::IOActivity activity_;
  std::atomic<size_t> index_bytes_{0};
  bool is_open_ = true;
  bool committed_ = false;
  uint64_t born_before_ = 0;
  std::vector<File> files_;
};

}  // namespace ROCKSDB_NAMESPACE
