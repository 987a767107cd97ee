//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests that compaction keeps level_sst_path_ids and level_blob_path_ids, on
// real databases with up to four paths. Every check compares the metadata with
// the files on disk and with the blob references inside the SST files.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "db/blob/blob_index.h"
#include "db/column_family.h"
#include "db/db_test_util.h"
#include "db/version_set.h"
#include "db/wide/wide_column_serialization.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/experimental.h"
#include "rocksdb/listener.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/utilities/types_util.h"
#include "test_util/strata/held_point_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/sync_point.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Counts finished compactions by reason, and the input files that were moved
// without being rewritten.
class CompactionCounter : public EventListener {
 public:
  void OnCompactionCompleted(DB*, const CompactionJobInfo& info) override {
    std::lock_guard<std::mutex> lock(mutex_);
    ++by_reason_[info.compaction_reason];
    trivially_moved_ += info.stats.num_input_files_trivially_moved;
  }
  int Of(CompactionReason reason) {
    std::lock_guard<std::mutex> lock(mutex_);
    return by_reason_[reason];
  }
  size_t TriviallyMoved() {
    std::lock_guard<std::mutex> lock(mutex_);
    return trivially_moved_;
  }

 private:
  std::mutex mutex_;
  std::map<CompactionReason, int> by_reason_;
  size_t trivially_moved_ = 0;
};

// Counts the blob files that were written, and those that were given up.
class BlobFileCounter : public EventListener {
 public:
  void OnBlobFileCreated(const BlobFileCreationInfo& info) override {
    std::lock_guard<std::mutex> lock(mutex_);
    ++(info.status.ok() ? written_ : given_up_);
  }
  int NumWritten() {
    std::lock_guard<std::mutex> lock(mutex_);
    return written_;
  }
  int NumGivenUp() {
    std::lock_guard<std::mutex> lock(mutex_);
    return given_up_;
  }

 private:
  std::mutex mutex_;
  int written_ = 0;
  int given_up_ = 0;
};

class RemoveKeysBelow : public CompactionFilter {
 public:
  explicit RemoveKeysBelow(std::string limit) : limit_(std::move(limit)) {}
  const char* Name() const override { return "RemoveKeysBelow"; }
  bool Filter(int, const Slice& key, const Slice&, std::string*,
              bool*) const override {
    return key.compare(limit_) < 0;
  }

 private:
  const std::string limit_;
};

}  // namespace

class PathCompactionTest : public DBTestBase {
 public:
  using Ids = std::vector<uint32_t>;
  // Key -> value
  using Model = std::map<std::string, std::string>;

  PathCompactionTest() : DBTestBase("path_compaction_test", false) {}

  // No compaction starts by itself, except for misplaced files.
  Options PathOptions(const Ids& sst_ids, const Ids& blob_ids) {
    Options options = CurrentOptions();
    options.create_if_missing = true;
    options.db_paths = {{dbname_, 0},
                        {dbname_ + "_2", 0},
                        {dbname_ + "_3", 0},
                        {dbname_ + "_4", 0}};
    options.level_sst_path_ids = sst_ids;
    options.level_blob_path_ids = blob_ids;
    options.enable_blob_files = true;
    options.min_blob_size = 100;
    options.compression = kNoCompression;
    options.level_compaction_dynamic_level_bytes = false;
    options.num_levels = 5;
    options.level0_file_num_compaction_trigger = 100;
    options.level0_slowdown_writes_trigger = 200;
    options.level0_stop_writes_trigger = 300;
    options.statistics = CreateDBStatistics();
    counter_ = std::make_shared<CompactionCounter>();
    options.listeners = {counter_};
    return options;
  }

  void Write(Model* model, int from, int to, const std::string& tag,
             size_t size = 500) {
    for (int i = from; i < to; ++i) {
      std::string value = tag + Key(i);
      value.resize(size, 'v');
      ASSERT_OK(Put(Key(i), value));
      (*model)[Key(i)] = value;
    }
  }

