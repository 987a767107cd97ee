//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "db/address_map/map_name.h"
#include "db/address_map/mapped_blob_writer.h"
#include "db/blob/blob_file_addition.h"
#include "db/blob_gc/blob_copy_job.h"
#include "db/blob_gc/blob_copy_writer.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/blob_heat/hot_mark.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The BlobCopyWriters of a job whose values go to several places: one for each
// path and HotMark.
//
// Invariant: the results of the functions are in the same order, that of the
// writers.
//
// Not thread-safe.
class BlobCopyWriters {
 public:
  // REQUIRES: context outlives this object.
  explicit BlobCopyWriters(const BlobCopyContext& context)
      : context_(context) {}
  BlobCopyWriters(const BlobCopyWriters&) = delete;
  BlobCopyWriters& operator=(const BlobCopyWriters&) = delete;

  // Returns the writer of the place. It belongs to this object.
  // path_id: the path of the files. hot: their mark.
  BlobCopyWriter* Of(uint32_t path_id, HotMark hot = HotMark());

  // Return the sums of bytes_copied() and bytes_stored() of the writers.
  uint64_t BytesCopied() const;
  uint64_t BytesStored() const;
  // Completes all files if s is OK, and deletes them if it is not, or if one
  // cannot be completed. Returns the first error.
  // REQUIRES: called once.
  Status Finish(Status s);

  // REQUIRES: Finish() was called.
  const std::vector<BlobFileAddition>& additions() const { return additions_; }
  // Returns the size in bytes of all complete files.
  uint64_t BytesWritten() const;
  std::vector<MappedBlobFile> TakeOutputs();
  std::vector<MapAddress> TakeSources();
  std::vector<uint32_t> TakeKeySizes();
  std::vector<BlobGcPicker::KeyRange> TakeKeyRanges();

 private:
  using Place = std::pair<uint32_t, HotMark>;

  const BlobCopyContext& context_;
  std::map<Place, std::unique_ptr<BlobCopyWriter>> writers_;
  std::vector<BlobFileAddition> additions_;
};

}  // namespace ROCKSDB_NAMESPACE
