//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/delta/delta_edit.h"
#include "db/version_edit.h"
#include "rocksdb/file_system.h"
#include "rocksdb/rocksdb_namespace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

// A test with a MANIFEST of records that it makes itself.
class ManifestTestBase : public testing::Test {
 protected:
  // name: of the MANIFEST, in the directory of tests.
  explicit ManifestTestBase(const std::string& name);
  ~ManifestTestBase() override;

  // Return files of which number and path are given and the rest is valid.
  static FileMetaData Sst(uint64_t number, uint32_t path_id);
  static DeltaFileDescription Delta(uint64_t number, uint32_t path_id);

  static std::string Encode(const VersionEdit& edit);

  // Writes the MANIFEST. Returns its size in bytes.
  uint64_t Write(const std::vector<std::string>& records);
  // Returns the contents of the MANIFEST.
  std::string Read();

  const std::shared_ptr<FileSystem> fs_;
  const std::string fname_;
};

}  // namespace ROCKSDB_NAMESPACE
