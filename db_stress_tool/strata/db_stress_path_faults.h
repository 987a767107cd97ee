//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#ifdef GFLAGS

#include "rocksdb/env.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The flag --path_fault_ms of db_stress: from time to time the device of one of
// --cf_paths becomes read-only, and comes back. The errors say that they were
// injected, so db_stress expects them wherever it expects injected errors. The
// directory of the DB, with WAL and MANIFEST, does not fail.
//
// Invariant: no device fails before Begin() and after End(): the DB is opened
// and verified without faults.
class StressPathFaults {
 public:
  StressPathFaults() = delete;

  // Returns the env to use, which is never deleted. Ends the process with a
  // message if the flag does not go with others.
  // REQUIRES: called once, before Begin(); the env outlives the process's
  // threads.
  static Env* ApplyFlag(Env* env);

  // Returns true if devices fail in this run.
  static bool AreOn();

  // Lets devices fail in the background until End(). Nothing happens if the
  // flag is not set.
  static void Begin();
  // REQUIRES: Begin() was called; no other thread calls one of the two
  static void End();
};

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
