//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Reads arbitrary bytes as a sequence of delta edits, as a MANIFEST may have
// them. What is decoded must be empty, since all fields were skipped, or valid
// and the same after encoding and decoding it again; a state that takes it must
// be consistent, and the same from a snapshot; one that refuses it must be as
// before.
//
// The first byte says what the rest is: the bytes of one edit, or a recipe for
// several that are mostly well-formed, with small numbers and short keys, so
// that states become something.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/delta/delta_version.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "rocksdb/comparator.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;
using VersionPtr = std::shared_ptr<const DeltaVersion>;

std::string Encode(const DeltaEdit& edit) {
  std::string encoded;
  edit.EncodeTo(&encoded);
  return encoded;
}

DeltaFileDescription MakeFile(FuzzInput* in) {
  DeltaFileDescription file;
  const uint8_t shape = in->Byte();
  file.number = in->Byte();
  file.size = 1;
  file.kind = static_cast<DeltaFileDescription::Kind>(1 + shape % 2);
  file.tier = static_cast<DeltaFileDescription::Tier>(shape / 2 % 3);
  if (file.tier != DeltaFileDescription::Tier::kSorted) {
    file.first_epoch = file.last_epoch = in->Byte();
  }
  if (file.tier == DeltaFileDescription::Tier::kMerged) {
    file.last_epoch += in->Byte() % 16;
  }
  file.smallest = in->Key();
  file.largest = file.smallest + in->Key();
  file.num_entries = 1;
  return file;
}

DeltaEdit::KeyRange MakeRange(FuzzInput* in) {
  DeltaEdit::KeyRange range;
  range.begin = in->Key();
  std::string end = in->Key();
  if (!end.empty()) {
    range.end = std::move(end);
  }
  return range;
}

std::vector<DeltaBucket> MakeBuckets(std::string begin, FuzzInput* in) {
  std::vector<DeltaBucket> buckets;
  for (int n = in->Byte() % 8; n >= 0; --n) {
    DeltaBucket bucket;
    bucket.lower_bound = std::move(begin);
    bucket.state.floor = in->Byte();
    bucket.state.extent_number = in->Byte();
    bucket.state.extent_bytes = bucket.state.extent_number != 0;
    bucket.state.anchors_number = in->Byte();
    buckets.push_back(std::move(bucket));
    begin = in->Key();
  }
  return buckets;
}

DeltaEdit MakeEdit(FuzzInput* in) {
  DeltaEdit edit;
  const uint8_t shape = in->Byte();
  for (int n = shape % 4; n > 0; --n) {
    edit.AddFile(MakeFile(in));
  }
  if ((shape & 0x80) != 0) {
    DeltaEdit::SnapshotPiece piece;
    piece.index = in->Byte() % 4;
    piece.is_last = (shape & 4) != 0;
    if ((shape & 8) != 0) {
      piece.buckets = MakeBuckets(in->Key(), in);
    }
    edit.SetSnapshotPiece(std::move(piece));
    return edit;
  }
  if ((shape & 4) != 0) {
    DeltaEdit::MergeRecent merge;
    merge.last_epoch = in->Byte();
    merge.num_files = in->Byte() % 8;
    edit.SetMergeRecent(merge);
  }
  if ((shape & 8) != 0) {
    DeltaEdit::ReplaceBuckets replace;
    replace.range = MakeRange(in);
    replace.buckets = MakeBuckets(replace.range.begin, in);
    edit.AddReplaceBuckets(std::move(replace));
  }
  if ((shape & 16) != 0) {
    DeltaEdit::RaiseFloors raise;
    raise.range = MakeRange(in);
    raise.epoch = in->Byte();
    edit.AddRaiseFloors(std::move(raise));
  }
  if ((shape & 32) != 0) {
    edit.SetDropUnusedBuckets();
  }
  return edit;
}

std::string Text(const VersionPtr& state) {
  return state == nullptr ? "" : state->DebugString(true);
}

class Fuzzer {
 public:
  // Bytes of one edit, for an empty state and for what came before.
  void RunBytes(const std::string& bytes) {
    DeltaEdit edit;
    Status s = edit.DecodeFrom(bytes);
    if (!s.ok()) {
      Require(s.IsCorruption() || s.IsNotSupported());
      Require(edit.Empty());
      return;
    }
    Require(edit.Empty() || edit.Validate().ok());
    Run(edit);
  }

  void Run(const DeltaEdit& edit) {
    if (!edit.Validate().ok()) {
      return;
    }
    DeltaEdit again;
    Require(again.DecodeFrom(Encode(edit)).ok());
    Require(edit == again);
    edit.DebugString(true);

    const std::string before = Text(state_);
    VersionPtr next = state_;
    Status s = DeltaVersion::Apply(
        state_, edit, BytewiseComparator(),
        [](const DeltaFileDescription& file) {
          return DeltaFileMeta::Create(file, nullptr);
        },
        &next);
    Require(Text(state_) == before);
    if (!s.ok()) {
      Require(s.IsCorruption());
      Require(next == state_);
      return;
    }
    state_ = std::move(next);
    if (state_ == nullptr || state_->IsLoading()) {
      return;
    }
    Require(state_->CheckConsistency().ok());
    VersionPtr loaded;
    for (const DeltaEdit& piece : state_->SplitForSnapshot(/*max_size=*/500)) {
      Require(DeltaVersion::Apply(
                  loaded, piece, BytewiseComparator(),
                  [](const DeltaFileDescription& file) {
                    return DeltaFileMeta::Create(file, nullptr);
                  },
                  &loaded)
                  .ok());
    }
    Require(Text(loaded) == Text(state_));
  }

 private:
  VersionPtr state_;
};

void FuzzDeltaEdits(FuzzInput* input) {
  Fuzzer fuzzer;
  const bool raw = input->Byte() % 4 == 0;
  if (raw) {
    fuzzer.RunBytes(input->Rest());
    return;
  }
  while (!input->empty()) {
    fuzzer.Run(MakeEdit(input));
  }
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(delta_edit, ROCKSDB_NAMESPACE::FuzzDeltaEdits)
