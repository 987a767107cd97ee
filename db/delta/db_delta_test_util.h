//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_test_util.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "rocksdb/db.h"
#include "test_util/testharness.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {
namespace delta_test {

// Gives a column family of an open DB delta files that the test makes by hand,
// as if flushes and other jobs had written them.
//
// REQUIRES: enable_delta_separation is on; not used after the DB is closed.
class HandMadeDeltas {
 public:
  using Kind = DeltaFileDescription::Kind;
  using Tier = DeltaFileDescription::Tier;
  using Bucket = DeltaFileProperties::Bucket;

  explicit HandMadeDeltas(DB* db, ColumnFamilyHandle* handle = nullptr)
      : db_(static_cast_with_check<DBImpl>(db->GetRootDB())),
        cfd_(static_cast_with_check<ColumnFamilyHandleImpl>(
                 handle == nullptr ? db->DefaultColumnFamily() : handle)
                 ->cfd()) {}

  ColumnFamilyData* cfd() const { return cfd_; }

  // Returns how many files of the current Version are open. Calls fn(file) for
  // each of the others.
  template <typename Fn>
  size_t CountOpened(Fn fn) const {
    size_t count = 0;
    const InstrumentedMutexLock lock(db_->mutex());
    const std::shared_ptr<const DeltaVersion>& deltas =
        cfd_->current()->storage_info()->delta();
    if (deltas != nullptr) {
      deltas->ForEachFile([&](const DeltaVersion::FilePtr& file) {
        if (file->OpenedReader() != nullptr) {
          ++count;
        } else {
          fn(*file);
        }
      });
    }
    return count;
  }

  uint64_t NewNumber() { return db_->GetVersionSet()->NewFileNumber(); }

  std::string NameOf(const DeltaFileDescription& file) const {
    return DeltaFileName(cfd_->ioptions().cf_paths, file.number, file.path_id);
  }

  DeltaFileBuilder::Options BuilderOptions(Kind kind, Tier tier,
                                           uint64_t first_epoch = 0,
                                           uint64_t last_epoch = 0) {
    DeltaFileBuilder::Options options;
    options.number = NewNumber();
    options.kind = kind;
    options.tier = tier;
    options.first_epoch = first_epoch;
    options.last_epoch = last_epoch == 0 ? first_epoch : last_epoch;
    EXPECT_OK(db_->GetDbIdentity(options.db_id));
    options.reason = TableFileCreationReason::kFlush;
    return options;
  }

  // Writes a file of operands.
  // REQUIRES: the operands are sorted.
  DeltaFileDescription WriteOperands(
      const DeltaFileBuilder::Options& options,
      const std::vector<Operand>& operands,
      const std::vector<Bucket>& buckets = {},
      const std::optional<std::string>& end = std::nullopt) {
    const auto builder = NewBuilder(options);
    for (const Operand& operand : operands) {
      EXPECT_OK(builder->AddOperand(
          InternalKey(operand.key, operand.seq, kTypeMerge).Encode(),
          operand.value));
    }
    if (options.tier == Tier::kSorted) {
      EXPECT_OK(builder->SetBuckets(buckets, end));
    }
    DeltaFileDescription file;
    EXPECT_OK(builder->Finish(&file));
    return file;
  }
  // Writes a file of anchors.
  // REQUIRES: anchors and ranges are sorted.
  DeltaFileDescription WriteAnchors(
      const DeltaFileBuilder::Options& options,
      const std::vector<Anchor>& anchors,
      const std::vector<RangeAnchor>& ranges = {},
      const std::vector<Bucket>& buckets = {},
      const std::optional<std::string>& end = std::nullopt) {
    const auto builder = NewBuilder(options);
    for (const Anchor& anchor : anchors) {
      EXPECT_OK(builder->AddAnchor(anchor.key, anchor.seq));
    }
    for (const RangeAnchor& range : ranges) {
      EXPECT_OK(builder->AddRangeAnchor(range.start, range.end, range.seq));
    }
    if (options.tier == Tier::kSorted) {
      EXPECT_OK(builder->SetBuckets(buckets, end));
    }
    DeltaFileDescription file;
    EXPECT_OK(builder->Finish(&file));
    return file;
  }

