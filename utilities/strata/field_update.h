//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "rocksdb/merge_operator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

class Logger;
class ObjectLibrary;

// Records of fields, of which a write can change some without a read of the
// others. The record is the value of a key; a change is a merge operand.
//
//   value:    (length: varint32, bytes)*                    fields 0, 1, 2...
//   operand:  (field: varint32, length: varint32, bytes)*   field increasing
//
// An empty value has no fields; an empty operand changes nothing. A field that
// an operand names and the value does not have extends the value. Fields that
// this skips become empty. No operand makes a value shorter.
//
// Anything else is corrupt: bytes that end within a field, fields of an operand
// that do not strictly increase, and a field that is not below kMaxFields.

// The most fields that a value can have. It bounds what a few bytes of a
// corrupt operand can make a merge allocate: 2 MiB while it runs and 64 KiB of
// result.
constexpr uint32_t kMaxFields = 65536;

// Appends the next field to *value.
// REQUIRES: *value has less than kMaxFields fields; bytes.size() < 4 GiB.
void AppendField(const Slice& bytes, std::string* value);

// Appends to *operand that `field` becomes `bytes`.
// REQUIRES: field < kMaxFields, and it is above all fields that *operand names;
// bytes.size() < 4 GiB.
void AppendFieldUpdate(uint32_t field, const Slice& bytes,
                       std::string* operand);

// Reads the fields of a value in order:
//
//   FieldCursor cursor(value);
//   while (cursor.Next()) Use(cursor.field(), cursor.bytes());
//   if (!cursor.ok()) return Status::Corruption(...);
//
// Does not allocate. Not thread-safe.
// REQUIRES: the bytes of the value outlive the cursor and bytes().
class FieldCursor {
 public:
  explicit FieldCursor(const Slice& value)
      : position_(value.data()), limit_(value.data() + value.size()) {}

  // Goes to the first or next field. False at the end and at what is corrupt;
  // then it stays false.
  bool Next();

  // False once Next() met what is corrupt.
  bool ok() const { return ok_; }

  // How many fields were read.
  uint32_t count() const { return count_; }

  // REQUIRES: the last Next() returned true.
  uint32_t field() const { return count_ - 1; }
  const Slice& bytes() const { return bytes_; }

 private:
  const char* position_;
  const char* const limit_;
  Slice bytes_;
  uint32_t count_ = 0;
  bool ok_ = true;
};

// Reads the updates of an operand in order, in the way of FieldCursor.
class FieldUpdateCursor {
 public:
  explicit FieldUpdateCursor(const Slice& operand)
      : position_(operand.data()), limit_(operand.data() + operand.size()) {}

  bool Next();

  bool ok() const { return ok_; }

  // REQUIRES: the last Next() returned true.
  uint32_t field() const { return next_field_ - 1; }
  const Slice& bytes() const { return bytes_; }

 private:
  const char* position_;
  const char* const limit_;
  Slice bytes_;
  // The lowest field that may follow.
  uint32_t next_field_ = 0;
  bool ok_ = true;
};

// Merges operands into values, and operands into one operand. It costs one pass
// over the operands, however many there are, and one over the base value. Every
// operand is read to its end, also if newer ones name all fields of the base
// value: it may name a field beyond them. So whether a merge fails does not
// depend on which operands were merged before.
//
// A key without base value starts from an empty one. In a wide-column entity
// the default column is the record. A corrupt base value or operand fails the
// reads of its key with Status::Corruption, but neither flushes nor
// compactions, which keep the operands as they are. A newer Put repairs the
// key.
//
// Has no state: thread-safe.
class FieldUpdateOperator : public MergeOperator {
 public:
  static const char* kClassName() { return "FieldUpdateOperator"; }
  static const char* kNickName() { return "fieldupdate"; }
  const char* Name() const override { return kClassName(); }
  const char* NickName() const override { return kNickName(); }

  bool FullMergeV2(const MergeOperationInput& merge_in,
                   MergeOperationOutput* merge_out) const override;

  // Both return false if an operand is corrupt, and leave *new_value alone.
  bool PartialMerge(const Slice& key, const Slice& left_operand,
                    const Slice& right_operand, std::string* new_value,
                    Logger* logger) const override;
  bool PartialMergeMulti(const Slice& key,
                         const std::deque<Slice>& operand_list,
                         std::string* new_value, Logger* logger) const override;
};

// Makes `library` create the operator by both of its names. Returns how many
// factories it added: 1, or 0 if the library had one. Thread-safe.
int RegisterFieldUpdateOperator(ObjectLibrary& library);

}  // namespace ROCKSDB_NAMESPACE
