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
//
// A member of WriteThread::Writer, which is the template's argument. Not
// thread-safe: it belongs to whom the Writer belongs.
template <class Writer>
class WriteLeadership {
 public:
  // lead(): writes the group that the writer leads. Called by another thread,
  // once at most; has to exist until the writer is complete. nullptr: only the
  // writer's own thread may.
  // max_groups: how many groups that thread may write, with the writer's own.
  template <class F>
  void SetLead(const F* lead, uint32_t max_groups) {
    if (lead != nullptr) {
      lead_ = [](const void* arg) { return (*static_cast<const F*>(arg))(); };
      lead_arg_ = lead;
    }
    groups_left_ = max_groups;
  }

  bool CanBeLed() const { return lead_ != nullptr; }

  // REQUIRES: CanBeLed().
  Status Lead() const { return lead_(lead_arg_); }

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
  Status (*lead_)(const void*) = nullptr;
  const void* lead_arg_ = nullptr;
  Writer* next_ = nullptr;
  uint32_t groups_left_ = 0;
  bool is_offered_ = false;
  bool was_led_ = false;
};

// InvalidArgument for a max_write_groups_per_leader that cannot be.
Status ValidateWriteLeadership(const DBOptions& db_options);

}  // namespace ROCKSDB_NAMESPACE
