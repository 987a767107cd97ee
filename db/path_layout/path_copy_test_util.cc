//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_copy_test_util.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "db/log_format.h"
#include "db/version_edit.h"
#include "file/filename.h"
#include "rocksdb/utilities/options_util.h"
#include "util/coding.h"
#include "util/crc32c.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

PathCopyTestBase::PathCopyTestBase(const std::string& name)
    : PathTestBase(name) {}

PathCopyTestBase::~PathCopyTestBase() {
  Close();
  for (const std::string& parent : parents_) {
    DestroyDir(env_, parent).PermitUncheckedError();
  }
}

std::string PathCopyTestBase::Directory(const std::string& name) {
  const std::string parent =
      test::PerThreadDBPath(env_, "copy_" + name + "_of_paths");
  DestroyDir(env_, parent).PermitUncheckedError();
  EXPECT_OK(env_->CreateDir(parent));
  parents_.insert(parent);
  return parent + "/copy";
}

Options PathCopyTestBase::FeatureOptions(Feature feature,
                                         const std::string& prefix,
                                         uint32_t num_paths, const Ids& sst,
                                         const Ids& blob) {
  Options options = PathOptions(prefix, num_paths, sst, blob);
  options.enable_blob_files = feature != kInline && feature != kDeltas;
  options.enable_blob_address_map = feature == kMap || feature == kMapAndDeltas;
  options.enable_delta_separation =
      feature == kDeltas || feature == kMapAndDeltas;
  options.merge_operator = MergeOperators::CreateStringAppendOperator();
  return options;
}

Options PathCopyTestBase::WithoutPaths(Options options) {
  options.cf_paths.clear();
  options.level_sst_path_ids.clear();
  options.level_blob_path_ids.clear();
  options.delta_sorted_path_id = -1;
  return options;
}

void PathCopyTestBase::Fill(bool wal) {
  for (int family = 0; family < 2; ++family) {
    PutRange(family, 0, kKeys);
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), Handle(family), nullptr,
                                nullptr));
    PutRange(family, kKeys / 2, kKeys + kKeys / 2, 1);
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
    for (int i = 0; i < kKeys; i += 3) {
      ASSERT_OK(db_->Merge(WriteOptions(), Handle(family), KeyOf(i), "m"));
      Expect(family, KeyOf(i), ValueOf(i, i < kKeys / 2 ? 0 : 1) + ",m");
    }
    ASSERT_OK(db_->Flush(FlushOptions(), Handle(family)));
    if (wal) {
      PutRange(family, 2 * kKeys, 2 * kKeys + 5, 0, /*wal=*/true);
    }
  }
}

void PathCopyTestBase::FillTwoLevels() {
  PutRange(0, 0, kKeys);
  ASSERT_OK(db_->Flush(FlushOptions()));
  ASSERT_OK(
      db_->CompactRange(CompactRangeOptions(), Handle(0), nullptr, nullptr));
  PutRange(0, 0, kKeys / 2, 1);
  ASSERT_OK(db_->Flush(FlushOptions()));
  // A job deletes its inputs after it has notified the threads that wait.
  ASSERT_OK(db_->WaitForCompact(WaitForCompactOptions()));
}

void PathCopyTestBase::FillDeltas() {
  const std::string first(80, 's');
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "d" + KeyOf(i);
    ASSERT_OK(db_->Merge(WriteOptions(), Handle(0), key, first));
    Expect(0, key, first);
  }
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  ASSERT_OK(
      db_->CompactRange(CompactRangeOptions(), Handle(0), nullptr, nullptr));
  for (int i = 0; i < kKeys; i += 3) {
    const std::string key = "d" + KeyOf(i);
    ASSERT_OK(db_->Merge(WriteOptions(), Handle(0), key, "r"));
    Expect(0, key, first + ",r");
  }
  ASSERT_OK(db_->Flush(FlushOptions(), Handle(0)));
  ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(Handle(0), &metadata);
  std::set<DeltaMetaData::Tier> tiers;
  for (const DeltaMetaData& file : metadata.delta_files) {
    tiers.insert(file.tier);
  }
  EXPECT_EQ(tiers,
            (std::set<DeltaMetaData::Tier>{DeltaMetaData::Tier::kFlushed,
                                           DeltaMetaData::Tier::kSorted}));
}

CopyLayout PathCopyTestBase::LayoutOf(
    const std::vector<std::string>& directories, const Ids& sst,
    const Ids& blob, const Ids& path_map) {
  CopyLayout layout;
  for (const std::string& directory : directories) {
    layout.all.cf_paths.emplace_back(directory, 1 << 30);
  }
  layout.all.level_sst_path_ids = sst;
  layout.all.level_blob_path_ids = blob;
  layout.all.path_map = path_map;
  return layout;
}

