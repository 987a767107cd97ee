//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_move_paths.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/file_system.h"
#include "rocksdb/utilities/object_registry.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/strata/ldb_call_test_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/file_checksum_helper.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A function of checksums that RocksDB does not have.
class OwnChecksum : public FileChecksumGenCrc32c {
 public:
  using FileChecksumGenCrc32c::FileChecksumGenCrc32c;
  const char* Name() const override { return "OwnChecksum"; }
};

class OwnChecksumFactory : public FileChecksumGenFactory {
 public:
  static const char* kClassName() { return "OwnChecksumFactory"; }
  const char* Name() const override { return kClassName(); }
  std::unique_ptr<FileChecksumGenerator> CreateFileChecksumGenerator(
      const FileChecksumGenContext& context) override {
    return std::make_unique<OwnChecksum>(context);
  }
};

// The directories are devices of their own.
class NoLinkFS : public FileSystemWrapper {
 public:
  explicit NoLinkFS(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "NoLinkFS"; }
  IOStatus LinkFile(const std::string& /*from*/, const std::string& /*to*/,
                    const IOOptions& /*options*/,
                    IODebugContext* /*dbg*/) override {
    return IOStatus::NotSupported("another device");
  }
};

}  // namespace

// The default column family has its files in the directory of the database. The
// other one has SST files on path 0, and blob and delta files on path 1.
class LdbMovePathsTest : public testing::Test {
 protected:
  LdbMovePathsTest()
      : dbname_(test::PerThreadDBPath("ldb_move_paths_test")),
        env_(Env::Default()) {
    DestroyAll();
    for (Options* options : {&plain_, &tiered_}) {
      options->create_if_missing = true;
      options->create_missing_column_families = true;
      options->disable_auto_compactions = true;
    }
    tiered_.cf_paths = {{Dir("fast"), 1 << 30}, {Dir("slow"), 1 << 30}};
    tiered_.level_sst_path_ids = {0};
    tiered_.level_blob_path_ids = {1};
    tiered_.enable_blob_files = true;
    tiered_.min_blob_size = 100;
  }
  ~LdbMovePathsTest() override {
    Close();
    DestroyAll();
  }

  std::string Dir(const std::string& name) const {
    return dbname_ + "_" + name;
  }

  void DestroyAll() {
    EXPECT_OK(DestroyDir(env_, dbname_));
    for (const char* name : {"fast", "slow", "new", "other"}) {
      EXPECT_OK(DestroyDir(env_, Dir(name)));
    }
  }

  Status Open() {
    Close();
    const std::vector<ColumnFamilyDescriptor> families = {
        {kDefaultColumnFamilyName, plain_}, {"tiered", tiered_}};
    return DB::Open(plain_, dbname_, families, &handles_, &db_);
  }

  // Opens the database with all options of its OPTIONS file.
  Status OpenStored() {
    Close();
    DBOptions db_options;
    std::vector<ColumnFamilyDescriptor> families;
    const Status s =
        LoadLatestOptions(ConfigOptions(), dbname_, &db_options, &families);
    return s.ok() ? DB::Open(db_options, dbname_, families, &handles_, &db_)
                  : s;
  }

