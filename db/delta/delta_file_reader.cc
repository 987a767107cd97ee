//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_reader.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "db/dbformat.h"
#include "db/delta/delta_file_properties.h"
#include "db/merge_context.h"
#include "db/strata/point_read.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "file/random_access_file_reader.h"
#include "file/read_write_util.h"
#include "monitoring/perf_context_imp.h"
#include "monitoring/statistics_impl.h"
#include "table/block_based/block_based_table_reader.h"
#include "table/get_context.h"
#include "table/table_builder.h"
#include "table/table_reader.h"
#include "util/cast_util.h"
#include "util/stop_watch.h"
#include "util/strata/overlapped_reads.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;

// Returns how many bytes at the end of a file are read at once when it is
// opened, if the filter is not unusually large: about the size of filter, index
// and properties with small operands. The rest of them is read block by block.
uint64_t TailSize(uint64_t file_size) {
  return std::min(file_size, (uint64_t{8} << 10) + file_size / 16);
}

// Returns the description for a reader, which must not own itself.
DeltaFileDescription WithoutReader(DeltaFileDescription description) {
  description.opened.reset();
  return description;
}

}  // namespace

Status DeltaFileReader::Open(const DeltaTableFactory& tables,
                             const ReadOptions& read_options,
                             const DeltaFileDescription& description,
                             std::unique_ptr<DeltaFileReader>* reader) {
  if (description.number == 0) {
    return Status::InvalidArgument("A delta file has a number");
  }
  return OpenAs(DeltaFileName(tables.settings()->ioptions().cf_paths,
                              description.number, description.path_id),
                tables, read_options, description, reader);
}

Status DeltaFileReader::OpenAs(const std::string& file_name,
                               const DeltaTableFactory& tables,
                               const ReadOptions& read_options,
                               const DeltaFileDescription& description,
                               std::unique_ptr<DeltaFileReader>* reader) {
  std::unique_ptr<DeltaFileReader> result(
      new DeltaFileReader(tables.settings(), description, file_name));
  Status s = result->OpenTable(read_options);
  if (s.ok()) {
    s = result->CheckProperties();
  }
  if (!s.ok()) {
    RecordTick(result->settings_->ioptions().stats, NO_FILE_ERRORS);
    return result->Named(s);
  }
  *reader = std::move(result);
  return s;
}

DeltaFileReader::DeltaFileReader(
    std::shared_ptr<const DeltaTableSettings> settings,
    const DeltaFileDescription& description, const std::string& file_name)
    : settings_(std::move(settings)),
      description_(WithoutReader(description)),
      file_name_(file_name) {}

DeltaFileReader::~DeltaFileReader() = default;

Status DeltaFileReader::OpenTable(const ReadOptions& read_options) {
  const ImmutableOptions& ioptions = settings_->ioptions();
  const DeltaTableFamily& family = *settings_->family;
  FileOptions file_options = family.file_options;
  file_options.file_checksum = description_.file_checksum;
  file_options.file_checksum_func_name = description_.file_checksum_func_name;
  IOStatus io_s = PrepareIOFromReadOptions(read_options, ioptions.clock,
                                           file_options.io_options);
  std::unique_ptr<FSRandomAccessFile> file;
  if (io_s.ok()) {
    io_s = ioptions.fs->NewRandomAccessFile(file_name_, file_options, &file,
                                            /*dbg=*/nullptr);
  }
  uint64_t size = 0;
  if (io_s.ok()) {
    RecordTick(ioptions.stats, NO_FILE_OPENS);
    io_s = GetFileSizeFromOpenFileOrPath(file.get(), ioptions.fs.get(),
                                         file_name_, &size, /*dbg=*/nullptr,
                                         FileSizeFallback::kNotSupportedOnly);
  }
  if (!io_s.ok()) {
    return io_s;
  }
  // Checked before anything is read, as blocks are located from the end of the
  // file.
  if (size != description_.size) {
    return Status::Corruption(
        file_name_, "has " + std::to_string(size) + " bytes instead of " +
                        std::to_string(description_.size));
  }
  if (ioptions.advise_random_on_open) {
    file->Hint(FSRandomAccessFile::kRandom);
  }
  if (settings_->family->overlaps_reads) {
    auto overlapped = std::make_unique<OverlappedReadFile>(std::move(file));
    file_ = overlapped.get();
    file = std::move(overlapped);
  }
  StopWatch watch(ioptions.clock, ioptions.stats, TABLE_OPEN_IO_MICROS);
  auto file_reader = std::make_unique<RandomAccessFileReader>(
      std::move(file), file_name_, ioptions.clock, family.io_tracer,
      ioptions.stats, SST_READ_MICROS, /*file_read_hist=*/nullptr,
      ioptions.rate_limiter.get(), ioptions.listeners,
      ioptions.default_temperature);
  file_reader->SetPathReadStats(
      family.path_read_stats,
      PathReadStats::Slot(PathReadStats::FileKind::kDelta,
                          description_.path_id));
  const MutableCFOptions& options = settings_->options;
  const TableReaderOptions table_options(
      ioptions, options.prefix_extractor, options.compression_manager.get(),
      family.file_options, settings_->icmp(),
      options.block_protection_bytes_per_key, /*_skip_filters=*/false,
      /*_immortal=*/false, /*_force_direct_prefetch=*/false, /*_level=*/0,
      family.block_cache_tracer, /*_max_file_size_for_l0_meta_pin=*/0,
      family.db_session_id, description_.number,
      ioptions.verify_sst_unique_id_in_manifest ? description_.unique_id
                                                : kNullUniqueId64x2,
      description_.largest_seq, TailSize(size));
  return options.table_factory->NewTableReader(
      read_options, table_options, std::move(file_reader), size, &table_,
      /*prefetch_index_and_filter_in_cache=*/true);
}

