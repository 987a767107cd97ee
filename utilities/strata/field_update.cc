//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "utilities/strata/field_update.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <memory>
#include <vector>

#include "logging/logging.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/object_registry.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Reads a length and that many bytes. Returns the position behind them, or
// nullptr if they are not complete.
const char* ReadBytes(const char* position, const char* limit, Slice* bytes) {
  uint32_t length = 0;
  position = GetVarint32Ptr(position, limit, &length);
  if (position == nullptr || length > static_cast<size_t>(limit - position)) {
    return nullptr;
  }
  *bytes = Slice(position, length);
  return position + length;
}

// The newest bytes of each field that a sequence of operands names. It refers
// to the bytes of the operands.
class NewestFields {
 public:
  NewestFields() { newest_.reserve(kExpectedFields); }

  // Adds an operand that is older than those added before. Returns false if it
  // is corrupt; the object must not be used after that.
  bool AddOlder(const Slice& operand) {
    FieldUpdateCursor cursor(operand);
    while (cursor.Next()) {
      if (cursor.field() >= newest_.size()) {
        newest_.resize(cursor.field() + size_t{1}, Slice(nullptr, 0));
      }
      Slice& newest = newest_[cursor.field()];
      if (newest.data() == nullptr) {
        newest = cursor.bytes();
        ++named_;
        encoded_size_ += VarintLength(newest.size()) + newest.size();
      }
    }
    return cursor.ok();
  }

  // Appends one operand that has the effect of all added operands.
  void AppendOperand(std::string* operand) const {
    constexpr size_t kMaxFieldLength = 3;
    static_assert(kMaxFields <= 1u << (7 * kMaxFieldLength));
    operand->reserve(operand->size() + encoded_size_ +
                     named_ * kMaxFieldLength);
    for (size_t field = 0; field < newest_.size(); ++field) {
      if (newest_[field].data() != nullptr) {
        AppendFieldUpdate(static_cast<uint32_t>(field), newest_[field],
                          operand);
      }
    }
  }

  // Appends the result of the operands on `base`. Returns false if `base` is
  // corrupt; *value then has a part of the result.
  bool AppendValue(const Slice& base, std::string* value) const {
    // This is enough if updates replace fields by fields of the same size, and
    // if there is no base. The sum of both terms would be twice the need if all
    // fields are replaced.
    value->reserve(value->size() +
                   std::max(base.size(), encoded_size_ + newest_.size()));
    FieldCursor cursor(base);
    // Unchanged fields are copied in runs. `run` is the beginning of the next
    // run, `begin` that of the current field.
    const char* run = base.data();
    const char* begin = base.data();
    while (cursor.Next()) {
      const char* const end = cursor.bytes().data() + cursor.bytes().size();
      if (cursor.field() < newest_.size() &&
          newest_[cursor.field()].data() != nullptr) {
        value->append(run, static_cast<size_t>(begin - run));
        AppendField(newest_[cursor.field()], value);
        run = end;
      }
      begin = end;
    }
    if (!cursor.ok()) {
      return false;
    }
    value->append(run, static_cast<size_t>(begin - run));
    for (size_t field = cursor.count(); field < newest_.size(); ++field) {
      // Empty if no operand names it.
      AppendField(newest_[field], value);
    }
    return true;
  }

 private:
  // Records with up to this many fields need one allocation.
  static constexpr size_t kExpectedFields = 16;

  // Indexed by field. The data() of a field that no operand names is nullptr.
  // That of a named field never is, even if the field is empty: it points
  // behind the field's length in the operand.
  std::vector<Slice> newest_;
  size_t named_ = 0;
  // Size of the named fields in a value, in bytes.
  size_t encoded_size_ = 0;
};

}  // namespace

void AppendField(const Slice& bytes, std::string* value) {
  assert(bytes.size() <= std::numeric_limits<uint32_t>::max());
  PutLengthPrefixedSlice(value, bytes);
}

void AppendFieldUpdate(uint32_t field, const Slice& bytes,
                       std::string* operand) {
  assert(field < kMaxFields);
  PutVarint32(operand, field);
  AppendField(bytes, operand);
}

