//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/address_map_checkpoint.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/dbformat.h"
#include "env/mock_env.h"
#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/rate_limiter.h"
#include "test_util/strata/map_memory_charge_test_util.h"
#include "test_util/testharness.h"
#include "util/coding.h"
#include "util/crc32c.h"
#include "util/hash128.h"
#include "util/random.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Identity = AddressMapCheckpoint::Identity;
using State = BlobFileSlotTable::State;

// Returns a key of the part.
MapKeyHash KeyIn(uint32_t part, uint64_t within, uint32_t lo = 0) {
  return MapKeyHash{uint64_t{part} << 54 | within, lo};
}

MapKeyHash RandomKey(Random64* rnd) {
  return MapKeyHash{rnd->Next(), static_cast<uint32_t>(rnd->Next())};
}

AddressMap::Record RecordOf(const MapName& name, uint32_t offset, uint32_t size,
                            bool direct) {
  AddressMap::Record r;
  r.name = name;
  r.offset = offset;
  r.size = size;
  r.direct = direct;
  return r;
}

Identity TestIdentity() {
  Identity id;
  id.manifest_number = 9;
  id.manifest_size = 300;
  id.manifest_hash_low = 0x1111111111111111;
  id.manifest_hash_high = 0x2222222222222222;
  id.column_family_id = 3;
  id.hash_seed = 0x0102030405060708;
  return id;
}

// A map and its file table.
struct Pair {
  explicit Pair(uint64_t expected_entries = 0,
                MapMemoryCharge* charge = nullptr)
      : map(AddressMap::Options{expected_entries, charge}, &files) {}

  uint32_t AddFile(uint64_t number, uint64_t size = 1 << 20,
                   uint32_t path_id = 0,
                   CompressionType compression = kNoCompression) {
    return files.Add(number, path_id, compression, State::kLive, size);
  }
  void Insert(uint32_t slot, const MapName& name, uint32_t offset,
              uint32_t size, bool direct) {
    const AddressMap::Record r = RecordOf(name, offset, size, direct);
    ASSERT_OK(map.InsertBatch(slot, &r, 1));
  }

  BlobFileSlotTable files;
  AddressMap map;
};

// Returns everything that a checkpoint keeps, as text: files by number, entries
// by name. Two pairs are equivalent if their dumps are equal.
std::string Dump(const Pair& pair) {
  std::set<std::string> lines;
  char line[300];
  for (const BlobFileSlotTable::Info& f : pair.files.GetAll()) {
    if (f.state == State::kLive) {
      snprintf(line, sizeof(line),
               "file %020" PRIu64 " %" PRIu64 " %u %d: %" PRIu64 " %" PRIu64,
               f.number, f.size, f.path_id, static_cast<int>(f.compression),
               f.live_count, f.live_bytes);
      lines.insert(line);
    }
  }
  snprintf(line, sizeof(line), "lost %" PRIu64 " %" PRIu64,
           pair.files.LiveCount(BlobFileSlotTable::kLostSlot),
           pair.files.LiveBytes(BlobFileSlotTable::kLostSlot));
  lines.insert(line);
  for (uint32_t part = 0; part < AddressMap::kNumParts; ++part) {
    pair.map.ForEachInPart(part, [&](const AddressMap::Entry& e) {
      snprintf(line, sizeof(line),
               "%016" PRIx64 "%08x %" PRIu64 " %" PRIu64 " @%" PRIu64
               " %u %u mode %d",
               e.name.key.hi, e.name.key.lo, e.name.seq, e.name.birth,
               pair.files.Number(e.address.slot), e.address.offset,
               e.address.size, static_cast<int>(e.mode));
      EXPECT_TRUE(lines.insert(line).second) << line;
    });
  }
  std::string dump;
  for (const std::string& l : lines) {
    dump += l + "\n";
  }
  return dump;
}

// Builds images by the documented format with valid checksums, independently of
// the code under test. The contents may be wrong.
struct Image {
  struct Part {
    uint32_t number;
    std::vector<std::string> payloads;
    uint64_t count;
  };
  Identity identity = TestIdentity();
  uint64_t num_entries = 0;
  std::string files;
  uint64_t num_files = 0;
  std::vector<Part> parts;
  int shift = 0;  // shifts the end of the first part, in the index only

  void AddFile(uint64_t number, uint64_t live_count, uint64_t live_bytes) {
    PutVarint64(&files, number);
    PutVarint64(&files, number == 0 ? 0 : 1 << 20);
    files += std::string(2, '\0');
    PutVarint64(&files, live_count);
    PutVarint64(&files, live_bytes);
    ++num_files;
  }
  std::string Build() const {
    std::string out = "STRATMAP";
    PutFixed32(&out, 1);
    PutFixed32(&out, identity.column_family_id);
    PutFixed64(&out, identity.hash_seed);
    PutFixed64(&out, identity.manifest_number);
    PutFixed64(&out, identity.manifest_size);
    PutFixed64(&out, identity.manifest_hash_low);
    PutFixed64(&out, identity.manifest_hash_high);
    PutFixed64(&out, num_entries);
    const uint32_t crc = crc32c::Mask(crc32c::Value(out.data(), out.size()));
    PutFixed32(&out, crc);
    const auto block = [&](const std::string& payload) {
      std::string checked;
      PutFixed32(&checked, crc);
      PutFixed64(&checked, out.size());
      PutFixed32(&checked, static_cast<uint32_t>(payload.size()));
      checked += payload;
      out += checked.substr(12);
      PutFixed32(&out,
                 crc32c::Mask(crc32c::Value(checked.data(), checked.size())));
    };
    std::string index;
    size_t begin = out.size();
    block(files);
    PutVarint64(&index, out.size() - begin);
    PutVarint64(&index, num_files);
    for (const Part& p : parts) {
      begin = out.size();
      for (const std::string& payload : p.payloads) {
        block(payload);
      }
      PutVarint32(&index, p.number);
      PutVarint64(&index,
                  out.size() - begin + (&p == &parts[0] ? shift : -shift));
      PutVarint64(&index, p.count);
    }
    const uint64_t index_offset = out.size();
    block(index);
    PutFixed64(&out, index_offset);
    return out + "STRATMAP";
  }
};

// Returns an entry of an image. file: its position in the table of files.
std::string EntryBytes(uint8_t bits, uint64_t hash_delta, uint32_t lo,
                       uint64_t seq, uint32_t file, uint32_t offset,
                       uint32_t size, uint64_t birth = 0) {
  std::string out(1, static_cast<char>(bits));
  if ((bits & 2) == 0) {
    PutVarint64(&out, hash_delta);
    PutFixed32(&out, lo);
  }
  PutVarint64(&out, seq);
  PutVarint32(&out, file);
  PutFixed32(&out, offset);
  PutVarint32(&out, size);
  if ((bits & 12) == 8) {
    PutVarint64(&out, birth);
  }
  return out;
}

}  // namespace

class AddressMapCheckpointTest : public testing::Test {
 protected:
  AddressMapCheckpointTest()
      : mem_fs_(std::make_shared<MockFileSystem>(SystemClock::Default())) {
    UseFileSystem(mem_fs_.get(), "/db");
  }

