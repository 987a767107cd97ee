//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Reads a damaged delta file: point lookups, filter, iterator, range anchors,
// and what repairs use to read a file without a MANIFEST.
//
// The promise: each answer is the one of the intact file, or Corruption with
// the name of the file. The filter never denies a key that the file has. An
// iterator yields entries of the intact file from the first one on, without a
// gap, and its status is OK only if it has yielded all of them.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "db/dbformat.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_probe.h"
#include "db/delta/delta_file_reader.h"
#include "file/random_access_file_reader.h"
#include "fuzz/strata/delta_fuzz_family.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "table/block_based/block_based_table_builder.h"
#include "table/format.h"
#include "table/meta_blocks.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::DeltaFuzzFamily;
using fuzz::FuzzInput;
using fuzz::OkOrNamed;
using fuzz::Require;
using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

constexpr size_t kMaxEntries = 24;
constexpr uint64_t kMaxSeq = 255;

// The sequence numbers of a key, the newest first.
using Seqs = std::set<SequenceNumber, std::greater<SequenceNumber>>;

// What the file has.
struct Model {
  Kind kind = Kind::kOperands;
  Tier tier = Tier::kFlushed;
  std::map<std::string, Seqs> points;
  // Start, then the largest sequence number first, then the end.
  std::map<std::pair<std::string, uint64_t>, std::string> ranges;
  size_t value_unit = 1;  // bytes

  bool empty() const { return points.empty() && ranges.empty(); }

  // Follows from the key and the sequence number. Some values make a file of
  // several blocks.
  std::string Value(const std::string& key, SequenceNumber seq) const {
    return kind == Kind::kAnchors ? ""
                                  : key + std::string(value_unit * (seq % 16),
                                                      static_cast<char>(seq));
  }
  SequenceNumber NewestAnchor(const std::string& key,
                              SequenceNumber read_seq) const {
    SequenceNumber newest = 0;
    const auto found = points.find(key);
    if (found != points.end()) {
      const auto seq = found->second.lower_bound(read_seq);
      newest = seq == found->second.end() ? 0 : *seq;
    }
    for (const auto& [start, end] : ranges) {
      const SequenceNumber seq = kMaxSeq - start.second;
      if (start.first <= key && key < end && seq <= read_seq) {
        newest = std::max(newest, seq);
      }
    }
    return newest;
  }
};

Model MakeModel(FuzzInput* input) {
  Model model;
  const uint8_t shape = input->Byte();
  model.kind = shape % 2 == 0 ? Kind::kOperands : Kind::kAnchors;
  model.tier = static_cast<Tier>(shape / 2 % 3);
  model.value_unit = shape / 8;
  for (size_t n = input->Byte() % (kMaxEntries + 1); n > 0; --n) {
    const std::string key = input->Key(2);
    model.points[key].insert(input->Byte());
  }
  if (model.kind == Kind::kAnchors) {
    for (size_t n = input->Byte() % 8; n > 0; --n) {
      const std::string start = input->Key();
      const std::string end = start + "~" + input->Key();
      model.ranges[{start, kMaxSeq - input->Byte()}] = end;
    }
  }
  return model;
}

// Returns false if there are no entries, hence no file.
bool Build(const DeltaFuzzFamily& family, const Model& model,
           DeltaFileDescription* description) {
  DeltaFileBuilder::Options options;
  options.number = DeltaFuzzFamily::kFileNumber;
  options.kind = model.kind;
  options.tier = model.tier;
  if (model.tier != Tier::kSorted) {
    options.first_epoch = 7;
    options.last_epoch = model.tier == Tier::kMerged ? 9 : 7;
  }
  options.db_id = "the DB";
  std::unique_ptr<DeltaFileBuilder> builder;
  Require(DeltaFileBuilder::Create(family.tables(), options, &builder).ok());
  for (const auto& [key, seqs] : model.points) {
    for (const SequenceNumber seq : seqs) {
      const InternalKey operand(key, seq, kTypeMerge);
      Require(model.kind == Kind::kOperands
                  ? builder->AddOperand(operand.Encode(), model.Value(key, seq))
                        .ok()
                  : builder->AddAnchor(key, seq).ok());
    }
  }
  for (const auto& [start, end] : model.ranges) {
    Require(
        builder->AddRangeAnchor(start.first, end, kMaxSeq - start.second).ok());
  }
  if (model.tier == Tier::kSorted) {
    Require(builder->SetBuckets({{"", 5}}).ok());
  }
  Require(builder->Finish(description).ok());
  Require(model.empty() == (description->number == 0));
  return !model.empty();
}

// Returns the place of the block of table properties in the intact file.
BlockHandle PropertiesBlock(const DeltaFuzzFamily& family, uint64_t size) {
  std::unique_ptr<RandomAccessFileReader> file;
  Require(RandomAccessFileReader::Create(family.ioptions().fs,
                                         DeltaFuzzFamily::file_name(),
                                         FileOptions(), &file, nullptr)
              .ok());
  BlockHandle handle;
  Require(FindMetaBlockInFile(file.get(), size, kBlockBasedTableMagicNumber,
                              family.ioptions(), ReadOptions(),
                              kPropertiesBlockName, &handle)
              .ok());
  return handle;
}

// Compares what a reader of the damaged file says with the model.
class Judge {
 public:
  Judge(const Model& model, const DeltaFileReader& reader, bool intact)
      : model_(model), reader_(reader), intact_(intact) {}

