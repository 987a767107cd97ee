//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/direct_mode_check.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "db/version_set.h"
#include "port/stack_trace.h"
#include "test_util/strata/address_map_db_test_util.h"

namespace ROCKSDB_NAMESPACE {

// Without a filter policy, any key in the range of a file with non-direct
// entries counts as one of these entries. Inline values are not direct.
class DirectModeCheckTest : public AddressMapDBTestBase {
 public:
  DirectModeCheckTest() : AddressMapDBTestBase("direct_mode_check_test") {}

 protected:
  static constexpr SequenceNumber kReader = 1000000;

  void Open() { DestroyAndReopen(MapOptions(/*min_blob_size=*/50)); }

  // Writes a file of these inline values and moves it to the level.
  void Write(int level, const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      ASSERT_OK(Put(key, "inline"));
    }
    ASSERT_OK(Flush());
    if (level > 0) {
      MoveFilesToLevel(level);
    }
  }

  // Returns the keys that may not be direct.
  // keys: in comparator order.
  // is_older: see DirectModeCheck.
  std::set<std::string> Unsafe(
      const std::vector<std::string>& keys,
      const std::function<bool(int level, const FileMetaData&)>& is_older =
          [](int, const FileMetaData&) { return true; }) {
    DirectModeCheck check(kReader, Family()->current(), ReadOptions(),
                          is_older);
    std::set<std::string> result;
    for (const std::string& key : keys) {
      const bool is_safe = check.IsSafe(key, /*seq=*/1);
      EXPECT_EQ(check.IsSafe(key, /*seq=*/2), is_safe) << key;
      if (!is_safe) {
        result.insert(key);
      }
    }
    return result;
  }

  using Keys = std::set<std::string>;
};

TEST_F(DirectModeCheckTest, ValueThatAReaderMayNotSeeIsNotDirect) {
  Open();
  DirectModeCheck check(/*earliest_reader=*/10, Family()->current(),
                        ReadOptions(),
                        [](int, const FileMetaData&) { return true; });
  EXPECT_TRUE(check.IsSafe("k", 9));
  EXPECT_TRUE(check.IsSafe("k", 10));
  EXPECT_FALSE(check.IsSafe("k", 11));
}

TEST_F(DirectModeCheckTest, KeysWithinTheRangeOfAFileAreNotDirect) {
  for (const int level : {0, 2}) {
    SCOPED_TRACE(level);
    Open();
    EXPECT_EQ(Unsafe({"a", "b", "c"}), Keys());
    Write(level, {"b", "d"});
    EXPECT_EQ(Unsafe({"a", "b", "c", "d", "e"}), Keys({"b", "c", "d"}));
  }
}

// The newest file comes first, so the files are not in key order.
TEST_F(DirectModeCheckTest, FilesOfLevel0AreSearchedOneByOne) {
  Open();
  Write(0, {"a", "c"});
  Write(0, {"e", "g"});
  Write(0, {"b", "d"});
  EXPECT_EQ(Unsafe({"", "a", "aa", "b", "c", "d", "dd", "e", "f", "g", "h"}),
            Keys({"a", "aa", "b", "c", "d", "e", "f", "g"}));
}

TEST_F(DirectModeCheckTest, AllFilesOfAllLevelsAreSearched) {
  Open();
  Write(3, {"c", "d"});
  Write(3, {"e", "f"});
  Write(3, {"k", "l"});
  Write(2, {"i"});
  Write(0, {"a"});
  const std::vector<std::string> keys = {"a", "b", "c", "d", "e", "f",
                                         "g", "i", "j", "k", "l", "m"};
  EXPECT_EQ(Unsafe(keys), Keys({"a", "c", "d", "e", "f", "i", "k", "l"}));
  EXPECT_EQ(Unsafe({"i", "l"}), Keys({"i", "l"}));
  EXPECT_EQ(
      Unsafe(keys, [](int level, const FileMetaData&) { return level != 3; }),
      Keys({"a", "i"}));
  EXPECT_EQ(Unsafe(keys,
                   [](int, const FileMetaData& file) {
                     return file.smallest.user_key() != Slice("e");
                   }),
            Keys({"a", "c", "d", "i", "k", "l"}));
}

TEST_F(DirectModeCheckTest, FilesWithDirectValuesAloneDoNotMatter) {
  Open();
  ASSERT_OK(Put("a", Value(1)));
  ASSERT_OK(Put("c", Value(1)));
  ASSERT_OK(Flush());
  ASSERT_TRUE(IsDirect("a"));
  EXPECT_EQ(Unsafe({"a", "b", "c"}), Keys());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
