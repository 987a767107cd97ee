//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Merges arbitrary values and operands of the merge operator `fieldupdate`.
//
// The promise: a merge fails if and only if the value or an operand is corrupt,
// and its result is what a simple model says. It makes no difference which
// operands are merged with each other first.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "rocksdb/merge_operator.h"
#include "utilities/strata/field_update.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;

constexpr size_t kMaxOperands = 6;

// Returns false if the value is corrupt.
bool Parse(const Slice& value, std::vector<std::string>* fields) {
  FieldCursor cursor(value);
  while (cursor.Next()) {
    Require(cursor.field() == fields->size());
    fields->push_back(cursor.bytes().ToString());
  }
  Require(!cursor.Next());
  return cursor.ok();
}

// Applies an operand. Returns false if it is corrupt.
bool Apply(const Slice& operand, std::vector<std::string>* fields) {
  FieldUpdateCursor cursor(operand);
  std::map<uint32_t, std::string> updates;
  while (cursor.Next()) {
    Require(cursor.field() < kMaxFields);
    Require(updates.empty() || updates.rbegin()->first < cursor.field());
    updates[cursor.field()] = cursor.bytes().ToString();
  }
  for (const auto& [field, bytes] : updates) {
    if (field >= fields->size()) {
      fields->resize(size_t{field} + 1);
    }
    (*fields)[field] = bytes;
  }
  return cursor.ok();
}

// Makes a value or an operand: well-formed, damaged, or arbitrary bytes.
std::string MakeBytes(FuzzInput* input, bool is_operand) {
  const uint8_t how = input->Byte();
  if (how % 8 == 1) {
    return input->String(64);
  }
  std::string bytes;
  uint32_t field = how % 8 == 2 ? input->Below(65536) : 0;
  for (int n = how / 8 % 8; n > 0 && field < kMaxFields; --n) {
    const std::string contents = input->String(12);
    if (is_operand) {
      AppendFieldUpdate(field, contents, &bytes);
      field += 1 + input->Byte() % 4;
    } else {
      AppendField(contents, &bytes);
    }
  }
  if (how % 8 == 3) {
    fuzz::Damage(input, /*may_resize=*/true, &bytes);
  }
  return bytes;
}

// Merges. Returns false if the merge fails.
bool Merge(const Slice* value, const std::vector<std::string>& operands,
           std::string* result) {
  const Slice key("key");
  const std::vector<Slice> slices(operands.begin(), operands.end());
  const MergeOperator::MergeOperationInput in(key, value, slices,
                                              /*_logger=*/nullptr);
  Slice existing_operand;
  MergeOperator::MergeOperationOutput out(*result, existing_operand);
  const bool merged = FieldUpdateOperator().FullMergeV2(in, &out);
  Require(existing_operand.empty());
  // A corrupt key must not make the DB read-only.
  Require(merged ||
          out.op_failure_scope == MergeOperator::OpFailureScope::kMustMerge);
  return merged;
}

void FuzzFieldUpdate(FuzzInput* input) {
  const bool has_value = input->Bool();
  const std::string value =
      has_value ? MakeBytes(input, /*is_operand=*/false) : "";
  const Slice base(value);
  const Slice* const base_or_null = has_value ? &base : nullptr;
  std::vector<std::string> operands;
  for (size_t n = 1 + input->Byte() % kMaxOperands; n > 0; --n) {
    operands.push_back(MakeBytes(input, /*is_operand=*/true));
  }

  std::vector<std::string> fields;
  const bool value_is_sound = Parse(base, &fields);
  bool operands_are_sound = true;
  for (const std::string& operand : operands) {
    operands_are_sound = Apply(operand, &fields) && operands_are_sound;
  }
  std::string merged;
  const bool is_sound = value_is_sound && operands_are_sound;
  Require(Merge(base_or_null, operands, &merged) == is_sound);
  if (is_sound) {
    // Fields that no operand names keep their bytes, so a length that is not in
    // its shortest form stays so.
    std::vector<std::string> merged_fields;
    Require(Parse(merged, &merged_fields));
    Require(merged_fields == fields);
  }

  // Merge some operands that follow one another first.
  const size_t begin = input->Byte() % operands.size();
  const size_t n = 1 + input->Byte() % (operands.size() - begin);
  const std::deque<Slice> some(operands.begin() + begin,
                               operands.begin() + begin + n);
  const FieldUpdateOperator merge_operator;
  const std::string untouched = "untouched";
  std::string one = untouched;
  std::vector<std::string> ignored;
  bool some_are_sound = true;
  for (const Slice& operand : some) {
    some_are_sound = Apply(operand, &ignored) && some_are_sound;
  }
  Require(merge_operator.PartialMergeMulti("key", some, &one,
                                           /*logger=*/nullptr) ==
          some_are_sound);
  Require(some_are_sound || one == untouched);
  if (n == 2) {
    std::string pair = untouched;
    Require(merge_operator.PartialMerge("key", some[0], some[1], &pair,
                                        /*logger=*/nullptr) == some_are_sound);
    Require(pair == one);
  }
  if (some_are_sound) {
    operands[begin] = one;
    operands.erase(operands.begin() + begin + 1, operands.begin() + begin + n);
    std::string again;
    Require(Merge(base_or_null, operands, &again) == is_sound);
    Require(!is_sound || again == merged);
  }
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(field_update, ROCKSDB_NAMESPACE::FuzzFieldUpdate)