  void UseFileSystem(FileSystem* fs, const std::string& dir) {
    io_.fs = fs;
    dir_ = dir;
    path_ = dir + "/000012.dbtmp";
    temp_path_ = dir + "/000013.dbtmp";
    ASSERT_OK(fs->CreateDirIfMissing(dir, IOOptions(), nullptr));
    ASSERT_OK(fs->NewDirectory(dir, IOOptions(), &directory_, nullptr));
  }
  void UseDisk() {
    UseFileSystem(FileSystem::Default().get(),
                  test::PerThreadDBPath("address_map_checkpoint_test"));
  }

  Status Write(const Pair& pair, const Identity& id = TestIdentity()) {
    return AddressMapCheckpoint::Write(io_, temp_path_, path_, directory_.get(),
                                       id, pair.map);
  }
  Status Load(Pair* pair, int threads = 1,
              const Identity& id = TestIdentity()) {
    return AddressMapCheckpoint::Load(io_, path_, id, threads, &pair->map);
  }
  // Loads the file that Write() wrote and compares the maps.
  void CheckLoadsAs(const Pair& written, int threads) {
    AddressMapCheckpoint::Header header;
    ASSERT_OK(AddressMapCheckpoint::ReadHeader(io_, path_, &header));
    ASSERT_TRUE(header.identity == TestIdentity());
    ASSERT_EQ(header.num_entries, written.map.NumEntries());
    Pair loaded(header.num_entries);
    ASSERT_OK(Load(&loaded, threads));
    ASSERT_OK(loaded.map.TEST_Check());
    ASSERT_EQ(Dump(loaded), Dump(written));
  }
  void CheckRoundTrip(const Pair& pair) {
    ASSERT_OK(Write(pair));
    ASSERT_FALSE(Exists(temp_path_));
    for (int threads : {1, 3}) {
      CheckLoadsAs(pair, threads);
    }
  }

  bool Exists(const std::string& path) {
    return io_.fs->FileExists(path, IOOptions(), nullptr).ok();
  }
  std::string Contents() {
    std::string s;
    EXPECT_OK(ReadFileToString(io_.fs, path_, &s));
    return s;
  }
  void SetContents(const std::string& s) {
    ASSERT_OK(WriteStringToFile(io_.fs, s, path_, false, IOOptions()));
  }
  Status LoadContents(const std::string& s) {
    SetContents(s);
    Pair pair;
    Status status = Load(&pair);
    if (status.ok() || status.IsExpired()) {
      EXPECT_OK(pair.map.TEST_Check());
    }
    if (status.IsExpired()) {
      EXPECT_EQ(pair.map.NumEntries(), 0u);
      EXPECT_TRUE(pair.files.GetAll().empty());
    }
    if (status.IsCorruption()) {
      const std::string text = status.ToString();
      EXPECT_NE(text.find(path_), std::string::npos) << text;
      EXPECT_NE(text.find("offset "), std::string::npos) << text;
    }
    return status;
  }

  // Makes the map of docs/formats.md.
  static void FillExample(Pair* pair) {
    const uint32_t f7 = pair->AddFile(7, 5000, 1, kLZ4Compression);
    const uint32_t f300 = pair->AddFile(300, 70000, 0, kNoCompression);
    pair->Insert(f7, MapName{KeyIn(1, 5, 0xa1a2a3a4), 20, 0}, 30, 1072, true);
    pair->Insert(f300, MapName{KeyIn(1, 5, 0xa1a2a3a4), 1020, 300}, 60000, 200,
                 false);
    pair->Insert(f300, MapName{KeyIn(1, 305, 0xb1b2b3b4), 25, 7}, 30, 100,
                 false);
    pair->Insert(BlobFileSlotTable::kLostSlot,
                 MapName{KeyIn(1023, 0x100000000, 1), 30, 0}, 0, 0, true);
  }

  std::shared_ptr<FileSystem> mem_fs_;
  AddressMapCheckpoint::Io io_;
  std::string dir_;
  std::string path_;
  std::string temp_path_;
  std::unique_ptr<FSDirectory> directory_;
};

// These are the bytes in docs/formats.md, line by line.
TEST_F(AddressMapCheckpointTest, ImageHasTheBytesOfTheFormatDescription) {
  Pair pair;
  FillExample(&pair);
  ASSERT_OK(Write(pair));
  const char* const lines[] = {
      "53 54 52 41 54 4d 41 50",
      "01 00 00 00",
      "03 00 00 00",
      "08 07 06 05 04 03 02 01",
      "09 00 00 00 00 00 00 00",
      "2c 01 00 00 00 00 00 00",
      "11 11 11 11 11 11 11 11",
      "22 22 22 22 22 22 22 22",
      "04 00 00 00 00 00 00 00",
      "62 2f 54 0a",
      "18 00 00 00",
      "00 00 00 00 01 00",
      "07 88 27 01 04",
      "01 b0 08",
      "ac 02 f0 a2 04 00 00",
      "02 ac 02",
      "1f df da e5",
      "28 00 00 00",
      "14",
      "00 05 a4 a3 a2 a1",
      "00 01",
      "1e 00 00 00 b0 08",
      "07",
      "e8 07 02",
      "60 ea 00 00 c8 01",
      "09 ac 02 b4 b3 b2 b1",
      "05 02",
      "1e 00 00 00 64",
      "07",
      "18 82 73 de",
      "12 00 00 00",
      "1e",
      "00 80 80 80 80 10",
      "01 00 00 00",
      "00 00",
      "00 00 00 00 00",
      "3e 6f e8 41",
      "09 00 00 00",
      "20 03",
      "01 30 03",
      "ff 07 1a 01",
      "8b 62 cc cc",
      "ae 00 00 00 00 00 00 00",
      "53 54 52 41 54 4d 41 50",
  };
  std::string expected;
  for (const char* line : lines) {
    expected += expected.empty() ? line : std::string(" ") + line;
  }
  std::string hex;
  for (const char c : Contents()) {
    char byte[8];
    snprintf(byte, sizeof(byte), "%s%02x", hex.empty() ? "" : " ",
             static_cast<unsigned int>(static_cast<uint8_t>(c)));
    hex += byte;
  }
  ASSERT_EQ(hex, expected);
  CheckLoadsAs(pair, 1);
}

TEST_F(AddressMapCheckpointTest, MapsWithoutEntriesSurviveARoundTrip) {
  CheckRoundTrip(Pair());
  Pair files_only;
  files_only.AddFile(5);
  files_only.AddFile(4);
  CheckRoundTrip(files_only);
}

