//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_move_survey.h"

#include <memory>
#include <string>
#include <vector>

#include "db/path_layout/directory_names.h"
#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// All files that are needed have kContents.
class PathMoveSurveyTest : public testing::Test {
 protected:
  static constexpr char kContents[] = "0123456789";

  PathMoveSurveyTest()
      : fs_(FileSystem::Default().get()),
        root_(test::PerThreadDBPath("path_move_survey_test")) {
    EXPECT_OK(DestroyDir(Env::Default(), root_));
    EXPECT_OK(Env::Default()->CreateDir(root_));
    for (const char* name : {"db", "a", "b", "c"}) {
      EXPECT_OK(Env::Default()->CreateDir(Dir(name)));
    }
  }
  ~PathMoveSurveyTest() override {
    EXPECT_OK(DestroyDir(Env::Default(), root_));
  }

  std::string Dir(const std::string& name) const { return root_ + "/" + name; }

  void Write(const std::string& directory, const std::string& name,
             const std::string& contents = kContents) {
    ASSERT_OK(WriteStringToFile(fs_, contents, Dir(directory) + "/" + name));
  }
  void Delete(const std::string& directory, const std::string& name) {
    ASSERT_OK(
        fs_->DeleteFile(Dir(directory) + "/" + name, IOOptions(), nullptr));
  }

  // Adds a column family whose last version has these SST files, on path 0.
  // directory: of path 0; empty: no paths are given.
  PathMovePlan::Family& AddFamily(const std::string& name,
                                  const std::string& directory,
                                  const std::vector<uint64_t>& ssts) {
    PathMovePlan::Family& family = families_.emplace_back();
    family.name = name;
    if (!directory.empty()) {
      family.paths.emplace_back(Dir(directory), 1 << 30);
    }
    for (const uint64_t number : ssts) {
      family.needed.push_back(
          {kTableFile, number, 0, sizeof(kContents) - 1, {}, {}});
    }
    return family;
  }

  // Adds a move to the mark that has these files of kContents.
  void AddMark(const std::string& from, const std::string& to,
               const std::vector<std::string>& names) {
    PathMoveMark::Move& move = mark_.moves.emplace_back();
    move.request = {Dir(from), Dir(to)};
    for (const std::string& name : names) {
      move.files[name] = sizeof(kContents) - 1;
    }
  }

  // requests: names of sources and destinations for Dir().
  Status Survey(std::vector<PathMoveRequest> requests) {
    for (PathMoveRequest& request : requests) {
      request = {Dir(request.from), Dir(request.to)};
    }
    plan_ = std::make_unique<PathMovePlan>(
        Dir("db"), Dir("db"),
        [this](const std::string& a, const std::string& b) {
          return IsSameDirectory(fs_, a, b);
        });
    const Status s =
        plan_->Make(requests, families_, /*resumes=*/!mark_.moves.empty());
    return s.ok() ? survey_.Make(fs_, *plan_, mark_) : s;
  }

  void ExpectRefusal(const std::vector<PathMoveRequest>& requests,
                     const std::string& text) {
    const Status s = Survey(requests);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_NE(s.ToString().find(text), std::string::npos) << s.ToString();
  }

  // Returns the names of the files of a move, with "<" if a file is in the
  // source, and ">" if it is in the destination.
  std::vector<std::string> Files(size_t move) const {
    std::vector<std::string> texts;
    for (const PathMoveSurvey::File& file : survey_.moves()[move].files) {
      texts.push_back((file.is_in_source ? "<" : "") + file.name +
                      (file.is_in_destination ? ">" : ""));
    }
    return texts;
  }

  using Texts = std::vector<std::string>;

  FileSystem* const fs_;
  const std::string root_;
  std::vector<PathMovePlan::Family> families_;
  PathMoveMark mark_;
  std::unique_ptr<PathMovePlan> plan_;
  PathMoveSurvey survey_;
};

// The paths of a family are unknown, and its files are in the source.
TEST_F(PathMoveSurveyTest, FilesOfAFamilyWithoutPaths) {
  AddFamily("default", "a", {10});
  AddFamily("cf1", "", {12});
  Write("a", "000010.sst");
  Write("a", "000012.sst");
  ExpectRefusal({{"a", "c"}},
                "000012.sst: is a file of column family cf1, for which no "
                "paths are known");
  // In the directory of the database such files stay.
  Delete("a", "000012.sst");
  Write("db", "000012.sst");
  ASSERT_OK(Survey({{"a", "c"}}));
  EXPECT_EQ(Files(0), Texts{"<000010.sst"});
  families_[0].paths[0].path = Dir("db");
  Write("db", "000010.sst");
  ASSERT_OK(Survey({{"db", "c"}}));
  EXPECT_EQ(Files(0), Texts{"<000010.sst"});
  EXPECT_EQ(survey_.moves()[0].num_unknown, 0u);
}

