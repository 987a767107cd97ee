//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/test_flags_test_util.h"

#include <cstdlib>

namespace ROCKSDB_NAMESPACE {

TestFlags::TestFlags(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.starts_with("--")) {
      const size_t equals = arg.find('=');
      flags_[arg.substr(2, equals == std::string::npos ? equals : equals - 2)] =
          equals == std::string::npos ? "" : arg.substr(equals + 1);
    }
  }
}

std::string TestFlags::Text(const std::string& name,
                            const std::string& otherwise) const {
  const auto it = flags_.find(name);
  return it == flags_.end() ? otherwise : it->second;
}

double TestFlags::Number(const std::string& name, double otherwise) const {
  const auto it = flags_.find(name);
  return it == flags_.end() ? otherwise
                            : std::strtod(it->second.c_str(), nullptr);
}

uint64_t TestFlags::Integer(const std::string& name, uint64_t otherwise) const {
  const auto it = flags_.find(name);
  return it == flags_.end() ? otherwise
                            : std::strtoull(it->second.c_str(), nullptr, 10);
}

}  // namespace ROCKSDB_NAMESPACE
