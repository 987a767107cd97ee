//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_fault_fs_test_util.h"

#include <cstddef>
#include <utility>

#include "test_util/strata/history_fault_files_test_util.h"
#include "util/mutexlock.h"

namespace ROCKSDB_NAMESPACE {

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
  devices_->ClearFaults();
  MutexLock l(&mutex_);
  rules_.clear();
}

bool HistoryFaultFS::has_rules() {
  MutexLock l(&mutex_);
  return !rules_.empty() || devices_->HasFaults();
}

std::string HistoryFaultFS::Below(const std::string& path) const {
  std::string below = path;
  if (below.compare(0, root_.size(), root_) == 0) {
    below.erase(0, root_.size());
  }
  while (!below.empty() && below[0] == '/') {
    below.erase(0, 1);
  }
  return below;
}

HistoryInjector::Decision HistoryFaultFS::Decide(Op op,
                                                 const std::string& path) {
  const std::string below = Below(path);
  HistoryInjector::Decision decision = injector_.OnOperation(op, below);
  if (decision.status.ok()) {
    decision.status = CheckRules(op, below);
  }
  return decision;
}

IOStatus HistoryFaultFS::Check(Op op, const std::string& path) {
  return Decide(op, path).status;
}

IOStatus HistoryFaultFS::CheckRules(Op op, const std::string& below) {
  MutexLock l(&mutex_);
  for (Rule& rule : rules_) {
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
  IOStatus s = Check(Op::kOpen, path);
  if (s.ok()) {
    s = target()->NewSequentialFile(path, options, &file, dbg);
  }
  if (s.ok()) {
    *result = HistoryFaultFiles::Wrap(std::move(file), this, path);
  }
  return s;
}

IOStatus HistoryFaultFS::NewRandomAccessFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<FSRandomAccessFile>* result, IODebugContext* dbg) {
  std::unique_ptr<FSRandomAccessFile> file;
  IOStatus s = Check(Op::kOpen, path);
  if (s.ok()) {
    s = target()->NewRandomAccessFile(path, options, &file, dbg);
  }
  if (s.ok()) {
    *result = HistoryFaultFiles::Wrap(std::move(file), this, path);
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
    unsynced_.Created(path);
    *result = HistoryFaultFiles::Wrap(std::move(file), this, path, 0);
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
  if (s.ok()) {
    s = Check(Op::kCreate, path);
  }
  std::unique_ptr<FSWritableFile> file;
  if (s.ok()) {
    s = target()->ReopenWritableFile(path, options, &file, dbg);
  }
  if (s.ok()) {
    unsynced_.Reopened(path, size);
    *result = HistoryFaultFiles::Wrap(std::move(file), this, path, size);
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
    *result = HistoryFaultFiles::Wrap(std::move(directory), this, path);
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
    unsynced_.Deleted(path);
  }
  return s;
}

IOStatus HistoryFaultFS::RenameFile(const std::string& from,
                                    const std::string& to,
                                    const IOOptions& options,
                                    IODebugContext* dbg) {
  const HistoryInjector::Decision decision = Decide(Op::kRename, from);
  if (!decision.status.ok() && !decision.is_late) {
    return decision.status;
  }
  const IOStatus s = target()->RenameFile(from, to, options, dbg);
  if (s.ok()) {
    unsynced_.Renamed(from, to);
  }
  return decision.status.ok() ? s : decision.status;
}

IOStatus HistoryFaultFS::LinkFile(const std::string& from,
                                  const std::string& to,
                                  const IOOptions& options,
                                  IODebugContext* dbg) {
  IOStatus s = Check(Op::kLink, from);
  if (s.ok()) {
    s = target()->LinkFile(from, to, options, dbg);
  }
  if (s.ok()) {
    unsynced_.Linked(from, to);
  }
  return s;
}

// The implementation of the base opens the file here, so that its sync counts.
IOStatus HistoryFaultFS::SyncFile(const std::string& path,
                                  const FileOptions& file_options,
                                  const IOOptions& io_options, bool use_fsync,
                                  IODebugContext* dbg) {
  return FileSystem::SyncFile(path, file_options, io_options, use_fsync, dbg);
}

}  // namespace ROCKSDB_NAMESPACE
