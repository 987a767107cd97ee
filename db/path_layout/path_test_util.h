//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/db_test_util.h"
#include "port/port.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

// Several directories as devices of their own, and a power failure.
//
// What FaultInjectionTestFS does not do: a hard link is a directory entry like
// any other and is lost without an fsync of its directory, links between
// devices fail, and directory fsyncs are counted.
//
// Thread-safe.
class DeviceFS : public FaultInjectionTestFS {
 public:
  explicit DeviceFS(const std::shared_ptr<FileSystem>& base)
      : FaultInjectionTestFS(base) {}

  // Files in `directory` are on another device than all others.
  void AddDevice(const std::string& directory);

  // While set, an fsync of a directory added by AddDevice() says OK and does
  // nothing.
  void LoseDirectorySyncs(bool lose);

  // Number of fsyncs by directory since the last call.
  std::map<std::string, int> TakeSyncCounts();

  // Stops all I/O, so that nothing of what happens next reaches the disk.
  void PowerOff() { SetFilesystemActive(false); }
  // Drops what was not synced, file contents as well as directory entries.
  IOStatus PowerOn();

  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<FSDirectory>* result,
                        IODebugContext* dbg) override;
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override;
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override;
  // The files of a renamed directory count as durable.
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override;

  // For the directories of this file system: count and report whether the
  // fsync is to take place.
  bool OnDirectorySync(const std::string& directory);

 private:
  port::Mutex mutex_;
  // All below are guarded by mutex_.
  std::set<std::string> devices_;
  bool lose_directory_syncs_ = false;
  std::map<std::string, int> sync_counts_;
  // directory -> names of hard links made since its last fsync
  std::map<std::string, std::set<std::string>> unsynced_links_;
};

// A test of column families with layouts. The paths of a family are devices.
class PathTestBase : public DBTestBase {
 public:
  using Ids = std::vector<uint32_t>;

  explicit PathTestBase(const std::string& name);
  ~PathTestBase() override;

  // Directory of path `path_id` of the families opened with `prefix`.
  std::string PathOf(const std::string& prefix, uint32_t path_id);

  // Options for a family with `num_paths` paths of its own, whose values are
  // blobs. Small files, no compactions of its own accord.
  Options PathOptions(const std::string& prefix, uint32_t num_paths,
                      const Ids& sst_ids, const Ids& blob_ids);

  // (Re)opens with the default family and "cf1", "cf2", ...
  Status Open(const std::vector<Options>& options, bool create_families);
  void OpenNew(const std::vector<Options>& options) {
    ASSERT_OK(Open(options, /*create_families=*/true));
  }
  void Crash();
  // Deletes the database and all its paths.
  void DestroyAll();

  // Writes without WAL unless `wal`, then synced. Key numbers [begin, end).
  void PutRange(int family, int begin, int end, int version = 0,
                bool wal = false);
  static std::string KeyOf(int number);
  static std::string ValueOf(int number, int version);
  // Are all values there that PutRange() has written?
  Status VerifyData();
  // To be told of data that other means have written.
  void Expect(int family, const std::string& key, const std::string& value) {
    expected_[{family, key}] = value;
  }

  // Do all files of `family` lie where `options` want those of their level,
  // exist there, and does no path have another SST or blob file?
  void CheckPlacement(int family, const Options& options);
  // Paths, as ids, of the SST files of `level`, and of the blob files.
  std::multiset<uint32_t> SstPathIds(int family, const Options& options,
                                     int level);
  std::set<uint32_t> BlobPathIds(int family, const Options& options);

  ColumnFamilyHandle* Handle(int family) { return handles_[family]; }

  std::shared_ptr<DeviceFS> fs_;
  std::unique_ptr<Env> device_env_;

 private:
  std::set<std::string> paths_;
  std::vector<Options> opened_with_;
  std::map<std::pair<int, std::string>, std::string> expected_;
};

}  // namespace ROCKSDB_NAMESPACE
