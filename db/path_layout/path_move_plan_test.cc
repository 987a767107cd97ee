//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_move_plan.h"

#include <memory>
#include <string>
#include <vector>

#include "db/path_layout/directory_names.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class PathMovePlanTest : public testing::Test {
 protected:
  // A name that begins with "/link" leads to the directory whose name follows.
  static bool IsSame(const std::string& a, const std::string& b) {
    const auto resolve = [](const std::string& name) {
      const std::string link = "/link";
      return CleanDirectoryName(
          nullptr, name.rfind(link, 0) == 0 ? name.substr(link.size()) : name);
    };
    return resolve(a) == resolve(b);
  }

  static std::vector<DbPath> Paths(const std::vector<std::string>& names) {
    std::vector<DbPath> paths;
    for (const std::string& name : names) {
      paths.emplace_back(name, 100 + paths.size());
    }
    return paths;
  }

  // Files of path 0, 1 and so on, beginning with this number: an SST file of 10
  // bytes, and a blob file that may be gone.
  static PathMovePlan::Family MakeFamily(const std::string& name,
                                         const std::vector<std::string>& paths,
                                         uint64_t number) {
    PathMovePlan::Family family;
    family.name = name;
    family.paths = Paths(paths);
    for (uint32_t i = 0; i == 0 || i < paths.size(); ++i) {
      family.needed.push_back({kTableFile, number++, i, 10});
      family.others.push_back({kBlobFile, number++, i, 0});
    }
    return family;
  }

  Status Make(const std::vector<PathMoveRequest>& requests,
              bool resumes = false) {
    plan_ = std::make_unique<PathMovePlan>("/db", wal_dir_, IsSame);
    return plan_->Make(requests, families_, resumes);
  }

  // Expects InvalidArgument with both texts.
  void ExpectRefusal(const std::vector<PathMoveRequest>& requests,
                     const std::string& text, bool resumes = false) {
    const Status s = Make(requests, resumes);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_NE(s.ToString().find(text), std::string::npos) << s.ToString();
  }

  static std::vector<std::string> Names(const PathMovePlan::Move& move) {
    std::vector<std::string> names;
    for (const PathMovePlan::File& file : move.files) {
      names.push_back(PathMovePlan::NameOf(file.file));
    }
    return names;
  }

  static std::vector<std::string> Users(const PathMovePlan::Move& move) {
    std::vector<std::string> users;
    for (const PathMovePlan::User& user : move.users) {
      users.push_back(PathMovePlan::TextOf(user));
    }
    return users;
  }

  std::vector<std::string> NewPaths(const std::string& family) {
    std::vector<std::string> names;
    const auto found = plan_->new_paths().find(family);
    if (found != plan_->new_paths().end()) {
      for (const DbPath& path : found->second) {
        names.push_back(path.path + ":" + std::to_string(path.target_size));
      }
    }
    return names;
  }

  using Texts = std::vector<std::string>;

  std::string wal_dir_ = "/db";
  std::vector<PathMovePlan::Family> families_;
  std::unique_ptr<PathMovePlan> plan_;
};

