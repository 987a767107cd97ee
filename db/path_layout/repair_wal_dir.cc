//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/repair_wal_dir.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "db/log_reader.h"
#include "db/path_layout/directory_names.h"
#include "file/filename.h"
#include "file/sequence_file_reader.h"
#include "logging/logging.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Notes whether a WAL has parts that cannot be read.
class ErrorNote : public log::Reader::Reporter {
 public:
  void Corruption(size_t /*bytes*/, const Status& /*status*/,
                  uint64_t /*log_number*/) override {
    has_error = true;
  }

  bool has_error = false;
};

// Returns true if an open would replay a record of the WAL, or the WAL cannot
// be read.
bool HasRecord(FileSystem* fs, const std::string& fname, uint64_t number) {
  std::unique_ptr<FSSequentialFile> file;
  if (!fs->NewSequentialFile(fname, FileOptions(), &file, nullptr).ok()) {
    return true;
  }
  ErrorNote note;
  // The reader skips records about the WAL itself.
  log::Reader reader(
      /*info_log=*/nullptr,
      std::make_unique<SequentialFileReader>(std::move(file), fname), &note,
      /*checksum=*/true, number);
  Slice record;
  std::string scratch;
  return reader.ReadRecord(&record, &scratch) || note.has_error;
}

// Returns true if the file has a part of a WAL that an open would replay.
bool HasWalData(FileSystem* fs, const std::string& directory,
                const std::string& name) {
  uint64_t number = 0;
  FileType type = kTempFile;
  if (!ParseFileName(name, &number, &type) ||
      (type != kWalFile && type != kWalBufferFile)) {
    return false;
  }
  const std::string fname = directory + "/" + name;
  // Every open leaves a WAL, which has no data if nothing is written.
  uint64_t size = 0;
  if (!fs->GetFileSize(fname, IOOptions(), &size, nullptr).ok()) {
    return true;
  }
  return size > 0 && (type == kWalBufferFile || HasRecord(fs, fname, number));
}

// Returns true if both names are those of one file: a directory may have
// several names, by symbolic links.
bool IsSameFile(FileSystem* fs, const std::string& a, const std::string& b) {
  bool is_same = false;
  return fs->AreFilesSame(a, b, IOOptions(), &is_same, nullptr).ok() && is_same;
}

// Returns true if the directory is that of another database than `dbname`.
bool IsOtherDatabase(FileSystem* fs, const std::string& directory,
                     const std::string& dbname) {
  const std::string current = CurrentFileName(directory);
  return CleanDirectoryName(fs, directory) != CleanDirectoryName(fs, dbname) &&
         fs->FileExists(current, IOOptions(), nullptr).ok() &&
         !IsSameFile(fs, current, CurrentFileName(dbname));
}

bool HasWals(FileSystem* fs, const std::string& directory) {
  std::vector<std::string> children;
  fs->GetChildren(directory, IOOptions(), &children, nullptr)
      .PermitUncheckedError();
  return std::any_of(children.begin(), children.end(),
                     [&](const std::string& child) {
                       return HasWalData(fs, directory, child);
                     });
}

}  // namespace

Status CheckRepairWalDir(FileSystem* fs, const std::string& dbname,
                         const DBOptions& stored, const std::string& given,
                         Logger* info_log) {
  if (IsOtherDatabase(fs, given, dbname) && HasWals(fs, given)) {
    return Status::InvalidArgument(
        "The options of the repair have the WALs in " + given +
        ", which is the directory of another database: the repair would take "
        "the WALs away from that one. Repair with the wal_dir of this "
        "database. If it is a copy, its OPTIONS file may have the wal_dir of "
        "the original");
  }
  const std::string& named = stored.wal_dir.empty() ? dbname : stored.wal_dir;
  if (CleanDirectoryName(fs, named) == CleanDirectoryName(fs, given)) {
    return Status::OK();
  }
  std::vector<std::string> children;
  const IOStatus s = fs->GetChildren(named, IOOptions(), &children, nullptr);
  if (!s.ok()) {
    ROCKS_LOG_WARN(info_log,
                   "The directory of WALs in the OPTIONS file is not that of "
                   "the repair, and cannot be read: %s",
                   s.ToString().c_str());
    return Status::OK();
  }
  for (const std::string& child : children) {
    if (!HasWalData(fs, named, child) ||
        IsSameFile(fs, named + "/" + child, given + "/" + child)) {
      continue;
    }
    if (IsOtherDatabase(fs, named, dbname) || HasWals(fs, given)) {
      ROCKS_LOG_WARN(info_log,
                     "The OPTIONS file has the WALs in %s, and there are some. "
                     "The repair leaves them alone, as this database seems to "
                     "be a copy: %s. Never open it with wal_dir %s",
                     named.c_str(),
                     IsOtherDatabase(fs, named, dbname)
                         ? "that directory is one of another database"
                         : "the directory of WALs in the options of the repair "
                           "has some, too",
                     named.c_str());
      return Status::OK();
    }
    return Status::InvalidArgument(
        "By its OPTIONS file, the database has its WALs in " + named +
        ", and there are some, such as " + child +
        ". The options of the repair have them in " + given +
        ", where there are none. If this database is a copy, the WALs in " +
        named +
        " may be those of the original, and a repair with that wal_dir would "
        "take them away from it: move the OPTIONS files of the copy elsewhere "
        "instead, and never open the copy with that wal_dir. Only if the WALs "
        "are those of this database, repair with wal_dir " +
        named +
        ": otherwise the next open with it would replay all of them over the "
        "repaired tables, and merge operands would count twice");
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
