// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "port/stack_trace.h"
#include "rocksdb/advanced_compression.h"
#include "rocksdb/comparator.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/coding.h"
#include "util/compression.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

constexpr uint64_t kSeed = 20241122;
constexpr uint64_t kMaxNumber = std::numeric_limits<uint64_t>::max();
constexpr int kKeySizes[] = {8, 9, 16, 23, 24, 25, 64, 1000};

std::string KeyOf(const KeyCodec& codec, uint64_t record) {
  std::string key = "replaced";
  codec.Encode(record, &key);
  return key;
}

// Returns numbers of all magnitudes, with the lowest and the highest one.
std::vector<uint64_t> SomeNumbers() {
  std::vector<uint64_t> numbers{kMaxNumber};
  for (uint64_t n = 0; n < 1000; ++n) {
    numbers.push_back(n);
  }
  Random64 rnd(kSeed);
  for (int i = 0; i < 1000; ++i) {
    numbers.push_back(rnd.Next() >> (i % 64));
  }
  return numbers;
}

void ExpectNoKey(const KeyCodec& codec, const Slice& key) {
  uint64_t record = 4711;
  const Status s = codec.Decode(key, &record);
  EXPECT_TRUE(s.IsCorruption()) << key.ToString(true);
  EXPECT_EQ(record, 4711u);
}

std::string Contents(const FieldCodec& codec, uint64_t record, uint32_t field,
                     uint64_t version, uint32_t length) {
  std::string contents;
  codec.Append(record, field, version, length, &contents);
  return contents;
}

void ExpectCorruption(const Status& s, const std::vector<std::string>& parts) {
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  for (const std::string& part : parts) {
    EXPECT_NE(s.ToString().find(part), std::string::npos)
        << s.ToString() << " should say " << part;
  }
}

// Splits a value or delta with nothing but the definition of its format.
std::vector<std::string> Parse(Slice value) {
  std::vector<std::string> fields;
  Slice field;
  while (!value.empty()) {
    if (!GetLengthPrefixedSlice(&value, &field)) {
      ADD_FAILURE() << "truncated";
      break;
    }
    fields.push_back(field.ToString());
  }
  return fields;
}

// Returns the size of the data compressed by RocksDB's own code, as a share of
// its size.
double CompressedShare(CompressionType type, const std::string& data) {
  auto compressor = GetBuiltinV2CompressionManager()->GetCompressor(
      CompressionOptions(), type);
  std::string out(2 * data.size() + 100, '\0');
  size_t size = out.size();
  CompressionType used = kNoCompression;
  EXPECT_OK(compressor->CompressBlock(data, out.data(), &size, &used, nullptr));
  if (used == kNoCompression) {
    return 1;
  }
  return static_cast<double>(size) / static_cast<double>(data.size());
}

}  // namespace

TEST(KeyCodecTest, KeySizesBelow8AreRefused) {
  for (int size : {8, 23, 24, 1000000}) {
    EXPECT_OK(KeyCodec::Validate(size));
  }
  for (int size : {7, 0, -1, std::numeric_limits<int>::min()}) {
    const Status s = KeyCodec::Validate(size);
    EXPECT_TRUE(s.IsInvalidArgument());
    EXPECT_NE(s.ToString().find("--key_size"), std::string::npos);
  }
}

TEST(KeyCodecTest, KeysHaveTheFormat) {
  // Mix64(0) is 16294208416658607535, 0xe220a8397b1dcdaf.
  EXPECT_EQ(KeyOf(KeyCodec(24), 0), "user16294208416658607535");
  EXPECT_EQ(KeyOf(KeyCodec(27), 0), "user16294208416658607535000");
  const std::string binary("\xe2\x20\xa8\x39\x7b\x1d\xcd\xaf");
  EXPECT_EQ(KeyOf(KeyCodec(8), 0), binary);
  EXPECT_EQ(KeyOf(KeyCodec(10), 0), binary + "00");
  EXPECT_EQ(KeyOf(KeyCodec(24), Unmix64(0)), "user00000000000000000000");
  EXPECT_EQ(KeyOf(KeyCodec(24), Unmix64(70)), "user00000000000000000070");
  EXPECT_EQ(KeyOf(KeyCodec(24), Unmix64(kMaxNumber)),
            "user18446744073709551615");
}

