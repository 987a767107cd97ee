//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests reads of databases with handmade delta files, and with values,
// tombstones and operands in memtables and SST files. Whatever other features
// the column family uses, each kind of read returns what the history of writes
// implies.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_read.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/job_context.h"
#include "db/merged_value/merged_value_cache.h"
#include "db/range_tombstone_fragmenter.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "port/lang.h"
#include "port/stack_trace.h"
#include "rocksdb/cache.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/wide_columns.h"
#include "test_util/strata/delta_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "util/cast_util.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

// Joins operands. ShouldMerge() accepts the two newest operands of a key.
class TwoOperandsOperator final : public MergeOperator {
 public:
  bool FullMergeV2(const MergeOperationInput& in,
                   MergeOperationOutput* out) const override {
    out->new_value.clear();
    if (in.existing_value != nullptr) {
      out->new_value.assign(in.existing_value->data(),
                            in.existing_value->size());
    }
    for (const Slice& operand : in.operand_list) {
      out->new_value += out->new_value.empty() ? "" : ",";
      out->new_value.append(operand.data(), operand.size());
    }
    return true;
  }
  bool ShouldMerge(const std::vector<Slice>& operands) const override {
    return operands.size() >= 2;
  }
  const char* Name() const override { return "TwoOperandsOperator"; }
};

// An entry of a delta file.
struct DeltaEntry {
  enum class Type { kOperand, kAnchor, kRangeAnchor };

  Type type = Type::kOperand;
  std::string key;  // kRangeAnchor: the start
  std::string end;
  SequenceNumber seq = 0;
  std::string value;
};
using DeltaEntries = std::vector<DeltaEntry>;

// Makes delta files for a DB and adds them to its MANIFEST, as flushes and jobs
// do.
class DeltaWriter {
 public:
  // REQUIRES: the column family separates deltas, or has delta files.
  DeltaWriter(DBImpl* db, ColumnFamilyHandle* handle)
      : db_(db), cfd_(static_cast<ColumnFamilyHandleImpl*>(handle)->cfd()) {}

  uint64_t NewNumber() { return db_->GetVersionSet()->NewFileNumber(); }

  std::shared_ptr<const DeltaVersion> State() {
    InstrumentedMutexLock lock(db_->mutex());
    return cfd_->current()->storage_info()->delta();
  }

  // Returns nothing if there are no entries of this kind.
  std::optional<DeltaFileDescription> WriteFile(Kind kind, Tier tier,
                                                uint64_t first_epoch,
                                                uint64_t last_epoch,
                                                const DeltaEntries& entries) {
    DeltaFileBuilder::Options options;
    options.number = NewNumber();
    options.kind = kind;
    options.tier = tier;
    options.first_epoch = first_epoch;
    options.last_epoch = last_epoch;
    EXPECT_OK(db_->GetDbIdentity(options.db_id));
    options.reason = TableFileCreationReason::kFlush;
    std::unique_ptr<DeltaFileBuilder> builder;
    EXPECT_OK(DeltaFileBuilder::Create(*cfd_->delta_store()->tables(), options,
                                       &builder));
    using Type = DeltaEntry::Type;
    if (kind == Kind::kOperands) {
      for (const DeltaEntry& entry : Sorted(entries, Type::kOperand)) {
        const InternalKey key(entry.key, entry.seq, kTypeMerge);
        EXPECT_OK(builder->AddOperand(key.Encode(), entry.value));
      }
    } else {
      for (const DeltaEntry& entry : Sorted(entries, Type::kAnchor)) {
        EXPECT_OK(builder->AddAnchor(entry.key, entry.seq));
      }
      for (const DeltaEntry& entry : Sorted(entries, Type::kRangeAnchor)) {
        EXPECT_OK(builder->AddRangeAnchor(entry.key, entry.end, entry.seq));
      }
    }
    DeltaFileDescription description;
    EXPECT_OK(builder->Finish(&description));
    return description.number == 0 ? std::optional<DeltaFileDescription>()
                                   : description;
  }

  void Log(DeltaEdit delta_edit) {
    VersionEdit edit;
    edit.SetColumnFamily(cfd_->GetID());
    edit.SetDeltaEdit(std::move(delta_edit));
    SuperVersionContext context(/*create_superversion=*/true);
    {
      InstrumentedMutexLock lock(db_->mutex());
      EXPECT_OK(db_->GetVersionSet()->LogAndApply(
          cfd_, ReadOptions(), WriteOptions(), &edit, db_->mutex(),
          /*dir_contains_current_file=*/nullptr));
      cfd_->InstallSuperVersion(&context, db_->mutex());
    }
    context.Clean();
  }

