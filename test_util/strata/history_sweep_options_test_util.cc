//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_sweep_options_test_util.h"

#include <cstdlib>

#include "test_util/strata/history_sweep_kind_test_util.h"
#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string FromEnv(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool ParseSeed(const std::string& text, uint32_t* seed) {
  uint64_t number = 0;
  if (!HistoryArguments::ParseNumber(text, &number) || number > UINT32_MAX) {
    return false;
  }
  *seed = static_cast<uint32_t>(number);
  return true;
}

}  // namespace

bool HistorySweepOptions::FromEnvironment(HistorySweepOptions* options,
                                          std::string* error) {
  const std::string which = FromEnv("STRATA_SWEEP");
  uint64_t number = 0;
  if (which == "all") {
    options->all = true;
  } else if (HistoryArguments::ParseNumber(which, &number)) {
    options->num_points = static_cast<size_t>(number);
  } else if (!which.empty()) {
    *error = "STRATA_SWEEP is neither \"all\" nor a number of points";
    return false;
  }
  const std::string seed = FromEnv("STRATA_SWEEP_SEED");
  if (!seed.empty() && !ParseSeed(seed, &options->seed)) {
    *error = "STRATA_SWEEP_SEED is no number of 32 bits";
    return false;
  }
  options->script = FromEnv("STRATA_SWEEP_SCRIPT");
  options->variant = FromEnv("STRATA_SWEEP_VARIANT");
  options->kind = FromEnv("STRATA_SWEEP_KIND");
  options->point = FromEnv("STRATA_SWEEP_POINT");
  options->after = FromEnv("STRATA_SWEEP_AFTER");
  HistorySweepPoint point;
  if (!options->kind.empty() &&
      !HistorySweepPoint::Parse(options->kind + ":1", &point)) {
    *error = "STRATA_SWEEP_KIND is no kind of fault";
    return false;
  }
  if (!options->point.empty() &&
      !HistorySweepPoint::Parse(options->point, &point)) {
    *error = "STRATA_SWEEP_POINT is not KIND:N";
    return false;
  }
  if (!options->after.empty() &&
      !HistorySweepPoint::Parse(options->after, &point)) {
    *error = "STRATA_SWEEP_AFTER is not KIND:N";
    return false;
  }
  return true;
}

}  // namespace ROCKSDB_NAMESPACE
