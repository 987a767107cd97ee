// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// The resources that a benchmark uses: those of this process, and the bytes of
// a database's files.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// Subtracts `earlier` from the counter *from. The result is unknown if either
// is unknown, and at least 0 even if rounding would make it negative.
template <typename T>
void SubtractCounter(std::optional<T>* from, const std::optional<T>& earlier) {
  if (!earlier) {
    from->reset();
  } else if (*from) {
    *from = **from > *earlier ? **from - *earlier : T{0};
  }
}

// The resources that the process, with all its threads, has used since its
// start. A value that the system does not provide is empty: only Linux has
// /proc/self/io.
//
// Thread safety: a value type. The static functions are thread-safe.
struct ProcessStats {
  // From /proc/self/io. read_bytes and write_bytes are the bytes that were or
  // will be transferred from and to the storage device, as the kernel counts
  // them: writes are counted when pages become dirty. cancelled_write_bytes are
  // those of write_bytes that did not reach the device, because the file was
  // truncated or deleted before.
  std::optional<uint64_t> rchar;
  std::optional<uint64_t> wchar;
  std::optional<uint64_t> syscr;
  std::optional<uint64_t> syscw;
  std::optional<uint64_t> read_bytes;
  std::optional<uint64_t> write_bytes;
  std::optional<uint64_t> cancelled_write_bytes;

  std::optional<double> cpu_user_seconds;
  std::optional<double> cpu_system_seconds;

  // From /proc/self/status. The peak is that since the last ResetPeakRss().
  std::optional<uint64_t> peak_rss_bytes;
  std::optional<uint64_t> rss_bytes;

  // Returns write_bytes without those that were cancelled. Most writes of the
  // WAL are cancelled if memtables are small.
  std::optional<uint64_t> device_write_bytes() const;

  static ProcessStats Now();

  // Resets the peak of memory. Returns false if the system does not allow it;
  // the peak is then that since the start of the process.
  static bool ResetPeakRss();

  // Returns the difference to an earlier state. Memory sizes, which are not
  // counters, are not changed.
  ProcessStats Since(const ProcessStats& earlier) const;

  // Sets the values from the text of /proc/self/io and /proc/self/status.
  void ParseIo(const std::string& text);
  void ParseStatus(const std::string& text);
};

// The apparent size of the files in the directories of a database, by kind. A
// running DB creates and deletes files: a file that is deleted while they are
// counted, and a directory that does not exist, count as 0.
//
// Thread safety: a value type.
struct DirectorySize {
  uint64_t sst_bytes = 0;
  uint64_t blob_bytes = 0;
  uint64_t wal_bytes = 0;  // archived ones, too
  uint64_t other_bytes = 0;

  uint64_t total_bytes() const {
    return sst_bytes + blob_bytes + wal_bytes + other_bytes;
  }

  // Replaces the sizes by those of the files in these directories, without
  // subdirectories. After an error the sizes are too small.
  Status Measure(FileSystem* fs, const std::vector<std::string>& directories);

  // Returns the directories with files of `db`: that of the DB itself, of its
  // WALs, of archived WALs, and the paths of the DB and of the default column
  // family. Each directory is listed once, even if its name is written in
  // several ways.
  static std::vector<std::string> DirectoriesOf(DB* db);
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