  void CheckReads(const Model& model, const Snapshot* snapshot = nullptr) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    auto expected = model.begin();
    for (iter->SeekToFirst(); iter->Valid(); iter->Next(), ++expected) {
      ASSERT_NE(expected, model.end());
      ASSERT_EQ(iter->key(), expected->first);
      ASSERT_EQ(iter->value(), expected->second);
    }
    ASSERT_OK(iter->status());
    ASSERT_EQ(expected, model.end());
    for (const auto& [key, value] : model) {
      std::string got;
      ASSERT_OK(db_->Get(read_options, key, &got));
      ASSERT_EQ(got, value);
    }
  }

  VersionStorageInfo* Storage() {
    return dbfull()
        ->GetVersionSet()
        ->GetColumnFamilySet()
        ->GetDefault()
        ->current()
        ->storage_info();
  }

  static uint32_t IdOf(const Ids& ids, int level) {
    return ids.empty()
               ? 0
               : ids[std::min(static_cast<size_t>(level), ids.size() - 1)];
  }

  // Collects the numbers of the blob files that an SST file refers to.
  void BlobFilesOf(const FileMetaData& file, std::set<uint64_t>* numbers) {
    Options options = last_options_;
    SstFileReader reader(options);
    ASSERT_OK(reader.Open(TableFileName(
        last_options_.db_paths, file.fd.GetNumber(), file.fd.GetPathId())));
    std::unique_ptr<Iterator> iter = reader.NewTableIterator();
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      const ValueType type = ExtractValueType(iter->key());
      if (type == kTypeBlobIndex) {
        BlobIndex index;
        ASSERT_OK(index.DecodeFrom(iter->value()));
        numbers->insert(index.file_number());
      } else if (type == kTypeWideColumnEntity) {
        Slice entity = iter->value();
        std::vector<WideColumn> columns;
        std::vector<std::pair<size_t, BlobIndex>> blobs;
        ASSERT_OK(
            WideColumnSerialization::Deserialize(entity, columns, &blobs));
        for (const auto& blob : blobs) {
          numbers->insert(blob.second.file_number());
        }
      }
    }
    ASSERT_OK(iter->status());
  }

  // Checks that every live file is on the path that the metadata says and on no
  // other, that there are no other files, and that the masks cover all blob
  // references of the SST files.
  void CheckFiles() {
    std::map<std::string, int> on_disk;  // name -> path
    for (size_t path = 0; path < last_options_.db_paths.size(); ++path) {
      std::vector<std::string> names;
      ASSERT_OK(env_->GetChildren(last_options_.db_paths[path].path, &names));
      for (const std::string& name : names) {
        uint64_t number;
        FileType type;
        if (ParseFileName(name, &number, &type) &&
            (type == kTableFile || type == kBlobFile)) {
          ASSERT_TRUE(on_disk.emplace(name, path).second) << name;
        }
      }
    }
    std::map<std::string, int> live;
    VersionStorageInfo* storage = Storage();
    std::map<uint64_t, uint32_t> blob_paths;
    for (const auto& meta : storage->GetBlobFiles()) {
      blob_paths[meta->GetBlobFileNumber()] = meta->GetPathId();
      live[BlobFileName(meta->GetBlobFileNumber())] = meta->GetPathId();
    }
    for (int level = 0; level < storage->num_levels(); ++level) {
      for (const FileMetaData* file : storage->LevelFiles(level)) {
        live[MakeTableFileName(file->fd.GetNumber())] = file->fd.GetPathId();
        std::set<uint64_t> numbers;
        ASSERT_NO_FATAL_FAILURE(BlobFilesOf(*file, &numbers));
        for (uint64_t number : numbers) {
          ASSERT_EQ(blob_paths.count(number), 1);
          const uint8_t mask =
              file->blob_refs.path_mask != 0 ? file->blob_refs.path_mask : 1;
          ASSERT_NE(mask & (1u << blob_paths[number]), 0);
        }
      }
    }
    if (allow_stray_blob_files_) {
      for (auto it = on_disk.begin(); it != on_disk.end();) {
        const bool is_stray = live.count(it->first) == 0 &&
                              it->first.find(".blob") != std::string::npos;
        it = is_stray ? on_disk.erase(it) : std::next(it);
      }
    }
    ASSERT_EQ(live, on_disk);
  }

  // Like CheckFiles(). Also checks that every SST file and every value it
  // refers to is on the path that the lists specify.
  void CheckInPlace(const Ids& sst_ids, const Ids& blob_ids) {
    ASSERT_NO_FATAL_FAILURE(CheckFiles());
    VersionStorageInfo* storage = Storage();
    std::map<uint64_t, uint32_t> blob_paths;
    for (const auto& meta : storage->GetBlobFiles()) {
      blob_paths[meta->GetBlobFileNumber()] = meta->GetPathId();
    }
    for (int level = 0; level < storage->num_levels(); ++level) {
      for (const FileMetaData* file : storage->LevelFiles(level)) {
        if (!sst_ids.empty()) {
          ASSERT_EQ(file->fd.GetPathId(), IdOf(sst_ids, level)) << level;
        }
        std::set<uint64_t> numbers;
        ASSERT_NO_FATAL_FAILURE(BlobFilesOf(*file, &numbers));
        for (uint64_t number : numbers) {
          ASSERT_EQ(blob_paths[number], IdOf(blob_ids, level)) << level;
        }
      }
    }
    ASSERT_TRUE(storage->strata()->MisplacedFiles().empty());
  }

  void CheckInPlace() {
    CheckInPlace(last_options_.level_sst_path_ids,
                 last_options_.level_blob_path_ids);
  }

  // Also waits for the deletion of the inputs, which happens after the
  // compaction is reported as done.
  void CompactLevel(int level) {
    ASSERT_OK(dbfull()->TEST_CompactRange(level, nullptr, nullptr));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  }

  uint64_t NumRelocated() {
    return last_options_.statistics->getTickerCount(
        BLOB_DB_GC_NUM_KEYS_RELOCATED);
  }

  static std::string ToString(const Ids& ids) {
    std::string s;
    for (uint32_t id : ids) {
      s += (s.empty() ? "" : ":") + std::to_string(id);
    }
    return s;
  }

  void SetLayout(const Ids& sst_ids, const Ids& blob_ids) {
    ASSERT_OK(db_->SetOptions({{"level_sst_path_ids", ToString(sst_ids)},
                               {"level_blob_path_ids", ToString(blob_ids)}}));
    last_options_.level_sst_path_ids = sst_ids;
    last_options_.level_blob_path_ids = blob_ids;
  }

  // Reopens with the layout that SetLayout() has set.
  void ReopenAsIs() {
    const Options options = last_options_;
    Reopen(options);
  }

  void WaitForQuiet() {
    ASSERT_OK(dbfull()->TEST_WaitForCompact());
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
  }

  // Fills levels 0, 1 and 2 (level style) with three generations of 60 keys.
  // Each generation replaces a third of the previous one.
  void FillThreeLevels(Model* model) {
    ASSERT_NO_FATAL_FAILURE(Write(model, 0, 60, "a"));
    ASSERT_OK(Flush());
    ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
    ASSERT_NO_FATAL_FAILURE(CompactLevel(1));
    ASSERT_NO_FATAL_FAILURE(Write(model, 40, 100, "b"));
    ASSERT_OK(Flush());
    ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
    ASSERT_NO_FATAL_FAILURE(Write(model, 80, 140, "c"));
    ASSERT_OK(Flush());
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_EQ(FilesPerLevel(), "1,1,1");
  }

 protected:
  std::shared_ptr<CompactionCounter> counter_;
  // RocksDB keeps every blob file without a footer, because blob direct write
  // may have just started it. A failed job leaves such files.
  bool allow_stray_blob_files_ = false;
};

TEST_F(PathCompactionTest, VerticalLayoutRelocatesNothing) {
  DestroyAndReopen(PathOptions({0}, {1}));
  Model model;
  ASSERT_NO_FATAL_FAILURE(FillThreeLevels(&model));
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_FALSE(Storage()->GetBlobFiles().empty());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
  // All values are on one path at every level.
  ASSERT_EQ(NumRelocated(), 0);
  ASSERT_EQ(counter_->Of(CompactionReason::kMisplacedFiles), 0);
}

TEST_F(PathCompactionTest, HorizontalLayoutRelocatesOnlyCrossingValues) {
  DestroyAndReopen(PathOptions({0, 1}, {0, 1}));
  Model model;
  ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, "a"));
  ASSERT_OK(Flush());
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_EQ(NumRelocated(), 20);
  std::set<uint64_t> first;
  ASSERT_NO_FATAL_FAILURE(BlobFilesOf(*Storage()->LevelFiles(1)[0], &first));

  // Ten more values cross the boundary; the others stay in the same files.
  for (int i = 0; i < 20; i += 2) {
    ASSERT_NO_FATAL_FAILURE(Write(&model, i, i + 1, "b"));
  }
  ASSERT_OK(Flush());
  ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
  ASSERT_EQ(NumRelocated(), 30);
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  std::set<uint64_t> second;
  ASSERT_NO_FATAL_FAILURE(BlobFilesOf(*Storage()->LevelFiles(1)[0], &second));
  for (uint64_t number : first) {
    ASSERT_EQ(second.count(number), 1);
  }
  ASSERT_EQ(second.size(), first.size() + 1);

  // There is no boundary between levels 1 and 2, so the SST file itself is
  // moved.
  const uint64_t number = Storage()->LevelFiles(1)[0]->fd.GetNumber();
  ASSERT_NO_FATAL_FAILURE(CompactLevel(1));
  ASSERT_EQ(Storage()->LevelFiles(2)[0]->fd.GetNumber(), number);
  ASSERT_EQ(NumRelocated(), 30);
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
  ReopenAsIs();
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

