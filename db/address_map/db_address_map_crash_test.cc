//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Crashes at every step of the jobs that change an address map. The file system
// stops at the step, and unsynced data is lost. The database is then reopened.
// It must have every acknowledged write, and a write that was not acknowledged
// must be there completely or not at all.

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/address_map_verifier.h"
#include "db/db_impl/db_impl.h"
#include "db/dbformat.h"
#include "db/version_set.h"
#include "env/composite_env_wrapper.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/sst_partitioner.h"
#include "rocksdb/system_clock.h"
#include "rocksdb/table.h"
#include "test_util/strata/address_map_test_util.h"
#include "test_util/strata/impatient_clock_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "test_util/testharness.h"
#include "util/cast_util.h"
#include "util/random.h"
#include "utilities/fault_injection_fs.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr int kKeys = 60;
constexpr uint32_t kSeeds = 5;

// The last level of the databases of Job::kDeleteFiles.
constexpr int kBottom = 3;

enum class Job {
  kFlush,
  kCompaction,
  kRecovery,
  kDeleteFiles,
  kIngestion,
  kAtomicFlush,
  kTurnOff,
  kDropFamily,
  kCollection,
  kRangeDeletion,
};

using Model = std::map<std::string, std::string>;

// A write to one key.
struct Write {
  ValueType type;
  std::string key;
  std::string value;
};

void Apply(const Write& write, Model* model) {
  if (write.type == kTypeDeletion) {
    model->erase(write.key);
  } else if (write.type == kTypeMerge && model->count(write.key) > 0) {
    (*model)[write.key] += "," + write.value;
  } else {
    (*model)[write.key] = write.value;
  }
}

// An SST file below level 0, and the range of its keys.
struct Table {
  bool Has(int of_level, const std::string& key) const {
    return level == of_level && first <= key &&
           (key < last || (has_last && key == last));
  }

  int level;
  std::string first;
  std::string last;
  bool has_last;  // false if a range tombstone ends at `last`
};

std::string Key(int i) {
  const std::string digits = std::to_string(i);
  return "k" + std::string(3 - digits.size(), '0') + digits;
}

}  // namespace

class DBAddressMapCrashTest : public testing::Test {
 protected:
  DBAddressMapCrashTest()
      : dbname_(test::PerThreadDBPath("db_address_map_crash_test")) {}

  ~DBAddressMapCrashTest() override {
    DisableCallBacks();
    Close();
  }

  void Create(uint32_t seed, Job job) {
    rnd_ = std::make_unique<Random>(seed);
    models_.clear();
    before_.reset();
    writes_by_level_.clear();
    // The files are in memory, because there are hundreds of crashes.
    disk_.reset(NewMemEnv(Env::Default()));
    fs_ = std::make_shared<FaultInjectionTestFS>(disk_->GetFileSystem());
    // Data reaches the disk when it is synced, unless only the process dies. In
    // that case a group of edits may be half written.
    only_process_dies_ = job == Job::kAtomicFlush && seed % 2 == 0;
    fs_->SetInjectUnsyncedDataLoss(!only_process_dies_);
    env_ = std::make_unique<CompositeEnvWrapper>(
        Env::Default(), fs_,
        std::make_shared<ImpatientClock>(SystemClock::Default()));
    options_ = Options();
    options_.env = env_.get();
    options_.create_if_missing = true;
    options_.enable_blob_files = true;
    options_.min_blob_size = 50;
    options_.blob_file_size = seed % 2 == 0 ? 1000 : 1 << 20;
    options_.enable_blob_address_map = true;
    options_.enable_lsm_bypass = seed % 5 != 0;
    if (seed % 4 >= 2) {
      BlockBasedTableOptions table_options;
      table_options.filter_policy.reset(NewBloomFilterPolicy(10));
      options_.table_factory.reset(NewBlockBasedTableFactory(table_options));
    }
    if (seed % 3 == 0) {
      options_.max_manifest_file_size = 500;
    }
    if (job == Job::kDeleteFiles) {
      options_.num_levels = kBottom + 1;
      options_.level_compaction_dynamic_level_bytes = false;
      // Each file has ten keys.
      options_.sst_partitioner_factory = NewSstPartitionerFixedPrefixFactory(3);
    }
    options_.disable_auto_compactions = true;
    options_.blob_gc_space_amp_limit = 0;
    options_.merge_operator = MergeOperators::CreateStringAppendOperator();
    options_.avoid_flush_during_shutdown = true;
    // The disk does not recover before the next open.
    options_.max_bgerror_resume_count = 0;
    options_.atomic_flush = job == Job::kAtomicFlush;
    write_options_ = WriteOptions();
    write_options_.disableWAL = job == Job::kAtomicFlush && seed % 3 != 0;
    num_families_ =
        (job == Job::kAtomicFlush || job == Job::kDropFamily) ? 2 : 1;
    // In this case no column family with a map is left after the drop.
    is_default_plain_ = job == Job::kDropFamily && seed % 2 == 1;
    ASSERT_OK(Open());
    AddFamilies();
  }

