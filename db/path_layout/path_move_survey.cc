//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/path_move_survey.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "file/filename.h"
#include "rocksdb/file_system.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The ending of a file that waits for its deletion.
constexpr char kTrash[] = ".trash";

// Parses the name of a file that a database could have.
bool ParseOwnName(const std::string& name, uint64_t* number, FileType* type) {
  std::string own = name;
  if (Slice(own).ends_with(kTrash)) {
    own.resize(own.size() - (sizeof(kTrash) - 1));
  }
  return ParseFileName(own, number, type);
}

bool IsMovedType(FileType type) {
  return type == kTableFile || type == kBlobFile || type == kDeltaFile;
}

}  // namespace

size_t PathMoveSurvey::Move::NumPending() const {
  return static_cast<size_t>(
      std::count_if(files.begin(), files.end(),
                    [](const File& file) { return file.IsPending(); }));
}

uint64_t PathMoveSurvey::Move::PendingBytes() const {
  uint64_t bytes = 0;
  for (const File& file : files) {
    bytes += file.IsPending() ? file.size : 0;
  }
  return bytes;
}

Status PathMoveSurvey::List(const std::string& directory, Names* names,
                            bool* exists) const {
  names->clear();
  std::vector<std::string> children;
  const IOStatus s =
      fs_->GetChildren(directory, IOOptions(), &children, nullptr);
  *exists = s.ok();
  if (s.IsNotFound() || s.IsPathNotFound()) {
    return Status::OK();
  }
  names->insert(children.begin(), children.end());
  return s;
}

Status PathMoveSurvey::Make(FileSystem* fs, const PathMovePlan& plan,
                            const PathMoveMark& mark) {
  assert(mark.moves.empty() || mark.moves.size() == plan.moves().size());
  fs_ = fs;
  plan_ = &plan;
  moves_.clear();
  listings_.clear();
  static const PathMoveMark::Move* const kNone = new PathMoveMark::Move();
  const auto marked = [&mark](size_t i) -> const PathMoveMark::Move& {
    return mark.moves.empty() ? *kNone : mark.moves[i];
  };
  Status s;
  for (size_t i = 0; s.ok() && i < plan.moves().size(); ++i) {
    s = AddMove(plan.moves()[i], marked(i));
  }
  for (size_t i = 0; s.ok() && i < plan.moves().size(); ++i) {
    s = CheckDestination(mark, listings_[i], &moves_[i]);
    if (s.ok()) {
      s = AddStale(marked(i), listings_[i], &moves_[i]);
    }
  }
  return s;
}

Status PathMoveSurvey::AddMove(const PathMovePlan::Move& planned,
                               const PathMoveMark::Move& marked) {
  Move& move = moves_.emplace_back();
  Listing& listing = listings_.emplace_back();
  move.planned = &planned;
  Status s = List(planned.request.from, &listing.source, &move.has_source);
  if (s.ok()) {
    s = List(planned.request.to, &listing.destination, &move.has_destination);
  }
  for (size_t i = 0; s.ok() && i < planned.files.size(); ++i) {
    s = AddFile(planned.files[i], marked, listing, &move);
  }
  if (s.ok()) {
    s = AddTwins(marked, listing, &move);
  }
  return s.ok() ? CheckSource(listing, &move) : s;
}

Status PathMoveSurvey::CheckSource(const Listing& listing, Move* move) const {
  const std::string& from = move->planned->request.from;
  // The files of families without paths are in the directory of the database.
  const bool has_all_families = plan_->IsDirectoryOfDB(from);
  for (const std::string& name : listing.source) {
    uint64_t number = 0;
    FileType type = kTempFile;
    if (!ParseOwnName(name, &number, &type) || !IsMovedType(type)) {
      continue;
    }
    const std::string* const family = plan_->FamilyWithoutPaths(name);
    if (family != nullptr && !has_all_families) {
      return Status::InvalidArgument(
          from + "/" + name,
          "is a file of column family " + *family +
              ", for which no paths are known. Give them by --cf_paths and "
              "--column_family=" +
              *family);
    }
    move->num_unknown += plan_->Knows(name) ? 0 : 1;
  }
  return Status::OK();
}

Status PathMoveSurvey::AddTwins(const PathMoveMark::Move& marked,
                                const Listing& listing, Move* move) const {
  for (const PathMovePlan::Move& other : plan_->moves()) {
    if (&other == move->planned ||
        other.request.to != move->planned->request.to) {
      continue;
    }
    for (const PathMovePlan::File& planned : other.files) {
      File file;
      file.planned = &planned;
      file.user = &other.users[planned.user];
      file.name = PathMovePlan::NameOf(planned.file);
      file.is_in_source = listing.source.count(file.name) > 0;
      file.is_in_destination = listing.destination.count(file.name) > 0;
      if (!file.is_in_source || marked.files.count(file.name) == 0) {
        continue;
      }
      const Status s = CheckSizes(*move, &file);
      if (!s.ok()) {
        return s;
      }
      move->files.push_back(std::move(file));
    }
  }
  return Status::OK();
}

