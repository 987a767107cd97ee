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

// 96 bits of a seeded hash of a user key, which identify the key in the map.
// Each column family has a random seed, so that keys cannot be chosen to
// collide.
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

// The name of a separated value. The names of one key are ordered by sequence
// number, then by birth. A birth is a file number, so of two values with the
// same sequence number the later one has the higher birth.
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
  uint32_t slot = BlobFileSlotTable::kLostSlot;  // in the BlobFileSlotTable
  uint32_t offset = 0;                           // bytes, start of the record
  uint32_t size = 0;                             // bytes, the whole record

  bool operator==(const MapAddress& o) const {
    return slot == o.slot && offset == o.offset && size == o.size;
  }
};

enum class MapMode : uint8_t {
  kDirect = 0,      // the newest direct entry of its key
  kVersioned = 1,   // found only by its whole name
  kSuperseded = 2,  // an older direct entry; a newer one is not committed yet
};

// Charges the map's memory, for example to a CacheReservationManager. Called
// with a mutex of the map held.
class MapMemoryCharge {
 public:
  virtual ~MapMemoryCharge() = default;
  // Sets the charged memory.
  // total: bytes, a multiple of 256 KiB.
  // If the status is not OK, the map calls again with the old total and does
  // without the memory. Operations that must not fail (undo, moving of
  // addresses) use the memory in spite of the error.
  virtual Status SetCharged(size_t total) = 0;
};

// A hash table that maps the separated values of a column family to their
// addresses in the blob files.
//
//   direct(key) -> (seq, birth, address)     versioned(name) -> address
//
// Invariants:
// 1. At most one entry has a given name.
// 2. The direct entries of a key form a chain, newest first. The first entry is
//    in mode direct. The others are superseded and are kept only until the
//    entries above them are committed.
// 3. The live counts in BlobFileSlotTable are exact after every operation.
//
// Concurrency: Every operation on one key or name is atomic: it happens in one
// critical section of the key's shard. Writers of a shard exclude each other by
// the shard's mutex. Readers take no lock: they read, then check the shard's
// version counter, and retry if it has changed. After kMaxSpins attempts they
// take the mutex if it is free. Readers do not wait while a shard grows or
// shrinks: they are redirected to a copy of it (a shard has at most 64 Ki
// entries, and grows by 1/16).
//
// Linearization points: A change takes effect at the store that makes the
// version counter odd (no reader uses the shard until the counter is even
// again). A lookup takes effect at any moment between its first and its last
// load of the counter, which were equal. A batch is not atomic as a whole.
//
// A change that follows a lookup's last load happens after the lookup. A lookup
// whose first load sees a change (acquire) sees everything that the writer did
// before the change.
//
// Memory: Entries of 26 bytes are stored in buckets of 512 bytes, and a shard
// grows by 1/16, so an entry takes at most ~31.2 bytes where shards are large.
// A map of a thousand entries takes about 50 KB. A shard that is less than half
// full gives memory back. Nothing is allocated per entry. One or two overflow
// cells of 24 bytes are used for an entry in a chain of two or more, an entry
// whose birth is neither 0 nor the number of its file, a record of 256 KiB or
// more, and a sequence number of 2^48 or more. A versioned entry takes about 80
// bytes more if its key has four other versioned entries.
//
// The layout is described in the .cc file.
class AddressMap {
 public:
  struct Options {
    // Expected number of entries. A good estimate saves moves to larger tables;
    // a wrong one only costs such moves.
    uint64_t expected_entries = 0;
    // Charged with the map's memory. May be nullptr. Must outlive the map.
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
    // Pins the entry's file if the entry was found and a pin was requested.
    MapFilePin pin;
    // The sequence number of the newest direct entry of the key, if the key has
    // one, whether or not that entry was looked up.
    bool has_direct = false;
    SequenceNumber direct_seq = 0;
  };

  enum class RenameResult : uint8_t {
    kRenamed,        // was versioned, is direct now
    kAlreadyDirect,  // was direct or superseded
    kNewerDirect,    // stays versioned: a newer direct entry exists
    kGone,           // no entry has the name
  };

  // Number of parts, ordered by hash, in which the map can be walked. A small
  // map has fewer shards; walking one part of it looks through a whole shard.
  static constexpr uint32_t kNumParts = 1024;

  // REQUIRES: files outlives the map.
  AddressMap(const Options& options, BlobFileSlotTable* files);
  ~AddressMap();
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;

  // Sets Options::expected_entries.
  // REQUIRES: nothing was added yet; no other thread uses the map.
  void Expect(uint64_t entries) { expected_ = entries; }

  // ---- Lookups. Lock-free as described above.

  // Prefetches the memory of a key that will soon be looked up or moved. For
  // loops over many keys, as a lookup spends most of its time waiting for
  // memory.
  void Prefetch(const MapKeyHash& key) const;

