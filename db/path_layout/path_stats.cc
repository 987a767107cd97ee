//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_stats.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "db/address_map/address_map_store.h"
#include "db/column_family.h"
#include "db/delta/delta_version.h"
#include "db/internal_stats.h"
#include "db/path_layout/misplaced_bytes.h"
#include "db/path_layout/obsolete_bytes.h"
#include "db/path_layout/path_cost.h"
#include "db/path_layout/path_layout.h"
#include "db/table_cache.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

namespace {

struct Column {
  // When the column is shown; a combination of bits that must all be given.
  enum Shown : unsigned {
    kAlways = 0,
    kWithReads = 1,
    kWithDeltas = 2,
    kWithLayout = 4,
    kWithHot = 8
  };

  // The key in the map is "path<i>." + this.
  const char* name;
  unsigned shown;
  uint64_t (*get)(const PathStats&);
};

constexpr unsigned kAlways = Column::kAlways;
constexpr unsigned kRead = Column::kWithReads;
constexpr unsigned kDelta = Column::kWithDeltas;
constexpr unsigned kLayout = Column::kWithLayout;
constexpr unsigned kHot = Column::kWithHot;

constexpr Column kColumns[] = {
    {"sst-files", kAlways, [](const PathStats& p) { return p.sst_files; }},
    {"sst-bytes", kAlways, [](const PathStats& p) { return p.sst_bytes; }},
    {"blob-files", kAlways, [](const PathStats& p) { return p.blob_files; }},
    {"blob-bytes", kAlways, [](const PathStats& p) { return p.blob_bytes; }},
    {"blob-live-bytes", kAlways,
     [](const PathStats& p) { return p.BlobLiveBytes(); }},
    {"blob-garbage-bytes", kAlways,
     [](const PathStats& p) { return p.blob_garbage_bytes; }},
    {"hot-files", kHot, [](const PathStats& p) { return p.hot_files; }},
    {"hot-bytes", kHot, [](const PathStats& p) { return p.hot_bytes; }},
    {"delta-files", kDelta, [](const PathStats& p) { return p.delta_files; }},
    {"delta-bytes", kDelta, [](const PathStats& p) { return p.delta_bytes; }},
    {"misplaced-files", kLayout,
     [](const PathStats& p) { return p.misplaced_files; }},
    {"misplaced-bytes", kLayout,
     [](const PathStats& p) { return p.misplaced_bytes; }},
    {"sst-reads", kRead, [](const PathStats& p) { return p.sst_reads.reads; }},
    {"sst-read-bytes", kRead,
     [](const PathStats& p) { return p.sst_reads.bytes; }},
    {"blob-reads", kRead,
     [](const PathStats& p) { return p.blob_reads.reads; }},
    {"blob-read-bytes", kRead,
     [](const PathStats& p) { return p.blob_reads.bytes; }},
    {"delta-reads", kRead | kDelta,
     [](const PathStats& p) { return p.delta_reads.reads; }},
    {"delta-read-bytes", kRead | kDelta,
     [](const PathStats& p) { return p.delta_reads.bytes; }},
};

std::vector<const Column*> ShownColumns(const std::vector<PathStats>& paths) {
  unsigned given = kAlways;
  for (const PathStats& path : paths) {
    given |= path.has_reads ? kRead : 0;
    given |= path.has_misplaced ? kLayout : 0;
    given |= path.hot_files > 0 ? kHot : 0;
    given |= path.delta_files > 0 || path.delta_reads.reads > 0 ? kDelta : 0;
  }
  std::vector<const Column*> columns;
  for (const Column& column : kColumns) {
    if ((column.shown & given) == column.shown) {
      columns.push_back(&column);
    }
  }
  return columns;
}

// The width of the longest heading.
constexpr int kColumnWidth = 18;

// A column of the tables of jobs and costs.
struct TextColumn {
  // The key in the map is "path<i>." + this.
  const char* name;
  std::string (*get)(const PathStats&);
};

// Returns part / whole with four decimals; 0 if there is no whole.
std::string Share(uint64_t part, uint64_t whole) {
  const double share =
      whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  return PathCost::Text(std::round(share * 10000) / 10000);
}

template <PathJob job>
std::string Written(const PathStats& path) {
  return std::to_string(path.Job(job).written);
}

template <PathJob job>
std::string Read(const PathStats& path) {
  return std::to_string(path.Job(job).read);
}

constexpr TextColumn kJobColumns[] = {
    {"flush-written-bytes", Written<PathJob::kFlush>},
    {"compaction-written-bytes", Written<PathJob::kCompaction>},
    {"gc-written-bytes", Written<PathJob::kBlobGc>},
    {"delta-written-bytes", Written<PathJob::kDelta>},
    {"gc-written-share",
     [](const PathStats& p) {
       return Share(p.Job(PathJob::kBlobGc).written, p.WrittenBytes());
     }},
    {"flush-job-read-bytes", Read<PathJob::kFlush>},
    {"compaction-job-read-bytes", Read<PathJob::kCompaction>},
    {"gc-job-read-bytes", Read<PathJob::kBlobGc>},
    {"delta-job-read-bytes", Read<PathJob::kDelta>},
    {"gc-read-share",
     [](const PathStats& p) {
       return Share(p.Job(PathJob::kBlobGc).read, p.ReadBytes());
     }},
};

template <PathIo io, uint64_t PathIoTimes::Counts::*number>
std::string JobIo(const PathStats& path) {
  return std::to_string(path.JobIo(io).*number);
}

using IoCounts = PathIoTimes::Counts;

constexpr TextColumn kTimeColumns[] = {
    {"timed-reads",
     [](const PathStats& p) { return std::to_string(p.TimedReads()); }},
    {"read-micros",
     [](const PathStats& p) { return std::to_string(p.ReadMicros()); }},
    {"max-job-read-micros", JobIo<PathIo::kRead, &IoCounts::max_micros>},
    {"job-writes", JobIo<PathIo::kWrite, &IoCounts::operations>},
    {"job-write-micros", JobIo<PathIo::kWrite, &IoCounts::micros>},
    {"max-job-write-micros", JobIo<PathIo::kWrite, &IoCounts::max_micros>},
    {"job-syncs", JobIo<PathIo::kSync, &IoCounts::operations>},
    {"job-sync-micros", JobIo<PathIo::kSync, &IoCounts::micros>},
    {"max-job-sync-micros", JobIo<PathIo::kSync, &IoCounts::max_micros>},
    {"slow-job-ios",
     [](const PathStats& p) { return std::to_string(p.slow_ios); }},
};

constexpr TextColumn kCostColumns[] = {
    {"price", [](const PathStats& p) { return PathCost::Text(p.price); }},
    {"live-file-bytes",
     [](const PathStats& p) { return std::to_string(p.LiveFileBytes()); }},
    {"live-file-cost",
     [](const PathStats& p) {
       return PathCost::Text(PathCost::Of(p.LiveFileBytes(), p.price));
     }},
    {"obsolete-bytes",
     [](const PathStats& p) { return std::to_string(p.obsolete_bytes); }},
    {"obsolete-cost",
     [](const PathStats& p) {
       return PathCost::Text(PathCost::Of(p.obsolete_bytes, p.price));
     }},
    {"cost",
     [](const PathStats& p) {
       return PathCost::Text(
           PathCost::Of(p.LiveFileBytes() + p.obsolete_bytes, p.price));
     }},
};

bool HasJobs(const std::vector<PathStats>& paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [](const PathStats& path) { return path.has_jobs; });
}