  // Commits a flush of the entries.
  // REQUIRES: memtables have nothing older than the entries.
  void Flush(const DeltaEntries& entries) {
    const uint64_t epoch = NewNumber();
    DeltaEdit edit;
    for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      const auto file = WriteFile(kind, Tier::kFlushed, epoch, epoch, entries);
      if (file.has_value()) {
        edit.AddFile(*file);
      }
    }
    if (edit.Empty()) {
      return;
    }
    if (cfd_->merged_values() != nullptr) {
      MergedValueCache::Flush flush(cfd_->merged_values(),
                                    /*holds_oldest=*/false);
      MergedValueCache::Ref known;
      for (const DeltaEntry& entry : entries) {
        if (entry.type == DeltaEntry::Type::kOperand) {
          ASSERT_FALSE(flush.OnKey(entry.key, entry.seq, &known));
        }
      }
      flush.Finish(/*has_shown_all=*/true);
    }
    Log(std::move(edit));
  }

  // Merges all flushed files into one of each kind.
  void MergeFlushed() {
    const auto state = State();
    DeltaEdit::MergeRecent merge;
    uint64_t first_epoch = UINT64_MAX;
    DeltaEntries entries;
    if (state != nullptr) {
      state->ForEachFile([&](const DeltaVersion::FilePtr& file) {
        if (file->description().tier == Tier::kFlushed) {
          ++merge.num_files;
          first_epoch = std::min(first_epoch, file->description().first_epoch);
          merge.last_epoch =
              std::max(merge.last_epoch, file->description().last_epoch);
          Append(*file, &entries);
        }
      });
    }
    if (merge.num_files == 0) {
      return;
    }
    DeltaEdit edit;
    for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      const auto file = WriteFile(kind, Tier::kMerged, first_epoch,
                                  merge.last_epoch, entries);
      if (file.has_value()) {
        edit.AddFile(*file);
      }
    }
    edit.SetMergeRecent(merge);
    Log(std::move(edit));
  }

  // A random range of buckets takes in all merged files and is divided again at
  // some of the keys.
  // REQUIRES: keys are sorted.
  void Collect(const std::vector<std::string>& keys, Random* rnd) {
    const auto state = State();
    if (state == nullptr) {
      return;
    }
    std::vector<DeltaBucket> victims;
    const DeltaBucketTable& buckets = state->Buckets();
    for (auto p = buckets.Begin(); p != buckets.End(); p = buckets.Next(p)) {
      victims.push_back({buckets.LowerBound(p).ToString(), buckets.State(p)});
    }
    if (victims.empty()) {
      victims.emplace_back();
    }
    const size_t first = rnd->Uniform(static_cast<int>(victims.size()));
    const size_t last =
        first + 1 + rnd->Uniform(static_cast<int>(victims.size() - first));
    std::optional<std::string> range_end;
    if (last < victims.size()) {
      range_end = victims[last].lower_bound;
    }
    victims.resize(last);
    victims.erase(victims.begin(), victims.begin() + first);

    uint64_t floor = 0;
    for (const DeltaBucket& victim : victims) {
      floor = std::max(floor, victim.state.floor);
    }
    for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      for (const auto& file : state->RecentFiles(kind)) {
        if (file->description().tier == Tier::kMerged) {
          floor = std::max(floor, file->description().last_epoch);
        }
      }
    }

    std::vector<std::string> bounds = {victims.front().lower_bound};
    for (const std::string& key : keys) {
      if (key > bounds.back() && (!range_end || key < *range_end) &&
          rnd->OneIn(4)) {
        bounds.push_back(key);
      }
    }
    DeltaEdit edit;
    DeltaEdit::ReplaceBuckets replace;
    replace.range.begin = bounds.front();
    replace.range.end = range_end;
    for (const std::string& bound : bounds) {
      replace.buckets.push_back({bound, {floor, 0, 0, 0}});
    }
    DeltaEntries all;
    std::vector<DeltaEntries> of_bucket(bounds.size());
    for (size_t i = 0; i < victims.size(); ++i) {
      const auto upper = i + 1 < victims.size()
                             ? std::optional(victims[i + 1].lower_bound)
                             : range_end;
      for (const DeltaEntry& entry :
           EntriesOf(*state, victims[i].state, floor)) {
        if (!IsIn(entry, victims[i].lower_bound, upper)) {
          continue;
        }
        all.push_back(entry);
        for (size_t b = 0; b < bounds.size(); ++b) {
          if (IsIn(entry, bounds[b],
                   b + 1 < bounds.size() ? std::optional(bounds[b + 1])
                                         : range_end)) {
            of_bucket[b].push_back(entry);
          }
        }
      }
    }
    for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      const auto file = WriteFile(kind, Tier::kSorted, 0, 0, all);
      if (!file.has_value()) {
        continue;
      }
      edit.AddFile(*file);
      for (size_t b = 0; b < bounds.size(); ++b) {
        const bool has_some =
            std::any_of(of_bucket[b].begin(), of_bucket[b].end(),
                        [kind](const DeltaEntry& entry) {
                          return (entry.type == DeltaEntry::Type::kOperand) ==
                                 (kind == Kind::kOperands);
                        });
        if (has_some && kind == Kind::kOperands) {
          replace.buckets[b].state.extent_number = file->number;
          replace.buckets[b].state.extent_bytes = 1;
        } else if (has_some) {
          replace.buckets[b].state.anchors_number = file->number;
        }
      }
    }
    edit.AddReplaceBuckets(std::move(replace));
    Log(std::move(edit));
  }

 private:
  static DeltaEntries Sorted(const DeltaEntries& entries,
                             DeltaEntry::Type type) {
    DeltaEntries result;
    for (const DeltaEntry& entry : entries) {
      if (entry.type == type) {
        result.push_back(entry);
      }
    }
    std::sort(result.begin(), result.end(),
              [](const DeltaEntry& a, const DeltaEntry& b) {
                return a.key != b.key   ? a.key < b.key
                       : a.seq != b.seq ? a.seq > b.seq
                                        : a.end > b.end;
              });
    // An entry that was in files of several buckets occurs more than once. Of a
    // range, some of them may be a part.
    result.erase(std::unique(result.begin(), result.end(),
                             [](const DeltaEntry& a, const DeltaEntry& b) {
                               return a.key == b.key && a.seq == b.seq;
                             }),
                 result.end());
    return result;
  }

  static bool IsIn(const DeltaEntry& entry, const std::string& lower,
                   const std::optional<std::string>& upper) {
    return (entry.type == DeltaEntry::Type::kRangeAnchor
                ? lower < entry.end
                : lower <= entry.key) &&
           (!upper.has_value() || entry.key < *upper);
  }

  // Returns the entries that the bucket sees up to `floor`, perhaps together
  // with entries of keys outside the bucket.
  DeltaEntries EntriesOf(const DeltaVersion& version,
                         const DeltaBucketState& bucket, uint64_t floor) {
    DeltaEntries entries;
    for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
      for (const auto& file : version.RecentFilesAbove(kind, bucket.floor)) {
        if (file->description().last_epoch <= floor) {
          Append(*file, &entries);
        }
      }
    }
    for (const uint64_t number :
         {bucket.extent_number, bucket.anchors_number}) {
      if (number != 0) {
        Append(*FindSortedDeltaFile(version, number), &entries);
      }
    }
    return entries;
  }

  void Append(const DeltaFileMeta& file, DeltaEntries* entries) {
    DeltaFileReader* reader = nullptr;
    EXPECT_OK(cfd_->delta_store()->GetReader(ReadOptions(), file, &reader));
    const ReadOptions read_options;
    const std::unique_ptr<InternalIterator> iter(
        reader->NewIterator(read_options, TableReaderCaller::kUncategorized));
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      ParsedInternalKey key;
      EXPECT_OK(ParseInternalKey(iter->key(), &key, /*log_err_key=*/true));
      entries->push_back({key.type == kTypeMerge ? DeltaEntry::Type::kOperand
                                                 : DeltaEntry::Type::kAnchor,
                          key.user_key.ToString(), "", key.sequence,
                          iter->value().ToString()});
    }
    EXPECT_OK(iter->status());
    const auto ranges = reader->NewRangeAnchorIterator(kMaxSequenceNumber);
    if (ranges != nullptr) {
      for (ranges->SeekToFirst(); ranges->Valid(); ranges->Next()) {
        entries->push_back({DeltaEntry::Type::kRangeAnchor,
                            ranges->start_key().ToString(),
                            ranges->end_key().ToString(), ranges->seq(), ""});
      }
    }
  }

  DBImpl* const db_;
  ColumnFamilyData* const cfd_;
};

}  // namespace

