//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Decodes VersionEdits with all records of ours that a MANIFEST may have: paths
// and mapped entries of SST files, blob files, delta edits, and the mark of the
// WAL buffer.
//
// The promise: an edit that was encoded is decoded to the same edit, and a part
// of its bytes to an edit or an error. An edit with arbitrary fields of ours is
// Corruption or NotSupported, or valid, and then the same after encoding and
// decoding it again.
//
// What RocksDB's own fields have is always well-formed: RocksDB's decoder has
// assertions about them, for example about the number of a file.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "db/blob/blob_file_addition.h"
#include "db/delta/delta_edit.h"
#include "db/delta/delta_edit_test_util.h"
#include "db/path_layout/blob_reference_info.h"
#include "db/path_layout/path_layout.h"
#include "db/version_edit.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "util/coding.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;

constexpr size_t kTimestampSize = 0;

std::string Encode(const VersionEdit& edit) {
  std::string encoded;
  Require(edit.EncodeTo(&encoded, kTimestampSize));
  return encoded;
}

bool SameDeltaEdit(const VersionEdit& a, const VersionEdit& b) {
  const DeltaEdit* const delta_a = a.GetDeltaEdit();
  const DeltaEdit* const delta_b = b.GetDeltaEdit();
  return delta_a == nullptr || delta_b == nullptr ? delta_a == delta_b
                                                  : *delta_a == *delta_b;
}

// Compares what is ours. The rest is compared by the texts.
void RequireSame(const VersionEdit& a, const VersionEdit& b) {
  Require(a.GetNewFiles().size() == b.GetNewFiles().size());
  for (size_t i = 0; i < a.GetNewFiles().size(); ++i) {
    const BlobReferenceInfo& refs_a = a.GetNewFiles()[i].second.blob_refs;
    const BlobReferenceInfo& refs_b = b.GetNewFiles()[i].second.blob_refs;
    // There are two forms of "path 0 alone".
    Require(std::max<uint8_t>(refs_a.path_mask, 1) ==
            std::max<uint8_t>(refs_b.path_mask, 1));
    Require(refs_a.mapped == refs_b.mapped);
  }
  Require(a.GetBlobFileAdditions() == b.GetBlobFileAdditions());
  Require(SameDeltaEdit(a, b));
  Require(a.HasWalBuffer() == b.HasWalBuffer());
}

MappedEntryStats MakeMapped(FuzzInput* input, SequenceNumber largest) {
  MappedEntryStats mapped;
  mapped.direct = input->Byte();
  mapped.versioned = input->Byte() % 4;
  mapped.unmapped = input->Number() >> 8;
  mapped.range_dels = input->Byte() % 4;
  if (!mapped.Any()) {
    return MappedEntryStats();
  }
  const auto seq = [&] { return input->Number() % (largest + 1); };
  mapped.largest_versioned = mapped.versioned > 0 ? seq() : 0;
  mapped.largest_unmapped = mapped.unmapped > 0 ? seq() : 0;
  mapped.largest_range_del = mapped.range_dels > 0 ? seq() : 0;
  mapped.largest_reclaimable = seq();
  return mapped;
}

void AddTable(FuzzInput* input, VersionEdit* edit) {
  FileMetaData file;
  const int level = input->Byte() % 7;
  const uint64_t number = 1 + input->Byte();
  const uint32_t path_id = input->Byte() % PathLayout::kMaxPaths;
  const SequenceNumber largest_seq = input->Number() & kMaxSequenceNumber;
  const SequenceNumber smallest_seq = largest_seq / 2;
  file.fd = FileDescriptor(number, path_id, /*_file_size=*/input->Number(),
                           smallest_seq, largest_seq);
  const std::string key = input->Key();
  file.smallest = InternalKey(key, largest_seq, kTypeBlobIndex);
  file.largest = InternalKey(key + input->Key(), smallest_seq, kTypeBlobIndex);
  file.epoch_number = 1;
  file.oldest_blob_file_number = input->Byte();
  file.blob_refs.path_mask = input->Byte() % (1 << PathLayout::kMaxPaths);
  if (file.blob_refs.path_mask == 1) {
    file.blob_refs.path_mask = 0;  // the form that is decoded
  }
  file.blob_refs.mapped = MakeMapped(input, largest_seq);
  edit->AddFile(level, file);
}

