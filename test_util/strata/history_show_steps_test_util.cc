//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_show_steps_test_util.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "db/blob/blob_constants.h"
#include "file/filename.h"
#include "rocksdb/metadata.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Returns the number of the directory, or its masked name if the family does
// not have it.
std::string PathName(HistoryCall& c, const std::string& directory) {
  const std::vector<std::string>& paths = c.family().paths;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i] == directory) {
      return "path" + std::to_string(i);
    }
  }
  return c.state().names().Mask(directory);
}

// Names the files by their age, not by their level.
void NameFiles(HistoryCall& c, const ColumnFamilyMetaData& meta) {
  std::vector<uint64_t> numbers;
  std::vector<uint64_t> blob_numbers;
  for (const LevelMetaData& level : meta.levels) {
    for (const SstFileMetaData& file : level.files) {
      numbers.push_back(file.file_number);
      if (file.oldest_blob_file_number != kInvalidBlobFileNumber) {
        blob_numbers.push_back(file.oldest_blob_file_number);
      }
    }
  }
  std::sort(numbers.begin(), numbers.end());
  for (const uint64_t number : numbers) {
    c.state().names().FileName('F', number);
  }
  std::sort(blob_numbers.begin(), blob_numbers.end());
  for (const uint64_t number : blob_numbers) {
    c.state().names().FileName('B', number);
  }
}

void Files(HistoryCall& c) {
  c.state().WaitForCleanup();
  ColumnFamilyMetaData meta;
  c.db()->GetColumnFamilyMetaData(c.handle(), &meta);
  NameFiles(c, meta);
  for (const LevelMetaData& level : meta.levels) {
    for (const SstFileMetaData& file : level.files) {
      c.out()
          .append("L" + std::to_string(level.level) + ": ")
          .append(c.state().names().FileName('F', file.file_number))
          .append(" ")
          .append(PathName(c, file.directory))
          .append(" ")
          .append(file.smallestkey)
          .append("..")
          .append(file.largestkey);
      if (file.oldest_blob_file_number != kInvalidBlobFileNumber) {
        c.out()
            .append(" blobs>=")
            .append(
                c.state().names().FileName('B', file.oldest_blob_file_number));
      }
      c.out().append("\n");
    }
  }
  if (c.out().empty()) {
    c.out() = "(no files)\n";
  }
}

void Blobs(HistoryCall& c) {
  c.state().WaitForCleanup();
  ColumnFamilyMetaData meta;
  c.db()->GetColumnFamilyMetaData(c.handle(), &meta);
  std::sort(meta.blob_files.begin(), meta.blob_files.end(),
            [](const BlobMetaData& a, const BlobMetaData& b) {
              return a.blob_file_number < b.blob_file_number;
            });
  for (const BlobMetaData& file : meta.blob_files) {
    c.out()
        .append(c.state().names().FileName('B', file.blob_file_number))
        .append(" ")
        .append(PathName(c, file.blob_file_path))
        .append(" values=")
        .append(std::to_string(file.total_blob_count))
        .append(" garbage=")
        .append(std::to_string(file.garbage_blob_count))
        .append("\n");
  }
  if (c.out().empty()) {
    c.out() = "(no blob files)\n";
  }
}

// Shows the contents of the delta files, tier by tier, and, with the argument
// "paths", path by path.
void Deltas(HistoryCall& c) {
  const bool with_paths = HistoryArguments::TakeWord(&c.args(), "paths");
  if (!c.args().empty()) {
    c.Usage();
    return;
  }
  c.state().WaitForCleanup();
  ColumnFamilyMetaData meta;
  c.db()->GetColumnFamilyMetaData(c.handle(), &meta);
  struct Sums {
    uint64_t operands = 0;
    uint64_t anchors = 0;
    uint64_t ranges = 0;
  };
  using Tier = DeltaMetaData::Tier;
  const std::pair<Tier, const char*> tiers[] = {{Tier::kFlushed, "flushed"},
                                                {Tier::kMerged, "merged"},
                                                {Tier::kSorted, "sorted"}};
  for (const auto& [tier, name] : tiers) {
    // The key is the text behind the name of the tier.
    std::map<std::string, Sums> sums;
    for (const DeltaMetaData& file : meta.delta_files) {
      if (file.tier == tier) {
        Sums& sum = sums[with_paths ? " " + PathName(c, file.directory)
                                    : std::string()];
        (file.kind == DeltaMetaData::Kind::kOperands ? sum.operands
                                                     : sum.anchors) +=
            file.num_entries;
        sum.ranges += file.num_ranges;
      }
    }
    for (const auto& [path, sum] : sums) {
      c.out()
          .append(name)
          .append(path)
          .append(" operands=" + std::to_string(sum.operands))
          .append(" anchors=" + std::to_string(sum.anchors))
          .append(" ranges=" + std::to_string(sum.ranges))
          .append("\n");
    }
  }
  if (c.out().empty()) {
    c.out() = "(no delta files)\n";
  }
}