// The parameters: address map, merged-value cache, row cache.
class DBDeltaReadTest
    : public DeltaDBTestBase,
      public testing::WithParamInterface<std::tuple<bool, bool, bool>> {
 protected:
  enum class WriteType {
    kPut,
    kEntity,
    kDelete,
    kSingleDelete,
    kDeleteRange,
    kMerge,       // into a memtable
    kStoreMerge,  // into a delta file, by hand
  };

  struct Write {
    WriteType type;
    std::string key;
    std::string end;
    std::string value;
    SequenceNumber seq;
  };

  // The expected state of a key.
  struct State {
    std::string value;
    bool is_entity = false;
    std::string column;  // the second column of an entity
  };
  using States = std::map<std::string, State>;

  // An open iterator and its expected contents.
  struct Held {
    std::unique_ptr<Iterator> iter;
    const Snapshot* snapshot = nullptr;  // owned; may be nullptr
    States states;
  };

  // Writes to this key only use up a sequence number.
  static constexpr const char* kFiller = "~";
  static constexpr const char* kColumn = "column";
  static constexpr int kMaxOperands = 50;

  DBDeltaReadTest() : DeltaDBTestBase("db_delta_read_test") {}

  void TearDown() override {
    DeltaDBTestBase::TearDown();
    ReleaseSnapshots();
  }

  bool HasMap() const { return std::get<0>(GetParam()); }
  bool HasMergedValues() const { return std::get<1>(GetParam()); }
  bool HasRowCache() const { return std::get<2>(GetParam()); }
  // DeleteRange() is refused if there is a row cache.
  bool MayDeleteRanges() const { return !HasRowCache(); }

  Options TestOptions(bool separates = true) {
    Options options = DeltaOptions();
    options.num_levels = 4;
    options.enable_delta_separation = separates;
    if (HasMap()) {
      options.enable_blob_files = true;
      options.min_blob_size = 0;
      options.enable_blob_address_map = true;
      options.blob_gc_space_amp_limit = 0;
    }
    options.enable_merged_value_cache = HasMergedValues();
    options.delta_cache_size = size_t{1} << 20;
    if (HasRowCache()) {
      options.row_cache = NewLRUCache(size_t{1} << 20);
    }
    return options;
  }

  DeltaWriter Writer() {
    return DeltaWriter(dbfull(), db_->DefaultColumnFamily());
  }

  SequenceNumber LastSequence() { return db_->GetLatestSequenceNumber(); }

  void TakeSnapshot() { snapshots_.push_back(db_->GetSnapshot()); }
  // Also releases the iterators that are held and their snapshots.
  void ReleaseSnapshots() {
    for (Held& held : held_) {
      held.iter.reset();
      if (held.snapshot != nullptr) {
        db_->ReleaseSnapshot(held.snapshot);
      }
    }
    held_.clear();
    for (const Snapshot* snapshot : snapshots_) {
      db_->ReleaseSnapshot(snapshot);
    }
    snapshots_.clear();
  }

  // ---- Writes.

  // Operands for delta files, and anchors for all bases, are collected in
  // entries_ until FlushAll().
  void DoWrite(WriteType type, const std::string& key,
               const std::string& end = "") {
    Write write{type, key, end, "v" + std::to_string(writes_.size()), 0};
    const WriteOptions options;
    switch (type) {
      case WriteType::kPut:
        ASSERT_OK(Put(key, write.value));
        break;
      case WriteType::kEntity:
        ASSERT_OK(db_->PutEntity(options, db_->DefaultColumnFamily(), key,
                                 {{kDefaultWideColumnName, write.value},
                                  {kColumn, write.value + "c"}}));
        break;
      case WriteType::kDelete:
        ASSERT_OK(Delete(key));
        break;
      case WriteType::kSingleDelete:
        ASSERT_OK(SingleDelete(key));
        break;
      case WriteType::kDeleteRange:
        ASSERT_OK(
            db_->DeleteRange(options, db_->DefaultColumnFamily(), key, end));
        break;
      case WriteType::kMerge:
        ASSERT_OK(Merge(key, write.value));
        break;
      case WriteType::kStoreMerge:
        ASSERT_OK(Put(kFiller, "x"));
        break;
    }
    write.seq = LastSequence();
    switch (type) {
      case WriteType::kStoreMerge:
        entries_.push_back(
            {DeltaEntry::Type::kOperand, key, "", write.seq, write.value});
        break;
      case WriteType::kMerge:
        break;
      case WriteType::kDeleteRange:
        entries_.push_back(
            {DeltaEntry::Type::kRangeAnchor, key, end, write.seq, ""});
        break;
      default:
        entries_.push_back({DeltaEntry::Type::kAnchor, key, "", write.seq, ""});
        break;
    }
    writes_.push_back(std::move(write));
  }

  bool HasStoreMerges() const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [](const DeltaEntry& entry) {
                         return entry.type == DeltaEntry::Type::kOperand;
                       });
  }

  void FlushAll() {
    ASSERT_OK(Flush());
    if (HasStoreMerges() || Writer().State() != nullptr) {
      Writer().Flush(entries_);
    }
    entries_.clear();
  }

  // ---- Expected contents.

  States StatesAt(SequenceNumber seq) const {
    States states;
    for (const Write& write : writes_) {
      if (write.seq > seq) {
        break;
      }
      switch (write.type) {
        case WriteType::kPut:
          states[write.key] = {write.value, false, ""};
          break;
        case WriteType::kEntity:
          states[write.key] = {write.value, true, write.value + "c"};
          break;
        case WriteType::kDelete:
        case WriteType::kSingleDelete:
          states.erase(write.key);
          break;
        case WriteType::kDeleteRange:
          states.erase(states.lower_bound(write.key),
                       states.lower_bound(write.end));
          break;
        case WriteType::kMerge:
        case WriteType::kStoreMerge: {
          const auto [found, is_new] =
              states.emplace(write.key, State{write.value, false, ""});
          if (!is_new) {
            found->second.value += "," + write.value;
          }
          break;
        }
      }
    }
    return states;
  }

  std::set<std::string> Keys() const {
    std::set<std::string> keys = {"absent"};
    for (const Write& write : writes_) {
      keys.insert(write.key);
    }
    return keys;
  }

  // ---- Reads.

  static void CheckEntity(const State& state,
                          const PinnableWideColumns& entity) {
    const WideColumns& columns = entity.columns();
    ASSERT_EQ(state.is_entity ? 2u : 1u, columns.size());
    ASSERT_EQ(kDefaultWideColumnName, columns[0].name());
    ASSERT_EQ(state.value, columns[0].value());
    if (state.is_entity) {
      ASSERT_EQ(kColumn, columns[1].name());
      ASSERT_EQ(state.column, columns[1].value());
    }
  }

  void CheckPointReads(const ReadOptions& read_options, const States& states) {
    ColumnFamilyHandle* const family = db_->DefaultColumnFamily();
    for (const std::string& key : Keys()) {
      SCOPED_TRACE(key);
      const auto found = states.find(key);
      const bool exists = found != states.end();
      PinnableSlice value;
      Status s = db_->Get(read_options, family, key, &value);
      PinnableWideColumns entity;
      const Status entity_s =
          db_->GetEntity(read_options, family, key, &entity);
      GetMergeOperandsOptions operand_options;
      operand_options.expected_max_number_of_operands = kMaxOperands;
      std::vector<PinnableSlice> operands(kMaxOperands);
      int num_operands = 0;
      const Status operand_s =
          db_->GetMergeOperands(read_options, family, key, operands.data(),
                                &operand_options, &num_operands);
      std::string maybe;
      bool value_found = false;
      const bool may_exist =
          db_->KeyMayExist(read_options, family, key, &maybe, &value_found);
      if (!exists) {
        ASSERT_TRUE(s.IsNotFound()) << s.ToString() << value.ToString();
        ASSERT_TRUE(entity_s.IsNotFound()) << entity_s.ToString();
        ASSERT_TRUE(operand_s.IsNotFound()) << operand_s.ToString();
        continue;
      }
      ASSERT_OK(s);
      ASSERT_EQ(found->second.value, value);
      ASSERT_OK(entity_s);
      CheckEntity(found->second, entity);
      ASSERT_OK(operand_s);
      std::string joined;
      for (int i = 0; i < num_operands; ++i) {
        joined += (i == 0 ? "" : ",") + operands[i].ToString();
      }
      ASSERT_EQ(found->second.value, joined);
      ASSERT_TRUE(may_exist);
      if (value_found) {
        ASSERT_EQ(found->second.value, maybe);
      }
    }
  }

  void CheckMultiGet(const ReadOptions& read_options, const States& states) {
    const std::set<std::string> names = Keys();
    const std::vector<std::string> all(names.begin(), names.end());
    constexpr size_t kBatch = 50;
    for (size_t first = 0; first < all.size(); first += kBatch) {
      const size_t num = std::min(kBatch, all.size() - first);
      std::vector<Slice> keys(all.begin() + first, all.begin() + first + num);
      std::vector<PinnableSlice> values(num);
      std::vector<Status> statuses(num);
      db_->MultiGet(read_options, db_->DefaultColumnFamily(), num, keys.data(),
                    values.data(), statuses.data());
      std::vector<PinnableWideColumns> entities(num);
      std::vector<Status> entity_statuses(num);
      db_->MultiGetEntity(read_options, db_->DefaultColumnFamily(), num,
                          keys.data(), entities.data(), entity_statuses.data());
      for (size_t i = 0; i < num; ++i) {
        SCOPED_TRACE(all[first + i]);
        const auto found = states.find(all[first + i]);
        if (found == states.end()) {
          ASSERT_TRUE(statuses[i].IsNotFound()) << statuses[i].ToString();
          ASSERT_TRUE(entity_statuses[i].IsNotFound());
          continue;
        }
        ASSERT_OK(statuses[i]);
        ASSERT_EQ(found->second.value, values[i]);
        ASSERT_OK(entity_statuses[i]);
        CheckEntity(found->second, entities[i]);
      }
    }
  }

  static void CheckAt(const Iterator& iter, const std::string& key,
                      const State& state) {
    ASSERT_EQ(key, iter.key());
    ASSERT_EQ(state.value, iter.value());
    ASSERT_EQ(state.is_entity ? 2u : 1u, iter.columns().size());
  }

  // The filler key, which comes last, is not checked.
  static void CheckForward(Iterator* iter, const States& states) {
    auto expected = states.begin();
    for (iter->SeekToFirst(); iter->Valid() && iter->key() != kFiller;
         iter->Next(), ++expected) {
      ASSERT_TRUE(expected != states.end()) << iter->key().ToString();
      CheckAt(*iter, expected->first, expected->second);
    }
    ASSERT_OK(iter->status());
    ASSERT_TRUE(expected == states.end()) << expected->first;
  }

  static void CheckBackward(Iterator* iter, const States& states) {
    auto expected = states.rbegin();
    iter->SeekToLast();
    if (iter->Valid() && iter->key() == kFiller) {
      iter->Prev();
    }
    for (; iter->Valid(); iter->Prev(), ++expected) {
      ASSERT_TRUE(expected != states.rend()) << iter->key().ToString();
      CheckAt(*iter, expected->first, expected->second);
    }
    ASSERT_OK(iter->status());
    ASSERT_TRUE(expected == states.rend()) << expected->first;
  }

  // Checks seeks and changes of direction.
  void CheckSeeks(Iterator* iter, const States& states, Random* rnd) {
    const std::set<std::string> names = Keys();
    const std::vector<std::string> all(names.begin(), names.end());
    for (int i = 0; i < 20; ++i) {
      const std::string target =
          all[rnd->Uniform(static_cast<int>(all.size()))] +
          (rnd->OneIn(4) ? "x" : "");
      auto expected = states.lower_bound(target);
      const bool backward = rnd->OneIn(2);
      if (backward) {
        iter->SeekForPrev(target);
        if (expected == states.end() || expected->first != target) {
          if (expected == states.begin()) {
            ASSERT_FALSE(iter->Valid());
            continue;
          }
          --expected;
        }
      } else {
        iter->Seek(target);
      }
      for (int steps = rnd->Uniform(6);; --steps) {
        ASSERT_OK(iter->status());
        if (expected == states.end()) {
          ASSERT_TRUE(!iter->Valid() || iter->key() == kFiller);
          break;
        }
        ASSERT_TRUE(iter->Valid()) << expected->first;
        CheckAt(*iter, expected->first, expected->second);
        if (steps <= 0) {
          break;
        }
        if (rnd->OneIn(2)) {
          iter->Next();
          ++expected;
        } else if (expected == states.begin()) {
          iter->Prev();
          ASSERT_FALSE(iter->Valid());
          ASSERT_OK(iter->status());
          break;
        } else {
          iter->Prev();
          --expected;
        }
      }
      if (HasFailure()) {
        return;
      }
    }
  }

  // Checks iterators with random bounds, which turn at both ends.
  void CheckBounds(ReadOptions read_options, const States& states,
                   Random* rnd) {
    const std::set<std::string> names = Keys();
    const std::vector<std::string> all(names.begin(), names.end());
    for (int i = 0; i < 2; ++i) {
      std::string lower = all[rnd->Uniform(static_cast<int>(all.size()))];
      std::string upper = all[rnd->Uniform(static_cast<int>(all.size()))];
      if (upper < lower) {
        lower.swap(upper);
      }
      SCOPED_TRACE("from " + lower + " to " + upper);
      const Slice lower_bound(lower);
      const Slice upper_bound(upper);
      read_options.iterate_lower_bound = &lower_bound;
      read_options.iterate_upper_bound = &upper_bound;
      const States inside(states.lower_bound(lower), states.lower_bound(upper));
      const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      CheckForward(iter.get(), inside);
      CheckBackward(iter.get(), inside);
      iter->SeekToLast();
      if (iter->Valid()) {
        iter->Next();
        ASSERT_FALSE(iter->Valid());
      }
      ASSERT_OK(iter->status());
      CheckForward(iter.get(), inside);
      iter->SeekToFirst();
      if (iter->Valid()) {
        iter->Prev();
        ASSERT_FALSE(iter->Valid());
      }
      ASSERT_OK(iter->status());
      CheckBackward(iter.get(), inside);
      if (HasFailure()) {
        return;
      }
    }
  }

  // Keeps an iterator open for CheckHeld().
  // REQUIRES: no operand waits for FlushAll().
  void HoldIterator(Random* rnd) {
    Held held;
    ReadOptions read_options;
    if (rnd->OneIn(3)) {
      held.snapshot = db_->GetSnapshot();
      read_options.snapshot = held.snapshot;
      read_options.auto_refresh_iterator_with_snapshot = true;
    } else {
      read_options.pin_data = rnd->OneIn(2);
    }
    held.iter.reset(db_->NewIterator(read_options));
    held.states = StatesAt(LastSequence());
    if (rnd->OneIn(2)) {
      held.iter->SeekToFirst();
    }
    held_.push_back(std::move(held));
  }

  // REQUIRES: no operand waits for FlushAll().
  void CheckHeld(Random* rnd) {
    for (Held& held : held_) {
      SCOPED_TRACE("an iterator that was held");
      if (rnd->OneIn(2)) {
        CheckForward(held.iter.get(), held.states);
        CheckBackward(held.iter.get(), held.states);
      }
      CheckSeeks(held.iter.get(), held.states, rnd);
      if (held.snapshot == nullptr && rnd->OneIn(3)) {
        ASSERT_OK(held.iter->Refresh());
        held.states = StatesAt(LastSequence());
        CheckForward(held.iter.get(), held.states);
      }
      if (HasFailure()) {
        return;
      }
    }
  }

  bool HasRangeDeletions() const {
    return std::any_of(writes_.begin(), writes_.end(), [](const Write& write) {
      return write.type == WriteType::kDeleteRange;
    });
  }

  // Checks all kinds of reads at the tip and at all snapshots.
  void CheckAll(Random* rnd, bool tailing = false) {
    // Has its own generator, so that draws from it do not change the history,
    // which depends on *rnd.
    Random own_rnd(static_cast<uint32_t>(LastSequence()) + 1);
    std::vector<const Snapshot*> views = snapshots_;
    views.push_back(nullptr);
    const States tip = StatesAt(LastSequence());
    for (const Snapshot* view : views) {
      const States states =
          view == nullptr ? tip : StatesAt(view->GetSequenceNumber());
      SCOPED_TRACE(view == nullptr
                       ? "tip"
                       : "snapshot " +
                             std::to_string(view->GetSequenceNumber()));
      ReadOptions read_options;
      read_options.snapshot = view;
      read_options.async_io = rnd->OneIn(2);
      read_options.fill_cache = !rnd->OneIn(4);
      // The option may be set, as there are no range deletions.
      read_options.ignore_range_deletions =
          !HasRangeDeletions() && own_rnd.OneIn(2);
      CheckPointReads(read_options, states);
      CheckMultiGet(read_options, states);
      const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      CheckForward(iter.get(), states);
      CheckBackward(iter.get(), states);
      CheckSeeks(iter.get(), states, rnd);
      CheckBounds(read_options, states, &own_rnd);
      if (HasFailure()) {
        return;
      }
      if (view != nullptr) {
        continue;
      }
      for (const Snapshot* other : views) {
        ASSERT_OK(iter->Refresh(other));
        const States refreshed =
            other == nullptr ? tip : StatesAt(other->GetSequenceNumber());
        CheckForward(iter.get(), refreshed);
        CheckBackward(iter.get(), refreshed);
        if (HasFailure()) {
          return;
        }
      }
    }
    if (tailing) {
      ReadOptions read_options;
      read_options.tailing = true;
      read_options.async_io = rnd->OneIn(2);
      const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
      CheckForward(iter.get(), tip);
      CheckForward(iter.get(), tip);
    }
  }

  // A single deletion is allowed only for a key that has been put exactly once.
  bool MaySingleDelete(const std::string& key) const {
    bool is_put = false;
    bool is_clean = true;
    for (const Write& write : writes_) {
      const bool concerns = write.type == WriteType::kDeleteRange
                                ? write.key <= key && key < write.end
                                : write.key == key;
      if (!concerns) {
        continue;
      }
      is_clean = is_clean && (write.type == WriteType::kDelete ||
                              write.type == WriteType::kSingleDelete ||
                              (write.type == WriteType::kPut && !is_put));
      is_put = write.type == WriteType::kPut;
    }
    return is_clean && is_put;
  }

  std::vector<Write> writes_;
  DeltaEntries entries_;
  std::vector<const Snapshot*> snapshots_;
  std::vector<Held> held_;
};

