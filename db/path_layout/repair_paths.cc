//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/repair_paths.h"

#include <algorithm>
#include <cassert>

#include "db/address_map/mapped_blob_index.h"
#include "db/blob/blob_file_addition.h"
#include "db/blob/blob_index.h"
#include "db/blob/blob_log_format.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/column_family.h"
#include "db/path_layout/directory_names.h"
#include "db/path_layout/manifest_files.h"
#include "db/path_layout/path_layout.h"
#include "db/path_layout/repair_env.h"
#include "db/path_layout/repair_wal_dir.h"
#include "db/table_cache.h"
#include "db/version_edit.h"
#include "db/wide/wide_column_serialization.h"
#include "file/filename.h"
#include "file/random_access_file_reader.h"
#include "logging/logging.h"
#include "rocksdb/convenience.h"
#include "rocksdb/env.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The properties of a blob file that the repair needs.
struct BlobFileFacts {
  // Says why the file has no valid header and footer. OK: it has both, and the
  // other members are set.
  Status damage;
  uint32_t column_family_id = 0;
  uint64_t blob_count = 0;
  uint64_t blob_bytes = 0;
  // 0 if the file does not belong to an address map.
  uint64_t index_bytes = 0;
};

Status ReadMappedFile(std::unique_ptr<FSRandomAccessFile>&& file,
                      const std::string& name, uint64_t size,
                      BlobFileFacts* facts) {
  const RandomAccessFileReader reader(std::move(file), name);
  BlobFileLayoutV2 layout;
  const Status s = BlobFileLayoutV2::Read(&reader, IOOptions(), size, &layout);
  if (s.IsCorruption()) {
    facts->damage = s;
    return Status::OK();
  }
  if (s.ok()) {
    facts->column_family_id = layout.header.column_family_id;
    facts->blob_count = layout.footer.blob_count;
    facts->blob_bytes = layout.index_offset - BlobHeaderV2::kSize;
    facts->index_bytes = layout.footer.index_size;
  }
  return s;
}

Status ReadBlobFile(FileSystem* fs, const std::string& name,
                    BlobFileFacts* facts) {
  *facts = BlobFileFacts();
  uint64_t size = 0;
  IOStatus s = fs->GetFileSize(name, IOOptions(), &size, nullptr);
  if (s.ok() && size < BlobLogHeader::kSize + BlobLogFooter::kSize) {
    facts->damage = CorruptBlobFile(name, size, "file too short");
    return s;
  }
  if (!s.ok()) {
    return s;
  }
  std::unique_ptr<FSRandomAccessFile> file;
  s = fs->NewRandomAccessFile(name, FileOptions(), &file, nullptr);
  if (!s.ok()) {
    return s;
  }
  char scratch[std::max(BlobLogHeader::kSize, BlobLogFooter::kSize)];
  Slice data;
  s = file->Read(0, BlobLogHeader::kSize, IOOptions(), &data, scratch, nullptr);
  if (!s.ok()) {
    return s;
  }
  if (IsBlobFileV2(data)) {
    return ReadMappedFile(std::move(file), name, size, facts);
  }
  BlobLogHeader header;
  BlobLogFooter footer;
  facts->damage = NameBlobFile(header.DecodeFrom(data), name, /*offset=*/0);
  if (facts->damage.ok()) {
    const uint64_t footer_offset = size - BlobLogFooter::kSize;
    s = file->Read(footer_offset, BlobLogFooter::kSize, IOOptions(), &data,
                   scratch, nullptr);
    if (!s.ok()) {
      return s;
    }
    facts->damage = NameBlobFile(footer.DecodeFrom(data), name, footer_offset);
  }
  if (facts->damage.ok()) {
    facts->column_family_id = header.column_family_id;
    facts->blob_count = footer.blob_count;
    facts->blob_bytes = size - BlobLogHeader::kSize - BlobLogFooter::kSize;
  }
  return Status::OK();
}

Status PathIdOf(FileSystem* fs, const std::vector<DbPath>& cf_paths,
                const std::string& family, const std::string& file,
                const std::string& directory, uint32_t* path_id) {
  const size_t count = std::min<size_t>(cf_paths.size(), PathLayout::kMaxPaths);
  for (size_t i = 0; i < count; ++i) {
    if (IsSameDirectory(fs, cf_paths[i].path, directory)) {
      *path_id = static_cast<uint32_t>(i);
      return Status::OK();
    }
  }
  return Status::InvalidArgument(
      file + " of column family \"" + family + "\" is in " + directory +
      ", which is not among the " + std::to_string(count) +
      " cf_paths (or db_paths) of the family. Add it to them, or move the "
      "file");
}