CopyLayout PathCopyTestBase::LayoutOfThree(int number) {
  const std::string text = std::to_string(number);
  return LayoutOf({Directory("second" + text), Directory("main" + text),
                   Directory("third" + text)},
                  {0, 1}, {0, 2});
}

Status PathCopyTestBase::MakeCheckpoint(const std::string& directory,
                                        uint64_t log_size_for_flush,
                                        const CopyLayout* layout,
                                        int num_threads) {
  if (layout == nullptr) {
    Checkpoint* created = nullptr;
    Status s = Checkpoint::Create(db_.get(), &created);
    const std::unique_ptr<Checkpoint> checkpoint(created);
    return s.ok() ? checkpoint->CreateCheckpoint(directory, log_size_for_flush)
                  : s;
  }
  return MakeCheckpointOf(db_.get(), directory, *layout, log_size_for_flush,
                          num_threads);
}

Status PathCopyTestBase::MakeCheckpointOf(DB* db, const std::string& directory,
                                          const CopyLayout& layout,
                                          uint64_t log_size_for_flush,
                                          int num_threads) {
  CheckpointEngineOptions engine_options;
  engine_options.max_background_operations = num_threads;
  std::unique_ptr<CheckpointEngine> engine;
  Status s = CheckpointEngine::Open(engine_options, &engine);
  if (s.ok()) {
    CreateCheckpointOptions options;
    options.log_size_for_flush = log_size_for_flush;
    options.layout = std::make_shared<CopyLayout>(layout);
    s = engine->CreateCheckpoint(db, directory, nullptr, options);
  }
  return s;
}

std::unique_ptr<BackupEngine> PathCopyTestBase::OpenBackups(
    const std::string& directory) {
  BackupEngine* engine = nullptr;
  EXPECT_OK(BackupEngine::Open(
      device_env_.get(), BackupEngineOptions(directory, device_env_.get()),
      &engine));
  return std::unique_ptr<BackupEngine>(engine);
}

void PathCopyTestBase::AppendToManifest(ManifestTail tail) {
  VersionEdit edit;
  FileMetaData file;
  file.fd = FileDescriptor(/*number=*/1000000, /*path_id=*/1, /*file_size=*/1,
                           /*smallest_seqno=*/1, /*largest_seqno=*/9);
  file.smallest = InternalKey("a", 9, kTypeValue);
  file.largest = InternalKey("z", 1, kTypeValue);
  file.epoch_number = 1000000;
  edit.AddFile(0, file);
  if (tail == ManifestTail::kIncompleteGroup) {
    edit.MarkAtomicGroup(/*remaining_entries=*/1);
  }
  std::string payload;
  ASSERT_TRUE(edit.EncodeTo(&payload, /*ts_sz=*/0));
  const char type = log::kFullType;
  std::string record;
  PutFixed32(&record,
             crc32c::Mask(crc32c::Extend(crc32c::Value(&type, 1),
                                         payload.data(), payload.size())));
  PutFixed16(&record, static_cast<uint16_t>(payload.size()));
  record += type + payload;
  if (tail == ManifestTail::kTornRecord) {
    record.resize(record.size() / 2);
  }
  if (tail == ManifestTail::kNone) {
    return;
  }
  std::string manifest;
  ASSERT_OK(
      ReadFileToString(env_, dbname_ + "/" + CurrentManifest(), &manifest));
  ASSERT_LT(manifest.size() + record.size(), size_t{log::kBlockSize});
  ASSERT_OK(WriteStringToFile(env_, manifest + record,
                              dbname_ + "/" + CurrentManifest()));
}

std::string PathCopyTestBase::CurrentManifest() {
  std::string current;
  EXPECT_OK(ReadFileToString(env_, CurrentFileName(dbname_), &current));
  while (!current.empty() && current.back() == '\n') {
    current.pop_back();
  }
  return current;
}

Status PathCopyTestBase::OpenReadOnly(const std::vector<Options>& options,
                                      std::unique_ptr<DB>* db) {
  std::vector<ColumnFamilyDescriptor> families;
  for (size_t i = 0; i < options.size(); ++i) {
    families.emplace_back(
        i == 0 ? kDefaultColumnFamilyName : "cf" + std::to_string(i),
        options[i]);
  }
  std::vector<ColumnFamilyHandle*> handles;
  const Status s = DB::OpenForReadOnly(DBOptions(options[0]), dbname_, families,
                                       &handles, db);
  for (ColumnFamilyHandle* handle : handles) {
    EXPECT_OK((*db)->DestroyColumnFamilyHandle(handle));
  }
  return s;
}