TEST_F(PathCompactionTest, SelectiveLayoutInlinesBelowTheStartingLevel) {
  Options options = PathOptions({0, 1}, {0, 0, 2});
  options.blob_file_starting_level = 2;
  DestroyAndReopen(options);
  Model model;
  ASSERT_NO_FATAL_FAILURE(FillThreeLevels(&model));
  // The file of level 2 was only moved there; rewrite it now.
  ASSERT_NO_FATAL_FAILURE(CompactLevel(1));
  ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
  ASSERT_NO_FATAL_FAILURE(Write(&model, 120, 160, "d"));
  ASSERT_OK(Flush());
  ASSERT_EQ(FilesPerLevel(), "1,1,1");
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  std::set<uint64_t> numbers;
  for (int level = 0; level < 2; ++level) {
    ASSERT_NO_FATAL_FAILURE(
        BlobFilesOf(*Storage()->LevelFiles(level)[0], &numbers));
  }
  ASSERT_TRUE(numbers.empty());
  ASSERT_NO_FATAL_FAILURE(BlobFilesOf(*Storage()->LevelFiles(2)[0], &numbers));
  ASSERT_FALSE(numbers.empty());

  // A value that has to leave its path is put into the SST file if its level
  // has no blob files.
  options.blob_file_starting_level = 4;
  options.level_blob_path_ids = {0};
  Reopen(options);
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_TRUE(Storage()->GetBlobFiles().empty());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

TEST_F(PathCompactionTest, TrivialMoveOnlyWithinABoundary) {
  DestroyAndReopen(PathOptions({0, 0, 1, 1}, {2, 2, 2, 3}));
  Model model;
  ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, "a"));
  ASSERT_OK(Flush());
  const auto number = [this](int level) {
    return Storage()->LevelFiles(level)[0]->fd.GetNumber();
  };
  const uint64_t flushed = number(0);
  ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
  ASSERT_EQ(number(1), flushed);
  ASSERT_NO_FATAL_FAILURE(CompactLevel(1));  // crosses an SST boundary
  ASSERT_NE(number(2), flushed);
  ASSERT_EQ(NumRelocated(), 0);
  const uint64_t crossed = number(2);
  ASSERT_NO_FATAL_FAILURE(CompactLevel(2));  // crosses a blob boundary
  ASSERT_NE(number(3), crossed);
  ASSERT_EQ(NumRelocated(), 20);
  const uint64_t relocated = number(3);
  ASSERT_NO_FATAL_FAILURE(CompactLevel(3));
  ASSERT_EQ(number(4), relocated);
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  // No file was moved first and rewritten as a misplaced one later.
  ASSERT_EQ(counter_->Of(CompactionReason::kMisplacedFiles), 0);
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));

  // A file that refers to no blobs is moved across a blob boundary without
  // being rewritten.
  Model small;
  ASSERT_NO_FATAL_FAILURE(Write(&small, 1000, 1010, "s", 20));
  ASSERT_OK(Flush());
  ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
  ASSERT_NO_FATAL_FAILURE(CompactLevel(1));
  const uint64_t inlined = number(2);
  ASSERT_NO_FATAL_FAILURE(CompactLevel(2));
  ASSERT_EQ(number(3), inlined);
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
}

TEST_F(PathCompactionTest, ScoreBasedTrivialMovesKeepTheLayout) {
  for (const bool boundary : {false, true}) {
    SCOPED_TRACE(boundary);
    Options options =
        boundary ? PathOptions({0, 1}, {}) : PathOptions({1, 1}, {2});
    options.level0_file_num_compaction_trigger = 2;
    options.max_bytes_for_level_base = 1 << 10;
    options.max_bytes_for_level_multiplier = 2;
    options.target_file_size_base = 1 << 10;
    DestroyAndReopen(options);
    Model model;
    // The files are disjoint, so all of them could be moved without being
    // rewritten.
    for (int i = 0; i < 12; ++i) {
      ASSERT_NO_FATAL_FAILURE(Write(&model, i * 10, i * 10 + 10, "a"));
      ASSERT_OK(Flush());
    }
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
    ASSERT_EQ(counter_->Of(CompactionReason::kMisplacedFiles), 0);
    ASSERT_GT(counter_->TriviallyMoved(), 0);
  }
}

TEST_F(PathCompactionTest, CompactionFollowsAChangedLayoutByItself) {
  for (const bool reopen : {false, true}) {
    SCOPED_TRACE(reopen);
    Options options = PathOptions({0}, {0});
    DestroyAndReopen(options);
    Model model;
    ASSERT_NO_FATAL_FAILURE(FillThreeLevels(&model));
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    const std::vector<std::pair<Ids, Ids>> layouts = {
        {{1, 2}, {3}}, {{0}, {0, 1, 2}}, {{3}, {}}, {{}, {2}}, {{1}, {1}}};
    for (const auto& [sst_ids, blob_ids] : layouts) {
      if (reopen) {
        options.level_sst_path_ids = sst_ids;
        options.level_blob_path_ids = blob_ids;
        Reopen(options);
      } else {
        ASSERT_NO_FATAL_FAILURE(SetLayout(sst_ids, blob_ids));
      }
      ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
      ASSERT_NO_FATAL_FAILURE(CheckInPlace());
      ASSERT_EQ(FilesPerLevel(), "1,1,1");
      ASSERT_NO_FATAL_FAILURE(CheckReads(model));
    }
    // When all files are in place, setting the same layout again starts no
    // compaction.
    const int done = counter_->Of(CompactionReason::kMisplacedFiles);
    ASSERT_GT(done, 0);
    ASSERT_LE(done, 3 * static_cast<int>(layouts.size()));
    ASSERT_NO_FATAL_FAILURE(SetLayout(last_options_.level_sst_path_ids,
                                      last_options_.level_blob_path_ids));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_EQ(counter_->Of(CompactionReason::kMisplacedFiles), done);
  }
}

