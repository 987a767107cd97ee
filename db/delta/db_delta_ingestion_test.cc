//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests ingestion of SST files, and deletion of whole files, in databases with
// operands in delta files. The answers of readers are compared with a model.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_ingestion.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_verifier.h"
#include "db/delta/delta_version.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/listener.h"
#include "rocksdb/metadata.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test_util/strata/delta_db_test_util.h"
#include "test_util/strata/embedded_value_test_util.h"
#include "test_util/strata/retryable_error_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"
#include "test_util/sync_point.h"
#include "util/random.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Values = std::map<std::string, std::string>;

struct Change {
  enum class Type { kPut, kDelete, kDeleteRange, kMerge };

  Type type = Type::kPut;
  std::string key;
  std::string value;  // kDeleteRange: the end
};
// The contents of an SST file: at most one change per key, in order.
using Changes = std::vector<Change>;

Change PutOf(const std::string& key, const std::string& value) {
  return {Change::Type::kPut, key, value};
}
Change DeleteOf(const std::string& key) {
  return {Change::Type::kDelete, key, ""};
}
Change DeleteRangeOf(const std::string& start, const std::string& end) {
  return {Change::Type::kDeleteRange, start, end};
}
Change MergeOf(const std::string& key, const std::string& operand) {
  return {Change::Type::kMerge, key, operand};
}

void Apply(const Change& change, Values* values) {
  switch (change.type) {
    case Change::Type::kPut:
      (*values)[change.key] = change.value;
      break;
    case Change::Type::kDelete:
      values->erase(change.key);
      break;
    case Change::Type::kDeleteRange:
      if (change.key < change.value) {
        values->erase(values->lower_bound(change.key),
                      values->lower_bound(change.value));
      }
      break;
    case Change::Type::kMerge: {
      std::string& value = (*values)[change.key];
      value += (value.empty() ? "" : ",") + change.value;
      break;
    }
  }
}

// Applies the changes of a file. A range deletion does not hide entries of its
// own file.
void ApplyFile(const Changes& changes, Values* values) {
  for (const bool ranges : {true, false}) {
    for (const Change& change : changes) {
      if ((change.type == Change::Type::kDeleteRange) == ranges) {
        Apply(change, values);
      }
    }
  }
}

}  // namespace

// The parameter says whether there is a cache of merged values.
class DBDeltaIngestionTest : public DeltaDBTestBase,
                             public testing::WithParamInterface<bool> {
 protected:
  DBDeltaIngestionTest() : DeltaDBTestBase("db_delta_ingestion_test") {
    external_dir_ = dbname_ + "_external";
    EXPECT_OK(DestroyDir(env_, external_dir_));
    EXPECT_OK(env_->CreateDir(external_dir_));
    for (char c = 'a'; c <= 'p'; ++c) {
      keys_.emplace_back(1, c);
    }
  }
  ~DBDeltaIngestionTest() override {
    ReleaseSnapshots();
    EXPECT_OK(DestroyDir(env_, external_dir_));
  }

  Options DeltaOptions() const {
    Options options = DeltaDBTestBase::DeltaOptions();
    options.enable_merged_value_cache = GetParam();
    options.delta_cache_size = size_t{1} << 20;
    options.num_levels = 4;
    // Tests call Resume() on their own.
    options.max_bgerror_resume_count = 0;
    return options;
  }
  void Start(const Options& options) {
    ReleaseSnapshots();
    DestroyAndReopen(options);
    now_.clear();
  }
  void Start() { Start(DeltaOptions()); }
  void Restart() {
    ReleaseSnapshots();
    // Reopen() resets last_options_ before it reads its argument.
    const Options options = last_options_;
    Reopen(options);
  }

  // ---- Writes to the DB and to the model.

  void Write(const Change& change) {
    switch (change.type) {
      case Change::Type::kPut:
        ASSERT_OK(Put(change.key, change.value));
        break;
      case Change::Type::kDelete:
        ASSERT_OK(Delete(change.key));
        break;
      case Change::Type::kDeleteRange:
        ASSERT_OK(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(),
                                   change.key, change.value));
        break;
      case Change::Type::kMerge:
        ASSERT_OK(Merge(change.key, change.value));
        break;
    }
    Apply(change, &now_);
  }
  void WriteAndFlush(const Changes& changes) {
    for (const Change& change : changes) {
      Write(change);
    }
    ASSERT_OK(Flush());
  }

  // Writes an SST file with these changes and returns its name.
  std::string MakeFile(const Changes& changes) {
    const std::string name =
        external_dir_ + "/" + std::to_string(++num_external_) + ".sst";
    SstFileWriter writer(EnvOptions(), last_options_);
    EXPECT_OK(writer.Open(name));
    for (const Change& change : changes) {
      switch (change.type) {
        case Change::Type::kPut:
          EXPECT_OK(writer.Put(change.key, change.value));
          break;
        case Change::Type::kDelete:
          EXPECT_OK(writer.Delete(change.key));
          break;
        case Change::Type::kDeleteRange:
          EXPECT_OK(writer.DeleteRange(change.key, change.value));
          break;
        case Change::Type::kMerge:
          EXPECT_OK(writer.Merge(change.key, change.value));
          break;
      }
    }
    EXPECT_OK(writer.Finish());
    return name;
  }

  Status TryIngest(
      const std::vector<Changes>& files,
      const IngestExternalFileOptions& options = IngestExternalFileOptions()) {
    std::vector<std::string> names;
    for (const Changes& changes : files) {
      names.push_back(MakeFile(changes));
    }
    Status s = db_->IngestExternalFile(names, options);
    if (s.ok()) {
      for (const Changes& changes : files) {
        ApplyFile(changes, &now_);
      }
    }
    return s;
  }
  void Ingest(
      const std::vector<Changes>& files,
      const IngestExternalFileOptions& options = IngestExternalFileOptions()) {
    ASSERT_OK(TryIngest(files, options));
  }

  void CompactToBottom() {
    CompactRangeOptions options;
    options.bottommost_level_compaction =
        BottommostLevelCompaction::kForceOptimized;
    ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
  }
  // Checks that values of the last level have the sequence number 0. (Folded
  // values may have another one.)
  void CheckZeroed() {
    std::vector<LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    EXPECT_TRUE(std::any_of(
        files.begin(), files.end(),
        [](const LiveFileMetaData& file) { return file.largest_seqno == 0; }));
  }

  // ---- Reads.

  struct Taken {
    const Snapshot* snapshot;
    Values values;
  };

  void TakeSnapshot() { snapshots_.push_back({db_->GetSnapshot(), now_}); }
  void ReleaseOldestSnapshot() {
    db_->ReleaseSnapshot(snapshots_.front().snapshot);
    snapshots_.pop_front();
  }
  void ReleaseSnapshots() {
    while (!snapshots_.empty()) {
      ReleaseOldestSnapshot();
    }
  }

  void CheckIterator(Iterator* iter, const Values& values) {
    ASSERT_NO_FATAL_FAILURE(DeltaDBTestBase::CheckIterator(iter, values));
    for (const std::string& key : keys_) {
      const auto next = values.lower_bound(key);
      iter->Seek(key);
      ASSERT_OK(iter->status());
      ASSERT_EQ(next != values.end(), iter->Valid()) << key;
      if (iter->Valid()) {
        EXPECT_EQ(next->first, iter->key().ToString());
        EXPECT_EQ(next->second, iter->value().ToString());
      }
    }
  }

  void CheckAt(const Snapshot* snapshot, const Values& values) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;
    std::vector<Slice> keys(keys_.begin(), keys_.end());
    std::vector<PinnableSlice> found(keys.size());
    std::vector<Status> statuses(keys.size());
    // In the second round, merged values may be in the cache.
    for (int i = 0; i < 2; ++i) {
      for (const std::string& key : keys_) {
        std::string value;
        const Status s = db_->Get(read_options, key, &value);
        const auto expected = values.find(key);
        if (expected == values.end()) {
          EXPECT_TRUE(s.IsNotFound()) << key << " " << s.ToString() << value;
        } else {
          EXPECT_OK(s);
          EXPECT_EQ(expected->second, value) << key;
        }
      }
      for (PinnableSlice& value : found) {
        value.Reset();
      }
      db_->MultiGet(read_options, db_->DefaultColumnFamily(), keys.size(),
                    keys.data(), found.data(), statuses.data());
      for (size_t k = 0; k < keys.size(); ++k) {
        const auto expected = values.find(keys_[k]);
        if (expected == values.end()) {
          EXPECT_TRUE(statuses[k].IsNotFound()) << statuses[k].ToString();
        } else {
          EXPECT_OK(statuses[k]);
          EXPECT_EQ(expected->second, found[k].ToString()) << keys_[k];
        }
      }
    }
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    CheckIterator(iter.get(), values);
  }

  void Check() {
    CheckAt(nullptr, now_);
    for (const Taken& taken : snapshots_) {
      CheckAt(taken.snapshot, taken.values);
    }
    CheckStore();
  }

  void CheckStore() {
    ColumnFamilyData* const cfd = Family();
    SuperVersion* const sv = dbfull()->GetAndRefSuperVersion(cfd);
    const DeltaVersion* const version =
        sv->current->storage_info()->delta().get();
    if (version != nullptr) {
      EXPECT_OK(version->CheckConsistency());
      const auto tables = NewUncachedDeltaTables(
          DeltaTableFamily(cfd->ioptions()), sv->mutable_cf_options);
      DeltaVerifier::Result result;
      DeltaVerifier::Verify(
          *tables, *version, DeltaVerifier::Options(),
          [](const std::string& line) { ADD_FAILURE() << line; }, &result);
    }
    dbfull()->ReturnAndCleanupSuperVersion(cfd, sv);
  }

  // Checks that all SST and delta files on disk belong to the DB. Returns the
  // number of delta files.
  size_t CheckFiles() {
    DeleteObsoleteFiles();
    const size_t num_deltas = FilesOnDisk(kDeltaFile).size();
    ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(&metadata);
    EXPECT_EQ(metadata.file_count, FilesOnDisk(kTableFile).size());
    EXPECT_EQ(metadata.delta_files.size(), num_deltas);
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      EXPECT_EQ(UINT64_MAX, Family()->delta_store()->OldestRunningFlush());
    }
    return num_deltas;
  }

  static void Expect(const Status& s, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) {
      EXPECT_NE(std::string::npos, s.ToString().find(part)) << s.ToString();
    }
  }

  std::string external_dir_;
  int num_external_ = 0;
  std::vector<std::string> keys_;
  Values now_;
  std::list<Taken> snapshots_;
};

