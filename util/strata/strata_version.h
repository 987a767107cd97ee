//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

// The version of Strata. The version of RocksDB that it extends stays in
// rocksdb/version.h. GetRocksBuildProperties() reports this one under
// "strata_version"; upstream's library does not have that property.
// CONTRIBUTING.md says when it changes, and "make dist" names the tarballs
// after it.
#define STRATA_VERSION "0.1.0"
