//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/spill_file.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The names that one job removes from the address map although no newer entry
// hides them: a filter dropped or changed the value, a merge consumed it, or it
// became an inline value. Shared by the subcompactions of the job.
//
//   Add() during the job -> Demote() when the edit is committed and the new
//   SuperVersion is installed -> Remove() when no older Version exists
//
// Between Demote() and Remove(), readers of old Versions, which have the names,
// find the values, but no reader finds them by the key alone. If the job fails,
// neither is called.
//
// Names beyond the cap go to a spill file. If writing it fails, the names are
// dropped and complete() returns false: the map then keeps entries that are
// never read, until it is next rebuilt from the files. A job that is not
// committed yet fails with status() instead.
//
// Thread-safe.
class DeferredRemovals {
 public:
  using NewSpillFile = std::function<Status(std::unique_ptr<SpillFile>* file)>;

  // 56 MB of names.
  static constexpr uint64_t kDefaultCap = uint64_t{2} << 20;

  // Keeps all names in memory.
  DeferredRemovals() : DeferredRemovals(0, nullptr) {}
  // cap: maximum number of names that are held in memory.
  DeferredRemovals(uint64_t cap, const NewSpillFile& new_spill_file)
      : cap_(cap), new_spill_file_(new_spill_file) {}
  DeferredRemovals(const DeferredRemovals&) = delete;
  DeferredRemovals& operator=(const DeferredRemovals&) = delete;
  ~DeferredRemovals() { error_.PermitUncheckedError(); }

  void Add(const MapName* names, size_t n);

  // Moves the names of a list that has to wait to the spill file and frees the
  // memory. If that fails, the names stay in memory.
  void MoveToFile();

  // Closes the spill file of a list that has to wait, until it is read.
  // REQUIRES: no thread calls Add() or MoveToFile() anymore.
  void CloseFile();

  uint64_t Count() const;
  size_t MemoryUsage() const;
  // False if names were dropped.
  bool complete() const;
  // Returns OK if no names were dropped. Otherwise returns the first error,
  // with its code and flags: an error of the spill file is to have the same
  // effect as one of another file of the job.
  // job: the name of the job for the message, such as "the compaction".
  // REQUIRES: Demote() and Remove() were not called.
  Status status(const std::string& job) const;

  // Demotes the names in the map.
  // REQUIRES: no thread calls Add() anymore.
  Status Demote(AddressMap* map);
  // Removes the names from the map and empties the list. Returns the number of
  // names that the map still had.
  // REQUIRES: no thread calls Add() anymore.
  uint64_t Remove(AddressMap* map);

  void Clear();

 private:
  // Key hash, sequence number and birth, without padding.
  static constexpr size_t kNameSize = 28;
  static constexpr size_t kNamesPerBlock = 1024;
  using Block = std::array<char, kNameSize * kNamesPerBlock>;

  // Appends the names that are in memory to the spill file, which is created if
  // it does not exist.
  // REQUIRES: mutex_ held.
  Status Append();
  // REQUIRES: mutex_ held.
  void Spill();
  // REQUIRES: mutex_ held.
  void ClearMemory();
  // Drops the names in the spill file.
  // REQUIRES: mutex_ held.
  void Fail(const Status& error);
  // REQUIRES: mutex_ held.
  Status ForEach(const std::function<void(const MapName&)>& fn);
  // REQUIRES: mutex_ held.
  void ClearLocked();

  const uint64_t cap_;
  const NewSpillFile new_spill_file_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;
  uint64_t in_memory_ = 0;
  std::unique_ptr<SpillFile> spill_file_;
  uint64_t in_file_ = 0;
  Status error_;  // the first one; OK if no names were dropped
};

}  // namespace ROCKSDB_NAMESPACE
