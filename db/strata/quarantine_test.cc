//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests that no file is deleted while it is unknown whether the MANIFEST names
// it: the record was written, and the write has failed nevertheless.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "port/stack_trace.h"
#include "rocksdb/metadata.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Reached when the records of a MANIFEST were synced.
constexpr char kAfterSync[] =
    "VersionSet::ProcessManifestWrites:AfterSyncManifest";
// Reached when CURRENT names a new MANIFEST.
constexpr char kAfterSetCurrent[] =
    "VersionSet::ProcessManifestWrites:AfterSetCurrentFile";

void FailIo(void* status) {
  *static_cast<IOStatus*>(status) = RetryableError();
}

}  // namespace

class QuarantineTest : public StrataDBTestBase {
 protected:
  QuarantineTest() : StrataDBTestBase("quarantine_test") {
    external_dir_ = dbname_ + "_external";
    EXPECT_OK(DestroyDir(env_, external_dir_));
    EXPECT_OK(env_->CreateDir(external_dir_));
  }
  ~QuarantineTest() override { EXPECT_OK(DestroyDir(env_, external_dir_)); }

  // Opens an empty DB, in which no job runs unless the test asks for it.
  void Start() {
    Options options = CurrentOptions();
    options.disable_auto_compactions = true;
    // Tests call Resume() on their own.
    options.max_bgerror_resume_count = 0;
    DestroyAndReopen(options);
  }
  void Restart() {
    const Options options = last_options_;
    Reopen(options);
  }

  // Writes an SST file and returns its name.
  std::string MakeFile(const Contents& contents) {
    const std::string name =
        external_dir_ + "/" + std::to_string(++num_external_) + ".sst";
    SstFileWriter writer(EnvOptions(), last_options_);
    EXPECT_OK(writer.Open(name));
    for (const auto& [key, value] : contents) {
      EXPECT_OK(writer.Put(key, value));
    }
    EXPECT_OK(writer.Finish());
    return name;
  }
  // Prepares the ingestion of the file. After this, the next write to the
  // MANIFEST is that of the commit.
  std::unique_ptr<FileIngestionHandle> PrepareIngestion(
      const std::string& file,
      const IngestExternalFileOptions& options = IngestExternalFileOptions()) {
    std::unique_ptr<FileIngestionHandle> handle;
    EXPECT_OK(db_->PrepareFileIngestion(db_->DefaultColumnFamily(), {file},
                                        options, &handle));
    return handle;
  }

  // mode: "copy", "link" or "move".
  static IngestExternalFileOptions IngestionOptions(const std::string& mode) {
    IngestExternalFileOptions options;
    options.link_files = mode == "link";
    options.move_files = mode == "move";
    return options;
  }
  // Ingests a file with new values of "a", which is "1", and "b", while the
  // sync of the MANIFEST fails. file: receives the name of the external file.
  void FailIngestion(const IngestExternalFileOptions& options,
                     std::string* file) {
    Start();
    ASSERT_OK(Put("a", "1"));
    ASSERT_OK(Flush());
    *file = MakeFile({{"a", "2"}, {"b", "2"}});
    std::unique_ptr<FileIngestionHandle> handle =
        PrepareIngestion(*file, options);
    EnableCallBack(kAfterSync, FailIo);
    ASSERT_NOK(db_->CommitFileIngestionHandle(std::move(handle)));
    DisableCallBacks();
  }

  // Deletes the files that may be deleted.
  void DeleteObsoleteFiles() {
    // These return the background error.
    dbfull()->TEST_WaitForBackgroundWork().PermitUncheckedError();
    dbfull()->TEST_DeleteObsoleteFiles();
    dbfull()->TEST_WaitForPurge().PermitUncheckedError();
  }
  // Checks that there are n SST files, and that they are those of the DB.
  void CheckFiles(size_t n) {
    DeleteObsoleteFiles();
    EXPECT_EQ(n, FilesOnDisk(kTableFile).size());
    std::vector<LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    EXPECT_EQ(n, files.size());
  }

  std::string external_dir_;
  int num_external_ = 0;
};

TEST_F(QuarantineTest, IngestedFileStaysForTheNextOpen) {
  for (const std::string mode : {"copy", "link", "move"}) {
    SCOPED_TRACE(mode);
    const IngestExternalFileOptions options = IngestionOptions(mode);
    std::string file;
    FailIngestion(options, &file);
    EXPECT_FALSE(dbfull()->TEST_GetFilesToQuarantine().empty());
    DeleteObsoleteFiles();
    EXPECT_EQ("1", Get("a"));
    EXPECT_EQ("NOT_FOUND", Get("b"));
    // The caller may try again.
    EXPECT_OK(env_->FileExists(file));
    Restart();
    EXPECT_EQ("2", Get("a"));
    EXPECT_EQ("2", Get("b"));
    CheckFiles(2);
  }
}

TEST_F(QuarantineTest, IngestedFileIsDeletedAfterARecovery) {
  for (const std::string mode : {"copy", "link", "move"}) {
    SCOPED_TRACE(mode);
    const IngestExternalFileOptions options = IngestionOptions(mode);
    std::string file;
    FailIngestion(options, &file);
    ASSERT_OK(dbfull()->Resume());
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
    // By the recovery: no other job has to come by.
    EXPECT_EQ(1, FilesOnDisk(kTableFile).size());
    EXPECT_EQ("1", Get("a"));
    ASSERT_OK(db_->IngestExternalFile({file}, options));
    EXPECT_EQ("2", Get("a"));
    CheckFiles(2);
    Restart();
    EXPECT_EQ("2", Get("b"));
    CheckFiles(2);
  }
}

