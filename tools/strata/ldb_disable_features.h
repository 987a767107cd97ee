//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/strata/feature_plan.h"
#include "db/strata/feature_traces.h"
#include "db/strata/manifest_features.h"
#include "options/strata/feature_set.h"
#include "options/strata/options_without_features.h"
#include "rocksdb/utilities/ldb_cmd.h"
#include "tools/strata/ldb_feature_progress.h"
#include "tools/strata/ldb_feature_report.h"
#include "tools/strata/ldb_given_paths.h"
#include "tools/strata/ldb_options_file.h"

namespace ROCKSDB_NAMESPACE {

class FileLock;
class FileSystem;

// ldb disable_features: takes all features of Strata, or some of them, out of a
// closed database, so that RocksDB opens it with the same contents.
//
// The steps:
// 1. It reads the MANIFEST, the OPTIONS file and the names in the directories,
//    and says what there is and what is going to be done (ManifestFeatures,
//    FeatureTraces, FeaturePlan). A dry run ends here.
// 2. It opens the database with the features off, converts the data of one
//    column family after the other (FeatureRemoval), and opens it once more,
//    which begins a MANIFEST without records of what is gone. This step is left
//    out if only options are to go.
// 3. It reads everything once more, and names each thing that remains. If there
//    is one, the command ends: the OPTIONS file still has the paths.
// 4. It replaces the newest OPTIONS file by the one from before step 2, without
//    the options of the features, and checks it.
//
// Invariants:
// 1. After a crash before step 4 is complete, Strata opens the database by its
//    OPTIONS file. After step 4 it needs the paths that the command has printed
//    before. In both cases another run finishes the work.
// 2. OK means that the checks of the steps 3 and 4 have found nothing.
// 3. Features that stay keep their paths: a column family that has cf_paths in
//    the OPTIONS file after step 4 also has an option that names them. With
//    FIFO compaction there may be none: the command prints the paths then.
// 4. The WALs of every session are in the wal_dir of the OPTIONS file.
// 5. No option of RocksDB's changes in the OPTIONS file. Each open of step 2
//    writes one with the session's options, and without objects that ldb cannot
//    make; LdbOptionsFile corrects it at once. So only a process that is killed
//    during an open, or an open that fails after it has written the file,
//    leaves such a file for the next run.
// 6. No write comes back that the program does not see (CheckWals()).
// 7. If another process opens the database between two opens of the command, or
//    after the last one, the command ends with Busy before it changes anything
//    else, and the OPTIONS file has what the other process has written.
class DisableFeaturesCommand : public LDBCommand {
 public:
  static std::string Name() { return "disable_features"; }

  DisableFeaturesCommand(const std::vector<std::string>& params,
                         const std::map<std::string, std::string>& options,
                         const std::vector<std::string>& flags);
  ~DisableFeaturesCommand() override;

  // Loads the options; sets those of step 2 once there is a plan.
  void PrepareOptions() override;
  // The options are the database's own.
  void OverrideBaseCFOptions(ColumnFamilyOptions* /*cf_opts*/) override {}
  void DoCommand() override;
  bool NoDBOpen() override { return true; }
  // A column family without delta files is converted without its merge
  // operator; FeaturePlan refuses one with delta files.
  bool KeepsMergeOperands() const override { return true; }

  static void Help(std::string& ret);

 private:
  // Parses the flags of the command.
  Status Parse(const std::map<std::string, std::string>& options,
               const std::vector<std::string>& flags);

  // All functions that return a Status may leave an error in exec_state_
  // instead, which counts first. Then the Status is not OK.
  Status Run();
  Status Lock();
  void Unlock();
  // Loads the options and keeps the text of the OPTIONS file.
  Status LoadOptions();
  // Returns an error if the wal_dir of the OPTIONS file does not exist: the
  // base class ignores it then. Without its WALs the database would lose what
  // only they have, because conversions number new WALs. That WALs are in the
  // directory of the database proves nothing: they may be older ones, and the
  // program would look for what the command leaves in them in its own wal_dir.
  Status CheckWalDir() const;
  // Gives each column family the comparator that the MANIFEST names.
  Status UseComparators();
  // Takes the paths of --cf_paths away from column families that are not on
  // them (LdbGivenPaths).
  void TakeForeignPaths();
  // Finds out whether an open replays something.
  Status FindNeededRecord(bool* found) const;
  // Returns an error if WALs may have data of a column family whose paths
  // nothing tells, or data that no open of the program replays, because it has
  // best_efforts_recovery: keys would come back, or have two entries with one
  // sequence number.
  Status CheckWals() const;
  // Returns the first file of the MANIFEST that is not on the known paths, and
  // its column family; empty: all are there.
  std::string MissingFile(std::string* family) const;
  // Returns NotFound, with the name of the file and of the column family, if a
  // file of the MANIFEST is not on the known paths. An open with
  // best_efforts_recovery, or one that checks no files, would not fail. A dry
  // run reads the MANIFEST again until the same file is missing twice, because
  // the database may be open.
  Status CheckFiles();
  // Reads the MANIFEST.
  Status ReadManifest();
  // Reads what the database has of Strata's features.
  Status Survey();
  Status MakePlan();
  // Returns an error if the file of STRATA_CONFIG has options of features that
  // are to go: every open applies it, also that of step 2.
  Status CheckConfig() const;
  // Returns an error if the file changes options of the features in these.
  Status CheckConfigChanges(Options options,
                            std::vector<ColumnFamilyDescriptor> families) const;
  // Returns true if the database has to be opened.
  bool NeedsOpen() const;
  Status Convert();
  Status ConvertFamilies();
  Status VerifyData();
  Status AddTables();
  // Takes the options of the features out of the OPTIONS file, and says what
  // the application has to do from now on.
  Status ReplaceOptionsFile();
  Status VerifyOptionsFile();

  OptionsWithoutFeatures NewOptions() const;
  LdbFeatureReport Report() const;
  FileSystem* fs() const;
  const ColumnFamilyDescriptor* FindFamily(const std::string& name) const;
  // Returns where the files of the column family are; not empty.
  const std::vector<DbPath>& PathsOf(const ColumnFamilyOptions& options) const;
  std::vector<std::string> Directories() const;
  std::string WalDir() const;
  uint64_t WalBytes() const;

  FeatureSet features_ = FeatureSet::All();
  bool is_dry_run_ = false;
  bool into_first_path_ = false;
  bool checks_space_ = true;
  int num_threads_ = 1;

  // The db_paths that the program has passed to LDBTool; may be empty.
  std::vector<DbPath> db_paths_;
  LdbGivenPaths given_paths_;
  FileLock* lock_ = nullptr;
  // Has the text from before step 2.
  LdbOptionsFile options_file_;
  ManifestFeatures manifest_;
  FeatureTraces traces_;
  // nullptr: the options are as they were loaded.
  std::unique_ptr<FeaturePlan> plan_;
  std::shared_ptr<LdbFeatureProgress> progress_;
};

}  // namespace ROCKSDB_NAMESPACE
