//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_session_mark.h"

#include <memory>
#include <vector>

#include "db/db_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/utilities/options_util.h"

namespace ROCKSDB_NAMESPACE {

class LdbSessionMarkTest : public DBTestBase {
 public:
  LdbSessionMarkTest()
      : DBTestBase("ldb_session_mark_test", /*env_do_fsync=*/false) {}

  std::string NewestText() {
    std::string name;
    std::string text;
    EXPECT_OK(GetLatestOptionsFileName(dbname_, env_, &name));
    EXPECT_OK(ReadFileToString(env_, dbname_ + "/" + name, &text));
    return text;
  }
};

TEST_F(LdbSessionMarkTest, AllFilesOfTheSessionHaveIt) {
  const auto mark = std::make_shared<LdbSessionMark>();
  Options options = CurrentOptions();
  Reopen(options);
  EXPECT_FALSE(mark->IsIn(NewestText()));
  // A listener without a name is beside it.
  options.listeners = {std::make_shared<EventListener>(), mark};
  Reopen(options);
  EXPECT_TRUE(mark->IsIn(NewestText()));
  EXPECT_FALSE(LdbSessionMark().IsIn(NewestText()));
  ASSERT_OK(db_->SetOptions({{"write_buffer_size", "1234567"}}));
  EXPECT_NE(NewestText().find("write_buffer_size=1234567"), std::string::npos);
  EXPECT_TRUE(mark->IsIn(NewestText()));
  Close();
  // The file can be read without the object.
  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> families;
  ConfigOptions config;
  config.env = env_;
  ASSERT_OK(LoadLatestOptions(config, dbname_, &db_options, &families));
  EXPECT_TRUE(db_options.listeners.empty());
  options.listeners.clear();
  Reopen(options);
  EXPECT_FALSE(mark->IsIn(NewestText()));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
