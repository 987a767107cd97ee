// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// A file system in which the files below some directories take the time that
// they would take on given devices. So the layouts of several tiers of storage
// can be compared on one disk.
//
//   Reads are requests to the device, with direct I/O or through the page
//       cache. There is no simulated page cache: the one of the machine would
//       hold most of the files of a benchmark, and RocksDB's block cache is the
//       one to be measured. Only a file that is read sequentially through the
//       page cache has a read-ahead, of 128 KiB for each request. Bytes behind
//       the end of a file cost nothing.
//   Writes with direct I/O are requests, one for each append. Writes into the
//       page cache cost nothing. The next Sync(), Fsync() or Close() writes the
//       bytes in one request, and waits for it. RangeSync() writes them, too,
//       but waits only for the RangeSync() before it.
//   Syncs of files and directories are requests of sync_us, after the bytes.
//   Changes of names are requests of 0 bytes, which have a write latency: to
//       create, rename, link, truncate or delete a file, to create or delete a
//       directory.
//   Everything else costs nothing: to open a file for reading, to ask for its
//       size, to list a directory, to lock. Memory-mapped files and LOG do not
//       come through this class, and cost nothing either.
//
// Operations whose names lie on two devices fail as on two real ones: a link is
// NotSupported, and RocksDB then copies; a rename is an IOError. The files
// outside of all directories are on one more device.
//
// Invariants:
//
//   1. Results, errors and the bytes of files are those of the file system
//      below. Exceptions are Prefetch(), aborted reads, and names on two
//      devices.
//   2. An operation returns no earlier than it would on the device.
//   3. A file outside of all directories is the object of the file system
//      below.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/system_clock.h"
#include "tools/workloads/device_profile.h"
#include "tools/workloads/simulated_async_reads.h"
#include "tools/workloads/timed_device.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// The counters of a simulated device.
struct DeviceReport {
  std::string path;
  DeviceProfile profile;
  SimulatedDevice::Stats stats;
  TimedDevice::Delays delays;

  // Returns one line for people.
  std::string ToString() const;
};

// Thread-safe.
class SimulatedDeviceFileSystem : public FileSystemWrapper {
 public:
  // devices: a file is on the device with the longest path that is the file's
  //     own path or a directory above it. Paths are compared as text, after
  //     "//", "." and ".." are resolved, so symbolic links are not followed.
  // clock: gives the times and the sleeps.
  // REQUIRES: the clock outlives this, and this outlives its files; no path is
  // given twice.
  SimulatedDeviceFileSystem(const std::shared_ptr<FileSystem>& base,
                            const std::vector<PathDevice>& devices,
                            SystemClock* clock);
  ~SimulatedDeviceFileSystem() override;

  static const char* kClassName() { return "SimulatedDeviceFileSystem"; }
  const char* Name() const override { return kClassName(); }

  // Returns a report for each device, in the order of the constructor.
  std::vector<DeviceReport> GetReports() const;

  Status RegisterDbPaths(const std::vector<std::string>& paths) override {
    return target()->RegisterDbPaths(paths);
  }
  Status UnregisterDbPaths(const std::vector<std::string>& paths) override {
    return target()->UnregisterDbPaths(paths);
  }

  IOStatus NewSequentialFile(const std::string& name,
                             const FileOptions& options,
                             std::unique_ptr<FSSequentialFile>* result,
                             IODebugContext* dbg) override;
  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override;
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override;
  IOStatus ReopenWritableFile(const std::string& name,
                              const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* result,
                              IODebugContext* dbg) override;
  IOStatus ReuseWritableFile(const std::string& name,
                             const std::string& old_name,
                             const FileOptions& options,
                             std::unique_ptr<FSWritableFile>* result,
                             IODebugContext* dbg) override;
  IOStatus NewRandomRWFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSRandomRWFile>* result,
                           IODebugContext* dbg) override;
  IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                        std::unique_ptr<FSDirectory>* result,
                        IODebugContext* dbg) override;

  IOStatus DeleteFile(const std::string& name, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus Truncate(const std::string& name, size_t size,
                    const IOOptions& options, IODebugContext* dbg) override;
  IOStatus CreateDir(const std::string& name, const IOOptions& options,
                     IODebugContext* dbg) override;
  IOStatus CreateDirIfMissing(const std::string& name, const IOOptions& options,
                              IODebugContext* dbg) override;
  IOStatus DeleteDir(const std::string& name, const IOOptions& options,
                     IODebugContext* dbg) override;
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override;
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override;
  IOStatus SyncFile(const std::string& name, const FileOptions& file_options,
                    const IOOptions& options, bool use_fsync,
                    IODebugContext* dbg) override;

  IOStatus Poll(std::vector<void*>& handles, size_t min_completions) override;
  IOStatus AbortIO(std::vector<void*>& handles) override;

 private:
  struct Mount;

  // Returns nullptr if the file is on none of the devices.
  TimedDevice* DeviceOf(const std::string& name) const;
  // Returns the path from the root without "//", "." and "..".
  std::string Resolve(const std::string& name) const;

  std::vector<std::unique_ptr<Mount>> mounts_;
  SimulatedAsyncReads async_reads_;
};

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