TEST_F(AddressMapCheckpointTest, AllKindsOfEntriesSurviveARoundTrip) {
  Pair pair;
  std::vector<uint32_t> slots;
  // Slots and file numbers have different orders, and one slot is reused.
  for (uint64_t number : std::vector<uint64_t>{90, 20, 50, 5000000000}) {
    slots.push_back(pair.AddFile(number, number * 1000, number % 3,
                                 number % 2 == 0 ? kZSTD : kNoCompression));
  }
  ASSERT_TRUE(pair.files.Drop(slots[2]));
  ASSERT_EQ(pair.files.CollectDead().size(), 1u);
  ASSERT_TRUE(pair.files.Free(slots[2]));
  ASSERT_EQ(pair.AddFile(60), slots[2]);
  // Released and abandoned files have no entries and are not written.
  ASSERT_TRUE(pair.files.Drop(pair.AddFile(70)));
  ASSERT_TRUE(pair.files.Abandon(pair.files.Add(80, 0, kNoCompression)));

  const uint64_t births[] = {0, 20, 60, 1, ~uint64_t{0}};
  const SequenceNumber seqs[] = {0, 1, uint64_t{1} << 48, kMaxSequenceNumber};
  const uint32_t sizes[] = {33, 1072, (1 << 18) - 1, 1 << 18, ~uint32_t{0}};
  const uint32_t offsets[] = {0, 30, ~uint32_t{0}};
  std::vector<uint32_t> all_slots = slots;
  all_slots.push_back(BlobFileSlotTable::kLostSlot);
  uint64_t n = 0;
  for (uint64_t birth : births) {
    for (SequenceNumber seq : seqs) {
      for (uint32_t size : sizes) {
        for (uint32_t offset : offsets) {
          for (uint32_t slot : all_slots) {
            // The hashes are at both ends of their parts, and some differ only
            // in their low words. Keys of different parts differ in the other
            // bits as well, because a small map compares only these.
            const uint64_t rest = n / 30 * 5 + n % 5;
            const MapKeyHash key =
                KeyIn(static_cast<uint32_t>(n % 5 * 255),
                      n % 2 == 0 ? rest : (uint64_t{1} << 54) - 1 - rest,
                      n % 3 == 0 ? ~uint32_t{0} : static_cast<uint32_t>(n));
            pair.Insert(slot, MapName{key, seq, birth}, offset, size, false);
            ++n;
          }
        }
      }
    }
  }
  for (uint64_t i = 0; i < 3000; ++i) {
    // One key has more versions than fit into a block, and its direct entry is
    // in the middle.
    pair.Insert(slots[i % 4], MapName{KeyIn(7, 99, 1), 1000 + i, 0},
                static_cast<uint32_t>(i * 64), 64, i == 1500);
    pair.Insert(slots[1], MapName{KeyIn(7, 99, 1), 70000, i + 1},
                static_cast<uint32_t>(i), 300, false);
  }
  ASSERT_GT(pair.map.NumEntries(), 6000u);
  ASSERT_OK(pair.map.TEST_Check());
  CheckRoundTrip(pair);
}

// Maps that random operations have made survive a round trip. The image of the
// loaded map has the same bytes, whatever its slots and shards are.
TEST_F(AddressMapCheckpointTest, RandomMapsSurviveARoundTrip) {
  Random64 rnd(301);
  for (int round = 0; round < 30; ++round) {
    Pair pair;
    std::vector<uint32_t> slots;
    for (uint64_t number = 1; number <= 1 + rnd.Uniform(20); ++number) {
      slots.push_back(pair.AddFile(number * 7 % 23 + 1 + 23 * (number / 23)));
    }
    const uint64_t num_keys = 1 + rnd.Uniform(3000);
    std::vector<MapName> names;
    std::vector<MapKeyHash> keys;
    for (uint64_t i = 0; i < num_keys; ++i) {
      keys.push_back(RandomKey(&rnd));
      if (round % 3 == 0) {
        keys.back().hi >>= 10;  // all keys are in one part
      }
    }
    for (int step = 0; step < 6000; ++step) {
      const uint32_t slot = slots[rnd.Uniform(slots.size())];
      if (names.empty() || rnd.OneIn(2)) {
        MapName name{keys[rnd.Uniform(keys.size())], 1 + rnd.Uniform(1000000),
                     rnd.OneIn(3) ? 1 + rnd.Uniform(30) : 0};
        const AddressMap::Record r =
            RecordOf(name, static_cast<uint32_t>(rnd.Next()),
                     static_cast<uint32_t>(
                         1 + rnd.Uniform(rnd.OneIn(9) ? 1 << 30 : 999)),
                     rnd.OneIn(2));
        ASSERT_OK(pair.map.InsertBatch(slot, &r, 1));
        pair.map.CommitBatch(&r, 1, kMaxBirth);
        names.push_back(name);
        continue;
      }
      const MapName& name = names[rnd.Uniform(names.size())];
      switch (rnd.Uniform(4)) {
        case 0:
          pair.map.Remove(name);
          break;
        case 1:
          pair.map.Rename(name);
          break;
        case 2: {
          AddressMap::LeftEntries left;
          pair.map.RemoveHidden(name.key, /*from=*/0, name.seq, kMaxBirth,
                                &left);
          break;
        }
        default: {
          const AddressMap::Lookup found = pair.map.FindByName(name, false);
          if (found.found) {
            ASSERT_TRUE(pair.map.SwapAddress(
                name, found.entry.address,
                MapAddress{slot, static_cast<uint32_t>(rnd.Next()),
                           found.entry.address.size}));
          }
        }
      }
    }
    // An older direct record stays superseded until the newer one is committed.
    for (const MapName& name : names) {
      const AddressMap::Lookup top = pair.map.FindDirect(name.key, false);
      if (top.found) {
        const AddressMap::Record r = RecordOf(top.entry.name, 0, 0, true);
        pair.map.CommitBatch(&r, 1, kMaxBirth);
      }
    }
    CheckRoundTrip(pair);
    const std::string first = Contents();
    Pair loaded(rnd.Uniform(5000000));
    ASSERT_OK(Load(&loaded, 2));
    ASSERT_OK(Write(loaded));
    ASSERT_TRUE(Contents() == first);
  }
}

TEST_F(AddressMapCheckpointTest, ManyThreadsLoadTheSameMap) {
  constexpr uint64_t kEntries = 120000;
  Random64 rnd(1);
  Pair pair(kEntries);
  std::vector<uint32_t> slots;
  for (uint64_t number = 1; number <= 40; ++number) {
    slots.push_back(pair.AddFile(number));
  }
  for (uint64_t i = 0; i < kEntries; ++i) {
    // Some births need overflow cells, which shards share.
    pair.Insert(slots[i % slots.size()],
                MapName{RandomKey(&rnd), i, i % 10 == 0 ? i + 1 : 0},
                static_cast<uint32_t>(i), 1072, i % 4 != 0);
  }
  ASSERT_OK(Write(pair));
  const std::string dump = Dump(pair);
  for (int threads : {8, 2}) {
    // If no number of entries is expected, the map also moves to larger tables
    // during the load.
    Pair loaded(threads == 8 ? 0 : kEntries);
    ASSERT_OK(Load(&loaded, threads));
    ASSERT_OK(loaded.map.TEST_Check());
    ASSERT_TRUE(Dump(loaded) == dump);
  }

  // One of the threads meets a damaged block.
  std::string contents = Contents();
  contents[contents.size() / 2] ^= 1;
  SetContents(contents);
  Pair damaged(kEntries);
  Status s = Load(&damaged, 8);
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  // After a failed load, the caller can remove the partial entries from a table
  // of files that it keeps.
  std::vector<uint32_t> all = {BlobFileSlotTable::kLostSlot};
  for (const BlobFileSlotTable::Info& f : damaged.files.GetAll()) {
    all.push_back(f.slot);
  }
  damaged.map.Forget(all);
  ASSERT_EQ(damaged.map.NumEntries(), 0u);
  for (uint32_t slot : all) {
    ASSERT_EQ(damaged.files.LiveCount(slot), 0u);
    ASSERT_EQ(damaged.files.LiveBytes(slot), 0u);
  }
}

