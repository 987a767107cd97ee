//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/path_prices.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "options/strata/omitted_at_default.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Prices = std::vector<double>;

constexpr const char* kPriceBlanks = " \t\r\n";

bool IsPrice(double price) { return std::isfinite(price) && price >= 0; }

// Returns the text without blanks at its ends.
std::string Strip(const std::string& text) {
  const size_t begin = text.find_first_not_of(kPriceBlanks);
  return begin == std::string::npos
             ? ""
             : text.substr(begin,
                           text.find_last_not_of(kPriceBlanks) - begin + 1);
}

bool ParsePrice(const std::string& text, double* price) {
  // Hexadecimal numbers and names such as "inf", which strtod() accepts, have
  // other characters.
  if (text.empty() ||
      text.find_first_not_of("0123456789+-.eE") != std::string::npos) {
    return false;
  }
  char* end = nullptr;
  *price = strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() && IsPrice(*price);
}

// The functions of PathPricesTypeInfo(). They have names for the reason that
// those of PathIdsTypeInfo() have.

Status ParsePricesOption(const ConfigOptions&, const std::string& name,
                         const std::string& value, void* addr) {
  const Status s = ParsePathPrices(OptionTypeInfo::StripOuterBraces(value),
                                   static_cast<Prices*>(addr));
  return s.ok() ? s : Status::InvalidArgument(name, s.getState());
}

Status SerializePricesOption(const ConfigOptions&, const std::string&,
                             const void* addr, std::string* value) {
  *value = PathPricesToString(*static_cast<const Prices*>(addr));
  return Status::OK();
}

bool EqualPricesOptions(const ConfigOptions&, const std::string& name,
                        const void* addr1, const void* addr2,
                        std::string* mismatch) {
  const bool equal =
      *static_cast<const Prices*>(addr1) == *static_cast<const Prices*>(addr2);
  if (!equal) {
    *mismatch = name;
  }
  return equal;
}

}  // namespace

Status ParsePathPrices(const std::string& text, std::vector<double>* prices) {
  Prices result;
  size_t begin = 0;
  while (!Strip(text).empty() && begin != std::string::npos) {
    const size_t end = text.find_first_of(",:", begin);
    const std::string item = Strip(text.substr(
        begin, end == std::string::npos ? std::string::npos : end - begin));
    double price = 0;
    if (!ParsePrice(item, &price)) {
      return Status::InvalidArgument("'" + item + "' in '" + text +
                                     "' is not a price: it must be a number, "
                                     "0 or more");
    }
    result.push_back(price);
    begin = end == std::string::npos ? end : end + 1;
  }
  *prices = std::move(result);
  return Status::OK();
}

std::string PathPricesToString(const std::vector<double>& prices) {
  std::string text;
  for (const double price : prices) {
    if (!text.empty()) {
      text.push_back(':');
    }
    text += ShortestDouble(price);
  }
  return text;
}

Status CheckPathPrices(const std::string& name,
                       const std::vector<double>& prices, size_t num_paths) {
  if (prices.empty()) {
    return Status::OK();
  }
  for (size_t i = 0; i < prices.size(); ++i) {
    if (!IsPrice(prices[i])) {
      return Status::InvalidArgument(
          name + ": the price of path " + std::to_string(i) + " is " +
          ShortestDouble(prices[i]) + ", but must be a number, 0 or more");
    }
  }
  if (prices.size() != num_paths) {
    return Status::InvalidArgument(
        name + " must have one price for each path, or none: it has " +
        std::to_string(prices.size()) + ", but cf_paths (or db_paths) has " +
        std::to_string(num_paths));
  }
  return Status::OK();
}

Status ApplyPathPricesFlag(const std::string& text,
                           ColumnFamilyOptions* options) {
  Prices prices;
  const Status s = ParsePathPrices(text, &prices);
  if (!s.ok()) {
    return Status::InvalidArgument("--path_prices", s.getState());
  }
  if (!prices.empty()) {
    options->path_prices = std::move(prices);
  }
  return s;
}

OptionTypeInfo PathPricesTypeInfo(size_t offset) {
  OptionTypeInfo info(static_cast<int>(offset), OptionType::kVector,
                      OptionVerificationType::kNormal,
                      OptionTypeFlags::kMutable);
  info.SetParseFunc(ParsePricesOption);
  info.SetSerializeFunc(SerializePricesOption);
  info.SetEqualsFunc(EqualPricesOptions);
  return info;
}

}  // namespace ROCKSDB_NAMESPACE
