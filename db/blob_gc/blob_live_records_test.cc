//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/blob_gc/blob_live_records.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/blob_v2/blob_file_v2_test_util.h"
#include "file/random_access_file_reader.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using blob_v2_test::BytesFile;
using blob_v2_test::FileMaker;

class BlobLiveRecordsTest : public testing::Test {
 protected:
  static constexpr uint64_t kSeed = 1234;

  struct Written {
    std::string key;
    std::string value;
    MapName name;
    MapAddress address;
  };

  BlobLiveRecordsTest() : map_(AddressMap::Options(), &files_) {}

  void Add(const std::string& key, const std::string& value, SequenceNumber seq,
           uint64_t birth, bool direct) {
    maker_->Add(key, value, seq, birth, direct);
    ASSERT_OK(maker_->status());
    Written w;
    w.key = key;
    w.value = value;
    w.name = MapName{MapKeyHash::Of(key, kSeed), seq, birth};
    w.address.offset = maker_->records().back().offset;
    w.address.size = maker_->records().back().size;
    written_.push_back(w);
  }

  // Writes a file with n records and enters the records that `keep` selects
  // into the map.
  void Make(size_t n, const std::function<bool(size_t)>& keep,
            uint64_t file_seed = kSeed) {
    maker_ = std::make_unique<FileMaker>(file_seed);
    Random rnd(static_cast<int>(n));
    for (size_t i = 0; i < n; ++i) {
      char key[32];
      snprintf(key, sizeof(key), "%08zu", i);
      Add(key, rnd.RandomString(static_cast<int>(min_value_size_ + i % 100)),
          100 + i, i % 3 == 0 ? 12 : 0, i % 2 == 0);
    }
    maker_->Finish();
    slot_ = files_.Add(12, 0, kNoCompression);
    ASSERT_TRUE(files_.Publish(slot_, maker_->bytes().size()));
    std::vector<AddressMap::Record> records;
    for (size_t i = 0; i < n; ++i) {
      written_[i].address.slot = slot_;
      if (keep(i)) {
        AddressMap::Record record;
        record.name = written_[i].name;
        record.offset = written_[i].address.offset;
        record.size = written_[i].address.size;
        record.direct = i % 2 == 0;
        records.push_back(record);
        expected_.push_back(i);
      }
    }
    ASSERT_OK(map_.InsertBatch(slot_, records.data(), records.size()));
    ASSERT_TRUE(files_.Commit(slot_));
  }

  void Open(const std::string& bytes) {
    auto file = std::make_unique<BytesFile>(bytes);
    file_ = file.get();
    reader_ = std::make_unique<RandomAccessFileReader>(std::move(file),
                                                       "dir/000012.blob");
    records_ = std::make_unique<BlobLiveRecords>(
        &map_, kSeed, slot_, reader_.get(), maker_->layout(), options_);
  }

  // Reads to the end, checks each record and collects the record numbers.
  Status ReadAll(std::vector<size_t>* numbers) {
    numbers->clear();
    for (;;) {
      const Status s = records_->Next();
      if (!s.ok() || !records_->Valid()) {
        EXPECT_FALSE(records_->Valid());
        return s;
      }
      const size_t i = std::stoul(records_->key().ToString());
      const Written& w = written_.at(i);
      EXPECT_EQ(w.key, records_->key());
      EXPECT_EQ(w.value, records_->value());
      EXPECT_TRUE(w.name.key == records_->name().key);
      EXPECT_EQ(w.name.seq, records_->name().seq);
      EXPECT_EQ(w.name.birth, records_->name().birth);
      EXPECT_TRUE(w.address == records_->address());
      EXPECT_EQ(i % 2 == 0, records_->is_direct());
      numbers->push_back(i);
    }
  }

  // Checks that reading fails at the place of the record.
  void ExpectCorruptionAt(const MapAddress& address) {
    std::vector<size_t> found;
    const Status s = ReadAll(&found);
    ASSERT_TRUE(s.IsCorruption()) << s.ToString();
    ASSERT_NE(std::string::npos,
              s.ToString().find("000012.blob at offset " +
                                std::to_string(address.offset)))
        << s.ToString();
  }

