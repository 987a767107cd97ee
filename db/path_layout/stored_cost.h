//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "db/path_layout/manifest_files.h"
#include "db/path_layout/path_cost.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// The cost of the files of a closed DB where they are, from its MANIFEST and
// the names and sizes of the files in its directories. No file but the MANIFEST
// is read, and none is written.
//
// Invariants:
// 1. Each file counts in one row, except that a file of a MANIFEST that is not
//    on disk counts with the size that the MANIFEST has.
// 2. The price of a row is that of a path of a column family.
//
// Not thread-safe.
class StoredCost {
 public:
  struct Family {
    std::string name;
    std::vector<DbPath> paths;   // not empty
    std::vector<double> prices;  // one for each path
  };

  struct Row {
    // The name of a column family in brackets, or a description.
    std::string what;
    int path_id = -1;  // -1: the row is not about a path of a column family
    std::string directory;
    double price = 0;  // for a GiB
    uint64_t files = 0;
    // Bytes.
    uint64_t sst_bytes = 0;
    uint64_t blob_bytes = 0;
    uint64_t delta_bytes = 0;
    uint64_t other_bytes = 0;

    uint64_t Bytes() const {
      return sst_bytes + blob_bytes + delta_bytes + other_bytes;
    }
  };

  // Gives prices to all families: the list is for the family with the most
  // paths. A family with other paths gets the prices of the same directories.
  // Returns InvalidArgument if the list is not for these paths, or if a
  // directory has no price.
  // name: of the option or flag, for the message.
  // REQUIRES: the families have paths.
  static Status SetPrices(const std::string& name,
                          const std::vector<double>& prices,
                          std::vector<Family>* families);

  // families: those that are counted.
  // REQUIRES: each family has a price for each path.
  StoredCost(FileSystem* fs, std::vector<Family> families);

  // Adds a row for each path of the families, with their files in the MANIFEST.
  // Adds nothing for other families, whose files are known from now on.
  void AddManifest(const std::vector<ManifestFamily>& files);
  // Adds a row for all other files of the database directory and of that of the
  // WALs, and for files in all directories that a column family could have, but
  // none has by the MANIFEST.
  // wal_dir: may be dbname.
  // REQUIRES: AddManifest() was called with the files of all families.
  Status AddDirectories(const std::string& dbname, const std::string& wal_dir);
  // Looks for the files of the families on their paths, for NumMissing(). Adds
  // no row: without the files of all families it is not known to which of them
  // another file belongs.
  // REQUIRES: AddManifest() was called
  Status FindMissing();

  const std::vector<Row>& rows() const { return rows_; }
  // Returns the sum of all rows.
  PathCost Sum() const;
  // Returns the number of files that the MANIFEST has and the directories have
  // not.
  // REQUIRES: AddDirectories() or FindMissing() was called.
  uint64_t NumMissing() const { return missing_.size(); }

  // Returns a table with a line per row, the sum, the cost of the same bytes on
  // the dearest path, and the ratio.
  std::string ToString() const;

 private:
  // Returns the price of a directory: that of the first path with the same
  // name, or the highest price.
  double PriceOf(const std::string& directory) const;
  // Adds the files of a directory, and of its subdirectory of old WALs. own:
  // receives the files that are no SST, blob or delta files; may be nullptr.
  Status AddDirectory(const std::string& directory, Row* own);

  FileSystem* const fs_;
  const std::vector<Family> families_;
  std::vector<Row> rows_;
  // The names of files that the MANIFEST has.
  std::set<std::string> known_;
  std::set<std::string> missing_;
};

}  // namespace ROCKSDB_NAMESPACE
