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

// Which of the delta files of a column family that lie on disk count, and for
// which buckets: the state that a lost MANIFEST had, or one that means the
// same.
//
// Found are the files of that state; files that it does not need any more and
// that were not deleted yet; and files that a job had finished when the
// database came to an end, but whose edit was not in the MANIFEST. What is in
// several of them, also as part of a merged operand, must count once.
//
// Operands. Of two sorted files for a bucket the one with the larger number
// counts, and its floor; a merged file takes the place of all flushed files up
// to its last epoch. That is exact, as the output of a job means the same as
// its input, whether it was committed or not, if jobs keep the following rules:
//  1. A job finishes its file of operands before that of anchors, which names
//     it. So where there are anchors only, no operands were left.
//  2. A sorted file lists the buckets that it is for, also those of which
//     nothing was left, and where the last one ends. Each bucket of a job is in
//     one file of operands, or else in one of anchors: a later one would hide
//     what the first has for it.
//  3. A job that replaces buckets leaves a sorted file, and one that merges
//     leaves a merged file, if need be of a single anchor: floors, and which
//     flushes are over, stand nowhere else.
//  4. A bucket names the sorted file that it was written for, even if that has
//     nothing of it, so that the file stays. It may be of anchors alone then.
//  5. A job that folds operands leaves their values in an SST file before its
//     files of the buckets have their names. If it did not come to the second,
//     the operands are still in what was there before, and need anchors of the
//     values' sequence numbers: see DeltaRepair.
// Floors that were raised without a job do not matter: there was nothing for
// these buckets.
//
// Anchors need none of this. What one says is true for good, so all that are
// found may be used.
//
// What cannot be known: whether a file is missing that no other one tells of.
struct DeltaFileLiveness {
  // A bucket with less state than in a DeltaVersion: its anchors are only those
  // that say that there are no operands.
  std::vector<DeltaBucket> buckets;
  // All of these are pointers into what Resolve() was given, in the order of
  // their numbers. Without operands there is nothing at all: all files are
  // superseded.
  std::vector<const DeltaFileProbe*> operands;
  // Anchors that can stay as they are.
  std::vector<const DeltaFileProbe*> anchors;
  // Anchors whose file has no place in the state: they must be copied into a
  // new flushed file.
  std::vector<const DeltaFileProbe*> anchors_to_copy;
  // What is in them is in others, too, or is hidden.
  std::vector<const DeltaFileProbe*> superseded;

  // NotSupported, naming a file, if the files do not tell enough.
  // files: of one column family, after Scan(). Their order does not matter.
  static Status Resolve(const std::vector<const DeltaFileProbe*>& files,
                        const Comparator* ucmp, DeltaFileLiveness* lineage);
};

}  // namespace ROCKSDB_NAMESPACE
