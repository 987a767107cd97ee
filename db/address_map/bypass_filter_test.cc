//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Bypass filters: the filter of an SST file has the keys of its non-direct
// entries and no others, so it says "no" for keys whose values the address map
// finds by the key alone.
//
// The checks read the contents of a table from the table itself, so they do not
// depend on the decisions of flushes and compactions.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "db/address_map/mapped_blob_index.h"
#include "db/address_map/mapped_table_property.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/table_cache.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table.h"
#include "rocksdb/wide_columns.h"
#include "table/block_based/block_based_table_factory.h"
#include "table/block_based/block_based_table_reader.h"
#include "table/internal_iterator.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "util/coding.h"
#include "util/compression.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

enum class Layout { kFull, kPartitioned, kDecoupled };

enum class FilterKeys { kWhole, kWholeAndPrefixes, kPrefixes };

// How the table is built. The kinds differ in how keys are passed to the
// filter.
enum class Build {
  kPlain,
  kDictionary,       // all blocks are buffered and replayed
  kShortDictionary,  // some are replayed, others are not buffered
  kThreads,
  kDictionaryAndThreads,
};

struct FilterKind {
  Layout layout = Layout::kFull;
  bool ribbon = false;
  FilterKeys keys = FilterKeys::kWhole;

  bool HasWholeKeys() const { return keys != FilterKeys::kPrefixes; }
  bool HasPrefixes() const { return keys != FilterKeys::kWhole; }
};

// The contents of an SST file.
struct TableContents {
  struct Key {
    bool is_direct_somewhere = false;
    bool is_other_somewhere = false;
    // These two fields are of the newest entry.
    bool seen = false;
    ValueType type = kTypeDeletion;
  };

  std::map<std::string, Key> keys;
  uint64_t entries = 0;
  uint64_t direct = 0;
  uint64_t versioned = 0;

  size_t NumDirectOnly() const {
    size_t n = 0;
    for (const auto& [key, info] : keys) {
      n += info.is_other_somewhere ? 0 : 1;
    }
    return n;
  }
};

// Holds the DB's reader of an SST file.
class OpenTable {
 public:
  OpenTable(ColumnFamilyData* cfd, const FileMetaData& file)
      : cfd_(cfd), cache_(cfd->table_cache()) {
    EXPECT_OK(cache_->FindTable(
        ReadOptions(), cache_->file_options(), cfd->internal_comparator(), file,
        &handle_, cfd->current()->GetMutableCFOptions(), &table_));
  }
  ~OpenTable() {
    if (handle_ != nullptr) {
      cache_->get_cache().Release(handle_);
    }
  }
  OpenTable(const OpenTable&) = delete;
  OpenTable& operator=(const OpenTable&) = delete;

  std::shared_ptr<const TableProperties> Properties() const {
    return table_->GetTableProperties();
  }

  bool MayHaveNonDirect(const std::string& user_key) const {
    const InternalKey key(user_key, kMaxSequenceNumber, kValueTypeForSeek);
    return table_->MayHaveNonDirect(ReadOptions(), key.Encode());
  }

  // Asks the prefix filter as an iterator does that seeks to (user_key, seq).
  bool MayHavePrefixOf(const std::string& user_key, SequenceNumber seq) const {
    const SliceTransform* const prefix_extractor =
        cfd_->current()->GetMutableCFOptions().prefix_extractor.get();
    if (prefix_extractor == nullptr) {
      return true;
    }
    const InternalKey key(user_key, seq, kValueTypeForSeek);
    BlockCacheLookupContext context(TableReaderCaller::kUserIterator);
    bool filter_checked = false;
    return static_cast<BlockBasedTable*>(table_)->PrefixRangeMayMatch(
        key.Encode(), ReadOptions(), prefix_extractor,
        /*need_upper_bound_check=*/false, &context, &filter_checked);
  }

  void Read(TableContents* contents) const {
    *contents = TableContents();
    ReadOptions read_options;
    read_options.total_order_seek = true;
    const std::unique_ptr<InternalIterator> iter(table_->NewIterator(
        read_options, /*prefix_extractor=*/nullptr, /*arena=*/nullptr,
        /*skip_filters=*/true, TableReaderCaller::kUserIterator));
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      ParsedInternalKey key;
      ASSERT_OK(ParseInternalKey(iter->key(), &key, /*log_err_key=*/true));
      const Slice value = iter->value();
      const bool is_mapped =
          key.type == kTypeBlobIndex && MappedBlobIndex::IsMapped(value);
      const bool is_direct = is_mapped && MappedBlobIndex::IsDirect(value);
      ++contents->entries;
      contents->direct += is_direct ? 1 : 0;
      contents->versioned += is_mapped && !is_direct ? 1 : 0;
      TableContents::Key& info = contents->keys[key.user_key.ToString()];
      if (!info.seen) {
        info.seen = true;
        info.type = key.type;
      }
      (is_direct ? info.is_direct_somewhere : info.is_other_somewhere) = true;
    }
    ASSERT_OK(iter->status());
  }

 private:
  ColumnFamilyData* const cfd_;
  TableCache* const cache_;
  TableCache::TypedHandle* handle_ = nullptr;
  TableReader* table_ = nullptr;
};

