//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "db/address_map/address_map.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Writes and loads an image of one column family's address map and of its table
// of files. The image is written when a database is closed and loaded when it
// is reopened. It saves joining the SST files with the record indexes of the
// blob files, but is never required: if there is no image, or it does not load,
// the caller does the join.
//
// The map is a function of the files that the MANIFEST names (and of nothing
// else that matters after a restart, when there are no snapshots). So an image
// is valid exactly as long as the MANIFEST has the same bytes: the image
// contains the MANIFEST's number, size and 128-bit hash.
//
// Invariants:
// 1. Only committed content is written: entries in mode direct or versioned, in
//    files that are live, and lost entries. If the map has any other content,
//    no image is written.
// 2. At any time, and after a crash at any time, the file at `path` is either
//    the old one or the complete new one.
// 3. A Load() that returns OK has filled the map with exactly the entries that
//    were written. Every byte of the file was covered by a check.
//
// Format: See docs/formats.md. The file consists of blocks of at most 64 KiB,
// with one section for each part of the map, so that threads load sections
// independently.
//
// Memory: Write() needs room for the entries of the largest part of the map
// (1/1024 of them if there are many; up to 100 bytes each) and a few blocks.
// Each thread of Load() needs the same and 512 KiB. Both need some 100 bytes
// for each blob file. Counts and lengths in the file are not trusted beyond
// what the size of the file makes possible.
//
// Thread-safe: there is no state. No function takes a lock of the caller.
class AddressMapCheckpoint {
 public:
  // The state that an image belongs to. An image is valid only if all fields
  // match.
  struct Identity {
    uint64_t manifest_number = 0;
    uint64_t manifest_size = 0;      // bytes
    uint64_t manifest_hash_low = 0;  // XXH3, 128 bits
    uint64_t manifest_hash_high = 0;
    uint32_t column_family_id = 0;
    uint64_t hash_seed = 0;  // seed of MapKeyHash

    bool operator==(const Identity& o) const {
      return manifest_number == o.manifest_number &&
             manifest_size == o.manifest_size &&
             manifest_hash_low == o.manifest_hash_low &&
             manifest_hash_high == o.manifest_hash_high &&
             column_family_id == o.column_family_id && hash_seed == o.hash_seed;
    }
  };

  struct Header {
    Identity identity;
    uint64_t num_entries = 0;  // for AddressMap::Options::expected_entries
  };

  // Parameters for I/O. file_options.rate_limiter, if there is one, is charged
  // with the priority in io_options; io_options are passed to every call that
  // takes them.
  struct Io {
    FileSystem* fs = nullptr;
    FileOptions file_options;
    IOOptions io_options;
    bool use_fsync = false;
  };

  AddressMapCheckpoint() = delete;

  // Sets the MANIFEST's size and hash in *identity. The caller must set the
  // other fields.
  // REQUIRES: no thread writes to the file.
  static Status HashManifest(const Io& io, const std::string& manifest_path,
                             Identity* identity);

  // Writes the image to temp_path, syncs it, renames it to path and syncs the
  // directory. Returns Aborted if the map cannot be written: a file is building
  // or pending, an entry is superseded or in a file that is not live, or the
  // map changed meanwhile. If the function fails before the renaming, the file
  // at path is unchanged and temp_path is deleted if possible. If only the last
  // sync fails, the new file exists but may not survive a crash.
  // directory: the directory of path and temp_path. If it is nullptr, nothing
  // is synced, and a power failure may leave a file that Load() and
  // ReadHeader() refuse.
  // REQUIRES: no thread changes the map or its files; identity is that of the
  // MANIFEST that names the map's files.
  static Status Write(const Io& io, const std::string& temp_path,
                      const std::string& path, FSDirectory* directory,
                      const Identity& identity, const AddressMap& map);

  // Reads the header of an image, to find the image of a column family among
  // several. Returns the same statuses as Load().
  static Status ReadHeader(const Io& io, const std::string& path,
                           Header* header);

  // Fills the map, and its table of files, from the image. The files are added
  // in state live. The caller compares them with those of the MANIFEST.
  //
  //   OK          The map and the live counts are as they were written.
  //   Expired     The file is not an image, or the image has another identity
  //               or another version of the format. The message says what
  //               differs. The map and the table are unchanged.
  //   Corruption  The image has this identity, but is damaged. The message
  //               names the file and the offset.
  //   others      Errors of the file system (IOError, also if there is no such
  //               file) or of the map (its memory charge), or Aborted if the
  //               table is full.
  //
  // After a status other than OK and Expired, the map and the table may be
  // partly filled. The caller must discard both, the map first. (If the table
  // must be kept, AddressMap::Forget() with all its slots and kLostSlot resets
  // its counts to zero; the map is then as good as a new one.)
  // The file is only read.
  //
  // REQUIRES: the map has no entries and its table no files; both are not
  // shared with other threads yet; every edit of the MANIFEST was applied (not
  // so in best-efforts recovery).
  static Status Load(const Io& io, const std::string& path,
                     const Identity& expected, int num_threads,
                     AddressMap* map);
};

}  // namespace ROCKSDB_NAMESPACE
