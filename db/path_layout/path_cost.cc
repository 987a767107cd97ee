//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_cost.h"

#include <cassert>
#include <cmath>
#include <iomanip>
#include <locale>
#include <sstream>

namespace ROCKSDB_NAMESPACE {

void PathCost::Add(uint64_t bytes, double price) {
  assert(std::isfinite(price) && price >= 0);
  bytes_ += bytes;
  cost_ += Of(bytes, price);
  if (price > dearest_price_) {
    dearest_price_ = price;
    dearest_ = num_added_;
  }
  ++num_added_;
}

std::string PathCost::RatioText() const {
  return HasRatio() ? Text(Ratio()) : "-";
}

std::string PathCost::Text(double number) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << std::fixed << std::setprecision(9) << number;
  std::string text = out.str();
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') {
      text.pop_back();
    }
  }
  return text;
}

}  // namespace ROCKSDB_NAMESPACE
