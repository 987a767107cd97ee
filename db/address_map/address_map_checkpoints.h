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

// Manages the images of address maps (AddressMapCheckpoint) in the directory of
// a database. They are saved when the database is closed and loaded when it is
// opened. They have the names of temporary files, so any RocksDB deletes them
// once it has opened the database, and each image is used at most once.
//
// All functions may fail without harm: the map is then built from the files.
//
// Used by one thread.
class AddressMapCheckpoints {
 public:
  // io: as for AddressMapCheckpoint.
  AddressMapCheckpoints(const AddressMapCheckpoint::Io& io,
                        const std::string& dbname, Logger* logger);

  // Sets whether Find() may find images. Set to false by tools that examine the
  // files.
  static void UseInThisProcess(bool use);

  // Finds the images that match the MANIFEST, provided that the MANIFEST still
  // has the number and the size (in bytes) with which it was recovered. (A
  // database that is open read-only in this process may be open for writing in
  // another one.)
  void Find(uint64_t manifest_number, uint64_t manifest_size);

  // Fills the map of the column family from its image. Creates the map if the
  // options do not ask for one. Returns false, with an empty map, if there is
  // no image, if it is damaged or has other blob files than the MANIFEST, or if
  // a blob file of the map is missing or does not have the size that the
  // MANIFEST says.
  // REQUIRES: Find() was called; there are no readers; all edits of the
  // MANIFEST were applied.
  bool Load(ColumnFamilyData* cfd, int num_threads);

  // Returns false if the map is empty or does not match the files.
  bool IsWorthSaving(const ColumnFamilyData& cfd) const;
  // Writes an image of the column family's map. The image is not synced: after
  // a power failure it is either complete or its checksums show that it is not.
  // unfinished: file number of the image until it is complete.
  // number: file number of the complete image.
  // REQUIRES: IsWorthSaving(*cfd); the MANIFEST has all edits and is closed; no
  // other thread changes the map; no SST or blob file of a Version has one of
  // the two numbers (otherwise the image would not be deleted as long as that
  // file exists).
  Status Save(ColumnFamilyData* cfd, uint64_t unfinished, uint64_t number);

 private:
  struct Image {
    std::string path;
    AddressMapCheckpoint::Header header;
  };

  // Returns OK if all blob files of the map exist and have their full size.
  Status CheckBlobFiles(ColumnFamilyData& cfd) const;
  // Returns OK if the map, which was filled from the image at this path, has
  // the blob files of the MANIFEST with their sizes and paths.
  static Status CompareBlobFiles(ColumnFamilyData& cfd,
                                 const std::string& image);
  // Sets manifest_ to the identity of the current MANIFEST, without the fields
  // of the column family.
  Status ReadManifest();
  // Completes manifest_ with the fields of a column family.
  // hash_seed: may be arbitrary, as an image is stored with the seed of its
  // map.
  // REQUIRES: ReadManifest() returned OK.
  AddressMapCheckpoint::Identity IdentityOf(uint32_t column_family_id,
                                            uint64_t hash_seed) const;

  const AddressMapCheckpoint::Io io_;
  const std::string dbname_;
  Logger* const logger_;
  bool has_manifest_ = false;
  AddressMapCheckpoint::Identity manifest_;
  std::map<uint32_t, Image> images_;  // by column family id
};

}  // namespace ROCKSDB_NAMESPACE
