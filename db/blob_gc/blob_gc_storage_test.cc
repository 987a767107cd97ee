//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_gc_storage.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/cache_key.h"
#include "db/address_map/address_map_store.h"
#include "db/blob/blob_file_cache.h"
#include "db/blob/blob_file_meta.h"
#include "db/blob/blob_source.h"
#include "db/blob_gc/blob_gc_picker.h"
#include "db/blob_heat/hot_mark.h"
#include "db/blob_v2/blob_file_v2_test_util.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/column_family.h"
#include "db/db_test_util.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "test_util/testharness.h"
#include "util/cast_util.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using blob_v2_test::FileMaker;
using blob_v2_test::Records;
using State = BlobFileSlotTable::State;

constexpr uint64_t kSeed = 1234;

// A value; all members but the size make up its name.
struct Value {
  std::string key;
  SequenceNumber seq = 0;
  bool direct = true;
  uint64_t birth = 0;
  size_t size = 100;
};

MapName NameOf(const Value& value) {
  return MapName{MapKeyHash::Of(value.key, kSeed), value.seq, value.birth};
}

struct NameLess {
  bool operator()(const MapName& a, const MapName& b) const {
    if (!(a.key == b.key)) {
      return a.key < b.key;
    }
    return a.seq != b.seq ? a.seq < b.seq : a.birth < b.birth;
  }
};

// All entries of a map.
using Entries = std::map<MapName, AddressMap::Entry, NameLess>;

// The arguments that a job passes to Publish(), and the records of the outputs.
struct Copies {
  std::vector<MappedBlobFile> outputs;
  std::vector<Records> records;  // for each output
  std::vector<MapAddress> from;
  size_t bytes = 0;  // bytes of all records
};

// The address map and the blob files of a column family, without a DB.
class Family {
 public:
  explicit Family(const std::shared_ptr<Cache>& blob_cache = nullptr)
      : options_(OptionsWith(blob_cache)),
        ioptions_(options_),
        cache_(NewLRUCache(1 << 20)),
        file_cache_(cache_.get(), &ioptions_, &file_options_,
                    /*column_family_id=*/0, /*blob_file_read_hist=*/nullptr,
                    /*io_tracer=*/nullptr),
        source_(ioptions_, MutableCFOptions(options_), db_id_, db_session_id_,
                &file_cache_),
        blobs_(/*column_family_id=*/0, ioptions_, *options_.table_factory,
               &file_cache_) {
    blobs_.SetHashSeed(kSeed);
    blobs_.SetReady();
  }

  AddressMapStore* blobs() { return &blobs_; }
  AddressMap* map() { return blobs_.map(); }
  BlobFileSlotTable* files() { return blobs_.files(); }
  const BlobSource* source() const { return &source_; }

  // Adds a file of the current Version; its entries are committed.
  void AddLive(uint64_t number, const std::vector<Value>& values) {
    const Made& made = Make(number, values);
    const uint32_t slot =
        blobs_.AddLiveFile(number, /*path_id=*/0, kNoCompression, made.size);
    Insert(slot, made.records);
    map()->CommitBatch(made.records.data(), made.records.size(), kMaxBirth);
  }
  // Adds a file that a flush has not committed yet.
  void AddPending(uint64_t number, const std::vector<Value>& values) {
    const Made& made = Make(number, values);
    MappedBlobFile file;
    file.number = number;
    file.size = made.size;
    Insert(blobs_.AddPendingFile(file), made.records);
  }
  void CommitPending(uint64_t number) {
    ASSERT_TRUE(files()->Commit(Slot(number)));
    const Records& records = made_.at(number).records;
    map()->CommitBatch(records.data(), records.size(), kMaxBirth);
  }
  void UndoPending(uint64_t number) {
    const Records& records = made_.at(number).records;
    map()->UndoBatch(Slot(number), records.data(), records.size());
    blobs_.AbandonFile(Slot(number));
  }

  // Copies the values from their addresses in the map to files with successive
  // numbers, starting at `number`. A copy differs in size from the original, as
  // if it had another compression.
  Copies Copy(uint64_t number,
              const std::vector<std::vector<Value>>& values_of_outputs) {
    Copies copies;
    for (const std::vector<Value>& values : values_of_outputs) {
      std::vector<Value> copied = values;
      for (Value& value : copied) {
        const AddressMap::Lookup found = Find(value);
        EXPECT_TRUE(found.found) << value.key;
        copies.from.push_back(found.entry.address);
        value.size += 7;
      }
      const Made& made = Make(number, copied);
      MappedBlobFile file;
      file.number = number;
      file.size = made.size;
      file.footer = made.footer;
      file.index = made.index;
      copies.outputs.push_back(file);
      copies.records.push_back(made.records);
      copies.bytes += made.record_bytes;
      ++number;
    }
    return copies;
  }

  uint32_t Slot(uint64_t number) { return files()->Find(number); }
  uint64_t LiveCount(uint64_t number) {
    return files()->LiveCount(Slot(number));
  }
  uint64_t LiveBytes(uint64_t number) {
    return files()->LiveBytes(Slot(number));
  }
  BlobFileSlotTable::Info InfoOf(uint64_t number) {
    BlobFileSlotTable::Info info;
    EXPECT_TRUE(files()->GetInfo(Slot(number), &info)) << number;
    return info;
  }

  AddressMap::Lookup Find(const Value& value, bool pin = false) {
    return map()->FindByName(NameOf(value), pin);
  }
  // Returns the number of the file that holds the value, or 0 if the value is
  // not in the map.
  uint64_t FileOf(const Value& value) {
    const AddressMap::Lookup found = Find(value);
    return found.found ? files()->Number(found.entry.address.slot) : 0;
  }
  // Returns the file and the offset of the value in the blob cache.
  std::pair<uint64_t, uint64_t> PlaceOf(const Value& value) {
    const MapAddress address = Find(value).entry.address;
    return {files()->Number(address.slot),
            address.offset + BlobRecordV2::kHeaderSize + value.key.size()};
  }
  void CacheValue(const Value& value) {
    const auto [number, offset] = PlaceOf(value);
    const CacheKey key =
        OffsetableCacheKey(db_id_, db_session_id_, number).WithOffset(offset);
    BlobSource::SharedCacheInterface blob_cache{options_.blob_cache};
    ASSERT_OK(blob_cache.InsertSaved(key.AsSlice(), Slice("a value"),
                                     /*create_context=*/nullptr));
  }
  bool IsCached(const std::pair<uint64_t, uint64_t>& place) const {
    return source_.IsCached(place.first, place.second);
  }
  Entries All() {
    Entries all;
    for (uint32_t part = 0; part < AddressMap::kNumParts; ++part) {
      map()->ForEachInPart(part, [&](const AddressMap::Entry& entry) {
        EXPECT_TRUE(all.emplace(entry.name, entry).second);
      });
    }
    return all;
  }

  // The metadata of a file, as in a Version.
  std::shared_ptr<BlobFileMetaData> MetaOf(uint64_t number) {
    const Made& made = made_.at(number);
    return BlobFileMetaData::Create(
        SharedBlobFileMetaData::Create(
            number, uint64_t{made.records.size()}, uint64_t{made.record_bytes},
            std::string(), std::string(), /*path_id=*/uint32_t{0},
            /*index_bytes=*/uint64_t{made.index.size()},
            /*is_collected=*/false),
        BlobFileMetaData::LinkedSsts(), /*garbage_blob_count=*/0,
        /*garbage_blob_bytes=*/0);
  }
  std::unique_ptr<VersionStorageInfo> NewVersion(
      const std::set<uint64_t>& numbers) {
    auto version = std::make_unique<VersionStorageInfo>(
        &icmp_, icmp_.user_comparator(), /*num_levels=*/7,
        kCompactionStyleLevel, /*src_vstorage=*/nullptr,
        /*_force_consistency_checks=*/false,
        EpochNumberRequirement::kMustPresent, ioptions_.clock,
        /*bottommost_file_compaction_delay=*/0, OffpeakTimeOption());
    for (const uint64_t number : numbers) {
      version->AddBlobFile(MetaOf(number));
    }
    return version;
  }
  // Returns the sizes in bytes of the indexes as the picker gets them.
  std::map<uint64_t, uint64_t> IndexSizes(const std::set<uint64_t>& version) {
    std::map<uint64_t, uint64_t> sizes;
    for (const BlobGcPicker::File& file :
         blobs_.FilesForGc(*NewVersion(version))) {
      sizes[file.number] = file.index_size;
    }
    return sizes;
  }
  uint64_t IndexSizeOf(uint64_t number) const {
    return made_.at(number).index.size();
  }
  // Returns the files that another job must not collect.
  std::set<uint64_t> BusyFiles(const std::set<uint64_t>& version) {
    std::set<uint64_t> busy;
    for (const BlobGcPicker::File& file :
         blobs_.FilesForGc(*NewVersion(version))) {
      if (file.is_busy) {
        busy.insert(file.number);
      }
    }
    return busy;
  }
  std::set<uint64_t> DroppableFiles() {
    std::set<uint64_t> droppable;
    for (const BlobFileSlotTable::Info& info : files()->GetDroppable()) {
      droppable.insert(info.number);
    }
    return droppable;
  }

