//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/blob_placement.h"

#include <cassert>
#include <utility>

#include "db/blob/blob_file_builder.h"
#include "db/compaction/compaction.h"
#include "db/compaction/compaction_iterator.h"
#include "db/version_set.h"

namespace ROCKSDB_NAMESPACE {

std::unique_ptr<BlobPlacement> BlobPlacement::Create(
    const Compaction& compaction, SequenceNumber proximal_after_seqno,
    BlobFileBuilder* builder, const NewBuilder& new_builder) {
  const uint32_t path_id =
      compaction.OutputBlobPathId(compaction.output_level());
  const uint32_t proximal_path_id =
      compaction.SupportsPerKeyPlacement()
          ? compaction.OutputBlobPathId(compaction.GetProximalLevel())
          : path_id;

  const auto relocation_to = [&compaction](uint32_t to_path_id) {
    if (!compaction.DoesInputReferenceBlobFiles()) {
      return BlobRelocation();
    }
    return BlobRelocation(
        compaction.input_version()->storage_info()->GetBlobFiles(), to_path_id);
  };

  BlobRelocation relocation = relocation_to(path_id);
  if (relocation.IsEmpty() && proximal_path_id == path_id) {
    return nullptr;
  }
  std::unique_ptr<BlobPlacement> placement(new BlobPlacement());
  placement->output_.builder = builder;
  placement->output_.relocation = std::move(relocation);
  if (proximal_path_id != path_id) {
    placement->is_split_ = true;
    placement->proximal_after_seqno_ = proximal_after_seqno;
    placement->proximal_builder_ = new_builder(compaction.GetProximalLevel());
    placement->proximal_.builder = placement->proximal_builder_.get();
    placement->proximal_.relocation = relocation_to(proximal_path_id);
  }
  return placement;
}

BlobPlacement::~BlobPlacement() = default;

Status BlobPlacement::Finish(Status s) {
  if (proximal_builder_ == nullptr) {
    return s;
  }
  if (s.ok()) {
    return proximal_builder_->Finish();
  }
  proximal_builder_->Abandon(s);
  return s;
}

// The functions of CompactionIterator that use BlobPlacement.

void CompactionIterator::SetBlobPlacement(
    std::unique_ptr<BlobPlacement> placement) {
  blob_placement_ = std::move(placement);
}

void CompactionIterator::SelectBlobTarget() {
  // The sequence number may still become 0 in PrepareOutput(), but only for
  // entries that are not newer than those kept out of the proximal level.
  BlobPlacement::Target& target = blob_placement_->For(ikey_.sequence);
  blob_file_builder_ = target.builder;
  blob_relocation_ = target.relocation.IsEmpty() ? nullptr : &target.relocation;
}

bool CompactionIterator::MustMoveBlobsOf(uint64_t blob_file_number) {
  return blob_relocation_->ShouldRelocate(blob_file_number);
}

}  // namespace ROCKSDB_NAMESPACE
