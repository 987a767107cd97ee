// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/address_map.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/strata/map_memory_charge_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using State = BlobFileSlotTable::State;

MapKeyHash KeyOf(uint64_t i) {
  return MapKeyHash::Of(Slice(reinterpret_cast<const char*>(&i), sizeof(i)),
                        4711);
}

AddressMap::Record RecordOf(const MapKeyHash& key, SequenceNumber seq,
                            uint64_t birth, uint32_t offset, uint32_t size,
                            bool direct) {
  AddressMap::Record r;
  r.name = MapName{key, seq, birth};
  r.offset = offset;
  r.size = size;
  r.direct = direct;
  return r;
}

// A simple model of the map's contract.
class Model {
 public:
  using Id = std::pair<SequenceNumber, uint64_t>;  // seq, birth
  struct PerKey {
    std::map<Id, MapAddress, std::greater<Id>> chain;  // newest first
    std::map<Id, MapAddress> versioned;
  };

  void Insert(uint32_t slot, const AddressMap::Record& r) {
    PerKey& k = keys_[r.name.key];
    const Id id(r.name.seq, r.name.birth);
    k.chain.erase(id);
    k.versioned.erase(id);
    const MapAddress a{slot, r.offset, r.size};
    if (r.direct) {
      k.chain[id] = a;
    } else {
      k.versioned[id] = a;
    }
  }
  bool RemoveIfIn(const MapName& n, uint32_t slot) {
    PerKey& k = keys_[n.key];
    const Id id(n.seq, n.birth);
    auto c = k.chain.find(id);
    if (c != k.chain.end() && c->second.slot == slot) {
      k.chain.erase(c);
      return true;
    }
    auto v = k.versioned.find(id);
    if (v != k.versioned.end() && v->second.slot == slot) {
      k.versioned.erase(v);
      return true;
    }
    return false;
  }
  void Commit(const AddressMap::Record& r, const BlobFileSlotTable& files,
              uint64_t born_before) {
    if (r.direct) {
      PerKey& k = keys_[r.name.key];
      // Keeps the chain down to the first committed entry, which may be newer
      // than r.
      auto it = k.chain.begin();
      while (it != k.chain.end() && it->first >= Id(r.name.seq, r.name.birth)) {
        const uint32_t slot = it->second.slot;
        ++it;
        if (!files.IsPending(slot)) {
          break;
        }
      }
      while (it != k.chain.end()) {
        it = it->first.second < born_before ? k.chain.erase(it) : std::next(it);
      }
    }
  }
  AddressMap::RenameResult Rename(const MapName& n) {
    PerKey& k = keys_[n.key];
    const Id id(n.seq, n.birth);
    if (k.chain.count(id) > 0) {
      return AddressMap::RenameResult::kAlreadyDirect;
    }
    auto v = k.versioned.find(id);
    if (v == k.versioned.end()) {
      return AddressMap::RenameResult::kGone;
    }
    if (!k.chain.empty() && k.chain.begin()->first > id) {
      return AddressMap::RenameResult::kNewerDirect;
    }
    k.chain.clear();
    k.chain[id] = v->second;
    k.versioned.erase(v);
    return AddressMap::RenameResult::kRenamed;
  }
  bool Demote(const MapName& n) {
    PerKey& k = keys_[n.key];
    const Id id(n.seq, n.birth);
    auto c = k.chain.find(id);
    if (c == k.chain.end()) {
      return k.versioned.count(id) > 0;
    }
    k.versioned[id] = c->second;
    k.chain.erase(c, k.chain.end());
    return true;
  }
  bool Remove(const MapName& n) {
    PerKey& k = keys_[n.key];
    const Id id(n.seq, n.birth);
    auto c = k.chain.find(id);
    if (c != k.chain.end()) {
      k.chain.erase(c, k.chain.end());
      return true;
    }
    return k.versioned.erase(id) > 0;
  }
  bool HasBelow(const MapKeyHash& key, SequenceNumber seq) {
    const PerKey& k = keys_[key];
    return (!k.chain.empty() && k.chain.rbegin()->first.first < seq) ||
           (!k.versioned.empty() && k.versioned.begin()->first.first < seq);
  }
  size_t RemoveHidden(const MapKeyHash& key, SequenceNumber from,
                      SequenceNumber below, uint64_t born_before,
                      AddressMap::LeftEntries* left) {
    PerKey& k = keys_[key];
    *left = AddressMap::LeftEntries();
    const auto is_hidden = [&](const auto& e) {
      const auto [seq, birth] = e.first;
      if (birth >= born_before) {
        return false;
      }
      if (seq < from) {
        left->below = std::max(left->below, seq + 1);
        left->born_before = std::max(left->born_before, birth + 1);
      }
      return seq >= from && seq < below;
    };
    return std::erase_if(k.chain, is_hidden) +
           std::erase_if(k.versioned, is_hidden);
  }
  bool Swap(const MapName& n, const MapAddress& from, const MapAddress& to) {
    MapAddress* a = Find(n);
    if (a == nullptr || !(*a == from)) {
      return false;
    }
    *a = to;
    return true;
  }
  size_t Forget(const std::vector<uint32_t>& slots) {
    const std::set<uint32_t> gone(slots.begin(), slots.end());
    size_t n = 0;
    for (auto& [key, k] : keys_) {
      n += std::erase_if(
          k.chain, [&](const auto& e) { return gone.count(e.second.slot); });
      n += std::erase_if(k.versioned, [&](const auto& e) {
        return gone.count(e.second.slot);
      });
    }
    return n;
  }
  MapAddress* Find(const MapName& n) {
    PerKey& k = keys_[n.key];
    const Id id(n.seq, n.birth);
    auto c = k.chain.find(id);
    if (c != k.chain.end()) {
      return &c->second;
    }
    auto v = k.versioned.find(id);
    return v == k.versioned.end() ? nullptr : &v->second;
  }
  std::map<MapKeyHash, PerKey>& keys() { return keys_; }

 private:
  std::map<MapKeyHash, PerKey> keys_;
};