Status DeltaFileReader::CheckProperties() const {
  const std::shared_ptr<const TableProperties> table_properties =
      table_->GetTableProperties();
  DeltaFileProperties properties;
  Status s = DeltaFileProperties::Read(*table_properties, &properties);
  if (!s.ok()) {
    return s;
  }
  if (properties.kind != description_.kind) {
    return Corrupt("another kind of delta file than the MANIFEST says");
  }
  if (properties.tier != description_.tier) {
    return Corrupt("another tier than the MANIFEST says");
  }
  if (!properties.BucketsAreInOrder(*settings_->ucmp())) {
    return Corrupt("its buckets are out of order");
  }
  const bool has_global_seq =
      DeltaFileProperties::HasGlobalSeq(*table_properties);
  if (has_global_seq != description_.has_global_seq) {
    return Corrupt("a global sequence number that contradicts the MANIFEST");
  }
  // With a global sequence number only the MANIFEST has the epochs.
  if (!has_global_seq && (properties.first_epoch != description_.first_epoch ||
                          properties.last_epoch != description_.last_epoch)) {
    return Corrupt("its epochs are not those in the MANIFEST");
  }
  const uint64_t num_entries =
      description_.num_entries + description_.num_range_anchors;
  if (table_properties->num_entries != num_entries ||
      table_properties->num_range_deletions != description_.num_range_anchors) {
    return Corrupt("another number of entries than the MANIFEST says");
  }
  if ((description_.num_range_anchors != 0) !=
      (NewRangeAnchorIterator(kMaxSequenceNumber) != nullptr)) {
    return Corrupt("its range anchors are missing");
  }
  const uint64_t num_of_kind = description_.kind == Kind::kOperands
                                   ? table_properties->num_merge_operands
                                   : table_properties->num_deletions;
  if (num_of_kind != num_entries) {
    return Corrupt("entries of another kind");
  }
  return s;
}

bool DeltaFileReader::MayHaveKey(const ReadOptions& read_options,
                                 const LookupKey& key) const {
  return description_.num_entries != 0 &&
         table_->MayHaveNonDirect(read_options, key.internal_key());
}

bool DeltaFileReader::LacksFilter() const {
  using Rep = BlockBasedTable::Rep;
  // DeltaTableFactory makes no other tables.
  const Rep& rep =
      *static_cast_with_check<const BlockBasedTable>(table_.get())->get_rep();
  return rep.filter == nullptr && rep.filter_type != Rep::FilterType::kNoFilter;
}

Status DeltaFileReader::Get(const ReadOptions& read_options,
                            const LookupKey& key,
                            GetContext* get_context) const {
  const Status s =
      table_->Get(read_options, key.internal_key(), get_context,
                  /*prefix_extractor=*/nullptr, /*skip_filters=*/true);
  // A block that is not in the cache and must not be read is not counted as a
  // miss: DeltaRead asks again when it may be read.
  if (settings_->ioptions().stats != nullptr && !s.IsIncomplete()) {
    get_context->ReportCounters();
  }
  return Named(s);
}

Status DeltaFileReader::CollectOperands(const ReadOptions& read_options,
                                        const LookupKey& key,
                                        DeltaOperands* operands) const {
  if (description_.kind != Kind::kOperands) {
    return Status::InvalidArgument(file_name_, "has no operands");
  }
  const size_t old_size = operands->size();
  const ImmutableOptions& ioptions = settings_->ioptions();
  PointRead point_read(operands);
  MergeContext merge_context;
  merge_context.point_read = &point_read;
  GetContext get_context(
      settings_->ucmp(), /*merge_operator=*/nullptr, ioptions.logger,
      ioptions.stats, GetContext::kNotFound, key.user_key(), /*value=*/nullptr,
      /*columns=*/nullptr, /*value_found=*/nullptr, &merge_context,
      /*do_merge=*/false, /*max_covering_tombstone_seq=*/nullptr,
      ioptions.clock);
  Status s = Get(read_options, key, &get_context);
  if (s.ok() && get_context.State() != GetContext::kNotFound &&
      get_context.State() != GetContext::kMerge) {
    s = Corrupt("not an operand");
  }
  if (!s.ok()) {
    operands->Truncate(old_size);
    return s;
  }
  // They are counted when they are merged, if at all.
  PERF_COUNTER_ADD(internal_merge_point_lookup_count,
                   old_size - operands->size());
  return s;
}

