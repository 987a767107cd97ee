//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_key_filter.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_maker.h"
#include "db/delta/delta_file_test_util.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "port/stack_trace.h"
#include "rocksdb/statistics.h"

namespace ROCKSDB_NAMESPACE {

class DeltaKeyFilterTest : public delta_test::DeltaFileTestBase {
 protected:
  using VersionPtr = std::shared_ptr<const DeltaVersion>;

  DeltaKeyFilterTest() {
    options_.statistics = CreateDBStatistics();
    Reopen();
    store_ =
        std::make_unique<DeltaStore>(TableFamily(), MutableCFOptions(options_));
  }

  void Apply(const DeltaEdit& edit, VersionPtr* version) {
    ASSERT_OK(DeltaVersion::Apply(
        *version, edit, BytewiseComparator(),
        MakeDeltaFiles(/*version_set=*/nullptr, /*ioptions=*/nullptr,
                       /*cfd=*/nullptr),
        version));
  }
  void AddFile(const DeltaFileDescription& file, VersionPtr* version) {
    DeltaEdit edit;
    edit.AddFile(file);
    Apply(edit, version);
  }

  DeltaFileDescription WriteKeys(const std::vector<std::string>& keys,
                                 Tier tier = Tier::kFlushed) {
    const auto builder = NewBuilder(Kind::kOperands, tier);
    for (const std::string& key : keys) {
      EXPECT_OK(Add({key, 5, "operand"}, builder.get()));
    }
    DeltaFileDescription description;
    EXPECT_OK(builder->Finish(&description));
    return description;
  }

  DeltaKeyFilter Membership(
      const VersionPtr& version,
      std::vector<std::shared_ptr<DeltaFileReader>> earlier = {}) {
    return DeltaKeyFilter(store_.get(), version.get(), std::move(earlier),
                          ReadOptions());
  }

  // Returns the answer of the file's filter for a key in the range of the file.
  bool FilterSays(const DeltaFileDescription& file, const std::string& key) {
    return MustOpen(file)->MayHaveKey(ReadOptions(), key);
  }