INSTANTIATE_TEST_CASE_P(DBDeltaReadTest, DBDeltaReadTest,
                        testing::Combine(testing::Bool(), testing::Bool(),
                                         testing::Bool()));

// Each sequence of four writes is read correctly; each sequence has its own
// key. The first step runs without separation, so its operands are in SST
// files.
TEST_P(DBDeltaReadTest, AllShortSequencesAreReadCorrectly) {
  // The four combinations that are tested include each pair of parameter
  // values, and each feature that allows range deletions together with these.
  if ((HasMap() + HasMergedValues() + HasRowCache()) % 2 != 0) {
    ROCKSDB_GTEST_SKIP("Not one of the four combinations");
    return;
  }
  std::vector<WriteType> types = {WriteType::kPut, WriteType::kEntity,
                                  WriteType::kDelete, WriteType::kMerge,
                                  WriteType::kStoreMerge};
  if (MayDeleteRanges()) {
    types.push_back(WriteType::kDeleteRange);
  }
  constexpr int kNumSteps = 4;
  const int num_types = static_cast<int>(types.size());
  int num_keys = 1;
  for (int i = 0; i < kNumSteps; ++i) {
    num_keys *= num_types;
  }
  DestroyAndReopen(TestOptions(/*separates=*/false));
  Random rnd(301);
  int divisor = 1;
  for (int step = 0; step < kNumSteps; ++step, divisor *= num_types) {
    SCOPED_TRACE("step " + std::to_string(step));
    for (int i = 0; i < num_keys; ++i) {
      WriteType type = types[i / divisor % num_types];
      const std::string key = "k" + std::to_string(10000 + i);
      if (step == 0 && type == WriteType::kStoreMerge) {
        continue;
      }
      if (type == WriteType::kDelete && i % 2 == 0 && MaySingleDelete(key)) {
        type = WriteType::kSingleDelete;
      }
      DoWrite(type, key, key + "0");
    }
    FlushAll();
    if (step == 0) {
      Reopen(TestOptions());
    }
    if (step + 1 < kNumSteps) {  // the last one would be the tip
      TakeSnapshot();
    }
  }
  ASSERT_NE(nullptr, Writer().State());
  CheckAll(&rnd);
  if (HasFailure()) {
    return;
  }
  ASSERT_OK(ForceCompaction());
  CheckAll(&rnd);
  std::vector<std::string> bounds;
  for (int i = 0; i < num_keys; i += 100) {
    bounds.push_back("k" + std::to_string(10000 + i));
  }
  for (int round = 0; round < 2; ++round) {
    Writer().MergeFlushed();
    Writer().Collect(bounds, &rnd);
    CheckAll(&rnd);
  }
  // Entries below the tip are not needed any more.
  ReleaseSnapshots();
  ASSERT_OK(ForceCompaction());
  CheckAll(&rnd);
  Reopen(TestOptions());
  CheckAll(&rnd);
}

