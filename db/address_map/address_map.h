// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "db/address_map/blob_file_slot_table.h"
#include "db/address_map/overflow_cells.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "util/autovector.h"
#include "util/hash.h"

namespace ROCKSDB_NAMESPACE {

// 96 bits of a seeded hash of a user key: the identity of the key in the map.
// The seed is a random number of the column family, so that nobody can choose
// keys that collide.
struct MapKeyHash {
  uint64_t hi = 0;
  uint32_t lo = 0;

  static MapKeyHash Of(const Slice& user_key, uint64_t seed) {
    uint64_t high = 0;
    uint64_t low = 0;
    Hash2x64(user_key.data(), user_key.size(), seed, &high, &low);
    return MapKeyHash{high, static_cast<uint32_t>(low)};
  }
  bool operator==(const MapKeyHash& o) const {
    return hi == o.hi && lo == o.lo;
  }
  bool operator<(const MapKeyHash& o) const {
    return hi != o.hi ? hi < o.hi : lo < o.lo;
  }
};

// The name of a separated value. Names of one key are ordered by sequence
// number, then birth: a birth is a file number, so the later value of one
// sequence number has the higher one.
struct MapName {
  MapKeyHash key;
  SequenceNumber seq = 0;
  uint64_t birth = 0;
};

struct MapNameLess {
  bool operator()(const MapName& a, const MapName& b) const {
    if (!(a.key == b.key)) {
      return a.key < b.key;
    }
    return a.seq != b.seq ? a.seq < b.seq : a.birth < b.birth;
  }
};

struct MapAddress {
  uint32_t slot = BlobFileSlotTable::kLostSlot;  // of BlobFileSlotTable
  uint32_t offset = 0;                           // of the record in the file
  uint32_t size = 0;                             // of the whole record

  bool operator==(const MapAddress& o) const {
    return slot == o.slot && offset == o.offset && size == o.size;
  }
};

enum class MapMode : uint8_t {
  kDirect = 0,      // the newest direct entry of its key
  kVersioned = 1,   // found by its whole name only
  kSuperseded = 2,  // an older direct entry; a newer one is not committed yet
};

// Charges the map's memory, for example to a CacheReservationManager. Called
// under a mutex of the map.
class MapMemoryCharge {
 public:
  virtual ~MapMemoryCharge() = default;
  // total is a multiple of 256 KiB. If the status is not OK and the map can
  // do without, it calls again with the old total; if it cannot (undo, moving
  // of addresses), it goes on.
  virtual Status SetCharged(size_t total) = 0;
};

// Where the separated values of a column family are.
//
//   direct(key) -> (seq, birth, address)     versioned(name) -> address
//
// Invariants:
// * At most one entry has a given name.
// * The direct entries of a key form a chain, newest first. The first is in
//   mode direct, the others are superseded: they are kept only until the
//   entries above them are committed.
// * BlobFileSlotTable's live counts are exact after every operation.
//
// Concurrency. Every operation on one key or name is atomic: it happens in one
// section of the key's shard. Writers of a shard exclude each other by its
// mutex. Readers take no lock: they read, then check the shard's version
// counter. They retry while it changes; after kMaxSpins tries they take the
// mutex if nobody has it. A shard that grows or shrinks stops no reader: they
// are redirected to a copy (it has 64 Ki entries at most, and grows by 1/16).
//
// Linearisation points: of a change, the store that makes the version counter
// odd (nobody reads the shard until it is even again); of a lookup, any moment
// between its first and its last load of the counter, which were equal.
// A batch is not atomic as a whole.
//
// A change that follows a lookup's last load happens after it; a lookup whose
// first load sees a change (acquire) sees all that the writer did before it.
//
// Memory: entries of 26 bytes in buckets of 512, growing by 1/16 of a shard: at
// most ~31.2 bytes per entry where the shards are large. A map of a thousand
// entries takes about 50 KB. A shard that is less than half full gives memory
// back. Nothing is allocated per entry. Entries in a chain of two or more,
// entries with a birth that is neither 0 nor the number of their file, records
// of 256 KiB and more and sequence numbers of 2^48 and more take one or two
// side cells of 24 bytes. A versioned entry whose key has four others takes
// about 80 bytes more.
//
// Layout. See the .cc file.
class AddressMap {
 public:
  struct Options {
    // Entries to expect: fewer moves if it is right, nothing worse if not.
    uint64_t expected_entries = 0;
    // May be nullptr. Must outlive the map.
    MapMemoryCharge* charge = nullptr;
  };

