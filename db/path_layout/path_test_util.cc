//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_test_util.h"

#include <algorithm>
#include <cstdio>

#include "env/composite_env_wrapper.h"
#include "file/filename.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// "dir/name" -> ("dir", "name")
std::pair<std::string, std::string> Split(const std::string& path) {
  const size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

class CountingDirectory : public FSDirectoryWrapper {
 public:
  CountingDirectory(std::unique_ptr<FSDirectory>&& target, DeviceFS* fs,
                    const std::string& path)
      : FSDirectoryWrapper(std::move(target)), fs_(fs), path_(path) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = fs_->Step("sync " + path_);
    if (s.ok() && fs_->OnDirectorySync(path_)) {
      s = FSDirectoryWrapper::Fsync(options, dbg);
    }
    return s;
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg,
                               const DirFsyncOptions& dir_options) override {
    IOStatus s = fs_->Step("sync " + path_);
    if (s.ok() && fs_->OnDirectorySync(path_)) {
      s = FSDirectoryWrapper::FsyncWithDirOptions(options, dbg, dir_options);
    }
    return s;
  }

 private:
  DeviceFS* const fs_;
  const std::string path_;
};

}  // namespace

void DeviceFS::AddDevice(const std::string& directory) {
  MutexLock lock(&mutex_);
  devices_.insert(directory);
}

bool DeviceFS::IsOnDevice(const std::string& directory) const {
  return std::any_of(
      devices_.begin(), devices_.end(), [&](const std::string& device) {
        return directory == device || directory.starts_with(device + ".");
      });
}

void DeviceFS::LoseDirectorySyncs(bool lose) {
  MutexLock lock(&mutex_);
  lose_directory_syncs_ = lose;
}

std::map<std::string, int> DeviceFS::TakeSyncCounts() {
  MutexLock lock(&mutex_);
  return std::exchange(sync_counts_, {});
}

int DeviceFS::TakeLinkCount() {
  MutexLock lock(&mutex_);
  return std::exchange(num_links_, 0);
}

void DeviceFS::PowerOffAfter(int steps) {
  MutexLock lock(&mutex_);
  steps_left_ = steps;
  is_power_to_fail_ = true;
  has_failed_ = false;
}

void DeviceFS::FailAfter(int steps) {
  MutexLock lock(&mutex_);
  steps_left_ = steps;
  is_power_to_fail_ = false;
  has_failed_ = false;
}

bool DeviceFS::HasFailed() {
  MutexLock lock(&mutex_);
  return has_failed_;
}

std::vector<std::string> DeviceFS::TakeSteps() {
  MutexLock lock(&mutex_);
  records_steps_ = true;
  return std::exchange(steps_, {});
}

IOStatus DeviceFS::Step(const std::string& step) {
  MutexLock lock(&mutex_);
  if (steps_left_ == 0) {
    steps_left_ = -1;
    has_failed_ = true;
    if (!is_power_to_fail_) {
      return IOStatus::IOError("injected error", step);
    }
    SetFilesystemActive(false);
  }
  if (!IsFilesystemActive()) {
    // The error of the base class.
    return IOStatus::Corruption("Not active");
  }
  if (steps_left_ > 0) {
    --steps_left_;
  }
  if (records_steps_) {
    steps_.push_back(step);
  }
  return IOStatus::OK();
}

bool DeviceFS::OnDirectorySync(const std::string& directory) {
  MutexLock lock(&mutex_);
  if (!IsFilesystemActive()) {
    return true;
  }
  ++sync_counts_[directory];
  if (lose_directory_syncs_ && devices_.count(directory) > 0) {
    return false;
  }
  unsynced_links_.erase(directory);
  unsynced_files_.erase(directory);
  return true;
}

