//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Reads tables with right checksums that a correct builder of delta files would
// not write: other types of entries, a damaged property strata.delta or none, a
// global sequence number or none, and a description that contradicts the file.
//
// The promise: a reader opens a file only if the property, the numbers and the
// types of entries are those of the description. It finds then exactly the
// entries that are in the file. What repairs use reads all of them as well, or
// returns an error.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/dbformat.h"
#include "db/delta/delta_file_probe.h"
#include "db/delta/delta_file_properties.h"
#include "db/delta/delta_file_reader.h"
#include "file/writable_file_writer.h"
#include "fuzz/strata/delta_fuzz_family.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "fuzz/strata/given_properties.h"
#include "rocksdb/comparator.h"
#include "rocksdb/table_properties.h"
#include "table/sst_file_writer_collectors.h"
#include "table/table_builder.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::DeltaFuzzFamily;
using fuzz::FuzzInput;
using fuzz::GivenPropertiesFactory;
using fuzz::OkOrNamed;
using fuzz::Require;
using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

constexpr uint64_t kMaxSeq = 255;

// What a table has. Entries are in the order of internal keys.
struct Table {
  struct Point {
    ValueType type = kTypeMerge;
    std::string value;
  };
  // By key, then by sequence number, the largest first.
  std::map<std::pair<std::string, uint64_t>, Point> points;
  // By start, then by sequence number, the largest first. The value is the end.
  std::map<std::pair<std::string, uint64_t>, std::string> ranges;
  UserCollectedProperties properties;

  static SequenceNumber SeqOf(const std::pair<std::string, uint64_t>& key) {
    return kMaxSeq - key.second;
  }
  // Returns the sequence numbers of the key up to read_seq, the newest first.
  std::vector<SequenceNumber> Seqs(const std::string& key,
                                   SequenceNumber read_seq) const {
    std::vector<SequenceNumber> seqs;
    for (const auto& [name, point] : points) {
      if (name.first == key && SeqOf(name) <= read_seq) {
        seqs.push_back(SeqOf(name));
      }
    }
    return seqs;
  }
  SequenceNumber NewestRange(const std::string& key,
                             SequenceNumber read_seq) const {
    SequenceNumber newest = 0;
    for (const auto& [start, end] : ranges) {
      if (start.first <= key && key < end && SeqOf(start) <= read_seq) {
        newest = std::max(newest, SeqOf(start));
      }
    }
    return newest;
  }
};

DeltaFileProperties MakeProperties(FuzzInput* input) {
  DeltaFileProperties properties;
  const uint8_t shape = input->Byte();
  properties.kind = shape % 2 == 0 ? Kind::kOperands : Kind::kAnchors;
  properties.tier = static_cast<Tier>(shape / 2 % 3);
  if (properties.tier == Tier::kSorted) {
    const int num_buckets = input->Byte() % 4;
    for (int n = 1; n <= num_buckets; ++n) {
      DeltaFileProperties::Bucket bucket;
      bucket.lower_bound = std::to_string(n) + input->Key();
      bucket.floor_epoch = input->Number();
      properties.buckets.push_back(bucket);
    }
    if (!properties.buckets.empty() && input->Bool()) {
      properties.end = "~";
    }
  } else {
    properties.first_epoch = input->Byte();
    properties.last_epoch = properties.first_epoch == 0
                                ? 0
                                : properties.first_epoch + input->Byte();
  }
  if (properties.HasOperandsNumber()) {
    properties.operands_number = input->Number();
  }
  return properties;
}

// Most entries are of the type that `kind` wants.
Table MakeTable(FuzzInput* input, Kind kind, bool has_global_seq) {
  Table table;
  const auto seq_rank = [&] {
    return has_global_seq ? kMaxSeq : kMaxSeq - input->Byte();
  };
  for (int n = input->Byte() % 16; n > 0; --n) {
    const std::string key = input->Key(2);
    const uint64_t rank = seq_rank();
    const uint8_t how = input->Byte();
    Table::Point point;
    point.type = kind == Kind::kOperands ? kTypeMerge : kTypeDeletion;
    if (how % 32 == 1) {
      point.type = kTypeValue;
    } else if (how % 32 == 2) {
      point.type = kind == Kind::kOperands ? kTypeDeletion : kTypeMerge;
    }
    if (point.type != kTypeDeletion) {
      point.value = std::string(how, 'v');
    }
    table.points[{key, rank}] = point;
  }
  if (kind == Kind::kAnchors || input->Byte() % 32 == 1) {
    for (int n = input->Byte() % 4; n > 0; --n) {
      const std::string start = input->Key();
      const std::string end = start + "~" + input->Key();
      table.ranges[{start, seq_rank()}] = end;
    }
  }
  return table;
}

