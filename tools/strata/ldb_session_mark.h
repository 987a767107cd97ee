//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/listener.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// A listener that does nothing but has a name. Each OPTIONS file names the
// listeners, so it shows whether the tool has written the file itself.
//
// Invariant: no other object has the name, in any process.
//
// Thread-safe.
class LdbSessionMark : public EventListener {
 public:
  LdbSessionMark();

  const char* Name() const override { return name_.c_str(); }

  // Returns true if the text of an OPTIONS file was written by a database that
  // was opened with this listener.
  bool IsIn(const std::string& text) const {
    return text.find(name_) != std::string::npos;
  }

 private:
  const std::string name_;
};

}  // namespace ROCKSDB_NAMESPACE
