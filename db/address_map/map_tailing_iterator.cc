//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_tailing_iterator.h"

#include "db/column_family.h"
#include "db/dbformat.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

MapTailingIterator::MapTailingIterator(
    ColumnFamilyData* cfd, ImplicitSnapshotRegistry* bounds,
    const std::function<SequenceNumber()>& last_sequence,
    InternalIterator* child)
    : PassThroughIterator(child, /*in_arena=*/false),
      cfd_(cfd),
      last_sequence_(last_sequence),
      bound_(bounds->Register(last_sequence)) {}

template <typename SeekChild>
void MapTailingIterator::Follow(const SeekChild& seek) {
  uint64_t number = 0;
  do {
    // The child will use this SuperVersion or a newer one.
    number = cfd_->GetSuperVersionNumber();
    seek();
    TEST_SYNC_POINT("MapTailingIterator::Follow:Sought");
    if (number != super_version_number_) {
      bound_.Renew(last_sequence_);
      super_version_number_ = number;
    }
  } while (cfd_->GetSuperVersionNumber() != number);
}

void MapTailingIterator::SeekToFirst() {
  Follow([this] { child()->SeekToFirst(); });
}

void MapTailingIterator::Seek(const Slice& target) {
  Follow([&] { child()->Seek(target); });
}

void MapTailingIterator::Next() {
  const Slice internal_key = child()->key();
  const bool was_operand = ExtractValueType(internal_key) == kTypeMerge;
  const Slice user_key = ExtractUserKey(internal_key);
  current_.assign(user_key.data(), user_key.size());
  child()->Next();
  bool follows =
      cfd_->GetSuperVersionNumber() != super_version_number_ && Valid();
  if (follows && IsAtKey(current_)) {
    // DBIter needs the older operands and the base. The child has not taken
    // another SuperVersion, so those that are newer than the bound are in a
    // memtable.
    follows =
        !was_operand && GetInternalKeySeqno(child()->key()) > bound_.sequence();
    while (follows && IsAtKey(current_)) {
      child()->Next();
      follows = Valid();
    }
  }
  if (follows) {
    // The child is at the newest entry of another key. Its internal key is not
    // sought, because the entry precedes it in a new file if its type became
    // one with a larger number.
    target_.Set(ExtractUserKey(child()->key()), kMaxSequenceNumber,
                kValueTypeForSeek);
    Seek(target_.Encode());
  }
  TEST_SYNC_POINT("MapTailingIterator::Next:Return");
}

bool MapTailingIterator::IsAtKey(const Slice& user_key) const {
  return cfd_->user_comparator()->EqualWithoutTimestamp(
      ExtractUserKey(child()->key()), user_key);
}

bool MapTailingIterator::NextAndGetResult(IterateResult* result) {
  Next();
  if (!Valid()) {
    return false;
  }
  result->key = child()->key();
  result->bound_check_result = child()->UpperBoundCheckResult();
  result->value_prepared = false;
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
