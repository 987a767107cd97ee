//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/overlap_state_test_util.h"

#include "test_util/strata/overlap_values_test_util.h"

namespace ROCKSDB_NAMESPACE {

OverlapState::OverlapState(const OverlapStressOptions& options)
    : options_(options),
      findings_(options.seconds, options.max_findings),
      db_(options),
      steps_(options.writers, 0) {
  for (auto& family : histories_) {
    family.resize(options_.writers);
    for (auto& keys : family) {
      for (uint32_t i = 0; i < options_.keys; ++i) {
        keys.push_back(std::make_unique<OverlapKeyHistory>());
      }
    }
  }
}

std::vector<OverlapKeyHistory::Version> OverlapState::Latest(size_t family,
                                                             size_t writer) {
  std::vector<OverlapKeyHistory::Version> latest;
  for (const auto& history : histories_[family][writer]) {
    latest.push_back(history->Latest());
  }
  return latest;
}

std::string OverlapState::Name(size_t family, size_t writer, size_t index) {
  return std::to_string(family) + "/" + OverlapValues::KeyName(writer, index);
}

size_t OverlapState::PickIndex(OverlapDice* dice) const {
  return dice->OneIn(2) ? dice->Below(options_.keys)
                        : (hot_ + dice->Below(16)) % options_.keys;
}

}  // namespace ROCKSDB_NAMESPACE
