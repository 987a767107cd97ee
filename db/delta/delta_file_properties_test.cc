//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_file_properties.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "table/sst_file_writer_collectors.h"
#include "test_util/testharness.h"
#include "util/coding.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

class DeltaFilePropertiesTest : public testing::Test {
 protected:
  static std::string Encode(const DeltaFileProperties& properties) {
    std::string encoded;
    properties.EncodeTo(&encoded);
    return encoded;
  }

  static Status Decode(const std::string& encoded) {
    DeltaFileProperties properties;
    return properties.DecodeFrom(encoded);
  }

  static DeltaFileProperties Merged() {
    DeltaFileProperties properties;
    properties.tier = Tier::kMerged;
    properties.first_epoch = 12;
    properties.last_epoch = 300;
    return properties;
  }

  static DeltaFileProperties Sorted() {
    DeltaFileProperties properties;
    properties.tier = Tier::kSorted;
    properties.buckets = {{"", 12}, {"m", 300}};
    return properties;
  }

  static DeltaFileProperties SortedWithEnd() {
    DeltaFileProperties properties = Sorted();
    properties.buckets.erase(properties.buckets.begin());
    properties.end = "x";
    return properties;
  }

  static DeltaFileProperties MergedAnchors() {
    DeltaFileProperties properties = Merged();
    properties.kind = Kind::kAnchors;
    properties.operands_number = 301;
    return properties;
  }

  static void RoundTrip(const DeltaFileProperties& properties) {
    DeltaFileProperties decoded = Sorted();  // is replaced as a whole
    ASSERT_OK(decoded.DecodeFrom(Encode(properties)));
    ASSERT_TRUE(properties == decoded);
    ASSERT_EQ(properties.ToString(), decoded.ToString());
  }
};

// docs/formats.md has the same bytes.
TEST_F(DeltaFilePropertiesTest, EncodesTheDocumentedExamples) {
  ASSERT_EQ("0101010CAC0200", Slice(Encode(Merged())).ToString(/*hex=*/true));
  ASSERT_EQ("010102000002000C016DAC0200",
            Slice(Encode(Sorted())).ToString(/*hex=*/true));
  ASSERT_EQ(
      "0101020000"
      "01016DAC02"
      "010178",
      Slice(Encode(SortedWithEnd())).ToString(/*hex=*/true));
  ASSERT_EQ(
      "0102010CAC0200"
      "AD02",
      Slice(Encode(MergedAnchors())).ToString(/*hex=*/true));
}

TEST_F(DeltaFilePropertiesTest, DecodeRestoresTheEncodedProperties) {
  RoundTrip(Merged());
  RoundTrip(Sorted());
  RoundTrip(SortedWithEnd());
  RoundTrip(MergedAnchors());
  DeltaFileProperties properties;
  RoundTrip(properties);  // no epochs: with a global sequence number
  properties.kind = Kind::kAnchors;
  properties.first_epoch = 1;
  properties.last_epoch = UINT64_MAX;
  RoundTrip(properties);

  properties = Sorted();
  properties.buckets.clear();
  RoundTrip(properties);
  for (int i = 0; i < 10000; ++i) {
    properties.buckets.push_back(
        {std::string(i % 300, 'x') + std::to_string(i), uint64_t{1} << i % 64});
  }
  RoundTrip(properties);
}

TEST_F(DeltaFilePropertiesTest, MalformedPropertiesAreRefused) {
  ASSERT_TRUE(Decode("").IsCorruption());
  ASSERT_TRUE(Decode("nonsense").IsNotSupported());
  for (const DeltaFileProperties& properties :
       {Merged(), Sorted(), SortedWithEnd(), MergedAnchors()}) {
    const std::string encoded = Encode(properties);
    for (size_t size = 0; size < encoded.size(); ++size) {
      ASSERT_TRUE(Decode(encoded.substr(0, size)).IsCorruption()) << size;
    }
    ASSERT_TRUE(Decode(encoded + '\0').IsCorruption());
  }

  std::string encoded = Encode(Merged());
  encoded[0] = 2;
  ASSERT_TRUE(Decode(encoded).IsNotSupported());
  for (int kind = 0; kind < 256; ++kind) {
    encoded = Encode(Merged());
    encoded[1] = static_cast<char>(kind);
    if (kind == 2) {
      encoded += '\0';  // there is no file of operands
    }
    ASSERT_EQ(kind == 1 || kind == 2, Decode(encoded).ok()) << kind;
  }
  for (int tier = 0; tier < 256; ++tier) {
    encoded = Encode(Merged());
    encoded[2] = static_cast<char>(tier);
    // Sorted files have no epochs, so the epochs of this file are invalid for
    // them.
    ASSERT_EQ(tier < 2, Decode(encoded).ok()) << tier;
  }

  DeltaFileProperties properties = Merged();
  properties.first_epoch = 301;
  ASSERT_TRUE(Decode(Encode(properties)).IsCorruption());
  properties.first_epoch = 0;
  ASSERT_TRUE(Decode(Encode(properties)).IsCorruption());
  properties = Merged();
  properties.buckets = Sorted().buckets;
  ASSERT_TRUE(Decode(Encode(properties)).IsCorruption());
  properties = Sorted();
  properties.buckets[1].lower_bound = "";
  ASSERT_TRUE(Decode(Encode(properties)).IsCorruption());
  properties = SortedWithEnd();
  properties.end = "m";
  ASSERT_TRUE(Decode(Encode(properties)).IsCorruption());
  properties.end = "";
  ASSERT_TRUE(Decode(Encode(properties)).IsCorruption());
  properties.buckets.push_back({"", 300});
  properties.end.reset();
  ASSERT_TRUE(Decode(Encode(properties)).IsCorruption());
  encoded = Encode(Sorted());
  encoded.back() = 2;
  ASSERT_TRUE(Decode(encoded).IsCorruption());

  // There would be no memory for this number of buckets.
  encoded = std::string("\x01\x01\x02\x00\x00", 5);
  PutVarint32(&encoded, UINT32_MAX);
  encoded += std::string(100, '\0');
  ASSERT_TRUE(Decode(encoded).IsCorruption());
}