  // Opens all existing column families.
  Status Open() {
    std::vector<std::string> names;
    if (!DB::ListColumnFamilies(options_, dbname_, &names).ok()) {
      names = {kDefaultColumnFamilyName};
    }
    std::vector<ColumnFamilyDescriptor> families;
    for (const std::string& name : names) {
      families.emplace_back(name, options_);
    }
    if (is_default_plain_) {
      families.front().options.enable_blob_address_map = false;
    }
    return DB::Open(options_, dbname_, families, &handles_, &db_);
  }

  void AddFamilies() {
    while (handles_.size() < num_families_) {
      ColumnFamilyHandle* handle = nullptr;
      ASSERT_OK(db_->CreateColumnFamily(options_, "other", &handle));
      handles_.push_back(handle);
    }
    models_.resize(num_families_);
  }

  void Close() {
    if (snapshot_ != nullptr) {
      db_->ReleaseSnapshot(snapshot_);
      snapshot_ = nullptr;
    }
    for (ColumnFamilyHandle* handle : handles_) {
      EXPECT_OK(db_->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    db_.reset();
  }

  Status Reopen(bool with_map) {
    Close();
    options_.enable_blob_address_map = with_map;
    return Open();
  }

  // Drops unsynced data, as if the machine had restarted.
  void LoseWhatIsNotSynced() {
    fs_->SetFilesystemActive(true);
    if (!only_process_dies_) {
      ASSERT_OK(fs_->DropUnsyncedFileData());
      ASSERT_OK(fs_->DeleteFilesCreatedAfterLastDirSync(IOOptions(), nullptr));
    }
    fs_->ResetState();
  }

  Write RandomWrite() {
    Write write;
    write.key = Key(static_cast<int>(rnd_->Uniform(kKeys)));
    const uint32_t kind = rnd_->Uniform(10);
    write.type = kind == 0   ? kTypeDeletion
                 : kind <= 2 ? kTypeMerge
                             : kTypeValue;
    write.value = std::to_string(++writes_) + "-" +
                  std::string(rnd_->OneIn(4) ? 5 : 60 + rnd_->Uniform(80), 'v');
    return write;
  }

  void Note(size_t family, const Write& write) {
    Apply(write, &models_[family]);
    writes_by_level_[0].push_back(write);
  }

  void NoteDeleteRange(size_t family, int begin, int end) {
    for (int i = begin; i < end; ++i) {
      Note(family, Write{kTypeDeletion, Key(i), ""});
    }
  }

  // Makes random writes and syncs them. A crash must preserve them, unless the
  // WAL is disabled.
  void WriteSome(int n) {
    for (int i = 0; i < n; ++i) {
      const size_t family = rnd_->Uniform(static_cast<int>(handles_.size()));
      ColumnFamilyHandle* const handle = handles_[family];
      if (rnd_->OneIn(40)) {
        const int begin = static_cast<int>(rnd_->Uniform(kKeys));
        ASSERT_OK(db_->DeleteRange(write_options_, handle, Key(begin),
                                   Key(begin + 5)));
        NoteDeleteRange(family, begin, begin + 5);
        continue;
      }
      const Write write = RandomWrite();
      if (write.type == kTypeDeletion) {
        ASSERT_OK(db_->Delete(write_options_, handle, write.key));
      } else if (write.type == kTypeMerge) {
        ASSERT_OK(db_->Merge(write_options_, handle, write.key, write.value));
      } else {
        ASSERT_OK(db_->Put(write_options_, handle, write.key, write.value));
      }
      Note(family, write);
    }
    ASSERT_OK(db_->SyncWAL());
  }

  void OverwriteAll() {
    for (size_t family = 0; family < handles_.size(); ++family) {
      for (int i = 0; i < kKeys; ++i) {
        const std::string value =
            std::to_string(++writes_) + std::string(90, 'o');
        ASSERT_OK(db_->Put(write_options_, handles_[family], Key(i), value));
        Note(family, Write{kTypeValue, Key(i), value});
      }
    }
    ASSERT_OK(db_->SyncWAL());
  }

  Status Flush() { return db_->Flush(FlushOptions(), handles_); }

  Status Compact() {
    CompactRangeOptions force;
    force.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    Status s;
    for (ColumnFamilyHandle* handle : handles_) {
      if (s.ok()) {
        s = db_->CompactRange(force, handle, nullptr, nullptr);
      }
    }
    return s;
  }

  // After a crash there is an error.
  void WaitForRemovals() {
    const Status s = WaitForMapJobs(db_.get());
    EXPECT_FALSE(s.IsTimedOut()) << s.ToString();
  }

  ColumnFamilyData* Data(size_t family) const {
    return static_cast_with_check<ColumnFamilyHandleImpl>(handles_[family])
        ->cfd();
  }

  // compacted: all data was compacted, and no memtable was flushed since.
  void Check(bool compacted = false) {
    WaitForRemovals();
    ASSERT_EQ(handles_.size(), models_.size());
    for (size_t family = 0; family < handles_.size(); ++family) {
      SCOPED_TRACE(handles_[family]->GetName());
      CheckData(handles_[family], models_[family]);
      ASSERT_FALSE(HasFatalFailure());
      if (Data(family)->address_map_store() != nullptr) {
        CheckMap(Data(family), compacted);
      }
      ASSERT_FALSE(HasFatalFailure());
    }
  }

  void CheckData(ColumnFamilyHandle* handle, const Model& model) {
    for (int i = 0; i < kKeys; ++i) {
      std::string value;
      const Status s = db_->Get(ReadOptions(), handle, Key(i), &value);
      const auto expected = model.find(Key(i));
      if (expected == model.end()) {
        ASSERT_TRUE(s.IsNotFound()) << Key(i) << ": " << s.ToString();
      } else {
        ASSERT_OK(s);
        ASSERT_EQ(value, expected->second) << Key(i);
      }
    }
    std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions(), handle));
    iter->SeekToFirst();
    for (const auto& [key, value] : model) {
      ASSERT_TRUE(iter->Valid()) << iter->status().ToString();
      ASSERT_EQ(iter->key().ToString(), key);
      ASSERT_EQ(iter->value().ToString(), value);
      iter->Next();
    }
    ASSERT_FALSE(iter->Valid());
    ASSERT_OK(iter->status());
  }

