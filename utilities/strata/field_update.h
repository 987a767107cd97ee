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

// Records of fields. A write can change some fields of a record without reading
// the others. The record is the value of a key; a change is a merge operand.
//
//   value:    (length: varint32, bytes)*                    fields 0, 1, 2...
//   operand:  (field: varint32, length: varint32, bytes)*   field increasing
//
// An empty value has no fields; an empty operand changes nothing. A field that
// an operand names and the value does not have extends the value. Fields that
// this skips become empty. No operand makes a value shorter.
//
// A value or operand is corrupt if its bytes end within a field, if the fields
// of an operand do not strictly increase, or if a field is not below
// kMaxFields.

// Maximum number of fields of a value. It bounds the memory that a few bytes of
// a corrupt operand can make a merge allocate: 2 MiB while it runs, and 64 KiB
// for its result.
constexpr uint32_t kMaxFields = 65536;

// Appends the next field to *value.
// REQUIRES: *value has less than kMaxFields fields; bytes.size() < 4 GiB.
void AppendField(const Slice& bytes, std::string* value);

// Appends an update to *operand that sets `field` to `bytes`.
// REQUIRES: field < kMaxFields, and it is larger than all fields that *operand
// names; bytes.size() < 4 GiB.
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

  // Moves to the first or next field. Returns false at the end, and if the
  // value is corrupt; later calls then return false, too.
  bool Next();

  // Returns false if Next() has found the value corrupt.
  bool ok() const { return ok_; }

  // Number of fields that were read.
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

// Reads the updates of an operand in order. It is used like FieldCursor.
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
  // The smallest field that the next update may have.
  uint32_t next_field_ = 0;
  bool ok_ = true;
};

// Merges operands into values, and operands into one operand. A merge makes one
// pass over the operands, regardless of their number, and one over the base
// value. Every operand is read to its end, even if newer ones name all fields
// of the base value, because it may name further fields. So whether a merge
// fails does not depend on which operands were merged before.
//
// A key without base value starts from an empty one. In a wide-column entity
// the default column is the record. If a base value or operand is corrupt,
// reads of its key fail with Status::Corruption; flushes and compactions do not
// fail, and keep the operands as they are. A newer Put repairs the key.
//
// Thread-safe: it has no state.
class FieldUpdateOperator : public MergeOperator {
 public:
  static const char* kClassName() { return "FieldUpdateOperator"; }
  static const char* kNickName() { return "fieldupdate"; }
  const char* Name() const override { return kClassName(); }
  const char* NickName() const override { return kNickName(); }

  bool FullMergeV2(const MergeOperationInput& merge_in,
                   MergeOperationOutput* merge_out) const override;

  // Returns false, and leaves *new_value unchanged, if an operand is corrupt.
  bool PartialMerge(const Slice& key, const Slice& left_operand,
                    const Slice& right_operand, std::string* new_value,
                    Logger* logger) const override;
  // Returns false, and leaves *new_value unchanged, if an operand is corrupt.
  bool PartialMergeMulti(const Slice& key,
                         const std::deque<Slice>& operand_list,
                         std::string* new_value, Logger* logger) const override;
};

// Registers a factory of the operator in `library` under both of its names.
// Returns the number of factories that were added: 1, or 0 if the library had
// one already. Thread-safe.
int RegisterFieldUpdateOperator(ObjectLibrary& library);

}  // namespace ROCKSDB_NAMESPACE
