//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "test_util/strata/history_db_test_util.h"
#include "test_util/strata/history_findings_test_util.h"
#include "test_util/strata/history_model_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Compares all contents of the DB of a history with its model, by all kinds of
// reads, and checks that checksums, delta files and address maps are sound. If
// the findings allow errors, a read may fail, and only the reads are checked.
//
// Not thread-safe.
class HistoryVerifier {
 public:
  // REQUIRES: *db and *findings outlive this
  HistoryVerifier(HistoryDb* db, HistoryFindings* findings)
      : db_(*db), findings_(*findings), operands_(kMaxOperands) {}

  // Checks the contents after the DB was opened, and sets the model to them. If
  // the model has not been set since an earlier crash, is_crash does not
  // matter. REQUIRES: the DB is open
  void CheckRecovered(bool is_crash);

  // Checks everything, also at the snapshots that steps have taken.
  // REQUIRES: the DB is open
  void VerifyAll();

  // Checks only that each value consists of things that were written to its
  // key. This is all that can be said of a DB that has lost what it had synced.
  // REQUIRES: the DB is open
  void VerifyValuesWereWritten();

 private:
  // A key has fewer merge operands.
  static constexpr int kMaxOperands = 1000;

  // A family at a snapshot, or at this moment.
  struct Subject {
    std::string cf;
    ColumnFamilyHandle* handle = nullptr;
    ReadOptions read_options;
    size_t position = 0;
    // The model's contents, without blurred keys.
    HistoryModel::Contents expected;
    // Stands ahead of what is found.
    std::string what;
  };

  void CheckRecoveredTransactions(bool is_crash);
  void VerifyView(const std::string& cf, const HistoryDb::View& view,
                  const std::string& name);
  void VerifyScan(const Subject& subject);
  void VerifyReverseScan(const Subject& subject);
  // Reads all keys that ever existed, so that absence is checked, too.
  void VerifyKeys(const Subject& subject);
  void VerifyEntity(const Subject& subject, const std::string& key);
  void VerifyMergeOperands(const Subject& subject, const std::string& key);
  // Compares a plain value, or its absence, with the expected contents.
  void CheckValue(const Subject& subject, const std::string& key,
                  const std::string& read, const Status& s,
                  const std::string& value);
  // Compares the contents that were read, and removes blurred keys from them.
  void CheckContents(const Subject& subject, const std::string& read,
                     const Status& s, HistoryModel::Contents* found);
  // Checks what a scan has found before it failed.
  void CheckFirstContents(const Subject& subject, const std::string& read,
                          const HistoryModel::Contents& found);
  void VerifyMaps();
  void VerifyDeltas();

  HistoryDb& db_;
  HistoryFindings& findings_;
  // A buffer, which is empty between two reads.
  std::vector<PinnableSlice> operands_;
};

}  // namespace ROCKSDB_NAMESPACE