class BypassFilterTest : public AddressMapDBTestBase {
 public:
  BypassFilterTest() : AddressMapDBTestBase("bypass_filter_test") {}

  static constexpr int kPrefixes = 100;
  static constexpr int kPerPrefix = 12;
  static constexpr size_t kPrefixSize = 4;
  static constexpr size_t kMinBlobSize = 50;

  Options MapOptions(const FilterKind& kind) {
    Options options = AddressMapDBTestBase::MapOptions(kMinBlobSize);
    options.compression = kNoCompression;
    if (kind.HasPrefixes()) {
      options.prefix_extractor.reset(NewFixedPrefixTransform(kPrefixSize));
    }
    BlockBasedTableOptions table;
    // Uses Ribbon on all levels; level 0 would have Bloom by default.
    table.filter_policy.reset(kind.ribbon ? NewRibbonFilterPolicy(10, -1)
                                          : NewBloomFilterPolicy(10));
    table.whole_key_filtering = kind.HasWholeKeys();
    table.detect_filter_construct_corruption = true;
    // Makes many blocks and many partitions.
    table.block_size = 256;
    table.metadata_block_size = 128;
    table.cache_index_and_filter_blocks = true;
    if (kind.layout != Layout::kFull) {
      table.partition_filters = true;
      table.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
    }
    table.decouple_partitioned_filters = kind.layout == Layout::kDecoupled;
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    return options;
  }

  static void SetBuild(Build build, Options* options) {
    if (build == Build::kPlain) {
      return;
    }
    options->compression = kZSTD;
    if (build != Build::kThreads) {
      options->compression_opts.max_dict_bytes = 4096;
    }
    if (build == Build::kShortDictionary) {
      options->compression_opts.max_dict_buffer_bytes = 4096;
    }
    if (build == Build::kThreads || build == Build::kDictionaryAndThreads) {
      options->compression_opts.parallel_threads = 4;
    }
  }

  // Releases the snapshot before the DB is destroyed.
  void OpenFresh(const Options& options) {
    snapshot_.reset();
    DestroyAndReopen(options);
  }

  // Returns nullptr unless the DB has exactly one SST file.
  const FileMetaData* OnlyFile(int* file_level = nullptr) {
    const FileMetaData* result = nullptr;
    for (int level = 0; level < db_->NumberLevels(); ++level) {
      for (const FileMetaData* file : GetLevelFileMetadatas(level)) {
        if (result != nullptr) {
          return nullptr;
        }
        result = file;
        if (file_level != nullptr) {
          *file_level = level;
        }
      }
    }
    return result;
  }

  // ---- Data.

  // Keys use only prefixes with even numbers.
  static std::string PrefixOf(int number) {
    char buffer[32];
    snprintf(buffer, sizeof(buffer), "p%03d", number);
    return buffer;
  }
  static std::string KeyOf(int prefix, int i) {
    char buffer[32];
    snprintf(buffer, sizeof(buffer), "/%02d", i);
    return PrefixOf(2 * prefix) + buffer;
  }
  static std::string LargeValue(const std::string& key, int version) {
    return key + " version " + std::to_string(version) +
           std::string(kMinBlobSize, 'x');
  }

  enum class Entry {
    kDirect,
    kInline,
    kDeleted,
    kSingleDeleted,
    kMerged,
    kEntity,
    kVersioned,
    kInlineOverDirect,
    kDeletedOverDirect,
  };

  static std::vector<std::pair<std::string, Entry>> Plan() {
    constexpr Entry kOthers[] = {
        Entry::kInline,    Entry::kDeleted,          Entry::kSingleDeleted,
        Entry::kMerged,    Entry::kEntity,           Entry::kVersioned,
        Entry::kVersioned, Entry::kInlineOverDirect, Entry::kDeletedOverDirect,
    };
    constexpr int kNumOthers = sizeof(kOthers) / sizeof(kOthers[0]);
    Random rnd(301);
    std::vector<std::pair<std::string, Entry>> plan;
    // The extractor has no prefix for these keys.
    plan.emplace_back("a", Entry::kDirect);
    plan.emplace_back("b", Entry::kInline);
    plan.emplace_back("p", Entry::kDirect);
    plan.emplace_back("p1", Entry::kDeleted);
    for (int prefix = 0; prefix < kPrefixes; ++prefix) {
      for (int i = 0; i < kPerPrefix; ++i) {
        // There are runs of direct entries that are longer than a partition, at
        // the beginning, in the middle and at the end, and one run without a
        // direct entry.
        const bool all_direct = prefix < 8 || (prefix >= 40 && prefix < 60) ||
                                prefix >= kPrefixes - 6;
        const bool none_direct = prefix >= 20 && prefix < 30;
        const bool direct = all_direct || (!none_direct && rnd.OneIn(2));
        plan.emplace_back(
            KeyOf(prefix, i),
            direct ? Entry::kDirect : kOthers[rnd.Uniform(kNumOthers)]);
      }
    }
    plan.emplace_back("q", Entry::kVersioned);
    plan.emplace_back("zz", Entry::kDirect);
    return plan;
  }

