//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The cost of bytes where they are, beside the cost of the same bytes on the
// dearest device: the formula of "Tiered key-value separation" (section 6.2.4),
//
//   cost = sum over the devices i of C(i) * P(i)
//
// C(i): the bytes on device i, in GiB; P(i): the price of a GiB there.
//
// Invariant: a device with a price counts as a candidate for the dearest one,
// whether or not it has bytes.
class PathCost {
 public:
  // Returns the cost of bytes.
  // price: that of a GiB.
  static double Of(uint64_t bytes, double price) {
    return static_cast<double>(bytes) / (uint64_t{1} << 30) * price;
  }

  // Adds bytes on a device.
  // REQUIRES: price is finite and not negative.
  void Add(uint64_t bytes, double price);

  uint64_t bytes() const { return bytes_; }
  double cost() const { return cost_; }
  // Returns the highest price; 0 if nothing was added.
  double dearest_price() const { return dearest_price_; }
  // Returns the position, in the order of Add(), of the first device with the
  // highest price.
  size_t dearest() const { return dearest_; }
  double CostOnDearest() const { return Of(bytes_, dearest_price_); }

  // Returns false if the ratio is undefined: nothing is stored, or all prices
  // are 0.
  bool HasRatio() const { return CostOnDearest() > 0; }
  // Returns cost() / CostOnDearest(), from 0 to 1.
  // REQUIRES: HasRatio()
  double Ratio() const { return cost_ / CostOnDearest(); }
  // Returns the ratio as text, "-" if it is undefined.
  std::string RatioText() const;

  // Returns the number with up to nine decimals.
  static std::string Text(double number);

 private:
  uint64_t bytes_ = 0;
  double cost_ = 0;
  double dearest_price_ = 0;
  size_t dearest_ = 0;
  size_t num_added_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
