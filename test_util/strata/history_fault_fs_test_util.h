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

// A file system for history scripts: it fails chosen operations on chosen
// files, deterministically, from the call on that the script names, and it can
// forget what was written to files and not synced. (FaultInjectionTestFS
// forgets by not writing before the sync, so that readers of a file that is
// being written, as blob direct write has them, do not see its contents.)
//
// Thread-safe.
class HistoryFaultFS : public FileSystemWrapper {
 public:
  enum class Op {
    kRead,     // of a file opened for random or sequential reads
    kWrite,    // append
    kSync,     // of a file's data
    kDirSync,  // of a directory; the pattern is matched against its name
    kCreate,   // of a file for writing
    kDelete,
    kRename,
  };

  struct Rule {
    Op op = Op::kRead;
    // "*" stands for any text, "/" included. Matched against the file's path
    // below `root`.
    std::string pattern;
    // How many matching operations succeed before the first one fails.
    uint64_t skip = 0;
    // How many fail then.
    uint64_t count = UINT64_MAX;
    bool retryable = false;
  };

  HistoryFaultFS(const std::shared_ptr<FileSystem>& base, std::string root)
      : FileSystemWrapper(base), root_(std::move(root)) {}

  static const char* kClassName() { return "HistoryFaultFS"; }
  const char* Name() const override { return kClassName(); }

  // False if there is no such name.
  static bool ParseOp(const std::string& name, Op* op);
  static bool Matches(const std::string& pattern, const std::string& text);

  void AddRule(Rule rule);
  void ClearRules();

  // Cuts every file to what was synced of it.
  IOStatus DropUnsynced();

  // What an operation that is about to happen must return.
  IOStatus Check(Op op, const std::string& path);
  // What happened to a file.
  void Written(const std::string& path, uint64_t end);
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
  // The rest is guarded by mutex_.
  std::vector<Rule> rules_;  // counts are counted down
  struct Extent {
    uint64_t written = 0;
    uint64_t synced = 0;
  };
  std::map<std::string, Extent> extents_;
};

}  // namespace ROCKSDB_NAMESPACE