INSTANTIATE_TEST_CASE_P(DBDeltaIngestionTest, DBDeltaIngestionTest,
                        testing::Bool());

// ---- Ingestion.

// Anchors of an ingested file hide older operands of its keys, but not newer
// ones.
TEST_P(DBDeltaIngestionTest, IngestedValuesHideFlushedOperands) {
  Start();
  WriteAndFlush({PutOf("a", "v"), PutOf("c", "v")});
  WriteAndFlush({MergeOf("a", "1"), MergeOf("b", "2"), MergeOf("c", "3"),
                 MergeOf("d", "4"), MergeOf("e", "5"), MergeOf("i", "6")});
  Check();
  TakeSnapshot();
  Ingest({{PutOf("a", "new"), DeleteOf("b"), PutOf("cc", "other"),
           DeleteRangeOf("d", "f"), PutOf("e", "stays")}});
  TakeSnapshot();
  Check();
  // One file holds the operands, the other one the anchors of the ingestion.
  EXPECT_EQ(2u, CheckFiles());
  Write(MergeOf("a", "7"));
  Write(MergeOf("b", "8"));
  Write(MergeOf("d", "9"));
  Check();
  ASSERT_OK(Flush());
  Check();
  Restart();
  Check();
  // Values get the sequence number 0, and tombstones are dropped.
  CompactToBottom();
  CheckZeroed();
  Check();
  Restart();
  Check();
  CheckFiles();
}

TEST_P(DBDeltaIngestionTest, SnapshotsSeeTheirValuesAcrossIngestions) {
  Start();
  WriteAndFlush({PutOf("a", "v"), PutOf("b", "v"), PutOf("c", "v")});
  TakeSnapshot();
  WriteAndFlush({MergeOf("a", "1"), MergeOf("b", "2"), MergeOf("d", "3")});
  TakeSnapshot();
  Ingest({{PutOf("a", "new"), DeleteRangeOf("b", "e")}});
  TakeSnapshot();
  WriteAndFlush({MergeOf("a", "4"), MergeOf("b", "5"), MergeOf("c", "6")});
  TakeSnapshot();
  Ingest({{DeleteOf("a"), PutOf("b", "newer")}});
  WriteAndFlush({MergeOf("a", "7"), MergeOf("b", "8")});
  Check();
  while (!snapshots_.empty()) {
    CompactToBottom();
    Check();
    ReleaseOldestSnapshot();
    Check();
  }
  CompactToBottom();
  CheckZeroed();
  Check();
  Restart();
  Check();
}

// The anchors need no values.
TEST_P(DBDeltaIngestionTest, DamagedEmbeddedValueIsIngested) {
  Start();
  WriteAndFlush({MergeOf("a", "1"), MergeOf("b", "2"), MergeOf("d", "3")});
  const std::string file = external_dir_ + "/damaged.sst";
  ASSERT_NO_FATAL_FAILURE(
      WriteDamagedEmbeddedValue(DeltaOptions(), file, "a", "b", "c"));
  ASSERT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
  std::string value;
  EXPECT_EQ("small", Get("a"));
  EXPECT_TRUE(db_->Get(ReadOptions(), "b", &value).IsCorruption());
  EXPECT_EQ("3", Get("d"));
}

// An ingestion over operands in memtables flushes them first.
TEST_P(DBDeltaIngestionTest, IngestionOverOperandsInMemtablesFlushesFirst) {
  Start();
  WriteAndFlush({PutOf("a", "v"), MergeOf("b", "1")});
  Write(MergeOf("a", "2"));
  Write(MergeOf("b", "3"));
  Write(MergeOf("c", "4"));
  TakeSnapshot();
  Ingest({{PutOf("a", "new"), DeleteOf("c")}});
  Check();
  Write(MergeOf("a", "5"));
  Write(MergeOf("c", "6"));
  Check();
  IngestExternalFileOptions no_flush;
  no_flush.allow_blocking_flush = false;
  EXPECT_TRUE(TryIngest({{PutOf("a", "no")}}, no_flush).IsInvalidArgument());
  Check();
  // Operands of other keys stay in the memtable.
  Write(MergeOf("p", "7"));
  Ingest({{PutOf("h", "8"), PutOf("i", "9")}}, no_flush);
  Check();
  ReleaseSnapshots();
  CompactToBottom();
  CheckZeroed();
  Check();
}