// Writes the table and returns its size.
uint64_t Write(const DeltaFuzzFamily& family, const Table& table) {
  const std::string name = DeltaFuzzFamily::file_name();
  std::unique_ptr<FSWritableFile> file;
  Require(
      family.fs()->NewWritableFile(name, FileOptions(), &file, nullptr).ok());
  WritableFileWriter writer(std::move(file), name, FileOptions());
  const auto settings = family.tables().settings();
  InternalTblPropCollFactories factories;
  factories.push_back(
      std::make_unique<GivenPropertiesFactory>(table.properties));
  const ReadOptions read_options;
  const WriteOptions write_options;
  // The builder's options refer to all of these.
  const CompressionOptions compression_options;
  const TableBuilderOptions options(
      settings->ioptions(), settings->options, read_options, write_options,
      settings->icmp(), &factories, kNoCompression, compression_options,
      settings->family->id, settings->family->name, /*_level=*/0,
      /*_newest_key_time=*/0, /*_is_bottommost=*/false,
      TableFileCreationReason::kMisc, /*_oldest_key_time=*/0,
      /*_file_creation_time=*/0, "the DB", settings->family->db_session_id,
      /*_target_file_size=*/0, DeltaFuzzFamily::kFileNumber);
  const std::unique_ptr<TableBuilder> builder(
      settings->options.table_factory->NewTableBuilder(options, &writer));
  for (const auto& [key, point] : table.points) {
    const InternalKey internal(key.first, Table::SeqOf(key), point.type);
    builder->Add(internal.Encode(), point.value);
  }
  for (const auto& [start, end] : table.ranges) {
    const InternalKey internal(start.first, Table::SeqOf(start),
                               kTypeRangeDeletion);
    builder->Add(internal.Encode(), end);
  }
  Require(builder->Finish().ok());
  Require(writer.Close(IOOptions()).ok());
  return builder->FileSize();
}

// Returns the description of the file, of which the input may falsify parts.
DeltaFileDescription Describe(FuzzInput* input, const Table& table,
                              const DeltaFileProperties& properties,
                              bool has_global_seq, uint64_t size) {
  DeltaFileDescription description;
  description.number = DeltaFuzzFamily::kFileNumber;
  description.size = size;
  description.kind = properties.kind;
  description.tier = properties.tier;
  description.first_epoch = properties.first_epoch;
  description.last_epoch = properties.last_epoch;
  description.num_entries = table.points.size();
  description.num_range_anchors = table.ranges.size();
  description.has_global_seq = has_global_seq;
  // The sequence number of all entries if the file has a global one.
  description.largest_seq = 40;
  switch (input->Byte() % 16) {
    case 1:
      description.kind = static_cast<Kind>(1 + input->Byte() % 2);
      break;
    case 2:
      description.tier = static_cast<Tier>(input->Byte() % 3);
      break;
    case 3:
      description.first_epoch = input->Byte();
      break;
    case 4:
      description.last_epoch = input->Number();
      break;
    case 5:
      description.num_entries = input->Byte();
      break;
    case 6:
      description.num_range_anchors = input->Byte();
      break;
    case 7:
      description.has_global_seq = input->Bool();
      break;
    default:
      break;
  }
  return description;
}

// Checks that a file that was opened is the described one.
void CheckDescribed(const Table& table,
                    const DeltaFileDescription& description) {
  TableProperties table_properties;
  table_properties.user_collected_properties = table.properties;
  DeltaFileProperties properties;
  Require(DeltaFileProperties::Read(table_properties, &properties).ok());
  Require(properties.kind == description.kind);
  Require(properties.tier == description.tier);
  Require(description.has_global_seq ==
          (table.properties.count(ExternalSstFilePropertyNames::kVersion) > 0));
  Require(!description.has_global_seq || (properties.kind == Kind::kAnchors &&
                                          properties.tier == Tier::kFlushed));
  Require((properties.first_epoch == 0) ==
          (description.has_global_seq || properties.tier == Tier::kSorted));
  Require(properties.BucketsAreInOrder(*BytewiseComparator()));
  Require(description.has_global_seq ||
          (properties.first_epoch == description.first_epoch &&
           properties.last_epoch == description.last_epoch));
  Require(description.num_entries == table.points.size());
  Require(description.num_range_anchors == table.ranges.size());
  Require(table.ranges.empty() || description.kind == Kind::kAnchors);
  const ValueType type =
      description.kind == Kind::kOperands ? kTypeMerge : kTypeDeletion;
  for (const auto& point : table.points) {
    Require(point.second.type == type);
  }
}

