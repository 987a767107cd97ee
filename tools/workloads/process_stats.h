// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// What a benchmark costs the machine: the resources of this process, and the
// bytes of a database's files.

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

// What a counter grew by since `earlier`. Not known if either is not; never
// less than 0, to which rounding could lead.
template <typename T>
void SubtractCounter(std::optional<T>* from, const std::optional<T>& earlier) {
  if (!earlier) {
    from->reset();
  } else if (*from) {
    *from = **from > *earlier ? **from - *earlier : T{0};
  }
}

// What the process, with all its threads, has used since its start. A value
// that the system does not tell is empty: only Linux has /proc/self/io.
//
// Thread safety: a plain value. The static functions may be called by any
// thread.
struct ProcessStats {
  // /proc/self/io. read_bytes and write_bytes are what was or will be moved
  // from and to the storage device, as the kernel counts it: pages, when they
  // get dirty. cancelled_write_bytes of those did not reach it, as the file
  // was truncated or deleted before.
  std::optional<uint64_t> rchar;
  std::optional<uint64_t> wchar;
  std::optional<uint64_t> syscr;
  std::optional<uint64_t> syscw;
  std::optional<uint64_t> read_bytes;
  std::optional<uint64_t> write_bytes;
  std::optional<uint64_t> cancelled_write_bytes;

  std::optional<double> cpu_user_seconds;
  std::optional<double> cpu_system_seconds;

  // /proc/self/status. The peak is that since the last ResetPeakRss.
  std::optional<uint64_t> peak_rss_bytes;
  std::optional<uint64_t> rss_bytes;

  // write_bytes without those that were cancelled. Most of the WAL is if
  // memtables are small.
  std::optional<uint64_t> device_write_bytes() const;

  static ProcessStats Now();

  // False if the system does not allow it; the peak is then that since the
  // start of the process.
  static bool ResetPeakRss();

  // The difference to an earlier state. Memory is no counter: it stays.
  ProcessStats Since(const ProcessStats& earlier) const;

  // Take the values from the text of /proc/self/io and /proc/self/status.
  void ParseIo(const std::string& text);
  void ParseStatus(const std::string& text);
};

// The apparent size of the files in the directories of a database, by kind.
// Files of a DB that is running come and go: one that vanishes while they are
// counted, and a directory that is not there, count as 0.
//
// Thread safety: a plain value.
struct DirectorySize {
  uint64_t sst_bytes = 0;
  uint64_t blob_bytes = 0;
  uint64_t wal_bytes = 0;  // archived ones, too
  uint64_t other_bytes = 0;

  uint64_t total_bytes() const {
    return sst_bytes + blob_bytes + wal_bytes + other_bytes;
  }

  // Replaces the sizes by those of the files in these directories. They do
  // not include subdirectories. After an error the sizes are too small.
  Status Measure(FileSystem* fs, const std::vector<std::string>& directories);

  // Where the files of `db` are: the DB itself, its WALs, its archive, and
  // the paths of the DB and of the default column family. Each once, whatever
  // ways there are to write it.
  static std::vector<std::string> DirectoriesOf(DB* db);
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
