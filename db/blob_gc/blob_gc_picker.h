//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "db/blob_heat/hot_mark.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class Comparator;

// Decides whether blob files of a column family with an address map are garbage
// collected, and picks these files. Collecting files means to copy their live
// values to new files and to delete the old files along with their garbage.
//
// When: The space amplification is the size of the files divided by the size
// that they would have without garbage. A job needs space for its copies while
// the old files still exist, and flushes continue meanwhile. So collection
// begins while the space amplification is still below the limit by that much.
//
// Which: Collecting a file with a fraction u of live data frees 1 - u of the
// file, at the cost of reading and writing u. A file that is old and still has
// live values will keep most of them, so the space that is freed there stays
// free for long. The score is (1 - u) / (1 + u) * sqrt(age). This follows the
// cost-benefit policy of the log-structured file system (Rosenblum and
// Ousterhout, 1992), whose linear age would delay the collection of young files
// too much under uniform overwrites. The age is measured in file numbers.
// Values that were copied once (survivors) go to other files than flushed ones,
// as the two become garbage at different rates.
//
// Among the files whose scores are at least half of the best one, those are
// preferred that overlap the best one in keys. A job writes its survivors in
// key order, to several files (NumPieces()). So values that are copied again
// and again come to files of ever fewer keys, and a scan finds them in fewer
// places, for about the same number of copied bytes.
//
// Invariant: The files that Pick() picks take less space after the collection.
//
// Small files: Many small flushes leave many files, each of which costs an open
// file, memory and a record in the MANIFEST. Files that are much smaller than a
// full file are merged even if they have no garbage. They are grouped into
// tiers by size, one tier for each factor of kTierFactor, and a tier is merged
// when it has kTierFactor files. So a value is copied at most once per tier,
// and values that are soon overwritten are dead before their file is merged.
// A file is also full at the limits of the format, whatever the options say:
// 4 GiB of records, or RecordIndexBuilder::kMaxEncodedSize of index.
//
// Invariant: The files that PickSmall() picks are more than their copies, so
// merging outputs again comes to an end. Two small files fit into one file,
// even if the merged index, in which neighbors have less in common, is larger
// than both indexes.
//
// Stateless and lock-free: all functions depend only on their arguments.
class BlobGcPicker {
 public:
  struct KeyRange {
    // User keys.
    std::string smallest;
    std::string largest;
  };

  struct File {
    uint64_t number = 0;
    uint64_t size = 0;        // bytes on disk
    uint64_t index_size = 0;  // bytes of the record index, a part of size
    // Bytes that the file would have without garbage; 0 if it has no live
    // value.
    uint64_t live_size = 0;
    uint32_t path_id = 0;
    // Files with different marks are of different kinds: a job takes files of
    // one kind.
    HotMark hot;
    // True if the file was written by a garbage collection.
    bool is_survivor = false;
    // True if a job is collecting the file, or it must not be collected now.
    bool is_busy = false;
    // nullptr if unknown; then the file counts as overlapping all others.
    const KeyRange* keys = nullptr;
  };

  struct Options {
    // Limit of the space amplification, from 1 to kMaxLimit.
    double space_amp_limit = 1.0;
    // Approximate number of bytes that one flush writes. A flush may happen
    // while a job runs.
    uint64_t flush_size = 0;
    // Maximum number of bytes that a job copies, but it copies at least one
    // file.
    uint64_t max_copied = 0;
    // A job may copy this many bytes regardless of space_amp_limit.
    uint64_t min_copied = 0;
    // Maximum number of concurrent jobs.
    int max_jobs = 1;
    // The next file number of the DB.
    uint64_t next_file_number = 0;
    // Size in bytes of a full file by the options; the limits of the format may
    // be lower. 0 means that no file counts as small.
    uint64_t file_size = 0;
    // Number of bytes that are to be free below space_amp_limit, for a job that
    // puts values into key order (SortRoom()).
    uint64_t wanted_room = 0;
    // Compares user keys. May be nullptr if no file has KeyRanges.
    const Comparator* comparator = nullptr;
    // Merge small files as soon as there are two, whatever their sizes and
    // space_amp_limit are. Hot files stay as they are: values that are read
    // less are taken from them file by file.
    bool merge_all_small = false;
  };