// If operands are written after all files were checked, and no file was over
// operands then, the commit writes the anchors.
TEST_P(DBDeltaIngestionTest, OperandsWrittenDuringTheCommitAreHidden) {
  for (const bool flush : {false, true}) {
    SCOPED_TRACE(flush);
    Start();
    WriteAndFlush({PutOf("a", "v"), PutOf("c", "v")});
    int num_late = 0;
    EnableCallBack("DBImpl::AddFile:Start", [&](void*) {
      Write(MergeOf("a", "1"));
      Write(MergeOf("c", "2"));
      Write(MergeOf("e", "3"));
      if (flush) {
        ASSERT_OK(Flush());
      }
    });
    EnableCallBack("DBStrata::PrepareIngestionCommit:LacksAnchors",
                   [&](void*) { ++num_late; });
    Ingest({{PutOf("a", "new"), PutOf("b", "new")},
            {DeleteRangeOf("d", "f"), PutOf("g", "new")},
            {PutOf("m", "elsewhere")}});
    DisableCallBacks();
    EXPECT_EQ(1, num_late);
    Check();
    EXPECT_EQ(3u, CheckFiles());
    WriteAndFlush({MergeOf("a", "4"), MergeOf("e", "5"), MergeOf("m", "6")});
    CompactToBottom();
    CheckZeroed();
    Check();
    Restart();
    Check();
  }
}

// The commit of an ingestion that waits until a compaction of another family is
// settled in the address map lets flushes commit, which may bring the first
// operands around a file.
TEST_P(DBDeltaIngestionTest, OperandsFlushedWhileTheCommitWaitsAreHidden) {
  const Options options = DeltaOptions();
  Start(options);
  Options map_options = options;
  map_options.enable_delta_separation = false;
  map_options.enable_merged_value_cache = false;
  map_options.merge_operator = MergeOperators::CreateMaxOperator();
  map_options.enable_blob_files = true;
  map_options.enable_blob_address_map = true;
  map_options.min_blob_size = 20;
  CreateColumnFamilies({"map"}, map_options);
  const std::vector<std::string> families = {kDefaultColumnFamilyName, "map"};
  const std::vector<Options> both = {options, map_options};
  ReopenWithColumnFamilies(families, both);
  const auto compact_map = [&] {
    std::vector<LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    std::vector<std::string> names;
    for (const LiveFileMetaData& file : files) {
      if (file.column_family_name == "map") {
        names.push_back(file.relative_filename);
      }
    }
    ASSERT_OK(db_->CompactFiles(CompactionOptions(), handles_[1], names, 3));
  };
  // A short value replaces a long one, whose name leaves the map.
  ASSERT_OK(Put(1, "k", "a" + std::string(40, '.')));
  ASSERT_OK(Flush(1));
  compact_map();
  ASSERT_OK(Merge(1, "k", "z"));
  ASSERT_OK(Flush(1));

  WriteAndFlush({PutOf("b", "v"), PutOf("c", "v")});
  Write(MergeOf("a", "1"));
  Write(MergeOf("d", "2"));
  std::atomic<bool> flush_is_held{false};
  std::atomic<bool> may_flush{false};
  EnableCallBackOnce("FlushJob::WriteLevel0Table", [&](void*) {
    flush_is_held = true;
    may_flush.wait(false);
  });
  std::thread flush([this] { EXPECT_OK(Flush()); });
  EXPECT_TRUE(WaitUntil([&] { return flush_is_held.load(); }));

  std::atomic<bool> commit_waits{false};
  EnableCallBack("DBStrata::WaitForSettledMap:Waits",
                 [&](void*) { commit_waits = true; });
  const Changes changes = {PutOf("b", "new"), DeleteOf("c")};
  std::thread ingestion;
  const auto was_held =
      EnableCallBackOnce("CompactionMapping::Settle", [&](void*) {
        ingestion = std::thread([&] {
          std::vector<IngestExternalFileArg> args(2);
          for (size_t i = 0; i < args.size(); ++i) {
            args[i].column_family = handles_[i];
            args[i].external_files = {
                MakeFile(i == 0 ? changes : Changes{PutOf("q", "new")})};
          }
          EXPECT_OK(db_->IngestExternalFiles(args));
        });
        EXPECT_TRUE(WaitUntil([&] { return commit_waits.load(); }));
        may_flush = true;
        may_flush.notify_all();
        flush.join();
      });
  compact_map();
  ASSERT_TRUE(*was_held);
  ingestion.join();
  DisableCallBacks();
  ApplyFile(changes, &now_);
  for (int i = 0; i < 2; ++i) {
    Check();
    EXPECT_EQ(Get(1, "k"), "z");
    EXPECT_EQ(Get(1, "q"), "new");
    CompactToBottom();
    Check();
    ReopenWithColumnFamilies(families, both);
  }
}

// A read of several column families that has taken its sequence number before
// an ingestion, and sees a family after jobs have dropped what the ingested
// file hides, is repeated: the old state is gone.
TEST_P(DBDeltaIngestionTest, ReadsOfSeveralFamiliesRepeatAfterAnIngestion) {
  for (const bool has_deltas : {true, false}) {
    SCOPED_TRACE(has_deltas);
    Options options = DeltaOptions();
    options.enable_delta_separation = has_deltas;
    Start(options);
    CreateColumnFamilies({"other"}, options);
    ReopenWithColumnFamilies({kDefaultColumnFamilyName, "other"}, options);
    for (const bool iterators : {false, true}) {
      SCOPED_TRACE(iterators);
      const std::string key = iterators ? "k" : "l";
      ASSERT_OK(Put(0, "x", "v"));
      ASSERT_OK(Put(1, key, "base"));
      ASSERT_OK(Flush(1));
      ASSERT_OK(Merge(1, key, "op"));
      ASSERT_OK(Flush(1));
      const auto was_changed =
          EnableCallBackOnce("DBImpl::MultiCFSnapshot::AfterRefSV", [&](void*) {
            ASSERT_OK(db_->IngestExternalFile(handles_[1],
                                              {MakeFile({PutOf(key, "new")})},
                                              IngestExternalFileOptions()));
            ASSERT_OK(db_->CompactRange(CompactRangeOptions(), handles_[1],
                                        nullptr, nullptr));
          });
      if (!iterators) {
        const auto values = MultiGet({0, 1}, {"x", key}, nullptr,
                                     /*batched=*/true, /*async=*/false);
        EXPECT_EQ(values[1], "new");
      } else {
        std::vector<Iterator*> iters;
        ASSERT_OK(db_->NewIterators(ReadOptions(), {handles_[0], handles_[1]},
                                    &iters));
        iters[1]->Seek(key);
        EXPECT_TRUE(iters[1]->Valid() && iters[1]->key() == key &&
                    iters[1]->value() == "new");
        EXPECT_OK(iters[1]->status());
        for (Iterator* const iter : iters) {
          delete iter;
        }
      }
      DisableCallBacks();
      EXPECT_TRUE(*was_changed);
    }
  }
}

