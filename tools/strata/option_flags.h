//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Macros for the flags of the options in strata_option_table.h, which db_bench
// and db_stress have. The options of the kinds path_ids and prices are left
// out: their flags are beside those of the paths (ApplyPathFlags(),
// ApplyPathPricesFlag()).
//
// A program has these flags once, in one file. That file defines
// STRATA_FLAG_HELP(help, bench_help), the text of a flag, and has
//
//   STRATA_DEFINE_OPTION_FLAGS
//
// outside of all namespaces. STRATA_APPLY_OPTION_FLAGS is a list of statements
// that call ApplyOptionFlag() for each of these flags and its option in
// *options, an Options.

#pragma once

#include "options/strata/strata_option_table.h"
#include "rocksdb/options.h"
#include "tools/strata/given_flag.h"
#include "util/gflags_compat.h"

namespace ROCKSDB_NAMESPACE {

// Sets the option to the value of its flag, if the flag was given. Otherwise
// the option keeps its value, which may come from an OPTIONS file, and the flag
// gets that value: the program asks its flags which features the DB has.
template <typename Flag, typename Option>
void ApplyOptionFlag(const char* name, Flag* flag, Option* option) {
  if (IsFlagGiven(name)) {
    *option = static_cast<Option>(*flag);
  } else if (*flag != static_cast<Flag>(*option)) {
    // Not written without need: other threads may read it at a later open.
    *flag = static_cast<Flag>(*option);
  }
}

}  // namespace ROCKSDB_NAMESPACE

#define STRATA_DEFINE_OPTION_FLAGS                   \
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_DEFINE_CF_FLAG) \
  STRATA_MUTABLE_CF_OPTIONS(STRATA_DEFINE_CF_FLAG)   \
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_DEFINE_DB_FLAG)

#define STRATA_APPLY_OPTION_FLAGS                \
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_APPLY_FLAG) \
  STRATA_MUTABLE_CF_OPTIONS(STRATA_APPLY_FLAG)   \
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_APPLY_FLAG)

// ---- The macros below are details of those above.

// A flag has the default of the option.
#define STRATA_DEFINE_CF_FLAG(kind, name, feature, range, help, bench_help) \
  STRATA_DEFINE_FLAG_##kind(                                                \
      name, ROCKSDB_NAMESPACE::StrataColumnFamilyOptions().name,            \
      STRATA_FLAG_HELP(help, bench_help))
#define STRATA_DEFINE_DB_FLAG(kind, name, feature, range, help, bench_help)  \
  STRATA_DEFINE_FLAG_##kind(name, ROCKSDB_NAMESPACE::StrataDBOptions().name, \
                            STRATA_FLAG_HELP(help, bench_help))

#define STRATA_DEFINE_FLAG_bool(name, value, help) \
  DEFINE_bool(name, value, help);
#define STRATA_DEFINE_FLAG_int32(name, value, help) \
  DEFINE_int32(name, value, help);
#define STRATA_DEFINE_FLAG_uint32(name, value, help) \
  DEFINE_uint32(name, value, help);
#define STRATA_DEFINE_FLAG_uint64(name, value, help) \
  DEFINE_uint64(name, value, help);
// gflags has no flags of the type size_t.
#define STRATA_DEFINE_FLAG_size(name, value, help) \
  DEFINE_uint64(name, value, help);
#define STRATA_DEFINE_FLAG_double(name, value, help) \
  DEFINE_double(name, value, help);
#define STRATA_DEFINE_FLAG_path_ids(name, value, help)
#define STRATA_DEFINE_FLAG_prices(name, value, help)

#define STRATA_APPLY_FLAG(kind, name, ...) STRATA_APPLY_FLAG_##kind(name)
#define STRATA_APPLY_FLAG_VALUE(name) \
  ROCKSDB_NAMESPACE::ApplyOptionFlag(#name, &FLAGS_##name, &options->name);
#define STRATA_APPLY_FLAG_bool STRATA_APPLY_FLAG_VALUE
#define STRATA_APPLY_FLAG_int32 STRATA_APPLY_FLAG_VALUE
#define STRATA_APPLY_FLAG_uint32 STRATA_APPLY_FLAG_VALUE
#define STRATA_APPLY_FLAG_uint64 STRATA_APPLY_FLAG_VALUE
#define STRATA_APPLY_FLAG_size STRATA_APPLY_FLAG_VALUE
#define STRATA_APPLY_FLAG_double STRATA_APPLY_FLAG_VALUE
#define STRATA_APPLY_FLAG_path_ids(name)
#define STRATA_APPLY_FLAG_prices(name)