// A file has epochs, a global sequence number, or buckets.
TEST_F(DeltaFilePropertiesTest, EpochsExcludeAGlobalSequenceNumber) {
  for (const Kind kind : {Kind::kOperands, Kind::kAnchors}) {
    for (const Tier tier : {Tier::kFlushed, Tier::kMerged, Tier::kSorted}) {
      for (const bool has_epochs : {false, true}) {
        if (has_epochs && tier == Tier::kSorted) {
          continue;  // DecodeFrom() refuses it
        }
        DeltaFileProperties properties;
        properties.kind = kind;
        properties.tier = tier;
        properties.first_epoch = properties.last_epoch = has_epochs ? 7 : 0;
        TableProperties table;
        UserCollectedProperties& all = table.user_collected_properties;
        all[DeltaFileProperties::kPropertyName] = Encode(properties);
        DeltaFileProperties decoded;
        Status s = DeltaFileProperties::Read(table, &decoded);
        ASSERT_FALSE(DeltaFileProperties::HasGlobalSeq(table));
        ASSERT_EQ(has_epochs || tier == Tier::kSorted, s.ok()) << s.ToString();
        ASSERT_TRUE(s.ok() || s.IsCorruption()) << s.ToString();

        PutFixed32(&all[ExternalSstFilePropertyNames::kVersion], 2);
        s = DeltaFileProperties::Read(table, &decoded);
        ASSERT_TRUE(DeltaFileProperties::HasGlobalSeq(table));
        ASSERT_EQ(
            !has_epochs && kind == Kind::kAnchors && tier == Tier::kFlushed,
            s.ok())
            << s.ToString();
        ASSERT_TRUE(s.ok() || s.IsCorruption()) << s.ToString();
      }
    }
  }
}

TEST_F(DeltaFilePropertiesTest, BucketsFollowTheOrderOfTheComparator) {
  const Comparator& forward = *BytewiseComparator();
  const Comparator& backward = *ReverseBytewiseComparator();
  const auto in_order = [](const Comparator& ucmp,
                           const std::vector<std::string>& bounds,
                           const std::optional<std::string>& end = {}) {
    DeltaFileProperties properties;
    for (const std::string& bound : bounds) {
      properties.buckets.push_back({bound, 12});
    }
    properties.end = end;
    return properties.BucketsAreInOrder(ucmp);
  };
  ASSERT_TRUE(in_order(forward, {}));
  for (const Comparator* ucmp : {&forward, &backward}) {
    const bool is_forward = ucmp == &forward;
    ASSERT_TRUE(in_order(*ucmp, {""}));
    ASSERT_TRUE(in_order(*ucmp, {"", "m"}));
    ASSERT_TRUE(in_order(*ucmp, {""}, "m"));
    ASSERT_EQ(is_forward, in_order(*ucmp, {"", "b", "d"}, "f"));
    ASSERT_EQ(is_forward, in_order(*ucmp, {"b", "d"}));
    ASSERT_EQ(is_forward, in_order(*ucmp, {"b"}, "d"));
    ASSERT_EQ(!is_forward, in_order(*ucmp, {"", "d", "b"}));
    ASSERT_FALSE(in_order(*ucmp, {"", "b", "d", "c"}));
    ASSERT_FALSE(in_order(*ucmp, {"b", "d"}, "c"));
    ASSERT_FALSE(in_order(*ucmp, {"b", "b"}));
    ASSERT_FALSE(in_order(*ucmp, {"b"}, "b"));
    // The empty key is the last one backward, but no bound.
    ASSERT_FALSE(in_order(*ucmp, {"b", ""}));
    ASSERT_FALSE(in_order(*ucmp, {"b"}, ""));
    ASSERT_FALSE(in_order(*ucmp, {""}, ""));
  }
}

