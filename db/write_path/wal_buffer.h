//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "db/write_path/wal_buffer_format.h"
#include "port/port.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/statistics.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class Logger;

// Buffers the bytes that are appended to the WALs of a DB in a memory-mapped
// file (wal_mmap_buffer_size). They are written to the WAL when the buffer is
// full, when the WAL is synced, closed or read, and before anything is appended
// to a newer WAL. An append is therefore no system call, and still survives a
// crash of the process, because the pages of a mapped file belong to the
// operating system. WalBufferRecovery restores the bytes after a crash.
//
// Invariants:
// 1. The contents of a WAL are its file followed by its bytes in the buffer.
// 2. The buffer has bytes of at most one WAL, and never the first bytes of a
//    WAL.
// 3. All bytes of older WALs are in their files. If they could not be written
//    there, the buffer keeps them for a later attempt, or for the next open of
//    the DB, and newer WALs are written without the buffer.
// 4. Bytes that FSWritableFile::Truncate() drops never come back. If the file
//    of the WAL has some of them and could not be truncated, no WAL gets a
//    byte, and FSWritableFile::Flush() of that file fails, until it is
//    truncated; each of these calls tries it again.
// 5. The buffer syncs a file only to make the drop of bytes durable that a sync
//    may have made durable. Callers sync the older WALs before they sync a WAL,
//    so a loss of power never leaves bytes of a WAL without those before them.
//
// Thread-safe.
// REQUIRES: outlives the files that Wrap() returns.
class WalBuffer {
 public:
  // Creates the buffer's file, or overwrites it. size: bytes, rounded up to
  // whole pages. Returns NotSupported if the file system does not map files, or
  // if the mapping does not show what was written, as with encryption.
  // REQUIRES: the contents of an existing file have been recovered.
  static Status Create(const std::shared_ptr<FileSystem>& fs,
                       const std::string& wal_dir, size_t size,
                       const IOOptions& options, Statistics* statistics,
                       Logger* info_log, std::unique_ptr<WalBuffer>* buffer);

  ~WalBuffer();
  WalBuffer(const WalBuffer&) = delete;
  WalBuffer& operator=(const WalBuffer&) = delete;

  // Returns a file that appends to the WAL `file` through the buffer.
  // REQUIRES: the WAL is empty.
  std::unique_ptr<FSWritableFile> Wrap(uint64_t wal_number,
                                       const std::string& fname,
                                       std::unique_ptr<FSWritableFile>&& file);

  // Writes all bytes that were appended before the call to the files of their
  // WALs.
  IOStatus WriteOut(const IOOptions& options);
  // Truncates the file that FSWritableFile::Truncate() could not truncate, if
  // there is one.
  IOStatus FinishCut(const IOOptions& options);

  // Deletes the buffer's file if nothing in it is needed. Returns false if the
  // file still exists.
  // REQUIRES: the files of Wrap() that were written to are closed. Afterwards
  // only their destructors and that of this object are called.
  bool Remove();

 private:
  class File;

  WalBuffer(const std::shared_ptr<FileSystem>& fs, const std::string& wal_dir,
            std::unique_ptr<MemoryMappedFileBuffer>&& mapping,
            Statistics* statistics, Logger* info_log);

  IOStatus Append(File* file, const Slice& data, const IOOptions& options,
                  bool has_checksum, IODebugContext* dbg);
  // Writes the bytes of `file` that are in the buffer. If this returns OK, the
  // buffer has no bytes of the file.
  IOStatus WriteOut(File* file, const IOOptions& options, IODebugContext* dbg);
  // The same, before a sync of `file`. If this returns OK, EndSync() has to be
  // called after the sync, whether that fails or not.
  IOStatus BeginSync(File* file, const IOOptions& options, IODebugContext* dbg);
  void EndSync(File* file);
  // Drops the bytes of `file` behind `size` from the buffer and from the file
  // itself. If this fails, only the file still has some of them, and
  // FinishCut() is left.
  // REQUIRES: size <= file->size_
  IOStatus Cut(File* file, uint64_t size, const IOOptions& options,
               IODebugContext* dbg);
  // Completes a Cut() of `file` that has failed; does nothing if there is none.
  IOStatus FinishCut(File* file, const IOOptions& options, IODebugContext* dbg);
  // Detaches the buffer from `file`, to which nothing can be written after
  // this.
  void Forget(File* file);

  // REQUIRES: mutex_ is held
  IOStatus AppendLocked(File* file, const Slice& data, const IOOptions& options,
                        bool has_checksum, IODebugContext* dbg);
  // Writes `data` to the file itself; the buffer takes later appends.
  // REQUIRES: mutex_ is held, the buffer is empty
  IOStatus WriteAndStart(File* file, const Slice& data,
                         const IOOptions& options, bool has_checksum,
                         IODebugContext* dbg);
  // REQUIRES: mutex_ is held
  IOStatus WriteOutLocked(File* file, const IOOptions& options,
                          IODebugContext* dbg);
  IOStatus WriteOutLocked(const IOOptions& options, IODebugContext* dbg);
  // Drops bytes from the buffer, and notes how far the file has to be truncated
  // if it may have some of them.
  // REQUIRES: mutex_ is held, no other file is to be truncated
  void Drop(File* file, uint64_t size);
  // Truncates the file that Drop() has noted, if there is one.
  // REQUIRES: mutex_ is held
  IOStatus FinishCutLocked(const IOOptions& options, IODebugContext* dbg);
  // Finds how many of the buffer's bytes are in the owner's file after a failed
  // write.
  IOStatus FindWritten(const IOOptions& options, IODebugContext* dbg,
                       size_t* written) const;

  // Writes the bytes of a stuck buffer to their WAL, if that still exists.
  // REQUIRES: mutex_ is held
  IOStatus WriteOutStuck(const IOOptions& options);

  const std::shared_ptr<FileSystem> fs_;
  const std::string wal_dir_;
  const std::string fname_;
  Statistics* const statistics_;
  Logger* const info_log_;

  port::Mutex mutex_;
  // The members below are guarded by mutex_.
  std::unique_ptr<MemoryMappedFileBuffer> mapping_;
  WalBufferFormat format_;
  // The file whose appends go to the buffer; nullptr if there is none.
  File* owner_ = nullptr;
  // A write of the owner's bytes has failed, so its file may have some of them.
  bool has_failed_ = false;
  // The buffer has bytes of a file that was closed or destroyed before they
  // could be written. Nothing is added to them.
  bool is_stuck_ = false;
  // The file that has to be truncated to cut_to_ bytes before anything else is
  // done with WALs; nullptr if there is none. Also read without mutex_, by
  // threads that need to see only what they have written.
  std::atomic<File*> cut_file_{nullptr};
  uint64_t cut_to_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
