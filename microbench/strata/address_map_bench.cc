//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What the blob address map costs without a database around it: nanoseconds per
// insertion and lookup, by threads, and bytes of memory per entry. One JSON
// object per measurement, one to a line, or a table.
//
//   make address_map_bench && build/release/address_map_bench

#ifndef GFLAGS
#include <cstdio>
int main() {
  fprintf(stderr, "Please install gflags to run this\n");
  return 1;
}
#else
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "db/address_map/address_map.h"
#include "util/coding.h"
#include "util/gflags_compat.h"
#include "util/random.h"
#include "util/string_util.h"

using GFLAGS_NAMESPACE::ParseCommandLineFlags;
using GFLAGS_NAMESPACE::SetUsageMessage;

DEFINE_string(entries, "10000000,50000000", "Sizes of the map");
DEFINE_string(threads, "1,2,4", "Numbers of threads");
DEFINE_uint64(lookups, 10000000, "Lookups of all threads together");
DEFINE_uint64(batch, 1000, "Records in an InsertBatch()");
DEFINE_uint64(value_size, 1024, "Of the records; decides how many fit a file");
DEFINE_uint64(file_size, uint64_t{256} << 20, "Of the blob files");
DEFINE_uint64(seed, 1, "Of keys and of the order of lookups");
DEFINE_bool(json, false, "JSON objects instead of a table");

namespace ROCKSDB_NAMESPACE {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kKeySize = 16;
constexpr uint64_t kHashSeed = 0x9e3779b97f4a7c15;

// Key number `index`, as long as Wayfinder's. Distinct for distinct indexes.
MapKeyHash KeyHash(uint64_t index) {
  char key[kKeySize];
  EncodeFixed64(key, FLAGS_seed);
  EncodeFixed64(key + sizeof(uint64_t), index);
  return MapKeyHash::Of(Slice(key, kKeySize), kHashSeed);
}

size_t ResidentBytes() {
  size_t total = 0;
  size_t resident = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file != nullptr) {
    if (fscanf(file, "%zu %zu", &total, &resident) != 2) {
      resident = 0;
    }
    fclose(file);
  }
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Runs fn(thread) on so many threads; returns the seconds until all are done.
double Run(int threads, const std::function<void(int)>& fn) {
  std::vector<std::thread> running;
  const Clock::time_point began = Clock::now();
  for (int i = 1; i < threads; ++i) {
    running.emplace_back(fn, i);
  }
  fn(0);
  for (std::thread& thread : running) {
    thread.join();
  }
  return std::chrono::duration<double>(Clock::now() - began).count();
}

void Print(const char* what, uint64_t entries, int threads, uint64_t operations,
           double seconds) {
  // Of one thread: how long one operation takes it.
  const double nanos =
      seconds * 1e9 * threads / static_cast<double>(operations);
  const double rate = static_cast<double>(operations) / seconds;
  if (FLAGS_json) {
    printf("{\"benchmark\": \"%s\", \"entries\": %" PRIu64
           ", \"threads\": %d, \"ns_per_op\": %.1f, \"ops_per_sec\": %.0f}\n",
           what, entries, threads, nanos, rate);
  } else {
    printf("%-18s %12" PRIu64 " %8d %12.1f %15.0f\n", what, entries, threads,
           nanos, rate);
  }
  fflush(stdout);
}

void PrintMemory(uint64_t entries, size_t map_bytes, size_t resident) {
  const double per_entry =
      static_cast<double>(map_bytes) / static_cast<double>(entries);
  const double resident_per_entry =
      static_cast<double>(resident) / static_cast<double>(entries);
  if (FLAGS_json) {
    printf("{\"benchmark\": \"memory\", \"entries\": %" PRIu64
           ", \"bytes_per_entry\": %.2f, \"resident_bytes_per_entry\": "
           "%.2f}\n",
           entries, per_entry, resident_per_entry);
  } else {
    printf("%-18s %12" PRIu64 "          %.2f bytes per entry, %.2f resident\n",
           "memory", entries, per_entry, resident_per_entry);
  }
  fflush(stdout);
}

// A map of `entries` keys in files of FLAGS_file_size.
class Bench {
 public:
  explicit Bench(uint64_t entries)
      : entries_(entries),
        per_file_(std::max<uint64_t>(FLAGS_file_size / FLAGS_value_size, 1)),
        map_(AddressMap::Options(), &files_) {
    for (uint64_t first = 0; first < entries_; first += per_file_) {
      const uint64_t number = 1 + slots_.size();
      slots_.push_back(files_.Add(number, /*path_id=*/0, kNoCompression,
                                  BlobFileSlotTable::State::kLive,
                                  FLAGS_file_size));
    }
  }

