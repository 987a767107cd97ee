// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/device_profile.h"

#include <cstddef>
#include <utility>

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

struct Preset {
  const char* name;
  DeviceProfile profile;
};

// In a profile: latencies, bandwidths and IOPS, each of reads and of writes,
// then the queue depth and the time of a sync.
//
// nvme and sata are the devices of "A Framework for Integrating Log-Structured
// Merge-Trees and Key-Value Separation in Tiered Storage" (Jaranilla et al.,
// Electronics 2025, Table 5): Samsung 970 PRO (USD 0.39 per GB) and 860 EVO
// (USD 0.19 per GB). The table has the IOPS of 4 KiB blocks with one request at
// a time (15,000 reads and 55,000 writes; 10,000 and 42,000), whose reciprocal
// is the latency here, and with many (500,000 of both; 98,000 and 90,000).
// Samsung specifies the latter for 4 threads with 32 requests each, and for 32
// requests, the most that SATA has: these are the queue depths. The paper has
// no times of syncs. Both devices have no power loss protection; for a Samsung
// 990 PRO, which has none either, about 0.9 ms were measured
// (http://smalldatum.blogspot.com/2026/01/ssds-power-loss-protection-and-fsync.html).
//
// hdd is a disk of 7,200 rpm such as Seagate's Exos X16: 4.16 ms until the
// sector comes round, on average, and about 8 ms for the seek; 261 MB/s and
// 170 reads or 440 writes per second by its data sheet. A sync waits for a
// revolution.
//
// network is the baseline of a gp3 volume of Amazon EBS: 3,000 IOPS and 125
// MiB/s, both shared by reads and writes, and, by Amazon's documentation, a
// latency of "single-digit milliseconds", for which 1 ms stands here. Writes
// are durable when they are acknowledged.
constexpr Preset kPresets[] = {
    {"nvme", {67, 18, 3500, 2700, 500'000, 500'000, 128, 1000}},
    {"sata", {100, 24, 550, 520, 98'000, 90'000, 32, 1000}},
    {"hdd", {12'000, 12'000, 261, 261, 170, 440, 32, 8300}},
    {"network", {1000, 1000, 131, 131, 3000, 3000, 64, 0}},
};

// Bounds that keep all sums of times far from overflow.
constexpr uint64_t kMaxMicros = 60'000'000;
constexpr uint64_t kMaxMegabytes = 10'000'000;
constexpr uint64_t kMaxIops = 1'000'000'000;
constexpr uint64_t kMaxQueueDepth = 65'536;

std::string Trim(const std::string& text) {
  const char* const blanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string::npos) {
    return "";
  }
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (;;) {
    const size_t end = text.find(separator, begin);
    if (end == std::string::npos) {
      parts.push_back(Trim(text.substr(begin)));
      return parts;
    }
    parts.push_back(Trim(text.substr(begin, end - begin)));
    begin = end + 1;
  }
}

// Accepts decimal digits only. Returns false if the number is outside of the
// bounds.
bool ParseNumber(const std::string& digits, uint64_t min, uint64_t max,
                 uint64_t* number) {
  if (digits.empty()) {
    return false;
  }
  uint64_t result = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') {
      return false;
    }
    result = result * 10 + static_cast<uint64_t>(c - '0');
    // No bound is near the largest integer, so the product cannot overflow.
    if (result > max) {
      return false;
    }
  }
  if (result < min) {
    return false;
  }
  *number = result;
  return true;
}

// Parses "<both>" or "<read>/<write>".
bool ParsePair(const std::string& text, uint64_t max, uint64_t* read,
               uint64_t* write) {
  const std::vector<std::string> parts = Split(text, '/');
  if (parts.size() > 2) {
    return false;
  }
  return ParseNumber(parts.front(), 0, max, read) &&
         ParseNumber(parts.back(), 0, max, write);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Returns false if the path is empty, has a % without two hex digits, or has a
// %00: no path can contain a zero byte.
bool DecodePath(const std::string& text, std::string* path) {
  path->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (text.size() - i < 3) {
        return false;
      }
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) {
        return false;
      }
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0') {
      return false;
    }
    path->push_back(c);
  }
  return !path->empty();
}