// docs/formats.md has the same bytes.
TEST_F(DeltaFilePropertiesTest, FlushedOperandsSayWhatTheFlushHasRead) {
  DeltaFileProperties properties;
  properties.first_epoch = 12;
  properties.last_epoch = 12;
  properties.first_seq = 5;
  properties.last_seq = 300;
  std::string encoded;
  properties.EncodeFlushTo(&encoded);
  ASSERT_EQ("05AC02", Slice(encoded).ToString(/*hex=*/true));
  ASSERT_EQ("operands, flushed, epochs 12 to 12, flush of 5 to 300",
            properties.ToString());
  TableProperties table_properties;
  UserCollectedProperties& all = table_properties.user_collected_properties;
  const auto read = [&](const std::string& flush, DeltaFileProperties* result) {
    all[DeltaFileProperties::kFlushPropertyName] = flush;
    return DeltaFileProperties::Read(table_properties, result);
  };
  all[DeltaFileProperties::kPropertyName] = Encode(properties);
  DeltaFileProperties decoded = properties;
  // Files of earlier versions do not have it.
  ASSERT_OK(DeltaFileProperties::Read(table_properties, &decoded));
  ASSERT_EQ(0, decoded.first_seq);
  ASSERT_EQ(0, decoded.last_seq);
  ASSERT_OK(read(encoded, &decoded));
  ASSERT_TRUE(properties == decoded);
  for (const std::string& bad :
       {encoded.substr(0, 2), encoded + '\0', std::string(), std::string(1, 5),
        std::string("\0\x05", 2), std::string("\x06\x05")}) {
    ASSERT_TRUE(read(bad, &decoded).IsCorruption())
        << Slice(bad).ToString(/*hex=*/true);
  }
  for (const DeltaFileProperties& other : {Merged(), MergedAnchors()}) {
    all[DeltaFileProperties::kPropertyName] = Encode(other);
    ASSERT_TRUE(read(encoded, &decoded).IsCorruption());
  }
}

TEST_F(DeltaFilePropertiesTest, DamagedPropertiesAreDecodedOrRefused) {
  Random rnd(301);
  for (int i = 0; i < 100000; ++i) {
    std::string encoded = Encode(i % 4 == 0   ? Merged()
                                 : i % 4 == 1 ? Sorted()
                                 : i % 4 == 2 ? SortedWithEnd()
                                              : MergedAnchors());
    for (int changes = 1 + rnd.Uniform(3); changes > 0; --changes) {
      encoded[rnd.Uniform(static_cast<int>(encoded.size()))] =
          static_cast<char>(rnd.Next());
    }
    DeltaFileProperties properties;
    const Status s = properties.DecodeFrom(encoded);
    if (s.ok()) {
      DeltaFileProperties again;
      ASSERT_OK(again.DecodeFrom(Encode(properties)));
      ASSERT_TRUE(properties == again);
    } else {
      ASSERT_TRUE(s.IsCorruption() || s.IsNotSupported()) << s.ToString();
    }
  }
}

TEST_F(DeltaFilePropertiesTest, CollectorWritesThePropertiesAsOfFinish) {
  // Changes that are made before Finish() count.
  DeltaFileProperties properties = Sorted();
  std::unique_ptr<InternalTblPropColl> collector;
  {
    DeltaFilePropertiesCollectorFactory factory(&properties);
    collector.reset(factory.CreateInternalTblPropColl(0, 0, 7, 0));
    ASSERT_STREQ(factory.Name(), collector->Name());
  }
  ASSERT_OK(collector->InternalAdd("key", "value", 100));
  collector->BlockAdd(1, 1, 1);
  properties.buckets.push_back({"x", 7});
  TableProperties table_properties;
  ASSERT_OK(collector->Finish(&table_properties.user_collected_properties));
  DeltaFileProperties read;
  ASSERT_OK(DeltaFileProperties::Read(table_properties, &read));
  ASSERT_TRUE(properties == read);
  ASSERT_EQ("operands, sorted, buckets 3",
            collector->GetReadableProperties().at("strata.delta"));
  ASSERT_FALSE(collector->NeedCompact());

  ASSERT_TRUE(
      DeltaFileProperties::Read(TableProperties(), &read).IsCorruption());
}

TEST_F(DeltaFilePropertiesTest, ToStringHasKindTierAndEpochs) {
  ASSERT_EQ("operands, merged, epochs 12 to 300", Merged().ToString());
  DeltaFileProperties properties;
  properties.kind = Kind::kAnchors;
  ASSERT_EQ("anchors, flushed, epochs 0 to 0", properties.ToString());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
