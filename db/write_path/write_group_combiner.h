//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <utility>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

struct DBOptions;

// The state of a Writer in the queue of a WriteThread that lets a leader write
// more than one group (DBOptions::max_write_groups_per_leader).
//
// In RocksDB a leader hands over to the first writer behind its group, whose
// thread writes the next group. The data that a write touches then moves to
// another core, often for only one or two writes. A leader that keeps the
// leadership writes the group of that writer instead, and wakes its thread when
// the write is complete, as if the writer had been a follower in a group.
//
// Call order for a leader: Offer(), then WriteThread::ExitAsBatchGroupLeader(),
// which may Keep() the next writer, then WriteThread::LeadKeptGroups().
//
// Invariants:
// 1. Only one thread leads at a time. While it leads on behalf of a waiting
//    writer, it owns that Writer and everything Lead() refers to, until it
//    marks the Writer completed.
// 2. A group that is led for another thread is not written to memtables by
//    several threads, because those would wake the waiting thread.
// 3. Keep() is only called for the next writer in the queue: no writer is
//    overtaken.
// 4. A thread that leads for another one waits for nothing but the queue, frees
//    nothing and notifies no listener. If the group would need any of that, the
//    leader hands the leadership back to the writer's own thread before it has
//    touched the group.
//
// A member of WriteThread::Writer, which is the template's argument. Not
// thread-safe: it belongs to the thread that owns the Writer.
template <class Writer>
class WriteGroupCombiner {
 public:
  // Sets how another thread can lead for this writer.
  // lead(bool* handed_back): writes the group of the writer, or hands the
  //     leadership back and sets *handed_back. In the latter case the writer
  //     may be gone, and neither it nor lead() may be used after the call. It
  //     is called by another thread, at most once. nullptr: only the writer's
  //     own thread may lead.
  // max_groups: maximum number of groups that the writer's thread writes if it
  //     leads, including its own.
  // REQUIRES: *lead exists until the writer is completed.
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

  // Calls lead() of SetLead().
  // REQUIRES: CanBeLed(), *handed_back is false.
  Status Lead(bool* handed_back) const { return lead_(lead_arg_, handed_back); }

  // Resets the state after a hand-back: the writer's own thread leads, with all
  // of its groups left.
  void OnHandBack() { groups_left_ = max_groups_; }

  // WriteOptions::ignore_missing_column_families, for another thread that
  // inserts this write into memtables.
  void SetIgnoresMissingColumnFamilies(bool ignores) {
    ignores_missing_column_families_ = ignores;
  }
  bool ignores_missing_column_families() const {
    return ignores_missing_column_families_;
  }

  // Allows the leader to continue with the next group. Only the leader calls
  // this, so a group member that calls WriteThread::ExitAsBatchGroupLeader()
  // never keeps the leadership.
  void Offer() { is_offered_ = true; }

  // Makes `next` the writer whose group the leader writes next. Returns false,
  // and changes nothing, if the leader may not write another group or `next`
  // cannot be led.
  bool Keep(Writer* next) {
    if (!is_offered_ || groups_left_ <= 1 || !next->leadership.CanBeLed()) {
      return false;
    }
    next->leadership.groups_left_ = groups_left_ - 1;
    next_ = next;
    return true;
  }

  // Returns and clears the writer whose group the leader has to write next;
  // nullptr if there is none, or another thread writes it. It is cleared so
  // that no thread leads that group a second time.
  Writer* TakeNext() { return std::exchange(next_, nullptr); }

  // Records that another thread has done all work of a leader for this writer.
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

// Returns InvalidArgument if max_write_groups_per_leader is incompatible with
// other options.
Status ValidateWriteLeadership(const DBOptions& db_options);

}  // namespace ROCKSDB_NAMESPACE