TEST_F(AddressMapCheckpointTest, RefusesToWriteUncommittedEntries) {
  Pair old;
  FillExample(&old);
  ASSERT_OK(Write(old));
  const std::string old_contents = Contents();

  const auto check_refused = [&](const std::function<void(Pair*)>& spoil) {
    Pair pair;
    FillExample(&pair);
    spoil(&pair);
    Status s = Write(pair);
    ASSERT_TRUE(s.IsAborted()) << s.ToString();
    ASSERT_EQ(Contents(), old_contents);
    ASSERT_FALSE(Exists(temp_path_));
  };
  check_refused([](Pair* p) { p->files.Add(400, 0, kNoCompression); });
  check_refused([](Pair* p) {
    p->files.Publish(p->files.Add(400, 0, kNoCompression), 1000);
  });
  // A direct entry supersedes another one, and both are in live files.
  const MapName top{KeyIn(1, 5, 0xa1a2a3a4), 50, 0};
  check_refused(
      [&](Pair* p) { p->Insert(p->files.Find(7), top, 2000, 50, true); });
  // Some entries are in files that are not live.
  check_refused([](Pair* p) { p->files.Drop(p->files.Find(300)); });
  check_refused([&](Pair* p) {
    const uint32_t slot = p->files.Add(400, 0, kNoCompression);
    p->Insert(slot, MapName{KeyIn(2, 2), 50, 0}, 2000, 50, true);
    p->files.Abandon(slot);
  });
  // A live count differs from the number of entries.
  check_refused([](Pair* p) { p->files.AddLive(p->files.Find(7), 1); });

  // The map is written once the entries are settled.
  Pair settled;
  FillExample(&settled);
  settled.Insert(settled.files.Find(7), top, 2000, 50, true);
  const AddressMap::Record r = RecordOf(top, 2000, 50, true);
  settled.map.CommitBatch(&r, 1, kMaxBirth);
  CheckRoundTrip(settled);
}

TEST_F(AddressMapCheckpointTest, ImageWithAnotherIdentityIsExpired) {
  Pair pair;
  FillExample(&pair);
  ASSERT_OK(Write(pair));
  const std::pair<const char*, std::function<void(Identity*)>> changes[] = {
      {"MANIFEST 9, not 10", [](Identity* i) { ++i->manifest_number; }},
      {"MANIFEST size 300, not 301", [](Identity* i) { ++i->manifest_size; }},
      {"MANIFEST hash", [](Identity* i) { ++i->manifest_hash_low; }},
      {"MANIFEST hash", [](Identity* i) { ++i->manifest_hash_high; }},
      {"column family 3, not 4", [](Identity* i) { ++i->column_family_id; }},
      {"hash seed", [](Identity* i) { ++i->hash_seed; }},
  };
  for (const auto& [text, change] : changes) {
    Identity id = TestIdentity();
    change(&id);
    Pair other;
    Status s = Load(&other, 1, id);
    ASSERT_TRUE(s.IsExpired()) << s.ToString();
    ASSERT_NE(s.ToString().find(text), std::string::npos) << s.ToString();
    ASSERT_EQ(other.map.NumEntries(), 0u);
    ASSERT_TRUE(other.files.GetAll().empty());
    // An image that has the changed identity is expired as well, so every field
    // is written.
    ASSERT_OK(Write(pair, id));
    s = Load(&other);
    ASSERT_TRUE(s.IsExpired()) << s.ToString();
    AddressMapCheckpoint::Header header;
    ASSERT_OK(AddressMapCheckpoint::ReadHeader(io_, path_, &header));
    ASSERT_TRUE(header.identity == id);
    ASSERT_OK(Load(&other, 1, id));
    ASSERT_OK(Write(pair));
  }
}

TEST_F(AddressMapCheckpointTest, FilesThatAreNoImageAreRefused) {
  Pair pair;
  FillExample(&pair);
  ASSERT_OK(Write(pair));
  const std::string good = Contents();
  ASSERT_TRUE(LoadContents("").IsExpired());
  ASSERT_TRUE(LoadContents("MANIFEST-000005\n").IsExpired());
  ASSERT_TRUE(LoadContents(std::string(100000, '\0')).IsExpired());
  std::string next_version = good;
  next_version[8] = 2;
  ASSERT_TRUE(LoadContents(next_version).IsExpired());
  ASSERT_TRUE(LoadContents(good + "x").IsCorruption());
  ASSERT_TRUE(LoadContents(good + good).IsCorruption());
  ASSERT_OK(LoadContents(good));

  ASSERT_OK(io_.fs->DeleteFile(path_, IOOptions(), nullptr));
  Pair none;
  Status s = Load(&none);
  ASSERT_FALSE(s.ok());
  ASSERT_FALSE(s.IsExpired());
  ASSERT_FALSE(s.IsCorruption());
}

TEST_F(AddressMapCheckpointTest, EachFlippedBitIsDetected) {
  Pair pair;
  FillExample(&pair);
  ASSERT_OK(Write(pair));
  const std::string good = Contents();
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1 << bit);
      const Status s = LoadContents(bad);
      // Magic number and version come before the checksum that covers them.
      ASSERT_TRUE(at < 12 ? s.IsExpired() : s.IsCorruption())
          << at << ": " << s.ToString();
    }
  }
}

TEST_F(AddressMapCheckpointTest, EachTruncationIsDetected) {
  Pair pair;
  FillExample(&pair);
  ASSERT_OK(Write(pair));
  const std::string good = Contents();
  for (size_t n = 0; n < good.size(); ++n) {
    const Status s = LoadContents(good.substr(0, n));
    ASSERT_TRUE(n < 8 ? s.IsExpired() : s.IsCorruption())
        << n << ": " << s.ToString();
    // The rest of the file is lost, but the file keeps its length.
    const Status zeros =
        LoadContents(good.substr(0, n) + std::string(good.size() - n, '\0'));
    ASSERT_TRUE(n < 9 ? zeros.IsExpired() : zeros.IsCorruption())
        << n << ": " << zeros.ToString();
  }
}

// Damage at random places of an image with several blocks in a section is
// detected.
TEST_F(AddressMapCheckpointTest, RandomDamageOfALargeImageIsDetected) {
  Random64 rnd(17);
  Pair pair;
  const uint32_t slot = pair.AddFile(7);
  for (uint64_t i = 0; i < 40000; ++i) {
    MapKeyHash key = RandomKey(&rnd);
    key.hi >>= 8;  // parts 0 to 3
    pair.Insert(slot, MapName{key, i, 0}, static_cast<uint32_t>(i), 1072, true);
  }
  ASSERT_OK(Write(pair));
  const std::string good = Contents();
  ASSERT_GT(good.size(), 800000u);
  for (int i = 0; i < 60; ++i) {
    std::string bad = good;
    const size_t at = 68 + rnd.Uniform(good.size() - 68);
    switch (i % 3) {
      case 0:
        bad[at] ^= static_cast<char>(1 + rnd.Uniform(255));
        break;
      case 1:
        bad.resize(at);
        break;
      default: {
        // Another piece of the file replaces this one.
        const size_t n = 1 + rnd.Uniform(100000);
        bad.replace(at, n, good.substr(rnd.Uniform(good.size()), n));
        if (bad == good) {
          continue;
        }
      }
    }
    Status s = LoadContents(bad);
    ASSERT_TRUE(s.IsCorruption()) << i << " " << at << ": " << s.ToString();
  }
}

