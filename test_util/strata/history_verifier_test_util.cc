//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_verifier_test_util.h"

#include <memory>
#include <set>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/address_map_verifier.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_verifier_test_util.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/history_text_test_util.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

void HistoryVerifier::CheckRecovered(bool is_crash) {
  CheckRecoveredTransactions(is_crash);
  HistoryModel::AllContents found;
  Status s = db_.ReadAllFamilies(&found);
  if (!s.ok() && findings_.allows_errors()) {
    // One operation may have failed. The model must be set nevertheless.
    found.clear();
    s = db_.ReadAllFamilies(&found);
  }
  if (!s.ok()) {
    findings_.Fail("reading after recovery: " + s.ToString());
    return;
  }
  const bool is_recovered = db_.model().Recover(
      found, is_crash || db_.is_after_crash(),
      /*is_flushed=*/!db_.db()->GetDBOptions().avoid_flush_during_recovery);
  db_.SetRecovered();
  if (!is_recovered) {
    std::string what =
        "the contents after recovery are no prefix of what was "
        "written:\n";
    for (const auto& family : found) {
      what.append("[").append(family.first).append("]\n");
      what.append(HistoryText::ShowContents(family.second));
    }
    what.append("written:\n");
    for (const auto& family : db_.families()) {
      what.append("[").append(family.first).append("]\n");
      what.append(HistoryText::ShowContents(db_.model().Now(family.first)));
    }
    findings_.Disagree(what);
  }
}

// A prepared transaction survives, unless a crash came before it was synced.
void HistoryVerifier::CheckRecoveredTransactions(bool is_crash) {
  auto& transactions = db_.transactions();
  for (auto it = transactions.begin(); it != transactions.end();) {
    HistoryTransaction& transaction = *it->second;
    if (transaction.transaction() != nullptr) {
      // Opening a DB makes durable what it has found.
      transaction.SetPrepared(0);
      ++it;
      continue;
    }
    if (!is_crash || transaction.prepared_at() < db_.model().NumDurable()) {
      findings_.Disagree("the prepared transaction " + it->first + " is lost");
    }
    it = transactions.erase(it);
  }
}

void HistoryVerifier::VerifyAll() {
  for (const auto& family : db_.families()) {
    const std::string& cf = family.first;
    VerifyView(cf, {nullptr, db_.model().Position()}, "[" + cf + "]");
    for (const auto& snapshot : db_.snapshots()) {
      VerifyView(cf, snapshot.second, "[" + cf + "] @" + snapshot.first);
    }
  }
  if (findings_.allows_errors()) {
    // The checks below read files of their own, past the caches of the DB.
    return;
  }
  const Status s = db_.db()->VerifyChecksum();
  if (!s.ok()) {
    findings_.Disagree("VerifyChecksum: " + s.ToString());
  }
  db_.WaitForCleanup();
  VerifyMaps();
  VerifyDeltas();
}

void HistoryVerifier::VerifyValuesWereWritten() {
  for (const auto& family : db_.families()) {
    HistoryModel::Contents found;
    const Status s = db_.ReadAll(family.first, ReadOptions(), &found);
    if (!s.ok()) {
      findings_.Fail("[" + family.first + "] scan: " + s.ToString());
    }
    for (const auto& [key, columns] : found) {
      if (!db_.model().CouldHave(family.first, key, columns)) {
        findings_.Disagree("[" + family.first + "] " + key +
                           " never had the value " +
                           HistoryText::ShowColumns(columns));
      }
    }
  }
}

void HistoryVerifier::VerifyView(const std::string& cf,
                                 const HistoryDb::View& view,
                                 const std::string& name) {
  Subject subject;
  subject.cf = cf;
  subject.handle = db_.families().at(cf).handle;
  subject.read_options.snapshot = view.snapshot;
  subject.position = view.position;
  subject.expected = db_.model().At(cf, view.position);
  db_.model().RemoveBlurred(cf, view.position, &subject.expected);
  subject.what = "verify " + name + ": ";
  VerifyScan(subject);
  VerifyReverseScan(subject);
  VerifyKeys(subject);
}

void HistoryVerifier::VerifyScan(const Subject& subject) {
  HistoryModel::Contents found;
  const Status s = db_.ReadAll(subject.cf, subject.read_options, &found);
  CheckContents(subject, "scan", s, &found);
}

void HistoryVerifier::VerifyReverseScan(const Subject& subject) {
  HistoryModel::Contents found;
  std::unique_ptr<Iterator> it(
      db_.db()->NewIterator(subject.read_options, subject.handle));
  for (it->SeekToLast(); it->Valid(); it->Prev()) {
    found[it->key().ToString()] = HistoryModel::FromWideColumns(it->columns());
  }
  CheckContents(subject, "reverse scan", it->status(), &found);
}

void HistoryVerifier::CheckContents(const Subject& subject,
                                    const std::string& read, const Status& s,
                                    HistoryModel::Contents* found) {
  db_.model().RemoveBlurred(subject.cf, subject.position, found);
  if (!s.ok() && findings_.allows_errors()) {
    findings_.Fail(subject.what + s.ToString() + ", " + read);
    CheckFirstContents(subject, read, *found);
    return;
  }
  if (!s.ok() || *found != subject.expected) {
    findings_.Disagree(subject.what + s.ToString() + ", " + read + " found:\n" +
                       HistoryText::ShowContents(*found) + "must be:\n" +
                       HistoryText::ShowContents(subject.expected));
  }
}