// Compares the results of all queries.
void Compare(AddressMap* map, Model* model, BlobFileSlotTable* files) {
  ASSERT_OK(map->TEST_Check());
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> live;
  using Row = std::tuple<MapKeyHash, SequenceNumber, uint64_t, uint32_t,
                         uint32_t, uint32_t, MapMode>;
  std::set<Row> want;
  for (auto& [key, k] : model->keys()) {
    SequenceNumber seq = 0;
    ASSERT_EQ(!k.chain.empty(), map->DirectSeq(key, &seq));
    AddressMap::Lookup durable = map->FindDurableDirect(key, true);
    const Model::Id* want_durable = nullptr;
    bool first = true;
    for (auto& [id, a] : k.chain) {
      if (first) {
        ASSERT_EQ(id.first, seq);
        AddressMap::Lookup l = map->FindDirect(key, true);
        ASSERT_TRUE(l.found && l.pin.pinned());
        ASSERT_EQ(a.slot, l.pin.slot());
        ASSERT_TRUE(l.entry.address == a);
        ASSERT_EQ(id.second, l.entry.name.birth);
      }
      if (want_durable == nullptr && !files->IsPending(a.slot)) {
        want_durable = &id;
      }
      want.insert(Row(key, id.first, id.second, a.slot, a.offset, a.size,
                      first ? MapMode::kDirect : MapMode::kSuperseded));
      first = false;
    }
    ASSERT_EQ(want_durable != nullptr, durable.found);
    if (durable.found) {
      ASSERT_EQ(want_durable->first, durable.entry.name.seq);
      ASSERT_EQ(want_durable->second, durable.entry.name.birth);
    }
    for (auto& [id, a] : k.versioned) {
      want.insert(Row(key, id.first, id.second, a.slot, a.offset, a.size,
                      MapMode::kVersioned));
    }
  }
  for (const Row& row : want) {
    const MapName name{std::get<0>(row), std::get<1>(row), std::get<2>(row)};
    AddressMap::Lookup l = map->FindByName(name, true);
    ASSERT_TRUE(l.found);
    ASSERT_EQ(std::get<3>(row), l.entry.address.slot);
    ASSERT_EQ(std::get<4>(row), l.entry.address.offset);
    ASSERT_EQ(std::get<5>(row), l.entry.address.size);
    ASSERT_EQ(std::get<6>(row), l.entry.mode);
    const auto& chain = model->keys()[name.key].chain;
    ASSERT_EQ(!chain.empty(), l.has_direct);
    if (l.has_direct) {
      ASSERT_EQ(chain.begin()->first.first, l.direct_seq);
    }
    MapName other = name;
    other.birth += 1000000;
    ASSERT_FALSE(map->FindByName(other, false).found);
    auto& file = live[std::get<3>(row)];
    ++file.first;
    file.second += std::get<5>(row);
  }
  std::set<Row> got;
  for (uint32_t part = 0; part < AddressMap::kNumParts; ++part) {
    map->ForEachInPart(part, [&](const AddressMap::Entry& e) {
      ASSERT_EQ(part, e.name.key.hi >> 54);
      ASSERT_TRUE(
          got.insert(Row(e.name.key, e.name.seq, e.name.birth, e.address.slot,
                         e.address.offset, e.address.size, e.mode))
              .second);
    });
  }
  ASSERT_TRUE(got == want);
  ASSERT_EQ(want.size(), map->NumEntries());
  for (const BlobFileSlotTable::Info& f : files->GetAll()) {
    ASSERT_EQ(live[f.slot].first, f.live_count);
    ASSERT_EQ(live[f.slot].second, f.live_bytes);
    ASSERT_EQ(0u, f.pins);
  }
}

}  // namespace

class AddressMapTest : public testing::Test {
 protected:
  // Runs a random history over few keys, so that operations often meet on the
  // same key. hash(i) returns the hash of key i.
  void RunHistory(uint32_t seed, uint64_t num_keys,
                  const std::function<MapKeyHash(uint64_t)>& hash, int steps) {
    Random rnd(seed);
    BlobFileSlotTable files;
    TestMapCharge charge;
    AddressMap::Options options;
    options.charge = &charge;
    {
      AddressMap map(options, &files);
      Model model;
      struct Batch {
        uint32_t slot;
        std::vector<AddressMap::Record> records;
      };
      std::vector<Batch> pending;
      std::vector<uint32_t> slots;
      uint64_t next_file = 10;
      const auto new_file = [&] {
        slots.push_back(files.Add(next_file++, 0, kNoCompression));
        return slots.back();
      };
      new_file();
      const auto random_limit = [&] {
        return rnd.OneIn(2)
                   ? kMaxBirth
                   : uint64_t{rnd.Uniform(static_cast<int>(next_file + 2))};
      };
      const auto random_name = [&] {
        // Usually this is a name that exists.
        MapName n{hash(rnd.Uniform(static_cast<int>(num_keys))),
                  1 + rnd.Uniform(40), 0};
        const auto& k = model.keys()[n.key];
        if (!k.chain.empty() && rnd.OneIn(2)) {
          auto it = k.chain.begin();
          std::advance(it, rnd.Uniform(static_cast<int>(k.chain.size())));
          n.seq = it->first.first;
          n.birth = it->first.second;
        } else if (!k.versioned.empty()) {
          auto it = k.versioned.begin();
          std::advance(it, rnd.Uniform(static_cast<int>(k.versioned.size())));
          n.seq = it->first.first;
          n.birth = it->first.second;
        }
        return n;
      };
      const auto random_size = [&] {
        return rnd.OneIn(20) ? (1u << 18) + rnd.Uniform(1000)
                             : 64 + rnd.Uniform(2000);
      };
      for (int step = 0; step < steps; ++step) {
        switch (rnd.Uniform(13)) {
          case 0:
          case 1:
          case 2: {
            Batch b;
            b.slot = rnd.OneIn(4)
                         ? slots[rnd.Uniform(static_cast<int>(slots.size()))]
                         : new_file();
            for (int i = rnd.Uniform(20); i >= 0; --i) {
              SequenceNumber seq = 1 + rnd.Uniform(40);
              if (rnd.OneIn(30)) {
                seq += uint64_t{1} << 50;
              }
              const uint64_t birth =
                  rnd.OneIn(2)   ? 0
                  : rnd.OneIn(2) ? files.Number(b.slot)
                                 : 1 + rnd.Uniform(static_cast<int>(next_file));
              b.records.push_back(
                  RecordOf(hash(rnd.Uniform(static_cast<int>(num_keys))), seq,
                           birth, rnd.Next() * 2, random_size(), rnd.OneIn(2)));
            }
            ASSERT_OK(
                map.InsertBatch(b.slot, b.records.data(), b.records.size()));
            for (const auto& r : b.records) {
              model.Insert(b.slot, r);
            }
            pending.push_back(std::move(b));
            break;
          }
          case 3:
          case 4: {
            if (pending.empty()) {
              break;
            }
            const size_t i = rnd.Uniform(static_cast<int>(pending.size()));
            const Batch b = pending[i];
            pending.erase(pending.begin() + i);
            if (rnd.OneIn(2)) {
              map.UndoBatch(b.slot, b.records.data(), b.records.size());
              for (const auto& r : b.records) {
                model.RemoveIfIn(r.name, b.slot);
              }
            } else {
              if (rnd.OneIn(2)) {
                files.Publish(b.slot, 1);
                files.Commit(b.slot);
              }
              const uint64_t born_before = random_limit();
              map.CommitBatch(b.records.data(), b.records.size(), born_before);
              for (const auto& r : b.records) {
                model.Commit(r, files, born_before);
              }
            }
            break;
          }
          case 5:
          case 6: {
            const MapName n = random_name();
            ASSERT_EQ(model.Rename(n), map.Rename(n));
            break;
          }
          case 7: {
            const MapName n = random_name();
            ASSERT_EQ(model.Remove(n), map.Remove(n));
            break;
          }
          case 12: {
            const MapName n = random_name();
            ASSERT_EQ(model.Demote(n), map.Demote(n));
            break;
          }
          case 8: {
            const MapName n = random_name();
            const uint32_t slot =
                slots[rnd.Uniform(static_cast<int>(slots.size()))];
            ASSERT_EQ(model.RemoveIfIn(n, slot), map.RemoveIfIn(n, slot));
            break;
          }
          case 9: {
            const MapKeyHash key =
                hash(rnd.Uniform(static_cast<int>(num_keys)));
            const SequenceNumber seq = 1 + rnd.Uniform(25);
            const SequenceNumber from =
                rnd.OneIn(2) ? 0 : rnd.Uniform(static_cast<int>(seq + 1));
            if (model.HasBelow(key, seq)) {
              ASSERT_TRUE(map.MayHaveBelow(key, seq));
            }
            const uint64_t born_before = random_limit();
            AddressMap::LeftEntries want;
            AddressMap::LeftEntries got;
            ASSERT_EQ(model.RemoveHidden(key, from, seq, born_before, &want),
                      map.RemoveHidden(key, from, seq, born_before, &got));
            ASSERT_EQ(want.below, got.below);
            ASSERT_EQ(want.born_before, got.born_before);
            break;
          }
          case 10: {
            const MapName n = random_name();
            MapAddress from{slots[0], 1, 1};
            if (const MapAddress* a = model.Find(n); a && !rnd.OneIn(8)) {
              from = *a;
            }
            const MapAddress to{
                slots[rnd.Uniform(static_cast<int>(slots.size()))], rnd.Next(),
                random_size()};
            ASSERT_EQ(model.Swap(n, from, to), map.SwapAddress(n, from, to));
            break;
          }
          case 11: {
            if (!rnd.OneIn(10)) {
              break;
            }
            std::vector<uint32_t> gone;
            for (const uint32_t s : slots) {
              if (rnd.OneIn(3)) {
                gone.push_back(s);
              }
            }
            ASSERT_EQ(model.Forget(gone), map.Forget(gone));
            break;
          }
        }
        if (step % 100 == 99) {
          Compare(&map, &model, &files);
          if (HasFatalFailure()) {
            FAIL() << "seed " << seed << " step " << step;
          }
        }
      }
      if (num_keys >= 600) {
        ASSERT_GT(map.TEST_Generation(), 1u);  // the shard has moved
      }
      ASSERT_GE(charge.charged, map.MemoryUsage());
      ASSERT_LT(charge.charged, map.MemoryUsage() + (256 << 10));
    }
    ASSERT_EQ(0u, charge.charged);
  }
};