TEST_P(DBDeltaReadTest, RandomHistoriesAreReadCorrectly) {
  const std::vector<std::string> keys = {"a0", "a1", "a2", "b0", "b1",
                                         "c0", "c1", "c2", "d0"};
  // Each combination of parameters has other seeds.
  const uint32_t first_seed =
      1 + 3 * (HasMap() + 2 * HasMergedValues() + 4 * HasRowCache());
  for (uint32_t seed = first_seed; seed < first_seed + 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const bool has_ranges = seed % 2 == 0 && MayDeleteRanges();
    Random rnd(seed);
    Random held_rnd(seed + 1000);
    ReleaseSnapshots();
    writes_.clear();
    entries_.clear();
    DestroyAndReopen(TestOptions(/*separates=*/false));
    for (int phase = 0; phase < 15; ++phase) {
      SCOPED_TRACE("phase " + std::to_string(phase));
      if (phase == 2) {
        ReleaseSnapshots();
        FlushAll();
        Reopen(TestOptions());
      }
      if (held_.size() < 4 && held_rnd.OneIn(2)) {
        HoldIterator(&held_rnd);
      }
      // In a phase, operands are either all written by hand or all by flushes:
      // if both were mixed, their order would be wrong.
      const bool by_hand = phase >= 2 && !rnd.OneIn(3);
      for (int i = 1 + rnd.Uniform(15); i > 0; --i) {
        const std::string& key =
            keys[rnd.Uniform(static_cast<int>(keys.size()))];
        const uint32_t dice = rnd.Uniform(20);
        if (dice < 11) {
          DoWrite(by_hand ? WriteType::kStoreMerge : WriteType::kMerge, key);
        } else if (dice < 15) {
          DoWrite(WriteType::kPut, key);
        } else if (dice < 16) {
          DoWrite(WriteType::kEntity, key);
        } else if (dice < 18) {
          DoWrite(MaySingleDelete(key) ? WriteType::kSingleDelete
                                       : WriteType::kDelete,
                  key);
        } else if (has_ranges) {
          const std::string& end =
              keys[rnd.Uniform(static_cast<int>(keys.size()))];
          DoWrite(WriteType::kDeleteRange, key, end > key ? end : key + "x");
        }
        if (rnd.OneIn(15)) {
          TakeSnapshot();
        }
      }
      if (by_hand || rnd.OneIn(2)) {
        FlushAll();
      } else if (phase >= 2) {
        // Entries are read from the memtable as well. Their anchors are written
        // with the flush that follows.
        CheckAll(&rnd, !has_ranges);
        FlushAll();
      }
      switch (rnd.Uniform(6)) {
        case 0:
          if (Writer().State() == nullptr) {
            ASSERT_OK(ForceCompaction());
          } else {
            Writer().MergeFlushed();
          }
          break;
        case 1:
          if (Writer().State() != nullptr) {
            Writer().Collect(keys, &rnd);
          }
          break;
        case 2:
          ASSERT_OK(ForceCompaction());
          break;
        case 3:
          if (phase >= 2) {
            ReleaseSnapshots();
            Reopen(TestOptions());
          }
          break;
        default:
          break;
      }
      CheckAll(&rnd, !has_ranges);
      CheckHeld(&held_rnd);
      if (HasFailure()) {
        return;
      }
    }
  }
}

