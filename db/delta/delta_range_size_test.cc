//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_range_size.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "db/delta/delta_file_meta.h"
#include "db/delta/delta_store_test_util.h"
#include "db/delta/delta_version.h"
#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using delta_test::Events;

class DeltaRangeSizeTest : public delta_test::DeltaStoreTestBase {
 protected:
  // Keys and values are so large that a block has about ten operands.
  static std::string KeyOf(int i) {
    return std::to_string(1000 + i) + std::string(200, 'k');
  }

  // Returns an operand of each of the keys [first, last).
  Events Operands(int first, int last) {
    Events events;
    for (int i = first; i < last; ++i) {
      events.push_back(OperandOf(KeyOf(i), ++last_seq_));
    }
    return events;
  }

  uint64_t Bytes(const std::string& start, const std::string& limit,
                 double error_margin = -1) const {
    const ReadOptions read_options;
    return DeltaRangeSize(*version_, *store_, read_options)
        .Bytes(start, limit, error_margin);
  }

  size_t NumOpenFiles() const {
    size_t count = 0;
    version_->ForEachFile([&](const DeltaVersion::FilePtr& file) {
      count += file->OpenedReader() != nullptr ? 1 : 0;
    });
    return count;
  }

  // Checks what holds for every store with keys among the first kKeys.
  void CheckSizes() const {
    const uint64_t all = version_->GetTotals().bytes;
    const std::string before = "0";
    const std::string behind = KeyOf(kKeys);
    EXPECT_EQ(all, Bytes(before, behind));
    EXPECT_EQ(0u, Bytes(before, KeyOf(0)));
    EXPECT_EQ(0u, Bytes(behind, "9"));
    EXPECT_EQ(0u, Bytes(behind, before));
    uint64_t last = 0;
    for (int i = 0; i < kKeys; i += 7) {
      SCOPED_TRACE(i);
      const std::string key = KeyOf(i);
      EXPECT_EQ(0u, Bytes(key, key));
      const uint64_t below = Bytes(before, key);
      EXPECT_LE(last, below);
      EXPECT_EQ(all, below + Bytes(key, behind));
      const std::string middle = KeyOf(i / 2);
      EXPECT_EQ(below, Bytes(before, middle) + Bytes(middle, key));
      last = below;
    }
  }

  static constexpr int kKeys = 300;
};

TEST_F(DeltaRangeSizeTest, RangesOfOneFile) {
  Flush(Operands(0, kKeys));
  CheckSizes();
  const double all = static_cast<double>(version_->GetTotals().bytes);
  for (const double share : {0.1, 0.25, 0.5, 0.9}) {
    SCOPED_TRACE(share);
    const int keys = static_cast<int>(share * kKeys);
    EXPECT_NEAR(share * all, Bytes(KeyOf(0), KeyOf(keys)), 0.05 * all);
    EXPECT_NEAR(share * all, Bytes(KeyOf(20), KeyOf(20 + keys)), 0.05 * all);
  }
}

TEST_F(DeltaRangeSizeTest, FilesOfAllKindsAndTiers) {
  Flush(Operands(0, 200));
  Events anchors;
  for (int i = 50; i < 150; ++i) {
    anchors.push_back(AnchorOf(KeyOf(i), ++last_seq_));
  }
  Flush(anchors);
  Flush({RangeAnchorOf(KeyOf(20), KeyOf(120), ++last_seq_)});
  CheckSizes();
  Events mixed = Operands(100, kKeys);
  mixed.push_back(AnchorOf(KeyOf(30), ++last_seq_));
  mixed.push_back(RangeAnchorOf(KeyOf(250), KeyOf(260), ++last_seq_));
  Flush(mixed);
  CheckSizes();
  Merge(4);
  CheckSizes();
  Collect(0, 1, /*num=*/1, {"", KeyOf(100), KeyOf(200)});
  CheckSizes();
  Flush(Operands(150, 250));
  CheckSizes();
  // One bucket is rewritten. Its old operands stay in a file that other buckets
  // name, and count with it.
  Merge(1);
  Collect(1, 2, /*num=*/1, {KeyOf(100), KeyOf(150)});
  CheckSizes();
  ResetReaders();
  CheckSizes();
}

// Only files that a bound cuts are opened.
TEST_F(DeltaRangeSizeTest, ClosedFilesAreOpenedIfNecessary) {
  Flush(Operands(0, 100));
  Flush(Operands(100, 200));
  Flush(Operands(200, kKeys));
  const uint64_t all = version_->GetTotals().bytes;
  ResetReaders();
  ASSERT_EQ(0u, NumOpenFiles());
  EXPECT_EQ(all, Bytes("0", "9"));
  EXPECT_LT(0u, Bytes(KeyOf(0), KeyOf(200)));
  EXPECT_EQ(0u, NumOpenFiles());
  const uint64_t some = Bytes(KeyOf(50), KeyOf(250));
  EXPECT_EQ(2u, NumOpenFiles());
  EXPECT_LT(all / 2, some);
  EXPECT_GT(all * 5 / 6, some);
}

TEST_F(DeltaRangeSizeTest, FileThatCannotBeOpenedIsCutInTheMiddle) {
  Flush(Operands(0, 200));
  const uint64_t old_size = version_->GetTotals().bytes;
  Flush(Operands(200, kKeys));
  const uint64_t all = version_->GetTotals().bytes;
  ResetReaders();
  version_->ForEachFile([&](const DeltaVersion::FilePtr& file) {
    if (file->description().size == old_size) {
      ASSERT_OK(env_->DeleteFile(FileName(file->description())));
    }
  });
  CheckSizes();
  EXPECT_EQ(old_size / 2, Bytes(KeyOf(0), KeyOf(10)));
  EXPECT_EQ(all - old_size / 2, Bytes(KeyOf(10), KeyOf(kKeys)));
  EXPECT_EQ(0u, Bytes(KeyOf(10), KeyOf(150)));
}

// With an error margin, small files are not opened. Half of them counts.
TEST_F(DeltaRangeSizeTest, ErrorMargin) {
  Flush(Operands(0, 200));
  const uint64_t whole = version_->GetTotals().bytes;
  Flush(Operands(195, 215));
  const uint64_t cut = version_->GetTotals().bytes - whole;
  ASSERT_LT(cut, whole / 2);
  ResetReaders();
  EXPECT_EQ(whole + cut / 2, Bytes(KeyOf(0), KeyOf(205), /*error_margin=*/0.5));
  EXPECT_EQ(0u, NumOpenFiles());
  const uint64_t exact = Bytes(KeyOf(0), KeyOf(205));
  EXPECT_EQ(1u, NumOpenFiles());
  EXPECT_LT(whole, exact);
  EXPECT_GT(whole + cut, exact);
  EXPECT_EQ(exact, Bytes(KeyOf(0), KeyOf(205), /*error_margin=*/0.001));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