// Makes a valid edit.
VersionEdit MakeEdit(FuzzInput* input) {
  VersionEdit edit;
  const uint8_t shape = input->Byte();
  edit.SetColumnFamily(input->Byte());
  for (int n = shape % 4; n > 0; --n) {
    AddTable(input, &edit);
  }
  for (int n = shape / 4 % 4; n > 0; --n) {
    const uint64_t number = input->Byte();
    const uint64_t count = input->Number();
    const uint64_t bytes = input->Number();
    const uint32_t path_id = input->Byte() % PathLayout::kMaxPaths;
    const uint64_t index_bytes = input->Number();
    edit.AddBlobFile(BlobFileAddition(number, count, bytes,
                                      /*checksum_method=*/"",
                                      /*checksum_value=*/"", path_id,
                                      index_bytes, input->Bool()));
  }
  if ((shape & 16) != 0) {
    Random rnd(static_cast<uint32_t>(input->Number()));
    edit.SetDeltaEdit(RandomDeltaEdit(&rnd));
  }
  if ((shape & 32) != 0) {
    edit.MarkWalBuffer();
  }
  if ((shape & 64) != 0) {
    const int level = input->Byte() % 7;
    edit.DeleteFile(level, 1 + input->Byte());
    const uint64_t number = input->Byte();
    const uint64_t count = input->Number();
    edit.AddBlobFileGarbage(number, count, input->Number());
  }
  return edit;
}

void RoundTrip(FuzzInput* input) {
  const VersionEdit edit = MakeEdit(input);
  const std::string encoded = Encode(edit);
  VersionEdit decoded;
  Require(decoded.DecodeFrom(encoded).ok());
  RequireSame(edit, decoded);
  Require(Encode(decoded) == encoded);
  Require(decoded.DebugString(/*hex_key=*/true) ==
          edit.DebugString(/*hex_key=*/true));
  Require(decoded.DebugJSON(/*edit_num=*/1, /*hex_key=*/true) ==
          edit.DebugJSON(/*edit_num=*/1, /*hex_key=*/true));

  const size_t size = input->Below(65536) % (encoded.size() + 1);
  VersionEdit part;
  const Status s = part.DecodeFrom(Slice(encoded.data(), size));
  Require(s.ok() || s.IsCorruption());
}

// ---- Arbitrary fields.

// Appends a field of ours of an SST file or a blob file.
void PutCustomField(FuzzInput* input, const uint32_t (&tags)[3],
                    std::string* dst) {
  const uint32_t tag = tags[input->Byte() % 3];
  PutVarint32(dst, tag);
  if (tag == NewFileCustomTag::kMappedEntries && input->Bool()) {
    // Numbers of any size in the place of numbers.
    std::string numbers;
    for (int n = input->Byte() % 12; n > 0; --n) {
      PutVarint64(&numbers, input->Number());
    }
    PutLengthPrefixedSlice(dst, numbers);
  } else {
    PutLengthPrefixedSlice(dst, input->String(16));
  }
}

void PutTable(FuzzInput* input, std::string* dst) {
  const SequenceNumber largest_seq = input->Number() & kMaxSequenceNumber;
  PutVarint32(dst, Tag::kNewFile4);
  PutVarint32Varint64(dst, /*level=*/3, /*number=*/9);
  PutVarint64(dst, /*file size=*/4096);
  const InternalKey smallest("a", largest_seq, kTypeBlobIndex);
  const InternalKey largest("b", 0, kTypeBlobIndex);
  PutLengthPrefixedSlice(dst, smallest.Encode());
  PutLengthPrefixedSlice(dst, largest.Encode());
  PutVarint64Varint64(dst, 0, largest_seq);
  PutVarint32(dst, NewFileCustomTag::kEpochNumber);
  PutLengthPrefixedSlice(dst, Slice("\7", 1));
  for (int n = input->Byte() % 4; n > 0; --n) {
    PutCustomField(
        input,
        {NewFileCustomTag::kBlobPathMask, NewFileCustomTag::kMappedEntries,
         NewFileCustomTag::kPathId},
        dst);
  }
  PutVarint32(dst, NewFileCustomTag::kTerminate);
}

