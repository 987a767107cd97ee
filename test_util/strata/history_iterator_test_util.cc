//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_iterator_test_util.h"

#include <iterator>
#include <utility>

#include "test_util/strata/history_text_test_util.h"

namespace ROCKSDB_NAMESPACE {

HistoryIterator::HistoryIterator(DB* db, ColumnFamilyHandle* handle,
                                 const ReadOptions& read_options,
                                 const HistoryModel* model, size_t position,
                                 const HistoryWords& bounds)
    : model_(*model),
      cf_(handle->GetName()),
      is_tailing_(read_options.tailing),
      is_bounded_(!bounds.empty()),
      from_(bounds.empty() ? "" : bounds[0]),
      to_(bounds.empty() ? "" : bounds[1]),
      lower_(from_),
      upper_(to_) {
  ReadOptions bounded = read_options;
  if (is_bounded_) {
    bounded.iterate_lower_bound = &lower_;
    bounded.iterate_upper_bound = &upper_;
  }
  iterator_.reset(db->NewIterator(bounded, handle));
  Load(position);
}

void HistoryIterator::Load(size_t position) {
  position_ = position;
  contents_ = model_.At(cf_, position);
  is_blurred_ = model_.HasBlurred(cf_, position);
  if (is_bounded_) {
    HistoryModel::Clip(from_, to_, &contents_);
  }
  expected_ = contents_.end();
  is_known_ = false;
}

Status HistoryIterator::Refresh(const Snapshot* snapshot, size_t position) {
  const Status s = iterator_->Refresh(snapshot);
  if (s.ok()) {
    Load(position);
  }
  return s;
}

void HistoryIterator::Seek(const std::string& key) {
  LoadIfTailing();
  iterator_->Seek(key);
  expected_ = contents_.lower_bound(key);
  is_known_ = true;
}

void HistoryIterator::SeekForPrev(const std::string& key) {
  LoadIfTailing();
  iterator_->SeekForPrev(key);
  expected_ = contents_.upper_bound(key);
  expected_ =
      expected_ == contents_.begin() ? contents_.end() : std::prev(expected_);
  is_known_ = true;
}

void HistoryIterator::SeekToFirst() {
  LoadIfTailing();
  iterator_->SeekToFirst();
  expected_ = contents_.begin();
  is_known_ = true;
}

void HistoryIterator::SeekToLast() {
  LoadIfTailing();
  iterator_->SeekToLast();
  expected_ = contents_.empty() ? contents_.end() : std::prev(contents_.end());
  is_known_ = true;
}

void HistoryIterator::Next() {
  iterator_->Next();
  if (is_known_ && expected_ != contents_.end()) {
    ++expected_;
  }
}

void HistoryIterator::Prev() {
  iterator_->Prev();
  if (is_known_ && expected_ != contents_.end()) {
    expected_ =
        expected_ == contents_.begin() ? contents_.end() : std::prev(expected_);
  }
}

Status HistoryIterator::status() {
  const Status s = iterator_->Valid() ? Status::OK() : iterator_->status();
  is_known_ = is_known_ && s.ok();
  return s;
}

std::string HistoryIterator::Show() const {
  return Valid() ? Key() + "=" + HistoryText::ShowColumns(Columns()) : ".";
}

std::string HistoryIterator::Correction() const {
  if (!is_known()) {
    return "";
  }
  if (expected_ == contents_.end()) {
    return Valid() ? "the end" : "";
  }
  if (Valid() && expected_->first == Key() && expected_->second == Columns()) {
    return "";
  }
  return expected_->first + "=" + HistoryText::ShowColumns(expected_->second);
}

}  // namespace ROCKSDB_NAMESPACE
