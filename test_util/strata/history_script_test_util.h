//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "test_util/strata/history_options_test_util.h"

namespace ROCKSDB_NAMESPACE {

// One step of a history script.
struct HistoryCommand {
  int line = 0;
  std::vector<std::string> words;
};

// Some commands and their expected output.
struct HistoryBlock {
  std::vector<HistoryCommand> commands;
  // Each line ends with '\n'.
  std::string expected;
  // The text before the "----" as it is in the file, comments included.
  std::string head;
  int expected_line = 0;
};

// A history script: a text file of blocks such as
//
//   # comment
//   open paths=2 layout=horizontal
//   put a 1
//   get a
//   ----
//   1
//
// A block is a list of commands, one per line, a line "----", and the expected
// output up to the next empty line. Output that contains empty lines is
// enclosed by two pairs of lines "----". A block whose commands print nothing
// has the output "ok". HistoryInterpreter defines the commands; see
// docs/history-scripts.md.
//
// A line "variants: none" or "variants: name..." before the first block
// specifies the option variants with which the script runs in addition to its
// own options; the default is all. A line "overrides: option=value..." adds one
// variant with these options; behind a "|" stand those for the next time that
// the DB is opened, and so on, see HistoryVariant.
class HistoryScript {
 public:
  // `name` is used in error messages, which all start with "name:line: ".
  static Status Parse(const std::string& name, const std::string& text,
                      HistoryScript* script);

  const std::string& name() const { return name_; }
  const std::vector<HistoryBlock>& blocks() const { return blocks_; }

  bool all_variants() const { return all_variants_; }
  // REQUIRES: !all_variants()
  const std::vector<std::string>& variants() const { return variants_; }
  int variants_line() const { return variants_line_; }
  // Empty if there is no line "overrides:".
  const std::vector<HistoryOptionList>& overrides() const { return overrides_; }

  // Returns "name:line: ".
  std::string Where(int line) const;

  // Returns the text of the script with `outputs`, one per block, as expected
  // outputs.
  // REQUIRES: outputs.size() == blocks().size()
  std::string Rewrite(const std::vector<std::string>& outputs) const;

 private:
  std::string name_;
  std::vector<HistoryBlock> blocks_;
  // The text after the last block.
  std::string tail_;
  bool all_variants_ = true;
  std::vector<std::string> variants_;
  int variants_line_ = 0;
  std::vector<HistoryOptionList> overrides_;
};

}  // namespace ROCKSDB_NAMESPACE
