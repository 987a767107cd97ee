// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/record.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#include "util/coding.h"
#include "util/math.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

constexpr uint32_t kBinarySize = 8;
constexpr char kPrefix[] = "user";
constexpr uint32_t kPrefixSize = 4;
constexpr uint32_t kDigits = 20;  // of 2^64 - 1
constexpr uint32_t kDecimalSize = kPrefixSize + kDigits;
constexpr char kPadding = '0';

constexpr size_t kHeaderSize = 8;
constexpr int kVersionBits = 48;

Status BadKey(const Slice& key, const std::string& why) {
  return Status::Corruption("key " + key.ToString(/*hex=*/true), why);
}

bool ReadDecimal(const char* digits, uint64_t* number) {
  constexpr uint64_t kMax = ~uint64_t{0};
  uint64_t result = 0;
  for (uint32_t i = 0; i < kDigits; ++i) {
    if (digits[i] < '0' || digits[i] > '9') {
      return false;
    }
    const uint64_t digit = static_cast<uint64_t>(digits[i] - '0');
    if (result > (kMax - digit) / 10) {
      return false;
    }
    result = result * 10 + digit;
  }
  *number = result;
  return true;
}

// SplitMix64: only a counter is carried from step to step, so a processor can
// execute several steps in parallel.
class RandomBytes {
 public:
  explicit RandomBytes(uint64_t seed) : state_(seed) {}

  void Write(char* out, size_t size) {
    for (; size >= 8; out += 8, size -= 8) {
      EncodeFixed64(out, Next());
    }
    if (size > 0) {
      char last[8];
      EncodeFixed64(last, Next());
      memcpy(out, last, size);
    }
  }

  // Returns how many bytes at the start of `data` are those that Write would
  // write. The object must not be used after that if the result is less than
  // `size`.
  size_t Match(const char* data, size_t size) {
    size_t pos = 0;
    for (; size - pos >= 8; pos += 8) {
      const uint64_t difference = DecodeFixed64(data + pos) ^ Next();
      if (difference != 0) {
        return pos + static_cast<size_t>(std::countr_zero(difference)) / 8;
      }
    }
    if (pos < size) {
      char last[8];
      EncodeFixed64(last, Next());
      for (size_t i = 0; pos < size; ++i, ++pos) {
        if (data[pos] != last[i]) {
          return pos;
        }
      }
    }
    return size;
  }

 private:
  uint64_t Next() { return Mix64(state_++); }

  uint64_t state_;
};

// Returns a hash of the place of a field.
uint64_t HashPlace(uint64_t record, uint32_t field, uint32_t length) {
  return Mix64(Mix64(record) ^ ((uint64_t{field} << 32) | length));
}

// Returns the first 8 bytes of a field, which contain the version. Each bit of
// the version flips one bit of the checksum, so a single wrong bit is always
// detected. With a hash, one in 65536 would not be detected.
uint64_t MakeHeader(uint64_t place, uint64_t version) {
  const auto word = [version](int shift) {
    return static_cast<uint16_t>(version >> shift);
  };
  const uint64_t checksum =
      (place >> kVersionBits) ^
      static_cast<uint64_t>(word(0) ^ std::rotl(word(16), 5) ^
                            std::rotl(word(32), 10));
  return version | (checksum << kVersionBits);
}

RandomBytes BytesAfterHeader(uint64_t place, uint64_t version) {
  return RandomBytes(Mix64(place ^ version));
}

// Reads a value field by field, up to its end or an error.
class ValueReader {
 public:
  explicit ValueReader(const Slice& value) : value_(value), rest_(value) {}

  bool AtEnd() const { return rest_.empty(); }

  // REQUIRES: !AtEnd()
  Status Next(uint64_t record) {
    assert(!AtEnd());
    ++count_;
    begin_ = Offset();
    uint32_t length = 0;
    if (!GetVarint32(&rest_, &length)) {
      return Error(record, begin_, "the length of a field ends early");
    }
    if (length > rest_.size()) {
      return Error(record, begin_,
                   "a field of " + std::to_string(length) + " bytes has only " +
                       std::to_string(rest_.size()) + " bytes left");
    }
    contents_ = Slice(rest_.data(), length);
    rest_.remove_prefix(length);
    return Status::OK();
  }

  // Number of fields that were read.
  uint64_t count() const { return count_; }

  // The last field: where it begins with its length, where it ends, and the
  // contents in between.
  size_t begin() const { return begin_; }
  size_t end() const { return Offset(); }
  const Slice& contents() const { return contents_; }

  // Returns an error at this offset of the value for the last field.
  Status Error(uint64_t record, size_t offset, const std::string& what) const {
    return Status::Corruption("record " + std::to_string(record) + ", field " +
                                  std::to_string(count_ - 1) + ", offset " +
                                  std::to_string(offset) + " of " +
                                  std::to_string(value_.size()),
                              what);
  }

 private:
  size_t Offset() const { return value_.size() - rest_.size(); }

