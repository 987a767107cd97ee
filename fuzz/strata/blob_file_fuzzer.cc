//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Reads the values of a damaged blob file of version 2 through BlobFileReader,
// one by one and several at once.
//
// The promise: a read by name returns the value that was written under the
// name, or Corruption. With the checksums put right after the damage, or
// without verification, a read still returns only the bytes of a record that
// has the requested name. blob_record_index_fuzzer.cc does the same for the
// record index of the file.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/mapped_record_name.h"
#include "db/blob/blob_contents.h"
#include "db/blob/blob_file_reader.h"
#include "db/blob/blob_read_request.h"
#include "db/blob_v2/blob_file_v2_test_util.h"
#include "db/blob_v2/blob_format_v2.h"
#include "env/mock_env.h"
#include "file/filename.h"
#include "fuzz/strata/blob_repair.h"
#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "options/cf_options.h"
#include "rocksdb/options.h"
#include "util/autovector.h"

namespace ROCKSDB_NAMESPACE {
namespace {

using blob_v2_test::FileMaker;
using fuzz::FuzzInput;
using fuzz::Require;

constexpr uint64_t kHashSeed = 99;
constexpr uint64_t kFileNumber = 12;
constexpr size_t kMaxRecords = 8;
const char kDirectory[] = "/fuzz";

// A record as it was written, or another place in the file that a reader may
// be sent to.
struct Place {
  std::string name;  // MappedRecordName
  uint64_t key_size = 0;
  uint64_t record_offset = 0;
  uint64_t value_size = 0;

  uint64_t value_offset() const {
    return record_offset + BlobRecordV2::kHeaderSize + key_size;
  }
  // Fails for a record that is not inside the file.
  bool GetBytes(const std::string& file, Slice* key, Slice* value) const {
    if (value_offset() > file.size() ||
        value_size > file.size() - value_offset()) {
      return false;
    }
    *key = Slice(file.data() + record_offset + BlobRecordV2::kHeaderSize,
                 static_cast<size_t>(key_size));
    *value =
        Slice(file.data() + value_offset(), static_cast<size_t>(value_size));
    return true;
  }
};

class Fuzzer {
 public:
  Fuzzer() : env_(MockEnv::Create(Env::Default())) {
    Require(env_->CreateDirIfMissing(kDirectory).ok());
    options_.env = env_.get();
    options_.cf_paths.emplace_back(kDirectory, 0);
    ioptions_ = std::make_unique<ImmutableOptions>(options_);
  }

  void Run(FuzzInput* input) {
    written_.clear();
    FileMaker maker(kHashSeed);
    std::vector<Place> places = AddRecords(input, &maker);
    maker.Finish();
    file_ = maker.bytes();
    repaired_ = input->Byte() % 4 == 0;
    read_options_.verify_checksums = input->Byte() % 4 != 0;
    const size_t num_written = places.size();
    AddOtherPlaces(input, &places);
    fuzz::Damage(input, /*may_resize=*/true, &file_);
    if (repaired_) {
      for (size_t i = 0; i < num_written; ++i) {
        fuzz::RepairBlobRecord(static_cast<size_t>(places[i].record_offset),
                               &file_);
      }
      fuzz::RepairBlobFileEnds(&file_);
    }
    const bool intact = file_ == maker.bytes();
    Require(WriteStringToFile(env_.get(), file_,
                              BlobFileName(kDirectory, kFileNumber))
                .ok());

    std::unique_ptr<BlobFileReader> reader;
    const Status s = BlobFileReader::Create(
        *ioptions_, read_options_, FileOptions(), /*column_family_id=*/0,
        /*blob_file_read_hist=*/nullptr, kFileNumber, /*io_tracer=*/nullptr,
        &reader);
    if (!s.ok()) {
      Require(!intact);
      Require(s.IsCorruption() || s.IsNotSupported());
      return;
    }
    std::vector<Status> results;
    for (const Place& place : places) {
      results.push_back(Get(*reader, place));
      // What was written is found in an intact file.
      Require(!intact || results.size() > num_written || results.back().ok());
    }
    std::vector<Place> written(places.begin(), places.begin() + num_written);
    results.resize(num_written);
    MultiGet(*reader, written, results);
  }

