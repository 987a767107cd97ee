//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Decodes arbitrary bytes, and damaged records, as a BlobFileAddition of the
// MANIFEST with the fields of ours: path id, size of the record index, mark of
// a garbage collection, home of hot values.
//
// The promise: what is decoded is valid, and encodes and decodes to itself.
// What is encoded is decoded to itself, and what follows it is left. A field
// that must not be skipped is refused.

#include <cstdint>
#include <string>

#include "db/blob/blob_file_addition.h"
#include "db/blob_heat/hot_mark.h"
#include "db/path_layout/path_layout.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;

// Bit 6 of a tag.
constexpr uint32_t kMustNotSkip = 1 << 6;
constexpr uint32_t kPathIdTag = 192;
constexpr uint32_t kIndexSizeTag = 193;
constexpr uint32_t kCollectedTag = 130;
constexpr uint32_t kHotHomeTag = 131;

std::string Encode(const BlobFileAddition& addition) {
  std::string encoded;
  addition.EncodeTo(&encoded);
  return encoded;
}

// Checks a record that was decoded.
void CheckDecoded(const BlobFileAddition& addition) {
  Require(addition.GetPathId() < PathLayout::kMaxPaths);
  const std::string encoded = Encode(addition);
  Slice input(encoded);
  BlobFileAddition again;
  Require(again.DecodeFrom(&input).ok());
  Require(input.empty());
  Require(again == addition);
  Require(Encode(again) == encoded);
  Require(again.DebugString() == addition.DebugString());
  Require(again.DebugJSON() == addition.DebugJSON());
}

void DecodeBytes(const std::string& bytes) {
  Slice input(bytes);
  BlobFileAddition addition;
  const Status s = addition.DecodeFrom(&input);
  if (!s.ok()) {
    Require(s.IsCorruption());
    return;
  }
  Require(input.size() < bytes.size());
  CheckDecoded(addition);
}

BlobFileAddition MakeAddition(FuzzInput* input) {
  std::string method = input->String(8);
  std::string value = input->String(8);
  if (method.empty() || value.empty()) {
    method.clear();
    value.clear();
  }
  const uint64_t number = input->Number();
  const uint64_t count = input->Number();
  const uint64_t bytes = input->Number();
  const uint32_t path_id = input->Byte() % PathLayout::kMaxPaths;
  const uint64_t index_bytes = input->Number();
  // Bit 0: a collection wrote the file. Bit 1: it is hot, the rest is its home.
  const uint8_t marks = input->Byte();
  const HotMark hot =
      (marks & 2) != 0 ? HotMark::WithHome((marks >> 2) % PathLayout::kMaxPaths)
                       : HotMark();
  return BlobFileAddition(number, count, bytes, method, value, path_id,
                          index_bytes, /*is_collected=*/(marks & 1) != 0, hot);
}

void RoundTrip(FuzzInput* input) {
  const BlobFileAddition addition = MakeAddition(input);
  const std::string encoded = Encode(addition);
  const std::string after = input->Rest();
  const std::string all = encoded + after;
  Slice rest(all);
  BlobFileAddition decoded;
  Require(decoded.DecodeFrom(&rest).ok());
  Require(decoded == addition);
  Require(rest == Slice(after));
}

void DecodeDamaged(FuzzInput* input) {
  std::string encoded = Encode(MakeAddition(input));
  fuzz::Damage(input, /*may_resize=*/true, &encoded);
  DecodeBytes(encoded);
}

// Returns true if a reader must refuse a record with this field.
bool MustRefuse(uint32_t tag, const std::string& value) {
  switch (tag) {
    case kPathIdTag:
    case kHotHomeTag:
      return value.size() != 1 ||
             static_cast<uint8_t>(value[0]) >= PathLayout::kMaxPaths;
    case kIndexSizeTag: {
      Slice rest(value);
      uint64_t size = 0;
      return !GetVarint64(&rest, &size) || !rest.empty() || size == 0;
    }
    case kCollectedTag:
      return value != "\1";
    default:
      return (tag & kMustNotSkip) != 0;
  }
}

// Decodes a record with fields of the input's choice, whose frames are right.
void DecodeFields(FuzzInput* input) {
  std::string encoded = Encode(MakeAddition(input));
  encoded.pop_back();  // the end of the fields
  bool is_refused = false;
  while (!input->empty()) {
    constexpr uint32_t kTags[] = {
        kPathIdTag, kIndexSizeTag, kCollectedTag, 0,
        kPathIdTag, kIndexSizeTag, kCollectedTag, kHotHomeTag};
    uint32_t tag = kTags[input->Byte() % 8];
    if (tag == 0) {
      tag = 1 + input->Below(65535);
    }
    const std::string value = input->String(10);
    PutVarint32(&encoded, tag);
    PutLengthPrefixedSlice(&encoded, value);
    is_refused = is_refused || MustRefuse(tag, value);
  }
  PutVarint32(&encoded, 0);
  Slice rest(encoded);
  BlobFileAddition addition;
  const Status s = addition.DecodeFrom(&rest);
  Require(s.ok() == !is_refused);
  if (s.ok()) {
    Require(rest.empty());
    CheckDecoded(addition);
  } else {
    Require(s.IsCorruption());
  }
}

void FuzzBlobFileAddition(FuzzInput* input) {
  switch (input->Byte() % 4) {
    case 0:
      DecodeBytes(input->Rest());
      break;
    case 1:
      RoundTrip(input);
      break;
    case 2:
      DecodeDamaged(input);
      break;
    default:
      DecodeFields(input);
      break;
  }
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(blob_file_addition, ROCKSDB_NAMESPACE::FuzzBlobFileAddition)
