//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_edit.h"

#include <algorithm>
#include <cassert>

#include "db/dbformat.h"
#include "db/path_layout/path_id_map.h"
#include "db/path_layout/path_layout.h"
#include "logging/event_logger.h"
#include "util/coding.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

constexpr uint32_t kDeltaEditVersion = 1;

// Tags of the edit's operations. They are written to disk and must not change.
enum EditTag : uint32_t {
  kFile = 1,
  kMergeRecent = 2,
  kReplaceBuckets = 3,
  kRaiseFloors = 4,
  kDropUnusedBuckets = 5,
  kSnapshotPiece = 6,
};
// Tags of a file's optional fields. They are written to disk and must not
// change.
enum FileTag : uint32_t {
  kGlobalSeq = 1,
  kUniqueId = 2,
  kChecksum = 3,
};
// An unknown tag of either kind can be ignored if it has this bit.
constexpr uint32_t kIgnorable = 1 << 6;

// File numbers have 62 bits, and so have epochs, which are file numbers.
constexpr uint64_t kMaxNumber = (uint64_t{1} << 62) - 1;
// Limit of the counts of a file: larger than any real count, and small enough
// that sums do not overflow.
constexpr uint64_t kMaxCount = (uint64_t{1} << 56) - 1;

Status Corrupt(const std::string& what) {
  return Status::Corruption("Delta edit", what);
}

Status TakeTag(Slice* input, uint32_t* tag, Slice* payload) {
  if (!GetVarint32(input, tag) || !GetLengthPrefixedSlice(input, payload)) {
    return Corrupt("truncated field");
  }
  return Status::OK();
}

Status CheckUnknownTag(uint32_t tag) {
  if ((tag & kIgnorable) != 0) {
    return Status::OK();
  }
  return Status::NotSupported("Delta edit",
                              "unknown field " + std::to_string(tag));
}

bool TakeByte(Slice* input, uint8_t* byte) {
  if (input->empty()) {
    return false;
  }
  *byte = static_cast<uint8_t>((*input)[0]);
  input->remove_prefix(1);
  return true;
}

bool TakeString(Slice* input, std::string* string) {
  Slice slice;
  if (!GetLengthPrefixedSlice(input, &slice)) {
    return false;
  }
  string->assign(slice.data(), slice.size());
  return true;
}

void PutField(std::string* dst, uint32_t tag, const Slice& payload) {
  PutVarint32(dst, tag);
  PutLengthPrefixedSlice(dst, payload);
}

//======== Files

Status ValidateFile(const DeltaFileDescription& file) {
  const auto corrupt = [&file](const char* what) {
    return Corrupt("file #" + std::to_string(file.number) + ": " + what);
  };
  if (file.number == 0 || file.number > kMaxNumber) {
    return corrupt("bad number");
  }
  if (file.path_id >= PathLayout::kMaxPaths) {
    return corrupt("bad path id");
  }
  for (uint64_t count :
       {file.size, file.num_entries, file.num_range_anchors, file.raw_bytes}) {
    if (count > kMaxCount) {
      return corrupt("bad count");
    }
  }
  if (file.size == 0) {
    return corrupt("no size");
  }
  switch (file.kind) {
    case Kind::kOperands:
      if (file.num_entries == 0) {
        return corrupt("no operands");
      }
      if (file.num_range_anchors != 0) {
        return corrupt("operands with range anchors");
      }
      break;
    case Kind::kAnchors:
      if (file.num_entries + file.num_range_anchors == 0) {
        return corrupt("no anchors");
      }
      break;
    default:
      return corrupt("unknown kind");
  }
  switch (file.tier) {
    case Tier::kFlushed:
      if (file.first_epoch != file.last_epoch) {
        return corrupt("flushed, but not in one epoch");
      }
      [[fallthrough]];
    case Tier::kMerged:
      if (file.first_epoch == 0 || file.first_epoch > file.last_epoch ||
          file.last_epoch > kMaxNumber) {
        return corrupt("bad epochs");
      }
      break;
    case Tier::kSorted:
      if (file.first_epoch != 0 || file.last_epoch != 0) {
        return corrupt("sorted, but with epochs");
      }
      break;
    default:
      return corrupt("unknown tier");
  }
  if (file.smallest_seq > file.largest_seq ||
      file.largest_seq >= kMaxSequenceNumber) {
    return corrupt("bad sequence numbers");
  }
  if (file.has_global_seq &&
      (file.kind != Kind::kAnchors || file.tier != Tier::kFlushed ||
       file.smallest_seq != file.largest_seq)) {
    return corrupt("cannot have a global sequence number");
  }
  return Status::OK();
}

