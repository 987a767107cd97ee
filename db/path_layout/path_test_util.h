//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/db_test_util.h"
#include "port/port.h"
#include "rocksdb/file_system.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

// A file system in which directories can be separate devices, with simulated
// loss of power.
//
// In addition to FaultInjectionTestFS, a hard link is lost without an fsync of
// its directory, like any other directory entry; an entry of a directory that
// is renamed is lost without an fsync before or after that; links between
// devices fail; and directory fsyncs and links are counted.
//
// A step is a change of a directory: files or directories are created, linked,
// renamed or deleted, or a directory is synced. SyncFile() is a step, too.
//
// Thread-safe.
class DeviceFS : public FaultInjectionTestFS {
 public:
  explicit DeviceFS(const std::shared_ptr<FileSystem>& base)
      : FaultInjectionTestFS(base) {}

  // Makes `directory` a device of its own: its files are on another device than
  // all others, and so are those of its staging directories, whose names begin
  // with that of `directory` and a dot.
  void AddDevice(const std::string& directory);

  // If set, an fsync of a directory added by AddDevice() returns OK and does
  // nothing.
  void LoseDirectorySyncs(bool lose);

  // Returns the number of fsyncs of each directory since the last call.
  std::map<std::string, int> TakeSyncCounts();
  // Returns the number of hard links that were made since the last call.
  int TakeLinkCount();

  // Turns the power off instead of the step after `steps` others; never if it
  // is negative.
  void PowerOffAfter(int steps);
  // Makes the step after `steps` others fail, but no later one; none if it is
  // negative.
  void FailAfter(int steps);
  // Returns true if PowerOffAfter() or FailAfter() has had its effect.
  bool HasFailed();
  // Returns the steps since the last call: "sync <directory>", "rename <from>
  // <to>", "create <file>", "syncfile <file>", ... The first call begins to
  // record them.
  std::vector<std::string> TakeSteps();

  // Stops all I/O, so that no later write reaches the disk.
  void PowerOff() { SetFilesystemActive(false); }
  // Drops all unsynced file contents and directory entries.
  IOStatus PowerOn();

  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<FSDirectory>* result,
                        IODebugContext* dbg) override;
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override;
  IOStatus CreateDir(const std::string& path, const IOOptions& options,
                     IODebugContext* dbg) override;
  IOStatus DeleteDir(const std::string& path, const IOOptions& options,
                     IODebugContext* dbg) override;
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override;
  IOStatus SyncFile(const std::string& path, const FileOptions& file_options,
                    const IOOptions& options, bool use_fsync,
                    IODebugContext* dbg) override;
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override;

  // Returns an error if this step must not be made.
  IOStatus Step(const std::string& step);

  // Called by the directories of this file system. Counts an fsync and returns
  // true if it is to be done.
  bool OnDirectorySync(const std::string& directory);

 private:
  // REQUIRES: mutex_ held
  bool IsOnDevice(const std::string& directory) const;

  port::Mutex mutex_;
  // The members below are guarded by mutex_.
  std::set<std::string> devices_;
  bool lose_directory_syncs_ = false;
  std::map<std::string, int> sync_counts_;
  int num_links_ = 0;
  // directory -> names of hard links made since its last fsync
  std::map<std::string, std::set<std::string>> unsynced_links_;
  // The same for new files. The base class takes care of them, but not if the
  // directory is renamed.
  std::map<std::string, std::set<std::string>> unsynced_files_;
  // Negative: no step fails.
  int steps_left_ = -1;
  bool is_power_to_fail_ = false;
  bool has_failed_ = false;
  bool records_steps_ = false;
  std::vector<std::string> steps_;
};

// A file system in which directories can be broken in the ways in which devices
// are. The messages are those of RocksDB's file system.
//
// Break() must not run beside another function. The other functions are
// thread-safe.
class BrokenPathFS : public FileSystemWrapper {
 public:
  enum class Fault {
    kNone,
    kNotCreated,  // The directory cannot be created.
    kNotListed,   // It cannot be listed, without a message.
    kNotOpened,   // It cannot be opened, but its files can.
    kNoAccess,    // Neither the directory nor its files can be opened.
    kIoError,     // The same, by an error of the device.
    kReadOnly,    // Files cannot be created in it.
  };

  explicit BrokenPathFS(const std::shared_ptr<FileSystem>& base)
      : FileSystemWrapper(base) {}
  const char* Name() const override { return "BrokenPathFS"; }

  void Break(const std::string& directory, Fault fault) {
    directory_ = directory;
    fault_ = fault;
  }
  // Returns how often it was asked whether an SST, blob or delta file exists,
  // since the last call.
  int TakeNumQuestions() { return num_questions_.exchange(0); }
  // Returns the number of column families whose paths are registered.
  int num_registered() const { return num_registered_; }

  // Needs the paths to exist.
  Status RegisterDbPaths(const std::vector<std::string>& paths) override;
  Status UnregisterDbPaths(const std::vector<std::string>& paths) override;

  IOStatus FileExists(const std::string& name, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus GetChildren(const std::string& directory, const IOOptions& options,
                       std::vector<std::string>* result,
                       IODebugContext* dbg) override;
  IOStatus NewDirectory(const std::string& directory, const IOOptions& options,
                        std::unique_ptr<FSDirectory>* result,
                        IODebugContext* dbg) override;
  IOStatus CreateDirIfMissing(const std::string& directory,
                              const IOOptions& options,
                              IODebugContext* dbg) override;
  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override;
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override;

 private:
  // Returns the fault of the directory, or of that of the file.
  Fault FaultOf(const std::string& name) const;

  std::string directory_;
  Fault fault_ = Fault::kNone;
  std::atomic<int> num_questions_{0};
  std::atomic<int> num_registered_{0};
};

// A test of column families with layouts. Each path of a family is a device of
// its own.
class PathTestBase : public DBTestBase {
 public:
  using Ids = std::vector<uint32_t>;

  explicit PathTestBase(const std::string& name);
  ~PathTestBase() override;

  // Returns the directory of path `path_id` of the families opened with
  // `prefix`.
  std::string PathOf(const std::string& prefix, uint32_t path_id);

  // Returns options of a family with `num_paths` paths of its own, whose values
  // are blobs, with small files and without automatic compactions.
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

  // Writes the keys with the numbers [begin, end). The WAL is used, and synced,
  // only if `wal` is true.
  void PutRange(int family, int begin, int end, int version = 0,
                bool wal = false);
  static std::string KeyOf(int number);
  static std::string ValueOf(int number, int version);
  // Returns OK if all values that PutRange() has written can be read.
  Status VerifyData();
  // Makes VerifyData() expect an entry that was not written by PutRange().
  void Expect(int family, const std::string& key, const std::string& value) {
    expected_[{family, key}] = value;
  }

  // Checks that all files of `family` are recorded on, and exist on, the paths
  // that `options` specify for their level, and that no path has another SST or
  // blob file.
  void CheckPlacement(int family, const Options& options);
  // Returns the path ids of the SST files of `level`.
  std::multiset<uint32_t> SstPathIds(int family, const Options& options,
                                     int level);
  // Returns the path ids of the blob files.
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