TEST_F(AddressMapTest, EmptyMapFindsNothingAndTakesNoMemory) {
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  SequenceNumber seq;
  ASSERT_FALSE(map.DirectSeq(KeyOf(1), &seq));
  ASSERT_FALSE(map.FindDirect(KeyOf(1), true).found);
  ASSERT_FALSE(map.FindByName(MapName{KeyOf(1), 1, 0}, true).found);
  ASSERT_FALSE(map.Remove(MapName{KeyOf(1), 1, 0}));
  ASSERT_EQ(AddressMap::RenameResult::kGone,
            map.Rename(MapName{KeyOf(1), 1, 0}));
  ASSERT_EQ(0u, map.Forget({1}));
  ASSERT_EQ(0u, map.NumEntries());
  ASSERT_EQ(0u, map.MemoryUsage());
}

TEST_F(AddressMapTest, RandomHistoriesMatchTheModel) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    RunHistory(seed, 30, KeyOf, 1500);
    if (HasFatalFailure()) {
      return;
    }
  }
}

// All keys are in one shard, which grows and moves to larger tables.
TEST_F(AddressMapTest, RandomHistoriesInOneShardMatchTheModel) {
  for (uint32_t seed = 100; seed < 102; ++seed) {
    RunHistory(
        seed, 4000,
        [](uint64_t i) {
          MapKeyHash k = KeyOf(i);
          k.hi = k.hi >> 10 | uint64_t{77} << 54;
          return k;
        },
        5000);
    if (HasFatalFailure()) {
      return;
    }
  }
}

// The hashes differ only in their last bits, so all home positions are equal.
TEST_F(AddressMapTest, RandomHistoriesWithWeakHashMatchTheModel) {
  for (uint32_t seed = 200; seed < 204; ++seed) {
    RunHistory(
        seed, 60,
        [](uint64_t i) {
          return MapKeyHash{~uint64_t{0}, static_cast<uint32_t>(i << 27 | i)};
        },
        1500);
    if (HasFatalFailure()) {
      return;
    }
  }
}

// A late undo of one file does not remove records with the same names that its
// successor has inserted.
TEST_F(AddressMapTest, LateUndoSparesTheSameNamesInANewerFile) {
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  const uint32_t f1 = files.Add(11, 0, kNoCompression);
  const uint32_t f2 = files.Add(12, 0, kNoCompression);
  const auto r = RecordOf(KeyOf(1), 20, 0, 0, 100, true);
  ASSERT_OK(map.InsertBatch(f1, &r, 1));
  ASSERT_OK(map.InsertBatch(f2, &r, 1));
  map.UndoBatch(f1, &r, 1);
  ASSERT_EQ(f2, map.FindDirect(KeyOf(1), false).entry.address.slot);
  ASSERT_EQ(0u, files.LiveCount(f1));
  ASSERT_EQ(1u, files.LiveCount(f2));
}

// A direct value that is committed below a newer committed value is removed at
// once, because the newer one hides it and is not committed a second time.
// Below an uncommitted value it stays, superseded.
TEST_F(AddressMapTest, CommitBelowACommittedValueRemovesTheOlderOne) {
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  const uint32_t f1 = files.Add(11, 0, kNoCompression);
  const uint32_t f2 = files.Add(12, 0, kNoCompression);
  const auto newer = RecordOf(KeyOf(1), 20, 0, 0, 100, true);
  const auto older = RecordOf(KeyOf(1), 10, 0, 0, 100, true);
  for (const bool newer_is_committed : {false, true}) {
    ASSERT_OK(map.InsertBatch(f1, &newer, 1));
    if (newer_is_committed) {
      ASSERT_TRUE(files.Publish(f1, 1000));
      ASSERT_TRUE(files.Commit(f1));
      map.CommitBatch(&newer, 1, kMaxBirth);
    }
    ASSERT_OK(map.InsertBatch(f2, &older, 1));
    map.CommitBatch(&older, 1, kMaxBirth);
    ASSERT_EQ(newer_is_committed ? 1u : 2u, map.NumEntries());
    ASSERT_EQ(20u, map.FindDirect(KeyOf(1), false).entry.name.seq);
    ASSERT_OK(map.TEST_Check());
    ASSERT_TRUE(map.Remove(newer.name));
    ASSERT_EQ(0u, map.NumEntries());
  }
}