// A commit completes the anchors for keys that had no operands when the
// ingestion was prepared.
TEST_P(DBDeltaIngestionTest, OperandsWrittenBeforeTheCommitAreHidden) {
  Start();
  WriteAndFlush({PutOf("a", "v")});
  const auto prepare = [&](const Changes& changes) {
    std::unique_ptr<FileIngestionHandle> handle;
    EXPECT_OK(db_->PrepareFileIngestion(db_->DefaultColumnFamily(),
                                        {MakeFile(changes)},
                                        IngestExternalFileOptions(), &handle));
    return handle;
  };
  const Changes changes = {PutOf("a", "new"), DeleteOf("b"),
                           DeleteRangeOf("c", "f")};
  // There are no operands yet, so anchors are left to the commit.
  auto handle = prepare(changes);
  // Some operands are flushed, others are in the memtable.
  WriteAndFlush({MergeOf("a", "1"), MergeOf("b", "2"), MergeOf("d", "3")});
  Write(MergeOf("a", "4"));
  Write(MergeOf("e", "5"));
  Check();
  ASSERT_OK(db_->CommitFileIngestionHandle(std::move(handle)));
  ApplyFile(changes, &now_);
  Check();
  CompactToBottom();
  CheckZeroed();
  Check();

  // One key has operands before the ingestion is prepared, others get them
  // later.
  WriteAndFlush({MergeOf("a", "9")});
  handle = prepare(changes);
  WriteAndFlush({MergeOf("b", "10"), MergeOf("e", "11")});
  ASSERT_OK(db_->CommitFileIngestionHandle(std::move(handle)));
  ApplyFile(changes, &now_);
  Check();
  CompactToBottom();
  Check();

  // An ingestion that is given up leaves no delta files.
  WriteAndFlush({MergeOf("a", "12")});
  const size_t num_deltas = CheckFiles();
  handle = prepare({PutOf("a", "not")});
  ASSERT_OK(handle->Abort());
  handle = prepare({PutOf("a", "not")});
  handle.reset();
  EXPECT_EQ(num_deltas, CheckFiles());
  Check();

  // The later of two handles for a family takes effect last.
  std::vector<std::unique_ptr<FileIngestionHandle>> handles;
  handles.push_back(prepare({PutOf("a", "first"), PutOf("b", "first")}));
  handles.push_back(prepare({DeleteOf("b"), PutOf("c", "second")}));
  WriteAndFlush({MergeOf("a", "6"), MergeOf("b", "7"), MergeOf("c", "8")});
  ASSERT_OK(db_->CommitFileIngestionHandles(std::move(handles)));
  ApplyFile({PutOf("a", "first"), PutOf("b", "first")}, &now_);
  ApplyFile({DeleteOf("b"), PutOf("c", "second")}, &now_);
  Check();
  CompactToBottom();
  Check();
  Restart();
  Check();
  CheckFiles();
}

TEST_P(DBDeltaIngestionTest, SeveralFilesAreIngestedInOrder) {
  for (const bool overlap : {false, true}) {
    SCOPED_TRACE(overlap);
    Start();
    WriteAndFlush({MergeOf("a", "1"), MergeOf("c", "2"), MergeOf("e", "3"),
                   MergeOf("g", "4")});
    TakeSnapshot();
    if (overlap) {
      // The files overlap, so each gets a sequence number of its own.
      Ingest({{PutOf("a", "first"), PutOf("e", "first")},
              {DeleteRangeOf("b", "h"), PutOf("c", "second")},
              {PutOf("c", "third"), DeleteOf("d")}});
    } else {
      Ingest({{PutOf("a", "first")},
              {PutOf("b", "second"), PutOf("c", "second")},
              {DeleteOf("e")},
              {PutOf("n", "not over operands")}});
    }
    Check();
    WriteAndFlush({MergeOf("a", "5"), MergeOf("c", "6"), MergeOf("d", "7"),
                   MergeOf("e", "8"), MergeOf("g", "9")});
    Check();
    CompactToBottom();
    Check();
    ReleaseSnapshots();
    CompactToBottom();
    CheckZeroed();
    Check();
    Restart();
    Check();
    CheckFiles();
  }
}

TEST_P(DBDeltaIngestionTest, FamiliesWithAndWithoutSeparationAreIngested) {
  const Options options = DeltaOptions();
  CreateAndReopenWithCF({"one", "without"}, options);
  Options without = options;
  without.enable_delta_separation = false;
  ReopenWithColumnFamilies({"default", "one", "without"},
                           std::vector<Options>{options, options, without});
  for (int cf = 0; cf < 3; ++cf) {
    ASSERT_OK(Merge(cf, "a", "1"));
    ASSERT_OK(Flush(cf));
    ASSERT_OK(Merge(cf, "a", "2"));
  }
  std::vector<IngestExternalFileArg> args(3);
  for (int cf = 0; cf < 3; ++cf) {
    args[cf].column_family = handles_[cf];
    args[cf].external_files = {MakeFile({PutOf("a", "new")})};
  }
  ASSERT_OK(db_->IngestExternalFiles(args));
  for (const bool reopen : {false, true}) {
    if (reopen) {
      ReopenWithColumnFamilies({"default", "one", "without"},
                               std::vector<Options>{options, options, without});
    }
    for (int cf = 0; cf < 3; ++cf) {
      EXPECT_EQ("new", Get(cf, "a"));
    }
  }
  for (int cf = 0; cf < 3; ++cf) {
    ASSERT_OK(Merge(cf, "a", "3"));
    ASSERT_OK(Flush(cf));
    ASSERT_OK(db_->CompactRange(CompactRangeOptions(), handles_[cf], nullptr,
                                nullptr));
    EXPECT_EQ("new,3", Get(cf, "a"));
  }
}

// An ingestion over no operands writes no delta file and uses no sequence
// number.
TEST_P(DBDeltaIngestionTest, IngestionOverNoOperandsWritesNoAnchors) {
  Start();
  Ingest({{PutOf("a", "1"), DeleteRangeOf("b", "c")}});
  EXPECT_EQ(0u, CheckFiles());
  WriteAndFlush({MergeOf("c", "2"), MergeOf("e", "3")});
  const SequenceNumber seq = db_->GetLatestSequenceNumber();
  Ingest({{PutOf("k", "4"), PutOf("m", "5")}});
  EXPECT_EQ(seq, db_->GetLatestSequenceNumber());
  EXPECT_EQ(1u, CheckFiles());
  Ingest({{PutOf("d", "6")}});
  EXPECT_EQ(seq + 1, db_->GetLatestSequenceNumber());
  EXPECT_EQ(2u, CheckFiles());
  Check();

  // Operands in ingested SST files are older than all operands of later
  // flushes.
  Ingest({{MergeOf("n", "7"), MergeOf("o", "8")}});
  WriteAndFlush({MergeOf("n", "9"), MergeOf("o", "10")});
  Check();
  CompactToBottom();
  Check();
  Restart();
  Check();
}

TEST_P(DBDeltaIngestionTest, UnsupportedIngestionsOverOperandsAreRefused) {
  Start();
  WriteAndFlush({PutOf("a", "v"), PutOf("c", "v")});
  WriteAndFlush({MergeOf("a", "1"), MergeOf("c", "2")});
  const std::string separation = "enable_delta_separation";
  const size_t num_deltas = CheckFiles();

  Status s = TryIngest({{PutOf("a", "x"), MergeOf("b", "3")}});
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  Expect(s, {separation, external_dir_, "merge operands itself"});

  IngestExternalFileOptions no_seq;
  no_seq.allow_global_seqno = false;
  no_seq.allow_blocking_flush = false;
  s = TryIngest({{PutOf("b", "x")}}, no_seq);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  Expect(s, {separation, external_dir_, "allow_global_seqno"});

  IngestExternalFileOptions of_db;
  of_db.allow_db_generated_files = true;
  of_db.snapshot_consistency = false;
  s = TryIngest({{PutOf("b", "x")}}, of_db);
  EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
  Expect(s, {separation, external_dir_, "allow_db_generated_files"});

  IngestExternalFileArg replace;
  replace.column_family = db_->DefaultColumnFamily();
  replace.external_files = {MakeFile({PutOf("b", "x")})};
  replace.options.snapshot_consistency = false;
  for (const bool everything : {false, true}) {
    replace.atomic_replace_range = everything ? RangeOpt() : RangeOpt("a", "d");
    s = db_->IngestExternalFiles({replace});
    EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
    Expect(s, {separation, "atomic_replace_range"});
  }

  // Nothing has changed.
  Check();
  EXPECT_EQ(num_deltas, CheckFiles());
  // The same files are accepted where there are no operands.
  Ingest({{MergeOf("e", "3")}});
  Ingest({{PutOf("g", "x")}}, no_seq);
  Ingest({{PutOf("i", "x")}}, of_db);
  Check();
  EXPECT_EQ(num_deltas, CheckFiles());
  Restart();
  Check();
}

