//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_values_test_util.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ROCKSDB_NAMESPACE {

namespace {

// Applies the operands that OverlapValues::Apply() describes.
class MixedOperator : public MergeOperator {
 public:
  const char* Name() const override { return "OverlapStressMixed"; }

  bool FullMergeV2(const MergeOperationInput& in,
                   MergeOperationOutput* out) const override {
    std::string value;
    const Slice* existing = in.existing_value;
    Slice so_far;
    for (const Slice& operand : in.operand_list) {
      value = OverlapValues::Apply(in.key, existing, operand);
      so_far = value;
      existing = &so_far;
    }
    out->new_value = std::move(value);
    return true;
  }

  bool PartialMerge(const Slice& key, const Slice& left, const Slice& right,
                    std::string* new_value, Logger*) const override {
    if (right[0] == 'L' || (left[0] == 'A' && right[0] == 'C')) {
      *new_value = right.ToString();
      return true;
    }
    if (left[0] == 'L') {
      const Slice value(left.data() + 1, left.size() - 1);
      *new_value = "L" + OverlapValues::Apply(key, &value, right);
      return true;
    }
    if (left[0] != right[0]) {
      return false;
    }
    const std::string a = left.ToString();
    const std::string b = right.ToString();
    if (left[0] == 'A') {
      *new_value = b.substr(0, b.find('|') + 1) + a.substr(a.find('|') + 1) +
                   b.substr(b.find('|') + 1);
    } else {
      const int64_t sum =
          std::strtoll(a.c_str() + a.find(':') + 1, nullptr, 10) +
          std::strtoll(b.c_str() + b.find(':') + 1, nullptr, 10);
      *new_value = b.substr(0, b.find(':') + 1) + std::to_string(sum) + "|";
    }
    return true;
  }
};

// Applies OverlapValues::FilteredForm().
class StressFilter : public CompactionFilter {
 public:
  const char* Name() const override { return "OverlapStressFilter"; }

  Decision FilterV2(int /*level*/, const Slice& key, ValueType type,
                    const Slice& existing_value, std::string* new_value,
                    std::string* /*skip_until*/) const override {
    OverlapValue filtered;
    if (type != ValueType::kValue ||
        !OverlapValues::FilteredForm(key, existing_value, &filtered)) {
      return Decision::kKeep;
    }
    if (filtered == nullptr) {
      return Decision::kRemove;
    }
    *new_value = *filtered;
    return Decision::kChangeValue;
  }
};

}  // namespace

OverlapKeyUse OverlapValues::UseOf(size_t index) {
  switch (index % 10) {
    case 8:
      return OverlapKeyUse::kSingleDelete;
    case 9:
      return OverlapKeyUse::kFiltered;
    default:
      return OverlapKeyUse::kAny;
  }
}

std::string OverlapValues::KeyName(size_t writer, size_t index) {
  char name[32];
  snprintf(name, sizeof(name), "%02zu-%06zu", writer, index);
  return name;
}

std::string OverlapValues::Render(const Slice& key, const Fields& fields) {
  return std::to_string(fields.version) + ":" + std::to_string(fields.sum) +
         ":" + key.ToString() + "|" + fields.payload;
}

OverlapValues::Fields OverlapValues::Parse(const Slice& value) {
  const std::string text = value.ToString();
  Fields fields;
  char* end = nullptr;
  fields.version = std::strtoull(text.c_str(), &end, 10);
  if (*end == ':') {
    fields.sum = std::strtoll(end + 1, nullptr, 10);
  }
  const size_t bar = text.find('|');
  fields.payload = bar == std::string::npos ? "" : text.substr(bar + 1);
  return fields;
}

std::string OverlapValues::Apply(const Slice& key, const Slice* existing,
                                 const Slice& operand) {
  if (operand[0] == 'L') {
    return std::string(operand.data() + 1, operand.size() - 1);
  }
  Fields fields;
  if (existing != nullptr) {
    fields = Parse(*existing);
  }
  const std::string text(operand.data() + 1, operand.size() - 1);
  const size_t bar = text.find('|');
  char* end = nullptr;
  fields.version = std::strtoull(text.c_str(), &end, 10);
  if (operand[0] == 'A') {
    fields.payload.append(text, bar + 1, std::string::npos);
  } else {
    fields.sum += std::strtoll(end + 1, nullptr, 10);
    fields.payload.clear();
  }
  return Render(key, fields);
}

bool OverlapValues::FilteredForm(const Slice& key, const Slice& value,
                                 OverlapValue* filtered) {
  Fields fields = Parse(value);
  if (fields.payload.empty() || fields.payload[0] != 'F') {
    return false;
  }
  switch (fields.version % 3) {
    case 0:
      filtered->reset();
      break;
    case 1:
      fields.payload = "s";
      *filtered = std::make_shared<std::string>(Render(key, fields));
      break;
    default:
      fields.payload[0] = 'f';
      fields.payload.append(200, 'f');
      *filtered = std::make_shared<std::string>(Render(key, fields));
      break;
  }
  return true;
}

std::shared_ptr<MergeOperator> OverlapValues::NewMergeOperator() {
  return std::make_shared<MixedOperator>();
}

std::unique_ptr<CompactionFilter> OverlapValues::NewCompactionFilter() {
  return std::make_unique<StressFilter>();
}

std::string OverlapValues::Describe(const OverlapValue& value) {
  if (value == nullptr) {
    return "none";
  }
  return value->substr(0, 40) + "(" + std::to_string(value->size()) + ")";
}

}  // namespace ROCKSDB_NAMESPACE