// A key that only delta files have is read correctly, and reads that may not do
// I/O return Incomplete.
TEST_P(DBDeltaReadTest, OperandsAloneAreRead) {
  DestroyAndReopen(TestOptions());
  DoWrite(WriteType::kStoreMerge, "k");
  DoWrite(WriteType::kStoreMerge, "k");
  FlushAll();
  DoWrite(WriteType::kStoreMerge, "k");
  FlushAll();
  ASSERT_EQ("v0,v1,v2", Get("k"));
  Random rnd(1);
  CheckAll(&rnd, /*tailing=*/true);
  Reopen(TestOptions());
  // The delta files are not open yet.
  std::string value;
  bool value_found = true;
  ASSERT_TRUE(db_->KeyMayExist(ReadOptions(), db_->DefaultColumnFamily(), "k",
                               &value, &value_found));
  ASSERT_FALSE(value_found);
  ReadOptions memory_only;
  memory_only.read_tier = kBlockCacheTier;
  ASSERT_TRUE(db_->Get(memory_only, "k", &value).IsIncomplete());
  {
    const std::unique_ptr<Iterator> iter(db_->NewIterator(memory_only));
    iter->SeekToFirst();
    ASSERT_FALSE(iter->Valid());
    ASSERT_TRUE(iter->status().IsIncomplete()) << iter->status().ToString();
  }
  std::vector<std::string> values;
  ASSERT_TRUE(
      db_->MultiGet(memory_only, {"k", "kk"}, &values)[0].IsIncomplete());
  ASSERT_EQ("v0,v1,v2", Get("k"));
  // The block cache of tests holds nothing in a build with AddressSanitizer.
  if (!kMustFreeHeapAllocations) {
    ASSERT_OK(db_->Get(memory_only, "k", &value));
    ASSERT_EQ("v0,v1,v2", value);
  }
}

// The reader of a delta file serves all reads, so that the options of the read
// that opens it do not matter: its index and filter are verified, and are in
// the block cache.
TEST_P(DBDeltaReadTest, FirstReadDoesNotDecideForLaterOnes) {
  Options options = TestOptions();
  BlockBasedTableOptions table_options;
  table_options.filter_policy.reset(NewBloomFilterPolicy(10));
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  DestroyAndReopen(options);
  DoWrite(WriteType::kStoreMerge, "k");
  FlushAll();
  Close();
  table_options.block_cache = NewLRUCache(size_t{1} << 20);
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  Reopen(options);
  bool is_verified = false;
  EnableCallBack("DeltaStore::OpenReader:Options", [&](void* arg) {
    is_verified = static_cast<const ReadOptions*>(arg)->verify_checksums;
  });
  const size_t before = table_options.block_cache->GetPinnedUsage();
  ReadOptions first;
  first.verify_checksums = false;
  first.fill_cache = false;
  std::string value;
  ASSERT_OK(db_->Get(first, "k", &value));
  DisableCallBacks();
  EXPECT_TRUE(is_verified);
  EXPECT_GT(table_options.block_cache->GetPinnedUsage(), before);
}

TEST_P(DBDeltaReadTest, ReadOnlyDBReadsDeltaFiles) {
  DestroyAndReopen(TestOptions());
  DoWrite(WriteType::kPut, "a");
  DoWrite(WriteType::kStoreMerge, "a");
  DoWrite(WriteType::kStoreMerge, "b");
  FlushAll();
  DoWrite(WriteType::kDelete, "b");
  DoWrite(WriteType::kStoreMerge, "c");
  FlushAll();
  Close();
  ASSERT_OK(ReadOnlyReopen(TestOptions()));
  const States states = StatesAt(LastSequence());
  ASSERT_EQ(2, states.size());
  CheckPointReads(ReadOptions(), states);
  const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  CheckForward(iter.get(), states);
  CheckBackward(iter.get(), states);
}

// continue_cb ends GetMergeOperands() in the middle of the operands of delta
// files.
TEST_P(DBDeltaReadTest, ContinueCallbackEndsTheMerge) {
  DestroyAndReopen(TestOptions());
  DoWrite(WriteType::kPut, "k");
  DoWrite(WriteType::kStoreMerge, "k");
  DoWrite(WriteType::kStoreMerge, "k");
  FlushAll();
  DoWrite(WriteType::kStoreMerge, "k");
  FlushAll();
  for (int wanted = 1; wanted <= 4; ++wanted) {
    int count = 0;
    GetMergeOperandsOptions options;
    options.expected_max_number_of_operands = 10;
    options.continue_cb = [&](Slice) { return ++count < wanted; };
    std::vector<PinnableSlice> operands(10);
    int num = 0;
    ASSERT_OK(db_->GetMergeOperands(ReadOptions(), db_->DefaultColumnFamily(),
                                    "k", operands.data(), &options, &num));
    ASSERT_EQ(wanted, num);
    for (int i = 0; i < num; ++i) {
      ASSERT_EQ("v" + std::to_string(4 - num + i), operands[i]);
    }
  }
}

// If ShouldMerge() is content with some operands, older ones are not merged.
TEST_P(DBDeltaReadTest, ShouldMergeEndsTheSearch) {
  Options options = TestOptions();
  options.merge_operator = std::make_shared<TwoOperandsOperator>();
  DestroyAndReopen(options);
  for (const std::string key : {"a", "b", "c"}) {
    DoWrite(WriteType::kPut, key);
  }
  for (const std::string key : {"a", "a", "b", "c", "d", "d"}) {
    DoWrite(WriteType::kStoreMerge, key);
  }
  FlushAll();
  DoWrite(WriteType::kStoreMerge, "a");
  FlushAll();
  ASSERT_OK(Merge("c", "m"));
  const std::vector<Slice> keys = {"a", "b", "c", "d"};
  const std::vector<std::string> expected = {"v4,v9", "v1,v5", "v6,m", "v7,v8"};
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> values;
    const std::vector<Status> statuses =
        db_->MultiGet(ReadOptions(), keys, &values);
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_OK(statuses[i]);
      ASSERT_EQ(expected[i], values[i]);
      ASSERT_EQ(expected[i], Get(keys[i].ToString()));
      PinnableWideColumns entity;
      ASSERT_OK(db_->GetEntity(ReadOptions(), db_->DefaultColumnFamily(),
                               keys[i], &entity));
      ASSERT_EQ(1, entity.columns().size());
      ASSERT_EQ(expected[i], entity.columns()[0].value());
    }
  }
}

// Operands of delta files count for merge_operand_count_threshold like others.
TEST_P(DBDeltaReadTest, OperandsOfTheStoreCountForTheThreshold) {
  DestroyAndReopen(TestOptions());
  DoWrite(WriteType::kPut, "k");
  for (int i = 0; i < 3; ++i) {
    DoWrite(WriteType::kStoreMerge, "k");
  }
  FlushAll();
  ASSERT_OK(Merge("k", "m"));
  const std::vector<Slice> keys = {"k"};
  for (size_t threshold = 2; threshold <= 5; ++threshold) {
    ReadOptions read_options;
    read_options.merge_operand_count_threshold = threshold;
    std::string value;
    const Status s = db_->Get(read_options, "k", &value);
    ASSERT_OK(s);
    ASSERT_EQ(threshold < 4, s.IsOkMergeOperandThresholdExceeded());
    ASSERT_EQ("v0,v1,v2,v3,m", value);
    std::vector<std::string> values;
    const std::vector<Status> statuses =
        db_->MultiGet(read_options, keys, &values);
    ASSERT_OK(statuses[0]);
    ASSERT_EQ(threshold < 4, statuses[0].IsOkMergeOperandThresholdExceeded());
    ASSERT_EQ(value, values[0]);
  }
}

// kPersistedTier reads delta files, but not memtables that have no WAL.
TEST_P(DBDeltaReadTest, PersistedTierReadsDeltaFiles) {
  DestroyAndReopen(TestOptions());
  DoWrite(WriteType::kPut, "a");
  DoWrite(WriteType::kStoreMerge, "a");
  DoWrite(WriteType::kStoreMerge, "b");
  FlushAll();
  WriteOptions write_options;
  write_options.disableWAL = true;
  ASSERT_OK(db_->Merge(write_options, "a", "lost"));
  ASSERT_OK(db_->Put(write_options, "b", "lost"));
  ReadOptions read_options;
  read_options.read_tier = kPersistedTier;
  const std::vector<Slice> keys = {"a", "b"};
  const std::vector<std::string> expected = {"v0,v1", "v2"};
  std::vector<std::string> values;
  const std::vector<Status> statuses =
      db_->MultiGet(read_options, keys, &values);
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_OK(statuses[i]);
    ASSERT_EQ(expected[i], values[i]);
    std::string value;
    ASSERT_OK(db_->Get(read_options, keys[i], &value));
    ASSERT_EQ(expected[i], value);
  }
  ASSERT_EQ("v0,v1,lost", Get("a"));
  ASSERT_EQ("lost", Get("b"));
}

