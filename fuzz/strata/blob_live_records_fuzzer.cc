//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Reads the live records of a damaged blob file of version 2, as a garbage
// collection does, which would make a wrong value permanent.
//
// The promise: each record that is returned is one that the address map names,
// with the key and the value that were written, and in the order of the file.
// The status is OK at the end only if all of these records were returned,
// whichever seed the hashes of the record index have. With checksums that were
// put right after the damage, a record still has the name and the place that
// the map says.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map.h"
#include "db/address_map/blob_file_slot_table.h"
#include "db/blob_gc/blob_live_records.h"
#include "db/blob_v2/blob_file_v2_test_util.h"
#include "db/blob_v2/blob_format_v2.h"
#include "fuzz/strata/blob_repair.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using blob_v2_test::FileMaker;
using blob_v2_test::OpenBytes;
using fuzz::FuzzInput;
using fuzz::Require;

constexpr uint64_t kHashSeed = 99;
constexpr size_t kMaxRecords = 24;

struct Written {
  std::string key;
  std::string value;
  AddressMap::Record record;  // with the hash of the column family
  bool is_live = false;
};

// Adds records of the input's choice, each with a key of its own.
std::vector<Written> AddRecords(FuzzInput* input, FileMaker* maker) {
  std::vector<Written> all;
  const size_t num_records = input->Byte() % (kMaxRecords + 1);
  for (size_t i = 0; i < num_records; ++i) {
    Written written;
    written.key = static_cast<char>('A' + i) + input->Key(2);
    written.value = std::string(input->Byte() * 4, static_cast<char>(i));
    const uint8_t how = input->Byte();
    const SequenceNumber seq = input->Byte();
    const uint64_t birth = input->Number();
    maker->Add(written.key, written.value, seq, birth, how % 2 != 0);
    Require(maker->status().ok());
    written.record = maker->records().back();
    written.record.name.key = MapKeyHash::Of(written.key, kHashSeed);
    written.is_live = how % 4 < 2;
    all.push_back(written);
  }
  return all;
}

// Enters the live records into the map.
uint32_t Enter(const std::vector<Written>& all, uint64_t file_size,
               BlobFileSlotTable* files, AddressMap* map) {
  const uint32_t slot = files->Add(12, 0, kNoCompression);
  Require(files->Publish(slot, file_size));
  std::vector<AddressMap::Record> live;
  for (const Written& written : all) {
    if (written.is_live) {
      live.push_back(written.record);
    }
  }
  Require(map->InsertBatch(slot, live.data(), live.size()).ok());
  Require(files->Commit(slot));
  return slot;
}

void FuzzBlobLiveRecords(FuzzInput* input) {
  // A file that a repair has left may have another seed.
  const bool other_seed = input->Byte() % 4 == 1;
  FileMaker maker(kHashSeed + (other_seed ? 1 : 0));
  const std::vector<Written> all = AddRecords(input, &maker);
  maker.Finish();
  BlobFileSlotTable files;
  AddressMap map(AddressMap::Options(), &files);
  const uint32_t slot = Enter(all, maker.bytes().size(), &files, &map);

  BlobLiveRecords::Options options;
  options.read_size = 1 + input->Below(4096);
  options.max_gap = input->Below(4096);
  const bool repaired = input->Byte() % 4 == 1;
  std::string bytes = maker.bytes();
  fuzz::Damage(input, /*may_resize=*/true, &bytes);
  if (repaired) {
    for (const Written& written : all) {
      fuzz::RepairBlobRecord(written.record.offset, &bytes);
    }
    fuzz::RepairBlobFileEnds(&bytes);
  }
  const bool intact = bytes == maker.bytes();

  const std::unique_ptr<RandomAccessFileReader> file = OpenBytes(bytes);
  BlobFileLayoutV2 layout;
  Status s =
      BlobFileLayoutV2::Read(file.get(), IOOptions(), bytes.size(), &layout);
  if (!s.ok()) {
    Require(!intact);
    Require(s.IsCorruption() || s.IsNotSupported());
    return;
  }
  BlobLiveRecords records(&map, kHashSeed, slot, file.get(), layout, options);
  bool is_complete = true;
  auto next = all.begin();
  for (s = records.Next(); records.Valid(); s = records.Next()) {
    Require(s.ok());
    // Records in between must be dead, or were not returned.
    while (next != all.end() &&
           next->record.offset < records.address().offset) {
      is_complete = is_complete && !next->is_live;
      ++next;
    }
    Require(next != all.end() && next->is_live);
    Require(records.address() ==
            MapAddress{slot, next->record.offset, next->record.size});
    Require(records.name().key == next->record.name.key);
    Require(records.name().seq == next->record.name.seq);
    Require(records.name().birth == next->record.name.birth);
    Require(records.is_direct() == next->record.direct);
    Require(records.key() == Slice(next->key));
    Require(repaired || records.value() == Slice(next->value));
    ++next;
  }
  if (!s.ok()) {
    Require(!intact);
    Require(s.IsCorruption());
    return;
  }
  for (; next != all.end(); ++next) {
    is_complete = is_complete && !next->is_live;
  }
  Require(is_complete || (repaired && !intact));
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(blob_live_records, ROCKSDB_NAMESPACE::FuzzBlobLiveRecords)