TEST_F(PathCompactionTest, CompactRangeMovesAllOfItsRange) {
  Options options = PathOptions({0}, {0});
  options.disable_auto_compactions = true;
  DestroyAndReopen(options);
  Model model;
  ASSERT_NO_FATAL_FAILURE(FillThreeLevels(&model));
  // Write two files on the bottommost level whose keys are far apart and do not
  // overlap with files above.
  for (int from : {1000, 2000}) {
    ASSERT_NO_FATAL_FAILURE(Write(&model, from, from + 20, "d"));
    ASSERT_OK(Flush());
    const std::string begin = Key(from);
    const std::string end = Key(from + 20);
    const Slice begin_slice = begin;
    const Slice end_slice = end;
    ASSERT_OK(dbfull()->TEST_CompactRange(0, &begin_slice, &end_slice));
    ASSERT_OK(dbfull()->TEST_CompactRange(1, &begin_slice, &end_slice));
  }
  ASSERT_EQ(Storage()->LevelFiles(2).size(), 3);

  ASSERT_NO_FATAL_FAILURE(SetLayout({1, 2}, {3}));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_EQ(counter_->Of(CompactionReason::kMisplacedFiles), 0);
  ASSERT_NO_FATAL_FAILURE(CheckFiles());
  ASSERT_EQ(Storage()->strata()->MisplacedFiles().size(), 5);

  // With kSkip no file moves, because the range only has files of the
  // bottommost level.
  CompactRangeOptions range_options;
  range_options.bottommost_level_compaction = BottommostLevelCompaction::kSkip;
  const std::string far_begin = Key(1000);
  const std::string far_end = Key(3000);
  const Slice far_begin_slice = far_begin;
  const Slice far_end_slice = far_end;
  ASSERT_OK(db_->CompactRange(range_options, &far_begin_slice, &far_end_slice));
  ASSERT_EQ(Storage()->strata()->MisplacedFiles().size(), 5);

  // Only one file of the bottommost level is in this range: it begins at the
  // last key of the range.
  const std::string begin = Key(995);
  const std::string end = Key(1000);
  const Slice begin_slice = begin;
  const Slice end_slice = end;
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), &begin_slice, &end_slice));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_EQ(Storage()->strata()->MisplacedFiles().size(), 4);

  // An explicit path id takes precedence, and an id without a path is refused.
  range_options.target_path_id = 4;
  ASSERT_TRUE(
      db_->CompactRange(range_options, nullptr, nullptr).IsInvalidArgument());
  range_options.target_path_id = 3;
  range_options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(range_options, nullptr, nullptr));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  for (const FileMetaData* file : Storage()->LevelFiles(2)) {
    ASSERT_EQ(file->fd.GetPathId(), 3);
  }

  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
  const uint64_t relocated = NumRelocated();
  const uint64_t number = Storage()->LevelFiles(2)[0]->fd.GetNumber();
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_EQ(NumRelocated(), relocated);
  ASSERT_EQ(Storage()->LevelFiles(2)[0]->fd.GetNumber(), number);

  // Without a layout, values move to path 0.
  ASSERT_NO_FATAL_FAILURE(SetLayout({}, {}));
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  for (const auto& meta : Storage()->GetBlobFiles()) {
    ASSERT_EQ(meta->GetPathId(), 0);
  }
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

TEST_F(PathCompactionTest, CompactRangeMovesAdjacentFiles) {
  Options options = PathOptions({0}, {0});
  options.disable_auto_compactions = true;
  DestroyAndReopen(options);
  Model model;
  for (int from : {0, 100, 200}) {
    ASSERT_NO_FATAL_FAILURE(Write(&model, from, from + 20, "a"));
    ASSERT_OK(Flush());
    ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
  }
  ASSERT_EQ(FilesPerLevel(), "0,3");
  ASSERT_NO_FATAL_FAILURE(SetLayout({1}, {1}));
  ASSERT_EQ(Storage()->strata()->MisplacedFiles().size(), 3);
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

// The layout changes during CompactRange(). With universal compaction, each
// level with misplaced files is compacted as a whole, so once.
TEST_F(PathCompactionTest, UniversalCompactRangeMovesEachLevelOnce) {
  Options options = PathOptions({0}, {0});
  options.compaction_style = kCompactionStyleUniversal;
  options.disable_auto_compactions = true;
  DestroyAndReopen(options);
  Model model;
  // The compaction cannot move overlapping files without rewriting them.
  for (const char* tag : {"a", "b"}) {
    ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, tag));
    ASSERT_OK(Flush());
  }
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  std::atomic<int> num_in_place{0};
  Status result;
  {
    HeldPoint compaction("DBImpl::BackgroundCompaction:NonTrivial:BeforeRun");
    EnableCallBack("MisplacedFiles::CompactRuns:BeforeCompaction",
                   [&num_in_place](void*) { ++num_in_place; });
    port::Thread caller([this, &result] {
      result = db_->CompactRange(CompactRangeOptions(), nullptr, nullptr);
    });
    EXPECT_TRUE(compaction.WaitUntilReached());
    // Two files of level 0 come while the compaction keeps the old layout.
    for (const int from : {10, 30}) {
      Write(&model, from, from + 20, "c");
      EXPECT_OK(Flush());
    }
    SetLayout({1}, {2});
    compaction.Release();
    caller.join();
  }
  ASSERT_OK(result);
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  EXPECT_EQ(2, num_in_place);
  EXPECT_EQ(FilesPerLevel(), "1,0,0,0,1");
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

TEST_F(PathCompactionTest, NoFileMovesIfOneIsOnAnotherPath) {
  Options options = PathOptions({0}, {0});
  options.disable_auto_compactions = true;
  DestroyAndReopen(options);
  Model model;
  for (const uint32_t path_id : {0, 1}) {
    ASSERT_NO_FATAL_FAILURE(SetLayout({path_id}, {0}));
    const int from = static_cast<int>(path_id) * 100;
    ASSERT_NO_FATAL_FAILURE(Write(&model, from, from + 20, "a"));
    ASSERT_OK(Flush());
    ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
  }
  ASSERT_EQ(FilesPerLevel(), "0,2");
  ASSERT_EQ(Storage()->LevelFiles(1)[0]->fd.GetPathId(), 0);
  ASSERT_EQ(Storage()->LevelFiles(1)[1]->fd.GetPathId(), 1);
  // Only the second of the two inputs is on a path that level 2 does not want.
  ASSERT_NO_FATAL_FAILURE(SetLayout({0}, {0}));
  ASSERT_NO_FATAL_FAILURE(CompactLevel(1));
  ASSERT_EQ(Storage()->LevelFiles(1).size(), 0);
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

TEST_F(PathCompactionTest, CompactFilesPicksThePathByLevel) {
  DestroyAndReopen(PathOptions({0, 1, 2}, {0, 3}));
  Model model;
  ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, "a"));
  ASSERT_OK(Flush());
  const auto compact = [this](int from, int to) {
    ColumnFamilyMetaData meta;
    db_->GetColumnFamilyMetaData(&meta);
    std::vector<std::string> names;
    for (const auto& file : meta.levels[from].files) {
      names.push_back(file.name);
    }
    return db_->CompactFiles(CompactionOptions(), names, to);
  };
  ASSERT_OK(compact(0, 1));
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_OK(compact(1, 2));
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_EQ(FilesPerLevel(), "0,0,1");
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