void PutFile(const DeltaFileDescription& file, std::string* dst) {
  PutVarint64(dst, file.number);
  PutVarint32(dst, file.path_id);
  PutVarint64(dst, file.size);
  dst->push_back(static_cast<char>(file.kind));
  dst->push_back(static_cast<char>(file.tier));
  PutVarint64Varint64(dst, file.first_epoch, file.last_epoch);
  PutLengthPrefixedSlice(dst, file.smallest);
  PutLengthPrefixedSlice(dst, file.largest);
  PutVarint64Varint64(dst, file.smallest_seq, file.largest_seq);
  PutVarint64Varint64(dst, file.num_entries, file.num_range_anchors);
  PutVarint64(dst, file.raw_bytes);
  if (file.has_global_seq) {
    PutField(dst, FileTag::kGlobalSeq, Slice());
  }
  if (file.unique_id != kNullUniqueId64x2) {
    std::string id;
    PutFixed64(&id, file.unique_id[0]);
    PutFixed64(&id, file.unique_id[1]);
    PutField(dst, FileTag::kUniqueId, id);
  }
  if (!file.file_checksum.empty() || !file.file_checksum_func_name.empty()) {
    std::string checksum;
    PutLengthPrefixedSlice(&checksum, file.file_checksum);
    PutLengthPrefixedSlice(&checksum, file.file_checksum_func_name);
    PutField(dst, FileTag::kChecksum, checksum);
  }
}

Status TakeFile(Slice input, DeltaFileDescription* file) {
  uint8_t kind = 0;
  uint8_t tier = 0;
  if (!GetVarint64(&input, &file->number) ||
      !GetVarint32(&input, &file->path_id) ||
      !GetVarint64(&input, &file->size) || !TakeByte(&input, &kind) ||
      !TakeByte(&input, &tier) || !GetVarint64(&input, &file->first_epoch) ||
      !GetVarint64(&input, &file->last_epoch) ||
      !TakeString(&input, &file->smallest) ||
      !TakeString(&input, &file->largest) ||
      !GetVarint64(&input, &file->smallest_seq) ||
      !GetVarint64(&input, &file->largest_seq) ||
      !GetVarint64(&input, &file->num_entries) ||
      !GetVarint64(&input, &file->num_range_anchors) ||
      !GetVarint64(&input, &file->raw_bytes)) {
    return Corrupt("truncated file");
  }
  file->kind = static_cast<Kind>(kind);
  file->tier = static_cast<Tier>(tier);
  uint32_t last_tag = 0;
  while (!input.empty()) {
    uint32_t tag = 0;
    Slice payload;
    Status s = TakeTag(&input, &tag, &payload);
    if (!s.ok()) {
      return s;
    }
    if (tag <= last_tag) {
      return Corrupt("fields of a file out of order");
    }
    last_tag = tag;
    switch (tag) {
      case FileTag::kGlobalSeq:
        file->has_global_seq = true;
        break;
      case FileTag::kUniqueId:
        if (!GetFixed64(&payload, &file->unique_id[0]) ||
            !GetFixed64(&payload, &file->unique_id[1]) ||
            file->unique_id == kNullUniqueId64x2) {
          return Corrupt("bad unique id of a file");
        }
        break;
      case FileTag::kChecksum:
        if (!TakeString(&payload, &file->file_checksum) ||
            !TakeString(&payload, &file->file_checksum_func_name) ||
            (file->file_checksum.empty() &&
             file->file_checksum_func_name.empty())) {
          return Corrupt("bad checksum of a file");
        }
        break;
      default:
        s = CheckUnknownTag(tag);
        if (!s.ok()) {
          return s;
        }
        payload.clear();
    }
    if (!payload.empty()) {
      return Corrupt("field of a file too long");
    }
  }
  return Status::OK();
}

