//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Loads arbitrary bytes as a checkpoint of an address map. Checksums would
// stop nearly all of them at the first block, so the other kind of input is
// only what the blocks hold, in an image whose checksums are right.
//
// What loads must be a sound map, and must be the same after writing and
// loading it again.

#include <cstdint>
#include <memory>
#include <string>

#include "db/address_map/address_map_checkpoint.h"
#include "env/mock_env.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "util/coding.h"
#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using fuzz::FuzzInput;
using fuzz::Require;

const char kPath[] = "/fuzz/000001.dbtmp";
const char kTempPath[] = "/fuzz/000002.dbtmp";

class ImageBuilder {
 public:
  // The identity is all zero.
  explicit ImageBuilder(uint64_t num_entries) {
    image_ = "STRATMAP";
    PutFixed32(&image_, 1);
    image_.append(44, '\0');
    PutFixed64(&image_, num_entries);
    checksum_ = crc32c::Mask(crc32c::Value(image_.data(), image_.size()));
    PutFixed32(&image_, checksum_);
  }
  void AddBlock(const std::string& payload) {
    char place[12];
    EncodeFixed32(place, checksum_);
    EncodeFixed64(place + 4, image_.size());
    const size_t begin = image_.size();
    PutFixed32(&image_, static_cast<uint32_t>(payload.size()));
    image_ += payload;
    PutFixed32(&image_, crc32c::Mask(crc32c::Extend(
                            crc32c::Value(place, sizeof(place)),
                            image_.data() + begin, image_.size() - begin)));
  }
  void EndSection(uint32_t part, bool has_part, uint64_t count) {
    if (has_part) {
      PutVarint32(&index_, part);
    }
    PutVarint64(&index_, image_.size() - section_begin_);
    PutVarint64(&index_, count);
    section_begin_ = image_.size();
  }
  std::string Finish() {
    const uint64_t offset = image_.size();
    AddBlock(index_);
    PutFixed64(&image_, offset);
    return image_ + "STRATMAP";
  }

 private:
  std::string image_;
  std::string index_;
  uint32_t checksum_ = 0;
  size_t section_begin_ = 68;
};

std::string Build(FuzzInput* in) {
  const uint64_t num_entries = in->Below(1000);
  ImageBuilder image(num_entries);
  const uint64_t num_files = in->Byte();
  image.AddBlock(in->Bytes(in->Below(1000)));
  image.EndSection(0, false, num_files);
  while (!in->empty()) {
    const uint32_t part = in->Below(AddressMap::kNumParts + 1);
    const uint64_t count = in->Below(1000);
    for (int blocks = in->Byte() % 3; blocks >= 0; --blocks) {
      image.AddBlock(in->Bytes(in->Below(3000)));
    }
    image.EndSection(part, true, count);
  }
  return image.Finish();
}

class Fuzzer {
 public:
  Fuzzer() : fs_(std::make_shared<MockFileSystem>(SystemClock::Default())) {
    io_.fs = fs_.get();
    Require(fs_->CreateDir("/fuzz", IOOptions(), nullptr).ok());
    Require(fs_->NewDirectory("/fuzz", IOOptions(), &directory_, nullptr).ok());
  }

  void Run(const std::string& image) {
    Require(
        WriteStringToFile(fs_.get(), image, kPath, false, IOOptions()).ok());
    BlobFileSlotTable files;
    AddressMap map(AddressMap::Options(), &files);
    Status s = Load(&map);
    if (!s.ok()) {
      Require(s.IsCorruption() || s.IsExpired());
      return;
    }
    Require(map.TEST_Check().ok());
    const std::string written = Write(map);
    BlobFileSlotTable files_again;
    AddressMap map_again(AddressMap::Options(), &files_again);
    Require(Load(&map_again).ok());
    Require(map_again.NumEntries() == map.NumEntries());
    Require(Write(map_again) == written);
  }

 private:
  Status Load(AddressMap* map) {
    return AddressMapCheckpoint::Load(io_, kPath, identity_, 1, map);
  }
  std::string Write(const AddressMap& map) {
    Require(AddressMapCheckpoint::Write(io_, kTempPath, kPath, directory_.get(),
                                        identity_, map)
                .ok());
    std::string bytes;
    Require(ReadFileToString(fs_.get(), kPath, &bytes).ok());
    return bytes;
  }

  std::shared_ptr<MockFileSystem> fs_;
  std::unique_ptr<FSDirectory> directory_;
  AddressMapCheckpoint::Io io_;
  const AddressMapCheckpoint::Identity identity_;
};

void FuzzCheckpoint(FuzzInput* input) {
  static auto* const fuzzer = new Fuzzer;
  const bool raw = input->Byte() % 4 == 0;
  fuzzer->Run(raw ? input->Rest() : Build(input));
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(address_map_checkpoint, ROCKSDB_NAMESPACE::FuzzCheckpoint)
