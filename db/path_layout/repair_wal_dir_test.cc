//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/repair_wal_dir.h"

#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/log_writer.h"
#include "db/path_layout/path_test_util.h"
#include "file/filename.h"
#include "file/writable_file_writer.h"
#include "port/stack_trace.h"
#include "rocksdb/db.h"
#include "rocksdb/utilities/options_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class RepairWalDirTest : public PathTestBase {
 public:
  RepairWalDirTest() : PathTestBase("repair_wal_dir_test") {}

  // Returns options of a family without a layout.
  Options WalOptions(const std::string& wal_dir) {
    Options options = PathOptions("a", 0, {}, {});
    options.enable_blob_files = false;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    options.wal_dir = wal_dir;
    return options;
  }

  Status Repair(const Options& options) {
    return RepairDB(dbname_, DBOptions(options),
                    {{kDefaultColumnFamilyName, options}, {"cf1", options}});
  }

  // Makes a closed database of two families. The WAL has an operand that an SST
  // file has, too, as the other family still needs the WAL.
  void Fill(const Options& options) {
    DestroyAll();
    OpenNew({options, options});
    // A repair knows a family by its tables.
    PutRange(1, 20, 30, 0, /*wal=*/true);
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(1)));
    WriteOptions sync;
    sync.sync = true;
    ASSERT_OK(db_->Merge(sync, Handle(0), "merged", "1"));
    PutRange(1, 0, 20, 0, /*wal=*/true);
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
    PutRange(0, 0, 20, 1, /*wal=*/true);
    Close();
  }

  // Returns the contents of all files of the database, except LOG.
  std::map<std::string, std::string> Contents(const std::string& wal_dir) {
    std::map<std::string, std::string> result;
    for (const std::string& directory : {dbname_, wal_dir}) {
      std::vector<std::string> children;
      env_->GetChildren(directory, &children).PermitUncheckedError();
      for (const std::string& child : children) {
        uint64_t number = 0;
        FileType type = kTempFile;
        const std::string fname = directory + "/" + child;
        if (ParseFileName(child, &number, &type) && type != kInfoLogFile) {
          EXPECT_OK(ReadFileToString(env_, fname, &result[fname]));
        }
      }
    }
    return result;
  }

  // Makes a WAL 000008.log with one record.
  void WriteWal(const std::string& directory, const std::string& record) {
    std::unique_ptr<WritableFileWriter> file;
    ASSERT_OK(WritableFileWriter::Create(env_->GetFileSystem(),
                                         directory + "/000008.log",
                                         FileOptions(), &file, nullptr));
    log::Writer writer(std::move(file), 8, /*recycle_log_files=*/false);
    ASSERT_OK(writer.AddRecord(WriteOptions(), record));
    ASSERT_OK(writer.Close(WriteOptions()));
  }

  void CheckRefused(const Options& options, const std::string& named,
                    const std::string& given) {
    const auto before = Contents(named);
    const Status s = Repair(options);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    for (const std::string& part : {named, given}) {
      EXPECT_NE(s.ToString().find(part), std::string::npos) << s.ToString();
    }
    EXPECT_NE(s.ToString().find(".log"), std::string::npos) << s.ToString();
    EXPECT_EQ(before, Contents(named));
  }
};

// The repair would not find the WALs. The next open would replay them, and the
// operand would count twice.
TEST_F(RepairWalDirTest, RefusesAnotherDirectoryThanTheOptionsFileNames) {
  const std::string wals = PathOf("wals", 0);
  const std::string other = PathOf("wals", 1);
  for (const std::string& named : {wals, dbname_}) {
    SCOPED_TRACE(named);
    const Options options = WalOptions(named == dbname_ ? "" : named);
    Fill(options);
    ASSERT_OK(device_env_->CreateDirIfMissing(other));
    CheckRefused(WalOptions(other), named, other);
    if (named != dbname_) {
      CheckRefused(WalOptions(""), named, dbname_);
    }
    // The database is as it was.
    ASSERT_OK(Open({options, options}, /*create_families=*/false));
    ASSERT_OK(VerifyData());
    std::string merged;
    ASSERT_OK(db_->Get(ReadOptions(), Handle(0), "merged", &merged));
    EXPECT_EQ(merged, "1");
  }
}

// A repair without named column families is refused, too, and one without a
// MANIFEST.
TEST_F(RepairWalDirTest, RefusesWithoutFamiliesAndManifest) {
  const Options options = WalOptions(PathOf("wals", 0));
  Fill(options);
  std::vector<std::string> children;
  ASSERT_OK(env_->GetChildren(dbname_, &children));
  for (const std::string& child : children) {
    uint64_t number = 0;
    FileType type = kTempFile;
    if (ParseFileName(child, &number, &type) && type == kDescriptorFile) {
      ASSERT_OK(env_->DeleteFile(dbname_ + "/" + child));
    }
  }
  EXPECT_TRUE(RepairDB(dbname_, WalOptions("")).IsInvalidArgument());
  CheckRefused(WalOptions(""), PathOf("wals", 0), dbname_);
}

