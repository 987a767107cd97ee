//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_fault_fs_test_util.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <utility>

#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Op = HistoryFaultFS::Op;

class FaultySequentialFile : public FSSequentialFileOwnerWrapper {
 public:
  FaultySequentialFile(std::unique_ptr<FSSequentialFile>&& target,
                       HistoryFaultFS* fs, const std::string& path)
      : FSSequentialFileOwnerWrapper(std::move(target)), fs_(fs), path_(path) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* dbg) override {
    IOStatus s = fs_->Check(Op::kRead, path_);
    return s.ok() ? FSSequentialFileOwnerWrapper::Read(n, options, result,
                                                       scratch, dbg)
                  : s;
  }

 private:
  HistoryFaultFS* const fs_;
  const std::string path_;
};

class FaultyRandomAccessFile : public FSRandomAccessFileOwnerWrapper {
 public:
  FaultyRandomAccessFile(std::unique_ptr<FSRandomAccessFile>&& target,
                         HistoryFaultFS* fs, const std::string& path)
      : FSRandomAccessFileOwnerWrapper(std::move(target)),
        fs_(fs),
        path_(path) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    IOStatus s = fs_->Check(Op::kRead, path_);
    return s.ok() ? FSRandomAccessFileOwnerWrapper::Read(offset, n, options,
                                                         result, scratch, dbg)
                  : s;
  }

  IOStatus MultiRead(FSReadRequest* reqs, size_t num_reqs,
                     const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = fs_->Check(Op::kRead, path_);
    return s.ok() ? FSRandomAccessFileOwnerWrapper::MultiRead(reqs, num_reqs,
                                                              options, dbg)
                  : s;
  }

  IOStatus ReadAsync(FSReadRequest& req, const IOOptions& options,
                     std::function<void(FSReadRequest&, void*)> cb,
                     void* cb_arg, void** io_handle, IOHandleDeleter* del_fn,
                     IODebugContext* dbg) override {
    IOStatus s = fs_->Check(Op::kRead, path_);
    return s.ok() ? FSRandomAccessFileOwnerWrapper::ReadAsync(
                        req, options, std::move(cb), cb_arg, io_handle, del_fn,
                        dbg)
                  : s;
  }

 private:
  HistoryFaultFS* const fs_;
  const std::string path_;
};

class FaultyWritableFile : public FSWritableFileOwnerWrapper {
 public:
  // size: size of the existing file, in bytes.
  FaultyWritableFile(std::unique_ptr<FSWritableFile>&& target,
                     HistoryFaultFS* fs, const std::string& path, uint64_t size)
      : FSWritableFileOwnerWrapper(std::move(target)),
        fs_(fs),
        path_(path),
        end_(size) {}

  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    IOStatus s = fs_->Check(Op::kWrite, path_);
    if (s.ok()) {
      s = FSWritableFileOwnerWrapper::Append(data, options, dbg);
    }
    return Appended(s, end_ + data.size());
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const DataVerificationInfo& verification_info,
                  IODebugContext* dbg) override {
    IOStatus s = fs_->Check(Op::kWrite, path_);
    if (s.ok()) {
      s = FSWritableFileOwnerWrapper::Append(data, options, verification_info,
                                             dbg);
    }
    return Appended(s, end_ + data.size());
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    IOStatus s = fs_->Check(Op::kWrite, path_);
    if (s.ok()) {
      s = FSWritableFileOwnerWrapper::PositionedAppend(data, offset, options,
                                                       dbg);
    }
    return Appended(s, offset + data.size());
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            const DataVerificationInfo& verification_info,
                            IODebugContext* dbg) override {
    IOStatus s = fs_->Check(Op::kWrite, path_);
    if (s.ok()) {
      s = FSWritableFileOwnerWrapper::PositionedAppend(data, offset, options,
                                                       verification_info, dbg);
    }
    return Appended(s, offset + data.size());
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options,
                    IODebugContext* dbg) override {
    IOStatus s = FSWritableFileOwnerWrapper::Truncate(size, options, dbg);
    return Appended(s, size);
  }
  // The crash is simulated, so the data need not reach the device.
  IOStatus Sync(const IOOptions& /*options*/,
                IODebugContext* /*dbg*/) override {
    return Synced(fs_->Check(Op::kSync, path_));
  }
  IOStatus Fsync(const IOOptions& /*options*/,
                 IODebugContext* /*dbg*/) override {
    return Synced(fs_->Check(Op::kSync, path_));
  }

 private:
  IOStatus Appended(const IOStatus& s, uint64_t end) {
    if (s.ok()) {
      end_ = end;
      fs_->Written(path_, end);
    }
    return s;
  }
  IOStatus Synced(const IOStatus& s) {
    if (s.ok()) {
      fs_->Synced(path_);
    }
    return s;
  }

  HistoryFaultFS* const fs_;
  const std::string path_;
  uint64_t end_;
};

