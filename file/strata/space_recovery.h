//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "port/port.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class SystemClock;

// Recovers databases with several paths from a lack of space, and tries until
// there is room. Each SstFileManager has one SpaceRecovery. The SstFileManager
// itself recovers databases with one path. A client may also wait for another
// reason: for devices that are lost or read-only.
//
// A database is tried when it begins to wait, when it asks for it, and then
// every five seconds. One thread tries the databases, one at a time, so that no
// two of them take the same free bytes for theirs. A database that lacks room
// does not keep others, whose devices have it, from being tried. The others do
// wait while one recovers, which includes the end of the jobs it waits for.
//
// Invariants:
// 1. A client is tried until it is done, it is canceled, or the object is
//    closed. A call of Start() during Try() is not lost: the client stays.
// 2. When Cancel() or Close() has returned, no client is being tried.
//
// Thread-safe.
class SpaceRecovery {
 public:
  static constexpr uint64_t kRetryMicros = 5 * 1000 * 1000;

  enum class Outcome {
    kDone,   // the client need not, or cannot, be tried any more
    kAgain,  // it waits
  };

  // A database.
  class Client {
   public:
    virtual ~Client() = default;
    // Recovers if there is room. Called without a lock of this class.
    virtual Outcome Try() = 0;
  };

  explicit SpaceRecovery(SystemClock* clock) : clock_(clock) {}
  ~SpaceRecovery() { Close(); }
  SpaceRecovery(const SpaceRecovery&) = delete;
  SpaceRecovery& operator=(const SpaceRecovery&) = delete;

  // Adds a client that has to wait for space. If it is waiting already, it is
  // tried at once, or, if it is being tried, once more after five seconds.
  void Start(Client* client);
  // Removes the client. Returns false if it did not wait. Waits for the end of
  // Try(), so the caller must not hold a lock that the client takes.
  // REQUIRES: the client does not call this in Try().
  bool Cancel(Client* client);
  // Ends the thread. No client is tried afterwards.
  void Close();

 private:
  struct Entry {
    Client* client;
    // When the client is to be tried.
    uint64_t due_micros = 0;
    // Start() was called since the client was tried last.
    bool is_started = true;
  };

  void Run();
  // Tries the client of the entry with the mutex released.
  void TryOne(std::list<Entry>::iterator entry);
  std::list<Entry>::iterator Find(const Client* client);

  SystemClock* const clock_;
  port::Mutex mutex_;
  // The members below are guarded by mutex_.
  port::CondVar changed_{&mutex_};
  std::list<Entry> waiting_;
  // The client that is being tried; nullptr if there is none.
  const Client* tried_ = nullptr;
  bool is_closed_ = false;
  // Made by the first Start().
  std::unique_ptr<port::Thread> thread_;
};

}  // namespace ROCKSDB_NAMESPACE
