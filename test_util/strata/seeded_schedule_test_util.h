//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Chooses the thread that takes the next step.
//
// Invariant: the choices are a function of the options and of the calls, in
// their order. They do not depend on addresses, on time, or on the machine.
//
// Policies:
// * kUniform: a thread goes on, or, one in `switch_one_in` times, all runnable
//   threads have the same chance.
// * kPriorities: probabilistic concurrency testing (S. Burckhardt, P. Kothari,
//   M. Musuvathi, S. Nagarakatte: "A randomized scheduler with probabilistic
//   guarantees of finding bugs", ASPLOS 2010). Threads have random priorities,
//   and the runnable thread with the highest one runs. At random steps, the
//   change points, the running thread gets a priority below all others. A bug
//   that needs d orderings of steps is found with a probability of at least
//   1 / (n * k^(d-1)) by d - 1 change points, with n threads and k steps.
//   Unlike in the paper, a thread that yields goes behind all others, and one
//   that was runnable for `max_wait` steps of others goes ahead of them,
//   because loops of threads that wait for another one would not end otherwise.
//
// Not thread-safe.
class SeededSchedule {
 public:
  enum class Policy { kUniform, kPriorities };

  struct Options {
    uint64_t seed = 0;
    Policy policy = Policy::kUniform;
    // kUniform.
    // REQUIRES: > 0
    uint64_t switch_one_in = 4;
    // kPriorities: the number of change points, and the number of steps among
    // which they are chosen.
    // REQUIRES: expected_steps > 0
    size_t change_points = 3;
    uint64_t expected_steps = 50000;
    // kPriorities. It is more than what a thread does between two waits.
    uint64_t max_wait = 10000;
  };

  explicit SeededSchedule(const Options& options);

  // Returns a random number below n, which is one of the choices of the seed.
  // REQUIRES: n > 0
  uint64_t Below(uint64_t n) { return engine_() % n; }

  // Adds a thread. Threads have numbers in the order of these calls, from 0.
  void AddThread();

  // The thread waits for a step of another one. It does not take the next step
  // if another thread can.
  void Yield(size_t thread);

  // Returns one of the runnable threads.
  // running: the thread that took the last step, runnable or not.
  // REQUIRES: !runnable.empty(), and these are numbers of threads, ascending
  size_t Next(const std::vector<size_t>& runnable, size_t running);

 private:
  size_t NextUniform(const std::vector<size_t>& runnable, size_t running);
  size_t NextByPriority(const std::vector<size_t>& runnable, size_t running);
  void Demote(size_t thread) { priorities_[thread] = --lowest_; }
  void Promote(size_t thread) { priorities_[thread] = ++highest_; }

  const Options options_;
  std::mt19937_64 engine_;
  uint64_t steps_ = 0;
  bool yields_ = false;  // the running thread yields

  // The priorities of threads, with kPriorities. A higher number is a higher
  // priority. Initial ones are between lowest_ and highest_.
  std::vector<int64_t> priorities_;
  int64_t lowest_ = 0;
  int64_t highest_ = int64_t{1} << 62;
  std::multiset<uint64_t> change_points_;  // numbers of steps
  // The numbers of steps in a row for which the threads were runnable and did
  // not run.
  std::vector<uint64_t> waits_;
};

}  // namespace ROCKSDB_NAMESPACE