 private:
  struct Made {
    Records records;
    uint64_t size = 0;          // size of the file
    uint64_t record_bytes = 0;  // size of all records
    BlobFooterV2 footer;
    std::string index;
  };

  const Made& Make(uint64_t number, const std::vector<Value>& values) {
    FileMaker maker(kSeed);
    for (const Value& value : values) {
      maker.Add(value.key, std::string(value.size, 'v'), value.seq, value.birth,
                value.direct);
      EXPECT_OK(maker.status());
    }
    maker.Finish();
    Made made;
    made.records = maker.records();
    made.size = maker.bytes().size();
    for (const AddressMap::Record& record : made.records) {
      made.record_bytes += record.size;
    }
    made.footer = maker.layout().footer;
    made.index = maker.builder().contents();
    const auto inserted = made_.emplace(number, made);
    EXPECT_TRUE(inserted.second) << number;
    return inserted.first->second;
  }
  void Insert(uint32_t slot, const Records& records) {
    ASSERT_NE(BlobFileSlotTable::kLostSlot, slot);
    ASSERT_OK(map()->InsertBatch(slot, records.data(), records.size()));
  }

  static Options OptionsWith(const std::shared_ptr<Cache>& blob_cache) {
    Options options;
    options.blob_cache = blob_cache;
    return options;
  }

  const Options options_;
  const ImmutableOptions ioptions_;
  const std::string db_id_ = "db";
  const std::string db_session_id_ = "ABCDEFGHIJ0123456789";
  const FileOptions file_options_;
  const InternalKeyComparator icmp_{BytewiseComparator()};
  const std::shared_ptr<Cache> cache_;
  BlobFileCache file_cache_;
  const BlobSource source_;
  AddressMapStore blobs_;
  std::map<uint64_t, Made> made_;
};

Status Publish(BlobGcStorage* storage, const Copies& copies) {
  return storage->Publish(std::vector<MappedBlobFile>(copies.outputs),
                          std::vector<MapAddress>(copies.from));
}

// Returns the entries after a swap: an entry whose address is the source of its
// copy gets the address of the copy; all others are unchanged. With `back`, the
// two addresses are exchanged.
//
// REQUIRES: the outputs have slots.
Entries Swapped(Family* f, Entries entries, const Copies& copies, bool back,
                uint64_t* num_moved, uint64_t* bytes_moved) {
  *num_moved = *bytes_moved = 0;
  size_t i = 0;
  for (size_t o = 0; o < copies.outputs.size(); ++o) {
    const uint32_t slot = f->Slot(copies.outputs[o].number);
    EXPECT_NE(BlobFileSlotTable::kLostSlot, slot);
    for (const AddressMap::Record& record : copies.records[o]) {
      MapAddress from = copies.from[i++];
      MapAddress to{slot, record.offset, record.size};
      if (back) {
        std::swap(from, to);
      }
      const auto found = entries.find(record.name);
      if (found != entries.end() && found->second.address == from) {
        found->second.address = to;
        ++*num_moved;
        *bytes_moved += record.size;
      }
    }
  }
  EXPECT_EQ(copies.from.size(), i);
  return entries;
}

// Checks that the map has exactly these entries and is consistent, and that the
// counts of the files agree with it.
void CheckMap(Family* f, const Entries& expected) {
  const Entries all = f->All();
  ASSERT_EQ(expected.size(), all.size());
  struct Live {
    uint64_t count = 0;
    uint64_t bytes = 0;
  };
  std::map<uint32_t, Live> live;
  auto e = expected.begin();
  for (const auto& [name, entry] : all) {
    ASSERT_FALSE(NameLess()(name, e->first) || NameLess()(e->first, name));
    ASSERT_EQ(e->second.mode, entry.mode) << name.seq;
    ASSERT_EQ(e->second.address.slot, entry.address.slot) << name.seq;
    ASSERT_EQ(e->second.address.offset, entry.address.offset) << name.seq;
    ASSERT_EQ(e->second.address.size, entry.address.size) << name.seq;
    Live* const of_file = &live[entry.address.slot];
    ++of_file->count;
    of_file->bytes += entry.address.size;
    ++e;
  }
  for (const BlobFileSlotTable::Info& info : f->files()->GetAll()) {
    ASSERT_EQ(live[info.slot].count, info.live_count) << info.number;
    ASSERT_EQ(live[info.slot].bytes, info.live_bytes) << info.number;
  }
  ASSERT_OK(f->map()->TEST_Check());
}

}  // namespace

class BlobGcStorageTest : public testing::Test {};

// ---- Pins.

TEST_F(BlobGcStorageTest, PinsFilesUntilItsEnd) {
  Family f;
  f.AddLive(11, {{"a", 1}, {"b", 2}});
  f.AddLive(12, {{"c", 3}});
  f.AddLive(13, {{"d", 4}});
  ASSERT_TRUE(f.BusyFiles({11, 12, 13}).empty());
  {
    BlobGcStorage storage(f.blobs(), {13, 11});
    std::map<uint64_t, uint32_t> files;
    for (const BlobGcStorage::File& file : storage.files()) {
      files[file.number] = file.slot;
    }
    const std::map<uint64_t, uint32_t> expected = {{11, f.Slot(11)},
                                                   {13, f.Slot(13)}};
    ASSERT_EQ(expected, files);
    ASSERT_EQ(2u, storage.files().size());
    ASSERT_EQ(1u, f.InfoOf(11).job_pins);
    ASSERT_EQ(0u, f.InfoOf(12).job_pins);
    ASSERT_EQ(1u, f.InfoOf(13).job_pins);
    ASSERT_EQ((std::set<uint64_t>{11, 13}), f.BusyFiles({11, 12, 13}));
    ASSERT_FALSE(storage.committed());
    // This job never runs: it calls neither Publish() nor Close().
  }
  for (const uint64_t number : {11, 12, 13}) {
    ASSERT_EQ(0u, f.InfoOf(number).job_pins);
  }
  ASSERT_TRUE(f.BusyFiles({11, 12, 13}).empty());
  {
    BlobGcStorage storage(f.blobs(), {12});
    storage.Close();
    // The files stay pinned after Close().
    ASSERT_EQ(1u, f.InfoOf(12).job_pins);
    ASSERT_EQ((std::set<uint64_t>{12}), f.BusyFiles({11, 12, 13}));
    ASSERT_FALSE(storage.committed());
    storage.Settle();
    storage.Close();
  }
  ASSERT_EQ(0u, f.InfoOf(12).job_pins);
  CheckMap(&f, f.All());
}

// The picker takes a file with a large index for a full one.
TEST_F(BlobGcStorageTest, FilesForGcHaveTheSizeOfTheIndex) {
  Family f;
  f.AddLive(11, {{"a", 1}});
  f.AddLive(12, {{"b", 2}, {"c", 3}});
  ASSERT_LT(f.IndexSizeOf(11), f.IndexSizeOf(12));
  const std::map<uint64_t, uint64_t> expected = {{11, f.IndexSizeOf(11)},
                                                 {12, f.IndexSizeOf(12)}};
  ASSERT_EQ(expected, f.IndexSizes({11, 12}));
}