IOStatus DeviceFS::PowerOn() {
  IOStatus s = DropUnsyncedFileData();
  SetFilesystemActive(true);
  if (s.ok()) {
    s = DeleteFilesCreatedAfterLastDirSync(IOOptions(), nullptr);
  }
  std::map<std::string, std::set<std::string>> links;
  {
    MutexLock lock(&mutex_);
    links.swap(unsynced_links_);
    unsynced_files_.clear();
  }
  for (const auto& directory : links) {
    for (const std::string& name : directory.second) {
      IOStatus deleted = target()->DeleteFile(directory.first + "/" + name,
                                              IOOptions(), nullptr);
      if (s.ok() && !deleted.ok() && !deleted.IsPathNotFound()) {
        s = deleted;
      }
    }
  }
  ResetState();
  return s;
}

IOStatus DeviceFS::NewDirectory(const std::string& path,
                                const IOOptions& options,
                                std::unique_ptr<FSDirectory>* result,
                                IODebugContext* dbg) {
  std::unique_ptr<FSDirectory> directory;
  IOStatus s =
      FaultInjectionTestFS::NewDirectory(path, options, &directory, dbg);
  if (s.ok()) {
    result->reset(new CountingDirectory(std::move(directory), this, path));
  }
  return s;
}

IOStatus DeviceFS::NewWritableFile(const std::string& path,
                                   const FileOptions& options,
                                   std::unique_ptr<FSWritableFile>* result,
                                   IODebugContext* dbg) {
  IOStatus s = Step("create " + path);
  if (s.ok()) {
    s = FaultInjectionTestFS::NewWritableFile(path, options, result, dbg);
  }
  if (s.ok()) {
    MutexLock lock(&mutex_);
    const auto file = Split(path);
    unsynced_files_[file.first].insert(file.second);
  }
  return s;
}

IOStatus DeviceFS::CreateDir(const std::string& path, const IOOptions& options,
                             IODebugContext* dbg) {
  const IOStatus s = Step("mkdir " + path);
  return s.ok() ? FaultInjectionTestFS::CreateDir(path, options, dbg) : s;
}

IOStatus DeviceFS::DeleteDir(const std::string& path, const IOOptions& options,
                             IODebugContext* dbg) {
  const IOStatus s = Step("rmdir " + path);
  return s.ok() ? FaultInjectionTestFS::DeleteDir(path, options, dbg) : s;
}

IOStatus DeviceFS::LinkFile(const std::string& from, const std::string& to,
                            const IOOptions& options, IODebugContext* dbg) {
  const auto source = Split(from);
  const auto link = Split(to);
  {
    MutexLock lock(&mutex_);
    if (source.first != link.first &&
        (IsOnDevice(source.first) || IsOnDevice(link.first))) {
      return IOStatus::NotSupported("another device");
    }
  }
  IOStatus s = Step("link " + from + " " + to);
  if (s.ok()) {
    s = FaultInjectionTestFS::LinkFile(from, to, options, dbg);
  }
  if (s.ok()) {
    MutexLock lock(&mutex_);
    unsynced_links_[link.first].insert(link.second);
    ++num_links_;
  }
  return s;
}

IOStatus DeviceFS::SyncFile(const std::string& path,
                            const FileOptions& file_options,
                            const IOOptions& options, bool use_fsync,
                            IODebugContext* dbg) {
  const IOStatus s = Step("syncfile " + path);
  return s.ok() ? FaultInjectionTestFS::SyncFile(path, file_options, options,
                                                 use_fsync, dbg)
                : s;
}

IOStatus DeviceFS::DeleteFile(const std::string& path, const IOOptions& options,
                              IODebugContext* dbg) {
  IOStatus s = Step("delete " + path);
  if (s.ok()) {
    s = FaultInjectionTestFS::DeleteFile(path, options, dbg);
  }
  if (s.ok()) {
    MutexLock lock(&mutex_);
    const auto file = Split(path);
    unsynced_files_[file.first].erase(file.second);
    auto links = unsynced_links_.find(file.first);
    if (links != unsynced_links_.end()) {
      links->second.erase(file.second);
    }
  }
  return s;
}

