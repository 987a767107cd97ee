//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_mover.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/path_layout/manifest_file_places.h"
#include "db/path_layout/manifest_files.h"
#include "db/path_layout/manifest_records.h"
#include "db/path_layout/path_copy_test_util.h"
#include "db/path_layout/path_move_mark.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/system_clock.h"
#include "rocksdb/utilities/options_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A device that is almost full.
class FullDeviceFS : public FileSystemWrapper {
 public:
  FullDeviceFS(const std::shared_ptr<FileSystem>& target, uint64_t free)
      : FileSystemWrapper(target), free_(free) {}
  const char* Name() const override { return "FullDeviceFS"; }
  IOStatus GetFreeSpace(const std::string& /*path*/,
                        const IOOptions& /*options*/, uint64_t* free,
                        IODebugContext* /*dbg*/) override {
    *free = free_;
    return IOStatus::OK();
  }

 private:
  const uint64_t free_;
};

// A file system in a network that makes a hard link, and returns an error
// because it has lost the answer.
class LostAnswerFS : public FileSystemWrapper {
 public:
  explicit LostAnswerFS(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "LostAnswerFS"; }
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus s = target()->LinkFile(from, to, options, dbg);
    return s.ok() ? IOStatus::IOError("lost answer") : s;
  }
};

// A file system in a network whose server makes a hard link late: the client
// has given up waiting, and has been told that there is no such file to delete.
class LateLinkFS : public FileSystemWrapper {
 public:
  explicit LateLinkFS(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "LateLinkFS"; }
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& /*options*/,
                    IODebugContext* /*dbg*/) override {
    from_ = from;
    to_ = to;
    return IOStatus::IOError("timed out");
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions& options,
                      IODebugContext* dbg) override {
    const IOStatus s = target()->DeleteFile(name, options, dbg);
    if (!to_.empty() && name == to_) {
      EXPECT_OK(target()->LinkFile(from_, to_, options, dbg));
      to_.clear();
      ++num_links_;
    }
    return s;
  }
  int num_links() const { return num_links_; }

 private:
  // The link that is still to be made; empty: none.
  std::string from_;
  std::string to_;
  int num_links_ = 0;
};

}  // namespace

// Two column families on the paths 0 and 1. All files of the first one, SST and
// delta files, are on path 1, and so are the blob files of the second one.
class PathMoverTest : public PathCopyTestBase {
 public:
  PathMoverTest() : PathCopyTestBase("path_mover_test") {}
  ~PathMoverTest() override {
    Close();
    DestroyLinked();
  }

  // Returns a directory outside of the database. All of them are devices of
  // their own, or, with is_one_device_, on that of the database.
  std::string Dir(uint32_t number) {
    return is_one_device_ ? dbname_ + "_p" + std::to_string(number)
                          : PathOf("a", number);
  }

  void DestroyLinked() {
    for (int i = 0; i < 4; ++i) {
      EXPECT_OK(DestroyDir(env_, dbname_ + "_p" + std::to_string(i)));
    }
  }

  std::vector<Options> MakeOptions() {
    std::vector<Options> options = {FeatureOptions(kDeltas, "a", 2, {1}, {}),
                                    FeatureOptions(kMap, "a", 2, {0}, {1})};
    for (Options& family : options) {
      for (uint32_t i = 0; i < family.cf_paths.size(); ++i) {
        family.cf_paths[i].path = Dir(i);
      }
    }
    return options;
  }

  // Makes a new database with these options, and closes it.
  void MakeDB(const std::vector<Options>& options) {
    DestroyAll();
    DestroyLinked();
    options_ = options;
    given_.clear();
    OpenNew(options_);
    PutRange(0, 0, kKeys);
    FillDeltas();
    if (options_.size() > 1) {
      PutRange(1, 0, kKeys);
      ASSERT_OK(db_->Flush(FlushOptions(), Handle(1)));
    }
    ASSERT_OK(db_->WaitForCompact(WaitForCompactOptions()));
    Close();
  }
  void MakeDB() { MakeDB(MakeOptions()); }

  static std::string NameOf(size_t family) {
    return family == 0 ? kDefaultColumnFamilyName
                       : "cf" + std::to_string(family);
  }

  // Reads the paths in the OPTIONS file.
  void LoadStored() {
    stored_.clear();
    DBOptions db_options;
    std::vector<ColumnFamilyDescriptor> families;
    ConfigOptions config;
    config.env = device_env_.get();
    ASSERT_OK(LoadLatestOptions(config, dbname_, &db_options, &families));
    for (const ColumnFamilyDescriptor& family : families) {
      stored_[family.name] = family.options.cf_paths;
    }
  }

  // Opens the database with the paths in its OPTIONS file, or with given ones.
  Status OpenStored() {
    LoadStored();
    std::vector<Options> options = options_;
    for (size_t i = 0; i < options.size(); ++i) {
      const std::string name = NameOf(i);
      options[i].cf_paths =
          given_.count(name) > 0 ? given_[name] : stored_[name];
    }
    return Open(options, /*create_families=*/false);
  }

  // Writes to all files of the first family, so that the MANIFEST has others.
  void Work() {
    for (int family = 0; family < 2; ++family) {
      PutRange(family, kKeys / 2, kKeys + 5, /*version=*/1);
      ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
      ASSERT_OK(db_->CompactRange(CompactRangeOptions(), Handle(family),
                                  nullptr, nullptr));
    }
    ASSERT_OK(db_->WaitForCompact(WaitForCompactOptions()));
  }