TEST_F(BlobGcStorageTest, PinsOnlyLiveFiles) {
  Family f;
  f.AddLive(11, {{"a", 1}});
  f.AddPending(12, {{"b", 2}});
  // 13 is dead, but its value is still in the map, so the file exists.
  f.AddLive(13, {{"c", 3}});
  ASSERT_TRUE(f.files()->Drop(f.Slot(13)));
  // 14 has been handed over for deletion.
  f.AddLive(14, {{"d", 4}});
  ASSERT_TRUE(f.map()->Remove(NameOf({"d", 4})));
  ASSERT_TRUE(f.files()->Drop(f.Slot(14)));
  ASSERT_EQ(1u, f.files()->CollectDead().size());
  f.AddPending(15, {{"e", 5}});
  f.UndoPending(15);
  // 16 holds copies that are not committed.
  const Copies copies = f.Copy(16, {{{"a", 1}}});
  const uint32_t slot = f.blobs()->AddFileOfCopies(copies.outputs[0]);
  ASSERT_EQ(State::kPending, f.InfoOf(12).state);
  ASSERT_EQ(State::kDead, f.InfoOf(13).state);
  ASSERT_EQ(State::kHandedOver, f.InfoOf(14).state);
  ASSERT_EQ(State::kAbandoned, f.InfoOf(15).state);
  ASSERT_EQ(State::kCopies, f.InfoOf(16).state);
  {
    BlobGcStorage storage(f.blobs(), {16, 10, 15, 14, 11, 13, 12});
    ASSERT_EQ(1u, storage.files().size());
    ASSERT_EQ(11u, storage.files()[0].number);
    ASSERT_EQ(1u, f.InfoOf(11).job_pins);
    for (const uint64_t number : {12, 13, 14, 15, 16}) {
      ASSERT_EQ(0u, f.InfoOf(number).job_pins) << number;
    }
    // A file of uncommitted copies is always busy.
    ASSERT_EQ((std::set<uint64_t>{11, 16}), f.BusyFiles({11, 12, 13}));
  }
  ASSERT_EQ(0u, f.InfoOf(11).job_pins);
  ASSERT_TRUE(f.BusyFiles({11, 12, 13}).empty());
  {
    BlobGcStorage storage(f.blobs(), {10, 13});
    ASSERT_TRUE(storage.files().empty());
  }
  {
    BlobGcStorage storage(f.blobs(), {});
    ASSERT_TRUE(storage.files().empty());
  }
  f.blobs()->AbandonFile(slot);
  CheckMap(&f, f.All());
}

// ---- Publish().

TEST_F(BlobGcStorageTest, PublishKeepsEachMode) {
  Family f;
  const Value direct{"a", 10};
  const Value versioned{"b", 11, /*direct=*/false};
  const Value older{"b", 9, /*direct=*/false};
  // The birth is the number of the file itself, or that of another file.
  const Value own_birth{"c", 12, /*direct=*/true, /*birth=*/11};
  const Value birth{"d", 13, /*direct=*/false, /*birth=*/7};
  const Value large{"e", 14, /*direct=*/true, /*birth=*/0, /*size=*/300000};
  const Value newer{"c", 20};
  f.AddLive(11, {direct, versioned, older, own_birth, birth, large});
  // The pending value supersedes the entry of its key, which becomes direct
  // again if the flush fails.
  f.AddPending(12, {newer});
  const Entries before = f.All();
  ASSERT_EQ(MapMode::kSuperseded, before.at(NameOf(own_birth)).mode);
  const uint64_t old_bytes = f.LiveBytes(11);

  BlobGcStorage storage(f.blobs(), {11});
  const Copies copies =
      f.Copy(21, {{direct, large}, {birth, older, versioned, own_birth}});
  // Copying alone does not change the map.
  CheckMap(&f, before);
  ASSERT_OK(Publish(&storage, copies));
  ASSERT_EQ(6u, storage.num_moved());
  ASSERT_EQ(copies.bytes, storage.bytes_moved());
  // Each copy is 7 bytes larger than its original.
  ASSERT_EQ(old_bytes + 6 * 7, storage.bytes_moved());
  ASSERT_EQ(0u, f.LiveCount(11));
  ASSERT_EQ(0u, f.LiveBytes(11));
  ASSERT_EQ(1u, f.LiveCount(12));
  ASSERT_EQ(2u, f.LiveCount(21));
  ASSERT_EQ(4u, f.LiveCount(22));
  ASSERT_EQ(copies.bytes, f.LiveBytes(21) + f.LiveBytes(22));
  uint64_t num_moved = 0;
  uint64_t bytes_moved = 0;
  const Entries published =
      Swapped(&f, before, copies, /*back=*/false, &num_moved, &bytes_moved);
  ASSERT_EQ(6u, num_moved);
  CheckMap(&f, published);
  for (const uint64_t number : {21, 22}) {
    ASSERT_EQ(State::kCopies, f.InfoOf(number).state);
  }
  ASSERT_EQ(copies.outputs[0].size, f.InfoOf(21).size);
  // The value was committed before, so readers may use its copy at once.
  const AddressMap::Lookup found =
      f.map()->FindDurableDirect(NameOf(own_birth).key, /*pin=*/false);
  ASSERT_TRUE(found.found);
  ASSERT_EQ(own_birth.seq, found.entry.name.seq);
  ASSERT_EQ(f.Slot(22), found.entry.address.slot);
  // The old file is pinned, because the edit may still fail.
  ASSERT_TRUE(f.DroppableFiles().empty());
  ASSERT_EQ((std::set<uint64_t>{11, 21, 22}), f.BusyFiles({11}));

  storage.OnVersionAppended(*f.NewVersion({11, 21, 22}));
  storage.Close();
  storage.Settle();
  CheckMap(&f, published);
  // The superseded value can still become direct again.
  f.UndoPending(12);
  ASSERT_EQ(MapMode::kDirect, f.Find(own_birth).entry.mode);
  ASSERT_EQ(22u, f.FileOf(own_birth));
  ASSERT_EQ(6u, f.LiveCount(21) + f.LiveCount(22));
}

// Publish() swaps all values of several files, even if an output has more
// records than one read of a record index returns, and a failed edit swaps them
// back.
TEST_F(BlobGcStorageTest, PublishesFilesOfManyRecords) {
  constexpr size_t kRecords = 3300;
  Family f;
  std::vector<Value> values;
  std::vector<std::vector<Value>> of_files(3);
  for (size_t i = 0; i < kRecords; ++i) {
    values.push_back(Value{"key" + std::to_string(i), 100 + i, i % 3 != 0, 0,
                           /*size=*/10 + i % 50});
    of_files[i % 3].push_back(values.back());
  }
  for (size_t i = 0; i < of_files.size(); ++i) {
    f.AddLive(11 + i, of_files[i]);
  }
  const Entries before = f.All();
  const auto copy = [&](uint64_t number) {
    return f.Copy(number,
                  {std::vector<Value>(values.begin(), values.begin() + 1500),
                   {values[1500]},
                   std::vector<Value>(values.begin() + 1501, values.end())});
  };
  for (const bool commits : {false, true}) {
    SCOPED_TRACE(commits ? "commits" : "fails");
    BlobGcStorage storage(f.blobs(), {11, 12, 13});
    const Copies copies = copy(commits ? 31 : 21);
    ASSERT_EQ(kRecords, copies.from.size());
    ASSERT_OK(Publish(&storage, copies));
    ASSERT_EQ(kRecords, storage.num_moved());
    ASSERT_EQ(copies.bytes, storage.bytes_moved());
    for (size_t i = 0, o = 0, n = 0; i < kRecords; ++i) {
      const AddressMap::Record& record = copies.records[o][n];
      const AddressMap::Lookup found = f.Find(values[i]);
      ASSERT_TRUE(found.found);
      ASSERT_TRUE((MapAddress{f.Slot(copies.outputs[o].number), record.offset,
                              record.size}) == found.entry.address)
          << i;
      ASSERT_EQ(values[i].direct, found.entry.mode == MapMode::kDirect);
      if (++n == copies.records[o].size()) {
        ++o;
        n = 0;
      }
    }
    for (const uint64_t number : {11, 12, 13}) {
      ASSERT_EQ(0u, f.LiveCount(number));
      ASSERT_EQ(0u, f.LiveBytes(number));
    }
    const Entries published = f.All();
    CheckMap(&f, published);
    if (commits) {
      storage.OnVersionAppended(*f.NewVersion({11, 12, 13, 31, 32, 33}));
    }
    storage.Close();
    storage.Settle();
    CheckMap(&f, commits ? published : before);
  }
}

