//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_blob_writer.h"

#include <cassert>
#include <utility>

#include "db/blob/blob_log_writer.h"
#include "file/writable_file_writer.h"

namespace ROCKSDB_NAMESPACE {

MappedBlobWriter::MappedBlobWriter(MappedBlobSink* sink,
                                   uint32_t column_family_id,
                                   CompressionType compression)
    : sink_(sink) {
  header_.column_family_id = column_family_id;
  header_.compression = compression;
  header_.hash_seed = sink->hash_seed();
}

Status MappedBlobWriter::Add(const WriteOptions& write_options,
                             const Slice& user_key, SequenceNumber seq,
                             bool value_changed, const Slice& value,
                             BlobLogWriter* log, uint64_t* value_offset,
                             std::string* blob_index) {
  const MappedBlobIndex name =
      sink_->NameOf(user_key, seq, log->get_log_number(), value_changed);
  BlobRecordV2 record;
  record.seq = seq;
  record.birth = name.birth;
  record.direct = name.mode == MappedBlobIndex::Mode::kDirect;
  Status s = index_.Add(
      MapName{MapKeyHash::Of(user_key, header_.hash_seed), seq, name.birth},
      BlobRecordV2::kHeaderSize + user_key.size() + value.size(),
      record.direct);
  if (!s.ok()) {
    return s;
  }
  // A checksum that is passed along also protects the value in memory.
  const bool is_stored_form = sink_->IsStoredForm();
  const uint32_t blob_crc = is_stored_form ? sink_->StoredBlobCrc() : 0;
  record.EncodeHeaderTo(user_key, value, &record_header_,
                        is_stored_form ? &blob_crc : nullptr);
  uint64_t key_offset = 0;
  s = log->EmitPhysicalRecord(write_options, record_header_, user_key, value,
                              &key_offset, value_offset);
  if (s.ok()) {
    assert(*value_offset + value.size() == index_.EndOffset());
    name.EncodeTo(blob_index);
    sink_->OnRecord(value.size());
  }
  return s;
}

Status MappedBlobWriter::AppendIndex(const WriteOptions& write_options,
                                     BlobLogWriter* log,
                                     BlobLogFooter* footer) {
  index_.Finish();
  footer_ = index_.footer();
  IOOptions options;
  Status s = WritableFileWriter::PrepareIOOptions(write_options, options);
  if (s.ok()) {
    s = index_.AppendTo(options, log->file());
  }
  *footer = footer_.ToLogFooter();
  return s;
}

void MappedBlobWriter::Close(uint64_t number, uint32_t path_id) {
  MappedBlobFile file;
  file.number = number;
  file.path_id = path_id;
  file.compression = header_.compression;
  file.size = index_.EndOffset() + footer_.index_size + BlobFooterV2::kSize;
  file.footer = footer_;
  file.index = index_.ReleaseContents();
  sink_->OnFileClosed(std::move(file));
}

}  // namespace ROCKSDB_NAMESPACE
