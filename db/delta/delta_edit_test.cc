//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_edit.h"

#include <functional>
#include <string>
#include <vector>

#include "db/delta/delta_edit_test_util.h"
#include "db/version_edit.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/coding.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class DeltaEditTest : public testing::Test {
 protected:
  static std::string Encode(const DeltaEdit& edit) {
    std::string encoded;
    edit.EncodeTo(&encoded);
    return encoded;
  }

  // Checks that arbitrary bytes either are decoded to a valid edit, or to an
  // empty one, or are refused and leave the edit unchanged.
  static void CheckAnyBytes(const Slice& bytes, int* num_ok) {
    DeltaEdit before;
    before.SetDropUnusedBuckets();
    DeltaEdit edit = before;
    Status s = edit.DecodeFrom(bytes);
    if (!s.ok()) {
      ASSERT_TRUE(s.IsCorruption() || s.IsNotSupported()) << s.ToString();
      ASSERT_FALSE(s.ToString().empty());
      ASSERT_EQ(before, edit);
      return;
    }
    ++*num_ok;
    if (edit.Empty()) {
      return;
    }
    ASSERT_OK(edit.Validate());
    ASSERT_FALSE(edit.DebugString(true).empty());
    DeltaEdit again;
    ASSERT_OK(again.DecodeFrom(Encode(edit)));
    ASSERT_EQ(edit, again);
  }

  static Status Decode(const std::string& hex) {
    std::string bytes;
    EXPECT_TRUE(Slice(hex).DecodeHex(&bytes));
    DeltaEdit edit;
    return edit.DecodeFrom(bytes);
  }
};

TEST_F(DeltaEditTest, DecodeRestoresTheEncodedEdit) {
  Random rnd(301);
  for (int i = 0; i < 5000; ++i) {
    const DeltaEdit edit = RandomDeltaEdit(&rnd);
    ASSERT_OK(edit.Validate());
    DeltaEdit decoded;
    decoded.SetDropUnusedBuckets();
    ASSERT_OK(decoded.DecodeFrom(Encode(edit)));
    ASSERT_EQ(edit, decoded);
    SequenceNumber largest = 0;
    for (const auto& file : edit.files()) {
      largest = std::max(largest, file.largest_seq);
    }
    ASSERT_EQ(largest, decoded.LargestSequence());
  }
}

// docs/formats.md has the same bytes.
TEST_F(DeltaEditTest, EncodesTheDocumentedExamples) {
  DeltaEdit edit;
  DeltaFileDescription file = MakeDeltaFile(
      13, DeltaKind::kOperands, DeltaTier::kFlushed, 12, 12, "a", "m");
  file.size = 4096;
  file.smallest_seq = 100;
  file.largest_seq = 163;
  file.num_entries = 50;
  file.raw_bytes = 2000;
  edit.AddFile(file);
  ASSERT_EQ(
      "0101130D0080200100"
      "0C0C0161016D64A3013200D00F",
      Slice(Encode(edit)).ToString(true));
  VersionEdit version_edit;
  version_edit.SetDeltaEdit(edit);
  std::string record;
  ASSERT_TRUE(version_edit.EncodeTo(&record));
  // The delta edit follows the last sequence number.
  ASSERT_EQ(
      "04A301"
      "812016" +
          Slice(Encode(edit)).ToString(true),
      Slice(record).ToString(true));

  edit = DeltaEdit();
  file.number = 20;
  file.size = 9000;
  file.tier = DeltaTier::kSorted;
  file.first_epoch = file.last_epoch = 0;
  file.largest = "f";
  edit.AddFile(file);
  edit.AddReplaceBuckets(
      {{"", {}}, {{"", {12, 20, 500, 0}}, {"g", {12, 0, 0, 0}}}});
  ASSERT_EQ(
      "010113"
      "1400A846"
      "01020000"
      "01610166"
      "64A301"
      "3200D00F"
      "030F"
      "000002"
      "000C14"
      "F40300"
      "01670C"
      "000000",
      Slice(Encode(edit)).ToString(true));
}

