//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "db/strata/feature_plan.h"
#include "db/strata/feature_traces.h"
#include "db/strata/manifest_features.h"
#include "options/strata/feature_set.h"
#include "options/strata/options_without_features.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// The lines that `ldb disable_features` prints: what it has found, what it is
// going to do, what remains, and what the application has to do from then on.
//
// Not thread-safe.
class LdbFeatureReport {
 public:
  using Print = std::function<void(const std::string& line)>;

  // features: those that are to go.
  // manifest, traces: what the database has; may be read again between calls.
  // print: receives lines without line breaks.
  // REQUIRES: manifest and traces outlive this object.
  LdbFeatureReport(const FeatureSet& features, const ManifestFeatures& manifest,
                   const FeatureTraces& traces, Print print)
      : features_(features),
        manifest_(manifest),
        traces_(traces),
        print_(std::move(print)) {}

  // options_text: of the OPTIONS file.
  void Findings(const std::string& options_text) const;

  // fs: for the free space.
  // of_options: the features of the options that are taken out.
  // needs_open: whether the database is opened.
  void Plan(FileSystem* fs, const FeaturePlan& plan,
            const FeatureSet& of_options, bool needs_open) const;
  static const char* TextOfWork(FeaturePlan::Work work);

  // Prints a line for each thing that remains of the features. Returns
  // Incomplete if there are some.
  Status Remains() const;

  // A column family for Advice().
  struct FamilyPlace {
    const ColumnFamilyOptions& options;
    // Where its files are; not empty.
    const std::vector<DbPath>& paths;
  };
  // new_options: of the new OPTIONS file.
  // place_of: returns the place of a column family of the MANIFEST.
  void Advice(FileSystem* fs, const std::string& dbname,
              const OptionsWithoutFeatures& new_options,
              const std::function<FamilyPlace(const std::string& family)>&
                  place_of) const;

  void End() const;

 private:
  // Returns the lines of Remains().
  std::vector<std::string> RemainingThings() const;
  void AdviceOnPaths(FileSystem* fs, const std::string& dbname,
                     const ManifestFeatures::Family& family,
                     const FamilyPlace& place, bool loses_paths) const;

  const FeatureSet features_;
  const ManifestFeatures& manifest_;
  const FeatureTraces& traces_;
  const Print print_;
};

}  // namespace ROCKSDB_NAMESPACE
