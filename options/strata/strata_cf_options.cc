//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/strata_cf_options.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "logging/logging.h"
#include "options/cf_options.h"
#include "options/strata/omitted_at_default.h"
#include "options/strata/option_range.h"
#include "options/strata/option_text.h"
#include "options/strata/path_options.h"
#include "options/strata/path_prices.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using StrataTypeInfos = std::unordered_map<std::string, OptionTypeInfo>;

// The type information of a member, by its type.
OptionTypeInfo InfoOf(const bool& default_value, size_t offset,
                      OptionTypeFlags flags) {
  return OmittedAtDefault(offset, OptionType::kBoolean, flags,
                          OptionText(default_value));
}
OptionTypeInfo InfoOf(const int32_t& default_value, size_t offset,
                      OptionTypeFlags flags) {
  return OmittedAtDefault(offset, OptionType::kInt32T, flags,
                          OptionText(default_value));
}
OptionTypeInfo InfoOf(const uint32_t& default_value, size_t offset,
                      OptionTypeFlags flags) {
  return OmittedAtDefault(offset, OptionType::kUInt32T, flags,
                          OptionText(default_value));
}
OptionTypeInfo InfoOf(const uint64_t& default_value, size_t offset,
                      OptionTypeFlags flags) {
  return OmittedAtDefault(offset, OptionType::kUInt64T, flags,
                          OptionText(default_value));
}
OptionTypeInfo InfoOf(const double& default_value, size_t offset,
                      OptionTypeFlags flags) {
  return DoubleOmittedAtDefault(offset, flags, default_value);
}
OptionTypeInfo InfoOf(const std::vector<uint32_t>& /*default_value*/,
                      size_t offset, OptionTypeFlags /*flags*/) {
  return PathIdsTypeInfo(offset);
}
OptionTypeInfo InfoOf(const std::vector<double>& /*default_value*/,
                      size_t offset, OptionTypeFlags /*flags*/) {
  return PathPricesTypeInfo(offset);
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
#define STRATA_INIT(kind, name, ...) name = options.name;
#define STRATA_COPY(kind, name, ...) options->name = name;
#define STRATA_INFO(kind, name, ...) \
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

//======== Types

#define STRATA_TYPE_bool bool
#define STRATA_TYPE_int32 int32_t
#define STRATA_TYPE_uint32 uint32_t
#define STRATA_TYPE_uint64 uint64_t
#define STRATA_TYPE_size size_t
#define STRATA_TYPE_double double
#define STRATA_TYPE_path_ids std::vector<uint32_t>
#define STRATA_TYPE_prices std::vector<double>
#define STRATA_CHECK_TYPE(public_struct, kind, name)                     \
  static_assert(                                                         \
      std::is_same_v<decltype(public_struct::name), STRATA_TYPE_##kind>, \
      "The kind in the table is not that of the member");
#define STRATA_CHECK_CF(kind, name, ...) \
  STRATA_CHECK_TYPE(StrataColumnFamilyOptions, kind, name)
#define STRATA_CHECK_DB(kind, name, ...) \
  STRATA_CHECK_TYPE(StrataDBOptions, kind, name)

// Flags and the C API have types that follow from the kind.
STRATA_IMMUTABLE_CF_OPTIONS(STRATA_CHECK_CF)
STRATA_MUTABLE_CF_OPTIONS(STRATA_CHECK_CF)
STRATA_IMMUTABLE_DB_OPTIONS(STRATA_CHECK_DB)

#undef STRATA_TYPE_bool
#undef STRATA_TYPE_int32
#undef STRATA_TYPE_uint32
#undef STRATA_TYPE_uint64
#undef STRATA_TYPE_size
#undef STRATA_TYPE_double
#undef STRATA_TYPE_path_ids
#undef STRATA_TYPE_prices
#undef STRATA_CHECK_TYPE
#undef STRATA_CHECK_CF
#undef STRATA_CHECK_DB

//======== Ranges

#define STRATA_CHECK_RANGE(kind, name, feature, range, ...)     \
  if (Status s = (range).Check(#name, options.name); !s.ok()) { \
    return s;                                                   \
  }

Status ValidateStrataRanges(const StrataColumnFamilyOptions& options) {
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_CHECK_RANGE)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_CHECK_RANGE)
  return Status::OK();
}

Status ValidateStrataRanges(const StrataDBOptions& options) {
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_CHECK_RANGE)
  return Status::OK();
}

#undef STRATA_CHECK_RANGE

//======== LOG

namespace {

// Writes a line that is aligned with those of RocksDB's options.
template <typename T>
void DumpOption(Logger* log, const std::string& name, const T& value) {
  constexpr int kColumn = 39;
  ROCKS_LOG_HEADER(log, "%*sOptions.%s: %s",
                   std::max(0, kColumn - static_cast<int>(name.size())), "",
                   name.c_str(), OptionText(value).c_str());
}

// The same for a changed option, among RocksDB's lines of MutableCFOptions.
template <typename T>
void DumpIfChanged(Logger* log, const char* name, const T& value,
                   const T& default_value) {
  if (value != default_value) {
    ROCKS_LOG_INFO(log, "%41s: %s", name, OptionText(value).c_str());
  }
}

}  // namespace

#define STRATA_DUMP(kind, name, ...) DumpOption(log, #name, name);
#define STRATA_DUMP_IF_ON(kind, name, feature, ...) \
  if (TurnsOn(options.feature)) {                   \
    DumpOption(log, #name, options.name);           \
  }
#define STRATA_DUMP_IF_CHANGED(kind, name, ...) \
  DumpIfChanged(log, #name, options.name, defaults.name);

void StrataImmutableDBOptions::DumpStrata(Logger* log) const {
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_DUMP)
}

void DumpStrataOptions(Logger* log, const ColumnFamilyOptions& options) {
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_DUMP_IF_ON)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_DUMP_IF_ON)
  DumpPathsOfLayout(log, options);
}

void DumpStrataOptions(Logger* log, const MutableCFOptions& options) {
  const StrataColumnFamilyOptions defaults;
  STRATA_MUTABLE_CF_OPTIONS(STRATA_DUMP_IF_CHANGED)
}

#undef STRATA_DUMP
#undef STRATA_DUMP_IF_ON
#undef STRATA_DUMP_IF_CHANGED

}  // namespace ROCKSDB_NAMESPACE
