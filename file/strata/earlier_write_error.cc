//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/earlier_write_error.h"

#include <string_view>

namespace ROCKSDB_NAMESPACE {

bool IsEarlierWriteError(const IOStatus& s) {
  const char* const message = s.getState();
  // The message is that of GetWriterHasPreviousErrorStatus(), also with an
  // error that a test has injected.
  return s.IsIOError() && message != nullptr &&
         std::string_view(message).starts_with("Writer has previous ");
}

}  // namespace ROCKSDB_NAMESPACE
