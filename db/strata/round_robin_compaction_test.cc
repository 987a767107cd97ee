//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// A compaction with kRoundRobin takes all entries of a key that has entries in
// several files of a level.

#include <set>
#include <string>
#include <utility>

#include "db/dbformat.h"
#include "port/stack_trace.h"
#include "test_util/strata/strata_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"

namespace ROCKSDB_NAMESPACE {

class RoundRobinCompactionTest : public StrataDBTestBase {
 public:
  RoundRobinCompactionTest()
      : StrataDBTestBase("round_robin_compaction_test") {}

 protected:
  // Makes compactions begin a file at the newest entry of each of these keys,
  // or at the second newest one.
  void CutBefore(const std::set<std::string>& newest,
                 const std::set<std::string>& second) {
    EnableCallBack("CompactionOutputs::ShouldStopBefore::manual_decision",
                   [=, last = std::string()](void* arg) mutable {
                     const auto* const p =
                         static_cast<std::pair<bool*, const Slice>*>(arg);
                     const std::string key =
                         ExtractUserKey(p->second).ToString();
                     *p->first = (key == last ? second : newest).count(key) > 0;
                     last = key;
                   });
  }
};

// The picker begins with the file of "a", adds the next one, and with it all
// files that share a key with it. Then it goes on with the file after the
// second one, which it has already.
TEST_F(RoundRobinCompactionTest, TakesAllFilesThatShareKeys) {
  Options options = CurrentOptions();
  options.compaction_style = kCompactionStyleLevel;
  options.compaction_pri = kRoundRobin;
  options.level_compaction_dynamic_level_bytes = false;
  options.num_levels = 4;
  options.max_bytes_for_level_base = 100;
  // Levels below do not take part.
  options.max_bytes_for_level_multiplier = 1000000;
  options.disable_auto_compactions = true;
  DestroyAndReopen(options);
  const std::string keys[] = {"b", "c", "d", "e", "f"};
  ASSERT_OK(Put("a", "new"));
  for (const std::string& key : keys) {
    ASSERT_OK(Put(key, "old"));
  }
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(Flush());
  for (const std::string& key : keys) {
    ASSERT_OK(Put(key, "new"));
  }
  // The compaction stays smaller than the level.
  ASSERT_OK(Put("g", std::string(10000, 'v')));
  ASSERT_OK(Put("h", std::string(10000, 'v')));
  ASSERT_OK(Flush());
  CutBefore(/*newest=*/{"b", "g", "h"}, /*second=*/{"c", "d", "e"});
  ASSERT_OK(dbfull()->TEST_CompactRange(0, nullptr, nullptr));
  DisableCallBacks();
  ASSERT_EQ(FilesPerLevel(), "0,7");

  ASSERT_OK(dbfull()->SetOptions({{"disable_auto_compactions", "false"}}));
  ASSERT_OK(dbfull()->TEST_WaitForCompact());
  EXPECT_GT(NumTableFilesAtLevel(2), 0);
  for (const std::string& key : keys) {
    EXPECT_EQ(Get(key), "new") << key;
    EXPECT_EQ(Get(key, snapshot), "old") << key;
  }
  db_->ReleaseSnapshot(snapshot);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
