//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include "rocksdb/rocksdb_namespace.h"

// The guard of the C++ interface. Strata's public structs have more members
// than RocksDB's, so an object file that was compiled with one set of headers
// cannot work with the other library, although file name and soname are the
// same. This header makes the linker or the dynamic linker refuse such a
// combination. The C API (rocksdb/c.h) is the same in both libraries and has no
// guard.
//
// There are two directions:
//
// * Compiled with these headers, run with another library. Each object file
//   refers to STRATA_ABI_SYMBOL, which only a library with the same
//   STRATA_ABI_VERSION defines. The reference is in data, so the dynamic linker
//   resolves it when the program starts, also with lazy binding.
// * Compiled with other headers, run with this library. The functions without
//   which a program has no objects of the changed types (constructors of the
//   options, DB::Open(), ...) have STRATA_ABI_TAG, which becomes part of their
//   symbols. So object files that were compiled with RocksDB's headers do not
//   link with this library. For programs that were linked with RocksDB before,
//   the shared library has the untagged symbols, too: as functions that say
//   what is wrong and abort (util/strata/foreign_headers_shared.cc).

// The version of the C++ interface. It has to be raised by the first change
// after a release that changes the size or the layout of a type, the order of
// virtual functions or the value of an enumerator in the public C++ headers.
// util/strata/strata_abi_test.cc fails if such a change was made.
#define STRATA_ABI_VERSION 1

#define STRATA_ABI_JOIN_(a, b) a##b
#define STRATA_ABI_JOIN(a, b) STRATA_ABI_JOIN_(a, b)
#define STRATA_ABI_STRING_(a) #a
#define STRATA_ABI_STRING(a) STRATA_ABI_STRING_(a)

// The name is what the dynamic linker prints if the symbol is missing.
#define STRATA_ABI_SYMBOL                                           \
  STRATA_ABI_JOIN(this_program_needs_librocksdb_of_strata_cxx_abi_, \
                  STRATA_ABI_VERSION)

#if defined(__GNUC__) && !defined(_WIN32)

#define STRATA_ABI_TAG \
  __attribute__((__abi_tag__("strata" STRATA_ABI_STRING(STRATA_ABI_VERSION))))

extern "C" {
extern const char STRATA_ABI_SYMBOL;
}

namespace ROCKSDB_NAMESPACE {
// Not an inline variable: GCC makes those unique in the process, which keeps
// plugins from being unloaded.
[[gnu::used]] static const char* const kStrataAbiReference = &STRATA_ABI_SYMBOL;
}  // namespace ROCKSDB_NAMESPACE

#else

#define STRATA_ABI_TAG

#endif
