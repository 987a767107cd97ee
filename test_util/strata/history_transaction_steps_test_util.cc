//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_transaction_steps_test_util.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "rocksdb/wide_columns.h"
#include "test_util/strata/history_db_kind_test_util.h"
#include "test_util/strata/history_text_test_util.h"
#include "test_util/strata/history_transaction_test_util.h"
#include "test_util/strata/history_write_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using OpKind = HistoryModel::OpKind;

// One call of the step "txn": the transaction, and the words behind its name.
struct TransactionCall {
  HistoryCall& c;
  const std::string name;
  const HistoryWords words;
  // nullptr if there is none of that name.
  HistoryTransaction* const found;
};

void Begin(TransactionCall& t) {
  HistoryWords words = t.words;
  const bool set_snapshot = HistoryArguments::TakeWord(&words, "snapshot");
  if (t.found != nullptr || words.size() != 1) {
    t.c.Usage();
    return;
  }
  HistoryDb& state = t.c.state();
  std::unique_ptr<Transaction> transaction =
      HistoryDbKind::Begin(state.kind(), t.c.db(), set_snapshot);
  if (transaction == nullptr) {
    t.c.Mistake("this kind of DB has no transactions");
    return;
  }
  // A prepared transaction is found again by its name.
  if (state.kind() == HistoryDbKind::kOptimistic ||
      t.c.Report(transaction->SetName(t.name))) {
    state.transactions()[t.name] = std::make_unique<HistoryTransaction>(
        std::move(transaction),
        set_snapshot ? t.c.model().Position() : HistoryTransaction::kNewest);
  }
}

Status WriteTo(const HistoryWrite& write, ColumnFamilyHandle* handle,
               Transaction* transaction) {
  const HistoryModel::Op& op = write.op;
  switch (op.kind) {
    case OpKind::kPut:
      return write.is_entity
                 ? transaction->PutEntity(
                       handle, op.key, HistoryWrite::ToWideColumns(op.columns))
                 : transaction->Put(handle, op.key, op.columns.at(""));
    case OpKind::kMerge:
      return transaction->Merge(handle, op.key, op.columns.at(""));
    case OpKind::kDelete:
      return write.is_single_delete ? transaction->SingleDelete(handle, op.key)
                                    : transaction->Delete(handle, op.key);
    case OpKind::kDeleteRange:
      break;
  }
  return Status::NotSupported("a transaction has no range deletions");
}

// Notes that the result of a call that checks for conflicts is undecided, if it
// is.
void NoteCheck(TransactionCall& t, const std::string& cf,
               const std::string& key, const Status& s) {
  const HistoryModel& model = t.c.model();
  // An optimistic transaction has failed because the memtables do not reach
  // back to its snapshot. How far they reach depends on the options.
  if (s.IsTryAgain() ||
      // A deletion after the snapshot is a conflict, but RocksDB's compaction
      // to the bottommost level drops it if it hides nothing from a snapshot.
      (t.found->has_snapshot() &&
       model.IsWrittenSince(t.found->Position(model), cf, key, key) &&
       model.At(cf, t.found->Position(model)).count(key) == 0 &&
       model.Now(cf).count(key) == 0)) {
    t.c.SetUndecided();
  }
}

void Write(TransactionCall& t) {
  HistoryWrite write;
  if (!HistoryWrite::Parse(t.c, t.words, &write)) {
    t.c.Usage();
    return;
  }
  ColumnFamilyHandle* const handle =
      t.c.state().families().at(write.op.cf).handle;
  const Status s = WriteTo(write, handle, t.found->transaction());
  NoteCheck(t, write.op.cf, write.op.key, s);
  if (t.c.Report(s)) {
    t.found->Add(std::move(write.op));
  }
}

// Compares an answer that is no error with what the transaction must see.
void Check(TransactionCall& t, const std::string& key, bool is_found,
           const HistoryModel::Columns& columns, bool default_column_only) {
  const HistoryModel::Contents contents =
      t.found->Contents(t.c.model(), t.c.cf());
  const auto it = contents.find(key);
  HistoryModel::Columns expected;
  if (it != contents.end()) {
    expected = it->second;
    if (default_column_only) {
      expected = {{"", HistoryModel::DefaultColumn(it->second)}};
    }
  }
  const bool is_right =
      it == contents.end() ? !is_found : is_found && columns == expected;
  const HistoryModel& model = t.c.model();
  if (!is_right && !model.IsBlurred(t.c.cf(), key, t.found->Position(model))) {
    t.c.Disagree("txn " + t.name + ", " + key + ": " + t.c.out() + "must be: " +
                 (it == contents.end() ? "(not found)"
                                       : HistoryText::ShowColumns(expected)));
  }
}

void Print(TransactionCall& t, const Status& s, const std::string& key,
           const HistoryModel::Columns& columns, bool default_column_only) {
  if (s.IsNotFound()) {
    t.c.out().append("(not found)\n");
  } else if (t.c.Report(s)) {
    t.c.out().append(HistoryText::ShowColumns(columns)).append("\n");
  } else {
    return;
  }
  Check(t, key, s.ok(), columns, default_column_only);
}