TEST_F(PathMovePlanTest, FilesOfAllFamiliesWithThePathMove) {
  families_ = {MakeFamily("default", {}, 10), MakeFamily("a", {"/x", "/y"}, 20),
               MakeFamily("b", {"/y", "/z"}, 30), MakeFamily("c", {"/z"}, 40)};
  ASSERT_OK(Make({{"/y", "/new"}}));
  ASSERT_EQ(plan_->moves().size(), 1u);
  const PathMovePlan::Move& move = plan_->moves()[0];
  EXPECT_EQ(Users(move), (Texts{"path id 1 of column family a",
                                "path id 0 of column family b"}));
  EXPECT_EQ(Names(move),
            (Texts{"000022.sst", "000023.blob", "000030.sst", "000031.blob"}));
  EXPECT_TRUE(move.files[0].is_needed);
  EXPECT_FALSE(move.files[1].is_needed);
  EXPECT_EQ(move.files[0].user, 0u);
  EXPECT_EQ(move.files[3].user, 1u);
  // Ids and limits of the paths do not change.
  EXPECT_EQ(plan_->new_paths().size(), 2u);
  EXPECT_EQ(NewPaths("a"), (Texts{"/x:100", "/new:101"}));
  EXPECT_EQ(NewPaths("b"), (Texts{"/new:100", "/z:101"}));
  EXPECT_TRUE(plan_->staying().empty());
  for (const char* known : {"000010.sst", "000041.blob", "000023.blob"}) {
    EXPECT_TRUE(plan_->Knows(known)) << known;
  }
  for (const char* name : {"000010.sst", "000011.blob"}) {
    ASSERT_NE(plan_->FamilyWithoutPaths(name), nullptr) << name;
    EXPECT_EQ(*plan_->FamilyWithoutPaths(name), "default");
  }
  for (const char* name : {"000020.sst", "000041.blob", "000099.sst"}) {
    EXPECT_EQ(plan_->FamilyWithoutPaths(name), nullptr) << name;
  }
  EXPECT_TRUE(plan_->IsDirectoryOfDB("/link/db"));
  EXPECT_FALSE(plan_->IsDirectoryOfDB("/x"));
  EXPECT_FALSE(move.users[0].was_replaced);
  EXPECT_FALSE(plan_->Knows("000099.sst"));
  for (const char* own : {"/db", "/x", "/link/x", "/y", "/z/"}) {
    EXPECT_TRUE(plan_->IsOwn(own)) << own;
  }
  EXPECT_FALSE(plan_->IsOwn("/new"));
}

TEST_F(PathMovePlanTest, SeveralDirectoriesAndTypes) {
  families_ = {MakeFamily("a", {"/x", "/y"}, 20)};
  families_[0].needed.push_back({kDeltaFile, 7, 1, 5});
  ASSERT_OK(Make({{"/y", "/n1"}, {"/x", "/n0"}}));
  ASSERT_EQ(plan_->moves().size(), 2u);
  EXPECT_EQ(Names(plan_->moves()[0]),
            (Texts{"000007.delta", "000022.sst", "000023.blob"}));
  EXPECT_EQ(Names(plan_->moves()[1]), (Texts{"000020.sst", "000021.blob"}));
  EXPECT_EQ(NewPaths("a"), (Texts{"/n0:100", "/n1:101"}));
}

// The last path has the files of a path id beyond the list.
TEST_F(PathMovePlanTest, PathIdBeyondTheList) {
  families_ = {MakeFamily("a", {"/x", "/y"}, 20)};
  families_[0].needed.push_back({kTableFile, 50, 3, 5});
  ASSERT_OK(Make({{"/y", "/new"}}));
  EXPECT_EQ(Names(plan_->moves()[0]),
            (Texts{"000022.sst", "000023.blob", "000050.sst"}));
}

// A family without paths has its files in the directory of the database.
TEST_F(PathMovePlanTest, FamiliesWithoutPathsStay) {
  families_ = {MakeFamily("default", {}, 10),
               MakeFamily("a", {"/db", "/y"}, 20)};
  ASSERT_OK(Make({{"/db/", "/new"}}));
  EXPECT_EQ(Names(plan_->moves()[0]), (Texts{"000020.sst", "000021.blob"}));
  EXPECT_EQ(plan_->staying(), Texts{"default"});
  EXPECT_EQ(NewPaths("default"), Texts{});
  families_.pop_back();
  ExpectRefusal({{"/db", "/new"}}, "the source is no path");
  ExpectRefusal({{"/db", "/new"}}, "--cf_paths");
}

TEST_F(PathMovePlanTest, AnotherNameOfTheSource) {
  families_ = {MakeFamily("a", {"/x", "/y"}, 20)};
  ASSERT_OK(Make({{"/link/y", "/new"}}));
  EXPECT_EQ(plan_->moves()[0].request.from, "/y");
  EXPECT_EQ(NewPaths("a"), (Texts{"/x:100", "/new:101"}));
  ExpectRefusal({{"/y", "/link/y"}}, "both names lead to one directory");
}