  Status Move(const std::vector<PathMoveRequest>& requests,
              FileSystem* fs = nullptr) {
    lines_.clear();
    LoadStored();
    PathMover::MoveOptions options = move_options_;
    options.requests = requests;
    options.report = [this](const std::string& line) {
      lines_.push_back(line);
    };
    PathMover mover(fs == nullptr ? fs_.get() : fs,
                    SystemClock::Default().get(), dbname_, options);
    Status s = mover.Lock();
    if (s.ok()) {
      s = mover.Run(
          [this](const std::string& name) {
            PathMover::Family family;
            family.paths =
                given_.count(name) > 0 ? given_[name] : stored_[name];
            family.comparator = BytewiseComparator();
            return family;
          },
          wal_dir_, /*checksums=*/nullptr);
    }
    summary_ = mover.summary();
    return s;
  }

  bool Reported(const std::string& text) {
    return std::any_of(lines_.begin(), lines_.end(),
                       [&](const std::string& line) {
                         return line.find(text) != std::string::npos;
                       });
  }

  bool Exists(const std::string& name) { return env_->FileExists(name).ok(); }
  std::string Mark() { return dbname_ + "/" + PathMoveMark::Name(); }

  // Returns the names of SST, blob and delta files.
  std::set<std::string> OnPath(const std::string& directory) {
    std::set<std::string> result;
    if (Exists(directory)) {
      for (const std::string& name : Names(directory)) {
        uint64_t number = 0;
        FileType type = kTempFile;
        if (ParseFileName(name, &number, &type) &&
            (type == kTableFile || type == kBlobFile || type == kDeltaFile)) {
          result.insert(name);
        }
      }
    }
    return result;
  }

  // Returns the first SST file in the directory, with directory.
  std::string FirstTable(const std::string& directory) {
    for (const std::string& name : OnPath(directory)) {
      if (Slice(name).ends_with(".sst")) {
        return directory + "/" + name;
      }
    }
    ADD_FAILURE() << directory;
    return "";
  }

  void ExpectNoTemporaries(const std::string& directory) {
    for (const std::string& name : Names(directory)) {
      EXPECT_FALSE(Slice(name).ends_with(".dbtmp")) << directory << " " << name;
    }
  }

  // Checks that the directory has all files that the families need on this
  // path, and none that they do not know.
  void CheckFiles(const std::string& directory) {
    std::string manifest;
    ASSERT_OK(FindManifest(fs_.get(), dbname_, &manifest));
    std::vector<ManifestFamily> needed;
    ASSERT_OK(ReadManifestFiles(
        fs_.get(), manifest,
        [](const std::string&) { return BytewiseComparator(); }, &needed));
    uint64_t size = 0;
    ASSERT_OK(FindEndOfManifest(fs_.get(), manifest, &size));
    ManifestColumnFamilies known;
    ASSERT_OK(ReadManifestFilePlaces(fs_.get(), manifest, size, &known));
    const std::set<std::string> found = OnPath(directory);
    const auto paths_of = [&](const std::string& name) {
      return given_.count(name) > 0 ? given_[name] : stored_[name];
    };
    for (const ManifestFamily& family : needed) {
      const std::vector<DbPath> paths = paths_of(family.name);
      for (const ManifestFamily::File& file : family.files) {
        const std::string name = PathMovePlan::NameOf(file);
        EXPECT_TRUE(paths[file.path_id].path != directory ||
                    found.count(name) > 0)
            << directory << " " << name;
      }
    }
    std::set<std::string> allowed;
    for (const auto& [id, family] : known) {
      const std::vector<DbPath> paths = paths_of(family.name);
      for (const auto& [number, file] : family.files) {
        if (paths[file.path_id].path == directory) {
          allowed.insert(
              PathMovePlan::NameOf({file.type, number, file.path_id, 0}));
        }
      }
    }
    for (const std::string& name : found) {
      EXPECT_EQ(allowed.count(name), 1u) << directory << " " << name;
    }
  }

  // Checks that all files are in the new directory, that nothing else is left,
  // and that the database has all data.
  void CheckMoved(const std::string& from, const std::string& to) {
    EXPECT_TRUE(OnPath(from).empty());
    EXPECT_FALSE(OnPath(to).empty());
    ExpectNoTemporaries(from);
    ExpectNoTemporaries(to);
    EXPECT_FALSE(Exists(Mark()));
    for (const std::string& name : Names(dbname_)) {
      // The file of the address map is a temporary file, too.
      EXPECT_NE(name, "000002.dbtmp");
      EXPECT_FALSE(name.rfind("OPTIONS", 0) == 0 &&
                   Slice(name).ends_with(".dbtmp"))
          << name;
    }
    LoadStored();
    for (const auto& [name, paths] : stored_) {
      for (const DbPath& path : paths) {
        EXPECT_NE(path.path, from);
      }
    }
    CheckFiles(to);
    ASSERT_OK(OpenStored());
    ASSERT_OK(VerifyData());
    Close();
  }

  // Checks that a refusal has left everything as it was.
  void ExpectRefusal(const Status& s, const std::string& text) {
    EXPECT_FALSE(s.ok());
    EXPECT_NE(s.ToString().find(text), std::string::npos) << s.ToString();
    EXPECT_EQ(s.ToString().find("unfinished: run"), std::string::npos)
        << s.ToString();
    EXPECT_FALSE(Exists(Mark()));
  }

