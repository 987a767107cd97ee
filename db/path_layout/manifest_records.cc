//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/manifest_records.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "db/log_reader.h"
#include "db/version_edit.h"
#include "db/version_edit_handler.h"
#include "file/sequence_file_reader.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The first bytes of a file.
class FilePrefix : public FSSequentialFileOwnerWrapper {
 public:
  // size: bytes that can be read.
  FilePrefix(std::unique_ptr<FSSequentialFile>&& file, uint64_t size)
      : FSSequentialFileOwnerWrapper(std::move(file)), left_(size) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* dbg) override {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(n, left_));
    const IOStatus s = FSSequentialFileOwnerWrapper::Read(wanted, options,
                                                          result, scratch, dbg);
    if (s.ok()) {
      left_ -= result->size();
    }
    return s;
  }

 private:
  uint64_t left_;
};

// Keeps the first error that a log::Reader of a MANIFEST reports. (That of
// VersionSet is not public.)
struct FirstManifestError : public log::Reader::Reporter {
  void Corruption(size_t /*bytes*/, const Status& s,
                  uint64_t /*log_number*/) override {
    if (status.ok()) {
      status = s;
    }
  }

  Status status;
};

// Reads all records, and does nothing with them.
class EndFinder : public VersionEditHandlerBase {
 public:
  explicit EndFinder(const ReadOptions& read_options)
      : VersionEditHandlerBase(read_options) {}

 protected:
  Status ApplyVersionEdit(VersionEdit& /*edit*/,
                          ColumnFamilyData** /*cfd*/) override {
    return Status::OK();
  }
};

Status CorruptAt(const std::string& fname, uint64_t offset,
                 const std::string& what) {
  return Status::Corruption(fname + ", offset " + std::to_string(offset), what);
}

}  // namespace

Status ForEachManifestRecord(
    FileSystem* fs, const std::string& fname, uint64_t size,
    const std::function<Status(const Slice& record)>& fn) {
  std::unique_ptr<FSSequentialFile> file;
  const FileOptions file_options = fs->OptimizeForManifestRead(FileOptions());
  Status s = fs->NewSequentialFile(fname, file_options, &file, nullptr);
  if (!s.ok()) {
    return s;
  }
  FirstManifestError error;
  log::Reader reader(
      nullptr,
      std::make_unique<SequentialFileReader>(
          std::make_unique<FilePrefix>(std::move(file), size), fname),
      &error, /*checksum=*/true, /*log_num=*/0);
  Slice record;
  std::string scratch;
  // Offset at which the last record that was read ends.
  uint64_t end = 0;
  while (reader.ReadRecord(&record, &scratch,
                           WALRecoveryMode::kAbsoluteConsistency) &&
         error.status.ok()) {
    end = reader.LastRecordEnd();
    s = fn(record);
    if (s.IsCorruption()) {
      return CorruptAt(fname, reader.LastRecordOffset(), s.ToString());
    }
    if (!s.ok()) {
      return s;
    }
  }
  if (!error.status.ok()) {
    return error.status.IsCorruption()
               ? CorruptAt(fname, end, error.status.ToString())
               : error.status;
  }
  if (end != size) {
    return CorruptAt(fname, end,
                     "no record ends at offset " + std::to_string(size));
  }
  return Status::OK();
}

Status ApplyManifestEdits(FileSystem* fs, const std::string& fname,
                          VersionEditHandlerBase* handler) {
  std::unique_ptr<FSSequentialFile> file;
  const Status s = fs->NewSequentialFile(
      fname, fs->OptimizeForManifestRead(FileOptions()), &file, nullptr);
  if (!s.ok()) {
    return s;
  }
  FirstManifestError error;
  log::Reader reader(
      nullptr, std::make_unique<SequentialFileReader>(std::move(file), fname),
      &error, /*checksum=*/true, /*log_num=*/0);
  handler->Iterate(reader, &error.status);
  return handler->status();
}

Status FindEndOfManifest(FileSystem* fs, const std::string& fname,
                         uint64_t* end) {
  const ReadOptions read_options;
  EndFinder finder(read_options);
  const Status s = ApplyManifestEdits(fs, fname, &finder);
  *end = finder.GetLastValidRecordEnd();
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