// The MANIFEST has names of files that are gone. In the destination they are
// those of another database.
TEST_F(PathMoveSurveyTest, NamesOfFilesThatAreGone) {
  AddFamily("default", "a", {10}).others = {{kBlobFile, 15, 0, 0, {}, {}}};
  Write("a", "000010.sst");
  Write("c", "000015.blob");
  ExpectRefusal({{"a", "c"}}, "such as 000015.blob");
  // The source has it, too.
  Write("a", "000015.blob");
  ExpectRefusal({{"a", "c"}}, "000015.blob: exists already");
  Delete("a", "000015.blob");
  // A destination in which the database has files of its own.
  AddFamily("cf1", "c", {});
  ASSERT_OK(Survey({{"a", "c"}}));
  families_.pop_back();
  // An earlier attempt has copied it.
  AddMark("a", "c", {"000015.blob"});
  ASSERT_OK(Survey({{"a", "c"}}));
  EXPECT_EQ(Files(0), (Texts{"<000010.sst", "000015.blob>"}));
}

TEST_F(PathMoveSurveyTest, TemporaryFiles) {
  AddFamily("default", "a", {10});
  Write("a", "000010.sst");
  Write("c", "000010.dbtmp");
  ExpectRefusal({{"a", "c"}}, "such as 000010.dbtmp");
  AddMark("a", "c", {"000010.sst"});
  ASSERT_OK(Survey({{"a", "c"}}));
  EXPECT_EQ(survey_.moves()[0].temporaries, Texts{Dir("c") + "/000010.dbtmp"});
  Write("c", "000011.dbtmp");
  ExpectRefusal({{"a", "c"}}, "such as 000011.dbtmp");
}

// The database has had its new path when it took the number 12.
TEST_F(PathMoveSurveyTest, LeftoverInTheSource) {
  AddFamily("default", "c", {10, 12});
  AddMark("a", "c", {"000010.sst"});
  for (const char* name : {"000010.sst", "000012.sst"}) {
    Write("a", name, name == std::string("000012.sst") ? "x" : kContents);
    Write("c", name);
  }
  ASSERT_OK(Survey({{"a", "c"}}));
  EXPECT_EQ(Files(0), (Texts{"<000010.sst>", "000012.sst>"}));
  EXPECT_EQ(survey_.moves()[0].num_unknown, 1u);
  // With the old path the file in the destination is not that of the database.
  families_[0].paths[0].path = Dir("a");
  ExpectRefusal({{"a", "c"}}, "000012.sst: exists already");
}

// The plan has all files in the first move when the paths were replaced.
TEST_F(PathMoveSurveyTest, TwoSourcesOfOneDestination) {
  AddFamily("default", "c", {10});
  AddFamily("cf1", "c", {20}).others = {{kBlobFile, 21, 0, 0, {}, {}},
                                        {kBlobFile, 22, 0, 0, {}, {}}};
  AddMark("a", "c", {"000010.sst"});
  AddMark("b", "c", {"000020.sst", "000021.blob", "000023.blob"});
  for (const char* name : {"000010.sst", "000020.sst"}) {
    Write("c", name);
  }
  for (const char* name :
       {"000020.sst", "000021.blob", "000022.blob", "000023.blob"}) {
    Write("b", name);
  }
  const std::vector<PathMoveRequest> requests = {{"a", "c"}, {"b", "c"}};
  ASSERT_OK(Survey(requests));
  EXPECT_EQ(Files(0), (Texts{"000010.sst>", "000020.sst>"}));
  // The mark does not name the file 22, and the MANIFEST does not name 23.
  EXPECT_EQ(Files(1), (Texts{"<000020.sst>", "<000021.blob"}));
  EXPECT_EQ(survey_.moves()[1].stale, Texts{Dir("b") + "/000023.blob"});
  EXPECT_EQ(survey_.moves()[1].num_unknown, 0u);
  Write("b", "000020.sst", "x");
  EXPECT_TRUE(Survey(requests).IsCorruption());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
