//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// What a DB must answer: the sequence of all writes, from which the contents at
// any point are computed by replaying it. Slow and simple on purpose.
//
// Not thread-safe.
class HistoryModel {
 public:
  // A plain value is the one column with the empty name.
  using Columns = std::map<std::string, std::string>;
  using Contents = std::map<std::string, Columns>;
  // By column family.
  using AllContents = std::map<std::string, Contents>;

  enum class OpKind { kPut, kMerge, kDelete, kDeleteRange };

  struct Op {
    OpKind kind = OpKind::kPut;
    std::string cf;
    std::string key;
    // kDeleteRange: the exclusive end.
    std::string end;
    // kMerge: the operand, joined with a comma, in the default column.
    Columns columns;
  };

  // Operations that take effect together.
  struct Write {
    std::vector<Op> ops;
    // On disk by itself, whatever happens to the writes before it.
    bool is_durable = false;
    // It failed. It is not visible, but may be after recovery.
    bool has_failed = false;
  };

  void CreateFamily(const std::string& cf) { families_[cf]; }
  void DropFamily(const std::string& cf);

  void Append(Write write) { writes_.push_back(std::move(write)); }

  // Names the contents that a reader sees now.
  size_t Position() const { return writes_.size(); }

  Contents At(const std::string& cf, size_t position) const;
  Contents Now(const std::string& cf) const { return At(cf, Position()); }

  // That were ever written, deletions of ranges apart.
  std::set<std::string> Keys(const std::string& cf) const;

  // Everything so far outlives a crash.
  void MarkDurable() { durable_ = writes_.size(); }

  // Recovery found `found`. That is right if it is the contents after the first
  // n writes, with n at least what is durable and at most all, or all if
  // nothing was lost (`is_crash` false); writes that failed may have happened.
  // If it is, the model becomes this history and true is returned.
  bool Recover(const AllContents& found, bool is_crash);

 private:
  static void Apply(const Op& op, Contents* contents);
  AllContents Replay(const std::vector<Write>& writes) const;

  std::vector<Write> writes_;
  AllContents families_;  // all empty: the families there are
  size_t durable_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
