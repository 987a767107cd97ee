//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// The flags of a test program that is also a program of its own. A flag has the
// form --name=value, or --name, which has an empty value. Of two flags of a
// name the last one counts. Other arguments are ignored.
//
// Not thread-safe.
class TestFlags {
 public:
  TestFlags(int argc, char** argv);

  bool Has(const std::string& name) const { return flags_.count(name) != 0; }
  // The value of the flag; `otherwise` if the flag was not given.
  std::string Text(const std::string& name, const std::string& otherwise) const;
  double Number(const std::string& name, double otherwise) const;
  uint64_t Integer(const std::string& name, uint64_t otherwise) const;

 private:
  std::map<std::string, std::string> flags_;
};

}  // namespace ROCKSDB_NAMESPACE
