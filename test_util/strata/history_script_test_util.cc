//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_script_test_util.h"

#include <cassert>
#include <sstream>
#include <utility>

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kSeparator[] = "----";
constexpr char kOverrides[] = "overrides:";
constexpr char kVariants[] = "variants:";

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  std::string word;
  while (stream >> word) {
    if (word[0] == '#') {
      break;
    }
    words.push_back(word);
  }
  return words;
}

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(stream, line)) {
    if (!line.empty() && line.back() == '\r') {
      line.pop_back();
    }
    lines.push_back(line);
  }
  return lines;
}

bool HasEmptyLine(const std::string& output) {
  return output.empty() || output[0] == '\n' ||
         output.find("\n\n") != std::string::npos;
}

// Parses "option=value... | option=value...".
bool ParseOverrides(const std::vector<std::string>& words,
                    std::vector<HistoryOptionList>* lists) {
  lists->assign(1, {});
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (word == "|") {
      lists->emplace_back();
    } else if (equals == std::string::npos || equals == 0) {
      return false;
    } else {
      HistoryOptions::Set(word.substr(0, equals), word.substr(equals + 1),
                          &lists->back());
    }
  }
  return !words.empty();
}

}  // namespace

std::string HistoryScript::Where(int line) const {
  return name_ + ":" + std::to_string(line) + ": ";
}

Status HistoryScript::Parse(const std::string& name, const std::string& text,
                            HistoryScript* script) {
  *script = HistoryScript();
  script->name_ = name;
  const auto error = [&](size_t index, const std::string& what) {
    return Status::InvalidArgument(script->Where(static_cast<int>(index) + 1) +
                                   what);
  };
  const std::vector<std::string> lines = Lines(text);
  HistoryBlock block;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != kSeparator) {
      std::vector<std::string> words = Words(lines[i]);
      if (!words.empty() && words[0] == kVariants) {
        if (!script->blocks_.empty() || !block.commands.empty()) {
          return error(i, "\"variants:\" stands behind a command");
        }
        if (script->variants_line_ != 0) {
          return error(i, "second \"variants:\"");
        }
        script->variants_line_ = static_cast<int>(i) + 1;
        words.erase(words.begin());
        if (words.empty()) {
          return error(i, "\"variants:\" needs names, \"all\" or \"none\"");
        }
        script->all_variants_ = words[0] == "all";
        if (words[0] != "all" && words[0] != "none") {
          script->variants_ = std::move(words);
        } else if (words.size() > 1) {
          return error(i, "\"" + words[0] + "\" stands alone");
        }
      } else if (!words.empty() && words[0] == kOverrides) {
        if (!script->blocks_.empty() || !block.commands.empty()) {
          return error(i, "\"overrides:\" stands behind a command");
        }
        words.erase(words.begin());
        if (!ParseOverrides(words, &script->overrides_)) {
          return error(i, "\"overrides:\" needs option=value...");
        }
      } else if (!words.empty()) {
        HistoryCommand command;
        command.line = static_cast<int>(i) + 1;
        command.words = std::move(words);
        block.commands.push_back(std::move(command));
      }
      block.head.append(lines[i]).append("\n");
      continue;
    }
    if (block.commands.empty()) {
      return error(i, "\"----\" without a command");
    }
    const bool is_long = i + 1 < lines.size() && lines[i + 1] == kSeparator;
    if (is_long) {
      const size_t start = i;
      i += 2;
      block.expected_line = static_cast<int>(i) + 1;
      while (!(i + 1 < lines.size() && lines[i] == kSeparator &&
               lines[i + 1] == kSeparator)) {
        if (i >= lines.size()) {
          return error(start, "the second pair of \"----\" is missing");
        }
        block.expected.append(lines[i]).append("\n");
        ++i;
      }
      i += 2;
      if (i < lines.size() && !lines[i].empty()) {
        return error(i, "an empty line must follow the output");
      }
    } else {
      ++i;
      block.expected_line = static_cast<int>(i) + 1;
      for (; i < lines.size() && !lines[i].empty(); ++i) {
        if (lines[i] == kSeparator) {
          return error(i, "\"----\" within an output");
        }
        block.expected.append(lines[i]).append("\n");
      }
    }
    script->blocks_.push_back(std::move(block));
    block = HistoryBlock();
  }
  if (!block.commands.empty()) {
    return Status::InvalidArgument(script->Where(block.commands.back().line) +
                                   "no \"----\" follows the commands");
  }
  script->tail_ = std::move(block.head);
  if (script->blocks_.empty()) {
    return Status::InvalidArgument(name + ":1: no commands");
  }
  return Status::OK();
}

std::string HistoryScript::Rewrite(
    const std::vector<std::string>& outputs) const {
  assert(outputs.size() == blocks_.size());
  std::string text;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const bool is_long = HasEmptyLine(outputs[i]);
    text.append(blocks_[i].head);
    text.append(is_long ? "----\n----\n" : "----\n");
    text.append(outputs[i]);
    text.append(is_long ? "----\n----\n" : "");
    if (i + 1 < blocks_.size() || !tail_.empty()) {
      text.append("\n");
    }
  }
  return text.append(tail_);
}

}  // namespace ROCKSDB_NAMESPACE
