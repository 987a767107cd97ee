//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/compaction_mapping.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <utility>

#include "db/address_map/address_map_store.h"
#include "db/blob/blob_index.h"
#include "db/column_family.h"
#include "db/compaction/compaction.h"
#include "db/version_set.h"
#include "logging/logging.h"
#include "monitoring/statistics_impl.h"
#include "test_util/sync_point.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

ReadOptions FilterReadOptions() {
  ReadOptions options;
  options.io_activity = Env::IOActivity::kCompaction;
  return options;
}

// True if the file, which is not an input, may contain entries older than the
// outputs.
bool IsOlder(const Compaction& compaction, int level,
             const FileMetaData& file) {
  if (level != compaction.output_level()) {
    return level > compaction.output_level();
  }
  // Files of one level do not overlap, except in level 0, where older files may
  // not be part of the compaction.
  if (level != 0) {
    return false;
  }
  uint64_t newest_input = 0;
  for (size_t i = 0; i < compaction.num_input_files(0); ++i) {
    if (compaction.input(0, i) == &file) {
      return false;
    }
    newest_input = std::max(newest_input, compaction.input(0, i)->epoch_number);
  }
  return file.epoch_number <= newest_input;
}

uint64_t FirstInput(const Compaction& compaction) {
  size_t level = 0;
  while (compaction.num_input_files(level) == 0) {
    ++level;
  }
  return compaction.input(level, 0)->fd.GetNumber();
}

}  // namespace

std::unique_ptr<CompactionMapping> CompactionMapping::Begin(
    const Compaction* compaction, SequenceNumber earliest_reader,
    bool any_order, uint64_t first_new_file_number, const std::string& dbname) {
  ColumnFamilyData* const cfd = compaction->column_family_data();
  const AddressMapStore* const blobs = cfd->address_map_store();
  if (blobs == nullptr) {
    return nullptr;
  }
  // An entry that a fold has written above another one does not hide it from
  // readers of a Version from before the fold, regardless of sequence numbers.
  any_order |= blobs->folded_versions().IsBefore(
      cfd->dummy_versions()->Next()->GetVersionNumber());
  return std::unique_ptr<CompactionMapping>(new CompactionMapping(
      compaction, earliest_reader, any_order, first_new_file_number, dbname));
}

CompactionMapping::CompactionMapping(const Compaction* compaction,
                                     SequenceNumber earliest_reader,
                                     bool any_order,
                                     uint64_t first_new_file_number,
                                     const std::string& dbname)
    : compaction_(compaction),
      blobs_(compaction->column_family_data()->address_map_store()),
      earliest_reader_(earliest_reader),
      any_order_(any_order),
      first_new_file_number_(first_new_file_number),
      // The compaction is committed once its first input has left the Version:
      // no other job can delete an input meanwhile.
      publication_(blobs_, FirstInput(*compaction), /*when_present=*/false,
                   Env::IOActivity::kCompaction),
      removals_(std::make_unique<DeferredRemovals>(
          DeferredRemovals::kDefaultCap,
          blobs_->SpillFiles(compaction->input_version(), dbname))) {}

CompactionMapping::~CompactionMapping() = default;

void CompactionMapping::AddParts(size_t n) {
  while (parts_.size() < n) {
    parts_.emplace_back(new Part(this));
  }
  TEST_SYNC_POINT_CALLBACK("CompactionMapping::AddParts", removals_.get());
}

Status CompactionMapping::Publish() {
  TEST_SYNC_POINT_CALLBACK("CompactionMapping::Publish", removals_.get());
  std::vector<MappedBlobFile> files;
  MappedEntryMeter::Counts counts;
  for (const auto& part : parts_) {
    part->flow_.Finish();
    counts.inputs += part->flow_.counts().inputs;
    counts.kept += part->flow_.counts().kept;
    counts.hidden += part->flow_.counts().hidden;
    counts.deferred += part->flow_.counts().deferred;
    num_renamed_ += part->num_renamed_;
    for (MappedBlobFile& file : part->files_) {
      files.push_back(std::move(file));
    }
    part->files_.clear();
  }
  const ImmutableOptions& ioptions = compaction_->immutable_options();
  ROCKS_LOG_INFO(ioptions.logger,
                 "[%s] Compaction into level %d: of %" PRIu64
                 " mapped entries %" PRIu64 " kept, %" PRIu64
                 " became direct, %" PRIu64 " were hidden, %" PRIu64
                 " are removed later; %zu new blob files",
                 compaction_->column_family_data()->GetName().c_str(),
                 compaction_->output_level(), counts.inputs, counts.kept,
                 num_renamed_, counts.hidden, counts.deferred, files.size());
  Status s = removals_->status("the compaction");
  if (s.ok()) {
    s = blobs_->unsettled_jobs()->failure();
  }
  if (!s.ok()) {
    return s;
  }
  if (removals_->Count() > 0) {
    unsettled_.emplace(blobs_->unsettled_jobs());
  }
  return publication_.Publish(std::move(files));
}

void CompactionMapping::BeginCommit() {
  if (unsettled_.has_value()) {
    unsettled_->BeginCommit();
  }
  for (const auto& part : parts_) {
    for (const auto& [number, first] : part->first_undecided_) {
      blobs_->undecided_files()->Add(number, first);
    }
  }
}

void CompactionMapping::CloseUndecided() {
  UndecidedFiles* const undecided = blobs_->undecided_files();
  if (undecided->empty()) {
    return;
  }
  if (publication_.committed()) {
    for (size_t i = 0; i < compaction_->num_input_levels(); ++i) {
      for (size_t j = 0; j < compaction_->num_input_files(i); ++j) {
        undecided->Remove(compaction_->input(i, j)->fd.GetNumber());
      }
    }
    return;
  }
  for (const auto& part : parts_) {
    for (const auto& [number, first] : part->first_undecided_) {
      undecided->Remove(number);
    }
  }
}

void CompactionMapping::Close() {
  publication_.Close();
  CloseUndecided();
  if (publication_.committed() && removals_->Count() > 0) {
    blobs_->OnValuesReplaced(
        compaction_->column_family_data()->current()->GetVersionNumber());
  }
#ifndef NDEBUG
  if (publication_.committed()) {
    for (const auto& part : parts_) {
      part->flow_.CheckAtCommit();
      for (const MapName& entry : part->zeroed_) {
        // The key alone must not find a value older than the entry.
        SequenceNumber direct = 0;
        assert(!blobs_->map()->DirectSeq(entry.key, &direct) ||
               direct >= entry.seq);
      }
    }
  }
#endif  // !NDEBUG
}

Status CompactionMapping::Settle() {
  TEST_SYNC_POINT("CompactionMapping::Settle");
  if (!publication_.committed()) {
    publication_.Settle(/*keep_superseded=*/false);
    removals_->Clear();
    unsettled_.reset();
    return Status::OK();
  }
  // Demotes the names first: the commit of a moved value would remove its old
  // name, which readers of the old files still need.
  Status s = removals_->Demote(blobs_->map());
  if (!s.ok()) {
    s = AppendMessage(
        s, ": ",
        "column family " + compaction_->column_family_data()->GetName() +
            ": the names of values that a compaction has removed cannot be "
            "read from the temporary file. No other compaction can be "
            "committed until the DB is opened again");
    blobs_->unsettled_jobs()->Fail(s);
  }
  unsettled_.reset();
  // A name that was not demoted is superseded by that of the moved value.
  publication_.Settle(/*keep_superseded=*/!s.ok());
  blobs_->retired_removals()->Limit(removals_.get());
  RecordTick(compaction_->immutable_options().stats, BLOB_MAP_RENAMED,
             num_renamed_);
  return s;
}

void CompactionMapping::Retire() {
  if (publication_.committed()) {
    blobs_->Retire(
        std::move(removals_),
        compaction_->column_family_data()->current()->GetVersionNumber());
  }
}

CompactionMapping::Part::Part(CompactionMapping* job)
    : CompactionValueMapper(&flow_),
      job_(job),
      direct_mode_(job->earliest_reader_, job->compaction_->input_version(),
                   FilterReadOptions(),
                   [job](int level, const FileMetaData& file) {
                     return IsOlder(*job->compaction_, level, file);
                   }),
      flow_(job->blobs_->map(), job->blobs_->hash_seed(),
            job->compaction_->column_family_data()->user_comparator(),
            job->first_new_file_number_, job->removals_.get(),
            /*defer_all=*/job->any_order_) {}

uint64_t CompactionMapping::Part::hash_seed() const {
  return job_->blobs_->hash_seed();
}

