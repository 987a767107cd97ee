//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The bytes that running jobs, such as compactions, are going to write in each
// directory, of all databases that share an SstFileManager. What a job has
// already written still counts, as its files are no longer free bytes but may
// be fewer than it has reserved.
//
// Invariant: bytes count from Reserve() until the Reservation is destroyed.
//
// Thread-safe.
class SpaceReservations {
 public:
  // directory -> bytes
  using Bytes = std::map<std::string, uint64_t>;

 private:
  struct Entry {
    const void* owner;
    Bytes bytes;
  };

 public:
  // The reservation of one job.
  // REQUIRES: it is destroyed before the SpaceReservations.
  class Reservation {
   public:
    ~Reservation() { reservations_->Release(entry_); }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

   private:
    friend class SpaceReservations;
    Reservation(SpaceReservations* reservations,
                std::list<Entry>::const_iterator entry)
        : reservations_(reservations), entry_(entry) {}

    SpaceReservations* const reservations_;
    const std::list<Entry>::const_iterator entry_;
  };

  SpaceReservations() = default;
  SpaceReservations(const SpaceReservations&) = delete;
  SpaceReservations& operator=(const SpaceReservations&) = delete;

  // owner: the column family of the job.
  std::unique_ptr<Reservation> Reserve(const void* owner, const Bytes& bytes);

  // Returns what is reserved by all databases.
  Bytes All() const;
  // Returns what is reserved by one column family.
  Bytes Of(const void* owner) const;

 private:
  void Release(std::list<Entry>::const_iterator entry);

  mutable port::Mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_
};

}  // namespace ROCKSDB_NAMESPACE
