//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/map_commit_observer.h"
#include "db/address_map/mapped_blob_writer.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class AddressMapStore;

// The blob files that one job brings into the address map, from before its
// MANIFEST edit is written until the edit's fate is known.
//
//   Publish() -> (the edit is written, perhaps by another thread) -> Settle()
//
// Invariants:
// * The map names the records before a Version does whose SST files have them.
// * Whether the edit was committed is taken from the Versions that were
//   appended, never from a status: a status may be bad after a commit and good
//   without one.
// * After Settle() either all records count and what they superseded is gone,
//   or none is in the map and what they superseded is current again.
//
// One thread uses it; OnVersionAppended() may come from another one, under the
// DB mutex.
class MapTransaction : public MapCommitObserver {
 public:
  // The edit is committed once a Version is appended that has (if
  // !when_present: no longer has) the SST file `sst_number`.
  // REQUIRES: DB mutex held; blobs outlives this.
  MapTransaction(AddressMapStore* blobs, uint64_t sst_number,
                 bool when_present);
  // REQUIRES: DB mutex held; Settle() was called if Publish() was.
  ~MapTransaction() override;
  MapTransaction(const MapTransaction&) = delete;
  MapTransaction& operator=(const MapTransaction&) = delete;

  // Inserts the records of the files. After an error the job must not commit
  // its edit.
  // REQUIRES: the files and their directories are synced; called once.
  Status Publish(std::vector<MappedBlobFile>&& files);

  // REQUIRES: DB mutex held.
  void OnVersionAppended(const VersionStorageInfo& version) override;

  // From now on committed() does not change. To be called as soon as the edit's
  // fate is known: after a failure, another job may delete `sst_number`.
  // REQUIRES: DB mutex held.
  void Close();

  // REQUIRES: DB mutex held, or Close() was called.
  bool committed() const { return committed_; }

  // Commits the records, or takes them back.
  // REQUIRES: Close() was called; if the edit is committed, a SuperVersion with
  // it was installed. DB mutex not held.
  void Settle();

 private:
  struct File {
    uint32_t slot = 0;
    MappedBlobFile file;
  };
  using Records = std::vector<AddressMap::Record>;

  Status ForEachBatch(const File& file,
                      const std::function<Status(const Records&)>& fn) const;

  AddressMapStore* const blobs_;
  const uint64_t sst_number_;
  const bool when_present_;
  bool is_open_ = true;
  bool committed_ = false;
  std::vector<File> files_;
};

}  // namespace ROCKSDB_NAMESPACE