  // Writes entries of all kinds. The snapshot is taken between the old and the
  // new versions.
  void Fill() {
    const auto plan = Plan();
    old_.clear();
    for (const auto& [key, entry] : plan) {
      switch (entry) {
        case Entry::kDirect:
        case Entry::kVersioned:
        case Entry::kInlineOverDirect:
        case Entry::kDeletedOverDirect:
          old_[key] = LargeValue(key, 1);
          ASSERT_OK(Put(key, old_[key]));
          break;
        default:
          break;
      }
    }
    snapshot_ = std::make_unique<ManagedSnapshot>(db_.get());
    latest_ = old_;
    for (const auto& [key, entry] : plan) {
      switch (entry) {
        case Entry::kDirect:
          break;
        case Entry::kInline:
        case Entry::kInlineOverDirect:
          latest_[key] = "small " + key;
          ASSERT_OK(Put(key, latest_[key]));
          break;
        case Entry::kDeleted:
        case Entry::kDeletedOverDirect:
          latest_.erase(key);
          ASSERT_OK(Delete(key));
          break;
        case Entry::kSingleDeleted:
          ASSERT_OK(SingleDelete(key));
          break;
        case Entry::kMerged:
          latest_[key] = "operand";
          ASSERT_OK(Merge(key, "operand"));
          break;
        case Entry::kEntity: {
          latest_[key] = "entity";
          const WideColumns columns{{kDefaultWideColumnName, "entity"},
                                    {"attribute", "value"}};
          ASSERT_OK(db_->PutEntity(WriteOptions(), db_->DefaultColumnFamily(),
                                   key, columns));
          break;
        }
        case Entry::kVersioned:
          latest_[key] = LargeValue(key, 2);
          ASSERT_OK(Put(key, latest_[key]));
          break;
      }
    }
  }

  static std::string Lookup(const std::map<std::string, std::string>& model,
                            const std::string& key) {
    const auto found = model.find(key);
    return found == model.end() ? "NOT_FOUND" : found->second;
  }

  // ---- Checks.

  // Checks the answers of the filter and the properties of the table.
  void CheckFilter(const FilterKind& kind, const FileMetaData& file,
                   const TableContents& contents) {
    const OpenTable table(Family(), file);
    const auto properties = table.Properties();
    MappedTableProperty mapped;
    ASSERT_TRUE(mapped.ReadFrom(properties->user_collected_properties));
    EXPECT_EQ(mapped.direct(), contents.direct);
    EXPECT_EQ(mapped.versioned(), contents.versioned);
    EXPECT_EQ(mapped.whole_keys(), kind.HasWholeKeys());
    EXPECT_EQ(file.blob_refs.mapped.direct, contents.direct);
    EXPECT_EQ(file.blob_refs.mapped.versioned, contents.versioned);
    EXPECT_EQ(file.blob_refs.mapped.unmapped,
              contents.entries - contents.direct - contents.versioned);
    // Readers that do not support bypass filters must not ask for whole keys.
    EXPECT_EQ(
        properties->user_collected_properties.at(
            BlockBasedTablePropertyNames::kWholeKeyFiltering),
        kind.HasWholeKeys() && contents.direct == 0 ? kPropTrue : kPropFalse);

    size_t no_for_direct = 0;
    size_t no_for_absent = 0;
    for (const auto& [key, info] : contents.keys) {
      if (info.is_other_somewhere) {
        EXPECT_TRUE(table.MayHaveNonDirect(key)) << key;
      } else {
        no_for_direct += table.MayHaveNonDirect(key) ? 0 : 1;
      }
      no_for_absent += table.MayHaveNonDirect(key + "x") ? 0 : 1;
    }
    if (kind.HasWholeKeys()) {
      EXPECT_GT(no_for_direct * 10, contents.NumDirectOnly() * 9);
      EXPECT_GT(no_for_absent * 10, contents.keys.size() * 9);
      if (kind.layout != Layout::kFull) {
        // The table must have several partitions, or the layout was not tested.
        EXPECT_GT(Ticker(BLOCK_CACHE_FILTER_ADD), 3);
      }
    } else {
      EXPECT_EQ(no_for_direct, 0);
      EXPECT_EQ(no_for_absent, 0);
    }

    if (kind.HasPrefixes()) {
      for (const auto& [key, info] : contents.keys) {
        EXPECT_TRUE(table.MayHavePrefixOf(key, kMaxSequenceNumber)) << key;
        EXPECT_TRUE(table.MayHavePrefixOf(key, 0)) << key;
        if (key.size() >= kPrefixSize) {
          // A seek may reach another partition than the one of the key.
          const std::string prefix = key.substr(0, kPrefixSize);
          EXPECT_TRUE(table.MayHavePrefixOf(prefix, kMaxSequenceNumber)) << key;
          EXPECT_TRUE(table.MayHavePrefixOf(prefix + "\xff", 0)) << key;
        }
      }
      size_t no_for_prefix = 0;
      for (int prefix = 0; prefix < kPrefixes; ++prefix) {
        no_for_prefix += table.MayHavePrefixOf(PrefixOf(2 * prefix + 1) + "/00",
                                               kMaxSequenceNumber)
                             ? 0
                             : 1;
      }
      EXPECT_GT(no_for_prefix * 10, size_t{kPrefixes} * 9);
    }
  }

