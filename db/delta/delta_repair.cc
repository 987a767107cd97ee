//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_repair.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <utility>

#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/delta/delta_ascending_lookup.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_meta.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/delta/known_operand_filter.h"
#include "db/delta/repair_table_order.h"
#include "db/lookup_key.h"
#include "db/memtable.h"
#include "db/merge_helper.h"
#include "db/path_layout/path_layout.h"
#include "db/path_layout/path_sync.h"
#include "db/path_layout/repair_paths.h"
#include "db/range_tombstone_fragmenter.h"
#include "db/seqno_to_time_mapping.h"
#include "db/table_cache.h"
#include "db/version_edit.h"
#include "file/filename.h"
#include "logging/logging.h"
#include "table/merging_iterator.h"
#include "util/strata/key_for_message.h"
#include "util/strata/status_message.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;

// Maximum number of table entries that are skipped one by one before a seek to
// the next key with operands.
constexpr int kMaxStepsToKey = 8;

Status AsAdvice(const Status& s, const std::string& name) {
  if (s.IsNotSupported() || s.IsInvalidArgument()) {
    return s;  // not an error in the file
  }
  const std::string message =
      name +
      ": if it cannot be helped, move the file elsewhere to repair without "
      "the merge operands in it, or those that it hides";
  return s.IsCorruption() ? Status::Corruption(message, s.ToString())
                          : Status::IOError(message, s.ToString());
}

}  // namespace

struct DeltaRepair::Family {
  Family(uint32_t _id, const std::string& _name,
         const ImmutableDBOptions& db_options,
         const ColumnFamilyOptions& cf_options)
      : id(_id),
        name(_name),
        options(db_options, cf_options),
        mutable_options(cf_options) {}

  const uint32_t id;
  const std::string name;
  const ImmutableOptions options;
  const MutableCFOptions mutable_options;
  std::vector<std::unique_ptr<DeltaFileProbe>> files;
  DeltaFileLiveness lineage;

  // Readers of all files that were found, opened when first needed, and of
  // files written from WALs.
  bool has_readers = false;
  std::vector<std::shared_ptr<DeltaFileReader>> operand_readers;
  std::vector<std::shared_ptr<DeltaFileReader>> anchor_readers;
  // Readers of the files that count.
  std::vector<const DeltaFileReader*> operands;
  std::vector<const DeltaFileReader*> anchors;
  std::vector<std::unique_ptr<FragmentedRangeTombstoneIterator>> range_anchors;
  // Delta files and SST files written from WALs.
  std::vector<DeltaFileDescription> flushed;
  std::vector<FileMetaData> restored;
  // Internal keys of anchors to write.
  std::vector<std::string> missing_anchors;
  size_t tables_without_anchors = 0;
  Status missing_anchors_status;

  const Comparator* ucmp() const {
    return options.internal_comparator.user_comparator();
  }
  // Adds an anchor for the newest entry of a key in an SST file if the entry
  // hides operands that no anchor hides.
  Status AddAnchorIfMissing(const ParsedInternalKey& entry,
                            DeltaAscendingLookup* operand_lookup,
                            DeltaAscendingLookup* anchor_lookup) {
    SequenceNumber operand = 0;
    SequenceNumber anchor = 0;
    Status s =
        operand_lookup->FindNewest(entry.user_key, entry.sequence, &operand);
    if (s.ok() && operand != 0) {
      // No snapshot is left, so an anchor newer than the table's entry is
      // sufficient.
      s = anchor_lookup->FindNewest(entry.user_key, kMaxSequenceNumber,
                                    &anchor);
      anchor = std::max(anchor, NewestRangeAnchor(entry.user_key));
    }
    if (s.ok() && operand > anchor) {
      missing_anchors.push_back(
          InternalKey(entry.user_key, entry.sequence, kTypeDeletion)
              .Encode()
              .ToString());
    }
    return s;
  }
  bool HasOperands() const { return !lineage.operands.empty(); }
  bool KeepsFiles() const { return HasOperands() || !flushed.empty(); }