IOStatus DeviceFS::RenameFile(const std::string& from, const std::string& to,
                              const IOOptions& options, IODebugContext* dbg) {
  IOStatus s = Step("rename " + from + " " + to);
  if (s.ok()) {
    s = FaultInjectionTestFS::RenameFile(from, to, options, dbg);
  }
  std::vector<std::string> children;
  bool is_dir = false;
  if (s.ok() && target()->IsDirectory(to, options, &is_dir, dbg).ok() &&
      is_dir && target()->GetChildren(to, options, &children, dbg).ok()) {
    for (const std::string& child : children) {
      UntrackFile(from + "/" + child);
    }
    MutexLock lock(&mutex_);
    // PowerOn() deletes new files of the directory as it deletes links.
    std::set<std::string> unsynced = std::exchange(unsynced_links_[from], {});
    unsynced.merge(unsynced_files_[from]);
    unsynced_links_.erase(from);
    unsynced_files_.erase(from);
    unsynced_links_[to] = std::move(unsynced);
  } else if (s.ok()) {
    MutexLock lock(&mutex_);
    const auto source = Split(from);
    const auto renamed = Split(to);
    if (unsynced_files_[source.first].erase(source.second) > 0) {
      unsynced_files_[renamed.first].insert(renamed.second);
    }
  }
  return s;
}

BrokenPathFS::Fault BrokenPathFS::FaultOf(const std::string& name) const {
  return !directory_.empty() &&
                 (name == directory_ || name.rfind(directory_ + "/", 0) == 0)
             ? fault_
             : Fault::kNone;
}

Status BrokenPathFS::RegisterDbPaths(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const IOStatus s = target()->FileExists(path, IOOptions(), nullptr);
    if (!s.ok()) {
      return s;
    }
  }
  ++num_registered_;
  return Status::OK();
}

Status BrokenPathFS::UnregisterDbPaths(
    const std::vector<std::string>& /*paths*/) {
  --num_registered_;
  return Status::OK();
}

IOStatus BrokenPathFS::FileExists(const std::string& name,
                                  const IOOptions& options,
                                  IODebugContext* dbg) {
  uint64_t number = 0;
  FileType type = kTempFile;
  if (ParseFileName(Split(name).second, &number, &type) &&
      (type == kTableFile || type == kBlobFile || type == kDeltaFile)) {
    ++num_questions_;
  }
  switch (FaultOf(name)) {
    case Fault::kNoAccess:
      return IOStatus::NotFound();
    case Fault::kIoError:
      return IOStatus::IOError("Unexpected error(5) accessing file `" + name +
                               "' ");
    default:
      return FileSystemWrapper::FileExists(name, options, dbg);
  }
}

IOStatus BrokenPathFS::GetChildren(const std::string& directory,
                                   const IOOptions& options,
                                   std::vector<std::string>* result,
                                   IODebugContext* dbg) {
  switch (FaultOf(directory)) {
    case Fault::kNotListed:
    case Fault::kNoAccess:
      return IOStatus::NotFound();
    case Fault::kIoError:
      return IOStatus::IOError("While opendir: " + directory,
                               "Input/output error");
    default:
      return FileSystemWrapper::GetChildren(directory, options, result, dbg);
  }
}

IOStatus BrokenPathFS::NewDirectory(const std::string& directory,
                                    const IOOptions& options,
                                    std::unique_ptr<FSDirectory>* result,
                                    IODebugContext* dbg) {
  switch (FaultOf(directory)) {
    case Fault::kNotOpened:
    case Fault::kNoAccess:
      return IOStatus::IOError("While open directory: " + directory,
                               "Permission denied");
    case Fault::kIoError:
      return IOStatus::IOError("While open directory: " + directory,
                               "Input/output error");
    default:
      return FileSystemWrapper::NewDirectory(directory, options, result, dbg);
  }
}

