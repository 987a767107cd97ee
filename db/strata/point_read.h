//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "db/address_map/map_point_read.h"
#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/delta/delta_read.h"
#include "db/merge_context.h"
#include "db/merged_value/merged_value_read.h"
#include "port/likely.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class DeltaOperands;
class DeltaVersion;
class ContinueOncePerOperand;
class GetContext;
class PinnableWideColumns;
class ReadCallback;
class Version;
struct FdWithKeyRange;
struct GetMergeOperandsOptions;
struct ReadOptions;
struct SuperVersion;

// What Strata adds to the lookup of one key. A Get() has one object, a
// MultiGet() has one for each key (PointReadBatch), if the column family has an
// address map, a merged-value cache or delta files. The MergeContext of the
// lookup points to it; there the memtables, Version and GetContext find it.
//
// The sources of a lookup, in the order in which they are asked:
//
//   Begin()           The map is asked for D, the sequence number of the key's
//                     direct entry. Then the caller takes a SuperVersion and
//                     the sequence number to read at, and calls Attach().
//   memtables         OnMemTableEntry() is called for each entry of the key. At
//                     an operand, the merged-value cache may end the search.
//   AfterMemTables()  If the memtables have no entry of the key, the
//                     merged-value cache is asked here.
//   SST files         A FileSearch begins to read delta files. Skips() says
//                     which SST files the map makes unnecessary. GetContext
//                     passes each entry of the key to OnFileEntry(), where the
//                     map may put a newer value in its place; it then saves the
//                     operands of delta files that are newer than the entry,
//                     and then the entry.
//   AfterFilesOf...() If no file had the last entry that counts, the map has
//                     it, or the map confirms that there is none. The remaining
//                     operands of delta files are saved.
//   OnMerged()        The result of the merge is put into the merged-value
//                     cache.
//   NeedsRestart()    The map has changed during the lookup: the caller calls
//                     Begin() again.
//
// Why the order is right: the operands of a key that are in delta files are
// newer than its value in the files and in the map, or an anchor hides them;
// and a value in the merged-value cache is the merge of entries that are all
// older than the operands which the lookup has found before it.
//
// Not thread-safe.
class PointRead {
 public:
  // Returns true if lookups in the column family need an object of this class.
  static bool IsNeeded(const ColumnFamilyData& cfd) {
    return cfd.needs_point_read();
  }

  // registers: from the fourth attempt on, the read registers a fixed sequence
  //     number with the column family's map (see MapPointRead). False if the
  //     caller registers one, or if no job removes entries.
  // REQUIRES: all arguments, and the bytes of the key, outlive this object.
  PointRead(ColumnFamilyData* cfd, const Slice& user_key,
            const ReadOptions& read_options, bool registers);
  // For a lookup in one delta file: all operands go to `operands`, with their
  // sequence numbers, and not into the MergeContext. nullptr: they go into the
  // MergeContext, and the object is only for delta files (see FileSearch).
  explicit PointRead(DeltaOperands* operands);
  ~PointRead();
  PointRead(const PointRead&) = delete;
  PointRead& operator=(const PointRead&) = delete;

  // ---- The caller's part.

  // Starts an attempt.
  // last_sequence: returns the newest visible sequence number.
  template <typename LastSequence>
  void Begin(const LastSequence& last_sequence) {
    if (map_.has_value()) {
      map_->Begin(last_sequence);
    }
  }
  // The same for callers that count the attempts themselves. is_bounded: the
  // sequence number that is passed to Attach() is registered.
  void BeginCounted(bool is_bounded) {
    if (map_.has_value()) {
      map_->Begin(is_bounded);
    }
  }
  // Makes even the first attempt use a fixed sequence number, and the
  // MergeContext of each attempt ask options->continue_cb only for operands
  // for which no earlier attempt has asked it: a callback may count operands.
  // options: of GetMergeOperands(), with a continue_cb.
  // REQUIRES: Begin() was not called; `options` outlives this object.
  void AskOncePerOperand(GetMergeOperandsOptions* options);
  // True if the caller, unless it has a snapshot, must read at
  // fixed_sequence().
  bool HasFixedSequence() const {
    return map_.has_value() && map_->HasFixedSequence();
  }
  SequenceNumber fixed_sequence() const { return map_->fixed_sequence(); }
  // The caller's ReadOptions for the search in the files.
  // given: those of the constructor.
  // callback: that of Attach(); a caller with one does not read at
  //     fixed_sequence().
  const ReadOptions& FileOptions(const ReadOptions& given,
                                 const ReadCallback* callback) const {
    return callback == nullptr && HasFixedSequence() ? map_->fixed_options()
                                                     : given;
  }