  Status OpenReaders(const FileOptions& file_options) {
    if (has_readers) {
      return Status::OK();
    }
    range_anchors.clear();
    operands.clear();
    anchors.clear();
    operand_readers.clear();
    anchor_readers.clear();
    std::set<const DeltaFileProbe*> counting;
    for (const auto* some :
         {&lineage.operands, &lineage.anchors, &lineage.anchors_to_copy}) {
      counting.insert(some->begin(), some->end());
    }
    for (const auto& file : files) {
      std::unique_ptr<DeltaFileReader> reader;
      Status s = file->Open(
          *file->NewTables(options, mutable_options, file_options), &reader);
      if (!s.ok()) {
        return s;
      }
      AddReader(std::move(reader), counting.count(file.get()) > 0);
    }
    has_readers = true;
    return Status::OK();
  }
  void AddReader(std::shared_ptr<DeltaFileReader> reader, bool counts) {
    const bool is_of_operands = reader->description().kind == Kind::kOperands;
    if (counts) {
      (is_of_operands ? operands : anchors).push_back(reader.get());
    }
    if (counts && reader->description().num_range_anchors != 0) {
      range_anchors.push_back(
          reader->NewRangeAnchorIterator(kMaxSequenceNumber));
    }
    (is_of_operands ? operand_readers : anchor_readers)
        .push_back(std::move(reader));
  }

  ~Family() { missing_anchors_status.PermitUncheckedError(); }

  // Returns the readers whose ranges overlap [smallest, largest], both
  // included.
  std::vector<const DeltaFileReader*> Overlapping(
      const std::vector<const DeltaFileReader*>& readers, const Slice& smallest,
      const Slice& largest) const {
    std::vector<const DeltaFileReader*> result;
    for (const DeltaFileReader* reader : readers) {
      if (ucmp()->Compare(reader->description().smallest, largest) <= 0 &&
          ucmp()->Compare(smallest, reader->description().largest) <= 0) {
        result.push_back(reader);
      }
    }
    return result;
  }
  // Sorts missing_anchors and keeps only the newest one of each key.
  void SortMissingAnchors() {
    const InternalKeyComparator& icmp = options.internal_comparator;
    std::sort(missing_anchors.begin(), missing_anchors.end(),
              [&icmp](const Slice& a, const Slice& b) {
                return icmp.Compare(a, b) < 0;
              });
    missing_anchors.erase(
        std::unique(missing_anchors.begin(), missing_anchors.end(),
                    [](const Slice& a, const Slice& b) {
                      return ExtractUserKey(a) == ExtractUserKey(b);
                    }),
        missing_anchors.end());
  }
  SequenceNumber NewestRangeAnchor(const Slice& user_key) const {
    SequenceNumber newest = 0;
    for (const auto& ranges : range_anchors) {
      newest = std::max(newest, ranges->MaxCoveringTombstoneSeqnum(user_key));
    }
    return newest;
  }
  bool IsInRange(const DeltaFileReader& reader, const Slice& user_key) const {
    const DeltaFileDescription& file = reader.description();
    return ucmp()->Compare(file.smallest, user_key) <= 0 &&
           ucmp()->Compare(user_key, file.largest) <= 0;
  }

  // Sets *seq so that operands of the key up to *seq are in delta files, or
  // hidden by anchors in them: a flush writes all operands of a key up to the
  // newest one that it writes.
  Status NewestKnown(const Slice& user_key, SequenceNumber* seq) const {
    ReadOptions read_options;
    read_options.fill_cache = false;
    *seq = 0;
    const LookupKey key(user_key, kMaxSequenceNumber);
    for (const auto& reader : operand_readers) {
      if (!IsInRange(*reader, user_key) ||
          !reader->MayHaveKey(read_options, key)) {
        continue;
      }
      const std::unique_ptr<InternalIterator> iter(
          reader->NewIterator(read_options, TableReaderCaller::kRepair));
      iter->Seek(key.internal_key());
      if (iter->Valid() &&
          ucmp()->Equal(ExtractUserKey(iter->key()), user_key)) {
        *seq = std::max(*seq, GetInternalKeySeqno(iter->key()));
      }
      if (!iter->status().ok()) {
        return iter->status();
      }
    }
    for (const auto& reader : anchor_readers) {
      if (!IsInRange(*reader, user_key)) {
        continue;
      }
      SequenceNumber anchor = 0;
      Status s = reader->NewestAnchor(read_options, key, &anchor);
      if (!s.ok()) {
        return s;
      }
      *seq = std::max(*seq, anchor);
    }
    return Status::OK();
  }
};

// Tells what the files of a family, and the range deletions of the memtable
// that is flushed, have of a key.
class DeltaRepair::WalSource : public KnownOperandFilter::Source {
 public:
  WalSource(
      const Family* family, const ColumnFamilyData* cfd,
      std::unique_ptr<FragmentedRangeTombstoneIterator> memtable_tombstones)
      : family_(family),
        cfd_(cfd),
        memtable_tombstones_(std::move(memtable_tombstones)) {
    read_options_.total_order_seek = true;
    read_options_.fill_cache = false;
  }

  Status NewestKnown(const Slice& user_key, SequenceNumber* seq) override {
    return family_->NewestKnown(user_key, seq);
  }

