//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "test_util/strata/map_iterator_db_test_util.h"
#include "test_util/strata/map_iterator_model_test_util.h"
#include "test_util/strata/prefixed_keys_test_util.h"

namespace ROCKSDB_NAMESPACE {

// The base of the fixtures that move iterators at random and compare each entry
// with a model.
class MapIteratorWalkTestBase : public MapIteratorDBTestBase {
 public:
  using MapIteratorDBTestBase::MapIteratorDBTestBase;

 protected:
  // An iterator and its expected results.
  struct Cursor {
    // The iterator's options refer to these.
    std::string lower;
    std::string upper;
    Slice lower_slice;
    Slice upper_slice;
    ReadOptions read_options;

    // The prefix of all targets, or negative for any prefix.
    int only_prefix = -1;
    std::unique_ptr<ModelIterator> expected;
    // Pinned slices and their contents.
    std::vector<std::pair<Slice, std::string>> pinned;
    std::unique_ptr<Iterator> iter;

    void Expect(std::shared_ptr<const Contents> model) {
      expected = std::make_unique<ModelIterator>(
          std::move(model), lower, upper, read_options.prefix_same_as_start);
    }
  };

  void Compare(Cursor* cursor) {
    const Iterator& iter = *cursor->iter;
    const ModelIterator& expected = *cursor->expected;
    ASSERT_EQ(iter.Valid(), expected.Valid())
        << iter.status().ToString() << "; "
        << (iter.Valid() ? "is at " + iter.key().ToString()
                         : "should be at " + expected.key());
    if (!iter.Valid()) {
      ASSERT_OK(iter.status());
      return;
    }
    ASSERT_EQ(iter.key(), expected.key());
    if (cursor->read_options.allow_unprepared_value) {
      if (rnd_.OneIn(3)) {
        return;  // this value is not requested
      }
      ASSERT_TRUE(cursor->iter->PrepareValue()) << iter.status().ToString();
    }
    ASSERT_EQ(iter.value(), expected.value()) << expected.key();
    if (cursor->read_options.pin_data && cursor->pinned.size() < 300) {
      Pin(cursor);
    }
  }

  void Pin(Cursor* cursor) {
    Iterator* const iter = cursor->iter.get();
    std::string is_pinned;
    ASSERT_OK(iter->GetProperty("rocksdb.iterator.is-key-pinned", &is_pinned));
    if (is_pinned == "1") {
      cursor->pinned.emplace_back(iter->key(), iter->key().ToString());
    }
    is_pinned.clear();
    ASSERT_OK(
        iter->GetProperty("rocksdb.iterator.is-value-pinned", &is_pinned));
    if (is_pinned == "1") {
      cursor->pinned.emplace_back(iter->value(), iter->value().ToString());
    }
  }

  // Checks that the pinned data has not changed.
  void CheckPinned(Cursor* cursor) {
    for (const auto& [slice, contents] : cursor->pinned) {
      ASSERT_EQ(slice, contents);
      ++num_pinned_;
    }
    cursor->pinned.clear();
  }

  std::string RandomTarget(const Cursor& cursor) {
    const std::string key =
        cursor.only_prefix < 0
            ? PrefixedKeys::Random(&rnd_)
            : PrefixedKeys::Of(
                  cursor.only_prefix,
                  static_cast<int>(rnd_.Uniform(PrefixedKeys::kKeysOfPrefix)));
    switch (rnd_.Uniform(8)) {
      case 0:
        return key.substr(0, PrefixedKeys::kPrefixSize);
      case 1:
        return key + "x";
      case 2:
        if (cursor.only_prefix < 0) {
          return rnd_.OneIn(2) ? "aaa" : "zzz";
        }
        return key;
      default:
        return key;
    }
  }

  void Position(Cursor* cursor, bool forward_only) {
    const uint32_t where = rnd_.Uniform(forward_only ? 5 : 8);
    const std::string target = RandomTarget(*cursor);
    if (where < 4) {
      cursor->iter->Seek(target);
      cursor->expected->Seek(target);
    } else if (where == 4) {
      cursor->iter->SeekToFirst();
      cursor->expected->SeekToFirst();
    } else if (where < 7) {
      cursor->iter->SeekForPrev(target);
      cursor->expected->SeekForPrev(target);
    } else {
      cursor->iter->SeekToLast();
      cursor->expected->SeekToLast();
    }
    Compare(cursor);
  }

  // disturb: changes the database between the moves.
  void Walk(Cursor* cursor, int moves, bool forward_only,
            const std::function<void()>& disturb) {
    for (int move = 0; move < moves; ++move) {
      if (rnd_.OneIn(10)) {
        disturb();
      }
      const uint32_t kind = rnd_.Uniform(10);
      if (!cursor->expected->Valid() || kind < 3) {
        Position(cursor, forward_only);
      } else if (kind < 8 || forward_only) {
        // There are enough steps for values to be read ahead.
        for (uint32_t n = rnd_.Uniform(12); cursor->expected->Valid(); --n) {
          cursor->iter->Next();
          cursor->expected->Next();
          Compare(cursor);
          if (n == 0 || HasFatalFailure()) {
            break;
          }
        }
      } else {
        for (uint32_t n = rnd_.Uniform(5); cursor->expected->Valid(); --n) {
          cursor->iter->Prev();
          cursor->expected->Prev();
          Compare(cursor);
          if (n == 0 || HasFatalFailure()) {
            break;
          }
        }
      }
      ASSERT_FALSE(HasFatalFailure()) << "move " << move;
    }
  }

  // The number of pinned slices that were compared.
  size_t num_pinned_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
