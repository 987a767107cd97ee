//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

class OverlappedReads;

// A file for which reads can be begun ahead of time: see OverlappedReads.
// Otherwise it behaves like the file that it wraps.
//
// Thread-safe.
class OverlappedReadFile final : public FSRandomAccessFileOwnerWrapper {
 public:
  using FSRandomAccessFileOwnerWrapper::FSRandomAccessFileOwnerWrapper;

  // If the calling thread has an OverlappedReads::Scope with a read of these
  // bytes, waits for that read and returns its result. Otherwise reads from the
  // wrapped file.
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                Slice* result, char* scratch,
                IODebugContext* dbg) const override;
};

// Asynchronous reads that a thread begins before it needs their results. The
// device serves them while the thread does other work. No other thread is
// involved.
//
// This works below the table reader: the bytes that it will request from the
// file are read ahead of the request. So checksums, caches, statistics and rate
// limits are handled by the table reader, and if a read fails here, the request
// of the table reader reads the bytes again.
//
// Used only by the thread that creates it.
class OverlappedReads {
 public:
  // fs: the file system of the files.
  // REQUIRES: fs supports FSSupportedOps::kAsyncIO; fs and the files outlive
  // this.
  explicit OverlappedReads(FileSystem* fs);
  // Waits for all reads, because they write to memory that is freed.
  ~OverlappedReads();
  OverlappedReads(const OverlappedReads&) = delete;
  OverlappedReads& operator=(const OverlappedReads&) = delete;

  static constexpr size_t kMaxReadSize = size_t{256} << 10;

  // Begins to read `size` bytes of the file. Returns false if the file system
  // refuses, or if size exceeds kMaxReadSize, which bounds the memory.
  // request_id: ReadOptions::request_id, for the file system.
  // REQUIRES: size > 0; *request_id, if there is one, outlives this.
  bool Begin(const OverlappedReadFile& file, uint64_t offset, size_t size,
             const IOOptions& options, const std::string* request_id = nullptr);

  // Returns false if a read was completed by Begin() itself, or was refused:
  // the file system cannot read asynchronously, at least not at the moment (see
  // FSRandomAccessFile::ReadAsync()).
  bool is_async() const { return is_async_; }

  // Returns true if all reads that were begun have been taken.
  bool empty() const { return reads_.empty(); }

  // Makes the reads available to OverlappedReadFile::Read() in the calling
  // thread during the lifetime of the object. reads: may be nullptr for none.
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

  // Waits for a read that was begun and has these bytes of the file, and copies
  // them. Returns false if there is none, or if it failed.
  bool Take(const OverlappedReadFile* file, uint64_t offset, size_t n,
            char* scratch, Slice* result);
  void Wait(Read* read);

  FileSystem* const fs_;
  bool is_async_ = true;
  // The reads that were begun and not yet taken; there are only a few. Their
  // addresses do not change, because file systems have pointers to them.
  std::vector<std::unique_ptr<Read>> reads_;
};

}  // namespace ROCKSDB_NAMESPACE