  // Checks the reads of the DB.
  void CheckReads(const FilterKind& kind, const TableContents& contents) {
    std::vector<std::string> keys;
    for (const auto& [key, info] : contents.keys) {
      keys.push_back(key);
      keys.push_back(key + "x");
    }
    for (const Snapshot* snapshot :
         {static_cast<const Snapshot*>(nullptr),
          snapshot_ != nullptr ? snapshot_->snapshot() : nullptr}) {
      const std::map<std::string, std::string>& model =
          snapshot == nullptr ? latest_ : old_;
      std::vector<std::string> expected;
      for (const std::string& key : keys) {
        expected.push_back(Lookup(model, key));
        ASSERT_EQ(Get(key, snapshot), expected.back()) << key;
      }
      // Most batches have keys of several partitions.
      constexpr size_t kBatch = 50;
      for (size_t i = 0; i < keys.size(); i += kBatch) {
        const size_t end = std::min(i + kBatch, keys.size());
        const std::vector<std::string> some(keys.begin() + i,
                                            keys.begin() + end);
        ASSERT_EQ(MultiGet(some, snapshot),
                  std::vector<std::string>(expected.begin() + i,
                                           expected.begin() + end));
      }
      if (kind.HasPrefixes()) {
        CheckPrefixScans(snapshot, model);
      }
    }
  }

  // Checks that the filter never hides a prefix from an iterator.
  void CheckPrefixScans(const Snapshot* snapshot,
                        const std::map<std::string, std::string>& model) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    read_options.prefix_same_as_start = true;
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    for (int number = 0; number < 2 * kPrefixes; ++number) {
      const std::string prefix = PrefixOf(number);
      std::string forward;
      std::string backward;
      for (auto it = model.lower_bound(prefix);
           it != model.end() && Slice(it->first).starts_with(prefix); ++it) {
        const std::string one = it->first + "=" + it->second + ";";
        forward += one;
        backward = one + backward;
      }
      std::string found;
      for (iter->Seek(prefix); iter->Valid(); iter->Next()) {
        found += iter->key().ToString() + "=" + iter->value().ToString() + ";";
      }
      ASSERT_OK(iter->status());
      ASSERT_EQ(found, forward);
      found.clear();
      for (iter->SeekForPrev(prefix + "\xff"); iter->Valid(); iter->Prev()) {
        found += iter->key().ToString() + "=" + iter->value().ToString() + ";";
      }
      ASSERT_OK(iter->status());
      ASSERT_EQ(found, backward);
    }
  }

  // Checks that lookups of direct entries ask the filter and do not search the
  // file.
  void CheckFilterIsUseful(const TableContents& contents) {
    const uint64_t before = Ticker(BLOOM_FILTER_USEFUL);
    for (const auto& [key, info] : contents.keys) {
      if (!info.is_other_somewhere) {
        ASSERT_EQ(Get(key), Lookup(latest_, key)) << key;
      }
    }
    EXPECT_GT((Ticker(BLOOM_FILTER_USEFUL) - before) * 10,
              uint64_t{contents.NumDirectOnly()} * 9);
  }

  // Checks that a reader without an address map finds every entry.
  void CheckForeignReader(const FileMetaData& file,
                          const TableContents& contents) {
    SstFileReader reader(last_options_);
    ASSERT_OK(reader.Open(MakeTableFileName(dbname_, file.fd.GetNumber())));
    std::vector<Slice> keys;
    std::vector<const TableContents::Key*> infos;
    const auto check = [&](const Slice& key, const TableContents::Key& info,
                           const Status& status, const std::string& value) {
      switch (info.type) {
        case kTypeBlobIndex:
          // The entry is found, but this reader cannot read its value.
          EXPECT_TRUE(status.IsCorruption())
              << key.ToString() << " " << status.ToString();
          break;
        case kTypeMerge:
          EXPECT_TRUE(status.IsMergeInProgress())
              << key.ToString() << " " << status.ToString();
          break;
        case kTypeDeletion:
        case kTypeSingleDeletion:
          EXPECT_TRUE(status.IsNotFound())
              << key.ToString() << " " << status.ToString();
          break;
        default:
          EXPECT_OK(status);
          EXPECT_EQ(value, Lookup(latest_, key.ToString()));
      }
    };
    for (const auto& [key, info] : contents.keys) {
      std::string value;
      const Status s = reader.Get(ReadOptions(), key, &value);
      check(key, info, s, value);
      keys.emplace_back(key);
      infos.push_back(&info);
    }
    constexpr size_t kBatch = 16;
    for (size_t i = 0; i < keys.size(); i += kBatch) {
      const size_t end = std::min(i + kBatch, keys.size());
      std::vector<std::string> values;
      const std::vector<Status> statuses = reader.MultiGet(
          ReadOptions(),
          std::vector<Slice>(keys.begin() + i, keys.begin() + end), &values);
      for (size_t j = i; j < end; ++j) {
        check(keys[j], *infos[j], statuses[j - i], values[j - i]);
      }
    }

    const std::unique_ptr<Iterator> raw = reader.NewTableIterator();
    uint64_t entries = 0;
    for (raw->SeekToFirst(); raw->Valid(); raw->Next()) {
      ++entries;
    }
    EXPECT_OK(raw->status());
    EXPECT_EQ(entries, contents.entries);

    ReadOptions total_order;
    total_order.total_order_seek = true;
    const std::unique_ptr<Iterator> iter(reader.NewIterator(total_order));
    auto expected = latest_.begin();
    for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++expected) {
      ASSERT_TRUE(expected != latest_.end()) << iter->key().ToString();
      ASSERT_EQ(iter->key(), expected->first);
    }
    EXPECT_OK(iter->status());
    EXPECT_TRUE(expected == latest_.end());
  }

  std::unique_ptr<ManagedSnapshot> snapshot_;
  std::map<std::string, std::string> old_;  // at the snapshot
  std::map<std::string, std::string> latest_;
};

