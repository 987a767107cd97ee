//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The file system and the model of fault sweeps.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test_util/strata/history_fault_fs_test_util.h"
#include "test_util/strata/history_injector_test_util.h"
#include "test_util/strata/history_model_test_util.h"
#include "test_util/strata/history_unsynced_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string Root() { return test::PerThreadDBPath("history_faults_test"); }

}  // namespace

// The injector.

class HistoryInjectorTest : public testing::Test {
 protected:
  using Op = HistoryFileOp;
  using Effect = HistoryInjector::Effect;

  IOStatus Do(Op op, const std::string& path = "db/000001.sst") {
    return injector_.OnOperation(op, path).status;
  }

  HistoryInjector injector_;
};

TEST_F(HistoryInjectorTest, OnlyTheNthOperationFails) {
  injector_.Arm({{Op::kWrite, Op::kSync}, Effect::kError, 3});
  ASSERT_OK(Do(Op::kWrite));
  ASSERT_OK(Do(Op::kRead));
  ASSERT_OK(Do(Op::kSync));
  ASSERT_FALSE(injector_.has_fired());
  const IOStatus s = Do(Op::kWrite, "p1/000007.blob");
  ASSERT_TRUE(s.IsIOError());
  ASSERT_FALSE(s.GetRetryable());
  ASSERT_EQ(injector_.fired_at(), "WRITE p1/000007.blob");
  ASSERT_OK(Do(Op::kWrite));
  ASSERT_EQ(injector_.count(Op::kWrite), 3);
  ASSERT_EQ(injector_.count(Op::kRead), 1);
}

TEST_F(HistoryInjectorTest, EffectsDiffer) {
  injector_.Arm({{Op::kWrite}, Effect::kRetryableNoSpace, 1});
  IOStatus s = Do(Op::kWrite);
  ASSERT_TRUE(s.IsNoSpace());
  ASSERT_TRUE(s.GetRetryable());

  injector_.Arm({{Op::kWrite}, Effect::kShortWrite, 1});
  HistoryInjector::Decision decision = injector_.OnOperation(Op::kWrite, "a");
  ASSERT_TRUE(decision.is_short);
  ASSERT_NOK(decision.status);

  injector_.Arm({{Op::kSync}, Effect::kNotDone, 1});
  decision = injector_.OnOperation(Op::kSync, "a");
  ASSERT_TRUE(decision.is_not_done);
  ASSERT_OK(decision.status);
}

TEST_F(HistoryInjectorTest, AllOperationsFailAfterACrash) {
  int num_crashes = 0;
  injector_.SetCrashCallback([&num_crashes]() { ++num_crashes; });
  injector_.Arm({{Op::kDelete}, Effect::kCrash, 1});
  ASSERT_OK(Do(Op::kWrite));
  ASSERT_NOK(Do(Op::kDelete));
  ASSERT_NOK(Do(Op::kRead));
  ASSERT_TRUE(injector_.is_crashed());
  ASSERT_EQ(num_crashes, 1);
  injector_.Disarm();
  ASSERT_OK(Do(Op::kDelete));
  ASSERT_TRUE(injector_.has_fired());
}

TEST_F(HistoryInjectorTest, InfoLogsDoNotCount) {
  injector_.Arm({{Op::kWrite}, Effect::kError, 1});
  ASSERT_OK(Do(Op::kWrite, "db/LOG"));
  ASSERT_OK(Do(Op::kWrite, "db/LOG.old.123"));
  ASSERT_EQ(injector_.count(Op::kWrite), 0);
  ASSERT_NOK(Do(Op::kWrite, "db/000004.log"));
}

// The file system.

class HistoryFaultFSTest : public testing::Test {
 protected:
  HistoryFaultFSTest()
      : root_(Root()),
        fs_(std::make_shared<HistoryFaultFS>(FileSystem::Default(), root_)) {
    EXPECT_OK(Env::Default()->CreateDirIfMissing(root_));
  }
  ~HistoryFaultFSTest() override {
    Env::Default()->DeleteFile(Path()).PermitUncheckedError();
    Env::Default()->DeleteDir(root_).PermitUncheckedError();
  }

  std::string Path() const { return root_ + "/f"; }
  std::unique_ptr<FSWritableFile> NewFile() {
    std::unique_ptr<FSWritableFile> file;
    EXPECT_OK(fs_->NewWritableFile(Path(), FileOptions(), &file, nullptr));
    return file;
  }
  std::string Contents() {
    std::string contents;
    EXPECT_OK(ReadFileToString(Env::Default(), Path(), &contents));
    return contents;
  }

