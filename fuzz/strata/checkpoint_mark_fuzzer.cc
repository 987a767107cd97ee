//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Decodes arbitrary text as the mark of a directory of a checkpoint.
//
// The promise: a text that is no mark is Corruption. A mark that was decoded is
// the same after it was encoded and decoded again, and so is a mark whose parts
// have no line breaks.

#include <string>

#include "db/path_layout/checkpoint_mark.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;

void FuzzText(const std::string& text) {
  CheckpointMark mark;
  const Status s = mark.DecodeFrom(text);
  if (!s.ok()) {
    Require(s.IsCorruption());
    return;
  }
  Require(!mark.attempt.empty());
  CheckpointMark again;
  Require(again.DecodeFrom(mark.Encode()).ok());
  Require(again.attempt == mark.attempt);
  Require(again.directories == mark.directories);
  Require(again.files == mark.files);
}

void FuzzCheckpointMark(FuzzInput* input) {
  CheckpointMark mark;
  mark.attempt = input->String(20);
  for (int n = input->Byte() % 5; n > 0; --n) {
    mark.files.insert(input->String(20));
  }
  for (int n = input->Byte() % 3; n > 0; --n) {
    mark.directories.insert(input->String(20));
  }
  // Line breaks in the parts make a text with a valid checksum that has other
  // parts.
  const std::string text = mark.Encode();
  FuzzText(text);
  CheckpointMark same;
  bool is_plain =
      !mark.attempt.empty() && mark.attempt.find('\n') == std::string::npos;
  for (const std::string& file : mark.files) {
    is_plain = is_plain && file.find('\n') == std::string::npos &&
               file.rfind("directory ", 0) != 0;
  }
  for (const std::string& directory : mark.directories) {
    is_plain = is_plain && directory.find('\n') == std::string::npos;
  }
  if (is_plain) {
    Require(same.DecodeFrom(text).ok());
    Require(same.attempt == mark.attempt);
    Require(same.directories == mark.directories);
    Require(same.files == mark.files);
  }
  FuzzText(input->Rest());
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(checkpoint_mark, ROCKSDB_NAMESPACE::FuzzCheckpointMark)