//======== Buckets

Status ValidateBucket(const DeltaBucketState& state) {
  if (state.floor > kMaxNumber || state.extent_number > kMaxNumber ||
      state.anchors_number > kMaxNumber) {
    return Corrupt("bad number in a bucket");
  }
  if (state.extent_bytes > kMaxCount ||
      (state.extent_number == 0 && state.extent_bytes != 0)) {
    return Corrupt("bad size of an extent");
  }
  return Status::OK();
}

// Checks all buckets but the bound of the first one, which depends on the
// range.
Status ValidateBuckets(const std::vector<DeltaBucket>& buckets) {
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (i > 0 && buckets[i].lower_bound.empty()) {
      return Corrupt("bucket without a lower bound after another one");
    }
    Status s = ValidateBucket(buckets[i].state);
    if (!s.ok()) {
      return s;
    }
  }
  return Status::OK();
}

void PutBuckets(const std::vector<DeltaBucket>& buckets, std::string* dst) {
  PutVarint64(dst, buckets.size());
  for (const DeltaBucket& bucket : buckets) {
    PutLengthPrefixedSlice(dst, bucket.lower_bound);
    PutVarint64Varint64(dst, bucket.state.floor, bucket.state.extent_number);
    PutVarint64Varint64(dst, bucket.state.extent_bytes,
                        bucket.state.anchors_number);
  }
}

Status TakeBuckets(Slice* input, std::vector<DeltaBucket>* buckets) {
  uint64_t count = 0;
  // The encoding of a bucket has at least five bytes.
  if (!GetVarint64(input, &count) || count > input->size() / 5) {
    return Corrupt("bad number of buckets");
  }
  buckets->resize(count);
  for (DeltaBucket& bucket : *buckets) {
    DeltaBucketState& state = bucket.state;
    if (!TakeString(input, &bucket.lower_bound) ||
        !GetVarint64(input, &state.floor) ||
        !GetVarint64(input, &state.extent_number) ||
        !GetVarint64(input, &state.extent_bytes) ||
        !GetVarint64(input, &state.anchors_number)) {
      return Corrupt("truncated bucket");
    }
  }
  return Status::OK();
}

Status ValidateRange(const DeltaEdit::KeyRange& range) {
  if (range.end.has_value() &&
      (range.end->empty() || *range.end == range.begin)) {
    return Corrupt("empty range of keys");
  }
  return Status::OK();
}

void PutRange(const DeltaEdit::KeyRange& range, std::string* dst) {
  PutLengthPrefixedSlice(dst, range.begin);
  dst->push_back(range.end.has_value() ? 1 : 0);
  if (range.end.has_value()) {
    PutLengthPrefixedSlice(dst, *range.end);
  }
}

Status TakeRange(Slice* input, DeltaEdit::KeyRange* range) {
  uint8_t has_end = 0;
  if (!TakeString(input, &range->begin) || !TakeByte(input, &has_end) ||
      has_end > 1) {
    return Corrupt("bad range of keys");
  }
  if (has_end != 0) {
    range->end.emplace();
    if (!TakeString(input, &*range->end)) {
      return Corrupt("bad range of keys");
    }
  }
  return Status::OK();
}

//======== Texts

std::string KeyText(const Slice& key, bool hex) {
  return "'" + key.ToString(hex) + "'";
}

std::string RangeText(const DeltaEdit::KeyRange& range, bool hex) {
  return "[" + (range.begin.empty() ? "-inf" : KeyText(range.begin, hex)) +
         ", " + (range.end.has_value() ? KeyText(*range.end, hex) : "+inf") +
         ")";
}

std::string BucketText(const DeltaBucket& bucket, bool hex) {
  const DeltaBucketState& state = bucket.state;
  std::string text =
      (bucket.lower_bound.empty() ? "-inf" : KeyText(bucket.lower_bound, hex)) +
      " floor " + std::to_string(state.floor);
  if (state.extent_number != 0) {
    text += " extent #" + std::to_string(state.extent_number) + " bytes " +
            std::to_string(state.extent_bytes);
  }
  if (state.anchors_number != 0) {
    text += " anchors #" + std::to_string(state.anchors_number);
  }
  return text;
}

