//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "port/port.h"
#include "rocksdb/file_system.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// A file system for history scripts. It makes chosen operations on chosen files
// fail, deterministically, from a call that the script specifies, and it can
// drop unsynced contents of files. (FaultInjectionTestFS drops contents by not
// writing them before the sync. Readers of a file that is being written, which
// blob direct write has, would therefore not see its contents.)
//
// Thread-safe.
class HistoryFaultFS : public FileSystemWrapper {
 public:
  enum class Op {
    kRead,     // read of a file opened for random or sequential reads
    kWrite,    // append
    kSync,     // sync of a file's data
    kDirSync,  // sync of a directory; the pattern is matched with its name
    kCreate,   // creation of a file for writing
    kDelete,
    kRename,
  };

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
      : FileSystemWrapper(base), root_(std::move(root)) {}

  static const char* kClassName() { return "HistoryFaultFS"; }
  const char* Name() const override { return kClassName(); }

  // Returns false if there is no operation of that name.
  static bool ParseOp(const std::string& name, Op* op);
  static bool Matches(const std::string& pattern, const std::string& text);

  void AddRule(Rule rule);
  void ClearRules();

  // Truncates every file to its synced size.
  IOStatus DropUnsynced();

  // Returns the status that the operation must return; called before it.
  IOStatus Check(Op op, const std::string& path);
  // Records that a file was written up to offset `end`.
  void Written(const std::string& path, uint64_t end);
  // Records that a file was synced.
  void Synced(const std::string& path);

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

 private:
  const std::string root_;
  port::Mutex mutex_;
  // The members below are guarded by mutex_.
  std::vector<Rule> rules_;  // skip and count are counted down
  struct Extent {
    uint64_t written = 0;
    uint64_t synced = 0;
  };
  std::map<std::string, Extent> extents_;
};

}  // namespace ROCKSDB_NAMESPACE
