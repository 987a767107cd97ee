//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

class OverlappedReads;

// A file of which reads can be begun ahead of time: see OverlappedReads.
// Otherwise it is the file that it wraps.
//
// Thread-safe.
class OverlappedReadFile final : public FSRandomAccessFileOwnerWrapper {
 public:
  using FSRandomAccessFileOwnerWrapper::FSRandomAccessFileOwnerWrapper;

  // What was begun by this thread, and is lent to it (OverlappedReads::Scope),
  // is waited for; all else is read as ever.
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                Slice* result, char* scratch,
                IODebugContext* dbg) const override;
};

// Reads that a thread has begun and does something else before it needs them.
// The device serves them in the meantime; no other thread takes part.
//
// It is done below the table reader: what it will ask the file for is read
// before it asks, so that checksums, caches, counts and limits of rates are its
// business as ever, and what goes wrong here is read again by it.
//
// Used by one thread, the one that makes it.
class OverlappedReads {
 public:
  // fs: of the files. REQUIRES: it supports FSSupportedOps::kAsyncIO, and it
  // and the files outlive this.
  explicit OverlappedReads(FileSystem* fs);
  // Waits for what is under way, as it writes to memory that is freed.
  ~OverlappedReads();
  OverlappedReads(const OverlappedReads&) = delete;
  OverlappedReads& operator=(const OverlappedReads&) = delete;

  static constexpr size_t kMaxReadSize = size_t{256} << 10;

  // Begins to read that part of the file, which is not empty. False: that is
  // not possible now, or it is longer than kMaxReadSize, which would be a lot
  // of memory.
  bool Begin(const OverlappedReadFile& file, uint64_t offset, size_t size,
             const IOOptions& options);

  // False: a read was done when it should have been begun, or was refused. The
  // file system can do no better (see FSRandomAccessFile::ReadAsync()), or not
  // now.
  bool is_async() const { return is_async_; }

  // Nothing was begun that was not asked for yet.
  bool empty() const { return reads_.empty(); }

  // Lends the reads to its thread, as long as it lives: OverlappedReadFile
  // finds them. nullptr: there are none to be lent.
  class Scope {
   public:
    explicit Scope(OverlappedReads* reads);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    OverlappedReads* const outer_;
  };

 private:
  friend class OverlappedReadFile;

  struct Read;

  static thread_local OverlappedReads* lent_;

  // Waits for what was begun of that part of the file, and copies it. False:
  // there is nothing, or it failed.
  bool Take(const OverlappedReadFile* file, uint64_t offset, size_t n,
            char* scratch, Slice* result);
  void Wait(Read* read);

  FileSystem* const fs_;
  bool is_async_ = true;
  // A few. Where each is does not change, file systems know it.
  std::vector<std::unique_ptr<Read>> reads_;
};

}  // namespace ROCKSDB_NAMESPACE
