//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/utilities/copy_layout.h"
#include "test_util/strata/history_db_kind_test_util.h"
#include "test_util/strata/history_fault_fs_test_util.h"
#include "test_util/strata/history_iterator_test_util.h"
#include "test_util/strata/history_model_test_util.h"
#include "test_util/strata/history_names_test_util.h"
#include "test_util/strata/history_options_test_util.h"
#include "test_util/strata/history_transaction_test_util.h"
#include "test_util/strata/history_unsynced_test_util.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

// What a loss of power leaves of the things that were not synced.
struct HistoryCrash {
  HistoryUnsynced::Survivors survivors = HistoryUnsynced::Survivors::kNone;
  // New directory entries survive.
  bool keeps_entries = false;
  // For the choice of survivors.
  uint32_t seed = 0;
};

// The DB on which the steps of a history work, in a directory of its own, below
// which operations can fail and unsynced data can be lost; its column families,
// snapshots and open iterators; and the model of its contents. Callers that
// change the contents of the DB change the model, too, unless a function below
// says that it does this.
//
// Not thread-safe.
class HistoryDb {
 public:
  struct Family {
    HistoryOptionList options;
    // nullptr while the DB is closed.
    ColumnFamilyHandle* handle = nullptr;
    // The directories of the SST files.
    std::vector<std::string> paths;
  };

  // The state of the DB that a read sees, and its position in the model.
  struct View {
    const Snapshot* snapshot = nullptr;
    size_t position = 0;
  };

  // root: a directory that CreateRoot() creates and the destructor removes.
  // overrides: options that replace those of the steps, see HistoryVariant;
  // empty if there are none.
  HistoryDb(std::string root, std::vector<HistoryOptionList> overrides);
  ~HistoryDb();
  HistoryDb(const HistoryDb&) = delete;
  HistoryDb& operator=(const HistoryDb&) = delete;

  Status CreateRoot();

  // Opens the DB with all families, after doubts about them are settled, and
  // finds the prepared transactions again.
  // Those that a crash has rolled back have no Transaction then. A transaction
  // whose commit or rollback was lost is rolled back.
  // REQUIRES: !is_open()
  Status Open();
  // Closes the DB, if it is open, and all that belongs to it. Prepared
  // transactions stay, or are rolled back if the kind of the DB forbids that.
  void Close();
  // Closes and removes the DB. If that succeeds, the model and the families
  // are forgotten.
  Status Destroy();
  // Closes the DB, forgets what was not synced, and all rules of faults().
  Status Crash(const HistoryCrash& how = HistoryCrash());
  // Says that the files were changed by other means than this object.
  // REQUIRES: !is_open()
  void ForgetFileStates();
  // REQUIRES: is_open(), and there is no such family
  Status CreateFamily(const std::string& name, const HistoryOptionList& own);
  // REQUIRES: is_open(), and there is such a family, not the default one
  Status DropFamily(const std::string& name);

  // Notes that the creation or the drop of a family has failed, so that it is
  // known after the next open only whether it exists.
  // own: its options.
  void DoubtFamily(const std::string& name, const HistoryOptionList& own) {
    doubtful_families_[name] = own;
  }

  // Notes that the MANIFEST may have lost its end, so that any family may be
  // gone, or a dropped one back. The contents of the latter are not compared.
  void DoubtAllFamilies() { doubts_all_families_ = true; }

  // Reads the contents of the whole family, by an iterator.
  // REQUIRES: is_open()
  Status ReadAll(const std::string& cf, const ReadOptions& read_options,
                 HistoryModel::Contents* contents);
  // REQUIRES: is_open()
  Status ReadAllFamilies(HistoryModel::AllContents* all);

  // Waits until jobs have deleted their files, which they do shortly after
  // threads that wait for them have been notified.
  void WaitForCleanup();

  // Returns the path of a new file outside of the DB's directories.
  std::string NewFilePath();

  // A directory was renamed, whose files are therefore not lost in a crash.
  void ForgetRenamedDirectory(const std::string& old_path) {
    crash_fs_->SyncDir(old_path);
  }

  // The file system that the DB uses.
  Env* env() { return env_.get(); }

  // Checks the places of the files of a copy of the DB, opens it, reads it, and
  // checks that point reads and checksums agree.
  // path: the directory of the copy.
  // layout: nullptr if the copy has all files there.
  // REQUIRES: !families().empty()
  Status ReadCopy(const std::string& path, const CopyLayout* layout,
                  HistoryModel::AllContents* all);

  bool is_open() const { return db_ != nullptr; }
  HistoryDbKind::Kind kind() const { return kind_; }
  // Returns true from a crash until SetRecovered().
  bool is_after_crash() const { return is_after_crash_; }
  // Says that the model has the contents that the recovery has found.
  void SetRecovered() { is_after_crash_ = false; }
  DB* db() { return db_.get(); }
  const std::string& root() const { return root_; }
  // The options that replace those of the steps, since the DB was opened;
  // nullptr if there are none.
  const HistoryOptionList* overrides() const {
    return overrides_.empty() ? nullptr
                              : &overrides_[num_opened_ % overrides_.size()];
  }
  HistoryFaultFS& faults() { return *fault_fs_; }
  HistoryModel& model() { return model_; }
  HistoryNames& names() { return names_; }

  // By name. The families stay when the DB is closed, the others do not.
  std::map<std::string, Family>& families() { return families_; }
  std::map<std::string, View>& snapshots() { return snapshots_; }
  std::map<std::string, std::unique_ptr<HistoryIterator>>& iterators() {
    return iterators_;
  }
  // Those that are neither committed nor rolled back.
  std::map<std::string, std::unique_ptr<HistoryTransaction>>& transactions() {
    return transactions_;
  }

 private:
  // Reads in the MANIFEST which of the doubtful families exist, and adds them
  // to the families and the model, or removes them from there.
  Status SettleDoubtfulFamilies();
  // Returns the options of all families. *options: those of the default one.
  Status Describe(Options* options,
                  std::vector<ColumnFamilyDescriptor>* descriptors);
  Status FindPreparedTransactions();
  std::string DbPath() const { return root_ + "/db"; }

  const std::string root_;
  const std::vector<HistoryOptionList> overrides_;
  // How often the DB was opened after the first time.
  size_t num_opened_ = 0;
  bool was_opened_ = false;
  // Forgets directory entries that were not synced.
  const std::shared_ptr<FaultInjectionTestFS> crash_fs_;
  const std::shared_ptr<HistoryFaultFS> fault_fs_;
  const std::unique_ptr<Env> env_;

  HistoryDbKind::Kind kind_ = HistoryDbKind::kPlain;
  std::unique_ptr<DB> db_;
  std::map<std::string, Family> families_;
  std::map<std::string, HistoryOptionList> doubtful_families_;
  bool doubts_all_families_ = false;
  std::map<std::string, View> snapshots_;
  std::map<std::string, std::unique_ptr<HistoryIterator>> iterators_;
  std::map<std::string, std::unique_ptr<HistoryTransaction>> transactions_;
  HistoryModel model_;
  HistoryNames names_;
  size_t num_new_files_ = 0;
  bool is_after_crash_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