  // Sets the state that this attempt reads.
  // sequence: sequence number to read at, that of the LookupKey.
  // callback: may be nullptr.
  // uses_cache: the merged-value cache may be used; false for
  //     GetMergeOperands(), which returns all operands.
  // merge_context: of this attempt; it points to this object from now on.
  // covering: the lookup's sequence number of the newest range deletion that
  //     covers the key, 0 if there is none.
  // REQUIRES: Begin() was called; all arguments are valid until the attempt is
  // over.
  void Attach(const SuperVersion* super_version, SequenceNumber sequence,
              ReadCallback* callback, bool uses_cache,
              MergeContext* merge_context, const SequenceNumber* covering);
  // Called in place of Begin() and Attach() to find only a sequence number, see
  // MapPointRead::FindNewest().
  // REQUIRES: the column family has a map.
  void FindNewest(SequenceNumber* newest, MergeContext* merge_context,
                  const SequenceNumber* covering);

  // True if the attempt is void: the caller resets its results and starts
  // again.
  bool NeedsRestart() const { return map_.has_value() && map_->NeedsRestart(); }
  // The lookup's part in the map; nullptr if there is no map.
  MapPointRead* map() { return map_.has_value() ? &*map_ : nullptr; }

  // ---- Memtables.

  // Called with each entry of the key that the reader sees, newest first.
  // entry: its sequence number.
  // type: its type; kTypeRangeDeletion if a range deletion covers it.
  // covering: see Attach().
  // Returns true if the search ends here: cached_value() is then the base value
  // of the operands that were found before.
  bool OnMemTableEntry(SequenceNumber entry, ValueType type,
                       SequenceNumber covering) {
    return merged_.has_value() && merged_->StopsAt(entry, type, covering);
  }
  // REQUIRES: OnMemTableEntry() has returned true.
  Slice cached_value() const { return merged_->value(); }

  // Called after a search in the memtables without a final entry. Returns true
  // if the lookup is complete: *status and *value, or *columns, have the
  // result.
  bool AfterMemTables(SequenceNumber covering, Status* status,
                      PinnableSlice* value, PinnableWideColumns* columns);

  // ---- Files: Version's part.

  class FileSearch;

  // Returns true if no SST file of the Version has to be searched.
  // lsm_ceiling: VersionMappedStats::lsm_ceiling.
  bool SkipsAllFiles(uint64_t lsm_ceiling) const {
    return map_.has_value() && lsm_ceiling <= map_->floor();
  }
  // Returns true if the search need not open the file. Must be called for each
  // file that the search reaches.
  bool Skips(const FdWithKeyRange& file) {
    return map_.has_value() && map_->Skips(file);
  }
  // Returns true if only the range deletions of a file are needed, see
  // MapPointRead::SkipsPoints().
  bool SkipsPoints(uint64_t point_ceiling) const {
    return map_.has_value() && map_->SkipsPoints(point_ceiling);
  }
  // True if the map has ended the search: StoppedStatus() is the lookup's.
  bool stopped() const { return map_.has_value() && map_->stopped(); }
  Status StoppedStatus() const { return map_->StoppedStatus(); }

  // The two parts of the end of a search in the files that found no final
  // entry: that of the map, and that of delta files.
  // get_context: has the operands that were found.
  // Each returns true if the search is over: *status and get_context have the
  // result; after the first part it may be a BlobIndex, see map()->value(). If
  // both return false, RocksDB's end of a lookup follows, for a key without a
  // base value.
  // REQUIRES: the second is called if the first has returned false.
  bool AfterFilesOfMap(GetContext* get_context, Status* status);
  bool AfterFilesOfDeltas(GetContext* get_context, Status* status);

  // Called with a value that was read from a blob file.
  void OnBlobValue(const Slice& value) const {
    if (map_.has_value()) {
      map_->FillRowCache(value);
    }
  }

  // ---- Files: GetContext's part.