// The cached values move with their addresses in the map.
TEST_F(BlobGcStorageTest, CachedValuesMove) {
  for (const bool commits : {false, true}) {
    SCOPED_TRACE(commits ? "commits" : "fails");
    Family f(NewLRUCache(1 << 20));
    const Value a{"a", 1};
    const Value not_cached{"longer", 2};
    const Value moved{"moved", 3};
    const Value b{"much longer", 4, /*direct=*/false};
    const std::vector<Value> all = {a, not_cached, moved, b};
    f.AddLive(11, all);
    f.AddLive(12, {{"another", 12}});
    for (const Value& value : {a, moved, b}) {
      f.CacheValue(value);
    }
    std::vector<std::pair<uint64_t, uint64_t>> old;
    for (const Value& value : all) {
      old.push_back(f.PlaceOf(value));
    }
    const auto check = [&](bool at_new_place) {
      for (size_t i = 0; i < all.size(); ++i) {
        const bool is_cached = all[i].key != not_cached.key;
        const bool stays = all[i].key == moved.key;
        ASSERT_EQ(is_cached && (stays || !at_new_place), f.IsCached(old[i]))
            << all[i].key;
        if (at_new_place) {
          ASSERT_NE(old[i], f.PlaceOf(all[i]));
          ASSERT_EQ(is_cached && !stays, f.IsCached(f.PlaceOf(all[i])))
              << all[i].key;
        }
      }
    };
    BlobGcStorage storage(f.blobs(), {11});
    const Copies copies = f.Copy(21, {{b, not_cached}, {moved, a}});
    // Another job has moved this value without its cache entry, so the storage
    // does not move it.
    ASSERT_TRUE(f.map()->SwapAddress(NameOf(moved), f.Find(moved).entry.address,
                                     MapAddress{f.Slot(12), 5000, 200}));
    storage.MoveCached(f.source(), {11, 6, 5, 1});
    check(/*at_new_place=*/false);
    ASSERT_OK(Publish(&storage, copies));
    ASSERT_EQ(3u, storage.num_moved());
    check(/*at_new_place=*/true);
    const auto copy_of_a = f.PlaceOf(a);
    if (commits) {
      storage.OnVersionAppended(*f.NewVersion({11, 12, 21, 22}));
    }
    storage.Close();
    storage.Settle();
    check(/*at_new_place=*/commits);
    ASSERT_EQ(commits, f.IsCached(copy_of_a));
  }
}

// Only values whose addresses have changed count as moved home. The bytes are
// the sizes that their records have in the hot file.
TEST_F(BlobGcStorageTest, ValuesThatMoveHomeAreCounted) {
  for (const bool commits : {false, true}) {
    SCOPED_TRACE(commits ? "commits" : "fails");
    Family f;
    const Value stays{"stays", 1};
    const Value leaves{"leaves", 2};
    const Value removed{"removed", 3};
    f.AddLive(11, {stays, leaves, removed});
    const uint64_t bytes = f.Find(leaves).entry.address.size;
    BlobGcStorage storage(f.blobs(), {11});
    Copies copies = f.Copy(21, {{stays}, {leaves, removed}});
    copies.outputs[0].hot = HotMark::WithHome(1);
    ASSERT_TRUE(f.map()->Remove(NameOf(removed)));
    ASSERT_OK(Publish(&storage, copies));
    ASSERT_EQ(2u, storage.num_moved());
    ASSERT_EQ(1u, storage.num_moved_home());
    ASSERT_EQ(bytes, storage.bytes_moved_home());
    if (commits) {
      storage.OnVersionAppended(*f.NewVersion({11, 21, 22}));
    }
    storage.Close();
    storage.Settle();
    ASSERT_EQ(commits ? 1u : 0u, storage.num_moved_home());
    ASSERT_EQ(commits ? bytes : 0u, storage.bytes_moved_home());
  }
}

// ---- Edit.

TEST_F(BlobGcStorageTest, EditWithAllOutputsCommits) {
  Family f;
  const Value a{"a", 1};
  const Value b{"b", 2, /*direct=*/false};
  f.AddLive(11, {a, b});
  {
    BlobGcStorage storage(f.blobs(), {11});
    // These Versions come from other jobs.
    storage.OnVersionAppended(*f.NewVersion({11}));
    ASSERT_FALSE(storage.committed());
    const Copies copies = f.Copy(21, {{a}, {b}});
    storage.OnVersionAppended(*f.NewVersion({11}));
    ASSERT_OK(Publish(&storage, copies));
    storage.OnVersionAppended(*f.NewVersion({11}));
    ASSERT_FALSE(storage.committed());
    ASSERT_EQ(State::kCopies, f.InfoOf(21).state);
    ASSERT_EQ(State::kCopies, f.InfoOf(22).state);

    storage.OnVersionAppended(*f.NewVersion({11, 21, 22}));
    ASSERT_TRUE(storage.committed());
    ASSERT_EQ(State::kLive, f.InfoOf(21).state);
    ASSERT_EQ(State::kLive, f.InfoOf(22).state);
    // An edit of another job drops an output before Close().
    ASSERT_TRUE(f.map()->Remove(NameOf(a)));
    ASSERT_EQ((std::set<uint64_t>{21}), f.DroppableFiles());
    ASSERT_TRUE(f.files()->Drop(f.Slot(21)));
    storage.OnVersionAppended(*f.NewVersion({11, 22}));
    ASSERT_TRUE(storage.committed());
    ASSERT_EQ(State::kDead, f.InfoOf(21).state);

    storage.Close();
    ASSERT_TRUE(storage.committed());
    const Entries before = f.All();
    storage.Settle();
    CheckMap(&f, before);
    ASSERT_TRUE(storage.committed());
    ASSERT_EQ(2u, storage.num_moved());
    ASSERT_EQ(copies.bytes, storage.bytes_moved());
    ASSERT_EQ(22u, f.FileOf(b));
    ASSERT_EQ(State::kLive, f.InfoOf(22).state);
  }
  ASSERT_EQ((std::set<uint64_t>{11}), f.DroppableFiles());
  ASSERT_TRUE(f.BusyFiles({22}).empty());
}