  Status FindBase(const Slice& user_key, KnownOperandFilter::Base* base,
                  bool* found) override {
    *base = KnownOperandFilter::Base();
    if (memtable_tombstones_ != nullptr) {
      base->seq = memtable_tombstones_->MaxCoveringTombstoneSeqnum(user_key);
    }
    Status s;
    for (const FileMetaData& table : family_->restored) {
      if (s.ok() &&
          family_->ucmp()->Compare(table.smallest.user_key(), user_key) <= 0 &&
          family_->ucmp()->Compare(user_key, table.largest.user_key()) <= 0) {
        s = FindInTable(table, user_key, base);
      }
    }
    // An operand is in a table only if its family keeps no delta files.
    *found = s.ok() && base->seq > 0 && base->type != kTypeMerge;
    return s;
  }

  Status Merge(const Slice& user_key, const KnownOperandFilter::Base& base,
               const std::vector<Slice>& operands, std::string* value,
               ValueType* type, bool* merged) override {
    value->clear();
    Status s;
    if (cfd_->ioptions().merge_operator == nullptr) {
      s = Status::InvalidArgument("There is no merge operator");
    } else {
      switch (base.type) {
        case kTypeValue:
          s = MergeWith(user_key, operands, value, type,
                        MergeHelper::kPlainBaseValue, Slice(base.value));
          break;
        case kTypeValuePreferredSeqno:
          // As in a flush, the result has no write time.
          s = MergeWith(user_key, operands, value, type,
                        MergeHelper::kPlainBaseValue,
                        ParsePackedValueForValue(base.value));
          break;
        case kTypeWideColumnEntity:
          s = MergeWith(user_key, operands, value, type,
                        MergeHelper::kWideBaseValue, Slice(base.value));
          break;
        case kTypeDeletion:
        case kTypeSingleDeletion:
        case kTypeRangeDeletion:
          s = MergeWith(user_key, operands, value, type,
                        MergeHelper::kNoBaseValue);
          break;
        default:
          s = Status::NotSupported("Entry of type " +
                                   std::to_string(base.type));
      }
    }
    *merged = s.ok();
    if (!s.ok()) {
      ROCKS_LOG_WARN(
          cfd_->ioptions().logger,
          "[%s] Operands of a WAL above sequence number %" PRIu64
          " of key %s cannot be merged: %s",
          cfd_->GetName().c_str(), base.seq,
          KeyForMessage(user_key, cfd_->ioptions().allow_data_in_errors)
              .c_str(),
          s.ToString().c_str());
    }
    return Status::OK();
  }

 private:
  template <typename... ExistingTs>
  Status MergeWith(const Slice& user_key, const std::vector<Slice>& operands,
                   std::string* value, ValueType* type,
                   const ExistingTs&... existing) {
    const ImmutableOptions& options = cfd_->ioptions();
    Slice operand(nullptr, 0);
    const Status s = MergeHelper::TimedFullMerge(
        options.merge_operator.get(), user_key, existing..., operands,
        options.logger, options.stats, options.clock,
        /*update_num_ops_stats=*/false, /*op_failure_scope=*/nullptr, value,
        &operand, type);
    if (s.ok() && operand.data() != nullptr) {
      value->assign(operand.data(), operand.size());
    }
    return s;
  }

  // Updates *base if the table has a newer entry of the key.
  Status FindInTable(const FileMetaData& table, const Slice& user_key,
                     KnownOperandFilter::Base* base) {
    std::unique_ptr<FragmentedRangeTombstoneIterator> tombstones;
    Status s = cfd_->table_cache()->GetRangeTombstoneIterator(
        read_options_, cfd_->internal_comparator(), table,
        cfd_->GetLatestMutableCFOptions(), &tombstones);
    if (!s.ok()) {
      return s;
    }
    const SequenceNumber covered =
        tombstones == nullptr
            ? 0
            : tombstones->MaxCoveringTombstoneSeqnum(user_key);
    if (covered > base->seq) {
      *base = KnownOperandFilter::Base();
      base->seq = covered;
    }
    const std::unique_ptr<InternalIterator> iter(
        cfd_->table_cache()->NewIterator(
            read_options_, file_options_, cfd_->internal_comparator(), table,
            /*range_del_agg=*/nullptr, cfd_->GetLatestMutableCFOptions(),
            /*table_reader_ptr=*/nullptr, /*file_read_hist=*/nullptr,
            TableReaderCaller::kRepair, /*arena=*/nullptr,
            /*skip_filters=*/true, /*level=*/-1,
            /*max_file_size_for_l0_meta_pin=*/0,
            /*smallest_compaction_key=*/nullptr,
            /*largest_compaction_key=*/nullptr,
            /*allow_unprepared_value=*/false));
    const LookupKey key(user_key, kMaxSequenceNumber);
    iter->Seek(key.internal_key());
    ParsedInternalKey parsed;
    if (iter->Valid()) {
      s = ParseInternalKey(iter->key(), &parsed, /*log_err_key=*/false);
      if (s.ok() && family_->ucmp()->Equal(parsed.user_key, user_key) &&
          parsed.sequence > base->seq) {
        base->seq = parsed.sequence;
        base->type = parsed.type;
        base->value = iter->value().ToString();
      }
    }
    return s.ok() ? iter->status() : s;
  }

