// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/simulated_device_fs.h"

#include <cassert>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "tools/workloads/simulated_device_files.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

using Op = SimulatedDevice::Op;

// Does a change of names.
// device: may be nullptr.
template <class Operation>
IOStatus ChangeNames(TimedDevice* device, const Operation& operation) {
  DeviceRequest request(device, Op::kWrite, 0);
  IOStatus s = operation();
  request.Wait();
  return s;
}

// Wraps the file that `open` makes, unless device is nullptr.
template <class Wrapper, class File, class Open, class... Args>
IOStatus Wrap(TimedDevice* device, std::unique_ptr<File>* result,
              const Open& open, Args... args) {
  std::unique_ptr<File> file;
  IOStatus s = open(&file);
  if (s.ok() && device != nullptr) {
    *result = std::make_unique<Wrapper>(std::move(file), device, args...);
  } else {
    *result = std::move(file);
  }
  return s;
}

double Seconds(uint64_t nanos) { return static_cast<double>(nanos) * 1e-9; }

double Megabytes(uint64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

}  // namespace

std::string DeviceReport::ToString() const {
  char text[512];
  snprintf(text, sizeof(text),
           ": %" PRIu64 " reads of %.3f MB, %" PRIu64
           " writes of %.3f MB, %" PRIu64
           " syncs; busy %.3f s, queued %.3f s, served %.3f s; %" PRIu64
           " late by %.3f s, overslept %.3f s",
           stats.reads, Megabytes(stats.read_bytes), stats.writes,
           Megabytes(stats.write_bytes), stats.syncs, Seconds(stats.busy_nanos),
           Seconds(stats.queued_nanos), Seconds(stats.served_nanos),
           delays.late_requests, Seconds(delays.late_nanos),
           Seconds(delays.overslept_nanos));
  return path + " (" + profile.ToString() + ")" + text;
}

struct SimulatedDeviceFileSystem::Mount {
  Mount(const PathDevice& device, std::string resolved, SystemClock* clock)
      : path(device.path),
        prefix(std::move(resolved)),
        timed(device.profile, clock) {}

  // Whether a path is that of the directory or of something below it.
  bool Contains(const std::string& resolved) const {
    return prefix == "/" || (resolved.compare(0, prefix.size(), prefix) == 0 &&
                             (resolved.size() == prefix.size() ||
                              resolved[prefix.size()] == '/'));
  }

  const std::string path;
  const std::string prefix;
  TimedDevice timed;
};

SimulatedDeviceFileSystem::SimulatedDeviceFileSystem(
    const std::shared_ptr<FileSystem>& base,
    const std::vector<PathDevice>& devices, SystemClock* clock)
    : FileSystemWrapper(base) {
  for (const PathDevice& device : devices) {
    mounts_.push_back(
        std::make_unique<Mount>(device, Resolve(device.path), clock));
  }
}

SimulatedDeviceFileSystem::~SimulatedDeviceFileSystem() = default;

std::vector<DeviceReport> SimulatedDeviceFileSystem::GetReports() const {
  std::vector<DeviceReport> reports;
  for (const auto& mount : mounts_) {
    DeviceReport report;
    report.path = mount->path;
    report.profile = mount->timed.device().profile();
    report.stats = mount->timed.device().GetStats();
    report.delays = mount->timed.GetDelays();
    reports.push_back(std::move(report));
  }
  return reports;
}

std::string SimulatedDeviceFileSystem::Resolve(const std::string& name) const {
  std::string path = name;
  if (path.empty() || path[0] != '/') {
    // The default file system returns the working directory for any relative
    // path. A path that cannot be made absolute is compared as it is.
    std::string here;
    if (target()
            ->GetAbsolutePath(".", IOOptions(), &here, /*dbg=*/nullptr)
            .ok()) {
      path = here + "/" + name;
    }
  }
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = path.find('/', begin);
    if (end == std::string::npos) {
      end = path.size();
    }
    std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part == "..") {
      if (!parts.empty()) {
        parts.pop_back();
      }
    } else if (!part.empty() && part != ".") {
      parts.push_back(std::move(part));
    }
  }
  std::string resolved;
  for (const std::string& part : parts) {
    resolved += "/" + part;
  }
  return resolved.empty() ? "/" : resolved;
}

TimedDevice* SimulatedDeviceFileSystem::DeviceOf(
    const std::string& name) const {
  const std::string resolved = Resolve(name);
  Mount* found = nullptr;
  for (const auto& mount : mounts_) {
    if (mount->Contains(resolved) &&
        (found == nullptr || mount->prefix.size() > found->prefix.size())) {
      found = mount.get();
    }
  }
  return found == nullptr ? nullptr : &found->timed;
}

IOStatus SimulatedDeviceFileSystem::NewSequentialFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSSequentialFile>* result, IODebugContext* dbg) {
  return Wrap<SimulatedSequentialFile>(
      DeviceOf(name), result, [&](std::unique_ptr<FSSequentialFile>* file) {
        return target()->NewSequentialFile(name, options, file, dbg);
      });
}

IOStatus SimulatedDeviceFileSystem::NewRandomAccessFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSRandomAccessFile>* result, IODebugContext* dbg) {
  return Wrap<SimulatedRandomAccessFile>(
      DeviceOf(name), result,
      [&](std::unique_ptr<FSRandomAccessFile>* file) {
        return target()->NewRandomAccessFile(name, options, file, dbg);
      },
      &async_reads_);
}