TEST_F(DeltaEditTest, TruncatedEditIsDecodedOrRefused) {
  Random rnd(302);
  int num_ok = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string encoded = Encode(RandomDeltaEdit(&rnd));
    for (size_t n = 0; n < encoded.size(); ++n) {
      ASSERT_NO_FATAL_FAILURE(CheckAnyBytes(Slice(encoded.data(), n), &num_ok));
    }
  }
  // An edit that is cut off between two fields can be decoded.
  ASSERT_GT(num_ok, 0);
}

TEST_F(DeltaEditTest, EditWithAFlippedBitIsDecodedOrRefused) {
  Random rnd(303);
  int num_ok = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string encoded = Encode(RandomDeltaEdit(&rnd));
    for (size_t n = 0; n < encoded.size(); ++n) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string bytes = encoded;
        bytes[n] = static_cast<char>(bytes[n] ^ (1 << bit));
        ASSERT_NO_FATAL_FAILURE(CheckAnyBytes(bytes, &num_ok));
      }
    }
  }
  ASSERT_GT(num_ok, 0);
}

TEST_F(DeltaEditTest, RandomBytesAreDecodedOrRefused) {
  Random rnd(304);
  int num_ok = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = rnd.RandomBinaryString(rnd.Uniform(60));
    if (rnd.OneIn(2) && bytes.size() > 1) {
      bytes[0] = 1;
      bytes[1] = static_cast<char>(1 + rnd.Uniform(6));
      for (size_t k = 2; k < bytes.size(); ++k) {
        if (!rnd.OneIn(4)) {
          bytes[k] = static_cast<char>(rnd.Uniform(8));
        }
      }
    }
    ASSERT_NO_FATAL_FAILURE(CheckAnyBytes(bytes, &num_ok));
  }
}

TEST_F(DeltaEditTest, UnknownFieldIsSkippedOnlyIfItsTagAllows) {
  DeltaEdit edit;
  edit.AddFile(
      MakeDeltaFile(13, DeltaKind::kOperands, DeltaTier::kFlushed, 12));
  const std::string encoded = Encode(edit);

  // The unknown field is in the edit.
  for (uint32_t tag : {64u, 65u, 127u, 192u, 7u, 63u, 128u, 0u}) {
    std::string bytes = encoded;
    PutVarint32(&bytes, tag);
    PutLengthPrefixedSlice(&bytes, "anything");
    DeltaEdit decoded;
    Status s = decoded.DecodeFrom(bytes);
    if ((tag & 64) != 0) {
      ASSERT_OK(s);
      ASSERT_EQ(edit, decoded);
    } else {
      ASSERT_TRUE(s.IsNotSupported()) << tag << s.ToString();
    }
  }

  // The unknown field is in a file. The version, the tag and the length of the
  // file take one byte each.
  for (uint32_t tag : {64u, 127u, 4u, 63u}) {
    std::string file = encoded.substr(3);
    PutVarint32(&file, tag);
    PutLengthPrefixedSlice(&file, "anything");
    std::string bytes = encoded.substr(0, 2);
    PutLengthPrefixedSlice(&bytes, file);
    DeltaEdit decoded;
    Status s = decoded.DecodeFrom(bytes);
    if ((tag & 64) != 0) {
      ASSERT_OK(s);
      ASSERT_EQ(edit, decoded);
    } else {
      ASSERT_TRUE(s.IsNotSupported()) << tag << s.ToString();
    }
  }

  // An edit without fields is corrupt.
  ASSERT_TRUE(Decode("01").IsCorruption());
  ASSERT_TRUE(Decode("").IsCorruption());
  // Other versions are not supported.
  ASSERT_TRUE(Decode("00").IsNotSupported());
  ASSERT_TRUE(Decode("020500").IsNotSupported());
  ASSERT_OK(Decode("010500"));
}

// A later version may write an edit of fields that this one may skip.
TEST_F(DeltaEditTest, EditOfSkippedFieldsAloneIsEmpty) {
  ASSERT_OK(Decode("01400161"));
  DeltaEdit edit;
  edit.SetDropUnusedBuckets();
  // A field 65 of one byte, and one of none.
  const std::string skipped("\x01\x41\x01\x00\x41\x00", 6);
  ASSERT_OK(edit.DecodeFrom(skipped));
  ASSERT_TRUE(edit.Empty());
  // One of the fields must not be skipped, or is truncated.
  ASSERT_TRUE(Decode("014001610700").IsNotSupported());
  ASSERT_TRUE(Decode("01400261").IsCorruption());
}