// Garbage collection moves a value that a flush has superseded. When the flush
// is undone, the value is current again, at its new address.
TEST_F(AddressMapTest, UndoRestoresAValueThatGcHasMoved) {
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  const uint32_t f1 = files.Add(11, 0, kNoCompression);
  const uint32_t f2 = files.Add(12, 0, kNoCompression);
  const uint32_t f9 = files.Add(19, 0, kNoCompression);
  const auto old = RecordOf(KeyOf(1), 5, 0, 7, 100, true);
  const auto now = RecordOf(KeyOf(1), 20, 0, 8, 200, true);
  ASSERT_OK(map.InsertBatch(f1, &old, 1));
  map.CommitBatch(&old, 1, kMaxBirth);
  ASSERT_OK(map.InsertBatch(f2, &now, 1));
  AddressMap::Lookup l = map.FindByName(old.name, false);
  ASSERT_TRUE(l.found);
  ASSERT_EQ(MapMode::kSuperseded, l.entry.mode);
  ASSERT_EQ(20u, l.direct_seq);
  ASSERT_TRUE(map.SwapAddress(old.name, MapAddress{f1, 7, 100},
                              MapAddress{f9, 3, 100}));
  ASSERT_FALSE(map.SwapAddress(old.name, MapAddress{f1, 7, 100},
                               MapAddress{f9, 3, 100}));
  map.UndoBatch(f2, &now, 1);
  l = map.FindDirect(KeyOf(1), true);
  ASSERT_TRUE(l.found);
  ASSERT_EQ(5u, l.entry.name.seq);
  ASSERT_EQ(f9, l.entry.address.slot);
  ASSERT_EQ(0u, files.LiveCount(f1) + files.LiveCount(f2));
  ASSERT_EQ(0u, map.TEST_NumSideCells());
}

TEST_F(AddressMapTest, ManyVersionsOfOneKeyAreAllFound) {
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  const uint32_t f = files.Add(11, 0, kNoCompression);
  for (SequenceNumber s = 1; s <= 20000; ++s) {
    const auto r =
        RecordOf(KeyOf(1), s, 0, static_cast<uint32_t>(s), 100, false);
    ASSERT_OK(map.InsertBatch(f, &r, 1));
  }
  for (SequenceNumber s = 1; s <= 20000; ++s) {
    AddressMap::Lookup l = map.FindByName(MapName{KeyOf(1), s, 0}, false);
    ASSERT_TRUE(l.found);
    ASSERT_EQ(s, l.entry.address.offset);
  }
  ASSERT_EQ(20000u, map.Forget({f}));
  ASSERT_EQ(0u, files.LiveBytes(f));
}

TEST_F(AddressMapTest, HiddenEntriesAreRemovedByTheirKey) {
  BlobFileSlotTable files;
  TestMapCharge charge;
  AddressMap::Options options;
  options.charge = &charge;
  AddressMap map(options, &files);
  const uint32_t f = files.Add(11, 0, kNoCompression);
  // One key has more entries than lie together, and other keys share its place.
  for (SequenceNumber s = 0; s <= 100; ++s) {
    for (uint64_t key = 1; key <= 3; ++key) {
      const auto r = RecordOf(KeyOf(key), s, 0, static_cast<uint32_t>(s), 100,
                              /*direct=*/key == 2 && s == 0);
      ASSERT_OK(map.InsertBatch(f, &r, 1));
    }
  }
  ASSERT_OK(map.TEST_Check());
  const size_t charged = map.MemoryUsage();
  AddressMap::LeftEntries left;
  // One reader is at 30, and none between 30 and 100.
  ASSERT_EQ(69u, map.RemoveHidden(KeyOf(1), 31, 100, kMaxBirth, &left));
  ASSERT_EQ(31u, left.below);
  ASSERT_EQ(1u, left.born_before);
  ASSERT_OK(map.TEST_Check());
  ASSERT_TRUE(map.FindByName(MapName{KeyOf(1), 100, 0}, false).found);
  ASSERT_TRUE(map.FindByName(MapName{KeyOf(1), 30, 0}, false).found);
  ASSERT_FALSE(map.FindByName(MapName{KeyOf(1), 31, 0}, false).found);
  ASSERT_FALSE(map.FindByName(MapName{KeyOf(1), 99, 0}, false).found);
  // The reader at 30 has ended.
  ASSERT_EQ(30u, map.RemoveHidden(KeyOf(1), 1, 100, kMaxBirth, &left));
  ASSERT_EQ(1u, left.below);
  ASSERT_EQ(1u, map.RemoveHidden(KeyOf(1), 0, 100, kMaxBirth, &left));
  ASSERT_EQ(0u, left.below);
  ASSERT_EQ(0u, left.born_before);
  ASSERT_EQ(100u, map.RemoveHidden(KeyOf(2), 0, 100, kMaxBirth, &left));
  ASSERT_EQ(100u, map.RemoveHidden(KeyOf(3), 0, 100, kMaxBirth, &left));
  ASSERT_EQ(0u, map.RemoveHidden(KeyOf(3), 0, 100, kMaxBirth, &left));
  ASSERT_OK(map.TEST_Check());
  ASSERT_EQ(3u, map.NumEntries());
  ASSERT_EQ(300u, files.LiveBytes(f));
  ASSERT_LT(map.MemoryUsage(), charged);
  ASSERT_FALSE(map.MayHaveBelow(KeyOf(5), 100));
}

// A swap of an address takes the name of a far entry away for a moment.
TEST_F(AddressMapTest, FarEntryIsBelowWhileItsAddressIsSwapped) {
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  const uint32_t from = files.Add(11, 0, kNoCompression);
  const uint32_t to = files.Add(12, 0, kNoCompression);
  // In a large table the far entry is not in a bucket of the near ones.
  for (uint64_t i = 0; i < 20000; ++i) {
    const auto record = RecordOf(KeyOf(100 + i), 1, 0, 7, 100, /*direct=*/true);
    ASSERT_OK(map.InsertBatch(from, &record, 1));
    map.CommitBatch(&record, 1, kMaxBirth);
  }
  for (SequenceNumber seq = 5 + MapEntries::kMaxNear; seq >= 5; --seq) {
    const auto record = RecordOf(KeyOf(1), seq, 0, 7, 100, /*direct=*/false);
    ASSERT_OK(map.InsertBatch(from, &record, 1));
    map.CommitBatch(&record, 1, kMaxBirth);
  }
  // Only the last one is below 6, and far.
  ASSERT_TRUE(map.MayHaveBelow(KeyOf(1), 6));
  ASSERT_FALSE(map.MayHaveBelow(KeyOf(2), 6));

  std::thread reader;
  std::atomic<bool> has_spun{false};
  std::atomic<bool> is_below{false};
  SyncPoint::GetInstance()->SetCallBack("MapTables::Read:Spun",
                                        [&](void*) { has_spun = true; });
  SyncPoint::GetInstance()->SetCallBack(
      "AddressMap::SwapAddress:Erased", [&](void*) {
        reader = std::thread([&] { is_below = map.MayHaveBelow(KeyOf(1), 6); });
        while (!has_spun) {
          std::this_thread::yield();
        }
      });
  SyncPoint::GetInstance()->EnableProcessing();
  ASSERT_TRUE(map.SwapAddress(MapName{KeyOf(1), 5, 0}, MapAddress{from, 7, 100},
                              MapAddress{to, 3, 100}));
  reader.join();
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  EXPECT_TRUE(is_below);
}

