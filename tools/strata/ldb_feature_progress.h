//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "db/strata/feature_plan.h"
#include "port/port.h"
#include "rocksdb/listener.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Says how much the conversion of a column family has written, each time that
// it is another tenth of what is expected.
//
// Thread-safe.
class LdbFeatureProgress : public EventListener {
 public:
  // print: receives lines without line breaks, from one thread at a time.
  explicit LdbFeatureProgress(
      std::function<void(const std::string& line)> print)
      : print_(std::move(print)) {}

  // From now on, files of this column family count.
  void Begin(const FeaturePlan::Family& family);

  void OnTableFileCreated(const TableFileCreationInfo& info) override;
  void OnBlobFileCreated(const BlobFileCreationInfo& info) override;

 private:
  void Count(const std::string& family, uint64_t bytes);

  const std::function<void(const std::string& line)> print_;
  port::Mutex mutex_;
  // The members below are guarded by mutex_.
  std::string family_;
  uint64_t expected_ = 0;
  uint64_t written_ = 0;
  uint64_t next_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