// In a VersionEdit, such an edit counts as absent.
TEST_F(DeltaEditTest, VersionEditDropsADeltaEditOfSkippedFields) {
  std::string skipped;
  PutVarint32(&skipped, kDeltaStore);
  PutLengthPrefixedSlice(&skipped, Slice("\x01\x41\x01\x00", 4));
  VersionEdit edit;
  ASSERT_OK(edit.DecodeFrom(skipped));
  ASSERT_EQ(nullptr, edit.GetDeltaEdit());
  ASSERT_EQ(0u, edit.NumEntries());
  ASSERT_FALSE(edit.HasLastSequence());
  ASSERT_OK(RefuseDelta(edit));
  std::string encoded;
  ASSERT_TRUE(edit.EncodeTo(&encoded));
  ASSERT_EQ("", encoded);

  DeltaEdit drop;
  drop.SetDropUnusedBuckets();
  VersionEdit other;
  other.SetDeltaEdit(drop);
  ASSERT_TRUE(other.EncodeTo(&encoded));
  for (const std::string& both : {skipped + encoded, encoded + skipped}) {
    VersionEdit decoded;
    ASSERT_OK(decoded.DecodeFrom(both));
    ASSERT_NE(nullptr, decoded.GetDeltaEdit());
    ASSERT_EQ(drop, *decoded.GetDeltaEdit());
  }
}

TEST_F(DeltaEditTest, MalformedFieldIsCorruption) {
  // A field that may occur once occurs twice.
  ASSERT_OK(Decode("0102020C01"));
  ASSERT_TRUE(Decode("0102020C0102020C01").IsCorruption());
  ASSERT_OK(
      Decode("0106030001"
             "00"));
  ASSERT_TRUE(Decode("0106030001"
                     "00"
                     "06030101"
                     "00")
                  .IsCorruption());
  // A payload is too long or too short.
  ASSERT_TRUE(Decode("0102030C0100").IsCorruption());
  ASSERT_TRUE(Decode("0102010C").IsCorruption());
  ASSERT_TRUE(Decode("01050100").IsCorruption());
  ASSERT_TRUE(Decode("01060400010000").IsCorruption());
  // The epoch is 0, or the number of files is 0.
  ASSERT_TRUE(Decode("0102020001").IsCorruption());
  ASSERT_TRUE(Decode("0102020C00").IsCorruption());
  // There are fewer bytes than buckets.
  ASSERT_TRUE(Decode("0106070001FFFFFFFF0F").IsCorruption());
  // A flag is neither 0 nor 1.
  ASSERT_TRUE(Decode("0106030002"
                     "00")
                  .IsCorruption());
  // The floors of [ "", inf ) are raised to 12.
  ASSERT_OK(Decode("01040300000C"));
  ASSERT_TRUE(Decode("0104030000"
                     "00")
                  .IsCorruption());
  ASSERT_TRUE(Decode("01040300020C").IsCorruption());
  // A range ends where it begins.
  ASSERT_OK(
      Decode("010406016101"
             "01620C"));
  ASSERT_TRUE(Decode("010406016101"
                     "01610C")
                  .IsCorruption());
  ASSERT_TRUE(Decode("010404000100"
                     "0C")
                  .IsCorruption());
  // A snapshot piece is beside another operation.
  ASSERT_TRUE(Decode("0106030001"
                     "00"
                     "0500")
                  .IsCorruption());
}

