//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/mapped_entry_stats.h"

#include "db/address_map/version_mapped_stats.h"
#include "db/version_edit.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "util/coding.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string Index(MappedBlobIndex::Mode mode, uint64_t birth = 0) {
  MappedBlobIndex index;
  index.mode = mode;
  index.birth = birth;
  std::string encoded;
  index.EncodeTo(&encoded);
  return encoded;
}

const std::string kDirectValue = Index(MappedBlobIndex::Mode::kDirect);
const std::string kVersionedValue =
    Index(MappedBlobIndex::Mode::kVersioned, 300);

// The metadata of a file without entries.
FileMetaData NewFile() {
  FileMetaData file;
  file.fd = FileDescriptor(7, 0, 1000, kMaxSequenceNumber, 0);
  file.epoch_number = 1;
  file.oldest_ancester_time = 1;
  file.file_creation_time = 1;
  return file;
}

void Add(FileMetaData* file, const std::string& user_key, SequenceNumber seq,
         ValueType type, const Slice& value = Slice("v")) {
  const InternalKey key(user_key, seq, type);
  ASSERT_OK(file->UpdateBoundaries(key.Encode(), value, seq, type));
}

std::string Encode(const FileMetaData& file) {
  VersionEdit edit;
  edit.SetColumnFamily(0);
  edit.AddFile(1, file);
  std::string encoded;
  EXPECT_TRUE(edit.EncodeTo(&encoded, 0));
  return encoded;
}

}  // namespace

class MappedEntryStatsTest : public testing::Test {};

// The statistics of a file without mapped entries are empty, and the file is
// encoded as in RocksDB.
TEST_F(MappedEntryStatsTest, WithoutMappedEntriesTheFileIsAsInRocksDB) {
  FileMetaData file = NewFile();
  Add(&file, "a", 30, kTypeValue);
  Add(&file, "b", 20, kTypeDeletion, "");
  const MappedEntryStats& mapped = file.blob_refs.mapped;
  EXPECT_FALSE(mapped.Any());
  EXPECT_EQ(mapped.PointCeiling(30), 31);
  EXPECT_EQ(mapped.LsmCeiling(30), 31);
  EXPECT_EQ(file.LargestReclaimable(), 30);
  EXPECT_EQ(mapped.DebugString(), "");

  FileMetaData stock = file;
  stock.blob_refs = BlobReferenceInfo();
  EXPECT_EQ(Encode(file), Encode(stock));
}

TEST_F(MappedEntryStatsTest, CeilingsIgnoreDirectEntries) {
  FileMetaData file = NewFile();
  const MappedEntryStats& mapped = file.blob_refs.mapped;
  Add(&file, "a", 50, kTypeBlobIndex, kDirectValue);
  EXPECT_EQ(file.oldest_blob_file_number, kInvalidBlobFileNumber);
  EXPECT_EQ(mapped.PointCeiling(50), 0);
  EXPECT_EQ(mapped.LsmCeiling(50), 0);
  EXPECT_EQ(file.LargestReclaimable(), 0);

  Add(&file, "b", 20, kTypeMerge, "m");
  EXPECT_EQ(mapped.PointCeiling(50), 21);
  EXPECT_EQ(file.LargestReclaimable(), 20);

  Add(&file, "c", 33, kTypeBlobIndex, kVersionedValue);
  EXPECT_EQ(mapped.PointCeiling(50), 34);
  EXPECT_EQ(file.LargestReclaimable(), 33);

  const InternalKeyComparator icmp(BytewiseComparator());
  file.UpdateBoundariesForRange(
      InternalKey("d", 40, kTypeRangeDeletion),
      InternalKey("e", kMaxSequenceNumber, kTypeRangeDeletion), 40, icmp);
  EXPECT_EQ(mapped.PointCeiling(50), 34);
  EXPECT_EQ(mapped.LsmCeiling(50), 41);
  EXPECT_EQ(file.LargestReclaimable(), 40);
  EXPECT_EQ(mapped.DebugString(),
            "direct:1 versioned:1@33 unmapped:1@20 range_dels:1@40 "
            "reclaimable@33");
}