  const Family* const family_;
  const ColumnFamilyData* const cfd_;
  const std::unique_ptr<FragmentedRangeTombstoneIterator> memtable_tombstones_;
  const FileOptions file_options_;
  ReadOptions read_options_;
};

DeltaRepair::DeltaRepair(const ImmutableOptions& options,
                         const FileOptions& file_options)
    : options_(options), file_options_(file_options) {}

DeltaRepair::~DeltaRepair() { status_.PermitUncheckedError(); }

void DeltaRepair::FoundFile(uint64_t number, const std::string& directory) {
  found_[number].insert(directory);
}

Status DeltaRepair::Prepare(const OptionsOf& options_of) {
  Status s = ReadFiles(options_of);
  for (const auto& [id, family] : families_) {
    if (!s.ok()) {
      break;
    }
    s = PrepareFamily(family.get());
  }
  return s;
}

Status DeltaRepair::ReadFiles(const OptionsOf& options_of) {
  for (const auto& [number, directories] : found_) {
    if (directories.size() > 1) {
      return Status::InvalidArgument("Delta file #" + std::to_string(number) +
                                     " is in " + *directories.begin() +
                                     " and in " + *directories.rbegin());
    }
    auto file = std::make_unique<DeltaFileProbe>();
    Status s = DeltaFileProbe::Read(options_, file_options_,
                                    *directories.begin(), number, file.get());
    if (!s.ok()) {
      return AsAdvice(s, DeltaFileName(*directories.begin(), number));
    }
    const std::string& name = file->column_family_name;
    const ColumnFamilyOptions* const cf_options = options_of(name);
    if (cf_options == nullptr) {
      // Its SST files are dropped, too.
      ROCKS_LOG_WARN(options_.logger,
                     "Delta file #%" PRIu64
                     ": of the column family \"%s\", which is given up",
                     number, name.c_str());
      unused_.push_back(file->Name());
      continue;
    }
    std::unique_ptr<Family>& family = families_[file->column_family_id];
    if (family == nullptr) {
      family = std::make_unique<Family>(file->column_family_id, name, options_,
                                        *cf_options);
    } else if (family->name != name) {
      return Status::Corruption(
          file->Name(), "says that column family " +
                            std::to_string(file->column_family_id) + " is \"" +
                            name + "\", another file that it is \"" +
                            family->name + "\"");
    }
    s = RepairPaths::FindPathId(
        options_.fs.get(),
        cf_options->cf_paths.empty() ? options_.db_paths : cf_options->cf_paths,
        name, "Delta file #" + std::to_string(number), file->directory,
        &file->description.path_id);
    if (!s.ok()) {
      return s;
    }
    family->files.push_back(std::move(file));
  }
  return Status::OK();
}

Status DeltaRepair::PrepareFamily(Family* family) {
  std::vector<const DeltaFileProbe*> files;
  for (const auto& file : family->files) {
    Status s = file->Scan(*file->NewTables(
        family->options, family->mutable_options, file_options_));
    if (!s.ok()) {
      return AsAdvice(s, file->Name());
    }
    const DeltaFileDescription& description = file->description;
    next_number_ = std::max(next_number_, description.last_epoch + 1);
    largest_seq_ = std::max(largest_seq_, description.largest_seq);
    files.push_back(file.get());
  }
  DeltaFileLiveness& lineage = family->lineage;
  Status s = DeltaFileLiveness::Resolve(files, family->ucmp(), &lineage);
  if (!s.ok()) {
    return s;
  }
  for (const auto* unused : {&lineage.superseded, &lineage.anchors_to_copy}) {
    for (const DeltaFileProbe* file : *unused) {
      unused_.push_back(file->Name());
    }
  }
  ROCKS_LOG_INFO(options_.logger,
                 "Column family \"%s\": %zu delta files of operands and %zu "
                 "buckets; %zu files of anchors are kept and %zu copied; %zu "
                 "files are superseded",
                 family->name.c_str(), lineage.operands.size(),
                 lineage.buckets.size(), lineage.anchors.size(),
                 lineage.anchors_to_copy.size(), lineage.superseded.size());
  if (!family->HasOperands()) {
    return s;
  }
  family_names_.emplace(family->id, family->name);
  // Builds the edit for the new MANIFEST, to find out now whether it is valid.
  DeltaEdit edit;
  for (const auto* some : {&lineage.operands, &lineage.anchors}) {
    for (const DeltaFileProbe* file : *some) {
      edit.AddFile(file->description);
    }
  }
  edit.SetSnapshotPiece({/*index=*/0, /*is_last=*/true, lineage.buckets});
  std::shared_ptr<const DeltaVersion> version;
  return DeltaVersion::Apply(
      /*base=*/nullptr, edit, family->ucmp(),
      [](const DeltaFileDescription& file) {
        return DeltaFileMeta::Create(file, /*on_release=*/nullptr);
      },
      &version);
}