TEST_F(DeltaEditTest, ValidateRefusesInvalidFilesAndBuckets) {
  using File = DeltaFileDescription;
  const auto check = [](const std::function<void(File*)>& break_it,
                        DeltaKind kind = DeltaKind::kOperands,
                        DeltaTier tier = DeltaTier::kFlushed) {
    File file =
        MakeDeltaFile(13, kind, tier, tier == DeltaTier::kSorted ? 0 : 12);
    DeltaEdit edit;
    edit.AddFile(file);
    EXPECT_OK(edit.Validate());
    break_it(&file);
    edit = DeltaEdit();
    edit.AddFile(file);
    return edit.Validate().IsCorruption();
  };
  ASSERT_TRUE(check([](File* f) { f->number = 0; }));
  ASSERT_TRUE(check([](File* f) { f->number = uint64_t{1} << 62; }));
  ASSERT_TRUE(check([](File* f) { f->path_id = 4; }));
  ASSERT_TRUE(check([](File* f) { f->size = 0; }));
  ASSERT_TRUE(check([](File* f) { f->size = uint64_t{1} << 56; }));
  ASSERT_TRUE(check([](File* f) { f->raw_bytes = uint64_t{1} << 56; }));
  ASSERT_TRUE(check([](File* f) { f->num_entries = uint64_t{1} << 56; }));
  ASSERT_TRUE(check([](File* f) { f->num_entries = 0; }));
  ASSERT_TRUE(check([](File* f) { f->num_range_anchors = 1; }));
  ASSERT_TRUE(check([](File* f) { f->kind = static_cast<DeltaKind>(0); }));
  ASSERT_TRUE(check([](File* f) { f->kind = static_cast<DeltaKind>(3); }));
  ASSERT_TRUE(check([](File* f) { f->tier = static_cast<DeltaTier>(3); }));
  ASSERT_TRUE(check([](File* f) { f->first_epoch = 11; }));
  ASSERT_TRUE(check([](File* f) { f->first_epoch = f->last_epoch = 0; }));
  ASSERT_TRUE(check([](File* f) { f->last_epoch = 11; }, DeltaKind::kOperands,
                    DeltaTier::kMerged));
  ASSERT_FALSE(check([](File* f) { f->first_epoch = 11; }, DeltaKind::kOperands,
                     DeltaTier::kMerged));
  ASSERT_TRUE(check([](File* f) { f->last_epoch = uint64_t{1} << 62; },
                    DeltaKind::kOperands, DeltaTier::kMerged));
  ASSERT_TRUE(check([](File* f) { f->last_epoch = 1; }, DeltaKind::kOperands,
                    DeltaTier::kSorted));
  ASSERT_TRUE(check([](File* f) { f->smallest_seq = f->largest_seq + 1; }));
  ASSERT_TRUE(check([](File* f) { f->largest_seq = kMaxSequenceNumber; }));
  ASSERT_TRUE(check([](File* f) {
    f->has_global_seq = true;
    f->smallest_seq = f->largest_seq;
  }));
  ASSERT_FALSE(check(
      [](File* f) {
        f->has_global_seq = true;
        f->smallest_seq = f->largest_seq;
      },
      DeltaKind::kAnchors));
  ASSERT_TRUE(
      check([](File* f) { f->has_global_seq = true; }, DeltaKind::kAnchors));
  ASSERT_FALSE(check(
      [](File* f) {
        f->num_entries = 0;
        f->num_range_anchors = 1;
      },
      DeltaKind::kAnchors));
  ASSERT_TRUE(check([](File* f) { f->num_entries = 0; }, DeltaKind::kAnchors));

  ASSERT_TRUE(DeltaEdit().Empty());
  ASSERT_TRUE(DeltaEdit().Validate().IsCorruption());

  const auto check_buckets = [](DeltaEdit::ReplaceBuckets replace) {
    DeltaEdit edit;
    edit.AddReplaceBuckets(std::move(replace));
    return edit.Validate();
  };
  ASSERT_OK(check_buckets({{"", {}}, {{"", {}}}}));
  ASSERT_OK(check_buckets({{"b", "d"}, {{"b", {}}, {"c", {}}}}));
  ASSERT_TRUE(check_buckets({{"b", "d"}, {}}).IsCorruption());
  ASSERT_TRUE(check_buckets({{"b", "d"}, {{"c", {}}}}).IsCorruption());
  ASSERT_TRUE(
      check_buckets({{"b", "d"}, {{"b", {}}, {"", {}}}}).IsCorruption());
  ASSERT_TRUE(check_buckets({{"b", "b"}, {{"b", {}}}}).IsCorruption());
  ASSERT_TRUE(check_buckets({{"b", ""}, {{"b", {}}}}).IsCorruption());
  ASSERT_TRUE(check_buckets({{"", {}}, {{"", {0, 0, 1, 0}}}}).IsCorruption());
  ASSERT_TRUE(check_buckets({{"", {}}, {{"", {uint64_t{1} << 62, 0, 0, 0}}}})
                  .IsCorruption());
}