IOStatus SimulatedDeviceFileSystem::NewWritableFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) {
  TimedDevice* const device = DeviceOf(name);
  return ChangeNames(device, [&] {
    return Wrap<SimulatedWritableFile>(
        device, result, [&](std::unique_ptr<FSWritableFile>* file) {
          return target()->NewWritableFile(name, options, file, dbg);
        });
  });
}

IOStatus SimulatedDeviceFileSystem::ReopenWritableFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) {
  TimedDevice* const device = DeviceOf(name);
  return ChangeNames(device, [&] {
    return Wrap<SimulatedWritableFile>(
        device, result, [&](std::unique_ptr<FSWritableFile>* file) {
          return target()->ReopenWritableFile(name, options, file, dbg);
        });
  });
}

IOStatus SimulatedDeviceFileSystem::ReuseWritableFile(
    const std::string& name, const std::string& old_name,
    const FileOptions& options, std::unique_ptr<FSWritableFile>* result,
    IODebugContext* dbg) {
  TimedDevice* const device = DeviceOf(name);
  if (DeviceOf(old_name) != device) {
    return IOStatus::IOError("Rename to another simulated device: " + name,
                             old_name);
  }
  return ChangeNames(device, [&] {
    return Wrap<SimulatedWritableFile>(
        device, result, [&](std::unique_ptr<FSWritableFile>* file) {
          return target()->ReuseWritableFile(name, old_name, options, file,
                                             dbg);
        });
  });
}

IOStatus SimulatedDeviceFileSystem::NewRandomRWFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSRandomRWFile>* result, IODebugContext* dbg) {
  // It opens a file that exists.
  return Wrap<SimulatedRandomRWFile>(
      DeviceOf(name), result, [&](std::unique_ptr<FSRandomRWFile>* file) {
        return target()->NewRandomRWFile(name, options, file, dbg);
      });
}

IOStatus SimulatedDeviceFileSystem::NewDirectory(
    const std::string& name, const IOOptions& options,
    std::unique_ptr<FSDirectory>* result, IODebugContext* dbg) {
  return Wrap<SimulatedDirectory>(
      DeviceOf(name), result, [&](std::unique_ptr<FSDirectory>* directory) {
        return target()->NewDirectory(name, options, directory, dbg);
      });
}

IOStatus SimulatedDeviceFileSystem::DeleteFile(const std::string& name,
                                               const IOOptions& options,
                                               IODebugContext* dbg) {
  return ChangeNames(DeviceOf(name),
                     [&] { return target()->DeleteFile(name, options, dbg); });
}

IOStatus SimulatedDeviceFileSystem::Truncate(const std::string& name,
                                             size_t size,
                                             const IOOptions& options,
                                             IODebugContext* dbg) {
  return ChangeNames(DeviceOf(name), [&] {
    return target()->Truncate(name, size, options, dbg);
  });
}

IOStatus SimulatedDeviceFileSystem::CreateDir(const std::string& name,
                                              const IOOptions& options,
                                              IODebugContext* dbg) {
  return ChangeNames(DeviceOf(name),
                     [&] { return target()->CreateDir(name, options, dbg); });
}

IOStatus SimulatedDeviceFileSystem::CreateDirIfMissing(const std::string& name,
                                                       const IOOptions& options,
                                                       IODebugContext* dbg) {
  return ChangeNames(DeviceOf(name), [&] {
    return target()->CreateDirIfMissing(name, options, dbg);
  });
}

IOStatus SimulatedDeviceFileSystem::DeleteDir(const std::string& name,
                                              const IOOptions& options,
                                              IODebugContext* dbg) {
  return ChangeNames(DeviceOf(name),
                     [&] { return target()->DeleteDir(name, options, dbg); });
}

IOStatus SimulatedDeviceFileSystem::RenameFile(const std::string& from,
                                               const std::string& to,
                                               const IOOptions& options,
                                               IODebugContext* dbg) {
  TimedDevice* const device = DeviceOf(to);
  if (DeviceOf(from) != device) {
    return IOStatus::IOError("Rename to another simulated device: " + to, from);
  }
  return ChangeNames(
      device, [&] { return target()->RenameFile(from, to, options, dbg); });
}

IOStatus SimulatedDeviceFileSystem::LinkFile(const std::string& from,
                                             const std::string& to,
                                             const IOOptions& options,
                                             IODebugContext* dbg) {
  TimedDevice* const device = DeviceOf(to);
  if (DeviceOf(from) != device) {
    return IOStatus::NotSupported("No link to another simulated device");
  }
  return ChangeNames(
      device, [&] { return target()->LinkFile(from, to, options, dbg); });
}

IOStatus SimulatedDeviceFileSystem::SyncFile(const std::string& name,
                                             const FileOptions& file_options,
                                             const IOOptions& options,
                                             bool use_fsync,
                                             IODebugContext* dbg) {
  TimedDevice* const device = DeviceOf(name);
  DeviceRequest request(device == nullptr ? nullptr : DeviceForSync(device),
                        Op::kSync, 0);
  IOStatus s = target()->SyncFile(name, file_options, options, use_fsync, dbg);
  request.Wait();
  return s;
}

IOStatus SimulatedDeviceFileSystem::Poll(std::vector<void*>& handles,
                                         size_t min_completions) {
  return async_reads_.Poll(target(), handles, min_completions);
}

IOStatus SimulatedDeviceFileSystem::AbortIO(std::vector<void*>& handles) {
  return async_reads_.AbortIO(target(), handles);
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
