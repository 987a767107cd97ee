// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// A benchmark of db_bench in a separate source file.
//
// db_bench's classes and flags are private to its source file, so a workload
// uses them through WorkloadHost, one per thread. db_bench looks up an unknown
// name here, runs Prepare once, Run on each of its threads, and Finish once.
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

// The kinds of operations whose latencies are reported separately. Tables are
// in this order.
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

// Returns the name in reports: "read", "insert", "update", "merge", "rmw",
// "scan", "delete", "deleterange", "op".
const char* OpName(Op op);

// The interface of db_bench for a workload on one of its threads. Not shared
// between threads.
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

  // Returns the seed of this thread's generators. Threads have different seeds,
  // which are the same in each run with the same --seed.
  virtual uint64_t seed() const = 0;

  // Returns true if the thread has reached --num or --duration, or another
  // thread failed. To be called before each operation.
  virtual bool Done() = 0;

  // Returns true if another thread failed. To be called instead of Done() by a
  // workload that determines the number of operations itself, such as a load,
  // which has one operation per record regardless of --num and --duration.
  virtual bool Failed() = 0;

  // Waits to respect --benchmark_write_rate_limit (amount: bytes) or
  // --benchmark_read_rate_limit (amount: operations). To be called before
  // Begin.
  virtual void Throttle(bool write, uint64_t amount) = 0;

  // Begin and End enclose the part of an operation whose time is measured.
  // Begin is called after key and value were made. bytes: bytes of the keys and
  // values that were read or written.
  virtual void Begin() = 0;
  virtual void End(Op op, uint64_t bytes) = 0;

  // Ends the benchmark on all threads; db_bench then exits with an error. The
  // caller returns from Run after it.
  virtual void Fail(const Status& status, const std::string& what) = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;

  // Returns true if the workload starts on an empty database: db_bench destroys
  // the old one, or skips the benchmark if --use_existing_db is set.
  virtual bool fresh_db() const { return false; }

  // Returns true if the workload writes operands of the FieldUpdate merge
  // operator.
  virtual bool merges() const { return false; }

  // Checks the flags against the open database before the threads start.
  // Errors name the flag.
  virtual Status Prepare(DB* /*db*/, int /*threads*/) { return Status::OK(); }

  virtual void Run(WorkloadHost* host) = 0;

  // Called after all threads are done. db_bench exits with the error, if any.
  virtual Status Finish() { return Status::OK(); }

  // Returns text for the end of the result line.
  virtual std::string Message() const { return ""; }

  // Returns the bytes of all keys and values that a reader could see, 0 if not
  // known. The size of the database is compared with it.
  virtual uint64_t LogicalBytes() const { return 0; }
};

// Returns a new workload; nullptr if no workload has that name.
std::unique_ptr<Workload> NewWorkload(const std::string& name,
                                      const WorkloadOptions& options);

// Returns true if the workload of that name writes merge operands.
bool NeedsMergeOperator(const std::string& name,
                        const WorkloadOptions& options);

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE
