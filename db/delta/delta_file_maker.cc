//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_maker.h"

#include <cassert>
#include <memory>
#include <utility>

#include "db/column_family.h"
#include "db/delta/delta_file_reader.h"
#include "db/path_layout/path_layout.h"
#include "db/version_set.h"
#include "options/cf_options.h"

namespace ROCKSDB_NAMESPACE {

DeltaVersion::FileMaker MakeDeltaFiles(VersionSet* version_set,
                                       const ImmutableCFOptions* ioptions,
                                       const ColumnFamilyData* cfd) {
  return [=](const DeltaFileDescription& file) {
    DeltaFileMeta::OnRelease on_release;
    if (version_set != nullptr) {
      assert(!ioptions->cf_paths.empty());
      // Copy everything that the deletion needs of the column family.
      ObsoleteDeltaFile obsolete;
      obsolete.number = file.number;
      obsolete.path_id = file.path_id;
      obsolete.size = file.size;
      obsolete.directory =
          PathLayout::Directory(ioptions->cf_paths, file.path_id);
      if (cfd != nullptr) {
        obsolete.column_family_id = cfd->GetID();
        obsolete.uncache_aggressiveness =
            cfd->GetLatestMutableCFOptions().uncache_aggressiveness;
      }
      on_release = [version_set, obsolete = std::move(obsolete)](
                       const DeltaFileDescription& /*file*/,
                       std::shared_ptr<DeltaFileReader> reader) mutable {
        obsolete.reader = std::move(reader);
        version_set->strata()->AddObsoleteDeltaFile(std::move(obsolete));
      };
    }
    return DeltaFileMeta::Create(file, std::move(on_release));
  };
}

void ObsoleteDeltaFile::CloseReader() {
  if (reader != nullptr) {
    reader->MarkObsolete(uncache_aggressiveness);
    reader.reset();
  }
}

}  // namespace ROCKSDB_NAMESPACE