  // Moves path 1 with a fault in each step, opens the database after every
  // other one, and runs the same move again. has_power_loss: whether the power
  // fails in the step; if not, the step fails
  //     alone.
  void CheckFaults(bool has_power_loss) {
    int steps = 0;
    int num_unfinished = 0;
    for (bool has_failed = true; has_failed; ++steps) {
      SCOPED_TRACE(steps);
      ASSERT_LT(steps, 300);
      MakeDB();
      const std::vector<PathMoveRequest> requests = {{Dir(1), Dir(2)}};
      LoadStored();
      const std::string options_file = OptionsFile();
      std::string options_text;
      ASSERT_OK(ReadFileToString(env_, options_file, &options_text));
      if (has_power_loss) {
        fs_->PowerOffAfter(steps);
      } else {
        fs_->FailAfter(steps);
      }
      const Status s = Move(requests);
      has_failed = fs_->HasFailed();
      fs_->PowerOffAfter(-1);
      if (has_power_loss) {
        EXPECT_EQ(s.ok(), !has_failed) << s.ToString();
        fs_->PowerOff();
        ASSERT_OK(fs_->PowerOn());
        // The file system of the test loses an old file of this size if the
        // directory is not synced after the new one was renamed.
        if (!Exists(options_file)) {
          ASSERT_OK(WriteStringToFile(env_, options_text, options_file));
        }
      }
      num_unfinished += Exists(Mark()) ? 1 : 0;
      if (steps % 2 == 0) {
        ASSERT_OK(OpenStored());
        ASSERT_OK(VerifyData());
        Work();
        ASSERT_OK(VerifyData());
        Close();
      }
      ASSERT_OK(Move(requests));
      CheckMoved(Dir(1), Dir(2));
      if (HasFatalFailure()) {
        return;
      }
    }
    EXPECT_GE(steps, 15);
    EXPECT_GE(num_unfinished, 8);
  }

  // Returns the newest OPTIONS file.
  std::string OptionsFile() {
    std::string result;
    for (const std::string& name : Names(dbname_)) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(name, &number, &type) && type == kOptionsFile) {
        result = dbname_ + "/" + name;
      }
    }
    return result;
  }

  bool is_one_device_ = false;
  std::string wal_dir_;
  std::vector<Options> options_;
  PathMover::MoveOptions move_options_;
  // Paths of column families that the OPTIONS file does not have.
  std::map<std::string, std::vector<DbPath>> given_;
  std::map<std::string, std::vector<DbPath>> stored_;
  std::vector<std::string> lines_;
  PathMover::Summary summary_;
};

TEST_F(PathMoverTest, MovesFilesOfAllTypesAndFamilies) {
  MakeDB();
  const std::set<std::string> names = OnPath(Dir(1));
  const std::set<std::string> others = OnPath(Dir(0));
  for (const FileType type : {kTableFile, kBlobFile, kDeltaFile}) {
    EXPECT_GE(Count(Dir(1), type), 1u) << type;
  }
  EXPECT_FALSE(others.empty());
  move_options_.seconds_between_reports = 0;
  move_options_.bytes_per_second = 1 << 30;
  ASSERT_OK(Move({{Dir(1), Dir(2)}}));
  EXPECT_EQ(OnPath(Dir(2)), names);
  EXPECT_EQ(OnPath(Dir(0)), others);
  EXPECT_EQ(summary_.copied_files, names.size());
  EXPECT_EQ(summary_.linked_files, 0u);
  EXPECT_EQ(summary_.deleted_files, names.size());
  EXPECT_TRUE(Reported("Copy " + std::to_string(names.size()) + " files"));
  EXPECT_TRUE(
      Reported("path id 1 of column family default, path id 1 of "
               "column family cf1 from " +
               Dir(1) + " to " + Dir(2)));
  EXPECT_TRUE(Reported("1 of " + std::to_string(names.size()) + " files"));
  EXPECT_TRUE(Reported("Moved " + std::to_string(names.size()) + " files"));
  // The OPTIONS file has the paths.
  EXPECT_FALSE(Reported("DB::Open"));
  CheckMoved(Dir(1), Dir(2));
  for (const std::string& family : {NameOf(0), NameOf(1)}) {
    ASSERT_EQ(stored_[family].size(), 2u);
    EXPECT_EQ(stored_[family][0].path, Dir(0));
    EXPECT_EQ(stored_[family][1].path, Dir(2));
    EXPECT_EQ(stored_[family][1].target_size, 1u << 30);
  }
  // The same command has nothing to do.
  ASSERT_OK(Move({{Dir(1), Dir(2)}}));
  EXPECT_TRUE(Reported("Nothing to move"));
  EXPECT_EQ(summary_.copied_files + summary_.deleted_files, 0u);
  CheckMoved(Dir(1), Dir(2));
  // The database works in the new directory, and can go back.
  ASSERT_OK(OpenStored());
  Work();
  ASSERT_OK(VerifyData());
  Close();
  ASSERT_OK(Move({{Dir(2), Dir(1)}}));
  CheckMoved(Dir(2), Dir(1));
}

TEST_F(PathMoverTest, LinksOnOneDevice) {
  is_one_device_ = true;
  MakeDB();
  const std::set<std::string> names = OnPath(Dir(1));
  // No space is needed.
  FullDeviceFS fs(fs_, 0);
  ASSERT_OK(Move({{Dir(1), Dir(2)}}, &fs));
  EXPECT_EQ(OnPath(Dir(2)), names);
  EXPECT_EQ(summary_.linked_files, names.size());
  EXPECT_EQ(summary_.copied_files, 0u);
  EXPECT_TRUE(Reported("Link " + std::to_string(names.size()) + " files"));
  CheckMoved(Dir(1), Dir(2));
}

TEST_F(PathMoverTest, LinkThatWasMadeDespiteAnError) {
  is_one_device_ = true;
  MakeDB();
  const size_t num_files = OnPath(Dir(1)).size();
  LostAnswerFS fs(fs_);
  ASSERT_OK(Move({{Dir(1), Dir(2)}}, &fs));
  EXPECT_EQ(summary_.copied_files, num_files);
  CheckMoved(Dir(1), Dir(2));
}

