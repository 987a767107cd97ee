//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/strata/db_stress_path_faults.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "db/path_layout/directory_names.h"
#include "db_stress_tool/db_stress_common.h"
#include "env/composite_env_wrapper.h"
#include "test_util/strata/failing_devices_fs_test_util.h"
#include "util/gflags_compat.h"
#include "util/random.h"
#include "util/strata/path_list.h"

DECLARE_string(cf_paths);

DEFINE_int32(path_fault_ms, 0,
             "The device of one of --cf_paths, other than that of the DB, "
             "becomes read-only for so many milliseconds, again and again, "
             "with pauses that are five times as long on average. Not with "
             "--reopen and --continuous_verification_interval. 0: never");

namespace ROCKSDB_NAMESPACE {

namespace {

using Fault = FailingDevicesFS::Fault;

// The thread that lets devices fail.
class PathFaultThread {
 public:
  PathFaultThread(FailingDevicesFS* fs, std::vector<std::string> directories)
      : fs_(fs), directories_(std::move(directories)) {}

  void Begin() {
    is_ended_ = false;
    thread_ = std::thread([this] { Run(); });
  }
  void End() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_ended_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

 private:
  void Run() {
    Random rand(static_cast<uint32_t>(FLAGS_seed) + 1);
    const uint32_t duration = static_cast<uint32_t>(FLAGS_path_fault_ms);
    uint64_t num_faults = 0;
    while (Wait(rand.Uniform(static_cast<int>(10 * duration)) + 1)) {
      const std::string& directory =
          directories_[rand.Uniform(static_cast<int>(directories_.size()))];
      fs_->SetFault(directory, Fault::kReadOnly);
      ++num_faults;
      const bool goes_on = Wait(duration);
      fs_->SetFault(directory, Fault::kNone);
      if (!goes_on) {
        break;
      }
    }
    uint64_t num_failed = 0;
    for (const std::string& directory : directories_) {
      num_failed += fs_->NumFailed(directory);
    }
    fprintf(stdout,
            "Devices of paths were read-only %llu times, and %llu operations "
            "failed\n",
            static_cast<unsigned long long>(num_faults),
            static_cast<unsigned long long>(num_failed));
  }

  // Returns false if End() was called meanwhile.
  bool Wait(uint32_t ms) {
    std::unique_lock<std::mutex> lock(mutex_);
    return !changed_.wait_for(lock, std::chrono::milliseconds(ms),
                              [this] { return is_ended_; });
  }

  FailingDevicesFS* const fs_;
  const std::vector<std::string> directories_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ended_ = false;  // guarded by mutex_
};

PathFaultThread* path_fault_thread = nullptr;

void Refuse(const char* why) {
  fprintf(stderr, "Error: --path_fault_ms %s\n", why);
  exit(1);  // NOLINT(concurrency-mt-unsafe)
}

// Returns the paths whose devices may fail.
std::vector<std::string> FailingDirectories() {
  std::vector<DbPath> paths;
  ParsePathList(FLAGS_cf_paths, &paths).PermitUncheckedError();
  const std::string db = CleanDirectoryName(/*fs=*/nullptr, FLAGS_db);
  std::vector<std::string> result;
  for (const DbPath& path : paths) {
    std::string directory = path.path;
    while (directory.size() > 1 && directory.back() == '/') {
      directory.pop_back();
    }
    if (!DirectoriesOverlap(CleanDirectoryName(/*fs=*/nullptr, directory),
                            db)) {
      result.push_back(directory);
    }
  }
  return result;
}

}  // namespace

Env* StressPathFaults::ApplyFlag(Env* env) {
  if (FLAGS_path_fault_ms == 0) {
    return env;
  }
  if (FLAGS_path_fault_ms < 0) {
    Refuse("must not be negative");
  }
  if (FLAGS_reopen > 0 || FLAGS_continuous_verification_interval > 0) {
    Refuse(
        "is incompatible with --reopen > 0 and "
        "--continuous_verification_interval > 0");
  }
  std::vector<std::string> directories = FailingDirectories();
  if (directories.empty()) {
    Refuse("needs --cf_paths with another directory than that of the DB");
  }
  const auto fs =
      std::make_shared<FailingDevicesFS>(env->GetFileSystem(), "injected");
  for (const std::string& directory : directories) {
    fs->SetFault(directory, Fault::kNone);
  }
  path_fault_thread = new PathFaultThread(fs.get(), std::move(directories));
  return new CompositeEnvWrapper(env, fs);
}

bool StressPathFaults::AreOn() { return path_fault_thread != nullptr; }

void StressPathFaults::Begin() {
  if (path_fault_thread != nullptr) {
    path_fault_thread->Begin();
  }
}

void StressPathFaults::End() {
  if (path_fault_thread != nullptr) {
    path_fault_thread->End();
  }
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