// An image with valid checksums and wrong contents is corruption.
TEST_F(AddressMapCheckpointTest, WrongContentsWithValidChecksumsAreCorruption) {
  const std::string e1 = EntryBytes(0, 5, 1, 3, 1, 30, 100);
  const auto image = [&](const std::vector<std::string>& entries) {
    Image i;
    i.AddFile(0, 0, 0);
    i.AddFile(7, entries.size(), entries.size() * 100);
    i.num_entries = entries.size();
    std::string payload;
    PutVarint64(&payload, 1000);
    for (const std::string& e : entries) {
      payload += e;
    }
    i.parts.push_back(Image::Part{2, {payload}, entries.size()});
    return i;
  };
  int checked = 0;
  const auto check_bad = [&](const Image& i) {
    ++checked;
    Status s = LoadContents(i.Build());
    ASSERT_TRUE(s.IsCorruption()) << checked << ": " << s.ToString();
  };

  // The valid images show that the others fail for their own reasons.
  ASSERT_OK(LoadContents(image({e1}).Build()));
  // Hashes are deltas, so these are two keys.
  ASSERT_OK(LoadContents(image({e1, e1}).Build()));
  {
    // One key has versions in two blocks.
    Image i = image({e1, EntryBytes(3, 0, 0, 4, 1, 30, 100)});
    ASSERT_OK(LoadContents(i.Build()));
    i.parts[0].payloads.push_back(i.parts[0].payloads[0].substr(0, 2) +
                                  EntryBytes(1, 5, 1, 5, 1, 30, 100));
    ++i.parts[0].count;
    ++i.num_entries;
    i.files.clear();
    i.num_files = 0;
    i.AddFile(0, 0, 0);
    i.AddFile(7, 3, 300);
    ASSERT_OK(LoadContents(i.Build()));
    // The key has a second direct entry in the next block.
    i.parts[0].payloads[1] = i.parts[0].payloads[0].substr(0, 2) +
                             EntryBytes(0, 5, 1, 5, 1, 30, 100);
    check_bad(i);
  }

  // Wrong entries: unknown bits, an unknown kind of birth, no previous key, no
  // such file.
  check_bad(image({EntryBytes(16, 5, 1, 3, 1, 30, 100)}));
  check_bad(image({EntryBytes(12, 5, 1, 3, 1, 30, 100)}));
  check_bad(image({EntryBytes(2, 5, 1, 3, 1, 30, 100)}));
  check_bad(image({EntryBytes(0, 5, 1, 3, 2, 30, 100)}));
  check_bad(image({EntryBytes(0, 5, 1, 3, ~uint32_t{0}, 30, 100)}));
  // The sequence number is too large, without and with an overflow of the sum.
  check_bad(image({EntryBytes(0, 5, 1, kMaxSequenceNumber - 999, 1, 30, 100)}));
  check_bad(image({EntryBytes(0, 5, 1, ~uint64_t{0} - 999, 1, 30, 100)}));
  // The hash leaves the part, without and with an overflow of the sum.
  check_bad(image({EntryBytes(0, uint64_t{1} << 54, 1, 3, 1, 30, 100)}));
  check_bad(image({e1, EntryBytes(0, ~uint64_t{0}, 1, 3, 1, 30, 100)}));
  // Entries are not in order of sequence number, low word or birth; a name
  // occurs twice; a key has two direct entries.
  check_bad(image({e1, EntryBytes(3, 0, 0, 2, 1, 30, 100)}));
  check_bad(image({e1, EntryBytes(1, 0, 0, 4, 1, 30, 100)}));
  check_bad(image({EntryBytes(8, 5, 1, 3, 1, 30, 100, 9),
                   EntryBytes(11, 0, 0, 3, 1, 30, 100, 8)}));
  check_bad(image({e1, EntryBytes(3, 0, 0, 3, 1, 30, 100)}));
  check_bad(image({e1, EntryBytes(2, 0, 0, 4, 1, 30, 100)}));
  // A key has two direct entries, with a versioned one between them.
  check_bad(image({e1, EntryBytes(3, 0, 0, 4, 1, 30, 100),
                   EntryBytes(2, 0, 0, 5, 1, 30, 100)}));
  // The entry is truncated.
  for (size_t n = 1; n < e1.size(); ++n) {
    check_bad(image({e1.substr(0, n)}));
  }
  {
    Image i = image({e1});
    i.parts[0].payloads[0] = "\xff\xff\xff\xff\xff\xff\xff\xff\x7f";  // min seq
    check_bad(i);
    i.parts[0].payloads[0].clear();
    check_bad(i);
  }
  {
    // The block exceeds the maximum size. Half of it is valid.
    Image i = image(std::vector<std::string>(5200, e1));
    ASSERT_GT(i.parts[0].payloads[0].size(), size_t{64 << 10});
    check_bad(i);
    i = image(std::vector<std::string>(2600, e1));
    ASSERT_OK(LoadContents(i.Build()));
  }

  // Wrong counts: in the index, in the header, and of live records.
  for (const int wrong : {0, 1, 2, 3, 4, 5, 6, 7, 8}) {
    Image i = image({e1});
    switch (wrong) {
      case 0:
        i.parts[0].count = 2;
        break;
      case 1:
        i.parts[0].count = i.num_entries = 2;
        break;
      case 2:
        i.parts[0].count = i.num_entries = 0;
        break;
      case 3:
        i.num_entries = 2;
        break;
      case 4:
        i.parts[0].count = ~uint64_t{0};
        i.num_entries = ~uint64_t{0};
        break;
      case 5:
        ++i.num_files;
        break;
      case 6:
        --i.num_files;
        break;
      case 7:
        i.files.back() = 99;  // live bytes
        break;
      default:
        i.files[i.files.size() - 2] = 2;  // live count
    }
    check_bad(i);
  }

  // Wrong tables of files: order, a missing first record, truncated.
  for (const std::vector<uint64_t>& numbers :
       std::vector<std::vector<uint64_t>>{
           {}, {7}, {0, 0}, {0, 7, 7}, {0, 7, 6}}) {
    Image i;
    for (uint64_t number : numbers) {
      i.AddFile(number, 0, 0);
    }
    check_bad(i);
  }
  {
    Image i;
    i.AddFile(0, 0, 0);
    i.AddFile(7, 0, 0);
    ASSERT_OK(LoadContents(i.Build()));
    for (int n = 0; n < 8; ++n) {
      i.files.pop_back();
      check_bad(i);
    }
  }

  // Wrong parts: not in order, twice, out of range.
  for (const uint32_t number : {1u, 2u, 1024u, ~0u}) {
    Image i = image({e1});
    i.files.clear();
    i.num_files = 0;
    i.AddFile(0, 0, 0);
    i.AddFile(7, 2, 200);
    i.num_entries = 2;
    std::string other;
    PutVarint64(&other, 1000);
    other += EntryBytes(0, 6, 1, 3, 1, 30, 100);
    i.parts.push_back(Image::Part{number, {other}, 1});
    check_bad(i);
    i.parts[1].number = 3;
    ASSERT_OK(LoadContents(i.Build()));
    // Sections do not end at the end of a block.
    for (int shift : {-1, 1, -8, 8}) {
      i.shift = shift;
      check_bad(i);
    }
  }

  // Two whole blocks are swapped.
  {
    Image i = image({e1});
    i.files.clear();
    i.num_files = 0;
    i.AddFile(0, 0, 0);
    i.AddFile(7, 2, 200);
    i.num_entries = 2;
    i.parts.push_back(Image::Part{3, i.parts[0].payloads, 1});
    i.parts[1].payloads[0][3] = 6;  // the hash
    std::string contents = i.Build();
    ASSERT_OK(LoadContents(contents));
    const size_t n = i.parts[0].payloads[0].size() + 8;
    const size_t at = 68 + i.files.size() + 8;
    const std::string block = contents.substr(at, n);
    contents.erase(at, n);
    contents.insert(at + n, block);
    ASSERT_TRUE(LoadContents(contents).IsCorruption());
  }
}

