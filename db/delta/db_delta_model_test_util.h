//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/db_impl/db_impl.h"
#include "db/delta/delta_version.h"
#include "db/version_set.h"
#include "rocksdb/merge_operator.h"
#include "test_util/strata/delta_db_test_util.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {
namespace delta_test {

// Appends operands with commas. Does not combine operands with each other, so
// jobs get each of them. Fails on the operand "bad".
class AppendOperator : public MergeOperator {
 public:
  bool FullMergeV2(const MergeOperationInput& in,
                   MergeOperationOutput* out) const override {
    std::string& result = out->new_value;
    result = in.existing_value != nullptr ? in.existing_value->ToString() : "";
    for (const Slice& operand : in.operand_list) {
      if (operand == "bad") {
        return false;
      }
      result += "," + operand.ToString();
    }
    return true;
  }
  const char* Name() const override { return "AppendOperator"; }
};

// The place of a DB's values.
enum class ValuePlace { kInline, kBlobs, kMap, kMapVersioned };

inline void SetValues(ValuePlace values, Options* options) {
  if (values != ValuePlace::kInline) {
    options->enable_blob_files = true;
    options->min_blob_size = 20;
  }
  if (values == ValuePlace::kMap || values == ValuePlace::kMapVersioned) {
    options->enable_blob_address_map = true;
    options->enable_lsm_bypass = values == ValuePlace::kMap;
  }
}

// A DB and its expected contents, now and at snapshots. All keys have names of
// KeyOf().
class ModelDBTest : public DeltaDBTestBase {
 protected:
  using State = Contents;

  explicit ModelDBTest(const std::string& name) : DeltaDBTestBase(name) {}
  ~ModelDBTest() override { ReleaseSnapshots(); }

  // The buckets are small, so that there are several.
  Options DeltaOptions() const {
    Options options = DeltaDBTestBase::DeltaOptions();
    options.delta_bucket_size = 4096;
    options.delta_max_buckets = 64;
    options.compression = kNoCompression;
    return options;
  }

  // Returns the result of the merge operator for a value and an operand; that
  // of StringAppendOperator unless a test has another one.
  virtual std::string Appended(const std::string& value,
                               const std::string& operand) const {
    return value + (value.empty() ? "" : ",") + operand;
  }

  static std::string KeyOf(uint32_t i) {
    return "key" + std::to_string(1000 + i);
  }

  // ---- Writes; they update the expected contents.

  void DoMerge(const std::string& key, const std::string& operand) {
    ASSERT_OK(Merge(key, operand));
    std::string& now = state_[key];
    now = Appended(now, operand);
  }
  void DoPut(const std::string& key, const std::string& value) {
    ASSERT_OK(Put(key, value));
    state_[key] = value;
  }
  void DoDelete(const std::string& key) {
    ASSERT_OK(Delete(key));
    state_.erase(key);
  }
  void DoDeleteRange(const std::string& begin, const std::string& end) {
    ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                               begin, end));
    state_.erase(state_.lower_bound(begin), state_.lower_bound(end));
  }
  void DoSnapshot() { snapshots_.emplace_back(db_->GetSnapshot(), state_); }
  void ReleaseSnapshots() {
    for (const auto& [snapshot, state] : snapshots_) {
      db_->ReleaseSnapshot(snapshot);
    }
    snapshots_.clear();
  }

  // Writes an operand for each of these keys, then flushes.
  void FlushOperands(uint32_t first, uint32_t last, size_t size) {
    for (uint32_t i = first; i < last; ++i) {
      DoMerge(KeyOf(i),
              std::string(size, static_cast<char>('a' + num_flushes_ % 26)));
    }
    ++num_flushes_;
    ASSERT_OK(Flush());
  }
  void RandomWrites(int num, Random* rnd) {
    for (; num > 0; --num) {
      const std::string key = KeyOf(rnd->Uniform(kNumKeys));
      if (rnd->OneIn(12)) {
        DoPut(key, rnd->RandomString(10 + rnd->Uniform(30)));
      } else if (rnd->OneIn(15)) {
        DoDelete(key);
      } else if (rnd->OneIn(60)) {
        const uint32_t begin = rnd->Uniform(kNumKeys);
        DoDeleteRange(KeyOf(begin), KeyOf(begin + 1 + rnd->Uniform(20)));
      } else {
        DoMerge(key, rnd->RandomString(1 + rnd->Uniform(80)));
      }
    }
  }
  Status CompactAll(
      const CompactRangeOptions& options = CompactRangeOptions()) {
    return db_->CompactRange(options, nullptr, nullptr);
  }

  // ---- Checks.

  void Check() {
    CheckAt(nullptr, state_);
    for (const auto& [snapshot, state] : snapshots_) {
      CheckAt(snapshot, state);
    }
    CheckVersion();
  }
  void CheckAt(const Snapshot* snapshot, const State& state) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    std::vector<std::string> names;
    for (uint32_t i = 0; i < kNumKeys + 50; ++i) {
      names.push_back(KeyOf(i));
    }
    std::vector<Slice> keys(names.begin(), names.end());
    std::vector<PinnableSlice> values(keys.size());
    std::vector<Status> statuses(keys.size());
    db_->MultiGet(read_options, db_->DefaultColumnFamily(), keys.size(),
                  keys.data(), values.data(), statuses.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      std::string value;
      const Status s = db_->Get(read_options, keys[i], &value);
      const auto expected = state.find(names[i]);
      if (expected == state.end()) {
        ASSERT_TRUE(s.IsNotFound()) << names[i] << " " << s.ToString();
        ASSERT_TRUE(statuses[i].IsNotFound()) << names[i];
      } else {
        ASSERT_OK(s);
        ASSERT_EQ(expected->second, value) << names[i];
        ASSERT_OK(statuses[i]);
        ASSERT_EQ(expected->second, values[i].ToString()) << names[i];
      }
    }
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    CheckIterator(iter.get(), state);
  }
  void CheckVersion() {
    InstrumentedMutexLock lock(dbfull()->mutex());
    const auto& version = Family()->current()->storage_info()->delta();
    if (version != nullptr) {
      ASSERT_OK(version->CheckConsistency());
    }
  }

  // Counts delta files on disk after obsolete ones have been deleted.
  uint64_t NumFilesOnDisk() {
    EXPECT_OK(dbfull()->TEST_WaitForCompact());
    dbfull()->TEST_DeleteObsoleteFiles();
    EXPECT_OK(dbfull()->TEST_WaitForPurge());
    return FilesOnDisk(kDeltaFile).size();
  }

  static constexpr uint32_t kNumKeys = 150;

  State state_;
  std::vector<std::pair<const Snapshot*, State>> snapshots_;
  uint32_t num_flushes_ = 0;
};

}  // namespace delta_test
}  // namespace ROCKSDB_NAMESPACE
