//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "db/blob/blob_read_request.h"
#include "rocksdb/rocksdb_namespace.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

class BlobSource;
struct ImmutableOptions;
struct ReadOptions;

// The reads of a MultiGet() that need values of several blob files: in a column
// family with an address map there may be as many files as keys.
class BlobBatchRead {
 public:
  // Executes the read requests, those of different files in parallel:
  // asynchronously if the file system and the options allow it, else with
  // BlobReadPool. The status and the value of each request are stored where it
  // says.
  static void Run(const ImmutableOptions& ioptions, BlobSource* source,
                  const ReadOptions& read_options,
                  autovector<BlobFileReadRequests>* requests);

 private:
  static void RunAsync(const ImmutableOptions& ioptions, BlobSource* source,
                       const ReadOptions& read_options,
                       autovector<BlobFileReadRequests>* requests);
};

}  // namespace ROCKSDB_NAMESPACE
