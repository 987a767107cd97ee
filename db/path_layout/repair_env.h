//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// The Env of a repair, in which a temporary file takes the place of CURRENT.
//
// The steps of a repair write MANIFESTs that lack files of the database, and
// set CURRENT to each of them. An open after a crash would accept such a
// MANIFEST and delete the files. With this Env the steps do not change CURRENT
// itself, which RepairGuard has made invalid.
//
// Thread-safe.
class RepairEnv {
 public:
  // env: must outlive this object, which must outlive all users of env().
  RepairEnv(Env* env, const std::string& dbname);

  Env* env() const { return env_.get(); }
  // Returns the file system of the database, in which CURRENT is itself.
  const std::shared_ptr<FileSystem>& base() const { return base_; }
  // Returns the options with this Env.
  DBOptions Apply(const DBOptions& options) const;

  // Returns the name of the file that takes the place of CURRENT. An open
  // deletes it, as any temporary file, if a crash has left it.
  static std::string SubstituteOfCurrent(const std::string& dbname);

 private:
  const std::shared_ptr<FileSystem> base_;
  const std::unique_ptr<Env> env_;
};

}  // namespace ROCKSDB_NAMESPACE