// A refusal deletes the mark. Without it, the next attempt would take the link
// for a file of another database.
TEST_F(PathMoverTest, RefusalLeavesNoLinkThatWasMadeDespiteAnError) {
  is_one_device_ = true;
  MakeDB();
  const std::vector<PathMoveRequest> requests = {{Dir(1), Dir(2)}};
  const auto lost_answer = std::make_shared<LostAnswerFS>(fs_);
  // The files are to be copied, and there is no space.
  FullDeviceFS full(lost_answer, 0);
  const Status s = Move(requests, &full);
  EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
  ExpectRefusal(s, "only 0 bytes are free");
  // It was deleted because it was empty.
  EXPECT_FALSE(Exists(Dir(2)));
  ASSERT_OK(Move(requests, lost_answer.get()));
  CheckMoved(Dir(1), Dir(2));
}

// The copy must not be written to a name that leads to its source.
TEST_F(PathMoverTest, LinkThatIsMadeLate) {
  is_one_device_ = true;
  MakeDB();
  const size_t num_files = OnPath(Dir(1)).size();
  LateLinkFS fs(fs_);
  ASSERT_OK(Move({{Dir(1), Dir(2)}}, &fs));
  EXPECT_EQ(fs.num_links(), 1);
  EXPECT_EQ(summary_.copied_files, num_files);
  CheckMoved(Dir(1), Dir(2));
}

TEST_F(PathMoverTest, SeveralDirectoriesAtOnce) {
  MakeDB();
  const std::set<std::string> names[] = {OnPath(Dir(0)), OnPath(Dir(1))};
  ASSERT_OK(Move({{Dir(1), Dir(2)}, {Dir(0) + "/", Dir(3) + "//"}}));
  EXPECT_EQ(OnPath(Dir(3)), names[0]);
  EXPECT_EQ(OnPath(Dir(2)), names[1]);
  CheckMoved(Dir(1), Dir(2));
  CheckMoved(Dir(0), Dir(3));
}

// Two column families have no path in common, and one directory afterwards.
TEST_F(PathMoverTest, SeveralDirectoriesIntoOne) {
  std::vector<Options> options = MakeOptions();
  options[1].cf_paths[1].path = Dir(3);
  MakeDB(options);
  std::set<std::string> names = OnPath(Dir(1));
  const std::set<std::string> others = OnPath(Dir(3));
  EXPECT_FALSE(names.empty());
  EXPECT_FALSE(others.empty());
  names.insert(others.begin(), others.end());
  const std::vector<PathMoveRequest> requests = {{Dir(1), Dir(2)},
                                                 {Dir(3), Dir(2)}};
  ASSERT_OK(Move(requests));
  EXPECT_EQ(OnPath(Dir(2)), names);
  CheckMoved(Dir(1), Dir(2));
  CheckMoved(Dir(3), Dir(2));
  // A directory of another column family can be the destination.
  MakeDB(options);
  const size_t num_files = OnPath(Dir(1)).size() + OnPath(Dir(3)).size();
  ASSERT_OK(Move({{Dir(3), Dir(1)}}));
  EXPECT_EQ(OnPath(Dir(1)).size(), num_files);
  CheckMoved(Dir(3), Dir(1));
}

// A second attempt finds all files in the first of the two moves if the paths
// were replaced before.
TEST_F(PathMoverTest, StepFailsWithSeveralDirectoriesIntoOne) {
  std::vector<Options> options = MakeOptions();
  options[1].cf_paths[1].path = Dir(3);
  const std::vector<PathMoveRequest> requests = {{Dir(1), Dir(2)},
                                                 {Dir(3), Dir(2)}};
  int steps = 0;
  for (bool has_failed = true; has_failed; ++steps) {
    SCOPED_TRACE(steps);
    ASSERT_LT(steps, 300);
    MakeDB(options);
    fs_->FailAfter(steps);
    Move(requests).PermitUncheckedError();
    has_failed = fs_->HasFailed();
    fs_->FailAfter(-1);
    if (steps % 2 == 0) {
      ASSERT_OK(OpenStored());
      Work();
      ASSERT_OK(VerifyData());
      Close();
    }
    ASSERT_OK(Move(requests));
    CheckMoved(Dir(1), Dir(2));
    CheckMoved(Dir(3), Dir(2));
    if (HasFatalFailure()) {
      return;
    }
  }
  EXPECT_GE(steps, 15);
}

// A user who gives up the move deletes the files that the mark names. A second
// attempt cannot know from the paths alone which column family has had the
// destination before.
TEST_F(PathMoverTest, MarkNamesNoFileThatWasInTheDestination) {
  std::vector<Options> options = MakeOptions();
  options[1].cf_paths[1].path = Dir(3);
  const std::vector<PathMoveRequest> requests = {{Dir(3), Dir(1)}};
  std::set<std::string> before;
  int steps = 0;
  // The move fails when the first file is in the destination.
  do {
    ASSERT_LT(steps, 300);
    MakeDB(options);
    before = OnPath(Dir(1));
    fs_->FailAfter(steps++);
    Move(requests).PermitUncheckedError();
    fs_->FailAfter(-1);
  } while (!Exists(Mark()) || OnPath(Dir(1)).size() == before.size());
  for (int more = 0; Exists(Mark()); ++more) {
    SCOPED_TRACE(more);
    ASSERT_LT(more, 300);
    PathMoveMark mark;
    ASSERT_OK(mark.Read(fs_.get(), dbname_));
    ASSERT_EQ(mark.moves.size(), 1u);
    EXPECT_FALSE(mark.moves[0].files.empty());
    for (const std::string& name : before) {
      EXPECT_EQ(mark.moves[0].files.count(name), 0u) << name;
    }
    fs_->FailAfter(more);
    const Status s = Move(requests);
    fs_->FailAfter(-1);
    if (more == 0) {
      EXPECT_NE(s.ToString().find("All files are still in the old paths"),
                std::string::npos)
          << s.ToString();
    }
  }
  CheckMoved(Dir(3), Dir(1));
}