// ---- All kinds of filters.

using EveryParam = std::tuple<Layout, bool, FilterKeys, Build>;

std::string EveryName(const testing::TestParamInfo<EveryParam>& info) {
  static const char* const kLayouts[] = {"Full", "Partitioned", "Decoupled"};
  static const char* const kKeys[] = {"Whole", "Both", "Prefixes"};
  static const char* const kBuilds[] = {"Plain", "Dictionary",
                                        "ShortDictionary", "Threads",
                                        "DictionaryAndThreads"};
  return std::string(kLayouts[static_cast<int>(std::get<0>(info.param))]) +
         (std::get<1>(info.param) ? "Ribbon" : "Bloom") +
         kKeys[static_cast<int>(std::get<2>(info.param))] +
         kBuilds[static_cast<int>(std::get<3>(info.param))];
}

class BypassFilterEveryTest : public BypassFilterTest,
                              public testing::WithParamInterface<EveryParam> {};

INSTANTIATE_TEST_CASE_P(
    Filters, BypassFilterEveryTest,
    testing::Combine(testing::Values(Layout::kFull, Layout::kPartitioned,
                                     Layout::kDecoupled),
                     testing::Values(false),
                     testing::Values(FilterKeys::kWhole,
                                     FilterKeys::kWholeAndPrefixes,
                                     FilterKeys::kPrefixes),
                     testing::Values(Build::kPlain, Build::kDictionary,
                                     Build::kShortDictionary, Build::kThreads,
                                     Build::kDictionaryAndThreads)),
    EveryName);

// How a table is built does not depend on the kind of filter, so one way to
// build it suffices here.
INSTANTIATE_TEST_CASE_P(
    OtherFilters, BypassFilterEveryTest,
    testing::Combine(testing::Values(Layout::kFull, Layout::kPartitioned,
                                     Layout::kDecoupled),
                     testing::Values(true),
                     testing::Values(FilterKeys::kWhole,
                                     FilterKeys::kWholeAndPrefixes,
                                     FilterKeys::kPrefixes),
                     testing::Values(Build::kPlain)),
    EveryName);

TEST_P(BypassFilterEveryTest, AnswersForEveryEntry) {
  const FilterKind kind{std::get<0>(GetParam()), std::get<1>(GetParam()),
                        std::get<2>(GetParam())};
  const Build build = std::get<3>(GetParam());
  if (build != Build::kPlain && !ZSTD_Supported()) {
    ROCKSDB_GTEST_BYPASS("needs ZSTD");
    return;
  }
  Options options = MapOptions(kind);
  SetBuild(build, &options);
  OpenFresh(options);
  std::atomic<int> threads_started{0};
  EnableCallBack(
      "BlockBasedTableBuilder::MaybeStartParallelCompression:Started",
      [&](void*) { ++threads_started; });
  Fill();
  ASSERT_OK(Flush());
  DisableCallBacks();
  ASSERT_FALSE(HasFatalFailure());
  if (build == Build::kThreads) {
    // With partitions that follow those of the index, one thread builds the
    // table.
    EXPECT_EQ(threads_started > 0, kind.layout != Layout::kPartitioned);
  }

  const FileMetaData* file = OnlyFile();
  ASSERT_NE(file, nullptr);
  TableContents contents;
  {
    const OpenTable table(Family(), *file);
    table.Read(&contents);
    const auto properties = table.Properties();
    EXPECT_EQ(properties->compression_options.find("max_dict_bytes=4096;") !=
                  std::string::npos,
              build != Build::kPlain && build != Build::kThreads);
    if (kind.layout != Layout::kFull) {
      EXPECT_GT(properties->index_partitions, 3);
    }
  }
  // The table must have enough entries of each kind.
  EXPECT_GT(contents.NumDirectOnly(), 500);
  EXPECT_GT(contents.keys.size() - contents.NumDirectOnly(), 300);
  EXPECT_GT(contents.versioned, 30);
  size_t both = 0;
  for (const auto& [key, info] : contents.keys) {
    both += info.is_direct_somewhere && info.is_other_somewhere ? 1 : 0;
  }
  EXPECT_GT(both, 30);

  CheckFilter(kind, *file, contents);
  ASSERT_FALSE(HasFatalFailure());
  CheckReads(kind, contents);
  ASSERT_FALSE(HasFatalFailure());
  if (kind.HasWholeKeys()) {
    CheckFilterIsUseful(contents);
  }
  CheckForeignReader(*file, contents);
  ASSERT_FALSE(HasFatalFailure());

  // A key stays direct when it is overwritten, and no key becomes direct over a
  // non-direct entry.
  snapshot_.reset();
  for (const auto& [key, info] : contents.keys) {
    latest_[key] = LargeValue(key, 3);
    ASSERT_OK(Put(key, latest_[key]));
  }
  ASSERT_OK(Flush());
  const std::vector<FileMetaData*> files = GetLevelFileMetadatas(0);
  ASSERT_EQ(files.size(), 2);
  TableContents newer;
  OpenTable(Family(), *files[0]).Read(&newer);
  ASSERT_EQ(newer.keys.size(), contents.keys.size());
  size_t direct_again = 0;
  for (const auto& [key, info] : contents.keys) {
    const bool is_direct = newer.keys[key].is_direct_somewhere;
    if (info.is_other_somewhere) {
      EXPECT_FALSE(is_direct) << key;
    } else {
      direct_again += is_direct ? 1 : 0;
    }
  }
  if (kind.HasWholeKeys()) {
    EXPECT_GT(direct_again * 10, contents.NumDirectOnly() * 9);
  } else {
    EXPECT_EQ(direct_again, 0);
  }
  CheckReads(kind, contents);
}

