//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/path_layout/path_test_util.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/copy_layout.h"

namespace ROCKSDB_NAMESPACE {

// A test of copies of databases with several paths.
class PathCopyTestBase : public PathTestBase {
 public:
  static constexpr int kKeys = 40;

  explicit PathCopyTestBase(const std::string& name);
  ~PathCopyTestBase() override;

  // Returns a directory outside of the database that does not exist. No
  // directory of the database is a part of its name. Each has a parent of its
  // own, so that it shows if one of the parents is not synced.
  std::string Directory(const std::string& name);

  // Features of the column family "cf1".
  enum Feature { kInline, kBlobs, kMap, kDeltas, kMapAndDeltas, kNumFeatures };
  Options FeatureOptions(Feature feature, const std::string& prefix,
                         uint32_t num_paths, const Ids& sst, const Ids& blob);
  // Returns options of a family in the directory of the DB.
  Options PlainOptions() { return FeatureOptions(kBlobs, "plain", 0, {}, {}); }
  static Options WithoutPaths(Options options);

  // Writes values on all paths, operands, and, if `wal` is true, entries that
  // only the WAL has, to two column families.
  void Fill(bool wal);

  // Writes values on two levels to the default column family.
  void FillTwoLevels();

  // Writes operands to the default column family, so that it has sorted and
  // recent delta files.
  // REQUIRES: it was opened with the feature kDeltas
  void FillDeltas();

  // Returns a layout for all column families.
  static CopyLayout LayoutOf(const std::vector<std::string>& directories,
                             const Ids& sst, const Ids& blob,
                             const Ids& path_map = {});

  // Returns a layout of three new directories, the second of which is that of
  // the copy.
  // number: a part of their names.
  CopyLayout LayoutOfThree(int number);

  // layout: nullptr for a checkpoint in one directory.
  Status MakeCheckpoint(const std::string& directory,
                        uint64_t log_size_for_flush = 0,
                        const CopyLayout* layout = nullptr,
                        int num_threads = 1);
  // Makes a checkpoint of any DB.
  static Status MakeCheckpointOf(DB* db, const std::string& directory,
                                 const CopyLayout& layout,
                                 uint64_t log_size_for_flush = 0,
                                 int num_threads = 1);
  std::unique_ptr<BackupEngine> OpenBackups(const std::string& directory);

  // The end of a MANIFEST that its writer has left when it crashed.
  enum class ManifestTail { kNone, kTornRecord, kIncompleteGroup };
  // Appends such an end to the MANIFEST of the DB. An incomplete group names an
  // SST file on path 1.
  // REQUIRES: the DB is closed
  void AppendToManifest(ManifestTail tail);
  // Returns the name, without directory, of the MANIFEST that CURRENT names.
  std::string CurrentManifest();
  // Opens the default family, "cf1", "cf2", ...
  Status OpenReadOnly(const std::vector<Options>& options,
                      std::unique_ptr<DB>* db);

  std::vector<std::string> Names(const std::string& directory);
  // Returns the number of files of this type.
  size_t Count(const std::string& directory, FileType type);

  // Checks how many hard links the SST files of a directory have, and its blob
  // files; it has at least one of both.
  void CheckLinks(const std::string& directory, uint64_t of_ssts,
                  uint64_t of_blobs);

  // Makes copies while a thread writes, flushes, and changes the layout of the
  // database, and checks that each of them has the keys from before.
  // with_merges: whether the thread writes operands, too.
  // copy: makes the i-th copy and opens it; nullptr is an error that it has
  // recorded.
  void CheckCopiesBesideJobs(
      bool with_merges, const std::function<std::unique_ptr<DB>(int i)>& copy);

  // Checks that no MANIFEST or OPTIONS file of the copy names a directory of
  // the original.
  void CheckNamesNoOther(const std::string& directory);

  // Returns all entries of a column family as a text.
  static std::string Entries(DB* db, ColumnFamilyHandle* family);

  // Opens the copy by its OPTIONS file, compares its contents with the
  // database's, checks that it has nothing to move for its layout if
  // `is_in_place` is true, works in it, and checks that all files are where the
  // layout wants them then.
  // layouts: of the column families in the order of their ids; nullptr: none.
  void CheckLayoutCopy(
      const std::string& directory,
      const std::vector<const CopyLayout::ColumnFamily*>& layouts,
      bool is_in_place = true);

  // Checks that the database is as before, also after it was opened once more.
  void CheckOriginal(const std::vector<Options>& options);

 private:
  // Checks that all files of the copy are where the layout wants them.
  // blobs: whether blob files are checked, too.
  void CheckPlaces(DB* db, ColumnFamilyHandle* family,
                   const CopyLayout::ColumnFamily* layout, bool blobs);

  std::set<std::string> parents_;
};

}  // namespace ROCKSDB_NAMESPACE