// An entry with an older version of its key in the file is worth a compaction
// once no snapshot needs the older version. This holds whether the newer or the
// older one is direct, or both.
TEST_F(MappedEntryStatsTest, OlderVersionsAreReclaimable) {
  FileMetaData both_direct = NewFile();
  Add(&both_direct, "a", 50, kTypeBlobIndex, kDirectValue);
  Add(&both_direct, "a", 40, kTypeBlobIndex, kDirectValue);
  Add(&both_direct, "b", 60, kTypeBlobIndex, kDirectValue);
  EXPECT_EQ(both_direct.LargestReclaimable(), 50);

  FileMetaData plain_above = NewFile();
  Add(&plain_above, "a", 50, kTypeValue);
  Add(&plain_above, "a", 40, kTypeBlobIndex, kDirectValue);
  EXPECT_EQ(plain_above.LargestReclaimable(), 50);

  FileMetaData plain_below = NewFile();
  Add(&plain_below, "a", 50, kTypeBlobIndex, kDirectValue);
  Add(&plain_below, "a", 40, kTypeValue);
  EXPECT_EQ(plain_below.LargestReclaimable(), 50);

  // A key and its prefix are different keys.
  FileMetaData others = NewFile();
  Add(&others, "a", 50, kTypeBlobIndex, kDirectValue);
  Add(&others, "ab", 40, kTypeBlobIndex, kDirectValue);
  EXPECT_EQ(others.LargestReclaimable(), 0);
}

// Entries up to a settled sequence number are not reclaimable: a bottommost
// compaction without older snapshots has nothing left to do for its output, so
// the output must not request another one.
TEST_F(MappedEntryStatsTest, SettledIsNotReclaimable) {
  FileMetaData file = NewFile();
  Add(&file, "a", 50, kTypeBlobIndex, kVersionedValue);
  file.blob_refs.mapped.SettleReclaimable(49);
  EXPECT_EQ(file.LargestReclaimable(), 50);
  file.blob_refs.mapped.SettleReclaimable(50);
  EXPECT_EQ(file.LargestReclaimable(), 0);
  EXPECT_EQ(file.blob_refs.mapped.PointCeiling(50), 51);

  Add(&file, "b", 10, kTypeValue);
  EXPECT_EQ(file.LargestReclaimable(), 0);
  Add(&file, "c", 60, kTypeValue);
  EXPECT_EQ(file.LargestReclaimable(), 60);

  // The same holds without mapped entries.
  FileMetaData operands = NewFile();
  Add(&operands, "a", 50, kTypeMerge);
  EXPECT_EQ(operands.LargestReclaimable(), 50);
  operands.blob_refs.mapped.SettleReclaimable(49);
  EXPECT_EQ(operands.LargestReclaimable(), 50);
  operands.blob_refs.mapped.SettleReclaimable(50);
  EXPECT_EQ(operands.LargestReclaimable(), 0);
}

TEST_F(MappedEntryStatsTest, MalformedBlobIndexIsCorruption) {
  FileMetaData file = NewFile();
  const InternalKey key("a", 5, kTypeBlobIndex);
  EXPECT_TRUE(
      file.UpdateBoundaries(key.Encode(), kDirectValue + "x", 5, kTypeBlobIndex)
          .IsCorruption());
}

TEST_F(MappedEntryStatsTest, ManifestKeepsTheStatistics) {
  FileMetaData file = NewFile();
  Add(&file, "a", 50, kTypeBlobIndex, kDirectValue);
  Add(&file, "b", 33, kTypeBlobIndex, kVersionedValue);
  const std::string encoded = Encode(file);
  VersionEdit edit;
  ASSERT_OK(edit.DecodeFrom(encoded));
  ASSERT_EQ(edit.GetNewFiles().size(), 1);
  const FileMetaData& read = edit.GetNewFiles()[0].second;
  EXPECT_EQ(read.blob_refs.mapped, file.blob_refs.mapped);
  EXPECT_NE(edit.DebugString().find("mapped_entries:{direct:1 versioned:1@33"),
            std::string::npos);
  EXPECT_NE(edit.DebugJSON(1).find("\"MappedEntryStats\": \"direct:1"),
            std::string::npos);

  // RocksDB refuses an unknown field with this bit.
  EXPECT_NE(NewFileCustomTag::kMappedEntries &
                NewFileCustomTag::kCustomTagNonSafeIgnoreMask,
            0);

  // A field with any other length is refused.
  std::string field;
  file.blob_refs.mapped.EncodeTo(&field);
  std::string tag;
  PutVarint32(&tag, NewFileCustomTag::kMappedEntries);
  const size_t at = encoded.find(tag + static_cast<char>(field.size()) + field);
  ASSERT_NE(at, std::string::npos);
  for (size_t size = 0; size < field.size(); ++size) {
    std::string corrupt = encoded;
    corrupt.erase(at + tag.size() + 1 + size, field.size() - size);
    corrupt[at + tag.size()] = static_cast<char>(size);
    EXPECT_TRUE(VersionEdit().DecodeFrom(corrupt).IsCorruption()) << size;
  }
}