// The right directory may be spelled in another way.
TEST_F(RepairWalDirTest, AcceptsOtherNamesOfTheDirectory) {
  const std::string wals = PathOf("wals", 0);
  const std::string link = dbname_ + "_link";
  for (const std::string& name :
       {wals, wals + "/", wals + "/../" + wals.substr(wals.rfind('/') + 1),
        link}) {
    SCOPED_TRACE(name);
    const Options options = WalOptions(wals);
    Fill(options);
    if (name == link) {
      ::unlink(link.c_str());
      ASSERT_EQ(0, ::symlink(wals.c_str(), link.c_str()));
    }
    ASSERT_OK(Repair(WalOptions(name)));
    ASSERT_OK(Open({options, options}, /*create_families=*/false));
    ASSERT_OK(VerifyData());
    // The repair has moved the WALs away.
    Close();
    ASSERT_OK(Repair(WalOptions("")));
    ASSERT_OK(Open({options, options}, /*create_families=*/false));
    ASSERT_OK(VerifyData());
  }
  ::unlink(link.c_str());
}

// WALs without data do not matter, nor does a directory that is gone with the
// place from which the database was moved, nor one without an OPTIONS file that
// names it.
TEST_F(RepairWalDirTest, AcceptsAnotherDirectoryWithoutWals) {
  const std::string wals = PathOf("wals", 0);
  const Options options = WalOptions(wals);
  OpenNew({options, options});
  for (int family = 0; family < 2; ++family) {
    PutRange(family, 0, 20);
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
  }
  Close();
  std::vector<std::string> children;
  ASSERT_OK(env_->GetChildren(wals, &children));
  bool has_wal = false;
  for (const std::string& child : children) {
    uint64_t number = 0;
    FileType type = kTempFile;
    has_wal |= ParseFileName(child, &number, &type) && type == kWalFile;
  }
  ASSERT_TRUE(has_wal);
  ASSERT_OK(Repair(WalOptions("")));
  ASSERT_OK(Open({options, options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());

  Fill(options);
  ASSERT_OK(env_->RenameFile(wals, PathOf("wals", 1)));
  ASSERT_OK(Repair(WalOptions(PathOf("wals", 1))));

  Fill(options);
  std::string options_file;
  ASSERT_OK(GetLatestOptionsFileName(dbname_, env_, &options_file));
  while (GetLatestOptionsFileName(dbname_, env_, &options_file).ok()) {
    ASSERT_OK(env_->DeleteFile(dbname_ + "/" + options_file));
  }
  ASSERT_OK(Repair(WalOptions("")));
}

// A WAL may begin with records about itself.
TEST_F(RepairWalDirTest, AcceptsWalsWithHeadersAlone) {
  const std::string wals = PathOf("wals", 0);
  Options options = WalOptions(wals);
  options.track_and_verify_wals = true;
  // RocksDB refuses a database that exists and has no WAL in its wal_dir.
  DestroyAll();
  OpenNew({options, options});
  // Each flush begins a WAL.
  for (int family = 0; family < 2; ++family) {
    PutRange(family, 0, 20, 0, /*wal=*/true);
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
  }
  Close();
  uint64_t total = 0;
  for (const auto& [name, contents] : Contents(wals)) {
    total += name.find(wals) == 0 ? contents.size() : 0;
  }
  ASSERT_GT(total, 0);
  Options given = options;
  given.wal_dir = "";
  ASSERT_OK(Repair(given));
  // The WAL before the one that is left is gone.
  options.track_and_verify_wals = false;
  ASSERT_OK(Open({options, options}, /*create_families=*/false));
  ASSERT_OK(VerifyData());
}

// The OPTIONS file of a copy names the WALs of the original, which is open. The
// repair of the copy leaves them alone.
TEST_F(RepairWalDirTest, LeavesTheWalsOfTheOriginalAlone) {
  const std::string copy = PathOf("copy", 0);
  const auto copy_files = [&](const std::string& from, bool is_wal_dir) {
    ASSERT_OK(env_->CreateDirIfMissing(copy));
    std::vector<std::string> children;
    ASSERT_OK(env_->GetChildren(from, &children));
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kTempFile;
      std::string contents;
      if (ParseFileName(child, &number, &type) && type != kInfoLogFile &&
          type != kDBLockFile && (type == kWalFile) == is_wal_dir) {
        ASSERT_OK(ReadFileToString(env_, from + "/" + child, &contents));
        ASSERT_OK(WriteStringToFile(env_, contents, copy + "/" + child));
      }
    }
  };
  const auto repair = [&](const Options& options) {
    return RepairDB(copy, DBOptions(options),
                    {{kDefaultColumnFamilyName, options}, {"cf1", options}});
  };
  const std::string wals = PathOf("wals", 0);
  for (const bool has_wals : {true, false}) {
    SCOPED_TRACE(has_wals);
    DestroyDir(env_, copy).PermitUncheckedError();
    const Options options = WalOptions(wals);
    Fill(options);
    const auto before = Contents(wals);
    copy_files(dbname_, /*is_wal_dir=*/false);
    if (has_wals) {
      copy_files(wals, /*is_wal_dir=*/true);
    }
    const Status s = repair(WalOptions(""));
    if (has_wals) {
      ASSERT_OK(s);
    } else {
      EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
      EXPECT_NE(s.ToString().find("If this database is a copy"),
                std::string::npos)
          << s.ToString();
      EXPECT_LT(s.ToString().find("never open the copy with that wal_dir"),
                s.ToString().find("repair with wal_dir"));
    }
    EXPECT_EQ(before, Contents(wals));
    ASSERT_OK(Open({options, options}, /*create_families=*/false));
    ASSERT_OK(VerifyData());
  }
}

// A WAL directory that has a CURRENT is that of another database.
TEST_F(RepairWalDirTest, KnowsTheDirectoryOfAnotherDatabase) {
  const std::string original = PathOf("original", 0);
  ASSERT_OK(env_->CreateDirIfMissing(dbname_));
  ASSERT_OK(env_->CreateDirIfMissing(original));
  WriteWal(original, "data");
  DBOptions stored;
  stored.wal_dir = original;
  FileSystem* const fs = env_->GetFileSystem().get();
  const auto check = [&](const std::string& given) {
    return CheckRepairWalDir(fs, dbname_, stored, given, /*info_log=*/nullptr);
  };
  EXPECT_TRUE(check(dbname_).IsInvalidArgument());
  EXPECT_OK(check(original));
  ASSERT_OK(
      WriteStringToFile(env_, "MANIFEST-000001\n", CurrentFileName(original)));
  EXPECT_OK(check(dbname_));
  const Status s = check(original);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find("the directory of another database"),
            std::string::npos)
      << s.ToString();
  ASSERT_OK(env_->DeleteFile(original + "/000008.log"));
  EXPECT_OK(check(original));
  ASSERT_OK(DestroyDir(env_, original));
}

