//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Names for things that differ from run to run, file numbers and the directory
// of the run, so that the outputs are the same in each run.
//
// Not thread-safe.
class HistoryNames {
 public:
  // root: the directory of the run.
  explicit HistoryNames(std::string root) : root_(std::move(root)) {}

  // Returns "F1", "F2" and so on, in the order in which the numbers of files of
  // this kind were first seen here.
  std::string FileName(char kind, uint64_t number);

  // Returns the file's name, or an empty one if FileName() has not given it
  // one.
  std::string FindFileName(char kind, uint64_t number) const;

  // Removes the directory of the run from `text`, and replaces file numbers,
  // which have at least 6 digits, by "N".
  std::string Mask(const std::string& text) const;

 private:
  const std::string root_;
  // The parts of names behind the kind.
  std::map<std::pair<char, uint64_t>, size_t> file_names_;
  std::map<char, size_t> num_file_names_;
};

}  // namespace ROCKSDB_NAMESPACE