TEST(KeyCodecTest, KeysRoundTrip) {
  for (int size : kKeySizes) {
    const KeyCodec codec(size);
    for (uint64_t n : SomeNumbers()) {
      const std::string key = KeyOf(codec, n);
      ASSERT_EQ(key.size(), static_cast<size_t>(size));
      ASSERT_EQ(codec.Size(n), key.size());
      uint64_t record = ~n;
      ASSERT_OK(codec.Decode(key, &record));
      ASSERT_EQ(record, n);
    }
  }
}

TEST(KeyCodecTest, KeysOfVariableSizesRoundTrip) {
  const KeyCodec codec(NormalSize(10.45, 1.4, 8));
  std::map<size_t, int> sizes;
  double sum = 0;
  constexpr int kKeys = 100000;
  for (uint64_t n = 0; n < kKeys; ++n) {
    const std::string key = KeyOf(codec, n);
    ASSERT_EQ(key.size(), codec.Size(n));
    ++sizes[key.size()];
    sum += static_cast<double>(key.size());
    uint64_t record = ~n;
    ASSERT_OK(codec.Decode(key, &record));
    ASSERT_EQ(record, n);
    // Keys of other sizes are refused.
    ExpectNoKey(codec, key + "0");
    ExpectNoKey(codec, Slice(key.data(), key.size() - 1));
  }
  EXPECT_EQ(sizes.begin()->first, 8u);
  EXPECT_GT(sizes[8], kKeys / 20);
  EXPECT_GT(sizes[10], sizes[8]);
  EXPECT_GT(sizes[13], 0);
  // The mean of 10.45 grows a little because sizes are cut at 8.
  EXPECT_NEAR(sum / kKeys, 10.48, 0.02);
}

TEST(KeyCodecTest, KeysOfVariableSizesAround24RoundTrip) {
  const KeyCodec codec(NormalSize(26, 4, 8));
  for (uint64_t n : SomeNumbers()) {
    uint64_t record = ~n;
    ASSERT_OK(codec.Decode(KeyOf(codec, n), &record));
    ASSERT_EQ(record, n);
  }
}

TEST(KeyCodecTest, ForeignKeysAreRefused) {
  for (int size : kKeySizes) {
    const KeyCodec codec(size);
    const std::string key = KeyOf(codec, 12345);
    ExpectNoKey(codec, "");
    ExpectNoKey(codec, key + "0");
    ExpectNoKey(codec, Slice(key.data(), key.size() - 1));
    ExpectNoKey(codec, key.substr(1));
    const size_t used = size >= 24 ? 24 : 8;
    for (size_t i = 0; i < key.size(); ++i) {
      if (used == 8 && i < used) {
        continue;  // all of these are numbers
      }
      std::string changed = key;
      changed[i] = static_cast<char>(changed[i] ^ 0x40);
      ExpectNoKey(codec, changed);
    }
  }
  const KeyCodec codec(24);
  ExpectNoKey(codec, "user18446744073709551616");
  ExpectNoKey(codec, "user20000000000000000000");
  ExpectNoKey(codec, "user99999999999999999999");
  ExpectNoKey(codec, "user-0000000000000000001");
  ExpectNoKey(codec, "user 0000000000000000001");
  ExpectNoKey(codec, "USER00000000000000000001");
}

TEST(KeyCodecTest, KeysAreInOrderOfMixedNumbers) {
  std::vector<uint64_t> mixed = SomeNumbers();
  std::sort(mixed.begin(), mixed.end());
  mixed.erase(std::unique(mixed.begin(), mixed.end()), mixed.end());
  const auto check = [&](const KeyCodec& codec) {
    std::string previous;
    for (uint64_t m : mixed) {
      std::string key = "replaced";
      codec.EncodeMixed(m, &key);
      ASSERT_LT(BytewiseComparator()->Compare(previous, key), 0);
      ASSERT_EQ(key, KeyOf(codec, Unmix64(m)));
      previous = key;
    }
  };
  for (int size : kKeySizes) {
    check(KeyCodec(size));
  }
  check(KeyCodec(NormalSize(10.45, 1.4, 8)));
  check(KeyCodec(NormalSize(24, 5, 8)));
}

