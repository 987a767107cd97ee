//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_store.h"

#include <utility>

namespace ROCKSDB_NAMESPACE {

DeltaStore::DeltaStore(DeltaTableFamily family, const MutableCFOptions& options)
    : tables_(std::move(family), options) {}

Status DeltaStore::OpenReader(const ReadOptions& read_options,
                              const DeltaFileMeta& file,
                              DeltaFileReader** reader) const {
  if (read_options.read_tier == kBlockCacheTier) {
    return Status::Incomplete("Delta file is not open, and no I/O allowed");
  }
  return file.GetReader(
      [&](const DeltaFileDescription& description,
          std::shared_ptr<DeltaFileReader>* opened) {
        std::unique_ptr<DeltaFileReader> result;
        Status s =
            DeltaFileReader::Open(tables_, read_options, description, &result);
        *opened = std::move(result);
        return s;
      },
      reader);
}

}  // namespace ROCKSDB_NAMESPACE