  void CheckMap(ColumnFamilyData* cfd, bool compacted) {
    DBImpl* const impl = static_cast_with_check<DBImpl>(db_.get());
    ASSERT_OK(cfd->address_map_store()->map()->TEST_Check());
    AddressMapVerifier::Result result;
    SuperVersion* const sv = cfd->GetReferencedSuperVersion(impl);
    const Status s = AddressMapVerifier::Verify(
        cfd, sv->current, AddressMapVerifier::Options(),
        [](const std::string& line) { ADD_FAILURE() << line; }, &result);
    impl->CleanupSuperVersion(sv);
    ASSERT_OK(s);
    // The map may have more entries: values that are hidden by newer entries
    // stay until the next compaction.
    ASSERT_GE(cfd->address_map_store()->map()->NumEntries(),
              result.values.load());
    if (compacted) {
      // Without snapshots the map has no other entries after a compaction.
      ASSERT_EQ(cfd->address_map_store()->map()->NumEntries(),
                result.values.load());
    }
  }

  // Checks that the MANIFEST names all blob files and tables on disk, and that
  // there is no image and no other temporary file.
  void CheckFiles() {
    WaitForRemovals();
    size_t live_blob_files = 0;
    size_t live_tables = 0;
    for (ColumnFamilyHandle* handle : handles_) {
      ColumnFamilyMetaData metadata;
      db_->GetColumnFamilyMetaData(handle, &metadata);
      live_blob_files += metadata.blob_files.size();
      live_tables += metadata.file_count;
    }
    std::vector<std::string> names;
    ASSERT_OK(env_->GetChildren(dbname_, &names));
    size_t blob_files = 0;
    size_t tables = 0;
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type;
      if (ParseFileName(name, &number, &type)) {
        blob_files += type == kBlobFile;
        tables += type == kTableFile;
        ASSERT_NE(type, kTempFile) << name;
      }
    }
    ASSERT_EQ(blob_files, live_blob_files);
    ASSERT_EQ(tables, live_tables);
  }

  std::vector<Model> Content() {
    std::vector<Model> result;
    for (ColumnFamilyHandle* handle : handles_) {
      Model& model = result.emplace_back();
      std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions(), handle));
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
        model[iter->key().ToString()] = iter->value().ToString();
      }
      EXPECT_OK(iter->status());
    }
    return result;
  }

  // Deletes the images, so that the next open builds the map from the files.
  void DeleteImages() {
    std::vector<std::string> names;
    ASSERT_OK(env_->GetChildren(dbname_, &names));
    for (const std::string& name : names) {
      uint64_t number = 0;
      FileType type;
      if (ParseFileName(name, &number, &type) && type == kTempFile) {
        ASSERT_OK(env_->DeleteFile(dbname_ + "/" + name));
      }
    }
  }

  // Compacts all files above the level into the level.
  void MoveDown(int level) {
    DBImpl* const impl = static_cast_with_check<DBImpl>(db_.get());
    for (int i = 0; i < level; ++i) {
      ASSERT_OK(impl->TEST_CompactRange(i, nullptr, nullptr));
    }
    if (level < kBottom) {
      writes_by_level_[level].swap(writes_by_level_[0]);
      return;
    }
    writes_by_level_.clear();
    for (const auto& [key, value] : models_[0]) {
      writes_by_level_[level].push_back(Write{kTypeValue, key, value});
    }
  }

  // Returns the SST files below level 0 by number.
  std::map<uint64_t, Table> Tables() const {
    std::map<uint64_t, Table> result;
    const VersionStorageInfo& files = *Data(0)->current()->storage_info();
    for (int level = 1; level < files.num_levels(); ++level) {
      for (const FileMetaData* file : files.LevelFiles(level)) {
        result[file->fd.GetNumber()] =
            Table{level, file->smallest.user_key().ToString(),
                  file->largest.user_key().ToString(),
                  ExtractInternalKeyFooter(file->largest.Encode()) !=
                      kRangeTombstoneSentinel};
      }
    }
    return result;
  }

  // Deletes files and updates the model. All writes in a deleted file are lost,
  // so older writes to the same keys in other files become visible. If the
  // deletion fails, no write is lost.
  void DeleteFiles(bool all) {
    const int begin = static_cast<int>(rnd_->Uniform(kKeys / 2));
    const std::string from = Key(begin);
    const std::string to =
        Key(begin + 15 + static_cast<int>(rnd_->Uniform(15)));
    const Slice from_key(from);
    const Slice to_key(to);
    std::map<uint64_t, Table> gone = Tables();
    EXPECT_FALSE(gone.empty());
    const Status s =
        DeleteFilesInRange(db_.get(), handles_[0], all ? nullptr : &from_key,
                           all ? nullptr : &to_key);
    WaitForRemovals();
    const std::map<uint64_t, Table> left = Tables();
    for (const auto& file : left) {
      gone.erase(file.first);
    }
    EXPECT_TRUE(s.ok() ? !all || left.empty() : gone.empty());
    Model model;
    for (auto it = writes_by_level_.rbegin(); it != writes_by_level_.rend();
         ++it) {
      for (const Write& write : it->second) {
        if (std::none_of(gone.begin(), gone.end(), [&](const auto& file) {
              return file.second.Has(it->first, write.key);
            })) {
          Apply(write, &model);
        }
      }
    }
    for (const auto& file : gone) {
      EXPECT_TRUE(all || (file.second.first >= from && file.second.last <= to))
          << file.second.first << " " << file.second.last;
    }
    EXPECT_TRUE(!gone.empty() || model == models_[0]);
    models_[0] = std::move(model);
  }

  // Ingests a file whose keys overlap the existing ones.
  Status Ingest() {
    before_ = models_;
    const std::string file = dbname_ + "_external";
    SstFileWriter writer(EnvOptions(), options_);
    EXPECT_OK(writer.Open(file));
    if (rnd_->OneIn(2)) {
      const int begin = static_cast<int>(rnd_->Uniform(kKeys));
      EXPECT_OK(writer.DeleteRange(Key(begin), Key(begin + 5)));
      NoteDeleteRange(0, begin, begin + 5);
    }
    // The file has one entry per key, in key order.
    std::map<std::string, Write> writes;
    for (int i = 0; i < 15; ++i) {
      const Write write = RandomWrite();
      writes[write.key] = write;
    }
    for (const auto& [key, write] : writes) {
      EXPECT_OK(write.type == kTypeDeletion ? writer.Delete(key)
                : write.type == kTypeMerge  ? writer.Merge(key, write.value)
                                            : writer.Put(key, write.value));
      Note(0, write);
    }
    EXPECT_OK(writer.Finish());
    return db_->IngestExternalFile({file}, IngestExternalFileOptions());
  }

  Status DropFamily() {
    before_ = models_;
    models_.pop_back();
    const Status s = db_->DropColumnFamily(handles_.back());
    // The last handle deletes the files.
    EXPECT_OK(db_->DestroyColumnFamilyHandle(handles_.back()));
    handles_.pop_back();
    return s;
  }

  // Deletes ranges of keys, and waits until the covered values are removed from
  // the map.
  Status DeleteRanges(bool all) {
    for (size_t family = 0; family < handles_.size(); ++family) {
      const int begin = all ? 0 : static_cast<int>(rnd_->Uniform(kKeys / 2));
      EXPECT_OK(db_->DeleteRange(write_options_, handles_[family], Key(begin),
                                 Key(kKeys)));
      NoteDeleteRange(family, begin, kKeys);
    }
    EXPECT_OK(db_->SyncWAL());
    const Status s = Flush();
    db_->WaitForCompact(WaitForCompactOptions()).PermitUncheckedError();
    return s;
  }

  Status RunJob(Job job, bool obsolete) {
    switch (job) {
      case Job::kFlush:
      case Job::kAtomicFlush:
        return Flush();
      case Job::kCompaction:
      case Job::kTurnOff:
        return Compact();
      case Job::kRecovery:
        return Open();
      case Job::kDeleteFiles:
        DeleteFiles(/*all=*/obsolete);
        return Status::OK();
      case Job::kIngestion:
        return Ingest();
      case Job::kDropFamily:
        return DropFamily();
      case Job::kCollection: {
        CollectBlobGarbageOptions options;
        options.max_sorted_runs = rnd_->Uniform(3);
        return db_->CollectBlobGarbage(options);
      }
      case Job::kRangeDeletion:
        return DeleteRanges(/*all=*/obsolete);
    }
    return Status::OK();
  }

  // Returns true if the crash has happened. obsolete: the job leaves files
  // without values.
  bool Crash(Job job, const std::string& point, bool obsolete, bool image) {
    // In the test of deleted files, the upper files must have versioned values.
    const int batch_of_snapshot = job == Job::kDeleteFiles ? 0 : 1;
    for (int batch = 0; batch < 3; ++batch) {
      WriteSome(40);
      if (batch == batch_of_snapshot && !obsolete && rnd_->OneIn(2)) {
        snapshot_ = db_->GetSnapshot();
      }
      if (batch == 2 && obsolete && job != Job::kDeleteFiles) {
        OverwriteAll();
      }
      if (batch < 2) {
        EXPECT_OK(Flush());
        if (job == Job::kDeleteFiles) {
          MoveDown(batch == 0 ? kBottom : 1);
        }
        if (write_options_.disableWAL) {
          before_ = models_;
        }
      }
    }
    // CompactRange() would flush the memtable first, and the crash might happen
    // in that flush. An ingestion may flush, too.
    if (job == Job::kCompaction || job == Job::kCollection ||
        (obsolete && (job == Job::kDeleteFiles || job == Job::kIngestion))) {
      EXPECT_OK(Flush());
    }
    if (job == Job::kTurnOff) {
      EXPECT_OK(Reopen(/*with_map=*/false));
      if (db_ == nullptr) {
        return false;
      }
    }
    WaitForRemovals();
    std::atomic<bool> crashed{false};
    SyncPoint::GetInstance()->SetCallBack(point, [&](void*) {
      if (!crashed.exchange(true)) {
        fs_->SetFilesystemActive(false);
      }
    });
    if (job == Job::kRecovery) {
      Close();
      if (!image) {
        DeleteImages();
      }
    }
    SyncPoint::GetInstance()->EnableProcessing();
    if (RunJob(job, obsolete).ok()) {
      before_.reset();
    }
    if (db_ != nullptr) {
      WaitForRemovals();
    }
    Close();
    DisableCallBacks();
    LoseWhatIsNotSynced();
    return crashed;
  }

  void CrashAt(Job job, const std::vector<std::string>& points) {
    for (const std::string& point : points) {
      int crashes = 0;
      for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
        SCOPED_TRACE(point + ", seed " + std::to_string(seed));
        Create(seed, job);
        for (int round = 0; round < 2 && !HasFatalFailure(); ++round) {
          crashes += Crash(job, point, /*obsolete=*/round == 1,
                           /*image=*/seed % 2 == 0);
          ASSERT_FALSE(HasFatalFailure());
          ASSERT_OK(Open());
          if (before_.has_value() && Content() == *before_) {
            models_ = *before_;
          }
          before_.reset();
          Check();
          ASSERT_FALSE(HasFatalFailure());
          CheckFiles();
          ASSERT_FALSE(HasFatalFailure());
          if (job == Job::kTurnOff) {
            ASSERT_OK(Reopen(/*with_map=*/true));
            Check();
            ASSERT_FALSE(HasFatalFailure());
            CheckFiles();
          }
          AddFamilies();
        }
        ASSERT_FALSE(HasFatalFailure());
        // Remains of the crash do not disturb later jobs.
        WriteSome(20);
        ASSERT_OK(Flush());
        ASSERT_OK(Compact());
        Check(/*compacted=*/true);
        ASSERT_FALSE(HasFatalFailure());
        Close();
        ASSERT_OK(Open());
        Check(/*compacted=*/true);
        CheckFiles();
        ASSERT_FALSE(HasFatalFailure());
        if (job == Job::kTurnOff) {
          CheckWayBack();
          ASSERT_FALSE(HasFatalFailure());
        }
        Close();
      }
      EXPECT_GT(crashes, 0) << point << " was never reached";
    }
  }

  // After the map is turned off, a compaction removes all its traces.
  void CheckWayBack() {
    ASSERT_OK(Reopen(/*with_map=*/false));
    ASSERT_OK(Compact());
    WaitForCompactOptions wait;
    wait.wait_for_purge = true;
    ASSERT_OK(db_->WaitForCompact(wait));
    ASSERT_OK(Reopen(/*with_map=*/false));
    ASSERT_EQ(Data(0)->address_map_store(), nullptr);
    Check();
    CheckFiles();
  }

  const std::string dbname_;
  std::unique_ptr<Random> rnd_;
  // The expected data of each column family.
  std::vector<Model> models_;
  // The data that a crash may leave instead: the state of all column families
  // before an unacknowledged job, or before unflushed writes without a WAL.
  std::optional<std::vector<Model>> before_;
  // The writes in each level, if files are deleted (there is one column
  // family). Level 0 includes the memtable.
  std::map<int, std::vector<Write>> writes_by_level_;
  std::unique_ptr<Env> disk_;
  std::shared_ptr<FaultInjectionTestFS> fs_;
  bool only_process_dies_ = false;
  std::unique_ptr<Env> env_;
  Options options_;
  WriteOptions write_options_;
  size_t num_families_ = 1;
  bool is_default_plain_ = false;
  std::unique_ptr<DB> db_;
  std::vector<ColumnFamilyHandle*> handles_;
  const Snapshot* snapshot_ = nullptr;
  uint64_t writes_ = 0;
};

