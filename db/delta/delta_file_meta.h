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

// A delta file that nothing refers to any more, on its way to being deleted.
struct ObsoleteDeltaFile {
  uint64_t number = 0;
  std::string directory;
  // Null if the file was never opened.
  std::shared_ptr<DeltaFileReader> reader;
  uint32_t uncache_aggressiveness = 0;

  // The file is going to be deleted.
  // REQUIRES: DB mutex not held
  void CloseReader();
};

// A delta file as Versions share it: its description and its reader, which who
// has written the file hands on, or else the first one to need it opens. A
// store has some hundred files and every read may ask several of them, so
// readers are kept here rather than in the table cache, which would cost a
// look-up per file and read.
//
// Thread-safe. The description never changes. The reader is set once and stays
// until the file is released.
class DeltaFileMeta {
 public:
  // Opens the file. It runs without locks other than that of the file, and must
  // not call GetReader() of the same file. It may do I/O, so GetReader() is not
  // for holders of the DB mutex.
  using Opener = std::function<Status(const DeltaFileDescription&,
                                      std::shared_ptr<DeltaFileReader>*)>;
  // Called once, by the thread that drops the last reference, with the reader
  // or nullptr.
  using OnRelease = std::function<void(const DeltaFileDescription&,
                                       std::shared_ptr<DeltaFileReader>)>;

  // The file is open from the beginning if `description.opened` has a reader.
  //
  // on_release may be empty. It decides what holders have to heed: if it needs
  // a mutex to be held, so does dropping the last reference.
  static std::shared_ptr<const DeltaFileMeta> Create(
      DeltaFileDescription description, OnRelease on_release);

  DeltaFileMeta(const DeltaFileMeta&) = delete;
  DeltaFileMeta& operator=(const DeltaFileMeta&) = delete;

  const DeltaFileDescription& description() const { return description_; }
  uint64_t number() const { return description_.number; }

  // The reader, opened by `open` if no call before was successful. It lives as
  // long as this does: whoever reads pins the Version, so that no reference to
  // the reader itself is counted, for which all cores would compete.
  //
  // While one thread opens the file others wait. To let each open it and keep
  // the first result would save nobody time, as all read the same blocks, and
  // would have index and filter in memory several times. An error is returned
  // to the caller that met it and not kept; the next one tries again.
  Status GetReader(const Opener& open, DeltaFileReader** reader) const {
    *reader = opened_.load(std::memory_order_acquire);
    return LIKELY(*reader != nullptr) ? Status::OK() : Open(open, reader);
  }

  // The reader if the file is open, else nullptr.
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