// Old versions of RocksDB do not count the operands of a file.
TEST_P(DBDeltaIngestionTest, OperandsThatNoPropertyCountsAreFound) {
  Start();
  WriteAndFlush({PutOf("a", "v")});
  WriteAndFlush({MergeOf("a", "1"), MergeOf("c", "2")});
  const size_t num_deltas = CheckFiles();
  SyncPoint::GetInstance()->SetCallBack(
      "ExternalSstFileIngestionJob::DeltaSourceOf", [](void* arg) {
        static_cast<DeltaIngestion::Source*>(arg)->num_operands = 0;
      });
  SyncPoint::GetInstance()->EnableProcessing();
  for (const Changes& changes : {Changes{MergeOf("b", "3")},
                                 Changes{PutOf("a", "x"), MergeOf("b", "3")}}) {
    const Status s = TryIngest({changes});
    EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
    Expect(s, {"enable_delta_separation", "rocksdb.merge.operands"});
  }
  SyncPoint::GetInstance()->DisableProcessing();
  SyncPoint::GetInstance()->ClearAllCallBacks();
  Check();
  EXPECT_EQ(num_deltas, CheckFiles());
}

TEST_P(DBDeltaIngestionTest, OpenIteratorsKeepTheirOperands) {
  Start();
  WriteAndFlush({PutOf("a", "v"), PutOf("e", "v")});
  WriteAndFlush({MergeOf("a", "1"), MergeOf("c", "2"), MergeOf("e", "3")});
  const Values before = now_;
  const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  const std::unique_ptr<Iterator> amid(db_->NewIterator(ReadOptions()));
  amid->Seek("b");
  Ingest({{PutOf("a", "new"), DeleteRangeOf("b", "f")}});
  CompactToBottom();
  ASSERT_TRUE(amid->Valid());
  EXPECT_EQ("c", amid->key().ToString());
  EXPECT_EQ("2", amid->value().ToString());
  amid->Next();
  ASSERT_TRUE(amid->Valid());
  EXPECT_EQ("v,3", amid->value().ToString());
  amid->SeekForPrev("b");
  ASSERT_TRUE(amid->Valid());
  EXPECT_EQ("v,1", amid->value().ToString());
  CheckIterator(iter.get(), before);
  Check();
  ASSERT_OK(iter->Refresh());
  CheckIterator(iter.get(), now_);
}

// If the ingestion fails at any step, nothing changes, and the next one
// succeeds.
TEST_P(DBDeltaIngestionTest, FailedIngestionChangesNothing) {
  const auto injected = [] { return IOStatus::IOError("injected"); };
  const auto fail_io = [&](void* arg) {
    *static_cast<IOStatus*>(arg) = injected();
  };
  const auto fail = [&](void* arg) { *static_cast<Status*>(arg) = injected(); };
  const std::vector<std::pair<std::string, std::function<void(void*)>>> points =
      {{"DeltaFileBuilder::Open:NewWritableFile", fail_io},
       {"DeltaFileBuilder::FinishFile:BeforeSync", fail_io},
       {"DeltaFileBuilder::FinishFile:AfterClose", fail_io},
       {"DeltaIngestion::WriteAnchors:Opened", fail}};
  for (const auto& [point, inject] : points) {
    // The first or the second file fails.
    for (int at = 1; at <= 2; ++at) {
      SCOPED_TRACE(point + " " + std::to_string(at));
      Start();
      WriteAndFlush({PutOf("a", "v"), MergeOf("b", "1"), MergeOf("c", "2")});
      std::atomic<int> calls{0};
      EnableCallBack(point, [&, fn = inject](void* arg) {
        if (++calls == at) {
          fn(arg);
        }
      });
      const std::vector<Changes> files = {{PutOf("a", "new"), DeleteOf("b")},
                                          {PutOf("c", "new")}};
      const Status s = TryIngest(files);
      DisableCallBacks();
      Expect(s, {"injected"});
      // No scan for obsolete files is needed to delete the anchors.
      EXPECT_EQ(1u, FilesOnDisk(kDeltaFile).size());
      EXPECT_EQ(1u, CheckFiles());
      Check();
      Ingest(files);
      EXPECT_EQ(3u, CheckFiles());
      Check();
      Restart();
      Check();
    }
  }
}

TEST_P(DBDeltaIngestionTest, FailedManifestWriteChangesNothing) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env = NewCompositeEnv(fault_fs);
  Options options = DeltaOptions();
  options.env = fault_env.get();
  Start(options);
  WriteAndFlush({PutOf("a", "v"), MergeOf("b", "1")});
  const std::vector<Changes> files = {{PutOf("a", "new"), DeleteOf("b")}};
  EnableCallBack("VersionSet::LogAndApply:WriteManifest", [&](void*) {
    fault_fs->SetFilesystemActive(false, RetryableError());
  });
  // The failure must not hit PrepareFileIngestion(), which writes to the
  // MANIFEST as well.
  std::unique_ptr<FileIngestionHandle> handle;
  SyncPoint::GetInstance()->DisableProcessing();
  ASSERT_OK(db_->PrepareFileIngestion(db_->DefaultColumnFamily(),
                                      {MakeFile(files[0])},
                                      IngestExternalFileOptions(), &handle));
  SyncPoint::GetInstance()->EnableProcessing();
  ASSERT_NOK(db_->CommitFileIngestionHandle(std::move(handle)));
  DisableCallBacks();
  fault_fs->SetFilesystemActive(true);
  ASSERT_OK(dbfull()->Resume());
  Check();
  Ingest(files);
  Check();
  Restart();
  Check();
  EXPECT_EQ(2u, CheckFiles());
  Close();
  last_options_.env = env_;
}

// The record of an ingestion was written, and the write has failed: the next
// open needs the SST files and the anchors. After a recovery instead, nothing
// has changed.
TEST_P(DBDeltaIngestionTest, FailedManifestSyncKeepsFilesForTheNextOpen) {
  for (const bool resumes : {false, true}) {
    SCOPED_TRACE(resumes);
    Start();
    WriteAndFlush({PutOf("a", "v"), MergeOf("b", "1"), MergeOf("d", "2")});
    const Changes changes = {PutOf("a", "new"), DeleteOf("b"),
                             DeleteRangeOf("c", "e")};
    std::unique_ptr<FileIngestionHandle> handle;
    ASSERT_OK(db_->PrepareFileIngestion(db_->DefaultColumnFamily(),
                                        {MakeFile(changes)},
                                        IngestExternalFileOptions(), &handle));
    EnableCallBack("VersionSet::ProcessManifestWrites:AfterSyncManifest",
                   [](void* status) {
                     *static_cast<IOStatus*>(status) = RetryableError();
                   });
    ASSERT_NOK(db_->CommitFileIngestionHandle(std::move(handle)));
    DisableCallBacks();
    dbfull()->TEST_DeleteObsoleteFiles();
    Check();
    if (resumes) {
      ASSERT_OK(dbfull()->Resume());
      EXPECT_EQ(1u, CheckFiles());
      Ingest({changes});
    } else {
      Restart();
      ApplyFile(changes, &now_);
    }
    Check();
    EXPECT_EQ(2u, CheckFiles());
    WriteAndFlush({MergeOf("a", "3"), MergeOf("b", "4"), MergeOf("d", "5")});
    Check();
    Restart();
    Check();
  }
}

