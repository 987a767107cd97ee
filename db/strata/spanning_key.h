//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>

#include "db/dbformat.h"
#include "db/version_edit.h"
#include "rocksdb/comparator.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// A compaction may end a file between two entries of one user key: an older
// snapshot keeps both, and the next file of the level begins with the older
// one. Two facts follow for a reader of that user key:
//  1. It has to read both files.
//  2. A range tombstone in the first file does not cover all entries in the
//     second one, although it covers all entries in deeper levels: files keep
//     range tombstones in full, so one that is older than both entries is found
//     in the first file.
// A reader that stops at the first covering range tombstone must therefore read
// the files on both sides of such a boundary before it stops.
//
// All functions are thread-safe. `file` is a file of a level other than 0, in
// which the files are in the order of their keys.

// Returns true if the file before `file` in its level may have newer entries of
// `user_key` than `file` does.
inline bool MaySpanFromPreviousFile(const FdWithKeyRange& file,
                                    const Slice& user_key,
                                    const Comparator* user_comparator) {
  return user_comparator->CompareWithoutTimestamp(
             user_key, ExtractUserKey(file.smallest_key)) == 0;
}

// Returns true if the file after `file` in its level may have older entries of
// `user_key` than `file` does.
inline bool MaySpanToNextFile(const FdWithKeyRange& file, const Slice& user_key,
                              const Comparator* user_comparator) {
  return user_comparator->CompareWithoutTimestamp(
             user_key, ExtractUserKey(file.largest_key)) == 0;
}

// Returns true if there is a user key, timestamp included, at the end of one of
// `files` and at the beginning of the next one.
inline bool HasSpanningKey(const LevelFilesBrief& files,
                           const Comparator* user_comparator) {
  for (size_t i = 1; i < files.num_files; ++i) {
    if (user_comparator->Compare(ExtractUserKey(files.files[i - 1].largest_key),
                                 ExtractUserKey(files.files[i].smallest_key)) ==
        0) {
      return true;
    }
  }
  return false;
}

}  // namespace ROCKSDB_NAMESPACE
