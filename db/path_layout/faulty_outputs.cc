//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/faulty_outputs.h"

#include "db/path_layout/directory_names.h"
#include "db/path_layout/path_layout.h"
#include "file/sst_file_manager_impl.h"
#include "file/strata/path_faults.h"
#include "options/cf_options.h"

namespace ROCKSDB_NAMESPACE {

bool AreOutputsFaulty(const ImmutableOptions& ioptions,
                      const MutableCFOptions& options, int output_level) {
  if (!PathLayout::HasSstLayout(options) ||
      ioptions.sst_file_manager == nullptr) {
    return false;
  }
  const PathFaults* const faults =
      static_cast<SstFileManagerImpl*>(ioptions.sst_file_manager.get())
          ->path_faults();
  return faults->HasAny() &&
         faults->Has(CleanDirectoryName(
             /*fs=*/nullptr,
             PathLayout::Directory(
                 ioptions.cf_paths,
                 PathLayout::SstPathId(options, output_level))));
}

}  // namespace ROCKSDB_NAMESPACE