void HistoryVerifier::CheckFirstContents(const Subject& subject,
                                         const std::string& read,
                                         const HistoryModel::Contents& found) {
  for (const auto& [key, columns] : found) {
    const auto entry = subject.expected.find(key);
    if (entry == subject.expected.end() || entry->second != columns) {
      findings_.Disagree(subject.what + read + " found " + key + "=" +
                         HistoryText::ShowColumns(columns));
    }
  }
}

void HistoryVerifier::VerifyKeys(const Subject& subject) {
  const std::set<std::string> keys = db_.model().Keys(subject.cf);
  const std::vector<Slice> slices(keys.begin(), keys.end());
  std::vector<PinnableSlice> values(slices.size());
  std::vector<Status> statuses(slices.size());
  if (!slices.empty()) {
    db_.db()->MultiGet(subject.read_options, subject.handle, slices.size(),
                       slices.data(), values.data(), statuses.data());
  }
  for (size_t i = 0; i < slices.size(); ++i) {
    const std::string key = slices[i].ToString();
    const Status& many = statuses[i];
    if (db_.model().IsBlurred(subject.cf, key, subject.position)) {
      many.PermitUncheckedError();
      continue;
    }
    std::string value;
    const Status one =
        db_.db()->Get(subject.read_options, subject.handle, key, &value);
    CheckValue(subject, key, "get " + key, one, value);
    CheckValue(subject, key, "multiget " + key, many, values[i].ToString());
    VerifyEntity(subject, key);
    VerifyMergeOperands(subject, key);
  }
}

void HistoryVerifier::CheckValue(const Subject& subject, const std::string& key,
                                 const std::string& read, const Status& s,
                                 const std::string& value) {
  if (!s.ok() && !s.IsNotFound()) {
    findings_.Fail(subject.what + read + ": " + s.ToString());
    return;
  }
  const auto entry = subject.expected.find(key);
  const bool is_right =
      entry == subject.expected.end()
          ? s.IsNotFound()
          : s.ok() && value == HistoryModel::DefaultColumn(entry->second);
  if (!is_right) {
    findings_.Disagree(subject.what + read + ": " + s.ToString() + " " +
                       HistoryText::ShowValue(value));
  }
}

void HistoryVerifier::VerifyEntity(const Subject& subject,
                                   const std::string& key) {
  PinnableWideColumns entity;
  const Status s =
      db_.db()->GetEntity(subject.read_options, subject.handle, key, &entity);
  if (!s.ok() && !s.IsNotFound()) {
    findings_.Fail(subject.what + "getentity " + key + ": " + s.ToString());
    return;
  }
  const HistoryModel::Columns columns =
      HistoryModel::FromWideColumns(entity.columns());
  const auto entry = subject.expected.find(key);
  const bool is_right = entry == subject.expected.end()
                            ? s.IsNotFound()
                            : s.ok() && columns == entry->second;
  if (!is_right) {
    findings_.Disagree(subject.what + "getentity " + key + ": " + s.ToString() +
                       " " + HistoryText::ShowColumns(columns));
  }
}

// The operands together are the value, regardless of which of them were merged
// already.
void HistoryVerifier::VerifyMergeOperands(const Subject& subject,
                                          const std::string& key) {
  GetMergeOperandsOptions options;
  options.expected_max_number_of_operands = kMaxOperands;
  int num_operands = 0;
  const Status s =
      db_.db()->GetMergeOperands(subject.read_options, subject.handle, key,
                                 operands_.data(), &options, &num_operands);
  std::vector<std::string> operands;
  for (int i = 0; s.ok() && i < num_operands; ++i) {
    operands.push_back(operands_[i].ToString());
    operands_[i].Reset();
  }
  CheckValue(subject, key, "merge operands of " + key, s,
             operands.empty() ? "" : db_.model().Merged(subject.cf, operands));
}

void HistoryVerifier::VerifyDeltas() {
  for (const auto& [name, family] : db_.families()) {
    for (const std::string& error : DeltaErrors(db_.db(), family.handle)) {
      findings_.Disagree("[" + name + "] delta files: " + error);
    }
  }
}

void HistoryVerifier::VerifyMaps() {
  DBImpl* const impl = static_cast_with_check<DBImpl>(db_.db()->GetRootDB());
  for (const auto& family : db_.families()) {
    const std::string what = "[" + family.first + "] address map: ";
    ColumnFamilyData* const cfd =
        static_cast_with_check<ColumnFamilyHandleImpl>(family.second.handle)
            ->cfd();
    if (cfd->address_map_store() == nullptr) {
      continue;
    }
    Status s = cfd->address_map_store()->map()->TEST_Check();
    if (!s.ok()) {
      findings_.Disagree(what + s.ToString());
    }
    SuperVersion* const sv = cfd->GetReferencedSuperVersion(impl);
    AddressMapVerifier::Result result;
    s = AddressMapVerifier::Verify(
        cfd, sv->current, AddressMapVerifier::Options(),
        [&](const std::string& line) { findings_.Disagree(line); }, &result);
    impl->CleanupSuperVersion(sv);
    if (!s.ok()) {
      findings_.Disagree(what + s.ToString());
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