  // Stores the sequence number of the newest direct entry in *seq. Returns
  // false if there is no direct entry.
  bool DirectSeq(const MapKeyHash& key, SequenceNumber* seq) const;
  // Returns the newest direct entry.
  // pin: pin the entry's file; likewise in the functions below.
  Lookup FindDirect(const MapKeyHash& key, bool pin) const;
  // Returns the newest direct entry whose file is in a committed edit.
  Lookup FindDurableDirect(const MapKeyHash& key, bool pin) const;
  // Returns the entry with this name, in any mode, along with the newest direct
  // sequence number, both as of the same moment.
  Lookup FindByName(const MapName& name, bool pin) const;
  // Returns false if no entry of the key, in any mode, is older than seq. True
  // means that there may be one.
  bool MayHaveBelow(const MapKeyHash& key, SequenceNumber seq) const;

  // ---- Changes.

  // Adds the records of one file, in any order. A direct record that is newer
  // than the direct entry supersedes it; an older one is inserted into the
  // chain in order. A name that exists already gets the new address and mode.
  // If the status is not OK, some of the records may have been added; the
  // caller must call UndoBatch().
  // REQUIRES: the file is building, pending or live, and the records are
  // durable in it.
  Status InsertBatch(uint32_t slot, const Record* records, size_t n);

  // Undoes InsertBatch(): removes each name whose address is still in this
  // file. The entries that these names superseded become current again,
  // wherever they have moved meanwhile. May be repeated, and may be given
  // records that were never added.
  // REQUIRES: the edit with these records was not and will not be committed.
  void UndoBatch(uint32_t slot, const Record* records, size_t n);

  // Removes the direct entries that are older than the direct records.
  // REQUIRES: the edit with these records is committed.
  void CommitBatch(const Record* records, size_t n);

  // Changes a versioned entry into a direct one. Removes older direct entries.
  // REQUIRES: the name is committed, and hides older entries of its key from
  // every snapshot.
  RenameResult Rename(const MapName& name);

  // Changes a direct entry into a versioned one, so that its value can no
  // longer be found by the key alone. Removes older direct entries. Returns
  // false if there is no such name.
  // REQUIRES: the name is committed.
  bool Demote(const MapName& name);

  // Demotes all direct entries. Not atomic.
  // REQUIRES: all direct entries are committed.
  void DemoteAll();

  // Removes the name. If it is a direct entry, also removes the older direct
  // entries, as a committed entry hides them. Returns false if there is no such
  // name.
  // REQUIRES: the name is committed.
  bool Remove(const MapName& name);

  // Undoes one insertion: removes the name if its address is in this file. The
  // entry that it superseded becomes current again. Returns false if the name
  // is not in this file.
  bool RemoveIfIn(const MapName& name, uint32_t slot);

  // Removes the entries of the key, in any mode, that are newer than `above`
  // and older than `below`. Returns the number of removed entries.
  // newest_left: receives the sequence number of the newest entry that is not
  // newer than `above`, or 0 if there is none.
  // REQUIRES: above < below; a committed non-merge entry of the key at `below`
  // hides the removed entries; no reader reads or will read at a sequence
  // number from `above` + 1 to `below` - 1.
  size_t RemoveHidden(const MapKeyHash& key, SequenceNumber above,
                      SequenceNumber below, SequenceNumber* newest_left);

  // Changes the address of the entry, in any mode, if it is still `from`.
  // Returns true if it did so.
  bool SwapAddress(const MapName& name, const MapAddress& from,
                   const MapAddress& to);

  // Removes all entries in these files, each as by RemoveIfIn(), in one sweep
  // of the map. Holds the mutex of one shard at a time. Returns the number of
  // removed entries.
  // REQUIRES: no thread inserts entries in these files or moves entries to
  // them, or will do so.
  size_t Forget(const std::vector<uint32_t>& slots);

  // ---- All entries.

  // Calls fn for each entry of the part, roughly in hash order. The entries of
  // each shard are a copy as of one moment. fn may use the map.
  // REQUIRES: part < kNumParts.
  void ForEachInPart(uint32_t part,
                     const std::function<void(const Entry&)>& fn) const;

  uint64_t NumEntries() const;
  // Returns the resident memory of entries, shards and overflow cells in bytes,
  // without that of the file table.
  size_t MemoryUsage() const;

  BlobFileSlotTable* files() const { return files_; }

  // Checks all invariants of the data structure. Slow.
  Status TEST_Check() const;
  size_t TEST_NumSideCells() const;
  // Returns the number of moves to a larger table.
  uint32_t TEST_Generation() const;

 private:
  struct Bucket;
  struct Shard;
  struct Table;
  // The buckets of a shard, as one critical section sees them.
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
    bool is_far = false;    // true for a far versioned entry, see the .cc file
    bool has_link = false;  // true if the chain has a next older entry
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
    // Returns the names of the key that are older than seq.
    std::vector<MapName> Below(const MapKeyHash& key, SequenceNumber seq) const;

