//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_move_plan.h"

#include <algorithm>
#include <utility>

#include "db/path_layout/path_layout.h"
#include "file/filename.h"

namespace ROCKSDB_NAMESPACE {

namespace {

Status Refuse(const PathMoveRequest& request, const std::string& reason) {
  return Status::InvalidArgument(
      "Cannot move " + request.from + " to " + request.to, reason);
}

}  // namespace

std::string PathMovePlan::NameOf(const ManifestFamily::File& file) {
  switch (file.type) {
    case kBlobFile:
      return BlobFileName(file.number);
    case kDeltaFile:
      // Without the slash behind the name of the directory.
      return DeltaFileName("", file.number).substr(1);
    default:
      return MakeTableFileName(file.number);
  }
}

std::string PathMovePlan::TextOf(const User& user) {
  return "path id " + std::to_string(user.path_id) + " of column family " +
         user.family;
}

bool PathMovePlan::IsOwn(const std::string& directory) const {
  return is_same_(directory, db_dir_) ||
         std::any_of(own_.begin(), own_.end(), [&](const std::string& own) {
           return is_same_(directory, own);
         });
}

Status PathMovePlan::CheckRequests(
    const std::vector<PathMoveRequest>& requests) const {
  if (requests.empty()) {
    return Status::InvalidArgument("There is no directory to be moved");
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const PathMoveRequest& request = requests[i];
    for (const std::string& directory : {request.from, request.to}) {
      if (directory.empty() || directory.find('\n') != std::string::npos) {
        return Refuse(request,
                      "the name of a directory is empty or has a line break");
      }
    }
    if (is_same_(request.from, request.to)) {
      return Refuse(request, "both names lead to one directory");
    }
    if (!is_same_(wal_dir_, db_dir_) && is_same_(request.to, wal_dir_)) {
      return Refuse(request, "the destination is the directory of the WALs");
    }
    for (size_t j = 0; j < requests.size(); ++j) {
      if (j < i && is_same_(request.from, requests[j].from)) {
        return Refuse(request, "the source was named before");
      }
      if (j != i && is_same_(request.to, requests[j].from)) {
        return Refuse(request,
                      "the destination is a source, too: move one directory "
                      "after the other");
      }
    }
  }
  return Status::OK();
}

size_t PathMovePlan::FindRequest(const std::string& directory, bool resumes) {
  const auto [entry, is_new] = found_.emplace(directory, moves_.size());
  if (is_new) {
    const auto found =
        std::find_if(moves_.begin(), moves_.end(), [&](const Move& move) {
          return is_same_(directory, move.request.from) ||
                 (resumes && is_same_(directory, move.request.to));
        });
    entry->second = static_cast<size_t>(found - moves_.begin());
  }
  return entry->second;
}

const std::string* PathMovePlan::FamilyWithoutPaths(
    const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second;
}

Status PathMovePlan::AddFamily(const Family& family, bool resumes) {
  const std::string* without_paths = nullptr;
  if (family.paths.empty()) {
    without_paths = &without_paths_.emplace_back(family.name);
  }
  for (const auto* files : {&family.needed, &family.others}) {
    for (const ManifestFamily::File& file : *files) {
      names_[NameOf(file)] = without_paths;
    }
  }
  if (family.paths.empty()) {
    if (std::any_of(moves_.begin(), moves_.end(), [&](const Move& move) {
          return is_same_(move.request.from, db_dir_);
        })) {
      staying_.push_back(family.name);
    }
    return Status::OK();
  }
  std::vector<DbPath> paths = family.paths;
  // For each path its index in moves_ and in Move::users.
  std::vector<std::pair<size_t, size_t>> users;
  bool is_changed = false;
  for (uint32_t i = 0; i < paths.size(); ++i) {
    const std::string& directory = family.paths[i].path;
    own_.insert(directory);
    const size_t index = FindRequest(directory, resumes);
    users.emplace_back(index, 0);
    if (index == moves_.size()) {
      continue;
    }
    Move& move = moves_[index];
    const bool was_replaced = !is_same_(directory, move.request.from);
    if (move.users.empty() && !was_replaced) {
      move.request.from = directory;
    }
    users.back().second = move.users.size();
    move.users.push_back({family.name, i, was_replaced});
    paths[i].path = move.request.to;
    is_changed = true;
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const size_t index =
          users[i].first < moves_.size() ? users[i].first : users[j].first;
      if (index < moves_.size() && is_same_(paths[i].path, paths[j].path) &&
          !is_same_(family.paths[i].path, family.paths[j].path)) {
        return Refuse(
            moves_[index].request,
            "path ids " + std::to_string(j) + " and " + std::to_string(i) +
                " of column family " + family.name +
                " would be one directory, and a path id could no longer be "
                "told from the other one. See \"Give up the last path\" in "
                "docs/per-level-paths.md");
      }
    }
  }
  for (const auto* files : {&family.needed, &family.others}) {
    for (const ManifestFamily::File& file : *files) {
      const auto& [index, user] =
          users[PathLayout::IndexOf(file.path_id, paths.size())];
      if (index < moves_.size()) {
        moves_[index].files.push_back({file, files == &family.needed, user});
      }
    }
  }
  if (is_changed) {
    new_paths_[family.name] = std::move(paths);
  }
  return Status::OK();
}

Status PathMovePlan::CheckUsers() const {
  for (const Move& move : moves_) {
    if (!move.users.empty() ||
        std::any_of(own_.begin(), own_.end(), [&](const std::string& own) {
          return is_same_(own, move.request.to);
        })) {
      continue;
    }
    std::string paths;
    for (const std::string& own : own_) {
      paths += (paths.empty() ? "" : ", ") + own;
    }
    return Refuse(move.request,
                  "the source is no path of a column family. " +
                      (paths.empty() ? "No paths are known; see --cf_paths"
                                     : "The paths are " + paths +
                                           "; for others see --cf_paths"));
  }
  return Status::OK();
}

void PathMovePlan::AddMoves(const std::vector<PathMoveRequest>& requests) {
  for (const PathMoveRequest& request : requests) {
    const auto earlier =
        std::find_if(moves_.begin(), moves_.end(), [&](const Move& move) {
          return is_same_(request.to, move.request.to);
        });
    const std::string to =
        earlier == moves_.end() ? request.to : earlier->request.to;
    moves_.emplace_back().request = {request.from, to};
  }
}

Status PathMovePlan::Make(const std::vector<PathMoveRequest>& requests,
                          const std::vector<Family>& families, bool resumes) {
  Status s = CheckRequests(requests);
  if (!s.ok()) {
    return s;
  }
  AddMoves(requests);
  for (const Family& family : families) {
    s = AddFamily(family, resumes);
    if (!s.ok()) {
      return s;
    }
  }
  for (Move& move : moves_) {
    std::sort(move.files.begin(), move.files.end(),
              [](const File& a, const File& b) {
                return a.file.number < b.file.number;
              });
  }
  return CheckUsers();
}

}  // namespace ROCKSDB_NAMESPACE