bool HasTimes(const std::vector<PathStats>& paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [](const PathStats& path) { return path.has_times; });
}

bool HasCosts(const std::vector<PathStats>& paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [](const PathStats& path) { return path.has_price; });
}

PathCost CostOf(const std::vector<PathStats>& paths) {
  PathCost cost;
  for (const PathStats& path : paths) {
    cost.Add(path.LiveFileBytes() + path.obsolete_bytes, path.price);
  }
  return cost;
}

template <size_t n>
void PrintTable(const std::vector<PathStats>& paths,
                const TextColumn (&columns)[n], std::ostream* text) {
  const auto width = [](const TextColumn& column) {
    return std::max(kColumnWidth, static_cast<int>(strlen(column.name)));
  };
  *text << "path";
  for (const TextColumn& column : columns) {
    *text << "  " << std::setw(width(column)) << column.name;
  }
  *text << '\n';
  for (size_t i = 0; i < paths.size(); ++i) {
    *text << std::setw(4) << i;
    for (const TextColumn& column : columns) {
      *text << "  " << std::setw(width(column)) << column.get(paths[i]);
    }
    *text << '\n';
  }
}

template <size_t n>
void AddToMap(const PathStats& path, const std::string& prefix,
              const TextColumn (&columns)[n],
              std::map<std::string, std::string>* values) {
  for (const TextColumn& column : columns) {
    (*values)[prefix + column.name] = column.get(path);
  }
}

}  // namespace

