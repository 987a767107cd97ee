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

// The job of which a fold is a part: it takes the operands out of buckets.
struct DeltaFoldJob {
  // May it still go on? REQUIRES: DB mutex held.
  std::function<Status()> check;
  // Gives its delta files their names, durably. REQUIRES: DB mutex not held, as
  // of withdraw.
  std::function<Status()> publish;
  // Deletes them, durably. False: some may be left, or come back.
  std::function<bool()> withdraw;
};

// Brings what a fold has made of operands into level 0, by the same edit that
// takes the operands out of their buckets.
//
//   Begin() -> Write() -> AddTo(edit) -> (the edit) -> Close() -> Settle()
//
// An entry (key, s, value) in a new file of level 0 is right if, and only if,
// no SST file has a newer entry of the key, and the store no older operand,
// whoever reads. Since the folder has looked, flushes, ingestions and deletions
// of files may have come. Each of them that has hidden operands of the key has
// left an anchor, as the store had them all the time. So:
//
// * Before Begin() the FlushOrderGate is entered, and ingestions and deletions
//   of files are held off (DBImpl::BeginDeltaFold()). Until Settle() nothing of
//   the kind is committed.
// * Anchor files that the folder did not know are asked for all keys. A key
//   with an anchor at s or above is left out, and so are its operands, which
//   the job has dropped: both are hidden. But if a snapshot is below the
//   anchor, it needs what the job has dropped: then the whole fold is given up.
// * A filter may have changed, or somebody deleted, what the folder has read.
//   Then there is a new generation of merged values, or an edit that will begin
//   one has its place in the queue for the MANIFEST, and the SST file that was
//   read leaves: the fold is given up. Not if no such file leaves; ingestions
//   alone only add files, with anchors. A filter whose edit comes after that of
//   the fold has not seen what the fold makes, as if it had run before.
// * Later flushes have higher epochs, so their files are above this one.
//
// The file of level 0 is durable before the job's delta files have their names,
// and is deleted after them, or not at all if some of them may be left: nobody
// finds delta files without operands of which there are no values, even if the
// MANIFEST is lost (see DeltaFileLiveness).
//
// Of two folds of the same operands only one is ever committed, since its edit
// takes them out of buckets that other jobs leave alone meanwhile.
//
// A fold changes no value, so there is no new generation of merged values: what
// a reader of an older Version has merged at s or above is what readers of the
// new one find. If a filter of the user's wants to see files of this kind
// (TableFileCreationReason::kMisc) and changes one, there is.
//
// Used by one thread.
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
    // Of the SST file, as the layout of paths has it for level 0.
    uint32_t path_id = 0;
    FSDirectory* directory = nullptr;
    bool fast_sst_open = false;
    Env::IOPriority io_priority = Env::IO_TOTAL;
    DeltaFoldJob job;
  };

  // REQUIRES of both, of Begin(), AddTo() and Close(): DB mutex held; the
  // folder outlives this, and nothing more is folded.
  DeltaFoldCommit(Context context, DeltaValueFolder* folder);
  ~DeltaFoldCommit();
  DeltaFoldCommit(const DeltaFoldCommit&) = delete;
  DeltaFoldCommit& operator=(const DeltaFoldCommit&) = delete;

  // snapshots: all that somebody may read at from now on who does not yet, in
  // ascending order; the newest published one is among them.
  // TryAgain: given up, see above.
  Status Begin(std::vector<SequenceNumber> snapshots);

  // Writes what is still valid, then publishes the job's files. TryAgain: given
  // up.
  // REQUIRES: DB mutex not held; Begin() was successful.
  Status Write();

  // Still as at Begin()? TryAgain if not.
  Status Recheck() const;

  // REQUIRES: Write() was successful.
  void AddTo(VersionEdit* edit);

  // The edit's fate is known, or there is none. status: that of its commit.
  void Close(const Status& status);
  // REQUIRES: Close() was called.
  bool committed() const { return committed_; }

  // Deletes the files, the job's first, if AddTo() was not called. Those that
  // an edit names are left to the next full scan, as it may be committed.
  // REQUIRES: Close() was called; if the edit is committed, a SuperVersion with
  // it was installed. DB mutex not held.
  void Settle();
  // The numbers of an SST file and its blob files that no edit names, and that
  // must stay nonetheless as long as the DB is open: delta files of the job may
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

  // Takes out of *values what has an anchor at its sequence number or above.
  // TryAgain if it is not hidden from all snapshots.
  static Status DropHidden(const DeltaAnchorLookup& anchors,
                           const std::vector<SequenceNumber>& snapshots,
                           FoldedValues* values, size_t* num_dropped);

 private:
  Status Validate();
  Status Build();
  Status Sync();
  void DeleteFiles();

  const Context context_;
  DeltaValueFolder* const folder_;
  const MutableCFOptions options_;

  // Of Begin(); pinned until Close().
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
