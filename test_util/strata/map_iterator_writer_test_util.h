//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/prefixed_keys_test_util.h"
#include "test_util/testharness.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

// Writes entries of all kinds to a column family and to its model.
class RandomWriter {
 public:
  // Keys and their values.
  using Contents = std::map<std::string, std::string>;

  // range_deletions, merges: whether it writes such entries.
  RandomWriter(DB* db, ColumnFamilyHandle* family, uint32_t seed,
               bool range_deletions, bool merges = true)
      : db_(db),
        family_(family),
        rnd_(seed),
        range_deletions_(range_deletions),
        merges_(merges) {}

  void Write() {
    const std::string key = PrefixedKeys::Random(&rnd_);
    switch (rnd_.Uniform(17)) {
      case 0:
      case 1:
        Put(key, NewValue(20));
        break;
      case 2:
      case 3:
      case 4: {
        const std::string value = NewValue(rnd_.OneIn(4) ? 80 : 5);
        if (merges_) {
          Merge(key, value);
        } else {
          Put(key, value);
        }
        break;
      }
      case 5:
      case 6:
        ASSERT_OK(db_->Delete(WriteOptions(), family_, key));
        model_.erase(key);
        break;
      case 7:
        PutEntity(key, NewValue(rnd_.OneIn(2) ? 80 : 5));
        break;
      case 8:
        WriteSingle();
        break;
      case 9:
      case 10:
        if (range_deletions_) {
          DeleteRange();
          break;
        }
        [[fallthrough]];
      default:
        Put(key, NewValue(rnd_.OneIn(20)
                              ? 4000
                              : 50 + static_cast<int>(rnd_.Uniform(200))));
    }
  }

  void WriteMany(int n) {
    for (int i = 0; i < n; ++i) {
      Write();
    }
  }

  const Contents& model() const { return model_; }
  std::shared_ptr<const Contents> Copy() const {
    return std::make_shared<const Contents>(model_);
  }

 private:
  // Returns a value that differs from all others.
  std::string NewValue(int size) {
    ++counter_;
    return std::to_string(counter_) + ":" +
           std::string(size, static_cast<char>('a' + counter_ % 26));
  }

  void Put(const std::string& key, const std::string& value) {
    ASSERT_OK(db_->Put(WriteOptions(), family_, key, value));
    model_[key] = value;
  }

  void Merge(const std::string& key, const std::string& operand) {
    ASSERT_OK(db_->Merge(WriteOptions(), family_, key, operand));
    std::string& value = model_[key];
    value += (value.empty() ? "" : ",") + operand;
  }

  void PutEntity(const std::string& key, const std::string& value) {
    const WideColumns columns{{kDefaultWideColumnName, value},
                              {"attribute", "a"}};
    ASSERT_OK(db_->PutEntity(WriteOptions(), family_, key, columns));
    model_[key] = value;
  }

  // These keys are put once between two deletions, as SingleDelete() requires,
  // and no range deletion covers them.
  void WriteSingle() {
    char buffer[32];
    snprintf(buffer, sizeof(buffer), "s00_%03d",
             static_cast<int>(rnd_.Uniform(10)));
    const std::string key = buffer;
    if (model_.count(key) == 0) {
      Put(key, NewValue(60));
    } else {
      ASSERT_OK(db_->SingleDelete(WriteOptions(), family_, key));
      model_.erase(key);
    }
  }

  void DeleteRange() {
    const int prefix =
        static_cast<int>(rnd_.Uniform(PrefixedKeys::kPrefixes - 1));
    const int i = static_cast<int>(rnd_.Uniform(PrefixedKeys::kKeysOfPrefix));
    const std::string begin = PrefixedKeys::Of(prefix, i);
    const std::string end =
        rnd_.OneIn(5)
            ? PrefixedKeys::Of(prefix + 1, static_cast<int>(rnd_.Uniform(5)))
            : PrefixedKeys::Of(prefix,
                               i + 1 + static_cast<int>(rnd_.Uniform(8)));
    ASSERT_OK(db_->DeleteRange(WriteOptions(), family_, begin, end));
    model_.erase(model_.lower_bound(begin), model_.lower_bound(end));
  }

  DB* const db_;
  ColumnFamilyHandle* const family_;
  Random rnd_;
  const bool range_deletions_;
  const bool merges_;
  int counter_ = 0;
  Contents model_;
};

}  // namespace ROCKSDB_NAMESPACE
