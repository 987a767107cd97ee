//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class FileSystem;

// Compares directories by their names. Only IsSameDirectory() looks at the file
// system, and resolves symbolic links.

// Returns the absolute name of a directory, in which no part is "." or ".." and
// no slash stands beside another one or at the end. Equal results mean the same
// directory.
// fs: may be nullptr; then a relative name stays relative.
std::string CleanDirectoryName(FileSystem* fs, const std::string& directory);

// Returns true if both names lead to one directory: they are the same when they
// are clean, or the file system says so, for example because one of them is a
// symbolic link. A directory that does not exist has no other name.
bool IsSameDirectory(FileSystem* fs, const std::string& a,
                     const std::string& b);

// Returns true if the directories are the same one, or if one of them is inside
// the other.
// REQUIRES: a, b are results of CleanDirectoryName()
bool DirectoriesOverlap(const std::string& a, const std::string& b);

// Returns those directories, as they are spelled, that are not among the
// others; one that is there twice, once. fs: as for CleanDirectoryName().
std::vector<std::string> DirectoriesNotAmong(
    FileSystem* fs, const std::vector<std::string>& directories,
    const std::vector<std::string>& others);

// Returns the directory that contains this directory or file; "." for a name
// without a directory.
// REQUIRES: name is "/", or does not end with a slash
std::string ParentDirectory(const std::string& name);

}  // namespace ROCKSDB_NAMESPACE
