//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "db/path_layout/manifest_files.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// One directory that is to be replaced by another one.
struct PathMoveRequest {
  std::string from;
  std::string to;
};

// Determines which files of a closed database move if directories among its
// paths are replaced by others, and what the paths are afterwards. It looks at
// no file: what is on disk is the matter of PathMover.
//
// Invariants:
// 1. A file moves only if a path with its id was given for its column family.
//    The files of a family without paths are in the directory of the database,
//    and stay, because the family would not be opened with another directory.
// 2. Path ids do not change, so neither the MANIFEST nor a layout does.
// 3. No column family has a directory twice that it did not have twice before:
//    its path ids would lose their meaning.
// 4. Destinations that are one directory have one name.
class PathMovePlan {
 public:
  struct Family {
    std::string name;
    // Empty: none was given.
    std::vector<DbPath> paths;
    // The files of the last version.
    std::vector<ManifestFamily::File> needed;
    // Other files that a record of the MANIFEST names, and that may be gone.
    // The size is not used.
    std::vector<ManifestFamily::File> others;
  };

  struct File {
    ManifestFamily::File file;
    bool is_needed = true;
    // Index in Move::users.
    size_t user = 0;
  };

  // A path of a column family.
  struct User {
    std::string family;
    uint32_t path_id = 0;
    // True: the path is the destination already. The move, which was begun
    // before, has replaced it, or the column family never had the source.
    bool was_replaced = false;
  };

  struct Move {
    // The request. The source is spelled as in the options, the destination as
    // in the first request that has it.
    PathMoveRequest request;
    std::vector<User> users;
    // By increasing number. All files of the paths of the users.
    std::vector<File> files;
  };

  // Returns true if both names lead to one directory.
  using IsSame = std::function<bool(const std::string&, const std::string&)>;

  // db_dir: of the database.
  // wal_dir: may be db_dir.
  PathMovePlan(const std::string& db_dir, const std::string& wal_dir,
               const IsSame& is_same)
      : db_dir_(db_dir), wal_dir_(wal_dir), is_same_(is_same) {}

  // Returns InvalidArgument if a directory cannot be replaced by the other one.
  // resumes: whether the same requests were begun before. A path may have been
  //     replaced already then.
  // REQUIRES: the destinations are results of CleanDirectoryName(); called once
  Status Make(const std::vector<PathMoveRequest>& requests,
              const std::vector<Family>& families, bool resumes);

  // One for each request, in their order. A move without users is complete: no
  // path is the source, and a path is the destination.
  const std::vector<Move>& moves() const { return moves_; }

  // Returns the paths after the move of each column family in which a path is
  // replaced, or was replaced before.
  const std::map<std::string, std::vector<DbPath>>& new_paths() const {
    return new_paths_;
  }

  // Returns the families without paths if a source is the directory of the
  // database, in which their files stay.
  const std::vector<std::string>& staying() const { return staying_; }

  // Returns true if a record of the MANIFEST names this file.
  bool Knows(const std::string& name) const { return names_.count(name) > 0; }

  // Returns the column family of a file that a record of the MANIFEST names if
  // no paths were given for it, nullptr if some were or the file is unknown.
  const std::string* FamilyWithoutPaths(const std::string& name) const;

  // Returns true if this is the directory of the database.
  bool IsDirectoryOfDB(const std::string& directory) const {
    return is_same_(directory, db_dir_);
  }

  // Returns true if the database has files of its own in this directory before
  // the move: it is that of the database, or a path of a column family.
  bool IsOwn(const std::string& directory) const;

  // Returns the name of a file without directory.
  static std::string NameOf(const ManifestFamily::File& file);

  // Returns "path id 1 of column family default".
  static std::string TextOf(const User& user);

 private:
  // Returns the index of the request with this source, or, if the request was
  // begun before, with this destination; requests.size() if there is none.
  size_t FindRequest(const std::string& directory, bool resumes);
  Status CheckRequests(const std::vector<PathMoveRequest>& requests) const;
  void AddMoves(const std::vector<PathMoveRequest>& requests);
  Status AddFamily(const Family& family, bool resumes);
  Status CheckUsers() const;

  const std::string db_dir_;
  const std::string wal_dir_;
  const IsSame is_same_;
  std::vector<Move> moves_;
  std::map<std::string, std::vector<DbPath>> new_paths_;
  std::vector<std::string> staying_;
  // Name of a file -> its column family in without_paths_; nullptr: paths were
  // given.
  std::map<std::string, const std::string*> names_;
  // The names of the families without paths. A list, because names_ has
  // pointers to them.
  std::list<std::string> without_paths_;
  // The directories of all paths, as they are spelled.
  std::set<std::string> own_;
  // Results of FindRequest(): a database can have thousands of column families
  // with the same paths.
  std::map<std::string, size_t> found_;
};

}  // namespace ROCKSDB_NAMESPACE
