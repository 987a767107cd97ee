//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/deferred_removals.h"

#include <algorithm>
#include <cassert>

#include "test_util/sync_point.h"
#include "util/coding.h"
#include "util/strata/status_message.h"

namespace ROCKSDB_NAMESPACE {

void DeferredRemovals::Add(const MapName* names, size_t n) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < n; ++i) {
    if (new_spill_file_ != nullptr && in_memory_ >= cap_ && in_memory_ > 0) {
      Spill();
    }
    const size_t index = in_memory_ % kNamesPerBlock;
    if (index == 0) {
      blocks_.push_back(std::make_unique<Block>());
    }
    char* p = blocks_.back()->data() + index * kNameSize;
    EncodeFixed64(p, names[i].key.hi);
    EncodeFixed32(p + 8, names[i].key.lo);
    EncodeFixed64(p + 12, names[i].seq);
    EncodeFixed64(p + 20, names[i].birth);
    ++in_memory_;
  }
}

Status DeferredRemovals::Append() {
  Status s;
  if (spill_file_ == nullptr) {
    s = new_spill_file_(&spill_file_);
  }
  uint64_t left = in_memory_;
  for (size_t i = 0; s.ok() && left > 0; ++i) {
    const uint64_t n = std::min<uint64_t>(left, kNamesPerBlock);
    s = spill_file_->Append(Slice(blocks_[i]->data(), n * kNameSize));
    left -= n;
  }
  return s;
}

void DeferredRemovals::Spill() {
  if (error_.ok()) {
    const Status s = Append();
    if (s.ok()) {
      in_file_ += in_memory_;
    } else {
      Fail(s);
    }
  }
  ClearMemory();
}

void DeferredRemovals::MoveToFile() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (new_spill_file_ == nullptr || in_memory_ == 0 || !error_.ok()) {
    return;
  }
  const Status s = Append();
  if (s.ok()) {
    in_file_ += in_memory_;
    ClearMemory();
  } else if (in_file_ > 0) {
    // After a failed append the file is not read.
    Fail(s);
  } else {
    spill_file_.reset();
  }
}

void DeferredRemovals::CloseFile() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (spill_file_ != nullptr) {
    spill_file_->Finish();
  }
}

void DeferredRemovals::ClearMemory() {
  blocks_.clear();
  blocks_.shrink_to_fit();
  in_memory_ = 0;
}

void DeferredRemovals::Fail(const Status& error) {
  if (error_.ok()) {
    error_ = error;
  }
  spill_file_.reset();
  in_file_ = 0;
}

uint64_t DeferredRemovals::Count() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return in_memory_ + in_file_;
}

size_t DeferredRemovals::MemoryUsage() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return blocks_.size() * sizeof(Block) + blocks_.capacity() * sizeof(void*);
}

bool DeferredRemovals::complete() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return error_.ok();
}

Status DeferredRemovals::status(const std::string& job) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (error_.ok()) {
    return Status::OK();
  }
  const std::string cause = MessageOf(error_);
  return WithMessage(error_, "The names of values that " + job +
                                 " removes could not be stored" +
                                 (cause.empty() ? "" : ": " + cause));
}

Status DeferredRemovals::ForEach(
    const std::function<void(const MapName&)>& fn) {
  const auto decode = [&](const char* p, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i, p += kNameSize) {
      MapName name;
      name.key.hi = DecodeFixed64(p);
      name.key.lo = DecodeFixed32(p + 8);
      name.seq = DecodeFixed64(p + 12);
      name.birth = DecodeFixed64(p + 20);
      fn(name);
    }
  };
  Status s;
  TEST_SYNC_POINT_CALLBACK("DeferredRemovals::ForEach", &s);
  if (!s.ok()) {
    Fail(s);
    return s;
  }
  if (spill_file_ != nullptr) {
    s = spill_file_->ForEach([&](const Slice& block) {
      decode(block.data(), block.size() / kNameSize);
      return Status::OK();
    });
    if (!s.ok()) {
      Fail(s);
    }
  }
  uint64_t left = in_memory_;
  for (const auto& block : blocks_) {
    const uint64_t n = std::min<uint64_t>(left, kNamesPerBlock);
    decode(block->data(), n);
    left -= n;
  }
  assert(left == 0);
  return s;
}

Status DeferredRemovals::Demote(AddressMap* map) {
  std::lock_guard<std::mutex> lock(mutex_);
  return ForEach([&](const MapName& name) { map->Demote(name); });
}

uint64_t DeferredRemovals::Remove(AddressMap* map) {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t removed = 0;
  // Names that cannot be read stay in the map, and complete() is false.
  ForEach([&](const MapName& name) {
    removed += map->Remove(name) ? 1 : 0;
  }).PermitUncheckedError();
  ClearLocked();
  return removed;
}

void DeferredRemovals::Clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  ClearLocked();
  error_.PermitUncheckedError();
  error_ = Status::OK();
}

void DeferredRemovals::ClearLocked() {
  ClearMemory();
  spill_file_.reset();
  in_file_ = 0;
}

}  // namespace ROCKSDB_NAMESPACE
