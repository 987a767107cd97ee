//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

#include "db/address_map/map_iterators.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "memory/arena.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

// The base of the fixtures that test iterators of column families with an
// address map.
class MapIteratorDBTestBase : public AddressMapDBTestBase {
 public:
  using AddressMapDBTestBase::AddressMapDBTestBase;

 protected:
  static constexpr size_t kAuto = ReadOptions::kAutoBlobPrefetchCount;
  static constexpr uint64_t kMinBlobSize = 50;

  Options MapOptions() const {
    return AddressMapDBTestBase::MapOptions(kMinBlobSize);
  }

  // Makes many files of all kinds and many blocks.
  Options SmallFiles(bool filters = true) const {
    Options options = MapOptions();
    options.num_levels = 4;
    options.target_file_size_base = 2 << 10;
    options.blob_file_size = 32 << 10;
    BlockBasedTableOptions table;
    table.block_size = 256;
    // Pinned keys require this.
    table.use_delta_encoding = false;
    if (filters) {
      table.filter_policy.reset(NewBloomFilterPolicy(10));
    }
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    return options;
  }

  // Moves entries to other files without changing the data.
  void RunJob(Random* rnd, ColumnFamilyHandle* family) {
    const uint32_t job = rnd->Uniform(6);
    if (job < 4) {
      ASSERT_OK(db_->Flush(FlushOptions(), family));
    }
    switch (job) {
      case 2:
        MoveFilesToLevel(1, family);
        break;
      case 3:
        MoveFilesToLevel(2, family);
        break;
      case 4:
        ASSERT_OK(dbfull()->TEST_CompactRange(1, nullptr, nullptr, family));
        break;
      case 5:
        ASSERT_OK(ForceCompaction(db_.get(), family));
        break;
      default:
        break;
    }
  }

  // Returns an iterator as DBIter has it, for a reader of everything.
  // REQUIRES: read_options and the arena outlive it.
  InternalIterator* NewMapIterator(const ReadOptions& read_options,
                                   Arena* arena) {
    return MapIterators::Wrap(
        Family(), read_options, kMaxSequenceNumber,
        *Family()->GetSuperVersion(),
        dbfull()->NewInternalIterator(read_options, arena, kMaxSequenceNumber),
        arena);
  }

  void PutAndFlush(int n) {
    for (int i = 0; i < n; ++i) {
      ASSERT_OK(Put(Key(i), Value(i)));
    }
    ASSERT_OK(Flush());
  }

  Random rnd_{17};
};

}  // namespace ROCKSDB_NAMESPACE
