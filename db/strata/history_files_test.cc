//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What fault sweeps do with the files of a DB.

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/strata/history_db_test_util.h"
#include "test_util/strata/history_flips_test_util.h"
#include "test_util/strata/history_interpreter_test_util.h"
#include "test_util/strata/history_leaks_test_util.h"
#include "test_util/strata/history_saved_db_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string Root() { return test::PerThreadDBPath("history_files_test"); }

}  // namespace

class HistoryFilesTest : public testing::Test {
 protected:
  HistoryFilesTest() : interpreter_(Root(), /*overrides=*/{}) {
    EXPECT_OK(interpreter_.Start());
  }

  std::string Run(const HistoryWords& words) {
    HistoryInterpreter::Output output;
    interpreter_.Run(words, "step: ", &output);
    return output.text;
  }
  HistoryDb& Db() { return interpreter_.db(); }

  HistoryInterpreter interpreter_;
};

TEST_F(HistoryFilesTest, UnknownFilesAreFound) {
  ASSERT_EQ(Run({"open", "paths=2", "layout=vertical", "blobs=20"}), "");
  ASSERT_EQ(Run({"put", "a", "@30"}), "");
  ASSERT_EQ(Run({"flush"}), "");
  ASSERT_EQ(Run({"put", "b", "@30"}), "");
  std::vector<std::string> leaks;
  ASSERT_OK(HistoryLeaks::Find(Db(), &leaks));
  ASSERT_EQ(leaks, std::vector<std::string>());
  const std::vector<std::string> unknown = {
      "db/000001.log",   "db/900000.sst",      "db/900002.dbtmp",
      "db/900003.delta", "db/MANIFEST-900004", "p1/900001.blob"};
  for (const std::string& name : unknown) {
    ASSERT_OK(WriteStringToFile(Env::Default(), "x", Db().root() + "/" + name));
  }
  // RocksDB itself leaves temporary OPTIONS files where a crash leaves them.
  ASSERT_OK(WriteStringToFile(Env::Default(), "x",
                              Db().root() + "/db/OPTIONS-900005.dbtmp"));
  ASSERT_OK(HistoryLeaks::Find(Db(), &leaks));
  std::sort(leaks.begin(), leaks.end());
  ASSERT_EQ(leaks, unknown);
}

TEST_F(HistoryFilesTest, BytesOfAllFilesAreListedAndChanged) {
  ASSERT_EQ(Run({"open", "blobs=20"}), "");
  ASSERT_EQ(Run({"put", "a", "@3000"}), "");
  ASSERT_EQ(Run({"flush"}), "");
  Db().Close();
  std::vector<HistoryFlip> flips;
  ASSERT_OK(HistoryFlips::List(Db(), &flips));
  std::set<FileType> types;
  uint64_t num_blob_bytes = 0;
  for (const HistoryFlip& flip : flips) {
    types.insert(flip.type);
    num_blob_bytes += flip.type == kBlobFile ? 1 : 0;
  }
  for (const FileType type : {kTableFile, kBlobFile, kDescriptorFile,
                              kCurrentFile, kOptionsFile, kIdentityFile}) {
    ASSERT_EQ(types.count(type), 1) << type;
  }
  ASSERT_GT(num_blob_bytes, HistoryFlips::kMaxBytes / 2);
  ASSERT_LE(num_blob_bytes, HistoryFlips::kMaxBytes);

  std::string before;
  ASSERT_OK(ReadFileToString(Env::Default(), flips[0].path, &before));
  ASSERT_OK(HistoryFlips::Apply(flips[0]));
  std::string after;
  ASSERT_OK(ReadFileToString(Env::Default(), flips[0].path, &after));
  before[0] = static_cast<char>(before[0] ^ 1);
  ASSERT_EQ(after, before);
}

TEST_F(HistoryFilesTest, SavedDbIsRestored) {
  ASSERT_EQ(Run({"open"}), "");
  ASSERT_EQ(Run({"put", "a", "1"}), "");
  Db().Close();
  HistorySavedDb saved(&Db());
  ASSERT_OK(saved.Save());
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(Db().Open());
    ASSERT_EQ(Run({"get", "a"}), "1\n");
    ASSERT_EQ(Run({"get", "b"}), "(not found)\n");
    ASSERT_EQ(Run({"put", "b", "2"}), "");
    ASSERT_EQ(Run({"del", "a"}), "");
    ASSERT_EQ(Run({"flush"}), "");
    ASSERT_OK(saved.Restore());
  }
  ASSERT_OK(Db().Open());
  interpreter_.Finish("end: ");
  ASSERT_TRUE(interpreter_.findings().disagreements().empty());
}

// A family whose creation has failed may exist or not: the MANIFEST decides.
TEST_F(HistoryFilesTest, DoubtfulFamiliesAreSettledByTheManifest) {
  ASSERT_EQ(Run({"open"}), "");
  Run({"fail", "RENAME", "*.dbtmp"});
  // The OPTIONS file is written after the edit of the MANIFEST.
  ASSERT_NE(Run({"family", "create", "f"}), "");
  ASSERT_EQ(Db().families().count("f"), 0);
  Run({"unfail"});
  ASSERT_EQ(Run({"reopen"}), "");
  ASSERT_EQ(Db().families().count("f"), 1);
  ASSERT_EQ(Run({"cf=f", "put", "a", "1"}), "");
  ASSERT_EQ(Run({"cf=f", "get", "a"}), "1\n");

  Run({"fail", "WRITE", "db/MANIFEST*"});
  ASSERT_NE(Run({"family", "create", "g"}), "");
  Run({"unfail"});
  ASSERT_EQ(Run({"reopen"}), "");
  ASSERT_EQ(Db().families().count("g"), 0);
  ASSERT_TRUE(interpreter_.findings().disagreements().empty());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