IOStatus BrokenPathFS::CreateDirIfMissing(const std::string& directory,
                                          const IOOptions& options,
                                          IODebugContext* dbg) {
  if (FaultOf(directory) == Fault::kNotCreated) {
    return IOStatus::IOError("While mkdir if missing: " + directory,
                             "Read-only file system");
  }
  return FileSystemWrapper::CreateDirIfMissing(directory, options, dbg);
}

IOStatus BrokenPathFS::NewRandomAccessFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSRandomAccessFile>* result, IODebugContext* dbg) {
  const Fault fault = FaultOf(name);
  if (fault == Fault::kNoAccess || fault == Fault::kIoError) {
    return IOStatus::IOError(
        "While open a file for random read: " + name,
        fault == Fault::kNoAccess ? "Permission denied" : "Input/output error");
  }
  return FileSystemWrapper::NewRandomAccessFile(name, options, result, dbg);
}

IOStatus BrokenPathFS::NewWritableFile(const std::string& name,
                                       const FileOptions& options,
                                       std::unique_ptr<FSWritableFile>* result,
                                       IODebugContext* dbg) {
  if (FaultOf(name) == Fault::kReadOnly) {
    return IOStatus::IOError("While open a file for appending: " + name,
                             "Read-only file system");
  }
  return FileSystemWrapper::NewWritableFile(name, options, result, dbg);
}

PathTestBase::PathTestBase(const std::string& name)
    : DBTestBase(name, /*env_do_fsync=*/false),
      fs_(std::make_shared<DeviceFS>(env_->GetFileSystem())),
      device_env_(NewCompositeEnv(fs_)) {
  DBTestBase::Close();
}

PathTestBase::~PathTestBase() {
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  DestroyAll();
  // The base class keeps the options of a Reopen(), whose env is owned by this
  // class.
  last_options_ = Options();
  last_options_.env = env_;
}

std::string PathTestBase::PathOf(const std::string& prefix, uint32_t path_id) {
  const std::string path = dbname_ + "_" + prefix + std::to_string(path_id);
  if (paths_.insert(path).second) {
    fs_->AddDevice(path);
  }
  return path;
}

Options PathTestBase::PathOptions(const std::string& prefix, uint32_t num_paths,
                                  const Ids& sst_ids, const Ids& blob_ids) {
  Options options = CurrentOptions();
  options.env = device_env_.get();
  options.create_if_missing = true;
  options.disable_auto_compactions = true;
  options.level_compaction_dynamic_level_bytes = false;
  options.num_levels = 4;
  options.compression = kNoCompression;
  options.target_file_size_base = 16 << 10;
  options.enable_blob_files = true;
  options.min_blob_size = 64;
  options.level_sst_path_ids = sst_ids;
  options.level_blob_path_ids = blob_ids;
  for (uint32_t i = 0; i < num_paths; ++i) {
    options.cf_paths.emplace_back(PathOf(prefix, i), 1 << 30);
  }
  return options;
}

Status PathTestBase::Open(const std::vector<Options>& options,
                          bool create_families) {
  Close();
  opened_with_ = options;
  std::vector<std::string> names{kDefaultColumnFamilyName};
  for (size_t i = 1; i < options.size(); ++i) {
    names.push_back("cf" + std::to_string(i));
  }
  if (!create_families) {
    return TryReopenWithColumnFamilies(names, options);
  }
  std::vector<ColumnFamilyDescriptor> families;
  for (size_t i = 0; i < options.size(); ++i) {
    families.emplace_back(names[i], options[i]);
  }
  DBOptions db_options(options[0]);
  db_options.create_missing_column_families = true;
  last_options_ = options[0];
  return DB::Open(db_options, dbname_, families, &handles_, &db_);
}