  void CheckRecordInThePlaceOfAnother(uint64_t file_seed) {
    Make(
        200, [](size_t i) { return i != 120; }, file_seed);
    // The record that is written over the other is garbage, then live.
    for (const auto& [other, victim] :
         {std::pair<size_t, size_t>{120, 20}, {140, 40}}) {
      const MapAddress from = written_[other].address;
      const MapAddress to = written_[victim].address;
      ASSERT_EQ(from.size, to.size);
      std::string bytes = maker_->bytes();
      bytes.replace(to.offset, to.size,
                    maker_->bytes().substr(from.offset, from.size));
      Open(bytes);
      ExpectCorruptionAt(to);
    }
  }

  BlobFileSlotTable files_;
  AddressMap map_;
  uint32_t slot_ = 0;
  std::unique_ptr<FileMaker> maker_;
  std::vector<Written> written_;
  std::vector<size_t> expected_;
  size_t min_value_size_ = 1;
  BlobLiveRecords::Options options_;
  BytesFile* file_ = nullptr;
  std::unique_ptr<RandomAccessFileReader> reader_;
  std::unique_ptr<BlobLiveRecords> records_;
};

TEST_F(BlobLiveRecordsTest, YieldsAllLiveRecords) {
  Make(3000, [](size_t) { return true; });
  Open(maker_->bytes());
  std::vector<size_t> found;
  ASSERT_OK(ReadAll(&found));
  ASSERT_EQ(expected_, found);
  // Next() stays at the end.
  ASSERT_OK(records_->Next());
  ASSERT_FALSE(records_->Valid());
}

TEST_F(BlobLiveRecordsTest, ReadsNothingWithoutLiveRecords) {
  Make(3000, [](size_t) { return false; });
  Open(maker_->bytes());
  ASSERT_OK(records_->Next());
  ASSERT_FALSE(records_->Valid());
  ASSERT_EQ(0u, records_->bytes_read());
}

TEST_F(BlobLiveRecordsTest, YieldsTheLiveRecordsForAnyReadSizeAndGap) {
  Make(5000, [](size_t i) { return i % 7 < 2 || (i > 2000 && i < 2400); });
  for (const size_t read_size : {1u, 1000u, 1u << 20}) {
    for (const size_t max_gap : {0u, 300u, 1u << 20}) {
      options_.read_size = read_size;
      options_.max_gap = max_gap;
      Open(maker_->bytes());
      std::vector<size_t> found;
      ASSERT_OK(ReadAll(&found));
      ASSERT_EQ(expected_, found);
    }
  }
}

// ReadAhead() at any time changes nothing but the time of the reads.
TEST_F(BlobLiveRecordsTest, ReadingAheadChangesNothing) {
  Make(5000, [](size_t i) { return i % 7 < 2 || (i > 2000 && i < 2400); });
  options_.read_size = 3000;
  Open(maker_->bytes());
  std::vector<size_t> found;
  ASSERT_OK(ReadAll(&found));
  const uint64_t bytes_read = records_->bytes_read();
  for (const int one_in : {1, 3, 50}) {
    SCOPED_TRACE(one_in);
    Random rnd(one_in);
    Open(maker_->bytes());
    found.clear();
    for (;;) {
      if (rnd.OneIn(one_in)) {
        records_->ReadAhead();
        ASSERT_FALSE(records_->MayReadAhead());
        ASSERT_FALSE(records_->NeedsRead());
        const uint64_t before = records_->bytes_read();
        records_->ReadAhead();
        ASSERT_EQ(records_->bytes_read(), before);
      }
      const bool needs_read = records_->NeedsRead();
      const uint64_t before = records_->bytes_read();
      ASSERT_OK(records_->Next());
      ASSERT_TRUE(needs_read || records_->bytes_read() == before);
      if (!records_->Valid()) {
        break;
      }
      const size_t i = std::stoul(records_->key().ToString());
      ASSERT_EQ(written_.at(i).value, records_->value());
      found.push_back(i);
    }
    ASSERT_EQ(expected_, found);
    ASSERT_EQ(bytes_read, records_->bytes_read());
  }
}