// Keys of consecutive numbers are distinct and evenly spread over the key
// space, and neighbours are as far apart as keys of independent numbers.
TEST(KeyCodecTest, ConsecutiveNumbersAreScattered) {
  constexpr int kParts = 256;
  constexpr int kKeys = 256 * 400;
  for (uint64_t first : {uint64_t{0}, uint64_t{1} << 40}) {
    std::set<std::string> keys;
    std::vector<int> parts(kParts);
    int ascending = 0;
    std::string previous;
    const KeyCodec codec(8);
    for (uint64_t n = first; n < first + kKeys; ++n) {
      const std::string key = KeyOf(codec, n);
      EXPECT_TRUE(keys.insert(key).second);
      ++parts[static_cast<unsigned char>(key[0])];
      ascending += Slice(previous).compare(key) < 0;
      previous = key;
    }
    double chi_square = 0;
    for (int count : parts) {
      chi_square += (count - 400.0) * (count - 400.0) / 400;
    }
    // With 255 degrees of freedom the mean is 255 and the standard deviation
    // 22.6. Regular steps through the key space would be far below, clusters
    // far above.
    EXPECT_GT(chi_square, 255 - 4 * 22.6);
    EXPECT_LT(chi_square, 255 + 5 * 22.6);
    // The number of ascents of a random order has a variance of n / 12.
    EXPECT_NEAR(ascending, kKeys / 2, 5 * std::sqrt(kKeys / 12.0));
  }
}

TEST(FieldCodecTest, FieldLengthsBelow8AreRefused) {
  EXPECT_OK(FieldCodec::Validate(8));
  EXPECT_OK(FieldCodec::Validate(std::numeric_limits<uint32_t>::max()));
  for (uint32_t length : {0, 7}) {
    const Status s = FieldCodec::Validate(length);
    EXPECT_TRUE(s.IsInvalidArgument());
    EXPECT_NE(s.ToString().find("--ycsb_field_length"), std::string::npos);
  }
}

TEST(FieldCodecTest, FieldsOfAllLengthsAreIntact) {
  Random64 rnd(kSeed);
  std::vector<uint32_t> lengths{100, 1000, 4096, 100000};
  for (uint32_t length = 8; length < 40; ++length) {
    lengths.push_back(length);
    lengths.push_back(length + 1008);  // around kChunk
    lengths.push_back(length + 2032);
  }
  for (double ratio : {-1.0, 0.0, 0.01, 0.25, 0.5, 0.99, 1.0, 3.0,
                       std::numeric_limits<double>::quiet_NaN()}) {
    const FieldCodec codec(ratio);
    for (uint32_t length : lengths) {
      const uint64_t record = rnd.Next();
      const uint32_t field = static_cast<uint32_t>(rnd.Next());
      std::string out = "kept";
      codec.Append(record, field, rnd.Next(), length, &out);
      ASSERT_EQ(out.size(), 4 + length);
      ASSERT_EQ(out.substr(0, 4), "kept");
      const std::string contents = out.substr(4);
      ASSERT_OK(codec.Check(record, field, contents));
      ASSERT_EQ(codec.FirstError(record, field, contents), FieldCodec::kIntact);
    }
  }
}