void AppendKey(JSONWriter* writer, const char* name, const Slice& key,
               bool hex) {
  *writer << name << key.ToString(hex);
}

void AppendRange(JSONWriter* writer, const DeltaEdit::KeyRange& range,
                 bool hex) {
  AppendKey(writer, "Begin", range.begin, hex);
  if (range.end.has_value()) {
    AppendKey(writer, "End", *range.end, hex);
  }
}

void AppendBucket(JSONWriter* writer, const DeltaBucket& bucket, bool hex) {
  AppendKey(writer, "LowerBound", bucket.lower_bound, hex);
  *writer << "Floor" << bucket.state.floor << "Extent"
          << bucket.state.extent_number << "ExtentBytes"
          << bucket.state.extent_bytes << "Anchors"
          << bucket.state.anchors_number;
}

void AppendFile(JSONWriter* writer, const DeltaFileDescription& file,
                bool hex) {
  *writer << "FileNumber" << file.number << "PathId" << file.path_id
          << "FileSize" << file.size << "Kind" << static_cast<int>(file.kind)
          << "Tier" << static_cast<int>(file.tier) << "FirstEpoch"
          << file.first_epoch << "LastEpoch" << file.last_epoch;
  AppendKey(writer, "SmallestKey", file.smallest, hex);
  AppendKey(writer, "LargestKey", file.largest, hex);
  *writer << "SmallestSeq" << file.smallest_seq << "LargestSeq"
          << file.largest_seq << "NumEntries" << file.num_entries
          << "NumRangeAnchors" << file.num_range_anchors << "RawBytes"
          << file.raw_bytes << "HasGlobalSeq" << file.has_global_seq;
  AppendKey(writer, "FileChecksum", file.file_checksum, /*hex=*/true);
  *writer << "FileChecksumFuncName" << file.file_checksum_func_name;
}

}  // namespace

SequenceNumber DeltaEdit::LargestSequence() const {
  SequenceNumber largest = 0;
  for (const DeltaFileDescription& file : files_) {
    largest = std::max(largest, file.largest_seq);
  }
  return largest;
}

bool DeltaEdit::KeyRange::EndsBefore(const KeyRange& other,
                                     const Comparator* ucmp) const {
  return end.has_value() && !other.begin.empty() &&
         ucmp->Compare(*end, other.begin) <= 0;
}

bool DeltaEdit::MapPathIds(const PathIdMap& ids) {
  bool is_changed = false;
  for (DeltaFileDescription& file : files_) {
    const uint32_t path_id = ids.OfFile(file.number, file.path_id);
    is_changed = is_changed || path_id != file.path_id;
    file.path_id = path_id;
  }
  return is_changed;
}

Status DeltaEdit::Validate() const {
  if (Empty()) {
    return Corrupt("empty");
  }
  Status s;
  for (const DeltaFileDescription& file : files_) {
    s = ValidateFile(file);
    if (!s.ok()) {
      return s;
    }
  }
  if (merge_recent_.has_value() && (merge_recent_->last_epoch == 0 ||
                                    merge_recent_->last_epoch > kMaxNumber ||
                                    merge_recent_->num_files == 0)) {
    return Corrupt("bad merge of recent files");
  }
  for (const ReplaceBuckets& replace : replace_buckets_) {
    s = ValidateRange(replace.range);
    if (!s.ok()) {
      return s;
    }
    if (replace.buckets.empty() ||
        replace.buckets.front().lower_bound != replace.range.begin) {
      return Corrupt("buckets do not begin where the replaced buckets begin");
    }
    s = ValidateBuckets(replace.buckets);
    if (!s.ok()) {
      return s;
    }
  }
  for (const RaiseFloors& raise : raise_floors_) {
    s = ValidateRange(raise.range);
    if (!s.ok()) {
      return s;
    }
    if (raise.epoch == 0 || raise.epoch > kMaxNumber) {
      return Corrupt("bad floor");
    }
  }
  if (snapshot_piece_.has_value()) {
    if (ChangesState()) {
      return Corrupt("snapshot piece with other operations");
    }
    s = ValidateBuckets(snapshot_piece_->buckets);
  }
  return s;
}

