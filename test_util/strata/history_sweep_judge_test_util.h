//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/history_db_test_util.h"
#include "test_util/strata/history_findings_test_util.h"
#include "test_util/strata/history_flips_test_util.h"
#include "test_util/strata/history_sweep_kind_test_util.h"
#include "test_util/strata/history_verifier_test_util.h"

namespace ROCKSDB_NAMESPACE {

// How a DB came out of a fault, the easiest way first.
enum class HistorySweepOutcome {
  kNotReached,  // there was no fault, since there were fewer operations
  kWentOn,      // the DB takes writes, and all answers are right
  kResumed,     // the same, after a call of Resume()
  kReopened,    // the same, after it was opened again
  kRefused,     // the DB does not open, and says which file is to blame
};

// Judges what a DB does after a fault by the promise alone: each read is an
// error or the right answer by the model; when the fault has ended, the DB goes
// on, or does after Resume() or a reopen, or its open names what is lost; after
// a crash the contents are a prefix of the writes that holds all durable ones;
// no file is left that the DB does not know. All else is a finding.
//
// Not thread-safe.
class HistorySweepJudge {
 public:
  // REQUIRES: *db and *findings outlive this
  HistorySweepJudge(HistoryDb* db, HistoryFindings* findings)
      : db_(*db), findings_(*findings), verifier_(db, findings) {}

  // Judges after a fault of one operation, which has ended.
  // ends_openable: the DB, if it is closed, can be opened.
  HistorySweepOutcome JudgeAfterError(bool ends_openable);

  // Makes the DB crash, and judges.
  // is_destroying: the DB was being destroyed.
  // may_be_invalid: the options may be such that the DB does not open.
  HistorySweepOutcome JudgeAfterCrash(const HistorySweepKind& kind,
                                      bool is_destroying, bool may_be_invalid);

  // Judges after the byte was changed.
  // REQUIRES: the DB is closed
  HistorySweepOutcome JudgeAfterFlip(const HistoryFlip& flip);

  // Judges an open that has failed.
  // may_refuse: a refusal is right if it names a file.
  HistorySweepOutcome JudgeRefusal(const Status& s, bool may_refuse);

  // Returns true if the text names a file of a DB, or a path that has lost its
  // files, with its directory (MissingPathCheck).
  static bool NamesFile(const std::string& text);

 private:
  // Reads everything, and writes and flushes something. Returns true if there
  // was no error.
  bool Works();
  Status WriteAndFlush();
  // Reopens the DB and checks everything, without a fault.
  void CheckReopen();
  // Checks everything in the open DB, without a fault.
  void CheckAll();
  // Values that are written to blob files directly are in no file that the
  // MANIFEST names before the flush. RocksDB cannot replay a WAL that refers to
  // them.
  bool MayRefuseWal() const;

  HistoryDb& db_;
  HistoryFindings& findings_;
  HistoryVerifier verifier_;
  int num_writes_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