TEST(FieldCodecTest, ContentsDependOnEverything) {
  const FieldCodec codec(1.0);
  std::set<std::string> bodies;
  for (uint64_t record : {0, 1, 2}) {
    for (uint32_t field : {0, 1, 2}) {
      for (uint64_t version : {0, 1, 2}) {
        for (uint32_t length : {100, 101}) {
          const std::string contents =
              Contents(codec, record, field, version, length);
          EXPECT_EQ(contents,
                    Contents(FieldCodec(1.0), record, field, version, length));
          EXPECT_EQ(DecodeFixed64(contents.data()) & FieldCodec::kVersionMask,
                    version);
          EXPECT_TRUE(bodies.insert(contents.substr(8, 92)).second);
        }
      }
    }
  }
  // Only 48 bits of the version count.
  EXPECT_EQ(Contents(codec, 1, 2, 3, 50),
            Contents(codec, 1, 2, 3 | (uint64_t{0xffff} << 48), 50));
  EXPECT_NE(Contents(codec, 1, 2, 3, 50),
            Contents(codec, 1, 2, 3 | (uint64_t{1} << 47), 50));
}

// Every bit flip is found for any record, field and version, and also in the
// shortest field, which has nothing but version and checksum.
TEST(FieldCodecTest, EveryBitFlipIsFound) {
  Random64 rnd(kSeed);
  for (double ratio : {0.0, 0.3, 1.0}) {
    const FieldCodec codec(ratio);
    for (uint32_t length : {8, 9, 16, 37, 100, 2100}) {
      for (int round = 0; round < (length < 20 ? 2000 : 3); ++round) {
        const uint64_t record = rnd.Next();
        const uint32_t field = static_cast<uint32_t>(rnd.Uniform(100));
        std::string contents =
            Contents(codec, record, field, rnd.Next(), length);
        for (size_t i = 0; i < contents.size(); ++i) {
          for (int bit = 0; bit < 8; ++bit) {
            const char right = contents[i];
            contents[i] = static_cast<char>(right ^ (1 << bit));
            const uint64_t error = codec.FirstError(record, field, contents);
            ASSERT_EQ(error, i < 8 ? 0 : i);
            contents[i] = right;
          }
        }
        ASSERT_OK(codec.Check(record, field, contents));
      }
    }
  }
}

TEST(FieldCodecTest, OtherDamageIsFound) {
  Random64 rnd(kSeed);
  for (double ratio : {0.3, 1.0}) {
    const FieldCodec codec(ratio);
    const std::string right = Contents(codec, 7, 3, rnd.Next(), 200);
    ExpectCorruption(codec.Check(8, 3, right), {"record 8", "field 3"});
    EXPECT_TRUE(codec.Check(7, 4, right).IsCorruption());
    for (size_t length = 0; length < right.size(); ++length) {
      ASSERT_TRUE(
          codec.Check(7, 3, Slice(right.data(), length)).IsCorruption());
    }
    EXPECT_TRUE(codec.Check(7, 3, right + right[0]).IsCorruption());
    EXPECT_TRUE(codec.Check(7, 3, std::string(200, '\0')).IsCorruption());
    // A torn write leaves the end of another version.
    const std::string other = Contents(codec, 7, 3, rnd.Next(), 200);
    for (size_t cut = 1; cut < 200; ++cut) {
      const std::string torn = right.substr(0, cut) + other.substr(cut);
      if (torn != right && torn != other) {
        ASSERT_TRUE(codec.Check(7, 3, torn).IsCorruption()) << cut;
      }
    }
    std::string wrong = right;
    wrong[150]++;
    wrong[151]++;
    ExpectCorruption(codec.Check(7, 3, wrong),
                     {"record 7", "field 3", "offset 150 of 200"});
  }
}

// The shortest field of another record is accepted with a probability of 2^-16.
// Of this million fields 15.3 are accepted on average, and 40 or more for one
// seed in 10^6.
TEST(FieldCodecTest, ChecksumAloneTellsRecordsApart) {
  const FieldCodec codec(1.0);
  Random64 rnd(kSeed);
  const std::string contents = Contents(codec, 1, 0, rnd.Next(), 8);
  int taken = 0;
  for (uint64_t record = 2; record < 1000002; ++record) {
    taken += codec.FirstError(record, 0, contents) == FieldCodec::kIntact;
  }
  EXPECT_LT(taken, 40);
}

