//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "tools/strata/ldb_session_mark.h"

namespace ROCKSDB_NAMESPACE {

class Env;

// The OPTIONS file of a database that a tool opens, perhaps several times, with
// other options than those in it.
//
// Each open writes an OPTIONS file of its own. In it, options have the tool's
// values, and objects are missing that the tool cannot make from the file, such
// as a compaction_filter_factory of the program's.
//
// Invariants:
// 1. After KeepAfterOpen(), also if it fails by Busy, the newest OPTIONS file
//    has no options of a session, but all options of RocksDB's as the last one
//    before the open.
// 2. What another process has written between two calls is noticed (Busy), and
//    not changed. mark() tells its files from those of the session, of which
//    one open may write several: TransactionDB::Open() can change options.
// 3. Where the files do not tell whether another process has opened the
//    database, because none from before the open is left, KeepAfterOpen()
//    returns Busy, too, and puts the text that Load() has read there.
//
// Not thread-safe.
class LdbOptionsFile {
 public:
  // Reads the newest OPTIONS file.
  static Status ReadNewest(Env* env, const std::string& dbname,
                           std::string* name, std::string* text);

  // Each open that KeepAfterOpen() follows needs this listener.
  const std::shared_ptr<LdbSessionMark>& mark() const { return mark_; }

  // Reads the newest one, which is the one to keep.
  Status Load(Env* env, const std::string& dbname);

  // The name, without directory, of the newest one that this object knows.
  const std::string& name() const { return name_; }
  // The text of the one that Load() has read.
  const std::string& text() const { return text_; }

  // Puts the text that Load() has read into the newest file that an open has
  // just written, with Strata's options of that file in place of those in the
  // text: the data may already depend on them. If the open was not the first
  // one after the last call of this object, puts the text of the other open's
  // file there instead and returns Busy.
  // REQUIRES: Load() returned OK, and this process has the database open, with
  // mark() among its listeners.
  Status KeepAfterOpen();

  // Returns Busy if there is a newer OPTIONS file than name().
  // REQUIRES: Load() returned OK.
  Status CheckNewest() const;

  // Replaces the text of name(), in one step, unless it is the same.
  // REQUIRES: Load() returned OK, and this process has the database open or
  // holds its LOCK.
  Status Replace(const std::string& text) const;

 private:
  // The OPTIONS files after an open.
  struct Files {
    // The newest one first.
    std::vector<std::string> names;
    // This open has written so many, which are the newest ones.
    size_t num_own = 0;
    // The text of the newest one if num_own > 0.
    std::string own;
    // The text of the newest one of another open; empty: there is none.
    std::string other;

    bool HasOther() const { return num_own < names.size(); }
    // Returns true if the open wrote over this file, or came right after it.
    bool Follows(const std::string& name) const;
  };

  // Returns the names of the OPTIONS files, the newest one first.
  Status List(std::vector<std::string>* names) const;
  Status ReadFiles(Files* files) const;
  std::string PathOf(const std::string& name) const {
    return dbname_ + "/" + name;
  }
  // Returns Busy.
  Status Opened() const;

  Env* env_ = nullptr;
  const std::shared_ptr<LdbSessionMark> mark_ =
      std::make_shared<LdbSessionMark>();
  std::string dbname_;
  std::string name_;
  std::string text_;
};

}  // namespace ROCKSDB_NAMESPACE
