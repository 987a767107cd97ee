//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "db/path_layout/path_move_mark.h"
#include "db/path_layout/path_move_plan.h"
#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Finds out where the files of a PathMovePlan are, and whether something else
// is in the way. It changes nothing on disk.
//
// Invariant: each file that the last version needs is in the source or in the
// destination with the size that the MANIFEST has. If it is in both, both are
// one file, or the mark of an unfinished move names it. Any other file that is
// in both is a leftover in the source: the database has had its new paths when
// it took the number.
class PathMoveSurvey {
 public:
  struct File {
    const PathMovePlan::File* planned = nullptr;
    // In the same move of the plan as `planned`.
    const PathMovePlan::User* user = nullptr;
    std::string name;   // without directory
    uint64_t size = 0;  // bytes
    bool is_in_source = false;
    bool is_in_destination = false;

    bool IsPending() const { return !is_in_destination; }
  };

  struct Move {
    const PathMovePlan::Move* planned = nullptr;
    bool has_source = false;       // The directory exists.
    bool has_destination = false;  // The directory exists.
    // Those that exist. A file that is only in records of the MANIFEST may be
    // gone. When the paths were replaced before, the plan has all files of the
    // destination in the first move to it. Files that are in the source of
    // another move, whose mark names them, are files of that one, too.
    std::vector<File> files;
    // Files with temporary names that an earlier attempt has left in the
    // destination, with directory.
    std::vector<std::string> temporaries;
    // Files that the mark names, and that the MANIFEST no longer does, in both
    // directories, with directory.
    std::vector<std::string> stale;
    // The number of other SST, blob and delta files in the source that no
    // record of the MANIFEST names, or that only have the name of a file in the
    // destination.
    size_t num_unknown = 0;

    size_t NumPending() const;
    uint64_t PendingBytes() const;
  };

  // mark: its moves are in the order of the plan's; empty: none was begun.
  // Returns InvalidArgument or Corruption if the files cannot be moved.
  // REQUIRES: *plan lives longer than this object
  Status Make(FileSystem* fs, const PathMovePlan& plan,
              const PathMoveMark& mark);

  std::vector<Move>& moves() { return moves_; }
  const std::vector<Move>& moves() const { return moves_; }

 private:
  using Names = std::set<std::string>;

  // The names in the directories of a move.
  struct Listing {
    Names source;
    Names destination;
  };

  Status List(const std::string& directory, Names* names, bool* exists) const;
  Status AddMove(const PathMovePlan::Move& planned,
                 const PathMoveMark::Move& marked);
  Status AddFile(const PathMovePlan::File& planned,
                 const PathMoveMark::Move& marked, const Listing& listing,
                 Move* move) const;
  // Adds files of other moves to the same destination that the mark has in this
  // one.
  Status AddTwins(const PathMoveMark::Move& marked, const Listing& listing,
                  Move* move) const;
  // Counts files that the MANIFEST does not name. Returns InvalidArgument if
  // the source has a file of a column family without paths.
  Status CheckSource(const Listing& listing, Move* move) const;
  Status CheckSizes(const Move& move, File* file) const;
  // Checks a file that is in both directories.
  Status CheckBoth(const PathMoveMark::Move& marked, Move* move,
                   File* file) const;
  // Returns InvalidArgument if the destination is probably that of another
  // database.
  // REQUIRES: all moves have their files
  Status CheckDestination(const PathMoveMark& mark, const Listing& listing,
                          Move* move) const;
  Status AddStale(const PathMoveMark::Move& marked, const Listing& listing,
                  Move* move) const;

  FileSystem* fs_ = nullptr;
  const PathMovePlan* plan_ = nullptr;
  std::vector<Move> moves_;
  // For each move.
  std::vector<Listing> listings_;
};

}  // namespace ROCKSDB_NAMESPACE