std::string TableTitle(uint64_t number) {
  return "Table #" + std::to_string(number);
}

std::string BlobFileTitle(uint64_t number) {
  return "Blob file #" + std::to_string(number);
}

// Returns the name of the file, without a directory.
std::string NameOf(const ManifestFamily::File& file) {
  const std::string name =
      file.type == kTableFile  ? MakeTableFileName(file.number)
      : file.type == kBlobFile ? BlobFileName(file.number)
                               : DeltaFileName("", file.number);
  return name.substr(name.rfind('/') + 1);
}

// Returns what the repair knew of the table when it first read it.
FileMetaData AsRead(const FileMetaData& table) {
  FileMetaData meta;
  meta.fd = FileDescriptor(table.fd.GetNumber(), /*path_id=*/0,
                           table.fd.GetFileSize());
  return meta;
}

}  // namespace

struct RepairPaths::Reader {
  Reader(const ImmutableOptions& base, const std::string& directory)
      : options(base) {
    options.cf_paths = {DbPath(directory, 0)};
  }

  ImmutableOptions options;
  std::unique_ptr<TableCache> table_cache;
};

RepairPaths::RepairPaths(const ImmutableOptions& options,
                         const FileOptions& file_options, Cache* cache,
                         const std::string& db_session_id)
    : options_(options),
      file_options_(file_options),
      cache_(cache),
      db_session_id_(db_session_id) {}

RepairPaths::~RepairPaths() { status_.PermitUncheckedError(); }

void RepairPaths::Add(const ColumnFamilyOptions& options) {
  Add(options.cf_paths,
      /*required=*/PathLayout::NamesPaths(MutableCFOptions(options)));
}

void RepairPaths::Add(const std::vector<DbPath>& paths, bool required) {
  for (const DbPath& path : paths) {
    const auto known = std::find_if(
        directories_.begin(), directories_.end(),
        [&](const std::string& directory) {
          return IsSameDirectory(options_.fs.get(), directory, path.path);
        });
    if (known != directories_.end()) {
      if (required) {
        optional_directories_.erase(*known);
      }
      continue;
    }
    directories_.push_back(path.path);
    if (!required) {
      optional_directories_.insert(path.path);
    }
  }
}

void RepairPaths::FoundIn(const std::string& directory,
                          const std::string& title, std::string* place) {
  if (!place->empty() && *place != directory) {
    status_.UpdateIfOk(Status::InvalidArgument(
        title + " is in " + *place + " and in " + directory +
        ". The repair cannot know which of the two belongs to the database. "
        "Move the other one out of these directories"));
  }
  *place = directory;
}

void RepairPaths::FoundTable(uint64_t number, const std::string& directory) {
  FoundIn(directory, TableTitle(number), &table_directories_[number]);
}

void RepairPaths::FoundBlobFile(uint64_t number, const std::string& directory) {
  FoundIn(directory, BlobFileTitle(number), &blob_directories_[number]);
}

std::string RepairPaths::TableName(uint64_t number) const {
  return MakeTableFileName(table_directories_.at(number), number);
}

TableCache* RepairPaths::CacheOf(uint64_t number) {
  const std::string& directory = table_directories_.at(number);
  std::unique_ptr<Reader>& reader = readers_[directory];
  if (reader == nullptr) {
    reader = std::make_unique<Reader>(options_, directory);
    reader->table_cache = std::make_unique<TableCache>(
        reader->options, &file_options_, cache_,
        /*block_cache_tracer=*/nullptr, /*io_tracer=*/nullptr, db_session_id_);
  }
  return reader->table_cache.get();
}

std::unique_ptr<InternalIterator> RepairPaths::NewPointIterator(
    const ReadOptions& read_options, const ColumnFamilyData& cfd,
    const FileMetaData& table) {
  return std::unique_ptr<InternalIterator>(
      CacheOf(table.fd.GetNumber())
          ->NewIterator(
              read_options, file_options_, cfd.internal_comparator(),
              AsRead(table),
              /*range_del_agg=*/nullptr, cfd.GetLatestMutableCFOptions(),
              /*table_reader_ptr=*/nullptr, /*file_read_hist=*/nullptr,
              TableReaderCaller::kRepair, /*arena=*/nullptr,
              /*skip_filters=*/false, /*level=*/-1,
              /*max_file_size_for_l0_meta_pin=*/0,
              /*smallest_compaction_key=*/nullptr,
              /*largest_compaction_key=*/nullptr,
              /*allow_unprepared_value=*/false));
}

