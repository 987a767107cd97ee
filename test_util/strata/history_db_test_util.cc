//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_db_test_util.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "db/db_impl/db_impl.h"
#include "file/file_util.h"
#include "rocksdb/convenience.h"
#include "test_util/strata/history_copy_check_test_util.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

Status ReadFamily(DB* db, ColumnFamilyHandle* handle,
                  const ReadOptions& read_options,
                  HistoryModel::Contents* contents) {
  std::unique_ptr<Iterator> it(db->NewIterator(read_options, handle));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    (*contents)[it->key().ToString()] =
        HistoryModel::FromWideColumns(it->columns());
  }
  return it->status();
}

}  // namespace

HistoryDb::HistoryDb(std::string root, std::vector<HistoryOptionList> overrides)
    : root_(std::move(root)),
      overrides_(std::move(overrides)),
      crash_fs_(std::make_shared<FaultInjectionTestFS>(FileSystem::Default())),
      fault_fs_(std::make_shared<HistoryFaultFS>(crash_fs_, root_)),
      env_(NewCompositeEnv(fault_fs_)),
      names_(root_) {
  fault_fs_->injector().SetCrashCallback([fs = crash_fs_.get()]() {
    fs->SetFilesystemActive(false, IOStatus::IOError("after the crash"));
  });
}

HistoryDb::~HistoryDb() {
  fault_fs_->ClearRules();
  fault_fs_->injector().Disarm();
  Close();
  DestroyDir(Env::Default(), root_).PermitUncheckedError();
}

Status HistoryDb::CreateRoot() {
  return Env::Default()->CreateDirIfMissing(root_);
}

Status HistoryDb::Describe(Options* options,
                           std::vector<ColumnFamilyDescriptor>* descriptors) {
  for (auto& [name, family] : families_) {
    Options family_options;
    const Status s =
        HistoryOptions::Make(family.options, overrides(), root_, env_.get(),
                             &family_options, &family.paths);
    if (!s.ok()) {
      return s;
    }
    if (name == kDefaultColumnFamilyName) {
      *options = family_options;
    }
    descriptors->emplace_back(name, family_options);
  }
  return Status::OK();
}

Status HistoryDb::Open() {
  assert(db_ == nullptr);
  num_opened_ += was_opened_ ? 1 : 0;
  was_opened_ = true;
  Options options;
  std::vector<ColumnFamilyDescriptor> descriptors;
  Status s = SettleDoubtfulFamilies();
  if (s.ok()) {
    s = Describe(&options, &descriptors);
  }
  if (!s.ok()) {
    return s;
  }
  const std::string* const kind = HistoryOptions::Find(
      families_.at(kDefaultColumnFamilyName).options, "db");
  if (kind != nullptr && !HistoryDbKind::Parse(*kind, &kind_)) {
    return Status::InvalidArgument("no such kind of DB: " + *kind);
  }
  std::vector<ColumnFamilyHandle*> handles;
  s = HistoryDbKind::Open(kind_, options, DbPath(), descriptors, &handles,
                          &db_);
  if (s.ok()) {
    for (ColumnFamilyHandle* handle : handles) {
      families_[handle->GetName()].handle = handle;
    }
    s = FindPreparedTransactions();
  }
  return s;
}