// A part of a WAL that is in a WAL buffer counts, too.
TEST_F(RepairWalDirTest, FindsAWalBuffer) {
  const std::string wals = PathOf("wals", 0);
  ASSERT_OK(env_->CreateDirIfMissing(wals));
  DBOptions stored;
  stored.wal_dir = wals;
  const auto check = [&] {
    return CheckRepairWalDir(env_->GetFileSystem().get(), dbname_, stored,
                             /*given=*/dbname_, /*info_log=*/nullptr);
  };
  ASSERT_OK(WriteStringToFile(env_, "x", wals + "/000007.sst"));
  ASSERT_OK(WriteStringToFile(env_, "", wals + "/000008.log"));
  EXPECT_OK(check());
  ASSERT_OK(WriteStringToFile(env_, "x", WalBufferFileName(wals)));
  EXPECT_TRUE(check().IsInvalidArgument());
  ASSERT_OK(env_->DeleteFile(WalBufferFileName(wals)));
  WriteWal(wals, "data");
  EXPECT_TRUE(check().IsInvalidArgument());
}

// A WAL with a wrong checksum may have records, although none can be read.
TEST_F(RepairWalDirTest, ADamagedWalCounts) {
  const std::string wals = PathOf("wals", 0);
  ASSERT_OK(env_->CreateDirIfMissing(wals));
  DBOptions stored;
  stored.wal_dir = wals;
  WriteWal(wals, "data");
  const std::string wal = wals + "/000008.log";
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, wal, &contents));
  for (size_t i = 0; i < contents.size(); ++i) {
    SCOPED_TRACE(i);
    // The length and the type, bytes 4 to 6, may be those of a record whose end
    // was not written when the power failed. An open replays nothing of it.
    if (i >= 4 && i <= 6) {
      continue;
    }
    std::string damaged = contents;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    ASSERT_OK(WriteStringToFile(env_, damaged, wal));
    const Status s =
        CheckRepairWalDir(env_->GetFileSystem().get(), dbname_, stored,
                          /*given=*/dbname_, /*info_log=*/nullptr);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