// After a crash with the files written and the edit not committed, the next
// open has deleted the files and the data is unchanged.
TEST_P(DBDeltaIngestionTest, CrashBeforeTheEditChangesNothing) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env = NewCompositeEnv(fault_fs);
  for (const std::string point :
       {"ExternalSstFileIngestionJob::WriteDeltaAnchors:Done",
        "ExternalSstFileIngestionJob::AfterSyncDir",
        "VersionSet::LogAndApply:WriteManifest"}) {
    SCOPED_TRACE(point);
    Options options = DeltaOptions();
    options.env = fault_env.get();
    Start(options);
    WriteAndFlush({PutOf("a", "v"), MergeOf("b", "1"), MergeOf("c", "2")});
    const Changes changes = {PutOf("a", "new"), DeleteOf("b"),
                             DeleteRangeOf("c", "d")};
    const std::string file = MakeFile(changes);
    // The commit is the second write to the MANIFEST.
    const int at = point == "VersionSet::LogAndApply:WriteManifest" ? 2 : 1;
    std::atomic<int> calls{0};
    EnableCallBack(point, [&](void*) {
      if (++calls == at) {
        fault_fs->SetFilesystemActive(false, IOStatus::IOError("crash"));
      }
    });
    EXPECT_NOK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
    DisableCallBacks();
    EXPECT_EQ(at, calls.load());
    Close();
    fault_fs->SetFilesystemActive(true);
    ASSERT_OK(fault_fs->DropUnsyncedFileData());
    Restart();
    Check();
    EXPECT_EQ(1u, CheckFiles());
    ASSERT_OK(db_->IngestExternalFile({file}, IngestExternalFileOptions()));
    ApplyFile(changes, &now_);
    Check();
    EXPECT_EQ(2u, CheckFiles());
    Close();
    last_options_.env = env_;
  }
}

TEST_P(DBDeltaIngestionTest, ImportedOperandsAreOlderThanNewOnes) {
  Start();
  Checkpoint* checkpoint_ptr = nullptr;
  // The family keeps its operands in SST files.
  Options without = DeltaOptions();
  without.enable_delta_separation = false;
  ColumnFamilyHandle* source = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(without, "source", &source));
  ASSERT_OK(db_->Put(WriteOptions(), source, "a", "v"));
  ASSERT_OK(db_->Flush(FlushOptions(), source));
  ASSERT_OK(db_->Merge(WriteOptions(), source, "a", "1"));
  ASSERT_OK(db_->Merge(WriteOptions(), source, "b", "2"));
  ASSERT_OK(Checkpoint::Create(db_.get(), &checkpoint_ptr));
  const std::unique_ptr<Checkpoint> checkpoint(checkpoint_ptr);
  const std::string directory = dbname_ + "_export";
  ASSERT_OK(DestroyDir(env_, directory));
  ExportImportFilesMetaData* metadata_ptr = nullptr;
  ASSERT_OK(checkpoint->ExportColumnFamily(source, directory, &metadata_ptr));
  const std::unique_ptr<ExportImportFilesMetaData> metadata(metadata_ptr);
  ColumnFamilyHandle* imported = nullptr;
  ASSERT_OK(db_->CreateColumnFamilyWithImport(DeltaOptions(), "imported",
                                              ImportColumnFamilyOptions(),
                                              *metadata, &imported));
  const auto get = [&](const std::string& key) {
    std::string value;
    EXPECT_OK(db_->Get(ReadOptions(), imported, key, &value));
    return value;
  };
  // Imported operands are older than those that are written now.
  ASSERT_OK(db_->Merge(WriteOptions(), imported, "a", "3"));
  ASSERT_OK(db_->Merge(WriteOptions(), imported, "b", "4"));
  EXPECT_EQ("v,1,3", get("a"));
  ASSERT_OK(db_->Flush(FlushOptions(), imported));
  EXPECT_EQ("v,1,3", get("a"));
  EXPECT_EQ("2,4", get("b"));
  ASSERT_OK(
      db_->CompactRange(CompactRangeOptions(), imported, nullptr, nullptr));
  EXPECT_EQ("v,1,3", get("a"));
  EXPECT_EQ("2,4", get("b"));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(imported));
  ASSERT_OK(db_->DestroyColumnFamilyHandle(source));
  ASSERT_OK(DestroyDir(env_, directory));
}

// The SST files of a family with delta files lack operands, so they are not
// prepared for an ingestion elsewhere before these are drained.
TEST_P(DBDeltaIngestionTest, FilesWithoutTheirOperandsAreNotPrepared) {
  Options options = DeltaOptions();
  Start(options);
  const auto only_file = [&] {
    std::vector<LiveFileMetaData> files;
    db_->GetLiveFilesMetaData(&files);
    EXPECT_EQ(1u, files.size());
    return files[0].directory + "/" + files[0].relative_filename;
  };
  std::shared_ptr<const PreparedFileInfo> info;
  WriteAndFlush({PutOf("a", "v")});
  ASSERT_OK(
      db_->GetPreparedFileInfoForExternalSstIngestion(only_file(), &info));
  ASSERT_TRUE(info != nullptr);

  WriteAndFlush({MergeOf("a", "1"), MergeOf("b", "2")});
  for (const bool in_buckets : {false, true}) {
    SCOPED_TRACE(in_buckets);
    if (in_buckets) {
      CompactToBottom();
    }
    const Status s =
        db_->GetPreparedFileInfoForExternalSstIngestion(only_file(), &info);
    EXPECT_TRUE(s.IsNotSupported()) << s.ToString();
    Expect(s, {only_file(), "\"default\"", "delta files",
               "enable_delta_separation", "CompactRange"});
    EXPECT_TRUE(info == nullptr);
  }

  // The drain puts the operands into the SST file.
  options.enable_delta_separation = false;
  Reopen(options);
  CompactToBottom();
  const std::string file = only_file();
  ASSERT_OK(db_->GetPreparedFileInfoForExternalSstIngestion(file, &info));
  ColumnFamilyHandle* target = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(options, "target", &target));
  IngestExternalFileArg arg;
  arg.column_family = target;
  arg.external_files = {file};
  arg.file_infos = {info.get()};
  arg.options.allow_db_generated_files = true;
  arg.options.snapshot_consistency = false;
  arg.options.link_files = true;
  ASSERT_OK(db_->IngestExternalFiles({arg}));
  for (const auto& [key, expected] : now_) {
    std::string value;
    EXPECT_OK(db_->Get(ReadOptions(), target, key, &value));
    EXPECT_EQ(expected, value) << key;
  }
  ASSERT_OK(db_->DestroyColumnFamilyHandle(target));
}

