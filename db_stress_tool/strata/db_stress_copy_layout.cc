//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/strata/db_stress_copy_layout.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "db_stress_tool/db_stress_common.h"
#include "db_stress_tool/strata/db_stress_path_flags.h"
#include "file/file_util.h"
#include "rocksdb/utilities/checkpoint.h"
#include "util/gflags_compat.h"
#include "util/strata/path_list.h"
#include "utilities/fault_injection_fs.h"

DEFINE_int32(copy_layout_one_in, 0,
             "If not 0: one of so many checkpoints and restored backups, of "
             "--checkpoint_one_in and --backup_one_in, is put into several "
             "directories, with a random layout, in <db>_copies.");

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr int kMaxPaths = 4;

bool AllowsLayouts(const Options& options) {
  return options.compaction_style != kCompactionStyleFIFO &&
         options.compaction_style != kCompactionStyleNone &&
         options.compaction_service == nullptr && !FLAGS_use_blob_db;
}

// Returns 1 to 4 path ids, or, one time in three, none.
std::vector<uint32_t> RandomIds(int num_paths, Random* rand) {
  std::vector<uint32_t> ids;
  if (!rand->OneIn(3)) {
    ids.resize(1 + rand->Uniform(4));
    for (uint32_t& id : ids) {
      id = rand->Uniform(num_paths);
    }
  }
  return ids;
}

// Stops the injection of faults into operations of this thread.
class WithoutFaults {
 public:
  explicit WithoutFaults(FaultInjectionTestFS* faults) : faults_(faults) {
    if (faults_ != nullptr) {
      faults_->DisableAllThreadLocalErrorInjection();
    }
  }
  ~WithoutFaults() {
    if (faults_ != nullptr) {
      faults_->EnableAllThreadLocalErrorInjection();
    }
  }
  WithoutFaults(const WithoutFaults&) = delete;
  WithoutFaults& operator=(const WithoutFaults&) = delete;

 private:
  FaultInjectionTestFS* const faults_;
};

}  // namespace

StressCopy::StressCopy(const std::string& db, const Options& options, Kind kind,
                       ThreadState* thread, Env* env,
                       FaultInjectionTestFS* faults)
    : env_(env), faults_(faults) {
  Random& rand = thread->rand;
  if (!rand.OneInOpt(FLAGS_copy_layout_one_in) || !AllowsLayouts(options)) {
    return;
  }
  parent_ = db + "_copies";
  // By these names db_stress tells the MANIFESTs of copies from those of the
  // DB, which it keeps.
  root_ = parent_ + (kind == Kind::kCheckpoint ? "/.checkpoint" : "/.restore") +
          std::to_string(thread->tid);
  directory_ = root_ + "/main";
  auto layout = std::make_shared<CopyLayout>();
  CopyLayout::ColumnFamily& family = layout->all;
  const int num_paths = 2 + rand.Uniform(kMaxPaths - 1);
  // The path that is the directory of the copy; none if it is num_paths.
  const int main = rand.Uniform(num_paths + 1);
  for (int i = 0; i < num_paths; ++i) {
    family.cf_paths.emplace_back(
        i == main ? directory_ : root_ + "/path" + std::to_string(i),
        UINT64_MAX);
  }
  family.level_sst_path_ids = RandomIds(num_paths, &rand);
  family.level_blob_path_ids = RandomIds(num_paths, &rand);
  if (rand.OneIn(2) || (family.level_sst_path_ids.empty() &&
                        family.level_blob_path_ids.empty())) {
    family.delta_sorted_path_id = static_cast<int32_t>(rand.Uniform(num_paths));
  }
  if (kind == Kind::kCheckpoint && rand.OneIn(3)) {
    family.path_map = RandomIds(num_paths, &rand);
  }
  layout_ = std::move(layout);
  Status s;
  if (kind == Kind::kCheckpoint) {
    const WithoutFaults without_faults(faults_);
    s = Prepare();
  } else {
    s = Prepare();
  }
  if (!s.ok()) {
    fprintf(stderr, "A copy without a layout is made, because %s: %s\n",
            root_.c_str(), s.ToString().c_str());
    layout_.reset();
  }
}

Status StressCopy::Prepare() const {
  Status s = DestroyDir(env_, root_);
  if (s.ok()) {
    s = env_->CreateDirIfMissing(parent_);
  }
  if (s.ok()) {
    s = env_->CreateDir(root_);
  }
  return s;
}

std::string StressCopy::ToString() const {
  if (layout_ == nullptr) {
    return "";
  }
  const CopyLayout::ColumnFamily& family = layout_->all;
  return "cf_paths: " + PathListToString(family.cf_paths) +
         ", level_sst_path_ids: " + PathIdsToString(family.level_sst_path_ids) +
         ", level_blob_path_ids: " +
         PathIdsToString(family.level_blob_path_ids) +
         ", delta_sorted_path_id: " +
         std::to_string(family.delta_sorted_path_id) +
         ", path_map: " + PathIdsToString(family.path_map);
}

Status StressCopy::CreateCheckpoint(Checkpoint* checkpoint, DB* db,
                                    const std::string& directory) const {
  if (layout_ == nullptr) {
    return checkpoint->CreateCheckpoint(directory);
  }
  std::unique_ptr<CheckpointEngine> engine;
  Status s = CheckpointEngine::Open(CheckpointEngineOptions(), &engine);
  if (s.ok()) {
    CreateCheckpointOptions options;
    options.layout = layout_;
    s = engine->CreateCheckpoint(db, directory, nullptr, options);
  }
  return s;
}

void StressCopy::SetPaths(ColumnFamilyOptions* options) const {
  ForgetPaths(options);
  if (layout_ != nullptr) {
    const CopyLayout::ColumnFamily& family = layout_->all;
    options->cf_paths = family.cf_paths;
    options->level_sst_path_ids = family.level_sst_path_ids;
    options->level_blob_path_ids = family.level_blob_path_ids;
    options->delta_sorted_path_id = family.delta_sorted_path_id;
  }
}

void StressCopy::SetPaths(std::vector<ColumnFamilyDescriptor>* families) const {
  for (ColumnFamilyDescriptor& family : *families) {
    SetPaths(&family.options);
  }
}

Status StressCopy::Finish(const Status& s, bool keep) const {
  if (layout_ == nullptr) {
    return s;
  }
  if (keep) {
    fprintf(stderr, "The copy had this layout: %s\n", ToString().c_str());
    return s;
  }
  const WithoutFaults without_faults(faults_);
  const Status removed = DestroyDir(env_, root_);
  return s.ok() ? removed : s;
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
