//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "db/address_map/address_map.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// An image of one column family's address map and of its table of files,
// written when a database is closed and loaded when it is opened again. It
// saves joining the SST files with the record indexes of the blob files, and
// is never needed: without it, or with one that does not load, the caller does
// the join.
//
// The map is a function of the files that the MANIFEST names (and of nothing
// else that matters after a restart, when there are no snapshots). So an image
// is valid exactly as long as the MANIFEST has the bytes that it had: it
// carries the number, the size and a 128-bit hash of them.
//
// Invariants:
// * Only committed content is written: entries in mode direct or versioned,
//   in files that are live, and lost ones. Anything else refuses the image.
// * Under `path` there is, at any moment and after a crash at any moment, the
//   old file or the complete new one.
// * A load that is OK has filled the map with exactly the entries that were
//   written; every byte of the file was covered by a check.
//
// Format: docs/formats.md. Blocks of at most 64 KiB; one section for each part
// of the map, so that threads load sections independently.
//
// Memory: Write needs room for the entries of the largest part of the map
// (1/1024 of them if there are many; up to 100 bytes each) and a few blocks;
// each thread of Load the same and 512 KiB; both, some 100 bytes for each blob
// file. Counts and lengths are believed only as far as the bytes of the file
// bear them out.
//
// Thread-safe: there is no state. Nothing here takes a lock of the caller.
class AddressMapCheckpoint {
 public:
  // What an image must have been made for to be valid. All fields count.
  struct Identity {
    uint64_t manifest_number = 0;
    uint64_t manifest_size = 0;
    uint64_t manifest_hash_low = 0;  // XXH3, 128 bits
    uint64_t manifest_hash_high = 0;
    uint32_t column_family_id = 0;
    uint64_t hash_seed = 0;  // of MapKeyHash

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

  // How to do I/O. file_options.rate_limiter, if there is one, is charged with
  // the priority in io_options; io_options go to every call that takes them.
  struct Io {
    FileSystem* fs = nullptr;
    FileOptions file_options;
    IOOptions io_options;
    bool use_fsync = false;
  };

  AddressMapCheckpoint() = delete;

  // Sets the MANIFEST's size and hash in *identity; the rest is the caller's.
  // REQUIRES: nobody writes to the file.
  static Status HashManifest(const Io& io, const std::string& manifest_path,
                             Identity* identity);

  // Writes the image to temp_path, syncs it, renames it to path and syncs the
  // directory. Aborted if the map is not in a state to be written: a file is
  // building or pending, an entry is superseded or in a file that is not live,
  // or the map changed meanwhile. On failure before the renaming, what was
  // under path is untouched and temp_path is deleted if that is possible; if
  // only the last sync fails, the new file is there but may not survive a
  // crash.
  // REQUIRES: nobody changes the map or its files; identity is that of the
  // MANIFEST that names the map's files; directory is that of path, and
  // temp_path is in it. With nullptr for the directory nothing is synced: a
  // loss of power may leave a file that Load() and ReadHeader() refuse.
  static Status Write(const Io& io, const std::string& temp_path,
                      const std::string& path, FSDirectory* directory,
                      const Identity& identity, const AddressMap& map);

  // Reads which image this is. Statuses as for Load. For finding the image of
  // a column family among several.
  static Status ReadHeader(const Io& io, const std::string& path,
                           Header* header);

  // Fills the map, and its table of files, from the image.
  //
  // The table may be empty: then it gets the files, live. Or it has the live
  // files already, as the MANIFEST names them: then the image must have the
  // same ones, with the same sizes and path ids.
  //
  //   OK          the map and the live counts are as they were written.
  //   Expired     not an image, or not of this identity, or not of this
  //               version of the format, or not of these files. The message
  //               says what differs. The map and the table are untouched.
  //   Corruption  an image of this identity that is damaged; names the file
  //               and the offset.
  //   others      of the file system (IOError, also if there is no such file),
  //               or of the map (its memory charge), or Aborted: the table is
  //               full.
  //
  // After a status other than OK and Expired, the map and the table may be
  // partly filled: discard both, the map first. (A table that must survive:
  // AddressMap::Forget with all its slots and kLostSlot brings its counts back
  // to zero; the map must be discarded, or is as good as a fresh one then.)
  // The file is only read.
  //
  // REQUIRES: the map has no entries; it and the table are not shared with
  // other threads yet; the table has no files that are building or pending;
  // every edit of the MANIFEST was applied (not so in best-efforts recovery).
  static Status Load(const Io& io, const std::string& path,
                     const Identity& expected, int num_threads,
                     AddressMap* map);
};

}  // namespace ROCKSDB_NAMESPACE
