//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/atomic_group_numbering.h"

#include "db/version_edit.h"

namespace ROCKSDB_NAMESPACE {

AtomicGroupNumbering::~AtomicGroupNumbering() {
  // An edit may have been changed several times: its first number comes last.
  for (auto it = originals_.rbegin(); it != originals_.rend(); ++it) {
    it->first->SetRemainingEntries(it->second);
  }
}

void AtomicGroupNumbering::Note(VersionEdit* edit) {
  originals_.emplace_back(edit, edit->GetRemainingEntries());
}

}  // namespace ROCKSDB_NAMESPACE