namespace {

// Counts the operations that change the file system, and fails at one of them:
// either only that operation fails, or also all operations after it.
class StepFileSystem : public FileSystemWrapper {
 public:
  explicit StepFileSystem(const std::shared_ptr<FaultInjectionTestFS>& target)
      : FileSystemWrapper(target), fault_fs_(target.get()) {}
  const char* Name() const override { return "StepFileSystem"; }

  IOStatus Step(const char* what) {
    if (++steps_ == fail_at_) {
      failed_ = what;
      if (stops_) {
        fault_fs_->SetFilesystemActive(false, IOStatus::IOError("stopped"));
      }
      return IOStatus::IOError(what);
    }
    return IOStatus::OK();
  }

  class File : public FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<FSWritableFile>&& t, StepFileSystem* fs)
        : FSWritableFileOwnerWrapper(std::move(t)), fs_(fs) {}
    IOStatus Append(const Slice& data, const IOOptions& o,
                    IODebugContext* d) override {
      IOStatus s = fs_->Step("append");
      return s.ok() ? FSWritableFileOwnerWrapper::Append(data, o, d) : s;
    }
    IOStatus Append(const Slice& data, const IOOptions& o,
                    const DataVerificationInfo&, IODebugContext* d) override {
      return Append(data, o, d);
    }
    IOStatus Flush(const IOOptions& o, IODebugContext* d) override {
      IOStatus s = fs_->Step("flush");
      return s.ok() ? FSWritableFileOwnerWrapper::Flush(o, d) : s;
    }
    IOStatus Sync(const IOOptions& o, IODebugContext* d) override {
      IOStatus s = fs_->Step("sync");
      return s.ok() ? FSWritableFileOwnerWrapper::Sync(o, d) : s;
    }
    IOStatus Fsync(const IOOptions& o, IODebugContext* d) override {
      ++fs_->fsyncs_;
      IOStatus s = fs_->Step("sync");
      return s.ok() ? FSWritableFileOwnerWrapper::Fsync(o, d) : s;
    }
    IOStatus Close(const IOOptions& o, IODebugContext* d) override {
      IOStatus s = fs_->Step("close");
      IOStatus closed = FSWritableFileOwnerWrapper::Close(o, d);
      return s.ok() ? closed : s;
    }

   private:
    StepFileSystem* const fs_;
  };

  class Directory : public FSDirectoryWrapper {
   public:
    Directory(std::unique_ptr<FSDirectory>&& t, StepFileSystem* fs)
        : FSDirectoryWrapper(std::move(t)), fs_(fs) {}
    IOStatus FsyncWithDirOptions(const IOOptions& o, IODebugContext* d,
                                 const DirFsyncOptions& f) override {
      fs_->renamed_ = f.renamed_new_name;
      IOStatus s = fs_->Step("directory sync");
      return s.ok() ? FSDirectoryWrapper::FsyncWithDirOptions(o, d, f) : s;
    }

   private:
    StepFileSystem* const fs_;
  };

  IOStatus NewWritableFile(const std::string& f, const FileOptions& o,
                           std::unique_ptr<FSWritableFile>* r,
                           IODebugContext* d) override {
    IOStatus s = Step("create");
    if (s.ok()) {
      s = target()->NewWritableFile(f, o, r, d);
    }
    if (s.ok()) {
      *r = std::make_unique<File>(std::move(*r), this);
    }
    return s;
  }
  IOStatus NewDirectory(const std::string& f, const IOOptions& o,
                        std::unique_ptr<FSDirectory>* r,
                        IODebugContext* d) override {
    IOStatus s = target()->NewDirectory(f, o, r, d);
    if (s.ok()) {
      *r = std::make_unique<Directory>(std::move(*r), this);
    }
    return s;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& o, IODebugContext* d) override {
    IOStatus s = Step("rename");
    return s.ok() ? target()->RenameFile(from, to, o, d) : s;
  }

  FaultInjectionTestFS* const fault_fs_;
  int steps_ = 0;
  int fail_at_ = 0;
  bool stops_ = false;
  std::string failed_;
  std::string renamed_;
  int fsyncs_ = 0;
};

}  // namespace

// After an error or a power failure at any operation, either the old or the new
// image is complete.
TEST_F(AddressMapCheckpointTest, FailureLeavesTheOldOrTheNewImage) {
  Identity new_id = TestIdentity();
  ++new_id.manifest_number;
  Pair old_pair;
  FillExample(&old_pair);
  Pair new_pair;
  FillExample(&new_pair);
  new_pair.AddFile(1000);

  for (const bool stops : {false, true}) {
    std::set<std::string> failed;
    bool done = false;
    for (int fail_at = 1; !done; ++fail_at) {
      auto fault_fs = std::make_shared<FaultInjectionTestFS>(
          std::make_shared<MockFileSystem>(SystemClock::Default()));
      auto fs = std::make_shared<StepFileSystem>(fault_fs);
      UseFileSystem(fs.get(), "/db");
      ASSERT_OK(Write(old_pair));
      ASSERT_EQ(fs->renamed_, path_);
      fs->steps_ = 0;
      fs->fail_at_ = fail_at;
      fs->stops_ = stops;

      Status s = Write(new_pair, new_id);
      done = fs->failed_.empty();
      ASSERT_EQ(s.ok(), done) << s.ToString();
      ASSERT_TRUE(done || s.IsIOError()) << s.ToString();
      failed.insert(fs->failed_);
      fs->fail_at_ = 0;
      if (stops || done) {
        // The machine restarts with the data that had reached the disk.
        ASSERT_OK(fault_fs->DropUnsyncedFileData());
        fault_fs->SetFilesystemActive(true);
        ASSERT_OK(
            fault_fs->DeleteFilesCreatedAfterLastDirSync(IOOptions(), nullptr));
        fault_fs->ResetState();
      } else {
        ASSERT_FALSE(Exists(temp_path_)) << fs->failed_;
      }

      const bool renamed = done || fs->failed_ == "directory sync";
      Pair as_old;
      Status old_status = Load(&as_old);
      Pair as_new;
      Status new_status = Load(&as_new, 1, new_id);
      if (done || (renamed && !stops)) {
        ASSERT_OK(new_status);
        ASSERT_EQ(Dump(as_new), Dump(new_pair));
        ASSERT_TRUE(old_status.IsExpired());
      } else {
        ASSERT_OK(old_status) << fs->failed_;
        ASSERT_EQ(Dump(as_old), Dump(old_pair));
        ASSERT_TRUE(new_status.IsExpired());
      }
      // The next write may use the same name for its temporary file.
      ASSERT_OK(Write(new_pair, new_id));
      directory_.reset();
    }
    for (const char* what : {"create", "append", "flush", "sync", "close",
                             "rename", "directory sync"}) {
      ASSERT_EQ(failed.count(what), 1u) << what;
    }
  }
}

