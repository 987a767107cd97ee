//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "util/strata/status_message.h"

#include <cassert>

#include "rocksdb/io_status.h"

namespace ROCKSDB_NAMESPACE {

Status WithMessage(const Status& s, const std::string& message) {
  assert(!s.ok());
  const IOStatus before = status_to_io_status(Status(s));
  IOStatus after =
      status_to_io_status(Status(s.code(), s.subcode(), s.severity(), message));
  after.SetRetryable(before.GetRetryable());
  after.SetDataLoss(before.GetDataLoss());
  after.SetScope(before.GetScope());
  before.PermitUncheckedError();
  return Status(after, s.severity());
}

Status AppendMessage(const Status& s, const Slice& delimiter,
                     const Slice& text) {
  assert(!s.ok());
  return WithMessage(s, MessageOf(s) + delimiter.ToString() + text.ToString());
}

std::string MessageOf(const Status& s) {
  const char* const message = s.getState();
  return message == nullptr ? "" : message;
}

}  // namespace ROCKSDB_NAMESPACE
