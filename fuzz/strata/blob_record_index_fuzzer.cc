//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Fuzzes what reads blob files of version 2: header, record header, footer,
// record index, the restoring of damaged blocks, the walk over the records.
//
// Random bytes hardly ever get past a checksum, so most of the work is done on
// input whose checksums were put right. blob_record_index_test includes this
// file, to run it with larger files than those of a corpus, too.
//
// The promise: what is decoded is encoded to the same bytes. The records of a
// damaged file are the right ones, or there is an error; and none if only the
// index is damaged.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "db/blob_v2/blob_file_v2_test_util.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "db/blob_v2/blob_record_walker.h"
#include "db/dbformat.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "util/coding.h"
#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using blob_v2_test::FileMaker;
using blob_v2_test::OpenBytes;
using blob_v2_test::ReadAll;
using blob_v2_test::Records;
using blob_v2_test::SameRecords;
using fuzz::FuzzInput;
using fuzz::Require;

constexpr uint64_t kFuzzSeed = 99;

void PutMaskedCrc(char* data, size_t n, char* to) {
  EncodeFixed32(to, crc32c::Mask(crc32c::Value(data, n)));
}

// What is decoded without complaint is encoded to the same bytes.
template <typename Part>
void FuzzPart(std::string bytes, size_t size, size_t crc_at) {
  Part part;
  part.DecodeFrom(bytes).PermitUncheckedError();
  bytes.resize(size);
  PutMaskedCrc(bytes.data(), crc_at, bytes.data() + crc_at);
  if (part.DecodeFrom(bytes).ok()) {
    std::string again;
    part.EncodeTo(&again);
    Require(again == bytes);
  }
}

void FuzzParts(const std::string& bytes) {
  FuzzPart<BlobHeaderV2>(bytes, BlobHeaderV2::kSize, 26);
  FuzzPart<BlobFooterV2>(bytes, BlobFooterV2::kSize, 28);

  BlobRecordV2 record;
  record.DecodeHeaderFrom(bytes).PermitUncheckedError();
  std::string header = bytes;
  header.resize(BlobRecordV2::kHeaderSize);
  PutMaskedCrc(header.data(), 24, header.data() + 24);
  if (record.DecodeHeaderFrom(header).ok()) {
    Require(record.seq <= kMaxSequenceNumber);
    Require(record.record_size() <= kMaxBlobRecordSize);
  }

  uint64_t index_size = 0;
  if (DecodeBlobIndexSizeField(bytes, &index_size).ok()) {
    Require(index_size > 0);
  }
  BlobFileLayoutV2 layout;
  const std::unique_ptr<RandomAccessFileReader> file = OpenBytes(bytes);
  BlobFileLayoutV2::Read(file.get(), IOOptions(), bytes.size(), &layout)
      .PermitUncheckedError();
}

// Gives each block a right checksum, and says what the footer should be.
void RepairBlocks(char* index, size_t index_size, BlobFooterV2* footer) {
  uint32_t checksum = 0;
  footer->index_size = index_size;
  for (size_t i = 0; i < index_size; i += RecordIndexFormat::kBlockSize) {
    const size_t size = std::min(index_size - i, RecordIndexFormat::kBlockSize);
    if (size < 4) {
      break;
    }
    char* const block = index + i;
    PutMaskedCrc(block, size - 4, block + size - 4);
    checksum = crc32c::Extend(checksum, block + size - 4, 4);
    Slice rest(block, size - 4);
    uint64_t count = 0;
    if (GetVarint64(&rest, &count)) {
      footer->blob_count += count;
    }
  }
  footer->index_checksum = crc32c::Mask(checksum);
}

void FuzzIndex(FuzzInput* input) {
  BlobFooterV2 footer;
  footer.blob_count = input->Number();
  footer.index_checksum = static_cast<uint32_t>(input->Number());
  const uint64_t index_offset = input->Number();
  const bool repair_footer = input->Byte() % 8 != 0;
  std::string index = input->Rest();
  footer.index_size = index.size();
  Records records;
  {
    RecordIndexReader reader(index, footer, index_offset, "fuzz");
    ReadAll(&reader, &records).PermitUncheckedError();
  }

  BlobFooterV2 repaired;
  RepairBlocks(index.data(), index.size(), &repaired);
  if (repair_footer) {
    footer = repaired;
  }
  RecordIndexReader reader(index, footer, index_offset, "fuzz");
  if (!ReadAll(&reader, &records).ok()) {
    return;
  }

  Require(records.size() == footer.blob_count);
  uint64_t offset = BlobHeaderV2::kSize;
  RecordIndexBuilder builder;
  for (const AddressMap::Record& record : records) {
    Require(record.offset == offset);
    offset += record.size;
    Require(builder.Add(record.name, record.size, record.direct).ok());
  }
  Require(offset == index_offset);
  builder.Finish();
  RecordIndexReader again(builder.contents(), builder.footer(), index_offset,
                          "fuzz");
  Records same;
  Require(ReadAll(&again, &same).ok());
  Require(SameRecords(records, same));
}

