//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Part of the shared library only. These functions are called by a program that
// was compiled with RocksDB's C++ headers, linked with RocksDB's library and
// then started with this library; they end the program with a message. They are
// the tagged functions of rocksdb/strata_abi.h without the tag.
//
// The symbols have the version COMPILED_WITH_OTHER_HEADERS and are not default
// versions ("@" instead of "@@"). So the dynamic linker binds a program that is
// already linked to them, as it does with glibc's old functions, but the linker
// does not: object files that need them do not link.

#include <cstdio>
#include <cstdlib>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/version.h"
#include "util/strata/strata_version.h"

#ifdef STRATA_FOREIGN_HEADERS

namespace {

[[noreturn]] void Refuse(const char* function) {
  std::fprintf(
      stderr,
      "librocksdb: this program was compiled with the C++ headers of RocksDB, "
      "but it runs with the library of Strata " STRATA_VERSION
      " (RocksDB %d.%d.%d), whose classes have other sizes. It called %s. "
      "Compile the program and all libraries that pass RocksDB objects to it "
      "with the headers of this library, or run it with RocksDB's library. "
      "Programs that use the C API alone need no change.\n",
      ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH, function);
  std::abort();
}

}  // namespace

// Defines a function that calls Refuse(), and makes it the old version of
// `symbol`.
#define STRATA_REFUSE(id, symbol, function)                    \
  extern "C" {                                                 \
  [[noreturn]] [[gnu::used]] void StrataForeignHeaders##id() { \
    Refuse(function);                                          \
  }                                                            \
  }                                                            \
  asm(".symver StrataForeignHeaders" #id "," symbol            \
      "@COMPILED_WITH_OTHER_HEADERS")

// scripts/install_test.py compares this list with the tagged symbols of the
// library.
STRATA_REFUSE(1, "_ZN7rocksdb11ReadOptionsC1ENS_3Env10IOActivityE",
              "ReadOptions::ReadOptions()");
STRATA_REFUSE(2, "_ZN7rocksdb11ReadOptionsC1Ebb", "ReadOptions::ReadOptions()");
STRATA_REFUSE(3, "_ZN7rocksdb11ReadOptionsC2ENS_3Env10IOActivityE",
              "ReadOptions::ReadOptions()");
STRATA_REFUSE(4, "_ZN7rocksdb11ReadOptionsC2Ebb", "ReadOptions::ReadOptions()");
STRATA_REFUSE(5, "_ZN7rocksdb16get_perf_contextEv", "get_perf_context()");
STRATA_REFUSE(6, "_ZN7rocksdb18CreateDBStatisticsEv", "CreateDBStatistics()");
STRATA_REFUSE(7, "_ZN7rocksdb19ColumnFamilyOptionsC1ERKNS_7OptionsE",
              "ColumnFamilyOptions::ColumnFamilyOptions()");
STRATA_REFUSE(8, "_ZN7rocksdb19ColumnFamilyOptionsC1Ev",
              "ColumnFamilyOptions::ColumnFamilyOptions()");
STRATA_REFUSE(9, "_ZN7rocksdb19ColumnFamilyOptionsC2ERKNS_7OptionsE",
              "ColumnFamilyOptions::ColumnFamilyOptions()");
STRATA_REFUSE(10, "_ZN7rocksdb19ColumnFamilyOptionsC2Ev",
              "ColumnFamilyOptions::ColumnFamilyOptions()");
STRATA_REFUSE(11, "_ZN7rocksdb27AdvancedColumnFamilyOptionsC1ERKNS_7OptionsE",
              "AdvancedColumnFamilyOptions::AdvancedColumnFamilyOptions()");
STRATA_REFUSE(12, "_ZN7rocksdb27AdvancedColumnFamilyOptionsC1Ev",
              "AdvancedColumnFamilyOptions::AdvancedColumnFamilyOptions()");
STRATA_REFUSE(13, "_ZN7rocksdb27AdvancedColumnFamilyOptionsC2ERKNS_7OptionsE",
              "AdvancedColumnFamilyOptions::AdvancedColumnFamilyOptions()");
STRATA_REFUSE(14, "_ZN7rocksdb27AdvancedColumnFamilyOptionsC2Ev",
              "AdvancedColumnFamilyOptions::AdvancedColumnFamilyOptions()");
STRATA_REFUSE(
    15,
    "_ZN7rocksdb2DB15OpenForReadOnlyERKNS_7OptionsERKNSt7__cxx1112basic"
    "_stringIcSt11char_traitsIcESaIcEEEPSt10unique_ptrIS0_St14default_d"
    "eleteIS0_EEb",
    "DB::OpenForReadOnly()");
STRATA_REFUSE(
    16,
    "_ZN7rocksdb2DB15OpenForReadOnlyERKNS_9DBOptionsERKNSt7__cxx1112bas"
    "ic_stringIcSt11char_traitsIcESaIcEEERKSt6vectorINS_22ColumnFamilyD"
    "escriptorESaISD_EEPSC_IPNS_18ColumnFamilyHandleESaISJ_EEPSt10uniqu"
    "e_ptrIS0_St14default_deleteIS0_EEb",
    "DB::OpenForReadOnly()");
STRATA_REFUSE(
    17,
    "_ZN7rocksdb2DB4OpenERKNS_7OptionsERKNSt7__cxx1112basic_stringIcSt1"
    "1char_traitsIcESaIcEEEPSt10unique_ptrIS0_St14default_deleteIS0_EE",
    "DB::Open()");
STRATA_REFUSE(
    18,
    "_ZN7rocksdb2DB4OpenERKNS_9DBOptionsERKNSt7__cxx1112basic_stringIcS"
    "t11char_traitsIcESaIcEEERKSt6vectorINS_22ColumnFamilyDescriptorESa"
    "ISD_EEPSC_IPNS_18ColumnFamilyHandleESaISJ_EEPSt10unique_ptrIS0_St1"
    "4default_deleteIS0_EE",
    "DB::Open()");
STRATA_REFUSE(19, "_ZN7rocksdb6Status9CopyStateEPKc", "Status::CopyState()");
STRATA_REFUSE(20, "_ZN7rocksdb9DBOptionsC1ERKNS_7OptionsE",
              "DBOptions::DBOptions()");
STRATA_REFUSE(21, "_ZN7rocksdb9DBOptionsC1Ev", "DBOptions::DBOptions()");
STRATA_REFUSE(22, "_ZN7rocksdb9DBOptionsC2ERKNS_7OptionsE",
              "DBOptions::DBOptions()");
STRATA_REFUSE(23, "_ZN7rocksdb9DBOptionsC2Ev", "DBOptions::DBOptions()");
STRATA_REFUSE(24, "_ZNK7rocksdb6Status8ToStringB5cxx11Ev",
              "Status::ToString()");

#endif
