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
// is opened. The SST files have the names of the values that a reader could
// reach, the record indexes of the blob files have the addresses.
//
// 1. Scan the keys of all SST files (MappedKeyScan). The name of the newest
//    value of each key goes into the map, without an address. Hidden values are
//    not needed, as there are no snapshots after a restart.
// 2. Read the record indexes, several files in parallel. A record whose name is
//    in the map gives that entry its address. Other records are garbage. If two
//    files have records with the same name, the file with the higher number
//    wins: a garbage collection was interrupted before the old file was
//    dropped.
// 3. A name that has no address then is a corruption: the value is lost.
//
// If a blob file is missing, truncated or damaged, only values that no other
// file has are lost. If there are no such values, the file is dropped like any
// file without live values. Otherwise it is kept on disk and in the MANIFEST,
// because the user may replace it with a copy, and the map is not saved, so
// that each open examines the files again.
//
// With all_versions the names of older values go into the map, too. If such a
// name has no address, the value is not lost: a compaction or a flush has
// removed it.
//
// Values are not read.
class AddressMapRecovery {
 public:
  struct Options {
    FileOptions file_options;
    int num_threads = 1;
    // If true, a lost value does not fail the recovery. Its key cannot be read.
    bool allow_lost_values = false;
    // Set if readers may need older values of a key than the newest one, which
    // a transaction may have prepared but not committed.
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

  // Returns true if the current Version has mapped entries or blob files with
  // their values.
  static bool HasMapped(ColumnFamilyData& cfd);

  // Rebuilds the map of a column family and marks it as ready
  // (AddressMapStore::ready()). Creates the map if there are mapped values
  // although the options do not ask for a map.
  // REQUIRES: the MANIFEST was read; no memtable was flushed since; there are
  // no readers.
  static Status Recover(ColumnFamilyData* cfd, const Options& options,
                        Stats* stats);

 private:
  struct BlobFile {
    uint64_t number = 0;
    uint32_t slot = 0;
    std::string name;
    BlobFileLayoutV2 layout;
    bool has_layout = false;  // it could be read
    // OK if all records of the file were found.
    Status damage;
  };

  AddressMapRecovery(ColumnFamilyData* cfd, const Options& options,
                     Stats* stats);

  Status Run();
  // Reads the layouts of all files. A file is open only while it is being read:
  // there may be more files than the process may have open.
  Status ReadLayouts();
  Status ReadLayout(const BlobFileMetaData& meta, BlobFile* file) const;
  Status OpenBlobFile(const BlobFile& file,
                      std::unique_ptr<RandomAccessFileReader>* reader) const;
  // Returns true if recovery may continue without the file whose access failed
  // with status s. False for errors that may be transient, such as too many
  // open files.
  bool IsDamage(const Status& s) const;
  Status JoinSstFiles();
  Status JoinRecordIndexes();
  Status JoinRecordIndex(BlobFile* file);
  void SetAddress(const AddressMap::Record& record, const BlobFile& file);
  Status ForgetDead();
  Status CheckLost();
  // Keeps the damaged files, or logs that none of their values are needed.
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
  uint64_t num_entries_ = 0;  // from metadata, where old files count as 0
  std::atomic<uint64_t> next_progress_;
  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> restored_blocks_{0};
};

}  // namespace ROCKSDB_NAMESPACE