TEST_F(BlobGcStorageTest, FailedEditMovesValuesBack) {
  Family f;
  const Value a{"a", 1};
  const Value b{"b", 2, /*direct=*/false};
  const Value c{"c", 3};
  f.AddLive(11, {a, b});
  f.AddLive(12, {c});
  const Entries before = f.All();
  {
    BlobGcStorage storage(f.blobs(), {11, 12});
    const Copies copies = f.Copy(21, {{a, c}, {b}});
    ASSERT_OK(Publish(&storage, copies));
    ASSERT_EQ(3u, storage.num_moved());
    // This Version comes from another job.
    storage.OnVersionAppended(*f.NewVersion({11, 12}));
    storage.Close();
    ASSERT_FALSE(storage.committed());
    // The values are not moved back before Settle(), which runs without the DB
    // mutex.
    ASSERT_EQ(21u, f.FileOf(a));
    storage.Settle();
    ASSERT_FALSE(storage.committed());
    ASSERT_EQ(0u, storage.num_moved());
    ASSERT_EQ(0u, storage.bytes_moved());
    CheckMap(&f, before);
    for (const uint64_t number : {21, 22}) {
      ASSERT_EQ(State::kAbandoned, f.InfoOf(number).state);
      ASSERT_EQ(0u, f.LiveCount(number));
      ASSERT_EQ(0u, f.LiveBytes(number));
    }
    ASSERT_EQ(2u, f.LiveCount(11));
    ASSERT_EQ(1u, f.LiveCount(12));
    // Nothing pins the copies.
    ASSERT_TRUE(f.files()->Free(f.Slot(22)));
    ASSERT_TRUE(f.files()->Free(f.Slot(21)));
  }
  ASSERT_TRUE(f.DroppableFiles().empty());
  ASSERT_TRUE(f.BusyFiles({11, 12}).empty());
  // The next job finds the state from before.
  BlobGcStorage storage(f.blobs(), {11, 12});
  ASSERT_EQ(2u, storage.files().size());
  ASSERT_OK(Publish(&storage, f.Copy(31, {{a, b, c}})));
  ASSERT_EQ(3u, storage.num_moved());
  storage.OnVersionAppended(*f.NewVersion({11, 12, 31}));
  ASSERT_TRUE(storage.committed());
  storage.Close();
  storage.Settle();
  ASSERT_EQ(3u, f.LiveCount(31));
  ASSERT_EQ(0u, f.LiveCount(11) + f.LiveCount(12));
}

// An entry whose mode changes before or after the swap still moves, and moves
// back after a failed edit; only its address matters.
TEST_F(BlobGcStorageTest, OnlyTheAddressDecidesWhetherAnEntryMoves) {
  const Value kept{"kept", 1};
  const Value kept_versioned{"kept versioned", 2, false};
  const Value renamed{"renamed", 3, false};
  const Value demoted{"demoted", 4};
  const Value superseded{"superseded", 5};
  const Value restored{"restored", 6};
  const Value overwritten{"overwritten", 7};
  const Value removed{"removed", 8};
  const Value removed_versioned{"removed versioned", 9, false};
  const Value hidden{"hidden", 10};
  const Value moved{"moved", 11};
  const std::vector<Value> all = {
      kept,       kept_versioned,    renamed,     demoted,
      superseded, restored,          overwritten, removed,
      hidden,     removed_versioned, moved};
  const std::vector<Value> remaining = {kept,    kept_versioned, renamed,
                                        demoted, superseded,     restored};
  for (const bool after_publish : {false, true}) {
    for (const bool commits : {false, true}) {
      SCOPED_TRACE(std::string(after_publish ? "after" : "before") +
                   (commits ? ", commits" : ", fails"));
      Family f;
      f.AddLive(11, all);
      f.AddLive(12, {{"another", 12}});
      const auto change = [&] {
        ASSERT_EQ(AddressMap::RenameResult::kRenamed,
                  f.map()->Rename(NameOf(renamed)));
        ASSERT_TRUE(f.map()->Demote(NameOf(demoted)));
        f.AddPending(41, {{superseded.key, 101}});
        f.AddPending(42, {{restored.key, 102}});
        f.UndoPending(42);
        f.AddPending(43, {{overwritten.key, 103}});
        f.CommitPending(43);
        ASSERT_TRUE(f.map()->Remove(NameOf(removed)));
        ASSERT_TRUE(f.map()->Remove(NameOf(removed_versioned)));
        AddressMap::LeftEntries left;
        ASSERT_EQ(1u, f.map()->RemoveHidden(NameOf(hidden).key, /*from=*/0, 104,
                                            kMaxBirth, &left));
        ASSERT_TRUE(f.map()->SwapAddress(NameOf(moved),
                                         f.Find(moved).entry.address,
                                         MapAddress{f.Slot(12), 5000, 200}));
      };
      {
        BlobGcStorage storage(f.blobs(), {11});
        const Copies copies = f.Copy(21, {all});
        uint64_t num_moved = 0;
        uint64_t bytes_moved = 0;
        if (!after_publish) {
          change();
        }
        ASSERT_OK(Publish(&storage, copies));
        Entries expected = f.All();
        ASSERT_EQ(after_publish ? all.size() : remaining.size(),
                  storage.num_moved());
        ASSERT_EQ(storage.bytes_moved(), f.LiveBytes(21));
        ASSERT_EQ(storage.num_moved(), f.LiveCount(21));
        ASSERT_EQ(0u, f.LiveCount(11));
        CheckMap(&f, expected);
        if (after_publish) {
          change();
          expected = f.All();
          CheckMap(&f, expected);
        }
        ASSERT_EQ(remaining.size(), f.LiveCount(21));
        if (commits) {
          storage.OnVersionAppended(*f.NewVersion({11, 12, 21, 43}));
        } else {
          expected = Swapped(&f, expected, copies, /*back=*/true, &num_moved,
                             &bytes_moved);
          ASSERT_EQ(remaining.size(), num_moved);
        }
        storage.Close();
        storage.Settle();
        ASSERT_EQ(commits, storage.committed());
        CheckMap(&f, expected);
      }
      for (const Value& value : remaining) {
        ASSERT_EQ(commits ? 21u : 11u, f.FileOf(value)) << value.key;
      }
      ASSERT_EQ(remaining.size(), f.LiveCount(commits ? 21 : 11));
      ASSERT_EQ(0u, f.LiveCount(commits ? 11 : 21));
      for (const Value& value :
           {overwritten, removed, removed_versioned, hidden}) {
        ASSERT_EQ(0u, f.FileOf(value)) << value.key;
      }
      ASSERT_EQ(12u, f.FileOf(moved));
      ASSERT_EQ(MapMode::kDirect, f.Find(renamed).entry.mode);
      ASSERT_EQ(MapMode::kVersioned, f.Find(demoted).entry.mode);
      ASSERT_EQ(MapMode::kSuperseded, f.Find(superseded).entry.mode);
      ASSERT_EQ(MapMode::kDirect, f.Find(restored).entry.mode);
      ASSERT_EQ(commits ? State::kLive : State::kAbandoned, f.InfoOf(21).state);
    }
  }
}

// An output that loses its values before it is committed can be dropped as soon
// as it is committed.
TEST_F(BlobGcStorageTest, OutputWithoutValuesIsDroppableOnceCommitted) {
  for (const bool commits : {false, true}) {
    Family f;
    const Value a{"a", 1};
    const Value b{"b", 2};
    f.AddLive(11, {a, b});
    BlobGcStorage storage(f.blobs(), {11});
    ASSERT_OK(Publish(&storage, f.Copy(21, {{a}, {b}})));
    ASSERT_TRUE(f.map()->Remove(NameOf(a)));
    ASSERT_EQ(0u, f.LiveCount(21));
    ASSERT_TRUE(f.DroppableFiles().empty());
    ASSERT_FALSE(f.blobs()->HasDroppableFiles());
    if (commits) {
      storage.OnVersionAppended(*f.NewVersion({11, 21, 22}));
      ASSERT_TRUE(f.blobs()->HasDroppableFiles());
      ASSERT_EQ((std::set<uint64_t>{21}), f.DroppableFiles());
    }
    storage.Close();
    storage.Settle();
    ASSERT_EQ(commits ? 22u : 11u, f.FileOf(b));
    ASSERT_EQ(0u, f.FileOf(a));
    CheckMap(&f, f.All());
  }
}