  void Close() {
    for (ColumnFamilyHandle* handle : handles_) {
      EXPECT_OK(db_->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    db_.reset();
  }

  void Fill() {
    ASSERT_OK(Open());
    for (ColumnFamilyHandle* handle : handles_) {
      ASSERT_OK(db_->Put(WriteOptions(), handle, "key", Value(handle)));
      ASSERT_OK(db_->Flush(FlushOptions(), handle));
    }
    Close();
  }

  static std::string Value(ColumnFamilyHandle* handle) {
    return handle->GetName() + std::string(5000, 'v');
  }

  // Checks that both families have their value, and closes the database.
  void CheckData() {
    ASSERT_EQ(handles_.size(), 2u);
    for (ColumnFamilyHandle* handle : handles_) {
      std::string value;
      ASSERT_OK(db_->Get(ReadOptions(), handle, "key", &value));
      EXPECT_EQ(value, Value(handle));
    }
    Close();
  }

  // Returns the number of SST, blob and delta files.
  size_t NumFiles(const std::string& directory) {
    std::vector<std::string> names;
    env_->GetChildren(directory, &names).PermitUncheckedError();
    return static_cast<size_t>(
        std::count_if(names.begin(), names.end(), [](const std::string& name) {
          uint64_t number = 0;
          FileType type = kTempFile;
          return ParseFileName(name, &number, &type) &&
                 (type == kTableFile || type == kBlobFile ||
                  type == kDeltaFile);
        }));
  }

  // Returns the exit code, and stores what the command prints in output_.
  int Run(const std::vector<std::string>& args) {
    std::vector<std::string> all = {"--db=" + dbname_};
    all.insert(all.end(), args.begin(), args.end());
    return RunLdb(all, ldb_options_, &output_);
  }

  int Move(const std::string& from, const std::string& to,
           std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"move_paths", "--from=" + from, "--to=" + to});
    return Run(more);
  }

  bool Printed(const std::string& text) {
    return output_.find(text) != std::string::npos;
  }

  const std::string dbname_;
  Env* const env_;
  Options plain_;
  Options tiered_;
  Options ldb_options_;
  std::vector<ColumnFamilyHandle*> handles_;
  std::unique_ptr<DB> db_;
  std::string output_;
};

TEST_F(LdbMovePathsTest, LaterOpensAndCommandsFindTheFiles) {
  Fill();
  ASSERT_EQ(NumFiles(Dir("slow")), 1u);
  ASSERT_EQ(0, Move(Dir("slow"), Dir("new"), {"--dry_run"})) << output_;
  EXPECT_TRUE(Printed("To be moved: 1 file (")) << output_;
  EXPECT_TRUE(Printed("path id 1 of column family tiered, blob: 1 file ("))
      << output_;
  EXPECT_EQ(NumFiles(Dir("slow")), 1u);
  EXPECT_EQ(NumFiles(Dir("new")), 0u);

  ASSERT_EQ(0, Move(Dir("slow"), Dir("new"),
                    {"--rate_limit_mb=1000", "--verify=true"}))
      << output_;
  EXPECT_TRUE(Printed("Moved 1 file (")) << output_;
  EXPECT_FALSE(Printed("DB::Open")) << output_;
  EXPECT_EQ(NumFiles(Dir("slow")), 0u);
  EXPECT_EQ(NumFiles(Dir("new")), 1u);
  ASSERT_EQ(0, Run({"--column_family=tiered", "get", "key"})) << output_;
  EXPECT_TRUE(Printed("tieredv")) << output_;
  ASSERT_EQ(0, Run({"--column_family=default", "get", "key"})) << output_;
  ASSERT_OK(OpenStored());
  CheckData();
  // The old paths no longer have the files.
  EXPECT_NOK(Open());
  ASSERT_EQ(0, Move(Dir("slow"), Dir("new"))) << output_;
  EXPECT_TRUE(Printed("Nothing to move")) << output_;
}

TEST_F(LdbMovePathsTest, ListsOfDirectories) {
  Fill();
  ASSERT_EQ(0, Move(Dir("slow") + "," + Dir("fast"),
                    Dir("new") + "," + Dir("other"), {"--verify=false"}))
      << output_;
  EXPECT_EQ(NumFiles(Dir("slow")) + NumFiles(Dir("fast")), 0u);
  EXPECT_EQ(NumFiles(Dir("new")), 1u);
  EXPECT_EQ(NumFiles(Dir("other")), 1u);
  ASSERT_OK(OpenStored());
  CheckData();
}

