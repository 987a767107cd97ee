//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_copy_steps_test_util.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "file/file_util.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/copy_layout.h"
#include "test_util/strata/history_copy_check_test_util.h"
#include "test_util/strata/history_text_test_util.h"
#include "util/strata/path_list.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns true if the copy was made. An error is a contradiction.
bool IsMade(HistoryCall& c, const Status& s) {
  if (!c.Report(s)) {
    c.findings().Fail(std::string(c.step().name) + ": " + s.ToString());
  }
  return s.ok();
}

// A copy that a step makes.
struct Copy {
  // A directory that contains all of the copy and nothing else.
  std::string root;
  std::string directory;
  // nullptr: all files are in `directory`.
  std::shared_ptr<const CopyLayout> layout;
  // The directories of the layout, without duplicates.
  std::vector<std::string> directories;
  bool shows_files = false;
};

// Makes the layout of the copy from the words, which are those of "open" for
// layouts, and "path_map=...". Returns false and records a mistake if they are
// wrong.
bool TakeLayout(HistoryCall& c, HistoryWords words, Copy* copy) {
  static const std::set<std::string> kNames = {"paths", "level_sst_path_ids",
                                               "level_blob_path_ids",
                                               "delta_sorted_path_id"};
  CopyLayout::ColumnFamily family;
  std::string path_map;
  if (HistoryArguments::TakeNamed(&words, "path_map", &path_map)) {
    const Status parsed = ParsePathIds(path_map, &family.path_map);
    if (!parsed.ok()) {
      c.Mistake("path_map: " + parsed.ToString());
      return false;
    }
  }
  HistoryOptionList list;
  if (!c.TakeOptions(words, &list)) {
    return false;
  }
  for (const auto& option : list) {
    if (kNames.count(option.first) == 0) {
      c.Usage();
      return false;
    }
  }
  Options options;
  std::vector<std::string> paths;
  const Status s = HistoryOptions::Make(list, /*overrides=*/nullptr, copy->root,
                                        c.state().env(), &options, &paths);
  if (!s.ok()) {
    c.Mistake(s.ToString());
    return false;
  }
  family.cf_paths = options.cf_paths;
  family.level_sst_path_ids = options.level_sst_path_ids;
  family.level_blob_path_ids = options.level_blob_path_ids;
  family.delta_sorted_path_id = options.delta_sorted_path_id;
  auto layout = std::make_shared<CopyLayout>();
  if (c.cf() == kDefaultColumnFamilyName) {
    layout->all = std::move(family);
  } else {
    layout->column_families[c.cf()] = std::move(family);
  }
  copy->layout = std::move(layout);
  copy->directory = copy->root + "/db";
  copy->directories = {copy->directory};
  for (const std::string& path : paths) {
    if (path != copy->directory) {
      copy->directories.push_back(path);
    }
  }
  return true;
}

// Takes the arguments of a copy below this directory. Returns false and records
// a mistake if they are wrong.
bool TakeCopy(HistoryCall& c, const std::string& root, Copy* copy) {
  copy->root = root;
  copy->directory = root;
  copy->shows_files = HistoryArguments::TakeWord(&c.args(), "files");
  if (copy->shows_files) {
    c.SetStructural();
  }
  if (c.args().empty()) {
    copy->directories = {root};
    return true;
  }
  return TakeLayout(c, c.args(), copy);
}

// Compares a copy with what the DB contains at this moment.
void CheckCopy(HistoryCall& c, const Copy& copy) {
  HistoryModel::AllContents found;
  Status s;
  if (copy.shows_files) {
    s = HistoryCopyCheck::ShowFiles(c.state().env(), c.state().root(),
                                    copy.directories, &c.out());
  }
  if (s.ok()) {
    s = c.state().ReadCopy(copy.directory, copy.layout.get(), &found);
  }
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

// Removes what a copy that failed may have left, and creates the directory that
// contains those of a layout.
Status Prepare(HistoryCall& c, const Copy& copy) {
  DestroyDir(c.db()->GetEnv(), copy.root).PermitUncheckedError();
  return copy.layout == nullptr ? Status::OK()
                                : c.db()->GetEnv()->CreateDir(copy.root);
}

Status CreateCheckpoint(HistoryCall& c, const Copy& copy) {
  if (copy.layout == nullptr) {
    Checkpoint* made = nullptr;
    Status s = Checkpoint::Create(c.db(), &made);
    const std::unique_ptr<Checkpoint> checkpoint(made);
    return s.ok() ? checkpoint->CreateCheckpoint(copy.directory) : s;
  }
  std::unique_ptr<CheckpointEngine> engine;
  Status s = CheckpointEngine::Open(CheckpointEngineOptions(), &engine);
  CreateCheckpointOptions options;
  options.layout = copy.layout;
  return s.ok() ? Status(engine->CreateCheckpoint(c.db(), copy.directory,
                                                  nullptr, options))
                : s;
}

void MakeCheckpoint(HistoryCall& c) {
  Copy copy;
  if (!TakeCopy(c, c.state().root() + "/checkpoint", &copy)) {
    return;
  }
  Status s = Prepare(c, copy);
  if (s.ok()) {
    s = CreateCheckpoint(c, copy);
    for (const std::string& directory : copy.directories) {
      c.state().ForgetRenamedDirectory(directory + ".tmp");
    }
  }
  if (IsMade(c, s)) {
    CheckCopy(c, copy);
    RemoveDirectory(c, copy.root);
  }
}

// Backups are incremental: those of the same history share their files.
void Backup(HistoryCall& c) {
  const bool flush = HistoryArguments::TakeWord(&c.args(), "flush");
  Copy copy;
  if (!TakeCopy(c, c.state().root() + "/restored", &copy)) {
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
  s = Prepare(c, copy);
  if (s.ok()) {
    RestoreOptions options;
    options.layout = copy.layout;
    s = engine->RestoreDBFromLatestBackup(options, copy.directory,
                                          copy.directory);
  }
  if (!c.Report(s)) {
    c.findings().Fail("restoring the backup: " + s.ToString());
    return;
  }
  CheckCopy(c, copy);
  RemoveDirectory(c, copy.root);
}

}  // namespace

const std::vector<HistoryStep>& HistoryCopySteps() {
  static const std::vector<HistoryStep> kSteps = {
      {"checkpoint", MakeCheckpoint, false, true,
       "checkpoint [files] [paths=N PATH_ID_OPTION... [path_map=ID:ID...]]"},
      {"backup", Backup, false, true,
       "backup [flush] [files] [paths=N PATH_ID_OPTION...]"},
  };
  return kSteps;
}

}  // namespace ROCKSDB_NAMESPACE