Status Refuse(const std::string& item, const std::string& why) {
  return Status::InvalidArgument("'" + item + "': " + why);
}

// parts: of the item; the first one is the path.
Status ParseDevice(const std::string& item,
                   const std::vector<std::string>& parts,
                   DeviceProfile* profile) {
  if (parts.size() == 2) {
    for (const Preset& preset : kPresets) {
      if (parts[1] == preset.name) {
        *profile = preset.profile;
        return Status::OK();
      }
    }
  }
  if (parts.size() < 4 || parts.size() > 6) {
    return Refuse(item,
                  "after the path there must be the name of a device (" +
                      DevicePresetNames() +
                      ") or <latency us>:<MB/s>:<IOPS>[:<queue depth>[:<sync "
                      "us>]] (a colon that belongs to the path is written "
                      "%3A)");
  }
  const auto refuse = [&item](const std::string& value, const char* what,
                              uint64_t min, uint64_t max, bool pair) {
    return Refuse(item, "'" + value + "' is not " + what +
                            ": there must be a number from " +
                            std::to_string(min) + " to " + std::to_string(max) +
                            (pair ? ", or two such, <read>/<write>" : ""));
  };
  if (!ParsePair(parts[1], kMaxMicros, &profile->read_latency_us,
                 &profile->write_latency_us)) {
    return refuse(parts[1], "a latency in microseconds", 0, kMaxMicros, true);
  }
  if (!ParsePair(parts[2], kMaxMegabytes, &profile->read_mb_per_second,
                 &profile->write_mb_per_second)) {
    return refuse(parts[2], "a bandwidth in MB/s (0: no limit)", 0,
                  kMaxMegabytes, true);
  }
  if (!ParsePair(parts[3], kMaxIops, &profile->read_iops,
                 &profile->write_iops)) {
    return refuse(parts[3], "a number of requests per second (0: no limit)", 0,
                  kMaxIops, true);
  }
  if (parts.size() > 4 &&
      !ParseNumber(parts[4], 1, kMaxQueueDepth, &profile->queue_depth)) {
    return refuse(parts[4], "a queue depth", 1, kMaxQueueDepth, false);
  }
  if (parts.size() > 5) {
    if (!ParseNumber(parts[5], 0, kMaxMicros, &profile->sync_us)) {
      return refuse(parts[5], "the time of a sync in microseconds", 0,
                    kMaxMicros, false);
    }
  } else {
    profile->sync_us = profile->write_latency_us;
  }
  return Status::OK();
}

std::string Pair(uint64_t read, uint64_t write) {
  const std::string text = std::to_string(read);
  return read == write ? text : text + "/" + std::to_string(write);
}

}  // namespace

std::string DeviceProfile::ToString() const {
  return Pair(read_latency_us, write_latency_us) + ":" +
         Pair(read_mb_per_second, write_mb_per_second) + ":" +
         Pair(read_iops, write_iops) + ":" + std::to_string(queue_depth) + ":" +
         std::to_string(sync_us);
}

Status ParsePathDevices(const std::string& text,
                        std::vector<PathDevice>* devices) {
  // Refused before anything else, as a message with the text would end there.
  if (text.find('\0') != std::string::npos) {
    return Status::InvalidArgument(
        "a list of paths and devices has a zero byte, which no path can "
        "contain");
  }
  std::vector<PathDevice> result;
  if (!Trim(text).empty()) {
    for (const std::string& item : Split(text, ',')) {
      const std::vector<std::string> parts = Split(item, ':');
      PathDevice device;
      if (!DecodePath(parts[0], &device.path)) {
        return Refuse(item,
                      "the path is empty, or a % in it is not followed by two "
                      "hex digits (a % that belongs to the path is written "
                      "%25)");
      }
      Status s = ParseDevice(item, parts, &device.profile);
      if (!s.ok()) {
        return s;
      }
      for (const PathDevice& other : result) {
        if (other.path == device.path) {
          return Refuse(item, "the path has a device already");
        }
      }
      result.push_back(std::move(device));
    }
  }
  *devices = std::move(result);
  return Status::OK();
}

std::string DevicePresetNames() {
  std::string names;
  for (const Preset& preset : kPresets) {
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  }
  return names;
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