  const Slice value_;
  Slice rest_;
  Slice contents_;
  size_t begin_ = 0;
  uint64_t count_ = 0;
};

}  // namespace

Status KeyCodec::Validate(int key_size) {
  if (key_size >= static_cast<int>(kBinarySize)) {
    return Status::OK();
  }
  return Status::InvalidArgument("--key_size must be at least 8");
}

KeyCodec::KeyCodec(int key_size)
    : decimal_(key_size >= static_cast<int>(kDecimalSize)),
      fixed_size_(static_cast<uint32_t>(key_size)),
      sizes_(key_size, /*stddev=*/0, kBinarySize) {
  assert(key_size >= static_cast<int>(kBinarySize));
}

KeyCodec::KeyCodec(const NormalSize& sizes)
    : decimal_(false), fixed_size_(0), sizes_(sizes) {
  assert(sizes.min() >= kBinarySize);
}

uint32_t KeyCodec::Size(uint64_t record) const {
  return fixed_size_ != 0 ? fixed_size_ : sizes_.At(record);
}

void KeyCodec::Write(uint64_t mixed, uint32_t size, std::string* key) const {
  key->assign(size, kPadding);
  if (!decimal_) {
    EncodeFixed64(key->data(), EndianSwapValue(mixed));
    return;
  }
  memcpy(key->data(), kPrefix, kPrefixSize);
  for (char* digit = key->data() + kDecimalSize; mixed != 0; mixed /= 10) {
    *--digit = static_cast<char>('0' + mixed % 10);
  }
}

Status KeyCodec::Decode(const Slice& key, uint64_t* record) const {
  const uint32_t used = decimal_ ? kDecimalSize : kBinarySize;
  if (key.size() < used) {
    return BadKey(key, "too short");
  }
  uint64_t mixed = 0;
  if (!decimal_) {
    mixed = EndianSwapValue(DecodeFixed64(key.data()));
  } else if (!key.starts_with(kPrefix) ||
             !ReadDecimal(key.data() + kPrefixSize, &mixed)) {
    return BadKey(key, "not \"user\" and 20 digits of a 64-bit number");
  }
  for (size_t i = used; i < key.size(); ++i) {
    if (key[i] != kPadding) {
      return BadKey(key, "not padded with '0'");
    }
  }
  const uint64_t decoded = Unmix64(mixed);
  if (key.size() != Size(decoded)) {
    return BadKey(key, "the key of record " + std::to_string(decoded) +
                           " has " + std::to_string(Size(decoded)) + " bytes");
  }
  *record = decoded;
  return Status::OK();
}

Status FieldCodec::Validate(uint32_t field_length) {
  if (field_length >= kMinLength) {
    return Status::OK();
  }
  return Status::InvalidArgument("--ycsb_field_length must be at least 8");
}

FieldCodec::FieldCodec(double compression_ratio)
    // NaN becomes 1.
    : compression_ratio_(
          compression_ratio < 1 ? std::max(compression_ratio, 0.0) : 1) {}

void FieldCodec::Append(uint64_t record, uint32_t field, uint64_t version,
                        uint32_t length, std::string* out) const {
  const size_t begin = out->size();
  out->resize(begin + length);
  Write(record, field, version, length, out->data() + begin);
}

void FieldCodec::Write(uint64_t record, uint32_t field, uint64_t version,
                       uint32_t length, char* out) const {
  assert(length >= kMinLength);
  version &= kVersionMask;
  const uint64_t place = HashPlace(record, field, length);
  EncodeFixed64(out, MakeHeader(place, version));
  RandomBytes random = BytesAfterHeader(place, version);
  size_t header = kHeaderSize;
  for (size_t rest = length; rest > 0; header = 0) {
    const size_t size = std::min<size_t>(rest, kChunk);
    const size_t period = Period(size, header);
    random.Write(out + header, period - header);
    // Each step doubles the bytes, so that source and destination do not
    // overlap.
    for (size_t done = period; done < size;) {
      const size_t more = std::min(done, size - done);
      memcpy(out + done, out, more);
      done += more;
    }
    out += size;
    rest -= size;
  }
}

size_t FieldCodec::Period(size_t chunk_size, size_t header_size) const {
  const double wanted = static_cast<double>(chunk_size) * compression_ratio_;
  const size_t least = std::max<size_t>(header_size, 1);
  return std::max(least, static_cast<size_t>(wanted + 0.5));
}

