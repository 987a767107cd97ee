//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// A tailing iterator of a column family with an address map that meets a new
// SuperVersion shows each key once, with its newest value. A flush or a
// compaction may change the type of an entry, and with it the internal key.

#include "db/address_map/map_tailing_iterator.h"

#include <functional>
#include <memory>
#include <string>

#include "db/forward_iterator.h"
#include "port/stack_trace.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

// The parameter is enable_lsm_bypass.
class MapTailingIteratorTest : public AddressMapDBTestBase,
                               public testing::WithParamInterface<bool> {
 public:
  MapTailingIteratorTest()
      : AddressMapDBTestBase("map_tailing_iterator_test") {}

  Options MapOptions() const {
    Options options = AddressMapDBTestBase::MapOptions(kMinBlobSize);
    options.enable_lsm_bypass = GetParam();
    return options;
  }

  // Returns a value that a flush writes to a blob file.
  static std::string Large(const std::string& text) {
    return text + std::string(kMinBlobSize, '.');
  }

  std::unique_ptr<Iterator> NewTailingIterator() {
    ReadOptions read_options;
    read_options.tailing = true;
    return std::unique_ptr<Iterator>(db_->NewIterator(read_options));
  }

  // Appends the entry at which the iterator is.
  static void Append(const Iterator& iter, std::string* seen) {
    const std::string value = iter.value().ToString();
    *seen += iter.key().ToString() + "=" +
             value.substr(0, value.find_first_of('.')) + " ";
  }

  // Returns what a tailing iterator shows from the key `from` on if `job` runs
  // as soon as ForwardIterator has made a step to the key `step_to`.
  std::string ReadWhile(const std::string& from, const std::string& step_to,
                        const std::function<void()>& job) {
    const std::unique_ptr<Iterator> iter = NewTailingIterator();
    bool has_run = false;
    EnableCallBack("ForwardIterator::Next:Return", [&](void* arg) {
      auto* const child = static_cast<ForwardIterator*>(arg);
      if (!has_run && child->Valid() && child->user_key() == step_to) {
        has_run = true;
        job();
      }
    });
    std::string seen;
    for (iter->Seek(from); iter->Valid(); iter->Next()) {
      Append(*iter, &seen);
    }
    DisableCallBacks();
    EXPECT_OK(iter->status());
    EXPECT_TRUE(has_run);
    return seen;
  }

 protected:
  static constexpr size_t kMinBlobSize = 100;
};

// The flush runs when ForwardIterator has made the step to the entry of "b" in
// the memtable, before the read bound is renewed.
TEST_P(MapTailingIteratorTest, FlushAfterAStepHidesNoNewestValue) {
  DestroyAndReopen(MapOptions());
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_OK(Put(key, Large("old")));
  }
  ASSERT_OK(Flush());
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_OK(Put(key, Large("new")));
  }
  EXPECT_EQ(ReadWhile("a", /*step_to=*/"b", [&] { ASSERT_OK(Flush()); }),
            "a=new b=new c=new ");
}

// A value that is written after the step, to the key to which it led, is shown.
// The flush drops the value that was there before.
TEST_P(MapTailingIteratorTest, FlushAfterAStepShowsALaterWrite) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("a", Large("a1")));
  ASSERT_OK(Put("b", Large("b1")));
  EXPECT_EQ(ReadWhile("a", /*step_to=*/"b",
                      [&] {
                        ASSERT_OK(Put("b", Large("b2")));
                        ASSERT_OK(Flush());
                      }),
            "a=a1 b=b2 ");
}

// A key that is deleted after the step is not shown, and the next one is.
TEST_P(MapTailingIteratorTest, FlushAfterAStepShowsNoDeletedKey) {
  DestroyAndReopen(MapOptions());
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_OK(Put(key, Large("v")));
  }
  EXPECT_EQ(ReadWhile("a", /*step_to=*/"b",
                      [&] {
                        ASSERT_OK(Delete("b"));
                        ASSERT_OK(Flush());
                      }),
            "a=v c=v ");
}

