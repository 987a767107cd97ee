//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class VersionEdit;

// Takes back the changes of numbers in atomic groups if the edits are not
// written. Each edit of an atomic group says how many others follow it. If the
// column family of a later edit was dropped, the write of a MANIFEST leaves
// that edit out and lowers the numbers of the edits before it. If the write
// then refuses an edit of another writer, the group waits and is written later,
// and its numbers are lowered again.
//
// Invariant: an edit that waits to be written has the number that its writer
// has given it. With a lower one, the MANIFEST would have a group that recovery
// takes for corrupt, or two groups in place of one.
//
// Not thread-safe.
class AtomicGroupNumbering {
 public:
  AtomicGroupNumbering() = default;
  // Gives the edits their numbers back, unless Keep() was called.
  // REQUIRES: the edits still exist.
  ~AtomicGroupNumbering();
  AtomicGroupNumbering(const AtomicGroupNumbering&) = delete;
  AtomicGroupNumbering& operator=(const AtomicGroupNumbering&) = delete;

  // Notes the number of an edit that is about to be changed.
  void Note(VersionEdit* edit);

  // Lets the edits keep their new numbers: they are about to be written.
  void Keep() { originals_.clear(); }

 private:
  // Edits and their numbers, in the order of the changes.
  std::vector<std::pair<VersionEdit*, uint32_t>> originals_;
};

}  // namespace ROCKSDB_NAMESPACE