class FaultyDirectory : public FSDirectoryWrapper {
 public:
  FaultyDirectory(std::unique_ptr<FSDirectory>&& target, HistoryFaultFS* fs,
                  const std::string& path)
      : FSDirectoryWrapper(std::move(target)), fs_(fs), path_(path) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    IOStatus s = fs_->Check(Op::kDirSync, path_);
    return s.ok() ? FSDirectoryWrapper::Fsync(options, dbg) : s;
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg,
                               const DirFsyncOptions& dir_options) override {
    IOStatus s = fs_->Check(Op::kDirSync, path_);
    return s.ok() ? FSDirectoryWrapper::FsyncWithDirOptions(options, dbg,
                                                            dir_options)
                  : s;
  }

 private:
  HistoryFaultFS* const fs_;
  const std::string path_;
};

}  // namespace

bool HistoryFaultFS::ParseOp(const std::string& name, Op* op) {
  static constexpr struct {
    const char* name;
    Op op;
  } kOps[] = {
      {"READ", Op::kRead},     {"WRITE", Op::kWrite},
      {"SYNC", Op::kSync},     {"DIRSYNC", Op::kDirSync},
      {"CREATE", Op::kCreate}, {"DELETE", Op::kDelete},
      {"RENAME", Op::kRename},
  };
  for (const auto& candidate : kOps) {
    if (name == candidate.name) {
      *op = candidate.op;
      return true;
    }
  }
  return false;
}

bool HistoryFaultFS::Matches(const std::string& pattern,
                             const std::string& text) {
  // After a mismatch, goes back to the last "*", which then matches one more
  // character.
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string::npos;
  size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

void HistoryFaultFS::AddRule(Rule rule) {
  MutexLock l(&mutex_);
  rules_.push_back(std::move(rule));
}

void HistoryFaultFS::ClearRules() {
  MutexLock l(&mutex_);
  rules_.clear();
}

void HistoryFaultFS::Written(const std::string& path, uint64_t end) {
  MutexLock l(&mutex_);
  Extent& extent = extents_[path];
  extent.written = end;
  extent.synced = std::min(extent.synced, end);
}

// A concurrent append may be counted as synced. That does not matter to
// scripts, which sync and write in one thread.
void HistoryFaultFS::Synced(const std::string& path) {
  MutexLock l(&mutex_);
  extents_[path].synced = extents_[path].written;
}

IOStatus HistoryFaultFS::DropUnsynced() {
  MutexLock l(&mutex_);
  IOStatus s;
  for (auto& entry : extents_) {
    Extent& extent = entry.second;
    // A file that was deleted with its directory may be missing.
    if (extent.synced < extent.written &&
        truncate(entry.first.c_str(), static_cast<off_t>(extent.synced)) != 0 &&
        errno != ENOENT) {
      s = IOStatus::IOError("cannot truncate", entry.first);
    }
  }
  extents_.clear();
  return s;
}

IOStatus HistoryFaultFS::Check(Op op, const std::string& path) {
  MutexLock l(&mutex_);
  for (Rule& rule : rules_) {
    std::string below = path;
    if (below.compare(0, root_.size(), root_) == 0) {
      below.erase(0, root_.size());
    }
    while (!below.empty() && below[0] == '/') {
      below.erase(0, 1);
    }
    if (rule.op != op || rule.count == 0 || !Matches(rule.pattern, below)) {
      continue;
    }
    if (rule.skip > 0) {
      --rule.skip;
      continue;
    }
    --rule.count;
    IOStatus s = IOStatus::IOError("injected by the script", below);
    s.SetRetryable(rule.retryable);
    return s;
  }
  return IOStatus::OK();
}

IOStatus HistoryFaultFS::NewSequentialFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<FSSequentialFile>* result, IODebugContext* dbg) {
  std::unique_ptr<FSSequentialFile> file;
  IOStatus s = target()->NewSequentialFile(path, options, &file, dbg);
  if (s.ok()) {
    result->reset(new FaultySequentialFile(std::move(file), this, path));
  }
  return s;
}