// A compressor reaches about the ratio. LZ4 and Zstandard need less than 10
// bytes for each repetition. Snappy needs 3 bytes for every 64 repeated ones,
// and overlooks the start of a repetition that follows long random bytes.
TEST(FieldCodecTest, FieldsCompressToTheRatio) {
  struct Compressor {
    CompressionType type;
    bool supported;
    double loss;
  };
  for (const Compressor& compressor :
       {Compressor{kZSTD, ZSTD_Supported(), 0},
        Compressor{kLZ4Compression, LZ4_Supported(), 0},
        Compressor{kSnappyCompression, Snappy_Supported(), 0.1}}) {
    if (!compressor.supported) {
      continue;
    }
    for (double ratio : {0.2, 0.5, 0.75, 1.0}) {
      for (uint32_t length : {100, 1000, 10000, 300000}) {
        const FieldCodec codec(ratio);
        Random64 rnd(kSeed);
        std::string data;
        for (uint32_t i = 0; data.size() < 100000; ++i) {
          codec.Append(i / 10, i % 10, rnd.Next(), length, &data);
        }
        const double share = CompressedShare(compressor.type, data);
        const double unit = std::min(length, FieldCodec::kChunk);
        const std::string what = CompressionTypeToString(compressor.type) +
                                 ", ratio " + std::to_string(ratio) +
                                 ", length " + std::to_string(length);
        EXPECT_GT(share, ratio - 0.02) << what;
        EXPECT_LT(share, ratio + 10 / unit + compressor.loss) << what;
      }
    }
  }
}

// The bytes of an incompressible field are distributed like random ones.
TEST(FieldCodecTest, BytesAreUniform) {
  std::string data;
  const FieldCodec codec(1.0);
  Random64 rnd(kSeed);
  for (uint64_t record = 0; record < 2560; ++record) {
    codec.Append(record, 0, rnd.Next(), 100, &data);
  }
  std::vector<int> counts(256);
  for (char c : data) {
    ++counts[static_cast<unsigned char>(c)];
  }
  double chi_square = 0;
  for (int count : counts) {
    chi_square += (count - 1000.0) * (count - 1000.0) / 1000;
  }
  EXPECT_GT(chi_square, 255 - 4 * 22.6);
  EXPECT_LT(chi_square, 255 + 5 * 22.6);
}

class RecordCodecTest : public testing::Test {
 protected:
  static constexpr uint64_t kRecord = 4711;
  static constexpr uint32_t kFields = 5;

  std::string MakeValue(uint32_t length) {
    std::string value = "replaced";
    codec_.MakeValue(kRecord, &rnd_, kFields, length, &value);
    return value;
  }

  // Returns a value with field sizes of the up2x workload.
  std::string MakeVariableValue(uint32_t fields) {
    const NormalSize lengths(46.8, 11.6, 8);
    std::string value;
    for (uint32_t field = 0; field < fields; ++field) {
      codec_.AppendField(kRecord, field, rnd_.Next(), lengths.Next(&rnd_),
                         &value);
    }
    return value;
  }

  RecordCodec codec_{1.0};
  Random64 rnd_{kSeed};
};

TEST_F(RecordCodecTest, ValuesHaveTheFormat) {
  for (uint32_t length : {8, 100, 127, 128, 1000, 20000}) {
    const std::string value = MakeValue(length);
    const auto fields = Parse(value);
    ASSERT_EQ(fields.size(), kFields);
    for (uint32_t field = 0; field < kFields; ++field) {
      EXPECT_EQ(fields[field].size(), length);
      EXPECT_OK(codec_.fields().Check(kRecord, field, fields[field]));
    }
    EXPECT_EQ(value.size(), kFields * (VarintLength(length) + length));
  }
}

