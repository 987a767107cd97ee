//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/strata/feature_traces.h"

#include <set>

#include "db/address_map/address_map_checkpoint.h"
#include "db/address_map/mapped_table_property.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/path_layout/directory_names.h"
#include "file/filename.h"
#include "options/strata/options_file_copy.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table_properties.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

bool IsImageOfMap(FileSystem* fs, const std::string& fname) {
  AddressMapCheckpoint::Io io;
  io.fs = fs;
  AddressMapCheckpoint::Header header;
  return AddressMapCheckpoint::ReadHeader(io, fname, &header).ok();
}

}  // namespace

void FeatureTraces::AddFile(FileSystem* fs, const std::string& directory,
                            const std::string& name) {
  uint64_t number = 0;
  FileType type = kInfoLogFile;
  if (!ParseFileName(name, &number, &type)) {
    return;
  }
  const std::string fname = directory + "/" + name;
  if (type == kWalBufferFile) {
    Add(FeatureSet::kWalBuffer, fname + ": a WAL buffer");
  } else if (type == kDeltaFile) {
    Add(FeatureSet::kDeltas, fname + ": a delta file");
  } else if (type == kTempFile && IsImageOfMap(fs, fname)) {
    Add(FeatureSet::kMap, fname + ": an image of an address map");
  } else if (type == kBlobFile &&
             StartsAsBlobFileV2(fs, fname, FileOptions(), IOOptions())) {
    Add(FeatureSet::kMap, fname + ": a blob file of format version 2");
  }
}

Status FeatureTraces::AddFiles(FileSystem* fs,
                               const std::vector<std::string>& directories) {
  std::set<std::string> done;
  for (const std::string& directory : directories) {
    if (!done.insert(CleanDirectoryName(fs, directory)).second) {
      continue;
    }
    std::vector<std::string> names;
    const IOStatus s = fs->GetChildren(directory, IOOptions(), &names, nullptr);
    if (s.IsNotFound() || s.IsPathNotFound()) {
      continue;
    }
    if (!s.ok()) {
      return AppendMessage(s, " in ", directory);
    }
    // The order is the same whatever the file system is.
    for (const std::string& name :
         std::set<std::string>(names.begin(), names.end())) {
      AddFile(fs, directory, name);
    }
  }
  return Status::OK();
}

Status FeatureTraces::AddTables(const Options& options,
                                const std::vector<std::string>& fnames) {
  for (const std::string& fname : fnames) {
    if (options.env->FileExists(fname).IsNotFound()) {
      ++num_missing_tables_;
      continue;
    }
    SstFileReader reader(options);
    const Status s = reader.Open(fname);
    if (!s.ok()) {
      return AppendMessage(s, " in ", fname);
    }
    ++num_tables_;
    const auto properties = reader.GetTableProperties();
    MappedTableProperty mapped;
    if (properties != nullptr &&
        mapped.ReadFrom(properties->user_collected_properties)) {
      Add(FeatureSet::kMap, fname + ": an SST file with the property " +
                                MappedTableProperty::kName);
    }
  }
  return Status::OK();
}

void FeatureTraces::AddOptions(const std::string& text) {
  for (const OptionsFileCopy::OwnOption& option :
       OptionsFileCopy::OwnOptions(text)) {
    Add(FeatureSet::OfOption(option.name),
        (option.family.empty() ? "the OPTIONS file: "
                               : "[" + option.family + "] the OPTIONS file: ") +
            option.name + "=" + option.value);
  }
}

FeatureSet FeatureTraces::Features() const {
  FeatureSet features;
  for (const Trace& trace : traces_) {
    features.Add(trace.features);
  }
  return features;
}

}  // namespace ROCKSDB_NAMESPACE