void CheckReads(const DeltaFileReader& reader, const Table& table,
                const std::string& key, SequenceNumber read_seq) {
  const DeltaFileDescription& description = reader.description();
  if (description.kind == Kind::kOperands) {
    const auto seqs = table.Seqs(key, read_seq);
    DeltaOperands operands;
    Require(
        reader.CollectOperands(ReadOptions(), key, read_seq, &operands).ok());
    Require(operands.size() == seqs.size());
    for (size_t i = 0; i < seqs.size(); ++i) {
      Require(operands[i].seq == seqs[i]);
      Require(operands[i].value ==
              Slice(table.points.at({key, kMaxSeq - seqs[i]}).value));
    }
    return;
  }
  // With a global sequence number there is one entry of each key, which has
  // this number, and 0 in the file.
  const bool is_global = description.has_global_seq;
  const bool is_visible = !is_global || description.largest_seq <= read_seq;
  const auto seqs = is_visible ? table.Seqs(key, is_global ? kMaxSeq : read_seq)
                               : std::vector<SequenceNumber>();
  SequenceNumber newest = 0;
  Require(reader.NewestAnchor(ReadOptions(), key, read_seq, &newest).ok());
  if (is_global) {
    const bool in_range = std::any_of(
        table.ranges.begin(), table.ranges.end(), [&](const auto& range) {
          return range.first.first <= key && key < range.second;
        });
    const bool found = is_visible && (in_range || !seqs.empty());
    Require(newest == (found ? description.largest_seq : 0));
  } else {
    Require(newest == std::max(seqs.empty() ? 0 : seqs.front(),
                               table.NewestRange(key, read_seq)));
  }
}

// Reads the file as a repair does.
void CheckProbe(const DeltaFuzzFamily& family, const Table& table) {
  DeltaFileProbe probe;
  if (!OkOrNamed(DeltaFileProbe::Read(family.ioptions(), FileOptions(),
                                      DeltaFuzzFamily::directory(),
                                      DeltaFuzzFamily::kFileNumber, &probe))
           .ok()) {
    return;
  }
  const auto tables =
      probe.NewTables(family.ioptions(), family.cf_options(), FileOptions());
  size_t num_points = 0;
  auto next = table.points.begin();
  const Status s =
      OkOrNamed(probe.Scan(*tables, [&](const Slice& key, SequenceNumber seq,
                                        const Slice& value, const Slice* end) {
        if (end != nullptr) {
          return;
        }
        Require(next != table.points.end());
        Require(key == Slice(next->first.first));
        Require(value == Slice(next->second.value));
        Require(seq == Table::SeqOf(next->first));
        ++next;
        ++num_points;
      }));
  if (s.ok()) {
    Require(num_points == table.points.size());
    CheckDescribed(table, probe.description);
  }
}

void FuzzDeltaContents(FuzzInput* input) {
  static auto* const family = new DeltaFuzzFamily;
  const DeltaFileProperties properties = MakeProperties(input);
  const uint8_t how = input->Byte();
  const bool has_global_seq = how % 8 == 1;
  Table table = MakeTable(input, properties.kind, has_global_seq);
  if (table.points.empty() && table.ranges.empty()) {
    return;  // no such table is ever written
  }
  std::string encoded;
  properties.EncodeTo(&encoded);
  if (how % 8 == 2) {
    fuzz::Damage(input, /*may_resize=*/true, &encoded);
  }
  if (how % 8 != 3) {
    table.properties[DeltaFileProperties::kPropertyName] = encoded;
  }
  if (has_global_seq) {
    std::string* const version =
        &table.properties[ExternalSstFilePropertyNames::kVersion];
    PutFixed32(version, 2);
    PutFixed64(&table.properties[ExternalSstFilePropertyNames::kGlobalSeqno],
               0);
  }
  const uint64_t size = Write(*family, table);
  const DeltaFileDescription description =
      Describe(input, table, properties, has_global_seq, size);

  std::unique_ptr<DeltaFileReader> reader;
  if (OkOrNamed(DeltaFileReader::Open(family->tables(), ReadOptions(),
                                      description, &reader))
          .ok()) {
    CheckDescribed(table, description);
    for (const auto& point : table.points) {
      CheckReads(*reader, table, point.first.first, kMaxSequenceNumber);
      CheckReads(*reader, table, point.first.first, input->Byte());
    }
    for (const std::string key : {"", "a", "b~", "zz"}) {
      CheckReads(*reader, table, key, kMaxSequenceNumber);
    }
  }
  CheckProbe(*family, table);
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(delta_contents, ROCKSDB_NAMESPACE::FuzzDeltaContents)
