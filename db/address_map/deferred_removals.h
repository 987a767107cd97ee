//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/spill_file.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The names that one job takes out of the address map although no newer entry
// hides them: a filter dropped or changed the value, a merge consumed it, it
// became an inline one. Shared by the subcompactions.
//
//   Add() during the job -> Demote() when the edit is committed and the new
//   SuperVersion is installed -> Remove() when no older Version lives
//
// In between the values are found by readers of old Versions, which have the
// names, but not by the key alone. If the job fails nothing of this happens.
//
// Names beyond the cap go to a file. If that fails they are forgotten, and
// complete() says so: the map then has entries that nobody reads, until it is
// built from the files the next time.
//
// Thread-safe.
class DeferredRemovals {
 public:
  using NewSpillFile = std::function<Status(std::unique_ptr<SpillFile>* file)>;

  // 56 MB.
  static constexpr uint64_t kDefaultCap = uint64_t{2} << 20;

  // Everything in memory.
  DeferredRemovals() : DeferredRemovals(0, nullptr) {}
  // cap: how many names are held in memory.
  DeferredRemovals(uint64_t cap, const NewSpillFile& new_spill_file)
      : cap_(cap), new_spill_file_(new_spill_file) {}
  DeferredRemovals(const DeferredRemovals&) = delete;
  DeferredRemovals& operator=(const DeferredRemovals&) = delete;

  void Add(const MapName* names, size_t n);

  // For a list that has to wait: frees the memory if a file takes the names,
  // and keeps them there if none does.
  void MoveToFile();

  uint64_t Count() const;
  size_t MemoryUsage() const;
  bool complete() const;

  // REQUIRES of both: nobody adds any more.
  Status Demote(AddressMap* map);
  // Empties the list. Returns how many of the names the map still had.
  uint64_t Remove(AddressMap* map);

  void Clear();

 private:
  // Key hash, sequence number and birth, without padding.
  static constexpr size_t kNameSize = 28;
  static constexpr size_t kNamesPerBlock = 1024;
  using Block = std::array<char, kNameSize * kNamesPerBlock>;

  // REQUIRES of all: mutex_ held.
  Status Append();  // what is in memory to the file, which it may make
  void Spill();
  void ClearMemory();
  void Fail();
  Status ForEach(const std::function<void(const MapName&)>& fn);
  void ClearLocked();

  const uint64_t cap_;
  const NewSpillFile new_spill_file_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;
  uint64_t in_memory_ = 0;
  std::unique_ptr<SpillFile> spill_file_;
  uint64_t in_file_ = 0;
  bool complete_ = true;
};

}  // namespace ROCKSDB_NAMESPACE