// The records before those that could not be read ahead are returned.
TEST_F(BlobLiveRecordsTest, FailureToReadAheadIsReturnedInItsTurn) {
  Make(100, [](size_t) { return true; });
  options_.read_size = 3000;
  Open(maker_->bytes());
  std::vector<size_t> found;
  ASSERT_OK(records_->Next());
  file_->FailAfter(0);
  records_->ReadAhead();
  file_->FailAfter(-1);
  size_t n = 1;
  Status s;
  for (; (s = records_->Next()).ok(); ++n) {
    ASSERT_TRUE(records_->Valid());
    ASSERT_EQ(written_[n].key, records_->key());
  }
  ASSERT_TRUE(s.IsIOError()) << s.ToString();
  ASSERT_GT(n, 5u);
  ASSERT_LT(n, 100u);
  ASSERT_FALSE(records_->MayReadAhead());
  ASSERT_TRUE(records_->Next().IsIOError());
}

TEST_F(BlobLiveRecordsTest, SkipsLongGapsOfGarbage) {
  // The first two live records are far from each other, the last two are near.
  Make(1000, [](size_t i) { return i == 10 || i == 900 || i == 902; });
  options_.max_gap = 500;
  Open(maker_->bytes());
  std::vector<size_t> found;
  ASSERT_OK(ReadAll(&found));
  ASSERT_EQ(expected_, found);
  ASSERT_EQ(written_[10].address.size + written_[900].address.size +
                written_[901].address.size + written_[902].address.size,
            records_->bytes_read());
}

TEST_F(BlobLiveRecordsTest, ReadsRecordsLongerThanTheReadSize) {
  options_.read_size = 4096;
  min_value_size_ = 100000;
  Make(20, [](size_t i) { return i != 3; });
  Open(maker_->bytes());
  std::vector<size_t> found;
  ASSERT_OK(ReadAll(&found));
  ASSERT_EQ(expected_, found);
  ASSERT_LT(file_->longest_read(), 101000u);
}

TEST_F(BlobLiveRecordsTest, YieldsEntriesInAllModes) {
  Make(10, [](size_t i) { return i < 5; });
  // These entries changed their mode later; the map's mode is the current one.
  ASSERT_EQ(AddressMap::RenameResult::kRenamed, map_.Rename(written_[1].name));
  ASSERT_TRUE(map_.Demote(written_[2].name));
  // Supersede an entry by one that is not committed: the old value may become
  // direct again.
  const uint32_t other = files_.Add(14, 0, kNoCompression);
  ASSERT_TRUE(files_.Publish(other, 1000));
  AddressMap::Record record;
  record.name = written_[4].name;
  record.name.seq += 1000;
  record.offset = 40;
  record.size = 100;
  record.direct = true;
  ASSERT_OK(map_.InsertBatch(other, &record, 1));
  // One entry is moved to another file, one is removed.
  ASSERT_TRUE(map_.SwapAddress(written_[0].name, written_[0].address,
                               MapAddress{other, 200, 100}));
  ASSERT_TRUE(map_.Remove(written_[3].name));

  Open(maker_->bytes());
  std::vector<std::pair<size_t, bool>> found;
  for (;;) {
    ASSERT_OK(records_->Next());
    if (!records_->Valid()) {
      break;
    }
    found.emplace_back(std::stoul(records_->key().ToString()),
                       records_->is_direct());
  }
  const std::vector<std::pair<size_t, bool>> expected = {
      {1, true}, {2, false}, {4, true}};
  ASSERT_EQ(expected, found);
}

TEST_F(BlobLiveRecordsTest, ReadsFilesWithAnotherHashSeed) {
  Make(
      3000, [](size_t i) { return i % 5 == 0; }, /*file_seed=*/99);
  Open(maker_->bytes());
  std::vector<size_t> found;
  ASSERT_OK(ReadAll(&found));
  ASSERT_EQ(expected_, found);
}

TEST_F(BlobLiveRecordsTest, ReadErrorIsFinal) {
  Make(3000, [](size_t i) { return i % 5 == 0; });
  options_.read_size = 10000;
  for (int reads = 0;; ++reads) {
    Open(maker_->bytes());
    file_->FailAfter(reads);
    std::vector<size_t> found;
    const Status s = ReadAll(&found);
    if (s.ok()) {
      ASSERT_EQ(expected_, found);
      ASSERT_GT(reads, 5);
      break;
    }
    ASSERT_TRUE(s.IsIOError()) << s.ToString();
    ASSERT_LT(found.size(), expected_.size());
    // The error is returned even when reads succeed again.
    file_->FailAfter(-1);
    ASSERT_TRUE(records_->Next().IsIOError());
    ASSERT_FALSE(records_->Valid());
  }
}