Status HistoryDb::FindPreparedTransactions() {
  for (std::unique_ptr<Transaction>& prepared :
       HistoryDbKind::Prepared(kind_, db_.get())) {
    const auto it = transactions_.find(prepared->GetName());
    if (it != transactions_.end()) {
      it->second->Replace(std::move(prepared));
      continue;
    }
    const Status s = prepared->Rollback();
    if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

Status HistoryDb::SettleDoubtfulFamilies() {
  if (doubtful_families_.empty() && !doubts_all_families_) {
    return Status::OK();
  }
  DBOptions options;
  options.env = env_.get();
  std::vector<std::string> existing;
  const Status s = DB::ListColumnFamilies(options, DbPath(), &existing);
  if (!s.ok()) {
    return s;
  }
  if (doubts_all_families_) {
    for (const auto& [name, family] : families_) {
      if (name != kDefaultColumnFamilyName) {
        doubtful_families_.emplace(name, family.options);
      }
    }
    for (const std::string& name : existing) {
      if (name != kDefaultColumnFamilyName &&
          doubtful_families_.count(name) == 0) {
        doubtful_families_[name] =
            families_.at(kDefaultColumnFamilyName).options;
        model_.DoubtFamily(name);
      }
    }
  }
  for (const auto& [name, own] : doubtful_families_) {
    if (std::find(existing.begin(), existing.end(), name) == existing.end()) {
      families_.erase(name);
      model_.DropFamily(name);
    } else if (families_.count(name) == 0) {
      families_[name].options = own;
      model_.CreateFamily(name, HistoryOptions::MergeOperator(own));
    }
  }
  doubtful_families_.clear();
  doubts_all_families_ = false;
  return s;
}

void HistoryDb::Close() {
  if (db_ == nullptr) {
    return;
  }
  iterators_.clear();
  for (auto it = transactions_.begin(); it != transactions_.end();) {
    if (it->second->is_prepared() &&
        HistoryDbKind::AllowsPreparedAtClose(kind_)) {
      it->second->Replace(nullptr);
      ++it;
      continue;
    }
    if (it->second->is_prepared()) {
      it->second->transaction()->Rollback().PermitUncheckedError();
    }
    it = transactions_.erase(it);
  }
  for (const auto& snapshot : snapshots_) {
    db_->ReleaseSnapshot(snapshot.second.snapshot);
  }
  snapshots_.clear();
  for (auto& family : families_) {
    if (family.second.handle != nullptr) {
      db_->DestroyColumnFamilyHandle(family.second.handle)
          .PermitUncheckedError();
      family.second.handle = nullptr;
    }
  }
  db_->Close().PermitUncheckedError();
  db_.reset();
}

Status HistoryDb::Destroy() {
  Close();
  Options options;
  std::vector<ColumnFamilyDescriptor> descriptors;
  Status s = Describe(&options, &descriptors);
  if (s.ok()) {
    s = DestroyDB(DbPath(), options, descriptors);
  }
  if (s.ok()) {
    families_.clear();
    transactions_.clear();
    doubtful_families_.clear();
    doubts_all_families_ = false;
    model_ = HistoryModel();
    is_after_crash_ = false;
  }
  return s;
}

Status HistoryDb::Crash(const HistoryCrash& how) {
  crash_fs_->SetFilesystemActive(false);
  Close();
  fault_fs_->ClearRules();
  crash_fs_->SetFilesystemActive(true);
  IOStatus s = fault_fs_->unsynced().Drop(how.survivors, how.seed);
  if (s.ok() && !how.keeps_entries) {
    s = crash_fs_->DeleteFilesCreatedAfterLastDirSync(IOOptions(), nullptr);
  }
  crash_fs_->ResetState();
  is_after_crash_ = true;
  return s;
}

void HistoryDb::ForgetFileStates() {
  assert(db_ == nullptr);
  crash_fs_->ResetState();
  fault_fs_->unsynced().Clear();
}

Status HistoryDb::CreateFamily(const std::string& name,
                               const HistoryOptionList& own) {
  Family family;
  family.options = own;
  Options options;
  Status s = HistoryOptions::Make(own, overrides(), root_, env_.get(), &options,
                                  &family.paths);
  if (s.ok()) {
    s = db_->CreateColumnFamily(options, name, &family.handle);
  }
  if (s.ok()) {
    families_[name] = family;
  } else if (family.handle != nullptr) {
    // The family was created, but the options could not be written.
    db_->DestroyColumnFamilyHandle(family.handle).PermitUncheckedError();
  }
  return s;
}

Status HistoryDb::DropFamily(const std::string& name) {
  const auto it = families_.find(name);
  assert(it != families_.end());
  const Status s = db_->DropColumnFamily(it->second.handle);
  if (s.ok()) {
    db_->DestroyColumnFamilyHandle(it->second.handle).PermitUncheckedError();
    families_.erase(it);
  }
  return s;
}

Status HistoryDb::ReadAll(const std::string& cf,
                          const ReadOptions& read_options,
                          HistoryModel::Contents* contents) {
  return ReadFamily(db_.get(), families_.at(cf).handle, read_options, contents);
}

Status HistoryDb::ReadAllFamilies(HistoryModel::AllContents* all) {
  for (const auto& family : families_) {
    const Status s =
        ReadAll(family.first, ReadOptions(), &(*all)[family.first]);
    if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

Status HistoryDb::ReadCopy(const std::string& path, const CopyLayout* layout,
                           HistoryModel::AllContents* all) {
  Options options;
  std::vector<ColumnFamilyDescriptor> descriptors;
  Status s = Describe(&options, &descriptors);
  if (s.ok() && layout != nullptr) {
    s = HistoryCopyCheck::StoredLayout(env_.get(), path, *layout);
    if (s.ok()) {
      // Before the open, which may move files.
      s = HistoryCopyCheck::Places(env_.get(), path, *layout, db_.get());
    }
  }
  if (!s.ok()) {
    return s;
  }
  for (ColumnFamilyDescriptor& descriptor : descriptors) {
    HistoryCopyCheck::SetPaths(layout, descriptor.name, &descriptor.options);
  }
  options.db_paths.clear();
  options.create_if_missing = false;
  std::unique_ptr<DB> copy;
  std::vector<ColumnFamilyHandle*> handles;
  s = HistoryDbKind::Open(kind_, options, path, descriptors, &handles, &copy);
  for (ColumnFamilyHandle* handle : handles) {
    HistoryModel::Contents& contents = (*all)[handle->GetName()];
    if (s.ok()) {
      s = ReadFamily(copy.get(), handle, ReadOptions(), &contents);
    }
    if (s.ok()) {
      s = HistoryCopyCheck::PointReads(copy.get(), handle, contents);
    }
  }
  if (s.ok()) {
    s = copy->VerifyChecksum();
  }
  for (ColumnFamilyHandle* handle : handles) {
    copy->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  if (copy != nullptr) {
    // A background job of a WritePrepared DB has a snapshot, and Close()
    // refuses a DB with snapshots before it ends the jobs.
    CancelAllBackgroundWork(copy.get(), /*wait=*/true);
    const Status closed = copy->Close();
    s = s.ok() ? closed : s;
  }
  return s;
}

std::string HistoryDb::NewFilePath() {
  return root_ + "/ingest" + std::to_string(num_new_files_++) + ".sst";
}

void HistoryDb::WaitForCleanup() {
  if (db_ != nullptr) {
    DBImpl* const impl = static_cast_with_check<DBImpl>(db_->GetRootDB());
    impl->TEST_WaitForBackgroundWork().PermitUncheckedError();
    impl->TEST_WaitForPurge().PermitUncheckedError();
    // Each of them may have left work to the other.
    WaitForCompactOptions options;
    options.wait_for_purge = true;
    options.abort_on_pause = true;
    impl->TEST_WaitForCompact(options).PermitUncheckedError();
  }
}

}  // namespace ROCKSDB_NAMESPACE