TEST_F(DeltaEditTest, DescriptionsCompareAndPrintTheirFields) {
  DeltaFileDescription file =
      MakeDeltaFile(13, DeltaKind::kAnchors, DeltaTier::kMerged, 5, 12);
  DeltaFileDescription other = file;
  ASSERT_EQ(file, other);
  other.file_checksum = "x";
  ASSERT_NE(file, other);
  const std::string text = file.ToString();
  ASSERT_NE(std::string::npos, text.find("#13"));
  ASSERT_NE(std::string::npos, text.find("anchors"));
  ASSERT_NE(std::string::npos, text.find("[5, 12]"));
}

TEST_F(DeltaEditTest, VersionEditKeepsTheDeltaEdit) {
  Random rnd(305);
  for (int i = 0; i < 500; ++i) {
    const DeltaEdit delta = RandomDeltaEdit(&rnd);
    VersionEdit edit;
    ASSERT_EQ(0u, edit.NumEntries());
    ASSERT_EQ(nullptr, edit.GetDeltaEdit());
    edit.SetColumnFamily(3);
    edit.SetDeltaEdit(delta);
    ASSERT_EQ(1u, edit.NumEntries());
    ASSERT_FALSE(edit.IsWalManipulation());
    ASSERT_TRUE(edit.ShouldEmitPerColumnFamilyRecoveryEdit(100));
    // Without a WAL, no other record would keep the sequence numbers.
    ASSERT_EQ(!delta.files().empty(), edit.HasLastSequence());
    ASSERT_EQ(delta.LargestSequence(), edit.GetLastSequence());
    ASSERT_EQ(delta.files().size(),
              edit.GetFilesToQuarantineIfCommitFail()->size());
    for (size_t k = 0; k < delta.files().size(); ++k) {
      ASSERT_EQ(delta.files()[k].number,
                (*edit.GetFilesToQuarantineIfCommitFail())[k]);
    }

    std::string encoded;
    ASSERT_TRUE(edit.EncodeTo(&encoded));
    VersionEdit decoded;
    ASSERT_OK(decoded.DecodeFrom(encoded));
    ASSERT_NE(nullptr, decoded.GetDeltaEdit());
    ASSERT_EQ(delta, *decoded.GetDeltaEdit());
    ASSERT_EQ(edit.GetLastSequence(), decoded.GetLastSequence());
    const VersionEdit copy = decoded;
    ASSERT_EQ(delta, *copy.GetDeltaEdit());
    ASSERT_NE(std::string::npos, edit.DebugString(true).find("DeltaEdit"));
    ASSERT_NE(std::string::npos, edit.DebugJSON(1, true).find("DeltaEdit"));
    ASSERT_TRUE(RefuseDelta(decoded).IsNotSupported());
    decoded.Clear();
    ASSERT_EQ(nullptr, decoded.GetDeltaEdit());
    ASSERT_OK(RefuseDelta(decoded));

    // A record with two delta edits is corrupt.
    std::string twice;
    PutVarint32(&twice, kDeltaStore);
    std::string payload;
    delta.EncodeTo(&payload);
    PutLengthPrefixedSlice(&twice, payload);
    twice += twice;
    ASSERT_TRUE(decoded.DecodeFrom(twice).IsCorruption());
    // A record with a truncated delta edit is corrupt. The last three bytes of
    // the record are the column family.
    ASSERT_TRUE(decoded.DecodeFrom(Slice(encoded.data(), encoded.size() - 4))
                    .IsCorruption());
  }
  // The tag does not allow RocksDB to skip the field.
  ASSERT_EQ(0, kDeltaStore & kTagSafeIgnoreMask);
  ASSERT_EQ(4097, kDeltaStore);
}

// The last sequence number of a VersionEdit is raised, never lowered. A delta
// edit without files does not set it.
TEST_F(DeltaEditTest, DeltaEditNeverLowersTheLastSequence) {
  DeltaEdit delta;
  delta.AddFile(
      MakeDeltaFile(13, DeltaKind::kOperands, DeltaTier::kFlushed, 12));
  VersionEdit edit;
  edit.SetLastSequence(1000);
  edit.SetDeltaEdit(delta);
  ASSERT_EQ(1000u, edit.GetLastSequence());
  DeltaEdit drop;
  drop.SetDropUnusedBuckets();
  VersionEdit other;
  other.SetDeltaEdit(drop);
  ASSERT_FALSE(other.HasLastSequence());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
