//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/stored_cost.h"

#include <algorithm>
#include <cassert>
#include <iomanip>
#include <map>
#include <sstream>
#include <utility>

#include "db/path_layout/path_layout.h"
#include "file/filename.h"
#include "options/strata/path_prices.h"
#include "rocksdb/file_system.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Directories are compared as text, without slashes at the end and double ones.
std::string Normalized(const std::string& directory) {
  std::string result = NormalizePath(directory);
  while (result.size() > 1 && result.back() == '/') {
    result.pop_back();
  }
  return result;
}

std::string NameIn(const std::string& directory,
                   const ManifestFamily::File& file) {
  switch (file.type) {
    case kTableFile:
      return MakeTableFileName(directory, file.number);
    case kBlobFile:
      return BlobFileName(directory, file.number);
    default:
      return DeltaFileName(directory, file.number);
  }
}

void AddTo(StoredCost::Row* row, FileType type, uint64_t size) {
  ++row->files;
  switch (type) {
    case kTableFile:
      row->sst_bytes += size;
      break;
    case kBlobFile:
      row->blob_bytes += size;
      break;
    case kDeltaFile:
      row->delta_bytes += size;
      break;
    default:
      row->other_bytes += size;
  }
}

// Returns true if a column family could have the file, or it is one that waits
// for its deletion.
bool IsOfAFamily(const std::string& child, FileType* type) {
  constexpr const char* kTrash = ".trash";
  std::string name = child;
  if (Slice(name).ends_with(kTrash)) {
    name.resize(name.size() - Slice(kTrash).size());
  }
  uint64_t number = 0;
  return ParseFileName(name, &number, type) &&
         (*type == kTableFile || *type == kBlobFile || *type == kDeltaFile);
}

}  // namespace

Status StoredCost::SetPrices(const std::string& name,
                             const std::vector<double>& prices,
                             std::vector<Family>* families) {
  const auto reference = std::max_element(
      families->begin(), families->end(), [](const Family& a, const Family& b) {
        return a.paths.size() < b.paths.size();
      });
  if (reference == families->end()) {
    return Status::OK();
  }
  Status s = CheckPathPrices(name, prices, reference->paths.size());
  if (!s.ok()) {
    return AppendMessage(s, " in column family ", reference->name);
  }
  std::map<std::string, double> price_of;
  for (size_t i = 0; i < prices.size(); ++i) {
    price_of.emplace(Normalized(reference->paths[i].path), prices[i]);
  }
  reference->prices = prices;
  for (Family& family : *families) {
    if (&family == &*reference) {
      continue;
    }
    family.prices.clear();
    for (const DbPath& path : family.paths) {
      const auto found = price_of.find(Normalized(path.path));
      if (found == price_of.end()) {
        return Status::InvalidArgument(
            name + " are those of the paths of column family " +
            reference->name + ", and none is for a path of column family " +
            family.name + ": " + path.path +
            ". Ask for one column family at a time (--column_family), or set "
            "path_prices in each");
      }
      family.prices.push_back(found->second);
    }
  }
  return s;
}

StoredCost::StoredCost(FileSystem* fs, std::vector<Family> families)
    : fs_(fs), families_(std::move(families)) {}

void StoredCost::AddManifest(const std::vector<ManifestFamily>& files) {
  for (const Family& family : families_) {
    assert(!family.paths.empty());
    assert(family.prices.size() == family.paths.size());
    const size_t begin = rows_.size();
    for (size_t i = 0; i < family.paths.size(); ++i) {
      Row row;
      row.what = "[" + family.name + "]";
      row.path_id = static_cast<int>(i);
      row.directory = family.paths[i].path;
      row.price = family.prices[i];
      rows_.push_back(row);
    }
    for (const ManifestFamily& in_manifest : files) {
      if (in_manifest.name != family.name) {
        continue;
      }
      for (const ManifestFamily::File& file : in_manifest.files) {
        const size_t i = PathLayout::IndexOf(file.path_id, family.paths.size());
        AddTo(&rows_[begin + i], file.type, file.size);
        known_.insert(NameIn(Normalized(family.paths[i].path), file));
      }
    }
  }
}

Status StoredCost::AddDirectories(const std::string& dbname,
                                  const std::string& wal_dir) {
  missing_ = known_;
  const std::string database = Normalized(dbname);
  const std::string wals = Normalized(wal_dir);
  std::vector<std::pair<std::string, const char*>> directories = {
      {database, "database dir"}};
  if (wals != database) {
    directories.emplace_back(wals, "WAL dir");
  }
  for (const Family& family : families_) {
    for (const DbPath& path : family.paths) {
      const std::string directory = Normalized(path.path);
      if (std::none_of(
              directories.begin(), directories.end(),
              [&](const auto& known) { return known.first == directory; })) {
        directories.emplace_back(directory, nullptr);
      }
    }
  }
  for (const auto& [directory, what] : directories) {
    Row own;
    own.directory = directory;
    own.price = PriceOf(directory);
    Status s = AddDirectory(directory, what == nullptr ? nullptr : &own);
    if (!s.ok()) {
      return s;
    }
    if (what != nullptr) {
      own.what = what;
      rows_.push_back(own);
    }
  }
  return Status::OK();
}

