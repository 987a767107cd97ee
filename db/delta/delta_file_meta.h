//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "db/delta/delta_file_description.h"
#include "port/likely.h"
#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DeltaFileReader;

// A delta file that no Version has any more and that is to be deleted.
struct ObsoleteDeltaFile {
  uint64_t number = 0;
  std::string directory;
  // UINT32_MAX: unknown.
  uint32_t column_family_id = UINT32_MAX;
  uint32_t path_id = 0;
  uint64_t size = 0;  // bytes
  // nullptr if the file was never opened.
  std::shared_ptr<DeltaFileReader> reader;
  uint32_t uncache_aggressiveness = 0;

  // To be called before the file is deleted.
  // REQUIRES: DB mutex not held
  void CloseReader();
};

// A delta file that Versions share: its description and its reader. The reader
// is passed on by the job that has written the file, or opened by the first
// thread that needs it. A store has some hundred files and every read may ask
// several of them, so readers are kept here rather than in the table cache,
// which would cost a lookup per file and read.
//
// Thread-safe. The description never changes. The reader is set once and stays
// until the file is released.
class DeltaFileMeta {
 public:
  // Opens the file. Called with only the lock of the file held; must not call
  // GetReader() of the same file. It may do I/O, so GetReader() must not be
  // called with the DB mutex held.
  using Opener = std::function<Status(const DeltaFileDescription&,
                                      std::shared_ptr<DeltaFileReader>*)>;
  // Called once, by the thread that drops the last reference. The reader may be
  // nullptr.
  using OnRelease = std::function<void(const DeltaFileDescription&,
                                       std::shared_ptr<DeltaFileReader>)>;

  // Creates a file, which is open from the beginning if `description.opened`
  // has a reader.
  // on_release: may be empty. Its requirements apply to dropping the last
  // reference: for example, that a mutex is held.
  static std::shared_ptr<const DeltaFileMeta> Create(
      DeltaFileDescription description, OnRelease on_release);

  DeltaFileMeta(const DeltaFileMeta&) = delete;
  DeltaFileMeta& operator=(const DeltaFileMeta&) = delete;

  const DeltaFileDescription& description() const { return description_; }
  uint64_t number() const { return description_.number; }

  // Sets *reader to the reader, which is opened by `open` if no earlier call
  // was successful. The reader lives as long as this object: readers pin the
  // Version, so that the reader itself needs no reference count, for which all
  // cores would compete.
  //
  // While one thread opens the file, others wait. Letting each of them open it
  // and keeping the first result would save no time, as all read the same
  // blocks, and would have index and filter in memory several times. An error
  // is returned to the caller that met it and is not kept; the next call tries
  // again.
  Status GetReader(const Opener& open, DeltaFileReader** reader) const {
    *reader = opened_.load(std::memory_order_acquire);
    return LIKELY(*reader != nullptr) ? Status::OK() : Open(open, reader);
  }

  // Returns the reader if the file is open, else nullptr.
  DeltaFileReader* OpenedReader() const {
    return opened_.load(std::memory_order_acquire);
  }

  size_t ApproximateMemoryUsage() const;

 private:
  DeltaFileMeta(DeltaFileDescription description,
                std::shared_ptr<DeltaFileReader> reader)
      : description_(std::move(description)),
        reader_(std::move(reader)),
        opened_(reader_.get()) {}
  ~DeltaFileMeta() = default;

  Status Open(const Opener& open, DeltaFileReader** reader) const;

  const DeltaFileDescription description_;

  mutable port::Mutex mutex_;
  // Guarded by mutex_ until it is set.
  mutable std::shared_ptr<DeltaFileReader> reader_;
  // reader_.get(), published.
  mutable std::atomic<DeltaFileReader*> opened_{nullptr};
};

}  // namespace ROCKSDB_NAMESPACE