DeltaRepair::Family* DeltaRepair::FamilyOf(const ColumnFamilyData& cfd) const {
  const auto family = families_.find(cfd.GetID());
  return family == families_.end() || !family->second->KeepsFiles()
             ? nullptr
             : family->second.get();
}

Status DeltaRepair::BeginFlush(ColumnFamilyData* cfd,
                               const FileDescriptor& sst_file,
                               MemTable* memtable, InternalIterator* input,
                               const NewFileNumber& new_number,
                               WalFlush* wal_flush) {
  *wal_flush = WalFlush();
  wal_flush->input = input;
  Family* family = FamilyOf(*cfd);
  if (family == nullptr && cfd->ioptions().enable_delta_separation) {
    // The column family has no operands in delta files any more, or never had
    // any. Operands of the WAL may be part of a value, which anchors record
    // only while the operands are in delta files.
    std::unique_ptr<Family>& own = families_[cfd->GetID()];
    if (own == nullptr) {
      own = std::make_unique<Family>(cfd->GetID(), cfd->GetName(), options_,
                                     cfd->GetLatestCFOptions());
    }
    family = own.get();
  }
  if (family == nullptr) {
    return Status::OK();
  }
  const Status s = family->OpenReaders(file_options_);
  if (!s.ok()) {
    return SetStatus(*cfd, s);
  }
  ReadOptions read_options;
  read_options.total_order_seek = true;
  wal_flush->filter = std::make_unique<KnownOperandFilter>(
      std::make_unique<WalSource>(
          family, cfd,
          std::unique_ptr<FragmentedRangeTombstoneIterator>(
              memtable->NewRangeTombstoneIterator(
                  read_options, kMaxSequenceNumber,
                  /*immutable_memtable=*/false))),
      family->ucmp(), input);
  wal_flush->input = wal_flush->filter.get();
  if (cfd->delta_store() == nullptr) {
    cfd->strata()->CreateDeltaStore();
  }
  DeltaFlush::Job job;
  job.store = cfd->delta_store();
  job.earlier = family->operand_readers;
  job.keeps_readers = true;
  job.epoch = sst_file.GetNumber();
  job.path_id = sst_file.GetPathId();
  job.new_file_number = new_number;
  wal_flush->flush = std::make_unique<DeltaFlush>(std::move(job));
  return s;
}

const Status& DeltaRepair::SetStatus(const ColumnFamilyData& cfd,
                                     const Status& s) {
  if (!s.ok()) {
    status_ = AppendMessage(
        s, ": ",
        "column family " + cfd.GetName() +
            ": a WAL cannot be converted, LOG names it; if it cannot be "
            "helped, move the WAL elsewhere to repair without what is in it");
  }
  return status_;
}

bool DeltaRepair::SeparatesDeltas(const ColumnFamilyData& cfd) const {
  return FamilyOf(cfd) != nullptr || cfd.ioptions().enable_delta_separation;
}

std::vector<ColumnFamilyData*> DeltaRepair::FlushOrder(
    ColumnFamilySet* families) const {
  std::vector<ColumnFamilyData*> order;
  for (const bool separates : {true, false}) {
    for (ColumnFamilyData* const cfd : *families) {
      if (SeparatesDeltas(*cfd) == separates) {
        order.push_back(cfd);
      }
    }
  }
  return order;
}

void DeltaRepair::NoteFailedFlush(const ColumnFamilyData& cfd,
                                  const Status& s) {
  if (status_.ok() && SeparatesDeltas(cfd)) {
    SetStatus(cfd, s);
  }
}

