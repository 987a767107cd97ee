//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_feature_report.h"

#include <cstdint>
#include <set>

#include "db/path_layout/directory_names.h"
#include "options/strata/options_file_copy.h"
#include "rocksdb/file_system.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/version.h"
#include "util/strata/path_list.h"
#include "utilities/strata/field_update.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string NameOfRocksDB() {
  return "RocksDB " + std::to_string(ROCKSDB_MAJOR) + "." +
         std::to_string(ROCKSDB_MINOR) + "." + std::to_string(ROCKSDB_PATCH);
}

std::string CountedFiles(const ManifestFeatures::Count& count,
                         const std::string& kind) {
  return std::to_string(count.files) + " " + kind +
         (count.files == 1 ? " file (" : " files (") +
         std::to_string(count.bytes) + " bytes)";
}

// Calls fn(feature, text) for each of the features that the files of the family
// need.
void DescribeFamily(
    const ManifestFeatures::Family& family,
    const std::function<void(FeatureSet::Feature, const std::string&)>& fn) {
  if (family.features.Has(FeatureSet::kMap)) {
    std::string text =
        CountedFiles(family.mapped_tables, "SST") + " with names of values, " +
        CountedFiles(family.mapped_blobs, "blob") + " of format version 2";
    if (family.hot_blobs.files > 0) {
      text += ", of which " + CountedFiles(family.hot_blobs, "blob") +
              " with hot values";
    }
    fn(FeatureSet::kMap, text);
  }
  if (family.features.Has(FeatureSet::kDeltas)) {
    fn(FeatureSet::kDeltas,
       CountedFiles(family.deltas, "delta") + " with merge operands");
  }
  if (family.features.Has(FeatureSet::kLayouts)) {
    fn(FeatureSet::kLayouts, CountedFiles(family.distant_blobs, "blob") +
                                 " on other paths than the first one");
  }
}

}  // namespace

void LdbFeatureReport::Findings(const std::string& options_text) const {
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    DescribeFamily(family, [&](FeatureSet::Feature feature,
                               const std::string& text) {
      print_("[" + family.name + "] " + FeatureSet(feature).ToString() + ": " +
             text + (features_.Has(feature) ? "" : "; it is to stay"));
    });
  }
  for (const OptionsFileCopy::OwnOption& option :
       OptionsFileCopy::OwnOptions(options_text)) {
    const FeatureSet features = FeatureSet::OfOption(option.name);
    print_((option.family.empty() ? "" : "[" + option.family + "] ") +
           features.ToString() + ": option " + option.name + "=" +
           option.value +
           (features_.Intersects(features) ? "" : "; it is to stay"));
  }
  if (!traces_.traces().empty()) {
    print_("Files that RocksDB does not know or cannot read: " +
           std::to_string(traces_.traces().size()) + ", for example " +
           traces_.traces().front().text);
  }
  if (!manifest_.records().IsEmpty()) {
    print_("The MANIFEST has records that RocksDB refuses, of " +
           manifest_.records().ToString());
  }
}

const char* LdbFeatureReport::TextOfWork(FeaturePlan::Work work) {
  switch (work) {
    case FeaturePlan::Work::kNone:
      break;
    case FeaturePlan::Work::kMove:
      return "files are moved to the paths on which RocksDB reads them";
    case FeaturePlan::Work::kCompact:
      return "operands in delta files become values, SST files are compacted";
    case FeaturePlan::Work::kRewrite:
      return "all SST files are rewritten, with the values that they name";
  }
  return "nothing";
}

void LdbFeatureReport::Plan(FileSystem* fs, const FeaturePlan& plan,
                            const FeatureSet& of_options,
                            bool needs_open) const {
  for (const FeaturePlan::Family& family : plan.families()) {
    if (family.work == FeaturePlan::Work::kNone) {
      continue;
    }
    print_("[" + family.name + "] to do: " + TextOfWork(family.work) +
           ", about " + std::to_string(family.bytes) + " bytes");
    for (const auto& [directory, bytes] : family.needs) {
      uint64_t free = 0;
      const bool is_known =
          fs->GetFreeSpace(directory, IOOptions(), &free, nullptr).ok();
      print_("[" + family.name + "] needs up to " + std::to_string(bytes) +
             " bytes in " + directory + " meanwhile, free there are " +
             (is_known ? std::to_string(free) : "an unknown number"));
    }
  }
  if (needs_open) {
    print_("To do: open and close the database, which begins a new MANIFEST");
  }
  if (!of_options.IsEmpty()) {
    print_("To do: take the options of " + of_options.ToString() +
           " out of the OPTIONS file");
  } else if (!needs_open) {
    print_("Nothing to do");
  }
}