// A damaged live record is reported with its offset and not returned; the
// records before it are returned.
TEST_F(BlobLiveRecordsTest, DamagedLiveRecordIsReported) {
  Make(200, [](size_t i) { return i % 2 == 0; });
  const size_t victim = 100;
  const MapAddress address = written_[victim].address;
  for (uint32_t at = 0; at < address.size; ++at) {
    std::string bytes = maker_->bytes();
    bytes[address.offset + at] ^= 0x20;
    Open(bytes);
    std::vector<size_t> found;
    const Status s = ReadAll(&found);
    ASSERT_TRUE(s.IsCorruption()) << at << " " << s.ToString();
    ASSERT_NE(std::string::npos,
              s.ToString().find("000012.blob at offset " +
                                std::to_string(address.offset)))
        << s.ToString();
    ASSERT_EQ(victim / 2, found.size());
  }
  // Damage in garbage is not noticed.
  std::string bytes = maker_->bytes();
  bytes[written_[victim + 1].address.offset + 20] ^= 1;
  Open(bytes);
  std::vector<size_t> found;
  ASSERT_OK(ReadAll(&found));
  ASSERT_EQ(expected_, found);
}

// A live record is not taken for garbage because another record, which is
// intact, is in its place.
TEST_F(BlobLiveRecordsTest, RecordInThePlaceOfAnotherIsReported) {
  CheckRecordInThePlaceOfAnother(kSeed);
}

// Only one part of the record's name is another one. The record is intact and
// as long as the one that it replaces.
TEST_F(BlobLiveRecordsTest, EachPartOfTheNameIsCompared) {
  Make(200, [](size_t) { return true; });
  const Written& victim = written_[50];
  const auto encode = [&](const std::string& key, SequenceNumber seq,
                          uint64_t birth) {
    BlobRecordV2 record;
    record.seq = seq;
    record.birth = birth;
    record.direct = true;
    std::string encoded;
    record.EncodeHeaderTo(key, victim.value, &encoded);
    return encoded + key + victim.value;
  };
  std::string other_key = victim.key;
  other_key.back() ^= 1;
  const auto open = [&](const std::string& record) {
    ASSERT_EQ(record.size(), victim.address.size);
    std::string bytes = maker_->bytes();
    bytes.replace(victim.address.offset, record.size(), record);
    Open(bytes);
  };
  const SequenceNumber seq = victim.name.seq;
  const uint64_t birth = victim.name.birth;
  open(encode(victim.key, seq, birth));
  std::vector<size_t> found;
  ASSERT_OK(ReadAll(&found));
  for (const std::string& record :
       {encode(other_key, seq, birth), encode(victim.key, seq + 1, birth),
        encode(victim.key, seq, birth + 1)}) {
    open(record);
    ExpectCorruptionAt(victim.address);
  }
}

TEST_F(BlobLiveRecordsTest,
       RecordInThePlaceOfAnotherIsReportedWithAnotherHashSeed) {
  CheckRecordInThePlaceOfAnother(/*file_seed=*/99);
}

// The checksum of a key covers the value, too. So only the record index shows
// that a key is damaged before the value is read.
TEST_F(BlobLiveRecordsTest, DamageIsReportedWithAnotherHashSeed) {
  Make(
      200, [](size_t i) { return i % 2 == 0; }, /*file_seed=*/99);
  const MapAddress address = written_[100].address;
  for (uint32_t at = 0; at < address.size; ++at) {
    std::string bytes = maker_->bytes();
    bytes[address.offset + at] ^= 0x20;
    Open(bytes);
    ExpectCorruptionAt(address);
  }
}

// A damaged index is restored from the records, also one with another seed.
TEST_F(BlobLiveRecordsTest, DamagedIndexWithAnotherHashSeedIsRestored) {
  Make(
      3000, [](size_t i) { return i % 5 == 0; }, /*file_seed=*/99);
  std::string bytes = maker_->bytes();
  bytes[maker_->index_offset() + 5000] ^= 1;
  Open(bytes);
  std::vector<size_t> found;
  ASSERT_OK(ReadAll(&found));
  ASSERT_EQ(expected_, found);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
