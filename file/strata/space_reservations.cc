//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/space_reservations.h"

#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

namespace {

void AddReserved(const SpaceReservations::Bytes& bytes,
                 SpaceReservations::Bytes* sum) {
  for (const auto& [directory, number] : bytes) {
    (*sum)[directory] += number;
  }
}

}  // namespace

std::unique_ptr<SpaceReservations::Reservation> SpaceReservations::Reserve(
    const void* owner, const Bytes& bytes) {
  MutexLock lock(&mutex_);
  entries_.push_front({owner, bytes});
  return std::unique_ptr<Reservation>(new Reservation(this, entries_.begin()));
}

SpaceReservations::Bytes SpaceReservations::All() const {
  Bytes result;
  MutexLock lock(&mutex_);
  for (const Entry& entry : entries_) {
    AddReserved(entry.bytes, &result);
  }
  return result;
}

SpaceReservations::Bytes SpaceReservations::Of(const void* owner) const {
  Bytes result;
  MutexLock lock(&mutex_);
  for (const Entry& entry : entries_) {
    if (entry.owner == owner) {
      AddReserved(entry.bytes, &result);
    }
  }
  return result;
}

void SpaceReservations::Release(std::list<Entry>::const_iterator entry) {
  MutexLock lock(&mutex_);
  entries_.erase(entry);
}

}  // namespace ROCKSDB_NAMESPACE