std::vector<PathStats> PathStats::Collect(const VersionStorageInfo& vstorage,
                                          const std::vector<DbPath>& cf_paths,
                                          const PathReadStats* reads,
                                          const AddressMapStore* mapped) {
  assert(!cf_paths.empty());
  std::vector<PathStats> paths(cf_paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    paths[i].directory = cf_paths[i].path;
    paths[i].has_reads = reads != nullptr;
    if (reads != nullptr && i < PathReadStats::kMaxPaths) {
      const uint32_t id = static_cast<uint32_t>(i);
      paths[i].sst_reads = reads->Get(PathReadStats::FileKind::kSst, id);
      paths[i].blob_reads = reads->Get(PathReadStats::FileKind::kBlob, id);
      paths[i].delta_reads = reads->Get(PathReadStats::FileKind::kDelta, id);
    }
  }
  // Files with a path id beyond the list are on the last path.
  const auto path_of = [&paths](uint32_t id) -> PathStats& {
    return paths[PathLayout::IndexOf(id, paths.size())];
  };
  for (int level = 0; level < vstorage.num_levels(); ++level) {
    for (const FileMetaData* file : vstorage.LevelFiles(level)) {
      PathStats& path = path_of(file->fd.GetPathId());
      ++path.sst_files;
      path.sst_bytes += file->fd.GetFileSize();
    }
  }
  for (const auto& blob_file : vstorage.GetBlobFiles()) {
    PathStats& path = path_of(blob_file->GetPathId());
    ++path.blob_files;
    path.blob_bytes += blob_file->GetBlobFileSize();
    if (blob_file->hot().is_hot()) {
      ++path.hot_files;
      path.hot_bytes += blob_file->GetBlobFileSize();
    }
    path.blob_garbage_bytes +=
        blob_file->GetGarbageBlobBytes() +
        (mapped == nullptr ? 0 : mapped->GarbageBytes(*blob_file));
  }
  if (vstorage.delta() != nullptr) {
    vstorage.delta()->ForEachFile([&](const DeltaVersion::FilePtr& file) {
      PathStats& path = path_of(file->description().path_id);
      ++path.delta_files;
      path.delta_bytes += file->description().size;
    });
  }
  return paths;
}

void PathStats::AddJobs(const PathJobStats& jobs,
                        std::vector<PathStats>* paths) {
  for (size_t i = 0; i < paths->size() && i < PathJobStats::kMaxPaths; ++i) {
    PathStats& path = (*paths)[i];
    path.has_jobs = true;
    for (size_t job = 0; job < kNumPathJobs; ++job) {
      path.jobs[job] =
          jobs.Get(static_cast<PathJob>(job), static_cast<uint32_t>(i));
    }
  }
}

void PathStats::AddTimes(const PathIoTimes& times,
                         std::vector<PathStats>* paths) {
  for (size_t i = 0; i < paths->size() && i < PathIoTimes::kMaxPaths; ++i) {
    PathStats& path = (*paths)[i];
    const uint32_t id = static_cast<uint32_t>(i);
    path.has_times = true;
    for (size_t io = 0; io < kNumPathIos; ++io) {
      path.job_ios[io] = times.Get(static_cast<PathIo>(io), id);
    }
    path.slow_ios = times.NumSlow(id);
  }
}

void PathStats::AddMisplaced(const MutableCFOptions& options,
                             const MisplacedBytes& misplaced,
                             std::vector<PathStats>* paths) {
  assert(misplaced.paths().size() == paths->size());
  // Files also move home after the options that had placed them were reset.
  if (!PathLayout::PlacesFiles(options) && misplaced.IsEmpty()) {
    return;
  }
  for (size_t i = 0; i < paths->size(); ++i) {
    PathStats& path = (*paths)[i];
    path.has_misplaced = true;
    path.misplaced_files = misplaced.paths()[i].files;
    path.misplaced_bytes = misplaced.paths()[i].bytes;
  }
}

void PathStats::AddCosts(const std::vector<double>& prices,
                         const std::vector<uint64_t>& obsolete_bytes,
                         std::vector<PathStats>* paths) {
  assert(prices.size() == paths->size());
  assert(obsolete_bytes.size() == paths->size());
  for (size_t i = 0; i < paths->size(); ++i) {
    PathStats& path = (*paths)[i];
    path.has_price = true;
    path.price = prices[i];
    path.obsolete_bytes = obsolete_bytes[i];
  }
}