// ---- Each layout.

using LayoutParam = std::tuple<Layout, bool>;

std::string LayoutName(const testing::TestParamInfo<LayoutParam>& info) {
  static const char* const kLayouts[] = {"Full", "Partitioned", "Decoupled"};
  return std::string(kLayouts[static_cast<int>(std::get<0>(info.param))]) +
         (std::get<1>(info.param) ? "Prefixes" : "");
}

class BypassFilterLayoutTest : public BypassFilterTest,
                               public testing::WithParamInterface<LayoutParam> {
 public:
  FilterKind Kind() const {
    FilterKind kind;
    kind.layout = std::get<0>(GetParam());
    kind.keys = std::get<1>(GetParam()) ? FilterKeys::kWholeAndPrefixes
                                        : FilterKeys::kWhole;
    return kind;
  }
};

INSTANTIATE_TEST_CASE_P(Layouts, BypassFilterLayoutTest,
                        testing::Combine(testing::Values(Layout::kFull,
                                                         Layout::kPartitioned,
                                                         Layout::kDecoupled),
                                         testing::Bool()),
                        LayoutName);

// A file of direct entries only gets no whole-key filter. Its counts show that
// it has no non-direct entry, so lookups do not open it.
TEST_P(BypassFilterLayoutTest, FileOfDirectEntriesNeedsNoFilter) {
  const FilterKind kind = Kind();
  OpenFresh(MapOptions(kind));
  for (int version = 1; version <= 2; ++version) {
    SCOPED_TRACE(version);
    latest_.clear();
    for (int prefix = 0; prefix < kPrefixes; ++prefix) {
      for (int i = 0; i < kPerPrefix; ++i) {
        const std::string key = KeyOf(prefix, i);
        latest_[key] = LargeValue(key, version);
        ASSERT_OK(Put(key, latest_[key]));
      }
    }
    ASSERT_OK(Flush());
    WaitForJobs();
    // The second version is direct, too, although the first file has no filter.
    EXPECT_EQ(Ticker(BLOB_MAP_VERSIONED_WRITTEN), 0);
    EXPECT_EQ(Ticker(BLOB_MAP_DIRECT_WRITTEN), version * latest_.size());

    const std::vector<FileMetaData*> files = GetLevelFileMetadatas(0);
    ASSERT_EQ(files.size(), static_cast<size_t>(version));
    const FileMetaData& file = *files[0];
    EXPECT_EQ(file.blob_refs.mapped.PointCeiling(file.fd.largest_seqno), 0);
    {
      const OpenTable table(Family(), file);
      TableContents contents;
      table.Read(&contents);
      EXPECT_EQ(contents.direct, latest_.size());
      EXPECT_EQ(contents.entries, latest_.size());
      EXPECT_EQ(table.Properties()->filter_size > 0, kind.HasPrefixes());
      size_t no = 0;
      for (const auto& [key, info] : contents.keys) {
        no += table.MayHaveNonDirect(key) ? 0 : 1;
        EXPECT_TRUE(table.MayHavePrefixOf(key, kMaxSequenceNumber)) << key;
        EXPECT_TRUE(table.MayHavePrefixOf(key, 0)) << key;
      }
      if (kind.HasPrefixes()) {
        EXPECT_GT(no * 10, latest_.size() * 9);
      } else {
        EXPECT_EQ(no, 0);
      }
    }

    // No lookup opens a table.
    std::atomic<int> tables{0};
    EnableCallBack("TableCache::FindTable:0", [&](void*) { ++tables; });
    std::vector<std::string> keys;
    std::vector<std::string> expected;
    for (const auto& [key, value] : latest_) {
      EXPECT_EQ(Get(key), value);
      EXPECT_EQ(Get(key + "x"), "NOT_FOUND");
      keys.push_back(key);
      expected.push_back(value);
    }
    EXPECT_EQ(MultiGet(keys), expected);
    DisableCallBacks();
    EXPECT_EQ(tables, 0);

    if (kind.HasPrefixes()) {
      CheckPrefixScans(/*snapshot=*/nullptr, latest_);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

// optimize_filters_for_hits saves the filter of the bottommost level, because
// most lookups find their keys there. With a map most of them find their values
// without the file, so the filter is written and used nevertheless.
TEST_P(BypassFilterLayoutTest, OptimizeFiltersForHitsKeepsBypassFilters) {
  const FilterKind kind = Kind();
  Options options = MapOptions(kind);
  options.optimize_filters_for_hits = true;
  OpenFresh(options);
  Fill();
  ASSERT_OK(Flush());
  ASSERT_OK(ForceCompaction());
  ASSERT_FALSE(HasFatalFailure());
  int level = 0;
  const FileMetaData* file = OnlyFile(&level);
  ASSERT_NE(file, nullptr);
  EXPECT_GT(level, 0);
  TableContents contents;
  OpenTable(Family(), *file).Read(&contents);
  EXPECT_GT(contents.NumDirectOnly(), 500);
  EXPECT_GT(contents.versioned, 30);
  CheckFilter(kind, *file, contents);
  ASSERT_FALSE(HasFatalFailure());
  CheckReads(kind, contents);
  ASSERT_FALSE(HasFatalFailure());
  CheckFilterIsUseful(contents);

  // An iterator opens the file first. The cached table reader has the filter
  // all the same.
  snapshot_.reset();
  Reopen(options);
  {
    ReadOptions total_order;
    total_order.total_order_seek = true;
    const std::unique_ptr<Iterator> iter(db_->NewIterator(total_order));
    size_t n = 0;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      ++n;
    }
    ASSERT_OK(iter->status());
    EXPECT_EQ(n, latest_.size());
  }
  CheckFilterIsUseful(contents);

  // Without the map the option works as in RocksDB.
  options.enable_blob_address_map = false;
  OpenFresh(options);
  ASSERT_OK(Put("k1", LargeValue("k1", 1)));
  ASSERT_OK(Put("k2", "small"));
  ASSERT_OK(Flush());
  ASSERT_OK(ForceCompaction());
  file = OnlyFile();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(OpenTable(Family(), *file).Properties()->filter_size, 0);
}

// A filter is used as it was written, whatever the current options are.
TEST_P(BypassFilterLayoutTest, FilterIsUsedAsItWasWritten) {
  FilterKind whole = Kind();
  FilterKind prefixes = whole;
  prefixes.keys = FilterKeys::kPrefixes;
  whole.keys = FilterKeys::kWholeAndPrefixes;
  for (const bool whole_first : {true, false}) {
    SCOPED_TRACE(whole_first);
    const FilterKind& written = whole_first ? whole : prefixes;
    const FilterKind& read = whole_first ? prefixes : whole;
    OpenFresh(MapOptions(written));
    Fill();
    ASSERT_OK(Flush());
    snapshot_.reset();
    FilterKind other_layout = read;
    other_layout.layout =
        read.layout == Layout::kFull ? Layout::kDecoupled : Layout::kFull;
    Reopen(MapOptions(other_layout));
    ASSERT_FALSE(HasFatalFailure());
    const FileMetaData* file = OnlyFile();
    ASSERT_NE(file, nullptr);
    TableContents contents;
    {
      const OpenTable table(Family(), *file);
      table.Read(&contents);
      for (const auto& [key, info] : contents.keys) {
        // Either the filter has no whole keys, or the current options do not
        // allow to ask for them.
        EXPECT_TRUE(table.MayHaveNonDirect(key)) << key;
        EXPECT_TRUE(table.MayHavePrefixOf(key, kMaxSequenceNumber)) << key;
      }
    }
    CheckReads(read, contents);
    ASSERT_FALSE(HasFatalFailure());
  }
}

// ---- Ordinary filters.

// With enable_lsm_bypass = false no entry is direct, so the filter has all
// keys.
TEST_F(BypassFilterTest, WithoutBypassTheFilterHasAllKeys) {
  const FilterKind kind;
  Options options = MapOptions(kind);
  options.enable_lsm_bypass = false;
  OpenFresh(options);
  Fill();
  ASSERT_OK(Flush());
  ASSERT_FALSE(HasFatalFailure());
  const FileMetaData* file = OnlyFile();
  ASSERT_NE(file, nullptr);
  TableContents contents;
  OpenTable(Family(), *file).Read(&contents);
  EXPECT_EQ(contents.direct, 0);
  EXPECT_GT(contents.versioned, 500);
  EXPECT_EQ(contents.NumDirectOnly(), 0);
  {
    const OpenTable table(Family(), *file);
    EXPECT_EQ(table.Properties()->user_collected_properties.at(
                  BlockBasedTablePropertyNames::kWholeKeyFiltering),
              kPropTrue);
    size_t no_for_absent = 0;
    for (const auto& [key, info] : contents.keys) {
      EXPECT_TRUE(table.MayHaveNonDirect(key)) << key;
      no_for_absent += table.MayHaveNonDirect(key + "x") ? 0 : 1;
    }
    EXPECT_GT(no_for_absent * 10, contents.keys.size() * 9);
  }
  CheckReads(kind, contents);
  ASSERT_FALSE(HasFatalFailure());
  CheckForeignReader(*file, contents);
}

// The filter of a file from before the map was turned on has all keys of the
// file, and the values that overwrite them are versioned.
TEST_F(BypassFilterTest, FileFromBeforeTheMapHasAllKeysInItsFilter) {
  const FilterKind kind;
  Options options = MapOptions(kind);
  options.enable_blob_address_map = false;
  OpenFresh(options);
  Fill();
  ASSERT_OK(Flush());
  snapshot_.reset();
  options.enable_blob_address_map = true;
  Reopen(options);
  ASSERT_FALSE(HasFatalFailure());
  const FileMetaData* file = OnlyFile();
  ASSERT_NE(file, nullptr);
  TableContents contents;
  {
    const OpenTable table(Family(), *file);
    table.Read(&contents);
    MappedTableProperty mapped;
    EXPECT_FALSE(
        mapped.ReadFrom(table.Properties()->user_collected_properties));
    size_t no_for_absent = 0;
    for (const auto& [key, info] : contents.keys) {
      EXPECT_TRUE(table.MayHaveNonDirect(key)) << key;
      no_for_absent += table.MayHaveNonDirect(key + "x") ? 0 : 1;
    }
    EXPECT_GT(no_for_absent * 10, contents.keys.size() * 9);
  }
  CheckReads(kind, contents);
  ASSERT_FALSE(HasFatalFailure());

  for (const auto& [key, info] : contents.keys) {
    for (const std::string& name : {key, key + "x"}) {
      latest_[name] = LargeValue(name, 4);
      ASSERT_OK(Put(name, latest_[name]));
    }
  }
  ASSERT_OK(Flush());
  const std::vector<FileMetaData*> files = GetLevelFileMetadatas(0);
  ASSERT_EQ(files.size(), 2);
  TableContents newer;
  OpenTable(Family(), *files[0]).Read(&newer);
  ASSERT_EQ(newer.keys.size(), 2 * contents.keys.size());
  size_t new_direct = 0;
  for (const auto& [key, info] : contents.keys) {
    EXPECT_FALSE(newer.keys[key].is_direct_somewhere) << key;
    new_direct += newer.keys[key + "x"].is_direct_somewhere ? 1 : 0;
  }
  EXPECT_GT(new_direct * 10, contents.keys.size() * 9);
  CheckReads(kind, newer);
}

// ---- The table property.

TEST(MappedTablePropertyTest, CountsSurviveARoundTrip) {
  const std::string direct("\x10\x00", 2);
  const std::string versioned("\x11\x00", 2);
  for (const bool whole_keys : {false, true}) {
    MappedTableProperty written(whole_keys);
    UserCollectedProperties properties;
    EXPECT_FALSE(written.Add(kTypeValue, direct));
    EXPECT_FALSE(written.Add(kTypeDeletion, Slice()));
    EXPECT_FALSE(written.Add(kTypeBlobIndex, "\x01 an ordinary index"));
    EXPECT_FALSE(written.Add(kTypeBlobIndex, Slice()));
    EXPECT_FALSE(written.Any());
    written.AddTo(&properties);
    // Tables without mapped entries get no property, as in RocksDB.
    EXPECT_TRUE(properties.empty());
    EXPECT_EQ(written.PlainWholeKeyFiltering(), whole_keys);

    EXPECT_FALSE(written.Add(kTypeBlobIndex, versioned));
    EXPECT_TRUE(written.Any());
    EXPECT_EQ(written.PlainWholeKeyFiltering(), whole_keys);
    for (int i = 0; i < 300; ++i) {
      EXPECT_TRUE(written.Add(kTypeBlobIndex, direct));
    }
    EXPECT_FALSE(written.PlainWholeKeyFiltering());
    written.AddTo(&properties);
    MappedTableProperty read;
    ASSERT_TRUE(read.ReadFrom(properties));
    EXPECT_EQ(read.whole_keys(), whole_keys);
    EXPECT_EQ(read.direct(), 300);
    EXPECT_EQ(read.versioned(), 1);
  }
}

// A malformed property means that the filter's whole keys are not used.
TEST(MappedTablePropertyTest, MalformedPropertyMakesTheFilterUntrusted) {
  MappedTableProperty written(/*whole_keys=*/true);
  written.Add(kTypeBlobIndex, Slice("\x10\x00", 2));
  UserCollectedProperties properties;
  written.AddTo(&properties);
  const std::string good = properties[MappedTableProperty::kName];
  MappedTableProperty read;
  ASSERT_TRUE(read.ReadFrom(properties));
  ASSERT_TRUE(read.whole_keys());

  std::string unknown_flag;
  PutVarint64(&unknown_flag, 3);
  PutVarint64(&unknown_flag, 1);
  PutVarint64(&unknown_flag, 0);
  for (const std::string& bad : {std::string(), good.substr(0, good.size() - 1),
                                 good + '\x00', unknown_flag}) {
    properties[MappedTableProperty::kName] = bad;
    EXPECT_TRUE(read.ReadFrom(properties));
    EXPECT_FALSE(read.whole_keys());
  }
  properties.clear();
  EXPECT_FALSE(read.ReadFrom(properties));
  EXPECT_FALSE(read.whole_keys());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