void PutBlobFile(FuzzInput* input, std::string* dst) {
  // Path id, size of the record index, mark of a garbage collection.
  constexpr uint32_t kTags[] = {192, 193, 130};
  PutVarint32(dst, Tag::kBlobFileAddition);
  PutVarint64Varint64(dst, /*number=*/7, /*count=*/2);
  PutVarint64(dst, /*bytes=*/70000);
  PutLengthPrefixedSlice(dst, Slice());
  PutLengthPrefixedSlice(dst, Slice());
  for (int n = input->Byte() % 4; n > 0; --n) {
    PutCustomField(input, kTags, dst);
  }
  PutVarint32(dst, 0);
}

void PutDeltaEdit(FuzzInput* input, std::string* dst) {
  std::string payload;
  if (input->Bool()) {
    payload = input->String(200);
  } else {
    Random rnd(static_cast<uint32_t>(input->Number()));
    RandomDeltaEdit(&rnd).EncodeTo(&payload);
    fuzz::Damage(input, /*may_resize=*/true, &payload);
  }
  PutVarint32(dst, Tag::kDeltaStore);
  PutLengthPrefixedSlice(dst, payload);
}

void PutWalBufferMark(FuzzInput* input, std::string* dst) {
  PutVarint32(dst, Tag::kWalBuffer);
  PutLengthPrefixedSlice(dst, input->String(3));
}

void DecodeFields(FuzzInput* input) {
  std::string encoded;
  // Comes first, as it does in edits that are encoded: a delta edit raises it.
  PutVarint32Varint64(&encoded, Tag::kLastSequence, input->Byte());
  for (int n = 1 + input->Byte() % 4; n > 0; --n) {
    switch (input->Byte() % 4) {
      case 0:
        PutTable(input, &encoded);
        break;
      case 1:
        PutBlobFile(input, &encoded);
        break;
      case 2:
        PutDeltaEdit(input, &encoded);
        break;
      default:
        PutWalBufferMark(input, &encoded);
        break;
    }
  }
  VersionEdit edit;
  const Status s = edit.DecodeFrom(encoded);
  if (!s.ok()) {
    Require(s.IsCorruption() || s.IsNotSupported());
    return;
  }
  for (const auto& [level, file] : edit.GetNewFiles()) {
    const MappedEntryStats& mapped = file.blob_refs.mapped;
    Require(file.blob_refs.path_mask < 1 << PathLayout::kMaxPaths);
    Require(mapped.LsmCeiling(file.fd.largest_seqno) <=
            file.fd.largest_seqno + 1);
    Require(mapped.LargestReclaimable(file.fd.largest_seqno) <=
            file.fd.largest_seqno);
  }
  for (const BlobFileAddition& file : edit.GetBlobFileAdditions()) {
    Require(file.GetPathId() < PathLayout::kMaxPaths);
  }
  if (edit.GetDeltaEdit() != nullptr) {
    Require(edit.GetDeltaEdit()->Validate().ok());
    Require(edit.GetLastSequence() >= edit.GetDeltaEdit()->LargestSequence());
  }
  const std::string again = Encode(edit);
  VersionEdit decoded;
  Require(decoded.DecodeFrom(again).ok());
  RequireSame(edit, decoded);
  Require(Encode(decoded) == again);
  edit.DebugString(/*hex_key=*/true);
  edit.DebugJSON(/*edit_num=*/1, /*hex_key=*/true);
}

void FuzzVersionEdit(FuzzInput* input) {
  if (input->Byte() % 4 == 0) {
    RoundTrip(input);
  } else {
    DecodeFields(input);
  }
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(version_edit, ROCKSDB_NAMESPACE::FuzzVersionEdit)
