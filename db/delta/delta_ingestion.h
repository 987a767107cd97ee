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

namespace ROCKSDB_NAMESPACE {

class DeltaStore;
class DeltaTableFactory;
class DeltaVersion;
class FileSystem;
class FragmentedRangeTombstoneIterator;
class Logger;
class SstFileManager;

// The anchors of an SST file that is being ingested.
struct IngestedDeltaAnchors {
  // Number 0 if there are no anchors.
  DeltaFileDescription file;
  std::string file_name;
  // True if the anchors of all entries were written, and lie in the file if
  // there are any.
  bool are_written = false;
  // True if the SST file may hide operands, so that the anchors belong in the
  // same edit.
  bool are_needed = false;
};

// Handles operands in delta files when SST files are ingested.
//
//   prepare: WriteAnchors() for each file whose range has operands
//   commit: the same for each file whose range has operands by now
//           -> Check() each file -> sequence numbers -> the edit, with the
//           anchors that are needed
//   at the end: Delete() those that are in no edit
//
// Invariants:
// * Exact anchors, as with DeltaFlush: a file that is ingested over operands
//   gets a sequence number above theirs, and its edit has an anchor with that
//   number for each key of which the file has a value or a tombstone, and for
//   each of its range deletions. Compactions may then zero the sequence numbers
//   of the file's entries, or drop them.
// * The anchors are for all keys, whether or not there are operands when they
//   are written: operands that are flushed before the commit must be hidden,
//   too. As writing takes time, it is done before writes are stopped. Only if
//   the first operands in a file's range are flushed after that, it is done
//   while writes are stopped.
// * An operand in an SST file is older than all operands of its key in delta
//   files. So a file with operands, or with sequence numbers of its own, may be
//   ingested only where delta files have no operands.
//
// The epoch of the anchors is a number that is allocated under the DB mutex,
// which is then held until the edit waits for its turn. Merges and collections
// select their inputs from a Version, so edits that take in files with larger
// epochs come after this edit: the anchors are not late.
//
// Stateless; thread-safe.
class DeltaIngestion {
 public:
  // Describes an SST file.
  struct Source {
    Slice name;  // for messages
    // User keys; bounds of all entries of the file, both included.
    Slice smallest;
    Slice largest;
    uint64_t num_operands = 0;
    bool keeps_seqs = false;   // allow_db_generated_files
    bool may_have_seq = true;  // allow_global_seqno
  };

  // Returns NotSupported if files are to replace a range (atomic_replace_range)
  // in a column family with this store, which may be nullptr.
  static Status CheckReplaceRange(const DeltaStore* store);

  // Returns true if the file could be ingested over operands.
  static bool NeedsAnchors(const Source& source) {
    return source.num_operands == 0 && !source.keeps_seqs;
  }
  // Returns true if delta files may have operands in the file's range. version
  // may be nullptr.
  static bool IsOverOperands(const DeltaVersion* version, const Source& source);

  // Writes the anchors to a file. Leaves no file on failure, or if there are no
  // anchors. The directory is not synced. ranges may be nullptr.
  // REQUIRES: options are as for DeltaFileBuilder::BuildAnchorsOf(), and have a
  // file number.
  static Status WriteAnchors(const DeltaTableFactory& tables,
                             const DeltaFileBuilder::Options& options,
                             InternalIterator* points,
                             FragmentedRangeTombstoneIterator* ranges,
                             IngestedDeltaAnchors* anchors);

  // Returns OK if the file may be ingested. Sets *over_operands to true if the
  // file needs a sequence number and its anchors. version may be nullptr.
  // REQUIRES: no memtable has entries in the file's range, and none will before
  // the edit.
  static Status Check(const DeltaVersion* version, const Source& source,
                      bool* over_operands);

  // Deletes the file, if there is one. sst_file_manager may be nullptr.
  // REQUIRES: no committed edit names the file.
  static void Delete(FileSystem* fs, SstFileManager* sst_file_manager,
                     Logger* info_log, IngestedDeltaAnchors* anchors);
};

}  // namespace ROCKSDB_NAMESPACE