std::vector<PathStats> PathStats::CollectAll(ColumnFamilyData* cfd) {
  const std::vector<DbPath>& cf_paths = cfd->ioptions().cf_paths;
  const PathReadStats* const reads =
      cfd->table_cache()->path_read_stats().get();
  std::vector<PathStats> paths =
      Collect(*cfd->current()->storage_info(), cf_paths, reads,
              cfd->address_map_store());
  const MutableCFOptions& options = cfd->GetLatestMutableCFOptions();
  if (reads != nullptr && reads->times() != nullptr) {
    AddTimes(*reads->times(), &paths);
  }
  if (reads != nullptr && PathLayout::NamesPaths(options)) {
    AddJobs(reads->jobs(), &paths);
  }
  AddMisplaced(options, MisplacedBytes::Of(cfd), &paths);
  if (options.path_prices.size() == paths.size()) {
    AddCosts(options.path_prices, ObsoleteBytes(cfd, paths.size()), &paths);
  }
  return paths;
}

uint64_t PathStats::WrittenBytes() const {
  uint64_t bytes = 0;
  for (const PathJobStats::Counts& job : jobs) {
    bytes += job.written;
  }
  return bytes;
}

std::string PathStats::ToString(const std::vector<PathStats>& paths) {
  const std::vector<const Column*> columns = ShownColumns(paths);
  std::ostringstream text;
  text << "path";
  for (const Column* column : columns) {
    text << "  " << std::setw(kColumnWidth) << column->name;
  }
  text << "  directory\n";
  for (size_t i = 0; i < paths.size(); ++i) {
    text << std::setw(4) << i;
    for (const Column* column : columns) {
      text << "  " << std::setw(kColumnWidth) << column->get(paths[i]);
    }
    text << "  " << paths[i].directory << '\n';
  }
  if (HasTimes(paths)) {
    PrintTable(paths, kTimeColumns, &text);
  }
  if (HasJobs(paths)) {
    PrintTable(paths, kJobColumns, &text);
  }
  if (HasCosts(paths)) {
    const PathCost cost = CostOf(paths);
    PrintTable(paths, kCostColumns, &text);
    text << "cost: " << PathCost::Text(cost.cost()) << " for " << cost.bytes()
         << " bytes; all on path " << cost.dearest()
         << ", the dearest: " << PathCost::Text(cost.CostOnDearest())
         << "; ratio: " << cost.RatioText() << '\n';
  }
  return text.str();
}

void PathStats::ToMap(const std::vector<PathStats>& paths,
                      std::map<std::string, std::string>* values) {
  const std::vector<const Column*> columns = ShownColumns(paths);
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string prefix = "path" + std::to_string(i) + ".";
    (*values)[prefix + "directory"] = paths[i].directory;
    for (const Column* column : columns) {
      (*values)[prefix + column->name] = std::to_string(column->get(paths[i]));
    }
    if (HasTimes(paths)) {
      AddToMap(paths[i], prefix, kTimeColumns, values);
    }
    if (HasJobs(paths)) {
      AddToMap(paths[i], prefix, kJobColumns, values);
    }
    if (HasCosts(paths)) {
      AddToMap(paths[i], prefix, kCostColumns, values);
    }
  }
  if (HasCosts(paths)) {
    const PathCost cost = CostOf(paths);
    (*values)["cost.bytes"] = std::to_string(cost.bytes());
    (*values)["cost.sum"] = PathCost::Text(cost.cost());
    (*values)["cost.dearest-path"] = std::to_string(cost.dearest());
    (*values)["cost.on-dearest"] = PathCost::Text(cost.CostOnDearest());
    if (cost.HasRatio()) {
      (*values)["cost.ratio"] = cost.RatioText();
    }
  }
}

// The handlers of the property. Both run under the DB mutex, which keeps the
// current Version alive.

bool InternalStats::HandlePathStats(std::string* value, Slice /*suffix*/) {
  value->append(PathStats::ToString(PathStats::CollectAll(cfd_)));
  return true;
}

bool InternalStats::HandlePathStatsMap(
    std::map<std::string, std::string>* values, Slice /*suffix*/) {
  PathStats::ToMap(PathStats::CollectAll(cfd_), values);
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