  // Threads take files in turn, as flushes do.
  void Insert(int threads) {
    std::atomic<size_t> next{0};
    const double seconds = Run(threads, [&](int) {
      std::vector<AddressMap::Record> batch;
      for (size_t i = next++; i < slots_.size(); i = next++) {
        const uint64_t begin = i * per_file_;
        const uint64_t end = std::min(begin + per_file_, entries_);
        for (uint64_t index = begin; index < end; ++index) {
          batch.push_back(RecordOf(index));
          if (batch.size() == FLAGS_batch || index + 1 == end) {
            if (!map_.InsertBatch(slots_[i], batch.data(), batch.size()).ok()) {
              fprintf(stderr, "InsertBatch failed\n");
              abort();
            }
            batch.clear();
          }
        }
      }
    });
    Print("insert", entries_, threads, entries_, seconds);
  }

  // absent: of keys that the map does not have.
  void Find(const char* what, int threads, bool absent, bool by_name) {
    const uint64_t each = FLAGS_lookups / static_cast<uint64_t>(threads);
    std::atomic<uint64_t> found{0};
    const double seconds = Run(threads, [&](int thread) {
      Random64 rnd(FLAGS_seed * 1000 + static_cast<uint64_t>(thread));
      uint64_t hits = 0;
      for (uint64_t i = 0; i < each; ++i) {
        const uint64_t index = rnd.Uniform(entries_);
        const MapKeyHash key = KeyHash(absent ? entries_ + index : index);
        const AddressMap::Lookup lookup =
            by_name ? map_.FindByName(MapName{key, SeqOf(index), 0},
                                      /*pin=*/true)
                    : map_.FindDirect(key, /*pin=*/true);
        hits += lookup.found ? 1 : 0;
      }
      found += hits;
    });
    if (found != (absent ? 0 : each * static_cast<uint64_t>(threads))) {
      fprintf(stderr, "%s: wrong answers\n", what);
      abort();
    }
    Print(what, entries_, threads, each * static_cast<uint64_t>(threads),
          seconds);
  }

  size_t MemoryUsage() const { return map_.MemoryUsage(); }

 private:
  static SequenceNumber SeqOf(uint64_t index) { return index + 1; }

  AddressMap::Record RecordOf(uint64_t index) const {
    AddressMap::Record record;
    record.name = MapName{KeyHash(index), SeqOf(index), 0};
    record.offset = static_cast<uint32_t>(index % per_file_ * FLAGS_value_size);
    record.size = static_cast<uint32_t>(FLAGS_value_size);
    record.direct = true;
    return record;
  }

  const uint64_t entries_;
  const uint64_t per_file_;
  BlobFileSlotTable files_;
  AddressMap map_;
  std::vector<uint32_t> slots_;
};

std::vector<uint64_t> Numbers(const std::string& list) {
  std::vector<uint64_t> numbers;
  for (const std::string& item : StringSplit(list, ',')) {
    numbers.push_back(ParseUint64(item));
  }
  return numbers;
}

int Main() {
  const std::vector<uint64_t> threads_list = Numbers(FLAGS_threads);
  if (FLAGS_file_size > UINT32_MAX || FLAGS_value_size == 0 ||
      FLAGS_batch == 0 ||
      std::count(threads_list.begin(), threads_list.end(), 0) > 0) {
    fprintf(stderr,
            "--file_size is below 4 GiB, --value_size, --batch and --threads "
            "are not 0\n");
    return 1;
  }
  if (!FLAGS_json) {
    printf("%-18s %12s %8s %12s %15s\n", "", "entries", "threads", "ns/op",
           "ops/sec");
  }
  for (const uint64_t entries : Numbers(FLAGS_entries)) {
    bool measured_memory = false;
    for (const uint64_t count : threads_list) {
      const int threads = static_cast<int>(count);
      const size_t before = ResidentBytes();
      Bench bench(entries);
      bench.Insert(threads);
      if (!measured_memory) {
        // Of a later map the allocator may reuse what the one before had.
        PrintMemory(entries, bench.MemoryUsage(), ResidentBytes() - before);
        measured_memory = true;
      }
      bench.Find("find direct", threads, /*absent=*/false, /*by_name=*/false);
      bench.Find("find by name", threads, /*absent=*/false, /*by_name=*/true);
      bench.Find("find absent", threads, /*absent=*/true, /*by_name=*/false);
    }
  }
  return 0;
}

}  // namespace

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  SetUsageMessage("\nMeasures the blob address map: see its source for more.");
  ParseCommandLineFlags(&argc, &argv, true);
  return ROCKSDB_NAMESPACE::Main();
}
#endif  // GFLAGS