// The OPTIONS file does not have the path of the second family, whose files
// would stay in a directory that the user is going to take away.
TEST_F(PathMoverTest, FilesOfAFamilyWithoutKnownPathsAreNotLeft) {
  std::vector<Options> options = MakeOptions();
  options[1] = FeatureOptions(kBlobs, "a", 1, {}, {});
  options[1].cf_paths[0].path = Dir(1);
  MakeDB(options);
  const std::vector<PathMoveRequest> requests = {{Dir(1), Dir(2)}};
  ExpectRefusal(Move(requests),
                "is a file of column family cf1, for which no paths are known");
  EXPECT_FALSE(Exists(Dir(2)));
  given_[NameOf(1)] = options_[1].cf_paths;
  ASSERT_OK(Move(requests));
  given_[NameOf(1)][0].path = Dir(2);
  CheckMoved(Dir(1), Dir(2));
}

// The first attempt has deleted an old file of the default family, whose new
// path is in the OPTIONS file. The user still gives the old path of the second
// family, all of whose files are in it.
TEST_F(PathMoverTest, HintKnowsDeletedFilesOfFamiliesWithNewPaths) {
  std::vector<Options> options = MakeOptions();
  options[1] = FeatureOptions(kBlobs, "a", 1, {}, {});
  options[1].cf_paths[0].path = Dir(1);
  const std::vector<PathMoveRequest> requests = {{Dir(1), Dir(2)}};
  const std::string kHint = "All files are still in the old paths";
  size_t num_files = 0;
  std::string text;
  int steps = 0;
  // The move fails when the first old file is deleted. The files are deleted by
  // increasing number, and those of the default family were written first.
  do {
    ASSERT_LT(steps, 300);
    MakeDB(options);
    given_[NameOf(1)] = options[1].cf_paths;
    num_files = OnPath(Dir(1)).size();
    fs_->FailAfter(steps++);
    text = Move(requests).ToString();
    fs_->FailAfter(-1);
  } while (OnPath(Dir(1)).size() == num_files);
  ASSERT_EQ(OnPath(Dir(1)).size(), num_files - 1);
  EXPECT_EQ(text.find(kHint), std::string::npos) << text;
  // The second attempt fails before it deletes a file.
  fs_->FailAfter(0);
  text = Move(requests).ToString();
  EXPECT_TRUE(fs_->HasFailed());
  fs_->FailAfter(-1);
  EXPECT_EQ(stored_[NameOf(0)][1].path, Dir(2));
  EXPECT_EQ(OnPath(Dir(1)).size(), num_files - 1);
  EXPECT_NE(text.find("unfinished: run the same command again"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find(kHint), std::string::npos) << text;
  ASSERT_OK(Move(requests));
  given_[NameOf(1)][0].path = Dir(2);
  CheckMoved(Dir(1), Dir(2));
}

// A crash has left an output of a job in the source. The database, which has
// its new paths, has used the number since then.
TEST_F(PathMoverTest, LeftoverWhoseNumberWasUsedAgain) {
  const std::vector<PathMoveRequest> requests = {{Dir(1), Dir(2)}};
  int steps = 0;
  // The move fails when the OPTIONS file has the new paths.
  do {
    ASSERT_LT(steps, 300);
    MakeDB();
    fs_->FailAfter(steps++);
    Move(requests).PermitUncheckedError();
    fs_->FailAfter(-1);
    LoadStored();
  } while (!Exists(Mark()) || stored_[NameOf(0)][1].path != Dir(2));
  const std::set<std::string> old_names = OnPath(Dir(1));
  ASSERT_OK(OpenStored());
  Work();
  Close();
  std::string name;
  for (const std::string& found : OnPath(Dir(2))) {
    if (old_names.count(found) == 0 && Slice(found).ends_with(".sst")) {
      name = found;
    }
  }
  ASSERT_FALSE(name.empty());
  const std::string leftover = Dir(1) + "/" + name;
  ASSERT_OK(WriteStringToFile(env_, "x", leftover));
  ASSERT_OK(Move(requests));
  EXPECT_EQ(OnPath(Dir(1)), std::set<std::string>{name});
  EXPECT_TRUE(Reported("1 SST, blob or delta files"));
  ASSERT_OK(env_->DeleteFile(leftover));
  CheckMoved(Dir(1), Dir(2));
}

TEST_F(PathMoverTest, DestroyDBDeletesTheMark) {
  MakeDB();
  PathMoveMark mark;
  mark.moves.resize(1);
  mark.moves[0].request = {Dir(1), Dir(2)};
  ASSERT_OK(mark.Write(fs_.get(), dbname_));
  ASSERT_OK(DestroyDB(dbname_, options_[0],
                      {{NameOf(0), options_[0]}, {NameOf(1), options_[1]}}));
  EXPECT_FALSE(Exists(Mark()));
}

// Only the files of a column family with this path move. The files of the other
// one, the MANIFEST and the WALs stay.
TEST_F(PathMoverTest, DirectoryOfTheDatabaseIsAPath) {
  std::vector<Options> options = {FeatureOptions(kBlobs, "a", 0, {}, {}),
                                  FeatureOptions(kMap, "a", 2, {0}, {1})};
  options[1].cf_paths[0].path = dbname_;
  DestroyAll();
  options_ = options;
  OpenNew(options_);
  Fill(/*wal=*/true);
  Crash();
  const std::set<std::string> before = OnPath(dbname_);
  ASSERT_OK(Move({{dbname_, Dir(2)}}));
  EXPECT_TRUE(
      Reported("The files of column family default stay in the directory"));
  const std::set<std::string> moved = OnPath(Dir(2));
  const std::set<std::string> stay = OnPath(dbname_);
  EXPECT_FALSE(moved.empty());
  EXPECT_FALSE(stay.empty());
  std::set<std::string> both = moved;
  both.insert(stay.begin(), stay.end());
  EXPECT_EQ(both, before);
  ASSERT_OK(OpenStored());
  EXPECT_EQ(stored_[NameOf(1)][0].path, Dir(2));
  ASSERT_OK(VerifyData());
  Close();
  // The directory of the database can be a destination, too.
  ASSERT_OK(Move({{Dir(2), dbname_}}));
  EXPECT_TRUE(OnPath(Dir(2)).empty());
  ASSERT_OK(OpenStored());
  EXPECT_EQ(stored_[NameOf(1)][0].path, dbname_);
  ASSERT_OK(VerifyData());
  Close();
}

// The OPTIONS file does not keep the path of a family with one path.
TEST_F(PathMoverTest, PathsThatTheOptionsFileDoesNotHave) {
  int steps = 0;
  for (bool has_failed = true; has_failed; ++steps) {
    SCOPED_TRACE(steps);
    ASSERT_LT(steps, 300);
    MakeDB({FeatureOptions(kDeltas, "a", 1, {}, {})});
    const std::vector<PathMoveRequest> requests = {{Dir(0), Dir(2)}};
    if (steps == 0) {
      ExpectRefusal(Move(requests), "No paths are known; see --cf_paths");
    }
    given_[NameOf(0)] = options_[0].cf_paths;
    fs_->FailAfter(steps);
    const Status s = Move(requests);
    has_failed = fs_->HasFailed();
    fs_->FailAfter(-1);
    if (!s.ok()) {
      // The same command, with the same paths.
      ASSERT_OK(Move(requests));
    }
    EXPECT_TRUE(Reported("Pass them to DB::Open from now on: cf_paths=" +
                         Dir(2) + ":1073741824"));
    given_[NameOf(0)][0].path = Dir(2);
    CheckMoved(Dir(0), Dir(2));
  }
  EXPECT_GE(steps, 15);
}

TEST_F(PathMoverTest, PowerFailsWhileFilesAreCopied) {
  CheckFaults(/*has_power_loss=*/true);
}

TEST_F(PathMoverTest, PowerFailsWhileFilesAreLinked) {
  is_one_device_ = true;
  CheckFaults(/*has_power_loss=*/true);
}

TEST_F(PathMoverTest, StepFailsWhileFilesAreCopied) {
  CheckFaults(/*has_power_loss=*/false);
}

TEST_F(PathMoverTest, StepFailsWhileFilesAreLinked) {
  is_one_device_ = true;
  CheckFaults(/*has_power_loss=*/false);
}

TEST_F(PathMoverTest, OpenDatabaseIsRefused) {
  MakeDB();
  ASSERT_OK(OpenStored());
  Status s = Move({{Dir(1), Dir(2)}});
  ExpectRefusal(s, "The database must not be open");
  EXPECT_FALSE(Exists(Dir(2)));
  ASSERT_OK(VerifyData());
  Close();
  PathMover mover(fs_.get(), SystemClock::Default().get(), dbname_ + "_none",
                  PathMover::MoveOptions());
  s = mover.Lock();
  EXPECT_TRUE(s.IsNotFound()) << s.ToString();
  // The lock ends with the object.
  {
    PathMover other(fs_.get(), SystemClock::Default().get(), dbname_,
                    PathMover::MoveOptions());
    ASSERT_OK(other.Lock());
    EXPECT_NOK(OpenStored());
  }
  ASSERT_OK(OpenStored());
}

TEST_F(PathMoverTest, WrongDirectoriesAreRefused) {
  MakeDB();
  wal_dir_ = PathOf("wal", 0);
  ExpectRefusal(Move({{Dir(3), Dir(2)}}), "the source is no path");
  ExpectRefusal(Move({{Dir(1), Dir(1) + "/"}}),
                "both names lead to one directory");
  ExpectRefusal(Move({{Dir(1), Dir(0)}}), "would be one directory");
  ExpectRefusal(Move({{Dir(1), wal_dir_ + "/."}}), "directory of the WALs");
  ExpectRefusal(Move({{Dir(1), ""}}), "empty");
  // Its parent does not exist.
  EXPECT_NOK(Move({{Dir(1), Dir(2) + "/a/b"}}));
  EXPECT_FALSE(Exists(Mark()));
  EXPECT_FALSE(Exists(Dir(2)));
  // Another name of the same directory.
  const std::string link = dbname_ + "_link";
  unlink(link.c_str());
  ASSERT_EQ(0, symlink(Dir(1).c_str(), link.c_str()));
  ExpectRefusal(Move({{Dir(1), link}}), "both names lead to one directory");
  ASSERT_OK(Move({{link, Dir(2)}}));
  EXPECT_EQ(0, unlink(link.c_str()));
  CheckMoved(Dir(1), Dir(2));
}

TEST_F(PathMoverTest, DestinationOfAnotherDatabaseIsRefused) {
  MakeDB();
  const std::vector<PathMoveRequest> requests = {{Dir(1), Dir(2)}};
  ASSERT_OK(env_->CreateDir(Dir(2)));
  for (const char* name : {"000999.sst", "000999.blob", "000999.delta",
                           "000999.sst.trash", "CURRENT", "000999.dbtmp"}) {
    const std::string fname = Dir(2) + "/" + name;
    ASSERT_OK(WriteStringToFile(env_, "precious", fname));
    ExpectRefusal(Move(requests), std::string("such as ") + name);
    EXPECT_EQ(Names(Dir(2)), std::vector<std::string>{name});
    ASSERT_OK(env_->DeleteFile(fname));
  }
  // A file of the same name, with another size and with the same one.
  const std::string source = FirstTable(Dir(1));
  const std::string other = Dir(2) + source.substr(source.rfind('/'));
  uint64_t size = 0;
  ASSERT_OK(env_->GetFileSize(source, &size));
  for (const std::string& contents :
       {std::string("x"), std::string(size, 'x')}) {
    ASSERT_OK(WriteStringToFile(env_, contents, other));
    ExpectRefusal(Move(requests), other + ": exists already");
    std::string read;
    ASSERT_OK(ReadFileToString(env_, other, &read));
    EXPECT_EQ(read, contents);
  }
  ASSERT_OK(env_->DeleteFile(other));
  // Files and directories that no database has are no reason to refuse.
  ASSERT_OK(env_->CreateDir(Dir(2) + "/lost+found"));
  ASSERT_OK(WriteStringToFile(env_, "x", Dir(2) + "/README"));
  ASSERT_OK(Move(requests));
  EXPECT_TRUE(Exists(Dir(2) + "/README"));
  CheckMoved(Dir(1), Dir(2));
}

TEST_F(PathMoverTest, FullDeviceIsRefused) {
  MakeDB();
  uint64_t needed = 0;
  for (const std::string& name : OnPath(Dir(1))) {
    uint64_t size = 0;
    ASSERT_OK(env_->GetFileSize(Dir(1) + "/" + name, &size));
    needed += size;
  }
  {
    FullDeviceFS fs(fs_, needed - 1);
    const Status s = Move({{Dir(1), Dir(2)}}, &fs);
    EXPECT_TRUE(s.IsNoSpace()) << s.ToString();
    ExpectRefusal(s, "need " + std::to_string(needed) + " bytes, and only " +
                         std::to_string(needed - 1) + " bytes are free");
    EXPECT_FALSE(Exists(Dir(2)));
  }
  FullDeviceFS fs(fs_, needed);
  // Directories with the same free bytes are on one device.
  ExpectRefusal(Move({{Dir(1), Dir(2)}, {Dir(0), Dir(3)}}, &fs),
                "The files to be copied to " + Dir(2) + " and " + Dir(3));
  EXPECT_FALSE(Exists(Dir(2)));
  EXPECT_FALSE(Exists(Dir(3)));
  ASSERT_OK(Move({{Dir(1), Dir(2)}}, &fs));
  CheckMoved(Dir(1), Dir(2));
}

TEST_F(PathMoverTest, FilesThatAreNotAsInTheManifest) {
  MakeDB();
  // The sizes below are those on disk.
  fs_->ResetState();
  const std::vector<PathMoveRequest> requests = {{Dir(1), Dir(2)}};
  const std::string table = FirstTable(Dir(1));
  const std::string name = table.substr(table.rfind('/') + 1);
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, table, &contents));
  ASSERT_OK(env_->DeleteFile(table));
  ExpectRefusal(Move(requests), "The MANIFEST has " + name +
                                    " on path id 1 of column family default, "
                                    "but the file is neither in");
  ASSERT_OK(WriteStringToFile(env_, contents + "x", table));
  const Status s = Move(requests);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  ExpectRefusal(s, table + ": has " + std::to_string(contents.size() + 1) +
                       " bytes instead of " + std::to_string(contents.size()));
  EXPECT_FALSE(Exists(Dir(2)));
  // A file that the user has moved is in its place.
  ASSERT_OK(env_->DeleteFile(table));
  ASSERT_OK(env_->CreateDir(Dir(2)));
  ASSERT_OK(WriteStringToFile(env_, contents, Dir(2) + "/" + name));
  ASSERT_OK(Move(requests));
  CheckMoved(Dir(1), Dir(2));
}

