//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_copy_writers.h"

#include <iterator>

namespace ROCKSDB_NAMESPACE {

namespace {

template <typename T>
void Append(std::vector<T>&& from, std::vector<T>* to) {
  to->insert(to->end(), std::make_move_iterator(from.begin()),
             std::make_move_iterator(from.end()));
}

}  // namespace

BlobCopyWriter* BlobCopyWriters::Of(uint32_t path_id, HotMark hot) {
  std::unique_ptr<BlobCopyWriter>& writer = writers_[Place(path_id, hot)];
  if (writer == nullptr) {
    writer = std::make_unique<BlobCopyWriter>(context_, path_id, hot);
  }
  return writer.get();
}

uint64_t BlobCopyWriters::BytesCopied() const {
  uint64_t bytes = 0;
  for (const auto& writer : writers_) {
    bytes += writer.second->bytes_copied();
  }
  return bytes;
}

uint64_t BlobCopyWriters::BytesStored() const {
  uint64_t bytes = 0;
  for (const auto& writer : writers_) {
    bytes += writer.second->bytes_stored();
  }
  return bytes;
}

Status BlobCopyWriters::Finish(Status s) {
  for (const auto& writer : writers_) {
    if (s.ok()) {
      s = writer.second->Finish();
    }
  }
  for (const auto& writer : writers_) {
    if (!s.ok()) {
      writer.second->Abandon(s);
      continue;
    }
    additions_.insert(additions_.end(), writer.second->additions().begin(),
                      writer.second->additions().end());
  }
  return s;
}

uint64_t BlobCopyWriters::BytesWritten() const {
  uint64_t bytes = 0;
  for (const auto& writer : writers_) {
    bytes += writer.second->BytesWritten();
  }
  return bytes;
}

std::vector<MappedBlobFile> BlobCopyWriters::TakeOutputs() {
  std::vector<MappedBlobFile> all;
  for (const auto& writer : writers_) {
    Append(writer.second->TakeOutputs(), &all);
  }
  return all;
}

std::vector<MapAddress> BlobCopyWriters::TakeSources() {
  std::vector<MapAddress> all;
  for (const auto& writer : writers_) {
    Append(writer.second->TakeSources(), &all);
  }
  return all;
}

std::vector<uint32_t> BlobCopyWriters::TakeKeySizes() {
  std::vector<uint32_t> all;
  for (const auto& writer : writers_) {
    Append(writer.second->TakeKeySizes(), &all);
  }
  return all;
}

std::vector<BlobGcPicker::KeyRange> BlobCopyWriters::TakeKeyRanges() {
  std::vector<BlobGcPicker::KeyRange> all;
  for (const auto& writer : writers_) {
    Append(writer.second->TakeKeyRanges(), &all);
  }
  return all;
}

}  // namespace ROCKSDB_NAMESPACE
