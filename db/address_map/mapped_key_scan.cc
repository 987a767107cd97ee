//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_key_scan.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "db/address_map/mapped_blob_index.h"
#include "db/address_map/prepare_blob_index.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "memory/arena.h"
#include "port/port.h"
#include "table/merging_iterator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// More than one range per thread, so that a thread with a short range can take
// another one.
constexpr size_t kRangesPerThread = 4;
// Number of entries between updates of the published count and checks for
// failures of other threads.
constexpr uint64_t kStride = 1024;

}  // namespace

MappedKeyScan::MappedKeyScan(ColumnFamilyData* cfd, Version* version,
                             const FileOptions& file_options,
                             Env::IOActivity activity, int num_threads,
                             bool all_versions, size_t readahead_size)
    : cfd_(cfd),
      version_(version),
      file_options_(file_options),
      activity_(activity),
      num_threads_(std::max(num_threads, 1)),
      all_versions_(all_versions),
      readahead_size_(readahead_size) {}

Status MappedKeyScan::Run(const NewVisitor& new_visitor) {
  const std::vector<std::string> boundaries =
      Boundaries(static_cast<size_t>(num_threads_) * kRangesPerThread);
  return ForEach(boundaries.size() + 1, num_threads_, [&](size_t i) {
    const std::unique_ptr<Visitor> visitor = new_visitor();
    const Status s = RunRange(i == 0 ? nullptr : &boundaries[i - 1],
                              i == boundaries.size() ? nullptr : &boundaries[i],
                              visitor.get());
    if (!s.ok()) {
      failed_ = true;
    }
    return s;
  });
}

std::vector<std::string> MappedKeyScan::Boundaries(size_t n) const {
  const VersionStorageInfo& files = *version_->storage_info();
  const Comparator* const ucmp = cfd_->user_comparator();
  std::vector<std::pair<std::string, uint64_t>> starts;
  uint64_t total = 0;
  for (int level = 0; level < files.num_non_empty_levels(); ++level) {
    for (const FileMetaData* file : files.LevelFiles(level)) {
      starts.emplace_back(file->smallest.user_key().ToString(),
                          file->fd.GetFileSize());
      total += file->fd.GetFileSize();
    }
  }
  std::sort(starts.begin(), starts.end(), [ucmp](const auto& a, const auto& b) {
    return ucmp->Compare(a.first, b.first) < 0;
  });
  std::vector<std::string> boundaries;
  uint64_t before = 0;
  for (const auto& start : starts) {
    if (before * n >= total * (boundaries.size() + 1) &&
        (boundaries.empty() ||
         ucmp->Compare(boundaries.back(), start.first) < 0)) {
      boundaries.push_back(start.first);
    }
    before += start.second;
  }
  return boundaries;
}

Status MappedKeyScan::RunRange(const std::string* begin, const std::string* end,
                               Visitor* visitor) {
  ReadOptions read_options(activity_);
  read_options.total_order_seek = true;
  read_options.fill_cache = false;
  read_options.readahead_size = readahead_size_;
  Slice upper;
  if (end != nullptr) {
    upper = *end;
    read_options.iterate_upper_bound = &upper;
  }
  Arena arena;
  MergeIteratorBuilder builder(&cfd_->internal_comparator(), &arena);
  version_->AddIterators(read_options, file_options_, &builder,
                         /*allow_unprepared_value=*/true, kMaxSequenceNumber);
  ScopedArenaPtr<InternalIterator> iter(builder.Finish());
  if (iter == nullptr) {
    return Status::OK();  // no files
  }
  if (begin == nullptr) {
    iter->SeekToFirst();
  } else {
    iter->Seek(
        InternalKey(*begin, kMaxSequenceNumber, kValueTypeForSeek).Encode());
  }
  Status s = VisitEntries(iter.get(), end, visitor);
  return s.ok() ? visitor->FinishRange() : s;
}

Status MappedKeyScan::VisitEntries(InternalIterator* iter,
                                   const std::string* end, Visitor* visitor) {
  const Comparator* const ucmp = cfd_->user_comparator();
  std::string decided;  // the user key whose newest value was found
  bool has_decided = false;
  uint64_t entries = 0;
  Status s;
  for (; s.ok() && iter->Valid(); iter->Next()) {
    ParsedInternalKey key;
    s = ParseInternalKey(iter->key(), &key, /*log_err_key=*/false);
    if (!s.ok() || (end != nullptr && ucmp->Compare(key.user_key, *end) >= 0)) {
      break;
    }
    if (++entries == kStride) {
      entries_.fetch_add(entries, std::memory_order_relaxed);
      entries = 0;
      if (failed_.load(std::memory_order_relaxed)) {
        break;
      }
    }
    if ((has_decided && key.user_key == Slice(decided)) ||
        key.type == kTypeMerge) {
      continue;
    }
    Slice value;
    if (key.type == kTypeBlobIndex) {
      s = PrepareBlobIndex(iter, &key);
      if (!s.ok()) {
        break;
      }
      value = iter->value();
    }
    const bool is_mapped =
        key.type == kTypeBlobIndex && MappedBlobIndex::IsMapped(value);
    if (!all_versions_ || (is_mapped && MappedBlobIndex::IsDirect(value))) {
      has_decided = true;
      decided.assign(key.user_key.data(), key.user_key.size());
    }
    if (!is_mapped) {
      continue;
    }
    MappedBlobIndex index;
    s = index.DecodeFrom(value);
    if (s.ok()) {
      s = visitor->Visit(key, index);
    }
  }
  if (s.ok()) {
    s = iter->status();
  }
  entries_.fetch_add(entries, std::memory_order_relaxed);
  return s;
}

Status MappedKeyScan::ForEach(size_t n, int num_threads,
                              const std::function<Status(size_t)>& fn) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Status first;
  const auto work = [&] {
    for (size_t i = next++; i < n; i = next++) {
      const Status s = fn(i);
      if (!s.ok()) {
        std::lock_guard<std::mutex> lock(mutex);
        first.UpdateIfOk(s);
        next = n;
      }
    }
  };
  std::vector<port::Thread> threads;
  for (size_t i = 1; i < std::min(n, static_cast<size_t>(num_threads)); ++i) {
    threads.emplace_back(work);
  }
  work();
  for (port::Thread& thread : threads) {
    thread.join();
  }
  return first;
}

}  // namespace ROCKSDB_NAMESPACE
