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

// What a WalBuffer had when its process ended belongs at the end of a WAL.
class WalBufferRecovery {
 public:
  // What is missing there.
  struct Missing {
    uint64_t wal_number = 0;
    // What the file of the WAL has.
    uint64_t size = 0;
    // Empty if nothing is missing.
    std::string bytes;
  };

  // Of WALs in this directory.
  WalBufferRecovery(FileSystem* fs, const std::string& wal_dir,
                    const IOOptions& options, Logger* info_log)
      : fs_(fs), wal_dir_(wal_dir), options_(options), info_log_(info_log) {}

  // Is one of these names of files in the directory that of a buffer?
  static bool IsAmong(const std::vector<std::string>& names);

  // By the buffer there, if there is one. Of a buffer that is not as it was
  // left, or does not fit its WAL, as happens when power is lost, nothing is
  // taken, as nothing of it was synced; with kAbsoluteConsistency that is
  // Corruption.
  Status Find(WALRecoveryMode mode, Missing* missing) const;
  // *is_torn: something is missing, but the WAL is not what the buffer goes on
  // from, or the buffer is not as it was left.
  Status Find(const WalBufferFormat::Contents& contents, Missing* missing,
              bool* is_torn) const;

  // Finds what is missing, appends it, and deletes the buffer.
  Status Recover(WALRecoveryMode mode) const;

  // The same, but a buffer that is Corruption is left to set_aside().
  Status RecoverForRepair(
      const std::function<void(const std::string& fname)>& set_aside) const;

  // Appends it to the WAL, durably.
  Status Write(const Missing& missing) const;
  // Deletes the buffer, if there is one.
  Status Remove() const;

  // The WAL as it would be then. It is not read beyond what it had when that
  // was found, as somebody may append to it.
  static std::unique_ptr<FSSequentialFile> Append(
      std::unique_ptr<FSSequentialFile>&& wal, const Missing& missing);

 private:
  // bytes->size() of them.
  IOStatus ReadAt(const std::string& fname, uint64_t offset,
                  std::string* bytes) const;

  FileSystem* const fs_;
  const std::string wal_dir_;
  const IOOptions options_;
  Logger* const info_log_;
};

}  // namespace ROCKSDB_NAMESPACE
