//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <unordered_map>

#include "options/strata/strata_option_table.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/strata_options.h"
#include "rocksdb/utilities/options_type.h"

namespace ROCKSDB_NAMESPACE {

class Logger;
struct ColumnFamilyOptions;
struct MutableCFOptions;

// The options of rocksdb/strata_options.h in the forms in which RocksDB keeps
// options of an open DB. RocksDB's structs inherit these.
//
// The type information is registered as sets of their own beside RocksDB's: the
// order of the lines in an OPTIONS file follows from the members of a set, and
// the file of a DB without these options has to stay what RocksDB writes, to
// the byte. An option is not written while it has its default.

// A base of ImmutableCFOptions.
struct StrataImmutableCFOptions {
  StrataImmutableCFOptions()
      : StrataImmutableCFOptions(StrataColumnFamilyOptions()) {}
  explicit StrataImmutableCFOptions(const StrataColumnFamilyOptions& options);

  static const char* kName() { return "StrataImmutableCFOptions"; }
  static const std::unordered_map<std::string, OptionTypeInfo>* TypeInfo();

  // Sets these options in *options.
  void CopyTo(StrataColumnFamilyOptions* options) const;

#define STRATA_MEMBER(kind, name, ...) \
  decltype(StrataColumnFamilyOptions::name) name;
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_MEMBER)
#undef STRATA_MEMBER
};

// A base of MutableCFOptions.
struct StrataMutableCFOptions {
  // Leaves all options 0, false or empty, as MutableCFOptions() does.
  StrataMutableCFOptions() = default;
  bool operator==(const StrataMutableCFOptions&) const = default;
  explicit StrataMutableCFOptions(const StrataColumnFamilyOptions& options);

  static const char* kName() { return "StrataMutableCFOptions"; }
  static const std::unordered_map<std::string, OptionTypeInfo>* TypeInfo();

  // Sets these options in *options.
  void CopyTo(StrataColumnFamilyOptions* options) const;

#define STRATA_MEMBER(kind, name, ...) \
  decltype(StrataColumnFamilyOptions::name) name{};
  STRATA_MUTABLE_CF_OPTIONS(STRATA_MEMBER)
#undef STRATA_MEMBER
};

// A base of ImmutableDBOptions.
struct StrataImmutableDBOptions {
  explicit StrataImmutableDBOptions(const StrataDBOptions& options);

  static const char* kName() { return "StrataImmutableDBOptions"; }
  static const std::unordered_map<std::string, OptionTypeInfo>* TypeInfo();

  // Sets these options in *options.
  void CopyTo(StrataDBOptions* options) const;
  // Writes these options to LOG.
  void DumpStrata(Logger* log) const;

#define STRATA_MEMBER(kind, name, ...) decltype(StrataDBOptions::name) name;
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_MEMBER)
#undef STRATA_MEMBER
};

// Returns InvalidArgument if an option is out of its range; the message has the
// option and the range. Options of features that are off are checked, too: what
// SetOptions() accepts must be valid when the DB is reopened with the feature.
Status ValidateStrataRanges(const StrataColumnFamilyOptions& options);
Status ValidateStrataRanges(const StrataDBOptions& options);

// Writes the options of the features that are on to LOG.
void DumpStrataOptions(Logger* log, const ColumnFamilyOptions& options);
// Writes the options that are not at their defaults to LOG.
void DumpStrataOptions(Logger* log, const MutableCFOptions& options);

}  // namespace ROCKSDB_NAMESPACE