Status PathMoveSurvey::AddFile(const PathMovePlan::File& planned,
                               const PathMoveMark::Move& marked,
                               const Listing& listing, Move* move) const {
  const PathMoveRequest& request = move->planned->request;
  File file;
  file.planned = &planned;
  file.user = &move->planned->users[planned.user];
  file.name = PathMovePlan::NameOf(planned.file);
  file.is_in_source = listing.source.count(file.name) > 0;
  file.is_in_destination = listing.destination.count(file.name) > 0;
  if (!file.is_in_source && !file.is_in_destination) {
    return planned.is_needed
               ? Status::InvalidArgument(
                     "The MANIFEST has " + file.name + " on " +
                     PathMovePlan::TextOf(*file.user) +
                     ", but the file is neither in " + request.from +
                     " nor in " + request.to +
                     ". Are these the paths of the database (--cf_paths)?")
               : Status::OK();
  }
  Status s;
  if (file.is_in_source && file.is_in_destination) {
    s = CheckBoth(marked, move, &file);
  }
  if (s.ok()) {
    s = CheckSizes(*move, &file);
  }
  if (s.ok()) {
    move->files.push_back(std::move(file));
  }
  return s;
}

Status PathMoveSurvey::CheckSizes(const Move& move, File* file) const {
  const PathMoveRequest& request = move.planned->request;
  bool is_known = file->planned->is_needed;
  file->size = is_known ? file->planned->file.size : 0;
  const std::pair<bool, const std::string*> places[] = {
      {file->is_in_source, &request.from},
      {file->is_in_destination, &request.to}};
  for (const auto& [is_there, directory] : places) {
    if (!is_there) {
      continue;
    }
    const std::string fname = *directory + "/" + file->name;
    uint64_t size = 0;
    const IOStatus s = fs_->GetFileSize(fname, IOOptions(), &size, nullptr);
    if (!s.ok()) {
      return s;
    }
    if (is_known && size != file->size) {
      return Status::Corruption(
          fname, "has " + std::to_string(size) + " bytes instead of " +
                     std::to_string(file->size) +
                     (file->planned->is_needed ? ", which the MANIFEST has"
                                               : ", which the source has"));
    }
    file->size = size;
    is_known = true;
  }
  return Status::OK();
}

Status PathMoveSurvey::CheckBoth(const PathMoveMark::Move& marked, Move* move,
                                 File* file) const {
  if (marked.files.count(file->name) > 0) {
    return Status::OK();
  }
  const PathMoveRequest& request = move->planned->request;
  bool is_same = false;
  const IOStatus s = fs_->AreFilesSame(request.from + "/" + file->name,
                                       request.to + "/" + file->name,
                                       IOOptions(), &is_same, nullptr);
  if (s.ok() && is_same) {
    return Status::OK();
  }
  if (file->user->was_replaced) {
    // A job has left the file in the source when it failed, for example by a
    // crash, and the database took the number once more, with its new paths.
    file->is_in_source = false;
    ++move->num_unknown;
    return Status::OK();
  }
  return Status::InvalidArgument(
      request.to + "/" + file->name,
      "exists already, and no unfinished move of " + request.from +
          " has left it: another database may have its files there");
}

Status PathMoveSurvey::CheckDestination(const PathMoveMark& mark,
                                        const Listing& listing,
                                        Move* move) const {
  const std::string& to = move->planned->request.to;
  // The files of the move that may be there, and their numbers.
  Names names;
  std::set<uint64_t> numbers;
  const auto add = [&](const std::string& name) {
    uint64_t number = 0;
    FileType type = kTempFile;
    if (ParseFileName(name, &number, &type)) {
      names.insert(name);
      numbers.insert(number);
    }
  };
  for (size_t i = 0; i < moves_.size(); ++i) {
    if (moves_[i].planned->request.to != to) {
      continue;
    }
    for (const File& file : moves_[i].files) {
      // The MANIFEST names blob and delta files that are long gone. One that
      // the source does not have is probably that of another database.
      if (file.planned->is_needed || file.is_in_source) {
        add(file.name);
      }
    }
    if (!mark.moves.empty()) {
      for (const auto& [name, size] : mark.moves[i].files) {
        add(name);
      }
    }
  }
  const bool is_own = plan_->IsOwn(to);
  // An attempt makes temporary files when its mark is durable.
  const bool may_have_temporaries = is_own || !mark.moves.empty();
  for (const std::string& name : listing.destination) {
    uint64_t number = 0;
    FileType type = kTableFile;
    if (!ParseOwnName(name, &number, &type)) {
      // For example "lost+found".
      continue;
    }
    if (type == kTempFile && may_have_temporaries &&
        numbers.count(number) > 0 &&
        name == TempFileName("", number).substr(1)) {
      move->temporaries.push_back(to + "/" + name);
    } else if (!is_own && names.count(name) == 0) {
      return Status::InvalidArgument(
          to, "has files that the database does not know, such as " + name +
                  ": another database may live there. Name an empty directory");
    }
  }
  return Status::OK();
}

Status PathMoveSurvey::AddStale(const PathMoveMark::Move& marked,
                                const Listing& listing, Move* move) const {
  const PathMoveRequest& request = move->planned->request;
  const std::pair<const Names*, const std::string*> places[] = {
      {&listing.source, &request.from}, {&listing.destination, &request.to}};
  for (const auto& [name, marked_size] : marked.files) {
    for (const auto& [names, directory] : places) {
      if (plan_->Knows(name) || names->count(name) == 0) {
        continue;
      }
      const std::string fname = *directory + "/" + name;
      uint64_t size = 0;
      const IOStatus s = fs_->GetFileSize(fname, IOOptions(), &size, nullptr);
      if (!s.ok()) {
        return s;
      }
      // Another size: the file is not the one that was to be moved.
      if (size == marked_size) {
        move->stale.push_back(fname);
        move->num_unknown -= names == &listing.source ? 1 : 0;
      }
    }
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
