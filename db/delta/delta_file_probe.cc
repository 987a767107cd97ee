//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_probe.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "db/dbformat.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_verifier.h"
#include "db/range_tombstone_fragmenter.h"
#include "file/filename.h"
#include "file/random_access_file_reader.h"
#include "rocksdb/file_checksum.h"
#include "table/block_based/block_based_table_builder.h"
#include "table/internal_iterator.h"
#include "table/meta_blocks.h"
#include "table/unique_id_impl.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;

constexpr size_t kFoundFileReadahead = size_t{2} << 20;

// Returns s; if it is an error, with the name of the file.
Status WithFileName(const Status& s, const std::string& name) {
  const char* const message = s.getState();
  return s.ok() || (message != nullptr && strstr(message, name.c_str()))
             ? s
             : AppendMessage(s, " in ", name);
}

Status ReadTable(const ImmutableOptions& options,
                 const FileOptions& file_options, const std::string& name,
                 uint64_t* size, std::unique_ptr<TableProperties>* properties) {
  FileSystem* const fs = options.fs.get();
  Status s = fs->GetFileSize(name, IOOptions(), size, /*dbg=*/nullptr);
  std::unique_ptr<RandomAccessFileReader> reader;
  if (s.ok()) {
    s = RandomAccessFileReader::Create(options.fs, name, file_options, &reader,
                                       /*dbg=*/nullptr);
  }
  if (s.ok()) {
    s = ReadTableProperties(reader.get(), *size, kBlockBasedTableMagicNumber,
                            options, ReadOptions(), properties);
  }
  return s;
}

}  // namespace

std::string DeltaFileProbe::Name() const {
  return DeltaFileName(directory, description.number);
}

Status DeltaFileProbe::Read(const ImmutableOptions& options,
                            const FileOptions& file_options,
                            const std::string& directory, uint64_t number,
                            DeltaFileProbe* file) {
  *file = DeltaFileProbe();
  file->directory = directory;
  DeltaFileDescription& description = file->description;
  description.number = number;
  description.file_checksum = kUnknownFileChecksum;
  description.file_checksum_func_name = kUnknownFileChecksumFuncName;
  std::unique_ptr<TableProperties> table;
  Status s =
      ReadTable(options, file_options, file->Name(), &description.size, &table);
  if (s.ok()) {
    s = DeltaFileProperties::Read(*table, &file->properties);
  }
  if (!s.ok()) {
    return WithFileName(s, file->Name());
  }
  file->column_family_id = static_cast<uint32_t>(table->column_family_id);
  file->column_family_name = table->column_family_name;
  file->comparator_name = table->comparator_name;
  description.kind = file->properties.kind;
  description.tier = file->properties.tier;
  description.first_epoch = file->properties.first_epoch;
  description.last_epoch = file->properties.last_epoch;
  description.has_global_seq = DeltaFileProperties::HasGlobalSeq(*table);
  description.num_range_anchors = table->num_range_deletions;
  if (table->num_entries < table->num_range_deletions ||
      table->raw_key_size < table->num_entries * kNumInternalBytes) {
    return Status::Corruption(file->Name(), "inconsistent numbers of entries");
  }
  description.num_entries = table->num_entries - table->num_range_deletions;
  description.raw_bytes = table->raw_key_size -
                          table->num_entries * kNumInternalBytes +
                          table->raw_value_size;
  if (!GetSstInternalUniqueId(table->db_id, table->db_session_id,
                              table->orig_file_number, &description.unique_id)
           .ok()) {
    description.unique_id = kNullUniqueId64x2;
  }
  return s;
}

std::unique_ptr<DeltaTableFactory> DeltaFileProbe::NewTables(
    const ImmutableOptions& options, const MutableCFOptions& cf_options,
    const FileOptions& file_options) const {
  ImmutableOptions of_directory = options;
  of_directory.cf_paths = {DbPath(directory, 0)};
  DeltaTableFamily family(of_directory);
  family.id = column_family_id;
  family.name = column_family_name;
  family.file_options = file_options;
  return NewUncachedDeltaTables(family, cf_options);
}

Status DeltaFileProbe::Open(const DeltaTableFactory& tables,
                            std::unique_ptr<DeltaFileReader>* reader) const {
  if (tables.settings()->ucmp()->Name() != comparator_name) {
    return Status::InvalidArgument(Name() + " is ordered by " +
                                   comparator_name + ", not by " +
                                   tables.settings()->ucmp()->Name());
  }
  ReadOptions read_options;
  read_options.fill_cache = false;
  return DeltaFileReader::Open(tables, read_options, description, reader);
}

