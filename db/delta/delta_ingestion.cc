//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_ingestion.h"

#include <memory>

#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_verifier.h"
#include "db/delta/delta_version.h"
#include "db/range_tombstone_fragmenter.h"
#include "file/filename.h"
#include "file/sst_file_manager_impl.h"
#include "logging/logging.h"
#include "rocksdb/file_system.h"
#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// For error messages: where the file cannot be ingested.
const char* const kWhere =
    " over merge operands in delta files (enable_delta_separation): ";

}  // namespace

Status DeltaIngestion::CheckReplaceRange(const DeltaStore* store) {
  return store == nullptr
             ? Status::OK()
             : Status::NotSupported(
                   "atomic_replace_range cannot be combined with merge "
                   "operands in delta files (enable_delta_separation): those "
                   "of the range would stay, without the values of the "
                   "replaced files");
}

Status DeltaIngestion::WriteAnchors(const DeltaTableFactory& tables,
                                    const DeltaFileBuilder::Options& options,
                                    InternalIterator* points,
                                    FragmentedRangeTombstoneIterator* ranges,
                                    IngestedDeltaAnchors* anchors) {
  *anchors = IngestedDeltaAnchors();
  Status s = DeltaFileBuilder::BuildAnchorsOf(tables, options, points, ranges,
                                              &anchors->file);
  if (!s.ok() || anchors->file.number == 0) {
    anchors->are_written = s.ok();
    return s;
  }
  const auto settings = tables.settings();
  const ImmutableOptions& ioptions = settings->ioptions();
  anchors->file_name =
      DeltaFileName(ioptions.cf_paths, options.number, options.path_id);
  // Checked as after a flush: if the file cannot be opened, the operands of
  // these keys cannot be read. The block cache is not used, as the file may
  // never be used.
  const auto uncached =
      NewUncachedDeltaTables(*settings->family, settings->options);
  std::unique_ptr<DeltaFileReader> reader;
  s = DeltaFileReader::Open(*uncached, ReadOptions(), anchors->file, &reader);
  TEST_SYNC_POINT_CALLBACK("DeltaIngestion::WriteAnchors:Opened", &s);
  if (!s.ok()) {
    reader.reset();
    Delete(ioptions.fs.get(), ioptions.sst_file_manager.get(), ioptions.logger,
           anchors);
  }
  anchors->are_written = s.ok();
  return s;
}

bool DeltaIngestion::IsOverOperands(const DeltaVersion* version,
                                    const Source& source) {
  return version != nullptr &&
         version->OverlapsRange(&source.smallest, &source.largest);
}

Status DeltaIngestion::Check(const DeltaVersion* version, const Source& source,
                             bool* over_operands) {
  *over_operands = IsOverOperands(version, source);
  if (!*over_operands) {
    return Status::OK();
  }
  const std::string what = "Ingestion of " + source.name.ToString() + kWhere;
  if (source.num_operands > 0) {
    return Status::NotSupported(
        what +
        "it has merge operands itself, and those in SST files count as "
        "older than those in delta files");
  }
  if (source.keeps_seqs) {
    return Status::NotSupported(
        what +
        "with allow_db_generated_files it keeps its sequence numbers, "
        "which do not show which entries are newer");
  }
  if (!source.may_have_seq) {
    return Status::InvalidArgument(
        what +
        "it needs a sequence number that is newer than theirs, but "
        "allow_global_seqno is false");
  }
  return Status::OK();
}

void DeltaIngestion::Delete(FileSystem* fs, SstFileManager* sst_file_manager,
                            Logger* info_log, IngestedDeltaAnchors* anchors) {
  if (anchors->file.number == 0) {
    return;
  }
  const IOStatus io_s =
      fs->DeleteFile(anchors->file_name, IOOptions(), /*dbg=*/nullptr);
  if (io_s.ok() && sst_file_manager != nullptr) {
    static_cast<SstFileManagerImpl*>(sst_file_manager)
        ->OnDeleteFile(anchors->file_name)
        .PermitUncheckedError();
  } else if (!io_s.ok()) {
    // The next full scan finds it like any obsolete file.
    ROCKS_LOG_WARN(info_log, "Could not delete %s: %s",
                   anchors->file_name.c_str(), io_s.ToString().c_str());
  }
  *anchors = IngestedDeltaAnchors();
}

}  // namespace ROCKSDB_NAMESPACE
