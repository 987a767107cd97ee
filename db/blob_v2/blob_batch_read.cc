//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_v2/blob_batch_read.h"

#include <algorithm>
#include <vector>

#include "db/blob/blob_source.h"
#include "db/blob_v2/blob_read_group.h"
#include "monitoring/perf_context_imp.h"
#include "options/cf_options.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

void BlobBatchRead::Run(const ImmutableOptions& ioptions, BlobSource* source,
                        const ReadOptions& read_options,
                        autovector<BlobFileReadRequests>* requests) {
  if (BlobReadGroup::AllowsAsync(read_options, ioptions)) {
    RunAsync(ioptions, source, read_options, requests);
    return;
  }
  BlobReadPool::RunAll(ioptions.clock, requests->size(), [&](size_t i) {
    auto& [file_number, file_size, in_file] = (*requests)[i];
    std::sort(in_file.begin(), in_file.end(),
              [](const BlobReadRequest& a, const BlobReadRequest& b) {
                return a.offset < b.offset;
              });
    source->MultiGetBlobFromOneFile(read_options, file_number, file_size,
                                    in_file, /*bytes_read=*/nullptr);
  });
}

void BlobBatchRead::RunAsync(const ImmutableOptions& ioptions,
                             BlobSource* source,
                             const ReadOptions& read_options,
                             autovector<BlobFileReadRequests>* requests) {
  std::vector<BlobReadGroup::Item> items;
  std::vector<BlobReadRequest*> wanted;
  for (auto& [file_number, file_size, in_file] : *requests) {
    for (BlobReadRequest& request : in_file) {
      items.emplace_back();
      BlobReadGroup::Item& item = items.back();
      item.record_name = *request.user_key;
      item.file_number = file_number;
      item.offset = request.offset;
      item.size = request.len;
      item.compression = request.compression;
      wanted.push_back(&request);
    }
  }
  std::vector<size_t> group_of;
  std::vector<size_t> index_of;
  const auto groups = BlobReadGroup::Divide(
      std::move(items), read_options, ioptions, source, &group_of, &index_of);
  size_t begun = 0;
  {
    PERF_TIMER_GUARD(blob_read_time);
    std::vector<BlobReadGroup*> under_way;
    for (bool is_async = true; is_async && begun < groups.size();) {
      BlobReadGroup* const group = groups[begun].get();
      const BlobReadGroup::Begun result = group->BeginAsync();
      if (result == BlobReadGroup::Begun::kYes) {
        under_way.push_back(group);
      }
      begun += result == BlobReadGroup::Begun::kFailed ? 0 : 1;
      is_async = result != BlobReadGroup::Begun::kFailed &&
                 result != BlobReadGroup::Begun::kRead;
    }
    for (BlobReadGroup* const group : under_way) {
      group->EndAsync();
    }
  }
  // Runs the remaining groups if asynchronous reads turn out not to work.
  BlobReadPool::RunAll(ioptions.clock, groups.size() - begun,
                       [&](size_t i) { groups[begun + i]->Run(); });
  for (size_t i = 0; i < wanted.size(); ++i) {
    *wanted[i]->status =
        groups[group_of[i]]->Take(index_of[i], wanted[i]->result);
  }
  for (const size_t group : group_of) {
    groups[group]->LetGo();
  }
}

}  // namespace ROCKSDB_NAMESPACE