void PathTestBase::Crash() {
  fs_->PowerOff();
  for (ColumnFamilyHandle* handle : handles_) {
    db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  handles_.clear();
  db_->Close().PermitUncheckedError();
  db_.reset();
  ASSERT_OK(fs_->PowerOn());
}

void PathTestBase::DestroyAll() {
  Close();
  expected_.clear();
  fs_->ResetState();
  for (const std::string& path : paths_) {
    EXPECT_OK(DestroyDir(env_, path));
  }
  EXPECT_OK(DestroyDir(env_, dbname_));
}

std::string PathTestBase::KeyOf(int number) {
  char buffer[16];
  snprintf(buffer, sizeof(buffer), "key%06d", number);
  return buffer;
}

std::string PathTestBase::ValueOf(int number, int version) {
  return KeyOf(number) + "." + std::to_string(version) + "." +
         std::string(100, static_cast<char>('a' + number % 26));
}

void PathTestBase::PutRange(int family, int begin, int end, int version,
                            bool wal) {
  WriteOptions options;
  options.disableWAL = !wal;
  options.sync = wal;
  for (int i = begin; i < end; ++i) {
    ASSERT_OK(db_->Put(options, Handle(family), KeyOf(i), ValueOf(i, version)));
    Expect(family, KeyOf(i), ValueOf(i, version));
  }
}

Status PathTestBase::VerifyData() {
  for (const auto& entry : expected_) {
    std::string value;
    Status s = db_->Get(ReadOptions(), Handle(entry.first.first),
                        entry.first.second, &value);
    if (!s.ok()) {
      return s;
    }
    if (value != entry.second) {
      return Status::Corruption("wrong value of " + entry.first.second);
    }
  }
  return Status::OK();
}

void PathTestBase::CheckPlacement(int family, const Options& options) {
  // A job deletes its inputs after it has notified the threads that wait for
  // it.
  ASSERT_OK(db_->WaitForCompact(WaitForCompactOptions()));
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(Handle(family), &metadata);
  std::set<std::string> live;
  for (const LevelMetaData& level : metadata.levels) {
    for (const SstFileMetaData& file : level.files) {
      if (!options.level_sst_path_ids.empty()) {
        const Ids& ids = options.level_sst_path_ids;
        const uint32_t id =
            ids[std::min(static_cast<size_t>(level.level), ids.size() - 1)];
        EXPECT_EQ(file.directory, options.cf_paths[id].path)
            << "L" << level.level << " " << file.relative_filename;
      }
      live.insert(file.directory + "/" + file.relative_filename);
    }
  }
  for (const BlobMetaData& blob : metadata.blob_files) {
    live.insert(BlobFileName(blob.blob_file_path, blob.blob_file_number));
  }
  std::set<std::string> found;
  std::set<std::string> paths;
  for (const DbPath& path : options.cf_paths) {
    paths.insert(path.path);
  }
  for (const std::string& path : paths) {
    std::vector<std::string> children;
    ASSERT_OK(device_env_->GetChildren(path, &children));
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kWalFile;
      if (ParseFileName(child, &number, &type) &&
          (type == kTableFile || type == kBlobFile)) {
        found.insert(path + "/" + child);
      }
    }
  }
  EXPECT_EQ(found, live);
}

std::multiset<uint32_t> PathTestBase::SstPathIds(int family,
                                                 const Options& options,
                                                 int level) {
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(Handle(family), &metadata);
  std::multiset<uint32_t> ids;
  for (const SstFileMetaData& file : metadata.levels[level].files) {
    for (uint32_t i = 0; i < options.cf_paths.size(); ++i) {
      if (options.cf_paths[i].path == file.directory) {
        ids.insert(i);
      }
    }
  }
  return ids;
}

std::set<uint32_t> PathTestBase::BlobPathIds(int family,
                                             const Options& options) {
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(Handle(family), &metadata);
  std::set<uint32_t> ids;
  for (const BlobMetaData& blob : metadata.blob_files) {
    for (uint32_t i = 0; i < options.cf_paths.size(); ++i) {
      if (options.cf_paths[i].path == blob.blob_file_path) {
        ids.insert(i);
      }
    }
  }
  return ids;
}

}  // namespace ROCKSDB_NAMESPACE
