//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/wal_records.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "db/log_reader.h"
#include "file/filename.h"
#include "file/sequence_file_reader.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

class DamageReporter : public log::Reader::Reporter {
 public:
  void Corruption(size_t /*bytes*/, const Status& /*status*/,
                  uint64_t /*log_number*/) override {
    found_ = true;
  }
  bool found() const { return found_; }

 private:
  bool found_ = false;
};

Status HasRecord(FileSystem* fs, const std::string& name, uint64_t number,
                 bool* found) {
  std::unique_ptr<FSSequentialFile> file;
  const Status s =
      fs->NewSequentialFile(name, FileOptions(), &file, /*dbg=*/nullptr);
  if (!s.ok()) {
    return s.IsNotFound() || s.IsPathNotFound() ? Status::OK() : s;
  }
  DamageReporter reporter;
  log::Reader reader(
      /*info_log=*/nullptr,
      std::make_unique<SequentialFileReader>(std::move(file), name), &reporter,
      /*checksum=*/true, number);
  Slice record;
  std::string scratch;
  *found = reader.ReadRecord(&record, &scratch,
                             WALRecoveryMode::kAbsoluteConsistency) ||
           reporter.found();
  return s;
}

}  // namespace

Status FindWalRecord(FileSystem* fs, const std::string& directory,
                     uint64_t min_number, bool* found) {
  std::vector<std::string> names;
  Status s = fs->GetChildren(directory, IOOptions(), &names, nullptr);
  bool has_record = false;
  for (const std::string& name : names) {
    uint64_t number = 0;
    FileType type = kInfoLogFile;
    if (s.ok() && !has_record && ParseFileName(name, &number, &type) &&
        type == kWalFile && number >= min_number) {
      s = HasRecord(fs, directory + "/" + name, number, &has_record);
    }
  }
  if (s.ok()) {
    *found = has_record;
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
