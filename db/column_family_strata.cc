//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <memory>
#include <utility>

#include "db/column_family.h"
#include "db/delta/delta_store.h"
#include "db/delta/delta_table_factory.h"
#include "db/table_cache.h"

namespace ROCKSDB_NAMESPACE {

void ColumnFamilyData::CreateDeltaStore() {
  DeltaTableFamily family(ioptions_);
  family.id = id_;
  family.name = name_;
  family.file_options = *soptions();
  family.db_session_id = column_family_set_->db_session_id_;
  family.io_tracer = column_family_set_->io_tracer_;
  family.block_cache_tracer = column_family_set_->block_cache_tracer_;
  family.path_read_stats = table_cache_->path_read_stats();
  delta_store_ =
      std::make_unique<DeltaStore>(std::move(family), mutable_cf_options_);
}

}  // namespace ROCKSDB_NAMESPACE
