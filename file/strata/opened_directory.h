//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class PathFaults;
struct ImmutableDBOptions;

// A handle that a database opens once for a directory. Jobs that have made
// files there sync it.
//
// The files are made by name. If another file system was mounted on the
// directory since, they are on that one, and a sync of the handle does not
// reach them, but may well succeed. So while the directory has a fault, see
// PathFaults, each sync checks that the name still leads to the directory of
// the handle, and fails if it does not.
//
// Without a fault the handle is the one that it wraps.
//
// Thread-safe, as each FSDirectory.
class OpenedDirectory : public FSDirectoryWrapper {
 public:
  // fs, faults: outlive the handle.
  OpenedDirectory(std::unique_ptr<FSDirectory>&& directory, std::string name,
                  FileSystem* fs, const PathFaults* faults);

  // Puts a handle around that of the directory, unless the id of the directory
  // is unknown or the database has no SstFileManager, as in a Repairer.
  static void Wrap(const ImmutableDBOptions& options, const std::string& name,
                   std::unique_ptr<FSDirectory>* directory);

  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override;
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg,
                               const DirFsyncOptions& dir_options) override;

 private:
  // Returns s, the result of a sync, or the error of a check.
  IOStatus Checked(IOStatus s) const;

  const std::string name_;
  const std::string clean_name_;
  FileSystem* const fs_;
  const PathFaults* const faults_;
  const std::string id_;
};

}  // namespace ROCKSDB_NAMESPACE