// If the process dies between the sync of the temporary file and its renaming,
// both files exist, and each is a complete image with its own identity.
TEST_F(AddressMapCheckpointTest, DeathBeforeRenameLeavesBothImages) {
  class NoRename : public FileSystemWrapper {
   public:
    using FileSystemWrapper::FileSystemWrapper;
    const char* Name() const override { return "NoRename"; }
    IOStatus RenameFile(const std::string&, const std::string&,
                        const IOOptions&, IODebugContext*) override {
      return IOStatus::IOError("dead");
    }
    IOStatus DeleteFile(const std::string&, const IOOptions&,
                        IODebugContext*) override {
      return IOStatus::IOError("dead");
    }
  };
  Pair old_pair;
  FillExample(&old_pair);
  ASSERT_OK(Write(old_pair));
  const std::string old_contents = Contents();
  Pair new_pair;
  new_pair.AddFile(1000);
  Identity new_id = TestIdentity();
  ++new_id.manifest_hash_high;
  NoRename dying(mem_fs_);
  io_.fs = &dying;
  ASSERT_TRUE(Write(new_pair, new_id).IsIOError());
  io_.fs = mem_fs_.get();

  ASSERT_EQ(Contents(), old_contents);
  CheckLoadsAs(old_pair, 1);
  Pair loaded;
  ASSERT_OK(
      AddressMapCheckpoint::Load(io_, temp_path_, new_id, 1, &loaded.map));
  ASSERT_EQ(Dump(loaded), Dump(new_pair));
}

TEST_F(AddressMapCheckpointTest, ReadErrorFailsTheLoad) {
  class FailingReads : public FileSystemWrapper {
   public:
    using FileSystemWrapper::FileSystemWrapper;
    const char* Name() const override { return "FailingReads"; }
    struct File : public FSRandomAccessFileOwnerWrapper {
      File(std::unique_ptr<FSRandomAccessFile>&& t, FailingReads* fs)
          : FSRandomAccessFileOwnerWrapper(std::move(t)), fs_(fs) {}
      IOStatus Read(uint64_t offset, size_t n, const IOOptions& o, Slice* r,
                    char* scratch, IODebugContext* d) const override {
        if (++fs_->reads_ == fs_->fail_at_) {
          return IOStatus::IOError("failing read");
        }
        return FSRandomAccessFileOwnerWrapper::Read(offset, n, o, r, scratch,
                                                    d);
      }
      FailingReads* const fs_;
    };
    IOStatus NewRandomAccessFile(const std::string& f, const FileOptions& o,
                                 std::unique_ptr<FSRandomAccessFile>* r,
                                 IODebugContext* d) override {
      IOStatus s = target()->NewRandomAccessFile(f, o, r, d);
      if (s.ok()) {
        *r = std::make_unique<File>(std::move(*r), this);
      }
      return s;
    }
    int reads_ = 0;
    int fail_at_ = 0;
  };
  Pair pair;
  FillExample(&pair);
  ASSERT_OK(Write(pair));
  FailingReads failing(mem_fs_);
  io_.fs = &failing;
  // The reads are of the header, the footer, the index, the files and two
  // sections.
  for (int fail_at = 1; fail_at <= 6; ++fail_at) {
    failing.reads_ = 0;
    failing.fail_at_ = fail_at;
    Pair loaded;
    Status s = Load(&loaded);
    ASSERT_TRUE(s.IsIOError()) << fail_at << ": " << s.ToString();
  }
  failing.fail_at_ = 0;
  CheckLoadsAs(pair, 1);
}

TEST_F(AddressMapCheckpointTest, LoadFailsAtTheMemoryLimit) {
  Pair pair;
  const uint32_t slot = pair.AddFile(7);
  Random64 rnd(5);
  for (uint64_t i = 0; i < 50000; ++i) {
    pair.Insert(slot, MapName{RandomKey(&rnd), i, 0}, 0, 64, true);
  }
  ASSERT_OK(Write(pair));
  TestMapCharge charge;
  for (size_t bytes : {size_t{0}, size_t{1} << 20}) {
    charge.limit = bytes;
    Pair loaded(50000, &charge);
    Status s = Load(&loaded, 4);
    ASSERT_TRUE(s.IsMemoryLimit()) << s.ToString();
  }
  charge.limit = ~size_t{0};
  Pair loaded(50000, &charge);
  ASSERT_OK(Load(&loaded, 4));
  ASSERT_TRUE(Dump(loaded) == Dump(pair));
}

TEST_F(AddressMapCheckpointTest, IdentityHasSizeAndHashOfTheManifest) {
  UseDisk();
  Random rnd(3);
  const std::string manifest = dir_ + "/MANIFEST-000009";
  for (size_t size : {0, 1, 1000, 512 << 10, (512 << 10) + 1, 3000000}) {
    std::string contents = rnd.RandomString(static_cast<int>(size));
    for (int change = 0; change < 2; ++change) {
      ASSERT_OK(
          WriteStringToFile(io_.fs, contents, manifest, false, IOOptions()));
      Identity id = TestIdentity();
      ASSERT_OK(AddressMapCheckpoint::HashManifest(io_, manifest, &id));
      const Unsigned128 hash = Hash128(contents.data(), contents.size());
      Identity expected = TestIdentity();
      expected.manifest_size = size;
      expected.manifest_hash_low = Lower64of128(hash);
      expected.manifest_hash_high = Upper64of128(hash);
      ASSERT_TRUE(id == expected) << size;
      if (size > 0) {
        contents[rnd.Uniform(static_cast<int>(size))] ^= 1;
      }
    }
  }
  ASSERT_OK(io_.fs->DeleteFile(manifest, IOOptions(), nullptr));
  Identity id;
  ASSERT_TRUE(
      AddressMapCheckpoint::HashManifest(io_, manifest, &id).IsIOError());
}

