//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_read_options_test_util.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace ROCKSDB_NAMESPACE {

namespace {

bool Set(const std::string& word, ReadOptions* options) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  if (equals != std::string::npos) {
    uint64_t number = 0;
    if (!HistoryArguments::ParseNumber(word.substr(equals + 1), &number)) {
      return false;
    }
    if (name == "+prefetch") {
      options->blob_prefetch_count = static_cast<size_t>(number);
    } else if (name == "+readahead") {
      options->readahead_size = static_cast<size_t>(number);
    } else {
      return false;
    }
    return true;
  }
  if (name == "+async") {
    options->async_io = true;
  } else if (name == "+nofill") {
    options->fill_cache = false;
  } else if (name == "+pin") {
    options->pin_data = true;
  } else if (name == "+tailing") {
    options->tailing = true;
  } else if (name == "+totalorder") {
    options->total_order_seek = true;
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool HistoryReadOptions::Take(HistoryWords* words, ReadOptions* options) {
  for (auto it = words->begin(); it != words->end();) {
    if (it->empty() || it->front() != '+') {
      ++it;
    } else if (Set(*it, options)) {
      it = words->erase(it);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