void DeltaRepair::NoteUnreadWal(ColumnFamilySet* families, const Status& s) {
  for (const ColumnFamilyData* const cfd : *families) {
    NoteFailedFlush(*cfd, s);
  }
}

Status DeltaRepair::FinishFlush(const ColumnFamilyData& cfd,
                                const FileMetaData& table,
                                const WalFlush& wal_flush,
                                const Status& built) {
  if (wal_flush.flush == nullptr) {
    return built;
  }
  return SetStatus(
      cfd, built.ok() ? KeepFiles(cfd, table, *wal_flush.flush) : built);
}

Status DeltaRepair::KeepFiles(const ColumnFamilyData& cfd,
                              const FileMetaData& table,
                              const DeltaFlush& flush) {
  assert(families_.count(cfd.GetID()) > 0);
  Family* const family = families_[cfd.GetID()].get();
  if (table.fd.GetFileSize() > 0) {
    family->restored.push_back(table);
  }
  if (!flush.HasFiles()) {
    return Status::OK();
  }
  family_names_.emplace(family->id, family->name);
  VersionEdit edit;
  flush.AddTo(&edit);
  OutputDirectories outputs;
  for (const DeltaFileDescription& file : edit.GetDeltaEdit()->files()) {
    family->flushed.push_back(file);
    family->flushed.back().opened.reset();
    largest_seq_ = std::max(largest_seq_, file.largest_seq);
    outputs.Add(file.path_id);
  }
  // The repair uses the readers until its end.
  for (const auto& reader : flush.readers()) {
    family->AddReader(reader, /*counts=*/true);
  }
  return outputs.Sync(cfd);
}

void DeltaRepair::FoundTable(const ColumnFamilyData& cfd,
                             const FileMetaData& table, RepairPaths* paths) {
  Family* const family = FamilyOf(cfd);
  // A table without keys has no bounds.
  if (family == nullptr || table.smallest.size() == 0) {
    return;
  }
  Status s = family->missing_anchors_status;
  if (s.ok()) {
    s = family->OpenReaders(file_options_);
  }
  if (s.ok()) {
    const size_t had = family->missing_anchors.size();
    s = FindMissingAnchors(cfd, table, paths, family);
    family->tables_without_anchors += family->missing_anchors.size() > had;
  }
  family->missing_anchors_status = s;
}

// Scans the table and the delta files in parallel, as they have the same order.
Status DeltaRepair::FindMissingAnchors(const ColumnFamilyData& cfd,
                                       const FileMetaData& table,
                                       RepairPaths* paths, Family* family) {
  const Comparator* const ucmp = family->ucmp();
  const Slice smallest = table.smallest.user_key();
  const Slice largest = table.largest.user_key();
  auto readers = family->Overlapping(family->operands, smallest, largest);
  std::erase_if(readers, [&table](const DeltaFileReader* reader) {
    return reader->description().smallest_seq > table.fd.largest_seqno;
  });
  if (readers.empty()) {
    return Status::OK();
  }
  const InternalKeyComparator& icmp = family->options.internal_comparator;
  DeltaAscendingLookup operands(&icmp, std::move(readers));
  DeltaAscendingLookup anchors(
      &icmp, family->Overlapping(family->anchors, smallest, largest));
  ReadOptions read_options;
  read_options.total_order_seek = true;
  const std::unique_ptr<InternalIterator> points =
      paths->NewPointIterator(read_options, cfd, table);
  std::string last_key;
  bool has_last_key = false;
  int steps = 0;
  points->SeekToFirst();
  while (points->Valid() && !operands.IsAtEnd()) {
    ParsedInternalKey parsed;
    if (!ParseInternalKey(points->key(), &parsed, /*log_err_key=*/false).ok()) {
      points->Next();
      continue;
    }
    Slice next;
    if (operands.GetNextKey(&next) &&
        ucmp->Compare(parsed.user_key, next) < 0) {
      if (++steps <= kMaxStepsToKey) {
        points->Next();
      } else {
        steps = 0;
        points->Seek(
            InternalKey(next, kMaxSequenceNumber, kValueTypeForSeek).Encode());
      }
      continue;
    }
    steps = 0;
    // The newest entry of a key decides: if there are operands below it that
    // count, it hides all of them. If its sequence number was zeroed it may
    // hide some of them, but it is unknown which.
    if (parsed.type != kTypeMerge &&
        !(has_last_key && parsed.user_key == Slice(last_key))) {
      last_key.assign(parsed.user_key.data(), parsed.user_key.size());
      has_last_key = true;
      Status s = family->AddAnchorIfMissing(parsed, &operands, &anchors);
      if (!s.ok()) {
        return s;
      }
    }
    points->Next();
  }
  return points->status();
}

