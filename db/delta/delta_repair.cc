//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_repair.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>
#include <utility>

#include "db/column_family.h"
#include "db/dbformat.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_meta.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_version.h"
#include "db/lookup_key.h"
#include "db/path_layout.h"
#include "db/path_sync.h"
#include "db/repair_paths.h"
#include "db/version_edit.h"
#include "file/filename.h"
#include "logging/logging.h"
#include "table/merging_iterator.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;

Status AsAdvice(const Status& s, const std::string& name) {
  if (s.IsNotSupported() || s.IsInvalidArgument()) {
    return s;  // it is not the file's fault
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
  std::vector<std::unique_ptr<FoundDeltaFile>> files;
  DeltaLineage lineage;

  // Of all files found, once a WAL needs them.
  bool has_readers = false;
  std::vector<std::shared_ptr<DeltaFileReader>> operand_readers;
  std::vector<std::shared_ptr<DeltaFileReader>> anchor_readers;
  // What became of WALs.
  std::vector<DeltaFileDescription> flushed;
  // Internal keys.
  std::vector<std::string> missing_anchors;
  Status missing_anchors_status;

  const Comparator* ucmp() const {
    return options.internal_comparator.user_comparator();
  }
  bool HasOperands() const { return !lineage.operands.empty(); }

  Status OpenReaders(const FileOptions& file_options) {
    if (has_readers) {
      return Status::OK();
    }
    operand_readers.clear();
    anchor_readers.clear();
    for (const auto& file : files) {
      std::unique_ptr<DeltaFileReader> reader;
      Status s = file->Open(
          *file->NewTables(options, mutable_options, file_options), &reader);
      if (!s.ok()) {
        return s;
      }
      (file->description.kind == Kind::kOperands ? operand_readers
                                                 : anchor_readers)
          .push_back(std::move(reader));
    }
    has_readers = true;
    return Status::OK();
  }

  ~Family() { missing_anchors_status.PermitUncheckedError(); }

  // There are operands of the key up to `seq` that count, and are not hidden by
  // anchors that do.
  Status HasOperandsUpTo(const Slice& user_key, SequenceNumber seq,
                         bool* result) const {
    ReadOptions read_options;
    read_options.fill_cache = false;
    const LookupKey key(user_key, seq);
    SequenceNumber newest = 0;
    *result = false;
    for (const auto& reader : operand_readers) {
      if (!Counts(*reader, lineage.operands) ||
          !reader->MayHaveKey(read_options, key)) {
        continue;
      }
      const std::unique_ptr<InternalIterator> iter(
          reader->NewIterator(read_options, TableReaderCaller::kRepair));
      iter->Seek(key.internal_key());
      if (iter->Valid() &&
          ucmp()->Equal(ExtractUserKey(iter->key()), user_key)) {
        newest = std::max(newest, GetInternalKeySeqno(iter->key()));
        *result = true;
      }
      if (!iter->status().ok()) {
        return iter->status();
      }
    }
    for (const auto& reader : anchor_readers) {
      if (!*result) {
        break;
      }
      if (!Counts(*reader, lineage.anchors) &&
          !Counts(*reader, lineage.anchors_to_copy)) {
        continue;
      }
      SequenceNumber anchor = 0;
      Status s = reader->NewestAnchor(read_options, key, &anchor);
      if (!s.ok()) {
        return s;
      }
      *result = anchor < newest;
    }
    return Status::OK();
  }

  // Is it one of them, or what became of a WAL?
  bool Counts(const DeltaFileReader& reader,
              const std::vector<const FoundDeltaFile*>& of_lineage) const {
    const uint64_t number = reader.description().number;
    return std::any_of(of_lineage.begin(), of_lineage.end(),
                       [number](const FoundDeltaFile* file) {
                         return file->description.number == number;
                       }) ||
           std::any_of(flushed.begin(), flushed.end(),
                       [number](const DeltaFileDescription& file) {
                         return file.number == number;
                       });
  }

  // Operands of the key up to *seq are in delta files, or hidden by anchors in
  // them: a flush takes all operands of a key that are not newer than the
  // newest one that it takes.
  Status NewestKnown(const Slice& user_key, SequenceNumber* seq) const {
    ReadOptions read_options;
    read_options.fill_cache = false;
    *seq = 0;
    const LookupKey key(user_key, kMaxSequenceNumber);
    for (const auto& reader : operand_readers) {
      if (!reader->MayHaveKey(read_options, key)) {
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

// Forward only, which is all that a flush needs.
class DeltaRepair::KnownOperandFilter : public InternalIterator {
 public:
  KnownOperandFilter(const Family* family, InternalIterator* input)
      : family_(family), input_(input) {}

  bool Valid() const override { return status_.ok() && input_->Valid(); }
  void SeekToFirst() override {
    Restart();
    input_->SeekToFirst();
    SkipKnown();
  }
  void Seek(const Slice& target) override {
    Restart();
    input_->Seek(target);
    SkipKnown();
  }
  void Next() override {
    assert(Valid());
    input_->Next();
    SkipKnown();
  }
  void SeekToLast() override { Refuse(); }
  void SeekForPrev(const Slice& /*target*/) override { Refuse(); }
  void Prev() override { Refuse(); }
  Slice key() const override { return input_->key(); }
  Slice value() const override { return input_->value(); }
  bool PrepareValue() override { return input_->PrepareValue(); }
  uint64_t write_unix_time() const override {
    return input_->write_unix_time();
  }
  Status status() const override {
    return status_.ok() ? input_->status() : status_;
  }
  void SetPinnedItersMgr(PinnedIteratorsManager* manager) override {
    input_->SetPinnedItersMgr(manager);
  }
  bool IsKeyPinned() const override { return input_->IsKeyPinned(); }
  bool IsValuePinned() const override { return input_->IsValuePinned(); }
  Status GetProperty(std::string name, std::string* value) override {
    return input_->GetProperty(std::move(name), value);
  }

 private:
  void Restart() {
    status_ = Status::OK();
    has_key_ = false;
  }
  void Refuse() {
    assert(false);
    status_ = Status::NotSupported("Forward only");
  }

  void SkipKnown() {
    for (; input_->Valid(); input_->Next()) {
      ParsedInternalKey parsed;
      // What is not one is not for us to judge.
      if (!ParseInternalKey(input_->key(), &parsed, /*log_err_key=*/false)
               .ok() ||
          parsed.type != kTypeMerge) {
        return;
      }
      if (!has_key_ || parsed.user_key != Slice(key_)) {
        key_ = parsed.user_key.ToString();
        has_key_ = true;
        status_ = family_->NewestKnown(key_, &newest_known_);
        if (!status_.ok()) {
          return;
        }
      }
      if (parsed.sequence > newest_known_) {
        return;
      }
    }
  }

  const Family* const family_;
  InternalIterator* const input_;
  Status status_;
  std::string key_;
  bool has_key_ = false;
  SequenceNumber newest_known_ = 0;
};

DeltaRepair::DeltaRepair(const ImmutableOptions& options,
                         const FileOptions& file_options)
    : options_(options), file_options_(file_options) {}

DeltaRepair::~DeltaRepair() = default;

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
      return Status::InvalidArgument(
          "Delta file #" + std::to_string(number) + " is in " +
          *directories.begin() + " and in " + *directories.rbegin());
    }
    auto file = std::make_unique<FoundDeltaFile>();
    Status s = FoundDeltaFile::Read(options_, file_options_,
                                    *directories.begin(), number, file.get());
    if (!s.ok()) {
      return AsAdvice(s, DeltaFileName(*directories.begin(), number));
    }
    const std::string& name = file->column_family_name;
    const ColumnFamilyOptions* const cf_options = options_of(name);
    if (cf_options == nullptr) {
      // As what is in its SST files.
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
                            std::to_string(file->column_family_id) +
                            " is \"" + name + "\", another file that it is \"" +
                            family->name + "\"");
    }
    s = RepairPaths::FindPathId(
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
  std::vector<const FoundDeltaFile*> files;
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
  DeltaLineage& lineage = family->lineage;
  Status s = DeltaLineage::Resolve(files, family->ucmp(), &lineage);
  if (!s.ok()) {
    return s;
  }
  for (const auto* unused : {&lineage.superseded, &lineage.anchors_to_copy}) {
    for (const FoundDeltaFile* file : *unused) {
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
  // As the MANIFEST is going to have it, to find out now whether it can.
  DeltaEdit edit;
  for (const auto* some : {&lineage.operands, &lineage.anchors}) {
    for (const FoundDeltaFile* file : *some) {
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

DeltaRepair::Family* DeltaRepair::FamilyOf(const ColumnFamilyData& cfd) {
  const auto family = families_.find(cfd.GetID());
  return family == families_.end() || !family->second->HasOperands()
             ? nullptr
             : family->second.get();
}

Status DeltaRepair::BeginFlush(ColumnFamilyData* cfd,
                               const FileDescriptor& sst_file,
                               InternalIterator* memtable,
                               const NewFileNumber& new_number,
                               WalFlush* wal_flush) {
  *wal_flush = WalFlush();
  wal_flush->input = memtable;
  Family* const family = FamilyOf(*cfd);
  if (family == nullptr) {
    return Status::OK();
  }
  Status s = family->OpenReaders(file_options_);
  if (!s.ok()) {
    return s;
  }
  wal_flush->filter = std::make_unique<KnownOperandFilter>(family, memtable);
  wal_flush->input = wal_flush->filter.get();
  if (cfd->delta_store() == nullptr) {
    cfd->CreateDeltaStore();
  }
  DeltaFlush::Job job;
  job.store = cfd->delta_store();
  job.earlier = family->operand_readers;
  job.keep_reader = true;
  job.epoch = sst_file.GetNumber();
  job.path_id = sst_file.GetPathId();
  job.new_file_number = new_number;
  wal_flush->flush = std::make_unique<DeltaFlush>(std::move(job));
  return s;
}

Status DeltaRepair::FinishFlush(const ColumnFamilyData& cfd,
                                const WalFlush& wal_flush) {
  if (wal_flush.flush == nullptr || !wal_flush.flush->HasFiles()) {
    return Status::OK();
  }
  const DeltaFlush& flush = *wal_flush.flush;
  Family* const family = FamilyOf(cfd);
  assert(family != nullptr);
  VersionEdit edit;
  flush.AddTo(&edit);
  OutputDirectories outputs;
  for (const DeltaFileDescription& file : edit.GetDeltaEdit()->files()) {
    family->flushed.push_back(file);
    largest_seq_ = std::max(largest_seq_, file.largest_seq);
    outputs.Add(file.path_id);
    if (file.kind == Kind::kAnchors) {
      std::unique_ptr<DeltaFileReader> reader;
      Status s = DeltaFileReader::Open(*cfd.delta_store()->tables(),
                                       ReadOptions(), file, &reader);
      if (!s.ok()) {
        return s;
      }
      family->anchor_readers.push_back(std::move(reader));
    }
  }
  if (flush.operand_reader() != nullptr) {
    family->operand_readers.push_back(flush.operand_reader());
  }
  return outputs.Sync(cfd);
}

void DeltaRepair::FoundTable(const ColumnFamilyData& cfd,
                             InternalIterator* table) {
  Family* const family = FamilyOf(cfd);
  if (family == nullptr) {
    return;
  }
  Status s = family->missing_anchors_status;
  if (s.ok()) {
    s = family->OpenReaders(file_options_);
  }
  const size_t had = family->missing_anchors.size();
  std::string last_key;
  for (table->SeekToFirst(); s.ok() && table->Valid(); table->Next()) {
    ParsedInternalKey parsed;
    // Of a key the newest one will do. What has no sequence number any more had
    // nothing to hide.
    if (!ParseInternalKey(table->key(), &parsed, /*log_err_key=*/false).ok() ||
        parsed.type == kTypeMerge || parsed.sequence == 0 ||
        (family->missing_anchors.size() > had && parsed.user_key == last_key)) {
      continue;
    }
    bool is_missing = false;
    s = family->HasOperandsUpTo(parsed.user_key, parsed.sequence, &is_missing);
    if (s.ok() && is_missing) {
      last_key = parsed.user_key.ToString();
      family->missing_anchors.push_back(
          InternalKey(parsed.user_key, parsed.sequence, kTypeDeletion)
              .Encode()
              .ToString());
    }
  }
  if (s.ok()) {
    s = table->status();
  }
  if (family->missing_anchors.size() > had) {
    ROCKS_LOG_INFO(options_.logger,
                   "Column family \"%s\": a table hides operands of %zu keys "
                   "for which there were no anchors",
                   family->name.c_str(), family->missing_anchors.size() - had);
  }
  family->missing_anchors_status = s;
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
  const DeltaLineage& lineage = family->lineage;
  DeltaEdit delta_edit;
  for (const auto* files : {&lineage.operands, &lineage.anchors}) {
    for (const FoundDeltaFile* file : *files) {
      delta_edit.AddFile(file->description);
    }
  }
  for (const DeltaFileDescription& file : family->flushed) {
    delta_edit.AddFile(file);
  }
  if (!family->missing_anchors_status.ok()) {
    return family->missing_anchors_status;
  }
  if (!lineage.anchors_to_copy.empty() || !family->missing_anchors.empty()) {
    DeltaFileDescription file;
    Status s = WriteAnchors(family, cfd, new_number, &file);
    if (!s.ok()) {
      return s;
    }
    delta_edit.AddFile(std::move(file));
  }
  delta_edit.SetSnapshotPiece({/*index=*/0, /*is_last=*/true,
                               lineage.buckets});
  edit->SetDeltaEdit(std::move(delta_edit));
  return Status::OK();
}

Status DeltaRepair::WriteAnchors(Family* family, ColumnFamilyData* cfd,
                                 const NewFileNumber& new_number,
                                 DeltaFileDescription* description) {
  if (cfd->delta_store() == nullptr) {
    cfd->CreateDeltaStore();
  }
  const InternalKeyComparator& icmp = family->options.internal_comparator;
  ReadOptions read_options;
  read_options.fill_cache = false;
  read_options.total_order_seek = true;
  struct RangeAnchor {
    std::string start;
    std::string end;
    SequenceNumber seq;
  };
  std::vector<RangeAnchor> ranges;
  std::vector<std::unique_ptr<DeltaFileReader>> readers;
  std::vector<InternalIterator*> iters;  // the merging one owns them
  Status s;
  for (const FoundDeltaFile* file : family->lineage.anchors_to_copy) {
    std::unique_ptr<DeltaFileReader> reader;
    s = file->Open(*file->NewTables(family->options, family->mutable_options,
                                    file_options_),
                   &reader);
    if (!s.ok()) {
      break;
    }
    iters.push_back(
        reader->NewIterator(read_options, TableReaderCaller::kRepair));
    const auto of_file = reader->NewRangeAnchorIterator(kMaxSequenceNumber);
    if (of_file != nullptr) {
      for (of_file->SeekToFirst(); of_file->Valid(); of_file->Next()) {
        ranges.push_back({of_file->start_key().ToString(),
                          of_file->end_key().ToString(), of_file->seq()});
      }
    }
    readers.push_back(std::move(reader));
  }
  std::vector<std::string> no_values(family->missing_anchors.size());
  iters.push_back(new VectorIterator(family->missing_anchors,
                                     std::move(no_values), &icmp));
  const std::unique_ptr<InternalIterator> points(NewMergingIterator(
      &icmp, iters.data(), static_cast<int>(iters.size())));
  DeltaFileBuilder::Options options;
  std::unique_ptr<DeltaFileBuilder> builder;
  if (s.ok()) {
    options.number = new_number();
    options.path_id =
        PathLayout::SstPathIdOr(cfd->GetLatestMutableCFOptions(), 0, 0);
    options.kind = Kind::kAnchors;
    options.first_epoch = new_number();
    options.last_epoch = options.first_epoch;
    options.db_id = "DB Repairer";
    options.reason = TableFileCreationReason::kRecovery;
    options.file_options = file_options_;
    s = DeltaFileBuilder::Create(*cfd->delta_store()->tables(), options,
                                 &builder);
  }
  if (!s.ok()) {
    return s;
  }

  // No snapshot is left: of a key the newest one will do.
  std::string last_key;
  bool has_last_key = false;
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
  std::sort(ranges.begin(), ranges.end(),
            [&icmp](const RangeAnchor& a, const RangeAnchor& b) {
              const int order =
                  icmp.user_comparator()->Compare(a.start, b.start);
              return order != 0 ? order < 0 : a.seq > b.seq;
            });
  for (const RangeAnchor& range : ranges) {
    if (s.ok()) {
      s = builder->AddRangeAnchor(range.start, range.end, range.seq);
    }
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