Status RepairPaths::NewRangeDeletionIterator(
    const ReadOptions& read_options, const ColumnFamilyData& cfd,
    const FileMetaData& table,
    std::unique_ptr<FragmentedRangeTombstoneIterator>* iter) {
  return CacheOf(table.fd.GetNumber())
      ->GetRangeTombstoneIterator(read_options, cfd.internal_comparator(),
                                  AsRead(table),
                                  cfd.GetLatestMutableCFOptions(), iter);
}

Status RepairPaths::Check(
    const InternalKeyComparator& comparator,
    const MutableCFOptions& mutable_options,
    const std::function<const ColumnFamilyOptions*(const std::string&)>&
        options_of) {
  if (!status_.ok() || directories_.size() < 2) {
    return status_;
  }
  FileSystem* const fs = options_.fs.get();
  const auto check = [&](const std::string& family, const std::string& file,
                         const std::string& directory) {
    const ColumnFamilyOptions* const options = options_of(family);
    uint32_t path_id = 0;
    return options == nullptr ? Status::OK()
                              : PathIdOf(fs, PathsOf(*options), family, file,
                                         directory, &path_id);
  };

  std::unordered_map<uint64_t, std::string> families;
  for (const auto& table : table_directories_) {
    const uint64_t number = table.first;
    uint64_t size = 0;
    if (!fs->GetFileSize(TableName(number), IOOptions(), &size, nullptr).ok()) {
      continue;
    }
    FileMetaData metadata;
    metadata.fd = FileDescriptor(number, /*path_id=*/0, size);
    std::shared_ptr<const TableProperties> properties;
    if (!CacheOf(number)
             ->GetTableProperties(file_options_, ReadOptions(), comparator,
                                  metadata, &properties, mutable_options)
             .ok()) {
      continue;
    }
    // A table that was written before RocksDB had column families has no name
    // of one, and belongs to the default column family.
    const std::string& family = properties->column_family_name.empty()
                                    ? kDefaultColumnFamilyName
                                    : properties->column_family_name;
    Status s = check(family, TableTitle(number), table.second);
    if (!s.ok()) {
      return s;
    }
    families.emplace(properties->column_family_id, family);
  }

  for (const auto& blob_file : blob_directories_) {
    BlobFileFacts facts;
    if (!ReadBlobFile(fs, BlobFileName(blob_file.second, blob_file.first),
                      &facts)
             .ok() ||
        !facts.damage.ok()) {
      continue;
    }
    const auto family = families.find(facts.column_family_id);
    if (family == families.end()) {
      continue;
    }
    Status s =
        check(family->second, BlobFileTitle(blob_file.first), blob_file.second);
    if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

Status RepairPaths::FindPathId(FileSystem* fs,
                               const std::vector<DbPath>& cf_paths,
                               const std::string& family,
                               const std::string& title,
                               const std::string& directory,
                               uint32_t* path_id) {
  return PathIdOf(fs, cf_paths, family, title, directory, path_id);
}

Status RepairPaths::AssignPathId(const ColumnFamilyData& cfd,
                                 FileMetaData* table) {
  const uint64_t number = table->fd.GetNumber();
  uint32_t path_id = 0;
  Status s =
      PathIdOf(options_.fs.get(), cfd.ioptions().cf_paths, cfd.GetName(),
               TableTitle(number), table_directories_.at(number), &path_id);
  if (s.ok()) {
    table->fd.packed_number_and_path_id =
        PackFileNumberAndPathId(number, path_id);
  }
  status_.UpdateIfOk(s);
  return s;
}

Status RepairPaths::AddBlobReferences(uint64_t number, ValueType type,
                                      const Slice& value) {
  const auto add = [&](const BlobIndex& blob_index) {
    if (!blob_index.IsInlined() && !blob_index.HasTTL()) {
      blob_references_[number].insert(blob_index.file_number());
    }
    return Status::OK();
  };
  if (type == kTypeBlobIndex && MappedBlobIndex::IsMapped(value)) {
    // The blob file of the value is only known when the database is opened.
    mapped_tables_.insert(number);
    return MappedBlobIndex().DecodeFrom(value);
  }
  if (type == kTypeBlobIndex) {
    BlobIndex blob_index;
    Status s = blob_index.DecodeFrom(value);
    return s.ok() ? add(blob_index) : s;
  }
  if (type == kTypeWideColumnEntity) {
    return WideColumnSerialization::ForEachBlobFileNumber(value, add);
  }
  return Status::OK();
}

uint8_t RepairPaths::BlobPathMask(const ColumnFamilyData& cfd,
                                  const FileMetaData& table) const {
  const auto references = blob_references_.find(table.fd.GetNumber());
  // Mapped values may be in any file.
  const bool any = mapped_tables_.count(table.fd.GetNumber()) > 0;
  uint32_t mask = 0;
  for (const auto& [number, directory] : blob_directories_) {
    uint32_t path_id = 0;
    // AddBlobFiles() reports a wrong directory.
    if ((any || (references != blob_references_.end() &&
                 references->second.count(number) > 0)) &&
        PathIdOf(options_.fs.get(), cfd.ioptions().cf_paths, cfd.GetName(),
                 BlobFileTitle(number), directory, &path_id)
            .ok()) {
      mask |= 1u << path_id;
    }
  }
  return mask == 1 ? 0 : static_cast<uint8_t>(mask);
}

Status RepairPaths::AddBlobFiles(const ColumnFamilyData& cfd,
                                 VersionEdit* edit) const {
  std::set<uint64_t> referenced;
  bool has_mapped = false;
  for (const auto& table : edit->GetNewFiles()) {
    has_mapped |= mapped_tables_.count(table.second.fd.GetNumber()) > 0;
    const auto references = blob_references_.find(table.second.fd.GetNumber());
    if (references != blob_references_.end()) {
      referenced.insert(references->second.begin(), references->second.end());
    }
  }
  for (uint64_t number : referenced) {
    if (blob_directories_.count(number) == 0) {
      ROCKS_LOG_WARN(options_.logger,
                     "%s: missing, although column family \"%s\" refers to it",
                     BlobFileTitle(number).c_str(), cfd.GetName().c_str());
    }
  }

  for (const auto& blob_file : blob_directories_) {
    const uint64_t number = blob_file.first;
    const std::string name = BlobFileName(blob_file.second, number);
    BlobFileFacts facts;
    Status s = ReadBlobFile(cfd.ioptions().fs.get(), name, &facts);
    // A file that cannot be read may have mapped values. A file that was never
    // finished was in no MANIFEST.
    const bool needed =
        referenced.count(number) != 0 || (has_mapped && !s.ok());
    if (s.ok()) {
      s = facts.damage;
    }
    if (!s.ok()) {
      if (needed) {
        const std::string message = name + ", to which column family \"" +
                                    cfd.GetName() +
                                    "\" refers or may refer. If it cannot be "
                                    "helped, move the file elsewhere to "
                                    "repair without its values";
        return s.IsCorruption() ? Status::Corruption(message, s.ToString())
                                : Status::IOError(message, s.ToString());
      }
      ROCKS_LOG_WARN(options_.logger, "%s: ignoring %s",
                     BlobFileTitle(number).c_str(), s.ToString().c_str());
      continue;
    }
    if (facts.column_family_id != cfd.GetID()) {
      continue;
    }
    uint32_t path_id = 0;
    s = PathIdOf(options_.fs.get(), cfd.ioptions().cf_paths, cfd.GetName(),
                 BlobFileTitle(number), blob_file.second, &path_id);
    if (!s.ok()) {
      return s;
    }
    used_blob_files_.insert(number);
    edit->AddBlobFile(BlobFileAddition(
        number, facts.blob_count, facts.blob_bytes, /*checksum_method=*/"",
        /*checksum_value=*/"", path_id, facts.index_bytes));
  }
  return Status::OK();
}

std::vector<std::string> RepairPaths::UnusedBlobFiles() const {
  std::vector<std::string> result;
  for (const auto& [number, directory] : blob_directories_) {
    if (used_blob_files_.count(number) == 0) {
      result.push_back(BlobFileName(directory, number));
    }
  }
  return result;
}

void RepairPaths::Fail(const Status& s) {
  if (status_.ok()) {
    status_ = s;
  }
}

Status RepairPaths::CheckDirectories(const std::string& dbname, FileSystem* fs,
                                     Env* env,
                                     const OptionsOf& options_of) const {
  ConfigOptions config_options;
  config_options.env = env;
  config_options.ignore_unknown_options = true;
  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> stored;
  Status s = LoadLatestOptions(config_options, dbname, &db_options, &stored);
  if (!s.ok()) {
    // The repair goes on, since it may be the only way to recover such a
    // database.
    ROCKS_LOG_WARN(options_.logger, "No options to compare with: %s",
                   s.ToString().c_str());
    stored.clear();
  } else {
    s = CheckRepairWalDir(fs, dbname, db_options, options_.GetWalDir(),
                          options_.logger);
    if (!s.ok()) {
      return s;
    }
  }
  s = CheckOptionsFile(env, stored, options_of);
  return s.ok() ? CheckManifest(dbname, fs, stored, options_of) : s;
}

Status RepairPaths::CheckOptionsFile(
    Env* env, const std::vector<ColumnFamilyDescriptor>& stored_families,
    const OptionsOf& options_of) const {
  for (const ColumnFamilyDescriptor& family : stored_families) {
    const ColumnFamilyOptions* const given = options_of(family.name);
    const std::vector<DbPath>& stored = family.options.cf_paths;
    if (given == nullptr || stored.size() <= PathsOf(*given).size()) {
      // A database that was moved has other paths, but as many.
      continue;
    }
    for (const DbPath& path : stored) {
      const bool searched = std::any_of(
          directories_.begin(), directories_.end(),
          [&](const std::string& directory) {
            return IsSameDirectory(options_.fs.get(), directory, path.path);
          });
      std::vector<std::string> children;
      if (searched || !env->GetChildren(path.path, &children).ok()) {
        continue;
      }
      for (const std::string& child : children) {
        uint64_t number = 0;
        FileType type = kTempFile;
        if (ParseFileName(child, &number, &type) &&
            (type == kTableFile || type == kBlobFile || type == kDeltaFile)) {
          return Status::InvalidArgument(
              "The OPTIONS file of the database gives column family \"" +
              family.name + "\" the directory " + path.path +
              ", which has files, such as " + child +
              ". The options of the repair do not name it: the repair would "
              "not find the files, and the next open would delete them. Repair "
              "with the cf_paths of the database (ldb repair takes them from "
              "the OPTIONS file). If the directory is not of this database, "
              "move the OPTIONS file elsewhere");
        }
      }
    }
  }
  return Status::OK();
}

bool RepairPaths::IsFound(FileSystem* fs, const std::string& name) const {
  return std::any_of(directories_.begin(), directories_.end(),
                     [&](const std::string& directory) {
                       // After another error the file may be there.
                       return !fs->FileExists(directory + "/" + name,
                                              IOOptions(), nullptr)
                                   .IsNotFound();
                     });
}

Status RepairPaths::CheckManifest(
    const std::string& dbname, FileSystem* fs,
    const std::vector<ColumnFamilyDescriptor>& stored,
    const OptionsOf& options_of) const {
  std::string manifest;
  std::vector<ManifestFamily> families;
  Status s = FindManifest(fs, dbname, &manifest);
  if (s.ok()) {
    s = ReadManifestFiles(
        fs, manifest,
        [&](const std::string& family) {
          const ColumnFamilyOptions* const options = options_of(family);
          return options != nullptr ? options->comparator : nullptr;
        },
        &families);
  }
  if (!s.ok()) {
    ROCKS_LOG_WARN(options_.logger,
                   "Not all files of the MANIFEST were looked for: %s",
                   s.ToString().c_str());
  }
  for (const ManifestFamily& family : families) {
    const ColumnFamilyOptions* const given = options_of(family.name);
    if (given == nullptr || family.files.empty()) {
      continue;
    }
    const std::vector<DbPath>& paths = PathsOf(*given);
    const size_t num_paths = paths.size();
    for (const ManifestFamily::File& file : family.files) {
      if (IsFound(fs, NameOf(file))) {
        continue;
      }
      if (file.path_id < num_paths) {
        const std::string& path = paths[file.path_id].path;
        std::vector<std::string> children;
        s = fs->GetChildren(path, IOOptions(), &children, nullptr);
        if (s.ok()) {
          continue;  // The file itself is lost.
        }
        return Status::InvalidArgument(
            "The MANIFEST has " + NameOf(file) + " of column family \"" +
                family.name + "\" on path " + path +
                ", which cannot be read. The repair would not find the file, "
                "and the next open would delete it when the path is there "
                "again. Make the path accessible. If its files are lost, "
                "create an empty directory in its place",
            s.ToString());
      }
      return Status::InvalidArgument(
          "The MANIFEST has " + NameOf(file) + " of column family \"" +
          family.name + "\" on path id " + std::to_string(file.path_id) +
          ", but the options of the repair give the family only " +
          std::to_string(num_paths) + (num_paths == 1 ? " path" : " paths") +
          ", and the file is in no directory that the repair searches. It "
          "would not find the file, and the next open with the paths of the "
          "database would delete it. Repair with the cf_paths (or db_paths) "
          "of the database. If the files of a path are lost, name an empty "
          "directory in its place");
    }
    const bool has_layout = std::any_of(
        stored.begin(), stored.end(),
        [&](const ColumnFamilyDescriptor& descriptor) {
          return descriptor.name == family.name &&
                 PathLayout::NamesPaths(MutableCFOptions(descriptor.options));
        });
    if (has_layout && std::none_of(family.files.begin(), family.files.end(),
                                   [&](const ManifestFamily::File& file) {
                                     return IsFound(fs, NameOf(file));
                                   })) {
      return Status::InvalidArgument(
          "The MANIFEST has " + std::to_string(family.files.size()) +
          " files of column family \"" + family.name + "\", such as " +
          NameOf(family.files.front()) +
          ", and none of them is in a directory that the repair searches, such "
          "as " +
          PathsOf(*given).front().path +
          ". It would not find the files, and the next open with the paths of "
          "the database would delete them. Repair with the cf_paths (or "
          "db_paths) of the database. If all files of the family are lost, "
          "move the OPTIONS file elsewhere");
    }
  }
  return Status::OK();
}

Status RepairGuard::Hold() {
  Status s = Invalidate(CurrentFileName(dbname_));
  holding_ |= s.ok();
  TEST_SYNC_POINT("RepairGuard::Hold:End");
  return s;
}

Status RepairGuard::CheckMoved(const std::vector<std::string>& manifests) {
  assert(holding_);
  for (const std::string& manifest : manifests) {
    const std::string fname = dbname_ + "/" + manifest;
    const IOStatus s = fs_->FileExists(fname, IOOptions(), nullptr);
    if (!s.IsNotFound()) {
      return s.ok() ? Status::IOError(fname, "could not be moved to lost")
                    : Status(s);
    }
  }
  has_moved_ = true;
  return Status::OK();
}

Status RepairGuard::Finish(const Status& status, uint64_t manifest_number) {
  if (!holding_ || (!status.ok() && !has_moved_)) {
    return status;
  }
  if (!status.ok()) {
    // best_efforts_recovery does not read CURRENT. So the MANIFESTs are
    // invalidated, too. All of them are of the repair, which has moved older
    // ones away. The VersionSet does not know the number of one that it has
    // written but could not make current.
    std::vector<std::string> children;
    fs_->GetChildren(dbname_, IOOptions(), &children, nullptr)
        .PermitUncheckedError();
    for (const std::string& child : children) {
      uint64_t number = 0;
      FileType type = kTempFile;
      if (ParseFileName(child, &number, &type) && type == kDescriptorFile) {
        Invalidate(dbname_ + "/" + child).PermitUncheckedError();
      }
    }
    return status;
  }
  std::unique_ptr<FSDirectory> directory;
  Status s = fs_->NewDirectory(dbname_, IOOptions(), &directory, nullptr);
  if (s.ok()) {
    s = SetCurrentFile(WriteOptions(), fs_, dbname_, manifest_number,
                       Temperature::kUnknown, directory.get());
  }
  if (s.ok()) {
    fs_->DeleteFile(RepairEnv::SubstituteOfCurrent(dbname_), IOOptions(),
                    nullptr)
        .PermitUncheckedError();
  }
  return s;
}

Status RepairGuard::Invalidate(const std::string& file) {
  // The file is replaced by a rename, since a MANIFEST can still be open for
  // writing.
  const std::string temporary = TempFileName(dbname_, 0);
  std::unique_ptr<FSDirectory> directory;
  IOStatus s = fs_->NewDirectory(dbname_, IOOptions(), &directory, nullptr);
  if (s.ok()) {
    s = WriteStringToFile(fs_, "RepairDB() did not finish. Run it again.",
                          temporary, /*should_sync=*/true);
  }
  if (s.ok()) {
    s = fs_->RenameFile(temporary, file, IOOptions(), nullptr);
  }
  if (s.ok()) {
    s = directory->FsyncWithDirOptions(IOOptions(), nullptr,
                                       DirFsyncOptions(file));
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