  struct Record {
    MapName name;
    uint32_t offset = 0;
    uint32_t size = 0;
    bool direct = false;
  };

  struct Entry {
    MapName name;
    MapAddress address;
    MapMode mode = MapMode::kDirect;
  };

  struct Lookup {
    bool found = false;
    Entry entry;  // meaningful if found
    // Holds the entry's file if found and a pin was asked for.
    MapFilePin pin;
    // The newest direct entry of the key, whether or not it was looked for.
    bool has_direct = false;
    SequenceNumber direct_seq = 0;
  };

  enum class RenameResult : uint8_t {
    kRenamed,        // was versioned, is direct now
    kAlreadyDirect,  // was direct or superseded
    kNewerDirect,    // stays versioned: a newer direct entry exists
    kGone,           // no entry has the name
  };

  // The map can be walked in this many parts, ordered by hash. A small map has
  // fewer shards, and walking one part of it looks through a shard.
  static constexpr uint32_t kNumParts = 1024;

  // REQUIRES: files outlives the map.
  AddressMap(const Options& options, BlobFileSlotTable* files);
  ~AddressMap();
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;

  // Like Options::expected_entries.
  // REQUIRES: nothing was added yet; nobody else uses the map.
  void Expect(uint64_t entries) { expected_ = entries; }

  // ---- Lookups. Lock-free as described above.

  // Says that the key will be looked up soon, or moved. For loops over many
  // keys: most of a lookup is waiting for memory.
  void Prefetch(const MapKeyHash& key) const;

  // The sequence number of the newest direct entry.
  bool DirectSeq(const MapKeyHash& key, SequenceNumber* seq) const;
  // The newest direct entry.
  Lookup FindDirect(const MapKeyHash& key, bool pin) const;
  // The newest direct entry whose file is in a committed edit.
  Lookup FindDurableDirect(const MapKeyHash& key, bool pin) const;
  // The entry with this name, in any mode, and the newest direct sequence
  // number, all of one moment.
  Lookup FindByName(const MapName& name, bool pin) const;
  // False if no entry of the key is older than seq, in whatever mode; true if
  // there may be one.
  bool MayHaveBelow(const MapKeyHash& key, SequenceNumber seq) const;

  // ---- Changes.

  // Adds the records of one file, in any order. A direct record that is
  // newer than the direct entry supersedes it; an older one goes into its
  // place in the chain. A name that is there already gets the new address and
  // mode.
  // If the status is not OK, a part of the records was added: UndoBatch.
  // REQUIRES: the file is building, pending or live, and the records are
  // durable in it.
  Status InsertBatch(uint32_t slot, const Record* records, size_t n);

  // Takes back what InsertBatch did: removes each name if it is still in
  // this file. What it superseded is current again, wherever it lives now.
  // May be repeated; records that were never added do no harm.
  // REQUIRES: the edit with these records was not and will not be committed.
  void UndoBatch(uint32_t slot, const Record* records, size_t n);

  // Drops the direct entries older than the direct records.
  // REQUIRES: the edit with these records is committed.
  void CommitBatch(const Record* records, size_t n);

  // Versioned -> direct. Drops older direct entries.
  // REQUIRES: the name is committed, and hides older entries of its key from
  // every snapshot.
  RenameResult Rename(const MapName& name);

  // Direct -> versioned; the name's value can be found no longer by the key
  // alone. Drops older direct entries. False if there is no such name.
  // REQUIRES: the name is committed.
  bool Demote(const MapName& name);

  // Demotes all direct entries. Not atomic.
  // REQUIRES: all are committed.
  void DemoteAll();

  // Removes the name; if it is a direct entry, the older ones too: a committed
  // entry hides them. False if there is no such name.
  // REQUIRES: the name is committed.
  bool Remove(const MapName& name);

  // Removes the name if it is in this file; what it superseded is current
  // again. False if it is not so. This is the undo of one insertion.
  bool RemoveIfIn(const MapName& name, uint32_t slot);

