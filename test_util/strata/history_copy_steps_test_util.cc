//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_copy_steps_test_util.h"

#include <memory>
#include <string>

#include "file/file_util.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test_util/strata/history_text_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns true if the copy was made. An error is a contradiction.
bool IsMade(HistoryCall& c, const Status& s) {
  if (!c.Report(s)) {
    c.findings().Fail(std::string(c.step().name) + ": " + s.ToString());
  }
  return s.ok();
}

// Compares a copy with what the DB contains at this moment.
void CheckCopy(HistoryCall& c, const std::string& path) {
  HistoryModel::AllContents found;
  const Status s = c.state().ReadCopy(path, &found);
  if (!c.Report(s)) {
    c.findings().Fail("the copy: " + s.ToString());
    return;
  }
  for (const auto& [cf, contents] : found) {
    const HistoryModel::Contents expected = c.model().Now(cf);
    if (contents != expected) {
      c.Disagree("the copy has, in family " + cf + ":\n" +
                 HistoryText::ShowContents(contents) + "it must have:\n" +
                 HistoryText::ShowContents(expected));
    }
  }
}

void RemoveDirectory(HistoryCall& c, const std::string& path) {
  const Status s = DestroyDir(c.db()->GetEnv(), path);
  if (!s.ok()) {
    c.findings().Fail("removing the copy: " + s.ToString());
  }
}

// Removes what a copy that failed may have left.
void RemoveLeftovers(HistoryCall& c, const std::string& path) {
  DestroyDir(c.db()->GetEnv(), path).PermitUncheckedError();
}

void MakeCheckpoint(HistoryCall& c) {
  if (!c.args().empty()) {
    c.Usage();
    return;
  }
  const std::string path = c.state().root() + "/checkpoint";
  RemoveLeftovers(c, path);
  Checkpoint* made = nullptr;
  Status s = Checkpoint::Create(c.db(), &made);
  const std::unique_ptr<Checkpoint> checkpoint(made);
  if (s.ok()) {
    s = checkpoint->CreateCheckpoint(path);
    c.state().ForgetRenamedDirectory(path + ".tmp");
  }
  if (IsMade(c, s)) {
    CheckCopy(c, path);
    RemoveDirectory(c, path);
  }
}

// Backups are incremental: those of the same history share their files.
void Backup(HistoryCall& c) {
  const bool flush = HistoryArguments::TakeWord(&c.args(), "flush");
  if (!c.args().empty()) {
    c.Usage();
    return;
  }
  BackupEngine* opened = nullptr;
  Status s =
      BackupEngine::Open(BackupEngineOptions(c.state().root() + "/backup"),
                         c.db()->GetEnv(), &opened);
  const std::unique_ptr<BackupEngine> engine(opened);
  if (s.ok()) {
    s = engine->CreateNewBackup(c.db(), flush);
  }
  if (!IsMade(c, s)) {
    return;
  }
  const std::string path = c.state().root() + "/restored";
  RemoveLeftovers(c, path);
  s = engine->RestoreDBFromLatestBackup(path, path);
  if (!c.Report(s)) {
    c.findings().Fail("restoring the backup: " + s.ToString());
    return;
  }
  CheckCopy(c, path);
  RemoveDirectory(c, path);
}

}  // namespace

const std::vector<HistoryStep>& HistoryCopySteps() {
  static const std::vector<HistoryStep> kSteps = {
      {"checkpoint", MakeCheckpoint, false, true, "checkpoint"},
      {"backup", Backup, false, true, "backup [flush]"},
  };
  return kSteps;
}

}  // namespace ROCKSDB_NAMESPACE