TEST_P(DBDeltaIngestionTest, RandomIngestionsMatchTheModel) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Random rnd(seed);
    Start();
    const auto key = [&] {
      return keys_[rnd.Uniform(static_cast<int>(keys_.size()))];
    };
    int next_value = 0;
    const auto value = [&] { return std::to_string(++next_value); };
    for (int step = 0; step < 250; ++step) {
      const uint32_t kind = rnd.Uniform(100);
      if (kind < 45) {
        Write(MergeOf(key(), value()));
      } else if (kind < 55) {
        Write(PutOf(key(), value()));
      } else if (kind < 58) {
        Write(DeleteOf(key()));
      } else if (kind < 60) {
        const std::string start = key();
        Write(DeleteRangeOf(start, start + "x"));
      } else if (kind < 70) {
        ASSERT_OK(Flush());
      } else if (kind < 85) {
        std::vector<Changes> files(1 + rnd.Uniform(3));
        for (Changes& changes : files) {
          std::map<std::string, Change> of_key;
          for (int i = rnd.Uniform(4); i >= 0; --i) {
            const std::string k = key();
            of_key[k] = rnd.OneIn(3) ? DeleteOf(k) : PutOf(k, value());
          }
          for (const auto& [k, change] : of_key) {
            changes.push_back(change);
          }
          if (rnd.OneIn(4)) {
            const std::string start = key();
            changes.push_back(DeleteRangeOf(start, start + "x"));
          }
        }
        if (rnd.OneIn(3)) {
          // Writes come between preparation and commit.
          std::vector<std::string> names;
          for (const Changes& changes : files) {
            names.push_back(MakeFile(changes));
          }
          std::unique_ptr<FileIngestionHandle> handle;
          ASSERT_OK(db_->PrepareFileIngestion(db_->DefaultColumnFamily(), names,
                                              IngestExternalFileOptions(),
                                              &handle));
          for (int i = rnd.Uniform(4); i > 0; --i) {
            Write(MergeOf(key(), value()));
          }
          if (rnd.OneIn(2)) {
            ASSERT_OK(Flush());
          }
          ASSERT_OK(db_->CommitFileIngestionHandle(std::move(handle)));
          for (const Changes& changes : files) {
            ApplyFile(changes, &now_);
          }
        } else {
          Ingest(files);
        }
      } else if (kind < 90) {
        TakeSnapshot();
      } else if (kind < 94) {
        if (!snapshots_.empty()) {
          ReleaseOldestSnapshot();
        }
      } else if (kind < 98) {
        CompactToBottom();
      } else {
        Restart();
      }
      if (step % 10 == 0) {
        Check();
        ASSERT_FALSE(HasFailure());
      }
    }
    Check();
    CheckFiles();
    ASSERT_FALSE(HasFailure());
  }
}

// ---- Deletion of files.

// Each of the keys a to p has a file in the last level, and an operand.
class DBDeltaFileDeletionTest : public DBDeltaIngestionTest {
 protected:
  void MakeFiles(const Options& options) {
    Start(options);
    for (const std::string& key : keys_) {
      WriteAndFlush({PutOf(key, "v")});
      MoveFilesToLevel(3);
    }
    ASSERT_EQ(static_cast<int>(keys_.size()), NumTableFilesAtLevel(3));
    Changes operands;
    for (const std::string& key : keys_) {
      operands.push_back(MergeOf(key, "1"));
    }
    WriteAndFlush(operands);
    Check();
  }
  void MakeFiles() { MakeFiles(DeltaOptions()); }

  Status DeleteFiles(const std::vector<RangeOpt>& ranges, bool include_end) {
    return DeleteFilesInRanges(db_.get(), db_->DefaultColumnFamily(),
                               ranges.data(), ranges.size(), include_end);
  }
  // Removes the deleted keys, including `last`, from the model.
  void Forget(const std::string& first, const std::string& last) {
    now_.erase(now_.lower_bound(first), now_.upper_bound(last));
  }
};

INSTANTIATE_TEST_CASE_P(DBDeltaFileDeletionTest, DBDeltaFileDeletionTest,
                        testing::Bool());

// A deletion of files takes the operands of the deleted range, with or without
// the key at its end; old iterators still see them.
TEST_P(DBDeltaFileDeletionTest, DeletedRangeMayIncludeItsEnd) {
  MakeFiles();
  std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  const Values before = now_;
  ASSERT_OK(DeleteFiles({{"c", "e"}}, /*include_end=*/false));
  Forget("c", "d");
  Check();
  ASSERT_OK(DeleteFiles({{"g", "i"}}, /*include_end=*/true));
  Forget("g", "i");
  Check();
  ASSERT_OK(DeleteFiles({{OptSlice(), "b"}, {"n", OptSlice()}},
                        /*include_end=*/false));
  Forget("a", "a");
  Forget("n", "p");
  Check();
  CheckIterator(iter.get(), before);
  // The iterator keeps files, and must be gone before the database is closed.
  iter.reset();
  EXPECT_EQ(4u, CheckFiles());  // three have anchors
  // New operands begin without older ones.
  WriteAndFlush({MergeOf("a", "2"), MergeOf("d", "3"), MergeOf("p", "4")});
  Check();
  Restart();
  Check();
  ASSERT_OK(DeleteFiles({{OptSlice(), OptSlice()}}, /*include_end=*/true));
  Forget("a", "z");
  Check();
  Restart();
  Check();
  WriteAndFlush({MergeOf("a", "5"), MergeOf("d", "6"), PutOf("p", "7")});
  CompactToBottom();
  Check();
  CheckFiles();
}

// Operands in memtables stay without their values, as in RocksDB.
TEST_P(DBDeltaFileDeletionTest, OperandsInMemtablesStay) {
  MakeFiles();
  Write(MergeOf("b", "2"));
  Write(MergeOf("d", "3"));
  ASSERT_OK(DeleteFiles({{"a", "c"}}, /*include_end=*/true));
  Forget("a", "c");
  now_["b"] = "2";
  Check();
  ASSERT_OK(Flush());
  Check();
  CompactToBottom();
  Check();
  Restart();
  Check();
}

// A flush that runs during the deletion is committed later, with a lower epoch.
// Its entries stay.
TEST_P(DBDeltaFileDeletionTest, EntriesOfARunningFlushStay) {
  MakeFiles();
  Write(MergeOf("b", "2"));
  Write(PutOf("c", "3"));
  Write(MergeOf("m", "4"));
  EnableCallBack("DeltaFlush::Publish:BeforeFiles", [&](void*) {
    ASSERT_OK(DeleteFiles({{"a", "d"}}, /*include_end=*/true));
  });
  ASSERT_OK(Flush());
  DisableCallBacks();
  Forget("a", "d");
  now_["b"] = "2";
  now_["c"] = "3";
  Check();
  WriteAndFlush({MergeOf("c", "5"), MergeOf("d", "6")});
  CompactToBottom();
  Check();
  Restart();
  Check();
  CheckFiles();
}

// If no file is deleted, operands stay.
TEST_P(DBDeltaFileDeletionTest, OperandsStayIfNoFileIsDeleted) {
  Start();
  WriteAndFlush({MergeOf("a", "1"), MergeOf("c", "2")});
  WriteAndFlush({PutOf("p", "3")});  // in level 0
  ASSERT_OK(DeleteFiles({{OptSlice(), OptSlice()}}, /*include_end=*/true));
  Check();
  EXPECT_EQ(1u, CheckFiles());
}

TEST_P(DBDeltaFileDeletionTest, DeletionWithoutOperandsWritesNoAnchors) {
  Start();
  WriteAndFlush({PutOf("a", "v")});
  MoveFilesToLevel(3);
  WriteAndFlush({MergeOf("m", "1")});
  ASSERT_OK(DeleteFiles({{"a", "b"}}, /*include_end=*/true));
  Forget("a", "b");
  Check();
  EXPECT_EQ(1u, CheckFiles());
}

TEST_P(DBDeltaFileDeletionTest, FailedDeletionChangesNothing) {
  for (const std::string point : {"DeltaFileBuilder::Open:NewWritableFile",
                                  "DeltaFileBuilder::FinishFile:BeforeSync",
                                  "DeltaFileBuilder::FinishFile:AfterClose",
                                  "DeltaFileDeletion::Publish:Synced"}) {
    SCOPED_TRACE(point);
    MakeFiles();
    EnableCallBack(point, [&](void* arg) {
      if (point == "DeltaFileDeletion::Publish:Synced") {
        *static_cast<Status*>(arg) = Status::IOError("injected");
      } else {
        *static_cast<IOStatus*>(arg) = IOStatus::IOError("injected");
      }
    });
    const Status s = DeleteFiles({{"b", "d"}}, /*include_end=*/true);
    DisableCallBacks();
    Expect(s, {"injected"});
    Check();
    EXPECT_EQ(1u, CheckFiles());
    // The files of the failed deletion can be deleted by others.
    ASSERT_OK(DeleteFiles({{"b", "d"}}, /*include_end=*/true));
    Forget("b", "d");
    Check();
    EXPECT_EQ(2u, CheckFiles());
  }
}

