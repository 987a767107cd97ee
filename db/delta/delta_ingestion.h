//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_description.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "table/internal_iterator.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

class DeltaStore;
class DeltaTableFactory;
class DeltaVersion;
class FileSystem;
class FragmentedRangeTombstoneIterator;
class Logger;
class SstFileManager;

// What is kept for an SST file on its way in: its anchors.
struct IngestedDeltaAnchors {
  // Number 0: there are none.
  DeltaFileDescription file;
  std::string file_name;
  // The SST file may hide operands: they belong into the same edit.
  bool are_needed = false;
};

// What the ingestion of SST files does about operands in delta files.
//
//   prepare: WriteAnchors() of each file over operands
//   commit: the same of those that are over operands by now
//           -> Check() each file -> sequence numbers -> the edit, with the
//           anchors that are needed
//   at the end: Delete() those that are in no edit
//
// Invariants:
// * Exact anchors, as with DeltaFlush: a file that comes in over operands gets
//   a sequence number above theirs, and its edit has an anchor of that number
//   for each key of which it has a value or a tombstone, and for each of its
//   range deletions. Compactions may then zero or drop what the file has.
// * The anchors are of all keys, whether or not there are operands when they
//   are written: those that are flushed before the commit must be hidden, too.
//   Writing takes time, which is for when writes are not stopped. Only if the
//   first operands of a file's range come after all that, it is done while they
//   are.
// * An operand in an SST file is older than all those of its key in delta
//   files. So a file with operands, or with sequence numbers of its own, comes
//   in only where delta files have no operands.
//
// The epoch of anchors is a number taken under the DB mutex that is then held
// until the edit waits for its turn. What merges and collections take in is
// known from a Version, so their edits are behind it if they are about files
// with larger epochs: the anchors are not late.
//
// Stateless; thread-safe.
class DeltaIngestion {
 public:
  // Of an SST file.
  struct Source {
    Slice name;  // for messages
    // User keys; all that the file has lies between them, both included.
    Slice smallest;
    Slice largest;
    uint64_t num_operands = 0;
    bool keeps_seqs = false;   // allow_db_generated_files
    bool may_have_seq = true;  // allow_global_seqno
  };

  // NotSupported if files are to take the place of what is in a range
  // (atomic_replace_range). store: of the column family, may be nullptr.
  static Status CheckReplaceRange(const DeltaStore* store);

  // Could the file come in over operands?
  static bool NeedsAnchors(const Source& source) {
    return source.num_operands == 0 && !source.keeps_seqs;
  }
  // May delta files have operands in its range? version may be nullptr.
  static bool IsOverOperands(const DeltaVersion* version,
                             const Source& source);

  // Leaves nothing if it fails, or if there is nothing to write. The directory
  // is not synced. ranges may be nullptr.
  // REQUIRES: options are as for DeltaFileBuilder::BuildAnchorsOf(), and give a
  // number.
  static Status WriteAnchors(const DeltaTableFactory& tables,
                             const DeltaFileBuilder::Options& options,
                             InternalIterator* points,
                             FragmentedRangeTombstoneIterator* ranges,
                             IngestedDeltaAnchors* anchors);

  // May the file come in? *over_operands: it has to have a sequence number and
  // needs its anchors. version may be nullptr.
  // REQUIRES: no memtable has anything of the file's range, and none will
  // before the edit.
  static Status Check(const DeltaVersion* version, const Source& source,
                      bool* over_operands);

  // The file goes if there is one. sst_file_manager may be nullptr.
  // REQUIRES: no committed edit names it.
  static void Delete(FileSystem* fs, SstFileManager* sst_file_manager,
                     Logger* info_log, IngestedDeltaAnchors* anchors);
};

}  // namespace ROCKSDB_NAMESPACE
