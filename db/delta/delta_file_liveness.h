//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/delta/delta_bucket_table.h"
#include "db/delta/delta_file_probe.h"
#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Determines which of the delta files on disk count, and for which buckets: the
// state of a lost MANIFEST, or an equivalent one.
//
// The files on disk include the files of that state; files that are obsolete
// but not deleted yet; and files that a job had finished, but whose edit was
// not in the MANIFEST. Entries that are in several files, also as part of a
// merged operand, must count once.
//
// Operands. Of two sorted files for a bucket, the one with the larger number
// counts, with its floor; a merged file replaces all flushed files up to its
// last epoch. This is exact, as the output of a job is equivalent to its input,
// whether it was committed or not, if jobs follow these rules:
//  1. A job finishes its file of operands before its file of anchors, which
//     names it. So if there is a file of anchors only, no operands were left.
//  2. A sorted file lists the buckets that it is for, including those of which
//     nothing was left, and the end of the last one. Each bucket of a job is in
//     one file of operands, or else in one file of anchors: a second file would
//     hide what the first has for the bucket.
//  3. A job that replaces buckets writes a sorted file, and a job that merges
//     writes a merged file, if necessary with a single anchor: only these files
//     record floors, and which flushes were merged.
//  4. A bucket names the sorted file that it was written for, even if that file
//     has no entry of the bucket, so that the file stays. It may be a file of
//     anchors only.
//  5. A job that folds operands writes their values to an SST file before its
//     delta files get their names. If it ended in between, the operands are
//     still in the older files, and need anchors with the sequence numbers of
//     the values: see DeltaRepair.
//  6. A flush records which sequence numbers its memtables have (see
//     DeltaFileProperties::first_seq). Flushes of a column family have none in
//     common, unless one of them repeats the other, whose edit was not
//     committed: then the one that has read all that the other has read counts.
//     Sequence numbers of operands alone would not tell, since a flush hides
//     and combines operands. They are used for files without the record, of
//     earlier versions and of repairs.
// Floors that were raised without a job do not matter, as there was nothing for
// these buckets.
//
// Anchors need none of this. What an anchor states is true forever, so all
// anchors that are found may be used. Those that are true only if their edit
// was committed, of ingested files and of DeleteFilesInRanges(), have a global
// sequence number and are refused.
//
// It cannot be determined whether a file is missing to which no other file
// refers.
struct DeltaFileLiveness {
  // Buckets with less state than in a DeltaVersion: anchors_number is set only
  // for files that record that there are no operands.
  std::vector<DeltaBucket> buckets;
  // The following lists point to files that were passed to Resolve(), sorted by
  // number. If there are no operands, all files are superseded.
  std::vector<const DeltaFileProbe*> operands;
  // Files of anchors that can stay as they are.
  std::vector<const DeltaFileProbe*> anchors;
  // Files of anchors that cannot be part of the state: their anchors must be
  // copied into a new flushed file.
  std::vector<const DeltaFileProbe*> anchors_to_copy;
  // Files whose entries are in other files, too, or are hidden.
  std::vector<const DeltaFileProbe*> superseded;

  // Returns NotSupported with the name of a file if the files do not determine
  // the state.
  // files: files of one column family, after Scan(), in any order.
  static Status Resolve(const std::vector<const DeltaFileProbe*>& files,
                        const Comparator* ucmp, DeltaFileLiveness* lineage);
};

}  // namespace ROCKSDB_NAMESPACE