TEST_F(DBAddressMapCrashTest, WritesSurviveACrashInAFlush) {
  CrashAt(
      Job::kFlush,
      {"FlushJob::Start", "BlobFileBuilder::WriteBlobToFile:AddRecord",
       "BlobFileBuilder::WriteBlobToFile:AppendFooter",
       "BuildTable:BeforeSyncTable", "BuildTable:BeforeCloseTableFile",
       "FlushMapping::Publish", "MapTransaction::Publish:Inserted",
       "FlushJob::InstallResults", "VersionSet::LogAndApply:WriteManifest",
       "VersionSet::ProcessManifestWrites:AddRecord",
       "VersionSet::LogAndApply:WriteManifestDone", "FlushMapping::Settle",
       "MapTransaction::Settle", "DBStrata::DropEmptyBlobFiles:BeforeEdit"});
}

TEST_F(DBAddressMapCrashTest, WritesSurviveACrashInACompaction) {
  CrashAt(
      Job::kCompaction,
      {"CompactionJob::Run():Start",
       "CompactionJob::FinishCompactionOutputFile1",
       "CompactionJob::Run:BeforeVerify", "CompactionMapping::Publish",
       "MapTransaction::Publish:Inserted",
       "VersionSet::LogAndApply:WriteManifest",
       "VersionSet::ProcessManifestWrites:AddRecord",
       "VersionSet::LogAndApply:WriteManifestDone", "CompactionMapping::Settle",
       "BackgroundJobScheduler::Work:MapRemovals"});
}

