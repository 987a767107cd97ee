//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "db/address_map/address_map_checkpoint.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyData;
class Logger;

// The images of address maps (AddressMapCheckpoint) in the directory of a
// database: saved when it is closed, loaded when it is opened. They have the
// names of temporary files, so any RocksDB deletes them once it has opened the
// database, and each is used once at most.
//
// Everything here may fail without harm: the map is built from the files then.
//
// Used by one thread.
class AddressMapCheckpoints {
 public:
  // io: as for AddressMapCheckpoint
  AddressMapCheckpoints(const AddressMapCheckpoint::Io& io,
                        const std::string& dbname, Logger* logger);

  // false: Find() finds none. For tools that examine the files.
  static void UseInThisProcess(bool use);

  // Finds the images that match the MANIFEST, if that is still the one with
  // this number and of this size: those of what was recovered. (A database
  // that is open read-only here may be open for writing elsewhere.)
  void Find(uint64_t manifest_number, uint64_t manifest_size);

  // Fills the map of the column family, which it creates if the options do not
  // ask for one, from its image. False, with an empty map, if there is none, if
  // it is damaged, or if a blob file of the map is missing or has another size
  // than the MANIFEST says. REQUIRES: Find() was called; there are no readers;
  // all of the MANIFEST's edits were applied.
  bool Load(ColumnFamilyData* cfd, int num_threads);

  // False if the map is empty, or not what the files say.
  bool IsWorthSaving(const ColumnFamilyData& cfd) const;
  // Writes an image of the column family's map, as file `number`; until it is
  // whole it is file `unfinished`. No SST or blob file of a Version may have
  // one of these numbers: the image would not be deleted as long as that is
  // there. The image is not synced: after a loss of power it is whole, or its
  // checksums tell that it is not.
  // REQUIRES: IsWorthSaving(*cfd); the MANIFEST has all edits and is closed; no
  // other thread changes the map.
  Status Save(ColumnFamilyData* cfd, uint64_t unfinished, uint64_t number);

 private:
  struct Image {
    std::string path;
    AddressMapCheckpoint::Header header;
  };

  // OK if all blob files of the map are there in their full size.
  Status CheckBlobFiles(ColumnFamilyData& cfd) const;
  // Of the current MANIFEST; without the column family.
  Status ReadManifest();
  // Any hash seed will do: an image is stored with that of its map.
  // REQUIRES: ReadManifest() was OK.
  AddressMapCheckpoint::Identity IdentityOf(uint32_t column_family_id,
                                            uint64_t hash_seed) const;

  const AddressMapCheckpoint::Io io_;
  const std::string dbname_;
  Logger* const logger_;
  bool has_manifest_ = false;
  AddressMapCheckpoint::Identity manifest_;
  std::map<uint32_t, Image> images_;  // by column family
};

}  // namespace ROCKSDB_NAMESPACE