// Long operands are not copied. They stay valid after the read, and after their
// files have been replaced.
TEST_P(DBDeltaReadTest, LongOperandsArePinned) {
  DestroyAndReopen(TestOptions());
  DeltaEntries entries;
  constexpr int kNum = 10;
  for (int i = 0; i < kNum; ++i) {
    ASSERT_OK(Put(kFiller, "x"));
    entries.push_back({DeltaEntry::Type::kOperand, "k", "", LastSequence(),
                       std::string(100000, static_cast<char>('a' + i))});
  }
  ASSERT_OK(Flush());
  Writer().Flush(entries);
  GetMergeOperandsOptions options;
  options.expected_max_number_of_operands = kNum;
  std::vector<PinnableSlice> operands(kNum);
  int num = 0;
  ASSERT_OK(db_->GetMergeOperands(ReadOptions(), db_->DefaultColumnFamily(),
                                  "k", operands.data(), &options, &num));
  ASSERT_EQ(kNum, num);
  Writer().MergeFlushed();
  ASSERT_OK(Put("k", "other"));
  ASSERT_OK(Flush());
  for (int i = 0; i < kNum; ++i) {
    ASSERT_EQ(entries[i].value, operands[i]);
  }
}

TEST_P(DBDeltaReadTest, MergedValueCacheHoldsOperandsOfTheStore) {
  if (!HasMergedValues()) {
    ROCKSDB_GTEST_SKIP("There is no merged-value cache");
    return;
  }
  DestroyAndReopen(TestOptions());
  const auto count = [this](Tickers ticker) {
    return last_options_.statistics->getTickerCount(ticker);
  };
  DoWrite(WriteType::kPut, "k");
  DoWrite(WriteType::kStoreMerge, "k");
  DoWrite(WriteType::kStoreMerge, "k");
  FlushAll();
  ASSERT_EQ("v0,v1,v2", Get("k"));
  ASSERT_EQ(1, count(MERGED_VALUE_CACHE_ADD));
  ASSERT_EQ("v0,v1,v2", Get("k"));
  ASSERT_EQ(1, count(MERGED_VALUE_CACHE_HIT));
  // An entry with the newest operand of the store is the base of later
  // operands.
  ASSERT_OK(Merge("k", "x"));
  ASSERT_EQ("v0,v1,v2,x", Get("k"));
  ASSERT_EQ(2, count(MERGED_VALUE_CACHE_HIT));
  // The flushed value is newer than the entry.
  ASSERT_OK(Put("k", "y"));
  ASSERT_OK(Flush());
  ASSERT_EQ("y", Get("k"));
}

TEST_P(DBDeltaReadTest, OperandsAreCountedOnce) {
  DestroyAndReopen(TestOptions());
  for (int i = 0; i < 5; ++i) {
    DoWrite(WriteType::kStoreMerge, "k");
  }
  FlushAll();
  SetPerfLevel(PerfLevel::kEnableCount);
  get_perf_context()->Reset();
  ASSERT_EQ("v0,v1,v2,v3,v4", Get("k"));
  ASSERT_EQ(5, get_perf_context()->internal_merge_point_lookup_count);
  SetPerfLevel(PerfLevel::kDisable);
}

TEST_P(DBDeltaReadTest, PrefixSeeksFindOperands) {
  Options options = TestOptions();
  options.prefix_extractor.reset(NewFixedPrefixTransform(2));
  DestroyAndReopen(options);
  for (const std::string key : {"aa1", "aa3", "bb1", "cc1"}) {
    DoWrite(WriteType::kPut, key);
  }
  for (const std::string key : {"aa2", "aa3", "bb0", "dd1"}) {
    DoWrite(WriteType::kStoreMerge, key);
  }
  FlushAll();
  const States states = StatesAt(LastSequence());
  ReadOptions read_options;
  read_options.prefix_same_as_start = true;
  for (const bool auto_prefix : {false, true}) {
    read_options.auto_prefix_mode = auto_prefix;
    const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
    for (const std::string prefix : {"aa", "bb", "cc", "dd", "ee"}) {
      auto expected = states.lower_bound(prefix);
      for (iter->Seek(prefix); iter->Valid(); iter->Next(), ++expected) {
        ASSERT_TRUE(expected != states.end());
        ASSERT_EQ(prefix, expected->first.substr(0, 2));
        CheckAt(*iter, expected->first, expected->second);
      }
      ASSERT_OK(iter->status());
      ASSERT_TRUE(expected == states.end() ||
                  expected->first.substr(0, 2) != prefix);
    }
  }
}

TEST_P(DBDeltaReadTest, KeysOfOperandsArePinned) {
  Options options = TestOptions();
  BlockBasedTableOptions table_options;
  table_options.use_delta_encoding = false;
  options.table_factory.reset(NewBlockBasedTableFactory(table_options));
  DestroyAndReopen(options);
  for (int i = 0; i < 200; ++i) {
    const std::string key = "k" + std::to_string(1000 + i);
    DoWrite(i % 3 == 0 ? WriteType::kPut : WriteType::kStoreMerge, key);
    if (i % 2 == 0) {
      DoWrite(WriteType::kStoreMerge, key);
    }
  }
  FlushAll();
  ReadOptions read_options;
  read_options.pin_data = true;
  const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  const States states = StatesAt(LastSequence());
  CheckForward(iter.get(), states);
  CheckBackward(iter.get(), states);
  std::vector<Slice> keys;
  for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
    std::string is_pinned;
    ASSERT_OK(iter->GetProperty("rocksdb.iterator.is-key-pinned", &is_pinned));
    ASSERT_EQ("1", is_pinned);
    keys.push_back(iter->key());
  }
  ASSERT_OK(iter->status());
  keys.pop_back();  // the filler
  ASSERT_EQ(states.size(), keys.size());
  size_t i = 0;
  for (const auto& [key, state] : states) {
    ASSERT_EQ(key, keys[i++]);
  }
}

// A tailing iterator sees later writes, also those in delta files.
TEST_P(DBDeltaReadTest, TailingIteratorSeesLaterOperands) {
  DestroyAndReopen(TestOptions());
  DoWrite(WriteType::kPut, "b");
  FlushAll();
  ReadOptions read_options;
  read_options.tailing = true;
  const std::unique_ptr<Iterator> iter(db_->NewIterator(read_options));
  CheckForward(iter.get(), StatesAt(LastSequence()));
  DoWrite(WriteType::kStoreMerge, "a");
  DoWrite(WriteType::kStoreMerge, "b");
  FlushAll();
  CheckForward(iter.get(), StatesAt(LastSequence()));
  // The SuperVersion changes while the iterator is on a key. The iterator may
  // have read the next key already.
  iter->SeekToFirst();
  ASSERT_TRUE(iter->Valid());
  ASSERT_EQ("a", iter->key());
  DoWrite(WriteType::kDelete, "b");
  DoWrite(WriteType::kStoreMerge, "c");
  FlushAll();
#ifndef NDEBUG
  // The value of "b" leaves the address map as soon as possible.
  EnableCallBack("MapTailingIterator::Next:Return", [this](void*) {
    ASSERT_OK(dbfull()->TEST_WaitForBackgroundWork());
    ASSERT_OK(dbfull()->TEST_WaitForPurge());
  });
#endif  // !NDEBUG
  bool has_c = false;
  for (iter->Next(); iter->Valid(); iter->Next()) {
    has_c |= iter->key() == "c";
    if (iter->key() == "b") {
      ASSERT_EQ("v0,v2", iter->value());
    }
  }
  ASSERT_OK(iter->status());
#ifndef NDEBUG
  DisableCallBacks();
#endif  // !NDEBUG
  ASSERT_TRUE(has_c);
  CheckForward(iter.get(), StatesAt(LastSequence()));
  // Upper bounds are respected.
  const Slice upper("c");
  read_options.iterate_upper_bound = &upper;
  const std::unique_ptr<Iterator> bounded(db_->NewIterator(read_options));
  bounded->SeekToFirst();
  ASSERT_TRUE(bounded->Valid());
  ASSERT_EQ("a", bounded->key());
  bounded->Next();
  ASSERT_FALSE(bounded->Valid());
  ASSERT_OK(bounded->status());
  bounded->Seek("a");
  ASSERT_TRUE(bounded->Valid());
  ASSERT_EQ("v1", bounded->value());
}