TEST_F(RecordCodecTest, DeltasHaveTheFormat) {
  std::string delta = "replaced";
  for (uint32_t field : {0, 3, 127, 128, 300}) {
    for (uint32_t length : {8, 100, 300}) {
      codec_.MakeDelta(kRecord, field, rnd_.Next(), length, &delta);
      Slice input(delta);
      uint32_t decoded_field = ~field;
      ASSERT_TRUE(GetVarint32(&input, &decoded_field));
      EXPECT_EQ(decoded_field, field);
      const auto fields = Parse(input);
      ASSERT_EQ(fields.size(), 1u);
      EXPECT_EQ(fields[0].size(), length);
      EXPECT_OK(codec_.fields().Check(kRecord, field, fields[0]));
    }
  }
  std::string second;
  codec_.MakeDelta(kRecord, 301, 5, 30, &second);
  const std::string both = delta + second;
  codec_.AppendDelta(kRecord, 301, 5, 30, &delta);
  EXPECT_EQ(delta, both);
}

TEST_F(RecordCodecTest, CheckValueAcceptsValues) {
  for (uint32_t length : {8, 100, 1000}) {
    EXPECT_OK(codec_.CheckValue(kRecord, kFields, MakeValue(length)));
  }
  for (uint32_t fields : {0, 1, 10, 300}) {
    EXPECT_OK(codec_.CheckValue(kRecord, fields, MakeVariableValue(fields)));
  }
}

TEST_F(RecordCodecTest, VersionsDiffer) {
  EXPECT_NE(MakeValue(100), MakeValue(100));
  Random64 rnd1(1);
  Random64 rnd2(1);
  std::string value1;
  std::string value2;
  codec_.MakeValue(kRecord, &rnd1, kFields, 100, &value1);
  codec_.MakeValue(kRecord, &rnd2, kFields, 100, &value2);
  EXPECT_EQ(value1, value2);
}

// Bit flips in the lengths are found, too.
TEST_F(RecordCodecTest, EveryBitFlipIsFound) {
  for (uint32_t length : {8, 17, 100, 130}) {
    std::string value = MakeValue(length);
    for (size_t i = 0; i < value.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        const char right = value[i];
        value[i] = static_cast<char>(right ^ (1 << bit));
        ASSERT_TRUE(codec_.CheckValue(kRecord, kFields, value).IsCorruption())
            << "byte " << i << ", bit " << bit;
        value[i] = right;
      }
    }
    ASSERT_OK(codec_.CheckValue(kRecord, kFields, value));
  }
}

TEST_F(RecordCodecTest, SwappedRecordsAndFieldsAreFound) {
  const std::string value = MakeValue(100);
  ExpectCorruption(codec_.CheckValue(kRecord + 1, kFields, value),
                   {"record 4712", "field 0", "offset 1 of 505"});
  // Fields 1 and 2 have changed places.
  const std::string swapped = value.substr(0, 101) + value.substr(202, 101) +
                              value.substr(101, 101) + value.substr(303);
  ASSERT_EQ(swapped.size(), value.size());
  ExpectCorruption(codec_.CheckValue(kRecord, kFields, swapped),
                   {"record 4711", "field 1", "offset 102 of 505"});
}

TEST_F(RecordCodecTest, ErrorsNameThePlace) {
  const std::string value = MakeValue(100);
  std::string wrong = value;
  wrong[202 + 1 + 33]++;
  ExpectCorruption(
      codec_.CheckValue(kRecord, kFields, wrong),
      {"record 4711", "field 2", "offset 236 of 505", "byte 33 of its 100"});
  ExpectCorruption(codec_.CheckValue(kRecord, kFields - 1, value),
                   {"record 4711", "field 4", "offset 404", "more than 4"});
  ExpectCorruption(codec_.CheckValue(kRecord, kFields + 1, value),
                   {"record 4711", "5 fields instead of 6"});
  ExpectCorruption(codec_.CheckValue(kRecord, kFields, ""),
                   {"record 4711", "0 fields instead of 5"});
  ExpectCorruption(codec_.CheckValue(kRecord, kFields, value.substr(0, 500)),
                   {"field 4", "offset 404 of 500", "100 bytes", "95 bytes"});
  ExpectCorruption(codec_.CheckValue(kRecord, kFields, value + "\x80"),
                   {"field 5", "offset 505 of 506", "ends early"});
  ExpectCorruption(
      codec_.CheckValue(kRecord, kFields, "\xff\xff\xff\xff\xff\x01"),
      {"field 0", "offset 0 of 6", "ends early"});
  std::string short_field = value.substr(0, 101) + "\x07";
  short_field += "1234567" + value.substr(202);
  ExpectCorruption(codec_.CheckValue(kRecord, kFields, short_field),
                   {"field 1", "offset 101", "7 bytes are too short"});
}

