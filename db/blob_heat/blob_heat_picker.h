//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "db/blob_gc/blob_gc_picker.h"
#include "db/blob_heat/frequency_sketch.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Decides what is done next for the hot values of a column family
// (blob_hot_bytes), and which of them lose their place:
//
//   drain    A hot file is on another path than blob_hot_path_id, or there is
//            no budget for it, as it was reduced: all its values go to their
//            home path. The oldest files are the first.
//   promote  Values wait, and there is room for them: they are copied to a hot
//            file.
//   demote   Values wait, and there is no room: of the oldest hot file, the
//            values that are read least go to their home path, and the others
//            to another hot file. A file with too few such values stays as it
//            is, and the next one has its turn. So values that are still read
//            stay, as in the CLOCK algorithm.
//   give up  Values wait, and all hot files had their turn.
//
// Garbage in hot files is collected like that in others (BlobGcPicker).
//
// Stateless and lock-free: all functions depend only on their arguments.
class BlobHeatPicker {
 public:
  using File = BlobGcPicker::File;

  struct Options {
    uint64_t budget = 0;   // bytes; 0: no values are hot
    uint32_t path_id = 0;  // names an existing path
    // Values wait, and no job is promoting or demoting: bytes of the values.
    uint64_t wanted = 0;
    // BlobHeat::hand() and lacks_room().
    uint64_t hand = 0;
    bool lacks_room = false;
  };

  enum class Kind : uint8_t { kNone, kDrain, kPromote, kDemote, kGiveUp };

  struct Job {
    Kind kind = Kind::kNone;
    // The file of kDrain and kDemote.
    File file;
    // Bytes that kPromote may write.
    uint64_t room = 0;
  };

  // The number of bytes that values have by their estimates.
  using Histogram =
      std::array<uint64_t, size_t{FrequencySketch::kMaxEstimate} + 1>;

  // A job that demotes takes at least 1 / kMinDemotedPart of a file, if there
  // are as many values that are not read as often as the sketch can count.
  static constexpr uint64_t kMinDemotedPart = 4;
  // The room of a file is used only if it is at least 1 / kMinRoomPart of the
  // budget, or enough for all that waits.
  static constexpr uint64_t kMinRoomPart = 64;

  BlobHeatPicker() = delete;

  // Returns true if the file is hot and must not stay so.
  // REQUIRES: file.path_id is that of an existing path.
  static bool MustDrain(const Options& options, const File& file);

  // Returns the bytes of the hot files.
  static uint64_t HotBytes(const std::vector<File>& files);

  // files: all files of the column family, and those that jobs are about to
  // add. The latter may be missing if wanted is 0: files that exist are drained
  // for the space that they take, not for what edits are adding. The budget
  // holds for an edit before it is written (BlobHeat::Reserve()).
  static Job Pick(const Options& options, const std::vector<File>& files);

  // Returns the smallest estimate with which a value stays hot.
  static uint32_t LeastKept(const Histogram& bytes);
};

}  // namespace ROCKSDB_NAMESPACE
