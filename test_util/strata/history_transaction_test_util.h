//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/transaction.h"
#include "test_util/strata/history_model_test_util.h"

namespace ROCKSDB_NAMESPACE {

// A transaction of a history, and the operations that it has made so far, which
// are those that its commit adds to the model.
//
// Not thread-safe.
class HistoryTransaction {
 public:
  // position: of the model, at which the transaction reads what it has not
  // written itself; kNewest without a snapshot.
  HistoryTransaction(std::unique_ptr<Transaction> transaction, size_t position)
      : transaction_(std::move(transaction)), position_(position) {}
  HistoryTransaction(const HistoryTransaction&) = delete;
  HistoryTransaction& operator=(const HistoryTransaction&) = delete;

  static constexpr size_t kNewest = static_cast<size_t>(-1);

  Transaction* transaction() const { return transaction_.get(); }

  bool has_snapshot() const { return position_ != kNewest; }
  // Returns the position of what the transaction reads.
  size_t Position(const HistoryModel& model) const {
    return has_snapshot() ? position_ : model.Position();
  }

  // Adds an operation that the DB's transaction has accepted.
  void Add(HistoryModel::Op op) { ops_.push_back(std::move(op)); }
  void SetSavePoint() { save_points_.push_back(ops_.size()); }
  // Forgets the operations since the newest save point, and the save point.
  // REQUIRES: has_save_point()
  void RollbackToSavePoint() {
    ops_.resize(save_points_.back());
    save_points_.pop_back();
  }
  bool has_save_point() const { return !save_points_.empty(); }

  // prepared_at: the position of the model at Prepare().
  void SetPrepared(size_t prepared_at) {
    is_prepared_ = true;
    prepared_at_ = prepared_at;
  }
  bool is_prepared() const { return is_prepared_; }
  size_t prepared_at() const { return prepared_at_; }

  // Replaces the DB's transaction, after a recovery.
  // transaction: nullptr while the DB is closed.
  void Replace(std::unique_ptr<Transaction> transaction) {
    transaction_ = std::move(transaction);
    position_ = kNewest;
    save_points_.clear();
  }

  const std::vector<HistoryModel::Op>& ops() const { return ops_; }

  // Returns the contents of a family that the transaction sees.
  HistoryModel::Contents Contents(const HistoryModel& model,
                                  const std::string& cf) const {
    HistoryModel::Contents contents = model.At(cf, Position(model));
    model.ApplyTo(ops_, cf, &contents);
    return contents;
  }

 private:
  std::unique_ptr<Transaction> transaction_;
  size_t position_;
  std::vector<HistoryModel::Op> ops_;
  std::vector<size_t> save_points_;
  bool is_prepared_ = false;
  size_t prepared_at_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
