//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/secure_getenv.h"

#include <cstdlib>

#if defined(__linux__)
#include <sys/auxv.h>
#elif !defined(OS_WIN)
#include <unistd.h>
#endif

#include "test_util/sync_point.h"

namespace ROCKSDB_NAMESPACE {

namespace {

bool HasMoreRightsThanItsCaller() {
#if defined(__linux__)
  // The kernel sets it as for secure_getenv(), which not all C libraries have.
  bool result = getauxval(AT_SECURE) != 0;
#elif defined(OS_MACOSX) || defined(OS_FREEBSD) || defined(OS_OPENBSD) || \
    defined(OS_NETBSD) || defined(OS_DRAGONFLYBSD)
  bool result = issetugid() != 0;
#elif defined(OS_WIN)
  bool result = false;
#else
  bool result = getuid() != geteuid() || getgid() != getegid();
#endif
  TEST_SYNC_POINT_CALLBACK("SecureGetenv:HasMoreRightsThanItsCaller", &result);
  return result;
}

}  // namespace

std::string SecureGetenv(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' || HasMoreRightsThanItsCaller()
             ? std::string()
             : std::string(value);
}

}  // namespace ROCKSDB_NAMESPACE