Status StoredCost::FindMissing() {
  missing_ = known_;
  std::set<std::string> directories;
  for (const Family& family : families_) {
    for (const DbPath& path : family.paths) {
      directories.insert(Normalized(path.path));
    }
  }
  for (const std::string& directory : directories) {
    std::vector<std::string> children;
    const IOStatus io_s =
        fs_->GetChildren(directory, IOOptions(), &children, nullptr);
    if (!io_s.ok() && !io_s.IsNotFound() && !io_s.IsPathNotFound()) {
      return io_s;
    }
    for (const std::string& child : children) {
      missing_.erase(directory + "/" + child);
    }
  }
  return Status::OK();
}

double StoredCost::PriceOf(const std::string& directory) const {
  double highest = 0;
  for (const Family& family : families_) {
    for (size_t i = 0; i < family.paths.size(); ++i) {
      if (Normalized(family.paths[i].path) == directory) {
        return family.prices[i];
      }
      highest = std::max(highest, family.prices[i]);
    }
  }
  return highest;
}

Status StoredCost::AddDirectory(const std::string& directory, Row* own) {
  Row unknown;
  unknown.what = "not in MANIFEST";
  unknown.directory = directory;
  unknown.price = PriceOf(directory);
  std::vector<std::string> pending = {directory};
  if (own != nullptr) {
    pending.push_back(ArchivalDirectory(directory));
  }
  for (const std::string& parent : pending) {
    std::vector<std::string> children;
    IOStatus io_s = fs_->GetChildren(parent, IOOptions(), &children, nullptr);
    if (io_s.IsNotFound() || io_s.IsPathNotFound()) {
      continue;
    }
    if (!io_s.ok()) {
      return io_s;
    }
    for (const std::string& child : children) {
      const std::string name = parent + "/" + child;
      bool is_directory = false;
      if (child == "." || child == ".." ||
          (fs_->IsDirectory(name, IOOptions(), &is_directory, nullptr).ok() &&
           is_directory)) {
        continue;
      }
      if (known_.count(name) > 0) {
        missing_.erase(name);
        continue;
      }
      FileType type = kTempFile;
      const bool is_of_a_family = IsOfAFamily(child, &type);
      if (!is_of_a_family && own == nullptr) {
        continue;
      }
      uint64_t size = 0;
      io_s = fs_->GetFileSize(name, IOOptions(), &size, nullptr);
      if (io_s.IsNotFound() || io_s.IsPathNotFound()) {
        continue;
      }
      if (!io_s.ok()) {
        return io_s;
      }
      AddTo(is_of_a_family ? &unknown : own,
            is_of_a_family ? type : FileType::kTempFile, size);
    }
  }
  if (unknown.files > 0) {
    rows_.push_back(unknown);
  }
  return Status::OK();
}

PathCost StoredCost::Sum() const {
  PathCost sum;
  for (const Row& row : rows_) {
    sum.Add(row.Bytes(), row.price);
  }
  return sum;
}

std::string StoredCost::ToString() const {
  const std::vector<std::string> headings = {
      "files of",    "path",        "price", "files", "SST bytes", "blob bytes",
      "delta bytes", "other bytes", "bytes", "cost",  "directory"};
  std::vector<std::vector<std::string>> lines = {headings};
  for (const Row& row : rows_) {
    lines.push_back(
        {row.what, row.path_id < 0 ? "-" : std::to_string(row.path_id),
         PathCost::Text(row.price), std::to_string(row.files),
         std::to_string(row.sst_bytes), std::to_string(row.blob_bytes),
         std::to_string(row.delta_bytes), std::to_string(row.other_bytes),
         std::to_string(row.Bytes()),
         PathCost::Text(PathCost::Of(row.Bytes(), row.price)), row.directory});
  }
  std::ostringstream text;
  std::vector<size_t> widths(headings.size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  for (const auto& line : lines) {
    // Texts are aligned to the left, numbers to the right.
    text << std::left << std::setw(static_cast<int>(widths[0])) << line[0]
         << std::right;
    for (size_t i = 1; i + 1 < line.size(); ++i) {
      text << "  " << std::setw(static_cast<int>(widths[i])) << line[i];
    }
    text << "  " << line.back() << '\n';
  }
  const PathCost sum = Sum();
  text << "sum: " << sum.bytes() << " bytes, cost "
       << PathCost::Text(sum.cost()) << '\n'
       << "all on the dearest path (" << PathCost::Text(sum.dearest_price())
       << " per GiB): " << PathCost::Text(sum.CostOnDearest()) << '\n'
       << "ratio: " << sum.RatioText() << '\n';
  return text.str();
}

}  // namespace ROCKSDB_NAMESPACE
