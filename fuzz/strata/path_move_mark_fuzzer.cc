//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Decodes arbitrary text as the mark of a move of paths.
//
// The promise: a text that is no mark is Corruption. A mark that was decoded is
// the same after it was encoded and decoded again, and so is a mark whose parts
// have no line breaks.

#include <string>

#include "db/path_layout/path_move_mark.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;

void RequireSame(const PathMoveMark& a, const PathMoveMark& b) {
  Require(a.moves.size() == b.moves.size());
  for (size_t i = 0; i < a.moves.size(); ++i) {
    Require(a.moves[i].request.from == b.moves[i].request.from);
    Require(a.moves[i].request.to == b.moves[i].request.to);
    Require(a.moves[i].files == b.moves[i].files);
  }
}

void FuzzText(const std::string& text) {
  PathMoveMark mark;
  const Status s = mark.DecodeFrom(text);
  if (!s.ok()) {
    Require(s.IsCorruption());
    return;
  }
  Require(!mark.moves.empty());
  PathMoveMark again;
  Require(again.DecodeFrom(mark.Encode()).ok());
  RequireSame(again, mark);
}

void FuzzPathMoveMark(FuzzInput* input) {
  PathMoveMark mark;
  bool is_plain = true;
  const auto text = [&] {
    std::string result = input->String(20);
    is_plain = is_plain && result.find('\n') == std::string::npos;
    return result;
  };
  for (int n = 1 + input->Byte() % 3; n > 0; --n) {
    PathMoveMark::Move& move = mark.moves.emplace_back();
    move.request.from = text();
    move.request.to = text();
    for (int files = input->Byte() % 5; files > 0; --files) {
      const std::string name = text();
      // A name of a file has no space, and is not empty.
      is_plain = is_plain && !name.empty() &&
                 name.find(' ') == std::string::npos && name != "from";
      move.files[name] = input->Byte();
    }
  }
  // Line breaks in the parts make a text with a valid checksum that has other
  // parts.
  const std::string encoded = mark.Encode();
  FuzzText(encoded);
  if (is_plain) {
    PathMoveMark same;
    Require(same.DecodeFrom(encoded).ok());
    RequireSame(same, mark);
  }
  FuzzText(input->Rest());
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(path_move_mark, ROCKSDB_NAMESPACE::FuzzPathMoveMark)
