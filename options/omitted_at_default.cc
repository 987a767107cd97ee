//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/omitted_at_default.h"

namespace ROCKSDB_NAMESPACE {

OptionTypeInfo OmittedAtDefault(size_t offset, OptionType type,
                                OptionTypeFlags flags,
                                const std::string& default_text) {
  OptionTypeInfo info(static_cast<int>(offset), type,
                      OptionVerificationType::kNormal, flags);
  info.SetSerializeFunc([type, default_text](const ConfigOptions& config_options,
                                             const std::string& name,
                                             const void* addr,
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

}  // namespace ROCKSDB_NAMESPACE