// Shows the files in the directories, including those that the DB does not
// know.
void Ls(HistoryCall& c) {
  c.state().WaitForCleanup();
  std::set<std::string> directories;
  for (const auto& family : c.state().families()) {
    directories.insert(family.second.paths.begin(), family.second.paths.end());
  }
  for (const std::string& directory : directories) {
    std::vector<std::string> children;
    Status s = Env::Default()->GetChildren(directory, &children);
    size_t num_ssts = 0;
    size_t num_blobs = 0;
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(child, &number, &type)) {
        num_ssts += type == kTableFile ? 1 : 0;
        num_blobs += type == kBlobFile ? 1 : 0;
      }
    }
    c.out()
        .append(c.state().names().Mask(directory))
        .append(s.ok() ? "" : " (missing)")
        .append(" sst=" + std::to_string(num_ssts))
        .append(" blob=" + std::to_string(num_blobs))
        .append("\n");
  }
}

void PathStats(HistoryCall& c) {
  std::map<std::string, std::string> values;
  if (!c.db()->GetMapProperty(c.handle(), DB::Properties::kPathStats,
                              &values)) {
    c.out() = "(no such property)\n";
    return;
  }
  const auto get = [&values](size_t path, const char* name) {
    const auto it = values.find("path" + std::to_string(path) + "." + name);
    return it == values.end() ? std::string("-") : it->second;
  };
  for (size_t i = 0; i < c.family().paths.size(); ++i) {
    const auto is_read = [&](const char* name) {
      const std::string count = get(i, name);
      return std::string(count == "0" ? "no" : count == "-" ? "-" : "yes");
    };
    c.out()
        .append("path" + std::to_string(i))
        .append(" sst=" + get(i, "sst-files"))
        .append(" blob=" + get(i, "blob-files"))
        .append(" blob-bytes=" + get(i, "blob-bytes"))
        .append(" garbage=" + get(i, "blob-garbage-bytes"))
        .append(" sst-read=" + is_read("sst-reads"))
        .append(" blob-read=" + is_read("blob-reads"))
        .append("\n");
  }
}

// Returns false if the DB has no such property, or the property no such field.
// REQUIRES: there are one or two arguments
bool GetProperty(HistoryCall& c, std::string* value) {
  const HistoryWords& args = c.args();
  if (args.size() == 1) {
    return c.db()->GetProperty(c.handle(), args[0], value);
  }
  std::map<std::string, std::string> fields;
  if (!c.db()->GetMapProperty(c.handle(), args[0], &fields)) {
    return false;
  }
  const auto field = fields.find(args[1]);
  if (field == fields.end()) {
    return false;
  }
  *value = field->second;
  return true;
}

void Property(HistoryCall& c) {
  std::string value;
  if (c.args().empty() || c.args().size() > 2) {
    c.Usage();
  } else if (GetProperty(c, &value)) {
    c.out() = c.state().names().Mask(value);
    if (c.out().empty() || c.out().back() != '\n') {
      c.out().push_back('\n');
    }
  } else {
    c.out() = "(no such property)\n";
  }
}

}  // namespace

const std::vector<HistoryStep>& HistoryShowSteps() {
  static const std::vector<HistoryStep> kSteps = {
      {"files", Files, true, true, "files"},
      {"blobs", Blobs, true, true, "blobs"},
      {"deltas", Deltas, true, true, "deltas [paths]"},
      {"ls", Ls, true, false, "ls"},
      {"pathstats", PathStats, true, true, "pathstats"},
      {"property", Property, true, true, "property NAME [FIELD]"},
  };
  return kSteps;
}

}  // namespace ROCKSDB_NAMESPACE
