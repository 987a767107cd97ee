// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "db/address_map/blob_file_slot_table.h"
#include "db/address_map/map_entries.h"
#include "db/address_map/map_memory_account.h"
#include "db/address_map/map_name.h"
#include "db/address_map/map_tables.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

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
// The parts: MapTables finds the shard of a key and gives it room, MapEntries
// finds and changes entries in it, and this class makes each operation one
// critical section and keeps the live counts.
//
// Concurrency: Every operation on one key or name is atomic: it happens in one
// critical section of the key's shard. Writers of a shard exclude each other by
// the shard's mutex. Readers take no lock: they read, then check the shard's
// version counter, and retry if it has changed. After many attempts they take
// the mutex if it is free (MapTables::Read()). Readers do not wait while a
// shard grows or shrinks: they are redirected to a copy of it (a shard has at
// most 64 Ki entries, and grows by 1/16).
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

  // The hidden entries of a key that stay in the map for a reader.
  struct LeftEntries {
    // The largest sequence number of the entries plus 1, or 0 if there are
    // none. The sequence number of an entry can be 0.
    SequenceNumber below = 0;
    // The largest birth of the entries plus 1, or 0 if there are none.
    uint64_t born_before = 0;
  };

  // Number of parts, ordered by hash, in which the map can be walked. A small
  // map has fewer shards; walking one part of it looks through a whole shard.
  static constexpr uint32_t kNumParts = 1024;

  // REQUIRES: files outlives the map.
  AddressMap(const Options& options, BlobFileSlotTable* files);
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;

  // Sets Options::expected_entries.
  // REQUIRES: nothing was added yet; no other thread uses the map.
  void Expect(uint64_t entries) { tables_.Expect(entries); }

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
  // born_before: file number; entries that were born at it or later stay. The
  // transaction that has added them removes those that are hidden.
  // REQUIRES: the edit with these records is committed; all entries that were
  // born before `born_before` and are older by their sequence numbers are
  // hidden by it.
  void CommitBatch(const Record* records, size_t n, uint64_t born_before);

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

  // Removes the entries of the key, in any mode, whose sequence numbers are at
  // least `from` and less than `below`, and which were born before the file
  // number `born_before`. Returns the number of removed entries.
  // left: receives what is known of the entries below `from` that were born
  // before `born_before`.
  // REQUIRES: from <= below; a committed non-merge entry of the key at `below`
  // hides the removed entries; no reader reads or will read at a sequence
  // number from `from` to `below` - 1.
  size_t RemoveHidden(const MapKeyHash& key, SequenceNumber from,
                      SequenceNumber below, uint64_t born_before,
                      LeftEntries* left);

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

  uint64_t NumEntries() const { return tables_.NumEntries(); }
  // Returns the resident memory of entries, shards and overflow cells in bytes,
  // without that of the file table.
  size_t MemoryUsage() const { return memory_.Used(); }

  BlobFileSlotTable* files() const { return files_; }

  // Checks all invariants of the data structure. Slow.
  Status TEST_Check() const;
  size_t TEST_NumSideCells() const { return entries_.NumSideCells(); }
  // Returns the number of moves to a larger table.
  uint32_t TEST_Generation() const {
    return static_cast<uint32_t>(tables_.NumTables());
  }

 private:
  using Chain = MapEntries::Chain;
  using Lock = MapTables::Lock;

  template <typename Find>
  Lookup ReadPinned(const MapKeyHash& key, bool pin, const Find& find) const;

  // Appends the entries of the part that are in the shard of `at`, as of one
  // moment. Returns the number of bits of the hash that determine the shard.
  // REQUIRES: there is a table.
  uint32_t CopyPart(const MapKeyHash& at, uint32_t part,
                    std::vector<Entry>* entries) const;

  // REQUIRES: the shard's mutex is held.
  void InsertLocked(MapShard* shard, const MapShardView& view,
                    const Record& record, uint32_t slot);
  // REQUIRES: the shard's mutex is held.
  bool RemoveIfInLocked(MapShard* shard, const MapShardView& view,
                        const MapName& name, uint32_t slot);
  // Removes those of the chain's entries from index `first` on that were born
  // before the file number `born_before`.
  // REQUIRES: the shard's mutex is held.
  void CutChain(MapShard* shard, const MapShardView& view,
                const MapKeyHash& key, const Chain& chain, size_t first,
                uint64_t born_before);

  BlobFileSlotTable* const files_;
  MapMemoryAccount memory_;
  MapTables tables_;
  MapEntries entries_;
};

}  // namespace ROCKSDB_NAMESPACE
