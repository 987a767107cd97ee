//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/wide_columns.h"

namespace ROCKSDB_NAMESPACE {

// A model of the contents of a DB: the sequence of all writes, which is
// replayed to compute the contents at any point. Slow and simple on purpose.
//
// Not thread-safe.
class HistoryModel {
 public:
  // A plain value is a single column with an empty name.
  using Columns = std::map<std::string, std::string>;
  using Contents = std::map<std::string, Columns>;
  // The contents of each column family.
  using AllContents = std::map<std::string, Contents>;

  enum class OpKind { kPut, kMerge, kDelete, kDeleteRange };

  // What a merge operator of RocksDB does with a value and an operand.
  enum class MergeKind {
    kAppend,  // "stringappend": they are joined with a comma
    kMax,     // "max": the larger one stays
    kLast,    // "put": the operand stays
  };

  struct Op {
    OpKind kind = OpKind::kPut;
    std::string cf;
    std::string key;
    // kDeleteRange: the exclusive end.
    std::string end;
    // kMerge: the operand, in the default column.
    Columns columns;
  };

  // Operations that take effect together.
  struct Write {
    std::vector<Op> ops;
    // The write is durable, regardless of the writes before it.
    bool is_durable = false;
    // The write failed. It is not visible, but may be after recovery.
    bool has_failed = false;
  };

  // merge_operator: RocksDB's name of it; empty for "stringappend".
  // REQUIRES: the operator is one of those of MergeKind
  void CreateFamily(const std::string& cf,
                    const std::string& merge_operator = "");
  void DropFamily(const std::string& cf);

  void Append(Write write) { writes_.push_back(std::move(write)); }

  // Returns the position of the contents that a reader sees at this moment.
  size_t Position() const { return writes_.size(); }

  Contents At(const std::string& cf, size_t position) const;
  Contents Now(const std::string& cf) const { return At(cf, Position()); }

  // Applies operations of one family to its contents. The operations of a
  // transaction that is not committed are an example.
  void ApplyTo(const std::vector<Op>& ops, const std::string& cf,
               Contents* contents) const;

  // Returns the value of these operands, the oldest first.
  // REQUIRES: !operands.empty()
  std::string Merged(const std::string& cf,
                     const std::vector<std::string>& operands) const;

  // Returns false if there is no MergeKind for RocksDB's name.
  static bool ParseMergeKind(const std::string& merge_operator,
                             MergeKind* kind);

  // Returns the columns of a value that the DB has returned.
  static Columns FromWideColumns(const WideColumns& wide);
  // Returns the value that Get() and Iterator::value() must return.
  static std::string DefaultColumn(const Columns& columns);
  // Removes the keys that are not from `from` to `to`, which is exclusive.
  static void Clip(const std::string& from, const std::string& to,
                   Contents* contents);

  // Marks a range of keys, `to` included, at this position: the contents at
  // earlier positions are unknown, which they are after DeleteFilesInRange().
  // The values are also unknown after a crash that may have taken writes to the
  // range from before: what was below them may be gone.
  void Blur(const std::string& cf, const std::string& from,
            const std::string& to);
  // Marks a range of keys, `to` included: their values are unknown from now on,
  // and at all earlier positions.
  void Doubt(const std::string& cf, const std::string& from,
             const std::string& to);
  // The same for all keys of a family.
  void DoubtFamily(const std::string& cf) { doubtful_families_.insert(cf); }
  // Returns true if the value of the key at this position is unknown.
  bool IsBlurred(const std::string& cf, const std::string& key,
                 size_t position) const;
  // Returns true if a key of the family may be blurred at this position.
  bool HasBlurred(const std::string& cf, size_t position) const;
  // Removes the keys whose values at this position are unknown.
  void RemoveBlurred(const std::string& cf, size_t position,
                     Contents* contents) const;

  // Returns all keys that were ever written, except by range deletions.
  std::set<std::string> Keys(const std::string& cf) const;

  // Returns true if the columns consist of things that were written to the key,
  // whether or not these writes have failed or survive: each value, and each
  // operand in it. This holds for all contents that a DB without some of the
  // writes has. It cannot be said of a family if one of its name was dropped.
  bool CouldHave(const std::string& cf, const std::string& key,
                 const Columns& columns) const;

  // Returns true if one of the writes is a merge of the key.
  bool HasMerge(const std::string& cf, const std::string& key) const;

  // Returns true if a write at or behind the position is to a key in the range,
  // `to` included. A write that failed counts, and a range deletion that ends
  // at `from`.
  bool IsWrittenSince(size_t position, const std::string& cf,
                      const std::string& from, const std::string& to) const;

  // Marks all writes so far as durable: they survive a crash.
  void MarkDurable() { durable_ = writes_.size(); }
  // Returns the number of writes, the first ones, that are durable.
  size_t NumDurable() const { return durable_; }

  // Returns true if a crash may take a write to a key in the range, `to`
  // included.
  bool MayLoseWrites(const std::string& cf, const std::string& from,
                     const std::string& to) const {
    return IsWrittenSince(durable_, cf, from, to);
  }

  // Checks the contents `found` after recovery. They are correct if they are
  // the contents after the first n writes. After a crash, n is at least the
  // number of durable writes and at most that of all; without a crash
  // (`is_crash` false) it is that of all. Any of the writes that failed may be
  // included; if there are more than kMaxFailed of them, the first ones of
  // these. Doubtful keys are not compared.
  // Returns true, and sets the model to this history, if they are correct. No
  // key is blurred afterwards.
  // is_flushed: the recovery has flushed what it has read from the WAL, so all
  // of it is durable. After a crash that is so in any case.
  bool Recover(const AllContents& found, bool is_crash, bool is_flushed = true);

 private:
  // Recover() tries all subsets of so many failed writes.
  static constexpr size_t kMaxFailed = 4;

  struct BlurredRange {
    std::string cf;
    std::string from;
    std::string to;  // inclusive
    size_t position;
  };

  // Returns true if the write has an operation on a key of the family in the
  // range, `to` included.
  static bool Touches(const Write& write, const std::string& cf,
                      const std::string& from, const std::string& to);
  void Apply(const Op& op, Contents* contents) const;
  void ApplyOperand(const std::string& cf, const std::string& operand,
                    std::string* value) const;
  AllContents Replay(const std::vector<Write>& writes) const;
  bool IsDoubtful(const std::string& cf, const std::string& key) const;
  // Returns true if a crash may take a write to the blurred range that was made
  // before its position.
  bool MayLoseWritesBelow(const BlurredRange& range) const;
  void RemoveDoubtful(AllContents* all) const;
  // Returns the sets of failed writes that may have survived, among the first n
  // writes and the durable ones: their positions.
  std::vector<std::set<size_t>> FailedSurvivors(size_t n) const;

  std::vector<Write> writes_;
  AllContents families_;  // the existing families, with empty contents
  std::map<std::string, MergeKind> merge_kinds_;
  size_t durable_ = 0;
  std::vector<BlurredRange> blurred_;
  std::vector<BlurredRange> doubtful_;  // position is not used
  std::set<std::string> doubtful_families_;
  std::set<std::string> dropped_families_;
};

}  // namespace ROCKSDB_NAMESPACE