TEST_F(PathMoverTest, ChecksumsOfTheManifest) {
  std::vector<Options> options = MakeOptions();
  for (Options& family : options) {
    family.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  }
  const std::vector<PathMoveRequest> requests = {{Dir(1), Dir(2)}};
  MakeDB(options);
  ASSERT_OK(Move(requests));
  CheckMoved(Dir(1), Dir(2));
  for (const char* ending : {".sst", ".blob", ".delta"}) {
    MakeDB(options);
    std::string damaged;
    for (const std::string& name : OnPath(Dir(1))) {
      damaged = Slice(name).ends_with(ending) ? Dir(1) + "/" + name : damaged;
    }
    std::string contents;
    ASSERT_OK(ReadFileToString(env_, damaged, &contents));
    std::string changed = contents;
    changed[changed.size() / 2] ^= 1;
    ASSERT_OK(WriteStringToFile(env_, changed, damaged));
    move_options_.verifies = true;
    const Status s = Move(requests);
    EXPECT_TRUE(s.IsCorruption()) << s.ToString();
    EXPECT_NE(s.ToString().find(damaged), std::string::npos) << s.ToString();
    EXPECT_NE(s.ToString().find("unfinished: run the same command again. All "
                                "files are still in the old paths"),
              std::string::npos)
        << s.ToString();
    ExpectNoTemporaries(Dir(2));
    // The file is mended, or moved as it is.
    if (ending == std::string(".blob")) {
      move_options_.verifies = false;
    } else {
      ASSERT_OK(WriteStringToFile(env_, contents, damaged));
    }
    ASSERT_OK(Move(requests));
    EXPECT_TRUE(Reported("An unfinished move goes on"));
    EXPECT_TRUE(OnPath(Dir(1)).empty());
    if (move_options_.verifies) {
      CheckMoved(Dir(1), Dir(2));
    }
  }
}