// Directories that were moved by hand are named by --cf_paths, and the OPTIONS
// file has the right ones afterwards.
TEST_F(LdbMovePathsTest, CfPathsReplaceThoseOfTheOptionsFile) {
  Fill();
  ASSERT_OK(env_->RenameFile(Dir("fast"), Dir("other")));
  ASSERT_EQ(1, Move(Dir("other"), Dir("new"))) << output_;
  EXPECT_TRUE(Printed("the source is no path of a column family")) << output_;
  EXPECT_TRUE(Printed(Dir("fast") + ", " + Dir("slow"))) << output_;
  ASSERT_EQ(0, Move(Dir("slow"), Dir("new"),
                    {"--cf_paths=" + Dir("other") + "," + Dir("slow")}))
      << output_;
  ASSERT_OK(OpenStored());
  CheckData();
}

// Without a layout the OPTIONS file has no paths.
TEST_F(LdbMovePathsTest, PathsWithoutALayout) {
  tiered_.level_sst_path_ids.clear();
  tiered_.level_blob_path_ids.clear();
  Fill();
  ASSERT_EQ(1, Move(Dir("fast"), Dir("new"))) << output_;
  EXPECT_TRUE(Printed("see --cf_paths")) << output_;
  const std::string paths = "--cf_paths=" + Dir("fast") + "," + Dir("slow");
  // The files of the default family are not there.
  ASSERT_EQ(1, Move(Dir("fast"), Dir("new"), {paths})) << output_;
  EXPECT_TRUE(Printed("Are these the paths of the database")) << output_;
  EXPECT_EQ(NumFiles(Dir("fast")), 2u);
  ASSERT_EQ(0, Move(Dir("fast"), Dir("new"), {paths, "--column_family=tiered"}))
      << output_;
  EXPECT_TRUE(Printed(
      "Pass them to DB::Open from now on: cf_paths=" + Dir("new") + ","))
      << output_;
  EXPECT_EQ(NumFiles(Dir("fast")), 0u);
  tiered_.cf_paths[0].path = Dir("new");
  ASSERT_OK(Open());
  CheckData();
}

// The OPTIONS file has the paths of the default family alone. The other one has
// one path, the source.
TEST_F(LdbMovePathsTest, FamilyWithoutALayoutBesideOneWithIt) {
  plain_.cf_paths = tiered_.cf_paths;
  plain_.level_sst_path_ids = {1};
  tiered_.cf_paths = {{Dir("slow"), 1 << 30}};
  tiered_.level_sst_path_ids.clear();
  tiered_.level_blob_path_ids.clear();
  Fill();
  const size_t num_files = NumFiles(Dir("slow"));
  ASSERT_EQ(num_files, 3u);
  ASSERT_EQ(1, Move(Dir("slow"), Dir("new"))) << output_;
  EXPECT_TRUE(
      Printed("is a file of column family tiered, for which no paths "
              "are known. Give them by --cf_paths and "
              "--column_family=tiered"))
      << output_;
  EXPECT_EQ(NumFiles(Dir("slow")), num_files);
  // The paths are those of this family, and not of the default one, which has
  // files on its path 1.
  ASSERT_EQ(0, Move(Dir("slow"), Dir("new"),
                    {"--cf_paths=" + Dir("slow"), "--column_family=tiered"}))
      << output_;
  EXPECT_TRUE(Printed("column family tiered. Pass them to DB::Open"))
      << output_;
  EXPECT_EQ(NumFiles(Dir("slow")), 0u);
  EXPECT_EQ(NumFiles(Dir("new")), num_files);
  plain_.cf_paths[1].path = Dir("new");
  tiered_.cf_paths[0].path = Dir("new");
  ASSERT_OK(Open());
  CheckData();
}