  // True if GetContext needs the sequence numbers of entries, which a row cache
  // does not keep: the map and the delta files are asked with them.
  bool NeedsSequence() const { return map_.has_value() || deltas_ != nullptr; }
  // Called with each entry of an SST file that the reader sees.
  MapPointRead::Action OnFileEntry(const ParsedInternalKey& entry,
                                   const Slice& value) {
    return map_.has_value() ? map_->OnEntry(entry, value)
                            : MapPointRead::Action::kAsIs;
  }
  // The lookup's reader of delta files; nullptr outside of a FileSearch, or if
  // the Version has no delta files.
  DeltaRead* deltas() { return deltas_; }
  // A blob that was read before it is needed, while delta files were read.
  void KeepBlobAhead(std::unique_ptr<PinnableSlice> blob) {
    blob_ahead_ = std::move(blob);
  }
  void DropBlobAhead() { blob_ahead_.reset(); }
  // Returns false if there is none.
  bool TakeBlobAhead(PinnableSlice* blob);
  // Called with each operand, or base value, that GetContext is about to put
  // into the MergeContext. Returns true if the PointRead has taken it instead.
  bool TakesOperand(SequenceNumber seq, const Slice& value, Cleanable* pinner);
  // Called with each operand that is put into the MergeContext.
  void OnFileOperand(SequenceNumber seq) {
    if (merged_.has_value()) {
      merged_->OnFileOperand(seq);
    }
  }
  // The following entries come from the row cache.
  void OnReplay() {
    if (merged_.has_value()) {
      merged_->OnReplay();
    }
  }

  // ---- The merge.

  // The merge that follows is not of all operands of the key.
  void OnPartialMerge() { merged_.reset(); }
  // True if OnMerged() wants the result.
  bool WantsMerged() const { return merged_.has_value(); }
  // result: plain value, the merge of all operands of the lookup.
  // REQUIRES: WantsMerged().
  void OnMerged(const Slice& result) { merged_->Fill(result); }

 private:
  friend class PointReadBatch;  // its FileSearch

  void BeginDeltas(DeltaRead* deltas) { deltas_ = deltas; }
  void EndDeltas() {
    deltas_ = nullptr;
    blob_ahead_.reset();
  }

  ColumnFamilyData* cfd_ = nullptr;
  Slice user_key_;
  const ReadOptions* read_options_ = nullptr;

  // Engaged if the column family has an address map.
  std::optional<MapPointRead> map_;
  // Engaged from Attach() on if the merged-value cache may be used.
  std::optional<MergedValueRead> merged_;
  // That of the FileSearch, if the Version has delta files; else nullptr.
  DeltaRead* deltas_ = nullptr;
  std::unique_ptr<PinnableSlice> blob_ahead_;
  // Result of AskOncePerOperand(); nullptr if that was not called.
  std::unique_ptr<ContinueOncePerOperand> continue_once_;
  // For a lookup in one delta file.
  DeltaOperands* const operands_ = nullptr;
};

// The search in the files of a Version, as long as the object lives: delta
// files are read only meanwhile, because the Version that has them is pinned.
// Costs a branch if there are none.
class PointRead::FileSearch {
 public:
  // delta: what the Version has of delta files; may be nullptr.
  // wants_value: the value or the operands are wanted, not only a sequence
  //     number.
  // covering: see PointRead::Attach().
  // REQUIRES: all arguments outlive this object.
  FileSearch(const Version& version, const DeltaVersion* delta,
             const ReadOptions& read_options, const LookupKey& key,
             bool wants_value, SequenceNumber covering,
             MergeContext* merge_context)
      : point_read_(merge_context->point_read) {
    if (UNLIKELY(delta != nullptr)) {
      Begin(version, *delta, read_options, key, wants_value, covering,
            merge_context);
    }
  }
  ~FileSearch() {
    if (UNLIKELY(deltas_.has_value())) {
      End();
    }
  }
  FileSearch(const FileSearch&) = delete;
  FileSearch& operator=(const FileSearch&) = delete;

  // The lookup's PointRead; nullptr if it has none and needs none.
  PointRead* point_read() const { return point_read_; }

 private:
  void Begin(const Version& version, const DeltaVersion& delta,
             const ReadOptions& read_options, const LookupKey& key,
             bool wants_value, SequenceNumber covering,
             MergeContext* merge_context);
  void End();

  PointRead* point_read_;
  std::optional<DeltaRead> deltas_;
  // For a lookup that has no PointRead although there are delta files.
  std::unique_ptr<PointRead> own_;
  MergeContext* own_merge_context_ = nullptr;
};

}  // namespace ROCKSDB_NAMESPACE
