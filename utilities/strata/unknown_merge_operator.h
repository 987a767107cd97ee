//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "rocksdb/merge_operator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class Logger;

// A placeholder for an application's merge operator that this program cannot
// create. It has the operator's name and merges nothing: flushes and
// compactions keep merge operands as they are (OpFailureScope::kMustMerge), and
// a read that needs a merge fails with a message that names the operator. So a
// tool can open a database without its merge operator and lose no data.
//
// Thread-safe.
class UnknownMergeOperator : public MergeOperator {
 public:
  // name: the operator's Name().
  // text: the operator's entry in the OPTIONS file, which includes its own
  //     options. It is written to later OPTIONS files.
  UnknownMergeOperator(const std::string& name, const std::string& text);

  static const char* kClassName() { return "strata.UnknownMergeOperator"; }
  const char* Name() const override { return name_.c_str(); }
  const char* NickName() const override { return kClassName(); }

  bool FullMergeV2(const MergeOperationInput& in,
                   MergeOperationOutput* out) const override;
  bool FullMergeV3(const MergeOperationInputV3& in,
                   MergeOperationOutputV3* out) const override;
  bool PartialMergeMulti(const Slice& key, const std::deque<Slice>& operands,
                         std::string* new_value, Logger* logger) const override;

  // Returns true if merge_operator, which may be nullptr, is an
  // UnknownMergeOperator.
  static bool Is(const MergeOperator* merge_operator);

  // Returns the status of a read whose merge failed. For all other operators it
  // is the same as in RocksDB.
  static Status MergeFailed(const MergeOperator* merge_operator);

 protected:
  std::string SerializeOptions(const ConfigOptions& options,
                               const std::string& prefix) const override;

 private:
  const std::string name_;
  const std::string text_;
};

}  // namespace ROCKSDB_NAMESPACE
