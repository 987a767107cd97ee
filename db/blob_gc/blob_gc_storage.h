//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/map_commit_observer.h"
#include "db/address_map/mapped_blob_writer.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class BlobSource;
class AddressMapStore;
class VersionEdit;
class VersionStorageInfo;

// Applies the changes of one garbage collection to the files and the address
// map of its column family.
//
//   (the values are copied) -> Publish() -> AddDrops(edit) -> (the edit is
//   written) -> Close() -> Settle()
//
// docs/architecture.md, section 11, describes these steps for all jobs.
//
// Invariants:
// 1. The old files are pinned until the outcome of the edit is known. If the
//    edit failed, they remain unchanged.
// 2. An address is changed to that of the copy only if the entry still has the
//    address that was copied, and back only if it has the address of the copy.
//    Other changes of the entry meanwhile (it is renamed, superseded or
//    removed) do not matter.
// 3. The copies are durable before an entry of the map names them.
//
// The same edit removes the old files if they have no live values left. If an
// old file remains, because another job has pinned it or after a failure, both
// files have records with the same names. Recovery uses the newer file, and the
// old file is dropped like any other file without live values.
//
// Used by one thread, except that OnVersionAppended() may be called at any time
// by another thread that holds the DB mutex. It accesses the outputs only when
// all of them are present.
class BlobGcStorage : public MapCommitObserver {
 public:
  // Pins the files. files() excludes those that no longer exist.
  // REQUIRES: DB mutex held; blobs outlives this object.
  BlobGcStorage(AddressMapStore* blobs, const std::vector<uint64_t>& files);
  // Unpins the files.
  // REQUIRES: DB mutex held; Settle() was called if Publish() was called.
  ~BlobGcStorage() override;
  BlobGcStorage(const BlobGcStorage&) = delete;
  BlobGcStorage& operator=(const BlobGcStorage&) = delete;

  struct File {
    uint64_t number = 0;
    uint32_t slot = 0;
  };
  const std::vector<File>& files() const { return files_; }

  // Pins a file whose values the job finds in the map. Returns false if the
  // slot has no file that could be pinned. Unlike files(), it stays open to
  // other jobs.
  // slot: of the address of a value; it does not change from now on.
  // REQUIRES: called by the job's thread, before Publish().
  bool PinSource(uint32_t slot, BlobFileSlotTable::Info* info);
  // Unpins such a file, from which nothing was copied.
  void UnpinSource(uint32_t slot);

  // Makes Publish() keep moved values in the blob cache, under their new
  // addresses.
  // key_sizes: bytes, sizes of the user keys in the order of `from` in
  // Publish().
  // REQUIRES: called before Publish() or not at all; source outlives this
  // object.
  void MoveCached(const BlobSource* source, std::vector<uint32_t>&& key_sizes);

  // Changes the addresses in the map to those of the copies. After an error the
  // job must not commit its edit.
  // from: the addresses from which the records of the outputs were copied, in
  // the order of the outputs.
  // REQUIRES: the outputs and their directory are synced; there is at least one
  // output; called once.
  Status Publish(std::vector<MappedBlobFile>&& outputs,
                 std::vector<MapAddress>&& from);

  // Number of values, and bytes of their records, that were moved to the
  // outputs.
  uint64_t num_moved() const { return num_moved_; }
  uint64_t bytes_moved() const { return bytes_moved_; }
  // The part of them that went to outputs which are not hot. The old records,
  // not the copies, have these bytes.
  uint64_t num_moved_home() const { return num_moved_home_; }
  uint64_t bytes_moved_home() const { return bytes_moved_home_; }

  // Adds the removal of the old files to the job's edit. Returns the result of
  // AddressMapStore::AddDrops().
  // REQUIRES: Publish() succeeded; DB mutex held.
  std::vector<uint64_t> AddDrops(const VersionStorageInfo& version,
                                 VersionEdit* edit);

  // REQUIRES: DB mutex held.
  void OnVersionAppended(const VersionStorageInfo& version) override;
  // Fixes the value of committed(). See MapTransaction::Close().
  // REQUIRES: DB mutex held.
  void Close();
  bool committed() const { return committed_; }

  // If the edit failed, changes the addresses in the map back to those of the
  // old files.
  // REQUIRES: Close() was called; DB mutex not held.
  void Settle();

 private:
  struct Output {
    uint32_t slot = 0;
    MappedBlobFile file;
  };

  // Changes the addresses of all records to those in the outputs or back.
  Status SwapAll(bool back);
  // Moves the i-th value in the blob cache.
  void MoveCachedValue(size_t i, const MapAddress& from, const MapAddress& to);

  AddressMapStore* const blobs_;
  std::vector<File> files_;
  std::set<uint32_t> sources_;  // slots that PinSource() has pinned
  std::vector<Output> outputs_;
  std::atomic<bool> has_outputs_{false};
  std::vector<MapAddress> from_;
  const BlobSource* blob_source_ = nullptr;
  std::vector<uint32_t> key_sizes_;
  bool is_open_ = true;
  bool committed_ = false;
  uint64_t num_moved_ = 0;
  uint64_t bytes_moved_ = 0;
  uint64_t num_moved_home_ = 0;
  uint64_t bytes_moved_home_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
