// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// A benchmark of db_bench that lives in a file of its own.
//
// db_bench's classes and flags are private to its source file, so a workload
// sees it through WorkloadHost, one per thread. db_bench looks a name up here
// before it calls it unknown, runs Prepare once, Run on each of its threads,
// and Finish once.
//
// Thread safety: Prepare, Finish and LogicalBytes run alone. Run is called by
// all threads at once; what they share must be safe for that.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "tools/workloads/workload_options.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// The kinds of operations whose latencies are reported apart. Tables go by
// this order.
enum class Op : unsigned char {
  kRead,
  kInsert,
  kUpdate,
  kMerge,
  kReadModifyWrite,
  kScan,
  kDelete,
  kDeleteRange,
  kOther,
};
constexpr size_t kNumOps = static_cast<size_t>(Op::kOther) + 1;

// The name in reports: "read", "insert", "update", "merge", "rmw", "scan",
// "delete", "deleterange", "op".
const char* OpName(Op op);

// What db_bench gives to a workload on one of its threads. Not shared between
// threads.
class WorkloadHost {
 public:
  virtual ~WorkloadHost() = default;

  virtual DB* db() = 0;
  virtual ColumnFamilyHandle* column_family() = 0;
  virtual const ReadOptions& read_options() const = 0;
  virtual const WriteOptions& write_options() const = 0;

  // This thread's number, from 0, and how many threads there are.
  virtual int thread() const = 0;
  virtual int threads() const = 0;

  // The seed of this thread's generators. Two threads have different ones; a
  // run with the same --seed has the same ones.
  virtual uint64_t seed() const = 0;

  // True when the thread has done what --num or --duration ask for, or another
  // thread failed. Call it before each operation.
  virtual bool Done() = 0;

  // The same with the number of operations given by the workload, as a load
  // has one operation per record whatever --num and --duration say.
  virtual bool Failed() = 0;

  // Waits as --benchmark_write_rate_limit (bytes) or
  // --benchmark_read_rate_limit (operations) ask. Call it before Begin.
  virtual void Throttle(bool write, uint64_t amount) = 0;

  // Brackets the part of an operation whose time counts: Begin after key and
  // value are made, End with the bytes of keys and values that it moved.
  virtual void Begin() = 0;
  virtual void End(Op op, uint64_t bytes) = 0;

  // Ends the benchmark on all threads; db_bench then exits with an error.
  // Return from Run after it.
  virtual void Fail(const Status& status, const std::string& what) = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;

  // Whether it starts on an empty database: db_bench destroys the old one,
  // or skips the benchmark if --use_existing_db is set.
  virtual bool fresh_db() const { return false; }

  // Whether it writes operands of the FieldUpdate merge operator.
  virtual bool merges() const { return false; }

  // Checks the flags against the open database before the threads start.
  // Errors name the flag.
  virtual Status Prepare(DB* /*db*/, int /*threads*/) { return Status::OK(); }

  virtual void Run(WorkloadHost* host) = 0;

  // After all threads are done; an error makes db_bench exit with it.
  virtual Status Finish() { return Status::OK(); }

  // Text at the end of the result line.
  virtual std::string Message() const { return ""; }

  // Bytes of the keys and values that a reader could see, 0 if it is not
  // known: what the size of the database is compared to.
  virtual uint64_t LogicalBytes() const { return 0; }
};

// nullptr if no workload has that name.
std::unique_ptr<Workload> NewWorkload(const std::string& name,
                                      const WorkloadOptions& options);

// Whether the workload of that name writes merge operands.
bool NeedsMergeOperator(const std::string& name,
                        const WorkloadOptions& options);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
