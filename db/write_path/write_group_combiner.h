//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <utility>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

struct DBOptions;

// What a writer in the queue of a WriteThread has so that a leader can write
// more than one group (DBOptions::max_write_groups_per_leader).
//
// In RocksDB a leader hands over to the writer that comes after its group,
// whose thread writes the next one. All that a write touches then moves to
// another core, for often only one or two writes. A leader that keeps the
// leadership does for that writer what its thread would do, and wakes it when
// its write is complete: as if it had been in a group that another one leads.
//
// Of one that leads: Offer(), then WriteThread::ExitAsBatchGroupLeader(), which
// may Keep() the next writer for it, then WriteThread::LeadKeptGroups().
//
// Invariants:
//  - One thread leads at a time, as ever. Who leads for another one has all
//    rights to its Writer, and what Lead() refers to, until it completes it;
//    that thread waits.
//  - A group that is led for another thread is not written to memtables by
//    several threads: those that take part would wake the waiting one.
//  - Keep() is only for what comes next in the queue: no writer is passed by.
//  - Who leads for another one waits for nothing but the queue, frees nothing
//    and tells no listener: before it has touched the group it hands the
//    leadership back to that one's own thread.
//
// A member of WriteThread::Writer, which is the template's argument. Not
// thread-safe: it belongs to whom the Writer belongs.
template <class Writer>
class WriteGroupCombiner {
 public:
  // lead(bool* handed_back): writes the group that the writer leads, or hands
  // the leadership back; then the writer, which may be gone, and lead() are not
  // to be touched any more. Called by another thread, once at most; must exist
  // until the writer is complete. nullptr: only the writer's own thread may.
  // max_groups: how many groups that thread may write, with the writer's own.
  template <class F>
  void SetLead(const F* lead, uint32_t max_groups) {
    if (lead != nullptr) {
      lead_ = [](const void* arg, bool* handed_back) {
        return (*static_cast<const F*>(arg))(handed_back);
      };
      lead_arg_ = lead;
    }
    max_groups_ = groups_left_ = max_groups;
  }

  bool CanBeLed() const { return lead_ != nullptr; }

  // *handed_back: false before.
  // REQUIRES: CanBeLed().
  Status Lead(bool* handed_back) const { return lead_(lead_arg_, handed_back); }

  // The writer's own thread leads after all, as if none had for it.
  void OnHandBack() { groups_left_ = max_groups_; }

  // WriteOptions::ignore_missing_column_families, for who inserts the write in
  // the place of its thread.
  void SetIgnoresMissingColumnFamilies(bool ignores) {
    ignores_missing_column_families_ = ignores;
  }
  bool ignores_missing_column_families() const {
    return ignores_missing_column_families_;
  }

  // The thread that leads may go on with the next group: it is not a member of
  // the group that calls WriteThread::ExitAsBatchGroupLeader().
  void Offer() { is_offered_ = true; }

  // The leader is left with the group of `next`, if both agree.
  bool Keep(Writer* next) {
    if (!is_offered_ || groups_left_ <= 1 || !next->leadership.CanBeLed()) {
      return false;
    }
    next->leadership.groups_left_ = groups_left_ - 1;
    next_ = next;
    return true;
  }

  // The writer whose group the thread that leads is to write next. nullptr:
  // another thread does, or there is none. Not left for the writer's own
  // thread, which would lead it once more.
  Writer* TakeNext() { return std::exchange(next_, nullptr); }

  // Another thread has led for this writer, with all that a leader does.
  void SetWasLed() { was_led_ = true; }
  bool was_led() const { return was_led_; }

 private:
  Status (*lead_)(const void*, bool*) = nullptr;
  const void* lead_arg_ = nullptr;
  Writer* next_ = nullptr;
  uint32_t max_groups_ = 0;
  uint32_t groups_left_ = 0;
  bool ignores_missing_column_families_ = false;
  bool is_offered_ = false;
  bool was_led_ = false;
};

// More make the slowest writes slower, and nothing faster.
inline constexpr uint32_t kMaxWriteGroupsPerLeader = 1024;

// InvalidArgument for a max_write_groups_per_leader that cannot be.
Status ValidateWriteLeadership(const DBOptions& db_options);

}  // namespace ROCKSDB_NAMESPACE
