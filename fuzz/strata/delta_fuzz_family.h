//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "db/delta/delta_table_factory.h"
#include "env/mock_env.h"
#include "file/filename.h"
#include "fuzz/strata/fuzz_input.h"
#include "options/cf_options.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"
#include "table/unique_id_impl.h"

namespace ROCKSDB_NAMESPACE {
namespace fuzz {

// A column family in memory, without a DB, that has one delta file. It has no
// block cache, as blocks of an earlier file of the same name would be in it.
//
// Not thread-safe.
class DeltaFuzzFamily {
 public:
  static constexpr uint64_t kFileNumber = 12;

  DeltaFuzzFamily() : env_(MockEnv::Create(Env::Default())) {
    Require(env_->CreateDirIfMissing(directory()).ok());
    options_.env = env_.get();
    options_.cf_paths.emplace_back(directory(), 0);
    options_.compression = kNoCompression;
    BlockBasedTableOptions table_options;
    table_options.no_block_cache = true;
    options_.table_factory.reset(NewBlockBasedTableFactory(table_options));
    ioptions_ = std::make_unique<ImmutableOptions>(options_);
    cf_options_ = std::make_unique<MutableCFOptions>(options_);
    DeltaTableFamily family(*ioptions_);
    family.id = 3;
    family.name = "family";
    family.db_session_id = EncodeSessionId(1234, 5678);
    tables_ = std::make_unique<DeltaTableFactory>(family, *cf_options_);
  }
  DeltaFuzzFamily(const DeltaFuzzFamily&) = delete;
  DeltaFuzzFamily& operator=(const DeltaFuzzFamily&) = delete;

  static std::string directory() { return "/fuzz"; }
  static std::string file_name() {
    return DeltaFileName(directory(), kFileNumber);
  }
  FileSystem* fs() const { return ioptions_->fs.get(); }
  const ImmutableOptions& ioptions() const { return *ioptions_; }
  const MutableCFOptions& cf_options() const { return *cf_options_; }
  const DeltaTableFactory& tables() const { return *tables_; }

  // Returns the bytes of the delta file.
  std::string Contents() const {
    std::string contents;
    Require(ReadFileToString(fs(), file_name(), &contents).ok());
    return contents;
  }
  void SetContents(const std::string& contents) const {
    Require(WriteStringToFile(fs(), contents, file_name()).ok());
  }

 private:
  const std::unique_ptr<Env> env_;
  Options options_;
  std::unique_ptr<ImmutableOptions> ioptions_;
  std::unique_ptr<MutableCFOptions> cf_options_;
  std::unique_ptr<DeltaTableFactory> tables_;
};

// Returns s, which must be OK, or NotSupported or Corruption with the name of
// the file.
inline const Status& OkOrNamed(const Status& s) {
  Require(s.ok() || s.IsNotSupported() || s.IsCorruption());
  Require(s.ok() ||
          s.ToString().find(DeltaFuzzFamily::file_name()) != std::string::npos);
  return s;
}

}  // namespace fuzz
}  // namespace ROCKSDB_NAMESPACE