void DeltaEdit::EncodeTo(std::string* dst) const {
  assert(Validate().ok());
  PutVarint32(dst, kDeltaEditVersion);
  std::string payload;
  for (const DeltaFileDescription& file : files_) {
    payload.clear();
    PutFile(file, &payload);
    PutField(dst, EditTag::kFile, payload);
  }
  if (merge_recent_.has_value()) {
    payload.clear();
    PutVarint64(&payload, merge_recent_->last_epoch);
    PutVarint32(&payload, merge_recent_->num_files);
    PutField(dst, EditTag::kMergeRecent, payload);
  }
  for (const ReplaceBuckets& replace : replace_buckets_) {
    payload.clear();
    PutRange(replace.range, &payload);
    PutBuckets(replace.buckets, &payload);
    PutField(dst, EditTag::kReplaceBuckets, payload);
  }
  for (const RaiseFloors& raise : raise_floors_) {
    payload.clear();
    PutRange(raise.range, &payload);
    PutVarint64(&payload, raise.epoch);
    PutField(dst, EditTag::kRaiseFloors, payload);
  }
  if (drop_unused_buckets_) {
    PutField(dst, EditTag::kDropUnusedBuckets, Slice());
  }
  if (snapshot_piece_.has_value()) {
    payload.clear();
    PutVarint32(&payload, snapshot_piece_->index);
    payload.push_back(snapshot_piece_->is_last ? 1 : 0);
    PutBuckets(snapshot_piece_->buckets, &payload);
    PutField(dst, EditTag::kSnapshotPiece, payload);
  }
}

// The function is long because it is a table of the fields by their tags.
Status DeltaEdit::DecodeFrom(Slice src) {
  uint32_t version = 0;
  if (!GetVarint32(&src, &version)) {
    return Corrupt("no version");
  }
  if (version != kDeltaEditVersion) {
    return Status::NotSupported("Delta edit",
                                "version " + std::to_string(version));
  }
  DeltaEdit read;
  bool has_skipped_field = false;
  while (!src.empty()) {
    uint32_t tag = 0;
    Slice payload;
    Status s = TakeTag(&src, &tag, &payload);
    if (!s.ok()) {
      return s;
    }
    switch (tag) {
      case EditTag::kFile:
        s = TakeFile(payload, &read.files_.emplace_back());
        payload.clear();
        break;
      case EditTag::kMergeRecent: {
        if (read.merge_recent_.has_value()) {
          return Corrupt("two merges of recent files");
        }
        MergeRecent& merge = read.merge_recent_.emplace(MergeRecent());
        if (!GetVarint64(&payload, &merge.last_epoch) ||
            !GetVarint32(&payload, &merge.num_files)) {
          return Corrupt("truncated merge of recent files");
        }
        break;
      }
      case EditTag::kReplaceBuckets: {
        ReplaceBuckets& replace = read.replace_buckets_.emplace_back();
        s = TakeRange(&payload, &replace.range);
        if (s.ok()) {
          s = TakeBuckets(&payload, &replace.buckets);
        }
        break;
      }
      case EditTag::kRaiseFloors: {
        RaiseFloors& raise = read.raise_floors_.emplace_back();
        s = TakeRange(&payload, &raise.range);
        if (s.ok() && !GetVarint64(&payload, &raise.epoch)) {
          return Corrupt("truncated floor");
        }
        break;
      }
      case EditTag::kDropUnusedBuckets:
        read.drop_unused_buckets_ = true;
        break;
      case EditTag::kSnapshotPiece: {
        if (read.snapshot_piece_.has_value()) {
          return Corrupt("two snapshot pieces");
        }
        SnapshotPiece& piece = read.snapshot_piece_.emplace(SnapshotPiece());
        uint8_t is_last = 0;
        if (!GetVarint32(&payload, &piece.index) ||
            !TakeByte(&payload, &is_last) || is_last > 1) {
          return Corrupt("bad snapshot piece");
        }
        piece.is_last = is_last != 0;
        s = TakeBuckets(&payload, &piece.buckets);
        break;
      }
      default:
        s = CheckUnknownTag(tag);
        has_skipped_field = true;
        payload.clear();
    }
    if (!s.ok()) {
      return s;
    }
    if (!payload.empty()) {
      return Corrupt("field " + std::to_string(tag) + " too long");
    }
  }
  // A later version may write an edit of fields that may be skipped alone.
  Status s = has_skipped_field && read.Empty() ? Status::OK() : read.Validate();
  if (s.ok()) {
    *this = std::move(read);
  }
  return s;
}

