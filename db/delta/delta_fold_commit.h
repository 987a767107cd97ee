//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/blob/blob_file_addition.h"
#include "db/delta/delta_folder.h"
#include "db/internal_stats.h"
#include "db/version_edit.h"
#include "options/cf_options.h"
#include "rocksdb/file_system.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileCompletionCallback;
class ColumnFamilyData;
class EventLogger;
class FlushMapping;
class IOTracer;
class SeqnoToTimeMapping;
class Version;
class VersionSet;
struct ImmutableDBOptions;

// The job that a fold is part of, which removes the operands from their
// buckets.
struct DeltaFoldJob {
  // Returns an error if the job must not continue. REQUIRES: DB mutex held.
  std::function<Status()> check;
  // Gives the job's delta files their final names, durably. REQUIRES: DB mutex
  // not held.
  std::function<Status()> publish;
  // Deletes the job's delta files, durably. Returns false if files may be left
  // or may come back after a crash. REQUIRES: DB mutex not held.
  std::function<bool()> withdraw;
};

// Adds the values of a fold to level 0, in the same edit that removes the
// operands from their buckets.
//
//   Begin() -> Write() -> Publish() -> Recheck() -> AddTo(edit) -> the edit ->
//   Close() -> Settle()
//   After a failure before the edit: Close() -> Settle()
//
// docs/architecture.md, section 11, describes these steps for all jobs.
//
// An entry (key, s, value) in a new file of level 0 is correct if, and only if,
// no SST file has a newer entry of the key and no reader finds an older operand
// in the store. Flushes, ingestions and deletions of files may have been
// committed since the folder has read the tree. Each of them that has hidden
// operands of the key has left an anchor, as the store had the operands all the
// time. So:
//
// * Before Begin() the FlushOrderGate is entered, and ingestions and deletions
//   of files are held off (DBStrata::BeginDeltaFold()). None of these is
//   committed until Settle().
// * Anchor files that the folder did not know are searched for all keys. A key
//   with an anchor at s or above is left out, and so are its operands, which
//   the job has dropped: both are hidden. But if a snapshot is below the
//   anchor, it needs the operands that the job has dropped: then the whole fold
//   is given up.
// * A filter may have changed an entry that the folder has read, or the entry
//   may have been deleted. Then there is a new generation of merged values, or
//   an edit that will begin one is in the queue for the MANIFEST, and the SST
//   file that was read is removed: the fold is given up. It is not given up if
//   no such file is removed; ingestions alone only add files, with anchors. A
//   filter whose edit comes after that of the fold has not seen the fold's
//   values, as if it had run before the fold.
// * Later flushes have higher epochs, so their files are above the new file.
//
// The file of level 0 is durable before the job's delta files get their names.
// It is deleted after them, or not at all if some of them may be left: so no
// delta files without the operands exist unless the values exist, even if the
// MANIFEST is lost (see DeltaFileLiveness).
//
// Of two folds of the same operands only one is ever committed, since its edit
// removes them from buckets that other jobs do not change meanwhile.
//
// A fold changes no value, so it does not begin a new generation of merged
// values: the result that a reader of an older Version has merged at s or above
// is what readers of the new Version find. If a user's filter processes files
// of this kind (TableFileCreationReason::kMisc) and changes a value, there is a
// new generation.
//
// Not thread-safe.
class DeltaFoldCommit {
 public:
  struct Context {
    ColumnFamilyData* cfd = nullptr;
    VersionSet* versions = nullptr;
    const ImmutableDBOptions* db_options = nullptr;
    std::string dbname;
    std::string db_id;
    std::string db_session_id;
    int job_id = 0;
    FileOptions file_options;
    std::shared_ptr<IOTracer> io_tracer;
    EventLogger* event_logger = nullptr;
    BlobFileCompletionCallback* blob_callback = nullptr;
    // Path of the SST file according to the path layout for level 0.
    uint32_t path_id = 0;
    FSDirectory* directory = nullptr;
    bool fast_sst_open = false;
    Env::IOPriority io_priority = Env::IO_TOTAL;
    DeltaFoldJob job;
  };

