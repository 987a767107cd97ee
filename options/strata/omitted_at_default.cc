//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/omitted_at_default.h"

#include <cstdio>
#include <cstdlib>

namespace ROCKSDB_NAMESPACE {

OptionTypeInfo OmittedAtDefault(size_t offset, OptionType type,
                                OptionTypeFlags flags,
                                const std::string& default_text) {
  OptionTypeInfo info(static_cast<int>(offset), type,
                      OptionVerificationType::kNormal, flags);
  info.SetSerializeFunc([type, default_text](
                            const ConfigOptions& config_options,
                            const std::string& name, const void* addr,
                            std::string* value) {
    const Status s =
        OptionTypeInfo(0, type).Serialize(config_options, name, addr, value);
    if (s.ok() && *value == default_text) {
      value->clear();
    }
    return s;
  });
  info.SetParseFunc([type, default_text](const ConfigOptions& config_options,
                                         const std::string& name,
                                         const std::string& value, void* addr) {
    return OptionTypeInfo(0, type).Parse(
        config_options, name, value.empty() ? default_text : value, addr);
  });
  return info;
}

OptionTypeInfo DoubleOmittedAtDefault(size_t offset, OptionTypeFlags flags,
                                      double default_value) {
  OptionTypeInfo info(static_cast<int>(offset), OptionType::kDouble,
                      OptionVerificationType::kNormal, flags);
  info.SetSerializeFunc([default_value](const ConfigOptions&,
                                        const std::string&, const void* addr,
                                        std::string* value) {
    const double number = *static_cast<const double*>(addr);
    *value = number == default_value ? "" : ShortestDouble(number);
    return Status::OK();
  });
  info.SetParseFunc([default_value](const ConfigOptions& config_options,
                                    const std::string& name,
                                    const std::string& value, void* addr) {
    if (value.empty()) {
      *static_cast<double*>(addr) = default_value;
      return Status::OK();
    }
    return OptionTypeInfo(0, OptionType::kDouble)
        .Parse(config_options, name, value, addr);
  });
  return info;
}

std::string ShortestDouble(double number) {
  char text[32];
  for (int digits = 6; digits <= 17; ++digits) {
    snprintf(text, sizeof(text), "%.*g", digits, number);
    if (std::strtod(text, nullptr) == number) {
      break;
    }
  }
  return text;
}

}  // namespace ROCKSDB_NAMESPACE