  const std::string root_;
  const std::shared_ptr<HistoryFaultFS> fs_;
};

TEST_F(HistoryFaultFSTest, ShortWriteWritesTheFirstHalf) {
  fs_->injector().Arm(
      {{HistoryFileOp::kWrite}, HistoryInjector::Effect::kShortWrite, 2});
  auto file = NewFile();
  ASSERT_OK(file->Append("abcd", IOOptions(), nullptr));
  ASSERT_NOK(file->Append("efgh", IOOptions(), nullptr));
  ASSERT_OK(file->Append("ij", IOOptions(), nullptr));
  ASSERT_OK(file->Close(IOOptions(), nullptr));
  ASSERT_EQ(Contents(), "abcdefij");
}

TEST_F(HistoryFaultFSTest, LateOperationIsDoneAndFails) {
  fs_->injector().Arm(
      {{HistoryFileOp::kWrite}, HistoryInjector::Effect::kLate, 1});
  auto file = NewFile();
  ASSERT_NOK(file->Append("abcd", IOOptions(), nullptr));
  ASSERT_OK(file->Close(IOOptions(), nullptr));
  ASSERT_EQ(Contents(), "abcd");
  fs_->injector().Arm(
      {{HistoryFileOp::kRename}, HistoryInjector::Effect::kLate, 1});
  const std::string other = root_ + "/g";
  ASSERT_NOK(fs_->RenameFile(Path(), other, IOOptions(), nullptr));
  ASSERT_OK(Env::Default()->FileExists(other));
  ASSERT_OK(fs_->RenameFile(other, Path(), IOOptions(), nullptr));
}

TEST_F(HistoryFaultFSTest, SyncThatIsNotDoneKeepsNothing) {
  fs_->injector().Arm(
      {{HistoryFileOp::kSync}, HistoryInjector::Effect::kNotDone, 2});
  auto file = NewFile();
  ASSERT_OK(file->Append("abcd", IOOptions(), nullptr));
  ASSERT_OK(file->Sync(IOOptions(), nullptr));
  ASSERT_OK(file->Append("efgh", IOOptions(), nullptr));
  ASSERT_OK(file->Sync(IOOptions(), nullptr));
  ASSERT_OK(file->Close(IOOptions(), nullptr));
  ASSERT_OK(
      fs_->unsynced().Drop(HistoryUnsynced::Survivors::kNone, /*seed=*/1));
  ASSERT_EQ(Contents(), "abcd");
}

TEST_F(HistoryFaultFSTest, BytesOfAReopenedFileAreSynced) {
  ASSERT_OK(WriteStringToFile(Env::Default(), "abcd", Path()));
  std::unique_ptr<FSWritableFile> file;
  ASSERT_OK(fs_->ReopenWritableFile(Path(), FileOptions(), &file, nullptr));
  ASSERT_OK(file->Append("efgh", IOOptions(), nullptr));
  ASSERT_OK(file->Close(IOOptions(), nullptr));
  ASSERT_OK(
      fs_->unsynced().Drop(HistoryUnsynced::Survivors::kNone, /*seed=*/1));
  ASSERT_EQ(Contents(), "abcd");
}

// Synced bytes survive; each block behind them is as it was written, or zeros.
// With enough seeds, some file has a later block without an earlier one.
TEST_F(HistoryFaultFSTest, RandomBlocksSurviveOutOfOrder) {
  const std::string synced(700, 's');
  const std::string unsynced(3000, 'u');
  bool has_hole = false;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    auto file = NewFile();
    ASSERT_OK(file->Append(synced, IOOptions(), nullptr));
    ASSERT_OK(file->Sync(IOOptions(), nullptr));
    ASSERT_OK(file->Append(unsynced, IOOptions(), nullptr));
    ASSERT_OK(file->Close(IOOptions(), nullptr));
    ASSERT_OK(
        fs_->unsynced().Drop(HistoryUnsynced::Survivors::kRandomBlocks, seed));
    const std::string contents = Contents();
    ASSERT_GE(contents.size(), synced.size());
    ASSERT_LE(contents.size(), synced.size() + unsynced.size());
    ASSERT_EQ(contents.substr(0, synced.size()), synced);
    const size_t hole = contents.find('\0');
    for (size_t i = synced.size(); i < contents.size(); ++i) {
      ASSERT_TRUE(contents[i] == 'u' || contents[i] == '\0');
    }
    has_hole = has_hole || (hole != std::string::npos &&
                            contents.find('u', hole) != std::string::npos);
  }
  ASSERT_TRUE(has_hole);
}