uint64_t FieldCodec::FirstError(uint64_t record, uint32_t field,
                                const Slice& contents) const {
  if (contents.size() < kMinLength || contents.size() >= kIntact) {
    return 0;
  }
  const uint64_t place =
      HashPlace(record, field, static_cast<uint32_t>(contents.size()));
  const uint64_t header_read = DecodeFixed64(contents.data());
  const uint64_t version = header_read & kVersionMask;
  if (header_read != MakeHeader(place, version)) {
    return 0;
  }
  RandomBytes random = BytesAfterHeader(place, version);
  size_t header = kHeaderSize;
  for (size_t begin = 0; begin < contents.size(); header = 0) {
    const char* const chunk = contents.data() + begin;
    const size_t size = std::min<size_t>(contents.size() - begin, kChunk);
    const size_t period = Period(size, header);
    const size_t right = header + random.Match(chunk + header, period - header);
    if (right < period) {
      return begin + right;
    }
    if (memcmp(chunk + period, chunk, size - period) != 0) {
      const char* const wrong =
          std::mismatch(chunk + period, chunk + size, chunk).first;
      return begin + static_cast<size_t>(wrong - chunk);
    }
    begin += size;
  }
  return kIntact;
}

Status FieldCodec::Check(uint64_t record, uint32_t field,
                         const Slice& contents) const {
  const uint64_t offset = FirstError(record, field, contents);
  if (offset == kIntact) {
    return Status::OK();
  }
  return Status::Corruption("record " + std::to_string(record) + ", field " +
                                std::to_string(field) + ", offset " +
                                std::to_string(offset) + " of " +
                                std::to_string(contents.size()),
                            "not what was written for it");
}

void RecordCodec::MakeValue(uint64_t record, Random64* versions,
                            uint32_t field_count, uint32_t field_length,
                            std::string* value) const {
  value->clear();
  for (uint32_t field = 0; field < field_count; ++field) {
    AppendField(record, field, versions->Next(), field_length, value);
  }
}

void RecordCodec::AppendField(uint64_t record, uint32_t field, uint64_t version,
                              uint32_t length, std::string* value) const {
  PutVarint32(value, length);
  fields_.Append(record, field, version, length, value);
}

void RecordCodec::MakeDelta(uint64_t record, uint32_t field, uint64_t version,
                            uint32_t length, std::string* delta) const {
  delta->clear();
  AppendDelta(record, field, version, length, delta);
}

void RecordCodec::AppendDelta(uint64_t record, uint32_t field, uint64_t version,
                              uint32_t length, std::string* delta) const {
  PutVarint32(delta, field);
  AppendField(record, field, version, length, delta);
}

Status RecordCodec::UpdateField(uint64_t record, uint32_t field,
                                uint64_t version, uint32_t length,
                                std::string* value) const {
  size_t begin = 0;
  size_t end = 0;
  size_t old_length = 0;
  ValueReader reader(*value);
  while (!reader.AtEnd()) {
    Status s = reader.Next(record);
    if (!s.ok()) {
      return s;
    }
    if (reader.count() - 1 == field) {
      begin = reader.begin();
      end = reader.end();
      old_length = reader.contents().size();
    }
  }
  if (field >= reader.count()) {
    return Status::Corruption("record " + std::to_string(record) +
                              " has no field " + std::to_string(field) +
                              " but only " + std::to_string(reader.count()));
  }
  if (length == old_length) {
    fields_.Write(record, field, version, length,
                  value->data() + (end - length));
    return Status::OK();
  }
  std::string replacement;
  AppendField(record, field, version, length, &replacement);
  value->replace(begin, end - begin, replacement);
  return Status::OK();
}

Status RecordCodec::CheckValue(uint64_t record, uint32_t field_count,
                               const Slice& value) const {
  return CheckFields(record, field_count, value, /*partial=*/false);
}

Status RecordCodec::CheckPartialValue(uint64_t record, uint32_t field_count,
                                      const Slice& value) const {
  return CheckFields(record, field_count, value, /*partial=*/true);
}

Status RecordCodec::CheckFields(uint64_t record, uint32_t field_count,
                                const Slice& value, bool partial) const {
  ValueReader reader(value);
  while (!reader.AtEnd()) {
    Status s = reader.Next(record);
    if (!s.ok()) {
      return s;
    }
    if (reader.count() > field_count) {
      return reader.Error(
          record, reader.begin(),
          "more than " + std::to_string(field_count) + " fields");
    }
    const Slice& contents = reader.contents();
    if (partial && contents.empty()) {
      continue;
    }
    const size_t contents_begin = reader.end() - contents.size();
    if (contents.size() < FieldCodec::kMinLength) {
      return reader.Error(
          record, reader.begin(),
          std::to_string(contents.size()) + " bytes are too short for a field");
    }
    const uint32_t field = static_cast<uint32_t>(reader.count() - 1);
    const uint64_t wrong = fields_.FirstError(record, field, contents);
    if (wrong != FieldCodec::kIntact) {
      return reader.Error(record, contents_begin + wrong,
                          "not what was written for this field (byte " +
                              std::to_string(wrong) + " of its " +
                              std::to_string(contents.size()) + ")");
    }
  }
  if (reader.count() < field_count && !partial) {
    return Status::Corruption("record " + std::to_string(record) + " has " +
                              std::to_string(reader.count()) +
                              " fields instead of " +
                              std::to_string(field_count));
  }
  return Status::OK();
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