// If Publish() fails half-way, Settle() undoes all swaps.
TEST_F(BlobGcStorageTest, FailedPublishIsUndone) {
  constexpr size_t kRecords = 2500;
  Family f;
  std::vector<Value> values;
  for (size_t i = 0; i < kRecords; ++i) {
    values.push_back(Value{"key" + std::to_string(i), 100 + i});
  }
  f.AddLive(11, values);
  const Entries before = f.All();
  const std::vector<Value> first(values.begin(), values.begin() + 10);
  const std::vector<Value> second(values.begin() + 10, values.end());
  struct Case {
    const char* what;
    size_t num_moved;  // before the error
    std::function<void(Copies*)> damage;
  };
  const Case cases[] = {
      {"fewer sources than records", 1000,
       [](Copies* copies) { copies->from.resize(1000); }},
      {"no sources", 0, [](Copies* copies) { copies->from.clear(); }},
      {"damaged first block", 10,
       [](Copies* copies) { copies->outputs[1].index[100] ^= 1; }},
      {"index cut short", 10,
       [](Copies* copies) { copies->outputs[1].index.pop_back(); }},
      {"wrong footer of the first", 0,
       [](Copies* copies) { ++copies->outputs[0].footer.index_checksum; }},
  };
  uint64_t number = 21;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    BlobGcStorage storage(f.blobs(), {11});
    Copies copies = f.Copy(number, {first, second});
    c.damage(&copies);
    const Status s = Publish(&storage, copies);
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    ASSERT_EQ(c.num_moved, storage.num_moved());
    ASSERT_EQ(kRecords - c.num_moved, f.LiveCount(11));
    storage.Close();
    storage.Settle();
    ASSERT_FALSE(storage.committed());
    ASSERT_EQ(0u, storage.num_moved());
    ASSERT_EQ(0u, storage.bytes_moved());
    CheckMap(&f, before);
    ASSERT_EQ(State::kAbandoned, f.InfoOf(number).state);
    ASSERT_EQ(State::kAbandoned, f.InfoOf(number + 1).state);
    number += 2;
  }

  // Damage that is found after many entries were swapped.
  BlobGcStorage storage(f.blobs(), {11});
  Copies copies = f.Copy(number, {values});
  std::string* const index = &copies.outputs[0].index;
  ASSERT_GT(index->size(), 5 * RecordIndexFormat::kBlockSize);
  (*index)[index->size() - 10] ^= 1;
  const Status s = Publish(&storage, copies);
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  ASSERT_NE(std::string::npos,
            s.ToString().find("blob file " + std::to_string(number)))
      << s.ToString();
  ASSERT_GT(storage.num_moved(), 0u);
  ASSERT_LT(storage.num_moved(), kRecords);
  CheckMap(&f, f.All());
  storage.Close();
  storage.Settle();
  CheckMap(&f, before);
  ASSERT_EQ(kRecords, f.LiveCount(11));
}

// ---- Deletion of old files.

TEST_F(BlobGcStorageTest, OldFileIsDroppableWithoutValuesAndPins) {
  Family f;
  const Value a{"a", 1};
  const Value b{"b", 2};
  const Value left{"left", 3, /*direct=*/false};
  const Value c{"c", 4};
  f.AddLive(11, {a, b, left});
  f.AddLive(12, {c});
  auto storage =
      std::make_unique<BlobGcStorage>(f.blobs(), std::vector<uint64_t>{11, 12});
  AddressMap::Lookup reader = f.Find(c, /*pin=*/true);
  ASSERT_TRUE(reader.pin.pinned());
  ASSERT_OK(Publish(storage.get(), f.Copy(21, {{a, b, c}})));
  ASSERT_EQ(1u, f.LiveCount(11));
  ASSERT_EQ(0u, f.LiveCount(12));
  ASSERT_TRUE(f.DroppableFiles().empty());
  storage->OnVersionAppended(*f.NewVersion({11, 12, 21}));
  storage->Close();
  storage->Settle();
  // The job is committed, but 12 is still pinned, and 11 has a live value.
  ASSERT_TRUE(f.DroppableFiles().empty());
  ASSERT_FALSE(f.blobs()->HasDroppableFiles());
  VersionEdit nothing;
  ASSERT_TRUE(
      f.blobs()->AddDrops(*f.NewVersion({11, 12, 21}), &nothing).empty());

  storage.reset();
  ASSERT_TRUE(f.blobs()->HasDroppableFiles());
  ASSERT_EQ((std::set<uint64_t>{12}), f.DroppableFiles());
  VersionEdit edit;
  const std::vector<uint64_t> dropped =
      f.blobs()->AddDrops(*f.NewVersion({11, 12, 21}), &edit);
  ASSERT_EQ(std::vector<uint64_t>{12}, dropped);
  ASSERT_TRUE(f.files()->Drop(f.Slot(12)));
  f.blobs()->FinishDrops(dropped);
  // A reader that looked the value up before may still read the old record.
  ASSERT_TRUE(f.files()->CollectDead().empty());
  reader.pin.Reset();
  ASSERT_EQ(1u, f.files()->CollectDead().size());

  ASSERT_TRUE(f.DroppableFiles().empty());
  ASSERT_EQ(11u, f.FileOf(left));
  ASSERT_TRUE(f.map()->Remove(NameOf(left)));
  ASSERT_EQ((std::set<uint64_t>{11}), f.DroppableFiles());
  ASSERT_EQ(3u, f.LiveCount(21));
}

// The edit that adds the copies removes the old files without a live value,
// except for those that another job has pinned.
TEST_F(BlobGcStorageTest, OldFilesLeaveInTheSameEdit) {
  for (const bool commits : {true, false}) {
    SCOPED_TRACE(commits);
    Family f;
    const Value a{"a", 1};
    const Value b{"b", 2};
    const Value left{"left", 3};
    const Value c{"c", 4};
    const Value other{"other", 5};
    f.AddLive(11, {a, b});
    f.AddLive(12, {left});
    f.AddLive(13, {c});
    f.AddLive(14, {other});
    BlobGcStorage storage(f.blobs(), {11, 12, 13});
    const AddressMapStore::FilePin pin(f.blobs(), 13);
    // 14 has no live value now, so the edit removes it as well.
    ASSERT_TRUE(f.map()->Remove(NameOf(other)));
    ASSERT_OK(Publish(&storage, f.Copy(21, {{a, b, c}})));
    const auto version = f.NewVersion({11, 12, 13, 14});
    VersionEdit edit;
    const std::vector<uint64_t> drops = storage.AddDrops(*version, &edit);
    ASSERT_EQ((std::set<uint64_t>{11, 14}),
              std::set<uint64_t>(drops.begin(), drops.end()));
    ASSERT_EQ(2u, edit.GetBlobFileGarbages().size());
    for (const BlobFileGarbage& garbage : edit.GetBlobFileGarbages()) {
      ASSERT_EQ(garbage.GetBlobFileNumber() == 11 ? 2u : 1u,
                garbage.GetGarbageBlobCount());
    }
    // A second call does not remove the files again.
    VersionEdit again;
    ASSERT_TRUE(storage.AddDrops(*version, &again).empty());
    if (commits) {
      storage.OnVersionAppended(*f.NewVersion({12, 13, 21}));
      for (const uint64_t number : drops) {
        ASSERT_TRUE(f.files()->Drop(f.Slot(number)));
      }
    }
    f.blobs()->FinishDrops(drops);
    storage.Close();
    storage.Settle();
    ASSERT_EQ(commits, storage.committed());
    ASSERT_EQ(commits ? State::kDead : State::kLive, f.InfoOf(11).state);
    ASSERT_EQ(commits ? State::kDead : State::kLive, f.InfoOf(14).state);
    ASSERT_EQ(State::kLive, f.InfoOf(13).state);
    for (const Value& value : {a, b}) {
      ASSERT_EQ(commits ? 21u : 11u, f.FileOf(value));
    }
    ASSERT_EQ(commits ? 21u : 13u, f.FileOf(c));
    ASSERT_EQ(12u, f.FileOf(left));
    // The job still pins 11, so that file is deleted only after the job's end.
    ASSERT_EQ(commits ? 1u : 0u, f.files()->CollectDead().size());
  }
}

// After a failed edit, the values are back in the old files before these could
// be dropped.
TEST_F(BlobGcStorageTest, OldFileStaysAfterFailedEdit) {
  Family f;
  const Value a{"a", 1};
  f.AddLive(11, {a});
  {
    BlobGcStorage storage(f.blobs(), {11});
    ASSERT_OK(Publish(&storage, f.Copy(21, {{a}})));
    ASSERT_TRUE(f.DroppableFiles().empty());
    storage.Close();
    ASSERT_TRUE(f.DroppableFiles().empty());
    storage.Settle();
    ASSERT_TRUE(f.DroppableFiles().empty());
  }
  ASSERT_TRUE(f.DroppableFiles().empty());
  ASSERT_EQ(11u, f.FileOf(a));
}