  struct Space {
    uint64_t on_disk = 0;
    uint64_t live = 0;

    // 1 if there is no garbage, even if there are no values; infinity if there
    // is only garbage.
    double Amplification() const;
  };

  struct Job {
    std::vector<uint64_t> files;  // empty if there is nothing to do
    uint64_t size = 0;
    uint64_t live_size = 0;
    uint32_t path_id = 0;
    HotMark hot;
  };

  BlobGcPicker() = delete;

  // copies: bytes that running jobs have written to files that they will add.
  static Space SpaceOf(const std::vector<File>& files, uint64_t copies);

  // Returns the maximum number of bytes that one job copies: at most a
  // sixteenth of the space that the limit leaves for garbage, and an eighth for
  // all jobs together, because the copied values exist twice until a job ends.
  static uint64_t MaxCopied(const Options& options, const Space& space);

  // Returns the number of bytes of garbage in excess of what the limit, minus
  // the space that jobs and flushes need meanwhile, allows. 0 means that no
  // collection is needed. Busy files count as if they were already collected.
  static uint64_t Excess(const Options& options,
                         const std::vector<File>& files);

  // Returns how many bytes a job that puts values into key order may copy now
  // below the limit. What it copies becomes garbage in the old files.
  static uint64_t SortRoom(const Options& options,
                           const std::vector<File>& files);
  // Returns how many bytes such a job should have: the fewer there are, the
  // more often files are collected meanwhile.
  static uint64_t WantedSortRoom(const Options& options,
                                 const std::vector<File>& files);

  // Returns the best files for one job if Excess() is not 0.
  static Job Pick(const Options& options, const std::vector<File>& files);

  // Returns the number of equal files that a job writes: kPieces, or more if
  // these would have more than 1 / kPieces of a full file, or fewer if they
  // would be small.
  // live_size: that of the job. file_size: that of a full file.
  static uint64_t NumPieces(uint64_t live_size, uint64_t file_size);

  // Returns small files for one job that merges them, if there are enough.
  static Job PickSmall(const Options& options, const std::vector<File>& files);

  // Returns files that flushes have written, for a job that merges them so that
  // scans find their values in fewer places: the oldest ones, at least
  // kMinWide. max_bytes: limit of the sum of the live sizes.
  static Job PickWide(const std::vector<File>& files, uint64_t max_bytes);

  // Maximum number of files of one job.
  static constexpr size_t kMaxFiles = 32;
  // Minimum number of files of PickWide(): fewer would be copied for little.
  static constexpr size_t kMinWide = 8;
  // A file is small if its size and its index are below 1 / kSmallPart of the
  // largest ones.
  static constexpr uint64_t kSmallPart = 8;
  // The more pieces a job writes, the fewer places a scan finds, and the more
  // files there are. docs/address-map.md has the figures.
  static constexpr uint64_t kPieces = 4;
  // The sizes of files in one tier differ by less than this factor, and a tier
  // with this many files is merged.
  static constexpr uint64_t kTierFactor = 16;
  // Small files are not merged yet if a job could merge only fewer files than
  // this and its output would still be a small file. This many files may be
  // merged whatever Options::max_copied is.
  static constexpr size_t kMinMerged = 4;
  // Maximum of Options::space_amp_limit.
  static constexpr double kMaxLimit = 1000.0;

 private:
  static double Score(const File& file, uint64_t next_file_number);
  static bool Overlap(const Comparator* comparator, const File& a,
                      const File& b);
};

}  // namespace ROCKSDB_NAMESPACE
