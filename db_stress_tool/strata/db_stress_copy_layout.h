//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#ifdef GFLAGS

#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/copy_layout.h"

namespace ROCKSDB_NAMESPACE {

class Checkpoint;
class FaultInjectionTestFS;
struct ThreadState;

// The directories of a checkpoint or of a restored backup that db_stress makes:
// a single one, or, for one in --copy_layout_one_in, those of a random layout.
// A checkpoint with a layout may not lie in a directory of the DB, so all
// copies with one lie in <db>_copies, which db_crashtest.py deletes.
//
// Invariant: a copy with a layout has all its files, and a process that was
// killed has left all of them, below a directory of this thread and kind, which
// the next such copy deletes first.
//
// Used by one thread.
class StressCopy {
 public:
  enum class Kind {
    // The layout may have path_map. Faults are injected into operations of the
    // calling thread: all of a copy without a layout, but of one with a layout
    // only those that CheckpointEngine does not leave to its own threads.
    kCheckpoint,
    // No faults are injected, because db_stress makes backups without.
    kRestore,
  };

  // db: the directory of the DB.
  // options: of the DB; some allow no layout.
  // env, faults: of the DB; faults may be nullptr.
  // REQUIRES: faults are enabled for this thread if, and only if, this is a
  //     checkpoint
  StressCopy(const std::string& db, const Options& options, Kind kind,
             ThreadState* thread, Env* env, FaultInjectionTestFS* faults);

  // Returns the directory of the copy.
  // otherwise: that of a copy without a layout.
  const std::string& DirectoryOr(const std::string& otherwise) const {
    return layout_ == nullptr ? otherwise : directory_;
  }

  // nullptr: all files are in one directory.
  const std::shared_ptr<const CopyLayout>& layout() const { return layout_; }
  // Returns the layout for messages; empty if there is none.
  std::string ToString() const;

  // Makes a checkpoint of the DB.
  // checkpoint: of the DB; makes it if there is no layout.
  // directory: the result of DirectoryOr().
  Status CreateCheckpoint(Checkpoint* checkpoint, DB* db,
                          const std::string& directory) const;

  // Replaces the paths in the options by those of the copy: an open with the
  // paths of the DB would delete its files.
  void SetPaths(ColumnFamilyOptions* options) const;
  void SetPaths(std::vector<ColumnFamilyDescriptor>* families) const;

  // Deletes the copy unless it may help to find an error.
  // s: the result of the test of the copy, which is returned.
  // keep: whether `s` is an error to look into.
  // REQUIRES: faults are enabled for this thread
  Status Finish(const Status& s, bool keep) const;

 private:
  // Makes the empty directory root_.
  Status Prepare() const;

  Env* const env_;
  FaultInjectionTestFS* const faults_;
  // What contains the directories of all copies, and those of this one.
  std::string parent_;
  std::string root_;
  std::string directory_;
  std::shared_ptr<const CopyLayout> layout_;
};

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