// An earlier attempt has copied a file, and its copy was damaged since then.
TEST_F(PathMoverTest, CopyOfAnEarlierAttemptIsCompared) {
  MakeDB();
  const std::vector<PathMoveRequest> requests = {{Dir(1), Dir(2)}};
  // Fails at the first file that is deleted.
  const size_t num_files = OnPath(Dir(1)).size();
  int steps = 0;
  while (OnPath(Dir(2)).size() < num_files) {
    ASSERT_LT(steps, 300);
    MakeDB();
    fs_->FailAfter(steps++);
    EXPECT_NOK(Move(requests));
    fs_->FailAfter(-1);
  }
  const std::string copy = FirstTable(Dir(2));
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, copy, &contents));
  std::string changed = contents;
  changed[changed.size() / 2] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, changed, copy));
  const Status s = Move(requests);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find("has other bytes than " + copy),
            std::string::npos)
      << s.ToString();
  EXPECT_EQ(OnPath(Dir(1)).size(), num_files);
  ASSERT_OK(WriteStringToFile(env_, contents, copy));
  ASSERT_OK(Move(requests));
  CheckMoved(Dir(1), Dir(2));
}

TEST_F(PathMoverTest, AnotherUnfinishedMove) {
  MakeDB();
  PathMoveMark mark;
  mark.moves.resize(1);
  mark.moves[0].request = {Dir(0), Dir(3)};
  ASSERT_OK(mark.Write(fs_.get(), dbname_));
  for (const std::vector<PathMoveRequest>& requests :
       {std::vector<PathMoveRequest>{{Dir(1), Dir(2)}},
        std::vector<PathMoveRequest>{{Dir(0), Dir(3)}, {Dir(1), Dir(2)}},
        std::vector<PathMoveRequest>{{Dir(0), Dir(2)}}}) {
    const Status s = Move(requests);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_NE(s.ToString().find("Another move is unfinished: " + Dir(0) +
                                " to " + Dir(3)),
              std::string::npos)
        << s.ToString();
  }
  // An open does not care.
  ASSERT_OK(OpenStored());
  ASSERT_OK(VerifyData());
  Close();
  EXPECT_TRUE(Exists(Mark()));
  ASSERT_OK(Move({{Dir(0), Dir(3)}}));
  CheckMoved(Dir(0), Dir(3));
  ASSERT_OK(WriteStringToFile(env_, "no mark", Mark()));
  const Status s = Move({{Dir(1), Dir(2)}});
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find(Mark()), std::string::npos) << s.ToString();
}