  // Removes the entries of the key, in whatever mode, that are newer than
  // `above` and older than `below`. Returns how many there were. *newest_left:
  // the sequence number of the newest entry that is not newer than `above`, 0
  // if there is none. REQUIRES: above < below; a committed non-merge entry of
  // the key at `below` hides them, and no reader is or will be at `above` + 1
  // to `below` - 1.
  size_t RemoveHidden(const MapKeyHash& key, SequenceNumber above,
                      SequenceNumber below, SequenceNumber* newest_left);

  // Moves the entry, in whatever mode it is, if its address is still `from`.
  bool SwapAddress(const MapName& name, const MapAddress& from,
                   const MapAddress& to);

  // Removes all entries in these files, each as RemoveIfIn. One sweep of the
  // map; holds the mutex of one shard at a time. Returns how many.
  // REQUIRES: nobody inserts into or swaps to these files any more.
  size_t Forget(const std::vector<uint32_t>& slots);

  // ---- All entries.

  // Calls fn for each entry of the part: a copy of one moment of each shard.
  // The order is roughly that of the hash. fn may use the map.
  // REQUIRES: part < kNumParts.
  void ForEachInPart(uint32_t part,
                     const std::function<void(const Entry&)>& fn) const;

  uint64_t NumEntries() const;
  // Resident memory of entries, shards, side cells. Not the file table.
  size_t MemoryUsage() const;

  BlobFileSlotTable* files() const { return files_; }

  // Checks all invariants of the structure. For tests; slow.
  Status TEST_Check() const;
  size_t TEST_NumSideCells() const;
  // How often the map moved to a larger table.
  uint32_t TEST_Generation() const;

 private:
  struct Bucket;
  struct Shard;
  struct Table;
  // The buckets of a shard, as one section sees them.
  struct View {
    Bucket* base = nullptr;
    uint32_t num_buckets = 0;
    uint32_t shard_bits = 0;
  };
  // An entry, with its place in the table and its link in the chain.
  struct Decoded {
    SequenceNumber seq = 0;
    uint64_t birth = 0;
    MapAddress address;
    MapMode mode = MapMode::kDirect;
    bool is_far = false;    // a versioned entry is far, see the .cc file
    bool has_link = false;  // the next older entry of the chain follows
    SequenceNumber link_seq = 0;
    uint64_t link_birth = 0;
    uint32_t bucket = 0;
    uint32_t index = 0;
    uint32_t side = OverflowCells::kNone;
    uint32_t link_side = OverflowCells::kNone;

    bool Is(const MapName& name) const {
      return seq == name.seq && birth == name.birth;
    }
    bool OlderThan(const MapName& name) const {
      return seq != name.seq ? seq < name.seq : birth < name.birth;
    }
  };
  using Chain = autovector<Decoded, 4>;
  using Lock = std::unique_lock<std::mutex>;

  // The names of the far entries of some keys. Thread-safe.
  struct FarNames {
    void Add(const MapName& name);
    void Remove(const MapName& name);
    bool Has(const MapName& name) const;
    // Those of the key that are older than seq.
    std::vector<MapName> Below(const MapKeyHash& key, SequenceNumber seq) const;

    mutable std::mutex mutex;  // taken after a shard's mutex
    std::set<MapName, MapNameLess> names;
    std::atomic<size_t> count{0};  // names.size(), read without the mutex
  };

  OverflowCells* SideOf(const MapKeyHash& key) const;
  FarNames* FarOf(const MapKeyHash& key) const;

  // Searches. Under torn reads the results are arbitrary, but the functions
  // end, and touch only memory of the map.
  void Prefetch(const View& view, uint32_t loc) const;
  bool Decode(const View& view, const MapKeyHash& key, uint32_t bucket,
              uint32_t index, Decoded* out) const;
  bool FindTop(const View& view, const MapKeyHash& key, Decoded* out) const;
  // Calls fn(bucket, index, meta) for the entries of the key that have, or may
  // have, their home at loc, until it returns true. Returns whether it did.
  template <typename Fn>
  bool ScanKey(const View& view, const MapKeyHash& key, uint32_t loc,
               const Fn& fn) const;
  // A versioned entry that is placed by the hash alone.
  bool FindNear(const View& view, const MapKeyHash& key, SequenceNumber seq,
                uint64_t birth, Decoded* out) const;
  // A superseded entry, or a versioned one that is not near.
  bool FindMixed(const View& view, const MapKeyHash& key, SequenceNumber seq,
                 uint64_t birth, Decoded* out) const;