std::vector<std::string> PathCopyTestBase::Names(const std::string& directory) {
  std::vector<std::string> names;
  EXPECT_OK(env_->GetChildren(directory, &names));
  std::sort(names.begin(), names.end());
  return names;
}

size_t PathCopyTestBase::Count(const std::string& directory, FileType type) {
  size_t count = 0;
  for (const std::string& name : Names(directory)) {
    uint64_t number = 0;
    FileType found = kTempFile;
    count += ParseFileName(name, &number, &found) && found == type ? 1 : 0;
  }
  return count;
}

void PathCopyTestBase::CheckLinks(const std::string& directory,
                                  uint64_t of_ssts, uint64_t of_blobs) {
  EXPECT_GE(Count(directory, kTableFile), 1U);
  EXPECT_GE(Count(directory, kBlobFile), 1U);
  for (const std::string& name : Names(directory)) {
    uint64_t number = 0;
    FileType type = kTempFile;
    ASSERT_TRUE(ParseFileName(name, &number, &type)) << name;
    if (type == kTableFile || type == kBlobFile) {
      uint64_t links = 0;
      ASSERT_OK(env_->NumFileLinks(directory + "/" + name, &links));
      EXPECT_EQ(links, type == kTableFile ? of_ssts : of_blobs)
          << directory << " " << name;
    }
  }
}

void PathCopyTestBase::CheckCopiesBesideJobs(
    bool with_merges, const std::function<std::unique_ptr<DB>(int i)>& copy) {
  PutRange(0, 0, kKeys, 0, /*wal=*/true);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int round = 0; !stop; ++round) {
      const std::string value =
          "of round " + std::to_string(round) + std::string(100, 'v');
      for (int i = 0; i < 20; ++i) {
        EXPECT_OK(db_->Put(WriteOptions(), "w" + std::to_string(i), value));
        if (with_merges) {
          EXPECT_OK(db_->Merge(WriteOptions(), "m" + std::to_string(i), "x"));
        }
      }
      EXPECT_OK(db_->Flush(FlushOptions()));
      const char* const layouts[] = {"0:1", "", "1", "2:0"};
      EXPECT_OK(
          db_->SetOptions({{"level_sst_path_ids", layouts[round % 4]},
                           {"level_blob_path_ids", layouts[(round + 2) % 4]}}));
    }
  });
  for (int i = 0; i < 10; ++i) {
    SCOPED_TRACE(i);
    const std::unique_ptr<DB> opened = copy(i);
    if (opened == nullptr) {
      break;
    }
    for (int key = 0; key < kKeys; ++key) {
      std::string value;
      EXPECT_OK(opened->Get(ReadOptions(), KeyOf(key), &value));
      EXPECT_EQ(value, ValueOf(key, 0));
    }
    EXPECT_OK(opened->VerifyChecksum());
    EXPECT_OK(opened->Close());
  }
  stop = true;
  writer.join();
  ASSERT_OK(VerifyData());
}

void PathCopyTestBase::CheckNamesNoOther(const std::string& directory) {
  for (const std::string& name : Names(directory)) {
    uint64_t number = 0;
    FileType type = kTempFile;
    if (!ParseFileName(name, &number, &type) ||
        (type != kDescriptorFile && type != kOptionsFile)) {
      continue;
    }
    std::string contents;
    ASSERT_OK(ReadFileToString(env_, directory + "/" + name, &contents));
    EXPECT_EQ(contents.find(dbname_), std::string::npos) << name;
  }
}

std::string PathCopyTestBase::Entries(DB* db, ColumnFamilyHandle* family) {
  std::string entries;
  const std::unique_ptr<Iterator> iterator(
      db->NewIterator(ReadOptions(), family));
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    entries +=
        iterator->key().ToString() + "=" + iterator->value().ToString() + "\n";
  }
  EXPECT_OK(iterator->status());
  return entries;
}