// While CompactFiles() commits the move of a file, the file is in no list from
// which another compaction is picked.
TEST_F(PathCompactionTest, FilesThatAreBeingMovedAreNotMisplaced) {
  Options options = PathOptions({1}, {1});
  options.compaction_style = kCompactionStyleUniversal;
  DestroyAndReopen(options);
  Model model;
  ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, "a"));
  ASSERT_OK(Flush());
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  env_->SetBackgroundThreads(1, Env::LOW);
  test::SleepingBackgroundTask sleeping;
  env_->Schedule(&test::SleepingBackgroundTask::DoSleepTask, &sleeping,
                 Env::Priority::LOW);
  sleeping.WaitUntilSleeping();
  ASSERT_NO_FATAL_FAILURE(SetLayout({0, 1}, {1}));
  ASSERT_EQ(Storage()->strata()->MisplacedFiles().size(), 1u);
  bool was_reached = false;
  // The DB mutex is held there.
  SyncPoint::GetInstance()->SetCallBack(
      "DBImpl::CompactFilesImpl:TrivialMove", [&](void*) {
        was_reached = true;
        EXPECT_TRUE(Storage()->strata()->MisplacedFiles().empty());
      });
  SyncPoint::GetInstance()->EnableProcessing();
  std::vector<LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  ASSERT_EQ(files.size(), 1u);
  CompactionOptions move;
  move.allow_trivial_move = true;
  ASSERT_OK(db_->CompactFiles(move, {files[0].name}, /*output_level=*/4));
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  EXPECT_TRUE(was_reached);
  sleeping.WakeUp();
  sleeping.WaitUntilDone();
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_EQ(FilesPerLevel(), "0,0,0,0,1");
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

// The layout changes while a compaction that a user has asked for holds a file.
// The compaction fails or is canceled, and a background one moves the file.
TEST_F(PathCompactionTest, FailedManualCompactionsLeaveTheirInputsToOthers) {
  allow_stray_blob_files_ = true;
  for (const bool compact_files : {false, true}) {
    SCOPED_TRACE(compact_files);
    DestroyAndReopen(PathOptions({0}, {0}));
    Model model;
    for (const char* tag : {"a", "b"}) {
      ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, tag));
      ASSERT_OK(Flush());
    }
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    std::atomic<bool> was_reached{false};
    std::atomic<bool> canceled{false};
    SyncPoint::GetInstance()->SetCallBack("CompactionJob::Run():Start",
                                          [&](void*) {
                                            if (!was_reached.exchange(true)) {
                                              SetLayout({1}, {1});
                                              canceled = !compact_files;
                                            }
                                          });
    std::atomic<bool> has_failed{false};
    SyncPoint::GetInstance()->SetCallBack(
        "CompactionJob::FinishCompactionOutputFile()::AfterFinish",
        [&](void* arg) {
          if (compact_files && !has_failed.exchange(true)) {
            IOStatus s = IOStatus::IOError("injected");
            s.SetRetryable(true);
            *static_cast<Status*>(arg) = s;
          }
        });
    SyncPoint::GetInstance()->EnableProcessing();
    if (compact_files) {
      std::vector<LiveFileMetaData> files;
      db_->GetLiveFilesMetaData(&files);
      ASSERT_EQ(files.size(), 2u);
      EXPECT_NOK(db_->CompactFiles(CompactionOptions(),
                                   {files[0].name, files[1].name},
                                   /*output_level=*/1));
    } else {
      CompactRangeOptions range;
      range.canceled = &canceled;
      EXPECT_TRUE(db_->CompactRange(range, nullptr, nullptr).IsIncomplete());
    }
    EXPECT_TRUE(was_reached);
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
  }
}

// A manual compaction holds a misplaced file when a background thread looks for
// one, and ends before it has begun. The file is compacted in the background.
TEST_F(PathCompactionTest, ManualCompactionThatNeverRanLeavesItsInputs) {
  for (const bool disable : {false, true}) {
    SCOPED_TRACE(disable);
    DestroyAndReopen(PathOptions({0}, {0}));
    Model model;
    ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, "a"));
    ASSERT_OK(Flush());
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    // The only thread gets the automatic compaction, `later` and the manual
    // compaction, in this order.
    env_->SetBackgroundThreads(1, Env::LOW);
    test::SleepingBackgroundTask sleeping;
    env_->Schedule(&test::SleepingBackgroundTask::DoSleepTask, &sleeping,
                   Env::Priority::LOW);
    sleeping.WaitUntilSleeping();
    ASSERT_NO_FATAL_FAILURE(SetLayout({1}, {1}));
    ASSERT_EQ(Storage()->strata()->MisplacedFiles().size(), 1u);
    test::SleepingBackgroundTask later;
    env_->Schedule(&test::SleepingBackgroundTask::DoSleepTask, &later,
                   Env::Priority::LOW);
    std::atomic<bool> canceled{false};
    // The DB mutex is held there.
    SyncPoint::GetInstance()->SetCallBack(
        "DBImpl::RunManualCompaction:Scheduled", [&](void*) {
          EXPECT_TRUE(Storage()->strata()->MisplacedFiles().empty());
          canceled = !disable;
          sleeping.WakeUp();
        });
    SyncPoint::GetInstance()->EnableProcessing();
    Status result;
    port::Thread manual([&] {
      CompactRangeOptions range;
      range.canceled = &canceled;
      result = db_->CompactRange(range, nullptr, nullptr);
    });
    later.WaitUntilSleeping();
    if (disable) {
      db_->DisableManualCompaction();
      manual.join();
    }
    later.WakeUp();
    later.WaitUntilDone();
    if (disable) {
      db_->EnableManualCompaction();
    } else {
      manual.join();
    }
    sleeping.WaitUntilDone();
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    EXPECT_TRUE(result.IsManualCompactionPaused()) << result.ToString();
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
  }
}