IOStatus HistoryFaultFS::NewRandomAccessFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<FSRandomAccessFile>* result, IODebugContext* dbg) {
  std::unique_ptr<FSRandomAccessFile> file;
  IOStatus s = target()->NewRandomAccessFile(path, options, &file, dbg);
  if (s.ok()) {
    result->reset(new FaultyRandomAccessFile(std::move(file), this, path));
  }
  return s;
}

IOStatus HistoryFaultFS::NewWritableFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) {
  std::unique_ptr<FSWritableFile> file;
  IOStatus s = Check(Op::kCreate, path);
  if (s.ok()) {
    s = target()->NewWritableFile(path, options, &file, dbg);
  }
  if (s.ok()) {
    Written(path, 0);
    result->reset(new FaultyWritableFile(std::move(file), this, path, 0));
  }
  return s;
}

IOStatus HistoryFaultFS::ReopenWritableFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) {
  uint64_t size = 0;
  IOStatus s = target()->FileExists(path, options.io_options, dbg);
  if (s.ok()) {
    s = target()->GetFileSize(path, options.io_options, &size, dbg);
  } else if (s.IsNotFound()) {
    s = IOStatus::OK();
  }
  std::unique_ptr<FSWritableFile> file;
  if (s.ok()) {
    s = target()->ReopenWritableFile(path, options, &file, dbg);
  }
  if (s.ok()) {
    result->reset(new FaultyWritableFile(std::move(file), this, path, size));
  }
  return s;
}

IOStatus HistoryFaultFS::NewDirectory(const std::string& path,
                                      const IOOptions& options,
                                      std::unique_ptr<FSDirectory>* result,
                                      IODebugContext* dbg) {
  std::unique_ptr<FSDirectory> directory;
  IOStatus s = target()->NewDirectory(path, options, &directory, dbg);
  if (s.ok()) {
    result->reset(new FaultyDirectory(std::move(directory), this, path));
  }
  return s;
}

IOStatus HistoryFaultFS::DeleteFile(const std::string& path,
                                    const IOOptions& options,
                                    IODebugContext* dbg) {
  IOStatus s = Check(Op::kDelete, path);
  if (s.ok()) {
    s = target()->DeleteFile(path, options, dbg);
  }
  if (s.ok()) {
    MutexLock l(&mutex_);
    extents_.erase(path);
  }
  return s;
}

IOStatus HistoryFaultFS::RenameFile(const std::string& from,
                                    const std::string& to,
                                    const IOOptions& options,
                                    IODebugContext* dbg) {
  IOStatus s = Check(Op::kRename, from);
  if (s.ok()) {
    s = target()->RenameFile(from, to, options, dbg);
  }
  if (s.ok()) {
    MutexLock l(&mutex_);
    extents_.erase(to);
    const auto it = extents_.find(from);
    if (it != extents_.end()) {
      extents_[to] = it->second;
      extents_.erase(it);
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
