//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/known_operand_filter.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/comparator.h"
#include "test_util/testharness.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

class KnownOperandFilterTest : public testing::Test {
 protected:
  using Base = KnownOperandFilter::Base;

  class Source : public KnownOperandFilter::Source {
   public:
    explicit Source(KnownOperandFilterTest* test) : test_(test) {}
    Status NewestKnown(const Slice& user_key, SequenceNumber* seq) override {
      *seq = test_->known_[user_key.ToString()];
      return test_->known_status_;
    }
    Status FindBase(const Slice& user_key, Base* base, bool* found) override {
      const auto it = test_->bases_.find(user_key.ToString());
      *found = it != test_->bases_.end();
      if (*found) {
        *base = it->second;
      }
      return test_->base_status_;
    }
    Status Merge(const Slice& /*user_key*/, const Base& base,
                 const std::vector<Slice>& operands, std::string* value,
                 ValueType* type, bool* merged) override {
      *merged = test_->can_merge_;
      *value = base.type == kTypeValue ? base.value : "";
      for (const Slice& operand : operands) {
        *value += "+" + operand.ToString();
      }
      *type = kTypeValue;
      return test_->merge_status_;
    }

   private:
    KnownOperandFilterTest* const test_;
  };

  KnownOperandFilterTest() : icmp_(BytewiseComparator()) {}

  // Adds an entry of the memtable. Its value is its sequence number.
  void Add(const std::string& key, SequenceNumber seq, ValueType type) {
    keys_.push_back(InternalKey(key, seq, type).Encode().ToString());
    values_.push_back(std::to_string(seq));
  }

  void Open() {
    input_ = std::make_unique<VectorIterator>(keys_, values_, &icmp_);
    filter_ = std::make_unique<KnownOperandFilter>(
        std::make_unique<Source>(this), BytewiseComparator(), input_.get());
  }

  // Returns "key@sequence:type=value" of each entry from the current one on.
  std::string Rest() {
    std::string result;
    for (; filter_->Valid(); filter_->Next()) {
      ParsedInternalKey parsed;
      EXPECT_OK(
          ParseInternalKey(filter_->key(), &parsed, /*log_err_key=*/true));
      result += parsed.user_key.ToString() + "@" +
                std::to_string(parsed.sequence) + ":" +
                std::to_string(parsed.type) + "=" +
                filter_->value().ToString() + " ";
    }
    return result;
  }
  std::string All() {
    Open();
    filter_->SeekToFirst();
    const std::string result = Rest();
    EXPECT_OK(filter_->status());
    return result;
  }

  const InternalKeyComparator icmp_;
  std::vector<std::string> keys_;
  std::vector<std::string> values_;
  std::map<std::string, SequenceNumber> known_;
  std::map<std::string, Base> bases_;
  Status known_status_;
  Status base_status_;
  Status merge_status_;
  bool can_merge_ = true;
  std::unique_ptr<VectorIterator> input_;
  std::unique_ptr<KnownOperandFilter> filter_;
};

TEST_F(KnownOperandFilterTest, KnownOperandsWithoutABaseAreLeftOut) {
  Add("a", 9, kTypeMerge);
  Add("a", 8, kTypeMerge);
  Add("a", 7, kTypeMerge);
  Add("b", 3, kTypeMerge);
  Add("c", 5, kTypeMerge);
  known_["a"] = 8;
  known_["c"] = 5;
  EXPECT_EQ("a@9:2=9 b@3:2=3 ", All());
}

TEST_F(KnownOperandFilterTest, OperandsAreMergedWithTheirBase) {
  Add("a", 9, kTypeMerge);
  Add("a", 8, kTypeMerge);
  Add("a", 6, kTypeValue);
  Add("a", 5, kTypeMerge);
  Add("b", 8, kTypeMerge);
  Add("b", 7, kTypeDeletion);
  // Some operands are known, or all, or none.
  for (const SequenceNumber known : {8, 9, 0}) {
    known_["a"] = known_["b"] = known;
    EXPECT_EQ("a@9:1=6+8+9 a@6:1=6 b@8:1=+8 b@7:0=7 ", All());
  }
}