// The same with an automatic compaction that AbortAllCompactions() ends while
// it waits for a thread of the BOTTOM pool.
TEST_F(PathCompactionTest, AbortedCompactionOfTheBottomPoolIsDueAgain) {
  DestroyAndReopen(PathOptions({0}, {0}));
  Model model;
  ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, "a"));
  ASSERT_OK(Flush());
  std::vector<LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  ASSERT_EQ(files.size(), 1u);
  ASSERT_OK(db_->CompactFiles(CompactionOptions(), {files[0].name},
                              /*output_level=*/4));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_EQ(FilesPerLevel(), "0,0,0,0,1");
  env_->SetBackgroundThreads(1, Env::BOTTOM);
  test::SleepingBackgroundTask sleeping;
  env_->Schedule(&test::SleepingBackgroundTask::DoSleepTask, &sleeping,
                 Env::Priority::BOTTOM);
  sleeping.WaitUntilSleeping();
  SyncPoint::GetInstance()->LoadDependency(
      {{"DBImpl::BackgroundCompaction:ForwardToBottomPriPool",
        "PathCompactionTest:Forwarded"}});
  SyncPoint::GetInstance()->SetCallBack("DBImpl::AbortAllCompactions:FlagSet",
                                        [&](void*) { sleeping.WakeUp(); });
  SyncPoint::GetInstance()->EnableProcessing();
  ASSERT_NO_FATAL_FAILURE(SetLayout({1}, {1}));
  TEST_SYNC_POINT("PathCompactionTest:Forwarded");
  db_->AbortAllCompactions();
  const std::string old_path = files[0].db_path;
  files.clear();
  db_->GetLiveFilesMetaData(&files);
  ASSERT_EQ(files.size(), 1u);
  ASSERT_EQ(files[0].db_path, old_path);
  db_->ResumeAllCompactions();
  sleeping.WaitUntilDone();
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  SyncPoint::GetInstance()->LoadDependency({});
  EXPECT_EQ(FilesPerLevel(), "0,0,0,0,1");
  EXPECT_NO_FATAL_FAILURE(CheckInPlace());
  EXPECT_NO_FATAL_FAILURE(CheckReads(model));
  env_->SetBackgroundThreads(0, Env::BOTTOM);
}

TEST_F(PathCompactionTest, UniversalCompactionKeepsTheLayout) {
  for (const bool trivial_moves : {false, true}) {
    SCOPED_TRACE(trivial_moves);
    Options options = PathOptions({0, 1, 1, 1, 2}, {0, 0, 0, 0, 3});
    options.compaction_style = kCompactionStyleUniversal;
    options.level0_file_num_compaction_trigger = 4;
    options.compaction_options_universal.allow_trivial_move = trivial_moves;
    options.max_subcompactions = 3;
    DestroyAndReopen(options);
    Model model;
    for (int i = 0; i < 14; ++i) {
      ASSERT_NO_FATAL_FAILURE(Write(&model, i * 10, i * 10 + 15, "a"));
      ASSERT_OK(Flush());
    }
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_EQ(counter_->Of(CompactionReason::kMisplacedFiles), 0);
    ASSERT_GT(Storage()->LevelFiles(4).size(), 0);
    // The files are disjoint, so they could be moved without being rewritten.
    for (int i = 0; i < 7; ++i) {
      ASSERT_NO_FATAL_FAILURE(
          Write(&model, 1000 + i * 10, 1000 + i * 10 + 10, "b"));
      ASSERT_OK(Flush());
    }
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));

    const std::string shape = FilesPerLevel();
    ASSERT_NO_FATAL_FAILURE(SetLayout({3, 0}, {1, 2}));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_EQ(FilesPerLevel(), shape);
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
    const int done = counter_->Of(CompactionReason::kMisplacedFiles);
    ASSERT_GT(done, 0);

    // Newer data still hides older data after everything is merged.
    ASSERT_NO_FATAL_FAILURE(Write(&model, 30, 60, "c"));
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
    ASSERT_EQ(counter_->Of(CompactionReason::kMisplacedFiles), done);

    // Without a layout, all values move to path 0, and no further compaction
    // starts.
    ASSERT_NO_FATAL_FAILURE(SetLayout({}, {}));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
    for (const auto& meta : Storage()->GetBlobFiles()) {
      ASSERT_EQ(meta->GetPathId(), 0);
    }
  }
}

TEST_F(PathCompactionTest, UniversalL0KeepsItsOrder) {
  Options options = PathOptions({0}, {0});
  options.compaction_style = kCompactionStyleUniversal;
  options.num_levels = 1;
  DestroyAndReopen(options);
  Model model;
  for (int i = 0; i < 6; ++i) {
    ASSERT_NO_FATAL_FAILURE(
        Write(&model, 0, 20 - i, "gen" + std::to_string(i)));
    ASSERT_OK(Flush());
  }
  std::vector<uint64_t> epochs;
  for (const FileMetaData* file : Storage()->LevelFiles(0)) {
    epochs.push_back(file->epoch_number);
  }
  ASSERT_NO_FATAL_FAILURE(SetLayout({1}, {2}));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_EQ(Storage()->LevelFiles(0).size(), epochs.size());
  for (size_t i = 0; i < epochs.size(); ++i) {
    ASSERT_EQ(Storage()->LevelFiles(0)[i]->epoch_number, epochs[i]);
  }
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
  ReopenAsIs();
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

TEST_F(PathCompactionTest, ProximalLevelHasItsOwnPaths) {
  for (const bool split_blobs : {true, false}) {
    SCOPED_TRACE(split_blobs);
    Options options =
        PathOptions({0, 0, 0, 1, 2}, split_blobs ? Ids{0, 0, 0, 0, 3} : Ids{3});
    options.compaction_style = kCompactionStyleUniversal;
    options.preclude_last_level_data_seconds = 10000;
    DestroyAndReopen(options);
    std::atomic<SequenceNumber> hot_after{0};
    SyncPoint::GetInstance()->SetCallBack(
        "CompactionJob::PrepareTimes():preclude_last_level_min_seqno",
        [&](void* arg) { *static_cast<SequenceNumber*>(arg) = hot_after; });
    SyncPoint::GetInstance()->EnableProcessing();

    Model model;
    ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 40, "cold"));
    ASSERT_OK(Flush());
    hot_after = db_->GetLatestSequenceNumber();
    for (int i = 1; i < 40; i += 2) {
      ASSERT_NO_FATAL_FAILURE(Write(&model, i, i + 1, "hot"));
    }
    ASSERT_OK(Flush());
    CompactRangeOptions range_options;
    range_options.bottommost_level_compaction =
        BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(range_options, nullptr, nullptr));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_EQ(FilesPerLevel(), "0,0,0,1,1");
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
    ASSERT_EQ(counter_->Of(CompactionReason::kMisplacedFiles), 0);
    // Only replaced values are garbage, so 40 live values are left.
    uint64_t blobs = 0;
    uint64_t garbage = 0;
    for (const auto& meta : Storage()->GetBlobFiles()) {
      blobs += meta->GetTotalBlobCount();
      garbage += meta->GetGarbageBlobCount();
    }
    ASSERT_EQ(blobs - garbage, 40);

    // The hot keys become cold, and their values follow them to the last level.
    hot_after = db_->GetLatestSequenceNumber();
    const uint64_t relocated = NumRelocated();
    ASSERT_OK(db_->CompactRange(range_options, nullptr, nullptr));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_EQ(FilesPerLevel(), "0,0,0,0,1");
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
    ASSERT_EQ(NumRelocated() - relocated, split_blobs ? 20 : 0);

    // After a change of the layout, all files of both levels move to their
    // paths, and then compaction stops.
    hot_after = kMaxSequenceNumber - 1;
    ASSERT_NO_FATAL_FAILURE(SetLayout({1, 1, 1, 2, 0}, {1, 1, 1, 2, 0}));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
    ReopenAsIs();
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
  }
}