// The OPTIONS file names the function of the checksums in the MANIFEST.
TEST_F(LdbMovePathsTest, ChecksumsOfAnotherFunction) {
  ObjectLibrary::Default()->AddFactory<FileChecksumGenFactory>(
      OwnChecksumFactory::kClassName(),
      [](const std::string& /*uri*/,
         std::unique_ptr<FileChecksumGenFactory>* guard,
         std::string* /*errmsg*/) {
        guard->reset(new OwnChecksumFactory());
        return guard->get();
      });
  plain_.file_checksum_gen_factory = std::make_shared<OwnChecksumFactory>();
  Fill();
  const std::unique_ptr<Env> env =
      NewCompositeEnv(std::make_shared<NoLinkFS>(env_->GetFileSystem()));
  ldb_options_.env = env.get();
  std::vector<std::string> names;
  ASSERT_OK(env_->GetChildren(Dir("slow"), &names));
  ASSERT_EQ(names.size(), 1u);
  const std::string blob_file = Dir("slow") + "/" + names[0];
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, blob_file, &contents));
  std::string changed = contents;
  changed[changed.size() / 2] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, changed, blob_file));
  ASSERT_EQ(1, Move(Dir("slow"), Dir("new"))) << output_;
  EXPECT_TRUE(Printed("does not have the checksum")) << output_;
  ASSERT_OK(WriteStringToFile(env_, contents, blob_file));
  ASSERT_EQ(0, Move(Dir("slow"), Dir("new"))) << output_;
  EXPECT_FALSE(Printed("were not compared")) << output_;
  ldb_options_.env = env_;
  ASSERT_OK(OpenStored());
  CheckData();
}

// All column families have the paths of the database.
TEST_F(LdbMovePathsTest, PathsOfTheDatabase) {
  tiered_ = plain_;
  plain_.db_paths = {{Dir("fast"), 1 << 30}};
  Fill();
  ASSERT_EQ(NumFiles(Dir("fast")), 2u);
  ASSERT_EQ(0, Move(Dir("fast"), Dir("new"), {"--cf_paths=" + Dir("fast")}))
      << output_;
  EXPECT_EQ(NumFiles(Dir("new")), 2u);
  plain_.db_paths[0].path = Dir("new");
  ASSERT_OK(Open());
  CheckData();
}

TEST_F(LdbMovePathsTest, WrongFlagsAreRefused) {
  Fill();
  ASSERT_EQ(1, Run({"move_paths"})) << output_;
  EXPECT_TRUE(Printed("--from and --to")) << output_;
  ASSERT_EQ(1, Run({"move_paths", "--from=" + Dir("slow")})) << output_;
  ASSERT_EQ(1, Move(Dir("slow") + "," + Dir("fast"), Dir("new"))) << output_;
  EXPECT_TRUE(Printed("lists of the same length")) << output_;
  ASSERT_EQ(1, Move(Dir("slow"), Dir("new") + ":10g")) << output_;
  EXPECT_TRUE(Printed("a path keeps its own")) << output_;
  for (const char* wrong : {"0", "-1", "x", "1.5", "99999999999999999999"}) {
    ASSERT_EQ(1, Move(Dir("slow"), Dir("new"),
                      {std::string("--rate_limit_mb=") + wrong}))
        << output_;
    EXPECT_TRUE(Printed("--rate_limit_mb")) << output_;
  }
  ASSERT_EQ(1, Move(Dir("slow"), Dir("new"), {"--verify=maybe"})) << output_;
  EXPECT_TRUE(Printed("neither true nor false")) << output_;
  ASSERT_EQ(1, Move(Dir("slow"), Dir("new"), {"more"})) << output_;
  EXPECT_TRUE(Printed("takes no parameters")) << output_;
  ASSERT_EQ(1, Move(Dir("slow"), Dir("fast"))) << output_;
  EXPECT_TRUE(Printed("would be one directory")) << output_;
  EXPECT_EQ(NumFiles(Dir("slow")), 1u);
  ASSERT_OK(OpenStored());
  ASSERT_EQ(1, Move(Dir("slow"), Dir("new"))) << output_;
  EXPECT_TRUE(Printed("The database must not be open")) << output_;
  CheckData();
}

TEST_F(LdbMovePathsTest, NoDatabase) {
  ASSERT_EQ(1, Move(Dir("slow"), Dir("new"))) << output_;
  EXPECT_TRUE(Printed("is no database")) << output_;
  EXPECT_FALSE(env_->FileExists(dbname_).ok());
}

TEST_F(LdbMovePathsTest, HelpNamesTheCommand) {
  std::string help;
  MovePathsCommand::Help(help);
  EXPECT_NE(help.find("move_paths --from="), std::string::npos) << help;
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