std::vector<std::string> LdbFeatureReport::RemainingThings() const {
  std::vector<std::string> lines;
  const FeatureSet records = features_.Intersection(manifest_.records());
  if (!records.IsEmpty()) {
    lines.push_back("the MANIFEST: records of " + records.ToString());
  }
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    DescribeFamily(
        family, [&](FeatureSet::Feature feature, const std::string& text) {
          if (features_.Has(feature)) {
            lines.push_back("[" + family.name + "] " +
                            FeatureSet(feature).ToString() + ": " + text +
                            (feature == FeatureSet::kDeltas
                                 ? ", which cannot be merged; LOG says why"
                                 : ""));
          }
        });
  }
  for (const FeatureTraces::Trace& trace : traces_.traces()) {
    if (features_.Intersects(trace.features)) {
      lines.push_back(trace.text);
    }
  }
  return lines;
}

Status LdbFeatureReport::Remains() const {
  const std::vector<std::string> remains = RemainingThings();
  for (const std::string& line : remains) {
    print_("remains: " + line);
  }
  return remains.empty()
             ? Status::OK()
             : Status::Incomplete(
                   std::to_string(remains.size()) +
                   (remains.size() == 1 ? " thing remains" : " things remain") +
                   ". Run the command again; LOG of the database says what "
                   "its jobs have done");
}

void LdbFeatureReport::AdviceOnPaths(FileSystem* fs, const std::string& dbname,
                                     const ManifestFeatures::Family& family,
                                     const FamilyPlace& place,
                                     bool loses_paths) const {
  const std::string name = "[" + family.name + "] ";
  const bool layouts_go = features_.Has(FeatureSet::kLayouts);
  std::vector<DbPath> paths = place.paths;
  if (layouts_go &&
      family.distant_tables.files + family.distant_deltas.files == 0) {
    paths.resize(1);
  }
  if (!(layouts_go || loses_paths) ||
      (paths.size() == 1 && IsSameDirectory(fs, paths[0].path, dbname))) {
    return;
  }
  print_(name +
         (layouts_go || !OptionsWithoutFeatures::CanNamePaths(place.options)
              ? "The OPTIONS file does not keep the paths of the column "
                "family. "
              : "RocksDB does not read the paths of the column family from "
                "the OPTIONS file. ") +
         "Pass them to DB::Open() from now on, in RocksDB and in Strata, as "
         "its cf_paths, or as db_paths if all column families have them: "
         "cf_paths=" +
         PathListToString(paths));
  if (paths.size() > 1) {
    print_(name +
           "To have all files on the first path, run the command with "
           "--into_first_path and --cf_paths; `ldb move_paths` moves a path to "
           "another directory");
  }
}

void LdbFeatureReport::Advice(
    FileSystem* fs, const std::string& dbname,
    const OptionsWithoutFeatures& new_options,
    const std::function<FamilyPlace(const std::string& family)>& place_of)
    const {
  const std::set<std::string>& losing = new_options.families_losing_paths();
  for (const ManifestFeatures::Family& family : manifest_.families()) {
    const std::string name = "[" + family.name + "] ";
    const FamilyPlace place = place_of(family.name);
    const ColumnFamilyOptions& options = place.options;
    AdviceOnPaths(fs, dbname, family, place, losing.count(family.name) > 0);
    if (features_.Has(FeatureSet::kMap) && family.blobs.files > 0 &&
        !options.enable_blob_garbage_collection) {
      print_(name +
             "enable_blob_garbage_collection is off: RocksDB collects no "
             "garbage of blob files before it is on");
    }
    if (options.merge_operator != nullptr &&
        options.merge_operator->IsInstanceOf(
            FieldUpdateOperator::kClassName())) {
      print_(name + "RocksDB does not have the merge operator " +
             FieldUpdateOperator::kClassName() +
             ": the program has to bring it");
    }
  }
}

void LdbFeatureReport::End() const {
  FeatureSet left = manifest_.records();
  left.Add(traces_.Features());
  print_(left.IsEmpty() ? "OK: " + NameOfRocksDB() + " opens the database"
                        : "OK: nothing is left of " + features_.ToString() +
                              ". The database still has " + left.ToString());
}

}  // namespace ROCKSDB_NAMESPACE
