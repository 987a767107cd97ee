//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "port/port.h"
#include "rocksdb/file_system.h"
#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/failing_devices_fs_test_util.h"
#include "test_util/strata/history_file_op_test_util.h"
#include "test_util/strata/history_injector_test_util.h"
#include "test_util/strata/history_unsynced_test_util.h"

namespace ROCKSDB_NAMESPACE {

// A file system for history scripts. It makes chosen operations on chosen files
// fail, deterministically, from a call that the script specifies, and it can
// drop unsynced contents of files. (FaultInjectionTestFS drops contents by not
// writing them before the sync. Readers of a file that is being written, which
// blob direct write has, would therefore not see its contents.) Its injector
// makes the n-th operation fail, whatever the file is. Its devices() fail as a
// whole.
//
// Thread-safe.
class HistoryFaultFS : public FileSystemWrapper {
 public:
  using Op = HistoryFileOp;

  struct Rule {
    Op op = Op::kRead;
    // Matched with the file's path below `root`. "*" stands for any text,
    // including "/".
    std::string pattern;
    // Number of matching operations that succeed before the first one fails.
    uint64_t skip = 0;
    // Number of operations that fail after these.
    uint64_t count = UINT64_MAX;
    bool retryable = false;
  };

  HistoryFaultFS(const std::shared_ptr<FileSystem>& base, std::string root)
      : HistoryFaultFS(std::make_shared<FailingDevicesFS>(base),
                       std::move(root)) {}

  static const char* kClassName() { return "HistoryFaultFS"; }
  const char* Name() const override { return kClassName(); }

  static bool Matches(const std::string& pattern, const std::string& text);

  void AddRule(Rule rule);
  // Removes the rules, and makes all devices work.
  void ClearRules();
  // Returns true if there are rules, or a device does not work.
  bool has_rules();

  // The directories below `root` are devices.
  FailingDevicesFS& devices() { return *devices_; }
  // Makes the device of a directory below `root` fail, or work.
  void SetDevice(const std::string& below, FailingDevicesFS::Fault fault) {
    devices_->SetFault(root_ + "/" + below, fault);
  }

  HistoryInjector& injector() { return injector_; }
  HistoryUnsynced& unsynced() { return unsynced_; }

  // Returns what the operation must do; called before it.
  HistoryInjector::Decision Decide(Op op, const std::string& path);
  // The same for operations that are done as a whole or fail: returns the
  // status of the decision.
  IOStatus Check(Op op, const std::string& path);

  IOStatus NewSequentialFile(const std::string& path,
                             const FileOptions& options,
                             std::unique_ptr<FSSequentialFile>* result,
                             IODebugContext* dbg) override;
  IOStatus NewRandomAccessFile(const std::string& path,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override;
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override;
  IOStatus ReopenWritableFile(const std::string& path,
                              const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* result,
                              IODebugContext* dbg) override;
  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<FSDirectory>* result,
                        IODebugContext* dbg) override;
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override;
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override;
  IOStatus SyncFile(const std::string& path, const FileOptions& file_options,
                    const IOOptions& io_options, bool use_fsync,
                    IODebugContext* dbg) override;

 private:
  HistoryFaultFS(std::shared_ptr<FailingDevicesFS> devices, std::string root)
      : FileSystemWrapper(devices),
        devices_(std::move(devices)),
        root_(std::move(root)) {}

  // Returns the path below the root.
  std::string Below(const std::string& path) const;
  IOStatus CheckRules(Op op, const std::string& below);

  // The file system below this one.
  const std::shared_ptr<FailingDevicesFS> devices_;
  const std::string root_;
  HistoryInjector injector_;
  HistoryUnsynced unsynced_;
  port::Mutex mutex_;
  std::vector<Rule> rules_;  // guarded by mutex_; skip and count go down
};

}  // namespace ROCKSDB_NAMESPACE
