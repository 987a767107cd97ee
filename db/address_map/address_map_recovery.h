//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/blob_v2/blob_format_v2.h"
#include "file/random_access_file_reader.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class BlobFileMetaData;
class ColumnFamilyData;
class AddressMapStore;
class Version;

// Rebuilds the address map of a column family from its files when the database
// is opened: the SST files have the names of the values that a reader could
// reach, the record indexes of the blob files have the addresses.
//
// 1. The keys of all SST files (MappedKeyScan). The name of the newest value of
//    each goes into the map, without an address. What it hides needs none:
//    after a restart there is no snapshot.
// 2. The record indexes, in parallel files: a record whose name is in the map
//    gives it the address. Other records are garbage. If two files have a
//    record of one name, the one with the higher number counts: a garbage
//    collection was interrupted before the old file was dropped.
// 3. A name without an address is corruption: the value is lost.
//
// A blob file that is missing, cut off or damaged costs the values that only it
// has, no others. If there are none of these, it is dropped like any file
// without live values. Else it stays on disk and in the MANIFEST, because it
// may be replaced by a copy, and the map is not saved: each open looks at the
// files again.
//
// With all_versions the names of older values go into the map, too. One of
// those without an address is none: a compaction or a flush has removed the
// value.
//
// Values are not read.
class AddressMapRecovery {
 public:
  struct Options {
    FileOptions file_options;
    int num_threads = 1;
    // A lost value does not fail the recovery. Its key cannot be read.
    bool allow_lost_values = false;
    // Not only the newest value of a key may be read: it may be one that a
    // transaction has prepared, and not committed.
    bool all_versions = false;
  };

  struct Stats {
    uint64_t entries = 0;
    uint64_t live_values = 0;
    uint64_t records = 0;
    uint64_t restored_blocks = 0;
    uint64_t lost_values = 0;
    uint64_t damaged_files = 0;
    uint64_t micros = 0;
  };

  // Has the current Version mapped entries, or files of their values?
  static bool HasMapped(ColumnFamilyData& cfd);

  // Makes the map of a column family complete: AddressMapStore::ready().
  // Creates it if there are mapped values though the options do not ask for a
  // map. REQUIRES: the MANIFEST was read, no memtable was flushed since, there
  // are no readers.
  static Status Recover(ColumnFamilyData* cfd, const Options& options,
                        Stats* stats);

 private:
  struct BlobFile {
    uint64_t number = 0;
    uint32_t slot = 0;
    std::string name;
    BlobFileLayoutV2 layout;
    std::unique_ptr<RandomAccessFileReader>
        reader;  // nullptr: it has no layout
    // OK if each of its records was found.
    Status damage;
  };

  AddressMapRecovery(ColumnFamilyData* cfd, const Options& options,
                     Stats* stats);

  Status Run();
  Status OpenBlobFiles();
  // Opens the file and reads its layout.
  Status OpenBlobFile(const BlobFileMetaData& meta, BlobFile* file) const;
  // May a recovery go on without the file that has failed so? Not if it may be
  // a matter of the moment, as when there are too many open files.
  bool IsDamage(const Status& s) const;
  Status JoinSstFiles();
  Status JoinRecordIndexes();
  Status JoinRecordIndex(BlobFile* file);
  void SetAddress(const AddressMap::Record& record, const BlobFile& file);
  Status ForgetDead();
  Status CheckLost();
  // Keeps what is damaged, or tells that nothing of it is needed.
  void SettleDamagedFiles();
  std::string DescribeDamage() const;
  bool HasDamagedFiles() const;
  void LogProgress(uint64_t done, uint64_t total, const char* what);

  ColumnFamilyData* const cfd_;
  Version* const version_;
  AddressMapStore* const blobs_;
  const Options& options_;
  Stats* const stats_;
  std::vector<BlobFile> files_;
  uint64_t num_entries_ = 0;  // by the metadata: 0 for files of old releases
  std::atomic<uint64_t> next_progress_;
  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> restored_blocks_{0};
};

}  // namespace ROCKSDB_NAMESPACE