// Otherwise what one move has put into the destination would be unknown there
// to the other one.
TEST_F(PathMovePlanTest, TwoNamesOfOneDestination) {
  families_ = {MakeFamily("a", {"/x", "/y"}, 20), MakeFamily("b", {"/z"}, 30)};
  ASSERT_OK(Make({{"/y", "/new"}, {"/z", "/link/new"}}));
  ASSERT_EQ(plan_->moves().size(), 2u);
  EXPECT_EQ(plan_->moves()[0].request.to, "/new");
  EXPECT_EQ(plan_->moves()[1].request.to, "/new");
  EXPECT_EQ(NewPaths("b"), (Texts{"/new:100"}));
}

TEST_F(PathMovePlanTest, Refusals) {
  wal_dir_ = "/wal";
  families_ = {MakeFamily("a", {"/x", "/y"}, 20), MakeFamily("b", {"/z"}, 30)};
  ExpectRefusal({}, "no directory");
  ExpectRefusal({{"", "/new"}}, "empty");
  ExpectRefusal({{"/y", ""}}, "empty");
  ExpectRefusal({{"/y", "/n\new"}}, "line break");
  ExpectRefusal({{"/y", "/./y"}}, "both names lead to one directory");
  ExpectRefusal({{"/y", "/wal"}}, "the directory of the WALs");
  ExpectRefusal({{"/y", "/n1"}, {"/link/y", "/n2"}},
                "the source was named before");
  ExpectRefusal({{"/x", "/y"}, {"/y", "/new"}},
                "the destination is a source, too");
  ExpectRefusal({{"/none", "/new"}},
                "the source is no path of a column family. The paths are /x, "
                "/y, /z");
  ExpectRefusal({{"/y", "/x"}},
                "path ids 0 and 1 of column family a would be one directory");
  ExpectRefusal({{"/x", "/y"}},
                "path ids 0 and 1 of column family a would be one directory");
  ExpectRefusal({{"/x", "/new"}, {"/y", "/link/new"}},
                "path ids 0 and 1 of column family a would be one directory");
  // A directory of another family, or of the database, is none of these.
  ASSERT_OK(Make({{"/y", "/z"}}));
  ASSERT_OK(Make({{"/y", "/db"}}));
}

// A path that is there twice stays so.
TEST_F(PathMovePlanTest, PathsThatWereOneDirectoryBefore) {
  families_ = {MakeFamily("a", {"/y", "/y"}, 20)};
  ASSERT_OK(Make({{"/y", "/new"}}));
  EXPECT_EQ(NewPaths("a"), (Texts{"/new:100", "/new:101"}));
  EXPECT_EQ(Names(plan_->moves()[0]).size(), 4u);
}

// The paths were replaced before: by this move, which was interrupted, or by
// one that is complete.
TEST_F(PathMovePlanTest, PathsAfterTheMove) {
  families_ = {MakeFamily("a", {"/x", "/new"}, 20)};
  ASSERT_OK(Make({{"/y", "/new"}}, /*resumes=*/true));
  EXPECT_EQ(Names(plan_->moves()[0]), (Texts{"000022.sst", "000023.blob"}));
  EXPECT_EQ(plan_->moves()[0].request.from, "/y");
  EXPECT_TRUE(plan_->moves()[0].users[0].was_replaced);
  EXPECT_EQ(NewPaths("a"), (Texts{"/x:100", "/new:101"}));

  ASSERT_OK(Make({{"/y", "/new"}}));
  EXPECT_TRUE(plan_->moves()[0].users.empty());
  EXPECT_TRUE(plan_->moves()[0].files.empty());
  EXPECT_TRUE(plan_->new_paths().empty());

  // The source is in use again.
  families_ = {MakeFamily("a", {"/new", "/y"}, 20)};
  ExpectRefusal({{"/y", "/new"}}, "would be one directory", /*resumes=*/true);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
