//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class Compaction;
struct MutableDBOptions;

// Keeps the files of a level from other jobs while an edit moves them to
// another level (PromoteL0()): the DB mutex is released while the edit waits
// and is written.
//
// Invariants:
// 1. From Begin() to the end of the lifetime, the files are marked as being
//    compacted, and the move is one of the compactions in progress. So no other
//    job takes the files, or writes to their key range in the new level.
// 2. The scores of the current Version are computed when the marks are set and
//    when they are removed: what is to be compacted next depends on the marks.
class LevelMove {
 public:
  // Begins the move of all files of a level. *move stays nullptr if the level
  // is empty. Returns InvalidArgument if another job writes to the key range of
  // the files in one of the levels from `level` to `new_level`.
  // REQUIRES: DB mutex held; level < new_level; no file of the level is being
  // compacted; the levels between, and the new one, are empty.
  static Status Begin(ColumnFamilyData* cfd, const MutableDBOptions& db_options,
                      int level, int new_level,
                      std::unique_ptr<LevelMove>* move);

  // The caller must then wake manual compactions, which wait for the files.
  // REQUIRES: DB mutex held.
  ~LevelMove();
  LevelMove(const LevelMove&) = delete;
  LevelMove& operator=(const LevelMove&) = delete;

 private:
  explicit LevelMove(std::unique_ptr<Compaction>&& compaction);

  // Refers to the Version in which the move has begun, and to the column
  // family.
  const std::unique_ptr<Compaction> compaction_;
};

}  // namespace ROCKSDB_NAMESPACE
