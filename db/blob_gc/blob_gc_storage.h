//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
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

// What one garbage collection does to the files and the map of its column
// family.
//
//   (the values are copied) -> Publish() -> (the edit is written) -> Close() ->
//   Settle()
//
// Invariants:
// * The old files stay until the edit's fate is known and, if it failed, as if
//   nothing had happened: they are pinned.
// * An address is swapped only if the entry still has the one that was copied,
//   and only back from the copy. What becomes of the entry meanwhile - it is
//   renamed, superseded, removed - does not matter.
// * The copies are durable before an entry names them.
//
// The old files leave in the same edit if they have no live value left. If one
// stays, as somebody else works on it, or after a failure, both files have the
// same names in them: recovery takes the newer one, and the old one is dropped
// as any other without a live value.
//
// One thread uses it; OnVersionAppended() may come from another one, under the
// DB mutex, at any time. It looks at the outputs only when all are there.
class BlobGcStorage : public MapCommitObserver {
 public:
  // Pins the files. Those that are gone are left out: files().
  // REQUIRES: DB mutex held; blobs outlives this.
  BlobGcStorage(AddressMapStore* blobs, const std::vector<uint64_t>& files);
  // Unpins them.
  // REQUIRES: DB mutex held; Settle() was called if Publish() was.
  ~BlobGcStorage() override;
  BlobGcStorage(const BlobGcStorage&) = delete;
  BlobGcStorage& operator=(const BlobGcStorage&) = delete;

  struct File {
    uint64_t number = 0;
    uint32_t slot = 0;
  };
  const std::vector<File>& files() const { return files_; }

  // Values that the blob cache has stay in it as they move: key_sizes, of the
  // user keys, are in the order of `from` below.
  // REQUIRES: called before Publish(), or not at all; source outlives this.
  void MoveCached(const BlobSource* source, std::vector<uint32_t>&& key_sizes);

  // Makes the map name the copies. from: where each record of the outputs, in
  // their order, was copied from. After an error the job must not commit its
  // edit.
  // REQUIRES: the outputs and their directory are synced; there is one at
  // least; called once.
  Status Publish(std::vector<MappedBlobFile>&& outputs,
                 std::vector<MapAddress>&& from);

  // How many values, and bytes of records, now lie in the outputs.
  uint64_t num_moved() const { return num_moved_; }
  uint64_t bytes_moved() const { return bytes_moved_; }

  // Adds the removal of the old files to the job's edit. Returns what
  // AddressMapStore::AddDrops() does.
  // REQUIRES: Publish() succeeded; DB mutex held.
  std::vector<uint64_t> AddDrops(const VersionStorageInfo& version,
                                 VersionEdit* edit);

  // REQUIRES of the following two: DB mutex held.
  void OnVersionAppended(const VersionStorageInfo& version) override;
  // From now on committed() does not change. As MapTransaction::Close().
  void Close();
  bool committed() const { return committed_; }

  // If the edit failed, the map names the old files again.
  // REQUIRES: Close() was called; DB mutex not held.
  void Settle();

 private:
  struct Output {
    uint32_t slot = 0;
    MappedBlobFile file;
  };

  // Swaps the addresses of all records, to the outputs or back.
  Status SwapAll(bool back);
  // The record with the i-th key.
  void MoveCachedValue(size_t i, const MapAddress& from, const MapAddress& to);

  AddressMapStore* const blobs_;
  std::vector<File> files_;
  std::vector<Output> outputs_;
  std::atomic<bool> has_outputs_{false};
  std::vector<MapAddress> from_;
  const BlobSource* blob_source_ = nullptr;
  std::vector<uint32_t> key_sizes_;
  bool is_open_ = true;
  bool committed_ = false;
  uint64_t num_moved_ = 0;
  uint64_t bytes_moved_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
