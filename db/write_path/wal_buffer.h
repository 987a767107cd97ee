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

// Takes in what is appended to the WAL of a DB, in a file that is mapped to
// memory (wal_mmap_buffer_size), and writes it to the WAL when the buffer is
// full, when the WAL is synced, closed or looked at, and before a newer WAL
// gets anything. So an append is no system call, and is safe from the end of
// the process all the same: pages of a mapped file are the operating system's.
// WalBufferRecovery has the other half.
//
// INVARIANT: a WAL is what its file has, followed by what the buffer has for
// it. Only one WAL has anything in the buffer, not at its beginning; all bytes
// of older ones are in their files, unless that could not be written: then the
// buffer is left as it is, for who asks again or opens the DB next, and newer
// WALs do without it.
//
// Thread-safe. Must outlive the files of Wrap().
class WalBuffer {
 public:
  // Makes the file anew: what an earlier one has must have been recovered.
  // NotSupported if the file system does not map files, or maps something else
  // than what was written, as with encryption.
  static Status Create(const std::shared_ptr<FileSystem>& fs,
                       const std::string& wal_dir, size_t size,
                       const IOOptions& options, Statistics* statistics,
                       Logger* info_log, std::unique_ptr<WalBuffer>* buffer);

  ~WalBuffer();
  WalBuffer(const WalBuffer&) = delete;
  WalBuffer& operator=(const WalBuffer&) = delete;

  // For a WAL that is empty.
  std::unique_ptr<FSWritableFile> Wrap(uint64_t wal_number,
                                       const std::string& fname,
                                       std::unique_ptr<FSWritableFile>&& file);

  // Whatever was appended is in files of WALs when this returns.
  IOStatus WriteOut(const IOOptions& options);

  // Deletes the file, if nothing in it is needed. False if it is still there.
  // REQUIRES: files of Wrap() that were written to are closed. Nothing but
  // their destructors and this one's follow.
  bool Remove();

 private:
  class File;

  WalBuffer(const std::shared_ptr<FileSystem>& fs, const std::string& wal_dir,
            std::unique_ptr<MemoryMappedFileBuffer>&& mapping,
            Statistics* statistics, Logger* info_log);

  IOStatus Append(File* file, const Slice& data, const IOOptions& options,
                  bool has_checksum, IODebugContext* dbg);
  // What this file has in the buffer. Afterwards it has nothing, or an error.
  IOStatus WriteOut(File* file, const IOOptions& options, IODebugContext* dbg);
  // Nothing can be written to the file any more.
  void Forget(File* file);

  // REQUIRES: mutex_ is held
  IOStatus AppendLocked(File* file, const Slice& data, const IOOptions& options,
                        bool has_checksum, IODebugContext* dbg);
  // To the file; the buffer takes what comes after.
  // REQUIRES: mutex_ is held, nothing is in the buffer
  IOStatus WriteAndStart(File* file, const Slice& data,
                         const IOOptions& options, bool has_checksum,
                         IODebugContext* dbg);
  // REQUIRES: mutex_ is held
  IOStatus WriteOutLocked(const IOOptions& options, IODebugContext* dbg);
  // After a write that failed, of which a part may be in the file.
  IOStatus FindWritten(const IOOptions& options, IODebugContext* dbg,
                       size_t* written) const;

  // Writes what was left in the buffer to its WAL, if that is still there.
  // REQUIRES: mutex_ is held
  IOStatus WriteOutStuck(const IOOptions& options);

  const std::shared_ptr<FileSystem> fs_;
  const std::string wal_dir_;
  const std::string fname_;
  Statistics* const statistics_;
  Logger* const info_log_;

  port::Mutex mutex_;
  // The rest is guarded by mutex_.
  std::unique_ptr<MemoryMappedFileBuffer> mapping_;
  WalBufferFormat format_;
  // Whose bytes are in the buffer, or would be; null if there is none.
  File* owner_ = nullptr;
  // A write of its bytes has failed, so its file may have some of them.
  bool has_failed_ = false;
  // Its bytes are those of a file that is gone. Nothing is added to them.
  bool is_stuck_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
