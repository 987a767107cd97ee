//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Gathers what the steps of a history find wrong: mistakes in the steps, and
// results that contradict the model. A message says to which step it belongs.
//
// Not thread-safe.
class HistoryFindings {
 public:
  HistoryFindings() = default;
  HistoryFindings(const HistoryFindings&) = delete;
  HistoryFindings& operator=(const HistoryFindings&) = delete;
  ~HistoryFindings() { mistake_.PermitUncheckedError(); }

  // place: stands ahead of the messages from now on, such as "name:line: ".
  void SetPlace(std::string place) { place_ = std::move(place); }

  // Records a mistake in a step. Only the first one counts, since later ones
  // may follow from it.
  void Mistake(const std::string& what) {
    if (mistake_.ok()) {
      mistake_ = Status::InvalidArgument(place_ + what);
    }
  }

  // Records a result that contradicts the model.
  void Disagree(const std::string& what) {
    disagreements_.push_back(place_ + what);
  }

  // Sets whether errors of the DB are allowed, which they are while operations
  // on files fail at any time. Wrong answers are never allowed.
  void AllowErrors(bool allow) { allows_errors_ = allow; }
  bool allows_errors() const { return allows_errors_; }

  // Records an error of the DB. It contradicts the model unless errors are
  // allowed.
  void Fail(const std::string& what) {
    ++num_errors_;
    if (!allows_errors_) {
      Disagree(what);
    }
  }
  // Returns the number of calls of Fail().
  size_t num_errors() const { return num_errors_; }

  const Status& mistake() const { return mistake_; }
  const std::vector<std::string>& disagreements() const {
    return disagreements_;
  }

 private:
  std::string place_;
  Status mistake_;
  std::vector<std::string> disagreements_;
  bool allows_errors_ = false;
  size_t num_errors_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