  void CheckKey(const std::string& key, SequenceNumber read_seq) const {
    if (model_.points.count(key) > 0) {
      Require(reader_.MayHaveKey(read_options_, key));
    }
    if (model_.kind == Kind::kOperands) {
      CheckOperands(key, read_seq);
    } else {
      SequenceNumber seq = 0;
      const Status s =
          OkOrNamed(reader_.NewestAnchor(read_options_, key, read_seq, &seq));
      Require(s.ok() || !intact_);
      Require(!s.ok() || seq == model_.NewestAnchor(key, read_seq));
    }
  }

  void CheckIterator() const {
    const std::unique_ptr<InternalIterator> iter(
        reader_.NewIterator(read_options_, TableReaderCaller::kUserIterator));
    auto key = model_.points.begin();
    auto seq = key == model_.points.end() ? Seqs::const_iterator()
                                          : key->second.begin();
    const ValueType type =
        model_.kind == Kind::kOperands ? kTypeMerge : kTypeDeletion;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      Require(key != model_.points.end());
      Require(iter->key() == InternalKey(key->first, *seq, type).Encode());
      Require(iter->value() == Slice(model_.Value(key->first, *seq)));
      if (++seq == key->second.end() && ++key != model_.points.end()) {
        seq = key->second.begin();
      }
    }
    Require(iter->status().ok() ? key == model_.points.end() : !intact_);
    Require(iter->status().ok() || iter->status().IsCorruption());
  }

  void CheckChecksums() const {
    const Status s = OkOrNamed(reader_.VerifyChecksum(read_options_));
    Require(s.ok() || !intact_);
  }

 private:
  void CheckOperands(const std::string& key, SequenceNumber read_seq) const {
    DeltaOperands operands;
    const Status s = OkOrNamed(
        reader_.CollectOperands(read_options_, key, read_seq, &operands));
    if (!s.ok()) {
      Require(!intact_);
      Require(operands.empty());
      return;
    }
    size_t found = 0;
    const auto seqs = model_.points.find(key);
    if (seqs != model_.points.end()) {
      for (auto seq = seqs->second.lower_bound(read_seq);
           seq != seqs->second.end(); ++seq, ++found) {
        Require(found < operands.size());
        Require(operands[found].seq == *seq);
        Require(operands[found].value == Slice(model_.Value(key, *seq)));
      }
    }
    Require(found == operands.size());
  }

  const Model& model_;
  const DeltaFileReader& reader_;
  const bool intact_;
  const ReadOptions read_options_;
};

// Reads the file as a repair does.
void CheckProbe(const DeltaFuzzFamily& family, const Model& model,
                bool intact) {
  DeltaFileProbe probe;
  Status s = OkOrNamed(DeltaFileProbe::Read(
      family.ioptions(), FileOptions(), DeltaFuzzFamily::directory(),
      DeltaFuzzFamily::kFileNumber, &probe));
  if (s.ok()) {
    const auto tables =
        probe.NewTables(family.ioptions(), family.cf_options(), FileOptions());
    s = OkOrNamed(probe.Scan(*tables));
  }
  if (!s.ok()) {
    Require(!intact);
    return;
  }
  size_t num_points = 0;
  for (const auto& key : model.points) {
    num_points += key.second.size();
  }
  Require(probe.description.kind == model.kind);
  Require(probe.description.tier == model.tier);
  Require(probe.description.num_entries == num_points);
  Require(probe.description.num_range_anchors == model.ranges.size());
}

void FuzzDeltaFile(FuzzInput* input) {
  static auto* const family = new DeltaFuzzFamily;
  const Model model = MakeModel(input);
  DeltaFileDescription description;
  if (!Build(*family, model, &description)) {
    return;
  }
  const std::string contents = family->Contents();
  Require(contents.size() == description.size);
  const BlockHandle properties = PropertiesBlock(*family, description.size);
  std::string damaged = contents;
  const bool may_resize = input->Byte() % 8 == 0;
  fuzz::Damage(input, may_resize, &damaged);
  if (damaged.size() == contents.size()) {
    // RocksDB parses the properties before it verifies their checksum, because
    // an ingestion may have changed a sequence number in them. It discards what
    // it has parsed if the checksum is wrong, but its assertions do not expect
    // a damaged block. delta_contents_fuzzer.cc has other properties.
    const auto at = static_cast<size_t>(properties.offset());
    const auto n = static_cast<size_t>(properties.size());
    damaged.replace(at, n, contents, at, n);
  }
  const bool intact = damaged == contents;
  family->SetContents(damaged);

  std::unique_ptr<DeltaFileReader> reader;
  const Status s = OkOrNamed(DeltaFileReader::Open(
      family->tables(), ReadOptions(), description, &reader));
  if (!s.ok()) {
    Require(!intact && reader == nullptr);
    return;
  }
  Require(damaged.size() == contents.size());
  const Judge judge(model, *reader, intact);
  for (const auto& key : model.points) {
    judge.CheckKey(key.first, kMaxSequenceNumber);
    judge.CheckKey(key.first, input->Byte());
  }
  for (const std::string key : {"", "a", "b~", "zz"}) {
    judge.CheckKey(key, kMaxSequenceNumber);
  }
  judge.CheckIterator();
  judge.CheckChecksums();
  CheckProbe(*family, model, intact);
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(delta_file, ROCKSDB_NAMESPACE::FuzzDeltaFile)