// GetLatestSequenceForKey(), which transactions use for their checks, finds
// operands in delta files.
TEST_P(DBDeltaReadTest, LatestSequenceIncludesOperands) {
  DestroyAndReopen(TestOptions());
  DoWrite(WriteType::kPut, "base");
  DoWrite(WriteType::kPut, "both");
  DoWrite(WriteType::kStoreMerge, "both");
  DoWrite(WriteType::kStoreMerge, "operand");
  DoWrite(WriteType::kStoreMerge, "put later");
  DoWrite(WriteType::kPut, "put later");
  DoWrite(WriteType::kStoreMerge, "deleted");
  DoWrite(WriteType::kDelete, "deleted");
  FlushAll();
  std::map<std::string, SequenceNumber> newest;
  for (const Write& write : writes_) {
    newest[write.key] = write.seq;
  }
  ColumnFamilyData* const cfd =
      static_cast<ColumnFamilyHandleImpl*>(db_->DefaultColumnFamily())->cfd();
  SuperVersion* const sv = dbfull()->GetAndRefSuperVersion(cfd);
  newest["absent"] = 0;
  for (const auto& [key, expected] : newest) {
    SCOPED_TRACE(key);
    SequenceNumber seq = 0;
    bool found = false;
    bool is_blob_index = false;
    const Status s = dbfull()->GetLatestSequenceForKey(
        sv, key, /*cache_only=*/false, /*lower_bound_seq=*/0, &seq,
        /*timestamp=*/nullptr, &found, &is_blob_index);
    ASSERT_TRUE(s.ok() || s.IsNotFound()) << s.ToString();
    ASSERT_EQ(expected != 0, found);
    if (found) {
      ASSERT_EQ(expected, seq);
    }
  }
  dbfull()->ReturnAndCleanupSuperVersion(cfd, sv);
}

TEST_P(DBDeltaReadTest, TransactionConflictsWithAnOperand) {
  Options options = TestOptions();
  // Flushed memtables are not kept, so the check must search files.
  options.max_write_buffer_size_to_maintain = 1;
  DestroyAndReopen(options);
  Close();
  std::unique_ptr<TransactionDB> txn_db;
  {
    TransactionDB* opened = nullptr;
    ASSERT_OK(
        TransactionDB::Open(options, TransactionDBOptions(), dbname_, &opened));
    txn_db.reset(opened);
  }
  DBImpl* const impl = static_cast_with_check<DBImpl>(txn_db->GetRootDB());
  DeltaWriter writer(impl, txn_db->DefaultColumnFamily());
  ASSERT_OK(txn_db->Put(WriteOptions(), "k", "base"));
  ASSERT_OK(txn_db->Put(WriteOptions(), "other", "base"));
  ASSERT_OK(txn_db->Flush(FlushOptions()));

  TransactionOptions txn_options;
  txn_options.set_snapshot = true;
  const std::unique_ptr<Transaction> txn(
      txn_db->BeginTransaction(WriteOptions(), txn_options));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(txn_db->Put(WriteOptions(), kFiller, "x"));
    ASSERT_OK(txn_db->Flush(FlushOptions()));
  }
  writer.Flush({{DeltaEntry::Type::kOperand, "k", "",
                 txn_db->GetLatestSequenceNumber(), "operand"}});

  ASSERT_OK(txn->Put("other", "mine"));
  const Status s = txn->Put("k", "mine");
  ASSERT_TRUE(s.IsBusy()) << s.ToString();
  ReadOptions read_options;
  std::string value;
  ASSERT_OK(txn->Get(read_options, "k", &value));
  ASSERT_EQ("base,operand", value);
  read_options.snapshot = txn->GetSnapshot();
  ASSERT_OK(txn->Get(read_options, "k", &value));
  ASSERT_EQ("base", value);
  ASSERT_OK(txn->Merge("other", "more"));
  ASSERT_OK(txn->Get(ReadOptions(), "other", &value));
  ASSERT_EQ("mine,more", value);
  ASSERT_OK(txn->Rollback());

  // A transaction merges its operands with those of the store.
  const std::unique_ptr<Transaction> later(
      txn_db->BeginTransaction(WriteOptions(), TransactionOptions()));
  ASSERT_OK(later->Merge("k", "mine"));
  ASSERT_OK(later->Get(ReadOptions(), "k", &value));
  ASSERT_EQ("base,operand,mine", value);
  ASSERT_OK(later->Commit());
  ASSERT_OK(txn_db->Get(ReadOptions(), "k", &value));
  ASSERT_EQ("base,operand,mine", value);
}

// The row cache hides no operands, whether it has the base before operands come
// or bases come above operands.
TEST_P(DBDeltaReadTest, RowCacheHidesNoOperands) {
  if (!HasRowCache()) {
    ROCKSDB_GTEST_SKIP("There is no row cache");
    return;
  }
  DestroyAndReopen(TestOptions());
  for (const std::string key : {"a", "b", "c"}) {
    DoWrite(WriteType::kPut, key);
  }
  FlushAll();
  ASSERT_EQ("v0", Get("a"));
  ASSERT_EQ("v1", Get("b"));
  ASSERT_EQ("v0", Get("a"));
  DoWrite(WriteType::kStoreMerge, "b");
  FlushAll();
  Random rnd(1);
  CheckAll(&rnd);
  CheckAll(&rnd);
  DoWrite(WriteType::kPut, "b");
  FlushAll();
  CheckAll(&rnd);
  CheckAll(&rnd);
}

// A read of a damaged delta file returns Corruption with the name of a delta
// file.
TEST_P(DBDeltaReadTest, DamagedFileIsNamedInTheError) {
  DestroyAndReopen(TestOptions());
  DoWrite(WriteType::kStoreMerge, "k");
  FlushAll();
  const std::string name = DeltaFileName(
      dbname_,
      Writer().State()->RecentFiles(Kind::kOperands).front()->number());
  Close();
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, name, &contents));
  contents[3] ^= 1;  // in the first block
  ASSERT_OK(WriteStringToFile(env_, contents, name));
  ASSERT_OK(TryReopen(TestOptions()));
  PinnableSlice value;
  const Status s =
      db_->Get(ReadOptions(), db_->DefaultColumnFamily(), "k", &value);
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  ASSERT_NE(std::string::npos, s.ToString().find(".delta")) << s.ToString();
  const std::unique_ptr<Iterator> iter(db_->NewIterator(ReadOptions()));
  iter->SeekToFirst();
  ASSERT_FALSE(iter->Valid());
  ASSERT_TRUE(iter->status().IsCorruption()) << iter->status().ToString();
  // Other keys can be read.
  ASSERT_OK(
      db_->Get(ReadOptions(), db_->DefaultColumnFamily(), kFiller, &value));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  RegisterCustomObjects(argc, argv);
  return RUN_ALL_TESTS();
}