// Ingested values and values that a compaction has given another sequence
// number are newer than the entry that hides the others, but have smaller
// numbers.
TEST_F(AddressMapTest, RemovalOfHiddenEntriesKeepsThoseThatWereBornLater) {
  for (const bool direct : {false, true}) {
    BlobFileSlotTable files;
    AddressMap map({}, &files);
    const uint32_t f = files.Add(11, 0, kNoCompression);
    const auto add = [&](uint64_t key, SequenceNumber seq, uint64_t birth) {
      const auto r = RecordOf(KeyOf(key), seq, birth, 0, 100, direct);
      ASSERT_OK(map.InsertBatch(f, &r, 1));
    };
    const auto has = [&](uint64_t key, SequenceNumber seq, uint64_t birth) {
      return map.FindByName(MapName{KeyOf(key), seq, birth}, false).found;
    };
    add(1, 0, 19);
    add(1, 0, 20);
    add(1, 3, 21);
    add(1, 5, 0);
    add(1, 7, 0);
    AddressMap::LeftEntries left;
    // A reader at 6 needs one of the entries.
    ASSERT_EQ(1u, map.RemoveHidden(KeyOf(1), 6, 9, 20, &left));
    ASSERT_EQ(6u, left.below);
    ASSERT_EQ(20u, left.born_before);
    ASSERT_EQ(2u, map.RemoveHidden(KeyOf(1), 0, 9, 20, &left));
    ASSERT_EQ(0u, left.below);
    ASSERT_EQ(0u, left.born_before);
    ASSERT_TRUE(has(1, 0, 20) && has(1, 3, 21));
    ASSERT_EQ(2u, map.NumEntries());
    ASSERT_EQ(200u, files.LiveBytes(f));
    ASSERT_OK(map.TEST_Check());
  }
}

// The commit of a large job ends long after its edit. Its direct value may have
// left the map then, and a newer one with a smaller sequence number may be
// there.
TEST_F(AddressMapTest, LateCommitKeepsEntriesThatWereBornLater) {
  for (const bool is_gone : {false, true}) {
    BlobFileSlotTable files;
    AddressMap map({}, &files);
    const uint32_t f1 = files.Add(11, 0, kNoCompression);
    const uint32_t f2 = files.Add(20, 0, kNoCompression);
    const auto old = RecordOf(KeyOf(1), 4, 0, 0, 100, true);
    const auto committed = RecordOf(KeyOf(1), 5, 0, 0, 100, true);
    const auto newer = RecordOf(KeyOf(1), 0, 20, 0, 100, true);
    ASSERT_OK(map.InsertBatch(f1, &old, 1));
    ASSERT_OK(map.InsertBatch(f1, &committed, 1));
    if (is_gone) {
      ASSERT_TRUE(map.Remove(committed.name));
    }
    ASSERT_OK(map.InsertBatch(f2, &newer, 1));
    map.CommitBatch(&committed, 1, /*born_before=*/20);
    ASSERT_TRUE(map.FindByName(newer.name, false).found);
    ASSERT_FALSE(map.FindByName(old.name, false).found);
    ASSERT_EQ(is_gone ? 1u : 2u, map.NumEntries());
    ASSERT_OK(map.TEST_Check());
    map.CommitBatch(&committed, 1, kMaxBirth);
    ASSERT_FALSE(map.FindByName(newer.name, false).found);
    ASSERT_EQ(0u, files.LiveBytes(f2));
  }
}

TEST_F(AddressMapTest, MemoryLimitLeavesAnUndoablePrefix) {
  BlobFileSlotTable files;
  TestMapCharge charge;
  charge.limit = 2 << 20;
  AddressMap::Options options;
  options.charge = &charge;
  AddressMap map(options, &files);
  const uint32_t f = files.Add(11, 0, kNoCompression);
  std::vector<AddressMap::Record> records;
  for (uint64_t i = 0; i < 200000; ++i) {
    records.push_back(RecordOf(KeyOf(i), i + 1, 0, 0, 100, true));
  }
  Status s = map.InsertBatch(f, records.data(), records.size());
  ASSERT_TRUE(s.IsMemoryLimit()) << s.ToString();
  ASSERT_GT(map.NumEntries(), 0u);
  ASSERT_LE(charge.charged, charge.limit);
  map.UndoBatch(f, records.data(), records.size());
  ASSERT_EQ(0u, map.NumEntries());
  ASSERT_EQ(0u, files.LiveCount(f));
  ASSERT_OK(map.TEST_Check());
  charge.limit = ~size_t{0};
  ASSERT_OK(map.InsertBatch(f, records.data(), records.size()));
  ASSERT_EQ(records.size(), map.NumEntries());
}

// MemoryUsage() is below 36 bytes per entry while the map grows, and below 32
// bytes in maps of ten million entries or more. The environment variable sets
// the number of entries for long runs.
TEST_F(AddressMapTest, EntryTakesAtMost36Bytes) {
  const char* const env = std::getenv("ADDRESS_MAP_TEST_ENTRIES");
  const uint64_t n = env != nullptr ? std::strtoull(env, nullptr, 10) : 1000000;
  BlobFileSlotTable files;
  TestMapCharge charge;
  AddressMap::Options options;
  options.charge = &charge;
  AddressMap map(options, &files);
  const uint32_t f = files.Add(11, 0, kNoCompression);
  double worst = 0;
  for (uint64_t i = 0; i < n; ++i) {
    const auto r =
        RecordOf(KeyOf(i), i + 1, 0, static_cast<uint32_t>(i), 1100, true);
    ASSERT_OK(map.InsertBatch(f, &r, 1));
    if (i >= n / 2 && i % (n / 100) == 0) {
      worst = std::max(worst, 1.0 * map.MemoryUsage() / (i + 1));
    }
  }
  fprintf(stderr, "%lu entries: %.2f bytes per entry, at worst %.2f\n",
          static_cast<unsigned long>(n), 1.0 * map.MemoryUsage() / n, worst);
  if (n >= 10000000) {
    ASSERT_LT(worst, 32.0);
  } else {
    ASSERT_LT(worst, 36.0);
  }
  ASSERT_EQ(n, files.LiveCount(f));
  for (uint64_t i = 0; i < n; i += 97) {
    AddressMap::Lookup l = map.FindDirect(KeyOf(i), false);
    ASSERT_TRUE(l.found);
    ASSERT_EQ(i + 1, l.entry.name.seq);
    ASSERT_EQ(static_cast<uint32_t>(i), l.entry.address.offset);
  }
}