// Records of the input's choice.
void AddRecords(FuzzInput* input, FileMaker* maker) {
  const size_t num_records = input->Byte() * 8;
  const uint64_t seqs = input->Number();
  const uint64_t births = input->Number();
  uint64_t x = input->Number();
  for (size_t i = 0; i < num_records; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const std::string key(x >> 59, static_cast<char>(x >> 20));
    const std::string value((x >> 50) % 64, 'v');
    maker->Add(key, value, x % (seqs % kMaxSequenceNumber + 1),
               (x >> 5) % (births % (i + 1) + 1), (x >> 13) % 2 != 0);
    Require(maker->status().ok());
  }
}

// Whatever is damaged: the records are the right ones, or there is an error.
void FuzzDamage(FuzzInput* input) {
  FileMaker maker(kFuzzSeed);
  AddRecords(input, &maker);
  const uint64_t index_size = maker.builder().EncodedSize();
  maker.Finish();
  Require(maker.index_size() == index_size);
  std::string bytes = maker.bytes();
  const uint8_t how = input->Byte();
  const bool index_only = (how & 1) != 0;
  const bool repair = (how & 2) != 0;
  while (!input->empty()) {
    const uint64_t where = input->Number();
    const char change = static_cast<char>(input->Byte());
    if (!index_only) {
      bytes[where % bytes.size()] ^= change;
    } else if (index_size > 0) {
      bytes[maker.index_offset() + where % index_size] ^= change;
    }
  }
  if (repair) {
    BlobFooterV2 ignored;
    RepairBlocks(bytes.data() + maker.index_offset(), index_size, &ignored);
  }

  const std::unique_ptr<RandomAccessFileReader> file = OpenBytes(bytes);
  BlobFileLayoutV2 layout;
  Status s =
      BlobFileLayoutV2::Read(file.get(), IOOptions(), bytes.size(), &layout);
  Records found;
  if (s.ok()) {
    RecordIndexReader reader(file.get(), IOOptions(), layout);
    s = ReadAll(&reader, &found);
  }
  if (s.ok()) {
    Require(SameRecords(maker.records(), found));
  } else {
    // If the records are intact, any damage to the index can be restored,
    // unless it was made to look right.
    Require((!index_only || repair) && s.IsCorruption());
  }
}

void FuzzWalk(FuzzInput* input) {
  const uint64_t end_cut = input->Number() % 64;
  std::string bytes = input->Rest();
  for (size_t at = 0; bytes.size() - at >= BlobRecordV2::kHeaderSize;) {
    char* const header = bytes.data() + at;
    // Else hardly any record would end within the input.
    memset(header + 1, 0, 3);
    memset(header + 5, 0, 3);
    header[8] &= 1;
    PutMaskedCrc(header, 24, header + 24);
    const size_t size = BlobRecordV2::kHeaderSize + DecodeFixed32(header) +
                        DecodeFixed32(header + 4);
    at += std::min(size, bytes.size() - at);
  }
  const std::unique_ptr<RandomAccessFileReader> file = OpenBytes(bytes);
  const uint64_t end = bytes.size() - std::min<uint64_t>(end_cut, bytes.size());
  BlobRecordWalker walker(file.get(), IOOptions(), kFuzzSeed, 0, end);
  uint64_t offset = 0;
  while (!walker.AtEnd()) {
    AddressMap::Record record;
    const Status s = walker.Next(&record);
    if (!s.ok()) {
      Require(s.IsCorruption());
      return;
    }
    Require(record.offset == offset);
    Require(record.size >= BlobRecordV2::kHeaderSize);
    Require(record.name.key == MapKeyHash::Of(walker.key(), kFuzzSeed));
    offset += record.size;
  }
  Require(offset == end);
}

void FuzzBlobRecordIndex(FuzzInput* input) {
  switch (input->Byte() % 4) {
    case 0:
      FuzzParts(input->Rest());
      break;
    case 1:
      FuzzIndex(input);
      break;
    case 2:
      FuzzDamage(input);
      break;
    default:
      FuzzWalk(input);
      break;
  }
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(blob_record_index, ROCKSDB_NAMESPACE::FuzzBlobRecordIndex)
