// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/record_shape.h"

#include <utility>
#include <vector>

#include "rocksdb/iterator.h"
#include "tools/workloads/generators.h"
#include "tools/workloads/record.h"
#include "util/coding.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

class YcsbShape : public RecordShape {
 public:
  explicit YcsbShape(const WorkloadOptions& options)
      : key_size_(options.key_size),
        field_count_(options.field_count),
        field_length_(options.field_length),
        // The codec needs a valid size; Validate reports the given one.
        keys_(KeyCodec::Validate(options.key_size).ok() ? options.key_size
                                                        : 24),
        values_(options.compression_ratio) {}

  Status Validate() const override {
    Status s = KeyCodec::Validate(key_size_);
    if (s.ok()) {
      s = FieldCodec::Validate(field_length_);
    }
    if (s.ok() && field_count_ == 0) {
      s = Status::InvalidArgument("--ycsb_field_count", "must be positive");
    }
    return s;
  }

  void Key(uint64_t record, std::string* key) const override {
    keys_.Encode(record, key);
  }

  void Value(uint64_t record, Random64* rnd,
             std::string* value) const override {
    values_.MakeValue(record, rnd, field_count_, field_length_, value);
  }

  void Delta(uint64_t record, Random64* rnd,
             std::string* delta) const override {
    const uint32_t field = static_cast<uint32_t>(rnd->Uniform(field_count_));
    values_.MakeDelta(record, field, rnd->Next(), field_length_, delta);
  }

  Status Update(uint64_t record, Random64* rnd,
                std::string* value) const override {
    const uint32_t field = static_cast<uint32_t>(rnd->Uniform(field_count_));
    return values_.UpdateField(record, field, rnd->Next(), field_length_,
                               value);
  }

  bool RecordOf(const Slice& key, uint64_t* record) const override {
    return keys_.Decode(key, record).ok();
  }

  Status Check(uint64_t record, const Slice& value,
               bool partial) const override {
    return partial ? values_.CheckPartialValue(record, field_count_, value)
                   : values_.CheckValue(record, field_count_, value);
  }

  void KeyAt(uint64_t position, std::string* key) const override {
    keys_.EncodeMixed(position, key);
  }

  uint64_t PositionOf(uint64_t record) const override { return Mix64(record); }

  double MeanKeySize() const override { return key_size_; }

  double MeanValueSize() const override {
    return static_cast<double>(field_count_) *
           (VarintLength(field_length_) + field_length_);
  }

 private:
  const int key_size_;
  const uint32_t field_count_;
  const uint32_t field_length_;
  const KeyCodec keys_;
  const RecordCodec values_;
};

// Sizes as reported for UP2X in Cao et al., "Characterizing, Modeling, and
// Benchmarking RocksDB Key-Value Workloads at Facebook" (FAST 2020), and used
// by the KDSep paper: normal, keys 10.45 +- 1.4 bytes, values 46.8 +- 11.6. A
// key needs 8 bytes to be unique and a field 8 to be checked, which cuts off 4%
// of the keys' distribution and a negligible part of the values'.
class Up2xShape : public RecordShape {
 public:
  static constexpr double kKeyMean = 10.45;
  static constexpr double kKeyStddev = 1.4;
  static constexpr double kValueMean = 46.8;
  static constexpr double kValueStddev = 11.6;

  explicit Up2xShape(const WorkloadOptions& options)
      : keys_(NormalSize(kKeyMean, kKeyStddev, 8)),
        lengths_(kValueMean, kValueStddev, FieldCodec::kMinLength),
        values_(options.compression_ratio) {}

  Status Validate() const override { return Status::OK(); }

  void Key(uint64_t record, std::string* key) const override {
    keys_.Encode(record, key);
  }

  void Value(uint64_t record, Random64* rnd,
             std::string* value) const override {
    value->clear();
    const uint64_t version = rnd->Next();
    values_.AppendField(record, 0, version, lengths_.Next(rnd), value);
  }

  void Delta(uint64_t record, Random64* rnd,
             std::string* delta) const override {
    const uint64_t version = rnd->Next();
    values_.MakeDelta(record, 0, version, lengths_.Next(rnd), delta);
  }

  Status Update(uint64_t record, Random64* rnd,
                std::string* value) const override {
    const uint64_t version = rnd->Next();
    return values_.UpdateField(record, 0, version, lengths_.Next(rnd), value);
  }

  bool RecordOf(const Slice& key, uint64_t* record) const override {
    return keys_.Decode(key, record).ok();
  }

  Status Check(uint64_t record, const Slice& value,
               bool partial) const override {
    return partial ? values_.CheckPartialValue(record, 1, value)
                   : values_.CheckValue(record, 1, value);
  }

  void KeyAt(uint64_t position, std::string* key) const override {
    keys_.EncodeMixed(position, key);
  }

  uint64_t PositionOf(uint64_t record) const override { return Mix64(record); }

  double MeanKeySize() const override { return kKeyMean; }
  double MeanValueSize() const override { return 1 + kValueMean; }

 private:
  const KeyCodec keys_;
  const NormalSize lengths_;
  const RecordCodec values_;
};

}  // namespace

std::unique_ptr<RecordShape> NewYcsbShape(const WorkloadOptions& options) {
  return std::make_unique<YcsbShape>(options);
}

std::unique_ptr<RecordShape> NewUp2xShape(const WorkloadOptions& options) {
  return std::make_unique<Up2xShape>(options);
}

std::unique_ptr<RecordShape> NewShapeOfKeys(const WorkloadOptions& options,
                                            Iterator* iter) {
  // Any 8 bytes can be the number of a record, so a short key may fit several
  // shapes. They are distinguished by their sizes: those of UP2X vary.
  constexpr int kEnoughKeys = 64;
  std::vector<std::unique_ptr<RecordShape>> shapes;
  shapes.push_back(NewYcsbShape(options));
  shapes.push_back(NewUp2xShape(options));
  for (int i = 0; i < kEnoughKeys && iter->Valid(); ++i, iter->Next()) {
    for (auto& shape : shapes) {
      uint64_t record = 0;
      if (shape != nullptr && !shape->RecordOf(iter->key(), &record)) {
        shape.reset();
      }
    }
  }
  for (auto& shape : shapes) {
    if (shape != nullptr) {
      return std::move(shape);
    }
  }
  return nullptr;
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
