//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/write_path/wal_buffer_format.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class Logger;

// Restores the bytes that a WalBuffer had when its process ended: it appends
// them to their WAL.
//
// Thread-safety: the methods keep no state. The caller ensures that calls that
// change files do not overlap.
class WalBufferRecovery {
 public:
  // The bytes that are missing at the end of a WAL.
  struct Missing {
    uint64_t wal_number = 0;
    // Size of the WAL's file, in bytes.
    uint64_t size = 0;
    // Empty if nothing is missing.
    std::string bytes;
  };

  // wal_dir: the directory of the WALs and of the buffer.
  WalBufferRecovery(FileSystem* fs, const std::string& wal_dir,
                    const IOOptions& options, Logger* info_log)
      : fs_(fs), wal_dir_(wal_dir), options_(options), info_log_(info_log) {}

  // Returns true if one of these file names of a directory is that of a WAL
  // buffer.
  static bool IsAmong(const std::vector<std::string>& names);

  // Finds the missing bytes by the buffer in the directory; none are missing if
  // there is no buffer. After a loss of power a buffer may be damaged, or not
  // continue its WAL. Its bytes are then ignored, since none of them was
  // synced; with kAbsoluteConsistency this returns Corruption instead.
  Status Find(WALRecoveryMode mode, Missing* missing) const;
  // Finds the missing bytes by the contents of a buffer.
  // *is_torn: set if bytes are missing, but the buffer is damaged or does not
  //     continue the WAL.
  Status Find(const WalBufferFormat::Contents& contents, Missing* missing,
              bool* is_torn) const;

  // Finds what is missing, appends it, and deletes the buffer.
  Status Recover(WALRecoveryMode mode) const;

  // Like Recover(), but calls set_aside() with the name of a buffer that is
  // corrupt, and returns OK.
  Status RecoverForRepair(
      const std::function<void(const std::string& fname)>& set_aside) const;

  // Appends the missing bytes to the WAL and syncs it.
  Status Write(const Missing& missing) const;
  // Deletes the buffer, if there is one.
  Status Remove() const;

  // Returns a file that reads the WAL followed by the missing bytes. It reads
  // the WAL's file only up to missing.size, because another thread may append
  // to it.
  static std::unique_ptr<FSSequentialFile> Append(
      std::unique_ptr<FSSequentialFile>&& wal, const Missing& missing);

 private:
  // Reads bytes->size() bytes.
  IOStatus ReadAt(const std::string& fname, uint64_t offset,
                  std::string* bytes) const;

  FileSystem* const fs_;
  const std::string wal_dir_;
  const IOOptions options_;
  Logger* const info_log_;
};

}  // namespace ROCKSDB_NAMESPACE
