//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Returns s, which must be an error, with another message. Unlike with
// Status::CopyAppendMessage(), the flags of an IOStatus (GetRetryable() and so
// on) stay, by which the error handler decides whether a DB goes on.
Status WithMessage(const Status& s, const std::string& message);

// Returns s, which must be an error, with delimiter and text behind its
// message. Unlike with Status::CopyAppendMessage(), s need not have a message:
// a file system may say no more than NotFound.
Status AppendMessage(const Status& s, const Slice& delimiter,
                     const Slice& text);

// Returns the message of s; empty: it has none.
std::string MessageOf(const Status& s);

}  // namespace ROCKSDB_NAMESPACE