// The memory of a small map is proportional to its entries, and each walk
// visits each entry once, whatever the number of shards is.
TEST_F(AddressMapTest, SmallMapsTakeMemoryByTheirEntries) {
  constexpr uint64_t kEntries = 30000;
  for (const uint64_t expected :
       {uint64_t{0}, uint64_t{1000}, uint64_t{30000}, uint64_t{1000000}}) {
    SCOPED_TRACE(expected);
    BlobFileSlotTable files;
    TestMapCharge charge;
    AddressMap::Options options;
    options.charge = &charge;
    options.expected_entries = expected;
    AddressMap map(options, &files);
    const uint32_t f = files.Add(11, 0, kNoCompression);
    for (uint64_t i = 0; i < kEntries; ++i) {
      const auto r = RecordOf(KeyOf(i), i + 1, i % 7 == 0 ? 9 : 0,
                              static_cast<uint32_t>(i), 1100, i % 5 != 0);
      ASSERT_OK(map.InsertBatch(f, &r, 1));
      const uint64_t n = i + 1;
      if (expected <= n && (n == 1 || n == 100 || n == 1000 || n == 3000 ||
                            n == 10000 || n == kEntries)) {
        // Each of a few shards takes a page, and each birth takes a cell.
        EXPECT_LE(map.MemoryUsage(), n * 75 + (40 << 10)) << n;
        ASSERT_OK(map.TEST_Check());
        std::set<uint32_t> offsets;
        for (uint32_t part = 0; part < AddressMap::kNumParts; ++part) {
          map.ForEachInPart(part, [&](const AddressMap::Entry& e) {
            EXPECT_EQ(e.name.key.hi >> 54, part);
            EXPECT_TRUE(e.name.key == KeyOf(e.address.offset));
            EXPECT_TRUE(offsets.insert(e.address.offset).second);
          });
        }
        EXPECT_EQ(offsets.size(), n);
      }
    }
    for (uint64_t i = 0; i < kEntries; ++i) {
      const MapName name{KeyOf(i), i + 1, i % 7 == 0 ? uint64_t{9} : 0};
      ASSERT_TRUE(map.FindByName(name, false).found) << i;
      ASSERT_TRUE(map.Remove(name)) << i;
    }
    ASSERT_EQ(0u, map.NumEntries());
    ASSERT_OK(map.TEST_Check());
  }
}

// A map that is emptied after some of its shards have moved to a larger table
// keeps the fixed part of the tables only, and can be filled again. Only
// insertions move shards, so removals must free the memory of shards that have
// not moved.
TEST_F(AddressMapTest, MapEmptiedInMidGrowthKeepsOnlyFixedMemory) {
  BlobFileSlotTable files;
  TestMapCharge charge;
  AddressMap::Options options;
  options.charge = &charge;
  AddressMap map(options, &files);
  const uint32_t f = files.Add(11, 0, kNoCompression);
  const auto insert = [&](uint64_t i) {
    const auto r = RecordOf(KeyOf(i), i + 1, 0, static_cast<uint32_t>(i), 1100,
                            i % 5 != 0);
    ASSERT_OK(map.InsertBatch(f, &r, 1));
  };
  uint64_t num = 0;
  for (; num < 200000; ++num) {
    insert(num);
  }
  // Inserts until the next table is begun.
  const uint32_t generation = map.TEST_Generation();
  for (; map.TEST_Generation() == generation && num < 8000000; ++num) {
    insert(num);
  }
  ASSERT_GT(map.TEST_Generation(), generation);
  ASSERT_GT(map.MemoryUsage(), size_t{8} << 20);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < num; ++i) {
      const auto r = RecordOf(KeyOf(i), i + 1, 0, static_cast<uint32_t>(i),
                              1100, i % 5 != 0);
      ASSERT_TRUE(map.Remove(r.name));
    }
    ASSERT_EQ(0u, map.NumEntries());
    ASSERT_OK(map.TEST_Check());
    EXPECT_LT(map.MemoryUsage(), size_t{2} << 20);
    EXPECT_LT(charge.charged, map.MemoryUsage() + (256 << 10));
    num = 50000;
    for (uint64_t i = 0; i < num; ++i) {
      insert(i);
    }
    ASSERT_EQ(num, map.NumEntries());
    ASSERT_OK(map.TEST_Check());
  }
}

TEST_F(AddressMapTest, MemoryGoesBackAfterMassDeletes) {
  constexpr uint64_t kEntries = 400000;
  BlobFileSlotTable files;
  TestMapCharge charge;
  AddressMap::Options options;
  options.charge = &charge;
  AddressMap map(options, &files);
  const uint32_t f = files.Add(11, 0, kNoCompression);
  const auto record = [](uint64_t i) {
    return RecordOf(KeyOf(i), i + 1, 0, static_cast<uint32_t>(i), 1100,
                    i % 5 != 0);
  };
  const auto insert = [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const auto r = record(i);
      ASSERT_OK(map.InsertBatch(f, &r, 1));
    }
  };
  // Removes entries in each of four ways, chosen by the key.
  const auto remove = [&](uint64_t i) {
    const AddressMap::Record r = record(i);
    switch (i / 5 % 4) {
      case 0:
        return map.Remove(r.name);
      case 1:
        return map.RemoveIfIn(r.name, f);
      case 2:
        map.UndoBatch(f, &r, 1);
        return true;
      default:
        AddressMap::LeftEntries left;
        return r.direct ? map.RemoveHidden(r.name.key, 0, i + 2, kMaxBirth,
                                           &left) == 1
                        : map.Remove(r.name);
    }
  };
  insert(0, kEntries);
  const size_t full = map.MemoryUsage();
  const uint32_t generation = map.TEST_Generation();
  for (int round = 0; round < 3; ++round) {
    size_t before = map.MemoryUsage();
    for (uint64_t i = 0; i < kEntries; ++i) {
      if (i % 100 != 99) {
        ASSERT_TRUE(remove(i)) << i;
      }
      if (i == kEntries / 2) {
        // Memory is freed during the removals, not only at their end.
        EXPECT_LT(map.MemoryUsage(), before);
      }
    }
    ASSERT_EQ(kEntries / 100, map.NumEntries());
    ASSERT_OK(map.TEST_Check());
    // Each shard keeps one page.
    ASSERT_LT(map.MemoryUsage(),
              AddressMap::kNumParts * (4096 + 128) + full / 20);
    ASSERT_LT(charge.charged, map.MemoryUsage() + (256 << 10));
    for (uint64_t i = 0; i < kEntries; ++i) {
      ASSERT_EQ(i % 100 == 99, map.FindByName(record(i).name, false).found);
    }
    for (uint64_t i = 0; i < kEntries; ++i) {
      if (i % 100 != 99) {
        insert(i, i + 1);
      }
    }
    ASSERT_EQ(kEntries, map.NumEntries());
    ASSERT_EQ(kEntries, files.LiveCount(f));
    ASSERT_LE(map.MemoryUsage(), full + full / 8);
    ASSERT_OK(map.TEST_Check());
  }
  ASSERT_EQ(generation, map.TEST_Generation());
}

