//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "file/random_access_file_reader.h"

namespace ROCKSDB_NAMESPACE {
namespace blob_v2_test {

using Records = std::vector<AddressMap::Record>;

inline bool SameRecord(const AddressMap::Record& a,
                       const AddressMap::Record& b) {
  return a.name.key == b.name.key && a.name.seq == b.name.seq &&
         a.name.birth == b.name.birth && a.offset == b.offset &&
         a.size == b.size && a.direct == b.direct;
}

inline bool SameRecords(const Records& a, const Records& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), SameRecord);
}

// A file in memory.
class BytesFile : public FSRandomAccessFile {
 public:
  explicit BytesFile(const std::string& bytes) : bytes_(bytes) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& /*options*/,
                Slice* result, char* scratch,
                IODebugContext* /*dbg*/) const override {
    if (reads_before_error_ == 0) {
      memset(scratch, 0x55, n);
      return IOStatus::IOError("no read today");
    }
    --reads_before_error_;
    longest_read_ = std::max(longest_read_, n);
    const uint64_t begin = std::min<uint64_t>(offset, bytes_.size());
    const size_t found = std::min<uint64_t>(n, bytes_.size() - begin);
    memcpy(scratch, bytes_.data() + begin, found);
    *result = Slice(scratch, found);
    return IOStatus::OK();
  }

  // All reads after the given number of reads fail.
  void FailAfter(int64_t reads) { reads_before_error_ = reads; }
  size_t longest_read() const { return longest_read_; }

 private:
  const std::string bytes_;
  mutable int64_t reads_before_error_ = -1;
  mutable size_t longest_read_ = 0;
};

inline std::unique_ptr<RandomAccessFileReader> OpenBytes(
    const std::string& bytes) {
  return std::make_unique<RandomAccessFileReader>(
      std::make_unique<BytesFile>(bytes), "dir/000012.blob");
}

// Makes an intact blob file of version 2 and the records that a reader should
// find in it.
class FileMaker {
 public:
  explicit FileMaker(uint64_t hash_seed = 1234) {
    header_.hash_seed = hash_seed;
    header_.EncodeTo(&bytes_);
  }

  void Add(const std::string& key, const std::string& value, SequenceNumber seq,
           uint64_t birth, bool direct) {
    BlobRecordV2 record;
    record.seq = seq;
    record.birth = birth;
    record.direct = direct;
    std::string encoded;
    record.EncodeHeaderTo(key, value, &encoded);
    AddressMap::Record expected;
    expected.name = {MapKeyHash::Of(key, header_.hash_seed), seq, birth};
    expected.offset = static_cast<uint32_t>(bytes_.size());
    expected.size = static_cast<uint32_t>(record.record_size());
    expected.direct = direct;
    records_.push_back(expected);
    status_ = builder_.Add(expected.name, expected.size, direct);
    bytes_ += encoded + key + value;
  }

  void Finish() {
    layout_.index_offset = bytes_.size();
    builder_.Finish();
    layout_.header = header_;
    layout_.footer = builder_.footer();
    std::string footer;
    layout_.footer.EncodeTo(&footer);
    bytes_ += builder_.contents() + footer;
  }

  // The status of the last Add().
  const Status& status() const { return status_; }
  const Records& records() const { return records_; }
  const RecordIndexBuilder& builder() const { return builder_; }
  // REQUIRES: Finish() was called.
  const std::string& bytes() const { return bytes_; }
  // REQUIRES: Finish() was called.
  const BlobFileLayoutV2& layout() const { return layout_; }
  // REQUIRES: Finish() was called.
  uint64_t index_offset() const { return layout_.index_offset; }
  // REQUIRES: Finish() was called.
  uint64_t index_size() const { return layout_.footer.index_size; }

 private:
  BlobHeaderV2 header_;
  std::string bytes_;
  Records records_;
  RecordIndexBuilder builder_;
  BlobFileLayoutV2 layout_;
  Status status_;
};

// Collects everything that the reader yields. If the status is not OK, *all has
// the records that were yielded before, which a caller may have seen.
inline Status ReadAll(RecordIndexReader* reader, Records* all) {
  all->clear();
  Records some;
  Status s;
  do {
    s = reader->Next(&some);
    all->insert(all->end(), some.begin(), some.end());
  } while (!some.empty());
  return s;
}

}  // namespace blob_v2_test
}  // namespace ROCKSDB_NAMESPACE