TEST_F(MappedEntryStatsTest, DecodingRefusesInvalidStatistics) {
  MappedEntryStats mapped;
  mapped.Add(kTypeBlobIndex, 50, kDirectValue);
  std::string field;
  mapped.EncodeTo(&field);
  MappedEntryStats read;
  ASSERT_OK(read.DecodeFrom(field, 50));
  EXPECT_EQ(read, mapped);

  mapped.Add(kTypeValue, 40, "v");
  field.clear();
  mapped.EncodeTo(&field);
  // A sequence number is above the largest one of the file.
  EXPECT_TRUE(read.DecodeFrom(field, 39).IsCorruption());
  EXPECT_TRUE(read.DecodeFrom(field + std::string(1, '\0'), 50).IsCorruption());
  field[0] = 1;  // an unknown flag
  EXPECT_TRUE(read.DecodeFrom(field, 50).IsCorruption());
  // A failed call changes nothing.
  EXPECT_EQ(read.unmapped, 0);

  std::string none;
  for (int i = 0; i < 6; ++i) {
    PutVarint64(&none, 0);
  }
  EXPECT_TRUE(read.DecodeFrom(none, 50).IsCorruption());

  // Random bytes never crash the decoder, and statistics that it accepts are
  // consistent.
  Random rnd(301);
  for (int i = 0; i < 100000; ++i) {
    std::string bytes =
        rnd.RandomBinaryString(static_cast<int>(rnd.Uniform(24)));
    if (!bytes.empty() && rnd.OneIn(2)) {
      bytes[0] = 0;
    }
    MappedEntryStats any;
    if (any.DecodeFrom(bytes, 1000).ok()) {
      EXPECT_TRUE(any.Any());
      EXPECT_LE(any.LsmCeiling(1000), 1001);
    }
  }
}

TEST_F(MappedEntryStatsTest, CeilingOfAVersionIsTheLargestOfItsFiles) {
  EXPECT_EQ(VersionMappedStats().lsm_ceiling, UINT64_MAX);
  autovector<LevelFilesBrief> levels;
  EXPECT_EQ(VersionMappedStats(levels).lsm_ceiling, 0);

  FileMetaData a = NewFile();
  Add(&a, "a", 50, kTypeBlobIndex, kDirectValue);
  FileMetaData b = NewFile();
  Add(&b, "a", 20, kTypeBlobIndex, kVersionedValue);
  Add(&b, "b", 10, kTypeValue);
  FdWithKeyRange files[2];
  LevelFilesBrief level;
  level.files = files;
  level.num_files = 2;
  for (int i = 0; i < 2; ++i) {
    files[i].file_metadata = i == 0 ? &a : &b;
    EXPECT_EQ(files[i].lsm_ceiling, UINT64_MAX);
    files[i].lsm_ceiling = files[i].file_metadata->blob_refs.mapped.LsmCeiling(
        files[i].file_metadata->fd.largest_seqno);
  }
  levels.push_back(level);
  const VersionMappedStats summary(levels);
  EXPECT_EQ(summary.lsm_ceiling, 21);
  EXPECT_EQ(summary.num_mapped, 2);
}

// An edit is refused if any of its SST files, in any level, has a mapped entry,
// or if any of its blob files has a record index.
TEST_F(MappedEntryStatsTest, EditsWithMappedEntriesAreRefused) {
  FileMetaData plain = NewFile();
  Add(&plain, "a", 30, kTypeValue);
  const auto edit_with_plain_files = [&plain] {
    VersionEdit edit;
    edit.AddFile(/*level=*/0, plain);
    edit.AddBlobFile(/*blob_file_number=*/8, /*total_blob_count=*/1,
                     /*total_blob_bytes=*/100, "", "");
    return edit;
  };
  EXPECT_OK(RefuseMapped(edit_with_plain_files()));
  for (const std::string& value : {kDirectValue, kVersionedValue}) {
    FileMetaData mapped = NewFile();
    Add(&mapped, "a", 30, kTypeBlobIndex, value);
    for (const int level : {0, 1, 6}) {
      VersionEdit edit = edit_with_plain_files();
      edit.AddFile(level, mapped);
      EXPECT_TRUE(RefuseMapped(edit).IsNotSupported()) << level;
    }
  }
  for (const uint64_t index_bytes : {1, 1000}) {
    VersionEdit edit = edit_with_plain_files();
    edit.AddBlobFile(BlobFileAddition(
        /*blob_file_number=*/9, /*total_blob_count=*/1,
        /*total_blob_bytes=*/100, "", "", /*path_id=*/0, index_bytes));
    EXPECT_TRUE(RefuseMapped(edit).IsNotSupported()) << index_bytes;
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
