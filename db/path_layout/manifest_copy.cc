//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/manifest_copy.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "db/log_reader.h"
#include "db/log_writer.h"
#include "db/version_edit.h"
#include "file/sequence_file_reader.h"
#include "file/writable_file_writer.h"
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

// Appends what is written to a string. There is nothing to flush or to sync.
class StringFile : public FSWritableFile {
 public:
  explicit StringFile(std::string* contents) : contents_(contents) {}

  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
    return contents_->size();
  }
  using FSWritableFile::Append;
  IOStatus Append(const Slice& bytes, const IOOptions&,
                  IODebugContext*) override {
    contents_->append(bytes.data(), bytes.size());
    return Done();
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return Done(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return Done(); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return Done(); }

 private:
  static IOStatus Done() { return IOStatus::OK(); }

  std::string* const contents_;
};

// Keeps the first error of a log::Reader.
struct FirstError : public log::Reader::Reporter {
  void Corruption(size_t /*bytes*/, const Status& s,
                  uint64_t /*log_number*/) override {
    if (status.ok()) {
      status = s;
    }
  }

  Status status;
};

Status CorruptAt(const std::string& fname, uint64_t offset,
                 const std::string& what) {
  return Status::Corruption(fname + ", offset " + std::to_string(offset), what);
}

// Encodes the edit with other path ids. Leaves *encoded empty if the ids stay
// what they are.
Status MapRecord(const Slice& record, const PathIdsOfFamily& path_ids,
                 std::string* encoded) {
  encoded->clear();
  VersionEdit edit;
  Status s = edit.DecodeFrom(record);
  if (!s.ok() || !edit.MapPathIds(path_ids(edit.GetColumnFamily()))) {
    return s;
  }
  for (const auto& [level, file] : edit.GetNewFiles()) {
    if (file.epoch_number == kUnknownEpochNumber) {
      return Status::NotSupported(
          "The MANIFEST has SST file #" + std::to_string(file.fd.GetNumber()) +
          " of a RocksDB version before 7.10. Open the database once for "
          "writing, which replaces the MANIFEST");
    }
  }
  // A MANIFEST has keys without the timestamps that are not persisted, and so
  // has what was decoded from it: none is to be removed.
  if (!edit.EncodeTo(encoded, /*ts_sz=*/0)) {
    return Status::Corruption("the record has a file without key range");
  }
  return Status::OK();
}

}  // namespace

Status CopyManifest(FileSystem* fs, const std::string& fname, uint64_t size,
                    const PathIdsOfFamily& path_ids, std::string* contents,
                    bool* is_changed) {
  contents->clear();
  *is_changed = false;
  std::unique_ptr<FSSequentialFile> file;
  const FileOptions file_options = fs->OptimizeForManifestRead(FileOptions());
  Status s = fs->NewSequentialFile(fname, file_options, &file, nullptr);
  if (!s.ok()) {
    return s;
  }
  FirstError error;
  log::Reader reader(
      nullptr,
      std::make_unique<SequentialFileReader>(
          std::make_unique<FilePrefix>(std::move(file), size), fname),
      &error, /*checksum=*/true, /*log_num=*/0);
  log::Writer writer(std::make_unique<WritableFileWriter>(
                         std::make_unique<StringFile>(contents), fname,
                         FileOptions(EnvOptions())),
                     /*log_number=*/0, /*recycle_log_files=*/false);
  Slice record;
  std::string scratch;
  std::string encoded;
  // Offset at which the last record that was read ends.
  uint64_t end = 0;
  while (reader.ReadRecord(&record, &scratch,
                           WALRecoveryMode::kAbsoluteConsistency) &&
         error.status.ok()) {
    end = reader.LastRecordEnd();
    s = MapRecord(record, path_ids, &encoded);
    if (s.ok()) {
      *is_changed = *is_changed || !encoded.empty();
      s = writer.AddRecord(WriteOptions(),
                           encoded.empty() ? record : Slice(encoded));
    }
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
  return writer.Close(WriteOptions());
}

}  // namespace ROCKSDB_NAMESPACE
