//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_check_test_util.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <utility>

#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {

HistoryCheck::HistoryCheck(const HistoryScript& script, std::string root)
    : script_(script), root_(std::move(root)) {}

void HistoryCheck::Run() {
  const std::vector<HistoryVariant> variants =
      ChooseHistoryVariants(script_, root_, &complaints_);
  if (!RunOwn()) {
    return;
  }
  CompareWithExpected();
  for (const HistoryVariant& variant : variants) {
    RunVariant(variant);
  }
}

bool HistoryCheck::RunOwn() {
  HistoryRunner runner(script_, HistoryVariant(), root_);
  const Status s = runner.Run(&own_);
  complaints_.insert(complaints_.end(), runner.disagreements().begin(),
                     runner.disagreements().end());
  if (!s.ok()) {
    complaints_.emplace_back(s.getState());
  }
  return s.ok();
}

void HistoryCheck::CompareWithExpected() {
  std::vector<std::string> texts;
  bool is_expected = true;
  for (size_t i = 0; i < own_.size(); ++i) {
    const HistoryBlock& block = script_.blocks()[i];
    texts.push_back(HistoryRunner::Text(own_[i]));
    if (texts.back() != block.expected) {
      is_expected = false;
      complaints_.push_back(script_.Where(block.expected_line) + "expected:\n" +
                            block.expected + "but it is:\n" + texts.back());
    }
  }
  if (!is_expected) {
    rewritten_ = script_.Rewrite(texts);
  }
}

void HistoryCheck::RunVariant(const HistoryVariant& variant) {
  HistoryRunner runner(script_, variant, root_);
  std::vector<HistoryRunner::Outputs> others;
  const Status s = runner.Run(&others);
  const std::string under = " (under \"" + variant.name + "\")";
  for (const std::string& disagreement : runner.disagreements()) {
    complaints_.push_back(disagreement + under);
  }
  if (!s.ok()) {
    complaints_.push_back(s.getState() + under);
  } else {
    CompareWithOwn(others, under);
  }
}

void HistoryCheck::CompareWithOwn(
    const std::vector<HistoryRunner::Outputs>& others,
    const std::string& under) {
  for (size_t i = 0; i < own_.size(); ++i) {
    for (size_t j = 0; j < own_[i].size(); ++j) {
      const HistoryRunner::Output& own = own_[i][j];
      if (own.kind == HistoryOutputKind::kUndecided ||
          others[i][j].kind == HistoryOutputKind::kUndecided) {
        return;
      }
      if (own.kind == HistoryOutputKind::kSame &&
          own.text != others[i][j].text) {
        complaints_.push_back(script_.Where(own.command->line) +
                              "without variant:\n" + own.text + "but it is" +
                              under + ":\n" + others[i][j].text);
      }
    }
  }
}

std::vector<HistoryVariant> ChooseHistoryVariants(
    const HistoryScript& script, const std::string& root,
    std::vector<std::string>* complaints) {
  // Not every file system supports direct I/O; tmpfs does not.
  const bool has_direct_io = Env::Default()->CreateDirIfMissing(root).ok() &&
                             test::IsDirectIOSupported(Env::Default(), root);
  std::set<std::string> wanted;
  if (!script.all_variants()) {
    wanted.insert(script.variants().begin(), script.variants().end());
  }
  std::vector<HistoryVariant> chosen;
  for (const HistoryVariant& variant : HistoryVariants()) {
    if (!script.all_variants() && wanted.erase(variant.name) == 0) {
      continue;
    }
    if (variant.name != "direct-io" || has_direct_io) {
      chosen.push_back(variant);
    }
  }
  for (const std::string& name : wanted) {
    complaints->push_back(script.Where(script.variants_line()) +
                          "no variant \"" + name + "\"");
  }
  if (!script.overrides().empty()) {
    chosen.push_back({"overrides", script.overrides()});
  }
  return chosen;
}

std::vector<std::string> CheckHistoryScript(const HistoryScript& script,
                                            const std::string& root,
                                            std::string* rewritten) {
  HistoryCheck check(script, root);
  check.Run();
  *rewritten = check.rewritten();
  return check.complaints();
}

std::string FindHistoryScripts() {
  constexpr char kBelow[] = "/testdata/history";
  const auto is_directory = [](const std::string& path) {
    bool is_dir = false;
    return FileSystem::Default()
               ->IsDirectory(path, IOOptions(), &is_dir, nullptr)
               .ok() &&
           is_dir;
  };
  if (const char* testdata = std::getenv("STRATA_TESTDATA")) {
    const std::string path = std::string(testdata) + "/history";
    return is_directory(path) ? path : "";
  }
  char buffer[4096];
  std::vector<std::string> starts;
  const ssize_t length = readlink("/proc/self/exe", buffer, sizeof(buffer) - 1);
  if (length > 0) {
    starts.emplace_back(buffer, static_cast<size_t>(length));
  }
  if (getcwd(buffer, sizeof(buffer)) != nullptr) {
    starts.push_back(std::string(buffer) + "/.");
  }
  for (std::string path : starts) {
    for (size_t slash = path.rfind('/'); slash != std::string::npos;
         slash = path.rfind('/')) {
      path.erase(slash);
      if (is_directory(path + kBelow)) {
        return path + kBelow;
      }
    }
  }
  return "";
}

std::vector<std::string> HistoryScriptNames() {
  constexpr char kEnd[] = ".txt";
  constexpr size_t kEndSize = sizeof(kEnd) - 1;
  std::vector<std::string> names;
  std::vector<std::string> children;
  const std::string directory = FindHistoryScripts();
  if (!directory.empty() &&
      Env::Default()->GetChildren(directory, &children).ok()) {
    for (const std::string& child : children) {
      if (child.size() > kEndSize && child.ends_with(kEnd)) {
        names.push_back(child.substr(0, child.size() - kEndSize));
      }
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status ReadHistoryScript(const std::string& name, HistoryScript* script) {
  const std::string path = FindHistoryScripts() + "/" + name + ".txt";
  std::string text;
  const Status s = ReadFileToString(Env::Default(), path, &text);
  return s.ok() ? HistoryScript::Parse(path, text, script) : s;
}

}  // namespace ROCKSDB_NAMESPACE