  // Commits the edit.
  Status Log(DeltaEdit delta_edit) {
    VersionEdit edit;
    edit.SetColumnFamily(cfd_->GetID());
    edit.SetDeltaEdit(std::move(delta_edit));
    InstrumentedMutexLock lock(db_->mutex());
    return db_->GetVersionSet()->LogAndApply(
        cfd_, ReadOptions(), WriteOptions(), &edit, db_->mutex(),
        /*dir_contains_current_file=*/nullptr);
  }

  // Commits a flush with these operands and a new epoch.
  DeltaFileDescription Flush(const std::vector<Operand>& operands) {
    const uint64_t epoch = NewNumber();
    const DeltaFileDescription file = WriteOperands(
        BuilderOptions(Kind::kOperands, Tier::kFlushed, epoch), operands);
    DeltaEdit edit;
    edit.AddFile(file);
    EXPECT_OK(Log(std::move(edit)));
    return file;
  }
  // Commits a flush with these anchors and a new epoch.
  DeltaFileDescription FlushAnchors(
      const std::vector<Anchor>& anchors,
      const std::vector<RangeAnchor>& ranges = {}) {
    const uint64_t epoch = NewNumber();
    const DeltaFileDescription file = WriteAnchors(
        BuilderOptions(Kind::kAnchors, Tier::kFlushed, epoch), anchors, ranges);
    DeltaEdit edit;
    edit.AddFile(file);
    EXPECT_OK(Log(std::move(edit)));
    return file;
  }

  // Commits a merge: the two files replace all flushed ones.
  void Merge(uint32_t num_inputs, const std::vector<Operand>& operands,
             const std::vector<Anchor>& anchors = {}) {
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    // The State() is not kept, as dropping its last reference needs the mutex.
    State()->ForEachFile([&](const DeltaVersion::FilePtr& file) {
      if (file->description().tier == Tier::kFlushed) {
        first = std::min(first, file->description().first_epoch);
        last = std::max(last, file->description().last_epoch);
      }
    });
    DeltaEdit edit;
    uint64_t operands_number = 0;
    if (!operands.empty()) {
      edit.AddFile(WriteOperands(
          BuilderOptions(Kind::kOperands, Tier::kMerged, first, last),
          operands));
      operands_number = edit.files().back().number;
    }
    if (!anchors.empty()) {
      DeltaFileBuilder::Options options =
          BuilderOptions(Kind::kAnchors, Tier::kMerged, first, last);
      options.operands_number = operands_number;
      edit.AddFile(WriteAnchors(options, anchors));
    }
    edit.SetMergeRecent({last, num_inputs});
    EXPECT_OK(Log(std::move(edit)));
  }

  // Commits a collection that leaves these operands in the buckets, which end
  // at `end`.
  DeltaFileDescription Collect(const std::vector<Operand>& operands,
                               const std::vector<Bucket>& buckets,
                               const std::optional<std::string>& end) {
    const DeltaFileDescription file = WriteOperands(
        BuilderOptions(Kind::kOperands, Tier::kSorted), operands, buckets, end);
    DeltaEdit edit;
    edit.AddFile(file);
    DeltaEdit::ReplaceBuckets replace;
    replace.range.begin = buckets.front().lower_bound;
    replace.range.end = end;
    for (size_t i = 0; i < buckets.size(); ++i) {
      const std::string* const next = i + 1 < buckets.size()
                                          ? &buckets[i + 1].lower_bound
                                      : end.has_value() ? &*end
                                                        : nullptr;
      DeltaBucketState state;
      state.floor = buckets[i].floor_epoch;
      for (const Operand& operand : operands) {
        if (operand.key >= buckets[i].lower_bound &&
            (next == nullptr || operand.key < *next)) {
          state.extent_number = file.number;
          state.extent_bytes += operand.key.size() + operand.value.size();
        }
      }
      replace.buckets.push_back({buckets[i].lower_bound, state});
    }
    edit.AddReplaceBuckets(std::move(replace));
    EXPECT_OK(Log(std::move(edit)));
    return file;
  }