TEST_F(DBAddressMapCrashTest, WritesSurviveACrashInABlobCollection) {
  CrashAt(
      Job::kCollection,
      {"BlobFileBuilder::WriteBlobToFile:AppendFooter",
       "BlobGcStorage::Publish:BeforeSwap", "BlobGcStorage::Publish:Swapped",
       "DBStrata::BackgroundBlobGc::WriteEdit:BeforeEdit",
       "VersionSet::LogAndApply:WriteManifest",
       "VersionSet::ProcessManifestWrites:AddRecord",
       "VersionSet::LogAndApply:WriteManifestDone", "BlobGcStorage::Settle",
       "DBStrata::BackgroundBlobGc::Run:AfterEdit",
       "DBImpl::DeleteObsoleteFileImpl:AfterDeletion"});
}

TEST_F(DBAddressMapCrashTest, WritesSurviveACrashInARangeSweep) {
  CrashAt(Job::kRangeDeletion,
          {"BackgroundJobScheduler::Work:RangeSweep",
           "DBStrata::BackgroundRangeSweep::Sweep:Begin",
           "DBStrata::BackgroundRangeSweep::Sweep:End",
           "DBStrata::DropEmptyBlobFiles:BeforeEdit",
           "DBImpl::DeleteObsoleteFileImpl:AfterDeletion"});
}