bool CompactionMapping::Part::IsDirectModeSafe(const Slice& user_key,
                                               SequenceNumber seq) {
  return !job_->any_order_ && job_->blobs_->bypass() &&
         job_->blobs_->enabled() && direct_mode_.IsSafe(user_key, seq);
}

MappedBlobIndex CompactionMapping::Part::NameOf(const Slice& user_key,
                                                SequenceNumber seq,
                                                uint64_t file_number,
                                                bool value_changed) {
  MappedBlobIndex name;
  name.birth = file_number;
  bool direct = IsDirectModeSafe(user_key, seq);
  if (direct && value_changed) {
    direct = !HasDirect(user_key);
  }
  name.mode = direct ? MappedBlobIndex::Mode::kDirect
                     : MappedBlobIndex::Mode::kVersioned;
  return name;
}

void CompactionMapping::Part::OnFileClosed(MappedBlobFile&& file) {
  job_->publication_.LimitIndex(&file);
  files_.push_back(std::move(file));
}

void CompactionMapping::Part::OnUndecided(uint64_t sst_number,
                                          SequenceNumber seq) {
  assert(seq > 0);
  SequenceNumber& first =
      first_undecided_.try_emplace(sst_number, seq).first->second;
  first = std::min(first, seq);
}

SequenceNumber CompactionMapping::Part::FirstUndecided(
    uint64_t sst_number) const {
  const auto found = first_undecided_.find(sst_number);
  return found == first_undecided_.end() ? kMaxSequenceNumber : found->second;
}

bool CompactionMapping::Part::keeps_mapped() const {
  return job_->blobs_->enabled();
}

bool CompactionMapping::Part::IsLost(const Slice& user_key,
                                     const BlobIndex& index) const {
  return job_->blobs_->map()
      ->FindByName(MapName{job_->blobs_->HashOf(user_key), index.sequence(),
                           index.mapped().birth},
                   /*pin=*/false)
      .found;
}

bool CompactionMapping::Part::FindPath(const Slice& user_key,
                                       const BlobIndex& index,
                                       uint32_t* path_id) {
  const AddressMap::Lookup found = job_->blobs_->map()->FindByName(
      MapName{job_->blobs_->HashOf(user_key), index.sequence(),
              index.mapped().birth},
      /*pin=*/true);
  const uint32_t slot = found.entry.address.slot;
  if (!found.found || slot == BlobFileSlotTable::kLostSlot) {
    return false;
  }
  const BlobFileSlotTable::Place place =
      job_->blobs_->file_table().PlaceOf(slot);
  *path_id = place.hot.HomeOr(place.path_id);
  return true;
}

bool CompactionMapping::Part::HasDirect(const Slice& user_key) const {
  SequenceNumber seq = 0;
  return job_->blobs_->map()->DirectSeq(job_->blobs_->HashOf(user_key), &seq);
}

void CompactionMapping::Part::OnSequenceZeroed(const Slice& user_key,
                                               SequenceNumber seq) {
#ifndef NDEBUG
  if (zeroed_.size() < kMaxChecked) {
    zeroed_.push_back(MapName{job_->blobs_->HashOf(user_key), seq, 0});
  }
#else
  (void)user_key;
  (void)seq;
#endif  // !NDEBUG
}

Status CompactionMapping::Part::Place(const Slice& user_key, SequenceNumber seq,
                                      const Slice& value, std::string* index) {
  MappedBlobIndex name;
  const Status s = name.DecodeFrom(value);
  if (s.ok() && name.mode == MappedBlobIndex::Mode::kVersioned &&
      IsDirectModeSafe(user_key, seq)) {
    const AddressMap::RenameResult result = job_->blobs_->map()->Rename(
        MapName{job_->blobs_->HashOf(user_key), seq, name.birth});
    // If the name is gone from the map, the entry is hidden; direct mode keeps
    // its key out of the filter.
    if (result != AddressMap::RenameResult::kNewerDirect) {
      name.mode = MappedBlobIndex::Mode::kDirect;
    }
    num_renamed_ += result == AddressMap::RenameResult::kRenamed ? 1 : 0;
  } else if (s.ok() && !job_->blobs_->bypass()) {
    // In the map, the entry may stay direct, i.e. be found by the key alone.
    name.mode = MappedBlobIndex::Mode::kVersioned;
  }
  name.EncodeTo(index);
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
