//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/ldb_tool.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/utilities/ldb_cmd.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// Runs ldb in this process, and returns its exit code.
//
// args: what follows the name of the program on the command line
// options: the options that a program passes to LDBTool::Run()
// output: receives what the command prints, first to stdout and then to stderr
//
// REQUIRES: no other call runs, because the process has one stdout.
inline int RunLdb(const std::vector<std::string>& args, const Options& options,
                  std::string* output) {
  std::vector<const char*> argv = {"./ldb"};
  for (const std::string& arg : args) {
    argv.push_back(arg.c_str());
  }
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int result =
      LDBCommandRunner::RunCommand(static_cast<int>(argv.size()), argv.data(),
                                   options, LDBOptions(), nullptr);
  *output = testing::internal::GetCapturedStdout() +
            testing::internal::GetCapturedStderr();
  return result;
}

}  // namespace ROCKSDB_NAMESPACE
