//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/dbformat.h"
#include "rocksdb/comparator.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

// The input of the flush of a memtable that a repair has read a WAL into, so
// that merge operands that were flushed before do not count twice.
//
// An operand is known if delta files have it or have an anchor that hides it.
// Delta files and SST files together then have its effect, so the filter leaves
// it out. Other operands become new ones of delta files.
//
// This is wrong if WALs also have what the operand is based on. The flush
// writes that base with its sequence number again. There it hides the value
// that was made of both if a compaction has set that value's sequence number to
// zero, or if the new SST file counts as the newer one. So all operands above a
// base are replaced by the value that is made of them. A range deletion is a
// base like a deletion; RepairTableOrder ensures that no other SST file with
// the range deletion hides the value.
//
// Invariant: The output has no known operand, and no operand above a base that
// the merge operator can merge with it.
//
// Only moves forward, which is all that a flush needs. Not thread-safe.
class KnownOperandFilter : public InternalIterator {
 public:
  // The newest entry of a key that is no merge operand, or the newest range
  // deletion that covers the key (kTypeRangeDeletion).
  struct Base {
    SequenceNumber seq = 0;
    ValueType type = kTypeRangeDeletion;
    std::string value;
  };

  // Tells what other files have of a key.
  class Source {
   public:
    virtual ~Source() = default;
    // Sets *seq so that all operands of the key up to *seq are known; 0 if none
    // is.
    virtual Status NewestKnown(const Slice& user_key, SequenceNumber* seq) = 0;
    // Sets *found and *base to what earlier WALs, and the range deletions of
    // this one, have of the key.
    virtual Status FindBase(const Slice& user_key, Base* base, bool* found) = 0;
    // Merges the operands with the base. Sets *merged to false if the merge
    // operator cannot.
    // operands: the oldest one first.
    virtual Status Merge(const Slice& user_key, const Base& base,
                         const std::vector<Slice>& operands, std::string* value,
                         ValueType* type, bool* merged) = 0;
  };

  // ucmp: compares user keys.
  // input: iterator over the memtable, whose keys have no timestamps.
  // REQUIRES: ucmp and input outlive this object.
  KnownOperandFilter(std::unique_ptr<Source> source, const Comparator* ucmp,
                     InternalIterator* input)
      : source_(std::move(source)), ucmp_(ucmp), input_(input) {}

  bool Valid() const override { return status_.ok() && input_->Valid(); }
  void SeekToFirst() override;
  void Seek(const Slice& target) override;
  void Next() override;
  void SeekToLast() override { Refuse(); }
  void SeekForPrev(const Slice& /*target*/) override { Refuse(); }
  void Prev() override { Refuse(); }
  Slice key() const override {
    return at_merged_ ? Slice(merged_key_) : input_->key();
  }
  Slice value() const override {
    return at_merged_ ? Slice(merged_) : input_->value();
  }
  bool PrepareValue() override { return at_merged_ || input_->PrepareValue(); }
  uint64_t write_unix_time() const override {
    return input_->write_unix_time();
  }
  Status status() const override {
    return status_.ok() ? input_->status() : status_;
  }
  void SetPinnedItersMgr(PinnedIteratorsManager* manager) override {
    input_->SetPinnedItersMgr(manager);
  }
  bool IsKeyPinned() const override {
    return !at_merged_ && input_->IsKeyPinned();
  }
  bool IsValuePinned() const override {
    return !at_merged_ && input_->IsValuePinned();
  }
  Status GetProperty(std::string name, std::string* value) override {
    return input_->GetProperty(std::move(name), value);
  }

 private:
  void Restart();
  void Refuse();
  // Moves to the next entry of the output, which may be the current one.
  void Settle();
  // Decides what becomes of the operands of the key at which input_ is. Leaves
  // input_ where it is.
  // is_top: false if a newer entry of the key is no operand.
  Status Decide(bool is_top);
  // operands: those above the newest other entry of the memtable, the newest
  // one first.
  // base: that entry; its sequence number is 0 if there is none.
  Status MergeWithBase(
      const std::vector<std::pair<SequenceNumber, std::string>>& operands,
      const Base& base);

  const std::unique_ptr<Source> source_;
  const Comparator* const ucmp_;
  InternalIterator* const input_;
  Status status_;

  // The key of the last entry.
  bool has_key_ = false;
  std::string key_;
  bool starts_with_operand_ = false;
  bool is_decided_ = false;
  SequenceNumber newest_known_ = 0;
  // The operand in whose place the merged value is output; 0: none.
  SequenceNumber replaced_ = 0;
  bool at_merged_ = false;
  std::string merged_key_;
  std::string merged_;
};

}  // namespace ROCKSDB_NAMESPACE