TEST_F(PathCompactionTest, FailedCompactionGivesUpBlobFilesOfBothLevels) {
  Options options = PathOptions({0}, {0, 0, 0, 0, 3});
  options.compaction_style = kCompactionStyleUniversal;
  options.preclude_last_level_data_seconds = 10000;
  // Compaction moves small values from SST files to blob files.
  options.min_blob_size = 1000;
  const auto blob_files = std::make_shared<BlobFileCounter>();
  options.listeners.push_back(blob_files);
  DestroyAndReopen(options);
  SequenceNumber hot_after = 0;
  SyncPoint::GetInstance()->SetCallBack(
      "CompactionJob::PrepareTimes():preclude_last_level_min_seqno",
      [&](void* arg) { *static_cast<SequenceNumber*>(arg) = hot_after; });
  SyncPoint::GetInstance()->SetCallBack(
      "CompactionJob::FinishCompactionOutputFile()::AfterFinish",
      [](void* arg) {
        *static_cast<Status*>(arg) = Status::IOError("injected");
      });
  SyncPoint::GetInstance()->EnableProcessing();
  Model model;
  ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, "cold"));
  ASSERT_OK(Flush());
  hot_after = db_->GetLatestSequenceNumber();
  ASSERT_NO_FATAL_FAILURE(Write(&model, 10, 30, "hot"));
  ASSERT_OK(Flush());
  ASSERT_OK(db_->SetOptions({{"min_blob_size", "100"}}));
  ASSERT_TRUE(
      db_->CompactRange(CompactRangeOptions(), nullptr, nullptr).IsIOError());
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  EXPECT_EQ(blob_files->NumWritten(), 0);
  EXPECT_EQ(blob_files->NumGivenUp(), 2);
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

TEST_F(PathCompactionTest, ReFitLevelRewritesFilesThatCannotMove) {
  for (const bool forbidden : {false, true}) {
    SCOPED_TRACE(forbidden);
    Options options = forbidden ? PathOptions({0, 0, 1, 2}, {0, 0, 3, 1})
                                : PathOptions({0, 1}, {0, 2});
    options.disable_auto_compactions = true;
    DestroyAndReopen(options);
    Model model;
    ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, "a"));
    ASSERT_OK(Flush());
    ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
    const uint64_t number = Storage()->LevelFiles(1)[0]->fd.GetNumber();
    CompactRangeOptions range_options;
    range_options.change_level = true;
    range_options.target_level = 3;
    ASSERT_OK(db_->CompactRange(range_options, nullptr, nullptr));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_EQ(FilesPerLevel(), "0,0,0,1");
    ASSERT_EQ(Storage()->LevelFiles(3)[0]->fd.GetNumber() != number, forbidden);
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
    // Move the file up again, to level 0.
    range_options.target_level = 0;
    ASSERT_OK(db_->CompactRange(range_options, nullptr, nullptr));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_EQ(FilesPerLevel(), "1");
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
  }
}

TEST_F(PathCompactionTest, PromoteL0LeavesMisplacedFilesToCompaction) {
  DestroyAndReopen(PathOptions({0, 0, 1}, {2, 2, 3}));
  Model model;
  for (int i = 0; i < 3; ++i) {
    ASSERT_NO_FATAL_FAILURE(Write(&model, i * 10, i * 10 + 10, "a"));
    ASSERT_OK(Flush());
  }
  ASSERT_OK(experimental::PromoteL0(db_.get(), db_->DefaultColumnFamily(), 2));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_EQ(FilesPerLevel(), "0,0,3");
  ASSERT_EQ(counter_->Of(CompactionReason::kMisplacedFiles), 3);
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

TEST_F(PathCompactionTest, MoveDownAtOpenStopsAtABoundary) {
  Options options = PathOptions({0, 0, 1}, {0, 0, 2});
  options.disable_auto_compactions = true;
  DestroyAndReopen(options);
  Model model;
  ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, "a"));
  ASSERT_OK(Flush());
  ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
  ASSERT_NO_FATAL_FAILURE(CompactLevel(1));
  ASSERT_NO_FATAL_FAILURE(Write(&model, 10, 30, "b"));
  ASSERT_OK(Flush());
  ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
  ASSERT_EQ(FilesPerLevel(), "0,1,1");
  const uint64_t upper = Storage()->LevelFiles(1)[0]->fd.GetNumber();
  const uint64_t lower = Storage()->LevelFiles(2)[0]->fd.GetNumber();

  options.level_compaction_dynamic_level_bytes = true;
  options.disable_auto_compactions = false;
  // Keep compactions from running, to see only the moves that were made at
  // open.
  env_->SetBackgroundThreads(1, Env::LOW);
  test::SleepingBackgroundTask sleeping;
  env_->Schedule(&test::SleepingBackgroundTask::DoSleepTask, &sleeping,
                 Env::Priority::LOW);
  sleeping.WaitUntilSleeping();
  Reopen(options);
  ASSERT_TRUE(db_->GetOptions().level_compaction_dynamic_level_bytes);
  ASSERT_EQ(FilesPerLevel(), "0,1,0,0,1");
  ASSERT_EQ(Storage()->LevelFiles(1)[0]->fd.GetNumber(), upper);
  ASSERT_EQ(Storage()->LevelFiles(4)[0]->fd.GetNumber(), lower);
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
  sleeping.WakeUp();
  sleeping.WaitUntilDone();
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

TEST_F(PathCompactionTest, RelocationKeepsOldReadersRight) {
  DestroyAndReopen(PathOptions({0}, {0}));
  Model model;
  ASSERT_NO_FATAL_FAILURE(FillThreeLevels(&model));
  const Model old_model = model;
  const Snapshot* snapshot = db_->GetSnapshot();
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  iter->SeekToFirst();
  ASSERT_TRUE(iter->Valid());
  ASSERT_NO_FATAL_FAILURE(Write(&model, 20, 90, "new"));
  ASSERT_OK(Delete(Key(5)));
  model.erase(Key(5));
  ASSERT_OK(db_->DeleteRange(WriteOptions(), Key(100), Key(110)));
  for (int i = 100; i < 110; ++i) {
    model.erase(Key(i));
  }
  ASSERT_OK(Flush());
  ASSERT_NO_FATAL_FAILURE(SetLayout({1, 2}, {3, 2}));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  auto expected = old_model.begin();
  for (; iter->Valid(); iter->Next(), ++expected) {
    ASSERT_EQ(iter->key(), expected->first);
    ASSERT_EQ(iter->value(), expected->second);
  }
  ASSERT_OK(iter->status());
  ASSERT_EQ(expected, old_model.end());
  iter.reset();
  ASSERT_NO_FATAL_FAILURE(CheckReads(old_model, snapshot));
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
  db_->ReleaseSnapshot(snapshot);
  CompactRangeOptions range_options;
  range_options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
  ASSERT_OK(db_->CompactRange(range_options, nullptr, nullptr));
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

TEST_F(PathCompactionTest, RelocatesEntitiesMergesAndFilteredValues) {
  for (const bool gc : {false, true}) {
    SCOPED_TRACE(gc);
    Options options = PathOptions({0, 1}, {0, 2});
    options.enable_blob_garbage_collection = gc;
    options.blob_garbage_collection_age_cutoff = 1.0;
    options.merge_operator = MergeOperators::CreateStringAppendOperator();
    const RemoveKeysBelow filter(Key(5));
    options.compaction_filter = &filter;
    DestroyAndReopen(options);
    const std::string big(300, 'x');
    const std::string bigger(700, 'y');
    Model model;
    ASSERT_NO_FATAL_FAILURE(Write(&model, 0, 20, "a"));
    const WideColumns columns = {
        {kDefaultWideColumnName, "small"}, {"big", big}, {"bigger", bigger}};
    ASSERT_OK(db_->PutEntity(WriteOptions(), db_->DefaultColumnFamily(),
                             "entity", columns));
    ASSERT_OK(Flush());
    for (int i = 10; i < 15; ++i) {
      ASSERT_OK(Merge(Key(i), big));
      model[Key(i)] += "," + big;
    }
    ASSERT_OK(Flush());
    for (int i = 0; i < 5; ++i) {
      model.erase(Key(i));
    }
    const auto check = [&] {
      PinnableWideColumns got;
      ASSERT_OK(db_->GetEntity(ReadOptions(), db_->DefaultColumnFamily(),
                               "entity", &got));
      ASSERT_EQ(got.columns(), columns);
      Model with_entity = model;
      with_entity["entity"] = "small";
      ASSERT_NO_FATAL_FAILURE(CheckReads(with_entity));
    };
    ASSERT_NO_FATAL_FAILURE(CompactLevel(0));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(check());
    // 10 plain values and 2 columns are relocated; merged values are written as
    // new values.
    ASSERT_EQ(NumRelocated(), 12);

    ASSERT_NO_FATAL_FAILURE(SetLayout({3}, {3}));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(check());

    // Without blob files, all values return to the SST files.
    ASSERT_OK(db_->SetOptions({{"enable_blob_files", "false"}}));
    ASSERT_NO_FATAL_FAILURE(SetLayout({3}, {1}));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_TRUE(Storage()->GetBlobFiles().empty());
    ASSERT_NO_FATAL_FAILURE(check());
  }
}

TEST_F(PathCompactionTest, FailedRelocationKeepsTheData) {
  allow_stray_blob_files_ = true;
  for (const char* point :
       {"BlobFileBuilder::OpenBlobFileIfNeeded:NewWritableFile",
        "BlobFileBuilder::WriteBlobToFile:AddRecord",
        "BlobFileBuilder::WriteBlobToFile:AppendFooter",
        "CompactionJob::FinishCompactionOutputFile()::AfterFinish"}) {
    SCOPED_TRACE(point);
    Options options = PathOptions({0, 1}, {0, 2});
    options.disable_auto_compactions = true;
    DestroyAndReopen(options);
    Model model;
    ASSERT_NO_FATAL_FAILURE(FillThreeLevels(&model));
    ASSERT_NO_FATAL_FAILURE(SetLayout({3}, {1, 3}));
    SyncPoint::GetInstance()->SetCallBack(point, [](void* arg) {
      *static_cast<Status*>(arg) = Status::IOError("injected");
    });
    SyncPoint::GetInstance()->EnableProcessing();
    ASSERT_TRUE(
        db_->CompactRange(CompactRangeOptions(), nullptr, nullptr).IsIOError());
    SyncPoint::GetInstance()->DisableProcessing();
    SyncPoint::GetInstance()->ClearAllCallBacks();
    ReopenAsIs();
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckFiles());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
    ASSERT_NO_FATAL_FAILURE(CheckInPlace());
    ASSERT_NO_FATAL_FAILURE(CheckReads(model));
  }
}

TEST_F(PathCompactionTest, LayoutChangesUnderLoadEndInPlace) {
  Options options = PathOptions({0, 1}, {2, 3});
  options.level0_file_num_compaction_trigger = 2;
  options.max_bytes_for_level_base = 8 << 10;
  options.target_file_size_base = 2 << 10;
  options.max_background_jobs = 4;
  options.max_subcompactions = 2;
  DestroyAndReopen(options);
  Model model;
  Random rnd(301);
  for (int round = 0; round < 30; ++round) {
    const int from = static_cast<int>(rnd.Uniform(200));
    ASSERT_NO_FATAL_FAILURE(Write(&model, from, from + 20,
                                  std::to_string(round) + "_",
                                  round % 3 == 0 ? 50 : 400));
    ASSERT_OK(Flush());
    const auto id = [&] { return rnd.Uniform(4); };
    ASSERT_NO_FATAL_FAILURE(SetLayout({id(), id(), id()}, {id(), id(), id()}));
  }
  ASSERT_NO_FATAL_FAILURE(WaitForQuiet());
  ASSERT_NO_FATAL_FAILURE(CheckInPlace());
  ASSERT_NO_FATAL_FAILURE(CheckReads(model));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