TEST_F(RecordCodecTest, EveryTruncationIsFound) {
  const std::string value = MakeVariableValue(kFields);
  for (size_t size = 0; size < value.size(); ++size) {
    ASSERT_TRUE(codec_.CheckValue(kRecord, kFields, Slice(value.data(), size))
                    .IsCorruption());
  }
}

TEST_F(RecordCodecTest, PartialValuesMayHaveEmptyFields) {
  std::string value;
  codec_.AppendField(kRecord, 0, 1, 20, &value);
  PutVarint32(&value, 0u);
  codec_.AppendField(kRecord, 2, 1, 30, &value);
  EXPECT_OK(codec_.CheckPartialValue(kRecord, kFields, value));
  EXPECT_OK(codec_.CheckPartialValue(kRecord, 3, value));
  EXPECT_OK(codec_.CheckPartialValue(kRecord, kFields, ""));
  EXPECT_OK(codec_.CheckPartialValue(kRecord, kFields, MakeValue(100)));
  ExpectCorruption(codec_.CheckValue(kRecord, 3, value), {"field 1"});
  ExpectCorruption(codec_.CheckPartialValue(kRecord, 2, value),
                   {"field 2", "more than 2"});
  ExpectCorruption(codec_.CheckPartialValue(kRecord + 1, 3, value),
                   {"field 0"});
  for (size_t i = 0; i < value.size(); ++i) {
    std::string wrong = value;
    wrong[i]++;
    ASSERT_TRUE(codec_.CheckPartialValue(kRecord, 3, wrong).IsCorruption());
  }
}

TEST_F(RecordCodecTest, UpdateFieldReplacesOneField) {
  for (uint32_t field = 0; field < kFields; ++field) {
    for (uint32_t length : {100, 8, 99, 130, 1000}) {
      std::string value = MakeValue(100);
      auto expected = Parse(value);
      const uint64_t version = rnd_.Next();
      ASSERT_OK(codec_.UpdateField(kRecord, field, version, length, &value));
      ASSERT_OK(codec_.CheckValue(kRecord, kFields, value));
      expected[field] =
          Contents(codec_.fields(), kRecord, field, version, length);
      ASSERT_EQ(Parse(value), expected);
    }
  }
}

TEST_F(RecordCodecTest, UpdateFieldRefusesBadValues) {
  const std::string value = MakeValue(100);
  const auto fails = [&](uint32_t field, const std::string& bad,
                         const std::vector<std::string>& parts) {
    std::string changed = bad;
    ExpectCorruption(codec_.UpdateField(kRecord, field, 1, 50, &changed),
                     parts);
    EXPECT_EQ(changed, bad);
  };
  fails(kFields, value, {"record 4711", "no field 5", "only 5"});
  fails(0, "", {"record 4711", "no field 0"});
  // The value is refused also if the corruption is behind the field.
  fails(0, value + "\x80", {"field 5", "ends early"});
  fails(0, value.substr(0, 500), {"field 4", "bytes left"});
}

TEST_F(RecordCodecTest, CompressibleValuesAreIntact) {
  const RecordCodec codec(0.5);
  std::string value;
  codec.MakeValue(kRecord, &rnd_, kFields, 100, &value);
  EXPECT_OK(codec.CheckValue(kRecord, kFields, value));
  EXPECT_OK(codec.UpdateField(kRecord, 2, 99, 100, &value));
  EXPECT_OK(codec.CheckValue(kRecord, kFields, value));
  // A reader with another ratio takes the value for damaged.
  EXPECT_TRUE(codec_.CheckValue(kRecord, kFields, value).IsCorruption());
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