// The caller's I/O options reach the file system in each call, and the rate
// limiter is charged for reads and writes.
TEST_F(AddressMapCheckpointTest, IoOptionsAndRateLimiterAreUsed) {
  class Watch : public FileSystemWrapper {
   public:
    using FileSystemWrapper::FileSystemWrapper;
    const char* Name() const override { return "Watch"; }
    void See(const IOOptions& o) const {
      ++seen_;
      good_ += o.io_activity == Env::IOActivity::kDBOpen &&
               o.rate_limiter_priority == Env::IO_HIGH;
    }
    struct Writable : public FSWritableFileOwnerWrapper {
      Writable(std::unique_ptr<FSWritableFile>&& t, Watch* fs)
          : FSWritableFileOwnerWrapper(std::move(t)), fs_(fs) {}
      using FSWritableFileOwnerWrapper::Append;
      IOStatus Append(const Slice& data, const IOOptions& o,
                      IODebugContext* d) override {
        fs_->See(o);
        return FSWritableFileOwnerWrapper::Append(data, o, d);
      }
      IOStatus Sync(const IOOptions& o, IODebugContext* d) override {
        fs_->See(o);
        return FSWritableFileOwnerWrapper::Sync(o, d);
      }
      IOStatus Fsync(const IOOptions& o, IODebugContext* d) override {
        ++fs_->fsyncs_;
        return Sync(o, d);
      }
      Watch* const fs_;
    };
    struct Readable : public FSRandomAccessFileOwnerWrapper {
      Readable(std::unique_ptr<FSRandomAccessFile>&& t, Watch* fs)
          : FSRandomAccessFileOwnerWrapper(std::move(t)), fs_(fs) {}
      IOStatus Read(uint64_t offset, size_t n, const IOOptions& o, Slice* r,
                    char* scratch, IODebugContext* d) const override {
        fs_->See(o);
        return FSRandomAccessFileOwnerWrapper::Read(offset, n, o, r, scratch,
                                                    d);
      }
      Watch* const fs_;
    };
    IOStatus NewWritableFile(const std::string& f, const FileOptions& o,
                             std::unique_ptr<FSWritableFile>* r,
                             IODebugContext* d) override {
      See(o.io_options);
      IOStatus s = target()->NewWritableFile(f, o, r, d);
      *r = std::make_unique<Writable>(std::move(*r), this);
      return s;
    }
    IOStatus NewRandomAccessFile(const std::string& f, const FileOptions& o,
                                 std::unique_ptr<FSRandomAccessFile>* r,
                                 IODebugContext* d) override {
      See(o.io_options);
      IOStatus s = target()->NewRandomAccessFile(f, o, r, d);
      *r = std::make_unique<Readable>(std::move(*r), this);
      return s;
    }
    IOStatus RenameFile(const std::string& from, const std::string& to,
                        const IOOptions& o, IODebugContext* d) override {
      See(o);
      return target()->RenameFile(from, to, o, d);
    }
    mutable int seen_ = 0;
    mutable int good_ = 0;
    int fsyncs_ = 0;
  };
  UseDisk();
  Watch watch(FileSystem::Default());
  io_.fs = &watch;
  io_.io_options.io_activity = Env::IOActivity::kDBOpen;
  io_.io_options.rate_limiter_priority = Env::IO_HIGH;
  std::unique_ptr<RateLimiter> limiter(NewGenericRateLimiter(
      int64_t{1} << 40, 100 * 1000, 10, RateLimiter::Mode::kAllIo));
  io_.file_options.rate_limiter = limiter.get();
  const auto charged = [&] {
    return limiter->GetTotalBytesThrough(Env::IO_HIGH);
  };

  Pair pair;
  FillExample(&pair);
  ASSERT_OK(Write(pair));
  ASSERT_EQ(watch.fsyncs_, 0);
  const int64_t size = static_cast<int64_t>(Contents().size());
  ASSERT_EQ(charged(), size);
  ASSERT_GE(watch.seen_, 4);
  CheckLoadsAs(pair, 1);
  ASSERT_GE(charged(), 2 * size);
  ASSERT_EQ(watch.good_, watch.seen_);
  const int64_t before = charged();
  Identity id;
  ASSERT_OK(AddressMapCheckpoint::HashManifest(io_, path_, &id));
  ASSERT_GE(charged(), before + size);
  io_.use_fsync = true;
  ASSERT_OK(Write(pair));
  ASSERT_EQ(watch.fsyncs_, 1);
}

TEST_F(AddressMapCheckpointTest, DirectAndMappedReadsLoadTheSameMap) {
  UseDisk();
  Random64 rnd(8);
  Pair pair;
  const uint32_t slot = pair.AddFile(7);
  for (uint64_t i = 0; i < 60000; ++i) {
    MapKeyHash key = RandomKey(&rnd);
    key.hi >>= 9;  // a section needs more than one read
    pair.Insert(slot, MapName{key, i, 0}, static_cast<uint32_t>(i), 1072, true);
  }
  CheckRoundTrip(pair);
  io_.file_options.use_mmap_reads = true;
  CheckRoundTrip(pair);
  io_.file_options.use_mmap_reads = false;
  io_.file_options.use_direct_reads = true;
  io_.file_options.use_direct_writes = true;
  Status s = Write(pair);
  if (!s.ok()) {
    // This file system has no O_DIRECT.
    ASSERT_TRUE(s.IsInvalidArgument() || s.IsIOError()) << s.ToString();
    return;
  }
  CheckRoundTrip(pair);
  const std::string manifest = dir_ + "/MANIFEST-000009";
  const std::string contents(1234567, 'm');
  ASSERT_OK(WriteStringToFile(io_.fs, contents, manifest, false, IOOptions()));
  Identity id;
  ASSERT_OK(AddressMapCheckpoint::HashManifest(io_, manifest, &id));
  ASSERT_EQ(id.manifest_size, contents.size());
  const Unsigned128 hash = Hash128(contents.data(), contents.size());
  ASSERT_EQ(id.manifest_hash_low, Lower64of128(hash));
}

TEST_F(AddressMapCheckpointTest, ImageTakesLessThan25BytesPerEntry) {
  UseDisk();
  const char* const env = getenv("ADDRESS_MAP_TEST_ENTRIES");
  const uint64_t entries =
      env != nullptr ? strtoull(env, nullptr, 10) : 1000000;
  Random64 rnd(9);
  Pair pair(entries);
  std::vector<uint32_t> slots;
  for (uint64_t number = 100; number < 140; ++number) {
    slots.push_back(pair.AddFile(number, 256 << 20));
  }
  for (uint64_t i = 0; i < entries; ++i) {
    pair.Insert(slots[i % slots.size()],
                MapName{RandomKey(&rnd), 1 + rnd.Uniform(4 * entries), 0},
                static_cast<uint32_t>(rnd.Uniform(256 << 20)), 1072, true);
  }
  const auto seconds = [] {
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  const double start = seconds();
  ASSERT_OK(Write(pair));
  const double written = seconds();
  Pair loaded(entries);
  ASSERT_OK(Load(&loaded, 2));
  const double end = seconds();
  ASSERT_EQ(loaded.map.NumEntries(), entries);
  uint64_t size = 0;
  ASSERT_OK(io_.fs->GetFileSize(path_, IOOptions(), &size, nullptr));
  const double per_entry =
      static_cast<double>(size) / static_cast<double>(entries);
  fprintf(stderr,
          "%" PRIu64
          " entries: %.2f bytes per entry; %.0f ns to write, %.0f "
          "ns to load with two threads\n",
          entries, per_entry,
          (written - start) * 1e9 / static_cast<double>(entries),
          (end - written) * 1e9 / static_cast<double>(entries));
  ASSERT_LT(per_entry, 25.0);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
