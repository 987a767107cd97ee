//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_move_mark.h"

#include <string>
#include <vector>

#include "db/path_layout/mark_text.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class PathMoveMarkTest : public testing::Test {
 protected:
  PathMoveMarkTest()
      : fs_(FileSystem::Default().get()),
        directory_(test::PerThreadDBPath("path_move_mark_test")) {
    EXPECT_OK(DestroyDir(Env::Default(), directory_));
    EXPECT_OK(Env::Default()->CreateDir(directory_));
  }
  ~PathMoveMarkTest() override {
    EXPECT_OK(DestroyDir(Env::Default(), directory_));
  }

  static PathMoveMark MakeMark() {
    PathMoveMark mark;
    mark.moves.resize(2);
    mark.moves[0].request = {"/from a", "/to to b"};
    mark.moves[0].files = {{"000012.sst", 0}, {"000013.blob", 123456789012}};
    mark.moves[1].request = {"/c", "/d"};
    return mark;
  }

  static void ExpectSame(const PathMoveMark& a, const PathMoveMark& b) {
    ASSERT_EQ(a.moves.size(), b.moves.size());
    for (size_t i = 0; i < a.moves.size(); ++i) {
      EXPECT_EQ(a.moves[i].request.from, b.moves[i].request.from);
      EXPECT_EQ(a.moves[i].request.to, b.moves[i].request.to);
      EXPECT_EQ(a.moves[i].files, b.moves[i].files);
    }
  }

  FileSystem* const fs_;
  const std::string directory_;
};

TEST_F(PathMoveMarkTest, IsReadAsItWasWritten) {
  PathMoveMark read;
  EXPECT_TRUE(read.Read(fs_, directory_).IsNotFound());
  PathMoveMark mark = MakeMark();
  ASSERT_OK(mark.Write(fs_, directory_));
  ASSERT_OK(read.Read(fs_, directory_));
  ExpectSame(read, mark);
  // The mark is replaced.
  mark.moves.pop_back();
  ASSERT_OK(mark.Write(fs_, directory_));
  ASSERT_OK(read.Read(fs_, directory_));
  ExpectSame(read, mark);
  std::vector<std::string> names;
  ASSERT_OK(Env::Default()->GetChildren(directory_, &names));
  EXPECT_EQ(names, std::vector<std::string>{PathMoveMark::Name()});
  ASSERT_OK(PathMoveMark::Delete(fs_, directory_));
  EXPECT_TRUE(read.Read(fs_, directory_).IsNotFound());
}

// The form is that of docs/formats.md.
TEST_F(PathMoveMarkTest, Text) {
  const std::string text = MakeMark().Encode();
  const std::string lines =
      "Strata moves paths\nfrom /from a\nto /to to b\n000012.sst 0\n"
      "000013.blob 123456789012\nfrom /c\nto /d\ncrc32c ";
  EXPECT_EQ(text.substr(0, lines.size()), lines);
  EXPECT_EQ(text.size(), lines.size() + 9);
}

TEST_F(PathMoveMarkTest, DamageIsCorruption) {
  const std::string text = MakeMark().Encode();
  PathMoveMark mark;
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_TRUE(mark.DecodeFrom(text.substr(0, size)).IsCorruption()) << size;
    std::string changed = text;
    changed[size] ^= 1;
    EXPECT_TRUE(mark.DecodeFrom(changed).IsCorruption()) << size;
  }
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"from /a"},
      {"from /a", "from /b"},
      {"to /a"},
      {"000012.sst 1"},
      {"from /a", "to /b", "000012.sst"},
      {"from /a", "to /b", " 1"},
      {"from /a", "to /b", "000012.sst x"},
      {"from /a", "to /b", "000012.sst "},
      {"from /a", "to /b", "000012.sst 1x"},
      {"from /a", "to /b", ""}};
  for (const std::vector<std::string>& lines : wrong) {
    const std::string wrong_text = EncodeMark("Strata moves paths", lines);
    EXPECT_TRUE(mark.DecodeFrom(wrong_text).IsCorruption()) << wrong_text;
  }
  ASSERT_OK(mark.DecodeFrom(
      EncodeMark("Strata moves paths", {"from /a", "to /b", "x 1"})));
  // The error names the file.
  const std::string fname = directory_ + "/" + PathMoveMark::Name();
  ASSERT_OK(WriteStringToFile(fs_, "x", fname));
  const Status s = mark.Read(fs_, directory_);
  EXPECT_TRUE(s.IsCorruption());
  EXPECT_NE(s.ToString().find(fname), std::string::npos) << s.ToString();
}

// An open of the database neither deletes the mark nor takes it for another
// file.
TEST_F(PathMoveMarkTest, RocksDBDoesNotKnowTheName) {
  uint64_t number = 0;
  FileType type = kTempFile;
  EXPECT_FALSE(ParseFileName(PathMoveMark::Name(), &number, &type));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
