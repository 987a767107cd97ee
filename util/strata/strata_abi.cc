//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "rocksdb/strata_abi.h"

#if defined(__GNUC__) && !defined(_WIN32)

extern "C" {
// Object files refer to the address; the value is not used.
const char STRATA_ABI_SYMBOL = 0;
}

#endif