 private:
  // Writes records of the input's choice. Keys are often equal, so that names
  // differ only in sequence number and birth.
  std::vector<Place> AddRecords(FuzzInput* input, FileMaker* maker) {
    std::vector<Place> places;
    const size_t num_records = input->Byte() % (kMaxRecords + 1);
    for (size_t i = 0; i < num_records; ++i) {
      const std::string key = input->Key(2);
      const SequenceNumber seq = input->Byte();
      // No two records have the same name, or a value of the same size. The
      // checksum of the value does not cover the header, so of two records with
      // the same key and the same sizes one could get the other one's value and
      // its checksum, as long as damage has exactly these limits.
      const uint64_t birth = (input->Number() & ~uint64_t{15}) | i;
      const std::string value((input->Byte() % 16) * kMaxRecords + i,
                              static_cast<char>('A' + i));
      Place place;
      MappedRecordName::Encode(key, seq, birth, &place.name);
      maker->Add(key, value, seq, birth, input->Bool());
      Require(maker->status().ok());
      const AddressMap::Record& record = maker->records().back();
      place.key_size = key.size();
      place.record_offset = record.offset;
      place.value_size = value.size();
      places.push_back(place);
      written_[place.name] = value;
    }
    return places;
  }

  // Adds places where no such record was written, as a damaged map would have
  // them.
  static void AddOtherPlaces(FuzzInput* input, std::vector<Place>* places) {
    const size_t num_written = places->size();
    for (size_t i = 0; i < num_written; ++i) {
      Place other = (*places)[input->Byte() % num_written];
      other.name = (*places)[i].name;
      other.key_size = (*places)[i].key_size;
      places->push_back(other);
    }
    Place other;
    const std::string key = input->Key();
    const SequenceNumber seq = input->Byte();
    MappedRecordName::Encode(key, seq, input->Number(), &other.name);
    other.key_size = MappedRecordName::UserKey(other.name).size();
    other.record_offset = input->Below(65536);
    other.value_size = input->Below(65536);
    places->push_back(other);
  }

  Status Get(const BlobFileReader& reader, const Place& place) {
    std::unique_ptr<BlobContents> contents;
    uint64_t bytes_read = 0;
    const Status s = reader.GetBlob(
        read_options_, place.name, place.value_offset(), place.value_size,
        kNoCompression, /*prefetch_buffer=*/nullptr, /*allocator=*/nullptr,
        &contents, &bytes_read);
    if (s.ok()) {
      Require(contents != nullptr);
      Check(place, contents->data());
    } else {
      Require(s.IsCorruption());
      Require(contents == nullptr);
    }
    return s;
  }

  // Reads all places at once. The results must be those of single reads.
  void MultiGet(const BlobFileReader& reader, const std::vector<Place>& places,
                const std::vector<Status>& expected) {
    if (places.empty()) {
      return;
    }
    std::vector<Slice> names(places.size());
    std::vector<Status> statuses(places.size());
    std::vector<BlobReadRequest> requests(places.size());
    autovector<std::pair<BlobReadRequest*, std::unique_ptr<BlobContents>>> all;
    for (size_t i = 0; i < places.size(); ++i) {
      names[i] = places[i].name;
      requests[i] = BlobReadRequest(names[i], places[i].value_offset(),
                                    static_cast<size_t>(places[i].value_size),
                                    kNoCompression,
                                    /*_result=*/nullptr, &statuses[i]);
      all.emplace_back(&requests[i], nullptr);
    }
    uint64_t bytes_read = 0;
    reader.MultiGetBlob(read_options_, /*allocator=*/nullptr, all, &bytes_read);
    for (size_t i = 0; i < places.size(); ++i) {
      Require(statuses[i].code() == expected[i].code());
      if (statuses[i].ok()) {
        Require(all[i].second != nullptr);
        Check(places[i], all[i].second->data());
      }
    }
  }

  // Judges a value that was read.
  void Check(const Place& place, const Slice& value) const {
    if (IsBlobFileV2(file_)) {
      Slice key_in_file;
      Slice value_in_file;
      Require(place.GetBytes(file_, &key_in_file, &value_in_file));
      Require(key_in_file == MappedRecordName::UserKey(place.name));
      Require(value == value_in_file);
    }
    if (!repaired_ && read_options_.verify_checksums) {
      const auto found = written_.find(place.name);
      Require(found != written_.end());
      Require(value == Slice(found->second));
    }
  }

  const std::unique_ptr<Env> env_;
  Options options_;
  std::unique_ptr<ImmutableOptions> ioptions_;

  // The members below belong to the current input.
  ReadOptions read_options_;
  std::map<std::string, std::string> written_;  // value by name
  std::string file_;
  bool repaired_ = false;
};

void FuzzBlobFile(FuzzInput* input) {
  static auto* const fuzzer = new Fuzzer;
  fuzzer->Run(input);
}

}  // namespace
}  // namespace ROCKSDB_NAMESPACE

STRATA_FUZZ_TARGET(blob_file, ROCKSDB_NAMESPACE::FuzzBlobFile)