// The model.

class HistoryModelFaultsTest : public testing::Test {
 protected:
  HistoryModelFaultsTest() { model_.CreateFamily("f"); }

  void Put(const std::string& key, const std::string& value, bool has_failed) {
    HistoryModel::Write write;
    write.ops.emplace_back();
    write.ops.back().cf = "f";
    write.ops.back().key = key;
    write.ops.back().columns[""] = value;
    write.has_failed = has_failed;
    model_.Append(std::move(write));
  }
  static HistoryModel::AllContents Contents(const std::string& keys) {
    HistoryModel::AllContents all;
    all["f"];
    for (const char key : keys) {
      all["f"][std::string(1, key)][""] = std::string(1, key);
    }
    return all;
  }

  HistoryModel model_;
};

TEST_F(HistoryModelFaultsTest, AnyOfTheFailedWritesMayHaveSurvived) {
  Put("a", "a", true);
  Put("b", "b", true);
  Put("c", "c", false);
  for (const char* found : {"c", "ac", "bc", "abc"}) {
    HistoryModel model = model_;
    ASSERT_TRUE(model.Recover(Contents(found), /*is_crash=*/false)) << found;
    ASSERT_EQ(model.Now("f"), Contents(found).at("f"));
  }
  ASSERT_FALSE(model_.Recover(Contents("ab"), /*is_crash=*/false));
}

TEST_F(HistoryModelFaultsTest, FirstWritesOfALongRunOfFailuresMaySurvive) {
  for (const char key : std::string("abcdefgh")) {
    Put(std::string(1, key), std::string(1, key), true);
  }
  for (const char* found : {"", "a", "abc", "abcdefgh"}) {
    HistoryModel model = model_;
    ASSERT_TRUE(model.Recover(Contents(found), /*is_crash=*/true)) << found;
  }
}

TEST_F(HistoryModelFaultsTest, DoubtfulKeysAreNotCompared) {
  Put("a", "a", false);
  Put("b", "b", false);
  model_.Doubt("f", "b", "c");
  ASSERT_TRUE(model_.IsBlurred("f", "b", model_.Position()));
  ASSERT_FALSE(model_.IsBlurred("f", "a", model_.Position()));
  HistoryModel model = model_;
  ASSERT_TRUE(model.Recover(Contents("ac"), /*is_crash=*/false));
  ASSERT_TRUE(model_.Recover(Contents("a"), /*is_crash=*/false));
  ASSERT_FALSE(model_.Recover(Contents("bc"), /*is_crash=*/false));
}

TEST_F(HistoryModelFaultsTest, CrashMayTakeWritesThatAreNotDurable) {
  Put("b", "b", false);
  ASSERT_TRUE(model_.MayLoseWrites("f", "a", "b"));
  ASSERT_TRUE(model_.MayLoseWrites("f", "b", "c"));
  ASSERT_FALSE(model_.MayLoseWrites("f", "c", "d"));
  ASSERT_FALSE(model_.MayLoseWrites("g", "a", "c"));
  model_.MarkDurable();
  ASSERT_FALSE(model_.MayLoseWrites("f", "a", "b"));
}

TEST_F(HistoryModelFaultsTest, UnflushedRecoveryMakesNothingDurable) {
  Put("a", "a", false);
  model_.MarkDurable();
  Put("b", "b", false);
  ASSERT_TRUE(model_.Recover(Contents("ab"), /*is_crash=*/false,
                             /*is_flushed=*/false));
  HistoryModel model = model_;
  ASSERT_TRUE(model.Recover(Contents("a"), /*is_crash=*/true));
  ASSERT_FALSE(model_.Recover(Contents(""), /*is_crash=*/true));
}

TEST_F(HistoryModelFaultsTest, ValuesConsistOfWhatWasWritten) {
  Put("a", "1,2", false);
  Put("a", "3", true);
  const auto could_have = [this](const std::string& key,
                                 const std::string& value) {
    return model_.CouldHave("f", key, {{"", value}});
  };
  ASSERT_TRUE(could_have("a", "1,2"));
  ASSERT_TRUE(could_have("a", "2,3"));
  ASSERT_FALSE(could_have("a", "1,4"));
  ASSERT_FALSE(could_have("a", ""));
  ASSERT_FALSE(could_have("b", "1"));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
