//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_fault_files_test_util.h"

#include <cstddef>
#include <functional>
#include <utility>

#include "test_util/strata/history_fault_fs_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Op = HistoryFileOp;

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
    const auto append = [&](const Slice& part) {
      return FSWritableFileOwnerWrapper::Append(part, options, dbg);
    };
    return Write(data, end_, append, append);
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const DataVerificationInfo& verification_info,
                  IODebugContext* dbg) override {
    return Write(
        data, end_,
        [&](const Slice& all) {
          return FSWritableFileOwnerWrapper::Append(all, options,
                                                    verification_info, dbg);
        },
        [&](const Slice& part) {
          return FSWritableFileOwnerWrapper::Append(part, options, dbg);
        });
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    const auto append = [&](const Slice& part) {
      return FSWritableFileOwnerWrapper::PositionedAppend(part, offset, options,
                                                          dbg);
    };
    return Write(data, offset, append, append);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            const DataVerificationInfo& verification_info,
                            IODebugContext* dbg) override {
    return Write(
        data, offset,
        [&](const Slice& all) {
          return FSWritableFileOwnerWrapper::PositionedAppend(
              all, offset, options, verification_info, dbg);
        },
        [&](const Slice& part) {
          return FSWritableFileOwnerWrapper::PositionedAppend(part, offset,
                                                              options, dbg);
        });
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options,
                    IODebugContext* dbg) override {
    IOStatus s = FSWritableFileOwnerWrapper::Truncate(size, options, dbg);
    return Written(s, size);
  }
  IOStatus Sync(const IOOptions& /*options*/,
                IODebugContext* /*dbg*/) override {
    return SyncData();
  }
  IOStatus Fsync(const IOOptions& /*options*/,
                 IODebugContext* /*dbg*/) override {
    return SyncData();
  }

 private:
  // Writes `data` at offset `begin` as the file system decides.
  // write_all: writes the whole data.
  // write_part: writes a part of it, for which there is no checksum.
  template <class WriteAll, class WritePart>
  IOStatus Write(const Slice& data, uint64_t begin, const WriteAll& write_all,
                 const WritePart& write_part) {
    const HistoryInjector::Decision decision = fs_->Decide(Op::kWrite, path_);
    if (decision.status.ok()) {
      return Written(write_all(data), begin + data.size());
    }
    size_t done = decision.is_late    ? data.size()
                  : decision.is_short ? data.size() / 2
                                      : 0;
    if (use_direct_io()) {
      done -= done % GetRequiredBufferAlignment();
    }
    if (done > 0) {
      Written(write_part(Slice(data.data(), done)), begin + done)
          .PermitUncheckedError();
    }
    return decision.status;
  }
  IOStatus Written(const IOStatus& s, uint64_t end) {
    if (s.ok()) {
      end_ = end;
      fs_->unsynced().Written(path_, end);
    }
    return s;
  }
  // The crash is simulated, so the data need not reach the device.
  IOStatus SyncData() {
    const HistoryInjector::Decision decision = fs_->Decide(Op::kSync, path_);
    if (decision.status.ok() && !decision.is_not_done) {
      fs_->unsynced().Synced(path_);
    }
    return decision.status;
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
    const HistoryInjector::Decision decision = fs_->Decide(Op::kDirSync, path_);
    return decision.status.ok() && !decision.is_not_done
               ? FSDirectoryWrapper::Fsync(options, dbg)
               : decision.status;
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg,
                               const DirFsyncOptions& dir_options) override {
    const HistoryInjector::Decision decision = fs_->Decide(Op::kDirSync, path_);
    return decision.status.ok() && !decision.is_not_done
               ? FSDirectoryWrapper::FsyncWithDirOptions(options, dbg,
                                                         dir_options)
               : decision.status;
  }

 private:
  HistoryFaultFS* const fs_;
  const std::string path_;
};

}  // namespace

std::unique_ptr<FSSequentialFile> HistoryFaultFiles::Wrap(
    std::unique_ptr<FSSequentialFile>&& file, HistoryFaultFS* fs,
    const std::string& path) {
  return std::make_unique<FaultySequentialFile>(std::move(file), fs, path);
}

std::unique_ptr<FSRandomAccessFile> HistoryFaultFiles::Wrap(
    std::unique_ptr<FSRandomAccessFile>&& file, HistoryFaultFS* fs,
    const std::string& path) {
  return std::make_unique<FaultyRandomAccessFile>(std::move(file), fs, path);
}

std::unique_ptr<FSWritableFile> HistoryFaultFiles::Wrap(
    std::unique_ptr<FSWritableFile>&& file, HistoryFaultFS* fs,
    const std::string& path, uint64_t size) {
  return std::make_unique<FaultyWritableFile>(std::move(file), fs, path, size);
}

std::unique_ptr<FSDirectory> HistoryFaultFiles::Wrap(
    std::unique_ptr<FSDirectory>&& directory, HistoryFaultFS* fs,
    const std::string& path) {
  return std::make_unique<FaultyDirectory>(std::move(directory), fs, path);
}

}  // namespace ROCKSDB_NAMESPACE