// The transaction's snapshot, if it has one.
ReadOptions OptionsOf(const TransactionCall& t) {
  ReadOptions options;
  options.snapshot = t.found->transaction()->GetSnapshot();
  return options;
}

void Get(TransactionCall& t) {
  if (t.words.size() != 2) {
    t.c.Usage();
    return;
  }
  const std::string& key = t.words[1];
  std::string value;
  Status s;
  if (t.words[0] == "getforupdate") {
    s = t.found->transaction()->GetForUpdate(OptionsOf(t), t.c.handle(), key,
                                             &value);
    NoteCheck(t, t.c.cf(), key, s);
  } else {
    s = t.found->transaction()->Get(OptionsOf(t), t.c.handle(), key, &value);
  }
  Print(t, s, key, {{"", value}}, /*default_column_only=*/true);
}

void GetEntity(TransactionCall& t) {
  if (t.words.size() != 2) {
    t.c.Usage();
    return;
  }
  PinnableWideColumns entity;
  const Status s = t.found->transaction()->GetEntity(OptionsOf(t), t.c.handle(),
                                                     t.words[1], &entity);
  Print(t, s, t.words[1], HistoryModel::FromWideColumns(entity.columns()),
        /*default_column_only=*/false);
}

void Scan(TransactionCall& t) {
  if (t.words.size() != 1) {
    t.c.Usage();
    return;
  }
  std::unique_ptr<Iterator> it(
      t.found->transaction()->GetIterator(OptionsOf(t), t.c.handle()));
  HistoryModel::Contents found;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    found[it->key().ToString()] = HistoryModel::FromWideColumns(it->columns());
  }
  if (!t.c.Report(it->status())) {
    return;
  }
  const std::string shown = HistoryText::ShowContents(found);
  t.c.out().append(shown.empty() ? "(empty)\n" : shown);
  const HistoryModel& model = t.c.model();
  HistoryModel::Contents expected = t.found->Contents(model, t.c.cf());
  model.RemoveBlurred(t.c.cf(), t.found->Position(model), &expected);
  model.RemoveBlurred(t.c.cf(), t.found->Position(model), &found);
  if (found != expected) {
    t.c.Disagree("txn " + t.name + ": scan must be:\n" +
                 HistoryText::ShowContents(expected));
  }
}

void SetSavePoint(TransactionCall& t) {
  t.found->transaction()->SetSavePoint();
  t.found->SetSavePoint();
}

void RollbackToSavePoint(TransactionCall& t) {
  if (!t.found->has_save_point()) {
    t.c.Usage();
  } else if (t.c.Report(t.found->transaction()->RollbackToSavePoint())) {
    t.found->RollbackToSavePoint();
  }
}

void Prepare(TransactionCall& t) {
  if (t.c.Report(t.found->transaction()->Prepare())) {
    t.found->SetPrepared(t.c.model().Position());
  }
}

// A transaction whose commit fails, because of a conflict, is rolled back.
void Commit(TransactionCall& t) {
  Transaction* const transaction = t.found->transaction();
  const Status s = transaction->Commit();
  if (s.IsTryAgain()) {
    t.c.SetUndecided();
  }
  if (t.c.Report(s)) {
    HistoryModel::Write write;
    write.ops = t.found->ops();
    t.c.model().Append(std::move(write));
  } else if (!t.c.Report(transaction->Rollback())) {
    return;
  }
  t.c.state().transactions().erase(t.name);
}

void Rollback(TransactionCall& t) {
  if (t.c.Report(t.found->transaction()->Rollback())) {
    t.c.state().transactions().erase(t.name);
  }
}

void RunTransaction(HistoryCall& c) {
  static const std::map<std::string, void (*)(TransactionCall&)> kActions = {
      {"begin", Begin},
      {"put", Write},
      {"merge", Write},
      {"del", Write},
      {"singledel", Write},
      {"entity", Write},
      {"get", Get},
      {"getforupdate", Get},
      {"getentity", GetEntity},
      {"scan", Scan},
      {"savepoint", SetSavePoint},
      {"rollbacktosavepoint", RollbackToSavePoint},
      {"prepare", Prepare},
      {"commit", Commit},
      {"rollback", Rollback},
  };
  if (c.args().size() < 2) {
    c.Usage();
    return;
  }
  const auto& transactions = c.state().transactions();
  const auto found = transactions.find(c.args()[0]);
  const auto action = kActions.find(c.args()[1]);
  if (action == kActions.end()) {
    c.Usage();
    return;
  }
  if (found == transactions.end() && action->first != "begin") {
    c.Mistake("no transaction \"" + c.args()[0] + "\"");
    return;
  }
  TransactionCall call = {
      c, c.args()[0], HistoryWords(c.args().begin() + 1, c.args().end()),
      found == transactions.end() ? nullptr : found->second.get()};
  action->second(call);
}

}  // namespace

const std::vector<HistoryStep>& HistoryTransactionSteps() {
  static const std::vector<HistoryStep> kSteps = {
      {"txn", RunTransaction, false, true,
       "txn NAME begin [snapshot]|WRITE|get KEY|getforupdate KEY|"
       "getentity KEY|scan|savepoint|rollbacktosavepoint|prepare|commit|"
       "rollback"},
  };
  return kSteps;
}

}  // namespace ROCKSDB_NAMESPACE