    mutable std::mutex mutex;  // taken after a shard's mutex
    std::set<MapName, MapNameLess> names;
    std::atomic<size_t> count{0};  // names.size(), read without the mutex
  };

  OverflowCells* SideOf(const MapKeyHash& key) const;
  FarNames* FarOf(const MapKeyHash& key) const;

  // Search functions, down to FindMixed(). With torn reads their results are
  // arbitrary, but they terminate and access only memory of the map.
  void Prefetch(const View& view, uint32_t loc) const;
  bool Decode(const View& view, const MapKeyHash& key, uint32_t bucket,
              uint32_t index, Decoded* out) const;
  bool FindTop(const View& view, const MapKeyHash& key, Decoded* out) const;
  // Calls fn(bucket, index, meta) for the entries of the key whose home is, or
  // may be, at loc, until fn returns true. Returns whether fn did.
  template <typename Fn>
  bool ScanKey(const View& view, const MapKeyHash& key, uint32_t loc,
               const Fn& fn) const;
  // Finds a versioned entry that is placed by the hash alone.
  bool FindNear(const View& view, const MapKeyHash& key, SequenceNumber seq,
                uint64_t birth, Decoded* out) const;
  // Finds a superseded entry, or a versioned one that is not near.
  bool FindMixed(const View& view, const MapKeyHash& key, SequenceNumber seq,
                 uint64_t birth, Decoded* out) const;

  // Calls read(view) until no writer interfered. Calls again() before each
  // repetition. See the class comment.
  template <typename Read, typename Again>
  void ReadShard(const MapKeyHash& key, const Read& read,
                 const Again& again) const;
  template <typename Find>
  Lookup ReadPinned(const MapKeyHash& key, bool pin, const Find& find) const;

  // Locks the key's shard in the table that currently holds it. Returns nullptr
  // if there is no table yet.
  Shard* LockShard(const MapKeyHash& key, Table** table, Lock* lock) const;

  // REQUIRES: the shard's mutex is held.
  static View ViewOf(const Shard* shard, const Table* table);
  // REQUIRES: the shard's mutex is held.
  void BeginWrite(Shard* shard);
  // REQUIRES: the shard's mutex is held.
  void EndWrite(Shard* shard);
  // REQUIRES: the shard's mutex is held.
  void LoadChain(const View& view, const MapKeyHash& key, Chain* chain) const;
  // REQUIRES: the shard's mutex is held.
  void StoreChain(Shard* shard, const View& view, const MapKeyHash& key,
                  const Chain& old, Chain* now);
  // REQUIRES: the shard's mutex is held.
  void Place(Shard* shard, const View& view, const MapKeyHash& key,
             const Decoded& entry);
  // Places the entry as a versioned one, near or far.
  // REQUIRES: the shard's mutex is held.
  void PlaceVersioned(Shard* shard, const View& view, const MapKeyHash& key,
                      Decoded* entry);
  // REQUIRES: the shard's mutex is held.
  void Erase(Shard* shard, const View& view, const MapKeyHash& key,
             const Decoded& entry);
  // REQUIRES: the shard's mutex is held.
  bool FindVersioned(const View& view, const MapKeyHash& key,
                     SequenceNumber seq, uint64_t birth, Decoded* out) const;
  // Returns the number of near entries of the key, at most kMaxNear.
  // REQUIRES: the shard's mutex is held.
  size_t CountNear(const View& view, const MapKeyHash& key) const;
  // REQUIRES: the shard's mutex is held.
  void InsertLocked(Shard* shard, const View& view, const Record& record,
                    uint32_t slot);
  // REQUIRES: the shard's mutex is held.
  bool RemoveIfInLocked(Shard* shard, const View& view, const MapName& name,
                        uint32_t slot);
  // Removes the chain's entries from index `first` on.
  // REQUIRES: the shard's mutex is held.
  void CutChain(Shard* shard, const View& view, const MapKeyHash& key,
                const Chain& chain, size_t first);
  // Returns the hash of an entry that is in the shard's own buckets.
  // REQUIRES: the shard's mutex is held.
  static MapKeyHash KeyAt(const Table* table, const Shard* shard,
                          uint32_t bucket, uint32_t index);
  // Returns the hash of an entry of a bucket that may be a copy.
  // high: the part of the shard's array of high hash bits for this bucket;
  // nullptr if the shard has no such array.
  // REQUIRES: the shard's mutex is held.
  static MapKeyHash KeyAt(const Table* table, const Shard* shard,
                          const Bucket& bucket, uint32_t index,
                          const uint16_t* high);

  // Makes room for one more entry of the key and returns the key's shard,
  // locked.
  Status LockWithRoom(const MapKeyHash& key, Table** table, Shard** shard,
                      Lock* lock);
  Status GrowShard(Table* table, Shard* shard);
  // Makes the shard smaller if it is less than half full. Called after
  // removals. Reads only two words if there is nothing to do.
  void ShrinkIfSparse(Table* table, Shard* shard);
  // Changes the number of buckets of the shard. Readers use a copy meanwhile.
  // REQUIRES: the shard's entries fit into new_buckets.
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
  std::vector<std::unique_ptr<Table>> tables_;  // includes replaced tables
  std::atomic<Table*> current_{nullptr};

  mutable OverflowCells side_[kNumSideStores];
  mutable FarNames far_[kNumSideStores];

  mutable std::mutex charge_mutex_;  // taken last
  size_t used_ = 0;
  size_t charged_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
