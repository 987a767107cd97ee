//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/merged_value/tracking_compaction_filter.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the configured answer to every call.
class ToldFilter : public CompactionFilter {
 public:
  const char* Name() const override { return "ToldFilter"; }
  bool Filter(int level, const Slice& /*key*/, const Slice& /*existing_value*/,
              std::string* new_value, bool* value_changed) const override {
    level_ = level;
    *new_value = "new";
    *value_changed = changes;
    return removes;
  }
  bool FilterMergeOperand(int level, const Slice& /*key*/,
                          const Slice& /*operand*/) const override {
    level_ = level;
    return removes;
  }
  Decision FilterV4(
      int level, const Slice& /*key*/, ValueType /*value_type*/,
      const Slice* /*existing_value*/, const WideColumns* /*existing_columns*/,
      std::string* new_value,
      std::vector<std::pair<std::string, std::string>>* /*new_columns*/,
      std::string* /*skip_until*/,
      WideColumnBlobResolver* /*blob_resolver*/) const override {
    level_ = level;
    *new_value = "new";
    return decision;
  }
  Decision FilterBlobByKey(int level, const Slice& /*key*/,
                           std::string* new_value,
                           std::string* /*skip_until*/) const override {
    level_ = level;
    *new_value = "new";
    return decision;
  }
  bool SupportsFilterV4() const override { return supports; }
  bool IgnoreSnapshots() const override { return supports; }

  bool removes = false;
  bool changes = false;
  bool supports = false;
  Decision decision = Decision::kKeep;
  mutable int level_ = -1;
};

class TrackingCompactionFilterTest : public testing::Test {
 public:
  TrackingCompactionFilterTest() {
    TrackingCompactionFilter::Wrap(&has_changed_, &filter_, &owned_);
  }
  bool TakeNoted() { return has_changed_.exchange(false); }

  ToldFilter told_;
  std::atomic<bool> has_changed_{false};
  const CompactionFilter* filter_ = &told_;
  std::unique_ptr<CompactionFilter> owned_;
  std::string value_;
  std::string skip_until_;
};

}  // namespace

TEST_F(TrackingCompactionFilterTest, ForwardsNameAndProperties) {
  ASSERT_NE(filter_, &told_);
  EXPECT_EQ(filter_, owned_.get());
  EXPECT_STREQ(filter_->Name(), "ToldFilter");
  for (const bool supports : {false, true}) {
    told_.supports = supports;
    EXPECT_EQ(filter_->SupportsFilterV4(), supports);
    EXPECT_EQ(filter_->IgnoreSnapshots(), supports);
  }
  EXPECT_FALSE(filter_->IsStackedBlobDbInternalCompactionFilter());
}

TEST_F(TrackingCompactionFilterTest, RecordsDecisionsThatChangeOrRemove) {
  using Decision = CompactionFilter::Decision;
  using Type = CompactionFilter::ValueType;
  const Slice existing("v");
  for (const Decision decision :
       {Decision::kKeep, Decision::kRemove, Decision::kChangeValue,
        Decision::kRemoveAndSkipUntil, Decision::kPurge,
        Decision::kChangeWideColumnEntity, Decision::kUndetermined}) {
    told_.decision = decision;
    const bool changes =
        decision != Decision::kKeep && decision != Decision::kUndetermined;
    EXPECT_EQ(filter_->FilterV4(3, "k", Type::kValue, &existing, nullptr,
                                &value_, nullptr, &skip_until_, nullptr),
              decision);
    EXPECT_EQ(TakeNoted(), changes);
    EXPECT_EQ(told_.level_, 3);
    EXPECT_EQ(value_, "new");
    EXPECT_EQ(filter_->FilterBlobByKey(4, "k", &value_, &skip_until_),
              decision);
    EXPECT_EQ(TakeNoted(), changes);
    EXPECT_EQ(told_.level_, 4);
  }
}

// The wrapper keeps the wrapped filter's default implementations, which call
// older functions.
TEST_F(TrackingCompactionFilterTest, ForwardsOlderCalls) {
  using Decision = CompactionFilter::Decision;
  using Type = CompactionFilter::ValueType;
  const Slice existing("v");
  for (const bool changes : {false, true}) {
    for (const bool removes : {false, true}) {
      told_.changes = changes;
      told_.removes = removes;
      const Decision of_value = removes   ? Decision::kRemove
                                : changes ? Decision::kChangeValue
                                          : Decision::kKeep;
      EXPECT_EQ(filter_->FilterV2(1, "k", Type::kValue, existing, &value_,
                                  &skip_until_),
                of_value);
      EXPECT_EQ(TakeNoted(), changes || removes);
      EXPECT_EQ(filter_->FilterV3(2, "k", Type::kMergeOperand, &existing,
                                  nullptr, &value_, nullptr, &skip_until_),
                removes ? Decision::kRemove : Decision::kKeep);
      EXPECT_EQ(TakeNoted(), removes);
      EXPECT_EQ(filter_->FilterMergeOperand(3, "k", existing), removes);
      EXPECT_EQ(TakeNoted(), removes);
      bool value_changed = false;
      EXPECT_EQ(filter_->Filter(4, "k", existing, &value_, &value_changed),
                removes);
      EXPECT_EQ(value_changed, changes);
      EXPECT_EQ(TakeNoted(), changes || removes);
      EXPECT_EQ(told_.level_, 4);
    }
  }
}

TEST_F(TrackingCompactionFilterTest, WrapTakesOverTheOwnership) {
  std::atomic<bool> has_changed{false};
  const CompactionFilter* filter = nullptr;
  std::unique_ptr<CompactionFilter> owned;
  TrackingCompactionFilter::Wrap(&has_changed, &filter, &owned);
  EXPECT_EQ(filter, nullptr);
  EXPECT_EQ(owned, nullptr);

  auto told = std::make_unique<ToldFilter>();
  told->removes = true;
  owned = std::move(told);
  filter = owned.get();
  TrackingCompactionFilter::Wrap(&has_changed, &filter, &owned);
  EXPECT_EQ(filter, owned.get());
  EXPECT_TRUE(filter->FilterMergeOperand(0, "k", "v"));
  EXPECT_TRUE(has_changed);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