// ---- Concurrent jobs.

TEST_F(BlobGcStorageTest, ConcurrentJobsCommitIndependently) {
  for (const bool first_commits : {false, true}) {
    SCOPED_TRACE(first_commits ? "the first commits" : "the second commits");
    Family f;
    const Value a{"a", 1};
    const Value b{"b", 2, /*direct=*/false};
    const Value c{"c", 3};
    const Value newer_b{"b", 4, /*direct=*/false};
    f.AddLive(11, {a, b});
    f.AddLive(12, {c, newer_b});
    auto first =
        std::make_unique<BlobGcStorage>(f.blobs(), std::vector<uint64_t>{11});
    auto second =
        std::make_unique<BlobGcStorage>(f.blobs(), std::vector<uint64_t>{12});
    ASSERT_EQ((std::set<uint64_t>{11, 12}), f.BusyFiles({11, 12}));
    const Copies of_first = f.Copy(21, {{a, b}});
    const Copies of_second = f.Copy(22, {{newer_b}, {c}});
    ASSERT_OK(Publish(second.get(), of_second));
    ASSERT_OK(Publish(first.get(), of_first));
    ASSERT_EQ(2u, first->num_moved());
    ASSERT_EQ(of_first.bytes, first->bytes_moved());
    ASSERT_EQ(2u, second->num_moved());
    ASSERT_EQ(of_second.bytes, second->bytes_moved());
    ASSERT_EQ(0u, f.LiveCount(11) + f.LiveCount(12));
    ASSERT_EQ((std::set<uint64_t>{11, 12, 21, 22, 23}), f.BusyFiles({11, 12}));

    // Each job is notified of each Version.
    const auto version =
        f.NewVersion(first_commits ? std::set<uint64_t>{11, 12, 21}
                                   : std::set<uint64_t>{11, 12, 22, 23});
    first->OnVersionAppended(*version);
    second->OnVersionAppended(*version);
    ASSERT_EQ(first_commits, first->committed());
    ASSERT_EQ(!first_commits, second->committed());
    ASSERT_EQ(first_commits ? State::kLive : State::kCopies,
              f.InfoOf(21).state);
    ASSERT_EQ(first_commits ? State::kCopies : State::kLive,
              f.InfoOf(23).state);
    first->Close();
    second->Close();
    first->Settle();
    second->Settle();
    for (const Value& value : {a, b}) {
      ASSERT_EQ(first_commits ? 21u : 11u, f.FileOf(value));
    }
    ASSERT_EQ(first_commits ? 12u : 22u, f.FileOf(newer_b));
    ASSERT_EQ(first_commits ? 12u : 23u, f.FileOf(c));
    CheckMap(&f, f.All());

    first.reset();
    ASSERT_EQ(0u, f.InfoOf(11).job_pins);
    ASSERT_EQ(1u, f.InfoOf(12).job_pins);
    ASSERT_EQ(1u, f.BusyFiles({11, 12}).count(12));
    ASSERT_EQ(first_commits ? std::set<uint64_t>{11} : std::set<uint64_t>{},
              f.DroppableFiles());
    second.reset();
    ASSERT_EQ(first_commits ? std::set<uint64_t>{11} : std::set<uint64_t>{12},
              f.DroppableFiles());
  }
}

// Two jobs with the same file do no harm, although the picker never gives a
// file to two jobs.
TEST_F(BlobGcStorageTest, SameFileInTwoJobsMovesOnce) {
  Family f;
  const Value a{"a", 1};
  f.AddLive(11, {a});
  auto first =
      std::make_unique<BlobGcStorage>(f.blobs(), std::vector<uint64_t>{11});
  auto second =
      std::make_unique<BlobGcStorage>(f.blobs(), std::vector<uint64_t>{11});
  ASSERT_EQ(2u, f.InfoOf(11).job_pins);
  const Copies of_first = f.Copy(21, {{a}});
  const Copies of_second = f.Copy(22, {{a}});
  ASSERT_OK(Publish(first.get(), of_first));
  ASSERT_OK(Publish(second.get(), of_second));
  ASSERT_EQ(1u, first->num_moved());
  ASSERT_EQ(0u, second->num_moved());
  ASSERT_EQ(0u, second->bytes_moved());
  ASSERT_EQ(21u, f.FileOf(a));
  // The second job moves back only the values that it has moved itself.
  second->Close();
  second->Settle();
  ASSERT_EQ(21u, f.FileOf(a));
  ASSERT_EQ(0u, f.LiveCount(22));
  first->OnVersionAppended(*f.NewVersion({11, 21}));
  first->Close();
  first->Settle();
  first.reset();
  ASSERT_EQ(1u, f.InfoOf(11).job_pins);
  ASSERT_TRUE(f.DroppableFiles().empty());
  second.reset();
  ASSERT_EQ((std::set<uint64_t>{11}), f.DroppableFiles());
}

// The outputs of a job can be collected as soon as they are committed, but not
// earlier.
TEST_F(BlobGcStorageTest, CommittedCopiesCanBeCollected) {
  Family f;
  const Value a{"a", 1};
  const Value b{"b", 2};
  f.AddLive(11, {a, b});
  {
    BlobGcStorage storage(f.blobs(), {11});
    ASSERT_OK(Publish(&storage, f.Copy(21, {{a, b}})));
    {
      BlobGcStorage early(f.blobs(), {21});
      ASSERT_TRUE(early.files().empty());
    }
    storage.OnVersionAppended(*f.NewVersion({11, 21}));
    {
      // The next job commits before the previous one is settled.
      BlobGcStorage next(f.blobs(), {21});
      ASSERT_EQ(1u, next.files().size());
      ASSERT_OK(Publish(&next, f.Copy(31, {{b, a}})));
      ASSERT_EQ(2u, next.num_moved());
      next.OnVersionAppended(*f.NewVersion({11, 21, 31}));
      storage.OnVersionAppended(*f.NewVersion({11, 21, 31}));
      next.Close();
      next.Settle();
    }
    storage.Close();
    storage.Settle();
    ASSERT_EQ(2u, storage.num_moved());
  }
  ASSERT_EQ(31u, f.FileOf(a));
  ASSERT_EQ(31u, f.FileOf(b));
  ASSERT_EQ((std::set<uint64_t>{11, 21}), f.DroppableFiles());
  CheckMap(&f, f.All());
}

// Other jobs may commit while this one publishes. Run with ThreadSanitizer, the
// test finds races.
TEST_F(BlobGcStorageTest, PublishAllowsConcurrentVersions) {
  constexpr uint64_t kOutputs = 300;
  Family f;
  std::vector<Value> values;
  std::vector<std::vector<Value>> of_outputs;
  for (uint64_t i = 0; i < kOutputs; ++i) {
    values.push_back(Value{"key" + std::to_string(i), 100 + i});
    of_outputs.push_back({values.back()});
  }
  f.AddLive(11, values);
  const Entries before = f.All();
  const auto version = f.NewVersion({11});
  for (uint64_t round = 0; round < 5; ++round) {
    BlobGcStorage storage(f.blobs(), {11});
    const Copies copies = f.Copy(1000 * (round + 1), of_outputs);
    std::atomic<bool> started{false};
    std::atomic<bool> stop{false};
    std::thread committer([&] {
      do {
        storage.OnVersionAppended(*version);
        started = true;
      } while (!stop);
    });
    while (!started) {
      std::this_thread::yield();
    }
    const Status s = Publish(&storage, copies);
    stop = true;
    committer.join();
    ASSERT_OK(s);
    ASSERT_FALSE(storage.committed());
    ASSERT_EQ(kOutputs, storage.num_moved());
    storage.Close();
    storage.Settle();
    CheckMap(&f, before);
  }
}

// ---- Random histories.