Status DeltaRepair::OrderTables(const ColumnFamilyData& cfd,
                                const std::vector<FileMetaData*>& tables,
                                RepairPaths* paths) {
  if (FamilyOf(cfd) == nullptr && !cfd.ioptions().enable_delta_separation) {
    return Status::OK();
  }
  ReadOptions read_options;
  read_options.total_order_seek = true;
  read_options.fill_cache = false;
  std::vector<RepairTableOrder::Table> inputs;
  for (const FileMetaData* table : tables) {
    // A table without keys has no bounds.
    const bool has_keys = table->smallest.size() > 0;
    inputs.push_back(
        {has_keys ? table->smallest.user_key().ToString() : "",
         has_keys ? table->largest.user_key().ToString() : "",
         [&, table](RepairTableOrder::Entries* entries) {
           entries->points = paths->NewPointIterator(read_options, cfd, *table);
           return paths->NewRangeDeletionIterator(read_options, cfd, *table,
                                                  &entries->range_deletions);
         }});
  }
  RepairTableOrder order(cfd.user_comparator(), std::move(inputs));
  const Status s = order.Compute();
  if (!s.ok()) {
    return AppendMessage(s, ": ", "tables of column family " + cfd.GetName());
  }
  std::vector<uint64_t> epoch_numbers;
  for (const FileMetaData* table : tables) {
    epoch_numbers.push_back(table->epoch_number);
  }
  size_t num_moved = 0;
  for (size_t i = 0; i < tables.size(); ++i) {
    FileMetaData* const table = tables[order.order()[i]];
    num_moved += table->epoch_number != epoch_numbers[i];
    table->epoch_number = epoch_numbers[i];
  }
  if (order.num_contradictions() > 0) {
    ROCKS_LOG_WARN(options_.logger,
                   "Column family \"%s\": no order of %zu tables lets readers "
                   "find the newest entry of each key first. Open the database "
                   "with disable_auto_compactions and run CompactRange(), see "
                   "docs/operations.md",
                   cfd.GetName().c_str(), tables.size());
  }
  ROCKS_LOG_INFO(options_.logger,
                 "Column family \"%s\": the entries of the tables move %zu of "
                 "%zu tables away from the order of their largest sequence "
                 "numbers",
                 cfd.GetName().c_str(), num_moved, tables.size());
  return s;
}

Status DeltaRepair::AddFiles(ColumnFamilyData* cfd,
                             const NewFileNumber& new_number,
                             VersionEdit* edit) {
  Family* const family = FamilyOf(*cfd);
  if (family == nullptr) {
    return Status::OK();
  }
  if (family->name != cfd->GetName()) {
    return Status::Corruption("Delta files say that column family " +
                              std::to_string(family->id) + " is \"" +
                              family->name + "\", SST files that it is \"" +
                              cfd->GetName() + "\"");
  }
  const DeltaFileLiveness& lineage = family->lineage;
  DeltaEdit delta_edit;
  for (const auto* files : {&lineage.operands, &lineage.anchors}) {
    for (const DeltaFileProbe* file : *files) {
      delta_edit.AddFile(file->description);
    }
  }
  for (const DeltaFileDescription& file : family->flushed) {
    delta_edit.AddFile(file);
  }
  if (!family->missing_anchors_status.ok()) {
    return family->missing_anchors_status;
  }
  if (!family->missing_anchors.empty()) {
    family->SortMissingAnchors();
    ROCKS_LOG_WARN(options_.logger,
                   "Column family \"%s\": values or tombstones of %zu keys in "
                   "%zu tables hide operands for which there were no anchors. "
                   "They are added. Run CompactRange() when the database is "
                   "open, see docs/operations.md",
                   family->name.c_str(), family->missing_anchors.size(),
                   family->tables_without_anchors);
  }
  if (!lineage.anchors_to_copy.empty() || !family->missing_anchors.empty()) {
    DeltaFileDescription file;
    Status s = WriteAnchors(family, cfd, new_number, &file);
    if (!s.ok()) {
      return s;
    }
    delta_edit.AddFile(std::move(file));
  }
  delta_edit.SetSnapshotPiece({/*index=*/0, /*is_last=*/true, lineage.buckets});
  edit->SetDeltaEdit(std::move(delta_edit));
  return Status::OK();
}

