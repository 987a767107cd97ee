//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <functional>
#include <set>
#include <string>

#include "options/strata/feature_set.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The text of an OPTIONS file from which the options of features are taken out.
//
// Invariants:
// 1. No line of RocksDB's options changes.
// 2. cf_paths that stay in the new text have an option there that names them,
//    or the next open would not write them to its own OPTIONS file. A column
//    family that cannot have such an option is among families_losing_paths().
//
// A value. Thread-safe.
class OptionsWithoutFeatures {
 public:
  // text: as it is.
  // features: those whose options are to go.
  OptionsWithoutFeatures(const std::string& text, const FeatureSet& features);

  // The features of the options that go.
  const FeatureSet& features() const { return features_; }

  // The column families whose cf_paths stay, but with no option that names
  // paths, although there was one.
  const std::set<std::string>& families_losing_paths() const {
    return families_losing_paths_;
  }

  // Returns true if the option level_blob_path_ids can keep the paths of a
  // column family with these options.
  static bool CanNamePaths(const ColumnFamilyOptions& options) {
    return options.compaction_style != kCompactionStyleFIFO;
  }

  // Returns the new text. Those of families_losing_paths() for which
  // can_name_paths returns true have level_blob_path_ids=0 there, the place of
  // blob files without a layout.
  std::string Text(const std::function<bool(const std::string& family)>&
                       can_name_paths) const;

 private:
  std::string without_options_;
  FeatureSet features_;
  std::set<std::string> families_losing_paths_;
};

}  // namespace ROCKSDB_NAMESPACE
