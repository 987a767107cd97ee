//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_table_factory.h"

#include <memory>
#include <string>
#include <vector>

#include "db/delta/delta_file_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/advanced_cache.h"
#include "rocksdb/convenience.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class DeltaTableFactoryTest : public delta_test::DeltaFileTestBase {
 protected:
  const BlockBasedTableOptions& TableOptions() {
    settings_ = tables_->settings();
    return *settings_->options.table_factory
                ->GetOptions<BlockBasedTableOptions>();
  }

  // Returns the table options of delta files in a column family with these
  // table options.
  const BlockBasedTableOptions& TableOptions(
      const BlockBasedTableOptions& of_family) {
    options_.table_factory.reset(NewBlockBasedTableFactory(of_family));
    Reopen();
    return TableOptions();
  }

  // Returns for how many of 1000 keys that are not in the file its filter says
  // that they may be.
  static int NumFalsePositives(const DeltaFileReader& reader,
                               const ReadOptions& options = ReadOptions()) {
    int positives = 0;
    for (int i = 0; i < 1000; ++i) {
      positives += reader.MayHaveKey(options, "b" + std::to_string(i));
    }
    return positives;
  }

  // Checks that a file that is written with these options can be read, and has
  // a filter.
  void WriteAndRead() {
    const DeltaFileDescription description =
        WriteOperands({{"a", 5, "1"}, {"a", 3, "2"}, {"b", 4, "3"}});
    const auto reader = MustOpen(description);
    ASSERT_EQ((delta_test::Values{{5, "1"}, {3, "2"}}),
              MustCollect(*reader, "a"));
    ASSERT_EQ((delta_test::Values{{4, "3"}}), MustCollect(*reader, "b"));
    ASSERT_TRUE(reader->MayHaveKey(ReadOptions(), "a"));
    ASSERT_LT(NumFalsePositives(*reader), 100);
    ASSERT_OK(reader->VerifyChecksum(ReadOptions()));
  }

  std::shared_ptr<const DeltaTableSettings> settings_;
};

TEST_F(DeltaTableFactoryTest, UsesSmallBlocksAndPinsFilterAndIndex) {
  const BlockBasedTableOptions& options = TableOptions();
  ASSERT_EQ(4096, options.block_size);
  ASSERT_EQ(BlockBasedTableOptions::kBinarySearch, options.index_type);
  ASSERT_EQ(BlockBasedTableOptions::kDataBlockBinarySearch,
            options.data_block_index_type);
  ASSERT_TRUE(options.whole_key_filtering);
  ASSERT_FALSE(options.partition_filters);
  ASSERT_TRUE(options.cache_index_and_filter_blocks);
  ASSERT_TRUE(options.cache_index_and_filter_blocks_with_high_priority);
  ASSERT_TRUE(options.metadata_cache_options.unpartitioned_pinning ==
              PinningTier::kAll);
  ASSERT_GE(options.format_version, 6);
  ASSERT_NE(nullptr, options.filter_policy);
  ASSERT_EQ(options_.table_factory->GetOptions<BlockBasedTableOptions>()
                ->block_cache.get(),
            options.block_cache.get());
  ASSERT_EQ(nullptr, settings_->options.prefix_extractor);
}

// Options of the column family that would change the structure of a file are
// not used.
TEST_F(DeltaTableFactoryTest, StructureDoesNotDependOnTheFamily) {
  options_.prefix_extractor.reset(NewFixedPrefixTransform(1));
  options_.compression_opts.parallel_threads = 4;
  options_.sample_for_compression = 1;
  options_.optimize_filters_for_hits = true;
  BlockBasedTableOptions of_family;
  of_family.block_cache = NewLRUCache(size_t{1} << 20);
  of_family.block_size = 64 << 10;
  of_family.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
  of_family.partition_filters = true;
  of_family.data_block_index_type =
      BlockBasedTableOptions::kDataBlockBinaryAndHash;
  of_family.whole_key_filtering = false;
  of_family.block_align = true;
  of_family.format_version = 2;
  of_family.checksum = kCRC32c;
  of_family.filter_policy.reset(NewRibbonFilterPolicy(9.5));
  const BlockBasedTableOptions& options = TableOptions(of_family);
  ASSERT_EQ(4096, options.block_size);
  ASSERT_EQ(BlockBasedTableOptions::kBinarySearch, options.index_type);
  ASSERT_FALSE(options.partition_filters);
  ASSERT_EQ(BlockBasedTableOptions::kDataBlockBinarySearch,
            options.data_block_index_type);
  ASSERT_TRUE(options.whole_key_filtering);
  ASSERT_FALSE(options.block_align);
  ASSERT_EQ(6, options.format_version);
  ASSERT_EQ(kCRC32c, options.checksum);
  ASSERT_EQ(of_family.filter_policy.get(), options.filter_policy.get());
  ASSERT_EQ(of_family.block_cache.get(), options.block_cache.get());
  ASSERT_EQ(nullptr, settings_->options.prefix_extractor);
  ASSERT_EQ(1, settings_->options.compression_opts.parallel_threads);
  ASSERT_EQ(0, settings_->options.sample_for_compression);
  // A file also has a filter with optimize_filters_for_hits.
  WriteAndRead();

  of_family = BlockBasedTableOptions();
  of_family.index_type = BlockBasedTableOptions::kHashSearch;
  ASSERT_EQ(BlockBasedTableOptions::kBinarySearch,
            TableOptions(of_family).index_type);
  WriteAndRead();
}

TEST_F(DeltaTableFactoryTest, FileHasAFilterWithoutAFilterPolicy) {
  BlockBasedTableOptions of_family;
  of_family.filter_policy.reset();
  ASSERT_NE(nullptr, TableOptions(of_family).filter_policy);
  WriteAndRead();
}

