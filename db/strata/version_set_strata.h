//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "db/delta/delta_file_meta.h"
#include "rocksdb/io_status.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/types.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class VersionSet;
struct WriteOptions;

namespace log {
class Writer;
}  // namespace log

// What Strata adds to a VersionSet, which has one as a member: delta files in
// the MANIFEST and on their way to deletion, epoch numbers that the MANIFEST
// lacks, and the mark of the WAL buffer.
//
// Invariant: a delta file that a Version has had, and that none has any more,
// is in the list of obsolete files, or was taken from it to be deleted.
//
// All functions: REQUIRES: DB mutex held.
class VersionSetStrata {
 public:
  // REQUIRES: versions outlives this object, which is a member of it.
  explicit VersionSetStrata(VersionSet* versions) : versions_(versions) {}
  VersionSetStrata(const VersionSetStrata&) = delete;
  VersionSetStrata& operator=(const VersionSetStrata&) = delete;

  // ---- Delta files.

  // Adds a file that the last Version which had it has given up.
  void AddObsoleteDeltaFile(ObsoleteDeltaFile file) {
    obsolete_delta_files_.push_back(std::move(file));
  }
  const std::vector<ObsoleteDeltaFile>& obsolete_delta_files() const {
    return obsolete_delta_files_;
  }
  // Moves the files that may be deleted to *files. Files with numbers from
  // min_pending_output on, and those in `quarantined`, stay in the list.
  void GetObsoleteDeltaFiles(std::vector<ObsoleteDeltaFile>* files,
                             uint64_t min_pending_output,
                             const autovector<uint64_t>& quarantined);
  // Keeps the files on disk: a MANIFEST that is tried next may need them.
  void ForgetObsoleteDeltaFiles() { obsolete_delta_files_.clear(); }
  // Appends the numbers of the files of all Versions. A number may be appended
  // several times.
  void AddLiveDeltaFiles(std::vector<uint64_t>* files) const;
  // Removes from *files what a Version has.
  void RemoveLiveDeltaFiles(std::vector<ObsoleteDeltaFile>* files) const;
  // Writes the delta files of a column family as edits: its part of
  // VersionSet::WriteCurrentStateToManifest().
  // REQUIRES: the column family's current Version has delta files.
  // last_sequence: that of the other edits of the snapshot; it must never
  //     decrease.
  static IOStatus WriteDeltaSnapshot(const WriteOptions& write_options,
                                     ColumnFamilyData* cfd,
                                     SequenceNumber last_sequence,
                                     log::Writer* log);

  // ---- Epoch numbers of SST files.

  // A fold writes old sequence numbers to a file of level 0 that is newer than
  // others with larger ones. Only epoch numbers say so. If the MANIFEST lacks
  // the epoch number of one file, on any level, the next recovery orders level
  // 0 of the column family by sequence number, and gives all files new epochs.

  // Notes whether the MANIFEST lacks epoch numbers of a column family that has,
  // or may get, delta files.
  // REQUIRES: all records of the MANIFEST have been applied, and missing epoch
  // numbers have not been inferred yet.
  void NoteMissingEpochs();
  // False if recovery must not append to the MANIFEST that it has read: the
  // first edit begins a new one, which has the epoch numbers that recovery has
  // inferred.
  bool MayReuseManifest() const { return !lacks_epochs_; }

  // ---- Paths, see UnlistedPathCheck and MissingPathCheck.

  // Notes that a MANIFEST was refused because the options lack a path, or
  // because a path is missing. A best-efforts recovery must not try an older
  // MANIFEST then: it may have nothing on that path.
  void NoteLackOfPath() { lacks_path_ = true; }
  bool lacks_path() const { return lacks_path_; }

  // ---- The WAL buffer, see DBStrata::MarkWalBuffer().

  // Makes each MANIFEST that is created from now on begin with
  // VersionEdit::MarkWalBuffer(), or not.
  // REQUIRES: no MANIFEST is being created.
  void SetWalBufferMark(bool mark) { wal_buffer_mark_ = mark; }
  bool wal_buffer_mark() const { return wal_buffer_mark_; }
  // Writes the mark.
  static IOStatus WriteWalBufferMark(const WriteOptions& write_options,
                                     log::Writer* log);
  // To be called when a new MANIFEST has become the current one.
  void OnNewManifest() { manifest_has_wal_buffer_mark_ = wal_buffer_mark_; }
  // To be called when the current MANIFEST was found to have the mark, or has
  // got it. A MANIFEST that follows has it, too: a tool that writes one knows
  // nothing about the WALs.
  void NoteWalBufferMark() {
    wal_buffer_mark_ = manifest_has_wal_buffer_mark_ = true;
  }
  // True if the current MANIFEST has the mark.
  bool HasWalBufferMark() const { return manifest_has_wal_buffer_mark_; }

 private:
  // Calls fn(delta version) for each Version that has one.
  template <typename Fn>
  void ForEachDeltaVersion(Fn fn) const;

  VersionSet* const versions_;
  std::vector<ObsoleteDeltaFile> obsolete_delta_files_;
  bool lacks_epochs_ = false;
  bool lacks_path_ = false;
  bool wal_buffer_mark_ = false;
  bool manifest_has_wal_buffer_mark_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