// Anchors to write to a new file.
struct DeltaRepair::AnchorInput {
  ReadOptions read_options;                               // outlive `points`
  std::vector<std::unique_ptr<DeltaFileReader>> readers;  // outlive `points`
  std::unique_ptr<InternalIterator> points;
  // Without overlaps: files that a job has read and files that it has written
  // repeat the same ranges, perhaps in other pieces. nullptr: none.
  std::unique_ptr<FragmentedRangeTombstoneList> ranges;
};

Status DeltaRepair::OpenAnchors(const Family& family,
                                AnchorInput* input) const {
  const InternalKeyComparator& icmp = family.options.internal_comparator;
  input->read_options.fill_cache = false;
  input->read_options.total_order_seek = true;
  std::vector<InternalIterator*> iters;  // owned by the merging iterator
  std::vector<std::string> range_keys;
  std::vector<std::string> range_ends;
  Status s;
  for (const DeltaFileProbe* file : family.lineage.anchors_to_copy) {
    std::unique_ptr<DeltaFileReader> reader;
    s = file->Open(
        *file->NewTables(family.options, family.mutable_options, file_options_),
        &reader);
    if (!s.ok()) {
      break;
    }
    iters.push_back(
        reader->NewIterator(input->read_options, TableReaderCaller::kRepair));
    const auto of_file = reader->NewRangeAnchorIterator(kMaxSequenceNumber);
    if (of_file != nullptr) {
      for (of_file->SeekToFirst(); of_file->Valid(); of_file->Next()) {
        range_keys.push_back(InternalKey(of_file->start_key(), of_file->seq(),
                                         kTypeRangeDeletion)
                                 .Encode()
                                 .ToString());
        range_ends.push_back(of_file->end_key().ToString());
      }
    }
    input->readers.push_back(std::move(reader));
  }
  std::vector<std::string> no_values(family.missing_anchors.size());
  iters.push_back(
      new VectorIterator(family.missing_anchors, std::move(no_values), &icmp));
  input->points.reset(
      NewMergingIterator(&icmp, iters.data(), static_cast<int>(iters.size())));
  if (!range_keys.empty()) {
    // No snapshot is left, so the newest anchor of each range is sufficient.
    input->ranges = std::make_unique<FragmentedRangeTombstoneList>(
        std::make_unique<VectorIterator>(std::move(range_keys),
                                         std::move(range_ends), &icmp),
        icmp, /*for_compaction=*/true, std::vector<SequenceNumber>());
  }
  return s;
}

Status DeltaRepair::CopyAnchors(const AnchorInput& input,
                                DeltaFileBuilder* builder) {
  // No snapshot is left, so the newest anchor of each key is sufficient.
  std::string last_key;
  bool has_last_key = false;
  InternalIterator* const points = input.points.get();
  Status s;
  for (points->SeekToFirst(); s.ok() && points->Valid(); points->Next()) {
    const Slice user_key = ExtractUserKey(points->key());
    if (has_last_key && user_key == Slice(last_key)) {
      continue;
    }
    last_key = user_key.ToString();
    has_last_key = true;
    s = builder->AddAnchor(user_key, GetInternalKeySeqno(points->key()));
  }
  if (s.ok()) {
    s = points->status();
  }
  if (input.ranges == nullptr) {
    return s;
  }
  for (const auto& range : *input.ranges) {
    if (s.ok()) {
      s = builder->AddRangeAnchor(range.start_key, range.end_key,
                                  *input.ranges->seq_iter(range.seq_start_idx));
    }
  }
  return s;
}

Status DeltaRepair::WriteAnchors(Family* family, ColumnFamilyData* cfd,
                                 const NewFileNumber& new_number,
                                 DeltaFileDescription* description) {
  if (cfd->delta_store() == nullptr) {
    cfd->strata()->CreateDeltaStore();
  }
  AnchorInput input;
  Status s = OpenAnchors(*family, &input);
  DeltaFileBuilder::Options options;
  std::unique_ptr<DeltaFileBuilder> builder;
  if (s.ok()) {
    options.number = new_number();
    options.path_id =
        PathLayout::RecentDeltaPathId(cfd->GetLatestMutableCFOptions());
    options.kind = Kind::kAnchors;
    options.first_epoch = new_number();
    options.last_epoch = options.first_epoch;
    options.db_id = "DB Repairer";
    options.reason = TableFileCreationReason::kRecovery;
    options.file_options = file_options_;
    s = DeltaFileBuilder::Create(*cfd->delta_store()->tables(), options,
                                 &builder);
  }
  if (s.ok()) {
    s = CopyAnchors(input, builder.get());
  }
  if (s.ok()) {
    s = builder->Finish(description);
  }
  if (s.ok()) {
    OutputDirectories outputs;
    outputs.Add(options.path_id);
    s = outputs.Sync(*cfd);
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