// A shard does not change its size each time that a few entries come and go.
TEST_F(AddressMapTest, FewEntriesDoNotResizeShardsBackAndForth) {
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  const uint32_t f = files.Add(11, 0, kNoCompression);
  const auto record = [](uint64_t i) {
    return RecordOf(KeyOf(i), i + 1, 0, static_cast<uint32_t>(i), 100, true);
  };
  constexpr uint64_t kEntries = 300000;
  for (uint64_t i = 0; i < kEntries; ++i) {
    const auto r = record(i);
    ASSERT_OK(map.InsertBatch(f, &r, 1));
  }
  for (uint64_t i = 0; i < kEntries * 6 / 10; ++i) {
    ASSERT_TRUE(map.Remove(record(i).name));
  }
  const size_t usage = map.MemoryUsage();
  for (int round = 0; round < 5; ++round) {
    for (uint64_t i = 0; i < kEntries / 10; ++i) {
      const auto r = record(i);
      ASSERT_OK(map.InsertBatch(f, &r, 1));
    }
    for (uint64_t i = 0; i < kEntries / 10; ++i) {
      ASSERT_TRUE(map.Remove(record(i).name));
    }
    EXPECT_EQ(usage, map.MemoryUsage()) << round;
  }
}

// Readers find keys that do not change while other keys are inserted,
// superseded and undone, and while shards grow and move. They never see fields
// of two entries mixed.
TEST_F(AddressMapTest, ReadersFindStableKeysDuringGrowthAndUndo) {
  constexpr uint64_t kStable = 2000;
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  const uint32_t f1 = files.Add(11, 0, kNoCompression);
  const uint32_t f2 = files.Add(12, 0, kNoCompression);
  std::vector<AddressMap::Record> stable;
  std::vector<AddressMap::Record> over;
  for (uint64_t i = 0; i < kStable; ++i) {
    const uint32_t x = static_cast<uint32_t>(i);
    stable.push_back(RecordOf(KeyOf(i), 5, 0, x * 7, 100 + x % 9, true));
    over.push_back(RecordOf(KeyOf(i), 9, i % 3, x * 5, 300 + x % 9, true));
  }
  ASSERT_OK(map.InsertBatch(f1, stable.data(), stable.size()));
  std::atomic<uint64_t> reads{0};
  StoppableThreads readers;
  for (int t = 0; t < 3; ++t) {
    readers.Start([&, t] {
      Random rnd(t + 1);
      while (!readers.stopped()) {
        const uint32_t x = rnd.Uniform(kStable);
        AddressMap::Lookup l = map.FindByName(stable[x].name, true);
        ASSERT_TRUE(l.found);
        ASSERT_TRUE(l.has_direct);
        ASSERT_TRUE(l.entry.address == (MapAddress{f1, x * 7, 100 + x % 9}));
        ASSERT_EQ(l.direct_seq == 5 ? MapMode::kDirect : MapMode::kSuperseded,
                  l.entry.mode);
        AddressMap::Lookup d = map.FindDirect(stable[x].name.key, false);
        ASSERT_TRUE(d.found);
        if (d.entry.name.seq == 5) {
          ASSERT_EQ(f1, d.entry.address.slot);
        } else {
          ASSERT_EQ(x % 3, d.entry.name.birth);
          ASSERT_TRUE(d.entry.address == (MapAddress{f2, x * 5, 300 + x % 9}));
        }
        reads.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  StoppableThreads grower;
  grower.Start([&] {
    for (uint64_t i = 1000000; i < 1300000 && !grower.stopped(); ++i) {
      const auto r = RecordOf(KeyOf(i), i, 0, 1, 50, i % 2 == 0);
      ASSERT_OK(map.InsertBatch(f1, &r, 1));
    }
  });
  for (int round = 0; round < 10; ++round) {
    ASSERT_OK(map.InsertBatch(f2, over.data(), over.size()));
    if (round % 2 == 0) {
      map.UndoBatch(f2, over.data(), over.size());
    } else {
      ASSERT_EQ(over.size(), map.Forget({f2}));
    }
  }
  grower.Join();
  readers.Stop();
  ASSERT_GT(reads.load(), 0u);
  ASSERT_GT(map.TEST_Generation(), 1u);
  ASSERT_OK(map.TEST_Check());
  ASSERT_EQ(302000u, map.NumEntries());
  ASSERT_EQ(302000u, files.LiveCount(f1));
  ASSERT_EQ(0u, files.LiveCount(f2));
}

TEST_F(AddressMapTest, ReadersFindStableKeysWhileShardsShrink) {
  constexpr uint64_t kStable = 2000;
  constexpr uint64_t kOthers = 250000;
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  const uint32_t f = files.Add(11, 0, kNoCompression);
  const auto record = [](uint64_t i) {
    return RecordOf(KeyOf(i), i + 1, 0, static_cast<uint32_t>(i * 7), 100,
                    i % 3 != 0);
  };
  for (uint64_t i = 0; i < kStable + kOthers; ++i) {
    const auto r = record(i);
    ASSERT_OK(map.InsertBatch(f, &r, 1));
  }
  StoppableThreads readers;
  for (int t = 0; t < 3; ++t) {
    readers.Start([&, t] {
      Random rnd(t + 1);
      while (!readers.stopped()) {
        const uint32_t i = rnd.Uniform(kStable);
        const AddressMap::Lookup l = map.FindByName(record(i).name, true);
        ASSERT_TRUE(l.found);
        ASSERT_TRUE(l.entry.address == (MapAddress{f, i * 7, 100}));
        // Other keys come and go, so they are absent or have the right address.
        const uint64_t other = kStable + rnd.Uniform(kOthers);
        const AddressMap::Lookup o = map.FindByName(record(other).name, false);
        if (o.found) {
          ASSERT_EQ(other * 7, o.entry.address.offset);
        }
      }
    });
  }
  const size_t full = map.MemoryUsage();
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = kStable; i < kStable + kOthers; ++i) {
      ASSERT_TRUE(map.Remove(record(i).name));
    }
    EXPECT_LT(map.MemoryUsage(), full);
    for (uint64_t i = kStable; i < kStable + kOthers; ++i) {
      const auto r = record(i);
      ASSERT_OK(map.InsertBatch(f, &r, 1));
    }
  }
  readers.Stop();
  ASSERT_OK(map.TEST_Check());
  ASSERT_EQ(kStable + kOthers, files.LiveCount(f));
}

// The counters match the entries that are left after several threads have
// changed the same keys in different files.
TEST_F(AddressMapTest, CountersMatchTheEntriesAfterManyWriters) {
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  std::vector<std::thread> threads;
  std::vector<uint32_t> slots;
  for (int t = 0; t < 4; ++t) {
    slots.push_back(files.Add(11 + t, 0, kNoCompression));
  }
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random rnd(t + 301);
      for (int i = 0; i < 40000; ++i) {
        const MapKeyHash key = KeyOf(rnd.Uniform(500));
        const auto r = RecordOf(key, 1 + rnd.Uniform(8), rnd.Uniform(3), i,
                                64 + rnd.Uniform(99), rnd.OneIn(2));
        switch (rnd.Uniform(6)) {
          case 0:
            map.Remove(r.name);
            break;
          case 1:
            map.RemoveIfIn(r.name, slots[t]);
            break;
          case 2:
            map.Rename(r.name);
            break;
          case 3: {
            AddressMap::Lookup l = map.FindByName(r.name, true);
            if (l.found) {
              map.SwapAddress(r.name, l.entry.address,
                              MapAddress{slots[t], r.offset, r.size});
            }
            break;
          }
          case 4:
            map.CommitBatch(&r, 1, kMaxBirth);
            break;
          default:
            ASSERT_OK(map.InsertBatch(slots[t], &r, 1));
        }
      }
    });
  }
  for (auto& t : threads) {
    t.join();
  }
  ASSERT_OK(map.TEST_Check());
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> live;
  for (uint32_t part = 0; part < AddressMap::kNumParts; ++part) {
    map.ForEachInPart(part, [&](const AddressMap::Entry& e) {
      ++live[e.address.slot].first;
      live[e.address.slot].second += e.address.size;
    });
  }
  for (const uint32_t s : slots) {
    ASSERT_EQ(live[s].first, files.LiveCount(s));
    ASSERT_EQ(live[s].second, files.LiveBytes(s));
  }
}

