// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Workloads that draw each operation from fixed proportions and its record
// from a distribution: YCSB's core workloads A to F, their variants with
// merges, read-modify-write by merge or by get and put, UP2X, random scans, and
// a user-defined mix.
//
//   name             operations                            records
//   ycsba            50 read, 50 update                    zipfian
//   ycsbb            95 read, 5 update                     zipfian
//   ycsbc            100 read                              zipfian
//   ycsbd            95 read, 5 insert                     latest
//   ycsbe            95 scan, 5 insert                     zipfian
//   ycsbf            50 read, 50 read-modify-write         zipfian
//   ycsbam bm fm     a, b, f with updates by Merge         zipfian
//   rmw              --rmw_read_ratio read, the rest       zipfian
//                    read-modify-write by --rmw_mode
//   up2x             7.46 read, 92.53 merge, 0.01 put      zipfian
//   randomscan       100 scan of --scan_length keys        uniform
//   scanwhilewriting the same, and one thread that puts    uniform
//                    whole values as fast as it can
//   ycsbmix          --ycsb_mix                            zipfian
//
// An update or a read-modify-write of A, B and F reads the record, replaces one
// field and puts it back, as YCSB's RocksDB binding does; they only differ in
// the kinds of operations as which they are measured. With
// --ycsb_write_all_fields an update puts a whole new value without reading.

#pragma once

#include <memory>
#include <string>

#include "tools/workloads/workload.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

std::unique_ptr<Workload> NewMixWorkload(const std::string& name,
                                         const WorkloadOptions& options);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