Status DeltaFileReader::NewestAnchor(const ReadOptions& read_options,
                                     const LookupKey& key,
                                     SequenceNumber* seq) const {
  *seq = 0;
  if (description_.kind != Kind::kAnchors) {
    return Status::InvalidArgument(file_name_, "has no anchors");
  }
  if (description_.num_range_anchors != 0) {
    const std::unique_ptr<FragmentedRangeTombstoneIterator> ranges =
        NewRangeAnchorIterator(GetInternalKeySeqno(key.internal_key()));
    assert(ranges != nullptr);
    *seq = ranges->MaxCoveringTombstoneSeqnum(key.user_key());
  }
  if (!MayHaveKey(read_options, key)) {
    return Status::OK();
  }
  const ImmutableOptions& ioptions = settings_->ioptions();
  SequenceNumber point = 0;
  MergeContext merge_context;
  GetContext get_context(
      settings_->ucmp(), /*merge_operator=*/nullptr, ioptions.logger,
      ioptions.stats, GetContext::kNotFound, key.user_key(), /*value=*/nullptr,
      /*columns=*/nullptr, /*value_found=*/nullptr, &merge_context,
      /*do_merge=*/true, /*max_covering_tombstone_seq=*/nullptr, ioptions.clock,
      &point);
  const Status s = Get(read_options, key, &get_context);
  if (!s.ok() || get_context.State() == GetContext::kNotFound) {
    return s;
  }
  if (get_context.State() != GetContext::kDeleted) {
    return Corrupt("not an anchor");
  }
  *seq = std::max(*seq, point);
  return s;
}

bool DeltaFileReader::BeginRead(const ReadOptions& read_options,
                                const LookupKey& key,
                                OverlappedReads* reads) const {
  uint64_t offset = 0;
  size_t size = 0;
  IOOptions io_options;
  return file_ != nullptr &&
         table_->FindPartToRead(read_options, key.internal_key(), &offset,
                                &size) &&
         PrepareIOFromReadOptions(read_options, settings_->ioptions().clock,
                                  io_options)
             .ok() &&
         reads->Begin(*file_, offset, size, io_options,
                      read_options.request_id);
}

InternalIterator* DeltaFileReader::NewIterator(
    const ReadOptions& read_options, TableReaderCaller caller, Arena* arena,
    size_t compaction_readahead_size) const {
  return table_->NewIterator(read_options, /*prefix_extractor=*/nullptr, arena,
                             /*skip_filters=*/true, caller,
                             compaction_readahead_size);
}

std::unique_ptr<FragmentedRangeTombstoneIterator>
DeltaFileReader::NewRangeAnchorIterator(SequenceNumber read_seq) const {
  return std::unique_ptr<FragmentedRangeTombstoneIterator>(
      table_->NewRangeTombstoneIterator(read_seq, /*timestamp=*/nullptr));
}

uint64_t DeltaFileReader::ApproximateOffsetOf(const ReadOptions& read_options,
                                              const Slice& user_key,
                                              TableReaderCaller caller) const {
  if (description_.num_entries == 0) {
    return 0;  // the table would guess
  }
  const InternalKey key(user_key, kMaxSequenceNumber, kValueTypeForSeek);
  return table_->ApproximateOffsetOf(read_options, key.Encode(), caller);
}

Status DeltaFileReader::VerifyChecksum(const ReadOptions& read_options,
                                       bool meta_blocks_only) const {
  return Named(table_->VerifyChecksum(
      read_options, TableReaderCaller::kUserVerifyChecksum, meta_blocks_only));
}

std::shared_ptr<const TableProperties> DeltaFileReader::GetTableProperties()
    const {
  return table_->GetTableProperties();
}

size_t DeltaFileReader::ApproximateMemoryUsage() const {
  return table_->ApproximateMemoryUsage();
}

void DeltaFileReader::MarkObsolete(uint32_t uncache_aggressiveness) {
  table_->MarkObsolete(uncache_aggressiveness);
}

Status DeltaFileReader::Named(const Status& s) const {
  if (!s.IsCorruption() && !s.IsNotSupported()) {
    return s;
  }
  const char* const message = s.getState();
  if (message == nullptr) {
    return s.IsCorruption() ? Corrupt("damaged")
                            : Status::NotSupported(file_name_);
  }
  return strstr(message, file_name_.c_str()) != nullptr
             ? s
             : AppendMessage(s, " in ", file_name_);
}

Status DeltaFileReader::Corrupt(const char* what) const {
  return Status::Corruption(file_name_, what);
}

}  // namespace ROCKSDB_NAMESPACE
