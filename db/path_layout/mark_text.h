//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The form of small text files that say what is in progress, so that it can be
// finished or undone after a crash: a title, lines, and the crc32c of all of
// these as the last line.

// Returns the contents of the file.
// title: a line without its line break.
// lines: lines without line breaks.
std::string EncodeMark(const std::string& title,
                       const std::vector<std::string>& lines);

// Sets *lines to the lines without the title and the checksum. Returns
// Corruption if the text does not begin with the title, or is not complete.
// what: what the text should be, for the message.
Status DecodeMark(const std::string& text, const std::string& title,
                  const std::string& what, std::vector<std::string>* lines);

}  // namespace ROCKSDB_NAMESPACE