TEST_P(DBDeltaFileDeletionTest, FailedManifestWriteChangesNothing) {
  const auto fault_fs =
      std::make_shared<FaultInjectionTestFS>(env_->GetFileSystem());
  const std::unique_ptr<Env> fault_env = NewCompositeEnv(fault_fs);
  for (const bool crash : {false, true}) {
    SCOPED_TRACE(crash);
    Options options = DeltaOptions();
    options.env = fault_env.get();
    MakeFiles(options);
    EnableCallBack("VersionSet::LogAndApply:WriteManifest", [&](void*) {
      fault_fs->SetFilesystemActive(false, RetryableError());
    });
    ASSERT_NOK(DeleteFiles({{"b", "d"}}, /*include_end=*/true));
    DisableCallBacks();
    if (crash) {
      Close();
      fault_fs->SetFilesystemActive(true);
      ASSERT_OK(fault_fs->DropUnsyncedFileData());
    } else {
      fault_fs->SetFilesystemActive(true);
    }
    Restart();
    Check();
    EXPECT_EQ(1u, CheckFiles());
    ASSERT_OK(DeleteFiles({{"b", "d"}}, /*include_end=*/true));
    Forget("b", "d");
    Check();
    Close();
    last_options_.env = env_;
  }
}

// A second deletion is woken by the end of the first one, not only by a purge:
// none runs, as file deletions are disabled.
TEST_P(DBDeltaFileDeletionTest, SecondDeletionIsWokenWithoutAPurge) {
  MakeFiles();
  ASSERT_OK(db_->DisableFileDeletions());
  std::promise<void> written;
  std::promise<void> waits;
  std::atomic<bool> is_first{true};
  SyncPoint::GetInstance()->SetCallBack(
      "DBStrata::BeginDeltaFileDeletion:Waits", [&](void*) {
        if (is_first.exchange(false)) {
          waits.set_value();
        }
      });
  std::atomic<bool> is_first_write{true};
  EnableCallBack("DeltaFileDeletion::Publish:Synced", [&](void*) {
    if (is_first_write.exchange(false)) {
      written.set_value();
      waits.get_future().wait();
    }
  });
  std::thread first([this] {
    ASSERT_OK(DeleteFiles({{"b", "d"}}, /*include_end=*/true));
  });
  written.get_future().wait();
  std::future<void> second = std::async(std::launch::async, [this] {
    ASSERT_OK(DeleteFiles({{"f", "h"}}, /*include_end=*/true));
  });
  first.join();
  EXPECT_EQ(std::future_status::ready,
            second.wait_for(std::chrono::seconds(60)));
  // If the test has failed, this wakes the second deletion.
  ASSERT_OK(db_->EnableFileDeletions());
  second.wait();
  DisableCallBacks();
  Forget("b", "d");
  Forget("f", "h");
  Check();
}

namespace {

// Deletes files of the other column family when the first flush of a family is
// completed. Neither flush continues before both are completed.
class DeletingListener : public EventListener {
 public:
  void OnFlushCompleted(DB* db, const FlushJobInfo& info) override {
    if (handles.empty()) {
      return;
    }
    const size_t cf = info.cf_name == handles[0]->GetName() ? 0 : 1;
    if (is_completed[cf].exchange(true)) {
      return;
    }
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!is_completed[1 - cf]) {
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "The other flush is not completed";
        return;
      }
      std::this_thread::yield();
    }
    EXPECT_OK(DeleteFilesInRange(db, handles[1 - cf], nullptr, nullptr));
    ++num_deleted;
  }

  std::array<std::atomic<bool>, 2> is_completed{};
  std::atomic<int> num_deleted{0};
  std::vector<ColumnFamilyHandle*> handles;
};

}  // namespace

TEST_P(DBDeltaFileDeletionTest, ListenersMayDeleteFilesOfOtherFamilies) {
  const auto listener = std::make_shared<DeletingListener>();
  Options options = DeltaOptions();
  options.listeners.push_back(listener);
  options.max_background_jobs = 8;
  DestroyAndReopen(options);
  CreateAndReopenWithCF({"two"}, options);
  for (int cf = 0; cf < 2; ++cf) {
    ASSERT_OK(Put(cf, "k", "v"));
    ASSERT_OK(Flush(cf));
    MoveFilesToLevel(3, cf);
    ASSERT_OK(Merge(cf, "k", "1"));
    ASSERT_OK(Flush(cf));
  }
  for (int cf = 0; cf < 2; ++cf) {
    ASSERT_OK(Merge(cf, "k", "2"));
  }
  // Listeners may still be notified of the earlier flushes.
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  listener->handles = handles_;
  std::vector<std::thread> threads;
  for (int cf = 0; cf < 2; ++cf) {
    threads.emplace_back([this, cf] { ASSERT_OK(Flush(cf)); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
  EXPECT_EQ(2, listener->num_deleted);
  for (int cf = 0; cf < 2; ++cf) {
    EXPECT_EQ(0, NumTableFilesAtLevel(3, cf));
    EXPECT_EQ("NOT_FOUND", Get(cf, "k"));
  }
  listener->handles.clear();
}

// Files of level 0 stay while operands of their keys are removed;
// DeleteFilesInRanges() makes no promise about them.
TEST_P(DBDeltaFileDeletionTest, FilesOfLevel0Stay) {
  MakeFiles();
  Write(PutOf("b", "new"));
  ASSERT_OK(Flush());
  WriteAndFlush({MergeOf("b", "2"), MergeOf("f", "3")});
  ASSERT_OK(DeleteFiles({{"a", "c"}}, /*include_end=*/true));
  Forget("a", "c");
  now_["b"] = "new";
  Check();
}

// Clipping works if a file ends with the first key that stays.
TEST_P(DBDeltaFileDeletionTest, ClipRemovesValuesWithTheirOperands) {
  MakeFiles();
  ASSERT_OK(db_->ClipColumnFamily(db_->DefaultColumnFamily(), "d", "k"));
  Forget("a", "c");
  Forget("k", "z");
  Check();
  Restart();
  Check();
  WriteAndFlush({MergeOf("a", "2"), MergeOf("e", "3"), MergeOf("k", "4")});
  Check();
}

// Clipping removes operands of keys that no SST file has, also beyond all SST
// files.
TEST_P(DBDeltaFileDeletionTest, ClipRemovesOperandsWithoutValues) {
  for (const bool with_values : {true, false}) {
    SCOPED_TRACE(with_values);
    Start();
    if (with_values) {
      WriteAndFlush({PutOf("f", "v"), PutOf("g", "v")});
    }
    WriteAndFlush({MergeOf("a", "1"), MergeOf("c", "2"), MergeOf("f", "3"),
                   MergeOf("k", "4"), MergeOf("p", "5")});
    // Some operands are in the memtable.
    Write(MergeOf("b", "6"));
    Write(MergeOf("o", "7"));
    ASSERT_OK(db_->ClipColumnFamily(db_->DefaultColumnFamily(), "c", "k"));
    Forget("a", "b");
    Forget("k", "z");
    Check();
    Restart();
    Check();
    ASSERT_OK(db_->ClipColumnFamily(db_->DefaultColumnFamily(), "x", "y"));
    now_.clear();
    Check();
    Restart();
    Check();
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
