//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "db/delta/delta_folder.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// Holds the operands and anchors of keys until it is known which of the keys
// are to be folded.
//
// A fold writes the whole value of a key, however many bytes of operands go
// into it. So keys with few bytes of operands are best left, as long as the
// other keys make enough room.
//
// Sizes are those of DeltaGcJob: the key and value of each operand.
//
// Not thread-safe.
class DeltaFoldQueue {
 public:
  class Key {
   public:
    size_t num_operands() const { return num_operands_; }
    bool has_anchors() const { return num_anchors_ > 0; }
    uint64_t bytes() const { return bytes_; }
    bool is_chosen() const { return is_chosen_; }

   private:
    friend class DeltaFoldQueue;

    size_t begin_ = 0;  // in data_
    size_t size_ = 0;
    size_t first_operand_ = 0;
    size_t num_operands_ = 0;
    size_t first_anchor_ = 0;
    size_t num_anchors_ = 0;
    uint64_t bytes_ = 0;
    bool is_chosen_ = false;
  };

  // Adds an operand of the last key, or of a new key.
  // REQUIRES: keys come in order, operands of a key newest first.
  void AddOperand(const Slice& user_key, SequenceNumber seq,
                  const Slice& value);
  // Adds an anchor of the last key.
  void AddAnchor(SequenceNumber seq);

  bool empty() const { return keys_.empty(); }
  const std::vector<Key>& keys() const { return keys_; }
  // REQUIRES: not empty.
  Slice LastKey() const { return UserKey(keys_.back()); }

  // Returns the memory usage in bytes.
  size_t Memory() const {
    return data_.size() + keys_.size() * sizeof(Key) +
           operands_.size() * sizeof(Operand) +
           anchors_.size() * sizeof(SequenceNumber);
  }
  // Returns the bytes of the operands of keys that are not chosen.
  uint64_t BytesLeft() const { return bytes_left_; }

  // Chooses all keys, whether a folder may consume their operands or not.
  void ChooseAll();
  // The following functions choose only keys whose operands a folder may
  // consume: keys that have no anchors and whose newest operand is not above
  // earliest_snapshot.
  //
  // Chooses keys with at least that many operands, or at least that many bytes.
  void ChooseFrom(size_t num_operands, uint64_t bytes,
                  SequenceNumber earliest_snapshot);
  // Chooses keys for which fn(user key) is true.
  template <typename Fn>
  void ChooseIf(Fn fn, SequenceNumber earliest_snapshot) {
    for (Key& key : keys_) {
      if (MayChoose(key, earliest_snapshot) && fn(UserKey(key))) {
        Choose(&key);
      }
    }
  }
  // Chooses the keys with the most bytes, until at most max_left bytes are left
  // or no other key may be chosen.
  void ChooseLargest(uint64_t max_left, SequenceNumber earliest_snapshot);

  // Returns the key; like the following results, it is valid until Add...() or
  // Clear() is called.
  Slice UserKey(const Key& key) const {
    return Slice(data_.data() + key.begin_, key.size_);
  }
  void GetOperands(const Key& key,
                   std::vector<DeltaFolder::Operand>* operands) const;
  // Returns the key's anchors, newest first, and sets *num to their number.
  const SequenceNumber* Anchors(const Key& key, size_t* num) const {
    *num = key.num_anchors_;
    return anchors_.data() + key.first_anchor_;
  }

  void Clear();

 private:
  struct Operand {
    SequenceNumber seq = 0;
    size_t begin = 0;  // in data_
    size_t size = 0;
  };

  bool MayChoose(const Key& key, SequenceNumber earliest_snapshot) const {
    return !key.is_chosen_ && key.num_anchors_ == 0 &&
           operands_[key.first_operand_].seq <= earliest_snapshot;
  }
  void Choose(Key* key);

  // Concatenated keys, each followed by the values of its operands.
  std::string data_;
  std::vector<Key> keys_;
  std::vector<Operand> operands_;
  std::vector<SequenceNumber> anchors_;
  uint64_t bytes_left_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
