//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#ifdef GFLAGS

#include "db_stress_tool/strata/db_stress_device_flags.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "env/composite_env_wrapper.h"
#include "tools/workloads/device_profile.h"
#include "tools/workloads/simulated_device_fs.h"
#include "util/gflags_compat.h"

DEFINE_string(path_devices, "",
              "Files below a directory take the time that they would take on a "
              "simulated device, as in db_bench: <path>:<device>,... So reads, "
              "writes and background jobs overtake each other as they do on "
              "slow devices.");

namespace ROCKSDB_NAMESPACE {

Env* ApplyStressDeviceFlag(Env* env) {
  std::vector<bench::PathDevice> devices;
  const Status s = bench::ParsePathDevices(FLAGS_path_devices, &devices);
  if (!s.ok()) {
    fprintf(stderr, "Error: --path_devices: %s\n", s.ToString().c_str());
    exit(1);  // NOLINT(concurrency-mt-unsafe)
  }
  if (devices.empty()) {
    return env;
  }
  return new CompositeEnvWrapper(
      env, std::make_shared<bench::SimulatedDeviceFileSystem>(
               env->GetFileSystem(), devices, env->GetSystemClock().get()));
}

}  // namespace ROCKSDB_NAMESPACE

#endif  // GFLAGS