bool FieldCursor::Next() {
  if (!ok_ || position_ == limit_) {
    return false;
  }
  const char* const end = ReadBytes(position_, limit_, &bytes_);
  if (end == nullptr || count_ == kMaxFields) {
    ok_ = false;
    return false;
  }
  position_ = end;
  ++count_;
  return true;
}

bool FieldUpdateCursor::Next() {
  if (!ok_ || position_ == limit_) {
    return false;
  }
  uint32_t field = 0;
  const char* position = GetVarint32Ptr(position_, limit_, &field);
  if (position != nullptr) {
    position = ReadBytes(position, limit_, &bytes_);
  }
  if (position == nullptr || field < next_field_ || field >= kMaxFields) {
    ok_ = false;
    return false;
  }
  position_ = position;
  next_field_ = field + 1;
  return true;
}

bool FieldUpdateOperator::FullMergeV2(const MergeOperationInput& merge_in,
                                      MergeOperationOutput* merge_out) const {
  // With kTryMerge, one corrupt key would make the DB read-only when a flush or
  // compaction reads it.
  constexpr OpFailureScope kFailureScope = OpFailureScope::kMustMerge;
  const std::vector<Slice>& operands = merge_in.operand_list;
  NewestFields newest;
  for (size_t i = operands.size(); i > 0; --i) {
    if (!newest.AddOlder(operands[i - 1])) {
      ROCKS_LOG_ERROR(merge_in.logger,
                      "%s: operand %" ROCKSDB_PRIszt " of %" ROCKSDB_PRIszt
                      ", %" ROCKSDB_PRIszt " bytes, is corrupt",
                      kClassName(), i, operands.size(), operands[i - 1].size());
      merge_out->op_failure_scope = kFailureScope;
      return false;
    }
  }
  const Slice base =
      merge_in.existing_value != nullptr ? *merge_in.existing_value : Slice();
  merge_out->new_value.clear();
  if (!newest.AppendValue(base, &merge_out->new_value)) {
    ROCKS_LOG_ERROR(merge_in.logger,
                    "%s: base value, %" ROCKSDB_PRIszt " bytes, is corrupt",
                    kClassName(), base.size());
    merge_out->op_failure_scope = kFailureScope;
    return false;
  }
  return true;
}

// A corrupt operand is not logged here: it is kept, so a full merge logs it.
bool FieldUpdateOperator::PartialMerge(const Slice& /*key*/,
                                       const Slice& left_operand,
                                       const Slice& right_operand,
                                       std::string* new_value,
                                       Logger* /*logger*/) const {
  NewestFields newest;
  if (!newest.AddOlder(right_operand) || !newest.AddOlder(left_operand)) {
    return false;
  }
  new_value->clear();
  newest.AppendOperand(new_value);
  return true;
}

bool FieldUpdateOperator::PartialMergeMulti(
    const Slice& /*key*/, const std::deque<Slice>& operand_list,
    std::string* new_value, Logger* /*logger*/) const {
  NewestFields newest;
  for (auto operand = operand_list.rbegin(); operand != operand_list.rend();
       ++operand) {
    if (!newest.AddOlder(*operand)) {
      return false;
    }
  }
  new_value->clear();
  newest.AppendOperand(new_value);
  return true;
}

int RegisterFieldUpdateOperator(ObjectLibrary& library) {
  // A second factory would be harmless, but lists of names would show it twice.
  if (library.FindFactory<MergeOperator>(FieldUpdateOperator::kClassName()) !=
      nullptr) {
    return 0;
  }
  library.AddFactory<MergeOperator>(
      ObjectLibrary::PatternEntry(FieldUpdateOperator::kClassName())
          .AnotherName(FieldUpdateOperator::kNickName()),
      [](const std::string& /*uri*/, std::unique_ptr<MergeOperator>* guard,
         std::string* /*errmsg*/) {
        *guard = std::make_unique<FieldUpdateOperator>();
        return guard->get();
      });
  return 1;
}

}  // namespace ROCKSDB_NAMESPACE
