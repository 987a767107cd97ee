//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/strata_cf_options.h"

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "db/path_layout/path_layout.h"
#include "logging/logging.h"
#include "options/cf_options.h"
#include "options/strata/address_map_options.h"
#include "options/strata/delta_options.h"
#include "options/strata/merged_value_options.h"
#include "options/strata/omitted_at_default.h"
#include "options/strata/path_options.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using StrataTypeInfos = std::unordered_map<std::string, OptionTypeInfo>;

// The type information of a member, by its type.
OptionTypeInfo InfoOf(const bool& default_value, size_t offset,
                      OptionTypeFlags flags) {
  return OmittedAtDefault(offset, OptionType::kBoolean, flags,
                          default_value ? "true" : "false");
}
OptionTypeInfo InfoOf(const uint32_t& default_value, size_t offset,
                      OptionTypeFlags flags) {
  return OmittedAtDefault(offset, OptionType::kUInt32T, flags,
                          std::to_string(default_value));
}
OptionTypeInfo InfoOf(const uint64_t& default_value, size_t offset,
                      OptionTypeFlags flags) {
  return OmittedAtDefault(offset, OptionType::kUInt64T, flags,
                          std::to_string(default_value));
}
OptionTypeInfo InfoOf(const double& default_value, size_t offset,
                      OptionTypeFlags flags) {
  return DoubleOmittedAtDefault(offset, flags, default_value);
}
OptionTypeInfo InfoOf(const std::vector<uint32_t>& /*default_value*/,
                      size_t offset, OptionTypeFlags /*flags*/) {
  return PathIdsTypeInfo(offset);
}

// Calls add(defaults, infos) with the public struct at its defaults and a new
// table, and returns the table, which is never deleted.
template <typename Public>
const StrataTypeInfos* MakeInfosOf(void (*add)(const Public&,
                                               StrataTypeInfos*)) {
  auto* const infos = new StrataTypeInfos();
  add(Public(), infos);
  return infos;
}

}  // namespace

//======== The three structs

// The bodies are lists of statements, one for each row of a table. `Self`,
// `defaults`, `flags` and `infos` are names in the function around STRATA_INFO.
#define STRATA_INIT(name) name = options.name;
#define STRATA_COPY(name) options->name = name;
#define STRATA_INFO(name) \
  infos->emplace(#name, InfoOf(defaults.name, offsetof(Self, name), flags));
#define STRATA_REMOVED(name)                             \
  infos->emplace(#name,                                  \
                 OptionTypeInfo(0, OptionType::kUInt32T, \
                                OptionVerificationType::kDeprecated, flags));

StrataImmutableCFOptions::StrataImmutableCFOptions(
    const StrataColumnFamilyOptions& options) {
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_INIT)
}

void StrataImmutableCFOptions::CopyTo(
    StrataColumnFamilyOptions* options) const {
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_COPY)
}

const StrataTypeInfos* StrataImmutableCFOptions::TypeInfo() {
  static const auto* const result = MakeInfosOf<StrataColumnFamilyOptions>(
      [](const StrataColumnFamilyOptions& defaults, StrataTypeInfos* infos) {
        using Self = StrataImmutableCFOptions;
        constexpr OptionTypeFlags flags = OptionTypeFlags::kNone;
        STRATA_IMMUTABLE_CF_OPTIONS(STRATA_INFO)
      });
  return result;
}

StrataMutableCFOptions::StrataMutableCFOptions(
    const StrataColumnFamilyOptions& options) {
  STRATA_MUTABLE_CF_OPTIONS(STRATA_INIT)
}

void StrataMutableCFOptions::CopyTo(StrataColumnFamilyOptions* options) const {
  STRATA_MUTABLE_CF_OPTIONS(STRATA_COPY)
}

const StrataTypeInfos* StrataMutableCFOptions::TypeInfo() {
  static const auto* const result = MakeInfosOf<StrataColumnFamilyOptions>(
      [](const StrataColumnFamilyOptions& defaults, StrataTypeInfos* infos) {
        using Self = StrataMutableCFOptions;
        constexpr OptionTypeFlags flags = OptionTypeFlags::kMutable;
        STRATA_MUTABLE_CF_OPTIONS(STRATA_INFO)
        STRATA_REMOVED_MUTABLE_CF_OPTIONS(STRATA_REMOVED)
      });
  return result;
}

StrataImmutableDBOptions::StrataImmutableDBOptions(
    const StrataDBOptions& options) {
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_INIT)
}

void StrataImmutableDBOptions::CopyTo(StrataDBOptions* options) const {
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_COPY)
}

const StrataTypeInfos* StrataImmutableDBOptions::TypeInfo() {
  static const auto* const result = MakeInfosOf<StrataDBOptions>(
      [](const StrataDBOptions& defaults, StrataTypeInfos* infos) {
        using Self = StrataImmutableDBOptions;
        constexpr OptionTypeFlags flags = OptionTypeFlags::kNone;
        STRATA_IMMUTABLE_DB_OPTIONS(STRATA_INFO)
      });
  return result;
}

#undef STRATA_INIT
#undef STRATA_COPY
#undef STRATA_INFO
#undef STRATA_REMOVED

void StrataImmutableDBOptions::DumpStrata(Logger* log) const {
  ROCKS_LOG_HEADER(log,
                   "            Options.max_write_groups_per_leader: %" PRIu32,
                   max_write_groups_per_leader);
  ROCKS_LOG_HEADER(
      log, "                   Options.wal_mmap_buffer_size: %" ROCKSDB_PRIszt,
      wal_mmap_buffer_size);
}

//======== LOG

void DumpStrataOptions(Logger* log, const ColumnFamilyOptions& options) {
  DumpPathOptions(log, options);
  DumpAddressMapOptions(log, options);
  DumpMergedValueOptions(log, options);
  DumpDeltaOptions(log, options);
}

void DumpStrataOptions(Logger* log, const MutableCFOptions& options) {
  DumpPathOptions(log, options);
  DumpBlobGcOptions(log, options);
  DumpMergedValueSize(log, options);
  DumpDeltaBucketOptions(log, options);
}

}  // namespace ROCKSDB_NAMESPACE
