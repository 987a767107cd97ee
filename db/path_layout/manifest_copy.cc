//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/manifest_copy.h"

#include <memory>

#include "db/log_writer.h"
#include "db/path_layout/manifest_records.h"
#include "db/version_edit.h"
#include "file/writable_file_writer.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

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

// Encodes the edit with other path ids. Leaves *encoded empty if no id
// changes.
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
  log::Writer writer(std::make_unique<WritableFileWriter>(
                         std::make_unique<StringFile>(contents), fname,
                         FileOptions(EnvOptions())),
                     /*log_number=*/0, /*recycle_log_files=*/false);
  std::string encoded;
  Status s = ForEachManifestRecord(fs, fname, size, [&](const Slice& record) {
    Status copied = MapRecord(record, path_ids, &encoded);
    if (copied.ok()) {
      *is_changed = *is_changed || !encoded.empty();
      copied = writer.AddRecord(WriteOptions(),
                                encoded.empty() ? record : Slice(encoded));
    }
    return copied;
  });
  if (s.ok()) {
    s = writer.Close(WriteOptions());
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