TEST_F(DeltaTableFactoryTest, NoBlockCacheIsRespected) {
  BlockBasedTableOptions of_family;
  of_family.no_block_cache = true;
  const BlockBasedTableOptions& options = TableOptions(of_family);
  ASSERT_TRUE(options.no_block_cache);
  ASSERT_EQ(nullptr, options.block_cache);
  ASSERT_FALSE(options.cache_index_and_filter_blocks);
  WriteAndRead();
}

TEST_F(DeltaTableFactoryTest, FamilyOfAnotherFormatHasItsOwnCache) {
  PlainTableOptions plain;
  options_.table_factory.reset(NewPlainTableFactory(plain));
  options_.prefix_extractor.reset(NewFixedPrefixTransform(1));
  Reopen();
  const BlockBasedTableOptions& options = TableOptions();
  const std::shared_ptr<Cache> cache = options.block_cache;
  ASSERT_NE(nullptr, cache);
  ASSERT_EQ(DeltaTableFactory::kOwnCacheSize, cache->GetCapacity());
  ASSERT_NE(nullptr, options.filter_policy);
  WriteAndRead();
  // All delta files of the column family share the cache.
  tables_->Update(MutableCFOptions(options_));
  ASSERT_EQ(cache.get(), TableOptions().block_cache.get());
}

// Filter and index of an open file are pinned in the block cache of the column
// family.
TEST_F(DeltaTableFactoryTest, FilterAndIndexArePinnedInTheBlockCache) {
  const std::shared_ptr<Cache> cache = TableOptions().block_cache;
  const DeltaFileDescription description = WriteOperands({{"a", 5, "1"}});
  const size_t usage = cache->GetPinnedUsage();
  auto reader = MustOpen(description);
  ASSERT_GT(cache->GetPinnedUsage(), usage);
  // Pinned blocks stay when unused ones are erased.
  cache->EraseUnRefEntries();
  ReadOptions memory_only;
  memory_only.read_tier = kBlockCacheTier;
  ASSERT_TRUE(reader->MayHaveKey(memory_only, "a"));
  ASSERT_LT(NumFalsePositives(*reader, memory_only), 100);
  reader.reset();
  ASSERT_EQ(usage, cache->GetPinnedUsage());
}

// Delta files are compressed like a flush into level 0.
TEST_F(DeltaTableFactoryTest, CompressesLikeLevel0) {
  const std::vector<CompressionType> supported = GetSupportedCompressions();
  for (const CompressionType type : supported) {
    options_.compression = type;
    options_.compression_per_level.clear();
    Reopen();
    ASSERT_EQ(type, tables_->settings()->compression);
    WriteAndRead();
  }
  options_.compression_per_level = {kNoCompression, supported.back()};
  Reopen();
  ASSERT_EQ(kNoCompression, tables_->settings()->compression);
  WriteAndRead();
}

TEST_F(DeltaTableFactoryTest, UpdateChangesNewFilesOnly) {
  const DeltaFileDescription old_description =
      WriteOperands({{"a", 5, "1"}, {"b", 4, "2"}});
  const auto old_reader = MustOpen(old_description);
  const auto old_settings = tables_->settings();
  const auto old_builder = NewBuilder(Kind::kOperands);
  ASSERT_OK(Add({"x", 9, "9"}, old_builder.get()));

  // These are all options that SetOptions() could change, and more.
  BlockBasedTableOptions of_family;
  of_family.block_cache = NewLRUCache(size_t{1} << 20);
  of_family.checksum = kxxHash64;
  of_family.filter_policy.reset(NewRibbonFilterPolicy(10));
  options_.table_factory.reset(NewBlockBasedTableFactory(of_family));
  options_.compression = GetSupportedCompressions().back();
  options_.block_protection_bytes_per_key = 8;
  tables_->Update(MutableCFOptions(options_));
  ASSERT_NE(old_settings.get(), tables_->settings().get());
  ASSERT_EQ(kNoCompression, old_settings->compression);
  ASSERT_EQ(options_.compression, tables_->settings()->compression);
  ASSERT_EQ(kxxHash64, TableOptions().checksum);
  ASSERT_EQ(old_settings->family.get(), tables_->settings()->family.get());

  // A builder that has begun can finish its file, and old files can be read.
  DeltaFileDescription description;
  ASSERT_OK(old_builder->Finish(&description));
  ASSERT_EQ((delta_test::Values{{9, "9"}}),
            MustCollect(*MustOpen(description), "x"));
  ASSERT_EQ((delta_test::Values{{5, "1"}}), MustCollect(*old_reader, "a"));
  ASSERT_EQ((delta_test::Values{{4, "2"}}),
            MustCollect(*MustOpen(old_description), "b"));
  WriteAndRead();

  options_.table_factory.reset(NewPlainTableFactory(PlainTableOptions()));
  tables_->Update(MutableCFOptions(options_));
  ASSERT_EQ((delta_test::Values{{4, "2"}}),
            MustCollect(*MustOpen(old_description), "b"));
  WriteAndRead();
}

// A reader needs only parts of the column family that a DB keeps for its
// lifetime.
TEST_F(DeltaTableFactoryTest, ReaderOutlivesFamily) {
  const DeltaFileDescription description =
      WriteOperands({{"a", 5, "1"}, {"b", 4, "2"}});
  const auto reader = MustOpen(description);
  tables_.reset();
  options_ = Options();
  settings_.reset();
  ASSERT_EQ((delta_test::Values{{5, "1"}}), MustCollect(*reader, "a"));
  reader->MarkObsolete(/*uncache_aggressiveness=*/10000);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