std::string DeltaEdit::DebugString(bool hex) const {
  std::string text;
  const auto append_buckets = [&](const std::vector<DeltaBucket>& buckets) {
    for (const DeltaBucket& bucket : buckets) {
      text += " {" + BucketText(bucket, hex) + "}";
    }
  };
  if (snapshot_piece_.has_value()) {
    text += "\n    SnapshotPiece: " + std::to_string(snapshot_piece_->index) +
            (snapshot_piece_->is_last ? " (last)" : "");
    append_buckets(snapshot_piece_->buckets);
  }
  for (const DeltaFileDescription& file : files_) {
    text += "\n    AddDeltaFile: " + file.ToString();
  }
  if (merge_recent_.has_value()) {
    text += "\n    MergeRecent: up to epoch " +
            std::to_string(merge_recent_->last_epoch) + " files " +
            std::to_string(merge_recent_->num_files);
  }
  for (const ReplaceBuckets& replace : replace_buckets_) {
    text += "\n    ReplaceBuckets: " + RangeText(replace.range, hex);
    append_buckets(replace.buckets);
  }
  for (const RaiseFloors& raise : raise_floors_) {
    text += "\n    RaiseFloors: " + RangeText(raise.range, hex) + " to " +
            std::to_string(raise.epoch);
  }
  if (drop_unused_buckets_) {
    text += "\n    DropUnusedBuckets";
  }
  return text;
}

void DeltaEdit::AppendTo(JSONWriter* writer, bool hex) const {
  if (snapshot_piece_.has_value()) {
    *writer << "SnapshotPiece" << snapshot_piece_->index << "IsLastPiece"
            << snapshot_piece_->is_last;
    *writer << "AppendedBuckets";
    writer->StartArray();
    for (const DeltaBucket& bucket : snapshot_piece_->buckets) {
      writer->StartArrayedObject();
      AppendBucket(writer, bucket, hex);
      writer->EndArrayedObject();
    }
    writer->EndArray();
  }
  if (!files_.empty()) {
    *writer << "AddedFiles";
    writer->StartArray();
    for (const DeltaFileDescription& file : files_) {
      writer->StartArrayedObject();
      AppendFile(writer, file, hex);
      writer->EndArrayedObject();
    }
    writer->EndArray();
  }
  if (merge_recent_.has_value()) {
    *writer << "MergedUpToEpoch" << merge_recent_->last_epoch << "MergedFiles"
            << merge_recent_->num_files;
  }
  if (!replace_buckets_.empty()) {
    *writer << "ReplacedRanges";
    writer->StartArray();
    for (const ReplaceBuckets& replace : replace_buckets_) {
      writer->StartArrayedObject();
      AppendRange(writer, replace.range, hex);
      writer->EndArrayedObject();
    }
    writer->EndArray();
    // JSONWriter does not support arrays in objects of arrays, so each bucket
    // has the number of its replacement.
    *writer << "NewBuckets";
    writer->StartArray();
    for (size_t i = 0; i < replace_buckets_.size(); ++i) {
      for (const DeltaBucket& bucket : replace_buckets_[i].buckets) {
        writer->StartArrayedObject();
        *writer << "ReplacedRange" << i;
        AppendBucket(writer, bucket, hex);
        writer->EndArrayedObject();
      }
    }
    writer->EndArray();
  }
  if (!raise_floors_.empty()) {
    *writer << "RaisedFloors";
    writer->StartArray();
    for (const RaiseFloors& raise : raise_floors_) {
      writer->StartArrayedObject();
      AppendRange(writer, raise.range, hex);
      *writer << "Floor" << raise.epoch;
      writer->EndArrayedObject();
    }
    writer->EndArray();
  }
  if (drop_unused_buckets_) {
    *writer << "DropUnusedBuckets" << true;
  }
}

}  // namespace ROCKSDB_NAMESPACE