// The merge operator may be unknown to a tool.
TEST_F(KnownOperandFilterTest, OperandsStayIfTheyCannotBeMerged) {
  Add("a", 9, kTypeMerge);
  Add("a", 8, kTypeMerge);
  Add("a", 6, kTypeValue);
  can_merge_ = false;
  EXPECT_EQ("a@9:2=9 a@8:2=8 a@6:1=6 ", All());
  known_["a"] = 8;
  EXPECT_EQ("a@9:2=9 a@6:1=6 ", All());
}

TEST_F(KnownOperandFilterTest, OperandsBelowAnEntryAreNotMerged) {
  Add("a", 9, kTypeValue);
  Add("a", 8, kTypeMerge);
  Add("a", 7, kTypeMerge);
  Add("a", 6, kTypeValue);
  EXPECT_EQ("a@9:1=9 a@8:2=8 a@7:2=7 a@6:1=6 ", All());
  known_["a"] = 7;
  EXPECT_EQ("a@9:1=9 a@8:2=8 a@6:1=6 ", All());
}

TEST_F(KnownOperandFilterTest, BaseMayBeInAnEarlierWal) {
  for (const char* key : {"a", "b", "c"}) {
    Add(key, 9, kTypeMerge);
    Add(key, 8, kTypeMerge);
  }
  known_["a"] = 9;
  bases_["a"] = {4, kTypeValue, "base"};
  bases_["b"] = {3, kTypeDeletion, ""};
  EXPECT_EQ("a@9:1=base+8+9 b@9:1=+8+9 c@9:2=9 c@8:2=8 ", All());
}

TEST_F(KnownOperandFilterTest, RangeDeletionsAreBases) {
  Add("a", 9, kTypeMerge);
  Add("a", 8, kTypeMerge);
  Add("a", 6, kTypeValue);
  bases_["a"] = {7, kTypeRangeDeletion, ""};
  for (const SequenceNumber known : {8, 9, 0}) {
    known_["a"] = known;
    EXPECT_EQ("a@9:1=+8+9 a@6:1=6 ", All());
  }
  // It is older than the value.
  bases_["a"] = {5, kTypeRangeDeletion, ""};
  EXPECT_EQ("a@9:1=6+8+9 a@6:1=6 ", All());
}

TEST_F(KnownOperandFilterTest, RangeDeletionMayBeBetweenOperands) {
  Add("a", 9, kTypeMerge);
  Add("a", 6, kTypeMerge);
  Add("a", 5, kTypeValue);
  bases_["a"] = {7, kTypeRangeDeletion, ""};
  EXPECT_EQ("a@9:1=+9 a@5:1=5 ", All());
  // All operands are deleted. The flush drops them.
  bases_["a"] = {10, kTypeRangeDeletion, ""};
  EXPECT_EQ("a@9:2=9 a@6:2=6 a@5:1=5 ", All());
}

TEST_F(KnownOperandFilterTest, SeekStartsAgain) {
  Add("a", 9, kTypeMerge);
  Add("b", 8, kTypeMerge);
  known_["a"] = known_["b"] = 9;
  bases_["a"] = bases_["b"] = {4, kTypeValue, "base"};
  Open();
  filter_->SeekToFirst();
  ASSERT_TRUE(filter_->Valid());
  EXPECT_EQ("base+9", filter_->value());
  filter_->Seek(
      InternalKey("b", kMaxSequenceNumber, kValueTypeForSeek).Encode());
  EXPECT_EQ("b@8:1=base+8 ", Rest());
  filter_->SeekToFirst();
  EXPECT_EQ("a@9:1=base+9 b@8:1=base+8 ", Rest());
}

TEST_F(KnownOperandFilterTest, ErrorsEndTheIteration) {
  Add("a", 9, kTypeMerge);
  known_["a"] = 9;
  bases_["a"] = {4, kTypeValue, "base"};
  for (Status* const status : {&known_status_, &base_status_, &merge_status_}) {
    *status = Status::IOError("injected");
    Open();
    filter_->SeekToFirst();
    EXPECT_FALSE(filter_->Valid());
    EXPECT_TRUE(filter_->status().IsIOError());
    *status = Status::OK();
  }
  EXPECT_EQ("a@9:1=base+9 ", All());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
