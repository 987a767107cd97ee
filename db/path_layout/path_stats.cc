//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_stats.h"

#include <cassert>
#include <iomanip>
#include <sstream>

#include "db/address_map/address_map_store.h"
#include "db/column_family.h"
#include "db/delta/delta_version.h"
#include "db/internal_stats.h"
#include "db/path_layout/path_layout.h"
#include "db/table_cache.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

namespace {

struct Column {
  // When the column is shown; a combination of bits that must all be given.
  enum Shown : unsigned { kAlways = 0, kWithReads = 1, kWithDeltas = 2 };

  // The key in the map is "path<i>." + this.
  const char* name;
  unsigned shown;
  uint64_t (*get)(const PathStats&);
};

constexpr unsigned kAlways = Column::kAlways;
constexpr unsigned kRead = Column::kWithReads;
constexpr unsigned kDelta = Column::kWithDeltas;

constexpr Column kColumns[] = {
    {"sst-files", kAlways, [](const PathStats& p) { return p.sst_files; }},
    {"sst-bytes", kAlways, [](const PathStats& p) { return p.sst_bytes; }},
    {"blob-files", kAlways, [](const PathStats& p) { return p.blob_files; }},
    {"blob-bytes", kAlways, [](const PathStats& p) { return p.blob_bytes; }},
    {"blob-live-bytes", kAlways,
     [](const PathStats& p) { return p.BlobLiveBytes(); }},
    {"blob-garbage-bytes", kAlways,
     [](const PathStats& p) { return p.blob_garbage_bytes; }},
    {"delta-files", kDelta, [](const PathStats& p) { return p.delta_files; }},
    {"delta-bytes", kDelta, [](const PathStats& p) { return p.delta_bytes; }},
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
  }
}

// The handlers of the property. Both run under the DB mutex, which keeps the
// current Version alive.

bool InternalStats::HandlePathStats(std::string* value, Slice /*suffix*/) {
  value->append(PathStats::ToString(PathStats::Collect(
      *cfd_->current()->storage_info(), cfd_->ioptions().cf_paths,
      cfd_->table_cache()->path_read_stats().get(),
      cfd_->address_map_store())));
  return true;
}

bool InternalStats::HandlePathStatsMap(
    std::map<std::string, std::string>* values, Slice /*suffix*/) {
  PathStats::ToMap(
      PathStats::Collect(*cfd_->current()->storage_info(),
                         cfd_->ioptions().cf_paths,
                         cfd_->table_cache()->path_read_stats().get(),
                         cfd_->address_map_store()),
      values);
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