// Nothing names the file if the ingestion ends before the write to the
// MANIFEST.
TEST_F(QuarantineTest, IngestedFileIsDeletedAtOnceWithoutARecord) {
  Start();
  ASSERT_OK(Put("a", "1"));
  ASSERT_OK(Flush());
  std::unique_ptr<FileIngestionHandle> handle =
      PrepareIngestion(MakeFile({{"a", "2"}}));
  EXPECT_EQ(2, FilesOnDisk(kTableFile).size());
  ASSERT_OK(handle->Abort());
  EXPECT_EQ(1, FilesOnDisk(kTableFile).size());

  // The same beside files that are in quarantine.
  handle = PrepareIngestion(MakeFile({{"a", "2"}}));
  ASSERT_OK(Put("b", "3"));
  EnableCallBack(kAfterSync, FailIo);
  ASSERT_NOK(Flush());
  DisableCallBacks();
  EXPECT_EQ(3, FilesOnDisk(kTableFile).size());
  ASSERT_OK(handle->Abort());
  EXPECT_EQ(2, FilesOnDisk(kTableFile).size());
  Restart();
  EXPECT_EQ("1", Get("a"));
  EXPECT_EQ("3", Get("b"));
}

// Imports a column family. The record of its files fails, and if drop_fails,
// that of the drop which follows fails, too.
TEST_F(QuarantineTest, ImportedFilesStayForTheNextOpen) {
  for (const bool drop_fails : {true, false}) {
    SCOPED_TRACE(drop_fails);
    Start();
    ASSERT_OK(Put("a", "1"));
    ASSERT_OK(Flush());
    Checkpoint* checkpoint_ptr = nullptr;
    ASSERT_OK(Checkpoint::Create(db_.get(), &checkpoint_ptr));
    const std::unique_ptr<Checkpoint> checkpoint(checkpoint_ptr);
    const std::string export_dir =
        external_dir_ + "/export" + std::to_string(++num_external_);
    ExportImportFilesMetaData* metadata_ptr = nullptr;
    ASSERT_OK(checkpoint->ExportColumnFamily(db_->DefaultColumnFamily(),
                                             export_dir, &metadata_ptr));
    const std::unique_ptr<ExportImportFilesMetaData> metadata(metadata_ptr);

    // The column family is made before there are files.
    const size_t num_files = FilesOnDisk(kTableFile).size();
    bool has_failed = false;
    EnableCallBack(kAfterSync, [&](void* status) {
      if ((drop_fails || !has_failed) &&
          FilesOnDisk(kTableFile).size() > num_files) {
        FailIo(status);
        has_failed = true;
      }
    });
    ColumnFamilyHandle* imported = nullptr;
    ASSERT_NOK(db_->CreateColumnFamilyWithImport(last_options_, "imported",
                                                 ImportColumnFamilyOptions(),
                                                 *metadata, &imported));
    DisableCallBacks();
    ASSERT_EQ(nullptr, imported);
    DeleteObsoleteFiles();
    if (drop_fails) {
      EXPECT_EQ(num_files + 1, FilesOnDisk(kTableFile).size());
      const Options options = last_options_;
      ReopenWithColumnFamilies({"default", "imported"}, options);
      EXPECT_EQ("1", Get(1, "a"));
      ASSERT_OK(db_->DropColumnFamily(handles_[1]));
    } else {
      EXPECT_EQ(num_files, FilesOnDisk(kTableFile).size());
      Restart();
    }
    EXPECT_EQ("1", Get("a"));
  }
}

// CURRENT names the MANIFEST of an edit that has failed after another one: the
// next open finds it.
TEST_F(QuarantineTest, FilesOfALaterFailureStay) {
  Start();
  ASSERT_OK(Put("a", "1"));
  std::unique_ptr<FileIngestionHandle> handle =
      PrepareIngestion(MakeFile({{"x", "2"}}));
  EnableCallBack(kAfterSync, FailIo);
  ASSERT_NOK(Flush());
  DisableCallBacks();
  EnableCallBack(kAfterSetCurrent, FailIo);
  ASSERT_NOK(db_->CommitFileIngestionHandle(std::move(handle)));
  DisableCallBacks();
  DeleteObsoleteFiles();
  Restart();
  EXPECT_EQ("1", Get("a"));
  EXPECT_EQ("2", Get("x"));
}

// SetOptions() makes a Version, but writes no MANIFEST.
TEST_F(QuarantineTest, SetOptionsDoesNotEndIt) {
  for (const bool resumes : {false, true}) {
    SCOPED_TRACE(resumes);
    Start();
    ASSERT_OK(Put("a", "1"));
    EnableCallBack(kAfterSync, FailIo);
    ASSERT_NOK(Flush());
    DisableCallBacks();
    ASSERT_OK(db_->SetOptions({{"write_buffer_size", "1000000"}}));
    EXPECT_FALSE(dbfull()->TEST_GetFilesToQuarantine().empty());
    DeleteObsoleteFiles();
    EXPECT_EQ(1, FilesOnDisk(kTableFile).size());
    if (resumes) {
      ASSERT_OK(dbfull()->Resume());
      EXPECT_TRUE(dbfull()->TEST_GetFilesToQuarantine().empty());
      EXPECT_EQ("1", Get("a"));
      CheckFiles(1);
    }
    Restart();
    EXPECT_EQ("1", Get("a"));
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  RegisterCustomObjects(argc, argv);
  return RUN_ALL_TESTS();
}