TEST_F(PathMoverTest, DryRunChangesNothing) {
  MakeDB();
  const std::vector<std::string> before[] = {Names(dbname_), Names(Dir(0)),
                                             Names(Dir(1))};
  const std::string options_file = OptionsFile();
  std::string text;
  ASSERT_OK(ReadFileToString(env_, options_file, &text));
  move_options_.is_dry_run = true;
  ASSERT_OK(Move({{Dir(1), Dir(2)}}));
  EXPECT_TRUE(
      Reported("To be moved: " + std::to_string(before[2].size()) + " files"));
  EXPECT_TRUE(Reported("  path id 1 of column family default, SST: "));
  EXPECT_TRUE(Reported("  path id 1 of column family default, delta: "));
  EXPECT_TRUE(Reported("  path id 1 of column family cf1, blob: "));
  EXPECT_EQ(Names(dbname_), before[0]);
  EXPECT_EQ(Names(Dir(0)), before[1]);
  EXPECT_EQ(Names(Dir(1)), before[2]);
  EXPECT_FALSE(Exists(Dir(2)));
  std::string text_after;
  ASSERT_OK(ReadFileToString(env_, options_file, &text_after));
  EXPECT_EQ(text_after, text);
}

// Without the comparator the files of a delta store are not known to be needed,
// but they move. A file that the MANIFEST does not name stays.
TEST_F(PathMoverTest, FilesThatMayBeObsolete) {
  MakeDB();
  const std::set<std::string> names = OnPath(Dir(1));
  const std::string obsolete = Dir(1) + "/000999.sst";
  ASSERT_OK(WriteStringToFile(env_, "x", obsolete));
  LoadStored();
  PathMover::MoveOptions options;
  options.requests = {{Dir(1), Dir(2)}};
  options.report = [this](const std::string& line) { lines_.push_back(line); };
  {
    PathMover mover(fs_.get(), SystemClock::Default().get(), dbname_, options);
    ASSERT_OK(mover.Lock());
    ASSERT_OK(mover.Run(
        [this](const std::string& name) {
          return PathMover::Family{stored_[name], nullptr};
        },
        dbname_, /*checksums=*/nullptr));
  }
  EXPECT_EQ(OnPath(Dir(2)), names);
  EXPECT_EQ(OnPath(Dir(1)), std::set<std::string>{"000999.sst"});
  EXPECT_TRUE(
      Reported("1 SST, blob or delta files that the MANIFEST does not "
               "name stay in " +
               Dir(1)));
  ASSERT_OK(env_->DeleteFile(obsolete));
  CheckMoved(Dir(1), Dir(2));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