TEST_F(DBAddressMapCrashTest, WritesSurviveACrashInARecovery) {
  CrashAt(
      Job::kRecovery,
      {"BlobFileBuilder::WriteBlobToFile:AppendFooter", "FlushMapping::Publish",
       "MapTransaction::Publish:Inserted",
       "VersionSet::LogAndApply:WriteManifest",
       "VersionSet::ProcessManifestWrites:AddRecord",
       "VersionSet::LogAndApply:WriteManifestDone", "FlushMapping::Settle"});
}

TEST_F(DBAddressMapCrashTest, WritesSurviveACrashInADeletionOfFiles) {
  CrashAt(Job::kDeleteFiles, {"MappedFileRemoval::Publish:Demoted",
                              "VersionSet::LogAndApply:WriteManifest",
                              "VersionSet::ProcessManifestWrites:AddRecord",
                              "VersionSet::LogAndApply:WriteManifestDone",
                              "BackgroundJobScheduler::Work:MapRemovals",
                              "DBStrata::DropEmptyBlobFiles:BeforeEdit"});
}

TEST_F(DBAddressMapCrashTest, WritesSurviveACrashInAnIngestion) {
  CrashAt(Job::kIngestion, {"ExternalSstFileIngestionJob::Prepare:FileAdded",
                            "ExternalSstFileIngestionJob::AfterSyncDir",
                            "VersionSet::LogAndApply:WriteManifest",
                            "VersionSet::ProcessManifestWrites:AddRecord",
                            "VersionSet::LogAndApply:WriteManifestDone",
                            "DBImpl::AddFile:MutexUnlock"});
}

