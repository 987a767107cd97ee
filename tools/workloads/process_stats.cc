// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/process_stats.h"

#ifndef OS_WIN
#include <sys/resource.h>
#endif

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "file/filename.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

#ifdef OS_LINUX
// Returns the text of a file in /proc. Does not use Env, since that of the
// benchmark may be for files of another machine.
std::string ReadProcFile(const char* path) {
  std::string text;
  FILE* file = fopen(path, "re");
  if (file != nullptr) {
    char buffer[4096];
    size_t n;
    while ((n = fread(buffer, 1, sizeof(buffer), file)) > 0) {
      text.append(buffer, n);
    }
    fclose(file);
  }
  return text;
}
#endif

// Finds a line "<key>:<blanks><number>..." in the text.
std::optional<uint64_t> FindNumber(const std::string& text,
                                   const std::string& key) {
  const std::string start = key + ":";
  size_t line = 0;
  while (line < text.size()) {
    if (text.compare(line, start.size(), start) == 0) {
      size_t pos = line + start.size();
      while (pos < text.size() && (text[pos] == ' ' || text[pos] == '\t')) {
        ++pos;
      }
      uint64_t number = 0;
      const auto parsed =
          std::from_chars(text.data() + pos, text.data() + text.size(), number);
      if (parsed.ec == std::errc()) {
        return number;
      }
      return std::nullopt;
    }
    line = text.find('\n', line);
    if (line == std::string::npos) {
      break;
    }
    ++line;
  }
  return std::nullopt;
}

std::optional<uint64_t> FindKilobytes(const std::string& text,
                                      const std::string& key) {
  const std::optional<uint64_t> kilobytes = FindNumber(text, key);
  if (!kilobytes) {
    return std::nullopt;
  }
  return *kilobytes * 1024;
}

bool IsGone(const IOStatus& s) { return s.IsNotFound() || s.IsPathNotFound(); }

// Returns a name by which equal paths are recognized.
std::string CanonicalPath(const std::string& path) {
  std::error_code error;
  auto canonical = std::filesystem::weakly_canonical(path, error);
  std::string text = error ? NormalizePath(path) : canonical.string();
  while (text.size() > 1 && text.back() == '/') {
    text.pop_back();
  }
  return text;
}

}  // namespace

void ProcessStats::ParseIo(const std::string& text) {
  rchar = FindNumber(text, "rchar");
  wchar = FindNumber(text, "wchar");
  syscr = FindNumber(text, "syscr");
  syscw = FindNumber(text, "syscw");
  read_bytes = FindNumber(text, "read_bytes");
  write_bytes = FindNumber(text, "write_bytes");
  cancelled_write_bytes = FindNumber(text, "cancelled_write_bytes");
}

void ProcessStats::ParseStatus(const std::string& text) {
  peak_rss_bytes = FindKilobytes(text, "VmHWM");
  rss_bytes = FindKilobytes(text, "VmRSS");
}

std::optional<uint64_t> ProcessStats::device_write_bytes() const {
  if (!write_bytes || !cancelled_write_bytes) {
    return std::nullopt;
  }
  // Cancelled bytes may have been written before the first of two states, so
  // the difference could be negative.
  return *write_bytes - std::min(*write_bytes, *cancelled_write_bytes);
}

ProcessStats ProcessStats::Now() {
  ProcessStats stats;
#ifdef OS_LINUX
  stats.ParseIo(ReadProcFile("/proc/self/io"));
  stats.ParseStatus(ReadProcFile("/proc/self/status"));
#endif
#ifndef OS_WIN
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const struct timeval& t) {
      return static_cast<double>(t.tv_sec) +
             static_cast<double>(t.tv_usec) / 1e6;
    };
    stats.cpu_user_seconds = seconds(usage.ru_utime);
    stats.cpu_system_seconds = seconds(usage.ru_stime);
  }
#endif
  return stats;
}

bool ProcessStats::ResetPeakRss() {
  bool done = false;
#ifdef OS_LINUX
  FILE* file = fopen("/proc/self/clear_refs", "we");
  if (file != nullptr) {
    done = fputs("5", file) >= 0;
    done = fclose(file) == 0 && done;
  }
#endif
  return done;
}

ProcessStats ProcessStats::Since(const ProcessStats& earlier) const {
  ProcessStats used = *this;
  SubtractCounter(&used.rchar, earlier.rchar);
  SubtractCounter(&used.wchar, earlier.wchar);
  SubtractCounter(&used.syscr, earlier.syscr);
  SubtractCounter(&used.syscw, earlier.syscw);
  SubtractCounter(&used.read_bytes, earlier.read_bytes);
  SubtractCounter(&used.write_bytes, earlier.write_bytes);
  SubtractCounter(&used.cancelled_write_bytes, earlier.cancelled_write_bytes);
  SubtractCounter(&used.cpu_user_seconds, earlier.cpu_user_seconds);
  SubtractCounter(&used.cpu_system_seconds, earlier.cpu_system_seconds);
  return used;
}

Status DirectorySize::Measure(FileSystem* fs,
                              const std::vector<std::string>& directories) {
  *this = DirectorySize();
  const IOOptions io;
  Status result;
  const auto note = [&result](const IOStatus& s) {
    if (result.ok()) {
      result = s;
    }
  };
  for (const std::string& directory : directories) {
    std::vector<std::string> names;
    IOStatus s = fs->GetChildren(directory, io, &names, nullptr);
    if (!s.ok()) {
      if (!IsGone(s)) {
        note(s);
      }
      continue;
    }
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type = kTempFile;
      const std::string path = directory + "/" + name;
      if (!ParseFileName(name, &number, &type)) {
        type = kTempFile;
        // Only names that are not those of DB files can be directories. If the
        // file system does not support IsDirectory(), there are none.
        bool is_directory = name == "." || name == "..";
        if (!is_directory) {
          fs->IsDirectory(path, io, &is_directory, nullptr)
              .PermitUncheckedError();
        }
        if (is_directory) {
          continue;
        }
      }
      uint64_t size = 0;
      s = fs->GetFileSize(path, io, &size, nullptr);
      if (!s.ok()) {
        // Not all file systems return NotFound from GetFileSize().
        if (!IsGone(s) && !IsGone(fs->FileExists(path, io, nullptr))) {
          note(s);
        }
        continue;
      }
      switch (type) {
        case kTableFile:
          sst_bytes += size;
          break;
        case kBlobFile:
          blob_bytes += size;
          break;
        case kWalFile:
          wal_bytes += size;
          break;
        default:
          other_bytes += size;
          break;
      }
    }
  }
  return result;
}

std::vector<std::string> DirectorySize::DirectoriesOf(DB* db) {
  const DBOptions db_options = db->GetDBOptions();
  const Options options = db->GetOptions();
  const std::string& wal_dir =
      db_options.wal_dir.empty() ? db->GetName() : db_options.wal_dir;
  std::vector<std::string> candidates = {db->GetName(), wal_dir,
                                         ArchivalDirectory(wal_dir)};
  for (const auto* paths :
       {&db_options.db_paths, &options.db_paths, &options.cf_paths}) {
    for (const DbPath& path : *paths) {
      candidates.push_back(path.path);
    }
  }
  std::vector<std::string> directories;
  std::vector<std::string> seen;
  for (const std::string& path : candidates) {
    const std::string canonical = CanonicalPath(path);
    if (std::find(seen.begin(), seen.end(), canonical) == seen.end()) {
      seen.push_back(canonical);
      directories.push_back(path);
    }
  }
  return directories;
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