  std::unique_ptr<DeltaStore> store_;
};

TEST_F(DeltaKeyFilterTest, WithoutFilesNoKeyHasOperands) {
  DeltaKeyFilter membership = Membership(nullptr);
  EXPECT_FALSE(membership.MayHoldOperand("a"));
  EXPECT_FALSE(membership.OverlapsRange("a", "z"));
}

TEST_F(DeltaKeyFilterTest, FindsKeysOfRecentFiles) {
  VersionPtr version;
  const DeltaFileDescription first = WriteKeys({"b", "d", "f"});
  const DeltaFileDescription second = WriteKeys({"k", "m"});
  AddFile(first, &version);
  AddFile(second, &version);
  // This file has no operands.
  AddFile(WriteAnchors({{"h", 9}}, {{"p", "q", 9}}), &version);

  DeltaKeyFilter membership = Membership(version);
  for (const char* key : {"b", "d", "f", "k", "m", "f", "b"}) {
    EXPECT_TRUE(membership.MayHoldOperand(key)) << key;
  }
  for (const char* key : {"", "a", "g", "h", "j", "n", "p"}) {
    EXPECT_FALSE(membership.MayHoldOperand(key)) << key;
  }
  for (const char* key : {"c", "e"}) {
    EXPECT_EQ(FilterSays(first, key), membership.MayHoldOperand(key)) << key;
  }
  EXPECT_TRUE(membership.OverlapsRange("a", "b"));
  EXPECT_TRUE(membership.OverlapsRange("c", "c"));  // no filter is asked
  EXPECT_TRUE(membership.OverlapsRange("g", "k"));
  EXPECT_FALSE(membership.OverlapsRange("", "a"));
  EXPECT_FALSE(membership.OverlapsRange("g", "j"));
  EXPECT_FALSE(membership.OverlapsRange("n", "z"));
}

TEST_F(DeltaKeyFilterTest, FilterExcludesMostAbsentKeys) {
  std::vector<std::string> keys;
  for (int i = 1000; i < 2000; ++i) {
    keys.push_back("key" + std::to_string(i));
  }
  VersionPtr version;
  AddFile(WriteKeys(keys), &version);
  DeltaKeyFilter membership = Membership(version);
  int wrong = 0;
  for (const std::string& key : keys) {
    ASSERT_TRUE(membership.MayHoldOperand(key));
    wrong += membership.MayHoldOperand(key + "x") ? 1 : 0;
  }
  EXPECT_LT(wrong, 100);
}

TEST_F(DeltaKeyFilterTest, AsksOnlyFilesThatTheBucketSees) {
  // The buckets below "m" and from "p" on have taken in their parts of the
  // merged file; the bucket between them has not.
  VersionPtr version;
  AddFile(WriteKeys({"a", "z"}), &version);  // epoch 7
  const DeltaFileDescription merged =
      WriteKeys({"b", "d", "n", "p"}, Tier::kMerged);  // epochs 7 to 9
  const DeltaFileDescription extent = WriteKeys({"a", "d"}, Tier::kSorted);
  DeltaEdit edit;
  edit.SetMergeRecent({9, 1});
  edit.AddFile(merged);
  edit.AddFile(extent);
  DeltaEdit::ReplaceBuckets replace;
  DeltaBucket low;
  low.state.floor = 9;
  low.state.extent_number = extent.number;
  low.state.extent_bytes = extent.size;
  DeltaBucket high;
  high.lower_bound = "m";
  DeltaBucket last;
  last.lower_bound = "p";
  last.state.floor = 9;
  replace.buckets = {low, high, last};
  edit.AddReplaceBuckets(std::move(replace));
  Apply(edit, &version);

  // The order of the keys does not matter: they are ascending, descending and
  // random.
  for (const std::vector<std::string>& keys :
       {std::vector<std::string>{"a", "b", "c", "d", "n", "p", "q"},
        std::vector<std::string>{"q", "p", "n", "d", "c", "b", "a"},
        std::vector<std::string>{"n", "a", "p", "b", "n", "d", "p"}}) {
    DeltaKeyFilter membership = Membership(version);
    for (const std::string& key : keys) {
      bool expected = false;
      if (key == "a" || key == "d" || key == "n") {
        expected = true;
      } else if (key == "b" || key == "c") {
        // The bucket no longer sees the merged file.
        expected = FilterSays(extent, key);
      }
      EXPECT_EQ(expected, membership.MayHoldOperand(key)) << key;
    }
    EXPECT_TRUE(membership.OverlapsRange("a", "b"));
    EXPECT_TRUE(membership.OverlapsRange("m", "o"));
    EXPECT_FALSE(membership.OverlapsRange("p", "z"));
  }
}

TEST_F(DeltaKeyFilterTest, FindsKeysOfEarlierFiles) {
  VersionPtr version;
  AddFile(WriteKeys({"a"}), &version);
  const std::vector<std::shared_ptr<DeltaFileReader>> earlier = {
      MustOpen(WriteKeys({"c", "e"})), MustOpen(WriteKeys({"g"}))};
  for (const VersionPtr& base : {version, VersionPtr()}) {
    DeltaKeyFilter membership = Membership(base, earlier);
    EXPECT_EQ(base != nullptr, membership.MayHoldOperand("a"));
    for (const char* key : {"c", "e", "g"}) {
      EXPECT_TRUE(membership.MayHoldOperand(key)) << key;
    }
    for (const char* key : {"b", "f", "h"}) {
      EXPECT_FALSE(membership.MayHoldOperand(key)) << key;
    }
    EXPECT_TRUE(membership.OverlapsRange("b", "c"));
    EXPECT_TRUE(membership.OverlapsRange("f", "z"));
    EXPECT_FALSE(membership.OverlapsRange("h", "z"));
  }
}

TEST_F(DeltaKeyFilterTest, UnreadableFileMayHoldEachKeyInItsRange) {
  VersionPtr version;
  const DeltaFileDescription file = WriteKeys({"b", "d"});
  ASSERT_OK(env_->DeleteFile(FileName(file)));
  AddFile(file, &version);
  DeltaKeyFilter membership = Membership(version);
  const auto errors = [this] {
    return options_.statistics->getTickerCount(NO_FILE_ERRORS);
  };
  const uint64_t before = errors();
  EXPECT_FALSE(membership.MayHoldOperand("a"));
  EXPECT_EQ(before, errors());
  for (const char* key : {"b", "c", "d"}) {
    EXPECT_TRUE(membership.MayHoldOperand(key)) << key;
  }
  EXPECT_EQ(before + 1, errors());
  EXPECT_FALSE(membership.MayHoldOperand("e"));
}

// The following test is of the store, and needs the same files.
using DeltaStoreReaderTest = DeltaKeyFilterTest;

TEST_F(DeltaStoreReaderTest, ReadersAreOpenedOnlyWithIO) {
  VersionPtr version;
  AddFile(WriteKeys({"b"}), &version);
  const DeltaFileMeta& file = *version->RecentFiles(Kind::kOperands).front();
  DeltaFileReader* reader = nullptr;
  ReadOptions no_io;
  no_io.read_tier = kBlockCacheTier;
  EXPECT_TRUE(store_->GetReader(no_io, file, &reader).IsIncomplete());
  ASSERT_OK(store_->GetReader(ReadOptions(), file, &reader));
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader, file.OpenedReader());
  DeltaFileReader* again = nullptr;
  ASSERT_OK(store_->GetReader(no_io, file, &again));
  EXPECT_EQ(reader, again);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