TEST_F(DBAddressMapCrashTest, WritesSurviveACrashInAnAtomicFlush) {
  CrashAt(
      Job::kAtomicFlush,
      {"FlushMapping::Publish", "MapTransaction::Publish:Inserted",
       "DBImpl::AtomicFlushMemTablesToOutputFiles:SomeFlushJobsComplete:1",
       "VersionSet::LogAndApply:WriteManifest",
       "VersionSet::ProcessManifestWrites:AddRecord",
       "VersionSet::ProcessManifestWrites:BeforeWriteLastVersionEdit:0",
       "VersionSet::LogAndApply:WriteManifestDone", "FlushMapping::Settle",
       "MapTransaction::Settle", "DBStrata::DropEmptyBlobFiles:BeforeEdit"});
}

TEST_F(DBAddressMapCrashTest, WritesSurviveACrashWhileTheMapIsTurnedOff) {
  CrashAt(
      Job::kTurnOff,
      {"BlobFileBuilder::WriteBlobToFile:AppendFooter",
       "CompactionJob::Run:BeforeVerify", "CompactionMapping::Publish",
       "VersionSet::LogAndApply:WriteManifest",
       "VersionSet::ProcessManifestWrites:AddRecord",
       "VersionSet::LogAndApply:WriteManifestDone", "CompactionMapping::Settle",
       "BackgroundJobScheduler::Work:MapRemovals",
       "DBStrata::DropEmptyBlobFiles:BeforeEdit"});
}

TEST_F(DBAddressMapCrashTest, WritesSurviveACrashInADropOfAFamily) {
  CrashAt(Job::kDropFamily, {"VersionSet::LogAndApply:WriteManifest",
                             "VersionSet::ProcessManifestWrites:AddRecord",
                             "VersionSet::LogAndApply:WriteManifestDone",
                             "DBImpl::PurgeObsoleteFiles:Begin",
                             "DBImpl::DeleteObsoleteFileImpl:AfterDeletion"});
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
