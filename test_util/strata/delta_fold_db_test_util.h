//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/delta/db_delta_model_test_util.h"
#include "db/delta/delta_picker.h"
#include "file/filename.h"
#include "test_util/strata/delta_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"

namespace ROCKSDB_NAMESPACE {

// The base of the fixtures that fold merge operands into values. The parameter
// says where values lie.
class DeltaFoldDBTestBase
    : public DeltaDBTestBase,
      public testing::WithParamInterface<delta_test::ValuePlace> {
 protected:
  using Values = delta_test::ValuePlace;

  using DeltaDBTestBase::DeltaDBTestBase;

  Options DeltaOptions() const {
    Options options = DeltaDBTestBase::DeltaOptions();
    options.merge_operator = std::make_shared<delta_test::AppendOperator>();
    // Tests call Resume() on their own.
    options.max_bgerror_resume_count = 0;
    options.num_levels = 4;
    delta_test::SetValues(GetParam(), &options);
    return options;
  }

  static std::string Long(const std::string& text) {
    return text + std::string(30, '.');
  }

  // ---- The model: the value of each key; a key that is absent is not found.

  void DoPut(const std::string& key, const std::string& value) {
    ASSERT_OK(Put(key, value));
    expected_[key] = value;
  }
  void DoMerge(const std::string& key, const std::string& operand) {
    ASSERT_OK(Merge(key, operand));
    expected_[key] += "," + operand;
  }
  void DoDelete(const std::string& key) {
    ASSERT_OK(Delete(key));
    expected_.erase(key);
  }
  void CheckAll(const std::map<std::string, std::string>& expected,
                const Snapshot* snapshot = nullptr) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    std::vector<Slice> keys;
    for (const std::string& key : all_keys_) {
      keys.emplace_back(key);
      std::string value;
      const Status s = db_->Get(read_options, key, &value);
      const auto found = expected.find(key);
      if (found == expected.end()) {
        EXPECT_TRUE(s.IsNotFound()) << key << ": " << s.ToString() << value;
      } else {
        EXPECT_OK(s);
        EXPECT_EQ(found->second, value) << key;
      }
    }
    std::vector<std::string> values;
    const std::vector<Status> statuses =
        db_->MultiGet(read_options, keys, &values);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto found = expected.find(all_keys_[i]);
      EXPECT_EQ(found == expected.end(), statuses[i].IsNotFound());
      EXPECT_EQ(found == expected.end() ? "" : found->second, values[i]);
    }
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    CheckIterator(iter.get(), expected);
  }
  void Check() { CheckAll(expected_); }

  // ---- Operands that are ready to be folded.

  // Writes keys with bases of all kinds in the tree, all flushed.
  void WriteBases() {
    for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
      all_keys_.emplace_back(key);
    }
    DoPut("b", "short");
    DoPut("c", Long("c"));
    DoPut("d", Long("d"));
    DoPut("e", Long("gone"));
    DoPut("f", Long("f"));
    ASSERT_OK(Flush());
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    DoPut("d", Long("d2"));
    DoDelete("e");
    ASSERT_OK(Flush());
  }
  // Writes two operands of each of these keys but "f", all flushed.
  void WriteOperands() {
    for (const char* key : {"a", "b", "c", "d", "e"}) {
      DoMerge(key, "1");
    }
    ASSERT_OK(Flush());
    for (const char* key : {"a", "b", "c", "d", "e"}) {
      DoMerge(key, Long("2"));
    }
    ASSERT_OK(Flush());
  }
  void WriteFoldable() {
    WriteBases();
    WriteOperands();
    Check();
  }

  // Makes each collection fold, unless no_more_folds_ is set.
  void ForceFolds() {
    EnableCallBack(
        "DBStrata::BackgroundDeltaCollection::Begin:Picked", [this](void* arg) {
          auto* const pick = static_cast<DeltaPicker::Collection*>(arg);
          pick->plan.fold = !no_more_folds_;
          ++num_picked_;
        });
  }
  Status Collect(int cf = -1) {
    return db_->CompactRange(CompactRangeOptions(),
                             cf < 0 ? db_->DefaultColumnFamily() : handles_[cf],
                             nullptr, nullptr);
  }
  // Collects, and calls `event` once: when a fold has read its operands and
  // bases, and has not begun to commit.
  // REQUIRES: ForceFolds() was called.
  Status CollectBeside(const std::function<void()>& event) {
    const auto was_called = EnableCallBackOnce(
        "DBStrata::BackgroundDeltaCollection::RunMarked:BeforeEdit",
        [event](void*) { event(); });
    const Status s = Collect();
    EXPECT_TRUE(*was_called);
    return s;
  }
  uint64_t NumFolded() { return Ticker(DELTA_OPERANDS_FOLDED); }
  void CheckNoOperands() {
    for (const std::string& key : all_keys_) {
      EXPECT_EQ(0, NumOperands(key)) << key;
    }
  }

  // Checks that there is an SST file on disk for each live one, and no other.
  void CheckFiles() {
    DeleteObsoleteFiles();
    EXPECT_EQ(0, NumUnknownTables());
  }
  // Returns the number of SST files on disk that are in no Version.
  size_t NumUnknownTables() {
    std::vector<LiveFileMetaData> live;
    db_->GetLiveFilesMetaData(&live);
    return FilesOnDisk(kTableFile).size() - live.size();
  }

  // Checks that readers still find the same values when sequence numbers have
  // become zero and no longer tell which entries are older.
  void CheckAndCompact() {
    Check();
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(ForceCompaction());
      Check();
    }
  }

  void Restart() {
    // Reopen() resets last_options_ before it reads its argument.
    const Options options = last_options_;
    Reopen(options);
  }

  // Checks that later reads, writes and jobs are correct.
  void GoOn() {
    DisableCallBacks();
    Check();
    DoMerge("a", "3");
    DoPut("b", "new");
    DoMerge("d", "3");
    Check();
    ASSERT_OK(Flush());
    Check();
    ASSERT_OK(Collect());
    Check();
    Restart();
    Check();
    CheckFiles();
  }

  std::map<std::string, std::string> expected_;
  std::vector<std::string> all_keys_;
  std::atomic<bool> no_more_folds_{false};
  std::atomic<int> num_picked_{0};
};

}  // namespace ROCKSDB_NAMESPACE
