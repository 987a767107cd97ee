//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/prefixed_keys_test_util.h"

namespace ROCKSDB_NAMESPACE {

// A model of Iterator over data that does not change. The keys are
// PrefixedKeys.
class ModelIterator {
 public:
  // Keys and their values.
  using Contents = std::map<std::string, std::string>;

  // lower, upper: empty if there is no such bound. in_prefix: like
  // ReadOptions::prefix_same_as_start.
  ModelIterator(std::shared_ptr<const Contents> model, const std::string& lower,
                const std::string& upper, bool in_prefix)
      : model_(std::move(model)),
        lower_(lower),
        upper_(upper),
        in_prefix_(in_prefix),
        pos_(model_->end()) {}

  bool Valid() const { return valid_; }
  const std::string& key() const { return pos_->first; }
  const std::string& value() const { return pos_->second; }

  void Seek(const std::string& target) {
    BeginPrefix(target);
    pos_ = model_->lower_bound(std::max(target, lower_));
    Check();
  }

  void SeekForPrev(const std::string& target) {
    BeginPrefix(target);
    pos_ = !upper_.empty() && target >= upper_ ? model_->lower_bound(upper_)
                                               : model_->upper_bound(target);
    StepBack();
  }

  void SeekToFirst() {
    if (!lower_.empty()) {
      Seek(lower_);
      return;
    }
    prefix_.clear();
    pos_ = model_->begin();
    Check();
    if (valid_) {
      BeginPrefix(key());
    }
  }

  void SeekToLast() {
    if (!upper_.empty()) {
      SeekForPrev(upper_);
      return;
    }
    prefix_.clear();
    pos_ = model_->end();
    StepBack();
    if (valid_) {
      BeginPrefix(key());
    }
  }

  void Next() {
    ++pos_;
    Check();
  }

  void Prev() { StepBack(); }

 private:
  void BeginPrefix(const std::string& start) {
    prefix_ =
        in_prefix_ ? start.substr(0, PrefixedKeys::kPrefixSize) : std::string();
  }

  void StepBack() {
    if (pos_ == model_->begin()) {
      valid_ = false;
      return;
    }
    --pos_;
    Check();
  }

  void Check() {
    valid_ = pos_ != model_->end() && pos_->first >= lower_ &&
             (upper_.empty() || pos_->first < upper_) &&
             (prefix_.empty() ||
              pos_->first.compare(0, PrefixedKeys::kPrefixSize, prefix_) == 0);
  }

  const std::shared_ptr<const Contents> model_;
  const std::string lower_;
  const std::string upper_;
  const bool in_prefix_;
  Contents::const_iterator pos_;
  bool valid_ = false;
  std::string prefix_;
};

}  // namespace ROCKSDB_NAMESPACE
