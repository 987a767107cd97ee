//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "test_util/strata/history_model_test_util.h"
#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

// An iterator of the DB that stays open while other steps run, and the position
// where it must be in the contents at its creation.
//
// Not thread-safe.
class HistoryIterator {
 public:
  // position: the position in the model that read_options.snapshot shows.
  // bounds: none, or the lower bound and the exclusive upper one.
  // REQUIRES: db, handle and model outlive this.
  HistoryIterator(DB* db, ColumnFamilyHandle* handle,
                  const ReadOptions& read_options, const HistoryModel* model,
                  size_t position, const HistoryWords& bounds);
  HistoryIterator(const HistoryIterator&) = delete;
  HistoryIterator& operator=(const HistoryIterator&) = delete;

  // Makes the DB's iterator show another state; nullptr stands for the newest.
  // If this fails, the iterator is as it was.
  // position: the position in the model that the snapshot shows.
  Status Refresh(const Snapshot* snapshot, size_t position);

  void Seek(const std::string& key);
  void SeekForPrev(const std::string& key);
  void SeekToFirst();
  void SeekToLast();
  // REQUIRES: Valid()
  void Next();
  // REQUIRES: Valid()
  void Prev();

  bool Valid() const { return iterator_->Valid(); }
  // There is one position at which the iterator must be, see Correction(). A
  // tailing iterator may or may not show what was written since its seek. An
  // iterator at a snapshot may or may not show what a deletion of files has
  // removed since the snapshot.
  bool is_known() const {
    return is_known_ && !is_blurred_ &&
           (!is_tailing_ || model_.Position() == position_);
  }

  // If this fails, the correct position is unknown until the next seek.
  Status status();

  // Returns "KEY=VALUE", or "." if the iterator is at an end.
  // REQUIRES: status().ok()
  std::string Show() const;

  // Returns where the iterator must be, or an empty text if it is there or if
  // that is unknown.
  // REQUIRES: status().ok()
  std::string Correction() const;

 private:
  // The key and the value, which are those of the DB's iterator.
  // REQUIRES: Valid()
  std::string Key() const { return iterator_->key().ToString(); }
  HistoryModel::Columns Columns() const {
    return HistoryModel::FromWideColumns(iterator_->columns());
  }

  // Takes the contents at a position in the model.
  void Load(size_t position);
  // A seek of a tailing iterator shows the newest state.
  void LoadIfTailing() {
    if (is_tailing_) {
      Load(model_.Position());
    }
  }

  const HistoryModel& model_;
  const std::string cf_;
  const bool is_tailing_;
  const bool is_bounded_;
  const std::string from_;
  const std::string to_;
  const Slice lower_;
  const Slice upper_;
  size_t position_ = 0;
  HistoryModel::Contents contents_;  // those at position_ in the model
  bool is_blurred_ = false;          // some of the contents are unknown
  std::unique_ptr<Iterator> iterator_;
  // The correct position in contents_, if it is known.
  HistoryModel::Contents::const_iterator expected_;
  bool is_known_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