  // REQUIRES: DB mutex held; the folder outlives this object, and Fold() is not
  // called any more.
  DeltaFoldCommit(Context context, DeltaValueFolder* folder);
  // REQUIRES: DB mutex held
  ~DeltaFoldCommit();
  DeltaFoldCommit(const DeltaFoldCommit&) = delete;
  DeltaFoldCommit& operator=(const DeltaFoldCommit&) = delete;

  // Begins the commit. Returns TryAgain if the fold is given up, see above.
  // snapshots: all sequence numbers at which new reads may begin from now on,
  // in ascending order; the newest published one is among them.
  // REQUIRES: DB mutex held
  Status Begin(std::vector<SequenceNumber> snapshots);

  // Writes the values that are still valid. Returns TryAgain if the fold is
  // given up.
  // REQUIRES: DB mutex not held; Begin() was successful.
  Status Write();

  // Makes the values durable, publishes the job's files, and then inserts the
  // values into the address map, if there is one.
  // REQUIRES: DB mutex not held; Write() was successful.
  Status Publish();

  // Returns TryAgain if the conditions checked by Begin() no longer hold.
  Status Recheck() const;

  // Adds the SST file and its blob files to the edit.
  // REQUIRES: DB mutex held; Publish() was successful.
  void AddTo(VersionEdit* edit);

  // To be called when the edit was committed or has failed, or if there is
  // none.
  // status: result of the commit.
  // REQUIRES: DB mutex held
  void Close(const Status& status);
  // REQUIRES: Close() was called.
  bool committed() const { return committed_; }

  // Deletes the files, the job's first, if AddTo() was not called, or if the
  // edit was not written because the column family was dropped. If the edit may
  // be committed, its files are left to the next full scan.
  // REQUIRES: Close() was called; if the edit is committed, a SuperVersion with
  // it was installed; DB mutex not held.
  void Settle();
  // Returns the numbers of an SST file and its blob files that are in no edit
  // but must be kept while the DB is open, because delta files of the job may
  // be left.
  // REQUIRES: Settle() was called.
  std::vector<uint64_t> FilesToKeep() const;

  ColumnFamilyData* cfd() const { return context_.cfd; }
  bool has_file() const { return meta_.fd.GetFileSize() > 0; }
  const FileMetaData& meta() const { return meta_; }
  size_t num_hidden() const { return num_hidden_; }
  uint64_t bytes_written() const {
    return stats_.bytes_written + stats_.bytes_written_blob;
  }

  // Removes entries from *values that have an anchor at their sequence number
  // or above. Returns TryAgain if such an entry is not hidden from all
  // snapshots.
  static Status DropHidden(const DeltaAnchorLookup& anchors,
                           const std::vector<SequenceNumber>& snapshots,
                           FoldedValues* values, size_t* num_dropped);

 private:
  Status Validate();
  Status Build();
  // Makes those checks of the SST file that Build() has not made.
  Status CheckFile();
  Status Sync();
  void DeleteFiles();

  const Context context_;
  DeltaValueFolder* const folder_;
  const MutableCFOptions options_;

  // The current Version at Begin(); pinned until Close().
  Version* version_ = nullptr;
  std::vector<SequenceNumber> snapshots_;
  std::shared_ptr<const SeqnoToTimeMapping> seqno_to_time_;
  std::unique_ptr<FlushMapping> mapping_;
  Env::WriteLifeTimeHint write_hint_ = Env::WLTH_NOT_SET;

  FileMetaData meta_;
  std::vector<BlobFileAddition> blob_files_;
  std::atomic<bool> filter_changed_values_{false};
  InternalStats::CompactionStats stats_;
  size_t num_hidden_ = 0;
  bool is_in_edit_ = false;
  bool committed_ = false;
  bool keeps_files_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