// All entries of "b" are newer than the read bound, which is of the time when
// the iterator took its SuperVersion. The flush merges them into one entry when
// DBIter has read the newest operand.
TEST_P(MapTailingIteratorTest, FlushAmongNewOperandsHidesNoBase) {
  Options options = MapOptions();
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  DestroyAndReopen(options);
  ASSERT_OK(Put("a", Large("v")));
  const std::unique_ptr<Iterator> iter = NewTailingIterator();
  iter->Seek("a");
  ASSERT_OK(iter->status());
  ASSERT_OK(Put("b", Large("base")));
  ASSERT_OK(Merge("b", "1"));
  ASSERT_OK(Merge("b", "2"));
  int steps_to_b = 0;
  EnableCallBack("ForwardIterator::Next:Return", [&](void* arg) {
    auto* const child = static_cast<ForwardIterator*>(arg);
    if (child->Valid() && child->user_key() == "b" && ++steps_to_b == 2) {
      ASSERT_OK(Flush());
    }
  });
  iter->Seek("a");
  ASSERT_TRUE(iter->Valid());
  iter->Next();
  DisableCallBacks();
  ASSERT_GE(steps_to_b, 2);
  ASSERT_OK(iter->status());
  ASSERT_TRUE(iter->Valid());
  EXPECT_EQ(iter->key(), "b");
  EXPECT_EQ(iter->value(), Large("base") + ",1,2");
  iter->Next();
  EXPECT_FALSE(iter->Valid());
  EXPECT_OK(iter->status());
}

// The compaction filter replaces a wide-column entity by a plain value. The
// sequence number of both is 0, and DBIter expects that the entry after one
// with this number is of another key.
TEST_P(MapTailingIteratorTest, EntityThatBecomesAValueIsShownOnce) {
  Options options = MapOptions();
  DestroyAndReopen(options);
  for (const char* key : {"a", "short", "z"}) {
    ASSERT_OK(db_->PutEntity(WriteOptions(), db_->DefaultColumnFamily(), key,
                             {{kDefaultWideColumnName, "v"}, {"column", "c"}}));
  }
  ASSERT_OK(ForceCompaction());
  ActingFilter filter;
  options.compaction_filter = &filter;
  Reopen(options);
  const std::unique_ptr<Iterator> iter = NewTailingIterator();
  std::string seen;
  for (iter->Seek("a"); iter->Valid(); iter->Next()) {
    Append(*iter, &seen);
    if (iter->key() == "short" && iter->value() == "v") {
      ASSERT_OK(ForceCompaction());
    }
  }
  ASSERT_OK(iter->status());
  ASSERT_EQ(Get("short"), "s");
  EXPECT_EQ(seen, "a=v short=v z=v ");
}

// The value is prepared after it was overwritten. It is newer than the iterator
// itself, but not than the SuperVersion that the iterator took to find it.
TEST_P(MapTailingIteratorTest, ValueStaysUntilItIsPrepared) {
  DestroyAndReopen(MapOptions());
  ReadOptions read_options;
  read_options.tailing = true;
  // The iterator keeps no lookups of entries, so the value depends on the read
  // bound.
  read_options.total_order_seek = true;
  read_options.allow_unprepared_value = true;
  const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  for (int version = 1; version < 4; ++version) {
    const std::string value = Large(std::to_string(version));
    ASSERT_OK(Put("a", value));
    ASSERT_OK(Flush());
    WaitForJobs();
    iter->Seek("a");
    ASSERT_TRUE(iter->Valid());
    ASSERT_OK(Put("a", Large("new")));
    ASSERT_OK(Flush());
    Compact();
    ASSERT_TRUE(iter->PrepareValue()) << iter->status().ToString();
    EXPECT_EQ(iter->value(), value);
  }
}

// The value is overwritten, and removed from the map, when ForwardIterator has
// found it and before the read bound is renewed.
TEST_P(MapTailingIteratorTest, FlushAfterASeekHidesNoNewestValue) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("a", Large("old")));
  ASSERT_OK(Flush());
  const std::unique_ptr<Iterator> iter = NewTailingIterator();
  const auto done =
      EnableCallBackOnce("MapTailingIterator::Follow:Sought", [&](void*) {
        ASSERT_OK(Put("a", Large("new")));
        ASSERT_OK(Flush());
        WaitForJobs();
      });
  iter->Seek("a");
  DisableCallBacks();
  EXPECT_TRUE(*done);
  ASSERT_TRUE(iter->Valid()) << iter->status().ToString();
  EXPECT_EQ(iter->value(), Large("new"));
}

INSTANTIATE_TEST_CASE_P(Bypass, MapTailingIteratorTest, testing::Bool());

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