  // Calls read(view) until it ran undisturbed; `again` is called before each
  // repetition. See the class comment.
  template <typename Read, typename Again>
  void ReadShard(const MapKeyHash& key, const Read& read,
                 const Again& again) const;
  template <typename Find>
  Lookup ReadPinned(const MapKeyHash& key, bool pin, const Find& find) const;

  // Locks the shard of the key in the table that it is in now. nullptr if
  // there is no table yet.
  Shard* LockShard(const MapKeyHash& key, Table** table, Lock* lock) const;

  // REQUIRES of the following: the shard's mutex.
  static View ViewOf(const Shard* shard, const Table* table);
  void BeginWrite(Shard* shard);
  void EndWrite(Shard* shard);
  void LoadChain(const View& view, const MapKeyHash& key, Chain* chain) const;
  void StoreChain(Shard* shard, const View& view, const MapKeyHash& key,
                  const Chain& old, Chain* now);
  void Place(Shard* shard, const View& view, const MapKeyHash& key,
             const Decoded& entry);
  // Makes the entry a versioned one, near or far.
  void PlaceVersioned(Shard* shard, const View& view, const MapKeyHash& key,
                      Decoded* entry);
  void Erase(Shard* shard, const View& view, const MapKeyHash& key,
             const Decoded& entry);
  bool FindVersioned(const View& view, const MapKeyHash& key,
                     SequenceNumber seq, uint64_t birth, Decoded* out) const;
  // At most as many as may be near.
  size_t CountNear(const View& view, const MapKeyHash& key) const;
  void InsertLocked(Shard* shard, const View& view, const Record& record,
                    uint32_t slot);
  bool RemoveIfInLocked(Shard* shard, const View& view, const MapName& name,
                        uint32_t slot);
  // Removes the chain's entries from index `first` on.
  void CutChain(Shard* shard, const View& view, const MapKeyHash& key,
                const Chain& chain, size_t first);
  // The hash of an entry, which is where the shard keeps its entries.
  static MapKeyHash KeyAt(const Table* table, const Shard* shard,
                          uint32_t bucket, uint32_t index);
  // The same of one that may be in a copy of the bucket. high: what the shard's
  // array has for the bucket; nullptr if the shard has none.
  static MapKeyHash KeyAt(const Table* table, const Shard* shard,
                          const Bucket& bucket, uint32_t index,
                          const uint16_t* high);

  // Makes room for one more entry of the key and returns its shard, locked.
  Status LockWithRoom(const MapKeyHash& key, Table** table, Shard** shard,
                      Lock* lock);
  Status GrowShard(Table* table, Shard* shard);
  // Call after removals. Looks at two words if there is nothing to do.
  void ShrinkIfSparse(Table* table, Shard* shard);
  // Readers use a copy meanwhile. REQUIRES: room for the shard's entries.
  void ResizeShard(Table* table, Shard* shard, uint32_t new_buckets);
  Status MakeNextTable(Table* table);
  void MoveShard(Table* table, Shard* shard);
  void HelpMove();

  Status Charge(size_t bytes, bool force);
  void Release(size_t bytes);
  std::unique_ptr<Table> NewTable(uint32_t shard_bits, uint32_t stride,
                                  Status* status);

  static constexpr uint32_t kNumSideStores = 64;

  BlobFileSlotTable* const files_;
  MapMemoryCharge* const charge_;
  uint64_t expected_;

  mutable std::mutex tables_mutex_;             // taken after a shard's mutex
  std::vector<std::unique_ptr<Table>> tables_;  // all that ever were
  std::atomic<Table*> current_{nullptr};

  mutable OverflowCells side_[kNumSideStores];
  mutable FarNames far_[kNumSideStores];

  mutable std::mutex charge_mutex_;  // taken last
  size_t used_ = 0;
  size_t charged_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