void PathCopyTestBase::CheckPlaces(DB* db, ColumnFamilyHandle* family,
                                   const CopyLayout::ColumnFamily* layout,
                                   bool blobs) {
  const auto path_of = [&](const Ids& ids, int level) {
    if (layout == nullptr) {
      return db->GetName();
    }
    const uint32_t id =
        ids.empty() ? 0
                    : ids[std::min(static_cast<size_t>(level), ids.size() - 1)];
    return layout->cf_paths[id].path;
  };
  const Ids none;
  const Ids& sst = layout == nullptr ? none : layout->level_sst_path_ids;
  const Ids& blob = layout == nullptr ? none : layout->level_blob_path_ids;
  ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(family, &metadata);
  for (const LevelMetaData& level : metadata.levels) {
    for (const SstFileMetaData& file : level.files) {
      EXPECT_EQ(file.directory, path_of(sst, level.level))
          << metadata.name << " L" << level.level << " "
          << file.relative_filename;
    }
  }
  const bool has_sorted_path =
      layout != nullptr && layout->delta_sorted_path_id >= 0;
  const std::string sorted_path =
      has_sorted_path ? layout->cf_paths[layout->delta_sorted_path_id].path
                      : path_of(sst, std::numeric_limits<int>::max());
  for (const DeltaMetaData& file : metadata.delta_files) {
    EXPECT_EQ(file.directory, file.tier == DeltaMetaData::Tier::kSorted
                                  ? sorted_path
                                  : path_of(sst, 0))
        << metadata.name << " " << file.relative_filename;
  }
  std::set<std::string> blob_paths;
  for (int level = 0; level < 4; ++level) {
    blob_paths.insert(path_of(blob, level));
  }
  for (const BlobMetaData& file : metadata.blob_files) {
    EXPECT_TRUE(!blobs || blob_paths.count(file.blob_file_path) > 0)
        << metadata.name << " " << file.blob_file_path << " "
        << file.blob_file_number;
  }
}

void PathCopyTestBase::CheckLayoutCopy(
    const std::string& directory,
    const std::vector<const CopyLayout::ColumnFamily*>& layouts,
    bool is_in_place) {
  CheckNamesNoOther(directory);
  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> families;
  ConfigOptions config;
  config.env = device_env_.get();
  ASSERT_OK(LoadLatestOptions(config, directory, &db_options, &families));
  ASSERT_EQ(families.size(), layouts.size());
  for (size_t i = 0; i < families.size(); ++i) {
    const ColumnFamilyOptions& options = families[i].options;
    if (layouts[i] == nullptr) {
      EXPECT_TRUE(options.cf_paths.empty());
      EXPECT_TRUE(options.level_sst_path_ids.empty());
      EXPECT_TRUE(options.level_blob_path_ids.empty());
      EXPECT_EQ(options.delta_sorted_path_id, -1);
    } else {
      ASSERT_EQ(options.cf_paths.size(), layouts[i]->cf_paths.size());
      for (size_t path = 0; path < options.cf_paths.size(); ++path) {
        EXPECT_EQ(options.cf_paths[path].path, layouts[i]->cf_paths[path].path);
      }
      EXPECT_EQ(options.level_sst_path_ids, layouts[i]->level_sst_path_ids);
      EXPECT_EQ(options.level_blob_path_ids, layouts[i]->level_blob_path_ids);
      EXPECT_EQ(options.delta_sorted_path_id, layouts[i]->delta_sorted_path_id);
    }
  }
  std::unique_ptr<DB> copy;
  std::vector<ColumnFamilyHandle*> handles;
  ASSERT_OK(DB::Open(db_options, directory, families, &handles, &copy));
  for (size_t i = 0; i < handles.size(); ++i) {
    SCOPED_TRACE(families[i].name);
    EXPECT_EQ(Entries(db_.get(), Handle(static_cast<int>(i))),
              Entries(copy.get(), handles[i]));
    if (is_in_place) {
      CheckPlaces(copy.get(), handles[i], layouts[i], /*blobs=*/true);
    }
  }
  ASSERT_OK(copy->VerifyChecksum());
  for (size_t i = 0; i < handles.size(); ++i) {
    SCOPED_TRACE(families[i].name);
    ASSERT_OK(copy->Put(WriteOptions(), handles[i], "of the copy",
                        std::string(100, 'x')));
    ASSERT_OK(copy->Flush(FlushOptions(), handles[i]));
    CompactRangeOptions compact;
    compact.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(copy->CompactRange(compact, handles[i], nullptr, nullptr));
    std::string value;
    ASSERT_OK(copy->Get(ReadOptions(), handles[i], "of the copy", &value));
    EXPECT_EQ(value, std::string(100, 'x'));
    CheckPlaces(copy.get(), handles[i], layouts[i], /*blobs=*/false);
  }
  ASSERT_OK(copy->VerifyChecksum());
  for (ColumnFamilyHandle* handle : handles) {
    ASSERT_OK(copy->DestroyColumnFamilyHandle(handle));
  }
  ASSERT_OK(copy->Close());
}

void PathCopyTestBase::CheckOriginal(const std::vector<Options>& options) {
  ASSERT_OK(VerifyData());
  ASSERT_OK(db_->VerifyChecksum());
  ASSERT_OK(Open(options, /*create_families=*/false));
  ASSERT_OK(VerifyData());
  for (size_t i = 0; i < options.size(); ++i) {
    if (!options[i].level_sst_path_ids.empty()) {
      CheckPlacement(static_cast<int>(i), options[i]);
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