  std::shared_ptr<const DeltaVersion> State() const {
    InstrumentedMutexLock lock(db_->mutex());
    return cfd_->current()->storage_info()->delta();
  }
  // Returns the state as text; "none" if there are neither files nor buckets.
  std::string Text() const {
    auto state = State();
    const std::string text =
        state == nullptr ? "none" : state->DebugString(/*hex=*/true);
    // Dropping the last reference needs the mutex.
    InstrumentedMutexLock lock(db_->mutex());
    state.reset();
    return text;
  }

  // Returns what readers see of a key: pairs (seq, operand), the newest first.
  Values Read(const std::string& key,
              SequenceNumber seq = kMaxSequenceNumber) const {
    auto state = State();
    Values values;
    if (state == nullptr) {
      return values;
    }
    const DeltaStore& store = *cfd_->delta_store();
    SequenceNumber anchor = 0;
    const auto read_anchor = [&](const DeltaVersion::FilePtr& file) {
      DeltaFileReader* reader = nullptr;
      EXPECT_OK(store.GetReader(ReadOptions(), *file, &reader));
      SequenceNumber of_file = 0;
      EXPECT_OK(reader->NewestAnchor(ReadOptions(), key, seq, &of_file));
      anchor = std::max(anchor, of_file);
    };
    const auto read_operands = [&](const DeltaVersion::FilePtr& file) {
      DeltaFileReader* reader = nullptr;
      EXPECT_OK(store.GetReader(ReadOptions(), *file, &reader));
      DeltaOperands operands;
      EXPECT_OK(reader->CollectOperands(ReadOptions(), key, seq, &operands));
      for (const DeltaOperands::Operand& operand : operands) {
        if (operand.seq > anchor) {
          values.emplace_back(operand.seq, operand.value.ToString());
        }
      }
    };
    for (const auto& file : state->VisibleFiles(Kind::kAnchors, key)) {
      read_anchor(file);
    }
    DeltaBucketState bucket;
    if (!state->Buckets().empty()) {
      bucket = state->Buckets().State(
          state->Buckets().Find(key, state->user_comparator()));
    }
    if (bucket.anchors_number != 0) {
      read_anchor(state->GetFile(bucket.anchors_number));
    }
    for (const auto& file : state->VisibleFiles(Kind::kOperands, key)) {
      read_operands(file);
    }
    if (bucket.extent_number != 0) {
      read_operands(state->GetFile(bucket.extent_number));
    }
    InstrumentedMutexLock lock(db_->mutex());
    state.reset();
    return values;
  }

 private:
  std::unique_ptr<DeltaFileBuilder> NewBuilder(
      const DeltaFileBuilder::Options& options) {
    std::unique_ptr<DeltaFileBuilder> builder;
    EXPECT_OK(DeltaFileBuilder::Create(*cfd_->delta_store()->tables(), options,
                                       &builder));
    return builder;
  }

  DBImpl* const db_;
  ColumnFamilyData* const cfd_;
};

// Deletes the MANIFESTs and CURRENT of a closed DB, so that it needs a repair.
inline void DeleteManifests(Env* env, const std::string& dbname) {
  std::vector<std::string> children;
  ASSERT_OK(env->GetChildren(dbname, &children));
  for (const std::string& child : children) {
    uint64_t number = 0;
    FileType type = kTempFile;
    if (ParseFileName(child, &number, &type) &&
        (type == kDescriptorFile || type == kCurrentFile)) {
      ASSERT_OK(env->DeleteFile(dbname + "/" + child));
    }
  }
}

}  // namespace delta_test
}  // namespace ROCKSDB_NAMESPACE
