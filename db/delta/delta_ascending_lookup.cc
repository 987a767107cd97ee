//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_ascending_lookup.h"

#include <algorithm>
#include <utility>

#include "db/delta/delta_file_reader.h"
#include "db/lookup_key.h"
#include "rocksdb/comparator.h"
#include "rocksdb/table_reader_caller.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Maximum number of entries that are skipped one by one: that is cheaper than a
// seek, and even than asking a filter whether one is necessary.
constexpr int kMaxStepsAhead = 8;

}  // namespace

DeltaAscendingLookup::DeltaAscendingLookup(
    const InternalKeyComparator* icmp,
    std::vector<const DeltaFileReader*> readers)
    : icmp_(icmp),
      ucmp_(icmp->user_comparator()),
      readers_(std::move(readers)) {
  read_options_.fill_cache = false;
  read_options_.total_order_seek = true;
  std::erase_if(readers_, [](const DeltaFileReader* reader) {
    return reader->description().num_entries == 0;
  });
  std::sort(readers_.begin(), readers_.end(),
            [this](const DeltaFileReader* a, const DeltaFileReader* b) {
              return ucmp_->Compare(a->description().smallest,
                                    b->description().smallest) < 0;
            });
  if (!readers_.empty()) {
    NoteNextKey(readers_.front()->description().smallest);
  }
}

DeltaAscendingLookup::~DeltaAscendingLookup() = default;

Status DeltaAscendingLookup::FindNewest(const Slice& user_key,
                                        SequenceNumber seq,
                                        SequenceNumber* newest) {
  *newest = 0;
  if (IsAtEnd() || (has_next_key_ && ucmp_->Compare(user_key, next_key_) < 0)) {
    return Status::OK();
  }
  const LookupKey key(user_key, seq);
  for (; next_reader_ < readers_.size(); ++next_reader_) {
    const DeltaFileReader* const reader = readers_[next_reader_];
    if (ucmp_->Compare(reader->description().smallest, user_key) > 0) {
      break;
    }
    if (ucmp_->Compare(reader->description().largest, user_key) >= 0) {
      Cursor& cursor = cursors_.emplace_back();
      cursor.reader = reader;
      cursor.iter.reset(
          reader->NewIterator(read_options_, TableReaderCaller::kRepair));
      cursor.iter->Seek(key.internal_key());
    }
  }

  has_next_key_ = false;
  bool some_are_behind = false;
  for (auto cursor = cursors_.begin(); cursor != cursors_.end();) {
    const bool is_over =
        ucmp_->Compare(cursor->reader->description().largest, user_key) < 0;
    const bool is_behind = !is_over && !Advance(key, &*cursor);
    const Status s = cursor->iter->status();
    if (!s.ok()) {
      return s;
    }
    if (is_over || !cursor->iter->Valid()) {
      cursor = cursors_.erase(cursor);
      continue;
    }
    if (is_behind) {
      some_are_behind = true;
    } else {
      const Slice found = cursor->iter->key();
      if (ucmp_->Equal(ExtractUserKey(found), user_key)) {
        *newest = std::max(*newest, GetInternalKeySeqno(found));
      }
      NoteNextKey(ExtractUserKey(found));
    }
    ++cursor;
  }
  if (next_reader_ < readers_.size()) {
    NoteNextKey(readers_[next_reader_]->description().smallest);
  }
  has_next_key_ &= !some_are_behind;
  return Status::OK();
}

bool DeltaAscendingLookup::Advance(const LookupKey& key, Cursor* cursor) const {
  InternalIterator* const iter = cursor->iter.get();
  const Slice target = key.internal_key();
  for (int i = 0;; ++i) {
    if (!iter->Valid() || icmp_->Compare(iter->key(), target) >= 0) {
      return true;
    }
    if (i == kMaxStepsAhead) {
      break;
    }
    iter->Next();
  }
  if (!cursor->reader->MayHaveKey(read_options_, key)) {
    return false;
  }
  iter->Seek(target);
  return true;
}

void DeltaAscendingLookup::NoteNextKey(const Slice& user_key) {
  if (!has_next_key_ || ucmp_->Compare(user_key, next_key_) < 0) {
    next_key_ = user_key;
    has_next_key_ = true;
  }
}

bool DeltaAscendingLookup::GetNextKey(Slice* user_key) const {
  if (has_next_key_) {
    *user_key = next_key_;
  }
  return has_next_key_;
}

}  // namespace ROCKSDB_NAMESPACE