// The sequence numbers of the entries that were read so far.
struct DeltaFileProbe::SeqRange {
  SequenceNumber smallest = kMaxSequenceNumber;
  SequenceNumber largest = 0;

  void Add(SequenceNumber seq) {
    smallest = std::min(smallest, seq);
    largest = std::max(largest, seq);
  }
};

Status DeltaFileProbe::Scan(const DeltaTableFactory& tables,
                            const Visitor& visit) {
  std::unique_ptr<DeltaFileReader> reader;
  Status s = Open(tables, &reader);
  if (!s.ok()) {
    return s;
  }
  const auto settings = tables.settings();
  SeqRange seqs;
  s = ScanPoints(*settings, *reader, visit, &seqs);
  if (!s.ok()) {
    return s;
  }
  ScanRanges(*settings->ucmp(), *reader, visit, &seqs);
  description.smallest_seq = seqs.smallest;
  description.largest_seq = seqs.largest;
  return s;
}

Status DeltaFileProbe::ScanPoints(const DeltaTableSettings& settings,
                                  const DeltaFileReader& reader,
                                  const Visitor& visit, SeqRange* seqs) {
  const Comparator* const ucmp = settings.ucmp();
  const auto& buckets = properties.buckets;
  bucket_bytes.assign(buckets.size(), 0);
  size_t bucket = 0;
  uint64_t num_entries = 0;
  ReadOptions read_options;
  read_options.fill_cache = false;
  read_options.total_order_seek = true;
  const std::unique_ptr<InternalIterator> iter(
      reader.NewIterator(read_options, TableReaderCaller::kRepair,
                         /*arena=*/nullptr, kFoundFileReadahead));
  const ValueType type =
      description.kind == Kind::kOperands ? kTypeMerge : kTypeDeletion;
  std::string last_key;
  for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
    const Slice key = iter->key();
    ParsedInternalKey parsed;
    const Status s = ParseInternalKey(key, &parsed, /*log_err_key=*/false);
    if (!s.ok() || parsed.type != type ||
        (num_entries > 0 && settings.icmp().Compare(last_key, key) >= 0)) {
      return Status::Corruption(Name(), "has an entry that does not belong");
    }
    if (num_entries++ == 0) {
      description.smallest = parsed.user_key.ToString();
    }
    last_key.assign(key.data(), key.size());
    seqs->Add(parsed.sequence);
    while (bucket + 1 < buckets.size() &&
           ucmp->Compare(parsed.user_key, buckets[bucket + 1].lower_bound) >=
               0) {
      ++bucket;
    }
    if (!buckets.empty()) {
      const uint64_t bytes = parsed.user_key.size() + iter->value().size();
      // As in a Version: 0 means that there are no operands.
      bucket_bytes[bucket] =
          std::max<uint64_t>(bucket_bytes[bucket] + bytes, 1);
    }
    if (visit) {
      visit(parsed.user_key, parsed.sequence, iter->value(), nullptr);
    }
  }
  Status s = WithFileName(iter->status(), Name());
  if (s.ok() && num_entries != description.num_entries) {
    s = Status::Corruption(Name(),
                           "has another number of entries than it says");
  }
  if (s.ok() && num_entries > 0) {
    description.largest = ExtractUserKey(last_key).ToString();
  }
  return s;
}

void DeltaFileProbe::ScanRanges(const Comparator& ucmp,
                                const DeltaFileReader& reader,
                                const Visitor& visit, SeqRange* seqs) {
  const std::unique_ptr<FragmentedRangeTombstoneIterator> ranges =
      reader.NewRangeAnchorIterator(kMaxSequenceNumber);
  if (ranges == nullptr) {
    return;
  }
  bool is_first = description.num_entries == 0;
  for (ranges->SeekToFirst(); ranges->Valid(); ranges->Next()) {
    const Slice start = ranges->start_key();
    const Slice end = ranges->end_key();
    if (is_first || ucmp.Compare(start, description.smallest) < 0) {
      description.smallest = start.ToString();
    }
    if (is_first || ucmp.Compare(end, description.largest) > 0) {
      description.largest = end.ToString();
    }
    is_first = false;
    seqs->Add(ranges->seq());
    if (visit) {
      visit(start, ranges->seq(), Slice(), &end);
    }
  }
}

}  // namespace ROCKSDB_NAMESPACE