// A file that a reader has pinned keeps its slot. Garbage collection moves
// values from file to file, and the slots of emptied files are assigned to new
// files at once. The offset of each address is the number of its file, so a
// reader can check that the slot still stands for that file.
TEST_F(AddressMapTest, PinnedSlotIsNotReassigned) {
  constexpr uint64_t kKeys = 8;
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  uint64_t number = 1;
  uint32_t slot = files.Add(number, 0, kNoCompression, State::kLive);
  for (uint64_t i = 0; i < kKeys; ++i) {
    const auto r =
        RecordOf(KeyOf(i), 1, 0, static_cast<uint32_t>(number), 64, true);
    ASSERT_OK(map.InsertBatch(slot, &r, 1));
  }
  std::atomic<uint64_t> reads{0};
  StoppableThreads readers;
  for (int t = 0; t < 3; ++t) {
    readers.Start([&, t] {
      Random rnd(t + 1);
      while (!readers.stopped()) {
        AddressMap::Lookup l = map.FindDirect(KeyOf(rnd.Uniform(kKeys)), true);
        ASSERT_TRUE(l.found && l.pin.pinned());
        for (int i = 0; i < 3; ++i) {
          BlobFileSlotTable::Info info;
          ASSERT_TRUE(files.GetInfo(l.pin.slot(), &info));
          ASSERT_EQ(l.entry.address.offset, info.number);
          ASSERT_TRUE(info.state == State::kLive || info.state == State::kDead);
        }
        reads.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  std::set<uint32_t> used;
  for (int round = 0; round < 5000; ++round) {
    const uint64_t next = ++number;
    const uint32_t to = files.Add(next, 0, kNoCompression, State::kLive);
    ASSERT_NE(BlobFileSlotTable::kLostSlot, to);
    used.insert(to);
    for (uint64_t i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(
          map.SwapAddress(MapName{KeyOf(i), 1, 0},
                          MapAddress{slot, static_cast<uint32_t>(next - 1), 64},
                          MapAddress{to, static_cast<uint32_t>(next), 64}));
    }
    ASSERT_TRUE(files.Drop(slot));
    for (const auto& f : files.CollectDead()) {
      ASSERT_TRUE(files.Free(f.slot));
    }
    slot = to;
  }
  readers.Stop();
  ASSERT_GT(reads.load(), 0u);
  // Some slots were assigned more than once.
  ASSERT_LT(used.size(), 4000u);
  for (const auto& f : files.CollectDead()) {
    ASSERT_TRUE(files.Free(f.slot));
  }
  ASSERT_EQ(1u, files.GetAll().size());
}

// A lookup by name sees all modes at one moment: it always finds a name that is
// renamed, superseded and made versioned again in turn.
TEST_F(AddressMapTest, LookupByNameIsAtomic) {
  BlobFileSlotTable files;
  AddressMap map({}, &files);
  const uint32_t f = files.Add(11, 0, kNoCompression);
  const auto versioned = RecordOf(KeyOf(1), 10, 0, 3, 64, false);
  const auto newer = RecordOf(KeyOf(1), 20, 0, 4, 64, true);
  ASSERT_OK(map.InsertBatch(f, &versioned, 1));
  std::atomic<uint64_t> modes[3] = {};
  StoppableThreads readers;
  for (int t = 0; t < 2; ++t) {
    readers.Start([&] {
      while (!readers.stopped()) {
        AddressMap::Lookup l = map.FindByName(versioned.name, false);
        ASSERT_TRUE(l.found);
        ASSERT_EQ(3u, l.entry.address.offset);
        if (l.entry.mode == MapMode::kSuperseded) {
          ASSERT_TRUE(l.has_direct && l.direct_seq == 20);
        } else if (l.entry.mode == MapMode::kDirect) {
          ASSERT_TRUE(l.has_direct && l.direct_seq == 10);
        } else {
          ASSERT_FALSE(l.has_direct);
        }
        modes[static_cast<int>(l.entry.mode)].fetch_add(1);
      }
    });
  }
  for (int round = 0; round < 1000000; ++round) {
    ASSERT_EQ(AddressMap::RenameResult::kRenamed, map.Rename(versioned.name));
    ASSERT_OK(map.InsertBatch(f, &newer, 1));
    map.UndoBatch(f, &newer, 1);
    ASSERT_OK(map.InsertBatch(f, &versioned, 1));  // versioned again
    if (round >= 20000 && modes[0] > 0 && modes[1] > 0 && modes[2] > 0) {
      break;
    }
  }
  readers.Stop();
  for (auto& m : modes) {
    ASSERT_GT(m.load(), 0u);
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
