//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The fields of VersionEdit for delta files and the WAL buffer
// (see docs/formats.md).

#include <algorithm>
#include <cassert>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/merged_value/merged_value_generation.h"
#include "db/path_layout/path_id_map.h"
#include "db/version_edit.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kWalBufferMarkVersion = 1;

}  // namespace

void VersionEdit::EncodeWalBuffer(std::string* dst) const {
  assert(has_wal_buffer_);
  PutVarint32(dst, kWalBuffer);
  PutLengthPrefixedSlice(dst, Slice(&kWalBufferMarkVersion, 1));
}

Status VersionEdit::DecodeWalBuffer(Slice* input) {
  Slice field;
  if (!GetLengthPrefixedSlice(input, &field) || field.empty()) {
    return Status::Corruption("VersionEdit", "WAL buffer mark");
  }
  if (field.size() != 1 || field[0] != kWalBufferMarkVersion) {
    return Status::NotSupported(
        "VersionEdit", "WAL buffer mark of a later version of this library");
  }
  has_wal_buffer_ = true;
  return Status::OK();
}

void VersionEdit::NoteDeltaFiles(
    const std::vector<DeltaFileDescription>& files) {
  for (const DeltaFileDescription& file : files) {
    files_to_quarantine_.push_back(file.number);
    if (!HasLastSequence() || file.largest_seq > GetLastSequence()) {
      SetLastSequence(file.largest_seq);
    }
  }
}

void VersionEdit::SetDeltaEdit(DeltaEdit delta_edit) {
  assert(delta_edit_ == nullptr);
  assert(!delta_edit.Empty());
  NoteDeltaFiles(delta_edit.files());
  delta_edit_ = std::make_shared<const DeltaEdit>(std::move(delta_edit));
}

void VersionEdit::AddDeltaFiles(
    const std::vector<DeltaFileDescription>& files) {
  // Copies of this VersionEdit share the old DeltaEdit, so it is not modified.
  DeltaEdit delta_edit =
      delta_edit_ == nullptr ? DeltaEdit() : DeltaEdit(*delta_edit_);
  for (const DeltaFileDescription& file : files) {
    delta_edit.AddFile(file);
  }
  assert(!delta_edit.Empty());
  NoteDeltaFiles(files);
  delta_edit_ = std::make_shared<const DeltaEdit>(std::move(delta_edit));
}

bool VersionEdit::MapPathIds(const PathIdMap& ids) {
  bool is_changed = false;
  for (auto& [level, file] : new_files_) {
    const uint32_t path_id =
        ids.OfFile(file.fd.GetNumber(), file.fd.GetPathId());
    is_changed = is_changed || path_id != file.fd.GetPathId();
    file.fd.packed_number_and_path_id =
        PackFileNumberAndPathId(file.fd.GetNumber(), path_id);
    // The mask of a file without blob files is undefined.
    if (PathLayout::HasBlobs(file)) {
      const uint8_t mask = PathLayout::BlobPathMask(file);
      // Mapped entries may be in any blob file.
      const uint8_t new_mask = ids.OfMask(
          mask, file.blob_refs.mapped.Any() ? 0 : file.oldest_blob_file_number);
      is_changed = is_changed || new_mask != mask;
      file.blob_refs.path_mask = new_mask;
    }
  }
  for (BlobFileAddition& file : blob_file_additions_) {
    const uint32_t path_id =
        ids.OfFile(file.GetBlobFileNumber(), file.GetPathId());
    is_changed = is_changed || path_id != file.GetPathId();
    HotMark hot = file.hot();
    if (hot.is_hot()) {
      const uint32_t home = ids.HomeOf(file.GetBlobFileNumber(), hot.home());
      hot = home == path_id ? HotMark() : HotMark::WithHome(home);
      is_changed = is_changed || !(hot == file.hot());
    }
    file = BlobFileAddition(file.GetBlobFileNumber(), file.GetTotalBlobCount(),
                            file.GetTotalBlobBytes(), file.GetChecksumMethod(),
                            file.GetChecksumValue(), path_id,
                            file.GetIndexBytes(), file.IsCollected(), hot);
  }
  if (delta_edit_ != nullptr) {
    DeltaEdit delta_edit = *delta_edit_;
    if (delta_edit.MapPathIds(ids)) {
      is_changed = true;
      delta_edit_ = std::make_shared<const DeltaEdit>(std::move(delta_edit));
    }
  }
  return is_changed;
}

void VersionEdit::EncodeDeltaEdit(std::string* dst) const {
  std::string encoded;
  delta_edit_->EncodeTo(&encoded);
  PutVarint32(dst, kDeltaStore);
  PutLengthPrefixedSlice(dst, encoded);
}

Status VersionEdit::DecodeDeltaEdit(Slice* input) {
  Slice encoded;
  if (!GetLengthPrefixedSlice(input, &encoded)) {
    return Status::Corruption("Delta edit", "missing length prefix");
  }
  DeltaEdit delta_edit;
  const Status s = delta_edit.DecodeFrom(encoded);
  // An edit of which all fields were skipped counts as absent.
  if (!s.ok() || delta_edit.Empty()) {
    return s;
  }
  if (delta_edit_ != nullptr) {
    return Status::Corruption("Delta edit", "occurs twice in a VersionEdit");
  }
  SetDeltaEdit(std::move(delta_edit));
  return s;
}

Status RefuseDelta(const VersionEdit& edit) {
  return edit.GetDeltaEdit() == nullptr
             ? Status::OK()
             : Status::NotSupported(
                   "The database has merge operands in delta files "
                   "(enable_delta_separation): secondary and follower "
                   "instances cannot read them");
}

void VersionEdit::NoteMergedValues(MergedValueGeneration* generation) const {
  assert(ChangesMergedValues());
  SequenceNumber largest = 0;
  for (const auto& [level, file] : new_files_) {
    largest = std::max(largest, file.fd.largest_seqno);
  }
  // An anchor hides operands from readers at its sequence number and later.
  if (const DeltaEdit* const deltas = GetDeltaEdit()) {
    for (const DeltaFileDescription& file : deltas->files()) {
      largest = std::max(largest, file.largest_seq);
    }
  }
  generation->OnChange(largest);
}

}  // namespace ROCKSDB_NAMESPACE