namespace {

// Makes random changes to the map, as other jobs could do.
void ChangeSome(Family* f, Random* rnd, SequenceNumber* seq,
                uint64_t* next_number, std::vector<Value>* values) {
  const uint32_t changes = rnd->Uniform(30);
  for (uint32_t i = 0; i < changes; ++i) {
    const Value value =
        (*values)[rnd->Uniform(static_cast<int>(values->size()))];
    const MapName name = NameOf(value);
    switch (rnd->Uniform(7)) {
      case 0:
        f->map()->Rename(name);
        break;
      case 1:
        f->map()->Demote(name);
        break;
      case 2:
        f->map()->Remove(name);
        break;
      case 3: {
        AddressMap::LeftEntries left;
        f->map()->RemoveHidden(name.key, /*from=*/0, name.seq + rnd->Uniform(3),
                               kMaxBirth, &left);
        break;
      }
      case 4: {
        const AddressMap::Lookup found = f->Find(value);
        if (found.found) {
          ASSERT_TRUE(f->map()->SwapAddress(
              name, found.entry.address,
              MapAddress{f->Slot(10), 1000 + rnd->Uniform(1000),
                         50 + rnd->Uniform(50)}));
        }
        break;
      }
      default: {
        Value newer = value;
        newer.seq = ++*seq;
        newer.direct = rnd->OneIn(2);
        const uint64_t number = (*next_number)++;
        f->AddPending(number, {newer});
        if (rnd->OneIn(3)) {
          f->CommitPending(number);
        } else if (rnd->OneIn(3)) {
          f->UndoPending(number);
        }
        values->push_back(newer);
        break;
      }
    }
  }
}

}  // namespace

TEST_F(BlobGcStorageTest, RandomChangesDuringAJobMatchTheModel) {
  uint64_t all_moved = 0;
  uint64_t all_stayed = 0;
  uint64_t all_moved_back = 0;
  for (int seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random rnd(seed);
    Family f;
    SequenceNumber seq = 100;
    uint64_t next_number = 1000;
    std::vector<Value> values;
    // ChangeSome() moves values to this file.
    f.AddLive(10, {{"elsewhere", 1}});
    for (uint64_t number = 11; number <= 14; ++number) {
      std::vector<Value> of_file;
      std::set<std::string> keys;
      const uint32_t n = 1 + rnd.Uniform(30);
      for (uint32_t i = 0; i < n; ++i) {
        Value value;
        value.key = std::string(1, static_cast<char>('a' + rnd.Uniform(20)));
        value.seq = ++seq;
        value.direct = rnd.OneIn(2) && keys.insert(value.key).second;
        value.birth = rnd.OneIn(3) ? (rnd.OneIn(2) ? number : 5) : 0;
        value.size = 1 + rnd.Uniform(200);
        of_file.push_back(value);
        values.push_back(value);
      }
      f.AddLive(number, of_file);
    }
    ChangeSome(&f, &rnd, &seq, &next_number, &values);
    if (HasFatalFailure()) {
      return;
    }

    const std::vector<uint64_t> inputs =
        rnd.OneIn(2) ? std::vector<uint64_t>{11, 12}
                     : std::vector<uint64_t>{13, 14, 12};
    auto storage = std::make_unique<BlobGcStorage>(f.blobs(), inputs);
    ASSERT_EQ(inputs.size(), storage->files().size());
    std::vector<std::vector<Value>> copied(1);
    for (const Value& value : values) {
      const uint64_t number = f.FileOf(value);
      if (std::find(inputs.begin(), inputs.end(), number) != inputs.end() &&
          !rnd.OneIn(10)) {
        if (rnd.OneIn(10) && !copied.back().empty()) {
          copied.emplace_back();
        }
        copied.back().push_back(value);
      }
    }
    if (copied.front().empty()) {
      continue;
    }
    const Copies copies = f.Copy(100, copied);
    ChangeSome(&f, &rnd, &seq, &next_number, &values);
    if (HasFatalFailure()) {
      return;
    }

    const Entries before = f.All();
    ASSERT_OK(Publish(storage.get(), copies));
    uint64_t num_moved = 0;
    uint64_t bytes_moved = 0;
    const Entries published =
        Swapped(&f, before, copies, /*back=*/false, &num_moved, &bytes_moved);
    CheckMap(&f, published);
    if (HasFatalFailure()) {
      return;
    }
    ASSERT_EQ(num_moved, storage->num_moved());
    ASSERT_EQ(bytes_moved, storage->bytes_moved());
    all_moved += num_moved;
    all_stayed += copies.from.size() - num_moved;

    ChangeSome(&f, &rnd, &seq, &next_number, &values);
    if (HasFatalFailure()) {
      return;
    }
    Entries expected = f.All();
    const bool commits = rnd.OneIn(2);
    if (commits) {
      std::set<uint64_t> version = {10, 11, 12, 13, 14};
      for (const MappedBlobFile& output : copies.outputs) {
        version.insert(output.number);
      }
      storage->OnVersionAppended(*f.NewVersion(version));
    } else {
      expected = Swapped(&f, expected, copies, /*back=*/true, &num_moved,
                         &bytes_moved);
      all_moved_back += num_moved;
    }
    storage->Close();
    ASSERT_EQ(commits, storage->committed());
    storage->Settle();
    CheckMap(&f, expected);
    if (HasFatalFailure()) {
      return;
    }
    // The job pins its inputs until it ends.
    std::set<uint64_t> droppable = f.DroppableFiles();
    for (const uint64_t number : inputs) {
      ASSERT_EQ(0u, droppable.count(number));
    }
    storage.reset();
    droppable = f.DroppableFiles();
    for (const uint64_t number : inputs) {
      ASSERT_EQ(f.LiveCount(number) == 0, droppable.count(number) > 0);
    }
  }
  // The histories covered all cases.
  ASSERT_GT(all_moved, 1000u);
  ASSERT_GT(all_stayed, 100u);
  ASSERT_GT(all_moved_back, 300u);
}

// ---- Notifications by AddressMapStore.

class BlobGcStorageVersionTest : public DBTestBase {
 protected:
  BlobGcStorageVersionTest()
      : DBTestBase("blob_gc_storage_test", /*env_do_fsync=*/false) {}
};

TEST_F(BlobGcStorageVersionTest, ClosedJobDoesNotCommit) {
  // Files are added to an installed Version, which no other thread may read.
  Options options = CurrentOptions();
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  Reopen(options);
  // The Version of a column family without blob files; no background job runs
  // in the DB.
  Version* const version =
      static_cast_with_check<ColumnFamilyHandleImpl>(db_->DefaultColumnFamily())
          ->cfd()
          ->current();
  VersionStorageInfo* const info = version->storage_info();
  ASSERT_TRUE(info->GetBlobFiles().empty());
  Family f;
  const Value a{"a", 1};
  const Value b{"b", 2};
  f.AddLive(11, {a});
  f.AddLive(12, {b});
  info->AddBlobFile(f.MetaOf(11));
  info->AddBlobFile(f.MetaOf(12));
  BlobGcStorage closed(f.blobs(), {11});
  BlobGcStorage pending(f.blobs(), {12});
  // Neither job has published anything yet.
  f.blobs()->OnVersionAppended(*version);
  ASSERT_OK(Publish(&closed, f.Copy(21, {{a}})));
  ASSERT_OK(Publish(&pending, f.Copy(22, {{b}})));
  f.blobs()->OnVersionAppended(*version);
  ASSERT_FALSE(closed.committed());
  ASSERT_FALSE(pending.committed());

  // Append a Version with the outputs of both jobs, after one of them was
  // closed.
  closed.Close();
  info->AddBlobFile(f.MetaOf(21));
  info->AddBlobFile(f.MetaOf(22));
  f.blobs()->OnVersionAppended(*version);
  ASSERT_FALSE(closed.committed());
  ASSERT_TRUE(pending.committed());
  ASSERT_EQ(State::kCopies, f.InfoOf(21).state);
  ASSERT_EQ(State::kLive, f.InfoOf(22).state);
  closed.Settle();
  pending.Close();
  pending.Settle();
  ASSERT_EQ(11u, f.FileOf(a));
  ASSERT_EQ(22u, f.FileOf(b));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
